//! What does not fit is refused, with the figures and what would fit.

use crate::support;
use crate::support::{Scratch, begins, noise};

#[test]
fn over_commitment_is_refused_with_all_its_figures() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let record = ["record", "v", "--create", "8MiB", "--rate", "200MB/s"];
    let ran = dir.run_with(&record, b"x");
    ran.failed(3, &["refused: disk 0 cannot keep this contract", "utilisation would be ", " %"]);
    ran.failed(3, &["the largest rate that fits in these blocks is ", "--rate "]);
    dir.run(&["volume", "show", "v"]).failed(1, &["there is no volume"]); // as it was before

    let json = dir.run_with(&[&record[..], &["--json"]].concat(), b"x");
    assert_eq!((json.code, json.out.len()), (Some(3), 0));
    let failure: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    let refusal = &failure["problem"]["refusal"];
    for figure in ["utilisation_ppm", "rate_max_bytes_per_second", "disk"] {
        assert!(refusal[figure].is_u64(), "{figure} in {failure}");
    }
    // The largest rate that it names is admitted, to the byte.
    let rate = format!("{}B/s", refusal["rate_max_bytes_per_second"]);
    let at_most = ["record", "v", "--create", "8MiB", "--rate", &rate];
    dir.run_with(&at_most, b"x").succeeded();
}

