//! The protocols of Slackline: bytes in, messages out. No sockets, no clock.
//!
//! Three protocols, on three sockets:
//!
//! * **control**: HTTP with JSON. [`control`] has the messages, [`Problem`] is
//!   every bad answer, [`Code`] names what went wrong.
//! * **data**: binary [`frame`]s. A connection is tied by its first frame to one
//!   stream, or to one volume for best effort; the bytes travel outside JSON.
//! * **block devices**: [`nbd`], which other programs speak, too.
//!
//! Invariants: no input makes this crate panic; no frame and no buffer is larger
//! than [`frame::BODY_MAX`] and a head; a field that a frame does not use is
//! zero, so that it can be given a meaning later.

mod code;
pub mod control;
pub mod frame;
pub mod nbd;
mod quantity;
pub mod socket;

pub use code::Code;
pub use control::{Problem, Refusal};
