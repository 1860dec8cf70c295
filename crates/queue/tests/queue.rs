//! A queue on its own: what it starts, what it says of the end, what it counts and learns.

use disk::Profile;
use queue::{Device, DeviceTime, Ended, Handle, Next, Queue, Shared, Use};
use sched::{Class, Flow, Options, PolicyKind, Request, Schedule, Task, TaskId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

const LATENCY: Duration = Duration::from_millis(1);
const ADVANCE: Duration = Duration::from_millis(5);

/// Reads of 64 KiB take 11 ms, a flush 7 ms, and the pipeline takes a millisecond.
const PROFILE: &str = r#"
    kind = "linear"
    source = "made up for a test"
    confidence = "none"
    capacity = "1GiB"
    flush = "7ms"
    [linear]
    depth = 1
    latency = "1ms"
    read = { fixed = "10ms", rate = "65536kB/s" }
    write = { fixed = "20ms", rate = "65536kB/s" }
"#;

fn at(ms: u64) -> Instant {
    Instant::EPOCH + ms_(ms)
}

fn ms_(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn read(mib: u64) -> Command {
    let (lba, len) = (Lba::containing(Bytes::mib(mib)), Bytes::kib(64));
    Command::Transfer(Access { lba, len, direction: Direction::Read })
}

const BEST: Class = Class::BestEffort { synchronous: false, flow: Flow(1), ordered: false };

fn best(command: Command) -> Request {
    Request { class: BEST, command }
}

fn device(usage: Use) -> Device {
    let profile = Profile::parse(PROFILE).unwrap();
    assert_eq!(profile.latency(), LATENCY);
    Device { capacity: profile.capacity(), profile, advance: ADVANCE, patience: ms_(60), usage }
}

fn queue(usage: Use) -> Queue<&'static str> {
    let schedule = Schedule::new(PolicyKind::SLACK, Options::default());
    Queue::new(device(usage), schedule, [])
}

/// With a contract: a read every second.
fn with_task() -> (Queue<&'static str>, TaskId) {
    let mut queue = queue(Use::Alone);
    let cost = ms_(12);
    let task = queue.join(at(0), Task::new(ms_(1_000), ms_(900), cost)).unwrap();
    (queue, task)
}

fn start(queue: &mut Queue<&'static str>, ms: u64) -> Option<(u64, Duration, &'static str)> {
    match queue.next(at(ms)) {
        Next::Start { key, predicted, work, .. } => Some((key, predicted, work)),
        Next::Wait { .. } => None,
    }
}

#[test]
fn what_needs_no_device_goes_first_and_counts_for_nothing() {
    let mut queue = queue(Use::Alone);
    queue.submit(at(0), 1, best(read(5)), "a read");
    queue.submit_instant(None, 2, BEST, "nothing");
    assert!(queue.waits(1) && queue.waits(2));
    assert_eq!(start(&mut queue, 0), Some((2, Duration::ZERO, "nothing")));
    let ended = queue.ended(2, at(0), at(0), true);
    assert_eq!((ended.work, ended.took, ended.latency), ("nothing", None, Duration::ZERO));
    assert_eq!(queue.account(), &queue::Account::default());
    assert_eq!(start(&mut queue, 0).map(|(key, ..)| key), Some(1));
    assert!(!queue.waits(1));
    assert_eq!(start(&mut queue, 0), None, "one command at a time");
}

#[test]
fn the_end_of_a_command_is_counted_by_its_kind() {
    let (mut queue, task) = with_task();
    let under = Request { class: Class::RealTime(task), command: read(5) };
    queue.submit(at(0), 1, under, "promised");
    let (key, predicted, _) = start(&mut queue, 0).unwrap();
    assert_eq!((key, predicted), (1, ms_(11)));
    // Its bound is with the pipeline: 12 ms. It takes 15, and is late beyond 905.
    let ended = queue.ended(1, at(0), at(15), true);
    assert_eq!((ended.late_by, ended.latency, ended.promised), (Duration::ZERO, ms_(15), true));
    assert_eq!(ended.took, Some((ms_(15), ms_(12))));
    queue.submit(at(1_000), 2, under, "promised");
    start(&mut queue, 1_000).unwrap();
    let ended = queue.ended(2, at(1_000), at(1_906), true);
    assert_eq!(ended.late_by, ms_(1), "the deadline is advanced by what the host may take");
    queue.submit(at(2_000), 3, best(read(9)), "best effort");
    start(&mut queue, 2_000).unwrap();
    let ended = queue.ended(3, at(2_000), at(2_010), false);
    assert_eq!((ended.promised, ended.took), (false, None), "a command that failed tells no time");
    let account = queue.account();
    assert_eq!((account.real_time.requests, account.real_time.bytes), (2, Bytes::kib(128)));
    assert_eq!((account.best_effort.requests, account.best_effort.bytes), (1, Bytes::kib(64)));
    assert_eq!((account.overruns, account.overrun_max), (2, ms_(894)));
    assert_eq!((account.late_requests, account.late_max), (1, ms_(1)));
    assert_eq!((account.errors, account.predicted_total), (1, ms_(33)));
    assert_eq!(account.actual_total, ms_(15 + 906 + 10));
}

/// The host looked away: by what it knows the device may have ended at once. The device is
/// held against that, and what follows is a gap; the promise is held against the rest.
#[test]
fn what_the_host_notices_late_is_its_own_and_no_overrun_but_late_all_the_same() {
    let (mut queue, task) = with_task();
    let under = Request { class: Class::RealTime(task), command: read(5) };
    queue.submit(at(0), 1, under, "promised");
    assert_eq!(start(&mut queue, 0).unwrap().0, 1);
    queue.submit(at(0), 2, best(read(9)), "behind it");
    let times = DeviceTime { started: at(0), finished: at(11), noticed: at(907) };
    let ended = queue.ended_within(1, times, true);
    assert_eq!((ended.late_by, ended.latency), (ms_(2), ms_(907)));
    assert_eq!(ended.took, Some((ms_(11), ms_(12))));
    let account = queue.account();
    assert_eq!((account.overruns, account.late_requests), (0, 1));
    assert_eq!(account.actual_total, ms_(11));
    assert_eq!(start(&mut queue, 907).unwrap().0, 2);
    queue.ended(2, at(908), at(918), true);
    let gaps = queue.gaps();
    assert_eq!((gaps.sample, gaps.beyond, gaps.beyond_max), (1, 1, ms_(897)));
}

#[test]
fn a_command_that_was_not_started_can_be_taken_back_or_do_something_else() {
    let (mut queue, task) = with_task();
    let under = |mib| Request { class: Class::RealTime(task), command: read(mib) };
    queue.submit(at(0), 1, under(5), "first");
    queue.submit(at(0), 2, under(6), "second");
    assert!(queue.is_released(1, at(0)) && !queue.is_released(2, at(999)));
    assert_eq!(queue.due(2), Some(at(1_905)), "a period later");
    let other = Request { class: BEST, command: read(8) };
    assert!(!queue.redirect(at(0), 2, other, || ("changed", VecDeque::new())), "of another class");
    assert!(queue.redirect(at(0), 2, under(7), || ("changed", VecDeque::new())));
    assert_eq!(queue.work(2), Some(&"changed"));
    start(&mut queue, 0).unwrap();
    assert!(!queue.cancel(1), "with the device");
    assert!(!queue.redirect(at(0), 1, under(7), || ("no", VecDeque::new())));
    assert!(queue.take_back(2) && !queue.waits(2));
    queue.submit(at(1), 3, under(8), "in its place");
    assert_eq!(queue.due(3), Some(at(1_905)), "what was taken back is the contract's again");
    queue.ended(1, at(0), at(10), true);
    assert_eq!(queue.leave(task), ["in its place"]);
    assert_eq!(queue.commands().count(), 0);
}

#[test]
fn a_class_that_changes_is_the_one_that_counts() {
    let (mut queue, task) = with_task();
    queue.submit(at(0), 1, best(read(5)), "best effort at first");
    assert!(queue.upgrade(at(0), 1, Class::RealTime(task)));
    assert_eq!(queue.class_of(1), Some(Class::RealTime(task)));
    start(&mut queue, 0).unwrap();
    assert!(queue.ended(1, at(0), at(10), true).promised);
    assert_eq!(queue.account().real_time.requests, 1);
}

/// Of the flushes that go well the longest but one is remembered: one decides nothing.
#[test]
fn flushes_are_known_by_the_longest() {
    let mut queue = queue(Use::Alone);
    let ended = [(8, true), (30, true), (90, false), (21, true), (9, true)];
    for (key, (took, good)) in (1..).zip(ended) {
        let begin = 1_000 * key;
        queue.submit(at(begin), key, best(Command::Flush), "flush");
        assert_eq!(start(&mut queue, begin).unwrap().1, ms_(7));
        queue.ended(key, at(begin), at(begin + took), good);
    }
    assert_eq!(queue.flush_longest(), ms_(21));
}

/// A read that fails again and again makes its extent suspect, which is said once, and
/// which another profile does not make forgotten.
#[test]
fn an_extent_that_fails_is_suspect() {
    let mut queue = queue(Use::Alone);
    let mut said = 0;
    for key in 0..8 {
        queue.submit(at(key * 100), key, best(read(5)), "read");
        start(&mut queue, key * 100).unwrap();
        let Ended { suspects_changed, .. } =
            queue.ended(key, at(key * 100), at(key * 100 + 10), false);
        said += u64::from(suspects_changed);
    }
    assert!(said > 0);
    assert_eq!(queue.seen().suspects().map(|it| it.extent).collect::<Vec<_>>(), [5]);
    queue.use_profile(device(Use::Alone).profile, ADVANCE * 2, ms_(60));
    assert_eq!(queue.seen().suspects().count(), 1);
    assert_eq!(queue.advance(), ADVANCE * 2);
}

/// A queue whose extent 5 was slow again and again, beside a contract that leaves less slack than a read there
/// takes.
fn with_slow_extent() -> (Queue<&'static str>, TaskId) {
    let mut schedule = Schedule::new(PolicyKind::SLACK, Options::default());
    let tight = Task::new(ms_(1_000), ms_(200), ms_(12));
    schedule.join(at(0), tight).unwrap();
    let mut queue = Queue::new(device(Use::Alone), schedule, []);
    for key in 0..48 {
        let (begin, is_slow) = (key * 1_000, key % 6 == 5);
        queue.submit(at(begin), key, best(read(if is_slow { 5 } else { 6 + key })), "read");
        start(&mut queue, begin).unwrap();
        queue.ended(key, at(begin), at(begin + if is_slow { 300 } else { 10 }), true);
    }
    assert_eq!(queue.seen().suspects().map(|it| it.extent).collect::<Vec<_>>(), [5]);
    let task = queue.join(at(50_000), tight).unwrap();
    (queue, task)
}

/// A read where reads were slow again and again is expected to be: it goes only where the
/// slack covers that, or where nobody but the queue's owner has a contract.
#[test]
fn a_slow_extent_waits_for_slack() {
    let (mut queue, task) = with_slow_extent();
    queue.submit(at(60_000), 120, best(read(5)), "slow");
    assert_eq!(start(&mut queue, 60_000), None);
    queue.submit(at(60_000), 121, best(read(7)), "as good as any");
    assert!(queue.cancel(120));
    let (key, predicted, _) = start(&mut queue, 60_000).unwrap();
    assert_eq!((key, predicted), (121, ms_(11)));
    queue.ended(121, at(60_000), at(60_011), true);
    queue.submit(at(61_000), 122, best(read(5)), "slow");
    assert_eq!(start(&mut queue, 61_000), None);
    queue.leave(task);
    let (key, predicted, _) = start(&mut queue, 61_000).unwrap();
    assert_eq!((key, predicted), (122, ms_(11)), "held against what a good place takes");
}

/// There could be slack for it, right behind a request of the contract, but none comes. What must be done goes
/// after a while all the same, and before what may wait longer.
#[test]
fn what_must_be_done_goes_where_no_slack_comes() {
    let (mut queue, _) = with_slow_extent();
    for (key, work) in [(120, "a block"), (121, "a record"), (122, "a read")] {
        queue.submit(at(60_000), key, best(read(5)), work);
    }
    assert_eq!(start(&mut queue, 60_000), None);
    let must = |work: &&str, _: &Class| match *work {
        "a record" => Some(0),
        "a block" => Some(1),
        _ => None,
    };
    let mut insist = |ms: u64| {
        let waits = (at(ms - 1_000), at(ms - 5_000));
        let is_any = queue.insist(at(ms), waits, must);
        let started = start(&mut queue, ms).map(|(.., work)| work);
        assert_eq!(is_any, started.is_some());
        if let Some(key) = started.map(|work| if work == "a record" { 121 } else { 120 }) {
            queue.ended(key, at(ms), at(ms + 10), true);
        }
        started
    };
    assert_eq!([60_500, 61_500, 64_900].map(&mut insist), [None; 3]);
    let went = [65_100, 65_400, 65_700].map(&mut insist);
    assert_eq!(went, [Some("a record"), Some("a block"), None]);
}

/// What can never be served beside the contracts ends without the device: when it has waited, and where its owner
/// does not want it to wait on.
#[test]
fn what_never_fits_is_given_up_when_it_has_waited() {
    let (mut queue, _) = with_slow_extent();
    queue.join(at(55_000), Task::new(ms_(100), ms_(90), ms_(12))).unwrap();
    for (key, ms, work) in [(120, 60_000, "kept"), (121, 60_100, "old"), (122, 62_000, "young")] {
        queue.submit(at(ms), key, best(read(5)), work);
        assert_eq!(start(&mut queue, ms), None);
    }
    let mut give_up = |ms: u64| {
        let ended = queue.give_up(at(ms), at(ms - 2_000), |work, _| *work != "kept");
        ended.iter().map(|one| (one.work, one.is_last, one.took)).collect::<Vec<_>>()
    };
    assert_eq!(give_up(62_050), []);
    assert_eq!(give_up(62_100), [("old", true, None)]);
    assert_eq!(give_up(62_200), [], "one has not waited, and one waits on");
    assert_eq!(give_up(64_000), [("young", true, None)]);
    assert_eq!(queue.commands().map(|(key, ..)| key).collect::<Vec<_>>(), [120]);
}

/// On a device of others nobody knows where the heads are, and what others may take is no
/// overrun.
#[test]
fn what_others_may_take_of_a_shared_device_is_no_overrun() {
    let others = ms_(40);
    for (usage, overruns) in [(Use::Alone, 1), (Use::Shared { others }, 0)] {
        let mut queue = queue(usage);
        queue.submit(at(0), 1, best(read(5)), "read");
        start(&mut queue, 0).unwrap();
        queue.ended(1, at(0), at(11 + 1 + 40), true);
        assert_eq!(queue.account().overruns, overruns, "{usage:?}");
        queue.submit(at(100), 2, best(read(5)), "read");
        start(&mut queue, 100).unwrap();
        queue.ended(2, at(100), at(100 + 11 + 1 + 41), true);
        assert_eq!(queue.account().overruns, overruns + 1, "{usage:?}");
    }
}

/// A command in several places costs what all of them do, for as long as it is known, and
/// another that begins there as much at the most.
#[test]
fn scattered_commands_cost_all_their_places() {
    let mut queue = queue(Use::Shared { others: Duration::ZERO });
    queue.submit_scattered(at(0), 1, best(read(5)), ms_(30), "long");
    queue.submit_scattered(at(0), 2, best(read(5)), ms_(20), "less long");
    queue.submit(at(0), 3, best(read(9)), "one place");
    let mut told = Vec::new();
    for n in 0..3 {
        let (key, predicted, _) = start(&mut queue, n * 100).unwrap();
        told.push((key, predicted));
        queue.ended(key, at(n * 100), at(n * 100 + 10), true);
    }
    told.sort();
    assert_eq!(told, [(1, ms_(41)), (2, ms_(31)), (3, ms_(11))]);
}

/// A block of three runs: one request, three commands, and nothing between them, although
/// somebody with a nearer deadline comes meanwhile.
#[test]
fn the_parts_of_a_request_follow_one_another() {
    let (mut queue, task) = with_task();
    let under = |command| Request { class: Class::RealTime(task), command };
    let rest = VecDeque::from([(None, "zeros"), (Some(read(7)), "second")]);
    queue.submit_in_parts(at(0), 1, under(read(5)), "first", rest);
    queue.submit(at(0), 2, best(read(20)), "other");
    let now = queue.schedule().next_release(task).as_nanos() / 1_000_000;
    assert_eq!(start(&mut queue, now), Some((1, ms_(11), "first")));
    assert_eq!(start(&mut queue, now + 1), None, "nothing beside it");
    let ended = queue.ended(1, at(now), at(now + 10), true);
    assert_eq!((ended.work, ended.is_last, ended.late_by), ("first", false, Duration::ZERO));
    assert_eq!(start(&mut queue, now + 10), Some((1, Duration::ZERO, "zeros")));
    let ended = queue.ended(1, at(now + 10), at(now + 10), true);
    assert_eq!((ended.work, ended.is_last), ("zeros", false));
    assert_eq!(start(&mut queue, now + 10), Some((1, ms_(11), "second")));
    let ended = queue.ended(1, at(now + 10), at(now + 2_000), false);
    assert_eq!((ended.work, ended.is_last), ("second", true));
    assert!(!ended.late_by.is_zero(), "the request has one deadline");
    assert_eq!((queue.account().real_time.requests, queue.account().late_requests), (2, 1));
    assert_eq!(start(&mut queue, now + 2_000).map(|(key, ..)| key), Some(2));
}

/// A device that takes four commands at once has nothing but the parts of a request from its
/// first to its last, and as many as it takes then.
#[test]
fn a_deep_device_has_the_parts_of_a_request_alone() {
    let schedule = Schedule::new(PolicyKind::SLACK, Options { depth: 4, ..Options::default() });
    let mut queue = Queue::new(device(Use::Alone), schedule, []);
    let rest = VecDeque::from([(Some(read(7)), "second")]);
    queue.submit_in_parts(at(0), 1, best(read(5)), "first", rest);
    assert_eq!(start(&mut queue, 0).map(|(_, _, work)| work), Some("first"));
    queue.submit(at(0), 2, best(read(20)), "other");
    assert_eq!(start(&mut queue, 0), None, "nothing beside the first part");
    queue.ended(1, at(0), at(10), true);
    assert_eq!(start(&mut queue, 10).map(|(_, _, work)| work), Some("second"));
    assert_eq!(start(&mut queue, 10).map(|(_, _, work)| work), Some("other"), "the last part");
}

/// What waits is counted with all its parts: best effort in eight parts does not fit into the
/// slack that one of them would fit into.
#[test]
fn a_request_costs_what_all_its_parts_do() {
    let mut queue = queue(Use::Alone);
    let cost = ms_(12);
    let task = queue.join(at(0), Task::new(ms_(100), ms_(100), cost)).unwrap();
    let starts = |queue: &mut Queue<&'static str>, rest| {
        queue.submit_in_parts(at(0), 7, best(read(5)), "best", rest);
        let started = matches!(queue.next(at(0)), Next::Start { key: 7, .. });
        let waits = queue.waits(7);
        (started, waits && queue.cancel(7)).0
    };
    queue.submit(at(0), 1, Request { class: Class::RealTime(task), command: read(9) }, "block");
    let rest = (6..13).map(|mib| (Some(read(mib)), "further")).collect();
    assert!(!starts(&mut queue.clone(), rest));
    assert!(starts(&mut queue, VecDeque::new()));
}

