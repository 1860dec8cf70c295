//! The end of the daemon, in order and not.

use crate::support;
use crate::support::{Scratch, acknowledged, begins, give, noise, wait_until};
use client::units::Bytes;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use wire::frame::{Head, VERSION};

/// Those without a closed terminal where these tests go on without theirs, as their children do then.
fn with_hangups<'a>(all: &'a [&'a [&'a str]]) -> impl Iterator<Item = &'a [&'a str]> {
    let without = daemon::serve::ignores_hangup();
    all.iter().copied().filter(move |signals| !without || !signals.contains(&"HUP"))
}

#[test]
fn a_signal_to_stop_syncs_every_writer_and_ends_with_0() {
    // A session that ends sends both.
    for signals in with_hangups(&[&["TERM"], &["INT"], &["HUP"], &["HUP", "TERM"]]) {
        let dir = Scratch::new();
        let disks = dir.make_pool(&["a"]);
        let daemon = dir.serve(&disks);
        let acks = dir.text("acks");
        let args = ["record", "v", "--create", "64MiB", "--rate", "4MB/s", "--ack-file", &acks];
        let mut child = dir.command(&args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let feed = std::thread::spawn(move || !give(noise(1, 40 << 20), &mut stdin));
        wait_until(|| acknowledged(&acks) >= 2);
        signals.iter().for_each(|signal| daemon.signal(signal));
        let (code, log) = daemon.wait();
        assert_eq!(code, Some(0), "{log}");
        assert!(log.ends_with("stopped; everything acknowledged is on the medium\n"), "{log}");
        let output = child.wait_with_output().unwrap();
        assert!(feed.join().unwrap(), "the recording ended before its input did");
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("the daemon is stopping"), "{err}");

        let acks = std::fs::read_to_string(&acks).unwrap();
        let durable: usize = acks.lines().last().unwrap().parse().unwrap();
        let _daemon = dir.serve(&disks);
        let back = dir.run(&["play", "v", "--rate", "20MB/s"]).succeeded().out;
        assert!(back.len() >= durable && begins(1, &back), "{} of {durable}", back.len());
        assert!(durable > 0);
    }
}

#[test]
fn an_interrupted_recording_ends_in_order_even_while_its_input_is_silent() {
    for signals in with_hangups(&[&["INT"], &["HUP"], &["HUP", "HUP", "TERM"]]) {
        let dir = Scratch::new();
        let _daemon = dir.serve(&dir.make_pool(&["a"]));
        let acks = dir.text("acks");
        let args = ["record", "v", "--create", "8MiB", "--rate", "4MB/s", "--ack-file", &acks];
        let mut child = dir.command(&args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&noise(1, (1 << 20) + 6).bytes()).unwrap();
        wait_until(|| acknowledged(&acks) >= 1); // it is under way
        signals.iter().for_each(|signal| support::signal(child.id(), signal));
        let output = child.wait_with_output().unwrap(); // the input stays open
        let played = dir.run(&["play", "v", "--rate", "4MB/s"]).succeeded().out;
        assert!(begins(1, &played) && played.len() == (1 << 20) + 6, "all that was read");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(text.contains("1.00 MiB accepted, 1.00 MiB durable"), "{text}");
        drop(stdin);
    }
}

#[test]
fn the_service_manager_hears_ready_alive_and_stopping() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve_watched(&disks);
    let hear = || {
        let mut word = [0; 64];
        loop {
            if let Ok(len) = daemon.notify.recv(&mut word) {
                return String::from_utf8(word[..len].to_vec()).unwrap();
            }
        }
    };
    assert_eq!(hear(), "WATCHDOG=1");
    assert_eq!(hear(), "WATCHDOG=1");
    daemon.signal("TERM");
    while hear() != "STOPPING=1" {}
    assert_eq!(daemon.wait().0, Some(0));
}

