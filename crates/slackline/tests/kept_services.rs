//! Contracts of volumes after `kill -9`: the daemon says that they are in force, and names the
//! one that does not fit any more, as the offline check does.

use crate::support::Scratch;
use serde_json::Value;

fn volume(dir: &Scratch, name: &str) -> Value {
    dir.run(&["volume", "show", name, "--json"]).succeeded().json()
}

/// Twenty volumes, some under contract, and a stream; the daemon is killed.
#[test]
fn contracts_of_volumes_are_in_force_after_kill_9_and_one_that_does_not_fit_is_named() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    for number in 0..20 {
        let name = format!("v{number}");
        dir.run(&["volume", "create", &name, "--size", "2MiB"]).succeeded();
    }
    let in_time = ["--within", "300ms", "--every", "700ms", "--block", "4KiB"];
    let last = ["--priority", "background"];
    let rate = ["--best-effort-rate", "100kB/s", "--block", "64KiB", "--period", "2s"];
    let set = |name: &str, how: &[&str]| {
        dir.run(&[&["volume", "set", name], how].concat()).succeeded();
    };
    set("v0", &in_time);
    set("v1", &rate);
    set("v2", &last);
    set("v3", &in_time);
    set("v3", &["--priority", "normal"]);
    let opened =
        ["stream", "open", "v9", "--write", "--rate", "100kB/s", "--block", "64KiB", "--json"];
    let stream = dir.run(&opened);
    let before = ["v0", "v1", "v2", "v3"].map(|name| volume(&dir, name));
    assert_eq!(before[0]["service"]["class"], "latency");
    assert!(before[0]["service_user"].is_string(), "{}", before[0]);
    assert!(before[3].get("service_user").is_none(), "{}", before[3]);
    drop(stream);
    daemon.kill();

    // Nothing is wrong, says the check of the pool that nobody serves.
    let sound = dir.run(&["pool", "check", &disks[0], "--json"]).succeeded().json();
    assert_eq!(sound["kept_out"], serde_json::json!([]));
    let daemon = dir.serve(&disks);
    let after = ["v0", "v1", "v2", "v3"].map(|name| volume(&dir, name));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before["service"], after["service"]);
        assert_eq!(before.get("service_user"), after.get("service_user"));
    }
    dir.run(&["pool", "check"]).succeeded();
    daemon.kill();

    // A daemon that is told that its host is later has less time to answer in.
    let late = ["--host-latency", "299ms", "--commit-interval", "5s"];
    let daemon = dir.try_serve(&disks, &late).unwrap_or_else(|ran| panic!("{}", ran.err));
    let named = volume(&dir, "v0");
    assert_eq!(named["kept_out"]["service"], before[0]["service"]);
    assert_eq!(named["service"]["class"], "best_effort");
    assert!(named["kept_out"]["detail"].as_str().unwrap().contains("disk 0"), "{named}");
    assert_eq!(volume(&dir, "v1")["service"], before[1]["service"], "the others have theirs");
    let refused = dir.run(&["pool", "check"]);
    refused.failed(3, &["v0"]);
    let status = dir.run(&["pool", "status"]).succeeded();
    assert!(status.text().contains("warning  the contract of volume \"v0\""), "{}", status.text());
    for words in [["volume", "show", "v0"].as_slice(), &["volume", "list"]] {
        let shown = dir.run(words).succeeded();
        assert!(shown.text().contains("does not fit any more"), "{}", shown.text());
    }
    // Best effort, said by somebody, is the end of it.
    set("v0", &["--priority", "normal"]);
    dir.run(&["pool", "check"]).succeeded();
    daemon.signal("TERM");
    let (code, said) = daemon.wait();
    assert_eq!(code, Some(0));
    assert!(said.contains("warning: the contract of volume \"v0\" does not fit"), "{said}");
}
