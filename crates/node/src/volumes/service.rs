//! What the service of a volume asks of a disk.
//!
//! A volume has one [`Service`] at a time, which may change while it is in use.
//! Two of the kinds are contracts: on each disk of the volume they are a task of
//! the same analysis as the streams' (scheduling.md, sections 1 and 4).

use crate::admission::contract::{Seen, Share};
use crate::api::{Error, Priority, Refusal, Service};
use crate::limits;
use crate::memory::reserve::Need;
use sched::Task;
use store::{EXTENT, ServiceKind, ServicePriority};
use units::{Bytes, Direction, Outside, Rate};

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

/// A service as the pool keeps it; the default is not kept.
pub(crate) fn to_keep(service: &Service, given_by: u32) -> Option<store::Service> {
    let kind = match *service {
        Service::BestEffort(Priority::Normal) => return None,
        Service::BestEffort(priority) => ServiceKind::BestEffort {
            priority: match priority {
                Priority::Interactive => ServicePriority::Interactive,
                Priority::Normal => ServicePriority::Normal,
                Priority::Background => ServicePriority::Background,
            },
        },
        Service::Rate { rate, block, period } => ServiceKind::Rate { rate, block, period },
        Service::Latency { len, within, every } => ServiceKind::Latency { len, within, every },
    };
    Some(store::Service { given_by, kind })
}

/// A service that the pool has kept; its numbers are to be [checked](Service::check).
pub(crate) fn of_kept(kind: ServiceKind) -> Service {
    match kind {
        ServiceKind::BestEffort { priority } => Service::BestEffort(match priority {
            ServicePriority::Interactive => Priority::Interactive,
            ServicePriority::Normal => Priority::Normal,
            ServicePriority::Background => Priority::Background,
        }),
        ServiceKind::Rate { rate, block, period } => Service::Rate { rate, block, period },
        ServiceKind::Latency { len, within, every } => Service::Latency { len, within, every },
    }
}

/// Operations that the contract lets a disk begin in a period.
fn operations(service: &Service, share: &Share) -> u64 {
    match *service {
        Service::BestEffort(_) => 0,
        Service::Latency { .. } => 1,
        Service::Rate { rate, block, period } => {
            // Where a run is longer than an extent, neighbours may all be one disk's.
            let turns = if share.run > EXTENT { 1 } else { share.gap };
            let own = Rate::per_second(rate.get().div_ceil(turns));
            own.bytes_in(period).div_ceil(block).max(1)
        }
    }
}

/// The memory that is set aside for a contract on a disk: for the operations of a period, and
/// for one whose bytes are on their way between the pool and its program. An operation of the
/// promised length that begins within 4 KiB takes 4 KiB more.
pub(crate) fn need(service: &Service, share: &Share) -> Option<Need> {
    let (Service::Rate { block: len, .. } | Service::Latency { len, .. }) = *service else {
        return None;
    };
    let slots = operations(service, share).saturating_add(1);
    let slot = (len + limits::BLOCK_MIN).min(limits::BEST_EFFORT_MAX);
    Some(Need { disk: share.disk, slots, slot })
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
            Service::Rate { block, period, .. } => {
                let operations = operations(service, share);
                // More than there is time, whatever it comes to, is refused as such.
                let budget = cost(block).saturating_mul(operations);
                let task = self.possible(share.disk, budget, period, period)?;
                Ok(Some(task.in_commands(cost(block))))
            }
            Service::Latency { len, within, every } => {
                let task = self.possible_in(share.disk, (cost(len), 1), self.asked(within), every);
                task.map(Some)
            }
        }
    }
}
