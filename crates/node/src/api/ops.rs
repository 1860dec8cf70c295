//! What can be asked of a node, and what it is told.
#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use super::answers::{self, Opened, Playout, Ready};
use super::error::{DeviceError, Error};
use super::reply::Reply;
use super::service::{Priority, Service};
use super::who::Who;
use super::words::*;
use crate::admission::rates::RateSearch;
use crate::plan::Planner;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use store::VolumeId;
use units::{Bytes, Duration, Instant, Rate};

/// An operation by itself, of which the answer's type is known. [`Op`] is one too, whose answer is
/// any [`Reply`].
pub trait Operation: Into<Op> {
    /// What it is answered with, by whoever hands out `B` to be read, `R` to be filled, and says `W` of
    /// shared windows.
    type Answer<B, R, W>;

    /// Finds it in the reply to this operation.
    ///
    /// # Panics
    /// On the reply to another one, and of [`calls::WindowNext`] on that of a node without a driver.
    fn answer<B, R, W>(reply: Reply<B, R, W>) -> Self::Answer<B, R, W>;
}

impl Operation for Op {
    type Answer<B, R, W> = Reply<B, R, W>;

    fn answer<B, R, W>(reply: Reply<B, R, W>) -> Reply<B, R, W> {
        reply
    }
}

