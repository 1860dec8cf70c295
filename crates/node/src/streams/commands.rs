//! A block of a stream as commands for its disk: one for each run of neighbouring extents
//! that it lies in.

use crate::api::*;
use crate::core::{Core, Parts};
use crate::streams::stream::Stream;
use crate::volumes::writes::extents;
use crate::work::{BlockPart, Owner};
use alloc::vec::Vec;
use core::ops::Range;
use store::EXTENT;
use units::Bytes;

/// Neighbours on a disk.
struct Run {
    /// Where on the disk.
    offset: Bytes,
    /// Bytes of the volume.
    range: Range<Bytes>,
}

impl Stream {
    /// What there is of a block: the last one of a volume may be cut short.
    pub(crate) fn range_of(&self, core: &Core, block: u64) -> Range<Bytes> {
        let end = core.store.volume(self.volume).expect("open volumes stay").end();
        let start = self.contract.block * block;
        start..(start + self.contract.block).min(end)
    }

    /// The disk that a block lies on, or lay on before a ring gave it up.
    pub(crate) fn disk_of(&self, core: &Core, block: u64) -> DiskIndex {
        let extent = self.contract.block * block / EXTENT;
        core.store.disk_of(self.volume, extent).expect("a block of the volume")
    }

    /// The runs that a range within one block lies in. All of them are on one disk.
    fn runs(&self, core: &Core, range: &Range<Bytes>) -> (DiskIndex, Vec<Run>) {
        let mut runs: Vec<Run> = Vec::new();
        let mut on = DiskIndex(0);
        for (extent, within) in extents(range) {
            let at = core.store.locate(self.volume, extent).expect("a block of the volume");
            // What has no place was never written, so that no byte of it is asked of the disk.
            let offset = at.offset.unwrap_or_default() + within.start;
            let range = EXTENT * extent + within.start..EXTENT * extent + within.end;
            assert!(runs.is_empty() || on == at.disk, "a block lies on one disk");
            on = at.disk;
            match runs.last_mut() {
                Some(run) if run.offset + (run.range.end - run.range.start) == offset => {
                    run.range.end = range.end;
                }
                _ => runs.push(Run { offset, range }),
            }
        }
        (on, runs)
    }

    /// What reads a block of the window into its place, `from` so far within it on.
    pub(crate) fn reading_from(&self, core: &Core, block: u64, from: Bytes) -> (DiskIndex, Parts) {
        let Range { start, end } = self.range_of(core, block);
        let (disk, runs) = self.runs(core, &(start + from..end));
        let (place, is_all) = (self.place(start), runs.len() == 1);
        let part = |Run { offset, range }: Run| {
            let written = self.written_in(core, &range);
            let span = Span { offset: place + (range.start - start), len: range.end - range.start };
            let part = BlockPart { range, is_all, claim: None };
            let owner = Owner::Block { stream: self.id, block, place, part };
            (DiskAction::Read { offset, span, written }, owner)
        };
        (disk, runs.into_iter().map(part).collect())
    }

    /// What reads the first run of a range within one block into its place, and where the run
    /// ends.
    pub(crate) fn reading_early(
        &self,
        core: &Core,
        range: Range<Bytes>,
    ) -> (DiskIndex, DiskAction, Bytes) {
        let (disk, mut runs) = self.runs(core, &range);
        let Run { offset, range } = runs.swap_remove(0);
        let written = self.written_in(core, &range);
        let span = Span { offset: self.place(range.start), len: range.end - range.start };
        (disk, DiskAction::Read { offset, span, written }, range.end)
    }

