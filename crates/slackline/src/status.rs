//! `slackline status`: on one screen, whether contracts are kept, and what needs a person.
//!
//! Everything is of one answer of the daemon's. `slackline pool status` has the details.

use crate::failure::Failure;
use crate::output::{Table, counted, percent, span};
use crate::stream::{direction, no_promise};
use crate::{Common, cameras, volume};
use client::control::{Disk, Overview, Status, Stream, Verdict, Volume, Weight};
use units::Rate;

/// What stands below a table of disks: something is promised also where nothing is open.
pub const PROMISED: &str = "  (promised: to contracts, and to the daemon's own log of changes)\n";

/// Runs it.
pub fn run(common: &Common) -> Result<(), Failure> {
    let overview = common.client()?.overview()?;
    common.output().result(&overview, |overview| screen(overview) + &cameras::lines())
}

fn screen(overview: &Overview) -> String {
    let Overview { findings, status, .. } = overview;
    let mut text = format!("{}\n", overview.verdict);
    for finding in findings {
        let mark = mark(finding.weight);
        text += &format!("  {mark}: {}\n    next: {}\n", finding.what, finding.next_step);
    }
    text += &format!(
        "\npool {}, served for {} under the policy {}\n",
        status.pool,
        span(status.up_ns),
        status.policy
    );
    text += &disks(&status.disks);
    text += &streams(status);
    text + &volumes(&status.volumes)
}

/// How a finding begins.
pub fn mark(weight: Weight) -> &'static str {
    match weight {
        Weight::Broken => "BROKEN",
        Weight::Look => "look",
    }
}

fn disks(disks: &[Disk]) -> String {
    let headings =
        ["disk", "device", ">free", ">promised", ">slack", ">late", ">errors", "profile"];
    let mut table = Table::new(&headings);
    for disk in disks {
        let trust = match disk.profile.verdict {
            Verdict::Fresh => "holds",
            Verdict::Drifted => "drifted",
            Verdict::Stale => "does not hold",
        };
        table.row(vec![
            disk.disk.to_string(),
            disk.device.clone(),
            format!("{} of {}", disk.free_bytes, disk.capacity_bytes),
            percent(disk.utilisation_ppm),
            disk.slack_ns.to_string(),
            disk.late_requests.to_string(),
            disk.errors.to_string(),
            trust.into(),
        ]);
    }
    table.text("  ") + PROMISED
}

/// What each stream asked for and got.
fn streams(status: &Status) -> String {
    if status.streams.is_empty() {
        return "no streams are open\n".into();
    }
    let headings = [
        "stream",
        "volume",
        "user",
        "mode",
        ">asked",
        ">got",
        ">late",
        ">not ready",
        ">slowed",
        ">full in",
    ];
    let mut table = Table::new(&headings);
    for stream in &status.streams {
        let size = status.full_at(&stream.volume);
        table.row(vec![
            stream.id.to_string(),
            stream.volume.clone(),
            stream.user.clone(),
            direction(stream.mode).into(),
            format!("{}{}", stream.contract.rate_bytes_per_second, no_promise(stream.promised)),
            got(stream),
            stream.late_requests.to_string(),
            stream.underruns.to_string(),
            stream.throttled.to_string(),
            stream.left(size).map_or_else(|| "-".into(), span),
        ]);
    }
    format!("{}:\n{}", counted(status.streams.len() as u64, "stream"), table.text("  "))
}

/// The mean rate since the stream was opened.
fn got(stream: &Stream) -> String {
    match stream.attached {
        true => Rate::of(stream.moved_bytes, stream.open_ns).to_string(),
        false => "no program".into(),
    }
}

/// The volumes that have contracts without streams.
fn volumes(volumes: &[Volume]) -> String {
    let mut text = String::new();
    for one in volumes {
        for line in volume::contracts(one).lines() {
            text += &format!("volume {}: {line}\n", one.name);
        }
    }
    text
}