/// A unit apart from its number, a growth to less, a directory that is not there: each advice was wrong.
#[test]
fn what_is_asked_for_wrongly_is_told_as_it_can_be_asked_for() {
    let dir = Scratch::new();
    let apart = ["volume", "create", "v", "--size", "8", "GiB"];
    let told = dir.run(&apart);
    let says = "tip: write it without a space before the unit: 8GiB";
    assert!(told.code == Some(2) && told.err.contains(says), "{}", told.err);
    let told = dir.run(&[&apart[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&told.err).unwrap();
    assert!(json["next_step"].as_str().unwrap().ends_with("before the unit: 8GiB"), "{json}");
    let record = ["record", "v", "--create", "64MiB", "--grow-to", "32MiB", "--rate", "1MB/s"];
    dir.run(&record).failed(2, &["--grow-to 32 MiB is less than --create 64 MiB"]);
    // Nothing is timed before all of it is found to be right.
    let create = |path: &str, size: &str| {
        let ran = dir.run(&["pool", "create", "p", path, "--size", size]);
        assert!(!ran.err.contains("timing"), "{}", ran.err);
        ran
    };
    let none = dir.text("none");
    let next = format!("next: make it first: `mkdir -p {none}`");
    create(&format!("{none}/disk"), "64MiB").failed(1, &["there is no directory", &next]);
    create(&dir.text("disk"), "100TiB").failed(1, &[" left, and not 100 TiB", "smaller"]);
}

/// Of a volume under contract, of one that nothing is recorded in, and of a token the advice led nowhere.
#[test]
fn what_is_advised_can_be_done() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let run = |line: &str| dir.run(&line.split(' ').collect::<Vec<_>>());
    run("volume create gate --size 8MiB").succeeded();
    let from = "--from now --for 1m";
    for line in ["export gate -", "volume copy gate copy", "play gate --rate 1MB/s"] {
        run(&format!("{line} {from}")).failed(1, &["nothing is recorded in gate yet"]);
    }
    run("volume set gate --best-effort-rate 1MB/s").succeeded();
    let smaller = "volume resize gate 4MiB";
    let away = "volume set gate --priority normal";
    let advised = format!("`slackline {away}`");
    run(smaller).failed(1, &["volume \"gate\" is under contract", &advised]);
    run(away).succeeded();
    run(smaller).succeeded();
    // No stream is open that could be closed.
    let refused = run("volume set gate --best-effort-rate 100GB/s");
    refused.failed(3, &["the largest rate that fits so is"]);
    assert!(!refused.err.contains("close a stream"), "{}", refused.err);
    let advised = |refused: &str| refused.split('`').nth(1).expect("an option").to_owned();
    run(&format!("volume set gate {}", advised(&refused.err))).succeeded();
    run(away).succeeded();
    let hurried = "volume set gate --every 1s --block 1MiB --within";
    let refused = run(&format!("{hurried} 1ms"));
    refused.failed(3, &["would fit: ask for `--within "]);
    run(&format!("volume set gate --every 1s --block 1MiB {}", advised(&refused.err))).succeeded();
    run(away).succeeded();
    let made = run("token make").succeeded().err;
    assert!(made.contains("note: it may do all that ") && made.contains(", until 20"), "{made}");
    let made = run("token make --for-ever").succeeded().err;
    assert!(made.contains(" may, for ever"), "{made}");
    let made = run("token make --volume gate --volume nocam").succeeded().err;
    assert_eq!(made, "slackline: note: no volume is called nocam yet\n");
}

#[test]
fn a_file_that_is_no_text_is_named_so() {
    let dir = Scratch::new();
    let file = dir.path("film");
    std::fs::write(&file, [0xff; 5000]).unwrap();
    let name = file.to_str().unwrap();
    for command in [&["disk", "show", name][..], &["plan", name], &["simulate", name]] {
        dir.run(command).failed(1, &["film is not a text file", "next: give a file of text"]);
    }
    dir.make_pool(&["a"]);
    let shown = dir.run(&["disk", "show", &dir.text("profile.toml")]).succeeded();
    assert!(shown.text().starts_with("stated by the tests\n"), "{}", shown.text());
}

#[test]
fn several_streams_are_taken_until_one_does_not_fit_and_the_plan_knew() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let contract = ["--rate", "15MB/s", "--block", "512KiB"];
    let plan = dir.run(&[&["plan", "--json"][..], &contract].concat()).succeeded().json();
    let fits = 1 + plan["streams"][0]["more"].as_u64().unwrap();
    assert!((2..12).contains(&fits), "{fits}");
    let writer =
        |name: &'static str| [&["record", name, "--create", "8MiB"][..], &contract].concat();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let mut writers = Vec::new();
    for open in 1..=fits {
        let child = dir.command(&writer(names[open as usize])).spawn().unwrap();
        writers.push(child);
        // Each holds its stream until its input ends.
        loop {
            let all = dir.run(&["stream", "list", "--json"]).succeeded().json();
            let streams = all["streams"].as_array().unwrap().len() as u64;
            assert!(streams <= open);
            if streams == open {
                break;
            }
            let early = writers.last_mut().unwrap().try_wait().unwrap();
            assert!(early.is_none(), "stream {open} of {fits} was refused");
        }
    }
    dir.run(&writer(names[0])).failed(3, &["refused: disk 0", "close a stream"]);
    for mut child in writers {
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_full_volume_is_an_error_at_the_write_that_does_not_fit_and_keeps_what_fitted() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let bytes = noise(1, 3 << 20).bytes();
    let record = ["record", "v", "--create", "2MiB", "--rate", "4MB/s", "--json"];
    let ran = dir.run_with(&record, &bytes);
    assert_eq!(ran.code, Some(1));
    let summary = ran.json();
    assert_eq!(summary["durable_bytes"], 2 << 20);
    let failure: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(failure["problem"]["code"], "volume_full");
    assert!(failure["next_step"].as_str().unwrap().contains("volume resize"));
    let back = dir.run(&["play", "v", "--rate", "4MB/s"]).succeeded().out;
    assert!(back.len() == 2 << 20 && begins(1, &back));
}

#[test]
fn a_full_pool_says_what_is_free() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let create = ["volume", "create", "v", "--size", "10GiB"];
    dir.run(&create).failed(1, &["10 GiB", "free", "delete or shrink"]);
    dir.run(&["volume", "create", "a//b", "--size", "1MiB"])
        .failed(1, &["volume name: 1 to 255 bytes"]);
    dir.run(&["volume", "create", "v", "--size", "1MiB", "--disks", "7"]).failed(1, &["disk 7"]);
}

#[test]
fn wrong_usage_ends_with_2_and_a_missing_daemon_with_1() {
    let dir = Scratch::new();
    let ran = dir.run(&["record"]); // with the daemon's socket in its environment
    assert_eq!(ran.code, Some(2));
    let usage = ran.err.contains("Usage: slackline record --rate <RATE> <VOLUME> [FILE]");
    assert!(usage, "{}", ran.err);
    assert_eq!(dir.run(&["play", "v", "--rate", "fast"]).code, Some(2));
    assert_eq!(
        dir.run(&["record", "v", "--rate", "1MB/s", "--append", "--overwrite"]).code,
        Some(2)
    );
    // Not the settings of this machine, where it has some.
    std::fs::write(dir.path("empty.toml"), "").unwrap();
    let serve = ["serve", "--config", &dir.text("empty.toml")];
    dir.run(&serve).failed(2, &["no disk to serve", "slackline serve DEVICE"]);
    dir.run(&["volume", "list"]).failed(1, &["no daemon answers at", "slackline serve"]);
    let config = dir.path("c.toml");
    std::fs::write(&config, "memori = \"1GiB\"\n").unwrap();
    let serve = ["serve", "--config", config.to_str().unwrap()];
    dir.run(&serve)
        .failed(2, &["c.toml", "line 1", "memori", "packaging/slackline.toml of the source lists"]);
}

