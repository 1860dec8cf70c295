//! What the demo is doing, on standard error: one line that is written over on
//! a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Between lines where they are not written over.
const INTERVAL: Duration = Duration::from_secs(5);

/// The line.
pub struct Progress {
    terminal: bool,
    told: Option<Instant>,
    /// How far the step has come since that was told.
    since: Option<String>,
}

impl Progress {
    /// For this process's standard error.
    pub fn new() -> Self {
        Self { terminal: stderr().is_terminal(), told: None, since: None }
    }

    /// A step begins or has ended: always told, and kept.
    pub fn step(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(stderr(), "{text}"); // nobody to tell that nobody can be told
        (self.told, self.since) = (Some(Instant::now()), None);
    }

    /// How far a step has come.
    pub fn update(&mut self, text: &str) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K  {text}");
            let _ = stderr().flush();
        } else if self.told.is_none_or(|told| told.elapsed() >= INTERVAL) {
            let _ = writeln!(stderr(), "  {text}");
            (self.told, self.since) = (Some(Instant::now()), None);
        } else {
            self.since = Some(text.into());
        }
    }

    /// The step has ended: where lines stay, the last one says how far it came.
    pub fn ended(&mut self) {
        if let Some(text) = self.since.take() {
            let _ = writeln!(stderr(), "  {text}");
        }
        self.told = None;
    }

    /// Takes the line away that would be written over.
    pub fn clear(&mut self) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
