//! A measuring session: reads at wanted places, hidden from the disk's cache.
//!
//! Invariant: places are drawn from a fixed seed, so that a session with the same
//! answers asks the same questions.

use super::desk::{Ask, Desk, Stop};
use super::question::{COMMAND_MAX, Effort, Options, Question, Timing};
use super::turn::Turn;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use units::{Access, Bytes, Command, Direction, Duration, Lba, SECTOR};

/// The most far reads made to push one place out of a cache.
const EVICT_MAX: u64 = 512;

pub(super) struct Session {
    desk: Rc<RefCell<Desk>>,
    random: u64,
    /// Sectors on the target.
    pub end: u64,
    /// The smallest transfer, in sectors.
    pub grain: u64,
    pub effort: Effort,
    pub write: bool,
    /// A read quicker than this came from the cache; zero where there is none.
    pub hit_below: i64,
    /// What hits usually take, from and to.
    pub hit_between: (i64, i64),
    /// Which sector is surely cached, counted from one just read.
    pub hit_offset: u64,
    /// How many far reads push a place out of the cache.
    pub evict: u64,
    /// The rotation, once known.
    pub turn: Option<Turn>,
}

impl Session {
    pub fn new(desk: Rc<RefCell<Desk>>, capacity: Bytes, options: &Options) -> Self {
        Self {
            desk,
            random: 0x5107_11e5,
            end: capacity / SECTOR,
            grain: options.grain / SECTOR,
            effort: options.effort,
            write: options.write,
            hit_below: 0,
            hit_between: (0, 0),
            hit_offset: 0,
            evict: 0,
            turn: None,
        }
    }

    pub fn full(&self) -> bool {
        self.effort == Effort::Full
    }

    /// Says what is measured now, and how much of the whole lies behind.
    pub fn stage(&self, stage: &'static str, permille: u32) {
        let mut desk = self.desk.borrow_mut();
        desk.stage = stage;
        desk.permille = desk.permille.max(permille);
    }

    pub fn gaps(&self) -> u64 {
        self.desk.borrow().gaps
    }

    /// Whether a quick measurement has spent so many thousandths of its time and
    /// should go on with the next stage.
    pub fn has_spent(&self, permille: u32) -> bool {
        !self.full() && self.desk.borrow().spent() >= permille
    }

    pub fn commands(&self) -> u64 {
        self.desk.borrow().progress().commands
    }

    /// A random number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = u128::from(self.random >> 1) * u128::from(n);
        u64::try_from(high >> 63).expect("below n")
    }

    /// A random place in a range of sectors, on the grain.
    pub fn place(&mut self, from: u64, to: u64) -> u64 {
        (from + self.below((to - from).max(1))) / self.grain * self.grain
    }

    pub async fn transfer(
        &mut self,
        lba: u64,
        sectors: u64,
        direction: Direction,
        delay: i64,
    ) -> Result<Timing, Stop> {
        assert!(SECTOR * sectors <= COMMAND_MAX, "{sectors} sectors at a time");
        assert!(lba + sectors <= self.end, "sector {lba} and {sectors} more of {}", self.end);
        let access = Access { lba: Lba::new(lba), len: SECTOR * sectors, direction };
        let commands = vec![Command::Transfer(access)];
        let delay = Duration::from_nanos(delay.max(0).unsigned_abs());
        let question = Question { delay, commands, depth: 1 };
        Ok(Ask::new(&self.desk, question).await?[0])
    }

    pub async fn flush(&mut self) -> Result<Timing, Stop> {
        let commands = vec![Command::Flush];
        let question = Question { delay: Duration::ZERO, commands, depth: 1 };
        Ok(Ask::new(&self.desk, question).await?[0])
    }

    /// Many commands, `depth` of them in flight.
    pub async fn burst(&mut self, commands: Vec<Command>, depth: u32) -> Result<Vec<Timing>, Stop> {
        Ask::new(&self.desk, Question { delay: Duration::ZERO, commands, depth }).await
    }

    /// Reads one grain, after `delay`.
    pub async fn read(&mut self, lba: u64, delay: i64) -> Result<Timing, Stop> {
        self.transfer(lba, self.grain, Direction::Read, delay).await
    }

    /// Reads somewhere at least a third of the disk away.
    pub async fn read_far(&mut self, from: u64) -> Result<Timing, Stop> {
        let third = self.end / 3;
        // The two thirds that begin a third after `from`, around the end.
        let offset = third + self.below(self.end - 2 * third);
        let lba = (from + offset) % (self.end - self.grain) / self.grain * self.grain;
        self.read(lba, 0).await
    }

    pub fn is_hit(&self, timing: &Timing) -> bool {
        nanos(timing.taken()) < self.hit_below
    }

    /// Reads one grain from the medium after an arm movement, whatever the cache.
    /// A place that stays in the cache is given up after a few tries: the timing
    /// is then that of a hit.
    pub async fn read_medium(&mut self, lba: u64) -> Result<Timing, Stop> {
        self.read_far(lba).await?;
        let mut timing = self.read(lba, 0).await?;
        let mut evict = self.evict.max(4);
        while (self.is_hit(&timing) || timing.failed) && evict <= EVICT_MAX {
            for _ in 0..evict {
                self.read_far(lba).await?;
            }
            timing = self.read(lba, 0).await?;
            evict *= 2;
        }
        Ok(timing)
    }
}

/// A span as a number to calculate with.
pub(super) fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// A number as a span; below zero is no time.
pub(super) fn span(ns: i64) -> Duration {
    Duration::from_nanos(ns.max(0).unsigned_abs())
}
