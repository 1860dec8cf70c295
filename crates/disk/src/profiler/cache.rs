//! The disk's own cache: whether it answers reads, how many places it remembers,
//! and how far it reads ahead.
//!
//! A read that comes from the cache takes far less than one after an arm movement.
//! That difference answers every question here. (Worthington et al. 1995, section
//! 3; they time single commands, we ask a majority.)

use super::desk::Stop;
use super::findings::{Cache, Measured, WriteTimes};
use super::question::COMMAND_MAX;
use super::rotation::taken;
use super::session::{Session, nanos, span};
use super::statistics::{median, quantile};
use alloc::vec::Vec;
use units::{Bytes, Direction, Duration, SECTOR};

/// Far reads timed to know what an arm movement takes at least.
const FAR_READS: usize = 64;
/// Places read twice to see whether the second read is quick.
const REPEATS: usize = 16;
/// How alike the times of hits are, beyond those seen.
const ALIKE_NS: i64 = 100_000;
/// Idle time given to the disk to read ahead.
const IDLE_NS: i64 = 200_000_000;

/// A flush of a commit covers the writes of one interval; this is the daemon's interval where
/// nobody states another. A longer one leaves more only in a cache that is larger than what
/// the disk takes in this time.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
/// The large writes before a flush; the small ones are a grain. Which of them fill a cache so
/// that it takes longest to empty depends on whether it counts bytes or places.
const FULL_WRITE: Bytes = Bytes::MIB;
/// The most writes before one flush; a journal has a line for each.
const FULL_WRITES_MAX: u64 = 4_096;
const FULL_WRITES_MAX_QUICK: u64 = 512;
/// Fewer writes than this say nothing about whether a flush takes longer for more of them.
const FULL_WRITES_LEAST: u64 = 16;
/// Flushes behind as many writes as the last.
const FULL_REPEATS: u64 = 8;

impl Session {
    /// Finds out what a cached read takes, if anything is cached at all.
    /// Returns the times of far reads, and that of a hit.
    pub async fn find_hits(&mut self) -> Result<(Vec<i64>, Option<Duration>), Stop> {
        self.stage("first look", 0);
        let mut far = Vec::new();
        let mut from = self.end / 2;
        for _ in 0..FAR_READS {
            let timing = self.read_far(from).await?;
            if !timing.failed {
                far.push(taken(&timing));
            }
            from = self.place(0, self.end - self.grain);
        }
        // The sector that was read, or the one after it, where the disk reads ahead
        // and drops what it sent.
        for offset in [0, self.grain] {
            let mut again = Vec::new();
            for _ in 0..REPEATS {
                let lba = self.place(0, self.end - 2 * self.grain);
                self.read(lba, 0).await?;
                let wait = 10_000_000 + self.below(30_000_000) as i64;
                let timing = self.read(lba + offset, wait).await?;
                again.push(taken(&timing));
            }
            // Without a cache the second read waits for any part of a turn, evenly;
            // that 14 of 16 waits are short is as good as impossible.
            let most = quantile(&again, 850);
            if most * 4 <= median(&far) {
                let hit = median(&again);
                self.hit_offset = offset;
                self.hit_between = (quantile(&again, 60), most);
                self.hit_below = i64::midpoint(most, quantile(&far, 20)).max(hit);
                return Ok((far, Some(span(hit))));
            }
        }
        Ok((far, None))
    }

    /// Whether a place is still cached after `others` far reads.
    async fn remembered(&mut self, others: u64) -> Result<bool, Stop> {
        let mut hits = 0u32;
        for round in 0..5u32 {
            let lba = self.place(0, self.end - 2 * self.grain);
            self.read(lba, 0).await?;
            for other in 0..others {
                // The first waits until the disk has read ahead.
                let idle = if other == 0 { IDLE_NS } else { 0 };
                self.read_far_after(lba, idle).await?;
            }
            let timing = self.read(lba + self.hit_offset, 0).await?;
            hits += u32::from(self.is_hit(&timing));
            // Three of a kind decide.
            if hits == 3 || round + 1 - hits == 3 {
                break;
            }
        }
        Ok(hits >= 3)
    }

