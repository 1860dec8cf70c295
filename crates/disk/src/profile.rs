//! Profiles: what is known of a disk from the outside, as bounds that hold.
//!
//! Invariant: for an emulated disk, no command takes longer than
//! [`Profile::bound`] from where the head is, and no command in a range takes
//! longer than [`Profile::worst`] from anywhere. Admission counts with `worst`,
//! prediction with `bound`; so the second never exceeds the first.

use crate::bus_share::{BusFile, BusShare};
use crate::error::ensure;
use crate::spread::{Cost, MeasuredFile, Spread, SpreadFile};
use crate::text::{Points, Text, check, line_rate};
use crate::{Error, Line, SeekCurve};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;
use serde::{Deserialize, Serialize};
use units::{Access, Bytes, Command, Direction, Duration, Lba, Rate, SECTOR};

/// The most commands in flight that a profile may ask for.
const DEPTH_MAX: u32 = 1_024;

/// What is known of one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Where the numbers come from.
    pub source: String,
    /// How far they can be trusted, in words.
    pub confidence: String,
    /// How much the disk holds; a whole number of sectors.
    pub capacity: Bytes,
    /// Bound on the time of a flush, without the wait for a shared bus.
    pub flush: Duration,
    /// What a transfer costs, on a bus that no other disk uses at the time.
    pub kind: Kind,
    /// The bus that it shares with other disks. Every bound counts the wait for it.
    pub bus: Option<BusShare>,
}

/// The forms that a cost can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A seek, a turn and a transfer at the zone's rate.
    HardDisk(HardDiskProfile),
    /// A line over the size, by direction, whatever the place.
    Linear(LinearProfile),
}

/// A hard disk: it serves one command at a time, also where it holds several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardDiskProfile {
    /// What each command costs before the mechanics move.
    pub overhead: Duration,
    /// The time of one turn: the longest wait for the first sector.
    pub rotation: Duration,
    /// Bound on the time to move the arm, by cylinders; at distance 0 the switch
    /// to another head.
    pub seek: SeekCurve,
    /// What a write costs on top when the arm moved.
    pub write_settle: Duration,
    /// What the steps between tracks cost a transfer more than the zones' rates
    /// account for.
    pub switch: Duration,
    /// Of disks that begin to send a long read only when a whole track is in.
    pub long_reads: Option<LongAccess>,
    /// Of disks whose long writes end with a whole track.
    pub long_writes: Option<LongAccess>,
    /// From the outside in; the first starts at sector 0.
    pub zones: Vec<ZoneProfile>,
    /// How many commands it may hold, where it serves them in an order of its own; at least 1.
    /// Bounds are those of one after the other, whichever that is.
    pub queue: u32,
}

/// What long reads, or long writes, cost on top. The thesis plans one more turn for blocks
/// that are not aligned to tracks (Clockwise thesis, sections 7.2.2 and 7.2.3); such a disk
/// is why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongAccess {
    /// The shortest that waits.
    pub from: Bytes,
    /// How long at most.
    pub extra: Duration,
}

/// Some cylinders with one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneProfile {
    /// The first sector.
    pub start: Lba,
    /// How many cylinders share the zone's sectors evenly.
    pub cylinders: u64,
    /// Sustained over whole cylinders, steps between tracks included.
    pub rate: Rate,
}

/// A part of a hard disk, for sweeps over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sweep<'a> {
    /// Bound on the time to move the arm, by cylinders.
    pub seek: &'a SeekCurve,
    /// The longest way from anywhere on the disk to the part, in cylinders.
    pub stroke: u64,
    /// From the part's first cylinder to its last.
    pub cylinders: u64,
    /// How many cylinders from its first a transfer ends at the most.
    pub span: u64,
    /// Bound on a transfer beside its seek.
    pub request: Duration,
}

/// A device whose cost depends on size and direction alone: a file, an SSD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearProfile {
    /// Device time that a read takes from the others.
    pub read: Line,
    /// Device time that a write takes from the others.
    pub write: Line,
    /// How many commands to keep in flight; at least 1.
    pub depth: u32,
    /// Bound on the time that a command spends in the device's pipeline beside
    /// its cost.
    pub latency: Duration,
    /// What commands mostly cost, where that is known.
    pub spread: Option<Spread>,
}

