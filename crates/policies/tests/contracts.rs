//! The defining order of each policy that looks at contracts, on a queue that can be
//! worked by hand.

use crate::common::{Arrival, Plain, World, at, flow, ms, read, write};
use sched::{Class, Contract, Options, PolicyKind, Task, TaskId};
use units::Duration;

const BEST_EFFORT: Class = Class::best_effort(true);
const NOBODY_WAITS: Class = Class::best_effort(false);

/// Streams of these costs and periods, each with one request at a place of its own; the
/// keys are the places.
fn streams(kind: PolicyKind, set: &[(u64, u64, u64)]) -> (World, Vec<TaskId>) {
    let mut world = World::new(kind);
    let ids: Vec<_> = set.iter().map(|&(cost, period, _)| world.join(cost, period)).collect();
    for (&id, &(cost, _, place)) in ids.iter().zip(set) {
        world.submit(place, Class::RealTime(id), read(place, cost));
    }
    (world, ids)
}

#[test]
fn rate_monotonic_serves_the_shortest_period_even_where_another_is_due_first() {
    let (mut world, ids) = streams(policies::RATE_MONOTONIC, &[(10, 100, 1), (10, 300, 2)]);
    world.now = at(250);
    // Due at 350; 2 is due at 300.
    world.submit(3, Class::RealTime(ids[0]), read(3, 10));
    world.submit(4, BEST_EFFORT, read(4, 10));
    assert_eq!(world.run(&Plain), [1, 3, 2, 4]);
}

#[test]
fn scan_edf_sweeps_among_deadlines_of_one_step_and_not_beyond() {
    // Due at 310, 320 and 390 (one step of 100 ms), and at 410.
    let set = [(10, 310, 900), (10, 320, 100), (10, 390, 500), (10, 410, 50)];
    let (mut world, _) = streams(policies::SCAN_EDF, &set);
    assert_eq!(world.run(&Plain), [100, 500, 900, 50]);
}

#[test]
fn scan_edf_goes_on_upward_of_the_head_within_a_step_and_ends_it_before_the_next() {
    let set = [(10, 310, 900), (10, 320, 100), (10, 390, 500), (10, 410, 950)];
    let (mut world, _) = streams(policies::SCAN_EDF, &set);
    let late = world.join(10, 380);
    assert_eq!(world.step(&Plain), Some(100));
    // Due at 390 and behind the head; 950 is ahead of it, but due at 410.
    world.submit(50, Class::RealTime(late), read(50, 10));
    assert_eq!(world.run(&Plain), [100, 500, 900, 50, 950]);
}

