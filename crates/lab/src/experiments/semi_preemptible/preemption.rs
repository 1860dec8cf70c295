//! Table 2: what preemption does for urgent requests beside large reads, and what it
//! costs them; and what tables 2 and 4 share.

use super::tables::{self, Row};
use super::{barracuda, both, load, off, served, with_urgent};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use disk::Model;
use report::{Axis, Chart, Mood, Series, Style, Table};
use sched::Manner;
use sim::commands::{Found, Load, mean, ours};
use units::{Direction, Duration};

/// Within so much of print a figure is kept (our issue's bound, in parts of a hundred).
pub(super) const NEAR: f64 = 15.0;

pub(super) const TABLE_2: Experiment = Experiment {
    name: "semi-table-2",
    paper: Paper::SemiPreemptible,
    title: "Urgent reads beside large reads",
    claim: "Reads of one block at random places come at a constant rate between large reads. \
            Served as soon as the command under way has ended, they are answered in \
            15.5 to 19.4 ms whatever the size of the large ones; behind whole requests in 19.2 to \
            29.4 ms (table 2). Each \
            one that goes before costs the large ones a seek back.",
    setup: "The production planner on the model of the ST318437LW; large requests one after \
            another at random places; one urgent request at a random moment of each interval. \
            Whole: commands of 128 kB, none interrupted. In commands: the paper's settings. \
            Ours: the smallest chunk with which this disk streams, a margin of 0.7 ms, heads \
            positioned by a seek of their own, seeks split only where the turn pays for it.",
    real_time: false,
    run: table_2,
};

fn table_2(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let rows = rows(run, &barracuda(), Direction::Read, &tables::TABLE_2);
    for row in &rows {
        let claim = row.claim("reads");
        findings.claim(if row.printed.0 == 50 && row.printed.1 < 1.0 {
            claim.explained(
                At::each(15.8, 15.5),
                "at 0.5 a second few were measured: this printed row stands apart from the five \
                 below it (20.8 to 21.8 ms whole, 16.0 to 18.4 in commands), and ours among them",
            )
        } else {
            claim
        });
    }
    changes(&rows, &mut findings);
    findings.table("Printed / ours, by size and urgent requests a second", table(&rows));
    let [response, throughput] = charts(&rows, "reads");
    findings.chart(response).chart(throughput);
    aim(run, &mut findings);
    findings
}

/// What commands change where the print says that they cost nothing, by urgent requests a
/// second, thorough and quick, in parts of a hundred.
const CHANGES: [(&str, f64, f64); 2] = [("0.5", -5.3, -5.3), ("1", -5.8, -5.9)];

/// What commands change of the throughput of large reads, beside whole requests.
fn changes(rows: &[Beside], findings: &mut Findings) {
    let mut table = Table::new(&[">urgent a second", ">printed, %", ">ours, %"]);
    for row in rows.iter().filter(|row| row.printed.0 == 500) {
        let change = |[_, _, whole, commands]: [f64; 4]| off(whole, commands);
        let (theirs, ours) = (change(row.theirs()), change(row.ours()));
        let rate = row.printed.1;
        table.row(vec![rate.to_string(), format!("{theirs:+.1}"), format!("{ours:+.1}")]);
        if theirs > 0.0 {
            findings.claim(
                Claim::holds(
                    format!("reads of 500 kB, {rate} urgent a second: commands cost no throughput"),
                    format!("{theirs:+.1} %"),
                    format!("{ours:+.1} %"),
                    ours >= 0.0,
                )
                .measured(ours)
                .explained(
                    At::in_list(&CHANGES, &rate.to_string()).spread(0.1),
                    "the model's whole requests are faster by 7 % than the printed ones, those in \
                     commands are as printed; section 3.1.1 says that drives serve long commands \
                     more slowly, for reasons that its authors did not find, and not by how much. \
                     Tried: 2.6 ms between commands of 128 kB meet the printed changes here, \
                     and then requests of 2 MB gain 16 % where figure 12 shows a loss",
                ),
            );
        }
    }
    findings.table("What commands change of the throughput of reads of 500 kB", table);
}

/// Our aim: a sixth of the wait for at most 6 % of the throughput, at 500 kB.
fn aim(run: &Run<'_>, findings: &mut Findings) {
    let model = barracuda();
    let options = [both(&model)[0], ours(&model, Direction::Read)];
    let [whole, commands] =
        options.map(|manner| served(&model, &load(run, Direction::Read, 500, manner)));
    let kept = 100.0 * (1.0 - commands.throughput() / whole.throughput());
    let less = whole.expected(false) / commands.expected(true);
    findings
        .claim(
            Claim::at_least("ours at 500 kB: expected waiting is down by", 6.0, less, "times")
                .or_better()
                .of_ours(),
        )
        .claim(Claim::at_most("and costs of the throughput", 6.0, kept, "%").or_better().of_ours());
    let [whole, commands] = options.map(|manner| {
        let load = with_urgent(run, load(run, Direction::Read, 500, manner), 5.0);
        served(&model, &Load { span: load.span.max(Duration::from_secs(1_000)), ..load })
    });
    let (before, after) = (mean(&whole.waiting), mean(&commands.waiting));
    findings
        .claim(
            Claim::at_least(
                "urgent requests, five a second, wait less by",
                6.0,
                before / after,
                "times",
            )
            .or_better()
            .of_ours(),
        )
        .claim(
            Claim::near(
                "equation 2 expects what they really wait",
                after,
                commands.expected(true),
                0.1,
                "ms",
            )
            .of_ours(),
        );
}

