//! The whole path (pool, node, schedule, io_uring) beside fio's io_uring engine:
//! the same file, place, block size and depth, in turns, in one run.
//!
//! `cargo bench -p slackline-engine --bench beside_fio`. The file is made in
//! `SLACKLINE_BENCH_DIR`, or where temporary files go, and removed at the end.
//! Both sides use direct I/O, registered buffers and a registered file, and write
//! random bytes. Both run at the same real-time priority where that is permitted
//! (fio through chrt), so that other work on the machine disturbs neither; otherwise
//! both at ordinary priority. Ours runs as best effort without contracts, in this process. Ours takes large pages where the
//! kernel has some; since that alone makes transfers of 1 MiB much quicker, the
//! ratio is to a fio that gets them too (through glibc), and fio as it comes stands
//! beside it. `SLACKLINE_QUICK` in the environment: a short round of each, which shows that
//! it runs and nothing else. `SLACKLINE_BENCH_ONLY`: the jobs with this in their names.
//!
//! Processor time is that of the whole process on both sides, the kernel's workers for its ring
//! included, which do each read of a file in memory. fio's own figures leave them out. What fio
//! takes to begin and to end is measured by a run of a millisecond and taken off.
//!
//! Then random reads of 4 KiB on pools of 1, 2, 4 and 8 disks that are files in memory
//! (`/dev/shm`), at ordinary priority, with a thread for each disk on both sides: how many operations a second of
//! processor time does. Each of ours may go to any disk, and so wakes another thread;
//! fio's threads each keep to their file.
#![allow(clippy::print_stdout)]

mod area;

use engine::{DeviceSpec, Options, Pool};
use node::{Error, calls};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use units::Bytes;

/// What both sides move in: from here in the file, so much.
const AREA_START: Bytes = Bytes::mib(64);
/// The memory of a pool here.
const MEMORY: Bytes = Bytes::mib(64);

/// How much is done, and for how long.
struct Scale {
    area: Bytes,
    rounds: usize,
    time: Duration,
}

const FULL: Scale = Scale { area: Bytes::GIB, rounds: 7, time: Duration::from_secs(2) };
const QUICK: Scale = Scale { area: Bytes::mib(64), rounds: 1, time: Duration::from_millis(200) };

fn scale() -> &'static Scale {
    if std::env::var_os("SLACKLINE_QUICK").is_some() { &QUICK } else { &FULL }
}

/// The disks in memory: how many, and the area of each.
const IN_MEMORY: [u64; 4] = [1, 2, 4, 8];
const AREA_IN_MEMORY: Bytes = Bytes::mib(64);

/// On each disk the volume goes on behind the area, and the file behind the volume.
fn volume(disks: u64, area: Bytes) -> Bytes {
    (area + Bytes::mib(80)) * disks
}
fn file_size(area: Bytes) -> Bytes {
    area + Bytes::mib(128)
}

/// What a read costs, and a write, beside its bytes: no figure here holds best effort back, nor makes
/// it worth caching.
const FIXED: &str = "0.01ms";

#[derive(Clone, Copy)]
struct Job {
    name: &'static str,
    fio: &'static str,
    write: bool,
    random: bool,
    block: Bytes,
    depth: u64,
    /// At real-time priority, where it is permitted. A disk in memory never lets a thread
    /// sleep, and would stop everything else.
    real_time: bool,
    /// What the middle of the ratios of throughput shall be.
    aim: Option<f64>,
}

const JOBS: [Job; 3] = [
    Job {
        name: "sequential reads of 1 MiB, 8 at a time",
        fio: "read",
        write: false,
        random: false,
        block: Bytes::MIB,
        depth: 8,
        real_time: true,
        aim: Some(0.97),
    },
    Job {
        name: "sequential writes of 1 MiB, 8 at a time",
        fio: "write",
        write: true,
        random: false,
        block: Bytes::MIB,
        depth: 8,
        real_time: true,
        aim: Some(0.97),
    },
    Job {
        name: "random reads of 4 KiB, 32 at a time",
        fio: "randread",
        write: false,
        random: true,
        block: Bytes::kib(4),
        depth: 32,
        real_time: true,
        aim: Some(1.0),
    },
];

