//! `slackline pool`: make, show and check pools.
//!
//! Invariant: nothing that a device holds is destroyed before a person has typed
//! the pool's name, or a flag has said so.

use crate::failure::{FAILED, Failure, REFUSED};
use crate::given::specs;
use crate::output::{Table, counted, percent};
use crate::status::{PROMISED, oldest};
use crate::volume::kept_out_words;
use crate::{Common, confirm, explain, stream};
use client::control::{
    Bus, BusSet, Disk, HostTime, KeptOut, Lateness, OddsBroken, OddsState, PolicyAdmission,
    PolicySet, PolicySetting, PolicyState, ProfileState, SettingUnit, Status, StuckExtent,
    SuspectExtent, Verdict,
};
use disk::Profile;
use engine::{BusSpec, CreateOptions, Created, DeviceSpec, Pool, PoolError};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use store::{Finding, Report, Severity};
use units::{Bytes, Duration};

/// The longest that may be asked for.
const MEASURE_MAX: Duration = Duration::from_secs(3_600);

/// Pools.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Make a pool; what the devices hold is destroyed
    ///
    /// Files and block devices are timed first, which takes some seconds, on slow ones half a
    /// minute, and writes to them.
    Create {
        /// Its name
        name: String,
        /// A file, a block device, or emulated:MODEL:FILE for a disk model over a
        /// backing file
        #[arg(required = true, value_name = "DEVICE")]
        devices: Vec<String>,
        /// Size of each file; needed for files that do not exist yet
        #[arg(long, short, value_name = "SIZE")]
        size: Option<Bytes>,
        /// Take this profile (TOML) for every file and block device, in place of
        /// timing them
        #[arg(long, value_name = "PATH")]
        profile: Option<PathBuf>,
        /// For how long to time what commands mostly cost, on each file and block device, at most
        /// 1h [default: 4s]
        ///
        /// Streams that may be late now and then (`--miss`) are admitted by that. What is rare
        /// is not seen in a few seconds: after five minutes much more is known of the longest
        /// commands, and of how seldom they come.
        #[arg(long, value_name = "TIME", conflicts_with = "profile")]
        measure: Option<Duration>,
        /// A bus, a bridge or a network that several of the disks share; may be given several
        /// times
        ///
        /// NAME,rate=RATE,disks=N+N...: its name, what it moves in all, and the disks on it,
        /// numbered from 0 in the order in which they are given. May be followed by
        /// order=commands (as they came; if nothing is said) or order=bursts (disks take
        /// turns), burst=SIZE (what a disk sends at once, 64 KiB if nothing is said),
        /// lost=TIME (what is lost with each burst), others=N (disks on it that are not this
        /// pool's) and depth=N (the most commands that one of those has at a time). Contracts are then admitted with the wait for the bus. It is kept in the
        /// disks' profiles.
        #[arg(long, value_name = "BUS")]
        bus: Vec<String>,
        /// Take devices that are parts of one drive, though contracts on them may be late
        #[arg(long)]
        shared_drive: bool,
        /// Destroy what is on the devices without asking
        #[arg(long)]
        overwrite: bool,
    },
    /// Show the pool that the daemon serves
    Status,
    /// Change how the served pool is scheduled, or which disks share a bus
    ///
    /// Every contract that is open is admitted again, by the analysis that the policy
    /// keeps; where one would not fit, it is named and nothing changes. The pool keeps what was
    /// chosen, and the daemon follows it when it is started again, unless it is given
    /// --policy. docs/policies.md says what each policy promises, and lists its settings.
    #[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
    Set {
        /// The policy of all disks, by its name, with its settings as by default; without it
        /// the policy stays, and so do its other settings
        #[arg(long, value_name = "NAME", group = "what")]
        policy: Option<String>,
        /// A setting of the policy; can be repeated
        #[arg(
            long = "setting",
            value_name = "NAME=VALUE",
            value_parser = crate::given::setting,
            group = "what"
        )]
        settings: Vec<(String, String)>,
        /// Only until the daemon stops; the pool then forgets what it kept
        #[arg(long, conflicts_with_all = ["bus", "no_bus"])]
        until_stop: bool,
        /// A bus that disks of the pool share, as for `pool create`, with all of them; it is kept
        /// in their profiles, in the place of what they said of a bus before
        #[arg(long, value_name = "BUS", group = "what", conflicts_with_all = ["policy", "settings", "no_bus"])]
        bus: Option<String>,
        /// Disks that share no bus, by their numbers: N+N...
        #[arg(long, value_name = "DISKS", value_delimiter = '+', group = "what", conflicts_with_all = ["policy", "settings"])]
        no_bus: Vec<u16>,
    },
    /// Show the policy of the served pool and its settings
    Settings,
    /// Give a disk of the served pool another profile
    ///
    /// Every contract that is open is admitted again with what the profile says; where
    /// one would not fit, it is named and nothing changes.
    Profile {
        /// The profile (TOML), as `slackline disk profile` writes it
        #[arg(long, value_name = "FILE", required = true)]
        set: PathBuf,
        /// The disk's number in the pool
        #[arg(long, value_name = "N", default_value_t = 0)]
        disk: u16,
    },
    /// Measure a disk of the served pool again, in the background
    ///
    /// Reads in every part of the disk, when nothing else wants it, held against the
    /// profile. Where bounds have to be wider, such a profile is used and stored, if
    /// every open contract fits with it. `slackline pool status` tells how far it is.
    /// The daemon does this by itself where a profile does not hold, unless it was started
    /// with --no-remeasure. It cannot find bounds that may be tighter, nor measure writes:
    /// `slackline disk profile` does, on a disk that is not in use.
    Reprofile {
        /// The disk's number in the pool
        #[arg(long, value_name = "N", default_value_t = 0)]
        disk: u16,
    },
    /// Read all metadata of a pool that is not served, and name every damage
    ///
    /// Changes nothing. Ends with 1 where the pool cannot be opened as it is, and with 3 where
    /// the contract of a volume would not fit any more: with the profiles that the disks carry,
    /// under a daemon that is given no settings. Without devices the daemon is asked, which
    /// contracts of volumes do not fit in the pool that it serves; that ends with 3, too.
    Check {
        /// The pool's disks, in any order; none for the pool that is served
        #[arg(value_name = "DEVICE")]
        devices: Vec<String>,
    },
}

