//! What the host takes each time, measured to be charged: a value that 999 of 1,000 of the
//! latest times do not exceed, and a quarter on top.
//!
//! More is asked for as soon as enough times say so, less when a whole spell does. A spell ends
//! after so many times, or so long: a trouble of the host's is forgotten after two, whether it
//! could be charged or not, and also where nothing is measured any more. What is asked for then
//! is what the calmest of the spells with enough times took, where there were two of them, and else
//! the first value.

use crate::limits::*;
use units::{Distribution, Duration, Instant};

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
    /// By how much all of them together.
    pub beyond_total: Duration,
}

/// The measurement.
#[derive(Clone, Debug, Default)]
pub struct Measuring {
    /// What is charged before anything is measured.
    first: Duration,
    /// Those of the spell that runs, and of the one before it.
    spells: [Distribution; 2],
    /// When the spell that runs began; none where both have nothing.
    began: Option<Instant>,
    /// The one before it was whole.
    has_whole: bool,
    /// Spells that had enough times, and what was to be stated for the calmest of them.
    calm: (u64, Duration),
    beyond: u64,
    beyond_max: Duration,
    beyond_total: Duration,
    /// What is to be stated from now on.
    wanted: Option<Duration>,
    /// More than was stated was wanted at the last look.
    wanted_more: bool,
}

impl Measuring {
    /// Nothing is measured yet, and this is charged.
    pub fn new(first: Duration) -> Self {
        Self { first, ..Self::default() }
    }

    /// It took so long, while `stated` was charged.
    pub fn record(&mut self, now: Instant, took: Duration, stated: Duration) {
        self.pass(now, stated);
        self.beyond += u64::from(took > stated);
        let longer = took.saturating_sub(stated);
        self.beyond_max = self.beyond_max.max(longer);
        self.beyond_total = self.beyond_total.saturating_add(longer);
        if self.spells[0].count() == GAPS_SPELL {
            self.turn(now);
        }
        self.began.get_or_insert(now);
        self.spells[0].record(took);
        if self.spells[0].count().is_multiple_of(GAPS_LOOK) {
            self.look(stated);
        }
    }

    /// It is `now`, while `stated` is charged: a spell that has run for long enough is whole,
    /// however little it has.
    pub fn pass(&mut self, now: Instant, stated: Duration) {
        let Some(began) = self.began else { return };
        let ran = now.saturating_since(began);
        if ran < GAPS_SPELL_TIME {
            return;
        }
        self.turn(began.saturating_add(GAPS_SPELL_TIME));
        if ran >= GAPS_SPELL_TIME * 2 {
            self.turn(now);
        }
        self.look(stated);
        if self.spells.iter().all(|spell| spell.count() == 0) {
            (self.began, self.has_whole) = (None, false);
        }
    }

    /// When [`Measuring::pass`] may say that less than `stated` is to be charged, or than was
    /// asked for.
    pub fn due(&self, stated: Duration) -> Option<Instant> {
        let may = self.wanted_more || stated > self.least();
        self.began.filter(|_| may).map(|began| began.saturating_add(GAPS_SPELL_TIME))
    }

    /// The spell that runs is whole, and another one begins.
    fn turn(&mut self, now: Instant) {
        if self.spells[0].count() >= GAPS_LEAST {
            let own = with_margin(self.spells[0].quantile(GAP_QUANTILE_PPM));
            let (spells, calm) = self.calm;
            self.calm = (spells + 1, if spells == 0 { own } else { calm.min(own) });
        }
        self.spells.swap(0, 1);
        self.spells[0] = Distribution::default();
        (self.began, self.has_whole) = (Some(now), true);
    }

    /// What is charged at least, as long as too little was measured lately. One spell alone may
    /// have been the bad one.
    fn least(&self) -> Duration {
        let (spells, calm) = self.calm;
        if spells > 1 { calm } else { self.first }
    }

    fn look(&mut self, stated: Duration) {
        let wanted = self.wanted(stated);
        // What was asked for may have been refused, and is not needed any more.
        let is_calm = wanted.is_none() && self.wanted_more;
        self.wanted_more = wanted.is_some_and(|wanted| wanted > stated);
        self.wanted = if is_calm { Some(stated) } else { wanted };
    }

