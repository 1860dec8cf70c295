//! A read that is in the window, beside `memcpy` of the same size and `pread` from the page
//! cache, in turns, in one run; then many more of them beside greedy programs.
//!
//! `cargo bench -p slackline --bench windows`. A daemon of its own serves an emulated NVMe
//! disk, whose file is in `SLACKLINE_BENCH_DIR`, or where temporary files go, and is removed
//! at the end. The program asks for 100 MB/s and reads 64 KiB at a time, a little slower than
//! that, so that each read finds its bytes in the window: where one did not, it is counted.
//! `SLACKLINE_READS` says how many there are beside greedy programs (100,000).
//! `SLACKLINE_QUICK`: few reads at a low rate, which show that it runs and nothing else.
//!
//! All three copies have cold sources of the same size and the same destination, and go in
//! turns. The largest of each kind is printed, with the host's own lateness beside it: a
//! `memcpy` that takes a millisecond was interrupted by the host, and so was a read.
#![allow(clippy::print_stdout)]

mod served;

use client::control::Contract;
use client::{Client, Peek, Reader};
use report::Table;
use rwrt::Samples;
use served::{Daemon, add, folder, make};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::{Bytes, Rate};

/// How much is done, and how fast.
struct Scale {
    rate: Rate,
    /// From one read to the next, a little longer than 64 KiB take at the rate.
    period: Duration,
    /// The reader begins again at its end.
    film: Bytes,
    greedy_file: Bytes,
    /// Reads alone, and beside greedy programs where nothing else is said.
    quiet: u64,
    loaded: u64,
}

const FULL: Scale = Scale {
    rate: Rate::per_second(100_000_000),
    period: Duration::from_micros(700),
    film: Bytes::mib(256),
    greedy_file: Bytes::mib(64),
    quiet: 20_000,
    loaded: 100_000,
};

/// Windows last for seconds, so that no machine is too busy for it.
const QUICK: Scale = Scale {
    rate: Rate::per_second(4_000_000),
    period: Duration::from_millis(17),
    film: Bytes::mib(16),
    greedy_file: Bytes::mib(4),
    quiet: 100,
    loaded: 100,
};

fn scale() -> &'static Scale {
    if std::env::var_os("SLACKLINE_QUICK").is_some() { &QUICK } else { &FULL }
}

const BLOCK: Bytes = Bytes::MIB;
const READ: Bytes = Bytes::kib(64);
const GREEDY: u64 = 4;
const GREEDY_READ: Bytes = Bytes::kib(128);
/// Looks at so few bytes are done by the thousand, to be timed at all.
const GLANCE: usize = 64;

fn main() {
    let folder = folder();
    let daemon = Daemon::start(&folder, "ssd-nvme", &[]);
    let client = &daemon.client;
    let Scale { rate, film, greedy_file, quiet, loaded, .. } = *scale();
    make(client, "film", film);
    (0..GREEDY).for_each(|number| make(client, &format!("greedy-{number}"), greedy_file));
    let cached = cached(folder.path());

    let realtime = engine::keep_time();
    if let Err(error) = &realtime {
        println!("no real-time priority ({error}): the largest figures are the host's");
    }
    let contract = Contract { rate_bytes_per_second: rate, block_bytes: BLOCK, burst_bytes: BLOCK };
    let reader = client.reader("film", contract, Bytes::ZERO).expect("a contract that fits");
    println!("window mapped by the program: {}", reader.is_shared());
    let mut bench = Bench::new(reader, cached);
    let alone = bench.run(quiet);
    print(&format!("alone, {quiet} reads of 64 KiB"), &alone);

    let reads = std::env::var("SLACKLINE_READS").ok().and_then(|reads| reads.parse().ok());
    let reads = reads.unwrap_or(loaded);
    let (stop, grabbed) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    let loaded = thread::scope(|scope| {
        for number in 0..GREEDY {
            let (stop, grabbed) = (&stop, &grabbed);
            scope.spawn(move || grab(client, number, stop, grabbed));
        }
        let loaded = bench.run(reads);
        stop.store(true, Ordering::Relaxed);
        loaded
    });
    let rate = grabbed.into_inner() as f64 / 1e6 / began.elapsed().as_secs_f64();
    print(&format!("beside {GREEDY} greedy readers ({rate:.0} MB/s), {reads} reads"), &loaded);
    let stats = bench.reader.stats().expect("the daemon is there");
    println!(
        "the daemon's account: {} disk requests, {} late, {} underruns",
        stats.requests, stats.late_requests, stats.underruns
    );
    println!("peek and advance, {GLANCE} bytes, a thousand together: {:.0} ns each", alone.glance);
    println!("aims: read / memcpy at most 1.2; peek and advance below 200 ns");
}

/// What was seen.
#[derive(Default)]
struct Seen {
    window: Samples,
    memcpy: Samples,
    pread: Samples,
    /// How late the host woke the program.
    host: Samples,
    /// Reads that were not in the window at once, and are in none of the others.
    waited: Samples,
    /// Of a look at few bytes, in ns.
    glance: f64,
}

