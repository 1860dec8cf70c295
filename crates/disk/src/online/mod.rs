//! What a disk does, held against what its profile says, command by command.
//!
//! Every completion goes into [`Observations`]: statistics by part of the disk, size
//! and direction; whether more commands exceed their bound than the profile states;
//! whether commands of one kind take longer than they did at first; and which extents
//! are bad or slow. From these follows a [`Verdict`] on the profile and the list of
//! [`Suspect`] extents.
//!
//! Invariants: integers alone; memory is bounded, however long a disk runs (tables of
//! fixed size at the most); one overrun decides nothing, neither on the profile nor on
//! an extent. Failed commands tell of extents, not of time. Commands on extents that
//! are suspect already, and so explained, do not speak against the profile.

mod cells;
mod evidence;
mod extents;

pub use cells::{Cell, RATIO_STEPS, REGIONS};
pub use extents::{SUSPECTS_MAX, Suspect};

use crate::Profile;
use alloc::vec::Vec;
use cells::{Cells, Drift};
use core::fmt;
use evidence::Evidence;
use extents::{Extents, Offence};
use units::{Bytes, Command, Direction, Duration, Instant};

/// The share of commands that may exceed their bound, in parts per million: bounds
/// are given at a confidence of 0.999 or better.
pub const STATED_PPM: u64 = 1_000;

/// A command that has ended, with what was foretold of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What was done.
    pub command: Command,
    /// Upper bound on its time from where the head was, the device's pipeline
    /// ([`Profile::latency`]) included.
    pub bound: Duration,
    /// The device time that it took.
    pub actual: Duration,
    /// It found the device empty. What it took beside others tells of them as well.
    pub alone: bool,
    /// The device did it; else it failed.
    pub good: bool,
    /// When it ended.
    pub now: Instant,
}

/// What is to be thought of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Nothing speaks against it.
    #[default]
    Fresh,
    /// Commands take longer than commands of their kind did at first.
    Drifted {
        /// How long they take of late, in parts per million of what they took at first.
        ppm: u64,
    },
    /// What it says is not so.
    Stale {
        /// In what.
        why: Staleness,
    },
}

/// In what a profile is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staleness {
    /// More commands exceed their bounds than it states, beyond chance.
    Overruns {
        /// The share of late, in parts per million.
        ppm: u64,
        /// The share that it states.
        stated: u64,
    },
    /// It is of a disk of another size.
    Capacity {
        /// What the profile says.
        profile: Bytes,
        /// What the device has.
        device: Bytes,
    },
}

/// What was seen of a disk, in a few numbers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Observed {
    /// What is to be thought of the profile.
    pub verdict: Verdict,
    /// Commands with a bound that ended well.
    pub commands: u64,
    /// Those that took longer than their bound.
    pub overruns: u64,
    /// Mean of time by bound, in parts per million.
    pub ratio_ppm: u64,
    /// How long commands take of late, in parts per million of what they took at
    /// first; a million until enough is known.
    pub drift_ppm: u64,
    /// Bad and slow extents, in the order of the disk.
    pub suspects: Vec<Suspect>,
}

/// All that was seen of one disk.
#[derive(Clone, Debug)]
pub struct Observations {
    profile: Bytes,
    device: Bytes,
    cells: Cells,
    drift: Drift,
    evidence: Evidence,
    extents: Extents,
}

impl Observations {
    /// Nothing seen yet of a device of that size, of which `profile` is to hold.
    pub fn new(profile: &Profile, device: Bytes) -> Self {
        Self {
            profile: profile.capacity(),
            device,
            cells: Cells::new(profile.capacity()),
            drift: Drift::default(),
            evidence: Evidence::default(),
            extents: Extents::default(),
        }
    }

    /// Learns from a command. True when [`Observations::suspects`] changed.
    pub fn completed(&mut self, profile: &Profile, done: &Completion) -> bool {
        let access = done.command.access();
        let ratio = ratio(done.actual, done.bound);
        if !done.good {
            return access.is_some_and(|access| {
                self.extents.visited(access, done.now, ratio, Some(Offence::Error))
            });
        }
        if done.bound.is_zero() {
            return false; // a seek to nowhere
        }
        let over = done.actual > done.bound;
        let Some(access) = access else {
            self.evidence.add(over);
            return false;
        };
        // Held against the commands before it, not against itself.
        let slow = over && ratio > self.cells.mean_ratio(access).saturating_mul(2);
        let explained = self.extents.is_suspect(access);
        let changed = self.extents.visited(access, done.now, ratio, slow.then_some(Offence::Slow));
        self.cells.add(access, done.actual, ratio);
        if !explained {
            self.evidence.add(over);
            // What a cache takes depends on what is in it, and where the arm stays it
            // depends on when the next request comes: on the load, not on the disk.
            let mechanics = done.actual > profile.quickest(access);
            if done.alone && mechanics && profile.moves(access, done.bound) {
                self.drift.add(access, done.bound, ratio);
            }
        }
        changed
    }

