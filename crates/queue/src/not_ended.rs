//! What can be said of a request before it ends.
//!
//! Accounts are kept at the end of commands: of a command that does not come back nothing is counted. A
//! request under contract that the device has begun with, and that is late, counts here from its deadline
//! until its end, and in the account from then on: at any time once. (One that waits may be taken back, and
//! then does not count at all.)

use crate::account::Account;
use crate::queue::{Queue, Use};
use sched::Class;
use units::{Command, Duration, Instant};

/// The command that the device has had for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// When the queue gave it to the device.
    pub given: Instant,
    /// What it takes at the most by the profile.
    pub bound: Duration,
}

impl<W> Queue<W> {
    /// All commands that have not ended, by key: what they are for, and what they do.
    pub fn commands(&self) -> impl Iterator<Item = (u64, &W, Option<Command>)> {
        self.commands.range(..).map(|(key, entry)| (key, &entry.work, entry.command))
    }

    /// What a command that has not ended is for.
    pub fn work(&self, key: u64) -> Option<&W> {
        self.commands.get(key).map(|entry| &entry.work)
    }

    /// The same, and what its other parts are for that have not been started.
    pub fn works(&self, key: u64) -> impl Iterator<Item = &W> {
        let entry = self.commands.get(key).into_iter();
        entry.flat_map(|entry| {
            let rest = entry.rest.iter().map(|(_, work)| work);
            core::iter::once(&entry.work).chain(rest)
        })
    }

    /// The same, to change.
    pub fn work_mut(&mut self, key: u64) -> Option<&mut W> {
        self.commands.get_mut(key).map(|entry| &mut entry.work)
    }

    /// The class of a command that waits for the device.
    pub fn class_of(&self, key: u64) -> Option<Class> {
        let waiting = self.schedule.queues().get(key).filter(|_| !self.has_begun(key));
        waiting.map(|waiting| waiting.class)
    }

    pub(crate) fn has_begun(&self, key: u64) -> bool {
        self.commands.get(key).is_some_and(|entry| entry.begun)
    }

    /// Whether a command has not been started.
    pub fn waits(&self, key: u64) -> bool {
        self.class_of(key).is_some() || (self.instant.contains(&key) && !self.has_begun(key))
    }

    /// Whether a command that waits has been released by now.
    pub fn is_released(&self, key: u64, now: Instant) -> bool {
        self.schedule.times(key).is_some_and(|times| times.release <= now)
    }

    /// By when a command that waits or is with the device is done, as its contract goes; or what is
    /// left of it that needs no device.
    pub fn due(&self, key: u64) -> Option<Instant> {
        let in_schedule = self.schedule.times(key).map(|times| times.deadline);
        let over = || Some(self.commands.get(key)?.times?.1);
        Some(in_schedule.or_else(over)?.saturating_add(self.device.advance))
    }

    /// The command that the device has had for longest; none where it has none.
    pub fn oldest(&self) -> Option<Oldest> {
        let (given, key) = self.begun.oldest()?;
        let others = match self.device.usage {
            Use::Alone => Duration::ZERO,
            Use::Shared { others } => others,
        };
        let predicted = self.commands.get(key)?.predicted;
        Some(Oldest { given, bound: predicted + self.device.profile.latency() + others })
    }

    /// The requests that the device has begun with, with those that its commands serve, too.
    pub fn begun(&self) -> impl Iterator<Item = u64> {
        self.begun.keys().flat_map(|key| {
            let others = self.merged.get(&key).into_iter().flatten();
            core::iter::once(key).chain(others.copied())
        })
    }

    /// By how much a request that has not ended is late by now; zero where it is not, or has no deadline.
    pub fn late_by(&self, key: u64, now: Instant) -> Duration {
        self.due(key).map_or(Duration::ZERO, |due| now.saturating_since(due))
    }

    /// [`Queue::account`], with what is late by now of the requests that the device has begun with.
    pub fn account_at(&self, now: Instant) -> Account {
        let mut account = self.account;
        self.begun().for_each(|key| account.count_late(self.late_by(key, now)));
        account
    }
}
