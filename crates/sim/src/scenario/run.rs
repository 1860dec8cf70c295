//! One run, or several at once.

use super::faults::{self, Turn};
use super::outcome::{Outcome, PowerCut};
use super::plan::{FaultKind, FaultPlan, Scenario};
use super::setup::{self, Begin, SetupError};
use crate::{Random, runs};
use node::{Mode, Status};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use units::{Bytes, Duration, Instant};

/// A run looks up so many times at least, and after so much simulated time.
const SLICES: u64 = 400;
const SLICE_MAX: Duration = Duration::from_secs(20);

/// How whoever started runs watches and ends them.
#[derive(Debug, Default)]
pub struct Control {
    /// Set to end every run where it is.
    pub stop: AtomicBool,
    /// Simulated nanoseconds of all runs so far.
    pub simulated_ns: AtomicU64,
}

/// What the node's own counters were at some time, and in lives of it that ended.
#[derive(Clone, Debug, Default)]
struct Traffic(Vec<[Bytes; 2]>);

impl Traffic {
    fn of(status: &Status) -> Self {
        let both = status
            .disks
            .iter()
            .map(|disk| [disk.account.real_time.bytes, disk.account.best_effort.bytes]);
        Self(both.collect())
    }

    fn plus(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine[0] += theirs[0];
            mine[1] += theirs[1];
        }
        self
    }
}

/// A run under way.
struct Run<'a> {
    scenario: &'a Scenario,
    seed: u64,
    begin: Begin,
    /// Moved before what is counted, and in lives of the node that have ended.
    before: Traffic,
    earlier: Traffic,
    windows_max: Bytes,
    best_effort_max: Bytes,
    promised_ppm: Vec<u64>,
    power_cuts: Vec<PowerCut>,
    dead: Option<String>,
}

/// Plays `scenario` once; everything that looks random follows from `seed`.
///
/// # Errors
/// [`SetupError`] where it cannot begin.
pub fn run(scenario: &Scenario, seed: u64, control: &Control) -> Result<Outcome, SetupError> {
    let begin = setup::begin(scenario, seed)?;
    let none = Traffic(vec![[Bytes::ZERO; 2]; scenario.disks.len()]);
    let mut run = Run {
        scenario,
        seed,
        begin,
        before: none.clone(),
        earlier: none,
        windows_max: Bytes::ZERO,
        best_effort_max: Bytes::ZERO,
        promised_ppm: vec![0; scenario.disks.len()],
        power_cuts: Vec::new(),
        dead: None,
    };
    Ok(run.play(control))
}

impl Run<'_> {
    fn play(&mut self, control: &Control) -> Outcome {
        let (end, warm) = (self.scenario.whole(), self.scenario.warm_up);
        let mut turns = faults::turns(&self.scenario.faults).into_iter().peekable();
        let slice = Duration::from_nanos((end.as_nanos() / SLICES).max(1)).min(SLICE_MAX);
        let (mut now, mut stopped) = (Duration::ZERO, false);
        while now < end && self.dead.is_none() {
            stopped = control.stop.load(Ordering::Relaxed);
            if stopped {
                break;
            }
            let mut next = (now + slice).min(end);
            if now < warm {
                next = next.min(warm);
            }
            next = turns.peek().map_or(next, |turn| next.min(turn.at.max(now)));
            self.begin.world.run_until(Instant::EPOCH + next);
            control.simulated_ns.fetch_add((next - now).as_nanos(), Ordering::Relaxed);
            if now < warm && next == warm {
                self.before = self.traffic();
            }
            now = next;
            while let Some(turn) = turns.next_if(|turn| turn.at <= now) {
                now = now.max(self.turn(turn));
            }
            self.look();
        }
        self.outcome(stopped)
    }

    /// A fault begins or ends; the time after it.
    fn turn(&mut self, turn: Turn) -> Duration {
        let plan = &self.scenario.faults[turn.fault];
        if plan.kind == FaultKind::PowerCut {
            self.power_cut(&plan.clone());
            return plan.at + plan.lasts;
        }
        faults::turn(&mut self.begin.world, &self.scenario.faults, turn, self.seed);
        turn.at
    }

    fn power_cut(&mut self, plan: &FaultPlan) {
        self.earlier = self.traffic();
        let Begin { world, ledger } = &mut self.begin;
        let before = world.node.status(world.now());
        let writers = before.streams.iter().filter(|stream| stream.mode == Mode::Write);
        let durable: Vec<(String, Bytes)> =
            writers.map(|stream| (stream.volume.clone(), stream.durable)).collect();
        ledger.borrow_mut().restarted();
        let back = Instant::EPOCH + plan.at + plan.lasts;
        let mut random = Random::new(self.seed ^ plan.at.as_nanos());
        let scenario = self.scenario;
        let returned =
            world.cut_and_return(back, &mut random, |disks| setup::node(scenario, disks));
        if let Err(why) = returned {
            self.dead = Some(why);
            return;
        }
        let after = world.node.status(world.now());
        let length = |name: &String| {
            let volume = after.volumes.iter().find(|volume| volume.name == *name);
            volume.map_or(Bytes::ZERO, |volume| volume.length)
        };
        let lost = durable.iter().map(|(name, upto)| upto.saturating_sub(length(name))).sum();
        self.power_cuts.push(PowerCut {
            at: plan.at,
            writers: durable.len() as u64,
            durable: durable.iter().map(|&(_, upto)| upto).sum(),
            lost,
        });
    }

    fn traffic(&self) -> Traffic {
        let world = &self.begin.world;
        Traffic::of(&world.node.status(world.now())).plus(&self.earlier)
    }

    fn look(&mut self) {
        if self.dead.is_some() {
            return;
        }
        let world = &self.begin.world;
        let status = world.node.status(world.now());
        self.windows_max = self.windows_max.max(status.memory.windows);
        self.best_effort_max = self.best_effort_max.max(status.memory.best_effort);
        for (most, disk) in self.promised_ppm.iter_mut().zip(&status.disks) {
            *most = (*most).max(disk.utilisation_ppm);
        }
    }

    fn outcome(&mut self, stopped: bool) -> Outcome {
        let now = self.begin.world.now();
        let total = match self.dead {
            Some(_) => self.earlier.clone(),
            None => self.traffic(),
        };
        let mut outcome = self.begin.ledger.borrow().outcome(self.seed, now);
        for (index, disk) in outcome.disks.iter_mut().enumerate() {
            let ([promised, best_effort], before) = (total.0[index], self.before.0[index]);
            disk.promised = promised.saturating_sub(before[0]);
            disk.best_effort = best_effort.saturating_sub(before[1]);
            disk.promised_ppm = self.promised_ppm[index];
        }
        outcome.stopped = stopped;
        outcome.windows_max = self.windows_max;
        outcome.best_effort_max = self.best_effort_max;
        outcome.power_cuts = core::mem::take(&mut self.power_cuts);
        outcome.dead = self.dead.take();
        outcome
    }
}

/// Plays `scenario` once for each seed, by up to so many threads. The outcomes are in
/// the order of the seeds and do not depend on the number of threads.
///
/// # Errors
/// The first [`SetupError`], in the order of the seeds.
///
/// # Panics
/// Where a run does.
pub fn run_all(
    scenario: &Scenario,
    seeds: &[u64],
    workers: NonZero<usize>,
    control: &Control,
) -> Result<Vec<Outcome>, SetupError> {
    let outcomes = runs::in_parallel(seeds, workers, |&seed| run(scenario, seed, control));
    outcomes.into_iter().collect()
}
