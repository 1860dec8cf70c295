//! The worked cases of the papers: sets of tasks under which a policy is late, and
//! under which those that promise more are not.

use crate::common::{Arrival, Plain, Ticks, World, at, ms, read};
use policies::usd_admits;
use sched::{Class, Options, PolicyKind, Task, TaskId};
use units::{Duration, Instant, Lba};

/// Every policy that says that it keeps contracts.
fn keepers() -> impl Iterator<Item = PolicyKind> {
    policies::ALL.iter().copied().filter(|kind| kind.promise.contracts)
}

fn admitting(kind: PolicyKind) -> World {
    World::with(
        kind,
        Options { reserve: Duration::ZERO, burst: Duration::ZERO, ..Options::default() },
    )
}

const BEST_EFFORT: Class = Class::best_effort(true);

/// The requests of a task that releases one at each period until `end`; keys from
/// `key`.
fn periodic(id: TaskId, cost: u64, period: u64, end: u64, key: u64) -> Vec<Arrival> {
    let times = (0..end).step_by(period as usize).zip(key..);
    times.map(|(when, key)| (when, key, Class::RealTime(id), read(key, cost))).collect()
}

/// Clockwise thesis, table 6.2 and figure 6.3.
const TABLE_6_2: [(u64, u64); 4] = [(42, 250), (69, 250), (122, 1000), (163, 2000)];

fn table_6_2(kind: PolicyKind) -> World {
    let mut world = World::new(kind);
    let ids = TABLE_6_2.map(|(cost, period)| world.join(cost, period));
    let mut script = Vec::new();
    for (i, &(cost, period)) in TABLE_6_2.iter().enumerate() {
        script.extend(periodic(ids[i], cost, period, 2000, 100 * (i as u64 + 1)));
    }
    world.play(ms(1), &script, &Plain);
    world
}

#[test]
fn the_set_of_table_6_2_passes_the_test_of_usd_and_is_late_by_7_at_507() {
    let world = table_6_2(policies::USD);
    assert!(usd_admits(world.schedule.tasks()), "a utilisation of 0.6475");
    assert_eq!(world.schedule.tasks().utilisation().ppm(), 647_501, "rounded up");
    assert_eq!(world.started[..6], [100, 200, 300, 400, 101, 201], "figure 6.3");
    assert_eq!(world.done_at(201), at(507));
    assert_eq!(world.late(), [(201, ms(7))]);

    let mut world = admitting(policies::USD);
    let tasks = TABLE_6_2.map(|(cost, period)| {
        let [cost, period] = [cost, period].map(ms);
        Task::new(period, period, cost)
    });
    let joined = tasks.map(|task| world.schedule.join(Instant::EPOCH, task).is_ok());
    assert_eq!(joined, [true, true, true, false], "admission refuses the set");
}

#[test]
fn usd_punishes_the_stream_that_was_late_not_the_one_that_was_in_the_way() {
    let world = table_6_2(policies::USD);
    // At 750 streams 1 and 2 release again with one deadline, at 1000 once more: the
    // punished one, 2, served its next request after the others.
    let order: Vec<u64> = world.started[6..].to_vec();
    assert_eq!(order[..3], [102, 202, 103], "{order:?}");
    let mut world = World::new(policies::USD);
    let [late, other, third] = [world.join(10, 20), world.join(5, 100), world.join(5, 100)];
    let blocking = (0, 1, BEST_EFFORT, read(0, 30));
    let script = [
        blocking,
        (1, 2, Class::RealTime(late), read(0, 10)),
        (35, 3, Class::RealTime(late), read(0, 10)),
        (35, 4, Class::RealTime(other), read(0, 5)),
        (80, 6, Class::RealTime(third), read(0, 5)),
        (80, 5, Class::RealTime(late), read(0, 10)),
    ];
    world.play(ms(1), &script, &Plain);
    // 3 is due before 4, but 2 was late. 3 was not: 5 has its place before 6 again.
    assert_eq!(world.started, [1, 2, 4, 3, 5, 6]);
    assert_eq!(world.late(), [(2, ms(19))]);
}

/// Clockwise thesis, section 6.4.2.
fn section_6_4_2(kind: PolicyKind) -> World {
    let mut world = admitting(kind);
    let [first, second] = [world.join(10, 40), world.join(20, 30)];
    let script = [
        (0, 1, Class::RealTime(first), read(0, 10)),
        (0, 3, BEST_EFFORT, read(0, 25)),
        (20, 2, Class::RealTime(second), read(0, 20)),
    ];
    world.play(ms(1), &script, &Plain);
    world
}

#[test]
fn latest_start_times_do_not_foresee_the_request_that_comes_at_20() {
    let world = section_6_4_2(policies::LST);
    assert_eq!(world.started, [3, 1, 2], "25 ends before the latest start at 30");
    assert_eq!(world.late(), [(2, ms(5))], "due at 50, done at 55");
    for kind in keepers() {
        let world = section_6_4_2(kind);
        assert_eq!(world.late(), [], "{kind}");
        assert_eq!(world.started, [1, 2], "{kind}: no time is safe for 25");
    }
}

#[test]
fn lst_serves_best_effort_up_to_the_latest_start_time_and_no_longer() {
    // Due at 40 and 45: the second starts at 35 at the latest, so the first at 25.
    for (best_effort, order) in [(25, [3, 1, 2]), (26, [1, 2, 3])] {
        let mut world = World::new(policies::LST);
        let [first, second] = [world.join(10, 40), world.join(10, 45)];
        world.submit(1, Class::RealTime(first), read(0, 10));
        world.submit(2, Class::RealTime(second), read(0, 10));
        world.submit(3, BEST_EFFORT, read(0, best_effort));
        assert_eq!(world.run(&Plain), order);
        assert_eq!(world.late(), []);
    }
}

