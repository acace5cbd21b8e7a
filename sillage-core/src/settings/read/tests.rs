use std::time::Duration;

use super::*;

/// The example of the specification, whole.
const FULL: &str = r#"
agents:
  - name: claude
    title: Claude Code
    command: claude-agent-acp
    args: []
    env: { SOME_VARIABLE: "value", FROM_OURS: "${HOME}" }
    workspace: ~/src/project
    account: anthropic
    signIn: api-key
    models:
      opus:   { id: claude-opus-4-5, efforts: [low, medium, high] }
      sonnet: { efforts: [low, medium] }
      any:
    runtime: { type: container, name: box, workspacePath: /src, lifecycle: { create: "make box" } }
    limits: { openFiles: 4096, processes: 500, memory: 4GiB }
limits:
  maxRunningAgents: 4
  stopIdleAgentsAfter: 10m
  silentAfter: 45m
  parallel: 4
waits: { first: 10s, longest: 2m, attempts: 20, tryAccountEvery: 5m }
prices:
  opus: { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25, currency: USD, asOf: 2026-11-01 }
relais:
  - { name: local, url: "http://127.0.0.1:7433", tokenFile: ~/.config/relais/token, capacity: 8 }
theme: system
language: fr
channels:
  - { name: review, description: "…", members: [claude] }
"#;

fn codes(text: &str) -> Vec<(FaultCode, u32, Option<String>)> {
    let faults = read(text).expect_err(text);
    faults
        .into_iter()
        .map(|fault| (fault.code, fault.line.unwrap_or(0), fault.suggestion))
        .collect()
}

#[test]
fn a12_every_key_is_read() {
    let settings = read(FULL).unwrap();
    let agent = &settings.agents[0];
    assert_eq!(
        (agent.name.as_str(), agent.title.as_str()),
        ("claude", "Claude Code")
    );
    assert_eq!(agent.env["FROM_OURS"], "${HOME}");
    assert_eq!(agent.runtime.kind, RuntimeKind::Container);
    assert_eq!(agent.runtime.lifecycle.create.as_deref(), Some("make box"));
    assert_eq!(agent.limits.open_files.map(std::num::NonZeroU32::get), Some(4096));
    assert_eq!(agent.limits.processes.map(std::num::NonZeroU32::get), Some(500));
    assert_eq!(agent.limits.memory, Some(4 << 30));
    assert_eq!(
        settings.limits.stop_idle_agents_after,
        Some(Duration::from_secs(600))
    );
    assert_eq!(settings.limits.silent_after, Some(Duration::from_secs(2700)));
    assert_eq!(agent.sign_in.as_deref(), Some("api-key"));
    assert_eq!(settings.prices["opus"].cache_write, Some(6.25));
    assert_eq!(settings.prices["opus"].as_of.as_deref(), Some("2026-11-01"));
    assert_eq!(
        settings.relais[0].capacity.map(std::num::NonZeroU32::get),
        Some(8)
    );
    assert_eq!((settings.theme, settings.language), (Theme::System, Language::Fr));
    let offers: Vec<_> = settings
        .offers()
        .into_iter()
        .map(|offer| (offer.model, offer.efforts.len()))
        .collect();
    assert_eq!(
        offers,
        [
            ("opus".to_owned(), 3),
            ("sonnet".to_owned(), 2),
            ("any".to_owned(), 0)
        ]
    );
}

#[test]
fn a12_only_name_and_command_are_required() {
    assert_eq!(read("").unwrap(), Settings::default());
    let settings = read("agents: [{ name: a, command: b }]").unwrap();
    assert_eq!(
        (
            settings.agents[0].account.as_str(),
            settings.agents[0].title.as_str()
        ),
        ("a", "a")
    );
    assert_eq!(
        codes("agents: [{}]"),
        [
            (FaultCode::MissingField, 1, None),
            (FaultCode::MissingField, 1, None)
        ]
    );
}

#[test]
fn r7_waits_are_settable_and_what_is_not_said_is_as_the_defaults_are() {
    use crate::run::RunPolicy;
    let policy = |text: &str| read(text).unwrap().waits.of(RunPolicy::default());
    assert_eq!(policy("{}"), RunPolicy::default());
    let full = policy(FULL);
    let seconds = Duration::from_secs;
    assert_eq!(
        (full.backoff_first, full.backoff_most, full.gate_retry),
        (seconds(10), seconds(120), seconds(300))
    );
    assert_eq!(full.attempts.map(std::num::NonZeroU32::get), Some(20));
    // A first wait past the default bound is its own bound.
    assert_eq!(policy("waits: { first: 10m }").backoff_most, seconds(600));
    assert_eq!(
        codes("waits: { first: 10m, longest: 5m, tries: 3 }")
            .iter()
            .map(|(code, ..)| *code)
            .collect::<Vec<_>>(),
        [FaultCode::BadLimit, FaultCode::UnknownField]
    );
}

