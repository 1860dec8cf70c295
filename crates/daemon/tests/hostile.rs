//! Programs of their own processes that do to their shared windows, sockets and selves
//! whatever they like, beside well-behaved readers and writers: those lose nothing and
//! wait for nothing, the daemon lives, and all that the others had is free again.
//!
//! Judged by what the schedule counted (late requests, underruns), never by a clock.
//! `SLACKLINE_STOPPED` is for how many seconds programs are stopped; 1 by default.
#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

#[path = "support/real.rs"]
mod real;

use client::units::Bytes;
use real::{Real, byte, bytes, contract};
use rustix::fs::{FallocateFlags, SealFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use window::{Memory, Rights};
use wire::Code;
use wire::frame::{HEAD_LEN, Head, VERSION};

const BLOCK: Bytes = Bytes::kib(64);
/// Slow, so that whatever a loaded host does in a while is no lateness.
const RATE: u64 = 300_000;

/// What a program does, and how it ends by itself; none where it has to be killed.
const MISDEEDS: &[(&str, Option<i32>)] = &[
    ("sleeps until it is killed", None),
    ("is stopped", None),
    ("writes garbage everywhere", Some(0)),
    ("claims to be far ahead", Some(0)),
    ("goes back", Some(0)),
    ("closes everything and stays", None),
    ("takes the memory away", None),
    ("rings the bell for ever", Some(0)),
    ("waits for ever anew", Some(0)),
    ("sends without reading", None),
    ("speaks nonsense", Some(0)),
];

// The program's side.

/// A stream with a shared window, opened and attached by hand.
struct Raw {
    socket: UnixStream,
    control: OwnedFd,
    data: OwnedFd,
}

impl Raw {
    fn open(socket: &Path, volume: &str, mode: &str) -> Self {
        let body = format!(
            r#"{{"volume":"{volume}","mode":"{mode}","shared_window":true,"contract":{{
            "rate_bytes_per_second":{RATE},"block_bytes":65536,"burst_bytes":65536}}}}"#
        );
        let request = format!(
            "POST /v1/streams HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut control = UnixStream::connect(socket).unwrap();
        control.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        control.read_to_string(&mut answer).unwrap();
        let json = answer.split_once("\r\n\r\n").unwrap().1;
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let stream = json["id"].as_u64().unwrap_or_else(|| panic!("{answer}"));
        let mut socket = UnixStream::connect(wire::socket::data_path(socket)).unwrap();
        socket.write_all(&Head::HelloWindow { version: VERSION, stream }.encode(0)).unwrap();
        let mut fds = Vec::new();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut head = [0; HEAD_LEN];
        let (mut room, flags) = ([IoSliceMut::new(&mut head)], RecvFlags::empty());
        let got = rustix::net::recvmsg(&socket, &mut room, &mut ancillary, flags).unwrap();
        assert_eq!(got.bytes, HEAD_LEN);
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                fds.extend(rights);
            }
        }
        assert!(matches!(Head::decode(&head), Ok((Head::Welcome { .. }, 0))));
        let data = fds.pop().unwrap();
        Self { socket, control: fds.pop().unwrap(), data }
    }

    fn control(&self) -> Memory {
        Memory::adopt(self.control.try_clone().unwrap(), Rights::Write).unwrap()
    }

    /// Sends a frame; false where the daemon has ended the connection.
    fn send(&mut self, head: Head) -> bool {
        self.socket.write_all(&head.encode(0)).is_ok()
    }

    /// Waits for the daemon's last word: that the protocol was broken.
    fn is_told_off(&mut self) {
        let mut last = None;
        let mut bytes = [0; HEAD_LEN];
        while self.socket.read_exact(&mut bytes).is_ok() {
            let (head, body) = Head::decode(&bytes).unwrap();
            self.socket.read_exact(&mut vec![0; body]).unwrap();
            last = Some(head);
        }
        let told = matches!(last, Some(Head::Failed { code: Code::Protocol, .. }));
        assert!(told, "{last:?}");
    }
}

const MOVED: usize = 16;
const WAITING: usize = 17;

fn sleep_for_ever() -> ! {
    println!("ready");
    loop {
        std::thread::park();
    }
}

