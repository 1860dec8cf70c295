//! What came of a run: in numbers for programs, in tables and plots for people.

use crate::pace::{Grabbed, Seen};
use crate::pattern::Checker;
use crate::samples::{Figures, Samples};
use crate::storage::Account;
use report::{Axis, Chart, Mood, Series, Style, Table};
use serde::Serialize;
use units::{Bytes, Duration, Rate};

/// Where plots begin, in ms.
const FROM_MS: f64 = 0.001;
/// The least share that plots show, in percent.
const LEAST: f64 = 0.001;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of each program that keeps a rate.
    pub streams: Vec<StreamOutcome>,
    /// Of each that does not.
    pub greedy: Vec<GreedyOutcome>,
    /// How long it took.
    pub elapsed: Duration,
    /// How late the host made the daemon, where there is one.
    pub daemon: Option<DaemonLateness>,
}

/// How late the host woke the daemon's threads, since the daemon's start.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DaemonLateness {
    /// At a wake-up.
    pub wakeups_max_ns: u64,
    /// At the end of a command of an emulated disk.
    pub completions_max_ns: u64,
}

/// What came of a stream.
#[derive(Clone, Debug)]
pub struct StreamOutcome {
    /// What it read or wrote.
    pub name: String,
    /// Whether it wrote.
    pub writes: bool,
    /// The rate that it asked for.
    pub asked: Rate,
    /// What it saw.
    pub seen: Seen,
    /// Under contract, what the daemon counted.
    pub account: Option<Account>,
    /// What was found of its bytes, where that was asked for.
    pub checked: Option<Checker>,
    /// Bytes that were to come and did not.
    pub missing: Bytes,
    /// Whether it was ended when its time was over.
    pub cut: bool,
}

/// What came of a greedy program.
#[derive(Clone, Debug)]
pub struct GreedyOutcome {
    /// What it read or wrote.
    pub name: String,
    /// Whether it wrote.
    pub writes: bool,
    /// What it saw.
    pub grabbed: Grabbed,
    /// Of a reader, what was found of its bytes.
    pub checked: Option<Checker>,
}

impl StreamOutcome {
    fn way(&self) -> &'static str {
        if self.writes { "write" } else { "read" }
    }

    fn words(&self) -> String {
        let way = if self.writes { "writes" } else { "reads" };
        if self.name.starts_with("reader of ") {
            self.name.clone()
        } else {
            format!("{way} {}", self.name)
        }
    }
}

impl Outcome {
    /// How late the host woke the streams' programs.
    pub fn host_lateness(&self) -> Samples {
        self.all(|seen| &seen.sleep)
    }

    /// The jitter of all streams.
    pub fn jitter(&self) -> Samples {
        self.all(|seen| &seen.jitter)
    }

    fn all(&self, which: impl Fn(&Seen) -> &Samples) -> Samples {
        let mut all = Samples::default();
        self.streams.iter().for_each(|stream| all.merge(which(&stream.seen)));
        all
    }

    /// The latencies of all greedy programs.
    pub fn greedy_latency(&self) -> Samples {
        let mut all = Samples::default();
        self.greedy.iter().for_each(|greedy| all.merge(&greedy.grabbed.latency));
        all
    }

    /// What all greedy programs had together.
    pub fn greedy_rate(&self) -> Rate {
        let bytes = self.greedy.iter().map(|greedy| greedy.grabbed.bytes).sum();
        let longest = self.greedy.iter().map(|greedy| greedy.grabbed.elapsed).max();
        Rate::of(bytes, longest.unwrap_or_default())
    }

