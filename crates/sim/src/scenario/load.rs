//! A program without a stream that looks at no bytes: it reads and writes volumes as
//! it likes, as a generator says, or as was recorded.

use super::judge::Judge;
use super::ledger::Shared;
use super::plan::{Arrivals, LoadPlan};
use crate::workload::{Demand, Source};
use crate::world::{Context, Program};
use crate::{Metadata, Random};
use node::{Error, Op, Reply, Target, WriteRange};
use units::{Access, Bytes, Direction, Duration, Instant, Lba};

/// More requests are never outstanding; what would be made beyond that is counted as
/// skipped.
const OUTSTANDING_MAX: usize = 1024;
/// What the node takes at once.
const REQUEST_MAX: Bytes = Bytes::MIB;
const UNIT: Bytes = Bytes::kib(4);
/// After a failure, or when the node is full, this long.
const AGAIN: Duration = Duration::from_millis(100);

/// The stages of a request; the tag of a question is `slot * STAGES + stage`.
const STAGES: u64 = 4;
const MOVE: u64 = 0;
const ROOM: u64 = 1;
const GIVE: u64 = 2;
const SERVE: u64 = 3;

/// A volume that it works on.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub volume: String,
    pub size: Bytes,
}

/// See the top of this file.
pub(super) struct Loader {
    plan: LoadPlan,
    class: usize,
    grounds: Vec<Ground>,
    begins: Instant,
    ends: Instant,
    random: Random,
    ledger: Shared,
    source: Option<Box<dyn Source>>,
    /// From the source, not yet made.
    next: Option<Demand>,
    /// Volumes whose service is not set yet.
    unserved: usize,
    refused: bool,
    was_admitted: bool,
    slots: Vec<Slot>,
    vacant: Vec<usize>,
    cursor: Bytes,
    due: Instant,
    judge: Judge,
}

/// A request under way.
#[derive(Clone, Copy)]
struct Slot {
    asked: Instant,
    /// Within what time its answer was promised.
    within: Option<Duration>,
    ground: usize,
    access: Access,
}

impl Loader {
    #[allow(clippy::too_many_arguments)] // a program is just these
    pub(super) fn new(
        plan: &LoadPlan,
        class: usize,
        grounds: Vec<Ground>,
        begins: Instant,
        ends: Instant,
        seed: u64,
        source: Option<Box<dyn Source>>,
        ledger: Shared,
    ) -> Self {
        let mut random = Random::new(seed);
        let cursor = grounds[0].size / plan.block.max(UNIT);
        let cursor = plan.block.max(UNIT) * random.below(cursor.max(1));
        Self {
            plan: plan.clone(),
            class,
            grounds,
            begins,
            ends,
            random,
            ledger,
            source,
            next: None,
            unserved: 0,
            refused: false,
            was_admitted: false,
            slots: Vec::new(),
            vacant: Vec::new(),
            cursor,
            due: begins,
            judge: Judge::default(),
        }
    }

    /// It may begin: it has the service that it asked for.
    fn begin(&mut self, context: &mut Context<'_, Metadata>) {
        self.ledger.borrow_mut().classes[self.class].admitted += u64::from(!self.was_admitted);
        self.was_admitted = true;
        let disks = self.ledger.borrow().disks.len();
        self.judge = Judge::new(&self.plan, self.grounds.len(), disks, context.now);
        self.due = self.begins.max(context.now);
        match self.plan.arrivals {
            Arrivals::Greedy(most) => {
                for _ in 0..most.min(OUTSTANDING_MAX as u64) {
                    self.make_one(context);
                }
            }
            Arrivals::From(..) => {
                self.following();
                self.rest(context);
            }
            // Programs alike do not begin at the same instant.
            Arrivals::Paced(every) => {
                self.due += self.random.span(every);
                context.alarm_at(self.due);
            }
            Arrivals::Poisson(apart) | Arrivals::Bursts { apart, .. } => {
                self.due += self.random.exponential(apart);
                context.alarm_at(self.due);
            }
        }
    }

