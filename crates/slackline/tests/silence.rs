//! Programs that hold a contract and are stopped, hang, or pause.

use crate::support::Scratch;
use client::control::Contract;
use client::units::{Bytes, Duration, Rate};
use client::{Client, Code};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};

/// What a player asks for.
const PLAYER: Contract = Contract {
    rate_bytes_per_second: Rate::per_second(300_000),
    block_bytes: Bytes::kib(64),
    burst_bytes: Bytes::ZERO,
};

fn streams(dir: &Scratch) -> Vec<u64> {
    let all = dir.run(&["stream", "list", "--json"]).succeeded().json();
    let all = all["streams"].as_array().unwrap().clone();
    all.iter().map(|stream| stream["id"].as_u64().unwrap()).collect()
}

/// A camera's program is stopped in the middle of a recording. Its contract is free for others,
/// what it wrote is on the medium, and when it goes on it is told why it cannot.
#[test]
fn a_stopped_program_loses_its_contract_and_nothing_that_it_wrote() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.try_serve(&disks, &["--keep-alive", "5s"]);
    let daemon = daemon.unwrap_or_else(|ran| panic!("{}", ran.err));
    let mut child = dir.command(&["record", "v", "--create", "8MiB", "--rate", "1MB/s"]);
    let mut child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&[7; 600_000]).unwrap();
    let length = || {
        let volume = dir.run(&["volume", "show", "v", "--json"]);
        if volume.code == Some(0) { volume.json()["length_bytes"].as_u64() } else { None }
    };
    // In blocks; what is less than one is in the program's hands.
    while length().unwrap_or(0) < 500_000 {
        input.write_all(&[7; 1_000]).unwrap();
    }
    // At work: a recording whose source is silent says that it pauses.
    input.write_all(&[7; 2_000_000]).unwrap();
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    while !streams(&dir).is_empty() {}
    let there = length().unwrap();
    assert!(there >= 500_000, "{there}");
    // Another program has the whole of what it had.
    kill_process(pid, Signal::CONT).unwrap();
    while input.write_all(&[8; 100_000]).is_ok() {}
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("silent for 5 s") && said.contains("open a new stream"), "{said}");
    daemon.kill();
    let _daemon = dir.serve(&disks);
    assert!(length().unwrap() >= there, "what was written is still there");
}

/// Two players show a film. Both stand still; one has said that it pauses.
#[test]
fn who_says_that_it_pauses_keeps_its_contract_and_who_does_not_is_told_why_it_has_none() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.try_serve(&disks, &["--keep-alive", "5s"]);
    let _daemon = daemon.unwrap_or_else(|ran| panic!("{}", ran.err));
    dir.run_with(
        &["record", "v", "--create", "8MiB", "--rate", "1MB/s", "--copy"],
        &[3; 2_000_000],
    )
    .succeeded();
    let client = Client::at(dir.path("s.sock"));
    let open = || client.reader("v", PLAYER, Bytes::ZERO).unwrap();
    let (mut paused, mut silent) = (open(), open());
    let mut buf = vec![0; 1_000];
    for reader in [&mut paused, &mut silent] {
        reader.read_exact(&mut buf).unwrap();
    }
    paused.pause(Duration::from_secs(3_600)).unwrap();
    while streams(&dir).contains(&silent.stream()) {}
    assert_eq!(streams(&dir), [paused.stream()]);
    let error = loop {
        // What is in the window can still be read.
        match silent.next_piece(&mut buf) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Some(Code::Silent), "{error}");
    assert!(error.next_step().contains("pause"), "{}", error.next_step());
    // Some blocks, so that the daemon is told that the window moves.
    for _ in 0..300 {
        paused.read_exact(&mut buf).unwrap();
        assert_eq!(buf, [3; 1_000]);
    }
    // The pause is over: silent again, it goes the same way.
    while !streams(&dir).is_empty() {}
}

