//! How far each disk got, and which one is further behind than a crash leaves a disk.
//!
//! Every commit and every opening takes the next sequence number and writes it to every
//! disk, in steps, each of which begins when the one before it is durable on every disk.
//! So a structure says how far its own disk got, and proves how far every disk was when
//! it was written:
//!
//! | whole on a disk | it holds | every disk held before |
//! |---|---|---|
//! | record `s` | `s` | `s - 1` |
//! | current checkpoint or seal of `s` | `s` | `s`, in the twin |
//! | twin checkpoint of `s` | `s` | its `base` |
//!
//! A commit's twin has the number before its own as its base; an opening's, the least
//! that any disk was found to hold and that the opening then flushed. What a disk holds
//! never becomes less: a checkpoint overwrites the other one of its disk only when that
//! is older, or as new and beside it.
//!
//! Invariant, whatever crash within the assumptions of docs/crash-safety.md, and however
//! many openings were cut in a row: each disk holds what the others prove. A disk that
//! does not was not there when they went on.

use crate::structure::{Header, Kind};

/// The first version whose twins prove what their base says.
const VERSION_OF_BASES: u32 = 3;

/// What a disk's own log says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The highest sequence number of a whole structure; 0 where there is none.
    pub(crate) held: u64,
    /// Every disk of the pool held this number or a higher one.
    pub(crate) proven: u64,
    /// A whole header of any kind was found.
    pub(crate) is_there: bool,
}

impl Progress {
    /// A whole header was found. It proves what was durable before it was written, even
    /// if what should follow it is missing.
    pub(crate) fn begun(&mut self, kind: Kind, header: &Header) {
        self.is_there = true;
        let stamp = header.stamp;
        let proven = match kind {
            Kind::Record => stamp.sequence.saturating_sub(1),
            Kind::Seal => stamp.sequence,
            Kind::Checkpoint if stamp.is_twin() && header.version < VERSION_OF_BASES => 0,
            Kind::Checkpoint => stamp.base,
            Kind::Label | Kind::Profile => 0,
        };
        self.proven = self.proven.max(proven);
    }
    /// The highest number that some disk held, by this disk.
    pub(crate) fn reach(self) -> u64 {
        self.held.max(self.proven)
    }
    /// The structure behind a header was found whole.
    pub(crate) fn holds(&mut self, header: &Header) {
        self.held = self.held.max(header.stamp.sequence);
    }
}
