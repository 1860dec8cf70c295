//! What a person should know of a pool, and what to do about it: the gravest first.
//!
//! Invariant: a finding says what is the case, with its figures, and what to do next; where
//! nothing is found, every contract was kept so far and nothing that is known endangers one.

mod disks;
mod making;

pub(crate) use disks::of_room;
use disks::{is_on_one_that_hangs, of_disk, of_host};
pub use making::SOON_FULL;
use making::{broken, look, on};
use report::{counted, quoted, span, stream_on};
use units::{Bytes, Duration, Rate};
use wire::control::{
    Finding, Mode, Overview, PolicyState, Service, Status, Stream, Volume, Weight,
};

/// All of it, with what is found in it.
pub fn overview(status: Status, policy: PolicyState) -> Overview {
    let findings = findings(&status, &policy);
    let verdict = verdict(&findings, &status, &policy);
    Overview { sound: findings.is_empty(), verdict, findings, policy, status }
}

/// How many things were found, where any was.
pub fn how_many(findings: &[Finding]) -> Option<String> {
    let broken = findings.iter().filter(|one| one.weight == Weight::Broken).count() as u64;
    let look = findings.len() as u64 - broken;
    let parts =
        [(broken, "thing is broken", "things are broken"), (look, "to look at", "to look at")];
    let parts = parts.iter().filter(|part| part.0 > 0);
    let parts = parts.map(|(n, one, many)| format!("{n} {}", if *n == 1 { one } else { many }));
    let parts = parts.collect::<Vec<_>>().join(", ");
    (!parts.is_empty()).then_some(parts)
}

/// What is to be said first of a status in which this was found.
pub fn verdict(findings: &[Finding], status: &Status, policy: &PolicyState) -> String {
    if let Some(how_many) = how_many(findings) {
        return how_many;
    }
    let services = status.volumes.iter().filter(|one| is_contract(&one.service)).count();
    let handles: usize = status.volumes.iter().map(|one| one.handles.len()).sum();
    match status.streams.len() + services + handles {
        0 if policy.promised => "sound: no contract is open".into(),
        0 => format!("sound: nothing is promised under the policy {}", status.policy),
        contracts => {
            format!("sound: {} kept, no request late", counted(contracts as u64, "contract"))
        }
    }
}

/// All that is found, the gravest first.
fn findings(status: &Status, policy: &PolicyState) -> Vec<Finding> {
    let mut found = Vec::new();
    if status.read_only {
        let what = "the pool is read-only, because a write of metadata failed";
        let next = "look into the kernel's log for what the disk reported, stop the daemon, and \
                    run `slackline pool check DEVICE...`";
        found.push(broken("read_only".into(), what.into(), next));
    }
    if let Some(doubt) = &status.clock_doubt {
        let (ahead, left) = (span(doubt.ahead_ns), span(doubt.for_ns));
        let what = format!(
            "the clock of this machine lies {ahead} ahead of where it was last, and may be wrong: rings give \
             up nothing for its age for the next {left}"
        );
        let next = "if it is right, there is nothing to do; if not, set it right before that time is over \
                    (`timedatectl`), or have rings keep all: `slackline volume keep NAME off`";
        found.push(look("clock".into(), what, next));
    }
    let has_contracts = !status.streams.is_empty() || status.volumes.iter().any(is_under_contract);
    if !policy.promised && has_contracts {
        let what = format!("no contract is a promise under the policy {}", status.policy);
        found.push(broken(
            "policy".into(),
            what,
            "choose one that keeps contracts: `slackline pool set --policy slack`",
        ));
    }
    status.disks.iter().for_each(|disk| of_disk(disk, &mut found));
    found.extend(status.disks.iter().filter_map(|disk| of_room(disk, status)));
    let way = "an answer's way to its program";
    found.extend(of_host("host/delivery".into(), way, &status.delivery));
    status.volumes.iter().for_each(|volume| of_volume(volume, &mut found));
    found.extend(status.volumes.iter().filter_map(|volume| of_idle_ring(volume, status)));
    for stream in &status.streams {
        of_stream(stream, status.full_at(&stream.volume), &mut found);
        found.extend(of_silence(stream, status));
    }
    found.extend(status.warnings.iter().enumerate().map(|(n, warning)| {
        let next =
            "do what it says; where the host does not grant something, start the daemon again then";
        look(format!("warning/{n}"), warning.clone(), next)
    }));
    found.sort_by_key(|finding| finding.weight); // stable: in the order of what they are about
    found
}

