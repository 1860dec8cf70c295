//! How far a program and its node are in a window that they share (`window.rs`).

use units::Bytes;

/// How far a program and its node are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    /// Everything before this was told.
    pub told: Bytes,
    /// The program is done with everything before this.
    pub program: Bytes,
    /// The playout point.
    pub point: Bytes,
    /// The playout point could not follow at once, and has been counted for it.
    pub lags: bool,
    /// A reader's program waits, and had more than its rate when it said so.
    pub waits: bool,
    /// What a ring gave up and the program was told as gaps, from here to there; the playout point
    /// passes it for nothing.
    pub gap: (Bytes, Bytes),
}

impl Shared {
    pub(crate) fn new(at: Bytes) -> Self {
        Self { told: at, program: at, point: at, lags: false, waits: false, gap: (at, at) }
    }

    /// The program is told that these bytes were given up. One gap counts at a time: where another
    /// is not passed yet, all before this one passes at the rate.
    pub(crate) fn skips(&mut self, from: Bytes, to: Bytes) {
        self.gap = if self.gap.1 == from { (self.gap.0, to) } else { (from, to) };
    }

    /// The playout point, or the end of the gap that it is in, as far as the program is.
    pub(crate) fn behind_gap(&self) -> Bytes {
        let (from, to) = self.gap;
        if from <= self.point && self.point < to { to.min(self.program) } else { self.point }
    }

    /// Where the next gap begins that the program has come to.
    pub(crate) fn upto_gap(&self) -> Bytes {
        if self.point < self.gap.0 { self.gap.0.min(self.program) } else { self.program }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring may give up more before the program has come to the first: then all of it is one gap.
    #[test]
    fn gaps_one_behind_another_are_passed_as_one_as_far_as_the_program_is() {
        let mib = Bytes::mib;
        let mut shared = Shared::new(Bytes::ZERO);
        shared.program = mib(5);
        assert_eq!((shared.behind_gap(), shared.upto_gap()), (Bytes::ZERO, mib(5)));
        shared.skips(mib(1), mib(2));
        shared.skips(mib(2), mib(4));
        assert_eq!((shared.behind_gap(), shared.upto_gap()), (Bytes::ZERO, mib(1)));
        shared.point = mib(1);
        assert_eq!(shared.behind_gap(), mib(4));
        shared.program = mib(3);
        assert_eq!(shared.behind_gap(), mib(3));
        shared.skips(mib(6), mib(7));
        assert_eq!(shared.behind_gap(), mib(1), "one gap counts at a time");
    }
}
