//! Sweeps: what a disk needs for many requests in one movement of the arm.
//!
//! With worst-case seeks each request is charged for the arm coming from the far end.
//! In a sweep the requests are served by place: the distances between them add up to no
//! more than the cylinders in use, and for a concave curve of times over distances the
//! seeks are longest when all distances are equal. So `n` seeks over `c` cylinders
//! cost at most `n * seek(c / n)` (Clockwise thesis and UCSB QoS scheduler use sweeps;
//! the bound is that of Gemmell and Christodoulakis 1992 and Chen, Kandlur and Yu 1993).
//!
//! Curves that were measured are not concave everywhere; the bound is taken on the
//! lowest concave curve that is nowhere below them. The first request of a sweep is
//! charged for a seek from anywhere on the disk, since other work may have taken the
//! arm there; after it, a request ends up to `span` cylinders from where it began, and
//! so much is added to each distance, in whichever direction the sweep goes.

use crate::task::Sweep;
use alloc::vec::Vec;
use core::fmt;
use units::{Bytes, Duration, Rate};

/// What the sweeps over one part of a disk cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepCosts {
    /// Bound on the time of a seek, by cylinders: points joined by straight lines;
    /// distances rise, times never fall; constant before the first and after the last.
    pub seek: Vec<(u64, Duration)>,
    /// The longest way from anywhere on the disk to the part in use, in cylinders.
    pub stroke: u64,
    /// From the first cylinder in use to the last.
    pub cylinders: u64,
    /// How many cylinders from its first a request ends at the most.
    pub span: u64,
    /// Bound on a request beside its seek: overhead, a turn, transfer, switches.
    pub request: Duration,
}

/// What is promised: a cycle's requests are done by its end, served in one sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepAnalysis {
    /// Requests in a cycle.
    pub requests: u64,
    /// Bound on the time of all of them.
    pub work: Duration,
    /// What is left of the cycle beside them and the gap.
    pub left: Duration,
}

/// Why the requests do not fit into one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepRefusal {
    /// The cycle, and by how much the requests and the gap take longer.
    pub deadline: (Duration, Duration),
    /// How many requests would fit.
    pub fits: u64,
    /// What the cycle would be used to, in parts per million.
    pub utilisation_ppm: u64,
}

impl fmt::Display for SweepRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cycle, excess) = self.deadline;
        write!(f, "a cycle of {cycle} would be asked for {excess} more than there is")?;
        write!(f, " ({}.{:04} %", self.utilisation_ppm / 10_000, self.utilisation_ppm % 10_000)?;
        write!(f, "); a sweep of {} requests fits", self.fits)
    }
}
impl core::error::Error for SweepRefusal {}

/// A cycle of one kind of streams, and how many fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepPlan {
    /// How many blocks each stream transfers in a cycle.
    pub blocks: u64,
    /// The length of the cycle: what the blocks last at the streams' rate.
    pub cycle: Duration,
    /// How many streams fit.
    pub streams: u64,
    /// The memory of all of them: each has the blocks of the cycle that it uses, and of
    /// the one that comes in.
    pub memory: Bytes,
}

impl SweepCosts {
    /// The time of a seek over `distance`, at most.
    fn seek(&self, distance: u64) -> Duration {
        let after = self.seek.partition_point(|&(at, _)| at < distance);
        let (Some(&(far, long)), Some(near)) = (self.seek.get(after), after.checked_sub(1)) else {
            let end = if after == 0 { self.seek.first() } else { self.seek.last() };
            return end.map_or(Duration::ZERO, |&(_, time)| time);
        };
        let (near, short) = self.seek[near];
        let rise = u128::from((long - short).as_nanos()) * u128::from(distance - near);
        short + Duration::from_nanos(rise.div_ceil(u128::from(far - near)) as u64)
    }

    /// The corners of the lowest concave curve over the seek times from no distance to
    /// `longest`.
    fn majorant(&self, longest: u64) -> Vec<(u64, Duration)> {
        let inner = self.seek.iter().copied().filter(|&(at, _)| at > 0 && at < longest);
        let ends = [(0, self.seek(0)), (longest, self.seek(longest))];
        let mut corners: Vec<(u64, Duration)> = Vec::new();
        for (at, time) in ends[..1].iter().copied().chain(inner).chain(ends[1..].iter().copied()) {
            while let [.., (first, low), (middle, high)] = corners[..] {
                let rise = |from: Duration, to: Duration| u128::from((to - from).as_nanos());
                // The middle corner goes where it lies on or below the straight line.
                let over = rise(low, high) * u128::from(at - first);
                if over > rise(low, time) * u128::from(middle - first) {
                    break;
                }
                corners.pop();
            }
            corners.push((at, time));
        }
        corners
    }

    /// At most so long take `seeks` seeks whose distances add up to `total`, none longer
    /// than `longest`. Each is rounded up to a nanosecond by itself.
    fn seeks(&self, seeks: u64, total: u64, longest: u64) -> Duration {
        self.line(seeks, total, longest) + Duration::from_nanos(seeks)
    }

