//! Programs of the tests of answers in time: one that keeps a contract and holds every answer
//! against a clock of its own, and those that keep nothing and take what memory they can.

use node::{Error, HandleId, Op, Priority, Reply, Span, Target, Who, WriteRange};
use sim::{Context, Keeps, Program, Random, pattern};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use units::{Bytes, Duration, Instant};

pub fn user(uid: u32) -> Who {
    Who { is_superuser: true, ..Who::user(uid, uid, []) }
}

/// A contract: an operation of at most `len` bytes is answered `within`, `every` so long.
#[derive(Clone, Copy, Debug)]
pub struct InTime {
    pub len: Bytes,
    pub within: Duration,
    pub every: Duration,
}

/// What the keeper of a contract saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub answers: u64,
    pub late: u64,
    pub late_max: Duration,
    /// From the call to the answer, at the most.
    pub longest: Duration,
    pub errors: Vec<Error>,
}

/// How the keeper of a contract behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// In percent: how many of its operations are writes,
    pub writes: u64,
    /// how many of these begin and end within 4 KiB,
    pub odd: u64,
    /// and how often it calls several times at once.
    pub bursts: u64,
    /// It keeps the memory of each for so long at the most.
    pub keeps: Duration,
    /// Its calls come to the node so much later.
    pub lag: Duration,
}

impl Manner {
    /// One aligned read after the other.
    pub const PLAIN: Self =
        Self { writes: 0, odd: 0, bursts: 0, keeps: Duration::ZERO, lag: Duration::ZERO };
}

enum Step {
    Call,
    Tell { called: Instant, range: WriteRange, write: bool },
    Write { called: Instant, range: WriteRange, span: Span },
    Release(Span),
}

enum Asked {
    Room { called: Instant, range: WriteRange },
    Answer { called: Instant, due: Instant, range: WriteRange },
    Nothing,
}

/// Reads and writes a volume of which all is written, within its contract; for what it calls
/// sooner it counts as the contract does.
pub struct Keeper {
    volume: String,
    size: Bytes,
    disks: u64,
    contract: InTime,
    manner: Manner,
    random: Random,
    seen: Rc<RefCell<Seen>>,
    steps: BTreeMap<(Instant, u64), Step>,
    asked: HashMap<u64, Asked>,
    /// The next turn on each disk.
    turns: Vec<Instant>,
    /// Writes that are not answered.
    writing: Vec<WriteRange>,
    next: u64,
    handle: Option<HandleId>,
}

impl Keeper {
    pub fn new(volume: &str, size: Bytes, contract: InTime, manner: Manner, seed: u64) -> Self {
        Self {
            volume: volume.into(),
            size,
            disks: 1,
            contract,
            manner,
            random: Random::new(seed),
            seen: Rc::default(),
            steps: BTreeMap::new(),
            asked: HashMap::new(),
            turns: vec![Instant::EPOCH],
            writing: Vec::new(),
            next: 0,
            handle: None,
        }
    }

    /// Asks by this handle, whose contract it keeps.
    #[allow(dead_code)] // not every test has handles
    pub fn by(self, handle: HandleId) -> Self {
        Self { handle: Some(handle), ..self }
    }

    fn who(&self) -> Who {
        Who { handle: self.handle, ..user(1) }
    }

    /// The volume's extents rotate over so many.
    pub fn on_disks(self, disks: u64) -> Self {
        Self { disks, turns: vec![Instant::EPOCH; disks as usize], ..self }
    }

    pub fn seen(&self) -> Rc<RefCell<Seen>> {
        Rc::clone(&self.seen)
    }

    fn at(&mut self, when: Instant, step: Step) {
        self.next += 1;
        self.steps.insert((when, self.next), step);
    }

    fn number(&mut self, asked: Asked) -> u64 {
        self.next += 1;
        self.asked.insert(self.next, asked);
        self.next
    }

    /// By when an operation that comes at `came` is to be answered, of so many commands.
    fn due(&mut self, offset: Bytes, came: Instant, commands: u64) -> Instant {
        let disk = (offset / Bytes::MIB % self.disks) as usize;
        let InTime { within, every, .. } = self.contract;
        let first = came.max(self.turns[disk]);
        let last = first + every * (commands - 1);
        self.turns[disk] = last + every;
        last + within
    }

