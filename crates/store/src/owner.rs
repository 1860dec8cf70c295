//! Whose a volume is: its user, its group and nine permission bits, as a file's.
//!
//! The store keeps them and looks at none: who asks is the caller's to know.
//! Invariant: a volume of which nothing is said is root's and closed to others, which
//! is what volumes of versions 1 and 2 are; nothing is written of such a volume, so
//! that an old pool whose metadata is full stays as small as it was.

use crate::api::{Ownership, VolumeId};
use crate::change::{Change, name_size, ownership_size};
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Says whose a volume is from now on. The next commit makes it durable.
    ///
    /// # Errors
    /// Where there is no such volume, no room in the metadata, or the pool is read-only.
    ///
    /// # Panics
    /// Where it is no mode ([`Ownership::is_mode`]).
    pub fn set_ownership(&mut self, id: VolumeId, to: Ownership) -> Result<(), StoreError> {
        assert!(Ownership::is_mode(to.mode), "{:o} is no mode", to.mode);
        self.check_writable()?;
        let volume = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        let before = volume.ownership();
        let name = volume.name().len();
        let size = |whose| ownership_size(whose) + name_size(name, whose) as u64;
        let more = size(to).saturating_sub(size(before));
        if more > 0 {
            self.check_metadata(more)?;
        }
        if to != before {
            self.stage(Change::Owner { volume: id, ownership: to });
        }
        Ok(())
    }
}
