//! Requests that lie one behind another in one command: which, how many, and how each ends.

use disk::{BusPlan, BusShare, Profile};
use queue::{Device, Ended, Merging, Next, Queue, Use};
use sched::{Class, Flow, Options, PolicyKind, Request, Schedule, Task};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, Rate};

const PIECE: Bytes = Bytes::kib(64);
const BEST: Class = Class::BestEffort { synchronous: false, flow: Flow(1), ordered: false };

/// A command takes 10 ms, and a millisecond for each 64 KiB.
const PROFILE: &str = r#"
    kind = "linear"
    source = "made up for a test"
    confidence = "none"
    capacity = "1GiB"
    flush = "7ms"
    [linear]
    depth = 1
    latency = "0ms"
    read = { fixed = "10ms", rate = "65536kB/s" }
    write = { fixed = "10ms", rate = "65536kB/s" }
"#;

/// What a request is for: pieces of one operation go in one command.
type Work = (&'static str, u32);

const MERGING: Merging<Work> = Merging {
    piece: Bytes::kib(256),
    may_merge: |one, other, _| one.0 == other.0,
    merge: |one, other, _| one.1 += other.1,
};

fn at(ms: u64) -> Instant {
    Instant::EPOCH + ms_(ms)
}

fn ms_(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn transfer(piece: u64, direction: Direction) -> Command {
    Command::Transfer(Access { lba: Lba::containing(PIECE * piece), len: PIECE, direction })
}

fn read(piece: u64) -> Request {
    Request { class: BEST, command: transfer(piece, Direction::Read) }
}

fn queue(policy: PolicyKind, text: &str) -> Queue<Work> {
    queue_of(policy, Profile::parse(text).unwrap())
}

fn queue_of(policy: PolicyKind, profile: Profile) -> Queue<Work> {
    let options = Options { depth: profile.depth(), reserve: ms_(11), ..Options::default() };
    let device = Device {
        capacity: profile.capacity(),
        profile,
        advance: Duration::ZERO,
        patience: ms_(60),
        usage: Use::Alone,
    };
    let mut queue = Queue::new(device, Schedule::new(policy, options), []);
    queue.set_merging(Some(MERGING));
    queue
}

fn start(queue: &mut Queue<Work>, ms: u64) -> Option<(u64, Duration, Work)> {
    match queue.next(at(ms)) {
        Next::Start { key, predicted, work, .. } => Some((key, predicted, *work)),
        Next::Wait { .. } => None,
    }
}

/// The keys of those that a command served with the first, by the place that each was told.
fn others(ended: &Ended<Work>) -> Vec<u32> {
    assert!(ended.with.iter().all(|other| other.with.is_empty() && other.is_last));
    ended.with.iter().map(|other| other.work.1).collect()
}

#[test]
fn what_lies_one_behind_another_goes_in_one_command_on_an_idle_disk() {
    let mut queue = queue(PolicyKind::SLACK, PROFILE);
    queue.join(at(0), Task::new(ms_(1_000), ms_(900), ms_(12))).unwrap();
    for piece in 0..16 {
        queue.submit(at(0), piece, read(piece), ("film", 1));
    }
    assert_eq!(start(&mut queue, 0), Some((0, ms_(26), ("film", 16))));
    assert_eq!(start(&mut queue, 0), None, "the disk has all");
    assert!((0..16).all(|key| !queue.waits(key) && !queue.cancel(key)));
    let ended = queue.ended(0, at(0), at(25), true);
    assert_eq!((ended.work, ended.is_last, others(&ended)), (("film", 16), true, vec![1; 15]));
    assert_eq!(ended.took, Some((ms_(25), ms_(26))), "as one command");
    assert_eq!(queue.commands().count(), 0);
    let account = queue.account();
    assert_eq!((account.best_effort.requests, account.best_effort.bytes), (1, Bytes::MIB));
    assert_eq!((account.overruns, account.predicted_total), (0, ms_(26)));
    // Where the heads are, and when the disk is free, is known.
    queue.submit(at(25), 16, read(16), ("film", 1));
    assert_eq!(start(&mut queue, 25), Some((16, ms_(11), ("film", 1))));
}

/// As many as there is slack for. A read every 200 ms costs 12 of them, within 40 ms: 28 are left.
#[test]
fn no_more_goes_in_one_command_than_the_slack_covers() {
    let mut queue = queue(PolicyKind::SLACK, PROFILE);
    let task = queue.join(at(0), Task::new(ms_(200), ms_(40), ms_(12))).unwrap();
    for piece in 0..20 {
        queue.submit(at(0), piece, read(piece), ("film", 1));
    }
    assert_eq!(start(&mut queue, 0), Some((0, ms_(28), ("film", 18))));
    let under = Request { class: Class::RealTime(task), command: transfer(900, Direction::Read) };
    queue.submit(at(0), 100, under, ("promised", 1));
    assert_eq!(others(&queue.ended(0, at(0), at(28), true)).len(), 17);
    let (key, predicted, _) = start(&mut queue, 28).expect("it is its turn");
    assert_eq!((key, predicted), (100, ms_(11)));
    assert_eq!(queue.ended(100, at(28), at(39), true).late_by, Duration::ZERO);
    // The heads come from behind: the last one is the nearest, and what came before it goes first.
    assert_eq!(start(&mut queue, 39), Some((19, ms_(12), ("film", 2))));
    assert_eq!(others(&queue.ended(19, at(39), at(51), true)), [1]);
}

/// Requests under one contract go together, too, and each ends by its own deadline. What the
/// schedule chose at its deadline is made longer only where others can bear it.
#[test]
fn requests_of_one_contract_go_together_and_each_has_its_deadline() {
    for (other, end, late) in [(40, 101, 1), (23, 101, 1), (40, 201, 2)] {
        let mut queue = queue(PolicyKind::SLACK, PROFILE);
        let task = queue.join(at(0), Task::new(ms_(100), ms_(100), ms_(11))).unwrap();
        queue.join(at(0), Task::new(ms_(1_000), ms_(other), ms_(11))).unwrap();
        for piece in 0..3 {
            let command = transfer(piece, Direction::Write);
            let request = Request { class: Class::RealTime(task), command };
            queue.submit(at(0), piece, request, ("film", 1));
        }
        let served = if other == 40 { 3 } else { 2 };
        let took = 10 + u64::from(served);
        assert_eq!(start(&mut queue, 0), Some((0, ms_(took), ("film", served))));
        // Too late for the first; for the others their turns are a period later each.
        let ended = queue.ended(0, at(0), at(end), true);
        let told = (ended.promised, ended.late_by, ended.latency);
        assert_eq!(told, (true, ms_(end - 100), ms_(end)));
        let dues: Vec<_> = ended.with.iter().map(|other| other.due).collect();
        assert_eq!(dues, [Some(at(200)), Some(at(300))][..dues.len()]);
        assert_eq!(ended.with.len() as u32, served - 1);
        assert!(ended.with.iter().all(|other| other.promised));
        let are_late = ended.with.iter().filter(|other| !other.late_by.is_zero());
        assert_eq!(are_late.count() as u64 + 1, late);
        assert_eq!(
            (queue.account().late_requests, queue.account().late_max),
            (late, ms_(end - 100))
        );
    }
}

#[test]
fn a_command_that_fails_fails_for_all_that_it_served() {
    let mut queue = queue(PolicyKind::SLACK, PROFILE);
    for piece in 0..3 {
        queue.submit(at(0), piece, read(piece), ("film", 1));
    }
    start(&mut queue, 0).unwrap();
    let ended = queue.ended(0, at(0), at(5), false);
    assert_eq!((others(&ended), ended.took), (vec![1; 2], None));
    assert_eq!(queue.account().errors, 1);
    assert_eq!(queue.commands().count(), 0);
}

/// While somebody waits for best effort, no command grows beyond a piece of it: in a copy of the
/// queue neither, as one is made before something is tried.
#[test]
fn commands_stay_short_while_somebody_waits_for_answers() {
    let mut queue = queue(PolicyKind::SLACK, PROFILE).clone();
    let soon = Class::BestEffort { synchronous: true, flow: Flow(2), ordered: false };
    queue.submit(at(0), 0, Request { class: soon, ..read(900) }, ("short", 1));
    start(&mut queue, 0).unwrap();
    queue.ended(0, at(0), at(11), true);
    for (begin, longest) in [(11, 4), (900, 4), (1_000, 16)] {
        let first = begin * 100;
        for piece in 0..16 {
            queue.submit(at(begin), first + piece, read(piece), ("film", 1));
        }
        let (mut now, mut served) = (begin, Vec::new());
        while let Some((key, took, (_, many))) = start(&mut queue, now) {
            served.push(many);
            now += took.as_nanos() / 1_000_000;
            queue.ended(key, at(begin), at(now), true);
        }
        let told = (served.iter().sum(), *served.iter().max().unwrap());
        assert_eq!(told, (16, longest), "at {begin} ms: {served:?}");
    }
}

/// What is not the next, in any way, is a command of its own.
#[test]
fn what_does_not_follow_goes_by_itself() {
    let write = |piece| Request { command: transfer(piece, Direction::Write), ..read(0) };
    let background = |piece| Request { class: Class::Background, ..read(piece) };
    let film = ("film", 1);
    let alone = |name: &str, policy: PolicyKind, text: &str, next: (u64, Request, Work)| {
        let mut queue = queue(policy, text);
        queue.submit(at(0), 1, read(1), film);
        queue.submit(at(0), next.0, next.1, next.2);
        let first = start(&mut queue, 0).unwrap();
        assert_eq!(first.2.1, 1, "{name}");
        queue.ended(first.0, at(0), at(11), true).with.is_empty()
    };
    let slack = PolicyKind::SLACK;
    assert!(alone("another place", slack, PROFILE, (2, read(3), film)));
    assert!(alone("another way", slack, PROFILE, (2, write(2), film)));
    assert!(alone("another operation", slack, PROFILE, (2, read(2), ("other", 1))));
    assert!(alone("by deadline alone", PolicyKind::EDF, PROFILE, (2, read(2), film)));
    let deep = PROFILE.replace("depth = 1", "depth = 2");
    assert!(alone("the device takes two", slack, &deep, (2, read(2), film)));
    let plan = BusPlan::new("shelf", Rate::per_second(1_000_000_000), 2);
    let bus = Some(BusShare::new(plan).unwrap());
    let mut on_a_bus = queue_of(slack, Profile { bus, ..Profile::parse(PROFILE).unwrap() });
    on_a_bus.submit(at(0), 1, read(1), film);
    on_a_bus.submit(at(0), 2, read(2), film);
    assert_eq!(start(&mut on_a_bus, 0).unwrap().2.1, 1);
    // A few that came between are passed over, many are not looked through.
    for (between, commands) in [(1, 2), (7, 8), (8, 10)] {
        let mut queue = self::queue(slack, PROFILE);
        queue.submit(at(0), 1, read(1), film);
        (0..between).for_each(|other| {
            queue.submit(at(0), 2 + other, read(100 + 2 * other), ("between", 1));
        });
        queue.submit(at(0), 100, read(2), film);
        let mut served = 0;
        while let Some((key, ..)) = start(&mut queue, 0) {
            queue.ended(key, at(0), at(11), true);
            served += 1;
        }
        assert_eq!(served, commands, "with {between} between");
    }
    // What is before it on the disk may have come later.
    let mut queue = self::queue(slack, PROFILE);
    queue.submit(at(0), 1, read(2), film);
    queue.submit(at(0), 2, read(1), film);
    assert_eq!(start(&mut queue, 0).unwrap().2.1, 2);
    // Both have no contract: that one may wait longer is no reason.
    let mut queue = self::queue(slack, PROFILE);
    queue.submit(at(0), 1, read(1), film);
    queue.submit(at(0), 2, background(2), film);
    assert_eq!(start(&mut queue, 0).unwrap().2.1, 2);
}

/// A class that was tried and undone is not the command's any more.
#[test]
fn a_class_that_is_undone_joins_requests_as_before() {
    let mut queue = queue(PolicyKind::SLACK, PROFILE);
    let may_merge = |_: &Work, _: &Work, is_one_class| is_one_class;
    queue.set_merging(Some(Merging { may_merge, ..MERGING }));
    for piece in 0..4 {
        queue.submit(at(0), piece, read(piece), ("film", 1));
    }
    let attempt = queue.attempt();
    let within = queue.attempt();
    assert!(queue.upgrade(at(0), 0, Class::best_effort(true)));
    queue.keep(within);
    assert!(queue.upgrade(at(0), 0, Class::Background));
    queue.undo(attempt);
    assert_eq!(queue.class_of(0), Some(BEST));
    assert_eq!(start(&mut queue, 0).map(|(key, _, work)| (key, work)), Some((0, ("film", 4))));
}

/// A command that does not come back holds up all that it serves: each of them is late once.
#[test]
fn all_that_one_command_serves_is_late_before_it_ends() {
    let mut queue = queue(PolicyKind::SLACK, PROFILE);
    let server = |ms: u64| Task::new(ms_(ms), ms_(100), ms_(12));
    let tasks = [1_000, 1_000].map(|period| queue.join(at(0), server(period)).unwrap());
    for (key, task) in tasks.into_iter().enumerate() {
        let class = Class::RealTime(task);
        let command = transfer(key as u64, Direction::Read);
        queue.submit(at(0), key as u64, Request { class, command }, ("film", 1));
    }
    let mut given = Vec::new();
    while let Some((key, ..)) = start(&mut queue, 0) {
        given.push(key);
    }
    let begun = queue.begun().count();
    assert_eq!((given.len(), begun), (1, 2), "the other goes with it");
    assert_eq!(queue.account_at(at(60_000)).late_requests, 2);
    let ended = queue.ended(given[0], at(0), at(60_000), true);
    assert_eq!(ended.with.len(), 1);
    assert_eq!(queue.account_at(at(90_000)).late_requests, 2);
}