/// The parts of one request cost nobody else anything who begins at the same place: it keeps
/// its promise, and nobody is late.
#[test]
fn parts_are_charged_to_their_own_request_alone() {
    let mut queue = queue(Use::Alone);
    let task = |deadline, cost| Task::new(ms_(1_000), ms_(deadline), ms_(cost));
    let near = queue.join(at(0), task(455, 12)).unwrap();
    let far = [0, 0].map(|_| queue.join(at(0), task(890, 400)).unwrap());
    let under = |task, mib| Request { class: Class::RealTime(task), command: read(mib) };
    let rest = || (100..116).map(|mib| (Some(read(mib)), "part")).collect();
    for key in 10..40 {
        queue.submit(at(0), key, best(read(300 + key)), "best effort");
    }
    queue.submit(at(0), 1, under(near, 5), "near");
    queue.submit_in_parts(at(0), 2, under(far[0], 5), "at the same place", rest());
    queue.submit_in_parts(at(0), 3, under(far[1], 50), "elsewhere", rest());
    let (mut now, mut ended) = (0, 0);
    while ended < 33 {
        assert!(now < 3_000, "{ended} have ended");
        match start(&mut queue, now) {
            None => now += 1,
            Some((key, ..)) => {
                now += if [2, 3].contains(&key) { 21 } else { 11 };
                let end = queue.ended(key, at(now - 11), at(now), true);
                ended += u64::from(end.is_last);
                assert_eq!(end.late_by, Duration::ZERO, "{key} at {now}");
            }
        }
    }
    assert_eq!(queue.schedule().counts().over_cost, 0);
}

