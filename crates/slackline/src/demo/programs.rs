//! The programs of the load: isochronous readers and writers under contract,
//! and greedy best-effort readers.
//!
//! Each is one thread that knows the system only through a trait of one or two
//! calls, so that a test can put a system behind it that is late or wrong.

use super::failed;
use super::pace::{Timetable, since};
use super::random::Random;
use super::samples::Samples;
use super::stamp::{Checker, SECTOR, Wrong, fill, splitmix};
use super::volumes::Parts;
use crate::failure::Failure;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use units::{Bytes, Duration, Rate};

/// When a run starts and ends, for all of its programs.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The first piece is due.
    pub start: Instant,
    /// No piece is due from here on.
    pub end: Instant,
}

impl Span {
    /// How long the run takes.
    pub fn duration(self) -> Duration {
        since(self.start, self.end)
    }
}

/// Bytes moved so far, for whoever shows progress.
#[derive(Debug, Default)]
pub struct Meter {
    /// By readers and writers under contract.
    pub streams: AtomicU64,
    /// By greedy readers.
    pub greedy: AtomicU64,
}

/// What an isochronous program touches, and when.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How much at a time; whole sectors.
    pub piece: Bytes,
    /// How much a second.
    pub rate: Rate,
}

impl Pace {
    /// From one piece to the next.
    pub fn period(self) -> Duration {
        self.rate.time_for(self.piece)
    }
}

/// A stream that is read in order.
pub trait Source {
    /// The next bytes, at most `len`; fewer than one only at the end.
    fn next(&mut self, len: usize) -> Result<&[u8], Failure>;
}

/// A stream that is written in order.
pub trait Sink {
    /// Hands bytes over; returns when the system has them in its window.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure>;
}

/// What an isochronous program saw.
#[derive(Debug, Default)]
pub struct Played {
    /// Of each piece that was due.
    pub latency: Samples,
    /// Of each sleep.
    pub wakeups: Samples,
    /// Bytes moved before the end of the run.
    pub moved: u64,
    /// Readers: bytes found right, and the faults.
    pub verified: u64,
    /// See [`Played::verified`].
    pub wrong: Vec<Wrong>,
}

impl Played {
    /// What the program got in a run of this length.
    pub fn rate(&self, span: Span) -> Rate {
        Rate::of(Bytes::new(self.moved), span.duration())
    }
}

/// Moves a piece at each step of the timetable until the run ends. `prepare` is
/// the program's own work and is done before the piece is due.
fn play<P>(
    (span, pace): (Span, Pace),
    meter: &Meter,
    program: &mut P,
    prepare: fn(&mut P),
    touch: fn(&mut P) -> Result<(), Failure>,
) -> Result<Played, Failure> {
    let mut table = Timetable::new(span.start, pace.period());
    let mut played = Played::default();
    while table.due() < span.end {
        prepare(program);
        let from = table.next();
        touch(program)?;
        let had = Instant::now();
        // A piece that came after the end has waited until the end, no longer:
        // what waits beyond is the run's own clearing up.
        played.latency.add(since(from, had.min(span.end)));
        if had <= span.end {
            played.moved += pace.piece.get();
            meter.streams.fetch_add(pace.piece.get(), Ordering::Relaxed);
            continue;
        }
        while table.due() < span.end {
            played.latency.add(since(table.skip(), span.end));
        }
    }
    played.wakeups = table.into_wakeups();
    Ok(played)
}

/// A stream that is read in order, with what is expected of its next bytes.
pub struct Reader<S> {
    source: S,
    checker: Checker,
    piece: usize,
}

impl<S: Source> Reader<S> {
    /// Expects the sectors of `volume` from 0 on, in pieces of this size.
    pub fn new(source: S, volume: u64, piece: Bytes) -> Self {
        Self { source, checker: Checker::new(volume, 0), piece: piece.as_usize() }
    }

    /// Reads one piece.
    pub fn touch(&mut self) -> Result<(), Failure> {
        let mut missing = self.piece;
        while missing > 0 {
            let bytes = self.source.next(missing)?;
            if bytes.is_empty() {
                return Err(failed("a volume ended before its reader did"));
            }
            missing -= bytes.len();
            self.checker.feed(bytes);
        }
        Ok(())
    }

