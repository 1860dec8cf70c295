//! Streaming: at which transfer sizes the disk still streams, and how fast where.
//!
//! Semi-preemptible I/O (2003) section 3.1, figure 3: below a size `a` the cost of
//! each command shows, above a size `b` some disks slow down again. The best chunk
//! is the smallest in between.

use super::desk::Stop;
use super::findings::{Chunk, Throughput};
use super::geometry::Geometry;
use super::question::Timing;
use super::rotation::{instant, taken};
use super::session::Session;
use super::statistics::{median, quantile};
use alloc::vec::Vec;
use units::{Bytes, Direction, Duration, Rate, SECTOR};

/// The largest chunk tried, in sectors: 2 MiB.
const CHUNK_MAX: u64 = 4_096;
/// How much is streamed at each size, within bounds on the number of chunks.
const STREAM_SECTORS: u64 = 8_192;
/// A chunk size streams when it reaches this part of the best rate but one, which
/// is not as likely as the best to be a stroke of luck.
const STREAMS_PERCENT: u64 = 93;

impl Session {
    /// The rate of a sequential stream in chunks; the first, which seeks, not counted.
    async fn stream(&mut self, start: u64, chunk: u64, chunks: u64) -> Result<Rate, Stop> {
        let mut times = Vec::new();
        for index in 0..=chunks {
            let lba = start + index * chunk;
            let timing = self.transfer(lba, chunk, Direction::Read, 0).await?;
            times.push(timing);
        }
        Ok(rate(&times, chunk))
    }

    /// The rate at every chunk size, on the outermost tracks.
    pub async fn find_chunks(&mut self) -> Result<Vec<Chunk>, Stop> {
        self.stage("chunk sizes", 100);
        let (runs, most) = if self.full() { (15, 32) } else { (4, 20) };
        let mut found: Vec<Chunk> = Vec::new();
        let mut size = if self.full() { self.grain } else { self.grain.max(8) };
        while size <= CHUNK_MAX {
            let chunks = (STREAM_SECTORS / size).clamp(12, most);
            let room = size * (chunks + 2);
            if room >= self.end {
                // A small target; what is longer is not streamed from it.
                break;
            }
            let mut rates = Vec::new();
            for _ in 0..runs {
                // Within the outermost zone, of which no disk has more than some thirty.
                let outer = (self.end / 64).max(room + 1).min(self.end - room);
                let start = self.place(0, outer);
                if start + room > self.end {
                    continue;
                }
                self.read_far(start).await?;
                rates.push(self.stream(start, size, chunks).await?.get() as i64);
            }
            // A host that is late once makes the disk lose a turn: the better runs are
            // the disk's own.
            let rate = quantile(&rates, 800);
            let rate = Rate::per_second(rate.unsigned_abs());
            found.push(Chunk { size: SECTOR * size, rate });
            let half = size + (size / 2).max(1).next_multiple_of(self.grain);
            size = if size.is_power_of_two() && half < 2 * size {
                half
            } else {
                (size + 1).next_power_of_two().max(size + self.grain)
            };
        }
        Ok(found)
    }

    /// Sequential rates in zones and sizes; `geometry` of a disk that has one.
    pub async fn find_throughput(
        &mut self,
        geometry: Option<&Geometry>,
    ) -> Result<Vec<Throughput>, Stop> {
        self.stage("throughput", 640);
        let places: Vec<(u64, u64)> = match geometry {
            Some(geometry) => geometry.zones.iter().map(|zone| (zone.start, zone.end)).collect(),
            None => Vec::from([(0, self.end)]),
        };
        let step = if self.full() { 1 } else { places.len().div_ceil(3) };
        let mut found = Vec::new();
        for (from, to) in places.into_iter().step_by(step) {
            for kib in [4u64, 64, 256, 1_024] {
                let size = Bytes::kib(kib) / SECTOR;
                let chunks = (4 * STREAM_SECTORS / 4 / size).clamp(4, 64);
                let room = size * (chunks + 2);
                if size < self.grain || from + room > to {
                    continue;
                }
                let start = self.place(from, to - room);
                self.read_far(start).await?;
                let sequential = self.stream(start, size, chunks).await?;
                let mut times = Vec::new();
                for _ in 0..12 {
                    let lba = self.place(from, to - size);
                    times.push(taken(&self.transfer(lba, size, Direction::Read, 0).await?));
                }
                found.push(Throughput {
                    start: from,
                    size: SECTOR * size,
                    sequential,
                    random: super::session::span(median(&times)),
                });
            }
        }
        Ok(found)
    }
}

/// The rate of a stream; a chunk late by chance is caught up with by the next.
fn rate(times: &[Timing], chunk: u64) -> Rate {
    let (first, last) = (&times[0], &times[times.len() - 1]);
    let spent = instant(last.finished) - instant(first.finished);
    let chunks = times.len() as u64 - 1;
    Rate::of(SECTOR * chunk * chunks, Duration::from_nanos(spent.max(1).unsigned_abs()))
}

/// The range of sizes at which the disk streams: `a` and `b` of figure 3.
pub(super) fn range(chunks: &[Chunk]) -> Option<(Bytes, Bytes)> {
    let mut rates: Vec<Rate> = chunks.iter().map(|chunk| chunk.rate).collect();
    rates.sort_unstable();
    let best = *rates.get(rates.len().checked_sub(2)?)?;
    let streams = |chunk: &&Chunk| {
        u128::from(chunk.rate.get()) * 100 >= u128::from(best.get()) * u128::from(STREAMS_PERCENT)
    };
    let first = chunks.iter().find(streams)?;
    let last = chunks.iter().rfind(streams)?;
    Some((first.size, last.size))
}