    /// The largest number in `0..limit` for which `holds`, given that it holds up to
    /// somewhere and not beyond, and for 0; `None` where it holds for `limit`.
    async fn remembered_most(&mut self, limit: u64) -> Result<Option<u64>, Stop> {
        let (mut most, mut least_not) = (0, 1);
        while self.remembered(least_not).await? {
            most = least_not;
            least_not *= 2;
            if least_not > limit {
                return Ok(None);
            }
        }
        while least_not - most > 1 {
            let middle = u64::midpoint(most, least_not);
            if self.remembered(middle).await? {
                most = middle;
            } else {
                least_not = middle;
            }
        }
        Ok(Some(most))
    }

    /// How many places are remembered at once; sets how many far reads evict one.
    pub async fn find_segments(&mut self) -> Result<Option<u64>, Stop> {
        self.stage("cache segments", 10);
        let limit = if self.full() { 256 } else { 64 };
        let most = self.remembered_most(limit).await?;
        self.evict = most.map_or(2 * limit, |most| most + 1);
        Ok(most.map(|most| most + 1))
    }

    /// Whether sector `at`, counted from the start of `reads` (sizes, one after the
    /// other), is cached once the disk was left alone.
    async fn holds(&mut self, reads: &[u64], at: u64) -> Result<bool, Stop> {
        let total: u64 = reads.iter().sum();
        let mut hits = 0u32;
        for round in 0..5u32 {
            let lba = self.read_ahead_place(total.max(at) + self.grain);
            let mut next = lba;
            for size in reads {
                self.transfer(next, *size, Direction::Read, 0).await?;
                next += size;
            }
            // Another segment keeps it; a disk of one segment must be asked at once,
            // and a read from the medium may then be quick, too, but not as alike.
            let hit = if self.evict > 1 {
                self.read_far_after(lba, IDLE_NS).await?;
                let timing = self.read(lba + at, 0).await?;
                self.is_hit(&timing)
            } else {
                let wait = IDLE_NS + self.below(20_000_000) as i64;
                let took = taken(&self.read(lba + at, wait).await?);
                let (low, high) = self.hit_between;
                (low - ALIKE_NS..high + ALIKE_NS).contains(&took)
            };
            hits += u32::from(hit);
            if hits == 3 || round + 1 - hits == 3 {
                break;
            }
        }
        Ok(hits >= 3)
    }

    /// A fresh place in the outer quarter of the disk, where tracks are longest.
    fn read_ahead_place(&mut self, room: u64) -> u64 {
        self.place(0, (self.end / 4).max(room + 1)).min(self.end - room - self.grain) / self.grain
            * self.grain
    }

    async fn read_far_after(&mut self, from: u64, delay: i64) -> Result<(), Stop> {
        let third = self.end / 3;
        let lba = (from + third + self.below(third)) % (self.end - self.grain);
        self.read(lba / self.grain * self.grain, delay).await?;
        Ok(())
    }

    /// How many sectors after `reads` are cached once the disk was left alone.
    async fn find_ahead(&mut self, reads: &[u64], limit: u64) -> Result<u64, Stop> {
        let grain = self.grain;
        let total: u64 = reads.iter().sum();
        let (mut held, mut beyond) = (0, grain);
        while beyond <= limit && self.holds(reads, total + beyond - grain).await? {
            held = beyond;
            beyond *= 2;
        }
        let mut beyond = beyond.min(limit);
        while beyond > held + grain {
            let middle = u64::midpoint(held, beyond) / grain * grain;
            if self.holds(reads, total + middle - grain).await? {
                held = middle;
            } else {
                beyond = middle;
            }
        }
        Ok(held)
    }

    /// The longest read whose first sector is still cached after it; 0 for none.
    async fn find_kept(&mut self, limit: u64) -> Result<u64, Stop> {
        let grain = self.grain;
        let (mut kept, mut not) = (0, grain);
        while not <= limit && self.holds(&[not], 0).await? {
            kept = not;
            not *= 2;
        }
        // Longer ones are not tried.
        not = not.min(limit + grain);
        while not > kept + grain {
            let middle = u64::midpoint(kept, not) / grain * grain;
            if self.holds(&[middle], 0).await? {
                kept = middle;
            } else {
                not = middle;
            }
        }
        Ok(kept)
    }

