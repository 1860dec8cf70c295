//! The defining order of each plain policy, on a queue that can be worked by hand.

use crate::common::{Plain, World, at, ms, read};
use sched::{Class, PolicyKind, Predict};
use units::{Command, Duration, Instant, Lba};

/// The queue of the textbooks: the head is at 53.
const QUEUE: [u64; 8] = [98, 183, 37, 122, 14, 124, 65, 67];

fn textbook(kind: PolicyKind) -> Vec<u64> {
    let mut world = World::new(kind);
    world.submit(0, Class::best_effort(false), read(52, 1));
    world.run(&Plain);
    assert_eq!(world.schedule.head(), Lba::new(53));
    world.reads_at(&QUEUE);
    world.run(&Plain)[1..].to_vec()
}

#[test]
fn fcfs_serves_in_order_of_arrival() {
    assert_eq!(textbook(policies::FCFS), QUEUE);
}

#[test]
fn sstf_serves_the_nearest_from_wherever_the_head_is() {
    // From 68 it is 30 to 98 and 31 to 37; the textbook's head stops at 67.
    assert_eq!(textbook(policies::SSTF), [65, 67, 98, 122, 124, 183, 37, 14]);
}

#[test]
fn scan_serves_a_turn_from_edge_to_edge_and_the_next_one_back() {
    let mut world = World::new(policies::SCAN);
    world.reads_at(&QUEUE);
    assert_eq!(world.step(&Plain), Some(14));
    // 15 and 150 are ahead of the arm and near it, but came after the turn began.
    world.reads_at(&[15, 150]);
    assert_eq!(world.run(&Plain), [14, 37, 65, 67, 98, 122, 124, 183, 150, 15]);
}

#[test]
fn c_scan_serves_upward_and_goes_back_to_the_lowest() {
    assert_eq!(textbook(policies::C_SCAN), [65, 67, 98, 122, 124, 183, 14, 37]);
}

#[test]
fn look_turns_at_the_last_request_and_takes_newcomers_ahead_along() {
    assert_eq!(textbook(policies::LOOK), [65, 67, 98, 122, 124, 183, 37, 14]);
    let mut world = World::new(policies::LOOK);
    world.reads_at(&QUEUE);
    assert_eq!(world.step(&Plain), Some(14));
    world.reads_at(&[15, 150, 10]);
    assert_eq!(world.run(&Plain), [14, 15, 37, 65, 67, 98, 122, 124, 150, 183, 10]);
}

#[test]
fn look_goes_on_downward_once_it_has_turned() {
    let mut world = World::new(policies::LOOK);
    world.submit(50, Class::best_effort(false), read(50, 1));
    assert_eq!(world.step(&Plain), Some(50));
    world.reads_at(&[90, 40, 20]);
    assert_eq!(world.step(&Plain), Some(90));
    assert_eq!(world.step(&Plain), Some(40));
    // 45 is nearer than 20, but behind the arm.
    world.reads_at(&[45]);
    assert_eq!(world.run(&Plain), [50, 90, 40, 20, 45]);
}

#[test]
fn look_is_not_held_up_by_requests_for_one_place() {
    let mut world = World::new(policies::LOOK);
    world.reads_at(&[100, 500]);
    let mut key = 1000;
    while world.step(&Plain) != Some(500) {
        key += 1;
        assert!(key < 1010, "the sweep stays at 100 for ever");
        world.submit(key, Class::best_effort(false), read(100, 1));
    }
}

/// A disk whose far half is slow to reach and whose 16 sectors pass the head in
/// 16 ms: a request waits for its sector, then takes a millisecond a sector.
struct Rotating;

impl Predict for Rotating {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        Plain.bound(from, command) + ms(16)
    }
    fn expected(&self, when: Instant, _: Lba, command: &Command) -> Duration {
        let Command::Transfer(access) = command else { return ms(1) };
        let angle = when.as_nanos() / 1_000_000 % 16;
        let wait = (access.lba.get() + 16 - angle) % 16;
        ms(wait) + Plain.bound(Lba::default(), command)
    }
}

#[test]
fn satf_serves_what_is_done_first_not_what_is_near() {
    let mut world = World::new(policies::SATF);
    // At instant 0 the head is at angle 0: 15 passes last, 1600 passes at once.
    world.reads_at(&[15, 1602, 1600]);
    assert_eq!(world.step(&Rotating), Some(1600));
}

#[test]
fn freeblock_serves_background_in_a_rotation_that_would_be_waited_out() {
    let mut world = World::new(policies::FREEBLOCK);
    world.reads_at(&[12]);
    // 4 to 7 pass before 12 does; 8 to 13 do not, and after 9 to 12 it has passed.
    world.submit(1, Class::Background, read(8, 6));
    world.submit(3, Class::Background, read(9, 4));
    world.submit(2, Class::Background, read(4, 4));
    assert_eq!(world.step(&Rotating), Some(2), "4 to 7 are free");
    world.now = at(8);
    assert_eq!(world.step(&Rotating), Some(12), "8 to 13 are not");
    assert_eq!(world.step(&Rotating), Some(1), "an idle disk serves background");
}

#[test]
fn freeblock_leaves_background_alone_where_the_prediction_knows_no_rotation() {
    let mut world = World::new(policies::FREEBLOCK);
    world.submit(1, Class::Background, read(4, 4));
    world.reads_at(&[12, 50]);
    assert_eq!(world.run(&Plain), [12, 50, 1]);
}
