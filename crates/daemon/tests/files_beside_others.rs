//! Files under contract on a real file system, beside greedy programs: ext4 or xfs on a loop
//! device over an emulated disk over FUSE, under the kernel's schedulers. Each setting is
//! run with the same players three times: reading the files plainly, through the page
//! cache and its read-ahead; past it in the kernel's real-time class; and under contract.
//!
//! Needs root, FUSE, loop devices and minutes: `SLACKLINE_BESIDE=SECONDS` runs it, with so
//! many seconds each; `SLACKLINE_FILESYSTEM=xfs` on xfs.
#![allow(clippy::print_stdout)] // the table is the result

use crate::support;
use crate::support::Running;
use client::Client;
use client::control::Contract;
use daemon::config::SocketMode;
use daemon::files::{DeviceSettings, Files, Settings};
use daemon::serve::ServeOptions;
use disk::{Model, Profile};
use emulator::{Emulator, Options};
use engine::IoClass;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use units::{Bytes, Rate};

const PLAYERS: usize = 4;
const GREEDY: usize = 8;
const GREEDY_READ: usize = 256 << 10;
const GREEDY_FILE: u64 = 24 << 20;
const RATE: u64 = 1_000_000;
/// What a player takes at a time, every 65.5 ms.
const PIECE: usize = 64 << 10;
const PERIOD: Duration = Duration::from_nanos(PIECE as u64 * 1_000_000_000 / RATE);
/// What is the machine's own lateness.
const GRACE: Duration = Duration::from_millis(10);

/// The file system, taken away with it.
struct Mounted {
    loop_device: String,
    folder: TempDir,
    emulator: Option<Emulator>,
}

fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {complained}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Mounted {
    fn new(model: &Model) -> Self {
        let folder = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let options = Options {
            model: model.clone(),
            directory: folder.path().join("disk"),
            backing: None,
            write_back: false,
            short_transfers: false,
            depth: Some(4),
            orders: Vec::new(),
            on_thread: || drop(engine::keep_time()),
        };
        std::fs::create_dir(folder.path().join("files")).unwrap();
        std::fs::create_dir(folder.path().join("disk")).unwrap();
        let emulator = Emulator::start(&options).unwrap();
        let file = emulator.file().display().to_string();
        let loop_device = run("losetup", &["--find", "--show", "--direct-io=on", &file]);
        let this = Self { loop_device, folder, emulator: Some(emulator) };
        this.set("scheduler", "none");
        this.set("nr_requests", "4");
        match std::env::var("SLACKLINE_FILESYSTEM").as_deref().unwrap_or("ext4") {
            "xfs" => run("mkfs.xfs", &["-q", "-K", &this.loop_device]),
            _ => {
                let without = ["-q", "-O", "^has_journal", "-E", "nodiscard"];
                run("mkfs.ext4", &[&without[..], &[&this.loop_device]].concat())
            }
        };
        let at = this.at("").display().to_string();
        run("mount", &["-o", "noatime", &this.loop_device, &at]);
        this
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("files").join(name)
    }

    fn name(&self) -> &str {
        self.loop_device.rsplit('/').next().unwrap()
    }

    fn set(&self, what: &str, value: &str) {
        let queue = Path::new("/sys/block").join(self.name()).join("queue");
        std::fs::write(queue.join(what), value).unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.at("")).status();
        let _ = Command::new("losetup").args(["--detach", &self.loop_device]).status();
        if let Some(mut emulator) = self.emulator.take() {
            for _ in 0..100 {
                if emulator.unmount().is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Memory that direct reads can go to.
struct Aligned(Vec<u8>, usize);

impl Aligned {
    fn new() -> Self {
        let memory = vec![0; GREEDY_READ + 4096];
        let begin = memory.as_ptr().align_offset(4096);
        Self(memory, begin)
    }
    fn bytes(&mut self, len: usize) -> &mut [u8] {
        &mut self.0[self.1..][..len]
    }
}

fn direct(path: &Path) -> File {
    let flag = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).custom_flags(flag).open(path).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Plain,
    RealTimeClass,
    Contract,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    pieces: u64,
    late: u64,
    most: Duration,
    woken_late: Duration,
}

/// Takes a piece a period, on time: how many came more than a period after they were due.
fn play(time: Duration, mut read: impl FnMut(u64)) -> Seen {
    let mut seen = Seen::default();
    read(0);
    let start = Instant::now();
    for piece in 1.. {
        let due = start + PERIOD * piece as u32;
        if due > start + time {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        seen.woken_late = seen.woken_late.max(due.elapsed());
        read(piece);
        let wait = due.elapsed();
        seen.pieces += 1;
        seen.late += u64::from(wait > PERIOD + GRACE);
        seen.most = seen.most.max(wait);
    }
    seen
}

fn player(mounted: &Mounted, client: &Client, way: Way, number: usize, time: Duration) -> Seen {
    let path = mounted.at(&format!("film-{number}"));
    let _ = engine::keep_time(); // the same for all ways
    match way {
        Way::Plain => {
            let mut file = File::open(&path).unwrap();
            let mut piece = vec![0; PIECE];
            play(time, |_| file.read_exact(&mut piece).unwrap())
        }
        Way::RealTimeClass => {
            engine::io_class(IoClass::RealTime).unwrap();
            let (file, mut memory) = (direct(&path), Aligned::new());
            play(time, |at| {
                file.read_exact_at(memory.bytes(PIECE), at * PIECE as u64).unwrap();
            })
        }
        Way::Contract => {
            let contract = Contract {
                rate_bytes_per_second: Rate::per_second(RATE),
                block_bytes: Bytes::kib(512),
                burst_bytes: Bytes::kib(512),
            };
            let mut reader = client.file_reader(&path, contract, Bytes::ZERO).unwrap();
            let mut piece = vec![0; PIECE];
            let seen = play(time, |_| reader.read_exact(&mut piece).unwrap());
            reader.close().unwrap();
            seen
        }
    }
}

/// All players and the greedy ones; the worst of what the players saw, and what the greedy
/// ones read in a second.
fn load(mounted: &Mounted, client: &Client, way: Way, time: Duration) -> (Seen, f64) {
    std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    let (over, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut all = Seen::default();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..GREEDY {
            let (over, bytes) = (&over, &bytes);
            scope.spawn(move || {
                let file = direct(&mounted.at(&format!("greedy-{number}")));
                let mut memory = Aligned::new();
                let mut random = number as u64 + 1;
                while !over.load(Ordering::Relaxed) {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let at = (random >> 33) % (GREEDY_FILE / GREEDY_READ as u64);
                    let into = memory.bytes(GREEDY_READ);
                    file.read_exact_at(into, at * GREEDY_READ as u64).unwrap();
                    bytes.fetch_add(GREEDY_READ as u64, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_millis(300));
        let players: Vec<_> = (0..PLAYERS)
            .map(|number| scope.spawn(move || player(mounted, client, way, number, time)))
            .collect();
        for one in players {
            let seen = one.join().unwrap();
            all.pieces += seen.pieces;
            all.late += seen.late;
            all.most = all.most.max(seen.most);
            all.woken_late = all.woken_late.max(seen.woken_late);
        }
        over.store(true, Ordering::Relaxed);
    });
    let rate = bytes.into_inner() as f64 / began.elapsed().as_secs_f64() / 1e6;
    (all, rate)
}

fn fill(path: &Path, len: u64) {
    let mut file = File::create(path).unwrap();
    let chunk = support::noise(1 << 20);
    for _ in 0..len >> 20 {
        file.write_all(&chunk).unwrap();
    }
    file.sync_all().unwrap();
}

#[test]
fn fewer_pieces_are_late_under_contract_than_without_beside_greedy_programs() {
    let Some(seconds) = std::env::var("SLACKLINE_BESIDE").ok().and_then(|s| s.parse().ok()) else {
        return skips::not_run("needs SLACKLINE_BESIDE=SECONDS, for minutes of real time");
    };
    let time = Duration::from_secs(seconds);
    let model = Model::named("seagate-st318437lw").unwrap();
    let mounted = Mounted::new(&model);
    for number in 0..PLAYERS.max(GREEDY) {
        if number < PLAYERS {
            fill(&mounted.at(&format!("film-{number}")), (seconds + 4) << 20);
        }
        fill(&mounted.at(&format!("greedy-{number}")), GREEDY_FILE);
    }
    let profile = mounted.folder.path().join("profile.toml");
    std::fs::write(&profile, Profile::of(&model).to_toml()).unwrap();
    println!("{PLAYERS} players of 1 MB/s beside {GREEDY} greedy readers, {seconds} s each");
    println!("scheduler    way            pieces  late  latest by ms  woken late ms  greedy MB/s");
    let mut late = Vec::new();
    for scheduler in ["none", "mq-deadline", "bfq"] {
        mounted.set("scheduler", scheduler);
        let device = DeviceSettings {
            device: mounted.name().into(),
            profile: Some(profile.clone()),
            ..DeviceSettings::default()
        };
        let settings = Settings { device: vec![device], ..Settings::default() };
        let files = Files::new(&settings, units::Duration::from_millis(2));
        let options = ServeOptions { files, ..ServeOptions::from(SocketMode(0o600)) };
        let daemon = Running::start_by(options);
        for way in [Way::Plain, Way::RealTimeClass, Way::Contract] {
            let (seen, greedy) = load(&mounted, &daemon.client, way, time);
            println!(
                "{scheduler:12} {:14} {:6} {:5} {:13} {:14} {greedy:12.2}",
                format!("{way:?}"),
                seen.pieces,
                seen.late,
                seen.most.as_millis(),
                seen.woken_late.as_millis(),
            );
            late.push((scheduler, way, seen.late));
        }
        for device in daemon.client.file_devices().unwrap().devices {
            println!(
                "             {} reads, {} late by at most {}, {} disturbed by at most {}",
                device.requests,
                device.late_requests,
                device.late_max_ns,
                device.disturbed,
                device.disturbed_max_ns
            );
        }
    }
    println!("emulator late: {:?}", mounted.emulator.as_ref().unwrap().status().late.max());
    for scheduler in ["mq-deadline", "bfq"] {
        let of = |wanted: Way| {
            late.iter().find(|(s, way, _)| *s == scheduler && *way == wanted).unwrap().2
        };
        assert!(of(Way::Contract) == 0, "{late:?}");
        assert!(of(Way::Plain) + of(Way::RealTimeClass) > 0, "{late:?}");
    }
}
