//! The main job through the built command: make a pool, record, play back,
//! compare; and everything that a person can look at meanwhile.

use crate::support;
use crate::support::{Ran, Scratch, begins, give, noise};
use serde_json::json;
use std::io::{Read, Seek, Write};

#[test]
fn what_is_recorded_plays_back_the_same_also_after_a_restart() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let daemon = dir.serve(&disks);
    let bytes = noise(1, 5_000_001).bytes();
    dir.run(&["volume", "create", "video", "--size", "16MiB"]).succeeded();
    let recorded = dir.run_with(&["record", "video", "--rate", "4MB/s"], &bytes).recorded();
    assert!(recorded.text().starts_with("recorded 4.77 MiB in "), "{}", recorded.text());
    let said = recorded.text();
    assert!(said.contains("4.77 MiB accepted, 4.77 MiB durable, none of "), "{said}");

    let played = dir.run(&["play", "video", "--rate", "4MB/s"]).succeeded();
    assert!(played.out == bytes, "what comes back is what went in");
    assert!(played.err.starts_with("played 4.77 MiB in "), "{}", played.err);
    let part = ["play", "video", "-r", "4MB/s", "--start", "1000", "--length", "2000"];
    assert!(dir.run(&part).succeeded().out == bytes[1000..3000]);

    daemon.signal("TERM");
    assert_eq!(daemon.wait().0, Some(0));
    let _daemon = dir.serve(&[disks[1].clone(), disks[0].clone()]); // in any order
    let file = dir.path("out");
    let to_file = ["play", "video", file.to_str().unwrap(), "--rate", "4MB/s", "--json"];
    let summary = dir.run(&to_file).succeeded().json();
    assert!(std::fs::read(&file).unwrap() == bytes);
    assert_eq!(summary["bytes"], 5_000_001);
    // How many requests were late is the machine's to say, which may have stood still.
    assert!(summary["late_requests"].is_u64());
    assert_eq!(summary["gap_bytes"], 0);
}

/// `play` emptied a file that `export` leaves alone.
#[test]
fn play_leaves_a_file_with_data_alone_unless_it_may_be_lost() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let bytes = noise(9, 300_000).bytes();
    dir.run_with(&["record", "v", "--create", "1MiB", "--rate", "4MB/s"], &bytes).recorded();
    let out = dir.text("out");
    let play = |to: &[&str]| dir.run(&[&["play", "v", "--rate", "4MB/s"][..], to].concat());
    std::fs::write(&out, "mine").unwrap();
    play(&[&out]).failed(1, &["out has 4 B already", "--overwrite"]);
    assert_eq!(std::fs::read(&out).unwrap(), b"mine");
    play(&[&out, "--overwrite"]).succeeded();
    assert!(std::fs::read(&out).unwrap() == bytes);
    // An empty file, a device, a pipe and standard output have nothing to lose.
    std::fs::write(&out, "").unwrap();
    play(&[&out]).succeeded();
    assert!(std::fs::read(&out).unwrap() == bytes);
    play(&["/dev/null"]).succeeded();
    play(&["/dev/null"]).succeeded();
    assert!(play(&["-"]).succeeded().out == bytes);
    let pipe = dir.text("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reads = pipe.clone();
    let reader = std::thread::spawn(move || std::fs::read(reads).unwrap());
    play(&[&pipe]).succeeded();
    assert!(reader.join().unwrap() == bytes);
}

