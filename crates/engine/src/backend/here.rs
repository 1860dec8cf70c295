//! Short transfers of a device that lies in memory, made by whichever thread has them.
//!
//! The kernel copies such bytes itself, and a ring hands each copy to a thread of the kernel's: to wake
//! that one, and the disk's thread before it, takes many times what a copy of 4 KiB does. So the
//! thread that asks makes the transfer, where nothing is promised on the disk
//! ([`core`](crate::core)), and the disk's thread makes its own.
//!
//! Invariant: a transfer has ended when [`Here::run`] returns; the file is not used afterwards.
#![allow(unsafe_code)]

use super::transfer::{self, After};
use super::{Completion, regions, zero_unwritten};
use crate::arena::Arena;
use crate::sys;
use node::{DeviceError, DiskAction, DiskCommand, Span, Written};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use units::{Bytes, Duration, Instant};

/// More is copied by the kernel's threads, beside the disk's: some tens of microseconds.
const SHORT: Bytes = Bytes::kib(256);

/// Most copies take less, unless their thread has waited for a processor.
const LONG: Duration = Duration::from_micros(30);

/// Carries out some commands on the thread that calls.
pub(crate) trait Here: Send + Sync {
    /// How much this one moves, where it carries it out.
    fn takes(&self, action: &DiskAction) -> Option<Bytes>;

    /// Carries out some that it takes, one after the other.
    fn run(&self, commands: &[DiskCommand]) -> Vec<Completion>;
}

/// A file in memory.
#[derive(Clone)]
pub(crate) struct InMemory {
    file: Arc<File>,
    arena: Arc<Arena>,
}

impl InMemory {
    /// None where the file lies anywhere else.
    pub(crate) fn of(file: &Arc<File>, arena: &Arc<Arena>) -> Option<Self> {
        let is_one = sys::is_in_memory(file).unwrap_or(false);
        is_one.then(|| Self { file: Arc::clone(file), arena: Arc::clone(arena) })
    }

    /// A transfer to or from all of a span.
    fn transfer(&self, write: bool, offset: Bytes, span: Span) -> Result<(), DeviceError> {
        let (file, memory) = (self.file.as_raw_fd(), self.arena.pointer(span));
        let (len, mut moved) = (span.len.as_usize(), 0);
        // By number: the C library's `pread` looks twice whether its thread is to be cancelled. The offset
        // goes in one register.
        const { assert!(size_of::<libc::c_long>() == size_of::<libc::off_t>()) };
        let call = if write { libc::SYS_pwrite64 } else { libc::SYS_pread64 };
        loop {
            let (from, left) = (memory.wrapping_add(moved).cast::<libc::c_void>(), len - moved);
            let at = (offset.get() + moved as u64) as libc::off_t;
            // SAFETY: the span lies in the arena (`pointer` checks), `left` bytes of it from there
            // on; a command that fills it has it alone (`fills`).
            let answer = unsafe { libc::syscall(call, file, from, left, at) };
            let answer = match answer {
                -1 => -sys::errno(&io::Error::last_os_error()),
                moved => moved as i32, // at most `SHORT`
            };
            match transfer::after(answer, left) {
                After::Again { moved: more } => moved += more,
                After::Ended(result) => return result,
            }
        }
    }

    /// Carries out what [`Here::takes`] says yes to; and when the next one may begin.
    /// `zeros`: what a read leaves out is filled with them.
    pub(super) fn run_since(
        &self,
        began: Began,
        command: &DiskCommand,
        zeros: bool,
    ) -> (Completion, Began) {
        let result = self.carry_out(&command.action, zeros);
        let (took, ended) = began.ends(sys::now(), sys::thread_time);
        let (id, started, noticed) = (command.id, began.at, ended.at);
        let finished = started + took;
        (Completion { noticed, ..Completion::of(id, started, finished, result) }, ended)
    }

    fn carry_out(&self, action: &DiskAction, zeros: bool) -> Result<(), DeviceError> {
        match action {
            DiskAction::Read { offset, span, written } => {
                let wanted = written.span();
                let part =
                    Span { offset: span.offset + wanted.start, len: wanted.end - wanted.start };
                let read = self.transfer(false, *offset + wanted.start, part);
                if zeros {
                    zero_unwritten(&self.arena, *span, written);
                }
                read
            }
            DiskAction::Write { offset, span, .. } => self.transfer(true, *offset, *span),
            other => unreachable!("{other:?} is not taken"),
        }
    }
}

impl Here for InMemory {
    fn takes(&self, action: &DiskAction) -> Option<Bytes> {
        let is_one = |span: &Span, written: &Written| {
            written.covers(span.len) || written.runs().take(2).count() == 1
        };
        let span = match action {
            DiskAction::Read { span, written, .. } if is_one(span, written) => span,
            DiskAction::Write { span, .. } => span,
            _ => return None,
        };
        (regions(action).next().is_none() && span.len <= SHORT).then_some(span.len)
    }

    fn run(&self, commands: &[DiskCommand]) -> Vec<Completion> {
        let mut began = Began::now(false);
        let run = |command| {
            let (done, ended) = self.run_since(began, command, true);
            began = ended;
            done
        };
        commands.iter().map(run).collect()
    }
}

/// When a transfer begins, which may be when the one before it has ended.
#[derive(Clone, Copy)]
pub(super) struct Began {
    at: Instant,
    /// When the first of them did, and what its thread had had of a processor by then; none where it
    /// has to wait for no other one.
    first: Option<(Instant, Duration)>,
}

