//! `slackline disk models` and `slackline disk show`.

use crate::Common;
use crate::failure::Failure;
use crate::output::Table;
use ::disk::{BusShare, Kind, Model, Profile};
use serde_json::{Value, json};
use units::{Bytes, Direction, Duration, Lba};

/// Lists the models.
pub fn models(common: &Common) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for name in Model::names() {
        let model = Model::named(name).map_err(|error| Failure::new(error.to_string(), ""))?;
        rows.push(json!({
            "name": name,
            "kind": if model.is_hard_disk() { "hard disk" } else { "flash" },
            "capacity_bytes": model.capacity().get(),
            "source": model.source(),
        }));
    }
    common.output().result(&rows, |rows| {
        let mut table = Table::new(&["model", "kind", ">capacity"]);
        for row in rows {
            let text = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
            let capacity = Bytes::new(row["capacity_bytes"].as_u64().unwrap_or(0));
            table.row(vec![text("name"), text("kind"), capacity.to_string()]);
        }
        table.text("")
    })
}

/// Shows a model or a profile.
pub fn one(what: &str, common: &Common) -> Result<(), Failure> {
    let path = std::path::Path::new(what);
    let (profile, model) = if path.is_file() {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
        let wrong = |error: ::disk::Error| {
            Failure::new(format!("{what}: {error}"), "give a file that `disk profile -o` wrote")
        };
        (Profile::parse(&text).map_err(wrong)?, None)
    } else {
        let model = Model::named(what).map_err(|error| {
            Failure::new(error.to_string(), "give one of these, or a file with a profile")
        })?;
        (Profile::of(&model), Some(model))
    };
    common.output().result(&json(&profile, model.as_ref()), |_| text(&profile, model.as_ref()))
}

/// Sizes whose bounds are shown.
const SIZES: [Bytes; 4] = [Bytes::kib(4), Bytes::kib(64), Bytes::kib(256), Bytes::MIB];

fn worst(profile: &Profile, size: Bytes, direction: Direction) -> Option<Duration> {
    let whole = Lba::new(0)..Lba::containing(profile.capacity());
    (size <= profile.capacity()).then(|| profile.worst(whole, size, direction))
}

fn json(profile: &Profile, model: Option<&Model>) -> Value {
    let bound = |size: Bytes, direction| worst(profile, size, direction).map(Duration::as_nanos);
    let bounds: Vec<Value> = SIZES
        .iter()
        .map(|&size| {
            json!({
                "size_bytes": size.get(),
                "read_ns": bound(size, Direction::Read),
                "write_ns": bound(size, Direction::Write),
            })
        })
        .collect();
    json!({
        "name": model.map(Model::name),
        "source": profile.source,
        "confidence": profile.confidence,
        "capacity_bytes": profile.capacity().get(),
        "flush_ns": profile.flush().as_nanos(),
        "depth": profile.depth(),
        "queue": profile.queue(),
        "latency_ns": profile.latency().as_nanos(),
        "bus": profile.bus.as_ref().map(bus),
        "worst": bounds,
    })
}

fn bus(share: &BusShare) -> Value {
    let plan = share.plan();
    json!({
        "name": plan.name,
        "rate_bytes_per_second": plan.rate.get(),
        "disks": plan.disks,
        "wait_max_ns": share.wait(Bytes::MIB).as_nanos(),
    })
}

fn text(profile: &Profile, model: Option<&Model>) -> String {
    let mut text = match model {
        Some(model) => format!("{}: {}\n", model.name(), model.source()),
        None => format!("{}\n{}\n", profile.source, profile.confidence),
    };
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<18} {value}\n"));
    line("capacity", profile.capacity().to_string());
    line("flush, at most", profile.flush().to_string());
    match &profile.kind {
        Kind::HardDisk(disk) => {
            line("turn", disk.rotation.to_string());
            line("commands at a time", disk.queue.to_string());
            let seeks = disk.seek.points();
            if let [_, first, .., last] = seeks {
                line("seek, at most", format!("{} to {}", first.1, last.1));
            }
            let cylinders: u64 = disk.zones.iter().map(|zone| zone.cylinders).sum();
            line("zones", format!("{} over {cylinders} cylinders", disk.zones.len()));
            let rates = disk.zones.iter().map(|zone| zone.rate);
            if let (Some(slow), Some(fast)) = (rates.clone().min(), rates.max()) {
                line("streams at", format!("{slow} to {fast}"));
            }
        }
        Kind::Linear(linear) => {
            line("commands in flight", linear.depth.to_string());
            line("latency, at most", linear.latency.to_string());
        }
    }
    if let Some(share) = &profile.bus {
        let plan = share.plan();
        line("bus", format!("{}, {}, {} disks", plan.name, plan.rate, plan.disks));
        line("wait for it", format!("at most {}, counted below", share.wait(Bytes::MIB)));
    }
    let mut table = Table::new(&[">size", ">read, at most", ">write, at most"]);
    for size in SIZES {
        let cell = |direction| {
            worst(profile, size, direction).map_or_else(|| "-".to_owned(), |time| time.to_string())
        };
        table.row(vec![size.to_string(), cell(Direction::Read), cell(Direction::Write)]);
    }
    text + &table.text("  ")
}
