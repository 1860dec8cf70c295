//! Targets without rotation: a cost by size and direction, and how many commands
//! in flight it takes to get all that the device gives.

use super::desk::Stop;
use super::findings::{Flat, FlatCost, Steady};
use super::question::Timing;
use super::session::{Session, nanos, span};
use super::statistics::quantile;
use crate::Line;
use alloc::vec::Vec;
use units::{Access, Bytes, Command, Direction, Duration, Lba, Rate, SECTOR};

/// Sizes timed, in KiB.
const SIZES_KIB: [u64; 6] = [4, 16, 64, 256, 512, 1_024];
/// Depths tried.
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// A depth saturates the device when it reaches this part of the best rate.
const SATURATES_PERCENT: i64 = 95;

/// Writes without a break: how much, in commands of which size, asked for how many at
/// once. A quarter of a gigabyte is what the small caches of flash devices take in.
const STEADY_QUICK: Bytes = Bytes::mib(512);
const STEADY_FULL: Bytes = Bytes::mib(16 * 1_024);
const STEADY_COMMAND: Bytes = Bytes::MIB;
const STEADY_PIECE: Bytes = Bytes::mib(8);
const EIGHTHS: u64 = 8;

/// Time from the first start to the last end, divided by the commands.
fn cost_of_each(times: &[Timing]) -> i64 {
    let start = times.iter().map(|time| time.started).min().expect("a burst has commands");
    let end = times.iter().map(|time| time.finished).max().expect("a burst has commands");
    nanos(end.saturating_since(start)) / times.len() as i64
}

/// The fewest in flight that reach about the best rate.
pub(super) fn saturating(costs: &[(u32, i64)]) -> u32 {
    let best = costs.iter().map(|(_, cost)| *cost).min().expect("depths are tried");
    let fewest = costs.iter().find(|(_, cost)| *cost * SATURATES_PERCENT <= best * 100);
    fewest.map_or(1, |(depth, _)| *depth)
}

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
        Ok((cost_of_each(&times), times))
    }

    /// How many commands to keep in flight for small reads.
    async fn find_depth(&mut self) -> Result<(u32, Vec<(u32, i64)>), Stop> {
        self.stage("commands in flight", 300);
        let rounds = if self.full() { 9 } else { 5 };
        let costs = self.costs_by_depth(&DEPTHS, (128, rounds)).await?;
        Ok((saturating(&costs), costs))
    }

    /// What a small read at a random place costs with so many in flight, each the median of so many
    /// rounds of a burst.
    pub async fn costs_by_depth(
        &mut self,
        depths: &[u32],
        (burst, rounds): (usize, u32),
    ) -> Result<Vec<(u32, i64)>, Stop> {
        let size = Bytes::kib(4).round_up(SECTOR * self.grain);
        let mut costs = Vec::new();
        for &depth in depths {
            let mut each = Vec::new();
            for _ in 0..rounds {
                each.push(self.burst_cost(burst, size, Direction::Read, depth).await?.0);
            }
            costs.push((depth, quantile(&each, 500).max(1)));
        }
        Ok(costs)
    }

    /// Small reads and writes by turns.
    async fn mixed_cost(&mut self, depth: u32) -> Result<Duration, Stop> {
        let size = Bytes::kib(16).round_up(SECTOR * self.grain);
        let mut each = Vec::new();
        for _ in 0..if self.full() { 24 } else { 12 } {
            let mut commands = self.random_commands(128, size, Direction::Read);
            for command in commands.iter_mut().step_by(2) {
                if let Command::Transfer(access) = command {
                    access.direction = Direction::Write;
                }
            }
            let times = self.burst(commands, depth).await?;
            each.push(cost_of_each(&times));
        }
        Ok(span(quantile(&each, 500)))
    }

    /// Writes on and on, from the start of the disk: what is left of the rate when the
    /// device has no more room in front of its medium.
    async fn find_steady(&mut self, depth: u32) -> Result<Steady, Stop> {
        let whole = if self.full() { STEADY_FULL } else { STEADY_QUICK };
        let whole = whole.min((SECTOR * self.end).round_down(STEADY_PIECE * EIGHTHS));
        let eighth = whole / EIGHTHS;
        let (mut costs, mut longest) = (Vec::new(), 0);
        for part in 0..EIGHTHS {
            let first = eighth * part / SECTOR;
            let mut times = Vec::new();
            // Pieces, since an answer is one line of the journal and memory at once.
            for piece in 0..eighth / STEADY_PIECE {
                let at = first + STEADY_PIECE * piece / SECTOR;
                let commands = (0..STEADY_PIECE / STEADY_COMMAND).map(|n| {
                    let lba = Lba::new(at + STEADY_COMMAND * n / SECTOR);
                    let (len, direction) = (STEADY_COMMAND, Direction::Write);
                    Command::Transfer(Access { lba, len, direction })
                });
                let answers = self.burst(commands.collect(), depth).await?;
                longest = answers.iter().map(|t| nanos(t.taken())).max().unwrap_or(0).max(longest);
                times.push(cost_of_each(&answers));
            }
            costs.push(times.iter().sum::<i64>() / times.len().max(1) as i64);
        }
        let rate = |cost: i64| Rate::of(STEADY_COMMAND, span(cost.max(1)));
        Ok(Steady {
            written: whole,
            first: rate(costs[0]),
            slowest: rate(costs.iter().skip(1).copied().max().unwrap_or(costs[0])),
            longest: span(longest),
        })
    }

    async fn flat_cost(
        &mut self,
        direction: Direction,
        depth: u32,
        steady: Option<Steady>,
    ) -> Result<FlatCost, Stop> {
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
        if let Some(steady) = steady {
            // What lasts counts, not what the device's own cache takes in at first.
            samples.push((STEADY_COMMAND, steady.slowest.time_for(STEADY_COMMAND)));
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
        let read = self.flat_cost(Direction::Read, depth, None).await?;
        let depths = depths.into_iter().map(|(depth, cost)| (depth, span(cost))).collect();
        let mut flat = Flat { depth, depths, read, write: None, mixed: None, steady: None };
        if self.write {
            self.stage("writes without a break", 600);
            let large = SECTOR * self.end >= STEADY_PIECE * EIGHTHS;
            flat.steady = if large { Some(self.find_steady(depth).await?) } else { None };
            self.stage("cost of writes", 700);
            flat.write = Some(self.flat_cost(Direction::Write, depth, flat.steady).await?);
            flat.mixed = Some(self.mixed_cost(depth).await?);
        }
        Ok(flat)
    }
}
