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
