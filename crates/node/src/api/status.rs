//! What can be seen of a node.
#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

use super::error::{Error, Unmoved};
use super::service::Service;
use super::words::*;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
pub use disk::BusShare;
pub use disk::online::{Observed, Staleness, Suspect, Verdict};
pub use playout::Account as StreamAccount;
pub use queue::{Account as DiskAccount, HostTime, Traffic};
use store::VolumeId;
use units::{Bytes, Duration, Instant, Rate};

/// Everything that can be seen of a node, at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub now: Instant,
    /// How the disks are scheduled.
    pub policy: Policy,
    /// The pool keeps that it was chosen, with these settings.
    pub policy_kept: bool,
    /// Contracts are admitted by an analysis that the policy keeps.
    pub promised: bool,
    pub disks: Vec<DiskStatus>,
    pub volumes: Vec<VolumeStatus>,
    pub streams: Vec<StreamStatus>,
    pub memory: MemoryStatus,
    /// Set once a metadata write has failed.
    pub read_only: bool,
    /// Set while nothing is given up for its age, since the clock may be wrong.
    pub clock_doubt: Option<ClockDoubt>,
    /// By how much deadlines are advanced for what the driver takes to deliver answers.
    pub delivery: Duration,
    /// Why a longer time that was measured is not counted, if so.
    pub delivery_refused: Option<Box<Error>>,
}

/// The clock may be wrong: nothing is given up for its age as long as that is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockDoubt {
    /// How far it lies ahead of where it was seen last.
    pub ahead: Duration,
    /// From when on it is believed, if it stands.
    pub until: Instant,
}

/// The room for volumes on all disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    pub total: Bytes,
    pub free: Bytes,
    /// How many there are.
    pub volumes: u64,
    /// How many more there is room for at the least ([`Store::volumes_room`](store::Store::volumes_room)).
    pub volumes_free: u64,
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
    /// With what is late of requests that the disk has begun with and not ended.
    pub account: DiskAccount,
    /// The command that it has had for longest; none where it has none.
    pub oldest: Option<OldestCommand>,
    /// Of the commands that failed, those for which the host had no room or no memory: no fault of the
    /// medium.
    pub host_errors: u64,
    /// What the disk did, held against its profile.
    pub observed: Observed,
    /// What became of the data in its suspect extents.
    pub moves: MoveStatus,
    /// What measuring it again came to, if it was.
    pub measured: Option<Measured>,
    /// Another profile is stored, which is used when the pool is opened again.
    pub profile_for_next_start: bool,
    /// The bus that it shares with other disks, by its profile.
    pub bus: Option<BusShare>,
    /// What the host took between commands, and what is charged for it.
    pub gaps: HostTime,
    /// Why a longer gap that was measured is not charged, if so.
    pub gap_refused: Option<Box<Error>>,
    /// The longest command of streams and best effort, where a contract of answers in time has
    /// them served in chunks.
    pub chunk: Option<Bytes>,
    /// Requests that may be late now and then, since the pool was opened.
    pub odds: OddsStatus,
}

/// The command that a disk has had for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldestCommand {
    /// Since it was given to the disk.
    pub age: Duration,
    /// What it takes at the most by the profile.
    pub bound: Duration,
}

/// What came of requests that may be late now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OddsStatus {
    pub requests: u64,
    pub late: u64,
    /// What is not as it was said, by a test that is wrong once in 10^9 times.
    pub broken: Option<BrokenOdds>,
}

/// What the metadata log has to write on each disk with a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// What the log's contracts for writes hold.
    pub contract: Bytes,
    /// Extents that the writers that are open may come to between two commits.
    pub extents: u64,
    /// The longest record that there can be: of the writers that are open, of best effort that
    /// writes to up to [`RECORD_EXTENTS`](crate::limits::RECORD_EXTENTS) extents for the first
    /// time, and of [`RECORD_CHANGES`](crate::limits::RECORD_CHANGES) bytes of other changes.
    pub record_max: Bytes,
    /// The longest that was made since the pool was opened.
    pub record_longest: Bytes,
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

