//! The slides' table: what best effort has beside one and four real-time readers, by the
//! size of their batches, and under the elevators of the 2.6 kernel.

use crate::{At, Claim, Experiment, Findings, Paper, Run};
use disk::Model;
use report::{Axis, Chart, Series, Style, Table};
use sched::{Options, PolicyKind};
use sim::machine::{
    Arrivals, DiskSetup, LoadPlan, Machine, Pace, Places, Results, Setup, StreamPlan,
};
use units::{Bytes, Direction, Duration, Lba, Rate, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "abiss-slides-best-effort",
    paper: Paper::Abiss,
    title: "Best effort by batch size and elevator",
    claim: "Beside readers of 1 MB/s under the ABISS elevator a greedy reader has the more the \
            larger their batches are: from 7.7 to 9.5 MB/s beside one, from 0.3 to 6.6 MB/s \
            beside four. From batches of 40 pages on that is more than under any elevator that \
            knows no priorities; at 10 pages it is less.",
    setup: "The policies of the production scheduler, without admission and without the node \
            (whose blocks are powers of two, and the printed batches are not), on the model of a \
            Hitachi Travelstar with its cache. Files of 105 MB, 1 MB/s each, batches of so many \
            pages of 4 KiB; under the other elevators reads of 64 kB. One greedy reader of a file \
            of 175 MB, 128 kB at a time, with 11 ms in between, chosen to meet one printed \
            figure: 9.5 MB/s beside one reader with 160 pages. All files lie next to each other. \
            Beside it what the slides do not print is tried: files 500 MiB apart, and in the \
            place of the 11 ms a bus of 11.4 MB/s that all share; and our slack.",
    real_time: false,
    run,
};

const RATE: Rate = Rate::per_second(1_000_000);
/// What the printed machine's greedy reader needs for 128 kB beside the disk's time:
/// chosen so that it has the printed 9.5 MB/s beside one reader with large batches.
const THINK: Duration = Duration::from_millis(11);
const PAGE: Bytes = Bytes::kib(4);
/// What a variant is worth.
const TRIED: &str = "of some twenty combinations of bus, think time and distance the one that comes \
                     nearest to the printed column";

/// Name, policy, pages of a batch; printed MB/s beside one reader and beside four.
type Row = (&'static str, PolicyKind, u64, [f64; 2]);
const ROWS: [Row; 10] = [
    ("ABISS, 10 pages", policies::ABISS, 10, [7.7, 0.3]),
    ("ABISS, 20 pages", policies::ABISS, 20, [8.0, 2.5]),
    ("ABISS, 40 pages", policies::ABISS, 40, [8.7, 4.0]),
    ("ABISS, 80 pages", policies::ABISS, 80, [9.4, 5.8]),
    ("ABISS, 160 pages", policies::ABISS, 160, [9.5, 6.6]),
    // One priority for all is upward sweeps.
    ("ABISS, best effort", policies::C_SCAN, 16, [7.7, 1.5]),
    ("anticipatory", policies::ANTICIPATORY, 16, [7.8, 2.7]),
    ("deadline", policies::DEADLINE, 16, [7.9, 1.8]),
    ("CFQ", policies::CFQ, 16, [7.9, 1.8]),
    ("noop", policies::NOOP, 16, [7.9, 2.0]),
];
const BATCHES: usize = 5;

/// Beside four readers, what is off, thorough and quick, in MB/s.
const FAR: [(&str, f64, f64); 8] = [
    ("ABISS, 10 pages", 0.869, 0.902),
    ("noop", 2.44, 2.51),
    ("ABISS, 40 pages", 5.7, 5.73),
    ("ABISS, 80 pages", 7.27, 7.27),
    ("ABISS, 160 pages", 8.11, 8.1),
    ("ABISS, best effort", 2.75, 2.82),
    ("deadline", 2.75, 2.82),
    ("CFQ", 2.27, 2.3),
];
/// Elevators for which longer ways between files are all that is missing.
const APART_MEETS: [&str; 3] = ["noop", "deadline", "CFQ"];

/// Why, by what is printed: beside large batches the disk is not the limit, beside small ones
/// the ways between files are.
fn why_four(batch_pages: u64) -> &'static str {
    match batch_pages {
        40.. => {
            "the printed greedy reader loses to three more readers about what they read, as where \
             all share a bus that is full, and the model's only what the disk needs for them: on a \
             bus of 11.4 MB/s that all share it comes as near as the table says"
        }
        _ => {
            "where the files lie is not printed; next to each other, as here, ways between them \
             are the shortest, and each of four readers costs the greedy one two for each batch: \
             with files 500 MiB apart it comes as near as the table says"
        }
    }
}

/// The sectors of the file with this number; the greedy reader's comes last.
fn file(number: u64, apart: Bytes) -> core::ops::Range<Lba> {
    let first = number * (apart / SECTOR);
    let size = if number == 4 { Bytes::mib(175) } else { Bytes::mib(105) };
    Lba::new(first)..Lba::new(first + size / SECTOR)
}

