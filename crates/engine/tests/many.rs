//! Many threads ask for everything at once, of two disks of different kinds.
//! Nothing hangs, nothing is mixed up, all memory comes back.

use crate::common::*;
use engine::{DeviceSpec, Pool, Reply};
use node::{Mode, Op};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use units::Bytes;

const PIECE: Bytes = Bytes::kib(16);
const PIECES: u64 = 64;
const THREADS: u64 = 4;

/// The byte at an offset of one thread's volume in one of its turns.
fn stamp(thread: u64, turn: u64, offset: u64) -> u8 {
    pattern(offset.wrapping_add(thread * 7919).wrapping_add(turn * 104_729))
}

fn blocks(pool: &Pool, thread: u64) {
    let name = format!("volume{thread}");
    volume(pool, &name, PIECE * PIECES);
    for turn in 0..3 {
        let (sender, ended) = mpsc::channel();
        for piece in 0..PIECES {
            let offset = PIECE * piece;
            let mut memory = room(pool, PIECE);
            let bytes = memory.iter_mut().zip(offset.get()..);
            bytes.for_each(|(byte, at)| *byte = stamp(thread, turn, at));
            let sender = sender.clone();
            pool.write(&name, offset, memory, move |end| sender.send(end.map(drop)).unwrap());
        }
        (0..PIECES).for_each(|_| ended.recv().unwrap().unwrap());
        for piece in 0..PIECES {
            let offset = PIECE * ((piece * 37) % PIECES);
            let bytes = read(pool, &name, offset, PIECE).unwrap();
            let mut bytes = bytes.iter().zip(offset.get()..);
            assert!(bytes.all(|(&byte, at)| byte == stamp(thread, turn, at)), "{name} {turn}");
        }
        assert!(matches!(pool.call(Op::Sync), Ok(Reply::Done)));
    }
}

fn tape(pool: &Pool, thread: u64) {
    let name = format!("tape{thread}");
    volume(pool, &name, Bytes::mib(2));
    let contract = contract("500kB/s", Bytes::kib(64));
    let writer = stream(pool, &name, Mode::Write, contract);
    record(pool, writer, 700_001);
    pool.call(Op::StreamClose { stream: writer }).unwrap();
    let reader = stream(pool, &name, Mode::Read, contract);
    assert_eq!(play(pool, reader), (vec![], 700_001));
    pool.call(Op::StreamClose { stream: reader }).unwrap();
}

#[test]
fn everything_at_once_ends_and_nothing_is_mixed_up() {
    let (dir, other) = (Dir::new(), Dir::new());
    everything_at_once(&[dir.file("a"), other.emulated("b")]);
    let (dir, other) = (Dir::in_memory(), Dir::new());
    everything_at_once(&[dir.file("a"), other.emulated("b")]);
}

fn everything_at_once(disks: &[DeviceSpec]) {
    Pool::create("many", disks, &untimed(32)).unwrap();
    let mut options = options();
    options.config.commit_interval = units::Duration::from_secs(1);
    let pool = Pool::open(disks, options).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let pool = &pool;
            scope
                .spawn(move || if thread == 0 { tape(pool, thread) } else { blocks(pool, thread) });
        }
        scope.spawn(|| (0..50).for_each(|_| drop((pool.status(), pool.host_lateness()))));
    });
    let status = pool.status();
    assert_eq!(status.memory.best_effort, Bytes::ZERO);
    assert_eq!(status.memory.windows, Bytes::ZERO);
    assert!(status.streams.is_empty() && status.disks.iter().all(|disk| disk.account.errors == 0));
    assert_eq!(status.disks[1].account.overruns, 0, "the emulated disk kept to its profile");
    pool.shutdown().unwrap();
}

