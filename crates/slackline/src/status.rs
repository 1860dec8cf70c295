//! `slackline status`: on one screen, whether contracts are kept, and what needs a person.
//!
//! Everything is of one answer of the daemon's, but for the cameras, of which it knows the streams alone:
//! their supervisors are asked. `slackline pool status` has the details.

use crate::failure::Failure;
use crate::output::{Table, counted, percent, span};
use crate::stream::{direction, no_promise};
use crate::{Common, cameras, volume};
use cameras::Snapshot;
use client::control::{Disk, Finding, Overview, Status, Stream, Verdict, Volume, Weight};
use daemon::findings::{SOON_FULL, key_of_full_soon, key_of_silence};
use units::{Duration, Rate};

/// What stands below a table of disks: something is promised also where nothing is open.
pub const PROMISED: &str = "  (promised: to contracts, and to the daemon's own log of changes)\n";

/// Runs it.
pub fn run(common: &Common) -> Result<(), Failure> {
    let overview = common.client()?.overview()?;
    common.output().result(&overview, |overview| screen(overview, &cameras::all()))
}

fn screen(overview: &Overview, cameras: &[Snapshot]) -> String {
    let status = &overview.status;
    let findings = with_cameras(overview.findings.clone(), cameras);
    let verdict = daemon::findings::verdict(&findings, status, &overview.policy);
    let mut text = format!("{verdict}\n");
    for finding in &findings {
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
    text += &volumes(&status.volumes);
    text + &cameras.iter().map(Snapshot::line).collect::<String>()
}

/// What the daemon found, and what is to be said of cameras. Their supervisors measure what each
/// gives now: of one that gives nothing, or little, the daemon would go on to say that its volume is
/// full soon.
fn with_cameras(mut findings: Vec<Finding>, cameras: &[Snapshot]) -> Vec<Finding> {
    for (all, seen) in cameras.iter().flat_map(|all| all.cameras.iter().map(move |one| (all, one)))
    {
        let full = seen.stream.map(key_of_full_soon);
        let gives = match &seen.down_since {
            Some(_) => Some(0),
            None => seen.measured_bytes_per_second,
        };
        if let (Some(full), Some(rate)) = (full, gives) {
            let left = seen.seconds_left.filter(|left| rate > 0 && *left < SOON_FULL.as_secs());
            findings.retain_mut(|one| {
                if one.key != full || one.volume.as_deref() != Some(&seen.volume) {
                    return true;
                }
                if let Some(left) = left {
                    let (left, rate) = (span(Duration::from_secs(left)), Rate::per_second(rate));
                    one.what = format!(
                        "volume {} is full in {left} at {rate}, which its camera gives",
                        seen.volume
                    );
                }
                left.is_some()
            });
        }
        let troubles = seen.troubles(&all.file, &all.command());
        if let (Some(stream), true) =
            (seen.stream, troubles.iter().any(|(word, _)| *word == "state"))
        {
            // Why nothing comes its supervisor says.
            findings.retain(|one| {
                one.key != key_of_silence(stream) || one.volume.as_deref() != Some(&seen.volume)
            });
        }
        findings.extend(troubles.into_iter().map(|(word, told)| {
            let (file, name) = (&all.file, &seen.name);
            Finding {
                key: format!("camera/{file}/{name}/{word}"),
                volume: Some(seen.volume.clone()),
                weight: Weight::Look,
                what: told.what,
                next_step: told.next_step,
            }
        }));
    }
    findings
}

/// How a finding begins.
pub fn mark(weight: Weight) -> &'static str {
    match weight {
        Weight::Broken => "BROKEN",
        Weight::Look => "look",
    }
}

fn disks(disks: &[Disk]) -> String {
    let headings = [
        "disk",
        "device",
        ">free",
        ">promised",
        ">slack",
        ">late",
        ">errors",
        ">oldest",
        "profile",
    ];
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
            oldest(disk),
            trust.into(),
        ]);
    }
    table.text("  ") + PROMISED
}