/// Between parts a gap is counted as between other commands: one that grows makes no request
/// cost more than its contract says, and a contract of fewer parts does not cover its request.
#[test]
fn a_gap_is_counted_after_each_part() {
    for (parts, over_cost) in [(21, 0), (20, 1)] {
        let mut queue = queue(Use::Alone);
        let cost = ms_(11 * 21) + LATENCY * 20;
        let task = Task::new(ms_(1_000), ms_(900), cost).in_parts(parts);
        let task = queue.join(at(0), task).unwrap();
        queue.set_gap(at(0), queue::limits::GAP_MAX).unwrap();
        let rest = (100..120).map(|mib| (Some(read(mib)), "part")).collect();
        let request = Request { class: Class::RealTime(task), command: read(5) };
        queue.submit_in_parts(at(0), 1, request, "first", rest);
        assert_eq!(start(&mut queue, 0).map(|(key, ..)| key), Some(1));
        assert_eq!(queue.schedule().counts().over_cost, over_cost, "{parts}");
    }
}

/// A part on an extent that is known to be bad makes the request wait, whichever part it is.
#[test]
fn a_part_on_a_bad_extent_is_waited_for() {
    for bad_first in [true, false] {
        let mut queue = queue(Use::Alone);
        for n in 0..8 {
            let now = 2_000 * n;
            queue.submit(at(now), 100 + n, best(read(5)), "fails after a second");
            assert_eq!(start(&mut queue, now).map(|(key, ..)| key), Some(100 + n));
            queue.ended(100 + n, at(now), at(now + 1_000), false);
        }
        assert_eq!(queue.seen().suspects().count(), 1);
        let now = 20_000;
        queue.join(at(now), Task::new(ms_(2_000), ms_(500), ms_(12))).unwrap();
        let task = queue.join(at(now), Task::new(ms_(2_000), ms_(400), ms_(60))).unwrap();
        let (first, second) = if bad_first { (5, 50) } else { (50, 5) };
        let request = Request { class: Class::RealTime(task), command: read(first) };
        let rest = VecDeque::from([(Some(read(second)), "second")]);
        queue.submit_in_parts(at(now), 1, request, "first", rest);
        assert_eq!(start(&mut queue, now + 3_000), None, "bad first: {bad_first}");
    }
}

