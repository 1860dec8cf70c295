//! What the command let pass, or told otherwise than it is, so that somebody who believed it lost
//! time or bytes.

use crate::support::{Scratch, noise};
use std::io::Write;
use std::process::Stdio;

/// A camera that gave four times its contract was taken for a copy that waits: its bytes were lost, the
/// command ended with 0, and the status was sound.
#[test]
fn a_camera_far_above_its_contract_is_told_and_what_waits_is_not() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let bytes = noise(3, 12_000_000).bytes();
    let record = |volume: &str, more: &[&str]| {
        // Writers of thin volumes that are written together are held to their rate, and ahead of it by a
        // window of four blocks at the most.
        let contract = ["record", volume, "--create", "60MiB", "--thin", "--rate", "1MB/s"];
        dir.run_with(&[&contract[..], more].concat(), &bytes)
    };
    let file = dir.text("film");
    std::fs::write(&file, &bytes).unwrap();
    let (slowed, copied, from_file) = std::thread::scope(|threads| {
        let slowed = threads.spawn(|| record("v", &[]));
        // The first one begins a group. Whoever comes when that would put off its next request is in none, and
        // is not held to its rate while the disk has time.
        let streams =
            || dir.run(&["status", "--json"]).succeeded().json()["status"]["streams"].clone();
        while !slowed.is_finished() && streams().as_array().is_none_or(Vec::is_empty) {}
        let copied = threads.spawn(|| record("w", &["--copy"]));
        let from_file = threads.spawn(|| record("x", &[&file]));
        (slowed.join().unwrap(), copied.join().unwrap(), from_file.join().unwrap())
    });
    slowed.failed(4, &["may have lost", "what it gave is recorded", "a larger --burst", "--copy"]);
    assert!(slowed.text().contains("11.4 MiB durable"), "{}", slowed.text());
    for waits in [copied, from_file] {
        assert!(!waits.succeeded().err.contains("slowed"));
    }
    let played = dir.run(&["play", "v", "--rate", "20MB/s"]).succeeded();
    assert!(played.out == bytes);
}

/// While it records, the status tells of the source that is slowed, and not of a copy.
#[test]
fn a_source_that_is_slowed_is_a_finding_within_seconds() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let begin = |volume: &str, more: &[&str]| {
        let contract = ["record", volume, "--create", "60MiB", "--thin", "--rate", "300kB/s"];
        let contract = [&contract[..], &["--block", "64KiB"]].concat();
        let mut command = dir.command(&[&contract[..], more].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // It ends when its reader is killed.
        std::thread::spawn(move || while input.write_all(&[7; 10_000]).is_ok() {});
        child
    };
    let (mut camera, mut copy) = (begin("camera", &[]), begin("copy", &["--copy"]));
    let status = loop {
        let status = dir.run(&["status", "--json"]).succeeded().json();
        let found = status["findings"].to_string();
        assert!(
            camera.try_wait().unwrap().is_none(),
            "it ended before anything was told: {status}"
        );
        if found.contains("/slowed") {
            break found;
        }
    };
    assert!(status.contains("camera: its program was slowed"), "{status}");
    assert!(!status.contains("copy: its program was slowed"), "{status}");
    for child in [&mut camera, &mut copy] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// A unit that restarts on failure tried for ever what the settings themselves rule out.
#[test]
fn settings_with_which_the_daemon_never_starts_end_with_2() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let text = dir.text("text");
    std::fs::write(&text, "no certificate").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["--listen", "0.0.0.0:8443", "--plain-tcp"], "can be reached from other machines"),
        (&["--listen", "8443"], "--listen 8443"),
        (&["--listen", "localhost:99999"], "--listen localhost:99999"),
        (&["--listen", "127.0.0.1:0", "--tls-cert", &text, "--tls-key", &text], "text: "),
        (&["--plain-tcp"], "plain_tcp"),
        (&["--host-latency", "2min"], "host latency"),
    ];
    for (flags, words) in cases {
        let Err(ran) = dir.try_serve(&disks, flags) else { panic!("{flags:?} is served") };
        ran.failed(2, &[words]);
    }
    let much = ["serve", "--memory", "900TiB", &disks[0]];
    dir.run(&much).failed(2, &["no 900 TiB of memory"]);
    // What may be otherwise at the next try is no matter of the settings.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let Err(ran) = dir.try_serve(&disks, &["--listen", &address]) else { panic!("served twice") };
    ran.failed(1, &[&address]);
    let missing = dir.text("missing.pem");
    let flags = ["--listen", "127.0.0.1:0", "--tls-cert", &missing, "--tls-key", &missing];
    let Err(ran) = dir.try_serve(&disks, &flags) else { panic!("served without a key") };
    ran.failed(1, &["missing.pem"]);
}

/// A command for events that is not there was told at the first event, if at all.
#[test]
fn a_command_for_events_that_cannot_be_run_is_told_at_the_start() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let missing = dir.text("nosuch");
    let _daemon = dir.try_serve(&disks, &["--event-hook", &missing]).unwrap();
    let status = dir.run(&["status"]).succeeded();
    assert!(status.text().contains("nosuch, is no program that can be run"), "{}", status.text());
}

