//! Planted bugs: a table that has, for each source file of some crates, one bug and the test of
//! that same crate that finds it. `cargo run -q -p xtask -- planted [FILE...]` plants them one by
//! one (`plant.rs`); what can be said of the table without that is checked here by `tidy`.
//!
//! A crate whose bugs are only found by the tests of others is a crate that nobody can change
//! alone. A file without a row, a row whose text is gone and a row whose test is gone are findings,
//! so that the table follows the sources.

use crate::finding::Finding;
use crate::lexer::{has_word, split};
use std::collections::{BTreeMap, BTreeSet};

/// Where the table is.
pub const PATH: &str = "docs/planted-bugs.tsv";

/// The crates of which each file has a row.
const CRATES: [&str; 3] = ["node", "playout", "queue"];

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    /// The crate's folder in `crates/`.
    pub krate: String,
    /// The file, below the crate's `src/`.
    pub file: String,
    /// What is replaced; the file has it once.
    pub is: String,
    /// What replaces it; nothing where a statement is left out.
    pub becomes: String,
    /// The target that has the test: `lib`, or a name in `tests/`.
    pub target: String,
    /// The test, with its modules.
    pub test: String,
    /// What the bug is, in a few words.
    pub what: String,
    /// The line of the table.
    pub line: usize,
}

impl Bug {
    /// The file that the bug is in, from the repository's root on.
    pub fn path(&self) -> String {
        format!("crates/{}/src/{}", self.krate, self.file)
    }

    /// `source` with the bug; none where the text that is replaced is not there once.
    pub fn plant(&self, source: &str) -> Option<String> {
        (source.matches(&self.is).count() == 1).then(|| source.replacen(&self.is, &self.becomes, 1))
    }

    /// Whether the file at `path`, whose text that is, has the test.
    fn has_test(&self, path: &str, text: &str) -> bool {
        let folder = format!("crates/{}/", self.krate);
        let Some(path) = path.strip_prefix(&folder) else { return false };
        let root = match self.target.as_str() {
            "lib" => "src".to_owned(),
            target => format!("tests/{target}"),
        };
        let (modules, name) = self.test.rsplit_once("::").unwrap_or(("", &self.test));
        let module = modules.rsplit("::").find(|one| !matches!(*one, "" | "tests"));
        let is_there = match module {
            None => [".rs", "/main.rs", "/lib.rs"].iter().any(|end| path == format!("{root}{end}")),
            Some(module) => {
                let ends = [format!("/{module}.rs"), format!("/{module}/mod.rs")];
                path.starts_with(&format!("{root}/")) && ends.iter().any(|end| path.ends_with(end))
            }
        };
        is_there && declares(text, name)
    }
}

/// Whether `text` has a test of that name.
fn declares(text: &str, name: &str) -> bool {
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") || line.starts_with("//") {
            is_test |= line == "#[test]";
            continue;
        }
        if is_test && line.starts_with(&format!("fn {name}(")) {
            return true;
        }
        is_test = false;
    }
    false
}

/// The rows of a table, and the lines that are none.
pub fn rows(text: &str) -> (Vec<Bug>, Vec<Finding>) {
    let (mut bugs, mut wrong) = (Vec::new(), Vec::new());
    for (line, row) in (1..).zip(text.lines()) {
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let columns: Vec<&str> = row.split('\t').collect();
        let &[krate, file, is, becomes, target, test, what] = columns.as_slice() else {
            let text = format!("has {} columns; they are 7, parted by tabs", columns.len());
            wrong.push(Finding::new(PATH, line, "planted", text));
            continue;
        };
        let [krate, file, is, becomes] = [krate, file, is, becomes].map(str::to_owned);
        let [target, test, what] = [target, test, what].map(str::to_owned);
        bugs.push(Bug { krate, file, is, becomes, target, test, what, line });
    }
    (bugs, wrong)
}

/// Whether a source file has something in it that can be wrong: a function or a constant, beside
/// its own tests. Files that only declare modules and types have not.
fn has_code(text: &str) -> bool {
    let code = split(text).code;
    let own = code.split_once("\nmod tests").map_or(code.as_str(), |(own, _)| own);
    let is_constant = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
        line.starts_with("const ") || line.starts_with("static ")
    };
    own.lines().any(|line| has_word(line, "fn") || is_constant(line))
}

