//! The exact search: the least difference over all deadlines, and where it is.
//!
//! It generalises QPA (Zhang and Burns 2009), which searches for a sign. It walks
//! down from a horizon beyond which no `L` can undercut the best difference `s`
//! found so far. At a deadline `m` with demand `h` every `L < m` with
//! `L - blocking(L) >= h + s` is harmless, for its demand is at most `h`. As
//! `L - blocking(L)` grows with `L`, the harmless ones reach down to one point, and
//! the walk goes on at the largest deadline below it. Each step visits every class.

use super::rows::{Row, Step, Sums, blocking};
use crate::limits::{ANALYSIS_VISITS_MAX, HORIZON_MAX};
use crate::task::WHOLE;

/// After so many steps in one range it only matters whether `enough` is there.
const RANGE_LEDGES: u32 = 32;

/// What the search says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No tasks.
    Empty,
    /// The least difference, possibly negative, and where.
    Least { difference: i64, at: u64, visits: u64 },
    /// Utilisation above 1.
    Overloaded,
    /// A bound of the search was reached first.
    Undecided,
}

/// What was found of the intervals in a range.
pub(super) enum Range {
    /// No difference is less.
    AtLeast(i64),
    /// The difference at this deadline is below what was asked for.
    Below(u64),
    /// A bound of the search was reached first.
    Undecided,
}

/// One run of the search, over the rows and perhaps one candidate.
pub(super) struct Search<'a> {
    pub rows: &'a [Row],
    pub blocking_steps: &'a [Step],
    pub candidate: Option<Row>,
    /// The longest command of the candidate.
    pub command: u64,
    pub sums: Sums,
}

/// A step of the walk: the largest deadline below a limit, and the demand there.
struct Ledge {
    at: u64,
    demand: u64,
}

impl<'a> Search<'a> {
    fn visits_per_ledge(&self) -> u64 {
        self.rows.len() as u64 + 1
    }

    /// The least difference over all deadlines; any one below `enough` as soon as
    /// one is found. `hint` is an interval that is likely to be critical.
    pub(super) fn run(&self, hint: Option<u64>, enough: u64) -> Verdict {
        if self.rows.is_empty() && self.candidate.is_none() {
            return Verdict::Empty;
        }
        let whole = match self.fullness() {
            Fullness::Above => return Verdict::Overloaded,
            Fullness::Unknown => return Verdict::Undecided,
            Fullness::Whole => true,
            Fullness::Below => false,
        };
        let mut visits = 0;
        let mut best = Best { difference: i64::MAX, at: 0 };
        for interval in self.guesses(hint) {
            visits += self.visits_per_ledge();
            if let Some(ledge) = self.ledge_below(interval + 1) {
                best.improve(self.difference(&ledge), ledge.at);
            }
        }
        let horizon = if whole {
            let (end, first) = (self.hyperperiod(), self.deadline_max() + 1);
            let Some(end) = end.or((self.sums.ahead == 0).then_some(first)) else {
                return Verdict::Undecided;
            };
            // With the whole disk promised nothing is left when all periods end
            // together; whether less than nothing is left shows until then.
            best.improve(0, end);
            Some(if self.sums.ahead == 0 { first } else { end.max(first) })
        } else {
            self.horizon(best.difference)
        };
        let Some(mut limit) = horizon else { return Verdict::Undecided };
        while best.difference >= enough as i64 {
            let Some(ledge) = self.ledge_below(limit) else { break };
            visits += self.visits_per_ledge();
            if visits > ANALYSIS_VISITS_MAX {
                return Verdict::Undecided;
            }
            best.improve(self.difference(&ledge), ledge.at);
            limit = ledge.at.min(self.harmless_from(ledge.demand, best.difference));
        }
        Verdict::Least { difference: best.difference, at: best.at, visits }
    }

