//! A file or a block device through io_uring.
//!
//! Invariants: the ring is made, used and dropped by one thread; every entry in
//! the kernel's hands has a place in `slots` that keeps its memory alive, and the
//! ring is not dropped before all of them have ended.
#![allow(unsafe_code)]

use super::here::{Began, Here, InMemory};
use super::transfer::{self, After, RUNS_MAX, SINK};
use super::{Backend, Completion, LeavesHoles, Scattered, Stage, Surroundings};
use super::{copy, merge, spread, zero_unwritten};
use crate::aligned::Aligned;
use crate::arena::Arena;
use crate::run_delay::RunDelay;
use crate::sys;
use io_uring::{IoUring, opcode, squeue, types};
use node::{CommandId, DeviceError, DiskAction, DiskCommand, Span, Written};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use units::{Bytes, Direction, Duration, Instant};

/// The device is the only registered file.
const DEVICE: types::Fixed = types::Fixed(0);

/// Marks the entry that waits for the event; commands have smaller numbers.
const EVENT: u64 = u64::MAX;

/// How many ends are taken at a time. The commands that follow from them go to
/// the device before the next are looked at, so that it does not run dry while a
/// long row of ends is dealt with. With 8, random reads of 4 KiB at depth 32 were a few
/// percent slower than with 4; with 2 each took more processor time.
const ENDS_AT_ONCE: usize = 4;

/// Where a command's bytes are.
enum Memory {
    /// A span of the arena or of a region.
    Span(Span),
    /// These blocks of a span, and the sink for what lies between them.
    Parts { span: Span, written: Written, vector: Vec<libc::iovec> },
    /// Spans of the arena, one behind the other.
    Spans { spans: Vec<Span>, vector: Vec<libc::iovec> },
    /// A copy, for metadata and for blocks that are merged.
    Copy(Aligned),
    /// A flush has none.
    None,
}

/// What is left to do when the device is done.
enum Then {
    Nothing,
    /// Fill what these do not have with zeros.
    Zero(Span, Written),
    /// Put what these have of the bytes that were read, which begin with their first, into
    /// place, and fill the rest with zeros; or leave both to others.
    Spread(Span, Written, Zeros),
    /// Put the block that was read around what is kept.
    Merge(Span, Range<Bytes>, Bytes),
}

/// Who fills what a read leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zeros {
    Ours,
    Others,
}

/// A command in the kernel's hands.
struct Slot {
    id: CommandId,
    started: Instant,
    /// What to do once it is read.
    then: Then,
    write: bool,
    memory: Memory,
    offset: Bytes,
    len: usize,
    /// Moved so far: a transfer may come back short.
    done: usize,
}

/// A ring over one device.
pub(crate) struct Uring {
    ring: IoUring,
    /// Keeps the descriptor open that is registered with the ring.
    file: Arc<File>,
    around: Surroundings,
    /// Where the kernel puts the event's count.
    count: Box<u64>,
    waiting_for_event: bool,
    registered: bool,
    /// Where bytes go that nobody may see: never read.
    sink: Aligned,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    at_once: Vec<Completion>,
    /// What was read and others put into place.
    read: Vec<(CommandId, Scattered)>,
    /// When the first command was queued that is not with the kernel yet: the
    /// clock is read once for all that go there together.
    queued: Option<Instant>,
    /// The latest instant by which all that had ended was noticed.
    clear: Instant,
    /// Ends were left in the ring when it was last looked at.
    is_left_over: bool,
    /// What lies in the ring ended after this, as far as is known.
    ended_after: Instant,
    run_delay: RunDelay,
    /// What this thread does itself.
    here: Option<InMemory>,
    /// When the last of these ended, where the thread has done nothing else since.
    carried_out: Option<Began>,
    /// The thread has real-time priority, so that what it does takes no longer than that.
    is_real_time: bool,
    /// The most bytes that one entry asks for, so that transfers come back short.
    #[cfg(test)]
    at_most: usize,
}

