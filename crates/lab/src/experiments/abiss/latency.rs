//! The slides' six plots: how long four readers wait for what they read, beside a program
//! that copies a file.

use super::copier::Copier;
use super::scene::{BEGIN, world};
use crate::experiments::whole::programs::{RATE, Rwrt, Shared};
use crate::{Claim, Experiment, Findings, Paper, Run};
use node::{Contract, Mode, Policy};
use report::{Axis, Chart, Series, Style, Table, number};
use std::collections::BTreeMap;
use units::{Bytes, Duration, Instant};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "abiss-slides-latency",
    paper: Paper::Abiss,
    title: "How long reads take beside a program that copies",
    claim: "Four readers of 1 MB/s with playout buffers of 564 kB, beside a copy of a file of 175 \
            MB. ABISS has the data there when the program needs it and guarantees the rate \
            without a large buffer in the program; its latencies compare favourably with those \
            under five elevators without contracts. The plots have no numbers in the text of the \
            slides.",
    setup: "The whole production node on the model of a Hitachi Travelstar with 92 MiB of memory, \
            in simulated time. Readers of 64 KiB at a time of files of 105 MB; the copy reads 128 \
            KiB at a time, two ahead, and what it has read is written behind it to another file, \
            up to 12 MiB. ABISS: the elevator of that name, contracts of 1 MB/s in blocks of 64 \
            KiB (the slides' batches are of 80). Ours beside it: slack, in blocks of 256 KiB. The others: one piece of 128 KiB read ahead, no \
            contract. A wait is from the ask to the answer; the first read is left out.",
    real_time: false,
    run,
};

const READERS: usize = 4;
/// What a reader asks for at a time, and what is fetched at a time.
const READ: Bytes = Bytes::kib(64);
const BLOCK: Bytes = Bytes::kib(64);
/// Printed: of the playout buffer, in kB.
const BUFFER: f64 = 564.0;
/// What a reader may take out of its buffer at once: with two more blocks as much as is
/// printed.
const BURST: Bytes = Bytes::kib(384);
const FILE: Bytes = Bytes::mib(105);
const COPIED: Bytes = Bytes::mib(175);
/// Readers begin so long after each other, and the copy after them all.
const APART: Duration = Duration::from_millis(300);
const COPY_BEGINS: Instant = Instant::from_nanos(2_000_000_000);

/// In the order of the slides: the title of a plot, the elevator, and what the slides' table
/// says that best effort has beside four readers, in MB/s.
const PLOTS: [(&str, Policy, f64); 6] = [
    (ABISS, policies::ABISS, 2.5),
    ("ABISS, best effort", policies::ABISS, 1.5),
    ("anticipatory", policies::ANTICIPATORY, 2.7),
    ("deadline", policies::DEADLINE, 1.8),
    ("CFQ", policies::CFQ, 1.8),
    ("noop", policies::NOOP, 2.0),
];
const ABISS: &str = "ABISS, real time";
/// Ours beside them, in blocks that its admission takes.
const OURS: (&str, Policy, f64) = ("slack, real time", Policy::SLACK, f64::NAN);
const OUR_BLOCK: Bytes = Bytes::kib(256);

/// What came of one elevator.
struct Found {
    name: &'static str,
    printed: f64,
    readers: Vec<Shared>,
    copier: Shared,
    underruns: u64,
    /// Of a reader, where it has one.
    window: Option<Bytes>,
    time: Duration,
}

impl Found {
    fn durations(&self) -> Vec<Duration> {
        let of = |seen: &Shared| seen.borrow().waits.clone();
        self.readers.iter().flat_map(of).map(|(_, wait)| wait).collect()
    }

    /// All waits, in ms, the shortest first.
    fn waits(&self) -> Vec<f64> {
        let mut all = self.durations();
        all.sort_unstable();
        all.iter().map(|wait| wait.as_millis_f64()).collect()
    }

    fn longest(&self) -> f64 {
        self.waits().last().copied().unwrap_or(f64::NAN)
    }

    /// Of the reader that has least, in MB/s.
    fn least_rate(&self) -> f64 {
        self.readers.iter().map(super::figure_14::rate).fold(f64::MAX, f64::min)
    }

    /// What the copy reads, in MB/s.
    fn copied(&self) -> f64 {
        self.copier.borrow().bytes.get() as f64 / 1e6 / self.time.as_secs_f64()
    }

    fn lost(&self) -> Bytes {
        self.readers.iter().map(|seen| seen.borrow().lost).sum()
    }

    fn is_sound(&self) -> bool {
        self.readers.iter().chain([&self.copier]).all(|seen| seen.borrow().error.is_none())
    }
}

