//! What benchmarks of a running daemon share: a daemon of their own on an emulated disk, and
//! volumes to read.
#![allow(dead_code)] // no benchmark needs all of it

use client::Client;
use client::control::VolumeCreate;
use rwrt::Samples;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use units::Bytes;

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

    /// Time of a processor that the daemon has used.
    pub fn processor(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).expect("a child");
        let (_, behind) = stat.rsplit_once(')').expect("a name in parentheses");
        let field = |at: usize| behind.split_whitespace().nth(at).and_then(|it| it.parse().ok());
        let ticks: u64 = field(11).unwrap_or(0) + field(12).unwrap_or(0);
        Duration::from_millis(ticks * 10) // USER_HZ is 100 on Linux
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill(); // what it serves goes with the folder
        let _ = self.child.wait();
    }
}