#[test]
fn round_robin_serves_one_request_of_each_stream_in_turn() {
    let (mut world, ids) =
        streams(policies::ROUND_ROBIN, &[(1, 10, 1), (1, 1000, 2), (1, 1000, 3)]);
    for key in 4..7 {
        world.submit(key, Class::RealTime(ids[0]), read(key, 1));
    }
    // All are released; the first stream has three more than the others.
    world.now = at(100);
    world.submit(7, BEST_EFFORT, read(7, 1));
    assert_eq!(world.run(&Plain), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn bubble_up_serves_an_interactive_request_next_while_slots_are_free() {
    // A cycle of 60 in slots of 10: three streams leave three free.
    let set = [(10, 60, 100), (10, 60, 200), (10, 60, 300)];
    let (mut world, _) = streams(policies::BUBBLE_UP, &set);
    world.submit(1, NOBODY_WAITS, read(1, 1));
    for key in 11..16 {
        world.submit(key, BEST_EFFORT, read(1000 * key, 10));
    }
    assert_eq!(world.run(&Plain), [11, 12, 13, 100, 200, 300, 14, 15, 1]);
    // One that is as long as two slots takes two.
    let (mut world, _) = streams(policies::BUBBLE_UP, &set);
    world.submit(11, BEST_EFFORT, read(1000, 20));
    world.submit(12, BEST_EFFORT, read(2000, 20));
    assert_eq!(world.run(&Plain), [11, 100, 200, 300, 12]);
}

#[test]
fn gss_serves_groups_by_deadline_and_sweeps_within_each() {
    let set = [
        (10, 500, 10),
        (10, 400, 700),
        (10, 300, 20),
        (10, 200, 900),
        (10, 100, 300),
        (10, 600, 800),
    ];
    let (mut world, _) = streams(policies::GSS, &set);
    // The four earliest deadlines going up, then the other two coming down.
    assert_eq!(world.run(&Plain), [20, 300, 700, 900, 800, 10]);
}

#[test]
fn cello_deals_out_the_disk_by_class_and_moves_contracts_just_in_time() {
    let (mut world, _) = streams(policies::CELLO, &[(10, 100, 1)]);
    for key in 0..20 {
        world.submit(100 + key, BEST_EFFORT, read(100 + key, 10));
        world.submit(200 + key, NOBODY_WAITS, read(200 + key, 10));
    }
    world.run(&Plain);
    // Its latest start is at 90: nine of the synchronous requests fit before.
    assert_eq!(world.started[..9], [100, 101, 102, 103, 104, 105, 106, 107, 108]);
    assert_eq!(world.started[9], 1);
    assert_eq!(world.late(), []);
}

#[test]
fn cello_gives_each_class_its_share_of_an_interval() {
    let mut world = World::new(policies::CELLO);
    for key in 0..200 {
        world.submit(1000 + key, BEST_EFFORT, read(1000 + key, 10));
        world.submit(2000 + key, NOBODY_WAITS, read(2000 + key, 10));
    }
    while world.now < at(3000) {
        world.step(&Plain);
    }
    let synchronous = world.started.iter().filter(|&&key| key < 2000).count();
    assert!((195..=205).contains(&synchronous), "two thirds of 300, not {synchronous}");
}

#[test]
fn drr_gives_each_flow_a_quantum_a_round_whatever_it_asks_for() {
    let mut world = World::new(policies::DRR);
    // Flow 1 asks in pieces of 25, flow 2 in pieces of 10; a quantum is 50.
    for key in 0..6 {
        world.submit(100 + key, flow(1, true), read(100 + key, 25));
    }
    for key in 0..10 {
        world.submit(200 + key, flow(2, true), read(200 + key, 10));
    }
    let order = world.run(&Plain);
    let expected = [100, 101, 200, 201, 202, 203, 204, 102, 103, 205, 206, 207, 208, 209, 104, 105];
    assert_eq!(order, expected);
}

#[test]
fn drr_saves_what_a_line_could_not_use_until_it_covers_a_long_request() {
    let mut world = World::new(policies::DRR);
    world.submit(1, flow(1, true), read(1, 120));
    for key in 0..4 {
        world.submit(200 + key, flow(2, true), read(200 + key, 50));
    }
    // 120 takes three rounds; flow 2 has one request in each of the two before.
    assert_eq!(world.run(&Plain), [200, 201, 1, 202, 203]);
}

#[test]
fn drr_serves_a_stream_once_a_round() {
    let (mut world, ids) = streams(policies::DRR, &[(10, 20, 1), (30, 100, 2)]);
    world.submit(3, Class::RealTime(ids[0]), read(3, 10));
    world.submit(4, flow(1, true), read(4, 40));
    world.submit(5, flow(1, true), read(5, 40));
    assert_eq!(world.run(&Plain), [1, 2, 4, 3, 5]);
}

fn with_reserve(reserve: u64) -> Options {
    Options { admission: false, reserve: ms(reserve), ..Options::default() }
}

#[test]
fn a_time_cycle_sweeps_and_lets_best_effort_in_by_bubble_slot_and_slack_register() {
    let mut world = World::with(policies::TIME_CYCLE, with_reserve(10));
    // A cycle of 100: 60 of requests, 10 of bubble slot, 30 in the register.
    let mut script: Vec<Arrival> = Vec::new();
    for place in [500, 100, 300] {
        let id = world.join(20, 100);
        script.push((0, place, Class::RealTime(id), read(place, 20)));
    }
    // 11 fits the slot, 12 and 13 the register, 14 nothing.
    for key in 11..15 {
        let cost = if key < 13 { 10 } else { 20 };
        script.push((0, key, BEST_EFFORT, read(1000 * key, cost)));
    }
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.started, [11, 12, 13, 100, 300, 500, 14]);
    assert_eq!(world.late(), []);
}

#[test]
fn what_a_server_asks_for_does_not_use_up_the_bubble_slot_of_a_time_cycle() {
    let without_register = policies::TIME_CYCLE.with("register-most", "0ns").expect("a setting");
    let mut world = World::with(without_register, with_reserve(10));
    let server = Contract::Server(Task::new(ms(100), ms(100), ms(60)));
    let id = world.schedule.join(world.now, server).expect("admitted");
    let mut script: Vec<Arrival> =
        (1..4).map(|key| (0, key, Class::server(id, ms(20)), read(100 * key, 20))).collect();
    // Somebody waits for it, and the others of the sweep were there before it.
    script.push((5, 9, BEST_EFFORT, read(900, 10)));
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.started, [1, 9, 2, 3]);
}

