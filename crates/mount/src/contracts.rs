//! Extended attributes `user.slackline.*`: what is known of a volume, and its contract.
//!
//! Invariants: what is set is refused or in force when the call has ended; a contract for streams
//! is this mount's own, all else is kept with the volume. What can be set is told exactly: programs
//! that copy files read an attribute of one and set it on the other.

use client::InTime;
use client::control::{Priority, Service, Volume};
use std::fmt::Display;
use std::str::FromStr;
use units::{Bytes, Duration, Rate};

/// What every attribute here begins with.
pub const PREFIX: &str = "user.slackline.";
/// The rate of the stream that each reader of the file takes when it opens it.
pub const STREAM: &str = "stream";
/// Those that can be set, in the order of their listing.
const SETTABLE: [&str; 4] = ["priority", "rate", "within", STREAM];
/// Smallest operation that gets all of a rate, and the time over which it is kept: as
/// `slackline volume set` has them where nobody says otherwise.
const BLOCK: Bytes = Bytes::kib(64);
const PERIOD: Duration = Duration::from_secs(1);

/// The names of those that were set on a volume. What every file has is not listed, so that one
/// without a contract is copied by who may not set any.
pub fn names(service: &Service, stream: Option<Rate>) -> Vec<u8> {
    let set = SETTABLE.iter().filter(|name| is_set(service, stream, name));
    set.flat_map(|name| format!("{PREFIX}{name}\0").into_bytes()).collect()
}

/// Whether one that can be set was set.
pub fn is_set(service: &Service, stream: Option<Rate>, name: &str) -> bool {
    match name {
        STREAM => stream.is_some(),
        name => *service != Service::default() && of_service(service, name).is_some(),
    }
}

/// The value of one; none where the volume has none of this name.
pub fn value(volume: &Volume, stream: Option<Rate>, name: &str) -> Option<String> {
    Some(match name {
        "number" => volume.number.to_string(),
        "recorded" => volume.length_bytes.get().to_string(),
        "reserved" => volume.size_bytes.get().to_string(),
        "run" => volume.placement.run_bytes.max(Bytes::MIB).get().to_string(),
        "runs" => volume.runs.to_string(),
        STREAM => rate(stream?),
        _ => return of_service(&volume.service, name),
    })
}

/// The value of one that says how the volume is served.
pub fn of_service(service: &Service, name: &str) -> Option<String> {
    Some(match (name, service) {
        ("service", service) => told(service),
        ("priority", Service::BestEffort { priority }) => priority.word().into(),
        ("rate", Service::Rate { rate_bytes_per_second, .. }) => rate(*rate_bytes_per_second),
        ("within", service @ Service::Latency { .. }) => told(service),
        _ => return None,
    })
}

fn told(service: &Service) -> String {
    match service {
        Service::BestEffort { priority } => format!("best effort, {}", priority.word()),
        Service::Rate { rate_bytes_per_second, block_bytes, .. } => {
            format!("{rate_bytes_per_second} in operations of {block_bytes}")
        }
        Service::Latency { len_bytes, within_ns, every_ns } => {
            // Words part what is in it: a quantity is one word, or it could not be read again.
            let time = |time: Duration| exact(time, time.as_nanos(), "ns").replace(' ', "");
            let len = exact(*len_bytes, len_bytes.get(), "B").replace(' ', "");
            format!("{len} within {} every {}", time(*within_ns), time(*every_ns))
        }
    }
}

fn rate(rate: Rate) -> String {
    exact(rate, rate.get(), "B/s")
}

/// A quantity as people write it, or, where that is not all of it, in its smallest unit.
fn exact<Q: Display + FromStr + PartialEq>(quantity: Q, number: u64, unit: &str) -> String {
    let text = quantity.to_string();
    if text.parse().is_ok_and(|told: Q| told == quantity) {
        text
    } else {
        format!("{number} {unit}")
    }
}

/// The service that an attribute with this value asks for; none where it cannot be set, or the
/// value cannot be read.
pub fn service(name: &str, value: &str) -> Option<Service> {
    let value = value.trim();
    match name {
        "priority" => {
            let all = [Priority::Interactive, Priority::Normal, Priority::Background];
            let priority = all.into_iter().find(|&one| one.word() == value)?;
            Some(Service::BestEffort { priority })
        }
        "rate" => {
            let rate_bytes_per_second = value.parse().ok()?;
            Some(Service::Rate { rate_bytes_per_second, block_bytes: BLOCK, period_ns: PERIOD })
        }
        "within" => {
            let InTime { len, within, every } = value.parse().ok()?;
            Some(Service::Latency { len_bytes: len, within_ns: within, every_ns: every })
        }
        _ => None,
    }
}

/// Whether an attribute of this name can be set.
pub fn can_be_set(name: &str) -> bool {
    SETTABLE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contract_is_read_as_it_is_told() {
        for (name, text) in [
            ("priority", "background"),
            ("rate", "2 MB/s"),
            ("rate", "1234567 B/s"),
            ("within", "4KiB within 150ms every 500ms"),
            ("within", "5000B within 1234567ns every 1.50s"),
        ] {
            let asked = service(name, &format!("{text}\n")).unwrap();
            assert_eq!(of_service(&asked, name).as_deref(), Some(text));
            assert!(can_be_set(name));
        }
        let stream = Rate::per_second(1_999_999);
        assert_eq!(rate(stream).parse(), Ok(stream));
        assert_eq!(service("rate", "fast"), None);
        assert_eq!(service("recorded", "7"), None);
        assert!(!can_be_set("recorded"));
    }
}
