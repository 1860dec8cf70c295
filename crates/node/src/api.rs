//! What crosses the seam between a [`Node`](crate::Node) and whoever drives it.
#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

pub use crate::permission::{Act, Who};
pub use crate::plan::{
    Alternative, DiskPlan, KindPlan, Plan, PlanTask, Planner, Stop, Variation, Wanted, Whose,
};
use crate::rates::RateSearch;
pub use crate::service::{Priority, Service};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
pub use disk::online::{Observed, Staleness, Suspect, Verdict};
/// Which policy a pool's disks follow.
pub use sched::PolicyKind as Policy;
use store::StoreError;
pub use store::{Blocks, DiskIndex, Ownership, Placement, Zone};
use units::{Bytes, Direction, Duration, Instant, Rate};

/// Chosen by the caller of an operation; comes back with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One open stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// One command on one disk, unique over the life of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId(pub u64);

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

/// Memory beside the arena that holds the window of one stream, shared with its
/// program. Numbered by the driver, who has it from when it asks for
/// [`Op::WindowOpen`] until that is refused or the stream's [`Op::StreamClose`] is
/// answered; in between, no two open streams may have the same.
///
/// Where a window's blocks lie in it is the node's choice: at multiples of the block,
/// always the lowest that are free. [`Node::poll_freed`](crate::Node::poll_freed) tells
/// which parts are not needed any more.
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

/// What a program asks of a stream: `rate`, moved in blocks of `block`, of
/// which it may touch `burst` beyond its playout point at once; a block at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Bytes per second, sustained.
    pub rate: Rate,
    /// A power of two from 4 KiB to 1 MiB.
    pub block: Bytes,
    /// At most [`limits::BURST_MAX`](crate::limits::BURST_MAX).
    pub burst: Bytes,
}

/// Which bytes of a volume a best-effort write is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteRange {
    pub offset: Bytes,
    pub len: Bytes,
    /// So many of the bytes, at their end, are not counted as recorded.
    pub padding: Bytes,
}

