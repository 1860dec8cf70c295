//! What arrives is noted, and records say when it was recorded.

use crate::api::VolumeId;
use crate::change::Change;
use crate::error::StoreError;
use crate::format;
use crate::recorded::{Point, blocks};
use crate::recording::{CORNERS, MORE_CORNERS, Noted, OTHERS};
use crate::sizes::BLOCK;
use crate::store::Store;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use units::Bytes;

impl Store {
    /// These bytes of a volume have arrived, to be written. Where that is not behind all that was
    /// recorded of it before, it is nothing new; and neither it is where nobody has said what time
    /// it is. With the commit that covers them it is known when they were recorded.
    pub fn note_arrived(&mut self, id: VolumeId, from: Bytes, to: Bytes) {
        let (Some(volume), Some(clock)) = (self.volume(id), self.clock) else { return };
        let recorded = volume.recorded.points.last().map_or(0, |point| point.block);
        let (least, end) = (blocks(volume.length()).max(recorded), blocks(volume.limit()));
        let at = Point::new(Bytes::ZERO, clock).at;
        let place = blocks(from).max(least)..blocks(to).min(end);
        let noted = self.recording.0.entry(id).or_default();
        noted.clocked.first.get_or_insert(recorded);
        noted.arrived(place, at);
    }

    /// The recorded bytes of `id` are a copy of those of `of` from `start` on: they were recorded when
    /// those were. It is known as far as [`Recorded::known`](crate::Recorded::known) says when the
    /// next commit is durable; where that is not all, ask again after it. Nothing changes where
    /// nobody has said what time it is.
    ///
    /// # Errors
    /// Where one of them is not there, `id` is a ring, or nothing may be written.
    pub fn copy_times(
        &mut self,
        id: VolumeId,
        of: VolumeId,
        start: Bytes,
    ) -> Result<(), StoreError> {
        self.check_writable()?;
        let copy = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        let source = self.volume(of).ok_or(StoreError::NoSuchVolume { volume: of })?;
        if copy.is_ring() {
            return Err(StoreError::RingCopied);
        }
        let noted = self.recording.0.get(&id);
        if self.clock.is_none() || id == of {
            return Ok(());
        }
        if noted.is_some_and(Noted::waits) {
            self.touch(id); // for the next commit
            return Ok(());
        }
        let first = start / BLOCK;
        let end = first.saturating_add(blocks(copy.length()));
        let done = copy.recorded.points.last().map_or(0, |point| point.block);
        if first.saturating_add(done) >= blocks(source.recorded.known()).min(end) {
            return Ok(()); // all of it is there
        }
        let mut noted = noted.cloned().unwrap_or_default();
        noted.copied(source.recorded.moved(first, end), done, source.recorded.doublings);
        self.recording.0.insert(id, noted);
        self.touch(id);
        Ok(())
    }

    /// What a record is to say of when volumes were recorded, that of what it makes durable: the
    /// volumes whose lengths rose, and some others of which something was left. It is applied.
    pub(crate) fn times_of_recordings(&mut self, lengths: &BTreeSet<VolumeId>) -> Vec<Change> {
        let mut recording = core::mem::take(&mut self.recording);
        let (mut changes, mut more, mut may_drop, mut others) =
            (Vec::new(), MORE_CORNERS, true, OTHERS);
        for (&id, noted) in &mut recording.0 {
            let Some(volume) = self.volume(id) else { continue };
            if !noted.waits() && !noted.is_exact_again(volume) {
                continue;
            }
            let rose = lengths.contains(&id);
            if !rose && others == 0 {
                continue;
            }
            let room = self.room_for(format::recorded::LEN as u64) / format::point::LEN as u64;
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            let said = noted.on_with(volume, CORNERS + more, room, may_drop);
            let Some(said) = said else { continue };
            others -= usize::from(!rose);
            more -= said.points.len().saturating_sub(CORNERS);
            // A record has room for one of the two.
            may_drop &= said.dropped.is_empty() && more == MORE_CORNERS;
            more = if said.dropped.is_empty() { more } else { 0 };
            let change = Change::Recorded { volume: id, more: said };
            self.change(Some(id), |state| state.apply(&change));
            changes.push(change);
        }
        self.recording = recording;
        changes
    }
}