/// Each operation, what it is answered with, and which function of [`answers`] finds that in a reply.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident $({
        $($(#[$about:meta])* $field:ident : $type:ty),* $(,)?
    })?
        => $answer:ty, $find:ident;)*) => {
        /// What can be asked. Each ends in exactly one [`Output`] with its ticket. Who may ask for
        /// what stands in [`permission`](crate::volumes::permission). Each but [`Op::Staged`] stands in
        /// [`calls`] by itself, too.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Op {
            $($(#[$doc])* $name $({ $($(#[$about])* $field: $type),* })?,)*
            /// One of the changes of volumes here, answered when everybody sees it. It is durable with
            /// the next commit, and with [`Op::Sync`]. The same answer.
            Staged(Box<Self>),
        }

        /// The operations one by one, each with the type of its answer ([`Operation`]).
        pub mod calls {
            use super::*;
            $(
                $(#[$doc])*
                #[derive(Clone, Debug, PartialEq, Eq)]
                pub struct $name { $($($(#[$about])* pub $field: $type),*)? }

                impl From<$name> for Op {
                    fn from(it: $name) -> Self {
                        let $name { $($($field),*)? } = it;
                        Self::$name $({ $($field),* })?
                    }
                }

                impl Operation for $name {
                    type Answer<B, R, W> = $answer;

                    fn answer<B, R, W>(reply: Reply<B, R, W>) -> $answer {
                        let found = answers::$find(reply);
                        found.unwrap_or_else(|| unreachable!("the answer to a {}", stringify!($name)))
                    }
                }
            )*
        }
    };
}

operations! {
    /// Make a volume and reserve its space: the caller's, and closed to others where
    /// nothing else is said. Answer: [`Reply::Made`], durable.
    VolumeCreate { name: String, size: Bytes, placement: Placement, access: Access } => VolumeId, made;
    /// The same of a ring: a volume that gives up its oldest extents for what is recorded next.
    /// It has `size` at least, and gives up what is older than `keep` also where there is room for it.
    /// [`Reply::Made`], durable.
    RingCreate {
        name: String,
        size: Bytes,
        placement: Placement,
        access: Access,
        keep: Option<Duration>,
    } => VolumeId, made;
    /// Say for how long a ring keeps what is recorded, from now on: none is as long as there is
    /// room. [`Reply::Done`], durable.
    RingKeep { name: String, keep: Option<Duration> } => (), done;
    /// Say that what is recorded is a copy of what `of` holds from `start` on, which the caller must
    /// be permitted to read: it was recorded when that was. One commit may not have room for all of
    /// it: ask again until [`Recorded::known`](store::Recorded::known) says that it has come to the end, or
    /// no further. [`Reply::Done`], durable.
    VolumeCopied { name: String, of: String, start: Bytes } => (), done;
    /// Grow or shrink, also while streams are open; to less than what is recorded only
    /// where it `may_cut` that. [`Reply::Done`], durable.
    VolumeResize { name: String, size: Bytes, may_cut: bool } => (), done;
    /// The same, where the contracts on the volume come to no more than they may:
    /// [`Error::BeyondShare`] or [`Error::BeyondMemory`] otherwise, and nothing changes.
    VolumeResizeWithin {
        name: String,
        size: Bytes,
        may_cut: bool,
        rooms: Vec<ContractRoom>,
    } => (), done;
    /// What is recorded from `length` on is lost, where nobody uses the volume; its space stays with
    /// it. With `unless_changed` nothing changes, and that is no error, where anybody else than this
    /// writer may have changed bytes since he was told this number ([`Changes::not_by`]), or where
    /// nothing is recorded there. [`Reply::Done`], durable.
    VolumeTruncate {
        name: String,
        length: Bytes,
        unless_changed: Option<(Writer, u64)>,
    } => (), done;
    /// Say whose a volume is and who may do what with it, from now on; what is open stays
    /// open. [`Reply::Done`], durable.
    VolumeAccess { name: String, access: Access } => (), done;
    /// Give a volume another name, also while it is open, and those that lie under it as under
    /// a directory. What has that name already is in the way, or, where it may be replaced, is
    /// removed in the same step, or gets the name that it is to be kept under; a directory takes no
    /// place but that of an empty one, and nothing else takes a directory's. Where `is` is given, no
    /// other volume is renamed, and where `only` is, no other one is replaced:
    /// [`Error::OtherVolume`]. With `keep_directory` the directory that it leaves stays, where nothing
    /// else lies under that: a volume of the caller's stands for it, if there is room for one.
    /// [`Reply::Done`], durable.
    VolumeRename {
        name: String,
        to: String,
        replace: bool,
        keep_as: Option<String>,
        is: Option<VolumeId>,
        only: Option<VolumeId>,
        keep_directory: bool,
    } => (), done;
    /// What is recorded reaches to this byte, within the volume's space: what was never written
    /// reads as zeros. Never less than it was. [`Reply::Done`], durable.
    VolumeExtend { name: String, length: Bytes } => (), done;
    /// Say when a volume was last read or written, in nanoseconds since 1970; what is left out
    /// stays. [`Reply::Done`], durable.
    VolumeTimes { name: String, accessed: Option<i64>, modified: Option<i64> } => (), done;
    /// Remove; refused while open, and, where `only` is given, of any other volume
    /// ([`Error::OtherVolume`]). `keep_directory` is as in [`Op::VolumeRename`]. [`Reply::Done`], durable.
    VolumeDelete { name: String, only: Option<VolumeId>, keep_directory: bool } => (), done;
    /// Serve what no stream of a volume carries in this way from now on, also what
    /// waits; admission decides about the kinds that are contracts, and a refusal
    /// changes nothing. Kept with the volume, as the caller's, and in force again when the pool
    /// is served again, where it fits ([`VolumeStatus::kept_out`]).
    /// [`Reply::Done`], durable.
    ///
    /// [`VolumeStatus::kept_out`]: crate::VolumeStatus::kept_out
    VolumeService { name: String, service: Service } => (), done;
    /// Give what the caller asks by one handle on a volume a service of its own, beside the
    /// volume's: answers within a time. Admission decides. Until [`Op::HandleClose`], or until
    /// the volume is deleted; it is not kept. [`Reply::Handle`].
    HandleOpen { volume: String, service: Service } => HandleId, handle;
    /// The handle's contract is at its end: what waits is served as the volume is.
    /// [`Reply::Done`], also where it has ended before.
    HandleClose { handle: HandleId } => (), done;
    /// Which block suits a stream of this rate on this volume, by the profiles of the
    /// disks that it lies on, for a program that names none. Changes nothing.
    /// [`Reply::Block`].
    Block { volume: String, mode: Mode, rate: Rate } => Bytes, block;
    /// Open a stream under contract; admission decides. [`Reply::Stream`].
    StreamOpen { volume: String, mode: Mode, contract: Contract, start: Bytes } => Opened, opened;
    /// As [`Op::StreamOpen`], or as [`Op::WindowOpen`] where there is a region, with what else
    /// a program may say of how its stream begins. [`Reply::Stream`].
    Open { opening: Box<Opening>, region: Option<Region> } => Opened, opened;
    /// Another rate or burst for an open stream, in the same blocks; admission
    /// decides, and a refusal changes nothing. A program may go faster as soon as the
    /// window can follow: about a window's time later. [`Reply::Stream`].
    StreamChange { stream: StreamId, contract: Contract } => Opened, opened;
    /// The next bytes at the playout point, at most `len_max`, contiguous in
    /// memory. [`Reply::Data`] when they are there; [`Reply::Gap`] where the device failed on them;
    /// [`Reply::End`] at the end of the volume's data. The bytes stay in the window until advanced past.
    StreamRead { stream: StreamId, len_max: Bytes } => Playout<B>, playout;
    /// Move a reader's playout point past `len` bytes it was given. [`Reply::Done`].
    StreamAdvance { stream: StreamId, len: Bytes } => (), done;
    /// Memory for a writer's next bytes, at most `len_max`. [`Reply::Room`] when
    /// the window has room; the caller fills a prefix and says so.
    StreamRoom { stream: StreamId, len_max: Bytes } => R, room;
    /// `len` bytes of the room last given are filled. [`Reply::Done`] at once.
    StreamWrite { stream: StreamId, len: Bytes } => (), done;
    /// Wait until more than `beyond` bytes (a volume offset) of this writer are
    /// on the medium, data and metadata. [`Reply::Durable`].
    StreamDurable { stream: StreamId, beyond: Bytes } => Bytes, durable;
    /// Put everything written so far on the medium. [`Reply::Durable`].
    StreamSync { stream: StreamId } => Bytes, durable;
    /// Close; a writer is synced first. [`Reply::Durable`] for writers,
    /// [`Reply::Done`] for readers.
    StreamClose { stream: StreamId } => Option<Bytes>, closed;
    /// Go on at another place of the volume under the same contract, with a window of either
    /// kind. What was told or given before is void. [`Reply::Ready`]: to a reader at once, to a
    /// writer when all that it has filled is on the medium. A writer goes to a multiple of its
    /// block, where its MiB of the volume is written up to it, or to a MiB's beginning.
    StreamSeek { stream: StreamId, to: Bytes } => Ready, ready;
    /// A reader that was just opened has what is there told or given at once, before all of its
    /// contract holds, as after a seek to where it begins. Later, and again: nothing changes.
    /// [`Reply::Ready`] at once.
    StreamBegin { stream: StreamId } => Ready, ready;
    /// As [`Op::StreamOpen`], with the window in a region of its own. It is used with
    /// `WindowNext`, `WindowMoved` and `WindowWaits` in the place of `StreamRead`,
    /// `StreamAdvance`, `StreamRoom` and `StreamWrite`; all else is the same.
    /// [`Reply::Stream`].
    WindowOpen { volume: String, mode: Mode, contract: Contract, start: Bytes, region: Region } => Opened, opened;
    /// The next piece that was not told yet, in the order of the volume; one ask at a
    /// time, which a seek leaves waiting. Readers: [`Reply::Data`] when it is in memory
    /// (the first when playout may begin), [`Reply::Gap`], or [`Reply::End`], which
    /// comes again when asked for again. Writers: [`Reply::Room`], one after the other
    /// from the stream's start; [`Error::VolumeFull`] at the end of the volume. By [`calls`] only of
    /// a driver that shares windows, which says of each what it is ([`Reply::Window`]).
    WindowNext { stream: StreamId } => W, window;
    /// The program is done with `len` more bytes of what it was told, in order: a reader
    /// has used them (gaps count), a writer has filled them. The playout point follows
    /// as far as the contract allows, and by itself later where that is not all.
    /// [`Reply::Done`] at once; for a writer the error that keeps its bytes from ever
    /// becoming durable, if one is known.
    WindowMoved { stream: StreamId, len: Bytes } => (), done;
    /// The program waits from now on for a piece it was not told: an underrun if it has
    /// kept its contract. Only counted. [`Reply::Done`].
    WindowWaits { stream: StreamId } => (), done;
    /// The host was found to be late by so much at the most, lately. Windows are made for
    /// it from now on, open ones too as far as memory suffices; never for less than the
    /// configured latency. [`Reply::Done`].
    HostLatency { latency: Duration } => (), done;
    /// The driver was found to take so long, as a rule, from when it is handed an answer until
    /// its program has it; at most [`DELIVERY_MAX`](crate::limits::DELIVERY_MAX) counts.
    /// Deadlines are advanced by it from now on, and every contract is admitted again; where they do not all fit,
    /// nothing changes, and it is tried again when a stream closes. [`Reply::Done`].
    Delivery { takes: Duration } => (), done;
    /// Read as best effort, 4 KiB aligned, at most 1 MiB. [`Reply::Data`]; the
    /// span is the caller's until [`Op::Release`]. A priority of its own counts as far as
    /// the volume's service lets it ([`Service::granted`]).
    Read { volume: String, offset: Bytes, len: Bytes, priority: Option<Priority> } => B, data;
    /// Memory for a best-effort write. [`Reply::Room`]; the caller's until it is
    /// given to [`Op::Write`] or [`Op::Release`]. Waits for some; [`Error::NoMemory`] where
    /// callers keep all of it ([`limits::MEMORY_WITHIN`](crate::limits::MEMORY_WITHIN)). Where
    /// it says what is to be written it waits as that write's volume and handle do, and on a
    /// volume under contract it has the memory that is set aside for it; else as normal.
    Room { len: Bytes, target: Option<Target> } => R, room;
    /// Take places on the disks for all of a range of a thin volume that has none there, or for none of it:
    /// before the writes that a program's one write is cut into, so that it is refused as a whole where
    /// there is no space. At most 32 MiB. [`Reply::Done`], of a volume that is not thin as well.
    Place { volume: String, offset: Bytes, len: Bytes } => (), done;
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
    } => (), done;
    /// Give memory back. [`Reply::Done`].
    Release { span: Span } => (), done;
    /// Make durable every write that was answered with [`Reply::Done`] before, whoever
    /// wrote, but for what has failed of those that were answered [ahead](WriteRange::behind). [`Reply::Done`].
    Sync => (), done;
    /// The same of one volume. `told`: of how many failures of writes that were answered ahead the caller was
    /// told; where there are more by then, [`Error::WriteBehind`], and nothing more is promised. None: what
    /// was answered ahead is neither waited for nor told of. [`Reply::Done`].
    SyncVolume { volume: String, told: Option<u64> } => (), done;
    /// Use this profile for a disk from now on, and store it; refused, and nothing
    /// changes, where an open contract would not fit. One of another depth is only
    /// stored, for when the pool is opened again. [`Reply::Done`], durable.
    ProfileSet { disk: DiskIndex, profile: Box<disk::Profile> } => (), done;
    /// Say that these disks share this bus from now on, in the place of the one that each was on
    /// before, or that they share none. The bus counts with as many commands as its disks have
    /// at a time, at least. It goes into their profiles; every contract on them is admitted again
    /// with the wait for the bus, and a refusal names those that do not fit, and changes nothing.
    /// [`Reply::Done`], durable.
    BusSet { disks: Vec<DiskIndex>, bus: Option<Box<disk::BusPlan>> } => (), done;
    /// Schedule all disks by this policy from now on. Every contract is admitted again, by the
    /// analysis that this policy keeps; a refusal names those that do not fit, and changes
    /// nothing. Where it is kept, the pool has it from then on ([`crate::kept_policy`]); else it
    /// lives as long as the node, and the pool forgets what it kept. [`Reply::Done`], durable.
    PolicySet { policy: Box<Policy>, keep: bool } => (), done;
    /// Measure a disk again in the background, with reads; what comes of it is in its
    /// status. [`Reply::Done`] when it has begun, or was on its way.
    Reprofile { disk: DiskIndex } => (), done;
    /// What planning needs to know of the pool now, to be asked what would fit.
    /// [`Reply::Planner`]. Changes nothing.
    Plan => Box<Planner>, planner;
    /// Refuse new work, hand back best effort that no disk has begun, sync every writer,
    /// commit. [`Reply::Done`].
    Shutdown => (), done;
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody asks for something. `arrived` is when his program did, as far as the driver
    /// knows: what is promised of an answer counts from then.
    Request { ticket: Ticket, who: Who, op: Op, arrived: Instant },
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

/// The end of an [`Op`].
#[derive(Clone, Debug)]
pub struct Output {
    pub ticket: Ticket,
    pub result: Result<Reply, Error>,
    /// Where it is a refusal: what is left to be searched, for [`Output::complete`].
    pub search: Option<Box<RateSearch>>,
    /// What is owed of it where it is under contract, for [`Carried::add`](super::Carried::add).
    pub promise: Option<super::Promise>,
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

/// How the request of a stream, or of a volume under contract, ended, as its disk's schedule
/// saw it.
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
