//! Commands with a drive that orders them itself: which it is given beside others, and what they
//! are held against.

use disk::{BusPlan, BusShare, Model, Profile};
use queue::{Device, Merging, Next, Queue, Rest, Use};
use sched::{Class, Flow, Options, PolicyKind, Request, Schedule};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, Rate};

const NORMAL: Class = Class::BestEffort { synchronous: false, flow: Flow(1), ordered: false };
const INTERACTIVE: Class = Class::BestEffort { synchronous: true, flow: Flow(2), ordered: false };

/// What a request is for: some go alone.
type Work = &'static str;

fn profile(queue: u32) -> Profile {
    Profile::of(&Model::named("laptop-4200").unwrap()).with_queue(queue)
}

fn queue_of(profile: Profile) -> Queue<Work> {
    let reserve = Duration::from_millis(50);
    let options = Options { any_order: profile.queue(), reserve, ..Options::default() };
    let device = Device {
        capacity: profile.capacity(),
        profile,
        advance: Duration::ZERO,
        patience: Duration::from_millis(60),
        usage: Use::Alone,
    };
    let mut queue = Queue::new(device, Schedule::new(PolicyKind::SLACK, options), []);
    queue.set_beside(|work, _| *work != "alone");
    queue
}

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

fn access(mib: u64) -> Access {
    Access { lba: Lba::containing(Bytes::mib(mib)), len: Bytes::kib(4), direction: Direction::Read }
}

fn read(mib: u64) -> Request {
    Request { class: NORMAL, command: Command::Transfer(access(mib)) }
}

fn worst(mib: u64) -> Duration {
    let access = access(mib);
    profile(1).worst(access.lba..access.end(), access.len, access.direction)
}

/// What it starts: keys and bounds, until it waits.
fn started(queue: &mut Queue<Work>, ms: u64) -> Vec<(u64, Duration)> {
    let mut all = Vec::new();
    while let Next::Start { key, predicted, .. } = queue.next(at(ms)) {
        all.push((key, predicted));
    }
    all
}

fn keys(started: &[(u64, Duration)]) -> Vec<u64> {
    started.iter().map(|&(key, _)| key).collect()
}

#[test]
fn the_drive_has_as_many_as_it_holds_and_each_counts_from_anywhere() {
    let mut queue = queue_of(profile(3));
    for key in 0..6 {
        queue.submit(at(0), key, read(key * 10), "read");
    }
    let given = started(&mut queue, 0);
    assert_eq!(keys(&given), [0, 1, 2]);
    assert_eq!(given[1..], [1, 2].map(|key| (key, worst(key * 10))));
    // The drive takes the first one last, and far longer than it would have taken alone.
    let most = worst(0).as_nanos() / 1_000_000;
    let ended = queue.ended(2, at(0), at(20), true);
    assert_eq!(
        (ended.work, ended.is_last, ended.took),
        ("read", true, Some((at(20) - at(0), worst(20))))
    );
    let given = started(&mut queue, 20);
    assert_eq!(keys(&given), [3]);
    assert_eq!(queue.ended(1, at(0), at(30), true).took, None, "it was not alone");
    assert_eq!(queue.ended(3, at(20), at(40), true).took, None);
    assert_eq!(keys(&started(&mut queue, 40)), [4, 5]);
    queue.ended(0, at(0), at(40 + most), true);
    assert_eq!(queue.account().overruns, 0, "as long as from anywhere");
    queue.ended(4, at(40), at(50 + most), true);
    queue.ended(5, at(40), at(60 + most), true);
    assert_eq!(queue.commands().count(), 0);
}

/// Which of several was the last one nobody knows: the next one may come from anywhere, the one
/// behind it comes from there.
#[test]
fn where_the_heads_are_is_known_again_after_a_command_alone() {
    let mut queue = queue_of(profile(2));
    let alone = |queue: &mut Queue<Work>, ms: u64, key: u64, mib: u64| {
        queue.submit(at(ms), key, read(mib), "read");
        let [(given, predicted)] = started(queue, ms)[..] else { panic!("one") };
        assert_eq!(given, key);
        // The time of a transfer from the platters: where the heads are is known from that.
        queue.ended(key, at(ms), at(ms + 30), true);
        predicted
    };
    alone(&mut queue, 0, 0, 10);
    let near = alone(&mut queue, 100, 1, 11);
    assert!(near < worst(11), "it is known where they are");
    for key in [2, 3] {
        queue.submit(at(200), key, read(key * 5), "read");
    }
    assert_eq!(started(&mut queue, 200).len(), 2);
    // Told in another order than they were served in.
    queue.ended(3, at(200), at(230), true);
    queue.ended(2, at(200), at(260), true);
    assert_eq!(alone(&mut queue, 300, 4, 11), worst(11));
    assert_eq!(alone(&mut queue, 400, 5, 12), near);
}

