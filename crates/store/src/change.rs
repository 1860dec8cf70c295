//! Changes: what a commit record and a checkpoint are lists of.
//!
//! A checkpoint is the list of changes that makes the state from nothing, so one
//! encoder and one decoder serve both. Decoding believes no number that it has
//! not held against the bytes that are there: it never allocates more than a
//! small multiple of its input, and never panics.

use crate::api::{DiskIndex, EXTENT, SUSPECTS_MAX, Suspect, VolumeId, Zone};
use crate::api::{KeptPolicy, Ownership, Service, Times};
use crate::blocks::Blocks;
use crate::format;
use crate::geometry::DISKS_MAX;
use crate::layout::Field;
use crate::names::REMOVED_NAME_MAX;
use crate::recorded::{More, Point, Stepped};
use crate::runs::Run;
use crate::service;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use units::Bytes;

/// One change to the volumes of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Create { volume: VolumeId, name: String, zone: Zone, disks: Vec<DiskIndex> },
    Grow { volume: VolumeId, extents: u32, runs: Vec<Vec<Run>> },
    Cut { volume: VolumeId, size: u64 },
    Delete { volume: VolumeId },
    Length { volume: VolumeId, length: u64 },
    Written { volume: VolumeId, first: u32, count: u32, blocks: u16 },
    WrittenEach { volume: VolumeId, first: u32, blocks: Vec<u16> },
    Scattered { volume: VolumeId, index: u32, blocks: Blocks },
    Move { volume: VolumeId, index: u32, extent: u32 },
    Suspects { disk: DiskIndex, suspects: Vec<Suspect> },
    Owner { volume: VolumeId, ownership: Ownership },
    Service { volume: VolumeId, service: Option<Service> },
    Policy { policy: Option<KeptPolicy> },
    Run { volume: VolumeId, extents: u16 },
    Rename { volume: VolumeId, name: String },
    Times { volume: VolumeId, times: Times },
    Ring { volume: VolumeId },
    GivenUp { volume: VolumeId, first: u64 },
    Recorded { volume: VolumeId, more: More },
    Keep { volume: VolumeId, seconds: u32 },
    Thin { volume: VolumeId },
    Placed { volume: VolumeId, index: u32, run: Run },
    Begins { volume: VolumeId, first: u64 },
    Stepped { volume: VolumeId, stepped: Stepped },
}

impl Change {
    /// Whose change it is; none of what concerns the pool.
    pub(crate) fn volume(&self) -> Option<VolumeId> {
        match self {
            Self::Create { volume, .. }
            | Self::Grow { volume, .. }
            | Self::Cut { volume, .. }
            | Self::Delete { volume }
            | Self::Length { volume, .. }
            | Self::Written { volume, .. }
            | Self::WrittenEach { volume, .. }
            | Self::Scattered { volume, .. }
            | Self::Move { volume, .. }
            | Self::Owner { volume, .. }
            | Self::Service { volume, .. }
            | Self::Run { volume, .. }
            | Self::Rename { volume, .. }
            | Self::Times { volume, .. }
            | Self::Ring { volume }
            | Self::GivenUp { volume, .. }
            | Self::Recorded { volume, .. }
            | Self::Keep { volume, .. }
            | Self::Thin { volume }
            | Self::Placed { volume, .. }
            | Self::Begins { volume, .. }
            | Self::Stepped { volume, .. } => Some(*volume),
            Self::Suspects { .. } | Self::Policy { .. } => None,
        }
    }
}

/// Bytes that a list of so many suspects takes; one that is empty is not written.
pub(crate) fn suspects_size(count: usize) -> u64 {
    let fixed = if count == 0 { 0 } else { format::suspects::LEN };
    (fixed + count * format::suspect::LEN) as u64
}

/// Bytes that whose a volume is takes; where that is root's, as by default, it is not
/// written.
pub(crate) fn ownership_size(ownership: Ownership) -> u64 {
    if ownership == Ownership::ROOT { 0 } else { format::owner::LEN as u64 }
}

/// Bytes that the service of a volume takes; the default is not written.
pub(crate) fn service_size(service: Option<Service>) -> u64 {
    if service.is_none() { 0 } else { format::service::LEN as u64 }
}

/// Bytes that the policy that was chosen takes; where none was it is not written.
pub(crate) fn policy_size(policy: Option<&KeptPolicy>) -> u64 {
    let Some(KeptPolicy { name, settings }) = policy else { return 0 };
    let setting = |(name, _): &(String, u64)| format::policy_setting::LEN + name.len();
    (format::policy::LEN + name.len() + settings.iter().map(setting).sum::<usize>()) as u64
}

