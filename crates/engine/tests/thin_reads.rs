//! Reads of what was written in part, of which a disk has ended its part before their memory is filled.

use crate::common::*;
use engine::{Backend, Completion, Pool, Stage};
use node::{CommandId, DiskAction, DiskCommand, Mode, Op};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use units::{Bytes, Instant};

/// The read that is held is so long, and no other.
const LEN: Bytes = Bytes::kib(68);

/// A device that is done with the read, and whose host fills its memory only when it is to.
struct Slow {
    inner: Box<dyn Backend>,
    fills: Arc<AtomicBool>,
    read: Option<CommandId>,
    /// The device has ended it.
    held: Option<CommandId>,
}

impl Backend for Slow {
    fn start(&mut self, command: DiskCommand) {
        if matches!(command.action, DiskAction::Read { span, .. } if span.len == LEN) {
            self.read = Some(command.id);
        }
        self.inner.start(command);
    }
    fn submit(&mut self) {
        self.inner.submit();
    }
    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        self.inner.wait(until, done);
        let mut noticed = Instant::EPOCH;
        for one in done.iter_mut() {
            noticed = noticed.max(one.noticed);
            if self.read == Some(one.id) {
                one.stage = Stage::Device(7);
                self.held = self.read.take();
            }
        }
        if noticed > Instant::EPOCH
            && self.fills.load(Ordering::SeqCst)
            && let Some(id) = self.held.take()
        {
            let filled = Completion::of(id, noticed, noticed, Ok(()));
            done.push(Completion { stage: Stage::Memory(7), ..filled });
        }
    }
    fn in_flight(&self) -> usize {
        self.inner.in_flight() + usize::from(self.held.is_some())
    }
}

/// The disk has one command at a time, and goes on with the next; the program has its bytes when all of
/// them are there.
#[test]
fn a_disk_does_not_wait_for_memory_to_be_filled_and_a_program_does() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &one_at_a_time(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "film", Bytes::mib(4));
    let writer = stream(&pool, "film", Mode::Write, contract("4MiB/s", Bytes::kib(256)));
    record(&pool, writer, 4 << 20);
    pool.call(Op::StreamClose { stream: writer }).unwrap();
    pool.shutdown().unwrap();

    let fills = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&fills);
    let mut options = options();
    options.wrap = Some(Arc::new(move |_, inner| {
        Box::new(Slow { inner, fills: Arc::clone(&told), read: None, held: None })
    }));
    let pool = Pool::open(&disks, options).unwrap();
    let (sender, answers) = channel();
    let op = Op::Read { volume: "film".into(), offset: Bytes::mib(2), len: LEN, priority: None };
    pool.submit(op, move |answer| sender.send(answer).unwrap());
    let other = |mib: u64| {
        let bytes = read(&pool, "film", Bytes::mib(mib), Bytes::kib(4)).unwrap();
        check(&bytes, mib << 20);
    };
    other(1);
    other(3);
    assert!(answers.try_recv().is_err(), "its memory is not filled");
    fills.store(true, Ordering::SeqCst);
    other(0);
    let answer = answers.recv().unwrap().unwrap();
    let engine::Reply::Data { bytes, .. } = answer else { panic!("it is read") };
    check(&bytes, 2 << 20);
    drop(bytes);
    pool.shutdown().unwrap();
}
