//! What the host takes between two reads of a device, and from an answer to its program:
//! measured, and charged to every contract on the device, as on a pool's disks (`node`).
//!
//! Where more was measured than is charged, all contracts are admitted again with it. Where
//! they do not all fit, what is charged stays, those that do not fit are named, and it is tried
//! again when a stream has closed: at once, then once a second for all that have closed, because
//! each time all contracts are admitted anew; and when nothing has confirmed for long what was
//! measured. Until it fits no contract is given or widened that
//! does not fit with it. The share that contracts may have of the device is looked at
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

/// So often at the most all contracts are admitted anew because streams have closed.
const TRIED_EVERY: Duration = Duration::from_secs(1);

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
        if self.host.gap_refused.is_none() && self.host.delivery_refused.is_none() {
            self.host.again = None;
            return;
        }
        let due = self.host.tried.map_or(now, |tried| tried.saturating_add(TRIED_EVERY));
        if now < due {
            self.host.again = Some(due);
            return;
        }
        (self.host.tried, self.host.again) = (Some(now), None);
        if let Some(gap) = self.host.gap_refused.as_ref().map(|(gap, _)| *gap) {
            self.try_gap(now, gap);
        }
        if let Some(takes) = self.host.delivery_refused.as_ref().map(|(takes, _)| *takes) {
            self.set_delivery(now, takes);
        }
    }

    /// What was measured of gaps long ago does not count any more, if it is time.
    pub(crate) fn forget_gaps(&mut self, now: Instant) {
        if self.host.gaps_due.is_some_and(|at| at <= now) {
            self.queue.forget_gaps(now);
            self.follow_gap(now);
            self.host.gaps_due = self.queue.gaps_due();
        }
    }

    fn try_gap(&mut self, now: Instant, gap: Duration) {
        self.state_gap(now, gap);
        self.host.gaps_due = self.queue.gaps_due();
    }

    fn state_gap(&mut self, now: Instant, gap: Duration) {
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
        let before = self.queue.attempt();
        let mut wanted = Vec::new();
        for (id, (task_id, task), contract) in tasks {
            let changed = self.task(&contract, task.cost).and_then(|new| {
                let changed = self.queue.change(now, task_id, new);
                changed.map(|()| new).map_err(|refusal| self.refused(&refusal))
            });
            match changed {
                Ok(new) => wanted.push((id, (task_id, new))),
                Err(refusal) => {
                    self.queue.undo(before);
                    return Err(Error::Refused(refusal));
                }
            }
        }
        self.queue.keep(before);
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

    /// Whether a contract fits also with what was measured and is not charged: that is what the
    /// host takes, whoever is refused for it. A contract that the stream has goes.
    pub(crate) fn bears_host(
        &self,
        id: StreamId,
        contract: &Contract,
        cost: Duration,
    ) -> Result<(), Error> {
        let host = &self.host;
        let (gap, delivery) = match (&host.gap_refused, &host.delivery_refused) {
            (None, None) => return Ok(()),
            (gap, delivery) => (
                gap.as_ref().map_or(self.queue.gap(), |(gap, _)| *gap),
                delivery.as_ref().map_or(host.delivery, |(takes, _)| *takes),
            ),
        };
        let advance = self.options().host_latency.saturating_add(delivery);
        let mut set = TaskSet::new(self.options().others).with_gap(gap).with_online_slack(true);
        let tasks = self.tasks_of_streams().into_iter().filter(|(other, ..)| *other != id);
        let tasks = tasks.map(|(_, (_, task), contract)| (contract, task.cost));
        for (contract, cost) in tasks.chain([(*contract, cost)]) {
            let task = self.task_within(&contract, cost, advance);
            let added = task
                .and_then(|task| set.add(task).map(drop).map_err(|refusal| self.refused(&refusal)));
            let Err(refusal) = added else { continue };
            // Others' streams that do not fit are told to administrators, with the device.
            let (streams, volumes, refusal) = ([id].into(), Vec::new(), Box::new(refusal));
            let undecided = refusal.undecided;
            return Err(match host.gap_refused {
                Some(_) => Error::GapRefused {
                    disk: self.index,
                    gap,
                    undecided,
                    streams,
                    volumes,
                    refusal,
                },
                None => Error::DeliveryRefused { takes: delivery, streams, volumes, refusal },
            });
        }
        Ok(())
    }

    /// A refusal as programs hear it.
    pub(crate) fn refused(&self, refusal: &sched::Refusal) -> Refusal {
        let undecided = refusal.undecided;
        Refusal { undecided, ..self.refusal(refusal.utilisation_ppm, refusal.deadline) }
    }
}
