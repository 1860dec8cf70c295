//! A drive with a queue of commands.
//!
//! A hard disk serves one command at a time and takes next the one that its heads
//! reach first (rotational-position order); a command that has waited longer than
//! the queue's patience goes before all that came later, so that nobody waits for
//! ever. A flash device works on all of its commands at once.
//!
//! Invariants: no more commands inside than the depth; a flush completes after all
//! that came before it and before anything that came later begins; nothing is
//! allocated after the queue was made.

use crate::{Drive, Emulated, Model};
use alloc::vec::Vec;
use units::{Command, Duration, Instant};

/// A command inside, under the caller's name for it.
#[derive(Clone, Copy, Debug)]
struct Inside {
    tag: u64,
    command: Command,
    arrived: Instant,
    /// When it will complete; none while it waits.
    end: Option<Instant>,
}

/// A drive of any kind that takes several commands at once.
#[derive(Clone, Debug)]
pub struct CommandQueue {
    drive: Emulated,
    /// In order of arrival.
    inside: Vec<Inside>,
    depth: usize,
    patience: Duration,
    idle_since: Instant,
}

impl CommandQueue {
    /// A drive that takes up to `depth` commands, at least one, and prefers those
    /// that have waited for `patience` to those that are near.
    pub fn new(model: &Model, depth: usize, patience: Duration) -> Self {
        assert!(depth > 0, "a queue without room");
        let inside = Vec::with_capacity(depth);
        Self { drive: Emulated::new(model), inside, depth, patience, idle_since: Instant::EPOCH }
    }

    /// The drive.
    pub fn drive(&self) -> &Emulated {
        &self.drive
    }

    /// How many commands are inside.
    pub fn len(&self) -> usize {
        self.inside.len()
    }

    /// True when no command is inside.
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    /// Gives the drive a command at `now`; calls come in order of time, and all
    /// completions up to `now` were fetched before.
    ///
    /// # Errors
    /// Hands the command back when the queue is full; fetch a completion first.
    pub fn submit(&mut self, now: Instant, tag: u64, command: Command) -> Result<(), Command> {
        if self.inside.len() == self.depth {
            return Err(command);
        }
        self.inside.push(Inside { tag, command, arrived: now, end: None });
        self.begin(now.max(self.idle_since));
        Ok(())
    }

    /// When the next command completes.
    pub fn next_completion(&self) -> Option<Instant> {
        self.inside.iter().filter_map(|inside| inside.end).min()
    }

    /// The next command that has completed by `now`, and when it did.
    pub fn complete(&mut self, now: Instant) -> Option<(u64, Instant)> {
        let (index, end) = (self.inside.iter().enumerate())
            .filter_map(|(index, inside)| Some((index, inside.end?)))
            .min_by_key(|&(_, end)| end)
            .filter(|&(_, end)| end <= now)?;
        let done = self.inside.remove(index);
        self.idle_since = end;
        self.begin(end);
        Some((done.tag, end))
    }

    /// Begins with what may begin at `now`.
    fn begin(&mut self, now: Instant) {
        let begins_all = matches!(self.drive, Emulated::Flash(_));
        while let Some(index) = self.choose(now) {
            let time = self.drive.serve(now, &self.inside[index].command);
            self.inside[index].end = Some(now + time);
            if !begins_all {
                break;
            }
        }
    }

    /// The command to begin with: none while a hard disk is busy, and none past a
    /// flush that waits or is under way.
    fn choose(&self, now: Instant) -> Option<usize> {
        let is_flush = |inside: &Inside| inside.command == Command::Flush;
        let flush = self.inside.iter().position(is_flush);
        if flush == Some(0) {
            return self.inside[0].end.is_none().then_some(0);
        }
        let open = &self.inside[..flush.unwrap_or(self.inside.len())];
        let Emulated::HardDisk(disk) = &self.drive else {
            return open.iter().position(|inside| inside.end.is_none());
        };
        if self.inside.iter().any(|inside| inside.end.is_some()) {
            return None;
        }
        let oldest = open.first()?;
        if now.saturating_since(oldest.arrived) >= self.patience {
            return Some(0);
        }
        let reach = |inside: &Inside| {
            inside.command.access().map_or(Duration::ZERO, |access| disk.positioning(now, access))
        };
        let nearest = open.iter().enumerate().min_by_key(|&(index, inside)| (reach(inside), index));
        nearest.map(|(index, _)| index)
    }
}
