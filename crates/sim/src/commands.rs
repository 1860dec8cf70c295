//! Requests as commands: one production [`Planner`], one drive, large requests one after
//! another at random places, and now and then one block of higher rank.
//!
//! The set-up of semi-preemptible I/O (Dimitrijevic et al. 2003), section 4: its
//! experiments and its settings stand here once, for the tests and the laboratory.
//! Repeatable from [`Load::seed`].

use crate::{Known, Random};
use disk::{Drive, HardDisk, Model};
use sched::{Account, Ended, JustInTime, Manner, Part, Planner, Step, expected_waiting_of};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// The paper's chunk: 50 blocks.
pub const CHUNK: Bytes = Bytes::new(50 * SECTOR.get());
/// What Linux cut large requests to.
pub const LINUX: Bytes = Bytes::kib(128);
/// Sixteen million bytes on the outermost tracks: how many sectors, and from where on.
pub const OUTERMOST: [u64; 2] = [1 << 15, 0];
/// Keys of urgent requests begin here.
const URGENT: u64 = 1 << 40;

/// As ever: the commands of a request follow each other, whoever waits.
pub fn not_preemptible() -> Manner {
    Manner { chunk: Some(LINUX), ..Manner::WHOLE }
}

/// The settings of section 4: chunks of 50 blocks, an offset of 1 ms, seeks over
/// more than half of the disk in two.
pub fn as_printed(model: &Model) -> Manner {
    let just_in_time = JustInTime {
        margin: Duration::from_millis(1),
        margin_on_track: Duration::from_millis(1),
        positions: false,
    };
    Manner {
        just_in_time: Some(just_in_time),
        sub_seek: Some(model.cylinders() / 2),
        only_masked: false,
        ..Manner::chunks(CHUNK)
    }
}

/// Ours: the smallest chunk at which this disk streams, the heads positioned by a seek
/// of their own, and a seek split where the turn pays for it.
pub fn ours(model: &Model, direction: Direction) -> Manner {
    let chunk = smallest_chunk(&stream_rates(model, direction, OUTERMOST));
    Manner { chunk: Some(chunk), only_masked: true, ..positioned(model) }
}

/// The same chunks as printed, positioned; every long seek split.
pub fn positioned(model: &Model) -> Manner {
    let just_in_time = JustInTime {
        margin: Duration::from_micros(700),
        margin_on_track: Duration::from_micros(50),
        positions: true,
    };
    Manner { just_in_time: Some(just_in_time), ..as_printed(model) }
}

/// The rates of sequential transfers by size of chunk in sectors, in millions of bytes a
/// second: `sectors` of them in all, from sector `from` on.
pub fn stream_rates(
    model: &Model,
    direction: Direction,
    [sectors, from]: [u64; 2],
) -> Vec<(u64, f64)> {
    let sizes = (3..=11).flat_map(|power| [1 << power, 3 << (power - 1)]);
    sizes
        .map(|size: u64| {
            let mut drive = HardDisk::new(model);
            let access = |chunk: u64| {
                let (lba, len) = (Lba::new(from + chunk * size), SECTOR * size);
                Command::Transfer(Access { lba, len, direction })
            };
            let first = Instant::EPOCH + drive.serve(Instant::EPOCH, &access(0));
            let chunks = sectors / size;
            let mut now = first;
            for chunk in 1..=chunks {
                now += drive.serve(now, &access(chunk));
            }
            now += drive.serve(now, &Command::Flush);
            let bytes = (SECTOR * size * chunks).get() as f64;
            (size, bytes / 1e6 / (now - first).as_secs_f64())
        })
        .collect()
}

/// `a` of figure 3: the smallest chunk with 93 of 100 of the best rate, the profiler's
/// rule.
pub fn smallest_chunk(rates: &[(u64, f64)]) -> Bytes {
    let best = rates.iter().map(|&(_, rate)| rate).fold(0.0, f64::max);
    let first = rates.iter().find(|&&(_, rate)| rate >= 0.93 * best);
    SECTOR * first.expect("some chunk streams").0
}

/// Where the large requests lie, and in which order they are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// Anywhere, as they come.
    Random,
    /// Anywhere, so many at a time, each batch upward.
    Batches(usize),
    /// These, in this order, round and round: a trace.
    Listed(Vec<Lba>),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Load {
    /// Which way the large requests go.
    pub direction: Direction,
    /// Of each, in sectors.
    pub size: u64,
    /// Where they lie.
    pub places: Places,
    /// Urgent requests in a thousand seconds; 0 for none. Each comes at a moment drawn
    /// from its interval.
    pub urgent: u64,
    /// How the large requests are served.
    pub manner: Manner,
    /// For how long requests are made.
    pub span: Duration,
    /// Everything that looks random follows from it.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Every command of large requests, as long as it took.
    pub commands: Vec<Duration>,
    /// Every large request, all of its commands together.
    pub whole: Vec<Duration>,
    /// How long the disk had nothing to do, since a seek was waited for.
    pub idle: Duration,
    /// Of urgent requests, until their command began.
    pub waiting: Vec<Duration>,
    /// Of urgent requests, from arrival to end.
    pub response: Vec<Duration>,
    /// How long it lasted.
    pub time: Duration,
    /// Moved by large requests.
    pub bytes: Bytes,
    /// What the planner did.
    pub account: Account,
}

