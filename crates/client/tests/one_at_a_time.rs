//! One call at a time on a best-effort connection: its caller takes the answer from the socket itself.
//! The daemon here answers by a script.

use client::{BestEffort, Client, Error};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use tempfile::TempDir;
use units::Bytes;
use wire::Code;
use wire::frame::{HEAD_LEN, Head, VERSION};

fn next(connection: &mut UnixStream) -> Option<(Head, Vec<u8>)> {
    let mut head = [0; HEAD_LEN];
    connection.read_exact(&mut head).ok()?;
    let (head, len) = Head::decode(&head).unwrap();
    let mut body = vec![0; len];
    connection.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn send(connection: &mut UnixStream, head: Head, body: &[u8]) {
    connection.write_all(&head.encode(body.len())).unwrap();
    connection.write_all(body).unwrap();
}

/// A volume at a daemon that does this with each request.
fn volume(mut answer: impl FnMut(&mut UnixStream, Head) + Send + 'static) -> (TempDir, BestEffort) {
    let dir = tempfile::tempdir().unwrap();
    let control = dir.path().join("s.sock");
    let listener = UnixListener::bind(wire::socket::data_path(&control)).unwrap();
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        next(&mut connection).unwrap();
        let welcome = Head::Welcome { version: VERSION, offset: Bytes::ZERO, len: Bytes::MIB };
        send(&mut connection, welcome, &[]);
        while let Some((head, _)) = next(&mut connection) {
            answer(&mut connection, head);
        }
    });
    let volume = Client::at(&control).best_effort("v").unwrap();
    (dir, volume)
}

/// As a daemon does it: what is read is the place that it was read from.
fn serves(connection: &mut UnixStream, head: Head) {
    match head {
        Head::ReadAt { tag, offset, .. } if offset >= Bytes::MIB => {
            let code = Code::BeyondEnd;
            send(connection, Head::Failed { tag, code }, b"behind the end\nread before it");
        }
        Head::ReadAt { tag, offset, len } => {
            let body = vec![(offset.get() / 4096) as u8; len.as_usize()];
            send(connection, Head::ReadDone { tag }, &body);
        }
        Head::WriteAt { tag, .. } => send(connection, Head::WriteDone { tag }, &[]),
        Head::SyncAll { tag } => send(connection, Head::SyncDone { tag }, &[]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_by_themselves_and_many_at_once_take_turns_on_a_connection() {
    let (_dir, mut volume) = volume(serves);
    let mut block = [0; 4096];
    for place in [1, 2] {
        volume.read_at(Bytes::kib(4) * place, &mut block).unwrap();
        assert_eq!(block, [place as u8; 4096]);
        volume.write_at(Bytes::ZERO, b"bytes").unwrap();
        volume.sync().unwrap();
        // A refusal is of one request; the next one is served.
        let refused = volume.read_at(Bytes::MIB, &mut block).unwrap_err();
        assert_eq!(refused.code(), Some(Code::BeyondEnd), "{refused}");
        // Then many, whose answers a thread takes from then on; also those of single calls.
        let begun: Vec<_> = (5..9)
            .map(|place| volume.begin_read(Bytes::kib(4) * place, Bytes::kib(4)).unwrap())
            .collect();
        for (place, tag) in (5..9).zip(begun) {
            let done = volume.take().unwrap();
            assert_eq!((done.tag, done.result.unwrap()), (tag, vec![place; 4096]));
        }
    }
}

#[test]
fn an_answer_that_does_not_come_is_an_error_and_so_is_what_follows() {
    let (_dir, mut volume) = volume(|connection, head| {
        let Head::ReadAt { tag, offset, .. } = head else { panic!("{head:?}") };
        assert_eq!(offset, Bytes::ZERO, "nothing more is asked for");
        // The first half of an answer.
        let whole = Head::ReadDone { tag }.encode(4096);
        connection.write_all(&whole[..HEAD_LEN / 2]).unwrap();
    });
    volume.set_answer_within(Duration::from_millis(20));
    let mut block = [0; 4096];
    for place in [Bytes::ZERO, Bytes::kib(4)] {
        match volume.read_at(place, &mut block) {
            Err(Error::Broken(why)) => assert_eq!(why.kind(), ErrorKind::TimedOut),
            other => panic!("{other:?}"),
        }
    }
}

/// The same where a thread takes the answers: one that comes late after all was taken for the next
/// one's, and so on for ever.
#[test]
fn a_late_answer_is_not_taken_for_the_next_ones() {
    let mut kept = None;
    let (_dir, mut volume) = volume(move |connection, head| match (head, kept) {
        (Head::ReadAt { offset: Bytes::ZERO, .. }, _) => serves(connection, head),
        (_, None) => kept = Some(head),
        (_, Some(late)) => {
            serves(connection, late);
            serves(connection, head);
        }
    });
    volume.begin_read(Bytes::ZERO, Bytes::kib(4)).unwrap();
    volume.take().unwrap().result.unwrap();
    volume.set_answer_within(Duration::from_millis(20));
    let mut block = [0; 4096];
    for place in [1, 2, 3] {
        match volume.read_at(Bytes::kib(4) * place, &mut block) {
            Err(Error::Broken(why)) => assert_eq!(why.kind(), ErrorKind::TimedOut),
            other => panic!("{other:?} with bytes of {}", block[0]),
        }
    }
}

/// What does not answer the request is taken for nothing, whatever it is.
#[test]
fn an_answer_to_something_else_ends_the_connection() {
    type Wrong = fn(u64) -> (Head, usize);
    let wrong: [Wrong; 3] = [
        |tag| (Head::ReadDone { tag: tag + 1 }, 4096),
        |tag| (Head::ReadDone { tag }, 4095),
        |tag| (Head::WriteDone { tag }, 0),
    ];
    for wrong in wrong {
        // Its caller takes the answers, or a thread does.
        for by_thread in [false, true] {
            let (_dir, mut volume) = volume(move |connection, head| {
                let Head::ReadAt { tag, offset, .. } = head else { panic!("{head:?}") };
                if offset != Bytes::ZERO {
                    return serves(connection, head);
                }
                let (head, len) = wrong(tag);
                send(connection, head, &vec![7; len]);
            });
            if by_thread {
                volume.begin_read(Bytes::kib(4), Bytes::kib(4)).unwrap();
                volume.take().unwrap().result.unwrap();
            }
            let mut block = [0; 4096];
            for _ in 0..2 {
                let told = volume.read_at(Bytes::ZERO, &mut block).unwrap_err();
                assert!(matches!(told, Error::Garbled(_)), "{told}");
            }
        }
    }
}

/// A daemon that stops says why, whatever it is asked at that moment.
#[test]
fn the_daemons_last_word_is_told() {
    let (_dir, mut volume) = volume(|connection, _| {
        let code = Code::ShuttingDown;
        send(connection, Head::Failed { tag: 0, code }, b"the daemon stops\ntry again");
        connection.shutdown(std::net::Shutdown::Both).unwrap();
    });
    for _ in 0..2 {
        let told = volume.write_at(Bytes::ZERO, &[7; 1 << 20]).unwrap_err();
        assert_eq!(told.code(), Some(Code::ShuttingDown), "{told}");
    }
}
