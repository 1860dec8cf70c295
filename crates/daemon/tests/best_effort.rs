//! Best effort through the daemon: many requests at once, and no more than that.

use crate::support::{Running, noise};
use client::control::Priority;
use client::units::Bytes;
use client::{Code, Error};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use wire::frame::{BODY_MAX, HEAD_LEN, Head, OUTSTANDING_MAX, VERSION};

#[test]
fn many_writes_and_reads_at_once_each_get_their_own_answer() {
    let daemon = Running::start();
    let mut volume = daemon.client.best_effort("v").unwrap();
    assert_eq!(volume.size(), Bytes::MIB);
    let bytes = noise(64 * 4096);
    for (i, block) in bytes.chunks(4096).enumerate() {
        volume.begin_write(Bytes::kib(4) * i as u64, block).unwrap();
    }
    while volume.outstanding() > 0 {
        volume.take().unwrap().result.unwrap();
    }
    volume.sync().unwrap();
    let mut wanted = BTreeMap::new();
    for i in [63, 0, 5, 40] {
        let tag = volume.begin_read(Bytes::kib(4) * i, Bytes::kib(4)).unwrap();
        wanted.insert(tag, &bytes[i as usize * 4096..][..4096]);
    }
    while volume.outstanding() > 0 {
        let done = volume.take().unwrap();
        assert!(done.result.unwrap() == wanted.remove(&done.tag).unwrap());
    }
    let mut back = vec![0; 8192];
    volume.read_at(Bytes::kib(4), &mut back).unwrap();
    assert!(back == bytes[4096..][..8192]);
}

/// What a handle states in its hello goes with each of its operations to the pool, and
/// with those of no other handle.
#[test]
fn a_priority_that_a_handle_states_goes_with_its_operations_alone() {
    let daemon = Running::start();
    let mut block = vec![0; 4096];
    let mut plain = daemon.client.best_effort("v").unwrap();
    let mut first = daemon.client.best_effort_as("v", Priority::Interactive).unwrap();
    let mut last = daemon.client.best_effort_as("v", Priority::Background).unwrap();
    first.write_at(Bytes::ZERO, &block).unwrap();
    last.write_at(Bytes::ZERO, &block).unwrap();
    plain.read_at(Bytes::ZERO, &mut block).unwrap();
    first.read_at(Bytes::ZERO, &mut block).unwrap();
    let stated = daemon.pool.state().stated.clone();
    let (one, other) = (node::Priority::Interactive, node::Priority::Background);
    assert_eq!(stated, [Some(one), Some(other), None, Some(one)]);
}

#[test]
fn one_bad_request_fails_alone() {
    let daemon = Running::start();
    let mut volume = daemon.client.best_effort("v").unwrap();
    let beyond = volume.begin_read(Bytes::MIB, Bytes::kib(4)).unwrap();
    let large = volume.begin_read(Bytes::ZERO, Bytes::mib(2)).unwrap();
    let full = volume.begin_write(Bytes::MIB, &[1; 4096]).unwrap();
    let good = volume.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    let mut codes = BTreeMap::new();
    while volume.outstanding() > 0 {
        let done = volume.take().unwrap();
        codes.insert(done.tag, done.result.err().and_then(|error| error.code()));
    }
    assert_eq!(codes[&beyond], Some(Code::BeyondEnd));
    assert_eq!(codes[&large], Some(Code::Invalid));
    assert_eq!(codes[&full], Some(Code::BeyondEnd));
    assert_eq!(codes[&good], None);
    let nobody = daemon.client.best_effort("nobody").unwrap_err();
    assert_eq!(nobody.code(), Some(Code::NoSuchVolume));
}

/// A program that looks at its syncs only hears of a write of its own that failed, once;
/// nobody else hears of it.
#[test]
fn a_write_that_failed_fails_the_next_sync_of_its_own_connection_only() {
    let daemon = Running::start();
    let [mut first, mut second] = [(); 2].map(|()| daemon.client.best_effort("v").unwrap());
    let beyond = first.write_at(Bytes::MIB, &[1; 4096]);
    assert!(
        matches!(&beyond, Err(Error::Problem(why)) if why.code == Code::BeyondEnd),
        "{beyond:?}"
    );
    second.sync().unwrap();
    let told = first.sync();
    assert!(matches!(&told, Err(Error::Problem(why)) if why.code == Code::BeyondEnd), "{told:?}");
    first.sync().unwrap();
}

