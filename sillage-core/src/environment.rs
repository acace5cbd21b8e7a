//! The variables that programs are started with.

use std::ffi::OsString;

/// The variables of `all` that agents and checks are given: where programs, homes and certificates are, the language, the
/// terminal and the proxies. No token or key is among them: what an agent needs of those stands in its settings.
#[must_use]
pub fn inherited_environment(
    all: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    const NAMES: [&str; 17] = [
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "TMPDIR",
        "TERM",
        "USER",
        "LOGNAME",
        "SHELL",
        "TZ",
        "NO_PROXY",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        // Without these Windows programs do not start.
        "SYSTEMROOT",
        "APPDATA",
        "LOCALAPPDATA",
    ];
    const PREFIXES: [&str; 3] = ["LC_", "XDG_", "SSL_CERT_"];
    let passed = |name: &OsString| {
        let name = name.to_string_lossy();
        let proxy = name.ends_with("_proxy") && NAMES.contains(&name.to_uppercase().as_str());
        proxy || NAMES.contains(&&*name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    all.into_iter().filter(|(name, _)| passed(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c14_only_what_is_needed_is_inherited() {
        let all = [
            "PATH",
            "LC_ALL",
            "https_proxy",
            "XDG_CACHE_HOME",
            "GIT_DIR",
            "SILLAGE_TOKEN",
            "OPENAI_API_KEY",
            "path",
            "SSH_AUTH_SOCK",
        ];
        let passed = inherited_environment(all.map(|name| (name.into(), "x".into())));
        let names: Vec<_> = passed.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["PATH", "LC_ALL", "https_proxy", "XDG_CACHE_HOME"]);
    }
}
