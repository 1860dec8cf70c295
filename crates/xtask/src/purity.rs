//! The pure crates stay pure: `no_std`, and nothing from outside that is not.
//!
//! A `no_std` crate cannot name a clock, a thread or a file; the compiler sees
//! to that. What it does not see is a dependency that brings `std` in by the back
//! door. So each package from outside that a pure crate names has an entry here,
//! with a reason, and all that it links must be `no_std` with the features it has.
//! (On a machine with the standard library nothing else would tell.)

use crate::finding::Finding;
use crate::lexer::{has_word, split};
use crate::workspace::{Package, Workspace};
use std::collections::{BTreeMap, BTreeSet};

/// Rooms where all decisions live.
pub const PURE: [&str; 11] = [
    "units", "checksum", "sched", "policies", "disk", "queue", "playout", "store", "node", "files",
    "token",
];

/// Packages from outside that pure crates may name in their manifests, and why.
const ALLOWED: [(&str, &str); 6] = [
    ("base64", "the text of tokens; bytes in, text out"),
    ("crc", "checksums of metadata; tables and arithmetic, nothing else"),
    ("hmac", "what a token is good by; arithmetic, nothing else"),
    ("serde", "derives the readers of profiles; text in, values out, no I/O"),
    ("sha2", "under hmac; arithmetic that looks which instructions the processor has"),
    ("toml", "disk models and profiles are written by people; text in, values out, no I/O"),
];

/// What is named in a pure crate's manifest without being on the list, and what
/// is linked below it without being `no_std`. `read` gives the text of a file.
pub fn check_dependencies(workspace: &Workspace, read: impl Fn(&str) -> String) -> Vec<Finding> {
    let mut found = Vec::new();
    for (room, package) in workspace.rooms().filter(|(room, _)| PURE.contains(room)) {
        let path = format!("crates/{room}/Cargo.toml");
        for outside in workspace.uses(package).filter(|used| used.room.is_none()) {
            if !ALLOWED.iter().any(|(name, _)| *name == outside.name) {
                let text = format!(
                    "`{}` in a pure crate; do without, or list it in \
                     crates/xtask/src/purity.rs with the reason why it is pure",
                    outside.name
                );
                found.push(Finding::new(&path, 0, "purity", text));
            }
        }
        for (name, library) in linked_below(workspace, package) {
            if !split(&read(library)).code.contains("no_std") {
                let text = format!("`{name}` is linked below a pure crate and is not no_std");
                found.push(Finding::new(&path, 0, "purity", text));
            }
        }
    }
    found
}

/// Names and library sources of all packages from outside that are linked when
/// `package` is.
fn linked_below<'a>(workspace: &'a Workspace, package: &'a Package) -> BTreeMap<&'a str, &'a str> {
    let mut linked = BTreeMap::new();
    let mut waiting: Vec<&Package> = workspace.uses(package).collect();
    while let Some(package) = waiting.pop() {
        let Some(library) = &package.library else { continue };
        if package.room.is_none() && linked.insert(&*package.name, &**library).is_none() {
            waiting.extend(workspace.uses(package));
        }
    }
    linked
}

/// Packages whose `std` feature a pure crate turns on; `features` as
/// [`Workspace::features`] gives them.
pub fn check_features(room: &str, features: &str) -> Vec<Finding> {
    let path = format!("crates/{room}/Cargo.toml");
    let mut names = BTreeSet::new();
    for line in features.lines() {
        let (package, features) = line.split_once('|').unwrap_or((line, ""));
        if features.split(',').any(|feature| feature == "std") {
            names.insert(package.split(' ').next().unwrap_or(package));
        }
    }
    let told = |name| {
        let text = format!("turns on the feature `std` of `{name}`; use default-features = false");
        Finding::new(&path, 0, "purity", text)
    };
    names.into_iter().map(told).collect()
}

/// Checks a source file of any crate; only pure ones are held to anything.
pub fn check_source(path: &str, text: &str) -> Vec<Finding> {
    let Some(inside) = PURE
        .iter()
        .find_map(|room| path.strip_prefix("crates/")?.strip_prefix(room)?.strip_prefix("/src/"))
    else {
        return Vec::new();
    };
    let code = split(text).code;
    let mut found = Vec::new();
    if inside == "lib.rs" && !code.lines().any(|line| line.trim() == "#![no_std]") {
        let text = "a pure crate carries `#![no_std]`, without conditions";
        found.push(Finding::new(path, 1, "purity", text));
    }
    let mut before = "";
    for (line, code) in (1..).zip(code.lines()) {
        let for_tests = before.contains("#[cfg(test)]") || code.contains("#[cfg(test)]");
        if code.contains("extern crate std") && !for_tests {
            let text = "`std` in a pure crate; only tests may link it, under #[cfg(test)]";
            found.push(Finding::new(path, line, "purity", text));
        }
        if has_word(code, "core::arch") || has_word(code, "asm!") {
            let text = "machine-dependent code in a pure crate; decisions are plain integers";
            found.push(Finding::new(path, line, "purity", text));
        }
        before = code;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::planted;

    /// `getrandom` and `libc` are no pure packages; `serde` is, and may bring
    /// what is `no_std` itself.
    #[test]
    fn an_unlisted_package_or_one_with_std_is_found_below_a_pure_crate_only() {
        let packages = [
            ("crates/sched", None, &[1][..]),
            ("crates/units", None, &[2, 4]),
            ("getrandom", None, &[3]),
            ("libc", None, &[]),
            ("serde", None, &[5]),
            ("serde_core", None, &[]),
            ("crates/engine", None, &[3]),
        ];
        let read = |path: &str| match path.starts_with("libc") {
            true => "// #![no_std]\n".into(),
            false => "#![cfg_attr(not(feature = \"std\"), no_std)]\n".into(),
        };
        let found = check_dependencies(&planted(&packages), read);
        let told: Vec<_> = found.iter().map(|f| (f.path.as_str(), &f.text[..14])).collect();
        let path = "crates/units/Cargo.toml";
        assert_eq!(told, [(path, "`getrandom` in"), (path, "`libc` is link")]);
    }

    #[test]
    fn a_std_feature_is_found() {
        let tree = "disk v0.1.0 (x)|\nserde v1.0.0|alloc,std\ntoml v1.0.0|parse\nserde v1.0.0|std";
        assert_eq!(check_features("disk", tree).len(), 1, "once a package");
        assert_eq!(check_features("disk", &tree.replace("std", "derive")).len(), 0);
    }

    #[test]
    fn a_pure_crate_that_links_std_is_found() {
        let found = |path, text| check_source(path, text).len();
        assert_eq!(found("crates/node/src/lib.rs", "//! x\npub fn f() {}\n"), 1);
        assert_eq!(found("crates/node/src/lib.rs", "#![cfg_attr(not(test), no_std)]\n"), 1);
        assert_eq!(found("crates/node/src/lib.rs", "// #![no_std]\n"), 1);
        assert_eq!(found("crates/node/src/lib.rs", "#![no_std]\nextern crate std;\n"), 1);
        let tests = "#![no_std]\n#[cfg(test)]\nextern crate std;\n";
        assert_eq!(found("crates/node/src/lib.rs", tests), 0);
        assert_eq!(found("crates/node/src/api.rs", "pub fn f() {}\n"), 0);
        assert_eq!(found("crates/engine/src/lib.rs", "pub fn f() {}\n"), 0);
    }
}
