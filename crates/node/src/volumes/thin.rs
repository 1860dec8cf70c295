//! Thin volumes: what is to be written has a place first.

use crate::api::Error;
use crate::best_effort::find_to_write;
use crate::core::Core;
use crate::limits;
use crate::node::Node;
use core::ops::Range;
use store::{EXTENT, VolumeId};
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

impl Node {
    /// [`Op::Place`](crate::Op::Place).
    pub(crate) fn take_places(
        &mut self,
        now: Instant,
        volume: &str,
        range: Range<Bytes>,
    ) -> Result<(), Error> {
        let volume = find_to_write(&self.core, volume, &range)?;
        self.core.read_only().map_or(Ok(()), Err)?;
        self.core.place_all(now, volume, &range)
    }
}

impl Core {
    /// Gives each extent of a range of a volume a place, where it has none yet; or none of them.
    ///
    /// # Errors
    /// Where there is no space for all of them.
    pub(crate) fn place_all(
        &mut self,
        now: Instant,
        volume: VolumeId,
        range: &Range<Bytes>,
    ) -> Result<(), Error> {
        if !self.store.volume(volume).is_some_and(store::Volume::is_thin) {
            return Ok(());
        }
        let all = range.start / EXTENT..range.end.div_ceil(EXTENT);
        if self.store.place_all(volume, all)? {
            self.changed(now);
            if self.store.staged_size() > limits::STAGED_SOON {
                self.commit_soon(now);
            }
        }
        Ok(())
    }
}
