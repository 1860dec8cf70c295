//! A what-if from and to the words of the control interface; pure. The command
//! uses it as well, for disks that no daemon serves.

use crate::{convert, problem};
use node::{PlanWork, Planner, Policy, Wanted, Whose};
use units::{Bytes, Duration};
use wire::control as api;
use wire::{Code, Problem};

/// What would become of the list.
///
/// # Errors
/// Where an entry makes no sense, whatever the disks.
pub fn plan(planner: &Planner, request: &api::PlanRequest) -> Result<api::Plan, Box<Problem>> {
    plan_within(planner, request, &PlanWork::whole())
}

/// The same within some work.
///
/// # Errors
/// As [`plan`], and where the work is over.
pub fn plan_within(
    planner: &Planner,
    request: &api::PlanRequest,
    work: &PlanWork,
) -> Result<api::Plan, Box<Problem>> {
    let list = request.streams.iter().map(wanted).collect::<Result<Vec<_>, _>>()?;
    let told = |error| Box::new(problem::of(&error));
    let plan = planner.plan_within(&list, work).map_err(told)?;
    let (alternatives, modes) = match request.alternatives {
        true => (
            planner.compare_within(&list, work).map_err(told)?,
            planner.modes_within(&list, &policies(planner, &list), work).map_err(told)?,
        ),
        false => Default::default(),
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
        modes: modes.iter().map(|one| mode(one, planner.policy())).collect(),
    })
}

/// Blocks of which a cycle of sweeps has one for each stream.
const SWEPT: [Bytes; 3] = [Bytes::mib(4), Bytes::mib(8), Bytes::mib(16)];
/// So many cycles are compared at the most.
const CYCLES: usize = 8;

/// What is compared: the policy that the pool follows, bounds, and sweeps whose cycles suit
/// the streams of the list.
fn policies(planner: &Planner, list: &[Wanted]) -> Vec<Policy> {
    let mut cycles = planner.cycles(list, &SWEPT);
    // In whole milliseconds, as people write them, and not longer than a block lasts.
    cycles.iter_mut().for_each(|cycle| *cycle = Duration::from_millis(cycle.as_millis()));
    cycles.sort_unstable();
    cycles.dedup();
    let swept = |cycle: &Duration| policies::SWEEPS.with_value("cycle", cycle.as_nanos()).ok();
    let mut swept: Vec<Policy> = cycles.iter().filter_map(swept).collect();
    let step = swept.len().div_ceil(CYCLES).max(1);
    // The longest of them takes most.
    swept = swept.into_iter().rev().step_by(step).collect();
    swept.reverse();
    let mut all = vec![planner.policy(), Policy::SLACK];
    all.extend(swept);
    let mut seen = Vec::new();
    all.retain(|policy| {
        policy.keeps_contracts() && !seen.contains(policy) && {
            seen.push(*policy);
            true
        }
    });
    all
}

/// A value as people write it, to the last digit: a cycle that was rounded up would be longer
/// than a block lasts.
fn written(unit: node::SettingUnit, value: u64) -> String {
    match unit {
        node::SettingUnit::Time if value.is_multiple_of(1_000_000) => {
            format!("{}ms", value / 1_000_000)
        }
        node::SettingUnit::Time => format!("{value}ns"),
        node::SettingUnit::Size => Bytes::new(value).to_string(),
        node::SettingUnit::Number => value.to_string(),
    }
}

fn mode(one: &node::ModePlan, now: Policy) -> api::PlannedMode {
    let settings = one.policy.chosen();
    api::PlannedMode {
        policy: one.policy.to_string(),
        settings: settings
            .map(|(setting, value)| (setting.name.into(), written(setting.unit, value)))
            .collect(),
        now: one.policy == now,
        block_bytes: one.blocks.iter().map(|block| block.map(Bytes::get)).collect(),
        fits: one.admitted == one.asked,
        admitted: one.admitted,
        utilisation_ppm: one.utilisation_ppm,
        window_bytes: one.windows,
        begins_ns: one.begins,
    }
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
        // Those of the plan stand for such.
        Some(service) => problem::of_service(error, service, true),
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
        ring_least_bytes: kind.ring,
        ring_ahead_bytes: kind.ring_ahead,
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
