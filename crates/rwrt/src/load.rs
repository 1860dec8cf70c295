//! A run: programs that keep a rate, beside programs that take what they get.
//!
//! Every contract is asked for before any program begins, so that a refusal costs nothing
//! and greedy programs cannot fill the memory first. Greedy programs go on until the last
//! stream has ended; where there is none, each moves its total once.

use crate::clock::{Clock, HostClock};
use crate::error::Error;
use crate::outcome::{DaemonLateness, GreedyOutcome, Outcome, StreamOutcome};
use crate::pace::{self, Pace, Work};
use crate::pattern::{Checker, Mark};
use crate::storage::{Account, Input, Output, Written};
use crate::target::{Place, Target, Use};
use crate::volume::PIECE;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use units::{Bytes, Duration, Instant, Rate};

/// From the last program's start to the first operation.
const LEAD: Duration = Duration::from_millis(50);
/// How often progress is told.
const TICK: Duration = Duration::from_millis(250);
/// The most operations of a stream: each is kept.
pub const OPERATIONS_MAX: u64 = 4_000_000;

/// What runs.
#[derive(Clone, Debug)]
pub struct Load {
    /// Where.
    pub place: Place,
    /// Streams that read, each something of its own.
    pub readers: u64,
    /// Streams that write.
    pub writers: u64,
    /// One more stream reads what the first writer writes, and begins so long after it.
    pub timeshift: Option<Duration>,
    /// Programs that read as fast as they can.
    pub greedy_readers: u64,
    /// Programs that overwrite what is there as fast as they can.
    pub greedy_writers: u64,
    /// What a stream moves in a second.
    pub rate: Rate,
    /// What a stream moves at a time.
    pub block: Bytes,
    /// What a stream moves in all.
    pub total: Bytes,
    /// A stream ends after so long, whatever is missing then.
    pub limit: Option<Duration>,
    /// What there is of each greedy program's volume or file.
    pub greedy_total: Bytes,
    /// Another seed gives other bytes.
    pub seed: u64,
    /// Whether what is read, and what was written, is checked.
    pub verify: bool,
    /// Whether what is there may be overwritten.
    pub overwrite: bool,
}

/// Called on the thread of each stream before it begins: gives it what this library cannot,
/// a priority, and the class of the kernel's for its reads and writes.
pub type OnStream<'a> = &'a (dyn Fn() + Sync);

/// How far something is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What is done.
    pub what: String,
    /// So much is done of it, by streams.
    pub done: Bytes,
    /// Of so much.
    pub total: Bytes,
    /// Moved by greedy programs so far.
    pub greedy: Bytes,
    /// In this time, where programs run.
    pub elapsed: Duration,
}

/// Hears how far it is.
pub type Told<'a> = &'a (dyn Fn(&Progress) + Sync);

impl Load {
    /// Says what cannot be measured, before anything is made.
    ///
    /// # Errors
    /// What is wrong, and what to ask for.
    pub fn check(&self) -> Result<(), Error> {
        let streams = self.readers + self.writers + u64::from(self.timeshift.is_some());
        if streams + self.greedy_readers + self.greedy_writers == 0 {
            let next_step = "ask for --readers, --writers, --greedy-readers or --greedy-writers";
            return Err(Error::wrong("no program is asked for", next_step));
        }
        if self.timeshift.is_some() && self.writers == 0 {
            let what = "a timeshift reads what a writer writes, and there is no writer";
            return Err(Error::wrong(what, "add --writers 1"));
        }
        if self.rate.is_zero() || self.block.is_zero() || self.total.is_zero() {
            let what = "nothing can be moved at a rate, in blocks or to a total of 0";
            return Err(Error::wrong(what, "give each of --rate, --block and --total a size"));
        }
        if self.block > Bytes::MIB {
            let what = format!("a block of {} is more than 1 MiB", self.block);
            return Err(Error::wrong(what, "give a smaller --block"));
        }
        let operations = self.total.div_ceil(self.block);
        if operations > OPERATIONS_MAX {
            let what = format!(
                "{operations} operations for each stream are more than the {OPERATIONS_MAX} that \
                 are kept"
            );
            return Err(Error::wrong(what, "give a larger --block or a smaller --total"));
        }
        Ok(())
    }

