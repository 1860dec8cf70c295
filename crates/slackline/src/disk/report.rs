//! One page with charts of what the profiler found.

use ::disk::profiler::{Findings, SeekPoint};
use report::{Axis, Chart, Page, Series, Style};
use units::{Bytes, Duration, SECTOR};

/// The page.
pub fn page(target: &str, findings: &Findings) -> String {
    let mut page = Page::new(target);
    page.list(findings.verdict.iter().chain(&findings.notes).map(|line| (&**line, None)));
    page.table(&super::facts::table(findings));
    page.charts(&charts(findings));
    page.heading("profile", "Profile");
    page.verbatim(&findings.to_toml().unwrap_or_else(|error| error.to_string()));
    page.html()
}

fn charts(findings: &Findings) -> Vec<Chart> {
    [seeks(findings), zones(findings), chunks(findings), depths(findings)]
        .into_iter()
        .flatten()
        .collect()
}

fn seeks(findings: &Findings) -> Option<Chart> {
    let points = &findings.mechanics.as_ref()?.seeks;
    let curve = |name: &str, style, time: fn(&SeekPoint) -> Duration| {
        let points = points.iter().map(|point| (point.distance as f64, ms(time(point))));
        Series::new(name, style, points)
    };
    let chart = Chart::new("Seek time", Axis::linear("cylinders"), Axis::linear("ms"));
    let chart = chart
        .with(curve("mean", Style::Line, |point| point.mean))
        .with(curve("nine tenths lie above", Style::Dots, |point| point.low))
        .with(curve("and below", Style::Dots, |point| point.high));
    (!points.is_empty()).then_some(chart)
}

fn zones(findings: &Findings) -> Option<Chart> {
    let gigabytes = |lba: u64| (SECTOR * lba).get() as f64 / 1e9;
    let zones = findings.zones.iter();
    let mut points: Vec<(f64, f64)> =
        zones.map(|zone| (gigabytes(zone.start), zone.sectors_per_track as f64)).collect();
    points.push((findings.capacity.get() as f64 / 1e9, points.last()?.1));
    let (across, up) = (Axis::linear("GB from the start"), Axis::linear("sectors a track"));
    Some(Chart::new("Zones", across, up).with(Series::new("", Style::Steps, points)))
}

fn chunks(findings: &Findings) -> Option<Chart> {
    let rate = |bytes: u64| bytes as f64 / 1e6;
    let kib = |size: Bytes| size.get() as f64 / 1024.0;
    let points = findings.chunks.iter().map(|chunk| (kib(chunk.size), rate(chunk.rate.get())));
    let (across, up) = (Axis::logarithmic("KiB a command"), Axis::linear("MB/s"));
    let chart = Chart::new("A stream in chunks", across, up);
    (!findings.chunks.is_empty()).then(|| chart.with(Series::new("", Style::Line, points)))
}

fn depths(findings: &Findings) -> Option<Chart> {
    let points = findings.flat.as_ref()?.depths.iter();
    let points = points.map(|(depth, time)| (f64::from(*depth), ms(*time)));
    let (across, up) = (Axis::logarithmic("commands in flight"), Axis::linear("ms"));
    let chart = Chart::new("Device time of a small read", across, up);
    Some(chart.with(Series::new("", Style::Line, points)))
}

fn ms(time: Duration) -> f64 {
    time.as_millis_f64()
}