fn is_under_contract(volume: &Volume) -> bool {
    is_contract(&volume.service) || !volume.handles.is_empty()
}

fn is_contract(service: &Service) -> bool {
    !matches!(service, Service::BestEffort { .. })
}

fn of_volume(volume: &Volume, found: &mut Vec<Finding>) {
    if let Some(kept_out) = &volume.kept_out {
        let what = format!(
            "volume {} is served as best effort, because its contract does not fit any more: {}",
            volume.name, kept_out.detail
        );
        let key = format!("volume/{}/contract", volume.name);
        found.push(on(&volume.name, broken(key, what, kept_out.next_step.clone())));
    }
    let own = (format!("volume/{}/late", volume.name), &volume.account);
    let handles = volume.handles.iter().map(|handle| {
        (format!("volume/{}/handle/{}/late", volume.name, handle.id), &handle.account)
    });
    for (key, account) in std::iter::once(own).chain(handles) {
        if account.late_requests > 0 {
            let what = format!(
                "volume {}: {} of {} under contract late, by {} at the most",
                volume.name,
                account.late_requests,
                counted(account.requests, "request"),
                account.late_max_ns
            );
            found.push(on(&volume.name, broken(key, what, WHY_LATE)));
        }
    }
}

/// Where to look for the cause.
const WHY_LATE: &str = "`slackline pool status` says whether the disk took longer than its \
                        profile says (overruns) or the host was late";

fn key_of_stream(stream: u64, what: &str) -> String {
    format!("stream/{stream}/{what}")
}

/// The key of the finding that the volume of this stream is full soon.
pub fn key_of_full_soon(stream: u64) -> String {
    key_of_stream(stream, "soon_full")
}

fn of_stream(stream: &Stream, size: Option<Bytes>, found: &mut Vec<Finding>) {
    let name = format!("stream {} on {}", stream.id, stream.volume);
    let key = |what: &str| key_of_stream(stream.id, what);
    let mut found = |finding| found.push(on(&stream.volume, finding));
    // What may be late is judged by the odds of its disk.
    if stream.late_requests > 0 && stream.miss_per_billion.is_none() {
        let (late, all) = (stream.late_requests, counted(stream.requests, "request"));
        let what = format!("{name}: {late} of {all} late, by {} at the most", stream.late_max_ns);
        found(broken(key("late"), what, WHY_LATE));
    }
    if !stream.lost().is_zero() {
        let lost = stream.lost();
        let what = format!("{name}: {lost} were given up, because a disk did not answer in time");
        found(broken(key("gap"), what, WHY_LATE));
    }
    if !stream.overtaken_bytes.is_zero() {
        // What a ring gave up before a slow reader came there is no broken promise.
        let gone = stream.overtaken_bytes;
        let what = format!("{name}: the ring had given up {gone} before it came there");
        let next = "play at a larger rate than it is recorded at, or begin later in the ring; the next \
                    ring may be larger";
        found(look(key("overtaken"), what, next));
    }
    if let Some(rate) = faster_source(stream).filter(|_| !stream.buffered) {
        let what = format!(
            "{name}: its program was slowed {} to {}",
            counted(stream.throttled, "time"),
            stream.contract.rate_bytes_per_second
        );
        let next = format!(
            "if it cannot wait, as a camera cannot, give it more: `slackline stream set {} --rate {}`",
            stream_on(&stream.volume, stream.id),
            disk::exact_rate(rate)
        );
        found(look(key("slowed"), what, next));
    }
    if let Some(left) = left(stream, size).filter(|left| *left < SOON_FULL) {
        let what = format!(
            "volume {} is full in {} at the rate of its contract",
            stream.volume,
            span(left)
        );
        let twice = twice(size.unwrap_or_default());
        let next = format!(
            "give it more room: `slackline volume resize {} {twice}`",
            quoted(&stream.volume)
        );
        found(look(key_of_full_soon(stream.id), what, next));
    }
}