/// On a device that has several commands a part waits for those that it had before: that is
/// not held against the device.
#[test]
fn on_a_deep_device_a_part_is_held_against_what_it_took_alone() {
    let deep = Options { depth: 2, ..Options::default() };
    let schedule = Schedule::new(PolicyKind::SLACK, deep);
    let profile = Profile::parse(&PROFILE.replace("depth = 1", "depth = 2")).unwrap();
    let mut queue = Queue::new(Device { profile, ..device(Use::Alone) }, schedule, []);
    queue.submit(at(0), 1, best(read(3)), "other");
    let rest = VecDeque::from([(Some(read(7)), "second")]);
    queue.submit_in_parts(at(0), 2, best(read(5)), "first", rest);
    assert_eq!(start(&mut queue, 0).map(|(key, ..)| key), Some(1));
    assert_eq!(start(&mut queue, 0).map(|(key, ..)| key), Some(2));
    // The device works on one after the other.
    queue.ended(1, at(0), at(11), true);
    let ended = queue.ended(2, at(0), at(22), true);
    assert_eq!((ended.work, ended.took), ("first", None));
    assert_eq!(queue.account().overruns, 0);
}

/// Parts of which none needs the device.
#[test]
fn zeros_in_parts_need_no_device() {
    let mut queue = queue(Use::Alone);
    queue.submit_instant_in_parts(None, 1, BEST, "first", VecDeque::from([(None, "second")]));
    for (work, is_last) in [("first", false), ("second", true)] {
        assert_eq!(start(&mut queue, 0), Some((1, Duration::ZERO, work)));
        let ended = queue.ended(1, at(0), at(0), true);
        assert_eq!((ended.work, ended.is_last), (work, is_last));
    }
    assert_eq!(start(&mut queue, 0), None);
}

