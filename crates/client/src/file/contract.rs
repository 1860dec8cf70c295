//! A contract as a person states it: a rate, and the rest only where it matters.
//!
//! Invariant: what [`Contract::terms`] gives is within the bounds of the node: a block
//! is a power of two from 4 KiB to 1 MiB, unless the caller named another.

use units::{Bytes, Duration, Rate};
use wire::control::{self, Mode};

/// Smallest block of a stream.
const BLOCK_MIN: Bytes = Bytes::kib(4);
/// Largest block of a stream.
const BLOCK_MAX: Bytes = Bytes::MIB;
/// A block that is chosen here lasts no longer, and more than half as long: large enough
/// that a disk spends its time on data and not on the way there, small enough that playout
/// begins soon. What the daemon chooses begins there, too.
const BLOCK_LASTS: Duration = Duration::from_millis(500);

/// What a program asks of a volume: bytes a second, whatever the others do.
///
/// ```
/// use client::Contract;
/// use client::units::{Bytes, Rate};
/// let terms = Contract::at(Rate::per_second(1_000_000)).terms();
/// assert_eq!(terms.block_bytes, Bytes::kib(256)); // lasts 0.26 s
/// assert_eq!(terms.burst_bytes, Bytes::kib(256));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    rate: Rate,
    block: Option<Bytes>,
    burst: Option<Bytes>,
    mode: Option<Mode>,
}

impl Contract {
    /// This rate, sustained; block and burst as they are best for most programs.
    pub const fn at(rate: Rate) -> Self {
        Self { rate, block: None, burst: None, mode: None }
    }

    /// What moves at a time: a power of two from 4 KiB to 32 MiB. Without this, the
    /// daemon chooses one when the contract is asked for, by the rate and the profiles of
    /// the disks ([`Client::block_for`](crate::Client::block_for)); for a file outside the
    /// pool, and in [`Contract::terms`], it is one that lasts 0.25 to 0.5 s at the rate, as
    /// far as the bounds allow.
    #[must_use]
    pub const fn block(mut self, block: Bytes) -> Self {
        self.block = Some(block);
        self
    }

    /// How much the program may touch at once past its playout point. Without this,
    /// one block.
    #[must_use]
    pub const fn burst(mut self, burst: Bytes) -> Self {
        self.burst = Some(burst);
        self
    }

    /// On a handle that reads and writes: the contract is for reading, and writing is
    /// best effort. Without this it is the other way round.
    #[must_use]
    pub const fn for_reading(mut self) -> Self {
        self.mode = Some(Mode::Read);
        self
    }

    /// The sustained rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether the caller named a block.
    pub(crate) const fn names_block(&self) -> bool {
        self.block.is_some()
    }

    pub(crate) const fn mode(&self) -> Option<Mode> {
        self.mode
    }

    /// The whole contract, as the daemon takes it. That of a file which has one
    /// ([`File::contract`](crate::File::contract)) tells the block that was chosen.
    pub fn terms(&self) -> control::Contract {
        let block_bytes = self
            .block
            .unwrap_or_else(|| self.rate.power_of_two_in(BLOCK_LASTS, BLOCK_MIN, BLOCK_MAX));
        control::Contract {
            rate_bytes_per_second: self.rate,
            block_bytes,
            burst_bytes: self.burst.unwrap_or(block_bytes),
        }
    }
}

impl From<control::Contract> for Contract {
    /// All of it as it is there.
    fn from(terms: control::Contract) -> Self {
        let (block, burst) = (Some(terms.block_bytes), Some(terms.burst_bytes));
        Self { rate: terms.rate_bytes_per_second, block, burst, mode: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_lasts_a_quarter_to_half_a_second_within_its_bounds() {
        for rate in (1..=40).map(|power| 3u64.pow(power / 2) << (power % 2)) {
            let block = Contract::at(Rate::per_second(rate)).terms().block_bytes;
            assert!(block.get().is_power_of_two() && block >= BLOCK_MIN && block <= BLOCK_MAX);
            let lasts = Rate::per_second(rate).time_for(block).as_millis();
            if rate < 8 << 10 {
                assert_eq!(block, BLOCK_MIN, "{rate}");
            } else if rate >= 4 << 20 {
                assert_eq!(block, BLOCK_MAX, "{rate}");
            } else {
                assert!((250..=500).contains(&lasts), "{rate}: {block} for {lasts} ms");
            }
        }
        assert_eq!(Contract::at(Rate::ZERO).terms().block_bytes, BLOCK_MIN);
    }

    #[test]
    fn what_is_named_stays_as_it_was_named() {
        let asked = Contract::at(Rate::per_second(1000)).block(Bytes::kib(64)).burst(Bytes::MIB);
        let terms = asked.terms();
        assert_eq!((terms.block_bytes, terms.burst_bytes), (Bytes::kib(64), Bytes::MIB));
        assert_eq!(Contract::from(terms).terms(), terms);
    }
}
