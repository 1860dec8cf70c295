//! Checks of the house itself: `cargo run -q -p xtask -- tidy`.
//!
//! What a compiler does not refuse and a reader would have to remember is
//! checked here: the arrows of ARCHITECTURE.md, the purity of the pure crates,
//! the opening paragraph of every file, licences, links. Every rule is a
//! function from text to findings, so that its test can plant a violation.
#![allow(clippy::print_stdout)] // this program's whole output is its findings

mod arrows;
mod finding;
mod lexer;
mod licences;
mod links;
mod locks;
mod places;
mod purity;
mod source;
mod tidy;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match std::env::args().nth(1).as_deref() {
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
        _ => {
            eprintln!("usage: cargo run -q -p xtask -- tidy");
            ExitCode::from(2)
        }
    }
}
