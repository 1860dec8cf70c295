//! A file of `slackline mount`, beside the same file through a pass-through file system of fuser's.
//!
//! `cargo bench -p slackline --bench mounted_files`. The daemon's disk and the file that is passed
//! through are in memory (`/dev/shm`); both are removed at the end. The client is this process, on
//! both, in turns, in one run. What each does for a byte:
//!
//! * the mount is a process that asks the daemon, another process, over a socket; the daemon reads its
//!   disk (a schedule lies between, and where the disk permits it, it goes past the kernel's cache);
//! * the pass-through is one process that reads and writes the file where it is: no daemon, no
//!   schedule, and the kernel's cache on the way, which a file in memory is in anyway.
//!
//! Both mounts have as many threads and ask for the same lengths of transfers; the kernel is told to
//! forget what it has of the file before that is read or written in order, since of one that nobody has
//! changed the mount would let it keep that; all are at ordinary priority. The kernel reads 128 KiB ahead of
//! who reads in order, whatever a file system asks for; the mount sets that to 1 MiB for itself, and
//! the pass-through is as fuser mounts it. Nothing is synced. It needs root and FUSE; where these are
//! not there, this says so and does nothing else. `SLACKLINE_QUICK`: a short round of each, which
//! shows that it runs and nothing else.
#![allow(clippy::print_stdout)]

mod served;

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use rustix::fs::{Advice, OFlags, fadvise};
use served::beside::{Figures, Side, Work, is_quick, mixed};
use served::{Daemon, PROFILE, Peer, memory};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};
use units::Bytes;

/// Where this program is to pass a file through, instead of measuring: the file, and the directory.
const PASSED: &str = "SLACKLINE_BENCH_PASSED";

/// As in `crates/mount`: what the kernel asks for at once, and threads that take what it asks.
const TRANSFER_MAX: usize = 1 << 20;
const TAKERS: usize = 16;

#[derive(Clone, Copy)]
struct Job {
    title: &'static str,
    clients: usize,
    len: usize,
    writes: bool,
    /// In order from an open on, through the kernel's cache; else anywhere, past it.
    in_order: bool,
}

const JOBS: [Job; 7] = [
    job("read in order, 1 client, MB", 1, TRANSFER_MAX, false, true),
    job("written in order, 1 client, MB", 1, TRANSFER_MAX, true, true),
    job("1 MiB read anywhere, 4 clients, MB", 4, TRANSFER_MAX, false, false),
    job("4 KiB read anywhere, 1 client, reads", 1, 4096, false, false),
    job("4 KiB read anywhere, 8 clients, reads", 8, 4096, false, false),
    job("4 KiB written anywhere, 1 client, writes", 1, 4096, true, false),
    job("4 KiB written anywhere, 8 clients, writes", 8, 4096, true, false),
];

const fn job(title: &'static str, clients: usize, len: usize, writes: bool, in_order: bool) -> Job {
    Job { title, clients, len, writes, in_order }
}

fn size() -> Bytes {
    if is_quick() { Bytes::mib(8) } else { Bytes::mib(512) }
}

fn main() {
    if let Some(passed) = std::env::var_os(PASSED) {
        let mut lines = passed.to_str().expect("a path of text").lines().map(PathBuf::from);
        let mut next = || lines.next().expect("a file and a directory");
        return Passed::mount(&next(), &next());
    }
    if !Path::new("/dev/fuse").exists() || !rustix::process::geteuid().is_root() {
        println!("NOT RUN: it needs root and FUSE");
        return;
    }
    let folder = memory();
    let file = |name: &str| folder.path().join(name);
    let text = |name: &str| file(name).display().to_string();
    let bytes: Vec<u8> = (0..size().get()).map(|at| (at / 4096 * 31 + at) as u8).collect();
    fs::write(file("v"), &bytes).expect("a place for gigabytes");
    fs::write(file("profile.toml"), PROFILE).expect("a place for gigabytes");
    for name in ["ours", "passed"] {
        fs::create_dir(file(name)).expect("a folder");
    }
    let daemon = Daemon::on(
        &folder,
        &text("disk.img"),
        &["--profile", &text("profile.toml")],
        &["--no-realtime"],
    );
    let mut mounting = Command::new(env!("CARGO_BIN_EXE_slackline"));
    mounting.args(["mount", "--foreground", "--socket"]).arg(file("s.sock")).arg(file("ours"));
    let mount = Mounted::start(&mut mounting, &file("ours"));
    let mut passing = Command::new(std::env::current_exe().expect("this program"));
    passing.env(PASSED, format!("{}\n{}", text("v"), text("passed")));
    let passed = Mounted::start(&mut passing, &file("passed"));
    fs::write(file("ours/v"), &bytes).expect("a disk that works");

    let sides = [
        Side {
            name: "Slackline",
            how: file("ours/v"),
            processes: vec![mount.process(), daemon.process()],
        },
        Side { name: "pass-through", how: file("passed/v"), processes: vec![passed.process()] },
    ];
    for side in &sides {
        assert!(fs::read(&side.how).expect("it was written") == bytes, "{}", side.name);
    }
    let mut figures = Figures::new(&sides);
    for job in JOBS {
        let unit = if job.len == TRANSFER_MAX { 1e6 / TRANSFER_MAX as f64 } else { 1.0 };
        figures.job(job.title, (&sides, job.clients, unit), |path, work, number| {
            job.run(path, work, number as u64);
        });
    }
    println!("{figures}");
    println!("aim: at least 0.9 of the pass-through");
}

