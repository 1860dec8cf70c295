//! How far a program and its node are in a window that they share (`window.rs`).

use units::Bytes;

/// How far a program and its node are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    /// Everything before this was told.
    pub told: Bytes,
    /// The program is done with everything before this.
    pub program: Bytes,
    /// The playout point.
    pub point: Bytes,
    /// The playout point could not follow at once, and has been counted for it.
    pub lags: bool,
}

impl Shared {
    pub(crate) fn new(at: Bytes) -> Self {
        Self { told: at, program: at, point: at, lags: false }
    }
}
