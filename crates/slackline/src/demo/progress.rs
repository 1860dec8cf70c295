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
}

impl Progress {
    /// For this process's standard error.
    pub fn new() -> Self {
        Self { terminal: stderr().is_terminal(), told: None }
    }

    /// A step begins or has ended: always told, and kept.
    pub fn step(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(stderr(), "{text}"); // nobody to tell that nobody can be told
        self.told = Some(Instant::now());
    }

    /// How far a step has come.
    pub fn update(&mut self, text: &str) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K  {text}");
            let _ = stderr().flush();
        } else if self.told.is_none_or(|told| told.elapsed() >= INTERVAL) {
            let _ = writeln!(stderr(), "  {text}");
            self.told = Some(Instant::now());
        }
    }

    /// Takes the line away that would be written over.
    pub fn clear(&mut self) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
