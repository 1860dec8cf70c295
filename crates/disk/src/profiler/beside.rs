//! Whether two targets share the way to the host: a bus, a controller, or the disk
//! that both are on.
//!
//! Each reads alone, and then both at once, turn and turn about, so that what else the
//! host does spoils both alike. One place again and again comes from the cache at the
//! speed of the bus, which shows a bus that is quicker than the platters; one block after
//! the other shows one that is not, and two targets on one arm (Clockwise thesis, sections
//! 4.3.6 and 4.3.7, where speed-ups over several disks tell the same).
//!
//! A pure state machine like [`Profiler`](super::Profiler): it asks, is told, and ends.
//!
//! Invariants: reads only; a median over rounds decides, never one late answer.

use super::question::Timing;
use super::session::{nanos, span};
use super::statistics::median;
use crate::Error;
use crate::error::ensure;
use crate::random::Random;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use units::{Access, Bytes, Command, Direction, Duration, Lba, SECTOR};

/// Reads of each target in a round; the first two find their way to it.
const READS: usize = 8;
const READS_FIRST: usize = 2;
/// Rounds of each kind.
const ROUNDS: usize = 11;
/// Rounds that are asked once more in all, because one target had ended before the other
/// was under way, as a busy host lets it happen: not at once is not beside.
const REPEATS: usize = 200;
/// Both take so many hundredths of the time alone when they certainly share, and at the
/// most so many when they do not. What lies between may be the host.
const SHARED_PERCENT: u64 = 115;
const APART_PERCENT: u64 = 105;

/// Reads for both targets, to begin at the same time, one at a time on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// For the one and the other; none for one that rests.
    pub commands: [Vec<Command>; 2],
}

/// Which of the targets read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    One(usize),
    Both,
}

/// What they read: so much at a time, and whether onward or one place again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    len: Bytes,
    onward: bool,
}

/// 128 KiB fit into a segment of most caches. Where 1 MiB does, too, the bus is quick,
/// and a short read is mostly overhead.
const KINDS: [Kind; 3] = [
    Kind { len: Bytes::kib(128), onward: false },
    Kind { len: Bytes::kib(128), onward: true },
    Kind { len: Bytes::mib(1), onward: false },
];
const TURNS: [Who; 3] = [Who::One(0), Who::One(1), Who::Both];

/// A measurement of two targets in progress.
pub struct Beside {
    capacities: [Bytes; 2],
    random: Random,
    step: usize,
    repeats: usize,
    /// Medians of rounds, by kind and target: alone, and beside the other.
    seen: [[[Vec<i64>; 2]; 2]; KINDS.len()],
}

impl Beside {
    /// For two targets of these capacities.
    ///
    /// # Errors
    /// When one is too small to learn anything from.
    pub fn new(capacities: [Bytes; 2]) -> Result<Self, Error> {
        for capacity in capacities {
            ensure!(
                capacity >= Bytes::mib(8),
                "the target holds {capacity}; give at least 8 MiB, or nothing can be told apart"
            );
        }
        Ok(Self {
            capacities,
            random: Random::new(0xbe51de),
            step: 0,
            repeats: 0,
            seen: Default::default(),
        })
    }

    fn now(&self) -> (usize, Who) {
        (self.step / TURNS.len() % KINDS.len(), TURNS[self.step % TURNS.len()])
    }

    /// What to read next; nothing when enough is known. Each call draws new places.
    pub fn poll(&mut self) -> Option<Round> {
        if self.step == KINDS.len() * TURNS.len() * ROUNDS {
            return None;
        }
        let (kind, who) = self.now();
        let commands = [0, 1].map(|target| match who {
            Who::One(one) if one != target => Vec::new(),
            _ => self.reads(target, KINDS[kind]),
        });
        Some(Round { commands })
    }

    fn reads(&mut self, target: usize, Kind { len, onward }: Kind) -> Vec<Command> {
        let blocks = self.capacities[target] / len;
        let first = self.random.below(blocks - READS as u64 + 1);
        let read = |block: u64| {
            let lba = Lba::new(block * (len / SECTOR));
            Command::Transfer(Access { lba, len, direction: Direction::Read })
        };
        (0..READS as u64).map(|n| read(first + if onward { n } else { 0 })).collect()
    }

