//! Checks of the house itself: `cargo run -q -p xtask -- tidy`, of its tests:
//! `cargo run -q -p xtask -- mutate CRATE` and `-- planted [FILE...]`, and of its laboratory:
//! `cargo run -q -p xtask -- constants`.
//!
//! What a compiler does not refuse and a reader would have to remember is
//! checked here: the arrows of ARCHITECTURE.md, the purity of the pure crates,
//! the opening paragraph of every file, names, licences, links. Every rule is a
//! function from text to findings, so that its test can plant a violation.
#![allow(clippy::print_stdout)] // this program's whole output is its findings

mod arrows;
mod circles;
mod constants;
mod finding;
mod forgotten;
mod hints;
mod lexer;
mod licences;
mod links;
mod locks;
mod modules;
mod mutate;
mod names;
mod places;
mod plant;
mod planted;
mod purity;
mod scratch;
mod source;
mod tidy;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("tidy") => match tidy::run(&root) {
            Ok(report) => {
                print!("{report}");
                if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
            }
            Err(error) => {
                eprintln!("tidy: {error}");
                ExitCode::FAILURE
            }
        },
        Some("mutate") => ended("mutate", mutate::run(&root, &arguments[1..])),
        Some("planted") => ended("planted", plant::run(&root, &arguments[1..])),
        Some("constants") => {
            ended("constants", constants::run(&root, &arguments[1..]).map(|()| true))
        }
        _ => {
            eprintln!(
                "usage: cargo run -q -p xtask -- tidy | mutate CRATE [ARGUMENTS] | \
                 planted [FILE...] | constants [HOW_MANY [SEED]]"
            );
            ExitCode::from(2)
        }
    }
}

fn ended(what: &str, result: Result<bool, String>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{what}: {error}");
            ExitCode::FAILURE
        }
    }
}
