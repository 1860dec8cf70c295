//! Where arm and platters of a drive are when, as far as its model tells: what
//! commands that are planned ahead rest on (semi-preemptible I/O, section 3.4).
//!
//! These are expectations. A seek varies around its mean, and the arm may have moved
//! on a little when the drive read ahead.

use crate::Model;
use crate::geometry::Geometry;
use crate::model::HardDiskModel;
use core::ops::Range;
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

/// The mechanics of a hard disk.
#[derive(Clone, Debug)]
pub struct Mechanics {
    disk: HardDiskModel,
    geometry: Geometry,
}

impl Mechanics {
    /// Those of a model; none where nothing moves.
    pub fn of(model: &Model) -> Option<Self> {
        let disk = model.hard_disk()?.clone();
        Some(Self { geometry: Geometry::new(&disk), disk })
    }

    /// Where the disk ends: no sector from there on.
    pub fn end(&self) -> Lba {
        Lba::new(self.geometry.sectors)
    }

    /// The cylinder of a sector, counted from the outside.
    pub fn cylinder(&self, lba: Lba) -> u64 {
        self.geometry.piece(self.inside(lba), 1).cylinder
    }

    /// A sector on this cylinder, or on the nearest before it that has any.
    pub fn on_cylinder(&self, cylinder: u64) -> Lba {
        let zones = &self.geometry.zones;
        let zone = zones.partition_point(|zone| zone.first_cylinder <= cylinder).max(1) - 1;
        let zone = &zones[zone];
        let inside = (cylinder - zone.first_cylinder.min(cylinder)).min(zone.cylinders - 1);
        let at = u128::from(zone.sectors) * u128::from(inside) / u128::from(zone.cylinders);
        let at = u64::try_from(at).expect("no more than the zone has");
        // Sectors without an address shift the rest; the middle is safe from that.
        let half = zone.sectors / zone.cylinders / 2;
        Lba::new(zone.first_sector + (at + half).min(zone.sectors - 1))
    }

    /// The sectors of the track that holds `lba`.
    pub fn track(&self, lba: Lba) -> Range<Lba> {
        let (first, end) = self.geometry.track(self.inside(lba));
        Lba::new(first)..Lba::new(end)
    }

    /// From the start of a command until arm or platters could begin with it: the
    /// electronics at their slowest, and for a write the bus: all of it where the write
    /// goes into the buffer first, else as far as the platters would have to wait.
    pub fn overhead(&self, command: &Command) -> Duration {
        let overheads = &self.disk.overheads;
        let slower = |pair: [Duration; 2]| pair[0].max(pair[1]);
        match command.access() {
            Some(access) if access.direction == Direction::Write => {
                let bus = self.disk.bus_sector * (access.len / SECTOR);
                let span = self.transfer(access);
                let first = bus.saturating_sub(span).max(self.disk.bus_sector);
                let buffered = self.disk.write_back && matches!(command, Command::Transfer(_));
                let bus = if buffered { bus } else { first };
                slower(overheads.write) + overheads.write_spread + bus
            }
            _ => slower(overheads.read_miss) + overheads.read_spread,
        }
    }

    /// The mean time from the track of one sector to that of another.
    pub fn seek(&self, from: Lba, to: Lba) -> Duration {
        let [from, to] = [from, to].map(|lba| self.geometry.piece(self.inside(lba), 1));
        match from.cylinder.abs_diff(to.cylinder) {
            0 if from.head == to.head => self.disk.same_cylinder,
            0 => self.disk.head_switch.max(self.disk.same_cylinder),
            distance => self.disk.arm.mean(distance),
        }
    }

    /// Bound on everything that it takes to begin with a sector from another: the
    /// electronics, the longest seek, however far the arm moved on by reading ahead,
    /// and a turn. What the write buffer still has to do is not in it.
    pub fn reach(&self, from: Lba, to: Lba) -> Duration {
        let distance = self.cylinder(from).abs_diff(self.cylinder(to)) + self.disk.slack();
        let seek = self.disk.arm.longest(distance).max(self.disk.head_switch);
        let seek = seek.max(self.disk.same_cylinder) + self.disk.write_settle;
        self.overhead(&Command::Flush) + seek + self.disk.rotation
    }

    /// From `at` until the sector comes by.
    pub fn rotation(&self, at: Instant, lba: Lba) -> Duration {
        self.geometry.timing(at, &self.geometry.piece(self.inside(lba), 1)).0
    }

    /// The time from the first of these sectors under the heads to the last.
    pub fn transfer(&self, access: &Access) -> Duration {
        let (mut at, end) = (access.lba.get(), access.end().get());
        let mut piece = self.geometry.piece(at, end - at);
        // From a moment at which the first sector comes by.
        let first = Instant::EPOCH + self.geometry.timing(Instant::EPOCH, &piece).0;
        let mut now = first + self.geometry.timing(first, &piece).1;
        loop {
            at += piece.count;
            if at >= end {
                return now - first;
            }
            let next = self.geometry.piece(at, end - at);
            now += if next.cylinder == piece.cylinder {
                self.disk.head_switch
            } else {
                self.disk.cylinder_switch
            };
            let (wait, span) = self.geometry.timing(now, &next);
            now += wait + span;
            piece = next;
        }
    }

    /// The time of a command that goes on where the one before it ended: the
    /// platters never stopped, unless the bus is slower.
    pub fn streamed(&self, access: &Access) -> Duration {
        let overheads = &self.disk.overheads;
        let electronics = match access.direction {
            Direction::Read => overheads.read_hit[0] + overheads.read_spread,
            Direction::Write => overheads.write[1] + overheads.write_spread,
        };
        let bus = self.disk.bus_sector * (access.len / SECTOR);
        self.transfer(access).max(electronics + bus)
    }

    fn inside(&self, lba: Lba) -> u64 {
        lba.get().min(self.geometry.sectors - 1)
    }
}
