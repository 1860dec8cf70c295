//! What tests of this crate share: a repeatable generator, and tables in a
//! document that a test writes and every later run compares.
#![allow(dead_code)] // no test uses all of it
#![allow(clippy::print_stdout)] // tables are results

pub mod bench;
pub mod truth;

use std::path::PathBuf;
use std::sync::Mutex;

/// A small multiplicative generator; the seed makes the test repeatable.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
    pub fn direction(&mut self) -> units::Direction {
        if self.below(2) == 0 { units::Direction::Read } else { units::Direction::Write }
    }
}

static DOCUMENT: Mutex<()> = Mutex::new(());

/// Holds the part of docs/disks.md between `<!-- begin: NAME -->` and `<!-- end -->`
/// against `text`; with UPDATE_DOCS=1 writes it there.
pub fn hold_document(name: &str, text: &str) {
    let _one_at_a_time = DOCUMENT.lock();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/disks.md");
    let document = std::fs::read_to_string(&path).expect("docs/disks.md is there");
    let begin = format!("<!-- begin: {name} -->\n");
    let start = document.find(&begin).unwrap_or_else(|| panic!("docs/disks.md has no {begin}"));
    let start = start + begin.len();
    let end = start + document[start..].find("<!-- end -->").expect("the part ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let updated = format!("{}{text}{}", &document[..start], &document[end..]);
        std::fs::write(&path, updated).expect("docs/disks.md can be written");
        return;
    }
    assert!(
        &document[start..end] == text,
        "docs/disks.md, part {name}, is not what the models say now; look, then run with \
         UPDATE_DOCS=1. It should be:\n{text}"
    );
}
