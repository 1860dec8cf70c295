//! The two loops: one that keeps a rate, as figure 13 of the ABISS paper gives it, and one
//! that takes what it gets.
//!
//! ```text
//! while there is work {
//!     due = when the next operation is due; if that is past, now: forgiven
//!     sleep until due
//!     // A                       A - due: the host's own lateness
//!     read or write one block
//!     // B                       B - A: latency        B - due: jitter
//!     move the playout point
//!     // C                       C - B: movement
//! }
//! ```
//!
//! Invariants: making the bytes to write and checking those that were read is the
//! program's own work, and is in none of the times; the first operation, which waits until
//! a window is full or a disk has turned, has a time of its own, and the timetable begins
//! at its end.

use crate::clock::Clock;
use crate::error::Error;
use crate::samples::Samples;
use units::{Bytes, Duration, Instant, Rate};

/// What is moved, and when.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// So much at a time.
    pub block: Bytes,
    /// So much a second.
    pub rate: Rate,
    /// So much in all.
    pub total: Bytes,
}

impl Pace {
    /// From one operation to the next.
    pub fn period(self) -> Duration {
        self.rate.time_for(self.block)
    }
}

/// What a loop drives: a program that reads or writes.
pub trait Work {
    /// The program's own work before an operation of `len` bytes.
    fn prepare(&mut self, len: Bytes);
    /// Reads or writes; gives how much, less than asked only at the end.
    ///
    /// # Errors
    /// What the storage refused.
    fn operate(&mut self, len: Bytes) -> Result<Bytes, Error>;
    /// Moves the playout point behind what was read or written.
    ///
    /// # Errors
    /// What the storage refused.
    fn move_playout(&mut self) -> Result<(), Error>;
    /// The program's own work after an operation.
    fn settle(&mut self);
}

/// What an isochronous program saw. All times are those of figure 13.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// From when the first operation was due to its end; in none of the others.
    pub first: Duration,
    /// From when an operation was due to its end.
    pub jitter: Samples,
    /// From the begin of an operation to its end.
    pub latency: Samples,
    /// How long moving the playout point took.
    pub movement: Samples,
    /// From when an operation was due to its begin: how late the host woke the program.
    pub sleep: Samples,
    /// Operations that were due before the one before had ended, and were put off.
    pub forgiven: u64,
    /// What was moved.
    pub bytes: Bytes,
    /// What was moved behind the first operation, and how long that took.
    pub steady: (Bytes, Duration),
}

impl Seen {
    /// What the program got, from the end of its first operation to that of its last.
    pub fn rate(&self) -> Rate {
        Rate::of(self.steady.0, self.steady.1)
    }
}

/// Moves one block at each step from `begins` on, until the total is reached, the storage
/// ends, or `told` says stop. `told` hears how much was moved.
///
/// # Errors
/// What the storage refused.
pub fn isochronous(
    clock: &dyn Clock,
    (pace, begins): (Pace, Instant),
    work: &mut dyn Work,
    told: &dyn Fn(Bytes) -> bool,
) -> Result<Seen, Error> {
    let mut seen = Seen::default();
    let (mut base, mut steps) = (begins, 0);
    let mut began = None;
    while seen.bytes < pace.total {
        let len = pace.block.min(pace.total - seen.bytes);
        work.prepare(len);
        let mut due = base + pace.rate.time_for(pace.block * steps);
        let now = clock.now();
        if due < now {
            (base, steps, due) = (now, 0, now);
            seen.forgiven += u64::from(began.is_some());
        } else {
            clock.sleep_until(due);
        }
        let a = clock.now();
        let moved = work.operate(len)?;
        let b = clock.now();
        work.move_playout()?;
        let c = clock.now();
        work.settle();
        steps += 1;
        seen.bytes += moved;
        match began {
            None => {
                seen.first = b.saturating_since(begins);
                (base, steps) = (b, 1);
                began = Some(b);
            }
            Some(began) => {
                seen.sleep.add(a.saturating_since(due));
                seen.latency.add(b.saturating_since(a));
                seen.jitter.add(b.saturating_since(due));
                seen.movement.add(c.saturating_since(b));
                seen.steady = (seen.steady.0 + moved, b.saturating_since(began));
            }
        }
        if !told(moved) || moved < len {
            break;
        }
    }
    Ok(seen)
}

/// What a greedy program saw.
#[derive(Clone, Debug, Default)]
pub struct Grabbed {
    /// From the begin of each operation to its end.
    pub latency: Samples,
    /// What was moved.
    pub bytes: Bytes,
    /// How long that took.
    pub elapsed: Duration,
}

