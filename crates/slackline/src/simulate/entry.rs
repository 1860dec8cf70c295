//! One `[[stream]]` or `[[load]]` of a scenario. What it has in common with a list of
//! `slackline plan` has the words of that, and is read by it.

use super::percent::Percent;
use super::source::Source;
use super::trace::Trace;
use crate::plan::list::{self, Class, ModeArg, from_text, one};
use client::control::{PlanStream, Priority, Zone};
use daemon::convert;
use serde::Deserialize;
use sim::scenario::{Arrivals, Like, LoadPlan, MakeSource, Pace, Place, StreamPlan};
use sim::workload::movie;
use std::path::PathBuf;
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
    #[serde(default)]
    thin: bool,
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
    movie: Option<MovieKind>,
    // Loads.
    ask: Option<Ask>,
    outstanding: Option<u64>,
    #[serde(default, deserialize_with = "from_text")]
    gap: Option<Duration>,
    most: Option<u64>,
    trace: Option<PathBuf>,
    like: Option<LikeKind>,
    per_second: Option<u64>,
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

/// How a movie's frames differ.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum MovieKind {
    /// Each by itself.
    #[default]
    MotionJpeg,
    /// In groups of twelve, one of them whole.
    Mpeg,
}

/// Whose load it is like.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum LikeKind {
    FileSystem,
    VirtualMachine,
    Scrubbing,
    Cello,
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
            run: None,
            thin: self.thin,
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
            ("like", self.like.is_some()),
            ("per_second", self.per_second.is_some()),
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
            starts: self.starts,
            apart: self.apart.unwrap_or(Duration::from_millis(100)),
            stops: self.stops,
            jumps: self.jumps,
        })
    }

    fn pace(&self, rate: Rate) -> Result<Pace, String> {
        let Some(per_second) = self.frame_rate else {
            let idle = [
                ("mean_rate", self.mean_rate.is_some()),
                ("varies", self.varies.is_some()),
                ("movie", self.movie.is_some()),
            ];
            means_nothing(idle, "without `frame_rate`, the frames in a second")?;
            return Ok(Pace::Constant);
        };
        let varies = self.varies.map_or(10, |varies| varies.0);
        if !(1..=1000).contains(&per_second) || varies > 90 {
            return Err(
                "a `frame_rate` from 1 to 1000, and `varies` up to 90%, are possible".into()
            );
        }
        let mean = Bytes::new(self.mean_rate.unwrap_or(rate).get() / per_second);
        let pattern = match self.movie.unwrap_or_default() {
            MovieKind::MotionJpeg => movie::CLIP.pattern,
            MovieKind::Mpeg => movie::GROUPS_OF_PICTURES.pattern,
        };
        // An hour or so; then another one.
        let frames = per_second * 4_000;
        let deviation = mean * varies / 100;
        Ok(Pace::Frames(movie::Kind { mean, deviation, frames, pace: per_second, pattern }))
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
            ("movie", self.movie.is_some()),
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
            starts: self.starts,
            stops: self.stops,
        })
    }

    fn like(&self, kind: LikeKind) -> Result<Like, String> {
        let rate = || {
            let given = self.per_second.unwrap_or(20);
            let good = (1..=10_000).contains(&given);
            good.then_some(given).ok_or("`per_second` from 1 to 10000 is possible")
        };
        if let (LikeKind::Scrubbing | LikeKind::Cello, Some(_)) = (kind, self.per_second) {
            return Err("per_second means nothing here: play it faster with `speed`".into());
        }
        Ok(match kind {
            LikeKind::FileSystem => Like::FileSystem(rate()?),
            LikeKind::VirtualMachine => Like::VirtualMachine(rate()?),
            LikeKind::Scrubbing => Like::Scrubbing,
            // The busiest but one.
            LikeKind::Cello => Like::Cello(2),
        })
    }

    fn arrivals(&self, source: &Source<'_>) -> Result<Arrivals, String> {
        if self.trace.is_some() || self.like.is_some() {
            let idle = [
                ("ask", self.ask.is_some()),
                ("outstanding", self.outstanding.is_some()),
                ("gap", self.gap.is_some()),
                ("most", self.most.is_some()),
                ("reads", self.reads.is_some()),
                ("block", self.block.is_some()),
                ("sequential", self.sequential.is_some()),
            ];
            means_nothing(idle, "beside `trace` or `like`, which say all that themselves")?;
            let make: Arc<dyn MakeSource> = match (&self.trace, self.like) {
                (Some(path), None) => Arc::new(Trace::of(&source.beside(path))?),
                (None, Some(like)) => Arc::new(self.like(like)?),
                _ => return Err("say `trace`, a file, or `like`, whose load, not both".into()),
            };
            return Ok(Arrivals::From(make, self.speed.map_or(100, |it| it.0.max(1))));
        }
        let idle = [("speed", self.speed.is_some()), ("per_second", self.per_second.is_some())];
        means_nothing(idle, "for a load without a `trace` or `like`")?;
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
