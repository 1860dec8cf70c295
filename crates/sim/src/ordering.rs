//! Drives that hold several commands, serve one at a time, and choose which.

use crate::Random;
use disk::{CommandQueue, Profile};
use units::{Command, Duration, Instant, Lba};

/// In which order.
#[derive(Clone, Debug)]
pub enum Ordering {
    /// As this drive would, which takes what its heads reach first.
    Drive(Box<CommandQueue>),
    /// In any, each from where the heads are then.
    Any(Box<AnyOrder>),
}

/// A drive that takes what it likes, and as long as its profile lets it.
#[derive(Clone, Debug)]
pub struct AnyOrder {
    profile: Profile,
    random: Random,
    waiting: Vec<(u64, Command)>,
    running: Option<(u64, Instant)>,
    head: Lba,
    /// The most that it had at a time.
    pub(crate) deepest: usize,
}

impl AnyOrder {
    /// Idle, its heads at the first sector.
    pub fn new(profile: &Profile, random: Random) -> Self {
        let (profile, waiting, running) = (profile.clone(), Vec::new(), None);
        Self { profile, random, waiting, running, head: Lba::new(0), deepest: 0 }
    }

    fn begin(&mut self, now: Instant) {
        if self.running.is_some() || self.waiting.is_empty() {
            return;
        }
        // Half of the time what came last: the others wait as long as they can.
        let count = self.waiting.len() as u64;
        let at = if self.random.chance(50) { count - 1 } else { self.random.below(count) };
        let (tag, command) = self.waiting.remove(at as usize);
        let bound = self.profile.bound(self.head, &command);
        let whole = self.random.chance(70);
        let takes = if whole { bound } else { bound * self.random.between(1, 100) / 100 };
        self.head = command.end().unwrap_or(self.head);
        self.running = Some((tag, now + takes));
    }
}

impl Ordering {
    /// It is given one more.
    pub(crate) fn submit(&mut self, now: Instant, tag: u64, command: Command) {
        match self {
            Self::Drive(queue) => {
                queue.submit(now, tag, command).expect("no more than it takes");
            }
            Self::Any(any) => {
                any.waiting.push((tag, command));
                any.begin(now);
                let running = usize::from(any.running.is_some());
                any.deepest = any.deepest.max(any.waiting.len() + running);
            }
        }
    }

    /// The power goes: of what it had nothing ends.
    pub(crate) fn cut(&mut self) {
        match self {
            Self::Drive(queue) => queue.lose_power(Instant::EPOCH, Duration::ZERO).for_each(drop),
            Self::Any(any) => {
                any.waiting.clear();
                any.running = None;
            }
        }
    }

    /// When the next one ends.
    pub(crate) fn next_completion(&self) -> Option<Instant> {
        match self {
            Self::Drive(queue) => queue.next_completion(),
            Self::Any(any) => any.running.map(|(_, end)| end),
        }
    }

    /// The next one that has ended by `now`, and when.
    pub(crate) fn complete(&mut self, now: Instant) -> Option<(u64, Instant)> {
        match self {
            Self::Drive(queue) => queue.complete(now),
            Self::Any(any) => {
                let (tag, end) = any.running.take_if(|(_, end)| *end <= now)?;
                any.begin(end);
                Some((tag, end))
            }
        }
    }
}
