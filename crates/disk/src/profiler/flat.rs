//! Targets without rotation: a cost by size and direction, and how many commands
//! in flight it takes to get all that the device gives.

use super::Timing;
use super::desk::Stop;
use super::findings::{Flat, FlatCost};
use super::session::{Session, nanos, span};
use super::statistics::quantile;
use crate::Line;
use alloc::vec::Vec;
use units::{Access, Bytes, Command, Direction, Duration, Lba, SECTOR};

/// Sizes timed, in KiB.
const SIZES_KIB: [u64; 6] = [4, 16, 64, 256, 512, 1_024];
/// Depths tried.
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// A depth saturates the device when it reaches this part of the best rate.
const SATURATES_PERCENT: i64 = 95;

impl Session {
    fn random_commands(&mut self, count: usize, size: Bytes, direction: Direction) -> Vec<Command> {
        let sectors = size / SECTOR;
        (0..count)
            .map(|_| {
                let lba = Lba::new(self.place(0, self.end - sectors));
                Command::Transfer(Access { lba, len: size, direction })
            })
            .collect()
    }

    /// Time from the first start to the last end of a burst, divided by its commands.
    async fn burst_cost(
        &mut self,
        count: usize,
        size: Bytes,
        direction: Direction,
        depth: u32,
    ) -> Result<(i64, Vec<Timing>), Stop> {
        let commands = self.random_commands(count, size, direction);
        let times = self.burst(commands, depth).await?;
        let start = times.iter().map(|time| time.started).min().expect("a burst has commands");
        let end = times.iter().map(|time| time.finished).max().expect("a burst has commands");
        Ok((nanos(end.saturating_since(start)) / count as i64, times))
    }

    /// How many commands to keep in flight for small reads.
    async fn find_depth(&mut self) -> Result<(u32, Vec<(u32, i64)>), Stop> {
        self.stage("commands in flight", 300);
        let rounds = if self.full() { 9 } else { 5 };
        let size = Bytes::kib(4).round_up(SECTOR * self.grain);
        let mut costs = Vec::new();
        for depth in DEPTHS {
            let mut each = Vec::new();
            for _ in 0..rounds {
                each.push(self.burst_cost(128, size, Direction::Read, depth).await?.0);
            }
            costs.push((depth, quantile(&each, 500).max(1)));
        }
        let best = costs.iter().map(|(_, cost)| *cost).min().expect("depths are tried");
        let depth = costs
            .iter()
            .find(|(_, cost)| *cost * SATURATES_PERCENT <= best * 100)
            .map_or(1, |(depth, _)| *depth);
        Ok((depth, costs))
    }

    async fn flat_cost(&mut self, direction: Direction, depth: u32) -> Result<FlatCost, Stop> {
        let rounds = if self.full() { 24 } else { 12 };
        let mut sizes = Vec::new();
        let mut samples: Vec<(Bytes, Duration)> = Vec::new();
        let mut latency = Duration::ZERO;
        let mut slowest = Vec::new();
        for kib in SIZES_KIB {
            let size = Bytes::kib(kib).round_up(SECTOR * self.grain);
            if size / SECTOR * 4 > self.end {
                continue;
            }
            let (mut each, mut alone) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let count = (8 * depth as usize).clamp(32, 128);
                let (cost, times) = self.burst_cost(count, size, direction, depth).await?;
                each.push(cost);
                slowest.extend(times.iter().map(|time| nanos(time.taken())));
                let commands = self.random_commands(2, size, direction);
                alone.extend(self.burst(commands, 1).await?.iter().map(|t| nanos(t.taken())));
            }
            samples.push((size, span(quantile(&each, 750))));
            sizes.push((size, span(quantile(&each, 500)), span(quantile(&alone, 500))));
            latency = latency.max(span(quantile(&slowest, 990)));
        }
        let line = Line::above(&samples).unwrap_or(Line {
            fixed: Duration::from_millis(1),
            rate: units::Rate::per_second(1_000_000),
        });
        Ok(FlatCost { line, sizes, latency })
    }

    /// Costs at saturation, and the latency there.
    pub async fn find_flat(&mut self) -> Result<Flat, Stop> {
        let (depth, depths) = self.find_depth().await?;
        self.stage("cost of reads", 450);
        let read = self.flat_cost(Direction::Read, depth).await?;
        self.stage("cost of writes", 700);
        let write =
            if self.write { Some(self.flat_cost(Direction::Write, depth).await?) } else { None };
        let depths = depths.into_iter().map(|(depth, cost)| (depth, span(cost))).collect();
        Ok(Flat { depth, depths, read, write })
    }
}
