//! The figures of the pool for whoever collects them over time: OpenMetrics text, made by
//! `prometheus-client` of the same status that `GET /v1/status` gives. docs/metrics.md lists them.
//!
//! Invariants: a name ends in its unit, base units (bytes, seconds, ratio); what only grows while
//! the daemon runs is a counter, and nothing else is: a sum over the streams that are open becomes
//! less when one closes, which a collector would take for a start from zero. The number of series is bounded: streams are summed by volume,
//! user and direction, not told one by one, and beyond [`GROUPS_MAX`] of these all others are
//! summed as one.

use crate::findings;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use units::Duration;
use wire::control::{Disk, Mode, ServiceAccount, Status, Stream, Verdict, Volume};

/// Volumes, users and directions that streams are told apart by, and volumes under contract.
const GROUPS_MAX: usize = 1_000;

/// What all others are summed under.
const OTHERS: &str = "(others)";

/// The media type of OpenMetrics 1.0.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The same of the text format before it, which files that are collected have, and `promtool`.
const TYPE_BEFORE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The answer to a scrape: OpenMetrics for whoever says that he takes it.
pub fn answer(status: Status, asked: &HeaderMap) -> Response {
    let mut accepted = asked.get_all(header::ACCEPT).iter().filter_map(|one| one.to_str().ok());
    let told = exposition(status);
    let (kind, told) = match accepted.any(|one| one.contains("application/openmetrics-text")) {
        true => (TYPE, told),
        false => (TYPE_BEFORE, before_openmetrics(&told)),
    };
    ([(header::CONTENT_TYPE, kind)], told).into_response()
}

/// The same as OpenMetrics had it before it was a standard of its own: there the name of a counter has
/// its ending in its help and type as well, and there is no end marker.
fn before_openmetrics(text: &str) -> String {
    let counters: HashSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut told = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF") {
        // Nearly all lines: of a thousand volumes with streams there are nine thousand.
        if !line.starts_with('#') {
            told.push_str(line);
            told.push('\n');
            continue;
        }
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(word), Some(name), Some(rest)) if counters.contains(name) => {
                told += &format!("# {word} {name}_total {rest}\n");
            }
            _ => told += &format!("{line}\n"),
        }
    }
    told
}

/// The whole text, with its end marker.
fn exposition(status: Status) -> String {
    let mut registry = Registry::with_prefix("slackline");
    registry.register_collector(Box::new(Figures(status)));
    let mut told = String::new();
    text::encode(&mut told, &registry).expect("a string takes all text");
    told
}

#[derive(Debug)]
struct Figures(Status);

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut told = Told { encoder };
        let Self(status) = self;
        pool(&mut told, status)?;
        disks(&mut told, status)?;
        streams(&mut told, &status.streams)?;
        services(&mut told, &status.volumes)?;
        host(&mut told, status)
    }
}

/// A family by its name and its help, and what of each thing stands in it.
type Of<T, V> = (&'static str, &'static str, fn(&T) -> V);

/// Labels of one series.
type Labels<'a> = Vec<(&'static str, &'a str)>;

struct Told<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Told<'_> {
    fn gauge<'l, V: EncodeGaugeValue>(
        &mut self,
        (name, help): (&str, &str),
        series: impl IntoIterator<Item = (Labels<'l>, V)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in series {
            match labels.is_empty() {
                true => family.encode_gauge(&value)?,
                false => family.encode_family(&labels)?.encode_gauge(&value)?,
            }
        }
        Ok(())
    }

    fn counter<'l, V: EncodeCounterValue>(
        &mut self,
        (name, help): (&str, &str),
        series: impl IntoIterator<Item = (Labels<'l>, V)>,
    ) -> fmt::Result {
        let mut family = self.encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in series {
            match labels.is_empty() {
                true => family.encode_counter::<NoLabelSet, V, f64>(&value, None)?,
                false => family
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, V, f64>(&value, None)?,
            }
        }
        Ok(())
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
}

