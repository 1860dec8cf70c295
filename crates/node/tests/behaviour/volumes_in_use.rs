//! A volume that is in use: what may be done to it while best effort or a stream is at
//! it, and what is refused until that has ended. The disk does nothing until the test says
//! so, so that a transfer is under way for as long as it takes.

use crate::driver::*;
use node::{ContractRoom, DiskIndex, Error, Mode, Op, Placement, Reply, Ticket, WriteRange};
use units::{Bytes, Duration, Instant};

const VOLUME: &str = "film";
const SIZE: Bytes = Bytes::mib(8);
const LEN: Bytes = Bytes::kib(256);

/// A node of one disk, with a volume of 8 MiB, two of which were written.
fn held() -> Driver {
    let mut driver = Setup::new(1).with(|config| config.memory = Bytes::mib(16)).open();
    driver.recorded(VOLUME, SIZE, Bytes::mib(2), 1);
    driver.disks[0].holds = true;
    driver
}

/// Lets the disk work until an operation is answered.
fn wait(driver: &mut Driver, ticket: Ticket) -> Result<Reply, Error> {
    driver.disks[0].holds = false;
    let answer = driver.wait(ticket);
    driver.disks[0].holds = true;
    answer
}

/// A best-effort write that the disk is at.
fn write_under_way(driver: &mut Driver) -> Ticket {
    let ticket = driver.begin_write(VOLUME, 2, Bytes::mib(4), LEN);
    assert_eq!(driver.disks[0].flights.len(), 1);
    ticket
}

/// A best-effort read that the disk is at.
fn read_under_way(driver: &mut Driver) -> Ticket {
    let ticket = driver.begin(read(VOLUME, Bytes::ZERO, LEN));
    assert_eq!(driver.disks[0].flights.len(), 1);
    ticket
}

fn of_volume(mode: Mode) -> Op {
    open(VOLUME, mode, usual(), Bytes::ZERO)
}

fn cut(size: Bytes) -> Op {
    Op::VolumeResize { name: VOLUME.into(), size, may_cut: true }
}

fn busy(streams: u64) -> Result<Reply, Error> {
    Err(Error::VolumeBusy { name: VOLUME.into(), streams })
}

/// What a disk is at belongs to the volume: given to another one meanwhile, the write would
/// go over the other's data, and the read would show it.
#[test]
fn space_is_not_taken_from_under_best_effort() {
    for begin in [write_under_way, read_under_way] {
        let mut driver = held();
        let transfer = begin(&mut driver);
        assert_eq!(driver.at_once(delete(VOLUME)), busy(0));
        assert_eq!(driver.at_once(cut(Bytes::MIB)), busy(0));
        assert_eq!(driver.answer(transfer), None, "it is still under way");
        // Growing takes nothing away.
        let grown = driver.begin(cut(SIZE + Bytes::MIB));
        assert_eq!(wait(&mut driver, grown), Ok(Reply::Done));
        let mut driver = held();
        let transfer = begin(&mut driver);
        assert!(wait(&mut driver, transfer).is_ok());
        let shrunk = driver.begin(cut(Bytes::mib(1)));
        assert_eq!(wait(&mut driver, shrunk), Ok(Reply::Done));
        let deleted = driver.begin(delete(VOLUME));
        assert_eq!(wait(&mut driver, deleted), Ok(Reply::Done));
        assert!(matches!(driver.at_once(delete(VOLUME)), Err(Error::NoSuchVolume { .. })));
    }
}