/// Runs it.
pub fn run(command: Command, common: &Common) -> Result<(), Failure> {
    match command {
        Command::Create { name, devices, size, profile, measure, bus, shared_drive, overwrite } => {
            let specs = specs(&devices)?;
            let buses: Result<Vec<BusSpec>, _> = bus.iter().map(|text| text.parse()).collect();
            let buses = buses.map_err(|error| {
                Failure::usage(
                    error.to_string(),
                    "describe it as `slackline help pool create` says",
                )
            })?;
            let profile = profile.as_deref().map(read_profile).transpose()?;
            if let Some(time) = measure.filter(|time| time.is_zero() || *time > MEASURE_MAX) {
                let text = format!("--measure {time} is no time to measure for");
                return Err(Failure::usage(text, "give 1h at the most, for example 5min"));
            }
            if size.is_some_and(|size| size.is_zero()) {
                let next = "say how large each file shall be, as in --size 10GiB";
                return Err(Failure::usage("--size 0 is no size", next));
            }
            let force = overwrite || may_overwrite(&name, &specs)?;
            let tell: fn(&Path, Duration) = |path, left| {
                eprintln!("timing what commands of {} mostly cost: {left} left", path.display());
            };
            let tell = measure.map(|_| tell);
            let begins: Option<fn()> = Some(|| eprintln!("timing the devices"));
            let options =
                CreateOptions { size, force, profile, buses, shared_drive, measure, begins, tell };
            create(&name, &specs, &options, common)
        }
        Command::Status => {
            let client = common.client()?;
            let (status, policy) = (client.status()?, client.policy()?);
            common.output().result(&status, |status| shown(status, &policy))
        }
        Command::Set { bus: Some(bus), .. } => bus_set(&BusSet::Shared(bus), common),
        Command::Set { no_bus, .. } if !no_bus.is_empty() => bus_set(&BusSet::None(no_bus), common),
        Command::Set { policy, settings, until_stop, .. } => {
            let keep = until_stop.then_some(false);
            let to = PolicySet { policy, settings: settings.into_iter().collect(), keep };
            let state = common.client()?.change_policy(&to)?;
            common.output().result(&state, policy_set)
        }
        Command::Settings => {
            let state = common.client()?.policy()?;
            common.output().result(&state, policy_shown)
        }
        Command::Profile { set, disk } => {
            let text = read_profile(&set)?.to_toml();
            let disk = common.client()?.disk_profile(disk, &text)?;
            common.output().result(&disk, profile_set)
        }
        Command::Reprofile { disk } => {
            let disk = common.client()?.disk_reprofile(disk)?;
            common.output().result(&disk, reprofiling)
        }
        Command::Check { devices } if devices.is_empty() => check_served(common),
        Command::Check { devices } => check(&specs(&devices)?, common),
    }
}

