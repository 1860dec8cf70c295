//! The fast analysis is the definition: random sets against brute force.
#![allow(clippy::print_stdout)] // how much was covered is part of the result

use crate::common;
use crate::common::{Random, SMALL, Ticks, brute, brute_earliest, random_set};
use sched::{Refusal, TaskSet};
use units::Duration;

fn set_of(reserve: u64, tasks: &[Ticks]) -> TaskSet {
    set_from(usize::MAX, reserve, tasks)
}

/// A set with a summary from so many classes on.
fn set_from(cells: usize, reserve: u64, tasks: &[Ticks]) -> TaskSet {
    let mut set = TaskSet::new(Duration::from_nanos(reserve)).with_cells_from(cells);
    for task in tasks {
        set.add_unchecked(task.task());
    }
    set
}

/// What `add` must say of `tasks`, from the definition.
fn verdict(reserve: u64, tasks: &[Ticks]) -> Result<u64, Option<(u64, u64)>> {
    let known = brute(tasks);
    if known.work > known.common {
        return Err(None);
    }
    match brute_earliest(tasks, reserve as i64) {
        Some(found) => Err(Some(found)),
        None => Ok(known.least as u64),
    }
}

fn check_one(reserve: u64, tasks: &[Ticks]) -> Result<u64, Option<(u64, u64)>> {
    let expected = verdict(reserve, tasks);
    for cells in [usize::MAX, 1] {
        check_against(&expected, cells, reserve, tasks);
    }
    expected
}

fn check_against(
    expected: &Result<u64, Option<(u64, u64)>>,
    cells: usize,
    reserve: u64,
    tasks: &[Ticks],
) {
    let (last, others) = tasks.split_last().unwrap();
    let mut set = set_from(cells, reserve, others);
    let found = set.check(&last.task());
    match (found, *expected) {
        (Ok(analysis), Ok(least)) => {
            assert!(analysis.exact && analysis.slack.as_nanos() == least, "slack of {tasks:?}");
            set.admits(&last.task()).unwrap();
            set.add(last.task()).unwrap();
            assert!(set.slack_least().as_nanos() <= least, "{tasks:?}");
            assert_eq!(set.slack().as_nanos(), least);
            assert_eq!(set.slack_least().as_nanos(), least);
        }
        (Err(Refusal { deadline, undecided: false, .. }), Err(earliest)) => {
            let deadline = deadline.map(|(at, excess)| (at.as_nanos(), excess.as_nanos()));
            // Where the whole disk is promised the analysis looks only as far as
            // it needs to for the answer.
            let whole = brute(tasks).work == brute(tasks).common;
            assert!(deadline == earliest || (whole && deadline.is_none()), "{tasks:?} {reserve}");
            set.add(last.task()).unwrap_err();
            assert_eq!(set.len(), others.len());
        }
        (found, expected) => panic!("{tasks:?} {reserve}: {found:?}, by definition {expected:?}"),
    }
}

/// The least difference over the deadlines up to the longest period.
fn thesis_horizon(set: &[Ticks]) -> i64 {
    let longest = set.iter().map(|task| task.period).max().unwrap();
    let is_deadline = |at: u64| {
        set.iter()
            .any(|task| at >= task.deadline && (at - task.deadline).is_multiple_of(task.period))
    };
    (1..=longest).filter(|&at| is_deadline(at)).map(|at| common::difference(set, at)).min().unwrap()
}

const MIXED: &[u64] = &[4, 6, 9, 10, 14, 15, 20, 30, 45, 60, 84, 90, 126, 140, 180, 210, 252, 315];

#[test]
fn the_fast_analysis_is_the_definition_on_random_sets() {
    let mut random = Random::new(1);
    let (mut admitted, mut refused) = (0, 0);
    for round in 0..80_000 {
        let tasks = random.within(1, if round % 2 == 0 { 4 } else { 9 });
        let periods = if round % 2 == 0 { SMALL } else { MIXED };
        let set = random_set(&mut random, tasks, periods, round % 3 != 0);
        let reserve = if random.one_in(3) { random.within(1, 6) } else { 0 };
        match check_one(reserve, &set) {
            Ok(_) => admitted += 1,
            Err(_) => refused += 1,
        }
    }
    println!("{admitted} sets admitted, {refused} refused");
    assert!(admitted > 15_000 && refused > 15_000);
}

