//! `slackline plan`: how many more streams fit, and what stops the next.
//!
//! The answer comes from the daemon, from a pool that is not served, or from
//! disks that only exist as models; the analysis is the same.

use crate::contract::{self, ContractArgs, PlacementArgs};
use crate::failure::Failure;
use crate::output::{Table, counted, percent};
use crate::{Common, pool};
use client::control::{Contract, Plan, PlanRequest};
use daemon::config::node_default;
use disk::{Model, Profile};
use node::{Config, DiskSetup, Node, Op, Reply};
use sim::{SimDisk, Timing, World};
use units::{Bytes, Duration};

/// Tell how many more streams fit, and what stops the next.
///
/// Asks the daemon, unless --device names the disks of a pool that is not served,
/// or --model says what disks there would be. Changes nothing.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    contract: ContractArgs,
    #[command(flatten)]
    placement: PlacementArgs,
    /// A disk of a pool that is not served; once for each disk
    #[arg(long, value_name = "DEVICE", conflicts_with = "model")]
    device: Vec<String>,
    /// A disk model, as for emulated disks; once for each disk
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// Without a daemon: memory for windows
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    memory: Bytes,
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    let request =
        PlanRequest { contract: args.contract.contract(), placement: args.placement.placement() };
    let plan = if !args.model.is_empty() {
        of_models(args, &request)?
    } else if !args.device.is_empty() {
        of_devices(args, &request)?
    } else {
        common.client()?.plan(&request)?
    };
    common.output().result(&plan, |plan| words(plan, &request.contract))
}

fn config(args: &Args) -> Config {
    Config { memory: args.memory.round_down(Bytes::MIB), ..node_default() }
}

fn op(request: &PlanRequest) -> Op {
    Op::Plan {
        contract: daemon::convert::contract(&request.contract),
        placement: daemon::convert::placement(&request.placement),
    }
}

fn problem(error: &node::Error) -> Failure {
    daemon::problem::of(error).into()
}

/// Opens the pool on these devices as the daemon would, and closes it again.
fn of_devices(args: &Args, request: &PlanRequest) -> Result<Plan, Failure> {
    let options =
        engine::Options { config: config(args), realtime: false, ..engine::Options::default() };
    let pool = engine::Pool::open(&pool::specs(&args.device)?, options)?;
    let plan = match pool.call(op(request)).map_err(|error| problem(&error))? {
        engine::Reply::Plan(plan) => daemon::convert::plan(plan),
        other => unreachable!("{other:?} in answer to a what-if"),
    };
    pool.shutdown().map_err(|error| problem(&error))?;
    Ok(plan)
}

/// Makes a pool of such disks in the virtual world.
fn of_models(args: &Args, request: &PlanRequest) -> Result<Plan, Failure> {
    let unknown = |error: disk::Error| {
        Failure::usage(error.to_string(), "name a model that there is, once for each disk")
    };
    let models: Result<Vec<Model>, _> = args.model.iter().map(|name| Model::named(name)).collect();
    let profiles: Vec<Profile> = models.map_err(unknown)?.iter().map(Profile::of).collect();
    let at_once = Timing::Fixed(Duration::ZERO);
    let mut disks: Vec<SimDisk> =
        profiles.iter().map(|profile| SimDisk::new(profile.capacity(), at_once.clone())).collect();
    // The profile on the label is not read back: each disk's own goes to the node.
    sim::format(&mut disks, "plan", &profiles[0], 1)
        .map_err(|error| Failure::new(error.to_string(), ""))?;
    let store = sim::open(&mut disks).map_err(|error| Failure::new(error.to_string(), ""))?;
    let setups = profiles.into_iter().map(|profile| DiskSetup { profile }).collect();
    let config = config(args);
    let node = Node::new(config, setups, store).map_err(|error| problem(&error))?;
    let mut world = World::new(node, disks, config.memory);
    match world.call(op(request)).map_err(|error| problem(&error))? {
        Reply::Plan(plan) => Ok(daemon::convert::plan(plan)),
        other => unreachable!("{other:?} in answer to a what-if"),
    }
}

fn words(plan: &Plan, contract: &Contract) -> String {
    let streams = counted(plan.fits, "more stream");
    let verb = if plan.fits == 1 { "fits" } else { "fit" };
    let mut table = Table::new(&["disk", ">utilisation", ">slack"]);
    for (disk, (ppm, slack)) in plan.utilisation_ppm.iter().zip(&plan.slack_ns).enumerate() {
        table.row(vec![disk.to_string(), percent(*ppm), slack.to_string()]);
    }
    format!(
        "{streams} of {} {verb}, each with a window of {}\n{}the next one: {}\n  next: {}\n",
        contract::words(contract),
        plan.window_bytes,
        table.text("  "),
        plan.stops.detail,
        plan.stops.next_step,
    )
}
