//! A hard disk at work: arm, platters, cache and bus.
//!
//! What it does between commands (writing out its buffer, reading ahead) is
//! worked out when the next command comes: nothing here runs by itself, nothing
//! is allocated once the disk stands, and the same history gives the same times.
//!
//! Invariants: commands come in order of time, none before the end of the last;
//! `arm` is where the heads are once all work that was begun is done, at
//! `busy_until`; reading ahead gives way to everything else at once.

mod ahead;
mod buffer;
mod transfer;

use crate::bus::Bus;
use crate::geometry::{Geometry, Piece};
use crate::model::{Bad, HardDiskModel, ReadAhead};
use crate::random::Random;
use crate::segments::{Segment, Segments};
use crate::{Drive, Model};
use alloc::vec::Vec;
use units::{Access, Command, Direction, Duration, Instant};

/// A write that waits in the buffer.
#[derive(Clone, Copy, Debug)]
struct Pending {
    first: u64,
    end: u64,
    ready: Instant,
}

/// A [`Model`] of a hard disk at work.
#[derive(Clone, Debug)]
pub struct HardDisk {
    model: Model,
    disk: HardDiskModel,
    geometry: Geometry,
    random: Random,
    /// Cylinder and head.
    arm: (u64, u64),
    busy_until: Instant,
    /// When the electronics had done with the last transfer's command.
    decoded: Instant,
    segments: Segments,
    pending: Vec<Pending>,
    /// The sector after those that were written last.
    writes_at: Option<u64>,
    /// Which way the last transfer went (an index into overheads), and its end.
    last: usize,
    last_end: u64,
}

