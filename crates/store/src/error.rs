//! What went wrong, which thing it is about, and what to do next.

use crate::api::{DiskIndex, EXTENT, Found, Id, IoError, Lag, RUN_MAX, VolumeId, Zone};
use crate::format::VERSION;
use crate::geometry::{DISKS_MAX, PROFILE_MAX};
use crate::names::{NAME_RULE, VOLUME_NAME_RULE};
use crate::structure::Problem;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use units::Bytes;

/// What would fit in place of a volume that does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fits {
    /// The largest that the volume can be on its disks.
    pub most: Bytes,
    /// Of a new volume: disks that together have room for a larger one; none where there are none.
    pub disks: Vec<DiskIndex>,
    /// How large it can be on these.
    pub there: Bytes,
    /// That is as much as was asked for.
    pub is_enough: bool,
}

/// Why a change to the volumes is refused; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// A metadata write or flush failed: what is on the medium is uncertain.
    ReadOnly {
        /// On which disk.
        disk: DiskIndex,
        /// What the disk said.
        error: IoError,
    },
    /// The name is not allowed.
    BadName {
        /// As it was given.
        name: String,
    },
    /// No volume rotates over its disks by such a run.
    BadRun {
        /// As it was asked for.
        run: Bytes,
    },
    /// No ring is so small.
    RingTooSmall {
        /// As it was asked for.
        size: Bytes,
        /// The smallest ring.
        least: Bytes,
    },
    /// A ring keeps the size that it was made with.
    RingResized,
    /// A ring is recorded to, and is no copy of anything.
    RingCopied,
    /// What only a ring does was asked of a volume that is none.
    NoRing,
    /// No ring keeps what is recorded for so long, or for so short a time.
    BadKeep,
    /// There is a volume with this name.
    VolumeExists {
        /// The name.
        name: String,
    },
    /// There is no volume with this number (any more).
    NoSuchVolume {
        /// The number.
        volume: VolumeId,
    },
    /// The placement names a disk that the pool does not have.
    NoSuchDisk {
        /// As it was given.
        disk: DiskIndex,
        /// How many the pool has.
        disks: usize,
    },
    /// The placement names a disk twice.
    DiskTwice {
        /// Which.
        disk: DiskIndex,
    },
    /// One of the volume's disks has not so much free space.
    NoSpace {
        /// Which.
        disk: DiskIndex,
        /// In this part of it.
        zone: Zone,
        /// The volume's share of that disk.
        asked: Bytes,
        /// What can be reserved now.
        free: Bytes,
        /// What comes free on that disk with the next commit.
        freeing: Bytes,
        /// What would fit, of a volume that is made or grown.
        fits: Option<Box<Fits>>,
    },
    /// The extent maps would not fit in a checkpoint.
    MetadataFull {
        /// What the maps could come to need.
        needed: Bytes,
        /// The room for them, fixed when the pool was made.
        room: Bytes,
        /// How large a thin volume can be made with which this would not be so; none of others, and
        /// where none can.
        most: Option<Bytes>,
    },
    /// So many volumes were made in this pool that there is no number for another one; no pool
    /// lives so long, so its metadata were written by somebody else.
    NumbersSpent,
    /// A profile that does not fit in its place.
    ProfileTooLarge {
        /// As it was given.
        len: Bytes,
        /// The room for it.
        most: Bytes,
    },
    /// More than a volume can have.
    TooLarge {
        /// As it was given.
        size: Bytes,
    },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly { disk, error } => write!(
                f,
                "disk {} failed to write metadata ({error}), so the pool is read-only; \
                 stop, check the disk and its cable, and open the pool again",
                disk.0
            ),
            Self::BadName { name } => {
                write!(f, "'{}' is no name; use {VOLUME_NAME_RULE}", name.escape_debug())
            }
            Self::BadRun { run } => write!(
                f,
                "a run of {run} is not possible; use a power of two from {EXTENT} to {RUN_MAX}"
            ),
            Self::RingTooSmall { size, least } => {
                write!(f, "a ring of {size} is too small; give it {least} at least")
            }
            Self::RingResized => f.write_str(
                "a ring keeps the size that it was made with; make another one, record to that, and delete this one when nobody needs what it holds",
            ),
            Self::RingCopied => f.write_str(
                "a ring is recorded to, and is no copy: copy to a volume that is none",
            ),
            Self::NoRing => f.write_str(
                "the volume is no ring, and gives up nothing; make a ring with 'volume create --ring'",
            ),
            Self::BadKeep => f.write_str(
                "a ring keeps what is recorded for 1 second to 36 years, or as long as it has room",
            ),
            Self::VolumeExists { name } => write!(
                f,
                "a volume named '{name}' exists; choose another name, or delete or resize that one"
            ),
            Self::NoSuchVolume { volume } => write!(
                f,
                "there is no volume with number {}; it may have been deleted: list the volumes",
                volume.0
            ),
            Self::NoSuchDisk { disk, disks } => write!(
                f,
                "the pool has no disk {}; its disks are 0 to {}",
                disk.0,
                disks.saturating_sub(1)
            ),
            Self::DiskTwice { disk } => {
                write!(f, "disk {} is named twice; name each disk of a placement once", disk.0)
            }
            Self::NoSpace { disk, zone, asked, free, freeing, .. } => {
                let place = match zone {
                    Zone::Any => "",
                    Zone::Outer => " in its outer half",
                    Zone::Inner => " in its inner half",
                };
                write!(f, "{asked} is asked of disk {}, which has {free} free{place}", disk.0)?;
                if !freeing.is_zero() {
                    write!(f, " and {freeing} more after the next commit")?;
                }
                f.write_str("; delete or shrink volumes, ask for less, or choose other disks")
            }
            Self::MetadataFull { needed, room, most } => {
                write!(f, "the extent maps could need {needed}, this pool has {room} for them; ")?;
                match most {
                    Some(most) => write!(f, "ask for {most} at the most, or delete volumes"),
                    None => f.write_str("delete volumes, or make fewer and larger ones"),
                }
            }
            Self::NumbersSpent => f.write_str(
                "this pool has no number left for another volume; copy its volumes to a new pool",
            ),
            Self::ProfileTooLarge { len, most } => write!(
                f,
                "the profile is {len} of text, a disk has room for {most}; leave away its \
                 section [measured], which is for people"
            ),
            Self::TooLarge { size } => {
                write!(f, "no volume can have {size}; ask for less")
            }
        }
    }
}
impl core::error::Error for StoreError {}