impl WriteRange {
    /// All of it is recorded.
    pub const fn new(offset: Bytes, len: Bytes) -> Self {
        Self { offset, len, padding: Bytes::ZERO }
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
}

impl Mode {
    /// Which way a request on a disk goes.
    pub(crate) const fn direction(self) -> Direction {
        match self {
            Self::Read => Direction::Read,
            Self::Write => Direction::Write,
        }
    }
}

/// What can be asked. Each ends in exactly one [`Output`] with its ticket. Who may ask for
/// what stands in [`permission`](crate::permission).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Make a volume and reserve its space: the caller's, and closed to others where
    /// nothing else is said. Answer: [`Reply::Done`], durable.
    VolumeCreate { name: String, size: Bytes, placement: Placement, access: Access },
    /// Grow or shrink, also while streams are open; to less than what is recorded only
    /// where it `may_cut` that. [`Reply::Done`], durable.
    VolumeResize { name: String, size: Bytes, may_cut: bool },
    /// Say whose a volume is and who may do what with it, from now on; what is open stays
    /// open. [`Reply::Done`], durable.
    VolumeAccess { name: String, access: Access },
    /// Remove; refused while open. [`Reply::Done`], durable.
    VolumeDelete { name: String },
    /// Serve what no stream of a volume carries in this way from now on, also what
    /// waits; admission decides about the kinds that are contracts, and a refusal
    /// changes nothing. Lives as long as the node. [`Reply::Done`].
    VolumeService { name: String, service: Service },
    /// Which block suits a stream of this rate on this volume, by the profiles of the
    /// disks that it lies on, for a program that names none. Changes nothing.
    /// [`Reply::Block`].
    Block { volume: String, mode: Mode, rate: Rate },
    /// Open a stream under contract; admission decides. [`Reply::Stream`].
    StreamOpen { volume: String, mode: Mode, contract: Contract, start: Bytes },
    /// Another rate or burst for an open stream, in the same blocks; admission
    /// decides, and a refusal changes nothing. A program may go faster as soon as the
    /// window can follow: about a window's time later. [`Reply::Stream`].
    StreamChange { stream: StreamId, contract: Contract },
    /// The next bytes at the playout point, at most `len_max`, contiguous in
    /// memory. [`Reply::Data`] when they are there; [`Reply::End`] at the end of
    /// the volume's data. The bytes stay in the window until advanced past.
    StreamRead { stream: StreamId, len_max: Bytes },
    /// Move a reader's playout point past `len` bytes it was given. [`Reply::Done`].
    StreamAdvance { stream: StreamId, len: Bytes },
    /// Memory for a writer's next bytes, at most `len_max`. [`Reply::Room`] when
    /// the window has room; the caller fills a prefix and says so.
    StreamRoom { stream: StreamId, len_max: Bytes },
    /// `len` bytes of the room last given are filled. [`Reply::Done`] at once.
    StreamWrite { stream: StreamId, len: Bytes },
    /// Wait until more than `beyond` bytes (a volume offset) of this writer are
    /// on the medium, data and metadata. [`Reply::Durable`].
    StreamDurable { stream: StreamId, beyond: Bytes },
    /// Put everything written so far on the medium. [`Reply::Durable`].
    StreamSync { stream: StreamId },
    /// Close; a writer is synced first. [`Reply::Durable`] for writers,
    /// [`Reply::Done`] for readers.
    StreamClose { stream: StreamId },
    /// Go on at another place of the volume: a reader under contract, of either kind.
    /// What was told or given before is void. [`Reply::Ready`] at once.
    StreamSeek { stream: StreamId, to: Bytes },
    /// As [`Op::StreamOpen`], with the window in a region of its own. It is used with
    /// `WindowNext`, `WindowMoved` and `WindowWaits` in the place of `StreamRead`,
    /// `StreamAdvance`, `StreamRoom` and `StreamWrite`; all else is the same.
    /// [`Reply::Stream`].
    WindowOpen { volume: String, mode: Mode, contract: Contract, start: Bytes, region: Region },
    /// The next piece that was not told yet, in the order of the volume; one ask at a
    /// time, which a seek leaves waiting. Readers: [`Reply::Data`] when it is in memory
    /// (the first when playout may begin), [`Reply::Gap`], or [`Reply::End`], which
    /// comes again when asked for again. Writers: [`Reply::Room`], one after the other
    /// from the stream's start; [`Error::VolumeFull`] at the end of the volume.
    WindowNext { stream: StreamId },
    /// The program is done with `len` more bytes of what it was told, in order: a reader
    /// has used them (gaps count), a writer has filled them. The playout point follows
    /// as far as the contract allows, and by itself later where that is not all.
    /// [`Reply::Done`] at once; for a writer the error that keeps its bytes from ever
    /// becoming durable, if one is known.
    WindowMoved { stream: StreamId, len: Bytes },
    /// The program waits from now on for a piece it was not told: an underrun if it has
    /// kept its contract. Only counted. [`Reply::Done`].
    WindowWaits { stream: StreamId },
    /// The host was found to be late by so much at the most, lately. Windows are made for
    /// it from now on, open ones too as far as memory suffices; never for less than the
    /// configured latency. [`Reply::Done`].
    HostLatency { latency: Duration },
    /// Read as best effort, 4 KiB aligned, at most 1 MiB. [`Reply::Data`]; the
    /// span is the caller's until [`Op::Release`]. A priority of its own counts as far as
    /// the volume's service lets it ([`Service::granted`]).
    Read { volume: String, offset: Bytes, len: Bytes, priority: Option<Priority> },
    /// Memory for a best-effort write. [`Reply::Room`]; the caller's until it is
    /// given to [`Op::Write`] or [`Op::Release`]. Waits for some; [`Error::NoMemory`] where
    /// callers keep all of it ([`limits::MEMORY_WITHIN`](crate::limits::MEMORY_WITHIN)).
    Room { len: Bytes },
    /// Write a range of any bytes as best effort. [`Reply::Done`] when they
    /// are on the disk and every read that comes from now on finds them; durable after
    /// [`Op::Sync`]. Writes of the same 4 KiB are done in the order in which they came. An
    /// error says nothing of the bytes that it speaks of, and binds nobody else. Its
    /// priority is as a read's.
    Write {
        volume: String,
        range: WriteRange,
        /// From [`Op::Room`]: the bytes lie from their offset modulo 4 KiB on, and it has
        /// whole 4 KiB around them, whose other bytes stay what they are in the volume.
        span: Span,
        priority: Option<Priority>,
    },
    /// Give memory back. [`Reply::Done`].
    Release { span: Span },
    /// Make durable every write that was answered with [`Reply::Done`] before, whoever
    /// wrote. [`Reply::Done`].
    Sync,
    /// Use this profile for a disk from now on, and store it; refused, and nothing
    /// changes, where an open contract would not fit. One of another depth is only
    /// stored, for when the pool is opened again. [`Reply::Done`], durable.
    ProfileSet { disk: DiskIndex, profile: Box<disk::Profile> },
    /// Measure a disk again in the background, with reads; what comes of it is in its
    /// status. [`Reply::Done`] when it has begun, or was on its way.
    Reprofile { disk: DiskIndex },
    /// What planning needs to know of the pool now, to be asked what would fit.
    /// [`Reply::Planner`]. Changes nothing.
    Plan,
    /// Refuse new work, hand back best effort that no disk has begun, sync every writer,
    /// commit. [`Reply::Done`].
    Shutdown,
}

