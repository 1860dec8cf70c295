//! How a command fails: one line what, one line what to do next, and a code.

use client::{Code, Error, Problem};
use serde::Serialize;
use std::process::ExitCode;

/// The exit code of a failure that is not one of the others.
pub const FAILED: u8 = 1;
/// The exit code of wrong usage; clap uses the same.
pub const USAGE: u8 = 2;
/// The exit code of what admission or a quota refused.
pub const REFUSED: u8 = 3;

/// The exit code of a recording whose source had more than its contract let pass.
pub const SLOWED: u8 = 4;

/// A failed command.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// What went wrong.
    #[serde(rename = "detail")]
    pub what: String,
    /// What to do next.
    pub next_step: String,
    /// The code that the process ends with.
    pub exit_code: u8,
    /// What the daemon said, with all figures, where it was the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Box<Problem>>,
    /// Told on one line: all programs of a daemon have it at once where that ends.
    #[serde(skip)]
    pub is_short: bool,
}

impl Failure {
    /// A failure of no special kind.
    pub fn new(what: impl Into<String>, next_step: impl Into<String>) -> Self {
        let (what, next_step) = (what.into(), next_step.into());
        Self { what, next_step, exit_code: FAILED, problem: None, is_short: false }
    }

    /// Arguments that do not go together.
    pub fn usage(what: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { exit_code: USAGE, ..Self::new(what, next_step) }
    }

    /// A file that the system refuses.
    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        let path = path.display();
        // A disk's image or a film where a text was meant: that the path is right helps nobody.
        if error.kind() == std::io::ErrorKind::InvalidData {
            return Self::new(format!("{path} is not a text file"), "give a file of text (UTF-8)");
        }
        Self::new(format!("{path}: {error}"), report::mend_path(error.kind()))
    }

    /// This one, and another that was found beside it: both are told, with what to do about each.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            what: format!("{}; and {}", self.what, other.what),
            next_step: format!("{}; and {}", self.next_step, other.next_step),
            ..self
        }
    }

    /// Tells the person, or the program, and gives the code to end with.
    pub fn report(&self, json: bool) -> ExitCode {
        if json {
            eprintln!("{}", serde_json::to_string(self).expect("a failure is JSON"));
        } else if self.is_short {
            eprintln!("slackline: {}; {}", self.what, self.next_step);
        } else {
            eprintln!("slackline: {}", self.what);
            if !self.next_step.is_empty() {
                eprintln!("  next: {}", self.next_step);
            }
        }
        ExitCode::from(self.exit_code)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let refused = matches!(problem.code, Code::Refused | Code::Quota);
        Self {
            what: if refused {
                format!("refused: {}", problem.detail)
            } else {
                problem.detail.clone()
            },
            next_step: problem.next_step.clone(),
            exit_code: if refused { REFUSED } else { FAILED },
            problem: Some(Box::new(problem)),
            is_short: false,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Problem(problem) => (*problem).into(),
            other => {
                let is_short = matches!(other, Error::Broken(_));
                Self { is_short, ..Self::new(other.to_string(), other.next_step()) }
            }
        }
    }
}