    /// The source's next request; a trace may end in a damaged record.
    fn following(&mut self) {
        let Some(source) = &mut self.source else { return };
        self.next = source.next();
        if self.next.is_none()
            && let Some(error) = source.error()
        {
            self.ledger.borrow_mut().classes[self.class].problem = Some(error.to_string());
        }
    }

    /// When the source's next request is made.
    fn at(&self, demand: &Demand) -> Instant {
        let Arrivals::From(_, percent) = self.plan.arrivals else { return self.due };
        let ns = u128::from(demand.at.as_nanos()) * 100 / u128::from(percent.max(1));
        self.due + Duration::from_nanos(ns as u64)
    }

    fn rest(&mut self, context: &mut Context<'_, Metadata>) {
        if let Some(demand) = &self.next {
            context.alarm_at(self.at(demand));
        }
    }

    /// A request of its own making.
    fn make_one(&mut self, context: &mut Context<'_, Metadata>) {
        let ground = self.random.below(self.grounds.len() as u64) as usize;
        let block = self.plan.block;
        let blocks = (self.grounds[ground].size / block).max(1);
        let offset = if self.plan.sequential {
            let offset = self.cursor;
            self.cursor = block * ((offset / block + 1) % blocks);
            offset
        } else {
            block * self.random.below(blocks)
        };
        let reads = self.random.chance(self.plan.reads_percent);
        let direction = if reads { Direction::Read } else { Direction::Write };
        self.make(context, ground, Access { lba: Lba::containing(offset), len: block, direction });
    }

    /// What a source asks for, as requests that the node takes.
    fn make_demand(&mut self, context: &mut Context<'_, Metadata>, demand: &Demand) {
        let ground = demand.disk as usize % self.grounds.len();
        let size = self.grounds[ground].size.round_down(UNIT);
        let offset = demand.access.lba.offset();
        let end = (offset + demand.access.len).round_up(UNIT);
        let mut at = offset.round_down(UNIT);
        while at < end {
            let len = (end - at).min(REQUEST_MAX);
            // A place beyond the volume is one within it.
            let place = at % (size - len + UNIT).round_down(UNIT).max(UNIT);
            let access = Access { lba: Lba::containing(place), len, ..demand.access };
            self.make(context, ground, access);
            at += len;
        }
    }

    fn make(&mut self, context: &mut Context<'_, Metadata>, ground: usize, access: Access) {
        if self.vacant.is_empty() && self.slots.len() == OUTSTANDING_MAX {
            self.ledger.borrow_mut().classes[self.class].skipped += 1;
            return;
        }
        let within = self.judge.asks(context.now, ground, &access);
        let asked = Slot { asked: context.now, within, ground, access };
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot] = asked;
                slot
            }
            None => {
                self.slots.push(asked);
                self.slots.len() - 1
            }
        };
        let tag = slot as u64 * STAGES;
        let Access { lba, len, direction } = access;
        match direction {
            Direction::Read => {
                let volume = self.grounds[ground].volume.clone();
                context.ask(
                    tag + MOVE,
                    Op::Read { volume, offset: lba.offset(), len, priority: None },
                );
            }
            Direction::Write => {
                let volume = self.grounds[ground].volume.clone();
                let target = Some(Target { volume, offset: lba.offset(), priority: None });
                context.ask(tag + ROOM, Op::Room { len, target });
            }
        }
    }

    /// A request has ended; whoever keeps a number of them outstanding makes another.
    fn done(&mut self, context: &mut Context<'_, Metadata>, slot: usize) {
        self.vacant.push(slot);
        if matches!(self.plan.arrivals, Arrivals::Greedy(_)) && context.now < self.ends {
            self.make_one(context);
        }
    }

    fn moved(&mut self, context: &Context<'_, Metadata>, slot: usize) {
        let Slot { asked, within, access, .. } = self.slots[slot];
        let (now, wait) = (context.now, context.now - asked);
        let late = within.map(|within| wait.saturating_sub(within)).filter(|late| !late.is_zero());
        let behind = self.judge.came(now, access.len);
        let mut ledger = self.ledger.borrow_mut();
        ledger.seen(now, self.class, wait, access.len);
        if let Some(late_by) = late.or(behind) {
            ledger.not_served(now, self.class, late_by);
        }
    }

    fn served(&mut self, context: &mut Context<'_, Metadata>, result: Result<Reply, Error>) {
        self.unserved -= 1;
        if let Err(error) = result {
            self.refused = true;
            self.ledger.borrow_mut().classes[self.class].refusal.get_or_insert(error);
        }
        if self.unserved == 0 && !self.refused {
            self.begin(context);
        }
    }

    fn failed(&mut self, context: &mut Context<'_, Metadata>, slot: usize, error: Error) {
        let mut ledger = self.ledger.borrow_mut();
        match error {
            Error::Busy { .. } => ledger.classes[self.class].skipped += 1,
            error => ledger.failed(self.class, error),
        }
        drop(ledger);
        self.vacant.push(slot);
        if matches!(self.plan.arrivals, Arrivals::Greedy(_)) {
            context.alarm_at(context.now + AGAIN);
        }
    }
}

