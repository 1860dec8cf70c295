//! Which bytes of an extent are being written, and how far it may be read.
//!
//! An extent's written watermark rises only over bytes that are on the disk,
//! without holes: a deleted volume's bytes are never seen. While writes are
//! under way, a tracker per extent holds what has been claimed and what has
//! come back out of order. A failed write leaves a hole that the watermark does
//! not pass until the same bytes are written again.

use crate::api::{DeviceError, DiskIndex};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use store::VolumeId;
use units::Bytes;

type Key = (VolumeId, u64);

#[derive(Clone, Debug, Default)]
pub(crate) struct Writes {
    extents: BTreeMap<Key, Tracker>,
    /// Extents that are being copied: whether something was written to them since.
    watched: BTreeMap<Key, bool>,
}

#[derive(Clone, Debug)]
struct Tracker {
    written: Bytes,
    /// End of the furthest write that was issued.
    claimed: Bytes,
    under_way: u32,
    /// Ranges that are being filled with zeros, or were while this is tracked.
    zeros: Vec<Range<Bytes>>,
    /// Done, but behind a hole; sorted, apart.
    done: Vec<Range<Bytes>>,
    failed: Vec<(Range<Bytes>, DiskIndex, DeviceError)>,
}

impl Writes {
    /// From now on it is remembered whether the extent is written to.
    pub(crate) fn watch(&mut self, volume: VolumeId, extent: u64) {
        self.watched.insert((volume, extent), false);
    }

    /// Whether a watched extent was written to since.
    pub(crate) fn was_written(&self, volume: VolumeId, extent: u64) -> bool {
        self.watched.get(&(volume, extent)).copied().unwrap_or(true)
    }

    pub(crate) fn watch_no_more(&mut self, volume: VolumeId, extent: u64) {
        self.watched.remove(&(volume, extent));
    }

    /// No write of the extent is under way, and none has failed and was not repeated.
    pub(crate) fn is_quiet(&self, volume: VolumeId, extent: u64) -> bool {
        !self.extents.contains_key(&(volume, extent))
    }

    /// A write of `range` (offsets in the extent) is about to be issued.
    /// Returns what has to be filled with zeros before the watermark can reach
    /// it; that range is claimed as well and must be completed like a write.
    pub(crate) fn claim(
        &mut self,
        volume: VolumeId,
        extent: u64,
        range: Range<Bytes>,
        written: Bytes,
    ) -> Option<Range<Bytes>> {
        if let Some(written) = self.watched.get_mut(&(volume, extent)) {
            *written = true;
        }
        let tracker = self.extents.entry((volume, extent)).or_insert(Tracker {
            written,
            claimed: written,
            under_way: 0,
            zeros: Vec::new(),
            done: Vec::new(),
            failed: Vec::new(),
        });
        let gap = tracker.claimed..range.start;
        tracker.under_way += 1 + u32::from(!gap.is_empty());
        tracker.claimed = tracker.claimed.max(range.end);
        (!gap.is_empty()).then_some(gap)
    }

    /// Whether zeros for some of these bytes may be under way. A write of them
    /// must not start before the zeros are on the disk, which would then replace it.
    pub(crate) fn behind_zeros(&self, volume: VolumeId, extent: u64, range: &Range<Bytes>) -> bool {
        self.extents.get(&(volume, extent)).is_some_and(|tracker| {
            tracker.zeros.iter().any(|zeros| zeros.start < range.end && range.start < zeros.end)
        })
    }

    /// A claimed range is filled with zeros, and will be completed in so many parts.
    pub(crate) fn fill(&mut self, volume: VolumeId, extent: u64, range: Range<Bytes>, parts: u64) {
        let tracker = self.extents.get_mut(&(volume, extent)).expect("a write that was claimed");
        tracker.zeros.push(range);
        tracker.under_way += u32::try_from(parts - 1).expect("an extent has few parts");
    }

    /// A claimed range, or a part of one, is on the disk. Returns the watermark.
    pub(crate) fn complete(&mut self, volume: VolumeId, extent: u64, range: Range<Bytes>) -> Bytes {
        let tracker = self.extents.get_mut(&(volume, extent)).expect("a write that was claimed");
        tracker.under_way -= 1;
        tracker.failed.retain(|(hole, ..)| !(range.start <= hole.start && hole.end <= range.end));
        tracker.done.push(range);
        tracker.done.sort_unstable_by_key(|range| range.start);
        let mut written = tracker.written;
        tracker.done.retain(|range| {
            let reaches = range.start <= written;
            if reaches {
                written = written.max(range.end);
            }
            !reaches
        });
        tracker.written = written;
        self.forget_if_idle(volume, extent);
        written
    }

