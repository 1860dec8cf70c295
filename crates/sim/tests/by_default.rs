//! What disks take of programs that name neither a run for their volumes nor a block for their
//! streams, and that it is kept. (`long_blocks.rs` has what they take in given blocks.)
#![allow(clippy::print_stdout)] // how much is admitted is the result

use crate::common;
use crate::common::{late, play_while_admitted};
use disk::{HardDisk, Model, Profile};
use node::{Contract, DiskSetup, Mode, Node, Op, Placement, Policy, Reply};
use sim::{Metadata, Player, SimDisk, Timing, World};
use store::{Blocks, EXTENT};
use units::{Bytes, Duration, Rate};

/// How many streams of this rate three such disks take, all over nine tenths of them, each on a volume of
/// its own; they are served for a minute. Gives their block, and the memory of all windows.
fn taken(model: &str, rate: u64, commits: Duration, most: u64) -> (u64, Bytes, Bytes) {
    let profile = Profile::of(&Model::named(model).unwrap());
    let drive = |seed| {
        let drive = HardDisk::new(&Model::named(model).unwrap().with_seed(seed));
        SimDisk::metadata_only(profile.capacity(), Timing::Drive(Box::new(drive)))
    };
    let mut disks: Vec<SimDisk<Metadata>> = (0..3).map(drive).collect();
    sim::format(&mut disks, "test", &profile, 1).unwrap();
    let mut store = sim::open(&mut disks).unwrap();
    let memory = Bytes::mib(2048);
    let config = node::Config { memory, commit_interval: commits, ..common::config(Policy::SLACK) };
    let setups = || vec![DiskSetup::new(profile.clone()); 3];
    let run = Node::new(config, setups(), store.clone())
        .unwrap()
        .run_for(&Placement::default(), Bytes::GIB);
    let placement = Placement { run, ..Placement::default() };
    let size = (profile.capacity() * 3 / 10 * 9 / most).round_down(Bytes::mib(16));
    let film = Bytes::mib(256).min(size);
    for number in 0..most {
        let id = store.create(&format!("v{number}"), size, &placement).unwrap();
        let extents = 0..film / EXTENT;
        extents.for_each(|extent| store.note_written(id, extent, &Blocks::first(EXTENT)));
        store.note_length(id, film);
    }
    sim::commit(&mut disks, &mut store).unwrap();
    let node = Node::new(config, setups(), store).unwrap();
    let mut world: World<Metadata> = World::new(node, disks, memory);
    let (mode, of) = (Mode::Read, Rate::per_second(rate));
    let Ok(Reply::Block { block }) = world.call(Op::Block { volume: "v0".into(), mode, rate: of })
    else {
        panic!("no block")
    };
    let contract = Contract { rate: of, block, burst: Bytes::ZERO };
    let player =
        |number| Player::new(&format!("v{number}"), number, contract, Bytes::kib(64), film);
    let players = play_while_admitted(&mut world, most, Duration::from_millis(1), player);
    let windows = world.node.status(world.now()).memory.windows;
    world.run_for(Duration::from_secs(60));
    assert_eq!(late(&world), 0, "{model}");
    assert!(players.iter().all(|player| player.borrow().wait_max.is_zero()), "{model}");
    (players.len() as u64, block, windows)
}

#[test]
fn three_disks_give_most_of_their_rate_to_who_names_neither_run_nor_block() {
    let seconds = Duration::from_secs;
    // The last is at the end of 2 GiB of memory, not of the disks.
    for (model, rate, commits, most, least, in_blocks) in [
        ("quantum-atlas-ii", 1_000_000, 1, 26, 19, Bytes::mib(2)),
        ("quantum-atlas-ii", 1_000_000, 3, 26, 22, Bytes::mib(2)),
        ("laptop-4200", 2_000_000, 1, 40, 30, Bytes::mib(4)),
        ("hdd-7200-20tb", 2_000_000, 1, 200, 100, Bytes::mib(4)),
    ] {
        let (count, block, windows) = taken(model, rate, seconds(commits), most);
        println!(
            "three {model}, {commits} s: {count} of {rate} B/s in {block}, windows of {windows}"
        );
        assert_eq!(block, in_blocks, "{model}");
        assert!(count >= least, "{model}: {count}");
    }
}
