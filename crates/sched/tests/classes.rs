//! What each class is promised: servers, latency contracts, best effort, background.

use sched::{
    Class, Contract, Flow, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId,
};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// A millisecond a sector, wherever the head is.
struct Plain;

impl Predict for Plain {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        match command {
            Command::Transfer(access) => ms(access.len / SECTOR),
            _ => ms(1),
        }
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A read at `place` that takes `cost` milliseconds.
fn read(place: u64, cost: u64) -> Command {
    let len = Bytes::new(SECTOR.get() * cost);
    Command::Transfer(Access { lba: Lba::new(place), len, direction: Direction::Read })
}

fn schedule(kind: PolicyKind) -> Schedule {
    Schedule::new(kind, Options { reserve: ms(10), burst: Duration::ZERO, ..Options::default() })
}

/// Budget, deadline and period in milliseconds.
fn server(schedule: &mut Schedule, budget: u64, deadline: u64, period: u64) -> TaskId {
    let task = Task::new(ms(period), ms(deadline), ms(budget));
    schedule.join(Instant::EPOCH, Contract::Server(task)).expect("a light server is admitted")
}

fn stream(schedule: &mut Schedule, cost: u64, deadline: u64, period: u64) -> TaskId {
    let task = Task::new(ms(period), ms(deadline), ms(cost));
    schedule.join(Instant::EPOCH, task).expect("a light stream is admitted")
}

/// Release and deadline; none without.
fn ask(schedule: &mut Schedule, now: u64, key: u64, id: TaskId, cost: u64) -> Option<(u64, u64)> {
    let request = Request { class: Class::server(id, ms(cost)), command: read(key, cost) };
    schedule.submit(at(now), key, request);
    times_of(schedule, key)
}

fn times_of(schedule: &Schedule, key: u64) -> Option<(u64, u64)> {
    let times = schedule.queues().get(key).expect("it waits").times;
    let ms = |at: Instant| at.as_nanos() / 1_000_000;
    (times.deadline < Instant::MAX).then(|| (ms(times.release), ms(times.deadline)))
}

/// Starts the next request and ends it at its bound. Its key.
fn step(schedule: &mut Schedule, now: &mut u64) -> Option<u64> {
    let Next::Start { key, predicted } = schedule.next(at(*now), &Plain) else { return None };
    *now += predicted.as_millis();
    schedule.finished(at(*now), key);
    Some(key)
}

#[test]
fn requests_to_a_server_share_a_container_and_the_rest_waits_for_budget() {
    let mut schedule = schedule(PolicyKind::EDF);
    let id = server(&mut schedule, 100, 1000, 1000);
    assert_eq!(ask(&mut schedule, 5, 1, id, 40), Some((5, 1005)));
    assert_eq!(ask(&mut schedule, 6, 2, id, 40), Some((5, 1005)), "as if it had been there");
    assert_eq!(ask(&mut schedule, 7, 3, id, 40), None, "20 are left");
    assert_eq!(ask(&mut schedule, 8, 4, id, 10), None, "in order");
    // 20 were not used and can be again; 3 finds 40 once the others are there again.
    let Next::Start { key: 1, .. } = schedule.next(at(8), &Plain) else { panic!() };
    schedule.finished(at(48), 1);
    schedule.next(at(48), &Plain);
    assert_eq!(times_of(&schedule, 3), None);
    schedule.finished(at(88), 2);
    assert_eq!(schedule.next_release(id), at(7));
}

#[test]
fn a_program_with_one_request_at_a_time_gets_its_whole_budget() {
    let mut schedule = schedule(PolicyKind::EDF);
    let id = server(&mut schedule, 100, 1000, 1000);
    let mut now = 0;
    for key in 0..10 {
        assert_eq!(ask(&mut schedule, now, key, id, 10), Some((now, now + 1000)));
        assert_eq!(step(&mut schedule, &mut now), Some(key));
    }
    assert_eq!(ask(&mut schedule, now, 10, id, 10), None, "100 have been used");
}

#[test]
fn a_change_keeps_what_is_released_and_moves_what_came_early() {
    let mut schedule = schedule(PolicyKind::SLACK);
    let id = stream(&mut schedule, 10, 100, 100);
    for key in 0..3 {
        schedule.submit(at(0), key, Request { class: Class::RealTime(id), command: read(key, 10) });
    }
    assert_eq!(
        [0, 1, 2].map(|key| times_of(&schedule, key).unwrap()),
        [(0, 100), (100, 200), (200, 300)]
    );
    // Twice the rate: the next one comes half a period after the first.
    schedule.change(at(20), id, Task::new(ms(50), ms(50), ms(10))).unwrap();
    assert_eq!(
        [0, 1, 2].map(|key| times_of(&schedule, key).unwrap()),
        [(0, 100), (50, 100), (100, 150)]
    );
    // A quarter of it, with a guaranteed latency: not before the old contract allows.
    schedule.change(at(60), id, Task::new(ms(200), ms(80), ms(10))).unwrap();
    assert_eq!(
        [0, 1, 2].map(|key| times_of(&schedule, key).unwrap()),
        [(0, 100), (50, 100), (100, 180)]
    );
    // What cannot be kept changes nothing.
    let refusal = schedule.change(at(60), id, Task::new(ms(20), ms(20), ms(15))).unwrap_err();
    assert!(refusal.deadline.is_some(), "{refusal}");
    assert_eq!(schedule.tasks().get(id).unwrap().period, ms(200));
    assert_eq!(times_of(&schedule, 2), Some((100, 180)));
}

#[test]
fn a_stream_becomes_a_server_and_a_stream_again() {
    let mut schedule = schedule(PolicyKind::EDF);
    let id = stream(&mut schedule, 10, 100, 100);
    for key in 0..3 {
        schedule.submit(at(0), key, Request { class: Class::RealTime(id), command: read(key, 10) });
    }
    schedule.change(at(5), id, Contract::Server(Task::new(ms(100), ms(100), ms(20)))).unwrap();
    // The first keeps its times; the budget is there from when the second would have come.
    assert_eq!([0, 1, 2].map(|key| times_of(&schedule, key)), [Some((0, 100)), None, None]);
    assert!(matches!(schedule.next(at(5), &Plain), Next::Start { key: 0, .. }));
    schedule.finished(at(15), 0);
    assert_eq!(ask(&mut schedule, 100, 3, id, 10), None, "the two before it have all of it");
    assert_eq!([1, 2].map(|key| times_of(&schedule, key)), [Some((100, 200)); 2]);
    schedule.change(at(110), id, Task::new(ms(100), ms(100), ms(20))).unwrap();
    assert_eq!(times_of(&schedule, 3), None, "best effort from here on");
    let mut now = 110;
    let order: Vec<_> = std::iter::from_fn(|| step(&mut schedule, &mut now)).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn a_waiting_request_is_upgraded_to_a_server_and_to_a_stream() {
    let mut schedule = schedule(PolicyKind::EDF);
    let (volume, reader) = (server(&mut schedule, 20, 50, 100), stream(&mut schedule, 10, 45, 100));
    let request = Request { class: Class::best_effort(true), command: read(7, 10) };
    schedule.submit(at(0), 7, request);
    assert_eq!(times_of(&schedule, 7), None);
    let times = schedule.upgrade(at(3), 7, Class::server(volume, ms(10))).expect("it waits");
    assert_eq!(times_of(&schedule, 7), Some((3, 53)));
    assert_eq!(times.deadline, at(53));
    schedule.upgrade(at(5), 7, Class::RealTime(reader)).expect("it waits");
    assert_eq!(times_of(&schedule, 7), Some((5, 50)));
    assert_eq!(schedule.next_release(volume), at(5), "its budget is whole again");
    assert!(matches!(schedule.next(at(5), &Plain), Next::Start { key: 7, .. }));
    assert!(schedule.upgrade(at(6), 7, Class::best_effort(true)).is_none());
}

/// Plays streams and one flood on a disk where every command takes its bound. Each
/// `(key, when, class, cost)` of `script` comes at its time. What is done, in order:
/// key, start and how late, in milliseconds.
fn play(
    schedule: &mut Schedule,
    script: &[(u64, u64, Class, u64)],
    end: u64,
) -> Vec<(u64, u64, u64)> {
    play_on(schedule, script, 0, end)
}

/// The same from `begin` on; the disk works on what is in flight until then. Ends when the
/// disk is free at or after `end`.
fn play_on(
    schedule: &mut Schedule,
    script: &[(u64, u64, Class, u64)],
    begin: u64,
    end: u64,
) -> Vec<(u64, u64, u64)> {
    let mut script = script.to_vec();
    script.sort_by_key(|one| one.1);
    let mut coming = script.into_iter().peekable();
    let (mut done, mut busy) = (Vec::new(), None);
    for now in begin.. {
        if now >= end && busy.is_none() {
            return done;
        }
        while let Some((key, _, class, cost)) = coming.next_if(|one| one.1 <= now) {
            schedule.submit(at(now), key, Request { class, command: read(key, cost) });
        }
        if let Some((key, started, _)) = busy.filter(|&(_, _, ends)| ends <= now) {
            let outcome = schedule.finished(at(now), key);
            done.push((key, started, outcome.late_by.as_millis()));
            busy = None;
        }
        if busy.is_none()
            && now < end
            && let Next::Start { key, predicted } = schedule.next(at(now), &Plain)
        {
            busy = Some((key, now, now + predicted.as_millis()));
        }
    }
    unreachable!("the disk is free some time")
}

/// Policies that promise contracts.
fn promising() -> impl Iterator<Item = PolicyKind> {
    policies::ALL.iter().copied().filter(|kind| kind.promise.contracts)
}

/// An interactive stream that asks at any times, at least a period apart, beside rate
/// contracts and more best effort than the disk can serve.
#[test]
fn a_guaranteed_latency_is_kept_whenever_the_request_comes() {
    for kind in promising() {
        let mut schedule = schedule(kind);
        let interactive = stream(&mut schedule, 10, 60, 200);
        let others = [stream(&mut schedule, 20, 100, 100), stream(&mut schedule, 20, 150, 150)];
        let mut script = Vec::new();
        let mut when = 3;
        for key in 0..40 {
            script.push((key, when, Class::RealTime(interactive), 10));
            when += 200 + key * 37 % 23;
        }
        for (n, (id, period)) in others.into_iter().zip([100, 150]).enumerate() {
            let key = 1_000 * (n as u64 + 1);
            script.extend((0..80).map(|k| (key + k, k * period, Class::RealTime(id), 20)));
        }
        script.extend((0..900).map(|k| (5_000 + k, k * 9, Class::best_effort(true), 10)));
        let done = play(&mut schedule, &script, 9_000);
        assert_eq!(done.iter().filter(|one| one.2 > 0).count(), 0, "{kind}");
        let answers = done.iter().filter(|one| one.0 < 1_000);
        let waits = answers.map(|one| one.1 + 10 - script.iter().find(|s| s.0 == one.0).unwrap().1);
        let waits: Vec<u64> = waits.collect();
        assert_eq!(waits.len(), 40, "{kind}");
        assert!(waits.iter().all(|&wait| wait <= 60), "{kind}: {waits:?}");
    }
}

/// A stream that hands in 25 times its contract is put into its future. The others are
/// never late; where there is no slack it gets its contract and nothing more, and where
/// there is some, it is served early out of that.
#[test]
fn a_stream_far_over_its_contract_disturbs_nobody() {
    for kind in promising() {
        for (period, rich) in [(400, true), (44, false)] {
            let mut schedule = schedule(kind);
            let eager = stream(&mut schedule, 10, 100, 100);
            let other = stream(&mut schedule, 20, period, period);
            // 25 in each of its periods for two seconds.
            let mut script: Vec<_> =
                (0..500).map(|k| (k, k * 4, Class::RealTime(eager), 10)).collect();
            script.extend(
                (0..2_000 / period).map(|k| (1_000 + k, k * period, Class::RealTime(other), 20)),
            );
            // A quarter of the disk, or twice of it.
            let step = if rich { 40 } else { 5 };
            let flood =
                (0..2_000 / step).map(|k| (5_000 + k, k * step, Class::best_effort(true), 10));
            script.extend(flood);
            let done = play(&mut schedule, &script, 2_000);
            assert!(done.iter().all(|one| one.2 == 0), "{kind}: {done:?}");
            let of = |keys: std::ops::Range<u64>| {
                done.iter().filter(|one| keys.contains(&one.0)).count() as u64
            };
            assert!(of(1_000..2_000) >= 2_000 / period - 1, "{kind}: the other has its own");
            assert!(of(0..500) >= 19, "{kind}: so has the eager one");
            assert!(
                of(5_000..6_000) > 20,
                "{kind}: best effort is not starved: {}",
                of(5_000..6_000)
            );
            // Together no more than the disk has, and early service is what is left of it.
            let early = of(0..500).saturating_sub(20);
            assert!(!rich || early > 0, "{kind}: served early out of slack");
        }
    }
}

/// Of those ahead of their contracts the one that is least ahead goes first.
#[test]
fn early_requests_are_served_by_the_degree_of_violation() {
    for kind in promising() {
        let mut schedule = schedule(kind);
        let [a, b] = [stream(&mut schedule, 10, 400, 400), stream(&mut schedule, 10, 300, 300)];
        for key in 0..3 {
            let of = |id| Request { class: Class::RealTime(id), command: read(key, 10) };
            schedule.submit(at(0), key, of(a));
            schedule.submit(at(0), 10 + key, of(b));
        }
        let (mut now, mut order) = (0, Vec::new());
        for _ in 0..600 {
            match step(&mut schedule, &mut now) {
                Some(key) => order.push(key),
                None => now += 1,
            }
        }
        // Released: by deadline. Then by how far ahead: 300, 400, 600, 800.
        assert_eq!(order, [10, 0, 11, 1, 12, 2], "{kind}");
    }
}

/// Background goes only when nothing else waits that can run, and then as one chunk, as
/// long as whoever submitted it made it.
#[test]
fn background_is_served_only_when_nothing_else_wants_the_disk() {
    for kind in promising() {
        let mut schedule = schedule(kind);
        let (id, volume) =
            (stream(&mut schedule, 10, 200, 200), server(&mut schedule, 20, 300, 300));
        let mut script: Vec<_> = (0..60).map(|k| (k, 0, Class::Background, 10)).collect();
        script.extend((0..5).map(|k| (100 + k, k * 200, Class::RealTime(id), 10)));
        script.extend((0..30).map(|k| (200 + k, k * 15, Class::best_effort(false), 10)));
        script.extend((0..12).map(|k| (300 + k, k * 5, Class::server(volume, ms(10)), 10)));
        let done = play(&mut schedule, &script, 3_000);
        assert_eq!(done.len(), script.len(), "{kind}");
        let came = |key: u64| script.iter().find(|one| one.0 == key).unwrap().1;
        for &(_, start, _) in done.iter().filter(|one| one.0 < 60) {
            let waited =
                done.iter().find(|one| one.0 >= 100 && came(one.0) < start && one.1 > start);
            assert_eq!(waited, None, "{kind}: at {start}");
        }
        assert!(done.iter().all(|one| one.2 == 0), "{kind}");
    }
}

/// Every policy serves a server's requests, in and out of containers, once each; also
/// those in an order, and while the policy, and the contract, change.
#[test]
fn every_policy_serves_servers() {
    for &kind in policies::ALL {
        for change in [false, true] {
            let mut schedule = schedule(kind);
            let (id, volume) =
                (stream(&mut schedule, 10, 200, 200), server(&mut schedule, 30, 150, 150));
            let mut script: Vec<_> =
                (0..10).map(|k| (k, k * 200, Class::RealTime(id), 10)).collect();
            let one = |k: u64| Class::Server {
                task: volume,
                cost: ms(5 + 5 * (k % 8)), // some more than the budget
                synchronous: k.is_multiple_of(3),
                flow: Flow(k % 2),
                ordered: k.is_multiple_of(4),
            };
            script.extend((0..60).map(|k| (100 + k, k * 13, one(k), 5 + 5 * (k % 8))));
            script.extend((0..20).map(|k| (200 + k, k * 31, Class::best_effort(k < 9), 10)));
            let mut done = play(&mut schedule, &script, 300);
            if change {
                schedule.set_policy(PolicyKind::SLACK);
                schedule.set_policy(kind);
                let small = Task::new(ms(300), ms(100), ms(10));
                let changed = schedule.change(at(340), volume, Contract::Server(small));
                // Where others are late already nothing is promised.
                assert!(changed.is_ok() || !kind.promise.contracts, "{kind}: {changed:?}");
            }
            // The disk may have been busy for a little longer; what came meanwhile is there.
            let left = script.into_iter().filter(|one| {
                let known = schedule.queues().get(one.0).is_some();
                !known && !done.iter().any(|done| done.0 == one.0)
            });
            let left: Vec<_> = left.collect();
            done.extend(play_on(&mut schedule, &left, 340, 9_000));
            let mut keys: Vec<u64> = done.iter().map(|one| one.0).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!((keys.len(), done.len()), (90, 90), "{kind}, {change}");
            assert_eq!(schedule.counts().waiting_best_effort, 0, "{kind}");
        }
    }
}
