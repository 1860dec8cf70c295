//! Good answers: one type from the node to the programs.

use super::promise::Promise;
use super::words::{HandleId, Span, StreamId};
use crate::plan::Planner;
use alloc::boxed::Box;
use core::convert::Infallible;
use store::VolumeId;
use units::{Bytes, Instant};

/// A good answer. The node says where memory lies ([`Span`]); a driver lends it out, and so names
/// what it lends: `B` to be read, `R` to be filled. `W` is what a driver says of windows that
/// it shares with programs; the node knows none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<B = Span, R = Span, W = Infallible> {
    /// Done, and nothing to tell.
    Done,
    /// The same of a write under contract, with what is owed of that. Drivers say so; the node
    /// says [`Reply::Done`], and the promise stands beside it
    /// ([`Output::promise`](super::Output::promise)).
    Promised(Promise),
    /// The volume is made.
    Made {
        /// Its number: another one may have its name by now.
        volume: VolumeId,
    },
    /// The stream is open. A reader's first data comes when its window is full.
    Stream {
        /// Its number.
        stream: StreamId,
        /// Memory of its playout window.
        window: Bytes,
    },
    /// What a stream should move at a time.
    Block {
        /// A power of two.
        block: Bytes,
    },
    /// The handle has its contract: whoever asks by it says so in
    /// [`Who::handle`](super::Who::handle).
    Handle {
        /// Its number.
        handle: HandleId,
    },
    /// Bytes are in memory.
    Data {
        /// The bytes.
        bytes: B,
        /// Where in the volume they start.
        offset: Bytes,
    },
    /// Memory to fill.
    Room {
        /// The memory.
        room: R,
    },
    /// The volume's recorded data ends here.
    End,
    /// The device failed on these bytes of a stream's volume: a declared gap.
    /// The playout point is moved past it.
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
    /// After a seek, or a begin: bounds, both now or earlier where all is in the window.
    Ready {
        /// By then the first bytes are in memory, most often much sooner: they are told
        /// or given when they are.
        at: Instant,
        /// From then on the program finds all that its contract says.
        steady: Instant,
        /// The number of this seek, from 1, where the driver counts those of a shared window; the node
        /// counts none.
        seeks: u64,
    },
    /// What planning needs to know of the pool.
    Planner(Box<Planner>),
    /// Of a window that the driver shares with its program.
    Window(W),
}

impl<B, R, W> Reply<B, R, W> {
    /// The same, with memory and windows as somebody else hands them out.
    pub fn map<B2, R2, W2>(
        self,
        to_bytes: impl FnOnce(B) -> B2,
        to_room: impl FnOnce(R) -> R2,
        to_window: impl FnOnce(W) -> W2,
    ) -> Reply<B2, R2, W2> {
        match self {
            Self::Done => Reply::Done,
            Self::Promised(promise) => Reply::Promised(promise),
            Self::Made { volume } => Reply::Made { volume },
            Self::Stream { stream, window } => Reply::Stream { stream, window },
            Self::Block { block } => Reply::Block { block },
            Self::Handle { handle } => Reply::Handle { handle },
            Self::Data { bytes, offset } => Reply::Data { bytes: to_bytes(bytes), offset },
            Self::Room { room } => Reply::Room { room: to_room(room) },
            Self::End => Reply::End,
            Self::Gap { offset, len } => Reply::Gap { offset, len },
            Self::Durable { upto } => Reply::Durable { upto },
            Self::Ready { at, steady, seeks } => Reply::Ready { at, steady, seeks },
            Self::Planner(planner) => Reply::Planner(planner),
            Self::Window(window) => Reply::Window(to_window(window)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a driver makes of memory is in the answer's place, and where the bytes lie is as it was.
    #[test]
    fn an_answer_stays_what_it_is_in_the_types_of_whoever_hears_it() {
        let heard = |reply: Reply<u8, u8>| {
            reply.map(|bytes| bytes + 1, |room| room + 2, |none| -> Infallible { none })
        };
        let (offset, len) = (Bytes::kib(4), Bytes::kib(8));
        assert_eq!(heard(Reply::Data { bytes: 1, offset }), Reply::Data { bytes: 2, offset });
        assert_eq!(heard(Reply::Room { room: 1 }), Reply::Room { room: 3 });
        for same in [Reply::Done, Reply::End, Reply::Gap { offset, len }] {
            assert_eq!(heard(same.clone()), same);
        }
    }
}
