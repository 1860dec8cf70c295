//! Between the words of the control interface and those of the node.

use crate::pool::{Description, Pool};
pub use crate::priority::priority;
use crate::problem;
use crate::quotas::Quotas;
use crate::sessions::Sessions;
use node::{DiskIndex, DiskStatus, Error, HostTime, KeptOut, Status, StreamStatus, VolumeStatus};
use units::{Bytes, Instant};
use wire::Problem;
use wire::control as api;

/// A contract as the node takes it.
pub fn contract(contract: &api::Contract) -> node::Contract {
    node::Contract {
        rate: contract.rate_bytes_per_second,
        block: contract.block_bytes,
        burst: contract.burst_bytes,
    }
}

/// A placement as the node takes it.
pub fn placement(placement: &api::Placement) -> node::Placement {
    node::Placement {
        disks: placement.disks.iter().copied().map(DiskIndex).collect(),
        zone: match placement.zone {
            api::Zone::Any => node::Zone::Any,
            api::Zone::Outer => node::Zone::Outer,
            api::Zone::Inner => node::Zone::Inner,
        },
        run: placement.run_bytes,
        thin: placement.thin,
    }
}

/// A mode as the node takes it.
pub fn mode(mode: api::Mode) -> node::Mode {
    match mode {
        api::Mode::Read => node::Mode::Read,
        api::Mode::Write => node::Mode::Write,
        api::Mode::Update => node::Mode::Update,
    }
}

/// A service as the node takes it.
pub fn service(service: &api::Service) -> node::Service {
    match *service {
        api::Service::BestEffort { priority: asked } => node::Service::BestEffort(priority(asked)),
        api::Service::Rate {
            rate_bytes_per_second: rate,
            block_bytes: block,
            period_ns: period,
        } => node::Service::Rate { rate, block, period },
        api::Service::Latency { len_bytes: len, within_ns: within, every_ns: every } => {
            node::Service::Latency { len, within, every }
        }
    }
}

/// A service as it is told.
pub fn service_told(service: node::Service) -> api::Service {
    match service {
        node::Service::BestEffort(priority) => api::Service::BestEffort {
            priority: match priority {
                node::Priority::Interactive => api::Priority::Interactive,
                node::Priority::Normal => api::Priority::Normal,
                node::Priority::Background => api::Priority::Background,
            },
        },
        node::Service::Rate { rate, block, period } => api::Service::Rate {
            rate_bytes_per_second: rate,
            block_bytes: block,
            period_ns: period,
        },
        node::Service::Latency { len, within, every } => {
            api::Service::Latency { len_bytes: len, within_ns: within, every_ns: every }
        }
    }
}

/// A part of a disk as it is told.
pub fn zone(zone: node::Zone) -> api::Zone {
    match zone {
        node::Zone::Any => api::Zone::Any,
        node::Zone::Outer => api::Zone::Outer,
        node::Zone::Inner => api::Zone::Inner,
    }
}

/// A service that is not in force, as it is told.
pub fn kept_out(kept_out: &KeptOut) -> api::KeptOut {
    let service = service_told(kept_out.service);
    // It is mostly found when the pool is opened, and no stream is.
    let Problem { detail, next_step, .. } = problem::of_service(&kept_out.why, &service, false);
    api::KeptOut { service, detail, next_step }
}

/// What is to be said of all volumes whose service does not fit any more, or waits for a disk.
pub fn warnings(volumes: &[VolumeStatus]) -> Vec<String> {
    let is_kept_out = |volume: &VolumeStatus| {
        let api::KeptOut { detail, next_step, .. } = kept_out(volume.kept_out.as_ref()?);
        Some(format!(
            "the contract of volume \"{}\" does not fit any more, and the volume is served as best \
             effort: {detail}; {next_step}",
            volume.name
        ))
    };
    let held = |volume: &VolumeStatus| {
        let node::MemoryHeld { disk, with_disk, operations } = volume.memory_held?;
        Some(format!(
            "requests under the contract of volume \"{}\" wait for the memory that is set aside for \
             them: disk {} has had {with_disk} of its {operations} operations for more than 10 s; see \
             what keeps it busy, or replace it",
            volume.name, disk.0
        ))
    };
    volumes.iter().flat_map(|volume| [is_kept_out(volume), held(volume)]).flatten().collect()
}

fn service_account(account: node::ServiceAccount) -> api::ServiceAccount {
    api::ServiceAccount {
        requests: account.requests,
        late_requests: account.late_requests,
        late_max_ns: account.late_max,
        latency_max_ns: account.latency_max,
        late_carried_requests: account.late_carried,
        carried_max_ns: account.carried_max,
    }
}