/// The profile in a file.
pub fn read_profile(path: &Path) -> Result<Profile, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    Profile::parse(&text).map_err(|error| {
        let what = format!("profile {}: {error}", path.display());
        Failure::usage(
            what,
            "give a file that `slackline disk profile -o FILE` wrote, or correct it",
        )
    })
}

fn create(
    name: &str,
    specs: &[DeviceSpec],
    options: &CreateOptions,
    common: &Common,
) -> Result<(), Failure> {
    if let Some(profile) = options.profile.as_ref().filter(|one| one.assumes_writes()) {
        eprintln!(
            "slackline: warning: the profile was measured with reads only, so that a flush is \
             assumed to take {} and less is admitted; what is on the device is destroyed \
             anyway: measure it with `slackline disk profile --write` first",
            profile.flush()
        );
    }
    let created = Pool::create(name, specs, options)?;
    for warning in &created.warnings {
        eprintln!("slackline: warning: {warning}");
    }
    let shortly = options.measure.is_none() && options.profile.is_none();
    common.output().result(&created_json(name, &created), |_| made(name, &created, shortly))
}

/// Looks at every device. Where some hold something, asks, with all of them in
/// view; true means that they may be destroyed.
fn may_overwrite(name: &str, specs: &[DeviceSpec]) -> Result<bool, Failure> {
    let mut table = Table::new(&["device", ">size", "holds"]);
    let mut any = false;
    for spec in specs {
        let Some(found) = spec.look()? else { continue };
        any |= found.holds.is_some();
        let holds = found.holds.unwrap_or_else(|| "nothing that is known".into());
        table.row(vec![spec.path().display().to_string(), found.size.to_string(), holds]);
    }
    if any {
        let warning =
            format!("everything on these devices will be DESTROYED:\n{}", table.text("  "));
        confirm::destroy(&warning, name, "--overwrite")?;
    }
    Ok(any)
}

fn bus_set(bus: &BusSet, common: &Common) -> Result<(), Failure> {
    let disks = common.client()?.bus_set(bus)?;
    common.output().result(&disks, |disks: &Vec<Disk>| {
        let lines = disks.iter().map(|disk| match &disk.bus {
            Some(bus) => bus_note(disk.disk, bus),
            None => format!("disk {}   shares no bus\n", disk.disk),
        });
        lines.collect()
    })
}

fn policy_set(state: &PolicyState) -> String {
    let until = if state.kept { "" } else { ", until the daemon stops" };
    let chosen = state.settings.iter().filter(|setting| setting.value != setting.default);
    let chosen: String =
        chosen.map(|one| format!(", {} {}", one.name, setting_value(one, one.value))).collect();
    format!("the disks follow the policy {}{chosen}{}{until}\n", state.policy, no_promise(state))
}

/// The policy with all its settings.
fn policy_shown(state: &PolicyState) -> String {
    let mut text = format!("{}: {}\n", state.policy, state.summary);
    text += match state.kept {
        true => "the pool keeps it, with these settings\n",
        false => {
            "the pool keeps none: this is what the daemon was started with, or told until it stops\n"
        }
    };
    if state.settings.is_empty() {
        return text + "it has no settings\n";
    }
    let mut table =
        Table::new(&["setting", ">value", ">default", ">least", ">most", "what it does"]);
    for one in &state.settings {
        let values = [one.value, one.default, one.least, one.most];
        let mut row = vec![one.name.clone()];
        row.extend(values.map(|value| setting_value(one, value)));
        row.push(one.summary.clone());
        table.row(row);
    }
    text + &table.text("")
}

