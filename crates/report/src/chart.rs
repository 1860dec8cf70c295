//! Charts: lines, dots, steps and bars over two axes, as SVG.
//!
//! What a paper printed is drawn dashed and in the colour of words, so that ours
//! and theirs can be told apart at a glance, in print, too.

use crate::Axis;
use crate::scale::Scale;
use crate::svg::{self, GRID, TEXT};
use std::fmt::Write;

const WIDE: f64 = 520.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDE - 24.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 296.0;
/// A letter of the axes' labels is no wider.
const LETTER: f64 = 7.0;
/// Stands for the colour of shaded spans: that of words, of which little is laid on.
const SHADE: &str = "shade";

/// Eight colours that differ for colour-blind eyes, too, each with at least 3:1
/// against white and against near-black.
const COLOURS: [&str; 8] =
    ["#2b7bba", "#d9730d", "#2e8b57", "#d1495b", "#8a63d2", "#17939e", "#a0703c", "#c2529f"];

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line through the points.
    Line,
    /// The points alone.
    Dots,
    /// A line that keeps its height until the next point.
    Steps,
    /// A bar from the axis to each point; series stand beside each other.
    Bars,
    /// What others printed: dashed, in the colour of words.
    Printed,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    style: Style,
    points: Vec<(f64, f64)>,
    ranges: Vec<(f64, f64, f64)>,
}

impl Series {
    /// Points from left to right.
    pub fn new(
        name: impl Into<String>,
        style: Style,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points.into_iter().collect();
        Self { name: name.into(), style, points, ranges: Vec::new() }
    }

    /// Confidence intervals: at `x` from `low` to `high`.
    pub fn ranges(mut self, ranges: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        self.ranges = ranges.into_iter().collect();
        self
    }
}

/// One printed figure: a horizontal line across the chart.
#[derive(Clone, Debug)]
pub struct Reference {
    /// What it is.
    pub name: String,
    /// Its height.
    pub value: f64,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    references: Vec<Reference>,
    /// Spans along the axis, and what they are.
    shades: Option<(String, Vec<(f64, f64)>)>,
}

