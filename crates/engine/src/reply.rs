//! Good answers, with handles in place of spans.

use crate::{Chunk, ChunkMut};
use node::{Planner, StreamId};
use units::{Bytes, Instant};

/// A good answer: [`node::Reply`], with [`Chunk`] and [`ChunkMut`] for memory.
#[derive(Debug)]
pub enum Reply {
    /// Done, and nothing to tell.
    Done,
    /// The stream is open.
    Stream {
        /// Its number.
        stream: StreamId,
        /// Memory of its playout window.
        window: Bytes,
    },
    /// Bytes are in memory.
    Data {
        /// The bytes.
        chunk: Chunk,
        /// Where in the volume they start.
        offset: Bytes,
    },
    /// Memory to fill.
    Room {
        /// The memory.
        room: ChunkMut,
    },
    /// The volume's recorded data ends here.
    End,
    /// The device failed on these bytes: a declared gap.
    Gap {
        /// Where in the volume.
        offset: Bytes,
        /// How many.
        len: Bytes,
    },
    /// Everything of this writer up to this volume offset is on the medium.
    Durable {
        /// The offset.
        upto: Bytes,
    },
    /// After a seek.
    Ready {
        /// By then the first bytes are in memory.
        at: Instant,
        /// From then on the contract holds in full.
        steady: Instant,
    },
    /// What planning needs to know of the pool.
    Planner(Box<Planner>),
}
