//! What is counted while a scenario plays, and whom a miss is put down to.
//!
//! Invariants: nothing grows with the length of the run; a miss is counted once, with
//! one cause.
//!
//! Why a request was late: if a command of its disk took longer than its bound after
//! the request was released, that. A backlog lasts longer than what began it: so, too,
//! if it was released while another request was waiting that was late for this reason.

use super::outcome::{
    Bin, Cause, ClassOutcome, DiskOutcome, MISSES_TOLD, Miss, Outcome, TIMELINE_BINS,
};
use super::plan::{FaultKind, Scenario};
use crate::CommandEnd;
use node::{Carrier, Error, StreamId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{Bytes, Duration, Instant};

impl Seen {
    /// The fault that was at work between these instants.
    fn fault(&self, from: Instant, to: Instant) -> Option<usize> {
        let at_work = |&&(begin, end, _): &&(Instant, Instant, usize)| begin <= to && from <= end;
        self.faults.iter().find(at_work).map(|&(.., fault)| fault)
    }
}

/// The ledger, as programs and the world share it.
pub(super) type Shared = Rc<RefCell<Ledger>>;

/// See the top of this file.
pub(super) struct Ledger {
    pub classes: Vec<ClassOutcome>,
    pub disks: Vec<DiskOutcome>,
    misses: Vec<Miss>,
    commands: u64,
    /// What is counted begins then, and this long it lasts.
    from: Instant,
    duration: Duration,
    streams: BTreeMap<StreamId, Member>,
    /// The class of each program.
    programs: Vec<usize>,
    seen: Vec<Seen>,
    is_promised: Result<(), Cause>,
}

/// An open stream.
struct Member {
    class: usize,
    /// Why its last late request was.
    late_for: Option<(Cause, Option<usize>)>,
}

/// What is known of a disk beside what is counted.
struct Seen {
    latency: Duration,
    on_bus: bool,
    last_end: Instant,
    /// Its faults: from when, until when, which.
    faults: Vec<(Instant, Instant, usize)>,
    /// Requests that were released up to then are late for this reason.
    trouble: Option<(Instant, Cause, Option<usize>)>,
}

impl Ledger {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let classes = scenario.streams.len() + scenario.loads.len();
        let seen = (0u16..).zip(&scenario.disks).map(|(number, disk)| {
            let faults = (0..)
                .zip(&scenario.faults)
                .filter(|(_, fault)| fault.disk == number && fault.kind != FaultKind::PowerCut);
            let spans = faults.map(|(index, fault)| {
                let from = Instant::EPOCH + fault.at;
                (from, from.saturating_add(fault.lasts), index)
            });
            let profile = disk.what.profile();
            Seen {
                latency: profile.latency(),
                on_bus: disk.bus.is_some(),
                last_end: Instant::EPOCH,
                faults: spans.collect(),
                trouble: None,
            }
        });
        let mut ledger = Self {
            classes: vec![ClassOutcome::default(); classes],
            disks: vec![DiskOutcome::default(); scenario.disks.len()],
            misses: Vec::new(),
            commands: 0,
            from: Instant::EPOCH + scenario.warm_up,
            duration: scenario.duration,
            streams: BTreeMap::new(),
            programs: Vec::new(),
            seen: seen.collect(),
            is_promised: match (scenario.admission, scenario.policy.keeps_contracts()) {
                (false, _) => Err(Cause::NoAdmission),
                (true, false) => Err(Cause::Policy),
                (true, true) => Ok(()),
            },
        };
        for class in &mut ledger.classes {
            class.timeline = vec![Bin::default(); TIMELINE_BINS];
        }
        for disk in &mut ledger.disks {
            disk.timeline = vec![Duration::ZERO; TIMELINE_BINS];
        }
        ledger
    }

    /// The next program is of this class.
    pub(super) fn program(&mut self, class: usize) {
        self.programs.push(class);
    }

    /// The node is another one: its streams are gone.
    pub(super) fn restarted(&mut self) {
        self.streams.clear();
    }

    pub(super) fn opened(&mut self, stream: StreamId, class: usize) {
        self.streams.insert(stream, Member { class, late_for: None });
    }

    pub(super) fn closed(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
    }

    /// Something of this class failed.
    pub(super) fn failed(&mut self, class: usize, error: Error) {
        let class = &mut self.classes[class];
        class.errors += 1;
        class.error.get_or_insert(error);
    }

    fn counts(&self, now: Instant) -> bool {
        now >= self.from
    }

    fn bin(&self, now: Instant) -> usize {
        let since = u128::from(now.saturating_since(self.from).as_nanos());
        let at = since * TIMELINE_BINS as u128 / u128::from(self.duration.as_nanos().max(1));
        (at as usize).min(TIMELINE_BINS - 1)
    }

    /// A program has what it waited for.
    pub(super) fn seen(&mut self, now: Instant, class: usize, wait: Duration, len: Bytes) {
        if !self.counts(now) {
            return;
        }
        let bin = self.bin(now);
        let class = &mut self.classes[class];
        class.seen.add(wait, len);
        let bin = &mut class.timeline[bin];
        bin.bytes += len;
        bin.wait_max = bin.wait_max.max(wait);
    }

    /// The first byte is there, so long after it was asked for.
    pub(super) fn began(&mut self, now: Instant, class: usize, wait: Duration) {
        if self.counts(now) {
            self.classes[class].begins.record(wait);
        }
    }

    /// A program within its rate found its window not ready.
    pub(super) fn underrun(&mut self, now: Instant, stream: StreamId, wait: Duration) {
        let Some(member) = self.streams.get(&stream) else { return };
        let (class, why) = (member.class, member.late_for);
        self.not_ready(now, class, wait, why);
    }

    /// A program that kept to its contract was answered later than promised, or its bytes are behind its
    /// rate, by so much.
    pub(super) fn not_served(&mut self, now: Instant, class: usize, late_by: Duration) {
        self.not_ready(now, class, late_by, None);
    }

    fn not_ready(
        &mut self,
        now: Instant,
        class: usize,
        late_by: Duration,
        why: Option<(Cause, Option<usize>)>,
    ) {
        // What it waits for may be late and not done yet.
        let at_work = || self.seen.iter().find_map(|seen| seen.fault(now, now));
        let (cause, fault) = match (why, at_work()) {
            (Some(why), _) => why,
            (None, Some(fault)) => (Cause::Fault, Some(fault)),
            (None, None) => (self.is_promised.err().unwrap_or(Cause::Unexplained), None),
        };
        if self.counts(now) {
            self.classes[class].underruns += 1;
            self.miss(now, Some(class), None, late_by, cause, fault);
        }
    }

    /// A program was slowed to its contract.
    pub(super) fn throttled(&mut self, now: Instant, class: usize) {
        if self.counts(now) {
            self.classes[class].throttled += 1;
            self.classes[class].causes[Cause::Client.index()] += 1;
        }
    }

    fn miss(
        &mut self,
        now: Instant,
        class: Option<usize>,
        disk: Option<u16>,
        late_by: Duration,
        cause: Cause,
        fault: Option<usize>,
    ) {
        let bin = self.bin(now);
        if let Some(class) = class {
            let class = &mut self.classes[class];
            class.causes[cause.index()] += 1;
            class.timeline[bin].missed += 1;
        }
        if self.misses.len() < MISSES_TOLD {
            let at = now.saturating_since(self.from);
            self.misses.push(Miss { at, class, disk, late_by, cause, fault });
        }
    }

    /// A command has ended.
    pub(super) fn ended(&mut self, end: &CommandEnd) {
        self.commands += 1;
        // Where commands overlap, what this one took since the one before.
        let alone = end.started.max(self.seen[end.disk.as_usize()].last_end);
        let actual = end.finished.saturating_since(alone);
        self.work(end, actual);
        self.trouble(end, actual);
        let Some(request) = end.request else { return };
        let release =
            Instant::from_nanos(end.finished.as_nanos().saturating_sub(request.latency.as_nanos()));
        let is_late = !request.late_by.is_zero();
        let class = match request.whose {
            Carrier::Stream(stream) => self.streams.get(&stream).map(|member| member.class),
            Carrier::Operation(_) => end.program.map(|program| self.programs[program]),
            Carrier::Pool => None,
        };
        let why = is_late.then(|| self.why(end, release));
        if let (Carrier::Stream(stream), Some(why)) = (request.whose, why)
            && let Some(member) = self.streams.get_mut(&stream)
        {
            member.late_for = Some(why);
        }
        if !self.counts(end.finished) {
            return;
        }
        if let Some(class) = class {
            let class = &mut self.classes[class];
            class.requests.add(request.latency, Bytes::ZERO);
            if is_late {
                class.late.record(request.late_by);
            }
        }
        if let Some((cause, fault)) = why {
            let disk = Some(end.disk.0);
            self.miss(end.finished, class, disk, request.late_by, cause, fault);
        }
    }

    /// How long the disk worked; commands may overlap.
    fn work(&mut self, end: &CommandEnd, actual: Duration) {
        let index = end.disk.as_usize();
        self.seen[index].last_end = self.seen[index].last_end.max(end.finished);
        if !self.counts(end.finished) {
            return;
        }
        let bin = self.bin(end.finished);
        let disk = &mut self.disks[index];
        let worked = actual.min(end.finished.saturating_since(self.from));
        disk.busy += worked;
        disk.timeline[bin] += worked;
        disk.commands += 1;
    }

    /// Notes a command that took longer than its bound, or failed.
    fn trouble(&mut self, end: &CommandEnd, actual: Duration) {
        let index = end.disk.as_usize();
        let seen = &mut self.seen[index];
        let over = actual.saturating_sub(end.predicted + seen.latency);
        if over.is_zero() && end.good {
            return;
        }
        let fault = seen.fault(end.started, end.finished);
        let cause = match fault {
            Some(_) => Cause::Fault,
            None if seen.on_bus => Cause::Bus,
            None => Cause::Device,
        };
        seen.trouble = Some((end.finished, cause, fault));
        if end.finished >= self.from && !over.is_zero() {
            let disk = &mut self.disks[index];
            disk.overruns += 1;
            disk.overrun_max = disk.overrun_max.max(over);
        }
    }

    /// Why a request that was released at `release` is late.
    fn why(&mut self, end: &CommandEnd, release: Instant) -> (Cause, Option<usize>) {
        let seen = &mut self.seen[end.disk.as_usize()];
        match &mut seen.trouble {
            Some((until, cause, fault)) if *until >= release => {
                *until = end.finished;
                (*cause, *fault)
            }
            _ => (self.is_promised.err().unwrap_or(Cause::Unexplained), None),
        }
    }

    /// What came of it, up to `now`.
    pub(super) fn outcome(&self, seed: u64, now: Instant) -> Outcome {
        Outcome {
            seed,
            counted: now.saturating_since(self.from).min(self.duration),
            bin: self.duration / TIMELINE_BINS as u64,
            stopped: false,
            classes: self.classes.clone(),
            disks: self.disks.clone(),
            windows_max: Bytes::ZERO,
            best_effort_max: Bytes::ZERO,
            misses: self.misses.clone(),
            power_cuts: Vec::new(),
            dead: None,
            commands: self.commands,
        }
    }
}
