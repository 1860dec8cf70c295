//! Several ranges of a volume in one call. All are asked for at once, so that the disk serves them in
//! the order that is best for it, and no range waits for the answer to another one.
//!
//! What lies close together goes in one request: ranges that are read, with what lies between them
//! left out; ranges that are written, where one goes on exactly where the other ends.
//!
//! Invariant: no request is outstanding when a call returns.

use super::random::{Random, SECTOR, full};
use super::{File, problem};
use crate::{BestEffort, Result, Tag};
use std::collections::HashMap;
use units::Bytes;
use wire::Code;
use wire::frame::BODY_MAX;

/// So much between two ranges is read with them: it takes less time than a request of its own.
const BETWEEN_MAX: u64 = 16 << 10;

/// Requests of one call under way at the most.
const AT_ONCE_MAX: usize = 32;

/// A range of a volume that is to be read.
#[derive(Debug)]
pub struct ReadRange<'a> {
    /// Where it begins, in bytes from the start of the volume.
    pub place: Bytes,
    /// Where its bytes go.
    pub into: &'a mut [u8],
    /// How many did, from the front on, in bytes: less than all where the volume ends.
    pub filled: usize,
}

impl<'a> ReadRange<'a> {
    /// The bytes at `place`, as many as `into` takes.
    pub fn new(place: Bytes, into: &'a mut [u8]) -> Self {
        Self { place, into, filled: 0 }
    }
}

/// Whether no two of these regions of memory (address and length, in bytes) overlap: for libraries of
/// other languages, whose programs could give one buffer twice.
pub fn are_apart(regions: impl IntoIterator<Item = (usize, usize)>) -> bool {
    let mut regions: Vec<_> = regions.into_iter().filter(|&(_, len)| len > 0).collect();
    regions.sort_unstable();
    regions.windows(2).all(|pair| pair[0].0.saturating_add(pair[0].1) <= pair[1].0)
}

impl File {
    /// Reads several ranges, in any order and of any length, and leaves the cursor where it is; gives
    /// how many bytes there are of all of them ([`ReadRange::filled`] says it of each). They are asked
    /// for at once, as best effort (or under [answers in time](File::set_in_time)) whatever contract the
    /// file has. Ranges may overlap; packets without their headers, a few bytes from each other, are
    /// read together.
    ///
    /// # Errors
    /// The first that came; the other ranges may hold anything then.
    pub fn read_ranges(&mut self, ranges: &mut [ReadRange<'_>]) -> Result<usize> {
        self.may(self.access.read, "reading")?;
        let end = ranges.iter().map(|it| it.place.get().saturating_add(it.into.len() as u64));
        self.see_until(end.max().unwrap_or(0))?;
        for range in ranges.iter_mut() {
            let there = self.recorded.saturating_sub(range.place.get());
            range.filled = range.into.len().min(usize::try_from(there).unwrap_or(usize::MAX));
        }
        self.random.read_ranges(ranges)?;
        Ok(ranges.iter().map(|range| range.filled).sum())
    }

    /// Writes several ranges, each at its place, and leaves the cursor where it is. They are asked for
    /// at once; in which order they are written is not said.
    ///
    /// # Errors
    /// Where two of them overlap, one goes beyond the end of the volume, or the contract is
    /// [for writing alone](File::write_at), before anything is written; the first of a write
    /// otherwise, when some of the others may be written.
    pub fn write_ranges(&mut self, ranges: &[(Bytes, &[u8])]) -> Result<()> {
        self.may(self.access.write, "writing")?;
        self.may_write_anywhere()?;
        self.seen.1.clear();
        let end = self.random.write_ranges(ranges, self.size)?;
        self.recorded = self.recorded.max(end);
        Ok(())
    }
}

/// A part of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// Which range.
    range: usize,
    /// Where the part begins in it.
    from: usize,
    len: usize,
    /// Where it begins in the volume.
    place: u64,
}