#[test]
fn while_somebody_waits_the_drive_has_one_at_a_time() {
    let mut queue = queue_of(profile(4));
    queue.submit(at(0), 0, Request { class: INTERACTIVE, ..read(0) }, "read");
    for key in 1..6 {
        queue.submit(at(0), key, read(key), "read");
    }
    assert_eq!(keys(&started(&mut queue, 0)), [0]);
    queue.ended(0, at(0), at(20), true);
    assert_eq!(keys(&started(&mut queue, 20)), [1]);
    queue.ended(1, at(20), at(40), true);
    assert_eq!(keys(&started(&mut queue, 999)), [2]);
    assert_eq!(keys(&started(&mut queue, 1_000)), [3, 4, 5]);
}

/// What is not to be with the drive beside others, or is in several commands or places.
#[test]
fn what_goes_alone_has_nothing_beside_it() {
    for kind in ["work", "parts", "places", "flush"] {
        let mut queue = queue_of(profile(4));
        queue.submit(at(0), 0, read(0), "read");
        match kind {
            "work" => queue.submit(at(0), 1, read(1), "alone"),
            "parts" => {
                let rest = Rest::from([(Some(read(2).command), "second")]);
                queue.submit_in_parts(at(0), 1, read(1), "first", rest);
            }
            "places" => queue.submit_scattered(at(0), 1, read(1), worst(5), "read"),
            _ => queue.submit(at(0), 1, Request { class: NORMAL, command: Command::Flush }, "read"),
        }
        queue.submit(at(0), 2, read(3), "read");
        let mut ms = 0;
        let mut seen = Vec::new();
        while seen.len() < 3 {
            let given = keys(&started(&mut queue, ms));
            assert!(!given.contains(&1) || given == [1], "{kind}: {given:?}");
            for &key in &given {
                ms += 20;
                let mut ended = queue.ended(key, at(ms - 20), at(ms), true);
                while !ended.is_last {
                    assert_eq!(keys(&started(&mut queue, ms)), [key], "{kind}");
                    ms += 20;
                    ended = queue.ended(key, at(ms - 20), at(ms), true);
                }
            }
            seen.extend(given);
        }
        assert_eq!(queue.commands().count(), 0);
    }
    // Others on a bus count with one command at a time.
    let share = BusShare::new(BusPlan::new("scsi", Rate::per_second(40 << 20), 2)).unwrap();
    let mut queue = queue_of(Profile { bus: Some(share), ..profile(4) });
    (0..3).for_each(|key| queue.submit(at(0), key, read(key), "read"));
    assert_eq!(started(&mut queue, 0).len(), 1);
}

/// A command that serves several requests is one command, beside which others go.
#[test]
fn what_is_merged_is_one_of_those_that_the_drive_has() {
    let mut queue = queue_of(profile(2));
    queue.set_merging(Some(Merging {
        piece: Bytes::kib(64),
        may_merge: |_, _, _| true,
        merge: |_, _, _| {},
    }));
    let next_to = |blocks: u64| {
        let lba = Lba::containing(Bytes::mib(1) + Bytes::kib(4) * blocks);
        Request { class: NORMAL, command: Command::Transfer(Access { lba, ..access(1) }) }
    };
    (0..4).for_each(|key| queue.submit(at(0), key, next_to(key), "read"));
    (4..7).for_each(|key| queue.submit(at(0), key, read(key * 10), "read"));
    let given = started(&mut queue, 0);
    assert_eq!(given.len(), 2, "{given:?}");
    assert_eq!(given[1], (4, worst(40)));
    let ended = queue.ended(4, at(0), at(20), true);
    assert_eq!((ended.with.len(), keys(&started(&mut queue, 20))), (0, vec![5]));
    let ended = queue.ended(given[0].0, at(0), at(50), true);
    assert_eq!(ended.with.len(), 3);
    assert_eq!(keys(&started(&mut queue, 50)), [6]);
}