const IN_MEMORY_NAMES: [&str; 4] = [
    "random reads of 4 KiB on 1 disk in memory, 32 at a time",
    "random reads of 4 KiB on 2 disks in memory, 32 at a time on each",
    "random reads of 4 KiB on 4 disks in memory, 32 at a time on each",
    "random reads of 4 KiB on 8 disks in memory, 32 at a time on each",
];

/// What one side did in one round.
#[derive(Clone, Copy)]
struct Result {
    bytes_per_second: f64,
    cpu_seconds_per_gib: f64,
}

/// A closed loop of one job on a pool; every callback begins the next operation.
struct Loop {
    pool: Pool,
    job: Job,
    /// What it reads or writes in, from the start of the volume.
    area: Bytes,
    next: AtomicU64,
    bytes: AtomicU64,
    over: AtomicBool,
    ended: mpsc::Sender<()>,
}

impl Loop {
    fn offset(&self) -> Bytes {
        let step = self.next.fetch_add(1, Ordering::Relaxed);
        let blocks = self.area / self.job.block;
        if self.job.random {
            // Numbers that hit all places evenly (Weyl), spread by a product.
            let mixed = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            return self.job.block * ((mixed >> 20) % blocks);
        }
        self.job.block * (step % blocks)
    }

    fn begin(self: &Arc<Self>) {
        if self.over.load(Ordering::Relaxed) {
            return self.ended.send(()).expect("the main thread waits");
        }
        let this = Arc::clone(self);
        let len = self.job.block;
        if self.job.write {
            self.pool.submit(calls::Room { len, target: None }, move |room| {
                let room = room.expect("memory");
                let next = Arc::clone(&this);
                this.pool.write("area", this.offset(), room, move |done| next.done(done.map(drop)));
            });
        } else {
            let read =
                calls::Read { volume: "area".into(), offset: self.offset(), len, priority: None };
            self.pool.submit(read, move |done| this.done(done.map(drop)));
        }
    }

    fn done(self: Arc<Self>, done: std::result::Result<(), Error>) {
        done.expect("the device works");
        self.bytes.fetch_add(self.job.block.get(), Ordering::Relaxed);
        self.begin();
    }
}

fn ours(disks: &[DeviceSpec], job: Job, area: Bytes) -> Result {
    let count = disks.len() as u64;
    let depth = job.depth * count;
    let mut options = Options::default();
    options.config.memory = MEMORY;
    options.realtime = job.real_time && real_time();
    let pool = Pool::open(disks, options).expect("the pool opens");
    fill(&pool);
    let (ended, all) = mpsc::channel();
    let (next, bytes, over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = Arc::new(Loop { pool, job, area: area * count, next, bytes, over, ended });
    let (start, cpu) = (Instant::now(), cpu_seconds(libc::RUSAGE_SELF));
    (0..depth).for_each(|_| work.begin());
    std::thread::sleep(scale().time);
    work.over.store(true, Ordering::Relaxed);
    (0..depth).for_each(|_| all.recv().expect("every loop ends"));
    let bytes = work.bytes.load(Ordering::Relaxed) as f64;
    Result {
        bytes_per_second: bytes / start.elapsed().as_secs_f64(),
        cpu_seconds_per_gib: (cpu_seconds(libc::RUSAGE_SELF) - cpu)
            / (bytes / Bytes::GIB.get() as f64),
    }
}

/// Whether both sides may run at real-time priority.
fn real_time() -> bool {
    static PERMITTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *PERMITTED.get_or_init(|| {
        let tried = Command::new("chrt").args(["-f", "20", "true"]).status();
        tried.is_ok_and(|status| status.success())
    })
}

/// Puts into all memory that best effort may have what fio has in its buffers: nothing that a device could
/// take for zeros or for what it has already.
fn fill(pool: &Pool) {
    let mut random = std::process::id() as u64 | 1;
    let mut held = Vec::new();
    // A quarter is for windows alone, the zeros that the pool writes have their place, and
    // 1 MiB is kept for interactive requests.
    for _ in 2..MEMORY / 4 * 3 / Bytes::MIB {
        let room = pool.call(calls::Room { len: Bytes::MIB, target: None });
        let mut room = room.expect("memory for best effort");
        for bytes in room.chunks_exact_mut(8) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bytes.copy_from_slice(&random.to_ne_bytes());
        }
        held.push(room);
    }
}

