//! Results on standard output: JSON for programs, words and tables for people.
//!
//! Invariant: a reader that goes away early (`| head`) ends the output, not the
//! command with an error.

use crate::failure::Failure;
use serde::Serialize;
use std::io::{self, Write};

/// How results are printed.
#[derive(Clone, Copy)]
pub struct Output {
    /// As JSON.
    pub json: bool,
}

impl Output {
    /// Prints a result, as JSON or in the words of `text`.
    pub fn result<T: Serialize>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        let text = if self.json { json(value) } else { text(value) };
        print(text.as_bytes())
    }
}

/// A value as JSON over several lines.
pub fn json<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("results are JSON");
    text.push('\n');
    text
}

/// Writes to standard output.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let next_step = "correct where the output goes";
            Err(Failure::new(format!("standard output: {error}"), next_step))
        }
        _ => Ok(()),
    }
}

/// A table whose columns are as wide as what stands in them.
pub struct Table {
    rows: Vec<Vec<String>>,
    figures: Vec<bool>,
}

impl Table {
    /// A table with these headings. A heading that begins with `>` stands over
    /// figures, which stand right; words stand left.
    pub fn new(headings: &[&str]) -> Self {
        let figures = headings.iter().map(|heading| heading.starts_with('>')).collect();
        let name = |heading: &&str| heading.trim_start_matches('>').to_owned();
        Self { rows: vec![headings.iter().map(name).collect()], figures }
    }

    /// Adds a row.
    #[track_caller]
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "as many cells as headings");
        self.rows.push(cells);
    }

    /// The text, each line indented by `indent`.
    pub fn text(&self, indent: &str) -> String {
        let widths: Vec<usize> = (0..self.rows[0].len())
            .map(|column| self.rows.iter().map(|row| width(&row[column])).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::from(indent);
            for (column, cell) in row.iter().enumerate() {
                let space = " ".repeat(widths[column] - width(cell));
                let (before, after) =
                    if self.figures[column] { (&*space, "") } else { ("", &*space) };
                line.push_str(&format!("{before}{cell}{after}  "));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

/// Parts per million as a percentage with two places.
pub fn percent(ppm: u64) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}

/// A number with what it counts.
pub fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_figures_right() {
        let mut table = Table::new(&["name", ">size"]);
        table.row(vec!["a".into(), "1 MiB".into()]);
        table.row(vec!["longer".into(), "10 MiB".into()]);
        assert_eq!(table.text(" "), " name      size\n a        1 MiB\n longer  10 MiB\n");
        assert_eq!(percent(1_023_456), "102.34 %");
        assert_eq!((counted(1, "disk"), counted(0, "disk")), ("1 disk".into(), "0 disks".into()));
    }
}
