//! Contracts and placements as arguments.

use crate::failure::Failure;
use client::Client;
use client::control::{Contract, Mode, Placement, Zone};
use store::RUN_MAX;
use units::{Bytes, Rate};

/// A contract.
#[derive(clap::Args, Clone, Copy)]
pub struct ContractArgs {
    /// Bytes per second to keep, for example 1MB/s
    #[arg(long, short, value_name = "RATE")]
    pub rate: Rate,
    /// What the stream transfers at a time: a power of two from 4KiB to 32MiB [default: what
    /// suits the rate, and a volume's disks]
    #[arg(long, short, value_name = "SIZE")]
    pub block: Option<Bytes>,
    /// How far the program may run past its playout point at once [default: one block]
    #[arg(long, value_name = "SIZE")]
    pub burst: Option<Bytes>,
    /// Each request of the stream may be late with this probability, at most 0.1, for example
    /// 1e-6 (once in a million)
    ///
    /// Admission then counts with what the disk's commands were seen to cost when the pool was
    /// made, and not with the longest alone: much more fits on a device that is seldom slow. Of
    /// files and devices without seeks; blocks have up to 1 MiB. Nobody else's contract is late
    /// for it. `slackline pool status` says where more are late than was said.
    #[arg(long, value_name = "ODDS", value_parser = odds)]
    pub miss: Option<Odds>,
}

/// Parts of a billion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Odds(pub u64);

/// As people write a small probability: 1e-6, 0.001, 1/1000.
fn odds(text: &str) -> Result<Odds, String> {
    let wrong = || format!("{text:?} is no probability from 1e-9 to 0.1: write 1e-6, or 1/1000000");
    let odds = match text.split_once('/') {
        Some(("1", times)) => 1.0 / times.trim().parse::<f64>().map_err(|_| wrong())?,
        _ => text.trim().parse::<f64>().map_err(|_| wrong())?,
    };
    let parts = (odds * 1e9 + 1e-6).floor();
    if (1.0..=1e8).contains(&parts) { Ok(Odds(parts as u64)) } else { Err(wrong()) }
}

impl ContractArgs {
    /// As the daemon takes it, for a stream on this volume. Where no block is named, the
    /// daemon chooses one.
    pub fn on(&self, client: &Client, volume: &str, mode: Mode) -> Result<Contract, Failure> {
        let block = match (self.block, self.miss) {
            (Some(block), _) => block,
            // Where requests may be late a block is one command.
            (None, Some(_)) => client.block_for(volume, mode, self.rate)?.min(Bytes::MIB),
            (None, None) => client.block_for(volume, mode, self.rate)?,
        };
        Ok(self.in_blocks(block))
    }

    /// The client whose streams have these odds.
    pub fn client(&self, client: &Client) -> Client {
        self.miss.map_or_else(|| client.clone(), |Odds(parts)| client.at_odds(parts))
    }

    /// The same for a file outside the pool. Where no block is named, it is one that suits
    /// the rate.
    pub fn on_file(&self) -> Contract {
        let chosen = client::Contract::at(self.rate).terms().block_bytes;
        self.in_blocks(self.block.unwrap_or(chosen))
    }

    fn in_blocks(&self, block: Bytes) -> Contract {
        Contract {
            rate_bytes_per_second: self.rate,
            block_bytes: block,
            burst_bytes: self.burst.unwrap_or(block),
        }
    }
}

/// A contract in words.
pub fn words(contract: &Contract) -> String {
    format!("{} in blocks of {}", contract.rate_bytes_per_second, contract.block_bytes)
}

/// Where a volume's extents go.
#[derive(clap::Args, Clone)]
pub struct PlacementArgs {
    /// Disks to rotate over, in this order, for example 0,2 [default: all]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub disks: Vec<u16>,
    /// Which part of each disk; on a hard disk the outer tracks are the faster ones
    #[arg(long, value_enum, default_value_t = ZoneArg::Any)]
    pub zone: ZoneArg,
    /// What lies on one disk before the next disk's turn comes, and in one piece where there is
    /// room: a power of two from 1MiB to 16MiB; a block on several disks is no longer
    /// [default: what suits the disks, up to 4MiB; of a plan, the block, 1MiB at least]
    #[arg(long, value_name = "SIZE")]
    pub run: Option<Bytes>,
    /// Take space when it is written, and reserve nothing: the size is a limit, and a write may find
    /// the disk full. Writers of the same rate on one disk are then written together, so that far more
    /// of them fit in little memory
    #[arg(long, conflicts_with = "run")]
    pub thin: bool,
}

/// A part of a disk.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum ZoneArg {
    /// The first free place
    Any,
    /// The outer half only
    Outer,
    /// The inner half only
    Inner,
}

impl From<ZoneArg> for Zone {
    fn from(zone: ZoneArg) -> Self {
        match zone {
            ZoneArg::Any => Self::Any,
            ZoneArg::Outer => Self::Outer,
            ZoneArg::Inner => Self::Inner,
        }
    }
}

impl PlacementArgs {
    /// As the daemon takes it.
    pub fn placement(&self) -> Placement {
        let run_bytes = if self.thin { Bytes::MIB } else { self.run.unwrap_or_default() };
        let (disks, zone) = (self.disks.clone(), self.zone.into());
        Placement { disks, zone, run_bytes, thin: self.thin }
    }

    /// The same of a plan for blocks of this size.
    pub fn planned(&self, block: Bytes) -> Placement {
        let placement = self.placement();
        match self.thin {
            true => placement,
            false => Placement { run_bytes: planned_run(self.run, block), ..placement },
        }
    }
}

/// Where a volume goes that is made where nobody says more.
pub fn thin_placement(thin: bool) -> Placement {
    let run_bytes = if thin { Bytes::MIB } else { Bytes::ZERO };
    Placement { thin, run_bytes, ..Placement::default() }
}

/// The run of a volume that is planned for blocks of this size.
pub fn planned_run(run: Option<Bytes>, block: Bytes) -> Bytes {
    run.unwrap_or(block.clamp(Bytes::MIB, RUN_MAX))
}

/// A placement in words.
pub fn placement_words(placement: &Placement) -> String {
    let disks = match placement.disks.as_slice() {
        [] => "all disks".into(),
        [one] => format!("disk {one}"),
        all => {
            let all: Vec<_> = all.iter().map(ToString::to_string).collect();
            format!("disks {}", all.join(", "))
        }
    };
    let place = match placement.zone {
        Zone::Any => disks,
        Zone::Outer => format!("{disks}, outer half"),
        Zone::Inner => format!("{disks}, inner half"),
    };
    let place = match placement.run_bytes {
        run if run > Bytes::MIB => format!("{place}, in runs of {run}"),
        _ => place,
    };
    if placement.thin { format!("{place}, thin") } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_read_as_people_write_them() {
        for (text, parts) in
            [("1e-6", 1_000), ("0.001", 1_000_000), ("1/1000000000", 1), ("0.1", 100_000_000)]
        {
            assert_eq!(odds(text), Ok(Odds(parts)), "{text}");
        }
        for text in ["0", "1e-10", "0.2", "-1", "nan", "1/0", "2/5", "once", "inf", ""] {
            assert!(odds(text).unwrap_err().contains("1e-6"), "{text}");
        }
    }
}
