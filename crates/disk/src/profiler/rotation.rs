//! Whether the target rotates, how fast, and at which angle a sector lies.
//!
//! A sector of a rotating disk ends at instants that are whole turns apart,
//! however the commands before it were timed. So one sector is read again and
//! again after random waits: if there is a period, the times tell it, and a longer
//! record tells it better. From then on that sector is the zero of all angles, and
//! the angle of any other is when in a turn a read of it ends.

use super::desk::Stop;
use super::question::Timing;
use super::session::{Session, nanos};
use super::statistics::{centred, deviation, median};
use super::turn::{AGREE_NS, FRACTION, Turn};
use alloc::vec::Vec;
use units::Instant;

/// The periods looked for: 25,000 down to 2,000 turns a minute.
const PERIODS_NS: core::ops::RangeInclusive<i64> = 2_400_000..=30_000_000;
/// How often the reference is read before a verdict.
const SAMPLES: usize = 48;
/// After so many angles the reference is read again. A spindle drifts slowly.
const ANGLES_PER_TICK: u32 = 24;
pub(super) fn instant(at: Instant) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

/// How well a period fits spans that should be whole numbers of it: how many do,
/// and how far off those are altogether.
fn fit(period: i64, spans: &[i64]) -> (usize, i64) {
    let off = spans.iter().map(|span| centred(*span, period).abs());
    let fitting: Vec<i64> = off.filter(|off| *off < period / 20).collect();
    (fitting.len(), fitting.iter().sum())
}

/// The periods to try: steps change the turns within the longest span by a small
/// part of one.
fn candidates(longest: i64) -> impl Iterator<Item = i64> {
    let first = Some(*PERIODS_NS.end());
    core::iter::successors(first, move |&period| {
        let step = i128::from(period).pow(2) / 80 / i128::from(longest.max(1));
        let next = period - step.max(1) as i64;
        (next >= *PERIODS_NS.start()).then_some(next)
    })
}

/// The longest period that fits nearly as many spans as any does. Its parts fit as
/// well; twice it fits half of them. A host that is often late spoils many spans, so
/// not all need fit; by chance one in ten does.
fn search(spans: &[i64]) -> Option<i64> {
    let longest = *spans.iter().max()?;
    let most = candidates(longest).map(|period| fit(period, spans).0).max()?;
    if most * 100 < spans.len() * 45 {
        return None;
    }
    let mut best: Option<(usize, i64, i64)> = None;
    for period in candidates(longest) {
        if best.is_some_and(|(_, _, found)| period < found - found / 20) {
            break;
        }
        let (fitting, off) = fit(period, spans);
        let better = best.is_none_or(|(fits, least, _)| (fitting, -off) > (fits, -least));
        if fitting * 100 >= most * 80 && better {
            best = Some((fitting, off, period));
        }
    }
    best.map(|(_, _, period)| period)
}

/// A better period from the ends of one sector, over ever longer spans: each is
/// known well enough to count the turns of the next.
fn refine(mut period: i64, ends: &[i64]) -> i128 {
    let mut fine = i128::from(period) << FRACTION;
    let mut lag = 1;
    while lag <= ends.len() / 2 {
        let each: Vec<i64> = ends
            .windows(lag + 1)
            .map(|window| {
                let record = i128::from(window[lag] - window[0]) << FRACTION;
                let turns = ((record + fine / 2) / fine).max(1);
                (record / turns - fine) as i64
            })
            .collect();
        fine += i128::from(median(&each));
        lag *= 2;
    }
    period = (fine >> FRACTION) as i64;
    debug_assert!(period > 0);
    fine
}

