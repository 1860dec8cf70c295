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
//! profile is used if every open contract fits with it ([`Node::set_profile`]), and else
//! kept, named, and tried again when a stream has closed.

use crate::api::*;
use crate::arena::Use;
use crate::core::{Core, Owner};
use crate::limits::{MEASURE_AGAIN, MEASURE_PARTS, MEASURE_READS, MEASURE_SMALL};
use crate::node::Node;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use disk::{Kind, Profile};
use sched::Class;
use units::{Bytes, Duration, Instant, Rate};

/// What one size took in one part.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    reads: u64,
    total: Duration,
    over: u64,
    /// The furthest beyond its bound.
    excess: Duration,
}

#[derive(Clone, Debug)]
struct Part {
    from: Bytes,
    to: Bytes,
    small: Took,
    large: Took,
}

/// A measurement that runs.
#[derive(Clone, Debug)]
struct Running {
    parts: Vec<Part>,
    done: u64,
    /// As long as a large read.
    span: Span,
    command: CommandId,
    /// What the read under way is of: its part, and whether it is a large one.
    what: (usize, bool),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Measuring {
    running: BTreeMap<DiskIndex, Running>,
    told: BTreeMap<DiskIndex, Measured>,
    ended: BTreeMap<DiskIndex, Instant>,
    /// Wider profiles that open contracts do not bear.
    waiting: BTreeMap<DiskIndex, Profile>,
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

impl Core {
    /// Reads the next place.
    fn measure_next(&mut self, now: Instant, disk: DiskIndex) {
        let running = &self.measuring.running[&disk];
        let (number, parts) = (running.done, running.parts.len() as u64);
        // From part to part, so that the heads move; sizes change after each round.
        let (at, large) = ((number % parts) as usize, number / parts % 2 == 1);
        let part = &running.parts[at];
        let len = if large { running.span.len } else { MEASURE_SMALL };
        // The golden ratio spreads any number of places evenly.
        let places = (part.to - part.from - len) / MEASURE_SMALL + 1;
        let spread = u128::from(number / parts + 1) * 11_400_714_819_323_198_485u128;
        let place = ((u128::from(spread as u64) * u128::from(places)) >> 64) as u64;
        let offset = part.from + MEASURE_SMALL * place;
        let span = Span { len, ..running.span };
        let action = DiskAction::Read { offset, span, written: Blocks::first(len) };
        let id = self.submit(now, disk, Class::Background, action, Owner::Measure);
        let running = self.measuring.running.get_mut(&disk).expect("it runs");
        (running.command, running.what) = (id, (at, large));
    }

    fn end_measuring(&mut self, now: Instant, disk: DiskIndex) -> (Vec<Part>, Bytes) {
        let running = self.measuring.running.remove(&disk).expect("it ran");
        self.arena.give(running.span, Use::BestEffort);
        self.measuring.ended.insert(disk, now);
        (running.parts, running.span.len)
    }

    /// Measurements end as soon as no command of them is under way.
    pub(crate) fn stop_measuring(&mut self, now: Instant) {
        let running = self.measuring.running.iter();
        let commands: Vec<_> = running.map(|(&disk, one)| (disk, one.command)).collect();
        for (disk, command) in commands {
            if self.cancel(command) {
                self.end_measuring(now, disk);
            }
        }
    }
}

impl Node {
    /// Begins to measure a disk again, if it is not being measured.
    pub(crate) fn reprofile(&mut self, now: Instant, disk: DiskIndex) -> Result<(), Error> {
        let disks = self.core.disks.len() as u16;
        let state = self.core.disks.get(disk.as_usize());
        let state = state.ok_or(Error::NoSuchDisk { disk, disks })?;
        if self.core.measuring.running.contains_key(&disk) {
            return Ok(());
        }
        // The longest that no contract has to wait for too long.
        let large = state.piece;
        let parts = parts(&state.profile, state.status.capacity, large);
        let Some(span) = self.core.arena.take(large, Use::BestEffort) else {
            return Err(Error::NoMemory { asked: large, free: Bytes::ZERO });
        };
        let (command, what) = (CommandId(0), (0, false));
        let running = Running { parts, done: 0, span, command, what };
        self.core.measuring.running.insert(disk, running);
        self.core.measure_next(now, disk);
        Ok(())
    }

    /// A disk whose profile does not hold is measured again, now and then.
    pub(crate) fn measure_if_stale(&mut self, now: Instant, disk: DiskIndex) {
        let state = &self.core.disks[disk.as_usize()];
        let verdict = state.seen.verdict();
        let hopeless = matches!(verdict, Verdict::Stale { why: Staleness::Capacity { .. } });
        if !self.core.config.remeasure || verdict == Verdict::Fresh || hopeless || self.is_ending()
        {
            return;
        }
        let ended = self.core.measuring.ended.get(&disk);
        if ended.is_none_or(|&ended| now >= ended.saturating_add(MEASURE_AGAIN)) {
            // Without memory, at the next command.
            let _ = self.reprofile(now, disk);
        }
    }

    /// A read of a measurement has ended.
    pub(crate) fn measured(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        took: Option<(Duration, Duration)>,
    ) {
        let ending = self.is_ending();
        let running = self.core.measuring.running.get_mut(&disk).expect("it runs");
        running.done += 1;
        let (at, large) = running.what;
        let part = &mut running.parts[at];
        if let Some((actual, bound)) = took {
            let took = if large { &mut part.large } else { &mut part.small };
            took.reads += 1;
            took.total += actual;
            took.over += u64::from(actual > bound);
            took.excess = took.excess.max(actual.saturating_sub(bound));
        }
        let planned = MEASURE_READS * running.parts.len() as u64;
        if running.done < planned && !ending {
            return self.core.measure_next(now, disk);
        }
        let (parts, large) = self.core.end_measuring(now, disk);
        if !ending {
            self.conclude(now, disk, &parts, large);
        }
    }

    /// What a measurement comes to.
    fn conclude(&mut self, now: Instant, disk: DiskIndex, parts: &[Part], large: Bytes) {
        let both = || parts.iter().flat_map(|part| [part.small, part.large]);
        let (reads, over) = both().fold((0, 0), |(n, m), one| (n + one.reads, m + one.over));
        let told = Measured {
            outcome: Outcome::Holds,
            reads,
            over,
            excess: both().map(|one| one.excess).max().unwrap_or_default(),
            large,
            parts: parts.iter().map(|part| part.told(large)).collect(),
        };
        self.core.measuring.told.insert(disk, told);
        self.core.measuring.waiting.remove(&disk);
        if over > 0 {
            let state = &self.core.disks[disk.as_usize()];
            let mut wider = wider(&state.profile, parts, large);
            // Commits flush the disk all the time: nothing has to be measured for it.
            let longest = state.flush_longest;
            if longest > wider.flush {
                wider.flush = longest + longest / 4;
            }
            self.core.measuring.waiting.insert(disk, wider);
            self.try_wider(now, disk);
        }
    }

    /// A stream has closed: perhaps wider profiles fit now.
    pub(crate) fn try_wider_profiles(&mut self, now: Instant) {
        let disks: Vec<DiskIndex> = self.core.measuring.waiting.keys().copied().collect();
        disks.into_iter().for_each(|disk| self.try_wider(now, disk));
    }

    fn try_wider(&mut self, now: Instant, disk: DiskIndex) {
        let profile = self.core.measuring.waiting[&disk].clone();
        let outcome = match self.set_profile(now, disk, &profile) {
            Ok(()) => {
                self.core.measuring.waiting.remove(&disk);
                self.core.changed(now);
                Outcome::Used
            }
            Err(error) => Outcome::Refused(Box::new(error)),
        };
        self.core.measuring.told.entry(disk).or_default().outcome = outcome;
    }
}

impl Part {
    fn told(&self, len: Bytes) -> MeasuredPart {
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
fn parts(profile: &Profile, capacity: Bytes, large: Bytes) -> Vec<Part> {
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

/// The profile with bounds that hold what was measured, and a quarter of the excess on
/// top. What a small read took too long is in what every command costs; what a large one
/// took beyond that, in the rate of its part. Writes were not measured: they are given
/// the same, as far as they share it.
fn wider(profile: &Profile, parts: &[Part], len: Bytes) -> Profile {
    let with_margin = |excess: Duration| excess + excess / 4;
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
