//! One `[[fault]]` of a scenario.

use super::percent::Percent;
use crate::plan::list::from_text;
use serde::Deserialize;
use sim::scenario::{FaultKind, FaultPlan, Scenario};
use units::{Bytes, Duration};

/// See the top of this file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    name: Option<String>,
    kind: Kind,
    #[serde(default)]
    disk: u16,
    #[serde(deserialize_with = "from_text")]
    at: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    lasts: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    from: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    to: Option<Bytes>,
    percent: Option<u64>,
    #[serde(default, deserialize_with = "from_text")]
    share: Option<Percent>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Slow,
    Stall,
    BadSectors,
    Errors,
    WriteErrors,
    LyingFlush,
    PowerCut,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Stall => "standing still",
            Self::BadSectors => "bad sectors",
            Self::Errors => "errors",
            Self::WriteErrors => "write errors",
            Self::LyingFlush => "flushes that do nothing",
            Self::PowerCut => "power cut",
        }
    }
}

impl Entry {
    /// The fault, in a scenario with these disks.
    pub fn plan(&self, scenario: &Scenario) -> Result<FaultPlan, String> {
        let at = self.at.unwrap_or(Duration::ZERO);
        if usize::from(self.disk) >= scenario.disks.len() {
            let last = scenario.disks.len() - 1;
            return Err(format!("there is no disk {}: they count from 0 to {last}", self.disk));
        }
        if at >= scenario.whole() {
            return Err("it comes after the end, which is at `warm_up` + `duration`".into());
        }
        let ranged = matches!(self.kind, Kind::Slow | Kind::BadSectors);
        let idle = [
            ("percent", self.percent.is_some() && self.kind != Kind::Slow),
            ("share", self.share.is_some() && self.kind != Kind::Errors),
            ("from", self.from.is_some() && !ranged),
            ("to", self.to.is_some() && !ranged),
            ("disk", self.disk > 0 && self.kind == Kind::PowerCut),
        ];
        if let Some((name, _)) = idle.into_iter().find(|&(_, given)| given) {
            return Err(format!("{name} means nothing for \"{}\"", self.kind.words()));
        }
        let (from, to) = (self.from.unwrap_or(Bytes::ZERO), self.to.unwrap_or(Bytes::MAX));
        let rest = scenario.whole() - at;
        let (kind, lasts) = match self.kind {
            Kind::Slow => {
                let percent = self.percent.filter(|percent| (101..=100_000).contains(percent));
                let percent = percent.ok_or(
                    "say `percent`, what commands take of their time: \
                                             more than 100",
                )?;
                (FaultKind::Slow { from, to, percent }, rest)
            }
            Kind::Stall => (FaultKind::Stall, Duration::from_secs(5)),
            Kind::BadSectors => (FaultKind::BadSectors { from, to }, rest),
            Kind::Errors => {
                let share = self.share.filter(|share| (1..=100).contains(&share.0));
                let share = share.ok_or("say `share`, how many commands fail, as \"1%\"")?;
                (FaultKind::Errors { ppm: share.0 * 10_000 }, rest)
            }
            Kind::WriteErrors => (FaultKind::WriteErrors, rest),
            Kind::LyingFlush => (FaultKind::LyingFlush, rest),
            Kind::PowerCut => (FaultKind::PowerCut, Duration::from_secs(30)),
        };
        let name = self.name.clone().unwrap_or_else(|| self.kind.words().into());
        Ok(FaultPlan { name, disk: self.disk, at, lasts: self.lasts.unwrap_or(lasts), kind })
    }
}
