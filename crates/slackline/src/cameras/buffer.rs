//! The bytes of one camera between its command and the medium.
//!
//! What was handed over to the daemon is held until it is durable: a daemon that is killed and
//! started again gets it once more. What was not handed over waits. Invariants: both together are
//! no more than the bound; what is dropped is whole pieces, the oldest that wait, and it is
//! counted; nothing that was handed over is dropped, but where it alone takes half of the bound:
//! then the oldest of it is no longer held, and a daemon that dies then may lose it. Only the piece that
//! still grows has more memory than bytes.

use super::limits::PIECE;
use std::collections::VecDeque;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct Buffer {
    /// Handed over, not yet known to be durable.
    held: VecDeque<Arc<Vec<u8>>>,
    /// Not handed over.
    waiting: VecDeque<Arc<Vec<u8>>>,
    /// The volume offset of the first byte that is held.
    base: u64,
    held_bytes: usize,
    waiting_bytes: usize,
    max: usize,
}

/// What became of the held bytes when the volume was opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Bytes that wait once more.
    pub again: u64,
    /// Bytes that are neither in the volume nor here.
    pub missing: u64,
    /// The volume has more than was handed over: another program wrote it.
    pub by_others: u64,
}

impl Buffer {
    /// An empty one, of at most so many bytes.
    pub fn new(max: usize) -> Self {
        let (held, waiting) = (VecDeque::new(), VecDeque::new());
        Self { held, waiting, base: 0, held_bytes: 0, waiting_bytes: 0, max }
    }

    /// It may hold so many bytes from now on, where that is more.
    pub fn widen(&mut self, max: usize) {
        self.max = self.max.max(max);
    }

    /// Takes whole packets, at most [`PIECE`]; gives how many bytes were dropped for them.
    pub fn push(&mut self, bytes: &[u8]) -> u64 {
        assert!(bytes.len() <= PIECE, "a piece at a time");
        let mut dropped = 0;
        while self.held_bytes + self.waiting_bytes + bytes.len() > self.max {
            if self.held_bytes > self.max / 2 || self.waiting.is_empty() {
                let Some(oldest) = self.held.pop_front() else { break };
                self.held_bytes -= oldest.len();
                self.base += oldest.len() as u64;
            } else if let Some(oldest) = self.waiting.pop_front() {
                self.waiting_bytes -= oldest.len();
                dropped += oldest.len() as u64;
            }
        }
        self.waiting_bytes += bytes.len();
        // Many small ones become one: nobody else has what waits.
        match self.waiting.back_mut().and_then(Arc::get_mut) {
            Some(last) if last.len() + bytes.len() <= PIECE => last.extend_from_slice(bytes),
            last => {
                // It grows no more: the memory that it has is what is counted.
                if let Some(last) = last {
                    last.shrink_to_fit();
                }
                self.waiting.push_back(Arc::new(bytes.to_vec()));
            }
        }
        dropped
    }

    /// The next piece to hand over; from here on it is held.
    pub fn take(&mut self) -> Option<Arc<Vec<u8>>> {
        let mut piece = self.waiting.pop_front()?;
        if let Some(piece) = Arc::get_mut(&mut piece) {
            piece.shrink_to_fit();
        }
        self.waiting_bytes -= piece.len();
        self.held_bytes += piece.len();
        self.held.push_back(Arc::clone(&piece));
        Some(piece)
    }

    /// Everything before this volume offset is durable.
    pub fn durable(&mut self, upto: u64) {
        while let Some(first) = self.held.front()
            && self.base + first.len() as u64 <= upto
        {
            self.base += first.len() as u64;
            self.held_bytes -= first.len();
            self.held.pop_front();
        }
    }

    /// The volume ends at `at`, and will be written from there on: what is held and not in it waits
    /// again, before all others.
    pub fn resume(&mut self, at: u64) -> Resumed {
        let end = self.base + self.held_bytes as u64;
        let missing = self.base.saturating_sub(at);
        let by_others = at.saturating_sub(end);
        let mut skip =
            if by_others > 0 { self.held_bytes } else { at.saturating_sub(self.base) as usize };
        let mut again = VecDeque::new();
        for piece in self.held.drain(..) {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let rest = if skip > 0 { Arc::new(piece[skip..].to_vec()) } else { piece };
            skip = 0;
            again.push_back(rest);
        }
        let again_bytes: usize = again.iter().map(|piece| piece.len()).sum();
        again.append(&mut self.waiting);
        self.waiting = again;
        self.waiting_bytes += again_bytes;
        (self.held_bytes, self.base) = (0, at);
        Resumed { again: again_bytes as u64, missing, by_others }
    }

    /// The volume is opened for the first time, and is written from `at` on.
    pub fn start_at(&mut self, at: u64) {
        assert!(self.held.is_empty(), "nothing was handed over yet");
        self.base = at;
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting_bytes as u64
    }

