//! Who may join, after any sequence of joins, leaves and changes, is what it would be
//! from scratch, and what the definition says; with and without a summary.
#![allow(clippy::print_stdout)] // how much was covered is part of the result

use crate::common;
use crate::common::{Random, SMALL, Ticks, brute, brute_earliest};
use sched::{Refusal, TaskId, TaskSet};
use units::Duration;

/// What may be kept: the utilisation is at most 1 and no difference is below the
/// reserve.
fn fits(reserve: u64, tasks: &[Ticks]) -> bool {
    if tasks.is_empty() {
        return true;
    }
    let known = brute(tasks);
    known.work <= known.common && brute_earliest(tasks, reserve as i64).is_none()
}

/// A set and what is in it.
struct World {
    random: Random,
    reserve: u64,
    set: TaskSet,
    members: Vec<(TaskId, Ticks)>,
    periods: &'static [u64],
    /// The longest cost, as a part of the period.
    part: u64,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    sets: u64,
    admitted: u64,
    refused: u64,
    left: u64,
}

impl World {
    fn new(seed: u64, cells: usize, periods: &'static [u64], part: u64) -> Self {
        let mut random = Random::new(seed);
        let reserve = if random.one_in(2) { random.within(0, 4) } else { 0 };
        let set = TaskSet::new(Duration::from_nanos(reserve)).with_cells_from(cells);
        let (members, counts) = (Vec::new(), Counts::default());
        Self { random, reserve, set, members, periods, part, counts }
    }

    fn task(&mut self) -> Ticks {
        let period = *self.random.pick(self.periods);
        let cost = self.random.within(1, (period / self.part).max(1));
        let is_rate = self.random.one_in(2);
        let deadline = if is_rate { period } else { self.random.within(cost, period) };
        Ticks { cost, deadline, period }
    }

    fn tasks(&self) -> Vec<Ticks> {
        self.members.iter().map(|&(_, task)| task).collect()
    }

    /// Holds an answer against the definition.
    fn judge<T>(&mut self, tasks: &[Ticks], answer: &Result<T, Refusal>) {
        let expected = fits(self.reserve, tasks);
        match answer {
            Ok(_) => assert!(expected, "admitted {tasks:?}, reserve {}", self.reserve),
            Err(refusal) => {
                assert!(!expected && !refusal.undecided, "{refusal:?} {tasks:?} {}", self.reserve);
                let earliest = brute_earliest(tasks, self.reserve as i64);
                let deadline =
                    refusal.deadline.map(|(at, excess)| (at.as_nanos(), excess.as_nanos()));
                assert!(deadline.is_none() || deadline == earliest, "{refusal:?} {tasks:?}");
            }
        }
        self.counts.sets += 1;
        self.counts.admitted += u64::from(expected);
        self.counts.refused += u64::from(!expected);
    }

    fn step(&mut self) {
        let at = self.random.within(0, self.members.len().max(1) as u64 - 1) as usize;
        match self.random.within(0, 9) {
            0..4 => {
                let task = self.task();
                let with: Vec<Ticks> = self.tasks().into_iter().chain([task]).collect();
                let admits = self.set.admits(&task.task());
                self.judge(&with, &admits);
                let added = self.set.add(task.task());
                self.judge(&with, &added);
                self.members.extend(added.map(|id| (id, task)));
            }
            4 => {
                let more: Vec<Ticks> = (0..self.random.within(1, 3)).map(|_| self.task()).collect();
                let with: Vec<Ticks> = self.tasks().into_iter().chain(more.clone()).collect();
                let tasks: Vec<sched::Task> = more.iter().map(Ticks::task).collect();
                let added = self.set.add_all(&tasks);
                self.judge(&with, &added);
                self.members.extend(added.unwrap_or_default().into_iter().zip(more));
            }
            5..7 if !self.members.is_empty() => {
                let task = self.task();
                let (id, _) = self.members[at];
                let mut with = self.tasks();
                with[at] = task;
                let changed = self.set.change(id, task.task());
                self.judge(&with, &changed);
                if changed.is_ok() {
                    self.members[at].1 = task;
                }
                assert_eq!(self.set.get(id), Some(self.members[at].1.task()));
            }
            _ if !self.members.is_empty() => {
                let (id, task) = self.members.swap_remove(at);
                assert_eq!(self.set.remove(id), task.task());
                assert_eq!(self.set.get(id), None);
                self.counts.left += 1;
            }
            _ => {}
        }
    }

