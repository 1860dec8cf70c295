//! Every operation of a pool with every number that it takes at the places where
//! arithmetic breaks: nobody panics, and everything is answered. A program that is not
//! malicious sends such numbers, too: a size of -1, a rate in the wrong unit.

use crate::common::*;
use disk::{Kind, Line, Profile};
use node::{
    Contract, DiskIndex, Error, Mode, Op, Placement, Policy, Reply, Service, StreamId, Wanted,
    Whose, WriteRange,
};
use sim::World;
use units::{Bytes, Duration, Rate};

/// Nothing, what is usual, every limit and what is next to it, and powers of two up to
/// the last number.
const NUMBERS: [u64; 17] = [
    0,
    1,
    13, // with blocks of 1 MiB just within a block a day
    4_095,
    4_096,
    1 << 20,
    1 << 26,
    1 << 31,
    1 << 32,
    1 << 50,
    (1 << 50) + 1,
    1 << 53,
    1 << 60,
    (1 << 60) + 1,
    1 << 62,
    1 << 63,
    u64::MAX,
];

fn numbers() -> impl Iterator<Item = u64> + Clone {
    NUMBERS.into_iter()
}

fn pairs() -> impl Iterator<Item = (u64, u64)> + Clone {
    numbers().flat_map(|a| numbers().map(move |b| (a, b)))
}

fn triples() -> impl Iterator<Item = (u64, u64, u64)> {
    pairs().flat_map(|(a, b)| numbers().map(move |c| (a, b, c)))
}

fn contract_of(rate: u64, block: u64, burst: u64) -> Contract {
    contract(rate, Bytes::new(block), Bytes::new(burst))
}

/// Contracts of which many would be kept: any rate and burst, and blocks that there are.
fn contracts() -> impl Iterator<Item = Contract> {
    let blocks = [4_096, 1 << 16, 1 << 20];
    pairs().flat_map(move |(rate, burst)| blocks.map(|block| contract_of(rate, block, burst)))
}

/// A pool with a volume `v` that lies on all disks and has 2 MiB of data.
fn pool(disks: usize) -> World {
    let mut world = world(config(Policy::SLACK), disks, Bytes::mib(160), drive);
    create(&mut world, "v", Bytes::mib(32));
    fill(&mut world, "v", 5, Bytes::mib(2));
    world
}

/// It still does what a pool is for.
fn serves(world: &mut World) {
    let read =
        Op::Read { volume: "v".into(), offset: Bytes::ZERO, len: Bytes::kib(64), priority: None };
    let Ok(Reply::Data { bytes: span, .. }) = world.call(read) else {
        panic!("a pool that serves")
    };
    assert_eq!(world.call(Op::Release { span }), Ok(Reply::Done));
}

fn open(mode: Mode, contract: Contract, start: Bytes) -> Op {
    Op::StreamOpen { volume: "v".into(), mode, contract, start }
}

fn closed(world: &mut World, opened: &Result<Reply, Error>) {
    if let Ok(Reply::Stream { stream, .. }) = *opened {
        world.call(Op::StreamClose { stream }).unwrap();
    }
}

#[test]
fn volumes_of_any_size_are_made_or_refused() {
    let mut world = pool(2);
    let mut made = 0;
    for size in numbers().map(Bytes::new) {
        let name = String::from("n");
        let created = Op::VolumeCreate {
            name: name.clone(),
            size,
            placement: Placement::default(),
            access: Default::default(),
        };
        if world.call(created).is_ok() {
            made += 1;
            for size in numbers().map(Bytes::new) {
                let _ = world.call(Op::VolumeResize { name: name.clone(), size, may_cut: true });
            }
            world.call(Op::VolumeDelete { name, only: None, keep_directory: false }).unwrap();
        }
    }
    assert!(made > 2);
    serves(&mut world);
}

#[test]
fn a_service_of_any_kind_is_taken_or_refused() {
    let mut world = pool(2);
    let mut taken = 0;
    for (a, b, c) in triples() {
        let services = [
            Service::Rate {
                rate: Rate::per_second(a),
                block: Bytes::new(b),
                period: Duration::from_nanos(c),
            },
            Service::Latency {
                len: Bytes::new(b),
                within: Duration::from_nanos(a),
                every: Duration::from_nanos(c),
            },
        ];
        for service in services {
            match world.call(Op::VolumeService { name: "v".into(), service }) {
                Ok(_) => taken += 1,
                Err(Error::Refused(refusal)) => assert!(refusal.utilisation_ppm > 0),
                Err(Error::Invalid { .. }) => {}
                Err(other) => panic!("{service:?}: {other:?}"),
            }
        }
    }
    assert!(taken > 0, "none of them could be kept");
    serves(&mut world);
}

