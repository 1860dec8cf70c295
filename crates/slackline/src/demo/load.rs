//! One run: readers and writers under contract beside greedy readers, on a
//! daemon that is up, and then the proof that every byte is right.

use super::connect::Incoming;
use super::failed;
use super::outcome::{Greedy, Outcome, Streams};
use super::pace::std;
use super::programs::{Grabbed, Greed, Meter, Pace, Played, Reader, Span, grab, write};
use super::progress::Progress;
use super::samples::Samples;
use super::volumes::{Parts, fill_volume, verify_volume};
use crate::failure::Failure;
use client::control::{Contract, VolumeCreate};
use client::{BestEffort, Client, Writer};
use std::sync::atomic::Ordering;
use std::thread::{ScopedJoinHandle, scope};
use std::time::Instant;
use units::{Bytes, Duration, Rate};

/// What every reader and writer asks for.
pub const RATE: Rate = Rate::per_second(1_000_000);
/// What a stream moves at a time: large enough that a slow seek does not waste
/// the disk, small enough that a window is a few megabytes.
const BLOCK: Bytes = Bytes::kib(512);
/// What a program touches at a time.
const PIECE: Bytes = Bytes::kib(64);
/// How many of each there are.
pub const READERS: u64 = 4;
/// See [`READERS`].
pub const WRITERS: u64 = 2;
/// See [`READERS`].
pub const GREEDY: u64 = 8;
/// Runs that a disk is prepared for.
const RUNS: u64 = 2;
/// Requests that each greedy reader keeps waiting, of [`PIECE`] each.
const OUTSTANDING: usize = 8;
/// From opening the last stream to the first piece.
const LEAD: Duration = Duration::from_millis(300);

/// What every stream of the load asks for.
pub fn contract() -> Contract {
    Contract { rate_bytes_per_second: RATE, block_bytes: BLOCK, burst_bytes: PIECE }
}

/// The load, and how long it lasts.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How long a run takes, in seconds.
    pub seconds: u64,
    /// Where each greedy reader's volume has data.
    pub files: Parts,
}

/// A policy to run under.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// As the daemon takes it.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Tells the numbers of one run's volumes from those of another.
    pub run: u64,
}

/// The number that marks the sectors of a volume, which is also in its name.
fn reader_volume(reader: u64) -> (String, u64) {
    (format!("film-{reader}"), 100 + reader)
}
fn writer_volume(run: u64, writer: u64) -> (String, u64) {
    (format!("camera-{run}-{writer}"), 1_000 * (run + 1) + writer)
}
fn greedy_volume(greedy: u64) -> (String, u64) {
    (format!("files-{greedy}"), 200 + greedy)
}

impl Load {
    /// Bytes that a stream moves in a run, and the two seconds before its first
    /// and after its last piece.
    fn stream_size(self) -> Bytes {
        RATE.bytes_in(Duration::from_secs(self.seconds + 2)).round_up(Bytes::MIB)
    }

    /// What all volumes take of the disk.
    pub fn volumes_size(self) -> Bytes {
        self.stream_size() * (READERS + WRITERS * RUNS) + self.files.size() * GREEDY
    }

    /// Makes all volumes and fills what is read: a film for each reader, and for
    /// the greedy ones files that lie on all the rest of the disk.
    pub fn prepare(self, client: &Client, progress: &mut Progress) -> Result<(), Failure> {
        for (run, writer) in (0..RUNS).flat_map(|run| (1..=WRITERS).map(move |n| (run, n))) {
            create(client, &writer_volume(run, writer).0, self.stream_size())?;
        }
        let films = (1..=READERS).map(|n| (reader_volume(n), Parts::all(self.stream_size())));
        let files = (1..=GREEDY).map(|n| (greedy_volume(n), self.files));
        let total = self.stream_size() * READERS + self.files.bytes() * GREEDY;
        let mut before = Bytes::ZERO;
        for ((name, number), parts) in films.chain(files) {
            create(client, &name, parts.size())?;
            let mut volume = client.best_effort(&name)?;
            fill_volume(&mut volume, number, parts, |written| {
                let megabytes = (before + written).get() / 1_000_000;
                progress.update(&format!("{megabytes} of {} MB", total.get() / 1_000_000));
            })?;
            volume.sync()?;
            before += parts.bytes();
        }
        Ok(())
    }

