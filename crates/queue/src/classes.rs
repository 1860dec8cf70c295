//! The classes that requests had before they were changed, for [`Queue::undo`](crate::Queue::undo).

use alloc::vec::Vec;
use sched::Class;

/// The classes that requests had before they were changed, while something is tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    /// How many things are tried, each within the one before it.
    pub tried: u32,
    /// The latest change last.
    pub before: Vec<(u64, Class)>,
}

impl Classes {
    /// A request that waits has another class from here on.
    pub(crate) fn note(&mut self, key: u64, before: Class) {
        if self.tried > 0 {
            self.before.push((key, before));
        }
    }

    /// One that is tried has ended.
    pub(crate) fn end(&mut self) {
        self.tried -= 1;
        if self.tried == 0 {
            self.before = Vec::new();
        }
    }
}
