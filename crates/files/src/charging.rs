//! What the host takes between two reads of a device, and from an answer to its program:
//! measured, and charged to every contract on the device, as on a pool's disks (`node`).
//!
//! Where more was measured than is charged, all contracts are admitted again with it. Where
//! they do not all fit, what is charged stays, those that do not fit are named, and it is tried
//! again when a stream has closed. The share that contracts may have of the device is looked at
//! when they are given, and not here: it is no bound on what can be kept.
//!
//! Invariant: a set that was changed in part is never left so.

use crate::device::{Device, TaskOf};
use alloc::boxed::Box;
use alloc::vec::Vec;
use node::{Contract, Error, HostTime, Refusal, StreamId};
use queue::limits::GAP_MAX;
use sched::TaskSet;
use units::{Duration, Instant};

impl Device {
    /// By how much deadlines are advanced.
    pub(crate) fn deadline_advance(&self) -> Duration {
        self.options().host_latency.saturating_add(self.host.delivery)
    }

    /// What the host takes from the end of a read until the next one begins that waits, and why
    /// more is not charged where more was measured.
    pub fn gaps(&self) -> (HostTime, Option<&Error>) {
        (self.queue.gaps(), self.host.gap_refused.as_ref().map(|(_, error)| error))
    }

    /// What is counted for the way of an answer to its program, and why no more where more was
    /// asked for.
    pub fn delivery(&self) -> (Duration, Option<&Error>) {
        (self.host.delivery, self.host.delivery_refused.as_ref().map(|(_, error)| error))
    }

    /// A read has ended: perhaps another gap is to be charged.
    pub(crate) fn follow_gap(&mut self, now: Instant) {
        if let Some(gap) = self.queue.take_gap_wanted() {
            self.try_gap(now, gap);
        }
    }

    /// A stream has closed: perhaps what did not fit fits now.
    pub(crate) fn try_host(&mut self, now: Instant) {
        if let Some(gap) = self.host.gap_refused.as_ref().map(|(gap, _)| *gap) {
            self.try_gap(now, gap);
        }
        if let Some(takes) = self.host.delivery_refused.as_ref().map(|(takes, _)| *takes) {
            self.set_delivery(now, takes);
        }
    }

    fn try_gap(&mut self, now: Instant, gap: Duration) {
        self.host.gap_refused = None;
        if gap == self.queue.gap() {
            return; // the host is calm again
        }
        let Err(refusal) = self.queue.set_gap(now, gap) else { return };
        let undecided = refusal.undecided;
        let (disk, volumes) = (self.index, Vec::new());
        let streams =
            if undecided { Vec::new() } else { self.not_fitting(gap, self.deadline_advance()) };
        let refusal = Box::new(self.refused(&refusal));
        let error = Error::GapRefused { disk, gap, undecided, streams, volumes, refusal };
        self.host.gap_refused = Some((gap, error));
    }

    /// Answers take so long from here to their programs: deadlines are so much earlier, where
    /// all contracts fit so.
    pub fn set_delivery(&mut self, now: Instant, takes: Duration) {
        let takes = takes.min(GAP_MAX);
        self.host.delivery_refused = None;
        let before = self.host.delivery;
        if takes == before {
            return;
        }
        self.host.delivery = takes;
        if let Err(error) = self.advance_all(now) {
            self.host.delivery = before;
            let error = match error {
                Error::Refused(refusal) => {
                    let advance = self.options().host_latency.saturating_add(takes);
                    let streams = match refusal.undecided {
                        true => Vec::new(),
                        false => self.not_fitting(self.queue.gap(), advance),
                    };
                    let (volumes, refusal) = (Vec::new(), Box::new(refusal));
                    Error::DeliveryRefused { takes, streams, volumes, refusal }
                }
                other => other,
            };
            self.host.delivery_refused = Some((takes, error));
        }
    }

    /// Gives every contract the deadline, and the window, that go with what is counted now; all
    /// of them or none.
    fn advance_all(&mut self, now: Instant) -> Result<(), Error> {
        let tasks: Vec<(StreamId, TaskOf, Contract)> = self.tasks_of_streams();
        let windows = tasks.iter().map(|(_, _, contract)| self.window(contract)).sum();
        if windows > self.options().memory {
            let free = self.options().memory;
            return Err(Error::NoMemory { asked: windows, free });
        }
        let before = self.queue.schedule().clone();
        let mut wanted = Vec::new();
        for (id, (task_id, task), contract) in tasks {
            let changed = self.task(&contract, task.cost).and_then(|new| {
                let changed = self.queue.change(now, task_id, new);
                changed.map(|()| new).map_err(|refusal| self.refused(&refusal))
            });
            match changed {
                Ok(new) => wanted.push((id, (task_id, new))),
                Err(refusal) => {
                    self.queue.restore(before);
                    return Err(Error::Refused(refusal));
                }
            }
        }
        self.queue.set_advance(self.deadline_advance());
        wanted.into_iter().for_each(|(id, task)| self.advanced(now, id, task));
        Ok(())
    }

    /// Of the streams, in the order in which they were opened, those that do not fit beside the
    /// ones before them with this gap, and deadlines that are so much earlier.
    fn not_fitting(&self, gap: Duration, advance: Duration) -> Vec<StreamId> {
        let mut set = TaskSet::new(self.options().others).with_gap(gap).with_online_slack(true);
        let tasks = self.tasks_of_streams().into_iter();
        let fits = |contract: &Contract, cost, set: &mut TaskSet| {
            let task = self.task_within(contract, cost, advance);
            task.is_ok_and(|task| set.add(task).is_ok())
        };
        tasks
            .filter(|(_, (_, task), contract)| !fits(contract, task.cost, &mut set))
            .map(|(id, ..)| id)
            .collect()
    }

    /// A refusal as programs hear it.
    pub(crate) fn refused(&self, refusal: &sched::Refusal) -> Refusal {
        let undecided = refusal.undecided;
        Refusal { undecided, ..self.refusal(refusal.utilisation_ppm, refusal.deadline) }
    }
}