    /// `seeks` times the lowest concave curve at the mean distance.
    fn line(&self, seeks: u64, total: u64, longest: u64) -> Duration {
        let corners = self.majorant(longest);
        // On the stretch that holds the mean distance, `seeks` times its line.
        let after = corners.partition_point(|&(at, _)| at.saturating_mul(seeks) < total);
        let Some(near) = after.checked_sub(1) else { return corners[0].1 * seeks };
        let (near, low) = corners[near];
        let Some(&(far, high)) = corners.get(after) else { return low * seeks };
        let rise = u128::from((high - low).as_nanos()) * u128::from(total - near * seeks);
        low * seeks + Duration::from_nanos(rise.div_ceil(u128::from(far - near)) as u64)
    }

    /// What a request and a sweep cost each for itself, for sweeps of about so many requests:
    /// a task in sweeps ([`Task::in_sweeps`](crate::Task::in_sweeps)). Any number of them, each
    /// by costs for any number, takes no longer than they come to.
    ///
    /// The lowest concave curve lies below each of its lines. So a seek over `d` cylinders takes
    /// at most `a + b d`, and `n` of them, over `c` in sum, at most `n a + b c`.
    pub fn shares(&self, requests: u64) -> (Duration, Sweep) {
        let reach = self.cylinders.saturating_add(self.span);
        let corners = self.majorant(reach.max(1));
        let mean = reach / requests.max(1);
        let after = corners.partition_point(|&(at, _)| at < mean).max(1);
        let ((near, low), (far, high)) = match (corners.get(after - 1), corners.get(after)) {
            (Some(&near), Some(&far)) => (near, far),
            _ => ((0, self.seek(reach)), (1, self.seek(reach))),
        };
        let rise = u128::from((high - low).as_nanos());
        let over = |cylinders: u64| {
            let time = (rise * u128::from(cylinders)).div_ceil(u128::from(far - near));
            Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
        };
        // Where the line comes to no distance, rounded up; each seek is, too.
        let back = Duration::from_nanos((rise * u128::from(near) / u128::from(far - near)) as u64);
        let still = low.saturating_sub(back).saturating_add(Duration::from_nanos(2));
        let request = self.request.saturating_add(still).saturating_add(over(self.span));
        let stroke = self.seek(self.stroke);
        // From its end back over itself.
        let alone = self.request.saturating_add(self.seek(self.span));
        let ways = request.saturating_sub(alone);
        (request, Sweep { once: stroke.saturating_add(over(self.cylinders)), back: stroke, ways })
    }

    /// Bound on the time of a sweep of so many requests, wherever the arm was before.
    pub fn sweep(&self, requests: u64) -> Duration {
        let Some(others) = requests.checked_sub(1) else { return Duration::ZERO };
        let first = self.seek(self.stroke) + self.request * requests;
        if others == 0 {
            return first;
        }
        let total = self.cylinders + self.span * others;
        first + self.seeks(others, total, self.cylinders + self.span)
    }

    /// Whether a sweep of `requests` fits into each cycle beside a `gap`: the time for
    /// interactive requests, and the longest other command, which may run into the cycle.
    ///
    /// # Errors
    /// [`SweepRefusal`] where it does not.
    pub fn check(
        &self,
        cycle: Duration,
        gap: Duration,
        requests: u64,
    ) -> Result<SweepAnalysis, SweepRefusal> {
        let work = self.sweep(requests);
        let asked = work.saturating_add(gap);
        cycle.checked_sub(asked).map(|left| SweepAnalysis { requests, work, left }).ok_or_else(
            || {
                let ppm = u128::from(asked.as_nanos()) * 1_000_000;
                let ppm = ppm.div_ceil(u128::from(cycle.as_nanos()).max(1));
                SweepRefusal {
                    deadline: (cycle, asked - cycle),
                    fits: self.most(cycle, gap),
                    utilisation_ppm: u64::try_from(ppm).unwrap_or(u64::MAX),
                }
            },
        )
    }

    /// The most requests whose sweep fits into a cycle beside a `gap`.
    pub fn most(&self, cycle: Duration, gap: Duration) -> u64 {
        let room = cycle.saturating_sub(gap);
        // Each takes its own time at least.
        let (mut fits, mut fails) = (0, room.as_nanos() / self.request.as_nanos().max(1) + 1);
        while fits + 1 < fails {
            let middle = fits + (fails - fits) / 2;
            if self.sweep(middle) <= room { fits = middle } else { fails = middle }
        }
        fits
    }

    /// How many streams of one kind fit, by the number of blocks that each transfers in
    /// a cycle, from one to `blocks_max`: longer cycles, shorter seeks, more memory.
    /// Blocks are taken to lie anywhere in the part in use, each a request of its own.
    ///
    /// # Panics
    /// Where the rate is zero.
    pub fn plans(
        &self,
        rate: Rate,
        block: Bytes,
        gap: Duration,
        blocks_max: u64,
    ) -> impl Iterator<Item = SweepPlan> + '_ {
        (1..=blocks_max).map(move |blocks| {
            // Not longer than the blocks last.
            let cycle = rate.time_for(block * blocks).saturating_sub(Duration::from_nanos(1));
            let streams = self.most(cycle, gap) / blocks;
            SweepPlan { blocks, cycle, streams, memory: block * 2 * blocks * streams }
        })
    }
}