    /// Reads at its pace until the run ends. What was found right or wrong
    /// before counts in the result.
    pub fn play(&mut self, when: (Span, Pace), meter: &Meter) -> Result<Played, Failure> {
        let mut played = play(when, meter, self, |_| {}, Self::touch)?;
        played.verified = self.checker.verified();
        played.wrong = self.checker.wrong().to_vec();
        Ok(played)
    }

    /// Gives the stream back.
    pub fn into_source(self) -> S {
        self.source
    }
}

/// Writes the sectors of `volume` from 0 on; gives also how many bytes it wrote.
pub fn write(
    sink: &mut dyn Sink,
    volume: u64,
    when: (Span, Pace),
    meter: &Meter,
) -> Result<(Played, u64), Failure> {
    struct Writer<'a> {
        sink: &'a mut dyn Sink,
        volume: u64,
        sector: u64,
        piece: Vec<u8>,
    }
    let piece = vec![0; when.1.piece.as_usize()];
    let mut writer = Writer { sink, volume, sector: 0, piece };
    let prepare = |writer: &mut Writer<'_>| fill(writer.volume, writer.sector, &mut writer.piece);
    let touch = |writer: &mut Writer<'_>| {
        writer.sink.write(&writer.piece)?;
        writer.sector += (writer.piece.len() / SECTOR) as u64;
        Ok(())
    };
    let played = play(when, meter, &mut writer, prepare, touch)?;
    Ok((played, writer.sector * SECTOR as u64))
}

/// A greedy reader: random places of one volume, several requests at a time.
#[derive(Clone, Copy, Debug)]
pub struct Greed {
    /// The number of the volume.
    pub volume: u64,
    /// Where it has data.
    pub parts: Parts,
    /// How much at a time; a part is a multiple of it.
    pub request: Bytes,
    /// How many requests are kept waiting.
    pub outstanding: usize,
    /// Where its random places start from.
    pub seed: u64,
}

/// What a greedy reader saw.
#[derive(Debug, Default)]
pub struct Grabbed {
    /// Of each request that was answered before the end.
    pub latency: Samples,
    /// Bytes answered before the end.
    pub moved: u64,
    /// Bytes found right.
    pub verified: u64,
    /// The faults.
    pub wrong: Vec<Wrong>,
}

