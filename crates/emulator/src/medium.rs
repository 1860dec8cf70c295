//! The bytes of the drive, and which of them a power cut would take back.
//!
//! A write is in the file when the drive is done with it. Where the drive has a
//! volatile write cache, the durable content of what was overwritten is kept until
//! a flush, so that a power cut puts exactly that back: no more than what was not
//! flushed, and all of it; or, of each sector that was not flushed, what the drive had or
//! had not written out when the power went, as a seed has it.
//!
//! Invariants: `durable` has a block if, and only if, the file's content of it may
//! be lost; no more blocks than [`UNFLUSHED_MAX`], beyond which the drive writes
//! out what has been there for longest.

use crate::limits::UNFLUSHED_MAX;
use crate::random::Random;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use units::{Bytes, SECTOR};

/// What is kept of, as one.
const BLOCK: usize = 4_096;
const SECTORS: usize = BLOCK / SECTOR.get() as usize;
const BLOCKS_MAX: usize = UNFLUSHED_MAX.get() as usize / BLOCK;

/// The bytes.
#[derive(Debug)]
pub(crate) struct Medium {
    file: File,
    /// How much there is.
    len: u64,
    /// What a power cut would bring back, by block; none for a drive whose writes are
    /// on the medium when they end.
    volatile: Option<Volatile>,
}

#[derive(Debug, Default)]
struct Volatile {
    durable: HashMap<u64, Box<[u8]>>,
    /// The same blocks, in the order in which they were first overwritten.
    order: VecDeque<u64>,
}

impl Medium {
    /// The bytes of a file; `volatile` where a power cut loses what was not flushed.
    pub fn new(file: File, len: Bytes, volatile: bool) -> Self {
        Self { file, len: len.get(), volatile: volatile.then(Volatile::default) }
    }

    /// How much a power cut would take back now.
    pub fn unflushed(&self) -> Bytes {
        let blocks = self.volatile.as_ref().map_or(0, |volatile| volatile.order.len());
        Bytes::new((blocks * BLOCK) as u64)
    }

    pub fn read(&self, offset: Bytes, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], offset.get() + done as u64) {
                // The file may end early: what was never written reads as zeros.
                Ok(0) => {
                    into[done..].fill(0);
                    break;
                }
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes; `forced` past the volatile cache.
    pub fn write(&mut self, offset: Bytes, bytes: &[u8], forced: bool) -> io::Result<()> {
        let offset = offset.get();
        for block in blocks(offset, bytes.len()) {
            match forced {
                true => self.also_durable(block, offset, bytes),
                false => self.remember(block)?,
            }
        }
        self.file.write_all_at(bytes, offset)
    }

    /// Everything written so far is durable.
    pub fn flush(&mut self) {
        if let Some(volatile) = &mut self.volatile {
            volatile.durable.clear();
            volatile.order.clear();
        }
    }

    /// Puts back what was not flushed: all of it, or the sectors that the seed says.
    /// Returns how much that was.
    pub fn lose_power(&mut self, seed: Option<u64>) -> io::Result<Bytes> {
        let Some(mut volatile) = self.volatile.take() else { return Ok(Bytes::ZERO) };
        self.volatile = Some(Volatile::default());
        let mut fates = seed.map(|seed| Fates(Random::new(seed)));
        let mut lost = Bytes::ZERO;
        // In the order of the blocks, so that a seed tells the same every time.
        volatile.order.make_contiguous().sort_unstable();
        for block in volatile.order {
            let content = &volatile.durable[&block];
            let sectors = fates.as_mut().map_or([true; SECTORS], Fates::of_a_block);
            for (at, old) in (0..).zip(content.chunks(SECTOR.as_usize())) {
                let start = block * BLOCK as u64 + at as u64 * SECTOR.get();
                let there = self.len.saturating_sub(start).min(SECTOR.get()) as usize;
                if sectors[at] {
                    self.file.write_all_at(&old[..there], start)?;
                    lost += Bytes::new(there as u64);
                }
            }
        }
        Ok(lost)
    }

    /// Keeps the durable content of a block that is about to be overwritten.
    fn remember(&mut self, block: u64) -> io::Result<()> {
        let known = |volatile: &Volatile| volatile.durable.contains_key(&block);
        if self.volatile.as_ref().is_none_or(known) {
            return Ok(());
        }
        let mut content = vec![0; BLOCK].into_boxed_slice();
        self.read(Bytes::new(block * BLOCK as u64), &mut content)?;
        if let Some(volatile) = &mut self.volatile {
            if volatile.order.len() == BLOCKS_MAX
                && let Some(oldest) = volatile.order.pop_front()
            {
                volatile.durable.remove(&oldest);
            }
            volatile.durable.insert(block, content);
            volatile.order.push_back(block);
        }
        Ok(())
    }

    /// Writes the part of `bytes` that lies in a block to its durable content, too.
    fn also_durable(&mut self, block: u64, offset: u64, bytes: &[u8]) {
        let durable = self.volatile.as_mut().and_then(|volatile| volatile.durable.get_mut(&block));
        let Some(durable) = durable else { return };
        let start = block * BLOCK as u64;
        let (first, end) =
            (offset.max(start), (offset + bytes.len() as u64).min(start + BLOCK as u64));
        let part = &bytes[(first - offset) as usize..(end - offset) as usize];
        durable[(first - start) as usize..(end - start) as usize].copy_from_slice(part);
    }
}

