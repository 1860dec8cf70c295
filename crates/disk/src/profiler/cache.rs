//! The disk's own cache: whether it answers reads, how many places it remembers,
//! and how far it reads ahead.
//!
//! A read that comes from the cache takes far less than one after an arm movement.
//! That difference answers every question here. (Worthington et al. 1995, section
//! 3; they time single commands, we ask a majority.)

use super::desk::Stop;
use super::findings::{Cache, Measured};
use super::rotation::taken;
use super::session::{Session, nanos, span};
use super::statistics::{median, quantile};
use alloc::vec::Vec;
use units::{Bytes, Direction, Duration, SECTOR};

/// Far reads timed to know what an arm movement takes at least.
const FAR_READS: usize = 64;
/// Places read twice to see whether the second read is quick.
const REPEATS: usize = 16;
/// Idle time given to the disk to read ahead.
const IDLE_NS: i64 = 200_000_000;

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
        let mut again = Vec::new();
        for _ in 0..REPEATS {
            let lba = self.place(0, self.end - self.grain);
            self.read(lba, 0).await?;
            let wait = self.below(30_000_000) as i64;
            let timing = self.read(lba, wait).await?;
            again.push(taken(&timing));
        }
        let hit = median(&again);
        // Without a cache the second read waits for any part of a turn, evenly; that
        // 14 of 16 waits are short is as good as impossible.
        if quantile(&again, 850) * 4 > median(&far) {
            return Ok((far, None));
        }
        self.hit_below = i64::midpoint(hit, quantile(&far, 0));
        Ok((far, Some(span(hit))))
    }

    /// Whether a place is still cached after `others` far reads.
    async fn remembered(&mut self, others: u64) -> Result<bool, Stop> {
        let mut hits = 0u32;
        for round in 0..5u32 {
            let lba = self.place(0, self.end - self.grain);
            self.read(lba, 0).await?;
            for _ in 0..others {
                self.read_far(lba).await?;
            }
            let timing = self.read(lba, 0).await?;
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

    /// Whether the sector `ahead` of a read one is cached after a pause.
    /// `bases` are where to read; each is used once.
    async fn read_ahead_reaches(&mut self, ahead: u64, read: u64) -> Result<bool, Stop> {
        let mut hits = 0u32;
        for round in 0..5u32 {
            let lba = self.read_ahead_place(ahead + read);
            self.transfer(lba, read, Direction::Read, 0).await?;
            self.read_far_after(lba, IDLE_NS).await?;
            let timing = self.read(lba + ahead, 0).await?;
            hits += u32::from(self.is_hit(&timing));
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

    /// The last sector after a read of `read` sectors that is cached after a pause.
    async fn find_reach(&mut self, read: u64, limit: u64) -> Result<u64, Stop> {
        let grain = self.grain;
        let (mut reached, mut beyond) = (0, read.max(2 * grain));
        while beyond <= limit && self.read_ahead_reaches(beyond, read).await? {
            reached = beyond;
            beyond *= 2;
        }
        let beyond = &mut beyond.min(limit);
        while *beyond > reached + grain {
            let middle = u64::midpoint(reached, *beyond) / grain * grain;
            if self.read_ahead_reaches(middle, read).await? {
                reached = middle;
            } else {
                *beyond = middle;
            }
        }
        Ok(reached)
    }

    /// Read-ahead and what a segment holds.
    pub async fn find_cache(
        &mut self,
        hit: Duration,
        segments: Option<u64>,
    ) -> Result<Cache, Stop> {
        self.stage("cache size", 850);
        let limit = (self.end / 16).min(64 << 11);
        let reached = self.find_reach(self.grain, limit).await?;
        let ahead = SECTOR * reached.saturating_sub(self.grain - 1);
        // From the first sector read to the last one read ahead.
        let segment = SECTOR * (reached + self.grain);
        let known = segments.unwrap_or(self.evict);
        let confidence = if segments.is_some() {
            "majority of five at each step of a binary search"
        } else {
            "at least so many; the search ended there"
        };
        Ok(Cache {
            hit,
            segments: Measured::new(known, confidence),
            segment: Measured::new(segment, "one sector and all that is read ahead of it"),
            read_ahead: if reached == 0 { Bytes::ZERO } else { ahead },
            size: segment * known,
        })
    }

    /// Whether a written sector takes a turn to be written again, and a flush.
    pub async fn find_write_buffer(&mut self) -> Result<(i64, i64, Vec<i64>), Stop> {
        self.stage("write buffer", 880);
        let (mut first, mut again, mut flushes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..16 {
            let lba = self.place(0, self.end - self.grain);
            first.push(taken(&self.transfer(lba, self.grain, Direction::Write, 0).await?));
            again.push(taken(&self.transfer(lba, self.grain, Direction::Write, 0).await?));
            flushes.push(nanos(self.flush().await?.taken()));
        }
        Ok((median(&first), median(&again), flushes))
    }
}
