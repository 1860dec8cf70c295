//! Sources that fill the blocks of their recordings slowly: when their bytes came, when they are on
//! the medium, and what is heard of the daemon meanwhile.

use crate::support::{Ran, Scratch, wait_until};
use client::Client;
use client::control::Contract;
use client::units::{Bytes, Rate};
use std::io::Write;
use std::time::SystemTime;

/// More than comes before anything else happens.
const BLOCK: Bytes = Bytes::MIB;

fn contract() -> Contract {
    let rate = Rate::per_second(8_000_000);
    Contract { rate_bytes_per_second: rate, block_bytes: BLOCK, burst_bytes: BLOCK }
}

/// Bytes that came 21 s before their block was full were told to have come with its last byte: nothing of a
/// recording was found by its time.
#[test]
fn bytes_of_a_block_have_come_when_they_came_and_not_when_it_is_full() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    dir.run(&["volume", "create", "v", "--size", "32MiB"]).succeeded();
    let client = Client::at(dir.path("s.sock"));
    let mut writer = client.writer("v", contract(), Bytes::ZERO).unwrap();
    assert!(writer.is_shared());
    writer.write_all(&[7; 100_000]).unwrap();
    // Nobody rings for less than a block.
    let position = || client.stream(writer.stream()).unwrap().position_bytes;
    wait_until(|| position().get() == 100_000);
    let noticed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    // So long that what comes behind it is another time to the volume.
    std::thread::sleep(std::time::Duration::from_secs(3));
    writer.write_all(&vec![8; BLOCK.as_usize() - 100_000]).unwrap();
    writer.close().unwrap();
    let recorded = client.volume("v").unwrap().recorded.unwrap();
    assert!(u128::try_from(recorded.begins_ns).unwrap() <= noticed, "{recorded:?}, {noticed}");
}

/// At 200 kB/s in such blocks nothing was on the medium for 21 s.
#[test]
fn what_fills_no_block_is_durable_after_a_while_all_the_same() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let acks = dir.text("acks");
    let args = ["record", "v", "--create", "32MiB", "--rate", "8MB/s", "--block", "1MiB"];
    let mut child = dir.command(&[&args[..], &["--ack-file", &acks]].concat()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let told = |upto: &str| {
        wait_until(|| std::fs::read_to_string(&acks).unwrap_or_default().ends_with(upto));
    };
    input.write_all(&[7; 100_000]).unwrap();
    told("100000\n");
    // Once more, behind a sync that nobody waited for.
    input.write_all(&[8; 1_000]).unwrap();
    told("101000\n");
    drop(input);
    Ran::from(child.wait_with_output().unwrap()).succeeded();
    let back = dir.run(&["export", "v", "-"]).succeeded().out;
    assert!(back == [vec![7; 100_000], vec![8; 1_000]].concat());
}

/// A recording took bytes for a minute for a daemon that had been killed. Here its source is silent, so
/// that it would have waited for ever.
#[test]
fn a_recording_ends_when_its_daemon_does_and_says_how_it_goes_on() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    let acks = dir.text("acks");
    let args = ["record", "a b", "--create", "32MiB", "--rate", "8MB/s", "--block", "1MiB"];
    let mut child = dir.command(&[&args[..], &["--ack-file", &acks]].concat()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&vec![7; 3 << 20]).unwrap();
    let last = format!("{}\n", 3 << 20);
    wait_until(|| std::fs::read_to_string(&acks).unwrap_or_default().ends_with(&last));
    daemon.kill();
    wait_until(|| child.try_wait().unwrap().is_some());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for told in [
        "the daemon has closed the connection; 3 MiB of this recording are durable;",
        "`slackline record 'a b' --append`",
        "slackline cameras",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    drop(input);
    let _daemon = dir.serve(&disks);
    dir.run_with(&["record", "a b", "--append", "--rate", "8MB/s"], &[9; 10]).recorded();
    assert_eq!(dir.run(&["export", "a b", "-"]).succeeded().out.len(), (3 << 20) + 10);
}
