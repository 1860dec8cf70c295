//! A stream that begins anew somewhere else: what it asked for is taken back, its turn
//! comes anew, and one request is promised early. Nobody is late for it, themselves
//! included.

use sched::{Class, Next, Options, PolicyKind, Predict, Request, Schedule, Task, TaskId, Times};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

/// A command takes as many milliseconds as its sector says.
struct Sector;

impl Predict for Sector {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        ms(command.lba().map_or(1, Lba::get))
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(millis: u64) -> Instant {
    Instant::EPOCH + ms(millis)
}

fn read(millis: u64) -> Command {
    let lba = Lba::new(millis);
    Command::Transfer(Access { lba, len: Bytes::kib(4), direction: Direction::Read })
}

fn schedule() -> Schedule {
    Schedule::new(PolicyKind::SLACK, Options { reserve: ms(20), ..Options::default() })
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 33) % n
    }
}

#[test]
fn what_is_taken_back_gives_its_release_back() {
    let mut schedule = schedule();
    let id = schedule.join(at(0), Task::new(ms(100), ms(100), ms(10))).expect("alone");
    let request = Request { class: Class::RealTime(id), command: read(10) };
    for key in 0..5 {
        schedule.submit(at(0), key, request);
    }
    assert_eq!(schedule.next_release(id), at(500));
    for key in (2..5).rev() {
        assert!(schedule.take_back(key));
    }
    assert_eq!(schedule.next_release(id), at(200));
    assert!(schedule.take_back(0), "not the last: its turn is lost");
    assert_eq!(schedule.next_release(id), at(200));
    assert!(!schedule.take_back(0), "it is gone");
}

#[test]
fn a_request_does_something_else_at_the_times_that_it_had() {
    let mut schedule = schedule();
    let id = schedule.join(at(0), Task::new(ms(100), ms(100), ms(10))).expect("alone");
    let request = Request { class: Class::RealTime(id), command: read(10) };
    let times = schedule.submit(at(0), 1, request);
    assert!(schedule.redirect(at(5), 1, read(7)));
    assert_eq!(schedule.times(1), Some(times));
    let next = schedule.next(at(5), &Sector);
    assert_eq!(next, Next::Start { key: 1, predicted: ms(7) });
    assert_eq!(schedule.times(1), Some(times), "also while the disk has it");
    assert!(!schedule.redirect(at(6), 1, read(9)), "the disk has it already");
}

#[test]
fn an_idle_disk_promises_a_jump_for_the_time_of_one_command() {
    let mut schedule = schedule();
    let id = schedule.join(at(0), Task::new(ms(100), ms(100), ms(10))).expect("alone");
    schedule.join(at(0), Task::new(ms(200), ms(200), ms(30))).expect("light");
    let request = Request { class: Class::RealTime(id), command: read(10) };
    // Ten are served ahead of their turn.
    let mut now = 0;
    for key in 0..10 {
        schedule.submit(at(now), key, request);
        assert!(matches!(schedule.next(at(now), &Sector), Next::Start { .. }));
        now += 10;
        schedule.finished(at(now), key);
    }
    assert_eq!(schedule.next_release(id), at(1_000));
    schedule.renew(at(now), id, at(0));
    assert_eq!(schedule.next_release(id), at(100));
    let times = schedule.submit(at(now), 10, request);
    assert_eq!(times, Times { release: at(100), deadline: at(200) });
    assert_eq!(schedule.advance_deadline(at(now), 10), Some(at(110)));
}

