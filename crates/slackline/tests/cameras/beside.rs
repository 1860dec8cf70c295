//! What others change beside the supervisor, and what of its file it cannot follow.

use super::{Cameras, counts, write};
use crate::support::{Scratch, wait_until};

/// `stream set` and `volume keep` were nowhere to be seen: the status went on telling what the file
/// says.
#[test]
fn what_others_change_is_told_beside_what_the_file_says() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let terms = "size = '80MiB'\nkeep = '1d'\n";
    let cameras = Cameras::start(&dir, &(counts(&dir, "gate", 4_000_000, "sleep 100") + terms));
    wait_until(|| cameras.durable("gate") > 200_000);
    let before = cameras.seen("gate");
    assert_eq!(before["contract_bytes_per_second"], 6_000_000);
    assert_eq!(before["keep_seconds"], 86_400);
    let note = before["notes"][0].as_str().unwrap();
    assert!(
        note.starts_with("its `keep` is 1 d, and at its `rate` its ring has room for "),
        "{note}"
    );

    let stream = before["stream"].to_string();
    dir.run(&["stream", "set", &stream, "--rate", "5500kB/s"]).succeeded();
    dir.run(&["volume", "keep", "gate", "12h"]).succeeded();
    // Whoever asks then has it, and does not have to wait until it is looked for by itself.
    wait_until(|| cameras.seen("gate")["contract_bytes_per_second"] == 5_500_000);
    wait_until(|| cameras.seen("gate")["keep_seconds"] == 43_200);
    let text = dir.run(&["cameras", &cameras.file, "--status"]).succeeded().text().to_owned();
    for said in [
        "5.50 MB/s",
        "its contract is for 5.50 MB/s, and the file's `rate` is 6 MB/s: somebody else gave it that",
        "its ring keeps 12 h; the file's `keep` is 1 d, and holds from the next start on",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let told = cameras.events("rate");
    assert!(told[0]["detail"].as_str().unwrap().contains("somebody else"), "{told:?}");
    dir.run(&["volume", "keep", "gate", "off"]).succeeded();
    wait_until(|| cameras.seen("gate")["keep_seconds"].is_null());
    let file = cameras.file.clone();
    cameras.end();

    // The next start has the file's age again, and says so.
    let again = Cameras::start_file(&dir, file);
    wait_until(|| again.seen("gate")["keep_seconds"] == 86_400);
    let told = again.events("keep");
    let detail = told[0]["detail"].as_str().unwrap();
    assert!(detail.contains("as long as there is room; it keeps it 1 d now"), "{detail}");
    again.end();
}

/// It was said how much it gave, and that was all: the bytes were lost beside a contract that could
/// have been larger.
#[test]
fn a_camera_that_gives_more_than_its_file_lets_it_ask_for_is_told_the_bound() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let terms = "rate = '500kB/s'\nrate_max = '1MB/s'\nwindow = '300ms'\nsize = '80MiB'\n";
    let cameras = Cameras::start(&dir, &(counts(&dir, "gate", 4_000_000, "sleep 100") + terms));
    wait_until(|| !cameras.events("rate_refused").is_empty());
    let granted = cameras.events("rate");
    let detail = granted[0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("1 MB/s now, not 500 kB/s, the most that the file's `rate_max`"),
        "{detail}"
    );
    let told = &cameras.events("rate_refused")[0];
    assert_eq!(told["rate_max_bytes_per_second"], 1_000_000);
    assert!(told["wish_bytes_per_second"].as_u64() > Some(1_000_000), "{told}");
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains("it has one for 1 MB/s, and the file's `rate_max`"), "{detail}");
    let next = told["next_step"].as_str().unwrap();
    // By its volume: a stream that is opened again has another number.
    let by_hand = "`slackline stream set gate --rate ";
    assert!(next.contains("make `rate_max` in the file") && next.contains(by_hand), "{next}");
    let text = dir.run(&["cameras", &cameras.file, "--status"]).succeeded().text().to_owned();
    assert!(text.contains("`rate_max` lets it ask for a contract of 1 MB/s at the most"), "{text}");
    cameras.end();
}

