//! A hard disk that holds several commands and orders them itself, under a pool: best effort is
//! served faster than one at a time, at the same contracts, and none of them is late.

#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

use crate::common::*;
use disk::{CommandQueue, Model, Profile};
use node::{Policy, Priority};
use sim::{Greedy, Metadata, Ordering, Player, Timing, World};
use units::{Bytes, Duration};

const RUN: Duration = Duration::from_secs(60);

/// What a greedy reader gets in a second beside films of that rate, and how many of their requests
/// were late.
fn beside(model: &Model, queue: u32, films: u64, rate: u64) -> (f64, u64) {
    let memory = Bytes::mib(256);
    let profile = Profile::of(model).with_queue(queue);
    let mut world: World<Metadata> = world_of(
        node::Config { memory, ..config(Policy::SLACK) },
        1,
        (model, profile),
        |model, _, _| {
            let drive = CommandQueue::new(model, queue as usize, CommandQueue::PATIENCE);
            Timing::Ordering(Ordering::Drive(Box::new(drive)))
        },
    );
    let size = Bytes::mib(64);
    for film in 0..films {
        let name = format!("film{film}");
        create(&mut world, &name, size);
        fill(&mut world, &name, film, size);
    }
    let large = Bytes::mib(512);
    create(&mut world, "data", large);
    fill(&mut world, "data", 99, large);
    for film in 0..films {
        let contract = contract(rate, Bytes::kib(512), Bytes::ZERO);
        world.add(Player::new(&format!("film{film}"), film, contract, Bytes::kib(64), size));
    }
    let greedy = Greedy::new("data", large, Bytes::kib(4), 32, 5).stating(Priority::Normal);
    let tally = greedy.tally();
    world.add(greedy);
    world.run_for(RUN);
    let bytes = tally.borrow().bytes;
    (bytes.get() as f64 / RUN.as_secs_f64(), late(&world))
}

/// A greedy reader of 4 KiB, 32 at a time, beside films that have half of the disk: so many times
/// as fast as one at a time, at least.
#[test]
fn best_effort_is_faster_where_the_drive_orders_it() {
    for (name, films, rate, percent) in [
        ("laptop-4200", 4, 1 << 20, 130),
        ("laptop-4200", 8, 1 << 20, 120),
        ("hdd-7200-20tb", 10, 2 << 20, 160),
        // Its seeks cost more than its turns: what is near is chosen here as well as there.
        ("seagate-cheetah", 4, 1 << 20, 100),
    ] {
        let model = Model::named(name).unwrap().scaled(Bytes::mib(2_048)).unwrap();
        let [(one, late), (several, late_too)] =
            [1, 8].map(|queue| beside(&model, queue, films, rate));
        let ratio = several / one;
        println!("{name}: {one:.0} B/s one at a time, {several:.0} with eight: {ratio:.2}");
        assert_eq!((late, late_too), (0, 0), "{name}");
        assert!(ratio * 100.0 > f64::from(percent), "{name}: {ratio:.2}");
    }
}