#[test]
fn an_emulated_disk_keeps_time_and_bytes() {
    let dir = Scratch::new();
    let disk = dir.disk("a");
    dir.run(&["pool", "create", "test", &disk, "--size", "256MiB"]).succeeded();
    let slow = ["--commit-interval", "1s"]; // a commit costs this disk several turns
    let _daemon = dir.try_serve(&[disk], &slow).unwrap();
    let bytes = noise(4, 2_500_000).bytes();
    dir.run_with(&["record", "v", "--create", "8MiB", "--rate", "1MB/s"], &bytes).recorded();
    assert!(dir.run(&["play", "v", "--rate", "1MB/s"]).succeeded().out == bytes);
    // In a directory of the mount, too.
    dir.run(&["volume", "rename", "v", "films/v"]).succeeded();
    assert!(dir.run(&["play", "films/v", "--rate", "1MB/s"]).succeeded().out == bytes);
    let status = dir.run(&["pool", "status", "--json"]).succeeded().json();
    let device = status["disks"][0]["device"].as_str().unwrap();
    assert!(device.starts_with("emulated:laptop-4200:"), "{device}");
}

#[test]
fn a_recording_is_not_written_over_unless_that_is_asked_for() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let file = dir.path("in");
    std::fs::write(&file, noise(1, 600_000).bytes()).unwrap();
    let record = ["record", "v", file.to_str().unwrap(), "--rate", "2MB/s"];
    let with = |more: &[&'static str]| [&record[..], more].concat();
    dir.run(&record).failed(1, &["there is no volume \"v\"", "--create SIZE"]);
    dir.run(&with(&["--create", "8MiB"])).succeeded();
    dir.run(&record).failed(1, &["volume v has 586 KiB recorded", "--append", "--overwrite"]);

    let appended = dir.run(&with(&["--append", "--json"])).succeeded().json();
    assert_eq!(
        (&appended["start_bytes"], &appended["durable_bytes"]),
        (&600_000.into(), &1_200_000.into())
    );
    let all = dir.run(&["play", "v", "--rate", "4MB/s"]).succeeded().out;
    assert!(all.len() == 1_200_000 && begins(1, &all[..600_000]) && begins(1, &all[600_000..]));

    // Also behind more of a block than is read at once.
    let long = ["record", "long", "--rate", "2MB/s", "--block", "2MiB"];
    let bytes = noise(5, 3_900_000).bytes();
    dir.run_with(&[&long[..], &["--create", "16MiB"]].concat(), &bytes).recorded();
    dir.run_with(&[&long[..], &["--append"]].concat(), b"the end").recorded();
    let played = dir.run(&["play", "long", "--rate", "2MB/s"]).succeeded().out;
    assert!(played == [&bytes[..], b"the end"].concat());

    std::fs::write(&file, noise(2, 100_000).bytes()).unwrap();
    dir.run(&with(&["--overwrite"])).succeeded();
    let all = dir.run(&["play", "v", "--rate", "4MB/s"]).succeeded().out;
    assert!(begins(2, &all[..100_000]), "the new bytes are in front");
}

#[test]
fn durable_offsets_come_as_lines_and_never_go_back() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let acks = dir.path("acks");
    let args = [
        "record",
        "v",
        "--create",
        "16MiB",
        "--rate",
        "4MB/s",
        "--json-progress",
        "--ack-file",
        acks.to_str().unwrap(),
    ];
    let mut child = dir.command(&args).spawn().unwrap();
    assert!(give(noise(3, 6_000_000), child.stdin.take().unwrap()), "all of it is taken");
    let ran = Ran::from(child.wait_with_output().unwrap()).recorded();
    let offsets: Vec<u64> =
        std::fs::read_to_string(&acks).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert!(offsets.is_sorted() && offsets.len() > 1, "several, in order: {offsets:?}");
    assert_eq!(offsets.last(), Some(&6_000_000));
    let printed: Vec<u64> = ran
        .text()
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|line| line["durable_bytes"].as_u64().unwrap())
        .collect();
    assert_eq!(printed, offsets);
}