/// A minute of a camera is less than a ring has to have: it was refused, with the size that would do.
#[test]
fn a_ring_without_a_size_is_as_large_as_its_contract_needs() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let camera = "[[camera]]\nname = 'gate'\nrate = '1MB/s'\nkeep = '20s'\n\
                  command = ['sh', '-c', 'while :; do head -c 16000 /dev/zero; sleep 0.1; done']\n";
    let file = write(&dir, camera);
    let text = std::fs::read_to_string(&file).unwrap().replace("size = '16MiB'\n", "");
    std::fs::write(&file, text).unwrap();
    let checked = dir.run(&["cameras", &file, "--check"]).succeeded().text().to_owned();
    assert!(checked.contains("gate: its ring will be made with "), "{checked}");
    let checked = dir.run(&["cameras", &file, "--check", "--json"]).succeeded().json();
    let cameras = Cameras::start_file(&dir, file);
    wait_until(|| cameras.durable("gate") > 0);
    let seen = cameras.seen("gate");
    let size = seen["size_bytes"].as_u64().unwrap();
    assert_eq!((seen["keep_seconds"].as_u64(), size % (16 << 20)), (Some(20), 0));
    let least = checked["cameras"][0]["ring_least_bytes"].as_u64().unwrap();
    assert!(size > 32 << 20 && size >= least, "{size} of {least} at least");
    let note = seen["notes"][0].as_str().unwrap();
    assert!(note.contains("what `rate` comes to in `keep` is 32 MiB"), "{note}");
    cameras.end();
}

/// An hour was asked for, "all fit" was said, and the ring had room for 100 s.
#[test]
fn a_size_without_room_for_what_is_to_be_kept_is_told() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let camera = "[[camera]]\nname = 'gate'\nrate = '1MB/s'\nkeep = '1h'\nsize = '96MiB'\n\
                  command = ['sh', '-c', 'while :; do head -c 16000 /dev/zero; sleep 0.1; done']\n";
    let file = write(&dir, camera);
    let checked = dir.run(&["cameras", &file, "--check"]).succeeded().text().to_owned();
    let said = "gate: its `keep` is 1 h 0 min, and at its `rate` its `size` has room for ";
    assert!(checked.contains(said), "{checked}");
    // Not all of its size, 100 s: a part is given up ahead of the camera.
    let checked = dir.run(&["cameras", &file, "--check", "--json"]).succeeded().json();
    let kept = checked["cameras"][0]["seconds_kept"].as_u64().unwrap();
    assert!((40..84).contains(&kept), "{kept}");
    let cameras = Cameras::start_file(&dir, file);
    wait_until(|| cameras.durable("gate") > 0);
    let note = cameras.seen("gate")["notes"][0].to_string();
    assert!(note.contains("its ring has room for "), "{note}");
    // It is what the ring holds when it is full: the daemon says what it gives up.
    let ring = dir.run(&["volume", "show", "gate", "--json"]).succeeded().json();
    let ahead = ring["ring"]["ahead_bytes"].as_u64().unwrap();
    assert!((16 << 20..48 << 20).contains(&ahead), "{ahead}");
    wait_until(|| cameras.seen("gate")["seconds_kept"].as_u64() < Some(84));
    cameras.end();
}

/// The supervisor's buffer takes what comes in bursts, and loses nothing: the status told of it as of a
/// camera that loses frames.
#[test]
fn a_camera_in_bursts_is_nothing_to_look_at() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let camera = "[[camera]]\nname = 'gate'\nrate = '1MB/s'\nrate_max = '1MB/s'\nsize = '160MiB'\n\
                  command = ['sh', '-c', 'while :; do head -c 4000000 /dev/zero; sleep 6; done']\n";
    let cameras = Cameras::start(&dir, camera);
    let status = || dir.run(&["status", "--json"]).succeeded().json();
    wait_until(|| status()["status"]["streams"][0]["throttled"].as_u64() > Some(1));
    let status = status();
    assert_eq!(status["status"]["streams"][0]["buffered"], true);
    // (The volume is full soon, and that is told.)
    assert!(!status["findings"].to_string().contains("slowed"), "{status}");
    cameras.end();
}
