//! Before anything is recorded: no daemon yet, and a contract that is refused.

use super::{Cameras, LINE, breaks, counts, numbers};
use crate::support::{Scratch, noise, wait_until};

/// It was said that the bytes wait, and no command ran that could have given any.
#[test]
fn what_comes_before_the_daemon_is_there_waits_for_it() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let cameras = Cameras::start(&dir, &counts(&dir, "gate", 4_000_000, "sleep 100"));
    wait_until(|| cameras.seen("gate")["given_bytes"].as_u64() > Some(300_000));
    let seen = cameras.seen("gate");
    assert_eq!((&seen["state"], &seen["starts"]), (&"no daemon".into(), &1.into()));
    assert_eq!(cameras.events("no_daemon").len(), 1);
    let given = seen["given_bytes"].as_u64().unwrap();
    let _daemon = dir.serve(&disks);
    wait_until(|| cameras.durable("gate") > given + 500_000);
    assert_eq!(cameras.seen("gate")["lost_bytes"], 0);
    assert!(cameras.end().is_empty(), "nothing was lost");
    let numbers = numbers(&dir, "gate");
    assert_eq!((breaks(&numbers), numbers[0]), (vec![], 0), "from its first byte on");
    assert!(numbers.len() as u64 * LINE > given + 500_000);
}

/// For this a ring of 32 MiB is too small.
const FAST: &str = "rate = '12MB/s'\nrate_max = '12MB/s'\nblock = '1MiB'\nring = true\n";

/// The ring that was made for the refused contract stayed, and the corrected file failed because of it.
#[test]
fn a_camera_that_is_refused_leaves_no_volume_and_the_corrected_file_works() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let gate = |size: &str| counts(&dir, "gate", 4_000_000, "sleep 100") + FAST + size;
    let cameras = Cameras::start(&dir, &gate("size = '32MiB'\n"));
    wait_until(|| cameras.seen("gate")["state"] == "failed");
    let why = cameras.seen("gate")["why"].to_string();
    assert!(why.contains("a ring of 32 MiB is too small"), "{why}");
    assert!(cameras.end().is_empty());
    dir.run(&["volume", "show", "gate"]).failed(1, &["there is no volume"]);
    // One that is full of nothing, and of which this does not know who made it: how to be rid of it.
    dir.run(&["volume", "create", "gate", "--size", "32MiB", "--ring"]).succeeded();
    let cameras = Cameras::start(&dir, &gate("size = '160MiB'\n"));
    wait_until(|| !cameras.events("failed").is_empty());
    let next = cameras.events("failed")[0]["next_step"].to_string();
    assert!(next.contains("`slackline volume delete gate` has it made anew"), "{next}");
    let checked = dir.run(&["cameras", &cameras.file, "--check"]);
    checked.failed(3, &["nothing is recorded in it: `slackline volume delete gate`"]);
    // Beside the supervisor, which asks again by itself.
    dir.run(&["volume", "delete", "gate", "--yes"]).succeeded();
    wait_until(|| cameras.durable("gate") > 1_000_000);
    assert_eq!(cameras.seen("gate")["size_bytes"], 160 << 20);
    cameras.end();
}

/// What is recorded stays, whatever the file asks for.
#[test]
fn a_ring_that_has_something_outlives_a_contract_that_it_is_too_small_for() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let bytes = noise(5, 100_000).bytes();
    let record = ["record", "gate", "--create", "48MiB", "--ring", "--rate", "100kB/s"];
    dir.run_with(&[&record[..], &["--block", "64KiB"]].concat(), &bytes).recorded();
    let cameras = Cameras::start(&dir, &(counts(&dir, "gate", 4_000_000, "sleep 100") + FAST));
    wait_until(|| !cameras.events("failed").is_empty());
    let next = cameras.events("failed")[0]["next_step"].to_string();
    assert!(next.contains("record to a ring of") && !next.contains("delete"), "{next}");
    cameras.end();
    assert!(dir.run(&["export", "gate", "-"]).succeeded().out == bytes);
}
