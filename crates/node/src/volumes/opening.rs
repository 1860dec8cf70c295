//! Handles with contracts of their own are opened and closed (`handles.rs`).

use crate::api::*;
use crate::core::Core;
use crate::limits::HANDLES_MAX;
use crate::node::Node;
use crate::volumes::services::Holder;
use alloc::vec::Vec;
use store::VolumeId;
use units::Instant;

impl Core {
    /// How what is asked for on a volume, perhaps by a handle, is served.
    pub(crate) fn holder(&self, volume: VolumeId, handle: Option<HandleId>) -> Holder {
        let is_on = |handle: &HandleId| {
            self.handles.open.get(handle).is_some_and(|&(other, _)| other == volume)
        };
        Holder { volume, handle: handle.filter(is_on) }
    }

    /// The handles on a volume, in the order in which they were opened.
    pub(crate) fn handles_on(&self, volume: VolumeId) -> Vec<HandleStatus> {
        let handles = self.services.on(volume).into_iter().filter_map(|holder| {
            let handle = holder.handle?;
            let (service, account) = self.services.of(holder);
            let (operations, memory) = self.reserves.of(holder);
            let (_, uid) = *self.handles.open.get(&handle)?;
            let shares = self.services.shares(holder);
            Some(HandleStatus { handle, uid, service, account, shares, operations, memory })
        });
        handles.collect()
    }

    /// The volume is gone, and its service and the handles on it.
    pub(crate) fn serve_nothing_on(&mut self, volume: VolumeId) {
        for holder in self.services.on(volume) {
            self.serve_no_more(holder);
            if let Some(handle) = holder.handle {
                self.handles.open.remove(&handle);
            }
        }
    }
}

impl Node {
    pub(crate) fn open_handle(
        &mut self,
        now: Instant,
        who: &Who,
        name: &str,
        service: Service,
    ) -> Result<Reply, Error> {
        let volume = self.find(name)?;
        if !matches!(service, Service::Latency { .. }) {
            let rule = "answers within a time; a rate is given to a volume, or to a stream";
            return Err(Error::Invalid { what: "contract of a handle", rule });
        }
        let handles = &mut self.core.handles;
        if handles.open.len() >= HANDLES_MAX {
            return Err(Error::Busy { waiting: handles.open.len() as u64 });
        }
        let handle = HandleId(handles.next);
        handles.next += 1;
        self.serve_holder(now, Holder { volume, handle: Some(handle) }, service)?;
        self.core.handles.open.insert(handle, (volume, who.uid));
        Ok(Reply::Handle { handle })
    }

    pub(crate) fn close_handle(&mut self, now: Instant, handle: HandleId) {
        let Some(&(volume, _)) = self.core.handles.open.get(&handle) else { return };
        let holder = Holder { volume, handle: Some(handle) };
        // What waits comes out of the contract first.
        let plain = self.serve_holder(now, holder, Service::default());
        plain.expect("nothing is promised to best effort");
        self.core.serve_no_more(holder);
        self.core.handles.open.remove(&handle);
        self.best_effort.leave_handle(&mut self.core, now, holder);
        self.try_host(now);
        self.given_back(now);
    }
}
