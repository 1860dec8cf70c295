//! What the child of a fork may do with a copy of what its parent has open: nothing. Connections and windows are
//! one, whichever process holds them: a child that ended, read or wrote its copy did that to its parent's.
//!
//! Invariants: nothing is sent, read, written or ended by another process than its maker; what a child drops is
//! closed in the child alone.

use crate::{Error, Result};
use wire::{Code, Problem};

/// The process that has made something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker(u32);

impl Maker {
    /// This process.
    pub fn this() -> Self {
        Self(std::process::id())
    }

    #[cfg(test)]
    pub fn other() -> Self {
        Self(std::process::id() + 1)
    }

    /// Whether it is this process.
    pub fn is_here(self) -> bool {
        self == Self::this()
    }

    /// # Errors
    /// It is another process.
    pub fn check(self) -> Result<()> {
        if self.is_here() {
            return Ok(());
        }
        let detail = format!("process {} has opened this, and this one is a fork of it", self.0);
        Err(Error::Problem(Box::new(Problem::new(Code::Invalid, detail, "open it here, too"))))
    }
}