    /// Every program with its target.
    fn programs(&self) -> Result<Programs, Error> {
        let all = self.readers + self.writers + self.greedy_readers + self.greedy_writers;
        let target =
            |role: &str, number: u64| self.place.target(&format!("{role}-{number}"), all == 1);
        let several = |role: &str, count: u64| -> Result<Vec<Target>, Error> {
            (1..=count).map(|number| target(role, number)).collect()
        };
        Ok(Programs {
            readers: several("reader", self.readers)?,
            writers: several("writer", self.writers)?,
            greedy_readers: several("greedy-reader", self.greedy_readers)?,
            greedy_writers: several("greedy-writer", self.greedy_writers)?,
        })
    }

    fn greedy_total(&self) -> Bytes {
        self.greedy_total.max(PIECE).round_up(PIECE)
    }

    /// Makes what is missing: what is read is filled, what is written is made empty.
    ///
    /// # Errors
    /// Where something is there that may not be overwritten, or cannot be made.
    pub fn prepare(&self, told: Told<'_>) -> Result<(), Error> {
        self.check()?;
        let programs = self.programs()?;
        let mut empty = Vec::new();
        for target in &programs.writers {
            match target.holds()? {
                Some(held) if !held.is_zero() && !self.overwrite => {
                    let what = format!("{} holds {held} already", target.name());
                    let next_step = "say --overwrite where it may go, or name another place";
                    return Err(Error::wrong(what, next_step));
                }
                _ => empty.push(target),
            }
        }
        let mut full = Vec::new();
        let read = programs.readers.iter().map(|target| (target, self.total));
        let greedy = programs.greedy_readers.iter().chain(&programs.greedy_writers);
        for (target, size) in read.chain(greedy.map(|target| (target, self.greedy_total()))) {
            match target.holds()? {
                Some(held) if held >= size => {}
                Some(held) if !held.is_zero() && !self.overwrite => {
                    let what = format!("{} holds {held}, and {size} are to be read", target.name());
                    let next_step = "say --overwrite where it may be made anew, or give a smaller \
                                     --total or --greedy-total";
                    return Err(Error::wrong(what, next_step));
                }
                _ => full.push((target, size)),
            }
        }
        empty.into_iter().try_for_each(|target| target.make(self.total))?;
        let total = full.iter().map(|one| one.1).sum();
        let mut before = Bytes::ZERO;
        for (target, size) in full {
            let tell = |done: Bytes| {
                let what = format!("filling {}", target.name());
                told(&Progress {
                    what,
                    done: before + done,
                    total,
                    greedy: Bytes::ZERO,
                    elapsed: Duration::ZERO,
                });
            };
            target.fill(target.mark(self.seed), size, &tell)?;
            before += size;
        }
        Ok(())
    }

    /// Removes everything that [`Load::prepare`] makes, whoever made it.
    ///
    /// # Errors
    /// What the storage refused.
    pub fn remove(&self) -> Result<(), Error> {
        self.programs()?.all().try_for_each(Target::remove)
    }

    /// Runs all programs, and checks what they moved.
    ///
    /// # Errors
    /// A contract that is refused, or what the storage refused meanwhile.
    pub fn run(&self, on_stream: OnStream<'_>, told: Told<'_>) -> Result<Outcome, Error> {
        self.check()?;
        let programs = self.programs()?;
        let streams = self.open_streams(&programs)?;
        let greedy = self.open_greedy(&programs)?;
        let shared = Shared::new(streams.len());
        let clock = HostClock::new();
        let begins = clock.now() + LEAD;
        let total = self.total * streams.len().max(1) as u64;
        let (streams, greedy) = thread::scope(|scope| {
            let (shared, clock) = (&shared, &clock);
            let mut running = Vec::new();
            for stream in streams {
                let run = move || stream.run(self, (clock, begins), on_stream, shared);
                running.push(scope.spawn(move || shared.guard(run)));
            }
            let mut grabbing = Vec::new();
            for program in greedy {
                let run = move || program.run(self, (clock, begins), shared);
                grabbing.push(scope.spawn(move || shared.guard(run)));
            }
            let busy = || {
                running.iter().any(|thread| !thread.is_finished())
                    || grabbing.iter().any(|thread| !thread.is_finished())
            };
            while busy() {
                thread::sleep(crate::clock::std(TICK));
                told(&shared.progress(total, clock.now().saturating_since(begins)));
            }
            // What the last programs did meanwhile.
            told(&shared.progress(total, clock.now().saturating_since(begins)));
            Ok::<_, Error>((join(running)?, join(grabbing)?))
        })?;
        let elapsed = clock.now().saturating_since(begins);
        let mut outcome = Outcome { streams, greedy, elapsed, daemon: self.daemon_lateness()? };
        if self.verify {
            self.read_back(&programs, &mut outcome, told)?;
        }
        Ok(outcome)
    }

