//! Which state the facts amount to, and whether anything acknowledged is lost.
//!
//! The state is the checkpoint of the highest generation of which anything whole
//! was found on any disk, and the records of that generation behind it, each
//! from whichever copy is whole. The next record is written only when the last
//! one is durable on every disk, so a record that is nowhere whole is an
//! unfinished commit if it is the last one, and damage if another lies behind it.

use crate::api::{BLOCK, DiskIndex};
use crate::error::Damage;
use crate::facts::{Facts, Place, Record};
use crate::geometry::{Area, Geometry};
use crate::state::State;
use crate::structure::{Problem, Stamp};
use alloc::format;
use alloc::vec::Vec;
use units::Bytes;

/// The state of a pool, and where on the disks it was found.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) state: State,
    /// Of the current checkpoint.
    pub(crate) stamp: Stamp,
    /// The current checkpoint is whole on some disk; if not, what makes its content is.
    pub(crate) whole: bool,
    /// The payload of the current checkpoint, as far as it is known from elsewhere.
    pub(crate) checkpoint: Vec<u8>,
    /// The current area of each disk.
    pub(crate) current: Vec<Area>,
}

/// Judges the facts of a pool of which at least one disk is there.
pub(crate) fn judge(facts: &Facts) -> Result<Verdict, Damage> {
    let stamp = current(facts)?;
    let whole = facts.newest.as_ref().is_some_and(|(newest, _)| *newest == stamp);
    let (state, checkpoint, end) = replay(facts, stamp)?;
    check_end(facts, stamp.generation, end)?;
    let current = (0..facts.members.len()).map(|disk| current_area(facts, disk, stamp));
    Ok(Verdict { state, stamp, whole, checkpoint, current: current.collect() })
}

/// The disks of the pool that are there, with their devices and places.
pub(crate) fn members(facts: &Facts) -> impl Iterator<Item = (usize, DiskIndex, Geometry)> + Clone {
    let here = (0..facts.members.len()).filter(|&disk| facts.members[disk].is_some());
    here.map(|disk| {
        let (device, geometry) = facts.member(disk);
        (disk, device, geometry)
    })
}

/// A damaged checkpoint, or one that is not what it should be.
fn bad_checkpoint(facts: &Facts, device: DiskIndex, area: Area, how: &'static str) -> Damage {
    let (_, _, geometry) = members(facts).find(|m| m.1 == device).expect("a member");
    Damage {
        device,
        what: format!("checkpoint in {}", area.name()),
        offset: geometry.checkpoint(area),
        problem: facts.area(device, area).checkpoint.err().unwrap_or(Problem::Contradiction(how)),
    }
}

/// A record that is damaged in every copy, or makes no sense.
fn bad_record(record: &Record, sequence: u64, offset: Bytes, problem: Problem) -> Damage {
    let place = record.copies[0];
    let what = format!("log record {sequence} in {}", place.area.name());
    Damage { device: place.device, what, offset, problem }
}

/// The stamp of the current checkpoint.
fn current(facts: &Facts) -> Result<Stamp, Damage> {
    let Some((newest, _)) = &facts.newest else {
        return Err(no_checkpoint(facts));
    };
    check_seals(facts, *newest)?;
    let last = facts.records.last_key_value().map(|(_, record)| record);
    let Some(record) = last.filter(|record| record.stamp.generation > newest.generation) else {
        return Ok(*newest);
    };
    // Records of a checkpoint that is nowhere whole; its twin serves as well.
    let Stamp { generation, parent, base, .. } = record.stamp;
    if parent == generation && newest.generation + 1 == generation {
        // The area that was left when it was written makes the same, with its records.
        return Ok(Stamp { generation, parent, sequence: base + 1, base });
    }
    if (newest.generation, newest.sequence) != (parent, base) {
        let place = record.copies[0];
        let how = "it is older than the records behind it";
        return Err(bad_checkpoint(facts, place.device, place.area, how));
    }
    Ok(Stamp { generation, parent, sequence: base, base })
}