fn setting_value(setting: &PolicySetting, value: u64) -> String {
    match setting.unit {
        SettingUnit::Nanoseconds => Duration::from_nanos(value).to_string(),
        SettingUnit::Bytes => Bytes::new(value).to_string(),
        SettingUnit::Number => value.to_string(),
    }
}

/// What stands behind a policy under which no contract is a promise.
fn no_promise(state: &PolicyState) -> &'static str {
    match (state.promised, state.admission) {
        (true, PolicyAdmission::Cycles) => "; contracts are admitted by cycles",
        (true, PolicyAdmission::Sweeps) => "; streams are admitted by sweeps",
        (true, _) => "",
        (false, PolicyAdmission::Nothing) => ", which keeps no contracts",
        (false, _) => ", without admission: no contract is a promise",
    }
}

fn profile_set(disk: &Disk) -> String {
    let number = disk.disk;
    match disk.profile.for_next_start {
        true => format!(
            "disk {number}: the profile is stored; it asks for another number of commands in \
             flight, so that it is used when the daemon is started again\n"
        ),
        false => format!(
            "disk {number}: the profile is used and stored; {} is promised, slack {}\n",
            percent(disk.utilisation_ppm),
            disk.slack_ns
        ),
    }
}

fn reprofiling(disk: &Disk) -> String {
    format!("disk {}{}", disk.disk, measured_note(&disk.profile))
}

/// What measuring a disk again came to, or how far it is.
fn measured_note(profile: &ProfileState) -> String {
    match &profile.measured {
        Some(measured) => format!("   measured again: {}\n", measured.detail),
        None => String::new(),
    }
}

fn created_json(name: &str, created: &Created) -> Value {
    let disks: Vec<_> = created
        .disks
        .iter()
        .map(|(spec, profile)| {
            json!({ "device": spec.to_string(), "capacity_bytes": profile.capacity().get() })
        })
        .collect();
    json!({ "pool": name, "id": created.id, "disks": disks, "warnings": created.warnings })
}

/// `shortly`: the devices were timed no longer than they always are.
fn made(name: &str, created: &Created, shortly: bool) -> String {
    let mut table = Table::new(&["disk", "device", ">capacity"]);
    let mut devices = String::new();
    for (number, (spec, profile)) in created.disks.iter().enumerate() {
        table.row(vec![number.to_string(), spec.to_string(), profile.capacity().to_string()]);
        devices.push_str(&format!(" {}", report::quoted(&spec.to_string())));
    }
    let is_timed = |(spec, profile): &(DeviceSpec, Profile)| {
        matches!(spec, DeviceSpec::Real { .. })
            && profile.spread(Bytes::kib(4), units::Direction::Read).is_some()
    };
    let longer = match shortly && created.disks.iter().any(is_timed) {
        true => {
            "streams with odds (--miss) count on what was seen of costs in a few seconds: a pause that \
             comes once in a minute was hardly seen; `slackline pool create --measure 5min` sees 75 \
             times as many commands\n"
        }
        false => "",
    };
    let table = table.text("  ");
    format!("made pool {name}\n{table}{longer}serve it with: slackline serve{devices}\n")
}

fn shown(status: &Status, state: &PolicyState) -> String {
    let Status { pool, policy, up_ns, .. } = status;
    let read_only = if status.read_only { ", READ-ONLY since a metadata write failed" } else { "" };
    let mut text = format!(
        "pool {pool}, served for {up_ns} under policy {policy}{}{read_only}\n",
        no_promise(state)
    );
    text.push_str(&disks(&status.disks));
    let memory = &status.memory;
    text.push_str(&format!(
        "memory   {}: windows {}, best effort {}, free {}; beside it {} in windows that programs \
         share\n",
        memory.total_bytes,
        memory.window_bytes,
        memory.best_effort_bytes,
        memory.free_bytes,
        memory.shared_window_bytes
    ));
    if !memory.from_memory_bytes.is_zero() || !memory.kept_bytes.is_zero() {
        text.push_str(&format!(
            "         {} of what is free kept for readers; they had {} from memory\n",
            memory.kept_bytes, memory.from_memory_bytes
        ));
    }
    text.push_str(&late("woke the disks' threads late", &status.host_wakeups));
    text.push_str(&late("noticed ends of emulated commands late", &status.host_completions));
    text.push_str(&delivery_note(&status.delivery, status.delivery_realtime));
    for warning in &status.warnings {
        text.push_str(&format!("warning  {warning}\n"));
    }
    text.push_str(&format!(
        "volumes  {}\nstreams  {}\n",
        status.volumes.len(),
        status.streams.len()
    ));
    if !status.streams.is_empty() {
        text.push_str(&stream::table(&status.streams));
    }
    text
}

