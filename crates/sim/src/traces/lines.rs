//! The input of every reader: lines and records of bounded length, and where they are;
//! and the numbers that texts hold.

use super::{Place, Problem, problem};
use std::io::{BufRead, Read};

/// No line of any format is longer.
const LINE_MAX: u64 = 1 << 16;

/// An input and the place of what was read last.
pub(super) struct Lines {
    input: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    place: Place,
    offset: u64,
}

fn unreadable(error: std::io::Error) -> Problem {
    problem(format!("cannot be read: {error}"), "check the disk or the connection it comes from")
}

impl Lines {
    pub fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self { input, buffer: Vec::new(), place: Place::Line(0), offset: 0 }
    }

    /// Where the line or the record that was read last begins.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The next line without the white space around it; none at the end.
    pub fn line(&mut self) -> Result<Option<&str>, Problem> {
        if let Place::Line(line) = &mut self.place {
            *line += 1;
        }
        self.until(b'\n', LINE_MAX)?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(line) => Ok(Some(line.trim())),
            Err(_) => {
                Err(problem("no text", "the file is damaged, compressed or of another format"))
            }
        }
    }

    /// All bytes up to the next `end`, with it; at most `most` of them. Fewer at the
    /// end of the input.
    pub fn until(&mut self, end: u8, most: u64) -> Result<&[u8], Problem> {
        self.buffer.clear();
        let input = self.input.by_ref().take(most + 1);
        let read = { input }.read_until(end, &mut self.buffer).map_err(unreadable)? as u64;
        if read > most {
            let what = format!("more than {most} bytes without an end");
            return Err(problem(what, "the file is damaged or of another format"));
        }
        self.offset += read;
        Ok(&self.buffer)
    }

    /// Begins a binary record here.
    pub fn mark(&mut self) {
        self.place = Place::Offset(self.offset);
    }

    /// The next `count` bytes; none at the end, a problem where there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<Option<&[u8]>, Problem> {
        self.buffer.clear();
        let input = self.input.by_ref().take(count as u64);
        let read = { input }.read_to_end(&mut self.buffer).map_err(unreadable)?;
        self.offset += read as u64;
        match read {
            0 => Ok(None),
            _ if read < count => Err(cut()),
            _ => Ok(Some(&self.buffer)),
        }
    }
}

/// The input ends within a record.
pub(super) fn cut() -> Problem {
    problem("the file ends within a record", "fetch it again, or cut it after the record before")
}

/// A whole number.
pub(super) fn number(text: &str, what: &str) -> Result<u64, Problem> {
    let text = text.trim();
    match text.parse() {
        Ok(number) if text.starts_with(|c: char| c.is_ascii_digit()) => Ok(number),
        _ => Err(problem(
            format!("{what} is {:?}, which is no whole number", short(text)),
            "correct or remove the line",
        )),
    }
}

/// Decimal seconds in ns; places beyond the ninth are dropped.
pub(super) fn seconds(text: &str) -> Result<u128, Problem> {
    let text = text.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        let what = format!("the time is {:?}, which is no number of seconds", short(text));
        return Err(problem(what, "correct or remove the line"));
    }
    let nanos = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    Ok(u128::from(number(whole, "the time")?) * 1_000_000_000 + nanos)
}

/// As much of a text as a message can hold.
pub(super) fn short(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact_to_the_nanosecond() {
        for (text, ns) in [
            ("0", 0),
            ("1.5", 1_500_000_000),
            ("0.000000001", 1),
            ("12.0000000019", 12_000_000_001),
            ("99999999999.25", 99_999_999_999_250_000_000),
        ] {
            assert_eq!(seconds(text).unwrap(), ns, "{text}");
        }
        for text in ["", ".", "1.", ".5", "-1", "1e3", "1.2.3", "99999999999999999999999"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