    /// A range within one MiB, of at most the promised length.
    fn range(&mut self, write: bool) -> WriteRange {
        let Self { random, contract, manner, .. } = self;
        let block = Bytes::kib(4);
        let len = block * random.between(1, contract.len / block);
        let places = (Bytes::MIB - contract.len) / block;
        let extent = Bytes::MIB * random.below(self.size / Bytes::MIB);
        let offset = extent + block * random.below(places);
        match write && random.chance(manner.odd) {
            false => WriteRange::new(offset, len),
            true => {
                let len = Bytes::new(random.between(1, contract.len.get()));
                WriteRange::new(offset + Bytes::new(random.below(block.get())), len)
            }
        }
    }

    fn call<K: Keeps>(&mut self, context: &mut Context<'_, K>) {
        let many = if self.random.chance(self.manner.bursts) { 5 } else { 1 };
        for _ in 0..many {
            let write = self.random.chance(self.manner.writes);
            // A write that overlaps with another waits for it, and others come before it.
            let range = loop {
                let range = self.range(write);
                if !write || self.writing.iter().all(|other| are_apart(other, &range)) {
                    break range;
                }
            };
            if write {
                self.writing.push(range);
            }
            let step = Step::Tell { called: context.now, range, write };
            self.at(context.now + self.manner.lag, step);
        }
        // A write with two edges is two pieces and two reads: all have their turns before the
        // next call, since what is called meanwhile comes before the second half of it.
        let turns = if self.manner.odd > 0 { 4 } else { 1 };
        let every = self.contract.every * turns;
        let extra = self.random.span(self.contract.every / 4);
        self.at(context.now + every + extra, Step::Call);
    }

    fn tell<K: Keeps>(
        &mut self,
        context: &mut Context<'_, K>,
        called: Instant,
        range: WriteRange,
        write: bool,
    ) {
        let volume = self.volume.clone();
        let WriteRange { offset, len, .. } = range;
        if write {
            let number = self.number(Asked::Room { called, range });
            let target = Some(Target { volume, offset, priority: None });
            let op = Op::Room { len: range.room(), target };
            return context.ask_since(called, self.who(), number, op);
        }
        let due = self.due(offset, called, 1);
        let number = self.number(Asked::Answer { called, due, range });
        let op = Op::Read { volume, offset, len, priority: None };
        context.ask_since(called, self.who(), number, op);
    }

    fn step<K: Keeps>(&mut self, context: &mut Context<'_, K>, step: Step) {
        match step {
            Step::Call => self.call(context),
            Step::Tell { called, range, write } => self.tell(context, called, range, write),
            Step::Release(span) => {
                let number = self.number(Asked::Nothing);
                context.ask(number, Op::Release { span });
            }
            Step::Write { called, range, span } => {
                if let Some(bytes) = context.bytes(&span) {
                    pattern(9, range.offset, bytes);
                }
                let block = Bytes::kib(4).get();
                let (begins, ends) = (range.offset.get(), range.offset.get() + range.len.get());
                let odd = [begins, ends].map(|at| u64::from(!at.is_multiple_of(block)));
                let blocks = ends.div_ceil(block) - begins / block;
                let edges = if blocks == 1 { odd[0].max(odd[1]) } else { odd[0] + odd[1] };
                let pieces = (Bytes::kib(4) * blocks).div_ceil(self.contract.len);
                let due = self.due(range.offset, called, pieces + edges);
                let number = self.number(Asked::Answer { called, due, range });
                let volume = self.volume.clone();
                let op = Op::Write { volume, range, span, priority: None };
                context.ask_since(called, self.who(), number, op);
            }
        }
    }

    fn go_on<K: Keeps>(&mut self, context: &mut Context<'_, K>) {
        while let Some(entry) = self.steps.first_entry()
            && entry.key().0 <= context.now
        {
            let step = entry.remove();
            self.step(context, step);
        }
        if let Some((&(at, _), _)) = self.steps.first_key_value() {
            context.alarm_at(at);
        }
    }
}

impl<K: Keeps> Program<K> for Keeper {
    fn start(&mut self, context: &mut Context<'_, K>) {
        self.at(context.now, Step::Call);
        self.go_on(context);
    }
    fn alarm(&mut self, context: &mut Context<'_, K>) {
        self.go_on(context);
    }
    fn answer(&mut self, context: &mut Context<'_, K>, tag: u64, result: Result<Reply, Error>) {
        let keeps = self.random.span(self.manner.keeps + Duration::from_nanos(1));
        match (self.asked.remove(&tag).expect("it was asked"), result) {
            (_, Err(error)) => self.seen.borrow_mut().errors.push(error),
            (Asked::Room { called, range }, Ok(Reply::Room { room: span })) => {
                // Its bytes take it a while, which is its own time.
                let step = Step::Write { called: called + keeps, range, span };
                self.at(context.now + keeps, step);
            }
            (Asked::Answer { called, due, range }, Ok(reply)) => {
                self.writing.retain(|other| *other != range);
                let mut seen = self.seen.borrow_mut();
                seen.answers += 1;
                seen.longest = seen.longest.max(context.now - called);
                let late = context.now.saturating_since(due);
                seen.late += u64::from(!late.is_zero());
                seen.late_max = seen.late_max.max(late);
                drop(seen);
                if let Reply::Data { bytes: span, .. } = reply {
                    self.at(context.now + keeps, Step::Release(span));
                }
            }
            (Asked::Nothing, Ok(_)) => {}
            (Asked::Room { .. }, Ok(other)) => panic!("{other:?} is no room"),
        }
        self.go_on(context);
    }
}

