//! Clients that ask and hang up before they are answered: what they have asked for has what it has
//! of their accounts until it has ended, so that nobody has more under way than his part by not
//! waiting for it.
//!
//! Judged by what has come to the pool when the daemon has closed every such connection.

use crate::nbd::{Nbd, WRITE, ZEROES};
use crate::support::{Fake, Running, Volume, contract};
use client::units::Bytes;
use daemon::config::SocketMode;
use daemon::quotas::{Quotas, Rules, Whole, own_uid};
use daemon::serve::{ServeOptions, Serving};
use daemon::socket::Claim;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};
use wire::frame::{Head, VERSION};
use wire::nbd::transmission::Request;

/// Control requests of one user that are served at once.
const AT_ONCE: usize = 32;
/// More than that.
const ASKED: usize = 3 * AT_ONCE;

/// Asks, hangs up, and waits until the daemon has closed the connection, too: it has begun by then what
/// it will ever do.
fn ask_and_hang_up(daemon: &Running, method: &str, path: &str, body: &str) {
    let mut socket = UnixStream::connect(daemon.client.socket()).unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    let _ = socket.read_to_string(&mut answer);
    // Some are refused at once.
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
}

/// Waits until so much has come to the pool, and holds what comes then.
fn held(pool: &Fake, count: usize) -> MutexGuard<'_, crate::support::State> {
    pool.wait(|state| state.held.len() >= count)
}

/// The pool was asked for so many writes.
fn writes(pool: &Fake) -> usize {
    pool.state().stated.len()
}

/// Who has gone may have written anew since, by another connection: what waited here for its turn does
/// not come over that.
#[test]
fn a_write_that_waited_is_not_carried_out_for_a_client_that_has_gone() {
    let waits = || std::thread::sleep(std::time::Duration::from_millis(30));
    for door in [Door::Nbd, Door::Zeroes, Door::Http] {
        // A user's requests have 8 MiB together.
        let whole = Whole { memory: Bytes::mib(32), space: Bytes::mib(100) };
        let quotas = Quotas::new(&Rules::default(), whole, vec![]);
        let options = ServeOptions { quotas, ..ServeOptions::from(SocketMode(0o666)) };
        let mut daemon = Running::start_by(options);
        let pool = std::sync::Arc::clone(&daemon.pool);
        {
            let mut state = pool.state();
            state.hold_writes = true;
            state.volumes.get_mut("v").unwrap().size = 4 << 20;
        }
        let socket = wire::socket::nbd_path(daemon.client.socket());
        let mut client = match door {
            Door::Http => UnixStream::connect(daemon.client.socket()).unwrap(),
            _ => Nbd::open(&socket, "v", false).unwrap().socket,
        };
        let mut other = Nbd::open(&socket, "v", false).unwrap();
        let begun = if door == Door::Zeroes {
            // Piece by piece.
            client.write_all(&request(ZEROES, 2 << 20)).unwrap();
            1
        } else {
            for _ in 0..8 {
                other.begin(WRITE, 0, 0, 1 << 20, &vec![1; 1 << 20]);
            }
            drop(pool.wait(|state| state.held_writes.len() == 8));
            client.write_all(&door.write()).unwrap();
            8
        };
        drop(pool.wait(|state| state.held_writes.len() == begun));
        // Until the daemon has read what waits.
        waits();
        pool.state().passed = units::Duration::from_secs(1);
        drop(client);
        pool.release();
        waits();
        daemon.stop().unwrap();
        assert_eq!(writes(&pool), begun, "{door:?}");
    }
}

/// By which a client writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Nbd,
    Zeroes,
    Data,
    Http,
}

fn request(kind: u16, len: u32) -> Vec<u8> {
    Request { flags: 0, kind, cookie: 1, offset: 0, len }.encode().to_vec()
}