/// A good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Done,
    /// The stream is open. A reader's first data comes when its window is full.
    Stream {
        stream: StreamId,
        /// Memory of the playout window.
        window: Bytes,
    },
    Block {
        block: Bytes,
    },
    /// Bytes are in memory.
    Data {
        span: Span,
        /// Where in the volume they start.
        offset: Bytes,
    },
    /// Memory to fill.
    Room {
        span: Span,
    },
    /// The volume's recorded data ends here.
    End,
    /// The device failed on these bytes of a stream's volume: a declared gap.
    /// The playout point is moved past it.
    Gap {
        offset: Bytes,
        len: Bytes,
    },
    /// Everything of this writer up to this volume offset is on the medium.
    Durable {
        upto: Bytes,
    },
    /// After a seek: bounds, both now or earlier where all is in the window.
    Ready {
        /// By then the first bytes are in memory, most often much sooner: they are told
        /// or given when they are.
        at: Instant,
        /// From then on the program finds all that its contract says.
        steady: Instant,
    },
    Planner(Box<Planner>),
}

/// What went wrong; [`core::fmt::Display`] says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Admission refused the contract.
    Refused(Refusal),
    /// With that profile these streams, and the services of these volumes, would not fit;
    /// where both are empty, the metadata log.
    ProfileRefused {
        streams: Vec<StreamId>,
        volumes: Vec<String>,
        refusal: Box<Refusal>,
    },
    NoSuchVolume {
        name: String,
    },
    VolumeExists {
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
    /// The pool (or the asked part of it) has not so much free space.
    PoolFull {
        asked: Bytes,
        free: Bytes,
    },
    /// The write does not fit in the volume.
    VolumeFull {
        size: Bytes,
    },
    /// Reading past the volume's end.
    BeyondEnd {
        size: Bytes,
    },
    /// The window does not fit in the memory that is left; or callers have all that is for
    /// best effort, and give none back.
    NoMemory {
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
    /// and before [`Output::complete`].
    pub rate_max: Rate,
}

/// What a device says when it fails: an errno, as the kernel gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceError(pub i32);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody asks for something.
    Request { ticket: Ticket, who: Who, op: Op },
    /// A command ended. `started` and `finished` are the device's own times;
    /// the host may have noticed later than `finished`.
    CommandDone {
        disk: DiskIndex,
        id: CommandId,
        started: Instant,
        finished: Instant,
        result: Result<(), DeviceError>,
    },
}

/// What a disk shall do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCommand {
    pub id: CommandId,
    pub action: DiskAction,
    /// Bound on the device time, for holding against reality.
    pub predicted: Duration,
}

/// The action of a [`DiskCommand`]; offsets are bytes on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskAction {
    /// Fill the blocks of `span` that `written` has from the disk, where they lie from
    /// `offset` on, and the others with zeros: what the disk holds there is nobody's to
    /// see. Where it has none, without touching the disk.
    Read { offset: Bytes, span: Span, written: Blocks },
    /// Fill what a `span` of 4 KiB has outside of `keep` with what the disk has at
    /// `offset`; with zeros, and without touching the disk, where that was never `written`.
    Merge { offset: Bytes, span: Span, keep: Range<Bytes>, written: bool },
    /// Fill `span` from `valid` on with zeros, then write all of it. A span of a region
    /// is written as it is: the program may be filling what follows. (For the same reason
    /// room in a region is filled with zeros before the program is told of it.)
    Write { offset: Bytes, span: Span, valid: Bytes },
    /// Write these bytes (metadata).
    WriteBytes { offset: Bytes, bytes: Vec<u8> },
    /// Put all completed writes on the medium.
    Flush,
}