impl Profile {
    /// Upper bound on the service time of `command` when the head is at `from`:
    /// the sector after the last one that was moved (or that last one itself).
    /// Panics when the command lies outside the disk.
    pub fn bound(&self, from: Lba, command: &Command) -> Duration {
        let access = match command {
            Command::Flush => return self.flush(),
            Command::Seek(to) => return self.seek(from, *to) + self.wait_without_data(),
            Command::Transfer(access) | Command::Forced(access) => access,
        };
        self.assert_inside(access.lba..access.end());
        self.bus_wait(access.len)
            + match &self.kind {
                Kind::HardDisk(disk) => disk.bound(self.end(), from, access),
                Kind::Linear(line) => line.line(access.direction).cost(access.len),
            }
    }

    /// Bound on what a transfer of `len` waits for other disks on its bus; nothing where it
    /// has one for itself.
    pub fn bus_wait(&self, len: Bytes) -> Duration {
        self.bus.as_ref().map_or(Duration::ZERO, |bus| bus.wait(len))
    }

    /// The same for a command that moves nothing.
    fn wait_without_data(&self) -> Duration {
        self.bus.as_ref().map_or(Duration::ZERO, BusShare::wait_without_data)
    }

    /// Upper bound on bringing the heads from `from` to `to`; nothing where no arm
    /// moves.
    fn seek(&self, from: Lba, to: Lba) -> Duration {
        self.assert_inside(to..Lba::new(to.get() + 1));
        match &self.kind {
            Kind::HardDisk(disk) => {
                disk.overhead + disk.seek(disk.distance(self.end(), from, to), Direction::Read)
            }
            Kind::Linear(_) => Duration::ZERO,
        }
    }

    /// Upper bound on a transfer of `len` inside `range`, wherever the head was
    /// before; no [`Profile::bound`] of such a transfer exceeds it. Panics when
    /// the range lies outside the disk or does not hold `len`.
    pub fn worst(&self, range: Range<Lba>, len: Bytes, direction: Direction) -> Duration {
        self.assert_inside(range.clone());
        assert!(
            !len.is_zero() && len <= SECTOR * range.start.distance(range.end),
            "a transfer that is empty or longer than its range"
        );
        self.bus_wait(len)
            + match &self.kind {
                Kind::HardDisk(disk) => disk.worst(self.end(), range, len, direction),
                Kind::Linear(line) => line.line(direction).cost(len),
            }
    }

    /// Upper bound on a transfer of `len` inside `range` that follows on another one inside it:
    /// it begins where that ended, and the heads are within `reach` of there. Panics as
    /// [`Profile::worst`] does.
    pub fn follows(
        &self,
        range: Range<Lba>,
        len: Bytes,
        reach: Bytes,
        direction: Direction,
    ) -> Duration {
        let reach = reach.min(SECTOR * range.start.distance(range.end));
        let worst = self.worst(range.clone(), len, direction);
        match &self.kind {
            Kind::HardDisk(disk) => {
                let sweep = disk.sweep(self.end(), range, reach, worst);
                (sweep.request + sweep.seek.time(sweep.span)).min(worst)
            }
            Kind::Linear(_) => worst,
        }
    }

