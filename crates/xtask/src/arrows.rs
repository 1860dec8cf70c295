//! The arrows of ARCHITECTURE.md against the dependencies that cargo sees.
//!
//! The table is the law: first column a crate, third column all that it may use
//! of the others. Dev-dependencies are free: a test may look at a room from any
//! side, and ships nowhere.

use crate::finding::Finding;
use crate::workspace::Workspace;
use std::collections::BTreeMap;

/// Where the table stands.
pub const PATH: &str = "ARCHITECTURE.md";

/// One row of the table.
struct Row {
    line: usize,
    may_use: Vec<String>,
}

/// Compares the table in `architecture` with the workspace: arrows that are not
/// in the table, crates without a row, rows without a crate.
pub fn check(architecture: &str, workspace: &Workspace) -> Vec<Finding> {
    let rows = table(architecture);
    let mut findings = Vec::new();
    if rows.is_empty() {
        let text = "no table with the columns `crate`, `its one job`, `may use`";
        findings.push(Finding::new(PATH, 0, "arrows", text));
    }
    for (room, package) in workspace.rooms() {
        let Some(row) = rows.get(room) else {
            let text = format!("crates/{room} has no row in the table; say its one job there");
            findings.push(Finding::new(PATH, 0, "arrows", text));
            continue;
        };
        for used in workspace.uses(package).filter_map(|p| p.room.as_ref()) {
            if !row.may_use.contains(used) {
                let text = format!("crates/{room} uses `{used}`, which its row does not allow");
                findings.push(Finding::new(PATH, row.line, "arrows", text));
            }
        }
    }
    for (room, row) in &rows {
        if workspace.rooms().all(|(built, _)| built != room) {
            let text = format!("`{room}` is not in crates/; a room has a row once it is built");
            findings.push(Finding::new(PATH, row.line, "arrows", text));
        }
        for used in row.may_use.iter().filter(|used| !rows.contains_key(*used)) {
            let text = format!("`{room}` may use `{used}`, which has no row");
            findings.push(Finding::new(PATH, row.line, "arrows", text));
        }
    }
    findings
}

/// The rows of the first table whose head ends in `may use`.
fn table(text: &str) -> BTreeMap<String, Row> {
    let mut lines = (1..).zip(text.lines());
    let head = |line: &str| cells(line).last().is_some_and(|cell| cell == "may use");
    if !lines.any(|(_, line)| head(line)) {
        return BTreeMap::new();
    }
    lines
        .skip(1) // the rule under the head
        .take_while(|(_, line)| line.starts_with('|'))
        .filter_map(|(line, text)| {
            let cells = cells(text);
            let names = cells.last()?.split(',').map(|name| name.trim().trim_matches('`'));
            let may_use = names.filter(|name| !matches!(*name, "-" | "")).map(Into::into).collect();
            Some((cells.first()?.trim_matches('`').to_string(), Row { line, may_use }))
        })
        .collect()
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::planted;

    const TABLE: &str = "# Architecture\n
| crate | its one job | may use |
|---|---|---|
| `units` | types | - |
| `sched` | who goes next | units |
| `node` | streams | sched, units |
| `sim` | the virtual world | node |

after";

    /// All rooms of the table; `sched` uses what `uses` says.
    fn found(table: &str, uses: &[usize]) -> Vec<(usize, String)> {
        let rooms = [
            ("crates/units", None, &[][..]),
            ("crates/sched", None, uses),
            ("crates/node", None, &[]),
            ("crates/sim", None, &[]),
            ("serde", None, &[]),
        ];
        check(table, &planted(&rooms)).into_iter().map(|f| (f.line, f.text)).collect()
    }

    #[test]
    fn allowed_arrows_and_packages_from_outside_pass() {
        assert_eq!(found(TABLE, &[0, 4]), []);
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
        let found = found(TABLE, &[0, 2]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, 6, "the line of the row");
        assert!(found[0].1.contains("crates/sched uses `node`"), "{found:?}");
    }

    #[test]
    fn a_crate_without_a_row_a_row_without_a_crate_and_no_table_are_found() {
        let without_sim = TABLE.replace("| `sim` | the virtual world | node |\n", "");
        assert!(found(&without_sim, &[])[0].1.contains("crates/sim has no row"));
        let with_lab = TABLE.replace("\nafter", "| `lab` | experiments | sim |\n\nafter");
        let with_lab = with_lab.replace("|\n\n| `lab`", "|\n| `lab`");
        assert!(found(&with_lab, &[])[0].1.contains("`lab` is not in crates/"));
        let dangling = TABLE.replace("sched, units", "sched, units, disk");
        assert!(found(&dangling, &[])[0].1.contains("`disk`, which has no row"));
        assert!(found("no table", &[]).len() > 4);
    }
}
