//! The words that all of a node is told in: names, places, contracts.
#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use super::service::Priority;
use alloc::string::String;
use alloc::vec::Vec;
/// What a program asks of a stream.
pub use playout::Contract;
/// Whether a stream's program is still there.
pub use playout::{KeepAlive, PAUSE_MAX, STOOD_STILL};
/// Which policy a pool's disks follow.
pub use sched::{
    Admission, BrokenOdds, Chance, PolicyKind as Policy, Setting as PolicySetting, SettingUnit,
    WrongSetting,
};
pub use store::{Blocks, DiskIndex, Holding, Moment, Ownership, Placement, Recorded};
pub use store::{CountedBy, Stretches, Times, Written, Zone};
use units::{Bytes, Direction, Duration};

/// Chosen by the caller of an operation; comes back with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// All that a program may say of a stream that it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    pub volume: String,
    pub mode: Mode,
    pub contract: Contract,
    pub start: Bytes,
    /// A reader has what is there as soon as it is: as [`Op::StreamBegin`](crate::Op::StreamBegin)
    /// in the same call, before a disk can have begun with its first whole block.
    pub early: bool,
    /// Its requests may be late with at most this probability, each by itself; `None` where none
    /// may be. Blocks of such a stream have at most an extent.
    pub miss: Option<Chance>,
}

/// One open stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// One command, unique over the life of the node; its disk is part of it. A command that
/// came later is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

impl CommandId {
    /// The lowest bits name the disk. What is above suffices for 2^48 commands.
    const DISK_BITS: u32 = u16::BITS;

    /// The command with this number, on this disk.
    pub(crate) const fn new(disk: DiskIndex, number: u64) -> Self {
        Self(number << Self::DISK_BITS | disk.0 as u64)
    }

    /// The disk that it was made for.
    pub const fn disk(self) -> DiskIndex {
        DiskIndex(self.0 as u16)
    }
}

/// A piece of memory for data: of the arena, the driver's one block of it, or of a
/// [`Region`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where in the arena, or [`Region::offset`] and where in the region; a multiple of
    /// 4 KiB for what goes to a disk.
    pub offset: Bytes,
    /// How long.
    pub len: Bytes,
}

impl Span {
    /// Its first `len` bytes, of no more than it has, and the rest.
    pub fn cut(self, len: Bytes) -> [Self; 2] {
        let behind = Self { offset: self.offset + len, len: self.len - len };
        [Self { len, ..self }, behind]
    }
}

/// Memory beside the arena that holds the window of one stream, shared with its
/// program. Numbered by the driver, who has it from when it asks for
/// [`Op::WindowOpen`](crate::Op::WindowOpen) until that is refused or the stream's
/// [`Op::StreamClose`](crate::Op::StreamClose) is
/// answered; in between, no two open streams may have the same.
///
/// Where a window's blocks lie in it is the node's choice: at multiples of the block,
/// always the lowest that are free. [`Node::poll_freed`](crate::Node::poll_freed) tells
/// which parts are not needed any more; or [`Node::release_next`](crate::Node::release_next), where
/// giving them back takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(pub u32);

impl Region {
    /// Where the spans of this region begin.
    pub const fn offset(self) -> Bytes {
        let before = crate::limits::REGION_STRIDE.get() * self.0 as u64;
        Bytes::new(crate::limits::REGIONS_BASE.get() + before)
    }

    /// The region that a span lies in, and where in it; none for one of the arena.
    pub const fn of(span: &Span) -> Option<(Self, Bytes)> {
        match span.offset.get().checked_sub(crate::limits::REGIONS_BASE.get()) {
            None => None,
            Some(beyond) => {
                let stride = crate::limits::REGION_STRIDE.get();
                Some((Self((beyond / stride) as u32), Bytes::new(beyond % stride)))
            }
        }
    }
}

/// A handle on a volume that has a contract of its own: a number that is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleId(pub u64);

/// Which bytes of a volume a best-effort write is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRange {
    pub offset: Bytes,
    pub len: Bytes,
    /// It may be answered before it is on its disk: *write-behind*. Every best-effort read that
    /// comes from then on finds the bytes; whether they could be written is told by
    /// [`Op::SyncVolume`](crate::Op::SyncVolume).
    pub behind: bool,
    /// Who writes it, see [`Changes::not_by`].
    pub writer: Option<Writer>,
}

/// Whoever wants to know of changes that are not his own: a number that nobody else has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer(pub u64);