/// A printed row with ours.
pub(super) struct Beside {
    pub printed: Row,
    /// Whole, in commands, and our settings.
    pub found: [Found; 3],
}

/// Serves every row of a table in three options.
pub(super) fn rows(
    run: &Run<'_>,
    model: &Model,
    direction: Direction,
    table: &[Row],
) -> Vec<Beside> {
    let [whole, commands] = both(model);
    let options = [whole, commands, ours(model, direction)];
    let one = |at: usize, &printed: &Row| {
        run.progress(at, table.len());
        let load = |manner: Manner| -> Load {
            with_urgent(run, load(run, direction, printed.0, manner), printed.1)
        };
        Beside { printed, found: options.map(|manner| served(model, &load(manner))) }
    };
    table.iter().enumerate().map(|(at, row)| one(at, row)).collect()
}

impl Beside {
    /// Ours in the order of print: responses, then throughputs.
    pub fn ours(&self) -> [f64; 4] {
        let [whole, commands, _] = &self.found;
        [mean(&whole.response), mean(&commands.response), whole.throughput(), commands.throughput()]
    }

    pub fn theirs(&self) -> [f64; 4] {
        let (_, _, [a, b], [c, d]) = self.printed;
        [a, b, c, d]
    }

    /// By how much each is off, in parts of a hundred.
    pub fn off(&self) -> [f64; 4] {
        let (theirs, ours) = (self.theirs(), self.ours());
        [0, 1, 2, 3].map(|at| off(theirs[at], ours[at]))
    }

    pub fn claim(&self, what: &str) -> Claim {
        let (size, rate, ..) = self.printed;
        let words = |[a, b, c, d]: [f64; 4]| {
            let [a, b, c, d] = [a, b, c, d].map(report::number);
            format!("{a} and {b} ms, {c} and {d} MB/s")
        };
        let worst =
            self.off().into_iter().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        Claim::holds(
            format!(
                "{what} of {size} kB, {rate} urgent a second: response and throughput, whole and \
                 in commands, within {NEAR} %"
            ),
            words(self.theirs()),
            format!("{}; at most {worst:+.0} %", words(self.ours())),
            worst.abs() <= NEAR,
        )
        .measured(worst)
    }
}

pub(super) fn beside(printed: f64, ours: f64) -> (String, Mood) {
    let mood = if off(printed, ours).abs() <= NEAR { Mood::Plain } else { Mood::Careful };
    let digits = if printed < 10.0 { 2 } else { 1 };
    (format!("{printed} / {ours:.digits$}"), mood)
}

pub(super) fn table(rows: &[Beside]) -> Table {
    let mut table = Table::new(&[
        ">kB",
        ">urgent a second",
        ">response, ms: whole",
        ">in commands",
        ">ours",
        ">MB/s: whole",
        ">in commands",
        ">ours",
    ]);
    for row in rows {
        let (theirs, found) = (row.theirs(), row.ours());
        let plain = |words: String| (words, Mood::Plain);
        table.moody(vec![
            plain(row.printed.0.to_string()),
            plain(row.printed.1.to_string()),
            beside(theirs[0], found[0]),
            beside(theirs[1], found[1]),
            plain(format!("{:.1}", mean(&row.found[2].response))),
            beside(theirs[2], found[2]),
            beside(theirs[3], found[3]),
            plain(format!("{:.2}", row.found[2].throughput())),
        ]);
    }
    table
}

/// Response and throughput by the rate of urgent requests.
pub(super) fn charts(rows: &[Beside], what: &str) -> [Chart; 2] {
    let chart = |title: &str, y: &str, which: usize| {
        let x = Axis::logarithmic("urgent requests a second");
        let mut chart = Chart::new(format!("{title} beside {what}"), x, Axis::linear(y));
        let mut named = false;
        for size in [50, 500] {
            for (at, manner) in ["whole", "in commands"].into_iter().enumerate() {
                let of = rows.iter().filter(|row| row.printed.0 == size);
                let at = which + at;
                let ours = of.clone().map(|row| (row.printed.1, row.ours()[at]));
                let theirs = of.map(|row| (row.printed.1, row.theirs()[at]));
                chart = chart
                    .with(Series::new(format!("{size} kB {manner}"), Style::Line, ours))
                    .with(Series::new(if named { "" } else { "printed" }, Style::Printed, theirs));
                named = true;
            }
        }
        chart
    };
    let response = chart("Response of urgent reads", "response, ms", 0);
    [response, chart("Throughput with urgent reads", "throughput, MB/s", 2)]
}
