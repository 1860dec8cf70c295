//! Streams through the daemon: bytes there and back, and every way in which a
//! program or the daemon can end one.

use crate::support::{Running, contract, noise};
use client::units::Bytes;
use client::{Code, Error, Piece};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use wire::frame::{HEAD_LEN, Head, VERSION};

#[test]
fn what_a_writer_writes_a_reader_reads() {
    let daemon = Running::start();
    let bytes = noise(300_001);
    let mut writer = daemon.client.writer("v", contract(), Bytes::ZERO).unwrap();
    writer.write_all(&bytes).unwrap();
    writer.flush().unwrap();
    assert_eq!(writer.accepted().get(), 300_001);
    assert_eq!(writer.sync().unwrap().get(), 300_001);
    assert_eq!(writer.close().unwrap().get(), 300_001);
    let mut reader = daemon.client.reader("v", contract(), Bytes::new(7)).unwrap();
    let mut back = Vec::new();
    reader.read_to_end(&mut back).unwrap();
    assert!(back == bytes[7..]);
    assert_eq!(reader.offset().get(), 300_001);
    reader.close().unwrap();
    assert!(daemon.pool.state().streams.is_empty());
}

#[test]
fn the_writer_hears_how_far_its_bytes_are_durable_without_asking() {
    let daemon = Running::start();
    daemon.pool.state().hold_commits = true;
    let mut writer = daemon.client.writer("v", contract(), Bytes::ZERO).unwrap();
    let durability = writer.durability();
    for upto in [1000, 60_000] {
        writer.write_all(&noise(upto - writer.accepted().as_usize())).unwrap();
        writer.flush().unwrap();
        let before = writer.durable();
        assert!(before.get() < upto as u64, "nothing is durable before the commit");
        daemon.pool.release();
        assert_eq!(durability.wait(before), Some(Bytes::new(upto as u64)));
    }
    writer.close().unwrap();
    assert_eq!(durability.wait(Bytes::new(60_000)), None, "nothing more will come");
}

/// It reads at the place where a camera writes, and dies while it waits for what comes next.
#[test]
fn a_reader_that_dies_while_it_waits_has_no_contract_any_more() {
    let daemon = Running::start();
    daemon.pool.state().volumes.get_mut("v").unwrap().data = noise(20_000);
    let mut reader = daemon.client.reader("v", contract(), Bytes::ZERO).unwrap();
    assert!(matches!(reader.next_piece(&mut [0; 100]), Ok(Piece::Data(100))));
    daemon.pool.state().hold_reads = true;
    let stream = open_by_hand(&daemon, "read");
    let mut socket = attach_by_hand(&daemon, stream);
    socket.write_all(&Head::Next { len: Bytes::KIB }.encode(0)).unwrap();
    let state = daemon.pool.wait(|state| !state.held.is_empty());
    assert_eq!(state.streams.len(), 2);
    drop(state);
    drop(socket);
    drop(daemon.pool.wait(|state| state.streams.len() == 1));
    daemon.pool.release();
    reader.close().unwrap();
}

/// A session holds what comes next, for whoever asks for more, less, or goes elsewhere.
#[test]
fn what_was_taken_ahead_is_read_in_pieces_of_any_length_and_left_by_a_jump() {
    let daemon = Running::start();
    let bytes = noise(100_000);
    daemon.pool.state().volumes.get_mut("v").unwrap().data = bytes.clone();
    let stream = open_by_hand(&daemon, "read");
    let mut socket = attach_by_hand(&daemon, stream);
    let (mut at, mut tag) = (0, 0);
    for len in [1_000, 7, 70_000, 1, 4_096, 3, 2_000, 60_000, 5] {
        socket.write_all(&Head::Next { len: Bytes::new(len) }.encode(0)).unwrap();
        let (head, body) = frame(&mut socket);
        let Head::Data { offset } = head else { panic!("{head:?}") };
        assert_eq!(offset.as_usize(), at);
        assert!(!body.is_empty() && body.len() as u64 <= len, "{} of {len}", body.len());
        assert!(body == bytes[at..at + body.len()], "at {at}");
        at += body.len();
        if len == 1 {
            (at, tag) = (40_000, tag + 1);
            let seek = Head::Seek { tag, offset: Bytes::new(at as u64) };
            socket.write_all(&seek.encode(0)).unwrap();
            while !matches!(frame(&mut socket).0, Head::Sought { .. }) {}
        }
    }
}

