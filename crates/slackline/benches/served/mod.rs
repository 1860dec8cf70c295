//! What benchmarks of a running daemon share: a daemon of their own on an emulated disk, and
//! volumes to read.
#![allow(dead_code)] // no benchmark needs all of it

pub mod beside;

use client::Client;
use client::control::VolumeCreate;
use rwrt::Samples;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use units::Bytes;

/// What the device is taken for: no figure here holds best effort back.
pub const PROFILE: &str = r#"
    kind = "linear"
    source = "made up for a comparison"
    confidence = "none"
    capacity = "2GiB"
    flush = "1ms"
    [linear]
    depth = 32
    latency = "1ms"
    read = { fixed = "0.01ms", rate = "4GB/s" }
    write = { fixed = "0.01ms", rate = "4GB/s" }
"#;

/// Adds a time that was measured by the program's clock.
pub fn add(samples: &mut Samples, took: Duration) {
    samples.add(units::Duration::from_nanos(took.as_nanos() as u64));
}

/// A volume that is full.
pub fn make(client: &Client, name: &str, size: Bytes) {
    client.volume_create(&VolumeCreate::new(name, size)).expect("room for it");
    let mut volume = client.best_effort(name).expect("it was made");
    let bytes: Vec<u8> = (0..Bytes::MIB.get()).map(|byte| (byte % 251) as u8).collect();
    for block in 0..size / Bytes::MIB {
        volume.write_at(Bytes::MIB * block, &bytes).expect("an emulated disk");
    }
    volume.sync().expect("an emulated disk");
}

/// A folder in `SLACKLINE_BENCH_DIR`, or where temporary files go. It is removed with the
/// benchmark.
pub fn folder() -> TempDir {
    let mut folder = tempfile::Builder::new();
    folder.prefix("slackline-");
    let made = match std::env::var_os("SLACKLINE_BENCH_DIR") {
        Some(place) => folder.tempdir_in(place),
        None => folder.tempdir(),
    };
    made.expect("a place for gigabytes")
}

/// A folder in memory, which is removed with the benchmark, too.
pub fn memory() -> TempDir {
    let mut folder = tempfile::Builder::new();
    folder.prefix("slackline-").tempdir_in("/dev/shm").expect("a place for gigabytes")
}

/// A daemon that ends with this process.
pub struct Daemon {
    child: Child,
    pub client: Client,
}

impl Daemon {
    /// Serves an emulated disk of `model` in 2 GiB, with these further arguments of
    /// `slackline serve`.
    pub fn start(folder: &TempDir, model: &str, args: &[&str]) -> Self {
        let device = format!("emulated:{model}:{}", folder.path().join("disk.img").display());
        Self::on(folder, &device, &[], args)
    }

    /// Serves a device of 2 GiB, with these further arguments of `slackline pool create` and
    /// of `slackline serve`.
    pub fn on(folder: &TempDir, device: &str, create: &[&str], args: &[&str]) -> Self {
        let slackline = || Command::new(env!("CARGO_BIN_EXE_slackline"));
        let mut making = slackline();
        making.args(["pool", "create", "bench", device, "--size", "2GiB"]).args(create);
        let made = making.output().expect("the built command");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let socket = folder.path().join("s.sock");
        let mut serve = slackline();
        serve.args(["serve", device, "--end-with-input", "--socket"]).arg(&socket).args(args);
        serve.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = serve.spawn().expect("the built command");
        loop {
            match Client::connect(&socket) {
                Ok(client) => return Self { child, client },
                Err(error) => {
                    let ended = child.try_wait().expect("a child");
                    assert!(ended.is_none(), "the daemon ended at once: {error}");
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Time of a processor that the daemon has used.
    pub fn processor(&self) -> Duration {
        processor(self.process())
    }
}

/// Time of a processor that a process has used.
pub fn processor(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let (_, behind) = stat.rsplit_once(')').expect("a name in parentheses");
    let field = |at: usize| behind.split_whitespace().nth(at).and_then(|it| it.parse().ok());
    let ticks: u64 = field(11).unwrap_or(0) + field(12).unwrap_or(0);
    Duration::from_millis(ticks * 10) // USER_HZ is 100 on Linux
}

/// A server that ends with the benchmark.
pub struct Peer(Child);

impl Peer {
    /// Starts it, and waits until it is ready; none where the program is not there.
    ///
    /// # Panics
    /// Where it ends before it is ready.
    pub fn start(command: &mut Command, is_ready: impl Fn() -> bool) -> Option<Self> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let mut child = match started {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            started => started.expect("a program that can be run"),
        };
        while !is_ready() {
            let ended = child.try_wait().expect("a child");
            assert!(ended.is_none(), "{:?} ended at once", command.get_program());
            thread::sleep(Duration::from_millis(10));
        }
        Some(Self(child))
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Asked, not killed: its workers end with it.
        let process = rustix::process::Pid::from_child(&self.0);
        let asked = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        if asked.is_err() {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill(); // what it serves goes with the folder
        let _ = self.child.wait();
    }
}