#[test]
fn wrong_usage_is_told_to_a_program_as_json() {
    let dir = Scratch::new();
    let ran = dir.run(&["volume", "list", "--json", "--nonsense"]);
    assert_eq!(ran.code, Some(2));
    let told: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(told["detail"], "unexpected argument '--nonsense' found");
    assert_eq!(told["exit_code"], 2);
    let ran = dir.run(&["play", "v", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    let missing = "the following required arguments were not provided: --rate <RATE>";
    assert_eq!(told["detail"], missing);
    let ran = dir.run(&["--json", "volume"]);
    let told: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, &told["detail"]), (Some(2), &"a subcommand is missing".into()));
    dir.run(&["volume", "--json", "--help"]).succeeded();
}

/// The refusal said "the disks asked have 31 MiB free", beside a disk with ten times as much.
#[test]
fn a_volume_that_does_not_fit_is_told_which_disk_is_full_and_where_it_fits() {
    let dir = Scratch::new();
    let profile = dir.text("profile.toml");
    std::fs::write(&profile, support::PROFILE).unwrap();
    let disks = [("a", 64), ("b", 256), ("c", 256)].map(|(name, mib)| {
        let file = std::fs::File::create(dir.path(name)).unwrap();
        file.set_len(mib << 20).unwrap();
        dir.text(name)
    });
    let make = ["pool", "create", "test", "--profile", &profile];
    dir.run(&[&make[..], &disks.each_ref().map(|disk| &**disk)].concat()).succeeded();
    let _daemon = dir.serve(&disks);
    let create = ["volume", "create", "v", "--size", "300MiB"];
    let refused = dir.run(&create);
    refused.failed(1, &["disk 0 has ", " free, and 100 MiB of the volume would lie there"]);
    refused.failed(1, &["--disks 1,2`", "at the most on these disks", "on disk 0"]);
    // A command that has no such option says the same.
    let record = ["record", "v", "--create", "300MiB", "--rate", "1MB/s"];
    dir.run_with(&record, b"x").failed(1, &["disk 0 has ", "volume create", "--disks 1,2`"]);
    dir.run(&[&create[..], &["--disks", "1,2"]].concat()).succeeded();
    dir.run(&["volume", "resize", "v", "1GiB"]).failed(1, &["disk 1 has ", " in all at the most"]);
    // Before cameras are started: what all disks together have free is not what a volume can have.
    let camera =
        "[[camera]]\nname = 'gate'\nsize = '200MiB'\nrate = '100kB/s'\ncommand = ['true']\n";
    std::fs::write(dir.path("cameras.toml"), camera).unwrap();
    let check = dir.run(&["cameras", &dir.text("cameras.toml"), "--check"]);
    check.failed(3, &["67 MiB on each disk", "disk 0 has ", "--disks 1,2"]);
}

