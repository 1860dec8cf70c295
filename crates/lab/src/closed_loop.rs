//! Programs that ask again once they are answered, on one *production* schedule. A sector
//! takes a tenth of a millisecond, wherever the heads are.

use sched::{Class, Next, Predict, Request, Schedule};
use std::collections::{BTreeMap, VecDeque};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

const SECTOR_TIME: Duration = Duration::from_micros(100);

struct Even;

impl Predict for Even {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        let access = command.access().expect("programs only read and write");
        SECTOR_TIME * (access.len / SECTOR)
    }
}

/// When a program asks.
#[derive(Clone, Copy)]
pub(crate) enum Asks {
    /// At once, until so many wait.
    Greedy(u64),
    /// So long after it was answered.
    After(Duration),
    /// Again and again after so long, answered or not, and first so long after the start.
    Every(Duration, Duration),
    /// Once, so long after the start.
    Once(Duration),
}

/// A program that asks for one size in one direction.
pub(crate) struct Program {
    pub class: Class,
    pub direction: Direction,
    pub sectors: u64,
    pub asks: Asks,
    /// The first sector of its n-th request, from 0.
    pub place: fn(u64) -> u64,
    /// What is added to each.
    pub base: u64,
}

/// A request that was served.
#[derive(Clone, Copy)]
pub(crate) struct Served {
    /// Its program's index, and which of its requests it is.
    pub program: usize,
    pub number: u64,
    pub asked: Instant,
    /// When the disk was given it, when the disk began with it, and when it was done.
    pub given: Instant,
    pub begun: Instant,
    pub done: Instant,
}

impl Served {
    /// From its program's call to the answer.
    pub(crate) fn response(&self) -> Duration {
        self.done - self.asked
    }
}

struct Running<'a> {
    schedule: Schedule,
    programs: &'a [Program],
    asked: Vec<u64>,
    waiting: BTreeMap<u64, Served>,
    /// Which programs ask next: by instant, then in the order in which that was known.
    coming: BTreeMap<(Instant, u64), usize>,
    keys: u64,
}

impl Running<'_> {
    fn come(&mut self, at: Instant, program: usize) {
        self.keys += 1;
        self.coming.insert((at, self.keys), program);
    }

    fn ask(&mut self, now: Instant, index: usize) {
        let program = &self.programs[index];
        let number = self.asked[index];
        self.asked[index] += 1;
        self.keys += 1;
        let lba = Lba::new(program.base + (program.place)(number));
        let len = Bytes::new(SECTOR.get() * program.sectors);
        let command = Command::Transfer(Access { lba, len, direction: program.direction });
        self.schedule.submit(now, self.keys, Request { class: program.class, command });
        let served =
            Served { program: index, number, asked: now, given: now, begun: now, done: now };
        self.waiting.insert(self.keys, served);
        if let Asks::Every(period, _) = program.asks {
            self.come(now + period, index);
        }
    }

    fn answered(&mut self, now: Instant, program: usize) {
        match self.programs[program].asks {
            Asks::Greedy(_) => self.come(now, program),
            Asks::After(pause) => self.come(now + pause, program),
            Asks::Every(..) | Asks::Once(_) => {}
        }
    }
}

/// What is served within `span`, in the order in which the disk was given it. The schedule may
/// hold several commands; the disk serves them one after another.
pub(crate) fn serve(schedule: Schedule, programs: &[Program], span: Duration) -> Vec<Served> {
    let (waiting, coming) = (BTreeMap::new(), BTreeMap::new());
    let asked = vec![0; programs.len()];
    let mut running = Running { schedule, programs, asked, waiting, coming, keys: 0 };
    for (index, program) in programs.iter().enumerate() {
        match program.asks {
            Asks::Greedy(most) => (0..most).for_each(|_| running.come(Instant::EPOCH, index)),
            Asks::Once(first) | Asks::Every(_, first) => {
                running.come(Instant::EPOCH + first, index)
            }
            Asks::After(_) => running.come(Instant::EPOCH, index),
        }
    }
    let (mut held, mut all) = (VecDeque::<(u64, Served)>::new(), Vec::new());
    let (mut now, end) = (Instant::EPOCH, Instant::EPOCH + span);
    while now < end {
        while let Some((&(at, key), &program)) = running.coming.first_key_value()
            && at <= now
        {
            running.coming.remove(&(at, key));
            running.ask(now, program);
        }
        while let Some(&(key, served)) = held.front()
            && served.done <= now
        {
            held.pop_front();
            running.schedule.finished(now, key);
            running.answered(now, served.program);
            all.push(served);
        }
        let mut wake = running.coming.first_key_value().map(|(&(at, _), _)| at);
        match running.schedule.next(now, &Even) {
            Next::Start { key, predicted } => {
                let served = running.waiting.remove(&key).expect("it waits");
                let begun = held.back().map_or(now, |(_, last)| last.done.max(now));
                let served = Served { given: now, begun, done: begun + predicted, ..served };
                held.push_back((key, served));
                wake = Some(now);
            }
            Next::Wait { until } => wake = wake.into_iter().chain(until).min(),
        }
        let done = held.front().map(|(_, served)| served.done);
        match wake.into_iter().chain(done).min() {
            Some(next) => now = now.max(next),
            None => break,
        }
    }
    all
}