/// The same where the write and the sync come in one piece, as the daemon serves them together.
#[test]
fn a_write_that_fails_fails_the_sync_that_came_with_it() {
    let daemon = Running::start();
    let mut socket = by_hand(&daemon);
    for (tag, comes_after) in [(1, 0), (11, 1), (21, 5)] {
        let (write, whole) = (|tag, offset| Head::WriteAt { tag, offset }, 4096);
        let mut piece = [&write(tag, Bytes::MIB).encode(whole)[..], &[1; 4096]].concat();
        for other in 0..comes_after {
            piece.extend(
                Head::ReadAt { tag: tag + 2 + other, offset: Bytes::ZERO, len: Bytes::kib(4) }
                    .encode(0),
            );
        }
        piece.extend(Head::SyncAll { tag: tag + 1 }.encode(0));
        socket.write_all(&piece).unwrap();
        let mut answers = BTreeMap::new();
        for _ in 0..2 + comes_after {
            let (head, _) = answer(&mut socket);
            let (tag, fails) = match head {
                Head::Failed { tag, .. } => (tag, true),
                Head::ReadDone { tag } | Head::SyncDone { tag } => (tag, false),
                other => panic!("{other:?}"),
            };
            answers.insert(tag, fails);
        }
        assert!(answers.remove(&tag).unwrap(), "beyond the end");
        assert!(answers.remove(&(tag + 1)).unwrap(), "its sync");
        assert!(answers.values().all(|fails| !fails), "{answers:?}");
    }
}

#[test]
fn the_client_does_not_begin_more_than_the_protocol_allows() {
    let daemon = Running::start();
    daemon.pool.state().hold_best_effort = true;
    let mut volume = daemon.client.best_effort("v").unwrap();
    for _ in 0..OUTSTANDING_MAX {
        volume.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    }
    let error = volume.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap_err();
    assert_eq!(error.code(), Some(Code::Busy));
    drop(daemon.pool.wait(|state| state.held.len() == OUTSTANDING_MAX));
    daemon.pool.release();
    volume.take().unwrap().result.unwrap();
    volume.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    while volume.outstanding() > 0 {
        volume.take().unwrap().result.unwrap();
    }
}

fn by_hand(daemon: &Running) -> UnixStream {
    let mut socket = UnixStream::connect(daemon.data_socket()).unwrap();
    socket
        .write_all(&Head::HelloVolume { version: VERSION, priority: None, writer: None }.encode(1))
        .unwrap();
    socket.write_all(b"v").unwrap();
    assert!(matches!(answer(&mut socket), (Head::Welcome { .. }, _)));
    socket
}

fn answer(socket: &mut UnixStream) -> (Head, Vec<u8>) {
    let mut bytes = [0; HEAD_LEN];
    socket.read_exact(&mut bytes).unwrap();
    let (head, len) = Head::decode(&bytes).unwrap();
    let mut body = vec![0; len];
    socket.read_exact(&mut body).unwrap();
    (head, body)
}

/// A program of another make, that sends whatever it likes: the daemon takes as
/// many requests as it has places and leaves the rest in the socket.
#[test]
fn a_program_that_sends_more_than_its_bound_is_not_read_from() {
    for (len, places) in [(Bytes::kib(4), OUTSTANDING_MAX), (Bytes::MIB, 8)] {
        let daemon = Running::start();
        daemon.pool.state().hold_best_effort = true;
        let mut socket = by_hand(&daemon);
        let requests = 3 * OUTSTANDING_MAX as u64;
        for tag in 1..=requests {
            let head = Head::ReadAt { tag, offset: Bytes::ZERO, len };
            socket.write_all(&head.encode(0)).unwrap();
        }
        drop(daemon.pool.wait(|state| state.held.len() >= places));
        // Whatever it would take beyond its bound, it would have taken by the time
        // that another connection has had several answers.
        for _ in 0..20 {
            daemon.client.status().unwrap();
        }
        assert_eq!(daemon.pool.state().held.len(), places, "{len} each");
        daemon.pool.release();
        for _ in 0..requests {
            let (head, body) = answer(&mut socket);
            assert!(matches!(head, Head::ReadDone { .. }) && body.len() == len.as_usize());
        }
    }
}

