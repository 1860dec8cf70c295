//! Mutants: `cargo run -q -p xtask -- mutate CRATE`, followed by whatever else
//! cargo-mutants shall be told (`--shard 0/20` for a sample, `-f FILE` for a file).
//!
//! cargo-mutants changes one thing in the sources at a time and runs the tests: a mutant
//! that no test finds is a survivor. Each survivor that was looked at stands in
//! docs/mutants.md with the reason why it is no fault; one that does not stand there, and
//! one that stands there and is found by now, fail the run. A mutant is known by its file,
//! by what is changed and by the text of its line, so that the list outlives other changes.

use crate::finding::Finding;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Where survivors are explained.
pub const PATH: &str = "docs/mutants.md";

/// The crates whose mutants are looked for, and the packages whose tests shall find them.
const CRATES: [(&str, &[&str]); 4] = [
    ("window", &["slackline-window"]),
    ("store", &["slackline-store"]),
    ("node", &["slackline-node", "slackline-sim"]),
    ("engine", &["slackline-engine"]),
];

/// Smaller searches than those of `make test`: each runs once for every mutant.
const SIZES: [(&str, &str); 4] = [
    ("SLACKLINE_HISTORIES", "30"),
    ("SLACKLINE_PAGES", "100000"),
    ("SLACKLINE_PREEMPTIONS", "2"),
    ("SLACKLINE_SCHEDULES", "60"),
];

/// One mutant, wherever its line has moved to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mutant {
    file: String,
    /// In the words of cargo-mutants: `replace < with <= in f`.
    change: String,
    /// The text of the line that it begins in.
    line: String,
}

/// Runs the mutants of a crate; false where a survivor is not explained, or one that is
/// explained was found.
///
/// # Errors
/// Where there is no such crate, no cargo-mutants, or its tests fail without a mutant.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool, String> {
    let known: Vec<&str> = CRATES.iter().map(|(name, _)| *name).collect();
    let usage = || format!("which crate's? one of {}", known.join(", "));
    let (name, arguments) = arguments.split_first().ok_or_else(usage)?;
    let (name, tests) = CRATES.iter().find(|(known, _)| known == name).ok_or_else(usage)?;
    let out = root.join("out/mutants").join(name);
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut mutants = Command::new("cargo");
    mutants.args(["mutants", "--package", &format!("slackline-{name}"), "--output"]).arg(&out);
    for test in *tests {
        mutants.args(["--test-package", test]);
    }
    mutants.args(arguments).envs(SIZES).current_dir(root);
    let ended = mutants.status().map_err(|error| format!("cargo: {error}"))?;
    // 2 and 3: there are survivors, and tests that ran for too long.
    if !matches!(ended.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo mutants: {ended}; `cargo install --locked cargo-mutants`"));
    }
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let outcomes = read(&out.join("mutants.out/outcomes.json"))?;
    let tried = tried(&outcomes, |file| read(&root.join(file)))?;
    let explained = explained(&read(&root.join(PATH))?);
    let (report, good) = compare(&tried, &explained.into_keys().collect());
    print!("{report}");
    Ok(good)
}

/// All mutants that were tried and compile, and whether a test found them; `source` gives
/// the text of a file.
fn tried(
    outcomes: &str,
    source: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<(Mutant, bool)>, String> {
    let value: Value = serde_json::from_str(outcomes).map_err(|error| error.to_string())?;
    let none = || "outcomes of another version of cargo-mutants".to_owned();
    let mut tried = Vec::new();
    for outcome in value["outcomes"].as_array().ok_or_else(none)? {
        let mutant = &outcome["scenario"]["Mutant"];
        let is_found = match outcome["summary"].as_str() {
            Some("CaughtMutant" | "Timeout") => true,
            Some("MissedMutant") => false,
            _ => continue,
        };
        if mutant.is_null() {
            continue;
        }
        let file = mutant["file"].as_str().ok_or_else(none)?.to_owned();
        let name = mutant["name"].as_str().ok_or_else(none)?;
        let number = mutant["span"]["start"]["line"].as_u64().ok_or_else(none)?;
        // `file:line:column: what is changed`
        let change = name.splitn(4, ':').nth(3).ok_or_else(none)?.trim().to_owned();
        let text = source(&file)?;
        let line = text.lines().nth(number as usize - 1).unwrap_or_default().trim().to_owned();
        tried.push((Mutant { file, change, line }, is_found));
    }
    Ok(tried)
}

/// The explained survivors of a text, with the lines that they stand in: below a heading
/// that is a file, an item says what is changed and in which line, and then why.
fn explained(text: &str) -> BTreeMap<Mutant, usize> {
    let mut found = BTreeMap::new();
    let mut file = String::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(heading) = line.strip_prefix("### ") {
            file = heading.trim().to_owned();
        }
        let Some(item) = line.strip_prefix("* `") else { continue };
        // An item may go on in the lines below it.
        let rest = lines[at + 1..].iter().take_while(|line| line.starts_with("  "));
        let item = rest.fold(item.to_owned(), |item, line| item + " " + line.trim());
        let mut parts = item.split('`');
        if let (Some(change), Some(" in "), Some(line)) = (parts.next(), parts.next(), parts.next())
        {
            let (change, line) = (change.to_owned(), line.to_owned());
            found.insert(Mutant { file: file.clone(), change, line }, at + 1);
        }
    }
    found
}

