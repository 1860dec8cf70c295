//! The seek curve in two phases, as the literature writes it (Ruemmler and Wilkes
//! 1994; Clockwise thesis, section 4.3.1): `a + b * sqrt(d)` for short distances,
//! where the arm never gets to its full speed, and `c + e * d` beyond.
//!
//! Least squares on each side of every possible bend; the bend with the least
//! squares of all is taken. Whole numbers throughout.

use super::findings::{Findings, SeekPoint};
use alloc::vec::Vec;
use units::Duration;

/// Fewer points on a side tell nothing of a line.
const POINTS_MIN: usize = 4;
/// Roots and slopes are kept in parts of 2^-12.
const FRACTION: u32 = 12;

/// The curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoPhase {
    /// Distances up to here are short; cylinders.
    pub bend: u64,
    /// `a`, in nanoseconds; may be below zero, since no arm moves by nothing.
    pub short_fixed: i64,
    /// `b`, in nanoseconds for a root of a cylinder.
    pub short_root: i64,
    /// `c`, in nanoseconds.
    pub long_fixed: i64,
    /// `e`, in nanoseconds for a thousand cylinders.
    pub long_thousand: i64,
    /// The largest distance of a point from the curve.
    pub off_most: Duration,
}

/// A straight line through points: value at zero, slope in 2^-12, squares of what it
/// is off.
fn line(points: &[(i128, i128)]) -> (i128, i128, i128) {
    let n = points.len() as i128;
    let mean_x = points.iter().map(|p| p.0).sum::<i128>() / n;
    let mean_y = points.iter().map(|p| p.1).sum::<i128>() / n;
    let product = |p: &(i128, i128)| (p.0 - mean_x) * (p.1 - mean_y);
    let square = |p: &(i128, i128)| (p.0 - mean_x).pow(2);
    let spread = points.iter().map(square).sum::<i128>().max(1);
    let slope = (points.iter().map(product).sum::<i128>() << FRACTION) / spread;
    let fixed = mean_y - ((slope * mean_x) >> FRACTION);
    let off = |p: &(i128, i128)| (p.1 - fixed - ((slope * p.0) >> FRACTION)).pow(2);
    (fixed, slope, points.iter().map(off).sum())
}

impl TwoPhase {
    /// The curve of these points, by rising distance; none of too few.
    pub(super) fn of(seeks: &[SeekPoint]) -> Option<Self> {
        let ns = |point: &SeekPoint| i128::from(point.mean.as_nanos());
        let root = |point: &SeekPoint| (u128::from(point.distance) << (2 * FRACTION)).isqrt();
        let roots: Vec<_> = seeks.iter().map(|point| (root(point) as i128, ns(point))).collect();
        let plain: Vec<_> =
            seeks.iter().map(|point| (i128::from(point.distance), ns(point))).collect();
        let bends = POINTS_MIN..(seeks.len() + 1).saturating_sub(POINTS_MIN);
        let fits = bends.map(|bend| (bend, line(&roots[..bend]), line(&plain[bend..])));
        let (bend, short, long) = fits.min_by_key(|(_, short, long)| short.2 + long.2)?;
        let (a, b, c, e) = (short.0, short.1, long.0, long.1);
        let whole = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
        let off = |index: usize| {
            let curve = match index < bend {
                true => a + ((b * roots[index].0) >> FRACTION),
                false => c + ((e * plain[index].0) >> FRACTION),
            };
            (curve - plain[index].1).unsigned_abs() as u64
        };
        Some(Self {
            bend: seeks[bend - 1].distance,
            short_fixed: whole(a),
            // A root is kept in parts, and so is the slope by it.
            short_root: whole(b),
            long_fixed: whole(c),
            long_thousand: whole((e * 1_000) >> FRACTION),
            off_most: Duration::from_nanos((0..seeks.len()).map(off).max().unwrap_or(0)),
        })
    }
}

impl core::fmt::Display for TwoPhase {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let us = |ns: i64| ns / 1_000;
        write!(
            f,
            "{} us + {} us * sqrt(d) up to {} cylinders, {} us + {} us * d / 1000 beyond",
            us(self.short_fixed),
            us(self.short_root),
            self.bend,
            us(self.long_fixed),
            us(self.long_thousand)
        )
    }
}

impl Findings {
    /// The seek curve in two phases, where seeks were measured.
    pub fn two_phase(&self) -> Option<TwoPhase> {
        TwoPhase::of(&self.mechanics.as_ref()?.seeks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(distance: u64, ns: u64) -> SeekPoint {
        let time = Duration::from_nanos(ns);
        let deviation = Duration::ZERO;
        SeekPoint { distance, mean: time, deviation, low: time, high: time, reads: 1 }
    }

    #[test]
    fn a_curve_of_two_phases_is_found_again() {
        let truth = |d: u64| match d <= 400 {
            true => 800_000 + 100_000 * (d << 20).isqrt() / 1_024,
            false => 2_000_000 + 2_000 * d,
        };
        let distances = (0..30).map(|n| 1 + n * n * 6);
        let seeks: Vec<_> = distances.map(|d| point(d, truth(d))).collect();
        let found = TwoPhase::of(&seeks).unwrap();
        assert!((300..=500).contains(&found.bend), "{found:?}");
        for (value, wanted) in [
            (found.short_fixed, 800_000),
            (found.short_root, 100_000),
            (found.long_fixed, 2_000_000),
            (found.long_thousand, 2_000_000),
        ] {
            assert!((value - wanted).abs() * 100 < wanted, "{found:?}");
        }
        assert!(found.off_most < Duration::from_micros(10), "{found:?}");
        assert_eq!(TwoPhase::of(&seeks[..7]), None, "too few");
    }
}
