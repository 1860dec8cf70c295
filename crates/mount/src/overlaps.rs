//! Reads and writes of one file that are under way at the same time.
//!
//! The kernel puts what a program writes into its cache first and sends it then. An open drops the
//! cache, also between the two. A read that is sent next brings the bytes back into the cache, and
//! the cache would be older than the file if the daemon answered that read before the write.
//!
//! Invariant: a read returns the bytes of every write over its range that began before the read
//! ended, unless writes keep overtaking it.

use crate::lock::locked;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// So often a read is done anew. The kernel writes nothing over a range that it reads into its
/// cache, so that more writes than one or two are of programs that write past the cache.
const ROUNDS: u32 = 8;

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
}

fn overlap(one: &Range<u64>, two: &Range<u64>) -> bool {
    one.start < two.end && two.start < one.end
}

impl Overlaps {
    /// Writes to a range.
    pub fn write<T>(&self, range: Range<u64>, write: impl FnOnce() -> T) -> T {
        let mut under_way = locked(&self.under_way);
        let number = under_way.number();
        for read in under_way.reads.iter_mut().filter(|read| overlap(&read.range, &range)) {
            read.is_overtaken = true;
        }
        under_way.writes.push((number, range));
        drop(under_way);
        let written = write();
        locked(&self.under_way).writes.retain(|(other, _)| *other != number);
        self.ended.notify_all();
        written
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
        drop(under_way);
        locked(&self.under_way).reads.retain(|read| read.number != number);
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
