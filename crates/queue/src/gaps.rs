//! What the host takes between two commands of a disk, measured for the schedule to charge.
//!
//! A gap is the time from when the device has ended its last command until it begins with
//! the next one, where that next one waited: the queue gave it out the first time that it
//! was asked after the end. Where it had nothing to give out, what follows is no gap but a
//! pause, and the wake-up that ends it is in the advance of the deadlines. A device that
//! has other commands left loses nothing by a gap, and none is counted.

use crate::measured::{HostTime, Measuring};
use units::{Duration, Instant};

/// Gaps as they are measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    /// Commands that the device has.
    with_device: u64,
    /// When the device had ended all of them; until the queue is asked what is next.
    emptied: Option<Instant>,
    /// The command that was given out then, and that end.
    behind: Option<(u64, Instant)>,
    /// The latest end.
    latest: Instant,
    measured: Measuring,
}

impl Gaps {
    /// `first` is stated as long as too little is measured.
    pub(crate) fn new(first: Duration) -> Self {
        Self { measured: Measuring::new(first), ..Self::default() }
    }

    /// The queue gives a command out to the device.
    pub(crate) fn given(&mut self, key: u64) {
        self.with_device += 1;
        if let Some(emptied) = self.emptied.take() {
            self.behind = Some((key, emptied));
        }
    }

    /// The queue has nothing to give out.
    pub(crate) fn nothing_given(&mut self) {
        self.emptied = None;
    }

    /// The device has ended a command, where `stated` is charged for each gap.
    pub(crate) fn ended(
        &mut self,
        key: u64,
        (started, ended): (Instant, Instant),
        stated: Duration,
    ) {
        if let Some((_, emptied)) = self.behind.take_if(|(behind, _)| *behind == key) {
            self.measured.record(ended, started.saturating_since(emptied), stated);
        }
        self.with_device = self.with_device.saturating_sub(1);
        self.latest = self.latest.max(ended);
        if self.with_device == 0 {
            self.emptied = Some(self.latest);
        }
    }

    /// As [`Measuring::pass`].
    pub(crate) fn pass(&mut self, now: Instant, stated: Duration) {
        self.measured.pass(now, stated);
    }

    /// As [`Measuring::due`].
    pub(crate) fn due(&self, stated: Duration) -> Option<Instant> {
        self.measured.due(stated)
    }

    /// As [`Measuring::take_wanted`].
    pub(crate) fn take_wanted(&mut self) -> Option<Duration> {
        self.measured.take_wanted()
    }

    /// As [`Measuring::is_another_wanted`].
    pub(crate) fn is_another_wanted(&self) -> bool {
        self.measured.is_another_wanted()
    }

    pub(crate) fn seen(&self, stated: Duration) -> HostTime {
        self.measured.seen(stated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// A device of one command that takes 100 us each, and a host.
    struct Host {
        gaps: Gaps,
        now: Instant,
        key: u64,
        stated: Duration,
    }

    impl Host {
        fn new() -> Self {
            let (gaps, now) = (Gaps::default(), Instant::EPOCH);
            Self { gaps, now, key: 0, stated: Duration::ZERO }
        }

        /// One command begins `gap` after the last, and ends.
        fn serve(&mut self, gap: Duration) {
            self.key += 1;
            self.gaps.given(self.key);
            let started = self.now + gap;
            self.now = started + us(100);
            self.gaps.ended(self.key, (started, self.now), self.stated);
            if let Some(wanted) = self.gaps.take_wanted() {
                self.stated = wanted;
            }
        }
    }

    #[test]
    fn a_gap_is_stated_by_the_quantile_of_enough_of_them_and_not_by_the_largest() {
        let mut host = Host::new();
        (0..GAPS_LEAST).for_each(|_| host.serve(us(40)));
        assert_eq!(host.stated, Duration::ZERO, "one gap less than commands: too few");
        // A host that stopped once in 2,000 times.
        (0..4_000).for_each(|at| host.serve(us(if at % 2_000 == 7 { 90_000 } else { 40 })));
        let seen = host.gaps.seen(host.stated);
        assert!((us(40)..us(43)).contains(&seen.quantile), "{seen:?}");
        assert!((us(50)..us(54)).contains(&seen.stated), "{seen:?}");
        assert!(seen.beyond_max >= us(89_900), "{seen:?}");
        assert_eq!(seen.sample, GAPS_LEAST + 4_000 - 1);
        // All before the first look, and the two stops.
        assert_eq!(seen.beyond, GAPS_LEAST + 2, "{seen:?}");
        let of_stops = seen.beyond_total - us(40) * GAPS_LEAST;
        assert!((us(179_800)..us(180_000)).contains(&of_stops), "{seen:?}");
    }

    #[test]
    fn more_is_stated_at_once_and_less_when_two_spells_have_gone() {
        let mut host = Host::new();
        host.stated = us(100);
        (0..GAPS_LEAST + 1).for_each(|_| host.serve(us(400)));
        let stated = host.stated;
        assert!(stated >= us(500), "{stated}");
        (0..GAPS_SPELL).for_each(|_| host.serve(us(10)));
        assert_eq!(host.stated, stated, "what was before still counts");
        (0..GAPS_SPELL * 2).for_each(|_| host.serve(us(10)));
        assert!(host.stated < us(14), "{}", host.stated);
        // Never more than makes sense.
        (0..GAPS_LEAST * 2).for_each(|_| host.serve(us(700_000)));
        assert_eq!(host.stated, GAP_MAX);
        assert!(!host.gaps.is_another_wanted());
    }

    #[test]
    fn a_pause_is_no_gap_and_a_device_with_other_commands_has_none() {
        let mut gaps = Gaps::default();
        let at = |us| Instant::EPOCH + Duration::from_micros(us);
        gaps.given(1);
        gaps.ended(1, (at(0), at(10)), us(1));
        gaps.nothing_given();
        gaps.given(2);
        gaps.given(3);
        gaps.ended(2, (at(500), at(600)), us(1));
        // The device has one left when the next begins.
        gaps.given(4);
        gaps.ended(3, (at(501), at(700)), us(1));
        gaps.ended(4, (at(650), at(800)), us(1));
        assert_eq!(gaps.seen(us(1)).sample, 0);
        // It is empty now, and the next one waited.
        gaps.given(5);
        gaps.ended(5, (at(803), at(900)), us(1));
        let seen = gaps.seen(us(1));
        assert_eq!((seen.sample, seen.beyond, seen.beyond_max), (1, 1, us(2)));
    }
}
