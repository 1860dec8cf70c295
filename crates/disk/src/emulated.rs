//! Any drive at work, whatever is in it.

use crate::{Bus, Drive, Flash, HardDisk, Model};
use alloc::boxed::Box;
use units::{Command, Duration, Instant};

/// A [`Model`] of any kind at work.
#[derive(Clone, Debug)]
pub enum Emulated {
    /// Platters and an arm.
    HardDisk(Box<HardDisk>),
    /// No moving parts.
    Flash(Box<Flash>),
}

impl Emulated {
    /// A drive of that model, at rest.
    pub fn new(model: &Model) -> Self {
        if model.is_hard_disk() {
            Self::HardDisk(Box::new(HardDisk::new(model)))
        } else {
            Self::Flash(Box::new(Flash::new(model)))
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        match self {
            Self::HardDisk(disk) => disk.model(),
            Self::Flash(flash) => flash.model(),
        }
    }

    /// The time of `command` with access to the medium forced; a flash device has
    /// no other.
    pub fn serve_forced(&mut self, start: Instant, command: &Command) -> Duration {
        match self {
            Self::HardDisk(disk) => disk.serve_forced(start, command),
            Self::Flash(flash) => flash.serve(start, command),
        }
    }

    /// The time of `command` on a bus that other disks use, too; a flash device has one
    /// for itself. Commands of all disks of the bus come in order of their start.
    pub fn serve_sharing(&mut self, bus: &mut Bus, start: Instant, command: &Command) -> Duration {
        match self {
            Self::HardDisk(disk) => disk.serve_sharing(bus, start, command),
            Self::Flash(flash) => flash.serve(start, command),
        }
    }

    /// The hard disk, where it is one: to spoil its sectors or cut its power.
    pub fn hard_disk_mut(&mut self) -> Option<&mut HardDisk> {
        match self {
            Self::HardDisk(disk) => Some(disk),
            Self::Flash(_) => None,
        }
    }
}

impl Drive for Emulated {
    fn serve(&mut self, start: Instant, command: &Command) -> Duration {
        match self {
            Self::HardDisk(disk) => disk.serve(start, command),
            Self::Flash(flash) => flash.serve(start, command),
        }
    }
}
