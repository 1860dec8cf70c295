//! Which parts of the busiest day of cello are played.

use super::load::{Load, Order};
use sim::workload::cello::figures::BUSIEST;
use std::ops::Range;
use units::Duration;

/// Hours of the working day that stand for it, from the quiet to the busiest, in which
/// the thesis's window of 1,300 s lies (16:48).
const HOURS: [u64; 5] = [16, 11, 14, 9, 15];

/// So many seconds from 48 minutes past one of the hours on.
fn part(number: usize, seconds: u64) -> Range<Duration> {
    let start = BUSIEST.start + Duration::from_secs(HOURS[number % HOURS.len()] * 3600 + 48 * 60);
    start..start + Duration::from_secs(seconds)
}

/// Loads of cello, each of another hour and with another seed.
pub(super) fn loads(count: usize, seconds: u64, order: Order) -> Vec<Load> {
    let one = |number: usize| Load::cello(number as u64 + 1, part(number, seconds), order);
    (0..count).map(one).collect()
}

/// The whole of the busiest day.
pub(super) fn day(order: Order) -> Load {
    Load::cello(1, BUSIEST, order)
}

/// So many seconds of its evening, about as busy as the day is on average.
pub(super) fn quiet(seconds: u64, order: Order) -> Load {
    let start = BUSIEST.start + Duration::from_secs(19 * 3600);
    Load::cello(1, start..start + Duration::from_secs(seconds), order)
}

/// The window of section 7.1, so often, each with another seed.
pub(super) fn windows(count: usize, seconds: u64, order: Order) -> Vec<Load> {
    let one = |number: usize| Load::cello(number as u64 + 1, part(0, seconds), order);
    (0..count).map(one).collect()
}