/// Parts that go in one request, in order of their places.
#[derive(Debug, PartialEq, Eq)]
struct Together {
    start: u64,
    end: u64,
    parts: Vec<Part>,
}

/// Puts together what lies no further apart than `between`, at most [`BODY_MAX`] from whole sectors on.
fn together(ranges: impl Iterator<Item = (u64, usize)>, between: u64) -> Vec<Together> {
    let mut parts = Vec::new();
    for (range, (place, len)) in ranges.enumerate() {
        let mut from = 0;
        while from < len {
            let place = place + from as u64;
            let len = (len - from).min(BODY_MAX - (place % SECTOR) as usize);
            parts.push(Part { range, from, len, place });
            from += len;
        }
    }
    parts.sort_by_key(|part| part.place);
    let mut all: Vec<Together> = Vec::new();
    for part in parts {
        let end = part.place + part.len as u64;
        match all.last_mut() {
            Some(last)
                if part.place <= last.end.saturating_add(between)
                    && end - last.start / SECTOR * SECTOR <= BODY_MAX as u64 =>
            {
                last.end = last.end.max(end);
                last.parts.push(part);
            }
            _ => all.push(Together { start: part.place, end, parts: vec![part] }),
        }
    }
    all
}

impl Random {
    /// Reads the front of each range, as much as is said to be filled.
    fn read_ranges(&mut self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        if self.is_plain() {
            return ranges.iter_mut().try_for_each(|range| {
                let filled = range.filled;
                self.read_exact(range.place.get(), &mut range.into[..filled])
            });
        }
        let wanted = ranges.iter().map(|range| (range.place.get(), range.filled));
        let all = together(wanted, BETWEEN_MAX);
        self.at_once(
            &all,
            |connection, it| {
                let start = it.start / SECTOR * SECTOR;
                let len = it.end.next_multiple_of(SECTOR) - start;
                connection.begin_read(Bytes::new(start), Bytes::new(len))
            },
            |it, bytes| {
                for part in &it.parts {
                    let at = (part.place - it.start / SECTOR * SECTOR) as usize;
                    let into = &mut ranges[part.range].into[part.from..][..part.len];
                    into.copy_from_slice(&bytes[at..][..part.len]);
                }
            },
        )
    }

    /// Writes all ranges, and gives where the last one ends.
    fn write_ranges(&mut self, ranges: &[(Bytes, &[u8])], size: u64) -> Result<u64> {
        let ranges: Vec<_> = ranges.iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
        let end_of = |(place, bytes): &(Bytes, &[u8])| {
            place.get().checked_add(bytes.len() as u64).filter(|&end| end <= size)
        };
        let ends: Option<Vec<u64>> = ranges.iter().map(|range| end_of(range)).collect();
        let Some(end) = ends.map(|ends| ends.into_iter().max().unwrap_or(0)) else {
            return Err(full(size));
        };
        let all = together(ranges.iter().map(|(place, bytes)| (place.get(), bytes.len())), 0);
        let parts = || all.iter().flat_map(|it| &it.parts);
        let overlap = parts()
            .zip(parts().skip(1))
            .find(|(one, next)| one.place + one.len as u64 > next.place);
        if let Some((_, next)) = overlap {
            let what = format!("two ranges overlap at byte {}", next.place);
            return Err(problem(Code::Invalid, what, "write one after the other"));
        }
        self.wrote();
        let bytes = |part: &Part| &ranges[part.range].1[part.from..][..part.len];
        self.at_once(
            &all,
            |connection, it| match &it.parts[..] {
                [alone] => connection.begin_write(Bytes::new(it.start), bytes(alone)),
                parts => {
                    let gathered: Vec<u8> = parts.iter().flat_map(bytes).copied().collect();
                    connection.begin_write(Bytes::new(it.start), &gathered)
                }
            },
            |_, _| {},
        )?;
        Ok(end)
    }

