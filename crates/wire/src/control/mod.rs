//! The control messages: what travels as JSON over HTTP.
//!
//! Invariants: a quantity is an integer whose unit ends the field's name; a
//! request with a field that is not known is refused, so that a misspelt field
//! is not silently ignored; every bad answer is a [`Problem`].

mod disks;
mod events;
mod files;
mod naming;
mod odds;
mod overview;
mod owner;
mod plan;
mod policy;
mod problem;
mod quotas;
mod recorded;
mod service;
mod tokens;

pub use disks::*;
pub use events::*;
pub use files::*;
pub use naming::*;
pub use odds::*;
pub use overview::*;
pub use owner::*;
pub use plan::*;
pub use policy::*;
pub use problem::*;
pub use quotas::*;
pub use recorded::*;
pub use service::*;
pub use tokens::*;

use crate::quantity;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use units::{Bytes, Duration, Rate};

/// The version of this interface: the first part of every path.
pub const VERSION: &str = "v1";
/// The media type of a [`Problem`].
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// What a program asks of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(examples(json!({
    "rate_bytes_per_second": 1_000_000, "block_bytes": 262_144, "burst_bytes": 262_144,
}))))]
pub struct Contract {
    /// Bytes per second, sustained.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub rate_bytes_per_second: Rate,
    /// What the stream transfers at a time: a power of two from 4 KiB to 32 MiB.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub block_bytes: Bytes,
    /// How far the program may run past its playout point at once.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub burst_bytes: Bytes,
}

/// Which way a stream moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// From the volume to the program.
    Read,
    /// From the program to the volume.
    Write,
    /// Both: what the volume holds is in the window, which is shared, before the program comes
    /// to it, and is written as the program leaves it.
    Update,
}

/// A part of every disk. On a hard disk the outer tracks are the faster ones.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    /// The first free place.
    #[default]
    Any,
    /// The outer half only.
    Outer,
    /// The inner half only.
    Inner,
}

/// Where a volume's extents go.
#[derive(Clone, Default, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// Numbers of the disks to rotate over, in this order; empty means all.
    #[serde(default)]
    pub disks: Vec<u16>,
    /// Which part of each disk.
    #[serde(default)]
    pub zone: Zone,
    /// So much lies on one disk before the next disk's turn comes, in one piece where there is
    /// room for that: a power of two from 1 MiB to 16 MiB. 0 is 1 MiB. A block of a stream on
    /// several disks is no longer than this.
    #[serde(default, with = "quantity", skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub run_bytes: Bytes,
    /// It takes its extents when they are written: its size is a limit, nothing is reserved, and a
    /// write may find no space.
    #[serde(default, skip_serializing_if = "is_false")]
    pub thin: bool,
}

fn is_false(said: &bool) -> bool {
    !said
}

/// What is not said, so that an older daemon is asked for nothing that it does not know.
fn is_zero(bytes: &Bytes) -> bool {
    bytes.is_zero()
}

/// Asks for a new volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(examples(json!({
    "name": "video", "size_bytes": 1_073_741_824, "placement": { "disks": [0, 1], "zone": "outer" },
}))))]
pub struct VolumeCreate {
    /// 1 to 255 bytes of any characters but control ones. With slashes in it, it lies under
    /// directories.
    pub name: String,
    /// What it stands for.
    #[serde(default, skip_serializing_if = "FileKind::is_default")]
    pub kind: FileKind,
    /// Space to reserve.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub size_bytes: Bytes,
    /// Where it goes.
    #[serde(default)]
    pub placement: Placement,
    /// Whose it is, where not its maker's.
    #[serde(default, skip_serializing_if = "Access::is_default")]
    pub access: Access,
    /// It gives up its oldest bytes for what is recorded next, so that it is never full: offsets
    /// only grow, and it is recorded to by streams alone, at its end. Its size is rounded up to
    /// 16 MiB, or to more on several disks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ring: bool,
    /// Of a ring: what was recorded so long ago is given up, also where there is room for it; from a
    /// second to 36 years.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub keep_ns: Option<Duration>,
}

/// Says for how long a ring keeps what is recorded, from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct VolumeKeep {
    /// What was recorded so long ago is given up, also where there is room for it; from a second to
    /// 36 years. Without: nothing is given up for its age.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub keep_ns: Option<Duration>,
}

/// What a ring holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Ring {
    /// The offset that it begins at: all before it were given up. It ends where the recorded data
    /// does.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub start_bytes: Bytes,
    /// How many bytes that are.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub held_bytes: Bytes,
    /// What was recorded so long ago is given up, also where there is room for it; none where it is
    /// kept as long as there is room.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub keep_ns: Option<Duration>,
    /// While a stream records to it: it gives up so much of its size ahead of that, at the most, and
    /// holds the rest when it is full.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub ahead_bytes: Option<Bytes>,
}

