//! Names, sizes, and which module names which library.

use crate::{File, assert_none, files};

/// The most lines that a file may have, its tests not counted.
const MOST_LINES: usize = 500;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] = [
    "utils", "util", "helpers", "helper", "common", "misc", "manager", "managers",
];

/// A library, the crate that uses it, and the one module in it that names it.
const NAMED_ONCE: [(&str, &str, &str); 6] = [
    ("petgraph", "sillage-core/src/", "graph"),
    ("sled", "sillage-store/src/", "sled"),
    ("sled", "sillage-relais/src/", "gateway/journal/sled"),
    ("reqwest", "sillage-relais/src/", "client/http"),
    ("hyper_util", "sillage-relais/src/", "gateway/server"),
    ("agent_client_protocol_schema", "sillage-acp/src/", "translate"),
];

/// A line of code without its comment and without what stands in its quotes, so that words do not count as names.
fn code(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if quoted => {
                characters.next();
            }
            '"' => quoted = !quoted,
            '/' if !quoted && characters.peek() == Some(&'/') => break,
            _ if quoted => {}
            other => kept.push(other),
        }
    }
    kept
}

/// Whether a line names `library` from outside: not `mod sled;`, nor `self::sled` or `crate::sled`, our own module.
fn names(line: &str, library: &str) -> bool {
    let code = code(line);
    let part_of_a_name = |found: Option<char>| found.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(library).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + library.len()..]);
        let ours = ["mod ", "self::", "crate::", "super::"]
            .iter()
            .any(|prefix| before.ends_with(prefix));
        !part_of_a_name(before.chars().next_back()) && !part_of_a_name(after.chars().next()) && !ours
    })
}

/// Lines of a library's name outside the module that stands for it.
fn named_elsewhere(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (library, folder, module) in NAMED_ONCE {
        let Some(inside) = file.path.strip_prefix(folder) else {
            continue;
        };
        if inside == format!("{module}.rs") || inside.starts_with(&format!("{module}/")) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            if names(line, library) {
                found.push(format!(
                    "{}:{}: only `{module}` names {library}",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    found
}

/// A file or folder whose name says nothing.
fn empty_name(file: &File) -> Option<String> {
    let empty = file
        .path
        .split('/')
        .any(|part| EMPTY_NAMES.contains(&part.trim_end_matches(".rs")));
    empty.then(|| format!("{}: a name says what is inside", file.path))
}

/// Functions called `get_…`.
fn getters(file: &File) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| code(line).contains("fn get_"))
        .map(|(number, _)| format!("{}:{}: no `get_` in a function's name", file.path, number + 1))
        .collect()
}

/// A file that is too long and does not say why.
fn too_long(file: &File) -> Option<String> {
    let tests = file
        .path
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs" || part == "benches");
    if tests
        || file
            .text
            .lines()
            .any(|line| line.trim_start().starts_with("// long: "))
    {
        return None;
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let end = lines
        .iter()
        .position(|line| line.trim() == "#[cfg(test)]")
        .unwrap_or(lines.len());
    (end > MOST_LINES).then(|| {
        format!(
            "{}: {end} lines without its tests; at most {MOST_LINES}",
            file.path
        )
    })
}

fn sources() -> Vec<File> {
    let found = files("rs");
    assert!(
        found.iter().any(|file| file.path == "sillage-core/src/lib.rs"),
        "sources are found"
    );
    found
}

#[test]
fn a_library_is_named_by_one_module() {
    assert_none(&sources().iter().flat_map(named_elsewhere).collect::<Vec<_>>());
}

#[test]
fn names_say_what_is_inside() {
    assert_none(&sources().iter().filter_map(empty_name).collect::<Vec<_>>());
}

#[test]
fn no_function_is_called_get() {
    assert_none(&sources().iter().flat_map(getters).collect::<Vec<_>>());
}

#[test]
fn files_are_short() {
    assert_none(&sources().iter().filter_map(too_long).collect::<Vec<_>>());
}

fn file(path: &str, text: &str) -> File {
    File {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn a_library_named_elsewhere_is_caught() {
    for (path, text) in [
        ("sillage-core/src/task/check.rs", "use petgraph::graph::DiGraph;"),
        ("sillage-core/src/graphs.rs", "let g: petgraph::Graph<(), ()>;"),
        ("sillage-store/src/lib.rs", "fn open() -> sled::Db {"),
        ("sillage-relais/src/gateway/journal/mod.rs", "use sled::Db;"),
        (
            "sillage-acp/src/client.rs",
            "use agent_client_protocol_schema as acp;",
        ),
    ] {
        assert_eq!(named_elsewhere(&file(path, text)).len(), 1, "{path}: {text}");
    }
    for (path, text) in [
        ("sillage-core/src/graph.rs", "use petgraph::graph::DiGraph;"),
        ("sillage-core/src/graph/cycle.rs", "use petgraph::algo;"),
        ("sillage-core/src/task/check.rs", "// petgraph would do"),
        (
            "sillage-core/src/task/check.rs",
            "let why = \"petgraph \\\" does\";",
        ),
        (
            "sillage-store/src/lib.rs",
            "mod sled;\npub use self::sled::SledStore;\nlet unsledded = 1;",
        ),
    ] {
        assert_none(&named_elsewhere(&file(path, text)));
    }
}

#[test]
fn an_empty_name_is_caught() {
    for path in [
        "a/src/utils.rs",
        "a/src/helpers/mod.rs",
        "a/src/run/manager.rs",
        "common/src/lib.rs",
    ] {
        assert!(empty_name(&file(path, "")).is_some(), "{path}");
    }
    assert_eq!(empty_name(&file("a/src/common_ancestor.rs", "")), None);
}

#[test]
fn a_getter_is_caught() {
    assert_eq!(
        getters(&file("a.rs", "    pub fn get_name(&self) -> &str {")).len(),
        1
    );
    assert_none(&getters(&file(
        "a.rs",
        "fn name() {} // not fn get_name\nfn budget_left() {}",
    )));
}

#[test]
fn a_long_file_is_caught() {
    let long = "fn f() {}\n".repeat(MOST_LINES + 1);
    assert!(too_long(&file("a/src/x.rs", &long)).is_some());
    assert_eq!(
        too_long(&file("a/src/x.rs", &"fn f() {}\n".repeat(MOST_LINES))),
        None
    );
    assert_eq!(too_long(&file("a/src/x/tests.rs", &long)), None);
    assert_eq!(
        too_long(&file("a/src/x.rs", &format!("// long: one table\n{long}"))),
        None
    );
    let tested = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
    assert_eq!(too_long(&file("a/src/x.rs", &tested)), None);
}
