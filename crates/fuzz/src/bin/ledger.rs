//! What every surface was asked so far, and what is left, from `docs/fuzzing-ledger.tsv` in the
//! folder that it runs in.
#![allow(clippy::print_stdout)]

use fuzz::ledger;

fn main() -> std::io::Result<()> {
    let text = std::fs::read_to_string("docs/fuzzing-ledger.tsv")?;
    let rows = ledger::rows(&text).map_err(std::io::Error::other)?;
    print!("{}", ledger::table(&rows));
    Ok(())
}
