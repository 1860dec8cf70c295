//! Time: the host's clock, or one that a test turns.

use std::time;
use units::{Duration, Instant};

/// Tells the time and waits.
pub trait Clock: Sync {
    /// Now.
    fn now(&self) -> Instant;
    /// Returns at this instant, or later as the host pleases; at once if it is past.
    fn sleep_until(&self, at: Instant);
}

/// The host's own.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    origin: time::Instant,
}

impl HostClock {
    /// Time counts from now.
    pub fn new() -> Self {
        Self { origin: time::Instant::now() }
    }
}

impl Default for HostClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for HostClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, at: Instant) {
        std::thread::sleep(std(at.saturating_since(self.now())));
    }
}

/// A span as the standard library writes it.
pub(crate) fn std(span: Duration) -> time::Duration {
    time::Duration::from_nanos(span.as_nanos())
}
