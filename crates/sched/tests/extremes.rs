//! Numbers at the places where arithmetic breaks: what is valid is decided, and nothing wraps
//! or panics; what takes longer than there is time for is never started for it.
#![allow(clippy::print_stdout)] // how much was tried is part of the result

use crate::common::Random;
use sched::limits::PERIOD_MAX;
use sched::{
    Class, Contract, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskSet,
};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

/// Nothing, powers of two and what is next to them, the limits, and the last numbers.
const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    3,
    1_000,
    1 << 20,
    (1 << 20) - 1,
    1 << 31,
    1 << 40,
    (1 << 50) - 1,
    1 << 50,
    (1 << 50) + 1,
    1 << 56,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    (1 << 63) + 1,
    u64::MAX,
];

const fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// Every command takes this.
struct Takes(Duration);

impl Predict for Takes {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        self.0
    }
    fn bound_anywhere(&self, _: u64, _: &Command) -> Option<Duration> {
        Some(self.0)
    }
}

fn request(class: Class) -> Request {
    let (lba, len) = (Lba::new(0), Bytes::kib(4));
    Request { class, command: Command::Transfer(Access { lba, len, direction: Direction::Read }) }
}

fn any(random: &mut Random) -> u64 {
    *random.pick(&NUMBERS)
}

/// Any task that is one, with numbers as far apart as they can be.
fn task(random: &mut Random) -> Task {
    loop {
        let [period, deadline, cost, command] = [(); 4].map(|()| ns(any(random)));
        let deadline = if random.one_in(2) { period } else { deadline };
        let command = if random.one_in(2) { cost } else { command };
        let task = Task { command, ..Task::new(period, deadline, cost) };
        if task.is_valid() {
            return task;
        }
    }
}

#[test]
fn every_set_is_taken_or_refused() {
    let mut random = Random::new(41);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let [reserve, gap] = [(); 2].map(|()| ns(any(&mut random)).min(PERIOD_MAX));
        let [reserve, gap] = [reserve, gap].map(|it| if random.one_in(2) { ns(0) } else { it });
        let mut set = TaskSet::new(reserve).with_gap(gap);
        let mut ids = Vec::new();
        for _ in 0..6 {
            let task = task(&mut random);
            let (admits, checked) = (set.admits(&task).is_ok(), set.check(&task));
            assert_eq!(admits, checked.is_ok(), "{task:?}");
            let added = set.add(task);
            assert_eq!(admits, added.is_ok());
            taken += u64::from(admits);
            refused += u64::from(!admits);
            ids.extend(added);
            let interval = ns(any(&mut random));
            let _ = (set.slack(), set.demand(interval), set.blocking(interval), set.analysis());
        }
        let all: Vec<Task> = (0..random.within(1, 40)).map(|_| task(&mut random)).collect();
        let _ = set.add_all(&all);
        if let Some(&id) = ids.first() {
            let _ = set.change(id, task(&mut random));
            set.remove(id);
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} taken, {refused} refused");
}

/// As many of the longest as there can be: more work than a number can say.
#[test]
fn many_of_the_longest_are_refused_together() {
    let longest = Task::new(PERIOD_MAX, PERIOD_MAX, PERIOD_MAX);
    let refused = TaskSet::of(ns(0), &vec![longest; 40_000]).expect_err("more than the disk");
    assert_eq!((refused.utilisation_ppm, refused.undecided), (40_000_000_000, false));
}

/// Under the policies that promise contracts; those of the papers are not asked.
#[test]
fn a_schedule_stands_any_numbers() {
    let mut random = Random::new(42);
    let promising = policies::ALL.iter().filter(|kind| kind.promise.contracts);
    let promising: Vec<PolicyKind> = promising.copied().collect();
    let (mut started, mut late) = (0, 0);
    for round in 0..6_000 {
        let policy = *random.pick(&promising);
        let limited = |random: &mut Random| ns(any(random)).min(PERIOD_MAX);
        let options = Options {
            by: policy.admission,
            admission: !random.one_in(4),
            reserve: if random.one_in(2) { ns(0) } else { limited(&mut random) },
            burst: ns(any(&mut random)),
            burst_requests: any(&mut random),
            depth: 1 + random.within(0, 2) as u32,
            any_order: 1 + random.within(0, 2) as u32,
            place_matters: true,
            gap: if random.one_in(2) { ns(0) } else { limited(&mut random) },
        };
        let mut schedule = Schedule::new(policy, options);
        // A hundred years at the most have gone by.
        let mut now = Instant::from_nanos(*random.pick(&[0, 1, 1 << 30, 1 << 60, 3 << 60]));
        let mut contracts = Vec::new();
        for _ in 0..4 {
            let task = task(&mut random);
            let server = random.one_in(3);
            let contract = if server { Contract::Server(task) } else { Contract::Stream(task) };
            contracts.extend(schedule.join(now, contract).map(|id| (id, server)));
        }
        let mut running = Vec::new();
        for key in 0..40 {
            let class = match (random.within(0, 3), contracts.is_empty()) {
                (0, _) => Class::best_effort(random.one_in(2)),
                (1, _) | (_, true) => Class::Background,
                _ => match *random.pick(&contracts) {
                    (id, true) => Class::server(id, ns(any(&mut random).max(1))),
                    (id, false) => Class::RealTime(id),
                },
            };
            schedule.submit(now, round * 100 + key, request(class));
            let takes = Takes(ns(any(&mut random)));
            if let Next::Start { key, .. } = schedule.next(now, &takes) {
                started += 1;
                running.push(key);
            }
            if random.one_in(2) && !running.is_empty() {
                now += ns(any(&mut random) >> 24);
                late += u64::from(!schedule.finished(now, running.remove(0)).late_by.is_zero());
            }
            let _ = schedule.slack_now(now, ns(any(&mut random)));
            let _ = schedule.never_fits(now, round * 100 + key, &takes);
            if let (Some(&(id, false)), true) = (contracts.first(), random.one_in(8)) {
                let _ = schedule.change(now, id, task(&mut random));
                let _ = schedule.set_gap(now, limited(&mut random));
                schedule.advance_deadline(now, round * 100 + key);
            }
        }
    }
    println!("{started} started, {late} late");
    assert!(started > 10_000);
}

