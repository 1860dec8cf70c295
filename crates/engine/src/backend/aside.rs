//! What needs no disk: copies, reads of what was never written, and what other reads leave out.
//!
//! The disk comes first. What a disk's thread starts together goes to the device before any such work is
//! done: a command that waits for the host meanwhile would make the device look slow, and contracts
//! are charged for what the host takes between commands. So [`Backend::start`] only puts such work off,
//! and [`Backend::wait`] does it: in pieces of [`PIECE`], between which the device is looked at. What has
//! ended meanwhile is told, and the next command begun, no later than a piece takes.
//!
//! Of a read of what was written in part the rest is filled while the device reads. The device is mostly
//! the slower one. Where it is not, its end is told at once and without the end of the read
//! ([`Stage::Device`]): the schedule would take the device for busy otherwise, and leave it idle.
//! Whoever asked hears when the memory is filled ([`Stage::Memory`]), and is late by then.
//! What is little of such a read the disk's own backend fills.
//!
//! What counts for a contract goes before what does not, and is always done by the disk's thread. That
//! thread has real-time priority. Whoever asks for many zeros would have it, and the processor
//! that it runs on: so they are filled no faster than at a rate. Under contract what
//! is beyond [`RATE_PROMISED`] waits; of best effort what is beyond [`RATE`] is filled by an ordinary
//! thread. Copies, and what is left of reads under contract, wait for neither: the node
//! sees to it that there are not many copies, and a read has paid for its time on the disk.
//!
//! Invariants: a command ends once, after all of its memory was filled; nothing of a command is
//! touched here that its device may fill; time is an argument of the decision.

use super::{Backend, copy, holes, put, zero};
use super::{Completion, LeavesHoles, Scattered, Stage, Surroundings};
use crate::aligned::Aligned;
use crate::arena::Arena;
use crate::lock::{Fatal, Mutex};
use crate::sys;
use node::{CommandId, DiskAction, DiskCommand, Span};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use units::{Bytes, Instant, Rate};

/// So much of best effort is filled by the disk's thread in each second: less than a quarter of the
/// time of a processor that fills 4 GiB in it.
const RATE: Rate = Rate::per_second(1 << 30);
/// So much of zeros under contract: half of it.
const RATE_PROMISED: Rate = Rate::per_second(2 << 30);
/// So much of either at once: the longest block of a stream.
const AT_ONCE: Bytes = node::limits::BLOCK_MAX;
/// So much is done before the device is looked at again: some ten microseconds, as what a disk's
/// thread does between two commands takes.
const PIECE: Bytes = Bytes::kib(64);
/// Less is not worth another thread, nor, of a read, that its end is told in two steps.
const LITTLE: Bytes = Bytes::kib(64);

/// What is to be done in memory; what comes first stands last in the lists.
enum Work {
    Copy {
        from: Span,
        to: Span,
    },
    Zeros(Vec<Span>),
    /// Parts of what was read, from where in it, are put into their places.
    Put {
        bytes: Aligned,
        parts: Vec<(usize, Span)>,
    },
}

impl Work {
    fn zeros(of: impl Iterator<Item = Span>) -> Self {
        let mut spans: Vec<Span> = of.collect();
        spans.reverse();
        Self::Zeros(spans)
    }

    fn put(Scattered { bytes, span, written }: Scattered) -> Self {
        let first = written.span().start;
        let part = |run: std::ops::Range<Bytes>| {
            let into = Span { offset: span.offset + run.start, len: run.end - run.start };
            ((run.start - first).as_usize(), into)
        };
        let mut parts: Vec<_> = written.runs().map(part).collect();
        parts.reverse();
        Self::Put { bytes, parts }
    }

    /// How much is left.
    fn len(&self) -> Bytes {
        match self {
            Self::Copy { to, .. } => to.len,
            Self::Zeros(spans) => spans.iter().map(|span| span.len).sum(),
            Self::Put { parts, .. } => parts.iter().map(|(_, span)| span.len).sum(),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Copy { to, .. } => to.len.is_zero(),
            Self::Zeros(spans) => spans.is_empty(),
            Self::Put { parts, .. } => parts.is_empty(),
        }
    }

    /// Does up to so much of it; says how much.
    fn go_on(&mut self, arena: &Arena, most: Bytes) -> Bytes {
        let mut done = Bytes::ZERO;
        while done < most && !self.is_done() {
            done += self.step(arena, most - done);
        }
        done
    }