fn misbehave(misdeed: &str, mode: &str, socket: &Path) {
    let mut raw = Raw::open(socket, if mode == "read" { "v" } else { "scratch" }, mode);
    let control = raw.control();
    let page = control.words();
    let random = std::cell::Cell::new(0x9e37_79b9u64 ^ u64::from(std::process::id()));
    let next = || {
        random.set(random.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        random.get() >> (random.get() >> 58)
    };
    match misdeed {
        "sleeps until it is killed" | "is stopped" => sleep_for_ever(),
        "writes garbage everywhere" => {
            if mode == "write" {
                let data = raw.data.try_clone().unwrap();
                let data = Memory::adopt(data, Rights::Write).unwrap();
                data.words()[..1 << 17]
                    .iter()
                    .for_each(|word| word.store(next(), Ordering::Relaxed));
            }
            loop {
                page.iter().for_each(|word| word.store(next(), Ordering::Relaxed));
                if !raw.send(Head::Bell) {
                    return raw.is_told_off();
                }
            }
        }
        "claims to be far ahead" => {
            page[MOVED].store(1 << 40, Ordering::Release);
            raw.send(Head::Bell);
            raw.is_told_off();
        }
        "goes back" => {
            while page[8].load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            page[MOVED].store(1000, Ordering::Release);
            raw.send(Head::Bell);
            std::thread::sleep(Duration::from_millis(50));
            page[MOVED].store(999, Ordering::Release);
            while raw.send(Head::Bell) {}
            raw.is_told_off();
        }
        "closes everything and stays" => {
            drop(raw);
            sleep_for_ever();
        }
        "takes the memory away" => {
            let data_can_be_written = mode == "write";
            for (fd, writable) in [(&raw.control, true), (&raw.data, data_can_be_written)] {
                for len in [0, 100, 1 << 40] {
                    assert!(rustix::fs::ftruncate(fd, len).is_err());
                }
                assert!(rustix::fs::fcntl_add_seals(fd, SealFlags::WRITE).is_err());
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let punched = rustix::fs::fallocate(fd, hole, 0, 1 << 20);
                assert_eq!(punched.is_ok(), writable, "{mode}");
            }
            raw.send(Head::Bell);
            sleep_for_ever();
        }
        "rings the bell for ever" => {
            while raw.send(Head::Bell) {}
            raw.is_told_off();
        }
        "waits for ever anew" => {
            let mut number = 0;
            loop {
                number += 1;
                page[WAITING].store(number, Ordering::SeqCst);
                if !raw.send(Head::Bell) {
                    return raw.is_told_off();
                }
            }
        }
        "sends without reading" => {
            println!("ready");
            let head = if mode == "read" {
                Head::Seek { tag: 1, offset: Bytes::ZERO }
            } else {
                Head::Sync
            };
            // Until neither side's buffer takes any more: then this hangs, and is killed.
            while raw.send(head) {}
            sleep_for_ever();
        }
        "speaks nonsense" => {
            let _ = raw.socket.write_all(&[0xff; 4096]);
            raw.is_told_off();
        }
        other => panic!("{other}"),
    }
}

/// The programs of the test below, each in a process of its own; nothing by itself.
#[test]
fn a_program_of_its_own() {
    let Ok(what) = std::env::var("SLACKLINE_HOSTILE") else { return };
    let parts: Vec<_> = what.split('|').collect();
    misbehave(parts[0], parts[1], Path::new(parts[2]));
}

// The other side.

fn start(daemon: &Real, misdeed: &str, mode: &str) -> Child {
    let socket = daemon.client.socket().display();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_program_of_its_own", "--nocapture"])
        .env("SLACKLINE_HOSTILE", format!("{misdeed}|{mode}|{socket}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until_ready(child: &mut Child) {
    let mut said = Vec::new();
    let mut buf = [0; 256];
    while !String::from_utf8_lossy(&said).contains("ready") {
        let read = child.stdout.as_mut().unwrap().read(&mut buf).unwrap();
        assert!(read > 0, "it ended before: {}", String::from_utf8_lossy(&said));
        said.extend(&buf[..read]);
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

/// One after the other, in both directions; gives how many there were.
fn all_misdeeds(daemon: &Real) -> usize {
    let stopped = std::env::var("SLACKLINE_STOPPED").ok().and_then(|text| text.parse().ok());
    for &(misdeed, code) in MISDEEDS {
        for mode in ["read", "write"] {
            let before = memfds();
            let mut child = start(daemon, misdeed, mode);
            if code.is_none() {
                wait_until_ready(&mut child);
                if misdeed == "is stopped" {
                    signal(&child, rustix::process::Signal::STOP);
                    std::thread::sleep(Duration::from_secs(stopped.unwrap_or(1)));
                }
                if misdeed == "closes everything and stays" {
                    daemon.wait(|status| status.streams.len() == GOOD);
                }
                signal(&child, rustix::process::Signal::KILL);
            }
            let ended = child.wait().unwrap().code();
            assert_eq!(ended, code, "a program that {misdeed} ({mode})");
            let since = std::time::Instant::now();
            daemon.wait(|status| status.streams.len() == GOOD);
            while memfds() != before {
                std::thread::sleep(Duration::from_millis(1));
            }
            println!("{misdeed} ({mode}): free after {} ms", since.elapsed().as_millis());
        }
    }
    MISDEEDS.len() * 2
}

/// The shared memory that this process (the daemon and the good programs) has mapped.
fn memfds() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    // A mapping that is locked in part counts as several; each has its own number.
    let mut all: Vec<_> = maps
        .lines()
        .filter(|line| line.contains("memfd:slackline-"))
        .filter_map(|line| line.split_whitespace().nth(4).map(str::to_owned))
        .collect();
    all.sort();
    all.dedup();
    all.len()
}

/// Streams that behave.
const GOOD: usize = 3;

/// Reads round and round, a little slower than its rate, and checks every byte.
fn read_well(client: client::Client, stop: Arc<AtomicBool>) -> client::control::Stream {
    let mut reader = client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let mut buf = vec![0; 20_000];
    while !stop.load(Ordering::Relaxed) {
        if reader.offset().get() + buf.len() as u64 > LEN {
            reader.seek(Bytes::ZERO).unwrap();
        }
        let offset = reader.offset().get();
        reader.read_exact(&mut buf).unwrap();
        assert!(buf.iter().zip(offset..).all(|(&got, offset)| got == byte(offset)));
        std::thread::sleep(Duration::from_millis(100));
    }
    reader.stats().unwrap()
}

/// Writes a little slower than its rate; what came to the medium is checked behind it.
fn write_well(client: client::Client, stop: Arc<AtomicBool>) -> client::control::Stream {
    let mut writer = client.writer("w", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let mut at = 0;
    while !stop.load(Ordering::Relaxed) {
        writer.write_all(&bytes(at, 20_000)).unwrap();
        at += 20_000;
        std::thread::sleep(Duration::from_millis(100));
    }
    let stats = writer.stats().unwrap();
    assert_eq!(writer.close().unwrap().get(), at);
    let mut back = vec![0; 4096];
    let mut best_effort = client.best_effort("w").unwrap();
    for offset in (0..at - 4096).step_by(4096) {
        best_effort.read_at(Bytes::new(offset), &mut back).unwrap();
        assert!(back == bytes(offset, back.len()));
    }
    stats
}

/// Recorded in the volume that all read.
const LEN: u64 = 1_000_000;

#[test]
fn whatever_a_program_does_only_its_own_stream_feels_it() {
    let daemon = Real::start_in_real_time(256);
    daemon.volume("v", Bytes::mib(4));
    daemon.volume("w", Bytes::mib(128));
    daemon.volume("scratch", Bytes::mib(4));
    let mut writer = daemon.client.writer("v", contract(900_000, BLOCK), Bytes::ZERO).unwrap();
    writer.write_all(&bytes(0, LEN as usize)).unwrap();
    writer.close().unwrap();
    assert_eq!(memfds(), 0);

    let stop = Arc::new(AtomicBool::new(false));
    let good: Vec<_> = [read_well as fn(_, _) -> _, read_well, write_well]
        .into_iter()
        .map(|run| {
            let (client, stop) = (daemon.client.clone(), Arc::clone(&stop));
            std::thread::spawn(move || run(client, stop))
        })
        .collect();
    assert_eq!(good.len(), GOOD);
    daemon.wait(|status| status.streams.len() == GOOD);
    // Until every good stream is mapped on both sides.
    while memfds() < GOOD * 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let count = all_misdeeds(&daemon);
    stop.store(true, Ordering::Relaxed);
    for stream in good {
        let stats = stream.join().expect("every byte was right");
        println!(
            "{:?}: {} requests, {} late, {} underruns, {} throttled",
            stats.mode, stats.requests, stats.late_requests, stats.underruns, stats.throttled
        );
        assert_eq!((stats.late_requests, stats.underruns, stats.gap_bytes.get()), (0, 0, 0));
    }
    assert!(daemon.client.health().is_ok());
    daemon.wait(|status| status.streams.is_empty());
    // Anew: a status is gathered in steps, and that one's memory may be from before they went.
    let regions = daemon.pool.status().memory.regions;
    assert_eq!(regions, Bytes::ZERO, "after {count} misdeeds");
    assert_eq!(memfds(), 0);
}