impl VolumeCreate {
    /// A volume of the asker's on all disks.
    pub fn new(name: impl Into<String>, size: Bytes) -> Self {
        Self {
            name: name.into(),
            kind: FileKind::Volume,
            size_bytes: size,
            placement: Placement::default(),
            access: Access::default(),
            ring: false,
            keep_ns: None,
        }
    }
}

/// A volume as one of its writers knew it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct UnlessChanged {
    /// The writer: his own changes do not count.
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub writer: NonZeroU64,
    /// What a file's facts (`POST /v1/file`) said of the volume to this writer.
    pub version: String,
}

/// Asks for another size of a volume, also while it is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct VolumeResize {
    /// Space to reserve from now on.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub size_bytes: Bytes,
    /// Recorded data beyond that size may be lost; otherwise it is refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_cut: bool,
    /// All space stays reserved: recorded data beyond that size is lost, and nothing else changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_space: bool,
    /// With `keep_space`: only where nobody else has changed the volume since. Otherwise, or where no more
    /// is recorded, nothing changes, and that is no error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless_changed: Option<UnlessChanged>,
    /// At least this size: a volume that is as large already stays as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grow_only: bool,
    /// With `grow_only`: so much more where there is room for it, ahead of who writes the volume.
    #[serde(default, with = "quantity", skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub ahead_bytes: Bytes,
    /// Gives back what was reserved ahead by one who has made the volume so large: it gets the size that
    /// is asked for, or as much more as others have asked for since, and no recorded data is lost.
    #[serde(default, with = "quantity::option", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub given_back_from_bytes: Option<Bytes>,
    /// What is recorded reaches at least to here then: what was never written reads as zeros.
    #[serde(default, with = "quantity", skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub length_bytes: Bytes,
}

/// One volume at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Volume {
    /// Its number, which never changes and is never another volume's.
    #[serde(default)]
    pub number: u64,
    /// Its name.
    pub name: String,
    /// What it stands for.
    #[serde(default, skip_serializing_if = "FileKind::is_default")]
    pub kind: FileKind,
    /// When it was last used; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// When its bytes were recorded, as far as streams recorded them; none where that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// Whose it is.
    pub owner: Owner,
    /// Space reserved; of a thin volume the most that it may come to have.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub size_bytes: Bytes,
    /// What it has of its disks, of a thin volume; none of others, which have their size.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub taken_bytes: Option<Bytes>,
    /// End of the recorded data.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub length_bytes: Bytes,
    /// What it holds of the recorded data, where it is a ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<Ring>,
    /// Where its extents go.
    pub placement: Placement,
    /// Extents of 1 MiB that it has on each disk of the pool; of a thin volume, those that it has taken.
    pub extents: Vec<u64>,
    /// Into how many runs of neighbouring extents they fall. A block of a stream that lies in
    /// several takes a disk more time.
    #[serde(default)]
    pub runs: u64,
    /// The shortest of these.
    #[serde(default, with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub shortest_run_bytes: Bytes,
    /// Streams open on it.
    pub streams: u64,
    /// Bytes that its readers had from memory in place of a disk, since the pool was opened.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub from_memory_bytes: Bytes,
    /// How reads and writes without a stream are served.
    pub service: Service,
    /// The user who gave the volume the service that is kept with it; none where that is the
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_user: Option<String>,
    /// The service that the volume was given, where it does not fit any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_out: Option<KeptOut>,
    /// Connections on it that have contracts of their own.
    #[serde(default)]
    pub handles: Vec<Handle>,
    /// What became of those under a contract.
    pub account: ServiceAccount,
    /// False where the service's contract is no promise: it was not admitted, or the policy
    /// of the pool keeps none. True where the service is no contract.
    #[serde(default = "promised")]
    pub promised: bool,
}

impl Volume {
    /// What asks for this very volume wherever a name does, whatever it is called by then.
    pub fn by_number(&self) -> String {
        format!("/{}", self.number)
    }

    /// What it has of what was recorded: a ring has given up the rest.
    pub fn held(&self) -> Bytes {
        self.ring.as_ref().map_or(self.length_bytes, |ring| ring.held_bytes)
    }
}

/// What is said of contracts by a daemon that says nothing else.
fn promised() -> bool {
    true
}

/// All volumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Volumes {
    /// In the order of their names.
    pub volumes: Vec<Volume>,
}