#[test]
fn a_program_that_dies_has_its_streams_closed_and_its_writes_synced() {
    let daemon = Running::start();
    let mut writer = daemon.client.writer("v", contract(), Bytes::ZERO).unwrap();
    writer.write_all(&noise(10_000)).unwrap();
    writer.flush().unwrap();
    let reader = daemon.client.reader("v", contract(), Bytes::ZERO).unwrap();
    let (w, r) = (writer.stream(), reader.stream());
    drop(writer);
    drop(reader);
    let state = daemon.pool.wait(|state| state.streams.is_empty());
    let mut closed = state.closed.clone();
    closed.sort_unstable();
    assert_eq!(closed, [(w, 10_000), (r, 0)]);
}

#[test]
fn a_write_that_is_cut_in_the_middle_of_a_frame_is_not_accepted() {
    let daemon = Running::start();
    let stream = open_by_hand(&daemon, "write");
    let mut socket = attach_by_hand(&daemon, stream);
    socket.write_all(&Head::Write.encode(3000)).unwrap();
    socket.write_all(&noise(3000)).unwrap();
    assert_eq!(head(&mut socket), Head::Accepted { upto: Bytes::new(3000) });
    socket.write_all(&Head::Write.encode(3000)).unwrap();
    socket.write_all(&noise(2999)).unwrap();
    drop(socket);
    let state = daemon.pool.wait(|state| state.streams.is_empty());
    assert_eq!(state.closed, [(stream, 3000)]);
    assert!(state.volumes["v"].data == noise(3000));
}

/// The writer is dropped while the daemon has not looked at what it sent.
#[test]
fn what_a_writer_sent_before_it_was_dropped_is_written() {
    let daemon = Running::start();
    let mut writer = daemon.client.writer("v", contract(), Bytes::ZERO).unwrap();
    let bytes = noise(9000);
    let pool = daemon.pool.state();
    for piece in bytes.chunks(3000) {
        writer.write_all(piece).unwrap();
    }
    drop(writer);
    drop(pool);
    let state = daemon.pool.wait(|state| state.streams.is_empty());
    assert!(state.volumes["v"].data == bytes);
}

/// The answers of a program that is killed go nowhere: what it sent before is written all the same.
#[test]
fn what_a_program_sent_before_it_was_killed_is_written() {
    let daemon = Running::start();
    let stream = open_by_hand(&daemon, "write");
    let mut socket = attach_by_hand(&daemon, stream);
    let bytes = noise(9000);
    let pool = daemon.pool.state();
    for piece in bytes.chunks(3000) {
        socket.write_all(&Head::Write.encode(3000)).unwrap();
        socket.write_all(piece).unwrap();
    }
    drop(socket);
    drop(pool);
    let state = daemon.pool.wait(|state| state.streams.is_empty());
    assert_eq!(state.closed, [(stream, 9000)]);
    assert!(state.volumes["v"].data == bytes);
}

/// That some bytes are durable is told to nobody while more of them come.
#[test]
fn bytes_come_behind_word_that_nobody_hears() {
    let daemon = Running::start();
    daemon.pool.state().hold_commits = true;
    let stream = open_by_hand(&daemon, "write");
    let mut socket = attach_by_hand(&daemon, stream);
    let bytes = noise(6000);
    socket.write_all(&Head::Write.encode(3000)).unwrap();
    socket.write_all(&bytes[..3000]).unwrap();
    assert_eq!(head(&mut socket), Head::Accepted { upto: Bytes::new(3000) });
    socket.write_all(&Head::Write.encode(3000)).unwrap();
    socket.write_all(&bytes[3000..5000]).unwrap();
    socket.shutdown(std::net::Shutdown::Read).unwrap();
    daemon.pool.release();
    // Until the daemon has found that it is not heard.
    std::thread::sleep(std::time::Duration::from_millis(50));
    socket.write_all(&bytes[5000..]).unwrap();
    drop(socket);
    let state = daemon.pool.wait(|state| state.streams.is_empty());
    assert!(state.volumes["v"].data == bytes);
}