impl Job {
    fn open(&self, path: &Path) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(self.writes);
        if !self.in_order {
            // Past the kernel's cache.
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        let file = options.open(path).expect("it is there");
        if self.in_order {
            fadvise(&file, 0, None, Advice::DontNeed).expect("a file");
        }
        file
    }

    /// Until the time is over; counts transfers.
    fn run(&self, path: &Path, work: &Work, number: u64) {
        let mut buffer = vec![number as u8; self.len];
        let places = size().get() / self.len as u64;
        let mut file = self.open(path);
        for step in 0.. {
            if work.is_over() {
                return;
            }
            if self.in_order && step > 0 && step % places == 0 {
                file = self.open(path);
            }
            let place = if self.in_order { step } else { mixed(step * 64 + number) };
            let at = place % places * self.len as u64;
            match self.writes {
                true => file.write_all_at(&buffer, at).expect("a disk that works"),
                false => file.read_exact_at(&mut buffer, at).expect("a disk that works"),
            }
            work.add(1);
        }
    }
}

/// A directory that is mounted until this goes.
struct Mounted {
    server: Option<Peer>,
    directory: PathBuf,
}

impl Mounted {
    fn start(command: &mut Command, directory: &Path) -> Self {
        let is_mounted = || {
            let mounts = fs::read_to_string("/proc/self/mounts").expect("a kernel that tells");
            mounts.lines().any(|line| line.split(' ').nth(1).map(Path::new) == Some(directory))
        };
        let server = Peer::start(command, is_mounted).expect("a program that was built");
        Self { server: Some(server), directory: directory.to_owned() }
    }

    fn process(&self) -> u32 {
        self.server.as_ref().expect("it runs").process()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let ended = Command::new("umount").arg(&self.directory).status();
        if !ended.is_ok_and(|status| status.success()) {
            let _ = Command::new("umount").arg("-l").arg(&self.directory).status();
        }
        drop(self.server.take());
    }
}

/// The file system that passes one file through.
struct Passed(File);

thread_local! {
    /// What a thread reads into before the kernel takes it.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; TRANSFER_MAX]);
}

/// What the kernel may take for granted so long: as the mount does.
const KNOWN_FOR: Duration = Duration::from_secs(1);
const NAME: &str = "v";
const INODE: u64 = 2;

impl Passed {
    fn mount(path: &Path, directory: &Path) {
        let file = OpenOptions::new().read(true).write(true).open(path).expect("it was made");
        let mut config = Config::default();
        config.mount_options = vec![MountOption::DefaultPermissions, MountOption::NoAtime];
        config.n_threads = Some(TAKERS);
        fuser::mount(Self(file), directory, &config).expect("FUSE");
    }

    fn attributes(&self, inode: u64) -> FileAttr {
        let is_file = inode == INODE;
        let size = if is_file { self.0.metadata().map_or(0, |known| known.len()) } else { 0 };
        let then = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size.div_ceil(512),
            atime: then,
            mtime: then,
            ctime: then,
            crtime: then,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Passed {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_write(TRANSFER_MAX as u32);
        let _ = config.set_max_readahead(TRANSFER_MAX as u32);
        let _ = config.set_max_background(512);
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name != NAME {
            return reply.error(Errno::ENOENT);
        }
        reply.entry(&KNOWN_FOR, &self.attributes(INODE), Generation(0));
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&KNOWN_FOR, &self.attributes(inode.0));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            let into = &mut buffer[..size as usize];
            match self.0.read_at(into, offset) {
                Ok(read) => reply.data(&into[..read]),
                Err(error) => reply.error(error.into()),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.0.write_all_at(bytes, offset) {
            Ok(()) => reply.written(bytes.len() as u32),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }
}