    /// What is not as it was promised or as it was written: under contract nothing late
    /// and no window not ready; of whatever else, no wrong byte.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for stream in &self.streams {
            let who = stream.words();
            if let Some(account) = &stream.account {
                let counts = [
                    (account.underruns, "times the window was not ready"),
                    (account.late_requests, "requests were late"),
                    (account.gap_bytes, "bytes were given up"),
                ];
                let broken = counts.iter().filter(|(count, _)| *count > 0);
                problems.extend(broken.map(|(count, what)| format!("{who}: {count} {what}")));
            }
            // Without a contract nothing was promised for the time that there was.
            if !stream.missing.is_zero() && (stream.account.is_some() || !stream.cut) {
                let (missing, had) = (stream.missing.get(), stream.seen.bytes.get());
                problems.push(format!("{who}: it ended after {had} bytes; {missing} are missing"));
            }
            problems.extend(wrong(&who, stream.checked.as_ref()));
        }
        for greedy in &self.greedy {
            problems.extend(wrong(&greedy.name, greedy.checked.as_ref()));
        }
        problems
    }

    /// All figures.
    pub fn figures(&self) -> OutcomeFigures {
        let stream = |stream: &StreamOutcome| StreamFigures {
            name: stream.name.clone(),
            way: stream.way(),
            asked_bytes_per_second: stream.asked.get(),
            got_bytes_per_second: stream.seen.rate().get(),
            bytes: stream.seen.bytes.get(),
            missing_bytes: stream.missing.get(),
            first_ns: stream.seen.first.as_nanos(),
            jitter: stream.seen.jitter.figures(),
            latency: stream.seen.latency.figures(),
            movement: stream.seen.movement.figures(),
            host_lateness: stream.seen.sleep.figures(),
            forgiven: stream.seen.forgiven,
            contract: stream.account,
            checked: stream.checked.as_ref().map(CheckedFigures::of),
        };
        let greedy = |greedy: &GreedyOutcome| GreedyFigures {
            name: greedy.name.clone(),
            way: if greedy.writes { "write" } else { "read" },
            bytes: greedy.grabbed.bytes.get(),
            latency: greedy.grabbed.latency.figures(),
            checked: greedy.checked.as_ref().map(CheckedFigures::of),
        };
        OutcomeFigures {
            streams: self.streams.iter().map(stream).collect(),
            greedy: self.greedy.iter().map(greedy).collect(),
            greedy_bytes_per_second: self.greedy_rate().get(),
            greedy_latency: self.greedy_latency().figures(),
            host_lateness: self.host_lateness().figures(),
            daemon_lateness: self.daemon,
            elapsed_ns: self.elapsed.as_nanos(),
        }
    }

    /// A table of what every program saw; `title` stands in the first column.
    pub fn rows(&self, title: &str, table: &mut Table) {
        for stream in &self.streams {
            let seen = &stream.seen;
            let kept = stream.account.map_or_else(
                || ("-".to_owned(), Mood::Plain),
                |account| {
                    let bad = account.underruns + account.late_requests > 0;
                    let words = format!("{}, {}", account.underruns, account.late_requests);
                    (words, if bad { Mood::Bad } else { Mood::Good })
                },
            );
            let jitter = seen.jitter.figures();
            let longest = [seen.sleep.max(), seen.latency.max(), seen.movement.max()];
            let mut row = vec![title.to_owned(), stream.words(), megabytes(seen.rate())];
            row.extend([jitter.p50_ns, jitter.p99_ns, jitter.p999_ns, jitter.max_ns].map(millis));
            row.extend(longest.map(|span| millis(span.as_nanos())));
            let mut row: Vec<_> = row.into_iter().map(|cell| (cell, Mood::Plain)).collect();
            row.extend([kept, right(stream.checked.as_ref())]);
            table.moody(row);
        }
        for writes in [false, true] {
            let some = self.greedy.iter().filter(|greedy| greedy.writes == writes);
            let some: Vec<_> = some.collect();
            if some.is_empty() {
                continue;
            }
            let mut latency = Samples::default();
            some.iter().for_each(|greedy| latency.merge(&greedy.grabbed.latency));
            let bytes = some.iter().map(|greedy| greedy.grabbed.bytes).sum();
            let took = some.iter().map(|greedy| greedy.grabbed.elapsed).max().unwrap_or_default();
            let figures = latency.figures();
            let what = if writes { "writers" } else { "readers" };
            let mut row = vec![title.to_owned(), format!("{} greedy {what}", some.len())];
            row.push(megabytes(Rate::of(bytes, took)));
            row.extend(
                [figures.p50_ns, figures.p99_ns, figures.p999_ns, figures.max_ns].map(millis),
            );
            row.extend(["-"; 4].map(String::from));
            let mut row: Vec<_> = row.into_iter().map(|cell| (cell, Mood::Plain)).collect();
            let checked: Vec<_> = some.iter().filter_map(|g| g.checked.as_ref()).collect();
            let wrong: Bytes = checked.iter().map(|checker| checker.wrong()).sum();
            row.push(match checked.first() {
                None => ("-".into(), Mood::Plain),
                Some(_) if wrong.is_zero() => ("0".into(), Mood::Good),
                Some(_) => (wrong.get().to_string(), Mood::Bad),
            });
            table.moody(row);
        }
    }
}

/// The table that [`Outcome::rows`] fills. Times are in ms.
pub fn table() -> Table {
    Table::new(&[
        "",
        "program",
        ">MB/s",
        ">jitter, ms: 50 %",
        ">99 %",
        ">99.9 %",
        ">longest",
        ">host late",
        ">latency",
        ">playout",
        ">underruns, late",
        ">wrong bytes",
    ])
}

