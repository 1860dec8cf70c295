//! The examples, as a person would build and run them: each records a real video under
//! contract and plays it back.

use crate::installed::{built, compile, prefix, root, run};
use crate::python::python;
use crate::shim::{frames, make_film};
use crate::support::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer is no example any more.
const LINES_MAX: usize = 30;

fn example(extension: &str) -> PathBuf {
    let source = root().join("examples/record_and_play").with_extension(extension);
    let lines = std::fs::read_to_string(&source).unwrap().lines().count();
    assert!(lines <= LINES_MAX, "{}: {lines} lines", source.display());
    source
}

/// Runs an example on a video of its own, twice: the second time it records anew.
fn records_and_plays(dir: &Scratch, program: impl Fn() -> Command) {
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let (video, played) = (dir.text("film.mkv"), dir.text("played.mkv"));
    make_film(Path::new(&video));
    for _ in 0..2 {
        let mut program = program();
        program.env("SLACKLINE_SOCKET", dir.path("s.sock"));
        run(program.args([&video, "film", &played]));
        assert!(std::fs::read(&video).unwrap() == std::fs::read(&played).unwrap());
    }
    let wanted = frames(&mut Command::new("ffmpeg"), &video);
    assert_eq!(wanted, frames(&mut Command::new("ffmpeg"), &played), "frame for frame");
    assert_eq!(wanted.lines().filter(|line| line.starts_with("0,")).count(), 75);
}

#[test]
fn the_example_in_rust_records_and_plays_a_video() {
    example("rs");
    prefix(); // builds the examples as well
    records_and_plays(&Scratch::new(), || Command::new(built().join("examples/record_and_play")));
}

#[test]
fn the_example_in_c_records_and_plays_a_video() {
    let dir = Scratch::new();
    let program = compile(&example("c"), &dir.path(""));
    records_and_plays(&dir, || Command::new(&program));
}

#[test]
fn the_example_in_python_records_and_plays_a_video() {
    let source = example("py");
    records_and_plays(&Scratch::new(), || {
        let mut python = python();
        python.arg(&source);
        python
    });
}
