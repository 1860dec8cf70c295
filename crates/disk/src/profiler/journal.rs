//! The journal: every answer as a line of text, enough to go on after a stop.
//!
//! One line per command: direction, sector, sectors, start and time taken in
//! nanoseconds, and `!` when it failed. A line cut short at the end, as a stop
//! leaves it, is dropped.

use super::question::{Effort, Options, Question, Timing};
use alloc::format;
use alloc::string::{String, ToString};
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
pub(super) fn name(command: &Command) -> String {
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

/// What a line says of this command; none where it is of another.
pub(super) fn timing(line: &str, command: &Command) -> Option<Timing> {
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
