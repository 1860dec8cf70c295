//! More writers than hear of a commit at once: each hears of it in the end, and none is
//! told more than a power cut leaves.
//!
//! Recorders on two disks sync all the time, so that commits follow one another while
//! writers still hear of the one before. At random events the disks are copied, cut and
//! recovered, and what each recorder was told is durable is compared with what is there.

use crate::common::*;
use node::{Event, Op, Policy, Ticket, Who};
use sim::{Random, Recorder, Shared, SimDisk, Timing, pattern_matches};
use std::cell::RefCell;
use std::rc::Rc;
use store::Store;
use units::{Bytes, Duration};

const WRITERS: u64 = 40;
const SIZE: Bytes = Bytes::MIB;

/// What is wrong with one volume, compared with what its recorder was told.
fn lost(disks: &[SimDisk], store: &Store, name: &str, seed: u64, durable: Bytes) -> Option<String> {
    let volume = store.find(name).expect("it was there before the first write");
    if volume.length() < durable {
        let there = volume.length();
        return Some(format!("{name}: {durable} told durable, {there} there"));
    }
    let location = store.locate(volume.id(), 0).expect("the volume's one extent");
    let mut bytes = vec![0; durable.as_usize()];
    disks[location.disk.as_usize()].read(location.offset.unwrap(), &mut bytes);
    let good = pattern_matches(seed, Bytes::ZERO, &bytes);
    (!good).then(|| format!("{name}: other bytes than were told durable"))
}

/// Runs the recorders to their ends. Says how many cuts were judged, and what was wrong.
fn record(seed: u64) -> (u64, Vec<String>) {
    let mut config = config(Policy::SLACK);
    config.commit_interval = Duration::from_millis(500);
    let mut world = world(config, 2, Bytes::mib(256), |_, profile, index| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
    });
    for number in 0..WRITERS {
        create(&mut world, &format!("v{number}"), SIZE);
    }
    let mut tallies: Vec<Shared> = Vec::new();
    for number in 0..WRITERS {
        let length = Bytes::kib(40) + Bytes::new(number * 97);
        let contract = contract(1_500, Bytes::kib(4), Bytes::ZERO);
        let recorder =
            Recorder::new(&format!("v{number}"), number, contract, Bytes::new(1_000), length)
                .sync_every(Bytes::kib(3));
        tallies.push(recorder.tally());
        world.add(recorder);
    }
    let findings = Rc::new(RefCell::new((0, Vec::new())));
    let (found, told) = (findings.clone(), tallies.clone());
    let mut dice = Random::new(seed ^ 0xd1ce);
    world.watch = Some(Box::new(move |disks| {
        if dice.below(25) != 0 {
            return;
        }
        let mut disks: Vec<SimDisk> =
            disks.iter().map(|disk| disk.clone().cut(&mut dice)).collect();
        let mut found = found.borrow_mut();
        found.0 += 1;
        let store = sim::open(&mut disks).expect("it opens after every cut");
        for (number, tally) in (0..).zip(&told) {
            let durable = tally.borrow().durable;
            found.1.extend(lost(&disks, &store, &format!("v{number}"), number, durable));
        }
    }));
    world.run_for(Duration::from_secs(60));
    for (number, tally) in tallies.iter().enumerate() {
        let tally = tally.borrow();
        assert_eq!(tally.error, None, "v{number}");
        assert!(tally.done, "v{number} waits for ever: durable {}", tally.durable);
        assert_eq!(tally.durable, tally.bytes, "v{number}: the close makes all durable");
    }
    assert_eq!(late(&world), 0);
    drop(world);
    Rc::into_inner(findings).expect("the world is gone").into_inner()
}

#[test]
fn each_writer_hears_of_each_commit_and_of_no_more_than_it_covers() {
    let mut cuts = 0;
    for seed in 1..=3 {
        let (judged, problems) = record(seed);
        assert_eq!(problems, [""; 0], "seed {seed}");
        cuts += judged;
    }
    assert!(cuts > 100, "{cuts} cuts were judged");
}

/// What a status shows while streams open and close between its steps.
#[test]
fn a_status_in_steps_shows_everything_that_stays() {
    let mut world = world(config(Policy::SLACK), 2, Bytes::mib(256), drive);
    for number in 0..100 {
        create(&mut world, &format!("v{number}"), SIZE);
    }
    let mut look = node::Look::new(world.now());
    let (mut steps, mut gone) = (0, 0);
    while world.node.look(&mut look) {
        steps += 1;
        if steps == 4 {
            // One that was seen, one that was not yet.
            for name in ["v1", "v97"] {
                let op = Op::VolumeDelete { name: name.into(), only: None, keep_directory: false };
                world.node.handle(
                    world.now(),
                    Event::Request {
                        ticket: Ticket(u64::MAX),
                        who: Who::root(),
                        op,
                        arrived: world.now(),
                    },
                );
                gone += 1;
            }
        }
    }
    let (status, analysed) = look.finish();
    world.node.learn(&analysed);
    assert!(steps > 4 && gone == 2, "{steps} steps");
    assert_eq!(status.disks.len(), 2);
    let names: Vec<&str> = status.volumes.iter().map(|volume| &*volume.name).collect();
    let expected: Vec<String> =
        (0..100).filter(|number| *number != 97).map(|number| format!("v{number}")).collect();
    assert_eq!(names, expected);
    let whole = world.node.status(world.now());
    assert_eq!(whole.volumes.len(), 98);
    for (disk, step) in whole.disks.iter().zip(&status.disks) {
        assert_eq!(disk.slack, step.slack, "the same contracts");
    }
}
