//! Figures 9 to 12: expected waiting and throughput by size, as requests come and in
//! elevator order.

use super::{SIZES, barracuda, both, load, served};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table};
use sched::Manner;
use sim::commands::{Load, Places, as_printed, ours};
use units::{Bytes, Direction};

/// The elevator of the paper takes so many requests at a time.
pub(super) const BATCH: usize = 40;

const SETUP: &str = "The production planner on the model of the ST318437LW, nothing urgent; \
                     equation 1 over whole requests and equation 2 over commands and the time \
                     that the disk stood still for a just-in-time seek. The printed plots have \
                     no numbers but those that table 3 repeats.";

pub(super) const FCFS: Experiment = Experiment {
    name: "semi-fig-9",
    paper: Paper::SemiPreemptible,
    title: "Expected waiting and throughput, first come first served (figures 9 and 11)",
    claim: "At random places the expected waiting grows linearly with the size of whole requests, \
            and falls with it in commands, since transfers are the part that can be interrupted \
            best. It costs less than 15 % of the throughput, and less the larger the requests.",
    setup: SETUP,
    real_time: false,
    run: |run| by_size(run, &Places::Random),
};

pub(super) const ELEVATOR: Experiment = Experiment {
    name: "semi-fig-10",
    paper: Paper::SemiPreemptible,
    title: "Expected waiting and throughput in elevator order (figures 10 and 12)",
    claim: "In elevator order, in batches of 40, expected waiting is better still, since seeks, \
            which can be interrupted least, are short.",
    setup: SETUP,
    real_time: false,
    run: |run| by_size(run, &Places::Batches(BATCH)),
};

/// What came of one size.
struct Size {
    kilobytes: f64,
    /// Expected waiting in ms and throughput in MB/s: whole, in commands, ours.
    waits: [f64; 3],
    rates: [f64; 3],
    /// Read for free in waits, in MB/s.
    free: f64,
}

fn measure(run: &Run<'_>, places: &Places) -> Vec<Size> {
    let model = barracuda();
    let [whole, commands] = both(&model);
    let options = [whole, commands, ours(&model, Direction::Read)];
    let ahead = Manner { ahead: Bytes::mib(1), ..as_printed(&model) };
    let with = |kilobytes: u64, manner: Manner| {
        let load = load(run, Direction::Read, kilobytes, manner);
        served(&model, &Load { places: places.clone(), ..load })
    };
    let one = |at: usize, kilobytes: u64| {
        run.progress(at, SIZES.len());
        let found = options.map(|manner| with(kilobytes, manner));
        let waits = [0, 1, 2].map(|at| found[at].expected(options[at].preemptible));
        let rates = found.each_ref().map(|found| found.throughput());
        Size { kilobytes: kilobytes as f64, waits, rates, free: with(kilobytes, ahead).free() }
    };
    SIZES.into_iter().enumerate().map(|(at, size)| one(at, size)).collect()
}

fn by_size(run: &Run<'_>, places: &Places) -> Findings {
    let sizes = measure(run, places);
    let mut findings = Findings::default();
    let loss = |size: &Size| 100.0 * (1.0 - size.rates[1] / size.rates[0]);
    let falls = |at: usize| sizes.windows(2).all(|pair| pair[1].waits[at] < pair[0].waits[at]);
    let most = sizes.iter().map(loss).fold(0.0, f64::max);
    if *places == Places::Random {
        findings.claim(Claim::holds(
            "whole requests: expected waiting grows linearly with size",
            "linear",
            format!("R² {:.4}", linear(&sizes)),
            linear(&sizes) > 0.99,
        ));
        printed(&sizes, &mut findings);
    } else {
        let before = measure(run, &Places::Random);
        let better = sizes.iter().zip(&before).all(|(now, then)| now.waits[1] < then.waits[1]);
        let parts = sizes.iter().zip(&before).map(|(now, then)| now.waits[1] / then.waits[1]);
        let best = parts.fold(1.0, f64::min);
        findings.claim(Claim::holds(
            "in commands, expected waiting is below that of first come first served at every size",
            "below",
            format!("down to {best:.2} of it"),
            better,
        ));
    }
    findings
        .claim(Claim::holds(
            "in commands: it falls with size",
            "falls",
            format!("{:.2} ms at 50 kB, {:.2} ms at 2 MB", sizes[0].waits[1], sizes[5].waits[1]),
            falls(1),
        ))
        .claim(
            Claim::at_most("in commands: throughput lost, at the most", 15.0, most, "%")
                .or_better(),
        )
        .claim(
            Claim::holds(
                "the largest requests lose less than the smallest",
                "less",
                format!("{:.1} % at 50 kB, {:.1} % at 2 MB", loss(&sizes[0]), loss(&sizes[5])),
                loss(&sizes[5]) < loss(&sizes[0]),
            )
            .measured(loss(&sizes[5]) / loss(&sizes[0]))
            .explained(
                At::each(1.35, 1.58),
                "in elevator order hardly a seek is long enough to be split, and what is left is \
             lost by chunks of 50 blocks, which the model streams a little slower than 128 kB \
             (0.4 ms for each command): an equal part of each byte. Ours, of 64 blocks, loses \
             less than half of it at 2 MB (see the table)",
            ),
        );
    draw(&sizes, places, &mut findings);
    findings
}