impl Uring {
    /// A ring for up to `depth` commands at a time; what the system did not
    /// permit is told in `warnings`.
    pub(crate) fn new(
        file: Arc<File>,
        depth: u32,
        around: Surroundings,
        warnings: &mut Vec<String>,
    ) -> io::Result<Self> {
        // One more for the event. Metadata never waits behind a full ring, since
        // the schedule counts it in the depth.
        let entries = (depth + 1).next_power_of_two().max(8);
        let ring = make_ring(entries)?;
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        // SAFETY: the pieces are the arena's own memory, which outlives the ring:
        // the arena is dropped after `ring`, the fields being dropped in order.
        let registered = unsafe { ring.submitter().register_buffers(&around.arena.pieces()) };
        if let Err(error) = &registered {
            warnings.push(format!(
                "the arena is not registered with the kernel ({error}), which costs processor time \
                 on each transfer; raise the limit of locked memory (systemd: \
                 LimitMEMLOCK=infinity, shell: ulimit -l)"
            ));
        }
        let here = InMemory::of(&file, &around.arena);
        Ok(Self {
            ring,
            file,
            here,
            carried_out: None,
            is_real_time: sys::is_real_time(),
            around,
            count: Box::new(0),
            waiting_for_event: false,
            registered: registered.is_ok(),
            sink: Aligned::zeroed(Bytes::new(SINK as u64)),
            slots: Vec::new(),
            free: Vec::new(),
            at_once: Vec::new(),
            read: Vec::new(),
            queued: None,
            clear: Instant::EPOCH,
            is_left_over: false,
            ended_after: Instant::EPOCH,
            run_delay: RunDelay::of_this_thread(warnings),
            #[cfg(test)]
            at_most: usize::MAX,
        })
    }

