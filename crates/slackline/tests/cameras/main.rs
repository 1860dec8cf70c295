//! `slackline cameras` beside commands that end, hang and give too much, and beside a daemon that is
//! killed.
//!
//! A camera here counts: each 16 bytes are a number and a new line, in whole packets. So what is in a
//! volume says which bytes of which start of the command it has, and which are missing.

mod beside;
mod hearing;
mod pages;
mod starting;
#[path = "../support/mod.rs"]
mod support;
mod ten;

use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use support::{Scratch, signal, wait_until};

/// Bytes of a number.
const LINE: u64 = 16;

/// A file of cameras, and the supervisor that runs for it.
struct Cameras<'a> {
    dir: &'a Scratch,
    file: String,
    events: PathBuf,
    child: Child,
}

/// Writes the file.
fn write(dir: &Scratch, cameras: &str) -> String {
    let (file, socket) = (dir.text("cameras.toml"), dir.text("c.sock"));
    let defaults = "size = '16MiB'\nrate = '6MB/s'\nrate_max = '6MB/s'\nblock = '256KiB'\n\
                    packet = '16B'\nretry = '20ms'\n";
    std::fs::write(&file, format!("status = '{socket}'\n[defaults]\n{defaults}{cameras}")).unwrap();
    file
}

/// A camera that counts up to `to`, about 4 MB/s, and then does `then`. The number of its process
/// stands in the file of its name.
fn counts(dir: &Scratch, name: &str, to: u64, then: &str) -> String {
    let pid = dir.text(name);
    format!(
        "[[camera]]\nname = '{name}'\ncommand = ['sh', '-c', '''echo $$ >{pid}; i=0\n\
         while [ $i -lt {to} ]; do seq -f %015.0f $i $((i + 4999)); i=$((i + 5000)); sleep 0.02; \
         done; {then}''']\n"
    )
}

impl<'a> Cameras<'a> {
    fn start(dir: &'a Scratch, cameras: &str) -> Self {
        Self::start_file(dir, write(dir, cameras))
    }

    /// The same of a file that was written.
    fn start_file(dir: &'a Scratch, file: String) -> Self {
        let events = dir.path("events");
        let mut command = dir.command(&["cameras", &file, "--json"]);
        command.stdout(File::create(&events).unwrap()).stdin(Stdio::null());
        let child = command.spawn().unwrap();
        Self { dir, file, events, child }
    }

    /// One camera, as the status socket has it; null while nobody answers.
    fn seen(&self, name: &str) -> Value {
        let Ok(mut from) = UnixStream::connect(self.dir.path("c.sock")) else { return Value::Null };
        let mut text = String::new();
        // Of one that is being killed nothing comes, or a part.
        let read = from.read_to_string(&mut text);
        let Some(all) = read.ok().and_then(|_| serde_json::from_str::<Value>(&text).ok()) else {
            return Value::Null;
        };
        let all = all["cameras"].as_array().unwrap();
        all.iter().find(|seen| seen["name"] == name).unwrap().clone()
    }

    fn durable(&self, name: &str) -> u64 {
        self.seen(name)["durable_bytes"].as_u64().unwrap_or(0)
    }

    /// The events of this kind so far.
    fn events(&self, kind: &str) -> Vec<Value> {
        told(&self.events).into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// Ends it at once.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as a service manager does; it ends with 0.
    fn end(mut self) -> Vec<Value> {
        signal(self.child.id(), "TERM");
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!((status.code(), &*said), (Some(0), ""));
        self.events("lost")
    }
}

impl Drop for Cameras<'_> {
    /// Its commands end with it only where it can end them. Of a test that fails it is told how all
    /// stood: what happened, the pool with its disks, and the streams.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let events = std::fs::read_to_string(&self.events).unwrap_or_default();
            let last = events.lines().count().saturating_sub(40);
            eprintln!("events:\n{}", events.lines().skip(last).collect::<Vec<_>>().join("\n"));
            for of in [["pool", "status"], ["stream", "list"]] {
                let ran = self.dir.run(&of);
                eprintln!("{of:?}:\n{}{}", String::from_utf8_lossy(&ran.out), ran.err);
            }
        }
        if self.child.try_wait().unwrap().is_none() {
            signal(self.child.id(), "TERM");
            self.child.wait().unwrap();
        }
    }
}