    /// The same within the first of its spans.
    fn step(&mut self, arena: &Arena, most: Bytes) -> Bytes {
        match self {
            Self::Copy { from, to } => {
                let len = to.len.min(most);
                let ([near, far], [into, far_into]) = (from.cut(len), to.cut(len));
                copy(arena, near, into);
                (*from, *to) = (far, far_into);
                len
            }
            Self::Zeros(spans) => {
                let Some(span) = spans.pop() else { return Bytes::ZERO };
                let len = span.len.min(most);
                let [near, far] = span.cut(len);
                zero(arena, near);
                if !far.len.is_zero() {
                    spans.push(far);
                }
                len
            }
            Self::Put { bytes, parts } => {
                let Some((at, span)) = parts.pop() else { return Bytes::ZERO };
                let len = span.len.min(most);
                let [near, far] = span.cut(len);
                put(arena, near, &bytes[at..]);
                if !far.len.is_zero() {
                    parts.push((at + len.as_usize(), far));
                }
                len
            }
        }
    }
}

/// Work for a command.
struct Job {
    number: u64,
    work: Work,
    /// It is not begun before.
    not_before: Instant,
}

/// In which order the disk's thread does work.
#[derive(Clone, Copy)]
enum Turn {
    /// What waits for nothing.
    First,
    /// Zeros under contract.
    Promised,
    BestEffort,
}

/// What the device has to do with a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Device {
    Nothing,
    /// It works on it.
    Busy,
    /// It is done.
    Done,
}

/// A command that takes work in memory.
struct Filling {
    id: CommandId,
    is_promised: bool,
    device: Device,
    /// How much work is not done.
    jobs: usize,
}

/// A disk, and what is done beside it.
pub(crate) struct Aside<B> {
    disk: B,
    around: Surroundings,
    /// What the disk's thread may still fill of best effort, as of then.
    left: Bytes,
    at: Instant,
    /// By when what was asked for under contract is filled at [`RATE_PROMISED`].
    paced: Instant,
    /// From the first work that was too much on; none where there is no such thread.
    thread: Option<Option<Sender<Job>>>,
    /// What the disk's thread does, by turn.
    jobs: [VecDeque<Job>; 3],
    /// Numbers of commands, and the commands, until they have ended.
    filling: BTreeMap<u64, Filling>,
    next: u64,
    /// Of these, what the device works on.
    busy: Vec<(CommandId, u64)>,
    /// What the thread has done, and when.
    filled: Arc<Mutex<Vec<(u64, Instant)>>>,
    /// How much work the thread has.
    outside: usize,
    /// What the device has ended.
    ended: Vec<Completion>,
}

impl<B: LeavesHoles> Aside<B> {
    pub(crate) fn new(disk: B, around: Surroundings) -> Self {
        let (left, at, paced) = (AT_ONCE, Instant::EPOCH, Instant::EPOCH);
        let (jobs, filling, busy) = (Default::default(), BTreeMap::new(), Vec::new());
        let (thread, filled, ended) = (None, Arc::default(), Vec::new());
        let (next, outside) = (0, 0);
        Self {
            disk,
            around,
            left,
            at,
            paced,
            thread,
            jobs,
            filling,
            next,
            busy,
            filled,
            outside,
            ended,
        }
    }

    /// Whether the disk's thread fills so much more of best effort now.
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

    /// When so much more under contract may be begun.
    fn paces(&mut self, now: Instant, len: Bytes) -> Instant {
        let since = now.saturating_sub(RATE_PROMISED.time_for(AT_ONCE));
        self.paced = self.paced.max(since).saturating_add(RATE_PROMISED.time_for(len));
        if self.paced <= now { Instant::EPOCH } else { self.paced }
    }

    /// `now` says what time it is, where it matters: clocks are slow in some virtual machines.
    fn start_at(&mut self, now: impl FnOnce() -> Instant, command: DiskCommand) {
        match &command.action {
            &DiskAction::Copy { from, span: to, .. } => {
                let number = self.take(&command, Device::Nothing);
                self.put_off(Turn::First, number, Work::Copy { from, to }, Instant::EPOCH);
            }
            DiskAction::Read { span, written, .. } if !written.covers(span.len) => {
                let work = Work::zeros(holes(*span, written));
                if written.is_empty() {
                    let number = self.take(&command, Device::Nothing);
                    return self.fill(now, number, work);
                }
                if work.len() <= LITTLE {
                    return self.disk.start(command);
                }
                let number = self.take(&command, Device::Busy);
                self.disk.start_leaving_holes(command);
                self.fill(now, number, work);
            }
            _ => self.disk.start(command),
        }
    }