#[test]
fn a_time_cycle_sweeps_back_in_the_next_cycle_and_starts_it_where_the_last_one_ended() {
    let mut world = World::with(policies::TIME_CYCLE, with_reserve(0));
    let mut script: Vec<Arrival> = Vec::new();
    let ids: Vec<TaskId> = (0..3).map(|_| world.join(20, 100)).collect();
    for (round, &when) in [0, 100].iter().enumerate() {
        for (&id, place) in ids.iter().zip([500, 100, 300]) {
            let key = place + round as u64;
            script.push((when, key, Class::RealTime(id), read(key, 20)));
        }
    }
    // Takes up the register of 40 of the first cycle but for 5, then runs 40 into the
    // second after its sweep: the register of that one is nothing.
    script.push((0, 1, NOBODY_WAITS, read(9_000, 35)));
    script.push((65, 2, NOBODY_WAITS, read(9_100, 45)));
    script.push((66, 3, NOBODY_WAITS, read(9_200, 1)));
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.started, [1, 100, 300, 500, 2, 501, 301, 101, 3]);
}

#[test]
fn a_time_cycle_keeps_streams_that_release_at_its_beginning() {
    // 45 of requests, 10 of bubble slot and at most 40 that run into a cycle of 100.
    let mut world = World::with(policies::TIME_CYCLE, with_reserve(10));
    let ids: Vec<TaskId> = (0..3).map(|_| world.join(15, 100)).collect();
    let mut random = 7_u64;
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % n
    };
    let mut script: Vec<Arrival> = Vec::new();
    for cycle in 0..300 {
        for (n, &id) in ids.iter().enumerate() {
            let key = 10_000 * (n as u64 + 1) + cycle;
            script.push((100 * cycle, key, Class::RealTime(id), read(below(5_000), 15)));
        }
    }
    for key in 0..1200 {
        let class = if below(2) == 0 { BEST_EFFORT } else { NOBODY_WAITS };
        script.push((below(30_000), key, class, read(below(5_000), 1 + below(40))));
    }
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.late(), []);
    let done = world.outcomes.iter().filter(|(key, _)| *key >= 10_000).count();
    assert_eq!(done, 900);
    let served = world.outcomes.iter().filter(|(_, outcome)| outcome.started < at(30_000));
    assert!(served.count() > 1400, "best effort gets most of what is left");
}

#[test]
fn the_meta_scheduler_puts_priorities_above_and_below_an_unchanged_best_effort() {
    let mut world = World::new(policies::UCSB);
    let ids = [world.join(10, 100), world.join(10, 50)];
    world.submit(1, Class::Background, read(0, 10));
    world.submit(2, BEST_EFFORT, write(2000, 90));
    world.submit(3, BEST_EFFORT, read(3000, 90));
    // Released first, though due after the other.
    world.submit(4, Class::RealTime(ids[0]), read(0, 10));
    world.submit(5, Class::RealTime(ids[1]), read(0, 10));
    assert_eq!(world.run(&Plain), [4, 5, 3, 2, 1], "reads go before writes, as in `deadline`");
}

#[test]
fn the_meta_scheduler_serves_best_effort_first_while_the_slack_register_lasts() {
    let mut world = World::new(policies::UCSB);
    let id = world.join(10, 100);
    let mut script: Vec<Arrival> =
        (0..2).map(|n| (100 * n, n, Class::RealTime(id), read(0, 10))).collect();
    // The register holds the static slack, 90, in each cycle.
    script.extend((10..14).map(|key| (0, key, BEST_EFFORT, read(1000 * key, 40))));
    script.extend((14..17).map(|key| (100, key, BEST_EFFORT, read(1000 * key, 40))));
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.started, [10, 11, 0, 12, 13, 14, 1, 15, 16].map(|key| key));
}

#[test]
fn the_abiss_elevator_serves_by_priority_and_upward_within_each() {
    let mut world = World::new(policies::ABISS);
    let id = world.join(100, 1000);
    world.submit(1, Class::Background, read(10, 1));
    world.submit(2, NOBODY_WAITS, read(700, 1));
    world.submit(3, NOBODY_WAITS, read(20, 1));
    world.submit(4, BEST_EFFORT, read(800, 1));
    world.submit(5, BEST_EFFORT, read(30, 1));
    // 81 sectors are more than the threshold of 40 KiB: the stream is let go.
    world.submit(6, Class::RealTime(id), read(40, 81));
    assert_eq!(world.run(&Plain), [6, 4, 5, 2, 3, 1], "from 121 up, and back to the lowest");
}