/// The events that stand in a file.
fn told(events: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(events).unwrap();
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The numbers in a volume.
fn numbers(dir: &Scratch, volume: &str) -> Vec<u64> {
    let back = dir.run(&["play", volume, "--rate", "20MB/s"]).succeeded().out;
    assert!((back.len() as u64).is_multiple_of(LINE), "whole packets: {}", back.len());
    let lines = back.chunks(LINE as usize);
    lines.map(|line| std::str::from_utf8(line).unwrap().trim_end().parse().unwrap()).collect()
}

/// Where a number does not follow the one before: what stands there.
fn breaks(numbers: &[u64]) -> Vec<(u64, u64)> {
    numbers.windows(2).filter(|two| two[1] != two[0] + 1).map(|two| (two[0], two[1])).collect()
}

#[test]
fn a_killed_command_is_started_again_and_a_killed_daemon_costs_no_byte() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    let cameras = Cameras::start(&dir, &counts(&dir, "gate", 1_000_000, "true"));
    wait_until(|| cameras.durable("gate") > 200_000);
    let pid = std::fs::read_to_string(dir.path("gate")).unwrap();
    signal(pid.trim().parse().unwrap(), "KILL");
    wait_until(|| cameras.seen("gate")["starts"] == 2);
    let before = cameras.durable("gate");
    wait_until(|| cameras.durable("gate") > before + 300_000);
    let text = dir.run(&["cameras", &cameras.file, "--status"]).succeeded();
    assert!(text.text().contains("gate") && text.text().contains("recording"), "{}", text.text());
    let down = cameras.events("down");
    assert!(down[0]["detail"].as_str().unwrap().contains("ended by signal 9"), "{down:?}");

    let acknowledged = cameras.durable("gate");
    daemon.kill();
    wait_until(|| cameras.seen("gate")["state"] == "no daemon");
    let given = cameras.seen("gate")["given_bytes"].as_u64().unwrap();
    // It goes on giving while nobody takes it.
    wait_until(|| cameras.seen("gate")["given_bytes"].as_u64().unwrap() > given + 500_000);
    let _daemon = dir.serve(&disks);
    wait_until(|| cameras.durable("gate") > acknowledged + 1_000_000);
    let seen = cameras.seen("gate");
    assert_eq!((&seen["state"], &seen["lost_bytes"]), (&"recording".into(), &0.into()));
    assert!(cameras.events("open").len() == 2, "before and after");
    assert!(cameras.end().is_empty(), "nothing was lost");

    let numbers = numbers(&dir, "gate");
    let (last, first) = breaks(&numbers)[0];
    assert_eq!((breaks(&numbers).len(), numbers[0], first), (1, 0, 0), "two whole starts: {last}");
    assert!(numbers.len() as u64 * LINE > acknowledged + 1_000_000);
}

#[test]
fn what_a_full_buffer_drops_is_counted_to_the_byte() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    let camera = counts(&dir, "gate", 1_000_000, "true") + "buffer = '1MiB'\n";
    let cameras = Cameras::start(&dir, &camera);
    wait_until(|| cameras.durable("gate") > 200_000);
    daemon.kill();
    wait_until(|| cameras.seen("gate")["lost_bytes"].as_u64().unwrap() > 300_000);
    let _daemon = dir.serve(&disks);
    let at = cameras.durable("gate");
    wait_until(|| cameras.durable("gate") > at + 1_500_000);
    let lost = cameras.seen("gate")["lost_bytes"].as_u64().unwrap();
    let told = cameras.end();
    assert_eq!(told.iter().map(|event| event["bytes"].as_u64().unwrap()).sum::<u64>(), lost);
    assert!(told[0]["from"].as_str().unwrap() <= told[0]["to"].as_str().unwrap());

    let gaps = breaks(&numbers(&dir, "gate"));
    let missing: u64 = gaps.iter().map(|(last, next)| next - last - 1).sum();
    assert_eq!(missing * LINE, lost, "{gaps:?}");
}

