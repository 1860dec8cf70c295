//! A share or a factor in a scenario, as `30%`.

use std::str::FromStr;

/// A share or a factor, as `30%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub u64);

impl FromStr for Percent {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().strip_suffix('%').map(str::trim);
        let number = number.and_then(|number| number.parse().ok());
        number.map(Self).ok_or("no whole number of %; write for example 30%")
    }
}
