//! The control page: which words there are, who writes them, and in which order.
//!
//! All words are 64 bits, in the machine's own order (both sides are on one machine).
//! Words of different writers lie in different cache lines.
//!
//! | byte | word | written by | |
//! |---|---|---|---|
//! | 0 | magic | daemon, once | [`MAGIC`] |
//! | 8 | version | daemon, once | [`LAYOUT`] |
//! | 16 | mode | daemon, once | 0 reader, 1 writer, 2 both |
//! | 24 | capacity | daemon, once | slots of the ring, a power of two |
//! | 64 | published | daemon | pieces told since the window was made |
//! | 72 | durable | daemon | writers: everything before this volume offset is on the medium |
//! | 80 | over | daemon | not 0: the reason is on the socket |
//! | 88 | bell_at | daemon | ring the bell when `moved` comes to this |
//! | 128 | moved | client | bytes that it is done with since the window was made |
//! | 136 | waiting | client | not 0: wants news of the next piece; low 32 bits: how many came before it, high: another number each time |
//! | 144 | durable_waiting | client | not 0: wants news when `durable` rises; another number each time |
//! | 192 + 32 i | slot i | daemon | kind, place in the data, offset in the volume, length |
//!
//! # Orders
//!
//! * A piece: its slot is written, then `published` (release); the client reads
//!   `published` (acquire), then the slot. The bytes of the piece were there before
//!   the daemon knew of them.
//! * `moved` (release) after the bytes were read or filled; the daemon reads it
//!   (acquire) before a disk may write or read there.
//! * Sleeping is Dekker's handshake: each side writes its own word, passes a fence
//!   (sequentially consistent), and reads the other's. So of "there is a piece" and
//!   "I wait", at least one side sees the other's. The same holds for `bell_at` with
//!   `moved`, and for `durable` with `durable_waiting`.
//! * A wait says for which piece it is: the daemon may look at it so late that the client
//!   has taken the piece that was just told, and waits for the one behind it.
//! * `bell_at` never falls, so that a client may compare with the last value that it
//!   has seen and look again only when it comes there.
//!
//! `orders.rs` tries each of these, and that each is needed.

use units::Bytes;

/// What a control page consists of: in this crate's own tests, of words that follow the
/// memory model to the letter ([`orders`](crate::orders)).
#[cfg(test)]
pub(crate) use crate::orders::{Control, Word, fence};
#[cfg(not(test))]
pub(crate) use {
    crate::memory::Memory as Control,
    std::sync::atomic::{AtomicU64 as Word, fence},
};

/// The first word: says that this is a control page.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"slackwin");
/// Which layout this is.
pub const LAYOUT: u64 = 1;

pub(crate) const AT_MAGIC: usize = 0;
pub(crate) const AT_LAYOUT: usize = 8;
pub(crate) const AT_MODE: usize = 16;
pub(crate) const AT_CAPACITY: usize = 24;
pub(crate) const AT_PUBLISHED: usize = 64;
pub(crate) const AT_DURABLE: usize = 72;
pub(crate) const AT_OVER: usize = 80;
pub(crate) const AT_BELL: usize = 88;
pub(crate) const AT_MOVED: usize = 128;
pub(crate) const AT_WAITING: usize = 136;
pub(crate) const AT_DURABLE_WAITING: usize = 144;
pub(crate) const AT_RING: usize = 192;
pub(crate) const SLOT: usize = 32;

/// Fewest and most slots of a ring.
pub(crate) const RING_MIN: u64 = 64;
pub(crate) const RING_MAX: u64 = 1 << 16;

/// Which way a window goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Filled ahead of the program.
    Read = 0,
    /// Drained behind the program.
    Write = 1,
    /// Both: room holds what the volume holds, and is written as the program leaves it.
    Update = 2,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes to read.
    Data = 1,
    /// The disk failed on these bytes: there is nothing in memory.
    Gap = 2,
    /// The recorded data ends here, for now. Of no length.
    End = 3,
    /// Memory to fill.
    Room = 4,
}

/// What the daemon tells the program of, one after the other in the volume's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: Kind,
    /// Where in the data memory; zero where there is nothing in memory.
    pub place: Bytes,
    /// Where in the volume.
    pub offset: Bytes,
    /// How long.
    pub len: Bytes,
}

/// How many pieces the ring of a window has to hold: twice the blocks of a window,
/// since a window may be given more memory, within the bounds of a ring.
pub fn ring_for(window: Bytes, block: Bytes) -> u64 {
    let blocks = window.div_ceil(block.max(Bytes::new(1)));
    blocks.saturating_mul(2).clamp(RING_MIN, RING_MAX).next_power_of_two()
}

/// The length of a control page with so many slots.
pub(crate) fn len_for(capacity: u64) -> usize {
    (AT_RING + capacity as usize * SLOT).next_multiple_of(4096)
}

/// How many slots there are room for in so many bytes.
pub(crate) fn slots_in(len: usize) -> u64 {
    (len.saturating_sub(AT_RING) / SLOT) as u64
}

/// Where the words of a slot begin.
pub(crate) fn slot(index: u64, capacity: u64) -> usize {
    AT_RING + (index & (capacity - 1)) as usize * SLOT
}

/// What a program says that waits for the piece of this number (from zero): a number that it has not
/// said before, for the `count`th time that it waits, and which piece it is, of which the low 32 bits
/// suffice.
pub(crate) fn wait(count: u32, piece: u64) -> u64 {
    u64::from(count) << 32 | u64::from(piece as u32)
}

/// Whether such a wait is for a piece behind the first `published`. What a program has written there that
/// breaks the rules may be either: it alone misses news.
pub(crate) fn waits_beyond(wait: u64, published: u64) -> bool {
    (wait as u32).wrapping_sub(published as u32) < 1 << 31
}

/// One word of a control page. Panics where it lies outside.
#[inline]
pub(crate) fn word(control: &Control, at: usize) -> &Word {
    &control.words()[at / 8]
}

impl Kind {
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        [Self::Data, Self::Gap, Self::End, Self::Room]
            .into_iter()
            .find(|&kind| kind as u64 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_for_which_piece_it_is() {
        for published in [0, 1, 70, u64::from(u32::MAX), u64::from(u32::MAX) + 1] {
            for ahead in [0, 1, 1 << 16] {
                assert!(waits_beyond(wait(1, published + ahead), published));
                assert!(!waits_beyond(wait(1, published), published + 1 + ahead));
            }
            assert_ne!(wait(1, published), wait(2, published), "each is another number");
        }
    }

    #[test]
    fn a_ring_holds_twice_the_blocks_of_its_window_within_bounds() {
        assert_eq!(ring_for(Bytes::mib(3), Bytes::mib(1)), 64);
        assert_eq!(ring_for(Bytes::mib(1), Bytes::kib(4)), 512);
        assert_eq!(ring_for(Bytes::kib(4) * 33, Bytes::kib(4)), 128);
        assert_eq!(ring_for(Bytes::GIB, Bytes::kib(4)), RING_MAX);
        assert_eq!(ring_for(Bytes::MIB, Bytes::ZERO), RING_MAX);
        for capacity in [RING_MIN, RING_MAX] {
            assert!(slot(capacity - 1, capacity) + SLOT <= len_for(capacity));
            assert_eq!(slot(capacity, capacity), slot(0, capacity));
            assert!(slots_in(len_for(capacity)) >= capacity);
        }
    }
}
