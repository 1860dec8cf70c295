//! Every command of the disk fails once while requests of a block device that came in one piece are
//! served together: each request has its own reply, whose error is no other request's. What was
//! acknowledged is there; of writes that are answered before they are on the disk, when a flush says so.
//! And of a body over HTTP: it ends early, or there is none, and no byte of it is wrong.

use crate::nbd::{FLUSH, Nbd, READ, WRITE};
use crate::real::{Real, bytes};
use daemon::config::SocketMode;
use daemon::serve::ServeOptions;
use engine::{Backend, Completion, Wrap};
use node::{DeviceError, DiskCommand};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::{Bytes, Direction, Instant};

const BLOCK: u64 = 4096;
/// Requests of each kind.
const EACH: u64 = 6;

/// A disk that does not do one command, and says so: when this comes from 1 down to 0.
struct Failing {
    disk: Box<dyn Backend>,
    left: Arc<AtomicU64>,
    /// Only reads count.
    of_reads: bool,
    failed: Vec<Completion>,
}

impl Backend for Failing {
    fn start(&mut self, command: DiskCommand) {
        let less = |left: u64| left.checked_sub(1);
        let way = command.action.transfer().map(|(_, way)| way);
        if self.of_reads && way != Some(Direction::Read) {
            return self.disk.start(command);
        }
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) != Ok(1) {
            return self.disk.start(command);
        }
        let at = Instant::from_nanos(1);
        self.failed.push(Completion::of(command.id, at, at, Err(DeviceError(5))));
    }
    fn submit(&mut self) {
        self.disk.submit();
    }
    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        if self.failed.is_empty() {
            return self.disk.wait(until, done);
        }
        done.append(&mut self.failed);
    }
    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.failed.len()
    }
}

/// A daemon on such a disk, and after how many commands that does not do one.
fn failing(of_reads: bool) -> (Real, Arc<AtomicU64>) {
    let left = Arc::new(AtomicU64::new(0));
    let of_disk = Arc::clone(&left);
    let wrap: Wrap = Arc::new(move |_, disk| {
        let (left, failed) = (Arc::clone(&of_disk), Vec::new());
        Box::new(Failing { disk, left, of_reads, failed })
    });
    (Real::start_wrapped(64, ServeOptions::from(SocketMode(0o600)), wrap), left)
}

/// A request: what it is, where, how long, and what it writes or is to read.
struct Request {
    kind: u16,
    offset: u64,
    bytes: Vec<u8>,
}

/// Reads of what is there, writes of whole blocks, and such that begin and end within one.
fn requests() -> Vec<Request> {
    let mut all = Vec::new();
    for number in 0..EACH {
        let (there, whole, within) =
            (number * 3 * BLOCK, (64 + number) * BLOCK, (128 + number) * BLOCK + 7);
        all.push(Request { kind: READ, offset: there, bytes: bytes(there, BLOCK as usize) });
        all.push(Request { kind: WRITE, offset: whole, bytes: bytes(whole + 1, BLOCK as usize) });
        all.push(Request { kind: WRITE, offset: within, bytes: bytes(within + 1, 5000) });
    }
    all.push(Request { kind: FLUSH, offset: 0, bytes: Vec::new() });
    all
}

/// Writes of whole blocks ask to be durable when they are answered (FUA).
fn is_durable(kind: u16, offset: u64) -> bool {
    kind == WRITE && offset.is_multiple_of(BLOCK)
}

