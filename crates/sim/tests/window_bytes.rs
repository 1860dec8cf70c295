//! What a program finds in its window, and what it hears when something is wrong.

use crate::common::*;
use node::{Error, Mode, Op, Policy, Region, Reply, Span, StreamId};
use sim::{Fault, Random, Timing, WindowRecorder, World, pattern, pattern_matches};
use units::{Bytes, Duration};

const SIZE: Bytes = Bytes::mib(8);

fn small_world(seed: u64, disks: usize) -> World {
    world(config(Policy::SLACK), disks, Bytes::mib(96), |_, profile, index| {
        Timing::WithinBound(Box::new(profile.clone()), Random::new(seed + index as u64))
    })
}

fn open(world: &mut World, name: &str, mode: Mode, contract: node::Contract) -> StreamId {
    let (volume, start, region) = (name.into(), Bytes::ZERO, Region(7));
    match world.call(Op::WindowOpen { volume, mode, contract, start, region }) {
        Ok(Reply::Stream { stream, .. }) => stream,
        other => panic!("{other:?}"),
    }
}

fn moved(world: &mut World, stream: StreamId, len: Bytes) -> Result<Reply, Error> {
    world.call(Op::WindowMoved { stream, len })
}

/// A program jumps about at all moments, also while commands are under way whose memory
/// is used again: it only ever finds the bytes of where it is.
#[test]
fn after_any_jump_the_bytes_are_those_of_the_place() {
    let mut commands = 0;
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut world = small_world(seed, 1 + seed as usize % 3);
        create(&mut world, "v", SIZE);
        fill(&mut world, "v", 5, SIZE);
        let block = Bytes::kib(16) * (1 << random.below(4));
        let asked = contract(block.get() * 4, block, block * random.below(3));
        let shared = seed % 4 != 3;
        let stream = if shared {
            open(&mut world, "v", Mode::Read, asked)
        } else {
            let op = Op::StreamOpen {
                volume: "v".into(),
                mode: Mode::Read,
                contract: asked,
                start: Bytes::ZERO,
            };
            let Ok(Reply::Stream { stream, .. }) = world.call(op) else { panic!("refused") };
            stream
        };
        let mut at = Bytes::ZERO;
        for _ in 0..150 {
            for _ in 0..random.below(4) {
                let op = match shared {
                    true => Op::WindowNext { stream },
                    false => Op::StreamRead { stream, len_max: Bytes::kib(100) },
                };
                let (span, offset) = match world.call(op) {
                    Ok(Reply::Data { bytes: span, offset }) => (span, offset),
                    Ok(Reply::End) => break,
                    other => panic!("{other:?}"),
                };
                assert_eq!(offset, at);
                assert!(pattern_matches(5, offset, world.bytes(span)), "seed {seed} at {at:?}");
                at += span.len;
                let done = match shared {
                    true => moved(&mut world, stream, span.len),
                    false => world.call(Op::StreamAdvance { stream, len: span.len }),
                };
                assert_eq!(done, Ok(Reply::Done));
            }
            if random.chance(70) {
                // A nudge keeps much of the window, in either direction.
                at = match random.below(3) {
                    0 => Bytes::new(random.below(SIZE.get() + 1)),
                    1 => (at + Bytes::new(random.below(300_000))).min(SIZE),
                    _ => at.saturating_sub(Bytes::new(random.below(300_000))),
                };
                let sought = world.call(Op::StreamSeek { stream, to: at });
                assert!(matches!(sought, Ok(Reply::Ready { .. })), "{sought:?}");
            }
            world.run_for(random.span(Duration::from_millis(60)));
        }
        let status = world.node.stream(stream).expect("open");
        commands += status.account.requests;
        let beyond = SIZE + Bytes::new(1);
        let refused = world.call(Op::StreamSeek { stream, to: beyond });
        assert_eq!(refused, Err(Error::BeyondEnd { size: SIZE }));
        assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
        let memory = world.node.status(world.now()).memory;
        assert_eq!((memory.regions, memory.windows), (Bytes::ZERO, Bytes::ZERO));
    }
    assert!(commands > 1_000, "only {commands} commands");
}

