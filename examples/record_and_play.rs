//! Records a video to a volume under contract and plays it back, without a copy of its
//! own: its bytes are there before they are asked for.
//! usage: record_and_play VIDEO VOLUME PLAYED
use client::units::{Bytes, Rate};
use client::{Contract, File, Peek};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let names: Vec<String> = std::env::args().collect();
    let contract = Contract::at(Rate::per_second(2_000_000));

    let mut video = std::fs::File::open(&names[1])?;
    let mut record = File::options();
    record.write(true).truncate(true).create(Bytes::mib(64)).contract(contract);
    let mut volume = record.open(&names[2])?;
    std::io::copy(&mut video, &mut volume)?;
    volume.close()?; // now it is on the medium

    let mut played = std::fs::File::create(&names[3])?;
    let mut volume = File::options().contract(contract).open(&names[2])?;
    while let Peek::Data(bytes) = volume.peek(1 << 20)? {
        let len = bytes.len();
        played.write_all(bytes)?;
        volume.advance(len)?;
    }
    Ok(())
}