/// What people type by a slip of the hand, or take for something else, is named as what it is.
#[test]
fn slips_of_the_hand_are_named() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    // Empty names, as an unset variable of the shell makes them.
    let copy = dir.text("copy");
    for command in [
        &["volume", "show", ""][..],
        &["volume", "delete", ""],
        &["volume", "resize", "", "1MiB"],
        &["play", "", &copy, "--rate", "1MB/s"],
        &["record", "", "--rate", "1MB/s", "--create", "1MiB"],
        &["export", "", &copy],
        &["nbd", ""],
    ] {
        dir.run(command).failed(1, &["the name is empty", "slackline volume list"]);
    }
    let chmod = ["volume", "chmod", "600", ""];
    dir.run(&chmod).failed(1, &["there is no volume \"\"", "slackline volume list"]);
    let create = ["volume", "create", "", "--size", "1MiB"];
    dir.run(&create).failed(1, &["volume name: 1 to 255"]);
    dir.run(&["pool", "create", "", &copy, "--size", "64MiB"]).failed(1, &["no name for a pool"]);
    dir.run(&["disk", "show", ""]).failed(1, &["no disk model is called \"\""]);
    assert!(!dir.path("copy").exists());
    // Two sizes that look the same.
    let free = dir.run(&["status", "--json"]).json()["status"]["disks"][0]["free_bytes"].as_u64();
    let size = format!("{}B", free.unwrap() + (1 << 20));
    let create = ["volume", "create", "v", "--size", &size];
    dir.run(&create).failed(1, &["of the volume would lie there: 1 MiB more than it has"]);
    // It was a volume of 20 bytes.
    let bare = dir.run(&["volume", "create", "v", "--size", "20"]);
    let said = "20 has no unit; write 20B, 20MiB or 20GiB";
    assert!(bare.code == Some(2) && bare.err.contains(said), "{}", bare.err);
    // A volume that is there does not become what --create says.
    let record = |size: &str, more: &str| {
        let record = ["record", "v", "--create", size, "--rate", "1MB/s"];
        let more = if more.is_empty() { &[][..] } else { &[more][..] };
        dir.run_with(&[&record[..], more].concat(), &[7; 1_000]).recorded().err
    };
    assert!(!record("2MiB", "").contains("note"));
    let noted = record("1TB", "--append");
    assert!(
        noted.contains("volume v exists with 2 MiB: --create 931 GiB changes nothing"),
        "{noted}"
    );
    assert!(!record("2MiB", "--append").contains("note"));
    // Bytes are not for terminals: one is made for the command, with all three of its ends.
    let on_a_terminal = |line: &str| {
        let mut script = std::process::Command::new("script");
        let line = format!("{} {line}", env!("CARGO_BIN_EXE_slackline"));
        script.args(["-qec", &line, "/dev/null"]).env("SLACKLINE_SOCKET", dir.path("s.sock"));
        let ran = script.stdin(std::process::Stdio::null()).output().expect("script is there");
        (ran.status.code(), String::from_utf8_lossy(&ran.stdout).into_owned())
    };
    for line in ["play v --rate 1MB/s", "export v -"] {
        let (code, said) = on_a_terminal(line);
        assert!(code == Some(2) && said.contains("would go to the terminal"), "{code:?} {said}");
    }
    assert_eq!(on_a_terminal(&format!("play v {copy} --rate 1MB/s")).0, Some(0));
    assert!(std::fs::read(dir.path("copy")).unwrap() == [7; 3_000]);
    daemon.kill();
    // As systemd starts the daemon, it does not see /home.
    let mut hidden = dir.command(&["serve", "/home/nobody-has-this/pool.img"]);
    hidden.env("INVOCATION_ID", "1").env("STATE_DIRECTORY", dir.path("state"));
    let ran = support::Ran::from(hidden.output().unwrap());
    ran.failed(1, &["/home/nobody-has-this/pool.img: cannot open", "ProtectHome=no"]);
    // Its /tmp is another one.
    let mut hidden = dir.command(&["serve", "/tmp/nobody-has-this/pool.img"]);
    hidden.env("INVOCATION_ID", "1").env("STATE_DIRECTORY", dir.path("state"));
    let ran = support::Ran::from(hidden.output().unwrap());
    ran.failed(1, &["/tmp/nobody-has-this/pool.img: cannot open", "PrivateTmp=no"]);
}

/// A flag goes before the file, the file before the environment.
#[test]
fn a_socket_is_the_flags_else_the_files_else_the_environments() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let (config, in_file) = (dir.text("config.toml"), dir.text("file.sock"));
    std::fs::write(&config, format!("socket = '{in_file}'\n")).unwrap();
    let in_flag = dir.text("flag.sock");
    let by_config = ["--config", &config];
    let by_flag = ["--config", &config, "--socket", &in_flag];
    // The environment says s.sock, always.
    for (flags, served) in [(&by_config[..], "file.sock"), (&by_flag, "flag.sock")] {
        let daemon = dir.try_serve(&disks, flags).unwrap_or_else(|ran| panic!("{}", ran.err));
        for name in ["flag.sock", "file.sock", "s.sock"] {
            let there = dir.run(&["volume", "list", "--socket", &dir.text(name)]).code == Some(0);
            assert_eq!(there, name == served, "{name} by {flags:?}");
        }
        daemon.kill();
    }
    let _daemon = dir.serve(&disks);
    dir.run(&["volume", "list"]).succeeded();
}

