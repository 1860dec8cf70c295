//! In which commands the requests of streams are served: whole, or in chunks between which
//! nearer deadlines go.
//!
//! Others wait for a command, and a block of a megabyte takes a disk longer than many a contract
//! of answers in time allows. So where such a contract is concerned (and only there: a chunk more
//! costs a turn of the platters) and admission refuses with the commands as they are, it tries
//! shorter ones, the longest first: all streams of the disk are admitted again in chunks of that
//! length, best effort goes in pieces no longer, and what refused is asked once more. All of that
//! holds, or nothing has changed. When the last contract of answers in time has left a disk,
//! requests are whole again.

use crate::admission::asked::Asked;
use crate::admission::contract::Share;
use crate::admission::costs::{Costs, piece_within};
use crate::api::{Contract, DiskIndex, Error, Policy, Refusal, Service};
use crate::core::Core;
use crate::{limits, work};
use alloc::vec::Vec;
use sched::{Task, TaskId};
use units::{Bytes, Direction, Instant};

impl Core {
    /// Whether requests can be in chunks: under the policy that looks at the exact slack before
    /// it lets others go, on a disk that admits contracts.
    fn may_have_chunks(&self, disk: DiskIndex) -> bool {
        let profile = self.disks[disk.as_usize()].queue.profile();
        // A bus is counted for as it was described, by the commands that there are.
        self.config.admission && self.config.policy.is(Policy::SLACK) && profile.bus.is_none()
    }

    /// A volume or a handle with tasks on the disk is promised answers in time.
    pub(crate) fn has_latency_on(&self, disk: DiskIndex) -> bool {
        self.services.0.values().any(|served| {
            let is_latency = matches!(served.service, Service::Latency { .. });
            is_latency && served.tasks.iter().any(|joined| joined.disk == disk)
        })
    }

    /// Lets `admit` take a contract on a disk, or something that all contracts there have to bear,
    /// in shorter commands where it is refused as they are. `is_latency`: it is a contract of
    /// answers in time.
    pub(crate) fn admit_on<T>(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        is_latency: bool,
        mut admit: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // Who is admitted twice may be refused the second time.
        let first = match self.owes_host(disk) {
            true => self.attempt([disk], &mut admit),
            false => admit(self),
        };
        let mut refused = match first {
            Err(refused) => refused,
            admitted => return admitted,
        };
        if !self.may_have_chunks(disk) || !(is_latency || self.has_latency_on(disk)) {
            return Err(refused);
        }
        let present = self.chunk(disk);
        for chunk in limits::chunks().filter(|chunk| *chunk != present) {
            let tried = self.attempt([disk], |core| {
                core.set_chunk(now, disk, chunk).map_err(Error::Refused)?;
                admit(core)
            });
            match tried {
                Ok(admitted) => return Ok(admitted),
                Err(shorter) => refused = nearer(refused, shorter),
            }
        }
        Err(refused)
    }

    /// The longest command of streams and best effort, where they are in chunks.
    pub(crate) fn chunk(&self, disk: DiskIndex) -> Option<Bytes> {
        self.disks[disk.as_usize()].queue.chunks().map(|chunks| chunks.len)
    }

    /// Streams on the disk are served in longer commands again, where contracts have left.
    pub(crate) fn relax_chunks(&mut self, disk: DiskIndex) {
        let Some(present) = self.chunk(disk) else { return };
        if self.has_latency_on(disk) {
            return;
        }
        // What was admitted with what was measured of the host stays so.
        let bears_host = self.bears_host(disk).is_ok();
        let longer = |chunk: &Option<Bytes>| chunk.is_none_or(|chunk| chunk > present);
        for chunk in limits::chunks().filter(longer) {
            let set = |core: &mut Self| {
                // The queue knows a later time.
                core.set_chunk(Instant::EPOCH, disk, chunk).map_err(Error::Refused)?;
                if bears_host { core.bears_host(disk) } else { Ok(()) }
            };
            if self.attempt([disk], set).is_ok() {
                return;
            }
        }
    }

    /// What was admitted in other commands on these disks has left: those that there were before
    /// suffice.
    pub(crate) fn put_chunks_back(&mut self, now: Instant, before: &[(DiskIndex, Option<Bytes>)]) {
        for &(disk, chunk) in before {
            if self.chunk(disk) != chunk {
                // Refused only for the moment: then they are shorter for some time longer.
                let _ = self.attempt([disk], |core| core.set_chunk(now, disk, chunk));
            }
        }
    }

    /// All streams of the disk in chunks of this length, or whole; may fail half-way.
    fn set_chunk(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        chunk: Option<Bytes>,
    ) -> Result<(), Refusal> {
        let state = &self.disks[disk.as_usize()];
        let (queue, chunking) = (&state.queue, &state.chunking);
        let (profile, capacity) = (queue.profile(), queue.capacity());
        let costs = Costs::new(&self.config, profile, capacity, queue.gap());
        let whole = chunking.reserve_whole.unwrap_or(queue.tasks().reserve());
        let most = chunk.map_or(costs.piece, |chunk| chunk.min(costs.piece));
        let (piece, cost) = piece_within(profile, capacity, most, whole);
        let reserve = if chunk.is_some() { cost.min(whole) } else { whole };
        let seen = crate::admission::contract::Seen { chunk, ..self.seen(disk) };
        let task = |(id, asked): (TaskId, &Asked)| {
            Ok((id, seen.task(&asked.contract, &asked.share, asked.way)?))
        };
        let tasks: Vec<(TaskId, Task)> =
            chunking.asked().map(task).collect::<Result<_, Refusal>>()?;
        let state = self.disk(disk);
        let set = state.queue.set_commands(now, &tasks, reserve);
        set.map_err(|refusal| crate::admission::contract::refused(disk, &refusal))?;
        state.queue.set_chunks(chunk.map(work::chunks));
        state.set_piece(piece);
        state.chunking.reserve_whole = chunk.map(|_| whole);
        Ok(())
    }

    /// A stream has this task on the disk of the share from here on.
    pub(crate) fn note_asked(
        &mut self,
        id: TaskId,
        contract: &Contract,
        share: &Share,
        way: Direction,
    ) {
        let asked = Asked { contract: *contract, share: share.clone(), way };
        self.disk(share.disk).chunking.note(id, Some(asked));
    }
}

/// Of two refusals of one contract the one to be told: what is missing where the least is; and where
/// only what was measured of the host is in the way, that it is.
fn nearer(mut first: Error, mut shorter: Error) -> Error {
    let deadline = |error: &mut Error| error.refusal_mut().and_then(|refusal| refusal.deadline);
    let is_host = |error: &Error| matches!(error, Error::BeyondHost { .. });
    let is_less = match (deadline(&mut first), deadline(&mut shorter)) {
        (Some((within, more)), Some((same, less))) => within == same && less < more,
        _ => false,
    };
    let is_nearer = match (is_host(&first), is_host(&shorter)) {
        (one, other) if one == other => is_less,
        (_, is_host) => is_host,
    };
    if is_nearer { shorter } else { first }
}
