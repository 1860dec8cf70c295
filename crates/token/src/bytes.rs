//! A token as text: a word that says what it is, and base64 (RFC 4648, section 5) of its bytes.
//!
//! ```text
//! number 8 | user 4 | restrictions 1 | each: kind 1, length 2, data | tag 32
//! ```
//!
//! Numbers have their highest byte first. Invariant: what is read is written as it was read, so
//! that no two texts are the same token.

use crate::bounds::{PREFIX, RESTRICTIONS_MAX, TEXT_MAX};
use crate::key::KEY_LEN;
use crate::restriction::{Names, Restriction, UNTIL_MAX, Verbs};
use crate::token::Token;
use alloc::string::String;
use alloc::vec::Vec;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core::fmt;
use units::{Outside, Rate};

/// Of its bytes.
const BYTES_MAX: usize = (TEXT_MAX - PREFIX.len()) / 4 * 3;

mod kind {
    pub const VOLUMES: u8 = 1;
    pub const VERBS: u8 = 2;
    pub const RATE_MAX: u8 = 3;
    pub const UNTIL: u8 = 4;
}

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is no token: one begins with {PREFIX} and is whole")
    }
}
impl core::error::Error for Malformed {}

/// A restriction, as its tag is made of it.
pub fn of(restriction: &Restriction) -> Vec<u8> {
    let (kind, data) = match restriction {
        Restriction::Volumes(names) => (kind::VOLUMES, names.iter().flat_map(name).collect()),
        Restriction::Verbs(verbs) => (kind::VERBS, Vec::from([verbs.bits()])),
        Restriction::RateMax(rate) => (kind::RATE_MAX, rate.to_outside().to_be_bytes().to_vec()),
        Restriction::Until(until) => (kind::UNTIL, until.to_be_bytes().to_vec()),
    };
    // One that is longer than its length says is longer than a token can be.
    let len = u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[kind][..], &len, &data].concat()
}

fn name(names: &Names) -> Vec<u8> {
    let is_prefix = u8::from(matches!(names, Names::Beginning(_)));
    let len = u8::try_from(names.text().len()).unwrap_or(u8::MAX);
    [&[is_prefix, len][..], names.text().as_bytes()].concat()
}

fn bytes(token: &Token) -> Vec<u8> {
    let mut bytes = Vec::from(token.number.to_be_bytes());
    bytes.extend(token.uid.to_be_bytes());
    bytes.push(token.restrictions.len() as u8);
    token.restrictions.iter().for_each(|one| bytes.extend(of(one)));
    bytes.extend(token.tag);
    bytes
}

pub fn text(token: &Token) -> String {
    let mut text = String::from(PREFIX);
    URL_SAFE_NO_PAD.encode_string(bytes(token), &mut text);
    text
}

impl Token {
    /// Whether it is as long as a token can be, or shorter, and says nothing that cannot be read.
    pub(crate) fn fits(&self) -> bool {
        let is_sound = |restriction: &Restriction| match restriction {
            Restriction::Volumes(names) => !names.is_empty() && names.iter().all(Names::is_sound),
            Restriction::Until(until) => *until <= UNTIL_MAX,
            Restriction::Verbs(_) => true,
            Restriction::RateMax(rate) => rate.checked().is_ok(),
        };
        self.restrictions.iter().all(is_sound) && bytes(self).len() <= BYTES_MAX
    }
}

pub fn parse(text: &str) -> Result<Token, Malformed> {
    // First of all: nothing is done with a text that is longer.
    if text.len() > TEXT_MAX {
        return Err(Malformed);
    }
    let encoded = text.strip_prefix(PREFIX).ok_or(Malformed)?;
    let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| Malformed)?;
    let token = read(&bytes).ok_or(Malformed)?;
    token.fits().then_some(token).ok_or(Malformed)
}

fn read(mut bytes: &[u8]) -> Option<Token> {
    let number = u64::from_be_bytes(*take(&mut bytes)?);
    let uid = u32::from_be_bytes(*take(&mut bytes)?);
    let [count] = *take(&mut bytes)?;
    if usize::from(count) > RESTRICTIONS_MAX {
        return None;
    }
    let restrictions = (0..count).map(|_| restriction(&mut bytes)).collect::<Option<_>>()?;
    let tag = *take::<KEY_LEN>(&mut bytes)?;
    bytes.is_empty().then_some(Token { number, uid, restrictions, tag })
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

fn restriction(bytes: &mut &[u8]) -> Option<Restriction> {
    let [kind] = *take(bytes)?;
    let len = u16::from_be_bytes(*take(bytes)?);
    let (mut data, rest) = bytes.split_at_checked(len.into())?;
    *bytes = rest;
    let found = match kind {
        kind::VOLUMES => Restriction::Volumes(names(&mut data)?),
        kind::VERBS => {
            let [bits] = *take(&mut data)?;
            Restriction::Verbs(Verbs::from_bits(bits)?)
        }
        kind::RATE_MAX => {
            let rate = Rate::from_outside(u64::from_be_bytes(*take(&mut data)?));
            Restriction::RateMax(rate.ok()?)
        }
        kind::UNTIL => Restriction::Until(u64::from_be_bytes(*take(&mut data)?)),
        // What is not understood cannot be held to: the token is refused.
        _ => return None,
    };
    data.is_empty().then_some(found)
}

fn names(data: &mut &[u8]) -> Option<Vec<Names>> {
    let mut names = Vec::new();
    while !data.is_empty() {
        let [is_prefix, len] = *take(data)?;
        let (text, rest) = data.split_at_checked(len.into())?;
        *data = rest;
        let text = String::from(core::str::from_utf8(text).ok()?);
        names.push(match is_prefix {
            0 => Names::One(text),
            1 => Names::Beginning(text),
            _ => return None,
        });
    }
    Some(names)
}