    fn insert(&mut self, slot: Slot) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(slot);
        self.queue_slot(at);
    }

    /// Puts what is left of a slot's transfer into the queue.
    fn queue_slot(&mut self, at: usize) {
        let slot = self.slots[at].as_mut().expect("a slot in use");
        if let Memory::Parts { span, written, vector } = &mut slot.memory {
            let memory = self.around.arena.pointer(*span);
            *vector = transfer::parts(memory, written, slot.done, self.sink.as_ptr().cast_mut());
            #[cfg(test)]
            transfer::cut(vector, self.at_most);
        }
        if let Memory::Spans { spans, vector } = &mut slot.memory {
            let arena = &self.around.arena;
            let spans = spans.iter().map(|&span| (arena.pointer(span), span.len.as_usize()));
            *vector = transfer::left(spans, slot.done);
            #[cfg(test)]
            transfer::cut(vector, self.at_most);
        }
        let slot = self.slots[at].as_ref().expect("a slot in use");
        let entry = self.entry(slot).user_data(at as u64);
        self.queue(&entry);
    }

    fn queue(&mut self, entry: &squeue::Entry) {
        // SAFETY: an entry of `entry` points into memory that its slot keeps (the
        // arena or the copy) until it has ended, or into a region, which is kept while a
        // command is under way in it; the event's, to `count`.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.enter(0, None);
        }
    }

    fn entry(&self, slot: &Slot) -> squeue::Entry {
        let (left, at) = ((slot.len - slot.done) as u32, slot.offset.get() + slot.done as u64);
        #[cfg(test)]
        let left = left.min(self.at_most.min(u32::MAX as usize) as u32);
        let (memory, piece) = match &slot.memory {
            Memory::None => {
                return opcode::Fsync::new(DEVICE).flags(types::FsyncFlags::DATASYNC).build();
            }
            Memory::Parts { vector, .. } => {
                let (parts, count) = (vector.as_ptr(), vector.len() as u32);
                return opcode::Readv::new(DEVICE, parts, count).offset(at).build();
            }
            Memory::Spans { vector, .. } => {
                let (parts, count) = (vector.as_ptr(), vector.len() as u32);
                return match slot.write {
                    true => opcode::Writev::new(DEVICE, parts, count).offset(at).build(),
                    false => opcode::Readv::new(DEVICE, parts, count).offset(at).build(),
                };
            }
            // A write only reads the copy; the kernel's interface has one pointer for both.
            Memory::Copy(copy) => (copy.as_ptr().cast_mut(), None),
            Memory::Span(span) => {
                (self.around.arena.pointer(*span), self.around.arena.piece(*span))
            }
        };
        let memory = memory.wrapping_add(slot.done);
        match (slot.write, piece.filter(|_| self.registered)) {
            (false, Some(piece)) => {
                opcode::ReadFixed::new(DEVICE, memory, left, piece).offset(at).build()
            }
            (false, None) => opcode::Read::new(DEVICE, memory, left).offset(at).build(),
            (true, Some(piece)) => {
                opcode::WriteFixed::new(DEVICE, memory, left, piece).offset(at).build()
            }
            (true, None) => opcode::Write::new(DEVICE, memory, left).offset(at).build(),
        }
    }

    /// Carries a command out itself, where the device is such a one.
    fn carries_out(&mut self, command: &DiskCommand, zeros: Zeros) -> bool {
        if self.here.as_ref().is_none_or(|here| here.takes(&command.action).is_none()) {
            return false;
        }
        if self.queued.is_some() {
            self.enter(0, None); // what came before begins before
        }
        let Some(here) = &self.here else { return false };
        // Clocks are slow in some virtual machines: one end is the next one's beginning.
        let began = self.carried_out.unwrap_or_else(|| Began::now(self.is_real_time));
        let (done, ended) = here.run_since(began, command, zeros == Zeros::Ours);
        self.carried_out = Some(ended);
        self.at_once.push(done);
        true
    }

    /// The end of a command that needs no device.
    fn end_at_once(&mut self, id: CommandId, at: Instant) {
        self.at_once.push(Completion::of(id, at, at, Ok(())));
    }

    fn queue_event(&mut self) {
        if !self.waiting_for_event {
            self.waiting_for_event = true;
            let event = types::Fd(self.around.event.as_raw_fd());
            let count: *mut u64 = &mut *self.count;
            let entry = opcode::Read::new(event, count.cast(), 8).build().user_data(EVENT);
            self.queue(&entry);
        }
    }

    /// Hands the queue to the kernel and waits for `want` ends, or until the
    /// time is over; true where it was over first.
    fn enter(&mut self, want: usize, until: Option<Instant>) -> bool {
        self.queued = None;
        let queue = self.ring.submission();
        if want == 0 && queue.is_empty() && !queue.taskrun() {
            return false;
        }
        drop(queue);
        let left = until.map(|until| until.saturating_since(sys::now()).as_nanos());
        let time = left.map(|ns| {
            types::Timespec::new().sec(ns / 1_000_000_000).nsec((ns % 1_000_000_000) as u32)
        });
        let result = match &time {
            Some(time) if want > 0 => {
                let arguments = types::SubmitArgs::new().timespec(time);
                self.ring.submitter().submit_with_args(want, &arguments)
            }
            _ => self.ring.submitter().submit_and_wait(want),
        };
        match result {
            Ok(_) => false,
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME) => true,
                // Interrupted, or out of resources for a moment: whoever waits comes again.
                Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => false,
                _ => panic!("io_uring_enter: {error}"),
            },
        }
    }

    /// Whether the device has ended something that was not looked at: in the ring, or still
    /// with the kernel, which puts it there when this thread calls next.
    fn has_ends(&mut self) -> bool {
        !self.ring.completion().is_empty() || self.ring.submission().taskrun()
    }

    /// Nothing had ended by `looked`: sleeps until something has. What wakes the thread ended
    /// after `looked`, and before the thread was ready to run.
    fn sleep(&mut self, looked: Instant, until: Option<Instant>) {
        let before = self.run_delay.total();
        let is_late = self.enter(1, until);
        let woken = sys::now();
        let delay = self.run_delay.total().saturating_sub(before);
        self.ended_after = ready_since(looked, woken, delay);
        if let (true, Some(until)) = (is_late, until) {
            self.around.lateness.lock().woken_late(woken.saturating_since(until));
        }
    }

    fn reap(&mut self, done: &mut Vec<Completion>) {
        if self.ring.completion().is_empty() {
            return;
        }
        let now = sys::now();
        // What goes on is put back into the queue, which needs the ring.
        let mut again = Vec::new();
        for ended in self.ring.completion().take(ENDS_AT_ONCE) {
            if ended.user_data() == EVENT {
                self.waiting_for_event = false;
                continue;
            }
            let at = ended.user_data() as usize;
            let slot = self.slots[at].as_mut().expect("ended once");
            let result = match transfer::after(ended.result(), slot.len - slot.done) {
                After::Again { moved } => {
                    slot.done += moved;
                    again.push(at);
                    continue;
                }
                After::Ended(result) => result,
            };
            let slot = self.slots[at].take().expect("looked at above");
            self.free.push(at);
            let (id, started) = (slot.id, slot.started);
            let finished = self.ended_after.clamp(started, now.max(started));
            let is_finished = matches!(slot.then, Then::Nothing);
            self.read.extend(finish(&self.around.arena, slot, result));
            // Whoever asked has it when this is done; clocks are slow in some virtual machines.
            let noticed = if is_finished { now } else { sys::now() }.max(started);
            let stage = Stage::Whole;
            done.push(Completion { id, started, finished, noticed, result, stage });
        }
        again.into_iter().for_each(|at| self.queue_slot(at));
    }

    fn begin(&mut self, command: DiskCommand, zeros: Zeros) {
        if let DiskAction::Copy { from, span, .. } = command.action {
            let started = sys::now();
            self.carried_out = None;
            copy(&self.around.arena, from, span);
            return self.end_at_once(command.id, started);
        }
        if self.carries_out(&command, zeros) {
            return;
        }
        self.carried_out = None;
        let (id, started) = (command.id, *self.queued.get_or_insert_with(sys::now));
        let slot = |write, memory, offset, len: Bytes, then| Slot {
            id,
            started,
            then,
            write,
            memory,
            offset,
            len: len.as_usize(),
            done: 0,
        };
        let slot = match command.action {
            DiskAction::Read { span, ref written, .. } if written.is_empty() => {
                zero_unwritten(&self.around.arena, span, written);
                return self.end_at_once(id, started);
            }
            DiskAction::Read { offset, span, written } => {
                let wanted = written.span();
                let len = wanted.end - wanted.start;
                let part = Span { offset: span.offset + wanted.start, len };
                let from = offset + wanted.start;
                let is_whole = zeros == Zeros::Others || written.covers(span.len);
                let then = match is_whole {
                    true => Then::Nothing,
                    false => Then::Zero(span, written.clone()),
                };
                match written.runs().take(RUNS_MAX + 1).count() {
                    1 => slot(false, Memory::Span(part), from, len, then),
                    runs if runs <= RUNS_MAX => {
                        let memory = Memory::Parts { span, written, vector: Vec::new() };
                        slot(false, memory, from, len, then)
                    }
                    _ => {
                        let copy = Memory::Copy(Aligned::zeroed(len));
                        slot(false, copy, from, len, Then::Spread(span, written, zeros))
                    }
                }
            }
            DiskAction::Copy { .. } => unreachable!("copied above"),
            DiskAction::Merge { span, keep, upto: Bytes::ZERO, .. } => {
                let mut zeros = Aligned::zeroed(span.len);
                merge(&self.around.arena, span, &keep, Bytes::ZERO, &mut zeros);
                return self.end_at_once(id, started);
            }
            DiskAction::Merge { offset, span, keep, upto } => {
                let block = Memory::Copy(Aligned::zeroed(span.len));
                slot(false, block, offset, span.len, Then::Merge(span, keep, upto))
            }
            DiskAction::Write { offset, span, .. } => {
                slot(true, Memory::Span(span), offset, span.len, Then::Nothing)
            }
            DiskAction::Several { offset, direction, spans } => {
                let len = spans.iter().map(|span| span.len).sum();
                let memory = Memory::Spans { spans, vector: Vec::new() };
                slot(direction == Direction::Write, memory, offset, len, Then::Nothing)
            }
            DiskAction::WriteBytes { offset, bytes } => {
                let copy = Aligned::copy_of(&bytes);
                let len = Bytes::new(bytes.len() as u64);
                slot(true, Memory::Copy(copy), offset, len, Then::Nothing)
            }
            DiskAction::Flush => slot(true, Memory::None, Bytes::ZERO, Bytes::ZERO, Then::Nothing),
        };
        self.insert(slot);
    }
}

