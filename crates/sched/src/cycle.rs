//! Time cycles: all requests of a cycle by its end; the inequality of the UCSB
//! scheduler.
//!
//! In each cycle of length `T` every stream transfers what it uses in a cycle, `T * B_i`
//! bytes at the rate `R_i` of the zone where it lies, after a latency `L_i` (seek,
//! rotation, overhead). With a part `r` of the cycle for real-time work that can be
//! done iff `r * T >= sum of L_i + sum of T * B_i / R_i` (UCSB QoS scheduler,
//! section III.B, inequality 1). What the inequality leaves out is part of `r` here as
//! it is there: other commands that run into the cycle.

use crate::task::{Utilisation, WHOLE};
use core::fmt;
use units::{Duration, Rate};

/// One stream of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleStream {
    /// What it uses.
    pub rate: Rate,
    /// The rate of the zone in which it lies; of the slowest if there are several.
    pub zone: Rate,
    /// Bound on the time of a request beside the transfer.
    pub latency: Duration,
}

/// What is promised: everything of a cycle is done by its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleAnalysis {
    /// What the requests of a cycle take.
    pub work: Duration,
    /// What is left of the part for real-time work.
    pub left: Duration,
    /// The shortest cycle that would do, to within the rounding of the transfers.
    pub shortest: Duration,
    /// The share of the disk that transfers alone take.
    pub utilisation: Utilisation,
}

/// Why the streams do not fit into a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleRefusal {
    /// The cycle, and by how much the requests of one take longer than there is.
    pub deadline: (Duration, Duration),
    /// The share of the disk that transfers alone would take, in parts per million.
    pub utilisation_ppm: u64,
    /// The shortest cycle that would do; None where none does.
    pub shortest: Option<Duration>,
}

impl fmt::Display for CycleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let utilisation = Utilisation(u128::from(self.utilisation_ppm) * WHOLE / 1_000_000);
        let (cycle, excess) = self.deadline;
        write!(f, "the disk would transfer for {utilisation} of the time; ")?;
        write!(f, "a cycle of {cycle} would be asked for {excess} more than there is")?;
        match self.shortest {
            Some(shortest) => write!(f, "; a cycle of {shortest} would do"),
            None => write!(f, "; no cycle is long enough"),
        }
    }
}
impl core::error::Error for CycleRefusal {}

/// Whether `streams` fit into cycles of length `cycle`, of which `part_ppm` millionths
/// are for them.
///
/// # Errors
/// [`CycleRefusal`] where they do not.
pub fn time_cycle(
    part_ppm: u32,
    cycle: Duration,
    streams: &[CycleStream],
) -> Result<CycleAnalysis, CycleRefusal> {
    let there = u128::from(cycle.as_nanos()) * u128::from(part_ppm) / 1_000_000;
    let time = |stream: &CycleStream| {
        let bytes = u128::from(cycle.as_nanos()) * u128::from(stream.rate.get());
        let transfer = bytes.checked_div(u128::from(stream.zone.get())).unwrap_or(u128::MAX >> 32);
        u128::from(stream.latency.as_nanos()) + transfer + 1
    };
    let work: u128 = streams.iter().map(time).sum();
    let shortest = shortest_cycle(part_ppm, streams);
    let span = |ns: u128| Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
    let utilisation = Utilisation(share(streams));
    match (there.checked_sub(work), shortest) {
        (Some(left), Some(shortest)) => {
            Ok(CycleAnalysis { work: span(work), left: span(left), shortest, utilisation })
        }
        _ => Err(CycleRefusal {
            deadline: (cycle, span(work.saturating_sub(there))),
            utilisation_ppm: utilisation.ppm(),
            shortest,
        }),
    }
}

/// The shortest cycle into which `streams` fit: `sum of L_i / (r - sum of B_i / R_i)`,
/// rounded up so that [`time_cycle`] takes it. None where the transfers alone are too
/// much.
pub fn shortest_cycle(part_ppm: u32, streams: &[CycleStream]) -> Option<Duration> {
    let part = u128::from(part_ppm) * WHOLE / 1_000_000;
    let left = part.checked_sub(share(streams)).filter(|&left| left > 0)?;
    let latency: u128 = streams.iter().map(|stream| u128::from(stream.latency.as_nanos())).sum();
    // Each transfer is rounded up by one, and the part for them down.
    let fixed = latency + streams.len() as u128 + 1;
    let cycle = fixed.checked_mul(WHOLE)?.div_ceil(left);
    u64::try_from(cycle).ok().map(Duration::from_nanos)
}

fn share(streams: &[CycleStream]) -> u128 {
    let share = |stream: &CycleStream| match stream.zone.get() {
        0 => WHOLE,
        zone => (u128::from(stream.rate.get()) << 64).div_ceil(u128::from(zone)),
    };
    streams.iter().map(share).sum()
}