#[test]
fn a_write_that_does_not_fit_is_reported_and_nothing_behind_it_goes_through() {
    let daemon = Running::start();
    let start = Bytes::new((1 << 20) - 10_000);
    let mut writer = daemon.client.writer("v", contract(), start).unwrap();
    // Four frames are under way before the first answer comes.
    let error = (0..100).find_map(|_| writer.write_all(&noise(3000)).err()).unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(Error::from(error).code(), Some(Code::VolumeFull));
    assert_eq!(writer.accepted(), Bytes::MIB, "as much as fits");
    // Known by now: a sync goes through, and after it the writer may go on.
    assert_eq!(writer.sync().unwrap(), Bytes::MIB);
    daemon.client.volume_resize("v", Bytes::mib(2)).unwrap();
    writer.write_all(&noise(5000)).unwrap();
    assert_eq!(writer.close().unwrap().get(), (1 << 20) + 5000);
    let state = daemon.pool.state();
    let data = &state.volumes["v"].data[start.as_usize()..];
    let mut wanted = noise(3000).repeat(4)[..10_000].to_vec();
    wanted.extend(noise(5000));
    assert!(data == wanted, "no byte is missing, doubled or out of its place");
}

#[test]
fn a_failed_write_that_nobody_asked_about_is_reported_at_the_close() {
    let daemon = Running::start();
    let mut writer = daemon.client.writer("v", contract(), Bytes::mib(1)).unwrap();
    assert_eq!(writer.write(b"one byte too many").unwrap(), 17, "sent, not yet answered");
    assert!(matches!(writer.close(), Err(error) if error.code() == Some(Code::VolumeFull)));
    assert!(daemon.pool.wait(|state| state.streams.is_empty()).closed.len() == 1);
}

#[test]
fn a_gap_is_declared_and_the_reader_goes_on_behind_it() {
    let daemon = Running::start();
    let bytes = noise(20_000);
    daemon.pool.state().volumes.get_mut("v").unwrap().data = bytes.clone();
    daemon.pool.state().gap = Some((8000, 4096));
    let mut reader = daemon.client.reader("v", contract(), Bytes::ZERO).unwrap();
    let (mut back, mut gaps) = (Vec::<u8>::new(), Vec::new());
    let mut buf = [0; 6000];
    loop {
        match reader.next_piece(&mut buf).unwrap() {
            Piece::Data(len) => back.extend(&buf[..len]),
            Piece::Gap { offset, len } => gaps.push((offset.get(), len.get())),
            Piece::End => break,
        }
    }
    assert_eq!(gaps, [(8000, 4096)]);
    assert_eq!(reader.gaps().get(), 4096);
    assert!(back == [&bytes[..8000], &bytes[12_096..]].concat());
}

#[test]
fn a_contract_that_does_not_fit_is_refused_with_its_figures() {
    let daemon = Running::start();
    let mut greedy = contract();
    greedy.rate_bytes_per_second = client::units::Rate::per_second(9_500_000);
    let _first = daemon.client.reader("v", greedy, Bytes::ZERO).unwrap();
    let error = daemon.client.reader("v", contract(), Bytes::ZERO).unwrap_err();
    let refusal = error.refusal().expect("the figures");
    assert_eq!(refusal.utilisation_ppm, 1_050_000);
    assert_eq!(refusal.excess_ns.unwrap().as_millis(), 7);
    assert_eq!(refusal.rate_max_bytes_per_second.get(), 500_000);
    assert!(error.next_step().contains("500000B/s"), "{}", error.next_step());
}

#[test]
fn a_stream_that_is_closed_by_request_tells_its_program() {
    let daemon = Running::start();
    let mut writer = daemon.client.writer("v", contract(), Bytes::ZERO).unwrap();
    writer.write_all(&noise(5000)).unwrap();
    writer.flush().unwrap();
    let shown = daemon.client.stream(writer.stream()).unwrap();
    assert!(shown.attached);
    let closed = daemon.client.stream_close(writer.stream()).unwrap();
    assert_eq!(closed.durable_bytes, Some(Bytes::new(5000)));
    let error = writer.sync().unwrap_err();
    assert_eq!(error.code(), Some(Code::NoSuchStream), "{error}");
    assert_eq!(writer.durable().get(), 5000);
    let again = daemon.client.stream_close(writer.stream()).unwrap_err();
    assert_eq!(again.code(), Some(Code::NoSuchStream));
}