    fn open_streams(&self, programs: &Programs) -> Result<Vec<StreamProgram>, Error> {
        let how = Use::Stream(self.rate);
        let mut streams = Vec::new();
        let mut followed = None;
        for (number, target) in (0..).zip(&programs.writers) {
            let follow = number == 0 && self.timeshift.is_some() && !target.follows_by_itself();
            let written = follow.then(|| Arc::new(Written::default()));
            followed = followed.or(written.clone());
            let output = target.output(how, self.total, written)?;
            let work = Writes::new(output, target.mark(self.seed), None, self.block);
            streams.push(StreamProgram::new(target, Moves::Writes(work)));
        }
        for target in &programs.readers {
            let input = target.input(how, self.total, None)?;
            let work = self.reads(input, target, None, self.block);
            streams.push(StreamProgram::new(target, Moves::Reads(work)));
        }
        if let Some(behind) = self.timeshift {
            let target = &programs.writers[0];
            let input = target.input(how, self.total, followed)?;
            let work = self.reads(input, target, None, self.block);
            let mut reader = StreamProgram::new(target, Moves::Reads(work));
            (reader.behind, reader.name) = (behind, format!("reader of {}", target.name()));
            streams.push(reader);
        }
        Ok(streams)
    }

    fn open_greedy(&self, programs: &Programs) -> Result<Vec<GreedyProgram>, Error> {
        let (size, mut greedy) = (self.greedy_total(), Vec::new());
        for target in &programs.greedy_readers {
            let input = target.input(Use::Greedy, size, None)?;
            let work = Moves::Reads(self.reads(input, target, Some(size), PIECE));
            greedy.push(GreedyProgram { name: target.name().into(), work });
        }
        for target in &programs.greedy_writers {
            let output = target.output(Use::Greedy, size, None)?;
            let work = Writes::new(output, target.mark(self.seed), Some(size), PIECE);
            greedy.push(GreedyProgram { name: target.name().into(), work: Moves::Writes(work) });
        }
        Ok(greedy)
    }

    fn reads(
        &self,
        input: Box<dyn Input>,
        target: &Target,
        round: Option<Bytes>,
        block: Bytes,
    ) -> Reads {
        let checker = self.verify.then(|| Checker::new(target.mark(self.seed)));
        let buffer = vec![0; block.as_usize()];
        Reads { input, buffer, had: 0, at: Bytes::ZERO, round, checker }
    }

    /// Reads what streams have written, and checks it.
    fn read_back(
        &self,
        programs: &Programs,
        outcome: &mut Outcome,
        told: Told<'_>,
    ) -> Result<(), Error> {
        let total = outcome.streams.iter().filter(|s| s.writes).map(|s| s.seen.bytes).sum();
        let mut done = Bytes::ZERO;
        let mut buffer = vec![0; Bytes::MIB.as_usize()];
        let written = outcome.streams.iter_mut().filter(|stream| stream.writes);
        for (stream, target) in written.zip(&programs.writers) {
            let mut input = target.input(Use::Bulk, stream.seen.bytes, None)?;
            let mut checker = Checker::new(target.mark(self.seed));
            let mut at = Bytes::ZERO;
            while at < stream.seen.bytes {
                let len = input.read(&mut buffer)?;
                if len == 0 {
                    break;
                }
                checker.check(at, &buffer[..len]);
                at += Bytes::new(len as u64);
                done += Bytes::new(len as u64);
                let what = format!("reading {} back", target.name());
                told(&Progress { what, done, total, greedy: Bytes::ZERO, elapsed: Duration::ZERO });
            }
            input.close()?;
            stream.missing = stream.seen.bytes - at;
            stream.checked = Some(checker);
        }
        Ok(())
    }

