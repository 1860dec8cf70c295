//! Seagate Cheetahs on shared Ultra-Wide buses, all at once.
//!
//! The model of a drive says when each of its bursts can go over the bus; here the disks of
//! a bus take turns, who asked first goes first. (The bus of `disk` gives a command all its
//! bursts before it looks at the next command, which suits commands that come one by one:
//! the first of three disks would never wait.) A cache of 512 KB holds what waits.

use super::first_come::{Ask, serve};
use disk::raw::RawDisk;
use disk::{Bus, Model};
use sim::Random;
use std::ops::Range;
use units::{Access, Bytes, Direction, Duration, Instant, Lba, SECTOR};

/// The least that a disk sends at once is about 170 KB (section 7.2.5); here that and the rest
/// of a request.
const BURST: Bytes = Bytes::kib(170);
/// What each burst takes of the bus beside its data, for arbitration and reselection. Not
/// printed; chosen to meet what a third disk adds (section 4.3.7).
const LOST: Duration = Duration::from_micros(200);

/// What came of it, in ms.
pub(super) struct Cheetahs {
    /// The mean time until the last disk is done.
    pub until_all: f64,
    /// The mean time of a request.
    pub each: f64,
    /// The shortest of all.
    pub shortest: f64,
    /// What nine of ten requests keep within.
    pub percentile_90: f64,
}

/// The bus of each disk when three fill one after the other.
pub(super) fn naive(disks: usize) -> Vec<usize> {
    (0..disks).map(|disk| disk / 3).collect()
}

/// The same when each of four buses gets two disks before any gets a third.
pub(super) fn two_and_one(disks: usize) -> Vec<usize> {
    (0..disks).map(|disk| if disk < 8 { disk / 2 } else { disk - 8 }).collect()
}

impl Cheetahs {
    /// Each disk reads 1 MB of its outer zone, all at once, disk `i` on bus `buses[i]`.
    pub fn read(buses: &[usize], rounds: u64) -> Self {
        let model = Model::named("seagate-cheetah").expect("it comes with us").without_cache();
        let model = model.with_read_bursts(BURST / SECTOR);
        let disks = buses.len() as u64;
        let mut drives: Vec<RawDisk> =
            (0..disks).map(|seed| RawDisk::new(&model.clone().with_seed(seed))).collect();
        let (mut now, mut random) = (Instant::EPOCH, Random::new(disks));
        let (mut until_all, mut times) = (Duration::ZERO, Vec::new());
        for _ in 0..rounds {
            let asks: Vec<Vec<Ask>> = drives
                .iter_mut()
                .map(|drive| bursts(drive, now, Lba::new(random.below(2_000_000))))
                .collect();
            let mut slowest = Duration::ZERO;
            for bus in 0..=buses.iter().copied().max().unwrap_or(0) {
                let on_it = asks.iter().zip(buses).filter(|&(_, &on)| on == bus);
                let on_it: Vec<Vec<Ask>> = on_it.map(|(asks, _)| asks.clone()).collect();
                for turns in serve(&on_it) {
                    let time = turns.last().expect("a read is sent").end;
                    slowest = slowest.max(time);
                    times.push(time);
                }
            }
            until_all += slowest;
            now += Duration::from_millis(500) + random.span(Duration::from_millis(25));
        }
        times.sort_unstable();
        let mean = |total: Duration, count: u64| total.as_millis_f64() / count as f64;
        Self {
            until_all: mean(until_all, rounds),
            each: mean(times.iter().copied().sum(), rounds * disks),
            shortest: times[0].as_millis_f64(),
            percentile_90: times[times.len() * 9 / 10].as_millis_f64(),
        }
    }
}

/// The bursts of a read of 1 MB, from when the command comes: each asks for the bus when it
/// can go over without a pause.
fn bursts(drive: &mut RawDisk, now: Instant, lba: Lba) -> Vec<Ask> {
    let access = Access { lba, len: Bytes::MIB, direction: Direction::Read };
    let (settle, mut alone) = (Duration::from_millis(100), Bus::new());
    drive.time_at(Some(&mut alone), now, settle, &access);
    let ask = |burst: Range<Instant>| Ask {
        from: burst.start - (now + settle),
        span: burst.end - burst.start + LOST,
    };
    alone.bursts().map(ask).collect()
}