/// Not random but all: up to three rate contracts with periods up to 12.
#[test]
fn the_fast_analysis_is_the_definition_on_every_small_set() {
    let all: Vec<Ticks> = (1..=12)
        .flat_map(|period| (1..=period).map(move |cost| Ticks::rate(cost, period)))
        .collect();
    let (mut sets, mut admitted, mut beyond_period) = (0, 0, 0);
    let mut one = |set: &[Ticks]| {
        sets += 1;
        if let Ok(least) = check_one(0, set) {
            admitted += 1;
            if (least as i64) < thesis_horizon(set) {
                beyond_period += 1;
                // The same in finer ticks, with a little less than the whole disk.
                let mut finer =
                    set.iter().map(|t| Ticks::rate(t.cost * 64, t.period * 64)).collect::<Vec<_>>();
                finer[0].cost -= 1;
                let least = check_one(0, &finer).unwrap();
                assert!((least as i64) < thesis_horizon(&finer), "{finer:?}");
            }
        }
    };
    for (i, &a) in all.iter().enumerate() {
        one(&[a]);
        for (j, &b) in all.iter().enumerate().skip(i) {
            one(&[a, b]);
            // Only what is not overloaded already.
            if a.cost * b.period + b.cost * a.period <= a.period * b.period {
                all.iter().skip(j).for_each(|&c| one(&[a, b, c]));
            }
        }
    }
    println!("{sets} sets, {admitted} admitted");
    println!("{beyond_period} of them have their least slack beyond the longest period");
    assert!(admitted > 1_000 && beyond_period >= 10);
}

/// Utilisation at or just below 1, where the horizon is longest.
#[test]
fn the_fast_analysis_is_the_definition_near_the_whole_disk() {
    let mut random = Random::new(2);
    let (mut whole, mut nearly, mut admitted, mut beyond_period) = (0, 0, 0, 0);
    while whole + nearly < 4_000 {
        let tasks = random.within(3, 9);
        let mut set = random_set(&mut random, tasks, &MIXED[3..], false);
        // Light tasks, so that it is not the blocking that decides.
        set.iter_mut().for_each(|task| task.cost = random.within(1, 3));
        for task in &mut set {
            if random.one_in(4) {
                task.deadline = random.within(task.period * 3 / 4, task.period);
            }
        }
        let known = brute(&set);
        let last = set.len() - 1;
        let left = known.common as i64 - known.work as i64;
        let more = left / (known.common / set[last].period) as i64;
        let cost = set[last].cost as i64 + more - i64::from(random.one_in(2));
        if cost < 1 || cost > set[last].deadline as i64 {
            continue;
        }
        set[last].cost = cost as u64;
        let known = brute(&set);
        whole += u64::from(known.work == known.common);
        nearly += u64::from(known.work < known.common && known.work * 50 > known.common * 49);
        let found = check_one(0, &set);
        admitted += u64::from(found.is_ok());
        beyond_period += u64::from(found.is_ok_and(|least| (least as i64) < thesis_horizon(&set)));
    }
    println!("{whole} sets promise the whole disk, {nearly} more than 98 %; {admitted} admitted");
    println!("{beyond_period} of them have their least slack beyond the longest period");
    assert!(whole > 200 && admitted > 50 && beyond_period > 0);
}

#[test]
fn adding_and_removing_is_the_same_as_from_scratch() {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let mut set = TaskSet::new(Duration::from_nanos(random.within(0, 3)));
        let mut members: Vec<(sched::TaskId, Ticks)> = Vec::new();
        for _ in 0..40 {
            if !members.is_empty() && random.one_in(3) {
                let at = random.within(0, members.len() as u64 - 1) as usize;
                let (id, task) = members.swap_remove(at);
                assert_eq!(set.remove(id), task.task());
                assert_eq!(set.get(id), None);
            } else {
                let period = random.within(40, 400);
                let cost = random.within(1, period / 12);
                let deadline = random.within(cost.max(period / 3), period);
                let task = Ticks { cost, deadline, period };
                if let Ok(id) = set.add(task.task()) {
                    members.push((id, task));
                }
            }
            let tasks: Vec<Ticks> = members.iter().map(|&(_, task)| task).collect();
            let fresh = set_of(0, &tasks);
            assert_eq!(set.slack(), fresh.slack(), "{tasks:?}");
            assert_eq!(set.utilisation(), fresh.utilisation());
            for at in [10, 50, 100, 399, 400, 5_000].map(Duration::from_nanos) {
                assert_eq!(set.blocking(at).as_nanos(), common::blocking(&tasks, at.as_nanos()));
                assert_eq!(set.demand(at).as_nanos(), common::demand(&tasks, at.as_nanos()));
            }
        }
    }
}