/// What lies beyond the new end goes where nobody is at work there, whoever is at work before it.
#[test]
fn beside_best_effort_a_volume_is_made_smaller_behind_it() {
    let mut driver = held();
    let under_way = write_under_way(&mut driver);
    let end = Bytes::mib(4) + LEN;
    assert_eq!(driver.at_once(cut(end - Bytes::kib(4))), busy(0));
    let cut = driver.begin(cut(end));
    assert_eq!(wait(&mut driver, cut), Ok(Reply::Done));
    assert_eq!(wait(&mut driver, under_way), Ok(Reply::Done));
    driver.disks[0].holds = false;
    assert_eq!(driver.node.volume(VOLUME).unwrap().size, Bytes::mib(5), "whole MiB");
    assert_eq!(driver.read(VOLUME, Bytes::mib(4), LEN).unwrap(), pattern(2, Bytes::mib(4), LEN));
}

/// A writer and a reader go on, to the new end; what lay behind it is another volume's.
#[test]
fn under_streams_a_volume_is_made_smaller_behind_them() {
    let mut driver = held();
    driver.disks[0].holds = false;
    let two = Bytes::mib(2);
    // 10 s of it are 1.25 MiB.
    let slow = contract(RATE / 8, BLOCK, Bytes::ZERO);
    let (writer, _) = driver.stream(open(VOLUME, Mode::Write, slow, two));
    let reader = driver.reader(VOLUME, usual());
    driver.put_all(writer, 1, Bytes::MIB);
    let room = driver.ask(Op::StreamRoom { stream: writer, len_max: BLOCK });
    assert!(matches!(room, Ok(Reply::Room { .. })), "{room:?}");
    driver.done(Op::Sync);
    let refused = driver.at_once(cut(Bytes::mib(4)));
    assert_eq!(refused, busy(1), "the writer, which would be there soon; the reader is before it");
    driver.done(cut(Bytes::mib(5)));
    let free = driver.node.status(driver.now).disks[0].free;
    driver.recorded("other", free.round_down(Bytes::MIB), free.round_down(Bytes::MIB), 9);
    driver.done(Op::StreamWrite { stream: writer, len: Bytes::ZERO });
    driver.put_all(writer, 1, two);
    let size = Bytes::mib(5);
    let beyond = driver.ask(Op::StreamRoom { stream: writer, len_max: BLOCK });
    assert_eq!(beyond, Err(Error::VolumeFull { size }));
    let mut at = Bytes::ZERO;
    while at < size {
        let (offset, bytes) = driver.next(reader, BLOCK);
        assert!(offset == at && bytes == pattern(1, at, BLOCK), "{at}");
        at += BLOCK;
    }
    assert!(driver.close(writer).is_ok() && driver.close(reader).is_ok());
    for mib in 0..free / Bytes::MIB {
        let at = Bytes::mib(mib);
        assert!(
            driver.read("other", at, Bytes::MIB).unwrap() == pattern(9, at, Bytes::MIB),
            "{at}"
        );
    }
}

/// A reader has asked for a block that reaches beyond what is recorded, into what would go.
#[test]
fn a_volume_is_not_made_smaller_within_a_block_that_a_reader_has_asked_for() {
    let mut driver = Setup::new(1).open();
    driver.recorded(VOLUME, Bytes::mib(4), Bytes::MIB, 1);
    let long = contract(RATE, Bytes::mib(2), Bytes::ZERO);
    let reader = driver.reader(VOLUME, long);
    assert_eq!(driver.at_once(resize(VOLUME, Bytes::MIB)), busy(1));
    driver.done(resize(VOLUME, Bytes::mib(2)));
    assert!(driver.close(reader).is_ok());
    driver.done(resize(VOLUME, Bytes::MIB));
}

