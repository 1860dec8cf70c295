//! The modules of each crate, as the rules about them read them: a file each, without its
//! tests.

use crate::lexer::split;
use std::collections::BTreeMap;

/// One module: its file, and what it says outside of tests.
pub struct Module {
    /// Relative to the root of the repository.
    pub file: String,
    /// Without comments, literals and tests.
    pub code: String,
}

/// By the names from the root of the crate on.
pub type Modules = BTreeMap<Vec<String>, Module>;

/// The modules of every crate, by the crate's folder.
pub fn of(files: &BTreeMap<String, String>) -> BTreeMap<&str, Modules> {
    let mut crates: BTreeMap<&str, Modules> = BTreeMap::new();
    for (path, text) in files {
        let Some((name, file)) =
            path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        let Some(file) = file.strip_suffix(".rs") else { continue };
        let mut place: Vec<String> = file.split('/').map(Into::into).collect();
        if matches!(place.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            place.pop();
        }
        let module = Module { file: path.clone(), code: without_tests(&split(text).code) };
        crates.entry(name).or_default().insert(place, module);
    }
    crates
}

/// Takes those away that are declared for tests alone, and says which.
pub fn take_tests(modules: &mut Modules) -> Vec<Vec<String>> {
    let for_tests: Vec<Vec<String>> = modules
        .iter()
        .flat_map(|(place, module)| {
            only_in_tests(&module.code).into_iter().map(|name| [&place[..], &[name]].concat())
        })
        .collect();
    modules.retain(|place, _| !for_tests.iter().any(|tests| place.starts_with(tests)));
    for_tests
}

/// The modules that are declared for tests alone.
fn only_in_tests(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices("#[cfg(test)]") {
        let rest = code[at + "#[cfg(test)]".len()..].trim_start();
        let Some(statement) = rest.split(';').next() else { continue };
        if let Some((before, name)) = statement.split_once("mod ")
            && matches!(before.trim(), "" | "pub" | "pub(crate)" | "pub(super)")
            && !name.contains('{')
        {
            names.push(name.trim().into());
        }
    }
    names
}

/// Code without its last module of tests, and without imports for tests.
fn without_tests(code: &str) -> String {
    let mut left = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        left.push_str(&rest[..at]);
        let after = &rest[at + "#[cfg(test)]".len()..];
        let words = after.trim_start();
        let is_import =
            ["use ", "pub use ", "pub(crate) use "].iter().any(|it| words.starts_with(it));
        if words.starts_with("mod tests {") || words.starts_with("pub(crate) mod tests {") {
            return left;
        }
        if is_import {
            rest = after.split_once(';').map_or("", |(_, rest)| rest);
        } else {
            left.push_str("#[cfg(test)]");
            rest = after;
        }
    }
    left + rest
}