fn handle(handle: &node::HandleStatus, quotas: &Quotas) -> api::Handle {
    api::Handle {
        id: handle.handle.0,
        user: quotas.user_name(handle.uid),
        service: service_told(handle.service),
        account: service_account(handle.account),
    }
}

/// The bits of a mode that say what a volume stands for.
pub fn kind_bits(kind: api::FileKind) -> u16 {
    match kind {
        api::FileKind::Volume => 0,
        api::FileKind::Directory => node::Ownership::DIRECTORY,
        api::FileKind::Link => node::Ownership::LINK,
    }
}

fn kind_told(whose: node::Ownership) -> api::FileKind {
    match whose.kind() {
        node::Ownership::DIRECTORY => api::FileKind::Directory,
        node::Ownership::LINK => api::FileKind::Link,
        _ => api::FileKind::Volume,
    }
}

fn times_told(times: node::Times) -> api::Times {
    let node::Times { accessed, modified, changed } = times;
    api::Times { accessed_ns: accessed, modified_ns: modified, changed_ns: changed }
}

/// A directory that no volume stands for.
pub fn directory_facts(directory: node::Directory) -> api::DirectoryFacts {
    let node::Directory { name, moment, since } = directory;
    api::DirectoryFacts { name, moment, since }
}

/// A volume as a file has it. Its version depends on who asks, and is not told here.
pub fn file_facts(volume: VolumeStatus, quotas: &Quotas) -> api::FileFacts {
    api::FileFacts {
        number: volume.id.0,
        name: volume.name,
        kind: kind_told(volume.ownership),
        owner: quotas.owner_told(volume.ownership),
        size_bytes: volume.size,
        taken_bytes: volume.placement.thin.then_some(volume.taken),
        length_bytes: volume.length,
        start_bytes: volume.start.unwrap_or(Bytes::ZERO),
        times: volume.times.map(times_told),
        version: None,
    }
}

/// A volume as it is told.
pub fn volume(volume: VolumeStatus, quotas: &Quotas) -> api::Volume {
    api::Volume {
        number: volume.id.0,
        kind: kind_told(volume.ownership),
        times: volume.times.map(times_told),
        recorded: volume.recorded.map(|(begins_ns, ends_ns, within_ns)| api::Recorded {
            begins_ns,
            ends_ns,
            within_ns,
        }),
        name: volume.name,
        owner: quotas.owner_told(volume.ownership),
        size_bytes: volume.size,
        taken_bytes: volume.placement.thin.then_some(volume.taken),
        length_bytes: volume.length,
        ring: volume.start.map(|start| api::Ring {
            start_bytes: start,
            held_bytes: volume.length.saturating_sub(start),
            keep_ns: volume.keep,
            ahead_bytes: volume.ahead,
        }),
        placement: api::Placement {
            disks: volume.placement.disks.iter().map(|disk| disk.0).collect(),
            zone: zone(volume.placement.zone),
            run_bytes: volume.placement.run,
            thin: volume.placement.thin,
        },
        extents: volume.extents,
        runs: volume.stretches.count,
        shortest_run_bytes: volume.stretches.shortest,
        streams: volume.streams,
        service: service_told(volume.service),
        service_user: volume.given_by.map(|user| quotas.user_name(user)),
        kept_out: volume.kept_out.as_ref().map(kept_out),
        from_memory_bytes: volume.from_memory,
        handles: volume.handles.iter().map(|one| handle(one, quotas)).collect(),
        account: service_account(volume.account),
        promised: volume.promised || matches!(volume.service, node::Service::BestEffort(_)),
    }
}

/// A stream as it is told.
pub fn stream(
    stream: StreamStatus,
    now: Instant,
    sessions: &Sessions,
    quotas: &Quotas,
) -> api::Stream {
    api::Stream {
        id: stream.stream.0,
        user: sessions.owner(stream.stream).map(|owner| quotas.name(&owner)).unwrap_or_default(),
        attached: sessions.is_attached(stream.stream),
        buffered: sessions.is_buffered(stream.stream),
        grows_to_bytes: sessions.grows_to(stream.stream),
        volume: stream.volume,
        mode: match stream.mode {
            node::Mode::Read => api::Mode::Read,
            node::Mode::Write => api::Mode::Write,
            node::Mode::Update => api::Mode::Update,
        },
        contract: api::Contract {
            rate_bytes_per_second: stream.contract.rate,
            block_bytes: stream.contract.block,
            burst_bytes: stream.contract.burst,
        },
        promised: stream.promised,
        miss_per_billion: stream.miss.map(node::Chance::per_billion),
        window_bytes: stream.window,
        position_bytes: stream.position,
        moved_bytes: stream.account.moved,
        durable_bytes: stream.durable,
        requests: stream.account.requests,
        late_requests: stream.account.late_requests,
        late_max_ns: stream.account.late_max,
        underruns: stream.account.underruns,
        throttled: stream.account.throttled,
        excess_bytes: stream.account.excess,
        gap_bytes: stream.account.gaps,
        overtaken_bytes: stream.account.overtaken,
        from_memory_bytes: stream.account.from_memory,
        latency_max_ns: stream.account.latency_max,
        open_ns: now.saturating_since(stream.open_since),
    }
}

