//! What a token is made of.

use crate::bounds::{RESTRICTIONS_MAX, TEXT_MAX};
use crate::key::KEY_LEN;
use crate::restriction::Restriction;
use alloc::vec::Vec;
use core::fmt;

/// A token. Whoever has it may use it: it is shown to nobody but to who asks for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub(crate) number: u64,
    pub(crate) uid: u32,
    pub(crate) restrictions: Vec<Restriction>,
    pub(crate) tag: [u8; KEY_LEN],
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

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token {{ number: {} }}", self.number)
    }
}
