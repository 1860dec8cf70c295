//! Requests to an export, and their replies.
//!
//! A request is a head of [`REQUEST_LEN`] bytes, and behind a write its bytes. What it asks is
//! checked once, by [`Request::command`]; a request that is refused is answered with an
//! [`Errno`], after the bytes of a write have been read all the same.

use super::handshake::{ALLOCATION_ID, Chosen};
use super::{Broken, PAYLOAD_MAX};

/// Length of every request's head.
pub const REQUEST_LEN: usize = 28;
/// Length of a simple reply's head.
pub const SIMPLE_LEN: usize = 16;
/// Length of a structured reply's head, with the offset that data and holes begin with.
pub const DATA_LEN: usize = 28;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_MAGIC: u32 = 0x668e_33ef;

/// A read that must not be divided is at most so long; the protocol wants 64 KiB at least.
pub const WHOLE_MAX: u32 = 1 << 20;

/// Errors, by the numbers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// The export is read-only, or the volume does not let this user write.
    NotPermitted = 1,
    /// The device failed.
    Io = 5,
    /// No memory for it; later there may be.
    NoMemory = 12,
    /// It cannot be asked like this.
    Invalid = 22,
    /// Beyond the end of the export, or the pool is full.
    NoSpace = 28,
    /// Too much for one reply that may not be divided.
    Overflow = 75,
    /// The server has no way to do it fast.
    NotSupported = 95,
    /// The server stops.
    Shutdown = 108,
}

/// The head of a request as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bits.
    pub flags: u16,
    /// Which command.
    pub kind: u16,
    /// Comes back with the reply.
    pub cookie: u64,
    /// In bytes from the start of the export.
    pub offset: u64,
    /// In bytes.
    pub len: u32,
}

/// A request that can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // offsets and lengths are in bytes, within the export
pub enum Command {
    /// Bytes; in one piece where it must not be divided.
    Read { offset: u64, len: u32, in_one: bool },
    /// The bytes that follow; durable before the reply where it says so.
    Write { offset: u64, len: u32, durable: bool },
    /// No more requests.
    Disconnect,
    /// Everything that was answered is durable before the reply.
    Flush,
    /// These bytes are of no interest any more.
    Trim { offset: u64, len: u32, durable: bool },
    /// Zeros.
    WriteZeroes { offset: u64, len: u32, durable: bool },
    /// Where data is; one extent where no more are wanted.
    BlockStatus { offset: u64, len: u32, one: bool },
}

const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
const BLOCK_STATUS: u16 = 7;

/// Durable before the reply.
const FUA: u16 = 1;
/// Zeros that keep their space. All of a volume's space is reserved: no difference.
const NO_HOLE: u16 = 1 << 1;
/// A read's reply in one piece.
const DONT_FRAGMENT: u16 = 1 << 2;
/// No more than one extent.
const REQ_ONE: u16 = 1 << 3;
/// Zeros only where that is faster than writing them.
const FAST_ZERO: u16 = 1 << 4;

impl Request {
    /// Reads one.
    ///
    /// # Errors
    /// What is no request; a write of more than can be read past.
    pub fn decode(bytes: &[u8; REQUEST_LEN]) -> Result<Self, Broken> {
        fn part<const N: usize>(bytes: &[u8; REQUEST_LEN], at: usize) -> [u8; N] {
            bytes[at..at + N].try_into().expect("within the head")
        }
        let magic = u32::from_be_bytes(part(bytes, 0));
        if magic != REQUEST_MAGIC {
            return Err(Broken::RequestMagic(magic));
        }
        let request = Self {
            flags: u16::from_be_bytes(part(bytes, 4)),
            kind: u16::from_be_bytes(part(bytes, 6)),
            cookie: u64::from_be_bytes(part(bytes, 8)),
            offset: u64::from_be_bytes(part(bytes, 16)),
            len: u32::from_be_bytes(part(bytes, 24)),
        };
        match request.payload() > PAYLOAD_MAX {
            true => Err(Broken::PayloadLen(request.len)),
            false => Ok(request),
        }
    }

    /// As a client writes it.
    pub fn encode(&self) -> [u8; REQUEST_LEN] {
        let mut bytes = [0; REQUEST_LEN];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }

    /// So many bytes follow the head, whether it can be served or not.
    pub fn payload(&self) -> u32 {
        if self.kind == WRITE { self.len } else { 0 }
    }

    /// Whether it is a read, whose reply is structured where replies are.
    pub fn is_read(&self) -> bool {
        matches!(self.kind, READ | BLOCK_STATUS)
    }