impl HardDisk {
    /// A disk of that model with its arm at the first cylinder. Panics where the
    /// model is no hard disk; [`Emulated`](crate::Emulated) takes any.
    pub fn new(model: &Model) -> Self {
        let disk = model.hard_disk().expect("a model of a hard disk; Emulated takes any");
        let disk = disk.clone();
        Self {
            model: model.clone(),
            geometry: Geometry::new(&disk),
            random: Random::new(disk.seed),
            arm: (0, 0),
            busy_until: Instant::EPOCH,
            decoded: Instant::EPOCH,
            segments: Segments::new(disk.cache),
            pending: Vec::with_capacity(disk.cache.map_or(0, |cache| cache.write_segments) + 1),
            writes_at: None,
            last: 0,
            last_end: u64::MAX,
            disk,
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// First sector, sectors and sectors a track of each zone, from the outside in.
    pub(crate) fn zones(&self) -> impl ExactSizeIterator<Item = (u64, u64, u64)> + '_ {
        let zones = self.geometry.zones.iter();
        zones.map(|zone| (zone.first_sector, zone.sectors, zone.sectors_per_track))
    }

    /// The time of `command` with access to the medium forced: a read comes from
    /// the platters, a write is on them when it completes.
    pub fn serve_forced(&mut self, start: Instant, command: &Command) -> Duration {
        self.serve_on(&mut Bus::private(), start, command, true)
    }

    /// The time of `command` on a bus that other disks use, too. Commands of all
    /// disks of the bus come in order of their start.
    pub fn serve_sharing(&mut self, bus: &mut Bus, start: Instant, command: &Command) -> Duration {
        self.serve_on(bus, start, command, false)
    }

    /// When the electronics had done with the command of the last transfer: from then on its
    /// data may move.
    pub(crate) fn decoded(&self) -> Instant {
        self.decoded
    }

    /// How long after `start` the platters would begin to move `access` if nothing
    /// came from the cache: electronics, seek, and the wait for the first sector.
    /// What a drive orders its queue by; it counts with the longest seek and
    /// overhead, since to come late costs a turn.
    pub fn positioning(&self, start: Instant, access: &Access) -> Duration {
        let overheads = &self.disk.overheads;
        let electronics = match access.direction {
            Direction::Read => overheads.read_miss[self.last] + overheads.read_spread,
            Direction::Write => overheads.write[self.last] + overheads.write_spread,
        };
        let piece = self.geometry.piece(access.lba.get(), 1);
        let seek = match self.arm.0.abs_diff(piece.cylinder) {
            0 if self.arm.1 == piece.head => self.disk.same_cylinder,
            0 => self.disk.head_switch.max(self.disk.same_cylinder),
            distance if access.direction == Direction::Write => {
                self.disk.arm.most(distance) + self.disk.write_settle
            }
            distance => self.disk.arm.most(distance),
        };
        let land = (start + electronics).max(self.busy_until) + seek;
        land + self.geometry.timing(land, &piece).0 - start
    }

    /// Makes `lba` a bad sector that lies elsewhere from now on, or with
    /// `retries`, one that is read after so many more turns.
    pub fn spoil(&mut self, lba: units::Lba, retries: Option<u64>) {
        assert!(lba.get() < self.geometry.sectors, "a bad sector outside the disk");
        let kind = retries.map_or(Bad::Remapped, Bad::Retried);
        let bad = &mut self.disk.bad;
        match bad.binary_search_by_key(&lba.get(), |&(lba, _)| lba) {
            Ok(index) => bad[index].1 = kind,
            Err(index) => bad.insert(index, (lba.get(), kind)),
        }
    }

    /// Drops what is in the write buffer and not yet on the medium, as when the
    /// power fails at `now`; returns how many writes were lost.
    pub fn lose_power(&mut self, now: Instant) -> usize {
        self.work_until(now);
        let lost = self.pending.len();
        self.pending.clear();
        self.segments = Segments::new(self.disk.cache);
        lost
    }

    fn serve_on(
        &mut self,
        bus: &mut Bus,
        start: Instant,
        command: &Command,
        forced: bool,
    ) -> Duration {
        self.work_until(start);
        match command {
            Command::Flush => self.flush(start) - start,
            Command::Seek(to) => self.seek(start, to.get()) - start,
            Command::Transfer(access) | Command::Forced(access) => {
                let forced = forced || matches!(command, Command::Forced(_));
                let (first, end) = (access.lba.get(), access.end().get());
                assert!(first < end && end <= self.geometry.sectors, "an access outside the disk");
                let done = match access.direction {
                    Direction::Read => self.read(bus, start, first, end, forced),
                    Direction::Write => self.write(bus, start, first, end, forced),
                };
                self.last = usize::from(access.direction == Direction::Write);
                self.last_end = end;
                done - start
            }
        }
    }

    fn flush(&mut self, start: Instant) -> Instant {
        self.write_out_all(start);
        self.busy_until.max(start) + self.disk.overheads.flush
    }

    /// Brings the heads to a track and moves no bytes; what waits in the buffer stays
    /// there, what is being written out is finished first.
    fn seek(&mut self, start: Instant, to: u64) -> Instant {
        assert!(to < self.geometry.sectors, "a seek outside the disk");
        let spread = self.random.up_to(self.disk.overheads.read_spread);
        let begin = start + self.disk.overheads.read_miss[self.last] + spread;
        let begin = begin.max(self.busy_until);
        self.stop_ahead(begin);
        let piece = self.geometry.piece(to, 1);
        self.busy_until = if self.arm == (piece.cylinder, piece.head) {
            begin
        } else {
            begin + self.seek_to(&piece, Direction::Read)
        };
        self.busy_until
    }

    fn read(
        &mut self,
        bus: &mut Bus,
        start: Instant,
        first: u64,
        end: u64,
        forced: bool,
    ) -> Instant {
        let spread = self.random.up_to(self.disk.overheads.read_spread);
        if !forced {
            let hit = start + self.disk.overheads.read_hit[self.last] + spread;
            self.decoded = hit;
            if let Some(done) = self.read_hit(bus, start, hit, first, end) {
                return done;
            }
        }
        if self.disk.cache.is_some_and(|cache| cache.write_buffer.before_reads) {
            self.write_out_all(start);
        }
        // A forced read must not see what the medium has not got yet.
        while self.pending.iter().any(|write| write.first < end && first < write.end) {
            self.write_out_one(start);
        }
        self.decoded = start + self.disk.overheads.read_miss[self.last] + spread;
        let begin = self.decoded.max(self.busy_until);
        self.stop_ahead(begin);
        let done = self.read_medium(bus, begin, first, end);
        self.keep_read(first, end);
        done
    }

    /// Remembers a read that came from the medium, and what is read after it.
    fn keep_read(&mut self, first: u64, end: u64) {
        let Some(cache) = self.disk.cache else { return };
        let continues = first == self.last_end;
        let ahead = match cache.read_ahead {
            ReadAhead::Never => 0,
            ReadAhead::Sequential if !continues => 0,
            _ => cache.read_ahead_sectors,
        };
        let planned = (end + ahead).min(self.geometry.sectors);
        let kept = match cache.read_ahead {
            _ if !cache.keeps_sent => end,
            ReadAhead::Sequential if continues => self.geometry.track(first).0,
            _ => first,
        };
        let first = kept.max(planned.saturating_sub(cache.segment_sectors));
        let since = self.busy_until;
        let live = planned > end;
        self.segments.insert(Segment { first, held: end, planned, since, live, written: false });
    }

    /// The time to bring the heads to a track from where they are.
    fn seek_to(&mut self, piece: &Piece, direction: Direction) -> Duration {
        let from = core::mem::replace(&mut self.arm, (piece.cylinder, piece.head));
        let distance = from.0.abs_diff(piece.cylinder);
        if distance == 0 {
            let still = from.1 == piece.head;
            let switch = if still { Duration::ZERO } else { self.disk.head_switch };
            return switch.max(self.disk.same_cylinder);
        }
        let seek = self.disk.arm.time(distance, &mut self.random);
        match direction {
            Direction::Read => seek,
            Direction::Write => seek + self.disk.write_settle,
        }
    }

    /// The time from one track of a transfer to the next.
    fn switch_to(&mut self, piece: &Piece) -> Duration {
        let from = core::mem::replace(&mut self.arm, (piece.cylinder, piece.head));
        if from == self.arm {
            Duration::ZERO
        } else if from.0 == piece.cylinder {
            self.disk.head_switch
        } else {
            self.disk.cylinder_switch
        }
    }
}

impl Drive for HardDisk {
    fn serve(&mut self, start: Instant, command: &Command) -> Duration {
        self.serve_on(&mut Bus::private(), start, command, false)
    }
}
