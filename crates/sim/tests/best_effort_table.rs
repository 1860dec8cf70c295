//! Best-effort latency beside streams: the table of the scheduling specification,
//! section 3, for every policy. One Atlas-II without its cache; streams in 1 MB blocks
//! at random places of the outer zone, at such a rate that the bounds of so many make
//! up the row's utilisation (771 to 781 KB/s); bursts of 1 to 15 reads of 8 KB at
//! random places of the whole disk, 8 a second.
//!
//! The claim: no policy under which no stream is late answers best effort sooner than
//! `slack`, in no row, but for `best-effort-first`, which keeps nothing on purpose, and for
//! `slack` itself without bursts, which is a column of its own to show what bursts cost and bring. `SLACKLINE_SECONDS=3000` runs every policy for 50 simulated
//! minutes and eight seeds, with `UPDATE_DOCS=1` into docs/scheduling-results.md;
//! by default a few policies for a few minutes.
#![allow(clippy::print_stdout)] // the table is the result

use disk::{Model, Profile};
use sched::{Options, PolicyKind};
use sim::Random;
use sim::machine::{Arrivals, DiskSetup, LoadPlan, Machine, Pace, Places, Setup, StreamPlan};
use std::fmt::Write;
use std::ops::Range;
use units::{Bytes, Direction, Duration, Lba, Rate};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phases {
    Random,
    Equal,
    /// All join at once and can wait for a period.
    Staggered,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    streams: u64,
    percent: u64,
    phases: Phases,
}

const fn row(streams: u64, percent: u64, phases: Phases) -> Row {
    Row { streams, percent, phases }
}

const ROWS: [Row; 8] = [
    row(5, 54, Phases::Random),
    row(8, 86, Phases::Random),
    row(9, 96, Phases::Random),
    row(8, 86, Phases::Equal),
    row(9, 96, Phases::Equal),
    row(5, 54, Phases::Staggered),
    row(8, 86, Phases::Staggered),
    row(9, 96, Phases::Staggered),
];

/// A column: a policy, and the slack that it waits for once best effort was refused.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    policy: PolicyKind,
    burst: Duration,
}

/// Mean latencies in ms, one a seed, and how many requests of streams were late.
#[derive(Clone, Debug, Default)]
struct Cell {
    means: Vec<f64>,
    late: u64,
}

impl Cell {
    fn mean(&self) -> f64 {
        self.means.iter().sum::<f64>() / self.means.len() as f64
    }

    /// Half of the 99 % interval of the mean difference to `other`, seed by seed.
    fn margin(&self, other: &Self) -> f64 {
        let pairs = self.means.iter().zip(&other.means);
        let differences: Vec<f64> = pairs.map(|(one, two)| one - two).collect();
        let count = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let squares: f64 = differences.iter().map(|it| (it - mean).powi(2)).sum();
        // Student's t for 4 and for 8 seeds.
        let t = if count < 6.0 { 5.84 } else { 3.5 };
        t * (squares / (count - 1.0) / count).sqrt()
    }
}

struct Bench {
    model: Model,
    outer: Range<Lba>,
    cost: Duration,
    seconds: u64,
    seeds: u64,
}

impl Bench {
    fn new(seconds: u64, seeds: u64) -> Self {
        let model = Model::named("quantum-atlas-ii").unwrap();
        // Zone 0: 1,772 cylinders of 10 tracks of 179 sectors.
        let outer = Lba::new(0)..Lba::new(1_772 * 10 * 179);
        let cost = Profile::of(&model).worst(outer.clone(), Bytes::MIB, Direction::Read);
        Self { model, outer, cost, seconds, seeds }
    }

    fn run(&self, row: Row, column: Column, seed: u64) -> Machine {
        let options = Options {
            reserve: Duration::from_millis(40),
            burst: column.burst,
            ..Options::default()
        };
        let disk = DiskSetup::new(self.model.clone(), column.policy, options);
        let mut world = Machine::new(Setup { disks: vec![disk], seed });
        let mut random = Random::new(seed ^ 0x5eed);
        let period = self.cost * row.streams * 100 / row.percent;
        let rate = Rate::of(Bytes::MIB, period);
        for _ in 0..row.streams {
            let plan = StreamPlan {
                disks: vec![0],
                rate,
                block: Bytes::MIB,
                deadline: None,
                cost: None,
                direction: Direction::Read,
                places: Places::Random(self.outer.clone()),
                pace: Pace::Steady,
                phase: match row.phases {
                    Phases::Random => random.span(period),
                    _ => Duration::ZERO,
                },
                patience: match row.phases {
                    Phases::Staggered => Duration::MAX,
                    _ => Duration::ZERO,
                },
            };
            world.join(plan).expect("the rows can be kept");
        }
        let end = Lba::containing(self.model.capacity());
        world.load(LoadPlan {
            disk: 0,
            arrivals: Arrivals::Bursts { apart: Duration::from_secs(1), most: 15 },
            size: Bytes::kib(8),
            direction: Direction::Read,
            places: Places::Random(Lba::new(0)..end),
            synchronous: true,
        });
        world.run_for(Duration::from_secs(self.seconds));
        world
    }

