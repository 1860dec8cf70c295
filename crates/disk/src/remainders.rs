//! The rest of a track, kept for the reader who comes back for it.
//!
//! Blocks of a volume are not aligned to tracks, so a block usually ends in the
//! middle of one. A disk without a cache then waits a turn (half on average)
//! before the next block can begin. Rounding each read up to the end of its track
//! and keeping what was not asked for saves that wait (Clockwise thesis, section
//! 7.2.2). This says what to read and what is already there; it moves no bytes.
//!
//! Invariants: no more remainders than `most`; each lies within one track; the
//! last used comes first.

use crate::Error;
use crate::Model;
use crate::error::ensure;
use crate::geometry::Geometry;
use alloc::vec::Vec;
use core::ops::Range;
use units::{Access, Bytes, Direction, Lba, SECTOR};

/// Which addresses share a track.
#[derive(Clone, Debug)]
pub struct Tracks(Geometry);

impl Tracks {
    /// The tracks of a hard disk.
    ///
    /// # Errors
    /// When the model has none.
    pub fn of(model: &Model) -> Result<Self, Error> {
        let disk = model.hard_disk();
        ensure!(disk.is_some(), "{} has no tracks; name a hard disk", model.name());
        Ok(Self(Geometry::new(disk.expect("checked above"))))
    }

    /// The addresses of the track that holds `lba`. Panics outside the disk.
    pub fn track(&self, lba: Lba) -> Range<Lba> {
        assert!(lba.get() < self.0.sectors, "a sector outside the disk");
        let (first, end) = self.0.track(lba.get());
        Lba::new(first)..Lba::new(end)
    }
}

/// What a read needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// So much of its beginning is already there.
    pub cached: Bytes,
    /// The rest and the remainder of its last track; nothing where all is there.
    pub read: Option<Access>,
}

/// Remainders of tracks, replaced by least recent use.
#[derive(Clone, Debug)]
pub struct TrackRemainders {
    tracks: Tracks,
    kept: Vec<Range<u64>>,
    most: usize,
}

impl TrackRemainders {
    /// An empty cache of `most` remainders, at least one.
    pub fn new(tracks: Tracks, most: usize) -> Self {
        assert!(most > 0, "a cache without room");
        Self { tracks, kept: Vec::with_capacity(most), most }
    }

    /// What a sequential read of `len` from `first` needs; the cache then holds
    /// what the disk will have read and nobody asked for.
    pub fn plan(&mut self, first: Lba, len: Bytes) -> ReadPlan {
        let access = Access { lba: first, len, direction: Direction::Read };
        let (first, end) = (first.get(), access.end().get());
        let mut next = first;
        if let Some(index) = self.kept.iter().position(|kept| kept.contains(&first)) {
            let kept = self.kept.remove(index);
            next = end.min(kept.end);
            if next < kept.end {
                self.keep(next..kept.end);
            }
        }
        let cached = SECTOR * (next - first);
        if next == end {
            return ReadPlan { cached, read: None };
        }
        let track_end = self.tracks.track(Lba::new(end - 1)).end.get();
        if end < track_end {
            self.keep(end..track_end);
        }
        let len = SECTOR * (track_end - next);
        let read = Access { lba: Lba::new(next), len, direction: Direction::Read };
        ReadPlan { cached, read: Some(read) }
    }

    /// Forgets what a write makes untrue.
    pub fn forget(&mut self, range: Range<Lba>) {
        let (first, end) = (range.start.get(), range.end.get());
        self.kept.retain(|kept| kept.end <= first || end <= kept.start);
    }

    fn keep(&mut self, range: Range<u64>) {
        self.kept.truncate(self.most - 1);
        self.kept.insert(0, range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_each_sector_once_and_the_disk_reads_whole_tracks() {
        let tracks = Tracks::of(&Model::named("quantum-atlas-ii").unwrap()).unwrap();
        let mut cache = TrackRemainders::new(tracks, 2);
        let (mut at, mut read_to) = (17, 17);
        for _ in 0..500 {
            let plan = cache.plan(Lba::new(at), Bytes::kib(64));
            assert_eq!(plan.cached, SECTOR * (read_to - at).min(128));
            if let Some(access) = plan.read {
                assert_eq!(access.lba.get(), read_to);
                read_to = access.end().get();
                assert_eq!(read_to % 179, 0, "tracks of zone 0 hold 179 sectors");
            }
            at += 128;
            assert!(read_to >= at);
        }
        cache.forget(Lba::new(at)..Lba::new(at + 1));
        assert_eq!(cache.plan(Lba::new(at), SECTOR).cached, Bytes::ZERO);
    }
}
