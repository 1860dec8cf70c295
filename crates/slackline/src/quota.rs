//! `slackline quota`: who may hold how much, and holds.

use crate::Common;
use crate::failure::Failure;
use crate::output::Table;
use client::control::{Holder, HolderKind, Quotas};
use units::Bytes;

/// Runs it.
pub fn run(common: &Common) -> Result<(), Failure> {
    common.output().result(&common.client()?.quotas()?, table)
}

fn table(quotas: &Quotas) -> String {
    let headings = [
        "who",
        ">disks' time",
        ">of",
        ">space",
        ">of",
        ">volumes",
        ">of",
        ">windows",
        ">of",
        ">streams",
        ">of",
        ">connections",
        ">of",
        ">requests",
        ">of",
    ];
    let mut table = Table::new(&headings);
    for holder in &quotas.holders {
        table.row(row(holder));
    }
    let default = &quotas.default_limits;
    let rest = format!(
        "everybody else: {} of each disk's time, {} in {} volumes, {} of windows, {} streams, {} best-effort \
         connections, {} requests on them\n",
        most(default.disk_share_ppm, percent),
        most(default.space_bytes, |bytes: Bytes| bytes.to_string()),
        most(default.volumes, |count| count.to_string()),
        most(default.memory_bytes, |bytes: Bytes| bytes.to_string()),
        most(default.streams, |count| count.to_string()),
        most(default.best_effort_connections, |count| count.to_string()),
        most(default.best_effort_requests, |count| count.to_string()),
    );
    if quotas.holders.is_empty() {
        return format!("nobody has anything open\n{rest}");
    }
    table.text("") + &rest
}

fn row(holder: &Holder) -> Vec<String> {
    let kind = match holder.kind {
        HolderKind::User => "user",
        HolderKind::Group => "group",
    };
    let largest = holder.shares.iter().max_by_key(|share| share.share_ppm);
    let of_disks = largest.map_or_else(
        || percent(0),
        |share| format!("{} of {}", percent(share.share_ppm), share.disk),
    );
    let limits = &holder.limits;
    let count = |count: u64| count.to_string();
    vec![
        format!("{kind} {}", holder.name),
        of_disks,
        most(limits.disk_share_ppm, percent),
        holder.space_bytes.to_string(),
        most(limits.space_bytes, |bytes| bytes.to_string()),
        holder.volumes.to_string(),
        most(limits.volumes, count),
        holder.memory_bytes.to_string(),
        most(limits.memory_bytes, |bytes| bytes.to_string()),
        holder.streams.to_string(),
        most(limits.streams, count),
        holder.best_effort_connections.to_string(),
        most(limits.best_effort_connections, count),
        holder.best_effort_requests.to_string(),
        most(limits.best_effort_requests, count),
    ]
}

fn most<T>(limit: Option<T>, words: impl Fn(T) -> String) -> String {
    limit.map_or_else(|| "no limit".into(), words)
}

fn percent(ppm: u64) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm % 10_000 / 100)
}
