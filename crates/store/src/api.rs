//! The words that cross the seam between `store` and whoever does its I/O.

use crate::blocks::Blocks;
use crate::numbered::Number;
pub use crate::sizes::{BLOCK, EXTENT, RUN_MAX};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use units::{Bytes, Duration, Rate};

/// A disk that is further behind than a crash leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Which of the given disks.
    pub device: DiskIndex,
    /// The disk's number in the pool.
    pub index: DiskIndex,
    /// How many commits and openings it lacks of those that `ahead` has.
    pub behind: u64,
    /// The one of the given disks that has most of them.
    pub ahead: DiskIndex,
    /// How much of its metadata is there.
    pub found: Found,
}

/// How much of a disk's metadata is found on it, beside its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: they were written over, or erased.
    Nothing,
    /// A part of it cannot be read, in which more of it may lie.
    Unreadable {
        /// The first byte on the disk that cannot be read.
        offset: Bytes,
        /// What the disk said.
        error: IoError,
    },
    /// A checkpoint on it is not whole: it was written over, or was being written when it was copied.
    Damaged,
    /// As much as a disk has that was left alone.
    Whole,
}

/// A user, a group, and what they and others may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ownership {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
    /// `rwxrwxrwx` of the owner, the group and others, as a file's; and what the volume is to
    /// those who see volumes as files ([`Ownership::KIND`]).
    pub mode: u16,
}

impl Ownership {
    /// Root's, and closed to others.
    pub const ROOT: Self = Self { uid: 0, gid: 0, mode: 0o600 };
    /// All nine permission bits.
    pub const MODE_MAX: u16 = 0o777;
    /// The bits that say what a volume is, as those of a file's mode do: none for a volume that
    /// is nothing but that, or one of the two below.
    pub const KIND: u16 = 0o170_000;
    /// It stands for a directory, and has no bytes.
    pub const DIRECTORY: u16 = 0o040_000;
    /// It stands for a symbolic link: its bytes are the link's text.
    pub const LINK: u16 = 0o120_000;

    /// The nine bits.
    pub fn permissions(self) -> u16 {
        self.mode & Self::MODE_MAX
    }
    /// What it is.
    pub fn kind(self) -> u16 {
        self.mode & Self::KIND
    }
    /// Whether a volume can have this mode.
    pub fn is_mode(mode: u16) -> bool {
        let kinds = [0, Self::DIRECTORY, Self::LINK];
        mode & !(Self::MODE_MAX | Self::KIND) == 0 && kinds.contains(&(mode & Self::KIND))
    }
}

/// When what a volume holds was last read as far as somebody said so, written, and anything of it
/// changed: nanoseconds since 1970. The store knows no clock: its caller says what time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
#[allow(missing_docs)] // they are named for what they are
pub struct Times {
    pub accessed: i64,
    pub modified: i64,
    pub changed: i64,
}

impl Default for Ownership {
    fn default() -> Self {
        Self::ROOT
    }
}

/// How the reads and writes of a volume are served that no stream carries, and who said so.
/// The store keeps it; whether a number in it makes sense is its caller's to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    /// The number of the user who gave the volume this service: where it is a contract, it is
    /// his.
    pub given_by: u32,
    /// What is done.
    pub kind: ServiceKind,
}

/// A policy that was chosen for the pool's disks while it was served, by name. The store keeps
/// it; whether there is such a policy is its caller's to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeptPolicy {
    /// The policy's name: 1 to [`KeptPolicy::NAME_MAX`] bytes.
    pub name: String,
    /// The settings whose values were chosen, by name, with these: at most
    /// [`KeptPolicy::SETTINGS_MAX`].
    pub settings: Vec<(String, u64)>,
}

impl KeptPolicy {
    /// The longest name of a policy or a setting, in bytes.
    pub const NAME_MAX: usize = 32;
    /// The most settings of one policy.
    pub const SETTINGS_MAX: usize = 16;
}

/// The kinds of a [`Service`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // a field that is named for what it holds is not explained twice
pub enum ServiceKind {
    /// Nothing is promised, with this priority.
    BestEffort { priority: ServicePriority },
    /// A rate, in operations of at least `block` bytes, over each `period`.
    Rate { rate: Rate, block: Bytes, period: Duration },
    /// Operations of at most `len` bytes that come `every` so long are answered `within` this
    /// time.
    Latency { len: Bytes, within: Duration, every: Duration },
}

/// Who goes first among those without a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // they are named for what they are
pub enum ServicePriority {
    Interactive,
    Normal,
    Background,
}

/// The number of a disk in its pool, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskIndex(pub u16);

impl DiskIndex {
    /// The number as an index into an array with one entry per disk.
    pub fn as_usize(self) -> usize {
        usize::from(self.0)
    }
    /// The disk with number `index`; a pool never has so many that it does not fit.
    pub(crate) fn new(index: usize) -> Self {
        Self(u16::try_from(index).expect("a pool has fewer disks"))
    }
}

/// A volume's number: unique over the life of the pool, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub u64);

impl VolumeId {
    /// What asks for this very volume wherever a name does, whatever it is called by then.
    pub fn as_name(self) -> String {
        alloc::format!("/{}", self.0)
    }
}

/// A commit's number, from 1 since the pool was opened. [`CommitId::NONE`] is before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u64);

impl CommitId {
    /// Before the first commit.
    pub const NONE: Self = Self(0);
}