/// The mean, in milliseconds; zero for none.
pub fn mean(times: &[Duration]) -> f64 {
    times.iter().map(|time| time.as_millis_f64()).sum::<f64>() / times.len().max(1) as f64
}

/// The longest, in milliseconds; zero for none.
pub fn most(times: &[Duration]) -> f64 {
    times.iter().max().map_or(0.0, |time| time.as_millis_f64())
}

impl Found {
    /// Millions of bytes a second, of the large requests.
    pub fn throughput(&self) -> f64 {
        self.bytes.get() as f64 / 1e6 / self.time.as_secs_f64()
    }
    /// The same of what was read on in waits.
    pub fn free(&self) -> f64 {
        self.account.ahead.get() as f64 / 1e6 / self.time.as_secs_f64()
    }
    /// Equation 1 or 2, in milliseconds.
    pub fn expected(&self, preemptible: bool) -> f64 {
        let times = if preemptible { &self.commands } else { &self.whole };
        expected_waiting_of(times, self.idle).as_millis_f64()
    }
}

/// One urgent request in each interval, at a moment drawn from it.
struct Urgent {
    every: Option<u64>,
    from: u64,
    next: Instant,
}

impl Urgent {
    fn new(per_thousand_seconds: u64, random: &mut Random) -> Self {
        let every = 1_000_000_000_000u64.checked_div(per_thousand_seconds);
        let mut urgent = Self { every, from: 0, next: Instant::MAX };
        urgent.draw(random);
        urgent
    }
    fn draw(&mut self, random: &mut Random) {
        let Some(every) = self.every else { return };
        self.next = Instant::from_nanos(self.from + random.below(every));
        self.from += every;
    }
}

/// The large requests, one after the other.
struct Large<'a> {
    load: &'a Load,
    sectors: u64,
    random: Random,
    /// The rest of a batch, the next one last.
    batch: Vec<Lba>,
    asked: usize,
}

impl Large<'_> {
    fn draw(&mut self) -> Lba {
        Lba::new(self.random.below(self.sectors - self.load.size))
    }

    fn next(&mut self) -> Access {
        let lba = match &self.load.places {
            Places::Random => self.draw(),
            Places::Listed(list) => list[self.asked % list.len()],
            &Places::Batches(many) => {
                if self.batch.is_empty() {
                    self.batch = (0..many).map(|_| self.draw()).collect();
                    self.batch.sort_unstable_by(|one, other| other.cmp(one));
                }
                self.batch.pop().expect("a batch has some")
            }
        };
        self.asked += 1;
        Access { lba, len: SECTOR * self.load.size, direction: self.load.direction }
    }
}

/// Serves the load on a fresh drive of this model.
///
/// # Panics
/// Where the model is no hard disk.
pub fn run(model: &Model, load: &Load) -> Found {
    let known = Known::of(model).expect("a hard disk");
    let mut drive = HardDisk::new(model);
    let (mut planner, mut found) = (Planner::new(), Found::default());
    let (mut now, mut done) = (Instant::EPOCH, 0);
    let sectors = model.capacity() / SECTOR;
    let random = Random::new(load.seed);
    let mut large = Large { load, sectors, random, batch: Vec::new(), asked: 0 };
    let mut urgent = Urgent::new(load.urgent, &mut Random::new(load.seed + 1));
    let mut places = Random::new(load.seed + 2);
    let mut arrivals: Vec<(Instant, bool)> = Vec::new();
    let mut service = Duration::ZERO;
    while now < Instant::EPOCH + load.span {
        while urgent.next <= now {
            let lba = Lba::new(places.below(sectors));
            let access = Access { lba, len: SECTOR, direction: Direction::Read };
            let key = URGENT + arrivals.len() as u64;
            planner.submit(key, urgent.next, access, Manner::WHOLE);
            arrivals.push((urgent.next, false));
            urgent.draw(&mut places);
        }
        if large.asked == done {
            let access = large.next();
            planner.submit(done as u64, Instant::MAX, access, load.manner);
        }
        match planner.next(now, &known, Duration::MAX) {
            Step::Idle => unreachable!("there is always a request"),
            Step::Wait { until } => {
                let until = until.min(urgent.next);
                found.idle += until - now;
                now = until;
            }
            Step::Start(piece) => {
                let time = drive.serve(now, &piece.command);
                if let Some(index) = piece.key.checked_sub(URGENT) {
                    let (came, begun) = &mut arrivals[index as usize];
                    if !*begun {
                        found.waiting.push(now - *came);
                        *begun = true;
                    }
                } else {
                    found.commands.push(time);
                    if piece.part != Part::Ahead {
                        service += time;
                    }
                }
                now += time;
                match planner.finished() {
                    Ended::Request { key } if key >= URGENT => {
                        found.response.push(now - arrivals[(key - URGENT) as usize].0);
                    }
                    Ended::Request { .. } => {
                        found.whole.push(std::mem::take(&mut service));
                        done += 1;
                    }
                    Ended::Command | Ended::Ahead { .. } => {}
                }
            }
        }
    }
    found.time = now - Instant::EPOCH;
    found.bytes = SECTOR * load.size * done as u64;
    found.account = planner.account();
    found
}