/// Nothing to start from.
fn no_checkpoint(facts: &Facts) -> Damage {
    let areas = members(facts).flat_map(|(_, device, _)| Area::BOTH.map(|area| (device, area)));
    let telling = areas.clone().find(|&(device, area)| {
        facts.area(device, area).checkpoint.as_ref().is_err_and(|p| *p != Problem::Absent)
    });
    let (device, area) = telling.or_else(|| areas.clone().next()).expect("a disk is there");
    bad_checkpoint(facts, device, area, "it is not whole")
}

/// No seal may speak of a generation of which nothing is left.
fn check_seals(facts: &Facts, newest: Stamp) -> Result<(), Damage> {
    let highest = facts.records.last_key_value().map_or(0, |((generation, _), _)| *generation);
    let left = highest.max(newest.generation);
    for (_, device, _) in members(facts) {
        for area in Area::BOTH {
            if facts.area(device, area).seal.is_ok_and(|successor| successor > left) {
                let how = "an older one is in its place";
                return Err(bad_checkpoint(facts, device, area.other(), how));
            }
        }
    }
    Ok(())
}

/// The state that the current checkpoint and its records make, the payload of the checkpoint, and
/// where the records end.
fn replay(facts: &Facts, stamp: Stamp) -> Result<(State, Vec<u8>, End), Damage> {
    let label = facts.label.as_ref().expect("a pool has a label");
    let geometry = label.pool.disks.iter().map(|disk| {
        Geometry::new(disk.capacity, label.area).expect("a label's sizes were checked")
    });
    let mut state = State::new(&geometry.collect::<Vec<_>>());
    let (newest, checkpoint) = facts.newest.as_ref().expect("a checkpoint was found");
    state.replay(checkpoint).map_err(|how| {
        let of_it = |&(_, device, _): &(usize, DiskIndex, Geometry)| {
            Area::BOTH.iter().any(|area| facts.area(device, *area).checkpoint.is_ok())
        };
        let (_, device, _) = members(facts).find(of_it).expect("it was found on a disk");
        let area = Area::BOTH.into_iter().find(|a| facts.area(device, *a).checkpoint.is_ok());
        bad_checkpoint(facts, device, area.unwrap_or(Area::A), how)
    })?;
    let mut checkpoint = checkpoint.clone();
    if newest.sequence < stamp.sequence {
        let end = replay_records(facts, *newest, &mut state)?;
        if end.last != stamp.sequence {
            let record = facts.records.range((stamp.generation, 0)..).next();
            let place = record.expect("it was judged by one").1.copies[0];
            let how = "it is older than the records behind it";
            return Err(bad_checkpoint(facts, place.device, place.area, how));
        }
        checkpoint = state.checkpoint_before_records();
    }
    let end = replay_records(facts, stamp, &mut state)?;
    Ok((state, checkpoint, end))
}

/// Where the records of a checkpoint end.
#[derive(Clone, Copy, Debug)]
struct End {
    /// The number of the last one; that of the checkpoint where there is none.
    last: u64,
    /// How much of the log the records take.
    used: Bytes,
}

/// Applies the records of a checkpoint.
fn replay_records(facts: &Facts, stamp: Stamp, state: &mut State) -> Result<End, Damage> {
    let generation = stamp.generation;
    let (mut last, mut used) = (stamp.sequence, Bytes::ZERO);
    for ((_, sequence), record) in facts.records.range((generation, 0)..=(generation, u64::MAX)) {
        let place = record.copies[0];
        let (_, _, geometry) = members(facts).find(|m| m.1 == place.device).expect("a member");
        let offset = geometry.log(place.area) + used;
        let damage = |problem| Err(bad_record(record, last + 1, offset, problem));
        if *sequence != last + 1 {
            let (log, seal) = (geometry.log(place.area), geometry.seal(place.area));
            let failed = facts.area(place.device, place.area).unreadable_in(log, seal);
            return damage(
                failed.map_or(Problem::Checksum, |(_, error)| Problem::Unreadable(error)),
            );
        }
        if record.differs.is_some() {
            return damage(Problem::Contradiction("its copies differ"));
        }
        if (record.stamp.parent, record.stamp.base) != (stamp.parent, stamp.base) {
            return damage(Problem::Contradiction("it follows another checkpoint"));
        }
        if let Err(how) = state.replay(&record.payload) {
            return damage(Problem::Contradiction(how));
        }
        last = *sequence;
        used += place.size * 2;
    }
    Ok(End { last, used })
}