/// Bytes that the run of a volume takes; where it is an extent, as by default, it is not
/// written.
pub(crate) fn run_size(run: Bytes) -> u64 {
    if run <= EXTENT { 0 } else { format::rotation::LEN as u64 }
}

/// Bytes of a checkpoint that a place takes at the most: a run of its own, and the rest of one that it
/// divides.
pub(crate) const PLACE_SIZE: u64 = 2 * format::run::LEN as u64;

/// Bytes that it takes in a checkpoint that a volume is thin; and of a ring on so many disks, what it takes
/// that places which it gives up lie within runs of it: that is refused to nobody.
pub(crate) fn thin_described((is_thin, is_ring): (bool, bool), disks: usize) -> u64 {
    let divided = if is_ring { disks as u64 * PLACE_SIZE } else { 0 };
    if is_thin { format::thin::LEN as u64 + divided } else { 0 }
}

/// Bytes that the times of a volume take; those that nobody has said are not written.
pub(crate) fn times_size(times: Option<Times>) -> u64 {
    if times.is_none() { 0 } else { format::times::LEN as u64 }
}

/// Bytes that a volume's name counts as, for a volume of this kind.
pub(crate) fn name_size(name: usize, ownership: Ownership) -> usize {
    match ownership.kind() {
        Ownership::DIRECTORY => name,
        _ => name.max(REMOVED_NAME_MAX),
    }
}

/// Bytes that more extents of a volume that is there take in a checkpoint at the most.
pub(crate) fn growth_size(runs: usize, extents: u32) -> u64 {
    (format::watermark::LEN * extents as usize + runs * format::run::LEN) as u64
}

/// Bytes that the description of a volume takes in a checkpoint at the most.
pub(crate) fn volume_size_max(name: usize, disks: usize, runs: usize, extents: u32) -> u64 {
    let fixed = format::create::LEN + format::grow::LEN + format::length::LEN;
    let disk = format::volume_disk::LEN + format::run_list::LEN;
    let fixed = fixed + format::written_each::LEN + name + disks * disk;
    fixed as u64 + growth_size(runs, extents)
}

/// Bytes that each extent takes beside that which was written with holes.
pub(crate) const SCATTERED_SIZE: u64 = format::scattered::LEN as u64;

/// What the watermark of an extent takes in a checkpoint.
pub(crate) const WATERMARK_SIZE: u64 = 2;

/// Collects changes into a payload.
pub(crate) struct Encoder {
    bytes: Vec<u8>,
    count: u32,
}