/// A disk as it is told.
pub fn disk(disk: DiskStatus, description: &Description) -> api::Disk {
    let traffic =
        |traffic: node::Traffic| api::Traffic { requests: traffic.requests, bytes: traffic.bytes };
    let account = disk.account;
    api::Disk {
        disk: disk.disk.0,
        device: description.devices.get(usize::from(disk.disk.0)).cloned().unwrap_or_default(),
        capacity_bytes: disk.capacity,
        free_bytes: disk.free,
        utilisation_ppm: disk.utilisation_ppm,
        slack_ns: disk.slack,
        waiting_real_time: disk.waiting_real_time,
        waiting_best_effort: disk.waiting_best_effort,
        real_time: traffic(account.real_time),
        best_effort: traffic(account.best_effort),
        overruns: account.overruns,
        overrun_max_ns: account.overrun_max,
        predicted_ns: account.predicted_total,
        actual_ns: account.actual_total,
        late_requests: account.late_requests,
        late_max_ns: account.late_max,
        oldest_command: disk
            .oldest
            .map(|oldest| api::OldestCommand { age_ns: oldest.age, bound_ns: oldest.bound }),
        errors: account.errors,
        host_errors: disk.host_errors,
        damage: None,
        profile: profile(&disk),
        bus: disk.bus.as_ref().map(crate::bus::told),
        gap: host_time(disk.gaps, disk.gap_refused.as_deref()),
        odds: (disk.odds.requests > 0).then(|| api::OddsState {
            requests: disk.odds.requests,
            late_requests: disk.odds.late,
            broken: disk.odds.broken.map(|broken| match broken {
                node::BrokenOdds::Late => api::OddsBroken::Late,
                node::BrokenOdds::Costs => api::OddsBroken::Costs,
            }),
        }),
    }
}

/// What is charged for something that the host takes, and why not for more.
pub fn host_time(time: HostTime, refused: Option<&Error>) -> api::HostTime {
    api::HostTime {
        stated_ns: time.stated,
        p999_ns: time.quantile,
        sample: time.sample,
        beyond: time.beyond,
        beyond_max_ns: time.beyond_max,
        beyond_total_ns: time.beyond_total,
        refused: refused.map(ToString::to_string),
    }
}

/// Suspect extents that are listed; more are only counted.
const SUSPECTS_LISTED: usize = 16;

fn profile(disk: &DiskStatus) -> api::ProfileState {
    let DiskStatus { observed, moves, .. } = disk;
    let listed = observed.suspects.iter().take(SUSPECTS_LISTED);
    api::ProfileState {
        verdict: match observed.verdict {
            node::Verdict::Fresh => api::Verdict::Fresh,
            node::Verdict::Drifted { .. } => api::Verdict::Drifted,
            node::Verdict::Stale { .. } => api::Verdict::Stale,
        },
        detail: observed.verdict.to_string(),
        commands: observed.commands,
        overruns: observed.overruns,
        ratio_ppm: observed.ratio_ppm,
        drift_ppm: observed.drift_ppm,
        suspects: observed.suspects.len() as u64,
        suspect_extents: listed
            .map(|suspect| api::SuspectExtent {
                offset_bytes: suspect.offset(),
                errors: suspect.errors,
                slow: suspect.slow,
                commands: suspect.commands,
            })
            .collect(),
        occupied: moves.occupied,
        moved: moves.moved,
        moving_offset_bytes: moves.moving.map(|extent| Bytes::MIB * extent),
        stuck: moves.stuck.iter().take(SUSPECTS_LISTED).map(stuck).collect(),
        measured: disk.measured.as_ref().map(measured),
        for_next_start: disk.profile_for_next_start,
    }
}

