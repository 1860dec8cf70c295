//! A first profile of a file or block device, by timing it.
//!
//! Destructive: it writes to the device, which is about to hold a new pool, at
//! random places and reads those back. A few hundred transfers of 4 KiB to 1 MiB, and
//! two seconds of writes with a flush behind each, and as many transfers by themselves as
//! [`SPREAD_TIME`] allows or whoever makes the pool says, for fifteen seconds beside the flushes
//! at the most where he says nothing. The result is a `linear` profile: safe as far as
//! the device behaves as it did here, with a margin of half. It knows nothing of
//! seeks and zones; a hard disk profiled so promises less than it could keep.
//!
//! A device that works on `depth` commands at a time is taken for a serial server
//! of cost with a constant latency. The cost of a size is the largest mean time
//! between two ends, over any [`WINDOW`] of them in a row, while the device
//! always had `depth` commands; the latency is what the slowest command took
//! beyond its cost.

use crate::arena::{Arena, Pages};
use crate::backend::uring::Uring;
use crate::backend::{Backend, Surroundings};
use crate::device::Device;
use crate::error::PoolError;
use crate::lock::Mutex;
use crate::sys::{self, Event};
use crate::{Completion, HostLateness};
use disk::{Cost, Kind, Line, LinearProfile, Profile, Spread};
use node::{Blocks, CommandId, DeviceError, DiskAction, DiskCommand, Span};
use std::io;
use std::sync::Arc;
use units::{Bytes, Duration, Instant, Rate};

/// What is timed.
const SIZES: [Bytes; 5] =
    [Bytes::kib(4), Bytes::kib(16), Bytes::kib(64), Bytes::kib(256), Bytes::MIB];
/// What is timed one at a time, for what commands mostly cost.
const SPREAD_SIZES: [Bytes; 4] = [Bytes::kib(4), Bytes::kib(64), Bytes::kib(256), Bytes::MIB];
/// Of fewer than so many nothing is known but the longest.
const SPREAD_LEAST: usize = 100;
/// The windows that are tried, in powers of two.
const DEPTH_MAX: u32 = 32;
/// A window is deep enough when it gives this part of the best throughput.
const ENOUGH_PERCENT: u64 = 95;
/// Ends over which the time between ends is averaged.
const WINDOW: usize = 8;
/// Transfers in one run, as far as its time allows.
const COUNT: usize = 256;
/// The time of one run: 7 for the depth and 10 for the sizes; the writes before
/// flushes take two of [`FLUSH_TIME`].
const RUN_TIME: Duration = Duration::from_millis(500);
/// What is added to every measured maximum.
const MARGIN_PERCENT: u64 = 50;
/// How long is written before a flush that is timed: as long as there is between
/// two commits, where nobody states another interval. So the device's cache has as
/// much as a commit finds there.
const FLUSH_TIME: Duration = Duration::from_secs(1);
/// What is written then: places for a cache that counts those, and bytes.
const FLUSH_SIZES: [Bytes; 2] = [Bytes::kib(4), Bytes::MIB];

/// How the source of such a profile begins.
pub(crate) const TIMED: &str = "timed when the pool was made";

/// The profile of a device, and what is on it destroyed.
pub(crate) fn profile(
    device: &Device,
    spread_time: Duration,
    tell: &dyn Fn(Duration),
) -> Result<Profile, PoolError> {
    let path = device.spec.path();
    measure(device, spread_time, tell).map_err(PoolError::io(path, "time it"))
}

/// For how long what commands mostly cost is timed, where nothing else is said. What is long and
/// comes once in more commands than fit into that is not known of.
pub(crate) const SPREAD_TIME: Duration = Duration::from_secs(4);

fn measure(device: &Device, spread_time: Duration, tell: &dyn Fn(Duration)) -> io::Result<Profile> {
    let mut bench = Bench::new(device)?;
    let depth = bench.depth()?;
    let write = bench.line(false, depth)?;
    let read = bench.line(true, depth)?;
    let flush = bench.flush(depth)?;
    let spread = bench.spread(spread_time, tell)?;
    let more = |span: Duration| span + span * MARGIN_PERCENT / 100;
    let count = bench.transfers;
    Ok(Profile {
        source: format!(
            "{TIMED}: {count} transfers of {} to {} at random places, \
             {depth} at a time, and flushes behind up to {FLUSH_TIME} of writes",
            SIZES[0],
            SIZES[SIZES.len() - 1]
        ),
        confidence: format!(
            "the slowest of what was timed and {MARGIN_PERCENT} % more; no bound on what the \
             device may do later"
        ),
        capacity: device.size,
        flush: more(flush),
        bus: None,
        kind: Kind::Linear(LinearProfile {
            read: read.line.stretched(MARGIN_PERCENT),
            write: write.line.stretched(MARGIN_PERCENT),
            depth,
            latency: more(read.latency.max(write.latency)),
            spread: Some(spread),
        }),
    })
}

