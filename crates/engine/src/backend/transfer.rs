//! One transfer of a ring: where its bytes go, and what the kernel's answer means for it.
//!
//! Invariant: nothing here touches memory or asks the kernel.

use node::limits::{BLOCK_MAX, BLOCK_MIN};
use node::{DeviceError, Written};

/// Bytes of the sink: what lies between the blocks that a read wants goes there.
pub(super) const SINK: usize = 64 << 10;
/// A read with more runs of blocks than this goes through a copy: the kernel takes 1024 pieces
/// at once, and each run, and each 64 KiB of what is between them, is one.
pub(super) const RUNS_MAX: usize = 256;
// Of the longest block: its runs, what is between them in pieces, and a shorter piece in each gap.
const _: () = {
    let between = BLOCK_MAX.get() as usize - RUNS_MAX * BLOCK_MIN.get() as usize;
    assert!(RUNS_MAX + between / SINK + (RUNS_MAX - 1) <= 1024);
};

/// What comes after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The transfer goes on behind the bytes that were moved.
    Again {
        moved: usize,
    },
    Ended(Result<(), DeviceError>),
}

/// The kernel's answer to a transfer of which so many bytes were left: how many of them were
/// moved, or an error below zero.
pub(super) fn after(answer: i32, left: usize) -> After {
    match usize::try_from(answer) {
        // Interrupted, or out of something for a moment.
        Err(_) if [-libc::EINTR, -libc::EAGAIN].contains(&answer) => After::Again { moved: 0 },
        Err(_) => After::Ended(Err(DeviceError(-answer))),
        // The device ends here; a flush has nothing to move.
        Ok(0) if left > 0 => After::Ended(Err(DeviceError(libc::EIO))),
        Ok(moved) if moved < left => After::Again { moved },
        Ok(_) => After::Ended(Ok(())),
    }
}

/// Where the bytes from the first of these blocks to the last go, `done` of which are
/// there: those of the blocks to `memory`, which the whole span begins with, the others to
/// the sink.
pub(super) fn parts(
    memory: *mut u8,
    written: &Written,
    done: usize,
    sink: *mut u8,
) -> Vec<libc::iovec> {
    let wanted = written.span();
    let mut at = wanted.start.as_usize() + done;
    let mut vector = Vec::new();
    for run in written.runs() {
        let (start, end) = (run.start.as_usize(), run.end.as_usize());
        while at < start {
            let iov_len = (start - at).min(SINK);
            vector.push(libc::iovec { iov_base: sink.cast(), iov_len });
            at += iov_len;
        }
        if at < end {
            let iov_base = memory.wrapping_add(at).cast();
            vector.push(libc::iovec { iov_base, iov_len: end - at });
            at = end;
        }
    }
    vector
}

/// Pieces of memory, one behind the other, without the first `done` bytes.
pub(super) fn left(
    pieces: impl Iterator<Item = (*mut u8, usize)>,
    mut done: usize,
) -> Vec<libc::iovec> {
    let mut vector = Vec::new();
    for (memory, len) in pieces {
        let there = done.min(len);
        done -= there;
        if there < len {
            let iov_base = memory.wrapping_add(there).cast();
            vector.push(libc::iovec { iov_base, iov_len: len - there });
        }
    }
    vector
}

/// Leaves no more of a vector than so many bytes.
#[cfg(test)]
pub(super) fn cut(vector: &mut Vec<libc::iovec>, at_most: usize) {
    let mut left = at_most;
    for part in vector.iter_mut() {
        part.iov_len = part.iov_len.min(left);
        left -= part.iov_len;
    }
    vector.retain(|part| part.iov_len > 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_cannot_do_now_and_what_is_short_goes_on() {
        assert_eq!(after(-libc::EINTR, 4096), After::Again { moved: 0 });
        assert_eq!(after(-libc::EAGAIN, 4096), After::Again { moved: 0 });
        assert_eq!(after(-libc::EAGAIN, 0), After::Again { moved: 0 }, "a flush");
        assert_eq!(after(1, 4096), After::Again { moved: 1 });
        assert_eq!(after(4095, 4096), After::Again { moved: 4095 });
    }

    #[test]
    fn what_is_whole_and_what_fails_has_ended() {
        assert_eq!(after(4096, 4096), After::Ended(Ok(())));
        assert_eq!(after(0, 0), After::Ended(Ok(())), "a flush");
        for error in [libc::EIO, libc::ENOSPC, libc::EBADF] {
            assert_eq!(after(-error, 4096), After::Ended(Err(DeviceError(error))));
        }
        let beyond = After::Ended(Err(DeviceError(libc::EIO)));
        assert_eq!(after(0, 4096), beyond, "the device ends before the transfer does");
    }
}
