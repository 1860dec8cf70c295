//! What the command reads of files that people wrote, as texts in and verdicts out: for
//! whoever asks it about texts that nobody wrote.

use crate::failure::Failure;
use crate::plan::list;
use crate::simulate::file;
use std::path::Path;

/// A scenario of `slackline simulate`. Files that it names are read, beside `path`.
///
/// # Errors
/// The line that is wrong, what is wrong with it, and what to do.
pub fn scenario(path: &Path, text: &str) -> Result<sim::scenario::Scenario, String> {
    let read = file::parse(path, text.into(), &file::Instead::default());
    read.map(|read| read.scenario).map_err(told)
}

/// The kinds of streams in a list of `slackline plan`.
///
/// # Errors
/// As [`scenario`].
pub fn list(path: &Path, text: &str) -> Result<Vec<wire::control::PlanStream>, String> {
    list::List::parse(path, text).map(|list| list.streams).map_err(told)
}

/// One kind of streams in the words of `slackline plan --stream`.
///
/// # Errors
/// As [`scenario`].
pub fn stream(settings: &str) -> Result<wire::control::PlanStream, String> {
    list::stream(settings).map_err(told)
}

fn told(failure: Failure) -> String {
    format!("{}\n  next: {}", failure.what, failure.next_step)
}
