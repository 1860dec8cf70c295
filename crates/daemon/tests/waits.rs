//! Every wait on a client has an end. The clock of these tests is the runtime's own, which
//! is set forward when nobody has anything to do: what is waited for is counted, not
//! waited, and what has no end shows at once.

use crate::nbd::{Nbd, READ, WRITE};
use crate::support::{Fake, Volume};
use daemon::config::SocketMode;
use daemon::limits::*;
use daemon::serve::{ServeError, ServeOptions, Serving};
use daemon::socket::Claim;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use units::Bytes;
use wire::frame::{HEAD_LEN, Head, VERSION};
use wire::nbd::transmission::Request;

/// What lasts longer has no end.
const FOR_EVER: Duration = Duration::from_secs(3600);
/// Words and bytes that are not waited for.
const A_MOMENT: Duration = Duration::from_secs(1);

/// A daemon in this runtime, whose clock stands still while anybody has something to do.
struct House {
    pool: Arc<Fake>,
    socket: PathBuf,
    _dir: TempDir,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<Result<(), ServeError>>>,
}

impl House {
    async fn open() -> Self {
        Self::keeping_alive(daemon::limits::KEEP_ALIVE).await
    }

    /// Where a stream may be silent for so long.
    async fn keeping_alive(keep_alive: units::Duration) -> Self {
        let pool = Arc::new(Fake::default());
        let volume = Volume { size: 64 << 20, data: vec![7; 16 << 20], ..Volume::default() };
        pool.state().volumes.insert("v".into(), volume);
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let socket = dir.path().join("s.sock");
        let (stop, stopped) = oneshot::channel::<()>();
        let (listening, is_listening) = oneshot::channel::<()>();
        let (serving, at) = (Arc::clone(&pool), socket.clone());
        let served = tokio::spawn(async move {
            let claim = Claim::new(&at).unwrap();
            // Polled for the first time after the sockets are there.
            let stopping = async move {
                listening.send(()).unwrap();
                let _ = stopped.await;
            };
            let options = ServeOptions {
                keep_alive,
                timely: Serving::WithOthers,
                ..ServeOptions::from(SocketMode(0o600))
            };
            daemon::serve::serve(serving, &claim, options, stopping).await
        });
        is_listening.await.unwrap();
        tokio::time::pause();
        Self { pool, socket, _dir: dir, stop: Some(stop), served: Some(served) }
    }

    async fn control(&self, said: &[u8]) -> UnixStream {
        let mut connection = UnixStream::connect(&self.socket).await.unwrap();
        connection.write_all(said).await.unwrap();
        connection
    }

    async fn data(&self, said: &[u8]) -> UnixStream {
        let at = wire::socket::data_path(&self.socket);
        let mut connection = UnixStream::connect(at).await.unwrap();
        connection.write_all(said).await.unwrap();
        connection
    }

    /// A best-effort connection, welcomed.
    async fn best_effort(&self) -> UnixStream {
        let head = Head::HelloVolume { version: VERSION, priority: None, writer: None }.encode(1);
        let mut connection = self.data(&[&head[..], b"v"].concat()).await;
        welcomed(&mut connection).await;
        connection
    }

    /// A client of block devices that has chosen the volume.
    async fn nbd(&self) -> UnixStream {
        let at = wire::socket::nbd_path(&self.socket);
        let open = move || Nbd::open(&at, "v", false).unwrap().socket;
        let socket = tokio::task::spawn_blocking(open).await.unwrap();
        socket.set_nonblocking(true).unwrap();
        UnixStream::from_std(socket).unwrap()
    }

    /// A stream's connection, welcomed.
    async fn stream(&self, mode: &str) -> UnixStream {
        let body = format!(
            r#"{{"volume":"v","mode":"{mode}","contract":{{"rate_bytes_per_second":1000000,
            "block_bytes":4096,"burst_bytes":4096}}}}"#
        );
        let opened = exchange(&self.socket, &posted("/v1/streams", &body)).await;
        let json: serde_json::Value =
            serde_json::from_str(opened.split_once("\r\n\r\n").unwrap().1).unwrap();
        let stream = json["id"].as_u64().unwrap_or_else(|| panic!("{opened}"));
        let hello = Head::HelloStream { version: VERSION, stream };
        let mut connection = self.data(&hello.encode(0)).await;
        welcomed(&mut connection).await;
        connection
    }

    /// Stops the daemon; gives how it ended, and how long that took.
    async fn stop(&mut self) -> (Result<(), ServeError>, Duration) {
        let since = Instant::now();
        drop(self.stop.take());
        let served = self.served.take().expect("stopped once");
        let ended = timeout(FOR_EVER, served).await.expect("stopping has an end");
        (ended.expect("no panic"), since.elapsed())
    }
}

