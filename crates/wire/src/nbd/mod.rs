//! The NBD protocol as bytes in, messages out: what a server of block devices hears and says.
//!
//! Source: `doc/proto.md` of the NBD project, the fixed newstyle negotiation with structured
//! replies and the metadata context `base:allocation`. All numbers are big-endian.
//! [`handshake`] is the negotiation, up to the export that the client chose; [`transmission`]
//! has the requests and replies after it.
//!
//! TLS is begun by `STARTTLS` where the server says that it is required; the handshake itself is
//! not of this module. Not spoken: extended headers, the experimental resizing and `CACHE`; a
//! client that asks for them is told so and goes on without.
//!
//! Invariants: no input makes this module panic, and no buffer that it fills is larger than
//! what [`handshake::OPTION_MAX`] permits a client to send.

pub mod handshake;
pub mod transmission;

use std::fmt;

/// The largest read or write: what clients assume where a server says nothing.
pub const PAYLOAD_MAX: u32 = 32 << 20;
/// The size of requests that needs no reading before writing.
pub const BLOCK_PREFERRED: u32 = 4096;
/// Longest name of an export, by the protocol.
pub const NAME_MAX: usize = 4096;

/// What a client did that ends the connection: no answer could be understood after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It does not speak the fixed newstyle negotiation.
    Flags(u32),
    /// What should have been an option is none.
    OptionMagic(u64),
    /// An option of so many bytes.
    OptionLen(u32),
    /// What should have been a request is none.
    RequestMagic(u32),
    /// A write of so many bytes.
    PayloadLen(u32),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flags(flags) => {
                write!(f, "the client's flags are {flags:#x}; only the fixed newstyle is served")
            }
            Self::OptionMagic(magic) => write!(f, "{magic:#x} begins no option"),
            Self::OptionLen(len) => write!(f, "an option of {len} bytes"),
            Self::RequestMagic(magic) => write!(f, "{magic:#x} begins no request"),
            Self::PayloadLen(len) => {
                write!(f, "a write of {len} bytes; {PAYLOAD_MAX} at once are the most")
            }
        }
    }
}

/// Reads big-endian numbers off the front of bytes.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }
    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }
    /// A string that its length comes before.
    fn text(&mut self) -> Option<&'a str> {
        let len = self.u32()? as usize;
        if len > NAME_MAX {
            return None;
        }
        std::str::from_utf8(self.take(len)?).ok()
    }
}