/// One volume at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeStatus {
    /// Never again another volume's, and no other name changes it.
    pub id: VolumeId,
    pub name: String,
    pub ownership: Ownership,
    /// Space reserved.
    pub size: Bytes,
    /// What it has of its disks: of a volume that is not thin its size.
    pub taken: Bytes,
    /// End of the recorded data.
    pub length: Bytes,
    /// Where what a ring holds begins; none of what is no ring.
    pub start: Option<Bytes>,
    /// How old a ring lets become what it has; none where it keeps that as long as there is room.
    pub keep: Option<Duration>,
    /// What a ring gives up of its size ahead of the stream that records to it, at the most; none
    /// where none does.
    pub ahead: Option<Bytes>,
    /// None of a volume that nobody has used since volumes have times.
    pub times: Option<Times>,
    /// When the recording begins, ends, and by how much what is told of it may be off, in
    /// nanoseconds since 1970; none where nothing is known of it.
    pub recorded: Option<(i64, i64, i64)>,
    pub changes: Changes,
    pub placement: Placement,
    /// Extents on each disk of the pool.
    pub extents: Vec<u64>,
    /// How these lie.
    pub stretches: Stretches,
    pub streams: u64,
    /// How reads and writes without a stream are served.
    pub service: Service,
    /// The user who gave the volume its service; none where that is the default.
    pub given_by: Option<u32>,
    /// The service that the volume was given and does not have.
    pub kept_out: Option<KeptOut>,
    pub account: ServiceAccount,
    /// What the service has of each disk's time, in parts per million; empty where it is
    /// no contract.
    pub shares: Vec<(DiskIndex, u64)>,
    /// Operations for which memory is set aside, and that memory; nothing where the service
    /// is no contract.
    pub operations: u64,
    pub memory: Bytes,
    /// What has this memory, where operations wait for it that are within the contract's length,
    /// and none has come back for long.
    pub memory_held: Option<MemoryHeld>,
    /// Bytes that its readers had from memory in place of a disk, since the pool was opened.
    pub from_memory: Bytes,
    /// Handles on it that have contracts of their own.
    pub handles: Vec<HandleStatus>,
    /// What the service's contract says is promised; false where it is none, too.
    pub promised: bool,
}

impl VolumeStatus {
    /// Where its space ends, as it is now: of a ring it goes on.
    pub fn end(&self) -> Bytes {
        self.start.unwrap_or_default() + self.size
    }
}

/// A disk that does not end the operations of a contract, for whose memory others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHeld {
    pub disk: DiskIndex,
    /// Operations that are under way there,
    pub with_disk: u64,
    /// of so many for which there is memory.
    pub operations: u64,
}

/// A handle that has a contract of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandleStatus {
    pub handle: HandleId,
    /// The user who has it.
    pub uid: u32,
    pub service: Service,
    pub account: ServiceAccount,
    /// As a volume's.
    pub shares: Vec<(DiskIndex, u64)>,
    pub operations: u64,
    pub memory: Bytes,
}

/// A service that a volume was given and that does not fit any more: the volume is served as
/// by default. It is tried again when something was given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptOut {
    pub service: Service,
    /// Why it did not fit when it was tried last.
    pub why: Box<Error>,
}

/// Requests of a volume under its service's contract, since it got one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ServiceAccount {
    pub requests: u64,
    /// Requests answered after their time, and by how much at the most.
    pub late_requests: u64,
    pub late_max: Duration,
    /// The longest of them: of answers in time from the program's call until it has the answer, of
    /// a rate from when the budget let the request in.
    pub latency_max: Duration,
    /// Of those that were late: in time when they were handed out, and late at their programs.
    pub late_carried: u64,
    /// The longest time from when an answer was handed out until its program had it.
    pub carried_max: Duration,
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
    /// Writers: the volume offset up to which everything is on the medium.
    pub durable: Bytes,
    pub account: StreamAccount,
    pub open_since: Instant,
    /// What its contract has of each disk's time, in parts per million.
    pub shares: Vec<(DiskIndex, u64)>,
    /// What its contract says is promised.
    pub promised: bool,
    /// Its requests may be late with at most this probability.
    pub miss: Option<Chance>,
}

/// The arena's use at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MemoryStatus {
    pub total: Bytes,
    pub windows: Bytes,
    /// Memory of windows in regions, beside the total.
    pub regions: Bytes,
    /// Set aside for volumes under contract.
    pub services: Bytes,
    pub best_effort: Bytes,
    pub free: Bytes,
    /// Of what is free: what holds blocks for readers that come behind others.
    pub kept: Bytes,
    /// Bytes that readers had from there in place of a disk, since the pool was opened.
    pub from_memory: Bytes,
}
