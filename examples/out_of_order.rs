//! Writes frames under contract, and goes back to write one of them anew by the same stream. Then
//! plays them out of order and overwrites each, within the burst: what lies there is in memory.
//! usage: out_of_order VOLUME
use client::units::{Bytes, Rate};
use client::{Contract, File};
use std::io::Write;

const FRAME: u64 = 16 << 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let volume = std::env::args().nth(1).ok_or("usage: out_of_order VOLUME")?;
    let terms = Contract::at(Rate::per_second(1_000_000)).burst(Bytes::new(4 * FRAME));
    let mut out =
        File::options().truncate(true).create(Bytes::mib(4)).contract(terms).open(&volume)?;
    (0..32).try_for_each(|frame| out.write_all(&[frame; FRAME as usize]))?;
    out.set_playout(Bytes::new(8 * FRAME))?; // by now all of them are on the medium
    out.write_all(&[88; FRAME as usize])?;
    out.close()?;

    let mut film = File::options().update(true).contract(terms).open(&volume)?;
    for number in 0..32 {
        film.set_playout(Bytes::new(number / 4 * 4 * FRAME))?;
        let (place, mut frame) =
            (Bytes::new((number / 4 * 4 + (number + 3) % 4) * FRAME), [0; FRAME as usize]);
        film.read_at(place, &mut frame)?;
        writeln!(std::io::stdout(), "{}", frame[0])?;
        film.write_at(place, &[frame[0] + 100; FRAME as usize])?;
    }
    Ok(film.close()?)
}
