//! Everything that reads what others wrote, asked about what nobody would write.
//!
//! A [`Surface`] is a plain function of bytes, so that every driver can ask it. Two do:
//! [`driver`] in the tests, on any toolchain, with inputs that it makes of valid ones and
//! of the corpus beside this crate; and libFuzzer for hours, guided by coverage
//! (`scripts/fuzz`), which is where the corpus comes from.
//!
//! Invariants of each surface, whatever the bytes: it does not panic, what it has in
//! memory at one time has a bound, and what it takes means the same when it is written
//! and read again.

pub mod driver;
pub mod ledger;
pub mod memory;
mod surfaces;

pub use surfaces::SURFACES;

use std::path::Path;

/// Where bytes of others come in.
#[derive(Clone, Copy)]
pub struct Surface {
    /// Its name, and that of its folder in the corpus.
    pub name: &'static str,
    /// Asks it. Panics when an invariant is broken; true where the input was taken, so
    /// that something hung on it.
    pub ask: fn(&[u8]) -> bool,
    /// Valid inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// The most that it may hold in memory for one input, in bytes.
    pub memory_max: usize,
    /// Inputs longer than this are of no interest.
    pub len_max: usize,
    /// One input in so many is asked in the tests: those of slow surfaces take their time.
    pub one_in: u64,
}

impl Surface {
    /// The surface of this name: also while something is compiled.
    pub const fn named(name: &str) -> Option<&'static Self> {
        let mut at = 0;
        while at < SURFACES.len() {
            if is_same(SURFACES[at].name.as_bytes(), name.as_bytes()) {
                return Some(&SURFACES[at]);
            }
            at += 1;
        }
        None
    }

    /// Puts the valid inputs into a folder, a file for each.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_seeds(&self, folder: &Path) -> std::io::Result<()> {
        let mut seeds = (0..).zip((self.seeds)());
        seeds.try_for_each(|(number, input): (u32, _)| {
            std::fs::write(folder.join(format!("seed-{number:03}")), input)
        })
    }

    /// Asks it, and holds it to its bound of memory. Panics when either fails; true where
    /// the input was taken.
    pub fn check(&self, input: &[u8]) -> bool {
        let (taken, most) = memory::most_during(|| (self.ask)(input));
        assert!(
            most <= self.memory_max,
            "{most} bytes of memory for an input of {}, more than {}",
            input.len(),
            self.memory_max
        );
        taken
    }
}

/// `one == other`, which no compiler works out beforehand yet.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}