/// Whoever shares the queue may come with an earlier time: it does not go back.
#[test]
fn time_does_not_go_back() {
    let (mut queue, task) = with_task();
    assert_eq!(start(&mut queue, 500), None);
    queue.submit(at(100), 1, Request { class: Class::RealTime(task), command: read(5) }, "late");
    assert_eq!(queue.due(1), Some(at(500 + 900 + 5)));
}

/// A queue behind a lock: locked at the first look, until it is released.
#[derive(Debug)]
struct Elsewhere {
    queue: Queue<&'static str>,
    is_locked: Arc<AtomicBool>,
    locks: Arc<AtomicU32>,
}

impl Shared<&'static str> for Elsewhere {
    fn get(&self) -> &Queue<&'static str> {
        if !self.is_locked.swap(true, Relaxed) {
            self.locks.fetch_add(1, Relaxed);
        }
        &self.queue
    }
    fn get_mut(&mut self) -> &mut Queue<&'static str> {
        self.get();
        &mut self.queue
    }
    fn release(&mut self) {
        self.is_locked.store(false, Relaxed);
    }
}

#[test]
fn a_shared_queue_is_locked_only_where_it_is_looked_at() {
    let (is_locked, locks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let own = Handle::new(queue(Use::Alone));
    let mut handle = own.clone().share(|queue| {
        Box::new(Elsewhere { queue, is_locked: is_locked.clone(), locks: locks.clone() })
    });
    assert!(!handle.take_news(), "nothing has come");
    handle.release();
    assert_eq!(locks.load(Relaxed), 1, "once, as it was new");
    assert!(!handle.take_news());
    assert!(!is_locked.load(Relaxed) && locks.load(Relaxed) == 1, "untouched: not looked at");
    handle.submit(at(0), 1, best(read(5)), "read");
    assert!(is_locked.load(Relaxed) && handle.waits(1));
    assert!(handle.take_news());
    assert!(!handle.take_news(), "said once");
    handle.release();
    assert!(!is_locked.load(Relaxed));
    // A copy is a queue of its own.
    let mut copy = handle.clone();
    assert!(copy.cancel(1) && handle.waits(1));
    handle.set_to(copy);
    assert!(!handle.waits(1), "as the copy was");
    assert!(is_locked.load(Relaxed), "and still where it was");
}

/// A path is gone, and what the device has does not come back: its age is known, and what is late of it
/// counts from its deadline on, once.
#[test]
fn a_command_that_does_not_come_back_has_an_age_and_is_late_before_its_end() {
    let (mut queue, task) = with_task();
    let under = Request { class: Class::RealTime(task), command: read(5) };
    assert_eq!(queue.oldest(), None);
    queue.submit(at(0), 1, under, "promised");
    assert_eq!(queue.oldest(), None, "it waits");
    start(&mut queue, 3).unwrap();
    // With the pipeline.
    let has = |ms: u64| Some(queue::Oldest { given: at(ms), bound: ms_(12) });
    assert_eq!(queue.oldest(), has(3));
    let late = |queue: &Queue<&'static str>, ms: u64| {
        let account = queue.account_at(at(ms));
        (account.late_requests, account.late_max)
    };
    // Its deadline is after 900 ms, and advanced by 5.
    assert_eq!(late(&queue, 905), (0, Duration::ZERO));
    assert_eq!(late(&queue, 906), (1, ms_(1)));
    assert_eq!((late(&queue, 9_905), queue.oldest()), ((1, ms_(9_000)), has(3)));
    assert_eq!(queue.account().late_requests, 0, "it has not ended");
    queue.ended(1, at(3), at(10_905), true);
    assert_eq!((late(&queue, 20_000), queue.oldest()), ((1, ms_(10_000)), None), "still one");
    // Best effort is never late, and neither is what waits: that may be taken back.
    queue.submit(at(20_000), 2, best(read(9)), "best effort");
    start(&mut queue, 20_000).unwrap();
    queue.submit(at(20_001), 3, under, "promised");
    assert_eq!((late(&queue, 90_000), queue.oldest()), ((1, ms_(10_000)), has(20_000)));
}

