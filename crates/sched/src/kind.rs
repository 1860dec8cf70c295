//! A policy that can be chosen: its name, what it promises, how it starts.
//!
//! The table of a program is open: whoever writes a policy makes one [`PolicyKind`], and
//! `sched` knows of none but those that keep contracts, and of the order that the analysis
//! takes for granted.

use crate::admission::Admission;
use crate::policy::Policy;
use crate::settings::{Setting, Settings, WrongSetting};
use alloc::boxed::Box;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

/// What a policy promises, besides an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// No request of a task that the exact analysis admits is late while costs stay within
    /// bounds, whatever else comes. Some that do not promise this keep what another analysis
    /// admits ([`PolicyKind::admission`]).
    pub contracts: bool,
    /// Every best-effort request is served in the end, whatever best effort comes
    /// after it, while tasks keep to their contracts and leave some of the disk.
    pub everyone: bool,
}

impl Promise {
    /// Neither.
    pub const NOTHING: Self = Self { contracts: false, everyone: false };
    /// Everyone is served; contracts are not kept.
    pub const EVERYONE: Self = Self { contracts: false, everyone: true };
    /// Contracts are kept, and everyone is served.
    pub const BOTH: Self = Self { contracts: true, everyone: true };
}

/// A policy that a schedule can follow, with the values of its settings. Two with the same
/// name and the same values are the same.
#[derive(Clone, Copy)]
pub struct PolicyKind {
    /// The name that people write. No other policy of a program has it.
    pub name: &'static str,
    /// What it is, in a sentence or two.
    pub summary: &'static str,
    /// What it promises.
    pub promise: Promise,
    /// By which analysis contracts are taken that it keeps.
    pub admission: Admission,
    /// What can be set of it.
    pub settings: &'static [Setting],
    /// The values that are set.
    pub values: Settings,
    /// The same analysis with these values.
    pub admits: fn(Admission, &Settings) -> Admission,
    /// Makes the policy; see [`PolicyKind::start`].
    pub start: fn(&Settings) -> Box<dyn Policy>,
}

/// The analysis of a policy that no setting changes.
pub fn admits_always(admission: Admission, _: &Settings) -> Admission {
    admission
}

impl PolicyKind {
    /// True where there are contracts that it keeps: those that its own analysis admits.
    pub fn keeps_contracts(self) -> bool {
        self.admission != Admission::Nothing
    }

    /// True where it is the same policy, whatever the values of its settings.
    pub fn is(self, other: Self) -> bool {
        self.name == other.name
    }

    /// The policy in its first state.
    pub fn start(self) -> Box<dyn Policy> {
        (self.start)(&self.values)
    }

    /// The same policy with another value of one setting, given as people write it.
    ///
    /// # Errors
    /// [`WrongSetting`] where it has no such setting, or where that is no value of it.
    pub fn with(self, name: &str, text: &str) -> Result<Self, WrongSetting> {
        let (at, setting) = self.setting(name)?;
        Ok(self.with_checked(at, setting.value(text)?))
    }

    /// The same policy with another value of one setting.
    ///
    /// # Errors
    /// As [`PolicyKind::with`].
    pub fn with_value(self, name: &str, value: u64) -> Result<Self, WrongSetting> {
        let (at, setting) = self.setting(name)?;
        Ok(self.with_checked(at, setting.checked(value)?))
    }

    /// The settings whose values are not the defaults, with these values.
    pub fn chosen(self) -> impl Iterator<Item = (&'static Setting, u64)> {
        let values = self.settings.iter().enumerate();
        let values = values.map(move |(at, setting)| (setting, self.values.get(at)));
        values.filter(|(setting, value)| *value != setting.default)
    }

    fn setting(self, name: &str) -> Result<(usize, &'static Setting), WrongSetting> {
        let found = self.settings.iter().enumerate().find(|(_, setting)| setting.name == name);
        found.ok_or(WrongSetting::Name { policy: self.name, settings: self.settings })
    }

    fn with_checked(mut self, at: usize, value: u64) -> Self {
        self.values.set(at, value);
        self.admission = (self.admits)(self.admission, &self.values);
        self
    }
}

impl Default for PolicyKind {
    fn default() -> Self {
        Self::SLACK
    }
}

impl PartialEq for PolicyKind {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.values) == (other.name, &other.values)
    }
}

impl Eq for PolicyKind {}

impl PartialOrd for PolicyKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PolicyKind {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.name, &self.values).cmp(&(other.name, &other.values))
    }
}

impl Hash for PolicyKind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name, &self.values).hash(state);
    }
}

impl fmt::Debug for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicyKind({}", self.name)?;
        self.chosen().try_for_each(|(setting, value)| {
            write!(f, ", {} {}", setting.name, setting.shown(value))
        })?;
        write!(f, ")")
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}
