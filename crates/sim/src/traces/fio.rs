//! fio's log of a job. Version 2: `file action [offset length]`, with the time between
//! requests as the action `wait` (us since the wait before). Version 3 puts a time (us
//! since the begin) before each line and has no waits.
//!
//! A log does not tell who waits: fio's own jobs wait for each answer unless they keep
//! several requests outstanding, so reads count as waited for and writes do not.

use super::lines::{number, short};
use super::{Disks, Entry, Problem, Record, problem};
use units::Direction;

#[derive(Default)]
pub(super) struct Reader {
    version: Option<Version>,
    /// The waits so far, in us.
    waited: u128,
}

#[derive(Clone, Copy, PartialEq)]
enum Version {
    Two,
    Three,
}

impl Reader {
    pub fn entry(&mut self, line: &str, disks: &mut Disks) -> Result<Entry, Problem> {
        let Some(version) = self.version else {
            self.version = Some(match line {
                "fio version 2 iolog" => Version::Two,
                "fio version 3 iolog" => Version::Three,
                _ => {
                    let what = format!("the file begins with {:?}", short(line));
                    return Err(problem(what, "\"fio version 2 iolog\" or 3 comes first"));
                }
            });
            return Ok(Entry::Nothing);
        };
        let mut words = line.split_ascii_whitespace();
        let mut word = |what: &str| {
            let missing = || problem(format!("{what} is missing"), "correct or remove the line");
            words.next().ok_or_else(missing)
        };
        let at = match version {
            Version::Two => None,
            Version::Three => Some(u128::from(number(word("the time")?, "the time")?)),
        };
        let disk = disks.named(word("the file")?)?;
        let action = word("the action")?;
        let direction = match action {
            "read" => Direction::Read,
            "write" => Direction::Write,
            "add" | "open" | "close" => return Ok(Entry::Nothing),
            "sync" | "datasync" | "sync_file_range" | "trim" => return Ok(Entry::Skipped),
            "wait" if version == Version::Two => {
                self.waited += u128::from(number(word("the wait")?, "the wait")?);
                return Ok(Entry::Nothing);
            }
            _ => {
                let what = format!("{:?} is no action of this version", short(action));
                return Err(problem(what, "correct or remove the line"));
            }
        };
        Ok(Entry::Request(Record {
            at: at.unwrap_or(self.waited).saturating_mul(1_000),
            disk,
            offset: number(word("the offset")?, "the offset")?,
            len: number(word("the length")?, "the length")?,
            direction,
            synchronous: direction == Direction::Read,
            recorded: None,
        }))
    }
}
