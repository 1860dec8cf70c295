//! What the host takes between two commands of a disk, before that is measured.

use crate::{sys, thread};
use units::{Distribution, Duration};

/// Wake-ups for a first gap, this far apart.
const FIRST_WAKES: u64 = 256;
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// The first gap is one that so many millionths of those wake-ups do not exceed: what is usual.
/// They are too few for the quantile that is measured later, and what is due to chance would
/// refuse contracts until then.
const FIRST_QUANTILE_PPM: u64 = 500_000;

/// What the host is taken to need from the end of a command until the next one begins, before
/// that is measured: as long as it takes to run a thread like a disk's that is to be woken, and
/// no longer than the host is said to be late (`most`).
pub fn first_gap(realtime: bool, most: Duration) -> Duration {
    let measure = move || -> std::io::Result<Distribution> {
        thread::prepare(realtime, &mut Vec::new());
        let event = sys::Event::new()?;
        let mut seen = Distribution::default();
        for _ in 0..FIRST_WAKES {
            let due = sys::now() + FIRST_PAUSE;
            event.wait(Some(FIRST_PAUSE));
            seen.record(sys::now().saturating_since(due));
        }
        Ok(seen)
    };
    // The priority is the thread's own, and ends with it.
    let thread = std::thread::Builder::new().name("slackline-gap".into()).spawn(measure);
    let seen = thread.ok().and_then(|thread| thread.join().ok()?.ok());
    seen.map_or(most, |seen| seen.quantile(FIRST_QUANTILE_PPM).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_gap_is_no_longer_than_the_host_is_said_to_be_late() {
        assert_eq!(first_gap(false, Duration::ZERO), Duration::ZERO);
        let most = Duration::from_secs(3_600);
        assert!(first_gap(false, most) < most, "it is measured");
    }
}
