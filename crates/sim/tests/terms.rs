//! What a contract is said to take before it is asked for is what it takes.

use crate::common::*;
use node::{DiskIndex, Mode, Op, Placement, Policy, Reply, Service, Terms, Wish};
use sim::Random;
use units::{Bytes, Duration, Rate};

#[test]
fn the_terms_of_a_contract_are_those_that_a_status_shows_afterwards() {
    let mut random = Random::new(3);
    let mut world = world(config(Policy::SLACK), 3, Bytes::mib(256), drive);
    for (name, disks) in [("all", vec![]), ("one", vec![DiskIndex(1)])] {
        let placement = Placement { disks, ..Placement::default() };
        let size = Bytes::mib(12);
        let op =
            Op::VolumeCreate { name: name.into(), size, placement, access: Default::default() };
        assert!(matches!(world.call(op), Ok(Reply::Made { .. })));
    }
    let mut admitted = [0, 0];
    for _ in 0..200 {
        let volume = *random.pick(&["all", "one"]);
        let mut contract = random_contract(&mut random);
        contract.rate = contract.rate / 4;
        let mode = if random.chance(50) { Mode::Read } else { Mode::Write };
        let told = world.node.terms(volume, &Wish::Stream(mode, contract)).expect("it could be");
        let op = Op::StreamOpen { volume: volume.into(), mode, contract, start: Bytes::ZERO };
        if let Ok(Reply::Stream { stream, window }) = world.call(op) {
            let shown = world.node.stream(stream).expect("it is open");
            assert_eq!(told, Terms { window, shares: shown.shares });
            assert_eq!(told.window, shown.window);
            world.call(Op::StreamClose { stream }).expect("it was open");
            admitted[0] += 1;
        }
        let (block, period) = (Bytes::kib(64), Duration::from_secs(1));
        let rate = Rate::per_second(random.between(10_000, 400_000));
        let service = Service::Rate { rate, block, period };
        let told = world.node.terms(volume, &Wish::Service(service)).expect("it could be");
        if world.call(Op::VolumeService { name: volume.into(), service }).is_ok() {
            let shown = world.node.volume(volume).expect("it is there");
            assert_eq!(told, Terms { window: shown.memory, shares: shown.shares });
            assert!(shown.memory > Bytes::ZERO);
            let service = Service::default();
            world.call(Op::VolumeService { name: volume.into(), service }).expect("no contract");
            admitted[1] += 1;
        }
    }
    assert!(admitted.iter().all(|&count| count > 100), "{admitted:?}");
    assert_eq!(world.node.terms("none", &Wish::Service(Service::default())), None);
}