    fn cell(&self, row: Row, column: Column) -> Cell {
        let mut cell = Cell::default();
        for seed in 0..self.seeds {
            let world = self.run(row, column, seed);
            cell.means.push(world.results().synchronous.mean().as_millis_f64());
            cell.late += world.results().late;
            assert_eq!(world.results().overruns, 0, "the bounds hold");
        }
        if column.policy.promise.contracts {
            assert_eq!(cell.late, 0, "{column:?} in {row:?}");
        }
        cell
    }
}

/// The prototype's columns first, then, of all others, those that are asked for.
fn columns(all: bool) -> Vec<Column> {
    let column = |policy| Column { policy, burst: Options::default().burst };
    let mut columns: Vec<Column> =
        [PolicyKind::EDF, policies::LST, PolicyKind::DELTA_L, PolicyKind::EDL].map(column).into();
    columns.push(Column { policy: PolicyKind::SLACK, burst: Duration::ZERO });
    columns.push(column(PolicyKind::SLACK));
    if all {
        let others = policies::ALL.iter().copied().map(column);
        let others: Vec<Column> = others.filter(|it| !columns.contains(it)).collect();
        columns.extend(others);
    } else {
        columns.extend([policies::SATF, policies::SCAN].map(column));
    }
    columns
}

fn name(column: &Column) -> String {
    if column.policy == PolicyKind::SLACK && column.burst.is_zero() {
        return "slack, no bursts".into();
    }
    column.policy.to_string()
}

/// All cells, by row and column; each row on a thread of its own, two at a time.
fn cells(bench: &Bench, columns: &[Column]) -> Vec<Vec<Cell>> {
    let mut table = vec![Vec::new(); ROWS.len()];
    for (rows, results) in ROWS.chunks(2).zip(table.chunks_mut(2)) {
        std::thread::scope(|scope| {
            for (&row, result) in rows.iter().zip(results) {
                scope.spawn(move || {
                    *result = columns.iter().map(|&column| bench.cell(row, column)).collect();
                });
            }
        });
        println!("{rows:?} done");
    }
    table
}

fn print(columns: &[Column], table: &[Vec<Cell>]) -> String {
    let mut text = String::from("| policy |");
    for row in ROWS {
        write!(text, " 0.{}, {} |", row.percent, format!("{:?}", row.phases).to_lowercase())
            .unwrap();
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(ROWS.len()));
    for (at, column) in columns.iter().enumerate() {
        write!(text, "\n| {} |", name(column)).unwrap();
        for row in table {
            let cell = &row[at];
            let mark = if cell.late > 0 { "†" } else { "" };
            write!(text, " {:.0}{mark} |", cell.mean()).unwrap();
        }
    }
    text.push('\n');
    text
}

#[test]
fn slack_answers_best_effort_no_later_than_any_policy_that_keeps_the_contracts() {
    let asked = std::env::var("SLACKLINE_SECONDS").ok().and_then(|text| text.parse().ok());
    let bench = Bench::new(asked.unwrap_or(200), if asked.is_some() { 8 } else { 4 });
    let columns = columns(asked.is_some());
    let table = cells(&bench, &columns);
    let text = print(&columns, &table);
    println!("{text}");
    let ours = columns.iter().position(|it| name(it) == "slack").unwrap();
    let mut worse = Vec::new();
    for (row, cells) in ROWS.iter().zip(&table) {
        let kept = columns.iter().zip(cells).filter(|(_, cell)| cell.late == 0);
        let apart = [PolicyKind::SLACK, policies::BEST_EFFORT_FIRST];
        for (column, cell) in kept.filter(|(column, _)| !apart.contains(&column.policy)) {
            let (mean, margin) = (cells[ours].mean(), cells[ours].margin(cell));
            // Where nothing is under way nearly always, orders differ by microseconds.
            if mean > cell.mean() * 1.001 + margin {
                worse.push(format!(
                    "{row:?}: slack {mean:.1}, {} {:.1}",
                    name(column),
                    cell.mean()
                ));
            }
        }
    }
    assert!(worse.is_empty(), "{worse:#?}");
    // What a short run shows is not for the document.
    if asked.is_some() && std::env::var_os("UPDATE_DOCS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scheduling-results.md");
        let old = std::fs::read_to_string(path).unwrap();
        let (head, rest) = old.split_once("<!-- table -->\n").expect("a place for the table");
        let (_, tail) = rest.split_once("<!-- end -->").expect("an end of the table");
        std::fs::write(path, format!("{head}<!-- table -->\n{text}<!-- end -->{tail}")).unwrap();
    }
}
