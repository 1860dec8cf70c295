//! What people look at: charts as SVG, tables, and static pages of HTML.
//!
//! One job: one consistent look, for the reports of `simulate` and `lab`, for the
//! pictures of the command, and for what the daemon tells people. Nothing here knows what a disk is; numbers are drawn
//! as they come, in the unit that the caller names. Pages need no network and no
//! script, and are readable on a phone, in a light and in a dark room.

mod chart;
mod cumulative;
mod page;
mod scale;
pub mod svg;
mod table;
mod words;

pub use chart::{Chart, Reference, Series, Style};
pub use cumulative::longer_than;
pub use page::Page;
pub use scale::Axis;
pub use table::{Mood, Table};
pub use words::{counted, mend_path, percent, plain, quoted, span, stream_on};

/// A number in at most three significant digits, as people write it: no exponent,
/// thousands apart.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    if digits > 9 {
        return format!("{value:.2e}");
    }
    let text = format!("{value:.*}", digits.max(0) as usize);
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    apart(&text)
}

/// Thousands of a whole number set apart by commas.
fn apart(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    if digits.contains('.') || digits.len() < 5 {
        return text.to_owned();
    }
    let mut out = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_short_and_plain() {
        let cases = [
            (0.0, "0"),
            (0.01234, "0.0123"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (9.996, "10"),
            (123.4, "123"),
            (1234.0, "1234"),
            (1_234_567.0, "1,234,567"),
            (-98_765.4, "-98,765"),
            (f64::NAN, "-"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
