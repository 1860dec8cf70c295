//! What a survey found: every structure, whole or with its problem.
//!
//! Nothing is judged here except one thing: which device is which disk of which
//! pool, because nothing more can be found without that.

use crate::api::{BLOCK, DiskIndex, Id, IoError};
use crate::error::{Damage, OpenError};
use crate::format;
use crate::geometry::{Area, Geometry};
use crate::label::{Label, StoredProfile};
use crate::progress::Progress;
use crate::reads::Range;
use crate::structure::{Header, Kind, Owner, Problem, Stamp};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use units::Bytes;

/// What was found on one device.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) capacity: Bytes,
    pub(crate) labels: [Result<Label, Problem>; 2],
    pub(crate) profiles: [Result<StoredProfile, Problem>; 2],
    /// Looked for on members of the pool only.
    pub(crate) areas: [AreaFacts; 2],
    /// By all that was found in its areas.
    pub(crate) progress: Progress,
}

/// What was found in one area.
#[derive(Clone, Debug)]
pub(crate) struct AreaFacts {
    /// A whole checkpoint.
    pub(crate) checkpoint: Result<Stamp, Problem>,
    /// What the checkpoint's header says, and the size of all of it, where the
    /// header at least is whole.
    pub(crate) attempted: Option<(Stamp, Bytes)>,
    /// A whole seal: its successor.
    pub(crate) seal: Result<u64, Problem>,
    /// Blocks of the log that could not be read, by their place on the disk; and the first such block of
    /// the checkpoint.
    pub(crate) unreadable: BTreeMap<Bytes, IoError>,
    /// The sizes of records of which no more than the header was found whole, by generation and sequence
    /// number.
    pub(crate) begun: BTreeMap<(u64, u64), Bytes>,
}

/// A record, and where it was found.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) stamp: Stamp,
    pub(crate) payload: Vec<u8>,
    pub(crate) copies: Vec<Place>,
    /// A copy that is whole, but differs from the first.
    pub(crate) differs: Option<Place>,
}

/// Where a structure was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) device: DiskIndex,
    pub(crate) area: Area,
    pub(crate) at: Bytes,
    pub(crate) size: Bytes,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) devices: Vec<Device>,
    /// The label of the pool's first member, which speaks for the pool.
    pub(crate) label: Option<Label>,
    /// The device of each disk of the pool.
    pub(crate) members: Vec<Option<DiskIndex>>,
    /// What is wrong with the set of devices.
    pub(crate) identity: Vec<OpenError>,
    /// Records by generation and sequence number.
    pub(crate) records: BTreeMap<(u64, u64), Record>,
    /// The whole checkpoint with the highest generation.
    pub(crate) newest: Option<(Stamp, Vec<u8>)>,
    /// The highest generation and the highest sequence number in any whole header.
    pub(crate) seen: (u64, u64),
}

/// Beyond this no generation, no sequence number and no volume's number comes in the life of a
/// pool, so counting on from one never overflows.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

