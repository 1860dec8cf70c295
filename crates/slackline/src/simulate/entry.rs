//! One `[[stream]]` or `[[load]]` of a scenario. What it has in common with a list of
//! `slackline plan` has the words of that, and is read by it.

use super::file::Source;
use super::trace::Trace;
use crate::plan::list::{self, Class, ModeArg, from_text, one};
use client::control::{PlanStream, Priority, Zone};
use daemon::convert;
use serde::Deserialize;
use sim::scenario::{Arrivals, LoadPlan, Pace, Place, StreamPlan};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use units::{Bytes, Duration, Rate};

/// See the top of this file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    name: Option<String>,
    #[serde(default = "one")]
    count: u64,
    class: Option<Class>,
    mode: Option<ModeArg>,
    #[serde(default, deserialize_with = "from_text")]
    rate: Option<Rate>,
    #[serde(default, deserialize_with = "from_text")]
    block: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    burst: Option<Bytes>,
    #[serde(default, deserialize_with = "from_text")]
    within: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    every: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    period: Option<Duration>,
    priority: Option<Priority>,
    #[serde(default)]
    disks: Vec<u16>,
    #[serde(default)]
    zone: Zone,
    // What a plan does not need to know.
    #[serde(default, deserialize_with = "from_text")]
    size: Option<Bytes>,
    volume: Option<String>,
    #[serde(default, deserialize_with = "from_text")]
    starts: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    stops: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    speed: Option<Percent>,
    // Streams.
    #[serde(default, deserialize_with = "from_text")]
    jitter: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    apart: Option<Duration>,
    #[serde(default, deserialize_with = "from_text")]
    jumps: Option<Duration>,
    frame_rate: Option<u64>,
    #[serde(default, deserialize_with = "from_text")]
    mean_rate: Option<Rate>,
    #[serde(default, deserialize_with = "from_text")]
    varies: Option<Percent>,
    // Loads.
    ask: Option<Ask>,
    outstanding: Option<u64>,
    #[serde(default, deserialize_with = "from_text")]
    gap: Option<Duration>,
    most: Option<u64>,
    trace: Option<PathBuf>,
    #[serde(default, deserialize_with = "from_text")]
    reads: Option<Percent>,
    sequential: Option<bool>,
}

/// When a load asks.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Ask {
    /// As soon as it is answered.
    Greedy,
    /// Once in each `gap`.
    Paced,
    /// `gap` apart on average.
    Poisson,
    /// Up to `most` at once, `gap` apart on average.
    Bursts,
}

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

impl Entry {
    /// It is under a rate contract of its own.
    pub fn is_stream(&self) -> bool {
        matches!(self.class, None | Some(Class::Rate))
    }

    /// The same, as it is meant among the loads.
    pub fn as_load(&self) -> Self {
        Self { class: Some(self.class.unwrap_or(Class::BestEffort)), ..self.clone() }
    }

    fn called(&self, otherwise: &str) -> String {
        self.name.clone().unwrap_or_else(|| otherwise.into())
    }

    /// What it has in common with a plan.
    fn common(&self, name: String, mode: Option<ModeArg>) -> Result<PlanStream, String> {
        let entry = list::Entry {
            name,
            count: self.count,
            class: self.class.unwrap_or_default(),
            mode,
            rate: self.rate,
            block: self.block,
            burst: self.burst,
            within: self.within,
            every: self.every,
            period: self.period,
            priority: self.priority.unwrap_or_default(),
            disks: self.disks.clone(),
            zone: self.zone,
        };
        entry.planned()
    }

    fn place(&self, common: &PlanStream) -> Result<Place, String> {
        let own = self.size.is_some() || !self.disks.is_empty() || self.zone != Zone::Any;
        match &self.volume {
            Some(_) if own => Err("who works on the volumes of others has no size, disks or \
                                   zone of its own: leave them away, or `volume`"
                .into()),
            Some(name) => Ok(Place::Of(name.clone())),
            None => {
                let placement = convert::placement(&common.placement);
                Ok(Place::Own { size: self.size, placement })
            }
        }
    }

    /// A stream.
    pub fn stream(&self) -> Result<StreamPlan, String> {
        let idle = [
            ("ask", self.ask.is_some()),
            ("outstanding", self.outstanding.is_some()),
            ("gap", self.gap.is_some()),
            ("most", self.most.is_some()),
            ("trace", self.trace.is_some()),
            ("reads", self.reads.is_some()),
            ("sequential", self.sequential.is_some()),
            ("priority", self.priority.is_some()),
        ];
        means_nothing(idle, "for a stream; say it of a [[load]]")?;
        let mode = self.mode.unwrap_or(ModeArg::Read);
        let common = self.common(self.called("stream"), Some(mode))?;
        let contract = common.contract.ok_or("a stream needs a rate")?;
        if self.jumps.is_some() && matches!(mode, ModeArg::Write) {
            return Err("only a reader jumps: leave `jumps` away, or say mode = \"read\"".into());
        }
        Ok(StreamPlan {
            count: common.count,
            mode: convert::mode(mode.into()),
            contract: convert::contract(&contract),
            place: self.place(&common)?,
            name: common.name,
            pace: self.pace(contract.rate_bytes_per_second)?,
            speed_percent: self.speed.map_or(100, |speed| speed.0.max(1)),
            jitter: self.jitter.unwrap_or(Duration::ZERO),
            starts: self.starts.unwrap_or(Duration::ZERO),
            apart: self.apart.unwrap_or(Duration::from_millis(100)),
            stops: self.stops,
            jumps: self.jumps,
        })
    }

