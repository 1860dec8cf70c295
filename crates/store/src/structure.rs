//! Headers: what makes bytes on a disk a structure of this pool.
//!
//! Invariant: what [`Header::read`] and [`Header::payload`] let pass was written
//! whole, by this pool, for this disk and this place; a flipped bit anywhere in
//! the structure's blocks, a torn write, a block that went to another place and
//! a block of another pool are told apart and named.

use crate::api::{BLOCK, Id, IoError};
use crate::format::{VERSION, header};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use checksum::crc32c;
use core::fmt;
use units::Bytes;

/// The kinds of structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Label,
    Profile,
    Checkpoint,
    Record,
    Seal,
}

/// What each kind of structure is called, and how it begins.
pub const MAGICS: [(&str, &[u8; 8]); 5] = [
    ("label", b"SLKLABEL"),
    ("profile", b"SLKPROFI"),
    ("checkpoint", b"SLKCHECK"),
    ("record", b"SLKRECOR"),
    ("seal", b"SLKSEAL1"),
];

impl Kind {
    fn magic(self) -> &'static [u8; 8] {
        MAGICS[self as usize].1
    }
}

/// Why bytes are not the structure that should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The device could not read them.
    Unreadable(IoError),
    /// The device could not read the place behind the last record of a log, nor the place of that record's
    /// copy: whether something acknowledged lies there is not known.
    EndUnreadable(IoError),
    /// They do not begin as such a structure does.
    Absent,
    /// They are of a newer format version than this program knows.
    Newer(u32),
    /// The checksum does not fit: flipped bits, or a write that was cut short.
    Checksum,
    /// Intact, but of another pool or disk.
    OfAnother,
    /// Intact, but meant for another place on the disk.
    Misplaced,
    /// Intact, but contradicts itself, or the rest of the pool; says how.
    Contradiction(&'static str),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "{error} while reading it"),
            Self::EndUnreadable(error) => write!(
                f,
                "{error} while reading both places of it, which would be the last: whether it was there is \
                 not known"
            ),
            Self::Absent => f.write_str("it is not there"),
            Self::Newer(version) => {
                write!(f, "its format version is {version}, this program knows up to {VERSION}")
            }
            Self::Checksum => {
                f.write_str("its checksum does not fit (flipped bits or a cut write)")
            }
            Self::OfAnother => f.write_str("it belongs to another pool or disk"),
            Self::Misplaced => f.write_str("it was meant for another place on the disk"),
            Self::Contradiction(how) => write!(f, "its checksum fits but it makes no sense: {how}"),
        }
    }
}

/// What a header says besides its place and its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) generation: u64,
    pub(crate) parent: u64,
    pub(crate) sequence: u64,
    pub(crate) base: u64,
}

impl Stamp {
    /// Of a checkpoint: it was written before the other one of its content.
    pub(crate) fn is_twin(&self) -> bool {
        self.parent == self.generation
    }
}

/// Whose structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pool: Id,
    pub(crate) disk: Id,
}

/// Bytes of a payload that lie in the first block of a structure.
pub(crate) const FIRST_PAYLOAD: usize = BLOCK.get() as usize - header::LEN;

/// A payload with its checksum, shared by the disks that it is written to.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    bytes: Arc<[u8]>,
    checksum: u32,
}

impl Payload {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let padding = size_of_structure(bytes.len()) - header::LEN - bytes.len();
        let behind = crc32c(&[0; BLOCK.get() as usize][..padding]);
        let checksum = checksum::joined(crc32c(&bytes), behind, Bytes::new(padding as u64));
        Self { bytes: bytes.into(), checksum }
    }
    /// Bytes on the disk, header and padding included: whole blocks.
    pub(crate) fn size(&self) -> usize {
        size_of_structure(self.bytes.len())
    }
}

/// Whole blocks for a header and `payload` bytes.
pub(crate) fn size_of_structure(payload: usize) -> usize {
    (header::LEN + payload).next_multiple_of(BLOCK.as_usize())
}

/// A structure ready to be written: made piece by piece, so that a large
/// checkpoint exists once in memory, however many disks it goes to.
#[derive(Clone, Debug)]
pub(crate) struct Structure {
    header: [u8; header::LEN],
    payload: Payload,
}

