//! The services that the pool keeps are put in force (`kept.rs`).

use crate::api::*;
use crate::node::Node;
use crate::volumes::service;
use alloc::string::String;
use alloc::vec::Vec;
use store::VolumeId;
use units::Instant;

impl Node {
    /// Admits the services that the pool keeps, the oldest volume's first. Before anything
    /// else is asked of the node.
    pub(crate) fn admit_kept(&mut self) {
        let with_service = self.core.store.volumes().filter(|volume| volume.service().is_some());
        let volumes: Vec<VolumeId> = with_service.map(|volume| volume.id()).collect();
        for volume in volumes {
            if let Err(error) = self.serve_as_kept(Instant::EPOCH, volume) {
                self.kept_out.why.insert(volume, error);
            }
        }
        // What refusals leave to be searched is nobody's answer.
        self.core.search = None;
    }

    fn serve_as_kept(&mut self, now: Instant, volume: VolumeId) -> Result<(), Error> {
        let kept = self.core.store.volume(volume).and_then(|volume| volume.service());
        let service = kept.map(|kept| service::of_kept(kept.kind)).unwrap_or_default();
        let name = String::new(); // it is the service that may ask for a promise or not
        self.core.may_promise(&Op::VolumeService { name, service })?;
        self.serve_volume(now, volume, service)
    }

    /// Serves a volume in this way from now on, and keeps that; or changes nothing.
    pub(crate) fn serve_and_keep(
        &mut self,
        now: Instant,
        who: &Who,
        name: &str,
        service: Service,
    ) -> Result<(), Error> {
        let volume = self.find(name)?;
        let kept = service::to_keep(&service, who.uid);
        self.core.store.check_service(volume, kept)?;
        self.serve_volume(now, volume, service)?;
        self.core.store.set_service(volume, kept).expect("checked above");
        self.kept_out.forget(volume);
        self.try_host(now);
        self.given_back(now);
        Ok(())
    }

    /// Something that contracts have was given back: who is kept out is tried again.
    pub(crate) fn given_back(&mut self, now: Instant) {
        if self.kept_out.given_back(now) {
            self.core.wake_timers();
        }
    }

    /// Tries one of those that are kept out, if it is time.
    pub(crate) fn try_kept_out(&mut self, now: Instant) {
        if self.is_ending() {
            return;
        }
        let Some(volume) = self.kept_out.next(now) else { return };
        match self.serve_as_kept(now, volume) {
            Ok(()) => self.kept_out.forget(volume),
            Err(error) => drop(self.kept_out.why.insert(volume, error)),
        }
        self.core.search = None;
    }

    /// The service that a volume was given and does not have, and why.
    pub(crate) fn kept_out_of(&self, volume: VolumeId) -> Option<KeptOut> {
        let why = self.kept_out.why.get(&volume)?.clone();
        let kept = self.core.store.volume(volume)?.service()?;
        Some(KeptOut { service: service::of_kept(kept.kind), why: why.into() })
    }

    /// The volumes whose service is kept and does not fit, with it, in the order of their age.
    pub fn kept_out(&self) -> impl Iterator<Item = (String, KeptOut)> {
        self.kept_out.why.keys().map(|&id| {
            let volume = self.core.store.volume(id).expect("kept out while it is there");
            let kept_out = self.kept_out_of(id).expect("kept out while it is kept");
            (volume.name().into(), kept_out)
        })
    }
}