/// Refuses to take the last record that was found for the last that there is, where each disk may have
/// another one that it cannot read. One block that cannot be read is what a power cut may leave of a
/// write, so that the record was not acknowledged; and it takes only one of the two copies of one that was.
fn check_end(facts: &Facts, generation: u64, end: End) -> Result<(), Damage> {
    let mut hidden = None;
    for (_, device, geometry) in members(facts) {
        let of_it = |area: &Area| holds(facts, device, *area, generation);
        // A disk of which the checkpoint of this generation is damaged may have it in either area.
        let unknown = !Area::BOTH.iter().any(of_it);
        let mut areas = Area::BOTH.into_iter().filter(|area| unknown || of_it(area));
        match areas.find_map(|area| hides_record(facts, (device, geometry, area), generation, end))
        {
            Some(damage) => hidden.get_or_insert(damage),
            None => return Ok(()), // an acknowledged record is on every disk
        };
    }
    hidden.map_or(Ok(()), Err)
}

/// The record that a disk may have behind the last one, and cannot read: where neither of its copies can
/// be read, or, as long as its length is not known, neither of their first blocks.
fn hides_record(
    facts: &Facts,
    (device, geometry, area): (DiskIndex, Geometry, Area),
    generation: u64,
    end: End,
) -> Option<Damage> {
    let (found, sequence) = (facts.area(device, area), end.last + 1);
    let (first, behind) = (geometry.log(area) + end.used, geometry.seal(area));
    let fails = |from: Bytes, upto: Bytes| found.unreadable_in(from, upto.min(behind));
    let (offset, error) = match found.begun.get(&(generation, sequence)) {
        Some(&size) => {
            let second = first + size;
            fails(second, second + size).and(fails(first, second))
        }
        None => {
            // The second copy begins within the first half of what is left.
            let half = first + (behind.saturating_sub(first) / 2).round_down(BLOCK);
            fails(first + BLOCK, half + BLOCK).and(fails(first, first + BLOCK))
        }
    }?;
    let what = format!("log record {sequence} in {}", area.name());
    Some(Damage { device, what, offset, problem: Problem::EndUnreadable(error) })
}

/// An area has something of a generation. One whose header alone is whole has not: the other area may be all
/// that its disk holds.
fn holds(facts: &Facts, device: DiskIndex, area: Area, generation: u64) -> bool {
    let checkpoint = facts.area(device, area).checkpoint.ok();
    let here = |place: &Place| (place.device, place.area) == (device, area);
    checkpoint.is_some_and(|found| found.generation == generation)
        || facts
            .records
            .range((generation, 0)..=(generation, u64::MAX))
            .any(|(_, record)| record.copies.iter().any(here))
}

/// The area of a disk that holds the current generation. Where none does, because another
/// disk holds it, the one that holds the newest that this disk has: it is overwritten last,
/// so what the disk holds never becomes less.
fn current_area(facts: &Facts, disk: usize, stamp: Stamp) -> Area {
    let Some(device) = facts.members[disk] else { return Area::A };
    let records = |area: Area| {
        let here = move |place: &Place| (place.device, place.area) == (device, area);
        facts.records.values().filter(move |record| record.copies.iter().any(here))
    };
    let newest = |area: &Area| {
        let checkpoint = facts.area(device, *area).checkpoint.ok();
        let stamps = records(*area).map(|record| record.stamp).chain(checkpoint);
        stamps.map(|stamp| (stamp.sequence, stamp.generation)).max()
    };
    let current = Area::BOTH.into_iter().find(|area| holds(facts, device, *area, stamp.generation));
    current.or_else(|| Area::BOTH.into_iter().max_by_key(newest)).expect("a disk has areas")
}