/// The key of the finding that nothing comes from the program of this stream.
pub fn key_of_silence(stream: u64) -> String {
    key_of_stream(stream, "silent")
}

/// How long ago something was written to this volume last, as far as that is known.
fn written_ago(volume: &Volume, status: &Status) -> Option<Duration> {
    let recorded = volume.recorded.as_ref().map(|recorded| recorded.ends_ns);
    let last = recorded.max(volume.times.as_ref().map(|times| times.modified_ns))?;
    let ago = u64::try_from(status.time_ns.checked_sub(last)?).ok()?;
    (status.time_ns > 0).then_some(Duration::from_nanos(ago))
}

/// A writer that goes on at the end of its volume, and of which nothing came for long.
fn of_silence(stream: &Stream, status: &Status) -> Option<Finding> {
    let volume = status.volumes.iter().find(|one| one.name == stream.volume)?;
    let (contract, name) = (&stream.contract, &stream.volume);
    // Who writes over what is there changes no times of it.
    let goes_on = stream.mode == Mode::Write && stream.position_bytes >= volume.length_bytes;
    let for_long = match written_ago(volume, status) {
        Some(ago) => ago.min(stream.open_ns),
        None if stream.moved_bytes.is_zero() => stream.open_ns,
        None => return None,
    };
    // What fills its blocks slowly is written when they are full.
    let block = contract.rate_bytes_per_second.time_for(contract.block_bytes);
    // What came could not be written, and its program is held up.
    if is_on_one_that_hangs(volume, status) {
        return None;
    }
    if !goes_on || for_long < SILENT_AFTER.saturating_add(block.saturating_mul(2)) {
        return None;
    }
    let what =
        format!("stream {} on {name}: nothing came to record for {}", stream.id, span(for_long));
    let next = format!(
        "look at what gives its bytes, of a camera with `slackline cameras FILE --status`; or close it: \
         `slackline stream close {}`",
        stream_on(name, stream.id)
    );
    Some(on(name, look(key_of_silence(stream.id), what, next)))
}

/// A ring that gives up what is old, and to which nobody records any more: it becomes empty.
fn of_idle_ring(volume: &Volume, status: &Status) -> Option<Finding> {
    let (name, keep) = (&volume.name, volume.ring.as_ref()?.keep_ns?);
    let writes = |stream: &Stream| stream.volume == *name && stream.mode != Mode::Read;
    volume.recorded.as_ref()?;
    let ago = written_ago(volume, status).filter(|ago| *ago >= IDLE_AFTER)?;
    if status.streams.iter().any(writes) {
        return None;
    }
    let what = format!(
        "nobody records to ring {name} for {}, and it gives up what is older than {}",
        span(ago),
        span(keep)
    );
    let quoted = quoted(name);
    let next = format!(
        "start what records to it, cameras with `slackline cameras FILE` or `systemctl start \
         slackline-cameras`; where that is over, `slackline volume keep {quoted} off` keeps what it has"
    );
    Some(on(name, look(format!("volume/{name}/idle"), what, next)))
}

/// How long a writer's volume lasts at the rate of its contract. A program that has given nothing for a while
/// fills nothing. One that gives less than its contract is judged by its contract: it may give more at any time.
fn left(stream: &Stream, size: Option<Bytes>) -> Option<Duration> {
    let gives_nothing = stream.moved_bytes.is_zero() && stream.open_ns >= SILENT_AFTER;
    stream.left(size).filter(|_| !gives_nothing)
}

/// A program that has given nothing for so long may well not begin.
const SILENT_AFTER: Duration = Duration::from_secs(60);

/// A ring to which nobody has recorded for so long is told of: who is started anew is back by then.
const IDLE_AFTER: Duration = Duration::from_secs(600);

/// A writer that was slowed once within this time hands over bytes that waited for its stream to be opened.
const CATCHES_UP: Duration = Duration::from_secs(10);

/// What a writer that was slowed would have to ask for at least: a tenth more than it has. Whoever was slowed
/// once, and has written less than its rate since, had something left to hand over.
fn faster_source(stream: &Stream) -> Option<Rate> {
    if stream.mode != Mode::Write || stream.throttled == 0 {
        return None;
    }
    let (rate, open) = (stream.contract.rate_bytes_per_second, stream.open_ns);
    let all = rate.bytes_in(open);
    let catches_up = open < CATCHES_UP || stream.moved_bytes < all.saturating_sub(all / 50);
    if stream.throttled == 1 && catches_up {
        return None;
    }
    let rate = rate.get();
    Some(Rate::per_second(rate.saturating_add(rate / 10)))
}

