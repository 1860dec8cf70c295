//! Streams through shared windows, over a real pool: the bytes, the places, the waits,
//! and everything that a carried stream does as well.

use crate::real::{Real, byte, bytes, contract};
use client::units::{Bytes, Duration};
use client::{Code, Error, Peek, Piece};
use daemon::config::SocketMode;
use daemon::serve::ServeOptions;
use engine::{Backend, Completion, Wrap};
use node::DiskCommand;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Instant;

const BLOCK: Bytes = Bytes::kib(64);
const RATE: u64 = 8_000_000;

/// A daemon with a volume "v" of 8 MiB that has the pattern up to `len`.
fn recorded(len: u64) -> Real {
    let daemon = Real::start(64);
    daemon.volume("v", Bytes::mib(8));
    let mut writer = daemon.client.writer("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    assert!(writer.is_shared());
    writer.write_all(&bytes(0, len as usize)).unwrap();
    assert_eq!(writer.close().unwrap().get(), len);
    daemon
}

#[test]
fn what_a_writer_writes_a_reader_reads_by_copy_and_in_place() {
    let len = 3_000_001;
    let daemon = recorded(len);
    let mut reader = daemon.client.reader("v", contract(RATE, BLOCK), Bytes::new(7)).unwrap();
    assert!(reader.is_shared());
    let mut back = Vec::new();
    reader.read_to_end(&mut back).unwrap();
    assert!(back == bytes(7, len as usize - 7));
    assert_eq!(reader.offset().get(), len);
    reader.close().unwrap();

    let mut reader = daemon.client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let mut at = 0;
    while let Peek::Data(seen) = reader.peek(10_000).unwrap() {
        assert!(!seen.is_empty() && seen.len() <= 10_000);
        assert!(seen.iter().zip(at..).all(|(&got, offset)| got == byte(offset)));
        let len = seen.len().min(777);
        reader.advance(len);
        at += len as u64;
        assert_eq!(reader.offset().get(), at);
    }
    assert_eq!(at, len);
    drop(reader);
    daemon.wait(|status| status.streams.is_empty());
    // Anew: a status is gathered in steps, and that one's memory may be from before the stream went.
    assert_eq!(daemon.pool.status().memory.regions, Bytes::ZERO);
}

/// Waits until the daemon has news for this descriptor.
fn poll(fd: &impl AsFd) {
    let mut fds = [rustix::event::PollFd::new(fd, rustix::event::PollFlags::IN)];
    let long = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(rustix::event::poll(&mut fds, Some(&long)), Ok(1), "no news for a minute");
}

/// A disk that tells of no end while it is held.
struct Held {
    disk: Box<dyn Backend>,
    is_held: Arc<AtomicBool>,
    ended: Vec<Completion>,
}

impl Backend for Held {
    fn start(&mut self, command: DiskCommand) {
        self.disk.start(command);
    }
    fn submit(&mut self) {
        self.disk.submit();
    }
    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        let look = engine::now() + Duration::from_millis(1);
        let until = match self.ended.is_empty() {
            true => until,
            false => Some(until.map_or(look, |until| until.min(look))),
        };
        self.disk.wait(until, &mut self.ended);
        if !self.is_held.load(Ordering::SeqCst) {
            done.append(&mut self.ended);
        }
    }
    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.ended.len()
    }
}

/// Writes on until `upto`, or until there is no room; gives how far.
fn write_while_there_is_room(writer: &mut client::Writer, from: u64, upto: u64) -> u64 {
    let mut at = from;
    while at < upto
        && let Some(room) = writer.try_room((upto - at) as usize).unwrap()
    {
        room.iter_mut().zip(at..).for_each(|(place, offset)| *place = byte(offset));
        let some = room.len();
        writer.filled(some);
        at += some as u64;
    }
    at
}