/// Why a pool cannot be made; nothing was written unless a disk failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// The pool's name is not allowed.
    BadName {
        /// As it was given.
        name: String,
    },
    /// No disk, or too many.
    DiskCount {
        /// How many were given.
        disks: usize,
    },
    /// Two disks with one identity, or a disk with the identity of the pool.
    SameId {
        /// Which of the given disks.
        disk: DiskIndex,
        /// The identity.
        id: Id,
    },
    /// Too small for the metadata and a few extents.
    DiskTooSmall {
        /// Which of the given disks.
        disk: DiskIndex,
        /// Its capacity.
        capacity: Bytes,
        /// What it must have in this pool.
        least: Bytes,
    },
    /// All disks together are more than extents can be counted.
    PoolTooLarge {
        /// All capacities together.
        total: Bytes,
    },
    /// The profile does not fit beside the label.
    ProfileTooLarge {
        /// Of which of the given disks.
        disk: DiskIndex,
        /// Its length.
        len: Bytes,
    },
    /// A disk failed.
    Device {
        /// Which of the given disks.
        disk: DiskIndex,
        /// What it said.
        error: IoError,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName { name } => {
                write!(f, "'{}' is no name for a pool; use {NAME_RULE}", name.escape_debug())
            }
            Self::DiskCount { disks } => {
                write!(f, "{disks} disks were given; a pool has 1 to {DISKS_MAX}")
            }
            Self::SameId { disk, id } => write!(
                f,
                "identity {id} of disk {} is used twice; give every disk and the pool its own",
                disk.0
            ),
            Self::DiskTooSmall { disk, capacity, least } => write!(
                f,
                "disk {} has {capacity}; in this pool a disk must have {least} or more",
                disk.0
            ),
            Self::PoolTooLarge { total } => {
                write!(f, "the disks have {total} together; a pool has less than 4096 TiB")
            }
            Self::ProfileTooLarge { disk, len } => {
                write!(f, "the profile of disk {} has {len}; it may have {PROFILE_MAX}", disk.0)
            }
            Self::Device { disk, error } => write!(
                f,
                "disk {} failed with an {error} while the pool was made; check it and try again",
                disk.0
            ),
        }
    }
}
impl core::error::Error for FormatError {}

/// A thing on a disk that is damaged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which of the given disks.
    pub device: DiskIndex,
    /// What: "label", "checkpoint in area A", "log record 17 in area B".
    pub what: String,
    /// The first byte of it on that disk.
    pub offset: Bytes,
    /// How.
    pub problem: Problem,
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, index, behind, ahead, found } = self;
        write!(f, "given disk {} (disk {} of the pool) ", device.0, index.0)?;
        if *found == Found::Nothing {
            return f.write_str(
                "has its label, and nothing else of the pool's metadata: they were written over or \
                 erased, or cannot be read",
            );
        }
        let many = if *behind == 1 { "commit or opening" } else { "commits and openings" };
        write!(
            f,
            "is {behind} {many} behind given disk {}, more than any crash leaves a disk",
            ahead.0
        )?;
        match found {
            Found::Damaged => f.write_str(", and a part of its metadata is not whole"),
            Found::Unreadable { offset, error } => write!(
                f,
                ", and a part of its metadata, from byte {} on, cannot be read ({error})",
                offset.get()
            ),
            Found::Nothing | Found::Whole => Ok(()),
        }
    }
}