    /// What loads a block for a program that may change it: with zeros for what lies behind the
    /// volume's end, since the volume may grow within the block while it is in the window.
    /// What lies behind the end of what is recorded is zeros, too, as for everybody.
    pub(crate) fn loading(&self, core: &Core, block: u64) -> (DiskIndex, Parts) {
        let (disk, mut parts) = self.reading_from(core, block, Bytes::ZERO);
        for (action, owner) in &mut parts {
            if let (DiskAction::Read { written, .. }, Owner::Block { part, .. }) = (action, owner) {
                *written = self.shown_in(core, &part.range);
            }
        }
        let (start, end) = (self.contract.block * block, self.contract.block * (block + 1));
        let upto = self.range_of(core, block).end;
        if upto < end {
            for (_, owner) in &mut parts {
                if let Owner::Block { part, .. } = owner {
                    part.is_all = false;
                }
            }
            let place = self.place(start);
            let len = end - upto;
            let span = Span { offset: place + (upto - start), len };
            let written = Written::new(Blocks::NONE, len);
            let action = DiskAction::Read { offset: Bytes::ZERO, span, written };
            let part = BlockPart { range: upto..end, is_all: false, claim: None };
            parts.push((action, Owner::Block { stream: self.id, block, place, part }));
        }
        (disk, parts)
    }

    /// What of a range of the volume was written. (A reader is told of no byte behind the end.)
    fn written_in(&self, core: &Core, range: &Range<Bytes>) -> Written {
        Self::of_each(range, |extent| {
            core.store.locate(self.volume, extent).expect("located above").written
        })
    }

    /// The same before the end of what is recorded.
    fn shown_in(&self, core: &Core, range: &Range<Bytes>) -> Written {
        let volume = core.store.volume(self.volume).expect("open volumes stay");
        Self::of_each(range, |extent| {
            let at = core.store.locate(self.volume, extent).expect("located above");
            at.written.intersection(&volume.before_end(extent))
        })
    }

    fn of_each(range: &Range<Bytes>, blocks_of: impl Fn(u64) -> Blocks) -> Written {
        let of = |(extent, within): (u64, Range<Bytes>)| {
            (blocks_of(extent).within(&within), within.end - within.start)
        };
        let mut all = extents(range).map(of);
        let (first, len) = all.next().expect("a read of something");
        let mut written = Written::new(first, len);
        all.for_each(|(blocks, _)| written.push(blocks));
        written
    }

    /// What writes the first `len` bytes of a block, of which `valid` are filled.
    pub(crate) fn writing(
        &self,
        core: &mut Core,
        block: u64,
        valid: Bytes,
        len: Bytes,
    ) -> (DiskIndex, Parts) {
        let start = self.contract.block * block;
        let range = start..start + len;
        let is_placed = |(extent, _)| core.store.is_placed(self.volume, extent);
        assert!(extents(&range).all(is_placed), "space is taken before there is room");
        let (disk, runs) = self.runs(core, &range);
        let (place, is_all) = (self.place(start), runs.len() == 1);
        let part = |Run { offset, range }: Run| {
            let claim = Some(core.writes.claim_run(self.volume, &range));
            let (from, len) = (range.start - start, range.end - range.start);
            let span = Span { offset: place + from, len };
            let valid = valid.saturating_sub(from).min(len);
            let part = BlockPart { range, is_all, claim };
            let owner = Owner::Block { stream: self.id, block, place, part };
            (DiskAction::Write { offset, span, valid }, owner)
        };
        (disk, runs.into_iter().map(part).collect())
    }

    /// What became of a block that is loaded or written in several parts, when its last part
    /// has ended: a part that failed makes it fail.
    pub(crate) fn of_all_parts(
        &mut self,
        block: u64,
        (part, is_last): (&BlockPart, bool),
        result: Result<(), (DiskIndex, DeviceError)>,
    ) -> Option<Result<(), (DiskIndex, DeviceError)>> {
        if let (Err((disk, error)), false) = (result, part.is_all) {
            self.part_failed.push((block, disk, error));
        }
        if !is_last {
            return None;
        }
        let of_it = self.part_failed.iter().find(|(failed, ..)| *failed == block);
        let result = of_it.map_or(result, |&(_, disk, error)| Err((disk, error)));
        self.part_failed.retain(|(failed, ..)| *failed != block);
        Some(result)
    }
}
