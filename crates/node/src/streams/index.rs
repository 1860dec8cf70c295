//! The open streams, by name and by volume: what a stream has to know of the others on its
//! volume is found without looking at all streams.
//!
//! Invariants: each open stream is listed under its volume, and a writer as the volume's
//! writer besides; a volume has at most one writer.

use crate::api::StreamId;
use crate::streams::stream::Stream;
use alloc::collections::BTreeSet;
use store::{Numbered, VolumeId};

/// Streams that are open on one volume.
#[derive(Clone, Debug, Default)]
struct OnVolume {
    all: BTreeSet<StreamId>,
    writer: Option<StreamId>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    all: Numbered<StreamId, Stream>,
    volumes: Numbered<VolumeId, OnVolume>,
    writers: BTreeSet<StreamId>,
}

impl Streams {
    pub(crate) fn insert(&mut self, stream: Stream) {
        let (id, volume) = (stream.id, stream.volume);
        let on = self.volumes.or_default(volume);
        on.all.insert(id);
        if stream.mode.writes() {
            assert!(on.writer.replace(id).is_none(), "a volume has at most one writer");
            self.writers.insert(id);
        }
        self.all.insert(id, stream);
    }

    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        let stream = self.all.remove(&id)?;
        let on = self.volumes.get_mut(&stream.volume).expect("a stream is listed");
        on.all.remove(&id);
        on.writer = on.writer.filter(|&writer| writer != id);
        if on.all.is_empty() {
            self.volumes.remove(&stream.volume);
        }
        self.writers.remove(&id);
        Some(stream)
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.all.get_mut(&id)
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them. For what is rare, or works in steps: there may be thousands.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.all.values()
    }

    /// Those that come after `id`, in the order in which they were opened.
    pub(crate) fn all_after(&self, id: StreamId) -> impl Iterator<Item = &Stream> {
        use core::ops::Bound::{Excluded, Unbounded};
        self.all.range((Excluded(id), Unbounded)).map(|(_, stream)| stream)
    }

    /// The writers that come after `id`, in the order in which they were opened.
    pub(crate) fn writers_after(&self, id: StreamId) -> impl Iterator<Item = StreamId> {
        use core::ops::Bound::{Excluded, Unbounded};
        self.writers.range((Excluded(id), Unbounded)).copied()
    }

    /// Those on a volume, in the order in which they were opened.
    pub(crate) fn on(&self, volume: VolumeId) -> impl Iterator<Item = StreamId> {
        self.volumes.get(&volume).into_iter().flat_map(|on| on.all.iter().copied())
    }

    /// How many are open on a volume.
    pub(crate) fn count_on(&self, volume: VolumeId) -> usize {
        self.volumes.get(&volume).map_or(0, |on| on.all.len())
    }

    /// The writer of a volume, if one is open.
    pub(crate) fn writer_of(&self, volume: VolumeId) -> Option<StreamId> {
        self.volumes.get(&volume)?.writer
    }

    /// Whether a writer is open on the volume of this stream, which is told where that is.
    pub(crate) fn has_writer(&mut self, id: StreamId) -> bool {
        let volume = self.all.get(&id).map(|stream| stream.volume);
        let writer = volume.and_then(|volume| self.writer_of(volume));
        let filling = writer.map(|writer| self.all[&writer].filling());
        if let Some(stream) = self.all.get_mut(&id) {
            stream.writer_at = filling;
        }
        writer.is_some()
    }
}