/// A bound that is as good as for ever is covered by no slack.
#[test]
fn what_takes_for_ever_is_never_started_beside_a_contract() {
    for kind in policies::ALL.iter().filter(|kind| kind.promise.contracts) {
        for bound in [1 << 51, 1 << 60, (1 << 63) - 1, 1 << 63, (1 << 63) + 5, u64::MAX] {
            let mut schedule = Schedule::new(*kind, Options::default());
            let second = Duration::from_secs(1);
            schedule.join(Instant::EPOCH, Task::new(second, second, ns(1_000))).expect("alone");
            schedule.submit(Instant::EPOCH, 1, request(Class::best_effort(true)));
            let next = schedule.next(Instant::EPOCH, &Takes(ns(bound)));
            assert!(matches!(next, Next::Wait { .. }), "{kind}: {bound}: {next:?}");
            assert!(schedule.never_fits(Instant::EPOCH, 1, &Takes(ns(bound))), "{kind}: {bound}");
        }
    }
}

/// The whole disk, exactly, however far apart the periods are: decided, and nothing is left.
#[test]
fn the_whole_disk_is_promised_where_it_can_be() {
    // A short one and a long one of which each takes what the other leaves, in commands.
    for octaves in [1, 5, 10, 20, 30] {
        for short in [2u64, 1 << 10, 1 << 20] {
            let long = short << octaves;
            let one = Task::new(ns(short), ns(short), ns(short - 1));
            let rest = Task::new(ns(long), ns(long), ns(1 << octaves)).in_commands(ns(1));
            let set = TaskSet::of(ns(0), &[one, rest]);
            let set = set.unwrap_or_else(|refusal| panic!("{short} << {octaves}: {refusal}"));
            assert_eq!((set.slack(), set.utilisation().ppm()), (ns(0), 1_000_000));
            let mut more = set.clone();
            let refused = more.add(Task::new(PERIOD_MAX, PERIOD_MAX, ns(1)));
            assert!(!refused.expect_err("more than the disk").undecided);
            let left = TaskSet::of(ns(1), &[one, rest]).expect_err("nothing is left");
            assert!(left.utilisation_ppm == 1_000_000);
        }
    }
    // Thirds, fifths and sevenths, whose shares are not whole in binary.
    for periods in [[3u64, 6, 12, 24], [5, 15, 45, 90], [7, 49, 343, 686]] {
        let periods = periods.map(|period| period * 1_000_003);
        let last = periods[3];
        let cost = |period: u64| period / 4;
        let others: u64 = periods[..3].iter().map(|&period| last / period * cost(period)).sum();
        let task = |period, cost| Task::new(ns(period), ns(period), ns(cost)).in_commands(ns(1));
        let mut tasks: Vec<Task> =
            periods[..3].iter().map(|&period| task(period, cost(period))).collect();
        tasks.push(task(last, last - others));
        let set = TaskSet::of(ns(0), &tasks).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(set.slack(), ns(0), "{periods:?}");
    }
    // Two tasks share a prime period, three times over: all periods end together after
    // longer than anybody looks.
    let mut tasks = Vec::new();
    for prime in [1_000_003u64, 1_000_033, 1_000_037, 1_000_039] {
        let of = |cost| Task::new(ns(prime * 4), ns(prime * 4), ns(cost)).in_commands(ns(1));
        tasks.extend([of(prime / 2), of(prime - prime / 2)]);
    }
    let set = TaskSet::of(ns(0), &tasks).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(set.slack(), ns(0));
}