/// A program that says more than is true, or asks what is not for it, hears so; nothing
/// else changes.
#[test]
fn a_program_that_lies_is_told_and_nothing_happens() {
    let mut world = small_world(1, 1);
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 5, SIZE);
    let stream = open(&mut world, "v", Mode::Read, contract(300_000, Bytes::kib(64), Bytes::ZERO));
    let lie = moved(&mut world, stream, Bytes::new(1));
    assert!(matches!(lie, Err(Error::Invalid { .. })), "{lie:?}");
    let Ok(Reply::Data { bytes: span, .. }) = world.call(Op::WindowNext { stream }) else {
        panic!()
    };
    for len in [span.len + Bytes::new(1), Bytes::new(u64::MAX)] {
        let lie = moved(&mut world, stream, len);
        assert!(matches!(lie, Err(Error::Invalid { .. })), "{lie:?}");
    }
    for op in [
        Op::StreamRead { stream, len_max: Bytes::kib(4) },
        Op::StreamAdvance { stream, len: Bytes::kib(4) },
        Op::StreamRoom { stream, len_max: Bytes::kib(4) },
        Op::StreamWrite { stream, len: Bytes::kib(4) },
    ] {
        let wrong = world.call(op);
        assert!(matches!(wrong, Err(Error::Invalid { .. } | Error::WrongMode)), "{wrong:?}");
    }
    assert_eq!(moved(&mut world, stream, span.len), Ok(Reply::Done));
    assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
    let gone = Err(Error::NoSuchStream { stream });
    assert_eq!(moved(&mut world, stream, Bytes::ZERO), gone);
    assert_eq!(world.call(Op::StreamSeek { stream, to: Bytes::ZERO }), gone);
}

