//! What can go wrong, as data; `texts.rs` says it to people.
#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use super::who::Act;
use super::words::{DiskIndex, Policy, StreamId};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use disk::BusShare;
use store::{Fits, StoreError};
use units::{Bytes, Duration, Rate};

/// What went wrong; [`core::fmt::Display`] says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Admission refused the contract.
    Refused(Refusal),
    /// With this writer the log would have to write up to `record` bytes on each disk in a
    /// commit, and its contract does not fit so long.
    LogRefused {
        record: Bytes,
        refusal: Box<Refusal>,
    },
    /// A writer would be written together with others, and so many blocks in one command leave the
    /// metadata log too little time: its steps have a third of the commit interval each.
    GroupRefused {
        members: u32,
        commit_interval: Duration,
        refusal: Box<Refusal>,
    },
    /// With that profile these streams, and the services of these volumes, would not fit;
    /// where both are empty, the metadata log.
    ProfileRefused {
        streams: Vec<StreamId>,
        volumes: Vec<String>,
        refusal: Box<Refusal>,
    },
    /// With such gaps between commands these streams, and the services of these volumes, would
    /// not fit on the disk; where both are empty, the metadata log.
    GapRefused {
        disk: DiskIndex,
        gap: Duration,
        /// Only what waits at the moment is in the way.
        undecided: bool,
        streams: Vec<StreamId>,
        volumes: Vec<String>,
        refusal: Box<Refusal>,
    },
    /// Answers take so long to their programs, with which these streams and services would not
    /// fit; where both are empty, the metadata log.
    DeliveryRefused {
        takes: Duration,
        streams: Vec<StreamId>,
        volumes: Vec<String>,
        refusal: Box<Refusal>,
    },
    /// More was measured of the host than is charged, because contracts that are open do not fit
    /// with it; this one, or what it would have more, does not either.
    BeyondHost {
        disk: DiskIndex,
        host: Box<HostCharge>,
        refusal: Box<Refusal>,
    },
    /// These streams, and the services of these volumes, would not be kept under that policy;
    /// the refusal is of its own analysis. Without one the policy keeps no contract at all,
    /// or, where both are empty, what waits now would be late.
    PolicyRefused {
        policy: Box<Policy>,
        streams: Vec<StreamId>,
        volumes: Vec<String>,
        refusal: Option<Box<Refusal>>,
    },
    /// Contracts are admitted, and the pool's policy keeps none.
    KeepsNothing {
        policy: Box<Policy>,
    },
    /// The contracts of this room would take more of a disk's time than it has, in parts per
    /// million.
    BeyondShare {
        room: usize,
        disk: DiskIndex,
        ppm: u64,
        most: u64,
    },
    /// They would take more memory than the room has.
    BeyondMemory {
        room: usize,
        memory: Bytes,
        most: Bytes,
    },
    NoSuchVolume {
        name: String,
    },
    VolumeExists {
        name: String,
    },
    /// Something lies under the directory.
    NotEmpty {
        name: String,
    },
    /// What has this name is not the volume that the caller meant.
    OtherVolume {
        name: String,
    },
    /// The volume's owner and mode do not let the caller do this.
    NotPermitted {
        name: String,
        act: Act,
    },
    /// Not a matter of any user's.
    OnlyRoot {
        what: &'static str,
    },
    /// Less than what is recorded, and nobody has said that it may be cut.
    WouldCut {
        name: String,
        recorded: Bytes,
        size: Bytes,
    },
    /// It would be made smaller: on fewer disks its contract may not fit, and what was cut cannot
    /// be had back.
    UnderContract {
        name: String,
    },
    VolumeBusy {
        name: String,
        streams: u64,
    },
    NoSuchStream {
        stream: StreamId,
    },
    NoSuchDisk {
        disk: DiskIndex,
        disks: u16,
    },
    /// A value outside its range; `rule` says which range.
    Invalid {
        what: &'static str,
        rule: &'static str,
    },
    /// A disk has not so much free space as the volume, or more of it, would take there.
    PoolFull {
        disk: DiskIndex,
        asked: Bytes,
        free: Bytes,
        /// What comes free there with the next commit.
        freeing: Bytes,
        /// What would fit, of a volume that is made or grown.
        fits: Option<Box<Fits>>,
    },
    /// The write does not fit in the volume.
    VolumeFull {
        size: Bytes,
    },
    /// Reading past the volume's end.
    BeyondEnd {
        size: Bytes,
    },
    /// A ring does not hold these bytes any more: what it holds begins at `start`.
    GivenUp {
        start: Bytes,
    },
    /// For a writer under this contract the ring is too small: it would give up more than half.
    RingTooSmall {
        size: Bytes,
        least: Bytes,
    },
    /// The window does not fit in the memory that is left; or callers have all that is for
    /// best effort, and give none back.
    NoMemory {
        asked: Bytes,
        free: Bytes,
    },
    /// What is set aside for the operations of a service does not fit in the memory that services
    /// have left.
    NoServiceMemory {
        asked: Bytes,
        free: Bytes,
    },
    /// Too much is waiting; the work is handed back, try again later.
    Busy {
        waiting: u64,
    },
    /// The stream was opened in the other direction.
    WrongMode,
    /// The disk failed.
    Device {
        disk: DiskIndex,
        error: DeviceError,
    },
    /// Writes of a volume that were answered before they were on their disk have failed there: so
    /// many since the pool was opened, the last one so.
    WriteBehind {
        name: String,
        failures: u64,
        disk: DiskIndex,
        error: DeviceError,
    },
    /// The pool is being shut down.
    ShuttingDown,
    /// The store refuses the change; its own words say why.
    Store(StoreError),
    /// A metadata write failed; the pool is read-only from here on.
    ReadOnly {
        disk: DiskIndex,
        error: DeviceError,
    },
}

