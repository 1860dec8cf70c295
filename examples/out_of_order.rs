//! Writes frames under contract, goes back and writes one of them anew by the same stream,
//! and plays them out of order: what lies within the burst is in memory.
//! usage: out_of_order VOLUME
use client::units::{Bytes, Rate};
use client::{Contract, File};
use std::io::Write;

const FRAME: u64 = 16 << 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let volume = std::env::args().nth(1).ok_or("usage: out_of_order VOLUME")?;
    let contract = Contract::at(Rate::per_second(1_000_000)).burst(Bytes::new(4 * FRAME));
    let mut record = File::options();
    record.write(true).truncate(true).create(Bytes::mib(4)).contract(contract);
    let mut out = record.open(&volume)?;
    (0..32).try_for_each(|frame| out.write_all(&[frame; FRAME as usize]))?;
    out.set_playout(Bytes::new(8 * FRAME))?; // by now all of them are on the medium
    out.write_all(&[88; FRAME as usize])?;
    out.close()?;

    let mut film = File::options().contract(contract).open(&volume)?;
    for group in 0..8 {
        for next in [3, 0, 1, 2] {
            let mut frame = [0; FRAME as usize];
            film.read_at(Bytes::new((group * 4 + next) * FRAME), &mut frame)?;
            writeln!(std::io::stdout(), "{}", frame[0])?;
        }
        film.set_playout(Bytes::new((group + 1) * 4 * FRAME))?;
    }
    Ok(())
}
