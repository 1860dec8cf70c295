//! The time of the emulator: nanoseconds since it was started, and never backwards.

use units::{Duration, Instant};

/// A running clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub fn now(self) -> Instant {
        let elapsed = u64::try_from(self.0.elapsed().as_nanos()).expect("less than 500 years");
        Instant::from_nanos(elapsed)
    }

    /// Spins until `at`; for the last bit of a wait.
    pub fn spin_until(self, at: Instant) {
        while self.now() < at {
            std::hint::spin_loop();
        }
    }
}

/// A time for the standard library.
pub(crate) fn std_time(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}
