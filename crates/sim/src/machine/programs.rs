//! The programs of a machine at work.

use super::disk::Disk;
use super::place;
use super::plans::{Arrivals, LoadPlan, Pace, Places, PlayPlan, StreamPlan};
use super::results::Tally;
use crate::workload::Demand;
use crate::{Random, traces};
use sched::{Class, Flow, TaskId};
use std::ops::Range;
use units::{Access, Bytes, Duration, Instant, Lba, SECTOR};

/// The share of a stream on one disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub disk: u32,
    pub task: TaskId,
}

/// A stream at work.
pub(super) struct Stream {
    /// In the order of its blocks.
    pub parts: Vec<Part>,
    pub has_left: bool,
    pub outstanding: u64,
    /// It is in the agenda.
    pub is_scheduled: bool,
    pub tally: Tally,
    plan: StreamPlan,
    period: Duration,
    /// When it would have asked without jitter.
    due: Instant,
    /// Which part has the next block.
    turn: usize,
    /// Where the last block was.
    last: Lba,
    cursor: Lba,
}

impl Stream {
    pub(super) fn new(
        parts: Vec<Part>,
        plan: StreamPlan,
        period: Duration,
        first: Instant,
        random: &mut Random,
    ) -> Self {
        let cursor = start(&plan.places.range(), plan.block, random);
        Self {
            parts,
            has_left: false,
            outstanding: 0,
            is_scheduled: true,
            tally: Tally::default(),
            plan,
            period,
            due: first,
            turn: 0,
            last: cursor,
            cursor,
        }
    }

    pub(super) fn is_eager(&self) -> bool {
        matches!(self.plan.pace, Pace::Eager(_))
    }

    /// The next block: the blocks of one round lie at the same place of each disk,
    /// unless they lie anywhere.
    pub(super) fn next_access(&mut self, random: &mut Random) -> (Part, Access) {
        let part = self.parts[self.turn];
        if self.turn == 0 || matches!(self.plan.places, Places::Random(_)) {
            self.last = place(&self.plan.places, &mut self.cursor, self.plan.block, random);
        }
        self.turn = if self.turn + 1 == self.parts.len() { 0 } else { self.turn + 1 };
        let (len, direction) = (self.plan.block, self.plan.direction);
        (part, Access { lba: self.last, len, direction })
    }

    /// When it asks again; none where it does so when it is answered.
    pub(super) fn next_ask(&mut self, now: Instant, random: &mut Random) -> Option<Instant> {
        match self.plan.pace {
            Pace::Steady => self.due += self.period,
            Pace::Jitter(most) => {
                self.due += self.period;
                return Some((self.due + random.span(most)).max(now));
            }
            Pace::Variable(percent) => {
                let least = self.period / 100 * (100 - percent);
                self.due += least + random.span(self.period / 100 * (3 * percent));
            }
            Pace::Eager(most) => return (self.outstanding < most).then_some(now),
            Pace::Hasty(percent) => self.due += self.period * 100 / percent,
        }
        Some(self.due)
    }
}

/// A load at work.
pub(super) struct Load {
    pub asks: Asks,
    pub outstanding: u64,
    pub tally: Tally,
}

/// How a load asks.
pub(super) enum Asks {
    /// By a plan of its own.
    Planned(Planned),
    /// As a source says.
    Played(Player),
}

impl Load {
    pub(super) fn new(asks: Asks) -> Self {
        Self { asks, outstanding: 0, tally: Tally::default() }
    }

    /// It asks again when it is answered, not at a time.
    pub(super) fn is_closed(&self) -> bool {
        matches!(&self.asks, Asks::Planned(planned) if planned.is_closed())
    }

    /// How long after an answer it asks again; zero where it does so at once.
    pub(super) fn think(&self) -> Duration {
        match &self.asks {
            Asks::Planned(Planned { plan, .. }) => match plan.arrivals {
                Arrivals::After(think) => think,
                _ => Duration::ZERO,
            },
            Asks::Played(_) => Duration::ZERO,
        }
    }

    /// How many requests it makes now at the most.
    pub(super) fn burst(&self, random: &mut Random) -> u64 {
        match &self.asks {
            Asks::Planned(planned) => planned.burst(self.outstanding, random),
            Asks::Played(_) => u64::MAX,
        }
    }

    /// The next of these.
    pub(super) fn next(
        &mut self,
        now: Instant,
        disks: &[Disk],
        random: &mut Random,
    ) -> Option<Wanted> {
        match &mut self.asks {
            Asks::Planned(planned) => Some(planned.next(disks, random)),
            Asks::Played(player) => player.next(now, disks),
        }
    }

    /// When it makes others; none where it does so when it is answered, or never.
    pub(super) fn next_burst(&self, now: Instant, random: &mut Random) -> Option<Instant> {
        match &self.asks {
            Asks::Planned(planned) => planned.next_burst(now, random),
            Asks::Played(player) => player.due().map(|due| due.max(now)),
        }
    }

