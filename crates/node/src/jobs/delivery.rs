//! What whoever drives the pool takes from when it is handed an answer until the program has
//! it, is measured there and told here ([`Op::Delivery`]). Deadlines are advanced by it, as by
//! what the host takes.
//!
//! Invariant: where another time is counted, every contract of every disk is admitted with it;
//! else nothing changes, those that would not fit are named, and no contract is given or widened
//! that does not fit with it (`admission/host.rs`). The node as it was is kept until then.

use crate::admission::costs::Costs;
use crate::api::*;
use crate::limits;
use crate::node::Node;
use units::{Duration, Instant};

impl Node {
    /// By how much deadlines are advanced for what the driver takes to deliver answers.
    pub fn delivery(&self) -> Duration {
        self.core.delivery.counted
    }

    /// The driver has carried answers of an account to their programs ([`Carried`]). Nothing
    /// where the account is gone by then.
    pub fn carried(&mut self, account: AccountOf, carried: &Carried) {
        match account.0 {
            UnderContract::Service(holder) => {
                let served = self.core.services.0.get_mut(&holder);
                served.into_iter().for_each(|served| served.account.carry(carried));
            }
            UnderContract::Stream(stream) => {
                let stream = self.streams.get_mut(stream);
                stream.into_iter().for_each(|stream| carry(&mut stream.account, carried));
            }
        }
    }

    /// [`Op::Delivery`].
    pub(crate) fn set_delivery(&mut self, now: Instant, takes: Duration) -> Result<(), Error> {
        let (takes, before) = (takes.min(limits::DELIVERY_MAX), self.core.delivery.counted);
        let owed = self.core.delivery.refused.take().map(|(takes, _)| takes);
        // Who was refused because of what was measured may have it now.
        let is_less_owed = owed.is_some_and(|owed| takes < owed);
        if takes == before {
            if is_less_owed {
                self.given_back(now);
            }
            return Ok(());
        }
        if let Err(error) = self.try_with_delivery(now, takes) {
            self.core.delivery.refused = Some((takes, error.clone()));
            if is_less_owed {
                self.given_back(now);
            }
            return Err(error);
        }
        // Windows are made for what is counted, too.
        self.resize_windows(now, self.core.late);
        if takes < before || is_less_owed {
            self.given_back(now);
        }
        Ok(())
    }

    /// A contract has ended: perhaps what was asked for fits now.
    pub(crate) fn try_delivery(&mut self, now: Instant) {
        let waiting = self.core.delivery.refused.as_ref().map(|(takes, _)| *takes);
        if let Some(takes) = waiting.filter(|_| !self.is_ending()) {
            let _ = self.set_delivery(now, takes); // kept to be shown
        }
    }

    fn try_with_delivery(&mut self, now: Instant, takes: Duration) -> Result<(), Error> {
        // The store is shared with the copy: nothing of it changes meanwhile.
        let before = self.clone();
        match self.use_delivery(now, takes) {
            Ok(()) => {
                self.core.log_is_recounted();
                Ok(())
            }
            Err(error) => {
                self.restore(before);
                Err(match error {
                    Error::ProfileRefused { streams, volumes, refusal } => {
                        Error::DeliveryRefused { takes, streams, volumes, refusal }
                    }
                    other => other,
                })
            }
        }
    }

    /// May fail half-way.
    fn use_delivery(&mut self, now: Instant, takes: Duration) -> Result<(), Error> {
        let core = &mut self.core;
        let configured = core.heard_late();
        core.config.host_latency = configured + takes;
        core.delivery.counted = takes;
        let disks = (0..core.disks.len() as u16).map(DiskIndex);
        for disk in disks.clone() {
            let queue = &core.disks[disk.as_usize()].queue;
            let costs = Costs::new(&core.config, queue.profile(), queue.capacity(), queue.gap());
            let least = costs.commit_interval_under(core.config.policy, queue.profile().depth());
            core.config.commit_interval = core.config.commit_interval.max(least);
            core.disk(disk).queue.set_advance(costs.advance);
        }
        self.recharging(|node| {
            disks.into_iter().try_for_each(|disk| node.admit_all(now, disk))?;
            node.recount_log(now)
        })
    }
}