/// What is wrong with the table beside the sources in `files`, path to text.
pub fn check(files: &BTreeMap<String, String>) -> Vec<Finding> {
    let (bugs, mut found) = rows(files.get(PATH).map_or("", String::as_str));
    let mut has_row = BTreeSet::new();
    for bug in &bugs {
        let mut say = |text: String| found.push(Finding::new(PATH, bug.line, "planted", text));
        let path = bug.path();
        if bug.is == bug.becomes || bug.is.is_empty() || bug.what.is_empty() {
            say("plants nothing, or does not say what the bug is".into());
        }
        match files.get(&path) {
            None => say(format!("plants a bug in {path}, which is not there: name the file anew")),
            Some(source) if bug.plant(source).is_none() => {
                let times = source.matches(&bug.is).count();
                say(format!("`{}` is {times} times in {path}; take a text that is once", bug.is));
            }
            Some(_) => {}
        }
        if !files.iter().any(|(path, text)| bug.has_test(path, text)) {
            let Bug { krate, target, test, .. } = bug;
            say(format!(
                "crate {krate} has no test {test} in {target}; name one that finds the bug"
            ));
        }
        has_row.insert(path);
    }
    let sources = |krate: &str| {
        let folder = format!("crates/{krate}/src/");
        files.iter().filter(move |(path, _)| path.starts_with(&folder) && path.ends_with(".rs"))
    };
    for (path, text) in CRATES.iter().flat_map(|krate| sources(krate)) {
        if has_code(text) && !has_row.contains(path) {
            let text = format!("has no planted bug: add one to {PATH}, with a test that finds it");
            found.push(Finding::new(path, 0, "planted", text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn f() { a < b; c(); c(); }\n#[cfg(test)]\nmod tests {\n    #[test]\n    \
                          /// Why.\n    fn small() {}\n    fn none() {}\n}\n";
    const HEAD: &str = "# crate\tfile\tis\tbecomes\ttarget\ttest\twhat\n";

    fn files(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
    }

    /// What is found of a row for a file of the crate `queue`, as line and first words.
    fn found(row: &str) -> Vec<(usize, String)> {
        let table = format!("{HEAD}{row}\n");
        let files = files(&[
            (PATH, &table),
            ("crates/queue/src/a.rs", SOURCE),
            ("crates/queue/tests/all/b.rs", "#[test]\nfn large() {}\n"),
            ("crates/queue/tests/alone.rs", "#[test]\nfn alone() {}\n"),
        ]);
        let first = |text: &str| text.split(' ').take(3).collect::<Vec<_>>().join(" ");
        check(&files).iter().map(|one| (one.line, first(&one.text))).collect()
    }

    #[test]
    fn a_row_names_a_text_that_is_there_once_and_a_test_of_that_crate() {
        let row = |is: &str, target: &str, test: &str| {
            format!("queue\ta.rs\t{is}\ta <= b\t{target}\t{test}\ta bug")
        };
        for (target, test) in [("lib", "a::tests::small"), ("all", "b::large"), ("alone", "alone")]
        {
            assert_eq!(found(&row("a < b", target, test)), [], "{test}");
        }
        assert_eq!(found(&row("c()", "all", "b::large")), [(2, "`c()` is 2".into())]);
        assert_eq!(found(&row("d()", "all", "b::large")), [(2, "`d()` is 0".into())]);
        assert_eq!(found(&row("a <= b", "all", "b::large")).len(), 2, "nothing is planted");
        for (target, test) in [
            ("lib", "a::tests::none"),
            ("lib", "b::tests::small"),
            ("all", "large"),
            ("b", "large"),
        ] {
            let none = [(2, "crate queue has".into())];
            assert_eq!(found(&row("a < b", target, test)), none, "{target} {test}");
        }
    }

    #[test]
    fn a_file_with_code_has_a_row() {
        let whole = "queue\ta.rs\ta < b\ta <= b\talone\talone\ta bug";
        assert_eq!(found(whole), []);
        assert_eq!(found("#"), [(0, "has no planted".into())]);
        let mut short = found("queue\ta.rs\ta < b\ta <= b");
        assert_eq!(short.pop(), Some((0, "has no planted".into())));
        assert_eq!(short, [(2, "has 4 columns;".into())]);
        assert_eq!(found(&whole.replace("a.rs", "b.rs")).len(), 2, "no such file");
        for none in ["//! fn f() {}\nmod a;\npub use a::B;\n", "pub struct A { pub of: fn() }\n"] {
            assert_eq!(has_code(none), none.contains("of: fn"), "{none}");
        }
        for code in ["fn f() {}", "pub(crate) const A: u64 = 1;", "impl A {\n    fn f() {}\n}"] {
            assert!(has_code(code), "{code}");
        }
        assert!(!has_code("struct A;\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n"));
    }
}
