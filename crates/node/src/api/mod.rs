//! What crosses the seam between a [`Node`](crate::Node) and whoever drives it.

mod answers;
mod disk;
mod error;
mod holder;
mod ops;
mod promise;
mod reply;
mod service;
mod status;
mod texts;
mod who;
mod words;

pub use answers::{Opened, Playout, Ready};
pub use disk::*;
pub use error::*;
pub(crate) use holder::Holder;
pub use ops::*;
pub use promise::{AccountOf, Carried, Promise};
pub(crate) use promise::{UnderContract, carry};
pub use reply::Reply;
pub use service::*;
pub use status::*;
pub use who::*;
pub use words::*;
