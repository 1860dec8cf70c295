//! The arm: how long it takes over a distance, and how far that varies.
//!
//! A curve gives the mean over each distance; measured curves are not smooth and
//! may fall a little. Around it a seek takes from `below` less to `above` more.
//! One side is drawn with a chance that keeps the mean where the curve has it,
//! and the place within the side evenly; so a long tail on one side is possible,
//! as the thesis measured over one track (1.4 to 3.2 ms with a mean of 1.9;
//! Clockwise thesis, section 4.3.2).
//!
//! Invariants: at least one point; distances rise; nothing is below zero.

use crate::error::ensure;
use crate::random::Random;
use crate::{Error, SeekCurve};
use alloc::vec::Vec;
use units::Duration;

/// No seek takes a minute,
const TIME_BELOW: Duration = Duration::from_secs(60);
/// and no disk has so many cylinders.
const DISTANCE_MAX: u64 = 100_000_000;

/// What is known of one distance, in nanoseconds; straight lines in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Knot {
    distance: u64,
    mean: u64,
    below: u64,
    above: u64,
}

/// A seek curve with its spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arm {
    knots: Vec<Knot>,
}

/// The value at `distance` of a line through two points; no product leaves 64
/// bits for times below [`TIME_BELOW`] and distances up to [`DISTANCE_MAX`].
fn between(distance: u64, (near, from): (u64, u64), (far, to): (u64, u64)) -> u64 {
    let part = |rise: u64| (rise * (distance - near)).div_ceil(far - near);
    if to >= from { from + part(to - from) } else { from - part(from - to) }
}

/// One of the three lines of an arm, or of the points that it is made of.
fn line(points: &[(u64, u64)], distance: u64) -> u64 {
    let after = points.partition_point(|&(d, _)| d < distance);
    match (after.checked_sub(1).map(|index| points[index]), points.get(after)) {
        (None, Some(&(_, first))) => first,
        (Some((_, last)), None) => last,
        (Some(near), Some(&far)) => between(distance, near, far),
        (None, None) => 0,
    }
}

impl Arm {
    /// A curve of `means` and the `spread` around it: distance, how much less,
    /// how much more.
    ///
    /// # Errors
    /// Says which point breaks an invariant of the type.
    pub fn new(
        means: &[(u64, Duration)],
        spread: &[(u64, Duration, Duration)],
    ) -> Result<Self, Error> {
        ensure!(!means.is_empty(), "seek has no points; give at least [1, time]");
        let times = means.iter().map(|&(_, time)| time);
        let times = times.chain(spread.iter().flat_map(|&(_, below, above)| [below, above]));
        let distances = means.iter().map(|&(d, _)| d).chain(spread.iter().map(|&(d, ..)| d));
        ensure!(
            times.max() < Some(TIME_BELOW) && distances.max() <= Some(DISTANCE_MAX),
            "seek and seek_spread are over {DISTANCE_MAX} cylinders at the most, and take less \
             than {TIME_BELOW}"
        );
        let of = |points: Vec<(u64, Duration)>| -> Vec<(u64, u64)> {
            points.into_iter().map(|(d, time)| (d, time.as_nanos())).collect()
        };
        let mean = of(means.to_vec());
        let below = of(spread.iter().map(|&(d, below, _)| (d, below)).collect());
        let above = of(spread.iter().map(|&(d, _, above)| (d, above)).collect());
        for (what, points) in [("seek", &mean), ("seek_spread", &above)] {
            for pair in points.windows(2) {
                let (near, far) = (pair[0].0, pair[1].0);
                ensure!(near < far, "{what} distances must rise; {far} follows {near}");
            }
        }
        let mut distances: Vec<u64> = mean.iter().chain(&above).map(|&(d, _)| d).collect();
        distances.sort_unstable();
        distances.dedup();
        let knots: Vec<Knot> = distances
            .into_iter()
            .map(|d| Knot {
                distance: d,
                mean: line(&mean, d),
                below: line(&below, d),
                above: line(&above, d),
            })
            .collect();
        for knot in &knots {
            ensure!(
                knot.below <= knot.mean && knot.mean + knot.above < TIME_BELOW.as_nanos(),
                "a seek over {} cylinders is below zero or above a minute; mend seek and \
                 seek_spread there",
                knot.distance
            );
        }
        Ok(Self { knots })
    }

    fn at(&self, distance: u64) -> Knot {
        let after = self.knots.partition_point(|knot| knot.distance < distance);
        let Some(&far) = self.knots.get(after) else {
            return self.knots[after - 1];
        };
        if after == 0 || far.distance == distance {
            return far;
        }
        let near = self.knots[after - 1];
        let value =
            |from: u64, to: u64| between(distance, (near.distance, from), (far.distance, to));
        Knot {
            distance,
            mean: value(near.mean, far.mean),
            below: value(near.below, far.below),
            above: value(near.above, far.above),
        }
    }

