//! The turning of a disk, as far as it is known: its period, and where in it an instant lies.

use super::statistics::centred;

/// Periods are kept in parts of a nanosecond: 2^-20.
pub(super) const FRACTION: u32 = 20;

/// Between two readings of one angle that agree.
pub(super) const AGREE_NS: i64 = 60_000;

/// The turning of a disk, followed.
pub(super) struct Turn {
    /// The sector at angle zero.
    pub reference: u64,
    /// In 2^-20 ns.
    pub period: i128,
    /// An instant at which the reference ended, smoothed.
    pub anchor: i64,
    /// Where the longest unbroken record began, and the turns since.
    pub base: i64,
    pub turns: i64,
    /// For how long turns were counted to get the period.
    pub baseline: i64,
    pub angles: u32,
    pub gaps: u64,
    /// Typical lateness of a completion beside the turn, in ns.
    pub noise: i64,
}

impl Turn {
    pub fn period(&self) -> i64 {
        ((self.period + (1 << (FRACTION - 1))) >> FRACTION) as i64
    }

    /// The relative error of the period, in parts per million, rounded up.
    pub fn uncertainty_ppm(&self) -> u64 {
        (self.noise.max(1) * 1_000_000 / self.baseline.max(1)).unsigned_abs() + 1
    }

    /// When in a turn an instant lies: 0 to a period.
    pub fn phase(&self, at: i64) -> i64 {
        let since = i128::from(at - self.anchor) << FRACTION;
        (since.rem_euclid(self.period) >> FRACTION) as i64
    }

    /// Takes another end of the reference; false where it does not fit.
    pub fn follow(&mut self, at: i64) -> bool {
        let off = centred(self.phase(at), self.period());
        if off.abs() > (4 * self.noise).max(AGREE_NS) {
            return false;
        }
        let since = i128::from(at - off - self.anchor) << FRACTION;
        let turns = (since + self.period / 2).div_euclid(self.period) as i64;
        self.turns += turns;
        self.anchor = at - off / 2;
        let record = self.anchor - self.base;
        if record > self.baseline && self.turns > 0 {
            self.period = (i128::from(record) << FRACTION) / i128::from(self.turns);
            self.baseline = record;
        }
        true
    }

    /// Begins a new record at an instant at which the reference ended.
    pub fn restart(&mut self, at: i64, gaps: u64) {
        (self.anchor, self.base, self.turns, self.gaps) = (at, at, 0, gaps);
    }
}
