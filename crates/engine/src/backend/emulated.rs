//! A drive model in real time over a backing file.
//!
//! The bytes move when the command starts, by plain reads and writes; the end of
//! the command is held back until the model says that the drive is done. So
//! `started` and `finished` are the drive's own times; of a drive that has several commands
//! and orders them itself, `started` is when it was given one. The host's part is kept
//! apart: how late the thread noticed the end, and how much longer the backing
//! file took than the drive would have.
//!
//! A flush costs the model's time and does not reach the host's own disk: an
//! emulated disk survives the end of the process, not a power cut of the host.

use super::{
    Backend, Completion, LeavesHoles, Scattered, Surroundings, copy, merge, zero_unwritten,
};
use crate::arena::PAGE;
use crate::sys;
use disk::{CommandQueue, Flash, Model};
use node::{CommandId, DeviceError, DiskAction, DiskCommand, Span};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

/// What says how long commands take.
enum Mechanism {
    /// An arm, for one command after the other in an order of its own.
    HardDisk(CommandQueue),
    Flash(Box<Flash>),
}

/// An emulated disk at work.
pub(crate) struct Emulated {
    drive: Mechanism,
    file: Arc<File>,
    around: Surroundings,
    /// What a hard disk has: it is not known when that ends.
    given: Vec<(CommandId, Instant, Result<(), DeviceError>)>,
    /// What has ended there, or will on a flash device.
    busy: Vec<Completion>,
    /// Ended without the drive, to be told at the next wait.
    at_once: Vec<Completion>,
}

impl Emulated {
    /// A drive that is given up to `queue` commands at a time; of flash as many as it takes.
    pub(crate) fn new(model: &Model, queue: u32, file: Arc<File>, around: Surroundings) -> Self {
        let drive = match disk::Emulated::new(model) {
            disk::Emulated::HardDisk(_) => Mechanism::HardDisk(CommandQueue::new(
                model,
                queue as usize,
                CommandQueue::PATIENCE,
            )),
            disk::Emulated::Flash(flash) => Mechanism::Flash(flash),
        };
        Self { drive, file, around, given: Vec::new(), busy: Vec::new(), at_once: Vec::new() }
    }

    /// Gives the drive a command whose bytes have moved with this result. How long it takes,
    /// where that is known now.
    fn serve(
        &mut self,
        started: Instant,
        (id, command): (CommandId, Command),
        result: Result<(), DeviceError>,
    ) -> Option<Duration> {
        self.take_ended(started);
        match &mut self.drive {
            Mechanism::HardDisk(queue) => {
                queue.submit(started, id.0, command).expect("no more than the drive holds");
                self.given.push((id, started, result));
                let end = queue.next_completion().filter(|_| queue.len() == 1)?;
                Some(end.saturating_since(started))
            }
            Mechanism::Flash(flash) => {
                let service = flash.submit(started, &command);
                self.busy.push(Completion::of(id, started, started + service, result));
                Some(service)
            }
        }
    }

    /// What a hard disk has ended by `now`; it has gone on with the next one then.
    fn take_ended(&mut self, now: Instant) {
        let Mechanism::HardDisk(queue) = &mut self.drive else { return };
        while let Some((tag, end)) = queue.complete(now) {
            let at = self.given.iter().position(|(id, ..)| *id == CommandId(tag));
            let (id, started, result) = self.given.remove(at.expect("it was given"));
            self.busy.push(Completion::of(id, started, end, result));
        }
    }

    /// When something ends.
    fn next_end(&self) -> Option<Instant> {
        let of_queue = match &self.drive {
            Mechanism::HardDisk(queue) => queue.next_completion(),
            Mechanism::Flash(_) => None,
        };
        self.busy.iter().map(|busy| busy.finished).chain(of_queue).min()
    }