impl Lag {
    /// What to do about it.
    pub(crate) fn next_step(&self) -> &'static str {
        match self.found {
            Found::Whole => BEHIND,
            Found::Damaged => BEHIND_OR_DAMAGED,
            Found::Nothing => DAMAGED,
            Found::Unreadable { .. } => BEHIND_OR_UNREADABLE,
        }
    }
}

/// What to do about a disk that is as it was at another time.
const BEHIND: &str = "it is a copy of an earlier time, and nothing was written to any \
    disk: give the one that the others were last used with, or copies of all disks of one time \
    (if there is neither, what lay on it since is lost: make a new pool, and restore its volumes)";

/// What to do about one that may be either: a copy that was taken while a checkpoint was being written, or
/// one that somebody else has written to.
const BEHIND_OR_DAMAGED: &str = "it is a copy of an earlier time, or somebody has written over a part of \
    it, and nothing was written to any disk: give the one that the others were last used with, or restore \
    it from a copy of that time, or all disks from copies of one time (if there is neither, what lay on it \
    since is lost: make a new pool, and restore its volumes)";

/// What to do about one that somebody else has written to.
const DAMAGED: &str = "nobody knows of which time its data are, and nothing was written to any disk: \
    restore it from a copy of the time when the others were last used, or all disks from copies of one \
    time (if there is neither, what lay on it is lost: make a new pool, and restore its volumes)";

/// What to do about one of which a part cannot be read, and that lacks what may lie there.
const BEHIND_OR_UNREADABLE: &str = "what it lacks may be what cannot be read, or it is a copy of an earlier \
    time, and nothing was written to any disk: check the disk and its cable, and try again; if that does not \
    help, give the one that the others were last used with, or restore it from a copy of that time, or all \
    disks from copies of one time (if there is neither, what lay on it since is lost: make a new pool, and \
    restore its volumes)";

impl Damage {
    /// What to do about it, where no other copy is whole.
    pub(crate) fn next_step(&self) -> &'static str {
        match self.problem {
            Problem::EndUnreadable(_) => {
                "it may be the last commit that was acknowledged, and nothing was written to any disk: check the \
                 disk and its cable, and try again; if that does not help, copy the disk to another one, with \
                 zeros for what cannot be read, and give that: the pool is then opened as it was before"
            }
            _ => {
                "no other copy of it is whole: run a check for everything that is damaged, \
                 and restore that disk from a copy"
            }
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, what, offset, problem } = self;
        write!(f, "given disk {}, byte {}, {what}: {problem}", device.0, offset.get())
    }
}

/// Why a pool cannot be opened. Disks are meant by their place among those that
/// were given, counted from 0, unless their number in the pool is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// Nothing was given, or more than a pool can have.
    DiskCount {
        /// How many devices were given.
        disks: usize,
    },
    /// No label at either place.
    NotAPool {
        /// Which of the given disks.
        device: DiskIndex,
        /// What the device has: nothing of a file that is empty.
        capacity: Bytes,
        /// The pool of the other given disks, where it lacks one: this may have been it.
        lacking: Option<String>,
    },
    /// A newer program made this.
    Newer {
        /// Which of the given disks.
        device: DiskIndex,
        /// The format version.
        version: u32,
    },
    /// The device is smaller than the pool's disk was.
    CutShort {
        /// Which of the given disks.
        device: DiskIndex,
        /// What the device has.
        capacity: Bytes,
        /// What the label says.
        expected: Bytes,
    },
    /// Disks of two pools were given.
    OtherPool {
        /// Which of the given disks is the odd one.
        device: DiskIndex,
        /// Its pool.
        pool: String,
        /// Its pool's identity.
        pool_id: Id,
        /// The pool of the others.
        expected: String,
        /// Their pool's identity.
        expected_id: Id,
    },
    /// One disk was given twice, or was copied.
    SameDisk {
        /// The later one of the given devices.
        device: DiskIndex,
        /// The earlier one.
        other: DiskIndex,
        /// The disk's number in the pool.
        index: DiskIndex,
        /// The disk's identity.
        id: Id,
    },
    /// A disk of the pool was not given.
    Missing {
        /// The pool.
        pool: String,
        /// The disk's number in the pool.
        index: DiskIndex,
        /// The disk's identity.
        id: Id,
        /// How many disks the pool has.
        disks: usize,
    },
    /// Disks lack commits that, by what others hold, were on every disk: copies of an
    /// earlier time, most likely, or the others are of a later one.
    Behind {
        /// Each of them, in the order of their numbers in the pool; never empty.
        disks: Vec<Lag>,
    },
    /// Metadata is damaged in every copy.
    Damaged(Damage),
    /// A disk failed while the pool was being recovered.
    Device {
        /// Which of the given disks.
        device: DiskIndex,
        /// What it said.
        error: IoError,
    },
}

