//! The write buffer: what is in it, in which order it goes to the medium, and when the
//! host has to wait.
//!
//! What is described of drives: writes end in the buffer, and are written out later,
//! several in an order of the drive's own; who comes then waits for that, and the end of
//! a write that is too large comes when the rest would fit (semi-preemptible I/O,
//! section 3.1.3). Each is a setting of the model.
//!
//! Invariant: no more writes wait than the model has places for.

use super::{HardDisk, Pending};
use crate::bus::Bus;
use crate::model::Cache;
use units::{Duration, Instant};

impl HardDisk {
    pub(super) fn write(
        &mut self,
        bus: &mut Bus,
        start: Instant,
        first: u64,
        end: u64,
        forced: bool,
    ) -> Instant {
        let overhead = self.disk.overheads.write[self.last];
        let begin = start + overhead + self.random.up_to(self.disk.overheads.write_spread);
        self.decoded = begin;
        if self.segments.ends_live(first, end) {
            self.stop_ahead(start);
        }
        let cache = self.disk.cache;
        let buffer = cache.filter(|cache| {
            let fits = cache.write_buffer.holds_back || end - first <= cache.write_buffer.sectors;
            self.disk.write_back && !forced && fits
        });
        let done = match buffer {
            Some(cache) => self.write_buffer(bus, begin, first, end, cache),
            None => {
                self.write_out_all(start);
                let begin = begin.max(self.busy_until);
                self.stop_ahead(begin);
                self.write_medium(bus, begin, first, end)
            }
        };
        match cache {
            Some(cache) if cache.holds_written => {
                self.segments.write(first, end, cache.segment_sectors, done);
            }
            _ => self.segments.forget(first, end),
        }
        done
    }

    /// Takes a write into the buffer; waits for room where there is none.
    fn write_buffer(
        &mut self,
        bus: &mut Bus,
        begin: Instant,
        first: u64,
        end: u64,
        cache: Cache,
    ) -> Instant {
        let span = self.disk.bus_sector * (end - first);
        let buffer = cache.write_buffer;
        let streams = self.writes_at == Some(first) && self.pending.is_empty();
        let goes_on = streams || self.pending.last().is_some_and(|last| last.end == first);
        let is_in_parts = goes_on && end - first > buffer.sectors;
        let begin = begin + if is_in_parts { buffer.next_part } else { Duration::ZERO };
        if let Some(last) = self.pending.last_mut()
            && last.end == first
        {
            if end - last.first <= buffer.sectors {
                last.end = end;
                last.ready = bus.reserve(begin, span);
                return last.ready;
            }
            if buffer.holds_back {
                let run = self.pending.pop().expect("it was seen just now");
                return self.write_held_back(bus, begin, run.first, [first, end], buffer.sectors);
            }
        }
        if buffer.holds_back && (streams || end - first > buffer.sectors) {
            return self.write_held_back(bus, begin, first, [first, end], buffer.sectors);
        }
        let mut begin = begin;
        // What is being written out still fills its place in the buffer.
        while self.pending.len() >= cache.write_segments {
            self.write_out_one(begin);
        }
        if self.pending.len() + 1 >= cache.write_segments {
            begin = begin.max(self.busy_until);
        }
        let ready = bus.reserve(begin, span);
        self.pending.push(Pending { first, end, ready });
        ready
    }

    /// Writes a run, of which the sectors before `first` are in the buffer, up to `end`:
    /// the host may go on when no more than `ahead` sectors are left to write.
    fn write_held_back(
        &mut self,
        bus: &mut Bus,
        begin: Instant,
        run: u64,
        [first, end]: [u64; 2],
        ahead: u64,
    ) -> Instant {
        self.write_out_all(begin);
        let sector = self.disk.bus_sector;
        let span = sector * (end - first);
        let ready = bus.reserve(begin, span);
        let data = ready.saturating_sub(span);
        let from = self.busy_until.max(if run < first { Instant::EPOCH } else { begin });
        self.stop_ahead(from);
        let held = first - run;
        let data_in = |count: u64| data + sector * count.saturating_sub(held);
        self.media_write(from, run, end, data_in);
        let left = self.geometry.sectors_time(&self.geometry.piece(end - 1, 1), ahead);
        ready.max(self.busy_until.saturating_sub(left))
    }

    /// Everything that the disk began by itself up to `now`: a host that sends one write
    /// right after another does not keep it from beginning with the first.
    pub(super) fn work_until(&mut self, now: Instant) {
        while let Some(index) = self.next_out()
            && self.busy_until.max(self.pending[index].ready) <= now
        {
            self.write_out(index, Instant::EPOCH);
        }
    }

    /// Writes one write out of the buffer, at `from` or later.
    pub(super) fn write_out_one(&mut self, from: Instant) {
        let index = self.next_out().expect("something waits");
        self.write_out(index, from);
    }

    /// Empties the buffer, beginning at `from` or later.
    pub(super) fn write_out_all(&mut self, from: Instant) {
        while !self.pending.is_empty() {
            self.write_out_one(from);
        }
    }

    /// Which write goes to the medium next.
    fn next_out(&self) -> Option<usize> {
        let oldest = self.pending.first()?;
        if !self.disk.cache.is_some_and(|cache| cache.write_buffer.nearest) {
            return Some(0);
        }
        let begin = self.busy_until.max(oldest.ready);
        let there = self.pending.iter().enumerate().filter(|(_, write)| write.ready <= begin);
        there.min_by_key(|(_, write)| self.reach(begin, write.first)).map(|(index, _)| index)
    }

    /// How long from `begin` until the heads could write this sector, as the drive
    /// counts on it.
    fn reach(&self, begin: Instant, sector: u64) -> Duration {
        let piece = self.geometry.piece(sector, 1);
        let seek = match self.arm.0.abs_diff(piece.cylinder) {
            0 if self.arm.1 == piece.head => self.disk.same_cylinder,
            0 => self.disk.head_switch.max(self.disk.same_cylinder),
            distance => self.disk.arm.most(distance) + self.disk.write_settle,
        };
        let land = begin + seek;
        seek + self.geometry.timing(land, &piece).0
    }

    fn write_out(&mut self, index: usize, from: Instant) {
        let write = self.pending.remove(index);
        let begin = self.busy_until.max(write.ready).max(from);
        self.stop_ahead(begin);
        self.media_write(begin, write.first, write.end, |_| begin);
    }
}