    /// What a sweep over the transfers of `len` in `range` is made of; None where the
    /// place does not cost. A transfer takes at most `request` and the seek to it, and
    /// [`Profile::bound`] is never above that. Panics as [`Profile::worst`] does.
    pub fn sweep(&self, range: Range<Lba>, len: Bytes, direction: Direction) -> Option<Sweep<'_>> {
        let worst = self.worst(range.clone(), len, direction);
        match &self.kind {
            Kind::HardDisk(disk) => Some(disk.sweep(self.end(), range, len, worst)),
            Kind::Linear(_) => None,
        }
    }

    /// What took longer than this was not served from a cache alone: electronics
    /// and the transfer at the rate of its zone, without a seek and a turn, and the wait for
    /// a shared bus.
    pub(crate) fn quickest(&self, access: &Access) -> Duration {
        self.assert_inside(access.lba..access.end());
        match &self.kind {
            Kind::HardDisk(disk) => {
                disk.overhead + disk.media(self.end(), access) + self.bus_wait(access.len)
            }
            Kind::Linear(_) => Duration::ZERO,
        }
    }

    /// Whether a command with this bound took the arm elsewhere: the bound is above that
    /// of the same command from where the arm is by at least an eighth of a turn.
    /// True where no arm is.
    pub(crate) fn moves(&self, access: &Access, bound: Duration) -> bool {
        match &self.kind {
            Kind::HardDisk(disk) => {
                let near = disk.bound(self.end(), access.lba, access);
                bound >= near + self.bus_wait(access.len) + disk.rotation / 8
            }
            Kind::Linear(_) => true,
        }
    }

    /// What it says of writes and flushes was assumed, because only reads were measured.
    pub fn assumes_writes(&self) -> bool {
        self.confidence.contains("writes assumed")
    }

    /// Bound on the time of a flush.
    pub fn flush(&self) -> Duration {
        self.flush + self.wait_without_data()
    }

    /// How many commands to keep in flight.
    pub fn depth(&self) -> u32 {
        match &self.kind {
            Kind::HardDisk(_) => 1,
            Kind::Linear(line) => line.depth,
        }
    }

    /// The same, where a hard disk may hold so many commands, at least one, and orders them.
    #[must_use]
    pub fn with_queue(mut self, queue: u32) -> Self {
        if let Kind::HardDisk(disk) = &mut self.kind {
            disk.queue = queue.clamp(1, DEPTH_MAX);
        }
        self
    }

    /// How many commands the device may hold, of which it serves one at a time in an order of its
    /// own; 1 where it has no such queue.
    pub fn queue(&self) -> u32 {
        match &self.kind {
            Kind::HardDisk(disk) => disk.queue,
            Kind::Linear(_) => 1,
        }
    }

    /// Bound on the time in the device's pipeline beside a command's cost.
    pub fn latency(&self) -> Duration {
        match &self.kind {
            Kind::HardDisk(_) => Duration::ZERO,
            Kind::Linear(line) => line.latency,
        }
    }

    /// What commands of this size mostly cost, on a device where the place does not matter and
    /// which has no bus to share; where it is known.
    pub fn spread(&self, size: Bytes, direction: Direction) -> Option<&Cost> {
        match &self.kind {
            Kind::Linear(line) if self.bus.is_none() => line.spread.as_ref()?.cost(size, direction),
            Kind::Linear(_) | Kind::HardDisk(_) => None,
        }
    }

    /// How much the disk holds.
    pub fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn end(&self) -> Lba {
        Lba::containing(self.capacity)
    }

    fn assert_inside(&self, range: Range<Lba>) {
        assert!(
            range.start < range.end && range.end <= self.end(),
            "sectors {range:?} of a disk that ends at {:?}",
            self.end()
        );
    }
}

impl LinearProfile {
    fn check(&self) -> Result<(), Error> {
        let depth = self.depth;
        ensure!((1..=DEPTH_MAX).contains(&depth), "linear.depth is {depth}; give 1 to {DEPTH_MAX}");
        check("linear.latency", &self.latency)?;
        self.spread.as_ref().map_or(Ok(()), Spread::check)?;
        for (name, line) in [("read", &self.read), ("write", &self.write)] {
            check(&format!("linear.{name}.fixed"), &line.fixed)?;
            ensure!(!line.rate.is_zero(), "linear.{name}.rate is 0; give a rate above zero");
            check(&format!("linear.{name}.rate"), &line.rate)?;
        }
        Ok(())
    }

