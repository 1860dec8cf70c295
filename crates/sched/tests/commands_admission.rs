//! Admission of requests that come in commands: the analysis equals its definition,
//! and the search finds the chunking that leaves the most slack.

use crate::common;
use crate::common::{Random, Ticks, common_multiple, demand};
use sched::{Chunking, Refusal, Task, TaskSet, Way, Ways};
use units::Duration;

const fn ticks(ticks: u64) -> Duration {
    Duration::from_nanos(ticks)
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A task and its longest command.
type InCommands = (Ticks, u64);

fn task(&(ticks, command): &InCommands) -> Task {
    ticks.task().in_commands(Duration::from_nanos(command))
}

/// The least of `L - demand(L) - blocking(L)`, blocking by the longest command; with
/// the work and the length of a common multiple.
fn least(set: &[InCommands]) -> (i64, u64, u64) {
    let whole: Vec<Ticks> = set.iter().map(|&(ticks, _)| ticks).collect();
    let common = common_multiple(&whole);
    let end = common + whole.iter().map(|task| task.deadline).max().unwrap();
    let difference = |at: u64| {
        let due_later = set.iter().filter(|(task, _)| task.deadline > at);
        let blocking = due_later.map(|&(_, command)| command).max().unwrap_or(0);
        at as i64 - demand(&whole, at) as i64 - blocking as i64
    };
    let deadlines = whole
        .iter()
        .flat_map(|task| (task.deadline..=end).step_by(task.period as usize).collect::<Vec<_>>());
    let work = whole.iter().map(|task| common / task.period * task.cost).sum();
    (deadlines.map(difference).min().unwrap(), work, common)
}

fn random_set(random: &mut Random) -> Vec<InCommands> {
    let tasks = random.within(1, 6);
    let constrained = random.one_in(2);
    let set = common::random_set(random, tasks, common::SMALL, constrained);
    set.into_iter().map(|task| (task, random.within(1, task.cost))).collect()
}

#[test]
fn a_command_blocks_and_not_the_request_on_random_sets_by_the_definition() {
    let mut random = Random::new(3);
    let (mut admitted, mut smaller) = (0, 0);
    for _ in 0..60_000 {
        let set = random_set(&mut random);
        let (difference, work, common) = least(&set);
        let fits = work <= common && difference >= 0;
        let mut all = TaskSet::new(Duration::ZERO);
        for (last, one) in set.iter().enumerate() {
            let one = task(one);
            if last + 1 == set.len() {
                assert_eq!(all.check(&one).is_ok(), fits, "{set:?}");
            }
            all.add_unchecked(one);
        }
        if fits {
            let exact = if work == common { 0 } else { difference };
            assert_eq!(all.slack(), ticks(exact as u64), "{set:?}");
            admitted += 1;
            let whole: Vec<InCommands> = set.iter().map(|&(task, _)| (task, task.cost)).collect();
            smaller += u64::from(least(&whole).0 < difference);
            let ids: Vec<_> = all.iter().map(|(id, _)| id).collect();
            all.remove(*random.pick(&ids));
            let left: Vec<InCommands> = all
                .iter()
                .map(|(_, it)| {
                    let [cost, deadline, period, command] =
                        [it.cost, it.deadline, it.period, it.command].map(Duration::as_nanos);
                    (Ticks { cost, deadline, period }, command)
                })
                .collect();
            if !left.is_empty() {
                let (difference, work, common) = least(&left);
                let exact = if work == common { 0 } else { difference };
                assert_eq!(all.slack(), ticks(exact as u64), "{left:?} after a task left");
            }
        }
    }
    assert!(admitted > 10_000 && smaller > 1_000, "{admitted} {smaller}");
}

/// 500 kB on a disk that needs 30 ms to position and 1 ms a chunk; a task that must
/// answer in `deadline` with 30 ms of its own.
fn stream_and_answer(deadline: u64) -> Vec<Ways> {
    let ways = vec![
        Way::whole(ms(56)),
        Way::in_commands(ms(58), ms(40), ms(30)),
        Way::in_commands(ms(62), ms(31), ms(30)),
    ];
    vec![
        Ways { period: ms(500), deadline: ms(500), ways },
        Ways {
            period: ms(deadline.max(200)),
            deadline: ms(deadline),
            ways: vec![Way::whole(ms(30))],
        },
    ]
}

#[test]
fn the_shorter_the_deadline_of_an_answer_the_smaller_the_chunks_of_a_stream() {
    let best = |deadline| Chunking::best(&stream_and_answer(deadline), Duration::ZERO);
    let way = |deadline: u64| best(deadline).unwrap().ways;
    assert_eq!(way(500), [0, 0], "nobody has to wait: the smallest demand leaves the most");
    // Near: 30 of its own and one command of the other; the stream pays the returns.
    assert!(Chunking::of(&stream_and_answer(80), &[0, 0], Duration::ZERO).is_err());
    assert_eq!(way(80), [2, 0], "19 ms are left, after chunks of 40 ms 10");
    assert_eq!(best(61).unwrap().analysis.slack, Duration::ZERO);
    let refused: Refusal = best(60).unwrap_err();
    assert_eq!(refused.deadline, Some((ms(60), ms(26))), "as a whole: {refused}");
}

#[test]
fn a_return_is_charged_to_one_of_the_two() {
    let contracts = stream_and_answer(150);
    let costs = |spared, ways: [usize; 2]| {
        let chosen = Chunking::sparing(spared, &contracts, &ways, Duration::ZERO).unwrap();
        let commands: Vec<Duration> = chosen.tasks.iter().map(|task| task.command).collect();
        assert_eq!(commands, [[ms(56), ms(40), ms(31)][ways[0]], ms(30)]);
        chosen.tasks.iter().map(|task| task.cost).collect::<Vec<_>>()
    };
    // The answer takes the heads once with each of its requests.
    assert_eq!(costs(ms(149), [2, 0]), [ms(62), ms(30 + 30)]);
    // Within 500 - 150 ms of a stream's request two answers may come.
    assert_eq!(costs(ms(150), [2, 0]), [ms(62 + 2 * 30), ms(30)]);
    for spared in [Duration::ZERO, Duration::MAX] {
        assert_eq!(costs(spared, [0, 0]), [ms(56), ms(30)], "one command is not interrupted");
    }
}

fn random_ways(random: &mut Random, tasks: u64) -> Vec<Ways> {
    (0..tasks)
        .map(|_| {
            let period = random.within(40, 400);
            let cost = random.within(4, (2 * period / tasks).max(5));
            let deadline = random.within(cost.min(period), period);
            let resume = random.within(1, 4);
            let way = |parts: u64| {
                let command = cost / parts + resume;
                Way::in_commands(ticks(cost + parts), ticks(command), ticks(resume))
            };
            let ways = vec![Way::whole(ticks(cost)), way(3), way(8)];
            Ways { period: ticks(period), deadline: ticks(deadline), ways }
        })
        .collect()
}

/// Of all combinations, by trying them.
fn most_slack(contracts: &[Ways]) -> Option<Duration> {
    let all = contracts.iter().map(|contract| contract.ways.len()).product::<usize>();
    let slack = |mut index: usize| {
        let mut digit = |contract: &Ways| {
            let way = index % contract.ways.len();
            index /= contract.ways.len();
            way
        };
        let ways: Vec<usize> = contracts.iter().map(&mut digit).collect();
        Chunking::of(contracts, &ways, Duration::ZERO).ok().map(|found| found.analysis.slack)
    };
    (0..all).filter_map(slack).max()
}

#[test]
fn the_chunking_found_leaves_the_most_slack_of_all() {
    let mut random = Random::new(4);
    let (mut admitted, mut rescued) = (0, 0);
    for _ in 0..300 {
        let tasks = random.within(1, 4);
        let contracts = random_ways(&mut random, tasks);
        let best = Chunking::best(&contracts, Duration::ZERO).ok();
        assert_eq!(best.map(|best| best.analysis.slack), most_slack(&contracts), "{contracts:?}");
        admitted += u64::from(most_slack(&contracts).is_some());
        let whole = Chunking::of(&contracts, &vec![0; contracts.len()], Duration::ZERO);
        rescued += u64::from(whole.is_err() && most_slack(&contracts).is_some());
    }
    assert!(admitted > 50 && rescued > 10, "{admitted} {rescued}");
}

/// With more tasks not all combinations are tried; the result is at least as good as
/// one bound for all, and most often the best.
#[test]
fn with_many_tasks_the_search_is_near_the_best() {
    let mut random = Random::new(6);
    let (mut sets, mut equal) = (0, 0);
    while sets < 12 {
        let contracts = random_ways(&mut random, 6);
        let Some(most) = most_slack(&contracts) else { continue };
        sets += 1;
        let found = Chunking::best(&contracts, Duration::ZERO);
        let slack = found.map_or(Duration::ZERO, |found| found.analysis.slack);
        assert!(slack <= most);
        equal += u64::from(slack == most);
    }
    assert!(equal >= 9, "{equal} of {sets}");
}

#[test]
fn hundreds_of_tasks_find_their_chunking() {
    let mut random = Random::new(8);
    let mut contracts: Vec<Ways> = (0..200)
        .map(|_| {
            let way = |cost, command, resume| Way::in_commands(cost, command, resume);
            let cost = ms(random.within(30, 60));
            let ways = vec![
                Way::whole(cost),
                way(cost + ms(4), ms(30), ms(29)),
                way(cost + ms(12), ms(13), ms(29)),
            ];
            let period = ms(random.within(20_000, 30_000));
            Ways { period, deadline: period, ways }
        })
        .collect();
    let answer = |period, deadline| Ways {
        period: ms(period),
        deadline: ms(deadline),
        ways: vec![Way::whole(ms(30))],
    };
    contracts.push(answer(60_000, 50));
    let whole = Chunking::of(&contracts, &vec![0; contracts.len()], Duration::ZERO);
    assert!(whole.is_err(), "50 ms are not enough behind 60");
    let best = Chunking::best(&contracts, Duration::ZERO).unwrap();
    assert!(best.ways[..200].iter().all(|&way| way == 2), "nobody may block for 30 ms");
    assert_eq!(best.spared, ms(50), "the answers alone: streams pay for each other");
    assert_eq!(best.analysis.slack, ms(50 - 30 - 13));
}