/// What the slides do not print.
#[derive(Clone, Copy)]
struct Unprinted {
    /// From where one file begins to where the next one does.
    apart: Bytes,
    /// What the host's bus takes for a sector; none for the model's.
    bus: Option<Duration>,
    /// See [`THINK`].
    think: Duration,
}

/// As judged: all files next to each other.
const JUDGED: Unprinted = Unprinted { apart: Bytes::mib(105), bus: None, think: THINK };
/// Files a hundredth of the disk from each other.
const APART: Unprinted = Unprinted { apart: Bytes::mib(500), ..JUDGED };
/// In the place of a reader that is slow, a bus of 11.4 MB/s that all share.
const ON_A_BUS: Unprinted =
    Unprinted { bus: Some(Duration::from_micros(45)), think: Duration::ZERO, ..JUDGED };

fn serve(
    run: &Run<'_>,
    policy: PolicyKind,
    (pages, readers): (u64, u64),
    scene: Unprinted,
) -> Results {
    let model = Model::named("hitachi-travelstar").expect("a model that comes with the program");
    let model = scene.bus.map_or(model.clone(), |sector| model.with_bus(sector));
    let options = Options { admission: false, ..Options::default() };
    let disk = DiskSetup { cache: true, ..DiskSetup::new(model, policy, options) };
    let mut machine = Machine::new(Setup::alike(&disk, 1, 5));
    for number in 0..readers {
        let plan = StreamPlan {
            disks: vec![0],
            rate: RATE,
            block: PAGE * pages,
            deadline: None,
            cost: Some(Duration::from_millis(20)),
            direction: Direction::Read,
            places: Places::Sequential(file(number, scene.apart)),
            pace: Pace::Steady,
            phase: Duration::from_millis(3) * number,
            patience: Duration::ZERO,
        };
        machine.join(plan).expect("nobody is refused");
    }
    machine.load(LoadPlan {
        disk: 0,
        arrivals: match scene.think {
            Duration::ZERO => Arrivals::Greedy(2),
            think => Arrivals::After(think),
        },
        size: Bytes::kib(128),
        direction: Direction::Read,
        places: Places::Sequential(file(4, scene.apart)),
        synchronous: true,
    });
    machine.warm_up(Duration::from_secs(5));
    machine.run_for(Duration::from_secs(run.choose(600, 60)));
    machine.results()
}

struct Found {
    row: Row,
    /// Beside one and four readers: of best effort in MB/s, and the longest that a
    /// request of a reader took, in ms.
    rates: [f64; 2],
    /// Beside four readers, with files apart and on a bus that is full.
    tried: [f64; 2],
    longest: [f64; 2],
}

fn run(run: &Run<'_>) -> Findings {
    let seconds = run.choose(600.0, 60.0);
    let rate = |results: &Results| {
        let bytes = results.synchronous.bytes + results.asynchronous.bytes;
        bytes.get() as f64 / 1e6 / seconds
    };
    let alone = rate(&serve(run, policies::NOOP, (16, 0), JUDGED));
    let mut found = Vec::new();
    for (at, row) in ROWS.into_iter().enumerate() {
        run.progress(at, ROWS.len());
        let results = [1, 4].map(|readers| serve(run, row.1, (row.2, readers), JUDGED));
        let longest = results.each_ref().map(|it| it.real_time.longest().as_millis_f64());
        let tried = [APART, ON_A_BUS].map(|scene| serve(run, row.1, (row.2, 4), scene));
        let (rates, tried) = (results.each_ref().map(rate), tried.each_ref().map(rate));
        found.push(Found { row, rates, tried, longest });
    }
    let mut findings = claims(&found);
    let ours = serve(run, PolicyKind::SLACK, (160, 4), JUDGED);
    findings
        .claim(
            Claim::at_least(
                "beside four readers, slack, 160 pages: best effort, against ABISS's printed",
                ROWS[BATCHES - 1].3[1],
                rate(&ours),
                "MB/s",
            )
            .of_ours(),
        )
        .claim(
            Claim::at_most(
                "beside four readers, slack, 160 pages: requests under contract that are late",
                0.0,
                ours.late as f64,
                "",
            )
            .of_ours(),
        );
    draw(&found, alone, &mut findings);
    findings
}

