//! What has changed of the queues since something was begun that may fail, so that they can become
//! what they were without a copy of all that waits.
//!
//! Invariant: while something is tried, each change of a request or of a line is noted before it is
//! made, and no command begins or ends.

use super::waiting::Waiting;
use crate::request::Flow;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    /// How many things are tried, each within the one before it.
    pub tried: u32,
    /// What was before each change, the latest last.
    pub changes: Vec<Change>,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Request {
        key: u64,
        /// As it waited, and whether it was released; none where it did not wait.
        before: Option<(Waiting, bool)>,
    },
    Line {
        flow: Flow,
        before: Option<VecDeque<u64>>,
    },
}

/// Where the journal was when something was begun.
#[derive(Debug)]
#[must_use = "what was begun is kept or undone"]
pub(crate) struct Begun(pub(super) usize);