impl Encoder {
    pub(crate) fn new(next_volume: VolumeId) -> Self {
        let mut bytes = vec![0; format::changes::LEN];
        format::changes::NEXT_VOLUME.put(&mut bytes, next_volume.0);
        Self { bytes, count: 0 }
    }
    /// Bytes that a change takes.
    pub(crate) fn size_of(change: &Change) -> u64 {
        let mut encoder = Self { bytes: Vec::new(), count: 0 };
        encoder.change(change);
        encoder.bytes.len() as u64
    }
    /// Appends a structure of `len` bytes with these fields.
    fn put(&mut self, len: usize, fields: &[(Field, u64)]) {
        let start = self.bytes.len();
        self.bytes.resize(start + len, 0);
        for (field, value) in fields {
            field.put(&mut self.bytes[start..], *value);
        }
    }
    pub(crate) fn change(&mut self, change: &Change) {
        self.count += 1;
        match change {
            Change::Create { volume, name, zone, disks } => {
                self.create(*volume, name, *zone, disks)
            }
            Change::Grow { volume, extents, runs } => {
                self.grow(*volume, *extents, runs.iter().map(|runs| runs.iter().copied()));
            }
            Change::Cut { volume, size } => {
                use format::cut::{LEN, SIZE, TAG, VOLUME};
                self.put(LEN, &[(TAG, 3), (VOLUME, volume.0), (SIZE, *size)]);
            }
            Change::Delete { volume } => {
                use format::delete::{LEN, TAG, VOLUME};
                self.put(LEN, &[(TAG, 4), (VOLUME, volume.0)]);
            }
            Change::Length { volume, length } => {
                use format::length::{LEN, LENGTH, TAG, VOLUME};
                self.put(LEN, &[(TAG, 5), (VOLUME, volume.0), (LENGTH, *length)]);
            }
            Change::Written { volume, first, count, blocks } => {
                self.written(*volume, *first, *count, *blocks);
            }
            Change::WrittenEach { volume, first, blocks } => {
                self.written_each(*volume, *first, blocks);
            }
            Change::Scattered { volume, index, blocks } => {
                use format::scattered::{BLOCKS, INDEX, LEN, TAG, VOLUME};
                let start = self.bytes.len();
                self.put(LEN, &[(TAG, 10), (VOLUME, volume.0), (INDEX, (*index).into())]);
                BLOCKS.put_bytes(&mut self.bytes[start..], &blocks.to_bytes());
            }
            Change::Move { volume, index, extent } => {
                use format::moved::{EXTENT, INDEX, LEN, TAG, VOLUME};
                let place = [(INDEX, (*index).into()), (EXTENT, (*extent).into())];
                self.put(LEN, &[(TAG, 8), (VOLUME, volume.0), place[0], place[1]]);
            }
            Change::Suspects { disk, suspects } => self.suspects(*disk, suspects),
            Change::Owner { volume, ownership: Ownership { uid, gid, mode } } => {
                use format::owner::{GID, LEN, MODE, TAG, UID, VOLUME};
                let whose = [(UID, (*uid).into()), (GID, (*gid).into()), (MODE, (*mode).into())];
                self.put(LEN, &[(TAG, 11), (VOLUME, volume.0), whose[0], whose[1], whose[2]]);
            }
            Change::Service { volume, service } => {
                use format::service::{LEN, TAG, VOLUME};
                let start = self.bytes.len();
                self.put(LEN, &[(TAG, 12), (VOLUME, volume.0)]);
                service::encode(*service, &mut self.bytes[start..]);
            }
            Change::Policy { policy } => self.policy(policy.as_ref()),
            Change::Run { volume, extents } => {
                use format::rotation::{EXTENTS, LEN, TAG, VOLUME};
                self.put(LEN, &[(TAG, 14), (VOLUME, volume.0), (EXTENTS, (*extents).into())]);
            }
            Change::Rename { volume, name } => {
                use format::rename::{LEN, NAME_LENGTH, TAG, VOLUME};
                self.put(LEN, &[(TAG, 18), (VOLUME, volume.0), (NAME_LENGTH, name.len() as u64)]);
                self.bytes.extend_from_slice(name.as_bytes());
            }
            Change::Times { volume, times } => {
                use format::times::{ACCESSED, CHANGED, LEN, MODIFIED, TAG, VOLUME};
                let Times { accessed, modified, changed } = *times;
                let when = [(ACCESSED, accessed), (MODIFIED, modified), (CHANGED, changed)];
                let [a, m, c] = when.map(|(field, at)| (field, at.cast_unsigned()));
                self.put(LEN, &[(TAG, 19), (VOLUME, volume.0), a, m, c]);
            }
            Change::Ring { volume } => {
                use format::ring::{LEN, TAG, VOLUME};
                self.put(LEN, &[(TAG, 20), (VOLUME, volume.0)]);
            }
            Change::GivenUp { volume, first } => {
                use format::given_up::{FIRST, LEN, TAG, VOLUME};
                self.put(LEN, &[(TAG, 21), (VOLUME, volume.0), (FIRST, *first)]);
            }
            Change::Recorded { volume, more } => self.recorded(*volume, more),
            Change::Keep { volume, seconds } => {
                use format::keep::{LEN, SECONDS, TAG, VOLUME};
                self.put(LEN, &[(TAG, 23), (VOLUME, volume.0), (SECONDS, (*seconds).into())]);
            }
            Change::Thin { volume } => {
                use format::thin::{LEN, TAG, VOLUME};
                self.put(LEN, &[(TAG, 24), (VOLUME, volume.0)]);
            }
            Change::Placed { volume, index, run: Run { start, count } } => {
                use format::placed::{COUNT, EXTENT, INDEX, LEN, TAG, VOLUME};
                let [index, start, count] = [*index, *start, *count].map(u64::from);
                let place = [(INDEX, index), (EXTENT, start), (COUNT, count)];
                self.put(LEN, &[(TAG, 25), (VOLUME, volume.0), place[0], place[1], place[2]]);
            }
            Change::Begins { volume, first } => {
                use format::begins::{FIRST, LEN, TAG, VOLUME};
                self.put(LEN, &[(TAG, 26), (VOLUME, volume.0), (FIRST, *first)]);
            }
            Change::Stepped { volume, stepped: Stepped { first, until, by } } => {
                use format::stepped::{BY, FIRST, LEN, TAG, UNTIL, VOLUME};
                let what = [(FIRST, *first), (UNTIL, *until), (BY, *by)];
                self.put(LEN, &[(TAG, 27), (VOLUME, volume.0), what[0], what[1], what[2]]);
            }
        }
    }
    fn recorded(&mut self, volume: VolumeId, more: &More) {
        use format::recorded::{DOUBLINGS, DROPPED, KEPT, LEN, POINTS, TAG, VOLUME};
        let More { doublings, dropped, kept, points } = more;
        let counts = [(DROPPED, dropped.len() as u64), (KEPT, (*kept).into())];
        let fields = [(TAG, 22), (VOLUME, volume.0), (DOUBLINGS, (*doublings).into())];
        let [tag, volume, doublings] = fields;
        let points_there = (POINTS, points.len() as u64);
        self.put(LEN, &[tag, volume, doublings, counts[0], counts[1], points_there]);
        self.bytes.extend_from_slice(dropped);
        for point in points {
            use format::point::{BLOCK, LEN, TIME};
            self.put(LEN, &[(BLOCK, point.block), (TIME, point.at)]);
        }
    }
    fn policy(&mut self, policy: Option<&KeptPolicy>) {
        use format::policy::{LEN, NAME_LENGTH, SETTINGS, TAG};
        let (name, settings) =
            policy.map_or(("", &[][..]), |policy| (&policy.name, &policy.settings));
        let lengths = [(NAME_LENGTH, name.len() as u64), (SETTINGS, settings.len() as u64)];
        self.put(LEN, &[(TAG, 13), lengths[0], lengths[1]]);
        self.bytes.extend_from_slice(name.as_bytes());
        for (name, value) in settings {
            use format::policy_setting::{LEN, NAME_LENGTH, VALUE};
            self.put(LEN, &[(VALUE, *value), (NAME_LENGTH, name.len() as u64)]);
            self.bytes.extend_from_slice(name.as_bytes());
        }
    }
    fn suspects(&mut self, disk: DiskIndex, suspects: &[Suspect]) {
        use format::suspects::{COUNT, DISK, LEN, TAG};
        self.put(LEN, &[(TAG, 9), (DISK, disk.0.into()), (COUNT, suspects.len() as u64)]);
        for Suspect { extent, errors, slow, commands } in suspects {
            use format::suspect::{COMMANDS, ERRORS, EXTENT, LEN, SLOW};
            let counts =
                [(EXTENT, *extent), (ERRORS, *errors), (SLOW, *slow), (COMMANDS, *commands)];
            self.put(LEN, &counts.map(|(field, value)| (field, value.into())));
        }
    }
    fn create(&mut self, volume: VolumeId, name: &str, zone: Zone, disks: &[DiskIndex]) {
        use format::create::{DISKS, LEN, NAME_LENGTH, TAG, VOLUME, ZONE};
        let zone = match zone {
            Zone::Any => 0,
            Zone::Outer => 1,
            Zone::Inner => 2,
        };
        let fields = [
            (TAG, 1),
            (VOLUME, volume.0),
            (ZONE, zone),
            (NAME_LENGTH, name.len() as u64),
            (DISKS, disks.len() as u64),
        ];
        self.put(LEN, &fields);
        self.bytes.extend_from_slice(name.as_bytes());
        for disk in disks {
            use format::volume_disk::{INDEX, LEN};
            self.put(LEN, &[(INDEX, disk.0.into())]);
        }
    }
    fn grow<R: ExactSizeIterator<Item = Run>>(
        &mut self,
        volume: VolumeId,
        extents: u32,
        disks: impl ExactSizeIterator<Item = R>,
    ) {
        use format::grow::{DISKS, EXTENTS, LEN, TAG, VOLUME};
        let fields =
            [(TAG, 2), (VOLUME, volume.0), (EXTENTS, extents.into()), (DISKS, disks.len() as u64)];
        self.put(LEN, &fields);
        for runs in disks {
            self.put(format::run_list::LEN, &[(format::run_list::RUNS, runs.len() as u64)]);
            for run in runs {
                use format::run::{COUNT, LEN, START};
                self.put(LEN, &[(START, run.start.into()), (COUNT, run.count.into())]);
            }
        }
    }
    fn written(&mut self, volume: VolumeId, first: u32, count: u32, blocks: u16) {
        use format::written::{BLOCKS, COUNT, FIRST, LEN, TAG, VOLUME};
        let fields = [
            (TAG, 6),
            (VOLUME, volume.0),
            (FIRST, first.into()),
            (COUNT, count.into()),
            (BLOCKS, blocks.into()),
        ];
        self.put(LEN, &fields);
    }
    fn written_each(&mut self, volume: VolumeId, first: u32, blocks: &[u16]) {
        use format::written_each::{COUNT, FIRST, LEN, TAG, VOLUME};
        let fields =
            [(TAG, 7), (VOLUME, volume.0), (FIRST, first.into()), (COUNT, blocks.len() as u64)];
        self.put(LEN, &fields);
        for blocks in blocks {
            self.bytes.extend_from_slice(&blocks.to_le_bytes());
        }
    }
    /// The watermarks of neighbouring extents in whichever form is shorter.
    pub(crate) fn watermarks(&mut self, volume: VolumeId, first: u32, blocks: &[u16]) {
        let alike = || blocks.chunk_by(|a, b| a == b);
        let each = format::written_each::LEN + blocks.len() * format::watermark::LEN;
        if alike().count().saturating_mul(format::written::LEN) <= each {
            let mut first = first;
            for run in alike() {
                let count = run.len() as u32;
                self.change(&Change::Written { volume, first, count, blocks: run[0] });
                first += count;
            }
        } else {
            self.change(&Change::WrittenEach { volume, first, blocks: blocks.into() });
        }
    }
    /// The changes without what stands before them in a payload, and how many.
    pub(crate) fn into_changes(mut self) -> (Vec<u8>, u32) {
        self.bytes.drain(..format::changes::LEN);
        (self.bytes, self.count)
    }
    /// The payload.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        format::changes::COUNT.put(&mut self.bytes, self.count.into());
        self.bytes
    }
}