fn ratio(ppm: u64) -> f64 {
    ppm as f64 / 1e6
}

fn pool(told: &mut Told<'_>, status: &Status) -> fmt::Result {
    let Status { pool, version, policy, memory, .. } = status;
    let labels = vec![("pool", &**pool), ("version", &**version), ("policy", &**policy)];
    told.gauge(("serving", "1; its labels say what is served, and how."), [(labels, 1_u64)])?;
    let alone = |value: f64| [(Labels::new(), value)];
    told.gauge(("served_seconds", "Since the pool was opened."), alone(seconds(status.up_ns)))?;
    let read_only = ("read_only", "1 once a write of metadata has failed, else 0.");
    told.gauge(read_only, alone(f64::from(u8::from(status.read_only))))?;
    told.gauge(("volumes", "Volumes."), alone(status.volumes.len() as f64))?;
    let used = [
        ("windows", memory.window_bytes),
        ("best_effort", memory.best_effort_bytes),
        ("free", memory.free_bytes),
        ("shared_windows", memory.shared_window_bytes),
    ];
    told.gauge(
        (
            "memory_bytes",
            "Memory for windows and transfers, by its use; shared windows are beside it.",
        ),
        used.map(|(of, bytes)| (vec![("use", of)], bytes.get())),
    )?;
    told.gauge(
        ("kept_bytes", "Of what is free, what is kept for readers: of streams and of best effort."),
        alone(memory.kept_bytes.get() as f64),
    )?;
    told.counter(
        ("from_memory_bytes", "Bytes that readers had from there in place of a disk."),
        [(Labels::new(), memory.from_memory_bytes.get())],
    )?;
    let warnings = ("warnings", "What the daemon could not get from the host.");
    told.gauge(warnings, alone(status.warnings.len() as f64))
}

fn disks(told: &mut Told<'_>, status: &Status) -> fmt::Result {
    let disks = &status.disks;
    let names: Vec<String> = disks.iter().map(|disk| disk.disk.to_string()).collect();
    let labels = |at: usize| vec![("disk", &*names[at]), ("device", &*disks[at].device)];
    let gauges: [Of<Disk, f64>; 9] = [
        ("disk_size_bytes", "Room for volumes.", |disk| disk.capacity_bytes.get() as f64),
        ("disk_free_bytes", "Room that no volume has.", |disk| disk.free_bytes.get() as f64),
        ("disk_promised_ratio", "Share of its time that contracts have.", |disk| {
            ratio(disk.utilisation_ppm)
        }),
        (
            "disk_slack_seconds",
            "Static slack of the contracts: a command of best effort that is no longer goes at once.",
            |disk| seconds(disk.slack_ns),
        ),
        (
            "disk_late_max_seconds",
            "The latest request under contract, after its deadline.",
            |disk| seconds(disk.late_max_ns),
        ),
        (
            "disk_oldest_command_seconds",
            "For how long it has had the command that it has had for longest; 0 while it has none.",
            |disk| disk.oldest_command.as_ref().map_or(0.0, |oldest| seconds(oldest.age_ns)),
        ),
        ("disk_profile_holds", "1 while the disk keeps within its profile, else 0.", |disk| {
            f64::from(u8::from(disk.profile.verdict == Verdict::Fresh))
        }),
        (
            "disk_gap_charged_seconds",
            "What each command is charged for the host's gap behind it.",
            |disk| seconds(disk.gap.stated_ns),
        ),
        ("disk_suspect_extents", "Extents of 1 MiB that are bad or slow.", |disk| {
            disk.profile.suspects as f64
        }),
    ];
    for (name, help, value) in gauges {
        told.gauge(
            (name, help),
            disks.iter().enumerate().map(|(at, disk)| (labels(at), value(disk))),
        )?;
    }
    let full =
        "1 while `slackline status` tells that the disk has no room, or soon has none, else 0.";
    let is_full = |disk| f64::from(u8::from(findings::of_room(disk, status).is_some()));
    told.gauge(
        ("disk_full", full),
        disks.iter().enumerate().map(|(at, disk)| (labels(at), is_full(disk))),
    )?;
    let counters: [Of<Disk, u64>; 5] = [
        ("disk_late_requests", "Requests under contract not done by their deadline.", |disk| {
            disk.late_requests
        }),
        ("disk_overruns", "Commands that took longer than the profile says.", |disk| disk.overruns),
        ("disk_errors", "Commands that failed.", |disk| disk.errors),
        (
            "disk_host_errors",
            "Of these, those for which the host had no room or no memory.",
            |disk| disk.host_errors,
        ),
        ("disk_gaps_beyond", "Gaps of the host that were longer than what is charged.", |disk| {
            disk.gap.beyond
        }),
    ];
    for (name, help, value) in counters {
        told.counter(
            (name, help),
            disks.iter().enumerate().map(|(at, disk)| (labels(at), value(disk))),
        )?;
    }
    let by_class = |at: usize, class: &'static str| {
        let mut labels = labels(at);
        labels.push(("class", class));
        labels
    };
    let traffic = |value: fn(&wire::control::Traffic) -> u64| {
        let both = move |(at, disk): (usize, &Disk)| {
            [
                (at, "contract", value(&disk.real_time)),
                (at, "best_effort", value(&disk.best_effort)),
            ]
        };
        disks.iter().enumerate().flat_map(both)
    };
    let told_of = |(at, class, value)| (by_class(at, class), value);
    told.counter(
        ("disk_requests", "Requests done, under contract and as best effort."),
        traffic(|one| one.requests).map(told_of),
    )?;
    told.counter(
        ("disk_bytes", "Bytes moved, under contract and as best effort."),
        traffic(|one| one.bytes.get()).map(told_of),
    )?;
    let waiting = |(at, disk): (usize, &Disk)| {
        [(at, "contract", disk.waiting_real_time), (at, "best_effort", disk.waiting_best_effort)]
    };
    told.gauge(
        ("disk_waiting_requests", "Requests that wait."),
        disks.iter().enumerate().flat_map(waiting).map(told_of),
    )
}