/// What nobody reads holds up no camera, and not the end.
#[test]
fn a_supervisor_that_nobody_listens_to_records_on_and_ends() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    // Each time it fails it says something else, so that each time is told.
    let fails = "[[camera]]\nname = 'fails'\nretry_max = '20ms'\ncommand = ['sh', '-c', \
                 'head -c 300 /dev/zero | tr \"\\\\0\" x >&2; echo >&2; echo $$ >&2; exit 1']\n";
    let gate = counts(&dir, "gate", 4_000_000, "true") + "size = '64MiB'\n";
    let file = write(&dir, &(gate + fails));
    let (mut told, to) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&to, 4_096).unwrap();
    let mut command = dir.command(&["cameras", &file, "--json"]);
    let child = command.stdout(to).stdin(Stdio::null()).spawn().unwrap();
    drop(command);
    let mut cameras = Cameras { dir: &dir, file, events: dir.path("none"), child };
    wait_until(|| cameras.seen("fails")["starts"].as_u64() > Some(30));
    let before = cameras.durable("gate");
    wait_until(|| cameras.durable("gate") > before + 500_000);
    signal(cameras.child.id(), "TERM");
    let mut ended = None;
    wait_until(|| {
        ended = cameras.child.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(0));
    let mut text = String::new();
    told.read_to_string(&mut text).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["event"], "open");
    assert!(text.len() <= 4_096, "what was told of 30 failures fills the pipe: {}", text.len());
    assert!(breaks(&numbers(&dir, "gate")).is_empty());
}

/// Of a supervisor that was stopped nothing is heard, and that is said.
#[test]
fn one_camera_of_a_file_is_meant_by_its_name() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let both = counts(&dir, "gate", 1_000_000, "true") + &counts(&dir, "yard", 1_000_000, "true");
    let file = write(&dir, &both);
    let one = ["cameras", &file, "--camera", "yard"];
    let check = dir.run(&[&one[..], &["--check", "--json"]].concat()).succeeded().json();
    assert_eq!(check["cameras"].as_array().unwrap().len(), 1);
    let mut command = dir.command(&[&one[..], &["--json"]].concat());
    let events = dir.path("events");
    command.stdout(File::create(&events).unwrap()).stdin(Stdio::null());
    let child = command.spawn().unwrap();
    let cameras = Cameras { dir: &dir, file, events, child };
    wait_until(|| cameras.seen("yard")["durable_bytes"].as_u64() > Some(100_000));
    let file = &cameras.file;
    let text = dir.run(&["cameras", file, "--status", "--camera", "yard"]).succeeded();
    assert!(text.text().contains("yard") && !text.text().contains("gate"), "{}", text.text());
    let none = dir.run(&["cameras", file, "--status", "--camera", "gate"]);
    none.failed(1, &["the supervisor of", "has no camera gate", "yard"]);
    dir.run(&["cameras", file, "--check", "--camera", "gatt"])
        .failed(1, &["no camera gatt", "gate, yard"]);
    signal(cameras.child.id(), "STOP");
    dir.run(&["cameras", file, "--status"]).failed(1, &["does not answer", "was stopped"]);
    signal(cameras.child.id(), "CONT");
    assert!(cameras.end().is_empty(), "nothing was lost");
    dir.run(&["volume", "show", "gate"]).failed(1, &["gate"]);
}

/// Whether somebody of this group of processes still runs, after a moment.
fn runs(group: &str) -> bool {
    let runs = || {
        let args = ["-r", "S,R,D,T", "-g", group];
        std::process::Command::new("pgrep").args(args).output().unwrap().status.success()
    };
    (0..200).all(|_| runs())
}

#[test]
fn a_command_that_gives_nothing_is_ended_with_all_that_it_has_started() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let _daemon = dir.serve(&disks);
    let hangs = counts(&dir, "gate", 5_000, "echo rtsp://me:word@cam hangs >&2; sleep 60 & wait");
    let cameras = Cameras::start(&dir, &(hangs + "stall = '300ms'\n"));
    wait_until(|| cameras.seen("gate")["starts"].as_u64().unwrap_or(0) >= 3);
    let down = cameras.events("down");
    let why = down[0]["detail"].as_str().unwrap();
    assert!(why.contains("gave no byte for 300 ms") && why.contains("rtsp://***@cam"), "{why}");
    let pid = std::fs::read_to_string(dir.path("gate")).unwrap();
    cameras.end();
    // Nobody of its group runs any more; whoever was killed may wait for somebody to reap it.
    assert!(!runs(pid.trim()), "its group still runs");
    let numbers = numbers(&dir, "gate");
    assert!(numbers.len() >= 10_000 && breaks(&numbers).iter().all(|gap| *gap == (4_999, 0)));
}

/// A camera that does this for ever, and does not hear who asks it to end. Its number goes into a file.
fn deaf(pid: &str, does: &str) -> String {
    format!(
        "[[camera]]\nname = 'gate'\nrate = '1MB/s'\nsize = '64MiB'\nring = true\nbuffer = '1MiB'\n\
         command = ['sh', '-c', \"\"\"trap '' TERM; echo $$ >{pid}; while :; do {does}; done\"\"\"]\n"
    )
}

