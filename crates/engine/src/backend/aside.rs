//! What needs no disk: reads of what was never written, beside the disk's thread, and copies.
//!
//! A copy is made by the disk's thread, since a contract may be waiting for it; the node sees to it
//! that there are not many. It waits until the device has what else was started,
//! and the pool has heard what has ended. It is made in pieces of [`PIECE`], and after each one the
//! device is looked at: what has ended meanwhile is told, and the next command begun, no later than
//! a piece takes.
//!
//! The memory of a read of what was never written is filled with zeros, by the
//! disk's thread where that is little. That thread has real-time priority, and such reads are under no contract's budget, so
//! that whoever asked for many of them would have it, the processor that it runs on, and the time
//! between the commands of others. What is more than [`RATE`] is therefore filled by an ordinary
//! thread.
//!
//! Invariants: what else a disk is asked for goes to it as it comes; a read that is filled aside
//! ends once, after its memory was filled; time is an argument of the decision.

use super::{Backend, Completion, Surroundings, copy, zero_unwritten};
use crate::lock::{Fatal, Mutex};
use crate::sys;
use node::{CommandId, DiskAction, DiskCommand, Span, Written};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use units::{Bytes, Instant, Rate};

/// So much is filled by the disk's thread in each second: less than a quarter of the time of a
/// processor that fills 4 GiB in it.
const RATE: Rate = Rate::per_second(1 << 30);
/// So much at once: the longest block of a stream.
const AT_ONCE: Bytes = node::limits::BLOCK_MAX;
/// So much is copied before the device is looked at again: some ten microseconds, as what a disk's
/// thread does between two commands takes.
const PIECE: Bytes = Bytes::kib(64);
/// Less is not worth another thread.
const LITTLE: Bytes = Bytes::kib(64);

/// A read to be filled.
struct Hole {
    id: CommandId,
    started: Instant,
    span: Span,
    written: Written,
}

/// A disk, and the thread that fills what needs none.
pub(crate) struct Aside<B> {
    disk: B,
    around: Surroundings,
    /// What the disk's thread may still fill, as of then.
    left: Bytes,
    at: Instant,
    /// From the first read that was too much on; none where there is no such thread.
    thread: Option<Option<Sender<Hole>>>,
    /// Copies that the disk's thread makes when it has nothing else to do.
    copies: VecDeque<DiskCommand>,
    filled: Arc<Mutex<Vec<Completion>>>,
    /// That the thread has.
    outside: usize,
}

impl<B: Backend> Aside<B> {
    pub(crate) fn new(disk: B, around: Surroundings) -> Self {
        let (left, at) = (AT_ONCE, Instant::EPOCH);
        let (copies, filled) = (VecDeque::new(), Arc::default());
        Self { disk, around, left, at, thread: None, copies, filled, outside: 0 }
    }

    /// Whether the disk's thread fills so much more now.
    fn fills(&mut self, now: Instant, len: Bytes) -> bool {
        let back = RATE.bytes_in(now.saturating_since(self.at));
        self.left = self.left.saturating_add(back).min(AT_ONCE);
        self.at = self.at.max(now);
        let does = len <= self.left;
        if does {
            self.left -= len;
        }
        does
    }

    /// `now` says what time it is, where it matters: clocks are slow in some virtual machines.
    fn start_at(&mut self, now: impl FnOnce() -> Instant, command: DiskCommand) {
        let (span, written) = match &command.action {
            DiskAction::Read { span, written, .. } if written.is_empty() && span.len > LITTLE => {
                (*span, written.clone())
            }
            DiskAction::Copy { .. } => return self.copies.push_back(command),
            _ => return self.disk.start(command),
        };
        let now = now();
        if self.fills(now, span.len) {
            return self.disk.start(command);
        }
        let around = &self.around;
        let filled = &self.filled;
        let thread = self.thread.get_or_insert_with(|| begin(around.clone(), Arc::clone(filled)));
        let hole = Hole { id: command.id, started: now, span, written };
        match thread.as_ref().map(|thread| thread.send(hole)) {
            Some(Ok(())) => self.outside += 1,
            // There is none.
            _ => self.disk.start(command),
        }
    }
}

/// Takes the first piece off a copy: from where, and to where. None where there is no more than that.
fn first_piece(command: &mut DiskCommand) -> Option<[Span; 2]> {
    let DiskAction::Copy { from, span, .. } = &mut command.action else { return None };
    if span.len <= PIECE {
        return None;
    }
    let ([near, far], [to, far_to]) = (from.cut(PIECE), span.cut(PIECE));
    (*from, *span) = (far, far_to);
    Some([near, to])
}

