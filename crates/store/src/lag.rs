//! Which disks of a pool are further behind the others than a crash leaves them.

use crate::api::{DiskIndex, Found, Lag};
use crate::facts::Facts;
use alloc::vec::Vec;

/// A copy of an earlier time has its metadata, as they were then: of one that was taken while a checkpoint
/// was being written, that checkpoint is not whole. What cannot be read may be what the disk lacks.
fn found(facts: &Facts, device: DiskIndex) -> Found {
    let device = &facts.devices[device.as_usize()];
    let unreadable = device.areas.iter().flat_map(|area| &area.unreadable);
    if let Some((&offset, &error)) = unreadable.min_by_key(|(offset, _)| **offset) {
        return Found::Unreadable { offset, error };
    }
    match device.areas.iter().all(|area| area.checkpoint.is_ok()) {
        true => Found::Whole,
        false if device.progress.is_there => Found::Damaged,
        false => Found::Nothing,
    }
}

/// The disks that lack what others prove that every disk held.
pub(crate) fn lagging(facts: &Facts) -> Vec<Lag> {
    let members =
        || facts.members.iter().enumerate().filter_map(|(i, device)| Some((i, (*device)?)));
    let progress = |device: DiskIndex| facts.devices[device.as_usize()].progress;
    let Some((_, ahead)) = members().max_by_key(|(_, device)| progress(*device).reach()) else {
        return Vec::new();
    };
    let lag = |(index, device)| {
        let others = members().filter(|(_, other)| *other != device);
        let least = others.map(|(_, other)| progress(other).proven).max().unwrap_or(0);
        let held = progress(device).held;
        (held < least).then(|| Lag {
            device,
            index: DiskIndex::new(index),
            behind: progress(ahead).reach().saturating_sub(held),
            ahead,
            found: found(facts, device),
        })
    };
    members().filter_map(lag).collect()
}