/// What the sizes of one direction gave.
struct Measured {
    line: Line,
    latency: Duration,
}

/// What one run gave: of each transfer its time, and when it ended.
#[derive(Default)]
struct Run {
    times: Vec<Duration>,
    ends: Vec<Instant>,
}

struct Bench {
    ring: Uring,
    device_size: Bytes,
    /// Places of 1 MiB that were written, to be read.
    written: Vec<Bytes>,
    random: u64,
    transfers: u64,
}

impl Bench {
    fn new(device: &Device) -> io::Result<Self> {
        let mut unsaid = Vec::new();
        let arena = Arena::new(Bytes::MIB * u64::from(DEPTH_MAX), Pages::LargeIfAny, &mut unsaid)?;
        let around = Surroundings {
            arena: Arc::new(arena),
            event: Arc::new(Event::new()?),
            lateness: Arc::new(Mutex::new(HostLateness::default())),
        };
        let file = Arc::new(device.file.try_clone()?);
        let ring = Uring::new(file, DEPTH_MAX, around, &mut unsaid)?;
        let seed = sys::now().as_nanos() | 1;
        Ok(Self { ring, device_size: device.size, written: Vec::new(), random: seed, transfers: 0 })
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % n.max(1)
    }

    /// A place for a transfer: for reads inside what was written, since files
    /// give what was never written without asking the medium.
    fn place(&mut self, read: bool, size: Bytes) -> Bytes {
        if !read {
            let places = self.device_size.saturating_sub(Bytes::MIB) / Bytes::MIB;
            let place = Bytes::MIB * self.below(places);
            if size == Bytes::MIB {
                self.written.push(place);
            }
            return place;
        }
        let index = self.below(self.written.len() as u64) as usize;
        self.written[index] + size * self.below(Bytes::MIB / size)
    }

    /// `depth` transfers at a time, until there were [`COUNT`] or the time is over.
    fn run(&mut self, read: bool, size: Bytes, depth: u32) -> io::Result<Run> {
        self.run_until(read, size, depth, (COUNT, sys::now() + RUN_TIME))
    }

    /// The same until there were so many, or it is so late.
    fn run_until(
        &mut self,
        read: bool,
        size: Bytes,
        depth: u32,
        (most, over): (usize, Instant),
    ) -> io::Result<Run> {
        let (mut run, mut done) = (Run::default(), Vec::new());
        let mut idle: Vec<u64> = (0..u64::from(depth)).collect();
        let mut started = 0;
        loop {
            while started < most && sys::now() < over {
                let Some(slot) = idle.pop() else { break };
                self.start(slot, read, size);
                started += 1;
            }
            if self.ring.in_flight() == 0 {
                return Ok(run);
            }
            self.ring.wait(None, &mut done);
            for ended in done.drain(..) {
                ended.result.map_err(|DeviceError(errno)| io::Error::from_raw_os_error(errno))?;
                // A bound is to hold whatever the host could have taken.
                run.times.push(ended.noticed - ended.started);
                run.ends.push(ended.noticed);
                idle.push(ended.id.0);
                self.transfers += 1;
            }
        }
    }

    fn start(&mut self, slot: u64, read: bool, size: Bytes) {
        let offset = self.place(read, size);
        let span = Span { offset: Bytes::MIB * slot, len: size };
        let action = if read {
            DiskAction::Read { offset, span, written: Blocks::first(size).into() }
        } else {
            DiskAction::Write { offset, span, valid: size }
        };
        self.ring.start(DiskCommand {
            id: CommandId(slot),
            action,
            predicted: Duration::ZERO,
            is_promised: false,
        });
    }