impl DiskAction {
    /// True where nothing is asked of the disk.
    pub fn needs_no_disk(&self) -> bool {
        match self {
            Self::Read { written, .. } => written.is_empty(),
            Self::Merge { written, .. } => !written,
            Self::Write { .. } | Self::WriteBytes { .. } | Self::Flush => false,
        }
    }

    /// What of the disk is transferred, in bytes, and which way; none for a flush, and
    /// where nothing is asked of the disk.
    pub fn transfer(&self) -> Option<(Range<Bytes>, Direction)> {
        let whole = |offset: Bytes, len| offset..offset + len;
        Some(match *self {
            _ if self.needs_no_disk() => return None,
            Self::Read { offset, ref written, .. } => {
                let span = written.span();
                (offset + span.start..offset + span.end, Direction::Read)
            }
            Self::Merge { offset, span, .. } => (whole(offset, span.len), Direction::Read),
            Self::Write { offset, span, .. } => (whole(offset, span.len), Direction::Write),
            Self::WriteBytes { offset, ref bytes } => {
                (whole(offset, Bytes::new(bytes.len() as u64)), Direction::Write)
            }
            Self::Flush => return None,
        })
    }
}

/// One disk of a pool, for making a node.
#[derive(Clone, Debug)]
pub struct DiskSetup {
    /// What commands cost on it.
    pub profile: disk::Profile,
}

/// The answer of [`Node::poll_disk`](crate::Node::poll_disk).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskPoll {
    /// Give this to the device now, then poll again.
    Start(DiskCommand),
    /// Nothing before this instant (or before the next event).
    Wait { until: Option<Instant> },
}

/// The end of an [`Op`].
#[derive(Clone, Debug)]
pub struct Output {
    pub ticket: Ticket,
    pub result: Result<Reply, Error>,
    /// Where it is a refusal: what is left to be searched, for [`Output::complete`].
    pub search: Option<Box<RateSearch>>,
}

impl Output {
    /// A refusal with the largest rate that would have been admitted. May take a second:
    /// not for a thread that others wait for, nor under a lock.
    pub fn complete(mut self) -> Self {
        if let (Err(error), Some(search)) = (&mut self.result, self.search.take()) {
            search.complete(error);
        }
        self
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

/// Everything that can be seen of a node, at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub now: Instant,
    pub disks: Vec<DiskStatus>,
    pub volumes: Vec<VolumeStatus>,
    pub streams: Vec<StreamStatus>,
    pub memory: MemoryStatus,
    /// Set once a metadata write has failed.
    pub read_only: bool,
}

/// One disk at one instant. Counts are since the node was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskStatus {
    pub disk: DiskIndex,
    pub capacity: Bytes,
    pub free: Bytes,
    /// Admitted utilisation, parts per million.
    pub utilisation_ppm: u64,
    /// Static slack of the admitted contracts.
    pub slack: Duration,
    pub waiting_real_time: u64,
    pub waiting_best_effort: u64,
    pub real_time: Traffic,
    pub best_effort: Traffic,
    /// Commands that took longer than their bound, and by how much at the most.
    pub overruns: u64,
    pub overrun_max: Duration,
    /// Sum of predicted and of actual device time, for their ratio.
    pub predicted_total: Duration,
    pub actual_total: Duration,
    /// Requests done after their deadline, and by how much at the most.
    pub late_requests: u64,
    pub late_max: Duration,
    pub errors: u64,
    /// What the disk did, held against its profile.
    pub observed: Observed,
    /// What became of the data in its suspect extents.
    pub moves: MoveStatus,
    /// What measuring it again came to, if it was.
    pub measured: Option<Measured>,
    /// Another profile is stored, which is used when the pool is opened again.
    pub profile_for_next_start: bool,
}

/// A disk measured again while it was in use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Measured {
    pub outcome: Outcome,
    pub reads: u64,
    /// Reads that took longer than their bound, and by how much at the most.
    pub over: u64,
    pub excess: Duration,
    /// How long the large reads were.
    pub large: Bytes,
    pub parts: Vec<MeasuredPart>,
}

