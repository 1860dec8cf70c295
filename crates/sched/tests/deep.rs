//! A device that works on several commands at once is given enough of them: what is
//! promised counts on a pipeline that is full. Beside many streams, where computations of
//! the slack are paid for, the streams come back to their times after the device stood
//! still.

#![allow(clippy::print_stdout)] // figures, for whoever asks with --nocapture

use crate::common::Random;
use sched::{Class, Next, Options, PolicyKind, Predict, Request, Schedule, Task};
use std::collections::VecDeque;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

/// What a command takes of the device's time, and how much longer until it is answered.
const COST: Duration = Duration::from_micros(34);
const LATENCY: Duration = Duration::from_micros(300);
const STREAMS: u64 = 120;
const DEPTH: u32 = 16;

struct Device;

impl Predict for Device {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        COST
    }
}

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

fn request(class: Class, random: &mut Random) -> Request {
    let lba = Lba::new(random.within(0, 1 << 30));
    let access = Access { lba, len: Bytes::kib(64), direction: Direction::Read };
    Request { class, command: Command::Transfer(access) }
}

/// How many requests of streams were late, before and after the device stood still and some
/// time went by; and how much best effort was served at the end.
fn late_around_a_stall(best_effort: u64) -> ([u64; 2], u64) {
    let mut random = Random::new(5);
    let options = Options {
        depth: DEPTH,
        burst: Duration::ZERO,
        reserve: Duration::from_micros(500),
        ..Options::default()
    };
    let mut schedule = Schedule::new(PolicyKind::SLACK, options);
    let mean = COST * STREAMS * 10 / 9;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let period = Duration::from_nanos(
            random.within(mean.as_nanos() * 9 / 10, mean.as_nanos() * 11 / 10),
        );
        let task = Task::new(period, period, COST);
        let id = schedule.join(Instant::EPOCH, task).expect("0.9 of the device");
        streams.push((
            id,
            task,
            Instant::EPOCH + Duration::from_nanos(random.within(0, period.as_nanos())),
        ));
    }
    let mut now = Instant::EPOCH;
    let (mut key, mut waiting, mut served) = (0, 0, 0);
    // Keys in the device, and when each is answered.
    let mut pipeline: VecDeque<(u64, Instant)> = VecDeque::new();
    let mut free = Instant::EPOCH;
    let mut late = [0, 0];
    let (stall, back, judged, end) = (at(50), at(80), at(400), at(600));
    while now < end {
        for (id, task, next) in &mut streams {
            while *next <= now {
                key += 1;
                schedule.submit(now, key, request(Class::RealTime(*id), &mut random));
                *next += task.period;
            }
        }
        while waiting < best_effort {
            (waiting, key) = (waiting + 1, key + 1);
            schedule.submit(now, key, request(Class::best_effort(true), &mut random));
        }
        let until = loop {
            match schedule.next(now, &Device) {
                Next::Start { key, .. } => {
                    let mut begin = free.max(now);
                    if begin >= stall && begin < back {
                        begin = back;
                    }
                    free = begin + COST;
                    pipeline.push_back((key, free + LATENCY));
                }
                Next::Wait { until } => break until,
            }
        };
        let answered = pipeline.front().map(|&(_, at)| at);
        let asked = streams.iter().map(|(.., next)| *next).min();
        let next = [answered, asked, until].into_iter().flatten().filter(|&at| at > now).min();
        now = next.expect("streams ask for ever");
        while let Some(&(key, at)) = pipeline.front()
            && at <= now
        {
            pipeline.pop_front();
            let outcome = schedule.finished(at, key);
            if outcome.class.task().is_none() {
                waiting -= 1;
                served += u64::from(at >= judged);
            } else if at > outcome.times.deadline.saturating_add(LATENCY) {
                late[usize::from(at >= judged)] += u64::from(at < stall || at >= judged);
            }
        }
    }
    (late, served)
}

#[test]
fn a_deep_device_comes_back_to_its_times_after_it_stood_still() {
    for best_effort in [0, 32] {
        let (late, served) = late_around_a_stall(best_effort);
        println!(
            "{best_effort} best effort: {late:?} late, {served} best effort served at the end"
        );
        assert_eq!(late, [0, 0], "with {best_effort} of best effort");
        assert_eq!(served > 0, best_effort > 0);
    }
}