/// The thread, where the system has one. It ends with what sends to it.
fn begin(around: Surroundings, filled: Arc<Mutex<Vec<Completion>>>) -> Option<Sender<Hole>> {
    let (sender, holes) = channel();
    let thread = std::thread::Builder::new().name("slackline-zeros".into());
    thread.spawn(move || fill(&holes, &around, &filled)).ok().map(|_| sender)
}

fn fill(holes: &Receiver<Hole>, around: &Surroundings, filled: &Mutex<Vec<Completion>>) {
    let _fatal = Fatal::new("in the thread that fills with zeros");
    // A disk's thread has started it. To have less is always permitted.
    let _ = sys::become_ordinary();
    for Hole { id, started, span, written } in holes {
        zero_unwritten(&around.arena, span, &written);
        filled.lock().push(Completion::of(id, started, sys::now().max(started), Ok(())));
        around.event.signal();
    }
}

impl<B: Backend> Backend for Aside<B> {
    fn start(&mut self, command: DiskCommand) {
        self.start_at(sys::now, command);
    }

    fn submit(&mut self) {
        self.disk.submit();
    }

    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        let until = match self.copies.pop_front() {
            Some(mut command) => {
                // The device works meanwhile.
                self.disk.submit();
                match first_piece(&mut command) {
                    Some([from, span]) => {
                        copy(&self.around.arena, from, span);
                        self.copies.push_front(command);
                    }
                    None => self.disk.start(command),
                }
                Some(sys::now())
            }
            None => until,
        };
        // Who has filled something since the last look has signalled it, too.
        self.disk.wait(until, done);
        let filled = std::mem::take(&mut *self.filled.lock());
        self.outside -= filled.len();
        done.extend(filled);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.copies.len() + self.outside
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use store::Blocks;
    use units::Duration;

    /// A disk that is done with everything at once.
    struct Quick(Surroundings, Vec<CommandId>);