#[test]
fn every_command_prints_its_result_for_people_and_for_programs() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let made = dir.run(&["pool", "create", "other", &dir.disk("c"), "--size", "64MiB", "--json"]);
    assert_eq!(made.succeeded().json()["pool"], "other");
    let checked = dir.run(&["pool", "check", &dir.disk("c")]).succeeded();
    assert!(checked.text().contains("pool other: sound; 0 volumes"), "{}", checked.text());

    let _daemon = dir.serve(&disks);
    let empty = dir.run(&["volume", "list"]).succeeded();
    assert!(empty.text().starts_with("no volumes;"), "{}", empty.text());
    let create = ["volume", "create", "v", "--size", "8MiB", "--disks", "1", "--zone", "inner"];
    let made = "made volume v: 8 MiB on disk 1, inner half, rw------- ";
    assert!(dir.run(&create).succeeded().text().starts_with(made));
    let shown = dir.run(&["volume", "show", "v", "--json"]).succeeded().json();
    assert_eq!(shown["extents"], serde_json::json!([0, 8]));
    dir.run(&["volume", "resize", "v", "12MiB"]).succeeded();
    let list = dir.run(&["volume", "list", "--json"]).succeeded().json();
    assert_eq!(list["volumes"][0]["size_bytes"], 12 << 20);

    let mut child = dir.command(&["record", "v", "--rate", "1MB/s"]).spawn().unwrap();
    let stream = loop {
        let all = dir.run(&["stream", "list", "--json"]).succeeded().json();
        if let Some(stream) = all["streams"].as_array().unwrap().first() {
            break stream["id"].to_string();
        }
        assert!(child.try_wait().unwrap().is_none(), "it holds its stream");
    };
    let shown = dir.run(&["stream", "show", &stream]).succeeded();
    assert!(shown.text().contains("contract   1 MB/s in blocks of 256 KiB"), "{}", shown.text());
    assert!(dir.run(&["pool", "status"]).succeeded().text().contains("streams  1\n"));
    let closed = dir.run(&["stream", "close", &stream]).succeeded();
    assert_eq!(closed.text(), format!("closed stream {stream}; durable up to offset 0\n"));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(1), "its stream was taken away");

    let plan = dir.run(&["plan", "--rate", "1MB/s", "--json"]).succeeded().json();
    assert!(plan["fits"] == true && plan["streams"][0]["more"].as_u64().unwrap() > 0);
    let words = dir.run(&["plan", "--rate", "1MB/s"]).succeeded();
    assert!(words.text().starts_with("it fits\n") && words.text().contains("blocks of 64 KiB"));
    assert_eq!(dir.run(&["volume", "delete", "v"]).succeeded().text(), "deleted volume v\n");
    for shell in ["bash", "zsh", "fish"] {
        assert!(dir.run(&["completions", shell]).succeeded().text().contains("slackline"));
    }
}

#[test]
fn a_plan_is_the_same_from_a_model_a_pool_and_a_daemon() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let plan = ["plan", "--rate", "500kB/s", "--json", "--memory", "64MiB"];
    let before = std::fs::read(&disks[0]).unwrap();
    let on = |gap: &str, how: &[&str]| {
        dir.run(&[&plan[..], &["--gap", gap], how].concat()).succeeded().json()
    };
    let offline = on("0s", &["--device", &disks[0]]);
    let later = on("20ms", &["--device", &disks[0]]);
    assert!(before == std::fs::read(&disks[0]).unwrap(), "the device is only read");
    // With as much memory and as many commits as the plan counts with, and with the gap that
    // the daemon measured.
    let _daemon = dir.try_serve(&disks, &["--commit-interval", "1s"]).unwrap();
    let online = dir.run(&plan).succeeded().json();
    let status = dir.run(&["pool", "status", "--json"]).succeeded().json();
    let gap = format!("{}ns", status["disks"][0]["gap"]["stated_ns"]);
    assert_eq!(online, on(&gap, &["--profile", &dir.text("profile.toml")]));
    assert_ne!(offline, later, "a gap costs time");
    // A pool that is served is its daemon's alone.
    dir.run(&["plan", "--rate", "1MB/s", "--device", &disks[0]]).failed(1, &["is in use"]);
    let profile = ["--profile", &dir.text("profile.toml")];
    assert_eq!(dir.run(&[&plan[..], &profile].concat()).succeeded().json(), offline);
    // The model itself is a whole disk, of which the pool's is a smaller picture.
    let model = ["--model", "laptop-4200", "--model", "laptop-4200"];
    let two = dir.run(&[&plan[..], &model].concat()).succeeded().json();
    assert_eq!(two["disks"].as_array().unwrap().len(), 2);
    dir.run(&["plan", "--rate", "1MB/s", "--model", "no-such"]).failed(2, &["no-such", "laptop"]);
}