/// Who is not let in hears which group is; only root can try that.
#[test]
fn who_may_not_use_the_socket_is_told_which_group_may() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let dir = Scratch::new();
    let root = rustix::process::geteuid().is_root();
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    if !root || !groups.contains("daemon:x:1:") {
        return skips::not_run("needs root, and the group daemon");
    }
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    chown(dir.path("s.sock"), None, Some(1)).unwrap();
    std::fs::set_permissions(dir.path("."), PermissionsExt::from_mode(0o755)).unwrap();
    // Where he can run it, wherever it was built.
    std::fs::copy(env!("CARGO_BIN_EXE_slackline"), dir.path("program")).unwrap();
    let list = |group: &str| {
        let mut list = std::process::Command::new("setpriv");
        list.args(["--reuid=65534", &format!("--regid={group}"), "--clear-groups"]);
        list.arg(dir.path("program")).args(["volume", "list"]);
        support::Ran::from(list.env("SLACKLINE_SOCKET", dir.path("s.sock")).output().unwrap())
    };
    let told =
        ["this user may not use the daemon at", "for the group daemon", "usermod -aG daemon"];
    list("65534").failed(1, &told);
    list("1").succeeded();
}

#[test]
fn a_volume_is_resized_with_its_size_named_or_not() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let _daemon = dir.serve(&disks);
    dir.run(&["volume", "create", "v", "--size", "1MiB"]).succeeded();
    for (size, told) in [(&["--size", "3MiB"][..], "3 MiB"), (&["2MiB"], "2 MiB")] {
        let ran = dir.run(&[&["volume", "resize", "v"], size].concat()).succeeded();
        assert_eq!(ran.out, format!("volume v has {told} now\n").as_bytes());
    }
    assert_eq!(dir.run(&["volume", "resize", "v"]).code, Some(2));
    assert_eq!(dir.run(&["volume", "resize", "v", "1MiB", "--size", "2MiB"]).code, Some(2));
}

