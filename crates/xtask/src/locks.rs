//! Which locks the engine and the daemon may have: those under which a panic ends the
//! process. A lock that is only poisoned leaves a process that lives and serves nobody.

use crate::finding::Finding;
use crate::lexer::{has_word, split};

/// Where the rule holds, but in tests, and the files that make the locks.
const ROOMS: [&str; 2] = ["crates/engine/src/", "crates/daemon/src/"];
const MAKERS: [&str; 2] = ["crates/engine/src/lock.rs", "crates/daemon/src/lock.rs"];
/// A world of tests, in which locks are what is tried.
const TESTS: &str = "crates/engine/src/core/schedules.rs";

/// Where other locks come from, and what they are called there.
const SOURCES: [&str; 4] = ["std::sync::", "tokio::sync::", "parking_lot::", "sync::"];
const LOCKS: [&str; 6] =
    ["Mutex", "MutexGuard", "RwLock", "Condvar", "OwnedMutexGuard", "ReentrantLock"];

/// The rule for a Rust file at `path`.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    if !ROOMS.iter().any(|room| path.starts_with(room)) || MAKERS.contains(&path) || path == TESTS {
        return Vec::new();
    }
    let code = split(text).code;
    let mut found: Vec<Finding> = Vec::new();
    for source in SOURCES {
        for (at, _) in code.match_indices(source) {
            let names = named(&code[at + source.len()..]);
            for lock in LOCKS.iter().filter(|lock| has_word(names, lock)) {
                let line = code[..at].matches('\n').count() + 1;
                let text =
                    format!("`{lock}` of another kind; take that of {}", MAKERS.join(" or "));
                if !found.iter().any(|other| (other.line, &other.text) == (line, &text)) {
                    found.push(Finding::new(path, line, "locks", text));
                }
            }
        }
    }
    found
}

/// What a path goes on with: a list in braces, or up to the end of its last name.
fn named(rest: &str) -> &str {
    let end = match rest.starts_with('{') {
        true => rest.find(';').unwrap_or(rest.len()),
        false => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
    };
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, code: &str) -> Vec<usize> {
        check(path, code).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_lock_that_is_only_poisoned_is_found_however_it_is_named() {
        for planted in [
            "use std::sync::Mutex;",
            "use std::sync::{Arc, Mutex, mpsc};",
            "use std::sync::{\n    Arc,\n    RwLock,\n};",
            "use std::{sync::{Arc, Mutex}};",
            "use tokio::sync::MutexGuard as Turn;",
            "fn f() { let x = tokio::sync::RwLock::new(1); }",
            "struct S { x: std::sync::Mutex<u8> }",
        ] {
            for room in ["crates/engine/src/a.rs", "crates/daemon/src/a/b.rs"] {
                assert_eq!(lines(room, planted), [1], "{planted}");
            }
            assert!(lines("crates/client/src/a.rs", planted).is_empty(), "in others' processes");
            assert!(lines("crates/engine/src/lock.rs", planted).is_empty());
        }
    }

    #[test]
    fn what_is_no_lock_and_what_is_the_houses_own_is_let_through() {
        for code in [
            "use std::sync::{Arc, Barrier, OnceLock};\nuse crate::lock::Mutex;",
            "use crate::lock::{Condvar, Mutex};\nuse tokio::sync::{Semaphore, watch};",
            "// use std::sync::Mutex;\nfn f() { let x = \"std::sync::Mutex\"; }",
            "fn f() { let x = std::sync::Arc::new(Mutex::new(1)); }",
        ] {
            assert!(lines("crates/engine/src/a.rs", code).is_empty(), "{code}");
        }
    }
}