/// Twice as much, in a round figure that the command reads.
fn twice(size: Bytes) -> String {
    let (mib, gib) = (Bytes::MIB.get(), Bytes::mib(1_024).get());
    match size.get().saturating_mul(2) {
        twice if twice < gib => format!("{}MiB", twice.div_ceil(mib)),
        twice => format!("{}GiB", twice.div_ceil(gib)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wire::control::PolicyAdmission;

    /// A pool with one disk, one volume under contract and one stream that writes, of which
    /// nothing is to be said.
    pub fn sound() -> Value {
        let traffic = json!({ "requests": 0, "bytes": 0 });
        let lateness = json!({ "count": 0, "p50_ns": 0, "p999_ns": 0, "max_ns": 0 });
        let disk = json!({
            "disk": 0, "device": "/dev/sdb", "damage": null, "capacity_bytes": 0, "free_bytes": 0,
            "utilisation_ppm": 0, "slack_ns": 0, "waiting_real_time": 0,
            "waiting_best_effort": 0, "real_time": traffic, "best_effort": traffic,
            "overruns": 0, "overrun_max_ns": 0, "predicted_ns": 0, "actual_ns": 0,
            "late_requests": 0, "late_max_ns": 0, "errors": 0,
            "profile": {
                "verdict": "fresh", "detail": "", "commands": 0, "overruns": 0,
                "ratio_ppm": 0, "drift_ppm": 0, "suspects": 0, "suspect_extents": [],
                "occupied": 0, "moved": 0, "stuck": [], "for_next_start": false,
            },
        });
        let stream = json!({
            "id": 3, "volume": "cam1", "mode": "write", "attached": true, "contract": {
                "rate_bytes_per_second": 1_000_000, "block_bytes": 262_144,
                "burst_bytes": 262_144,
            },
            "window_bytes": 0, "position_bytes": 0, "moved_bytes": 0, "durable_bytes": 0,
            "requests": 9, "late_requests": 0, "late_max_ns": 0, "underruns": 0,
            "throttled": 0, "gap_bytes": 0, "latency_max_ns": 0, "open_ns": 1,
        });
        json!({
            "pool": "tape", "version": "0", "policy": "slack", "up_ns": 1, "read_only": false,
            "host_wakeups": lateness, "host_completions": lateness, "warnings": [],
            "memory": {
                "total_bytes": 0, "window_bytes": 0, "best_effort_bytes": 0, "free_bytes": 0,
            },
            "disks": [disk],
            "volumes": [{
                "name": "cam1", "owner": { "uid": 1, "gid": 1, "user": "u", "group": "g", "mode": "600" },
                "size_bytes": 100_000_000_000_u64, "length_bytes": 0,
                "placement": {}, "extents": [0], "streams": 1,
                "service": { "class": "latency", "len_bytes": 4096, "within_ns": 1, "every_ns": 1 },
                "account": {
                    "requests": 7, "late_requests": 0, "late_max_ns": 0, "latency_max_ns": 0,
                },
            }],
            "streams": [stream],
        })
    }

    fn policy(promised: bool) -> PolicyState {
        PolicyState {
            policy: "slack".into(),
            summary: String::new(),
            admission: PolicyAdmission::Nothing,
            promised,
            settings: Vec::new(),
            kept: false,
        }
    }

    /// Everything, with what is found in this status, under a policy that keeps contracts.
    pub fn overview_of(status: &Value) -> Overview {
        overview(serde_json::from_value(status.clone()).unwrap(), policy(true))
    }

    /// What is found after this part of the status, named as in RFC 6901, has become that.
    fn after(pointer: &str, value: Value) -> Vec<Finding> {
        let mut status = sound();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        status.pointer_mut(parent).unwrap()[key] = value;
        findings(&serde_json::from_value(status).unwrap(), &policy(true))
    }

    #[test]
    fn nothing_is_found_where_nothing_is_wrong() {
        let status: Status = serde_json::from_value(sound()).unwrap();
        let all = overview(status.clone(), policy(true));
        assert_eq!((all.sound, &*all.findings), (true, &[][..]));
        assert_eq!(all.verdict, "sound: 2 contracts kept, no request late");
        assert!(findings(&status, &policy(false))[0].what.contains("no contract is a promise"));
    }

    /// A source that is faster than its contract has all of its rate; one that hands over what had waited
    /// has less of it from then on.
    #[test]
    fn who_was_slowed_once_and_has_written_less_than_its_rate_since_is_not_told_of() {
        let found = |throttled: u64, moved: u64| {
            let mut status = sound();
            let stream = &mut status["streams"][0];
            stream["throttled"] = json!(throttled);
            stream["moved_bytes"] = json!(moved);
            stream["open_ns"] = json!(100_000_000_000_u64);
            overview_of(&status).findings
        };
        assert_eq!(found(1, 97_000_000), []);
        let told = found(1, 98_000_000);
        assert!(told[0].what.contains("slowed 1 time to 1 MB/s"), "{told:?}");
        assert_eq!(found(2, 97_000_000).len(), 1);
        let young = |throttled: u64| {
            let mut status = sound();
            status["streams"][0]["throttled"] = json!(throttled);
            status["streams"][0]["moved_bytes"] = json!(15_000_000);
            status["streams"][0]["open_ns"] = json!(9_000_000_000_u64);
            overview_of(&status).findings.len()
        };
        assert_eq!((young(1), young(2)), (0, 1), "it hands over what had waited");
    }

    /// A camera that had fallen silent days ago, and one whose supervisor was never started again, were
    /// sound.
    #[test]
    fn a_recording_that_does_not_go_on_is_told() {
        const SECOND: i64 = 1_000_000_000;
        let now = 1_800_000_000 * SECOND;
        let status = |ago: i64, open: i64| {
            let mut status = sound();
            status["time_ns"] = json!(now);
            status["streams"][0]["open_ns"] = json!(open * SECOND);
            status["streams"][0]["moved_bytes"] = json!(1);
            let at = now - ago * SECOND;
            status["volumes"][0]["recorded"] =
                json!({ "begins_ns": 1, "ends_ns": at, "within_ns": 1 });
            status["volumes"][0]["ring"] =
                json!({ "start_bytes": 0, "held_bytes": 1, "keep_ns": 86_400 * SECOND });
            status
        };
        let what = |status: &Value| -> Vec<String> {
            overview_of(status).findings.into_iter().map(|one| one.what).collect()
        };
        let days = status(260_000, 900_000);
        let silent = "stream 3 on cam1: nothing came to record for 3 d 0 h";
        assert_eq!(what(&days), [silent]);
        assert_eq!(overview_of(&days).findings[0].key, key_of_silence(3));
        assert_eq!(
            what(&status(260_000, 61)),
            ["stream 3 on cam1: nothing came to record for 1 min 1 s"]
        );
        assert_eq!(what(&status(59, 900_000)), [""; 0]);
        assert_eq!(what(&status(260_000, 59)), [""; 0], "it was opened just now");
        assert_eq!(what(&status(-5, 900_000)), [""; 0], "the clock was set back");
        let but = |pointer: &str, value: Value| {
            let mut status = days.clone();
            *status.pointer_mut(pointer).unwrap() = value;
            what(&status)
        };
        assert_eq!(but("/streams/0/mode", json!("read")).len(), 1, "it is the ring that is idle");
        assert_eq!(
            but("/volumes/0/length_bytes", json!(9)),
            [""; 0],
            "it writes over what is there"
        );
        assert_eq!(
            but("/streams/0/contract/block_bytes", json!(1_u64 << 37)),
            [""; 0],
            "a long block"
        );
        assert_eq!(but("/time_ns", json!(0)), [""; 0]);
        // Nothing is known of when it was written: it is silent where it gave nothing at all.
        let mut never = days.clone();
        never["volumes"][0]["recorded"] = Value::Null;
        assert_eq!(what(&never), [""; 0]);
        never["streams"][0]["moved_bytes"] = json!(0);
        assert_eq!(what(&never), ["stream 3 on cam1: nothing came to record for 10 d 10 h"]);

        // Nobody writes it.
        let mut idle = days.clone();
        idle["streams"] = json!([]);
        let told = overview_of(&idle).findings;
        assert_eq!(
            told[0].what,
            "nobody records to ring cam1 for 3 d 0 h, and it gives up what is older than 1 d 0 h"
        );
        assert!(told[0].next_step.contains("volume keep cam1 off"), "{told:?}");
        let but = |change: &dyn Fn(&mut Value)| {
            let mut status = idle.clone();
            change(&mut status["volumes"][0]);
            what(&status)
        };
        assert_eq!(but(&|volume| volume["ring"]["keep_ns"] = Value::Null), [""; 0]);
        assert_eq!(but(&|volume| volume["recorded"] = Value::Null), [""; 0], "never written");
        let young = json!({ "begins_ns": 1, "ends_ns": now - 599 * SECOND, "within_ns": 1 });
        assert_eq!(but(&|volume| volume["recorded"] = young.clone()), [""; 0]);
    }

    #[test]
    fn a_clock_that_may_be_wrong_is_told() {
        let doubt = json!({ "ahead_ns": 86_400_000_000_000_u64, "for_ns": 600_000_000_000_u64 });
        let told = after("/clock_doubt", doubt);
        assert_eq!((told.len(), told[0].weight, &*told[0].key), (1, Weight::Look, "clock"));
        assert!(told[0].what.contains("1 d 0 h ahead") && told[0].what.contains("next 10 min 0 s"));
    }

    #[test]
    fn each_thing_that_is_wrong_is_told_with_what_to_do() {
        let stream = |field: &str| format!("/streams/0/{field}");
        let cases: [(&str, Value, Weight, &str, &str); 14] = [
            ("/read_only", json!(true), Weight::Broken, "read-only", "pool check"),
            ("/disks/0/errors", json!(2), Weight::Broken, "/dev/sdb) failed 2 commands", "copy"),
            (
                "/disks/0/host_errors",
                json!(2),
                Weight::Broken,
                "no room or no memory for 2",
                "is full (`df`), or a quota or a limit is reached, make room; if the machine is short of \
                 memory, free some; who wrote was told what failed; this counts since the daemon's start",
            ),
            ("/disks/0/profile/verdict", json!("stale"), Weight::Look, "disk 0", "--disk 0"),
            (
                "/disks/0/gap",
                json!({ "stated_ns": 1, "p999_ns": 2, "sample": 3, "beyond": 4,
                    "beyond_max_ns": 5, "refused": "stream 3 would not fit" }),
                Weight::Look,
                "stream 3 would not fit",
                "end one",
            ),
            (
                "/disks/0/odds",
                json!({ "requests": 9, "late_requests": 3, "broken": "late" }),
                Weight::Broken,
                "the odds on disk 0",
                "--miss",
            ),
            ("/volumes/0/account/late_requests", json!(1), Weight::Broken, "1 of 7", "pool status"),
            (
                "/volumes/0/kept_out",
                json!({ "service": { "class": "best_effort" }, "detail": "too much",
                    "next_step": "close one" }),
                Weight::Broken,
                "too much",
                "close one",
            ),
            (&stream("late_requests"), json!(4), Weight::Broken, "4 of 9", "pool status"),
            (&stream("gap_bytes"), json!(4096), Weight::Broken, "given up", "pool status"),
            (&stream("throttled"), json!(5), Weight::Look, "5 times", "set cam1 --rate 1.1MB/s"),
            (
                &stream("position_bytes"),
                json!(99_940_000_000_u64),
                Weight::Look,
                "full in 1 min 0 s",
                "resize cam1 187GiB",
            ),
            ("/disks/0/damage", json!("its file was removed"), Weight::Broken, "removed", "export"),
            ("/warnings", json!(["no memory is locked"]), Weight::Look, "no memory", "again"),
        ];
        for (pointer, value, weight, what, next) in cases {
            let found = after(pointer, value);
            let [one] = &found[..] else { panic!("{pointer}: {found:?}") };
            assert_eq!(one.weight, weight, "{pointer}: {found:?}");
            assert!(one.what.contains(what), "{pointer}: {found:?}");
            assert!(one.next_step.contains(next), "{pointer}: {found:?}");
        }
    }

    /// A volume was told to be full in a minute at the rate of its contract, though its camera gave nothing.
    #[test]
    fn that_a_volume_is_full_soon_is_not_told_of_a_program_that_has_given_nothing() {
        let told = |open: u64, moved: u64| {
            let mut status = sound();
            let stream = &mut status["streams"][0];
            stream["position_bytes"] = json!(99_940_000_000_u64);
            stream["open_ns"] = json!(open * 1_000_000_000);
            stream["moved_bytes"] = json!(moved);
            overview_of(&status).findings.first().map(|one| one.what.clone())
        };
        let full = |text: &str| Some(format!("volume cam1 is full in {text}"));
        assert_eq!(told(59, 0), full("1 min 0 s at the rate of its contract"));
        assert_eq!(told(60, 0), None);
        // It may have paused, and go on now.
        assert_eq!(told(86_400, 1_000_000), full("1 min 0 s at the rate of its contract"));
    }

    /// It was told all the time that a volume is full soon that its program had not made larger yet.
    #[test]
    fn a_volume_that_its_program_makes_larger_is_full_when_it_is_as_large_as_that() {
        let mut status = sound();
        status["disks"][0]["capacity_bytes"] = json!(1_u64 << 40);
        status["disks"][0]["free_bytes"] = json!(1_u64 << 39);
        status["volumes"][0]["size_bytes"] = json!(60_000_000);
        let [one] = &overview_of(&status).findings[..] else { panic!("{status}") };
        assert!(one.what.contains("is full in 1 min 0 s"), "{one:?}");
        status["streams"][0]["grows_to_bytes"] = json!(1_u64 << 38);
        assert_eq!(overview_of(&status).findings, []);
        status["disks"][0]["free_bytes"] = json!(1_000_000_000);
        status["disks"][0]["capacity_bytes"] = json!(2_000_000_000);
        let [one] = &overview_of(&status).findings[..] else { panic!("{status}") };
        assert!(one.key == "disk/0/full" && one.what.contains("full in 16 min 40 s"), "{one:?}");
    }

    #[test]
    fn what_is_broken_comes_first_and_what_may_be_late_is_not_broken() {
        let mut status = sound();
        status["warnings"] = json!(["no memory is locked"]);
        status["streams"][0]["late_requests"] = json!(1);
        let found = |status: &Value| -> Vec<Weight> {
            let status = serde_json::from_value(status.clone()).unwrap();
            findings(&status, &policy(true)).iter().map(|one| one.weight).collect()
        };
        assert_eq!(found(&status), [Weight::Broken, Weight::Look]);
        let all = overview(serde_json::from_value(status.clone()).unwrap(), policy(true));
        assert_eq!((all.sound, &*all.verdict), (false, "1 thing is broken, 1 to look at"));
        status["streams"][0]["miss_per_billion"] = json!(1_000_000);
        assert_eq!(found(&status), [Weight::Look]);
    }

    /// A ring is never full, and a reader that it has overtaken is no broken promise.
    #[test]
    fn a_ring_is_not_told_to_be_full_nor_its_disks_to_be_late() {
        let mut status = sound();
        status["volumes"][0]["ring"] = json!({ "start_bytes": 16_777_216, "held_bytes": 1 });
        status["streams"][0]["position_bytes"] = json!(99_940_000_000_u64);
        let found = |status: &Value| {
            findings(&serde_json::from_value(status.clone()).unwrap(), &policy(true))
        };
        assert_eq!(found(&status), []);
        status["streams"][0]["gap_bytes"] = json!(4096);
        status["streams"][0]["overtaken_bytes"] = json!(4096);
        let [one] = &found(&status)[..] else { panic!("{:?}", found(&status)) };
        assert_eq!(one.weight, Weight::Look);
        assert!(
            one.what.contains("had given up 4 KiB") && one.next_step.contains("ring"),
            "{one:?}"
        );
        // Where a disk lost more than that, it is told for itself.
        status["streams"][0]["gap_bytes"] = json!(12_288);
        let [disk, ring] = &found(&status)[..] else { panic!("{:?}", found(&status)) };
        assert_eq!((disk.weight, ring.weight), (Weight::Broken, Weight::Look));
        assert!(disk.what.contains("8 KiB were given up, because a disk"), "{disk:?}");
    }
}