#[test]
fn a_volume_with_a_recording_is_deleted_only_when_that_is_said() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let record = ["record", "v", "--create", "4MiB", "--rate", "1MB/s"];
    dir.run_with(&record, b"precious").recorded();
    dir.run(&["volume", "delete", "v"]).failed(1, &["v has 8 B recorded", "add --yes"]);
    dir.run(&["volume", "delete", "v", "--yes"]).succeeded();
    dir.run(&["volume", "show", "v"]).failed(1, &["there is no volume \"v\"", "volume list"]);
}

/// Programs that each write their own few bytes of the same 4 KiB, all at once: each finds
/// its own as soon as it was told, and none of the others' is lost.
#[test]
fn programs_that_write_parts_of_one_block_lose_nothing_of_each_other() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    dir.run(&["volume", "create", "v", "--size", "2MiB"]).succeeded();
    let client = client::Client::at(dir.path("s.sock"));
    const PROGRAMS: u64 = 4;
    const ROUNDS: u64 = 60;
    // Bytes of program `number` in its place of round `round`: across a block's edge, too.
    let place = |number: u64, round: u64| 1_000_000 + (round % 20) * 400 + number * 100;
    let bytes = |number: u64, round: u64| [(number * ROUNDS + round + 1) as u8; 100];
    std::thread::scope(|scope| {
        for number in 0..PROGRAMS {
            let client = &client;
            scope.spawn(move || {
                let mut volume = client.best_effort("v").unwrap();
                for round in 0..ROUNDS {
                    let (at, own) = (place(number, round), bytes(number, round));
                    volume.write_at(client::units::Bytes::new(at), &own).unwrap();
                    let mut blocks = [0; 8192];
                    let start = at / 4096 * 4096;
                    volume.read_at(client::units::Bytes::new(start), &mut blocks).unwrap();
                    let within = (at - start) as usize;
                    assert!(blocks[within..][..100] == own, "program {number}, round {round}");
                }
                volume.sync().unwrap();
            });
        }
    });
    let mut volume = client.best_effort("v").unwrap();
    let mut all = vec![0; 16 << 10];
    let start = 1_000_000 / 4096 * 4096;
    volume.read_at(client::units::Bytes::new(start), &mut all).unwrap();
    for (number, round) in (0..PROGRAMS).flat_map(|n| (ROUNDS - 20..ROUNDS).map(move |r| (n, r))) {
        let within = (place(number, round) - start) as usize;
        assert!(all[within..][..100] == bytes(number, round), "program {number}, round {round}");
    }
}

