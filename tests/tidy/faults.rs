//! The table of faults names tests that exist, and every fault that must be held is in it.

use std::collections::BTreeSet;

use crate::{File, assert_none, files};

const TABLE: &str = "docs/faults.md";

/// The cases that block a release, by group.
const MUST_BE_HELD: &[(char, &[u32])] = &[
    ('A', &[1, 2, 3, 4, 5, 10]),
    ('B', &[1, 2, 3, 4, 5, 6, 7, 12]),
    ('C', &[1, 2, 4, 5, 6, 7, 8, 9, 14]),
    ('D', &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 15, 16]),
    ('E', &[1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15]),
    ('F', &[1, 2, 3, 6, 7, 8, 9]),
    ('G', &[1, 2, 3, 4, 5]),
    ('H', &[1, 2]),
];

/// A line of the table: a case and what holds it.
struct Row<'a> {
    id: &'a str,
    held: &'a str,
}

/// The rows of the tables: `| id | case | where it is held |`.
fn rows(text: &str) -> Vec<Row<'_>> {
    text.lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line
                .strip_prefix('|')?
                .strip_suffix('|')?
                .split('|')
                .map(str::trim)
                .collect();
            let [id, _, held] = cells[..] else { return None };
            let numbered = id.chars().next()?.is_ascii_uppercase() && id[1..].parse::<u32>().is_ok();
            numbered.then_some(Row { id, held })
        })
        .collect()
}

/// The tests that a row names: `` `file::test` ``.
fn tests(held: &str) -> Vec<&str> {
    held.split('`')
        .skip(1)
        .step_by(2)
        .filter(|quoted| quoted.contains(".rs::"))
        .collect()
}

fn is_a_test(test: &str, sources: &[File]) -> bool {
    let Some((path, name)) = test.split_once("::") else {
        return false;
    };
    let source = sources.iter().find(|source| source.path == path);
    // A proptest's function and a table's row stand in a macro or a string.
    source.is_some_and(|source| source.text.contains(&format!("fn {name}(")))
}

/// What is wrong with a table.
fn breaches(text: &str, sources: &[File]) -> Vec<String> {
    let rows = rows(text);
    let mut found = Vec::new();
    for row in &rows {
        let tests = tests(row.held);
        if tests.is_empty() && !row.held.starts_with("Does not apply: ") && !row.held.starts_with("Later: ") {
            found.push(format!("{}: neither a test nor a reason", row.id));
        }
        let missing = tests.into_iter().filter(|test| !is_a_test(test, sources));
        found.extend(missing.map(|test| format!("{}: no test {test}", row.id)));
    }
    let told: BTreeSet<&str> = rows.iter().map(|row| row.id).collect();
    for (group, numbers) in MUST_BE_HELD {
        let untold = numbers
            .iter()
            .map(|number| format!("{group}{number}"))
            .filter(|id| !told.contains(&**id));
        found.extend(untold.map(|id| format!("{id} is not in the table")));
    }
    found
}

#[test]
fn every_fault_that_must_be_held_is_held_by_a_test_that_exists() {
    let documents = files("md");
    let table = documents
        .iter()
        .find(|file| file.path == TABLE)
        .map_or("", |file| &file.text);
    assert_none(&breaches(table, &files("rs")));
}

#[test]
fn a_fault_without_a_test_is_caught() {
    let sources = [File {
        path: "a/b.rs".to_owned(),
        text: "fn c1_held() {}".to_owned(),
    }];
    let text = "| C1 | x | `a/b.rs::c1_held` |\n| C2 | x | `a/b.rs::gone` |\n| C4 | x | somewhere |\n| C5 | x | Does not apply: y |\n";
    let found = breaches(text, &sources);
    assert_eq!(found[0], "C2: no test a/b.rs::gone");
    assert_eq!(found[1], "C4: neither a test nor a reason");
    assert!(found.contains(&"C6 is not in the table".to_owned()));
}