/// The writer waits for a disk that is held, the reader for the writer: whatever the machine does, both
/// have to wait, and each is told when that has an end.
#[test]
fn a_program_that_must_not_wait_polls_the_descriptor() {
    let len = BLOCK.get() * 64;
    let is_held = Arc::new(AtomicBool::new(false));
    let of_disk = Arc::clone(&is_held);
    let wrap: Wrap = Arc::new(move |_, disk| {
        Box::new(Held { disk, is_held: Arc::clone(&of_disk), ended: Vec::new() })
    });
    let daemon = Real::start_wrapped(64, ServeOptions::from(SocketMode(0o600)), wrap);
    daemon.volume("v", Bytes::mib(8));
    let mut writer = daemon.client.writer("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    while writer.try_room(1).unwrap().is_none() {
        poll(&writer); // the daemon may take a moment until there is some
    }
    is_held.store(true, Ordering::SeqCst);
    let mut at = write_while_there_is_room(&mut writer, 0, len);
    assert!(0 < at && at < len, "the window is full: {at}");
    is_held.store(false, Ordering::SeqCst);
    while at < len {
        poll(&writer);
        at = write_while_there_is_room(&mut writer, at, len);
    }
    assert_eq!(writer.sync().unwrap().get(), len);

    let mut reader = daemon.client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let (mut at, mut upto) = (0, len);
    loop {
        match reader.try_peek(usize::MAX).unwrap() {
            None if at < upto => poll(&reader),
            // While a writer is open there may be more: it is waited for, not the end.
            None if upto == len => {
                upto += BLOCK.get();
                let mut written = len;
                loop {
                    written = write_while_there_is_room(&mut writer, written, upto);
                    if written == upto {
                        break;
                    }
                    poll(&writer);
                }
                assert_eq!(writer.sync().unwrap().get(), upto);
                poll(&reader);
            }
            None => break,
            Some(Peek::Data(seen)) => {
                assert!(seen.iter().zip(at..).all(|(&got, offset)| got == byte(offset)));
                let some = seen.len();
                reader.advance(some);
                at += some as u64;
            }
            Some(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(at, len + BLOCK.get(), "both parts");
    writer.close().unwrap();
    poll(&reader);
    assert_eq!(reader.peek(1).unwrap(), Peek::End);
    assert_eq!(reader.peek(1).unwrap(), Peek::End, "as often as it is asked for");
}

#[test]
fn a_full_volume_is_told_at_once_and_a_larger_one_written_on() {
    let daemon = Real::start(64);
    daemon.volume("v", Bytes::mib(1));
    let start = (1 << 20) - 100_000;
    let start = start - start % BLOCK.get();
    let mut writer = daemon.client.writer("v", contract(RATE, BLOCK), Bytes::new(start)).unwrap();
    let error = writer.write_all(&bytes(start, 200_000)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
    assert_eq!(writer.accepted(), Bytes::MIB, "as much as fits");
    let again = writer.room(1).unwrap_err();
    assert_eq!(again.code(), Some(Code::VolumeFull), "at the call that can know, again");
    assert_eq!(writer.sync().unwrap(), Bytes::MIB);
    daemon.client.volume_resize("v", Bytes::mib(2)).unwrap();
    writer.write_all(&bytes(1 << 20, 5000)).unwrap();
    assert_eq!(writer.close().unwrap().get(), (1 << 20) + 5000);
    let mut back = vec![0; (1 << 20) + 5000 - start as usize];
    let mut reader = daemon.client.reader("v", contract(RATE, BLOCK), Bytes::new(start)).unwrap();
    reader.read_exact(&mut back).unwrap();
    assert!(back == bytes(start, back.len()), "no byte is missing, doubled or out of its place");
}

#[test]
fn any_thread_hears_how_far_the_bytes_are_durable() {
    let daemon = recorded(0);
    let mut writer = daemon.client.writer("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let followers: Vec<_> = (0..3)
        .map(|_| {
            let (heard, hears) = std::sync::mpsc::channel();
            let durability = writer.durability();
            let follower = std::thread::spawn(move || {
                let (mut upto, mut news) = (Bytes::ZERO, 0);
                while let Some(durable) = durability.wait(upto) {
                    assert!(durable > upto);
                    (upto, news) = (durable, news + 1);
                    heard.send(()).unwrap();
                }
                (upto, news)
            });
            (follower, hears)
        })
        .collect();
    writer.write_all(&bytes(0, 200_000)).unwrap();
    let first = writer.durability().wait(Bytes::ZERO).unwrap();
    assert_eq!(first.get() % BLOCK.get(), 0, "whole blocks, without asking: {first}");
    // Each hears of that before there is more, however late its thread comes to run.
    followers.iter().for_each(|(_, hears)| hears.recv().unwrap());
    writer.write_all(&bytes(200_000, 1)).unwrap();
    assert_eq!(writer.sync().unwrap().get(), 200_001);
    assert_eq!(writer.close().unwrap().get(), 200_001);
    for (follower, _hears) in followers {
        let (upto, news) = follower.join().unwrap();
        assert_eq!(upto.get(), 200_001);
        assert!(news >= 2, "{news}");
    }
}

#[test]
fn what_a_program_filled_before_it_died_is_written() {
    for carried in [false, true] {
        let daemon = recorded(0);
        let client = daemon.client.clone();
        let client = if carried { client.without_shared_windows() } else { client };
        let mut writer = client.writer("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
        assert_eq!(writer.is_shared(), !carried);
        // Neither a whole block nor flushed: no bell was rung for the last bytes.
        for (at, len) in [(0, 40_000), (40_000, 40_000), (80_000, 20_001)] {
            writer.write_all(&bytes(at, len)).unwrap();
        }
        drop(writer);
        let status = daemon.wait(|status| status.streams.is_empty());
        assert_eq!(status.volumes[0].length.get(), 100_001);
        let mut reader = client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
        let mut back = Vec::new();
        reader.read_to_end(&mut back).unwrap();
        assert!(back == bytes(0, 100_001));
    }
}

#[test]
fn a_reader_seeks_anywhere_and_inside_the_window_at_no_cost() {
    let len = 4_000_000;
    let daemon = recorded(len);
    for client in [daemon.client.clone(), daemon.client.clone().without_shared_windows()] {
        let mut reader = client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
        let mut buf = vec![0; 5000];
        reader.read_exact(&mut buf).unwrap();
        let mut random = 1u64;
        for step in 0..40 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let to = match step % 4 {
                0 => reader.offset().get().saturating_sub(4000),
                1 => 3_999_000,
                2 => reader.offset().get() / 2,
                _ => (random >> 33) % (len - 5000),
            };
            reader.seek(Bytes::new(to)).unwrap();
            assert_eq!(reader.offset().get(), to);
            let want = (len - to).min(5000) as usize;
            reader.read_exact(&mut buf[..want]).unwrap();
            assert!(buf[..want] == bytes(to, want), "step {step}");
        }
        let before = reader.offset();
        assert_eq!(reader.seek(Bytes::mib(100)).unwrap_err().code(), Some(Code::BeyondEnd));
        assert_eq!(reader.offset(), before, "stays where it is");
        let mut rest = vec![0; (len - before.get()).min(5000) as usize];
        reader.read_exact(&mut rest).unwrap();
        assert!(rest == bytes(before.get(), rest.len()), "and goes on there");
        reader.seek(Bytes::new(17)).unwrap();
        reader.read_exact(&mut buf).unwrap();
        assert!(buf == bytes(17, 5000));
        let ready = reader.seek(Bytes::new(5017)).unwrap();
        assert_eq!(ready.ready.as_nanos(), 0, "it was there already");
        reader.close().unwrap();
    }
}

/// A block lasts for five seconds: the first bytes come all the same, and what is said of when
/// the contract holds is later. (How much sooner they come is measured in sim/first_byte.rs.)
#[test]
fn a_reader_that_begins_early_is_told_from_when_on_its_contract_holds() {
    let len = 4_000_000;
    let daemon = recorded(len);
    for client in [daemon.client.clone(), daemon.client.clone().without_shared_windows()] {
        let slow = contract(100_000, Bytes::kib(512));
        let start = 700_001;
        let (mut reader, begins) = client.reader_early("v", slow, Bytes::new(start)).unwrap();
        assert!(begins.ready <= begins.steady, "{begins:?}");
        assert!(begins.steady > Duration::from_secs(1), "{begins:?}");
        let mut buf = vec![0; 300_000];
        reader.read_exact(&mut buf).unwrap();
        assert!(buf == bytes(start, buf.len()));
        assert_eq!(reader.stats().unwrap().underruns, 0, "before that nothing is promised");
        reader.close().unwrap();
        let start = 0;
        let (mut reader, _) = client.reader_early("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
        let mut back = Vec::new();
        reader.read_to_end(&mut back).unwrap();
        assert!(back == bytes(start, len as usize), "all of it");
    }
}

#[test]
fn a_reader_follows_right_behind_a_writer_and_the_end_comes_when_it_is_one() {
    let daemon = recorded(0);
    let len = 2_000_000;
    let mut writer = daemon.client.writer("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let mut reader = daemon.client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let behind = std::thread::spawn(move || {
        let mut back = Vec::new();
        reader.read_to_end(&mut back).unwrap();
        back
    });
    for at in (0..len).step_by(10_000) {
        writer.write_all(&bytes(at, 10_000)).unwrap();
    }
    writer.close().unwrap();
    assert!(behind.join().unwrap() == bytes(0, len as usize));
}

#[test]
fn a_contract_changes_while_the_window_is_open_and_is_told() {
    let daemon = recorded(2_000_000);
    let mut reader = daemon.client.reader("v", contract(1_000_000, BLOCK), Bytes::ZERO).unwrap();
    let before = reader.stats().unwrap().window_bytes;
    let mut back = vec![0; 300_000];
    reader.read_exact(&mut back).unwrap();
    let mut more = contract(RATE, BLOCK);
    more.burst_bytes = Bytes::kib(512);
    reader.set_contract(more).unwrap();
    assert_eq!(reader.contract(), more);
    let window = reader.stats().unwrap().window_bytes;
    assert!(window > before);
    let memory = daemon.client.status().unwrap().memory;
    assert_eq!((memory.shared_window_bytes, memory.window_bytes), (window, Bytes::ZERO));
    reader.read_to_end(&mut back).unwrap();
    assert!(back == bytes(0, 2_000_000));
    more.rate_bytes_per_second = client::units::Rate::per_second(10_000_000_000);
    assert_eq!(reader.set_contract(more).unwrap_err().code(), Some(Code::Refused));
    assert_eq!(reader.contract().rate_bytes_per_second.get(), RATE);
}

#[test]
fn a_stream_that_is_closed_by_request_or_with_the_daemon_tells_its_program() {
    let mut daemon = recorded(100_000);
    let mut writer = daemon.client.writer("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    writer.write_all(&bytes(0, 5000)).unwrap();
    let closed = daemon.client.stream_close(writer.stream()).unwrap();
    assert_eq!(closed.durable_bytes, Some(Bytes::new(5000)));
    assert_eq!(writer.sync().unwrap_err().code(), Some(Code::NoSuchStream));
    assert_eq!(writer.durable().get(), 5000);
    assert_eq!(writer.room(1).unwrap_err().code(), Some(Code::NoSuchStream));

    let mut writer = daemon.client.writer("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let mut reader = daemon.client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    writer.write_all(&bytes(0, 7000)).unwrap();
    daemon.stop().unwrap();
    assert_eq!(Error::from(writer.write(b"x").unwrap_err()).code(), Some(Code::ShuttingDown));
    assert_eq!(writer.sync().unwrap_err().code(), Some(Code::ShuttingDown));
    assert_eq!(writer.durable().get(), 7000);
    // What is in the window can be read for as long as the program has it.
    let error = loop {
        match reader.next_piece(&mut [0; 50_000]) {
            Ok(Piece::Data(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Some(Code::ShuttingDown));
    assert!(matches!(daemon.client.health(), Err(Error::NoDaemon { .. })));
}

#[test]
fn a_window_is_not_carried_nor_a_carried_stream_mapped() {
    use wire::frame::{HEAD_LEN, Head, VERSION};
    let daemon = recorded(0);
    let carried = daemon.client.clone().without_shared_windows();
    let stream = {
        let body = r#"{"volume":"v","mode":"read","contract":{"rate_bytes_per_second":1000,
            "block_bytes":4096,"burst_bytes":4096}}"#;
        let mut socket = std::os::unix::net::UnixStream::connect(carried.socket()).unwrap();
        let request = format!(
            "POST /v1/streams HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let json = answer.split_once("\r\n\r\n").unwrap().1;
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(json["shared_window"], false);
        json["id"].as_u64().unwrap()
    };
    let mut socket = std::os::unix::net::UnixStream::connect(daemon.data_socket()).unwrap();
    socket.write_all(&Head::HelloWindow { version: VERSION, stream }.encode(0)).unwrap();
    let mut head = [0; HEAD_LEN];
    socket.read_exact(&mut head).unwrap();
    let (head, _) = Head::decode(&head).unwrap();
    assert!(matches!(head, Head::Failed { code: Code::Protocol, .. }), "{head:?}");
    assert!(daemon.client.health().is_ok());
}

/// Both kinds of window: bytes are read in any order ahead of the playout point and behind
/// it, the playout point is set among them, and nothing is sent for it: the pool sees only
/// how far the program has come.
#[test]
fn a_program_plays_out_of_order_within_its_window() {
    let len = 2_000_001;
    let daemon = recorded(len);
    let burst = BLOCK * 4;
    for shared in [true, false] {
        let client = match shared {
            true => daemon.client.clone(),
            false => daemon.client.clone().without_shared_windows(),
        };
        let terms = client::control::Contract { burst_bytes: burst, ..contract(RATE, BLOCK) };
        let mut reader = client.reader("v", terms, Bytes::new(777)).unwrap();
        assert_eq!(reader.is_shared(), shared);
        reader.keep(BLOCK).unwrap();
        let (mut frame, mut looks, mut furthest) = (vec![0; 10_000], 0, 777u64);
        loop {
            let point = reader.offset().get();
            // From the far end of the burst back to what is kept.
            for behind in [burst - BLOCK - Bytes::new(10_000), BLOCK, Bytes::ZERO] {
                let place = point + behind.get();
                match reader.read_at(Bytes::new(place), &mut frame).unwrap() {
                    Piece::Data(got) => assert!(frame[..got] == bytes(place, got), "{place}"),
                    Piece::End => assert!(place >= len),
                    gap => panic!("{gap:?}"),
                }
                looks += 1;
            }
            let held = reader.held();
            // Kept is what lies before the furthest point.
            assert!(held.start.get() <= furthest.saturating_sub(BLOCK.get()).max(777), "{held:?}");
            let place = held.start.get();
            match reader.read_at(held.start, &mut frame).unwrap() {
                Piece::Data(got) => assert!(frame[..got] == bytes(place, got), "{place}"),
                other => panic!("{other:?} at {place}"),
            }
            assert_eq!(reader.offset().get(), point, "it stays where it is");
            if point >= len {
                break;
            }
            // Two steps on and one back; what is kept is there for the way back.
            reader.set_playout(Bytes::new((point + 90_000).min(len))).unwrap();
            reader.set_playout(Bytes::new((point + 50_000).min(len))).unwrap();
            let at = reader.offset().get();
            if let Peek::Data(seen) = reader.peek(5000).unwrap() {
                assert!(seen == bytes(at, seen.len()), "{at}");
            }
            furthest = (point + 90_000).min(len);
        }
        assert!(looks > 100);
        for place in [0, 776, len + 1, len + burst.get()] {
            let error = reader.set_playout(Bytes::new(place)).unwrap_err();
            assert_eq!(error.code(), Some(Code::Invalid), "{place}: {error}");
        }
        assert_eq!((reader.offset().get(), reader.gaps()), (len, Bytes::ZERO));
        let moved = reader.stats().unwrap().moved_bytes.get();
        assert!(moved >= len - 777 - 2 * BLOCK.get() && moved <= len - 777, "{moved}");
        reader.close().unwrap();
    }
}

/// Frames lie in one piece wherever the blocks end, for laps and laps of the window: at any
/// length up to the burst, from any place on, and after jumps.
#[test]
fn every_frame_lies_in_one_piece() {
    let len = 3_000_000;
    let daemon = recorded(len);
    let burst = BLOCK * 3;
    for shared in [true, false] {
        let client = match shared {
            true => daemon.client.clone(),
            false => daemon.client.clone().without_shared_windows(),
        };
        let terms = client::control::Contract { burst_bytes: burst, ..contract(RATE, BLOCK) };
        let mut reader = client.reader("v", terms, Bytes::ZERO).unwrap();
        let too_much = reader.peek_whole(burst.as_usize() + 1).unwrap_err();
        assert_eq!(too_much.code(), Some(Code::Invalid));
        let mut at = 0;
        for (frame, length) in
            [50_000, 65_537, 100_000, 3, 196_608, 70_000].into_iter().cycle().enumerate()
        {
            let wanted = length.min((len - at) as usize);
            match reader.peek_whole(length).unwrap() {
                Peek::Data(seen) => assert!(seen == bytes(at, wanted), "frame {frame} at {at}"),
                Peek::End => break,
                other => panic!("{other:?}"),
            }
            reader.advance(wanted);
            at += wanted as u64;
            if frame == 20 {
                at = 1_234_567;
                reader.seek(Bytes::new(at)).unwrap();
            }
        }
        assert_eq!(at, len);
        reader.close().unwrap();
    }
}

/// A place at the end of the volume, while more is recorded: who waits for it hears of it,
/// and the end that another look has found is not the end of what is played later.
#[test]
fn a_look_ahead_of_a_recording_waits_for_it() {
    let daemon = recorded(BLOCK.get() * 4);
    let terms = client::control::Contract { burst_bytes: BLOCK * 8, ..contract(RATE, BLOCK) };
    let mut reader = daemon.client.reader("v", terms, Bytes::ZERO).unwrap();
    let mut one = [0; 1000];
    assert_eq!(reader.read_at(BLOCK * 4, &mut one).unwrap(), Piece::End);
    let mut writer = daemon.client.writer("v", contract(RATE, BLOCK), BLOCK * 4).unwrap();
    let place = BLOCK.get() * 6 + 5;
    assert_eq!(reader.try_read_at(Bytes::new(place), &mut one).unwrap(), None);
    writer.write_all(&bytes(BLOCK.get() * 4, BLOCK.as_usize() * 4)).unwrap();
    assert_eq!(reader.read_at(Bytes::new(place), &mut one).unwrap(), Piece::Data(1000));
    assert!(one[..] == bytes(place, 1000));
    writer.close().unwrap();
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    assert!(all == bytes(0, BLOCK.as_usize() * 8), "{} bytes", all.len());
}

/// A writer goes elsewhere and back, by both kinds of window, and its stream is the same one:
/// what it wrote before is on the medium, durable offsets are of the new place for whoever
/// follows them, and a place that would leave a hole is refused without harm.
#[test]
fn a_writer_goes_elsewhere_and_keeps_its_stream() {
    for shared in [true, false] {
        let daemon = recorded(1_500_000);
        let client = match shared {
            true => daemon.client.clone(),
            false => daemon.client.clone().without_shared_windows(),
        };
        let mut writer = client.writer("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
        assert_eq!(writer.is_shared(), shared);
        let mut wanted = bytes(0, 1_500_000);
        wanted.resize(3 << 20, 0);
        let mut write = |writer: &mut client::Writer, at: usize, value: u8, len: usize| {
            writer.write_all(&vec![value; len]).unwrap();
            wanted[at..at + len].fill(value);
        };
        write(&mut writer, 0, 1, 100_000);
        for (round, place) in [20, 3, 32, 0, 5].into_iter().enumerate() {
            let place = BLOCK * place;
            writer.seek(place).unwrap();
            assert_eq!((writer.accepted(), writer.durable()), (place, place));
            let durability = writer.durability();
            let follower = std::thread::spawn(move || durability.wait(place));
            write(&mut writer, place.as_usize(), 10 + round as u8, 69_632);
            let upto = writer.sync().unwrap();
            assert_eq!(upto.get(), place.get() + 69_632);
            let heard = follower.join().unwrap().expect("more is durable");
            assert!(heard > place && heard <= upto, "{heard} of {upto}");
        }
        let before = (writer.accepted(), writer.stream());
        for (place, code) in
            [(100, Code::Invalid), (45 << 16, Code::Invalid), (8 << 20, Code::VolumeFull)]
        {
            let error = writer.seek(Bytes::new(place)).unwrap_err();
            assert_eq!(error.code(), Some(code), "{place}: {error}");
        }
        assert_eq!((writer.accepted(), writer.stream()), before);
        write(&mut writer, before.0.as_usize(), 99, 4096);
        assert_eq!(writer.close().unwrap(), before.0 + Bytes::kib(4));
        let mut reader = client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
        let mut back = Vec::new();
        reader.read_to_end(&mut back).unwrap();
        assert_eq!(back.len(), (32 << 16) + 69_632);
        // Between 100,000 and the end of its 4 KiB the first writes have left what they had.
        let same = |at: usize| back[at] == wanted[at] || (100_000..102_400).contains(&at);
        assert_eq!((0..1_500_000).chain(32 << 16..back.len()).find(|&at| !same(at)), None);
    }
}
