//! How often the pool's lock is taken for what is done often: a number that grows with each
//! operation, and so must not grow unseen.

use super::*;
use crate::core::visits;
use crate::{CreateOptions, DeviceSpec, SharedWindow, Told};
use node::{Access, Contract, Mode, Opening, Placement};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;
use tempfile::TempDir;
use units::Rate;
use window::{Kind, Piece};

const LEN: Bytes = Bytes::kib(4);
const BLOCK: Bytes = Bytes::kib(64);

const PROFILE: &str = r#"
    kind = "linear"
    source = "made up for a test"
    confidence = "none"
    capacity = "256MiB"
    flush = "1ms"
    [linear]
    depth = 4
    latency = "1ms"
    read = { fixed = "0.01ms", rate = "4GB/s" }
    write = { fixed = "0.01ms", rate = "4GB/s" }
"#;

/// A pool on one file, with a volume that is written from end to end. The directory goes with
/// the test.
fn pool() -> (Pool, TempDir) {
    pool_on(PROFILE)
}

fn pool_on(profile: &str) -> (Pool, TempDir) {
    let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
    let disks = [DeviceSpec::Real { path: dir.path().join("disk") }];
    let profile = Some(Profile::parse(profile).unwrap());
    let options = CreateOptions { size: Some(Bytes::mib(64)), profile, ..CreateOptions::default() };
    Pool::create("visits", &disks, &options).unwrap();
    let mut options = Options { realtime: false, ..Options::default() };
    // The profile is made up.
    options.config.remeasure = false;
    options.config.memory = Bytes::mib(64);
    // No commits but at the end: they take the lock, too.
    options.config.commit_interval = Duration::from_secs(600);
    let pool = Pool::open(&disks, options).unwrap();
    let (size, placement) = (Bytes::mib(4), Placement::default());
    let name = String::from("film");
    pool.call(Op::VolumeCreate { name, size, placement, access: Access::default() }).unwrap();
    for at in 0..4 {
        let room = pool.call(Op::Room { len: Bytes::MIB, target: None }).unwrap();
        let Reply::Room { room } = room else { panic!("{room:?} is no room") };
        pool.call_write("film", Bytes::MIB * at, room).unwrap();
    }
    (pool, dir)
}

fn contract() -> Contract {
    Contract { rate: Rate::per_second(5_000_000), block: BLOCK, burst: BLOCK }
}

fn opening() -> Opening {
    let (volume, mode, start) = ("film".into(), Mode::Read, Bytes::ZERO);
    Opening { volume, mode, contract: contract(), start, early: false, miss: None }
}

/// One read after the other, each begun by the callback of the one before it, which first
/// gives that one's memory back.
struct Chain {
    pool: Pool,
    left: AtomicU64,
    over: mpsc::Sender<(ThreadId, u64)>,
}

impl Chain {
    fn next(self: Arc<Self>) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            return self.over.send((std::thread::current().id(), visits())).unwrap();
        }
        let offset = LEN * (self.left.load(Ordering::Relaxed) % 256);
        let read = Op::Read { volume: "film".into(), offset, len: LEN, priority: None };
        let this = Arc::clone(&self);
        self.pool.submit(read, move |read| {
            drop(read.unwrap());
            this.next();
        });
    }
}

/// A program reads in a closed loop, as the fastest do. Each end of a command took the pool's
/// lock three times: to tell the node, to give the memory back, and for the next read. What a
/// callback asks for now comes together with what the others ask for, in one visit.
#[test]
fn a_read_that_is_begun_in_a_callback_costs_no_visit_of_its_own() {
    const READS: u64 = 500;
    let (pool, _dir) = pool();
    let (over, ended) = mpsc::channel();
    let chain = Arc::new(Chain { pool, left: AtomicU64::new(READS), over });
    Arc::clone(&chain).next();
    // The counter is the disk's thread's own; the pool was filled by others.
    let (thread, visits) = ended.recv().unwrap();
    assert_ne!(thread, std::thread::current().id(), "callbacks run on the disk's thread");
    // Filling took it one visit for each end, and each timer one.
    let others = 40;
    assert!(visits <= 2 * READS + others, "{visits} visits for {READS} reads");
}

