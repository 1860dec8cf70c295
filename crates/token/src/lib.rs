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

mod bytes;
mod grant;
mod player;
mod restriction;

pub use bytes::{Malformed, PREFIX, TEXT_MAX};
pub use grant::{Asked, Grant, Refusal};
pub use player::Player;
pub use restriction::{NAME_MAX, Names, Restriction, UNTIL_MAX, Verb, Verbs};

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Most restrictions of one token. A daemon makes at most four; each narrowing adds as many.
pub const RESTRICTIONS_MAX: usize = 32;
/// Length of a key and of a tag.
pub const KEY_LEN: usize = 32;

/// What a daemon checks its tokens with.
#[derive(Clone)]
pub struct Key([u8; KEY_LEN]);

impl Key {
    /// Of random bytes that nobody else knows.
    pub fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// A token. Whoever has it may use it: it is shown to nobody but to who asks for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    number: u64,
    uid: u32,
    restrictions: Vec<Restriction>,
    tag: [u8; KEY_LEN],
}

/// The token has as many restrictions, or is as long, as it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token has at most {RESTRICTIONS_MAX} restrictions and {TEXT_MAX} characters")
    }
}
impl core::error::Error for TooLong {}

/// An HMAC under way.
fn mac(key: &[u8; KEY_LEN]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

fn finished(mac: Hmac<Sha256>) -> [u8; KEY_LEN] {
    mac.finalize().into_bytes().into()
}

/// What the first tag is of: nothing else that has this key says the same.
fn begun(key: &Key, number: u64, uid: u32) -> Hmac<Sha256> {
    let mut mac = mac(&key.0);
    mac.update(b"slackline token 1");
    mac.update(&number.to_be_bytes());
    mac.update(&uid.to_be_bytes());
    mac
}

/// What the next tag is of.
fn narrowed(tag: &[u8; KEY_LEN], restriction: &Restriction) -> Hmac<Sha256> {
    let mut mac = mac(tag);
    mac.update(&bytes::of(restriction));
    mac
}

impl Token {
    /// A token of this number, by which its maker can revoke it, that acts as this user.
    ///
    /// # Errors
    /// With more restrictions than a token has.
    pub fn make(
        key: &Key,
        number: u64,
        uid: u32,
        restrictions: impl IntoIterator<Item = Restriction>,
    ) -> Result<Self, TooLong> {
        let tag = finished(begun(key, number, uid));
        let plain = Self { number, uid, restrictions: Vec::new(), tag };
        restrictions.into_iter().try_fold(plain, Self::narrowed)
    }

    /// The same with a restriction more. Asks nobody, and needs no key.
    ///
    /// # Errors
    /// The token is as long as it can be.
    pub fn narrowed(mut self, restriction: Restriction) -> Result<Self, TooLong> {
        self.tag = finished(narrowed(&self.tag, &restriction));
        self.restrictions.push(restriction);
        let is_short = self.restrictions.len() <= RESTRICTIONS_MAX;
        (is_short && self.fits()).then_some(self).ok_or(TooLong)
    }

    /// Its number: all that were narrowed from one have the same.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The user that it acts as.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// What it says, in the order in which that was added. Without a key nobody knows whether it
    /// is true.
    pub fn restrictions(&self) -> &[Restriction] {
        &self.restrictions
    }

    /// What it lets somebody do, where it was made with this key and nothing was taken away.
    pub fn checked(&self, key: &Key) -> Option<Grant> {
        let mut mac = begun(key, self.number, self.uid);
        for restriction in &self.restrictions {
            mac = narrowed(&finished(mac), restriction);
        }
        // Takes the same time wherever they differ.
        mac.verify_slice(&self.tag).ok()?;
        Some(Grant::new(self.number, self.uid, &self.restrictions))
    }

    /// The tag that it has where it was made with this key and nothing was taken away: a secret.
    fn tag_by(&self, key: &Key) -> [u8; KEY_LEN] {
        let mut tag = finished(begun(key, self.number, self.uid));
        for restriction in &self.restrictions {
            tag = finished(narrowed(&tag, restriction));
        }
        tag
    }

    /// Reads a token.
    ///
    /// # Errors
    /// What is none.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        bytes::parse(text)
    }

    /// The token itself: to be given to whoever is to have it, and to be kept like a password.
    pub fn reveal(&self) -> String {
        bytes::text(self)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token {{ number: {} }}", self.number)
    }
}

#[cfg(test)]
mod tests;