/// Asks for a stream under contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(examples(json!({
    "volume": "video", "mode": "write", "start_bytes": 0, "contract": {
        "rate_bytes_per_second": 1_000_000, "block_bytes": 262_144, "burst_bytes": 262_144,
    },
}))))]
pub struct StreamOpen {
    /// The name of the volume.
    pub volume: String,
    /// Which way.
    pub mode: Mode,
    /// What is asked.
    pub contract: Contract,
    /// The playout point to start from: a volume offset. Left out: a reader begins where what the
    /// volume holds begins, which of a ring is no fixed place, and a writer at 0.
    #[serde(default, with = "quantity::option", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub start_bytes: Option<Bytes>,
    /// The program can map its window. It may be carried over the socket all the same.
    #[serde(default)]
    pub shared_window: bool,
    /// A reader has what is there as soon as it is, before the contract holds in full: what
    /// answers then says from when on it does. Without this the first bytes come when it does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early: bool,
    /// Each of its requests may be late with a probability of so many parts in a billion, at most
    /// 100,000,000, which admission then counts with; without this none may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss_per_billion: Option<u64>,
    /// The program holds its bytes until they are taken: while it is slowed to its rate it loses none, and
    /// nobody has to hear of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub buffered: bool,
    /// The program makes the volume larger ahead of what it writes, up to this; 0 where it does not.
    #[serde(default, with = "quantity", skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub grows_to_bytes: Bytes,
}

/// Asks which block suits a stream on a volume, for a program that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BlockAsk {
    /// Which way the stream would go.
    pub mode: Mode,
    /// Bytes per second, sustained.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub rate_bytes_per_second: Rate,
}

/// The block that suits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BlockChosen {
    /// A power of two from 4 KiB to 16 MiB.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub block_bytes: Bytes,
}

/// The contract is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StreamOpened {
    /// The number of the stream, for the first frame on the data socket.
    pub id: u64,
    /// Memory of the playout window.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub window_bytes: Bytes,
    /// The path of the data socket.
    pub data_socket: String,
    /// The stream is closed unless a data connection asks for it within this time.
    pub attach_within_ms: u64,
    /// The window is memory that the program maps: the first frame is `HelloWindow`.
    /// Otherwise it is `HelloStream`.
    #[serde(default)]
    pub shared_window: bool,
    /// Of a reader that begins early: when it has its first bytes, and its whole contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<StreamBegins>,
}

/// Where a reader is that begins early, both counted from the daemon's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StreamBegins {
    /// Until the first bytes are there, at the most; most often it is much sooner.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub ready_ns: Duration,
    /// From when on the contract holds in full. Before that the program has its burst once, when
    /// it is there, and nothing on top.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub steady_ns: Duration,
}

/// Asks for another contract of an open stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct StreamChange {
    /// What is asked from now on, in the same blocks.
    pub contract: Contract,
}

/// A stream was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StreamClosed {
    /// Its number.
    pub id: u64,
    /// Writers: everything before this volume offset is on the medium.
    #[serde(with = "quantity::option", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub durable_bytes: Option<Bytes>,
}

/// One stream at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Stream {
    /// Its number.
    pub id: u64,
    /// The volume that it is open on.
    pub volume: String,
    /// Which way.
    pub mode: Mode,
    /// What was asked and promised.
    pub contract: Contract,
    /// False where it is no promise: it was not admitted, or the policy of the pool keeps
    /// none.
    #[serde(default = "promised")]
    pub promised: bool,
    /// Each of its requests may be late with a probability of so many parts in a billion; left
    /// out where none may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss_per_billion: Option<u64>,
    /// Its program loses nothing while it is slowed to its rate, as it said when it was opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub buffered: bool,
    /// Its program makes the volume larger ahead of what it writes, up to this, as it said then.
    #[serde(default, with = "quantity", skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub grows_to_bytes: Bytes,
    /// Whose program opened it: a name, or a number where there is none.
    #[serde(default)]
    pub user: String,
    /// True while a data connection carries its bytes.
    pub attached: bool,
    /// Memory of the playout window.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub window_bytes: Bytes,
    /// The playout point: a volume offset.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub position_bytes: Bytes,
    /// Bytes that the program has moved.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub moved_bytes: Bytes,
    /// Writers: everything before this volume offset is on the medium.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub durable_bytes: Bytes,
    /// Disk requests done.
    pub requests: u64,
    /// Disk requests done after their deadline, and answers that reached the program too late.
    pub late_requests: u64,
    /// The latest of them, after its deadline.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub late_max_ns: Duration,
    /// Times that the program, within its rate, found the window not ready.
    pub underruns: u64,
    /// Times that the program was slowed to its rate.
    pub throttled: u64,
    /// Bytes that a reader or a writer moved beyond its rate, because the disks kept up.
    #[serde(default, with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub excess_bytes: Bytes,
    /// Bytes given up as declared gaps.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub gap_bytes: Bytes,
    /// Of these, what the ring had given up before the reader came there; the rest a disk did not
    /// give, or not in time.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub overtaken_bytes: Bytes,
    /// Bytes of blocks that no disk was asked for: another stream had just read or written them.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub from_memory_bytes: Bytes,
    /// Longest time from the release of a request to its completion.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub latency_max_ns: Duration,
    /// Time since the stream was opened.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub open_ns: Duration,
}

