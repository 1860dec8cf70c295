//! A drive measured request by request, as one finds out what it does by itself: the arm
//! is brought to where the request begins, the platters turn on to some angle, and then
//! the request is timed (Clockwise thesis, section 4.3). So seeks do not count.

use crate::model::Model;
use crate::{Bus, Drive, HardDisk};
use alloc::vec::Vec;
use core::ops::Range;
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

/// A hard disk on its own.
#[derive(Clone, Debug)]
pub struct RawDisk {
    drive: HardDisk,
    now: Instant,
}

/// Some cylinders with tracks of one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawZone {
    /// Its sectors.
    pub range: Range<Lba>,
    /// How many sectors each of its tracks holds.
    pub per_track: u64,
}

/// When the bus carried the data of a request, as BSY of a SCSI bus shows it; all from when
/// the request came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnBus {
    /// The electronics had read the command.
    pub decoded: Duration,
    /// From when to when data went over, in order of time; bursts with nothing between them
    /// are one.
    pub bursts: Vec<Range<Duration>>,
    /// The request ended.
    pub time: Duration,
}

impl RawZone {
    /// How many tracks it has.
    pub fn tracks(&self) -> u64 {
        self.range.start.distance(self.range.end) / self.per_track
    }
}

impl RawDisk {
    /// A disk of that model, at rest. Panics where the model is no hard disk.
    pub fn new(model: &Model) -> Self {
        Self { drive: HardDisk::new(model), now: Instant::EPOCH }
    }

    /// Its zones, from the outside in.
    pub fn zones(&self) -> impl ExactSizeIterator<Item = RawZone> + '_ {
        self.drive.zones().map(|(first, sectors, per_track)| RawZone {
            range: Lba::new(first)..Lba::new(first + sectors),
            per_track,
        })
    }

    /// The time of `access` when the arm is where it begins, and so long after it came
    /// there.
    pub fn time(&mut self, access: &Access, pause: Duration) -> Duration {
        let bring = Access { lba: access.lba, len: SECTOR, direction: Direction::Read };
        let brought = self.drive.serve(self.now, &Command::Transfer(bring));
        self.now += brought;
        self.next(access, pause)
    }

    /// As [`RawDisk::time`], with what the bus does meanwhile.
    pub fn on_bus(&mut self, access: &Access, pause: Duration) -> OnBus {
        let bring = Access { lba: access.lba, len: SECTOR, direction: Direction::Read };
        self.now += self.drive.serve(self.now, &Command::Transfer(bring));
        let (start, mut bus) = (self.now + pause, Bus::new());
        let time = self.drive.serve_sharing(&mut bus, start, &Command::Transfer(*access));
        self.now = start + time;
        let mut bursts: Vec<Range<Duration>> = Vec::new();
        for burst in bus.bursts() {
            let (begin, end) = (burst.start - start, burst.end - start);
            match bursts.last_mut() {
                Some(last) if last.end == begin => last.end = end,
                _ => bursts.push(begin..end),
            }
        }
        OnBus { decoded: self.drive.decoded() - start, bursts, time }
    }

    /// The time of `access` from wherever the arm is, so long after the last request.
    pub fn next(&mut self, access: &Access, pause: Duration) -> Duration {
        self.now += pause;
        let time = self.drive.serve(self.now, &Command::Transfer(*access));
        self.now += time;
        time
    }

    /// The time of `access`, which begins so long after `now`, at which the arm is sent to
    /// where it begins: for several disks that begin together, each with its own platters,
    /// perhaps on one `bus`. Calls for one disk come in order of time.
    pub fn time_at(
        &mut self,
        bus: Option<&mut Bus>,
        now: Instant,
        settle: Duration,
        access: &Access,
    ) -> Duration {
        let bring = Access { lba: access.lba, len: SECTOR, direction: Direction::Read };
        let brought = self.drive.serve(now, &Command::Transfer(bring));
        assert!(brought <= settle, "the arm is not there yet");
        let command = Command::Transfer(*access);
        let time = match bus {
            Some(bus) => self.drive.serve_sharing(bus, now + settle, &command),
            None => self.drive.serve(now + settle, &command),
        };
        self.now = now + settle + time;
        time
    }
}
