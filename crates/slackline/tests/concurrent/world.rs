//! A pool on disks that forget, its daemon, and how it ends.

use crate::programs::{self, CELL, VOLUMES, name, tick};
use crate::support::forgetful::{self, emulate};
use crate::support::{Daemon, Scratch};
use client::Client;
use client::control::VolumeCreate;
use emulator::Emulator;
use sim::Random;
use sim::history::{Event, Kind, ZEROS};
use std::fs::OpenOptions;
use std::path::PathBuf;
use units::Bytes;

/// How large each disk is.
const DISK: Bytes = Bytes::mib(96);

/// How a life of the daemon ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// `kill -9`; the disks go on.
    Kill,
    /// `kill -9`, and the disks lose what was not flushed.
    Cut,
    /// The disks fail first, and the daemon sees that; then as `Cut`.
    Dark,
    /// It is told to stop, and does; then the disks lose what was not flushed.
    Stop,
}

impl End {
    pub const ALL: [Self; 8] = [
        Self::Kill,
        Self::Cut,
        Self::Cut,
        Self::Cut,
        Self::Cut,
        Self::Dark,
        Self::Dark,
        Self::Stop,
    ];
}

/// A pool, and what lies under it.
pub struct World {
    // Dropped first: nobody has it open then.
    disks: Vec<Emulator>,
    paths: Vec<String>,
    dir: Scratch,
}

impl World {
    /// A new pool of two disks.
    pub fn new(seed: u64) -> Self {
        let dir = Scratch::new();
        let profile = dir.text("profile.toml");
        std::fs::write(&profile, forgetful::profile(DISK)).unwrap();
        let disks: Vec<Emulator> = match fuse_is_there() {
            true => (0..2)
                .map(|disk| emulate(&dir.path(&format!("disk{disk}")), DISK, seed * 2 + disk))
                .collect(),
            false => Vec::new(),
        };
        let mut create = vec!["pool", "create", "test", "--profile", &profile];
        let paths: Vec<String> = match disks.is_empty() {
            true => {
                create.extend(["--size", "96MiB"]);
                vec![dir.text("a"), dir.text("b")]
            }
            false => disks.iter().map(|disk| disk.file().display().to_string()).collect(),
        };
        create.extend(paths.iter().map(String::as_str));
        dir.run(&create).succeeded();
        Self { disks, paths, dir }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path("s.sock")
    }

    /// A daemon that commits by itself so often.
    pub fn serve(&self, commit_interval: &str) -> Daemon {
        let more = ["--commit-interval", commit_interval, "--no-realtime"];
        let served = self.dir.try_serve(&self.paths, &more);
        served.unwrap_or_else(|ran| panic!("no daemon: {}", ran.err))
    }

    /// Gives a history its volumes.
    pub fn make_volumes(&self, first: u32, random: &mut Random, log: &mut dyn FnMut(Event)) {
        let client = Client::connect(self.socket()).unwrap();
        for volume in first..first + VOLUMES {
            let size_bytes = Bytes::new(*random.pick(&[256 << 10, 1 << 20, 3 << 20]));
            let at_invoke = tick();
            let create = VolumeCreate::new(name(volume), size_bytes);
            client.volume_create(&create).unwrap();
            let mut event = |volume, cells, stamp| {
                let (kind, at_return) = (Kind::Durable { stamp }, Some(tick()));
                log(Event { client: 0, at_invoke, at_return, kind, volume, cells });
            };
            event(volume, size_bytes.get() / CELL..u64::MAX, ZEROS);
            event(programs::SIZES + volume, 0..1, programs::reserved(size_bytes.get()));
        }
    }

    /// Makes room for the next history, which finds old bytes there.
    pub fn delete_volumes(&self, first: u32) {
        let client = Client::connect(self.socket()).unwrap();
        for volume in client.volumes().unwrap() {
            assert!((first..first + VOLUMES).any(|known| volume.name == name(known)));
            client.volume_delete(&volume.name).unwrap();
        }
    }

    /// Something goes wrong on a disk, soon.
    pub fn trouble(&self, random: &mut Random) {
        let Some(disk) = self.disks.get(random.below(2) as usize) else { return };
        let nth = random.between(1, 30);
        // No short transfers: io_uring loses its place after one over FUSE (docs/emulator.md).
        let order = match random.below(7) {
            0..4 => format!("fail {nth} writes {}", random.pick(&["EIO", "ENOSPC", "ENOMEM"])),
            4..6 => format!("fail {nth} reads"),
            _ => format!("fail {} flushes", random.between(1, 4)),
        };
        disk.order(&order).unwrap();
    }

    /// Ends a daemon; when that began, and, of one that stopped in order, what its end
    /// promises. Then the disks are whole again.
    pub fn end(&self, daemon: Daemon, end: End, random: &mut Random) -> (u64, Option<Event>) {
        let mut stopped = None;
        let at = tick();
        match end {
            End::Kill | End::Cut => daemon.kill(),
            End::Dark => {
                self.power_cut(random);
                std::thread::sleep(std::time::Duration::from_micros(random.below(20_000)));
                daemon.kill();
            }
            End::Stop => {
                daemon.signal("TERM");
                let (code, _) = daemon.wait();
                let at_return = (code == Some(0)).then(tick);
                let (kind, cells) = (Kind::SyncAll, 0..0);
                let client = 0;
                stopped = Some(Event { client, at_invoke: at, at_return, kind, volume: 0, cells });
            }
        }
        let died = if end == End::Stop { tick() } else { at };
        if matches!(end, End::Cut | End::Stop) {
            self.power_cut(random);
        }
        for disk in &self.disks {
            disk.order("heal").unwrap();
            disk.order("power-on").unwrap();
        }
        (died, stopped)
    }

    fn power_cut(&self, random: &mut Random) {
        for disk in &self.disks {
            // Now and then all is lost, as the flushes would have it.
            let order = match random.chance(25) {
                true => "power-cut".into(),
                false => format!("power-cut seed {}", random.bits()),
            };
            disk.order(&order).unwrap();
        }
    }
}

/// True where file systems can be mounted over FUSE; says so where not.
fn fuse_is_there() -> bool {
    let there = rustix::process::getuid().is_root()
        && OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    skips::can_run(there, "cuts of the power: needs root and /dev/fuse")
}
