//! A daemon's end and a program's end at work on one window, as two threads and as two
//! processes: every byte of a million pieces arrives as it was, in order, and nobody
//! sleeps for ever. Pieces are tiny, so that the ends meet at every word as often as
//! can be; bell and news are single bytes on a socket, and every byte of data says
//! where it belongs.
#![allow(unsafe_code)]
#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;
use units::Bytes;
use window::{Client, Daemon, Kind, Memory, Mode, Piece, Rights};

const PIECES: u64 = 1_000_000;
/// Longest piece, and the size of the data.
const PIECE_MAX: u64 = 64;
const DATA: u64 = 8192;
const BLOCK: u64 = 512;
const SLOTS: u64 = 64;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// The byte at an offset of the volume.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The daemon's side: its end of the window, the data, and the socket.
struct Filler {
    end: Daemon,
    data: Memory,
    socket: UnixStream,
    random: Random,
    offset: u64,
    moved: u64,
    gaps: u64,
    gaps_told: u64,
    news: u64,
    mode: Mode,
}

impl Filler {
    fn new(mode: Mode, socket: UnixStream) -> Self {
        let rights = if mode == Mode::Read { Rights::Read } else { Rights::Write };
        let data = Memory::create("data", DATA as usize, rights).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
        let end = Daemon::create(mode, SLOTS).unwrap();
        let (random, offset, moved, gaps, gaps_told, news) = (Random(7), 0, 0, 0, 0, 0);
        Self { end, data, socket, random, offset, moved, gaps, gaps_told, news, mode }
    }

    fn at(&self, offset: u64) -> *mut u8 {
        self.data.base().wrapping_add((offset % DATA) as usize)
    }

    /// The next piece: a gap now and then, never across the end of the data.
    fn piece(&mut self) -> Piece {
        let place = self.offset % DATA;
        let len = (1 + self.random.below(PIECE_MAX)).min(DATA - place);
        let gap = self.mode == Mode::Read && self.random.below(50) == 0;
        let kind = match self.mode {
            _ if gap => Kind::Gap,
            Mode::Read => Kind::Data,
            Mode::Write | Mode::Update => Kind::Room,
        };
        for offset in self.offset..self.offset + len {
            let value = if kind == Kind::Data { byte(offset) } else { 0xee };
            // SAFETY: inside the data; the program is done with what was there.
            unsafe { self.at(offset).write_volatile(value) };
        }
        if gap {
            self.gaps_told += len;
        }
        let [place, offset, len] = [place, self.offset, len].map(Bytes::new);
        Piece { kind, place, offset, len }
    }

    /// Takes note of how far the program has come; of what it wrote, every byte.
    fn further(&mut self) {
        let further = self.end.further().expect("the truth");
        let before = self.moved;
        self.moved += further.bytes.get();
        self.gaps += further.gaps.get();
        if self.mode == Mode::Write {
            for offset in before..self.moved {
                // SAFETY: inside the data; the program is done with it.
                assert_eq!(unsafe { self.at(offset).read_volatile() }, byte(offset), "{offset}");
            }
        }
    }

    fn run(mut self) {
        for _ in 0..PIECES {
            let piece = loop {
                self.further();
                let room = self.offset + PIECE_MAX <= self.moved + DATA;
                if room && !self.end.is_full() {
                    break self.piece();
                }
                self.sleep(self.moved + BLOCK);
            };
            self.offset += piece.len.get();
            if self.end.publish(piece) {
                self.news += 1;
                self.socket.write_all(b"n").unwrap();
            }
        }
        while self.moved < self.offset {
            self.sleep(self.offset);
            self.further();
        }
        assert_eq!(self.gaps, self.gaps_told);
        // The end is told to a program that waits for more.
        while !self.end.begins_to_wait() {
            assert!(self.socket.read(&mut [0; 64]).unwrap() > 0);
        }
        let [place, offset, len] = [0, self.offset, 0].map(Bytes::new);
        assert!(self.end.publish(Piece { kind: Kind::End, place, offset, len }));
        self.socket.write_all(b"n").unwrap();
        println!("news: {}", self.news);
    }

    /// Sleeps until the bell rings, unless the program has come to `at` already.
    fn sleep(&mut self, at: u64) {
        if !self.end.ring_at(Bytes::new(at)) {
            assert!(self.socket.read(&mut [0; 64]).unwrap() > 0, "the program is gone");
        }
    }
}

/// The program's side: takes every piece, checks or fills every byte, in steps.
fn program(mut window: Client, mut socket: UnixStream) {
    let mut random = Random(11);
    let (mut offset, mut pieces, mut sleeps, mut bells) = (0, 0u64, 0, 0);
    socket.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
    loop {
        let Some(piece) = window.take().unwrap() else {
            if window.begin_to_wait() {
                sleeps += 1;
                socket.write_all(b"w").unwrap();
                assert!(socket.read(&mut [0; 64]).unwrap() > 0, "the daemon is gone");
            }
            continue;
        };
        assert_eq!(piece.offset.get(), offset);
        if piece.kind == Kind::End {
            break;
        }
        pieces += 1;
        while window.left() > 0 {
            let len = 1 + random.below(PIECE_MAX) as usize;
            let from = window.offset().get();
            let len = if window.mode() == Mode::Read {
                let bytes = window.bytes(len);
                assert!(bytes.iter().zip(from..).all(|(&got, offset)| got == byte(offset)));
                bytes.len()
            } else {
                let room = window.bytes_mut(len);
                room.iter_mut().zip(from..).for_each(|(place, offset)| *place = byte(offset));
                room.len()
            };
            if window.advance(len) {
                bells += 1;
                socket.write_all(b"b").unwrap();
            }
        }
        offset += piece.len.get();
        if piece.kind == Kind::Gap && window.passes_bell() {
            socket.write_all(b"b").unwrap();
        }
    }
    assert_eq!(pieces, PIECES);
    assert!(bells <= offset / BLOCK + 1, "at most one bell a block: {bells}");
    println!("{pieces} pieces, {offset} bytes, {bells} bells, slept {sleeps} times");
}

