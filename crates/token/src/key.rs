//! What a daemon checks its tokens with, and the tags that are made with it.

use core::fmt;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Length of a key and of a tag.
pub const KEY_LEN: usize = 32;

/// What a daemon checks its tokens with.
#[derive(Clone)]
pub struct Key(pub(crate) [u8; KEY_LEN]);

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

/// An HMAC under way.
pub(crate) fn mac(key: &[u8; KEY_LEN]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// Its tag.
pub(crate) fn finished(mac: Hmac<Sha256>) -> [u8; KEY_LEN] {
    mac.finalize().into_bytes().into()
}