    /// A command takes work here; its number.
    fn take(&mut self, command: &DiskCommand, device: Device) -> u64 {
        let (number, id) = (self.next, command.id);
        self.next += 1;
        let is_promised = command.is_promised;
        self.filling.insert(number, Filling { id, is_promised, device, jobs: 0 });
        if device == Device::Busy {
            self.busy.push((id, number));
        }
        number
    }

    /// Somebody is to fill memory of a command: the disk's thread in its turn, or the ordinary one.
    fn fill(&mut self, now: impl FnOnce() -> Instant, number: u64, work: Work) {
        let Filling { is_promised, device, .. } = self.filling[&number];
        let len = work.len();
        match (is_promised, device) {
            (true, Device::Busy) => self.put_off(Turn::First, number, work, Instant::EPOCH),
            (true, _) if len <= LITTLE => self.put_off(Turn::First, number, work, Instant::EPOCH),
            (true, _) => {
                let not_before = self.paces(now(), len);
                self.put_off(Turn::Promised, number, work, not_before);
            }
            (false, _) if len <= LITTLE || self.fills(now(), len) => {
                self.put_off(Turn::BestEffort, number, work, Instant::EPOCH);
            }
            (false, _) => self.send(number, work),
        }
    }

    fn put_off(&mut self, turn: Turn, number: u64, work: Work, not_before: Instant) {
        self.filling.get_mut(&number).expect("it was taken").jobs += 1;
        self.jobs[turn as usize].push_back(Job { number, work, not_before });
    }

    /// The ordinary thread does it, where there is one.
    fn send(&mut self, number: u64, work: Work) {
        let (around, filled) = (&self.around, &self.filled);
        let thread = self.thread.get_or_insert_with(|| begin(around.clone(), Arc::clone(filled)));
        let Some(thread) = thread else {
            return self.put_off(Turn::BestEffort, number, work, Instant::EPOCH);
        };
        match thread.send(Job { number, work, not_before: Instant::EPOCH }) {
            Ok(()) => {
                self.filling.get_mut(&number).expect("it was taken").jobs += 1;
                self.outside += 1;
            }
            Err(refused) => {
                self.put_off(Turn::BestEffort, number, refused.0.work, Instant::EPOCH);
            }
        }
    }

    /// What the disk's thread does next, where it may be begun.
    fn next_job(&self, now: impl Fn() -> Instant) -> Option<Turn> {
        let has = |turn: Turn| self.jobs[turn as usize].front();
        let may = |job: &Job| job.not_before == Instant::EPOCH || job.not_before <= now();
        if has(Turn::First).is_some() {
            return Some(Turn::First);
        }
        if has(Turn::Promised).is_some_and(may) {
            return Some(Turn::Promised);
        }
        has(Turn::BestEffort).map(|_| Turn::BestEffort)
    }

    /// Does a piece of what there is to do, which may be several short things; `done` are the
    /// commands that it was for.
    fn work(&mut self, now: impl Fn() -> Instant, done: &mut Vec<u64>) {
        let mut left = PIECE;
        while !left.is_zero()
            && let Some(turn) = self.next_job(&now)
        {
            let jobs = &mut self.jobs[turn as usize];
            let job = jobs.front_mut().expect("there is one");
            left -= job.work.go_on(&self.around.arena, left);
            if job.work.is_done() {
                done.extend(jobs.pop_front().map(|job| job.number));
            }
        }
    }

    /// Work for a command was done by `at`; its end, where it has ended by that.
    fn job_done(&mut self, number: u64, at: Instant) -> Option<Completion> {
        let filling = self.filling.get_mut(&number).expect("it has not ended");
        filling.jobs -= 1;
        if filling.jobs > 0 || filling.device == Device::Busy {
            return None;
        }
        let Filling { id, device, .. } = self.filling.remove(&number)?;
        let stage = match device {
            Device::Nothing => Stage::Whole,
            _ => Stage::Memory(number),
        };
        Some(Completion { stage, ..Completion::of(id, at, at, Ok(())) })
    }

