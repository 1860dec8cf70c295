//! A daemon that has no descriptor left. The limit is the whole process's, so this test is
//! alone in its program.

mod support;

use client::Code;
use daemon::limits::{CONNECTIONS_MIN, CONNECTIONS_PER_USER_DIVISOR};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use support::Running;

const LIMIT: u64 = 200;
/// What a daemon takes then of one user.
const OF_ONE_USER: usize = CONNECTIONS_MIN / CONNECTIONS_PER_USER_DIVISOR;
/// What has not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A user who has as many connections at work as he may have is told so, on either socket.
fn one_more_is_refused_in_words(daemon: &Running) {
    let open = || daemon.client.best_effort("v");
    let at_work: Vec<_> = (0..OF_ONE_USER).map(|_| open().unwrap()).collect();
    for error in [open().unwrap_err(), daemon.client.health().unwrap_err()] {
        assert_eq!(error.code(), Some(Code::Quota), "{error}");
        let wanted = format!("has {OF_ONE_USER} connections at work, as many as one may have");
        assert!(error.to_string().contains(&wanted), "{error}");
    }
    drop(at_work);
    while daemon.client.health().is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn out_of_descriptors_a_connection_that_waits_gives_way_and_the_next_one_is_served() {
    let limit = Rlimit { current: Some(LIMIT), maximum: Some(LIMIT) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let daemon = Running::start();
    one_more_is_refused_in_words(&daemon);
    let path = daemon.client.socket().to_owned();
    let mut idle = UnixStream::connect(&path).unwrap();
    idle.write_all(b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut some = [0; 15];
    idle.read_exact(&mut some).unwrap();
    assert_eq!(&some, b"HTTP/1.1 200 OK");
    let next = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    connect(&next, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    let mut next = UnixStream::from(next);
    next.set_read_timeout(Some(PATIENCE)).unwrap();
    next.write_all(b"GET /v1/status HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    next.read_to_string(&mut answer).expect("it is served");
    assert!(answer.contains("the limit of open files is 200"), "{answer}");
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).expect("it was closed in order");
    drop(taken);
    daemon.client.health().unwrap();
}