/// What came late is due when it would have been due, where nobody is late for it; else as
/// soon as may be, and that is told.
#[test]
fn a_deadline_is_brought_forward_to_an_instant_as_far_as_nobody_is_late_for_it() {
    let mut schedule = schedule();
    let id = schedule.join(at(0), Task::new(ms(100), ms(100), ms(10))).expect("alone");
    let other = schedule.join(at(0), Task::new(ms(100), ms(60), ms(20))).expect("it fits");
    let request = |id, cost| Request { class: Class::RealTime(id), command: read(cost) };
    assert!(!schedule.has_early(id));
    schedule.submit(at(0), 1, request(id, 10));
    assert!(schedule.advance_deadline_to(at(0), 1, at(100)), "it was due by then");
    assert_eq!(schedule.times(1).map(|times| times.deadline), Some(at(100)));
    assert!(schedule.advance_deadline_to(at(0), 1, at(70)));
    assert_eq!(schedule.times(1).map(|times| times.deadline), Some(at(70)));
    schedule.submit(at(0), 2, request(other, 20));
    assert!(!schedule.advance_deadline_to(at(0), 1, at(5)), "it takes longer by itself");
    let by = schedule.times(1).expect("it waits").deadline;
    assert_eq!(by, at(10), "as soon as may be");
    schedule.submit(at(0), 3, request(id, 10));
    assert!(schedule.has_early(id));
    assert!(!schedule.advance_deadline_to(at(0), 3, at(150)), "its turn is still to come");
}

/// Everybody jumps about on a full disk whose every command takes all of its time.
#[test]
fn nobody_is_late_whoever_begins_anew() {
    let (mut served, mut hurried, mut gained) = (0, 0, 0u64);
    for seed in 0..15 {
        let mut random = Random(seed);
        let mut schedule = schedule();
        let mut streams: Vec<(TaskId, u64, u64, Vec<u64>)> = Vec::new();
        for _ in 0..40 {
            let cost = 1 + random.below(20);
            let period = 60 * (1 + random.below(12));
            let task = Task::new(ms(period), ms(period), ms(cost));
            if let Ok(id) = schedule.join(at(0), task) {
                streams.push((id, cost, period, Vec::new()));
            }
        }
        let (mut now, mut key, mut busy) = (0u64, 0u64, None::<(u64, u64)>);
        let mut last_renewed = vec![0; streams.len()];
        while now < 20_000 {
            let which = random.below(streams.len() as u64) as usize;
            let (id, cost, period, keys) = &mut streams[which];
            let request = Request { class: Class::RealTime(*id), command: read(*cost) };
            if random.below(3) == 0 {
                // A jump.
                keys.retain(|&key| schedule.queues().get(key).is_some());
                while let Some(key) = keys.pop() {
                    schedule.take_back(key);
                }
                if now >= last_renewed[which] + *period {
                    schedule.renew(at(now), *id, at(now));
                    last_renewed[which] = now;
                }
                schedule.submit(at(now), key, request);
                keys.push(key);
                let before = schedule.times(key).expect("it waits").deadline;
                if random.below(3) == 0 {
                    schedule.advance_deadline_to(at(now), key, at(now + random.below(*period)));
                }
                if let Some(by) = schedule.advance_deadline(at(now), key) {
                    hurried += u64::from(by < before);
                    gained += before.saturating_since(by).as_millis();
                }
                key += 1;
            } else if keys.len() < 6 {
                schedule.submit(at(now), key, request);
                keys.push(key);
                key += 1;
            }
            if random.below(4) == 0 {
                let class = Class::best_effort(random.below(2) == 0);
                let command = read(1 + random.below(20));
                schedule.submit(at(now), key, Request { class, command });
                key += 1;
            }
            if busy.is_none()
                && let Next::Start { key, predicted } = schedule.next(at(now), &Sector)
            {
                busy = Some((now + predicted.as_millis(), key));
            }
            now += random.below(6);
            if let Some((end, key)) = busy.filter(|&(end, _)| end <= now) {
                now = end.max(now.min(end));
                let outcome = schedule.finished(at(end), key);
                assert!(outcome.late_by.is_zero(), "seed {seed} at {now}: {outcome:?}");
                served += 1;
                busy = None;
            }
        }
    }
    assert!(served > 20_000 && hurried > 10_000, "{served} served, {hurried} hurried");
    eprintln!("{served} served, {hurried} hurried by {} ms in the mean", gained / hurried);
}
