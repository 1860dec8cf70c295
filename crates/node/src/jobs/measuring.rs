//! A disk is measured again while it is in use.
//!
//! Reads in the background, when nothing else wants the disk: small and large ones in each
//! part of it, at places that no cache has. Each is held against the bound that the
//! profile gives from where the heads were. Between the requests of streams that is what
//! can be measured: whether bounds hold, by how much they do not, and the throughput of
//! each part. A rotation, a seek curve, a chunk range need the disk for themselves:
//! `slackline disk profile` measures those.
//!
//! So a measurement here can find that bounds have to be wider, not that they may be
//! tighter: a few hundred reads are no evidence for that. Where they have to be, the wider
//! profile is used if every open contract fits with it (`profiles.rs`), and else
//! kept, named, and tried again when a stream has closed.

use crate::api::*;
use crate::limits::{MEASURE_PARTS, MEASURE_READS, MEASURE_SMALL};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use disk::{Kind, Profile};
use units::{Bytes, Duration, Instant, Rate};

/// What one size took in one part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    pub reads: u64,
    pub total: Duration,
    pub over: u64,
    /// The furthest beyond its bound.
    pub excess: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub from: Bytes,
    pub to: Bytes,
    pub small: Took,
    pub large: Took,
}

/// A measurement that runs.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub parts: Vec<Part>,
    pub done: u64,
    /// As long as a large read.
    pub span: Span,
    pub command: CommandId,
    /// What the read under way is of: its part, and whether it is a large one.
    pub what: (usize, bool),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Measuring {
    pub running: BTreeMap<DiskIndex, Running>,
    pub told: BTreeMap<DiskIndex, Measured>,
    pub ended: BTreeMap<DiskIndex, Instant>,
    /// Wider profiles that open contracts do not bear.
    pub waiting: BTreeMap<DiskIndex, Profile>,
    /// Of these what did not fit beside what waited then, not beside the contracts: when it is tried
    /// again.
    pub again: BTreeMap<DiskIndex, Instant>,
}

impl Measuring {
    pub(crate) fn idle(&self) -> bool {
        self.running.is_empty()
    }

    pub(crate) fn told(&self, disk: DiskIndex) -> Option<Measured> {
        let mut told = self.told.get(&disk).cloned();
        if let Some(running) = self.running.get(&disk) {
            let planned = MEASURE_READS * running.parts.len() as u64;
            let outcome = Outcome::Running { done: running.done, planned };
            let before = told.take().unwrap_or_default();
            told = Some(Measured { outcome, ..before });
        }
        told
    }
}

impl Part {
    pub fn told(&self, len: Bytes) -> MeasuredPart {
        let mean = |took: &Took| took.total / took.reads.max(1);
        let more = mean(&self.large).saturating_sub(mean(&self.small));
        let rate = match more.is_zero() || self.large.reads == 0 || self.small.reads == 0 {
            true => None,
            false => Some(Rate::of(len - MEASURE_SMALL, more)),
        };
        let (small, large) = (mean(&self.small), mean(&self.large));
        MeasuredPart { from: self.from, to: self.to, small, large, rate }
    }
}

/// Parts of a disk to be measured: about as many zones, or equal ones.
pub(crate) fn parts(profile: &Profile, capacity: Bytes, large: Bytes) -> Vec<Part> {
    let end = capacity.round_down(Bytes::MIB);
    let even = |part: u64| (end / MEASURE_PARTS * part).round_down(MEASURE_SMALL);
    let mut starts: Vec<Bytes> = match &profile.kind {
        Kind::HardDisk(disk) => disk.zones.iter().map(|zone| zone.start.offset()).collect(),
        Kind::Linear(_) => (0..MEASURE_PARTS).map(even).collect(),
    };
    if starts.len() as u64 > MEASURE_PARTS {
        let every = starts.len().div_ceil(MEASURE_PARTS as usize);
        starts = starts.into_iter().step_by(every).collect();
    }
    let starts: Vec<Bytes> = starts.into_iter().map(|at| at.round_up(MEASURE_SMALL)).collect();
    let ends = starts.iter().skip(1).copied().chain([end]);
    let part = |(&from, to): (&Bytes, Bytes)| {
        let none = Took::default();
        (from + large <= to).then_some(Part { from, to, small: none, large: none })
    };
    let parts: Vec<Part> = starts.iter().zip(ends).filter_map(part).collect();
    assert!(!parts.is_empty(), "a disk of a pool is longer than a read");
    parts
}

