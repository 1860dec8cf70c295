//! Thin volumes: what is to be written has a place first.

use crate::api::Error;
use crate::core::Core;
use crate::limits;
use crate::node::Node;
use crate::volumes::writes::extents;
use core::ops::Range;
use store::VolumeId;
use units::{Bytes, Instant};

impl Node {
    /// Streams are closed that cannot be written to, since the zeros before them could not, or have no
    /// place.
    pub(crate) fn close_unopened(&mut self, now: Instant) {
        while let Some(stream) = self.best_effort.unopened() {
            self.begin_close(now, stream);
        }
    }
}

impl Core {
    /// Gives each extent of a range of a volume a place, where it has none yet.
    ///
    /// # Errors
    /// Where there is no space: some of them may have places then.
    pub(crate) fn place_all(
        &mut self,
        now: Instant,
        volume: VolumeId,
        range: &Range<Bytes>,
    ) -> Result<(), Error> {
        if !self.store.volume(volume).is_some_and(store::Volume::is_thin) {
            return Ok(());
        }
        for (extent, _) in extents(range) {
            if self.store.is_placed(volume, extent) {
                continue;
            }
            self.store.place(volume, extent)?;
            self.changed(now);
            if self.store.staged_size() > limits::STAGED_SOON {
                self.commit_soon(now);
            }
        }
        Ok(())
    }
}
