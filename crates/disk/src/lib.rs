//! What a disk costs: drive models, and profiles that predict.
//!
//! One job: say how long a command takes. A [`Model`] describes a drive that
//! somebody built; [`HardDisk`] serves commands as that drive would, exactly and
//! repeatably. A [`Profile`] is what is known of a disk from the outside: bounds
//! that hold for every command, for admission and for prediction. Both are data
//! files (TOML) with the source of their numbers in them.
//!
//! Everything is integer arithmetic; nothing here knows a clock.
#![no_std]

extern crate alloc;

mod arm;
mod bus;
mod bus_share;
mod emulated;
mod error;
mod flash;
mod geometry;
mod hard_disk;
mod head;
mod linear;
mod mechanics;
mod model;
pub mod online;
mod predict;
mod profile;
pub mod profiler;
mod queue;
mod random;
pub mod raw;
mod remainders;
mod seek;
mod segments;
mod spread;
mod text;

pub use bus::Bus;
pub use bus_share::{BusOrder, BusPlan, BusShare, LARGEST, check_buses};
pub use emulated::Emulated;
pub use error::Error;
pub use flash::Flash;
pub use hard_disk::HardDisk;
pub use head::Head;
pub use linear::Line;
pub use mechanics::Mechanics;
pub use model::{FlashModel, Model};
pub use profile::{HardDiskProfile, Kind, LinearProfile, LongAccess, Profile, Sweep, ZoneProfile};
pub use queue::CommandQueue;
pub use remainders::{ReadPlan, TrackRemainders, Tracks};
pub use seek::SeekCurve;
pub use spread::{Cost, Spread};
pub use text::{exact_duration, exact_rate, exact_size};

use units::{Command, Duration, Instant};

/// Something that serves commands one at a time, each in a known time.
///
/// Every drive model implements this, so that the simulator and the emulated
/// disk take any of them.
pub trait Drive {
    /// The time from `start`, when the drive begins with `command`, to its end.
    /// Calls come in order of `start`, no call before the end of the last.
    fn serve(&mut self, start: Instant, command: &Command) -> Duration;
}