/// The age is that of the part that the device has; a request that is late counts once, whatever it is
/// served in.
#[test]
fn a_request_in_parts_is_late_once_and_its_command_is_as_old_as_the_part() {
    let (mut queue, task) = with_task();
    let under = Request { class: Class::RealTime(task), command: read(5) };
    let rest = VecDeque::from([(Some(read(7)), "second"), (None, "nothing")]);
    queue.submit_in_parts(at(0), 1, under, "first", rest);
    start(&mut queue, 0).unwrap();
    let given = |queue: &Queue<&'static str>| queue.oldest().map(|oldest| oldest.given);
    assert_eq!(given(&queue), Some(at(0)));
    assert!(!queue.ended(1, at(0), at(1_000), true).is_last);
    assert_eq!(given(&queue), None, "the device has none");
    assert_eq!(queue.account_at(at(1_000)).late_requests, 1);
    start(&mut queue, 1_000).unwrap();
    assert_eq!(given(&queue), Some(at(1_000)));
    assert!(!queue.ended(1, at(1_000), at(2_000), true).is_last);
    start(&mut queue, 2_000).unwrap();
    assert_eq!((given(&queue), queue.account_at(at(2_000)).late_requests), (None, 1));
    assert!(queue.ended(1, at(2_000), at(2_001), true).is_last);
    assert_eq!((queue.begun().count(), queue.account_at(at(3_000)).late_requests), (0, 1));
}

