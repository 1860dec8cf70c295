//! Bytes that prove themselves: every 8-byte word is a function of its stream and its
//! place, and can be turned back into both.
//!
//! A word that comes back from another place, from another stream, from an earlier life of
//! the disk or with one bit flipped is found, and named by where it belongs. The function
//! is one to one (the last steps of SplitMix64, Steele, Lea and Flood 2014), so that no two
//! places of any two streams have the same word.

use std::fmt;
use units::Bytes;

const WORD: usize = 8;
/// Bits of a word's number; the stream's mark has the rest.
const PLACE_BITS: u32 = 48;
/// Added before the mixing, so that the first word of the first stream is not zero.
const OFFSET: u64 = 0x9E37_79B9_7F4A_7C15;

fn mix(place: u64) -> u64 {
    let mut z = place.wrapping_add(OFFSET);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The inverse of [`mix`]: the factors are the inverses modulo 2^64.
fn unmix(word: u64) -> u64 {
    let mut z = word ^ (word >> 31) ^ (word >> 62);
    z = z.wrapping_mul(0x3196_42B2_D24D_8EC3);
    z = z ^ (z >> 27) ^ (z >> 54);
    z = z.wrapping_mul(0x96DE_1B17_3F11_9089);
    (z ^ (z >> 30) ^ (z >> 60)).wrapping_sub(OFFSET)
}

/// What marks the words of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u16);

impl Mark {
    /// The mark of what is called `name`; another seed gives other marks.
    pub fn new(name: &str, seed: u64) -> Self {
        let all = name.bytes().fold(mix(seed), |all, byte| mix(all ^ u64::from(byte)));
        Self((all >> PLACE_BITS) as u16)
    }

    fn word(self, index: u64) -> u64 {
        mix(u64::from(self.0) << PLACE_BITS | index & ((1 << PLACE_BITS) - 1))
    }

    /// Fills `bytes` with what belongs at `offset` of this stream.
    pub fn fill(self, offset: Bytes, bytes: &mut [u8]) {
        let (head, whole) = split(offset, bytes.len());
        let first = offset.get() / WORD as u64;
        let (before, bytes) = bytes.split_at_mut(head);
        let skip = (offset.get() % WORD as u64) as usize;
        before.copy_from_slice(&self.word(first).to_le_bytes()[skip..][..head]);
        let first = first + u64::from(head > 0);
        let mut words = bytes.chunks_exact_mut(WORD);
        for (word, index) in words.by_ref().zip(first..) {
            word.copy_from_slice(&self.word(index).to_le_bytes());
        }
        let rest = words.into_remainder();
        let last = self.word(first + whole as u64).to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// How many of `len` bytes from `offset` come before the first whole word, and how many
/// whole words there are.
fn split(offset: Bytes, len: usize) -> (usize, usize) {
    let head = (WORD - (offset.get() % WORD as u64) as usize) % WORD;
    let head = head.min(len);
    (head, (len - head) / WORD)
}

/// What bytes are that should be others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What belongs so many words further on (modulo 2^48), in the stream of that mark.
    Elsewhere(u16, u64),
    Zeros,
    Damaged,
}

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where they start in the stream.
    pub offset: Bytes,
    /// How many they are.
    pub len: Bytes,
    kind: Kind,
    own: Mark,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at offset {} ", self.len.get(), self.offset.get())?;
        match self.kind {
            Kind::Zeros => f.write_str("are zeros"),
            Kind::Elsewhere(mark, shift) => {
                let index = (self.offset.get() / WORD as u64).wrapping_add(shift);
                let belongs = (index & ((1 << PLACE_BITS) - 1)) * WORD as u64;
                let of = if mark == self.own.0 { "this" } else { "another" };
                write!(f, "belong at offset {belongs} of {of} stream")
            }
            Kind::Damaged => f.write_str("are damaged, or were not written by rwrt"),
        }
    }
}

/// Faults that are kept with their place; of the rest only the bytes are counted.
const FAULTS_MAX: usize = 8;

/// Checks what was read, and counts.
#[derive(Clone, Debug)]
pub struct Checker {
    mark: Mark,
    right: Bytes,
    wrong: Bytes,
    faults: Vec<Fault>,
}

impl Checker {
    /// Expects the words of this stream.
    pub fn new(mark: Mark) -> Self {
        Self { mark, right: Bytes::ZERO, wrong: Bytes::ZERO, faults: Vec::new() }
    }

    /// Takes what was read at `offset`.
    pub fn check(&mut self, offset: Bytes, bytes: &[u8]) {
        let (head, _) = split(offset, bytes.len());
        let (before, rest) = bytes.split_at(head);
        let (mut at, skip) = (offset, (offset.get() % WORD as u64) as usize);
        self.part(&mut at, skip, before);
        for word in rest.chunks(WORD) {
            self.part(&mut at, 0, word);
        }
    }

    /// A word at `at`, or the part of it from byte `skip`.
    fn part(&mut self, at: &mut Bytes, skip: usize, bytes: &[u8]) {
        let index = at.get() / WORD as u64;
        let expected = self.mark.word(index).to_le_bytes();
        let len = Bytes::new(bytes.len() as u64);
        if bytes == &expected[skip..][..bytes.len()] {
            self.right += len;
        } else {
            self.wrong += len;
            let kind = match <[u8; WORD]>::try_from(bytes) {
                _ if bytes.iter().all(|&byte| byte == 0) => Kind::Zeros,
                Ok(word) => elsewhere(self.mark, index, u64::from_le_bytes(word)),
                Err(_) => Kind::Damaged,
            };
            self.note(Fault { offset: *at, len, kind, own: self.mark });
        }
        *at += len;
    }

