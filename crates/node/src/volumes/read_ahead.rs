//! Who reads a volume from one end to the other, and what is to be read ahead of him.
//!
//! A *reader* is a place up to which somebody has read. A read that goes on there, or within a few
//! reads' length of it (programs that ask for several at a time do not ask in order), is his; any
//! other begins a new one. Behind the third the next bytes are read ahead, twice as many each time.

use crate::limits::READERS_MAX;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use store::VolumeId;
use units::Bytes;

/// Reads that are looked at before anything is read ahead.
const SURE: u32 = 3;
/// A reader may leave out, or go back, as many of his reads.
const STRAYS: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct Reader {
    /// He has read up to here,
    next: Bytes,
    /// in so many reads.
    reads: u32,
    /// What is before this was read ahead,
    ahead: Bytes,
    /// last so much at a time.
    len: Bytes,
    used: u64,
}

/// The readers of each volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers {
    on: BTreeMap<VolumeId, Vec<Reader>>,
    reads: u64,
}

impl Readers {
    /// Somebody reads this. Says what is to be read ahead of him now, if anything is: at most as much
    /// as is said, or as he reads at a time.
    pub(crate) fn note(
        &mut self,
        volume: VolumeId,
        range: &Range<Bytes>,
        most: Bytes,
    ) -> Option<Range<Bytes>> {
        self.reads += 1;
        let on = self.on.entry(volume).or_default();
        let len = range.end - range.start;
        let stray = len.saturating_mul(STRAYS);
        let is_his = |reader: &&mut Reader| {
            let (near, far) = (reader.next.min(range.start), reader.next.max(range.start));
            far - near <= stray
        };
        let Some(reader) = on.iter_mut().find(is_his) else {
            let used = self.reads;
            let new =
                Reader { next: range.end, reads: 1, ahead: range.end, len: Bytes::ZERO, used };
            if on.len() < READERS_MAX {
                on.push(new);
            } else if let Some(oldest) = on.iter_mut().min_by_key(|reader| reader.used) {
                *oldest = new;
            }
            return None;
        };
        reader.used = self.reads;
        reader.reads = reader.reads.saturating_add(1);
        reader.next = reader.next.max(range.end);
        reader.ahead = reader.ahead.max(reader.next);
        if reader.reads < SURE || reader.ahead - reader.next > reader.len / 2 {
            return None;
        }
        let most = most.max(len);
        let wanted = (reader.len * 2).clamp(stray.min(most), most);
        // Whole reads, so that none lies half in what comes next.
        reader.len = len * (wanted / len);
        let from = reader.ahead;
        reader.ahead = from.saturating_add(reader.len);
        Some(from..reader.ahead)
    }

    /// The volume is gone.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.on.remove(&volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> VolumeId {
        VolumeId(7)
    }

    fn read(readers: &mut Readers, start: u64, len: u64) -> Option<(u64, u64)> {
        let range = Bytes::kib(start)..Bytes::kib(start + len);
        let ahead = readers.note(volume(), &range, Bytes::MIB)?;
        Some((ahead.start.get() >> 10, ahead.end.get() >> 10))
    }

    #[test]
    fn behind_the_third_read_more_and_more_is_read_ahead_without_a_gap() {
        let mut readers = Readers::default();
        let (mut upto, mut longest, mut at) = (0, 0, 0);
        while at < 16 << 10 {
            let ahead = read(&mut readers, at, 64);
            at += 64;
            if at < 192 {
                assert_eq!(ahead, None, "nobody is sure yet");
            }
            if let Some((from, to)) = ahead {
                assert!(upto == 0 || from == upto, "without a gap, and nothing twice");
                assert!(to - from >= longest && (to - from) % 64 == 0);
                (upto, longest) = (to, to - from);
            }
            assert!(at < 192 || upto > at, "ahead of him");
        }
        assert_eq!(longest, 1 << 10);
    }

    #[test]
    fn who_reads_here_and_there_has_nothing_read_ahead() {
        let mut readers = Readers::default();
        for turn in 0..1_000 {
            assert_eq!(read(&mut readers, turn * 7_919 % 65_536 * 4, 4), None, "{turn}");
        }
    }

    #[test]
    fn several_who_read_side_by_side_and_out_of_order_are_each_seen() {
        let mut readers = Readers::default();
        let mut ahead = [0; 4];
        for turn in 0..64 {
            for (who, upto) in ahead.iter_mut().enumerate() {
                // Pairs of reads change places.
                let at = who as u64 * (1 << 20) + (turn ^ 1) * 128;
                if let Some((_, to)) = read(&mut readers, at, 128) {
                    *upto = to;
                }
            }
        }
        assert!(ahead.iter().enumerate().all(|(who, &upto)| upto > who as u64 * (1 << 20) + 8_192));
    }
}
