//! Tokens are made, narrowed and checked.

use crate::bounds::RESTRICTIONS_MAX;
use crate::bytes::{self, Malformed};
use crate::grant::Grant;
use crate::key::{KEY_LEN, Key, finished, mac};
use crate::restriction::Restriction;
use crate::token::{Token, TooLong};
use alloc::string::String;
use alloc::vec::Vec;
use hmac::{Hmac, Mac};
use sha2::Sha256;

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
    pub(crate) fn tag_by(&self, key: &Key) -> [u8; KEY_LEN] {
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