/// What came again after the refusal was written over what the volume had, at its block's beginning.
#[test]
fn a_first_write_that_is_refused_loses_nothing_that_was_there_and_is_repeated_in_its_place() {
    use client::control::{Placement, VolumeCreate};
    use client::units::{Bytes, Rate};
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let client = client::Client::at(dir.path("s.sock"));
    let thin = Placement { thin: true, run_bytes: Bytes::MIB, ..Placement::default() };
    let volume = VolumeCreate { placement: thin, ..VolumeCreate::new("v", Bytes::mib(64)) };
    client.volume_create(&volume).unwrap();
    let before = noise(3, 500_000).bytes();
    let mut options = client::File::options();
    options.socket(dir.path("s.sock")).read(true).write(true);
    let mut file = options.open("v").unwrap();
    file.write_all(&before).unwrap();
    file.close().unwrap();
    // Nothing is left.
    let size = (1..256)
        .rev()
        .map(Bytes::mib)
        .find(|&size| client.volume_create(&VolumeCreate::new("other", size)).is_ok());
    assert!(size.is_some_and(|size| size > Bytes::mib(64)), "{size:?}");

    let contract = client::Contract::at(Rate::per_second(1_000_000)).block(Bytes::mib(2));
    let mut file = options.read(false).append(true).contract(contract).open("v").unwrap();
    let after = noise(4, 1_700_000).bytes();
    let refused = file.write(&after).unwrap_err();
    assert!(refused.to_string().contains("has 0 B free"), "{refused}");
    assert_eq!(file.position(), Bytes::new(before.len() as u64));
    client.volume_delete("other").unwrap();
    client.sync().unwrap();
    file.write_all(&after).unwrap();
    file.close().unwrap();
    let mut all = Vec::new();
    client::File::options()
        .socket(dir.path("s.sock"))
        .open("v")
        .unwrap()
        .read_to_end(&mut all)
        .unwrap();
    assert_eq!(all.len(), before.len() + after.len());
    assert!(all == [before, after].concat());
}

