//! Measurements as a table, as JSON, as a plot and as a page.

use super::Results;
use crate::failure::Failure;
use ::rwrt::{Outcome, OutcomeFigures, Samples};
use report::{Chart, Page};
use serde::Serialize;
use std::fmt::Write;

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Volumes under contract.
    Contract,
    /// Volumes as best effort.
    BestEffort,
    /// Files through the page cache.
    Files,
    /// Files past it.
    DirectFiles,
}

impl Kind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contract => "under contract",
            Self::BestEffort => "best effort",
            Self::Files => "files",
            Self::DirectFiles => "direct files",
        }
    }
}

/// A run with its names.
pub struct Measured {
    /// Which part of an experiment.
    pub part: String,
    /// On what.
    pub kind: Kind,
    /// What came of it.
    pub outcome: Outcome,
}

#[derive(Serialize)]
pub struct Json {
    ok: bool,
    problems: Vec<String>,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    part: String,
    kind: Kind,
    #[serde(flatten)]
    figures: OutcomeFigures,
}

/// All figures, for programs. Times in nanoseconds.
pub fn json(measured: &[Measured]) -> Json {
    let problems = problems(measured);
    let run = |run: &Measured| Run {
        part: run.part.clone(),
        kind: run.kind,
        figures: run.outcome.figures(),
    };
    Json { ok: problems.is_empty(), problems, runs: measured.iter().map(run).collect() }
}

/// What is not as it was promised, or as it was written.
pub fn problems(measured: &[Measured]) -> Vec<String> {
    let of = |run: &Measured| {
        let (part, kind) = (run.part.clone(), run.kind.name());
        let name = move |problem| format!("{part}, {kind}: {problem}");
        run.outcome.problems().into_iter().map(name)
    };
    measured.iter().flat_map(of).collect()
}

/// The result in words.
pub fn words(measured: &[Measured]) -> String {
    let mut text = format!("\n{}\n{}\n", table(measured).text(""), rwrt::COLUMNS);
    for line in findings(measured) {
        let _ = writeln!(text, "{line}");
    }
    for problem in problems(measured) {
        let _ = writeln!(text, "BROKEN: {problem}");
    }
    text
}

fn table(measured: &[Measured]) -> report::Table {
    let mut table = rwrt::table();
    for run in measured {
        let title = match measured.len() {
            1 => run.kind.name().to_owned(),
            _ => format!("{}, {}", run.part, run.kind.name()),
        };
        run.outcome.rows(&title, &mut table);
    }
    table
}

/// The worst jitter of each kind, with the host's own lateness beside it.
fn findings(measured: &[Measured]) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in [Kind::Contract, Kind::BestEffort, Kind::Files, Kind::DirectFiles] {
        let (mut jitter, mut host) = (Samples::default(), Samples::default());
        let mut daemon = 0;
        for run in measured.iter().filter(|run| run.kind == kind) {
            jitter.merge(&run.outcome.jitter());
            host.merge(&run.outcome.host_lateness());
            let late = run
                .outcome
                .daemon
                .map_or(0, |late| late.wakeups_max_ns.max(late.completions_max_ns));
            daemon = daemon.max(late);
        }
        if jitter.is_empty() {
            continue;
        }
        let mut line = format!(
            "{}: worst jitter {} of {} operations; the host woke a program up to {} late",
            kind.name(),
            jitter.max(),
            jitter.len(),
            host.max()
        );
        if daemon > 0 {
            let _ = write!(line, ", the daemon up to {}", units::Duration::from_nanos(daemon));
        }
        lines.push(line);
    }
    lines
}

/// A plot for each part, all kinds in it.
fn plots(measured: &[Measured]) -> Vec<Chart> {
    let mut parts: Vec<&str> = Vec::new();
    for run in measured {
        if !parts.contains(&run.part.as_str()) {
            parts.push(&run.part);
        }
    }
    let plot = |part: &str| {
        let runs = measured.iter().filter(|run| run.part == part);
        let runs: Vec<_> = runs.map(|run| (run.kind.name(), &run.outcome)).collect();
        let title = if part == "run" { "How long operations took" } else { part };
        rwrt::plot(title, &runs)
    };
    parts.iter().map(|part| plot(part)).collect()
}

fn counted_are(things: usize) -> String {
    match things {
        1 => "One thing is".into(),
        things => format!("{things} things are"),
    }
}

/// Writes the plot and the page, where they were asked for.
pub fn write(results: &Results, measured: &[Measured]) -> Result<(), Failure> {
    let plots = plots(measured);
    if let Some(path) = &results.svg {
        let svg = match &plots[..] {
            [one] => one.svg(),
            all => Chart::stacked("Which share of operations took longer than x", all),
        };
        std::fs::write(path, svg).map_err(|error| Failure::file(path, &error))?;
    }
    if let Some(path) = &results.report {
        let mut page = Page::new("rwrt: what programs see of the storage");
        let problems = problems(measured);
        page.text(&match problems.len() {
            0 => "Every contract was kept, and every byte that was checked is right.".into(),
            count => format!("{} not as promised.", counted_are(count)),
        });
        let mut found = findings(measured);
        found.extend(problems.into_iter().map(|problem| format!("BROKEN: {problem}")));
        page.heading("result", "Result").list(found.iter().map(|line| (line.as_str(), None)));
        page.charts(&plots);
        page.heading("table", "What each program saw").table(&table(measured)).text(rwrt::COLUMNS);
        std::fs::write(path, page.html()).map_err(|error| Failure::file(path, &error))?;
    }
    Ok(())
}