    /// Moves the bytes of an action between memory and the backing file; what a read leaves out is
    /// filled with `zeros`.
    fn transfer(&self, action: &DiskAction, zeros: bool) -> io::Result<()> {
        match action {
            DiskAction::Read { offset, span, written } => {
                for run in written.runs() {
                    let len = run.end - run.start;
                    self.read(*offset + run.start, Span { offset: span.offset + run.start, len })?;
                }
                if zeros {
                    zero_unwritten(&self.around.arena, *span, written);
                }
                Ok(())
            }
            DiskAction::Merge { offset, span, keep, upto } => {
                let mut block = vec![0; span.len.as_usize()];
                if !upto.is_zero() {
                    self.file.read_exact_at(&mut block, offset.get())?;
                }
                merge(&self.around.arena, *span, keep, *upto, &mut block);
                Ok(())
            }
            DiskAction::Copy { from, span, .. } => {
                copy(&self.around.arena, *from, *span);
                Ok(())
            }
            DiskAction::Write { offset, span, .. } => self.write(*offset, *span),
            DiskAction::Several { offset, direction, spans } => {
                let mut at = *offset;
                for span in spans {
                    match direction {
                        Direction::Read => self.read(at, *span)?,
                        Direction::Write => self.write(at, *span)?,
                    }
                    at += span.len;
                }
                Ok(())
            }
            DiskAction::WriteBytes { offset, bytes } => self.file.write_all_at(bytes, offset.get()),
            DiskAction::Flush => Ok(()),
        }
    }

    #[allow(unsafe_code)]
    fn read(&self, offset: Bytes, span: Span) -> io::Result<()> {
        let memory = self.around.arena.pointer(span);
        // SAFETY: `pointer` checked that the span lies in the arena or a region; by the
        // contract of `Backend` nobody else refers to it until the command ends.
        unsafe { sys::read_into(&self.file, offset, memory, span.len.as_usize()) }
    }

    #[allow(unsafe_code)]
    fn write(&self, offset: Bytes, span: Span) -> io::Result<()> {
        let memory = self.around.arena.pointer(span);
        // SAFETY: `pointer` checked that the span lies in the arena or a region, which is
        // kept while a command is under way in it.
        unsafe { sys::write_from(&self.file, offset, memory, span.len.as_usize()) }
    }
}

/// What the drive is asked to do; none where the device is not needed.
fn as_command(action: &DiskAction) -> Option<Command> {
    match action.transfer() {
        None if action.needs_no_disk() => None,
        None => Some(Command::Flush),
        Some((range, direction)) => {
            let len = (range.end - range.start).round_up(PAGE);
            Some(Command::Transfer(Access { lba: Lba::containing(range.start), len, direction }))
        }
    }
}

impl Emulated {
    fn begin(&mut self, command: &DiskCommand, zeros: bool) {
        let started = sys::now();
        let result = self.transfer(&command.action, zeros);
        let result = result.map_err(|error| DeviceError(sys::errno(&error)));
        let id = command.id;
        let Some(wanted) = as_command(&command.action) else {
            self.at_once.push(Completion::of(id, started, started, result));
            return;
        };
        let Some(service) = self.serve(started, (id, wanted), result) else { return };
        let moved = sys::now().saturating_since(started);
        let longer = moved.saturating_sub(service);
        if !longer.is_zero() {
            self.around.lateness.lock().transfers.record(longer);
        }
    }
}

impl LeavesHoles for Emulated {
    fn start_leaving_holes(&mut self, command: DiskCommand) {
        self.begin(&command, false);
    }

    fn take_read(&mut self) -> Vec<(CommandId, Scattered)> {
        Vec::new() // each piece is read into its place
    }
}

impl Backend for Emulated {
    fn start(&mut self, command: DiskCommand) {
        self.begin(&command, true);
    }