fn ends(mode: Mode) -> (Filler, OwnedFd, OwnedFd, UnixStream) {
    let (here, there) = UnixStream::pair().unwrap();
    let filler = Filler::new(mode, here);
    let control = filler.end.fd().try_clone_to_owned().unwrap();
    let data = filler.data.fd().try_clone_to_owned().unwrap();
    (filler, control, data, there)
}

fn as_threads(mode: Mode) {
    let (filler, control, data, socket) = ends(mode);
    let daemon = std::thread::spawn(move || filler.run());
    program(Client::open(control, data, Bytes::ZERO).unwrap(), socket);
    daemon.join().unwrap();
}

fn as_processes(mode: Mode) {
    let (filler, control, data, socket) = ends(mode);
    let fds = [control.as_raw_fd(), data.as_raw_fd(), socket.as_raw_fd()];
    rustix::io::fcntl_setfd(&control, rustix::io::FdFlags::empty()).unwrap();
    rustix::io::fcntl_setfd(&data, rustix::io::FdFlags::empty()).unwrap();
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_program_of_its_own", "--nocapture"])
        .env("SLACKLINE_WINDOW_FDS", fds.map(|fd| fd.to_string()).join(","))
        .spawn()
        .unwrap();
    drop((control, data, socket));
    filler.run();
    assert!(child.wait().unwrap().success());
}

/// The other side of the tests with two processes; nothing by itself.
#[test]
fn the_program_of_its_own() {
    let Ok(fds) = std::env::var("SLACKLINE_WINDOW_FDS") else { return };
    // SAFETY: the process that started this one has left these descriptors open for it.
    let mut fds = fds.split(',').map(|fd| unsafe { OwnedFd::from_raw_fd(fd.parse().unwrap()) });
    let [control, data, socket] = std::array::from_fn(|_| fds.next().unwrap());
    program(Client::open(control, data, Bytes::ZERO).unwrap(), socket.into());
}

#[test]
fn a_million_pieces_are_read_by_a_thread() {
    as_threads(Mode::Read);
}

#[test]
fn a_million_pieces_are_written_by_a_thread() {
    as_threads(Mode::Write);
}

#[test]
fn a_million_pieces_are_read_by_another_process() {
    as_processes(Mode::Read);
}

#[test]
fn a_million_pieces_are_written_by_another_process() {
    as_processes(Mode::Write);
}

/// Both sides fall asleep at every single piece, at a moment that is as near to the
/// other's word as can be, and nothing else wakes them: without the fences, one of them
/// sleeps for ever.
#[test]
fn nobody_sleeps_for_ever() {
    const ROUNDS: u64 = 100_000;
    let (filler, control, data, mut socket) = ends(Mode::Read);
    socket.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
    let mut window = Client::open(control, data, Bytes::ZERO).unwrap();
    let Filler { mut end, socket: mut other, .. } = filler;
    let daemon = std::thread::spawn(move || {
        let mut random = Random(1);
        for round in 0..ROUNDS {
            let (kind, place) = (Kind::Data, Bytes::ZERO);
            let (offset, len) = (Bytes::new(round), Bytes::new(1));
            if end.publish(Piece { kind, place, offset, len }) {
                other.write_all(b"n").unwrap();
            }
            (0..random.below(200)).for_each(|_| std::hint::spin_loop());
            while !end.ring_at(Bytes::new(round + 1)) {
                assert!(other.read(&mut [0; 64]).unwrap() > 0, "the program is gone");
            }
            assert_eq!(end.further().unwrap().bytes, Bytes::new(1));
        }
    });
    let mut random = Random(2);
    for _ in 0..ROUNDS {
        while window.take().unwrap().is_none() {
            if window.begin_to_wait() {
                assert!(socket.read(&mut [0; 64]).unwrap() > 0, "the daemon is gone");
            }
        }
        if window.advance(1) {
            socket.write_all(b"b").unwrap();
        }
        (0..random.below(200)).for_each(|_| std::hint::spin_loop());
    }
    daemon.join().unwrap();
}

#[test]
fn what_was_told_before_a_seek_counts_no_more() {
    let (mut filler, control, data, _socket) = ends(Mode::Read);
    let mut window = Client::open(control, data, Bytes::ZERO).unwrap();
    for _ in 0..3 {
        let piece = filler.piece();
        filler.offset += piece.len.get();
        assert!(!filler.end.publish(piece));
    }
    window.take().unwrap().unwrap();
    assert!(!window.advance(1) || window.moved().get() == 1);
    filler.further();
    let first = filler.end.void();
    assert_eq!(first, 3);
    filler.offset = 100 * DATA;
    let piece = filler.piece();
    let _ = filler.end.publish(piece);
    window.sought(first, piece.offset);
    assert_eq!(window.left(), 0);
    assert_eq!(window.take().unwrap(), Some(piece));
    let len = window.left();
    let _ = window.advance(len);
    assert_eq!(filler.end.further().unwrap().bytes, piece.len);
    assert_eq!(filler.end.left(), Bytes::ZERO);
}
