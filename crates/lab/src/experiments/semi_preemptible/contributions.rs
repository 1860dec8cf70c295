//! Figures 16 and 17: what each technique gives and takes, in elevator order.

use super::{SIZES, barracuda, load, served};
use crate::{Claim, Experiment, Findings, Paper, Run};
use disk::Model;
use report::{Axis, Chart, Series, Style, Table};
use sched::Manner;
use sim::commands::{CHUNK, Load, Places, as_printed, most, not_preemptible, ours};
use units::{Bytes, Direction};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "semi-fig-16",
    paper: Paper::SemiPreemptible,
    title: "What each technique contributes (figures 16 and 17)",
    claim: "Chunks are what helps most where transfers are long, just-in-time seeks and split \
            seeks where they are short. Split seeks cost throughput; reading on in waits gives \
            some, less with larger requests, since there are fewer waits.",
    setup: "As figure 10, in batches of 40: one technique after the other added, as in the paper; \
            then our settings.",
    real_time: false,
    run,
};

const NAMES: [&str; 4] =
    ["whole", "chunks", "chunks, just in time", "chunks, just in time, split seeks"];

fn options(model: &Model) -> [Manner; 4] {
    let printed = as_printed(model);
    let just_in_time = Manner { sub_seek: None, ..printed };
    [not_preemptible(), Manner::chunks(CHUNK), just_in_time, printed]
}

/// Expected waiting in ms, throughput in MB/s, by manner; then what is read on.
struct Size {
    kilobytes: u64,
    waits: Vec<f64>,
    rates: Vec<f64>,
    longest: Vec<f64>,
    free: f64,
}

fn run(run: &Run<'_>) -> Findings {
    let model = barracuda();
    let with = |kilobytes: u64, manner: Manner| {
        let load = load(run, Direction::Read, kilobytes, manner);
        served(&model, &Load { places: Places::Batches(super::waiting::BATCH), ..load })
    };
    let all: Vec<Manner> = [&options(&model)[..], &[ours(&model, Direction::Read)]].concat();
    let ahead = Manner { ahead: Bytes::mib(1), ..as_printed(&model) };
    let mut sizes = Vec::new();
    for (at, kilobytes) in SIZES.into_iter().enumerate() {
        run.progress(at, SIZES.len());
        let found: Vec<_> = all.iter().map(|&manner| with(kilobytes, manner)).collect();
        let pairs = || found.iter().zip(&all);
        let times = |(found, manner): (&sim::commands::Found, &Manner)| {
            most(if manner.preemptible { &found.commands } else { &found.whole })
        };
        sizes.push(Size {
            kilobytes,
            waits: pairs().map(|(found, manner)| found.expected(manner.preemptible)).collect(),
            rates: found.iter().map(|found| found.throughput()).collect(),
            longest: pairs().map(times).collect(),
            free: with(kilobytes, ahead).free(),
        });
    }
    let mut findings = claims(&sizes);
    draw(&sizes, &mut findings);
    findings
}

fn claims(sizes: &[Size]) -> Findings {
    let mut findings = Findings::default();
    // The part of all that is gained that a technique gains.
    let part = |size: &Size, at: usize| {
        (size.waits[at - 1] - size.waits[at]) / (size.waits[0] - size.waits[3])
    };
    let (small, large) = (&sizes[0], &sizes[5]);
    let words = |at| {
        format!(
            "{:.0} % at 50 kB, {:.0} % at 2 MB",
            100.0 * part(small, at),
            100.0 * part(large, at)
        )
    };
    let seeks = |size: &Size| part(size, 2) + part(size, 3);
    findings
        .claim(Claim::holds(
            "at 2 MB chunks give most of what is gained",
            "most",
            words(1),
            part(large, 1) > 0.5,
        ))
        .claim(Claim::holds(
            "at 50 kB just-in-time and split seeks together give more than chunks",
            "more",
            format!("{:.0} % and {:.0} %", 100.0 * seeks(small), 100.0 * part(small, 1)),
            seeks(small) > part(small, 1),
        ));
    let each = |test: &dyn Fn(&Size) -> bool| sizes.iter().all(test);
    let costs = |size: &Size| 100.0 * (1.0 - size.rates[3] / size.rates[2]);
    findings
        .claim(Claim::holds(
            "expected waiting falls with each technique at every size",
            "falls",
            "see the table",
            each(&|size| size.waits.windows(2).take(3).all(|pair| pair[1] <= pair[0] * 1.005)),
        ))
        .claim(Claim::holds(
            "split seeks cost throughput, and more of small requests",
            "cost",
            format!("{:.1} % at 50 kB, {:.1} % at 2 MB", costs(small), costs(large)),
            costs(small) > costs(large) && costs(small) > 0.0,
        ))
        .claim(Claim::holds(
            "what is read on in waits falls with size",
            "falls",
            format!("{:.1} MB/s at 50 kB, {:.1} MB/s at 2 MB", small.free, large.free),
            sizes.windows(2).all(|pair| pair[1].free < pair[0].free),
        ));
    findings
}

fn draw(sizes: &[Size], findings: &mut Findings) {
    let x = || Axis::logarithmic("size, kB").named(SIZES.map(|kb| (kb as f64, kb.to_string())));
    let chart = |title: &str, y: &str, of: &dyn Fn(&Size) -> &Vec<f64>, from: usize| {
        let mut chart = Chart::new(title, x(), Axis::linear(y));
        for (at, name) in NAMES.into_iter().enumerate().skip(from) {
            let points = sizes.iter().map(|size| (size.kilobytes as f64, of(size)[at]));
            chart = chart.with(Series::new(name, Style::Line, points));
        }
        chart
    };
    let waiting = chart(
        "Expected waiting by technique, elevator",
        "expected waiting, ms",
        &|size| &size.waits,
        1,
    );
    let free = sizes.iter().map(|size| (size.kilobytes as f64, size.free));
    let throughput =
        chart("Throughput by technique, elevator", "throughput, MB/s", &|size| &size.rates, 0)
            .with(Series::new("free prefetching", Style::Line, free));
    let mut table =
        Table::new(&[">kB", "", ">expected waiting, ms", ">longest, ms", ">throughput, MB/s"]);
    for size in sizes {
        for (at, name) in NAMES.into_iter().chain(["ours"]).enumerate() {
            let figures = [size.waits[at], size.longest[at], size.rates[at]];
            let mut row = vec![size.kilobytes.to_string(), name.to_owned()];
            row.extend(figures.map(|figure| format!("{figure:.2}")));
            table.row(row);
        }
    }
    findings.chart(waiting).chart(throughput).table("By size and technique", table);
}