impl Program<Metadata> for Loader {
    fn start(&mut self, context: &mut Context<'_, Metadata>) {
        self.ledger.borrow_mut().classes[self.class].asked += 1;
        self.returned(context);
    }

    fn returned(&mut self, context: &mut Context<'_, Metadata>) {
        if self.refused {
            return;
        }
        self.slots.clear();
        self.vacant.clear();
        self.unserved = usize::MAX;
        context.alarm_at(self.begins.max(context.now));
    }

    fn alarm(&mut self, context: &mut Context<'_, Metadata>) {
        if context.now >= self.ends {
            return;
        }
        if self.unserved == usize::MAX {
            self.unserved = 0;
            let Some(service) = self.plan.service else { return self.begin(context) };
            self.unserved = self.grounds.len();
            for ground in &self.grounds {
                context.ask(SERVE, Op::VolumeService { name: ground.volume.clone(), service });
            }
            return;
        }
        match self.plan.arrivals {
            Arrivals::Greedy(most) => {
                let missing = most.saturating_sub((self.slots.len() - self.vacant.len()) as u64);
                for _ in 0..missing {
                    self.make_one(context);
                }
                return;
            }
            Arrivals::Paced(every) => {
                self.make_one(context);
                self.due = context.now + every;
            }
            Arrivals::Poisson(apart) => {
                self.make_one(context);
                self.due = context.now + self.random.exponential(apart);
            }
            Arrivals::Bursts { apart, most } => {
                for _ in 0..self.random.between(1, most.max(1)) {
                    self.make_one(context);
                }
                self.due = context.now + self.random.exponential(apart);
            }
            Arrivals::From(..) => {
                while let Some(demand) = self.next.filter(|next| self.at(next) <= context.now) {
                    self.make_demand(context, &demand);
                    self.following();
                }
                return self.rest(context);
            }
        }
        context.alarm_at(self.due);
    }

    fn answer(
        &mut self,
        context: &mut Context<'_, Metadata>,
        tag: u64,
        result: Result<Reply, Error>,
    ) {
        let (slot, stage) = ((tag / STAGES) as usize, tag % STAGES);
        match (stage, result) {
            (SERVE, result) => self.served(context, result),
            (_, Err(error)) => self.failed(context, slot, error),
            (ROOM, Ok(Reply::Room { room: span })) => {
                let Slot { ground, access, .. } = self.slots[slot];
                let volume = self.grounds[ground].volume.clone();
                context.ask(
                    tag - ROOM + MOVE,
                    Op::Write {
                        volume,
                        range: WriteRange::new(access.lba.offset(), span.len),
                        span,
                        priority: None,
                    },
                );
            }
            (MOVE, Ok(Reply::Data { bytes: span, .. })) => {
                self.moved(context, slot);
                context.ask(tag - MOVE + GIVE, Op::Release { span });
            }
            (MOVE, Ok(_)) => {
                self.moved(context, slot);
                self.done(context, slot);
            }
            (GIVE, Ok(_)) => self.done(context, slot),
            (stage, Ok(other)) => unreachable!("{stage} was answered with {other:?}"),
        }
    }
}
