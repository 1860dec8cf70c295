//! When the metadata log is committed, and who waits for it.
//!
//! Somebody who changed something waits for the first commit that begins after
//! the change. Commits begin `commit_interval` apart, or sooner when somebody
//! waits; one runs at a time, and those who come meanwhile share the next.
//!
//! While streams are open, commits under the log's contracts that are sooner than the
//! interval are on credit ([`AHEAD`] of them), so that a program that syncs all the time
//! takes no more of a disk than the contracts say, and does not push the commits
//! of others into the far future. With no stream open nobody is harmed, and
//! every commit begins at once.
//!
//! A commit for which somebody waits and for which there is no credit begins in the slack:
//! its writes and flushes are best effort, and come under the contracts when there is credit,
//! an interval later at the latest.

use crate::api::*;
use crate::commits::tasks::Log;
use crate::limits::EXCESS_MAX;
use crate::waiters::Waiters;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use store::{CommitId, IoId};
use units::{Bytes, Instant};

/// How a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// What it covers is on the medium.
    Durable,
    /// The metadata cannot be written: nothing becomes durable any more.
    Never,
}

/// Commits that may begin before their time.
pub(crate) const AHEAD: u64 = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct Commits {
    /// A commit has begun and not ended; its number where there was anything
    /// to write.
    pub running: Option<Option<CommitId>>,
    /// How many have begun.
    pub begun: u64,
    pub started: Option<Instant>,
    pub due: Option<Instant>,
    /// Somebody waits for it.
    pub urgent: bool,
    /// When the next commit would begin if all kept the interval.
    pub regular: Instant,
    /// What the log has to write.
    pub log: Log,
    /// Who waits for the next one, and what is answered then.
    pub waiting: Vec<(Ticket, Reply)>,
    /// Whose they are.
    pub waiters: Waiters,
    /// The same of the one that runs.
    pub served: Vec<(Ticket, Reply)>,
    /// Since that many commits had begun, so much was written beyond contracts.
    pub excess: (u64, Bytes),
    /// The one that runs began in the slack: before its time, without the log's contracts. It
    /// comes under them when it is due.
    pub in_slack: bool,
    /// What it asked of the disks so far, and whether that is a flush.
    pub asked_in_slack: Vec<(CommandId, bool)>,
    /// Pieces that the store's writes and flushes still consist of, and the
    /// first error among those that ended.
    pub pieces: BTreeMap<IoId, (u64, Option<DeviceError>)>,
}

impl Commits {
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.running {
            None if self.urgent => Some(Instant::EPOCH),
            Some(_) if !self.in_slack => None,
            _ => self.due,
        }
    }
    pub(crate) fn idle(&self) -> bool {
        self.running.is_none() && self.due.is_none()
    }
    /// How many have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }
    /// Whether the next record has room for `len` bytes more that are written beyond contracts.
    pub(crate) fn take_excess(&mut self, len: Bytes) -> bool {
        let (counted, before) = self.excess;
        let taken = if counted == self.begun { before } else { Bytes::ZERO };
        let all = taken.get().saturating_add(len.get());
        let fits = all <= EXCESS_MAX.get();
        if fits {
            self.excess = (self.begun, Bytes::new(all));
        }
        fits
    }
    /// Nothing runs; what is due is not due yet.
    pub(crate) fn resting(&self) -> bool {
        self.running.is_none()
    }
}
