//! Microsoft Research Cambridge's format:
//! `date,host,disk,Read|Write,offset,bytes,response`, date and response in units of
//! 100 ns (the date since 1601), offset in bytes. A disk is a host's, `host.disk`.
//!
//! The format does not tell who waits: reads count as waited for, writes do not.

use super::lines::{number, short};
use super::{Disks, Entry, Problem, Record, Recorded, problem};
use units::{Direction, Duration};

pub(super) struct Reader;

/// The direction that a type names.
pub(super) fn direction(text: &str) -> Option<Direction> {
    match text.trim() {
        it if it.eq_ignore_ascii_case("read") => Some(Direction::Read),
        it if it.eq_ignore_ascii_case("write") => Some(Direction::Write),
        _ => None,
    }
}

impl Reader {
    pub fn entry(&mut self, line: &str, disks: &mut Disks) -> Result<Entry, Problem> {
        if line.starts_with("Timestamp,") {
            return Ok(Entry::Nothing); // the names of the columns
        }
        let mut fields = line.split(',');
        let mut field = |what: &str| {
            let missing = || problem(format!("{what} is missing"), "correct or remove the line");
            fields.next().ok_or_else(missing)
        };
        let at = u128::from(number(field("the date")?, "the date")?) * 100;
        let host = field("the host")?.trim();
        let disk = number(field("the disk")?, "the disk")?;
        let kind = field("the type")?;
        let direction = direction(kind).ok_or_else(|| {
            let what = format!("the type is {:?}, neither Read nor Write", short(kind));
            problem(what, "correct or remove the line")
        })?;
        let offset = number(field("the offset")?, "the offset")?;
        let len = number(field("the size")?, "the size")?;
        let done = number(field("the response time")?, "the response time")?;
        let done = Duration::from_nanos(done.saturating_mul(100));
        Ok(Entry::Request(Record {
            at,
            disk: disks.named(&format!("{}.{disk}", short(host)))?,
            offset,
            len,
            direction,
            synchronous: direction == Direction::Read,
            recorded: Some(Recorded { started: None, done, queue: None }),
        }))
    }
}