    /// Runs the load and proves what it read and wrote.
    pub fn run(
        self,
        client: &Client,
        policy: Policy,
        progress: &mut Progress,
    ) -> Result<Outcome, Failure> {
        let mut programs = self.open(client, policy)?;
        let start = Instant::now() + std(LEAD);
        let span = Span { start, end: start + std(Duration::from_secs(self.seconds)) };
        let results = self.play(client, &mut programs, (policy, span), progress)?;
        let mut outcome = outcome(policy, &results, span);
        count_requests(client, &programs, &mut outcome)?;
        let status = client.status()?;
        outcome.host_lateness.add(status.host_wakeups.max_ns);
        outcome.host_lateness.add(status.host_completions.max_ns);
        programs.close()?;
        progress.update("reading back what was written");
        for (writer, (_, written)) in (1..).zip(&results.writers) {
            let (name, number) = writer_volume(policy.run, writer);
            let mut volume = client.best_effort(&name)?;
            let (right, wrong) = verify_volume(&mut volume, number, Bytes::new(*written))?;
            outcome.bytes_verified += Bytes::new(right);
            outcome.wrong.extend(wrong.iter().map(ToString::to_string));
        }
        Ok(outcome)
    }

    /// Opens every stream, with the first piece of each reader in hand.
    fn open(self, client: &Client, policy: Policy) -> Result<Programs, Failure> {
        let mut programs = Programs::default();
        for reader in 1..=READERS {
            let (name, number) = reader_volume(reader);
            let opened = client.reader(&name, contract(), Bytes::ZERO)?;
            programs.streams.push(opened.stream());
            programs.readers.push(Reader::new(Incoming::new(opened, PIECE), number, PIECE));
        }
        for writer in 1..=WRITERS {
            let (name, number) = writer_volume(policy.run, writer);
            let opened = client.writer(&name, contract(), Bytes::ZERO)?;
            programs.streams.push(opened.stream());
            programs.writers.push((opened, number));
        }
        for greedy in 1..=GREEDY {
            let (name, volume) = greedy_volume(greedy);
            let (parts, seed) = (self.files, policy.run << 32 | greedy);
            let greed = Greed { volume, parts, request: PIECE, outstanding: OUTSTANDING, seed };
            programs.greedy.push((client.best_effort(&name)?, greed));
        }
        for reader in &mut programs.readers {
            reader.touch()?; // once the first piece is there, the window is full
        }
        Ok(programs)
    }

    /// Runs all programs to the end of the span.
    fn play(
        self,
        client: &Client,
        programs: &mut Programs,
        (policy, span): (Policy, Span),
        progress: &mut Progress,
    ) -> Result<Results, Failure> {
        let meter = &Meter::default();
        let when = (span, Pace { piece: PIECE, rate: RATE });
        scope(|threads| {
            let mut readers = Vec::new();
            for reader in &mut programs.readers {
                readers.push(threads.spawn(move || reader.play(when, meter)));
            }
            let mut writers = Vec::new();
            for (writer, number) in &mut programs.writers {
                writers.push(threads.spawn(move || write(writer, *number, when, meter)));
            }
            let mut greedy = Vec::new();
            for (volume, greed) in &mut programs.greedy {
                greedy.push(threads.spawn(move || grab(volume, *greed, span, meter)));
            }
            watch(client, meter, (policy, span), progress);
            Ok(Results { readers: join(readers)?, writers: join(writers)?, greedy: join(greedy)? })
        })
    }
}

fn create(client: &Client, name: &str, size: Bytes) -> Result<(), Failure> {
    client.volume_create(&VolumeCreate::new(name, size))?;
    Ok(())
}