fn claims(found: &[Found]) -> Findings {
    let mut findings = Findings::default();
    for (at, name) in ["one reader", "four readers"].into_iter().enumerate() {
        let rises = found[..BATCHES].windows(2).all(|pair| pair[1].rates[at] > pair[0].rates[at]);
        findings.claim(Claim::holds(
            format!("beside {name}: best effort rises with the size of batches"),
            format!("{} to {} MB/s", ROWS[0].3[at], ROWS[BATCHES - 1].3[at]),
            format!("{:.1} to {:.1} MB/s", found[0].rates[at], found[BATCHES - 1].rates[at]),
            rises,
        ));
    }
    for Found { row, rates, .. } in found {
        let text = format!("beside one reader, {}: best effort", row.0);
        let claim = Claim::near(text, row.3[0], rates[0], 0.15, "MB/s");
        let is_chosen = row.1 == policies::ABISS && row.2 == 160;
        findings.claim(if is_chosen {
            claim.calibrated("11 ms were chosen to meet it")
        } else {
            claim
        });
    }
    for Found { row, rates, .. } in found {
        let text = format!("beside four readers, {}: best effort", row.0);
        let at = At::in_list(&FAR, row.0);
        findings.claim(
            Claim::near(text, row.3[1], rates[1], 0.15, "MB/s").explained(at, why_four(row.2)),
        );
    }
    for Found { row, tried, .. } in found.iter().filter(|it| it.row.2 >= 80) {
        let text = format!("beside four readers, {}, on a bus of 11.4 MB/s that all share", row.0);
        let near = Claim::near(text, row.3[1], tried[1], 0.15, "MB/s");
        findings.claim(near.calibrated(TRIED).of_ours());
    }
    for Found { row, tried, .. } in found.iter().filter(|it| APART_MEETS.contains(&it.row.0)) {
        let text = format!("beside four readers, {}, files 500 MiB apart", row.0);
        let near = Claim::near(text, row.3[1], tried[0], 0.15, "MB/s");
        findings.claim(near.calibrated(TRIED).of_ours());
    }
    let four = |at: usize| found[at].rates[1];
    let others = || (BATCHES..found.len()).map(four);
    let (least, most) = (others().fold(f64::MAX, f64::min), others().fold(0.0, f64::max));
    let gain = |at: usize| four(BATCHES - 1) / four(at).max(0.01);
    findings
        .claim(
            Claim::at_least(
                "beside four readers: 160 pages give best effort more than 10 pages do, by",
                22.0,
                gain(0),
                "times",
            )
            .explained(
                At::each(9.34, 8.98),
                "at 10 pages the model leaves less than 1 MB/s, too, but more than a third of it; and \
             at 160 pages three more readers cost the printed greedy one what they read, as where \
             all share a processor or a bus that is full, the model's only what the disk needs",
        ))
        .claim(Claim::holds(
            "beside four readers: with 40 pages best effort has more than under any other elevator",
            "4.0 and at most 2.7 MB/s",
            format!("{:.1} and at most {most:.1} MB/s", four(2)),
            four(2) > most,
        ))
        .claim(Claim::holds(
            "beside four readers: with 10 pages it has less than under any other",
            "0.3 and at least 1.5 MB/s",
            format!("{:.1} and at least {least:.1} MB/s", four(0)),
            four(0) < least,
        ));
    let best = (BATCHES..found.len()).max_by(|&a, &b| four(a).total_cmp(&four(b)));
    let best = best.map_or("none", |at| ROWS[at].0);
    findings.claim(Claim::holds(
        "beside four readers: of the elevators without priorities anticipatory gives it most",
        "anticipatory, 2.7 MB/s",
        format!("{best}, {most:.1} MB/s"),
        best == "anticipatory",
    ).measured(four(BATCHES + 1) / most).explained(
        At::each(0.997, 0.985).spread(0.01),
        "anticipatory gains where a reader comes back within 6 ms; the model's greedy one needs \
         11 ms for what it has read, which stands for all that slows the printed one",
    ));
    findings
}

fn draw(found: &[Found], alone: f64, findings: &mut Findings) {
    let mut table = Table::new(&[
        "elevator",
        ">printed, MB/s: one reader",
        ">four",
        ">ours, MB/s: one",
        ">four",
        ">four, files apart",
        ">four, full bus",
        ">ours, part of alone: one",
        ">four",
        ">longest read under contract, ms: one",
        ">four",
    ]);
    for Found { row, rates, tried, longest } in found {
        let mut cells = vec![row.0.to_owned()];
        cells.extend(row.3.map(|rate| rate.to_string()));
        cells.extend(rates.iter().chain(tried).map(|rate| format!("{rate:.2}")));
        cells.extend(rates.map(|rate| format!("{:.2}", rate / alone)));
        cells.extend(longest.map(report::number));
        table.row(cells);
    }
    let names = found.iter().enumerate().map(|(at, it)| {
        let short =
            it.row.0.replace("ABISS, ", "").replace(" pages", "").replace("anticipatory", "ant.");
        (at as f64, short.replace("best effort", "BE").replace("deadline", "dead."))
    });
    let x = Axis::linear("pages of a batch under ABISS; other elevators")
        .from(-0.6)
        .to(found.len() as f64 - 0.4)
        .named(names);
    let mut chart =
        Chart::new("Best effort by batch and elevator", x, Axis::linear("best effort, MB/s"));
    for (at, name) in ["beside one reader", "beside four"].into_iter().enumerate() {
        let points = found.iter().enumerate().map(|(place, it)| (place as f64, it.rates[at]));
        chart = chart.with(Series::new(name, Style::Bars, points));
    }
    for (at, name) in ["printed", ""].into_iter().enumerate() {
        let points = found.iter().enumerate().map(|(place, it)| (place as f64, it.row.3[at]));
        chart = chart.with(Series::new(name, Style::Printed, points));
    }
    findings
        .chart(chart)
        .table("Best effort beside real-time readers", table)
        .note(format!("Alone the greedy reader has {alone:.1} MB/s."));
}
