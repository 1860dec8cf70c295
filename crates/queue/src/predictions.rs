//! What a command on this disk may take, from where the heads may be.

use disk::online::Observations;
use disk::{Head, Profile};
use sched::{Class, First, Rest};
use units::{Access, Command, Duration, Lba};

/// Whether the device may have a command for this beside others: where nothing else depends on
/// when it is served.
pub type MayGoBeside<W> = fn(&W, &Class) -> bool;

/// What is known of where the heads are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heads<'a> {
    /// The device does nothing but what the queue says. Where the schedule thinks the
    /// heads to be (`at`), they are only where the last command was served from the
    /// platters; what completions tell goes before that.
    Ours { head: &'a Head, at: Lba },
    /// Others move them, too: nobody knows.
    Anywhere,
}

/// A profile as a schedule wants to ask it.
pub(crate) struct Predictions<'a> {
    pub profile: &'a Profile,
    pub heads: Heads<'a>,
    /// What is known of suspect extents, on which commands take longer than their bound.
    pub seen: &'a Observations,
    /// The most that a command on a suspect extent is waited for.
    pub patience: Duration,
    /// What the other places and parts of the request with this key cost.
    pub further: &'a dyn Fn(u64) -> Duration,
    /// How many parts of the request with this key follow on its first, each behind a gap.
    pub gaps_within: &'a dyn Fn(u64) -> u32,
    /// The first command of the request with this key and what is left after it, where it is
    /// served in several between which others may go.
    pub first: &'a dyn Fn(u64) -> Option<(Command, Rest)>,
    /// Whether the request with this key is one command, and may be with the device beside others.
    pub is_one: &'a dyn Fn(u64) -> bool,
}

impl Predictions<'_> {
    /// As if no extent were suspect: what the command is held against.
    pub fn plain(&self, from: Lba, command: &Command) -> Duration {
        match self.heads {
            Heads::Ours { head, at } if from == at => head.bound(self.profile, command),
            Heads::Ours { .. } => self.profile.bound(from, command),
            Heads::Anywhere => match command.access() {
                Some(access) => worst(self.profile, access),
                None => self.profile.flush(),
            },
        }
    }

    /// With what is known of suspect extents, where the command is held against `plain`.
    fn expected(&self, command: &Command, plain: Duration) -> Duration {
        self.seen.expected(command, plain).min(plain.max(self.patience))
    }
}

impl sched::Predict for Predictions<'_> {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        self.expected(command, self.plain(from, command))
    }

    fn bound_of(&self, from: Lba, key: u64, command: &Command) -> Duration {
        self.expected(command, self.plain(from, command) + (self.further)(key))
    }

    fn gaps_within(&self, key: u64) -> u32 {
        (self.gaps_within)(key)
    }

    fn first_of(&self, from: Lba, key: u64, _: &Command) -> Option<First> {
        let (command, rest) = (self.first)(key)?;
        Some(First { bound: sched::Predict::bound(self, from, &command), command, rest })
    }

    fn bound_anywhere(&self, key: u64, command: &Command) -> Option<Duration> {
        let access = command.access().filter(|_| (self.is_one)(key))?;
        Some(self.expected(command, worst(self.profile, access)))
    }
}

/// Wherever the heads come from.
pub(crate) fn worst(profile: &Profile, access: &Access) -> Duration {
    profile.worst(access.lba..access.end(), access.len, access.direction)
}