/// The thesis looks for the least slack up to the longest period only. These sets
/// have theirs beyond (scheduling.md, section 2).
#[test]
fn the_horizon_of_the_thesis_finds_too_much() {
    for set in [
        [Ticks::rate(2, 4), Ticks::rate(2, 6), Ticks::rate(1, 6)],
        [Ticks::rate(2, 6), Ticks::rate(3, 9), Ticks::rate(3, 9)],
        [Ticks::rate(4, 6), Ticks::rate(2, 9), Ticks::rate(1, 9)],
    ] {
        let found = set_of(0, &set);
        assert_eq!(found.slack(), Duration::ZERO, "{set:?}");
        assert!(common::thesis_slack(&set) >= 1, "{set:?}");
        // It is no overload: each may be admitted, with nothing to give away.
        assert_eq!(check_one(0, &set), Ok(0));
    }
}

#[test]
fn the_set_that_the_user_safe_disk_admits_is_refused() {
    // Clockwise thesis, Table 6.2, in milliseconds.
    let set = [(42, 250), (69, 250), (122, 1000), (163, 2000)].map(|(c, t)| Ticks::rate(c, t));
    assert_eq!(check_one(0, &set[..3]), Ok(250 - 42 - 69 - 122));
    // Blocked by 163, then 42 and 69 within 250: 24 too much.
    assert_eq!(check_one(0, &set), Err(Some((250, 24))));
}

#[test]
fn utilisation_counts_up_and_prints() {
    let set = set_of(0, &[Ticks::rate(1, 3), Ticks::rate(1, 3)]);
    assert_eq!(set.utilisation().ppm(), 666_667);
    assert_eq!(format!("{}", set.utilisation()), "66.6667 %");
    let refusal = set.check(&Ticks::rate(2, 3).task()).unwrap_err();
    assert_eq!(refusal.deadline, None);
    assert_eq!(format!("{refusal}"), "the disk would be promised to 133.3334 %");
}

/// Periods that share nothing, utilisation a hair below 1: the least slack lies beyond
/// what is looked at, but that nobody is late is known all the same.
#[test]
fn near_the_whole_disk_the_decision_stays_exact_where_the_slack_is_out_of_reach() {
    let period = 1_300_000_021u64;
    let mut answers = Vec::new();
    for cells in [1, usize::MAX] {
        let light = (0..150).map(|i| Ticks::rate(10_000_000, 1_000_000_007 + 7_919_000 * i));
        let set = set_from(cells, 0, &light.collect::<Vec<_>>());
        // Grow the last task until it is refused.
        let (mut fits, mut fails) = (0, 100_000_000);
        while fits + 1 < fails {
            let cost = (fits + fails) / 2;
            match set.admits(&Ticks::rate(cost, period).task()) {
                Ok(_) => fits = cost,
                Err(_) => fails = cost,
            }
        }
        let refusal = set.check(&Ticks::rate(fails, period).task()).unwrap_err();
        println!("{fits} ns more are admitted; {refusal}");
        assert!(!refusal.undecided, "{refusal:?}");
        let last = set.check(&Ticks::rate(fits, period).task()).unwrap();
        assert!(!last.exact, "the exact slack is out of reach: {last:?}");
        answers.push(fits);
    }
    assert_eq!(answers[0], answers[1]);
}

/// The whole disk promised to periods that share nothing, with a deadline before the end of
/// one: everything repeats only after longer than anybody looks, so the answer is no.
#[test]
fn what_cannot_be_decided_in_bounded_work_is_refused() {
    let primes = [1_000_000_007u64, 1_000_000_009, 1_000_000_021, 1_000_000_033];
    let more = [1_000_000_087u64, 1_000_000_093, 1_000_000_097, 1_000_000_103];
    let mut tasks: Vec<Ticks> =
        primes.into_iter().chain(more).map(|p| Ticks::rate(p, 8 * p)).collect();
    tasks[0].deadline -= 1;
    let (last, others) = tasks.split_last().unwrap();
    for cells in [1, usize::MAX] {
        let mut set = set_from(cells, 0, others);
        let refusal = set.add(last.task()).unwrap_err();
        assert!(refusal.undecided, "{refusal:?}");
        assert_eq!(set.len(), others.len());
    }
}
