//! The pages of examples/, as people copy them: what they say to run is run.
//!
//! Plans and scenarios run as they stand, the scenarios for a moment. Lines that need a device, a
//! daemon or another program have to be lines that the command takes.

use crate::support::{Ran, Scratch};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The arguments of all lines of the command in the page's blocks of shell.
fn lines(page: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(root().join("examples").join(page)).unwrap();
    let mut all = Vec::new();
    for block in text.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let parts = block.lines().map(|line| line.split(" #").next().unwrap());
        for part in parts.flat_map(|line| line.split(" | ").map(str::trim).collect::<Vec<_>>()) {
            if let Some(arguments) = part.strip_prefix("slackline ") {
                all.push(arguments.split_whitespace().map(String::from).collect());
            }
        }
    }
    all
}

fn run(arguments: &[String], more: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slackline"));
    command.args(arguments).args(more).current_dir(root());
    Ran::from(command.output().unwrap())
}

#[test]
fn what_the_pages_of_examples_say_to_run_runs() {
    let mut ran = [0; 3];
    for page in ["cameras.md", "instrument.md", "playout.md", "database.md"] {
        for line in lines(page) {
            match &*line[0] {
                "plan" => {
                    let plan = run(&line, &[]).succeeded();
                    assert!(plan.text().contains("it fits"), "{page}: {}", plan.text());
                    ran[0] += 1;
                }
                "simulate" => {
                    let short = ["--duration", "1s", "--warm-up", "100ms", "--runs", "1"];
                    let text = run(&line, &short).succeeded();
                    assert!(text.text().contains("under contract"), "{page}: {}", text.text());
                    ran[1] += 1;
                }
                // What is not known is told before help is given.
                _ => {
                    let help = run(&line, &["--help"]).succeeded();
                    assert!(help.text().contains("Usage: slackline"), "{page}: {line:?}");
                    ran[2] += 1;
                }
            }
        }
    }
    assert_eq!(ran, [4, 6, 15], "plans, scenarios, others");
}

/// With smaller volumes, which a test's pool has room for.
#[test]
fn the_cameras_of_the_example_all_fit() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a", "b"]));
    let text = std::fs::read_to_string(root().join("examples/recorder.toml")).unwrap();
    let file = dir.text("recorder.toml");
    std::fs::write(&file, text.replace("keep =", "size = '48MiB'\nkeep =")).unwrap();
    let checked = dir.run(&["cameras", &file, "--check"]);
    assert!(checked.text().contains("10 cameras: all fit"), "{}{}", checked.text(), checked.err);
}