/// The streams of one volume, user and direction.
#[derive(Default)]
struct Group {
    streams: u64,
    rate: u64,
    moved: u64,
    requests: u64,
    late: u64,
    late_max: Duration,
    not_ready: u64,
    slowed: u64,
    lost: u64,
}

impl Group {
    fn add(&mut self, stream: &Stream) {
        self.streams += 1;
        self.rate = self.rate.saturating_add(stream.contract.rate_bytes_per_second.get());
        self.moved = self.moved.saturating_add(stream.moved_bytes.get());
        self.requests = self.requests.saturating_add(stream.requests);
        self.late = self.late.saturating_add(stream.late_requests);
        self.late_max = self.late_max.max(stream.late_max_ns);
        self.not_ready = self.not_ready.saturating_add(stream.underruns);
        self.slowed = self.slowed.saturating_add(stream.throttled);
        self.lost = self.lost.saturating_add(stream.lost().get());
    }
}

fn of_group<'a>([volume, user, mode]: &[&'a str; 3]) -> Labels<'a> {
    vec![("volume", volume), ("user", user), ("mode", mode)]
}

fn of_volume(name: &str) -> Labels<'_> {
    vec![("volume", name)]
}

fn streams(told: &mut Told<'_>, streams: &[Stream]) -> fmt::Result {
    let mut groups: BTreeMap<[&str; 3], Group> = BTreeMap::new();
    for stream in streams {
        let mode = match stream.mode {
            Mode::Read => "read",
            Mode::Write => "write",
            Mode::Update => "update",
        };
        let mut key = [&*stream.volume, &*stream.user, mode];
        if groups.len() >= GROUPS_MAX && !groups.contains_key(&key) {
            key = [OTHERS; 3];
        }
        groups.entry(key).or_default().add(stream);
    }
    let gauges: [Of<Group, f64>; 3] = [
        ("streams", "Open streams.", |one| one.streams as f64),
        ("stream_contract_bytes_per_second", "What open streams were promised.", |one| {
            one.rate as f64
        }),
        (
            "stream_late_max_seconds",
            "The latest request of open streams, after its deadline.",
            |one| seconds(one.late_max),
        ),
    ];
    for (name, help, value) in gauges {
        told.gauge((name, help), groups.iter().map(|(key, one)| (of_group(key), value(one))))?;
    }
    let sums: [Of<Group, u64>; 6] = [
        ("stream_bytes", "Bytes that programs of open streams moved.", |one| one.moved),
        ("stream_requests", "Disk requests of open streams.", |one| one.requests),
        ("stream_late_requests", "Those that were done, or with their program, too late.", |one| {
            one.late
        }),
        (
            "stream_not_ready",
            "Times that a program within its rate found the window not ready.",
            |one| one.not_ready,
        ),
        ("stream_slowed", "Times that a program was slowed to its rate.", |one| one.slowed),
        ("stream_lost_bytes", "Bytes given up, because a disk did not answer in time.", |one| {
            one.lost
        }),
    ];
    for (name, help, value) in sums {
        told.gauge((name, help), groups.iter().map(|(key, one)| (of_group(key), value(one))))?;
    }
    Ok(())
}

