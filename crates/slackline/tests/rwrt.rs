//! `slackline rwrt` from end to end, on emulated disks: promises as counts of the daemon,
//! bytes as what they should be. No test looks at how long anything took; where the host
//! itself was later than the daemon was told to expect, late requests are the host's, and
//! the count is not looked at.

use crate::support::{Daemon, Scratch, noise};
use serde_json::Value;

/// How much earlier than its deadline a request is done, so that a loaded host does no harm.
const HOST_LATENCY_NS: u64 = 100_000_000;

fn serve(dir: &Scratch) -> Daemon {
    let disk = dir.disk("disk");
    dir.run(&["pool", "create", "test", &disk, "--size", "512MiB"]).succeeded();
    let more = ["--host-latency", "100ms", "--commit-interval", "500ms"];
    dir.try_serve(&[disk], &more).unwrap_or_else(|ran| panic!("no daemon: {}", ran.err))
}

fn was_the_host(run: &Value) -> bool {
    let late = &run["daemon_lateness"];
    let late = |name: &str| late[name].as_u64().unwrap();
    late("wakeups_max_ns").max(late("completions_max_ns")) > HOST_LATENCY_NS
}

const LOAD: [&str; 19] = [
    "rwrt",
    "--contract-block",
    "512KiB",
    "--volume",
    "v",
    "--total",
    "1MB",
    "--readers",
    "1",
    "--writers",
    "1",
    "--timeshift",
    "300ms",
    "--greedy-readers",
    "2",
    "--greedy-writers",
    "1",
    "--json",
    "--no-realtime",
];

#[test]
fn every_operation_under_contract_is_served_from_memory_and_every_byte_is_right() {
    let dir = Scratch::new();
    let _daemon = serve(&dir);
    let ran = dir.run(&LOAD);
    assert!(!ran.out.is_empty(), "{}", ran.err);
    let json = ran.json();
    let run = &json["runs"][0];
    assert_eq!((run["kind"].as_str(), ran.code == Some(0)), (Some("contract"), json["ok"] == true));
    let streams = run["streams"].as_array().unwrap();
    let ways: Vec<_> = streams.iter().map(|stream| stream["way"].as_str().unwrap()).collect();
    assert_eq!(ways, ["write", "read", "read"], "the last one reads what the first one writes");
    for stream in streams {
        assert_eq!(stream["checked"]["right_bytes"], 1_000_000, "{stream}");
        assert_eq!(stream["checked"]["wrong_bytes"], 0, "{stream}");
        for figures in ["jitter", "latency", "movement", "host_lateness"] {
            // 100 operations, of which the first one is told apart.
            assert_eq!(stream[figures]["count"], 99, "{figures}");
        }
        let contract = &stream["contract"];
        assert!(contract["requests"].as_u64().unwrap() >= 2, "512 KiB at a time: {contract}");
        if !was_the_host(run) {
            let kept = (&contract["underruns"], &contract["late_requests"]);
            assert_eq!(kept, (&Value::from(0), &Value::from(0)), "{stream}");
        }
    }
    let greedy = run["greedy"].as_array().unwrap();
    assert_eq!(greedy.len(), 3);
    assert!(greedy.iter().all(|greedy| greedy["bytes"].as_u64().unwrap() > 0));

    // What was written stays; a second run does not overwrite it unasked.
    let again: Vec<_> = LOAD.into_iter().filter(|&word| word != "--json").collect();
    dir.run(&again).failed(1, &["v-writer-1 holds", "--overwrite"]);
    // Another contract than the disk can keep is refused, with its figures.
    let much = ["rwrt", "--volume", "v-reader-1", "--readers", "1", "--total", "1MB", "--rate"];
    dir.run(&[&much[..], &["900MB/s"]].concat()).failed(3, &["refused: disk 0"]);
}

#[test]
fn as_best_effort_the_same_bytes_come_and_nothing_is_promised() {
    let dir = Scratch::new();
    let _daemon = serve(&dir);
    let ran = dir.run(&[&LOAD[..], &["--best-effort", "--remove"]].concat()).succeeded();
    let run = &ran.json()["runs"][0];
    assert_eq!(run["kind"], "best_effort");
    // Each part of it is told to its end, and no rate that no disk has.
    let told = ran.err.lines().filter_map(|line| line.trim().split_once(": "));
    let mut ends = std::collections::BTreeMap::new();
    for (what, rest) in told {
        let mut figures = rest.split([' ', ',']);
        if let (Some(done), Some("of"), Some(all)) =
            (figures.next(), figures.next(), figures.next())
        {
            // At the end of a run it waits for what greedy programs have begun.
            let step = what.split(' ').next().unwrap().replace("waiting", "running");
            ends.insert(step, (done, all));
        }
        if let Some((_, rate)) = rest.split_once("greedy programs ") {
            let rate: f64 = rate.trim_end_matches(" MB/s").parse().unwrap();
            assert!(rate < 1e6, "{rest}");
        }
    }
    assert!(ends.contains_key("running") && ends.len() > 1, "{}", ran.err);
    assert!(ends.values().all(|(done, all)| done == all), "{}", ran.err);
    for stream in run["streams"].as_array().unwrap() {
        assert_eq!(stream["contract"], Value::Null);
        assert_eq!(stream["checked"]["right_bytes"], 1_000_000, "{stream}");
    }
    let left = dir.run(&["volume", "list", "--json"]).succeeded().json();
    assert_eq!(left["volumes"].as_array().map(Vec::len), Some(0), "{left}");
}

#[test]
fn bytes_that_rwrt_did_not_write_are_named_and_can_be_read_all_the_same() {
    let dir = Scratch::new();
    let _daemon = serve(&dir);
    let record = ["record", "v", "--create", "1MiB", "--rate", "1MB/s", "--block", "256KiB"];
    dir.run_with(&record, &noise(7, 1 << 20).bytes()).recorded();
    let read = ["rwrt", "--volume", "v", "--readers", "1", "--total", "500kB"];
    let told = "BROKEN: run, under contract: reads v: 500000 bytes at offset 0 are damaged, or \
                were not written by rwrt";
    let ran = dir.run(&read);
    ran.failed(1, &["not as promised", "500000 bytes"]);
    assert!(ran.text().contains(told), "{}", ran.text());
    let plot = dir.text("plot.svg");
    let page = dir.text("page.html");
    let more = ["--no-verify", "--svg", &plot, "--report", &page];
    dir.run(&[&read[..], &more].concat()).succeeded();
    for path in [plot, page] {
        let written = std::fs::read_to_string(path).unwrap();
        assert!(written.contains("reader, under contract") && written.contains("own lateness"));
    }
}

#[test]
fn the_short_scene_lays_with_and_without_contracts_side_by_side() {
    let dir = Scratch::new();
    let mut command = dir.command(&["rwrt", "--scene", "abiss-reading", "--total", "500kB"]);
    let output = command.arg("--json").env("TMPDIR", dir.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(output.status.success(), json["ok"] == true, "{said}");
    let runs = json["runs"].as_array().unwrap();
    assert_eq!(
        (runs.len(), &runs[0]["kind"], &runs[1]["kind"]),
        (2, &Value::from("contract"), &Value::from("best_effort"))
    );
    for run in runs {
        assert_eq!(run["streams"][0]["checked"]["right_bytes"], 500_000);
        let greedy = run["greedy"].as_array().unwrap();
        assert_eq!(greedy.len(), 8);
        assert!(greedy.iter().all(|greedy| greedy["checked"]["wrong_bytes"] == 0));
    }
    assert_eq!(runs[0]["streams"][0]["contract"]["underruns"], 0, "{}", runs[0]);
}
