//! Any drive at work, whatever is in it.

use crate::{Drive, Flash, HardDisk, Model};
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
}

impl Drive for Emulated {
    fn serve(&mut self, start: Instant, command: &Command) -> Duration {
        match self {
            Self::HardDisk(disk) => disk.serve(start, command),
            Self::Flash(flash) => flash.serve(start, command),
        }
    }
}