/// Its output is always there to be read, and whoever asks it to end is not heard.
#[test]
fn a_command_that_never_pauses_and_does_not_end_is_killed() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let pid = dir.text("pid");
    let file = deaf(&pid, "cat /dev/zero");
    let cameras = Cameras::start(&dir, &file);
    wait_until(|| cameras.durable("gate") > 100_000);
    let pid = std::fs::read_to_string(&pid).unwrap();
    cameras.end();
    assert!(!runs(pid.trim()), "its group still runs");
}

/// Whoever cannot wait for the end leaves no command behind, not even one that does not hear.
#[test]
fn a_second_interrupt_kills_what_runs() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let pid = dir.text("pid");
    let file = deaf(&pid, "head -c 9000 /dev/zero; sleep 0.1");
    let mut cameras = Cameras::start(&dir, &file);
    wait_until(|| cameras.durable("gate") > 0);
    let pid = std::fs::read_to_string(&pid).unwrap();
    signal(cameras.child.id(), "INT");
    // Two signals that come at once are one: as often as somebody would who waits.
    wait_until(|| {
        signal(cameras.child.id(), "INT");
        cameras.child.try_wait().unwrap().is_some()
    });
    assert_eq!(cameras.child.wait().unwrap().code(), Some(130));
    assert!(!runs(pid.trim()), "its group still runs");
}

#[test]
fn a_camera_above_its_contract_gets_a_larger_one_and_a_full_volume_goes_on_with_more_room() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    // It gives 4 MB/s, so that the contract is larger long before the volume is full.
    let terms = "rate = '500kB/s'\nrate_max = '6MB/s'\nwindow = '300ms'\nsize = '12MiB'\n";
    let cameras = Cameras::start(&dir, &(counts(&dir, "gate", 4_000_000, "true") + terms));
    wait_until(|| !cameras.events("rate").is_empty());
    let granted = cameras.events("rate")[0]["rate_bytes_per_second"].as_u64().unwrap();
    assert!(granted > 500_000, "{granted}");
    wait_until(|| cameras.seen("gate")["state"] == "full");
    // Its state is seen a moment before it is told.
    wait_until(|| !cameras.events("full").is_empty());
    let full = cameras.events("full");
    assert!(full[0]["next_step"].as_str().unwrap().contains("volume resize gate"), "{full:?}");
    dir.run(&["volume", "resize", "gate", "64MiB"]).succeeded();
    wait_until(|| cameras.durable("gate") > 14 << 20);
    let size = cameras.seen("gate")["size_bytes"].as_u64();
    let lost = cameras.seen("gate")["lost_bytes"].as_u64().unwrap();
    cameras.end();
    assert_eq!(size, Some(64 << 20));
    let gaps = breaks(&numbers(&dir, "gate"));
    let missing: u64 = gaps.iter().map(|(last, next)| next - last - 1).sum();
    assert_eq!(missing * LINE, lost, "{gaps:?}");
}

/// A camera whose volume is a ring never fills it; a volume that is none is not taken for one.
#[test]
fn a_camera_on_a_ring_is_never_full() {
    let dir = Scratch::new();
    let quick = ["--commit-interval", "100ms"];
    let _daemon = dir.try_serve(&dir.make_pool(&["a"]), &quick).unwrap();
    // A ring of half that size is taken by a host that is in time; one that was late has larger windows
    // for minutes.
    let (terms, plain) = ("size = '80MiB'\nkeep = '1d'\n", "size = '1MiB'\n");
    dir.run(&["volume", "create", "yard", "--size", "1MiB"]).succeeded();
    let yard = counts(&dir, "yard", 1_000_000, "true") + plain + "ring = true\n";
    let file = counts(&dir, "gate", 8_000_000, "sleep 100") + terms + &yard;
    let cameras = Cameras::start(&dir, &file);
    wait_until(|| cameras.durable("gate") > 76 << 20);
    let gate = cameras.seen("gate");
    assert_eq!((&gate["state"], &gate["lost_bytes"]), (&"recording".into(), &0.into()));
    assert!(gate["seconds_left"].is_null(), "{gate}");
    let lasts = gate["seconds_kept"].as_u64().unwrap();
    assert!((3..90).contains(&lasts), "80 MiB are some seconds: {lasts}");
    let yard = cameras.seen("yard");
    assert_eq!(yard["state"], "failed");
    assert!(yard["why"].as_str().unwrap().contains("yard is no ring"), "{yard}");
    let text = dir.run(&["cameras", &cameras.file, "--status"]).succeeded().text().to_owned();
    assert!(text.contains("ring of"), "{text}");
    cameras.end();
    let volume = dir.run(&["volume", "show", "gate", "--json"]).succeeded().json();
    assert_eq!(volume["ring"]["keep_ns"], 86_400_000_000_000u64);
    let start = volume["ring"]["start_bytes"].as_u64().unwrap();
    assert!(start >= 16 << 20, "{start}");
    let numbers = numbers(&dir, "gate");
    assert_eq!((breaks(&numbers), numbers[0]), (vec![], start / LINE));
}

