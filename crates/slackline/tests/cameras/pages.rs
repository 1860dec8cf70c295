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

/// The table of docs/cameras.md: the part of the disk's time is the plan's, the room that of `--check`.
#[test]
fn ten_cameras_need_the_room_that_the_manual_says() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let page = std::fs::read_to_string(root().join("docs/cameras.md")).unwrap();
    let (_, section) = page.split_once("## How much room").unwrap();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches(['|', ' ']).split(" | ").collect())
        .collect();
    assert_eq!(rows.len(), 4);
    let leading = |cell: &str| cell.split(' ').next().unwrap().parse::<f64>().unwrap();
    for row in rows {
        let rate = row[0].split(" (").next().unwrap().replace(' ', "");
        let plan =
            format!("plan --model hdd-7200-20tb --count 10 --rate {rate} --mode write --json");
        let plan = dir.run(&plan.split(' ').collect::<Vec<_>>()).json();
        let now =
            plan["modes"].as_array().unwrap().iter().find(|mode| mode["now"] == true).unwrap();
        assert_eq!(now["admitted"], 10, "{row:?}");
        let promised = now["utilisation_ppm"].as_f64().unwrap() / 1e4;
        assert!((promised - leading(row[1])).abs() < 0.011, "{row:?}: {promised}");
        for (cell, keep) in row[2..].iter().zip(["2d", "14d", "30d"]) {
            let cameras =
                (0..10).map(|n| format!("[[camera]]\nname = 'c{n}'\ncommand = ['true']\n"));
            let defaults = format!("[defaults]\nrate = '{rate}'\nkeep = '{keep}'\n");
            let file = dir.text("room.toml");
            std::fs::write(&file, defaults + &cameras.collect::<String>()).unwrap();
            let needed = dir.run(&["cameras", &file, "--check", "--json"]).json();
            let terabytes = needed["needed_bytes"].as_f64().unwrap() / 1e12;
            assert!((terabytes / leading(cell) - 1.0).abs() < 0.006, "{row:?}: {terabytes}");
        }
    }
}
