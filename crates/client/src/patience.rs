//! How long this process waits for a daemon that hangs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The slowest call is the sync of a writer with a full window on a busy disk. As long as the daemon says
/// something meanwhile, it is waited for on.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
/// What this process waits in its place, in milliseconds; zero where nobody has said it.
static WITHIN: AtomicU64 = AtomicU64::new(0);

/// What this process waits for an answer of the daemon from now on, where it hangs; zero: as long as where
/// nobody has said it. That goes for every answer, of streams to sync, seek and close; but the bytes that a
/// reader waits for, and the room that a writer does, may come at any time.
pub fn set_answer_within(time: Duration) {
    WITHIN.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// What it waits now.
pub fn answer_within() -> Duration {
    match WITHIN.load(Ordering::Relaxed) {
        0 => ANSWER_WITHIN,
        millis => Duration::from_millis(millis),
    }
}