impl Device {
    fn new(capacity: Bytes) -> Self {
        let area = AreaFacts {
            checkpoint: Err(Problem::Absent),
            attempted: None,
            seal: Err(Problem::Absent),
            unreadable: BTreeMap::new(),
            begun: BTreeMap::new(),
        };
        Self {
            capacity,
            labels: [Err(Problem::Absent), Err(Problem::Absent)],
            profiles: [Err(Problem::Absent), Err(Problem::Absent)],
            areas: [area.clone(), area],
            progress: Progress::default(),
        }
    }
    /// The label that counts.
    pub(crate) fn label(&self) -> Option<&Label> {
        self.labels.iter().find_map(|label| label.as_ref().ok())
    }
    /// Where label `copy` lies, or should.
    pub(crate) fn label_at(&self, copy: usize) -> Bytes {
        Geometry::label(self.label().map_or(self.capacity, |label| label.disk().capacity), copy)
    }
    /// Where profile `copy` lies, or should.
    pub(crate) fn profile_at(&self, copy: usize) -> Bytes {
        self.label_at(copy) + BLOCK
    }
    /// Reads label `copy` and the profile beside it from `range`.
    pub(crate) fn keep_label(&mut self, copy: usize, range: &Range) {
        let (bytes, at) = (&range.bytes, range.offset);
        let label = Label::read(bytes, at).map_err(|problem| range.blame(problem));
        let beside = bytes.get(BLOCK.as_usize()..).unwrap_or_default();
        self.profiles[copy] = match &label {
            Ok(label) => label.read_profile(beside, at + BLOCK),
            Err(_) => Err(Problem::Absent),
        }
        .map_err(|problem| range.blame(problem));
        self.labels[copy] = label;
    }
    /// The second label must say what the first one says; the older profile of two does
    /// not count, wherever it lies.
    pub(crate) fn compare_labels(&mut self) {
        if let [Ok(first), Ok(second)] = &self.profiles
            && first.generation != second.generation
        {
            let older = usize::from(first.generation > second.generation);
            let how = "it is older than the other copy: a replacement was cut short";
            self.profiles[older] = Err(Problem::Contradiction(how));
        }
        if let [Ok(first), Ok(second)] = &self.labels
            && first != second
        {
            self.labels[1] = Err(Problem::Contradiction("it differs from the first copy"));
            self.profiles[1] = Err(Problem::Absent);
        }
    }
    /// Why this is no disk of a pool.
    fn stranger(&self, device: DiskIndex) -> OpenError {
        let problems = || self.labels.iter().filter_map(|label| label.as_ref().err());
        let newer = problems().find_map(|problem| match problem {
            Problem::Newer(version) => Some(*version),
            _ => None,
        });
        if let Some(version) = newer {
            return OpenError::Newer { device, version };
        }
        match problems().position(|problem| *problem != Problem::Absent) {
            None => OpenError::NotAPool { device, capacity: self.capacity, lacking: None },
            Some(copy) => OpenError::Damaged(Damage {
                device,
                what: "label".into(),
                offset: self.label_at(copy),
                problem: *problems().nth(copy).expect("it was just found"),
            }),
        }
    }
}

impl AreaFacts {
    /// The first block from `from` on, and before `upto`, that could not be read.
    pub(crate) fn unreadable_in(&self, from: Bytes, upto: Bytes) -> Option<(Bytes, IoError)> {
        self.unreadable.range(from..upto.max(from)).next().map(|(&at, &error)| (at, error))
    }
}

impl Range {
    /// A structure that is not there was perhaps only unreadable.
    fn blame(&self, problem: Problem) -> Problem {
        self.failed.values().next().map_or(problem, |&error| Problem::Unreadable(error))
    }
}