    /// What is to be thought of the profile.
    pub fn verdict(&self) -> Verdict {
        let extents = |size: Bytes| size / Bytes::MIB;
        if extents(self.profile) != extents(self.device) {
            let (profile, device) = (self.profile, self.device);
            return Verdict::Stale { why: Staleness::Capacity { profile, device } };
        }
        if let Some(ppm) = self.evidence.alarm() {
            return Verdict::Stale { why: Staleness::Overruns { ppm, stated: STATED_PPM } };
        }
        match self.drift.alarm() {
            Some(ppm) => Verdict::Drifted { ppm },
            None => Verdict::Fresh,
        }
    }

    /// How long commands take of late, in parts per million of what commands of their
    /// kind took at first; a million until enough is known.
    pub fn drift_ppm(&self) -> u64 {
        self.drift.ppm()
    }

    /// Extents that failed, or were slow again and again, in the order of the disk.
    pub fn suspects(&self) -> impl Iterator<Item = Suspect> + '_ {
        self.extents.suspects()
    }

    /// Extents that an earlier life of the pool found bad or slow.
    pub fn remember(&mut self, suspects: impl IntoIterator<Item = Suspect>) {
        self.extents.remember(suspects);
    }

    /// Whether a command touches an extent that is suspect, which explains what it takes.
    pub fn is_explained(&self, command: &Command) -> bool {
        command.access().is_some_and(|access| self.extents.is_suspect(access))
    }

    /// How long a command with this bound has to be expected to take: on suspect
    /// extents as long as the longest on them did, and a quarter on top.
    pub fn expected(&self, command: &Command, bound: Duration) -> Duration {
        let worst = command.access().and_then(|access| self.extents.worst(access));
        let Some(worst) = worst.filter(|&worst| worst > 1_000_000) else { return bound };
        let nanos = u128::from(bound.as_nanos()) * u128::from(worst + worst / 4) / 1_000_000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Statistics of a part of the disk (of [`REGIONS`]), a size class (the logarithm
    /// of the sectors, rounded up) and a direction; only where something was seen.
    pub fn cells(&self) -> impl Iterator<Item = (u8, u8, Direction, &Cell)> {
        self.cells.iter()
    }

    /// The whole in a few numbers.
    pub fn observed(&self) -> Observed {
        let (commands, sum) = self.cells.total();
        Observed {
            verdict: self.verdict(),
            commands: self.evidence.commands,
            overruns: self.evidence.overruns,
            ratio_ppm: sum.checked_div(commands).unwrap_or(0),
            drift_ppm: self.drift_ppm(),
            suspects: self.suspects().collect(),
        }
    }
}

/// Time by bound in parts per million; a thousand times the bound is as good as more.
fn ratio(actual: Duration, bound: Duration) -> u64 {
    let ppm = u128::from(actual.as_nanos()) * 1_000_000 / u128::from(bound.as_nanos().max(1));
    u64::try_from(ppm).unwrap_or(u64::MAX).min(1_000_000_000)
}

/// Parts per million as percent, with a figure or two.
struct Percent(u64);
impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ppm @ 100_000.. => write!(f, "{} %", ppm / 10_000),
            ppm @ 1_000.. => write!(f, "{}.{} %", ppm / 10_000, ppm / 1_000 % 10),
            ppm => write!(f, "0.{:03} %", ppm / 10),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fresh => f.write_str("fresh"),
            Self::Drifted { ppm } => write!(
                f,
                "drifted: commands take {} longer than at first",
                Percent(ppm.saturating_sub(1_000_000))
            ),
            Self::Stale { why: Staleness::Overruns { ppm, stated } } => write!(
                f,
                "stale: {} of commands took longer than their bound ({} stated)",
                Percent(*ppm),
                Percent(*stated)
            ),
            Self::Stale { why: Staleness::Capacity { profile, device } } => {
                write!(f, "stale: it is of a disk of {profile}, and this one has {device}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use alloc::string::ToString;

    #[test]
    fn a_profile_of_another_size_is_stale_and_verdicts_are_told_in_words() {
        let profile = Profile::of(&Model::named("quantum-atlas-ii").unwrap());
        let capacity = profile.capacity();
        assert_eq!(Observations::new(&profile, capacity).verdict(), Verdict::Fresh);
        let other = Observations::new(&profile, capacity - Bytes::mib(1)).verdict();
        assert!(other.to_string().starts_with("stale: it is of a disk of 4.24 GiB"), "{other}");
        let why = Staleness::Overruns { ppm: 12_345, stated: STATED_PPM };
        assert_eq!(
            Verdict::Stale { why }.to_string(),
            "stale: 1.2 % of commands took longer than their bound (0.1 % stated)"
        );
        let drifted = Verdict::Drifted { ppm: 1_301_000 }.to_string();
        assert_eq!(drifted, "drifted: commands take 30 % longer than at first");
    }
}