    /// The smallest window with nearly the throughput of the best, for small reads.
    fn depth(&mut self) -> io::Result<u32> {
        // Something to read; on the way the device's first steps are taken.
        self.run(false, Bytes::MIB, 1)?;
        let mut rates = Vec::new();
        for power in 0..=DEPTH_MAX.ilog2() {
            let run = self.run(true, SIZES[0], 1 << power)?;
            rates.push(run.rate(SIZES[0]));
        }
        let best = rates.iter().max().copied().unwrap_or(Rate::ZERO);
        let enough = rates.iter().position(|&rate| rate >= best * ENOUGH_PERCENT / 100);
        Ok(1 << enough.expect("the best is enough"))
    }

    /// The costs of all sizes of one direction.
    fn line(&mut self, read: bool, depth: u32) -> io::Result<Measured> {
        let (mut costs, mut slowest) = (Vec::new(), Vec::new());
        for size in SIZES {
            let run = self.run(read, size, depth)?;
            costs.push((size, run.cost(depth)));
            slowest.push((size, run.times.iter().copied().max().unwrap_or_default()));
        }
        let line = Line::above(&costs).map_err(io::Error::other)?;
        let beyond = slowest.iter().map(|&(size, time)| time.saturating_sub(line.cost(size)));
        Ok(Measured { line, latency: beyond.max().unwrap_or_default() })
    }

    /// What commands by themselves mostly cost, each of some sizes for as long; says how much of
    /// the time is left.
    fn spread(&mut self, time: Duration, tell: &dyn Fn(Duration)) -> io::Result<Spread> {
        let runs = SPREAD_SIZES.len() as u64 * 2;
        let mut left = runs;
        let mut costs = |read: bool| -> io::Result<Vec<Cost>> {
            let mut costs = Vec::new();
            for size in SPREAD_SIZES {
                tell(time / runs * left);
                left -= 1;
                let over = sys::now() + time / runs;
                let run = self.run_until(read, size, 1, (usize::MAX, over))?;
                costs.push(cost_of(size, &run.times));
            }
            Ok(costs)
        };
        let write = costs(false)?;
        Ok(Spread { read: costs(true)?, write })
    }

    /// The slowest flush behind some writes, and behind as many as there are between two
    /// commits.
    fn flush(&mut self, depth: u32) -> io::Result<Duration> {
        let mut slowest = self.flush_behind_one()?;
        for size in FLUSH_SIZES {
            let over = sys::now() + FLUSH_TIME;
            self.run_until(false, size, depth, (usize::MAX, over))?;
            slowest = slowest.max(self.time_flush()?);
        }
        Ok(slowest)
    }

    /// The slowest flush behind one write.
    fn flush_behind_one(&mut self) -> io::Result<Duration> {
        let (over, mut slowest) = (sys::now() + RUN_TIME, Duration::ZERO);
        let mut done: Vec<Completion> = Vec::new();
        for _ in 0..WINDOW {
            self.start(0, false, Bytes::kib(64));
            while self.ring.in_flight() > 0 {
                self.ring.wait(None, &mut done);
            }
            slowest = slowest.max(self.time_flush()?);
            if sys::now() > over {
                break;
            }
        }
        Ok(slowest)
    }

    /// One flush, with nothing else under way.
    fn time_flush(&mut self) -> io::Result<Duration> {
        let mut done: Vec<Completion> = Vec::new();
        let (id, predicted) = (CommandId(0), Duration::ZERO);
        self.ring.start(DiskCommand {
            id,
            action: DiskAction::Flush,
            predicted,
            is_promised: false,
        });
        while self.ring.in_flight() > 0 {
            self.ring.wait(None, &mut done);
        }
        let flush = done.last().expect("the flush has ended");
        flush.result.map_err(|DeviceError(errno)| io::Error::from_raw_os_error(errno))?;
        Ok(flush.noticed - flush.started)
    }
}

/// The mean and three standard errors more, the standard deviation and a quarter more, the slowest
/// and [`MARGIN_PERCENT`] more.
fn cost_of(size: Bytes, times: &[Duration]) -> Cost {
    let count = times.len().max(1) as u128;
    let nanos = || times.iter().map(|time| u128::from(time.as_nanos()));
    let mean = nanos().sum::<u128>() / count;
    let variance = nanos().map(|time| time.abs_diff(mean).pow(2)).sum::<u128>() / count;
    let deviation = variance.isqrt();
    let most = times.iter().max().copied().unwrap_or_default();
    let most = (most + most * MARGIN_PERCENT / 100).max(Duration::from_nanos(1));
    if times.len() < SPREAD_LEAST {
        return Cost { size, mean: most, deviation: most, most };
    }
    let within =
        |nanos: u128| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(most);
    Cost {
        size,
        mean: within((mean + 3 * deviation / count.isqrt()).max(1)),
        deviation: within(deviation + deviation / 4),
        most,
    }
}