/// What a power cut does to the blocks that were not flushed.
struct Fates(Random);

impl Fates {
    /// Which sectors of the next block are lost: a third of the blocks is lost whole, a
    /// third is on the medium, and a third is torn.
    fn of_a_block(&mut self) -> [bool; SECTORS] {
        let fate = self.0.below(3);
        std::array::from_fn(|_| fate == 0 || (fate == 1 && self.0.below(2) == 0))
    }
}

/// The blocks that bytes from `offset` on touch.
fn blocks(offset: u64, len: usize) -> std::ops::Range<u64> {
    offset / BLOCK as u64..(offset + len as u64).div_ceil(BLOCK as u64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A file that nobody else sees.
    pub(crate) fn scratch() -> File {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        rustix::fs::memfd_create("emulator-test", flags).unwrap().into()
    }

    fn content(medium: &Medium, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0xee; len];
        medium.read(Bytes::new(offset), &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_power_cut_takes_back_exactly_what_was_not_flushed() {
        let mut medium = Medium::new(scratch(), Bytes::GIB, true);
        let at = Bytes::new;
        medium.write(at(1_000), &[1; 9_000], false).unwrap();
        medium.flush();
        // Over its end, over parts of its blocks, twice, and where nothing was.
        medium.write(at(9_500), &[2; 1_000], false).unwrap();
        medium.write(at(3_000), &[3; 100], false).unwrap();
        medium.write(at(3_050), &[4; 100], false).unwrap();
        medium.write(at(100_000), &[5; 50], false).unwrap();
        assert_eq!(content(&medium, 3_050, 100), [4; 100], "what was written last");
        assert_eq!(medium.lose_power(None).unwrap(), Bytes::new(3 * 4_096));
        let mut wanted = vec![0; 110_000];
        wanted[1_000..10_000].fill(1);
        assert_eq!(content(&medium, 0, 110_000), wanted);
        assert_eq!(medium.lose_power(None).unwrap(), Bytes::ZERO, "only once");
    }

    #[test]
    fn a_forced_write_survives_beside_unflushed_ones_in_its_block() {
        let mut medium = Medium::new(scratch(), Bytes::GIB, true);
        medium.write(Bytes::ZERO, &[1; 4_096], false).unwrap();
        medium.write(Bytes::new(512), &[2; 512], true).unwrap();
        medium.write(Bytes::new(768), &[3; 512], false).unwrap();
        medium.lose_power(None).unwrap();
        let mut wanted = vec![0; 4_096];
        wanted[512..1_024].fill(2);
        assert_eq!(content(&medium, 0, 4_096), wanted);
    }

    #[test]
    fn a_cut_with_a_seed_loses_some_sectors_and_the_same_ones_each_time() {
        let cut = |seed| {
            let mut medium = Medium::new(scratch(), Bytes::GIB, true);
            medium.write(Bytes::ZERO, &[1; 64 << 12], false).unwrap();
            medium.flush();
            medium.write(Bytes::ZERO, &[2; 60 << 12], false).unwrap();
            let lost = medium.lose_power(Some(seed)).unwrap();
            let bytes = content(&medium, 0, 64 << 12);
            assert_eq!(
                bytes.iter().filter(|&&byte| byte == 1).count() as u64,
                lost.get() + (4 << 12)
            );
            assert!(bytes[60 << 12..].iter().all(|&byte| byte == 1), "that was flushed");
            assert_eq!(medium.lose_power(Some(seed)).unwrap(), Bytes::ZERO, "only once");
            bytes
        };
        let bytes = cut(7);
        let sectors = |block: &[u8]| -> Vec<u8> {
            let sectors = block.chunks(512);
            sectors
                .map(|s| {
                    assert!(s.iter().all(|byte| *byte == s[0]));
                    s[0]
                })
                .collect()
        };
        let blocks: Vec<_> = bytes[..60 << 12].chunks(1 << 12).map(sectors).collect();
        let count = |of: &[u8]| blocks.iter().filter(|&block| block == of).count();
        let (lost, kept) = (count(&[1; 8]), count(&[2; 8]));
        assert!(lost > 8 && kept > 8 && lost + kept < 52, "{lost} lost, {kept} kept, of 60");
        assert_eq!(cut(7), bytes);
        assert_ne!(cut(8), bytes);
    }

    #[test]
    fn without_a_volatile_cache_nothing_is_lost() {
        let mut medium = Medium::new(scratch(), Bytes::GIB, false);
        medium.write(Bytes::new(7), &[1; 10_000], false).unwrap();
        assert_eq!(medium.unflushed(), Bytes::ZERO);
        assert_eq!(medium.lose_power(None).unwrap(), Bytes::ZERO);
        assert_eq!(content(&medium, 7, 10_000), [1; 10_000]);
    }

    #[test]
    fn a_full_buffer_writes_out_what_is_oldest() {
        let mut medium = Medium::new(scratch(), Bytes::GIB, true);
        let piece = vec![9; 1 << 20];
        for n in 0..65 {
            medium.write(Bytes::mib(n), &piece, false).unwrap();
        }
        assert_eq!(medium.lose_power(None).unwrap(), UNFLUSHED_MAX);
        assert_eq!(content(&medium, 0, 1 << 20), piece, "the first mebibyte is out");
        assert_eq!(content(&medium, 1 << 20, 64 << 20), vec![0; 64 << 20]);
    }
}
