//! Hewlett-Packard's SRT format, in which its disk traces of 1992 are (hosts cello,
//! hplajw and snake of the Clockwise thesis, section 3.2.2).
//!
//! A text header that ends with a form feed tells the disks; then come records of
//! big-endian 32-bit words: length in bytes, version (high half) and type (low half),
//! arrival in seconds and microseconds, begin and end of service in microseconds after
//! arrival, bytes, block, device, driver, cylinder, flags, information, and from
//! version 4 on the length of the queue. Blocks are of the disk's own sector size.

use super::lines::{Lines, cut};
use super::{DISKS_MAX, Disks, Entry, Problem, Record, Recorded, problem};
use units::{Bytes, Direction, Duration};

/// How each such file begins.
pub(super) const MAGIC: &[u8] = b"$$TR_IOREC";
/// Ends the header.
const FORM_FEED: u8 = 0x0c;
/// No header is longer.
const HEADER_MAX: u64 = 1 << 20;
/// Words of a request, and of one whose version tells the queue.
const WORDS: usize = 13;
const WORDS_WITH_QUEUE: usize = 14;
/// No record is longer.
const RECORD_MAX: usize = 1 << 12;
/// The type of a completed request. Other types are remarks on requests whose times
/// the recording system doubted.
const REQUEST: u32 = 1;
const FLAG_READ: u32 = 0x1;
const FLAG_ASYNCHRONOUS: u32 = 0x100;

#[derive(Default)]
pub(super) struct Reader {
    begun: bool,
    /// Bytes of a sector, disk by disk.
    sectors: Vec<Option<u64>>,
}

impl Reader {
    pub fn entry(&mut self, input: &mut Lines, disks: &mut Disks) -> Result<Entry, Problem> {
        input.mark();
        if !self.begun {
            self.begun = true;
            return self.header(input, disks);
        }
        let Some(words) = words(input)? else {
            return Ok(Entry::End);
        };
        if words[1] & 0xffff != REQUEST {
            return Ok(Entry::Skipped);
        }
        self.request(&words, disks)
    }

    fn header(&mut self, input: &mut Lines, disks: &mut Disks) -> Result<Entry, Problem> {
        let header = input.until(FORM_FEED, HEADER_MAX)?;
        if !header.starts_with(MAGIC) || header.last() != Some(&FORM_FEED) {
            return Err(problem("no SRT header", "the file is damaged or of another format"));
        }
        for found in headed(&String::from_utf8_lossy(header)) {
            let disk = disks.numbered(found.number)? as usize;
            self.sectors.resize(self.sectors.len().max(disk + 1), None);
            disks.capacities.resize(self.sectors.len(), None);
            self.sectors[disk] = found.get("sectorsize").filter(|size| (1..=65_536).contains(size));
            let sectors = ["nspt", "ntpc", "ncyl"].map(|key| found.get(key));
            let size = sectors
                .into_iter()
                .try_fold(self.sectors[disk].unwrap_or(0), |size, next| size.checked_mul(next?));
            disks.capacities[disk] = size.filter(|&size| size > 0).map(Bytes::new);
        }
        Ok(Entry::Nothing)
    }

    fn request(&self, words: &[u32], disks: &mut Disks) -> Result<Entry, Problem> {
        let [_, _, seconds, us, start, stop, bytes, block, device, _, _, flags] = words[..12]
        else {
            unreachable!("at least {WORDS} words");
        };
        if us >= 1_000_000 {
            let what = format!("an arrival of {us} microseconds after the second");
            return Err(problem(what, "the record is damaged: cut the file before it"));
        }
        let number = device >> 8 & 0xff;
        let sector = self.sectors.get(number as usize).copied().flatten().ok_or_else(|| {
            let what =
                format!("a request for disk {number}, whose sectors the header does not tell");
            problem(what, "give disk and sectorsize in the header")
        })?;
        let us = u64::from(seconds) * 1_000_000 + u64::from(us);
        let after = |us: u32| Duration::from_micros(u64::from(us));
        let queue = words.get(WORDS).copied();
        Ok(Entry::Request(Record {
            at: u128::from(us) * 1_000,
            disk: disks.numbered(u64::from(number))?,
            offset: u64::from(block) * sector,
            len: u64::from(bytes),
            direction: match flags & FLAG_READ {
                0 => Direction::Write,
                _ => Direction::Read,
            },
            synchronous: flags & FLAG_ASYNCHRONOUS == 0,
            recorded: Some(Recorded { started: Some(after(start)), done: after(stop), queue }),
        }))
    }
}

/// The words of the next record; none at the end.
fn words(input: &mut Lines) -> Result<Option<Vec<u32>>, Problem> {
    let Some(head) = input.bytes(8)? else {
        return Ok(None);
    };
    let mut words = as_words(head);
    let (len, version) = (words[0] as usize, words[1] >> 16);
    let least = if version < 4 { WORDS } else { WORDS_WITH_QUEUE } * 4;
    if !(1..=4).contains(&version) || len % 4 != 0 || !(least..=RECORD_MAX).contains(&len) {
        let what = format!("a record of version {version} and {len} bytes");
        return Err(problem(what, "the file is damaged from here on: cut it or fetch it again"));
    }
    words.extend(as_words(input.bytes(len - 8)?.ok_or_else(cut)?));
    words.truncate(if version < 4 { WORDS } else { WORDS_WITH_QUEUE });
    Ok(Some(words))
}

fn as_words(bytes: &[u8]) -> Vec<u32> {
    let word = |it: &[u8]| u32::from_be_bytes([it[0], it[1], it[2], it[3]]);
    bytes.chunks_exact(4).map(word).collect()
}

/// A disk of the header, with its figures by name.
struct Headed<'a> {
    number: u64,
    figures: Vec<(&'a str, u64)>,
}

impl Headed<'_> {
    fn get(&self, name: &str) -> Option<u64> {
        self.figures.iter().find(|(key, _)| *key == name).map(|&(_, value)| value)
    }
}

/// The disks of a header. There `disks = { 0 -> { key = value, ... }, ... }` stands
/// among other settings; values may hold groups in braces.
fn headed(text: &str) -> Vec<Headed<'_>> {
    let spaced = |c: char| c.is_ascii_whitespace() || c == ',' || c == ';';
    let words: Vec<&str> = text
        .split_inclusive(['{', '}', '='])
        .flat_map(|part| match part.char_indices().last() {
            Some((at, '{' | '}' | '=')) => [&part[..at], &part[at..]],
            _ => [part, ""],
        })
        .flat_map(|part| part.split(spaced))
        .filter(|word| !word.is_empty())
        .collect();
    let mut disks: Vec<Headed<'_>> = Vec::new();
    let (mut depth, mut in_disks) = (0usize, false);
    for (index, &word) in words.iter().enumerate() {
        let before = |back: usize| index.checked_sub(back).map_or("", |at| words[at]);
        match word {
            "{" if depth == 0 => (depth, in_disks) = (1, before(2) == "disks"),
            "{" => {
                if let (1, true, "->", Ok(number)) = (depth, in_disks, before(1), before(2).parse())
                    && disks.len() < DISKS_MAX
                {
                    disks.push(Headed { number, figures: Vec::new() });
                }
                depth += 1;
            }
            "}" => depth = depth.saturating_sub(1),
            _ => {
                if let (2, true, "=", Ok(value)) = (depth, in_disks, before(1), word.parse())
                    && let Some(disk) = disks.last_mut()
                {
                    disk.figures.push((before(2), value));
                }
            }
        }
    }
    disks
}
