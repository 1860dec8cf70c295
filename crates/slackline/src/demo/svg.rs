//! A picture of latency distributions: how large a share took longer than how
//! long, both axes logarithmic, so that the tail is as visible as the median.

use report::svg::{self, GRID, TEXT, line, text};
use std::fmt::Write;
use units::Duration;

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 500.0;
/// The plot inside the picture: left, top, right, bottom.
const LEFT: f64 = 84.0;
const TOP: f64 = 118.0;
const RIGHT: f64 = WIDTH - 28.0;
const BOTTOM: f64 = HEIGHT - 62.0;

/// One line of the picture.
pub struct Curve {
    /// For the legend.
    pub label: String,
    /// A CSS colour.
    pub colour: &'static str,
    /// Thin and dashed, for what is shown beside the matter.
    pub dashed: bool,
    /// The shortest first; an empty one is left out.
    pub sorted: Vec<Duration>,
}

/// The picture as a file's text. `mark` is a time with a meaning, drawn as a line.
pub fn distributions(title: &str, curves: &[Curve], mark: (Duration, &str)) -> String {
    let curves: Vec<&Curve> = curves.iter().filter(|curve| !curve.sorted.is_empty()).collect();
    let axes = Axes::covering(&curves, mark.0);
    let mut svg = svg::begin(title, [WIDTH, HEIGHT], LEFT);
    axes.draw(&mut svg);
    draw_mark(&mut svg, &axes, mark);
    for (row, curve) in curves.iter().enumerate() {
        draw_legend(&mut svg, row, curve);
        draw_curve(&mut svg, &axes, curve);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Decades on both axes: times in nanoseconds, shares as powers of ten below 1.
struct Axes {
    time_low: i32,
    time_high: i32,
    share_low: i32,
}

impl Axes {
    fn covering(curves: &[&Curve], mark: Duration) -> Self {
        let times = curves.iter().flat_map(|curve| [curve.sorted.first(), curve.sorted.last()]);
        let times: Vec<f64> = times.flatten().map(|t| log(*t)).chain([log(mark)]).collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let longest = curves.iter().map(|curve| curve.sorted.len()).max().unwrap_or(1);
        Self {
            time_low: least.floor() as i32,
            time_high: (most.ceil() as i32).max(least.floor() as i32 + 1),
            share_low: -((longest as f64).log10().ceil() as i32).max(1),
        }
    }

    fn x(&self, time: Duration) -> f64 {
        let decades = f64::from(self.time_high - self.time_low);
        LEFT + (log(time) - f64::from(self.time_low)) / decades * (RIGHT - LEFT)
    }

    /// The place of a share between 0 (left out) and 1.
    fn y(&self, share: f64) -> f64 {
        TOP + share.log10() / f64::from(self.share_low) * (BOTTOM - TOP)
    }

    fn draw(&self, svg: &mut String) {
        for decade in self.time_low..=self.time_high {
            let time = Duration::from_nanos(10u64.pow(decade.unsigned_abs()));
            let x = self.x(time);
            line(svg, [x, TOP, x, BOTTOM], GRID, "1");
            text(svg, x, BOTTOM + 20.0, "middle", &time.to_string().replace("us", "µs"));
        }
        for decade in self.share_low..=0 {
            let y = self.y(10f64.powi(decade));
            line(svg, [LEFT, y, RIGHT, y], GRID, "1");
            text(svg, LEFT - 10.0, y + 4.5, "end", &percent(decade));
        }
        text(svg, (LEFT + RIGHT) / 2.0, HEIGHT - 16.0, "middle", "latency");
        svg::upwards(svg, (TOP + BOTTOM) / 2.0, "share that took longer");
    }
}

/// The exponent of a time in nanoseconds; a time of zero is drawn as one.
fn log(time: Duration) -> f64 {
    (time.as_nanos().max(1) as f64).log10()
}

fn percent(decade: i32) -> String {
    match decade {
        0 => "100 %".into(),
        -1 => "10 %".into(),
        _ => format!("{:.*} %", (-decade - 2) as usize, 10f64.powi(decade + 2)),
    }
}

fn draw_mark(svg: &mut String, axes: &Axes, (time, meaning): (Duration, &str)) {
    let x = axes.x(time);
    let dots = "1\" stroke-dasharray=\"2 4";
    line(svg, [x, TOP, x, BOTTOM], TEXT, dots);
    text(svg, x, TOP - 9.0, "middle", meaning);
}

fn draw_legend(svg: &mut String, row: usize, curve: &Curve) {
    let x = LEFT + (row % 2) as f64 * 400.0;
    let y = 52.0 + (row / 2) as f64 * 24.0;
    line(svg, [x, y - 4.5, x + 34.0, y - 4.5], curve.colour, stroke(curve));
    text(svg, x + 44.0, y, "start", &curve.label);
}

/// A step down at each sample; it ends where the last one stands alone.
fn draw_curve(svg: &mut String, axes: &Axes, curve: &Curve) {
    let count = curve.sorted.len() as f64;
    let mut path = format!("M{:.1} {:.1}", axes.x(curve.sorted[0]), axes.y(1.0));
    let mut drawn = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (rank, &sample) in curve.sorted.iter().enumerate() {
        let (x, y) = (axes.x(sample), axes.y((count - rank as f64) / count));
        let is_last = rank + 1 == curve.sorted.len();
        // Steps below half a pixel are not seen; thousands of them are a large file.
        if is_last || x - drawn.0 >= 0.5 || y - drawn.1 >= 0.5 {
            let _ = write!(path, "H{x:.1}V{y:.1}");
            drawn = (x, y);
        }
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}V{BOTTOM}\" fill=\"none\" stroke=\"{}\" stroke-linejoin=\"round\" \
         stroke-width=\"{}\"/>",
        curve.colour,
        stroke(curve)
    );
}

/// Width, and for dashed lines what closes the attribute and opens the next.
fn stroke(curve: &Curve) -> &'static str {
    if curve.dashed { "1.6\" stroke-dasharray=\"6 4" } else { "2.8" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(micros: &[u64]) -> Curve {
        let sorted = micros.iter().map(|&us| Duration::from_micros(us)).collect();
        Curve { label: "a < b".into(), colour: "#123456", dashed: false, sorted }
    }

    #[test]
    fn a_curve_falls_from_all_to_the_last_one_inside_the_plot() {
        let micros: Vec<u64> = (1..=100).map(|n| n * 100).collect();
        let svg = distributions("t", &[curve(&micros)], (Duration::from_millis(50), "mark"));
        let path = svg.split("<path d=\"").nth(1).unwrap().split('"').next().unwrap();
        let steps: Vec<f64> = path.split('V').skip(1).map(leading_number).collect();
        assert!(steps.is_sorted(), "the share only falls: {steps:?}");
        assert_eq!(steps[0], TOP);
        assert_eq!(*steps.last().unwrap(), BOTTOM);
        let across: Vec<f64> = path.split('H').skip(1).map(leading_number).collect();
        assert!(across.is_sorted() && across[0] >= LEFT && *across.last().unwrap() <= RIGHT);
        // 100 µs to 50 ms: the decades 10 µs … 100 ms hold all, and 10 % of 100 samples is 1 ‰.
        for label in ["100 µs", "100 ms", "100 %", "1 %", "a &lt; b", "mark"] {
            assert!(svg.contains(label), "{label}");
        }
    }

    fn leading_number(text: &str) -> f64 {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].parse().unwrap()
    }

    #[test]
    fn no_sample_and_one_sample_make_a_picture_too() {
        let mark = (Duration::from_millis(1), "mark");
        for curves in [vec![], vec![curve(&[])], vec![curve(&[0])], vec![curve(&[7, 7, 7])]] {
            let svg = distributions("t", &curves, mark);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
        }
    }
}
