//! One page with plots of what the profiler found: HTML that needs nothing else.

use ::disk::profiler::Findings;
use units::{Bytes, Duration};

/// The drawing area of a plot, in pixels.
const WIDE: f64 = 560.0;
const HIGH: f64 = 260.0;
/// Room for the axes.
const LEFT: f64 = 60.0;
const BELOW: f64 = 40.0;

/// A line of points, and how it is drawn.
struct Curve {
    points: Vec<(f64, f64)>,
    style: &'static str,
}

/// One plot: curves over labelled axes that begin at zero, or at the least `x`
/// where the axis is logarithmic.
struct Plot {
    title: &'static str,
    across: &'static str,
    up: &'static str,
    logarithmic: bool,
    curves: Vec<Curve>,
}

impl Plot {
    fn svg(&self) -> String {
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let position = |x: f64| if self.logarithmic { x.max(1.0).ln() } else { x };
        let left = if self.logarithmic {
            all().map(|point| position(point.0)).fold(f64::MAX, f64::min)
        } else {
            0.0
        };
        let right = all().map(|point| position(point.0)).fold(left + 1e-9, f64::max);
        let top = round_top(all().map(|point| point.1).fold(1e-9, f64::max));
        let x = |value: f64| LEFT + (position(value) - left) / (right - left) * WIDE;
        let y = |value: f64| HIGH - value / top * HIGH + 10.0;
        let mut svg = format!(
            "<figure><figcaption>{}</figcaption><svg viewBox='0 -10 {} {}' role='img'>",
            self.title,
            LEFT + WIDE + 20.0,
            HIGH + BELOW + 20.0
        );
        for step in 0..=4 {
            let value = top * f64::from(step) / 4.0;
            let at = y(value);
            svg += &format!(
                "<path d='M{LEFT} {at:.1}h{WIDE}' class='grid'/><text x='{:.1}' y='{:.1}' \
                 class='up'>{}</text>",
                LEFT - 6.0,
                at + 4.0,
                short(value)
            );
        }
        let ends = all().map(|point| point.0);
        let (least, most) = (ends.clone().fold(f64::MAX, f64::min), ends.fold(f64::MIN, f64::max));
        for (value, class) in [(least, "first"), (most, "last")] {
            svg += &format!(
                "<text x='{:.1}' y='{:.1}' class='{class}'>{}</text>",
                x(value),
                HIGH + 26.0,
                short(value)
            );
        }
        for curve in &self.curves {
            let points: Vec<String> =
                curve.points.iter().map(|&(a, b)| format!("{:.1},{:.1}", x(a), y(b))).collect();
            svg += &format!("<polyline points='{}' class='{}'/>", points.join(" "), curve.style);
        }
        svg += &format!(
            "<text x='{:.1}' y='{:.1}' class='name'>{}</text><text x='{LEFT}' y='1' \
             class='first'>{}</text></svg></figure>",
            LEFT + WIDE / 2.0,
            HIGH + 42.0,
            self.across,
            self.up
        );
        svg
    }
}

/// The end of an axis of four steps, each a round number, at `most` or a little above.
fn round_top(most: f64) -> f64 {
    let step = most / 4.0;
    let power = 10f64.powf(step.log10().floor());
    let round = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];
    4.0 * power * round.into_iter().find(|round| round * power >= step).unwrap_or(10.0)
}

/// A number to read off an axis: three digits of it.
fn short(value: f64) -> String {
    let text = match value {
        value if value >= 100.0 => return format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn ms(time: Duration) -> f64 {
    time.as_millis_f64()
}

fn plots(findings: &Findings) -> Vec<Plot> {
    let mut plots = Vec::new();
    if let Some(mechanics) = findings.mechanics.as_ref().filter(|found| !found.seeks.is_empty()) {
        let of = |value: fn(&::disk::profiler::SeekPoint) -> Duration| {
            mechanics.seeks.iter().map(|point| (point.distance as f64, ms(value(point)))).collect()
        };
        plots.push(Plot {
            title: "Seek time: mean, and what nine tenths lie between",
            across: "cylinders",
            up: "ms",
            logarithmic: false,
            curves: vec![
                Curve { points: of(|point| point.low), style: "band" },
                Curve { points: of(|point| point.high), style: "band" },
                Curve { points: of(|point| point.mean), style: "main" },
            ],
        });
    }
    if !findings.zones.is_empty() {
        let mut points = Vec::new();
        for (index, zone) in findings.zones.iter().enumerate() {
            let end = findings
                .zones
                .get(index + 1)
                .map_or(findings.capacity / Bytes::new(512), |next| next.start);
            for lba in [zone.start, end] {
                points.push((lba as f64 * 512.0 / 1e9, zone.sectors_per_track as f64));
            }
        }
        plots.push(Plot {
            title: "Zones",
            across: "GB from the start",
            up: "sectors a track",
            logarithmic: false,
            curves: vec![Curve { points, style: "main" }],
        });
    }
    let chunks = findings.chunks.iter();
    let points: Vec<(f64, f64)> = chunks
        .map(|chunk| (chunk.size.get() as f64 / 1024.0, chunk.rate.get() as f64 / 1e6))
        .collect();
    if !points.is_empty() {
        plots.push(Plot {
            title: "A stream in chunks (semi-preemptible I/O, figure 3)",
            across: "KiB a command, logarithmic",
            up: "MB/s",
            logarithmic: true,
            curves: vec![Curve { points, style: "main" }],
        });
    }
    if let Some(flat) = &findings.flat {
        let points = flat.depths.iter().map(|(depth, time)| (f64::from(*depth), ms(*time)));
        plots.push(Plot {
            title: "Device time of a small read",
            across: "commands in flight, logarithmic",
            up: "ms",
            logarithmic: true,
            curves: vec![Curve { points: points.collect(), style: "main" }],
        });
    }
    plots
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const STYLE: &str = "body{font:15px/1.4 sans-serif;max-width:1300px;margin:2em auto;padding:0 1em}\
.wide{overflow-x:auto}table{border-collapse:collapse}\
th,td{text-align:left;vertical-align:top;padding:.2em 1.5em .2em 0;border-bottom:1px solid #ddd}\
main{display:flex;flex-wrap:wrap;gap:1em}figure{margin:0;width:620px;max-width:100%}\
svg{width:100%}text{font-size:11px;fill:#555}.up,.last{text-anchor:end}.name{text-anchor:middle}\
.grid{stroke:#ddd;fill:none}polyline{fill:none;stroke-width:1.5}.main{stroke:#06c}\
.band{stroke:#9bd}pre{background:#f6f6f6;padding:1em;overflow:auto}";

/// The page.
pub fn page(target: &str, findings: &Findings) -> String {
    let target = escaped(target);
    let drawn: String = plots(findings).iter().map(Plot::svg).collect();
    let say: String = findings
        .notes
        .iter()
        .chain(&findings.verdict)
        .map(|line| format!("<li>{}</li>", escaped(line)))
        .collect();
    let found = super::facts::table(findings).html();
    let toml = findings.to_toml().unwrap_or_else(|error| error.to_string());
    format!(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{target}</title>\
         <style>{STYLE}</style></head>\n<body><h1>{target}</h1>{found}\n<ul>{say}</ul>\n<main>{drawn}</main>\n\
         <h2>Profile</h2><pre>{}</pre></body></html>\n",
        escaped(&toml)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!([16.4, 204.7, 15.3, 0.9].map(round_top), [20.0, 240.0, 16.0, 1.0]);
        assert_eq!([0.0, 1.073_709, 15.0, 204.75].map(short), ["0", "1.07", "15", "205"]);
    }
}
