//! Whether what was admitted by odds is kept: late requests and costs, held against what was
//! said of them.
//!
//! Two tests, each of which says "broken" only where that would be a surprise of
//! [`SURPRISE`] bits, were the odds and the distribution true and the requests independent. Late
//! requests are counted for each magnitude of odds by itself, against the sum of the odds of those
//! that were counted with them, so that neither rare nor frequent ones are judged by the odds of
//! others; it is looked at with each that is late. At the sum of costs it is looked at whenever
//! their number since the last beginning is a power of two, and after [`WINDOW`] of them it begins
//! anew. What was found is of the contracts that there were; with others all begins anew. So a
//! true promise is called broken once in 10^9 such spells or less. Odds of one in a million take
//! long to be seen to be wrong; that costs are longer than was measured, which is why they are,
//! is seen after some hundreds.

use crate::chance::Expected;
use crate::statistical::{Costs, StatisticalTask};
use crate::task::{Odds, Task};
use units::Duration;

/// So many bits.
const SURPRISE: u128 = 44;
/// So many costs are summed up.
const WINDOW: u64 = 1 << 16;

/// The odds from one power of two to the next, in parts per billion; the last for all that is
/// likelier.
const MAGNITUDES: usize = 31;

/// Of the requests with odds of about the same.
#[derive(Clone, Copy, Debug, Default)]
struct Magnitude {
    late: u64,
    expected: Expected,
}

/// What was seen of the requests of one disk that may be late now and then.
#[derive(Clone, Copy, Debug, Default)]
pub struct OddsWatch {
    late: u64,
    requests: u64,
    magnitudes: [Magnitude; MAGNITUDES],
    sum: u128,
    stated: Costs,
    in_window: u64,
    broken: Option<BrokenOdds>,
}

/// What is not as it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenOdds {
    /// More requests are late.
    Late,
    /// Requests cost more than what was measured says.
    Costs,
}

impl OddsWatch {
    /// A request of such a task has ended, which took so long.
    pub fn ended(&mut self, odds: &Odds, took: Duration, is_late: bool) {
        self.requests += 1;
        self.late += u64::from(is_late);
        let at = (odds.miss.per_billion().max(1).ilog2() as usize).min(MAGNITUDES - 1);
        let alike = &mut self.magnitudes[at];
        alike.late += u64::from(is_late);
        alike.expected.add(odds.miss);
        if is_late && alike.expected.surprise(alike.late) >= SURPRISE {
            self.broken = self.broken.or(Some(BrokenOdds::Late));
        }
        let task = Task::new(odds.most, odds.most, odds.most);
        self.stated.add(&StatisticalTask { task, mean: odds.mean, deviation: odds.deviation }, 1);
        self.sum += u128::from(took.as_nanos());
        self.in_window += 1;
        if self.in_window.is_power_of_two() {
            let over = self.sum.saturating_sub(self.stated.mean);
            if over > 0 && self.stated.sixteenths(over) >= 16 * SURPRISE {
                self.broken = self.broken.or(Some(BrokenOdds::Costs));
            }
        }
        if self.in_window >= WINDOW {
            (self.sum, self.stated, self.in_window) = (0, Costs::default(), 0);
        }
    }

    /// Other tasks have odds than before. What was found broken was so of the former ones; counts
    /// in which nothing was found go on, since each request is held against its own odds.
    pub fn tasks_changed(&mut self) {
        if self.broken.is_some() {
            *self = Self::default();
        }
    }

    /// How many have ended.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// How many of them were late.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// What was found first not to be as it was said.
    pub fn broken(&self) -> Option<BrokenOdds> {
        self.broken
    }
}
