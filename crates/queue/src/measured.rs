//! What the host takes each time, measured to be charged: a value that 999 of 1,000 of the
//! latest times do not exceed, and a quarter on top.
//!
//! More is asked for as soon as enough times say so, less when a whole spell does. A trouble of
//! the host's is forgotten after two spells, whether it could be charged or not.

use crate::limits::*;
use units::{Distribution, Duration};

/// What is charged for something that the host takes each time, and what was measured of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HostTime {
    /// What is charged.
    pub stated: Duration,
    /// What 999 in 1,000 of the sample do not exceed.
    pub quantile: Duration,
    /// How many that is of: the latest ones.
    pub sample: u64,
    /// Times that were longer than what was stated then, since measuring began.
    pub beyond: u64,
    /// By how much at the most.
    pub beyond_max: Duration,
}

/// The measurement.
#[derive(Clone, Debug, Default)]
pub struct Measuring {
    /// Those of the spell that runs, and of the one before it.
    spells: [Distribution; 2],
    beyond: u64,
    beyond_max: Duration,
    /// What is to be stated from now on.
    wanted: Option<Duration>,
    /// More than was stated was wanted at the last look.
    wanted_more: bool,
}

impl Measuring {
    /// It took so long, while `stated` was charged.
    pub fn record(&mut self, took: Duration, stated: Duration) {
        self.beyond += u64::from(took > stated);
        self.beyond_max = self.beyond_max.max(took.saturating_sub(stated));
        if self.spells[0].count() == GAPS_SPELL {
            self.spells.swap(0, 1);
            self.spells[0] = Distribution::default();
        }
        self.spells[0].record(took);
        if self.spells[0].count().is_multiple_of(GAPS_LOOK) {
            self.look(stated);
        }
    }

    fn look(&mut self, stated: Duration) {
        let wanted = self.wanted(stated);
        // What was asked for may have been refused, and is not needed any more.
        let is_calm = wanted.is_none() && self.wanted_more;
        self.wanted_more = wanted.is_some_and(|wanted| wanted > stated);
        self.wanted = if is_calm { Some(stated) } else { wanted };
    }

    fn wanted(&self, stated: Duration) -> Option<Duration> {
        let (quantile, sample) = self.quantile();
        let enough = quantile.saturating_add(quantile * GAP_MARGIN_PERCENT / 100).min(GAP_MAX);
        let is_longer = sample >= GAPS_LEAST && quantile.min(GAP_MAX) > stated;
        // Less is stated only when a whole spell says so.
        let is_shorter = sample >= GAPS_SPELL && enough < stated / 2;
        (is_longer || is_shorter).then_some(enough)
    }

    fn quantile(&self) -> (Duration, u64) {
        let mut all = self.spells[0].clone();
        all.merge(&self.spells[1]);
        (all.quantile(GAP_QUANTILE_PPM), all.count())
    }

    /// What is to be stated from now on, where that is another than is, or than was asked for
    /// before; said once.
    pub fn take_wanted(&mut self) -> Option<Duration> {
        self.wanted.take()
    }

    /// Whether [`Measuring::take_wanted`] has something to say.
    pub fn is_another_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// What is to be shown of it, while `stated` is charged.
    pub fn seen(&self, stated: Duration) -> HostTime {
        let (quantile, sample) = self.quantile();
        let (beyond, beyond_max) = (self.beyond, self.beyond_max);
        HostTime { stated, quantile, sample, beyond, beyond_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever was refused more hears when that is not needed any more.
    #[test]
    fn what_was_refused_is_taken_back_when_the_host_is_calm_again() {
        let (mut measured, stated) = (Measuring::default(), Duration::from_micros(100));
        let long = Duration::from_millis(3);
        (0..GAPS_LEAST).for_each(|_| measured.record(long, stated));
        assert!(measured.take_wanted() > Some(long));
        let short = Duration::from_micros(60);
        let said = |measured: &mut Measuring| {
            (0..GAPS_SPELL * 2).find_map(|_| {
                measured.record(short, stated);
                measured.take_wanted().filter(|&wanted| wanted <= stated)
            })
        };
        assert_eq!(said(&mut measured), Some(stated));
        assert_eq!(said(&mut measured), None, "said once");
    }
}
