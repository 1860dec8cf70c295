//! `slackline simulate`: what if? A person's mix of streams, load, disks and faults,
//! played by the production node in simulated time.

mod entry;
mod fault;
pub mod file;
mod page;
mod percent;
mod pictures;
mod results;
mod source;
mod trace;
mod words;

use crate::Common;
use crate::failure::Failure;
use file::{Instead, Read};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use node::Policy;
use signal_hook::consts::{SIGINT, SIGTERM};
use sim::runs;
use sim::scenario::{Control, Outcome, SetupError, run_all};
use std::io::{IsTerminal, stderr};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, Duration};

/// Play a mix of streams, load, disks and faults in simulated time.
///
/// The scenario is a file (TOML); scenarios/ has some to start from, and a list for
/// `slackline plan` is one, too. What runs is the node that serves pools, on models of
/// disks: who is let in, who is late and why, what is left for the others. Several
/// runs with different seeds tell how sure the figures are; a run is the same whenever
/// its seed is. Ctrl-C ends it with what there is.
#[derive(clap::Args)]
pub struct Args {
    /// The scenario, for example scenarios/cameras.toml
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// In place of the file's: how the disks are scheduled. Any of docs/policies.md
    #[arg(long, value_name = "NAME", value_parser = policies::named)]
    policy: Option<Policy>,
    /// In place of the file's: take every contract, whether it can be kept or not
    #[arg(long)]
    no_admission: bool,
    /// In place of the file's: the time that is counted in each run
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,
    /// In place of the file's: the time before that
    #[arg(long, value_name = "TIME")]
    warm_up: Option<Duration>,
    /// In place of the file's: how many runs, each with another seed
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: Option<u64>,
    /// In place of the file's: the seed of the first run
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// In place of the file's: memory for windows and transfers
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// How many runs at once [default: one for each processor]
    #[arg(long, value_name = "NUMBER")]
    workers: Option<NonZero<usize>>,
    /// Draw the distributions of waits to this file (SVG)
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
    /// Write a page that explains it all to this file (HTML)
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let read = file::read(&args.scenario, &args.instead())?;
    let outcomes = play(&read, args.workers.unwrap_or_else(runs::workers))?;
    let outcomes: Vec<Outcome> =
        outcomes.into_iter().filter(|outcome| !outcome.counted.is_zero()).collect();
    if outcomes.is_empty() {
        return Err(Failure::new(
            "it was stopped before anything was counted",
            "let it run longer, or give it a shorter --warm-up",
        ));
    }
    let results = results::of(&read.scenario, read.about.clone(), &outcomes);
    if let Some(path) = &args.svg {
        write(path, &pictures::waits(&results).svg())?;
    }
    if let Some(path) = &args.report {
        write(path, &page::html(&results, &args.scenario, &read.text))?;
    }
    common.output().result(&results, words::all)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, &error))
}

impl Args {
    fn instead(&self) -> Instead {
        Instead {
            policy: self.policy,
            admission: self.no_admission.then_some(false),
            duration: self.duration,
            warm_up: self.warm_up,
            runs: self.runs,
            seed: self.seed,
            memory: self.memory,
        }
    }
}

/// Plays all runs, and tells how far it is; stops where somebody interrupts it.
fn play(read: &Read, workers: NonZero<usize>) -> Result<Vec<Outcome>, Failure> {
    let control = Control::default();
    let interrupted = watched()?;
    let seeds: Vec<u64> = (read.seed..read.seed + read.runs).collect();
    let whole = read.scenario.whole().as_nanos() / 1_000_000 * read.runs;
    let bar = bar(whole);
    let played = std::thread::scope(|scope| {
        let runs = scope.spawn(|| run_all(&read.scenario, &seeds, workers, &control));
        while !runs.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(20));
            if interrupted.load(Ordering::Relaxed) {
                control.stop.store(true, Ordering::Relaxed);
            }
            bar.set_position(control.simulated_ns.load(Ordering::Relaxed) / 1_000_000);
        }
        runs.join().expect("runs do not panic")
    });
    bar.finish_and_clear();
    played.map_err(|error| setup(&error, read))
}

/// Set by the first interrupt; the second ends the process.
fn watched() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let armed =
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag));
        let armed = armed.and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)));
        armed.map_err(|error| {
            let what = format!("the system gives no signals: {error}");
            Failure::new(what, "raise the limits of the process")
        })?;
    }
    Ok(flag)
}

/// Simulated time in milliseconds; nothing where nobody looks.
fn bar(whole: u64) -> ProgressBar {
    let bar = ProgressBar::new(whole);
    let target = match stderr().is_terminal() {
        true => ProgressDrawTarget::stderr_with_hz(4),
        false => ProgressDrawTarget::hidden(),
    };
    bar.set_draw_target(target);
    let template = "{wide_bar} {percent} % of simulated time, {eta} to go";
    bar.with_style(ProgressStyle::with_template(template).expect("the template is sound"))
}

fn setup(error: &SetupError, read: &Read) -> Failure {
    let scenario = &read.scenario;
    let streams = scenario.streams.iter().map(|plan| &plan.name);
    let mut names = streams.chain(scenario.loads.iter().map(|plan| &plan.name));
    let who = error.class.and_then(|class| names.nth(class));
    let what = match who {
        Some(who) => format!("\"{who}\": {}", error.what),
        None => error.what.clone(),
    };
    Failure::usage(what, error.next_step.clone())
}

/// What the tests of the scenarios look at.
#[cfg(test)]
fn results(path: &Path, instead: &Instead) -> Result<results::Results, Failure> {
    let read = file::read(path, instead)?;
    let outcomes = play(&read, runs::workers())?;
    Ok(results::of(&read.scenario, read.about.clone(), &outcomes))
}

#[cfg(test)]
mod tests;