/// Reads as much as it gets until the run ends.
pub fn grab(
    volume: &mut dyn Random,
    greed: Greed,
    span: Span,
    meter: &Meter,
) -> Result<Grabbed, Failure> {
    let mut grabbed = Grabbed::default();
    let mut waiting: HashMap<u64, (Bytes, Instant)> = HashMap::new();
    let mut random = greed.seed;
    let places = Parts::LEN / greed.request;
    std::thread::sleep(span.start.saturating_duration_since(Instant::now()));
    loop {
        while waiting.len() < greed.outstanding && Instant::now() < span.end {
            let part = greed.parts.offset(splitmix(&mut random) % greed.parts.count);
            let offset = part + greed.request * (splitmix(&mut random) % places);
            let asked = Instant::now();
            let tag = volume.read(offset, greed.request)?;
            waiting.insert(tag, (offset, asked));
        }
        if waiting.is_empty() {
            return Ok(grabbed);
        }
        let (tag, bytes) = volume.wait()?;
        let now = Instant::now();
        let (offset, asked) =
            waiting.remove(&tag).ok_or_else(|| failed("an answer nobody waits for"))?;
        let mut checker = Checker::new(greed.volume, offset.get() / SECTOR as u64);
        checker.feed(&bytes);
        grabbed.verified += checker.verified();
        grabbed.wrong.extend_from_slice(checker.wrong());
        if bytes.len() as u64 != greed.request.get() {
            return Err(failed("a read came back with another length"));
        }
        if now <= span.end {
            grabbed.latency.add(since(asked, now));
            grabbed.moved += greed.request.get();
            meter.greedy.fetch_add(greed.request.get(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pace::std;
    use super::*;

    const PIECE: Bytes = Bytes::kib(64);

    /// A volume that is right, or has one bit wrong, and never makes anyone wait.
    struct Disk {
        volume: u64,
        at: u64,
        damaged: Option<u64>,
        buffer: Vec<u8>,
        asked: Vec<(u64, Bytes)>,
        answers: usize,
        tag: u64,
    }

    impl Disk {
        fn new(damaged: Option<u64>) -> Self {
            Self {
                volume: 7,
                at: 0,
                damaged,
                buffer: Vec::new(),
                asked: Vec::new(),
                answers: 0,
                tag: 0,
            }
        }
        fn load(&mut self, first: u64, len: usize) {
            self.buffer.resize(len, 0);
            fill(self.volume, first, &mut self.buffer);
            if let Some(sector) = self.damaged.filter(|s| (first..first + 16).contains(s)) {
                self.buffer[(sector - first) as usize * SECTOR + 99] ^= 4;
            }
        }
    }
    impl Source for Disk {
        fn next(&mut self, len: usize) -> Result<&[u8], Failure> {
            self.load(self.at, len);
            self.at += (len / SECTOR) as u64;
            Ok(&self.buffer)
        }
    }
    impl Sink for Disk {
        fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
            self.buffer.extend_from_slice(bytes);
            Ok(())
        }
    }
    impl Random for Disk {
        fn read(&mut self, offset: Bytes, _: Bytes) -> Result<u64, Failure> {
            self.tag += 1;
            self.asked.push((self.tag, offset));
            Ok(self.tag)
        }
        fn write(&mut self, _: Bytes, _: &[u8]) -> Result<u64, Failure> {
            unreachable!("greedy readers read")
        }
        fn wait(&mut self) -> Result<(u64, Vec<u8>), Failure> {
            let (tag, offset) = self.asked.swap_remove(self.asked.len() / 2);
            self.answers += 1;
            self.load(offset.get() / SECTOR as u64, Parts::LEN.as_usize());
            Ok((tag, self.buffer.clone()))
        }
    }

    fn when(start_ago: u64, millis: u64) -> (Span, Pace) {
        let start = Instant::now() - std(Duration::from_millis(start_ago));
        let span = Span { start, end: start + std(Duration::from_millis(millis)) };
        (span, Pace { piece: PIECE, rate: Rate::per_second(65_536_000) })
    }

    /// 64 KiB at 65.536 MB/s is a piece a millisecond. The run is over before it
    /// begins: the first piece is got too late, and no other is even asked for.
    #[test]
    fn pieces_that_did_not_come_before_the_end_count_with_their_wait() {
        let when = when(1_000, 20);
        let played = Reader::new(Disk::new(None), 7, PIECE).play(when, &Meter::default()).unwrap();
        assert_eq!((played.moved, played.latency.len()), (0, 20));
        let waits: Vec<_> = played.latency.sorted().iter().map(|wait| wait.as_millis()).collect();
        assert_eq!(waits, (1..=20).collect::<Vec<_>>());
        assert_eq!(played.verified, PIECE.get(), "the piece that did come is still checked");
    }

    #[test]
    fn a_reader_finds_the_damaged_sector() {
        let mut reader = Reader::new(Disk::new(Some(3)), 7, PIECE);
        let played = reader.play(when(0, 20), &Meter::default()).unwrap();
        let told: Vec<_> = played.wrong.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["sector 3 of volume 7 is damaged: its hash does not match"]);
        assert_eq!(played.verified, reader.into_source().at * SECTOR as u64 - SECTOR as u64);
    }

    #[test]
    fn what_a_writer_wrote_is_right() {
        let mut disk = Disk::new(None);
        let (_, written) = write(&mut disk, 7, when(0, 20), &Meter::default()).unwrap();
        assert_eq!(written, disk.buffer.len() as u64);
        let mut checker = Checker::new(7, 0);
        checker.feed(&disk.buffer);
        assert_eq!((checker.verified(), checker.wrong()), (written, &[][..]));
    }

    /// A machine that stalls for the whole of the run asks for nothing.
    #[test]
    fn a_greedy_reader_takes_answers_in_any_order_and_checks_each() {
        let parts = Parts { count: 1, stride: 1 };
        let request = Parts::LEN;
        let greed = Greed { volume: 7, parts, request, outstanding: 8, seed: 1 };
        for (damaged, wrong_each) in [(None, 0), (Some(3), 1)] {
            let mut disk = Disk::new(damaged);
            let grabbed = grab(&mut disk, greed, when(0, 20).0, &Meter::default()).unwrap();
            assert_eq!(grabbed.wrong.len(), wrong_each * disk.answers);
            let right = request.get() - (wrong_each * SECTOR) as u64;
            assert_eq!(grabbed.verified, right * disk.answers as u64);
            assert!(grabbed.latency.len() <= disk.answers && disk.asked.is_empty());
        }
    }
}
