//! That a contract was broken, for some hours after: the stream whose requests were late may have
//! closed since, and took with it what is told of an open one.
//!
//! Invariant: of each disk a few figures are kept, however much was late.

use std::time::{Duration, Instant};
use wire::control::{Disk, Finding, Overview, Weight};

/// For so long after the last late request it is told.
const TOLD_FOR: Duration = Duration::from_secs(6 * 3_600);

/// What was late of each disk.
#[derive(Default)]
pub struct WasLate {
    disks: Vec<OfDisk>,
}

#[derive(Clone, Copy, Default)]
struct OfDisk {
    /// Late requests that the last look saw.
    counted: u64,
    /// Of these, since there was a pause of [`TOLD_FOR`]; and when the last was seen.
    late: Option<(u64, Instant)>,
}

impl WasLate {
    /// Takes note of what was late since the last look, and says what is to be told of it.
    pub fn look(&mut self, now: Instant, disks: &[Disk]) -> Vec<Finding> {
        self.disks.resize(disks.len(), OfDisk::default());
        let looks = self.disks.iter_mut().zip(disks);
        looks.filter_map(|(seen, disk)| Some(finding(disk, seen.look(now, disk)?))).collect()
    }
}

impl OfDisk {
    /// How many were late, and how long ago the last.
    fn look(&mut self, now: Instant, disk: &Disk) -> Option<(u64, Duration)> {
        let more = disk.late_requests.saturating_sub(self.counted);
        self.counted = disk.late_requests;
        let ago = |(_, at): &(u64, Instant)| now.saturating_duration_since(*at);
        self.late = self.late.filter(|late| ago(late) < TOLD_FOR);
        // What may be late at times is judged by its odds.
        if more > 0 && disk.odds.is_none() {
            self.late = Some((self.late.map_or(0, |(before, _)| before) + more, now));
        }
        self.late.map(|late| (late.0, ago(&late)))
    }
}

fn finding(disk: &Disk, (late, ago): (u64, Duration)) -> Finding {
    let ago = units::Duration::from_secs(ago.as_secs());
    let what = format!(
        "disk {} ({}): {} under contract {} late, the last {} ago",
        disk.disk,
        disk.device,
        report::counted(late, "request"),
        if late == 1 { "was" } else { "were" },
        report::span(ago)
    );
    let next_step = "`slackline pool status` says whether the disk or the host took longer; \
                     `slackline events` whose they were; this is told for 6 hours";
    let key = format!("disk/{}/was_late", disk.disk);
    Finding { key, volume: None, weight: Weight::Look, what, next_step: next_step.into() }
}

/// An overview with these findings beside its own, unless it tells of lateness already or nothing is
/// promised: then it is the same as before.
pub fn told(overview: Overview, late: Vec<Finding>) -> Overview {
    let tells = overview.findings.iter().any(|one| one.key.ends_with("/late"));
    if late.is_empty() || tells || !overview.policy.promised {
        return overview;
    }
    let Overview { mut findings, policy, status, .. } = overview;
    findings.extend(late); // nothing is less grave
    let verdict = crate::findings::verdict(&findings, &status, &policy);
    Overview { sound: false, verdict, findings, policy, status }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{overview_of, sound};
    use serde_json::json;

    /// `slackline status` said that all was sound a second after a contract had been broken, as soon as
    /// its stream had closed.
    #[test]
    fn that_requests_were_late_is_told_for_hours_after_their_stream_has_closed() {
        let (mut was_late, begin) = (WasLate::default(), Instant::now());
        let mut at = |seconds: u64, late: u64, stream_late: u64| {
            let mut status = sound();
            status["disks"][0]["late_requests"] = json!(late);
            status["streams"][0]["late_requests"] = json!(stream_late);
            let overview = overview_of(&status);
            let now = begin + Duration::from_secs(seconds);
            let late = was_late.look(now, &overview.status.disks);
            told(overview, late)
        };
        assert!(at(0, 0, 0).sound);
        let open = at(1, 1, 1);
        assert_eq!(open.findings.len(), 1, "{:?}", open.findings);
        assert_eq!(open.findings[0].key, "stream/3/late");
        let closed = at(600, 1, 0);
        assert!(!closed.sound && closed.verdict == "1 to look at", "{}", closed.verdict);
        assert_eq!(
            closed.findings[0].what,
            "disk 0 (/dev/sdb): 1 request under contract was late, the last 9 min 59 s ago"
        );
        let more = at(3_600, 3, 0);
        assert!(more.findings[0].what.contains("3 requests under contract were late"));
        assert!(!at(3_600 + 21_599, 3, 0).sound);
        let over = at(3_600 + 21_600, 3, 0);
        assert!(over.sound && over.findings.is_empty(), "{:?}", over.findings);
        // What comes later is counted anew.
        assert!(at(40_000, 4, 0).findings[0].what.contains("1 request under contract was late"));
    }
}