/// What stands below the table of disks, for the lines that follow.
const CHARGED: &str = "  (charged: time that this machine itself takes, which admission adds to what contracts need; it \
                       follows what is measured, and a longer one is counted, but is no late request)\n";

fn disks(disks: &[Disk]) -> String {
    let headings = [
        "disk",
        "device",
        ">size",
        ">free",
        ">promised",
        ">slack",
        ">streams moved",
        ">best effort moved",
        ">late",
        ">overruns",
        ">errors",
        ">oldest",
    ];
    let mut table = Table::new(&headings);
    for disk in disks {
        table.row(vec![
            disk.disk.to_string(),
            disk.device.clone(),
            disk.capacity_bytes.to_string(),
            disk.free_bytes.to_string(),
            percent(disk.utilisation_ppm),
            disk.slack_ns.to_string(),
            disk.real_time.bytes.to_string(),
            disk.best_effort.bytes.to_string(),
            disk.late_requests.to_string(),
            disk.overruns.to_string(),
            disk.errors.to_string(),
            oldest(disk),
        ]);
    }
    let notes = disks.iter().map(|disk| {
        disk.bus.as_ref().map_or_else(String::new, |bus| bus_note(disk.disk, bus))
            + &gap_note(disk.disk, &disk.gap)
            + &odds_note(disk.disk, disk.odds.as_ref())
            + &profile_notes(disk.disk, &disk.profile)
    });
    notes.fold(table.text("  ") + PROMISED + CHARGED, |text, notes| text + &notes)
}

/// The bus that a disk shares.
fn bus_note(disk: u16, bus: &Bus) -> String {
    let Bus { name, rate_bytes_per_second: rate, disks, wait_max_ns: wait } = bus;
    format!(
        "disk {disk}   shares the bus {name} ({rate}) with {}; each command counts up to {wait} \
         for it\n",
        counted(u64::from(disks.saturating_sub(1)), "other disk")
    )
}

/// Requests that may be late now and then.
fn odds_note(disk: u16, odds: Option<&OddsState>) -> String {
    let Some(OddsState { requests, late_requests: late, broken }) = odds else {
        return String::new();
    };
    let text = format!(
        "disk {disk}   of {} that may be late now and then {late} {} late\n",
        counted(*requests, "request"),
        if *late == 1 { "was" } else { "were" }
    );
    let broken = match broken {
        None => return text,
        Some(OddsBroken::Late) => "more are late than was said",
        Some(OddsBroken::Costs) => "its commands cost more than was measured",
    };
    format!(
        "{text}warning  the odds on disk {disk} do not hold: {broken}; close such streams, or give \
         them other odds, and make the next pool with `--measure 5min`\n"
    )
}

/// What the host takes between commands on a disk.
fn gap_note(disk: u16, gap: &HostTime) -> String {
    let stated = gap.stated_ns;
    let charged = format!("charged {stated} with each command, for the gap until the next begins");
    charge_note(&format!("disk {disk}   "), &charged, gap, "gap")
}

/// What is charged for something that the host takes, beside what was measured of it.
pub fn charge_note(before: &str, charged: &str, time: &HostTime, what: &str) -> String {
    let HostTime { p999_ns, sample, beyond, beyond_max_ns, refused, .. } = time;
    let mut text = format!("{before}{charged}");
    if *sample > 0 {
        let measured = counted(*sample, what);
        text.push_str(&format!("; measured: {measured}, 99.9 % of them at most {p999_ns}"));
    }
    if *beyond > 0 {
        text.push_str(&format!("; {beyond} were longer than charged, by up to {beyond_max_ns}"));
    }
    text.push('\n');
    if let Some(refused) = refused {
        text.push_str(&format!("{before}{refused}\n"));
    }
    text
}