/// Right behind a writer that shares its window, a reader gets every block as soon as it
/// is written, and the end when the writer has closed.
#[test]
fn a_reader_follows_a_shared_writer() {
    let mut world = small_world(3, 2);
    create(&mut world, "v", SIZE);
    let (rate, block) = (200_000, Bytes::kib(64));
    let sizes = [Bytes::new(10_000), Bytes::mib(2) + Bytes::new(777), Bytes::mib(1)];
    let asked = contract(rate, block, Bytes::ZERO);
    let recorder = WindowRecorder::new(("v", 9), asked, Region(1), sizes);
    let tally = recorder.tally();
    world.add(recorder);
    let stream = open(&mut world, "v", Mode::Read, asked);
    let mut at = Bytes::ZERO;
    loop {
        match world.call(Op::WindowNext { stream }) {
            Ok(Reply::Data { bytes: span, offset }) => {
                assert_eq!(offset, at);
                assert!(pattern_matches(9, offset, world.bytes(span)), "at {at:?}");
                at += span.len;
                assert_eq!(moved(&mut world, stream, span.len), Ok(Reply::Done));
                // Not more than a few blocks behind what was given to be written.
                let behind = tally.borrow().bytes.saturating_sub(at);
                assert!(behind <= block * 6, "{behind} behind at {at:?}");
            }
            Ok(Reply::End) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(at, sizes[1]);
    assert!(tally.borrow().done);
    assert_eq!(world.node.stream(stream).expect("open").account.underruns, 0);
}

/// Recording of `length` bytes into a volume of `size`, with a fault planted in the disks.
fn record(
    size: Bytes,
    length: Bytes,
    faults: &[Fault],
) -> (World, sim::Shared, Vec<(&'static str, Error)>) {
    let mut world = small_world(2, 1);
    create(&mut world, "v", size);
    let asked = contract(400_000, Bytes::kib(64), Bytes::ZERO);
    let served = world.disks[0].served();
    for fault in faults {
        world.disks[0].faults.push(match *fault {
            Fault::WriteError { after } => Fault::WriteError { after: after + served },
            other => other,
        });
    }
    let sizes = [Bytes::new(30_000), length, Bytes::kib(500)];
    let recorder = WindowRecorder::new(("v", 4), asked, Region(3), sizes);
    let (tally, told) = (recorder.tally(), recorder.told());
    world.add(recorder);
    world.run_for(Duration::from_secs(30));
    let told = told.borrow().clone();
    (world, tally, told)
}

/// Which call tells of what: the table of docs/contracts.md.
#[test]
fn a_delayed_error_comes_at_the_first_call_that_can_know() {
    // The volume is full: no room, before any byte is taken; what was taken is kept.
    let (mut world, tally, told) = record(Bytes::mib(1), Bytes::mib(2), &[]);
    let full = Error::VolumeFull { size: Bytes::mib(1) };
    assert_eq!(told, [("WindowNext", full)]);
    assert_eq!(tally.borrow().bytes, Bytes::mib(1));
    assert_eq!(tally.borrow().durable, Bytes::mib(1), "all that was taken is on the medium");
    let open = world.node.status(world.now()).streams[0].stream;
    let op = Op::VolumeResize { name: "v".into(), size: Bytes::mib(2), may_cut: true };
    assert_eq!(world.call(op), Ok(Reply::Done));
    let more = world.call(Op::WindowNext { stream: open });
    assert!(matches!(more, Ok(Reply::Room { .. })), "there is room again: {more:?}");
    // The pool is full: nothing is accepted that has no space.
    let op = Op::VolumeResize { name: "v".into(), size: Bytes::mib(4_000), may_cut: true };
    let refused = world.call(op);
    assert!(matches!(refused, Err(Error::PoolFull { .. })), "{refused:?}");

    // The device fails to write. Each call that is open or comes later says so, and
    // nothing is acknowledged that is not there.
    let mut first = std::collections::BTreeSet::new();
    for after in 0..40 {
        let (world, tally, told) = record(SIZE, Bytes::mib(2), &[Fault::WriteError { after }]);
        let tally = tally.borrow();
        assert!(!tally.done, "after {after}: all was acknowledged");
        let (call, error) = told.first().expect("it was told");
        let device = matches!(error, Error::Device { .. } | Error::ReadOnly { .. });
        assert!(device, "after {after}: {call}: {error}");
        first.insert(*call);
        assert!(told.iter().any(|(call, _)| *call == "StreamClose"), "{told:?}");
        let mut bytes = vec![0; tally.durable.as_usize()];
        let store = sim::open(&mut world.disks.clone()).expect("the pool opens");
        let volume = store.find("v").expect("it is there");
        let extents = tally.durable.div_ceil(store::EXTENT);
        for extent in 0..extents {
            let location = store.locate(volume.id(), extent).expect("an extent");
            let from = (store::EXTENT * extent).as_usize();
            let until = bytes.len().min(from + store::EXTENT.as_usize());
            world.disks[0].read(location.offset.unwrap(), &mut bytes[from..until]);
        }
        assert!(pattern_matches(4, Bytes::ZERO, &bytes), "after {after}");
        let memory = world.node.status(world.now()).memory;
        assert_eq!(memory.regions, Bytes::ZERO, "closed, and all memory is back");
    }
    eprintln!("the first calls that told of a device error: {first:?}");
    assert!(first.contains("WindowNext"), "{first:?}");
}

/// Once it is known that some bytes cannot become durable, every call says so, and the
/// close as well; the memory is back.
#[test]
fn every_call_after_a_device_error_tells_of_it() {
    type Call = fn(StreamId) -> Op;
    let calls: [Call; 5] = [
        |stream| Op::WindowMoved { stream, len: Bytes::new(100) },
        |stream| Op::WindowNext { stream },
        |stream| Op::StreamSync { stream },
        |stream| Op::StreamDurable { stream, beyond: Bytes::kib(64) },
        |stream| Op::StreamClose { stream },
    ];
    for (number, call) in calls.into_iter().enumerate() {
        let mut world = small_world(9, 1);
        create(&mut world, "v", SIZE);
        let asked = contract(300_000, Bytes::kib(64), Bytes::kib(64));
        let stream = open(&mut world, "v", Mode::Write, asked);
        for _ in 0..2 {
            let room = world.call(Op::WindowNext { stream });
            assert!(matches!(room, Ok(Reply::Room { .. })), "{room:?}");
        }
        let after = world.disks[0].served();
        world.disks[0].faults.push(Fault::WriteError { after });
        // Nobody can know yet.
        assert_eq!(moved(&mut world, stream, Bytes::kib(100)), Ok(Reply::Done));
        world.run_for(Duration::from_millis(300));
        let told = world.call(call(stream));
        assert!(
            matches!(told, Err(Error::Device { .. } | Error::ReadOnly { .. })),
            "call {number}: {told:?}"
        );
        if number < 4 {
            let closed = world.call(Op::StreamClose { stream });
            assert!(matches!(closed, Err(Error::Device { .. } | Error::ReadOnly { .. })));
        }
        assert_eq!(world.node.status(world.now()).memory.regions, Bytes::ZERO);
    }
}

/// A reader's error is a gap in its place among the pieces.
#[test]
fn what_cannot_be_read_is_a_gap_between_pieces() {
    let mut world = small_world(8, 1);
    create(&mut world, "v", SIZE);
    fill(&mut world, "v", 5, SIZE);
    let extent = world.node.status(world.now()).volumes[0].extents[0];
    assert_eq!(extent, 8);
    let stream = open(&mut world, "v", Mode::Read, contract(300_000, Bytes::kib(64), Bytes::ZERO));
    world.disks[0].faults.push(Fault::ReadError { from: Bytes::ZERO, to: Bytes::mib(96) });
    let (mut at, mut gaps) = (Bytes::ZERO, Bytes::ZERO);
    for piece in 0..40 {
        if piece == 8 {
            world.disks[0].faults.clear();
        }
        let len = match world.call(Op::WindowNext { stream }) {
            Ok(Reply::Data { bytes: span, offset }) => {
                assert_eq!(offset, at);
                assert!(pattern_matches(5, at, world.bytes(span)));
                span.len
            }
            Ok(Reply::Gap { offset, len }) => {
                assert_eq!(offset, at);
                gaps += len;
                len
            }
            other => panic!("{other:?}"),
        };
        at += len;
        assert_eq!(moved(&mut world, stream, len), Ok(Reply::Done));
    }
    assert!(gaps >= Bytes::kib(64) && gaps < at, "{gaps:?} of {at:?}");
    assert_eq!(world.node.stream(stream).expect("open").account.gaps, gaps);
}

/// A part of a block that was synced is written again with the rest, filled meanwhile.
#[test]
fn a_block_is_filled_on_while_its_first_part_is_written() {
    let mut world = small_world(4, 1);
    create(&mut world, "v", SIZE);
    let block = Bytes::kib(64);
    let stream = open(&mut world, "v", Mode::Write, contract(300_000, block, block));
    let mut rooms: Vec<Span> = Vec::new();
    let mut filled = 0u64;
    let mut random = Random::new(3);
    while filled < (1 << 20) {
        let len = random.between(1, 50_000).min((1 << 20) - filled);
        while rooms.iter().map(|room| room.len.get()).sum::<u64>() < filled + len {
            match world.call(Op::WindowNext { stream }) {
                Ok(Reply::Room { room: span }) => rooms.push(span),
                other => panic!("{other:?}"),
            }
        }
        // Byte by byte over the rooms, each a block.
        for at in filled..filled + len {
            let room = rooms[(at / block.get()) as usize];
            let place =
                Span { offset: room.offset + Bytes::new(at % block.get()), len: Bytes::new(1) };
            let mut byte = [0];
            pattern(6, Bytes::new(at), &mut byte);
            world.bytes_mut(place).copy_from_slice(&byte);
        }
        filled += len;
        assert_eq!(moved(&mut world, stream, Bytes::new(len)), Ok(Reply::Done));
        if random.chance(50) {
            let synced = world.call(Op::StreamSync { stream });
            assert_eq!(synced, Ok(Reply::Durable { upto: Bytes::new(filled) }));
        }
    }
    let closed = world.call(Op::StreamClose { stream });
    assert_eq!(closed, Ok(Reply::Durable { upto: Bytes::new(1 << 20) }));
    let read =
        Op::Read { volume: "v".into(), offset: Bytes::ZERO, len: Bytes::mib(1), priority: None };
    let Ok(Reply::Data { bytes: span, .. }) = world.call(read) else { panic!("it can be read") };
    assert!(pattern_matches(6, Bytes::ZERO, world.bytes(span)));
}

/// What `Client::held` says is so: from the block on in which the program's last word was, to
/// the end of what was told, every byte stays what it is, however far the node's window has
/// gone, and wherever jumps met requests under way. Programs read it in any order. The places
/// of blocks that follow each other are neighbours around the window, so that they lie in a
/// row where it is mapped twice: after a jump as before.
#[test]
fn all_that_is_held_stays_and_lies_in_a_row() {
    let (mut looks, mut breaks, mut follow, mut jumps) = (0, 0, 0, 0);
    for seed in 0..16 {
        let mut random = Random::new(seed);
        let mut world = small_world(seed, 1 + seed as usize % 3);
        create(&mut world, "v", SIZE);
        fill(&mut world, "v", 5, SIZE);
        let block = Bytes::kib(16) * (1 << random.below(4));
        let asked = contract(block.get() * 4, block, block * random.below(5));
        let stream = open(&mut world, "v", Mode::Read, asked);
        let ring = world.node.stream(stream).expect("open").window;
        // Told, and not given back in whole.
        let mut held: Vec<(Bytes, Span)> = Vec::new();
        let (mut point, mut told) = (Bytes::ZERO, Bytes::ZERO);
        for _ in 0..200 {
            for _ in 0..random.below(6) {
                if told - point >= asked.burst.max(block) {
                    break;
                }
                match world.call(Op::WindowNext { stream }) {
                    Ok(Reply::Data { bytes: span, offset }) => {
                        assert_eq!(offset, told);
                        held.push((offset, span));
                        told += span.len;
                    }
                    Ok(Reply::End) => break,
                    other => panic!("{other:?}"),
                }
            }
            if random.chance(60) {
                let to = Bytes::new(random.between(point.get(), told.get()));
                assert_eq!(moved(&mut world, stream, to - point), Ok(Reply::Done));
                point = to;
            } else if random.chance(20) {
                point = Bytes::new(random.below(SIZE.get() - 1));
                told = point;
                held.clear();
                jumps += 1;
                let sought = world.call(Op::StreamSeek { stream, to: point });
                assert!(matches!(sought, Ok(Reply::Ready { .. })), "{sought:?}");
            }
            world.run_for(random.span(Duration::from_millis(400)));
            held.retain(|(offset, span)| *offset + span.len > point);
            for _ in 0..held.len() {
                let (offset, span) = *random.pick(&held);
                assert!(pattern_matches(5, offset, world.bytes(span)), "seed {seed} {offset:?}");
                looks += 1;
            }
            let base = Region(7).offset();
            for pair in held.windows(2) {
                let end = pair[0].1.offset + pair[0].1.len - base;
                let next = pair[1].1.offset - base;
                let is_row = end == next || (end == ring && next.is_zero());
                (follow, breaks) = (follow + u32::from(is_row), breaks + u32::from(!is_row));
            }
        }
        assert_eq!(world.call(Op::StreamClose { stream }), Ok(Reply::Done));
    }
    eprintln!("{looks} looks, {follow} in a row, {breaks} not, {jumps} jumps");
    assert!(looks > 2_000 && jumps > 100 && follow > 1_000);
    // After a jump a block is elsewhere whose command was under way.
    assert!(breaks * 40 <= follow, "{breaks} of {follow} blocks do not follow");
}

/// A writer goes to and fro in its volume, over what it wrote and where nothing was, filled
/// in part or not, by both kinds of window. Whenever it has arrived, all that it wrote before
/// is on the medium as it wrote it last, and nothing else has changed; and its part of the
/// disks is its own all the time, so that nobody else can have it.
#[test]
fn a_writer_that_goes_elsewhere_has_all_of_it_on_the_medium_and_keeps_its_contract() {
    let (mut seeks, mut refused, mut over) = (0, 0, 0);
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut world = small_world(seed, 1 + seed as usize % 2);
        create(&mut world, "v", SIZE);
        let block = Bytes::kib(16) * (1 << random.below(4));
        let asked = contract(block.get() * 5, block, block * random.below(4));
        let shared = seed % 3 != 2;
        let stream = match shared {
            true => open(&mut world, "v", Mode::Write, asked),
            false => {
                let (volume, start) = ("v".into(), Bytes::ZERO);
                let op = Op::StreamOpen { volume, mode: Mode::Write, contract: asked, start };
                let Ok(Reply::Stream { stream, .. }) = world.call(op) else { panic!("refused") };
                stream
            }
        };
        let shares = world.node.stream(stream).expect("open").shares;
        let mut model: Vec<Option<u8>> = vec![None; SIZE.as_usize()];
        let (mut at, mut began, mut length) = (0usize, 0usize, 0usize);
        let mut rest: Option<Span> = None;
        for round in 1..60u8 {
            // Some bytes, often to the middle of a block; or none: it only goes there.
            let most = if random.chance(75) { 3 * block.get() } else { 0 };
            let mut left = random.between(0, most) as usize;
            left = left.min(SIZE.as_usize() - at);
            while left > 0 {
                let op = match shared {
                    true => Op::WindowNext { stream },
                    false => Op::StreamRoom { stream, len_max: Bytes::new(left as u64) },
                };
                let room = match rest.take() {
                    Some(span) => Ok(Reply::Room { room: span }),
                    None => world.call(op),
                };
                let Ok(Reply::Room { room: span }) = room else { panic!("no room") };
                let len = left.min(span.len.as_usize());
                world.bytes_mut(span)[..len].fill(round);
                let done = match shared {
                    true => moved(&mut world, stream, Bytes::new(len as u64)),
                    false => world.call(Op::StreamWrite { stream, len: Bytes::new(len as u64) }),
                };
                assert_eq!(done, Ok(Reply::Done));
                over += u32::from(model[at].is_some());
                model[at..at + len].fill(Some(round));
                (at, left) = (at + len, left - len);
                length = length.max(at);
                let end = Bytes::new(len as u64);
                if shared && end < span.len {
                    rest = Some(Span { offset: span.offset + end, len: span.len - end });
                }
            }
            if at > began && !at.is_multiple_of(4096) {
                // What follows in the same 4 KiB is zeros, or what the window's memory held.
                let end = at.next_multiple_of(4096);
                model[at..end].iter_mut().filter(|byte| byte.is_some()).for_each(|b| *b = None);
            }
            let to = match random.below(3) {
                0 => block * random.below(SIZE / block),
                1 => Bytes::MIB * random.below(SIZE / Bytes::MIB),
                _ => block * (random.below(length as u64 + 1) / block.get()),
            };
            let to = to.min(SIZE - block);
            match world.call(Op::StreamSeek { stream, to }) {
                Ok(Reply::Ready { .. }) => {
                    (at, began, rest) = (to.as_usize(), to.as_usize(), None);
                    seeks += 1;
                }
                // It would leave a hole. The writer is where it was, and has synced.
                Err(Error::Invalid { what: "offset", .. }) if !to.is_multiple_of(Bytes::MIB) => {
                    refused += 1;
                    assert_eq!(world.node.stream(stream).expect("open").durable.as_usize(), at);
                }
                other => panic!("seed {seed} to {to}: {other:?}"),
            }
            assert_eq!(world.node.stream(stream).expect("open").shares, shares);
            // As if the power went now.
            let store = sim::open(&mut world.disks.clone()).expect("the pool opens");
            let volume = store.find("v").expect("it is there");
            assert_eq!(volume.length().as_usize(), length, "seed {seed}: by what was written");
            let mut bytes = vec![0; store::EXTENT.as_usize()];
            for extent in 0..SIZE / store::EXTENT {
                let from = (store::EXTENT * extent).as_usize();
                let wanted = &model[from..from + bytes.len()];
                if wanted.iter().all(Option::is_none) {
                    continue;
                }
                let location = store.locate(volume.id(), extent).expect("an extent");
                world.disks[location.disk.0 as usize].read(location.offset.unwrap(), &mut bytes);
                let wrong =
                    wanted.iter().zip(&bytes).position(|(w, got)| w.is_some_and(|w| w != *got));
                assert_eq!(wrong, None, "seed {seed} round {round} extent {extent}");
            }
        }
        let far = Op::StreamSeek { stream, to: SIZE };
        assert_eq!(world.call(far), Err(Error::VolumeFull { size: SIZE }));
        let odd = world.call(Op::StreamSeek { stream, to: Bytes::new(5) });
        assert!(matches!(odd, Err(Error::Invalid { what: "offset", .. })), "{odd:?}");
        let closed = world.call(Op::StreamClose { stream });
        assert!(matches!(closed, Ok(Reply::Durable { .. })), "{closed:?}");
        let memory = world.node.status(world.now()).memory;
        assert_eq!((memory.regions, memory.windows), (Bytes::ZERO, Bytes::ZERO));
    }
    eprintln!("{seeks} seeks, {refused} refused, {over} writes over what was written");
    assert!(seeks > 200 && refused > 5 && over > 50, "{seeks} {refused} {over}");
}

/// A program that fills all of its window at once, goes elsewhere, and does so again and
/// again, moves no more than its contract and a window, beside what the disk takes of excess.
#[test]
fn a_writer_gains_nothing_by_going_elsewhere() {
    let mut world = small_world(5, 1);
    create(&mut world, "v", SIZE);
    let (rate, block) = (200_000, Bytes::kib(64));
    let stream = open(&mut world, "v", Mode::Write, contract(rate, block, block * 2));
    let window = world.node.stream(stream).expect("open").window;
    let (began, mut filled) = (world.now(), Bytes::ZERO);
    for round in 0..24 {
        for _ in 0..window / block {
            let Ok(Reply::Room { room: span }) = world.call(Op::WindowNext { stream }) else {
                panic!()
            };
            assert_eq!(moved(&mut world, stream, span.len), Ok(Reply::Done));
            filled += span.len;
        }
        let to = Bytes::mib(round % 8);
        let sought = world.call(Op::StreamSeek { stream, to });
        assert!(matches!(sought, Ok(Reply::Ready { .. })), "{sought:?}");
        let allowed = contract(rate, block, block * 2).rate.bytes_in(world.now() - began);
        let excess = world.node.stream(stream).expect("open").account.excess;
        assert!(filled <= allowed + window + excess, "{filled} in {}", world.now() - began);
    }
    // And nobody is told of it who keeps the contract: no request was late.
    assert_eq!(world.node.stream(stream).expect("open").account.late_requests, 0);
}
