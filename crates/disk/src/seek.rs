//! How long the arm takes over a distance.

use crate::Error;
use crate::error::ensure;
use crate::text::{Points, Text};
use alloc::vec::Vec;
use units::Duration;

/// Seek time by distance: points joined by straight lines, rounded up to a
/// nanosecond; constant after the last point.
///
/// Invariants: at least one point; distances rise; times never fall. So the
/// longest seek of a set of distances is that of the longest distance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekCurve {
    points: Vec<(u64, Duration)>,
}

impl SeekCurve {
    /// A curve through `points`, each a distance in cylinders and its time.
    ///
    /// # Errors
    /// Says which point breaks an invariant of the type.
    pub fn new(points: Vec<(u64, Duration)>) -> Result<Self, Error> {
        ensure!(!points.is_empty(), "seek has no points; give at least [1, time]");
        for pair in points.windows(2) {
            let ((near, short), (far, long)) = (pair[0], pair[1]);
            ensure!(near < far, "seek distances must rise; {far} follows {near}");
            ensure!(
                short <= long,
                "a longer seek cannot be quicker; give {far} cylinders at least {short}, as {near}"
            );
        }
        Ok(Self { points })
    }

    /// The points of the curve.
    pub fn points(&self) -> &[(u64, Duration)] {
        &self.points
    }

    /// The time over `distance` cylinders; that of the first point for less.
    pub fn time(&self, distance: u64) -> Duration {
        let after = self.points.partition_point(|&(d, _)| d < distance);
        if after == 0 {
            return self.points[0].1;
        }
        let (near, short) = self.points[after - 1];
        let Some(&(far, long)) = self.points.get(after) else {
            return short;
        };
        let rise = u128::from((long - short).as_nanos()) * u128::from(distance - near);
        let rise = rise.div_ceil(u128::from(far - near));
        short + Duration::from_nanos(u64::try_from(rise).expect("less than the longer seek"))
    }

    /// The curve of a disk with `cylinders` in the place of `of`: the same times
    /// over the same parts of the stroke. One cylinder keeps its time, so that
    /// reading from one cylinder to the next costs the same on both.
    pub(crate) fn scaled(&self, cylinders: u64, of: u64) -> Self {
        let mut points: Vec<(u64, Duration)> = Vec::with_capacity(self.points.len());
        for &(distance, time) in &self.points {
            let scaled = u128::from(distance) * u128::from(cylinders) / u128::from(of);
            let distance = u64::try_from(scaled).expect("no longer than before").max(1);
            match points.last_mut() {
                Some(last) if last.0 == distance && distance > 1 => last.1 = time,
                Some(last) if last.0 == distance => {}
                _ => points.push((distance, time)),
            }
        }
        Self { points }
    }

    pub(crate) fn parse(points: Points) -> Result<Self, Error> {
        Self::new(points.into_iter().map(|(d, Text(time))| (d, time)).collect())
    }

    pub(crate) fn text(&self) -> Points {
        self.points.iter().map(|&(d, time)| (d, Text(time))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn a_curve_goes_through_its_points_and_rises_between_them() {
        let curve = SeekCurve::new(vec![(1, us(100)), (11, us(200)), (21, us(250))]).unwrap();
        let expected = [(0, 100), (1, 100), (6, 150), (11, 200), (12, 205), (21, 250), (99, 250)];
        for (distance, time) in expected {
            assert_eq!(curve.time(distance), us(time), "{distance}");
        }
    }

    #[test]
    fn a_third_of_the_stroke_costs_the_same_on_a_disk_with_fewer_cylinders() {
        let curve = SeekCurve::new(vec![(1, us(100)), (3_000, us(900)), (9_000, us(2_000))]);
        let small = curve.unwrap().scaled(90, 9_000);
        assert_eq!(small.points(), [(1, us(100)), (30, us(900)), (90, us(2_000))]);
    }

    #[test]
    fn curves_that_no_arm_follows_are_refused() {
        for points in [vec![], vec![(2, us(1)), (2, us(2))], vec![(1, us(2)), (2, us(1))]] {
            assert!(SeekCurve::new(points).is_err());
        }
    }
}
