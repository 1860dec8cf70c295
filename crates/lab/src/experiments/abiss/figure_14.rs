//! Figure 14: jitter beside eight greedy programs, as best effort and under contract.

use super::scene::{BEGIN, Played, Scene, elevator, play};
use crate::experiments::whole::programs::{FROM, PIECE, RATE, Rwrt, Shared, beyond};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use node::{Contract, Mode, Policy};
use report::{Axis, Chart, Series, Style, Table};
use units::{Bytes, Duration, Instant};

const SETUP: &str = "The whole production node on the model of a Hitachi Travelstar of 4,200 \
                     turns a minute with 92 MiB of memory, in simulated time. rwrt as the paper \
                     gives it (10 kB every 10 ms, missed deadlines forgiven; jitter from when an \
                     operation was due to its end; woken up to 1 ms late, a tick of the host). \
                     Best effort: one piece of 128 KiB read ahead, or written behind while there \
                     is memory; greedy programs likewise, two pieces ahead, or 96 behind. The \
                     first operation, which waits for a full window, is not counted. Three runs: \
                     best effort and a contract under the ABISS elevator, as the paper compares \
                     (section 5), with 200 places for requests under contract and playout buffers \
                     of 564 kB for reading and 1 MB for writing (section 5.1); and a contract \
                     under our own policy, in longer blocks.";

pub(super) const READING: Experiment = Experiment {
    name: "abiss-fig-14-reading",
    paper: Paper::Abiss,
    title: "Jitter of a 1 MB/s reader beside eight greedy readers",
    claim: "As best effort most reads are served within a few milliseconds, some take up to 300 \
            ms, and 1 MB/s cannot be had. With ABISS every read is served in less than 5 ms, and \
            the greedy readers are hardly influenced; they themselves wait for a second and more.",
    setup: SETUP,
    real_time: false,
    run: reading,
};

pub(super) const WRITING: Experiment = Experiment {
    name: "abiss-fig-14-writing",
    paper: Paper::Abiss,
    title: "Jitter of a 1 MB/s writer beside eight greedy writers",
    claim: "As best effort the writer of new data and the greedy writers, which overwrite theirs, \
            see delays of up to ten seconds. With ABISS every write of the 1 MB/s writer is \
            served in less than 5 ms, and the others suffer little.",
    setup: SETUP,
    real_time: false,
    run: writing,
};

pub(super) const TIMESHIFTING: Experiment = Experiment {
    name: "abiss-fig-14-timeshifting",
    paper: Paper::Abiss,
    title: "Three writers and a reader of what one of them writes",
    claim: "Beside greedy programs three record at 1 MB/s each and one plays what the first of \
            them records. \
            Without ABISS the writers cannot keep up, and some operations take seconds; with it \
            each of the four has delays below 5 ms.",
    setup: SETUP,
    real_time: false,
    run: timeshifting,
};

/// The worst jitter that the paper and our issue allow under contract, in ms.
const BOUND: f64 = 5.0;
/// The tick of the host, which a program may be woken late by.
const TICK_MS: f64 = 1.0;
/// Why best effort waits less than printed.
const HELD_BACK: &str = "Linux 2.6 held writers back once memory was full of what they had written; \
                         here memory is given out in the order of asking (see the table)";
/// Why best effort under the ABISS elevator waits longer than printed.
const STARVED: &str = "the order within a priority is in another paper of theirs; here it is upward \
                       sweeps that take newcomers ahead of the arm along, so that a greedy reader \
                       stays in front until its file ends. Under our own policy, and nothing else \
                       changed, the same reader waits as the table says";
const IN_FRONT: &str = "greedy readers wait for each other, in upward sweeps in which one stays in \
                        front until its file ends, and what a stream takes puts that end off; under \
                        our own policy none waits longer for it (see the table)";
/// Why greedy writers wait longer beside a contract.
const BROKEN_INTO: &str = "a block of 64 KiB goes fifteen times a second into a sweep of hundreds of \
                           queued writes, there and back; how much the paper's writer gathers \
                           before it writes is not printed";
/// How far the reader of a timeshift is behind.
const BEHIND: Duration = Duration::from_secs(20);

/// How much is moved.
fn length(run: &Run<'_>) -> Bytes {
    PIECE * run.choose(20_000, 3_000)
}