    /// Everything that can be asked, against the definition.
    fn look(&mut self) {
        let tasks = self.tasks();
        let least = self.set.slack_least();
        if self.random.one_in(2) {
            let slack = if tasks.is_empty() {
                Duration::MAX
            } else {
                Duration::from_nanos(brute(&tasks).least as u64)
            };
            assert!(least <= slack, "{least} is above {slack} of {tasks:?}");
            assert_eq!(self.set.slack(), slack, "{tasks:?}");
        }
        assert_eq!(self.set.len(), tasks.len());
        for at in [1, 2, 3, 5, 7, 11, 12, 40, 300].map(Duration::from_nanos) {
            assert_eq!(self.set.blocking(at).as_nanos(), common::blocking(&tasks, at.as_nanos()));
            assert_eq!(self.set.demand(at).as_nanos(), common::demand(&tasks, at.as_nanos()));
        }
        let mut fresh = TaskSet::new(self.set.reserve());
        for task in &tasks {
            fresh.add_unchecked(task.task());
        }
        assert_eq!(self.set.utilisation(), fresh.utilisation());
    }
}

fn run(
    name: &str,
    worlds: u64,
    steps: u64,
    cells: &[usize],
    periods: &'static [u64],
    part: u64,
) -> u64 {
    let mut all = Counts::default();
    let mut largest = 0;
    for seed in 0..worlds {
        let cells = cells[seed as usize % cells.len()];
        let mut world = World::new(seed + 1, cells, periods, part);
        for _ in 0..steps {
            world.step();
            world.look();
            largest = largest.max(world.members.len());
        }
        all.sets += world.counts.sets;
        all.admitted += world.counts.admitted;
        all.refused += world.counts.refused;
        all.left += world.counts.left;
    }
    println!(
        "{name}: {} sets judged, {} admitted, {} refused, {} left; the largest of {largest}",
        all.sets, all.admitted, all.refused, all.left
    );
    assert!(all.admitted * 10 > all.sets && all.refused * 10 > all.sets, "one-sided");
    all.sets
}

/// Small worlds, where the definition is computed after every step. The summary is on
/// from the first task, or comes and goes.
#[test]
fn any_sequence_of_small_sets_is_what_the_definition_says() {
    let sets = run("periods up to 12", 1_200, 40, &[1, 3, usize::MAX], SMALL, 4);
    let longer = &[12, 15, 20, 24, 30, 40, 60, 90, 120, 180, 240, 360];
    let sets = sets + run("periods up to 360", 200, 60, &[1, 6, usize::MAX], longer, 12);
    println!("{sets} sets in all");
    assert!(sets > 40_000);
}

/// Sets large enough to have a summary of their own, near all that fits.
#[test]
fn any_sequence_of_large_sets_is_what_the_definition_says() {
    let periods = &[
        840, 1_008, 1_120, 1_260, 1_440, 1_680, 2_016, 2_520, 3_360, 5_040, 10_080, 720, 560, 630,
    ];
    assert!(run("dozens of tasks", 3, 300, &[64, 24], periods, 30) > 400);
}

