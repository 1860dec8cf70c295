//! The same scene under several policies, load step by load step and seed by seed:
//! what figures 6.5 to 6.11 are made of.

use super::load::{Load, Order};
use super::scene::{Phases, Scene};
use super::streams::{Layout, load as load_of};
use crate::Run;
use report::{Axis, Chart, Series, Style, Table};
use sched::PolicyKind;
use sim::machine::Runs;
use sim::runs::{Confidence, Estimate};
use units::{Bytes, Duration};

/// What the thesis compares, its static slack mended, and ours.
pub(super) const POLICIES: [PolicyKind; 5] = [
    PolicyKind::EDF,
    policies::LST,
    policies::DELTA_L_1999,
    PolicyKind::DELTA_L,
    PolicyKind::SLACK,
];

pub(super) const EDF: usize = 0;
pub(super) const LST: usize = 1;
pub(super) const PRINTED: usize = 2;
pub(super) const DELTA_L: usize = 3;
pub(super) const SLACK: usize = 4;

/// One policy at one load.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// Mean latency in ms by file system and seed; NaN where it asked for nothing.
    pub systems: Vec<Vec<f64>>,
    /// How many requests each has had answered.
    pub requests: Vec<u64>,
    /// The same of all file systems together, by seed.
    pub all: Vec<f64>,
    /// Requests of streams that were late, the most by which, and all of them.
    pub late: u64,
    pub late_max: Duration,
    pub real_time: u64,
    pub overruns: u64,
    pub unanswered: u64,
    /// Changes between streams and file systems a second, on one disk.
    pub switches: f64,
    /// Mean and deviation of the lengths of runs of file systems' requests, in the mean
    /// over the seeds.
    pub run_mean: f64,
    pub run_deviation: f64,
    /// The three by seed.
    pub by_seed: [Vec<f64>; 3],
}

/// Places in [`Cell::by_seed`].
pub(super) const SWITCHES: usize = 0;
pub(super) const RUN_MEAN: usize = 1;
pub(super) const RUN_DEVIATION: usize = 2;

/// What is to be run.
pub(super) struct Sweep<'a> {
    pub layout: Layout,
    pub order: Order,
    pub phases: Phases,
    /// Pairs of video and sound.
    pub steps: Vec<u64>,
    /// One for each seed.
    pub loads: &'a [Load],
}

/// What came of it: by step and policy.
pub(super) struct Swept {
    pub steps: Vec<u64>,
    pub cells: Vec<Vec<Cell>>,
}

impl Sweep<'_> {
    pub fn run(&self, run: &Run<'_>) -> Swept {
        let mut cells = Vec::new();
        for (done, &pairs) in self.steps.iter().enumerate() {
            run.progress(done, self.steps.len());
            cells.push(POLICIES.map(|policy| self.cell(policy, pairs)).to_vec());
        }
        Swept { steps: self.steps.clone(), cells }
    }

    /// What best effort has in the order of slack if contracts count for nothing, step by
    /// step.
    pub fn yardstick(&self) -> Vec<Cell> {
        self.each(policies::BEST_EFFORT_FIRST)
    }

    /// One policy, step by step.
    pub fn each(&self, policy: PolicyKind) -> Vec<Cell> {
        self.steps.iter().map(|&pairs| self.cell(policy, pairs)).collect()
    }

    /// One policy with so many pairs.
    pub fn cell(&self, policy: PolicyKind, pairs: u64) -> Cell {
        self.cell_planned(policy, pairs, None)
    }

    /// The same where blocks are planned otherwise.
    pub fn cell_planned(
        &self,
        policy: PolicyKind,
        pairs: u64,
        planned: Option<fn(Bytes) -> Duration>,
    ) -> Cell {
        let systems = self.loads[0].systems.len();
        let mut cell = Cell {
            systems: vec![Vec::new(); systems],
            requests: vec![0; systems],
            ..Cell::default()
        };
        for (seed, load) in (1..).zip(self.loads) {
            let scene = Scene {
                layout: self.layout,
                order: self.order,
                phases: self.phases,
                planned,
                ..Scene::new(load, policy, pairs, seed)
            };
            let mut array = scene.array().expect("a step that is admitted");
            array.run();
            self.add(&mut cell, &array, load);
        }
        cell
    }

    fn add(&self, cell: &mut Cell, array: &super::scene::Array, load: &Load) {
        let (mut sum, mut count) = (0.0, 0);
        for (system, &index) in array.systems.iter().enumerate() {
            let latencies = &array.machine.load_results(index).latencies;
            let means = &mut cell.systems[system];
            cell.requests[system] += latencies.count();
            let mean = latencies.mean().as_millis_f64();
            means.push(if latencies.count() > 0 { mean } else { f64::NAN });
            sum += mean * latencies.count() as f64;
            count += latencies.count();
        }
        cell.all.push(sum / count.max(1) as f64);
        let results = array.machine.results();
        cell.late += results.late;
        cell.late_max = cell.late_max.max(results.late_max);
        cell.real_time += results.real_time.count();
        cell.overruns += results.overruns;
        cell.unanswered += array.unanswered();
        let seeds = self.loads.len() as f64;
        let disks = super::streams::DISKS as f64;
        let switches = results.switches as f64 / load.span.as_secs_f64() / disks;
        let runs: &Runs = &results.best_effort_runs;
        let figures = [switches, runs.mean(), runs.standard_deviation()];
        cell.switches += figures[SWITCHES] / seeds;
        cell.run_mean += figures[RUN_MEAN] / seeds;
        cell.run_deviation += figures[RUN_DEVIATION] / seeds;
        for (all, figure) in cell.by_seed.iter_mut().zip(figures) {
            all.push(figure);
        }
    }
}

