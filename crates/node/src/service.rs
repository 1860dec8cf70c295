//! How reads and writes without a stream are served, and what that asks of a disk.
//!
//! A volume has one [`Service`] at a time, which may change while it is in use.
//! Two of the kinds are contracts: on each disk of the volume they are a task of
//! the same analysis as the streams' (scheduling.md, sections 1 and 4).

#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use crate::api::{Error, Refusal};
use crate::contract::{Seen, Share};
use crate::limits;
use sched::Task;
use units::{Bytes, Direction, Duration, Outside, Rate};

/// Who goes first among those without a contract (UCSB QoS scheduler, table III).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Somebody waits for the answer: before the others.
    Interactive,
    /// As everybody.
    #[default]
    Normal,
    /// Only when nothing else wants the disk.
    Background,
}

/// How reads and writes of a volume that no stream carries are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// In the slack of the contracts; nothing is promised.
    BestEffort(Priority),
    /// In the slack, and at least `rate` whatever the others do, in operations of
    /// at least `block` bytes anywhere on the volume; what was not asked for in one
    /// `period` is lost. Each disk of the volume gives its part of the rate.
    Rate { rate: Rate, block: Bytes, period: Duration },
    /// Each operation of at most `len` bytes is answered `within` this time, if it
    /// comes at least `every` so long after the one before it on the same disk. A
    /// longer one, or one across a whole MiB, counts as several.
    Latency { len: Bytes, within: Duration, every: Duration },
}

impl Default for Service {
    fn default() -> Self {
        Self::BestEffort(Priority::Normal)
    }
}

impl Service {
    /// What an operation is served with whose handle states a priority of its own, where
    /// this service was given to its volume; none where the service itself decides. What
    /// was given to the volume is the most that a handle gets; and one that states
    /// background leaves a contract to the others.
    pub fn granted(&self, stated: Priority) -> Option<Priority> {
        match (self, stated) {
            (Self::BestEffort(most), stated) => Some(stated.max(*most)), // the later, the lower
            (_, Priority::Background) => Some(Priority::Background),
            _ => None,
        }
    }

    /// Checks what does not depend on the disks.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let invalid = |what, rule| Err(Error::Invalid { what, rule });
        let is_block = |len: Bytes| {
            !len.is_zero()
                && len <= limits::BEST_EFFORT_MAX
                && len.is_multiple_of(limits::BLOCK_MIN)
        };
        match *self {
            Self::BestEffort(_) => Ok(()),
            Self::Rate { rate, .. } if rate.is_zero() => {
                invalid("rate", "more than nothing per second")
            }
            Self::Rate { rate, .. } if rate > Rate::OUTSIDE_MAX => {
                invalid("rate", "at most 1 PiB/s")
            }
            Self::Rate { block: len, .. } | Self::Latency { len, .. } if !is_block(len) => {
                invalid("size of an operation", "a multiple of 4 KiB, at most 1 MiB")
            }
            Self::Rate { period, .. } | Self::Latency { every: period, .. }
                if period < limits::SERVICE_PERIOD_MIN || period > limits::SERVICE_PERIOD_MAX =>
            {
                invalid("period", "from 1 ms to a minute")
            }
            Self::Latency { within, every, .. } if within > every => {
                invalid("time within", "at most the time between operations")
            }
            Self::Rate { .. } | Self::Latency { .. } => Ok(()),
        }
    }
}

impl Seen<'_> {
    /// What `service` asks of this disk; none where it is no contract, `Err` where
    /// even an idle disk could not keep it.
    pub(crate) fn service(
        &self,
        service: &Service,
        share: &Share,
    ) -> Result<Option<Task>, Refusal> {
        let cost = |len| {
            let worst = |direction| self.profile.worst(share.range.clone(), len, direction);
            worst(Direction::Read).max(worst(Direction::Write))
        };
        match *service {
            Service::BestEffort(_) => Ok(None),
            Service::Rate { rate, block, period } => {
                let own = Rate::per_second(rate.get().div_ceil(share.gap));
                let operations = own.bytes_in(period).div_ceil(block).max(1);
                // More than there is time, whatever it comes to, is refused as such.
                let budget = cost(block).saturating_mul(operations);
                let task = self.possible(share.disk, budget, period, period)?;
                Ok(Some(task.in_commands(cost(block))))
            }
            Service::Latency { len, within, every } => {
                self.possible(share.disk, cost(len), within, every).map(Some)
            }
        }
    }
}
