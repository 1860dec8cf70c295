//! Running experiments: simulated ones beside each other, real-time ones alone.
//!
//! Invariant: what an experiment finds does not depend on the number of workers,
//! nor on what ran before it.

use crate::{Effort, Experiment, Findings};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What an experiment is given.
pub struct Run<'a> {
    /// How thorough it should be.
    pub effort: Effort,
    progress: &'a (dyn Fn(f64) + Sync),
}

impl Run<'_> {
    /// `thorough` or `quick`, whichever this run is.
    pub fn choose<T>(&self, thorough: T, quick: T) -> T {
        match self.effort {
            Effort::Thorough => thorough,
            Effort::Quick => quick,
        }
    }

    /// Says that `done` of `total` steps are done.
    pub fn progress(&self, done: usize, total: usize) {
        (self.progress)(done as f64 / total.max(1) as f64);
    }
}

/// What happens while experiments run.
#[derive(Clone, Debug)]
pub enum News<'a> {
    /// One begins.
    Begins(&'a Experiment),
    /// So large a part of one is done.
    At(&'a Experiment, f64),
    /// One has ended.
    Ended(&'a Ended),
}

/// An experiment that has run.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Which.
    pub experiment: Experiment,
    /// What it found, or the words with which it broke off.
    pub findings: Result<Findings, String>,
    /// How long it took; on a busy machine, longer.
    pub took: Duration,
}

impl Ended {
    /// It ran to its end, says something, and no contradiction is unexplained.
    pub fn is_sound(&self) -> bool {
        self.findings.as_ref().is_ok_and(|findings| {
            !findings.claims.is_empty() && !findings.claims.iter().any(|c| c.is_unexplained())
        })
    }
}

impl std::fmt::Debug for Experiment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Runs experiments with so many `workers` and says what happens. The result is in
/// the order of `experiments`.
pub fn run(
    experiments: &[Experiment],
    effort: Effort,
    workers: usize,
    news: &(dyn Fn(News<'_>) + Sync),
) -> Vec<Ended> {
    let ended: Vec<Mutex<Option<Ended>>> = experiments.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = |real_time: bool, next: &AtomicUsize| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(experiment) = experiments.get(at) else { return };
            if experiment.real_time == real_time {
                let result = one(experiment, effort, news);
                *ended[at].lock().expect("no worker panics") = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| work(false, &next));
        }
    });
    work(true, &AtomicUsize::new(0));
    let result = |slot: Mutex<Option<Ended>>| slot.into_inner().expect("no worker panics");
    ended.into_iter().map(|slot| result(slot).expect("each has run")).collect()
}

fn one(experiment: &Experiment, effort: Effort, news: &(dyn Fn(News<'_>) + Sync)) -> Ended {
    news(News::Begins(experiment));
    let began = Instant::now();
    let progress = |part| news(News::At(experiment, part));
    let run = Run { effort, progress: &progress };
    let mut findings = catch_unwind(AssertUnwindSafe(|| (experiment.run)(&run))).map_err(words);
    if let Ok(findings) = &mut findings {
        findings.claims.iter_mut().for_each(|claim| claim.judge(effort));
    }
    let ended = Ended { experiment: *experiment, findings, took: began.elapsed() };
    news(News::Ended(&ended));
    ended
}

/// What a panic says.
fn words(panic: Box<dyn std::any::Any + Send>) -> String {
    let literal = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    literal
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it broke off without words".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, Paper};

    fn experiment(name: &'static str, run: fn(&Run<'_>) -> Findings) -> Experiment {
        let (paper, real_time) = (Paper::Peers, name.starts_with("real"));
        Experiment { name, paper, title: "", claim: "", setup: "", real_time, run }
    }

    fn with(holds: bool) -> Findings {
        Findings { claims: vec![Claim::holds("", "", "", holds)], ..Findings::default() }
    }

    /// A contradiction whose reason is for 10 in a thorough run, and for 20 in a quick one.
    fn explained(figure: f64) -> Findings {
        let at = crate::At::each(10.0, 20.0);
        let claim = Claim::near("", 1.0, figure, 0.1, "").explained(at, "why");
        Findings { claims: vec![claim], ..Findings::default() }
    }

    #[test]
    fn what_breaks_off_or_says_nothing_or_is_not_explained_is_not_sound() {
        let experiments = [
            experiment("sound", |_| with(true)),
            experiment("real-sound", |_| with(true)),
            experiment("unexplained", |_| with(false)),
            experiment("explained", |_| explained(20.0)),
            experiment("explained-elsewhere", |_| explained(10.0)),
            experiment("silent", |_| Findings::default()),
            experiment("broken", |_| panic!("as planned")),
        ];
        let seen = Mutex::new(Vec::new());
        let news = |news: News<'_>| {
            if let News::Ended(ended) = news {
                seen.lock().expect("sound").push(ended.experiment.name);
            }
        };
        let ended = run(&experiments, Effort::Quick, 2, &news);
        let sound: Vec<bool> = ended.iter().map(Ended::is_sound).collect();
        assert_eq!(sound, [true, true, false, true, false, false, false]);
        assert_eq!(ended[6].findings.as_ref().expect_err("it panics"), "as planned");
        let seen = seen.into_inner().expect("sound");
        assert_eq!((seen.len(), seen[6]), (7, "real-sound"), "what is timed runs alone");
    }
}