    /// Read-ahead and what a segment holds.
    pub async fn find_cache(
        &mut self,
        hit: Duration,
        segments: Option<u64>,
    ) -> Result<Cache, Stop> {
        self.stage("cache size", 50);
        let limit = (self.end / 16).min(32 << 11);
        let alone = self.find_ahead(&[self.grain], limit).await?;
        let in_row = self.find_ahead(&[self.grain, self.grain], limit).await?;
        let kept = self.find_kept(limit.min(COMMAND_MAX / SECTOR)).await?;
        // What was read and what is read ahead of it share the segment.
        let (segment, how) = match kept {
            0 => (alone.max(in_row), "all that is read ahead; what was sent is not kept"),
            _ => (kept + alone, "the longest read still held whole, and what is ahead of it"),
        };
        let known = segments.unwrap_or(self.evict);
        let confidence = if segments.is_some() {
            "majority of five at each step of a binary search"
        } else {
            "at least so many; the search ended there"
        };
        Ok(Cache {
            hit,
            segments: Measured::new(known, confidence),
            segment: Measured::new(SECTOR * segment, how),
            read_ahead: SECTOR * alone.max(in_row),
            read_ahead_alone: SECTOR * alone,
            size: SECTOR * segment * known,
        })
    }

    /// Whether a written sector takes a turn to be written again, and a flush.
    pub async fn find_write_buffer(&mut self) -> Result<WriteTimes, Stop> {
        self.stage("write buffer", 90);
        let mut times = WriteTimes::default();
        for _ in 0..16 {
            let lba = self.place(0, self.end - self.grain);
            times.first.push(taken(&self.transfer(lba, self.grain, Direction::Write, 0).await?));
            times.again.push(taken(&self.transfer(lba, self.grain, Direction::Write, 0).await?));
            times.flush.push(nanos(self.flush().await?.taken()));
            times.idle.push(nanos(self.flush().await?.taken()));
        }
        for sectors in [self.grain, (FULL_WRITE / SECTOR).next_multiple_of(self.grain)] {
            self.fill_and_flush(sectors, &mut times.full).await?;
        }
        Ok(times)
    }

    /// Flushes behind twice as many writes each time, at places from anywhere, until the
    /// flush takes no longer for more of them: the cache is full, or there is none. No more
    /// than can be made in a commit interval: a commit flushes no more. The last of these is
    /// repeated, since how long it takes depends on the places.
    async fn fill_and_flush(&mut self, sectors: u64, flushes: &mut Vec<i64>) -> Result<(), Stop> {
        let most = if self.full() { FULL_WRITES_MAX } else { FULL_WRITES_MAX_QUICK };
        let (mut writes, mut before) = (1, [0, 0]);
        loop {
            let (took, flush) = self.flush_behind(sectors, writes).await?;
            flushes.push(flush);
            // Against the shorter of two, since one of them may have been late by chance.
            let grows = flush > before[0].min(before[1]) * 9 / 8;
            if (!grows && writes >= FULL_WRITES_LEAST) || took >= COMMIT_INTERVAL || writes >= most
            {
                break;
            }
            before = [before[1], flush];
            writes *= 2;
        }
        for _ in 0..FULL_REPEATS {
            flushes.push(self.flush_behind(sectors, writes).await?.1);
        }
        Ok(())
    }

    /// So many writes, and a flush: how long the writes took, and how long the flush did.
    async fn flush_behind(&mut self, sectors: u64, writes: u64) -> Result<(Duration, i64), Stop> {
        let mut took = Duration::ZERO;
        for _ in 0..writes {
            let lba = self.place(0, self.end - sectors);
            took += self.transfer(lba, sectors, Direction::Write, 0).await?.taken();
        }
        Ok((took, nanos(self.flush().await?.taken())))
    }
}
