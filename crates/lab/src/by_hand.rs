//! Worked cases: a script of requests whose service times are given, on one
//! *production* schedule.

use sched::{Class, Next, Options, Outcome, PolicyKind, Predict, Request, Schedule, Task};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// A request takes a millisecond for each of its sectors, wherever the heads are.
struct Given;

impl Predict for Given {
    fn bound(&self, _: Lba, command: &Command) -> Duration {
        let access = command.access().expect("scripts only read");
        Duration::from_millis(access.len / SECTOR)
    }
}

/// A request of a script, in milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct Ask {
    /// When it comes.
    pub at: u64,
    /// Which task of the script it belongs to; nothing for best effort.
    pub task: Option<usize>,
    /// How long it takes.
    pub cost: u64,
}

/// A request that was served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    /// Its place in the script, which is in the order of arrivals.
    pub ask: usize,
    /// When it was started and done, in milliseconds.
    pub from: u64,
    pub to: u64,
    /// By how much it was late, in milliseconds.
    pub late: u64,
}

/// Plays a script on tasks `(cost, period)` in milliseconds that are let in without
/// admission, up to where all is served or nothing can be any more.
pub(crate) fn play(policy: PolicyKind, tasks: &[(u64, u64)], script: &[Ask]) -> Vec<Served> {
    let options = Options {
        admission: false,
        reserve: Duration::ZERO,
        burst: Duration::ZERO,
        ..Options::default()
    };
    let mut schedule = Schedule::new(policy, options);
    let ids: Vec<_> = tasks
        .iter()
        .map(|&(cost, period)| schedule.join(Instant::EPOCH, task(cost, period)).expect("let in"))
        .collect();
    let end = Instant::EPOCH + Duration::from_secs(60);
    let (mut now, mut coming) = (Instant::EPOCH, script.iter().enumerate().peekable());
    let mut busy: Option<(u64, Instant)> = None;
    let mut served = Vec::new();
    loop {
        while let Some((key, ask)) = coming.next_if(|(_, ask)| at(ask.at) <= now) {
            let class =
                ask.task.map_or(Class::best_effort(true), |task| Class::RealTime(ids[task]));
            schedule.submit(now, key as u64, Request { class, command: read(ask.cost) });
        }
        let mut wake = coming.peek().map(|(_, ask)| at(ask.at));
        if let Some((key, _)) = busy.take_if(|(_, ends)| *ends <= now) {
            served.push(outcome(key, schedule.finished(now, key)));
        }
        if busy.is_none() {
            match schedule.next(now, &Given) {
                Next::Start { key, predicted } => busy = Some((key, now + predicted)),
                Next::Wait { until } => wake = wake.into_iter().chain(until).min(),
            }
        }
        match wake.into_iter().chain(busy.map(|(_, ends)| ends)).min() {
            Some(next) if next < end => now = next,
            _ => return served,
        }
    }
}

/// The task of so much work each period, in milliseconds.
pub(crate) fn task(cost: u64, period: u64) -> Task {
    let [cost, period] = [cost, period].map(Duration::from_millis);
    Task::new(period, period, cost)
}

fn at(ms: u64) -> Instant {
    Instant::EPOCH + Duration::from_millis(ms)
}

fn read(cost: u64) -> Command {
    let len = Bytes::new(SECTOR.get() * cost);
    Command::Transfer(Access { lba: Lba::default(), len, direction: Direction::Read })
}

fn outcome(key: u64, outcome: Outcome) -> Served {
    let ms = |time: Duration| time.as_nanos() / 1_000_000;
    let from = ms(outcome.started - Instant::EPOCH);
    let to = from + ms(outcome.actual);
    Served { ask: key as usize, from, to, late: ms(outcome.late_by) }
}
