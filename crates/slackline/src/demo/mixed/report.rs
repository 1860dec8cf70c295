//! The runs side by side: a table, JSON, a picture.

use super::super::load::RATE;
use super::super::samples::Samples;
use super::super::svg::{Curve, distributions};
use super::Args;
use super::kept::Kept;
use super::load::{PIECE, Run};
use serde_json::{Value, json};
use std::fmt::Write;
use units::{Duration, Rate};

const WHAT: usize = 36;
const RUN: usize = 20;
const COLOURS: [&str; 3] = ["#2f81f7", "#d9730d", "#8957e5"];

fn row(text: &mut String, what: &str, runs: &[Run], cell: impl Fn(&Run) -> String) {
    let _ = write!(text, "{what:<WHAT$}");
    runs.iter().for_each(|run| {
        let _ = write!(text, "{:>RUN$}", cell(run));
    });
    text.push('\n');
}

/// All runs in words.
pub fn told(runs: &[Run], args: &Args, broken: &[String]) -> String {
    let seconds = args.seconds;
    let mut text = String::from("\n");
    row(&mut text, "", runs, |run| run.title.clone());
    text.push_str(&"-".repeat(WHAT + RUN * runs.len()));
    text.push('\n');
    row(&mut text, "film and recording: late pieces", runs, |run| run.late_pieces().to_string());
    row(&mut text, "  the film's longest wait", runs, |run| run.film.latency.max().to_string());
    row(&mut text, "  the recording's", runs, |run| run.recording.latency.max().to_string());
    let with_contracts = |run: &Run, cell: fn(&Kept) -> String| match &run.kept {
        Some(kept) => cell(kept),
        None => "no contracts".into(),
    };
    row(&mut text, "requests under contract, late", runs, |run| {
        with_contracts(run, |kept| format!("{}, {}", kept.requests, kept.late))
    });
    row(&mut text, "  of the schedule, not the machine", runs, |run| {
        with_contracts(run, |kept| kept.late_of_schedule().to_string())
    });
    row(&mut text, "  the machine: late, together at most", runs, |run| {
        with_contracts(run, Kept::of_machine)
    });
    row(&mut text, "database: transactions a second", runs, |run| {
        format!("{:.1}", run.transactions.len() as f64 / seconds as f64)
    });
    for (what, per_mille) in [("  p50", 500), ("  p99", 990), ("  longest", 1_000)] {
        row(&mut text, what, runs, |run| run.transactions.quantile(per_mille).to_string());
    }
    row(&mut text, "backup by tar", runs, |run| run.backup.to_string());
    if runs.iter().any(|run| run.copied.is_some()) {
        let copied = |run: &Run| run.copied.map_or_else(String::new, |rate| rate.to_string());
        row(&mut text, "copied by others", runs, copied);
    }
    row(&mut text, "host: lateness of wake-ups, max", runs, |run| wakeups(run).max().to_string());
    let _ = write!(
        text,
        "\nEach run took {seconds} s on an emulated disk of the same model: Slackline's in its own\n\
         process, the kernel's over FUSE and a loop device. The film is read and the recording\n\
         written at {RATE}, {PIECE} every {}; a piece that waits longer is late. The database is\n\
         PostgreSQL with pgbench's four clients. With Slackline film, recording and database have\n\
         contracts; under the kernel's schedulers {}.\n",
        RATE.time_for(PIECE),
        match args.default_classes {
            true => "all but the backup are in the default I/O class",
            false =>
                "film and recording are in the real-time I/O\nclass, backup and copies in the idle one",
        }
    );
    if let Some(path) = args.svg.as_deref() {
        let _ = writeln!(text, "The database's latencies as a picture: {}", path.display());
    }
    match broken {
        [] => text.push_str("With Slackline nothing under contract was late.\n"),
        _ => broken.iter().for_each(|one| {
            let _ = writeln!(text, "BROKEN: {one}");
        }),
    }
    text
}

fn wakeups(run: &Run) -> Samples {
    [&run.film.wakeups, &run.recording.wakeups].into_iter().collect()
}

/// All runs for programs; times in nanoseconds.
pub fn json(runs: &[Run], seconds: u64, broken: &[String]) -> Value {
    let one = |run: &Run| {
        let ns = |time: Duration| time.as_nanos();
        json!({
            "title": run.title,
            "late_pieces": run.late_pieces(),
            "film_longest_ns": ns(run.film.latency.max()),
            "recording_longest_ns": ns(run.recording.latency.max()),
            "contracts": run.kept.as_ref().map(Kept::json),
            "transactions": run.transactions.len(),
            "transaction_p50_ns": ns(run.transactions.quantile(500)),
            "transaction_p99_ns": ns(run.transactions.quantile(990)),
            "transaction_longest_ns": ns(run.transactions.max()),
            "backup_bytes_per_second": run.backup.get(),
            "copied_bytes_per_second": run.copied.map(Rate::get),
            "host_lateness_max_ns": ns(wakeups(run).max()),
        })
    };
    json!({
        "seconds": seconds,
        "runs": runs.iter().map(one).collect::<Vec<_>>(),
        "broken": broken,
    })
}

/// How long transactions took, in each run.
pub fn picture(runs: &[Run]) -> String {
    let curves: Vec<Curve> = runs
        .iter()
        .zip(COLOURS)
        .map(|(run, colour)| Curve {
            label: format!("{}: {} transactions", run.title, run.transactions.len()),
            colour,
            dashed: false,
            sorted: run.transactions.sorted(),
        })
        .collect();
    let title = "pgbench beside a film, a recording and a backup on one disk";
    distributions(title, &curves, (Duration::from_secs(1), "1 s"))
}