impl Chart {
    /// A chart of nothing yet. A title of more than some fifty characters does not fit.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let (series, references) = (Vec::new(), Vec::new());
        Self { title: title.into(), x, y, series, references, shades: None }
    }

    /// What it shows.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Adds a series.
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds a printed figure.
    pub fn reference(mut self, name: impl Into<String>, value: f64) -> Self {
        self.references.push(Reference { name: name.into(), value });
        self
    }

    /// Shades spans of the axis, from one value to another, with a name for all of them.
    pub fn shaded(
        mut self,
        name: impl Into<String>,
        spans: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let spans: Vec<_> = spans.into_iter().collect();
        self.shades = (!spans.is_empty()).then(|| (name.into(), spans));
        self
    }

    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let ranges = || self.series.iter().flat_map(|series| &series.ranges);
        let x = self.x.scale(points().map(|point| point.0));
        let heights = points().map(|point| point.1);
        let heights = heights.chain(ranges().flat_map(|range| [range.1, range.2]));
        let y = self.y.scale(heights.chain(self.references.iter().map(|r| r.value)));
        let legend = self.legend();
        let mut svg = svg::begin(&self.title, [WIDE, self.height()], 12.0);
        self.shade(&mut svg, &x);
        self.axes(&mut svg, &x, &y);
        let bars: Vec<usize> =
            (0..self.series.len()).filter(|at| self.series[*at].style == Style::Bars).collect();
        for (at, series) in self.series.iter().enumerate() {
            let beside = bars.iter().position(|bar| *bar == at).map(|place| (place, bars.len()));
            series.draw(&mut svg, &x, &y, colour(at, series.style), beside);
        }
        for reference in &self.references {
            if let Some(place) = y.place(reference.value) {
                let at = up(place);
                let _ = writeln!(
                    svg,
                    "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{RIGHT}\" y2=\"{at:.1}\" \
                     stroke=\"{TEXT}\" stroke-width=\"1.5\" stroke-dasharray=\"2 4\"/>"
                );
            }
        }
        for (row, entries) in legend.iter().enumerate() {
            let mut left = 12.0;
            let at = BOTTOM + 56.0 + 18.0 * row as f64;
            for entry in entries {
                entry.draw(&mut svg, left, at);
                left += entry.width();
            }
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn height(&self) -> f64 {
        BOTTOM + 46.0 + 18.0 * self.legend().len() as f64 + 4.0
    }

    /// Charts below each other in one picture, whose title is `title`.
    pub fn stacked<'a>(title: &str, charts: impl IntoIterator<Item = &'a Self>) -> String {
        let (mut inner, mut top) = (String::new(), 34.0);
        for chart in charts {
            let svg = chart.svg();
            let begin = svg.find('>').map_or(0, |end| end + 1);
            let content = svg[begin..].trim_end().trim_end_matches("</svg>");
            let _ = writeln!(inner, "<g transform=\"translate(0 {top:.1})\">{content}</g>");
            top += chart.height() + 14.0;
        }
        format!("{}{inner}</svg>\n", svg::begin(title, [WIDE, top], 12.0))
    }

    fn axes(&self, svg: &mut String, x: &Scale, y: &Scale) {
        for (value, words) in &y.ticks {
            let Some(place) = y.place(*value) else { continue };
            svg::line(svg, [LEFT, up(place), RIGHT, up(place)], GRID, "1");
            svg::text(svg, LEFT - 6.0, up(place) + 4.5, "end", words);
        }
        // A label that would run into the one before it is left out.
        let mut free = f64::NEG_INFINITY;
        for (value, words) in &x.ticks {
            let Some(place) = x.place(*value) else { continue };
            svg::line(svg, [along(place), BOTTOM, along(place), BOTTOM + 4.0], GRID, "1");
            let half = LETTER * words.chars().count() as f64 / 2.0;
            if along(place) - half >= free {
                svg::text(svg, along(place), BOTTOM + 18.0, "middle", words);
                free = along(place) + half + LETTER;
            }
        }
        svg::text(svg, (LEFT + RIGHT) / 2.0, BOTTOM + 36.0, "middle", &self.x.label);
        svg::upwards(svg, (TOP + BOTTOM) / 2.0, &self.y.label);
    }

    /// The shaded spans, below all else; what took no time is seen, too.
    fn shade(&self, svg: &mut String, x: &Scale) {
        let spans = self.shades.iter().flat_map(|(_, spans)| spans);
        for (from, to) in spans.filter_map(|span| Some((x.place(span.0)?, x.place(span.1)?))) {
            let (left, wide) = (along(from), (along(to) - along(from)).max(2.0));
            shadow(svg, [left, TOP, wide, BOTTOM - TOP]);
        }
    }

    /// The names, in rows that fit.
    fn legend(&self) -> Vec<Vec<Entry<'_>>> {
        let series = self.series.iter().enumerate().map(|(at, series)| Entry {
            name: &series.name,
            style: Some(series.style),
            colour: colour(at, series.style),
        });
        let references = self.references.iter();
        let references = references.map(|r| Entry { name: &r.name, style: None, colour: TEXT });
        let shades = self.shades.iter();
        let shades = shades.map(|(name, _)| Entry { name, style: None, colour: SHADE });
        let mut rows: Vec<Vec<Entry<'_>>> = Vec::new();
        let mut left = 0.0;
        for entry in series.chain(references).chain(shades).filter(|entry| !entry.name.is_empty()) {
            if rows.is_empty() || left + entry.width() > WIDE - 20.0 {
                rows.push(Vec::new());
                left = 0.0;
            }
            left += entry.width();
            rows.last_mut().expect("just pushed").push(entry);
        }
        rows
    }
}

/// One name below the chart.
struct Entry<'a> {
    name: &'a str,
    /// Nothing for a reference.
    style: Option<Style>,
    colour: &'a str,
}

