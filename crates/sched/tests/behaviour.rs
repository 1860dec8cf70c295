//! What a schedule does, told one behaviour at a time.

use crate::common::Ticks;
use crate::world;
use sched::{
    Class, Flow, Next, Options, Outcome, PolicyKind, Predict, Request, Schedule, Task, TaskId,
};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

/// Every command takes 10 ms, a flush as well.
struct Ten;

impl Predict for Ten {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        ms(10)
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(millis: u64) -> Instant {
    Instant::EPOCH + ms(millis)
}

fn read(sector: u64) -> Command {
    let lba = Lba::new(sector);
    Command::Transfer(Access { lba, len: Bytes::kib(64), direction: Direction::Read })
}

const URGENT: Class = Class::best_effort(true);
const IDLE_WRITE: Class = Class::best_effort(false);

fn ordered(flow: u64, synchronous: bool) -> Class {
    Class::BestEffort { synchronous, flow: Flow(flow), ordered: true }
}

fn schedule(policy: PolicyKind) -> Schedule {
    Schedule::new(policy, Options { reserve: ms(10), ..Options::default() })
}

fn join(schedule: &mut Schedule, period: u64) -> TaskId {
    let task = Task::new(ms(period), ms(period), ms(10));
    schedule.join(Instant::EPOCH, task).expect("a light task is admitted")
}

fn submit(schedule: &mut Schedule, now: u64, key: u64, class: Class, sector: u64) -> (u64, u64) {
    let times = schedule.submit(at(now), key, Request { class, command: read(sector) });
    (times.release.as_nanos() / 1_000_000, times.deadline.as_nanos() / 1_000_000)
}

/// Runs until nothing can start, from `now`; the keys in the order of service.
fn drain(schedule: &mut Schedule, mut now: u64) -> Vec<u64> {
    let mut order = Vec::new();
    while let Next::Start { key, .. } = schedule.next(at(now), &Ten) {
        now += 10;
        schedule.finished(at(now), key);
        order.push(key);
    }
    order
}

#[test]
fn the_regulator_spaces_requests_by_the_period() {
    let mut schedule = schedule(PolicyKind::SLACK);
    let id = join(&mut schedule, 100);
    let class = Class::RealTime(id);
    assert_eq!(submit(&mut schedule, 5, 1, class, 0), (5, 105));
    assert_eq!(submit(&mut schedule, 5, 2, class, 0), (105, 205), "too early");
    assert_eq!(submit(&mut schedule, 6, 3, class, 0), (205, 305), "and earlier still");
    assert_eq!(submit(&mut schedule, 900, 4, class, 0), (900, 1000), "a pause gives no credit");
    assert_eq!(schedule.counts().waiting_real_time, 4);
}

#[test]
fn who_is_over_eager_does_not_get_before_others() {
    let mut schedule = schedule(PolicyKind::SLACK);
    let (eager, other) = (join(&mut schedule, 100), join(&mut schedule, 300));
    for key in 0..5 {
        submit(&mut schedule, 0, key, Class::RealTime(eager), 0);
    }
    submit(&mut schedule, 0, 9, Class::RealTime(other), 0);
    let order = drain(&mut schedule, 0);
    // What is released first, by deadline; the rest after it, a period ahead at
    // the most before anybody else's request would go.
    assert_eq!(order[..2], [0, 9]);
}

#[test]
fn early_requests_go_before_best_effort_up_to_a_period_ahead() {
    let mut schedule = schedule(PolicyKind::SLACK);
    let id = join(&mut schedule, 200);
    for key in 0..4 {
        submit(&mut schedule, 0, key, Class::RealTime(id), 0);
    }
    // Released, and nobody else is there.
    assert!(matches!(schedule.next(at(0), &Ten), Next::Start { key: 0, .. }));
    submit(&mut schedule, 5, 10, URGENT, 0);
    submit(&mut schedule, 5, 11, Class::Background, 0);
    schedule.finished(at(10), 0);
    // 1 is less than a period ahead, 2 and 3 are further.
    assert_eq!(drain(&mut schedule, 10), [1, 10, 2, 3, 11]);
}

/// What was asked for ahead of its turn under a contract that cost more waits in the slack under one that
/// costs less, and is told of: it may have its turn once more.
#[test]
fn early_requests_whose_contract_comes_to_cost_less_are_told_of() {
    let task = |cost| Task::new(ms(100), ms(100), ms(cost));
    let mut schedule = schedule(PolicyKind::SLACK);
    let id = schedule.join(at(0), task(30)).expect("it fits");
    for key in 0..3 {
        submit(&mut schedule, 0, key, Class::RealTime(id), 0);
    }
    schedule.change(at(0), id, task(40)).expect("it fits");
    assert_eq!(schedule.take_demoted(), []);
    schedule.change(at(0), id, task(10)).expect("it is less");
    assert_eq!(schedule.take_demoted(), [1, 2], "the first had been released");
    assert_eq!(schedule.take_demoted(), []);
    assert_eq!(schedule.next_release(id), at(100));
    let times = schedule.upgrade(at(100), 1, Class::RealTime(id)).expect("it waits");
    assert_eq!((times.release, times.deadline), (at(100), at(200)));
}

#[test]
fn best_effort_is_swept_synchronous_first() {
    for policy in [PolicyKind::SLACK, PolicyKind::DELTA_L, PolicyKind::EDF] {
        let mut schedule = schedule(policy);
        for (key, class, sector) in [
            (1, IDLE_WRITE, 100),
            (2, URGENT, 9_000),
            (3, URGENT, 3_000),
            (4, Class::Background, 0),
            (5, URGENT, 6_000),
            (6, IDLE_WRITE, 9_500),
        ] {
            submit(&mut schedule, 0, key, class, sector);
        }
        assert_eq!(drain(&mut schedule, 0), [3, 5, 2, 6, 1, 4], "{policy}");
    }
}

/// A program that reads on and on where the head is, against one request far away
/// and one asynchronous write.
/// Where the place does not matter, no place is near: who came first goes first, however many come
/// elsewhere while he waits. (Where it does, who goes on elsewhere has his turn for 250 ms.)
#[test]
fn where_the_place_does_not_matter_best_effort_goes_in_the_order_in_which_it_came() {
    let passed = |place_matters| {
        let options = Options { reserve: ms(10), place_matters, ..Options::default() };
        let mut schedule = Schedule::new(PolicyKind::SLACK, options);
        let mut now = 0;
        for key in 1..=3 {
            submit(&mut schedule, now, key, URGENT, 5_000 * key);
        }
        let mut order = Vec::new();
        for key in 4.. {
            if order.len() == 1 {
                submit(&mut schedule, now, 100, URGENT, 0); // behind the heads
            }
            let Next::Start { key: started, .. } = schedule.next(at(now), &Ten) else { panic!() };
            if started == 100 {
                return (order.len(), now);
            }
            order.push(started);
            now += 10;
            schedule.finished(at(now), started);
            submit(&mut schedule, now, key, URGENT, 5_000 * key);
        }
        unreachable!("it is served")
    };
    assert_eq!(passed(false), (4, 40));
    assert!(passed(true) > (20, 200), "{:?}", passed(true));
}

#[test]
fn nobody_waits_for_ever_behind_a_sweep_that_does_not_end() {
    for policy in [PolicyKind::SLACK, PolicyKind::DELTA_L, PolicyKind::EDF] {
        let mut schedule = schedule(policy);
        let (far, write) = (1_000_000, 1_000_001);
        submit(&mut schedule, 0, far, URGENT, 5);
        submit(&mut schedule, 0, write, IDLE_WRITE, 5);
        let (mut now, mut served) = (0, Vec::new());
        for key in 0..1_000 {
            submit(&mut schedule, now, key, URGENT, 10_000 + 128 * key);
            let Next::Start { key, .. } = schedule.next(at(now), &Ten) else {
                panic!("it is idle")
            };
            now += 10;
            schedule.finished(at(now), key);
            if key >= far {
                served.push((key, now));
            }
        }
        // The age, and as many commands as are swept before the next aged one.
        let within = |key, bound| served.iter().any(|&(one, when)| one == key && when <= bound);
        assert!(within(far, 1_000 + 170), "{policy}: {served:?}");
        assert!(within(write, 5_000 + 340), "{policy}: {served:?}");
    }
}

#[test]
fn ordered_requests_of_a_flow_run_one_after_another() {
    for &policy in policies::ALL {
        let mut schedule = Schedule::new(policy, Options { depth: 4, ..Options::default() });
        submit(&mut schedule, 0, 1, ordered(7, false), 900);
        submit(&mut schedule, 0, 2, ordered(7, false), 100);
        submit(&mut schedule, 0, 3, ordered(8, false), 500);
        let mut started = Vec::new();
        let mut now = 0;
        while started.len() < 2 && now < 1_000 {
            match schedule.next(at(now), &Ten) {
                Next::Start { key, .. } => started.push(key),
                Next::Wait { until: Some(until) } => now = until.as_nanos().div_ceil(1_000_000),
                Next::Wait { until: None } => break,
            }
        }
        assert!(!started.contains(&2), "{policy}: 2 starts only after 1 is done: {started:?}");
        assert!(!schedule.queues().may_run(2));
        schedule.finished(at(now + 10), 1);
        assert!(schedule.queues().may_run(2), "{policy}");
    }
}

#[test]
fn who_waits_behind_an_ordered_request_hurries_it() {
    let mut schedule = schedule(PolicyKind::SLACK);
    submit(&mut schedule, 0, 1, ordered(7, false), 9_000);
    submit(&mut schedule, 0, 2, IDLE_WRITE, 10);
    submit(&mut schedule, 0, 3, URGENT, 20);
    submit(&mut schedule, 0, 4, ordered(7, true), 30);
    // 1 counts as synchronous since 4 waits for it, and 4 follows as such.
    assert_eq!(drain(&mut schedule, 0), [3, 1, 4, 2]);
    // Dropping the first lets the next one run.
    submit(&mut schedule, 100, 5, ordered(7, false), 0);
    submit(&mut schedule, 100, 6, ordered(7, false), 0);
    assert!(schedule.cancel(5) && !schedule.cancel(5));
    assert_eq!(drain(&mut schedule, 100), [6]);
}

#[test]
fn an_overrun_is_reported_and_paid_out_of_slack() {
    let mut schedule = schedule(PolicyKind::SLACK);
    let tight = Task::new(ms(1_000), ms(100), ms(10));
    let id = schedule.join(Instant::EPOCH, tight).unwrap();
    let enough = ms(500);
    // Nothing waits: 100 less the task's own 10 may be given away.
    assert_eq!(schedule.slack_now(at(0), enough), Some(ms(90)));
    submit(&mut schedule, 0, 1, URGENT, 0);
    let Next::Start { key: 1, predicted } = schedule.next(at(0), &Ten) else { panic!() };
    assert_eq!(predicted, ms(10));
    submit(&mut schedule, 1, 2, Class::RealTime(id), 0);
    submit(&mut schedule, 1, 3, URGENT, 0);
    // It takes 75 instead of 10: the slack pays, so that 2 is in time still, but
    // nothing is left for 3.
    let Outcome { overrun, actual, late_by, .. } = schedule.finished(at(75), 1);
    assert_eq!((overrun, actual, late_by), (ms(65), ms(75), Duration::ZERO));
    assert_eq!(schedule.slack_now(at(75), enough), Some(ms(16)));
    submit(&mut schedule, 76, 4, URGENT, 0);
    let Next::Start { key: first, .. } = schedule.next(at(90), &Ten) else { panic!() };
    assert_eq!(first, 2, "15 less: not even one of 10 before it");
    // This one overruns more than the slack can pay: late, counted, attributed.
    let outcome = schedule.finished(at(130), 2);
    assert_eq!((outcome.late_by, outcome.overrun), (ms(29), ms(30)));
    let counts = schedule.counts();
    assert_eq!(
        (counts.late, counts.late_max, counts.overruns, counts.overrun_max),
        (1, ms(29), 2, ms(65))
    );
}

/// On a disk with a queue the others behind an overrun are later too.
#[test]
fn an_overrun_moves_what_is_in_flight_behind_it() {
    let mut schedule = Schedule::new(PolicyKind::SLACK, Options { depth: 3, ..Options::default() });
    join(&mut schedule, 200);
    let enough = ms(1_000);
    for key in 0..3 {
        submit(&mut schedule, 0, key, URGENT, key);
        assert!(matches!(schedule.next(at(0), &Ten), Next::Start { .. }));
    }
    // 190 less the 30 that are spoken for.
    assert_eq!(schedule.slack_now(at(0), enough), Some(ms(160)));
    assert_eq!(schedule.finished(at(4), 0).overrun, Duration::ZERO);
    assert_eq!(schedule.slack_now(at(4), enough), Some(ms(170)), "20 are left, from 4 on");
    assert_eq!(schedule.finished(at(54), 1).overrun, ms(40));
    assert_eq!(schedule.slack_now(at(54), enough), Some(ms(180)), "10 are left, from 54 on");
}

#[test]
fn early_completions_give_slack_back() {
    let mut schedule = schedule(PolicyKind::SLACK);
    let id = join(&mut schedule, 40);
    submit(&mut schedule, 0, 1, Class::RealTime(id), 0);
    submit(&mut schedule, 0, 2, Class::RealTime(id), 0);
    // Due at 40 and 80, then every 40: 30 may be spent before the first.
    assert_eq!(schedule.slack_now(at(0), ms(500)), Some(ms(30)));
    assert!(matches!(schedule.next(at(0), &Ten), Next::Start { key: 1, .. }));
    schedule.finished(at(2), 1);
    // Done 8 early: the next is due at 80 and needs 10.
    assert_eq!(schedule.slack_now(at(2), ms(500)), Some(ms(68)));
}

#[test]
fn a_disk_is_given_no_more_commands_than_it_takes() {
    for &policy in policies::ALL {
        let mut schedule = Schedule::new(policy, Options { depth: 3, ..Options::default() });
        for key in 0..8 {
            submit(&mut schedule, 0, key, URGENT, key * 100);
        }
        let mut now = 0;
        for _ in 0..40 {
            match schedule.next(at(now), &Ten) {
                Next::Start { .. } => {}
                Next::Wait { until: Some(until) } => now = until.as_nanos().div_ceil(1_000_000),
                Next::Wait { until: None } => break,
            }
        }
        assert!(schedule.in_flight() <= 3, "{policy}");
    }
}

#[test]
fn leaving_drops_what_waits_and_frees_the_share() {
    let mut schedule = schedule(PolicyKind::SLACK);
    let id = join(&mut schedule, 100);
    let alone = schedule.tasks().slack();
    let other = join(&mut schedule, 300);
    for key in 0..3 {
        submit(&mut schedule, 0, key, Class::RealTime(other), 0);
    }
    submit(&mut schedule, 0, 3, Class::RealTime(id), 0);
    assert!(matches!(schedule.next(at(0), &Ten), Next::Start { key: 3, .. }));
    assert_eq!(schedule.leave(other), [0, 1, 2]);
    assert_eq!((schedule.tasks().slack(), schedule.counts().tasks), (alone, 1));
    // What the disk has ends as usual, also after its task has left.
    assert!(schedule.leave(id).is_empty());
    assert_eq!(schedule.finished(at(10), 3).late_by, Duration::ZERO);
    assert_eq!(schedule.tasks().slack(), Duration::MAX);
}

#[test]
#[should_panic(expected = "a request of a task that has joined")]
fn a_request_of_a_task_that_has_left_is_a_mistake_of_the_caller() {
    let mut schedule = schedule(PolicyKind::SLACK);
    let id = join(&mut schedule, 100);
    schedule.leave(id);
    join(&mut schedule, 100);
    submit(&mut schedule, 0, 1, Class::RealTime(id), 0);
}

#[test]
fn without_admission_everything_is_taken_and_counted_late() {
    let options = Options { admission: false, ..Options::default() };
    let mut schedule = Schedule::new(policies::FCFS, options);
    let ids: Vec<TaskId> = (0..20).map(|_| join(&mut schedule, 100)).collect();
    assert_eq!(schedule.tasks().utilisation().ppm(), 2_000_000);
    for (key, &id) in ids.iter().enumerate() {
        submit(&mut schedule, 0, key as u64, Class::RealTime(id), 0);
    }
    assert_eq!(drain(&mut schedule, 0).len(), 20);
    let counts = schedule.counts();
    assert_eq!((counts.late, counts.late_max), (10, ms(100)));
}

#[test]
fn a_change_of_policy_keeps_contracts_and_requests() {
    let mut schedule = schedule(policies::FCFS);
    let id = join(&mut schedule, 500);
    submit(&mut schedule, 0, 1, IDLE_WRITE, 900);
    submit(&mut schedule, 0, 2, URGENT, 500);
    submit(&mut schedule, 0, 3, Class::RealTime(id), 0);
    for &policy in policies::ALL {
        schedule.set_policy(policy);
    }
    schedule.set_policy(policies::FCFS);
    assert_eq!(drain(&mut schedule, 0), [1, 2, 3]);
}

/// A set without any slack is busy when one more task joins: it is admitted, but
/// its first release waits until the debt is paid.
#[test]
fn who_joins_a_busy_disk_may_have_to_wait_a_little() {
    let set = [Ticks::rate(2, 10), Ticks::rate(3, 12)];
    let policy = PolicyKind::SLACK.start();
    let (mut schedule, ids) = world::schedule_of(&set, policy.as_ref(), 0, true);
    let start = Instant::from_nanos;
    let request = |class, ticks| Request { class, command: world::command(ticks) };
    // All slack of these two is given away while both wait.
    schedule.submit(start(0), 0, request(Class::RealTime(ids[0]), 2));
    schedule.submit(start(0), 1, request(Class::RealTime(ids[1]), 3));
    schedule.submit(start(0), 2, request(URGENT, 7));
    let Next::Start { key: 2, .. } = schedule.next(start(0), &world::Sectors) else { panic!() };
    let late = Ticks::rate(3, 9).task();
    let id = schedule.join(start(1), late).expect("the three fit");
    let times = schedule.submit(start(1), 3, request(Class::RealTime(id), 3));
    assert!(times.release > start(1), "{times:?}");
    let mut now = 7;
    let mut key = 2;
    loop {
        let outcome = schedule.finished(start(now), key);
        assert!(outcome.late_by.is_zero(), "{outcome:?}");
        match schedule.next(start(now), &world::Sectors) {
            Next::Start { key: next, predicted } => {
                now += predicted.as_nanos();
                key = next;
            }
            Next::Wait { .. } => break,
        }
    }
}
