//! The contracts of the metadata log, sized by what it has to write.
//!
//! Each disk has a contract for flushes and one or more for writes. In a commit interval the
//! writes hold the longest record that there can be: of every writer that is open, of some
//! best effort and of some changes ([`Log::record`](super::tasks::Log::record)). They grow
//! when a writer is admitted, on
//! all disks or on none, and shrink when writers have gone and no commit runs.

use crate::admission::contract;
use crate::admission::costs::{Costs, log_write};
use crate::api::*;
use crate::commits::tasks::{Adds, Log, LogTasks, LogWrite, extents_of};
use crate::commits::times::put_off_max;
use crate::core::Core;
use crate::limits;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::{Admission, Task, TaskId};
use store::VolumeId;
use units::{Bytes, Duration, Instant};

impl Core {
    /// Takes what a writer of a volume adds to records into the log's contracts, on all disks
    /// or on none and says why. Without admission they stay as they are.
    pub(crate) fn log_takes(
        &mut self,
        now: Instant,
        volume: VolumeId,
        contract: &Contract,
        mode: Mode,
    ) -> Result<(), Error> {
        let adds = self.record_adds(volume, contract, mode);
        let before = self.commits.log.note(volume, Some(adds));
        let wanted = self.commits.log.wanted();
        if wanted <= self.commits.log.size || !self.config.admission {
            return Ok(());
        }
        let record = self.commits.log.record();
        self.set_log(now, wanted).map_err(|refusal| {
            self.commits.log.note(volume, before);
            Error::LogRefused { record, refusal: Box::new(refusal) }
        })
    }

    /// What a writer of a volume adds to records, at the commit interval of now.
    pub(crate) fn log_notes(&mut self, volume: VolumeId, contract: &Contract, mode: Mode) {
        let adds = self.record_adds(volume, contract, mode);
        self.commits.log.note(volume, Some(adds));
    }

    /// Lets the log's contracts hold what was noted, where they are admitted; the store is to be
    /// told by [`Core::log_is_recounted`].
    pub(crate) fn log_holds(&mut self, now: Instant) -> Result<(), Refusal> {
        let wanted = self.commits.log.wanted();
        if wanted <= self.commits.log.size || !self.config.admission {
            return Ok(());
        }
        self.set_log_tasks(now, wanted)?;
        self.commits.log.size = wanted;
        Ok(())
    }

    /// Tells the store how long records may be that the log's contracts hold.
    pub(crate) fn log_is_recounted(&mut self) {
        let size = self.commits.log.size;
        self.store.set_increment(size);
    }

    /// Whether the log's contracts would have to grow for what a writer of a volume adds.
    pub(crate) fn log_grows(&mut self, volume: VolumeId, contract: &Contract, mode: Mode) -> bool {
        let adds = self.record_adds(volume, contract, mode);
        let log = &mut self.commits.log;
        let before = log.note(volume, Some(adds));
        let grows = log.wanted() > log.size;
        log.note(volume, before);
        grows
    }

    /// What a writer of a volume may come to between two commits.
    fn record_adds(&self, volume: VolumeId, contract: &Contract, mode: Mode) -> Adds {
        let found = self.store.volume(volume);
        let placement = found.map(|volume| volume.placement());
        // What a ring gives up is a change that is shorter than that of an extent.
        let gives_up = u64::from(found.is_some_and(|volume| volume.is_ring()));
        let disks = placement.map_or((1, store::EXTENT), |on| (on.disks.len(), on.run));
        // In sweeps windows hold what passes until a block is there.
        let response = match self.config.policy.admission {
            Admission::Sweeps(rule) => rule.response(),
            _ => Duration::ZERO,
        };
        let late = self.config.host_latency.max(limits::RECORD_LATE).saturating_add(response);
        let extents = extents_of(contract, mode, disks, self.config.commit_interval, late);
        // A member's window is a block longer. (A block that was synced in part gets a second place: more of
        // these than best effort leaves room for take longer.)
        let is_thin = found.is_some_and(|volume| volume.is_thin());
        let extents = extents.saturating_add(u64::from(is_thin));
        let placed = if is_thin { extents } else { 0 };
        Adds { extents: extents + gives_up, placed }
    }

    /// The writer of a volume has gone.
    pub(crate) fn log_leaves(&mut self, now: Instant, volume: VolumeId) {
        self.commits.log.note(volume, None);
        self.fit_log(now);
    }

