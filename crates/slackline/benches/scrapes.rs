//! What reading the metrics takes, and whether a contract is late beside it.
//!
//! `cargo bench -p slackline --bench scrapes`. A daemon of its own serves an emulated NVMe disk,
//! whose file is in `SLACKLINE_BENCH_DIR`, or where temporary files go. As many volumes as
//! `SLACKLINE_STREAMS` says (1,000) are recorded at 16 kB/s each; once all of them are, the metrics
//! are read each second for a minute. The streams fill their blocks at different times: where all do
//! at once, a thousand requests keep an emulated disk's processor busy for a tenth of a second. `SLACKLINE_QUICK`: a few streams, which show that it
//! runs and nothing else. A scrape is timed from the connection to its last byte.
#![allow(clippy::print_stdout)]

mod served;

use client::control::{Contract, VolumeCreate};
use client::{Client, Writer};
use report::Table;
use rwrt::Samples;
use served::{Daemon, add, folder};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use units::{Bytes, Rate};

const RATE: Rate = Rate::per_second(16_000);
const BLOCK: Bytes = Bytes::kib(64);
const SIZE: Bytes = Bytes::mib(1);
/// Programs that record, each its part of the streams.
const PROGRAMS: usize = 8;
/// From one round over all streams to the next.
const ROUND: Duration = Duration::from_millis(250);

fn main() {
    let quick = std::env::var_os("SLACKLINE_QUICK").is_some();
    let asked = std::env::var("SLACKLINE_STREAMS").ok().and_then(|streams| streams.parse().ok());
    let streams = asked.unwrap_or(if quick { 16 } else { 1_000 });
    let scrapes = if quick { 2 } else { 60 };
    let folder = folder();
    let daemon = Daemon::start(&folder, "ssd-nvme", &["--memory", "1GiB"]);
    let client = &daemon.client;
    let volume = |number| VolumeCreate::new(name(number), SIZE);
    (0..streams).for_each(|number| drop(client.volume_create(&volume(number)).expect("room")));
    let (all, stop) = (Barrier::new(PROGRAMS + 1), AtomicBool::new(false));
    let (mut took, mut host) = (Samples::default(), Samples::default());
    let mut body = String::new();
    let cpu = thread::scope(|scope| {
        for program in 0..PROGRAMS {
            let (all, stop) = (&all, &stop);
            scope.spawn(move || record(client, (program..streams).step_by(PROGRAMS), all, stop));
        }
        all.wait();
        let before = daemon.processor();
        let mut due = Instant::now();
        for _ in 0..scrapes {
            due += Duration::from_secs(1);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            add(&mut host, due.elapsed());
            let began = Instant::now();
            body = scrape(client);
            add(&mut took, began.elapsed());
        }
        let used = daemon.processor() - before;
        let status = client.status().expect("the daemon is there");
        assert_eq!(status.streams.len(), streams, "all are open still");
        let late: u64 = status.streams.iter().map(|stream| stream.late_requests).sum();
        let requests: u64 = status.streams.iter().map(|stream| stream.requests).sum();
        println!("{streams} streams at {RATE}: {requests} disk requests, {late} late");
        stop.store(true, Ordering::Relaxed);
        used
    });
    let series = body.lines().filter(|line| !line.starts_with('#')).count();
    println!(
        "{series} series, {} bytes; the daemon used {:.1} % of a processor, streams and scrapes together",
        body.len(),
        cpu.as_secs_f64() * 100.0 / f64::from(scrapes)
    );
    let mut table = Table::new(&["ms", ">50 %", ">largest"]);
    for (name, samples) in [("a scrape", &mut took), ("the host's lateness", &mut host)] {
        let figures = samples.figures();
        let times = [figures.p50_ns, figures.max_ns];
        let times = times.map(|nanos| format!("{:.2}", nanos as f64 / 1e6));
        table.row([vec![name.to_owned()], times.to_vec()].concat());
    }
    println!("{}", table.text("  "));
    println!("aim: a scrape of 1,000 streams takes less than 20 ms, and nothing is late");
}

/// Of the volume of a stream.
fn name(number: usize) -> String {
    format!("stream-{number}")
}

/// Records some of the streams, a little below their rate, until it is told to stop.
fn record(client: &Client, numbers: impl Iterator<Item = usize>, all: &Barrier, stop: &AtomicBool) {
    let contract = Contract { rate_bytes_per_second: RATE, block_bytes: BLOCK, burst_bytes: BLOCK };
    let open = |number| {
        let name = name(number);
        let mut writer = client.writer(&name, contract, Bytes::ZERO).expect("a contract that fits");
        // Prime to the block's size: as far apart as they can be.
        let first = vec![1; number * 40_503 % BLOCK.as_usize()];
        writer.write_all(&first).expect("the daemon is there");
        writer
    };
    let mut writers: Vec<Writer> = numbers.map(open).collect();
    all.wait();
    let piece = vec![1; (RATE.get() as f64 * 0.95 * ROUND.as_secs_f64()) as usize];
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        for writer in &mut writers {
            writer.write_all(&piece).expect("the daemon is there");
        }
        due += ROUND;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

fn scrape(client: &Client) -> String {
    let mut connection = UnixStream::connect(client.socket()).expect("the daemon is there");
    let asked = b"GET /metrics HTTP/1.1\r\nHost: slackline\r\nConnection: close\r\n\r\n";
    connection.write_all(asked).expect("the daemon is there");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("the daemon is there");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}