    fn submit(&mut self) {}

    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        if !self.at_once.is_empty() {
            done.append(&mut self.at_once);
            return;
        }
        let wake = [until, self.next_end()].into_iter().flatten().min();
        let timeout = wake.map(|wake| wake.saturating_since(sys::now()));
        let woken = self.around.event.wait(timeout);
        let now = sys::now();
        let before = done.len();
        self.take_ended(now);
        done.extend(self.busy.extract_if(.., |busy| busy.finished <= now));
        for ended in &done[before..] {
            self.around.lateness.lock().noticed_late(now - ended.finished);
        }
        if done.len() > before {
            // In the order in which the drive ended them.
            done[before..].sort_by_key(|ended| ended.finished);
        } else if let (false, Some(wake)) = (woken, wake) {
            self.around.lateness.lock().woken_late(now.saturating_since(wake));
        }
    }

    fn in_flight(&self) -> usize {
        self.at_once.len() + self.given.len() + self.busy.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{Drive, HardDisk};
    use node::{Blocks, CommandId};
    use units::Direction;

    fn disk() -> Emulated {
        emulated("laptop-4200")
    }

    fn emulated(model: &str) -> Emulated {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 20).unwrap();
        Emulated::new(&self::tests::model(model), 4, Arc::new(file), Surroundings::alone())
    }

    fn model(name: &str) -> Model {
        Model::named(name).unwrap().scaled(Bytes::mib(64)).unwrap()
    }

    fn run(disk: &mut Emulated, id: u64, action: DiskAction) -> Completion {
        let predicted = Duration::ZERO;
        disk.start(DiskCommand { id: CommandId(id), action, predicted, is_promised: false });
        let mut done = Vec::new();
        while done.is_empty() {
            disk.wait(None, &mut done);
        }
        assert_eq!(disk.in_flight(), 0);
        done[0]
    }

    #[test]
    fn bytes_come_back_after_the_drives_own_time() {
        let mut disk = disk();
        let offset = Bytes::mib(40);
        let bytes = vec![7u8; 8192];
        let wrote = run(&mut disk, 1, DiskAction::WriteBytes { offset, bytes });
        let span = Span { offset: Bytes::mib(3), len: Bytes::kib(12) };
        let read = DiskAction::Read { offset, span, written: Blocks::first(Bytes::kib(8)).into() };
        let read = run(&mut disk, 2, read);
        // The same commands at the same times take the same times on the model.
        let mut drive = HardDisk::new(&model("laptop-4200"));
        for (ended, direction) in [(wrote, Direction::Write), (read, Direction::Read)] {
            let access = Access { lba: Lba::containing(offset), len: Bytes::kib(8), direction };
            let service = drive.serve(ended.started, &Command::Transfer(access));
            assert_eq!(ended.finished - ended.started, service);
            assert!(sys::now() >= ended.finished, "noticed before it was over");
        }
        #[allow(unsafe_code)]
        // SAFETY: the command has ended and nobody else has the arena.
        let memory =
            unsafe { std::slice::from_raw_parts(disk.around.arena.pointer(span), 12 << 10) };
        assert!(memory[..8192].iter().all(|&byte| byte == 7));
        assert!(memory[8192..].iter().all(|&byte| byte == 0));
        assert_eq!(disk.around.lateness.lock().completions.count(), 2);
    }

    #[test]
    #[allow(unsafe_code)]
    fn several_pieces_of_memory_are_one_transfer() {
        let mut disk = disk();
        let (offset, to) = (Bytes::mib(40), Bytes::mib(20));
        let bytes: Vec<u8> = (0..20u8 << 3).flat_map(|n| [n; 128]).collect();
        run(&mut disk, 1, DiskAction::WriteBytes { offset, bytes: bytes.clone() });
        let spans = [(5, 4), (3, 12), (9, 4)];
        let spans = spans.map(|(at, len)| Span { offset: Bytes::mib(at), len: Bytes::kib(len) });
        for (id, offset, direction) in [(2, offset, Direction::Read), (3, to, Direction::Write)] {
            let action = DiskAction::Several { offset, direction, spans: spans.to_vec() };
            let (range, way) = action.transfer().unwrap();
            assert_eq!((range, way), (offset..offset + Bytes::kib(20), direction));
            run(&mut disk, id, action).result.unwrap();
        }
        let mut found = vec![0; bytes.len()];
        disk.file.read_exact_at(&mut found, to.get()).unwrap();
        assert!(found == bytes);
        // SAFETY: the command has ended and nobody else has the arena.
        let last =
            unsafe { std::slice::from_raw_parts(disk.around.arena.pointer(spans[2]), 4 << 10) };
        assert!(last == &bytes[16 << 10..]);
    }

    #[test]
    fn a_flash_device_works_on_many_commands_and_ends_each_at_its_time() {
        let mut disk = emulated("ssd-nvme");
        let span = |n| Span { offset: Bytes::mib(n), len: Bytes::kib(64) };
        for n in 0..8 {
            let offset = Bytes::mib(n * 3);
            let action = DiskAction::Read {
                offset,
                span: span(n),
                written: Blocks::first(Bytes::kib(64)).into(),
            };
            let (id, predicted) = (CommandId(n), Duration::ZERO);
            disk.start(DiskCommand { id, action, predicted, is_promised: false });
        }
        assert_eq!(disk.in_flight(), 8);
        let mut done = Vec::new();
        while done.len() < 8 {
            disk.wait(None, &mut done);
        }
        assert!(done.is_sorted_by_key(|ended| ended.finished));
        done.sort_by_key(|ended| ended.id);
        let mut flash = Flash::new(&model("ssd-nvme"));
        for (n, ended) in (0..).zip(&done) {
            let (lba, len) = (Lba::containing(Bytes::mib(n * 3)), Bytes::kib(64));
            let access = Access { lba, len, direction: Direction::Read };
            let service = flash.submit(ended.started, &Command::Transfer(access));
            assert_eq!(ended.finished - ended.started, service);
        }
    }

    /// One after the other, in the order and at the times of the drive, whenever the host looks.
    #[test]
    fn a_hard_disk_serves_what_it_has_in_an_order_of_its_own() {
        let mut disk = disk();
        let places = [0, 60, 30, 1].map(Bytes::mib);
        let len = Bytes::kib(4);
        for (n, offset) in (0..).zip(places) {
            let (span, written) = (Span { offset: Bytes::mib(n), len }, Blocks::first(len).into());
            let action = DiskAction::Read { offset, span, written };
            let (id, predicted) = (CommandId(n), Duration::ZERO);
            disk.start(DiskCommand { id, action, predicted, is_promised: false });
        }
        assert_eq!(disk.in_flight(), 4);
        let mut done = Vec::new();
        while done.len() < 4 {
            disk.wait(None, &mut done);
        }
        assert_eq!(disk.in_flight(), 0);
        let mut drive = CommandQueue::new(&model("laptop-4200"), 4, CommandQueue::PATIENCE);
        let started = |id| done.iter().find(|ended| ended.id == id).expect("it ended").started;
        let mut alike = Vec::new();
        for (n, offset) in (0..).zip(places) {
            let at = started(CommandId(n));
            alike.extend(drive.complete(at));
            let access = Access { lba: Lba::containing(offset), len, direction: Direction::Read };
            drive.submit(at, n, Command::Transfer(access)).unwrap();
        }
        alike.extend(std::iter::from_fn(|| drive.complete(Instant::MAX)));
        let ended: Vec<_> = done.iter().map(|ended| (ended.id.0, ended.finished)).collect();
        assert_eq!(ended, alike);
        assert!(done.is_sorted_by_key(|ended| ended.finished));
    }

    #[test]
    fn a_read_of_nothing_written_needs_no_drive() {
        let mut disk = disk();
        let span = Span { offset: Bytes::ZERO, len: Bytes::mib(1) };
        let nothing =
            DiskAction::Read { offset: Bytes::mib(1), span, written: Blocks::NONE.into() };
        let done = run(&mut disk, 1, nothing);
        assert_eq!(done.started, done.finished);
    }

    #[test]
    fn a_failing_backing_file_is_the_commands_error() {
        let mut disk = disk();
        disk.file.set_len(0).unwrap();
        let span = Span { offset: Bytes::ZERO, len: Bytes::kib(4) };
        let read = DiskAction::Read {
            offset: Bytes::mib(1),
            span,
            written: Blocks::first(Bytes::kib(4)).into(),
        };
        assert_eq!(run(&mut disk, 1, read).result, Err(DeviceError(libc::EIO)));
    }
}