    /// The device has ended a command; all of it has ended where nothing is left to be filled.
    fn device_done(&mut self, mut done: Completion) -> Completion {
        let Some(at) = self.busy.iter().position(|(id, _)| *id == done.id) else { return done };
        let (_, number) = self.busy.swap_remove(at);
        let filling = self.filling.get_mut(&number).expect("it has not ended");
        filling.device = Device::Done;
        if filling.jobs > 0 {
            done.stage = Stage::Device(number);
        } else {
            self.filling.remove(&number);
        }
        done
    }

    fn wait_at(
        &mut self,
        now: impl Fn() -> Instant,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) {
        let mut worked = Vec::new();
        let mut by = until;
        let mut at = Instant::EPOCH;
        if self.next_job(&now).is_some() {
            // The device works meanwhile.
            self.disk.submit();
            self.work(&now, &mut worked);
            at = now();
            by = Some(at);
        } else if let Some(job) = self.jobs[Turn::Promised as usize].front() {
            by = until.into_iter().chain([job.not_before]).min();
        }
        // What has been done outside since the last look has been signalled, too.
        let mut ended = std::mem::take(&mut self.ended);
        self.disk.wait(by, &mut ended);
        for (id, pieces) in self.disk.take_read() {
            let of = self.busy.iter().find(|(other, _)| *other == id);
            let &(_, number) = of.expect("what is in pieces leaves much out");
            self.fill(&now, number, Work::put(pieces));
        }
        done.extend(ended.drain(..).map(|one| self.device_done(one)));
        self.ended = ended;
        done.extend(worked.into_iter().filter_map(|number| self.job_done(number, at)));
        let filled = std::mem::take(&mut *self.filled.lock());
        self.outside -= filled.len();
        done.extend(filled.into_iter().filter_map(|(number, at)| self.job_done(number, at)));
    }
}

/// The thread, where the system has one. It ends with what sends to it.
fn begin(around: Surroundings, filled: Arc<Mutex<Vec<(u64, Instant)>>>) -> Option<Sender<Job>> {
    let (sender, jobs) = channel();
    let thread = std::thread::Builder::new().name("slackline-zeros".into());
    thread.spawn(move || do_all(&jobs, &around, &filled)).ok().map(|_| sender)
}

fn do_all(jobs: &Receiver<Job>, around: &Surroundings, filled: &Mutex<Vec<(u64, Instant)>>) {
    let _fatal = Fatal::new("in the thread that fills with zeros");
    // A disk's thread has started it. To have less is always permitted.
    let _ = sys::become_ordinary();
    let _ = sys::become_nicer(0);
    for Job { number, mut work, .. } in jobs {
        work.go_on(&around.arena, Bytes::MAX);
        filled.lock().push((number, sys::now()));
        around.event.signal();
    }
}

impl<B: LeavesHoles> Backend for Aside<B> {
    fn start(&mut self, command: DiskCommand) {
        self.start_at(sys::now, command);
    }

