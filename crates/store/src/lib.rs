//! Where bytes live: pools, volumes, extents, the metadata log and its recovery.
//!
//! One job: say which byte of which disk holds which byte of which volume, and
//! never forget it once it was acknowledged. Everything here is a state machine
//! that asks for reads, writes and flushes ([`Io`]) and is told of their end;
//! nothing here does I/O, knows a clock, or draws a number at random.
//!
//! * [`Formatting`] makes a pool.
//! * [`Opening`] recovers it and gives a [`Store`].
//! * [`Store`] is an open pool: volumes are made, resized and removed, and
//!   commits make that durable.
//! * [`Checking`] reads everything, writes nothing and names every damage.
//!
//! The format is described in docs/on-disk-format.md, the order of writes and
//! what it survives in docs/crash-safety.md.
#![no_std]

extern crate alloc;

mod api;
mod arrivals;
mod blocks;
mod building;
mod change;
mod checking;
mod counting;
mod described;
mod error;
mod facts;
mod fits;
mod format;
mod formatting;
mod frontier;
mod geometry;
mod giving_up;
mod holdings;
mod label;
mod lag;
mod layout;
mod log;
mod moved;
mod moving;
mod names;
mod naming;
mod numbered;
mod opening;
mod owner;
mod policy;
mod progress;
mod reads;
mod record;
mod recorded;
mod recording;
mod replaying;
mod ring;
mod runs;
mod service;
mod serving;
mod sizes;
mod state;
mod stepped;
mod steps;
mod store;
mod structure;
mod survey;
mod thin;
mod verdict;
mod volume;
mod written;

pub use api::{
    BLOCK, CommitId, CountedBy, Disk, DiskIndex, EXTENT, Found, Holding, IO_MAX, Id, Io, IoError,
    IoId, IoKind, KeptPolicy, Lag, Location, NewDisk, NewPool, Ownership, Placement, Pool, RUN_MAX,
    SUSPECTS_MAX, Service, ServiceKind, ServicePriority, Space, Suspect, Times, VolumeId, Zone,
};
pub use blocks::Blocks;
pub use checking::{Checking, Finding, Report, Severity};
pub use error::{Damage, Fits, FormatError, OpenError, StoreError};
pub use format::{TABLES, VERSION};
pub use formatting::Formatting;
pub use geometry::{DISKS_MAX, PROFILE_MAX, last_label};
pub use giving_up::keep_seconds;
pub use layout::{Field, Table};
pub use moving::OwnersSought;
pub use names::{REMOVED_DIRECTORY, REMOVED_NAME_MAX, VOLUME_NAME_MAX};
pub use numbered::{Number, Numbered};
pub use opening::{Opened, Opening};
pub use record::RecordContent;
pub use recorded::{Moment, Recorded};
pub use replaying::{Replaying, label_again};
pub use ring::{RING_GRAIN, RING_MIN, ring_size};
pub use stepped::CLOCKS_FROM;
pub use store::Store;
pub use structure::{MAGICS, Problem};
pub use thin::{Settled, stretch_of};
pub use volume::{Stretches, Volume};
pub use written::Written;