    impl Backend for Quick {
        fn start(&mut self, command: DiskCommand) {
            self.1.push(command.id);
        }
        fn submit(&mut self) {}
        fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
            if self.1.is_empty() {
                self.0.event.wait(until.map(|until| until.saturating_since(sys::now())));
            }
            let now = Instant::EPOCH;
            done.extend(self.1.drain(..).map(|id| Completion::of(id, now, now, Ok(()))));
        }
        fn in_flight(&self) -> usize {
            self.1.len()
        }
    }

    fn aside() -> Aside<Quick> {
        let around = Surroundings::alone();
        Aside::new(Quick(around.clone(), Vec::new()), around)
    }

    fn read(id: u64, span: Span, written: Blocks) -> DiskCommand {
        let action = DiskAction::Read { offset: Bytes::ZERO, span, written: written.into() };
        DiskCommand { id: CommandId(id), action, predicted: Duration::ZERO, is_promised: false }
    }

    fn hole(id: u64) -> DiskCommand {
        read(id, Span { offset: Bytes::mib(id % 16), len: Bytes::MIB }, Blocks::NONE)
    }

    /// What comes at once is the disk's thread's up to a bound, and again what has come back
    /// with time; all of it ends.
    #[test]
    fn more_zeros_than_the_disks_thread_may_fill_are_filled_aside() {
        let mut disk = aside();
        let last = Span { offset: Bytes::mib(15), len: Bytes::MIB };
        // SAFETY: nobody else knows of the arena yet.
        unsafe { disk.around.arena.pointer(last).write_bytes(7, Bytes::MIB.as_usize()) };
        let at_once = AT_ONCE / Bytes::MIB;
        let all = at_once + 16;
        (0..all).for_each(|id| disk.start_at(|| Instant::EPOCH, hole(id)));
        let mine = at_once as usize;
        assert_eq!((disk.disk.1.len(), disk.outside, disk.in_flight()), (mine, 16, mine + 16));
        let mut done = Vec::new();
        while done.len() < mine + 16 {
            disk.wait(None, &mut done);
        }
        assert_eq!(disk.in_flight(), 0);
        let mut ended: Vec<u64> = done.iter().map(|done| done.id.0).collect();
        ended.sort_unstable();
        assert!(ended.into_iter().eq(0..all), "each ends once");
        // SAFETY: every command has ended.
        let memory = unsafe {
            std::slice::from_raw_parts(disk.around.arena.pointer(last), Bytes::MIB.as_usize())
        };
        assert!(memory.iter().all(|&byte| byte == 0));
        // 4 MiB and 4 KiB have come back.
        let later = Instant::EPOCH + Duration::from_nanos(3_910_000);
        (all..all + 8).for_each(|id| disk.start_at(|| later, hole(id)));
        assert_eq!((disk.disk.1.len(), disk.outside), (4, 4));
        while disk.in_flight() > 0 {
            disk.wait(None, &mut done);
        }
    }

    fn copy_of(id: u64, from: Span, to: u64) -> DiskCommand {
        let span = Span { offset: Bytes::mib(to), ..from };
        let written = Blocks::NONE.into();
        let action = DiskAction::Copy { from, offset: Bytes::ZERO, span, written };
        DiskCommand { id: CommandId(id), action, predicted: Duration::ZERO, is_promised: false }
    }

    /// Copies wait until the device has its commands, and until the pool has heard of what has ended:
    /// they are made one at a time, each before the thread would sleep, however many there are; and
    /// piece by piece, between which the device is looked at.
    #[test]
    fn copies_are_made_one_at_a_time_when_the_device_has_its_commands() {
        let mut disk = aside();
        let from = Span { offset: Bytes::mib(15), len: PIECE };
        (0..18).for_each(|id| disk.start_at(|| Instant::EPOCH, copy_of(id, from, id % 8)));
        disk.start_at(|| Instant::EPOCH, read(18, from, Blocks::first(Bytes::kib(4))));
        disk.submit();
        assert_eq!((disk.disk.1.as_slice(), disk.in_flight()), (&[CommandId(18)][..], 19));
        let mut done = Vec::new();
        disk.wait(None, &mut done);
        assert_eq!(done.drain(..).map(|done| done.id.0).collect::<Vec<_>>(), [18, 0]);
        for id in 1..18 {
            disk.wait(None, &mut done);
            assert_eq!(done.drain(..).map(|done| done.id.0).collect::<Vec<_>>(), [id]);
        }
        assert_eq!((disk.in_flight(), disk.outside), (0, 0));
    }

    /// What the device ends while a long copy is made is told after the next piece, not after the
    /// copy; the bytes all come.
    #[test]
    fn the_device_is_looked_at_between_the_pieces_of_a_copy() {
        let mut disk = aside();
        let from = Span { offset: Bytes::mib(15), len: PIECE * 3 + Bytes::kib(4) };
        let pointer =
            |disk: &Aside<Quick>, at| disk.around.arena.pointer(Span { offset: at, ..from });
        // SAFETY: nobody else knows of the arena yet.
        unsafe { pointer(&disk, from.offset).write_bytes(7, from.len.as_usize()) };
        disk.start_at(|| Instant::EPOCH, copy_of(0, from, 2));
        let mut done = Vec::new();
        for id in 1..4 {
            disk.start_at(|| Instant::EPOCH, read(id, from, Blocks::first(Bytes::kib(4))));
            disk.wait(None, &mut done);
            assert_eq!(done.drain(..).map(|done| done.id.0).collect::<Vec<_>>(), [id]);
        }
        disk.wait(None, &mut done);
        assert_eq!(done.drain(..).map(|done| done.id.0).collect::<Vec<_>>(), [0]);
        assert_eq!(disk.in_flight(), 0);
        // `Quick` does not make what it is given, so that the last piece is not there.
        // SAFETY: every command has ended.
        let copied = unsafe {
            std::slice::from_raw_parts(pointer(&disk, Bytes::mib(2)), (PIECE * 3).as_usize())
        };
        assert!(copied.iter().all(|&byte| byte == 7));
    }

    /// What the disk is needed for, and what is little, goes to it whatever there was before.
    #[test]
    fn other_commands_go_to_the_disk() {
        let mut disk = aside();
        (0..20).for_each(|id| disk.start_at(|| Instant::EPOCH, hole(id)));
        let before = disk.disk.1.len();
        let span = Span { offset: Bytes::ZERO, len: Bytes::MIB };
        disk.start_at(|| Instant::EPOCH, read(20, span, Blocks::first(Bytes::kib(4))));
        disk.start_at(|| Instant::EPOCH, read(21, Span { len: LITTLE, ..span }, Blocks::NONE));
        assert_eq!(disk.disk.1.len(), before + 2);
        let mut done = Vec::new();
        while disk.in_flight() > 0 {
            disk.wait(None, &mut done);
        }
    }
}
