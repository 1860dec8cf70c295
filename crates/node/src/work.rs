//! What a disk of a pool does, and for whom: its queue as the pool fills it.

use crate::api::*;
use crate::volumes::writes::Claim;
use core::ops::Range;
use queue::{DeviceTime, Next, Queue};
use store::IoId;
use units::{Bytes, Instant};

/// Whom the end of a command concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A block of a stream, in this place.
    Block { stream: StreamId, block: u64, place: Bytes, part: BlockPart },
    /// The first bytes of a block in this place, ahead of the block itself.
    Early { stream: StreamId, block: u64, place: Bytes },
    /// A command of a best-effort operation.
    Piece { operation: u64, part: Part },
    /// A piece of a write (or a flush) of the store.
    Store { io: IoId },
    /// A piece of the move that runs on the disk.
    Move { write: bool },
    /// A read of the measurement that runs on the disk.
    Measure,
}

/// What of a block a command moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockPart {
    /// Bytes of the volume.
    pub range: Range<Bytes>,
    /// The block is moved by this command alone.
    pub is_all: bool,
    /// Of a writer: the claim of the first extent that it writes to. The claims of those that
    /// follow have the numbers that follow.
    pub claim: Option<Claim>,
}

/// What a command does for a best-effort operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Reads a piece of it.
    Read,
    /// Has to be done before the piece with this claim can be written: its edges, or zeros
    /// before it.
    Before(Claim),
    /// Writes the piece with this claim.
    Write(Claim),
}

/// What a command is for, and what it does.
#[derive(Clone, Debug)]
pub struct Work {
    pub(crate) owner: Owner,
    pub(crate) action: DiskAction,
}

/// One disk of a pool at work.
pub type DiskQueue = Queue<Work>;

/// A command that has ended in its queue; the node is to be told.
#[derive(Clone, Debug)]
pub struct CommandEnded {
    pub(crate) disk: DiskIndex,
    pub(crate) finished: Instant,
    pub(crate) result: Result<(), DeviceError>,
    pub(crate) of_queue: queue::Ended<Work>,
}

/// What the device of this queue shall do now.
pub fn next_command(queue: &mut DiskQueue, now: Instant) -> DiskPoll {
    match queue.next(now) {
        Next::Wait { until } => DiskPoll::Wait { until },
        Next::Start { key, predicted, work } => {
            // Metadata is used once: its bytes move out.
            let action = match &mut work.action {
                DiskAction::WriteBytes { offset, bytes } => {
                    DiskAction::WriteBytes { offset: *offset, bytes: core::mem::take(bytes) }
                }
                other => other.clone(),
            };
            DiskPoll::Start(DiskCommand { id: CommandId(key), action, predicted })
        }
    }
}

/// A command has ended on the device of this queue. The result is for
/// [`Node::command_ended`](crate::Node::command_ended).
///
/// # Panics
/// Where [`next_command`] did not give it.
pub fn command_ended(
    queue: &mut DiskQueue,
    id: CommandId,
    started: Instant,
    finished: Instant,
    result: Result<(), DeviceError>,
) -> CommandEnded {
    command_noticed(queue, id, DeviceTime { started, finished, noticed: finished }, result)
}

/// As [`command_ended`], for a driver that may have noticed the end some time after it.
///
/// # Panics
/// As [`command_ended`] does.
pub fn command_noticed(
    queue: &mut DiskQueue,
    id: CommandId,
    times: DeviceTime,
    result: Result<(), DeviceError>,
) -> CommandEnded {
    let of_queue = queue.ended_within(id.0, times, result.is_ok());
    CommandEnded { disk: id.disk(), finished: times.noticed, result, of_queue }
}
