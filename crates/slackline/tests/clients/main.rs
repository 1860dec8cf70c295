//! The libraries for Rust, C and Python against a real daemon: the same behaviours in
//! each language.

mod aio;
mod behaviours;
mod examples;
mod fresh;
mod installed;
mod outside;
mod python;
mod rust;
mod shim;
mod shim_calls;
mod shim_names;
mod signals;
#[path = "../support/mod.rs"]
mod support;
mod surface;
mod truncating;

use behaviours::{ALL, Behaviour};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use support::Scratch;

/// Runs every behaviour; `answer` gives a driver's line for each step of one.
fn behave(mut answer: impl FnMut(&Behaviour) -> Vec<String>) {
    for behaviour in ALL {
        let answers = answer(behaviour);
        for ((step, wanted), got) in behaviour.steps.iter().zip(&answers) {
            let right = match wanted.strip_prefix('~') {
                Some(part) => got.contains(part),
                None => got == wanted,
            };
            assert!(right, "{}: {step}: {got:?}, not {wanted:?} in {answers:#?}", behaviour.name);
        }
        assert_eq!(answers.len(), behaviour.steps.len(), "{}: it broke off", behaviour.name);
    }
}

/// The answers of a program that takes steps on its standard input.
fn ask(command: &mut Command, behaviour: &Behaviour) -> Vec<String> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut steps = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut given = Vec::new();
    for (step, _) in behaviour.steps {
        // A driver that died is told by the answer that does not come.
        let _ = writeln!(steps, "{step}");
        match answers.next() {
            Some(answer) => given.push(answer.unwrap()),
            None => break,
        }
    }
    drop(steps);
    let status = child.wait().unwrap();
    assert!(status.success(), "{}: the driver ended with {status}", behaviour.name);
    given
}

fn driver(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

#[test]
fn rust_behaves() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let socket = dir.path("s.sock");
    behave(|behaviour| {
        let mut driver = rust::Driver::new(&socket);
        behaviour.steps.iter().map(|(step, _)| driver.step(step)).collect()
    });
}

#[test]
fn c_behaves() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let program = installed::compile(&driver("driver.c"), &dir.path(""));
    behave(|behaviour| ask(Command::new(&program).arg(dir.path("s.sock")), behaviour));
}

#[test]
fn python_behaves() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let (script, socket) = (driver("driver.py"), dir.path("s.sock"));
    behave(|behaviour| ask(python::python().arg(&script).arg(&socket), behaviour));
}