/// User and system time of this process, or of those that it has waited for, in seconds.
#[allow(unsafe_code)]
fn cpu_seconds(who: libc::c_int) -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the call fills the place it is given; for these two it cannot fail.
    let usage = unsafe {
        assert_eq!(libc::getrusage(who, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn fio(disks: &[DeviceSpec], job: Job, area: Bytes, large_pages: bool) -> Result {
    let (_, _, idle) = run_fio(disks, job, area, large_pages, Duration::from_millis(1));
    let (bytes_per_second, bytes, cpu) = run_fio(disks, job, area, large_pages, scale().time);
    let cpu_seconds_per_gib = (cpu - idle) / (bytes / Bytes::GIB.get() as f64);
    Result { bytes_per_second, cpu_seconds_per_gib }
}

/// Runs fio for a time: bytes a second, bytes, and seconds of processor time of all its threads.
fn run_fio(
    disks: &[DeviceSpec],
    job: Job,
    area: Bytes,
    large_pages: bool,
    time: Duration,
) -> (f64, f64, f64) {
    let before = cpu_seconds(libc::RUSAGE_CHILDREN);
    let real_time = job.real_time && real_time();
    let mut command = Command::new(if real_time { "chrt" } else { "fio" });
    if real_time {
        command.args(["-f", "20", "fio"]);
    }
    let output = command
        .env("GLIBC_TUNABLES", if large_pages { "glibc.malloc.hugetlb=1" } else { "" })
        .args(["--ioengine=io_uring", "--direct=1", "--time_based"])
        .args(["--fixedbufs", "--registerfiles", "--norandommap", "--output-format=json"])
        .arg("--scramble_buffers=0")
        .arg(format!("--rw={}", job.fio))
        .arg(format!("--bs={}", job.block.get()))
        .arg(format!("--iodepth={}", job.depth))
        .arg(format!("--offset={}", AREA_START.get()))
        .arg(format!("--size={}", area.get()))
        .arg(format!("--runtime={}ms", time.as_millis()))
        // A job, and so a thread, for each file; what stands before is for all.
        .arg("--thread")
        .args(disks.iter().flat_map(|disk| {
            ["--name=beside".into(), format!("--filename={}", disk.path().display())]
        }))
        .output()
        .expect("fio runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "fio: {text} {}", String::from_utf8_lossy(&output.stderr));
    // Some versions print notes before the JSON.
    let json = &text[text.find('{').expect("fio prints JSON")..];
    let json: serde_json::Value = serde_json::from_str(json).expect("fio prints JSON");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let (mut bytes_per_second, mut bytes) = (0.0, 0.0);
    for run in json["jobs"].as_array().expect("fio tells of its jobs") {
        let side = &run[if job.write { "write" } else { "read" }];
        bytes += number(&side["io_bytes"]);
        bytes_per_second += number(&side["io_bytes"]) / (number(&side["runtime"]) / 1e3);
    }
    (bytes_per_second, bytes, cpu_seconds(libc::RUSAGE_CHILDREN) - before)
}

/// Smallest, middle and largest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

fn compare(disks: &[DeviceSpec], job: Job, area: Bytes) {
    let Scale { rounds, time, .. } = *scale();
    println!("\n{} ({rounds} rounds of {time:?} each, in turns)", job.name);
    let (mut us, mut them, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        // Whoever goes first changes from round to round.
        if round % 2 == 0 {
            us.push(ours(disks, job, area));
            them.push(fio(disks, job, area, true));
        } else {
            them.push(fio(disks, job, area, true));
            us.push(ours(disks, job, area));
        }
        plain.push(fio(disks, job, area, false));
    }
    let row = |name: &str, scale: f64, unit: &str, pick: &dyn Fn(&Result) -> f64| {
        for (who, results) in [("ours", &us), ("fio", &them), ("fio, small pages", &plain)] {
            let [min, median, max] = spread(results.iter().map(|r| pick(r) / scale).collect());
            println!(
                "  {name:10} {who:16} min {min:8.3}  median {median:8.3}  max {max:8.3} {unit}"
            );
        }
    };
    row("throughput", 1e6, "MB/s", &|result| result.bytes_per_second);
    row("CPU", 1.0, "s/GiB", &|result| result.cpu_seconds_per_gib);
    let operations = Bytes::GIB.get() as f64 / job.block.get() as f64;
    row("a core", 1e3, "thousand operations/s", &|it| operations / it.cpu_seconds_per_gib);
    let cpu =
        us.iter().zip(&them).map(|(us, them)| us.cpu_seconds_per_gib / them.cpu_seconds_per_gib);
    let [min, median, max] = spread(cpu.collect());
    println!("  CPU, ours / fio             min {min:8.3}  median {median:8.3}  max {max:8.3}");
    let ratios = us.iter().zip(&them).map(|(us, them)| us.bytes_per_second / them.bytes_per_second);
    let [min, median, max] = spread(ratios.collect());
    let verdict = match job.aim {
        Some(aim) if median >= aim => format!(" (aim {aim}: met)"),
        Some(aim) => format!(" (aim {aim}: missed)"),
        None => String::new(),
    };
    println!(
        "  ours / fio                  min {min:8.3}  median {median:8.3}  max {max:8.3}{verdict}"
    );
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return; // `cargo test` builds it, and has no use for its numbers
    }
    if Command::new("fio").arg("--version").output().is_err() {
        println!("fio is not installed: apt-get install fio");
        std::process::exit(1);
    }
    let directory = std::env::var_os("SLACKLINE_BENCH_DIR").map(PathBuf::from);
    let priority = if real_time() { "real-time" } else { "ordinary" };
    println!("both sides at {priority} priority where the disk is not in memory");
    let one: Vec<Job> = JOBS.into_iter().filter(|job| is_wanted(job.name)).collect();
    let mut went_well = one.is_empty() || on_files(directory.as_deref(), 1, scale().area, &one);
    for count in IN_MEMORY {
        let name = IN_MEMORY_NAMES[count.ilog2() as usize];
        let job = Job { name, real_time: false, aim: None, ..JOBS[2] };
        if is_wanted(name) {
            went_well &= on_files(Some(Path::new("/dev/shm")), count, AREA_IN_MEMORY, &[job]);
        }
    }
    if !went_well {
        std::process::exit(1);
    }
}

/// Whether somebody wants this job.
fn is_wanted(name: &str) -> bool {
    std::env::var("SLACKLINE_BENCH_ONLY").map_or(true, |only| name.contains(&only))
}

/// Compares on so many files of a pool, in that directory or where temporary files go, which are
/// removed at the end; says whether nothing failed.
fn on_files(directory: Option<&Path>, count: u64, area: Bytes, jobs: &[Job]) -> bool {
    let mut folder = tempfile::Builder::new();
    folder.prefix("slackline-");
    let folder = directory.map_or_else(|| folder.tempdir(), |place| folder.tempdir_in(place));
    let folder = folder.expect("a place for gigabytes");
    let file = |at| folder.path().join(format!("{at}"));
    let disks: Vec<_> = (0..count).map(|at| DeviceSpec::Real { path: file(at) }).collect();
    let result = std::panic::catch_unwind(|| {
        area::make(&disks, (file_size(area), volume(disks.len() as u64, area)), FIXED);
        jobs.iter().for_each(|&job| compare(&disks, job, area));
    });
    result.is_ok()
}