    /// Lets the log's contracts shrink to what they have to hold, unless a commit runs. Says
    /// whether they have.
    pub(crate) fn fit_log(&mut self, now: Instant) -> bool {
        let wanted = self.commits.log.wanted();
        // A commit that failed may have left pieces that still wait for their disks.
        let rests = self.commits.running.is_none() && self.commits.pieces.is_empty();
        // A disk that is far behind may not do it now; it is tried again.
        rests && wanted < self.commits.log.size && self.set_log(now, wanted).is_ok()
    }

    /// Lets the log's contracts hold so many bytes, on all disks or on none.
    fn set_log(&mut self, now: Instant, size: Bytes) -> Result<(), Refusal> {
        self.set_log_tasks(now, size)?;
        self.commits.log.size = size;
        self.log_is_recounted();
        Ok(())
    }

    fn set_log_tasks(&mut self, now: Instant, size: Bytes) -> Result<(), Refusal> {
        let before: Vec<LogTasks> = self.disks.iter().map(|disk| disk.log.clone()).collect();
        let all = (0..self.disks.len() as u16).map(DiskIndex);
        let set = self.attempt(all.clone(), |core| {
            let grows = size > core.commits.log.size;
            all.into_iter().try_for_each(|disk| {
                core.set_log_on(now, disk, size)?;
                let bears = if grows { core.bears_host(disk) } else { Ok(()) };
                bears.map_err(|error| error.into_refusal().expect("that is one"))
            })
        });
        if set.is_err() {
            for (disk, log) in self.disks.iter_mut().zip(before) {
                disk.log = log;
            }
        }
        for disk in &mut self.disks {
            disk.queue.set_own(disk.log.len());
        }
        set
    }

    fn set_log_on(&mut self, now: Instant, disk: DiskIndex, size: Bytes) -> Result<(), Refusal> {
        let at_most = put_off_max(&self.config);
        let (task, count) = self.log_tasks(disk, size)?;
        let state = self.disk(disk);
        let refused = |refusal: sched::Refusal| contract::refused(disk, &refusal);
        for write in state.log.writes.drain(count.min(state.log.writes.len())..) {
            let left = state.queue.leave(write.id);
            assert!(left.is_empty(), "no commit is running");
        }
        for write in &mut state.log.writes {
            write.change(&mut state.queue, now, task, at_most).map_err(refused)?;
        }
        while state.log.writes.len() < count {
            let write = LogWrite::join(&mut state.queue, now, task, at_most).map_err(refused)?;
            state.log.writes.push(write);
        }
        Ok(())
    }

    /// The contract of each write on a disk, and how many of them hold so many bytes.
    fn log_tasks(&self, disk: DiskIndex, size: Bytes) -> Result<(Task, usize), Refusal> {
        let state = &self.disks[disk.as_usize()];
        let capacity = state.queue.capacity();
        let (count, piece) = Log::pieces_of(size);
        let cost = log_write(state.queue.profile(), capacity, piece);
        let interval = self.config.commit_interval;
        self.seen(disk).possible(disk, cost, interval / 3, interval)?;
        let gap = state.queue.gap();
        let costs = Costs::new(&self.config, state.queue.profile(), capacity, gap);
        Ok((costs.log(&self.config, cost)[1], count))
    }

    /// The contracts of the log on a disk, as they should be by the costs of now; `Err` where
    /// even an idle disk could not keep them.
    pub(crate) fn log_wanted(&self, disk: DiskIndex) -> Result<Vec<(TaskId, Task)>, Refusal> {
        let state = &self.disks[disk.as_usize()];
        let (capacity, gap) = (state.queue.capacity(), state.queue.gap());
        let costs = Costs::new(&self.config, state.queue.profile(), capacity, gap);
        let [flush, _] = costs.metadata(&self.config);
        let (write, _) = self.log_tasks(disk, self.commits.log.size)?;
        let writes = state.log.writes.iter().map(|own| (own.id, write));
        Ok(core::iter::once((state.log.flush, flush)).chain(writes).collect())
    }

    /// Lets the log's contracts begin anew, as if nothing had been committed
    /// lately; only while there is no stream whom that could harm.
    pub(crate) fn renew_metadata(&mut self, now: Instant) {
        for disk in &mut self.disks {
            for id in disk.log.ids_mut() {
                let task = disk.queue.tasks().get(*id).expect("the log's tasks stay");
                // A disk in trouble may not take it now: the old one stays.
                if let Ok(renewed) = disk.queue.join(now, task) {
                    let left = disk.queue.leave(*id);
                    assert!(left.is_empty(), "no commit is running");
                    *id = renewed;
                }
            }
        }
    }
}
