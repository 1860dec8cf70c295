//! What a planner of commands knows of a simulated disk: its model.
//!
//! The bridge between [`sched`], which plans, and [`disk`], which knows; neither may
//! use the other.

use disk::{Mechanics, Model};
use sched::Motion;
use units::{Access, Command, Duration, Instant, Lba};

/// A hard disk of which the mechanics are known.
#[derive(Clone, Debug)]
pub struct Known(Mechanics);

impl Known {
    /// The disk of this model; none where nothing moves.
    pub fn of(model: &Model) -> Option<Self> {
        Mechanics::of(model).map(Self)
    }
}

impl sched::Mechanics for Known {
    fn resume(&self, from: Lba, to: Lba) -> Duration {
        self.0.reach(from, to)
    }

    fn motion(&self) -> Option<&dyn Motion> {
        Some(self)
    }
}

impl Motion for Known {
    fn overhead(&self, command: &Command) -> Duration {
        self.0.overhead(command)
    }

    fn end(&self) -> Lba {
        self.0.end()
    }

    fn distance(&self, from: Lba, to: Lba) -> u64 {
        self.0.cylinder(from).abs_diff(self.0.cylinder(to))
    }

    fn between(&self, from: Lba, to: Lba, part: u64, parts: u64) -> Lba {
        let (near, far) = (self.0.cylinder(from), self.0.cylinder(to));
        let way = near.abs_diff(far) * part / parts;
        self.0.on_cylinder(if far >= near { near + way } else { near - way })
    }

    fn seek(&self, from: Lba, to: Lba) -> Duration {
        self.0.seek(from, to)
    }

    fn rotation(&self, at: Instant, lba: Lba) -> Duration {
        self.0.rotation(at, lba)
    }

    fn transfer(&self, access: &Access) -> Duration {
        self.0.transfer(access)
    }

    fn streamed(&self, access: &Access) -> Duration {
        self.0.streamed(access)
    }
}
