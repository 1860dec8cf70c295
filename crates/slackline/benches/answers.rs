//! From a program's call to its answer, under a contract of a volume, beside greedy programs.
//!
//! `cargo bench -p slackline --bench answers`. A daemon of its own serves an emulated laptop
//! disk, whose file is in `SLACKLINE_BENCH_DIR`, or where temporary files go, and is removed
//! at the end. The volume `asked` is promised 4 KiB within 300 ms, every 300 ms; a program
//! reads it as often, at places of a fixed random sequence, and measures by its own clock.
//! Beside it run no greedy programs, six with 1 MiB at a time in a pool of 32 MiB, and forty
//! of another user in one of 256 MiB, each with as much unanswered as a connection may have.
//! `SLACKLINE_ANSWERS` says how many are measured in each scene (1,000: five minutes).
//! `SLACKLINE_QUICK`: a few, which show that it runs and nothing else.
//!
//! The contract binds the disk and the daemon, not the host. So the host's own lateness stands
//! beside each scene, by three clocks: the program's sleep, the daemon's disk threads, and the
//! ends of commands on the emulated disk. An answer that came late although none of them was is
//! the daemon's.
#![allow(clippy::print_stdout)]

mod served;

use client::Client;
use client::control::{Access, Permissions, Service, Status};
use report::Table;
use rwrt::Samples;
use served::{Daemon, add, folder, make};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};
use units::Bytes;

const LEN: Bytes = Bytes::kib(4);
const WITHIN: Duration = Duration::from_millis(300);
/// Whoever is nobody: greedy programs of another user run as this one, where root measures.
const NOBODY: u32 = 65534;
/// Says to this program that it is a greedy one, and where the daemon is.
const GREEDY: &str = "SLACKLINE_BENCH_GREEDY";

struct Scene {
    title: &'static str,
    memory: &'static str,
    /// Connections, each of a process of its own.
    greedy: u32,
    /// Of another user than the one who measures, where root measures.
    others: bool,
}

const SCENES: [Scene; 3] = [
    Scene { title: "alone, 256 MiB", memory: "256MiB", greedy: 0, others: false },
    Scene { title: "six greedy, 32 MiB", memory: "32MiB", greedy: 6, others: false },
    Scene { title: "forty of another user, 256 MiB", memory: "256MiB", greedy: 40, others: true },
];

fn quick() -> bool {
    std::env::var_os("SLACKLINE_QUICK").is_some()
}

/// Of each volume. It is filled at the pace of the emulated disk.
fn size() -> Bytes {
    if quick() { Bytes::mib(4) } else { Bytes::mib(64) }
}

/// What one scene showed.
struct Seen {
    answers: Samples,
    /// How late the host woke the program.
    sleep: Samples,
    /// What the daemon says at the end.
    status: Status,
}

fn main() {
    if let Ok(socket) = std::env::var(GREEDY) {
        return grab(&Client::at(socket));
    }
    let answers = std::env::var("SLACKLINE_ANSWERS").ok().and_then(|text| text.parse().ok());
    let answers: u64 = answers.unwrap_or(if quick() { 5 } else { 1_000 });
    println!("4 KiB within 300 ms, every 300 ms; {answers} answers in each scene; times in ms\n");
    let mut table = Table::new(&[
        "from call to answer",
        ">50 %",
        ">99.9 %",
        ">largest",
        ">over 300",
        ">daemon: late",
        ">daemon: longest",
    ]);
    let mut host = Table::new(&[
        "the host was late, largest",
        ">program's sleep",
        ">disk threads",
        ">ends of commands",
    ]);
    for scene in &SCENES {
        let Seen { answers, sleep, status } = run(scene, answers);
        let asked = status.volumes.iter().find(|volume| volume.name == "asked");
        let account = &asked.expect("it was made").account;
        let millis = |time: units::Duration| report::number(time.as_millis_f64());
        let figures = answers.figures();
        table.row(vec![
            scene.title.into(),
            millis(units::Duration::from_nanos(figures.p50_ns)),
            millis(units::Duration::from_nanos(figures.p999_ns)),
            millis(answers.max()),
            answers.above(units::Duration::from_nanos(WITHIN.as_nanos() as u64)).to_string(),
            account.late_requests.to_string(),
            millis(account.latency_max_ns),
        ]);
        host.row(vec![
            scene.title.into(),
            millis(sleep.max()),
            millis(status.host_wakeups.max_ns),
            millis(status.host_completions.max_ns),
        ]);
    }
    println!("{}\n{}", table.text("  "), host.text("  "));
}

fn run(scene: &Scene, answers: u64) -> Seen {
    let folder = folder();
    open_to_all(folder.path());
    let args = ["--memory", scene.memory, "--socket-mode", "0666"];
    let daemon = Daemon::start(&folder, "laptop-4200", &args);
    let client = &daemon.client;
    for name in ["asked", "greedy"] {
        make(client, name, size());
    }
    let mode = Permissions::new(0o666);
    client.volume_access("greedy", &Access { mode, ..Access::default() }).expect("its owner asks");
    let time = units::Duration::from_nanos(WITHIN.as_nanos() as u64);
    let service = Service::Latency { len_bytes: LEN, within_ns: time, every_ns: time };
    client.volume_service("asked", &service).expect("an idle disk can keep it");

    let greedy: Vec<_> = (0..scene.greedy).map(|_| Greedy::start(client, scene.others)).collect();
    let mut volume = client.best_effort("asked").expect("it was made");
    let (mut seen, mut sleep) = (Samples::default(), Samples::default());
    let mut into = vec![0; LEN.as_usize()];
    // Until the greedy ones have all the memory that they can have.
    let mut due = Instant::now() + Duration::from_secs(2);
    let mut place: u64 = 1;
    for _ in 0..answers {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        add(&mut sleep, due.elapsed());
        place =
            place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let began = Instant::now();
        let at = LEN * ((place >> 33) % (size() / LEN));
        volume.read_at(at, &mut into).expect("it was filled");
        add(&mut seen, began.elapsed());
        // What is asked sooner than the contract says has no promise.
        due = began + WITHIN;
    }
    drop(greedy);
    Seen { answers: seen, sleep, status: client.status().expect("the daemon is there") }
}

/// The greedy ones of another user come to the socket.
fn open_to_all(folder: &Path) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder, mode).expect("it was just made");
}

/// A program that reads as fast as it gets, in a process of its own, until it is dropped.
struct Greedy(Child);

impl Greedy {
    fn start(client: &Client, other: bool) -> Self {
        // By its descriptor: the other user need not be able to reach the file by its path.
        let mut command = Command::new("/proc/self/exe");
        command.env(GREEDY, client.socket());
        if other && rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Self(command.spawn().expect("this program"))
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads 1 MiB at a time, with as much unanswered as a connection may have.
fn grab(client: &Client) {
    let mut volume = client.best_effort("greedy").expect("it was made");
    for place in 0.. {
        if volume.outstanding() == 8 && volume.take().is_err() {
            return;
        }
        if volume.begin_read(Bytes::MIB * (place * 7 % (size() / Bytes::MIB)), Bytes::MIB).is_err()
        {
            return;
        }
    }
}
