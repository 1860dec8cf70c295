//! What a planner may know of a disk.

use units::{Access, Command, Duration, Instant, Lba};

/// The expected time of a command that begins at `at` with the heads at `from`.
pub(super) fn expected(
    at: Instant,
    from: Lba,
    command: &Command,
    part: Part,
    motion: &dyn Motion,
) -> Duration {
    let Some(to) = command.lba() else { return Duration::ZERO };
    let Some(access) = command.access() else {
        return motion.overhead(command) + motion.seek(from, to);
    };
    if part == Part::Streamed {
        return motion.streamed(access);
    }
    let reach = motion.overhead(command) + motion.seek(from, to);
    reach + motion.rotation(at + reach, to) + motion.transfer(access)
}

/// What a command is to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A seek on the way.
    Seek,
    /// A chunk for which the heads have to be brought.
    First,
    /// A chunk that goes on where the command before it ended.
    Streamed,
    /// What follows a request that is done.
    Ahead,
}

/// Knowledge of one disk.
pub trait Mechanics {
    /// Bound on what it costs a request to be interrupted: everything that
    /// bringing the heads back to `to` from `from` takes, and the turn that may
    /// have been waited for in vain.
    fn resume(&self, from: Lba, to: Lba) -> Duration;

    /// Where arm and platters are when, of a disk of which that is known.
    fn motion(&self) -> Option<&dyn Motion> {
        None
    }
}

/// Foretells arm and platters. Expectations, not bounds: what is wrong here costs a
/// turn, never a promise.
pub trait Motion {
    /// From the start of a command until the heads could begin with it.
    fn overhead(&self, command: &Command) -> Duration;

    /// Where the disk ends: no sector from there on.
    fn end(&self) -> Lba;

    /// How many cylinders lie between the tracks of two sectors.
    fn distance(&self, from: Lba, to: Lba) -> u64;

    /// A sector about `part / parts` of the arm's way from `from` to `to`.
    fn between(&self, from: Lba, to: Lba, part: u64, parts: u64) -> Lba;

    /// The time to bring the heads from the track of one sector to that of another.
    fn seek(&self, from: Lba, to: Lba) -> Duration;

    /// From `at` until the sector comes by.
    fn rotation(&self, at: Instant, lba: Lba) -> Duration;

    /// The time of the bytes themselves, from first to last.
    fn transfer(&self, access: &Access) -> Duration;

    /// The time of a command that goes on where the one before it ended.
    fn streamed(&self, access: &Access) -> Duration;
}

/// A disk of which only a bound on any return of the heads is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounded {
    /// The bound.
    pub resume: Duration,
}

impl Mechanics for Bounded {
    fn resume(&self, _: Lba, _: Lba) -> Duration {
        self.resume
    }
}
