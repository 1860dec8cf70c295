//! Volumes get other names, and times: what those who see volumes as files need.
//!
//! The store knows no clock; its caller says what time it is. Invariants: a rename that takes the
//! place of another volume is one step, durable both or neither; writes never make a checkpoint
//! larger than its place by the times that they leave: a volume that has none gets them only
//! where there is room.

use crate::api::{Times, VolumeId};
use crate::change::{Change, times_size};
use crate::error::StoreError;
use crate::names::is_volume_name;
use crate::store::Store;
use alloc::string::String;

impl Store {
    /// Gives volumes other names, all with the next commit or none, in the place of one that is
    /// removed.
    ///
    /// # Errors
    /// Where a volume is not there, a name is no name or another volume has it, or there is no
    /// room in the metadata; nothing has changed then.
    ///
    /// # Panics
    /// Where a new name is that of a volume that gets another later in the list.
    pub fn rename(
        &mut self,
        renames: &[(VolumeId, String)],
        removed: Option<VolumeId>,
    ) -> Result<(), StoreError> {
        self.check_writable()?;
        let mut more = 0;
        for (id, name) in renames {
            let volume = self.volume(*id).ok_or(StoreError::NoSuchVolume { volume: *id })?;
            if !is_volume_name(name) {
                return Err(StoreError::BadName { name: name.clone() });
            }
            let has_it = self.find(name).map(|other| other.id());
            let goes = |other| Some(other) == removed || renames.iter().any(|(id, _)| *id == other);
            if has_it.is_some_and(|other| !goes(other)) {
                return Err(StoreError::VolumeExists { name: name.clone() });
            }
            more += name.len().saturating_sub(volume.name().len()) as u64;
        }
        if more > 0 {
            self.check_metadata(more)?;
        }
        if let Some(removed) = removed {
            self.delete(removed)?;
        }
        for (volume, name) in renames.iter().cloned() {
            self.stage(Change::Rename { volume, name });
            self.note_changed(volume);
        }
        Ok(())
    }

    /// Says when a volume was last used.
    ///
    /// # Errors
    /// Where there is no such volume, or no room in the metadata.
    pub fn set_times(&mut self, id: VolumeId, times: Times) -> Result<(), StoreError> {
        self.check_writable()?;
        let volume = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        if volume.times.is_none() {
            self.check_metadata(times_size(Some(times)))?;
        }
        self.staged.touched.remove(&id);
        self.stage(Change::Times { volume: id, times });
        Ok(())
    }

    /// What time it is, in nanoseconds since 1970: of what happens from now on.
    pub fn set_clock(&mut self, now: i64) {
        self.clock = Some(now);
    }

    /// What time it is, as far as the store was told.
    pub fn clock(&self) -> Option<i64> {
        self.clock
    }

    /// A volume's name or owner has changed now.
    pub fn note_changed(&mut self, id: VolumeId) {
        let times = self.volume(id).and_then(|volume| volume.times);
        if let (Some(changed), Some(times)) = (self.clock, times) {
            self.stage(Change::Times { volume: id, times: Times { changed, ..times } });
        }
    }

    /// A volume is written now. Does nothing where it is gone, where nobody has said what time
    /// it is, or where it has had no times so far and there is no room for them.
    pub(crate) fn touch(&mut self, id: VolumeId) {
        let (Some(volume), Some(at)) = (self.volume(id), self.clock) else { return };
        let has = volume.times.is_some();
        if !has && self.check_metadata(times_size(Some(Times::default()))).is_err() {
            return;
        }
        let volume = self.state.volumes.get_mut(&id).expect("just found");
        let times = volume.times.get_or_insert_default();
        (times.modified, times.changed) = (at, at);
        self.staged.touched.insert(id);
        if !has {
            self.count_scattered();
        }
    }
}
