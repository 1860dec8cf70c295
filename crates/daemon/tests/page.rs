//! The page for people, and what it asks for.

use crate::http::ask;
use crate::real;
use crate::real::Real;
use crate::support::{Running, contract};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::UNIX_EPOCH;
use units::Bytes;
use wire::control::{EventKind, Overview, Recordings};

const EVENTS: &str = "accept: text/event-stream\r\n";

/// One who wants to watch: the status, and what comes behind the head.
fn try_watch(daemon: &Running) -> (u16, BufReader<UnixStream>) {
    let mut socket = UnixStream::connect(daemon.client.socket()).unwrap();
    write!(socket, "GET /v1/overview HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{EVENTS}\r\n")
        .unwrap();
    let mut answer = BufReader::new(socket);
    let mut line = String::new();
    answer.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    while line != "\r\n" {
        line.clear();
        answer.read_line(&mut line).unwrap();
    }
    (status, answer)
}

/// One who watches.
fn watch(daemon: &Running) -> BufReader<UnixStream> {
    let (status, answer) = try_watch(daemon);
    assert_eq!(status, 200);
    answer
}

/// What the next event says.
fn event(answer: &mut BufReader<UnixStream>) -> Overview {
    loop {
        let mut line = String::new();
        assert!(answer.read_line(&mut line).unwrap() > 0, "the end");
        if let Some(told) = line.strip_prefix("data: ") {
            return serde_json::from_str(told).unwrap();
        }
    }
}

#[test]
fn the_page_is_whole_and_may_load_nothing_of_others() {
    let daemon = Running::start();
    let socket = daemon.client.socket();
    let (status, kind, page) = ask(socket, "GET", "/", "");
    assert_eq!((status, &*kind), (200, "text/html; charset=utf-8"));
    let mut parts = 0;
    for part in page.split(['"', '\'']).filter(|part| part.starts_with("/page.")) {
        let (status, kind, text) = ask(socket, "GET", part, "");
        assert_eq!(status, 200, "{part}");
        assert!(kind.starts_with("text/") && text.len() > 1_000, "{part}: {kind}");
        parts += 1;
    }
    assert_eq!(parts, 2);
    let mut raw = UnixStream::connect(socket).unwrap();
    write!(raw, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    raw.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("content-security-policy: default-src 'none'; script-src 'self';"));
    assert!(answer.contains("; media-src 'self';"), "{answer}");
    assert_eq!(ask(socket, "POST", "/", "").0, 404);
}

#[test]
fn who_watches_hears_what_is_new_and_the_end_with_the_daemon() {
    let mut daemon = Running::start();
    let mut watching = watch(&daemon);
    let first = event(&mut watching);
    assert_eq!(first.status.streams, []);
    // The fake says that memory could not be locked.
    assert!(!first.sound && first.findings[0].what.contains("memory could not be locked"));
    let _stream = daemon.client.reader("v", contract(), Bytes::ZERO).unwrap();
    while event(&mut watching).status.streams.is_empty() {}
    daemon.stop().unwrap();
    // In order: the last chunk, and nothing behind it.
    let mut rest = String::new();
    watching.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
}

/// Pages that nobody closed keep the daemon from nothing, and one that is closed gives way.
#[test]
fn those_who_watch_are_counted() {
    let daemon = Running::start();
    let most = daemon::limits::WATCHERS_PER_USER;
    let mut watching: Vec<_> = (0..most).map(|_| watch(&daemon)).collect();
    let (status, mut answer) = try_watch(&daemon);
    assert_eq!(status, 503);
    let mut problem = String::new();
    answer.read_to_string(&mut problem).unwrap();
    let problem: wire::Problem = serde_json::from_str(&problem).unwrap();
    assert!(problem.detail.starts_with(&format!("{most} programs or pages")), "{problem:?}");
    assert_eq!(daemon.client.overview().unwrap().status.pool, "fake");
    drop(watching.pop());
    // It has gone when the daemon has seen that.
    let mut another = loop {
        let (status, answer) = try_watch(&daemon);
        if status == 200 {
            break answer;
        }
    };
    event(&mut another);
}

/// What happens is told in order, with numbers to go on from; and to the command that is to hear it.
#[test]
fn events_are_told_to_whoever_asks() {
    let daemon = Running::start();
    let until = |after, kind| loop {
        let told = daemon.client.events(after).unwrap();
        if let Some(event) = told.events.iter().find(|event| event.kind == kind) {
            assert!(told.last >= event.number && event.number > after);
            return event.clone();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    // The fake says that memory could not be locked.
    let found = until(0, EventKind::Found);
    assert!(found.what.contains("memory could not be locked"), "{found:?}");
    assert_eq!((&*found.key, found.volume), ("warning/0", None));
    let stream = daemon.client.reader("v", contract(), Bytes::ZERO).unwrap();
    let opened = until(found.number, EventKind::StreamOpened);
    assert_eq!(opened.volume.as_deref(), Some("v"));
    drop(stream);
    let closed = until(opened.number, EventKind::StreamClosed);
    assert_eq!(closed.key, opened.key);
    let (status, _, body) = ask(daemon.client.socket(), "GET", "/v1/events?before=3", "");
    assert_eq!(status, 400, "{body}");
}

/// When what a volume holds was recorded, within the time that was asked about.
#[test]
fn recordings_are_told_by_their_times() {
    let daemon = Real::start(64);
    ["a", "b", "empty"].iter().for_each(|name| daemon.volume(name, Bytes::mib(8)));
    let now = || i64::try_from(UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap();
    let (before, second) = (now(), 1_000_000_000);
    for name in ["b", "a"] {
        let contract = real::contract(1_000_000, Bytes::kib(64));
        let mut writer = daemon.client.writer(name, contract, Bytes::ZERO).unwrap();
        writer.write_all(&real::bytes(0, 100_000)).unwrap();
        writer.close().unwrap();
    }
    let after = now();
    let told = |from: i64, to: i64, more: &str| -> Recordings {
        let address = format!("/v1/recordings?from_ns={from}&to_ns={to}{more}");
        let (status, _, body) = ask(daemon.client.socket(), "GET", &address, "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    };
    let names = |told: &Recordings| -> Vec<String> {
        told.recordings.iter().map(|one| one.volume.clone()).collect()
    };
    let (hour, all) = (3600 * second, i64::MIN..=i64::MAX);
    let now = told(before - hour, after + hour, "");
    assert_eq!((names(&now), now.left), (vec!["a".into(), "b".into()], 0));
    for one in &now.recordings {
        let [span] = one.spans[..] else { panic!("{one:?}") };
        // Half a second is how exact it is.
        assert!(span.begins_ns > before - second && span.begins_ns <= span.ends_ns, "{span:?}");
        assert!(span.ends_ns < after + second, "{span:?}");
    }
    assert_eq!(told(*all.start(), *all.end(), ""), now);
    let earlier = told(before - 2 * hour, before - hour, "");
    assert_eq!(names(&earlier), ["a", "b"]);
    assert!(earlier.recordings.iter().all(|one| one.spans.is_empty()));
    assert_eq!(names(&told(before - hour, after + hour, "&after=a")), ["b"]);
}
