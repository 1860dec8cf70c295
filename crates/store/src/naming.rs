//! Volumes get other names, and times: what those who see volumes as files need.
//!
//! The store knows no clock; its caller says what time it is. Invariants: a rename that takes the
//! place of another volume is one step, durable both or neither; a list of renames is held
//! against the names that it leaves before the first of it is made; writes never make a checkpoint
//! larger than its place by the times that they leave: a volume that has none gets them only
//! where there is room.

use crate::api::{Ownership, Times, VolumeId};
use crate::change::{Change, growth_size, name_size, times_size};
use crate::error::StoreError;
use crate::names::is_volume_name;
use crate::store::Store;
use crate::volume::Volume;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

impl Store {
    /// Gives volumes other names, one after the other, all with the next commit or none, in the
    /// place of one that is removed before.
    ///
    /// # Errors
    /// Where a volume is not there, a name is no name, another volume has it at that moment, or
    /// something would come to lie under a volume that is no directory; and where there is no
    /// room in the metadata. Nothing has changed then.
    pub fn rename(
        &mut self,
        renames: &[(VolumeId, String)],
        removed: Option<VolumeId>,
    ) -> Result<(), StoreError> {
        self.check_writable()?;
        let [counted, bare] = self.check_renames(renames, removed)?;
        self.check_names(counted, bare)?;
        if let Some(removed) = removed {
            self.delete(removed)?;
        }
        for (volume, name) in renames.iter().cloned() {
            self.stage(Change::Rename { volume, name });
            self.note_changed(volume);
        }
        Ok(())
    }

    /// Goes through the renames as they will be made. Gives the bytes that the metadata grow by: as names
    /// count, and as they are.
    fn check_renames(
        &self,
        renames: &[(VolumeId, String)],
        removed: Option<VolumeId>,
    ) -> Result<[i64; 2], StoreError> {
        let mut names = Names { store: self, held: BTreeMap::new() };
        let mut called: BTreeMap<VolumeId, &str> = BTreeMap::new();
        let (mut counted, mut bare) = (0, 0);
        if let Some(id) = removed {
            let volume = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
            names.held.insert(volume.name(), None);
            let watermarks = growth_size(0, volume.extents() as u32);
            counted -= (volume.described_max() + watermarks).cast_signed();
            bare -= (volume.described_bare() + watermarks).cast_signed();
        }
        for (id, name) in renames {
            let volume = self.volume(*id).filter(|_| removed != Some(*id));
            let volume = volume.ok_or(StoreError::NoSuchVolume { volume: *id })?;
            if !is_volume_name(name) {
                return Err(StoreError::BadName { name: name.clone() });
            }
            if names.holder(name).is_some() {
                return Err(StoreError::VolumeExists { name: name.clone() });
            }
            let before = called.insert(*id, name).unwrap_or(volume.name());
            names.held.insert(before, None);
            names.held.insert(name, Some(*id));
            let count = |name: &str| name_size(name.len(), volume.ownership()) as i64;
            counted += count(name) - count(before);
            bare += name.len() as i64 - before.len() as i64;
        }
        names.check_places()?;
        Ok([counted, bare])
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
        if self.clock.replace(now).is_none() {
            self.moved.begin(u64::try_from(now).unwrap_or(0));
        }
    }

    /// What time it is, as far as the store was told.
    pub fn clock(&self) -> Option<i64> {
        self.clock
    }

    /// A volume's name or owner has changed now.
    pub fn note_changed(&mut self, id: VolumeId) {
        let times = self.state.volumes.get_mut(&id).and_then(|volume| volume.times.as_mut());
        if let (Some(at), Some(times)) = (self.clock, times) {
            times.changed = at;
            self.staged.touched.insert(id);
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
        let write = |volume: &mut Volume| {
            let times = volume.times.get_or_insert_default();
            (times.modified, times.changed) = (at, at);
        };
        match (has, self.state.volumes.get_mut(&id)) {
            (true, Some(volume)) => write(volume),
            _ => self.change(Some(id), |state| {
                state.volumes.get_mut(&id).map(write).ok_or("it is not there")
            }),
        }
        self.staged.touched.insert(id);
    }
}

/// Who has which name after some renames.
struct Names<'a> {
    store: &'a Store,
    /// Names that were given, and those that were given up.
    held: BTreeMap<&'a str, Option<VolumeId>>,
}

impl Names<'_> {
    fn holder(&self, name: &str) -> Option<VolumeId> {
        let before = || self.store.find(name).map(Volume::id);
        self.held.get(name).copied().unwrap_or_else(before)
    }

    fn is_file(&self, id: VolumeId) -> bool {
        let is_file = |volume: &Volume| volume.ownership().kind() != Ownership::DIRECTORY;
        self.store.volume(id).is_some_and(is_file)
    }

    /// Nothing that got a name lies under a file, or is a file with something under it.
    fn check_places(&self) -> Result<(), StoreError> {
        let refused = |name: &str| Err(StoreError::VolumeExists { name: name.into() });
        let mut looked_at = BTreeSet::new();
        for (name, id) in self.held.iter().filter_map(|(name, id)| Some((*name, (*id)?))) {
            let mut place = name;
            while let Some((above, _)) = place.rsplit_once('/') {
                if !looked_at.insert(above) {
                    break;
                }
                if self.holder(above).is_some_and(|id| self.is_file(id)) {
                    return refused(above);
                }
                place = above;
            }
            // What got a name under it was just looked at from there.
            let under = format!("{name}/");
            let mut below = self.store.named(&under, &under);
            if self.is_file(id) && below.any(|(name, _)| !self.held.contains_key(name)) {
                return refused(name);
            }
        }
        Ok(())
    }
}
