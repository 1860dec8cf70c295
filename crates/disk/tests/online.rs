//! What is learned of a disk at work, on every model: an honest disk's profile stays
//! fresh under changing loads; one that promises too much, or a disk that has become
//! slower, is found within a stated number of requests.
#![allow(clippy::print_stdout)] // the table is the result

use crate::common::{Random, hold_document};
use disk::online::{Completion, Observations, Observed, Staleness, Verdict};
use disk::{Drive, Emulated, Head, Model, Profile};
use std::fmt::Write;
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

const REQUESTS: u64 = 100_000;

/// How the disk and its profile differ from honest ones.
#[derive(Clone, Copy, Debug)]
struct Lie {
    /// Bounds are so many percent of the true ones.
    bounds: u64,
    /// From so many requests on, everything takes so many percent.
    slower: (u64, u64),
}

const HONEST: Lie = Lie { bounds: 100, slower: (u64::MAX, 100) };

/// A load that changes every few thousand requests: anything anywhere, one sequential
/// run, three streams with small requests between; with and without pauses.
struct Load {
    random: Random,
    end: u64,
    streams: [u64; 3],
}

impl Load {
    fn next(&mut self, step: u64) -> (Access, Duration) {
        let phase = step / 3_000 % 5;
        let sizes = [8, 128, 512, 2_048];
        let (lba, sectors) = match (phase, step % 4) {
            (0 | 1, _) => {
                let sectors = sizes[self.random.below(4) as usize];
                (self.random.below(self.end - sectors), sectors)
            }
            (2, _) => (self.stream(0, 512), 512),
            (_, 3) => (self.random.below(self.end - 8), 8),
            (_, stream) => (self.stream(stream as usize, 512), 512),
        };
        let write = self.random.below(3) == 0;
        let direction = if write { Direction::Write } else { Direction::Read };
        let pause = if phase.is_multiple_of(2) { 0 } else { self.random.below(20_000_000) };
        let access = Access { lba: Lba::new(lba), len: SECTOR * sectors, direction };
        (access, Duration::from_nanos(pause))
    }

    fn stream(&mut self, index: usize, sectors: u64) -> u64 {
        let at = self.streams[index];
        let at = if at + sectors > self.end { 0 } else { at };
        self.streams[index] = at + sectors;
        at
    }
}

struct Outcome {
    /// The request at which the first verdict but fresh was given, and the verdict.
    found: Option<(u64, Verdict)>,
    /// All that was seen by then.
    seen: Observed,
    drift_max: u64,
}

impl Outcome {
    fn told(&self) -> String {
        match self.found {
            Some((request, verdict)) => format!("{verdict}, at request {request}"),
            None => format!("fresh, {} overruns", self.seen.overruns),
        }
    }
}

/// Runs the load until a verdict is not fresh.
fn run(model: &Model, lie: Lie) -> Outcome {
    let profile = Profile::of(model);
    let (mut disk, mut head) = (Emulated::new(model), Head::at(Lba::new(0)));
    let mut seen = Observations::new(&profile, profile.capacity());
    let end = profile.capacity() / SECTOR;
    let mut load = Load { random: Random(5), end, streams: [0, end / 3, end / 4 * 3] };
    let (mut now, mut drift_max) = (Instant::EPOCH, 0);
    for step in 0..REQUESTS {
        let (access, pause) = load.next(step);
        let command = Command::Transfer(access);
        let bound = (head.bound(&profile, &command) + profile.latency()) * lie.bounds / 100;
        let time = disk.serve(now, &command);
        let percent = if step < lie.slower.0 { 100 } else { lie.slower.1 };
        let actual = time * percent / 100;
        head.completed(&profile, &access, time);
        now = now + actual.max(time) + pause;
        seen.completed(
            &profile,
            &Completion { command, bound, actual, alone: true, good: true, now },
        );
        drift_max = drift_max.max(seen.drift_ppm());
        let verdict = seen.verdict();
        if verdict != Verdict::Fresh {
            return Outcome { found: Some((step, verdict)), seen: seen.observed(), drift_max };
        }
    }
    Outcome { found: None, seen: seen.observed(), drift_max }
}

#[test]
fn an_honest_disk_stays_fresh_and_one_that_is_not_is_found() {
    let mut table = String::from(
        "| disk | time / bound | farthest drift | bounds of 90 % | 30 % slower from request \
         20,000 on |\n|---|---|---|---|---|\n",
    );
    for name in Model::names() {
        let model = Model::named(name).unwrap();
        let honest = run(&model, HONEST);
        let bold = run(&model, Lie { bounds: 90, ..HONEST });
        let slower = run(&model, Lie { slower: (20_000, 130), ..HONEST });
        let percent = |ppm: u64| format!("{} %", ppm / 10_000);
        writeln!(
            table,
            "| {name} | {} | {} | {} | {} |",
            percent(honest.seen.ratio_ppm),
            percent(honest.drift_max),
            bold.told(),
            slower.told()
        )
        .expect("text grows");
        assert_eq!((honest.found, honest.seen.overruns), (None, 0), "{name}");
        assert_eq!(honest.seen.commands, REQUESTS);
        assert!(honest.seen.suspects.is_empty(), "{name}");
        let (at, _) = slower.found.expect("a slower disk is found");
        assert!((20_000..22_500).contains(&at), "{name}: {at}");
        match bold.found {
            Some((at, Verdict::Stale { why: Staleness::Overruns { ppm, .. } })) => {
                assert!(at < 1_000 && ppm > 10_000, "{name}: {at}, {ppm}");
            }
            // A pause to clear blocks is in every bound and rarely met.
            other => {
                assert!(!model.is_hard_disk(), "{name}: {other:?}");
                assert!(bold.seen.overruns < REQUESTS / 1_000, "the bounds do not hold");
            }
        }
    }
    println!("{table}");
    hold_document("online", &table);
}
