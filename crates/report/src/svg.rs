//! What every picture is made of.
//!
//! No background is drawn and every colour has at least 3:1 against white and
//! against near-black, so that one file serves light and dark pages.

use std::fmt::Write;

/// The colour of words.
pub const TEXT: &str = "#7d8590";
/// The colour of grid lines.
pub const GRID: &str = "#7d859055";

/// A picture of this size up to its title, which begins at `left`.
pub fn begin(title: &str, [width, height]: [f64; 2], left: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"13\" \
         role=\"img\">\n<title>{0}</title>\n\
         <text x=\"{left}\" y=\"26\" font-size=\"17\" font-weight=\"600\" fill=\"{TEXT}\">{0}\
         </text>\n",
        escape(title)
    )
}

/// A straight line.
pub fn line(svg: &mut String, [x1, y1, x2, y2]: [f64; 4], colour: &str, width: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" \
         stroke-width=\"{width}\"/>"
    );
}

/// Words at a place.
pub fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let words = escape(words);
    let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"");
    let _ = writeln!(svg, "<text {place} fill=\"{TEXT}\">{words}</text>");
}

/// As the text of an element.
pub fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Words at the left edge that are read from below, about the height `y`.
pub fn upwards(svg: &mut String, y: f64, words: &str) {
    let words = escape(words);
    let turned = format!("transform=\"rotate(-90 20 {y})\" x=\"20\" y=\"{y}\"");
    let _ = writeln!(svg, "<text {turned} text-anchor=\"middle\" fill=\"{TEXT}\">{words}</text>");
}