fn measured(measured: &node::Measured) -> api::Measured {
    let part = |part: &node::MeasuredPart| api::MeasuredPart {
        from_bytes: part.from,
        to_bytes: part.to,
        small_ns: part.small,
        large_ns: part.large,
        rate_bytes_per_second: part.rate,
    };
    api::Measured {
        outcome: match measured.outcome {
            node::Outcome::Running { .. } => api::Outcome::Running,
            node::Outcome::Holds => api::Outcome::Holds,
            node::Outcome::Used => api::Outcome::Used,
            node::Outcome::Refused(_) => api::Outcome::Refused,
        },
        detail: measured.to_string(),
        reads: measured.reads,
        over: measured.over,
        excess_ns: measured.excess,
        large_bytes: measured.large,
        parts: measured.parts.iter().map(part).collect(),
    }
}

fn stuck(stuck: &node::StuckExtent) -> api::StuckExtent {
    api::StuckExtent {
        offset_bytes: Bytes::MIB * stuck.extent,
        volume: stuck.volume.clone(),
        detail: stuck.why.to_string(),
    }
}

/// All volumes, in the order of their names.
pub fn volumes(mut volumes: Vec<VolumeStatus>, quotas: &Quotas) -> Vec<api::Volume> {
    volumes.sort_by(|a, b| a.name.cmp(&b.name));
    volumes.into_iter().map(|one| volume(one, quotas)).collect()
}

/// All streams, in the order in which they were opened.
pub fn streams(
    mut streams: Vec<StreamStatus>,
    now: Instant,
    sessions: &Sessions,
    quotas: &Quotas,
) -> Vec<api::Stream> {
    streams.sort_by_key(|stream| (stream.open_since, stream.stream));
    streams.into_iter().map(|one| stream(one, now, sessions, quotas)).collect()
}

/// How the disks are scheduled.
pub fn policy(status: &Status) -> api::PolicyState {
    let policy = status.policy;
    let setting = |(at, setting): (usize, &node::PolicySetting)| api::PolicySetting {
        name: setting.name.into(),
        unit: match setting.unit {
            node::SettingUnit::Time => api::SettingUnit::Nanoseconds,
            node::SettingUnit::Size => api::SettingUnit::Bytes,
            node::SettingUnit::Number => api::SettingUnit::Number,
        },
        value: policy.values.get(at),
        default: setting.default,
        least: setting.least,
        most: setting.most,
        summary: setting.summary.into(),
    };
    api::PolicyState {
        policy: policy.to_string(),
        summary: policy.summary.into(),
        admission: match policy.admission {
            node::Admission::Exact => api::PolicyAdmission::Exact,
            node::Admission::Cycles(_) => api::PolicyAdmission::Cycles,
            node::Admission::Sweeps(_) => api::PolicyAdmission::Sweeps,
            node::Admission::Nothing => api::PolicyAdmission::Nothing,
        },
        promised: status.promised,
        settings: policy.settings.iter().enumerate().map(setting).collect(),
        kept: status.policy_kept,
    }
}

/// Nanoseconds since 1970; 0 before that.
fn wall_clock() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

/// What is shown of everything at one instant; `since` is when the pool was opened.
pub fn status(
    pool: &dyn Pool,
    status: Status,
    sessions: &Sessions,
    quotas: &Quotas,
    since: Instant,
) -> api::Status {
    let description = pool.description();
    let lateness = pool.host_lateness();
    let mut damage = pool.damage().into_iter();
    let disk = |one| api::Disk { damage: damage.next().flatten(), ..disk(one, &description) };
    let disks = status.disks.into_iter().map(disk).collect();
    let mut warned = pool.warnings();
    warned.extend(warnings(&status.volumes));
    api::Status {
        policy: status.policy.to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        up_ns: status.now.saturating_since(since),
        time_ns: wall_clock(),
        clock_doubt: status.clock_doubt.map(|doubt| api::ClockDoubt {
            ahead_ns: doubt.ahead,
            for_ns: doubt.until.saturating_since(status.now),
        }),
        read_only: status.read_only,
        disks,
        volumes: volumes(status.volumes, quotas),
        streams: streams(status.streams, status.now, sessions, quotas),
        memory: api::Memory {
            total_bytes: status.memory.total,
            window_bytes: status.memory.windows + status.memory.services,
            shared_window_bytes: status.memory.regions,
            best_effort_bytes: status.memory.best_effort,
            free_bytes: status.memory.free,
            kept_bytes: status.memory.kept,
            from_memory_bytes: status.memory.from_memory,
        },
        host_wakeups: lateness.wakeups,
        host_completions: lateness.completions,
        delivery: host_time(pool.deliveries(), status.delivery_refused.as_deref()),
        delivery_realtime: pool.delivers_in_real_time(),
        warnings: warned,
        pool: description.name,
    }
}
