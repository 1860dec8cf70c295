//! What a group's command does.

use crate::api::*;
use crate::core::Core;
use crate::groups::group::Item;
use crate::limits;
use alloc::vec::Vec;
use store::EXTENT;
use units::{Bytes, Direction};

/// What writes these, which lie one behind the other on the disk: what is filled of each, and zeros behind
/// it, up to where the next one begins.
pub(crate) fn writing(core: &Core, items: &[Item]) -> DiskAction {
    let span = |item: &Item| Span { offset: item.place, len: item.len };
    if let [item] = items {
        return DiskAction::Write { offset: item.at, span: span(item), valid: item.upto };
    }
    let mut spans = Vec::with_capacity(items.len());
    for (number, item) in items.iter().enumerate() {
        spans.push(span(item));
        let mut behind = if number + 1 < items.len() { EXTENT - item.len } else { Bytes::ZERO };
        while !behind.is_zero() {
            let len = behind.min(limits::ZEROS);
            spans.push(Span { len, ..core.arena.zeros() });
            behind -= len;
        }
    }
    DiskAction::Several { offset: items[0].at, direction: Direction::Write, spans }
}