    fn line(&self, direction: Direction) -> &Line {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

impl HardDiskProfile {
    /// The zone that holds `lba`, its first cylinder and its end.
    fn zone(&self, end: Lba, lba: Lba) -> (usize, Lba) {
        let index = self.zones.partition_point(|zone| zone.start <= lba) - 1;
        (index, self.zones.get(index + 1).map_or(end, |next| next.start))
    }

    fn cylinder(&self, end: Lba, lba: Lba) -> u64 {
        self.place(end, lba).0
    }

    /// The cylinder of `lba` and whether it begins there: whether the sector before lies
    /// on the one before.
    fn place(&self, end: Lba, lba: Lba) -> (u64, bool) {
        let mut before = 0;
        let mut zones = self.zones.iter().peekable();
        while let Some(zone) = zones.next() {
            let zone_end = zones.peek().map_or(end, |next| next.start);
            if lba < zone_end {
                let (inside, sectors) =
                    (lba.get() - zone.start.get(), zone.start.distance(zone_end));
                let (cylinder, rest) = scaled(inside, zone.cylinders, sectors);
                return (before + cylinder, rest < zone.cylinders);
            }
            before += zone.cylinders;
        }
        panic!("a sector outside the disk")
    }

    fn seek(&self, distance: u64, direction: Direction) -> Duration {
        match direction {
            Direction::Write if distance > 0 => self.seek.time(distance) + self.write_settle,
            _ => self.seek.time(distance),
        }
    }

    /// The most cylinders that the arm may have to cross.
    fn distance(&self, end: Lba, from: Lba, to: Lba) -> u64 {
        let to = self.cylinder(end, to);
        // The head passed the sector before `from`; if a cylinder ends there, the
        // arm still stands on it.
        let at = Lba::new(from.get().min(end.get() - 1));
        let (here, begins) = self.place(end, at);
        let is_inside = begins && at == from && at > Lba::default();
        let last = if is_inside { self.cylinder(end, Lba::new(at.get() - 1)) } else { here };
        here.abs_diff(to).max(last.abs_diff(to))
    }

    fn bound(&self, end: Lba, from: Lba, access: &Access) -> Duration {
        let distance = self.distance(end, from, access.lba);
        let mechanics = self.overhead + self.seek(distance, access.direction) + self.rotation;
        let wait = self.long_access(access.len, access.direction);
        mechanics + wait + self.media(end, access) + self.switch
    }

    fn long_access(&self, len: Bytes, direction: Direction) -> Duration {
        let long = match direction {
            Direction::Read => self.long_reads,
            Direction::Write => self.long_writes,
        };
        long.filter(|long| len >= long.from).map_or(Duration::ZERO, |long| long.extra)
    }

    /// The time of the transfer itself at the rates of the zones it lies in.
    fn media(&self, end: Lba, access: &Access) -> Duration {
        let mut total = Duration::ZERO;
        let mut at = access.lba;
        while at < access.end() {
            let (index, zone_end) = self.zone(end, at);
            let upto = zone_end.min(access.end());
            total += self.zones[index].rate.time_for(SECTOR * at.distance(upto));
            at = upto;
        }
        total
    }

    fn worst(&self, end: Lba, range: Range<Lba>, len: Bytes, direction: Direction) -> Duration {
        let last = Lba::new(range.end.get() - 1);
        let distance = self.stroke(end, &range);
        let zones = self.zone(end, range.start).0..=self.zone(end, last).0;
        let slowest = self.zones[zones.clone()].iter().map(|zone| zone.rate).min();
        let media = slowest.expect("a range lies in some zone").time_for(len.round_up(SECTOR));
        // Each zone's part of a transfer is rounded up by itself.
        let rounding = Duration::from_nanos((zones.end() - zones.start()) as u64);
        let mechanics = self.overhead + self.seek(distance, direction) + self.rotation;
        mechanics + self.long_access(len, direction) + media + rounding + self.switch
    }

    /// The longest way from anywhere on the disk to `range`, in cylinders.
    fn stroke(&self, end: Lba, range: &Range<Lba>) -> u64 {
        let innermost = self.cylinder(end, Lba::new(end.get() - 1));
        let to_inside = innermost - self.cylinder(end, range.start);
        to_inside.max(self.cylinder(end, Lba::new(range.end.get() - 1)))
    }

    fn sweep(&self, end: Lba, range: Range<Lba>, len: Bytes, worst: Duration) -> Sweep<'_> {
        let last = Lba::new(range.end.get() - 1);
        let zones = self.zone(end, range.start).0..=self.zone(end, last).0;
        let per_cylinder = zones.map(|index| {
            let zone_end = self.zones.get(index + 1).map_or(end, |next| next.start);
            self.zones[index].start.distance(zone_end) / self.zones[index].cylinders
        });
        let fewest = per_cylinder.min().expect("a range lies in some zone").max(1);
        let stroke = self.stroke(end, &range);
        Sweep {
            seek: &self.seek,
            stroke,
            cylinders: self.cylinder(end, last) - self.cylinder(end, range.start),
            span: len.div_ceil(SECTOR * fewest) + 1,
            request: worst - self.seek.time(stroke),
        }
    }

    fn check(&self, capacity: Bytes) -> Result<(), Error> {
        check("hard-disk.overhead", &self.overhead)?;
        check("hard-disk.rotation", &self.rotation)?;
        check("hard-disk.write-settle", &self.write_settle)?;
        check("hard-disk.switch", &self.switch)?;
        let longest = self.seek.points().iter().map(|&(_, time)| time).max();
        check("hard-disk.seek", &longest.unwrap_or_default())?;
        let queue = self.queue;
        ensure!(
            (1..=DEPTH_MAX).contains(&queue),
            "hard-disk.queue is {queue}; give 1 to {DEPTH_MAX}"
        );
        for (name, long) in [("reads", self.long_reads), ("writes", self.long_writes)] {
            let extra = long.map_or(Duration::ZERO, |it| it.extra);
            check(&format!("hard-disk.long-{name}.extra"), &extra)?;
        }
        ensure!(!self.zones.is_empty(), "hard-disk.zones is empty; give at least one zone");
        ensure!(
            self.zones[0].start == Lba::new(0),
            "hard-disk.zones[0] starts at sector {}; the first zone starts at 0",
            self.zones[0].start.get()
        );
        let end = Lba::containing(capacity);
        for (index, zone) in self.zones.iter().enumerate() {
            let zone_end = self.zones.get(index + 1).map_or(end, |next| next.start);
            ensure!(
                zone.start < zone_end,
                "hard-disk.zones[{index}] starts at sector {} and ends at {}; zones rise and end \
                 with the capacity",
                zone.start.get(),
                zone_end.get()
            );
            ensure!(
                (1..=1 << 32).contains(&zone.cylinders) && !zone.rate.is_zero(),
                "hard-disk.zones[{index}] needs cylinders and a rate above zero"
            );
            check(&format!("hard-disk.zones[{index}].rate"), &zone.rate)?;
        }
        Ok(())
    }
}

/// `part * times / whole` and what is left: most often in 64 bits, which is quicker.
fn scaled(part: u64, times: u64, whole: u64) -> (u64, u64) {
    if let Some(product) = part.checked_mul(times) {
        return (product / whole, product % whole);
    }
    let (product, whole) = (u128::from(part) * u128::from(times), u128::from(whole));
    let quotient = u64::try_from(product / whole).expect("a part is not more than the whole");
    (quotient, (product % whole) as u64)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    kind: String,
    source: String,
    confidence: String,
    capacity: Text<Bytes>,
    flush: Text<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_disk: Option<HardDiskFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    linear: Option<LinearFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bus: Option<BusFile>,
    /// What else the profiler found, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured: Option<MeasuredFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HardDiskFile {
    overhead: Text<Duration>,
    rotation: Text<Duration>,
    write_settle: Text<Duration>,
    switch: Text<Duration>,
    seek: Points,
    #[serde(skip_serializing_if = "Option::is_none")]
    long_reads: Option<LongAccessFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    long_writes: Option<LongAccessFile>,
    /// Absent where it holds one command, as all did once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    queue: u32,
    zones: Vec<ZoneFile>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_one(queue: &u32) -> bool {
    *queue == 1
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongAccessFile {
    from: Text<Bytes>,
    extra: Text<Duration>,
}

impl LongAccessFile {
    fn of(long: LongAccess) -> Self {
        Self { from: Text(long.from), extra: Text(long.extra) }
    }

    fn long(self) -> LongAccess {
        LongAccess { from: self.from.0, extra: self.extra.0 }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoneFile {
    start: u64,
    cylinders: u64,
    rate: Text<Rate>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinearFile {
    depth: u32,
    latency: Text<Duration>,
    read: LineFile,
    write: LineFile,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineFile {
    fixed: Text<Duration>,
    #[serde(deserialize_with = "line_rate")]
    rate: Text<Rate>,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// Says what is wrong and what would do.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: File = toml::from_str(text).map_err(|error| Error::Syntax(error.to_string()))?;
        let capacity = file.capacity.0;
        let kind = match (file.kind.as_str(), file.hard_disk, file.linear) {
            ("hard-disk", Some(disk), None) => Kind::HardDisk(disk.profile()?),
            ("linear", None, Some(linear)) => {
                let costs = file.measured.and_then(|measured| measured.costs);
                let spread = costs.map(SpreadFile::spread);
                Kind::Linear(LinearProfile { spread, ..linear.profile() })
            }
            (kind @ ("hard-disk" | "linear"), _, _) => {
                let text = format!("kind is {kind:?}; give the section [{kind}] and no other");
                return Err(Error::Invalid(text));
            }
            (other, _, _) => {
                let text = format!("kind is {other:?}; give \"hard-disk\" or \"linear\"");
                return Err(Error::Invalid(text));
            }
        };
        let flush = file.flush.0;
        let File { source, confidence, .. } = file;
        let bus = file.bus.map(BusFile::share).transpose()?;
        let profile = Self { source, confidence, capacity, flush, kind, bus };
        profile.check()?;
        Ok(profile)
    }

    /// Whether it can be a disk's: the sectors are all there and no number is absurd.
    /// What [`Profile::parse`] gives is.
    ///
    /// # Errors
    /// Says what is wrong and what would do.
    pub fn check(&self) -> Result<(), Error> {
        let capacity = self.capacity;
        ensure!(
            !capacity.is_zero() && capacity.is_multiple_of(SECTOR),
            "capacity is {capacity:?}; give a whole number of sectors of 512 B above zero"
        );
        check("capacity", &capacity)?;
        check("flush", &self.flush)?;
        match &self.kind {
            Kind::HardDisk(disk) => disk.check(capacity),
            Kind::Linear(line) => line.check(),
        }
    }

    /// The profile as text that [`Profile::parse`] reads back unchanged.
    pub fn to_toml(&self) -> String {
        let (kind, hard_disk, linear) = match &self.kind {
            Kind::HardDisk(disk) => ("hard-disk", Some(HardDiskFile::of(disk)), None),
            Kind::Linear(line) => ("linear", None, Some(LinearFile::of(line))),
        };
        toml::to_string(&File {
            kind: kind.to_owned(),
            source: self.source.clone(),
            confidence: self.confidence.clone(),
            capacity: Text(self.capacity),
            flush: Text(self.flush),
            hard_disk,
            linear,
            bus: self.bus.as_ref().map(BusFile::of),
            measured: match &self.kind {
                Kind::Linear(LinearProfile { spread: Some(spread), .. }) => {
                    Some(MeasuredFile { costs: Some(SpreadFile::of(spread)) })
                }
                Kind::Linear(_) | Kind::HardDisk(_) => None,
            },
        })
        .expect("texts, integers and tables can be written as TOML")
    }
}

impl HardDiskFile {
    fn profile(self) -> Result<HardDiskProfile, Error> {
        let zone = |zone: &ZoneFile| ZoneProfile {
            start: Lba::new(zone.start),
            cylinders: zone.cylinders,
            rate: zone.rate.0,
        };
        Ok(HardDiskProfile {
            overhead: self.overhead.0,
            rotation: self.rotation.0,
            seek: SeekCurve::parse(self.seek)?,
            write_settle: self.write_settle.0,
            switch: self.switch.0,
            long_reads: self.long_reads.map(LongAccessFile::long),
            long_writes: self.long_writes.map(LongAccessFile::long),
            queue: self.queue,
            zones: self.zones.iter().map(zone).collect(),
        })
    }

    fn of(disk: &HardDiskProfile) -> Self {
        Self {
            overhead: Text(disk.overhead),
            rotation: Text(disk.rotation),
            write_settle: Text(disk.write_settle),
            switch: Text(disk.switch),
            seek: disk.seek.text(),
            queue: disk.queue,
            long_reads: disk.long_reads.map(LongAccessFile::of),
            long_writes: disk.long_writes.map(LongAccessFile::of),
            zones: disk
                .zones
                .iter()
                .map(|zone| ZoneFile {
                    start: zone.start.get(),
                    cylinders: zone.cylinders,
                    rate: Text(zone.rate),
                })
                .collect(),
        }
    }
}

impl LinearFile {
    fn profile(self) -> LinearProfile {
        LinearProfile {
            read: Line { fixed: self.read.fixed.0, rate: self.read.rate.0 },
            write: Line { fixed: self.write.fixed.0, rate: self.write.rate.0 },
            depth: self.depth,
            latency: self.latency.0,
            spread: None,
        }
    }

    fn of(linear: &LinearProfile) -> Self {
        let line = |line: &Line| LineFile { fixed: Text(line.fixed), rate: Text(line.rate) };
        Self {
            depth: linear.depth,
            latency: Text(linear.latency),
            read: line(&linear.read),
            write: line(&linear.write),
        }
    }
}
