//! Requests under contract that are late already, though a disk has not ended them yet.
//!
//! A disk that hangs ends nothing, and what is counted at the end of requests does not move. So whoever
//! looks at a stream or a service is told of these beside what is counted; at its end such a request is
//! counted, and is no longer one of these: at any time once.
//!
//! Invariant: only disks are looked at that have had a command for longer than it may take. Whatever else is
//! late ends soon.

use crate::api::{DiskIndex, Holder, ServiceAccount, StreamAccount, StreamId};
use crate::core::Disk;
use crate::node::Node;
use crate::work::Owner;
use alloc::collections::BTreeMap;
use units::{Duration, Instant};

/// How many are late, and by how much at the most.
#[derive(Clone, Copy, Debug, Default)]
struct Late {
    requests: u64,
    most: Duration,
}

/// All of them on some disks.
#[derive(Debug, Default)]
pub(crate) struct Overdue {
    streams: BTreeMap<StreamId, Late>,
    services: BTreeMap<Holder, Late>,
}

impl Late {
    fn add(&mut self, late_by: Duration) {
        if !late_by.is_zero() {
            self.requests += 1;
            self.most = self.most.max(late_by);
        }
    }
}

impl Overdue {
    /// What is said of a stream that has this account.
    pub(crate) fn with_stream(&self, id: StreamId, mut account: StreamAccount) -> StreamAccount {
        if let Some(late) = self.streams.get(&id) {
            account.requests += late.requests;
            account.late_requests += late.requests;
            account.late_max = account.late_max.max(late.most);
        }
        account
    }

    /// The same of a volume's service, or a handle's.
    pub(crate) fn with_service(
        &self,
        holder: Holder,
        mut account: ServiceAccount,
    ) -> ServiceAccount {
        if let Some(late) = self.services.get(&holder) {
            account.requests += late.requests;
            account.late_requests += late.requests;
            account.late_max = account.late_max.max(late.most);
        }
        account
    }
}

/// Whether a disk has had a command for longer than it may take.
pub(crate) fn is_held_up(disk: &Disk, now: Instant) -> bool {
    let oldest = disk.queue.oldest();
    oldest.is_some_and(|oldest| now.saturating_since(oldest.given) > oldest.bound)
}

impl Node {
    /// What is late by `now` on those of these disks that are held up.
    pub(crate) fn overdue(
        &self,
        now: Instant,
        disks: impl IntoIterator<Item = DiskIndex>,
    ) -> Overdue {
        let (mut overdue, mut operations) = (Overdue::default(), BTreeMap::new());
        let disks = disks.into_iter().map(|disk| &self.core.disks[disk.as_usize()]);
        for disk in disks.filter(|disk| is_held_up(disk, now)) {
            let queue = &disk.queue;
            for key in queue.begun() {
                let late_by = queue.late_by(key, now);
                match queue.work(key).map(|work| &work.owner) {
                    Some(&Owner::Block { stream, .. }) => {
                        overdue.streams.entry(stream).or_default().add(late_by);
                    }
                    Some(Owner::Group { items }) => {
                        for item in items {
                            let stream = self.streams.get(item.stream);
                            let of_item = |stream: &crate::streams::stream::Stream| {
                                stream.late_by(now, item.block, late_by)
                            };
                            let late_by = stream.map_or(late_by, of_item);
                            overdue.streams.entry(item.stream).or_default().add(late_by);
                        }
                    }
                    // It is answered when its last piece has ended.
                    Some(&Owner::Piece { operation, .. }) => {
                        let late: &mut Duration = operations.entry(operation).or_default();
                        *late = late_by.max(*late);
                    }
                    _ => {}
                }
            }
        }
        for (operation, of_pieces) in operations {
            if let Some((holder, late_by)) = self.best_effort.late_by(now, operation, of_pieces) {
                overdue.services.entry(holder).or_default().add(late_by);
            }
        }
        overdue
    }
}