/// Moves one block after the other, as fast as it gets them, until the total is reached,
/// the storage ends or `told` says stop.
///
/// # Errors
/// What the storage refused.
pub fn greedy(
    clock: &dyn Clock,
    (block, total): (Bytes, Bytes),
    work: &mut dyn Work,
    told: &dyn Fn(Bytes) -> bool,
) -> Result<Grabbed, Error> {
    let mut grabbed = Grabbed::default();
    let began = clock.now();
    while grabbed.bytes < total {
        let len = block.min(total - grabbed.bytes);
        work.prepare(len);
        let a = clock.now();
        let moved = work.operate(len)?;
        work.move_playout()?;
        let b = clock.now();
        work.settle();
        grabbed.latency.add(b.saturating_since(a));
        grabbed.bytes += moved;
        grabbed.elapsed = b.saturating_since(began);
        if !told(moved) || moved < len {
            break;
        }
    }
    Ok(grabbed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A host that wakes everybody 1 ms late, and a storage whose operations take as long
    /// as the test says, and playout 2 ms.
    struct World {
        now: Mutex<Instant>,
    }
    impl World {
        fn pass(&self, ms: u64) {
            *self.now.lock().unwrap() += Duration::from_millis(ms);
        }
    }
    impl Clock for World {
        fn now(&self) -> Instant {
            *self.now.lock().unwrap()
        }
        fn sleep_until(&self, at: Instant) {
            let mut now = self.now.lock().unwrap();
            *now = now.max(at) + Duration::from_millis(1);
        }
    }
    struct Storage<'a> {
        world: &'a World,
        /// How long each operation takes, the first one first.
        takes: Vec<u64>,
        own: u64,
    }
    impl Work for Storage<'_> {
        fn prepare(&mut self, _: Bytes) {
            self.world.pass(self.own);
        }
        fn operate(&mut self, len: Bytes) -> Result<Bytes, Error> {
            if self.takes.is_empty() {
                return Ok(Bytes::ZERO);
            }
            self.world.pass(self.takes.remove(0));
            Ok(len)
        }
        fn move_playout(&mut self) -> Result<(), Error> {
            self.world.pass(2);
            Ok(())
        }
        fn settle(&mut self) {
            self.world.pass(self.own);
        }
    }

    /// 10 kB a second in blocks of 100 bytes: one every 10 ms.
    const PACE: Pace =
        Pace { block: Bytes::new(100), rate: Rate::per_second(10_000), total: Bytes::new(450) };

    fn run(takes: &[u64], own: u64) -> Seen {
        let world = World { now: Mutex::new(Instant::from_nanos(0)) };
        let begins = Instant::from_nanos(0) + Duration::from_millis(100);
        let mut storage = Storage { world: &world, takes: takes.to_vec(), own };
        isochronous(&world, (PACE, begins), &mut storage, &|_| true).unwrap()
    }

    fn ms(samples: &Samples) -> Vec<f64> {
        samples.millis().collect()
    }

    #[test]
    fn the_times_are_those_of_figure_13_and_own_work_is_in_none() {
        for own in [0, 2] {
            let seen = run(&[50, 1, 2, 1, 1], own);
            assert_eq!(seen.first, Duration::from_millis(51), "woken 1 ms late, then 50 ms");
            assert_eq!(ms(&seen.sleep), [1.0; 4]);
            assert_eq!(ms(&seen.latency), [1.0, 2.0, 1.0, 1.0]);
            assert_eq!(ms(&seen.jitter), [2.0, 3.0, 2.0, 2.0]);
            assert_eq!(ms(&seen.movement), [2.0; 4]);
            assert_eq!((seen.bytes, seen.forgiven), (Bytes::new(450), 0));
            // Three whole blocks and a half one, the last ending 42 ms after the first.
            assert_eq!(seen.steady, (Bytes::new(350), Duration::from_millis(42)));
        }
    }

    #[test]
    fn a_missed_deadline_is_forgiven_and_the_timetable_begins_anew() {
        let seen = run(&[0, 25, 4, 1, 1], 0);
        // The second took until 26 ms after it was due, and its playout 2 ms more: the
        // third was due at 10 ms, and is put off to 28 ms; the fourth comes 10 ms later.
        assert_eq!(ms(&seen.jitter), [26.0, 4.0, 2.0, 2.0]);
        assert_eq!(ms(&seen.sleep), [1.0, 0.0, 1.0, 1.0]);
        assert_eq!(seen.forgiven, 1);
        assert_eq!(seen.steady.1, Duration::from_millis(10 + 28 + 20 + 2));
    }

    #[test]
    fn a_loop_ends_where_the_storage_ends_or_somebody_says_so() {
        assert_eq!(run(&[0, 1], 0).bytes, Bytes::new(200));
        let world = World { now: Mutex::new(Instant::from_nanos(0)) };
        let mut storage = Storage { world: &world, takes: vec![5; 9], own: 1 };
        let left = Mutex::new(3);
        let told = |_| {
            *left.lock().unwrap() -= 1;
            *left.lock().unwrap() > 0
        };
        let total = Bytes::new(900);
        let grabbed = greedy(&world, (PACE.block, total), &mut storage, &told).unwrap();
        assert_eq!((grabbed.bytes, ms(&grabbed.latency)), (Bytes::new(300), vec![7.0; 3]));
        assert_eq!(grabbed.elapsed, Duration::from_millis(3 * 9 - 1));
    }
}
