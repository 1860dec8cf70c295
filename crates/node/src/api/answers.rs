//! What operations are answered with ([`Operation`](super::Operation)), found in replies.

use super::reply::Reply;
use super::words::{HandleId, StreamId};
use crate::plan::Planner;
use alloc::boxed::Box;
use store::VolumeId;
use units::{Bytes, Instant};

/// A stream that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its number.
    pub stream: StreamId,
    /// Memory of its playout window.
    pub window: Bytes,
}

/// What comes next at a reader's playout point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Playout<B> {
    /// Bytes that are in memory, and where in the volume they start.
    Data {
        /// The bytes.
        bytes: B,
        /// Where in the volume they start.
        offset: Bytes,
    },
    /// A declared gap.
    Gap {
        /// Where in the volume.
        offset: Bytes,
        /// How many bytes.
        len: Bytes,
    },
    /// The volume's recorded data ends here.
    End,
}

/// By when a stream is ready that has gone elsewhere, or has begun: as [`Reply::Ready`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// By then the first bytes are in memory.
    pub at: Instant,
    /// From then on the program finds all that its contract says.
    pub steady: Instant,
    /// The number of the seek, as far as the driver counts them.
    pub seeks: u64,
}

pub(super) fn done<B, R, W>(reply: Reply<B, R, W>) -> Option<()> {
    matches!(reply, Reply::Done | Reply::Promised(_)).then_some(())
}

pub(super) fn made<B, R, W>(reply: Reply<B, R, W>) -> Option<VolumeId> {
    if let Reply::Made { volume } = reply { Some(volume) } else { None }
}

pub(super) fn opened<B, R, W>(reply: Reply<B, R, W>) -> Option<Opened> {
    let Reply::Stream { stream, window } = reply else { return None };
    Some(Opened { stream, window })
}

pub(super) fn handle<B, R, W>(reply: Reply<B, R, W>) -> Option<HandleId> {
    if let Reply::Handle { handle } = reply { Some(handle) } else { None }
}

pub(super) fn block<B, R, W>(reply: Reply<B, R, W>) -> Option<Bytes> {
    if let Reply::Block { block } = reply { Some(block) } else { None }
}

pub(super) fn data<B, R, W>(reply: Reply<B, R, W>) -> Option<B> {
    if let Reply::Data { bytes, .. } = reply { Some(bytes) } else { None }
}

pub(super) fn playout<B, R, W>(reply: Reply<B, R, W>) -> Option<Playout<B>> {
    Some(match reply {
        Reply::Data { bytes, offset } => Playout::Data { bytes, offset },
        Reply::Gap { offset, len } => Playout::Gap { offset, len },
        Reply::End => Playout::End,
        _ => return None,
    })
}

pub(super) fn room<B, R, W>(reply: Reply<B, R, W>) -> Option<R> {
    if let Reply::Room { room } = reply { Some(room) } else { None }
}

pub(super) fn durable<B, R, W>(reply: Reply<B, R, W>) -> Option<Bytes> {
    if let Reply::Durable { upto } = reply { Some(upto) } else { None }
}

/// Of a writer how far it is durable, of a reader nothing.
pub(super) fn closed<B, R, W>(reply: Reply<B, R, W>) -> Option<Option<Bytes>> {
    match reply {
        Reply::Durable { upto } => Some(Some(upto)),
        Reply::Done => Some(None),
        _ => None,
    }
}

pub(super) fn ready<B, R, W>(reply: Reply<B, R, W>) -> Option<Ready> {
    let Reply::Ready { at, steady, seeks } = reply else { return None };
    Some(Ready { at, steady, seeks })
}

/// What the driver says of a window that it shares.
pub(super) fn window<B, R, W>(reply: Reply<B, R, W>) -> Option<W> {
    if let Reply::Window(window) = reply { Some(window) } else { None }
}

pub(super) fn planner<B, R, W>(reply: Reply<B, R, W>) -> Option<Box<Planner>> {
    if let Reply::Planner(planner) = reply { Some(planner) } else { None }
}
