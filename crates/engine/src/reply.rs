//! Good answers, with handles in place of spans.

use crate::{Chunk, ChunkMut};
use node::{Planner, Promise, StreamId};
use std::sync::Arc;
use units::{Bytes, Instant};
use window::{Memory, Piece};

/// A good answer: [`node::Reply`], with [`Chunk`] and [`ChunkMut`] for memory.
#[derive(Debug)]
pub enum Reply {
    /// Done, and nothing to tell.
    Done,
    /// The same of a write under contract, with what is owed of that.
    Promised(Promise),
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
    /// The stream is open, and its window is in memory that its program can map.
    Shared {
        /// Its number.
        stream: StreamId,
        /// Memory of its playout window: the first so many bytes, until its contract
        /// is changed.
        window: Bytes,
        /// The memory. It is the stream's until the close is answered.
        memory: Arc<Memory>,
    },
    /// The next piece of a shared window. The offset of room in the volume is not said:
    /// it follows the last.
    Piece {
        /// What the program may have.
        piece: Piece,
        /// How many seeks had been asked for before: what was told before a seek that
        /// succeeds is void.
        seeks: u64,
        /// What is owed of it, where it is under contract.
        promise: Option<Promise>,
    },
    /// After a seek.
    Ready {
        /// By then the first bytes are in memory.
        at: Instant,
        /// From then on the program finds all that its contract says.
        steady: Instant,
        /// The number of this seek, from 1.
        seeks: u64,
    },
    /// A handle has a contract of its own.
    Handle {
        /// Its number.
        handle: node::HandleId,
    },
    /// What a stream should move at a time.
    Block {
        /// A power of two.
        block: Bytes,
    },
    /// What planning needs to know of the pool.
    Planner(Box<Planner>),
}