fn play((name, policy, printed): (&'static str, Policy, f64), span: Duration) -> Found {
    let films: Vec<String> = (0..READERS).map(|number| format!("film-{number}")).collect();
    let mut files = BTreeMap::new();
    files.extend(films.iter().map(|film| (film.clone(), (FILE, true))));
    files.insert("from".to_owned(), (COPIED, true));
    files.insert("to".to_owned(), (COPIED, true));
    let mut world = world(&files, policy);
    let mut readers = Vec::new();
    for (number, film) in films.iter().enumerate() {
        let begins = BEGIN + APART * number as u64;
        let reader = if name == ABISS {
            let contract = Contract { rate: RATE, block: BLOCK, burst: BURST };
            Rwrt::under(film, Mode::Read, contract, FILE, begins)
        } else if name == OURS.0 {
            Rwrt::under_contract(film, Mode::Read, OUR_BLOCK, FILE, begins)
        } else {
            Rwrt::best_effort(film, Mode::Read, FILE, begins)
        };
        let reader = reader.in_pieces(READ);
        readers.push(reader.seen());
        world.add(reader);
    }
    let copier = Copier::new(["from", "to"], COPIED, COPY_BEGINS);
    let seen = copier.seen();
    world.add(copier);
    let mut window = None;
    while world.now() < COPY_BEGINS + span {
        world.run_for(Duration::from_secs(1));
        let status = world.node.status(world.now());
        window = window.or(status.streams.first().map(|it| it.window));
    }
    let time = world.now() - COPY_BEGINS;
    let underruns = readers.iter().map(|seen: &Shared| seen.borrow().underruns).sum();
    Found { name, printed, readers, copier: seen, underruns, window, time }
}

fn run(run: &Run<'_>) -> Findings {
    let span = Duration::from_secs(run.choose(100, 40));
    let mut found = Vec::new();
    for (at, plot) in PLOTS.into_iter().enumerate() {
        run.progress(at, PLOTS.len() + 1);
        found.push(play(plot, span));
    }
    let mut findings = Findings::default();
    claims(&mut findings, &found);
    let ours = play(OURS, span);
    findings.claims.extend(of_ours(&ours));
    found.push(ours);
    for one in &found {
        findings.chart(plot(one));
    }
    findings.chart(together(&found)).table("What four readers and the copy saw", table(&found));
    findings.note(
        "What the copy has beside four readers under ABISS and under each elevator is printed for \
         the same load in another table, whose experiment is abiss-slides-best-effort.",
    );
    findings
}

fn claims(findings: &mut Findings, found: &[Found]) {
    let (abiss, others) = found.split_first().expect("six plots");
    findings.claim(
        Claim::holds(
            "every reader and the copy are served without an error",
            "all",
            format!("{} of {} plots", found.iter().filter(|it| it.is_sound()).count(), found.len()),
            found.iter().all(Found::is_sound),
        )
        .of_ours(),
    );
    let window = abiss.window.map_or(f64::NAN, |window| window.get() as f64 / 1e3);
    findings.claim(Claim::at_most("the buffer of a reader under ABISS", BUFFER, window, "kB"));
    findings.claims.extend(guaranteed("ABISS", abiss));
    for other in others {
        findings.claim(Claim::holds(
            format!("the longest read takes less than under {}", other.name),
            "less",
            format!("{} and {} ms", number(abiss.longest()), number(other.longest())),
            abiss.longest() < other.longest(),
        ));
    }
}

/// The rate, and the data where the program needs it.
fn guaranteed(name: &str, found: &Found) -> [Claim; 2] {
    let (text, least) = ("guarantees the rate: the reader that has least", found.least_rate());
    let rate = Claim::at_least(format!("{name} {text}"), 0.995, least, "MB/s");
    let there = Claim::holds(
        format!("{name} has the data there when the program needs it"),
        "no read waits for the disk, none is left out",
        format!(
            "the longest of {} waits is {} ms; the window was not ready {} times; {} left out",
            found.waits().len(),
            number(found.longest()),
            found.underruns,
            found.lost()
        ),
        found.longest() == 0.0 && found.underruns == 0 && found.lost().is_zero(),
    );
    [rate, there]
}

fn of_ours(found: &Found) -> [Claim; 3] {
    let window = found.window.map_or(f64::NAN, |window| window.get() as f64 / 1e3);
    // Three blocks; the paper's buffer is smaller, and promises less.
    let most = (OUR_BLOCK * 3).get() as f64 / 1e3;
    let buffer = Claim::at_most("slack: the buffer of a reader", most, window, "kB");
    let [rate, there] = guaranteed("slack", found);
    [buffer.of_ours(), rate.of_ours(), there.of_ours()]
}

/// One of them: the longest read of each second, reader by reader.
fn plot(found: &Found) -> Chart {
    let mut chart = Chart::new(
        format!("Longest read of each second: {}", found.name),
        Axis::linear("time, s"),
        Axis::linear("from the ask to the answer, ms").from(0.0),
    );
    for (number, seen) in found.readers.iter().enumerate() {
        let mut longest: BTreeMap<u64, Duration> = BTreeMap::new();
        for &(at, wait) in &seen.borrow().waits {
            let most = longest.entry((at - Instant::EPOCH).as_nanos() / 1_000_000_000).or_default();
            *most = wait.max(*most);
        }
        let points = longest.iter().map(|(&at, wait)| (at as f64, wait.as_millis_f64()));
        chart = chart.with(Series::new(format!("reader {number}"), Style::Dots, points));
    }
    chart
}

fn together(found: &[Found]) -> Chart {
    let x = Axis::logarithmic("from the ask to the answer, ms").from(0.1);
    let y = Axis::logarithmic("reads that took longer, %").from(0.01).to(100.0);
    let mut chart = Chart::new("Reads of four readers beside a copy", x, y);
    for one in found {
        let points = crate::experiments::whole::programs::beyond(one.durations());
        chart = chart.with(Series::new(one.name, Style::Steps, points));
    }
    chart
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new(&[
        "elevator",
        ">reads",
        ">wait, ms: mean",
        ">99 %",
        ">longest",
        ">least reader, MB/s",
        ">copy reads, MB/s",
        ">printed, MB/s",
    ]);
    for one in found {
        let waits = one.waits();
        let at = |part: f64| {
            let rank = (waits.len() as f64 * part) as usize;
            waits.get(rank.min(waits.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
        };
        let mean = waits.iter().sum::<f64>() / waits.len().max(1) as f64;
        let mut row = vec![one.name.to_owned(), waits.len().to_string()];
        row.extend([mean, at(0.99), one.longest()].map(number));
        row.extend([one.least_rate(), one.copied()].map(|rate| format!("{rate:.3}")));
        row.push(if one.printed.is_nan() { "-".into() } else { one.printed.to_string() });
        table.row(row);
    }
    table
}