    /// Begins a request for each of `all`, and hands what comes to `done`.
    fn at_once(
        &mut self,
        all: &[Together],
        begin: impl Fn(&mut BestEffort, &Together) -> Result<Tag>,
        mut done: impl FnMut(&Together, &[u8]),
    ) -> Result<()> {
        let connection = self.connection()?;
        let (mut left, mut under_way) = (all.iter(), HashMap::new());
        let mut failed = Ok(());
        let mut go_on = || {
            loop {
                while connection.outstanding() < AT_ONCE_MAX
                    && failed.is_ok()
                    && let Some(next) = left.next()
                {
                    under_way.insert(begin(connection, next)?, next);
                }
                if connection.outstanding() == 0 {
                    return Ok(());
                }
                let ended = connection.take()?;
                let of = under_way.remove(&ended.tag).expect("what was asked for");
                match ended.result {
                    Ok(bytes) => done(of, &bytes),
                    Err(error) if failed.is_ok() => failed = Err(error),
                    Err(_) => {}
                }
            }
        };
        let ended = go_on();
        if ended.is_err() {
            self.forget_connection(); // what is under way on it is nobody's any more
        }
        ended.and(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(ranges: &[(u64, usize)], between: u64) -> Vec<(u64, u64, usize)> {
        let all = together(ranges.iter().copied(), between);
        // Each byte of each range is in one part, at its place.
        let mut seen: Vec<Vec<bool>> = ranges.iter().map(|&(_, len)| vec![false; len]).collect();
        for it in &all {
            assert!(it.end - it.start / SECTOR * SECTOR <= BODY_MAX as u64);
            for part in &it.parts {
                assert_eq!(ranges[part.range].0 + part.from as u64, part.place);
                assert!(it.start <= part.place && part.place + part.len as u64 <= it.end);
                for byte in &mut seen[part.range][part.from..][..part.len] {
                    assert!(!std::mem::replace(byte, true));
                }
            }
        }
        assert!(seen.iter().flatten().all(|&byte| byte));
        all.iter().map(|it| (it.start, it.end, it.parts.len())).collect()
    }

    #[test]
    fn memory_given_twice_is_seen() {
        assert!(are_apart([(10, 5), (15, 1), (0, 10), (12, 0)]));
        assert!(!are_apart([(10, 5), (14, 1)]));
        assert!(!are_apart([(10, 5), (10, 5)]));
        assert!(!are_apart([(usize::MAX - 1, 2), (usize::MAX, 2)]));
    }

    #[test]
    fn what_lies_close_together_goes_in_one_request() {
        assert_eq!(runs(&[], 0), []);
        assert_eq!(runs(&[(5, 0), (9, 1)], 0), [(9, 10, 1)]);
        // Packets without their headers.
        let packets: Vec<_> = (0..100).map(|at| (at * 188 + 4, 184)).collect();
        assert_eq!(runs(&packets, BETWEEN_MAX), [(4, 18_800, 100)]);
        assert_eq!(runs(&packets, 3).len(), 100);
        assert_eq!(runs(&packets, 4).len(), 1);
        // In any order, overlapping, one within the other.
        assert_eq!(runs(&[(100, 50), (0, 120), (10, 5)], 0), [(0, 150, 3)]);
        assert_eq!(runs(&[(100_000, 1), (0, 1)], BETWEEN_MAX), [(0, 1, 1), (100_000, 100_001, 1)]);
        // No longer than a request may be.
        const MAX: u64 = BODY_MAX as u64;
        assert_eq!(runs(&[(0, BODY_MAX), (MAX, 1)], 0), [(0, MAX, 1), (MAX, MAX + 1, 1)]);
        assert_eq!(runs(&[(1, BODY_MAX)], 0), [(1, MAX, 1), (MAX, MAX + 1, 1)]);
        assert_eq!(runs(&[(4_095, 2 * BODY_MAX)], 0).len(), 3);
    }
}
