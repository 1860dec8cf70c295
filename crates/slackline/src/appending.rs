//! A writer that goes on behind what a volume has.

use crate::unreadable;
use client::control::Contract;
use client::{Client, Code, Error, Problem, Result, Writer};
use std::io::Write;
use units::Bytes;

/// The most that is read at once.
const PIECE: Bytes = Bytes::MIB;

/// A writer of this volume that stands at `start`, by a client that may have odds. A writer begins
/// at a block; what stands in it before `start` already is written once more. With a limit the volume
/// grows as it fills, up to that.
///
/// What of that block cannot be read is written as zeros, and its bytes are given with the writer: the disk
/// takes a sector anew that it cannot read, and else nobody could go on behind it.
pub fn writer_at(
    client: &Client,
    volume: &str,
    contract: Contract,
    start: Bytes,
    grow_to: Option<Bytes>,
) -> Result<(Writer, Bytes)> {
    let block_start = start.round_down(contract.block_bytes.max(Bytes::new(1)));
    let mut writer = match grow_to {
        Some(limit) => client.growing_writer(volume, contract, block_start, limit)?,
        None => client.writer(volume, contract, block_start)?,
    };
    let mut lost = Bytes::ZERO;
    if block_start < start {
        // From here on nobody else writes to it. What another program appended since `start` was looked
        // up would be written over.
        let recorded = client.volume(volume)?.length_bytes;
        if recorded > start {
            let what = format!("volume {volume} has {recorded} recorded, and had {start} just now");
            let next = "try again: another program wrote to it meanwhile";
            return Err(Error::Problem(Box::new(Problem::new(Code::VolumeBusy, what, next))));
        }
        let bytes;
        (bytes, lost) = read_before(client, volume, block_start, start)?;
        writer.write_all(&bytes)?;
    }
    Ok((writer, lost))
}

/// The bytes of a volume from the start of a block to `end`, and how many of them could not be read.
fn read_before(client: &Client, name: &str, from: Bytes, end: Bytes) -> Result<(Vec<u8>, Bytes)> {
    let mut bytes = vec![0; (end - from).round_up(Bytes::kib(4)).as_usize()];
    let mut volume = client.best_effort(name)?;
    let mut lost = Bytes::ZERO;
    // A block may be longer than what is read at once.
    for (piece, at) in bytes.chunks_mut(PIECE.as_usize()).zip(0..) {
        lost += unreadable::read(&mut volume, from + PIECE * at, piece)?;
    }
    bytes.truncate((end - from).as_usize());
    Ok((bytes, lost.min(end - from)))
}