/// Why a contract does not fit, and what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The disk that cannot take it.
    pub disk: DiskIndex,
    /// Utilisation of that disk with the contract, in parts per million.
    pub utilisation_ppm: u64,
    /// The earliest deadline, from a common start, at which the disk would be
    /// asked for more time than there is, and by how much; none where the
    /// utilisation alone exceeds the disk.
    pub deadline: Option<(Duration, Duration)>,
    /// The largest rate in the same blocks that would have been admitted; zero if none,
    /// and before [`Output::complete`](crate::Output::complete).
    pub rate_max: Rate,
    /// Longer blocks that would have done better, and a rate that would have been admitted in
    /// them: the shortest in which all that was asked for fits, or else those that take most,
    /// found to a sixty-fourth. None where longer ones do not help, and before
    /// [`Output::complete`](crate::Output::complete). Memory is not looked at.
    pub longer: Option<(Bytes, Rate)>,
    /// Of answers in time: a time that would have been admitted, at the same interval and length: the
    /// shortest, to a tenth of a millisecond, for which nobody else has to be served in shorter
    /// commands. None where none would, and before [`Output::complete`](crate::Output::complete).
    pub within: Option<Duration>,
    /// The bus that the disk shares with others: each of its bounds counts the wait for it.
    pub bus: Option<Box<BusShare>>,
    /// True where nothing was found to be too much: the work that a decision may take did not
    /// suffice, or what waits at this moment is in the way. It can be tried again.
    pub undecided: bool,
    /// Into how many runs of neighbouring extents a block of the stream falls at the most, each
    /// of which is counted; 1 for what is no stream's.
    pub parts: u32,
}

/// What the host takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// From the end of a command until the next one begins that waits.
    pub gap: Duration,
    /// From an answer of the pool until its program has it.
    pub delivery: Duration,
}

/// What was measured of the host, and why less is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCharge {
    pub measured: Host,
    pub charged: Host,
    /// How many open streams do not fit with what was measured.
    pub streams: usize,
    /// Of how many volumes the services do not.
    pub volumes: usize,
}

impl Error {
    /// The refusal that it is about, if it is about one.
    pub(crate) fn into_refusal(mut self) -> Option<Refusal> {
        self.refusal_mut().cloned()
    }

    /// It is what waits now that does not fit, not the contracts: it may be tried again.
    pub(crate) fn is_undecided(&self) -> bool {
        self.clone().into_refusal().is_some_and(|refusal| refusal.undecided)
    }

    /// The refusal in it, if there is one.
    pub(crate) fn refusal_mut(&mut self) -> Option<&mut Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::LogRefused { refusal, .. }
            | Self::GroupRefused { refusal, .. }
            | Self::ProfileRefused { refusal, .. }
            | Self::GapRefused { refusal, .. }
            | Self::DeliveryRefused { refusal, .. }
            | Self::BeyondHost { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}

/// What a device says when it fails: an errno, as the kernel gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceError(pub i32);

impl DeviceError {
    /// The device was not asked: the contracts that are open leave no time for what it takes in that
    /// place (`ETIME`).
    pub const NO_SLACK: Self = Self(62);

    /// The device was asked, is there, and could not read or write this place: `EIO`, `ENODATA` (what
    /// Linux makes of a bad sector), `EILSEQ` (of a checksum) or `EREMOTEIO`.
    pub fn is_of_medium(self) -> bool {
        const EIO: i32 = 5;
        const ENODATA: i32 = 61;
        const EILSEQ: i32 = 84;
        const EREMOTEIO: i32 = 121;
        matches!(self.0, EIO | ENODATA | EILSEQ | EREMOTEIO)
    }

    /// The disk's host had no room for it, or no memory: the file system that the disk's file lies in is
    /// full (`ENOSPC`), or a limit of it is reached (`EDQUOT`, `EFBIG`). That is no fault of the medium:
    /// the same place takes the same bytes when there is room again.
    pub fn is_of_host(self) -> bool {
        const ENOMEM: i32 = 12;
        const EFBIG: i32 = 27;
        const ENOSPC: i32 = 28;
        const EDQUOT: i32 = 122;
        matches!(self.0, ENOMEM | EFBIG | ENOSPC | EDQUOT)
    }
}

/// Why data in a suspect extent stays there for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmoved {
    /// The disk fails to read it, at or behind this offset in the volume. Nothing is
    /// made up in its place.
    Unreadable { offset: Bytes, error: DeviceError },
    /// The disk failed to write the copy.
    Unwritable { error: DeviceError },
    /// It is being written to.
    Written,
    /// Reads of it wait for the disk.
    Read,
    /// The disk has no free extent that is not suspect where the volume may lie.
    NoSpace,
    /// No memory for a piece.
    NoMemory,
    /// A contract that is open on the volume would not fit with the extent there.
    Refused(Box<Error>),
    /// The store's words.
    Store(StoreError),
}

impl From<playout::Invalid> for Error {
    fn from(invalid: playout::Invalid) -> Self {
        let playout::Invalid { what, rule } = invalid;
        Self::Invalid { what, rule }
    }
}