/// A quarter on top of what was seen.
pub(crate) fn with_margin(seen: Duration) -> Duration {
    seen + seen / 4
}

/// The profile with bounds that hold what was measured, and a quarter of the excess on
/// top. What a small read took too long is in what every command costs; what a large one
/// took beyond that, in the rate of its part. Writes were not measured: they are given
/// the same, as far as they share it.
pub(crate) fn wider(profile: &Profile, parts: &[Part], len: Bytes) -> Profile {
    let small = parts.iter().map(|part| part.small.excess).max().unwrap_or_default();
    let fixed = with_margin(small);
    let slower = |rate: Rate, excess: Duration| {
        let more = with_margin(excess).saturating_sub(fixed);
        Rate::of(len, rate.time_for(len) + more)
    };
    let mut wider = profile.clone();
    match &mut wider.kind {
        Kind::HardDisk(disk) => {
            disk.overhead += fixed;
            for zone in &mut disk.zones {
                let start = zone.start.offset();
                let part = parts.iter().rfind(|part| part.from <= start.round_up(MEASURE_SMALL));
                let excess =
                    part.or(parts.first()).map_or(Duration::ZERO, |part| part.large.excess);
                zone.rate = slower(zone.rate, excess);
            }
        }
        Kind::Linear(line) => {
            // A read alone waits for its cost and the pipeline: it is the latter that
            // was longer, unless the larger one shows that the bytes are.
            let large = parts.iter().map(|part| part.large.excess).max().unwrap_or_default();
            line.latency += fixed;
            line.read.rate = slower(line.read.rate, large);
            line.write.rate = slower(line.write.rate, large);
        }
    }
    let reads: u64 = parts.iter().map(|part| part.small.reads + part.large.reads).sum();
    wider.confidence = format!(
        "widened by {reads} reads in the background of a pool in use; before: {}",
        profile.confidence.rsplit("; before: ").next().unwrap_or_default()
    );
    wider
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{Line, LinearProfile, Model};
    use units::{Direction, Lba};

    /// Whatever was too long, small reads, large ones or both: with the wider bounds it is not.
    #[test]
    fn wider_bounds_hold_what_was_measured() {
        let (small, large) = (MEASURE_SMALL, Bytes::mib(1));
        let line = Line { fixed: Duration::from_millis(5), rate: Rate::per_second(100 << 20) };
        let flat = LinearProfile {
            read: line,
            write: line,
            depth: 1,
            latency: Duration::ZERO,
            spread: None,
        };
        let hard = Profile::of(&Model::named("laptop-4200").unwrap());
        let profiles = [Profile { kind: Kind::Linear(flat), ..hard.clone() }, hard];
        for profile in profiles {
            let bound = |profile: &Profile, len| {
                let whole = Lba::new(0)..Lba::containing(profile.capacity());
                profile.worst(whole, len, Direction::Read) + profile.latency()
            };
            for (few, many) in [(0, 7), (3, 3), (3, 11), (4, 0)] {
                let [few, many] = [few, many].map(Duration::from_millis);
                let took = |excess| Took { reads: 1, over: 1, excess, ..Took::default() };
                let mut all = parts(&profile, profile.capacity(), large);
                for part in &mut all {
                    (part.small, part.large) = (took(few), took(many));
                }
                let wider = wider(&profile, &all, large);
                for (len, excess) in [(small, few), (large, many)] {
                    assert!(bound(&wider, len) >= bound(&profile, len) + excess, "{len} {excess}");
                }
            }
        }
    }
}
