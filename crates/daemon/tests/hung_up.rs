//! Clients that ask and hang up before they are answered: what they have asked for has what it has
//! of their accounts until it has ended, so that nobody has more under way than his part by not
//! waiting for it.
//!
//! Judged by what has come to the pool when the daemon has closed every such connection.

use crate::nbd::{Nbd, WRITE, ZEROES};
use crate::support::{Fake, Running, contract};
use client::units::Bytes;
use daemon::config::SocketMode;
use daemon::quotas::{Quotas, Rules, Whole};
use daemon::serve::ServeOptions;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::MutexGuard;

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
    for zeroes in [false, true] {
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
        let mut client = Nbd::open(&socket, "v", false).unwrap();
        let mut other = Nbd::open(&socket, "v", false).unwrap();
        let begun = if zeroes {
            client.begin(ZEROES, 0, 0, 2 << 20, &[]);
            1
        } else {
            for _ in 0..8 {
                other.begin(WRITE, 0, 0, 1 << 20, &vec![1; 1 << 20]);
            }
            drop(pool.wait(|state| state.held_writes.len() == 8));
            client.begin(WRITE, 0, 0, 4096, &[2; 4096]);
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
        assert_eq!(writes(&pool), begun);
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