    fn wanted(&self, stated: Duration) -> Option<Duration> {
        // Of too few times the quantile is the largest.
        let (quantile, sample) = self.quantile();
        let is_enough = sample >= GAPS_LEAST;
        let least = if is_enough { Duration::ZERO } else { self.least() };
        let enough = with_margin(quantile).max(least);
        let is_longer = (is_enough || self.has_whole) && quantile.min(GAP_MAX) > stated;
        // Less is stated only when a whole spell says so.
        let has_whole = self.has_whole || sample >= GAPS_SPELL;
        let is_shorter = has_whole && enough < stated / 2;
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
        let Self { beyond, beyond_max, beyond_total, .. } = *self;
        HostTime { stated, quantile, sample, beyond, beyond_max, beyond_total }
    }
}

/// What is to be stated where the times are of this quantile.
fn with_margin(quantile: Duration) -> Duration {
    quantile.saturating_add(quantile * GAP_MARGIN_PERCENT / 100).min(GAP_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const STATED: Duration = Duration::from_micros(100);
    const LONG: Duration = Duration::from_millis(3);
    const SHORT: Duration = Duration::from_micros(60);

    /// Whoever was refused more hears when that is not needed any more.
    #[test]
    fn what_was_refused_is_taken_back_when_the_host_is_calm_again() {
        let (mut measured, now) = (Measuring::new(STATED), Instant::EPOCH);
        (0..GAPS_LEAST).for_each(|_| measured.record(now, LONG, STATED));
        assert!(measured.take_wanted() > Some(LONG));
        let said = |measured: &mut Measuring| {
            (0..GAPS_SPELL * 2).find_map(|_| {
                measured.record(now, SHORT, STATED);
                measured.take_wanted().filter(|&wanted| wanted <= STATED)
            })
        };
        assert_eq!(said(&mut measured), Some(STATED));
        assert_eq!(said(&mut measured), None, "said once");
    }

    /// What is said as time passes: at which instants, what.
    fn passes(measured: &mut Measuring, stated: Duration) -> Vec<(u64, Duration)> {
        let mut said = Vec::new();
        let mut latest = Instant::EPOCH;
        while let Some(due) = measured.due(stated) {
            assert!(due > latest, "time goes on");
            latest = due;
            measured.pass(due, stated);
            said.extend(measured.take_wanted().map(|wanted| (due.as_nanos(), wanted)));
        }
        said
    }

    /// One bad minute, and then nothing is asked of the disk: nothing is measured any more.
    #[test]
    fn what_nothing_confirms_any_more_is_forgotten_after_two_spells() {
        let (bad, after) = (Instant::EPOCH, |spells| (GAPS_SPELL_TIME * spells).as_nanos());
        let mut refused = Measuring::new(STATED);
        (0..GAPS_LEAST).for_each(|_| refused.record(bad, LONG, STATED));
        let wanted = refused.take_wanted().expect("more than is stated");
        // The first of the two spells still says so.
        assert_eq!(passes(&mut refused, STATED), [(after(1), wanted), (after(2), STATED)]);
        assert_eq!(refused.seen(STATED).sample, 0);

        let mut charged = Measuring::new(STATED);
        (0..GAPS_LEAST).for_each(|_| charged.record(bad, LONG, STATED));
        let stated = charged.take_wanted().expect("more than is stated");
        charged.look(stated); // it is charged
        charged.take_wanted();
        assert_eq!(passes(&mut charged, stated), [(after(2), STATED)]);

        // Of two spells the calmer one is what is known of the host, whatever the first value was.
        let mut charged = Measuring::new(STATED);
        (0..GAPS_SPELL).for_each(|_| charged.record(bad, SHORT, STATED));
        (0..GAPS_LEAST).for_each(|_| charged.record(bad, LONG, STATED));
        let stated = charged.take_wanted().expect("more than is stated");
        assert_eq!(
            passes(&mut charged, stated),
            [(after(1), stated), (after(2), with_margin(SHORT))]
        );
        assert_eq!(charged.due(with_margin(SHORT)), None);
    }

    /// A disk with little to do: of so few times the longest counts, for as long as its spell does.
    #[test]
    fn of_a_spell_of_few_times_the_longest_counts() {
        let mut measured = Measuring::new(STATED);
        let at = |seconds| Instant::EPOCH + Duration::from_secs(seconds);
        let longest = |seconds| if seconds == 300 { LONG } else { SHORT };
        let mut said = Vec::new();
        let mut stated = STATED;
        for seconds in (0..2_400).step_by(60) {
            measured.record(at(seconds), longest(seconds), stated);
            if let Some(wanted) = measured.take_wanted() {
                said.push((seconds, wanted));
                stated = wanted;
            }
        }
        assert_eq!(said, [(600, with_margin(LONG)), (1_200, STATED)]);
    }
}