/// Fails on command number `number` from when the requests are sent; which requests failed, or
/// nothing where there was no such command.
fn failing_on(number: u64) -> Option<Vec<u16>> {
    let (mut daemon, left) = failing(false);
    daemon.volume("v", Bytes::mib(4));
    let socket = wire::socket::nbd_path(daemon.client.socket());
    let mut nbd = Nbd::open(&socket, "v", number.is_multiple_of(2)).unwrap();
    let before = bytes(0, 256 << 10);
    nbd.write(0, 0, &before).unwrap();
    nbd.write(0, 128 * BLOCK, &bytes(128 * BLOCK, 256 << 10)).unwrap();
    nbd.flush().unwrap();

    let (requests, mut piece, mut cookies) = (requests(), Vec::new(), Vec::new());
    for Request { kind, offset, bytes } in &requests {
        let body = if *kind == WRITE { &bytes[..] } else { &[] };
        let flags = u16::from(is_durable(*kind, *offset));
        let (cookie, said) = nbd.next_request(*kind, flags, *offset, bytes.len() as u32, body);
        piece.extend(said);
        cookies.push(cookie);
    }
    left.store(number, Ordering::SeqCst);
    nbd.socket.write_all(&piece).unwrap();
    let replies: Vec<_> = cookies.into_iter().map(|cookie| nbd.end(cookie)).collect();
    // A flush covers what was answered before it: the one that came with them perhaps none of it.
    let flushed = nbd.flush();
    let is_read_only = nbd.flush().is_err();
    let was_there = left.swap(0, Ordering::SeqCst) == 0;

    let (mut failed, mut lost) = (Vec::new(), 0);
    for (request, reply) in requests.iter().zip(replies) {
        let Request { kind, offset, bytes } = request;
        match reply {
            Err(_) => failed.push(*kind),
            Ok(read) if *kind == READ => assert!(read == *bytes, "{number}: a read at {offset}"),
            Ok(_) if *kind == WRITE => {
                let back = nbd.read(*offset, bytes.len() as u32).unwrap();
                assert!(back == *bytes || !is_durable(*kind, *offset), "{number}: {offset}");
                lost += usize::from(back != *bytes);
            }
            Ok(_) => {}
        }
    }
    failed.extend(flushed.err().map(|_| FLUSH));
    let is_told = failed.contains(&FLUSH) && !failed.contains(&WRITE);
    assert!(lost <= usize::from(is_told), "{number}: {lost} acknowledged writes, {failed:?}");
    // Where metadata could not be written the pool is read-only: nothing is written or flushed any more.
    let is_one = failed.len() <= 1 || is_read_only && !failed.contains(&READ);
    assert!(is_one, "{number}: one command failed, and so did {failed:?}");
    assert!(nbd.read(0, before.len() as u32).unwrap() == before, "{number}");
    drop(nbd);
    // A commit of the pool's own, behind the flush, may have failed as well.
    assert!(daemon.stop().is_err() || !is_read_only, "{number}: {failed:?}");
    was_there.then_some(failed)
}

#[test]
fn one_command_that_fails_is_at_most_one_request_of_those_that_came_together() {
    let mut seen = [0; 4];
    let (mut number, mut beyond) = (0, 0);
    // How many commands there are differs: what lies one behind the other may go in one.
    while beyond < 8 {
        number += 1;
        match failing_on(number) {
            Some(failed) => failed.iter().for_each(|&kind| seen[usize::from(kind)] += 1),
            None => beyond += 1,
        }
    }
    let [reads, writes, _, flushes] = seen;
    assert!(number > 18 && reads > 0 && writes > 0 && flushes > 0, "{number} commands, {seen:?}");
}

/// How much of a body came, where the head said that it comes.
enum Answer {
    All,
    Part,
    Refused(u16),
}

/// Reads a range, and holds what comes against what was written.
fn get(daemon: &Real, offset: u64, len: usize) -> Answer {
    let mut socket = UnixStream::connect(daemon.client.socket()).unwrap();
    let range = format!("bytes={offset}-{}", offset + len as u64 - 1);
    let head = format!("range: {range}\r\nconnection: close\r\n");
    write!(socket, "GET /v1/volumes/v/data HTTP/1.1\r\nhost: x\r\n{head}\r\n").unwrap();
    let mut answer = Vec::new();
    // A connection that was cut ends in an end, or in an error.
    let _ = socket.read_to_end(&mut answer);
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let (head, body) = (String::from_utf8_lossy(&answer[..head]).into_owned(), &answer[head + 4..]);
    let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
    if status != 206 {
        return Answer::Refused(status);
    }
    assert!(head.contains(&format!("content-length: {len}")), "{head}");
    assert!(body.len() <= len && *body == bytes(offset, len)[..body.len()], "{range}: wrong bytes");
    if body.len() == len { Answer::All } else { Answer::Part }
}

#[test]
fn a_body_whose_disk_fails_is_refused_or_ends_early_and_has_no_wrong_byte() {
    let (mut daemon, left) = failing(true);
    daemon.volume("v", Bytes::mib(8));
    let socket = wire::socket::nbd_path(daemon.client.socket());
    let mut nbd = Nbd::open(&socket, "v", false).unwrap();
    // What is written is in nobody's cache.
    let mut write = || {
        for mib in 0..8 {
            nbd.write(0, mib << 20, &bytes(mib << 20, 1 << 20)).unwrap();
        }
        nbd.flush().unwrap();
    };
    // One piece; one that begins and ends within blocks; many pieces.
    for (offset, len, pieces) in [(0, 4096, 1), (5000, 70_001, 1), (1 << 20, 6 << 20, 6)] {
        let (mut parts, mut refused) = (0, Vec::new());
        for number in (1..=pieces).cycle().take(8) {
            write();
            left.store(number, Ordering::SeqCst);
            match get(&daemon, offset, len) {
                Answer::All => {} // a read ahead of it has failed, or none was needed
                Answer::Part => parts += 1,
                Answer::Refused(status) => refused.push(status),
            }
            left.store(0, Ordering::SeqCst);
            assert!(matches!(get(&daemon, offset, len), Answer::All), "the disk does it again");
        }
        assert!(refused.iter().all(|&status| status == 500), "{refused:?}");
        assert!(parts + refused.len() > 0, "{len}: the disk has failed");
    }
    drop(nbd);
    daemon.stop().unwrap();
}