/// A player whose output nobody takes, one that is stopped with ctrl-Z, and a recording whose source
/// brings nothing keep their contracts; a program that says nothing loses its own meanwhile.
#[test]
fn the_commands_say_that_they_pause_where_they_wait_for_somebody_else() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.try_serve(&disks, &["--keep-alive", "5s"]);
    let _daemon = daemon.unwrap_or_else(|ran| panic!("{}", ran.err));
    let film: Vec<u8> = (0..400_000u32).map(|at| (at / 1_000) as u8).collect();
    dir.run_with(&["record", "v", "--create", "8MiB", "--rate", "1MB/s"], &film).recorded();
    let contract = ["--rate", "50kB/s", "--block", "64KiB"];
    let piped = std::process::Stdio::piped;
    let copy = dir.text("copy");
    let mut unread = dir.command(&[&["play", "v"][..], &contract].concat());
    let mut unread = unread.stdout(piped()).stderr(piped()).spawn().unwrap();
    let mut stopped = dir.command(&[&["play", "v", &copy][..], &contract].concat());
    let mut stopped = stopped.stdout(piped()).spawn().unwrap();
    let mut waiting = dir.command(&[&["record", "w", "--create", "8MiB"][..], &contract].concat());
    let mut waiting = waiting.stdin(piped()).stdout(piped()).spawn().unwrap();
    let mut source = waiting.stdin.take().unwrap();
    source.write_all(&[7; 70_000]).unwrap();
    // All have begun: the pipe of the first is full with a block.
    let moved = |volume: &str| {
        let all = dir.run(&["stream", "list", "--json"]).succeeded().json();
        let all = all["streams"].as_array().unwrap().clone();
        let of = all.iter().filter(|stream| stream["volume"] == volume);
        of.filter(|stream| stream["position_bytes"].as_u64() >= Some(1 << 16)).count()
    };
    while moved("v") < 2 || moved("w") < 1 {}
    let pid = Pid::from_raw(stopped.id() as i32).unwrap();
    kill_process(pid, Signal::TSTP).unwrap();
    let client = Client::at(dir.path("s.sock"));
    let mut silent = client.reader("v", PLAYER, Bytes::ZERO).unwrap();
    silent.read_exact(&mut [0; 1_000]).unwrap();
    while streams(&dir).contains(&silent.stream()) {}
    assert_eq!(streams(&dir).len(), 3);

    kill_process(pid, Signal::CONT).unwrap();
    let mut taken = Vec::new();
    unread.stdout.take().unwrap().read_to_end(&mut taken).unwrap();
    assert!(taken == film && unread.wait().unwrap().success());
    assert!(stopped.wait().unwrap().success() && std::fs::read(&copy).unwrap() == film);
    source.write_all(&[8; 70_000]).unwrap();
    drop(source);
    assert!(waiting.wait().unwrap().success());
}

/// A jump tells how soon its bytes are there, and from when on the contract holds in full.
#[test]
fn a_jump_tells_how_soon_its_bytes_are_there_and_when_the_contract_holds_in_full() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let _daemon = dir.serve(&disks);
    dir.run_with(
        &["record", "v", "--create", "8MiB", "--rate", "1MB/s", "--copy"],
        &[3; 4_000_000],
    )
    .succeeded();
    let client = Client::at(dir.path("s.sock"));
    let mut reader = client.reader("v", PLAYER, Bytes::ZERO).unwrap();
    let mut buf = vec![0; 1_000];
    reader.read_exact(&mut buf).unwrap();
    let sought = reader.seek(Bytes::mib(3)).unwrap();
    // Docs: of an empty window on one disk it is when the first block is there and a block's
    // time later, at the most.
    assert!(sought.ready > Duration::ZERO && sought.steady >= sought.ready, "{sought:?}");
    assert!(sought.steady < Duration::from_secs(60), "{sought:?}");
}

/// A program that waits for the answer to a long sync is not silent meanwhile: it goes on
/// writing afterwards. The disk needs longer for what is in the window than a program may be
/// silent for.
#[test]
fn who_waits_for_a_long_answer_is_not_silent() {
    let dir = Scratch::new();
    let disk = dir.disk("a");
    dir.run(&["pool", "create", "test", &disk, "--size", "256MiB"]).succeeded();
    let how = ["--commit-interval", "1s", "--keep-alive", "2s"];
    let daemon = dir.try_serve(&[disk], &how);
    let _daemon = daemon.unwrap_or_else(|ran| panic!("{}", ran.err));
    dir.run(&["volume", "create", "v", "--size", "80MiB"]).succeeded();
    let contract = Contract {
        rate_bytes_per_second: Rate::per_second(1_000_000),
        block_bytes: Bytes::MIB,
        burst_bytes: Bytes::mib(56),
    };
    let client = Client::at(dir.path("s.sock"));
    let mut writer = client.writer("v", contract, Bytes::ZERO).unwrap();
    assert!(writer.is_shared());
    writer.write_all(&vec![5; 55 << 20]).unwrap();
    assert_eq!(writer.sync().unwrap(), Bytes::mib(55));
    // A fraction of what it may be silent for, counted from the answer.
    std::thread::sleep(std::time::Duration::from_millis(200));
    writer.write_all(&[6; 4_096]).unwrap();
    assert_eq!(writer.sync().unwrap(), Bytes::mib(55) + Bytes::kib(4));
}
