//! The cache of best effort beside the kernel's page cache, on one trace, with as much memory.
//!
//! `cargo bench -p slackline-engine --bench page_cache`, as root, since the kernel's side is given a
//! memory cgroup of its own. The file is made in `SLACKLINE_BENCH_DIR`, or where temporary files
//! go, and removed at the end. Each side is a process that reads the same pieces of 64 KiB in the
//! same order, one at a time: ours as best effort of a pool with 128 MiB, of which the cache has at
//! most the half, the kernel's by `pread` of the same file in a cgroup of 64 MiB and 8 MiB for the
//! process. What the disk was asked for is what the kernel says of each process
//! (`/proc/self/io`). `SLACKLINE_QUICK`: a short round, which shows that it runs and nothing else.
#![allow(clippy::print_stdout)]

mod area;

use engine::{DeviceSpec, Options, Pool};
use node::calls;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use units::Bytes;

const PIECE: Bytes = Bytes::kib(64);
const AREA: Bytes = Bytes::mib(512);
const MEMORY: Bytes = Bytes::mib(128);
const OF_THE_PROCESS: Bytes = Bytes::mib(8);

/// What a read costs beside its bytes: long enough to be cached. It is no measurement.
const FIXED: &str = "0.1ms";

fn is_quick() -> bool {
    std::env::var_os("SLACKLINE_QUICK").is_some()
}

/// The pieces in their order: three in five by their rank, of which the first are read most; then
/// runs of 32 that lie one behind the other, and some anywhere.
fn trace() -> Vec<u64> {
    let pieces = AREA / PIECE;
    let mut seed = 11u64;
    let mut below = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let mut trace = Vec::new();
    let wanted = if is_quick() { 2_000 } else { 60_000 };
    while trace.len() < wanted {
        match below(100) {
            0..60 => {
                let rank = (pieces as f64).powf(below(1 << 20) as f64 / f64::from(1 << 20)) as u64;
                trace.push(rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % pieces);
            }
            60..62 => {
                let start = below(pieces - 32);
                trace.extend(start..start + 32);
            }
            _ => trace.push(below(pieces)),
        }
    }
    trace
}

/// What a side came to.
struct Took {
    seconds: f64,
    /// Of the disk.
    read: f64,
}

/// What the disk was asked for by this process.
fn read_bytes() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").expect("what the kernel counts");
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).expect("a number of bytes")
}

/// Reads the trace, and prints what it took; in a process of its own.
fn run_side(side: &str, path: &Path) {
    let trace = trace();
    let mut one: Box<dyn FnMut(u64) -> u8> = if side == "ours" {
        let mut options = Options::default();
        options.config.memory = MEMORY;
        let pool =
            Pool::open(&[DeviceSpec::Real { path: path.into() }], options).expect("the pool opens");
        Box::new(move |piece| {
            let (volume, offset) = ("area".into(), PIECE * piece);
            let read = calls::Read { volume, offset, len: PIECE, priority: None };
            let chunk = pool.call(read).expect("data");
            sum(&chunk)
        })
    } else {
        let file = File::open(path).expect("the file");
        forget(&file);
        let mut bytes = vec![0; PIECE.as_usize()];
        Box::new(move |piece| {
            // Behind what the pool has at the beginning of its disk; the same number of bytes.
            let offset = Bytes::mib(64) + PIECE * piece;
            file.read_exact_at(&mut bytes, offset.get()).expect("it is there");
            sum(&bytes)
        })
    };
    let (before, begun) = (read_bytes(), Instant::now());
    let mut all = 0u8;
    for piece in trace {
        all = all.wrapping_add(one(piece));
    }
    let (seconds, read) = (begun.elapsed().as_secs_f64(), read_bytes() - before);
    println!("{seconds} {read} {all}");
}

/// Both sides look at what they have.
fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().step_by(64).fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// Nothing of the file is in the kernel's memory.
#[allow(unsafe_code)]
fn forget(file: &File) {
    file.sync_all().expect("it can be synced");
    // SAFETY: the call takes numbers.
    let result = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(result, 0, "the kernel forgets what it has");
}

/// A memory cgroup that is gone when this is dropped.
struct Group(PathBuf);

impl Group {
    /// Of the first hierarchy, or the second.
    fn new(most: Bytes) -> Option<Self> {
        for (root, limit) in
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        {
            let made = tempfile::Builder::new().prefix("slackline-").tempdir_in(root);
            let Ok(made) = made else { continue };
            // It is removed as an empty directory: what is in it cannot be.
            let group = Self(made.keep());
            if std::fs::write(group.0.join(limit), most.get().to_string()).is_ok() {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn side(which: &str, path: &Path) -> Option<Took> {
    let group = match which {
        "ours" => None,
        _ => Some(Group::new(MEMORY / 2 + OF_THE_PROCESS)?),
    };
    let own = std::env::current_exe().expect("its own path");
    let mut command = Command::new("sh");
    let join = group.as_ref().map(|group| group.0.join("cgroup.procs"));
    command.args(["-c", r#"[ -z "$1" ] || echo $$ > "$1"; exec "$0" --side "$2" "$3""#]);
    command.arg(own).arg(join.unwrap_or_default()).arg(which).arg(path);
    let output = command.stderr(Stdio::inherit()).output().expect("a process");
    assert!(output.status.success(), "{which}: {}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    let mut numbers = text.split_whitespace().map(|number| number.parse::<f64>());
    let mut number = || numbers.next().and_then(Result::ok).expect("a number");
    Some(Took { seconds: number(), read: number() })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--side") {
        return run_side(&arguments[at + 1], Path::new(&arguments[at + 2]));
    }
    if !arguments.iter().any(|argument| argument == "--bench") {
        return; // `cargo test` builds it, and has no use for its numbers
    }
    let mut directory = tempfile::Builder::new();
    let directory = directory.prefix("slackline-");
    let directory = match std::env::var_os("SLACKLINE_BENCH_DIR") {
        Some(place) => directory.tempdir_in(place),
        None => directory.tempdir(),
    };
    let directory = directory.expect("a directory");
    let path = directory.path().join("disk");
    let disks = [DeviceSpec::Real { path: path.clone() }];
    area::make(&disks, (AREA + Bytes::mib(128), AREA), FIXED);
    let asked = (PIECE * trace().len() as u64).get() as f64;
    println!("{} pieces of {PIECE} of {AREA}, one at a time", trace().len());
    let rounds = if is_quick() { 1 } else { 3 };
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let ours = side("ours", &path).expect("it needs no cgroup");
        let Some(kernel) = side("kernel", &path) else {
            println!("no memory cgroup can be made here: run it as root");
            return;
        };
        for (name, took) in [("ours", &ours), ("kernel", &kernel)] {
            println!(
                "  {name:8} of the disk {:6.1} MB/s of {:6.1} MB/s; read of the disk {:.3} of what was asked for",
                took.read / took.seconds / 1e6,
                asked / took.seconds / 1e6,
                took.read / asked
            );
        }
        ratios.push(kernel.seconds / ours.seconds);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "  throughput, ours / the kernel's: {:.2} (the middle of {rounds})",
        ratios[rounds / 2]
    );
}
