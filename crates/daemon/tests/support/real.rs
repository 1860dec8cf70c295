//! A daemon around a real pool: one file with a made-up profile, or an emulated disk.
#![allow(dead_code)] // each test file uses its part

use client::Client;
use client::control::{Contract, VolumeCreate};
use daemon::config::SocketMode;
use daemon::serve::{ServeError, ServeOptions};
use daemon::socket::Claim;
use engine::{CreateOptions, DeviceSpec, Options, Pool, Wrap};
use node::Status;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use units::{Bytes, Duration, Rate};

pub const PROFILE: &str = r#"
kind = "linear"
source = "made up for a test"
confidence = "none"
capacity = "1MiB"
flush = "2ms"
[linear]
depth = 8
latency = "1ms"
read = { fixed = "0.1ms", rate = "1GB/s" }
write = { fixed = "0.1ms", rate = "1GB/s" }
"#;

/// A daemon in this process, in a directory of its own.
pub struct Real {
    pub client: Client,
    pub pool: Arc<Pool>,
    pub dir: TempDir,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<Result<(), ServeError>>>,
}

impl Real {
    /// On a file of so many MiB.
    pub fn start(mib: u64) -> Self {
        let profile = Some(disk::Profile::parse(PROFILE).unwrap());
        let size = Some(Bytes::mib(mib));
        let file = |path| DeviceSpec::Real { path };
        let mode = SocketMode(0o600);
        Self::on(file, CreateOptions { profile, size, ..CreateOptions::default() }, false, mode)
    }

    /// The same, by other serve_options.
    pub fn start_by(mib: u64, serve_options: ServeOptions) -> Self {
        let profile = Some(disk::Profile::parse(PROFILE).unwrap());
        let size = Some(Bytes::mib(mib));
        let file = |path| DeviceSpec::Real { path };
        let create = CreateOptions { profile, size, ..CreateOptions::default() };
        Self::on(file, create, false, serve_options)
    }

    /// The same, with threads at real-time priority where the system permits, and windows
    /// for a host that is late.
    pub fn start_in_real_time(mib: u64) -> Self {
        let mode = SocketMode(0o600);
        let profile = Some(disk::Profile::parse(PROFILE).unwrap());
        let size = Some(Bytes::mib(mib));
        let file = |path| DeviceSpec::Real { path };
        Self::on(file, CreateOptions { profile, size, ..CreateOptions::default() }, true, mode)
    }

    /// On an emulated disk of so many MiB.
    pub fn emulated(model: &str, mib: u64) -> Self {
        let size = Some(Bytes::mib(mib));
        let disk = |path| DeviceSpec::Emulated { model: model.into(), path };
        let mode = SocketMode(0o600);
        Self::on(disk, CreateOptions { size, ..CreateOptions::default() }, false, mode)
    }

    /// The same, by other serve_options.
    pub fn emulated_by(model: &str, mib: u64, serve_options: ServeOptions) -> Self {
        let size = Some(Bytes::mib(mib));
        let disk = |path| DeviceSpec::Emulated { model: model.into(), path };
        Self::on(disk, CreateOptions { size, ..CreateOptions::default() }, false, serve_options)
    }

    /// The same, in real time as above, for whom the mode of its sockets says.
    pub fn emulated_in_real_time(model: &str, mib: u64, mode: SocketMode) -> Self {
        let size = Some(Bytes::mib(mib));
        let disk = |path| DeviceSpec::Emulated { model: model.into(), path };
        Self::on(disk, CreateOptions { size, ..CreateOptions::default() }, true, mode)
    }

    /// On a file of so many MiB, with something between its thread and the device.
    pub fn start_wrapped(mib: u64, serve_options: ServeOptions, wrap: Wrap) -> Self {
        let profile = Some(disk::Profile::parse(PROFILE).unwrap());
        let size = Some(Bytes::mib(mib));
        let file = |path| DeviceSpec::Real { path };
        let create = CreateOptions { profile, size, ..CreateOptions::default() };
        Self::wrapped(file, create, false, serve_options, Some(wrap))
    }

    fn on(
        device: impl FnOnce(PathBuf) -> DeviceSpec,
        create: CreateOptions,
        realtime: bool,
        serve_options: impl Into<ServeOptions>,
    ) -> Self {
        Self::wrapped(device, create, realtime, serve_options.into(), None)
    }

    fn wrapped(
        device: impl FnOnce(PathBuf) -> DeviceSpec,
        create: CreateOptions,
        realtime: bool,
        serve_options: ServeOptions,
        wrap: Option<Wrap>,
    ) -> Self {
        engine::keep_panics(); // as the fake pool does
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let devices = [device(dir.path().join("disk"))];
        Pool::create("tape", &devices, &create).unwrap();
        // What is refused does not depend on how busy the machine is.
        let gap = Some(Duration::ZERO);
        let mut options = Options { realtime, gap, wrap, ..Options::default() };
        if realtime {
            options.config.host_latency = Duration::from_millis(60);
        }
        options.config.commit_interval = Duration::from_millis(600);
        // The profile is made up: a busy machine's disk would have it widened, and what
        // fits by it refused.
        options.config.remeasure = false;
        let pool = Arc::new(Pool::open(&devices, options).unwrap());
        let socket = dir.path().join("s.sock");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (listening, is_listening) = std::sync::mpsc::channel();
        let (serving, at) = (Arc::clone(&pool), socket.clone());
        let thread =
            std::thread::spawn(move || serve(serving, &at, serve_options, listening, stopped));
        is_listening.recv().unwrap();
        let client = Client::connect(socket).unwrap();
        Self { client, pool, dir, stop: Some(stop), thread: Some(thread) }
    }

    pub fn volume(&self, name: &str, size: Bytes) {
        self.client.volume_create(&VolumeCreate::new(name, size)).unwrap();
    }

    pub fn data_socket(&self) -> PathBuf {
        wire::socket::data_path(self.client.socket())
    }

    /// Waits until the pool has come to this.
    pub fn wait(&self, mut done: impl FnMut(&Status) -> bool) -> Status {
        loop {
            let status = self.pool.status();
            if done(&status) {
                return status;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Stops the daemon in order.
    pub fn stop(&mut self) -> Result<(), ServeError> {
        drop(self.stop.take());
        self.thread.take().expect("stopped once").join().expect("no panic")
    }
}

fn serve(
    pool: Arc<Pool>,
    at: &Path,
    serve_options: ServeOptions,
    listening: std::sync::mpsc::Sender<()>,
    stopped: tokio::sync::oneshot::Receiver<()>,
) -> Result<(), ServeError> {
    let claim = Claim::new(at).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stop = async move {
        listening.send(()).unwrap();
        let _ = stopped.await;
    };
    runtime.block_on(daemon::serve::serve(pool, &claim, serve_options, stop))
}

impl Drop for Real {
    fn drop(&mut self) {
        if self.thread.is_some() && !std::thread::panicking() {
            self.stop().unwrap();
        }
    }
}

/// So many bytes a second, in such blocks.
pub fn contract(rate: u64, block: Bytes) -> Contract {
    Contract {
        rate_bytes_per_second: Rate::per_second(rate),
        block_bytes: block,
        burst_bytes: block,
    }
}

/// The byte at an offset of a volume: a pattern in which every block differs.
pub fn byte(offset: u64) -> u8 {
    (offset ^ (offset >> 8).wrapping_mul(31) ^ (offset >> 17).wrapping_mul(17)) as u8
}

/// The bytes from `offset` on.
pub fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (offset..).take(len).map(byte).collect()
}