#[test]
fn before_anything_is_started_a_file_is_read_and_the_daemon_is_asked() {
    let dir = Scratch::new();
    let file = write(&dir, "[[camera]]\nname = 'gate'\nrate = '2 MB'\n");
    dir.run(&["cameras", &file]).failed(2, &["line 11", "examples/recorder.toml"]);
    dir.run(&["cameras", &dir.text("none.toml")]).failed(1, &["none.toml"]);

    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let camera = |name: &str, rate: &str| {
        format!(
            "[[camera]]\nname = '{name}'\ncommand = ['sh', '-c', 'exit 1']\nrate = '{rate}'\nrate_max = '1GB/s'\n"
        )
    };
    let file = write(&dir, &(camera("gate", "1MB/s") + &camera("yard", "1MB/s")));
    // What lies where the status socket shall be is no socket that somebody left behind.
    std::fs::write(dir.path("c.sock"), "kept").unwrap();
    dir.run(&["cameras", &file]).failed(1, &["something else than a socket", "status = "]);
    assert_eq!(std::fs::read(dir.path("c.sock")).unwrap(), b"kept");
    std::fs::remove_file(dir.path("c.sock")).unwrap();
    let checked = dir.run(&["cameras", &file, "--check"]).succeeded();
    assert!(checked.text().contains("2 cameras: all fit"), "{}", checked.text());
    assert_eq!(dir.run(&["volume", "list", "--json"]).json()["volumes"], serde_json::json!([]));
    dir.run(&["cameras", &file, "--status"]).failed(1, &["no supervisor answers", "start it"]);

    let file = write(&dir, &(camera("gate", "1MB/s") + &camera("huge", "900MB/s")));
    dir.run(&["cameras", &file, "--check"]).failed(3, &["camera huge: refused", "`rate` smaller"]);
    // A ring that the daemon would take no such stream to: the size that it names is taken.
    let ring = |rate: &str, size: u64| {
        let ring = format!("size = '{size}B'\nring = true\nblock = '1MiB'\n");
        let file = write(&dir, &(camera("gate", rate) + &ring));
        dir.run(&["cameras", &file, "--check", "--json"])
    };
    assert_eq!(ring("1MB/s", 64 << 20).succeeded().json()["fits"], true);
    let small = ring("12MB/s", 32 << 20);
    assert!(small.code == Some(3) && small.json()["fits"] == false, "{}", small.err);
    assert!(small.err.contains("a ring of 32 MiB is too small"), "{}", small.err);
    let least = small.json()["cameras"][0]["ring_least_bytes"].as_u64().unwrap();
    assert!(least > 32 << 20, "{least}");
    ring("12MB/s", least).succeeded();
    for (size, code) in [(least - (16 << 20), 1), (least, 0)] {
        let (name, size) = (format!("r{size}"), format!("{size}B"));
        let record =
            ["record", &name, "--create", &size, "--ring", "--rate", "12MB/s", "--block", "1MiB"];
        let ran = dir.run_with(&record, b"x");
        assert!(ran.code == Some(code), "{size}: {}", ran.err);
        assert!(code == 0 || ran.err.contains("too small"), "{}", ran.err);
        dir.run(&["volume", "delete", &name, "--yes"]);
    }
    let file = write(&dir, &(camera("gate", "1MB/s") + "size = '1GiB'\n"));
    dir.run(&["cameras", &file, "--check"]).failed(3, &["take 1 GiB", "`size` or `keep` smaller"]);
    // Where neither the rate nor the room suffices, both are told.
    let file = write(&dir, &(camera("huge", "900MB/s") + "size = '1GiB'\n"));
    let said = ["camera huge: refused", "take 1 GiB", "`rate` smaller", "`size` or `keep` smaller"];
    dir.run(&["cameras", &file, "--check"]).failed(3, &said);
}
