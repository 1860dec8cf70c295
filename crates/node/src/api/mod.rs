//! What crosses the seam between a [`Node`](crate::Node) and whoever drives it.

mod disk;
mod error;
mod ops;
mod promise;
mod service;
mod status;
mod texts;
mod who;
mod words;

pub use disk::*;
pub use error::*;
pub use ops::*;
pub use promise::{AccountOf, Carried, Promise};
pub(crate) use promise::{UnderContract, carry};
pub use service::*;
pub use status::*;
pub use who::*;
pub use words::*;