/// The runs of a row, and how the programs of each get at their bytes.
struct Runs {
    /// Under the ABISS elevator, as the paper compares with (section 5), without a contract.
    best_effort: Played,
    /// The same under our policy.
    ours: Played,
    /// Under the ABISS elevator, with a contract.
    abiss: Played,
    /// Under our policy, with a contract.
    slack: Played,
}

/// A measured program: its file, which way, how much, and when it begins.
type Wanted = (&'static str, Mode, Bytes, Instant);

/// Printed: of a reader's playout buffer 564 kB, of a writer's 1 MB (section 5.1): what may be
/// touched at once, and two blocks of 64 KiB.
fn buffer(mode: Mode) -> Contract {
    let burst = if mode == Mode::Read { Bytes::kib(384) } else { Bytes::kib(832) };
    Contract { rate: RATE, block: Bytes::kib(64), burst }
}

/// Plays a scene four times; `block` is that of our own contracts.
fn play_all(run: &Run<'_>, wanted: &[Wanted], block: Bytes, scene: &dyn Fn() -> Scene) -> Runs {
    let with = |at: usize, policy: Policy, program: &dyn Fn(&Wanted) -> Rwrt| {
        run.progress(at, 4);
        play(Scene { measured: wanted.iter().map(program).collect(), ..scene() }, policy)
    };
    let best_effort =
        |&(name, mode, length, begins): &Wanted| Rwrt::best_effort(name, mode, length, begins);
    Runs {
        best_effort: with(0, elevator(), &best_effort),
        ours: with(1, Policy::SLACK, &best_effort),
        abiss: with(2, elevator(), &|&(name, mode, length, begins)| {
            Rwrt::under(name, mode, buffer(mode), length, begins)
        }),
        slack: with(3, Policy::SLACK, &|&(name, mode, length, begins)| {
            Rwrt::under_contract(name, mode, block, length, begins)
        }),
    }
}

fn reading(run: &Run<'_>) -> Findings {
    let length = length(run);
    let wanted = [("film", Mode::Read, length, BEGIN)];
    let runs = play_all(run, &wanted, Bytes::kib(256), &|| Scene {
        greedy: Mode::Read,
        files: vec![("film", length)],
        measured: Vec::new(),
        end: BEGIN + RATE.time_for(length) * 2,
    });
    let mut findings = Findings::default();
    // Section 5.3: "up to a 300 ms"; what is far beyond is not as printed.
    all(&mut findings, "reading", &["the reader"], &runs, &|text, worst| {
        Claim::near(text, 300.0, worst, 0.15, "ms").explained(At::both(44_061.0), STARVED)
    });
    let had = rate(&runs.best_effort.measured[0]);
    findings
        .claim(Claim::at_most(
            "best effort: half of the reader's operations are served within a few ms (five)",
            BOUND,
            median(&runs.best_effort.measured[0]),
            "ms",
        ))
        .claim(Claim::holds(
            "best effort: the reader cannot have 1 MB/s",
            "less than 1 MB/s",
            format!("{had:.3} MB/s"),
            had < 0.995,
        ))
        .claim(Claim::at_least(
            "best effort: the longest that a greedy reader waits",
            1_000.0,
            longest_of_greedy(&runs.best_effort),
            "ms",
        ));
    findings.claims.extend(undisturbed(&runs, At::thorough_only(167.0), IN_FRONT));
    finish(findings, &runs)
}

fn writing(run: &Run<'_>) -> Findings {
    let length = length(run);
    let wanted = [("new", Mode::Write, length, BEGIN)];
    let runs = play_all(run, &wanted, Bytes::kib(256), &|| Scene {
        greedy: Mode::Write,
        files: vec![("new", Bytes::ZERO)],
        measured: Vec::new(),
        end: BEGIN + RATE.time_for(length) * 2,
    });
    let mut findings = Findings::default();
    // Section 5.3: up to ten seconds, of both.
    all(&mut findings, "writing", &["the writer"], &runs, &|text, worst| {
        Claim::near(text, 10_000.0, worst, 0.15, "ms")
            .explained(At::each(4_231.0, 4_229.0), HELD_BACK)
    });
    findings.claim(
        Claim::near(
            "best effort: the longest that a greedy writer waits",
            10_000.0,
            longest_of_greedy(&runs.best_effort),
            0.15,
            "ms",
        )
        .explained(At::each(4_241.0, 4_233.0), HELD_BACK),
    );
    findings.claims.extend(undisturbed(&runs, At::each(129.0, 126.0), BROKEN_INTO));
    finish(findings, &runs)
}

fn timeshifting(run: &Run<'_>) -> Findings {
    let length = length(run);
    let writers = ["one", "two", "three"];
    // All contracts are asked for at the begin: later memory is full of what greedy
    // writers have written.
    let mut wanted: Vec<Wanted> =
        writers.iter().map(|&name| (name, Mode::Write, length, BEGIN)).collect();
    wanted.push(("one", Mode::Read, length - PIECE * 2_000, BEGIN + BEHIND));
    let runs = play_all(run, &wanted, Bytes::kib(512), &|| Scene {
        greedy: Mode::Write,
        files: writers.iter().map(|&name| (name, Bytes::ZERO)).collect(),
        measured: Vec::new(),
        end: BEGIN + BEHIND + RATE.time_for(length) * 2,
    });
    let mut findings = Findings::default();
    let names = ["writer one", "writer two", "writer three", "the reader of one"];
    // Section 5.3: some are only served "after seconds"; how many is not printed.
    all(&mut findings, "timeshifting", &names, &runs, &|text, worst| {
        Claim::at_least(text, 1_000.0, worst, "ms")
    });
    let fastest = runs.best_effort.measured[..3].iter().map(rate).fold(0.0, f64::max);
    findings.claim(Claim::holds(
        "best effort: the writers cannot keep up",
        "less than 1 MB/s",
        format!("at most {fastest:.3} MB/s"),
        fastest < 0.995,
    ));
    finish(findings, &runs)
}

/// What all three have: the claims of jitter, the plots, and a table.
fn all(
    findings: &mut Findings,
    what: &str,
    names: &[&str],
    runs: &Runs,
    expected: &dyn Fn(&'static str, f64) -> Claim,
) {
    for (policy, played) in [("ABISS", &runs.abiss), ("slack", &runs.slack)] {
        let of = |claim: Claim| if policy == "ABISS" { claim } else { claim.of_ours() };
        for (name, seen) in names.iter().zip(&played.measured) {
            findings.claim(of(complete(&format!("{policy}: {name} is served to its end"), seen)));
            let text = format!("{policy}: worst jitter of {name}");
            let jitter = Claim::at_most(text, BOUND, most(seen), "ms");
            let jitter = jitter.calibrated("nearly all of it is the host's tick, which is put in");
            findings.claim(of(jitter));
            let text = format!("{policy}: the longest that {name} waits for storage");
            let in_storage = seen.borrow().wait_max.as_millis_f64();
            findings.claim(of(Claim::at_most(text, BOUND - TICK_MS, in_storage, "ms").or_better()));
        }
    }
    let worst = runs.best_effort.measured.iter().map(most).fold(0.0, f64::max);
    findings.claim(expected("best effort: worst jitter of any of them", worst));
    for (title, played) in titled(runs) {
        let x = Axis::logarithmic("jitter, ms").from(FROM);
        let y = Axis::logarithmic("operations that took longer, %").from(0.01).to(100.0);
        let mut chart = Chart::new(format!("Jitter, {what}, {title}"), x, y);
        for (name, seen) in names.iter().zip(&played.measured) {
            let times = seen.borrow().times.clone();
            chart = chart.with(Series::new(*name, Style::Steps, beyond(times)));
        }
        let greedy = played.greedy.iter().flat_map(|seen| seen.borrow().times.clone()).collect();
        findings.chart(chart.with(Series::new("greedy programs", Style::Steps, beyond(greedy))));
    }
    let mut table = Table::new(&[
        "",
        "",
        ">operations",
        ">jitter, ms: mean",
        ">99 %",
        ">99.9 %",
        ">longest",
        ">longest in storage",
        ">MB/s",
    ]);
    for (title, played) in titled(runs) {
        for (name, seen) in names.iter().zip(&played.measured) {
            table.row(row(title, name, seen, rate(seen)));
        }
        let all = Shared::default();
        for seen in &played.greedy {
            let seen = seen.borrow();
            all.borrow_mut().times.extend(&seen.times);
            let longest = all.borrow().wait_max.max(seen.wait_max);
            all.borrow_mut().wait_max = longest;
        }
        table.row(row(title, "greedy programs", &all, greedy_rate(played)));
    }
    findings.table("What each program saw", table);
}

fn titled(runs: &Runs) -> [(&'static str, &Played); 4] {
    [
        ("ABISS, best effort", &runs.best_effort),
        ("slack, best effort", &runs.ours),
        ("ABISS, contract", &runs.abiss),
        ("slack, contract", &runs.slack),
    ]
}

fn finish(mut findings: Findings, runs: &Runs) -> Findings {
    let Played { underruns, late, .. } = runs.slack;
    findings
        .claim(Claim::at_most(
            "ABISS: reads and writes within the contract that are not served from memory",
            0.0,
            runs.abiss.underruns as f64,
            "",
        ))
        .claim(
            Claim::holds(
                "slack: no window was not ready, no request late",
                "none",
                format!("{underruns} windows, {late} requests"),
                underruns == 0 && late == 0,
            )
            .of_ours(),
        );
    findings.note(
        "What the greedy programs have in sum is in the table; the paper prints their delays \
         alone. Beside a contract under slack greedy writers lose more of it than the contract \
         takes: as best effort hundreds of their requests go in one sweep, which each request \
         under contract breaks into.",
    );
    findings.note(
        "Contracts are asked for before the greedy programs begin: greedy writers fill all memory \
         with what they have written, and then a window is refused until some of it is free.",
    );
    findings.note(
        "Of the jitter under contract all but what the table calls longest in storage is the \
         host's tick, which is drawn; the paper's 5 ms hold its processor and its system calls, \
         too, which cost nothing here.",
    );
    findings
}

/// The longest that a greedy program waits, in ms.
fn longest_of_greedy(played: &Played) -> f64 {
    played.greedy.iter().map(most).fold(0.0, f64::max)
}

/// Greedy programs are hardly influenced: the longest that one of them waits.
fn undisturbed(runs: &Runs, at: At, why: &str) -> [Claim; 2] {
    let part = |played| 100.0 * longest_of_greedy(played) / longest_of_greedy(&runs.best_effort);
    let claim = |name, played| {
        let text = "the longest wait of a greedy program, of that beside best effort";
        Claim::at_most(format!("{name}: {text}"), 125.0, part(played), "%")
    };
    [claim("ABISS", &runs.abiss).explained(at, why), claim("slack", &runs.slack).of_ours()]
}

fn complete(text: &str, seen: &Shared) -> Claim {
    let seen = seen.borrow();
    let ours = match (&seen.error, seen.ended) {
        (Some(error), _) => error.to_string(),
        (None, Some(_)) => format!("{} operations", seen.times.len()),
        (None, None) => "broke off".into(),
    };
    Claim::holds(text, "every operation", ours, seen.error.is_none() && seen.ended.is_some())
}

fn row(title: &str, name: &str, seen: &Shared, rate: f64) -> Vec<String> {
    let seen = seen.borrow();
    let mut times = seen.times.clone();
    times.sort_unstable();
    let at = |part: f64| {
        let rank = (times.len() as f64 * part) as usize;
        times.get(rank.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
    };
    let mean = times.iter().copied().sum::<Duration>() / times.len().max(1) as u64;
    let figures = [mean, at(0.99), at(0.999), at(1.0), seen.wait_max];
    let mut row = vec![title.to_owned(), name.to_owned(), times.len().to_string()];
    row.extend(figures.map(|time| report::number(time.as_millis_f64())));
    row.push(format!("{rate:.3}"));
    row
}

/// The worst jitter of a program, in ms; none that it had is worse than any.
fn most(seen: &Shared) -> f64 {
    seen.borrow().times.iter().max().map_or(f64::NAN, |time| time.as_millis_f64())
}

/// Of a program's jitter, in ms.
fn median(seen: &Shared) -> f64 {
    let mut times = seen.borrow().times.clone();
    times.sort_unstable();
    times.get(times.len() / 2).map_or(f64::NAN, |time| time.as_millis_f64())
}

/// Millions of bytes a second from its first operation to its last.
pub(super) fn rate(seen: &Shared) -> f64 {
    let seen = seen.borrow();
    let (Some(began), Some(last)) = (seen.began, seen.last) else { return 0.0 };
    let total = last - began;
    if total.is_zero() {
        return 0.0;
    }
    seen.bytes.get() as f64 / 1e6 / total.as_secs_f64()
}

fn greedy_rate(played: &Played) -> f64 {
    let bytes: Bytes = played.greedy.iter().map(|seen| seen.borrow().bytes).sum();
    bytes.get() as f64 / 1e6 / played.time.as_secs_f64()
}