/// What is to be said of a disk's profile; nothing where all is well.
fn profile_notes(disk: u16, profile: &ProfileState) -> String {
    let mut text = String::new();
    if profile.verdict != Verdict::Fresh {
        text.push_str(&format!(
            "disk {disk}   its profile is {}; contracts on it may be late\n\
             disk {disk}   next: the daemon measures its reads again whenever nothing else wants the \
             disk, unless it was started with --no-remeasure (at once: `slackline pool reprofile \
             --disk {disk}`); for a whole profile stop the daemon, run `slackline disk profile \
             DEVICE -o FILE`, start it, and give it with `slackline pool profile --set FILE --disk \
             {disk}`\n",
            profile.detail
        ));
    }
    if profile.measured.is_some() {
        text.push_str(&format!("disk {disk}{}", measured_note(profile)));
    }
    if profile.for_next_start {
        text.push_str(&format!(
            "disk {disk}   another profile is stored, and used from the next start of the daemon on\n"
        ));
    }
    if profile.suspects > 0 {
        let listed: Vec<_> = profile.suspect_extents.iter().map(suspect).collect();
        let more = if profile.suspects > listed.len() as u64 { ", ..." } else { "" };
        text.push_str(&format!(
            "disk {disk}   {} of 1 MiB bad or slow, not used for new volumes while others are \
             free: at {}{more}\n",
            counted(profile.suspects, "extent"),
            listed.join(", ")
        ));
    }
    text + &move_notes(disk, profile)
}

/// What became of the data in bad and slow extents; nothing where there is none.
fn move_notes(disk: u16, profile: &ProfileState) -> String {
    let ProfileState { occupied, moved, moving_offset_bytes, stuck, .. } = profile;
    if *occupied == 0 && *moved == 0 {
        return String::new();
    }
    let mut text = format!(
        "disk {disk}   {} moved to good places, {} with data left",
        counted(*moved, "extent"),
        counted(*occupied, "bad or slow one")
    );
    match moving_offset_bytes {
        Some(offset) => {
            text.push_str(&format!(
                "; the one at {} is on its way, while nothing else wants the disk\n",
                disk::exact_size(*offset)
            ));
        }
        None => text.push('\n'),
    }
    for StuckExtent { offset_bytes, volume, detail } in stuck {
        let offset = disk::exact_size(*offset_bytes);
        text.push_str(&format!(
            "disk {disk}   the one at {offset}, of volume {volume}, stays: {detail}\n"
        ));
    }
    text
}

fn suspect(extent: &SuspectExtent) -> String {
    let SuspectExtent { offset_bytes, errors, slow, commands } = extent;
    let offset = disk::exact_size(*offset_bytes);
    match errors {
        0 => format!("{offset} (slow in {slow} of {commands} commands)"),
        _ => format!("{offset} ({})", counted(*errors, "error")),
    }
}

/// What answers take from the pool to their programs.
fn delivery_note(delivery: &HostTime, realtime: bool) -> String {
    let stated = delivery.stated_ns;
    let priority = if realtime { "real-time" } else { "ordinary" };
    let charged = format!(
        "charged {stated} with each deadline, for the way of an answer to its program (carried by \
         threads of {priority} priority)"
    );
    charge_note("host     ", &charged, delivery, "answer")
}

fn late(what: &str, lateness: &Lateness) -> String {
    if lateness.count == 0 {
        return String::new();
    }
    let Lateness { p50_ns, p999_ns, max_ns, .. } = lateness;
    format!("host     {what}: half {p50_ns}, 99.9 % {p999_ns}, at most {max_ns}\n")
}

