//! A drive with a queue of commands.
//!
//! A hard disk serves one command at a time and takes next the one that its heads
//! reach first (rotational-position order); a command that has waited longer than
//! the queue's patience goes before all that came later, so that nobody waits for
//! ever. A flash device works on all of its commands at once.
//!
//! A drive may be in trouble, too: it stands still for a time, is slow in places, or
//! its power fails.
//!
//! Invariants: no more commands inside than the depth; a flush completes after all
//! that came before it and before anything that came later begins; nothing is
//! allocated after the queue was made, but for places that are slow.

use crate::{Drive, Emulated, Model};
use alloc::vec::Vec;
use core::ops::Range;
use units::{Command, Duration, Instant, Lba};

/// A command inside, under the caller's name for it.
#[derive(Clone, Copy, Debug)]
struct Inside {
    tag: u64,
    command: Command,
    /// Past all caches.
    forced: bool,
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
    /// Where commands take so many times as long.
    slow: Vec<(Range<Lba>, u64)>,
}

impl CommandQueue {
    /// The longest that drives mostly let a command wait for others that are nearer: about what
    /// kernels wait before they take a drive for dead (30 s), with room.
    pub const PATIENCE: Duration = Duration::from_secs(2);

    /// A drive that takes up to `depth` commands, at least one, and prefers those
    /// that have waited for `patience` to those that are near.
    pub fn new(model: &Model, depth: usize, patience: Duration) -> Self {
        assert!(depth > 0, "a queue without room");
        Self {
            drive: Emulated::new(model),
            inside: Vec::with_capacity(depth),
            depth,
            patience,
            idle_since: Instant::EPOCH,
            slow: Vec::new(),
        }
    }

    /// The drive.
    pub fn drive(&self) -> &Emulated {
        &self.drive
    }

    /// The drive, to spoil its sectors.
    pub fn drive_mut(&mut self) -> &mut Emulated {
        &mut self.drive
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
        self.take(Inside { tag, command, forced: false, arrived: now, end: None })
    }

    /// As [`CommandQueue::submit`], with access to the medium forced.
    ///
    /// # Errors
    /// Hands the command back when the queue is full.
    pub fn submit_forced(
        &mut self,
        now: Instant,
        tag: u64,
        command: Command,
    ) -> Result<(), Command> {
        self.take(Inside { tag, command, forced: true, arrived: now, end: None })
    }

    fn take(&mut self, inside: Inside) -> Result<(), Command> {
        if self.inside.len() == self.depth {
            return Err(inside.command);
        }
        let now = inside.arrived;
        self.inside.push(inside);
        self.begin(now.max(self.idle_since));
        Ok(())
    }

    /// When the next command completes.
    pub fn next_completion(&self) -> Option<Instant> {
        self.next().map(|(_, end)| end)
    }

    /// The next command that completes, and when it will.
    pub fn next(&self) -> Option<(u64, Instant)> {
        let ends = self.inside.iter().filter_map(|inside| Some((inside.tag, inside.end?)));
        ends.min_by_key(|&(_, end)| end)
    }

    /// The drive stands still from `now` on for `span`: what is under way ends so
    /// much later, and nothing begins before.
    pub fn stall(&mut self, now: Instant, span: Duration) {
        self.idle_since = self.idle_since.max(now) + span;
        for inside in &mut self.inside {
            if let Some(end) = &mut inside.end {
                *end = (*end).max(now) + span;
            }
        }
    }

    /// Commands that touch these sectors take `times` as long, from the next one
    /// that begins; where several such places are touched, the slowest counts.
    pub fn slow(&mut self, sectors: Range<Lba>, times: u64) {
        self.slow.push((sectors, times));
    }

    /// Every place is as quick as the model says.
    pub fn slow_nowhere(&mut self) {
        self.slow.clear();
    }

    /// The power fails at `now` and is back after `off`: commands inside are never
    /// completed, caches are empty. Returns the commands that were lost, by tag.
    pub fn lose_power(&mut self, now: Instant, off: Duration) -> impl Iterator<Item = u64> {
        // The model takes no command before the end of the last one that it began.
        let ends = self.inside.iter().filter_map(|inside| inside.end).max();
        let busy = ends.unwrap_or(now).max(self.idle_since).max(now);
        self.idle_since = busy.max(now + off);
        if let Some(disk) = self.drive.hard_disk_mut() {
            disk.lose_power(busy);
        }
        self.inside.drain(..).map(|inside| inside.tag)
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
            let Inside { command, forced, .. } = self.inside[index];
            let time = match forced {
                false => self.drive.serve(now, &command),
                true => self.drive.serve_forced(now, &command),
            };
            self.inside[index].end = Some(now + time * self.slower(&command));
            if !begins_all {
                break;
            }
        }
    }

    /// How many times as long as it should the command takes.
    fn slower(&self, command: &Command) -> u64 {
        let Command::Transfer(access) = command else { return 1 };
        let touched = |sectors: &Range<Lba>| {
            access.lba.get() < sectors.end.get() && sectors.start.get() < access.end().get()
        };
        let times = self.slow.iter().filter(|(sectors, _)| touched(sectors));
        times.map(|&(_, times)| times).max().unwrap_or(1)
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
