//! A hard disk at work: arm, platters and tracks.
//!
//! The angle of the platters is a function of time alone: at an instant `t` they
//! have turned `t mod rotation` since the last full turn. A sector's place on the
//! circle is a time, too: how long after the turn's start it comes by. Both are
//! whole nanoseconds, so that the same history gives the same times everywhere.

use crate::{Drive, Model};
use alloc::vec::Vec;
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

/// One zone with what follows from its place on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub first_sector: u64,
    pub first_cylinder: u64,
    pub sectors_per_track: u64,
    /// By how many sectors a track starts later than the one on the head before.
    track_skew: u64,
    /// And than the last one of the cylinder before.
    cylinder_skew: u64,
    /// When, in a turn, the zone's first sector comes by.
    offset_ns: u64,
}

impl Layout {
    /// When, after the zone's offset, the edge before sector `index` of a circle
    /// comes by; `index` may go past the end of the circle.
    fn edge_ns(&self, index: u64, rotation_ns: u64) -> u64 {
        index * rotation_ns / self.sectors_per_track
    }
    /// The step from the last sector of a track to the first of the next, rounded up.
    pub fn track_skew(&self, rotation: Duration) -> Duration {
        Duration::from_nanos(self.edge_ns(self.track_skew, rotation.as_nanos()) + 1)
    }
    /// The same to the next cylinder.
    pub fn cylinder_skew(&self, rotation: Duration) -> Duration {
        Duration::from_nanos(self.edge_ns(self.cylinder_skew, rotation.as_nanos()) + 1)
    }
}

/// Lays the zones of a model out. Each starts where a transfer that comes from
/// the zone before finds its first sector after one cylinder skew, as formatters
/// do: crossing into a zone costs what any other step to the next cylinder costs.
pub(crate) fn layout(model: &Model) -> Vec<Layout> {
    let rotation_ns = model.rotation.as_nanos();
    let mut zones: Vec<Layout> = Vec::with_capacity(model.zones.len());
    let (mut first_sector, mut first_cylinder, mut offset_ns) = (0, 0, 0);
    for zone in &model.zones {
        let n = zone.sectors_per_track;
        // One nanosecond more than the skew, since edges are rounded down.
        let sectors = |skew: Duration| ((skew.as_nanos() + 1) * n).div_ceil(rotation_ns);
        let layout = Layout {
            first_sector,
            first_cylinder,
            sectors_per_track: n,
            track_skew: sectors(model.track_skew),
            cylinder_skew: sectors(model.cylinder_skew),
            offset_ns,
        };
        let steps = (model.heads - 1) * layout.track_skew * zone.cylinders
            + layout.cylinder_skew * (zone.cylinders - 1);
        let end_ns = offset_ns + layout.edge_ns(steps % n, rotation_ns);
        offset_ns = (end_ns + layout.cylinder_skew(model.rotation).as_nanos()) % rotation_ns;
        first_sector += zone.cylinders * model.heads * n;
        first_cylinder += zone.cylinders;
        zones.push(layout);
    }
    zones
}

/// Where on the disk a sector lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    zone: usize,
    cylinder: u64,
    head: u64,
    sector: u64,
}

/// A [`Model`] at work.
#[derive(Clone, Debug)]
pub struct HardDisk {
    model: Model,
    zones: Vec<Layout>,
    sectors: u64,
    cylinder: u64,
    head: u64,
}

impl HardDisk {
    /// A disk of that model with its arm at the first cylinder.
    pub fn new(model: &Model) -> Self {
        Self {
            zones: layout(model),
            sectors: model.capacity() / SECTOR,
            model: model.clone(),
            cylinder: 0,
            head: 0,
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    fn place(&self, lba: Lba) -> Place {
        let sector = lba.get();
        let zone = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        let layout = &self.zones[zone];
        let inside = sector - layout.first_sector;
        let track = inside / layout.sectors_per_track;
        Place {
            zone,
            cylinder: layout.first_cylinder + track / self.model.heads,
            head: track % self.model.heads,
            sector: inside % layout.sectors_per_track,
        }
    }

    /// The time that the arm and the heads take from where they are to `place`.
    fn positioning(&self, place: Place, direction: Direction) -> Duration {
        let distance = self.cylinder.abs_diff(place.cylinder);
        if distance == 0 && self.head == place.head {
            return Duration::ZERO;
        }
        if distance == 0 {
            return self.model.head_switch;
        }
        let seek = self.model.seek.time(distance);
        match direction {
            Direction::Read => seek,
            Direction::Write => seek + self.model.write_settle,
        }
    }

    /// The index on its circle of the first sector of a track, skews added up.
    fn track_start(&self, layout: &Layout, cylinder: u64, head: u64) -> u64 {
        let cylinders = cylinder - layout.first_cylinder;
        let steps = ((self.model.heads - 1) * cylinders + head) * layout.track_skew
            + cylinders * layout.cylinder_skew;
        steps % layout.sectors_per_track
    }

    /// The end of a transfer of `count` sectors of one track that starts when
    /// its first sector comes by, at `now` or later.
    fn track_transfer(&self, now: Instant, place: Place, count: u64) -> Instant {
        let rotation_ns = self.model.rotation.as_nanos();
        let layout = &self.zones[place.zone];
        let index = self.track_start(layout, place.cylinder, place.head) + place.sector;
        let from_ns = layout.edge_ns(index, rotation_ns);
        let angle_ns = now.as_nanos() % rotation_ns;
        // Both terms before the last are below two turns, the angle below one.
        let wait_ns = (layout.offset_ns + from_ns + 2 * rotation_ns - angle_ns) % rotation_ns;
        let move_ns = layout.edge_ns(index + count, rotation_ns) - from_ns;
        now + Duration::from_nanos(wait_ns + move_ns)
    }

    fn transfer(&mut self, start: Instant, access: &Access) -> Instant {
        let end = access.end().get();
        assert!(access.lba.get() < end && end <= self.sectors, "an access outside the disk");
        let mut place = self.place(access.lba);
        let mut now = start + self.positioning(place, access.direction);
        let mut left = end - access.lba.get();
        loop {
            let count = left.min(self.zones[place.zone].sectors_per_track - place.sector);
            now = self.track_transfer(now, place, count);
            left -= count;
            if left == 0 {
                break;
            }
            let next = self.place(Lba::new(end - left));
            now += if next.cylinder == place.cylinder {
                self.model.head_switch
            } else {
                self.model.cylinder_switch
            };
            place = next;
        }
        (self.cylinder, self.head) = (place.cylinder, place.head);
        now
    }
}

impl Drive for HardDisk {
    fn serve(&mut self, start: Instant, command: &Command) -> Duration {
        let begin = start + self.model.overhead;
        match command {
            Command::Transfer(access) => self.transfer(begin, access) - start,
            // There is no volatile cache: what was written is on the medium.
            Command::Flush => self.model.overhead,
        }
    }
}