    fn pace(&self, rate: Rate) -> Result<Pace, String> {
        let Some(per_second) = self.frame_rate else {
            let idle = [("mean_rate", self.mean_rate.is_some()), ("varies", self.varies.is_some())];
            means_nothing(idle, "without `frame_rate`, the frames in a second")?;
            return Ok(Pace::Constant);
        };
        let varies_percent = self.varies.map_or(0, |varies| varies.0);
        if !(1..=1000).contains(&per_second) || varies_percent > 90 {
            return Err(
                "a `frame_rate` from 1 to 1000, and `varies` up to 90%, are possible".into()
            );
        }
        let mean = self.mean_rate.unwrap_or(rate);
        Ok(Pace::Frames { per_second, mean, varies_percent })
    }

    /// A load.
    pub fn load(&self, source: &Source<'_>) -> Result<LoadPlan, String> {
        let idle = [
            ("jitter", self.jitter.is_some()),
            ("apart", self.apart.is_some()),
            ("jumps", self.jumps.is_some()),
            ("frame_rate", self.frame_rate.is_some()),
            ("mean_rate", self.mean_rate.is_some()),
            ("varies", self.varies.is_some()),
        ];
        means_nothing(idle, "for a load; say it of a [[stream]]")?;
        if self.class == Some(Class::Rate) {
            return Err("a load has class = \"best-effort\" or \"latency\"; \
                        make it a [[stream]] to give it a rate of its own"
                .into());
        }
        let common = self.common(self.called("load"), None)?;
        let place = self.place(&common)?;
        let service = common.service.as_ref().map(convert::service);
        let service = service.filter(|service| *service != node::Service::default());
        let block = self.block.unwrap_or(Bytes::kib(64));
        if block.is_zero() || block > Bytes::MIB || !block.is_multiple_of(Bytes::kib(4)) {
            return Err("a load's block is a multiple of 4KiB, at most 1MiB".into());
        }
        let reads = match (self.reads, self.mode) {
            (Some(_), Some(_)) => return Err("say `reads`, a share, or `mode`, not both".into()),
            (Some(Percent(percent)), None) if percent > 100 => {
                return Err("`reads` is at most 100%".into());
            }
            (Some(Percent(percent)), None) => percent,
            (None, Some(ModeArg::Write)) => 0,
            (None, _) => 100,
        };
        Ok(LoadPlan {
            name: common.name,
            count: common.count,
            service,
            place,
            arrivals: self.arrivals(source)?,
            block,
            reads_percent: reads,
            sequential: self.sequential.unwrap_or(false),
            starts: self.starts.unwrap_or(Duration::ZERO),
            stops: self.stops,
        })
    }

    fn arrivals(&self, source: &Source<'_>) -> Result<Arrivals, String> {
        if let Some(path) = &self.trace {
            let idle = [
                ("ask", self.ask.is_some()),
                ("outstanding", self.outstanding.is_some()),
                ("gap", self.gap.is_some()),
                ("most", self.most.is_some()),
                ("reads", self.reads.is_some()),
                ("block", self.block.is_some()),
                ("sequential", self.sequential.is_some()),
            ];
            means_nothing(idle, "beside a `trace`, which says all that itself")?;
            let trace = Trace::of(&source.beside(path))?;
            return Ok(Arrivals::From(Arc::new(trace), self.speed.map_or(100, |it| it.0.max(1))));
        }
        means_nothing([("speed", self.speed.is_some())], "for a load without a `trace`")?;
        let otherwise = match self.class {
            Some(Class::Latency) => Ask::Paced,
            _ => Ask::Greedy,
        };
        let ask = self.ask.unwrap_or(otherwise);
        let greedy = ask == Ask::Greedy;
        means_nothing([("most", self.most.is_some() && ask != Ask::Bursts)], "without bursts")?;
        means_nothing([("gap", self.gap.is_some() && greedy)], "for a greedy load")?;
        let idle = [("outstanding", self.outstanding.is_some() && !greedy)];
        means_nothing(idle, "unless it asks greedily")?;
        let gap = self.gap.or(self.every).filter(|gap| !gap.is_zero());
        let gap = || gap.ok_or("say `gap`, the (mean) time between two requests or bursts");
        Ok(match ask {
            Ask::Greedy => Arrivals::Greedy(self.outstanding.unwrap_or(4).clamp(1, 1024)),
            Ask::Paced => Arrivals::Paced(gap()?),
            Ask::Poisson => Arrivals::Poisson(gap()?),
            Ask::Bursts => Arrivals::Bursts {
                apart: gap()?,
                most: self.most.ok_or("say `most`, the largest burst")?.max(1),
            },
        })
    }
}

/// A setting that means nothing here is a mistake, not a wish to be ignored.
fn means_nothing(
    settings: impl IntoIterator<Item = (&'static str, bool)>,
    here: &str,
) -> Result<(), String> {
    match settings.into_iter().find(|&(_, given)| given) {
        None => Ok(()),
        Some((name, _)) => Err(format!("{name} means nothing {here}")),
    }
}