#[test]
fn stopping_closes_every_stream_tells_its_program_and_commits_last() {
    let mut daemon = Running::start();
    let mut writer = daemon.client.writer("v", contract(), Bytes::ZERO).unwrap();
    let mut reader = daemon.client.reader("v", contract(), Bytes::ZERO).unwrap();
    let mut best_effort = daemon.client.best_effort("v").unwrap();
    let unattached = open_by_hand(&daemon, "write");
    writer.write_all(&noise(5000)).unwrap();
    writer.flush().unwrap();
    daemon.stop().unwrap();
    assert!(daemon.pool.state().shut_down);
    assert!(daemon.pool.state().streams.is_empty());
    assert!(daemon.pool.state().closed.iter().any(|&(stream, _)| stream == unattached));
    assert_eq!(writer.sync().unwrap_err().code(), Some(Code::ShuttingDown));
    assert_eq!(writer.durable().get(), 5000);
    assert_eq!(reader.next_piece(&mut [0; 10]).unwrap_err().code(), Some(Code::ShuttingDown));
    // Begun before or after the daemon has gone, the answer is why it went.
    let error = match best_effort.begin_sync() {
        Ok(_) => best_effort.take().unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.code(), Some(Code::ShuttingDown), "{error}");
    assert!(matches!(daemon.client.health(), Err(Error::NoDaemon { .. })));
}

#[test]
fn who_breaks_the_protocol_is_told_so_and_harms_nobody() {
    let daemon = Running::start();
    let stream = open_by_hand(&daemon, "write");
    let hello = Head::HelloStream { version: VERSION, stream };
    let other = Head::HelloStream { version: VERSION + 1, stream };
    let nobody = Head::HelloStream { version: VERSION, stream: 999 };
    let mut noise_head = [0u8; HEAD_LEN];
    noise_head.copy_from_slice(&noise(HEAD_LEN));
    let next = Head::Next { len: Bytes::KIB }.encode(0);
    let cases = [
        (next.to_vec(), Code::Protocol, "a first frame that is no hello"),
        (other.encode(0).to_vec(), Code::Version, "another version"),
        (nobody.encode(0).to_vec(), Code::NoSuchStream, "a stream that is not there"),
    ];
    for (bytes, wanted, what) in cases {
        let mut socket = UnixStream::connect(daemon.data_socket()).unwrap();
        socket.write_all(&bytes).unwrap();
        assert!(
            matches!(head(&mut socket), Head::Failed { tag: 0, code } if code == wanted),
            "{what}"
        );
    }
    // Noise in place of a first frame is not worth an answer.
    let mut socket = UnixStream::connect(daemon.data_socket()).unwrap();
    socket.write_all(&noise_head).unwrap();
    assert_eq!(socket.read_to_end(&mut Vec::new()).unwrap_or(0), 0);

    let mut carrier = attach_by_hand(&daemon, stream);
    let mut second = UnixStream::connect(daemon.data_socket()).unwrap();
    second.write_all(&hello.encode(0)).unwrap();
    assert!(matches!(head(&mut second), Head::Failed { code: Code::Attached, .. }));
    // The stream is a writer: Next has no meaning on it, and ends it.
    carrier.write_all(&next).unwrap();
    assert!(matches!(head(&mut carrier), Head::Durable { .. }));
    assert!(matches!(head(&mut carrier), Head::Failed { code: Code::Protocol, .. }));
    drop(daemon.pool.wait(|state| state.streams.is_empty()));
    assert!(daemon.client.health().is_ok());
}

fn open_by_hand(daemon: &Running, mode: &str) -> u64 {
    let body = format!(
        r#"{{"volume":"v","mode":"{mode}","contract":{{"rate_bytes_per_second":1000,
        "block_bytes":4096,"burst_bytes":4096}}}}"#
    );
    let request = format!(
        "POST /v1/streams HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = UnixStream::connect(daemon.client.socket()).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let json: serde_json::Value =
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    json["id"].as_u64().unwrap()
}

fn attach_by_hand(daemon: &Running, stream: u64) -> UnixStream {
    let mut socket = UnixStream::connect(daemon.data_socket()).unwrap();
    let hello = Head::HelloStream { version: VERSION, stream };
    socket.write_all(&hello.encode(0)).unwrap();
    assert!(matches!(head(&mut socket), Head::Welcome { .. }));
    socket
}

/// The next head, and the body behind it.
fn frame(socket: &mut UnixStream) -> (Head, Vec<u8>) {
    let mut bytes = [0; HEAD_LEN];
    socket.read_exact(&mut bytes).unwrap();
    let (head, len) = Head::decode(&bytes).unwrap();
    let mut body = vec![0; len];
    socket.read_exact(&mut body).unwrap();
    (head, body)
}

/// The next head; a body behind it is read and dropped.
fn head(socket: &mut UnixStream) -> Head {
    frame(socket).0
}