impl Began {
    /// `is_real_time`: the thread has real-time priority.
    pub(super) fn now(is_real_time: bool) -> Self {
        let at = sys::now();
        Self { at, first: (!is_real_time).then(|| (at, sys::thread_time())) }
    }

    /// What of the time until now was the device's, and when the next one begins. On a thread that
    /// may have to wait for a processor that is what it had of one; asking for that takes as long
    /// as a short transfer, so it is asked where one took long, about all since it was asked last: what
    /// short ones before it waited is taken from this one.
    fn ends(self, now: Instant, thread_time: impl FnOnce() -> Duration) -> (Duration, Self) {
        let (now, mut took, mut first) =
            (now.max(self.at), now.saturating_since(self.at), self.first);
        if let Some((since, had_then)) = first.filter(|_| took > LONG) {
            let had = thread_time();
            let waited = now.saturating_since(since).saturating_sub(had.saturating_sub(had_then));
            took = took.saturating_sub(waited);
            first = Some((now, had));
        }
        (took, Self { at: now, first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Surroundings;
    use node::{Blocks, CommandId};
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    fn of(path: &Path) -> Option<InMemory> {
        let file = Arc::new(File::open(path).unwrap());
        InMemory::of(&file, &Surroundings::alone().arena)
    }

    /// The nodes of devices lie in memory; most devices do not.
    #[test]
    fn a_device_is_not_in_memory_because_its_node_is() {
        assert!(of(Path::new("/dev/null")).is_none());
        let devices = std::fs::read_dir("/dev").unwrap().flatten();
        let blocks = devices.filter(|it| it.file_name().to_string_lossy().starts_with("loop"));
        for device in blocks.map(|it| it.path()).filter(|path| File::open(path).is_ok()) {
            assert!(of(&device).is_none(), "{}", device.display());
        }
    }

    #[test]
    fn a_file_in_memory_is_one_where_nothing_is_swapped() {
        let made = tempfile::Builder::new().prefix("slackline-").tempfile_in("/dev/shm").unwrap();
        let swaps = std::fs::read_to_string("/proc/swaps").unwrap();
        assert_eq!(of(made.path()).is_some(), swaps.lines().count() < 2, "{swaps}");
    }

    /// The thread waits 4 ms for a processor in the second of three transfers.
    #[test]
    fn what_its_thread_waits_for_a_processor_is_not_the_devices_time() {
        let us = Duration::from_micros;
        let at = |time| Instant::EPOCH + us(time);
        let began = Began { at: at(10), first: Some((at(10), us(700))) };
        let never = || panic!("not asked for where it was short");
        let (took, second) = began.ends(at(13), never);
        assert_eq!((took, second.at), (us(3), at(13)));
        let (took, third) = second.ends(at(4_018), || us(708));
        assert_eq!((took, third.at), (us(5), at(4_018)));
        let (took, _) = third.ends(at(4_020), never);
        assert_eq!(took, us(2));
        // A thread that waits for nobody: all of it is the device's.
        let began = Began { at: at(10), first: None };
        assert_eq!(began.ends(at(4_010), never).0, us(4_000));
    }

    #[test]
    fn what_is_short_and_plain_is_moved_or_fails_as_the_kernel_says() {
        let made = tempfile::Builder::new().prefix("slackline-").tempfile_in("/dev/shm").unwrap();
        made.as_file().write_all_at(&[9; 8192], 0).unwrap();
        let (arena, kib) = (Surroundings::alone().arena, Bytes::kib);
        // To be read only.
        let file = Arc::new(File::open(made.path()).unwrap());
        let here = InMemory { file, arena: Arc::clone(&arena) };
        let run = |action| {
            let command = DiskCommand {
                id: CommandId(1),
                action,
                predicted: Duration::ZERO,
                is_promised: false,
            };
            let [done] = here.run(&[command])[..] else { panic!("one ends") };
            assert!(done.started <= done.finished && done.finished <= done.noticed, "{done:?}");
            done.result
        };
        let span = Span { offset: Bytes::mib(1), len: kib(8) };
        let read = |offset, span, written: Blocks| DiskAction::Read {
            offset,
            span,
            written: written.into(),
        };
        // SAFETY: nobody else knows of the arena.
        unsafe { arena.pointer(span).write_bytes(5, 8192) };
        assert_eq!(run(read(Bytes::ZERO, span, Blocks::first(kib(4)))), Ok(()));
        // SAFETY: as above, and the command has ended.
        let got = unsafe { std::slice::from_raw_parts(arena.pointer(span), 8192) };
        assert!(got[..4096].iter().all(|&byte| byte == 9), "what was written");
        assert!(got[4096..].iter().all(|&byte| byte == 0), "and zeros");
        let beyond = read(kib(4), span, Blocks::first(kib(8)));
        assert_eq!(run(beyond), Err(DeviceError(libc::EIO)), "the file ends within it");
        let write = DiskAction::Write { offset: Bytes::ZERO, span, valid: kib(8) };
        assert_eq!(here.takes(&write), Some(kib(8)));
        assert_eq!(run(write), Err(DeviceError(libc::EBADF)));

        let long = Span { len: SHORT + kib(4), ..span };
        let parts = Blocks::first(kib(4)).union(&Blocks::of(&(kib(8)..kib(12))));
        for not in [
            DiskAction::Flush,
            read(Bytes::ZERO, long, Blocks::first(long.len)),
            read(Bytes::ZERO, Span { len: kib(16), ..span }, parts),
            DiskAction::Write { offset: Bytes::ZERO, span: long, valid: long.len },
        ] {
            assert_eq!(here.takes(&not), None, "{not:?}");
        }
    }
}