/// A ring goes on where a volume would be full, holds the end of what was recorded, and says
/// what is gone.
#[test]
fn a_ring_holds_the_end_of_what_was_recorded() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let quick = ["--commit-interval", "100ms"];
    let daemon = dir.try_serve(&disks, &quick).unwrap();
    dir.run(&["volume", "create", "small", "--size", "1MiB", "--ring"]).failed(1, &["32 MiB"]);
    let keep = ["volume", "create", "plain", "--size", "1MiB", "--keep", "2d"];
    assert!(dir.run(&keep).err.contains("--ring"), "it takes a ring");
    let create = ["volume", "create", "cam", "--size", "65MiB", "--ring", "--keep", "2d"];
    let made = dir.run(&create).succeeded().text().to_owned();
    assert!(made.starts_with("made ring cam: 80 MiB on "), "{made}");
    let bytes = noise(1, 100_000_001).bytes();
    dir.run_with(&["record", "cam", "--rate", "20MB/s"], &bytes).recorded();

    let shown = || dir.run(&["volume", "show", "cam", "--json"]).succeeded().json();
    let held = |volume: &serde_json::Value| {
        let number = |key: &str| volume["ring"][key].as_u64().unwrap() as usize;
        (number("start_bytes"), number("held_bytes"))
    };
    let volume = shown();
    let (start, len) = held(&volume);
    assert_eq!((volume["length_bytes"].as_u64(), start + len), (Some(100_000_001), 100_000_001));
    assert!(start.is_multiple_of(16 << 20) && len > 16 << 20, "{start} and {len}");
    let text = dir.run(&["volume", "show", "cam"]).succeeded().text().to_owned();
    assert!(text.contains(&format!("from {start} to 100000001; a ring that keeps 2 d")), "{text}");
    let play = ["play", "cam", "--rate", "20MB/s"];
    assert!(dir.run(&play).succeeded().out == bytes[start..]);
    dir.run(&[&play[..], &["--start", "1000"]].concat())
        .failed(1, &["given these bytes up", &start.to_string()]);
    // Byte 0 is asked for, and never another one in its place, with a contract and without.
    dir.run(&[&play[..], &["--start", "0"]].concat()).failed(1, &["given these bytes up"]);
    for contract in [None, Some(client::Contract::at(client::units::Rate::per_second(1_000_000)))] {
        let mut open = client::File::options();
        open.socket(dir.path("s.sock"));
        if let Some(contract) = contract {
            open.contract(contract);
        }
        // Opened, it stands where the ring begins.
        let (mut file, mut first) = (open.open("cam").unwrap(), [0; 10]);
        file.read_exact(&mut first).unwrap();
        assert_eq!(first, bytes[start..start + 10]);
        file.seek(std::io::SeekFrom::Start(0)).unwrap();
        let read = file.read(&mut first);
        assert!(read.unwrap_err().to_string().contains("given these bytes up"));
    }
    let file = dir.path("out");
    dir.run(&["export", "cam", file.to_str().unwrap()]).succeeded();
    assert!(std::fs::read(&file).unwrap() == bytes[start..]);
    // A copy of what it holds stays, and knows when it was recorded.
    let copy = ["volume", "copy", "cam", "clip", "--from", "1h ago"];
    let copied = dir.run(&copy).succeeded().text().to_owned();
    assert!(copied.contains(" of cam (2") && copied.contains(" to clip in "), "{copied}");
    dir.run(&copy).failed(1, &["there is a volume clip"]);
    dir.run(&["volume", "copy", "cam", "none", "--from", "now"])
        .failed(1, &["after the recording"]);
    let whole = shown();
    let clip = dir.run(&["volume", "show", "clip", "--json"]).succeeded().json();
    assert_eq!((clip["length_bytes"].as_u64(), &clip["ring"]), (Some(len as u64), &json!(null)));
    for end in ["begins_ns", "ends_ns"] {
        let at = |volume: &serde_json::Value| volume["recorded"][end].as_i64().unwrap();
        assert!((at(&whole) - at(&clip)).abs() < 10_000_000, "{whole} {clip}");
    }
    let listed = dir.run(&["volume", "list"]).succeeded().text().to_owned();
    assert!(!listed.contains("copying") && !listed.contains("none"), "{listed}");
    dir.run(&["volume", "resize", "cam", "128MiB"]).failed(1, &["keeps the size"]);
    let over = ["record", "cam", "--rate", "1MB/s", "--overwrite"];
    dir.run_with(&over, b"x").failed(1, &["offsets only grow"]);

    daemon.signal("KILL");
    daemon.wait();
    let _daemon = dir.try_serve(&disks, &quick).unwrap();
    assert_eq!(held(&shown()), (start, len));
    // It goes on at its end; what is old is given up within some seconds of being so.
    let more = noise(2, 3_000_000).bytes();
    dir.run_with(&["record", "cam", "--rate", "20MB/s", "--ring"], &more).recorded();
    let all = dir.run(&play).succeeded().out;
    assert!(all.ends_with(&more), "what came last is there");
    // What the file has already is left alone until it is said that it may be lost.
    std::fs::write(&file, "mine").unwrap();
    let export = ["export", "clip", file.to_str().unwrap()];
    for rate in [&[][..], &["--rate", "20MB/s"]] {
        dir.run(&[&export[..], rate].concat()).failed(1, &["out has 4 B already", "--overwrite"]);
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    }
    dir.run(&[&export[..], &["--overwrite"]].concat()).succeeded();
    assert!(std::fs::read(&file).unwrap() == bytes[start..], "the copy stays");
    let told = dir.run(&["volume", "keep", "cam", "1s"]).succeeded().text().to_owned();
    assert_eq!(told, "ring cam gives up what is older than 1 s\n");
    let end = 103_000_001usize;
    support::wait_until(|| held(&shown()).0 == end / (16 << 20) * (16 << 20));
    let rest = dir.run(&play).succeeded().out;
    assert!(all.ends_with(&rest) && rest.len() == end % (16 << 20), "{} bytes", rest.len());
    let told = dir.run(&["volume", "keep", "cam", "off"]).succeeded().text().to_owned();
    assert_eq!(told, "ring cam keeps what is recorded as long as there is room\n");
    dir.run(&["volume", "create", "plain", "--size", "1MiB"]).succeeded();
    dir.run(&["volume", "keep", "plain", "1d"]).failed(1, &["no ring"]);
}