/// The mean of what is known.
pub(super) fn mean(values: &[f64]) -> f64 {
    let known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    known.iter().sum::<f64>() / known.len() as f64
}

/// The difference of runs to their fellows of the same seed, of those that are known.
fn difference(ours: &[f64], theirs: &[f64]) -> Estimate {
    let pairs = ours.iter().zip(theirs).filter(|(a, b)| a.is_finite() && b.is_finite());
    let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.unzip();
    Estimate::of_differences(&ours, &theirs)
}

/// More than others by more than the interval of 95 % of the difference, seed by seed.
/// Where a seed has no fellow, nothing is.
pub(super) fn is_more(more: &[f64], less: &[f64]) -> bool {
    let difference = difference(more, less);
    difference.mean > difference.margin(Confidence::Percent95).max(1e-9)
}

/// The most that ours may be to theirs: the upper end of the interval of 95 % of the
/// difference, seed by seed, as a part of theirs. Ours is not worse where this stays
/// below a stated margin.
pub(super) fn at_most_of(ours: &[f64], theirs: &[f64]) -> f64 {
    let difference = difference(ours, theirs);
    1.0 + (difference.mean + difference.margin(Confidence::Percent95)) / mean(theirs)
}

/// One latency held against the best of others.
pub(super) struct Against {
    /// Of our mean to the best of theirs.
    pub ratio: f64,
    /// The most that this ratio may be: see [`at_most_of`].
    pub ratio_max: f64,
    /// The upper end of the interval of 95 % of the ratios seed by seed (of the mean of their
    /// logarithms): what holds where means differ much from seed to seed.
    pub by_seed_max: f64,
}

/// Slack against the best of edf, lst and delta-l by their means; none where nobody
/// asked for anything.
pub(super) fn against<'a>(
    cell: &'a [Cell],
    values: impl Fn(&'a Cell) -> &'a [f64],
) -> Option<Against> {
    held_against(&cell[SLACK], [EDF, LST, DELTA_L].map(|at| &cell[at]), values)
}

/// The same of any cell and others.
pub(super) fn held_against<'a>(
    ours: &'a Cell,
    others: impl IntoIterator<Item = &'a Cell>,
    values: impl Fn(&'a Cell) -> &'a [f64],
) -> Option<Against> {
    let ours = values(ours);
    let others = others.into_iter().map(values);
    let best = others.min_by(|a, b| mean(a).total_cmp(&mean(b)))?;
    if !mean(ours).is_finite() || !mean(best).is_finite() {
        return None;
    }
    let pairs = ours.iter().zip(best).filter(|(a, b)| a.is_finite() && b.is_finite());
    let (ours, best): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let ratio_max = at_most_of(&ours, &best);
    let logarithms: Vec<f64> = ours.iter().zip(&best).map(|(a, b)| (a / b).ln()).collect();
    let ratios = Estimate::of(&logarithms);
    let by_seed_max = (ratios.mean + ratios.margin(Confidence::Percent95)).exp();
    Some(Against { ratio: mean(&ours) / mean(&best), ratio_max, by_seed_max })
}

