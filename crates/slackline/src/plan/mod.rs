//! `slackline plan`: will it fit, and what would?
//!
//! The answer comes from the daemon, from a pool that is not served (which is only
//! read), or from disks of which there is a model or a profile; the analysis is the
//! same, the node's own.

pub mod list;
mod picture;
mod words;

use crate::contract::PlacementArgs;
use crate::failure::{Failure, REFUSED};
use crate::{Common, pool};
use client::control::{Contract, Mode, Plan, PlanRequest, PlanStream, Service};
use daemon::config::node_default;
use disk::{Model, Profile};
use list::List;
use node::{Config, Planner};
use std::path::{Path, PathBuf};
use units::{Bytes, Duration, Rate};

/// Tell whether a list of streams fits, and what would. Changes nothing.
///
/// The list is a file (TOML), or --stream once for each kind, or --rate for one
/// kind. The disks are those of the daemon; of a pool that is not served, with
/// --device; or those that there would be, with --model or --profile. The list may
/// name them, too. Ends with 3 where the list does not fit.
#[derive(clap::Args)]
pub struct Args {
    /// A list of streams, for example examples/cameras.toml
    #[arg(value_name = "LIST.toml")]
    list: Option<PathBuf>,
    /// Some streams more, for example
    /// name=camera,count=10,mode=write,rate=2MB/s,block=1MiB,disks=0+1,zone=outer
    #[arg(long, value_name = "SETTINGS")]
    stream: Vec<String>,
    /// Some streams more, of so many bytes per second each
    #[arg(long, short, value_name = "RATE")]
    rate: Option<Rate>,
    /// With --rate: how many
    #[arg(long, short, value_name = "NUMBER", default_value_t = 1)]
    count: u64,
    /// With --rate: what each transfers at a time
    #[arg(long, short, value_name = "SIZE", default_value = "1MiB")]
    block: Bytes,
    /// With --rate: how far each may run past its playout point at once
    /// [default: one block]
    #[arg(long, value_name = "SIZE")]
    burst: Option<Bytes>,
    /// With --rate: which way [default: the one that costs more]
    #[arg(long, value_enum)]
    mode: Option<list::ModeArg>,
    #[command(flatten)]
    placement: PlacementArgs,
    /// A disk of a pool that is not served; once for each disk. It is only read
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["model", "profile"])]
    device: Vec<String>,
    /// A disk model; once for each disk (`slackline disk models` lists them)
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// A file with the profile of a disk; once for each disk
    #[arg(long, value_name = "PATH")]
    profile: Vec<PathBuf>,
    /// Without a daemon: memory for windows and transfers [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Without a daemon: what the host takes between two commands of a disk, for each of which
    /// it is charged (`slackline pool status` says it of a pool that is served)
    #[arg(long, value_name = "TIME", default_value = "0s")]
    gap: Duration,
    /// Do not compare with other blocks, places and numbers of disks
    #[arg(long)]
    no_alternatives: bool,
    /// Draw what is asked of a disk against what there is, to this file (SVG)
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
    /// With --svg: which disk [default: the one with the least slack]
    #[arg(long, value_name = "NUMBER", requires = "svg")]
    svg_disk: Option<u16>,
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let mut list = args.list.as_deref().map_or_else(|| Ok(List::default()), List::read)?;
    for settings in &args.stream {
        list.streams.push(list::stream(settings)?);
    }
    list.streams.extend(args.plain());
    if list.streams.is_empty() {
        let next = "name a list (examples/cameras.toml is one), or give --rate or --stream";
        return Err(Failure::usage("nothing to plan", next));
    }
    for stream in &list.streams {
        check(stream)?;
    }
    let request = PlanRequest {
        streams: core::mem::take(&mut list.streams),
        alternatives: !args.no_alternatives,
    };
    let plan = match args.planner(&list)? {
        Some(planner) => {
            let planned = daemon::planning::plan(&planner, &request);
            planned.map_err(|problem| Failure::from(*problem))?
        }
        None => common.client()?.plan(&request)?,
    };
    if let Some(path) = &args.svg {
        draw(path, args.svg_disk, &plan)?;
    }
    let has_no_mode = |stream: &PlanStream| stream.contract.is_some() && stream.mode.is_none();
    let is_either = request.streams.iter().any(has_no_mode);
    common.output().result(&plan, |plan| words::all(plan, is_either))?;
    match plan.stops {
        None => Ok(()),
        Some(stop) => {
            let of = request.streams.iter().find(|stream| stream.name == stop.name);
            let failure = Failure::from(stop.problem);
            let what = format!("{} {}: {}", stop.name, stop.number, failure.what);
            // What is not in a list is in flags, of which the problem speaks.
            let by_list = args.list.is_some() || !args.stream.is_empty();
            let in_list = of.filter(|_| by_list).and_then(|of| in_list(of, &failure));
            let next_step = in_list.unwrap_or_else(|| failure.next_step.clone());
            Err(Failure { what, next_step, exit_code: REFUSED, ..failure })
        }
    }
}