/// A program that has all from memory, read after read, each in the callback of the one before it: it
/// neither fills the stack of a thread nor keeps a disk's thread from its disk.
#[test]
fn who_has_read_after_read_from_memory_uses_no_stack_for_it() {
    const READS: u64 = 100_000;
    let (pool, _dir) = pool_on(&PROFILE.replace("0.01ms", "0.1ms"));
    let (over, ended) = mpsc::channel();
    let chain = Arc::new(Chain { pool, left: AtomicU64::new(READS), over });
    Arc::clone(&chain).next();
    let (thread, _) = ended.recv().unwrap();
    assert_ne!(thread, std::thread::current().id());
    let from_memory = chain.pool.status().memory.from_memory;
    assert!(from_memory > LEN * (READS - 2_000), "{from_memory}");
}

/// What is begun in a callback: reads are put off until all callbacks of the delivery have run,
/// and take the lock once then; what does not bear that takes it at once.
#[test]
fn reads_of_a_callback_wait_for_its_end_and_nothing_else_does() {
    let (pool, _dir) = pool();
    let pool = Arc::new(pool);
    let (told, seen) = mpsc::channel();
    let (answers, answered) = mpsc::channel();
    let ours = Arc::clone(&pool);
    let read = |at| Op::Read { volume: "film".into(), offset: LEN * at, len: LEN, priority: None };
    pool.submit(read(0), move |first| {
        drop(first.unwrap());
        let before = visits();
        for at in 1..9 {
            let answers = answers.clone();
            ours.submit(read(at), move |read| answers.send(read.map(drop)).unwrap());
        }
        let reads = visits() - before;
        ours.submit(Op::Sync, move |done| answers.send(done.map(drop)).unwrap());
        told.send((std::thread::current().id(), reads, visits() - before)).unwrap();
    });
    let (thread, reads, others) = seen.recv().unwrap();
    assert_ne!(thread, std::thread::current().id(), "callbacks run on the disk's thread");
    assert_eq!((reads, others), (0, 1));
    (0..9).for_each(|_| answered.recv().unwrap().unwrap());
}

