//! A load's contract by its program's own clock, which knows nothing of schedules: what the contract
//! says of answers is held against the time from the question to the answer, and a rate against the
//! bytes that came.
//!
//! Only what the contract's words cover is judged: an operation that comes in its time, of at most the
//! promised length, within one MiB of the volume; a rate where as many operations of that length as a
//! period has are always waiting, on a pool of one disk.

use super::plan::{Arrivals, LoadPlan, Place};
use node::Service;
use store::EXTENT;
use units::{Access, Bytes, Duration, Instant, Rate, SECTOR};

/// What one program was promised, and what it has seen of that.
#[derive(Debug, Default)]
pub(super) struct Judge {
    promise: Option<Promise>,
}

#[derive(Debug)]
enum Promise {
    Answers {
        len: Bytes,
        within: Duration,
        every: Duration,
        /// By when, for each volume, the next operation comes in its time.
        next: Vec<Instant>,
    },
    Rate {
        rate: Rate,
        period: Duration,
        since: Instant,
        came: Bytes,
    },
}

impl Judge {
    /// Of a program whose service begins now on so many volumes of its own, in a pool of so many disks.
    pub(super) fn new(plan: &LoadPlan, volumes: usize, disks: usize, now: Instant) -> Self {
        let is_own = !matches!(plan.place, Place::Of(_));
        let promise = match plan.service {
            _ if !is_own => None,
            Some(Service::Latency { len, within, every }) => {
                Some(Promise::Answers { len, within, every, next: vec![now; volumes] })
            }
            Some(Service::Rate { rate, block, period }) => {
                let least = rate.bytes_in(period).div_ceil(block);
                let waits = matches!(plan.arrivals, Arrivals::Greedy(many) if many >= least)
                    && plan.block >= block;
                let is_whole = waits && volumes == 1 && disks == 1;
                let (since, came) = (now, Bytes::ZERO);
                is_whole.then_some(Promise::Rate { rate, period, since, came })
            }
            Some(Service::BestEffort(_)) | None => None,
        };
        Self { promise }
    }

    /// It asks for this now: within what time it was promised.
    pub(super) fn asks(
        &mut self,
        now: Instant,
        volume: usize,
        access: &Access,
    ) -> Option<Duration> {
        let Some(Promise::Answers { len, within, every, next }) = &mut self.promise else {
            return None;
        };
        let comes_in_time = now >= next[volume];
        // One that comes sooner, or counts as several, puts off those behind it.
        let first = access.lba.offset();
        let is_one = access.len <= *len && first / EXTENT == (first + access.len - SECTOR) / EXTENT;
        let turns = access.len.div_ceil(*len) + u64::from(!is_one);
        next[volume] = now.max(next[volume]) + *every * turns;
        (comes_in_time && is_one).then_some(*within)
    }

    /// Bytes came. By how long they are behind the rate, if they are.
    pub(super) fn came(&mut self, now: Instant, bytes: Bytes) -> Option<Duration> {
        let Some(Promise::Rate { rate, period, since, came }) = &mut self.promise else {
            return None;
        };
        *came += bytes;
        // The budget of a period may come at its end, and what it lets in some time later.
        let whole = now.saturating_since(*since).saturating_sub(*period * 2);
        let missing = rate.bytes_in(whole).saturating_sub(*came);
        if missing.is_zero() {
            return None;
        }
        // Told once; what is missing is not counted again.
        *came += missing;
        Some(rate.time_for(missing))
    }
}
