//! The thesis's drives measured as it measured them: without a cache (force unit access),
//! away from bad sectors, and, unless somebody says otherwise, without the seek.

use disk::Model;
use disk::raw::{OnBus, RawDisk, RawZone};
use report::{Series, Style};
use sim::Random;
use units::{Access, Bytes, Direction, Duration, Lba, SECTOR};

/// What the thesis calls a megabyte.
pub(super) const MB: f64 = 1_048_576.0;
/// The Atlas-II's full turn at 7,200 a minute, in ms.
pub(super) const TURN: f64 = 60_000.0 / 7_200.0;

/// The Quantum Atlas-II without its cache.
pub(super) fn atlas() -> Model {
    Model::named("quantum-atlas-ii").expect("a model that comes with the program").without_cache()
}

/// Where on its track a request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With the track.
    Track,
    /// Anywhere.
    Anywhere,
}

/// One drive and what it takes.
pub(super) struct Raw {
    disk: RawDisk,
    zones: Vec<RawZone>,
    random: Random,
}

impl Raw {
    pub fn new(model: &Model, seed: u64) -> Self {
        let disk = RawDisk::new(model);
        let zones = disk.zones().collect();
        Self { disk, zones, random: Random::new(seed) }
    }

    pub fn zones(&self) -> &[RawZone] {
        &self.zones
    }

    /// A request of a zone that begins with a track, or anywhere.
    fn access(&mut self, way: Direction, zone: usize, sectors: u64, begin: Begin) -> Access {
        let zone = &self.zones[zone];
        let tracks = zone.tracks() - sectors.div_ceil(zone.per_track) - 2;
        let mut at = self.random.below(tracks) * zone.per_track;
        if begin == Begin::Anywhere {
            at += self.random.below(zone.per_track);
        }
        let lba = Lba::new(zone.range.start.get() + at);
        Access { lba, len: SECTOR * sectors, direction: way }
    }

    /// The times of so many requests of a zone, the platters at any angle.
    pub fn times(
        &mut self,
        way: Direction,
        zone: usize,
        sectors: u64,
        begin: Begin,
        count: usize,
    ) -> Times {
        Times::of(self.each(way, zone, sectors, begin, count, RawDisk::time))
    }

    /// What the bus does during so many requests of a zone, the platters at any angle.
    pub fn on_bus(
        &mut self,
        way: Direction,
        zone: usize,
        sectors: u64,
        begin: Begin,
        count: usize,
    ) -> Signals {
        Signals(self.each(way, zone, sectors, begin, count, RawDisk::on_bus))
    }

    /// What `serve` says of each of so many requests of a zone, the platters at any angle.
    fn each<T>(
        &mut self,
        way: Direction,
        zone: usize,
        sectors: u64,
        begin: Begin,
        count: usize,
        serve: fn(&mut RawDisk, &Access, Duration) -> T,
    ) -> Vec<T> {
        let one = |_| {
            let access = self.access(way, zone, sectors, begin);
            let pause = self.random.span(Duration::from_millis(25));
            serve(&mut self.disk, &access, pause)
        };
        (0..count).map(one).collect()
    }

    /// The times of blocks of a zone one after the other, the first at a sector that
    /// tracks know nothing of. Between two lies a pause, after which the platters stand
    /// at any angle.
    pub fn sequence(&mut self, zone: usize, sectors: u64, count: usize) -> Times {
        let zone = &self.zones[zone];
        let mut lba = zone.range.start.get() + 17;
        let end = zone.range.end.get();
        // Once through the zone: to begin anew would be a seek that no sequence has.
        let count = count.min(((end - lba) / sectors) as usize - 1);
        let mut one = |_| {
            let first = Lba::new(lba);
            lba += sectors;
            let len = SECTOR * sectors;
            let access = Access { lba: first, len, direction: Direction::Read };
            let pause = self.random.span(Duration::from_millis(25));
            self.disk.next(&access, pause)
        };
        one(0); // The seek to the first is not counted.
        Times::of((0..count).map(one).collect())
    }

    /// The time of one read from where the arm is.
    pub fn next(&mut self, access: &Access) -> Duration {
        let pause = self.random.span(Duration::from_millis(25));
        self.disk.next(access, pause)
    }
}

/// Times that were measured, rising.
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// In ms, as all that follows.
    pub fn mean(&self) -> f64 {
        self.0.iter().copied().sum::<Duration>().as_millis_f64() / self.0.len() as f64
    }

    pub fn shortest(&self) -> f64 {
        self.0[0].as_millis_f64()
    }

    pub fn longest(&self) -> f64 {
        self.percentile(100)
    }

    pub fn percentile(&self, percent: usize) -> f64 {
        self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)].as_millis_f64()
    }

    /// The distribution, in fifty points.
    pub fn distribution(&self, name: impl Into<String>) -> Series {
        let last = self.0.len() - 1;
        let points = (0..=50).map(|at| at as f64 / 50.0);
        let at = |part: f64| self.0[(last as f64 * part) as usize].as_millis_f64();
        Series::new(name, Style::Line, points.map(|part| (at(part), part)))
    }
}

/// What a mean time of a block comes to, in MB/s.
pub(super) fn rate(block: Bytes, ms: f64) -> f64 {
    block.get() as f64 / MB / (ms / 1_000.0)
}

/// Requests and what the bus does during each.
pub(super) struct Signals(pub Vec<OnBus>);

impl Signals {
    /// In ms, as all that follows.
    pub fn mean(&self, what: impl Fn(&OnBus) -> Duration) -> f64 {
        self.0.iter().map(what).sum::<Duration>().as_millis_f64() / self.0.len() as f64
    }

    pub fn shortest(&self, what: impl Fn(&OnBus) -> Duration) -> f64 {
        self.0.iter().map(what).min().expect("there are requests").as_millis_f64()
    }

    pub fn longest(&self, what: impl Fn(&OnBus) -> Duration) -> f64 {
        self.0.iter().map(what).max().expect("there are requests").as_millis_f64()
    }

    /// In how many of them the bus is idle between two bursts.
    pub fn with_gaps(&self) -> usize {
        self.0.iter().filter(|it| it.bursts.len() > 1).count()
    }

    /// The request with the median time as a line: at `level` while the bus carries no data,
    /// one higher while it does.
    pub fn median(&self, name: &str, level: f64) -> Series {
        let mut all: Vec<&OnBus> = self.0.iter().collect();
        all.sort_by_key(|it| it.time);
        let it = all[all.len() / 2];
        let ms = |time: Duration| time.as_millis_f64();
        let mut points = vec![(0.0, level)];
        for burst in &it.bursts {
            let (begin, end) = (ms(burst.start), ms(burst.end));
            points.extend([(begin, level), (begin, level + 1.0), (end, level + 1.0), (end, level)]);
        }
        points.push((ms(it.time), level));
        Series::new(name, Style::Line, points)
    }
}

/// Ticks for two such lines, at levels 0 and 1.5.
pub(super) fn levels() -> [(f64, String); 4] {
    [(0.0, "idle"), (1.0, "data"), (1.5, "idle"), (2.5, "data")]
        .map(|(level, name)| (level, name.to_owned()))
}