/// Points of figure 9 that table 3 repeats.
fn printed(sizes: &[Size], findings: &mut Findings) {
    for (size, [[whole, commands, ..], _]) in super::tables::TABLE_3 {
        let ours = sizes.iter().find(|it| it.kilobytes == size as f64).expect("a size");
        let less = ours.waits[0] / ours.waits[1];
        findings.claim(Claim::near(
            format!("{size} kB: expected waiting in commands is less by"),
            whole / commands,
            less,
            0.15,
            "times",
        ));
    }
}

/// The part of whole requests' waiting that a line by size explains.
fn linear(sizes: &[Size]) -> f64 {
    let n = sizes.len() as f64;
    let mean = |of: &dyn Fn(&Size) -> f64| sizes.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(&|size| size.kilobytes), mean(&|size| size.waits[0]));
    let both = mean(&|size| (size.kilobytes - x) * (size.waits[0] - y));
    let squares =
        mean(&|size| (size.kilobytes - x).powi(2)) * mean(&|size| (size.waits[0] - y).powi(2));
    both * both / squares
}

const NAMES: [&str; 3] = ["whole", "in commands", "ours"];

fn draw(sizes: &[Size], places: &Places, findings: &mut Findings) {
    let order = if *places == Places::Random { "first come first served" } else { "elevator" };
    let x = || Axis::logarithmic("size, kB").named(SIZES.map(|kb| (kb as f64, kb.to_string())));
    let line = |at: usize, of: fn(&Size) -> [f64; 3]| {
        let points = sizes.iter().map(move |size| (size.kilobytes, of(size)[at]));
        Series::new(NAMES[at], Style::Line, points)
    };
    let mut waiting =
        Chart::new(format!("Expected waiting, {order}"), x(), Axis::linear("expected waiting, ms"));
    let mut throughput =
        Chart::new(format!("Throughput, {order}"), x(), Axis::linear("throughput, MB/s"));
    for at in 0..3 {
        waiting = waiting.with(line(at, |size| size.waits));
        throughput = throughput.with(line(at, |size| size.rates));
    }
    if *places == Places::Random {
        for (at, name) in [(0, "printed (table 3)"), (1, "")] {
            let points = super::tables::TABLE_3.map(|(size, [reads, _])| (size as f64, reads[at]));
            waiting = waiting.with(Series::new(name, Style::Printed, points));
        }
    }
    let free = sizes.iter().map(|size| (size.kilobytes, size.free));
    throughput = throughput.with(Series::new("free prefetching", Style::Line, free));
    let mut table = Table::new(&[
        ">kB",
        ">expected wait, ms: whole",
        ">in commands",
        ">ours",
        ">MB/s: whole",
        ">in commands",
        ">ours",
        ">free",
    ]);
    for size in sizes {
        let figures = [size.waits, size.rates].concat();
        let mut row = vec![size.kilobytes.to_string()];
        row.extend(figures.iter().chain([&size.free]).map(|&figure| format!("{figure:.2}")));
        table.row(row);
    }
    findings.chart(waiting).chart(throughput).table("By size", table);
}