/// For how long the disk has had the command that it has had for longest.
pub fn oldest(disk: &Disk) -> String {
    disk.oldest_command.as_ref().map_or_else(|| "-".into(), |oldest| oldest.age_ns.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// With both cameras of a file down the verdict was that a volume is full soon, to which nobody wrote.
    #[test]
    fn a_camera_that_is_down_is_told_and_its_volume_is_not_full_soon() {
        let found = |stream: u64, volume: &str| Finding {
            key: format!("stream/{stream}/soon_full"),
            volume: Some(volume.into()),
            weight: Weight::Look,
            what: format!("volume {volume} is full in 52 s at the rate of its contract"),
            next_step: "give it more room".into(),
        };
        let cameras = |k1: serde_json::Value, k2: serde_json::Value| -> Vec<Snapshot> {
            let seen = |name: &str, stream: u64, with: serde_json::Value| {
                let mut seen = json!({
                    "name": name, "volume": name, "state": "recording", "since": "12:00", "for_seconds": 1,
                    "asked_bytes_per_second": 1, "stream": stream, "durable_bytes": 0, "size_bytes": 0,
                    "given_bytes": 0, "buffer_bytes": 0, "buffer_max_bytes": 0, "starts": 1,
                    "lost_bytes": 0, "losses": [],
                });
                seen.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
                seen
            };
            let all = [seen("k1", 1, k1), seen("k2", 2, k2)];
            serde_json::from_value(
                json!([{ "file": "/c.toml", "pid": 1, "time": "", "cameras": all }]),
            )
            .unwrap()
        };
        // Nothing is measured in the first seconds.
        let down = json!({ "state": "down", "why": "it ended", "down_since": "12:00",
            "seconds_left": 52 });
        let slow = json!({ "measured_bytes_per_second": 1_000, "seconds_left": 600 });
        let told = |all: &[Snapshot]| -> Vec<String> {
            let findings = vec![found(1, "k1"), found(2, "k2"), found(3, "k3")];
            with_cameras(findings, all).into_iter().map(|one| one.what).collect()
        };
        assert_eq!(told(&[]).len(), 3);
        let k3 = "volume k3 is full in 52 s at the rate of its contract";
        let k2 = "volume k2 is full in 10 min 0 s at 1 kB/s, which its camera gives";
        let k1 = "camera k1 of /c.toml is down since 12:00: it ended";
        assert_eq!(told(&cameras(down.clone(), slow.clone())), [k2, k3, k1]);
        // What is not measured yet is as the daemon says.
        assert_eq!(told(&cameras(json!({}), json!({}))), told(&[]));
        let silent = json!({ "down_since": "12:01", "measured_bytes_per_second": 0 });
        let says = told(&cameras(silent, slow));
        assert_eq!(says.last().unwrap(), "camera k1 of /c.toml gives nothing since 12:01");
        let both = with_cameras(Vec::new(), &cameras(down.clone(), down));
        // What is lost beside a camera that records was told nowhere, and all was sound.
        let loss =
            json!({ "from": "12:02", "to": "12:03", "bytes": 2_048, "why": "its buffer was full" });
        let loses = json!({ "losing_since": "12:04", "lost_lately": loss, "lost_bytes": 4_096 });
        let lost = json!({ "lost_lately": loss, "lost_bytes": 4_096 });
        let output = "have it encoded: `output = [\"-c:v\", \"libx264\"]`";
        let odd =
            json!({ "unplayable": [{ "what": "MPEG-TS has no mjpeg", "next_step": output }] });
        let found = with_cameras(Vec::new(), &cameras(loses, lost));
        let what: Vec<_> = found.iter().map(|one| &*one.what).collect();
        assert_eq!(
            what,
            [
                "camera k1 of /c.toml loses bytes since 12:04: its buffer is full, and the oldest go",
                "camera k2 of /c.toml lost 2 KiB between 12:02 and 12:03: its buffer was full; 4 KiB since \
                 its supervisor began"
            ]
        );
        let found = with_cameras(Vec::new(), &cameras(json!({}), odd));
        assert_eq!(found[0].what, "camera k2 of /c.toml: MPEG-TS has no mjpeg");
        assert_eq!(found[0].next_step, output);
        assert_eq!(daemon::findings::how_many(&both).as_deref(), Some("2 to look at"));
        assert!(both[0].next_step.contains("slackline cameras /c.toml --status"), "{both:?}");
    }
}