#[test]
fn the_abiss_elevator_lets_streams_fetch_together_once_one_reaches_the_threshold() {
    let mut world = World::new(policies::ABISS);
    let ids = [world.join(50, 1000), world.join(50, 1000), world.join(50, 1000)];
    for key in 100..130 {
        world.submit(key, NOBODY_WAITS, read(10 * key, 10));
    }
    // 20, 15 and 5 KiB wait: nobody is at the threshold of 40.
    for (key, (&id, sectors)) in ids.iter().zip([40, 30, 10]).enumerate() {
        world.submit(key as u64, Class::RealTime(id), read(key as u64, sectors));
    }
    assert_eq!(world.step(&Plain), Some(100));
    assert_eq!(world.step(&Plain), Some(101));
    // 41 more sectors make the first stream more than full; the second has less than
    // half the threshold, until it gets 10 more.
    world.submit(3, Class::RealTime(ids[1]), read(3, 10));
    world.schedule.submit(
        world.now,
        4,
        sched::Request { class: Class::RealTime(ids[0]), command: read(4, 41) },
    );
    world.run(&Plain);
    let after = &world.started[2..];
    assert_eq!(after[..4], [0, 1, 3, 4], "{after:?}");
    assert!(after[4] >= 100, "the third stream is held: {after:?}");
}

#[test]
fn the_abiss_elevator_holds_no_stream_past_half_of_its_time_or_on_a_disk_of_its_own() {
    let mut world = World::new(policies::ABISS);
    let id = world.join(10, 100);
    world.submit(1, Class::RealTime(id), read(0, 10));
    assert_eq!(world.run(&Plain), [1], "nobody else wants the disk");
    world.now = at(100);
    world.submit(2, Class::RealTime(id), read(0, 10));
    for key in 10..30 {
        world.submit(key, BEST_EFFORT, read(100 * key, 20));
    }
    world.run(&Plain);
    assert_eq!(world.started[1..5], [10, 11, 12, 2], "held until 150, then let go at 160");
    assert_eq!(world.late(), []);
}

#[test]
fn the_abiss_elevator_keeps_places_for_each_priority() {
    let mut world = World::new(policies::ABISS);
    // 200 places, 92 of them guaranteed: 108 are whoever's. 124 are the most for
    // synchronous best effort; of 200 that come, 76 wait outside.
    for key in 0..200 {
        world.submit(key, BEST_EFFORT, read(10_000 - 10 * key, 1));
    }
    let id = world.join(10, 1000);
    world.submit(1000, Class::RealTime(id), read(1, 81));
    // It has a place at once, and goes first. Of the others only those inside are
    // sorted: the lowest of these is the 124th that came.
    assert_eq!(world.step(&Plain), Some(1000));
    assert_eq!(world.step(&Plain), Some(123));
    // A place is free, and the first of those outside has taken it.
    assert_eq!(world.step(&Plain), Some(122));
    let order = world.run(&Plain);
    assert_eq!(order.len(), 201);
    assert!(order[3..].contains(&199));
}

#[test]
fn a_task_that_leaves_takes_its_requests_out_of_every_policy() {
    for &kind in policies::ALL {
        let (mut world, ids) = streams(kind, &[(10, 100, 100), (10, 100, 200), (10, 100, 300)]);
        assert_eq!(world.schedule.leave(ids[1]), [200], "{kind}");
        world.run(&Plain);
        let mut order = world.started.clone();
        order.sort_unstable();
        assert_eq!(order, [100, 300], "{kind}");
        assert!(world.schedule.counts().real_time.actual == ms(20) + Duration::ZERO);
    }
}

#[test]
fn best_effort_first_serves_contracts_when_no_best_effort_waits_however_late_they_are() {
    let (mut world, ids) = streams(policies::BEST_EFFORT_FIRST, &[(10, 20, 1), (10, 300, 2)]);
    // Before its time.
    world.submit(8, Class::RealTime(ids[1]), read(8, 10));
    for key in 3..6 {
        world.submit(key, NOBODY_WAITS, read(key, 10));
    }
    world.submit(6, BEST_EFFORT, read(6, 10));
    world.submit(7, Class::Background, read(7, 10));
    assert_eq!(world.run(&Plain), [6, 5, 4, 3, 1, 2, 8, 7]);
}

/// A stream asks for its window ahead; the elevator lets all of it go at once, with far fewer
/// requests than there are guaranteed places. A stream that comes a moment later is in the
/// elevator at once, too, and late.
#[test]
fn guaranteed_places_are_no_promise_of_time() {
    let mut world = World::new(policies::ABISS);
    let (far, near) = (world.join(20, 400), world.join(20, 200));
    let command = |key: u64| read(1000 * key, 20);
    for key in 0..31 {
        world.submit(key, Class::RealTime(far), command(key));
    }
    world.step(&Plain);
    world.submit(100, Class::RealTime(near), command(0));
    world.run(&Plain);
    assert_eq!(world.late(), [(100, ms(420))]);
}