impl Entry<'_> {
    fn width(&self) -> f64 {
        44.0 + 7.0 * self.name.chars().count() as f64
    }

    fn draw(&self, svg: &mut String, left: f64, at: f64) {
        let (colour, middle) = (self.colour, at - 4.5);
        if colour == SHADE {
            shadow(svg, [left, middle - 4.5, 22.0, 9.0]);
            return svg::text(svg, left + 28.0, at, "start", self.name);
        }
        let _ = match self.style {
            Some(Style::Bars) => writeln!(
                svg,
                "<rect x=\"{left}\" y=\"{:.1}\" width=\"22\" height=\"9\" fill=\"{colour}\"/>",
                middle - 4.5
            ),
            Some(Style::Dots) => writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"3\" fill=\"{colour}\"/>",
                left + 11.0
            ),
            style => writeln!(
                svg,
                "<path d=\"M{left} {middle:.1}h22\" stroke=\"{colour}\" stroke-width=\"2\" \
                 fill=\"none\"{}/>",
                dashes(style)
            ),
        };
        svg::text(svg, left + 28.0, at, "start", self.name);
    }
}

fn dashes(style: Option<Style>) -> &'static str {
    match style {
        Some(Style::Printed) => " stroke-dasharray=\"6 4\"",
        None => " stroke-dasharray=\"2 4\"",
        _ => "",
    }
}

fn colour(at: usize, style: Style) -> &'static str {
    if style == Style::Printed { TEXT } else { COLOURS[at % COLOURS.len()] }
}

fn along(place: f64) -> f64 {
    LEFT + place * (RIGHT - LEFT)
}

fn up(place: f64) -> f64 {
    BOTTOM - place * (BOTTOM - TOP)
}

impl Series {
    fn draw(
        &self,
        svg: &mut String,
        x: &Scale,
        y: &Scale,
        colour: &str,
        beside: Option<(usize, usize)>,
    ) {
        for &(at, low, high) in &self.ranges {
            if let (Some(at), Some(low), Some(high)) = (x.place(at), y.place(low), y.place(high)) {
                svg::line(svg, [along(at), up(low), along(at), up(high)], colour, "1");
            }
        }
        let placed: Vec<(f64, f64)> = self
            .points
            .iter()
            .filter_map(|(a, b)| Some((along(x.place(*a)?), up(y.place(*b)?))))
            .collect();
        match self.style {
            Style::Bars => bars(svg, &placed, colour, beside.unwrap_or((0, 1))),
            Style::Dots => dots(svg, &placed, 2.5, colour),
            style => {
                path(svg, &placed, style, colour);
                if placed.len() <= 24 && style != Style::Steps {
                    dots(svg, &placed, 2.5, colour);
                }
            }
        }
    }
}

/// A shaded place: left, top, width and height.
fn shadow(svg: &mut String, [left, top, wide, high]: [f64; 4]) {
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" \
         fill=\"{TEXT}\" fill-opacity=\"0.2\"/>"
    );
}

fn dots(svg: &mut String, placed: &[(f64, f64)], radius: f64, colour: &str) {
    for (x, y) in placed {
        let _ =
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>");
    }
}

fn path(svg: &mut String, placed: &[(f64, f64)], style: Style, colour: &str) {
    let Some((x, y)) = placed.first() else { return };
    let mut path = format!("M{x:.1} {y:.1}");
    for (x, y) in &placed[1..] {
        let _ = match style {
            Style::Steps => write!(path, "H{x:.1}V{y:.1}"),
            _ => write!(path, "L{x:.1} {y:.1}"),
        };
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
         stroke-linejoin=\"round\"{}/>",
        dashes(Some(style))
    );
}

