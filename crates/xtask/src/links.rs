//! Relative links in Markdown lead somewhere: to a file of the repository, and
//! to a heading of it where they name one. Every document is in the index.

use crate::finding::Finding;
use std::collections::{BTreeMap, BTreeSet};

/// The list of documents.
const INDEX: &str = "docs/README.md";

/// Checks every Markdown file in `files`, a map from path to text that holds
/// all files of the repository (text empty where it is not Markdown).
pub fn check(files: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut linked = BTreeSet::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in targets(text) {
            match resolve(path, &target, files) {
                Ok(place) => linked.extend(place.filter(|_| path == INDEX)),
                Err(problem) => {
                    let text = format!("link to `{target}`: {problem}");
                    found.push(Finding::new(path, line, "links", text));
                }
            }
        }
    }
    let is_document = |path: &&String| {
        path.starts_with("docs/") && path.ends_with(".md") && path.as_str() != INDEX
    };
    for path in files.keys().filter(is_document).filter(|path| !linked.contains(*path)) {
        let text = format!("{INDEX} does not lead here; add a line there");
        found.push(Finding::new(path, 0, "links", text));
    }
    found
}

/// Link targets with their lines; what stands in code is no link.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let line = without_inline_code(line);
            let mut found = Vec::new();
            found.extend(between(&line, "](", &[')', ' ']));
            found.extend(between(&line, "src=\"", &['"']));
            found.extend(between(&line, "srcset=\"", &['"']));
            found.extend(between(&line, "href=\"", &['"']));
            found.extend(definition(&line));
            targets.extend(found.into_iter().map(|target| (number, target)));
        }
    }
    targets
}

fn without_inline_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Every piece of `line` from after `open` to the next of `close`.
fn between(line: &str, open: &str, close: &[char]) -> Vec<String> {
    line.split(open).skip(1).map(|rest| rest.split(close).next().unwrap_or(rest).into()).collect()
}

/// The target of a reference definition, `[label]: target`.
fn definition(line: &str) -> Option<String> {
    let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
    (!label.contains(']')).then(|| target.split(' ').next().unwrap_or(target).into())
}

/// Follows `target` from the file at `path`; gives the file that it leads to,
/// where that is one of ours.
fn resolve(
    path: &str,
    target: &str,
    files: &BTreeMap<String, String>,
) -> Result<Option<String>, String> {
    let has_scheme = target.contains("://") || target.starts_with("mailto:");
    if has_scheme || target.is_empty() {
        return Ok(None);
    }
    if target.starts_with('/') {
        return Err("absolute; write it relative to this file".into());
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let place = if file.is_empty() { path.to_string() } else { join(path, file)? };
    let folder = format!("{}/", place.trim_end_matches('/'));
    let is_folder = place.is_empty() || files.keys().any(|known| known.starts_with(&folder));
    let Some(text) = files.get(&place) else {
        return if is_folder { Ok(None) } else { Err(format!("there is no `{place}`")) };
    };
    if heading.is_empty() || !place.ends_with(".md") || headings(text).any(|h| h == heading) {
        return Ok(Some(place));
    }
    Err(format!("`{place}` has no heading `#{heading}`"))
}

/// The path of `file` as seen from the file at `path`.
fn join(path: &str, file: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop().ok_or("leads out of the repository")?),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// The anchors of a Markdown text, as common renderers make them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<String> {
        let mut files = BTreeMap::new();
        for (path, text) in [
            ("README.md", "# The house\n"),
            ("docs/README.md", "[a](format.md) [b](index.md)"),
            ("docs/format.md", "# Format\n\n## Byte tables, v1\n"),
            ("crates/sim/src/lib.rs", ""),
            ("docs/index.md", text),
        ] {
            files.insert(path.to_string(), text.to_string());
        }
        check(&files).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for planted in [
            "[a](missing.md)",
            "[a](../missing/)",
            "text [a](format.md) and [b](gone.md \"title\")",
            "![picture](demo.svg)",
            "<img src=\"demo.svg\">",
            "[a]: gone.md",
            "[a](format.md#byte-table)",
            "[a](#nowhere)",
            "[a](../../outside.md)",
            "[a](/docs/format.md)",
        ] {
            assert_eq!(broken(planted).len(), 1, "{planted}: {:?}", broken(planted));
        }
    }

    #[test]
    fn a_document_that_is_not_in_the_index_is_found() {
        let mut files = BTreeMap::new();
        files.insert(INDEX.to_string(), "[a](deep/listed.md)".to_string());
        files.insert("docs/deep/listed.md".to_string(), "[b](../unlisted.md)".to_string());
        files.insert("docs/unlisted.md".to_string(), String::new());
        let found: Vec<_> = check(&files).into_iter().map(|finding| finding.path).collect();
        assert_eq!(found, ["docs/unlisted.md"]);
    }

    #[test]
    fn links_that_lead_somewhere_and_code_are_left_alone() {
        for good in [
            "[a](format.md) [b](../README.md) [c](../crates/sim/) [d](../crates/sim/src/lib.rs)",
            "[a](format.md#byte-tables-v1) [b](https://example.org/x) [c](mailto:a@example.org)",
            "# Here\n[a](#here)",
            "`[a](gone.md)`",
            "```\n[a](gone.md)\n```",
        ] {
            assert_eq!(broken(good), Vec::<String>::new(), "{good}");
        }
    }
}