impl Stream {
    /// Bytes that a disk did not give, or not in time.
    pub fn lost(&self) -> Bytes {
        self.gap_bytes.saturating_sub(self.overtaken_bytes)
    }
}

/// All streams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Streams {
    /// In the order in which they were opened.
    pub streams: Vec<Stream>,
}

/// Use of the memory for windows and transfers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Memory {
    /// All of it.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub total_bytes: Bytes,
    /// In playout windows, and set aside for volumes under contract.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub window_bytes: Bytes,
    /// In playout windows that programs share with the daemon: beside all of it, and counted
    /// against what windows may have.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub shared_window_bytes: Bytes,
    /// In best-effort transfers.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub best_effort_bytes: Bytes,
    /// Neither.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub free_bytes: Bytes,
    /// Of what is free, in use until somebody needs it: what was read or written lately and
    /// readers behind will ask for.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub kept_bytes: Bytes,
    /// What readers had from there in place of a disk, since the pool was opened.
    #[serde(with = "quantity", default)]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub from_memory_bytes: Bytes,
}

/// How late the host was since the pool was opened; none of it is the disks' doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Lateness {
    /// How often it was measured.
    pub count: u64,
    /// Half of the times it was at most this.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub p50_ns: Duration,
    /// 999 times in 1,000 it was at most this.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub p999_ns: Duration,
    /// The worst.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub max_ns: Duration,
}

/// Everything that can be seen of the daemon and its pool at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Status {
    /// The name of the pool.
    pub pool: String,
    /// The version of the daemon.
    pub version: String,
    /// The scheduling policy of the disks.
    pub policy: String,
    /// Time since the daemon opened the pool.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub up_ns: Duration,
    /// The wall clock of the daemon's machine, in nanoseconds since 1970; 0 where it is not told.
    #[serde(default)]
    pub time_ns: i64,
    /// Set while rings give up nothing for its age, since that clock may be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_doubt: Option<ClockDoubt>,
    /// True once a metadata write has failed.
    pub read_only: bool,
    /// The pool's disks, in the order of their numbers.
    pub disks: Vec<Disk>,
    /// All volumes, in the order of their names.
    pub volumes: Vec<Volume>,
    /// All streams, in the order in which they were opened.
    pub streams: Vec<Stream>,
    /// Use of memory.
    pub memory: Memory,
    /// How late the host woke the disks' threads.
    pub host_wakeups: Lateness,
    /// How late the host noticed the ends of commands on emulated disks.
    pub host_completions: Lateness,
    /// What answers under contract take from when the pool hands them out until they are in the
    /// socket or the window of their program: measured, and counted with every contract.
    #[serde(default)]
    pub delivery: HostTime,
    /// The threads that carry them have real-time priority.
    #[serde(default)]
    pub delivery_realtime: bool,
    /// What the daemon could not get from the host (locked memory, real-time
    /// priority), and what to do about it.
    pub warnings: Vec<String>,
}

/// The field of a request that says which pool it is about, by [`Health::pool_id`]: a daemon that serves
/// another one refuses it.
pub const POOL_FIELD: &str = "slackline-pool";
/// The field of each answer that says which run of the daemon gave it, as [`Health::run`].
pub const RUN_FIELD: &str = "slackline-run";

/// The daemon answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Health {
    /// `ok`, or `read_only` once a metadata write has failed.
    pub status: String,
    /// The name of the pool.
    pub pool: String,
    /// The identity of the pool, in hexadecimal: no other has it. Empty: the daemon does not say.
    #[serde(default)]
    pub pool_id: String,
    /// The version of the daemon.
    pub version: String,
    /// Another number each time that the daemon starts: what was written and not made durable
    /// under another number may be lost.
    #[serde(default)]
    pub run: u64,
    /// Room for extents on all disks.
    #[serde(default, with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub capacity_bytes: Bytes,
    /// What of it no volume has reserved.
    #[serde(default, with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub free_bytes: Bytes,
    /// How many volumes there are.
    #[serde(default)]
    pub volumes: u64,
    /// How many more there is room for at the least: each with a name of up to 64 bytes and 1 MiB.
    /// There may be room for more that are empty.
    #[serde(default)]
    pub volumes_free: u64,
}
