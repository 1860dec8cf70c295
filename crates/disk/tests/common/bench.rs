//! A drive behind a host whose clock and wake-ups are late by chance: what the
//! profiler sees of it.

use super::Random;
use disk::Drive;
use disk::profiler::{Findings, Options, Profiler, Question, Step, Timing};
use units::{Bytes, Duration, Instant};

/// How late a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Every timestamp by some microseconds, one in a hundred by up to 8 ms.
    Usual,
    /// An emulated disk on a busy machine, as its own figures show it: each answer
    /// by 30 to 60 us, one in twenty by up to 1 ms, one in a hundred by up to 8 ms,
    /// one in a thousand by up to 40 ms; and commands reach the disk 20 to 60 us
    /// after their timestamp, one in fifty by up to 8 ms.
    Busy,
}

impl Host {
    fn late(
        self,
        random: &mut Random,
        usual_wild_in: u64,
        busy: fn(&mut Random) -> u64,
    ) -> Duration {
        let ns = match self {
            Self::Usual => {
                let small = random.below(9_000) + random.below(9_000);
                small + if random.below(usual_wild_in) == 0 { random.below(8_000_000) } else { 0 }
            }
            Self::Busy => busy(random),
        };
        Duration::from_nanos(ns)
    }

    /// From the timestamp to the disk. On the usual host an interruption right there is
    /// rare; between two programs it is not.
    pub fn takes_in(self, random: &mut Random) -> Duration {
        self.late(random, 2_000, |random| {
            20_000
                + random.below(40_000)
                + if random.below(50) == 0 { random.below(8_000_000) } else { 0 }
        })
    }

    /// From the disk's end to the timestamp.
    pub fn answers(self, random: &mut Random) -> Duration {
        self.late(random, 100, |random| {
            let wild = match random.below(1_000) {
                0 => random.below(40_000_000),
                1..=10 => random.below(8_000_000),
                11..=60 => random.below(1_000_000),
                _ => 0,
            };
            30_000 + random.below(30_000) + wild
        })
    }
}

/// A drive behind a host.
pub struct Bench {
    drive: Box<dyn Drive>,
    random: Random,
    /// The time of the next command.
    pub now: Instant,
    /// The longest command so far.
    pub longest: Bytes,
    host: Host,
}

impl Bench {
    /// Behind the usual host.
    pub fn new(drive: Box<dyn Drive>) -> Self {
        Self::behind(drive, Host::Usual)
    }

    pub fn behind(drive: Box<dyn Drive>, host: Host) -> Self {
        let now = Instant::from_nanos(1_234_567_891);
        // Another host has other luck: SLACKLINE_SEED=7.
        let seed = std::env::var("SLACKLINE_SEED").ok().and_then(|seed| seed.parse().ok());
        Self { drive, random: Random(seed.unwrap_or(42)), now, longest: Bytes::ZERO, host }
    }

    pub fn answer(&mut self, question: &Question) -> Vec<Timing> {
        let mut answers = Vec::new();
        let mut delay = question.delay;
        for command in &question.commands {
            let len = command.access().map_or(Bytes::ZERO, |access| access.len);
            self.longest = self.longest.max(len);
            let started = self.now + delay + Host::Usual.answers(&mut self.random);
            let begin = started + self.host.takes_in(&mut self.random);
            let end = begin + self.drive.serve(begin, command);
            self.now = end + self.host.answers(&mut self.random);
            answers.push(Timing { started, finished: self.now, failed: false });
            delay = Duration::ZERO;
        }
        answers
    }

    pub fn profile(&mut self, capacity: Bytes, options: Options) -> Findings {
        let mut profiler = Profiler::new(capacity, options).unwrap();
        let (begun, mut stage) = (self.now, "");
        while let Step::Ask(question) = profiler.poll() {
            let progress = profiler.progress();
            if std::env::var_os("SLACKLINE_STAGES").is_some() && progress.stage != stage {
                stage = progress.stage;
                println!("  {stage} after {} and {} commands", self.now - begun, progress.commands);
            }
            let answers = self.answer(&question);
            profiler.done(&answers);
        }
        let findings = profiler.findings().unwrap().clone();
        println!("{} commands, {:?} of disk time", findings.commands, self.now - begun);
        findings
    }
}
