//! Results on standard output: JSON for programs, words and tables for people.
//!
//! Invariant: a reader that goes away early (`| head`) ends the output, not the
//! command with an error.

use crate::failure::Failure;
pub use report::{Table, counted, percent, span};
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