    fn submit(&mut self) {
        self.disk.submit();
    }

    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        self.wait_at(sys::now, until, done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.filling.len() - self.busy.len()
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use crate::backend::uring::Uring;
    use node::Written;
    use std::os::unix::fs::FileExt;
    use store::Blocks;
    use units::Duration;

    /// A disk that is done with everything at once, but for what is held back, and notes in which order
    /// things are done.
    struct Quick {
        around: Surroundings,
        given: Vec<CommandId>,
        held: Vec<CommandId>,
        /// What happens, and how many pieces of memory have been filled with zeros by that.
        seen: Vec<(Seen, usize)>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Seen {
        Started(u64),
        Submitted,
        Looked,
    }

    impl Quick {
        fn note(&mut self, what: Seen) {
            let pieces = (0..Bytes::mib(16) / PIECE).map(|at| PIECE * at);
            let filled = pieces.filter(|&at| byte(&self.around, at) == 0).count();
            self.seen.push((what, filled));
        }
    }

    impl Backend for Quick {
        fn start(&mut self, command: DiskCommand) {
            self.note(Seen::Started(command.id.0));
            self.given.push(command.id);
        }
        fn submit(&mut self) {
            self.note(Seen::Submitted);
        }
        fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
            if self.given.iter().all(|id| self.held.contains(id)) {
                self.around.event.wait(until.map(|until| until.saturating_since(sys::now())));
            }
            self.note(Seen::Looked);
            let at = instant(1);
            let ended = self.given.extract_if(.., |id| !self.held.contains(id));
            done.extend(ended.map(|id| Completion::of(id, at, at, Ok(()))));
        }
        fn in_flight(&self) -> usize {
            self.given.len()
        }
    }

    impl LeavesHoles for Quick {
        fn start_leaving_holes(&mut self, command: DiskCommand) {
            self.start(command);
        }
        fn take_read(&mut self) -> Vec<(CommandId, Scattered)> {
            Vec::new()
        }
    }

    fn instant(ms: u64) -> Instant {
        Instant::EPOCH + Duration::from_millis(ms)
    }

    /// The first byte there.
    fn byte(around: &Surroundings, offset: Bytes) -> u8 {
        // SAFETY: no other thread fills memory while a test looks at it.
        unsafe { around.arena.pointer(Span { offset, len: PIECE }).read_volatile() }
    }

    /// All memory is 7.
    fn aside() -> Aside<Quick> {
        let around = Surroundings::alone();
        let all = Span { offset: Bytes::ZERO, len: Bytes::mib(16) };
        // SAFETY: nobody else knows of the arena yet.
        unsafe { around.arena.pointer(all).write_bytes(7, all.len.as_usize()) };
        let disk =
            Quick { around: around.clone(), given: Vec::new(), held: Vec::new(), seen: Vec::new() };
        Aside::new(disk, around)
    }

    fn read(id: u64, span: Span, written: impl Into<Written>) -> DiskCommand {
        let action = DiskAction::Read { offset: Bytes::ZERO, span, written: written.into() };
        let (id, predicted) = (CommandId(id), Duration::ZERO);
        DiskCommand { id, action, predicted, is_promised: false }
    }

    fn hole(id: u64) -> DiskCommand {
        read(id, Span { offset: Bytes::mib(id % 16), len: Bytes::MIB }, Blocks::NONE)
    }

    fn promised(command: DiskCommand) -> DiskCommand {
        DiskCommand { is_promised: true, ..command }
    }

    fn ids(done: &mut Vec<Completion>) -> Vec<u64> {
        done.drain(..).map(|done| done.id.0).collect()
    }

    impl<B: LeavesHoles> Aside<B> {
        fn jobs(&self, turn: Turn) -> usize {
            self.jobs[turn as usize].len()
        }
    }

    /// As many zeros come with a command for the device as the longest block has, and before it: the device
    /// has its command before one of them is filled, and is looked at after each piece.
    #[test]
    fn the_device_has_its_command_before_anything_is_filled_and_is_looked_at_between_pieces() {
        for is_promised in [false, true] {
            let mut disk = aside();
            let count = AT_ONCE / Bytes::MIB;
            for id in 0..count {
                let hole = DiskCommand { is_promised, ..hole(id) };
                disk.start_at(|| instant(1_000), hole);
            }
            let span = Span { offset: Bytes::ZERO, len: Bytes::kib(4) };
            disk.start_at(|| instant(1_000), read(99, span, Blocks::first(span.len)));
            let mut done = Vec::new();
            disk.wait_at(|| instant(1_001), None, &mut done);
            assert_eq!(ids(&mut done), [99], "what has ended is told after one piece");
            while disk.in_flight() > 0 {
                disk.wait_at(|| instant(1_001), None, &mut done);
            }
            assert_eq!(ids(&mut done), Vec::from_iter(0..count));
            let seen = &disk.disk.seen;
            assert_eq!(seen[..2], [(Seen::Started(99), 0), (Seen::Submitted, 0)]);
            let looks = seen.iter().filter(|(what, _)| *what == Seen::Looked);
            let looks: Vec<usize> = looks.map(|(_, filled)| *filled).collect();
            let pieces = |upto: usize| (1..=upto).chain(std::iter::repeat_n(upto, upto));
            assert!(looks.into_iter().eq(pieces(256)), "all memory twice, a piece at a time");
        }
    }

    /// Whatever best effort has asked for before, also where that is too much for the disk's thread.
    #[test]
    fn what_is_promised_is_filled_before_best_effort_and_by_the_disks_thread() {
        let mut disk = aside();
        (0..100).for_each(|id| disk.start_at(|| instant(1_000), hole(id)));
        let outside = disk.outside;
        assert_eq!((outside, disk.jobs(Turn::BestEffort)), (68, 32));
        disk.start_at(|| instant(1_000), promised(hole(100)));
        let little = Span { offset: Bytes::ZERO, len: LITTLE };
        disk.start_at(|| instant(1_000), promised(read(101, little, Blocks::NONE)));
        let thin = Span { offset: Bytes::ZERO, len: Bytes::MIB };
        disk.start_at(|| instant(1_000), promised(read(102, thin, Blocks::first(Bytes::kib(4)))));
        let mut done = Vec::new();
        let mut ended = Vec::new();
        while ended.len() < 35 {
            disk.wait_at(|| instant(1_001), None, &mut done);
            let mine = |one: &Completion| one.stage != Stage::Device(102);
            ended.extend(done.extract_if(.., |one| mine(one) && !(32..100).contains(&one.id.0)));
            done.clear();
        }
        let ended: Vec<u64> = ended.iter().map(|one| one.id.0).collect();
        assert_eq!(ended[..3], [101, 102, 100], "reads that the device is at first");
        assert_eq!(ended[3..], Vec::from_iter(0..32));
        while disk.in_flight() > 0 {
            disk.wait_at(|| instant(1_001), None, &mut done);
        }
        assert_eq!(disk.outside, 0);
        // Of as much as ever under contract none is another thread's.
        (0..100).for_each(|id| disk.start_at(|| instant(2_000), promised(hole(id))));
        assert_eq!((disk.outside, disk.jobs(Turn::Promised)), (0, 100));
        while disk.in_flight() > 0 {
            disk.wait_at(|| instant(9_000), None, &mut done);
        }
    }

    /// Whoever has a contract and reads where nothing was written does not get the whole of a processor at
    /// real-time priority; others are served meanwhile.
    #[test]
    fn zeros_under_contract_wait_where_they_are_too_many_and_others_go_before_them() {
        let mut disk = aside();
        (0..40).for_each(|id| disk.start_at(|| instant(1_000), promised(hole(id))));
        disk.start_at(|| instant(1_000), hole(40));
        let mut done = Vec::new();
        let mut ended = Vec::new();
        // Times are rounded up.
        let at_once = || instant(1_000) + Duration::from_micros(1);
        while disk.next_job(at_once).is_some() {
            disk.wait_at(at_once, None, &mut done);
            ended.extend(ids(&mut done));
        }
        assert_eq!(ended, Vec::from_iter((0..32).chain([40])));
        // 2 MiB in about a millisecond.
        while disk.next_job(|| instant(1_001)).is_some() {
            disk.wait_at(|| instant(1_001), None, &mut done);
        }
        assert_eq!(ids(&mut done), [32, 33]);
        while disk.in_flight() > 0 {
            disk.wait_at(|| instant(1_100), None, &mut done);
        }
        assert_eq!(ids(&mut done), Vec::from_iter(34..40));
    }

    /// The device has ended a read, and is free: that is told before its memory is filled, and the end of the read
    /// when it is. Where the device is the slower one, both are one.
    #[test]
    fn the_end_of_the_device_is_told_before_memory_is_filled_and_the_end_of_the_read_after() {
        for is_promised in [false, true] {
            let mut disk = aside();
            let span = Span { offset: Bytes::mib(1), len: Bytes::MIB };
            let thin =
                |id| DiskCommand { is_promised, ..read(id, span, Blocks::first(Bytes::kib(4))) };
            disk.start_at(|| instant(1_000), thin(5));
            let mut done = Vec::new();
            disk.wait_at(|| instant(1_000), None, &mut done);
            let [ended] = done[..] else { panic!("the device has ended it: {done:?}") };
            let number = match ended.stage {
                Stage::Device(number) => number,
                other => panic!("{other:?}"),
            };
            assert_eq!((ended.id.0, ended.noticed, disk.in_flight()), (5, instant(1), 1));
            // As the next one of the same request would have.
            disk.start_at(|| instant(1_000), thin(5));
            disk.disk.held.push(CommandId(5));
            done.clear();
            while done.is_empty() {
                disk.wait_at(|| instant(1_003), None, &mut done);
            }
            let ended = done.pop().expect("one");
            assert_eq!((ended.id.0, ended.stage), (5, Stage::Memory(number)));
            assert_eq!((ended.noticed, done.len()), (instant(1_003), 0));
            let last = |at: u64| byte(&disk.around, Bytes::mib(1) + Bytes::kib(4) * at);
            assert!((last(0), last(1), last(255)) == (7, 0, 0), "and nothing of what it reads");
            // The other one is filled before the device ends it.
            while disk.next_job(|| instant(1_003)).is_some() {
                disk.wait_at(|| instant(1_003), None, &mut done);
            }
            assert!(done.is_empty());
            disk.disk.held.clear();
            disk.wait_at(|| instant(1_004), None, &mut done);
            let [ended] = done[..] else { panic!("it has ended: {done:?}") };
            assert_eq!((ended.id.0, ended.stage), (5, Stage::Whole));
            assert_eq!(disk.in_flight(), 0);
        }
    }

    /// Reads of a real ring of what was written in part, of every kind: all of it is there when a read
    /// has ended, whoever has filled it, and nothing of what the device holds between.
    #[test]
    fn what_is_written_in_part_is_read_with_zeros_between() {
        let made = tempfile::Builder::new().prefix("slackline-").tempfile().unwrap();
        // Each block says where it belongs, and none is zeros.
        let on_disk = |n: u64| (n % 251 + 1) as u8;
        let bytes: Vec<u8> = (0..2048).flat_map(|n| [on_disk(n); 4096]).collect();
        made.as_file().write_all_at(&bytes, 0).unwrap();
        let around = Surroundings::alone();
        let file = Arc::new(made.as_file().try_clone().unwrap());
        let ring = Uring::new(file, 4, around.clone(), &mut Vec::new()).unwrap();
        let mut disk = Aside::new(ring, around.clone());
        let block = |n: u64| Blocks::of(&(Bytes::kib(4 * n)..Bytes::kib(4 * n + 4)));
        let every_other = (0..128).fold(Blocks::NONE, |all, n| all.union(&block(2 * n + 1)));
        let extents = |of: &[Blocks]| {
            let mut written = Written::from(of[0]);
            of[1..].iter().for_each(|&blocks| written.push(blocks));
            written
        };
        let both_ends = block(0).union(&block(255));
        let mut stages = Vec::new();
        for written in [
            extents(&[block(0)]),
            extents(&[block(200)]),
            extents(&[both_ends]),
            extents(&[every_other]),
            extents(&[Blocks::first(Bytes::MIB).without(&block(77))]),
            extents(&[Blocks::NONE, block(3), Blocks::NONE, both_ends, Blocks::NONE]),
            // More pieces than the kernel takes in one vector.
            extents(&[every_other; 5]),
            extents(&[Blocks::NONE; 5]),
        ] {
            let mib =
                if written.cut(Bytes::MIB).1.is_empty() && !written.is_empty() { 1 } else { 5 };
            let span = Span { offset: Bytes::mib(2), len: Bytes::mib(mib) };
            for (is_promised, left) in [(false, AT_ONCE), (false, Bytes::ZERO), (true, AT_ONCE)] {
                // SAFETY: every command has ended.
                unsafe { around.arena.pointer(span).write_bytes(7, span.len.as_usize()) };
                // Where nothing is left the other thread fills it.
                (disk.left, disk.at) = (left, Instant::MAX);
                let command = DiskCommand { is_promised, ..read(1, span, written.clone()) };
                disk.start_at(|| Instant::EPOCH, command);
                let mut done = Vec::new();
                while disk.in_flight() > 0 {
                    disk.wait(None, &mut done);
                }
                assert!(done.iter().all(|one| one.result.is_ok()));
                stages.push(done.iter().map(|one| one.stage).collect::<Vec<_>>());
                // SAFETY: every command has ended.
                let memory = unsafe {
                    let start = around.arena.pointer(span);
                    std::slice::from_raw_parts(start, span.len.as_usize())
                };
                for (n, bytes) in (0u64..).zip(memory.chunks(4096)) {
                    let at = Bytes::kib(4 * n);
                    let has = written.runs().any(|run| run.contains(&at));
                    let want = if has { on_disk(n) } else { 0 };
                    assert!(bytes.iter().all(|&byte| byte == want), "block {n} of {written:?}");
                }
            }
        }
        for stages in stages {
            let is_whole = matches!(stages[..], [Stage::Whole]);
            let follows =
                matches!(stages[..], [Stage::Device(one), Stage::Memory(two)] if one == two);
            assert!(is_whole || follows, "{stages:?}");
        }
    }

    /// What comes at once is the disk's thread's up to a bound, and again what has come back
    /// with time; all of it ends.
    #[test]
    fn more_zeros_than_the_disks_thread_may_fill_are_filled_aside() {
        let mut disk = aside();
        let last = Span { offset: Bytes::mib(15), len: Bytes::MIB };
        let at_once = AT_ONCE / Bytes::MIB;
        let all = at_once + 16;
        (0..all).for_each(|id| disk.start_at(|| Instant::EPOCH, hole(id)));
        let mine = at_once as usize;
        let has = |disk: &Aside<Quick>| (disk.jobs(Turn::BestEffort), disk.outside);
        assert_eq!((has(&disk), disk.in_flight()), ((mine, 16), mine + 16));
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
        assert_eq!(has(&disk), (4, 4));
        while disk.in_flight() > 0 {
            disk.wait(None, &mut done);
        }
    }

    /// So is what a read leaves out: it is no less work.
    #[test]
    fn what_reads_leave_out_counts_as_zeros_do() {
        let mut disk = aside();
        let span = Span { offset: Bytes::ZERO, len: Bytes::MIB };
        let written = Blocks::first(Bytes::kib(4));
        (0..48).for_each(|id| disk.start_at(|| Instant::EPOCH, read(id, span, written)));
        assert_eq!((disk.jobs(Turn::BestEffort), disk.outside), (32, 16));
        let (mut done, mut ended) = (Vec::new(), Vec::new());
        while disk.in_flight() > 0 {
            disk.wait(None, &mut done);
            let is_over = |one: &Completion| !matches!(one.stage, Stage::Device(_));
            ended.extend(done.drain(..).filter(is_over).map(|one| one.id.0));
        }
        ended.sort_unstable();
        assert_eq!(ended, Vec::from_iter(0..48), "each ends once");
    }

    fn copy_of(id: u64, from: Span, to: u64) -> DiskCommand {
        let span = Span { offset: Bytes::mib(to), ..from };
        let written = Blocks::NONE.into();
        let action = DiskAction::Copy { from, offset: Bytes::ZERO, span, written };
        let (id, predicted) = (CommandId(id), Duration::ZERO);
        DiskCommand { id, action, predicted, is_promised: false }
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
        assert_eq!((disk.disk.given.as_slice(), disk.in_flight()), (&[CommandId(18)][..], 19));
        let mut done = Vec::new();
        disk.wait(None, &mut done);
        assert_eq!(ids(&mut done), [18, 0]);
        for id in 1..18 {
            disk.wait(None, &mut done);
            assert_eq!(ids(&mut done), [id]);
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
        unsafe { pointer(&disk, from.offset).write_bytes(8, from.len.as_usize()) };
        disk.start_at(|| Instant::EPOCH, copy_of(0, from, 2));
        let mut done = Vec::new();
        for id in 1..4 {
            disk.start_at(|| Instant::EPOCH, read(id, from, Blocks::first(from.len)));
            disk.wait(None, &mut done);
            assert_eq!(ids(&mut done), [id]);
        }
        disk.wait(None, &mut done);
        assert_eq!(ids(&mut done), [0]);
        assert_eq!(disk.in_flight(), 0);
        // SAFETY: every command has ended.
        let copied = unsafe {
            std::slice::from_raw_parts(pointer(&disk, Bytes::mib(2)), from.len.as_usize())
        };
        assert!(copied.iter().all(|&byte| byte == 8));
    }

    /// What the disk is needed for goes to it whatever there was before, little or much.
    #[test]
    fn other_commands_go_to_the_disk() {
        let mut disk = aside();
        (0..20).for_each(|id| disk.start_at(|| Instant::EPOCH, hole(id)));
        let before = disk.disk.given.len();
        let span = Span { offset: Bytes::ZERO, len: Bytes::MIB };
        disk.start_at(|| Instant::EPOCH, read(20, span, Blocks::first(Bytes::kib(4))));
        let little = Span { len: LITTLE, ..span };
        disk.start_at(|| Instant::EPOCH, read(21, little, Blocks::first(Bytes::kib(4))));
        assert_eq!(disk.disk.given.len(), before + 2);
        let mut done = Vec::new();
        while disk.in_flight() > 0 {
            disk.wait(None, &mut done);
        }
    }
}
