//! Scratch files and directories have names that nobody else has, and go with the value that
//! holds them: the crate `tempfile` makes them. A name of the process's number is had again by a
//! later process, which then finds what the first has left behind.

use crate::finding::Finding;
use crate::lexer::{has_word, split};

/// Who needs a name below the folder for temporary files that is the same the next time: the
/// journal of a measurement that goes on when the command is given again.
const NEEDS_THE_FOLDER: [&str; 1] = ["crates/slackline/src/disk/measure.rs"];

/// Names that the kernel gives; the number of the process belongs in them.
const OF_THE_KERNEL: &str = "\"/proc/";

/// The rule for a Rust file at `path`.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let halves = split(text);
    let mut found = Vec::new();
    for ((line, code), whole) in (1..).zip(halves.code.lines()).zip(text.lines()) {
        if has_word(code, "temp_dir") && !NEEDS_THE_FOLDER.contains(&path) {
            let text = "`temp_dir` for a scratch file; take `tempfile::Builder`, whose names \
                        nobody has";
            found.push(Finding::new(path, line, "scratch", text));
        }
        let is_named = code.contains("format!(") && code.contains("process::id()");
        if is_named && !whole.contains(OF_THE_KERNEL) {
            let text = "a name of the process's number, which a later process has again; take \
                        `tempfile::Builder`";
            found.push(Finding::new(path, line, "scratch", text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, code: &str) -> Vec<usize> {
        check(path, code).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn scratch_files_that_a_later_process_may_find_are_named() {
        for planted in [
            "let a = 1;\nlet path = std::env::temp_dir().join(\"x\");",
            "let a = 1;\nuse std::env::temp_dir;",
            "let a = 1;\nlet base = var.unwrap_or_else(env::temp_dir);",
            "let a = 1;\nlet name = format!(\"x-{}\", std::process::id());",
            "let a = 1;\nlet path = dir.join(format!(\"x-{}\", process::id()));",
        ] {
            assert_eq!(lines("crates/engine/tests/a.rs", planted), [2], "{planted}");
        }
    }

    #[test]
    fn what_is_needed_or_no_name_of_a_file_is_let_through() {
        let folder = "let path = std::env::temp_dir().join(\"x\");";
        assert!(lines(NEEDS_THE_FOLDER[0], folder).is_empty());
        for code in [
            "let own = std::process::id().to_string();",
            "let seed = 7 ^ u64::from(std::process::id());",
            "let path = format!(\"/proc/{}/fd\", std::process::id());",
            "let dir = tempfile::Builder::new().tempdir().unwrap(); // not temp_dir()",
            "let text = \"temp_dir() and format!(process::id())\";",
        ] {
            assert!(lines("crates/engine/src/a.rs", code).is_empty(), "{code}");
        }
    }
}
