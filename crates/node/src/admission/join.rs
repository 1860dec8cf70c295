//! Contracts join, change and leave the schedules of their disks.

use crate::admission::block;
use crate::admission::contract::{Joined, LENGTHS, Seen, Share, period, refused, window_blocks};
use crate::admission::rates::RateSearch;
use crate::api::*;
use crate::commits::times::sync_max;
use crate::core::Core;
use crate::core::Disk;
use crate::limits;
use crate::plan::{PlanDisk, Planner};
use crate::volumes::rings;
use alloc::vec::Vec;
use sched::{Task, TaskId};
use store::{EXTENT, Volume, VolumeId};
use units::{Bytes, Direction, Duration, Instant, Lba, Rate};

/// The tasks of a stream, in the order in which it has them: on each disk one for each way.
fn requests(shares: &[Share], mode: Mode) -> impl Iterator<Item = (&Share, Direction)> {
    shares.iter().flat_map(move |share| mode.directions().iter().map(move |&way| (share, way)))
}

/// How far apart the parts of a block of so many extents lie at the most. Of a thin volume more
/// may be written while it is read: that is expected to lie no farther apart than twice as far as
/// what is there, or [`THIN_REACH`](limits::THIN_REACH). What does takes longer than its contract covers, so
/// that it waits for the slack, and nobody else is late for it.
fn reach_of(volume: &Volume, disk: DiskIndex, extents: u32) -> Bytes {
    let reach = volume.reach_on(disk, extents);
    match volume.is_thin() {
        true => reach.unwrap_or_default().saturating_mul(2).max(limits::THIN_REACH),
        false => reach.unwrap_or(Bytes::MAX),
    }
}

impl Core {
    /// Whether a volume, where it is a ring, is long enough for a writer under this contract.
    pub(crate) fn check_ring(
        &self,
        volume: &Volume,
        contract: &Contract,
        (shares, mode): (&[Share], Mode),
    ) -> Result<(), Error> {
        let blocks = |late| window_blocks(contract, shares, mode, late);
        let window = |late| contract.block.saturating_mul(blocks(late));
        let windows = (window(self.config.host_latency), window(self.late));
        rings::check(volume, contract, windows, sync_max(&self.config))
    }

    /// How the extents of `volume` are shared out; where one is on its way, both of its
    /// places count. Cost: one look at each run of
    /// neighbouring extents.
    pub(crate) fn shares(&self, volume: VolumeId) -> Vec<Share> {
        let smaller = self.smaller.as_ref().filter(|smaller| smaller.id() == volume);
        let volume = smaller.or_else(|| self.store.volume(volume)).expect("the volume was found");
        let disks = &volume.placement().disks;
        let share = |&disk: &DiskIndex| {
            let mut span = match volume.is_thin() {
                true => self.store.span_on(volume.id(), disk)?,
                false => volume.span_on(disk)?,
            };
            let response = self.seen(disk).response();
            let mut parts: [u32; LENGTHS] =
                core::array::from_fn(|power| volume.pieces_on(disk, 1 << power));
            let mut reach = core::array::from_fn(|power| reach_of(volume, disk, 1 << power));
            // In sweeps others pay for a request that takes longer than it is counted.
            if volume.is_thin() && !response.is_zero() {
                reach = Share::ANYWHERE;
            }
            if let Some(target) = self.moves.target(volume.id(), disk) {
                span = span.start.min(target.start)..span.end.max(target.end);
                // What moves may leave two parts behind, and be a third.
                parts.iter_mut().skip(1).for_each(|parts| *parts += 2);
                reach = Share::ANYWHERE;
            }
            let range = Lba::containing(span.start)..Lba::containing(span.end);
            let run = volume.placement().run;
            let runs = volume.size().div_ceil(run);
            // Runs rotate over the disks; one that is alone comes once.
            let alone = volume.extents_on(disk) <= run / EXTENT;
            let gap = if alone { runs } else { disks.len() as u64 };
            let is_ring = volume.is_ring();
            let (members, miss) = (0, None);
            Some(Share { disk, gap, range, run, is_ring, members, parts, reach, response, miss })
        };
        let mut shares: Vec<Share> = disks.iter().filter_map(share).collect();
        shares.sort_by_key(|share| share.disk);
        shares
    }

