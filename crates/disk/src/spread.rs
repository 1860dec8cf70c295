//! What commands mostly cost, beside the bound: for contracts that may be late now and then.
//!
//! In a profile's text they stand below `[measured.costs]`, which readers that do not know of
//! them let through.
//!
//! Invariants: sizes rise; no mean or deviation is above `most`.

use crate::error::ensure;
use crate::text::{Text, check};
use crate::{Error, Line};
use alloc::format;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use units::{Bytes, Direction, Duration};

/// How many sizes there may be of one direction: a profile is to fit into a pool's label.
const SIZES_MAX: usize = 6;

/// What was seen of commands by themselves, each from when it was given until it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Reads, the smallest first.
    pub read: Vec<Cost>,
    /// Writes, the smallest first.
    pub write: Vec<Cost>,
}

/// What commands of one size cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Their size.
    pub size: Bytes,
    /// The mean, or more.
    pub mean: Duration,
    /// The standard deviation, or more.
    pub deviation: Duration,
    /// What none took longer than, with a margin.
    pub most: Duration,
}

impl Spread {
    /// What is known of commands of this size: of the next larger one that was looked at.
    pub fn cost(&self, size: Bytes, direction: Direction) -> Option<&Cost> {
        self.of(direction).iter().find(|cost| cost.size >= size)
    }

    fn of(&self, direction: Direction) -> &[Cost] {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    /// Of a device that now and then does nothing for up to `stall`, after `every` bytes that
    /// were written: its commands cost `line` and up to `latency`, and once in so many `stall`.
    pub(crate) fn of_stalls(
        lines: [Line; 2],
        latency: Duration,
        (every, stall): (Bytes, Duration),
    ) -> Self {
        let of = |line: Line| {
            let cost = |size: Bytes| {
                let plain = line.cost(size).saturating_add(latency);
                // As if it were written to at its full rate meanwhile.
                let often = (every / size).max(1);
                let deviation = stall / often.isqrt().max(1) + latency;
                let mean = plain + stall / often;
                Cost { size, mean, deviation, most: (plain + stall).max(deviation) }
            };
            [Bytes::kib(4), Bytes::kib(64), Bytes::kib(256), Bytes::MIB].map(cost).to_vec()
        };
        let [read, write] = lines.map(of);
        Self { read, write }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        for (name, costs) in [("read", &self.read), ("write", &self.write)] {
            let name = format!("measured.costs.{name}");
            ensure!(
                !costs.is_empty() && costs.len() <= SIZES_MAX,
                "{name} has {} sizes; give 1 to {SIZES_MAX}",
                costs.len()
            );
            ensure!(
                costs.is_sorted_by(|one, other| one.size < other.size),
                "{name}: give each size once, the smallest first"
            );
            for cost in costs {
                check(&name, &cost.size)?;
                check(&name, &cost.most)?;
                ensure!(
                    !cost.mean.is_zero() && cost.mean.max(cost.deviation) <= cost.most,
                    "{name}: of {} mean or deviation is above most, or the mean is 0",
                    cost.size
                );
            }
        }
        Ok(())
    }
}

/// `[measured]`, of which the rest is for people.
#[derive(Serialize, Deserialize, Default)]
pub(crate) struct MeasuredFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<SpreadFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpreadFile {
    read: Vec<CostFile>,
    write: Vec<CostFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostFile {
    size: Text<Bytes>,
    mean: Text<Duration>,
    deviation: Text<Duration>,
    most: Text<Duration>,
}

impl SpreadFile {
    pub fn spread(self) -> Spread {
        let costs = |costs: Vec<CostFile>| {
            let cost = |cost: CostFile| Cost {
                size: cost.size.0,
                mean: cost.mean.0,
                deviation: cost.deviation.0,
                most: cost.most.0,
            };
            costs.into_iter().map(cost).collect()
        };
        Spread { read: costs(self.read), write: costs(self.write) }
    }

    pub fn of(spread: &Spread) -> Self {
        let costs = |costs: &[Cost]| {
            let cost = |cost: &Cost| CostFile {
                size: Text(cost.size),
                mean: Text(cost.mean),
                deviation: Text(cost.deviation),
                most: Text(cost.most),
            };
            costs.iter().map(cost).collect()
        };
        Self { read: costs(&spread.read), write: costs(&spread.write) }
    }
}
