//! What a program asks of a stream.

use core::fmt;
use units::{Bytes, Duration, Outside, Rate};

/// Smallest block of a stream.
pub const BLOCK_MIN: Bytes = Bytes::kib(4);
/// Largest block of a stream.
pub const BLOCK_MAX: Bytes = Bytes::mib(32);
/// Largest burst of a contract.
pub const BURST_MAX: Bytes = Bytes::mib(64);
/// A block comes at least as often.
const PERIOD_MAX: Duration = Duration::from_secs(86_400);

/// What a program asks of a stream: `rate`, moved in blocks of `block`, of which it may
/// touch `burst` beyond its playout point at once; a block at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Bytes per second, sustained.
    pub rate: Rate,
    /// A power of two from [`BLOCK_MIN`] to [`BLOCK_MAX`].
    pub block: Bytes,
    /// At most [`BURST_MAX`].
    pub burst: Bytes,
}

/// A number of a contract is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Which.
    pub what: &'static str,
    /// What it may be.
    pub rule: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.rule)
    }
}
impl core::error::Error for Invalid {}

impl Contract {
    /// Checks what does not depend on disks.
    ///
    /// # Errors
    /// The first number that is out of its range.
    pub fn check(&self) -> Result<(), Invalid> {
        let invalid = |what, rule| Err(Invalid { what, rule });
        if self.rate.is_zero() {
            return invalid("rate", "more than nothing per second");
        }
        if self.rate > Rate::OUTSIDE_MAX {
            return invalid("rate", "at most 1 PiB/s");
        }
        let block = self.block;
        if !block.get().is_power_of_two() || block < BLOCK_MIN || block > BLOCK_MAX {
            return invalid("block size", "a power of two from 4 KiB to 32 MiB");
        }
        if self.burst > BURST_MAX {
            return invalid("burst", "at most 64 MiB");
        }
        if self.period() > PERIOD_MAX {
            return invalid("rate", "at least one block a day: use smaller blocks");
        }
        Ok(())
    }

    /// How often a block is used up.
    pub fn period(&self) -> Duration {
        self.rate.time_for(self.block)
    }

    /// What the program may touch at once.
    pub fn at_once(&self) -> Bytes {
        self.burst.max(self.block)
    }

    /// Blocks of a window for what the program may touch at once, and for what passes while
    /// the host is `late`.
    pub fn blocks_ahead(&self, late: Duration) -> u64 {
        let late = self.rate.bytes_in(late);
        self.at_once().div_ceil(self.block) + late.div_ceil(self.block)
    }

    /// Blocks of the window of a reader whose blocks all lie on one disk, of which each is
    /// released a period after the one before it and is there a period later.
    pub fn blocks_on_one_disk(&self, late: Duration) -> u64 {
        2 + self.blocks_ahead(late)
    }

    /// How long so many blocks take to be brought, or to be used up.
    pub fn time_of(&self, blocks: u64) -> Duration {
        self.period().saturating_mul(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_held_to_its_range() {
        let good = Contract {
            rate: Rate::per_second(1_000_000),
            block: Bytes::kib(64),
            burst: Bytes::ZERO,
        };
        assert_eq!(good.check(), Ok(()));
        let rate = |rate| Contract { rate: Rate::per_second(rate), ..good };
        let block = |block| Contract { block: Bytes::new(block), ..good };
        let burst = |burst| Contract { burst: Bytes::new(burst), ..good };
        let at_most = BURST_MAX.get();
        for (contract, what) in [
            (rate(0), "rate"),
            (rate(u64::MAX), "rate"),
            (block(0), "block size"),
            (block(2_048), "block size"),
            (block(65_537), "block size"),
            (block(3 << 20), "block size"),
            (block(BLOCK_MAX.get() * 2), "block size"),
            (burst(at_most + 1), "burst"),
            // A block in a day and a second.
            (Contract { block: Bytes::MIB, ..rate(12) }, "rate"),
        ] {
            assert_eq!(contract.check().map_err(|invalid| invalid.what), Err(what));
        }
        let longest = block(BLOCK_MAX.get());
        for contract in [rate(1), block(4_096), block(1 << 20), longest, burst(at_most)] {
            assert_eq!(contract.check(), Ok(()));
        }
    }

    #[test]
    fn a_window_has_what_may_be_touched_at_once_and_what_passes_while_the_host_is_late() {
        let contract = |burst| Contract {
            rate: Rate::per_second(65_536),
            block: Bytes::kib(64),
            burst: Bytes::new(burst),
        };
        let blocks = |burst, late| contract(burst).blocks_on_one_disk(Duration::from_millis(late));
        // A block is used up in a second.
        assert_eq!(blocks(0, 0), 3);
        assert_eq!(blocks(65_536, 0), 3);
        assert_eq!(blocks(65_537, 0), 4);
        assert_eq!(blocks(0, 1), 4);
        assert_eq!(blocks(0, 1_001), 5);
        assert_eq!(contract(0).time_of(7), Duration::from_secs(7));
    }
}
