//! What a command on this disk may take, from where the heads may be.

use alloc::collections::BTreeMap;
use disk::online::Observations;
use disk::{Head, Profile};
use units::{Access, Command, Duration, Lba};

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
    /// Of commands that are scattered over several places, by where they begin and their
    /// keys: what the other places cost.
    pub further: &'a BTreeMap<(Lba, u64), Duration>,
}

impl Predictions<'_> {
    /// As if no extent were suspect: what the command is held against.
    pub fn plain(&self, from: Lba, command: &Command) -> Duration {
        let one_place = match self.heads {
            Heads::Ours { head, at } if from == at => head.bound(self.profile, command),
            Heads::Ours { .. } => self.profile.bound(from, command),
            Heads::Anywhere => match command.access() {
                Some(access) => worst(self.profile, access),
                None => self.profile.flush(),
            },
        };
        one_place + command.access().map_or(Duration::ZERO, |access| self.further(access.lba))
    }

    /// The most that the other places of a command that begins here cost.
    fn further(&self, lba: Lba) -> Duration {
        let here = self.further.range((lba, 0)..=(lba, u64::MAX));
        here.map(|(_, &cost)| cost).max().unwrap_or_default()
    }
}

impl sched::Predict for Predictions<'_> {
    fn bound(&self, from: Lba, command: &Command) -> Duration {
        let plain = self.plain(from, command);
        self.seen.expected(command, plain).min(plain.max(self.patience))
    }
}

/// Wherever the heads come from.
pub(crate) fn worst(profile: &Profile, access: &Access) -> Duration {
    profile.worst(access.lba..access.end(), access.len, access.direction)
}
