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
    /// The stream is open.
    Shared(SharedWindow),
    /// The next piece.
    Told(Told),
}

/// A stream that is open, and whose window is in memory that its program can map.
#[derive(Debug)]
pub struct SharedWindow {
    /// Its number.
    pub stream: StreamId,
    /// Memory of its playout window: the first so many bytes, until its contract is changed.
    pub window: Bytes,
    /// The memory. It is the stream's until the close is answered.
    pub memory: Arc<Memory>,
}

/// The next piece of a shared window. The offset of room in the volume is not said: it follows the last.
#[derive(Debug)]
pub struct Told {
    /// What the program may have.
    pub piece: Piece,
    /// How many seeks had been asked for before: what was told before a seek that succeeds is void.
    pub seeks: u64,
    /// What is owed of it, where it is under contract.
    pub promise: Option<Promise>,
}

impl WindowReply {
    /// The answer to who opens a shared window.
    ///
    /// # Panics
    /// On any other.
    pub fn shared(self) -> SharedWindow {
        let Self::Shared(shared) = self else { unreachable!("the answer to who opens a window") };
        shared
    }

    /// The answer to who asks for a piece.
    ///
    /// # Panics
    /// On any other.
    pub fn told(self) -> Told {
        let Self::Told(told) = self else { unreachable!("the answer to who asks for a piece") };
        told
    }
}
