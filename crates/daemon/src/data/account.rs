//! What one best-effort connection may have under way, whatever protocol it speaks.
//!
//! Invariants: at most `OUTSTANDING_MAX` requests and `BEST_EFFORT_BYTES_MAX` bytes are between
//! their request and their answer, and of the user's connections together no more bytes than
//! his part; beyond that the connection is not read from. (What a write that was answered ahead of its disk
//! still has of memory, the pool itself holds to a bound.) Operations of a volume under contract
//! for which the pool has memory set aside do not wait for the user's part.

use crate::limits::{BEST_EFFORT_BYTES_MAX, BEST_EFFORT_UNIT};
use crate::quotas;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use units::Bytes;
use wire::frame::OUTSTANDING_MAX;

/// All of [`BEST_EFFORT_BYTES_MAX`], in units.
const UNITS: usize = (BEST_EFFORT_BYTES_MAX.get() / BEST_EFFORT_UNIT.get()) as usize;

/// The account of what is under way.
pub struct Account {
    /// Of the user and its groups, over all connections.
    quota: quotas::Place,
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
}

/// A place in the account, given back when dropped.
pub struct Place {
    _request: OwnedSemaphorePermit,
    bytes: OwnedSemaphorePermit,
    _quota: quotas::Part,
}

impl Place {
    /// The request's bytes, at least one unit.
    pub fn bytes(&self) -> Bytes {
        BEST_EFFORT_UNIT * self.bytes.num_permits() as u64
    }
}

impl Account {
    /// Of a connection that has nothing under way.
    pub fn new(quota: quotas::Place) -> Self {
        Self {
            quota,
            requests: Arc::new(Semaphore::new(OUTSTANDING_MAX)),
            bytes: Arc::new(Semaphore::new(UNITS)),
        }
    }

    /// Waits until a request of `len` bytes may begin: at most 4 MiB, which is the smallest part
    /// of the memory that a user has. Whoever has a place waits for no other one. `guaranteed` says
    /// for how many operations the pool has memory set aside, and is asked only where it
    /// matters; `reserved` is what these are counted by: a volume, or a handle on it.
    pub async fn place(
        &self,
        reserved: &str,
        len: Bytes,
        guaranteed: impl FnOnce() -> u64,
    ) -> Place {
        let units = len.div_ceil(BEST_EFFORT_UNIT).max(1) as u32;
        let open = "the account is never closed";
        Place {
            _request: Arc::clone(&self.requests).acquire_owned().await.expect(open),
            bytes: Arc::clone(&self.bytes).acquire_many_owned(units).await.expect(open),
            _quota: self.quota.request(reserved, len, guaranteed).await,
        }
    }

    /// Whether nothing is under way.
    pub fn is_quiet(&self) -> bool {
        self.requests.available_permits() == OUTSTANDING_MAX
    }

    /// Waits until nothing is under way.
    pub async fn quiet(&self) {
        let all = self.requests.acquire_many(OUTSTANDING_MAX as u32).await;
        drop(all.expect("the account is never closed"));
    }
}