/// A volume of four extents lies on two disks, and is cut to one: its reader asks one disk for
/// all. Where that does not fit nothing is cut.
#[test]
fn a_volume_is_made_smaller_under_a_reader_with_its_contract_or_not_at_all() {
    let mut driver = Setup::new(2).open();
    let on = |disks: &[u16]| {
        let disks = disks.iter().map(|&disk| DiskIndex(disk)).collect();
        Placement { disks, ..Placement::default() }
    };
    driver.done(create(VOLUME, Bytes::mib(4), on(&[0, 1])));
    driver.write(VOLUME, 1, Bytes::ZERO, Bytes::MIB);
    let reader = driver.reader(VOLUME, usual());
    let promised = |driver: &Driver| {
        let status = driver.node.status(driver.now);
        [0, 1].map(|disk: usize| (status.disks[disk].utilisation_ppm, status.disks[disk].slack))
    };
    // Another volume has what the first disk has to promise.
    driver.done(create("greedy", Bytes::MIB, on(&[0])));
    let mut greedy = Vec::new();
    for rate in [RATE * 2, RATE / 8, RATE / 16] {
        let wish = contract(rate, BLOCK, Bytes::ZERO);
        while let Ok(Reply::Stream { stream, .. }) =
            driver.ask(open("greedy", Mode::Read, wish, Bytes::ZERO))
        {
            greedy.push(stream);
        }
    }
    let before = (promised(&driver), driver.node.status(driver.now).memory);
    let told = driver.at_once(resize(VOLUME, Bytes::MIB));
    assert!(is_refused(&told), "{told:?}");
    let after = (promised(&driver), driver.node.status(driver.now).memory);
    assert_eq!(before, after);
    assert_eq!(driver.node.volume(VOLUME).unwrap().extents, [2, 2]);
    driver.run(Duration::from_secs(5));
    for stream in greedy {
        assert!(driver.close(stream).is_ok());
    }
    driver.done(resize(VOLUME, Bytes::MIB));
    assert_eq!(driver.node.volume(VOLUME).unwrap().extents, [1, 0]);
    for at in 0..16 {
        let (offset, bytes) = driver.next(reader, BLOCK);
        assert!(offset == BLOCK * at && bytes == pattern(1, offset, BLOCK), "{at}");
    }
    driver.run(Duration::from_secs(5));
    // What one promises alone to a reader that is opened now.
    let there = promised(&driver);
    assert!(driver.close(reader).is_ok());
    let reader = driver.reader(VOLUME, usual());
    assert_eq!(there, promised(&driver));
    assert!(driver.close(reader).is_ok());
}

/// A stream's writes go where they belong in its own order; a best-effort write to the same
/// blocks, or the zeros before one, would fall on what the stream records.
#[test]
fn a_writer_is_not_opened_beside_a_best_effort_write_nor_one_begun_beside_it() {
    let mut driver = held();
    let under_way = write_under_way(&mut driver);
    assert_eq!(driver.at_once(of_volume(Mode::Write)), busy(0));
    assert!(driver.at_once(of_volume(Mode::Read)).is_ok(), "a reader is");
    assert_eq!(wait(&mut driver, under_way), Ok(Reply::Done));
    let opened = driver.begin(of_volume(Mode::Write));
    let Ok(Reply::Stream { stream, .. }) = wait(&mut driver, opened) else { panic!("not opened") };
    assert_eq!(driver.at_once(of_volume(Mode::Write)), busy(1), "one writer");
    assert_eq!(driver.at_once(delete(VOLUME)), busy(2), "a writer and a reader");
    let refused = driver.begin_write(VOLUME, 2, Bytes::mib(4), LEN);
    assert_eq!(driver.answer(refused), Some(busy(1)));
    let closed = driver.begin(Op::StreamClose { stream });
    assert!(wait(&mut driver, closed).is_ok());
    let written = driver.begin_write(VOLUME, 2, Bytes::mib(4), LEN);
    assert_eq!(wait(&mut driver, written), Ok(Reply::Done), "the writer is gone");
}

/// A read beside a writer that is opened disturbs nothing.
#[test]
fn a_writer_is_opened_beside_a_best_effort_read() {
    let mut driver = held();
    let read = read_under_way(&mut driver);
    let opened = driver.begin(of_volume(Mode::Write));
    assert!(matches!(wait(&mut driver, opened), Ok(Reply::Stream { .. })));
    let Ok(Reply::Data { bytes: span, .. }) = wait(&mut driver, read) else { panic!("not read") };
    assert_eq!(driver.bytes(span), pattern(1, Bytes::ZERO, LEN));
}

