//! `kill -9` at random moments of real recording: whatever the daemon said is
//! durable is there after the next start, and plays back the same.
//!
//! SLACKLINE_KILLS sets the number of rounds. Each round goes on with the pool of
//! the one before. When to kill is drawn anew in every run; nothing here depends
//! on how fast the machine is.

use crate::support;
use crate::support::{Scratch, begins, give, noise, wait_until};
use std::fs::File;
use std::io::Read;
use std::process::Child;
use std::time::Duration;

/// Writers that record at once.
const WRITERS: usize = 2;
/// More than is recorded before any kill.
const INPUT: u64 = 40 << 20;

struct Recording {
    volume: String,
    seed: u64,
    acks: String,
    child: Child,
}

fn drawn(below: u64) -> u64 {
    let mut bytes = [0; 8];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    u64::from_le_bytes(bytes) % below
}

fn record(dir: &Scratch, round: u64, writer: usize) -> Recording {
    let volume = format!("v{writer}");
    let acks = dir.text(&format!("acks-{round}-{writer}"));
    let args = [
        "record",
        &volume,
        "--create",
        "48MiB",
        "--overwrite",
        "--rate",
        "12MB/s",
        "--ack-file",
        &acks,
    ];
    let mut child = dir.command(&args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let seed = round * 10 + writer as u64;
    std::thread::spawn(move || {
        // Ends with an error when the recording ends, which it does by the kill.
        give(noise(seed, INPUT), &mut stdin);
    });
    Recording { volume, seed, acks, child }
}

/// The last offset that was told whole.
fn last_acknowledged(acks: &str) -> u64 {
    let text = std::fs::read_to_string(acks).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().last().map_or(0, |line| line.parse().unwrap())
}

#[test]
fn whatever_was_acknowledged_survives_kill_9() {
    let rounds = std::env::var("SLACKLINE_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let (mut total, mut silent) = (0, 0);
    for round in 1..=rounds {
        let daemon = dir.serve(&disks);
        let recordings: Vec<_> = (0..WRITERS).map(|writer| record(&dir, round, writer)).collect();
        // From before the first commit to some commits later; but some round has to
        // compare something.
        let commits = if round == rounds { 1 + drawn(3) } else { drawn(4) } as usize;
        wait_until(|| support::acknowledged(&recordings[0].acks) >= commits);
        std::thread::sleep(Duration::from_micros(drawn(150_000)));
        daemon.kill();
        let recordings: Vec<_> = recordings
            .into_iter()
            .map(|mut recording| {
                let status = recording.child.wait().unwrap();
                assert_ne!(status.code(), Some(0), "its daemon was killed");
                let (mut said, mut stderr) =
                    (String::new(), recording.child.stderr.take().unwrap());
                stderr.read_to_string(&mut said).unwrap();
                // With ten of them on a terminal each says it once, and in the same words.
                if last_acknowledged(&recording.acks) > 0 {
                    let gone = "slackline: the daemon has closed the connection; ";
                    assert!(said.starts_with(gone) && said.lines().count() == 1, "{said}");
                }
                recording
            })
            .collect();
        let daemon = dir.serve(&disks);
        for Recording { volume, seed, acks, .. } in recordings {
            let durable = last_acknowledged(&acks);
            if durable == 0 {
                silent += 1;
                continue; // killed before the first commit, or before the volume was there
            }
            total += durable;
            let length = durable.to_string();
            let play = ["play", &volume, "--rate", "20MB/s", "--length", &length];
            let back = dir.run(&play).succeeded().out;
            assert_eq!(back.len() as u64, durable, "round {round}: bytes are missing");
            assert!(begins(seed, &back), "round {round}: other bytes than were acknowledged");
        }
        daemon.kill();
    }
    let checked = dir.run(&["pool", "check", &disks[0], &disks[1]]).succeeded();
    assert!(checked.text().contains("pool test: sound"), "{}", checked.text());
    eprintln!("{rounds} kills, {total} acknowledged bytes compared, {silent} before the first");
    assert!(total > 0, "no round acknowledged anything");
}

/// It was told that the daemon has gone, and not how much it had made durable.
#[test]
fn a_recording_whose_daemon_dies_says_what_is_on_the_medium() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    for json in [&["--json"][..], &[]] {
        let daemon = dir.serve(&disks);
        let acks = dir.text("acks");
        let args = ["record", "v", "--create", "48MiB", "--overwrite", "--rate", "12MB/s"];
        let args = [&args[..], &["--ack-file", &acks], json].concat();
        let mut child = dir.command(&args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::spawn(move || give(noise(3, INPUT), &mut stdin));
        wait_until(|| support::acknowledged(&acks) >= 2);
        daemon.kill();
        let ran = support::Ran::from(child.wait_with_output().unwrap());
        let durable = last_acknowledged(&acks);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.contains("the daemon has closed the connection"), "{}", ran.err);
        if json.is_empty() {
            let told = format!(" accepted, {} durable", units::Bytes::new(durable));
            assert!(ran.text().starts_with("recorded ") && ran.text().contains(&told), "{ran:?}");
        } else {
            let summary = ran.json();
            let bytes = |key: &str| summary[key].as_u64().unwrap();
            assert_eq!(bytes("durable_bytes"), durable, "{summary}");
            assert!(bytes("accepted_bytes") >= durable && bytes("bytes") >= durable, "{summary}");
            assert!(summary["requests"].is_null(), "nobody could be asked: {summary}");
        }
        std::fs::remove_file(&acks).unwrap();
    }
}

/// As of any file: a sync is of the volume, not of what one handle has written.
#[test]
fn who_syncs_makes_durable_what_another_handle_has_written() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    let open = || {
        let mut options = client::File::options();
        options.socket(dir.path("s.sock")).read(true).write(true).create(units::Bytes::MIB);
        options.open("v").unwrap()
    };
    let (mut writes, mut syncs) = (open(), open());
    let bytes = noise(7, 9_000).bytes();
    writes.write_at(units::Bytes::ZERO, &bytes).unwrap();
    syncs.sync().unwrap();
    daemon.kill();
    drop((writes, syncs));
    let _daemon = dir.serve(&disks);
    assert!(dir.run(&["export", "v", "-"]).succeeded().out == bytes);
}