/// The same of one that reads none of its answers: what is answered, and waits to be sent with
/// others, has its place until then. What comes first fills the socket.
#[test]
fn answers_that_nobody_reads_keep_their_places() {
    let daemon = Running::start();
    let mut socket = by_hand(&daemon);
    for tag in 1..=4 {
        let head = Head::ReadAt { tag, offset: Bytes::ZERO, len: Bytes::MIB };
        socket.write_all(&head.encode(0)).unwrap();
    }
    let write = |tag| {
        let head = Head::WriteAt { tag, offset: Bytes::ZERO };
        [&head.encode(512)[..], &[1; 512]].concat()
    };
    let writes = 4 * OUTSTANDING_MAX as u64;
    let all: Vec<u8> = (5..5 + writes).flat_map(write).collect();
    let mut sends = socket.try_clone().unwrap();
    let sending = std::thread::spawn(move || sends.write_all(&all).unwrap());
    drop(daemon.pool.wait(|state| state.stated.len() > OUTSTANDING_MAX / 2));
    for _ in 0..100 {
        daemon.client.status().unwrap();
    }
    let begun = daemon.pool.state().stated.len();
    assert!(begun <= OUTSTANDING_MAX + 4, "{begun} were begun");
    for _ in 0..4 + writes {
        let (head, _) = answer(&mut socket);
        assert!(matches!(head, Head::ReadDone { .. } | Head::WriteDone { .. }), "{head:?}");
    }
    sending.join().unwrap();
}

#[test]
fn a_program_that_dies_with_requests_under_way_harms_nobody() {
    let daemon = Running::start();
    daemon.pool.state().hold_best_effort = true;
    let mut volume = daemon.client.best_effort("v").unwrap();
    for _ in 0..10 {
        volume.begin_read(Bytes::ZERO, Bytes::kib(64)).unwrap();
    }
    drop(daemon.pool.wait(|state| state.held.len() == 10));
    drop(volume);
    daemon.pool.release();
    let mut next = daemon.client.best_effort("v").unwrap();
    next.write_at(Bytes::ZERO, &noise(4096)).unwrap();
}

#[test]
fn a_write_larger_than_a_transfer_is_refused_on_either_side() {
    let daemon = Running::start();
    let mut volume = daemon.client.best_effort("v").unwrap();
    let error = volume.begin_write(Bytes::ZERO, &vec![0; BODY_MAX + 1]).unwrap_err();
    assert_eq!(error.code(), Some(Code::Invalid));
    let mut socket = by_hand(&daemon);
    let mut head = Head::WriteAt { tag: 1, offset: Bytes::ZERO }.encode(BODY_MAX);
    head[0..4].copy_from_slice(&(BODY_MAX as u32 + 1).to_le_bytes());
    socket.write_all(&head).unwrap();
    let (failed, text) = answer(&mut socket);
    assert!(matches!(failed, Head::Failed { tag: 0, code: Code::Protocol }));
    assert!(String::from_utf8(text).unwrap().contains("1048577 bytes"));
}

#[test]
fn a_daemon_that_goes_away_ends_what_is_under_way() {
    let mut daemon = Running::start();
    daemon.pool.state().hold_best_effort = true;
    let mut volume = daemon.client.best_effort("v").unwrap();
    volume.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    drop(daemon.pool.wait(|state| state.held.len() == 1));
    daemon.pool.release();
    daemon.stop().unwrap();
    assert!(volume.take().unwrap().result.is_ok(), "what was begun ends well");
    volume.begin_read(Bytes::ZERO, Bytes::kib(4)).ok();
    let error = match volume.outstanding() {
        0 => return, // the send failed already
        _ => volume.take().unwrap_err(),
    };
    assert!(matches!(error, Error::Problem(_)), "{error}");
}