/// Two programs copy to one name at once: one of them does, and what is there is whole. What a killed
/// copy has left is named.
#[test]
fn one_of_two_copies_to_one_name_is_made() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let bytes = noise(8, 20_000_001).bytes();
    dir.run_with(&["record", "v", "--create", "20MiB", "--rate", "1MB/s"], &bytes).recorded();
    let copy = ["volume", "copy", "v", "clip"];
    let ran = std::thread::scope(|threads| {
        let both = [(); 2].map(|()| threads.spawn(|| dir.run(&copy)));
        both.map(|thread| thread.join().unwrap())
    });
    let made = ran.iter().filter(|ran| ran.code == Some(0)).count();
    let refused = ran.iter().find(|ran| ran.code == Some(1)).expect("one is refused");
    assert!(made == 1 && refused.err.contains("there is a volume clip"), "{}", refused.err);
    let file = dir.path("clip");
    dir.run(&["export", "clip", file.to_str().unwrap()]).succeeded();
    assert!(std::fs::read(&file).unwrap() == bytes);

    dir.run(&["volume", "create", "more.copying", "--size", "1MiB"]).succeeded();
    let words = ["there is a volume more.copying", "slackline volume delete more.copying"];
    dir.run(&["volume", "copy", "v", "more"]).failed(1, &words);
}

#[test]
fn a_volume_grows_ahead_of_its_recording_and_gives_back_what_is_left() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool_of(&["a"], "224MiB"));
    let held = |name: &str| {
        let file = dir.path("held");
        dir.run(&["export", name, file.to_str().unwrap()]).succeeded();
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        bytes
    };
    let size = |name: &str| {
        let shown = dir.run(&["volume", "show", name, "--json"]).succeeded().json();
        shown["size_bytes"].as_u64().unwrap()
    };
    let bytes = noise(9, 72_000_000).bytes();
    let record = ["record", "v", "--create", "8MiB", "--grow-to", "160MiB", "--rate", "1MB/s"];
    dir.run_with(&record, &bytes).recorded();
    // Once to begin with, and once more as it came near to that end; not to the limit.
    assert!((140 << 20..160 << 20).contains(&size("v")), "{}", size("v"));
    assert!(held("v") == bytes);
    dir.run_with(&[&record[..], &["--append", "--trim"]].concat(), b"the end").recorded();
    let cut = 72_000_007u64.next_multiple_of(1 << 20);
    assert_eq!(size("v"), cut);
    // It goes on where it is full, and not beyond the limit.
    let end = noise(11, 110_000_000).bytes();
    dir.run_with(&[&record[..], &["--append"]].concat(), &end).failed(1, &["ends at 160 MiB"]);
    assert_eq!(size("v"), 160 << 20);
    let grown = held("v");
    assert!(grown.len() == 160 << 20 && end.starts_with(&grown[72_000_007..]));
    dir.run(&["volume", "delete", "v", "--yes"]).succeeded();

    // The pool is full before the limit: that is said, and what came before it is kept.
    let record = ["record", "w", "--create", "8MiB", "--grow-to", "10GiB", "--rate", "1MB/s"];
    let all = noise(10, 240_000_000).bytes();
    dir.run_with(&record, &all).failed(1, &["has 0 B free"]);
    let kept = held("w");
    assert!(kept.len() > 100 << 20 && all.starts_with(&kept), "{}", kept.len());
}

/// Names change while a volume is recorded to: what grows is the volume, and not whatever has its
/// name by then.
#[test]
fn a_volume_grows_whatever_it_is_called_by_then() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let client = client::Client::at(dir.path("s.sock"));
    let size = client::units::Bytes::mib(8);
    let new = client::control::VolumeCreate::new("v", size);
    client.volume_create(&new).unwrap();
    let rate = client::units::Rate::per_second(1_000_000);
    let contract = client::Contract::at(rate).block(client::units::Bytes::kib(64)).terms();
    let limit = client::units::Bytes::mib(100);
    let mut writer = client.growing_writer("v", contract, Default::default(), limit).unwrap();
    let now = client::Durable::Now;
    client.volume_rename(("v", None), "w", client::Replace::Nothing, now).unwrap();
    client.volume_create(&new).unwrap();
    let bytes = noise(12, 20_000_000).bytes();
    std::io::Write::write_all(&mut writer, &bytes).unwrap();
    writer.close().unwrap();
    assert_eq!(client.volume("v").unwrap().size_bytes, size);
    assert_eq!(client.volume("w").unwrap().length_bytes.get(), 20_000_000);
}

