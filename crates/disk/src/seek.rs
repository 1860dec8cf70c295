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
        let (rise, along, whole) = ((long - short).as_nanos(), distance - near, far - near);
        let rise = match rise.checked_mul(along) {
            Some(product) => product.div_ceil(whole),
            None => {
                let product = u128::from(rise) * u128::from(along);
                let part = product.div_ceil(u128::from(whole));
                u64::try_from(part).expect("less than the longer seek")
            }
        };
        short + Duration::from_nanos(rise)
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
    fn curves_that_no_arm_follows_are_refused() {
        for points in [vec![], vec![(2, us(1)), (2, us(2))], vec![(1, us(2)), (2, us(1))]] {
            assert!(SeekCurve::new(points).is_err());
        }
    }
}
