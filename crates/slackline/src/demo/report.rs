//! The result as a table for people, as JSON for programs, and as a picture.

use super::outcome::{Outcome, Streams};
use super::samples::Samples;
use super::svg::{Curve, distributions};
use serde_json::{Value, json};
use std::fmt::Write;
use units::{Duration, Rate};

/// Columns of the table: what, and then one for each run.
const WHAT: usize = 34;
const RUN: usize = 20;

/// Colours that stand out on white and on near-black alike.
const COLOURS: [&str; 2] = ["#2f81f7", "#d9730d"];

/// Both runs side by side.
pub fn table(outcomes: &[Outcome], seconds: u64) -> String {
    let mut table = Table { text: String::new(), outcomes };
    table.row("", |outcome| outcome.title.into());
    table.rule();
    table.streams("readers", |outcome| &outcome.readers);
    table.streams("writers", |outcome| &outcome.writers);
    table.greedy();
    table.row("host: lateness of wake-ups, max", |o| o.host_lateness.max().to_string());
    table.row("verified", |o| {
        format!("{} MB, {} frames", o.bytes_verified.get() / 1_000_000, o.frames)
    });
    table.row("wrong", |o| o.wrong.len().to_string());
    table.text.push_str(&caption(outcomes, seconds));
    table.text
}

fn caption(outcomes: &[Outcome], seconds: u64) -> String {
    let period = outcomes.first().map_or(Duration::ZERO, |outcome| outcome.piece_period);
    format!(
        "\n\
         Each run took {seconds} s; fcfs is first come, first served. A stream touches 64 KiB\n\
         every {period}, on a timetable that never shifts. Latency: from the instant at\n\
         which a piece was due to that at which the program had it; what had not come when\n\
         the run ended counts with the time it had waited. The lateness of the host in\n\
         waking programs and disk threads is not in it, and has its own line. Late request:\n\
         one that the disk ended after its deadline. Underrun: a program within its rate\n\
         found its window not ready. Late piece: it came more than {period} late, when\n\
         the piece before was used up. Greedy latency: from request to answer.\n"
    )
}

struct Table<'a> {
    text: String,
    outcomes: &'a [Outcome],
}

impl Table<'_> {
    fn row(&mut self, what: &str, cell: impl Fn(&Outcome) -> String) {
        let _ = write!(self.text, "{what:WHAT$}");
        for outcome in self.outcomes {
            let _ = write!(self.text, "{:>RUN$}", cell(outcome));
        }
        let trimmed = self.text.trim_end().len();
        self.text.truncate(trimmed);
        self.text.push('\n');
    }

    fn rule(&mut self) {
        let width = WHAT + RUN * self.outcomes.len();
        let _ = writeln!(self.text, "{}", "─".repeat(width));
    }

    fn streams(&mut self, name: &str, streams: impl Fn(&Outcome) -> &Streams) {
        let count = self.outcomes.first().map_or(0, |outcome| streams(outcome).got.len());
        self.row(&format!("{count} {name}: asked, each"), |o| rate(streams(o).asked));
        self.row("  got, on average", |o| {
            rate(streams(o).got_total() / (streams(o).got.len().max(1) as u64))
        });
        self.row("  got, the worst served", |o| rate(streams(o).got_least()));
        self.row("  late requests", |o| {
            format!("{} of {}", streams(o).late_requests, streams(o).requests)
        });
        self.row("  underruns", |o| streams(o).underruns.to_string());
        self.row("  late pieces", |o| {
            let latency = &streams(o).latency;
            format!("{} of {}", latency.above(o.piece_period), latency.len())
        });
        self.latency("  latency", |o| streams(o).latency.clone());
        self.rule();
    }

    fn greedy(&mut self) {
        let count = self.outcomes.first().map_or(0, |outcome| outcome.greedy.count);
        self.row(&format!("{count} greedy readers: got, together"), |o| rate(o.greedy.rate));
        self.latency("  latency", |o| o.greedy.latency.clone());
        self.rule();
    }

    fn latency(&mut self, what: &str, samples: impl Fn(&Outcome) -> Samples) {
        self.row(&format!("{what} p50"), |o| samples(o).quantile(500).to_string());
        self.row(&format!("{what} p99.9"), |o| samples(o).quantile(999).to_string());
        self.row(&format!("{what} max"), |o| samples(o).max().to_string());
    }
}

/// Megabytes a second with two places, so that a column can be compared.
fn rate(rate: Rate) -> String {
    format!("{:.2} MB/s", megabytes(rate))
}

fn megabytes(rate: Rate) -> f64 {
    rate.get() as f64 / 1e6
}

/// The whole result for programs. Times in microseconds, rates in MB/s.
pub fn json(outcomes: &[Outcome], seconds: u64, problems: &[String]) -> Value {
    let policies: serde_json::Map<String, Value> =
        outcomes.iter().map(|outcome| (outcome.policy.into(), policy(outcome))).collect();
    json!({
        "seconds": seconds,
        "ok": problems.is_empty(),
        "problems": problems,
        "policies": policies,
    })
}