/// Thirty-two reads wait for a disk that does one at a time: what the host takes between them
/// is measured.
#[test]
fn what_the_host_takes_between_commands_is_measured_on_a_disk_at_work() {
    let dir = Dir::new();
    let disks = [dir.emulated("a")];
    Pool::create("gaps", &disks, &untimed(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "area", PIECE * PIECES);
    for piece in 0..PIECES {
        let memory = room(&pool, PIECE);
        pool.call_write("area", PIECE * piece, memory).unwrap();
    }
    let before = pool.status().disks[0].gaps.sample;
    let (sender, ended) = mpsc::channel();
    for piece in 0..32 {
        let sender = sender.clone();
        let (offset, len) = (PIECE * (piece * 37 % PIECES), PIECE);
        let read = Op::Read { volume: "area".into(), offset, len, priority: None };
        pool.submit(read, move |end| sender.send(end.map(drop)).unwrap());
    }
    (0..32).for_each(|_| ended.recv().unwrap().unwrap());
    let gaps = pool.status().disks[0].gaps;
    assert!(gaps.sample >= before + 16, "{gaps:?}");
    // None is charged, so that each that took any time was longer.
    assert!(gaps.stated.is_zero() && gaps.beyond > 0 && !gaps.beyond_max.is_zero(), "{gaps:?}");
    pool.shutdown().unwrap();
}

/// Callbacks that submit the next operation keep a closed loop going on the
/// disk's own thread, also when they hold the last handle to the pool.
#[test]
fn a_loop_of_callbacks_needs_no_other_thread() {
    a_loop_of_callbacks(&Dir::new());
    a_loop_of_callbacks(&Dir::in_memory());
}

fn a_loop_of_callbacks(dir: &Dir) {
    let disks = [dir.file("a")];
    Pool::create("loop", &disks, &untimed(32)).unwrap();
    let pool = Arc::new(Pool::open(&disks, options()).unwrap());
    volume(&pool, "area", Bytes::mib(4));
    let (sender, ended) = mpsc::channel();
    let left = Arc::new(AtomicU64::new(500));
    fn next(pool: &Arc<Pool>, left: &Arc<AtomicU64>, sender: mpsc::Sender<()>) {
        let step = left.fetch_sub(1, Ordering::Relaxed);
        if step == 0 {
            return sender.send(()).unwrap();
        }
        let (again, left) = (Arc::clone(pool), Arc::clone(left));
        let offset = Bytes::kib(4) * (step % 1024);
        let read = Op::Read { volume: "area".into(), offset, len: Bytes::kib(4), priority: None };
        pool.submit(read, move |end| {
            assert!(matches!(end, Ok(Reply::Data { .. })));
            next(&again, &left, sender);
        });
    }
    next(&pool, &left, sender);
    drop(pool);
    ended.recv().unwrap();
}

/// To wake another thread takes longer than to copy 4 KiB. Who is under contract does not depend on
/// when ordinary threads have a processor.
/// What is asked for in one go is begun in its order when that is over, even where it panics.
#[test]
fn what_is_asked_for_in_one_go_comes_in_its_order() {
    for dir in [Dir::new(), Dir::in_memory()] {
        let disks = [dir.file("a")];
        Pool::create("go", &disks, &quick(32)).unwrap();
        let pool = Pool::open(&disks, options()).unwrap();
        volume(&pool, "area", Bytes::mib(1));
        for turn in 0..40_u8 {
            let (sender, ended) = mpsc::channel();
            let writes = [(turn, 0), (turn + 100, 8), (turn + 200, 16)];
            let writes = writes.map(|write| (write, room(&pool, Bytes::kib(16))));
            pool.together(|| {
                for ((value, offset), mut memory) in writes {
                    let sender = sender.clone();
                    memory.fill(value);
                    let written = move |end: Result<(), _>| sender.send(end.is_ok()).unwrap();
                    pool.write("area", Bytes::kib(offset), memory, written);
                }
                assert!(ended.try_recv().is_err(), "begun before the go was over");
            });
            drop(sender);
            assert_eq!(ended.iter().collect::<Vec<_>>(), [true; 3]);
            let bytes = read(&pool, "area", Bytes::ZERO, Bytes::kib(32)).unwrap();
            let is = |kib: std::ops::Range<usize>, value: u8| {
                bytes[kib.start << 10..kib.end << 10].iter().all(|&byte| byte == value)
            };
            assert!(is(0..8, turn) && is(8..16, turn + 100) && is(16..32, turn + 200), "{turn}");
        }
        let (sender, ended) = mpsc::channel();
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.together(|| {
                let (offset, len) = (Bytes::ZERO, Bytes::kib(4));
                let read = Op::Read { volume: "area".into(), offset, len, priority: None };
                pool.submit(read, move |end| sender.send(end.is_ok()).unwrap());
                drop(room(&pool, Bytes::kib(4)));
                // In a go within one, and of something that is not put off.
                pool.together(|| assert!(matches!(pool.call(Op::Sync), Ok(Reply::Done))));
                assert_eq!(ended.try_recv(), Ok(true), "before what was asked for after it");
                panic!("as the test wants");
            });
        }));
        assert!(asked.is_err());
        read(&pool, "area", Bytes::ZERO, Bytes::kib(4)).unwrap();
        pool.shutdown().unwrap();
    }
}

#[test]
fn what_lies_in_memory_is_moved_by_who_asks_unless_something_is_promised() {
    let dir = Dir::in_memory();
    let disks = [dir.file("a")];
    Pool::create("here", &disks, &quick(32)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "area", Bytes::mib(2));
    let mut memory = room(&pool, Bytes::mib(1));
    memory.iter_mut().zip(0..).for_each(|(byte, at)| *byte = pattern(at));
    pool.call_write("area", Bytes::ZERO, memory).unwrap();
    let own = std::thread::current().id();
    // How many of these reads are answered by this thread, before `submit` returns.
    let here = |count: u64| {
        let (sender, ended) = mpsc::channel();
        for piece in 0..count {
            let sender = sender.clone();
            let (offset, len) = (Bytes::kib(4) * (piece * 37 % 256), Bytes::kib(4));
            let read = Op::Read { volume: "area".into(), offset, len, priority: None };
            pool.submit(read, move |end| {
                let Ok(Reply::Data { bytes: chunk, .. }) = end else { panic!("{end:?}") };
                check(&chunk, offset.get());
                sender.send(std::thread::current().id() == own).unwrap();
            });
        }
        drop(sender);
        ended.iter().filter(|&is_here| is_here).count()
    };
    // What may be swapped out is no memory.
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap().lines().count() > 1;
    assert_eq!(here(1000) > 0, !swaps);
    let reader = stream(&pool, "area", Mode::Read, contract("100kB/s", Bytes::kib(64)));
    assert_eq!(here(1000), 0);
    pool.call(Op::StreamClose { stream: reader }).unwrap();
    assert_eq!(here(1000) > 0, !swaps);
    pool.shutdown().unwrap();
}