impl Door {
    /// A write to the beginning of the volume, as it is sent.
    fn write(self) -> Vec<u8> {
        let (len, bytes) = (4096, [2; 4096]);
        match self {
            Self::Nbd => [&request(WRITE, len)[..], &bytes].concat(),
            Self::Zeroes => request(ZEROES, len),
            Self::Data => {
                let head = Head::WriteAt { tag: 1, offset: Bytes::ZERO }.encode(bytes.len());
                [&head[..], &bytes].concat()
            }
            Self::Http => {
                // More than is read before the request is begun: the end behind a short body is found first,
                // and nothing is begun.
                let head = "PUT /v1/volumes/v/data HTTP/1.1\r\nhost: x\r\n\
                            content-range: bytes 0-65535/*\r\ncontent-length: 65536\r\n\r\n";
                [head.as_bytes(), &[2; 65_536]].concat()
            }
        }
    }

    /// A connection on which the daemon waits for a request.
    fn open(self, socket: &Path) -> UnixStream {
        match self {
            Self::Nbd | Self::Zeroes => {
                Nbd::open(&wire::socket::nbd_path(socket), "v", false).unwrap().socket
            }
            Self::Data => {
                let hello = Head::HelloVolume { version: VERSION, priority: None, writer: None };
                let mut connection = UnixStream::connect(wire::socket::data_path(socket)).unwrap();
                connection.write_all(&hello.encode(1)).unwrap();
                connection.write_all(b"v").unwrap();
                let mut welcome = [0; wire::frame::HEAD_LEN];
                connection.read_exact(&mut welcome).unwrap();
                connection
            }
            Self::Http => UnixStream::connect(socket).unwrap(),
        }
    }
}

/// A daemon that serves in the tasks of the thread that calls, and its control socket: while that thread
/// does anything else it stands still.
async fn standing_still(pool: &Arc<Fake>, directory: &Path) -> PathBuf {
    let socket = directory.join("s.sock");
    let (listening, is_listening) = tokio::sync::oneshot::channel::<()>();
    let (serving, at) = (Arc::clone(pool), socket.clone());
    tokio::spawn(async move {
        let claim = Claim::new(&at).unwrap();
        // Polled for the first time after the sockets are there.
        let stop = async move {
            listening.send(()).unwrap();
            std::future::pending().await
        };
        let mode = SocketMode(0o600);
        let options = ServeOptions { timely: Serving::WithOthers, ..ServeOptions::from(mode) };
        daemon::serve::serve(serving, &claim, options, stop).await
    });
    is_listening.await.unwrap();
    socket
}

/// A daemon that stood still (it was stopped, or its machine had no processor for it) finds what was sent
/// to it before, and cannot know how long that has lain there: who has gone since may have written anew,
/// by a connection that is served first. Before, a write counted as one that had waited only from when it
/// was read.
#[tokio::test(flavor = "current_thread")]
async fn a_write_that_lay_in_the_socket_is_not_carried_out_for_a_client_that_has_gone() {
    let pool = Arc::new(Fake::default());
    let ownership = node::Ownership { uid: own_uid(), gid: 0, mode: 0o666 };
    let volume = Volume { size: 1 << 20, ownership, ..Volume::default() };
    pool.state().volumes.insert("v".into(), volume);
    let directory = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
    let socket = standing_still(&pool, directory.path()).await;
    let goes_on = || tokio::time::sleep(std::time::Duration::from_millis(30));
    for door in [Door::Nbd, Door::Zeroes, Door::Data, Door::Http] {
        for has_gone in [true, false] {
            let before = writes(&pool);
            let at = socket.clone();
            let open = move || door.open(&at);
            let mut client = tokio::task::spawn_blocking(open).await.unwrap();
            goes_on().await; // until it waits for what comes
            client.write_all(&door.write()).unwrap();
            // Who only sends nothing more may wait for the answer.
            let _waits = match has_gone {
                true => {
                    drop(client);
                    None
                }
                false => {
                    client.shutdown(Shutdown::Write).unwrap();
                    Some(client)
                }
            };
            goes_on().await;
            assert_eq!(writes(&pool) - before, usize::from(!has_gone), "{door:?}");
        }
    }
}

