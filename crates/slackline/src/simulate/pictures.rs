//! The charts of a scenario.

use super::results::{Class, Results, Spread};
use report::{Axis, Chart, Series, Style};

/// On a logarithmic axis there is no zero; what took less than this was there at once.
const AT_ONCE_MS: f64 = 0.001;

/// What programs waited, by kind.
pub fn waits(results: &Results) -> Chart {
    let title = "How long programs waited";
    let spreads = results.classes.iter().map(|class| (class, &class.waits));
    tails(title, "wait, ms (0.001: at once)", spreads)
}

/// What the disks took for requests under contract.
pub fn requests(results: &Results) -> Chart {
    let title = "Requests under contract on the disks";
    let spreads = results.classes.iter().map(|class| (class, &class.requests));
    tails(title, "from release to completion, ms", spreads)
}

/// How large a share took longer than how long.
fn tails<'a>(
    title: &str,
    label: &str,
    spreads: impl Iterator<Item = (&'a Class, &'a Spread)>,
) -> Chart {
    let y = Axis::logarithmic("share that took longer, %").to(100.0);
    let mut chart = Chart::new(title, Axis::logarithmic(label), y);
    for (class, spread) in spreads.filter(|(_, spread)| spread.count > 0) {
        chart = chart.with(Series::new(&*class.name, Style::Steps, tail(spread)));
    }
    chart
}

/// Points of a tail, from left to right: a time, and the share that took longer.
fn tail(spread: &Spread) -> Vec<(f64, f64)> {
    let mut shares: Vec<u64> = (1..20).rev().map(|step| step * 50_000).collect();
    let parts = [40_000, 30_000, 20_000, 15_000];
    shares.extend((0..4).flat_map(|decade| parts.map(|part| part / 10u64.pow(decade))));
    // The rarest that was seen.
    let least = 1_000_000 / spread.count.max(1);
    shares.retain(|share| *share >= least);
    let at = |share: u64| spread.all.quantile(1_000_000 - share).as_millis_f64().max(AT_ONCE_MS);
    let mut points: Vec<_> = shares.iter().map(|&share| (at(share), share as f64 / 1e4)).collect();
    points.insert(0, (at(999_999).min(points.first().map_or(1e9, |point| point.0)), 100.0));
    let longest = (spread.max_ns as f64 / 1e6).max(AT_ONCE_MS);
    points.push((longest, 1e2 / spread.count.max(1) as f64));
    points
}

/// When each part of the first run's time line begins, in seconds.
fn times(results: &Results, parts: usize) -> impl Iterator<Item = f64> {
    let part = results.bin_ns as f64 / 1e9;
    (0..parts).map(move |at| at as f64 * part)
}

fn over_time(
    results: &Results,
    title: &str,
    label: &str,
    of: impl Fn(&Class) -> Vec<f64>,
) -> Chart {
    let mut chart = Chart::new(title, Axis::linear("simulated time, s"), Axis::linear(label));
    for class in &results.classes {
        let points = times(results, class.timeline.len()).zip(of(class));
        chart = chart.with(Series::new(&*class.name, Style::Steps, points));
    }
    faults(chart, results)
}

/// What was planned to go wrong, where it did: on the first run's time line.
fn faults(chart: Chart, results: &Results) -> Chart {
    let spans = results.faults.iter().map(|fault| {
        let at = fault.at_ns as f64 / 1e9;
        (at, at + fault.lasts_ns as f64 / 1e9)
    });
    chart.shaded("what was planned to go wrong", spans)
}

/// Who got how much, over time.
pub fn throughput(results: &Results) -> Chart {
    over_time(results, "Who got how much", "MB/s", |class| {
        let part = results.bin_ns as f64 / 1e9;
        class.timeline.iter().map(|bin| bin.bytes as f64 / 1e6 / part).collect()
    })
}

/// The longest wait in each part of the time line.
pub fn longest(results: &Results) -> Chart {
    over_time(results, "The longest wait", "ms", |class| {
        class.timeline.iter().map(|bin| bin.wait_max_ns as f64 / 1e6).collect()
    })
}

/// What was late or not ready, over time.
pub fn missed(results: &Results) -> Chart {
    over_time(results, "Late requests, and windows not ready", "count", |class| {
        class.timeline.iter().map(|bin| bin.missed as f64).collect()
    })
}

/// How busy the disks were, over time.
pub fn busy(results: &Results) -> Chart {
    let y = Axis::linear("busy, %").to(100.0);
    let mut chart = Chart::new("The disks at work", Axis::linear("simulated time, s"), y);
    for (number, disk) in results.disks.iter().enumerate() {
        let shares = disk.timeline.iter().map(|share| share * 100.0);
        let points = times(results, disk.timeline.len()).zip(shares);
        chart = chart.with(Series::new(format!("disk {number}"), Style::Steps, points));
    }
    faults(chart, results)
}
