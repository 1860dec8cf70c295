//! Runs every rule over the repository and writes the report.
//!
//! The files are those that git would commit (tracked, or new and not ignored);
//! where there is no git, every file outside `target` and `out`.

use crate::finding::Finding;
use crate::workspace::{Workspace, stdout_of};
use crate::{
    arrows, circles, forgotten, hints, licences, links, locks, mutate, names, places, planted,
    purity, scratch, source,
};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// All findings, and what else the reader should know.
pub struct Report {
    findings: Vec<Finding>,
    notes: Vec<String>,
    summary: String,
}

impl Report {
    /// True where no rule found anything.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            writeln!(f, "{finding}")?;
        }
        for note in &self.notes {
            writeln!(f, "tidy: note: {note}")?;
        }
        match self.findings.len() {
            0 => writeln!(f, "tidy: {}: clean", self.summary),
            n => writeln!(f, "tidy: {}: {n} findings", self.summary),
        }
    }
}

/// Checks the repository at `root`; an error where it cannot be read.
pub fn run(root: &Path) -> Result<Report, String> {
    let files = read_files(root)?;
    let workspace = Workspace::load(root)?;
    let mut notes = Vec::new();
    let mut findings = Vec::new();
    for (path, text) in &files {
        findings.extend(check_file(path, text));
    }
    findings.extend(links::check(&files));
    findings.extend(circles::check(&files));
    findings.extend(forgotten::check(&files));
    findings.extend(names::check(&files, &workspace));
    findings.extend(mutate::check(&files));
    findings.extend(planted::check(&files));
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    findings.extend(purity::check_dependencies(&workspace, read));
    for (room, package) in workspace.rooms().filter(|(room, _)| purity::PURE.contains(room)) {
        let features = Workspace::features(root, &package.name)?;
        findings.extend(purity::check_features(room, &features));
    }
    findings.extend(licences::check(&workspace));
    let architecture = files.get(arrows::PATH).map_or("", String::as_str);
    findings.extend(arrows::check(architecture, &workspace));
    let advisories = advisories(root);
    notes.push(advisories.note);
    findings.extend(advisories.finding);
    findings.sort();
    let rooms = workspace.rooms().count();
    let others = workspace.packages.len() - rooms;
    let summary = format!("{} files, {rooms} crates, {others} packages from outside", files.len());
    Ok(Report { findings, notes, summary })
}

/// Every rule that looks at one file.
fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_script = name.ends_with(".sh")
        || name == "Makefile"
        || (text.starts_with("#!") && !name.contains('.'));
    let mut found = places::check(path, text);
    if name.ends_with(".rs") {
        found.extend(source::check_rust(path, text));
        found.extend(purity::check_source(path, text));
        found.extend(locks::check(path, text));
        found.extend(scratch::check(path, text));
        found.extend(hints::check(path, text));
    } else if is_script {
        found.extend(source::check_script(path, text));
    }
    found
}

/// The files of the repository, from `root` on.
pub fn paths(root: &Path) -> Result<Vec<String>, String> {
    let mut list = Command::new("git");
    list.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]).current_dir(root);
    match stdout_of(&mut list) {
        Ok(paths) => Ok(paths.split('\0').filter(|p| !p.is_empty()).map(Into::into).collect()),
        Err(_) => walk(root, ""),
    }
}

/// Path to text; the text of a file that is not UTF-8 is empty.
fn read_files(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut files = BTreeMap::new();
    for path in paths(root)? {
        match std::fs::read(root.join(&path)) {
            Ok(bytes) => files.insert(path, String::from_utf8(bytes).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue, // deleted
            Err(error) => return Err(format!("{path}: {error}")),
        };
    }
    Ok(files)
}

/// Every file below `root` in `folder` but what is built.
pub fn walk(root: &Path, folder: &str) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    let entries = std::fs::read_dir(root.join(folder)).map_err(|e| format!("{folder}: {e}"))?;
    for entry in entries {
        let entry = entry.map_err(|e| format!("{folder}: {e}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        match entry.path().is_dir() {
            true if ["target", "out", ".git"].contains(&name.as_str()) => {}
            true => paths.extend(walk(root, &path)?),
            false => paths.push(path),
        }
    }
    Ok(paths)
}

struct Advisories {
    note: String,
    finding: Option<Finding>,
}

/// Known vulnerabilities, where a tool and its local database are installed.
fn advisories(root: &Path) -> Advisories {
    let cargo_home = std::env::var_os("CARGO_HOME")
        .map(Into::into)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let has = |name: &str| cargo_home.as_ref().is_some_and(|home| home.join(name).exists());
    let (tool, arguments) = if has("advisory-db") && has("bin/cargo-audit") {
        ("audit", &["audit", "--no-fetch", "--stale"][..])
    } else if has("advisory-dbs") && has("bin/cargo-deny") {
        ("deny", &["deny", "--offline", "check", "advisories"][..])
    } else {
        let note =
            "advisories were not checked: no cargo-audit or cargo-deny with a local database";
        return Advisories { note: note.into(), finding: None };
    };
    let finding = stdout_of(Command::new("cargo").args(arguments).current_dir(root))
        .err()
        .map(|error| Finding::new("Cargo.lock", 0, "advisories", error));
    Advisories { note: format!("advisories were checked with cargo-{tool}"), finding }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules are wired to the files that they are for.
    #[test]
    fn each_kind_of_file_meets_its_rules() {
        let rules = |path: &str, text: &str| -> Vec<_> {
            check_file(path, text).into_iter().map(|finding| finding.rule).collect()
        };
        assert_eq!(rules("crates/node/src/lib.rs", "fn f() {}\n"), ["purpose", "purity"]);
        let scratch = "//! Says what this file is for.\nuse std::env::temp_dir;\n";
        assert_eq!(rules("crates/sim/tests/x.rs", scratch), ["scratch"]);
        assert_eq!(rules("scripts/x", "#!/bin/bash\necho\n"), ["purpose"]);
        assert_eq!(rules("Makefile", "all:\n"), ["purpose"]);
        assert_eq!(rules("docs/x.md", concat!("see /ro", "ot/x\n")), ["places"]);
        assert_eq!(rules("docs/x.md", "words\n"), [""; 0]);
    }

    /// A report with findings is not clean and says how many there are.
    #[test]
    fn a_finding_fails_the_report() {
        let mut report = Report { findings: vec![], notes: vec![], summary: "1 files".into() };
        assert!(report.is_clean());
        report.findings.push(Finding::new("a.rs", 3, "purpose", "say it"));
        assert!(!report.is_clean());
        assert_eq!(report.to_string(), "a.rs:3: purpose: say it\ntidy: 1 files: 1 findings\n");
    }
}
