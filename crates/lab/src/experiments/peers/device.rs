//! An emulated disk as a block device of the kernel, with a scheduler of the kernel's.

use disk::Model;
use emulator::{Emulator, Options};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use units::{Bytes, Distribution};

/// How many requests the kernel has in the drive at a time, where it is let: with more,
/// the drive would have them all and there would be nothing left to schedule. The least
/// that a loop device can be given.
pub const DEPTH: usize = 4;

/// A drive over FUSE under a loop device. Both go away with it; the loop device also
/// when the process is killed.
pub struct Device {
    path: PathBuf,
    capacity: Bytes,
    // In this order: the loop device lets go of the emulator's file, and that of its directory.
    open: Option<File>,
    emulator: Emulator,
    _directory: TempDir,
}

impl Device {
    /// Makes one.
    ///
    /// # Errors
    /// Says what the machine lacks: root, FUSE, loop devices or `losetup`.
    pub fn new(model: &Model) -> Result<Self, String> {
        let directory = tempfile::Builder::new().prefix("slackline-").tempdir();
        let directory = directory.map_err(|error| error.to_string())?;
        let options = Options {
            model: model.clone(),
            directory: directory.path().to_path_buf(),
            backing: None,
            write_back: false,
            short_transfers: false,
            depth: Some(DEPTH),
            orders: Vec::new(),
            on_thread: || {
                let _ = engine::keep_time(); // its lateness is measured and told
            },
        };
        let emulator = Emulator::start(&options).map_err(|error| error.to_string())?;
        let find = ["--find", "--show", "--direct-io=on"];
        let found = Command::new("losetup").args(find).arg(emulator.file()).output();
        let found = found.map_err(|error| format!("losetup: {error}"))?;
        if !found.status.success() {
            return Err(String::from_utf8_lossy(&found.stderr).trim().to_owned());
        }
        let path = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim());
        let open = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        // Marked to be taken away once nobody has it open, whatever becomes of us.
        let marked = Command::new("losetup").arg("--detach").arg(&path).status();
        marked.map_err(|error| format!("losetup: {error}"))?;
        let capacity = model.capacity();
        let device = Self { path, capacity, open: Some(open), emulator, _directory: directory };
        device.set("scheduler", "none").map_err(|error| error.to_string())?;
        device.set("nr_requests", &DEPTH.to_string()).map_err(|error| error.to_string())?;
        Ok(device)
    }

    /// The block device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the program's place with this number begins.
    pub fn place(&self, number: u64) -> Bytes {
        (self.capacity / super::load::PLACES).round_down(Bytes::MIB) * number
    }

    /// Opened for reading past all caches.
    pub fn open(&self) -> io::Result<File> {
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        OpenOptions::new().read(true).custom_flags(direct).open(&self.path)
    }

    /// Opened for reading through the kernel's cache.
    pub fn open_cached(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// Nothing of the device is in the kernel's cache any more.
    pub fn forget(&self) -> io::Result<()> {
        let file = self.open_cached()?;
        Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?)
    }

    /// Sets what the kernel lets be set of the device's queue.
    pub fn set(&self, what: &str, value: &str) -> io::Result<()> {
        let name = self.path.file_name().expect("a device has a name");
        std::fs::write(Path::new("/sys/block").join(name).join("queue").join(what), value)
    }

    /// How late the emulator itself was so far.
    pub fn late(&self) -> Distribution {
        self.emulator.status().late
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.open.take();
        // The kernel lets go of the file a moment after the last one closed the device.
        for _ in 0..100 {
            if self.emulator.unmount().is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