/// What a run says, and whether that is all well.
fn compare(tried: &[(Mutant, bool)], explained: &BTreeSet<Mutant>) -> (String, bool) {
    let survives: BTreeSet<_> = tried.iter().filter(|(_, found)| !found).map(|(m, _)| m).collect();
    let found: BTreeSet<_> = tried.iter().filter(|(_, found)| *found).map(|(m, _)| m).collect();
    let new: Vec<_> = survives.iter().filter(|mutant| !explained.contains(**mutant)).collect();
    let gone = explained.iter().filter(|m| found.contains(m) && !survives.contains(m));
    let gone: Vec<_> = gone.collect();
    let mut report = String::new();
    for mutant in &new {
        report += &format!("survives, and is not explained: {}\n", item(mutant));
    }
    for mutant in &gone {
        report += &format!("is found by now, and can leave {PATH}: {}\n", item(mutant));
    }
    let missed = tried.iter().filter(|(_, found)| !found).count();
    report += &format!(
        "mutate: {} mutants, {} found, {missed} survive, {} of them unexplained\n",
        tried.len(),
        tried.len() - missed,
        new.len()
    );
    (report, new.is_empty() && gone.is_empty())
}

fn item(Mutant { file, change, line }: &Mutant) -> String {
    format!("{file}\n* `{change}` in `{line}`:")
}

/// Explanations of mutants that cannot be any more: their line is gone.
pub fn check(files: &BTreeMap<String, String>) -> Vec<Finding> {
    let text = files.get(PATH).map_or("", String::as_str);
    let is_gone = |mutant: &Mutant| {
        let source = files.get(&mutant.file).map_or("", String::as_str);
        !source.lines().any(|line| line.trim() == mutant.line)
    };
    let gone = explained(text).into_iter().filter(|(mutant, _)| is_gone(mutant));
    gone.map(|(mutant, line)| {
        let text =
            format!("explains a mutant of `{}`, which is no line of {}", mutant.line, mutant.file);
        Finding::new(PATH, line, "mutants", text)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Mutants\n\n### a.rs\n\n* `replace < with <= in f` in `if a < b {`:\n  \
                        never equal.\n* `replace g with ()` in\n  `x();`: nobody looks.\n";

    fn mutant(change: &str, line: &str) -> Mutant {
        Mutant { file: "a.rs".into(), change: change.into(), line: line.into() }
    }

    #[test]
    fn a_survivor_is_known_by_its_line_wherever_that_is() {
        let explained = explained(LIST);
        assert_eq!(explained[&mutant("replace < with <= in f", "if a < b {")], 5);
        assert_eq!(explained[&mutant("replace g with ()", "x();")], 7);
        assert_eq!(explained.len(), 2);
        let outcomes = r#"{"outcomes": [
            {"scenario": "Baseline", "summary": "Success"},
            {"summary": "MissedMutant", "scenario": {"Mutant": {"file": "a.rs",
             "name": "a.rs:2:4: replace < with <= in f", "span": {"start": {"line": 2}}}}},
            {"summary": "Unviable", "scenario": {"Mutant": {}}},
            {"summary": "Timeout", "scenario": {"Mutant": {"file": "a.rs",
             "name": "a.rs:1:1: replace a::f -> T with T::new()", "span": {"start": {"line": 1}}}}}]}"#;
        let tried = tried(outcomes, |_| Ok("fn f() {\n    if a < b {\n".into())).unwrap();
        let first = mutant("replace < with <= in f", "if a < b {");
        let second = mutant("replace a::f -> T with T::new()", "fn f() {");
        assert_eq!(tried, [(first, false), (second, true)]);
        assert!(super::tried("{}", |_| Ok(String::new())).is_err());
    }

    #[test]
    fn new_survivors_and_explanations_of_what_is_found_are_told() {
        let list = || explained(LIST).into_keys().collect();
        let [lt, g] = [("replace < with <= in f", "if a < b {"), ("replace g with ()", "x();")]
            .map(|(change, line)| mutant(change, line));
        let (_, good) = compare(&[(lt.clone(), false), (g.clone(), false)], &list());
        assert!(good, "both are explained");
        let (report, good) = compare(&[(lt.clone(), true)], &list());
        assert!(!good && report.contains("is found by now"), "{report}");
        assert!(report.contains("1 mutants, 1 found, 0 survive"), "{report}");
        let (report, good) = compare(&[(lt, false), (mutant("new", "y"), false)], &list());
        assert!(!good && report.contains("not explained: a.rs\n* `new` in `y`:"), "{report}");
    }

    #[test]
    fn an_explanation_whose_line_is_gone_is_a_finding() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let files = BTreeMap::from([file(PATH, LIST), file("a.rs", "  if a < b {\n")]);
        let found = check(&files);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].rule), (7, "mutants"));
        assert!(run(Path::new("."), &["nothing".into()]).is_err());
    }
}