/// Shows how far the run is, until it ends.
fn watch(client: &Client, meter: &Meter, (policy, span): (Policy, Span), progress: &mut Progress) {
    let total = span.duration().as_millis() / 1_000;
    let mut before = (0, 0);
    for second in 1..=total {
        let due = span.start + std(Duration::from_secs(second));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = (meter.streams.load(Ordering::Relaxed), meter.greedy.load(Ordering::Relaxed));
        let late: Option<u64> = client
            .streams()
            .ok()
            .map(|streams| streams.iter().map(|stream| stream.late_requests).sum());
        let late = late.map_or("?".into(), |late| late.to_string());
        let [streams, greedy] = [now.0 - before.0, now.1 - before.1].map(|n| n as f64 / 1e6);
        progress.update(&format!(
            "{}: {second:2} of {total} s: streams {streams:.1} MB/s, {late} late requests; \
             greedy readers {greedy:.1} MB/s",
            policy.title
        ));
        before = now;
    }
}

fn join<T>(threads: Vec<ScopedJoinHandle<'_, Result<T, Failure>>>) -> Result<Vec<T>, Failure> {
    let joined = threads.into_iter().map(|thread| {
        thread.join().unwrap_or_else(|_| Err(failed("a program of the load panicked")))
    });
    joined.collect()
}

/// Every program with its connection.
#[derive(Default)]
struct Programs {
    readers: Vec<Reader<Incoming>>,
    writers: Vec<(Writer, u64)>,
    greedy: Vec<(BestEffort, Greed)>,
    /// The daemon's numbers of the readers and then the writers.
    streams: Vec<u64>,
}

impl Programs {
    fn close(self) -> Result<(), Failure> {
        for reader in self.readers {
            reader.into_source().close()?;
        }
        for (writer, _) in self.writers {
            writer.close()?;
        }
        Ok(())
    }
}

/// What every program saw; writers with the bytes that they wrote in all.
struct Results {
    readers: Vec<Played>,
    writers: Vec<(Played, u64)>,
    greedy: Vec<Grabbed>,
}

fn outcome(policy: Policy, results: &Results, span: Span) -> Outcome {
    let writers: Vec<&Played> = results.writers.iter().map(|(played, _)| played).collect();
    let readers: Vec<&Played> = results.readers.iter().collect();
    let all = readers.iter().chain(&writers);
    let read: u64 = readers.iter().map(|played| played.verified).sum();
    let grabbed: u64 = results.greedy.iter().map(|greedy| greedy.verified).sum();
    let wrong = readers.iter().flat_map(|played| &played.wrong);
    let wrong = wrong.chain(results.greedy.iter().flat_map(|greedy| &greedy.wrong));
    Outcome {
        policy: policy.name,
        title: policy.title,
        greedy: greedy(&results.greedy, span),
        host_lateness: all.map(|played| &played.wakeups).collect(),
        bytes_verified: Bytes::new(read + grabbed),
        frames: 0,
        wrong: wrong.map(ToString::to_string).collect(),
        piece_period: RATE.time_for(PIECE),
        readers: streams(&readers, span),
        writers: streams(&writers, span),
    }
}

fn streams(played: &[&Played], span: Span) -> Streams {
    Streams {
        asked: RATE,
        got: played.iter().map(|played| played.rate(span)).collect(),
        latency: played.iter().map(|played| &played.latency).collect(),
        ..Streams::default()
    }
}

fn greedy(grabbed: &[Grabbed], span: Span) -> Greedy {
    let moved = grabbed.iter().map(|grabbed| grabbed.moved).sum();
    Greedy {
        count: grabbed.len(),
        rate: Rate::of(Bytes::new(moved), span.duration()),
        latency: grabbed.iter().map(|grabbed| &grabbed.latency).collect::<Samples>(),
    }
}

/// What the daemon counted of each stream; the streams are still open.
fn count_requests(
    client: &Client,
    programs: &Programs,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    for (at, &id) in programs.streams.iter().enumerate() {
        let stream = client.stream(id)?;
        let is_reader = at < programs.readers.len();
        let group = if is_reader { &mut outcome.readers } else { &mut outcome.writers };
        group.requests += stream.requests;
        group.late_requests += stream.late_requests;
        group.underruns += stream.underruns;
    }
    Ok(())
}