impl OpenError {
    /// Which of the given devices it is about.
    pub fn device(&self) -> Option<DiskIndex> {
        match self {
            Self::DiskCount { .. } | Self::Missing { .. } => None,
            Self::NotAPool { device, .. }
            | Self::Newer { device, .. }
            | Self::CutShort { device, .. }
            | Self::OtherPool { device, .. }
            | Self::SameDisk { device, .. }
            | Self::Device { device, .. } => Some(*device),
            Self::Behind { disks } => disks.first().map(|lag| lag.device),
            Self::Damaged(damage) => Some(damage.device),
        }
    }
    /// What is wrong, without what to do.
    pub fn what(&self) -> impl fmt::Display {
        What(self)
    }
    /// What to do.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::DiskCount { .. } => "give every disk of one pool, each once",
            Self::NotAPool { lacking: Some(_), .. } => {
                "check its path; if it is the one, somebody has cut it or written over it: restore it \
                 from a copy"
            }
            Self::NotAPool { capacity: Bytes::ZERO, .. } => {
                "check its path; if a pool was on it, somebody has cut it: restore it from a copy; if \
                 none was, make a pool on it"
            }
            Self::NotAPool { .. } => {
                "check its path; if a pool was on it, somebody has written over it: restore it from a \
                 copy; if none was, make a pool on it"
            }
            Self::Newer { .. } => "use a newer program",
            Self::CutShort { .. } => {
                "restore the device to its size, or restore the disk from a copy"
            }
            Self::OtherPool { .. } => "give the disks of one pool",
            Self::SameDisk { .. } => "give each disk once, and no copies of it",
            Self::Missing { .. } => {
                "give it too: without it none of the pool can be served, since each byte is kept once"
            }
            Self::Behind { disks } => {
                let worst = |lag: &&Lag| match lag.found {
                    Found::Unreadable { .. } => 3,
                    Found::Nothing => 2,
                    Found::Damaged => 1,
                    Found::Whole => 0,
                };
                disks.iter().max_by_key(worst).map_or(BEHIND, Lag::next_step)
            }
            Self::Damaged(damage) => damage.next_step(),
            Self::Device { .. } => "check the disk and its cable, and open the pool again",
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", What(self), self.next_step())
    }
}
impl core::error::Error for OpenError {}

struct What<'a>(&'a OpenError);

impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OpenError::DiskCount { disks } => {
                write!(f, "{disks} disks were given; a pool has 1 to {DISKS_MAX}")
            }
            OpenError::NotAPool { device, capacity, lacking } => {
                let empty = if capacity.is_zero() { "is empty, and " } else { "" };
                write!(f, "given disk {} {empty}carries no pool", device.0)?;
                match lacking {
                    Some(pool) => write!(f, "; pool '{pool}' of the others lacks a disk"),
                    None => Ok(()),
                }
            }
            OpenError::Newer { device, version } => write!(
                f,
                "given disk {} has format version {version}, this program knows up to {VERSION}",
                device.0
            ),
            OpenError::CutShort { device, capacity, expected } => write!(
                f,
                "given disk {} is cut short: it has {} bytes, its label says {}",
                device.0,
                capacity.get(),
                expected.get()
            ),
            OpenError::OtherPool { device, pool, pool_id, expected, expected_id } => write!(
                f,
                "given disk {} belongs to pool '{pool}' ({pool_id}), others to '{expected}' \
                 ({expected_id})",
                device.0
            ),
            OpenError::SameDisk { device, other, index, id } => write!(
                f,
                "given disks {} and {} are both disk {} ({id}) of the pool",
                other.0, device.0, index.0
            ),
            OpenError::Missing { pool, index, id, disks } => write!(
                f,
                "disk {} ({id}) of the {disks} disks of pool '{pool}' is missing",
                index.0
            ),
            OpenError::Behind { disks } => disks.iter().enumerate().try_for_each(|(i, lag)| {
                f.write_str(if i > 0 { " and " } else { "" })?;
                lag.fmt(f)
            }),
            OpenError::Damaged(damage) => damage.fmt(f),
            OpenError::Device { device, error } => {
                write!(f, "given disk {} failed with an {error} during recovery", device.0)
            }
        }
    }
}
