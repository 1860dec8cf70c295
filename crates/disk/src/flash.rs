//! A flash device at work: commands overlap in its pipeline, share its device
//! time, and stand still together while it clears blocks.

use crate::model::{FlashModel, Mechanism};
use crate::random::Random;
use crate::{Drive, Model};
use units::{Access, Bytes, Command, Direction, Duration, Instant};

/// A [`Model`] of a flash device at work.
///
/// The device is a server of cost: each command takes its cost in order of
/// arrival, then leaves after a latency in which others are served.
#[derive(Clone, Debug)]
pub struct Flash {
    model: Model,
    flash: FlashModel,
    random: Random,
    /// When all device time that was given out has been spent.
    free_at: Instant,
    /// Written since blocks were last cleared.
    written: Bytes,
}

impl Flash {
    /// A device of that model. Panics where the model is no flash device;
    /// [`Emulated`](crate::Emulated) takes any.
    pub fn new(model: &Model) -> Self {
        let Mechanism::Flash(flash) = &model.kind else {
            panic!("a model of a flash device; Emulated takes any")
        };
        Self {
            model: model.clone(),
            flash: flash.clone(),
            random: Random::new(flash.seed),
            free_at: Instant::EPOCH,
            written: Bytes::ZERO,
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The time of `command`, given at `start` whether or not others are under
    /// way. Calls come in order of `start`; the device takes in as many commands
    /// at once as its profile's depth says, which the caller sees to.
    pub fn submit(&mut self, start: Instant, command: &Command) -> Duration {
        let begin = start.max(self.free_at);
        let latency = match command {
            Command::Flush => {
                self.free_at = begin + self.flash.flush;
                Duration::ZERO
            }
            // Nothing moves.
            Command::Seek(_) => return Duration::ZERO,
            Command::Transfer(access) | Command::Forced(access) => self.transfer(begin, access),
        };
        self.free_at + latency - start
    }

    fn transfer(&mut self, begin: Instant, access: &Access) -> Duration {
        let end = access.end().offset();
        assert!(!access.len.is_zero() && end <= self.flash.capacity, "an access outside the disk");
        let (line, latency) = match access.direction {
            Direction::Read => (self.flash.read, self.flash.read_latency),
            Direction::Write => (self.flash.write, self.flash.write_latency),
        };
        self.free_at = begin + line.cost(access.len);
        if access.direction == Direction::Write {
            self.written += access.len;
            if self.written >= self.flash.collect_every {
                self.written = Bytes::new(self.written.get() % self.flash.collect_every.get());
                let half = self.flash.collect_stall / 2;
                self.free_at += self.flash.collect_stall - half + self.random.up_to(half);
            }
        }
        latency + self.random.up_to(self.flash.spread)
    }
}

impl Drive for Flash {
    fn serve(&mut self, start: Instant, command: &Command) -> Duration {
        self.submit(start, command)
    }
}
