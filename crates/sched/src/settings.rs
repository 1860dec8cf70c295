//! Settings of policies: the numbers that a policy goes by, and that may be chosen.
//!
//! Each policy lists its own in its [`PolicyKind`](crate::PolicyKind). Invariant: a value
//! lies within the limits of its [`Setting`], or it is not taken.

use core::fmt;
use units::{Bytes, Duration};

/// The most settings that one policy can have.
pub const SETTINGS_MAX: usize = 8;

/// What the values of a setting count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingUnit {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Size,
    /// Things.
    Number,
}

/// A number that a policy goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name that people write; no other setting of its policy has it.
    pub name: &'static str,
    /// What the numbers below count.
    pub unit: SettingUnit,
    /// The least value.
    pub least: u64,
    /// The greatest value.
    pub most: u64,
    /// Its value where none was chosen.
    pub default: u64,
    /// What it does, in a sentence or two.
    pub summary: &'static str,
}

impl Setting {
    /// A time, with its limits and its default.
    pub const fn time(
        name: &'static str,
        [least, most, default]: [Duration; 3],
        summary: &'static str,
    ) -> Self {
        let [least, most, default] = [least.as_nanos(), most.as_nanos(), default.as_nanos()];
        Self { name, unit: SettingUnit::Time, least, most, default, summary }
    }

    /// An amount of bytes, with its limits and its default.
    pub const fn size(
        name: &'static str,
        [least, most, default]: [Bytes; 3],
        summary: &'static str,
    ) -> Self {
        let [least, most, default] = [least.get(), most.get(), default.get()];
        Self { name, unit: SettingUnit::Size, least, most, default, summary }
    }

    /// A number of things, with its limits and its default.
    pub const fn number(
        name: &'static str,
        [least, most, default]: [u64; 3],
        summary: &'static str,
    ) -> Self {
        Self { name, unit: SettingUnit::Number, least, most, default, summary }
    }

    /// A value of this setting, as people write it.
    pub fn shown(&self, value: u64) -> ShownValue {
        ShownValue { unit: self.unit, value }
    }

    /// The value that a text says: a time (`20ms`), a size (`40KiB`) or a number.
    ///
    /// # Errors
    /// [`WrongSetting::Value`] where it says none, or one beyond the limits.
    pub fn value(&self, text: &str) -> Result<u64, WrongSetting> {
        let value = match self.unit {
            SettingUnit::Time => text.parse().ok().map(Duration::as_nanos),
            SettingUnit::Size => text.parse().ok().map(Bytes::get),
            SettingUnit::Number => text.parse().ok(),
        };
        self.checked(value.ok_or(WrongSetting::Value { setting: *self })?)
    }

    /// The value, where it is within the limits.
    pub(crate) fn checked(&self, value: u64) -> Result<u64, WrongSetting> {
        match (self.least..=self.most).contains(&value) {
            true => Ok(value),
            false => Err(WrongSetting::Value { setting: *self }),
        }
    }
}

/// A value with its unit; see [`Setting::shown`].
#[derive(Clone, Copy, Debug)]
pub struct ShownValue {
    unit: SettingUnit,
    value: u64,
}

impl fmt::Display for ShownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            SettingUnit::Time => fmt::Display::fmt(&Duration::from_nanos(self.value), f),
            SettingUnit::Size => fmt::Display::fmt(&Bytes::new(self.value), f),
            SettingUnit::Number => fmt::Display::fmt(&self.value, f),
        }
    }
}

/// The values of all settings of a policy, in the order of its list. By default those of a
/// policy that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Settings([u64; SETTINGS_MAX]);

impl Settings {
    /// The defaults. The list is checked when it is compiled.
    pub const fn of(list: &[Setting]) -> Self {
        assert!(list.len() <= SETTINGS_MAX, "too many settings");
        let mut values = [0; SETTINGS_MAX];
        let mut at = 0;
        while at < list.len() {
            let Setting { least, most, default, .. } = list[at];
            assert!(least <= default && default <= most, "a default beyond its limits");
            values[at] = default;
            at += 1;
        }
        Self(values)
    }

    /// The value at this place of the list.
    pub const fn get(&self, at: usize) -> u64 {
        self.0[at]
    }

    /// The same as a time.
    pub const fn time(&self, at: usize) -> Duration {
        Duration::from_nanos(self.0[at])
    }

    /// The same as a number of things on this machine.
    pub fn number(&self, at: usize) -> usize {
        usize::try_from(self.0[at]).unwrap_or(usize::MAX)
    }

    pub(crate) fn set(&mut self, at: usize, value: u64) {
        self.0[at] = value;
    }
}

/// Why a setting is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongSetting {
    /// The policy has none of this name; these are its settings.
    Name {
        /// The policy.
        policy: &'static str,
        /// What it has.
        settings: &'static [Setting],
    },
    /// It is no value of this setting.
    Value {
        /// The setting, with its limits.
        setting: Setting,
    },
}

impl fmt::Display for WrongSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { policy, settings: [] } => write!(f, "the policy {policy} has no settings"),
            Self::Name { policy, settings } => {
                write!(f, "the policy {policy} has no such setting; there are")?;
                settings.iter().try_for_each(|setting| write!(f, " {}", setting.name))
            }
            Self::Value { setting } => {
                let what = match setting.unit {
                    SettingUnit::Time => "a time with its unit (20ms, 4s),",
                    SettingUnit::Size => "a size with its unit (64KiB),",
                    SettingUnit::Number => "a number",
                };
                let [least, most] = [setting.least, setting.most].map(|value| setting.shown(value));
                write!(f, "the setting {} is {what} from {least} to {most}", setting.name)
            }
        }
    }
}
impl core::error::Error for WrongSetting {}
