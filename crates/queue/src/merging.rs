//! What a queue asks of whoever fills it before it merges requests.

use units::Bytes;

/// How requests are served by one command.
#[derive(Debug)]
pub struct Merging<W> {
    /// No command grows beyond this where best effort that somebody waits for came within
    /// [`SOMEBODY_WAITS`](crate::limits::SOMEBODY_WAITS).
    pub piece: Bytes,
    /// Whether one command can do what two requests are for, of which the second goes on where the
    /// first ends on the disk. The last argument: they are of the same class.
    pub may_merge: fn(&W, &W, bool) -> bool,
    /// It does also what the other is for, which goes before it or behind it.
    pub merge: fn(&mut W, &W, Side),
}

/// Where a request lies that is added to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It ends where the command begins.
    Before,
    /// It begins where the command ends.
    Behind,
}

impl<W> Clone for Merging<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Merging<W> {}
