//! Who needs a volume of which no write is [behind](crate::best_effort), or behind whose end zeros lie,
//! and waits for that.

use crate::api::*;
use crate::best_effort::{Deferred, Flushed};
use crate::core::Core;
use crate::limits;
use crate::node::Node;
use alloc::vec::Vec;
use store::VolumeId;
use units::{Bytes, Instant};

impl Node {
    /// The volumes that must be at rest for this, the first of which is not; none where all are.
    pub(crate) fn behind_of(&self, op: &Op) -> Vec<VolumeId> {
        let id = |name| self.core.store.find(name).map(|volume| volume.id());
        let volumes = needs_rest(op).map(|name| name.and_then(id));
        let is_behind = |volume: Option<VolumeId>| {
            volume.is_some_and(|volume| self.best_effort.is_behind(volume))
        };
        let [first, second] = match volumes {
            [first, second] if is_behind(second) && !is_behind(first) => [second, first],
            volumes => volumes,
        };
        if !is_behind(first) {
            return Vec::new();
        }
        first.into_iter().chain(second).collect()
    }

    /// The volume, and the block that it ends in, where this waits until zeros lie behind the end: it moves
    /// the end on over bytes that it does not write, or needs a volume whose end is being cleared.
    pub(crate) fn unclear_before(&self, op: &Op) -> Option<(VolumeId, Bytes)> {
        let Core { store, writes, .. } = &self.core;
        let unclear = |name: &str| {
            let volume = store.find(name)?.id();
            writes.ends.unclear(store, volume).map(|(block, end)| ((volume, block), end))
        };
        let is_being_cleared = |name: &str| {
            let volume = store.find(name).map(store::Volume::id);
            volume.is_some_and(|volume| self.best_effort.clears_end_of(volume))
        };
        let needed = needs_rest(op).into_iter().flatten();
        if let Some(name) = needed.into_iter().find(|name| is_being_cleared(name)) {
            return unclear(name).map(|(block, _)| block);
        }
        let is_ring = |name: &str| store.find(name).is_some_and(store::Volume::is_ring);
        // A writer has found it clear; and what would be refused anyway is not prepared.
        let prepares = |name| self.writer_of(name).is_none() && self.core.read_only().is_none();
        match op {
            Op::Staged(op) => self.unclear_before(op),
            Op::VolumeExtend { name, length } => {
                let (block, end) = unclear(name)?;
                (*length > end && prepares(name) && !is_ring(name)).then_some(block)
            }
            _ => {
                // It may go anywhere, and write what it finds there.
                let (name, start) = opened_to_write(op)?;
                let volume = store.find(name)?.id();
                let block = writes.ends.unclear_for(store, volume, start)?;
                prepares(name).then_some((volume, block))
            }
        }
    }

    /// Who waited for writes that were behind goes on where these have ended, a few at a time. Then writes are
    /// answered before they are on their disk, where they may be: not where a stream would read, or write,
    /// beside them.
    pub(crate) fn go_on_behind(&mut self, now: Instant) {
        for _ in 0..limits::GO_ON_STEP {
            let Some(deferred) = self.best_effort.go_on(&mut self.core, now) else { break };
            let Deferred { ticket, who, op, arrived, .. } = deferred;
            self.request(now, ticket, &who, op, arrived);
        }
        if self.best_effort.has_free() {
            self.core.wake_timers();
        }
        let streams = &self.streams;
        self.best_effort.answer_ahead(&mut self.core, |volume| streams.count_on(volume) > 0);
    }

    /// [`Op::SyncVolume`].
    pub(crate) fn sync_volume(
        &mut self,
        now: Instant,
        (ticket, uid): (Ticket, u32),
        name: &str,
        told: Option<u64>,
    ) {
        let volume = match self.find(name) {
            Ok(volume) => volume,
            Err(error) => return self.core.answer(ticket, Err(error)),
        };
        let Some(told) = told else {
            return self.core.answer_when_committed(now, (ticket, uid), Reply::Done);
        };
        let of = Some(Flushed { volume, told });
        self.best_effort.sync(&mut self.core, now, (ticket, uid), of);
    }
}

/// The volume that is opened by this for a stream that writes, and where that begins.
fn opened_to_write(op: &Op) -> Option<(&str, Bytes)> {
    let (name, mode, start) = match op {
        Op::StreamOpen { volume, mode, start, .. } | Op::WindowOpen { volume, mode, start, .. } => {
            (volume, mode, start)
        }
        Op::Open { opening, .. } => (&opening.volume, &opening.mode, &opening.start),
        _ => return None,
    };
    mode.writes().then_some((name, *start))
}

/// The volumes, by name, of which no write may be behind when this is done.
fn needs_rest(op: &Op) -> [Option<&str>; 2] {
    match op {
        Op::VolumeRename { name, to, .. } => [Some(name), Some(to)],
        Op::VolumeResize { name, .. }
        | Op::VolumeResizeWithin { name, .. }
        | Op::VolumeTruncate { name, .. }
        | Op::VolumeDelete { name, .. }
        | Op::VolumeService { name, .. } => [Some(name), None],
        Op::HandleOpen { volume, .. }
        | Op::StreamOpen { volume, .. }
        | Op::WindowOpen { volume, .. } => [Some(volume), None],
        Op::Open { opening, .. } => [Some(&opening.volume), None],
        Op::Staged(op) => needs_rest(op),
        // A read waits itself, and writes have their order.
        Op::Read { .. } | Op::Room { .. } | Op::Write { .. } | Op::SyncVolume { .. } => [None; 2],
        // They do not look at the bytes of a volume, nor at where they are.
        Op::VolumeCreate { .. }
        | Op::RingCreate { .. }
        | Op::RingKeep { .. }
        | Op::VolumeCopied { .. }
        | Op::VolumeAccess { .. }
        | Op::VolumeExtend { .. }
        | Op::VolumeTimes { .. }
        | Op::Place { .. }
        | Op::HandleClose { .. }
        | Op::Block { .. }
        | Op::Release { .. }
        | Op::Sync
        | Op::HostLatency { .. }
        | Op::Delivery { .. }
        | Op::ProfileSet { .. }
        | Op::BusSet { .. }
        | Op::PolicySet { .. }
        | Op::Reprofile { .. }
        | Op::Plan
        | Op::Shutdown => [None; 2],
        // Where a stream is open nothing is behind.
        Op::StreamChange { .. }
        | Op::StreamRead { .. }
        | Op::StreamAdvance { .. }
        | Op::StreamRoom { .. }
        | Op::StreamWrite { .. }
        | Op::StreamDurable { .. }
        | Op::StreamSync { .. }
        | Op::StreamClose { .. }
        | Op::StreamSeek { .. }
        | Op::StreamBegin { .. }
        | Op::WindowNext { .. }
        | Op::WindowMoved { .. }
        | Op::WindowWaits { .. } => [None; 2],
    }
}