    fn daemon_lateness(&self) -> Result<Option<DaemonLateness>, Error> {
        let Place::Volumes { client, .. } = &self.place else { return Ok(None) };
        let status = client.status()?;
        Ok(Some(DaemonLateness {
            wakeups_max_ns: status.host_wakeups.max_ns.as_nanos(),
            completions_max_ns: status.host_completions.max_ns.as_nanos(),
        }))
    }
}

struct Programs {
    readers: Vec<Target>,
    writers: Vec<Target>,
    greedy_readers: Vec<Target>,
    greedy_writers: Vec<Target>,
}

impl Programs {
    fn all(&self) -> impl Iterator<Item = &Target> {
        let greedy = self.greedy_readers.iter().chain(&self.greedy_writers);
        self.readers.iter().chain(&self.writers).chain(greedy)
    }
}

/// What the threads of a run know of each other.
struct Shared {
    moved: AtomicU64,
    grabbed: AtomicU64,
    /// Streams that have not ended.
    running: AtomicUsize,
    /// Whether greedy programs end with the streams.
    has_streams: bool,
    failed: AtomicBool,
}

impl Shared {
    fn new(streams: usize) -> Self {
        Self {
            moved: AtomicU64::new(0),
            grabbed: AtomicU64::new(0),
            running: AtomicUsize::new(streams),
            has_streams: streams > 0,
            failed: AtomicBool::new(false),
        }
    }

    /// Where one fails, all end.
    fn guard<T>(&self, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let result = run();
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn goes_on(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
    }

    fn progress(&self, total: Bytes, elapsed: Duration) -> Progress {
        let greedy = Bytes::new(self.grabbed.load(Ordering::Relaxed));
        let done = match self.has_streams {
            true => Bytes::new(self.moved.load(Ordering::Relaxed)),
            false => Bytes::ZERO,
        };
        let waiting = self.has_streams && self.running.load(Ordering::Relaxed) == 0;
        let what = if waiting { "waiting for what greedy programs have begun" } else { "running" };
        Progress { what: what.into(), done, total, greedy, elapsed }
    }
}

fn join<T>(threads: Vec<ScopedJoinHandle<'_, Result<T, Error>>>) -> Result<Vec<T>, Error> {
    let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
    let broken = || Error::wrong("a program of the run panicked", "report this");
    ended.into_iter().map(|end| end.unwrap_or_else(|_| Err(broken()))).collect()
}

/// One stream.
struct StreamProgram {
    name: String,
    moves: Moves,
    behind: Duration,
}

impl StreamProgram {
    fn new(target: &Target, moves: Moves) -> Self {
        Self { name: target.name().into(), moves, behind: Duration::ZERO }
    }