fn bars(svg: &mut String, placed: &[(f64, f64)], colour: &str, (at, of): (usize, usize)) {
    let apart = placed.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let group = apart.fold(RIGHT - LEFT, f64::min) * 0.8;
    let wide = (group / of as f64).min(40.0);
    for (x, y) in placed {
        let left = x - wide * of as f64 / 2.0 + wide * at as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             fill=\"{colour}\"/>",
            (wide - 1.0).max(0.5),
            BOTTOM - y
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast of a colour with a grey level, as WCAG 2.1 counts it.
    fn contrast(colour: &str, grey: f64) -> f64 {
        let channel = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("two digits");
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let light = 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
        let (more, less) = if light > grey { (light, grey) } else { (grey, light) };
        (more + 0.05) / (less + 0.05)
    }

    #[test]
    fn every_colour_is_seen_on_white_and_on_near_black() {
        for colour in COLOURS.into_iter().chain([TEXT]) {
            let near_black = 0.006;
            assert!(contrast(colour, 1.0) >= 3.0, "{colour} {}", contrast(colour, 1.0));
            assert!(contrast(colour, near_black) >= 3.0, "{colour}");
        }
    }

    #[test]
    fn what_is_drawn_stands_where_the_axes_say() {
        let svg = Chart::new("t", Axis::linear("x"), Axis::linear("y").to(10.0))
            .with(Series::new("ours", Style::Line, [(0.0, 0.0), (10.0, 10.0)]))
            .with(Series::new("theirs", Style::Printed, [(0.0, 5.0)]))
            .reference("printed", 5.0)
            .svg();
        assert!(svg.contains(&format!("M{LEFT:.1} {BOTTOM:.1}L{RIGHT:.1} {TOP:.1}")), "{svg}");
        assert!(svg.contains("stroke-dasharray"));
        for name in ["ours", "theirs", "printed"] {
            assert!(svg.contains(&format!(">{name}</text>")));
        }
    }

    #[test]
    fn stacked_charts_are_one_picture() {
        let chart = Chart::new("one", Axis::linear("x"), Axis::linear("y"));
        let svg = Chart::stacked("both", [&chart, &chart]);
        assert_eq!((svg.matches("<svg").count(), svg.matches("</svg>").count()), (1, 1));
        assert_eq!(svg.matches("<title>one<").count(), 2, "{svg}");
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let points = [(1.0, 0.0), (f64::NAN, 1.0), (2.0, 3.0)];
        let svg = Chart::new("t", Axis::linear("x"), Axis::logarithmic("y"))
            .with(Series::new("a <b>", Style::Dots, points))
            .svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains("a &lt;b&gt;"));
    }

    /// Where labels of the axis below stand, and how far they reach.
    fn labels(svg: &str) -> Vec<(f64, f64)> {
        let y = format!("y=\"{:.1}\"", BOTTOM + 18.0);
        let lines = svg.lines().filter(|line| line.starts_with("<text") && line.contains(&y));
        lines
            .map(|line| {
                let x = line.split_once("x=\"").unwrap().1.split_once('"').unwrap().0;
                let words = line.split_once('>').unwrap().1.split_once('<').unwrap().0;
                (x.parse().unwrap(), 6.5 * words.chars().count() as f64 / 2.0)
            })
            .collect()
    }

    #[test]
    fn labels_of_an_axis_do_not_run_into_each_other() {
        let axes = [Axis::logarithmic("x"), Axis::linear("x")];
        let ends = [(0.001, 1e9), (1e6, 3e8), (0.0, 123_456_789.0), (1e-3, 100.0)];
        for (axis, (low, high)) in axes.iter().flat_map(|axis| ends.map(|ends| (axis, ends))) {
            let points = [(low, 0.0), (high, 1.0)];
            let svg = Chart::new("t", axis.clone(), Axis::linear("y"))
                .with(Series::new("", Style::Line, points))
                .svg();
            let labels = labels(&svg);
            assert!(labels.len() > 1, "{low} {high}: {svg}");
            for pair in labels.windows(2) {
                assert!(pair[0].0 + pair[0].1 < pair[1].0 - pair[1].1, "{low} {high}: {pair:?}");
            }
        }
    }

    #[test]
    fn shaded_spans_stand_behind_the_lines_at_their_times() {
        let chart = Chart::new("t", Axis::linear("x"), Axis::linear("y")).with(Series::new(
            "",
            Style::Line,
            [(0.0, 0.0), (10.0, 10.0)],
        ));
        assert!(!chart.clone().shaded("faults", []).svg().contains("faults"));
        let svg = chart.shaded("faults", [(2.5, 5.0), (7.5, 7.5)]).svg();
        let quarter = (RIGHT - LEFT) / 4.0;
        for (left, wide) in [(LEFT + quarter, quarter), (LEFT + 3.0 * quarter, 2.0)] {
            let rect = format!("<rect x=\"{left:.1}\" y=\"{TOP:.1}\" width=\"{wide:.1}\"");
            assert!(svg.find(&rect) < svg.find("<path") && svg.contains(&rect), "{rect} {svg}");
        }
        assert!(svg.contains(">faults</text>"));
    }
}
