//! Priorities that best-effort handles state: who always has a request waiting sees, on
//! average, the better latency and throughput the higher its priority is (ABISS,
//! section 3.2), and what a volume was given is the most that its handles get.
#![allow(clippy::print_stdout)] // the figures are the result

use crate::common::*;
use node::{Op, Policy, Priority, Reply, Service};
use sim::{Greedy, Player, Shared, World};
use units::{Bytes, Duration};

const SIZE: Bytes = Bytes::mib(64);
const PIECE: Bytes = Bytes::kib(16);

/// A volume that was written, on one disk.
fn filled(seed: u64) -> World {
    let mut world = world(config(Policy::SLACK), 1, Bytes::GIB, drive);
    for (number, name) in ["v", "s"].into_iter().enumerate() {
        create(&mut world, name, SIZE);
        fill(&mut world, name, seed + number as u64, SIZE);
    }
    world
}

fn serve(world: &mut World, service: Service) {
    assert_eq!(world.call(Op::VolumeService { name: "v".into(), service }), Ok(Reply::Done));
}

/// Readers that always have `outstanding` requests waiting, one for each priority.
fn readers(world: &mut World, stated: &[Priority], outstanding: u64, seed: u64) -> Vec<Shared> {
    let start = |(number, &priority): (usize, &Priority)| {
        let greedy = Greedy::new("v", SIZE, PIECE, outstanding, seed * 10 + number as u64);
        let greedy = greedy.stating(priority);
        let tally = greedy.tally();
        world.add(greedy);
        tally
    };
    stated.iter().enumerate().map(start).collect()
}

/// Operations, and the mean wait in microseconds.
fn seen(tally: &Shared) -> (u64, u64) {
    let tally = tally.borrow();
    assert!(tally.error.is_none(), "{:?}", tally.error);
    (tally.operations, tally.wait_total.as_nanos() / 1000 / tally.operations.max(1))
}

/// Two at a time at least: one that asks for the next when it has had the last has nothing
/// waiting when the disk chooses, and the others' turn comes in between.
#[test]
fn who_always_has_a_request_waiting_sees_the_better_service_the_higher_its_priority() {
    let order = [Priority::Interactive, Priority::Normal, Priority::Background];
    for (outstanding, with_stream, seed) in
        [(2, false, 1), (4, false, 2), (2, true, 3), (8, true, 4)]
    {
        let mut world = filled(seed);
        if with_stream {
            let wanted = contract(1_000_000, Bytes::kib(256), Bytes::ZERO);
            let player = Player::new("s", seed + 1, wanted, PIECE, SIZE);
            world.add(player);
        }
        let tallies = readers(&mut world, &order, outstanding, seed);
        world.run_for(Duration::from_secs(60));
        let all: Vec<(u64, u64)> = tallies.iter().map(seen).collect();
        println!("{outstanding} waiting each, a stream beside: {with_stream}: {all:?}");
        for (higher, lower) in [(0, 1), (1, 2)] {
            assert!(all[higher].0 > all[lower].0, "throughput: {all:?}");
            assert!(all[lower].0 == 0 || all[higher].1 < all[lower].1, "latency: {all:?}");
        }
        assert_eq!(late(&world), 0);
    }
}

/// What three readers got that state their priorities, on a volume with this service.
fn on(service: Option<Service>, stated: [Priority; 2], seed: u64) -> [(u64, u64); 2] {
    let mut world = filled(seed);
    if let Some(service) = service {
        serve(&mut world, service);
    }
    let tallies = readers(&mut world, &stated, 2, seed);
    world.run_for(Duration::from_secs(30));
    [seen(&tallies[0]), seen(&tallies[1])]
}

#[test]
fn what_a_volume_was_given_is_the_most_that_its_handles_get() {
    let [high, low] = on(None, [Priority::Interactive, Priority::Normal], 5);
    assert!(high.0 > low.0 * 3 / 2, "no service given: {high:?} {low:?}");
    let normal = Service::BestEffort(Priority::Normal);
    let [high, low] = on(Some(normal), [Priority::Interactive, Priority::Normal], 5);
    assert!(high.0 < low.0 * 11 / 10, "both are normal: {high:?} {low:?}");
    let background = Service::BestEffort(Priority::Background);
    let [high, low] = on(Some(background), [Priority::Interactive, Priority::Background], 5);
    assert!(high.0 < low.0 * 11 / 10, "both are background: {high:?} {low:?}");
}

#[test]
fn a_handle_in_the_background_leaves_the_volumes_contract_to_the_others() {
    let rate = Service::Rate {
        rate: units::Rate::per_second(200_000),
        block: PIECE,
        period: Duration::from_secs(2),
    };
    let [contract, background] = on(Some(rate), [Priority::Normal, Priority::Background], 6);
    assert!(contract.0 > 10 * background.0, "{contract:?} {background:?}");
}

/// A volume gets its service while requests of its handles wait: they keep what they
/// state, as far as the new service lets them.
#[test]
fn what_waits_when_a_service_is_given_keeps_what_its_handle_states() {
    let mut world = filled(7);
    let stated = [Priority::Interactive, Priority::Background];
    let tallies = readers(&mut world, &stated, 4, 7);
    world.run_for(Duration::from_secs(5));
    let before = seen(&tallies[1]).0;
    serve(&mut world, Service::BestEffort(Priority::Interactive));
    world.run_for(Duration::from_secs(5));
    assert_eq!(seen(&tallies[1]).0, before, "the interactive ones leave nothing");
    serve(&mut world, Service::BestEffort(Priority::Background));
    world.run_for(Duration::from_secs(5));
    assert!(seen(&tallies[1]).0 > before + 100, "all are background now");
}