/// What the columns of [`table`] are.
pub const COLUMNS: &str = "\
Jitter: from when an operation was due to its end. Host late: from when it was due to when
the host woke the program for it, which is part of the jitter. Latency: the operation
itself. Playout: moving the playout point behind it. Of these three, the longest. Of greedy
programs, the times are those of an operation of 128 KiB. The first operation of a stream,
which waits for a full window or for the first turn of a disk, is in none of them.
";

fn megabytes(rate: Rate) -> String {
    format!("{:.3}", rate.get() as f64 / 1e6)
}

fn millis(nanos: u64) -> String {
    report::number(nanos as f64 / 1e6)
}

fn right(checked: Option<&Checker>) -> (String, Mood) {
    match checked {
        None => ("-".into(), Mood::Plain),
        Some(checker) if checker.wrong().is_zero() => ("0".into(), Mood::Good),
        Some(checker) => (checker.wrong().get().to_string(), Mood::Bad),
    }
}

fn wrong(who: &str, checked: Option<&Checker>) -> Vec<String> {
    let Some(checker) = checked.filter(|checker| !checker.wrong().is_zero()) else {
        return Vec::new();
    };
    let mut problems: Vec<_> =
        checker.faults().iter().map(|fault| format!("{who}: {fault}")).collect();
    let shown: Bytes = checker.faults().iter().map(|fault| fault.len).sum();
    let rest = checker.wrong().saturating_sub(shown);
    if !rest.is_zero() {
        problems.push(format!("{who}: and {} more bytes are wrong", rest.get()));
    }
    problems
}

/// A cumulative proportional plot: of the streams' jitter and the greedy programs'
/// latencies, the share that took longer than so many milliseconds, both axes logarithmic,
/// with the host's own lateness. Each outcome has a name.
pub fn plot(title: &str, outcomes: &[(&str, &Outcome)]) -> Chart {
    let longest = outcomes.iter().flat_map(|(_, outcome)| {
        [outcome.jitter().max(), outcome.host_lateness().max(), outcome.greedy_latency().max()]
    });
    let longest = longest.max().unwrap_or_default();
    let x = Axis::logarithmic("took longer than").from(FROM_MS).named(decades(longest));
    let y = Axis::logarithmic("share of operations, %").from(LEAST).to(100.0);
    let mut chart = Chart::new(title, x, y);
    let line = |name: String, style: Style, samples: &Samples| {
        Series::new(name, style, report::longer_than(samples.millis(), FROM_MS, LEAST))
    };
    for (name, outcome) in outcomes {
        for writes in [false, true] {
            let mut jitter = Samples::default();
            let streams = outcome.streams.iter().filter(|stream| stream.writes == writes);
            let count = streams.clone().count();
            streams.for_each(|stream| jitter.merge(&stream.seen.jitter));
            let who = if writes { "writer" } else { "reader" };
            let who = if count == 1 { who.to_owned() } else { format!("{who}s") };
            if !jitter.is_empty() {
                chart = chart.with(line(format!("{who}, {name}"), Style::Steps, &jitter));
            }
        }
        let greedy = outcome.greedy_latency();
        if !greedy.is_empty() {
            chart = chart.with(line(format!("greedy beside it, {name}"), Style::Steps, &greedy));
        }
    }
    let mut host = Samples::default();
    outcomes.iter().for_each(|(_, outcome)| host.merge(&outcome.host_lateness()));
    match host.is_empty() {
        true => chart,
        false => chart.with(line("the host's own lateness".into(), Style::Printed, &host)),
    }
}

/// Powers of ten in milliseconds, from 1 us to beyond `longest`.
fn decades(longest: Duration) -> Vec<(f64, String)> {
    let mut ticks = Vec::new();
    let mut nanos = 1_000;
    loop {
        let span = Duration::from_nanos(nanos);
        let (count, unit) = match nanos {
            0..1_000_000 => (nanos / 1_000, "us"),
            1_000_000..1_000_000_000 => (nanos / 1_000_000, "ms"),
            _ => (nanos / 1_000_000_000, "s"),
        };
        ticks.push((span.as_millis_f64(), format!("{count} {unit}")));
        if span >= longest || ticks.len() == 12 {
            return ticks;
        }
        nanos *= 10;
    }
}

/// [`Outcome`] in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct OutcomeFigures {
    /// Of each program that keeps a rate.
    pub streams: Vec<StreamFigures>,
    /// Of each that does not.
    pub greedy: Vec<GreedyFigures>,
    /// What the greedy programs had together.
    pub greedy_bytes_per_second: u64,
    /// Of their operations.
    pub greedy_latency: Figures,
    /// How late the host woke the streams' programs.
    pub host_lateness: Figures,
    /// How late it made the daemon.
    pub daemon_lateness: Option<DaemonLateness>,
    /// How long the run took.
    pub elapsed_ns: u64,
}