fn posted(path: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

async fn exchange(socket: &Path, said: &[u8]) -> String {
    let mut connection = UnixStream::connect(socket).await.unwrap();
    connection.write_all(said).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn welcomed(connection: &mut UnixStream) {
    let mut head = [0; HEAD_LEN];
    connection.read_exact(&mut head).await.unwrap();
    assert!(matches!(Head::decode(&head), Ok((Head::Welcome { .. }, 0))));
}

/// Reads until the daemon has closed the connection; gives what it said, and how long it
/// took.
async fn closed(mut connection: UnixStream) -> (Vec<u8>, Duration) {
    let (since, mut said) = (Instant::now(), Vec::new());
    let read = timeout(FOR_EVER, connection.read_to_end(&mut said)).await;
    let ended = read.expect("the connection is closed at some time");
    // One that is closed with something unread in it ends in this error.
    let reset = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(ended.as_ref().err().is_none_or(reset), "{ended:?}");
    (said, since.elapsed())
}

/// The connection lasts as long as the limit says.
async fn is_closed_after(connection: UnixStream, limit: Duration, what: &str) -> Vec<u8> {
    let (said, took) = closed(connection).await;
    assert!(took >= limit, "{what}: {took:?}");
    assert!(took <= limit + GOODBYE_WITHIN + A_MOMENT, "{what}: {took:?}");
    said
}

fn text(said: &[u8]) -> String {
    String::from_utf8_lossy(said).into_owned()
}

#[tokio::test]
async fn a_control_connection_that_asks_nothing_is_closed() {
    let house = House::open().await;
    for said in ["", "GET /v1/hea", "GET /v1/health HTTP/1.1\r\nhost: x\r\n"] {
        let connection = house.control(said.as_bytes()).await;
        is_closed_after(connection, CONTROL_HEAD_WITHIN, said).await;
    }
    let asked = "GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n";
    let connection = house.control(asked.as_bytes()).await;
    let said = is_closed_after(connection, CONTROL_HEAD_WITHIN, "kept open").await;
    assert!(text(&said).starts_with("HTTP/1.1 200 OK"), "it was answered before");
}

#[tokio::test]
async fn a_body_that_stops_in_the_middle_is_refused_in_words() {
    let house = House::open().await;
    let asked = posted("/v1/volumes", r#"{"name":"w","size_bytes":4096}"#);
    let connection = house.control(&asked[..asked.len() - 5]).await;
    let said = text(&is_closed_after(connection, CONTROL_BODY_WITHIN, "half a body").await);
    assert!(said.starts_with("HTTP/1.1 400") && said.contains("did not come within"), "{said}");
}

#[tokio::test]
async fn an_answer_that_is_not_taken_ends_its_control_connection() {
    let house = House::open().await;
    let asked = "GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100);
    let mut connection = house.control(asked.as_bytes()).await;
    tokio::time::sleep(ANSWER_TAKEN_WITHIN + A_MOMENT).await;
    let mut taken = Vec::new();
    let read = timeout(FOR_EVER, connection.read_to_end(&mut taken)).await;
    read.expect("it is closed").ok();
    let answers = text(&taken).matches("HTTP/1.1 200 OK").count();
    assert!(answers < 100, "all {answers} were waited for");
}

#[tokio::test]
async fn half_a_greeting_ends() {
    let house = House::open().await;
    let hello = Head::HelloVolume { version: VERSION, priority: None, writer: None }.encode(200);
    let named = [&hello[..], b"v"].concat();
    let file = Head::HelloFile { version: VERSION }.encode(1000);
    for said in [&b""[..], &hello[..16], &hello, &named, &file] {
        let connection = house.data(said).await;
        is_closed_after(connection, HELLO_WITHIN, &format!("{} bytes", said.len())).await;
    }
}

#[tokio::test]
async fn a_frame_that_stops_in_the_middle_ends_and_gives_its_memory_back() {
    let house = House::open().await;
    let write = Head::WriteAt { tag: 1, offset: Bytes::ZERO }.encode(1 << 20);
    let beyond = Head::WriteAt { tag: 1, offset: Bytes::ZERO }.encode(5000);
    let half = [&write[..], &[1; 5000]].concat();
    for said in [&write[..7], &write, &half, &beyond] {
        let mut connection = house.best_effort().await;
        connection.write_all(said).await.unwrap();
        let told = is_closed_after(connection, FRAME_WITHIN, "best effort").await;
        assert!(text(&told).contains("a frame stopped in the middle"), "{}", text(&told));
    }
    for said in [&[4][..], &Head::Write.encode(1 << 20), &half[..9]] {
        let mut connection = house.stream("write").await;
        connection.write_all(said).await.unwrap();
        let told = is_closed_after(connection, FRAME_WITHIN, "a writer").await;
        assert!(text(&told).contains("a frame stopped in the middle"), "{}", text(&told));
    }
    assert_eq!(house.pool.state().streams.len(), 0, "the streams are closed");
}

/// A stream as long as the daemon is told; what has no contract, always.
#[tokio::test]
async fn a_stream_may_be_silent_for_five_minutes_and_best_effort_for_ever() {
    let house = House::open().await;
    let mut best_effort = house.best_effort().await;
    let limit = Duration::from_nanos(KEEP_ALIVE.as_nanos());
    let told = is_closed_after(house.stream("read").await, limit, "a reader").await;
    assert!(text(&told).contains("silent"), "{}", text(&told));
    assert_eq!(house.pool.state().streams.len(), 0, "the stream is closed");
    let read = Head::ReadAt { tag: 1, offset: Bytes::ZERO, len: Bytes::kib(4) };
    best_effort.write_all(&read.encode(0)).await.unwrap();
    let mut head = [0; HEAD_LEN];
    best_effort.read_exact(&mut head).await.unwrap();
    assert!(!matches!(Head::decode(&head).unwrap().0, Head::Failed { .. }));
}

/// A container is frozen with the daemon and its programs in it, and thawed: the daemon looked first, and
/// ended each stream whose program owed a word.
#[tokio::test]
async fn who_was_stopped_together_with_the_daemon_may_be_silent_for_as_long_once_more() {
    let house = House::open().await;
    let limit = Duration::from_nanos(KEEP_ALIVE.as_nanos());
    let mut reader = house.stream("read").await;
    tokio::time::advance(10 * limit).await;
    let since = Instant::now();
    tokio::time::sleep(limit / 2).await;
    reader.write_all(&Head::Next { len: Bytes::new(1) }.encode(0)).await.unwrap();
    let mut head = [0; HEAD_LEN];
    reader.read_exact(&mut head).await.unwrap();
    let answer = Head::decode(&head).unwrap().0;
    assert!(!matches!(answer, Head::Failed { .. }), "{answer:?}");
    assert!(since.elapsed() >= limit / 2, "the clock of this test is the runtime's");
    // One that does not go on has ended by then.
    let silent = house.stream("read").await;
    tokio::time::advance(10 * limit).await;
    let told = is_closed_after(silent, limit, "a reader").await;
    assert!(text(&told).contains("silent"), "{}", text(&told));
}

#[tokio::test]
async fn where_nobody_says_otherwise_a_program_is_silent_between_two_frames_for_ever() {
    let house = House::keeping_alive(units::Duration::ZERO).await;
    let mut best_effort = house.best_effort().await;
    let (mut reader, mut writer) = (house.stream("read").await, house.stream("write").await);
    tokio::time::sleep(FOR_EVER).await;
    let read = Head::ReadAt { tag: 1, offset: Bytes::ZERO, len: Bytes::kib(4) };
    let next = Head::Next { len: Bytes::new(1) };
    for (connection, said) in
        [(&mut best_effort, read), (&mut reader, next), (&mut writer, Head::Sync)]
    {
        connection.write_all(&said.encode(0)).await.unwrap();
        let mut head = [0; HEAD_LEN];
        connection.read_exact(&mut head).await.unwrap();
        let (answer, _) = Head::decode(&head).unwrap();
        assert!(!matches!(answer, Head::Failed { .. }), "{answer:?}");
    }
}

#[tokio::test]
async fn a_program_that_does_not_take_its_answers_is_let_go() {
    let house = House::open().await;
    let mut reader = house.stream("read").await;
    let next = Head::Next { len: Bytes::MIB }.encode(0);
    reader.write_all(&next.repeat(1000)).await.unwrap();
    let mut best_effort = house.best_effort().await;
    let read = Head::ReadAt { tag: 1, offset: Bytes::ZERO, len: Bytes::MIB }.encode(0);
    best_effort.write_all(&read.repeat(60)).await.unwrap();
    let since = Instant::now();
    let over = async {
        while !house.pool.state().streams.is_empty() {
            tokio::time::sleep(A_MOMENT).await;
        }
    };
    timeout(FOR_EVER, over).await.expect("its stream is closed");
    assert!(since.elapsed() >= ANSWER_TAKEN_WITHIN, "{:?}", since.elapsed());
    tokio::time::sleep(ANSWER_TAKEN_WITHIN).await;
    for connection in [reader, best_effort] {
        let (said, _) = closed(connection).await;
        assert!(said.len() < 5 << 20, "{} bytes", said.len());
    }
}

/// What goes on is not cut off, however long it takes in all: over a slow link.
#[tokio::test]
async fn who_is_slow_and_goes_on_is_served() {
    let house = House::open().await;
    let mut slow = house.best_effort().await;
    let read = Head::ReadAt { tag: 1, offset: Bytes::ZERO, len: Bytes::MIB }.encode(0);
    slow.write_all(&read.repeat(4)).await.unwrap();
    let since = Instant::now();
    let (mut left, mut piece) = (4 * (HEAD_LEN + (1 << 20)), vec![0; 64 << 10]);
    while left > 0 {
        tokio::time::sleep(A_MOMENT).await;
        match timeout(FOR_EVER, slow.read(&mut piece)).await.unwrap() {
            Ok(read @ 1..) => left -= read,
            ended => panic!("{ended:?} after {:?} with {left} bytes to come", since.elapsed()),
        }
    }
    assert!(since.elapsed() > ANSWER_TAKEN_WITHIN, "it was slow");
    // Bodies, with and without a place for them, on both kinds of connections.
    let write = Head::WriteAt { tag: 2, offset: Bytes::ZERO }.encode(256 << 10);
    send_slowly(&mut slow, &write, 256 << 10).await;
    assert_eq!(head(&mut slow).await, Head::WriteDone { tag: 2 });
    let beyond = Head::WriteAt { tag: 3, offset: Bytes::mib(64) }.encode(256 << 10);
    send_slowly(&mut slow, &beyond, 256 << 10).await;
    let told = head(&mut slow).await;
    assert!(matches!(told, Head::Failed { tag: 3, .. }), "{told:?}");
    let mut nbd = house.nbd().await;
    let request =
        |cookie, offset| Request { flags: 0, kind: WRITE, cookie, offset, len: 256 << 10 };
    for (cookie, offset, error) in [(4, 0, 0u32), (5, 1 << 40, 28)] {
        send_slowly(&mut nbd, &request(cookie, offset).encode(), 256 << 10).await;
        let mut reply = [0; 16];
        timeout(FOR_EVER, nbd.read_exact(&mut reply)).await.unwrap().unwrap();
        assert_eq!(reply[4..8], error.to_be_bytes());
        assert_eq!(reply[8..], u64::to_be_bytes(cookie));
    }
}

/// Sends a head, and bytes behind it for longer than a frame may stop.
async fn send_slowly(connection: &mut UnixStream, head: &[u8], len: usize) {
    connection.write_all(head).await.unwrap();
    let since = Instant::now();
    for piece in vec![9; len].chunks(16 << 10) {
        tokio::time::sleep(A_MOMENT).await;
        let sent = connection.write_all(piece).await;
        sent.unwrap_or_else(|error| panic!("{error} after {:?}", since.elapsed()));
    }
    assert!(since.elapsed() > FRAME_WITHIN, "it was slow");
}

/// The next head; a body behind it is read and dropped.
async fn head(connection: &mut UnixStream) -> Head {
    let mut head = [0; HEAD_LEN];
    timeout(FOR_EVER, connection.read_exact(&mut head)).await.unwrap().unwrap();
    let (head, len) = Head::decode(&head).unwrap();
    connection.read_exact(&mut vec![0; len]).await.unwrap();
    head
}

/// Bytes come, and so few of them that whoever sends them has the memory for as long as he likes.
#[tokio::test]
async fn a_body_in_drops_ends_as_one_that_stops() {
    let house = House::open().await;
    let mut drops = house.best_effort().await;
    let write = Head::WriteAt { tag: 1, offset: Bytes::ZERO }.encode(1 << 20);
    drops.write_all(&write).await.unwrap();
    let since = Instant::now();
    while drops.write_all(&[1; 100]).await.is_ok() {
        tokio::time::sleep(A_MOMENT).await;
        assert!(since.elapsed() < FOR_EVER);
    }
}

/// What its request needs is there no more: a client is told so by the end, and does not wait for ever.
#[tokio::test]
async fn a_request_that_fails_inside_ends_its_connection() {
    let house = House::open().await;
    house.pool.state().hold_best_effort = true;
    let read = Head::ReadAt { tag: 1, offset: Bytes::ZERO, len: Bytes::kib(4) }.encode(0);
    let cookie = 1;
    let asks = Request { flags: 0, kind: READ, cookie, offset: 0, len: 4096 }.encode();
    let connections = [(house.best_effort().await, &read[..]), (house.nbd().await, &asks[..])];
    for (mut connection, asks) in connections {
        connection.write_all(asks).await.unwrap();
        let held = loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let held = house.pool.state().held.pop();
            if let Some((_, answer)) = held {
                break answer;
            }
        };
        held(Ok(daemon::pool::Reply::Done)); // no answer to a read
        let (said, _) = closed(connection).await;
        assert!(said.is_empty(), "{said:?}");
    }
}

/// What looks after the daemon fails: the daemon stops in order, and says so.
#[tokio::test]
async fn a_daemon_of_which_a_part_has_ended_ends() {
    let mut house = House::open().await;
    house.pool.fails.store(true, Ordering::Relaxed);
    let served = house.served.take().expect("it serves");
    let ended = timeout(FOR_EVER, served).await.expect("it ends").expect("no panic");
    assert!(matches!(ended, Err(ServeError::Ended(_))), "{ended:?}");
    assert!(house.pool.state().shut_down, "the pool was told to commit and to end");
}

/// Everything at once that a client can leave undone, and the daemon is told to stop.
#[tokio::test]
async fn a_stop_ends_within_its_time_and_commits_whatever_clients_do() {
    let mut house = House::open().await;
    let hello = Head::HelloVolume { version: VERSION, priority: None, writer: None }.encode(200);
    let asked = posted("/v1/volumes", r#"{"name":"w","size_bytes":4096}"#);
    let mut kept = Vec::new();
    for said in [&b""[..], b"GET /v1", &asked[..20], &asked[..asked.len() - 5]] {
        kept.push(house.control(said).await);
    }
    for said in [&b""[..], &hello[..3], &hello[..]] {
        kept.push(house.data(said).await);
    }
    let write = Head::WriteAt { tag: 1, offset: Bytes::ZERO }.encode(8192);
    for said in [&write[..9], &write] {
        let mut connection = house.best_effort().await;
        connection.write_all(said).await.unwrap();
        kept.push(connection);
    }
    let mut reader = house.stream("read").await;
    reader.write_all(&Head::Next { len: Bytes::MIB }.encode(0).repeat(1000)).await.unwrap();
    let mut writer = house.stream("write").await;
    writer.write_all(&Head::Write.encode(8192)).await.unwrap();
    kept.extend([reader, writer]);
    // Until all of it has come to where it stops.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (ended, took) = house.stop().await;
    ended.expect("it stops in order");
    assert!(took <= CLIENTS_STOP_WITHIN, "{took:?}");
    assert!(house.pool.state().shut_down, "the pool was told to commit and to end");
}

#[tokio::test]
async fn one_half_greeting_alone_does_not_keep_the_daemon_from_stopping() {
    let mut house = House::open().await;
    let hello = Head::HelloVolume { version: VERSION, priority: None, writer: None }.encode(200);
    let _half = house.data(&hello).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (ended, took) = house.stop().await;
    ended.expect("it stops in order");
    assert!(took <= A_MOMENT, "{took:?}");
    assert!(house.pool.state().shut_down);
}

/// A disk that hangs is another thing: it is waited for, and then the end is told as what
/// it is.
#[tokio::test]
async fn a_pool_that_does_not_come_to_rest_is_not_waited_for_for_ever() {
    let mut house = House::open().await;
    house.pool.state().hold_shutdown = true;
    let (ended, took) = house.stop().await;
    assert!(matches!(ended, Err(ServeError::Late)), "{ended:?}");
    assert!(took >= DISKS_STOP_WITHIN && took < 3 * DISKS_STOP_WITHIN, "{took:?}");
}