/// Before, the account of each request was free when its client had gone, and the pool had all of
/// them at once: of one user as many as there may be of all.
#[test]
fn who_asks_for_commits_and_hangs_up_has_no_more_of_them_under_way_than_others() {
    let daemon = Running::start();
    daemon.pool.state().hold_best_effort = true;
    for _ in 0..ASKED {
        ask_and_hang_up(&daemon, "POST", "/v1/sync", "");
    }
    assert_eq!(held(&daemon.pool, AT_ONCE).held.len(), AT_ONCE);
    daemon.pool.release();
    // All of it has come back.
    daemon.pool.state().hold_best_effort = true;
    for _ in 0..ASKED {
        ask_and_hang_up(&daemon, "POST", "/v1/sync", "");
    }
    assert_eq!(held(&daemon.pool, AT_ONCE).held.len(), AT_ONCE);
    daemon.pool.release();
    daemon.client.status().unwrap();
}

/// One is opened after the other. Before, as many as he liked stood before everybody else.
#[test]
fn who_opens_streams_and_hangs_up_stands_before_nobody_with_more_than_his_part() {
    let daemon = Running::start();
    daemon.pool.state().hold_opens = true;
    let open = r#"{"volume": "v", "mode": "read", "start_bytes": 0, "contract": {
        "rate_bytes_per_second": 1000, "block_bytes": 4096, "burst_bytes": 4096}}"#;
    for _ in 0..ASKED {
        ask_and_hang_up(&daemon, "POST", "/v1/streams", open);
    }
    daemon.pool.release();
    let own = daemon.client.reader("v", contract(), Bytes::ZERO).unwrap();
    let opened = daemon.pool.state().last_stream;
    assert!(opened <= AT_ONCE as u64 + 1, "{opened}");
    own.close().unwrap();
}

/// One is planned after the other. Before, all of one user's were at once, each with a thread of those
/// that the daemon has for all that takes long.
#[test]
fn who_asks_for_plans_and_hangs_up_has_one_of_them_under_way() {
    let daemon = Running::start();
    daemon.pool.state().hold_plans = true;
    let list = r#"{"streams": [{"name": "camera", "contract": {
        "rate_bytes_per_second": 1000, "block_bytes": 4096, "burst_bytes": 4096}}]}"#;
    for _ in 0..ASKED {
        ask_and_hang_up(&daemon, "POST", "/v1/plan", list);
    }
    assert_eq!(held(&daemon.pool, 1).held.len(), 1);
    let asked = || daemon.pool.state().plans;
    assert_eq!(asked(), 1);
    daemon.pool.release();
    let request = client::control::PlanRequest { streams: Vec::new(), alternatives: false };
    assert!(daemon.client.plan(&request).unwrap().fits);
    // The first one again, and this one: nobody waited for the others any more.
    assert_eq!(asked(), 3);
}

/// What is written counts as one of his connections until the pool has written it. Before, he had it
/// back, and the pool all that he had sent.
#[test]
fn who_sends_a_body_and_hangs_up_has_his_connections_when_it_is_written() {
    const CONNECTIONS: usize = 2;
    let rules: Rules =
        toml::from_str(&format!("[default]\nbest_effort_connections = {CONNECTIONS}")).unwrap();
    let whole = Whole { memory: Bytes::mib(64), space: Bytes::mib(100) };
    let quotas = Quotas::new(&rules, whole, vec![]);
    let daemon =
        Running::start_by(ServeOptions { quotas, ..ServeOptions::from(SocketMode(0o666)) });
    daemon.pool.state().hold_writes = true;
    for _ in 0..ASKED {
        ask_and_hang_up(&daemon, "PUT", "/v1/volumes/v/data", "bytes");
    }
    let held = daemon.pool.wait(|state| state.held_writes.len() >= CONNECTIONS).held_writes.len();
    assert_eq!(held, CONNECTIONS);
    daemon.pool.release();
    // It has come back when that was made durable, too.
    let mut own = daemon.client.best_effort("v");
    while own.is_err() {
        own = daemon.client.best_effort("v");
    }
    let mut back = [0; 5];
    own.unwrap().read_at(Bytes::ZERO, &mut back).unwrap();
    assert_eq!(&back, b"bytes");
}
