//! Loads that nobody recorded, made by the generators of [`crate::workload`].

use super::plan::MakeSource;
use crate::workload::people::{self, Ground};
use crate::workload::{Source, cello};
use std::fmt;
use units::{Bytes, Duration, Lba};

/// What the generators need at least.
const ROOM_MIN: Bytes = Bytes::mib(64);

/// A load like that of somebody.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Like {
    /// A file system at work, with so many operations a second.
    FileSystem(u64),
    /// A virtual machine, with so many requests a second.
    VirtualMachine(u64),
    /// A person who drags through a movie.
    Scrubbing,
    /// The file server cello of 1992, this one of its disks, on the afternoon
    /// that the thesis plays.
    Cello(u32),
}

impl fmt::Debug for Like {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileSystem(per_second) => write!(f, "like a file system, {per_second}/s"),
            Self::VirtualMachine(per_second) => {
                write!(f, "like a virtual machine, {per_second}/s")
            }
            Self::Scrubbing => f.write_str("like a person who drags through a movie"),
            Self::Cello(disk) => write!(f, "like disk {disk} of the file server cello"),
        }
    }
}

impl MakeSource for Like {
    fn source(&self, seed: u64, space: Bytes) -> Result<Box<dyn Source>, String> {
        if space < ROOM_MIN {
            return Err(format!("a volume of {space} is too small: {ROOM_MIN} are needed"));
        }
        let ground = || Ground { disk: 0, place: Lba::new(0)..Lba::containing(space) };
        Ok(match *self {
            Self::FileSystem(per_second) => {
                Box::new(people::file_system(ground(), per_second, seed))
            }
            Self::VirtualMachine(per_second) => {
                Box::new(people::virtual_machine(ground(), per_second, seed))
            }
            Self::Scrubbing => Box::new(people::scrubbing(ground(), seed)),
            Self::Cello(disk) => {
                let days = Duration::from_secs(86_400 * u64::from(cello::figures::DAYS));
                let part = cello::figures::WINDOW.start..days;
                Box::new(cello::Cello::new(seed, space).disk(disk, part))
            }
        })
    }
}