/// What of a request needs no device is the host's to do, however long that takes it: the device goes
/// on with what waits. The request is late by its last part, as it always was.
#[test]
fn the_device_does_not_wait_for_parts_that_do_not_need_it() {
    let (mut queue, task) = with_task();
    let under = Request { class: Class::RealTime(task), command: read(5) };
    let rest = VecDeque::from([(None, "zeros"), (None, "more zeros")]);
    queue.submit_in_parts(at(0), 1, under, "first", rest);
    assert_eq!(start(&mut queue, 0).map(|(key, ..)| key), Some(1));
    queue.submit(at(0), 2, best(read(9)), "other");
    assert_eq!(start(&mut queue, 0), None, "one command at a time");
    let ended = queue.ended(1, at(0), at(10), true);
    assert_eq!((ended.is_last, ended.due), (false, None));
    assert_eq!(start(&mut queue, 10), Some((1, Duration::ZERO, "zeros")));
    assert_eq!(start(&mut queue, 10).map(|(key, ..)| key), Some(2), "while it is filled");
    assert_eq!(queue.due(1), Some(at(905)), "it has not ended");
    assert_eq!(queue.account_at(at(907)).late_requests, 1);
    assert!(!queue.ended(1, at(11), at(11), true).is_last);
    assert_eq!(start(&mut queue, 11), Some((1, Duration::ZERO, "more zeros")));
    let ended = queue.ended(1, at(908), at(908), true);
    assert!(ended.is_last && ended.promised);
    assert_eq!((ended.late_by, ended.latency, ended.due), (ms_(3), ms_(908), Some(at(905))));
    assert_eq!((queue.account().late_requests, queue.account().late_max), (1, ms_(3)));
    assert!(queue.ended(2, at(10), at(20), true).is_last);
}

