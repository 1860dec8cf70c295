//! Requests in chunks: what they are charged, and who goes between.

use disk::Profile;
use queue::{Chunks, Device, Next, Queue, Use};
use sched::{Class, Flow, Options, PolicyKind, Request, Schedule, Task};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

const CHUNK: Bytes = Bytes::kib(64);

/// A command takes 10 ms, and 100 ms for each 64 KiB; a read that goes on takes the 10 ms no more.
const PROFILE: &str = r#"
    kind = "linear"
    source = "made up for a test"
    confidence = "none"
    capacity = "1GiB"
    flush = "7ms"
    [linear]
    depth = 1
    latency = "0ms"
    read = { fixed = "10ms", rate = "655360B/s" }
    write = { fixed = "10ms", rate = "655360B/s" }
"#;

const CHUNKS: Chunks<Access> = Chunks {
    len: CHUNK,
    may_cut: |_| true,
    stays_whole: |_| false,
    cut: |work, len| {
        let (near, far) = work.cut(len);
        *work = near;
        (Command::Transfer(near), (Command::Transfer(far), far))
    },
};

fn at(ms: u64) -> Instant {
    Instant::EPOCH + ms_(ms)
}

fn ms_(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn read(mib: u64, len: Bytes) -> Access {
    Access { lba: Lba::containing(Bytes::mib(mib)), len, direction: Direction::Read }
}

fn queue() -> Queue<Access> {
    let profile = Profile::parse(PROFILE).unwrap();
    let device = Device {
        capacity: profile.capacity(),
        profile,
        advance: Duration::ZERO,
        patience: ms_(60),
        usage: Use::Alone,
    };
    let schedule = Schedule::new(PolicyKind::SLACK, Options::default());
    let mut queue = Queue::new(device, schedule, []);
    queue.set_chunks(Some(CHUNKS));
    queue
}

/// The key of what goes next, and how long it is.
fn start(queue: &mut Queue<Access>, ms: u64) -> Option<(u64, Bytes)> {
    match queue.next(at(ms)) {
        Next::Start { key, work, .. } => Some((key, work.len)),
        Next::Wait { .. } => None,
    }
}

/// All that is left of a request is counted between its chunks: what has no contract goes there only
/// where it makes the request no later than it may be.
#[test]
fn what_is_left_of_a_request_is_counted_between_its_chunks() {
    for (deadline, next) in [(500, 1), (700, 2)] {
        let mut queue = queue();
        let task = Task::new(ms_(1_000), ms_(deadline), ms_(410));
        let task = queue.join(at(0), task.in_chunks(ms_(110), 4, ms_(10))).unwrap();
        let work = read(5, CHUNK * 4);
        let request = Request { class: Class::RealTime(task), command: Command::Transfer(work) };
        queue.submit(at(0), 1, request, work);
        assert_eq!(start(&mut queue, 0), Some((1, CHUNK)));
        let (work, flow) = (read(90, CHUNK), Flow(1));
        let class = Class::BestEffort { synchronous: false, flow, ordered: false };
        queue.submit(at(50), 2, Request { class, command: Command::Transfer(work) }, work);
        assert!(!queue.ended(1, at(0), at(110), true).is_last);
        // 300 ms of the request are left, and 10 more where another goes between: that takes 110.
        assert_eq!(start(&mut queue, 110), Some((next, CHUNK)), "within {deadline} ms");
    }
}

/// Between two chunks goes who has the nearer deadline, and the request ends once.
#[test]
fn a_nearer_deadline_goes_between_two_chunks() {
    let mut queue = queue();
    let long = Task::new(ms_(1_000), ms_(900), ms_(310)).in_chunks(ms_(110), 3, Duration::ZERO);
    let long = queue.join(at(0), long).unwrap();
    let near = queue.join(at(0), Task::new(ms_(1_000), ms_(400), ms_(110))).unwrap();
    let submit = |queue: &mut Queue<Access>, ms, key, task, of: Access| {
        let request = Request { class: Class::RealTime(task), command: Command::Transfer(of) };
        queue.submit(at(ms), key, request, of);
    };
    submit(&mut queue, 0, 1, long, read(5, CHUNK * 3));
    assert_eq!(start(&mut queue, 0), Some((1, CHUNK)));
    submit(&mut queue, 5, 2, near, read(90, CHUNK));
    assert!(!queue.ended(1, at(0), at(110), true).is_last);
    assert_eq!(start(&mut queue, 110), Some((2, CHUNK)));
    assert!(queue.ended(2, at(110), at(220), true).is_last);
    for (from, is_last) in [(220, false), (330, true)] {
        assert_eq!(start(&mut queue, from), Some((1, CHUNK)));
        assert_eq!(queue.ended(1, at(from), at(from + 110), true).is_last, is_last);
    }
    assert_eq!(start(&mut queue, 440), None);
}
