//! The journal: every answer as a line of text, enough to go on after a stop.
//!
//! One line per command: direction, sector, sectors, start and time taken in
//! nanoseconds, and `!` when it failed. A line cut short at the end, as a stop
//! leaves it, is dropped.

use super::{Effort, Options, Profiler, Question, Step, Timing};
use crate::Error;
use crate::error::ensure;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;
use units::{Bytes, Command, Direction, Duration, Instant, SECTOR};

/// The form of the lines and the order of the questions; a journal of another
/// version leads elsewhere.
const VERSION: u32 = 2;

pub(super) fn header(capacity: Bytes, options: &Options) -> String {
    let effort = match options.effort {
        Effort::Quick => "quick",
        Effort::Full => "full",
    };
    let (capacity, grain) = (capacity.get(), options.grain.get());
    let write = if options.write { "writes" } else { "reads only" };
    format!("slackline profile journal {VERSION}: {capacity} B by {grain} B, {effort}, {write}\n")
}

/// What a command is, in a line.
fn name(command: &Command) -> String {
    match command {
        Command::Flush => "F 0 0".to_string(),
        Command::Seek(lba) => format!("S {} 0", lba.get()),
        Command::Transfer(access) | Command::Forced(access) => {
            let direction = match access.direction {
                Direction::Read => 'R',
                Direction::Write => 'W',
            };
            format!("{direction} {} {}", access.lba.get(), access.len / SECTOR)
        }
    }
}

pub(super) fn entry(question: &Question, answers: &[Timing]) -> String {
    let mut text = String::new();
    for (command, answer) in question.commands.iter().zip(answers) {
        let (start, taken) = (answer.started.as_nanos(), answer.taken().as_nanos());
        let failed = if answer.failed { " !" } else { "" };
        writeln!(text, "{} {start} {taken}{failed}", name(command)).expect("a string has room");
    }
    text
}

/// The line that marks a break.
pub(super) const RESUMED: &str = "resumed\n";

fn timing(line: &str, command: &Command) -> Option<Timing> {
    let rest = line.strip_prefix(name(command).as_str())?;
    let mut words = rest.split_ascii_whitespace();
    let started = Instant::from_nanos(words.next()?.parse().ok()?);
    let taken = Duration::from_nanos(words.next()?.parse().ok()?);
    Some(Timing {
        started,
        finished: started.saturating_add(taken),
        failed: words.next() == Some("!"),
    })
}

/// Gives a new profiler the answers of a journal, then tells it of the break.
/// Returns how many bytes of the journal were used; what follows them is half an
/// answer and is to be cut off before the journal goes on with [`RESUMED`].
pub(super) fn replay(profiler: &mut Profiler, journal: &str) -> Result<usize, Error> {
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