/// When the bytes of a volume may have changed last, on a clock that counts such changes while the
/// pool is open; zero where they did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The last change of all.
    pub last: u64,
    /// Who made it.
    writer: Option<Writer>,
    /// The last one that somebody else made.
    before: u64,
}

impl Changes {
    /// The last change was then, and nobody's who has a number.
    pub const fn at(last: u64) -> Self {
        Self { last, writer: None, before: 0 }
    }

    /// Another number than before whenever somebody else than `writer` may have changed bytes in
    /// between.
    pub fn not_by(&self, writer: Writer) -> u64 {
        if self.writer == Some(writer) { self.before } else { self.last }
    }

    /// One more change.
    pub(crate) fn note(&mut self, at: u64, writer: Option<Writer>) {
        if self.writer != writer {
            (self.writer, self.before) = (writer, self.last);
        }
        self.last = at;
    }
}

impl WriteRange {
    /// It is on its disk when it is answered.
    pub const fn new(offset: Bytes, len: Bytes) -> Self {
        Self { offset, len, behind: false, writer: None }
    }

    /// How far into its memory the first byte lies: the start of its first 4 KiB is the
    /// memory's.
    pub fn skip(&self) -> Bytes {
        self.offset % crate::limits::BLOCK_MIN
    }

    /// The memory that it needs: whole 4 KiB.
    pub fn room(&self) -> Bytes {
        let end = self.skip().saturating_add(self.len);
        end.saturating_add(crate::limits::BLOCK_MIN - Bytes::new(1))
            .round_down(crate::limits::BLOCK_MIN)
    }
}

/// What memory for a best-effort write is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub volume: String,
    /// Of the first byte that will be written.
    pub offset: Bytes,
    /// What the handle states.
    pub priority: Option<Priority>,
}

/// What is said of whose a volume is: each part that is none stays as it was, or, of a
/// new volume, is as its maker's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    /// Nine permission bits.
    pub mode: Option<u16>,
}

/// Which way a stream moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The window is filled ahead of the reader.
    Read,
    /// The window is drained behind the writer.
    Write,
    /// Both: the window is filled ahead of the program with what the volume holds, and drained
    /// behind it, so that it may read its bytes and change some of them, in any order.
    Update,
}

impl Mode {
    /// Which way the requests for a block go on a disk, one after the other.
    pub(crate) const fn directions(self) -> &'static [Direction] {
        match self {
            Self::Read => &[Direction::Read],
            Self::Write => &[Direction::Write],
            Self::Update => &[Direction::Read, Direction::Write],
        }
    }

    /// Whether blocks of the window are written.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Update)
    }
}

/// How a node is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub policy: Policy,
    /// Off only for comparisons: every contract is then taken.
    pub admission: bool,
    /// Size of the arena; a multiple of 1 MiB.
    pub memory: Bytes,
    /// Deadlines are advanced by this much, so that a late wake-up of the host
    /// does not make a request late. Zero in simulation.
    pub host_latency: Duration,
    /// Time between commits of the metadata log; raised where a disk is so slow
    /// that commits would take much of it.
    pub commit_interval: Duration,
    /// A disk whose profile does not hold is measured again without being asked to, and
    /// its profile widened where that fits.
    pub remeasure: bool,
}

/// One disk of a pool, for making a node.
#[derive(Clone, Debug)]
pub struct DiskSetup {
    /// What commands cost on it.
    pub profile: disk::Profile,
    /// What the host takes between two commands on it, at first: until enough was measured
    /// ([`queue::limits`]). Zero in simulation.
    pub gap: Duration,
}

impl DiskSetup {
    /// A disk of a host that takes no time between commands, until that is measured.
    pub fn new(profile: disk::Profile) -> Self {
        Self { profile, gap: Duration::ZERO }
    }
}

/// Contracts on a volume that somebody has, and what all of these may come to where the volume
/// changes: whoever keeps quotas knows what he has elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractRoom {
    /// Streams on the volume.
    pub streams: Vec<StreamId>,
    /// The volume's own service.
    pub service: bool,
    /// Handles on it.
    pub handles: Vec<HandleId>,
    /// The share of each disk's time, in parts per million, by the disk's number; of others any.
    pub shares: Vec<u64>,
    /// Memory.
    pub memory: Bytes,
}

impl store::Number for StreamId {
    fn number(self) -> u64 {
        self.0
    }
    fn from_number(number: u64) -> Self {
        Self(number)
    }
}