    fn note(&mut self, fault: Fault) {
        let continues = |last: &Fault, next: &Fault| {
            last.offset + last.len == next.offset && last.kind == next.kind
        };
        if self.faults.last().is_some_and(|last| !continues(last, &fault)) {
            self.believe();
        }
        let room = self.faults.len() < FAULTS_MAX;
        match self.faults.last_mut() {
            Some(last) if continues(last, &fault) => last.len += fault.len,
            _ if room => self.faults.push(fault),
            _ => {}
        }
    }

    /// One word of random damage may look like a word of some other stream: only two in a
    /// row are believed.
    fn believe(&mut self) {
        let Some(last) = self.faults.last_mut() else { return };
        let is_of_other_stream =
            matches!(last.kind, Kind::Elsewhere(mark, _) if mark != self.mark.0);
        if !is_of_other_stream || last.len.get() > WORD as u64 {
            return;
        }
        last.kind = Kind::Damaged;
        if let [.., before, last] = &mut self.faults[..]
            && before.offset + before.len == last.offset
            && before.kind == Kind::Damaged
        {
            before.len += last.len;
            self.faults.pop();
        }
    }

    /// Bytes that were right.
    pub fn right(&self) -> Bytes {
        self.right
    }

    /// Bytes that were not.
    pub fn wrong(&self) -> Bytes {
        self.wrong
    }

    /// The first faults, neighbours of a kind together.
    pub fn faults(&self) -> Vec<Fault> {
        let mut believed = self.clone();
        believed.believe();
        believed.faults
    }
}

/// What a wrong word is: a place that lies within 8 TiB of some stream, or damage.
fn elsewhere(own: Mark, index: u64, word: u64) -> Kind {
    let found = unmix(word);
    let (mark, place) = ((found >> PLACE_BITS) as u16, found & ((1 << PLACE_BITS) - 1));
    if place >= 1 << 40 || (mark == own.0 && place == index) {
        return Kind::Damaged;
    }
    Kind::Elsewhere(mark, place.wrapping_sub(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(mark: Mark, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0xEE; len];
        mark.fill(Bytes::new(offset), &mut bytes);
        bytes
    }

    fn faults(mark: Mark, offset: u64, bytes: &[u8]) -> Vec<String> {
        let mut checker = Checker::new(mark);
        checker.check(Bytes::new(offset), bytes);
        assert_eq!(checker.right() + checker.wrong(), Bytes::new(bytes.len() as u64));
        assert_eq!(checker.wrong().is_zero(), checker.faults().is_empty());
        checker.faults().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_word_turns_back_into_its_place() {
        for place in [0, 1, 2, 12_345, u64::MAX, 1 << 63, 0xFEED_F00D_0000_0001] {
            assert_eq!(unmix(mix(place)), place);
        }
        assert_ne!(mix(0), 0, "zeros are never right");
    }

    #[test]
    fn what_was_made_in_any_pieces_is_right_in_any_others() {
        let mark = Mark::new("film", 1);
        let whole = made(mark, 0, 10_000);
        for piece in [1, 3, 8, 13, 512, 9_999] {
            for (at, part) in (0..).step_by(piece).zip(whole.chunks(piece)) {
                assert_eq!(made(mark, at, part.len()), part, "{piece} bytes from {at}");
                assert_eq!(faults(mark, at, part), Vec::<String>::new());
            }
        }
        assert_ne!(whole, made(Mark::new("film", 2), 0, 10_000));
        assert_ne!(whole, made(Mark::new("other", 1), 0, 10_000));
    }

    #[test]
    fn each_kind_of_fault_is_found_and_named() {
        let (mark, other) = (Mark::new("film", 1), Mark::new("other", 1));
        let mut bytes = made(mark, 80_000, 4_096);
        bytes[100] ^= 1;
        bytes[800..1_600].fill(0);
        bytes[2_000..2_400].copy_from_slice(&made(mark, 160_000, 400));
        bytes[2_400..2_800].copy_from_slice(&made(other, 8, 400));
        let told = [
            "8 bytes at offset 80096 are damaged, or were not written by rwrt",
            "800 bytes at offset 80800 are zeros",
            "400 bytes at offset 82000 belong at offset 160000 of this stream",
            "400 bytes at offset 82400 belong at offset 8 of another stream",
        ];
        assert_eq!(faults(mark, 80_000, &bytes), told);
        // Noise is one fault, though one word in 256 looks like that of another stream.
        let noise: Vec<u8> =
            (0..8_000u64).flat_map(|n| mix(n ^ 0xABCD_EF01).to_be_bytes()).collect();
        let told = ["64000 bytes at offset 0 are damaged, or were not written by rwrt"];
        assert_eq!(faults(mark, 0, &noise), told);
        // The same bytes in odd pieces: parts of words are found, too.
        let mut checker = Checker::new(mark);
        for (at, piece) in (80_000..).step_by(13).zip(bytes.chunks(13)) {
            checker.check(Bytes::new(at), piece);
        }
        assert!(checker.wrong() >= Bytes::new(1_601) && !checker.faults().is_empty());
    }
}