/// Does what is left to do for a command that the device has ended, or says what others are to do.
fn finish(
    arena: &Arena,
    slot: Slot,
    result: Result<(), DeviceError>,
) -> Option<(CommandId, Scattered)> {
    match (slot.then, slot.memory) {
        (Then::Zero(span, written), _) => zero_unwritten(arena, span, &written),
        (Then::Spread(span, written, zeros), Memory::Copy(bytes)) if result.is_ok() => {
            let read = Scattered { bytes, span, written };
            if zeros == Zeros::Others {
                return Some((slot.id, read));
            }
            spread(arena, &read);
            zero_unwritten(arena, span, &read.written);
        }
        (Then::Merge(span, keep, upto), Memory::Copy(mut block)) if result.is_ok() => {
            merge(arena, span, &keep, upto, &mut block);
        }
        _ => {}
    }
    None
}

/// Since when a thread was ready to run that slept from `slept` on, runs again at `woken`, and
/// had to wait for a processor for `delay` meanwhile.
fn ready_since(slept: Instant, woken: Instant, delay: Duration) -> Instant {
    woken.saturating_sub(delay).max(slept)
}

/// The cheapest kind of ring that this kernel has.
fn make_ring(entries: u32) -> io::Result<IoUring> {
    let best = IoUring::builder()
        .setup_single_issuer()
        .setup_taskrun_flag()
        .setup_defer_taskrun() // Linux 6.1
        .build(entries);
    best.or_else(|_| IoUring::builder().build(entries))
}

impl LeavesHoles for Uring {
    fn start_leaving_holes(&mut self, command: DiskCommand) {
        self.begin(command, Zeros::Others);
    }

    fn take_read(&mut self) -> Vec<(CommandId, Scattered)> {
        std::mem::take(&mut self.read)
    }
}