/// The device is free when it has ended; the request is late by when its memory was filled.
#[test]
fn what_is_filled_after_the_device_has_ended_is_late_by_then() {
    let (mut queue, task) = with_task();
    let under = Request { class: Class::RealTime(task), command: read(5) };
    let mut end = |key: u64, from: u64, noticed: u64, filled: u64| {
        queue.submit(at(from), key, under, "thin");
        start(&mut queue, from).unwrap();
        let mut ended = queue.ended(key, at(from), at(noticed), true);
        queue.filled(&mut ended, at(noticed), at(filled));
        let account = queue.account();
        (ended.late_by, ended.latency, account.late_requests, account.late_max)
    };
    assert_eq!(end(1, 0, 10, 900), (Duration::ZERO, ms_(900), 0, Duration::ZERO));
    assert_eq!(end(2, 1_000, 1_010, 1_907), (ms_(2), ms_(907), 1, ms_(2)));
    assert_eq!(end(3, 2_000, 2_906, 2_909), (ms_(4), ms_(909), 2, ms_(4)), "counted once");
}

/// Whoever drives the device knows what it may do later: what counts for a contract is told from the rest.
#[test]
fn what_is_given_says_whether_it_counts_for_a_contract() {
    let (mut queue, task) = with_task();
    let under = Class::RealTime(task);
    queue.submit(at(0), 1, Request { class: under, command: read(5) }, "promised");
    queue.submit_instant(Some(at(0)), 2, under, "zeros of a stream");
    queue.submit_instant(None, 3, under, "zeros that count for nothing");
    queue.submit_instant(Some(at(0)), 4, BEST, "zeros in the slack");
    let rest = VecDeque::from([(None, "zeros behind it")]);
    let given = |queue: &mut Queue<&'static str>| match queue.next(at(0)) {
        Next::Start { key, is_promised, .. } => Some((key, is_promised)),
        Next::Wait { .. } => None,
    };
    for wanted in [(2, true), (3, false), (4, false), (1, true)] {
        assert_eq!(given(&mut queue), Some(wanted));
        queue.ended(wanted.0, at(0), at(10), true);
    }
    queue.submit_in_parts(at(1_000), 5, Request { class: under, command: read(5) }, "first", rest);
    for _ in 0..2 {
        let Next::Start { key: 5, is_promised: true, .. } = queue.next(at(1_000)) else {
            panic!("both parts count");
        };
        queue.ended(5, at(1_000), at(1_010), true);
    }
    queue.submit(at(2_000), 6, best(read(9)), "best effort");
    let Next::Start { key: 6, is_promised: false, .. } = queue.next(at(2_000)) else {
        panic!("best effort counts for nothing");
    };
}
