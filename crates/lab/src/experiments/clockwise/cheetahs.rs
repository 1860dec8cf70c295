//! Seagate Cheetahs on shared Ultra-Wide buses, all at once.

use disk::raw::RawDisk;
use disk::{Bus, Model};
use sim::Random;
use units::{Access, Bytes, Direction, Duration, Instant, Lba};

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
        let disks = buses.len() as u64;
        let mut drives: Vec<RawDisk> =
            (0..disks).map(|seed| RawDisk::new(&model.clone().with_seed(seed))).collect();
        let (mut now, mut random) = (Instant::EPOCH, Random::new(disks));
        let (mut until_all, mut times) = (Duration::ZERO, Vec::new());
        for _ in 0..rounds {
            let mut shared: Vec<Bus> = buses.iter().map(|_| Bus::new()).collect();
            let mut slowest = Duration::ZERO;
            for (drive, &bus) in drives.iter_mut().zip(buses) {
                let lba = Lba::new(random.below(2_000_000));
                let access = Access { lba, len: Bytes::MIB, direction: Direction::Read };
                let settle = Duration::from_millis(100);
                let time = drive.time_at(Some(&mut shared[bus]), now, settle, &access);
                slowest = slowest.max(time);
                times.push(time);
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