#[test]
fn a12_faults_come_all_at_once_with_line_and_near_name() {
    let text = "agents:\n  - { name: a/b, command: c }\n  - { nam: a, command: '  ' }\n  - { name: c, command: c, args: [1] }\n\
limits: { parallel: 0, stopIdleAgentsAfter: soon }\ntheme: drak\nlanguge: en\n";
    let suggested = |name: &str| Some(name.to_owned());
    let mut expected = [
        (FaultCode::BadId, 2, None),
        (FaultCode::UnknownField, 3, suggested("name")),
        (FaultCode::MissingField, 3, None),
        (FaultCode::BadValue, 3, None),
        (FaultCode::BadType, 4, None),
        (FaultCode::BadLimit, 5, None),
        (FaultCode::BadDuration, 5, None),
        (FaultCode::BadType, 6, suggested("dark")),
        (FaultCode::UnknownField, 7, suggested("language")),
    ];
    let mut found = codes(text);
    expected.sort_by_key(|(code, line, _)| (*line, *code));
    found.sort_by_key(|(code, line, _)| (*line, *code));
    assert_eq!(found, expected);
}

#[test]
fn a8_a_box_has_a_name_and_a_path_from_the_root() {
    let runtime = |runtime| {
        codes(&format!(
            "agents: [{{ name: a, command: c, runtime: {runtime} }}]"
        ))
    };
    for kind in ["container", "sbx"] {
        assert_eq!(
            runtime(format!("{{ type: {kind} }}")),
            [(FaultCode::MissingField, 1, None)]
        );
    }
    assert_eq!(
        runtime("{ type: sbx, name: box, workspacePath: src }".to_owned()),
        [(FaultCode::BadValue, 1, None)]
    );
    assert!(read("agents: [{ name: a, command: c, runtime: { type: local } }]").is_ok());
}

#[test]
fn a12_names_of_agents_are_unique_whatever_the_case() {
    let text = "agents:\n  - { name: Claude, command: c }\n  - { name: claude, command: c }\n";
    assert_eq!(codes(text), [(FaultCode::DuplicateId, 3, None)]);
}

#[test]
fn a12_a_channels_members_are_agents() {
    let text = "agents: [{ name: claude, command: c }]\nchannels:\n  - { name: review, members: [claud] }\n";
    assert_eq!(
        codes(text),
        [(FaultCode::UnknownAgent, 3, Some("claude".to_owned()))]
    );
}

#[test]
fn v4_prices_are_finite_and_not_negative() {
    for price in ["-1", ".nan", ".inf", "1e999"] {
        assert_eq!(
            codes(&format!("prices: {{ m: {{ input: {price} }} }}")),
            [(FaultCode::BadLimit, 1, None)],
            "{price}"
        );
    }
    assert_eq!(
        codes("prices: { m: { currency: usd } }"),
        [(FaultCode::BadValue, 1, None)]
    );
}

#[test]
fn a12_the_published_schema_agrees_with_the_reader() {
    let schema: serde_json::Value = serde_json::from_str(crate::settings::SCHEMA).unwrap();
    let names = |value: &serde_json::Value| {
        let mut names: Vec<String> = value["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort_unstable();
        names
    };
    let sorted = |known: &[&str]| {
        let mut known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        known.sort_unstable();
        known
    };
    assert_eq!(names(&schema), sorted(FIELDS));
    assert_eq!(names(&schema["$defs"]["agent"]), sorted(AGENT_FIELDS));
}

#[test]
fn c10_limits_of_an_agent_are_checked() {
    let agent = |limits: &str| format!("agents:\n  - {{ name: a, command: b, limits: {{ {limits} }} }}\n");
    let memory = |text: &str| read(&agent(text)).unwrap().agents[0].limits.memory;
    assert_eq!(memory("memory: 1048576"), Some(1 << 20));
    assert_eq!(memory("memory: 1 MiB"), Some(1 << 20));
    let refused: Vec<FaultCode> = codes(&agent("openFiles: 0, memory: 4GB, processes: many, files: 3"))
        .into_iter()
        .map(|fault| fault.0)
        .collect();
    assert_eq!(
        refused,
        [
            FaultCode::BadLimit,
            FaultCode::BadLimit,
            FaultCode::BadType,
            FaultCode::UnknownField
        ]
    );
}