/// What of a list to change, where the disks have no time for this kind.
fn in_list(kind: &PlanStream, failure: &Failure) -> Option<String> {
    let refusal = failure.problem.as_ref()?.refusal.as_ref()?;
    let name = &kind.name;
    let change = match (&kind.service, refusal.within_ns, refusal.rate_max_bytes_per_second) {
        (Some(Service::Latency { .. }), Some(within), _) => {
            format!("set `within` of `{name}` to {within} at least, or its `every` longer")
        }
        (Some(Service::Latency { .. }), None, _) => {
            format!("set `within` or `every` of `{name}` longer")
        }
        (_, _, Rate::ZERO) => format!("set `rate` of `{name}` smaller, or its `block` larger"),
        (_, _, rate) => {
            format!("set `rate` of `{name}` to {rate} at the most, or its `block` larger")
        }
    };
    let longer = refusal.longer.as_ref().map_or_else(String::new, |longer| {
        format!(" ({} fits in {})", longer.rate_bytes_per_second, longer.block_bytes)
    });
    Some(format!("{change}{longer}; or plan fewer of them (`count`)"))
}

/// What the refusal of the plan would tell of the run, which nobody named.
fn check(stream: &PlanStream) -> Result<(), Failure> {
    let name = &stream.name;
    if stream.count == 0 {
        return Err(Failure::usage(format!("{name}: a count of 0"), "plan with at least one"));
    }
    let block = stream.contract.map(|contract| contract.block_bytes);
    let is_block = |block: &Bytes| {
        block.get().is_power_of_two()
            && (node::limits::BLOCK_MIN..=node::limits::BLOCK_MAX).contains(block)
    };
    match block.filter(|block| !is_block(block)) {
        Some(block) => {
            let what = format!("{name}: a block of {block}");
            Err(Failure::usage(what, "use a power of two from 4KiB to 32MiB"))
        }
        None => Ok(()),
    }
}

impl Args {
    /// The streams of `--rate`.
    fn plain(&self) -> Option<PlanStream> {
        let contract = Contract {
            rate_bytes_per_second: self.rate?,
            block_bytes: self.block,
            burst_bytes: self.burst.unwrap_or(self.block),
        };
        Some(PlanStream {
            name: "stream".into(),
            count: self.count,
            mode: self.mode.map(Mode::from),
            contract: Some(contract),
            service: None,
            placement: self.placement.planned(self.block),
        })
    }

    /// The disks that flags or the list name; none means the daemon's.
    fn planner(&self, list: &List) -> Result<Option<Planner>, Failure> {
        let by_flag = !(self.device.is_empty() && self.model.is_empty() && self.profile.is_empty());
        let own = (&self.device, &self.model, &self.profile);
        let (devices, models, files) =
            if by_flag { own } else { (&list.devices, &list.models, &list.profiles) };
        let memory = self.memory.or(list.memory).unwrap_or(node_default().memory);
        let memory = memory.round_down(Bytes::MIB);
        if memory < node::limits::MEMORY_MIN {
            let least = node::limits::MEMORY_MIN;
            let next = format!("plan with at least {least}");
            return Err(Failure::usage(format!("{memory} of memory is too little"), next));
        }
        let mut profiles = Vec::new();
        if !devices.is_empty() {
            profiles.extend(engine::Pool::profiles(&crate::given::specs(devices)?)?);
        }
        for name in models {
            profiles.push(Profile::of(&Model::named(name).map_err(|error| {
                Failure::usage(error.to_string(), "name a model that there is, once for each disk")
            })?));
        }
        for path in files {
            profiles.push(pool::read_profile(path)?);
        }
        if profiles.is_empty() {
            return Ok(None);
        }
        let config = Config { memory, ..node_default() };
        let planner = Planner::new(config, profiles, self.gap);
        planner.map(Some).map_err(|error| daemon::problem::of(&error).into())
    }
}

fn draw(path: &Path, disk: Option<u16>, plan: &Plan) -> Result<(), Failure> {
    let tightest = || plan.disks.iter().min_by_key(|disk| (picture::fits(disk), disk.slack_ns));
    let disk = match disk {
        Some(number) => plan.disks.iter().find(|disk| disk.disk == number),
        None => tightest(),
    };
    let Some(disk) = disk else {
        let next = format!("there are disks 0 to {}", plan.disks.len() - 1);
        return Err(Failure::usage("no such disk to draw", next));
    };
    std::fs::write(path, picture::demand_svg(disk)).map_err(|error| Failure::file(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::{Code, Problem, Refusal};

    /// Who planned a list was told of flags, and to close streams of a disk that is a model.
    #[test]
    fn what_does_not_fit_of_a_list_is_changed_in_the_list() {
        let refused = |kind: &str, rate_max: u64, within| {
            let refusal = Refusal {
                disk: 0,
                utilisation_ppm: 0,
                deadline_ns: None,
                excess_ns: None,
                rate_max_bytes_per_second: Rate::per_second(rate_max),
                bus: None,
                longer: None,
                within_ns: within,
                undecided: false,
            };
            let problem = Problem { refusal: Some(refusal), ..Problem::new(Code::Refused, "", "") };
            in_list(&list::stream(kind).unwrap(), &problem.into()).unwrap()
        };
        let camera = "name=camera,rate=2MB/s";
        let says = refused(camera, 1_500_000, None);
        assert!(
            says.contains("`rate` of `camera` to 1.50 MB/s at the most, or its `block`"),
            "{says}"
        );
        assert!(refused(camera, 0, None).contains("`rate` of `camera` smaller"));
        let index = "name=index,class=latency,within=10ms,every=1s";
        let says = refused(index, 0, Some(Duration::from_millis(20)));
        assert!(says.contains("`within` of `index` to 20 ms"), "{says}");
    }
}
