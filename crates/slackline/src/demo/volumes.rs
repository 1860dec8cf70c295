//! Whole volumes, as best effort: filled before a run, read back after it.

use super::failed;
use super::random::Random;
use super::stamp::{Checker, SECTOR, Wrong, fill};
use crate::failure::Failure;
use std::collections::HashMap;
use units::Bytes;

/// How much at a time: the longest single transfer, and an extent.
const TRANSFER: Bytes = Bytes::MIB;

/// Transfers under way, so that the disk never waits for a program.
const OUTSTANDING: usize = 4;

/// Which parts of a volume have data: `count` pieces of [`Parts::LEN`], with
/// room for `stride - 1` more between one and the next. A volume with a stride
/// lies on much of the disk and is filled in little time.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// How many.
    pub count: u64,
    /// From the start of one to that of the next, in pieces.
    pub stride: u64,
}

impl Parts {
    /// The length of each.
    pub const LEN: Bytes = TRANSFER;

    /// All of a volume of `size`, in whole pieces.
    pub fn all(size: Bytes) -> Self {
        Self { count: size.div_ceil(Self::LEN), stride: 1 }
    }
    /// The size of a volume that holds them.
    pub fn size(self) -> Bytes {
        Self::LEN * self.count * self.stride
    }
    /// Where the part with this number, from 0, starts.
    pub fn offset(self, part: u64) -> Bytes {
        Self::LEN * part * self.stride
    }
    /// The bytes in them.
    pub fn bytes(self) -> Bytes {
        Self::LEN * self.count
    }
}

/// Calls `begin` for every transfer, which gives its tag, and `end` for every
/// answer; a transfer is an offset and a length.
fn stream(
    volume: &mut dyn Random,
    transfers: impl Iterator<Item = (Bytes, Bytes)>,
    mut begin: impl FnMut(&mut dyn Random, Bytes, Bytes) -> Result<u64, Failure>,
    mut end: impl FnMut(Bytes, &[u8]),
) -> Result<(), Failure> {
    let mut waiting: HashMap<u64, Bytes> = HashMap::new();
    let mut transfers = transfers.fuse();
    loop {
        while waiting.len() < OUTSTANDING {
            let Some((offset, len)) = transfers.next() else { break };
            waiting.insert(begin(volume, offset, len)?, offset);
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let (tag, bytes) = volume.wait()?;
        let offset = waiting.remove(&tag).ok_or_else(|| failed("an answer nobody waits for"))?;
        end(offset, &bytes);
    }
}

/// Fills these parts of volume number `number`. `progress` is told how much is
/// written.
pub fn fill_volume(
    volume: &mut dyn Random,
    number: u64,
    parts: Parts,
    mut progress: impl FnMut(Bytes),
) -> Result<(), Failure> {
    let mut buffer = vec![0; TRANSFER.as_usize()];
    let mut written = Bytes::ZERO;
    let transfers = (0..parts.count).map(|part| (parts.offset(part), TRANSFER));
    let begin = |volume: &mut dyn Random, offset: Bytes, _: Bytes| {
        fill(number, offset.get() / SECTOR as u64, &mut buffer);
        volume.write(offset, &buffer)
    };
    stream(volume, transfers, begin, |_, _| {
        written += TRANSFER;
        progress(written);
    })
}

/// Reads volume number `number` from 0 to `size`; gives the bytes that were
/// right, and the faults.
pub fn verify_volume(
    volume: &mut dyn Random,
    number: u64,
    size: Bytes,
) -> Result<(u64, Vec<Wrong>), Failure> {
    let (mut verified, mut wrong) = (0, Vec::new());
    let transfers = (0..size.div_ceil(TRANSFER)).map(|transfer| {
        let offset = TRANSFER * transfer;
        (offset, TRANSFER.min(size - offset))
    });
    let begin = |volume: &mut dyn Random, offset, len| volume.read(offset, len);
    stream(volume, transfers, begin, |offset, bytes| {
        let mut checker = Checker::new(number, offset.get() / SECTOR as u64);
        checker.feed(bytes);
        verified += checker.verified();
        wrong.extend_from_slice(checker.wrong());
    })?;
    if verified != size.get() && wrong.is_empty() {
        return Err(failed(format!("only {verified} bytes of {} came back", size.get())));
    }
    Ok((verified, wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A volume in memory that answers in the reverse order.
    #[derive(Default)]
    struct Memory {
        bytes: Vec<u8>,
        answers: Vec<(u64, Vec<u8>)>,
        tag: u64,
    }
    impl Random for Memory {
        fn read(&mut self, offset: Bytes, len: Bytes) -> Result<u64, Failure> {
            let bytes = &self.bytes[offset.as_usize()..(offset + len).as_usize()];
            self.answer(bytes.to_vec())
        }
        fn write(&mut self, offset: Bytes, bytes: &[u8]) -> Result<u64, Failure> {
            let end = offset.as_usize() + bytes.len();
            self.bytes.resize(self.bytes.len().max(end), 0);
            self.bytes[offset.as_usize()..end].copy_from_slice(bytes);
            self.answer(Vec::new())
        }
        fn wait(&mut self) -> Result<(u64, Vec<u8>), Failure> {
            Ok(self.answers.pop().expect("something was asked"))
        }
    }
    impl Memory {
        fn answer(&mut self, bytes: Vec<u8>) -> Result<u64, Failure> {
            self.tag += 1;
            self.answers.push((self.tag, bytes));
            Ok(self.tag)
        }
    }

    #[test]
    fn what_was_filled_is_read_back_and_one_flipped_bit_is_found() {
        let mut memory = Memory::default();
        let mut told = Vec::new();
        let parts = Parts::all(Bytes::mib(7));
        fill_volume(&mut memory, 5, parts, |written| told.push(written)).unwrap();
        assert_eq!((memory.bytes.len() as u64, told.len()), (7 << 20, 7));
        assert_eq!(told.last(), Some(&parts.bytes()));
        let size = Bytes::kib(6 * 1024 + 12); // what was written last need not be whole
        let whole = verify_volume(&mut memory, 5, size).unwrap();
        assert_eq!(whole, (size.get(), Vec::new()));
        memory.bytes[5 << 20] ^= 1;
        let (verified, wrong) = verify_volume(&mut memory, 5, size).unwrap();
        assert_eq!(verified, size.get() - SECTOR as u64);
        assert!(wrong[0].to_string().starts_with("sector 1280 of volume 5 is damaged"));
    }

    #[test]
    fn parts_lie_apart_and_the_rest_is_left_alone() {
        let parts = Parts { count: 3, stride: 4 };
        assert_eq!((parts.size(), parts.bytes()), (Bytes::mib(12), Bytes::mib(3)));
        let mut memory = Memory::default();
        fill_volume(&mut memory, 5, parts, |_| {}).unwrap();
        assert!(memory.bytes[1 << 20..4 << 20].iter().all(|&byte| byte == 0));
        let mut checker = Checker::new(5, 8 << 8);
        checker.feed(&memory.bytes[8 << 20..9 << 20]);
        assert_eq!((checker.verified(), parts.offset(2)), (1 << 20, Bytes::mib(8)));
    }
}
