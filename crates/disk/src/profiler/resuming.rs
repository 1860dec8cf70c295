//! A new profiler is brought to where the one that wrote a journal was stopped.

use super::Profiler;
use super::journal::{RESUMED, name, timing};
use super::question::{Options, Step};
use crate::Error;
use crate::error::ensure;
use alloc::format;
use alloc::vec::Vec;
use units::Bytes;

impl Profiler {
    /// A profiler that goes on where the one that wrote `journal` was stopped, and
    /// how many bytes of the journal it used: cut off what follows them, append
    /// [`Profiler::JOURNAL_RESUMED`], and go on.
    ///
    /// # Errors
    /// When the journal is of another target or of other options.
    pub fn resume(
        capacity: Bytes,
        options: Options,
        journal: &str,
    ) -> Result<(Self, usize), Error> {
        let mut profiler = Self::new(capacity, options)?;
        let used = replay(&mut profiler, journal)?;
        Ok((profiler, used))
    }
}

/// Gives a new profiler the answers of a journal, then tells it of the break.
/// Returns how many bytes of the journal were used; what follows them is half an
/// answer and is to be cut off before the journal goes on with [`RESUMED`].
fn replay(profiler: &mut Profiler, journal: &str) -> Result<usize, Error> {
    let whole = journal.rfind('\n').map_or("", |end| &journal[..=end]);
    let expected = profiler.journal_header();
    let Some(mut rest) = whole.strip_prefix(&expected) else {
        let first = journal.lines().next().unwrap_or_default();
        return Err(Error::Invalid(format!(
            "the journal begins {first:?}, this would write {:?}; delete it to start anew",
            expected.trim_end()
        )));
    };
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(RESUMED) {
            profiler.resumed();
            rest = after;
            continue;
        }
        let Step::Ask(question) = profiler.poll() else {
            break;
        };
        let mut answers = Vec::with_capacity(question.commands.len());
        let mut used = 0;
        for (command, line) in question.commands.iter().zip(rest.split_inclusive('\n')) {
            let answer = timing(line, command);
            ensure!(
                answer.is_some(),
                "the journal says {line:?} where {:?} was asked; delete it to start anew",
                name(command)
            );
            answers.extend(answer);
            used += line.len();
        }
        if answers.len() < question.commands.len() {
            break;
        }
        profiler.done(&answers);
        rest = &rest[used..];
    }
    profiler.resumed();
    Ok(whole.len() - rest.len())
}
