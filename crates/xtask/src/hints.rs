//! Lines that a message tells somebody to run hold what others chose only as one word of the shell: a
//! volume may be called `a b`, or worse. What stands in such a line under the name of a thing was not
//! quoted; what was, is called otherwise.

use crate::finding::Finding;

/// What others choose, by the names that variables have for it.
const THINGS: [&str; 8] =
    ["name", "volume", "path", "file", "directory", "device", "folder", "spec"];

/// Findings in one file.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("`slackline ") {
        let line = &text[at + 1..];
        let end = line.find(['`', '"']).unwrap_or(line.len());
        for thing in THINGS {
            if line[..end].contains(&format!("{{{thing}}}")) {
                let number = text[..at].matches('\n').count() + 1;
                let what =
                    format!("`{{{thing}}}` in a line to run: let quoted = report::quoted(..)");
                found.push(Finding::new(path, number, "hints", what));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_line_to_run_is_found_unless_it_was_quoted() {
        let is_found = |text: &str| check("a.rs", text).len();
        let line = |what: &str| format!("    \"remove it: `slackline \\\n volume delete {what}`\"");
        assert_eq!(is_found(&line("{na@me}").replace('@', "")), 1);
        assert_eq!(is_found(&line("{quoted}")), 0);
        assert_eq!(is_found("\"there is a volume {name}: `slackline volume list` shows it\""), 0);
        assert_eq!(is_found("\"`slackline volume list\", \"{name}`\""), 0, "another text");
    }
}
