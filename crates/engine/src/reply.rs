//! Good answers, with memory that is lent.

use crate::{Chunk, ChunkMut};
use node::{Promise, StreamId};
use std::sync::Arc;
use units::Bytes;
use window::{Memory, Piece};

/// A good answer, with [`Chunk`] and [`ChunkMut`] for memory.
pub type Reply = node::Reply<Chunk, ChunkMut, WindowReply>;

/// What this operation is answered with.
pub type Answer<O> = <O as node::Operation>::Answer<Chunk, ChunkMut, WindowReply>;

/// What is answered of a window that is shared with its program.
#[derive(Debug)]
pub enum WindowReply {
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
    /// The next piece. The offset of room in the volume is not said: it follows the last.
    Piece {
        /// What the program may have.
        piece: Piece,
        /// How many seeks had been asked for before: what was told before a seek that
        /// succeeds is void.
        seeks: u64,
        /// What is owed of it, where it is under contract.
        promise: Option<Promise>,
    },
}