fn policy(outcome: &Outcome) -> Value {
    json!({
        "late_requests": outcome.late_requests(),
        "underruns": outcome.readers.underruns + outcome.writers.underruns,
        "late_pieces": outcome.late_pieces(),
        "latency_us": latency(&outcome.latency()),
        "best_effort_mb_s": megabytes(outcome.greedy.rate),
        "best_effort_latency_us": latency(&outcome.greedy.latency),
        "bytes_verified": outcome.bytes_verified.get(),
        "video_frames_verified": outcome.frames,
        "wrong": outcome.wrong,
        "host_lateness_us_max": micros(outcome.host_lateness.max()),
        "readers": streams(&outcome.readers),
        "writers": streams(&outcome.writers),
    })
}

fn streams(streams: &Streams) -> Value {
    json!({
        "count": streams.got.len(),
        "asked_mb_s": megabytes(streams.asked),
        "got_mb_s": streams.got.iter().map(|&got| megabytes(got)).collect::<Vec<_>>(),
        "requests": streams.requests,
        "late_requests": streams.late_requests,
        "underruns": streams.underruns,
        "latency_us": latency(&streams.latency),
    })
}

fn latency(samples: &Samples) -> Value {
    json!({
        "p50": micros(samples.quantile(500)),
        "p99": micros(samples.quantile(990)),
        "p999": micros(samples.quantile(999)),
        "max": micros(samples.max()),
        "count": samples.len(),
    })
}

/// Rounded up, so that a latency is never understated.
fn micros(span: Duration) -> u64 {
    span.as_nanos().div_ceil(1_000)
}

/// The distributions of all runs in one picture.
pub fn picture(outcomes: &[Outcome], load: &str) -> String {
    let mut curves = Vec::new();
    for (outcome, colour) in outcomes.iter().zip(COLOURS) {
        curves.push(Curve {
            label: format!("{}: streams under contract", outcome.title),
            colour,
            dashed: false,
            sorted: outcome.latency().sorted(),
        });
        curves.push(Curve {
            label: format!("{}: greedy readers", outcome.title),
            colour,
            dashed: true,
            sorted: outcome.greedy.latency.sorted(),
        });
    }
    let period = outcomes.first().map_or(Duration::ZERO, |outcome| outcome.piece_period);
    distributions(load, &curves, (period, "in time for the next piece"))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Greedy;
    use super::*;
    use units::Bytes;

    fn samples(micros: impl IntoIterator<Item = u64>) -> Samples {
        let mut samples = Samples::default();
        micros.into_iter().for_each(|us| samples.add(Duration::from_micros(us)));
        samples
    }

    fn outcome(policy: &'static str, late_requests: u64, slowness: u64) -> Outcome {
        let asked = Rate::per_second(1_000_000);
        let streams = |count| Streams {
            asked,
            got: vec![asked; count],
            latency: samples((1..=500).map(|n| n * slowness)),
            requests: 230,
            late_requests,
            underruns: 0,
        };
        Outcome {
            policy,
            title: policy,
            readers: streams(4),
            writers: streams(2),
            greedy: Greedy {
                count: 8,
                rate: Rate::per_second(3_250_000),
                latency: samples((1..=900).map(|n| n * 3_000)),
            },
            host_lateness: samples([60, 900]),
            bytes_verified: Bytes::new(123_456_789),
            frames: 600,
            wrong: Vec::new(),
            piece_period: Duration::from_micros(65_536),
        }
    }

    #[test]
    fn the_json_carries_what_was_promised_for_each_policy() {
        let outcomes = [outcome("slack", 0, 1), outcome("fcfs", 100, 9_000)];
        let json = json(&outcomes, 30, &[]);
        for (name, late) in [("slack", 0), ("fcfs", 200)] {
            let policy = &json["policies"][name];
            assert_eq!(policy["late_requests"], late);
            for quantile in ["p50", "p99", "p999", "max"] {
                assert!(policy["latency_us"][quantile].is_u64(), "{name} {quantile}");
            }
            assert_eq!(policy["best_effort_mb_s"], 3.25);
            assert_eq!(policy["bytes_verified"], 123_456_789);
            assert_eq!(policy["host_lateness_us_max"], 900);
        }
        assert_eq!(json["policies"]["slack"]["latency_us"]["p50"], 250);
        assert_eq!(json["ok"], true);
        assert_eq!(super::json(&outcomes, 30, &["x".into()])["ok"], false);
    }

    #[test]
    fn the_table_has_both_runs_side_by_side_and_fits_a_terminal() {
        let table = table(&[outcome("slack", 0, 1), outcome("fcfs", 100, 9_000)], 30);
        assert!(table.lines().all(|line| line.chars().count() <= 88), "{table}");
        let late: Vec<_> = table.lines().filter(|line| line.contains("late requests")).collect();
        assert_eq!(late.len(), 2, "readers and writers");
        for line in late {
            let cells: Vec<_> = line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
            assert_eq!(cells, ["late requests", "0 of 230", "100 of 230"]);
        }
        assert!(table.contains("host: lateness of wake-ups, max"));
    }

    #[test]
    fn a_run_that_was_late_in_any_way_says_so() {
        assert_eq!(outcome("slack", 0, 1).late(), Vec::<String>::new());
        assert_eq!(outcome("slack", 3, 1).late(), ["6 requests ended after their deadline"]);
        let slow = outcome("slack", 0, 1_000).late();
        assert_eq!(slow.len(), 1, "{slow:?}");
        assert!(slow[0].ends_with("pieces came too late for their program"));
        let mut starved = outcome("slack", 0, 1);
        starved.writers.got[1] = Rate::per_second(980_000);
        starved.readers.underruns = 1;
        assert_eq!(starved.late().len(), 2, "{:?}", starved.late());
    }
}
