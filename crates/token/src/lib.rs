//! Tokens: who has one may do what its maker may, and no more than it says.
//!
//! A token is a *macaroon* (Birgisson et al., NDSS 2014, section V): a number and a user, then
//! restrictions, then a tag. The tag of the number and the user is an HMAC-SHA-256 under the
//! daemon's key; with each restriction it becomes the HMAC of that restriction under the tag
//! before. So whoever has a token can add a restriction without asking anybody, and nobody can
//! take one away. All restrictions hold at once.
//!
//! One job: make, narrow, read, write and check them. Nothing here knows a clock, a file or a
//! source of random numbers.
//!
//! Invariants: a token has one spelling; what is read and written again is the same; a check
//! takes a time that the token's length bounds, and has no limit of time of its own, so that a
//! busy processor refuses nobody; no error and no `Debug` shows a key or a tag.
#![no_std]

extern crate alloc;

mod bounds;
mod bytes;
mod grant;
mod key;
mod making;
mod player;
mod restriction;
mod token;

pub use bounds::{PREFIX, RESTRICTIONS_MAX, TEXT_MAX};
pub use bytes::Malformed;
pub use grant::{Asked, Grant, Refusal};
pub use key::{KEY_LEN, Key};
pub use player::Player;
pub use restriction::{NAME_MAX, Names, Restriction, UNTIL_MAX, Verb, Verbs};
pub use token::{Token, TooLong};

#[cfg(test)]
mod tests;