/// Real sizes: hundreds of streams in nanoseconds, at the edge of what fits. The
/// definition is out of reach; the plain search from scratch stands for it (it is
/// held against the definition in `analysis.rs`).
#[test]
fn any_sequence_of_real_streams_is_what_the_search_from_scratch_says() {
    let (mut admitted, mut refused, mut changed) = (0, 0, 0);
    for seed in 1..=4u64 {
        let mut random = Random::new(seed);
        let reserve = Duration::from_millis(50);
        let mut set = TaskSet::new(reserve);
        let mut plain = TaskSet::new(reserve).with_cells_from(usize::MAX);
        let mut members: Vec<(TaskId, TaskId)> = Vec::new();
        for step in 0..1_200u64 {
            let period = random.within(4_000_000_000, 12_000_000_000);
            let cost = random.within(8_000_000, 30_000_000);
            let deadline = match seed % 2 {
                0 => period,
                _ => random.within(period / 4, period),
            };
            let task = Ticks { cost, deadline, period }.task();
            // Some in commands, of which the longest is in the way of others.
            let command = Duration::from_nanos(random.within(cost / 8, cost));
            let task = if random.one_in(2) { task.in_commands(command) } else { task };
            let leaves = members.len() > 100 && random.one_in(if step < 700 { 8 } else { 3 });
            if leaves {
                let at = random.within(0, members.len() as u64 - 1) as usize;
                let (id, other) = members.swap_remove(at);
                assert_eq!(set.remove(id), plain.remove(other));
            } else if !members.is_empty() && random.one_in(4) {
                let (id, other) = *random.pick(&members);
                let (one, two) = (set.change(id, task), plain.change(other, task));
                assert_eq!(one, two, "seed {seed}, step {step}");
                changed += u64::from(one.is_ok());
            } else {
                match (set.add(task), plain.add(task)) {
                    (Ok(id), Ok(other)) => members.push((id, other)),
                    (Err(one), Err(two)) => {
                        assert_eq!(one, two);
                        refused += 1;
                        continue;
                    }
                    (one, two) => panic!("seed {seed}, step {step}: {one:?}, alone {two:?}"),
                }
                admitted += 1;
            }
            assert!(set.slack_least() <= plain.slack(), "seed {seed}, step {step}");
            assert!(step % 16 != 0 || set.slack() == plain.slack(), "seed {seed}, step {step}");
        }
        let most = set.utilisation();
        println!("seed {seed}: {} streams, {most}, slack {}", set.len(), set.slack());
    }
    println!("{admitted} admitted, {refused} refused, {changed} changed");
    assert!(admitted > 1_200 && refused > 100 && changed > 300);
}

/// Requests in several commands: the longest command that is due later, by its
/// definition, while tasks come and go.
#[test]
fn what_is_in_the_way_is_the_longest_command_due_later() {
    let mut random = Random::new(9);
    let mut looked = 0;
    for cells in [1, 5, usize::MAX] {
        let mut set = TaskSet::new(Duration::ZERO).with_cells_from(cells);
        let mut members: Vec<(TaskId, sched::Task)> = Vec::new();
        for _ in 0..4_000 {
            if members.len() > random.within(0, 30) as usize {
                let at = random.within(0, members.len() as u64 - 1) as usize;
                set.remove(members.swap_remove(at).0);
            } else {
                let period = random.within(4, 60);
                let cost = random.within(1, 4);
                let deadline = random.within(cost, period);
                let command = Duration::from_nanos(random.within(1, cost));
                let task = Ticks { cost, deadline, period }.task().in_commands(command);
                members.push((set.add_unchecked(task), task));
            }
            for at in 0..61 {
                let interval = Duration::from_nanos(at);
                let later = members.iter().filter(|(_, task)| task.deadline > interval);
                let longest = later.map(|(_, task)| task.command).max().unwrap_or_default();
                assert_eq!(set.blocking(interval), longest, "{interval}: {members:?}");
                looked += 1;
            }
        }
    }
    println!("{looked} intervals");
}

#[test]
fn a_batch_is_taken_whole_or_not_at_all() {
    let task = Ticks::rate(10, 1_000).task();
    let mut set = TaskSet::of(Duration::ZERO, &[task; 90]).unwrap();
    let before = (set.slack(), set.utilisation());
    let refusal = set.add_all(&[task; 20]).unwrap_err();
    assert!(refusal.utilisation_ppm >= 1_100_000 && !refusal.undecided);
    assert_eq!((set.len(), set.slack(), set.utilisation()), (90, before.0, before.1));
    assert_eq!(set.add_all(&[task; 10]).unwrap().len(), 10);
    assert_eq!(set.slack(), Duration::ZERO);
}
