//! One disk of a machine: a production schedule over a drive model.

use super::results::Results;
use super::{Asked, DiskSetup, StreamPlan};
use disk::{Bus, Drive, Emulated, Head, Profile};
use sched::{Class, Next, Outcome, Predict, Schedule, Task};
use std::cell::RefCell;
use std::ops::Range;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// The command that the drive works on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub started: Instant,
    pub key: u64,
}

/// What bounds a command's time.
struct Bounds {
    profile: Profile,
    margin: Duration,
    /// Where the heads may be, for a disk with a cache; without one they are where
    /// the schedule has them.
    head: Option<RefCell<Head>>,
}

impl Predict for Bounds {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        self.margin
            + match &self.head {
                Some(head) => head.borrow().bound(&self.profile, command),
                None => self.profile.bound(from, command),
            }
    }
}

/// See the top of this file.
pub(super) struct Disk {
    pub schedule: Schedule,
    pub busy: Option<Busy>,
    pub results: Results,
    /// Something has happened since the schedule was asked last.
    pub stirred: bool,
    /// Which of the machine's buses it is on.
    pub bus: Option<usize>,
    drive: Emulated,
    bounds: Bounds,
    cache: bool,
    reserve: Duration,
    /// Whether the last command was under contract, and how many of its kind it ended.
    last: (bool, u64),
}

impl Disk {
    /// # Panics
    /// Where the schedule would give the disk more than one command at a time.
    pub(super) fn new(setup: &DiskSetup) -> Self {
        assert_eq!(setup.options.depth, 1, "a drive model serves one command at a time");
        let profile = Profile { bus: setup.share.clone(), ..Profile::of(&setup.model) };
        let head = setup.cache.then(|| RefCell::new(Head::at(Lba::default())));
        Self {
            schedule: Schedule::new(setup.policy, setup.options),
            busy: None,
            results: Results::default(),
            stirred: false,
            bus: setup.bus.map(|bus| bus as usize),
            drive: Emulated::new(&setup.model),
            bounds: Bounds { profile, margin: setup.margin, head },
            cache: setup.cache,
            reserve: setup.options.reserve,
            last: (false, 0),
        }
    }

    pub(super) fn profile(&self) -> &Profile {
        &self.bounds.profile
    }

    /// The share of a stream on this disk, which gets every `k`-th block of it.
    pub(super) fn task(&self, plan: &StreamPlan) -> Task {
        let period = plan.rate.time_for(plan.block * plan.disks.len() as u64);
        let worst = || self.worst(&plan.places.range(), plan.block, plan.direction);
        Task::new(period, plan.deadline.unwrap_or(period), plan.cost.unwrap_or_else(worst))
    }

    /// Bound on a transfer in `range`, wherever the head was.
    pub(super) fn worst(&self, range: &Range<Lba>, len: Bytes, direction: Direction) -> Duration {
        self.bounds.profile.worst(range.clone(), len, direction) + self.bounds.margin
    }

    /// As the drive is to take it.
    pub(super) fn command(&self, access: Access) -> Command {
        if self.cache { Command::Transfer(access) } else { Command::Forced(access) }
    }

    /// What hurts most: as long as the reserve covers, and as far away as it can be.
    pub(super) fn worst_access(&self, range: &Range<Lba>, direction: Direction) -> Access {
        let sectors = range.start.distance(range.end);
        let cost = |sectors: u64| self.worst(range, SECTOR * sectors, direction);
        let (mut good, mut bad) = (1, sectors + 1);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            *(if cost(middle) <= self.reserve { &mut good } else { &mut bad }) = middle;
        }
        let middle = range.start.get() + sectors / 2;
        let far_below = self.schedule.head().get() > middle;
        let lba = if far_below { range.start.get() } else { range.end.get() - good };
        Access { lba: Lba::new(lba), len: SECTOR * good, direction }
    }

    /// Gives the drive what the schedule wants it to have. Returns when there is
    /// something to do here without further news: the command ends, or the schedule
    /// wants to be asked again.
    pub(super) fn start(&mut self, now: Instant, asked: &[Asked], buses: &mut [Bus]) -> Instant {
        match self.schedule.next(now, &self.bounds) {
            Next::Wait { until } => {
                let wake = until.unwrap_or(Instant::MAX);
                assert!(wake > now, "the schedule waits for what is past");
                wake
            }
            Next::Start { key, .. } => {
                let command = &asked[key as usize].command;
                let time = match self.bus {
                    Some(bus) => self.drive.serve_sharing(&mut buses[bus], now, command),
                    None => self.drive.serve(now, command),
                };
                self.busy = Some(Busy { started: now, key });
                now + time
            }
        }
    }

    /// The command is done at `now`; returns the key of its request.
    pub(super) fn finish(&mut self, now: Instant, asked: &[Asked]) -> (u64, Outcome) {
        let Busy { started, key, .. } = self.busy.take().expect("the disk ends what it began");
        let outcome = self.schedule.finished(now, key);
        let asked = &asked[key as usize];
        let access = asked.access();
        if let Some(head) = &self.bounds.head {
            head.borrow_mut().completed(&self.bounds.profile, access, now - started);
        }
        let is_real_time = matches!(outcome.class, Class::RealTime(_));
        self.count_run(is_real_time);
        let results = &mut self.results;
        results.busy += now - started;
        results.overruns += u64::from(!outcome.overrun.is_zero());
        results.late += u64::from(!outcome.late_by.is_zero());
        results.late_max = results.late_max.max(outcome.late_by);
        let (latencies, since) = match outcome.class {
            Class::RealTime(_) => (&mut results.real_time, outcome.times.release),
            Class::BestEffort { synchronous: true, .. }
            | Class::Server { synchronous: true, .. } => {
                (&mut results.synchronous, asked.submitted)
            }
            _ => (&mut results.asynchronous, asked.submitted),
        };
        latencies.add(now.saturating_since(since), access.len);
        (key, outcome)
    }

    fn count_run(&mut self, is_real_time: bool) {
        let (last, length) = self.last;
        if last == is_real_time {
            self.last.1 += 1;
            return;
        }
        self.last = (is_real_time, 1);
        self.results.switches += u64::from(length > 0);
        if is_real_time && length > 0 {
            self.results.best_effort_runs.add(length);
        }
    }
}
