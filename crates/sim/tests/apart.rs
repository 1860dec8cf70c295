//! Blocks of readers that lie in several places, since their volume was written among others: what
//! comes behind the first place is counted from as far as the places lie apart, and nobody is
//! late, also on a disk that takes as long as it ever may.

use crate::common::*;
use disk::{Model, Profile};
use node::{Op, Placement, Policy, Reply, Zone};
use sim::{Greedy, Player, Timing, World};
use units::{Bytes, Duration};

const FILM: Bytes = Bytes::mib(48);
/// What somebody greedy reads, at both ends of the disk.
const ENDS: [(Zone, &str); 2] = [(Zone::Outer, "outer"), (Zone::Inner, "inner")];
const END: Bytes = Bytes::mib(16);

fn film(number: u64) -> String {
    format!("film{number}")
}

/// Thin volumes that were written in turns, and one at each end of the disk.
fn pool(films: u64, policy: Policy, timing: impl Fn(&Model, &Profile, usize) -> Timing) -> World {
    let config = node::Config { memory: Bytes::mib(512), ..config(policy) };
    let mut world = world(config, 1, Bytes::GIB * 40, timing);
    for (zone, name) in ENDS {
        create_in(&mut world, name, END, Placement { zone, ..Placement::default() });
        fill(&mut world, name, 1, END);
    }
    for number in 0..films {
        let placement = Placement { thin: true, ..Placement::default() };
        create_in(&mut world, &film(number), FILM, placement);
    }
    let mut at = Bytes::ZERO;
    while at < FILM {
        for number in 0..films {
            write(&mut world, &film(number), number, (at, Bytes::MIB));
        }
        at += Bytes::MIB;
    }
    assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
    world
}

/// As many readers as are admitted, beside somebody greedy: how many.
fn serve(
    block: Bytes,
    policy: Policy,
    timing: impl Fn(&Model, &Profile, usize) -> Timing,
) -> usize {
    const FILMS: u64 = 12;
    let mut world = pool(FILMS, policy, timing);
    for number in 0..FILMS {
        let stretches = world.node.volume(&film(number)).unwrap().stretches.count;
        assert!(stretches > FILM / Bytes::MIB / 2, "{stretches} stretches");
    }
    let asked = contract(1_300_000, block, Bytes::ZERO);
    let player = |number| Player::new(&film(number), number, asked, Bytes::kib(64), FILM);
    let players = play_while_admitted(&mut world, FILMS, Duration::from_secs(1), player);
    for (_, name) in ENDS {
        world.add(Greedy::new(name, END, Bytes::kib(256), 4, 3));
    }
    world.run_for(Duration::from_secs(60));
    assert_eq!(late(&world), 0, "{block}");
    for tally in &players {
        let tally = tally.borrow();
        let wrong = (&tally.error, tally.wrong, tally.gaps, tally.wait_max);
        assert_eq!(wrong, (&None, Bytes::ZERO, Bytes::ZERO, Duration::ZERO), "{block}");
        assert!(tally.done, "{} of {FILM}", tally.bytes);
    }
    players.len()
}

#[test]
fn nobody_is_late_whose_blocks_lie_in_several_places() {
    for (policy, block, count) in [
        (Policy::SLACK, 1, 7),
        (Policy::SLACK, 2, 8),
        (Policy::SLACK, 4, 9),
        (policies::SWEEPS, 4, 3),
    ] {
        // As long as a command may take at the worst, and as long as a drive takes.
        for timing in [at_bound, drive] {
            assert_eq!(serve(Bytes::mib(block), policy, timing), count, "{block} MiB {policy:?}");
        }
    }
}