    /// A claimed range failed: its bytes are unknown.
    pub(crate) fn fail(
        &mut self,
        volume: VolumeId,
        extent: u64,
        range: Range<Bytes>,
        disk: DiskIndex,
        error: DeviceError,
    ) {
        let tracker = self.extents.get_mut(&(volume, extent)).expect("a write that was claimed");
        tracker.under_way -= 1;
        tracker.failed.push((range, disk, error));
    }

    /// The first write that failed and was not repeated since.
    pub(crate) fn failure(&self) -> Option<(DiskIndex, DeviceError)> {
        self.extents
            .values()
            .find_map(|tracker| tracker.failed.first().map(|&(_, disk, error)| (disk, error)))
    }

    /// The volume is gone, and with it its failures.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.extents.retain(|key, _| key.0 != volume);
    }

    fn forget_if_idle(&mut self, volume: VolumeId, extent: u64) {
        let tracker = &self.extents[&(volume, extent)];
        if tracker.under_way == 0 && tracker.failed.is_empty() {
            debug_assert!(tracker.done.is_empty(), "a hole that nobody fills");
            self.extents.remove(&(volume, extent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: VolumeId = VolumeId(1);
    fn kib(from: u64, to: u64) -> Range<Bytes> {
        Bytes::kib(from)..Bytes::kib(to)
    }

    #[test]
    fn the_watermark_rises_only_over_bytes_that_are_all_there() {
        let mut writes = Writes::default();
        for at in [0, 64, 128] {
            assert_eq!(writes.claim(VOLUME, 0, kib(at, at + 64), Bytes::ZERO), None);
        }
        assert_eq!(writes.complete(VOLUME, 0, kib(128, 192)), Bytes::ZERO);
        assert_eq!(writes.complete(VOLUME, 0, kib(0, 64)), Bytes::kib(64));
        assert_eq!(writes.complete(VOLUME, 0, kib(64, 128)), Bytes::kib(192));
        assert!(writes.extents.is_empty(), "nothing under way, nothing kept");
    }

    #[test]
    fn a_write_past_the_watermark_asks_for_zeros_once() {
        let mut writes = Writes::default();
        let gap = writes.claim(VOLUME, 0, kib(256, 320), Bytes::kib(64));
        assert_eq!(gap, Some(kib(64, 256)));
        assert_eq!(writes.claim(VOLUME, 0, kib(128, 192), Bytes::kib(64)), None, "claimed already");
        writes.fill(VOLUME, 0, kib(64, 256), 3);
        assert!(writes.behind_zeros(VOLUME, 0, &kib(128, 192)));
        assert!(
            !writes.behind_zeros(VOLUME, 0, &kib(256, 320))
                && !writes.behind_zeros(VOLUME, 1, &kib(0, 1))
        );
        assert_eq!(writes.complete(VOLUME, 0, kib(256, 320)), Bytes::kib(64));
        assert_eq!(writes.complete(VOLUME, 0, kib(128, 192)), Bytes::kib(64));
        for at in [64, 128, 192] {
            writes.complete(VOLUME, 0, kib(at, at + 64));
        }
        assert!(writes.extents.is_empty());
    }

    #[test]
    fn a_write_to_a_watched_extent_is_remembered_and_none_is_quiet_before_it_has_ended() {
        let mut writes = Writes::default();
        writes.watch(VOLUME, 0);
        writes.claim(VOLUME, 1, kib(0, 64), Bytes::ZERO);
        assert!(!writes.was_written(VOLUME, 0) && writes.is_quiet(VOLUME, 0));
        writes.claim(VOLUME, 0, kib(0, 64), Bytes::ZERO);
        assert!(writes.was_written(VOLUME, 0) && !writes.is_quiet(VOLUME, 0));
        writes.complete(VOLUME, 0, kib(0, 64));
        assert!(writes.was_written(VOLUME, 0) && writes.is_quiet(VOLUME, 0));
        writes.watch_no_more(VOLUME, 0);
        assert!(writes.was_written(VOLUME, 0), "what is not watched may have been written to");
    }

    #[test]
    fn a_failed_write_is_a_hole_until_it_is_written_again() {
        let mut writes = Writes::default();
        writes.claim(VOLUME, 0, kib(0, 64), Bytes::ZERO);
        writes.claim(VOLUME, 0, kib(64, 128), Bytes::ZERO);
        writes.fail(VOLUME, 0, kib(0, 64), DiskIndex(2), DeviceError(5));
        assert_eq!(writes.complete(VOLUME, 0, kib(64, 128)), Bytes::ZERO);
        assert_eq!(writes.failure(), Some((DiskIndex(2), DeviceError(5))));
        assert_eq!(writes.claim(VOLUME, 0, kib(0, 64), Bytes::ZERO), None);
        assert_eq!(writes.complete(VOLUME, 0, kib(0, 64)), Bytes::kib(128));
        assert_eq!(writes.failure(), None);
    }
}