/// What item 4 of the story was: one request of anybody, and nobody is served any more.
#[test]
fn a_service_of_four_exabytes_a_second_is_refused() {
    let mut world = pool(1);
    let rate = Rate::per_second(1 << 62);
    let period = Duration::from_secs(60);
    let service = Service::Rate { rate, block: Bytes::kib(4), period };
    let refused = world.call(Op::VolumeService { name: "v".into(), service });
    assert!(matches!(refused, Err(Error::Invalid { what: "rate", .. })), "{refused:?}");
    // As much as may be asked for: no disk has it, and the answer says what it would take.
    let service = Service::Rate { rate: Rate::per_second(1 << 50), block: Bytes::kib(4), period };
    let refused = world.call(Op::VolumeService { name: "v".into(), service });
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    serves(&mut world);
}

#[test]
fn streams_of_any_contract_from_anywhere_are_opened_or_refused() {
    // Over sixteen disks a stream comes to each so seldom that no analysis counts so far.
    for disks in [1, 16] {
        let mut world = pool(disks);
        let mut opened = 0;
        for contract in contracts() {
            for start in [0, 1 << 20].into_iter().chain(numbers().skip(7)) {
                for mode in [Mode::Read, Mode::Write] {
                    let answer = world.call(open(mode, contract, Bytes::new(start)));
                    opened += u64::from(answer.is_ok());
                    closed(&mut world, &answer);
                }
            }
            world
                .call(Op::Block { volume: "v".into(), mode: Mode::Read, rate: contract.rate })
                .ok();
        }
        for (rate, block, burst) in triples() {
            let answer = world.call(open(Mode::Read, contract_of(rate, block, burst), Bytes::ZERO));
            closed(&mut world, &answer);
        }
        assert!(opened > 100, "{opened}");
        serves(&mut world);
    }
}

#[test]
fn an_open_stream_bears_any_change_and_any_length() {
    for (disks, mode) in [(1, Mode::Read), (16, Mode::Read), (2, Mode::Write)] {
        let mut world = pool(disks);
        let modest = contract_of(100_000, 1 << 16, 0);
        let start = if mode == Mode::Write { Bytes::mib(4) } else { Bytes::ZERO };
        let Ok(Reply::Stream { stream, .. }) = world.call(open(mode, modest, start)) else {
            panic!("a modest stream")
        };
        let mut changed = 0;
        for (rate, burst) in pairs() {
            let contract = contract_of(rate, 1 << 16, burst);
            changed += u64::from(world.call(Op::StreamChange { stream, contract }).is_ok());
            transfer(&mut world, stream, mode, Bytes::new(burst));
        }
        for (rate, block, burst) in triples() {
            let contract = contract_of(rate, block, burst);
            let _ = world.call(Op::StreamChange { stream, contract });
        }
        for latency in numbers().map(Duration::from_nanos) {
            assert_eq!(world.call(Op::HostLatency { latency }), Ok(Reply::Done));
            transfer(&mut world, stream, mode, Bytes::kib(4));
        }
        assert!(changed > 3, "{changed}");
        serves(&mut world);
    }
}

/// Moves a little, and asks for everything else that has a length or a place.
fn transfer(world: &mut World, stream: StreamId, mode: Mode, len: Bytes) {
    let one =
        Contract { rate: Rate::per_second(1_000_000), block: Bytes::kib(64), burst: Bytes::ZERO };
    let _ = world.call(Op::StreamChange { stream, contract: one });
    let (ask, done): (Op, fn(StreamId, Bytes) -> Op) = match mode {
        Mode::Read => (Op::StreamRead { stream, len_max: len }, |stream, len| Op::StreamAdvance {
            stream,
            len,
        }),
        Mode::Write | Mode::Update => {
            (Op::StreamRoom { stream, len_max: len }, |stream, len| Op::StreamWrite { stream, len })
        }
    };
    let given = world.call(ask);
    for len in NUMBERS.into_iter().rev().map(Bytes::new) {
        if world.call(done(stream, len)).is_ok() && given.is_ok() {
            break;
        }
    }
    for to in numbers().map(Bytes::new) {
        let _ = world.call(Op::StreamSeek { stream, to });
        let _ = world.call(Op::WindowMoved { stream, len: to });
    }
}