    /// Takes the answers to the last round. Panics when none was asked.
    pub fn done(&mut self, answers: [&[Timing]; 2]) {
        let (kind, who) = self.now();
        let times = [0, 1].map(|target| {
            let other = answers[1 - target].iter().map(|answer| answer.finished).max();
            // What the other had ended before was not beside it.
            let beside = |answer: &&Timing| match (who, other) {
                (Who::Both, Some(end)) => answer.started < end,
                _ => true,
            };
            let right = answers[target].iter().skip(READS_FIRST).filter(|one| !one.failed);
            let apart = right.clone().next().is_some() && !right.clone().any(|one| beside(&one));
            let times = right.filter(beside).map(|answer| nanos(answer.taken()));
            (times.collect::<Vec<i64>>(), apart)
        });
        if times.iter().any(|(_, apart)| *apart) && self.repeats < REPEATS {
            self.repeats += 1;
            return;
        }
        for (target, (times, _)) in times.iter().enumerate() {
            if !times.is_empty() {
                let seen = &mut self.seen[kind][target];
                seen[usize::from(who == Who::Both)].push(median(times));
            }
        }
        self.step += 1;
    }

    /// What was found; nothing where a target did not answer, or the host never let both
    /// read at once.
    pub fn sharing(&self) -> Option<Sharing> {
        let times = |target: &[Vec<i64>; 2]| {
            let enough = target.iter().all(|times| times.len() > ROUNDS / 2);
            enough.then(|| [span(median(&target[0])), span(median(&target[1]))])
        };
        let pair = |(kind, seen): (&Kind, &[[Vec<i64>; 2]; 2])| {
            let times = [times(&seen[0])?, times(&seen[1])?];
            Some(SharingSeen { len: kind.len, onward: kind.onward, times })
        };
        let seen = KINDS.iter().zip(&self.seen).map(pair).collect::<Option<_>>()?;
        Some(Sharing { seen })
    }
}

/// What was seen of two targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// By kind of read.
    pub seen: Vec<SharingSeen>,
}

/// How long reads of one kind took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharingSeen {
    /// How much each moved.
    pub len: Bytes,
    /// Whether each began where the last one ended, or all at one place.
    pub onward: bool,
    /// By target: alone, and beside the other; medians.
    pub times: [[Duration; 2]; 2],
}

impl SharingSeen {
    /// How much longer reads took beside the other's, the mean of both targets, in
    /// percent of the time alone.
    fn percent(&self) -> u64 {
        let of = |[alone, both]: [Duration; 2]| both.as_nanos() * 100 / alone.as_nanos().max(1);
        u64::midpoint(of(self.times[0]), of(self.times[1]))
    }
}

/// What the times mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// They share it.
    Shared,
    /// They do not, or it is quick enough for both.
    Apart,
    /// It cannot be told.
    Unclear,
}

impl Sharing {
    /// How much longer reads take beside the other's, in percent of the time alone, of
    /// the kind that suffers most.
    pub fn percent(&self) -> u64 {
        self.seen.iter().map(SharingSeen::percent).max().unwrap_or(100)
    }

    /// Whether they share the way to the host.
    pub fn together(&self) -> Together {
        match self.percent() {
            percent if percent >= SHARED_PERCENT => Together::Shared,
            percent if percent <= APART_PERCENT => Together::Apart,
            _ => Together::Unclear,
        }
    }

    /// One line for a person, and what to do about it.
    pub fn verdict(&self, other: &str) -> String {
        let percent = self.percent();
        match self.together() {
            Together::Shared => format!(
                "shares its bus (or the disk itself) with {other}: while both read, a read takes \
                 {percent} % of its time alone, which this profile does not count; describe the \
                 bus in both profiles ([bus], or `slackline pool create --bus`), or give \
                 contracts to one of them only"
            ),
            Together::Apart => format!("keeps its times while {other} reads ({percent} %)"),
            Together::Unclear => format!(
                "whether it shares its bus with {other} cannot be told: {percent} % of its time \
                 alone; measure again while the machine is idle"
            ),
        }
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |[alone, both]: [Duration; 2]| format!("{alone} alone, {both} beside");
        for seen in &self.seen {
            let what = if seen.onward { "onward" } else { "at one place" };
            let [one, other] = seen.times.map(part);
            writeln!(f, "{} {what}: {one}; the other {other}", seen.len)?;
        }
        Ok(())
    }
}