fn check(specs: &[DeviceSpec], common: &Common) -> Result<(), Failure> {
    for warning in specs.iter().filter_map(|spec| engine::open_to_others(spec.path())) {
        eprintln!("slackline: warning: {warning}");
    }
    let report = Pool::check(specs).map_err(|error| {
        let is_served = matches!(error, PoolError::InUse { .. });
        let failure = Failure::from(error);
        let next_step = match is_served {
            true => "`slackline pool check` without a device asks the daemon that serves it; for a whole \
                     check, stop that first"
                .into(),
            false => failure.next_step,
        };
        Failure { next_step, ..failure }
    })?;
    let paths: Vec<PathBuf> = specs.iter().map(|spec| spec.path().to_owned()).collect();
    let is_sound = report.worst() != Some(Severity::Error);
    let kept_out = match is_sound {
        true => Pool::kept_out(
            specs,
            daemon::config::node_default(),
            Some(daemon::config::kept_policy),
        )?,
        false => Vec::new(),
    };
    let told =
        |(name, one): &(String, node::KeptOut)| (name.clone(), daemon::convert::kept_out(one));
    let kept_out: Vec<(String, KeptOut)> = kept_out.iter().map(told).collect();
    let mut json = report_json(&report, &paths);
    json["kept_out"] = kept_out_json(&kept_out);
    common.output().result(&json, |_| found(&report, &paths) + &kept_out_lines(&kept_out))?;
    if is_sound {
        return judge_kept_out(&kept_out);
    }
    let errors = report.findings.iter().filter(|one| one.severity == Severity::Error).count();
    let errors = counted(errors as u64, "error");
    let what = format!("the pool cannot be opened as it is: {errors} found");
    Err(Failure { exit_code: FAILED, ..Failure::new(what, "do what each of them says") })
}

/// What the daemon says of the contracts of the pool that it serves.
fn check_served(common: &Common) -> Result<(), Failure> {
    let status = common.client()?.status()?;
    let volumes = status.volumes.into_iter();
    let kept_out: Vec<_> =
        volumes.filter_map(|volume| Some((volume.name, volume.kept_out?))).collect();
    let json = json!({ "pool": status.pool, "kept_out": kept_out_json(&kept_out) });
    common.output().result(&json, |_| match kept_out.is_empty() {
        true => format!("pool {}: every contract of a volume is in force\n", status.pool),
        false => kept_out_lines(&kept_out),
    })?;
    judge_kept_out(&kept_out)
}

fn kept_out_json(kept_out: &[(String, KeptOut)]) -> Value {
    let one = |(name, one): &(String, KeptOut)| {
        let KeptOut { service, detail, next_step } = one;
        json!({ "volume": name, "service": service, "detail": detail, "next_step": next_step })
    };
    kept_out.iter().map(one).collect()
}

fn kept_out_lines(kept_out: &[(String, KeptOut)]) -> String {
    let line = |(name, one): &(String, KeptOut)| {
        format!("warning: volume {name}: {}\n", kept_out_words(one))
    };
    kept_out.iter().map(line).collect()
}

fn judge_kept_out(kept_out: &[(String, KeptOut)]) -> Result<(), Failure> {
    if kept_out.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = kept_out.iter().map(|(name, _)| name.as_str()).collect();
    let what = format!("contracts that do not fit any more: of volume {}", names.join(", "));
    let next = "give these volumes others with `slackline volume set`, or end other contracts";
    Err(Failure { exit_code: REFUSED, ..Failure::new(what, next) })
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn report_json(report: &Report, paths: &[PathBuf]) -> Value {
    let device = |finding: &Finding| paths.get(usize::from(finding.device?.0));
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "severity": severity(finding.severity),
                "device": device(finding),
                "offset_bytes": finding.offset.map(Bytes::get),
                "detail": what(finding, paths),
                "next_step": finding.next,
            })
        })
        .collect();
    json!({
        "pool": report.pool.as_ref().map(|pool| pool.name.clone()),
        "volumes": report.volumes.len(),
        "findings": findings,
    })
}

fn what(finding: &Finding, paths: &[PathBuf]) -> String {
    match finding.device {
        Some(disk) => explain::by_path(&finding.what, disk, paths),
        None => finding.what.clone(),
    }
}

fn found(report: &Report, paths: &[PathBuf]) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&format!("{}: {}\n", severity(finding.severity), what(finding, paths)));
        text.push_str(&format!("  next: {}\n", finding.next));
    }
    let Some(pool) = &report.pool else { return text };
    let state = match report.worst() {
        None | Some(Severity::Note) => "sound",
        Some(Severity::Warning) => "sound enough to be opened, which mends it",
        Some(Severity::Error) => "damaged, or not complete",
    };
    let volumes = counted(report.volumes.len() as u64, "volume");
    text.push_str(&format!("pool {}: {state}; {volumes}\n", pool.name));
    text
}