#[test]
fn whoever_waits_for_bytes_that_never_come_is_answered_when_the_stream_ends() {
    let mut world = pool(1);
    let modest = contract_of(100_000, 1 << 16, 0);
    let Ok(Reply::Stream { stream, .. }) = world.call(open(Mode::Write, modest, Bytes::mib(4)))
    else {
        panic!("a modest stream")
    };
    let now = world.now();
    for (number, beyond) in (1 << 40..).zip(NUMBERS) {
        let op = Op::StreamDurable { stream, beyond: Bytes::new(beyond) };
        world.node.handle(
            now,
            node::Event::Request {
                ticket: node::Ticket(number),
                who: node::Who::root(),
                op,
                arrived: now,
            },
        );
    }
    let mut answered = 0;
    while world.node.poll_output().is_some() {
        answered += 1;
    }
    // Up to where the stream began everything is durable; from 1 EiB on nothing can be.
    assert!(answered >= 10, "{answered}");
    serves(&mut world);
}

#[test]
fn reads_and_writes_anywhere_and_of_any_length_are_done_or_refused() {
    let mut world = pool(2);
    for (offset, len) in pairs().map(|(offset, len)| (Bytes::new(offset), Bytes::new(len))) {
        let read = Op::Read { volume: "v".into(), offset, len, priority: None };
        if let Ok(Reply::Data { bytes: span, .. }) = world.call(read) {
            world.call(Op::Release { span }).unwrap();
        }
        if let Ok(Reply::Room { room: span }) = world.call(Op::Room { len, target: None }) {
            world.call(Op::Release { span }).unwrap();
        }
        let Ok(Reply::Room { room: span }) =
            world.call(Op::Room { len: Bytes::kib(4), target: None })
        else {
            panic!("room")
        };
        let range = WriteRange::new(offset, len);
        let _ = world.call(Op::Write { volume: "v".into(), range, span, priority: None });
    }
    assert_eq!(world.call(Op::Sync), Ok(Reply::Done));
    serves(&mut world);
}

#[test]
fn a_plan_of_any_numbers_is_made_or_refused() {
    let mut world = pool(2);
    let Ok(Reply::Planner(planner)) = world.call(Op::Plan) else { panic!("a planner") };
    let wanted = |count: u64, what: Whose| Wanted {
        name: "w".into(),
        count,
        what,
        placement: Placement::default(),
    };
    for contract in contracts() {
        let _ = planner.plan(&[wanted(1, Whose::Stream { mode: None, contract })]);
    }
    for (rate, block, burst) in triples() {
        let contract = contract_of(rate, block, burst);
        let _ = planner.plan(&[wanted(1, Whose::Stream { mode: None, contract })]);
        let service = Service::Rate {
            rate: Rate::per_second(rate),
            block: Bytes::new(block),
            period: Duration::from_nanos(burst),
        };
        let _ = planner.plan(&[wanted(1, Whose::Service(service))]);
    }
    let modest = Whose::Stream { mode: None, contract: contract_of(1_000, 4_096, 0) };
    for (one, other) in pairs() {
        let list = [wanted(one, modest), wanted(other, modest)];
        let asked = one.saturating_add(other);
        let answer = if asked > 5_000 { planner.plan(&list).map(drop) } else { Ok(()) };
        assert_eq!(answer.is_err(), asked > 10_000, "{asked}: {answer:?}");
    }
}

/// A profile as it comes in: parsed from text, or made in the process by whatever measured.
#[test]
fn a_profile_of_absurd_numbers_is_refused_and_a_slow_one_can_be_used() {
    let mut world = pool(1);
    let capacity = Profile::of(&model(Bytes::mib(160))).capacity();
    let mut used = 0;
    for (time, rate) in pairs() {
        let line =
            |fixed, rate| Line { fixed: Duration::from_nanos(fixed), rate: Rate::per_second(rate) };
        let kinds = [
            (line(time, 1 << 26), line(1_000, rate), 1_000, 1_000),
            (line(1_000, rate), line(1_000, 1 << 26), time, 1_000),
            (line(1_000, 1 << 26), line(time, rate), 1_000, time),
        ];
        for (read, write, latency, flush) in kinds {
            let latency = Duration::from_nanos(latency);
            let kind =
                Kind::Linear(disk::LinearProfile { read, write, depth: 1, latency, spread: None });
            let flush = Duration::from_nanos(flush);
            let (source, confidence) = ("test".into(), "none".into());
            let profile = Profile { source, confidence, capacity, flush, kind, bus: None };
            let parsed = Profile::parse(&profile.to_toml());
            assert!(parsed.is_ok() || profile.check().is_err(), "{profile:?}");
            assert!(parsed.is_ok_and(|read| read.check().is_ok()) || profile.check().is_err());
            let profile = Box::new(profile);
            used += u64::from(world.call(Op::ProfileSet { disk: DiskIndex(0), profile }).is_ok());
        }
    }
    assert!(used > 0, "none of them could be used");
    serves(&mut world);
}