    /// A seek over `distance`, varied by `random`.
    pub fn time(&self, distance: u64, random: &mut Random) -> Duration {
        let knot = self.at(distance);
        if knot.below + knot.above == 0 {
            return Duration::from_nanos(knot.mean);
        }
        // The side below is as likely as the one above is wide: the mean stays.
        let ns = if random.below(knot.below + knot.above) < knot.above {
            knot.mean.saturating_sub(random.below(knot.below + 1))
        } else {
            knot.mean + random.below(knot.above + 1)
        };
        Duration::from_nanos(ns)
    }

    /// The mean over `distance`.
    pub fn mean(&self, distance: u64) -> Duration {
        Duration::from_nanos(self.at(distance).mean)
    }

    /// The shortest seek over `distance`.
    pub fn least(&self, distance: u64) -> Duration {
        let knot = self.at(distance);
        Duration::from_nanos(knot.mean.saturating_sub(knot.below))
    }

    /// The longest seek over `distance`.
    pub fn most(&self, distance: u64) -> Duration {
        let knot = self.at(distance);
        Duration::from_nanos(knot.mean + knot.above)
    }

    /// The longest seek over `distance` or less.
    pub fn longest(&self, distance: u64) -> Duration {
        let knots = self.knots.iter().filter(|knot| knot.distance <= distance);
        let inner = knots.map(|knot| knot.mean + knot.above).max().unwrap_or(0);
        self.most(distance).max(Duration::from_nanos(inner))
    }

    /// A curve that no seek exceeds, however it varies and though the distance is
    /// only known to within `slack` cylinders. `still` is the time to go nowhere.
    pub fn bound(&self, still: Duration, slack: u64) -> Result<SeekCurve, Error> {
        let start = if slack == 0 { still } else { still.max(self.longest(slack)) };
        let mut points = Vec::from([(0, start)]);
        for knot in self.knots.iter().filter(|knot| knot.distance > slack) {
            let top = points.last().expect("there is a first point").1;
            let time = Duration::from_nanos(knot.mean + knot.above).max(top);
            points.push((knot.distance - slack, time));
        }
        SeekCurve::new(points)
    }

    /// The arm of a disk with `cylinders` in the place of `of`: the same times
    /// over the same parts of the stroke. One cylinder keeps its time, so that
    /// reading from one cylinder to the next costs the same on both.
    pub fn scaled(&self, cylinders: u64, of: u64) -> Self {
        let mut knots: Vec<Knot> = Vec::with_capacity(self.knots.len());
        for knot in &self.knots {
            let scaled = u128::from(knot.distance) * u128::from(cylinders) / u128::from(of);
            let distance = u64::try_from(scaled).expect("no longer than before").max(1);
            match knots.last_mut() {
                Some(last) if last.distance == distance && distance > 1 => {
                    *last = Knot { distance, ..*knot };
                }
                Some(last) if last.distance == distance => {}
                _ => knots.push(Knot { distance, ..*knot }),
            }
        }
        Self { knots }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn a_third_of_the_stroke_costs_the_same_on_a_disk_with_fewer_cylinders() {
        let means = [(1, us(100)), (3_000, us(900)), (9_000, us(2_000))];
        let small = Arm::new(&means, &[]).unwrap().scaled(90, 9_000);
        for (distance, time) in [(1, 100), (30, 900), (90, 2_000)] {
            assert_eq!(small.mean(distance), us(time));
        }
    }

    #[test]
    fn seeks_stay_between_their_extremes_and_keep_their_mean() {
        let arm = Arm::new(&[(1, us(1_900))], &[(1, us(500), us(1_300))]).unwrap();
        let (mut random, mut total) = (Random::new(1), Duration::ZERO);
        let (mut least, mut most) = (Duration::MAX, Duration::ZERO);
        for _ in 0..100_000 {
            let time = arm.time(1, &mut random);
            (least, most) = (least.min(time), most.max(time));
            total += time;
        }
        let mean = total / 100_000;
        assert!(mean > us(1_895) && mean < us(1_905), "{mean}");
        assert!(least >= us(1_400) && least < us(1_402), "{least}");
        assert!(most <= us(3_200) && most > us(3_198), "{most}");
        assert_eq!((arm.least(1), arm.most(1)), (us(1_400), us(3_200)));
    }

    #[test]
    fn a_bound_rises_and_covers_every_seek_within_its_slack() {
        let means = [(1, us(600)), (6, us(1_400)), (7, us(1_300)), (400, us(4_000))];
        let arm = Arm::new(&means, &[(1, us(10), us(10)), (400, us(100), us(900))]).unwrap();
        for slack in [0, 1, 3] {
            let bound = arm.bound(us(200), slack).unwrap();
            for distance in 0..500u64 {
                for real in distance.saturating_sub(slack)..=distance + slack {
                    let most = if real == 0 { us(200) } else { arm.most(real) };
                    assert!(bound.time(distance) >= most, "{distance} {real} {slack}");
                }
            }
        }
    }

    #[test]
    fn arms_that_nobody_built_are_refused() {
        assert!(Arm::new(&[], &[]).is_err());
        assert!(Arm::new(&[(2, us(1)), (2, us(2))], &[]).is_err());
        assert!(Arm::new(&[(2, us(1))], &[(1, us(2), us(0))]).is_err());
    }
}
