//! The four schedulers of Linux 2.6 behave as its documentation says of them, at their
//! published defaults.

use crate::common::{Arrival, Plain, World, at, flow, ms, read, write};
use sched::{Class, PolicyKind};

const BEST_EFFORT: Class = Class::best_effort(true);
const NOBODY_WAITS: Class = Class::best_effort(false);

#[test]
fn noop_serves_in_order_of_arrival_and_merges_what_continues_a_request() {
    let mut world = World::new(policies::NOOP);
    world.submit(1, BEST_EFFORT, read(100, 8));
    world.submit(2, BEST_EFFORT, read(500, 8));
    world.submit(3, BEST_EFFORT, read(108, 8));
    world.submit(4, BEST_EFFORT, write(516, 8));
    world.submit(5, BEST_EFFORT, read(508, 8));
    assert_eq!(world.step(&Plain), Some(1));
    // Continues 1 and 3, but those have been sent already.
    world.submit(6, BEST_EFFORT, read(116, 8));
    assert_eq!(world.run(&Plain), [1, 3, 2, 5, 4, 6]);
}

#[test]
fn noop_merges_no_more_than_a_request_may_hold() {
    let mut world = World::new(policies::NOOP);
    world.submit(1, BEST_EFFORT, read(0, 1000));
    world.submit(2, BEST_EFFORT, read(5000, 1));
    world.submit(3, BEST_EFFORT, read(1000, 24));
    world.submit(4, BEST_EFFORT, read(1024, 1));
    assert_eq!(world.run(&Plain), [1, 3, 2, 4], "1024 sectors are full");
}

#[test]
fn deadline_serves_two_batches_of_16_reads_before_a_batch_of_writes() {
    let mut world = World::new(policies::DEADLINE);
    for n in 0..40 {
        world.submit(1000 + n, BEST_EFFORT, read(1000 + n, 1));
        world.submit(2000 + n, NOBODY_WAITS, write(2000 + n, 1));
    }
    let order = world.run(&Plain);
    let reads = |from: u64, to: u64| (1000 + from..1000 + to).collect::<Vec<_>>();
    let writes = |from: u64, to: u64| (2000 + from..2000 + to).collect::<Vec<_>>();
    let expected = [reads(0, 32), writes(0, 16), reads(32, 40), writes(16, 40)].concat();
    assert_eq!(order, expected);
}

#[test]
fn deadline_goes_upward_and_back_to_the_oldest_when_nothing_is_ahead() {
    let mut world = World::new(policies::DEADLINE);
    world.reads_at(&[500, 900, 100, 300]);
    // The first batch begins with the oldest, 500.
    assert_eq!(world.run(&Plain), [500, 900, 100, 300]);
}

#[test]
fn deadline_begins_a_batch_with_a_read_that_has_expired_but_breaks_none_off() {
    let mut world = World::new(policies::DEADLINE);
    world.submit(1, BEST_EFFORT, read(5000, 1));
    assert_eq!(world.step(&Plain), Some(1));
    world.submit(2, BEST_EFFORT, read(100, 1));
    // The arm is at 5000; 20 reads ahead of it, each of 40 ms.
    for n in 0..20 {
        world.submit(10 + n, BEST_EFFORT, read(6000 + 100 * n, 40));
    }
    world.run(&Plain);
    // 2 expires at 501 ms, and is served after the 16 of the batch (with 1) are done.
    assert_eq!(world.started[15..18], [24, 2, 10 + 15], "{:?}", world.started);
}

#[test]
fn deadline_begins_a_batch_with_an_expired_write_after_five_seconds() {
    let mut world = World::new(policies::DEADLINE);
    world.submit(1, NOBODY_WAITS, write(9000, 1));
    assert_eq!(world.step(&Plain), Some(1));
    world.submit(2, NOBODY_WAITS, write(100, 1));
    for n in 0..32 {
        world.submit(10 + n, NOBODY_WAITS, write(9100 + 300 * n, 250));
    }
    let order = world.run(&Plain);
    // 15 more in the batch of 1: 3.75 s, not expired; 16 more: 7.75 s.
    assert_eq!(order.iter().position(|&key| key == 2), Some(32), "{order:?}");
}

/// A reader that asks for the next block of its file 2 ms after each is there, beside a
/// backlog far away. The order of the first requests, and when the third was done.
fn dependent_reader(kind: PolicyKind, think: u64) -> World {
    let mut world = World::new(kind);
    let mut script: Vec<Arrival> = vec![(0, 1, flow(1, true), read(1000, 4))];
    script.push((1, 100, flow(2, true), read(1_000_000, 4)));
    script.push((1, 101, flow(2, true), read(1_000_100, 4)));
    script.push((4 + think, 2, flow(1, true), read(1004, 4)));
    world.play(ms(1), &script, &Plain);
    world
}

#[test]
fn anticipatory_waits_for_a_reader_that_comes_back_within_six_milliseconds() {
    assert_eq!(dependent_reader(policies::DEADLINE, 2).started, [1, 100, 101, 2]);
    let world = dependent_reader(policies::ANTICIPATORY, 2);
    assert_eq!(world.started, [1, 2, 100, 101]);
    assert_eq!(world.done_at(2), at(10), "served as soon as it came, at 6");
    // After 2 the disk waits in vain until 16 for one more.
    assert_eq!(world.done_at(100), at(20));
}