impl Backend for Uring {
    fn start(&mut self, command: DiskCommand) {
        self.begin(command, Zeros::Ours);
    }

    fn submit(&mut self) {
        self.carried_out = None;
        self.enter(0, None);
    }

    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        self.carried_out = None;
        self.queue_event();
        let is_left_over = !self.ring.completion().is_empty() && self.is_left_over;
        let looked = sys::now();
        if !is_left_over {
            self.ended_after = self.clear;
        }
        if self.has_ends() || !self.at_once.is_empty() {
            self.enter(0, None);
        } else {
            self.sleep(looked, until);
        }
        if !is_left_over {
            self.clear = self.ended_after.max(looked);
        }
        done.append(&mut self.at_once);
        self.reap(done);
        self.is_left_over = !self.ring.completion().is_empty();
    }

    fn in_flight(&self) -> usize {
        self.at_once.len() + self.slots.len() - self.free.len()
    }
}

impl Drop for Uring {
    /// Waits until nothing is in the kernel's hands, the read of the event
    /// included, so that no memory is freed that the kernel still writes to.
    fn drop(&mut self) {
        let mut done = Vec::new();
        while self.in_flight() > self.at_once.len() || self.waiting_for_event {
            self.around.event.signal();
            self.enter(1, None);
            self.reap(&mut done);
        }
        // The kernel lets go of a ring's files some time after the ring is gone;
        // the lock is not to wait for that. If it fails, that is all that is lost.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::Blocks;
    use std::fs::OpenOptions;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};

    fn ring(direct: bool, write: bool) -> Uring {
        let made = tempfile::Builder::new().prefix("slackline-").tempfile().unwrap();
        made.as_file().set_len(8 << 20).unwrap();
        made.as_file().write_all_at(&[9; 8192], 1 << 20).unwrap();
        made.as_file().sync_all().unwrap();
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let file = OpenOptions::new().read(true).write(write).custom_flags(flags).open(made.path());
        Uring::new(Arc::new(file.unwrap()), 4, Surroundings::alone(), &mut Vec::new()).unwrap()
    }

    fn span(offset: Bytes, len: Bytes) -> Span {
        Span { offset, len }
    }