    /// A lower bound of the difference at every instant from `from` to before `until`;
    /// `from` is no less than the shortest deadline. The bound is in the middle of
    /// `enough` and the least difference, or nearer to the latter: that takes few
    /// steps, and leaves half of the room to those that will join. Where it takes many all
    /// the same, the bound is `enough`.
    pub(super) fn range(&self, from: u64, until: u64, enough: u64, visits: &mut u64) -> Range {
        let enough = enough as i64;
        let (mut least, mut bound, mut limit) = (i64::MAX, i64::MAX, until);
        let mut patience = RANGE_LEDGES;
        while limit > from {
            let ledge = self.ledge_below(limit).expect("a deadline is at `from` or before");
            *visits += self.visits_per_ledge();
            if *visits > ANALYSIS_VISITS_MAX {
                return Range::Undecided;
            }
            // From the last deadline before it on, demand is the same.
            let at = ledge.at.max(from);
            least = least.min(self.difference(&Ledge { at, ..ledge }));
            if least < enough {
                return Range::Below(at);
            }
            patience = patience.saturating_sub(1);
            bound = if patience > 0 { enough + (least - enough) / 2 } else { enough };
            limit = ledge.at.min(self.harmless_from(ledge.demand, bound));
        }
        Range::AtLeast(bound.min(least))
    }

    /// The smallest deadline up to `known` whose difference is below `reserve`, and
    /// by how much. Bounded as the search is; then the smallest one seen.
    pub(super) fn earliest_below(&self, reserve: u64, known: u64) -> Option<(u64, u64)> {
        let reserve = reserve as i64;
        let mut earliest = None;
        let mut limit = known + 1;
        let mut visits = 0;
        while let Some(ledge) = self.ledge_below(limit) {
            visits += self.visits_per_ledge();
            let difference = self.difference(&ledge);
            if difference < reserve {
                earliest = Some((ledge.at, (reserve - difference) as u64));
            }
            if visits > ANALYSIS_VISITS_MAX {
                break;
            }
            limit = ledge.at.min(self.harmless_from(ledge.demand, reserve));
        }
        earliest
    }

    fn each(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(&self.candidate)
    }

    /// Intervals at which the difference is often small.
    fn guesses(&self, hint: Option<u64>) -> impl Iterator<Item = u64> {
        let count = self.rows.len();
        let spread = (0..8).filter_map(move |part| self.rows.get(count * part / 8));
        let candidate = self.candidate.map(|row| row.deadline);
        hint.into_iter().chain(candidate).chain(spread.map(|row| row.deadline))
    }

    pub(super) fn deadline_max(&self) -> u64 {
        // The task with the longest deadline is in the way last, so it has a step.
        let candidate = self.candidate.map_or(0, |row| row.deadline);
        self.blocking_steps.last().map_or(0, |step| step.until).max(candidate)
    }

    fn cost_max(&self) -> u64 {
        self.blocking_steps.first().map_or(0, |step| step.cost).max(self.command)
    }

    fn ledge_below(&self, limit: u64) -> Option<Ledge> {
        let last = limit.checked_sub(1)?;
        let mut demand = 0;
        let mut back = u64::MAX;
        let mut visit = |row: &Row| {
            let (jobs, rest) = row.period.divide(last - row.deadline);
            demand += (jobs + 1) * row.cost;
            back = back.min(rest);
        };
        self.each().filter(|row| row.deadline <= last).for_each(&mut visit);
        last.checked_sub(back).map(|at| Ledge { at, demand })
    }

    fn difference(&self, ledge: &Ledge) -> i64 {
        ledge.at as i64 - ledge.demand as i64 - self.blocking(ledge.at) as i64
    }

    pub(super) fn blocking(&self, interval: u64) -> u64 {
        let candidate = self.candidate.filter(|row| row.deadline > interval);
        self.blocking_of_others(interval).max(candidate.map_or(0, |_| self.command))
    }

    /// Without the candidate.
    pub(super) fn blocking_of_others(&self, interval: u64) -> u64 {
        blocking(self.blocking_steps, interval)
    }

