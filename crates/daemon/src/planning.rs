//! A what-if from and to the words of the control interface; pure. The command
//! uses it as well, for disks that no daemon serves.

use crate::{convert, problem};
use node::{Planner, Wanted, Whose};
use wire::control as api;
use wire::{Code, Problem};

/// What would become of the list.
///
/// # Errors
/// Where an entry makes no sense, whatever the disks.
pub fn plan(planner: &Planner, request: &api::PlanRequest) -> Result<api::Plan, Box<Problem>> {
    let list = request.streams.iter().map(wanted).collect::<Result<Vec<_>, _>>()?;
    let told = |error| Box::new(problem::of(&error));
    let plan = planner.plan(&list).map_err(told)?;
    let alternatives = match request.alternatives {
        true => planner.compare(&list).map_err(told)?,
        false => Vec::new(),
    };
    Ok(api::Plan {
        fits: plan.stops.is_none(),
        streams: request
            .streams
            .iter()
            .zip(plan.kinds)
            .map(|(one, kind)| stream(one, kind))
            .collect(),
        stops: plan.stops.map(|stop| api::PlanStop {
            name: list[stop.kind].name.clone(),
            number: stop.number,
            problem: told_of(&request.streams[stop.kind], &stop.error),
        }),
        disks: plan.disks.into_iter().map(|one| disk(one, &list)).collect(),
        window_bytes: plan.windows,
        memory_bytes: plan.memory,
        alternatives: alternatives.iter().map(alternative).collect(),
    })
}

fn wanted(stream: &api::PlanStream) -> Result<Wanted, Box<Problem>> {
    let what = match (&stream.contract, &stream.service) {
        (Some(contract), None) => Whose::Stream {
            mode: stream.mode.map(convert::mode),
            contract: convert::contract(contract),
        },
        (None, Some(service)) => Whose::Service(convert::service(service)),
        _ => {
            let what = format!("\"{}\" needs either a contract or a service", stream.name);
            return Err(Box::new(Problem::new(Code::Invalid, what, "give one of the two")));
        }
    };
    Ok(Wanted {
        name: stream.name.clone(),
        count: stream.count,
        what,
        placement: convert::placement(&stream.placement),
    })
}

fn told_of(stream: &api::PlanStream, error: &node::Error) -> Problem {
    match &stream.service {
        Some(service) => problem::of_service(error, service),
        None => problem::of(error),
    }
}

fn stream(wanted: &api::PlanStream, kind: node::KindPlan) -> api::PlannedStream {
    api::PlannedStream {
        name: wanted.name.clone(),
        asked: wanted.count,
        admitted: kind.admitted,
        more: kind.more,
        stops: kind.stops.as_ref().map(|error| told_of(wanted, error)),
        window_bytes: kind.window,
    }
}

fn disk(disk: node::DiskPlan, list: &[Wanted]) -> api::PlannedDisk {
    let task = |one: node::PlanTask| api::PlannedTask {
        name: one.kind.map(|kind| list[kind].name.clone()),
        fits: one.fits,
        count: one.count,
        period_ns: one.task.period,
        deadline_ns: one.task.deadline,
        cost_ns: one.task.cost,
        command_ns: one.task.command,
    };
    api::PlannedDisk {
        disk: disk.disk.0,
        utilisation_ppm: disk.utilisation_ppm,
        best_effort_ppm: 1_000_000u64.saturating_sub(disk.utilisation_ppm),
        slack_ns: disk.slack,
        critical_ns: disk.critical,
        reserve_ns: disk.reserve,
        best_effort_estimate_bytes_per_second: disk.best_effort,
        tasks: disk.tasks.into_iter().map(task).collect(),
    }
}

fn alternative(one: &node::Alternative) -> api::Alternative {
    let variation = match one.variation {
        node::Variation::Asked => api::Variation::Asked {},
        node::Variation::Block(block_bytes) => api::Variation::Blocks { block_bytes },
        node::Variation::Zone(zone) => api::Variation::Zone { zone: convert::zone(zone) },
        node::Variation::Apart => api::Variation::Apart {},
        node::Variation::Disks(disks) => api::Variation::Disks { disks },
    };
    api::Alternative {
        variation,
        fits: one.admitted == one.asked,
        admitted: one.admitted,
        utilisation_ppm: one.utilisation_ppm,
        slack_ns: one.slack,
        window_bytes: one.windows,
        best_effort_estimate_bytes_per_second: one.best_effort,
    }
}
