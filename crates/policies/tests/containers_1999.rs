//! Best effort with a contract as `delta-l-1999` serves it: what is charged, and in which
//! order things go (Clockwise thesis, sections 6.3.2, 6.3.3 and 6.5.4).

use crate::common::{Plain, Ticks, World, at, ms, read};
use sched::{Class, Contract, Flow, Options, PolicyKind, Task, TaskId};
use units::{Duration, Instant};

/// A server of `budget` in every `period`, in milliseconds.
fn server(world: &mut World, budget: u64, period: u64) -> TaskId {
    let [budget, period] = [budget, period].map(ms);
    let task = Task::new(period, period, budget);
    world.schedule.join(world.now, Contract::Server(task)).expect("admitted")
}

/// A request that says that it costs so much at the most.
fn of(task: TaskId, cost: Duration) -> Class {
    Class::Server { task, cost, synchronous: true, flow: Flow(0), ordered: false }
}

/// A stream `(65,100)` beside a slice of 30 leaves a slack of 5, so that all go at their
/// turn. Each request says that it takes up to 30, and takes 10.
#[test]
fn a_slice_holds_as_many_requests_as_are_expected_to_fit_not_as_many_as_their_bounds() {
    let mut world = World::new(policies::DELTA_L_1999);
    let stream = world.join(65, 100);
    let volume = server(&mut world, 30, 100);
    let mut script = vec![
        (0, 100, Class::RealTime(stream), read(0, 65)),
        (100, 101, Class::RealTime(stream), read(0, 65)),
    ];
    script.extend((1..=7).map(|key| (0, key, of(volume, ms(30)), read(0, 10))));
    world.play(ms(1), &script, &Plain);
    // All of 1 to 3 are due at 100 with the stream's, which came first; 4 to 6 are released
    // at 100, 7 at 200.
    assert_eq!(world.started, [100, 1, 2, 3, 4, 5, 6, 101, 7]);
    let ends = [3, 4, 101, 7].map(|key| world.done_at(key));
    assert_eq!(ends, [at(95), at(110), at(195), at(210)]);
}

/// The slack is 31: one request of 20 goes in it before the streams, without a charge to its
/// slice of 20, so that the second one is due at 100, before the stream that is due at 150.
#[test]
fn what_goes_in_slack_is_not_charged_to_the_slice_and_those_behind_move_forward() {
    let mut world = World::new(policies::DELTA_L_1999);
    let [near, far] = [world.join(40, 100), world.join(10, 150)];
    let volume = server(&mut world, 20, 100);
    world.submit(100, Class::RealTime(near), read(0, 40));
    world.submit(200, Class::RealTime(far), read(0, 10));
    for key in 1..=3 {
        world.submit(key, of(volume, ms(20)), read(0, 20));
    }
    // The third has no room at 0. Nothing released waits at 90: it goes in the slack.
    assert_eq!(world.run(&Plain), [1, 100, 2, 200, 3]);
}

/// What is best effort but has a deadline: early requests are released at 100, 180 and 200,
/// and due at 200, 360 and 300; a server's is due at 250.
#[test]
fn early_requests_and_those_of_servers_go_by_deadline_and_before_best_effort() {
    let mut world = World::new(policies::DELTA_L_1999);
    let [short, long] = [world.join(10, 100), world.join(10, 180)];
    let volume = server(&mut world, 10, 250);
    world.submit(9, Class::best_effort(true), read(0, 10));
    for (key, stream) in [(100, short), (360, long), (200, short), (361, long), (300, short)] {
        world.submit(key, Class::RealTime(stream), read(0, 10));
    }
    world.submit(250, of(volume, ms(10)), read(0, 10));
    // All of it is covered by a slack of 81, and goes before what is released.
    assert_eq!(world.run(&Plain), [200, 250, 300, 361, 9, 100, 360]);
}

/// A server's request whose turn has come is in nobody's debt: it goes at its deadline, and
/// takes nothing of the slack.
#[test]
fn a_request_that_is_due_first_leaves_the_slack_alone() {
    let mut world = World::new(policies::DELTA_L_1999);
    let stream = world.join(10, 200);
    let volume = server(&mut world, 20, 100);
    // A slack of 71: 201 or less of the stream's in the way of the server's 20.
    world.submit(1, of(volume, ms(20)), read(0, 20));
    world.submit(100, Class::RealTime(stream), read(0, 10));
    world.submit(9, Class::best_effort(true), read(0, 70));
    assert_eq!(world.run(&Plain), [1, 9, 100]);
}

/// The third thing that is wrong: a request that comes late is due with its container.
#[test]
fn what_comes_late_into_a_container_makes_a_stream_late() {
    let late = |kind: PolicyKind| {
        let options =
            Options { reserve: Duration::ZERO, burst: Duration::ZERO, ..Options::default() };
        let mut world = World::with(kind, options);
        let [half, period, longer] = [50, 100, 110].map(Duration::from_nanos);
        let task = Task::new(period, period, half);
        let volume = world.schedule.join(Instant::EPOCH, Contract::Server(task)).expect("admitted");
        let task = Task::new(longer, longer, half);
        let stream = world.schedule.join(Instant::EPOCH, task).expect("admitted");
        let ask = |when: u64, key: u64, ticks: u64| {
            (when, key, of(volume, Duration::from_nanos(ticks)), read(0, ticks))
        };
        let mut script = vec![ask(0, 1, 10), ask(95, 2, 40), ask(100, 3, 50)];
        script.push((96, 100, Class::RealTime(stream), read(0, 50)));
        world.play(Duration::from_nanos(1), &script, &Ticks);
        world.late().into_iter().find(|&(key, _)| key == 100)
    };
    assert_eq!(late(policies::DELTA_L_1999), Some((100, Duration::from_nanos(29))));
    for kind in policies::ALL.iter().copied().filter(|kind| kind.promise.contracts) {
        assert_eq!(late(kind), None, "{kind}");
    }
}