/// Memory of a write that is refused is given to whoever waits for some.
#[test]
fn a_write_that_is_refused_gives_its_memory_to_who_waits() {
    let mut driver = held();
    let opened = driver.begin(of_volume(Mode::Write));
    assert!(wait(&mut driver, opened).is_ok());
    let mut spans = Vec::new();
    let waits = loop {
        let ticket = driver.begin(room(LEN));
        match driver.answer(ticket) {
            Some(Ok(Reply::Room { room: span })) => spans.push(span),
            None => break ticket,
            other => panic!("{other:?} is no room"),
        }
    };
    let span = spans[0];
    let refused = driver.begin(write(VOLUME, WriteRange::new(Bytes::mib(4), LEN), span));
    assert_eq!(driver.answer(refused), Some(busy(1)));
    assert_eq!(driver.answer(waits), Some(Ok(Reply::Room { room: span })));
    assert!(driver.now > Instant::EPOCH);
}

/// A volume of one extent comes to a second disk when it grows, and with it what is promised on
/// it. The room on that disk is the bound of each kind of contract; nothing changes beyond it.
#[test]
fn contracts_grow_with_their_volume_no_further_than_they_may() {
    let (one, two) = (Bytes::MIB, Bytes::mib(2));
    for kind in 0..3 {
        let mut driver = Setup::new(2).open();
        driver.volume("v", one);
        let promised = in_time(BLOCK, ms(200), ms(400));
        let mut room = ContractRoom {
            streams: Vec::new(),
            service: false,
            handles: Vec::new(),
            shares: vec![1_000_000, 10_000],
            memory: Bytes::MAX,
        };
        match kind {
            0 => {
                let (stream, _) = driver.stream(open("v", Mode::Read, usual(), Bytes::ZERO));
                room.streams.push(stream);
            }
            1 => {
                driver.done(service("v", promised));
                room.service = true;
            }
            _ => {
                let opened = Op::HandleOpen { volume: "v".into(), service: promised };
                let Ok(Reply::Handle { handle }) = driver.ask(opened) else { panic!("it fits") };
                room.handles.push(handle);
            }
        }
        let used = |driver: &Driver| {
            let status = driver.node.status(driver.now);
            let disks: Vec<_> = status.disks.iter().map(|disk| disk.utilisation_ppm).collect();
            (disks, status.memory.services, status.memory.windows)
        };
        let before = used(&driver);
        let grow = |room: &ContractRoom| {
            let (name, rooms) = ("v".into(), vec![room.clone()]);
            Op::VolumeResizeWithin { name, size: two, may_cut: false, rooms }
        };
        let refused = driver.ask(grow(&room)).unwrap_err();
        let Error::BeyondShare { room: 0, disk, ppm, most: 10_000 } = refused else {
            panic!("{kind}: {refused}")
        };
        assert!(disk == DiskIndex(1) && ppm > 10_000, "{kind}: {refused}");
        assert_eq!((used(&driver), driver.node.volume("v").unwrap().size), (before, one));
        room.memory = Bytes::kib(100);
        room.shares.clear();
        let refused = driver.ask(grow(&room)).unwrap_err();
        assert!(matches!(refused, Error::BeyondMemory { .. }), "{kind}: {refused}");
        // All that it comes to take, to the byte, is within it.
        if let Error::BeyondMemory { memory, .. } = refused {
            room.memory = memory;
        }
        room.shares = vec![1_000_000, ppm];
        driver.done(grow(&room));
        assert_eq!(driver.node.volume("v").unwrap().size, two);
        // Who was beyond it before does not grow by this, and is not in the way.
        room.shares = vec![0, 0];
        driver.done(Op::VolumeResizeWithin {
            name: "v".into(),
            size: Bytes::mib(4),
            may_cut: false,
            rooms: vec![room],
        });
    }
}