/// A program plays from a window that it shares, and another by copies. What the daemon's
/// session does for a block of the first is to say that the program has moved on: pieces come
/// by themselves. For one of the second it gives back, moves on and takes what is in memory
/// behind it in one, and asks for what was not there.
#[test]
fn a_block_of_a_window_costs_one_visit_and_so_does_one_by_copy() {
    const BLOCKS: u64 = 32;
    let (pool, _dir) = pool();
    let (sender, opened) = mpsc::channel();
    let done = move |result: Result<SharedWindow, Error>| sender.send(result).unwrap();
    pool.open_window(Who::root(), opening(), done).unwrap();
    let opened = opened.recv().unwrap();
    let SharedWindow { stream, .. } = opened.unwrap();
    let (bell, rung) = mpsc::channel();
    let pieces = pool.pieces(Who::root(), stream, move || bell.send(()).unwrap_or_default());
    let before = visits();
    let mut at = Bytes::ZERO;
    while at < BLOCK * BLOCKS {
        pieces.ask();
        let Some(told) = pieces.take() else {
            rung.recv().unwrap();
            continue;
        };
        let Ok(Told { piece: Piece { kind, offset, len, .. }, seeks: 0, .. }) = told else {
            panic!("{told:?} is no piece")
        };
        assert_eq!((kind, offset, len), (Kind::Data, at, BLOCK), "in their order, each once");
        let (moved, answer) = mpsc::channel();
        let op = Op::WindowMoved { stream, len };
        pool.submit(op, move |result| moved.send(result.map(drop)).unwrap());
        answer.recv().unwrap().unwrap();
        at += len;
    }
    let taken = visits() - before;
    // Once to begin, and once for each eight that lay there unread.
    let most = BLOCKS + 1 + BLOCKS / 8;
    assert!(taken <= most, "{taken} visits for {BLOCKS} blocks of a window");
    pool.call(Op::StreamClose { stream }).unwrap();

    let (volume, mode, start) = (String::from("film"), Mode::Read, Bytes::ZERO);
    let opened = pool.call(Op::StreamOpen { volume, mode, contract: contract(), start }).unwrap();
    let Reply::Stream { stream, .. } = opened else { panic!("{opened:?} is no stream") };
    let read_by_now = || {
        let account = pool.status().disks[0].account;
        account.real_time.requests + account.best_effort.requests
    };
    let (first, mut visited, mut asked, mut taken) = (read_by_now(), 0, 0, None);
    for at in 0..BLOCKS {
        let before = visits();
        let read = taken.take().unwrap_or_else(|| {
            asked += 1;
            pool.call(Op::StreamRead { stream, len_max: BLOCK })
        });
        let Ok(Reply::Data { bytes: chunk, offset }) = read else { panic!("{read:?} is no data") };
        assert_eq!((offset, Bytes::new(chunk.len() as u64)), (BLOCK * at, BLOCK));
        visited += visits() - before;
        // Until the next block is in memory, if it comes at all.
        let ahead = (at + 2).min(BLOCKS);
        let waits = |_: &u32| std::thread::sleep(std::time::Duration::from_millis(1));
        (0..5_000).inspect(waits).find(|_| read_by_now() >= first + ahead);
        let before = visits();
        let (moved, answer) = mpsc::channel();
        let (next, came) = mpsc::channel();
        let done = move |result: Result<(), Error>| moved.send(result).unwrap();
        let take = move |result| next.send(result).unwrap();
        pool.advance_and_take(Who::root(), (chunk, BLOCK), done, BLOCK, take);
        visited += visits() - before;
        answer.recv().unwrap().unwrap();
        taken = came.recv().ok();
    }
    assert_eq!(visited, BLOCKS + asked);
    assert!(asked <= BLOCKS / 2, "{asked} of {BLOCKS} blocks were not in memory");
    drop(taken);
    pool.call(Op::StreamClose { stream }).unwrap();
}

/// An ask goes on over a jump: what was told before it says so. At the end nothing more
/// comes, until somebody asks again.
#[test]
fn pieces_come_by_themselves_over_a_jump_until_the_end() {
    let (pool, _dir) = pool();
    let (sender, opened) = mpsc::channel();
    let done = move |result: Result<SharedWindow, Error>| sender.send(result).unwrap();
    pool.open_window(Who::root(), opening(), done).unwrap();
    let opened = opened.recv().unwrap();
    let SharedWindow { stream, .. } = opened.unwrap();
    let (bell, rung) = mpsc::channel();
    let pieces = pool.pieces(Who::root(), stream, move || bell.send(()).unwrap_or_default());
    let next = || loop {
        match pieces.take() {
            Some(told) => break told,
            None => rung.recv().unwrap(),
        }
    };
    pieces.ask();
    assert!(matches!(next(), Ok(Told { seeks: 0, .. })));
    let to = Bytes::mib(4) - BLOCK;
    let sought = pool.call(Op::StreamSeek { stream, to }).unwrap();
    assert!(matches!(sought, Reply::Ready { seeks: 1, .. }), "{sought:?}");
    let (mut last, mut ends) = (None, 0);
    while ends == 0 {
        let Ok(Told { piece, seeks, .. }) = next() else { panic!("no piece") };
        match (seeks, piece.kind) {
            (0, _) => assert!(last.is_none(), "of before the jump, after it"),
            (1, Kind::Data) => assert_eq!(last.replace(piece.offset), None),
            (1, Kind::End) => ends += 1,
            other => panic!("{other:?}"),
        }
        if ends == 0 {
            pieces.ask();
        }
    }
    assert_eq!(last, Some(to));
    pool.call(Op::StreamClose { stream }).unwrap();
    pieces.ask();
    // Whoever asks again at the end is told of it again.
    let is_end = |told: &_| matches!(told, Ok(Told { piece, .. }) if piece.kind == Kind::End);
    let last = std::iter::repeat_with(next).find(|told| !is_end(told));
    assert!(matches!(last, Some(Err(Error::NoSuchStream { .. }))), "{last:?}");
}
