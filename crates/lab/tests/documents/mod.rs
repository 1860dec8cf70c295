//! Tables of a quick run that stand in documents: held against them, or written there
//! with UPDATE_DOCS=1.

use lab::Ended;
use report::Table;
use std::fmt::Write;
use std::path::PathBuf;

const BY_SIZE_AND_RATE: &str = "Printed / ours, by size and urgent requests a second";
const CHANGES: &str = "What commands change of the throughput of reads of 500 kB";

/// Experiment, the title of one of its tables, document, and the part of it.
const PARTS: [(&str, &str, &str, &str); 6] = [
    ("semi-table-2", BY_SIZE_AND_RATE, "docs/semi-preemptible.md", "table 2"),
    ("semi-table-2", CHANGES, "docs/semi-preemptible.md", "changes"),
    ("semi-fig-16", "By size and technique", "docs/semi-preemptible.md", "techniques"),
    ("semi-table-3", "Printed / ours", "docs/semi-preemptible.md", "table 3"),
    ("semi-table-4", BY_SIZE_AND_RATE, "docs/semi-preemptible.md", "table 4"),
    ("semi-fig-5", "Sequential throughput", "docs/semi-preemptible.md", "chunks"),
];

pub fn hold(ended: &[Ended]) {
    for (name, title, document, part) in PARTS {
        let ended = ended.iter().find(|ended| ended.experiment.name == name);
        let findings = ended.and_then(|ended| ended.findings.as_ref().ok());
        let findings = findings.unwrap_or_else(|| panic!("{name} has run"));
        let mut tables = findings.tables.iter().filter(|table| table.0 == title);
        let (Some((_, table)), None) = (tables.next(), tables.next()) else {
            panic!("{name} has one table \"{title}\"")
        };
        hold_part(document, part, &markdown(table));
    }
}

fn markdown(table: &Table) -> String {
    let mut text = String::new();
    for (at, row) in table.cells().enumerate() {
        let cells: Vec<&str> = row.collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if at == 0 {
            let _ = writeln!(text, "|{}", "---|".repeat(cells.len()));
        }
    }
    text
}

fn hold_part(document: &str, part: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let whole = std::fs::read_to_string(&path).expect("the document is there");
    let begin = format!("<!-- begin: {part} -->\n");
    let start = whole.find(&begin).unwrap_or_else(|| panic!("no {begin} in {document}"));
    let start = start + begin.len();
    let end = start + whole[start..].find("<!-- end -->").expect("the part ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let updated = format!("{}{text}{}", &whole[..start], &whole[end..]);
        std::fs::write(&path, updated).expect("the document can be written");
        return;
    }
    assert!(
        &whole[start..end] == text,
        "{document}, part {part}, is stale; look, then run with UPDATE_DOCS=1"
    );
}
