//! Files that are no pool, or no longer one: each gives a message that names the
//! thing and the next step, and no panic. Also: whatever a device holds is not
//! destroyed by a slip of the hand.

use crate::support::{Ran, Scratch, damage, noise};
use std::fs::File;
use std::path::Path;

/// Both ways to meet a bad pool, with what each must say.
fn refused(dir: &Scratch, disks: &[String], words: &[&str]) {
    let Err(served) = dir.try_serve(disks, &[]) else { panic!("it serves {disks:?}") };
    served.failed(1, words);
    let checked = check(dir, disks);
    assert_eq!(checked.code, Some(1), "{}", checked.text());
    for word in words {
        assert!(checked.text().contains(word), "\"{word}\" is not in: {}", checked.text());
    }
}

fn check(dir: &Scratch, disks: &[String]) -> Ran {
    let mut args = vec!["pool", "check"];
    args.extend(disks.iter().map(String::as_str));
    dir.run(&args)
}

#[test]
fn a_file_that_is_no_pool_is_named() {
    let dir = Scratch::new();
    let file = dir.text("letters");
    std::fs::write(&file, noise(1, 16 << 20).bytes()).unwrap();
    refused(&dir, std::slice::from_ref(&file), &[&file, "carries no pool"]);
    let empty = dir.text("empty");
    File::create(&empty).unwrap();
    let told = [&*empty, "is empty, and carries no pool", "somebody has cut it: restore it"];
    refused(&dir, std::slice::from_ref(&empty), &told);
    let Err(ran) = dir.try_serve(&[dir.text("nowhere")], &[]) else { panic!("it serves nothing") };
    ran.failed(1, &[&dir.text("nowhere"), "No such file"]);
    let Err(ran) = dir.try_serve(&["/dev/null".into()], &[]) else { panic!("it serves a hole") };
    ran.failed(1, &["/dev/null"]);
    let Err(ran) = dir.try_serve(&["emulated:vinyl:x".into()], &[]) else { panic!("no such") };
    ran.failed(1, &["vinyl"]);
}

#[test]
fn a_pool_that_is_cut_short_is_named_with_both_sizes() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    File::options().write(true).open(&disks[0]).unwrap().set_len(200 << 20).unwrap();
    refused(&dir, &disks, &[&disks[0], "cut short", "209715200", "268435456"]);
    // Cut within the metadata.
    File::options().write(true).open(&disks[0]).unwrap().set_len(1 << 20).unwrap();
    refused(&dir, &disks, &[&disks[0]]);
}

/// Of a disk that somebody had cut to nothing the advice was to make a new pool on it; one whose beginning
/// was gone was called an older copy.
#[test]
fn a_disk_that_somebody_has_written_over_is_told_as_that() {
    let dir = Scratch::new();
    let disks = dir.make_pool_of(&["a", "b"], "64MiB");
    let daemon = dir.serve(&disks);
    dir.run_with(&["record", "v", "--create", "8MiB", "--rate", "4MB/s"], b"kept").recorded();
    drop(daemon);
    let whole = std::fs::read(&disks[1]).unwrap();
    let file = File::options().write(true).open(&disks[1]).unwrap();
    file.set_len(0).unwrap();
    let lacks = [
        &*disks[1],
        "is empty",
        "pool 'test' of the others lacks a disk",
        "restore it from a copy",
    ];
    refused(&dir, &disks, &lacks);
    std::fs::write(&disks[1], &whole).unwrap();
    let mut gone = whole.clone();
    let last_label = gone.len() - (64 << 10);
    gone[..last_label].fill(0);
    std::fs::write(&disks[1], &gone).unwrap();
    let erased = [&*disks[1], "nothing else of the pool's metadata", "nobody knows of which time"];
    refused(&dir, &disks, &erased);
    // As it was: it opens, and has everything.
    std::fs::write(&disks[1], &whole).unwrap();
    let _daemon = dir.serve(&disks);
    assert!(dir.run(&["export", "v", "-"]).succeeded().out == b"kept");
}

#[test]
fn a_missing_disk_of_two_is_asked_for() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    refused(&dir, &disks[1..], &["test", "disk 0", "2 disks"]);
    refused(&dir, &disks[..1], &["test", "disk 1", "2 disks"]);
    let twice = [disks[0].clone(), disks[0].clone()];
    let Err(ran) = dir.try_serve(&twice, &[]) else { panic!("one disk is not two") };
    ran.failed(2, &[&disks[0], "is named twice"]);
}

#[test]
fn a_disk_of_another_pool_is_named() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let other = dir.make_pool(&["c"]);
    refused(&dir, &[disks[0].clone(), other[0].clone()], &["test"]);
}

#[test]
fn a_second_daemon_on_one_pool_or_on_one_socket_is_refused() {
    let dir = Scratch::new();
    let (disks, more) = (dir.make_pool(&["a"]), dir.make_pool(&["b"]));
    let _daemon = dir.serve(&disks);
    let elsewhere = dir.text("other.sock");
    let Err(ran) = dir.try_serve(&disks, &["--socket", &elsewhere]) else { panic!("two daemons") };
    ran.failed(1, &[&disks[0], "in use"]);
    let Err(ran) = dir.try_serve(&more, &[]) else { panic!("two daemons") };
    ran.failed(1, &["another daemon serves", "s.sock", "--socket"]);
    let checked = check(&dir, &disks);
    checked.failed(1, &[&disks[0], "in use"]);
    dir.run(&["volume", "list"]).succeeded(); // the first one is not disturbed
}