impl Structure {
    pub(crate) fn new(kind: Kind, owner: Owner, stamp: Stamp, at: Bytes, payload: Payload) -> Self {
        let of = (payload.bytes.len(), payload.checksum);
        Self { header: Self::header(kind, owner, stamp, at, of), payload }
    }
    /// A header for a payload of this length and checksum.
    pub(crate) fn header(
        kind: Kind,
        owner: Owner,
        stamp: Stamp,
        at: Bytes,
        (length, checksum): (usize, u32),
    ) -> [u8; header::LEN] {
        let mut head = [0; header::LEN];
        header::MAGIC.put_bytes(&mut head, kind.magic());
        header::VERSION.put(&mut head, VERSION.into());
        header::POOL.put_bytes(&mut head, &owner.pool.0);
        header::DISK.put_bytes(&mut head, &owner.disk.0);
        header::GENERATION.put(&mut head, stamp.generation);
        header::PARENT.put(&mut head, stamp.parent);
        header::SEQUENCE.put(&mut head, stamp.sequence);
        header::BASE.put(&mut head, stamp.base);
        header::PLACE.put(&mut head, at.get());
        header::PAYLOAD_LENGTH.put(&mut head, length as u64);
        header::PAYLOAD_CHECKSUM.put(&mut head, checksum.into());
        let checksum = crc32c(&head);
        header::CHECKSUM.put(&mut head, checksum.into());
        head
    }
    pub(crate) fn size(&self) -> usize {
        self.payload.size()
    }
    /// The bytes from `from`, at most `len`; none at the end.
    pub(crate) fn piece(&self, from: usize, len: usize) -> Vec<u8> {
        let to = self.size().min(from + len);
        let mut piece = vec![0; to.saturating_sub(from)];
        for (start, part) in [(0, &self.header[..]), (header::LEN, &self.payload.bytes[..])] {
            let (first, last) = (from.max(start), to.min(start + part.len()));
            if first < last {
                piece[first - from..last - from]
                    .copy_from_slice(&part[first - start..last - start]);
            }
        }
        piece
    }
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.piece(0, self.size())
    }
}

/// A header that was read and found whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: u32,
    pub(crate) owner: Owner,
    pub(crate) stamp: Stamp,
    payload_length: usize,
    payload_checksum: u32,
}

impl Header {
    /// Reads the header of a `kind` at `bytes`, which lie at `at` of their disk.
    pub(crate) fn read(kind: Kind, bytes: &[u8], at: Bytes) -> Result<Self, Problem> {
        let Some(head) = bytes.first_chunk::<{ header::LEN }>() else {
            return Err(Problem::Absent);
        };
        if header::MAGIC.bytes(head) != kind.magic() {
            return Err(Problem::Absent);
        }
        let mut blank = *head;
        header::CHECKSUM.put(&mut blank, 0);
        if header::CHECKSUM.get_u32(head) != crc32c(&blank) {
            return Err(Problem::Checksum);
        }
        let version = header::VERSION.get_u32(head);
        if version == 0 || version > VERSION {
            return Err(Problem::Newer(version));
        }
        if header::PLACE.get(head) != at.get() {
            return Err(Problem::Misplaced);
        }
        let id = |field: &[u8]| Id(field.try_into().expect("an identity has 16 bytes"));
        Ok(Self {
            version,
            owner: Owner { pool: id(header::POOL.bytes(head)), disk: id(header::DISK.bytes(head)) },
            stamp: Stamp {
                generation: header::GENERATION.get(head),
                parent: header::PARENT.get(head),
                sequence: header::SEQUENCE.get(head),
                base: header::BASE.get(head),
            },
            payload_length: header::PAYLOAD_LENGTH.get_u32(head) as usize,
            payload_checksum: header::PAYLOAD_CHECKSUM.get_u32(head),
        })
    }
    /// The same, and it must be `owner`'s.
    pub(crate) fn read_own(
        kind: Kind,
        bytes: &[u8],
        at: Bytes,
        owner: Owner,
    ) -> Result<Self, Problem> {
        let header = Self::read(kind, bytes, at)?;
        if header.owner == owner { Ok(header) } else { Err(Problem::OfAnother) }
    }
    /// Bytes of the whole structure on the disk.
    pub(crate) fn size(&self) -> usize {
        size_of_structure(self.payload_length)
    }
    /// The payload in `structure`, which begins with this header.
    pub(crate) fn payload<'a>(&self, structure: &'a [u8]) -> Result<&'a [u8], Problem> {
        let Some(structure) = structure.get(..self.size()) else {
            return Err(Problem::Contradiction("it is larger than its place"));
        };
        let behind = &structure[header::LEN..];
        if crc32c(behind) != self.payload_checksum {
            return Err(Problem::Checksum);
        }
        Ok(&behind[..self.payload_length])
    }
}
