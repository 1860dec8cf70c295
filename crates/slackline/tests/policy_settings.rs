//! The policy of a pool and its settings: read and changed on the running daemon, and followed
//! again after `kill -9`.

use crate::support::Scratch;
use serde_json::Value;

/// Of the policy that is followed: its name, whether the pool keeps it, and one setting.
fn shown(dir: &Scratch, setting: &str) -> (String, bool, Option<u64>) {
    let state = dir.run(&["pool", "settings", "--json"]).succeeded().json();
    let settings = state["settings"].as_array().unwrap();
    let value = settings.iter().find(|one| one["name"] == setting).map(|one| &one["value"]);
    let policy = state["policy"].as_str().unwrap().to_owned();
    (policy, state["kept"].as_bool().unwrap(), value.and_then(Value::as_u64))
}

/// An administrator tries a policy with settings of his, and the machine is switched off.
#[test]
fn a_policy_and_its_settings_are_kept_with_the_pool_and_a_flag_goes_before_them() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    assert_eq!(shown(&dir, "burst"), ("slack".into(), false, Some(200_000_000)));
    let cfq = ["pool", "set", "--policy", "cfq", "--setting", "slice=20ms"];
    let set = dir.run(&cfq).succeeded().text().to_owned();
    assert!(set.contains("policy cfq, slice 20 ms"), "{set}");
    assert_eq!(shown(&dir, "slice"), ("cfq".into(), true, Some(20_000_000)));
    // Another setting of the same policy leaves the first one.
    dir.run(&["pool", "set", "--setting", "idle=1ms"]).succeeded();
    assert_eq!(shown(&dir, "slice"), ("cfq".into(), true, Some(20_000_000)));
    let range = [
        "the setting slice is a time with its unit (20ms, 4s), from 1 ms to 10 s",
        "pool settings",
    ];
    dir.run(&["pool", "set", "--setting", "slice=11s"]).failed(1, &range);
    assert_eq!(dir.run(&["pool", "set", "--setting", "slice"]).code, Some(2));
    dir.run(&["pool", "set", "--setting", "cycle=1s"]).failed(1, &["no such setting", "slice"]);
    daemon.kill();

    let daemon = dir.serve(&disks);
    assert_eq!(shown(&dir, "slice"), ("cfq".into(), true, Some(20_000_000)));
    assert_eq!(shown(&dir, "idle").2, Some(1_000_000));
    daemon.kill();

    // A configuration file does not change what was chosen; a flag does, for as long as it is
    // given, and the pool goes on keeping what it has.
    let config = dir.path("c.toml");
    let text = "policy = 'drr'\npolicy_settings = { quantum = '30ms' }\n";
    std::fs::write(&config, text).unwrap();
    let config = ["--config", config.to_str().unwrap()];
    let daemon = dir.try_serve(&disks, &config).unwrap_or_else(|ran| panic!("{}", ran.err));
    assert_eq!(shown(&dir, "slice"), ("cfq".into(), true, Some(20_000_000)));
    daemon.kill();
    let flags = ["--policy", "gss", "--policy-setting", "group=7"];
    let daemon = dir.try_serve(&disks, &flags).unwrap_or_else(|ran| panic!("{}", ran.err));
    assert_eq!(shown(&dir, "group"), ("gss".into(), false, Some(7)));
    daemon.kill();
    let daemon = dir.serve(&disks);
    assert_eq!(shown(&dir, "slice"), ("cfq".into(), true, Some(20_000_000)));

    // Forgotten: the next start goes by the configuration.
    let set = dir.run(&["pool", "set", "--policy", "edl", "--until-stop"]).succeeded();
    assert!(set.text().contains("until the daemon stops"), "{}", set.text());
    assert_eq!(shown(&dir, "slice"), ("edl".into(), false, None));
    daemon.kill();
    let _daemon = dir.try_serve(&disks, &config).unwrap_or_else(|ran| panic!("{}", ran.err));
    assert_eq!(shown(&dir, "quantum"), ("drr".into(), false, Some(30_000_000)));
}

/// The buses of a pool that is served: kept with the disks, and shown.
#[test]
fn a_bus_is_said_of_the_served_pool_and_kept_in_the_profiles_of_its_disks() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let daemon = dir.serve(&disks);
    let bus = ["pool", "set", "--bus", "scsi0,rate=40MB/s,disks=0+1"];
    let said = dir.run(&bus).succeeded().text().to_owned();
    assert!(said.contains("disk 0   shares the bus scsi0 (40 MB/s) with 1 other disk"), "{said}");
    let wrong = ["pool", "set", "--bus", "scsi0,rate=40MB/s,disks=0+7"];
    dir.run(&wrong).failed(1, &["disk 7"]);
    dir.run(&["pool", "set", "--bus", "scsi0,disks=0+1"]).failed(1, &["rate is missing"]);
    assert_eq!(dir.run(&["pool", "set"]).code, Some(2));
    daemon.kill();
    let _daemon = dir.serve(&disks);
    let status = dir.run(&["pool", "status", "--json"]).succeeded().json();
    for disk in [0, 1] {
        assert_eq!(status["disks"][disk]["bus"]["name"], "scsi0");
    }
    let off = dir.run(&["pool", "set", "--no-bus", "0+1"]).succeeded().text().to_owned();
    assert!(off.contains("disk 1   shares no bus"), "{off}");
    let status = dir.run(&["pool", "status", "--json"]).succeeded().json();
    assert!(status["disks"][0]["bus"].is_null(), "{status}");
}
