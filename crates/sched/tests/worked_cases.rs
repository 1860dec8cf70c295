//! The cases that the papers and scheduling.md work out by hand, step by step on
//! the production schedule.

use crate::common;
use crate::common::Ticks;
use crate::models::{Budget, LatestStart};
use crate::world::{OFFER, Sectors, command, schedule_of};
use sched::{Class, Contract, Next, Policy, PolicyKind, Request, Schedule, TaskId, TaskSet};
use std::collections::BTreeMap;
use units::{Duration, Instant};

/// What comes when: from a task (its place in the set), or best effort of a size.
#[derive(Clone, Copy)]
enum Comes {
    Task(usize),
    BestEffort(u64),
}

/// A request that is done: what it was, when it was done, and how late.
type Done = (&'static str, u64, u64);

/// Plays `events` on a disk where every command takes its bound. An event at an
/// instant at which the disk is free is seen by the disk before the next event at
/// that instant: the order of `events` is the order of things.
fn play(
    mut schedule: Schedule,
    ids: &[TaskId],
    set: &[Ticks],
    events: &[(u64, Comes)],
) -> Vec<Done> {
    const NAMES: [&str; 5] = ["task 1", "task 2", "task 3", "task 4", "best effort"];
    let mut running: Option<(u64, u64)> = None;
    let mut names = BTreeMap::new();
    let mut done = Vec::new();
    let mut finish_until = |schedule: &mut Schedule, until: u64, names: &BTreeMap<u64, usize>| {
        loop {
            if let Some((key, at)) = running.filter(|&(_, at)| at <= until) {
                let outcome = schedule.finished(Instant::from_nanos(at), key);
                done.push((NAMES[names[&key]], at, outcome.late_by.as_nanos()));
                running = match schedule.next(Instant::from_nanos(at), &Sectors) {
                    Next::Start { key, predicted } => Some((key, at + predicted.as_nanos())),
                    Next::Wait { .. } => None,
                };
            } else if running.is_none()
                && let Next::Start { key, predicted } =
                    schedule.next(Instant::from_nanos(until), &Sectors)
            {
                running = Some((key, until + predicted.as_nanos()));
            } else {
                return done.clone();
            }
        }
    };
    for (order, &(at, comes)) in events.iter().enumerate() {
        // Everything at one instant is there before the disk chooses, unless the
        // disk was free before.
        if order > 0 && events[order - 1].0 < at {
            finish_until(&mut schedule, at - 1, &names);
        }
        let key = OFFER + order as u64;
        let (class, size, name) = match comes {
            Comes::Task(task) => (Class::RealTime(ids[task]), set[task].cost, task),
            Comes::BestEffort(size) => (Class::best_effort(true), size, 4),
        };
        names.insert(key, name);
        schedule.submit(Instant::from_nanos(at), key, Request { class, command: command(size) });
        let alone = events.get(order + 1).is_none_or(|next| next.0 > at);
        if alone || matches!(comes, Comes::BestEffort(_)) {
            finish_until(&mut schedule, at, &names);
        }
    }
    let mut until = events.last().unwrap().0;
    loop {
        until += 1;
        let done = finish_until(&mut schedule, until, &names);
        if done.len() == events.len() || until > 10_000 {
            return done;
        }
    }
}

fn played(
    policy: Box<dyn Policy>,
    admission: bool,
    set: &[Ticks],
    events: &[(u64, Comes)],
) -> Vec<Done> {
    let (schedule, ids) = schedule_of(set, policy.as_ref(), 0, admission);
    play(schedule, &ids, set, events)
}

/// Clockwise thesis, Table 6.2 and Figure 6.3: admitted for its utilisation of
/// 0.6475, the second request of the second task ends at 507, 7 too late.
#[test]
fn utilisation_alone_admits_a_set_that_misses_by_7_at_507() {
    use Comes::Task;
    let set = [(42, 250), (69, 250), (122, 1000), (163, 2000)].map(|(c, t)| Ticks::rate(c, t));
    let events =
        [(0, Task(0)), (0, Task(1)), (0, Task(2)), (0, Task(3)), (250, Task(0)), (250, Task(1))];
    let done = played(PolicyKind::EDF.start(), false, &set, &events);
    let expected = [
        ("task 1", 42, 0),
        ("task 2", 111, 0),
        ("task 3", 233, 0),
        ("task 4", 396, 0),
        ("task 1", 438, 0),
        ("task 2", 507, 7),
    ];
    assert_eq!(done, expected);
    // Admission refuses the fourth task, whatever the policy.
    let options = sched::Options { reserve: Duration::ZERO, ..Default::default() };
    let mut schedule = Schedule::new(PolicyKind::EDF, options);
    for task in &set[..3] {
        schedule.join(Instant::EPOCH, task.task()).unwrap();
    }
    let refusal = schedule.join(Instant::EPOCH, set[3].task()).unwrap_err();
    assert_eq!(refusal.deadline, Some((Duration::from_nanos(250), Duration::from_nanos(24))));
}

/// Clockwise thesis, section 6.4.2: latest start times look at what waits only.
#[test]
fn latest_start_time_takes_a_command_that_makes_the_next_request_late() {
    use Comes::{BestEffort, Task};
    let set = [Ticks::rate(10, 40), Ticks::rate(20, 30)];
    let events = [(0, Task(0)), (0, BestEffort(25)), (20, Task(1))];
    let done = played(Box::new(LatestStart), true, &set, &events);
    assert_eq!(done, [("best effort", 25, 0), ("task 1", 35, 0), ("task 2", 55, 5)]);
    for kind in [PolicyKind::SLACK, PolicyKind::DELTA_L] {
        let done = played(kind.start(), true, &set, &events);
        // A command of 25 never fits beside these two.
        assert_eq!(done, [("task 1", 10, 0), ("task 2", 40, 0)], "{kind}");
    }
}

/// scheduling.md, section 3: under `delta-l-1999` one command starts uncharged on
/// the idle disk, another on the full budget, and the request released in between
/// ends 5 too late.
#[test]
fn an_uncharged_command_on_an_idle_disk_makes_a_request_late() {
    use Comes::{BestEffort, Task};
    let set = [Ticks::rate(5, 10)];
    let events = [(0, BestEffort(5)), (0, BestEffort(5)), (0, Task(0))];
    let done = played(Box::new(Budget::of_1999()), true, &set, &events);
    assert_eq!(done, [("best effort", 5, 0), ("best effort", 10, 0), ("task 1", 15, 5)]);
    for kind in [PolicyKind::SLACK, PolicyKind::DELTA_L] {
        let done = played(kind.start(), true, &set, &events);
        assert_eq!(done[..2], [("best effort", 5, 0), ("task 1", 10, 0)], "{kind}");
    }
}

/// Milliseconds as ticks: 24 pairs of a video and a sound track on one of three disks
/// that each block visits in turn, with `large` for a block of 1 MB and `small` for one
/// of 256 KB. Twelve videos of 817 KB/s in blocks of 1 MB, twelve of 245 KB/s in blocks of
/// 256 KB, and 24 sound tracks of 172 KB/s in blocks of 256 KB: 16.5 MB/s in all.
fn streams_of_section_6_5_4(large: u64, small: u64) -> Vec<Ticks> {
    let period = |kilobytes: u64, rate: u64| 3 * kilobytes * 1000 / rate;
    let kinds = [
        (12, Ticks::rate(large, period(1024, 817))),
        (12, Ticks::rate(small, period(256, 245))),
        (24, Ticks::rate(small, period(256, 172))),
    ];
    kinds.iter().flat_map(|&(count, task)| vec![task; count]).collect()
}

/// The slack by the thesis's formula and the exact one, in milliseconds, with a server of
/// `budget` in `period` beside these streams. None where it is refused.
fn slack_beside(streams: &[Ticks], budget: u64, period: u64) -> Option<(i64, u64)> {
    let millis = |ticks: &Ticks| {
        let [cost, period] = [ticks.cost, ticks.period].map(Duration::from_millis);
        sched::Task::new(period, period, cost)
    };
    let mut all = streams.to_vec();
    all.extend((budget > 0).then(|| Ticks::rate(budget, period)));
    let mut set = TaskSet::new(Duration::ZERO);
    for task in &all {
        set.add(millis(task)).ok()?;
    }
    Some((common::thesis_slack(&all), set.slack().as_millis()))
}

/// Clockwise thesis, section 6.5.4: slack 925, 825 and 725 ms with contracts of 0, 10 and
/// 20 % for a best-effort volume beside 24 streams of 16.5 MB/s on three disks.
///
/// The set-up as printed does not give it. Each disk is promised to 93.4 % already at the
/// costs of table 6.4 (134 and 55 ms in zone 0): 100 ms in each second of each disk, let
/// alone 200, are refused. What does:
///
/// * The contract is for the volume, which lies on all three disks as the streams do: of
///   100 or 200 ms each disk gets its turn once in three seconds. The critical interval
///   is the longest period, 4.465 s, which holds one turn: so the slack falls by 100 ms
///   for each 10 %.
/// * Table 6.4 is rounded up: 133 and 54 ms give 925 to the millisecond (134 and 55: 877,
///   777, and a refusal at 20 %).
///
/// And 725 is the least up to the longest period only. The true slack at 20 % is less,
/// 552 ms at 18.8 s: the horizon of the thesis again.
#[test]
fn best_effort_with_a_contract_leaves_925_825_and_725_ms() {
    let rounded_up = streams_of_section_6_5_4(134, 55);
    assert_eq!(slack_beside(&rounded_up, 0, 0), Some((877, 877)));
    assert_eq!(slack_beside(&rounded_up, 100, 3000), Some((777, 777)));
    assert_eq!(slack_beside(&rounded_up, 200, 3000), None);
    let streams = streams_of_section_6_5_4(133, 54);
    assert_eq!(slack_beside(&streams, 100, 1000), None, "of each disk in each second");
    assert_eq!(slack_beside(&streams, 0, 0), Some((925, 925)));
    assert_eq!(slack_beside(&streams, 100, 3000), Some((825, 825)));
    assert_eq!(slack_beside(&streams, 200, 3000), Some((725, 552)));
}

/// The same on a schedule: the server joins as any task does, and what can be given away
/// on an idle disk is what the analysis says.
#[test]
fn a_server_beside_streams_leaves_the_slack_of_the_analysis() {
    let mut schedule = Schedule::new(PolicyKind::SLACK, sched::Options::default());
    let ms = Duration::from_millis;
    for ticks in streams_of_section_6_5_4(133, 54) {
        let task = sched::Task::new(ms(ticks.period), ms(ticks.period), ms(ticks.cost));
        schedule.join(Instant::EPOCH, task).expect("the streams fit");
    }
    let now = Instant::EPOCH + Duration::from_secs(1);
    assert_eq!(schedule.slack_now(now, ms(5000)), Some(ms(925)));
    let server = |budget: u64| Contract::Server(sched::Task::new(ms(3000), ms(3000), ms(budget)));
    let id = schedule.join(now, server(100)).expect("10 % fit");
    assert_eq!(schedule.slack_now(now, ms(5000)), Some(ms(825)));
    schedule.change(now, id, server(200)).expect("20 % fit");
    assert_eq!(schedule.tasks().slack(), ms(552));
    schedule.leave(id);
    assert_eq!(schedule.slack_now(now, ms(5000)), Some(ms(925)));
}