    /// Bytes that were handed over and are held.
    pub fn held(&self) -> u64 {
        self.held_bytes as u64
    }

    /// The most that it holds.
    pub fn max(&self) -> u64 {
        self.max as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(buffer: &mut Buffer) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(piece) = buffer.take() {
            bytes.extend_from_slice(&piece);
        }
        bytes
    }

    #[test]
    fn what_a_killed_daemon_had_not_made_durable_is_handed_over_once_more() {
        let mut buffer = Buffer::new(4 * PIECE);
        buffer.start_at(1_000);
        let bytes: Vec<u8> = (0..3 * PIECE).map(|at| (at / 7) as u8).collect();
        for piece in bytes.chunks(PIECE) {
            assert_eq!(buffer.push(piece), 0);
        }
        buffer.take().unwrap();
        buffer.take().unwrap();
        buffer.durable(1_000 + PIECE as u64 + 5); // one, and a part of the next
        assert_eq!((buffer.held(), buffer.waiting()), (PIECE as u64, PIECE as u64));
        // The volume has a little more than was said to be durable.
        let resumed = buffer.resume(1_000 + PIECE as u64 + 9);
        assert_eq!(resumed, Resumed { again: PIECE as u64 - 9, missing: 0, by_others: 0 });
        assert!(all(&mut buffer) == bytes[PIECE + 9..]);
    }

    #[test]
    fn the_oldest_that_waits_is_dropped_whole_and_counted_and_what_was_handed_over_stays() {
        let mut buffer = Buffer::new(4 * PIECE);
        let piece = |fill: u8| vec![fill; PIECE];
        assert_eq!((0..4).map(|fill| buffer.push(&piece(fill))).sum::<u64>(), 0);
        buffer.take().unwrap();
        assert_eq!(buffer.push(&piece(4)), PIECE as u64, "piece 1 has to go");
        assert_eq!(buffer.push(&piece(5)), PIECE as u64, "and piece 2");
        assert_eq!(buffer.held() + buffer.waiting(), buffer.max());
        buffer.resume(0);
        let there: Vec<u8> = all(&mut buffer).chunks(PIECE).map(|piece| piece[0]).collect();
        assert_eq!(there, [0, 3, 4, 5]);
    }

    #[test]
    fn what_was_handed_over_takes_half_of_the_bound_at_the_most_when_room_is_needed() {
        let mut buffer = Buffer::new(4 * PIECE);
        for fill in 0..4 {
            buffer.push(&vec![fill; PIECE]);
            buffer.take().unwrap();
        }
        assert_eq!(buffer.push(&vec![4; PIECE]), 0, "nothing waits that could be dropped");
        assert_eq!((buffer.held(), buffer.waiting()), (3 * PIECE as u64, PIECE as u64));
        // A daemon that dies now, and had made nothing durable, has lost the first piece.
        let resumed = buffer.resume(0);
        assert_eq!((resumed.missing, resumed.again), (PIECE as u64, 3 * PIECE as u64));
    }

    #[test]
    fn a_buffer_becomes_larger_and_never_smaller() {
        let mut buffer = Buffer::new(PIECE);
        buffer.push(&[0; PIECE]);
        buffer.widen(2 * PIECE);
        assert_eq!(buffer.push(&[1; PIECE]), 0);
        buffer.widen(PIECE);
        assert_eq!((buffer.waiting(), buffer.max()), (2 * PIECE as u64, 2 * PIECE as u64));
    }

    #[test]
    fn a_volume_that_another_program_wrote_is_gone_on_with() {
        let mut buffer = Buffer::new(4 * PIECE);
        buffer.push(&[1; 10]);
        buffer.take().unwrap();
        buffer.push(&[2; 10]);
        assert_eq!(buffer.resume(15), Resumed { again: 0, missing: 0, by_others: 5 });
        assert_eq!(all(&mut buffer), [2; 10]);
        buffer.durable(25);
        assert_eq!(buffer.held(), 0);
    }

    #[test]
    fn small_pieces_become_one() {
        let mut buffer = Buffer::new(1 << 20);
        for _ in 0..1_000 {
            buffer.push(&[7; 188]);
        }
        assert_eq!(buffer.waiting.len(), 1_000_usize.div_ceil(348));
        // Only the last has memory that is not counted.
        let taken: usize = buffer.waiting.iter().map(|piece| piece.capacity()).sum();
        assert!(taken <= buffer.waiting_bytes + PIECE, "{taken}");
        while buffer.take().is_some() {}
        let taken: usize = buffer.held.iter().map(|piece| piece.capacity()).sum();
        assert!(taken < buffer.held_bytes + 188, "{taken}");
    }
}
