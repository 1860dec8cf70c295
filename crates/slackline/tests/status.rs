//! What `slackline status` says of a daemon, on one screen.

use crate::support::Scratch;
use std::io::Write;

/// One contract of a volume and one recording; then the pool's policy keeps nothing any more.
#[test]
fn the_screen_says_whether_contracts_are_kept_and_what_to_do_where_they_are_not() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    // By the pool's own clock nothing is late; a busy machine may be.
    let daemon = dir.try_serve(&disks, &["--no-admission"]);
    let daemon = daemon.unwrap_or_else(|ran| panic!("{}", ran.err));
    let ran = dir.run(&["status"]).succeeded();
    let shown = ran.text();
    assert!(shown.contains("no streams are open"), "{shown}");
    let json = |args: &[&str]| dir.run(args).succeeded().json();
    let before = json(&["status", "--json"])["findings"].as_array().unwrap().len();

    let mut recording = dir.command(&["record", "cam", "--create", "8MiB", "--rate", "1MB/s"]);
    let mut recording = recording.spawn().unwrap();
    let mut camera = recording.stdin.take().unwrap();
    camera.write_all(&[7; 600_000]).unwrap();
    let status = loop {
        let status = json(&["status", "--json"]);
        if status["status"]["streams"][0]["attached"] == true {
            break status;
        }
    };
    let found: Vec<&str> = status["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["what"].as_str().unwrap())
        .collect();
    assert_eq!(status["sound"], false, "{found:?}");
    assert!(found.len() > before && found[0].contains("no contract is a promise"), "{found:?}");
    assert!(found.iter().any(|what| what.contains("volume cam is full in")), "{found:?}");
    let ran = dir.run(&["status"]).succeeded();
    let shown = ran.text();
    assert!(shown.contains("BROKEN: no contract is a promise"), "{shown}");
    assert!(shown.contains("next: ") && shown.contains("1 MB/s, no promise"), "{shown}");
    drop(camera);
    let code = recording.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 4)), "{code:?}");
    daemon.kill();
}
