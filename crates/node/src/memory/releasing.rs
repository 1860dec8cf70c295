//! Parts of regions that no window needs any more go back to the system, for a driver that does that
//! without the node's lock, since it takes its time.
//!
//! Invariant: one part at a time, which no window has until it was given back (`places.rs`).

use crate::api::Span;
use crate::node::Node;

impl Node {
    /// Whether [`Node::release_next`] has something to give back, but for what is under way.
    pub fn has_freed(&self) -> bool {
        self.core.has_freed()
    }

    /// A part of the region of an open stream that is not needed any more, to be given back now,
    /// and its number; nothing while another one is.
    pub fn release_next(&mut self) -> Option<(u64, Span)> {
        self.core.release_next()
    }

    /// The part with this number was given back.
    pub fn released(&mut self, number: u64) {
        self.core.released(number);
    }
}
