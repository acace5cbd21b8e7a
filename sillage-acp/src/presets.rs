//! Agents that are known to speak ACP version 1, and how each is started (A2).

/// How a known agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name that the settings give it by default.
    pub name: &'static str,
    /// What it is called, for people.
    pub title: &'static str,
    /// The program, looked for on the `PATH`.
    pub command: &'static str,
    /// Its arguments.
    pub args: &'static [&'static str],
    /// Whose quota and sign-in its sessions share, where the agent does not leave that to its user.
    pub account: Option<&'static str>,
}

/// The known agents, by name.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "claude",
        title: "Claude Code",
        command: "claude-agent-acp",
        args: &[],
        account: Some("anthropic"),
    },
    Preset {
        name: "codex",
        title: "Codex",
        command: "codex-acp",
        args: &[],
        account: Some("openai"),
    },
    Preset {
        name: "gemini",
        title: "Gemini CLI",
        command: "gemini",
        args: &["--acp"],
        account: Some("google"),
    },
    Preset {
        name: "goose",
        title: "Goose",
        command: "goose",
        args: &["acp"],
        account: None,
    },
    Preset {
        name: "opencode",
        title: "opencode",
        command: "opencode",
        args: &["acp"],
        account: None,
    },
    Preset {
        name: "pi",
        title: "pi",
        command: "pi-acp",
        args: &[],
        account: None,
    },
];

#[cfg(test)]
mod tests {
    use super::PRESETS;

    #[test]
    fn a2_presets_are_in_order_and_each_once() {
        assert!(PRESETS.is_sorted_by(|a, b| a.name < b.name));
    }
}