/// Volumes, and connections on them, that have contracts without a stream.
fn services(told: &mut Told<'_>, volumes: &[Volume]) -> fmt::Result {
    let mut accounts: BTreeMap<&str, ServiceAccount> = BTreeMap::new();
    for volume in volumes {
        let all =
            std::iter::once(&volume.account).chain(volume.handles.iter().map(|one| &one.account));
        for account in all.filter(|account| account.requests > 0) {
            let is_new = !accounts.contains_key(&*volume.name);
            let name = if is_new && accounts.len() >= GROUPS_MAX { OTHERS } else { &volume.name };
            let sum = accounts.entry(name).or_default();
            sum.requests = sum.requests.saturating_add(account.requests);
            sum.late_requests = sum.late_requests.saturating_add(account.late_requests);
            sum.late_max_ns = sum.late_max_ns.max(account.late_max_ns);
            sum.latency_max_ns = sum.latency_max_ns.max(account.latency_max_ns);
        }
    }
    told.gauge(
        ("service_requests", "Requests of volumes and connections under contract."),
        accounts.iter().map(|(name, one)| (of_volume(name), one.requests)),
    )?;
    told.gauge(
        ("service_late_requests", "Those that were with their program too late."),
        accounts.iter().map(|(name, one)| (of_volume(name), one.late_requests)),
    )?;
    told.gauge(
        ("service_late_max_seconds", "The latest of them, after its time."),
        accounts.iter().map(|(name, one)| (of_volume(name), seconds(one.late_max_ns))),
    )?;
    told.gauge(
        ("service_latency_max_seconds", "The longest of them, from call to answer."),
        accounts.iter().map(|(name, one)| (of_volume(name), seconds(one.latency_max_ns))),
    )?;
    let kept_out = volumes.iter().filter(|volume| volume.kept_out.is_some());
    told.gauge(
        ("service_kept_out", "1 for a volume whose contract does not fit any more."),
        kept_out.take(GROUPS_MAX).map(|volume| (of_volume(&volume.name), 1_u64)),
    )
}

fn host(told: &mut Told<'_>, status: &Status) -> fmt::Result {
    let late = &status.host_wakeups;
    let shares = [("0.5", late.p50_ns), ("0.999", late.p999_ns), ("1", late.max_ns)];
    told.gauge(
        (
            "host_wakeup_late_seconds",
            "How late the host woke the disks' threads, at most, in this share of the times since the pool was opened.",
        ),
        shares.map(|(share, late)| (vec![("share", share)], seconds(late))),
    )?;
    told.gauge(
        (
            "delivery_charged_seconds",
            "What contracts are charged for an answer's way to its program.",
        ),
        [(Labels::new(), seconds(status.delivery.stated_ns))],
    )
}
