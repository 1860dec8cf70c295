//! Reading ahead: what the cache gains while nobody asks for the heads.

use super::HardDisk;
use crate::bus::Bus;
use crate::model::ReadAhead;
use crate::segments::Segment;
use units::Instant;

impl HardDisk {
    /// Follows the live segment's reading from where it stood until it has
    /// everything before `until`, or until `now`. Returns the first sector that
    /// it has not got, the instant it got the last, and the track it is on.
    fn follow(&self, segment: &Segment, until: u64, now: Instant) -> (u64, Instant, (u64, u64)) {
        let (mut lba, mut time, mut arm) = (segment.held, segment.since, self.arm);
        while lba < until && time < now {
            let piece = self.geometry.piece(lba, until - lba);
            let step = if arm == (piece.cylinder, piece.head) {
                units::Duration::ZERO
            } else if arm.0 == piece.cylinder {
                self.disk.head_switch
            } else {
                self.disk.cylinder_switch
            };
            let land = time + step;
            if land >= now {
                break;
            }
            arm = (piece.cylinder, piece.head);
            let (wait, span) = self.geometry.timing(land, &piece);
            let begin = land + wait;
            if begin + span > now {
                let passed = self.geometry.sectors_in(&piece, now.saturating_since(begin));
                return (lba + passed.min(piece.count - 1), now, arm);
            }
            (lba, time) = (lba + piece.count, begin + span);
        }
        (lba, time, arm)
    }

    /// Ends reading ahead at `now`, since the heads are wanted elsewhere.
    pub(super) fn stop_ahead(&mut self, now: Instant) {
        let Some(index) = self.segments.live() else { return };
        let segment = *self.segments.get_mut(index);
        let (held, _, arm) = self.follow(&segment, segment.planned, now);
        self.arm = arm;
        let segment = self.segments.get_mut(index);
        (segment.held, segment.planned, segment.live) = (held, held, false);
    }

    /// A read that the cache has, or is about to have: its end. `hit` is when the
    /// first byte can be sent.
    pub(super) fn read_hit(
        &mut self,
        bus: &mut Bus,
        start: Instant,
        hit: Instant,
        first: u64,
        end: u64,
    ) -> Option<Instant> {
        let cache = self.disk.cache?;
        let index = self.segments.find(first, end)?;
        let segment = *self.segments.get_mut(index);
        let mut in_by = start;
        if end > segment.held {
            let (got, ..) = self.follow(&segment, segment.planned, start);
            if end > got {
                // What has not begun to come in is quicker found by itself.
                if first > got {
                    return None;
                }
                (_, in_by, _) = self.follow(&segment, end, Instant::MAX);
            }
        }
        self.segments.touch(index);
        if segment.live && cache.read_ahead == ReadAhead::Always {
            self.extend(start, end);
        }
        let segment = self.segments.get_mut(0);
        if !cache.keeps_sent && !segment.written {
            segment.first = end.min(segment.planned);
        }
        let sector = self.disk.bus_sector;
        let sent = bus.reserve(hit, sector * (end - first));
        Some(sent.max(in_by + sector))
    }

    /// Lets the first segment, which is live, read on from `end`, which was sent.
    fn extend(&mut self, now: Instant, end: u64) {
        let Some(cache) = self.disk.cache else { return };
        let segment = *self.segments.get_mut(0);
        let planned = (end + cache.read_ahead_sectors).min(self.geometry.sectors);
        if planned <= segment.planned {
            return;
        }
        let (got, _, arm) = self.follow(&segment, segment.planned, now);
        let all_in = got == segment.planned;
        if all_in {
            self.arm = arm;
        }
        let segment = self.segments.get_mut(0);
        if all_in {
            (segment.held, segment.since) = (got, now);
        }
        segment.first = segment.first.max(planned.saturating_sub(cache.segment_sectors));
        segment.planned = planned;
    }
}
