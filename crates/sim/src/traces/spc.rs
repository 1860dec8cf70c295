//! The Storage Performance Council's format: `unit,address,bytes,opcode,seconds[,...]`.
//! The unit is a logical disk, the address counts blocks of a size that the file's
//! description tells (512 bytes in the traces in circulation), the opcode is R or W.
//!
//! The format does not tell who waits: reads count as waited for, writes do not.

use super::lines::{number, seconds, short};
use super::{Disks, Entry, Problem, Record, problem};
use units::{Bytes, Direction};

pub(super) struct Reader {
    block: Bytes,
}

/// The direction that an opcode names.
pub(super) fn direction(opcode: &str) -> Option<Direction> {
    match opcode.trim() {
        "R" | "r" => Some(Direction::Read),
        "W" | "w" => Some(Direction::Write),
        _ => None,
    }
}

impl Reader {
    pub fn new(block: Bytes) -> Self {
        Self { block }
    }

    pub fn entry(&mut self, line: &str, disks: &mut Disks) -> Result<Entry, Problem> {
        let mut fields = line.split(',');
        let mut field = |what: &str| {
            let missing = || problem(format!("{what} is missing"), "correct or remove the line");
            fields.next().ok_or_else(missing)
        };
        let disk = disks.numbered(number(field("the unit")?, "the unit")?)?;
        let block = number(field("the address")?, "the address")?;
        let len = number(field("the size")?, "the size")?;
        let opcode = field("the opcode")?;
        let direction = direction(opcode).ok_or_else(|| {
            let what = format!("the opcode is {:?}, neither R nor W", short(opcode));
            problem(what, "correct or remove the line")
        })?;
        Ok(Entry::Request(Record {
            at: seconds(field("the time")?)?,
            disk,
            offset: block.saturating_mul(self.block.get()),
            len,
            direction,
            synchronous: direction == Direction::Read,
            recorded: None,
        }))
    }
}