impl Facts {
    pub(crate) fn new(capacities: &[Bytes]) -> Self {
        Self {
            devices: capacities.iter().map(|&capacity| Device::new(capacity)).collect(),
            label: None,
            members: Vec::new(),
            identity: Vec::new(),
            records: BTreeMap::new(),
            newest: None,
            seen: (0, 0),
        }
    }
    /// Finds out which device is which disk of the pool, and what is wrong with
    /// the set of devices. The pool is the one that most of the devices belong to.
    pub(crate) fn identify(&mut self) {
        let pool_of = |device: &Device| device.label().map(|label| label.pool.id);
        let votes = |id: Id| self.devices.iter().filter(|d| pool_of(d) == Some(id)).count();
        let labels = self.devices.iter().filter_map(Device::label);
        // The first of those with the most votes: `max_by_key` would take the last.
        let speaker = labels.rev().max_by_key(|label| votes(label.pool.id)).cloned();
        let members = speaker.as_ref().map_or(0, |speaker| speaker.pool.disks.len());
        self.members = vec![None; members];
        let mut excused = vec![false; members];
        for (i, found) in self.devices.iter().enumerate() {
            let device = DiskIndex::new(i);
            let (Some(label), Some(speaker)) = (found.label(), &speaker) else {
                self.identity.push(found.stranger(device));
                continue;
            };
            let index = label.index.as_usize();
            if let Some(error) = misfit(device, label, speaker) {
                self.identity.push(error);
            } else if let Some(other) = self.members[index] {
                let (index, id) = (label.index, label.disk().id);
                self.identity.push(OpenError::SameDisk { device, other, index, id });
            } else if found.capacity < label.disk().capacity {
                let (capacity, expected) = (found.capacity, label.disk().capacity);
                self.identity.push(OpenError::CutShort { device, capacity, expected });
                excused[index] = true;
            } else {
                self.members[index] = Some(device);
            }
        }
        if let Some(speaker) = &speaker {
            let absent = |i: &usize| self.members[*i].is_none() && !excused[*i];
            if (0..members).any(|i| absent(&i)) {
                for error in &mut self.identity {
                    if let OpenError::NotAPool { lacking, .. } = error {
                        *lacking = Some(speaker.pool.name.clone());
                    }
                }
            }
            let missing = (0..members).filter(absent).map(|i| OpenError::Missing {
                pool: speaker.pool.name.clone(),
                index: DiskIndex::new(i),
                id: speaker.pool.disks[i].id,
                disks: members,
            });
            self.identity.extend(missing);
        }
        self.label = speaker;
    }
    /// The device and the places of a disk that is there.
    pub(crate) fn member(&self, disk: usize) -> (DiskIndex, Geometry) {
        let label = self.label.as_ref().expect("a member has a label");
        let capacity = label.pool.disks[disk].capacity;
        let geometry = Geometry::new(capacity, label.area).expect("a label's sizes were checked");
        (self.members[disk].expect("the disk is there"), geometry)
    }
    /// What the structures of a disk of the pool must name.
    pub(crate) fn owner(&self, disk: usize) -> Owner {
        let label = self.label.as_ref().expect("a member has a label");
        Owner { pool: label.pool.id, disk: label.pool.disks[disk].id }
    }
    /// What was found in an area of a device.
    pub(crate) fn area(&self, device: DiskIndex, area: Area) -> &AreaFacts {
        &self.devices[device.as_usize()].areas[area.as_usize()]
    }
    fn area_mut(&mut self, device: DiskIndex, area: Area) -> &mut AreaFacts {
        &mut self.devices[device.as_usize()].areas[area.as_usize()]
    }
    /// Reads a header of the log of `disk`, and remembers its numbers.
    fn header(
        &mut self,
        kind: Kind,
        disk: usize,
        bytes: &[u8],
        at: Bytes,
    ) -> Result<Header, Problem> {
        let header = Header::read_own(kind, bytes, at, self.owner(disk))?;
        let Stamp { generation, parent, sequence, base } = header.stamp;
        let numbers = [generation, sequence];
        if numbers.iter().any(|&n| !(1..NUMBER_MAX).contains(&n)) {
            return Err(Problem::Contradiction("its numbers are impossible"));
        }
        if parent > generation || base > sequence {
            return Err(Problem::Contradiction("its numbers are in the wrong order"));
        }
        self.seen = (self.seen.0.max(generation), self.seen.1.max(sequence));
        self.progress(disk).begun(kind, &header);
        Ok(header)
    }
    fn progress(&mut self, disk: usize) -> &mut Progress {
        let device = self.members[disk].expect("the disk is there");
        &mut self.devices[device.as_usize()].progress
    }
    /// The first block of a checkpoint was read.
    pub(crate) fn keep_header(&mut self, disk: usize, area: Area, range: &Range) {
        let room = self.member(disk).1.checkpoint_size();
        let header = self.header(Kind::Checkpoint, disk, &range.bytes, range.offset);
        let facts = self.area_mut(range.device, area);
        facts.unreadable.extend(range.failed.first_key_value());
        facts.checkpoint = match header {
            Ok(header) if header.size() <= room.as_usize() => {
                facts.attempted = Some((header.stamp, Bytes::new(header.size() as u64)));
                Err(Problem::Checksum) // until all of it was read
            }
            Ok(_) => Err(Problem::Contradiction("it is larger than its place")),
            Err(problem) => Err(range.blame(problem)),
        };
    }
    /// A checkpoint was read, all of it.
    pub(crate) fn keep_checkpoint(&mut self, disk: usize, area: Area, range: Range) {
        let header = self.header(Kind::Checkpoint, disk, &range.bytes, range.offset);
        let whole = header.and_then(|header| {
            let payload = header.payload(&range.bytes)?;
            if !header.stamp.is_twin() && header.stamp.sequence != header.stamp.base {
                return Err(Problem::Contradiction("its numbers are in the wrong order"));
            }
            self.progress(disk).holds(&header);
            Ok((header.stamp, payload))
        });
        let whole = whole.map_err(|problem| range.blame(problem));
        let facts = self.area_mut(range.device, area);
        facts.unreadable.extend(range.failed.first_key_value());
        facts.checkpoint = whole.as_ref().map(|(stamp, _)| *stamp).map_err(|problem| *problem);
        if let Ok((stamp, payload)) = whole
            && self.newest.as_ref().is_none_or(|(best, _)| best.generation < stamp.generation)
        {
            self.newest = Some((stamp, payload.into()));
        }
    }
    /// A log was read. Records are found wherever they lie, not only behind each
    /// other: what lies behind a damaged one proves that it was there.
    pub(crate) fn keep_log(&mut self, disk: usize, area: Area, range: &Range) {
        self.area_mut(range.device, area).unreadable.extend(&range.failed);
        let mut from = 0;
        while from < range.bytes.len() {
            let place = |size: usize| Place {
                device: range.device,
                area,
                at: range.offset + Bytes::new(from as u64),
                size: Bytes::new(size as u64),
            };
            let bytes = &range.bytes[from..];
            let at = place(0).at;
            from += match self.header(Kind::Record, disk, bytes, at) {
                Ok(header) => match header.payload(bytes) {
                    Ok(payload) => {
                        self.progress(disk).holds(&header);
                        self.keep_record(header.stamp, payload, place(header.size()));
                        header.size()
                    }
                    Err(_) => {
                        let Stamp { generation, sequence, .. } = header.stamp;
                        let size = Bytes::new(header.size() as u64);
                        let begun = &mut self.area_mut(range.device, area).begun;
                        begun.insert((generation, sequence), size);
                        BLOCK.as_usize()
                    }
                },
                Err(_) => BLOCK.as_usize(),
            };
        }
        let seal = self.keep_seal(disk, range).map_err(|problem| range.blame(problem));
        self.area_mut(range.device, area).seal = seal;
    }
    fn keep_record(&mut self, stamp: Stamp, payload: &[u8], place: Place) {
        let key = (stamp.generation, stamp.sequence);
        let record = self.records.entry(key).or_insert_with(|| Record {
            stamp,
            payload: payload.into(),
            copies: Vec::new(),
            differs: None,
        });
        if record.stamp != stamp || record.payload != payload {
            record.differs.get_or_insert(place);
        }
        record.copies.push(place);
    }
    fn keep_seal(&mut self, disk: usize, range: &Range) -> Result<u64, Problem> {
        let from = range.bytes.len() - BLOCK.as_usize();
        let (bytes, at) = (&range.bytes[from..], range.offset + Bytes::new(from as u64));
        let header = self.header(Kind::Seal, disk, bytes, at)?;
        let payload = header.payload(bytes)?;
        if payload.len() != format::seal::LEN {
            return Err(Problem::Contradiction("it has the wrong length"));
        }
        let successor = format::seal::SUCCESSOR.get(payload);
        if successor >= NUMBER_MAX {
            return Err(Problem::Contradiction("its numbers are impossible"));
        }
        self.seen.0 = self.seen.0.max(successor);
        self.progress(disk).holds(&header);
        Ok(successor)
    }
}

/// Why a disk with `label` does not belong to the pool for which `speaker` speaks.
fn misfit(device: DiskIndex, label: &Label, speaker: &Label) -> Option<OpenError> {
    if label.pool.id != speaker.pool.id {
        return Some(OpenError::OtherPool {
            device,
            pool: label.pool.name.clone(),
            pool_id: label.pool.id,
            expected: speaker.pool.name.clone(),
            expected_id: speaker.pool.id,
        });
    }
    let differs = label.pool != speaker.pool || label.area != speaker.area;
    differs.then(|| {
        OpenError::Damaged(Damage {
            device,
            what: "label".into(),
            offset: Bytes::ZERO,
            problem: Problem::Contradiction("it differs from the labels of the other disks"),
        })
    })
}