    /// What it asks of the export that was chosen.
    ///
    /// # Errors
    /// What the reply says.
    pub fn command(&self, chosen: &Chosen) -> Result<Command, Errno> {
        let &Self { flags, kind, offset, len, .. } = self;
        let permitted = match kind {
            // Older clients set FUA on anything; where it means nothing it is let pass.
            READ => DONT_FRAGMENT | FUA,
            WRITE | TRIM | FLUSH => FUA,
            WRITE_ZEROES => FUA | NO_HOLE | FAST_ZERO,
            BLOCK_STATUS => REQ_ONE | FUA,
            _ => FUA,
        };
        if flags & !permitted != 0 {
            return Err(Errno::Invalid);
        }
        let writes = matches!(kind, WRITE | TRIM | WRITE_ZEROES);
        if writes && chosen.export.is_read_only {
            return Err(Errno::NotPermitted);
        }
        match kind {
            DISCONNECT => return Ok(Command::Disconnect),
            FLUSH if offset == 0 && len == 0 => return Ok(Command::Flush),
            FLUSH => return Err(Errno::Invalid),
            READ | WRITE | TRIM | WRITE_ZEROES | BLOCK_STATUS => {}
            _ => return Err(Errno::Invalid),
        }
        let is_within =
            offset.checked_add(u64::from(len)).is_some_and(|end| end <= chosen.export.size);
        match () {
            () if !is_within && writes => return Err(Errno::NoSpace),
            () if !is_within => return Err(Errno::Invalid),
            () => {}
        }
        let durable = flags & FUA != 0;
        match kind {
            READ if len > PAYLOAD_MAX => Err(Errno::Invalid),
            READ => {
                let whole = flags & DONT_FRAGMENT != 0;
                if chosen.is_structured && whole && len > WHOLE_MAX {
                    return Err(Errno::Overflow);
                }
                let in_one = !chosen.is_structured || whole;
                Ok(Command::Read { offset, len, in_one })
            }
            WRITE => Ok(Command::Write { offset, len, durable }),
            TRIM => Ok(Command::Trim { offset, len, durable }),
            WRITE_ZEROES if flags & FAST_ZERO != 0 => Err(Errno::NotSupported),
            WRITE_ZEROES => Ok(Command::WriteZeroes { offset, len, durable }),
            _ if !chosen.asks_allocation || len == 0 => Err(Errno::Invalid),
            _ => Ok(Command::BlockStatus { offset, len, one: flags & REQ_ONE != 0 }),
        }
    }
}

/// The head of a simple reply: a read's bytes follow where there is no error.
pub fn simple(cookie: u64, error: Option<Errno>) -> [u8; SIMPLE_LEN] {
    let mut bytes = [0; SIMPLE_LEN];
    bytes[..4].copy_from_slice(&SIMPLE_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.map_or(0, |error| error as u32).to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// The chunks of structured replies.
mod chunk {
    pub const NONE: u16 = 0;
    pub const DATA: u16 = 1;
    pub const HOLE: u16 = 2;
    pub const STATUS: u16 = 5;
    pub const ERROR: u16 = (1 << 15) + 1;
}

const DONE: u16 = 1;

fn structured(out: &mut Vec<u8>, cookie: u64, is_last: bool, kind: u16, len: u32) {
    out.extend(STRUCTURED_MAGIC.to_be_bytes());
    out.extend((if is_last { DONE } else { 0 }).to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(cookie.to_be_bytes());
    out.extend(len.to_be_bytes());
}

/// The head of a chunk of a read: `len` bytes of `offset` follow.
pub fn data(cookie: u64, is_last: bool, offset: u64, len: u32) -> [u8; DATA_LEN] {
    let mut out = Vec::with_capacity(DATA_LEN);
    structured(&mut out, cookie, is_last, chunk::DATA, len + 8);
    out.extend(offset.to_be_bytes());
    out.try_into().expect("the head and an offset")
}

/// A chunk of a read: `len` zeros at `offset`, which are not sent.
pub fn hole(cookie: u64, is_last: bool, offset: u64, len: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(DATA_LEN + 4);
    structured(&mut out, cookie, is_last, chunk::HOLE, 12);
    out.extend(offset.to_be_bytes());
    out.extend(len.to_be_bytes());
    out
}

/// The end of a structured reply that has nothing more to say.
pub fn none(cookie: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(20);
    structured(&mut out, cookie, true, chunk::NONE, 0);
    out
}

/// The end of a structured reply that failed.
pub fn error(cookie: u64, error: Errno, why: &str) -> Vec<u8> {
    let why = &why.as_bytes()[..why.floor_char_boundary(super::NAME_MAX)];
    let mut out = Vec::with_capacity(26 + why.len());
    structured(&mut out, cookie, true, chunk::ERROR, 6 + why.len() as u32);
    out.extend((error as u32).to_be_bytes());
    out.extend((why.len() as u16).to_be_bytes());
    out.extend(why);
    out
}

/// A part of an export, of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// In bytes.
    pub len: u32,
    /// Nothing was written there: it reads as zeros.
    pub is_hole: bool,
}

/// Where data is, from the offset that was asked for on.
pub fn status(cookie: u64, extents: &[Extent]) -> Vec<u8> {
    const HOLE: u32 = 1;
    const ZERO: u32 = 2;
    let mut out = Vec::with_capacity(24 + 8 * extents.len());
    structured(&mut out, cookie, true, chunk::STATUS, 4 + 8 * extents.len() as u32);
    out.extend(ALLOCATION_ID.to_be_bytes());
    for extent in extents {
        out.extend(extent.len.to_be_bytes());
        out.extend((if extent.is_hole { HOLE | ZERO } else { 0 }).to_be_bytes());
    }
    out
}
