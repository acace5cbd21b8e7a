//! The table of `docs/agents.md`: what works with which agent. It is what the tests saw, never what somebody believes.
//!
//! Each test of an agent tells the outcome of its row here. It is recorded in a folder of Cargo's target folder, from
//! which `.ci/agents-table` makes the table, and held against the table that is committed.

use std::path::Path;
use std::{fs, io};

use super::Kind;

/// The variable which, set to `write`, keeps an outcome from being held against the committed table: `.ci/agents-table`
/// then writes the table anew.
pub const TABLE: &str = "SILLAGE_AGENTS_TABLE";

/// Records that `kind` did `outcome` in a row, and holds it against the table. A row is called by two digits, which give
/// its place, a blank and its title. `target` is the folder of Cargo's for
/// tests (`CARGO_TARGET_TMPDIR`), `package` the folder of a package of the workspace (`CARGO_MANIFEST_DIR`).
///
/// # Panics
/// When the committed table says otherwise, or the outcome cannot be recorded.
#[expect(clippy::panic, reason = "a test that deviates must fail")]
pub fn tell(package: &Path, target: &Path, row: &str, kind: Kind, outcome: &str) {
    if let Err(error) = record(target, row, kind, outcome) {
        panic!("the outcome cannot be recorded in {}: {error}", target.display());
    }
    if std::env::var_os(TABLE).is_some_and(|value| value == "write") {
        return;
    }
    let page = package.join("../docs/agents.md");
    let text = fs::read_to_string(&page).unwrap_or_default();
    let title = row.split_once(' ').map_or(row, |(_, title)| title);
    let told = cell(&text, title, kind.name());
    assert_eq!(
        told.as_deref(),
        Some(outcome),
        "{kind:?} no longer does in \"{title}\" what docs/agents.md says; `.ci/agents-table write` writes the table anew"
    );
}

/// A file for each row and agent, moved to its place whole.
fn record(target: &Path, row: &str, kind: Kind, outcome: &str) -> io::Result<()> {
    let folder = target.join("agents").join(row);
    fs::create_dir_all(&folder)?;
    let apart = folder.join(format!("{}.new", kind.name()));
    fs::write(&apart, format!("{outcome}\n"))?;
    fs::rename(apart, folder.join(kind.name()))
}

/// The cell of a Markdown table by its row's first cell and its column's heading.
fn cell(page: &str, row: &str, column: &str) -> Option<String> {
    let mut heading: Vec<String> = Vec::new();
    for line in page.lines() {
        let Some(inside) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            heading.clear();
            continue;
        };
        let cells: Vec<String> = inside.split('|').map(|cell| cell.trim().to_owned()).collect();
        if heading.is_empty() {
            heading = cells;
        } else if cells.first().is_some_and(|first| first == row) {
            let place = heading.iter().position(|name| name == column)?;
            return cells.get(place).cloned();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_cell_is_found_by_row_and_column_of_its_own_table() {
        let page = "| x | codex |\n| - | - |\n| one | no |\n\ntext\n\n| | opencode | codex |\n| - | - | - |\n| two | a | b |\n";
        assert_eq!(cell(page, "two", "codex").as_deref(), Some("b"));
        assert_eq!(cell(page, "one", "codex").as_deref(), Some("no"));
        assert_eq!(cell(page, "one", "opencode"), None);
        assert_eq!(cell(page, "three", "codex"), None);
    }
}
