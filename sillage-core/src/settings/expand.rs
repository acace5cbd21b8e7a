//! What stands for something else in settings: `${NAME}` in values of variables, `~` before paths.

use std::path::{Path, PathBuf};

/// A variable that a value stands on and that is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the variable `{0}` is not set, set it or take `${{{0}}}` out of the settings")]
pub struct UnknownVariable(pub String);

/// The text with each `${NAME}` replaced by the variable's value. Braces that hold no variable's name, and a `$`
/// without braces, stand for themselves; what a value holds is not looked at again.
///
/// # Errors
/// For the first variable that `lookup` does not know.
pub fn expand_variables(
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownVariable> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        match after.split_once('}').filter(|(name, _)| is_variable(name)) {
            Some((name, behind)) => {
                expanded.push_str(&lookup(name).ok_or_else(|| UnknownVariable(name.to_owned()))?);
                rest = behind;
            }
            None => {
                expanded.push_str("${");
                rest = after;
            }
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The path with a leading `~` replaced by `home`; of another user's `~name` nothing is known, and it stays.
#[must_use]
pub fn expand_home(path: &Path, home: &Path) -> PathBuf {
    path.strip_prefix("~")
        .map_or_else(|_| path.to_owned(), |below| home.join(below))
}

fn is_variable(name: &str) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a12_variables_are_replaced_once() {
        let lookup = |name: &str| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "ODD" => Some("${HOME}".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("", ""),
            ("plain $HOME", "plain $HOME"),
            ("${HOME}/x:${HOME}", "/home/ada/x:/home/ada"),
            ("${ODD}", "${HOME}"),
            ("${}${1}${a b}${", "${}${1}${a b}${"),
            ("é${HOME}é", "é/home/adaé"),
        ] {
            assert_eq!(expand_variables(text, lookup).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(
            expand_variables("${NOPE}", lookup),
            Err(UnknownVariable("NOPE".to_owned()))
        );
    }

    #[test]
    fn a12_a_tilde_is_the_home_folder_as_a_whole_component() {
        let home = Path::new("/home/ada");
        for (path, expected) in [
            ("~", "/home/ada"),
            ("~/src", "/home/ada/src"),
            ("~bob/src", "~bob/src"),
            ("/~/x", "/~/x"),
            ("a/~", "a/~"),
        ] {
            assert_eq!(expand_home(Path::new(path), home), Path::new(expected), "{path}");
        }
    }
}
