//! What `blkparse` prints by default: device, processor, sequence, seconds, process,
//! action, kind, and for requests `sector + sectors [program]`. Sectors have 512 bytes
//! whatever the disk's are.

use super::lines::{number, seconds, short};
use super::{Disks, Entry, Problem, Record, problem};
use units::Direction;

pub(super) struct Reader {
    /// The action that counts as a request.
    action: char,
}

/// A device as major and minor number.
pub(super) fn is_device(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(',').is_some_and(|(major, minor)| digits(major) && digits(minor))
}

impl Reader {
    pub fn new(action: char) -> Self {
        Self { action }
    }

    pub fn entry(&mut self, line: &str, disks: &mut Disks) -> Result<Entry, Problem> {
        let mut words = line.split_ascii_whitespace();
        let device = words.next().unwrap_or_default();
        if device.starts_with("CPU") || device.starts_with("Total") {
            return Ok(Entry::End); // the totals that blkparse prints at the end
        }
        if !is_device(device) {
            let what = format!("{:?} is no device number as in 8,0", short(device));
            return Err(problem(
                what,
                "use blkparse's default format and correct or remove the line",
            ));
        }
        let mut word = |what: &str| {
            let missing = || problem(format!("{what} is missing"), "correct or remove the line");
            words.next().ok_or_else(missing)
        };
        number(word("the processor")?, "the processor")?;
        number(word("the sequence number")?, "the sequence number")?;
        let at = seconds(word("the time")?)?;
        number(word("the process")?, "the process")?;
        let action = word("the action")?;
        if !action.chars().eq([self.action]) {
            return Ok(Entry::Nothing); // another step in the life of a request
        }
        let kind = word("the kind of request")?;
        let direction = match (kind.contains('D'), kind.contains('R'), kind.contains('W')) {
            (false, true, false) => Direction::Read,
            (false, false, true) => Direction::Write,
            _ => return Ok(Entry::Skipped), // discards, flushes, commands of other kinds
        };
        let sector = word("the sector")?;
        if sector.starts_with('[') {
            return Ok(Entry::Skipped); // only the program: nothing moves, as with a flush
        }
        if word("the number of sectors")? != "+" {
            return Ok(Entry::Skipped); // a command that was passed through
        }
        let bytes = |sectors: u64| sectors.saturating_mul(512);
        Ok(Entry::Request(Record {
            at,
            disk: disks.named(device)?,
            offset: bytes(number(sector, "the sector")?),
            len: bytes(number(word("the number of sectors")?, "the number of sectors")?),
            direction,
            // Somebody waits for a read unless it reads ahead; for a write that says so.
            synchronous: match direction {
                Direction::Read => !kind.contains('A'),
                Direction::Write => kind.contains('S'),
            },
            recorded: None,
        }))
    }
}