impl Swept {
    /// Mean latency over all file systems and seeds.
    pub fn latency(&self, step: usize, policy: usize) -> f64 {
        mean(&self.cells[step][policy].all)
    }

    /// At the step at which the load is about so large a part of the largest.
    pub fn step_at(&self, part: f64) -> usize {
        (((self.steps.len() - 1) as f64) * part).round() as usize
    }

    pub fn last(&self) -> usize {
        self.steps.len() - 1
    }

    /// A chart of one figure of each cell.
    pub fn chart(&self, title: &str, axis: Axis, value: impl Fn(&Cell) -> f64) -> Chart {
        let mut chart = Chart::new(title, Axis::linear("real-time load, MB/s"), axis);
        for (at, policy) in POLICIES.iter().enumerate() {
            let points = self.steps.iter().zip(&self.cells);
            let points = points.map(|(&pairs, cells)| (load_of(pairs), value(&cells[at])));
            chart = chart.with(Series::new(policy.to_string(), Style::Line, points));
        }
        chart
    }

    /// A chart of latencies for each file system.
    pub fn charts(&self, name: &str) -> Vec<Chart> {
        let systems = self.cells[0][0].systems.len();
        let one = |system: usize| {
            let axis = Axis::logarithmic("mean best-effort latency, ms");
            self.chart(&format!("{name} {system}"), axis, |cell| mean(&cell.systems[system]))
        };
        (0..systems).map(one).collect()
    }

    /// Mean latency of all file systems, and what was late.
    pub fn table(&self) -> Table {
        let names = POLICIES.map(|policy| format!(">{policy}, ms"));
        let mut headings = vec![">pairs", ">load, MB/s"];
        headings.extend(names.iter().map(String::as_str));
        headings.extend([">slack to the best of edf, lst, delta-l", "late requests of streams"]);
        let mut table = Table::new(&headings);
        for (step, cells) in self.cells.iter().enumerate() {
            let pairs = self.steps[step];
            let mut row = vec![pairs.to_string(), format!("{:.1}", load_of(pairs))];
            row.extend(cells.iter().map(|cell| report::number(mean(&cell.all))));
            let ratio = against(cells, |cell| &cell.all).map_or(f64::NAN, |it| it.ratio);
            row.push(format!("{ratio:.3}"));
            row.push(late_words(cells));
            table.row(row);
        }
        table
    }
}

/// Which policies were late, how often, and by how much at the most.
pub(super) fn late_words(cells: &[Cell]) -> String {
    let late = POLICIES.iter().zip(cells).filter(|(_, cell)| cell.late > 0);
    let words = late.map(|(policy, cell)| {
        let by = cell.late_max.as_millis_f64();
        format!("{policy}: {} of {}, by up to {} ms", cell.late, cell.real_time, report::number(by))
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "none".into() } else { words.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_more_beyond_the_interval_alone() {
        assert!(is_more(&[2.0, 2.1, 1.9], &[1.0, 1.0, 1.0]));
        assert!(!is_more(&[1.0, 1.0, 1.0], &[1.0, 1.0, 1.0]), "alike");
        assert!(!is_more(&[1.1, 0.9, 1.3], &[1.0, 1.0, 1.0]), "within the interval");
        assert!(!is_more(&[9.0], &[1.0]), "one run has no interval");
        assert!(
            is_more(&[2.0, 2.1, 1.9, f64::NAN], &[1.0, 1.0, 1.0, 1.0]),
            "unknown ones count not"
        );
    }

    #[test]
    fn what_is_not_worse_stays_below_a_margin_with_its_whole_interval() {
        assert_eq!(at_most_of(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        let sure = at_most_of(&[1.01, 1.0, 1.0, 1.01], &[1.0; 4]);
        assert!((1.005..1.03).contains(&sure), "{sure}");
        // The mean is the same, and nobody can be sure of it.
        assert!(at_most_of(&[0.5, 1.5, 0.5, 1.5], &[1.0; 4]) > 1.5);
    }
}