impl Session {
    /// Finds the rotation, or that there is none.
    pub async fn find_rotation(&mut self) -> Result<bool, Stop> {
        self.stage("rotation", 30);
        let reference = self.end / 5 * 2 / self.grain * self.grain;
        let mut ends = Vec::new();
        let gaps = self.gaps();
        for _ in 0..SAMPLES {
            // A random wait: a device without a period must not be given one.
            let wait = self.below(15_000_000) as i64;
            self.read_far(reference).await?;
            self.read(self.end - self.grain - reference / 2 / self.grain * self.grain, wait)
                .await?;
            let timing = self.read_medium(reference).await?;
            if !self.is_hit(&timing) {
                ends.push(instant(timing.finished));
            }
        }
        let mut spans: Vec<i64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // A break of an hour says nothing of a turn of milliseconds.
        let usual = median(&spans);
        spans.retain(|span| (1..4 * usual).contains(span));
        let Some(period) = search(&spans).filter(|_| spans.len() >= SAMPLES / 2) else {
            return Ok(false);
        };
        let period = refine(period, &ends);
        let mut turn = Turn {
            reference,
            period,
            anchor: ends[0],
            base: ends[0],
            turns: 0,
            baseline: 0,
            angles: 0,
            gaps,
            noise: 0,
        };
        // The middle of all phases is a better zero than any one of them.
        let whole = turn.period();
        let phases: Vec<i64> = ends.iter().map(|end| centred(turn.phase(*end), whole)).collect();
        turn.noise = (deviation(&phases) * 3 / 2).max(1_000);
        let zero = median(&phases);
        turn.restart(ends[0] + zero, gaps);
        turn.baseline = spans.iter().sum::<i64>() / 2;
        self.turn = Some(turn);
        Ok(true)
    }

    /// Reads the reference again, so that angles stay true.
    async fn tick(&mut self) -> Result<(), Stop> {
        let mut ends = Vec::new();
        for _ in 0..6 {
            let turn = self.turn.as_ref().expect("a rotating disk");
            let (reference, gaps) = (turn.reference, turn.gaps);
            let timing = self.read_medium(reference).await?;
            let (at, now) = (instant(timing.finished), self.gaps());
            let turn = self.turn.as_mut().expect("a rotating disk");
            turn.angles = 0;
            if now == gaps && turn.follow(at) {
                return Ok(());
            }
            // After a break, or when lost: two readings a whole number of turns
            // apart begin a new record.
            let period = turn.period();
            if ends.iter().any(|end: &i64| centred(at - end, period).abs() < AGREE_NS) {
                turn.restart(at, now);
                return Ok(());
            }
            ends.push(at);
        }
        Ok(())
    }

    fn turn_ref(&self) -> &Turn {
        self.turn.as_ref().expect("angles are asked of rotating disks")
    }

    /// The time of one turn.
    pub fn period(&self) -> i64 {
        self.turn_ref().period()
    }

    /// The angle at which an instant lies.
    pub fn phase(&self, at: Instant) -> i64 {
        self.turn_ref().phase(instant(at))
    }

    /// Keeps angles true; call between measurements that belong together.
    pub async fn keep_time(&mut self) -> Result<(), Stop> {
        let turn = self.turn_ref();
        if turn.angles >= ANGLES_PER_TICK || turn.gaps != self.gaps() {
            self.tick().await?;
        }
        self.turn.as_mut().expect("a rotating disk").angles += 1;
        Ok(())
    }

    /// The angle at which a sector ends, once; may be late by chance.
    pub async fn angle(&mut self, lba: u64) -> Result<i64, Stop> {
        self.keep_time().await?;
        let timing = self.read_medium(lba).await?;
        Ok(self.phase(timing.finished))
    }

    /// The time between two positions, on the circle.
    pub fn apart(&self, one: i64, two: i64) -> i64 {
        centred(two - one, self.period())
    }

    pub fn noise(&self) -> i64 {
        self.turn_ref().noise
    }
}

/// What a read took, for those that only need the number.
pub(super) fn taken(timing: &Timing) -> i64 {
    nanos(timing.taken())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_period_is_found_and_chance_has_none() {
        let mut random = 3u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(77);
            ((random >> 33) % n) as i64
        };
        let period = 8_333_333;
        let mut at = 0;
        let ends: Vec<i64> = (0..40)
            .map(|_| {
                at += period * (3 + below(9));
                at + below(20_000)
            })
            .collect();
        let spans: Vec<i64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let found = search(&spans).expect("a period");
        let fine = (refine(found, &ends) >> FRACTION) as i64;
        assert!((fine - period).abs() < period / 100_000, "{fine}");
        // One end in five late by any part of a turn, as on a busy host.
        let late: Vec<i64> =
            ends.iter().map(|end| end + if below(5) == 0 { below(8_000_000) } else { 0 }).collect();
        let spans: Vec<i64> = late.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let found = search(&spans).expect("a period");
        assert!((found - period).abs() < period / 100, "{found}");
        for _ in 0..50 {
            let chance: Vec<i64> = (0..40).map(|_| 10_000_000 + below(90_000_000)).collect();
            assert_eq!(search(&chance), None);
        }
        assert_eq!(search(&[]), None);
    }
}