    fn run(
        mut self,
        load: &Load,
        (clock, begins): (&HostClock, Instant),
        on_stream: OnStream<'_>,
        shared: &Shared,
    ) -> Result<StreamOutcome, Error> {
        on_stream();
        let pace = Pace { block: load.block, rate: load.rate, total: load.total };
        let begins = begins + self.behind;
        let end = load.limit.map_or(Instant::from_nanos(u64::MAX), |limit| begins + limit);
        let cut = AtomicBool::new(false);
        let told = |moved: Bytes| {
            shared.moved.fetch_add(moved.get(), Ordering::Relaxed);
            let is_over = clock.now() >= end;
            cut.fetch_or(is_over, Ordering::Relaxed);
            shared.goes_on() && !is_over
        };
        let seen = pace::isochronous(clock, (pace, begins), self.moves.work(), &told);
        let writes = matches!(self.moves, Moves::Writes(_));
        // The account is complete when the last stream's last byte is where it belongs;
        // greedy programs go on until then.
        let closed = seen.and_then(|seen| Ok((seen, self.moves.close()?)));
        shared.running.fetch_sub(1, Ordering::Relaxed);
        let (seen, (account, checked)) = closed?;
        let missing = if writes { Bytes::ZERO } else { load.total - seen.bytes };
        let asked = load.rate;
        let cut = cut.into_inner();
        Ok(StreamOutcome { name: self.name, writes, asked, seen, account, checked, missing, cut })
    }
}

/// One greedy program.
struct GreedyProgram {
    name: String,
    work: Moves,
}

impl GreedyProgram {
    fn run(
        mut self,
        load: &Load,
        (clock, begins): (&HostClock, Instant),
        shared: &Shared,
    ) -> Result<GreedyOutcome, Error> {
        let told = |moved: Bytes| {
            shared.grabbed.fetch_add(moved.get(), Ordering::Relaxed);
            let end = shared.has_streams && shared.running.load(Ordering::Relaxed) == 0;
            shared.goes_on() && !end
        };
        let total = if shared.has_streams { Bytes::MAX } else { load.greedy_total() };
        clock.sleep_until(begins);
        let grabbed = pace::greedy(clock, (PIECE, total), self.work.work(), &told)?;
        let writes = matches!(self.work, Moves::Writes(_));
        let (_, checked) = self.work.close()?;
        Ok(GreedyOutcome { name: self.name, writes, grabbed, checked })
    }
}

/// Reads or writes.
enum Moves {
    Reads(Reads),
    Writes(Writes),
}

impl Moves {
    fn work(&mut self) -> &mut dyn Work {
        match self {
            Self::Reads(reads) => reads,
            Self::Writes(writes) => writes,
        }
    }

    fn close(self) -> Result<(Option<Account>, Option<Checker>), Error> {
        match self {
            Self::Reads(reads) => Ok((reads.input.close()?, reads.checker)),
            Self::Writes(writes) => Ok((writes.output.close()?, None)),
        }
    }
}

struct Reads {
    input: Box<dyn Input>,
    buffer: Vec<u8>,
    had: usize,
    at: Bytes,
    /// What is read round and round begins again here.
    round: Option<Bytes>,
    checker: Option<Checker>,
}

impl Work for Reads {
    fn prepare(&mut self, _: Bytes) {}

    fn operate(&mut self, len: Bytes) -> Result<Bytes, Error> {
        self.had = self.input.read(&mut self.buffer[..len.as_usize()])?;
        Ok(Bytes::new(self.had as u64))
    }

    fn move_playout(&mut self) -> Result<(), Error> {
        self.input.move_playout()
    }

    fn settle(&mut self) {
        if let Some(checker) = &mut self.checker {
            checker.check(self.at, &self.buffer[..self.had]);
        }
        self.at = after(self.at, self.had, self.round);
    }
}

struct Writes {
    output: Box<dyn Output>,
    mark: Mark,
    buffer: Vec<u8>,
    at: Bytes,
    /// What is written round and round begins again here.
    round: Option<Bytes>,
}

impl Writes {
    fn new(output: Box<dyn Output>, mark: Mark, round: Option<Bytes>, block: Bytes) -> Self {
        Self { output, mark, buffer: vec![0; block.as_usize()], at: Bytes::ZERO, round }
    }
}

impl Work for Writes {
    fn prepare(&mut self, len: Bytes) {
        self.mark.fill(self.at, &mut self.buffer[..len.as_usize()]);
    }

    fn operate(&mut self, len: Bytes) -> Result<Bytes, Error> {
        self.output.write(&self.buffer[..len.as_usize()])?;
        self.at = after(self.at, len.as_usize(), self.round);
        Ok(len)
    }

    fn move_playout(&mut self) -> Result<(), Error> {
        self.output.move_playout()
    }

    fn settle(&mut self) {}
}

fn after(at: Bytes, len: usize, round: Option<Bytes>) -> Bytes {
    let next = at + Bytes::new(len as u64);
    if round.is_some_and(|round| next >= round) { Bytes::ZERO } else { next }
}
