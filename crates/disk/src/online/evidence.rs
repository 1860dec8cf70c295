//! Whether more commands exceed their bounds than a profile states.
//!
//! A sequential test (Page 1954): each command adds the logarithm of how much likelier
//! it is where three times the stated share exceed their bounds than where the stated
//! share does; the sum is kept from falling below zero, so that a long good past does
//! not excuse a disk that has changed. While no more than the stated share exceed, each
//! independently of the others, it takes more than 10^9 commands on average to reach
//! the limit by chance (Lorden 1971).

/// In millionths: ln 3, and ln(0.999 / 0.997).
const OVER: u64 = 1_098_612;
const WITHIN: u64 = 2_004;
/// ln 10^9 in millionths.
const ALARM: u64 = 20_723_266;
/// Beyond this nothing is learned, so that a disk that keeps its bounds again is
/// believed again after some ten thousand commands.
const MOST: u64 = 2 * ALARM;

#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    pub commands: u64,
    pub overruns: u64,
    sum: u64,
    /// Commands and overruns since the sum last left zero: since the change, if any.
    since: [u64; 2],
}

impl Evidence {
    pub(super) fn add(&mut self, over: bool) {
        self.commands += 1;
        self.overruns += u64::from(over);
        if over {
            self.sum = (self.sum + OVER).min(MOST);
        } else {
            self.sum = self.sum.saturating_sub(WITHIN);
        }
        self.since = match self.sum {
            0 => [0, 0],
            _ => [self.since[0] + 1, self.since[1] + u64::from(over)],
        };
    }

    /// The share of late, in parts per million, where it is too large.
    pub(super) fn alarm(&self) -> Option<u64> {
        let [commands, overruns] = self.since;
        let ppm = u128::from(overruns) * 1_000_000 / u128::from(commands.max(1));
        (self.sum > ALARM).then_some(ppm as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// After how many commands, of which so many in a million exceed, there is an alarm.
    fn alarm_after(seed: u64, ppm: u64, most: u64) -> Option<u64> {
        let (mut evidence, mut random) = (Evidence::default(), Random::new(seed));
        (1..=most).find(|_| {
            evidence.add(random.below(1_000_000) < ppm);
            evidence.alarm().is_some()
        })
    }

    #[test]
    fn the_stated_share_is_believed_and_three_times_as_much_is_not() {
        for seed in 0..20 {
            assert_eq!(alarm_after(seed, 1_000, 500_000), None, "{seed}");
            let thrice = alarm_after(seed, 3_000, 100_000).expect("an alarm");
            assert!(thrice > 1_000, "{seed}: {thrice}");
            assert!(alarm_after(seed, 12_000, 5_000).is_some(), "{seed}");
        }
    }

    #[test]
    fn a_few_overruns_decide_nothing_and_a_long_good_past_excuses_nothing() {
        let mut evidence = Evidence::default();
        (0..18).for_each(|_| evidence.add(true));
        assert_eq!(evidence.alarm(), None);
        (0..1_000_000).for_each(|_| evidence.add(false));
        let after = (1..).find(|_| {
            evidence.add(true);
            evidence.alarm().is_some()
        });
        assert_eq!((after, evidence.alarm()), (Some(19), Some(1_000_000)));
        let back = (1..).find(|_| {
            evidence.add(false);
            evidence.alarm().is_none()
        });
        assert!(back.unwrap() < 20_000, "{back:?}");
    }
}
