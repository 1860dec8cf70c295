//! Whether an operation on a volume can be: where it lies, and of which volume it was asked for.

use crate::api::*;
use crate::core::Core;
use crate::limits;
use crate::memory::reserve::Place;
use crate::volumes::rings::not_on_a_ring;
use alloc::string::String;
use core::ops::Range;
use store::{EXTENT, VolumeId};
use units::Bytes;

fn check_len(len: Bytes) -> Result<(), Error> {
    if len.is_zero() || len > limits::BEST_EFFORT_MAX || !len.is_multiple_of(limits::BLOCK_MIN) {
        return Err(Error::Invalid { what: "length", rule: "a multiple of 4 KiB, at most 1 MiB" });
    }
    Ok(())
}

/// The volume of that name, if it has these whole 4 KiB.
fn find(core: &Core, name: &str, blocks: &Range<Bytes>) -> Result<VolumeId, Error> {
    let none = || Error::NoSuchVolume { name: String::from(name) };
    let found = core.store.find(name).ok_or_else(none)?;
    if blocks.end > found.end() {
        return Err(Error::BeyondEnd { size: found.end() });
    }
    if blocks.start < found.start() {
        return Err(Error::GivenUp { start: found.start() });
    }
    Ok(found.id())
}

/// The same, where it is to be written: a ring is recorded to by streams alone.
pub(crate) fn find_to_write(
    core: &Core,
    name: &str,
    blocks: &Range<Bytes>,
) -> Result<VolumeId, Error> {
    match core.store.find(name) {
        Some(volume) if volume.is_ring() => Err(not_on_a_ring("write without a stream")),
        _ => find(core, name, blocks),
    }
}

/// Where an operation that needs memory begins, and what its handle states; none where it
/// names no volume. Where it has waited, `before` is where it began: another volume that has the name
/// by now is not the one that its program was permitted to use.
pub(super) fn checked(
    core: &Core,
    op: &Op,
    handle: Option<HandleId>,
    before: Option<Place>,
) -> Result<Option<(Place, Option<Priority>)>, Error> {
    let (name, blocks, priority) = match op {
        Op::Read { volume, offset, len, priority } => {
            check_len(*len)?;
            if !offset.is_multiple_of(limits::BLOCK_MIN) {
                return Err(Error::Invalid { what: "offset", rule: "a multiple of 4 KiB" });
            }
            (volume, *offset..offset.saturating_add(*len), *priority)
        }
        Op::Room { len, target: Some(target) } => {
            check_len(*len)?;
            let start = target.offset.round_down(limits::BLOCK_MIN);
            (&target.volume, start..start.saturating_add(*len), target.priority)
        }
        Op::Room { len, target: None } => return check_len(*len).map(|()| None),
        _ => unreachable!("only operations that need memory"),
    };
    let volume = match op {
        Op::Room { .. } => find_to_write(core, name, &blocks)?,
        _ => find(core, name, &blocks)?,
    };
    if before.is_some_and(|(holder, _)| holder.volume != volume) {
        return Err(Error::NoSuchVolume { name: name.clone() });
    }
    let disk = core.store.disk_of(volume, blocks.start / EXTENT).expect("within the volume");
    Ok(Some(((core.holder(volume, handle), disk), priority)))
}