/// Why a payload is no list of changes.
type Malformed = &'static str;

const NO_TEXT: Malformed = "a volume's name is no text";
const SHORT: Malformed = "it ends in the middle of a change";

/// Gives the changes of a payload one by one.
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    left: u32,
    /// The number that the next new volume gets.
    pub(crate) next_volume: VolumeId,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, rest) = payload.split_at_checked(format::changes::LEN).ok_or(SHORT)?;
        Ok(Self {
            rest,
            left: format::changes::COUNT.get_u32(fixed),
            next_volume: VolumeId(format::changes::NEXT_VOLUME.get(fixed)),
        })
    }
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }
    /// `count` structures of `len` bytes each.
    fn take_many(&mut self, count: u32, len: usize) -> Result<&'a [u8], Malformed> {
        self.take((count as usize).checked_mul(len).ok_or(SHORT)?)
    }
    /// The next change; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Change>, Malformed> {
        if self.left == 0 {
            return if self.rest.is_empty() {
                Ok(None)
            } else {
                Err("bytes follow the last change")
            };
        }
        self.left -= 1;
        let volume = |bytes, field: Field| VolumeId(field.get(bytes));
        Ok(Some(match *self.rest.first().ok_or(SHORT)? {
            1 => self.create()?,
            2 => self.grow()?,
            3 => {
                use format::cut::{LEN, SIZE, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Cut { volume: volume(bytes, VOLUME), size: SIZE.get(bytes) }
            }
            4 => {
                use format::delete::{LEN, VOLUME};
                Change::Delete { volume: volume(self.take(LEN)?, VOLUME) }
            }
            5 => {
                use format::length::{LEN, LENGTH, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Length { volume: volume(bytes, VOLUME), length: LENGTH.get(bytes) }
            }
            6 => {
                use format::written::{BLOCKS, COUNT, FIRST, LEN, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Written {
                    volume: volume(bytes, VOLUME),
                    first: FIRST.get_u32(bytes),
                    count: COUNT.get_u32(bytes),
                    blocks: BLOCKS.get_u16(bytes),
                }
            }
            7 => {
                use format::written_each::{COUNT, FIRST, LEN, VOLUME};
                let bytes = self.take(LEN)?;
                let each = self.take_many(COUNT.get_u32(bytes), format::watermark::LEN)?;
                let blocks = each.chunks_exact(format::watermark::LEN);
                Change::WrittenEach {
                    volume: volume(bytes, VOLUME),
                    first: FIRST.get_u32(bytes),
                    blocks: blocks.map(|each| format::watermark::BLOCKS.get_u16(each)).collect(),
                }
            }
            8 => {
                use format::moved::{EXTENT, INDEX, LEN, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Move {
                    volume: volume(bytes, VOLUME),
                    index: INDEX.get_u32(bytes),
                    extent: EXTENT.get_u32(bytes),
                }
            }
            9 => self.suspects()?,
            10 => {
                use format::scattered::{BLOCKS, INDEX, LEN, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Scattered {
                    volume: volume(bytes, VOLUME),
                    index: INDEX.get_u32(bytes),
                    blocks: Blocks::from_bytes(BLOCKS.bytes(bytes)),
                }
            }
            11 => {
                use format::owner::{GID, LEN, MODE, UID, VOLUME};
                let bytes = self.take(LEN)?;
                let (uid, gid) = (UID.get_u32(bytes), GID.get_u32(bytes));
                let ownership = Ownership { uid, gid, mode: MODE.get_u16(bytes) };
                Change::Owner { volume: volume(bytes, VOLUME), ownership }
            }
            12 => {
                use format::service::{LEN, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Service { volume: volume(bytes, VOLUME), service: service::decode(bytes)? }
            }
            13 => self.policy()?,
            14 => {
                use format::rotation::{EXTENTS, LEN, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Run { volume: volume(bytes, VOLUME), extents: EXTENTS.get_u16(bytes) }
            }
            18 => {
                use format::rename::{LEN, NAME_LENGTH, VOLUME};
                let bytes = self.take(LEN)?;
                let name = self.take(usize::from(NAME_LENGTH.get_u16(bytes)))?;
                let name = String::from_utf8(name.into()).map_err(|_| NO_TEXT)?;
                Change::Rename { volume: volume(bytes, VOLUME), name }
            }
            19 => {
                use format::times::{ACCESSED, CHANGED, LEN, MODIFIED, VOLUME};
                let bytes = self.take(LEN)?;
                let [accessed, modified, changed] =
                    [ACCESSED, MODIFIED, CHANGED].map(|field| field.get(bytes).cast_signed());
                let times = Times { accessed, modified, changed };
                Change::Times { volume: volume(bytes, VOLUME), times }
            }
            20 => {
                use format::ring::{LEN, VOLUME};
                Change::Ring { volume: volume(self.take(LEN)?, VOLUME) }
            }
            21 => {
                use format::given_up::{FIRST, LEN, VOLUME};
                let bytes = self.take(LEN)?;
                Change::GivenUp { volume: volume(bytes, VOLUME), first: FIRST.get(bytes) }
            }
            22 => self.recorded()?,
            23 => {
                use format::keep::{LEN, SECONDS, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Keep { volume: volume(bytes, VOLUME), seconds: SECONDS.get_u32(bytes) }
            }
            24 => {
                use format::thin::{LEN, VOLUME};
                Change::Thin { volume: volume(self.take(LEN)?, VOLUME) }
            }
            25 => {
                use format::placed::{COUNT, EXTENT, INDEX, LEN, VOLUME};
                let bytes = self.take(LEN)?;
                let run = Run { start: EXTENT.get_u32(bytes), count: COUNT.get_u32(bytes) };
                let index = INDEX.get_u32(bytes);
                Change::Placed { volume: volume(bytes, VOLUME), index, run }
            }
            26 => {
                use format::begins::{FIRST, LEN, VOLUME};
                let bytes = self.take(LEN)?;
                Change::Begins { volume: volume(bytes, VOLUME), first: FIRST.get(bytes) }
            }
            27 => {
                use format::stepped::{BY, FIRST, LEN, UNTIL, VOLUME};
                let bytes = self.take(LEN)?;
                let [first, until, by] = [FIRST, UNTIL, BY].map(|field| field.get(bytes));
                let stepped = Stepped { first, until, by };
                Change::Stepped { volume: volume(bytes, VOLUME), stepped }
            }
            _ => return Err("a change of unknown kind"),
        }))
    }
    fn recorded(&mut self) -> Result<Change, Malformed> {
        use format::recorded::{DOUBLINGS, DROPPED, KEPT, LEN, POINTS, VOLUME};
        let bytes = self.take(LEN)?;
        let dropped = self.take(DROPPED.get_u16(bytes).into())?;
        let points = self.take_many(POINTS.get_u16(bytes).into(), format::point::LEN)?;
        let point = |bytes| {
            use format::point::{BLOCK, TIME};
            Point { block: BLOCK.get(bytes), at: TIME.get(bytes) }
        };
        let more = More {
            // A field of one byte.
            doublings: DOUBLINGS.get(bytes) as u8,
            dropped: dropped.into(),
            kept: KEPT.get_u16(bytes),
            points: points.chunks_exact(format::point::LEN).map(point).collect(),
        };
        Ok(Change::Recorded { volume: VolumeId(VOLUME.get(bytes)), more })
    }
    fn suspects(&mut self) -> Result<Change, Malformed> {
        use format::suspects::{COUNT, DISK, LEN};
        let bytes = self.take(LEN)?;
        let count = COUNT.get_u16(bytes);
        if usize::from(count) > SUSPECTS_MAX {
            return Err("more suspect extents than a disk can have");
        }
        let list = self.take_many(count.into(), format::suspect::LEN)?;
        let suspect = |bytes| {
            use format::suspect::{COMMANDS, ERRORS, EXTENT, SLOW};
            let [extent, errors, slow, commands] =
                [EXTENT, ERRORS, SLOW, COMMANDS].map(|field| field.get_u32(bytes));
            Suspect { extent, errors, slow, commands }
        };
        Ok(Change::Suspects {
            disk: DiskIndex(DISK.get_u16(bytes)),
            suspects: list.chunks_exact(format::suspect::LEN).map(suspect).collect(),
        })
    }
    fn policy(&mut self) -> Result<Change, Malformed> {
        use format::policy::{LEN, NAME_LENGTH, SETTINGS};
        let bytes = self.take(LEN)?;
        let name = self.name_of_policy(NAME_LENGTH.get_u16(bytes))?;
        let count = usize::from(SETTINGS.get_u16(bytes));
        if count > KeptPolicy::SETTINGS_MAX || name.is_empty() && count > 0 {
            return Err("more settings than a policy can have");
        }
        let mut settings = Vec::with_capacity(count);
        for _ in 0..count {
            use format::policy_setting::{LEN, NAME_LENGTH, VALUE};
            let bytes = self.take(LEN)?;
            settings.push((self.name_of_policy(NAME_LENGTH.get_u16(bytes))?, VALUE.get(bytes)));
        }
        let policy = (!name.is_empty()).then_some(KeptPolicy { name, settings });
        Ok(Change::Policy { policy })
    }
    fn name_of_policy(&mut self, len: u16) -> Result<String, Malformed> {
        if usize::from(len) > KeptPolicy::NAME_MAX {
            return Err("a policy's name is too long");
        }
        let name = self.take(len.into())?;
        String::from_utf8(name.into()).map_err(|_| "a policy's name is no text")
    }
    fn create(&mut self) -> Result<Change, Malformed> {
        use format::create::{DISKS, LEN, NAME_LENGTH, VOLUME, ZONE};
        let bytes = self.take(LEN)?;
        let name = self.take(usize::from(NAME_LENGTH.get_u16(bytes)))?;
        let disks = self.take_many(DISKS.get_u32(bytes), format::volume_disk::LEN)?;
        let disks = disks.chunks_exact(format::volume_disk::LEN);
        Ok(Change::Create {
            volume: VolumeId(VOLUME.get(bytes)),
            name: String::from_utf8(name.into()).map_err(|_| NO_TEXT)?,
            zone: match ZONE.get(bytes) {
                0 => Zone::Any,
                1 => Zone::Outer,
                2 => Zone::Inner,
                _ => return Err("a volume's zone is unknown"),
            },
            disks: disks.map(|d| DiskIndex(format::volume_disk::INDEX.get_u16(d))).collect(),
        })
    }
    fn grow(&mut self) -> Result<Change, Malformed> {
        use format::grow::{DISKS, EXTENTS, LEN, VOLUME};
        let bytes = self.take(LEN)?;
        let disks = usize::from(DISKS.get_u16(bytes));
        if disks > DISKS_MAX {
            return Err("a volume on more disks than a pool can have");
        }
        let mut runs = Vec::with_capacity(disks);
        for _ in 0..disks {
            let count = format::run_list::RUNS.get_u32(self.take(format::run_list::LEN)?);
            let list = self.take_many(count, format::run::LEN)?;
            let run = |bytes| Run {
                start: format::run::START.get_u32(bytes),
                count: format::run::COUNT.get_u32(bytes),
            };
            runs.push(list.chunks_exact(format::run::LEN).map(run).collect());
        }
        Ok(Change::Grow {
            volume: VolumeId(VOLUME.get(bytes)),
            extents: EXTENTS.get_u32(bytes),
            runs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ServiceKind;
    use units::{Duration, Rate};

    fn samples() -> Vec<Change> {
        let volume = VolumeId(u64::MAX);
        let run = |start, count| Run { start, count };
        vec![
            Change::Create {
                volume,
                name: "a.b-c_9".into(),
                zone: Zone::Inner,
                disks: vec![DiskIndex(2), DiskIndex(0)],
            },
            Change::Grow { volume, extents: 7, runs: vec![vec![run(3, 4), run(9, 1)], vec![]] },
            Change::Cut { volume, size: 1 << 40 },
            Change::Length { volume, length: 12345 },
            Change::Written { volume, first: 1, count: 6, blocks: 256 },
            Change::WrittenEach { volume, first: 0, blocks: vec![1, 256, 0] },
            Change::Scattered {
                volume,
                index: 5,
                blocks: Blocks::of(&(Bytes::kib(8)..Bytes::kib(300))),
            },
            Change::Move { volume, index: 3, extent: 77 },
            Change::Suspects {
                disk: DiskIndex(1),
                suspects: vec![
                    Suspect { extent: 7, errors: 1, slow: 0, commands: 3 },
                    Suspect { extent: 9, errors: 0, slow: u32::MAX, commands: u32::MAX },
                ],
            },
            Change::Owner {
                volume,
                ownership: Ownership { uid: u32::MAX, gid: 1 << 20, mode: 0o751 },
            },
            Change::Service { volume, service: None },
            Change::Service {
                volume,
                service: service::tests::given(7, service::tests::priorities()[2]),
            },
            Change::Service {
                volume,
                service: service::tests::given(
                    u32::MAX,
                    ServiceKind::Rate {
                        rate: Rate::per_second(u64::MAX),
                        block: Bytes::kib(64),
                        period: Duration::from_secs(1),
                    },
                ),
            },
            Change::Service {
                volume,
                service: service::tests::given(
                    0,
                    ServiceKind::Latency {
                        len: Bytes::kib(4),
                        within: Duration::from_millis(150),
                        every: Duration::from_nanos(u64::MAX),
                    },
                ),
            },
            Change::Policy { policy: None },
            Change::Policy { policy: Some(KeptPolicy { name: "fcfs".into(), settings: vec![] }) },
            Change::Policy {
                policy: Some(KeptPolicy {
                    name: "ucsb".into(),
                    settings: vec![("cycle".into(), u64::MAX), ("register-least".into(), 0)],
                }),
            },
            Change::Run { volume, extents: 16 },
            Change::Rename { volume, name: "a/b ü".into() },
            Change::Times { volume, times: Times { accessed: i64::MIN, modified: -1, changed: 7 } },
            Change::Ring { volume },
            Change::GivenUp { volume, first: 1 << 40 },
            Change::Recorded {
                volume,
                more: More {
                    doublings: 3,
                    dropped: vec![5, 255],
                    kept: 7,
                    points: vec![
                        Point { block: 0, at: 0 },
                        Point { block: (1 << 48) - 1, at: (1 << 48) - 1 },
                    ],
                },
            },
            Change::Keep { volume, seconds: u32::MAX },
            Change::Thin { volume },
            Change::Placed { volume, index: 5, run: run(77, 3) },
            Change::Begins { volume, first: 48 },
            Change::Stepped { volume, stepped: Stepped { first: 7, until: 1 << 47, by: 300_001 } },
            Change::Delete { volume },
        ]
    }

    fn decode(payload: &[u8]) -> Result<Vec<Change>, Malformed> {
        let mut decoder = Decoder::new(payload)?;
        let mut changes = Vec::new();
        while let Some(change) = decoder.next()? {
            changes.push(change);
        }
        Ok(changes)
    }

    #[test]
    fn what_is_encoded_is_decoded_and_cut_short_it_is_refused() {
        let mut encoder = Encoder::new(VolumeId(77));
        samples().iter().for_each(|change| encoder.change(change));
        let payload = encoder.finish();
        assert_eq!(decode(&payload), Ok(samples()));
        for len in 0..payload.len() {
            assert!(decode(&payload[..len]).is_err(), "cut to {len} bytes");
        }
        let longer = [&payload[..], &[0]].concat();
        assert!(decode(&longer).is_err());
    }

    #[test]
    fn as_many_disks_and_suspects_as_there_can_be_are_decoded_and_no_more() {
        let grow =
            |disks| Change::Grow { volume: VolumeId(1), extents: 0, runs: vec![vec![]; disks] };
        let suspect = Suspect { extent: 1, errors: 2, slow: 3, commands: 4 };
        let suspects =
            |count| Change::Suspects { disk: DiskIndex(0), suspects: vec![suspect; count] };
        let most = [grow(DISKS_MAX), suspects(SUSPECTS_MAX)];
        let more = [grow(DISKS_MAX + 1), suspects(SUSPECTS_MAX + 1)];
        for (most, more) in most.into_iter().zip(more) {
            let payload = |change: &Change| {
                let mut encoder = Encoder::new(VolumeId(77));
                encoder.change(change);
                encoder.finish()
            };
            assert_eq!(decode(&payload(&most)), Ok(vec![most]));
            assert!(decode(&payload(&more)).is_err());
        }
    }

    #[test]
    fn watermarks_take_the_shorter_form_and_never_more_than_accounted() {
        let volume = VolumeId(1);
        let alike = [256; 1000];
        let each: Vec<u16> = (0..1000).map(|i| i % 257).collect();
        for (blocks, most) in [(&alike[..], 40), (&each[..], 17 + 2 * 1000)] {
            let mut encoder = Encoder::new(volume);
            encoder.watermarks(volume, 5, blocks);
            let payload = encoder.finish();
            assert!(payload.len() - format::changes::LEN <= most, "{}", payload.len());
            let mut read = vec![0; 1000];
            for change in decode(&payload).unwrap() {
                match change {
                    Change::Written { first, count, blocks, .. } => {
                        read[first as usize - 5..][..count as usize].fill(blocks);
                    }
                    Change::WrittenEach { first, blocks, .. } => {
                        read[first as usize - 5..][..blocks.len()].copy_from_slice(&blocks);
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(read, blocks);
        }
    }
}