    impl Uring {
        /// The device through a descriptor of its own.
        fn file_without_ring(&self) -> File {
            File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd())).unwrap()
        }
    }

    fn run(ring: &mut Uring, actions: Vec<DiskAction>) -> Vec<Result<(), DeviceError>> {
        let count = actions.len();
        for (id, action) in actions.into_iter().enumerate() {
            let (id, predicted) = (CommandId(id as u64), Duration::ZERO);
            ring.start(DiskCommand { id, action, predicted, is_promised: false });
        }
        let mut done = Vec::new();
        while done.len() < count {
            ring.wait(None, &mut done);
        }
        done.sort_by_key(|completion| completion.id);
        done.into_iter().map(|completion| completion.result).collect()
    }

    fn memory(ring: &Uring, span: Span) -> &[u8] {
        // SAFETY: the tests look at memory only between commands.
        unsafe { std::slice::from_raw_parts(ring.around.arena.pointer(span), span.len.as_usize()) }
    }

    #[test]
    fn bytes_go_out_and_come_back_with_zeros_where_nothing_was_written() {
        let mut ring = ring(true, true);
        let offset = Bytes::mib(1);
        let read = span(Bytes::mib(2), Bytes::kib(16));
        let read =
            |written: Blocks| DiskAction::Read { offset, span: read, written: written.into() };
        assert_eq!(run(&mut ring, vec![read(Blocks::first(Bytes::kib(4)))]), [Ok(())]);
        let got = memory(&ring, span(Bytes::mib(2), Bytes::kib(16)));
        assert!(got[..4096].iter().all(|&byte| byte == 9));
        assert!(got[4096..].iter().all(|&byte| byte == 0));

        // The same memory out to another place, as it is: also what may be filled meanwhile.
        let out = span(Bytes::mib(2), Bytes::kib(8));
        let to = Bytes::mib(4);
        let write = DiskAction::Write { offset: to, span: out, valid: Bytes::new(4000) };
        assert_eq!(run(&mut ring, vec![write]), [Ok(())]);
        assert_eq!(run(&mut ring, vec![DiskAction::Flush]), [Ok(())]);
        let back = span(Bytes::mib(8), Bytes::kib(8));
        let again = DiskAction::Read {
            offset: to,
            span: back,
            written: Blocks::first(Bytes::kib(8)).into(),
        };
        assert_eq!(run(&mut ring, vec![again]), [Ok(())]);
        let got = memory(&ring, back);
        assert!(got[..4096].iter().all(|&byte| byte == 9));
        assert!(got[4096..].iter().all(|&byte| byte == 0));
    }

    /// Blocks with holes between them, in one transfer; and, from each place on, after a
    /// transfer that came back short.
    #[test]
    fn what_lies_between_written_blocks_never_comes_into_memory() {
        let mut ring = ring(true, true);
        let old = vec![5u8; 256 << 10];
        let offset = Bytes::mib(2);
        let fill = DiskAction::WriteBytes { offset, bytes: old };
        assert_eq!(run(&mut ring, vec![fill]), [Ok(())]);
        let kib = |from, to| Blocks::of(&(Bytes::kib(from)..Bytes::kib(to)));
        let written = kib(8, 12).union(&kib(20, 24)).union(&kib(120, 200)).union(&kib(252, 256));
        let place = span(Bytes::mib(4), Bytes::kib(256));
        let read = || DiskAction::Read { offset, span: place, written: written.into() };
        assert_eq!(run(&mut ring, vec![read()]), [Ok(())]);
        let wanted: Vec<u8> = (0..64)
            .flat_map(|block| {
                [if written.covers(&(Bytes::kib(4 * block)..Bytes::kib(4 * block + 4))) {
                    5
                } else {
                    0
                }; 4096]
            })
            .collect();
        assert!(memory(&ring, place) == wanted);

        let (memory, sink) = (4096 as *mut u8, 2 as *mut u8);
        for done in (0..248 << 10).step_by(512) {
            let vector = transfer::parts(memory, &written.into(), done, sink);
            let mut at = (8 << 10) + done;
            for part in &vector {
                if part.iov_base == sink.cast() {
                    assert!(wanted[at..at + part.iov_len].iter().all(|&byte| byte == 0));
                } else {
                    assert_eq!(part.iov_base as usize, 4096 + at);
                    assert!(wanted[at..at + part.iov_len].iter().all(|&byte| byte == 5));
                }
                at += part.iov_len;
            }
            assert_eq!(at, 256 << 10, "all of it, from where it stopped");
        }
    }

    /// Five extents in one transfer, of which every other block was written, from the second on:
    /// more pieces than the 1,024 that the kernel takes in one vector. Then all blocks but one of
    /// each, in one vector.
    #[test]
    fn a_long_read_leaves_out_what_was_never_written_of_it() {
        let mut ring = ring(true, true);
        let offset = Bytes::mib(2);
        for mib in 0..5 {
            let (offset, bytes) = (offset + Bytes::mib(mib), vec![5 + mib as u8; 1 << 20]);
            let fill = DiskAction::WriteBytes { offset, bytes };
            assert_eq!(run(&mut ring, vec![fill]), [Ok(())]);
        }
        let block = |n: u64| Blocks::of(&(Bytes::kib(4 * n)..Bytes::kib(4 * n + 4)));
        let every_other = (0..128).fold(Blocks::NONE, |all, n| all.union(&block(2 * n + 1)));
        let all_but_one = Blocks::first(Bytes::MIB).without(&block(77));
        for of_each in [every_other, all_but_one] {
            let mut written = Written::from(of_each);
            (0..4).for_each(|_| written.push(of_each));
            let place = span(Bytes::mib(8), Bytes::mib(5));
            let read = DiskAction::Read { offset, span: place, written };
            let dirty = DiskAction::Read {
                offset: Bytes::mib(1),
                span: span(place.offset, Bytes::kib(8)),
                written: Blocks::first(Bytes::kib(8)).into(),
            };
            assert_eq!(run(&mut ring, vec![dirty]), [Ok(())]);
            assert_eq!(run(&mut ring, vec![read]), [Ok(())]);
            let got = memory(&ring, place);
            for (n, bytes) in (0u64..).zip(got.chunks(4096)) {
                let has = of_each.covers(&(Bytes::kib(n % 256 * 4)..Bytes::kib(n % 256 * 4 + 4)));
                let want = if has { 5 + (n / 256) as u8 } else { 0 };
                assert!(bytes.iter().all(|&byte| byte == want), "block {n}");
            }
        }
    }

    /// What the device moved only a part of goes on behind that part, in memory and on the
    /// device, however often: each sector says where it belongs.
    #[test]
    fn what_comes_back_short_goes_on_where_it_stopped() {
        let sector = |at: usize| [(at / 512) as u32, 0xa5a5_5a5a].map(u32::to_le_bytes).concat();
        let stamped = |len: usize| -> Vec<u8> {
            (0..len).step_by(512).flat_map(|at| sector(at).repeat(64)).collect()
        };
        for at_most in [512, 1536, 4096, 20 << 10, 100 << 10] {
            let mut ring = ring(true, true);
            let (len, offset) = (Bytes::kib(256), Bytes::mib(2));
            // By a copy, and from the arena to another place.
            ring.at_most = at_most;
            let bytes = stamped(len.as_usize());
            let copy = DiskAction::WriteBytes { offset, bytes: bytes.clone() };
            assert_eq!(run(&mut ring, vec![copy]), [Ok(())]);
            let mut found = vec![0; len.as_usize()];
            ring.file_without_ring().read_exact_at(&mut found, offset.get()).unwrap();
            assert!(found == bytes, "written by a copy, {at_most} bytes at a time");

            let place = span(Bytes::mib(4), len);
            let read =
                |written: Blocks| DiskAction::Read { offset, span: place, written: written.into() };
            assert_eq!(run(&mut ring, vec![read(Blocks::first(len))]), [Ok(())]);
            assert!(memory(&ring, place) == bytes, "read, {at_most} bytes at a time");
            let to = Bytes::mib(5);
            let write = DiskAction::Write { offset: to, span: place, valid: len };
            assert_eq!(run(&mut ring, vec![write]), [Ok(())]);
            ring.file_without_ring().read_exact_at(&mut found, to.get()).unwrap();
            assert!(found == bytes, "written from memory, {at_most} bytes at a time");

            // Into several pieces of memory that lie apart, in another order, and out of them.
            let places = [(192, 64), (0, 4), (100, 60)];
            let spans =
                places.map(|(at, len)| span(Bytes::mib(8) + Bytes::kib(at), Bytes::kib(len)));
            let several = |offset, direction| DiskAction::Several {
                offset,
                direction,
                spans: spans.to_vec(),
            };
            assert_eq!(run(&mut ring, vec![several(offset, Direction::Read)]), [Ok(())]);
            let got: Vec<u8> = spans.iter().flat_map(|&one| memory(&ring, one)).copied().collect();
            assert!(got == bytes[..128 << 10], "read apart, {at_most} bytes at a time");
            let to = Bytes::mib(6);
            assert_eq!(run(&mut ring, vec![several(to, Direction::Write)]), [Ok(())]);
            ring.file_without_ring().read_exact_at(&mut found, to.get()).unwrap();
            assert!(found[..128 << 10] == got, "written from apart, {at_most} bytes at a time");

            let kib = |from, to| Blocks::of(&(Bytes::kib(from)..Bytes::kib(to)));
            let written = kib(0, 12).union(&kib(20, 120)).union(&kib(124, 256));
            assert_eq!(run(&mut ring, vec![read(written)]), [Ok(())]);
            let mut wanted = bytes.clone();
            wanted[12 << 10..20 << 10].fill(0);
            wanted[120 << 10..124 << 10].fill(0);
            assert!(memory(&ring, place) == wanted, "read with holes, {at_most} at a time");

            let block = span(Bytes::mib(4) + Bytes::kib(64), Bytes::kib(4));
            let keep = Bytes::new(100)..Bytes::new(300);
            let merge = DiskAction::Merge { offset, span: block, keep, upto: Bytes::new(4000) };
            assert_eq!(run(&mut ring, vec![merge]), [Ok(())]);
            let mut wanted = bytes[..4096].to_vec();
            wanted[4000..].fill(0);
            wanted[100..300].copy_from_slice(&bytes[(64 << 10) + 100..(64 << 10) + 300]);
            assert!(memory(&ring, block) == wanted, "merged, {at_most} at a time");
        }
    }

    #[test]
    fn a_block_is_merged_around_what_is_kept_of_it() {
        let mut ring = ring(true, true);
        let place = span(Bytes::mib(3), Bytes::kib(4));
        let keep = Bytes::new(100)..Bytes::new(300);
        for upto in [4096, 4000, 200, 0] {
            let ones = DiskAction::WriteBytes { offset: Bytes::mib(5), bytes: vec![1; 4096] };
            let load = DiskAction::Read {
                offset: Bytes::mib(5),
                span: place,
                written: Blocks::first(place.len).into(),
            };
            assert_eq!(run(&mut ring, vec![ones]), [Ok(())]);
            assert_eq!(run(&mut ring, vec![load]), [Ok(())]);
            let (offset, keep) = (Bytes::mib(1), keep.clone());
            let merge =
                DiskAction::Merge { offset, span: place, keep, upto: Bytes::new(upto as u64) };
            assert_eq!(run(&mut ring, vec![merge]), [Ok(())]);
            let got = memory(&ring, place);
            let wanted = |at| match at {
                100..300 => 1,
                at if at < upto => 9,
                _ => 0,
            };
            assert!(got.iter().enumerate().all(|(at, &byte)| byte == wanted(at)), "up to {upto}");
        }
    }

    #[test]
    fn more_commands_than_the_ring_has_entries_all_end() {
        let mut ring = ring(false, true);
        let bytes = vec![3u8; 4096];
        let writes = (0..100u64)
            .map(|n| DiskAction::WriteBytes { offset: Bytes::kib(4) * n, bytes: bytes.clone() });
        assert_eq!(run(&mut ring, writes.collect()), [Ok(()); 100]);
        assert_eq!(ring.in_flight(), 0);
    }

    /// The thread is busy with something else when the device ends: by the time that it looks
    /// again nobody knows how long that is ago, and the time since it last looked is not the
    /// device's. What a promise is held against is when it was noticed.
    #[test]
    fn what_a_busy_thread_notices_late_is_not_the_device_s_time() {
        let mut ring = ring(false, true);
        let mut done = Vec::new();
        // The event's own entry goes to the kernel first.
        ring.wait(Some(sys::now()), &mut done);
        let bytes = vec![3u8; 4096];
        for id in [1, 2] {
            let action = DiskAction::WriteBytes { offset: Bytes::kib(4), bytes: bytes.clone() };
            let (id, predicted) = (CommandId(id), Duration::ZERO);
            ring.start(DiskCommand { id, action, predicted, is_promised: false });
            ring.submit();
            let submitted = sys::now();
            // Busy, until the device must have ended.
            while !ring.has_ends() {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
            let looked = sys::now();
            while done.is_empty() {
                ring.wait(None, &mut done);
            }
            let Completion { started, finished, noticed, .. } = done.pop().expect("it has ended");
            assert!(started <= finished && finished <= submitted, "{finished} and {submitted}");
            assert!(noticed >= looked, "{noticed} and {looked}");
        }
    }

    #[test]
    fn what_a_sleeping_thread_waits_for_a_processor_is_not_the_device_s_time() {
        let at = |us| Instant::EPOCH + Duration::from_micros(us);
        let us = Duration::from_micros;
        assert_eq!(ready_since(at(100), at(700), us(0)), at(700));
        assert_eq!(ready_since(at(100), at(700), us(250)), at(450));
        assert_eq!(ready_since(at(100), at(700), us(9_000)), at(100), "it slept until then");
    }

    #[test]
    fn a_device_that_refuses_is_the_commands_error() {
        let mut ring = ring(false, false);
        let write = DiskAction::WriteBytes { offset: Bytes::ZERO, bytes: vec![0; 4096] };
        assert_eq!(run(&mut ring, vec![write]), [Err(DeviceError(libc::EBADF))]);
        let beyond = DiskAction::Read {
            offset: Bytes::mib(64),
            span: span(Bytes::ZERO, Bytes::kib(4)),
            written: Blocks::first(Bytes::kib(4)).into(),
        };
        assert_eq!(run(&mut ring, vec![beyond]), [Err(DeviceError(libc::EIO))]);
    }

    /// What was started is in the kernel's hands, or on its way there: its memory stays until it
    /// has ended, and nothing else is waited for.
    #[test]
    fn a_ring_that_goes_waits_for_what_it_was_given() {
        let mut ring = ring(false, true);
        let at = Bytes::mib(4);
        let action = DiskAction::WriteBytes { offset: at, bytes: vec![3; 4096] };
        ring.start(DiskCommand {
            id: CommandId(0),
            action,
            predicted: Duration::ZERO,
            is_promised: false,
        });
        assert!(!ring.waiting_for_event && ring.in_flight() == 1);
        let file = ring.file_without_ring();
        drop(ring);
        let mut found = [0; 4096];
        file.read_exact_at(&mut found, at.get()).unwrap();
        assert!(found == [3; 4096], "it ended before the ring did");
    }

    #[test]
    fn a_sleeping_ring_wakes_at_its_time_and_when_it_is_woken() {
        let mut ring = ring(false, true);
        let mut done = Vec::new();
        let until = sys::now() + Duration::from_millis(3);
        while ring.around.lateness.lock().timers.count() == 0 {
            ring.wait(Some(until), &mut done);
        }
        assert!(sys::now() >= until);
        let event = Arc::clone(&ring.around.event);
        let waker = std::thread::spawn(move || event.signal());
        while ring.waiting_for_event {
            ring.wait(None, &mut done);
        }
        waker.join().unwrap();
        assert!(done.is_empty());
    }
}
