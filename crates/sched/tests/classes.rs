//! What each class is promised: servers, latency contracts, best effort, background.

use sched::{Class, Contract, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId};
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
    let mut schedule = schedule(PolicyKind::Edf);
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
    let mut schedule = schedule(PolicyKind::Edf);
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
    let mut schedule = schedule(PolicyKind::Slack);
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
    let mut schedule = schedule(PolicyKind::Edf);
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
    let mut schedule = schedule(PolicyKind::Edf);
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