fn print(title: &str, seen: &Seen) {
    let (waited, longest) = (seen.waited.len(), seen.waited.max());
    println!("\n{title}; {waited} were not in the window at once (the longest took {longest})");
    let mut table = Table::new(&["us", ">50 %", ">99 %", ">99.9 %", ">largest", ">50 % / memcpy"]);
    let base = seen.memcpy.figures().p50_ns as f64;
    let rows = [
        ("memcpy", &seen.memcpy),
        ("read in the window", &seen.window),
        ("pread from the page cache", &seen.pread),
        ("the host's lateness", &seen.host),
    ];
    for (name, samples) in rows {
        let figures = samples.figures();
        let mut row = vec![name.to_owned()];
        let times = [figures.p50_ns, figures.p99_ns, figures.p999_ns, figures.max_ns];
        row.extend(times.map(|nanos| report::number(nanos as f64 / 1e3)));
        row.push(match name {
            "the host's lateness" => "-".into(),
            _ => format!("{:.2}", figures.p50_ns as f64 / base),
        });
        table.row(row);
    }
    println!("{}", table.text("  "));
}

/// A reader under contract, and what it is compared with.
struct Bench {
    reader: Reader,
    cached: File,
    /// As large as the film, so that it is as cold.
    memory: Vec<u8>,
    into: Vec<u8>,
    at: u64,
}

impl Bench {
    fn new(reader: Reader, cached: File) -> Self {
        let memory = (0..scale().film.get()).map(|byte| byte as u8).collect();
        Self { reader, cached, memory, into: vec![0; READ.as_usize()], at: 0 }
    }

    fn run(&mut self, reads: u64) -> Seen {
        let mut seen = Seen::default();
        let mut due = self.rewind();
        let mut glances = (0.0, 0);
        for read in 0..reads {
            if self.at == scale().film.get() {
                due = self.rewind();
            }
            due = (due + scale().period).max(Instant::now());
            thread::sleep(due.saturating_duration_since(Instant::now()));
            add(&mut seen.host, due.elapsed());
            match read % 64 {
                // In place of a read: many looks at few bytes, none copied.
                0 => {
                    let began = Instant::now();
                    let looks = self.glance();
                    glances = (glances.0 + began.elapsed().as_nanos() as f64, glances.1 + looks);
                }
                _ => {
                    for turn in 0..3 {
                        self.copy((read + turn) % 3, &mut seen);
                    }
                }
            }
            self.at += READ.get();
        }
        seen.glance = glances.0 / f64::from(glances.1.max(1));
        seen
    }

    /// One of the three copies.
    fn copy(&mut self, which: u64, seen: &mut Seen) {
        let len = READ.as_usize();
        let began = Instant::now();
        match which {
            0 => {
                let waits = matches!(self.reader.try_peek(len), Ok(None));
                let mut done = 0;
                while done < len {
                    let Ok(Peek::Data(bytes)) = self.reader.peek(len - done) else {
                        panic!("the film was filled, and has no gaps")
                    };
                    let had = bytes.len();
                    self.into[done..][..had].copy_from_slice(bytes);
                    self.reader.advance(had);
                    done += had;
                }
                let took = if waits { &mut seen.waited } else { &mut seen.window };
                add(took, began.elapsed());
            }
            1 => {
                self.into.copy_from_slice(&self.memory[self.at as usize..][..len]);
                add(&mut seen.memcpy, began.elapsed());
            }
            _ => {
                self.cached.read_exact_at(&mut self.into, self.at).expect("it is in the cache");
                add(&mut seen.pread, began.elapsed());
            }
        }
        black_box(&self.into);
    }

    /// Looks at what a read would have copied, a few bytes at a time; gives how often.
    fn glance(&mut self) -> u32 {
        let (mut done, mut looks) = (0, 0);
        while done < READ.as_usize() {
            let len = GLANCE.min(READ.as_usize() - done);
            let Ok(Peek::Data(bytes)) = self.reader.peek(len) else {
                panic!("the film was filled, and has no gaps")
            };
            let had = black_box(bytes).len();
            self.reader.advance(had);
            (done, looks) = (done + had, looks + 1);
        }
        looks
    }

    /// Begins the film again, once its window is full; gives when.
    fn rewind(&mut self) -> Instant {
        self.at = 0;
        let ready = self.reader.seek(Bytes::ZERO).expect("the start of the volume");
        thread::sleep(Duration::from_nanos(ready.ready.as_nanos()));
        let first = self.reader.peek(1).expect("the daemon is there");
        assert!(matches!(first, Peek::Data(_)), "the film begins with data");
        Instant::now()
    }
}

/// Reads as fast as it gets, two requests at a time.
fn grab(client: &Client, number: u64, stop: &AtomicBool, grabbed: &AtomicU64) {
    let mut volume = client.best_effort(&format!("greedy-{number}")).expect("it was made");
    let (mut next, places) = (0, scale().greedy_file / GREEDY_READ);
    loop {
        while !stop.load(Ordering::Relaxed) && volume.outstanding() < 2 {
            let at = GREEDY_READ * (next % places);
            volume.begin_read(at, GREEDY_READ).expect("the daemon is there");
            next += 1;
        }
        if volume.outstanding() == 0 {
            return;
        }
        let bytes = volume.take().and_then(|done| done.result).expect("an emulated disk");
        grabbed.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

/// A file of the film's size that is in the page cache.
fn cached(folder: &Path) -> File {
    let path = folder.join("cached");
    std::fs::write(&path, vec![1; scale().film.as_usize()]).expect("a place for it");
    let file = File::open(path).expect("it was made");
    let mut all = vec![0; scale().film.as_usize()];
    file.read_exact_at(&mut all, 0).expect("it was made");
    file
}