#[test]
fn anticipatory_gives_up_after_six_milliseconds() {
    let world = dependent_reader(policies::ANTICIPATORY, 20);
    assert_eq!(world.started, [1, 100, 101, 2]);
    assert_eq!(world.done_at(100), at(4 + 6 + 4));
}

#[test]
fn anticipatory_stops_waiting_for_a_reader_that_thinks_for_long() {
    let mut world = World::new(policies::ANTICIPATORY);
    let mut script: Vec<Arrival> = Vec::new();
    for n in 0..12 {
        script.push((100 * n, n, flow(1, true), read(1000 + 8 * n, 4)));
    }
    // It thinks for 96 ms; when something far waits after its last read, nobody waits.
    script.push((1101, 100, flow(2, true), read(1_000_000, 4)));
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.done_at(100), at(1108), "right after the read that ends at 1104");
}

#[test]
fn anticipatory_serves_what_is_near_without_a_pause() {
    let mut world = World::new(policies::ANTICIPATORY);
    let script: Vec<Arrival> =
        vec![(0, 1, flow(1, true), read(1000, 4)), (1, 100, flow(2, true), read(2000, 4))];
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.done_at(100), at(8));
}

#[test]
fn anticipatory_does_not_wait_for_a_reader_whose_request_is_there_or_over_an_expired_one() {
    let mut world = World::new(policies::ANTICIPATORY);
    let script: Vec<Arrival> =
        vec![(0, 1, flow(1, true), read(1000, 4)), (1, 100, flow(1, true), read(1_000_000, 4))];
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.done_at(100), at(8), "it is the reader's own");
    let mut world = World::new(policies::ANTICIPATORY);
    let script: Vec<Arrival> =
        vec![(0, 1, flow(1, true), read(1000, 130)), (1, 100, flow(2, true), read(1_000_000, 4))];
    world.play(ms(1), &script, &Plain);
    assert_eq!(world.done_at(100), at(134), "it expired at 126");
}

#[test]
fn anticipatory_changes_between_reads_and_writes_by_time() {
    let mut world = World::new(policies::ANTICIPATORY);
    for n in 0..100 {
        world.submit(1000 + n, flow(1, true), read(1000 + 10 * n, 10));
        world.submit(2000 + n, flow(1, false), write(9000 + 10 * n, 10));
    }
    let order = world.run(&Plain);
    let runs: Vec<usize> = order.chunk_by(|a, b| a / 1000 == b / 1000).map(<[u64]>::len).collect();
    // The first batch is over at once: none had begun. Then 125 ms and 500 ms in turns.
    assert_eq!(runs[..4], [13, 50, 13, 50], "{runs:?}");
}

#[test]
fn cfq_gives_each_reader_a_slice_of_100_milliseconds() {
    let mut world = World::new(policies::CFQ);
    for n in 0..30 {
        world.submit(100 + n, flow(1, true), read(100 + 10 * n, 10));
        world.submit(200 + n, flow(2, true), read(90_000 + 10 * n, 10));
    }
    let order = world.run(&Plain);
    let runs: Vec<u64> =
        order.chunk_by(|a, b| a / 100 == b / 100).map(|run| run[0] / 100).collect();
    assert_eq!(runs, [1, 2, 1, 2, 1, 2]);
    assert!(order.chunk_by(|a, b| a / 100 == b / 100).all(|run| run.len() == 10));
}

#[test]
fn cfq_gives_asynchronous_work_40_milliseconds_and_16_requests() {
    let mut world = World::new(policies::CFQ);
    for n in 0..40 {
        world.submit(100 + n, flow(1, true), read(100 + 10 * n, 10));
        world.submit(200 + n, flow(1, false), write(90_000 + n, 1));
    }
    let order = world.run(&Plain);
    let runs: Vec<usize> = order.chunk_by(|a, b| a / 100 == b / 100).map(<[u64]>::len).collect();
    assert_eq!(runs, [10, 16, 10, 16, 10, 8, 10]);
}

#[test]
fn cfq_keeps_the_disk_idle_for_a_reader_that_comes_back_within_8_milliseconds() {
    let world = dependent_reader(policies::CFQ, 7);
    assert_eq!(world.started, [1, 2, 100, 101]);
    assert_eq!(world.done_at(2), at(15), "came at 11");
    let world = dependent_reader(policies::CFQ, 9);
    assert_eq!(world.started, [1, 100, 101, 2]);
    assert_eq!(world.done_at(100), at(4 + 8 + 4));
}

#[test]
fn cfq_does_not_idle_past_the_end_of_a_slice() {
    let mut world = World::new(policies::CFQ);
    world.submit(1, flow(1, true), read(1000, 97));
    world.submit(2, flow(2, true), read(2000, 10));
    assert_eq!(world.run(&Plain), [1, 2]);
    assert_eq!(world.done_at(2), at(110), "from 100 on, not from 105");
}

#[test]
fn cfq_serves_contracts_before_and_background_after_all_others() {
    let mut world = World::new(policies::CFQ);
    let id = world.join(10, 100);
    world.submit(1, Class::Background, read(0, 10));
    for n in 0..5 {
        world.submit(10 + n, flow(1, true), read(100 + 10 * n, 10));
    }
    assert_eq!(world.step(&Plain), Some(10));
    world.submit(2, Class::RealTime(id), read(5, 10));
    assert_eq!(world.run(&Plain), [10, 2, 11, 12, 13, 14, 1]);
}
