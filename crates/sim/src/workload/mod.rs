//! What programs ask of disks over time: synthetic and recorded.
//!
//! One job: make [`Demand`]s, one after the other, in the order of their times. A
//! [`Source`] makes them when it is asked for the next one, so that a load of a day
//! needs no more memory than a load of a second; it knows no clock and no disk, and
//! the same seed or the same file gives the same demands everywhere. Sources come
//! from the generators here and from the recorded loads of [`crate::traces`].
//!
//! Invariants of every source: times never go back; every demand moves at least one
//! sector and a whole number of sectors.

pub mod cello;
mod combine;
mod fit;
pub mod movie;
pub mod people;
pub mod statistics;

pub use combine::{First, Merge, first_demands, merge};
pub use fit::{Fit, fit};

use units::{Access, Duration};

/// One request of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// When it is made, since the begin of the load.
    pub at: Duration,
    /// Which of the load's disks it is for, from 0; whoever plays the load says which
    /// real or simulated disk that is.
    pub disk: u32,
    /// What it moves.
    pub access: Access,
    /// Somebody waits for it.
    pub synchronous: bool,
}

/// Demands in the order of their times, made one by one.
pub trait Source: Iterator<Item = Demand> + Send {
    /// Why there are no more, where that is not the load's own end: after the last
    /// demand of a trace that cannot be read to its end.
    fn error(&self) -> Option<&crate::traces::error::Error> {
        None
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn error(&self) -> Option<&crate::traces::error::Error> {
        (**self).error()
    }
}

/// Demands that somebody has in memory already.
impl Source for std::vec::IntoIter<Demand> {}