/// 16 bytes that tell one pool or one disk from every other. The caller draws
/// them at random; `store` knows no randomness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id(pub [u8; 16]);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// One I/O that a state machine asked for, unique within that state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoId(pub(crate) u64);

/// What a device says when it fails: an errno, as the kernel gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoError(pub i32);

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "I/O error (errno {})", self.0)
    }
}

/// Something to do on a disk. Its end is told to the same state machine's
/// `done`. I/O that is given out at the same time may end in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// Comes back with the result.
    pub id: IoId,
    /// On which disk. While a pool is opened or checked: the place of the disk
    /// among those that the caller gave; everywhere else its number in the pool.
    pub disk: DiskIndex,
    /// What to do.
    pub kind: IoKind,
}

/// The three things that can be done on a disk. Offsets and lengths are
/// multiples of [`BLOCK`]; no transfer is longer than [`IO_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoKind {
    /// Read `len` bytes; they come back as the result.
    Read {
        /// First byte on the disk.
        offset: Bytes,
        /// How many.
        len: Bytes,
    },
    /// Write `bytes`; the result is an empty vector.
    Write {
        /// First byte on the disk.
        offset: Bytes,
        /// What to write.
        bytes: Vec<u8>,
    },
    /// Put everything whose write has ended before onto the medium; the result
    /// is an empty vector.
    Flush,
}

/// There are never more [`Suspect`]s of one disk than this.
pub const SUSPECTS_MAX: usize = 256;

/// A bad or slow extent, remembered over restarts. The counts are whoever's found
/// it; the store does not look into them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Its number: its first byte on the disk by [`EXTENT`].
    pub extent: u32,
    /// Commands on it that failed.
    pub errors: u32,
    /// Commands on it that overran far more than others like them.
    pub slow: u32,
    /// Commands that touched it since the first of these.
    pub commands: u32,
}

/// The longest transfer that `store` asks for: short enough that metadata never
/// blocks a disk for longer than one extent of a stream does.
pub const IO_MAX: Bytes = Bytes::kib(256);

/// Where a new volume's extents go.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Placement {
    /// Rotate over these disks, in this order; empty means all disks.
    pub disks: Vec<DiskIndex>,
    /// Which part of each disk.
    pub zone: Zone,
    /// So many bytes lie on one disk before the next disk's turn comes, one behind the other
    /// where there is room for that: an extent times a power of two, at most [`RUN_MAX`].
    /// Nothing means one extent.
    pub run: Bytes,
    /// It takes its extents when they are written, and its size is a limit: nothing is reserved.
    pub thin: bool,
}

impl Placement {
    /// The bytes of a run, an extent where nothing is said; none where no run has this length.
    pub fn checked_run(&self) -> Option<Bytes> {
        let run = if self.run.is_zero() { EXTENT } else { self.run };
        let is_run = run.get().is_power_of_two() && (EXTENT..=RUN_MAX).contains(&run);
        is_run.then_some(run)
    }
}

/// A part of a disk. On a hard disk low addresses are the outer, faster tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Zone {
    /// First free place from the outside in.
    #[default]
    Any,
    /// The outer half only.
    Outer,
    /// The inner half only.
    Inner,
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any zone",
            Self::Outer => "the outer half",
            Self::Inner => "the inner half",
        })
    }
}

/// Where one extent of a volume lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// On which disk.
    pub disk: DiskIndex,
    /// The extent's first byte on that disk; a multiple of [`EXTENT`]. None where it has no place
    /// there, because its volume is thin and it was never written.
    pub offset: Option<Bytes>,
    /// Which blocks of the extent were ever written; the others read as zeros, whatever
    /// the medium holds.
    pub written: Blocks,
}

/// By whom volumes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountedBy {
    /// By the user that they belong to.
    User(u32),
    /// By the group.
    Group(u32),
}

/// What somebody's volumes are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Holding {
    /// Their sizes.
    pub space: Bytes,
    /// How many there are.
    pub volumes: u64,
}

/// The room for volumes on a disk or in a pool; always a whole number of extents.
/// `total = used + free + freeing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Space {
    /// Everything that volumes can have.
    pub total: Bytes,
    /// Reserved by volumes.
    pub used: Bytes,
    /// Can be reserved now.
    pub free: Bytes,
    /// Not free yet: given back, and free once the commit that gave it back is durable;
    /// or the target of a move on its way; or moved away from since the pool was
    /// opened, and free, but avoided, when it is opened again.
    pub freeing: Bytes,
}

/// A disk as its pool knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its number in the pool.
    pub index: DiskIndex,
    /// Its identity.
    pub id: Id,
    /// How many bytes the pool uses of it, metadata included.
    pub capacity: Bytes,
}

/// What is fixed about a pool when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// What people call it.
    pub name: String,
    /// Its identity.
    pub id: Id,
    /// Its disks in the order of their numbers.
    pub disks: Vec<Disk>,
}

/// What a new pool is made of; see [`Formatting`](crate::Formatting).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPool {
    /// 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// Never used before: drawn at random.
    pub pool_id: Id,
    /// At least one.
    pub disks: Vec<NewDisk>,
}

/// A disk of a new pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDisk {
    /// Never used before: drawn at random.
    pub id: Id,
    /// The size of the device.
    pub capacity: Bytes,
    /// The disk's measured profile, kept as it is; at most
    /// [`PROFILE_MAX`](crate::PROFILE_MAX).
    pub profile: Vec<u8>,
}

impl Number for VolumeId {
    fn number(self) -> u64 {
        self.0
    }
    fn from_number(number: u64) -> Self {
        Self(number)
    }
}
