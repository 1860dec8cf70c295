//! Licences of everything that is linked or that tests use: each package's
//! expression must be satisfiable from the list here.
//!
//! The grammar is that of SPDX licence expressions (`OR`, `AND`, `WITH`,
//! parentheses), and the older `MIT/Apache-2.0` of some manifests.

use crate::finding::Finding;
use crate::workspace::Workspace;

/// Licences that ask for no more than a notice, and so combine with both of ours.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    // Of libFuzzer, which nothing that is delivered links.
    "NCSA",
    "Unicode-3.0",
    "Zlib",
];

/// Packages whose licence is missing, unreadable or not on the list.
pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in &workspace.packages {
        let problem = match &package.licence {
            None => Some("has no licence in its manifest".to_string()),
            Some(expression) => match permits(expression) {
                Some(true) => None,
                Some(false) => Some(format!("is under {expression}, which is not on the list")),
                None => Some(format!("has a licence that cannot be read: {expression}")),
            },
        };
        if let Some(problem) = problem {
            let text = format!("`{}` {problem}; use another package", package.name);
            found.push(Finding::new("Cargo.lock", 0, "licences", text));
        }
    }
    found
}

/// Whether the list satisfies `expression`; `None` where it is no expression.
fn permits(expression: &str) -> Option<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let permitted = any(&mut rest)?;
    rest.is_empty().then_some(permitted)
}

/// `all (OR all)*`
fn any(words: &mut &[&str]) -> Option<bool> {
    let mut permitted = all(words)?;
    while let Some(rest) = after(words, "OR") {
        *words = rest;
        permitted |= all(words)?;
    }
    Some(permitted)
}

/// `one (AND one)*`
fn all(words: &mut &[&str]) -> Option<bool> {
    let mut permitted = one(words)?;
    while let Some(rest) = after(words, "AND") {
        *words = rest;
        permitted &= one(words)?;
    }
    Some(permitted)
}

/// A licence, one with an exception, or an expression in parentheses.
fn one(words: &mut &[&str]) -> Option<bool> {
    let (&word, rest) = words.split_first()?;
    *words = rest;
    match word {
        "(" => {
            let permitted = any(words)?;
            *words = after(words, ")")?;
            Some(permitted)
        }
        ")" | "OR" | "AND" | "WITH" => None,
        _ => match after(words, "WITH") {
            None => Some(ALLOWED.contains(&word)),
            Some(rest) => {
                let (exception, rest) = rest.split_first()?;
                *words = rest;
                Some(ALLOWED.contains(&format!("{word} WITH {exception}").as_str()))
            }
        },
    }
}

/// What follows `word`, where `words` starts with it.
fn after<'a, 'b>(words: &'b [&'a str], word: &str) -> Option<&'b [&'a str]> {
    let (&first, rest) = words.split_first()?;
    (first == word).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::planted;

    #[test]
    fn expressions_are_read_as_they_bind() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            "GPL-2.0 AND GPL-3.0 OR MIT",
        ] {
            assert_eq!(permits(good), Some(true), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "GPL-2.0 WITH X OR GPL-3.0", "MIT WITH X"] {
            assert_eq!(permits(bad), Some(false), "{bad}");
        }
        for unreadable in ["", "MIT OR", "(MIT", "MIT Apache-2.0", "OR MIT", "MIT WITH"] {
            assert_eq!(permits(unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn a_package_under_another_licence_or_none_is_found() {
        let packages = [
            ("good", Some("MIT OR Apache-2.0"), &[][..]),
            ("share-alike", Some("AGPL-3.0-only"), &[]),
            ("silent", None, &[]),
        ];
        let found = check(&planted(&packages));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].text.contains("`share-alike`") && found[1].text.contains("`silent`"));
    }
}
