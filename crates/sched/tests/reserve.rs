//! What admission sets aside for best effort beside what contracts are in each other's way.
//!
//! A policy with the exact online slack needs the larger of the reserve and the blocking at
//! every deadline, not their sum (scheduling.md, section 11): against the definition, in all
//! behaviours of small worlds, and in one large world run.
#![allow(clippy::print_stdout)] // how much was searched is part of the result

use crate::common;
use crate::common::{Random, Ticks, blocking, brute, common_multiple, demand, random_set};
use crate::world::{Rules, search};
use sched::{
    Class, Contract, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskSet,
};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

fn ns(ticks: u64) -> Duration {
    Duration::from_nanos(ticks)
}

/// `demand(L) + max(blocking(L), reserve) <= L` at every deadline, by the definition. With a
/// reserve the whole disk cannot be promised.
fn fits(set: &[Ticks], reserve: u64) -> bool {
    let known = brute(set);
    let end = known.common + set.iter().map(|task| task.deadline).max().unwrap();
    let at_all = |at: u64| demand(set, at) + blocking(set, at).max(reserve) <= at;
    let deadlines = set.iter().flat_map(|task| (task.deadline..=end).step_by(task.period as usize));
    known.work <= known.common && deadlines.into_iter().all(at_all)
}

fn admits(set: &[Ticks], reserve: u64, has_online_slack: bool, cells_from: usize) -> bool {
    let empty = TaskSet::new(ns(reserve)).with_cells_from(cells_from);
    let mut tasks = empty.with_online_slack(has_online_slack);
    // One at a time: the larger set is the harder one.
    set.iter().all(|task| tasks.add(task.task()).is_ok())
}

#[test]
fn admission_with_online_slack_is_its_definition() {
    let mut random = Random::new(11);
    let (mut yes, mut more) = (0, 0);
    for _ in 0..20_000 {
        let tasks = random.within(1, 5);
        let set = random_set(&mut random, tasks, common::SMALL, true);
        let reserve = random.within(0, 6);
        if common_multiple(&set) > 30_000 {
            continue;
        }
        let fits = fits(&set, reserve);
        for cells_from in [1, 64] {
            let admitted = admits(&set, reserve, true, cells_from);
            assert_eq!(admitted, fits, "{set:?} beside {reserve}, cells from {cells_from}");
        }
        let by_the_sum = admits(&set, reserve, false, 64);
        assert!(fits || !by_the_sum, "{set:?} beside {reserve}");
        (yes, more) = (yes + u64::from(fits), more + u64::from(fits && !by_the_sum));
    }
    println!("{yes} sets fit, {more} of them not with the sum");
    assert!(more > 200 && yes > 2 * more);
}

/// Tasks that leave or change give back what they took, with the summary and without.
#[test]
fn what_leaves_was_never_there() {
    let mut random = Random::new(12);
    for cells_from in [1, 64] {
        for _ in 0..2_000 {
            let set = random_set(&mut random, 4, common::SMALL, true);
            let reserve = random.within(1, 5);
            let empty = TaskSet::new(ns(reserve)).with_cells_from(cells_from);
            let mut tasks = empty.with_online_slack(true);
            let ids: Vec<_> = set.iter().map(|task| tasks.add(task.task()).ok()).collect();
            let kept: Vec<Ticks> = set
                .iter()
                .zip(&ids)
                .skip(1)
                .filter(|(_, id)| id.is_some())
                .map(|(t, _)| *t)
                .collect();
            if let Some(first) = ids[0] {
                tasks.remove(first);
            }
            if kept.is_empty() {
                continue;
            }
            let last = random_set(&mut random, 1, common::SMALL, true)[0];
            let all: Vec<Ticks> = kept.iter().copied().chain([last]).collect();
            if common_multiple(&all) <= 30_000 {
                let fits = fits(&all, reserve);
                assert_eq!(tasks.admits(&last.task()).is_ok(), fits, "{kept:?} and {last:?}");
            }
        }
    }
}