/// Another policy is followed at once; one that keeps nothing takes no contract, and says what
/// to do; without admission it takes them, and they are shown as what they are.
#[test]
fn the_policy_is_changed_while_the_daemon_runs_and_one_that_keeps_nothing_promises_nothing() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let record = ["record", "v", "--create", "8MiB", "--rate", "1MB/s"];
    {
        let _daemon = dir.serve(&disks);
        dir.run_with(&record, b"x").recorded();
        for policy in ["edl", "delta-l", "slack"] {
            let set = dir.run(&["pool", "set", "--policy", policy, "--json"]).succeeded().json();
            assert_eq!((&set["policy"], &set["promised"]), (&policy.into(), &true.into()));
            let text = dir.run(&["pool", "status"]).succeeded().text().to_owned();
            assert!(text.contains(&format!("under policy {policy}\n")), "{text}");
        }
        dir.run(&["pool", "set", "--policy", "fair"]).failed(1, &["no such policy", "slack"]);
        dir.run(&["pool", "set", "--policy", "abiss"]).succeeded();
        let what = ["`abiss` keeps no contracts", "pool set --policy slack", "--no-admission"];
        dir.run(&["play", "v", "--rate", "1MB/s"]).failed(3, &what);
        let text = dir.run(&["pool", "status"]).succeeded().text().to_owned();
        assert!(text.contains("policy abiss, which keeps no contracts"), "{text}");
        // A stream that is open keeps the pool from it.
        dir.run(&["pool", "set", "--policy", "slack"]).succeeded();
        let mut child = dir.command(&["record", "w", "--create", "8MiB", "--rate", "1MB/s"]);
        let mut child = child.spawn().unwrap();
        while dir.run(&["stream", "list", "--json"]).succeeded().json()["streams"][0].is_null() {}
        dir.run(&["pool", "set", "--policy", "abiss"]).failed(3, &["keeps no contracts", "stream"]);
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let flags = ["--policy", "abiss", "--no-admission"];
    let _daemon = dir.try_serve(&disks, &flags).unwrap_or_else(|ran| panic!("{}", ran.err));
    let mut child = dir.command(&["record", "x", "--create", "8MiB", "--rate", "1MB/s"]);
    let mut child = child.spawn().unwrap();
    let stream = loop {
        let all = dir.run(&["stream", "list", "--json"]).succeeded().json();
        if !all["streams"][0].is_null() {
            break all["streams"][0].clone();
        }
    };
    assert_eq!(stream["promised"], false);
    assert!(dir.run(&["stream", "list"]).succeeded().text().contains("no promise"));
    let shown = dir.run(&["stream", "show", &stream["id"].to_string()]).succeeded();
    let shown = shown.text();
    assert!(shown.contains("no promise"), "{shown}");
    dir.run(&["volume", "set", "x", "--best-effort-rate", "100kB/s"]).succeeded();
    assert!(dir.run(&["volume", "show", "x"]).succeeded().text().contains("no promise"));
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A pool is promised all the time of its drive, whether it has that as a device or lies in a file
/// on it; so contracts on other files of that drive would be promised the same time again.
#[test]
fn a_file_on_the_drive_of_the_pool_is_refused_a_contract_unless_it_is_meant_so() {
    let dir = Scratch::new();
    let film = dir.text("film");
    let bytes = noise(1, 1 << 20).bytes();
    std::fs::write(&film, &bytes).unwrap();
    let synced = std::fs::File::open(&film).unwrap();
    synced.sync_all().unwrap();
    if !skips::is_fit_for_contracts(&dir.path("")) {
        return skips::not_run("needs TMPDIR on ext4 or xfs");
    }
    let device = engine::HostFile::take(synced.into()).unwrap().device().unwrap();
    // With a profile of its own: nothing is measured on a busy machine.
    let config = format!(
        "[[files.device]]\ndevice = '{}'\nprofile = '{}'\nothers = '1ms'\n",
        device.name,
        dir.text("drive.toml")
    );
    let pool = dir.make_pool(&["a"]);
    let profile = std::fs::read_to_string(dir.text("profile.toml")).unwrap();
    std::fs::write(dir.text("drive.toml"), profile.replace("256MiB", "64TiB")).unwrap();
    std::fs::write(dir.text("config.toml"), config).unwrap();
    let by_config = ["--config", &dir.text("config.toml")];
    let play = ["play", &film, "--rate", "1MB/s", "--block", "64KiB"];

    let daemon = dir.try_serve(&pool, &by_config).unwrap();
    let refused = dir.run(&play);
    refused.failed(1, &["it lies on the drive ", &pool[0], "--shared-drive"]);
    daemon.kill();

    let daemon = dir.try_serve(&pool, &[&by_config[..], &["--shared-drive"]].concat()).unwrap();
    let played = dir.run(&play).succeeded();
    assert!(played.out == bytes);
    dir.run(&["files"]).succeeded().text().lines().find(|line| line.contains(&pool[0])).unwrap();
    daemon.kill();

    // The time of an emulated disk is its model's.
    let disk = vec![dir.disk("e")];
    let create = ["pool", "create", "emulated", "--size", "64MiB", "--overwrite", &disk[0]];
    dir.run(&create).succeeded();
    let daemon = dir.try_serve(&disk, &by_config).unwrap();
    assert!(dir.run(&play).succeeded().out == bytes);
    daemon.kill();
}

/// As root it unmounted whatever was mounted there, and where nothing was it said "Invalid argument".
#[test]
fn what_is_no_mount_of_ours_is_not_unmounted() {
    let dir = Scratch::new();
    let place = dir.text("an empty place");
    std::fs::create_dir(&place).unwrap();
    let told = [&*format!("{place} is no mount of Slackline"), "findmnt", "`umount '/"];
    dir.run(&["unmount", &place]).failed(1, &told);
    let system = |line: &[&str]| {
        let ran = std::process::Command::new(line[0]).args(&line[1..]).output();
        ran.is_ok_and(|ran| ran.status.success())
    };
    // Only root can mount something else there.
    if system(&["mount", "-t", "tmpfs", "none", &place]) {
        let ran = dir.run(&["unmount", &place]);
        assert!(system(&["umount", &place]), "it was unmounted: {ran:?}");
        ran.failed(1, &told);
    }
    dir.run(&["unmount", &dir.text("nowhere")]).failed(1, &["give a directory that is there"]);
}

/// A name is an argument of the line that is told, and nothing else of it.
#[test]
fn a_name_with_a_space_is_one_word_of_what_is_told_to_be_run() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let create = ["volume", "create", "a b", "--size", "1MiB"];
    dir.run(&create).succeeded();
    dir.run(&create).failed(1, &["`slackline volume delete 'a b'`"]);
    dir.run(&["record", "c d", "--rate", "1MB/s"])
        .failed(1, &["`slackline volume create 'c d' --size SIZE`"]);
    dir.run(&["play", "c d", "--rate", "1MB/s"])
        .failed(1, &["or make it: `slackline volume create 'c d' --size SIZE`"]);
}