/// What a measurement came to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Outcome {
    /// So many reads of those planned are done; the rest is of the one before.
    Running { done: u64, planned: u64 },
    /// All reads kept within their bounds: the profile stays.
    #[default]
    Holds,
    /// A profile with wider bounds is used and stored.
    Used,
    /// A profile with wider bounds does not leave room for what is open; it is tried
    /// again when a stream has closed.
    Refused(Box<Error>),
}

/// One part of a disk, as it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredPart {
    pub from: Bytes,
    pub to: Bytes,
    /// Mean times of reads of [`MEASURE_SMALL`](crate::limits::MEASURE_SMALL) and of
    /// large ones.
    pub small: Duration,
    pub large: Duration,
    /// From what the larger ones took longer; none where they did not.
    pub rate: Option<Rate>,
}

/// Data in the suspect extents of one disk. Counts are since the node was made.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MoveStatus {
    /// Extents that were moved to good ones.
    pub moved: u64,
    /// The extent that is being moved: its first byte on the disk by 1 MiB.
    pub moving: Option<u64>,
    /// Suspect extents that hold data of a volume.
    pub occupied: u64,
    /// Those of them that could not be moved, and are tried again later.
    pub stuck: Vec<StuckExtent>,
}

/// A suspect extent that holds data and stays where it is for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckExtent {
    /// Its first byte on the disk by 1 MiB.
    pub extent: u64,
    pub volume: String,
    pub why: Unmoved,
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
    /// The disk has no free extent that is not suspect where the volume may lie.
    NoSpace,
    /// No memory for a piece.
    NoMemory,
    /// A contract that is open on the volume would not fit with the extent there.
    Refused(Box<Error>),
    /// The store's words.
    Store(StoreError),
}

/// How the request of a stream, or of a volume under contract, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    pub whose: Carrier,
    /// After its deadline; zero where it was in time.
    pub late_by: Duration,
    /// From release to completion.
    pub latency: Duration,
}

/// Who carries a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    Stream(StreamId),
    /// The ticket of an operation on a volume; none for zeros that nobody asked for.
    Operation(Option<Ticket>),
    /// The pool's own: its log, and extents that are moved.
    Pool,
}

/// Requests and bytes done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    pub requests: u64,
    pub bytes: Bytes,
}

/// One volume at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeStatus {
    pub name: String,
    pub ownership: Ownership,
    /// Space reserved.
    pub size: Bytes,
    /// End of the recorded data.
    pub length: Bytes,
    pub placement: Placement,
    /// Extents on each disk of the pool.
    pub extents: Vec<u64>,
    pub streams: u64,
    /// How reads and writes without a stream are served.
    pub service: Service,
    pub account: ServiceAccount,
    /// What the service has of each disk's time, in parts per million; empty where it is
    /// no contract.
    pub shares: Vec<(DiskIndex, u64)>,
}

/// Requests of a volume under its service's contract, since it got one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ServiceAccount {
    pub requests: u64,
    /// Requests done after their deadline, and by how much at the most.
    pub late_requests: u64,
    pub late_max: Duration,
    /// From release to completion of each request.
    pub latency_max: Duration,
}

/// One stream at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    pub stream: StreamId,
    pub volume: String,
    pub mode: Mode,
    pub contract: Contract,
    /// Memory of the playout window.
    pub window: Bytes,
    /// The playout point: a volume offset.
    pub position: Bytes,
    /// Bytes moved by the program since it opened the stream.
    pub moved: Bytes,
    /// Writers: the volume offset up to which everything is on the medium.
    pub durable: Bytes,
    pub requests: u64,
    /// Requests done after their deadline, and by how much at the most.
    pub late_requests: u64,
    pub late_max: Duration,
    /// Times that a program within its rate found the window not ready.
    pub underruns: u64,
    /// Times that a program was slowed to its rate.
    pub throttled: u64,
    /// Bytes given up as declared gaps.
    pub gaps: Bytes,
    /// From release to completion of each request.
    pub latency_max: Duration,
    pub open_since: Instant,
    /// What its contract has of each disk's time, in parts per million.
    pub shares: Vec<(DiskIndex, u64)>,
}

/// The arena's use at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryStatus {
    pub total: Bytes,
    pub windows: Bytes,
    /// Memory of windows in regions, beside the total.
    pub regions: Bytes,
    pub best_effort: Bytes,
    pub free: Bytes,
}