/// Everything that can happen to sets that are admitted now and were not by the sum: nobody
/// is late under `slack` and `edl`, whatever best effort comes.
#[test]
fn sets_that_the_sum_refused_never_miss_under_online_slack() {
    let mut random = Random::new(13);
    let (mut searched, mut states) = (0, 0);
    while searched < 60 {
        let tasks = random.within(2, 3);
        let set = random_set(&mut random, tasks, &common::SMALL[1..], true);
        let reserve = random.within(1, 6);
        let product: u64 = set.iter().map(|task| task.period).product();
        if product > 150 || !fits(&set, reserve) || admits(&set, reserve, false, 64) {
            continue;
        }
        for policy in [PolicyKind::SLACK, PolicyKind::EDL] {
            let found = search(&set, policy.start().as_ref(), 0, Rules::PLAIN);
            if let Some(way) = &found.miss {
                panic!("{set:?} beside {reserve} misses under {policy}:\n{}", way.join("\n"));
            }
            states += found.states;
        }
        searched += 1;
    }
    println!("{searched} sets, {states} states");
}

/// Each command takes its bound: what a request costs stands in its length.
struct Lengths;

impl Predict for Lengths {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        Duration::from_millis(command.access().map_or(0, |access| access.len.get() / 512))
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn request(class: Class, cost: u64) -> Request {
    let len = Bytes::new(512 * cost);
    let access = Access { lba: Lba::default(), len, direction: Direction::Read };
    Request { class, command: Command::Transfer(access) }
}

/// Eight films of 60 ms every 1.25 s, and services of 20 ms within 150 beside best effort of
/// 60 ms: how many services are admitted.
fn services(policy: PolicyKind) -> (Schedule, Vec<(sched::TaskId, u64, u64)>, usize) {
    let options = Options { reserve: ms(60), burst: Duration::ZERO, ..Options::default() };
    let mut schedule = Schedule::new(policy, options);
    let mut tasks = Vec::new();
    let start = Instant::EPOCH;
    for _ in 0..8 {
        let film = Task::new(ms(1_250), ms(1_250), ms(60));
        tasks.push((schedule.join(start, Contract::Stream(film)).unwrap(), 1_250, 60));
    }
    let service = Task::new(ms(150), ms(150), ms(20));
    while let Ok(id) = schedule.join(start, Contract::Stream(service)) {
        tasks.push((id, 150, 20));
    }
    let count = tasks.len() - 8;
    (schedule, tasks, count)
}

/// All ask as often as they may, all at once, beside best effort of 60 ms that never ends,
/// for ten minutes: nobody is late, and best effort has what contracts leave.
#[test]
fn services_beside_films_fit_that_the_sum_refused_and_best_effort_lives() {
    let (_, _, by_the_sum) = services(PolicyKind::DELTA_L);
    assert_eq!(by_the_sum, 1);
    for policy in [PolicyKind::SLACK, PolicyKind::EDL] {
        let (mut schedule, tasks, count) = services(policy);
        assert_eq!(count, 4, "{policy}");
        let class = Class::best_effort(false);
        let (mut keys, mut best_effort, mut busy, mut offered) = (0, 0, None, None);
        for now in 0..600_000 {
            let at = Instant::EPOCH + ms(now);
            if let Some((_, key)) = busy.filter(|&(until, _)| until <= now) {
                busy = None;
                let outcome = schedule.finished(at, key);
                assert!(outcome.late_by.is_zero(), "{policy} at {now} ms: {outcome:?}");
                if offered == Some(key) {
                    (offered, best_effort) = (None, best_effort + 60);
                }
            }
            for &(id, _, cost) in tasks.iter().filter(|(_, period, _)| now % period == 0) {
                keys += 1;
                schedule.submit(at, keys, request(Class::RealTime(id), cost));
            }
            if offered.is_none() {
                keys += 1;
                schedule.submit(at, keys, request(class, 60));
                offered = Some(keys);
            }
            if busy.is_none()
                && let Next::Start { key, predicted } = schedule.next(at, &Lengths)
            {
                busy = Some((now + predicted.as_millis(), key));
            }
        }
        // 0.384 and 4 times 0.133 of the disk are promised.
        let left = 600_000 - 600_000 * 8 * 60 / 1_250 - 600_000 * 4 * 20 / 150;
        println!("{policy}: best effort had {best_effort} ms of {left} that contracts leave");
        assert!(best_effort * 10 > left * 9, "{best_effort} of {left}");
    }
}