/// What a thin volume has was told as its limit.
#[test]
fn a_thin_volume_is_shown_with_what_it_has() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    dir.run(&["volume", "create", "v", "--size", "1GiB", "--thin"]).succeeded();
    let shown = || dir.run(&["volume", "show", "v"]).succeeded().text().to_owned();
    assert!(shown().contains("0 extents on disk 0"), "{}", shown());
    let bytes = vec![1; 2_500_000];
    let record = ["record", "v", "--rate", "1MB/s", "--copy"];
    dir.run_with(&record, &bytes).succeeded();
    let json = dir.run(&["volume", "show", "v", "--json"]).succeeded().json();
    let taken = json["taken_bytes"].as_u64().unwrap() >> 20;
    assert_eq!(json["extents"], serde_json::json!([taken]), "{json}");
    // A limit that the pool has no metadata for is refused with one for which it has.
    let create = |size: &str| dir.run(&["volume", "create", "w", "--size", size, "--thin"]);
    let refused = create("1TiB");
    refused.failed(1, &["extent maps", "ask for ", " at the most"]);
    let most = refused.err.split("ask for ").nth(1).unwrap().split(" at the").next().unwrap();
    create(&most.replace(' ', "")).succeeded();
}

/// Slips of the hand that were let pass, or answered with advice that cannot be followed.
#[test]
fn what_was_meant_is_said_where_a_value_cannot_be_meant() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let text = dir.text("text");
    std::fs::write(&text, "no profile").unwrap();
    let (a, new) = (disks[0].as_str(), dir.text("new"));
    let around = dir.path(".").join("a").display().to_string();
    dir.run(&["serve", a, &around]).failed(2, &["is named twice", "name each disk once"]);
    dir.run(&["pool", "create", "p", &new, &new, "--size", "64MiB"]).failed(2, &["named twice"]);
    dir.run(&["pool", "create", "p", &new, "--size", "0"]).failed(2, &["--size 0 is no size"]);
    let measure = ["pool", "create", "p", &new, "--size", "64MiB", "--measure"];
    for time in ["0s", "2h"] {
        dir.run(&[&measure[..], &[time]].concat()).failed(2, &["no time to measure", "1h"]);
    }
    assert!(!dir.path("new").exists());
    let plan = ["plan", "--model", "laptop-4200", "--rate", "1MB/s"];
    let plan = |more: &[&str]| dir.run(&[&plan[..], more].concat());
    plan(&["--block", "3MiB"]).failed(2, &["a block of 3 MiB", "4KiB to 32MiB"]);
    plan(&["--count", "0"]).failed(2, &["a count of 0"]);
    let below = dir.run(&["volume", "create", "v", "--size", "-1GiB"]);
    assert_eq!(below.code, Some(2));
    assert!(below.err.contains("nothing here is below zero"), "{}", below.err);
    assert!(!below.err.contains("'-- -1'"), "{}", below.err);

    let _daemon = dir.serve(&disks);
    dir.run(&["pool", "profile", "--set", &text]).failed(2, &["slackline disk profile -o"]);
    dir.run(&["volume", "create", ".", "--size", "1MiB"]).failed(1, &["no part . or .."]);
    let keep = dir.run(&["volume", "keep", "gate", "0"]);
    assert_eq!(keep.code, Some(2));
    assert!(keep.err.contains("say off"), "{}", keep.err);
    dir.run(&["token", "make", "--for", "0s"]).failed(2, &["good for no time", "--for-ever"]);
    dir.run(&["token", "make", "-o", &text]).failed(1, &["remove what is there first"]);
    let set = dir.run(&["volume", "set", "v", "--every", "1s", "--priority", "normal"]);
    assert_eq!(set.code, Some(2));
    assert!(set.err.contains("--every"), "{}", set.err);
    // A directory as the input left an empty volume behind.
    let directory = dir.text(".");
    let record = ["record", "v", &directory, "--create", "4MiB", "--rate", "1MB/s"];
    dir.run(&record).failed(1, &["is a directory"]);
    assert_eq!(dir.run(&["volume", "list", "--json"]).json()["volumes"], serde_json::json!([]));
    dir.run(&["pool", "check", a]).failed(1, &["slackline pool check"]);
}

/// The README's "the last ten minutes" of a recording that is younger was told to be none, without a
/// word of when it begins.
#[test]
fn a_part_that_ends_before_the_recording_begins_is_told_so() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let (film, out) = (dir.text("film"), dir.text("out"));
    std::fs::write(&film, noise(1, 300_000).bytes()).unwrap();
    dir.run(&["record", "v", &film, "--create", "4MiB", "--rate", "1MB/s"]).succeeded();
    for part in [
        &["export", "v", "--from", "10m ago", "--for", "5m", &out][..],
        &["volume", "copy", "v", "w", "--from", "10m ago", "--for", "5m"],
    ] {
        dir.run(part).failed(1, &["the part asked for, ", "ends before the recording begins at "]);
    }
}
