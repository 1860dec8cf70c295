//! Reads and writes of one file that are under way at the same time.
//!
//! The kernel puts what a program writes into its cache first and sends it then. An open drops the
//! cache, also between the two. A read that is sent next brings the bytes back into the cache, and
//! the cache would be older than the file if the daemon answered that read before the write.
//!
//! An open that drops the cache while others have the file open leaves one case more: the read was
//! answered before the kernel had sent the write at all. The kernel sends one write of a file at a
//! time, so that only the next one to come can be such a write; where it overlaps the read, the
//! kernel is told to forget that range again.
//!
//! Invariant: a read returns the bytes of every write over its range that began before the read
//! ended, unless writes keep overtaking it.

use crate::lock::locked;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// So often a read is done anew. The kernel writes nothing over a range that it reads into its
/// cache, so that more writes than one or two are of programs that write past the cache.
const ROUNDS: u32 = 8;

/// A page of the kernel's cache.
const PAGE: u64 = 4096;

/// Ranges that are kept of what was answered: more are taken for one that has all of them.
const ANSWERED_MAX: usize = 64;

/// What is under way.
#[derive(Debug, Default)]
pub struct Overlaps {
    under_way: Mutex<UnderWay>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct UnderWay {
    last: u64,
    writes: Vec<(u64, Range<u64>)>,
    reads: Vec<Reading>,
    /// Opens under way that drop the cache.
    drops: u32,
    /// The cache was dropped, and no write has come since.
    was_dropped: bool,
    /// What was answered since the last write came, where the cache may have been dropped in
    /// between: whole pages.
    answered: Vec<Range<u64>>,
}

#[derive(Debug)]
struct Reading {
    number: u64,
    range: Range<u64>,
    /// A write over the range has begun since the bytes were asked for.
    is_overtaken: bool,
}

impl UnderWay {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// A read was answered.
    fn answer(&mut self, range: &Range<u64>) {
        if !self.was_dropped {
            return;
        }
        self.answered.push(pages(range));
        if self.answered.len() > ANSWERED_MAX {
            let start = self.answered.iter().map(|range| range.start).min();
            let end = self.answered.iter().map(|range| range.end).max();
            self.answered.clear();
            self.answered.push(start.unwrap_or(0)..end.unwrap_or(u64::MAX));
        }
    }

    /// A write has come: whether the kernel may have read older bytes of it since it put these
    /// into its cache.
    fn is_older_in_cache(&mut self, range: &Range<u64>) -> bool {
        let is_older = self.answered.iter().any(|answered| overlap(answered, range));
        self.answered.clear();
        self.was_dropped = self.drops > 0;
        is_older
    }
}

/// The pages of the kernel's cache around a range.
fn pages(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE * PAGE..range.end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
}

fn overlap(one: &Range<u64>, two: &Range<u64>) -> bool {
    one.start < two.end && two.start < one.end
}

impl Overlaps {
    /// An open will drop the cache, before [`dropped`](Self::dropped) is called.
    pub fn drops(&self) {
        let mut under_way = locked(&self.under_way);
        under_way.drops += 1;
        under_way.was_dropped = true;
    }

    /// It has.
    pub fn dropped(&self) {
        let mut under_way = locked(&self.under_way);
        under_way.drops = under_way.drops.saturating_sub(1);
    }

    /// Writes to a range. Says, too, whether the kernel is to forget it once it has the answer.
    pub fn write<T>(&self, range: Range<u64>, write: impl FnOnce() -> T) -> (T, bool) {
        let mut under_way = locked(&self.under_way);
        let is_older = under_way.is_older_in_cache(&range);
        let number = under_way.number();
        for read in under_way.reads.iter_mut().filter(|read| overlap(&read.range, &range)) {
            read.is_overtaken = true;
        }
        under_way.writes.push((number, range));
        drop(under_way);
        let written = write();
        locked(&self.under_way).writes.retain(|(other, _)| *other != number);
        self.ended.notify_all();
        (written, is_older)
    }

    /// Reads a range, and again where it was written meanwhile.
    pub fn read<T, E>(
        &self,
        range: Range<u64>,
        mut read: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut under_way = locked(&self.under_way);
        let number = under_way.number();
        under_way.reads.push(Reading { number, range: range.clone(), is_overtaken: false });
        let mut round = 1;
        let ended = loop {
            self.begin(under_way, number, &range);
            let ended = read();
            under_way = locked(&self.under_way);
            let own = under_way.reads.iter().find(|read| read.number == number);
            let is_overtaken = own.is_some_and(|read| read.is_overtaken);
            if ended.is_err() || round == ROUNDS || !is_overtaken {
                break ended;
            }
            round += 1;
        };
        under_way.answer(&range);
        under_way.reads.retain(|read| read.number != number);
        ended
    }