/// One stream `(5,10)`; best effort of 5 starts just before its request, another of 5
/// waits behind. In order of start, and how late.
fn five_of_ten(kind: PolicyKind) -> World {
    let mut world = admitting(kind);
    let id = world.join(5, 10);
    // All at instant 0, but the first command starts before the request is released.
    world.submit(1, BEST_EFFORT, read(0, 5));
    let sched::Next::Start { key: 1, predicted } = world.schedule.next(world.now, &Plain) else {
        panic!("{kind} leaves the disk idle");
    };
    world.submit(2, BEST_EFFORT, read(0, 5));
    world.submit(3, Class::RealTime(id), read(0, 5));
    world.now += predicted;
    world.schedule.finished(world.now, 1);
    world.run(&Plain);
    world
}

#[test]
fn the_printed_budget_is_spent_twice_where_a_command_starts_on_an_idle_disk() {
    let world = five_of_ten(policies::DELTA_L_1999);
    assert_eq!(world.done_at(3), at(15));
    assert_eq!(world.late(), [(3, ms(5))]);
    for kind in keepers() {
        assert_eq!(five_of_ten(kind).late(), [], "{kind}");
    }
}

/// Sets whose slack is smallest beyond the longest period: the thesis finds 1, there
/// is none.
const HORIZON_SETS: [[(u64, u64); 3]; 3] =
    [[(2, 4), (2, 6), (1, 6)], [(2, 6), (3, 9), (3, 9)], [(4, 6), (2, 9), (1, 9)]];

fn horizon_set(kind: PolicyKind, set: &[(u64, u64); 3], spent: u64) -> World {
    let mut world = admitting(kind);
    let mut script = vec![(0, 1, BEST_EFFORT, read(0, spent))];
    for (i, &(cost, period)) in set.iter().enumerate() {
        let [ticks, every] = [cost, period].map(Duration::from_nanos);
        let task = Task::new(every, every, ticks);
        let id = world.schedule.join(Instant::EPOCH, task).expect("the set can be kept");
        script.extend(periodic(id, cost, period, 36, 100 * (i as u64 + 1)));
    }
    assert!(world.schedule.tasks().slack().is_zero());
    world.play(Duration::from_nanos(1), &script, &Ticks);
    world
}

#[test]
fn the_printed_slack_looks_no_further_than_the_longest_period() {
    for set in &HORIZON_SETS {
        let world = horizon_set(policies::DELTA_L_1999, set, 1);
        assert_eq!(world.started[0], 1, "{set:?}: the printed slack is at least 1");
        assert!(!world.late().is_empty(), "{set:?}");
        let world = horizon_set(policies::DELTA_L_1999, set, 2);
        assert_ne!(world.started[0], 1, "{set:?}: the printed slack is less than 2");
        for kind in keepers() {
            assert_eq!(horizon_set(kind, set, 1).late(), [], "{set:?} under {kind}");
        }
    }
}

#[test]
fn the_printed_budget_is_charged_while_requests_wait_and_full_again_when_none_does() {
    let mut world = World::new(policies::DELTA_L_1999);
    let id = world.join(10, 30);
    // A slack of 20: 12 goes before the request, another 12 does not.
    world.submit(1, Class::RealTime(id), read(0, 10));
    world.submit(2, BEST_EFFORT, read(0, 12));
    world.submit(3, BEST_EFFORT, read(0, 12));
    world.submit(4, BEST_EFFORT, read(0, 21));
    assert_eq!(world.run(&Plain), [2, 1, 3], "21 is more than the slack: it never runs");
    assert_eq!(world.schedule.head(), Lba::new(12));
}

#[test]
fn edl_serves_best_effort_first_exactly_as_far_as_no_deadline_can_suffer() {
    for (best_effort, order) in [(20, [2, 1]), (21, [1, 2])] {
        let mut world = admitting(PolicyKind::EDL);
        let id = world.join(10, 30);
        world.submit(1, Class::RealTime(id), read(0, 10));
        world.submit(2, BEST_EFFORT, read(0, best_effort));
        assert_eq!(world.run(&Plain)[..1], order[..1], "{best_effort}");
        assert_eq!(world.late(), []);
    }
}

#[test]
fn edl_serves_best_effort_in_order_of_arrival() {
    let mut world = admitting(PolicyKind::EDL);
    world.join(10, 1000);
    world.submit(1, Class::best_effort(false), read(900, 10));
    world.submit(2, Class::best_effort(true), read(100, 10));
    world.submit(3, Class::best_effort(true), read(1, 10));
    assert_eq!(world.run(&Plain), [1, 2, 3]);
}

#[test]
fn edl_serves_what_is_released_before_what_came_early() {
    let mut world = admitting(PolicyKind::EDL);
    let [first, second] = [world.join(10, 100), world.join(10, 120)];
    world.submit(1, Class::RealTime(first), read(0, 10));
    world.submit(2, Class::RealTime(first), read(0, 10));
    world.submit(3, Class::RealTime(second), read(0, 10));
    assert_eq!(world.run(&Plain), [1, 3, 2]);
    assert_eq!(world.done_at(2), at(30), "in slack, before its release at 100");
}
