//! Opens a pool: recovers its state, then makes every disk hold that state twice.
//!
//! After the survey and the verdict, and before anything is served, every disk is
//! flushed: what was read may so far be in its cache only, if a process died and the
//! power did not fail. Then every disk is made to hold the same state twice: damaged label copies are written anew from
//! the whole ones; a current checkpoint that is nowhere whole is written anew in
//! its place from its twin; then the state goes out as a new checkpoint, to the
//! other area of every disk first and then to the current one; then blocks of the logs that could
//! not be read become zeros. No step overwrites
//! what the state was read from before the step before it is durable, so power
//! may fail at any moment, and opening again gives the same state.

use crate::api::{BLOCK, Disk, DiskIndex, Io, IoError, IoId};
use crate::error::{Damage, OpenError};
use crate::facts::Facts;
use crate::geometry::{Area, Geometry};
use crate::label::{Label, StoredProfile};
use crate::lag::lagging;
use crate::log::{Log, LogDisk};
use crate::steps::{Steps, Task};
use crate::store::Store;
use crate::structure::{Kind, Payload, Stamp, Structure};
use crate::survey::Survey;
use crate::verdict::{Verdict, judge, members};
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::Bytes;

/// An open pool, and which of the given devices is which disk.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The pool. In its I/O, disks are meant by their number in the pool.
    pub store: Store,
    /// The number in the pool of each given device, in the order in which they were given.
    pub order: Vec<DiskIndex>,
}

/// Opens a pool: a state machine over [`Io`]. Its I/O means a disk by its place
/// among the given devices, which may be given in any order.
#[derive(Clone, Debug)]
pub struct Opening {
    phase: Phase,
}

#[derive(Clone, Debug)]
enum Phase {
    Reading(Box<Survey>),
    Writing(Box<Writing>),
    Failed(OpenError),
}

#[derive(Clone, Debug)]
struct Writing {
    steps: Steps,
    /// The device of each disk.
    devices: Vec<DiskIndex>,
    opened: Opened,
}

impl Opening {
    /// Opens the pool on devices of these sizes.
    pub fn new(capacities: &[Bytes]) -> Self {
        let mut opening = Self { phase: Phase::Reading(Box::new(Survey::new(capacities))) };
        opening.advance();
        opening
    }
    /// The next I/O to start; none while others must end first.
    pub fn poll(&mut self) -> Option<Io> {
        match &mut self.phase {
            Phase::Reading(survey) => survey.poll(),
            Phase::Writing(writing) => {
                let io = writing.steps.poll()?;
                Some(Io { disk: writing.devices[io.disk.as_usize()], ..io })
            }
            Phase::Failed(_) => None,
        }
    }
    /// An I/O has ended; for a read with the bytes that were asked for.
    pub fn done(&mut self, id: IoId, result: Result<Vec<u8>, IoError>) {
        match &mut self.phase {
            Phase::Reading(survey) => survey.done(id, result),
            Phase::Writing(writing) => writing.steps.done(id, result),
            Phase::Failed(_) => {}
        }
        self.advance();
    }
    /// True when no I/O is left or on its way.
    pub fn is_finished(&self) -> bool {
        match &self.phase {
            Phase::Reading(_) => false,
            Phase::Writing(writing) => writing.steps.is_finished(),
            Phase::Failed(_) => true,
        }
    }
    /// The end. To be called when [`Opening::is_finished`].
    pub fn finish(self) -> Result<Opened, OpenError> {
        assert!(self.is_finished(), "the pool is still being opened");
        match self.phase {
            Phase::Reading(_) => unreachable!("it is finished"),
            Phase::Failed(error) => Err(error),
            Phase::Writing(writing) => match writing.steps.failed() {
                Some((disk, error)) => {
                    Err(OpenError::Device { device: writing.devices[disk.as_usize()], error })
                }
                None => Ok(writing.opened),
            },
        }
    }
    /// From reading to writing, once all is read.
    fn advance(&mut self) {
        let Phase::Reading(survey) = &self.phase else { return };
        let Some(facts) = survey.facts() else { return };
        let next = recover(facts, Steps::starting_at(survey.reads.next_id()));
        self.phase = match next {
            Ok(writing) => Phase::Writing(Box::new(writing)),
            Err(error) => Phase::Failed(error),
        };
    }
}

/// The generation of a pool that was only formatted: [`Log::checkpoint`] writes two.
const FORMATTED: u64 = 2;

