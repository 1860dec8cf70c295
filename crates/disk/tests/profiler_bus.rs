//! Two disks that share a bus are found to, and two that do not are not, through a
//! host that is often late.
#![allow(clippy::print_stdout)] // the table is a result

use crate::common::Random;
use crate::common::bench::Host;
use disk::profiler::{Beside, Sharing, Timing, Together};
use disk::{Bus, HardDisk, Model};
use units::{Bytes, Command, Duration, Instant};

/// Two disks on one bus, or each on its own.
struct Pair {
    disks: [HardDisk; 2],
    buses: Vec<Bus>,
    random: Random,
    now: Instant,
    /// Of four times that both are asked, so often the second begins when the first has ended.
    apart: u64,
}

impl Pair {
    fn new(model: &Model, shared: bool, seed: u64) -> Self {
        let disks = [HardDisk::new(model), HardDisk::new(model)];
        let buses = vec![Bus::new(); if shared { 1 } else { 2 }];
        Self { disks, buses, random: Random(seed), now: Instant::from_nanos(1), apart: 0 }
    }

    /// Both work off their commands; whoever begins next goes first.
    fn answer(&mut self, commands: &[Vec<Command>; 2]) -> [Vec<Timing>; 2] {
        let mut answers = [Vec::new(), Vec::new()];
        let mut next = [self.now; 2];
        let both = commands.iter().all(|commands| !commands.is_empty());
        if both && self.random.below(4) < self.apart {
            next[1] += Duration::from_secs(10);
        }
        while let Some(one) = (0..2)
            .filter(|&one| answers[one].len() < commands[one].len())
            .min_by_key(|&one| next[one])
        {
            let started = next[one];
            let begin = started + Host::Busy.takes_in(&mut self.random);
            let bus = one % self.buses.len();
            let command = &commands[one][answers[one].len()];
            let served = self.disks[one].serve_sharing(&mut self.buses[bus], begin, command);
            next[one] = begin + served + Host::Busy.answers(&mut self.random);
            answers[one].push(Timing { started, finished: next[one], failed: false });
        }
        self.now = next[0].max(next[1]);
        answers
    }

    fn measure(mut self) -> Sharing {
        let size = Bytes::GIB * 4;
        let mut beside = Beside::new([size, size]).unwrap();
        while let Some(round) = beside.poll() {
            let [one, other] = self.answer(&round.commands);
            beside.done([&one, &other]);
        }
        beside.sharing().expect("both answered")
    }
}

#[test]
fn a_bus_that_two_disks_share_is_found_and_one_of_their_own_is_not_taken_for_it() {
    let mut bad = Vec::new();
    for name in Model::names() {
        let model = Model::named(name).unwrap();
        if !model.is_hard_disk() {
            continue;
        }
        for (shared, seed) in [(true, 5), (true, 6), (true, 7), (false, 5), (false, 6), (false, 7)]
        {
            let sharing = Pair::new(&model, shared, seed).measure();
            let found = sharing.together();
            let which = if shared { "one bus" } else { "two" };
            println!("{name:<20} {which:<8} {found:?} at {} %\n{sharing}", sharing.percent());
            // A bus that takes no time, as in the model of the laptop, is shared by none.
            let right =
                if shared && name != "laptop-4200" { Together::Shared } else { Together::Apart };
            if found != right {
                bad.push((name, which, found, sharing.percent()));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn rounds_in_which_both_did_not_read_at_once_are_asked_again() {
    let model = Model::named("quantum-atlas-ii").unwrap();
    for (shared, right) in [(true, Together::Shared), (false, Together::Apart)] {
        let pair = Pair { apart: 3, ..Pair::new(&model, shared, 5) };
        assert_eq!(pair.measure().together(), right);
    }
}