/// Every byte of the metadata in turn would take hours; the store's own tests do
/// that in memory. Here: places all over it, through the whole command.
#[test]
fn a_flipped_bit_in_the_metadata_is_mended_or_named_and_loses_nothing() {
    let dir = Scratch::new();
    let disks = dir.make_pool_of(&["a"], "32MiB");
    let bytes = noise(1, 3_000_000).bytes();
    let daemon = dir.serve(&disks);
    dir.run_with(&["record", "v", "--create", "8MiB", "--rate", "20MB/s"], &bytes).recorded();
    daemon.signal("TERM");
    assert_eq!(daemon.wait().0, Some(0));
    assert_eq!(check(&dir, &disks).succeeded().text(), "pool test: sound; 1 volume\n");
    let whole = std::fs::read(&disks[0]).unwrap();
    let metadata = used_metadata(&whole, &bytes);
    let step = metadata.len() / 16 + 1;
    let (mut mended, mut named) = (0, 0);
    for &offset in metadata.iter().step_by(step) {
        damage(Path::new(&disks[0]), offset, |byte| byte[0] ^= 0x10);
        let checked = check(&dir, &disks);
        assert_ne!(checked.text(), "pool test: sound; 1 volume\n", "byte {offset} is not noticed");
        assert!(checked.text().contains(&disks[0]), "{}", checked.text());
        match dir.try_serve(&disks, &[]) {
            Ok(daemon) => {
                mended += 1;
                assert_eq!(checked.code, Some(0), "{}", checked.text());
                let back = dir.run(&["play", "v", "--rate", "20MB/s"]).succeeded().out;
                assert!(back == bytes, "byte {offset}");
                daemon.kill();
            }
            Err(ran) => {
                named += 1;
                assert_eq!(checked.code, Some(1), "{}", checked.text());
                ran.failed(1, &[&disks[0]]);
            }
        }
        std::fs::write(&disks[0], &whole).unwrap();
    }
    assert!(mended > 0, "one copy of several: {mended} mended, {named} named");
}

/// The bytes of the file that are neither zero nor the recording.
fn used_metadata(whole: &[u8], recorded: &[u8]) -> Vec<u64> {
    let first = whole.windows(64).position(|window| window == &recorded[..64]).unwrap();
    let recording = first..first + recorded.len();
    let used = |at: &usize| whole[*at] != 0 && !recording.contains(at);
    (0..whole.len()).filter(used).map(|at| at as u64).collect()
}

#[test]
fn a_pool_is_not_made_over_something_unless_that_is_said() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let letters = dir.text("letters");
    std::fs::write(&letters, b"dear diary").unwrap();
    let before = std::fs::read(&disks[0]).unwrap();
    let create = ["pool", "create", "new", &disks[0], &letters, "--size", "64MiB"];
    let ran = dir.run(&create);
    ran.failed(1, &["DESTROYED", &disks[0], "a Slackline pool", &letters, "add --overwrite"]);
    assert!(std::fs::read(&disks[0]).unwrap() == before, "not a byte was changed");
    assert_eq!(std::fs::read(&letters).unwrap(), b"dear diary");
    let profile = dir.text("profile.toml");
    let over = [&create[..], &["--overwrite", "--profile", &profile]].concat();
    assert!(dir.run(&over).succeeded().text().starts_with("made pool new\n"));
    dir.run(&["pool", "create", "new", &dir.text("b")]).failed(1, &["does not exist", "--size"]);
    let (emulated, named) = (dir.disk("b"), "/dev/slackline-there-is-none");
    dir.run(&["pool", "create", "new", &emulated]).failed(1, &["does not exist", "--size"]);
    dir.run(&["pool", "create", "new", named, "--size", "64MiB"])
        .failed(1, &["no device", "lsblk"]);
    assert!(!dir.path("b").exists() && !Path::new(named).exists(), "nothing is made");
    let bad = dir.run(&["pool", "create", "a/b", &dir.text("c"), "--size", "64MiB"]);
    bad.failed(1, &["a/b"]);
    assert!(!dir.path("c").exists(), "nothing is left behind");
}

/// The file behind a mounted loop device was made a pool of, where the loop device itself was refused.
#[test]
fn the_file_behind_a_loop_device_is_left_alone() {
    let dir = Scratch::new();
    let path = dir.text("home.img");
    std::fs::write(&path, vec![7; 64 << 20]).unwrap();
    let losetup = |args: &[&str]| {
        let ran = std::process::Command::new("losetup").args(args).output().ok()?;
        let said = String::from_utf8(ran.stdout).unwrap();
        ran.status.success().then(|| said.trim().to_owned())
    };
    let Some(device) = losetup(&["--find", "--show", &path]) else {
        return skips::not_run("needs root and loop devices");
    };
    let made = dir.run(&["pool", "create", "p", &path, "--overwrite"]);
    let untouched = std::fs::read(&path).unwrap().iter().all(|byte| *byte == 7);
    losetup(&["--detach", &device]).unwrap();
    made.failed(1, &["home.img", &device, "losetup -d"]);
    assert!(untouched);
}
