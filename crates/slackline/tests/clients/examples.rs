//! The examples, as a person would build and run them: each records a real video under
//! contract and plays it back; or writes frames, goes back to one, and plays them out of order.

use crate::installed::{built, compile, prefix, root, run};
use crate::python::python;
use crate::shim::{frames, make_film};
use crate::support::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer is no example any more.
const LINES_MAX: usize = 40;
/// Of the short one, with its words.
const LINES_SHORT_MAX: usize = 36;

fn example(extension: &str) -> PathBuf {
    named("record_and_play", extension)
}

fn named(name: &str, extension: &str) -> PathBuf {
    let source = root().join("examples").join(name).with_extension(extension);
    let lines = std::fs::read_to_string(&source).unwrap().lines().count();
    let most = if name == "out_of_order" { LINES_SHORT_MAX } else { LINES_MAX };
    assert!(lines <= most, "{}: {lines} lines", source.display());
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

#[test]
fn the_examples_play_out_of_order_and_write_one_frame_anew() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    prefix();
    named("out_of_order", "rs");
    let mut python = python();
    python.arg(named("out_of_order", "py"));
    let programs = [
        ("rs", Command::new(built().join("examples/out_of_order"))),
        ("c", Command::new(compile(&named("out_of_order", "c"), &dir.path("")))),
        ("py", python),
    ];
    for (language, mut program) in programs {
        program.env("SLACKLINE_SOCKET", dir.path("s.sock"));
        let said = run(program.arg(language));
        let frames: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        let wanted = (0..32).map(|i| i / 4 * 4 + [3, 0, 1, 2][i as usize % 4]);
        let wanted = wanted.map(|frame| if frame == 8 { 88 } else { frame });
        assert_eq!(frames, wanted.collect::<Vec<u64>>(), "{language}");
        // Each frame was overwritten as it was played.
        let mut film = vec![0; 32 << 14];
        let mut options = client::File::options();
        let mut file = options.socket(dir.path("s.sock")).open(language).unwrap();
        std::io::Read::read_exact(&mut file, &mut film).unwrap();
        for (number, frame) in (0u8..).zip(film.chunks(1 << 14)) {
            let was = if number == 8 { 88 } else { number };
            assert!(frame.iter().all(|&byte| byte == was + 100), "{language}: frame {number}");
        }
    }
}