    /// Waits for the writes to the range that have begun by now: no longer, however many follow.
    /// Those that begin from now on overtake the read.
    fn begin(&self, mut under_way: MutexGuard<'_, UnderWay>, number: u64, range: &Range<u64>) {
        for read in under_way.reads.iter_mut().filter(|read| read.number == number) {
            read.is_overtaken = false;
        }
        let last = under_way.last;
        let is_written = |now: &mut UnderWay| {
            now.writes.iter().any(|(other, it)| *other <= last && overlap(it, range))
        };
        drop(self.ended.wait_while(under_way, is_written).unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A file of one number, which a write sets when it ends.
    #[test]
    fn a_read_that_a_write_overtakes_is_done_again_after_it() {
        let (overlaps, file) = (Overlaps::default(), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let mut is_first = true;
            let read = overlaps.read(0..4096, || {
                let seen = file.load(Ordering::Relaxed);
                if std::mem::take(&mut is_first) {
                    let (begun, wait) = std::sync::mpsc::channel();
                    let (overlaps, file) = (&overlaps, &file);
                    scope.spawn(move || {
                        overlaps.write(1000..1001, || {
                            begun.send(()).unwrap();
                            std::thread::yield_now();
                            file.store(1, Ordering::Relaxed);
                        });
                    });
                    wait.recv().unwrap();
                }
                Ok::<_, ()>(seen)
            });
            assert_eq!(read, Ok(1));
        });
        // One that lies beside it disturbs no read, and a read ends also where writes do not.
        let mut reads = 0;
        let mut over = |range: Range<u64>| {
            reads = 0;
            let read = || {
                reads += 1;
                overlaps.write(range.clone(), || ());
                Ok::<_, ()>(())
            };
            overlaps.read(0..4096, read).unwrap();
            reads
        };
        assert_eq!((over(4096..5000), over(0..1)), (1, ROUNDS));
        let under_way = locked(&overlaps.under_way);
        assert!(under_way.reads.is_empty() && under_way.writes.is_empty());
    }

    /// What the kernel read between a drop of its cache and the next write may be older than that
    /// write in its cache.
    #[test]
    fn what_was_read_since_the_cache_was_dropped_is_forgotten_once_the_next_write_has_come() {
        let overlaps = Overlaps::default();
        let read = |range| overlaps.read(range, || Ok::<_, ()>(())).unwrap();
        let write = |range| overlaps.write(range, || ()).1;
        read(0..4096);
        assert!(!write(0..10), "nothing was dropped");
        overlaps.drops();
        read(5000..5001);
        assert!(!write(8192..8200) && !write(4096..4097), "nothing was read since the first");
        read(5000..5001);
        assert!(write(8191..8200), "the drop may come yet");
        overlaps.dropped();
        read(5000..5001);
        assert!(write(4096..4097));
        read(5000..5001);
        assert!(!write(4096..4097), "which was begun when the cache had been dropped");
        overlaps.drops();
        (0..1000).for_each(|page| read(page * 8192..page * 8192 + 1));
        assert!(locked(&overlaps.under_way).answered.len() <= ANSWERED_MAX);
        assert!(write(0..1));
    }

    /// Writes that follow one another without a pause keep no read from its end.
    #[test]
    fn a_read_waits_only_for_writes_that_began_before_it() {
        let overlaps = Overlaps::default();
        let (first_ends, first) = std::sync::mpsc::channel();
        let (second_ends, second) = std::sync::mpsc::channel();
        let is = |what: &dyn Fn(&UnderWay) -> bool| {
            while !what(&locked(&overlaps.under_way)) {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| overlaps.write(0..10, move || first.recv().unwrap()));
            is(&|now| now.writes.len() == 1);
            let reads = scope.spawn(|| {
                let mut reads = 0;
                let read = || {
                    reads += 1;
                    let _ = second_ends.send(()); // nobody else ends the second write
                    Ok::<_, ()>(())
                };
                overlaps.read(0..10, read).unwrap();
                reads
            });
            is(&|now| now.reads.len() == 1);
            scope.spawn(|| overlaps.write(5..15, move || second.recv().unwrap()));
            is(&|now| now.writes.len() == 2);
            first_ends.send(()).unwrap();
            assert_eq!(reads.join().unwrap(), 2, "and once more behind the one that overtook it");
        });
    }
}