    /// Why it has ended, where that is not its own end.
    pub(super) fn error(&self) -> Option<&traces::Error> {
        match &self.asks {
            Asks::Planned(_) => None,
            Asks::Played(player) => player.plan.source.error(),
        }
    }
}

/// What a load asks for.
pub(super) struct Wanted {
    pub disk: u32,
    pub class: Class,
    pub access: Access,
}

/// A load that asks by a plan.
pub(super) struct Planned {
    plan: LoadPlan,
    class: Class,
    cursor: Lba,
}

impl Planned {
    pub(super) fn new(plan: LoadPlan, class: Class, random: &mut Random) -> Self {
        let cursor = start(&plan.places.range(), plan.size, random);
        Self { plan, class, cursor }
    }

    fn is_closed(&self) -> bool {
        let arrivals = self.plan.arrivals;
        matches!(arrivals, Arrivals::Greedy(_) | Arrivals::After(_) | Arrivals::Adversary(_))
    }

    fn burst(&self, outstanding: u64, random: &mut Random) -> u64 {
        match self.plan.arrivals {
            Arrivals::Poisson(_) => 1,
            Arrivals::Bursts { most, .. } => random.between(1, most),
            Arrivals::Greedy(most) | Arrivals::Adversary(most) => most.saturating_sub(outstanding),
            Arrivals::After(_) => 1u64.saturating_sub(outstanding),
        }
    }

    fn next_burst(&self, now: Instant, random: &mut Random) -> Option<Instant> {
        match self.plan.arrivals {
            Arrivals::Poisson(apart) | Arrivals::Bursts { apart, .. } => {
                Some(now + random.exponential(apart).max(Duration::from_nanos(1)))
            }
            Arrivals::Greedy(_) | Arrivals::After(_) | Arrivals::Adversary(_) => None,
        }
    }

    fn next(&mut self, disks: &[Disk], random: &mut Random) -> Wanted {
        let LoadPlan { disk, direction, size: len, places, .. } = &self.plan;
        let (disk, direction, len) = (*disk, *direction, *len);
        let access = match self.plan.arrivals {
            Arrivals::Adversary(_) => disks[disk as usize].worst_access(&places.range(), direction),
            _ => Access { lba: place(places, &mut self.cursor, len, random), len, direction },
        };
        Wanted { disk, class: self.class, access }
    }
}

/// A load that a source makes.
pub(super) struct Player {
    plan: PlayPlan,
    /// Of each target, the server that its requests go to, if any.
    servers: Vec<Option<TaskId>>,
    flow: Flow,
    began: Instant,
    next: Option<Demand>,
}

impl Player {
    pub(super) fn new(
        mut plan: PlayPlan,
        servers: Vec<Option<TaskId>>,
        flow: Flow,
        began: Instant,
    ) -> Self {
        assert!(plan.speed_percent > 0, "a load that stands still");
        let next = plan.source.next();
        Self { plan, servers, flow, began, next }
    }

    /// When the next demand comes; none where there are no more.
    fn due(&self) -> Option<Instant> {
        let at = u128::from(self.next?.at.as_nanos());
        let ns = u64::try_from(at * 100 / u128::from(self.plan.speed_percent));
        let span = Duration::from_nanos(ns.expect("a load that lasts for centuries"));
        Some(self.began.saturating_add(span))
    }

    /// The next demand that has come and that is for one of the targets.
    fn next(&mut self, now: Instant, disks: &[Disk]) -> Option<Wanted> {
        while self.due()? <= now {
            let Demand { disk, access, synchronous, .. } = self.next.expect("it is due");
            self.next = self.plan.source.next();
            let Some(target) = self.plan.targets.get(disk as usize) else { continue };
            let access = inside(&target.range, access);
            let flow = self.flow;
            let class = match self.servers[disk as usize] {
                Some(task) => {
                    let of_disk = &disks[target.disk as usize];
                    let cost = of_disk.worst(&target.range, access.len, access.direction);
                    Class::Server { task, cost, synchronous, flow, ordered: false }
                }
                None => Class::BestEffort { synchronous, flow, ordered: false },
            };
            return Some(Wanted { disk: target.disk, class, access });
        }
        None
    }
}

/// The same in a part of a disk.
fn inside(range: &Range<Lba>, access: Access) -> Access {
    let room = range.start.distance(range.end);
    let sectors = access.len.div_ceil(SECTOR).min(room);
    let at = access.lba.get();
    let at = if at + sectors <= room { at } else { at % (room - sectors + 1) };
    Access {
        lba: Lba::new(range.start.get() + at),
        len: SECTOR * sectors,
        direction: access.direction,
    }
}

/// Where a sequence begins: at a whole block of the range.
fn start(range: &Range<Lba>, block: Bytes, random: &mut Random) -> Lba {
    let sectors = block.div_ceil(SECTOR);
    let blocks = range.start.distance(range.end) / sectors;
    Lba::new(range.start.get() + random.below(blocks.max(1)) * sectors)
}
