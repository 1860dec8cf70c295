//! Bytes that prove themselves: every 4 KiB sector names its volume and its
//! place in it, and ends in a hash of the rest.
//!
//! A sector that comes back from the wrong place, from another volume, from an
//! earlier life of the disk or with one bit flipped is found and named.
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | number of the volume |
//! | 8..16 | number of the sector in the volume |
//! | 16..4064 | noise that follows from both |
//! | 4064..4096 | BLAKE3 of the bytes before |

use std::fmt;

/// Length of a sector in bytes.
pub const SECTOR: usize = 4096;
const HASH_AT: usize = SECTOR - 32;

/// What is wrong with a sector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    volume: u64,
    sector: u64,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Elsewhere { volume: u64, sector: u64 },
    Damaged,
    Zeros,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sector {} of volume {} ", self.sector, self.volume)?;
        match self.what {
            What::Elsewhere { volume, sector } => {
                write!(f, "holds sector {sector} of volume {volume}")
            }
            What::Damaged => write!(f, "is damaged: its hash does not match"),
            What::Zeros => write!(f, "is all zeros"),
        }
    }
}

/// The content of sector number `sector` of volume number `volume`.
pub fn fill_sector(volume: u64, sector: u64, bytes: &mut [u8]) {
    assert_eq!(bytes.len(), SECTOR, "one sector at a time");
    bytes[0..8].copy_from_slice(&volume.to_le_bytes());
    bytes[8..16].copy_from_slice(&sector.to_le_bytes());
    let mut noise = volume.rotate_left(40) ^ sector ^ 0x5EED;
    for word in bytes[16..HASH_AT].chunks_exact_mut(8) {
        word.copy_from_slice(&splitmix(&mut noise).to_le_bytes());
    }
    let hash = blake3::hash(&bytes[..HASH_AT]);
    bytes[HASH_AT..].copy_from_slice(hash.as_bytes());
}

/// Fills whole sectors from sector number `first` on.
pub fn fill(volume: u64, first: u64, bytes: &mut [u8]) {
    assert!(bytes.len().is_multiple_of(SECTOR), "whole sectors");
    for (sector, bytes) in (first..).zip(bytes.chunks_exact_mut(SECTOR)) {
        fill_sector(volume, sector, bytes);
    }
}

fn check_sector(volume: u64, sector: u64, bytes: &[u8]) -> Result<(), Wrong> {
    let number = |at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes are eight bytes"))
    };
    let wrong = |what| Err(Wrong { volume, sector, what });
    if bytes.iter().all(|&b| b == 0) {
        return wrong(What::Zeros);
    }
    if blake3::hash(&bytes[..HASH_AT]).as_bytes() != &bytes[HASH_AT..] {
        return wrong(What::Damaged);
    }
    match (number(0), number(8)) {
        (v, s) if (v, s) == (volume, sector) => Ok(()),
        (volume, sector) => wrong(What::Elsewhere { volume, sector }),
    }
}

/// Checks bytes that come in order and in pieces of any length.
pub struct Checker {
    volume: u64,
    sector: u64,
    partial: Vec<u8>,
    verified: u64,
    wrong: Vec<Wrong>,
}

/// Faults that are kept with their place; the rest are only counted as unverified.
const WRONG_MAX: usize = 8;

impl Checker {
    /// Expects the sectors of `volume` from sector number `first` on.
    pub fn new(volume: u64, first: u64) -> Self {
        Self { volume, sector: first, partial: Vec::new(), verified: 0, wrong: Vec::new() }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        if !self.partial.is_empty() {
            let missing = SECTOR - self.partial.len();
            let (head, rest) = bytes.split_at(missing.min(bytes.len()));
            self.partial.extend_from_slice(head);
            bytes = rest;
            if self.partial.len() < SECTOR {
                return;
            }
            let sector = std::mem::take(&mut self.partial);
            self.check(&sector);
        }
        let whole = bytes.chunks_exact(SECTOR);
        self.partial.extend_from_slice(whole.remainder());
        whole.for_each(|sector| self.check(sector));
    }

    fn check(&mut self, bytes: &[u8]) {
        match check_sector(self.volume, self.sector, bytes) {
            Ok(()) => self.verified += SECTOR as u64,
            Err(wrong) if self.wrong.len() < WRONG_MAX => self.wrong.push(wrong),
            Err(_) => {}
        }
        self.sector += 1;
    }

    /// Bytes that were found right.
    pub fn verified(&self) -> u64 {
        self.verified
    }

    /// The first faults.
    pub fn wrong(&self) -> &[Wrong] {
        &self.wrong
    }
}

/// The generator SplitMix64 (Steele, Lea and Flood 2014): one multiplication
/// chain a word, which is fast and leaves no pattern to compress.
pub fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(volume: u64, first: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count * SECTOR];
        fill(volume, first, &mut bytes);
        bytes
    }

    fn faults(volume: u64, first: u64, bytes: &[u8]) -> Vec<String> {
        let mut checker = Checker::new(volume, first);
        checker.feed(bytes);
        let told = checker.wrong().iter().map(ToString::to_string).collect();
        let good = bytes.chunks_exact(SECTOR).len() - checker.wrong().len();
        assert_eq!(checker.verified(), (good * SECTOR) as u64);
        told
    }

    #[test]
    fn what_was_filled_is_right_in_pieces_of_any_length() {
        let bytes = sectors(3, 17, 5);
        for piece in [1, 100, 4095, 4096, 4097, 9000, 20480] {
            let mut checker = Checker::new(3, 17);
            bytes.chunks(piece).for_each(|piece| checker.feed(piece));
            assert_eq!((checker.verified(), checker.wrong()), (5 * 4096, &[][..]), "{piece}");
        }
    }

    #[test]
    fn each_kind_of_fault_is_found_and_named() {
        let mut bytes = sectors(3, 17, 4);
        bytes[SECTOR + 2000] ^= 1;
        bytes[2 * SECTOR..3 * SECTOR].fill(0);
        fill_sector(9, 2, &mut bytes[3 * SECTOR..]);
        let told = [
            "sector 18 of volume 3 is damaged: its hash does not match",
            "sector 19 of volume 3 is all zeros",
            "sector 20 of volume 3 holds sector 2 of volume 9",
        ];
        assert_eq!(faults(3, 17, &bytes), told);
    }
}
