//! What a player shows in place of a token: good for bytes of what the token lets its holder read,
//! until a second of its own, and never a token again.
//!
//! Its tag is the HMAC of a word and that second under the token's: whoever has the token makes one
//! and asks nobody, and nobody comes back from it to the token. What the word begins with is no
//! kind of a restriction, so that no restriction's tag is a player's.

use crate::bytes::Malformed;
use crate::grant::Grant;
use crate::key::{KEY_LEN, Key, finished, mac};
use crate::token::Token;
use alloc::string::String;
use core::fmt::{self, Write};

/// What the tag is of, before the second.
const WORD: &[u8] = b"slackline player 1";

/// See the module.
#[derive(Clone, PartialEq, Eq)]
pub struct Player {
    /// With the player's tag: no key finds it good.
    token: Token,
    until: u64,
}

fn tag(of: &[u8; KEY_LEN], until: u64) -> hmac::Hmac<sha2::Sha256> {
    let mut mac = mac(of);
    hmac::Mac::update(&mut mac, WORD);
    hmac::Mac::update(&mut mac, &until.to_be_bytes());
    mac
}

impl Token {
    /// What a player shows of this token until a second since 1970.
    pub fn player(mut self, until: u64) -> Player {
        self.tag = finished(tag(&self.tag, until));
        Player { token: self, until }
    }
}

impl Player {
    /// Reads what a player shows.
    ///
    /// # Errors
    /// What is none.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let (until, token) = text.split_once('.').ok_or(Malformed)?;
        let number: u64 = until.parse().map_err(|_| Malformed)?;
        let player = Self { token: Token::parse(token)?, until: number };
        // One spelling: no `+7` and no `07`.
        (player.reveal() == text).then_some(player).ok_or(Malformed)
    }

    /// The text itself, of characters that need no quotes in a cookie.
    pub fn reveal(&self) -> String {
        let mut text = String::new();
        // A string takes whatever is written.
        let _ = write!(text, "{}.{}", self.until, self.token.reveal());
        text
    }

    /// The second from which on nothing begins with it.
    pub fn until(&self) -> u64 {
        self.until
    }

    /// What the token lets its holder do that this was made of, where it was made with this key.
    /// Whether it is over is asked apart.
    pub fn checked(&self, key: &Key) -> Option<Grant> {
        let made = self.token.tag_by(key);
        // Takes the same time wherever they differ.
        hmac::Mac::verify_slice(tag(&made, self.until), &self.token.tag).ok()?;
        Some(Grant::new(self.token.number, self.token.uid, &self.token.restrictions))
    }
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Player {{ number: {} }}", self.token.number)
    }
}