/// [`StreamOutcome`] in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct StreamFigures {
    /// What it read or wrote.
    pub name: String,
    /// `read` or `write`.
    pub way: &'static str,
    /// The rate that it asked for.
    pub asked_bytes_per_second: u64,
    /// The rate that it had, behind its first operation.
    pub got_bytes_per_second: u64,
    /// What it moved.
    pub bytes: u64,
    /// What was to come and did not.
    pub missing_bytes: u64,
    /// Its first operation, from when it was due.
    pub first_ns: u64,
    /// From when an operation was due to its end.
    pub jitter: Figures,
    /// From its begin to its end.
    pub latency: Figures,
    /// Moving the playout point.
    pub movement: Figures,
    /// From when an operation was due to its begin.
    pub host_lateness: Figures,
    /// Operations that were put off because the one before had not ended.
    pub forgiven: u64,
    /// The daemon's account, under contract.
    pub contract: Option<Account>,
    /// What was found of its bytes.
    pub checked: Option<CheckedFigures>,
}

/// [`GreedyOutcome`] in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct GreedyFigures {
    /// What it read or wrote.
    pub name: String,
    /// `read` or `write`.
    pub way: &'static str,
    /// What it moved.
    pub bytes: u64,
    /// Of its operations.
    pub latency: Figures,
    /// What was found of a reader's bytes.
    pub checked: Option<CheckedFigures>,
}

/// What was found of bytes.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedFigures {
    /// So many were right.
    pub right_bytes: u64,
    /// So many were not.
    pub wrong_bytes: u64,
    /// The first of these, in words.
    pub faults: Vec<String>,
}

impl CheckedFigures {
    fn of(checker: &Checker) -> Self {
        Self {
            right_bytes: checker.right().get(),
            wrong_bytes: checker.wrong().get(),
            faults: checker.faults().iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Mark;

    fn stream(account: Option<Account>, read: &[u8]) -> StreamOutcome {
        let mut seen = Seen::default();
        (1..=1_000).for_each(|us| seen.jitter.add(Duration::from_micros(us)));
        let mut checker = Checker::new(Mark::new("film", 1));
        checker.check(Bytes::ZERO, read);
        StreamOutcome {
            name: "film".into(),
            writes: false,
            asked: Rate::per_second(1_000_000),
            seen,
            account,
            checked: Some(checker),
            missing: Bytes::ZERO,
            cut: false,
        }
    }

    fn outcome(stream: StreamOutcome) -> Outcome {
        Outcome {
            streams: vec![stream],
            greedy: Vec::new(),
            elapsed: Duration::from_secs(1),
            daemon: None,
        }
    }

    fn account(underruns: u64, late_requests: u64) -> Account {
        Account {
            requests: 100,
            late_requests,
            late_max_ns: 0,
            underruns,
            throttled: 7,
            gap_bytes: 0,
            window_bytes: 0,
            is_shared: true,
        }
    }

    #[test]
    fn what_was_promised_and_not_kept_is_a_problem_and_slow_best_effort_is_none() {
        let mut right = vec![0; 80];
        Mark::new("film", 1).fill(Bytes::ZERO, &mut right);
        for kept in [None, Some(account(0, 0))] {
            assert_eq!(outcome(stream(kept, &right)).problems(), Vec::<String>::new());
        }
        let broken = outcome(stream(Some(account(2, 3)), &right)).problems();
        let told =
            ["reads film: 2 times the window was not ready", "reads film: 3 requests were late"];
        assert_eq!(broken, told);
        let wrong = outcome(stream(None, &[0; 80])).problems();
        assert_eq!(wrong, ["reads film: 80 bytes at offset 0 are zeros"]);
        let short = StreamOutcome { missing: Bytes::new(9), ..stream(None, &right) };
        let cut = StreamOutcome { cut: true, ..short.clone() };
        assert_eq!(outcome(cut).problems(), Vec::<String>::new(), "nothing was promised");
        assert_eq!(
            outcome(short).problems(),
            ["reads film: it ended after 0 bytes; 9 are missing"]
        );
    }

    #[test]
    fn the_plot_ends_behind_the_longest_and_names_what_it_shows() {
        let plot = plot("title", &[("under contract", &outcome(stream(None, &[])))]).svg();
        for words in ["reader, under contract", ">1 us<", ">1 ms<"] {
            assert!(plot.contains(words), "{words}: {plot}");
        }
        assert!(!plot.contains(">10 ms<"), "nothing was longer than 1 ms");
    }
}
