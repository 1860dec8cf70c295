//! A short demo from end to end: a daemon in its own process, a video through
//! ffmpeg, both policies, every byte proved. Nothing here depends on how fast the
//! machine is: lateness is reported, not asserted.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder that goes with the test, on the disk that it was built on.
fn folder() -> TempDir {
    tempfile::Builder::new().prefix("slackline-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn demo(arguments: &[&str], folder: &Path) -> Output {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_slackline"));
    demo.arg("demo").args(arguments).env("TMPDIR", folder).output().unwrap()
}

#[test]
fn a_short_demo_proves_every_byte_and_tells_both_policies() {
    let folder = folder();
    let svg = folder.path().join("demo.svg");
    let arguments = ["--seconds", "2", "--json", "--svg", svg.to_str().unwrap()];
    let output = demo(&arguments, folder.path());
    let said = String::from_utf8_lossy(&output.stderr);
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}; the demo said: {said}"));

    assert_eq!(output.status.success(), json["ok"] == true, "the status says what the JSON says");
    for name in ["slack", "fcfs"] {
        let policy = &json["policies"][name];
        assert_eq!(policy["wrong"], Value::Array(vec![]), "{name}");
        // Each reader has read its first piece, and so has each writer written.
        assert!(policy["bytes_verified"].as_u64().unwrap() >= 6 * 65_536, "{name}: {policy}");
        assert_eq!(policy["video_frames_verified"], 50, "{name}: two seconds of video");
        for quantile in ["p50", "p99", "p999", "max"] {
            assert!(policy["latency_us"][quantile].is_u64(), "{name}: {policy}");
        }
        assert!(policy["late_requests"].is_u64() && policy["host_lateness_us_max"].is_u64());
        assert!(policy["best_effort_mb_s"].is_f64());
    }
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    std::fs::remove_file(svg).unwrap();
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.is_empty(), "the demo cleans up after itself: {left:?}");
}

#[test]
fn without_ffmpeg_the_demo_says_how_to_get_it() {
    let folder = folder();
    let mut demo = Command::new(env!("CARGO_BIN_EXE_slackline"));
    let output = demo.arg("demo").env("PATH", folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("ffmpeg is not on the path"), "{said}");
    assert!(said.contains("apt-get install"), "{said}");
}
