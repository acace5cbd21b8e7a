//! `{{placeholders}}` in a script's texts.

use serde_json::Value;

/// The names, for error messages.
pub(super) const NAMES: &str = "cwd, session, prompt, text, model, effort, pid, script_dir, permission, response, \
                                output, code, match.N, env.NAME, and open for two opening braces";

const PLAIN: [&str; 13] = [
    "cwd",
    "session",
    "prompt",
    "text",
    "model",
    "effort",
    "pid",
    "script_dir",
    "permission",
    "response",
    "output",
    "code",
    "open",
];

/// The first placeholder of a script's text that does not exist, with its line.
pub(super) fn first_unknown(script: &str) -> Option<(u64, String)> {
    (1..).zip(script.lines()).find_map(|(line, text)| {
        if text.trim_start().starts_with('#') {
            return None;
        }
        pieces(text).find_map(|piece| match piece {
            Piece::Name(name) if !is_known(name) => Some((line, name.to_owned())),
            Piece::Name(_) | Piece::Text(_) => None,
        })
    })
}

fn is_known(name: &str) -> bool {
    PLAIN.contains(&name)
        || name
            .strip_prefix("env.")
            .is_some_and(|variable| !variable.is_empty())
        || name
            .strip_prefix("match.")
            .is_some_and(|group| group.parse::<usize>().is_ok())
}

/// `text` with its placeholders replaced.
///
/// # Errors
/// The name of the first placeholder that has no value.
pub(super) fn expand(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => expanded.push_str(text),
            Piece::Name("open") => expanded.push_str("{{"),
            Piece::Name(name) => expanded.push_str(&value(name).ok_or_else(|| name.to_owned())?),
        }
    }
    Ok(expanded)
}

/// `json` with the placeholders of its texts replaced; keys stay.
///
/// # Errors
/// As [`expand`].
pub(super) fn expand_json(json: &Value, value: &dyn Fn(&str) -> Option<String>) -> Result<Value, String> {
    Ok(match json {
        Value::String(text) => Value::String(expand(text, value)?),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| expand_json(item, value))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, field)| Ok((key.clone(), expand_json(field, value)?)))
                .collect::<Result<_, String>>()?,
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => json.clone(),
    })
}

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Cuts a text at its placeholders. Braces that hold no name are text.
fn pieces(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut name = None;
    std::iter::from_fn(move || {
        if let Some(name) = name.take() {
            return Some(Piece::Name(name));
        }
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(open) = rest[from..].find("{{").map(|at| at + from) {
            let Some(close) = rest[open..].find("}}").map(|at| at + open) else {
                break;
            };
            let inner = rest[open + 2..close].trim();
            if inner.is_empty()
                || !inner
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            {
                from = open + 1;
                continue;
            }
            let before = &rest[..open];
            rest = &rest[close + 2..];
            if before.is_empty() {
                return Some(Piece::Name(inner));
            }
            name = Some(inner);
            return Some(Piece::Text(before));
        }
        Some(Piece::Text(std::mem::take(&mut rest)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str) -> Option<String> {
        (name == "cwd").then(|| "/w".to_owned())
    }

    #[test]
    fn replaces_known_names_and_leaves_other_braces() {
        for (text, expected) in [
            ("", ""),
            ("a {{cwd}}/{{ cwd }} z", "a /w//w z"),
            ("{{open}}cwd}}", "{{cwd}}"),
            ("{ {\"a\": {}} }", "{ {\"a\": {}} }"),
            ("{{ not a name }} {{cwd}}", "{{ not a name }} /w"),
            ("{{{cwd}}}", "{/w}"),
            ("{{cwd", "{{cwd"),
            ("é{{cwd}}🙂", "é/w🙂"),
        ] {
            assert_eq!(expand(text, &value).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(expand("{{env.X}}", &value), Err("env.X".to_owned()));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_cut_without_loss(text in "[a{}. é-]{0,40}") {
            let again = expand(&text, &|name| Some(format!("{{{{{name}}}}}")));
            // Only blanks around a name may go.
            proptest::prop_assert_eq!(again.map(|t| t.replace(' ', "")), Ok(text.replace(' ', "")));
        }

        #[test]
        fn what_is_escaped_comes_back(text in "[a{}]{0,40}") {
            let escaped = text.replace("{{", "{{open}}");
            proptest::prop_assert_eq!(expand(&escaped, &|_| None), Ok(text));
        }
    }

    #[test]
    fn a_typo_is_found_with_its_line() {
        assert_eq!(
            first_unknown("a: '{{cwd}}'\n# {{nothing}}\nb: '{{cmd}}'\n"),
            Some((3, "cmd".to_owned()))
        );
        assert_eq!(first_unknown("a: '{{env.HOME}} {{match.1}}'\n"), None);
        assert_eq!(first_unknown("a: '{{env.}}'\n"), Some((1, "env.".to_owned())));
    }
}