    /// The smallest `L` with `L - blocking(L) >= demand + slack`.
    fn harmless_from(&self, demand: u64, slack: i64) -> u64 {
        let wanted = demand.saturating_add_signed(slack);
        let step = self.blocking_steps.partition_point(|step| step.until <= wanted + step.cost);
        let below = step.checked_sub(1).map_or(0, |below| self.blocking_steps[below].until);
        let from = below.max(wanted + self.blocking_steps.get(step).map_or(0, |step| step.cost));
        // The candidate blocks up to its deadline.
        from.max(self.candidate.map_or(0, |row| row.deadline.min(wanted + self.command)))
    }

    /// Every `L` from here on has a difference of at least `slack`:
    /// `demand(L) <= L * utilisation + ahead`, and blocking ends at the last
    /// deadline. None where that is beyond [`HORIZON_MAX`].
    fn horizon(&self, slack: i64) -> Option<u64> {
        let free = WHOLE - self.sums.share;
        let reach = |time: u128| (time << 64).div_ceil(free);
        let time = (self.sums.ahead as i128 + i128::from(slack)).max(0) as u128;
        let unblocked = reach(time).max(u128::from(self.deadline_max()));
        let blocked = reach(time + u128::from(self.cost_max()));
        let horizon = u64::try_from(unblocked.min(blocked)).ok()?;
        (horizon <= HORIZON_MAX.as_nanos()).then_some(horizon)
    }

    /// When all periods end together for the first time after a common start; None where that
    /// is beyond [`HORIZON_MAX`]. With utilisation 1 everything repeats from there on, and
    /// nothing is left.
    fn hyperperiod(&self) -> Option<u64> {
        let mut common = 1u128;
        for row in self.each() {
            let period = u128::from(row.period.get());
            common *= period / greatest_common_divisor(common, period);
            if common > u128::from(HORIZON_MAX.as_nanos()) {
                return None;
            }
        }
        u64::try_from(common).ok()
    }

    /// The whole disk is promised, exactly, and every deadline is the end of its period: no
    /// difference from the longest deadline on is negative, for demand is at most the
    /// utilisation there.
    pub(super) fn is_whole_at_rates(&self) -> bool {
        self.sums.ahead == 0 && matches!(self.fullness(), Fullness::Whole)
    }

    /// Compares the utilisation with the whole disk, exactly.
    fn fullness(&self) -> Fullness {
        if self.sums.share < WHOLE {
            Fullness::Below
        } else if self.sums.share_floor > WHOLE {
            Fullness::Above
        } else {
            // Within rounding of 1: over a common denominator, where one fits.
            self.fraction().unwrap_or(Fullness::Unknown)
        }
    }

    /// Shares in their lowest terms, summed up over a common denominator.
    fn fraction(&self) -> Option<Fullness> {
        let (mut work, mut common) = (0u128, 1u128);
        for row in self.each() {
            let (cost, period) = (u128::from(row.cost), u128::from(row.period.get()));
            let shared = greatest_common_divisor(cost, period);
            let (cost, period) = (cost / shared, period / shared);
            let times = period / greatest_common_divisor(common, period);
            work = work.checked_mul(times)?;
            common = common.checked_mul(times)?;
            work = work.checked_add((common / period).checked_mul(cost)?)?;
            let shared = greatest_common_divisor(work, common);
            (work, common) = (work / shared, common / shared);
        }
        Some(match work.cmp(&common) {
            core::cmp::Ordering::Equal => Fullness::Whole,
            core::cmp::Ordering::Greater => Fullness::Above,
            // So near that the horizon is out of reach.
            core::cmp::Ordering::Less => Fullness::Unknown,
        })
    }
}

struct Best {
    difference: i64,
    at: u64,
}

impl Best {
    fn improve(&mut self, difference: i64, at: u64) {
        if difference < self.difference {
            *self = Self { difference, at };
        }
    }
}

/// The utilisation against the whole disk.
enum Fullness {
    Below,
    Whole,
    Above,
    /// Too near to tell in 128 bits.
    Unknown,
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