/// Somebody makes it smaller: it grows again before its writer is at its end.
#[test]
fn a_growing_volume_that_is_made_smaller_grows_again() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let client = client::Client::at(dir.path("s.sock"));
    let mib = client::units::Bytes::mib;
    client.volume_create(&client::control::VolumeCreate::new("v", mib(8))).unwrap();
    let rate = client::units::Rate::per_second(1_000_000);
    let contract = client::Contract::at(rate).block(client::units::Bytes::kib(64)).terms();
    let mut writer = client.growing_writer("v", contract, Default::default(), mib(100)).unwrap();
    let bytes = noise(13, 40_000_000).bytes();
    let (first, rest) = bytes.split_at(1_000_000);
    std::io::Write::write_all(&mut writer, first).unwrap();
    assert!(client.volume("v").unwrap().size_bytes > mib(60));
    let refused = client.volume_resize("v", mib(8)).unwrap_err();
    assert_eq!(refused.code(), Some(client::Code::VolumeBusy), "{refused}");
    client.volume_resize("v", mib(16)).unwrap();
    std::io::Write::write_all(&mut writer, rest).unwrap();
    writer.close().unwrap();
    assert_eq!(client.volume("v").unwrap().length_bytes.get(), 40_000_000);
}

/// Several programs record to thin volumes at once, whose sizes together are more than the pool has; what
/// they were told to be durable is there after a kill, and a full pool says so.
#[test]
fn several_record_to_thin_volumes_at_once() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let quick = ["--commit-interval", "1s"];
    let daemon = dir.try_serve(&disks, &quick).unwrap();
    let create = ["volume", "create", "home", "--size", "64GiB", "--thin"];
    let made = dir.run(&create).succeeded().text().to_owned();
    assert!(made.starts_with("made volume home: 64 GiB on disk 0, thin"), "{made}");
    let both = ["volume", "create", "other", "--size", "1GiB", "--thin", "--run", "2MiB"];
    assert!(dir.run(&both).err.contains("--run"), "a run is an extent");
    let names = ["one", "two", "three", "four"];
    let bytes: Vec<_> = (0..4).map(|seed| noise(seed, 5_000_000).bytes()).collect();
    std::thread::scope(|scope| {
        for (name, bytes) in names.iter().zip(&bytes) {
            let record = ["record", name, "--create", "1GiB", "--thin", "--rate", "2MB/s"];
            let dir = &dir;
            scope.spawn(move || dir.run_with(&record, bytes).recorded());
        }
    });
    let check = || {
        for (name, bytes) in names.iter().zip(&bytes) {
            let play = dir.run(&["play", name, "--rate", "2MB/s"]).succeeded().out;
            assert!(play == *bytes, "{name}");
            let shown = dir.run(&["volume", "show", name]).succeeded().text().to_owned();
            assert!(shown.contains("5 MiB taken, at most 1 GiB"), "{shown}");
        }
    };
    check();
    daemon.signal("KILL");
    daemon.wait();
    let _daemon = dir.try_serve(&disks, &quick).unwrap();
    check();
    // More than there is, without a stream: what was taken is said, and what to do.
    let free = dir.run(&["volume", "list", "--json"]).succeeded().json();
    assert_eq!(free["volumes"].as_array().unwrap().len(), 5, "{free}");
    let client = client::Client::at(dir.path("s.sock"));
    let mut home = client.best_effort("home").unwrap();
    let page = [7; 4096];
    let full = (0..).find_map(|mib| home.write_at(client::units::Bytes::mib(mib), &page).err());
    let full = full.expect("it is full at some time").to_string();
    assert!(full.contains("free"), "{full}");
    dir.run(&["volume", "delete", "home", "--yes"]).succeeded();
    dir.run_with(&["record", "one", "--append", "--rate", "2MB/s"], b"more").succeeded();
}