/// How long each of them may take is held in crates/daemon/tests/hanging.rs, where
/// time can be set forward; here, that a real daemon ends in order beside all of them.
#[test]
fn programs_that_hang_do_not_keep_the_daemon_from_stopping() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    let record = ["record", "v", "--create", "16MiB", "--rate", "20MB/s"];
    dir.run_with(&record, &noise(1, 8 << 20).bytes()).recorded();
    // Half a request, and half a frame.
    let mut control = UnixStream::connect(dir.path("s.sock")).unwrap();
    control
        .write_all(b"POST /v1/volumes HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{")
        .unwrap();
    let connect = || UnixStream::connect(dir.path("s.data.sock")).unwrap();
    let mut data = connect();
    data.write_all(&[1, 2, 3]).unwrap();
    // Best effort that takes no answers.
    let mut deaf = connect();
    deaf.write_all(&Head::HelloVolume { version: VERSION, priority: None, writer: None }.encode(1))
        .unwrap();
    deaf.write_all(b"v").unwrap();
    for tag in 1..40 {
        let head = Head::ReadAt { tag, offset: Bytes::ZERO, len: Bytes::MIB };
        deaf.write_all(&head.encode(0)).unwrap();
    }
    // A player whose output is not read: its own reader stops, in a frame.
    let mut player = dir.command(&["play", "v", "--rate", "20MB/s"]).spawn().unwrap();
    let status = || dir.run(&["pool", "status", "--json"]).succeeded().json();
    wait_until(|| {
        let status = status();
        let moved = status["streams"][0]["moved_bytes"].as_u64().unwrap_or(0);
        moved > 0 && status["memory"]["best_effort_bytes"].as_u64().unwrap() > 0
    });
    daemon.signal("TERM");
    let (code, log) = daemon.wait();
    assert_eq!(code, Some(0), "{log}");
    player.kill().unwrap();
    player.wait().unwrap();
}

#[test]
fn a_daemon_that_shall_not_outlive_its_parent_ends_with_its_input() {
    let dir = Scratch::new();
    let daemon = dir.serve(&dir.make_pool(&["a"]));
    assert_eq!(daemon.end_input(), Some(1));
}

#[test]
fn after_a_kill_the_stale_socket_is_no_obstacle() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    dir.serve(&disks).kill();
    assert!(dir.path("s.sock").exists(), "left behind");
    let _daemon = dir.serve(&disks);
    dir.run(&["volume", "list"]).succeeded();
}

/// A copy that was interrupted left a part in the file, and nobody was told how much, or that it is one.
#[test]
fn an_interrupted_export_says_what_the_file_has_and_how_the_rest_comes() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let all = noise(4, 4 << 20).bytes();
    let record = ["record", "v", "--create", "8MiB", "--rate", "8MB/s", "--copy"];
    dir.run_with(&record, &all).succeeded();
    let told = |ran: support::Ran, file: &str| -> u64 {
        let words = format!("interrupted: {file} has the first ");
        assert!(ran.code == Some(1) && ran.out.is_empty(), "{ran:?}");
        assert!(ran.err.contains(&words) && ran.err.contains("--overwrite"), "{ran:?}");
        let rest = ran.err.split_once("--start ").unwrap().1;
        let (start, rest) = rest.split_once(" --length ").unwrap();
        let (start, length): (u64, u64) =
            (start.parse().unwrap(), rest.split_once(' ').unwrap().0.parse().unwrap());
        assert_eq!(start + length, 4 << 20);
        start
    };
    // Under a contract: nobody waits for the end of it.
    let file = dir.text("slow");
    let slow = ["export", "v", &file, "--rate", "100kB/s"];
    let child = dir.command(&slow).spawn().unwrap();
    wait_until(|| std::fs::metadata(&file).is_ok_and(|found| found.len() > 0));
    support::signal(child.id(), "INT");
    let has = told(support::Ran::from(child.wait_with_output().unwrap()), &file);
    let part = std::fs::read(&file).unwrap();
    assert!(part.len() as u64 == has && all.starts_with(&part));

    // As best effort, into a pipe that takes no more until it was interrupted.
    let pipe = dir.text("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let child = dir.command(&["export", "v", &pipe]).spawn().unwrap();
    let mut out = std::fs::File::open(&pipe).unwrap();
    let mut part = vec![0; 1];
    out.read_exact(&mut part).unwrap();
    support::signal(child.id(), "INT");
    out.read_to_end(&mut part).unwrap();
    let has = told(support::Ran::from(child.wait_with_output().unwrap()), &pipe);
    assert!(part.len() as u64 == has && all.starts_with(&part));
}
