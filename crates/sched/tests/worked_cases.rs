//! The cases that the papers and scheduling.md work out by hand, step by step on
//! the production schedule.

mod common;
mod models;
mod world;

use common::Ticks;
use models::{Budget, LatestStart};
use sched::{Class, Next, Policy, PolicyKind, Request, Schedule, TaskId};
use std::collections::BTreeMap;
use units::{Duration, Instant};
use world::{OFFER, Sectors, command, schedule_of};

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
    let done = played(PolicyKind::Edf.start(), false, &set, &events);
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
    let mut schedule = Schedule::new(PolicyKind::Edf, options);
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
    for kind in [PolicyKind::Slack, PolicyKind::DeltaL] {
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
    for kind in [PolicyKind::Slack, PolicyKind::DeltaL] {
        let done = played(kind.start(), true, &set, &events);
        assert_eq!(done[..2], [("best effort", 5, 0), ("task 1", 10, 0)], "{kind}");
    }
}
