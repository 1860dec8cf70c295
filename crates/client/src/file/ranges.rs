//! Several ranges of a volume in one call. All are asked for at once, so that the disk serves them in
//! the order that is best for it, and no range waits for the answer to another one.
//!
//! What lies close together goes in one request: ranges that are read, with what lies between them
//! left out; ranges that are written, where one goes on exactly where the other ends.
//!
//! Invariant: no request is outstanding when a call returns.

use super::random::{Random, SECTOR, full};
use super::{File, problem};
use crate::best_effort::unequal;
use crate::{BestEffort, Error, Result, Tag};
use std::collections::{HashMap, VecDeque};
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
    regions
        .windows(2)
        .all(|pair| pair[0].0.checked_add(pair[0].1).is_some_and(|end| end <= pair[1].0))
}

impl File {
    /// Reads several ranges, in any order and of any length, and leaves the cursor where it is; gives
    /// how many bytes there are of all of them ([`ReadRange::filled`] says it of each). They are asked
    /// for at once, as best effort (or under [answers in time](File::set_in_time)) whatever contract the
    /// file has. Ranges may overlap; packets without their headers, a few bytes from each other, are
    /// read together.
    ///
    /// # Errors
    /// Where it is open for updating under a contract; else the first that came, when the other ranges
    /// may hold anything.
    pub fn read_ranges(&mut self, ranges: &mut [ReadRange<'_>]) -> Result<usize> {
        self.may(self.access.read, "reading")?;
        if self.updates()? {
            let what = "a file that updates may have changed what it would read in its window";
            return Err(problem(Code::WrongMode, what, "read each range by itself, with read_at"));
        }
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
    /// Where two of them overlap, one goes beyond the end of the volume, or a contract of the file is
    /// for writing, before anything is written; the first of a write otherwise, when some of the
    /// others may be written.
    pub fn write_ranges(&mut self, ranges: &[(Bytes, &[u8])]) -> Result<()> {
        self.may(self.access.write, "writing")?;
        if self.writes_under_contract()? {
            let what = "a contract for writing is kept at one place at a time";
            return Err(problem(
                Code::WrongMode,
                what,
                "write each range by itself, with write_at",
            ));
        }
        self.seen.forget();
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

impl Together {
    fn alone(part: Part) -> Self {
        Self { start: part.place, end: part.place + part.len as u64, parts: vec![part] }
    }

    /// The whole sectors around it: where they begin, and how many bytes they are.
    fn sectors(&self) -> (u64, u64) {
        let start = self.start / SECTOR * SECTOR;
        (start, self.end.next_multiple_of(SECTOR) - start)
    }
}

/// Which part goes in one request with those before it.
#[derive(Clone, Copy, Debug)]
enum Close {
    /// One that begins where they end, or before.
    Touching,
    /// And one that begins in the sector in which they end.
    InSector,
    /// And one that begins no more than so many bytes behind their end.
    Within(u64),
}

impl Close {
    fn holds(self, end: u64, place: u64) -> bool {
        place <= end
            || match self {
                Self::Touching => false,
                Self::InSector => place / SECTOR == (end - 1) / SECTOR,
                Self::Within(between) => place - end <= between,
            }
    }
}

/// Puts together what lies close, at most `most` bytes, a multiple of sectors, from whole sectors on.
fn together(
    ranges: impl Iterator<Item = (u64, usize)>,
    close: Close,
    most: usize,
) -> Vec<Together> {
    let mut parts = Vec::new();
    for (range, (place, len)) in ranges.enumerate() {
        let mut from = 0;
        while from < len {
            let place = place + from as u64;
            let len = (len - from).min(most - (place % SECTOR) as usize);
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
                if close.holds(last.end, part.place)
                    && end - last.start / SECTOR * SECTOR <= most as u64 =>
            {
                last.end = last.end.max(end);
                last.parts.push(part);
            }
            _ => all.push(Together::alone(part)),
        }
    }
    all
}

impl Random {
    /// Reads the front of each range, as much as is said to be filled.
    fn read_ranges(&mut self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        if self.is_plain() {
            return ranges.iter_mut().try_for_each(|range| {
                let into = &mut range.into[..range.filled];
                range.filled = self.read_full(range.place.get(), into)?;
                Ok(())
            });
        }
        let wanted = ranges.iter().map(|range| (range.place.get(), range.filled));
        // Under answers in time each operation has its turn: nothing is read that nobody asked for.
        let (close, most) = match self.in_time() {
            None => (Close::Within(BETWEEN_MAX), BODY_MAX),
            Some(contract) => (Close::InSector, contract.len.as_usize().clamp(4096, BODY_MAX)),
        };
        let all = together(wanted, close, most);
        self.at_once(
            all,
            Retry::Apart,
            |connection, it| {
                let (start, len) = it.sectors();
                connection.begin_read(Bytes::new(start), Bytes::new(len))
            },
            |it, bytes| {
                let (start, len) = it.sectors();
                if bytes.len() as u64 != len {
                    return Err(unequal(bytes.len(), len as usize));
                }
                for part in &it.parts {
                    let into = &mut ranges[part.range].into[part.from..][..part.len];
                    into.copy_from_slice(&bytes[(part.place - start) as usize..][..part.len]);
                }
                Ok(())
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
        let given = ranges.iter().map(|(place, bytes)| (place.get(), bytes.len()));
        let all = together(given, Close::Touching, BODY_MAX);
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
            all,
            Retry::No,
            |connection, it| match &it.parts[..] {
                [alone] => connection.begin_write(Bytes::new(it.start), bytes(alone)),
                parts => {
                    let gathered: Vec<u8> = parts.iter().flat_map(bytes).copied().collect();
                    connection.begin_write(Bytes::new(it.start), &gathered)
                }
            },
            |_, _| Ok(()),
        )?;
        Ok(end)
    }

    /// Begins a request for each of `all`, and hands what comes to `done`.
    fn at_once(
        &mut self,
        all: Vec<Together>,
        retry: Retry,
        begin: impl Fn(&mut BestEffort, &Together) -> Result<Tag>,
        mut done: impl FnMut(&Together, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let connection = self.connection()?;
        let (mut left, mut under_way) = (VecDeque::from(all), HashMap::new());
        let mut failed = Ok(());
        let mut go_on = || {
            loop {
                while connection.outstanding() < AT_ONCE_MAX
                    && failed.is_ok()
                    && let Some(next) = left.pop_front()
                {
                    under_way.insert(begin(connection, &next)?, next);
                }
                if connection.outstanding() == 0 {
                    return Ok(());
                }
                let ended = connection.take()?;
                let Some(of) = under_way.remove(&ended.tag) else {
                    let what = format!("an answer to {:?}, which was not asked", ended.tag);
                    return Err(Error::Garbled(what));
                };
                match ended.result {
                    Ok(bytes) => done(&of, &bytes)?,
                    // What cannot be read may be what nobody wants.
                    Err(_) if retry == Retry::Apart && of.parts.len() > 1 => {
                        left.extend(of.parts.into_iter().map(Together::alone));
                    }
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

/// Whether the parts of a request that fails are asked for again, each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    No,
    Apart,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;
    use std::io::{Read, Write};
    use std::ops::Range;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::Path;
    use std::thread::JoinHandle;
    use tempfile::TempDir;
    use wire::frame::{HEAD_LEN, Head, VERSION};

    fn runs(ranges: &[(u64, usize)], close: Close) -> Vec<(u64, u64, usize)> {
        let all = together(ranges.iter().copied(), close, BODY_MAX);
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

    /// Another program may cut it at any time.
    #[test]
    fn a_file_outside_the_pool_that_was_cut_gives_what_is_left() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(5_000).unwrap();
        let mut random = Random::of_file(Client::at(Path::new("nowhere")), file);
        let mut memory = [[1; 100]; 3];
        let places = [4_900, 4_950, 9_000];
        let mut ranges: Vec<_> = memory
            .iter_mut()
            .zip(places)
            .map(|(into, place)| ReadRange {
                filled: 100,
                ..ReadRange::new(Bytes::new(place), into)
            })
            .collect();
        random.read_ranges(&mut ranges).unwrap();
        assert_eq!(ranges.iter().map(|range| range.filled).collect::<Vec<_>>(), [100, 50, 0]);
    }

    /// Plays the daemon to one connection: reads fail that have sectors of `bad`, others give 7, until
    /// so many were answered; with the next one it goes. Gives the length of each read.
    fn serve(listener: &UnixListener, bad: Range<u64>, answers: usize) -> Vec<u64> {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = [0; HEAD_LEN];
        let mut read = |socket: &mut UnixStream| {
            socket.read_exact(&mut head).unwrap();
            let (head, len) = Head::decode(&head).unwrap();
            socket.read_exact(&mut vec![0; len]).unwrap();
            head
        };
        read(&mut socket);
        let (offset, len) = (Bytes::ZERO, Bytes::MIB);
        socket.write_all(&Head::Welcome { version: VERSION, offset, len }.encode(0)).unwrap();
        let mut asked = Vec::new();
        while asked.len() < answers {
            let Head::ReadAt { tag, offset, len } = read(&mut socket) else { panic!("a read") };
            asked.push(len.get());
            let is_bad = offset.get() < bad.end && bad.start < (offset + len).get();
            let (head, body) = match is_bad {
                true => (Head::Failed { tag, code: Code::Device }, vec![b'\n'; 1]),
                false => (Head::ReadDone { tag }, vec![7; len.as_usize()]),
            };
            socket.write_all(&[&head.encode(body.len())[..], &body].concat()).unwrap();
        }
        let _ = socket.read(&mut [0]); // the next one, which it has when it goes
        asked
    }

    fn served(bad: Range<u64>, answers: usize) -> (Random, JoinHandle<Vec<u64>>, TempDir) {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let control = dir.path().join("s.sock");
        let listener = UnixListener::bind(wire::socket::data_path(&control)).unwrap();
        let daemon = std::thread::spawn(move || serve(&listener, bad, answers));
        (Random::new(Client::at(&control), "v".into()), daemon, dir)
    }

    fn read(random: &mut Random, places: &[u64]) -> Result<bool> {
        let mut memory = vec![[1; 100]; places.len()];
        let wanted = memory.iter_mut().zip(places);
        let mut ranges: Vec<_> = wanted
            .map(|(into, &place)| ReadRange {
                filled: 100,
                ..ReadRange::new(Bytes::new(place), into)
            })
            .collect();
        random.read_ranges(&mut ranges)?;
        Ok(memory.iter().flatten().all(|&byte| byte == 7))
    }

    #[test]
    fn what_cannot_be_read_between_two_ranges_fails_neither() {
        let (mut random, daemon, _dir) = served(4_096..8_192, 3);
        assert!(read(&mut random, &[0, 8_192]).unwrap());
        drop(random);
        assert_eq!(daemon.join().unwrap(), [12_288, 4_096, 4_096]);
        // What was asked for fails.
        let (mut random, daemon, _dir) = served(4_096..8_192, 4);
        let error = read(&mut random, &[0, 5_000, 8_192]).unwrap_err();
        assert_eq!(error.code(), Some(Code::Device));
        drop(random);
        assert_eq!(daemon.join().unwrap(), [12_288, 4_096, 4_096, 4_096]);
    }

    #[test]
    fn a_daemon_that_has_gone_is_an_error_each_time() {
        let (mut random, daemon, _dir) = served(0..0, 2);
        assert!(read(&mut random, &[0, 900_000]).unwrap());
        // By the thread that takes the answers, which is there from now on.
        for _ in 0..3 {
            assert!(random.read(0, &mut [0; 4_096]).is_err());
        }
        assert_eq!(daemon.join().unwrap(), [4_096; 2]);
        assert!(read(&mut random, &[0, 900_000]).is_err());
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
        assert_eq!(runs(&[], Close::Touching), []);
        assert_eq!(runs(&[(5, 0), (9, 1)], Close::Touching), [(9, 10, 1)]);
        // Packets without their headers.
        let packets: Vec<_> = (0..100).map(|at| (at * 188 + 4, 184)).collect();
        assert_eq!(runs(&packets, Close::Within(BETWEEN_MAX)), [(4, 18_800, 100)]);
        assert_eq!(runs(&packets, Close::Within(3)).len(), 100);
        assert_eq!(runs(&packets, Close::Within(4)).len(), 1);
        // Each of these begins in the sector in which the one before it ends.
        assert_eq!(runs(&packets, Close::InSector), [(4, 18_800, 100)]);
        assert_eq!(runs(&[(0, 10), (4_000, 96), (4_096, 4), (9_000, 1)], Close::InSector).len(), 2);
        let short: Vec<_> = together([(1, 9_000)].into_iter(), Close::InSector, 4_096);
        let places: Vec<_> = short.iter().map(|it| (it.start, it.end)).collect();
        assert_eq!(places, [(1, 4_096), (4_096, 8_192), (8_192, 9_001)]);
        // In any order, overlapping, one within the other.
        assert_eq!(runs(&[(100, 50), (0, 120), (10, 5)], Close::Touching), [(0, 150, 3)]);
        assert_eq!(
            runs(&[(100_000, 1), (0, 1)], Close::Within(BETWEEN_MAX)),
            [(0, 1, 1), (100_000, 100_001, 1)]
        );
        // No longer than a request may be.
        const MAX: u64 = BODY_MAX as u64;
        assert_eq!(
            runs(&[(0, BODY_MAX), (MAX, 1)], Close::Touching),
            [(0, MAX, 1), (MAX, MAX + 1, 1)]
        );
        assert_eq!(runs(&[(1, BODY_MAX)], Close::Touching), [(1, MAX, 1), (MAX, MAX + 1, 1)]);
        assert_eq!(runs(&[(4_095, 2 * BODY_MAX)], Close::Touching).len(), 3);
    }
}