    /// The block for a stream of `volume` whose program names none.
    pub(crate) fn block_for(&self, volume: VolumeId, mode: Mode, rate: Rate) -> Bytes {
        // Where it can be written together with others.
        let contract = Contract { rate, block: EXTENT, burst: Bytes::ZERO };
        let is_slow = contract.period() > limits::GROUP_PERIOD_MAX;
        if !is_slow && self.group_for(volume, (mode, &contract), &self.shares(volume)).is_some() {
            return EXTENT;
        }
        let asked = block::Asked {
            rate,
            mode,
            shares: &self.shares(volume),
            late: self.late,
            memory: self.arena.free_for_windows(),
        };
        block::chosen(&asked, |disk| self.seen(disk))
    }

    /// The run for a volume in such a place where nobody names one.
    pub(crate) fn run_for(&self, placement: &Placement, size: Bytes) -> Bytes {
        let all = 0..self.disks.len() as u16;
        let named: Vec<DiskIndex> = match placement.disks.as_slice() {
            [] => all.map(DiskIndex).collect(),
            some => some.to_vec(),
        };
        let disk = |disk: &DiskIndex| self.disks.get(disk.as_usize());
        let queues = named.iter().filter_map(disk).map(|disk| &disk.queue);
        let seen: Vec<_> = queues.map(|queue| (queue.profile(), queue.capacity())).collect();
        block::run_chosen(&seen, size)
    }

