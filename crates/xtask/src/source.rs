//! Rules for one source file: it says what it is for, stays short enough to be
//! read, holds no unfinished work, and `unsafe` stays in its rooms.

use crate::finding::Finding;
use crate::lexer::{has_word, split};

/// The point to look for the second room in a file (docs: CONTRIBUTING.md).
const LINES_MAX: usize = 1_000;

/// A purpose shorter than this is a title, not a sentence.
const PURPOSE_CHARS_MIN: usize = 20;

/// The crates that talk to the kernel, to a program's memory or to another language
/// in ways the compiler cannot check; and an allocator that counts, for tests.
const UNSAFE_ROOMS: [&str; 6] = [
    "crates/engine/",
    "crates/window/",
    "crates/capi/",
    "crates/python/",
    "crates/preload/",
    "crates/fuzz/src/memory.rs",
];

/// Code that says "later", and attributes that switch a test off.
const UNFINISHED: [&str; 4] = ["todo!", "unimplemented!", "dbg!", "#[ignore"];

/// Every rule for a Rust file at `path`.
pub fn check_rust(path: &str, text: &str) -> Vec<Finding> {
    let halves = split(text);
    let mut found = purpose(path, text, "//!");
    found.extend(length(path, text));
    for (line, code) in (1..).zip(halves.code.lines()) {
        for word in UNFINISHED {
            if code.contains(word) {
                let text = format!("`{word}` is unfinished work; finish it or leave it out");
                found.push(Finding::new(path, line, "finished", text));
            }
        }
        if has_word(code, "unsafe") && !UNSAFE_ROOMS.iter().any(|room| path.starts_with(room)) {
            let text = format!("`unsafe` outside {}; move the call there", UNSAFE_ROOMS.join(", "));
            found.push(Finding::new(path, line, "unsafe", text));
        }
    }
    found.extend(marks(path, &halves.comments));
    found
}

/// Every rule for a script, whose comments start with `#`.
pub fn check_script(path: &str, text: &str) -> Vec<Finding> {
    let body = match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("#!") => rest,
        _ => text,
    };
    let mut found = purpose(path, body, "#");
    found.extend(length(path, text));
    found.extend(marks(path, text));
    found
}

/// A file opens with a sentence that says what it is for.
fn purpose(path: &str, text: &str, marker: &str) -> Vec<Finding> {
    let opening = text.lines().skip_while(|line| line.trim().is_empty());
    let said: usize = opening
        .map_while(|line| line.trim_start().strip_prefix(marker))
        .take_while(|line| !line.trim().is_empty())
        .map(|line| line.trim().chars().count())
        .sum();
    if said >= PURPOSE_CHARS_MIN {
        return Vec::new();
    }
    let text = format!("open the file with a `{marker}` paragraph that says its purpose");
    vec![Finding::new(path, 1, "purpose", text)]
}

fn length(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().count();
    if lines <= LINES_MAX {
        return Vec::new();
    }
    let text = format!("{lines} lines, {LINES_MAX} at most; look for the second room in it");
    vec![Finding::new(path, 0, "length", text)]
}

/// Comments that promise work.
fn marks(path: &str, comments: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, comment) in (1..).zip(comments.lines()) {
        for mark in [concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X")] {
            if has_word(comment, mark) {
                let text = format!("`{mark}`: do it, or file it where work is planned");
                found.push(Finding::new(path, line, "finished", text));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: &str = "//! Says what this file is for, in one sentence.\n\n";

    fn rules(path: &str, body: &str) -> Vec<(usize, &'static str)> {
        let text = format!("{OPENING}{body}");
        check_rust(path, &text).into_iter().map(|f| (f.line, f.rule)).collect()
    }

    #[test]
    fn a_file_without_a_purpose_is_found() {
        let found = |text| check_rust("crates/sim/src/lib.rs", text).len();
        assert_eq!(found("use std::fmt;\n"), 1);
        assert_eq!(found("//! Disks.\nuse std::fmt;\n"), 1, "a title is no purpose");
        assert_eq!(found("// A comment that is long enough but not a doc.\n"), 1);
        assert_eq!(found(""), 1);
        assert_eq!(found(OPENING), 0);
        assert_eq!(check_script("scripts/x", "#!/bin/bash\nset -e\n").len(), 1);
        let script = "#!/bin/bash\n# Installs what the other scripts need.\nset -e\n";
        assert_eq!(check_script("scripts/x", script).len(), 0);
    }

    #[test]
    fn unfinished_work_is_found_in_code_and_not_in_strings() {
        for planted in ["fn f() { todo!() }", "unimplemented!(\"x\")", "dbg!(1);"] {
            assert_eq!(rules("crates/sim/src/a.rs", planted), [(3, "finished")], "{planted}");
        }
        assert_eq!(rules("a.rs", "#[test]\n#[ignore = \"slow\"]\nfn f() {}"), [(4, "finished")]);
        assert_eq!(rules("a.rs", "let x = \"todo!\"; // like todo!()"), []);
        let mark = concat!("// FIX", "ME later");
        assert_eq!(rules("a.rs", mark), [(3, "finished")]);
    }

    #[test]
    fn unsafe_is_found_everywhere_but_in_its_rooms() {
        let planted = "fn f() { unsafe { g() } }";
        assert_eq!(rules("crates/node/src/a.rs", planted), [(3, "unsafe")]);
        assert_eq!(rules("crates/engine/src/a.rs", planted), []);
        assert_eq!(rules("crates/window/src/a.rs", planted), []);
        assert_eq!(rules("crates/node/src/a.rs", "#![deny(unsafe_code)] // no unsafe"), []);
    }

    #[test]
    fn a_file_too_long_is_found() {
        assert_eq!(rules("a.rs", &"fn f() {}\n".repeat(LINES_MAX)), [(0, "length")]);
        assert_eq!(rules("a.rs", &"fn f() {}\n".repeat(LINES_MAX - 2)), []);
    }
}