impl Run {
    fn rate(&self, size: Bytes) -> Rate {
        match (self.ends.first(), self.ends.last()) {
            (Some(&first), Some(&last)) => {
                Rate::of(size * (self.ends.len() as u64 - 1), last - first)
            }
            _ => Rate::ZERO,
        }
    }

    /// The largest mean time between ends over a window of them, while all
    /// `depth` were under way: the last `depth` ends are the queue running dry.
    fn cost(&self, depth: u32) -> Duration {
        let full = self.ends.len().saturating_sub(depth as usize - 1);
        let ends = &self.ends[..full];
        let window = WINDOW.min(ends.len().saturating_sub(1));
        if window == 0 {
            return self.times.iter().copied().max().unwrap_or_default();
        }
        let spans = ends.windows(window + 1).map(|ends| ends[window] - ends[0]);
        spans.max().expect("there is a window") / window as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceSpec;

    #[test]
    fn the_cost_is_that_of_the_slowest_window() {
        // 20 ends 1 ms apart, but 8 of them in the middle 3 ms apart.
        let mut now = Instant::EPOCH;
        let mut run = Run::default();
        for end in 0..20 {
            now += Duration::from_millis(if (6..14).contains(&end) { 3 } else { 1 });
            run.ends.push(now);
            run.times.push(Duration::from_millis(9));
        }
        assert_eq!(run.cost(1), Duration::from_millis(3));
        assert_eq!(
            Run { times: vec![now - Instant::EPOCH], ends: vec![now] }.cost(4),
            now - Instant::EPOCH
        );
    }

    #[test]
    fn the_rate_is_that_of_the_bytes_between_the_first_end_and_the_last() {
        let at = |ms| Instant::EPOCH + Duration::from_millis(ms);
        let run = |ends: &[u64]| Run {
            times: vec![Duration::from_millis(7); ends.len()],
            ends: ends.iter().map(|&ms| at(ms)).collect(),
        };
        let rate = run(&[10, 11, 14, 15]).rate(Bytes::kib(4));
        assert_eq!(rate, Rate::of(Bytes::kib(12), Duration::from_millis(5)));
        assert_eq!(run(&[]).rate(Bytes::kib(4)), Rate::ZERO);
    }

    #[test]
    fn a_cost_is_above_what_was_seen_of_it() {
        let often = Duration::from_millis(1);
        let mut times = vec![often; 399];
        times.push(Duration::from_millis(41));
        let cost = cost_of(Bytes::MIB, &times);
        // Mean 1.1 ms, deviation 2 ms: with 0.3 ms and 0.5 ms more.
        assert!(
            cost.mean > Duration::from_micros(1_390) && cost.mean < Duration::from_micros(1_410)
        );
        let deviation = cost.deviation;
        assert!(
            deviation > Duration::from_micros(2_490) && deviation < often * 5 / 2,
            "{deviation}"
        );
        assert_eq!(cost.most, Duration::from_micros(61_500));
        assert_eq!(cost_of(Bytes::MIB, &[]).mean, Duration::from_nanos(1), "no time for one");
    }

    #[test]
    fn a_profile_covers_all_that_was_timed_with_a_margin() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let spec = DeviceSpec::Real { path: dir.path().join("disk") };
        let size = Some(Bytes::mib(32));
        let device = Device::open_new(&spec, size, false, &mut Vec::new()).unwrap();
        let profile = profile(&device, Duration::from_millis(80), &|_| ()).unwrap();
        let text = profile.to_toml();
        assert_eq!(Profile::parse(&text).unwrap(), profile, "{text}");
        assert!((1..=DEPTH_MAX).contains(&profile.depth()));
        assert!(profile.flush() > Duration::ZERO);
        assert!(text.contains("50 % more"), "{text}");
        let timed = profile.source.split(": ").nth(1).and_then(|rest| rest.split_once(' '));
        let timed: u64 = timed.expect("how many").0.parse().unwrap();
        // Each size in each direction by itself and with others, some of it after the other.
        assert!(timed >= 20, "{text}");
        let Kind::Linear(LinearProfile { read, write, .. }) = profile.kind else {
            panic!("{text}")
        };
        for line in [read, write] {
            // No memory is as fast.
            assert!(line.cost(Bytes::MIB) > Duration::from_micros(5), "{text}");
        }
    }
}