/// What the facts amount to, and what must be written before it is served.
fn recover(facts: &Facts, mut steps: Steps) -> Result<Writing, OpenError> {
    if let Some(error) = facts.identity.first() {
        return Err(error.clone());
    }
    let behind = lagging(facts);
    if !behind.is_empty() {
        return Err(OpenError::Behind { disks: behind });
    }
    let profiles = profiles(facts).map_err(OpenError::Damaged)?;
    let verdict = judge(facts).map_err(OpenError::Damaged)?;
    let label = facts.label.as_ref().expect("a pool whose disks are all there has a label");
    let pool = label.pool.clone();
    let all = || pool.disks.iter().map(|disk: &Disk| disk.index);
    steps.push_flush(all());
    steps.push(members(facts).flat_map(|(disk, device, _)| {
        let tasks = label_repairs(facts, device, &profiles[disk]);
        tasks.into_iter().map(move |task| (DiskIndex::new(disk), task))
    }));
    if !verdict.whole {
        steps.push(checkpoint_repairs(facts, &verdict));
        steps.push_flush(all());
    }
    let geometry: Vec<Geometry> = members(facts).map(|(_, _, geometry)| geometry).collect();
    let disks = members(facts).map(|(disk, _, geometry)| {
        let area = verdict.current[disk];
        LogDisk { owner: facts.owner(disk), geometry, area }
    });
    let (generation, sequence) = facts.seen;
    let held = |(_, device, _): (usize, DiskIndex, Geometry)| {
        facts.devices[device.as_usize()].progress.held
    };
    let held = members(facts).map(held).min().expect("a pool has disks"); // behind the flush above
    let mut log = Log::new(disks.collect(), generation, sequence, held);
    let mut state = verdict.state;
    // The run before may have given out numbers of which no record speaks: whoever holds on to one must
    // not find another volume behind it. A pool that was only formatted has had no run.
    if generation > FORMATTED {
        state.leave_numbers_out();
    }
    // Records of rings, and of an earlier program, name blocks behind the ends, of writes that had not come
    // to their ends. Not in the checkpoint either: no later record takes them back.
    state.forget_behind_ends();
    log.checkpoint(&Payload::new(state.checkpoint()), &mut steps);
    let zeros = log_repairs(facts);
    if !zeros.is_empty() {
        steps.push(zeros);
        steps.push_flush(all());
    }
    log.write_seal(&mut steps);
    let devices: Vec<_> = members(facts).map(|(_, device, _)| device).collect();
    let mut order: Vec<_> = all().collect();
    order.sort_by_key(|disk| devices[disk.as_usize()]);
    let store = Store::new(pool, profiles, geometry, state, log);
    Ok(Writing { steps, devices, opened: Opened { store, order } })
}

/// The profile of each disk, from whichever copy is whole.
fn profiles(facts: &Facts) -> Result<Vec<StoredProfile>, Damage> {
    let profile = |(_, device, _): (usize, DiskIndex, Geometry)| {
        let found = &facts.devices[device.as_usize()];
        let whole = found.profiles.iter().find_map(|copy| copy.as_ref().ok());
        whole.cloned().ok_or_else(|| Damage {
            device,
            what: "profile".into(),
            offset: found.profile_at(0),
            problem: *found.profiles[0].as_ref().expect_err("no copy is whole"),
        })
    };
    members(facts).map(profile).collect()
}

/// What writes the damaged copies of a disk's label and profile anew.
fn label_repairs(facts: &Facts, device: DiskIndex, profile: &StoredProfile) -> Vec<Task> {
    let found = &facts.devices[device.as_usize()];
    let label = found.label().expect("a member has a label");
    let payload = Payload::new(profile.bytes.clone());
    let copies = [0, 1].into_iter().flat_map(|copy| {
        let damaged = [found.labels[copy].is_err(), found.profiles[copy].is_err()];
        Label::tasks(label, copy, &payload, profile.generation).into_iter().zip(damaged)
    });
    copies.filter_map(|(task, damaged)| damaged.then_some(task)).collect()
}

/// Zeros over the blocks of the logs that could not be read, which nothing needs any more: one that a power
/// cut left so is not there beside that of the next cut, when it is judged where the log ends.
fn log_repairs(facts: &Facts) -> Vec<(DiskIndex, Task)> {
    let repairs = members(facts).flat_map(|(disk, device, geometry)| {
        Area::BOTH.into_iter().flat_map(move |area| {
            let log = geometry.log(area);
            let failed = facts.area(device, area).unreadable.range(log..log + geometry.log_size());
            failed.map(move |(&at, _)| (DiskIndex::new(disk), Task::Zeros(at, BLOCK)))
        })
    });
    repairs.collect()
}

/// What writes the current checkpoint anew from what its twin makes, in its place, wherever
/// records of its generation lie. They and the twin are then no longer both needed.
fn checkpoint_repairs(facts: &Facts, verdict: &Verdict) -> Vec<(DiskIndex, Task)> {
    let payload = Payload::new(verdict.checkpoint.clone());
    let stamp: Stamp = verdict.stamp;
    let of = facts.records.range((stamp.generation, 0)..=(stamp.generation, u64::MAX));
    let copies = || of.clone().flat_map(|(_, record)| &record.copies);
    let repairs = members(facts).filter_map(|(disk, device, geometry)| {
        let area = verdict.current[disk];
        copies().find(|place| place.device == device && place.area == area)?;
        let at = geometry.checkpoint(area);
        let owner = facts.owner(disk);
        let structure = Structure::new(Kind::Checkpoint, owner, stamp, at, payload.clone());
        Some((DiskIndex::new(disk), Task::Structure(at, structure)))
    });
    repairs.collect()
}
