//! The pure crates stay pure: `no_std`, and nothing from outside that is not.
//!
//! A `no_std` crate cannot name a clock, a thread or a file; the compiler sees
//! to that. What it does not see is a dependency that brings `std` in by the
//! back door, so each package from outside needs an entry here, with a reason.

use crate::finding::Finding;
use crate::lexer::{has_word, split};
use crate::workspace::{Package, Workspace};
use std::collections::BTreeSet;

/// Rooms where all decisions live.
pub const PURE: [&str; 5] = ["units", "sched", "disk", "store", "node"];

/// Packages from outside that pure crates may use, directly or through another.
const ALLOWED: [(&str, &str); 0] = [];

/// Packages from outside below a pure crate that are not on the list.
pub fn check_dependencies(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for (room, package) in workspace.rooms().filter(|(room, _)| PURE.contains(room)) {
        for outside in below(workspace, package) {
            if !ALLOWED.iter().any(|(name, _)| *name == outside) {
                let text = format!(
                    "`{outside}` below a pure crate; do without, or list it in \
                     crates/xtask/src/purity.rs with the reason why it is no_std and pure"
                );
                let path = format!("crates/{room}/Cargo.toml");
                found.push(Finding::new(&path, 0, "purity", text));
            }
        }
    }
    found
}

/// The names of all packages from outside that are reached from `package`.
fn below(workspace: &Workspace, package: &Package) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut waiting: Vec<&Package> = workspace.uses(package).collect();
    while let Some(package) = waiting.pop() {
        if package.room.is_none() && names.insert(package.name.clone()) {
            waiting.extend(workspace.uses(package));
        }
    }
    names
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

    #[test]
    fn a_package_from_outside_is_found_below_a_pure_crate_and_free_elsewhere() {
        let packages = [
            ("crates/sched", None, &[1][..]),
            ("crates/units", None, &[2]),
            ("getrandom", None, &[3]),
            ("libc", None, &[]),
            ("crates/engine", None, &[3]),
        ];
        let found = check_dependencies(&planted(&packages));
        let told: Vec<_> = found.iter().map(|f| (f.path.as_str(), &f.text[..11])).collect();
        let path = "crates/units/Cargo.toml";
        assert_eq!(told, [(path, "`getrandom`"), (path, "`libc` belo")]);
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