    /// A disk as admission sees it.
    pub(crate) fn seen(&self, disk: DiskIndex) -> Seen<'_> {
        let state = &self.disks[disk.as_usize()];
        Seen {
            profile: state.queue.profile(),
            advance: state.queue.advance(),
            late: self.heard_late(),
            set: state.queue.tasks(),
            chunk: self.chunk(disk),
        }
    }

    /// What `contract` asks of one disk, this way.
    fn task(&self, contract: &Contract, share: &Share, way: Direction) -> Result<Task, Refusal> {
        self.seen(share.disk).task(contract, share, way)
    }

    /// Joins `contract` on every disk, or on none and says why. Its first requests
    /// may be put off by `patience`; [`Core::begins`] says by how much they were. These take the
    /// place of `before`, which leave when their requests have ended.
    pub(crate) fn join(
        &mut self,
        now: Instant,
        contract: &Contract,
        (shares, before): (&[Share], &[Joined]),
        mode: Mode,
        patience: Duration,
    ) -> Result<Vec<Joined>, Error> {
        let ways = mode.directions();
        let mut joined = Vec::with_capacity(shares.len() * mode.directions().len());
        let chunks: Vec<_> = shares.iter().map(|one| (one.disk, self.chunk(one.disk))).collect();
        for (share, way) in requests(shares, mode) {
            let number = ways.iter().position(|&other| other == way).expect("one of these");
            let mut theirs = before.iter().filter(|old| old.disk == share.disk);
            let old = theirs.nth(number);
            let result = self.admit_on(now, share.disk, false, |core| {
                let task = match core.task(contract, share, way) {
                    Err(refusal) if core.config.admission => Err(Error::Refused(refusal)),
                    // Only without admission: the task that is nearest to possible.
                    Err(_) => {
                        let period = period(contract, share);
                        Ok(Task::new(period, period, period))
                    }
                    Ok(task) => Ok(task),
                }?;
                let old = old.map(|old| core.task_now(old));
                let id = core.disk(share.disk).queue.join_within(now, task, patience);
                let id = id.map_err(|refusal| Error::Refused(refused(share.disk, &refusal)))?;
                core.note_asked(id, contract, share, way);
                core.bears_host_more(share.disk, old, &task)?;
                Ok(Joined { disk: share.disk, id, task })
            });
            match result {
                Ok(one) => joined.push(one),
                Err(error) => {
                    self.leave(&joined);
                    self.put_chunks_back(now, &chunks);
                    let Error::Refused(refusal) = error else { return Err(error) };
                    self.search =
                        Some(RateSearch::new(|disk| self.seen(disk), contract, shares, mode, &[]));
                    let parts = share.parts_of(contract.block);
                    return Err(Error::Refused(Refusal { parts, ..refusal }));
                }
            }
        }
        Ok(joined)
    }

    /// When the last of these tasks may release its next request.
    pub(crate) fn begins(&self, tasks: &[Joined]) -> Instant {
        tasks.iter().map(|joined| self.next_release(joined)).max().unwrap_or(Instant::EPOCH)
    }

    /// Puts `contract` in the place of what these tasks keep, on every disk or on none
    /// and says why.
    pub(crate) fn change(
        &mut self,
        now: Instant,
        contract: &Contract,
        shares: &[Share],
        mode: Mode,
        tasks: &[Joined],
    ) -> Result<Vec<Joined>, Error> {
        // A change of one task that is refused changes nothing.
        let is_one = requests(shares, mode).count() == 1;
        let disks = shares.iter().filter(|_| !is_one).map(|share| share.disk);
        let changed = self.attempt::<_, Error>(disks, |core| {
            let change = |(share, way): (&Share, Direction)| {
                let mut theirs = tasks.iter().filter(|joined| joined.disk == share.disk);
                let number = mode.directions().iter().position(|&other| other == way);
                let old = theirs.nth(number.expect("one of these"));
                let old = old.expect("a stream has its tasks on each of its disks");
                core.admit_on(now, share.disk, false, |core| {
                    let task = core.task(contract, share, way).map_err(Error::Refused)?;
                    let before = core.task_now(old);
                    let queue = &mut core.disk(share.disk).queue;
                    let changed = queue.change(now, old.id, task);
                    changed.map_err(|refusal| Error::Refused(refused(share.disk, &refusal)))?;
                    core.note_asked(old.id, contract, share, way);
                    core.bears_host_more(share.disk, Some(before), &task)?;
                    Ok(Joined { task, ..*old })
                })
            };
            requests(shares, mode).map(change).collect::<Result<Vec<Joined>, Error>>()
        });
        changed.inspect_err(|error| {
            if let Error::Refused(_) = error {
                let seen = |disk| self.seen(disk);
                self.search = Some(RateSearch::new(seen, contract, shares, mode, tasks));
            }
        })
    }

    /// The same for whoever has not asked for it. Refused, too, where the next request of any of the
    /// tasks would be put off for it: it is promised when it may be released.
    pub(crate) fn change_in_turn(
        &mut self,
        now: Instant,
        contract: &Contract,
        (shares, mode): (&[Share], Mode),
        tasks: &[Joined],
    ) -> Result<Vec<Joined>, Error> {
        let turns: Vec<Instant> = tasks.iter().map(|task| self.next_release(task)).collect();
        self.attempt(shares.iter().map(|share| share.disk), |core| {
            let changed = core.change(now, contract, shares, mode, tasks)?;
            let mut turns = tasks.iter().zip(turns);
            match turns.find(|(task, turn)| core.is_put_off((task.disk, task.id), *turn, now)) {
                Some((task, _)) => Err(Error::Refused(core.undecided(task.disk))),
                None => Ok(changed),
            }
        })
    }

    /// Whether a task that could have released its next request at `turn` may do so later now.
    pub(crate) fn is_put_off(
        &self,
        (disk, id): (DiskIndex, TaskId),
        turn: Instant,
        now: Instant,
    ) -> bool {
        let schedule = self.disks[disk.as_usize()].queue.schedule();
        self.promises() && schedule.next_release(id) > turn.max(now)
    }

    /// What is said where it cannot be decided beside what waits on a disk now.
    pub(crate) fn undecided(&self, disk: DiskIndex) -> Refusal {
        let utilisation_ppm = self.seen(disk).set.utilisation().ppm();
        refused(disk, &sched::Refusal::undecided(utilisation_ppm))
    }

    pub(crate) fn leave(&mut self, tasks: &[Joined]) {
        for joined in tasks {
            let disk = self.disk(joined.disk);
            disk.queue.leave(joined.id);
            disk.chunking.note(joined.id, None);
        }
    }

    /// What `contract` asks of every disk; `None` where one could not keep it
    /// even if idle.
    pub(crate) fn tasks(
        &self,
        contract: &Contract,
        shares: &[Share],
        mode: Mode,
    ) -> Option<Vec<(DiskIndex, Task)>> {
        requests(shares, mode)
            .map(|(share, way)| Some((share.disk, self.task(contract, share, way).ok()?)))
            .collect()
    }

    /// What planning needs to know of this pool now.
    pub(crate) fn planner(&self) -> Planner {
        let disk = |disk: &Disk| PlanDisk {
            profile: disk.queue.profile().clone(),
            capacity: disk.queue.capacity(),
            advance: disk.queue.advance(),
            late: self.heard_late(),
            set: disk.queue.tasks().clone(),
            chunk: self.chunk(disk.index),
            has_latency: self.has_latency_on(disk.index),
            owed: self.owed_host(disk.index),
        };
        // Windows are made for what was measured.
        let config = Config { host_latency: self.late, ..self.config };
        let disks = self.disks.iter().map(disk).collect();
        let memory = (self.arena.free_for_windows(), self.arena.left_for_services());
        Planner::of(config, disks, memory)
    }
}