/// No block is in both.
fn are_apart(one: &WriteRange, other: &WriteRange) -> bool {
    let blocks = |range: &WriteRange| {
        let first = range.offset - range.skip();
        (first, first + range.room())
    };
    let ((a, end_a), (b, end_b)) = (blocks(one), blocks(other));
    end_a <= b || end_b <= a
}

/// Takes memory in every way: rooms that it keeps for a while, and reads.
pub struct Adversary {
    uid: u32,
    volume: String,
    size: Bytes,
    requests: u64,
    priority: Option<Priority>,
    rooms: u64,
    keeps: Duration,
    random: Random,
    kept: BTreeMap<(Instant, u64), Span>,
    /// It is rung then; one ring for all that it asked for by then.
    rings: Option<Instant>,
    next: u64,
}

impl Adversary {
    pub fn new(uid: u32, volume: &str, size: Bytes, requests: u64, seed: u64) -> Self {
        Self {
            uid,
            volume: volume.into(),
            size,
            requests,
            priority: None,
            rooms: 0,
            keeps: Duration::from_millis(1_500),
            random: Random::new(seed),
            kept: BTreeMap::new(),
            rings: None,
            next: 0,
        }
    }

    /// Its reads are of handles that state this.
    pub fn stating(self, priority: Option<Priority>) -> Self {
        Self { priority, ..self }
    }

    /// So much of what it asks for, in percent, is memory that it only keeps.
    pub fn keeping(self, rooms: u64) -> Self {
        Self { rooms, ..self }
    }

    /// It keeps each for so long at the most.
    pub fn holding(self, keeps: Duration) -> Self {
        Self { keeps, ..self }
    }

    fn ask<K: Keeps>(&mut self, context: &mut Context<'_, K>) {
        let block = Bytes::kib(4);
        let len = match self.random.below(3) {
            0 => Bytes::MIB,
            1 => Bytes::kib(64),
            _ => block * self.random.between(1, 256),
        };
        let (volume, priority) = (self.volume.clone(), self.priority);
        let op = match self.random.chance(self.rooms) {
            true => Op::Room { len, target: None },
            false => {
                let offset = block * self.random.below((self.size - len) / block + 1);
                Op::Read { volume, offset, len, priority }
            }
        };
        context.ask_as(user(self.uid), 0, op);
    }

    fn go_on<K: Keeps>(&mut self, context: &mut Context<'_, K>) {
        while let Some(entry) = self.kept.first_entry()
            && entry.key().0 <= context.now
        {
            let span = entry.remove();
            context.ask_as(user(self.uid), 1, Op::Release { span });
        }
        if let Some((&(at, _), _)) = self.kept.first_key_value()
            && self.rings.is_none_or(|rings| at < rings)
        {
            self.rings = Some(at);
            context.alarm_at(at);
        }
    }
}

impl<K: Keeps> Program<K> for Adversary {
    fn start(&mut self, context: &mut Context<'_, K>) {
        (0..self.requests).for_each(|_| self.ask(context));
    }
    fn alarm(&mut self, context: &mut Context<'_, K>) {
        if self.rings.is_some_and(|rings| rings <= context.now) {
            self.rings = None;
        }
        self.go_on(context);
    }
    fn answer(&mut self, context: &mut Context<'_, K>, tag: u64, result: Result<Reply, Error>) {
        let span = match result {
            Ok(Reply::Data { bytes: span, .. } | Reply::Room { room: span }) => span,
            // Something was given back, or there was nothing for long: on with the next.
            Ok(Reply::Done) | Err(Error::NoMemory { .. }) => return self.ask(context),
            other => panic!("{tag} was answered with {other:?}"),
        };
        let keeps = self.random.span(self.keeps);
        self.next += 1;
        self.kept.insert((context.now + keeps, self.next), span);
        self.go_on(context);
    }
}
