//! One job done by several sides in turns, in one run: what each does in a second, what it takes of
//! the processors, and the ratio of ours to each other one, round by round.
//!
//! A machine that others use too is slower in one round than in the next; the ratio within one round
//! is what counts, and its smallest and largest say how far that is to be trusted.

use super::processor;
use report::{Table, number};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often, and for how long, each side does a job.
#[derive(Clone, Copy)]
pub struct Scale {
    pub rounds: usize,
    pub time: Duration,
}

/// As it is meant, or with `SLACKLINE_QUICK` as short as it can be.
pub fn scale() -> Scale {
    match is_quick() {
        true => Scale { rounds: 1, time: Duration::from_millis(50) },
        false => Scale { rounds: 7, time: Duration::from_millis(1500) },
    }
}

pub fn is_quick() -> bool {
    std::env::var_os("SLACKLINE_QUICK").is_some()
}

/// What serves, and its processes.
pub struct Side<S> {
    pub name: &'static str,
    pub how: S,
    pub processes: Vec<u32>,
}

/// What one side did in one round.
#[derive(Clone, Copy)]
struct Round {
    /// In a second, in units of the job.
    done: f64,
    /// Microseconds of a processor for each unit: of the server, and of its client, which is this
    /// process.
    server: f64,
    client: f64,
}

/// What clients do until the time is over, and how much of it they have done.
pub struct Work {
    over: AtomicBool,
    done: AtomicU64,
}

impl Work {
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn add(&self, done: u64) {
        self.done.fetch_add(done, Ordering::Relaxed);
    }
}

/// The figures of all jobs of one benchmark.
pub struct Figures {
    done: Table,
    processors: Table,
}

impl Figures {
    /// Of these sides, ours first.
    pub fn new<S>(sides: &[Side<S>]) -> Self {
        let mut done = vec![format!("in a second, median of {}", scale().rounds)];
        done.extend(sides.iter().map(|side| format!(">{}", side.name)));
        done.extend(sides.iter().skip(1).map(|side| format!(">ours / {} (from, to)", side.name)));
        let mut processors = vec!["processor, µs for each, median".to_owned()];
        for Side { name, .. } in sides {
            processors.extend([format!(">{name}"), ">client".to_owned()]);
        }
        let table =
            |words: Vec<String>| Table::new(&words.iter().map(String::as_str).collect::<Vec<_>>());
        Self { done: table(done), processors: table(processors) }
    }

    /// A job that so many clients do at a time. `unit` is how much of what they count is one.
    pub fn job<S: Sync>(
        &mut self,
        title: &str,
        (sides, clients, unit): (&[Side<S>], usize, f64),
        client: impl Fn(&S, &Work, usize) + Sync,
    ) {
        let mut seen = vec![Vec::new(); sides.len()];
        for round in 0..scale().rounds {
            // Whoever goes first changes from round to round.
            for at in 0..sides.len() {
                let at = (at + round) % sides.len();
                seen[at].push(measure(&sides[at], (clients, unit), &client));
            }
        }
        let middle = |at: usize, pick: fn(&Round) -> f64| {
            number(spread(seen[at].iter().map(pick).collect())[1])
        };
        let (mut done, mut processors) = (vec![title.to_owned()], vec![title.to_owned()]);
        for at in 0..sides.len() {
            done.push(middle(at, |round| round.done));
            processors.extend([middle(at, |round| round.server), middle(at, |round| round.client)]);
        }
        for peer in &seen[1..] {
            let ratios = seen[0].iter().zip(peer).map(|(ours, peer)| ours.done / peer.done);
            let [least, median, most] = spread(ratios.collect());
            done.push(format!("{median:.2} ({least:.2}, {most:.2})"));
        }
        self.done.row(done);
        self.processors.row(processors);
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.done.text("  "), self.processors.text("  "))
    }
}

fn measure<S: Sync>(
    side: &Side<S>,
    (clients, unit): (usize, f64),
    client: &(impl Fn(&S, &Work, usize) + Sync),
) -> Round {
    let work = Work { over: AtomicBool::new(false), done: AtomicU64::new(0) };
    let server = || side.processes.iter().map(|&process| processor(process)).sum::<Duration>();
    let own = || processor(std::process::id());
    let (before, began) = ((server(), own()), Instant::now());
    thread::scope(|scope| {
        for number in 0..clients {
            let work = &work;
            scope.spawn(move || client(&side.how, work, number));
        }
        thread::sleep(scale().time);
        work.over.store(true, Ordering::Relaxed);
    });
    let took = began.elapsed().as_secs_f64();
    let units = work.done.load(Ordering::Relaxed) as f64 / unit;
    let micros = |time: Duration| time.as_secs_f64() * 1e6 / units;
    Round {
        done: units / took,
        server: micros(server().saturating_sub(before.0)),
        client: micros(own().saturating_sub(before.1)),
    }
}

/// Smallest, middle and largest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

/// Numbers that hit all places evenly.
pub fn mixed(step: u64) -> u64 {
    step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}
