//! How a volume is served: kept here, so that a contract that was given to a volume holds
//! when the pool is served again.
//!
//! The store keeps it and admits nothing. Invariant: of a volume that is served as by default
//! nothing is written, so that an old pool whose metadata is full stays as small as it was.

use crate::api::{Service, VolumeId};
use crate::change::{Change, service_size};
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Says how a volume is served from now on; none is as by default. The next commit makes
    /// it durable.
    ///
    /// # Errors
    /// As [`Store::check_service`]; then nothing has changed.
    pub fn set_service(&mut self, id: VolumeId, to: Option<Service>) -> Result<(), StoreError> {
        self.check_service(id, to)?;
        if self.volume(id).is_some_and(|volume| volume.service() != to) {
            self.stage(Change::Service { volume: id, service: to });
        }
        Ok(())
    }

    /// Whether [`Store::set_service`] could be done now.
    ///
    /// # Errors
    /// Where there is no such volume, no room in the metadata, or the pool is read-only.
    pub fn check_service(&self, id: VolumeId, to: Option<Service>) -> Result<(), StoreError> {
        self.check_writable()?;
        let volume = self.volume(id).ok_or(StoreError::NoSuchVolume { volume: id })?;
        let more = service_size(to).saturating_sub(service_size(volume.service()));
        if more > 0 { self.check_metadata(more) } else { Ok(()) }
    }
}
