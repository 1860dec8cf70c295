//! Names every surface; given the name of one and a folder, puts its valid inputs there, and
//! says how long an input may be. `ledger`: what was asked so far, and what is left.
#![allow(clippy::print_stdout)]

use fuzz::{SURFACES, Surface, ledger};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["ledger"] {
        let text = std::fs::read_to_string("docs/fuzzing-ledger.tsv")?;
        print!("{}", ledger::table(&ledger::rows(&text).map_err(std::io::Error::other)?));
        return Ok(());
    }
    let [name, folder] = &arguments[..] else {
        SURFACES.iter().for_each(|surface| println!("{}", surface.name));
        return Ok(());
    };
    let Some(surface) = Surface::named(name) else {
        return Err(std::io::Error::other(format!("there is no surface {name}")));
    };
    for (number, input) in (surface.seeds)().iter().enumerate() {
        std::fs::write(Path::new(folder).join(format!("seed-{number:03}")), input)?;
    }
    println!("{}", surface.len_max);
    Ok(())
}
