//! Which extents of a disk are bad or slow.
//!
//! An extent is noted when a command on it fails or overruns far; it is *suspect* from
//! the first failure on, or when it was slow on several occasions and in a good part of
//! the commands that touched it. Invariant: at most [`NOTED_MAX`] extents are noted;
//! a further one takes the place of the one that was only slow, the fewest times, the
//! longest ago; where all have failed, it is not noted.

use alloc::collections::{BTreeMap, BTreeSet};
use units::{Access, Bytes, Duration, Instant};

/// As long as the store's extents, and counted from the start of the disk as they are.
const EXTENT: Bytes = Bytes::MIB;
/// Extents that are kept in mind.
const NOTED_MAX: usize = 256;
/// There are never more suspects than this.
pub const SUSPECTS_MAX: usize = NOTED_MAX;
/// One stall may hit several commands; those within this time of another are one
/// occasion.
const OCCASION: Duration = Duration::from_secs(1);
/// An extent that was slow on fewer occasions is not suspect,
const SLOW_MIN: u64 = 3;
/// nor one that was slow in less than one of so many commands.
const SLOW_SHARE: u64 = 4;

/// An extent of 1 MiB to be kept from contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Its number: its first byte by 1 MiB.
    pub extent: u64,
    /// Commands on it that failed.
    pub errors: u64,
    /// Commands on it that overran far more than others like them.
    pub slow: u64,
    /// Commands that touched it since the first of these.
    pub commands: u64,
}

impl Suspect {
    /// Where on the disk it begins.
    pub fn offset(&self) -> Bytes {
        EXTENT * self.extent
    }
}

/// What can be wrong with a command on an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offence {
    Error,
    Slow,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    errors: u64,
    slow: u64,
    commands: u64,
    occasions: u64,
    last: Instant,
    /// The most that a command on it took, in parts per million of its bound.
    worst: u64,
}

impl Note {
    /// Where it stands among those that were only slow.
    fn place(&self, extent: u64) -> (u64, Instant, u64) {
        (self.occasions, self.last, extent)
    }

    fn is_suspect(&self) -> bool {
        let often = self.slow * SLOW_SHARE >= self.commands;
        self.errors > 0 || self.occasions >= SLOW_MIN && often
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    noted: BTreeMap<u64, Note>,
    /// Those that were only slow, in the order in which they make room for others: on how many
    /// occasions, when last, and which.
    slow: BTreeSet<(u64, Instant, u64)>,
}

impl Extents {
    /// A command touched extents; what was wrong with it, if anything. True when one
    /// became suspect, or ceased to be.
    pub(super) fn visited(
        &mut self,
        access: &Access,
        now: Instant,
        ratio: u64,
        offence: Option<Offence>,
    ) -> bool {
        let mut changed = false;
        for extent in touched(access) {
            if offence.is_some() && !self.noted.contains_key(&extent) {
                let Some(was_suspect) = self.make_room() else { continue };
                changed |= was_suspect;
                let (errors, slow, commands, occasions, worst) = (0, 0, 0, 0, 0);
                let note = Note { errors, slow, commands, occasions, last: now, worst };
                self.noted.insert(extent, note);
            }
            let Some(note) = self.noted.get_mut(&extent) else { continue };
            let (before, place) = (note.is_suspect(), note.place(extent));
            note.commands += 1;
            note.worst = note.worst.max(ratio);
            match offence {
                Some(Offence::Error) => note.errors += 1,
                Some(Offence::Slow) => {
                    note.slow += 1;
                    if note.occasions == 0 || now >= note.last + OCCASION {
                        note.occasions += 1;
                        note.last = now;
                    }
                }
                None => {}
            }
            if offence.is_some() {
                self.slow.remove(&place);
                if note.errors == 0 {
                    self.slow.insert(note.place(extent));
                }
            }
            changed |= before != note.is_suspect();
        }
        changed
    }

    /// Room for one more, and whether a suspect had to go; none where there is no room.
    fn make_room(&mut self) -> Option<bool> {
        if self.noted.len() < NOTED_MAX {
            return Some(false);
        }
        let (.., extent) = self.slow.pop_first()?;
        self.noted.remove(&extent).map(|note| note.is_suspect())
    }

    /// What was found in an earlier life. How long its commands took is not known any
    /// more; that is learned with the first of them.
    pub(super) fn remember(&mut self, suspects: impl IntoIterator<Item = Suspect>) {
        for Suspect { extent, errors, slow, commands } in suspects.into_iter().take(NOTED_MAX) {
            let occasions = if slow > 0 { SLOW_MIN } else { 0 };
            let (last, worst) = (Instant::EPOCH, 0);
            let note = Note { errors, slow, commands, occasions, last, worst };
            if let Some(before) = self.noted.insert(extent, note) {
                self.slow.remove(&before.place(extent));
            }
            if errors == 0 {
                self.slow.insert(note.place(extent));
            }
        }
    }

    /// The most that a command on a suspect extent that `access` touches took, in parts
    /// per million of its bound; none where it touches none.
    pub(super) fn worst(&self, access: &Access) -> Option<u64> {
        if self.noted.is_empty() {
            return None;
        }
        let noted = touched(access).filter_map(|extent| self.noted.get(&extent));
        noted.filter(|note| note.is_suspect()).map(|note| note.worst).max()
    }

    pub(super) fn is_suspect(&self, access: &Access) -> bool {
        let noted = |extent| self.noted.get(&extent).is_some_and(Note::is_suspect);
        !self.noted.is_empty() && touched(access).any(noted)
    }

    pub(super) fn suspects(&self) -> impl Iterator<Item = Suspect> + '_ {
        self.noted.iter().filter(|(_, note)| note.is_suspect()).map(|(&extent, note)| {
            let Note { errors, slow, commands, .. } = *note;
            Suspect { extent, errors, slow, commands }
        })
    }
}

fn touched(access: &Access) -> core::ops::Range<u64> {
    let (from, to) = (access.lba.offset(), access.end().offset());
    from / EXTENT..to.div_ceil(EXTENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use units::{Direction, Lba};

    fn on(extent: u64) -> Access {
        let lba = Lba::containing(EXTENT * extent + Bytes::kib(64));
        Access { lba, len: Bytes::kib(64), direction: Direction::Read }
    }

    fn at(millis: u64) -> Instant {
        Instant::EPOCH + Duration::from_millis(millis)
    }

    fn suspects(extents: &Extents) -> Vec<u64> {
        extents.suspects().map(|suspect| suspect.extent).collect()
    }

    #[test]
    fn one_stall_decides_nothing_and_repeated_ones_do_until_they_become_rare() {
        let mut extents = Extents::default();
        for millis in 0..900 {
            assert!(!extents.visited(&on(7), at(millis), 1_000_000, Some(Offence::Slow)));
        }
        assert!(!extents.visited(&on(7), at(1_000), 1_000_000, Some(Offence::Slow)));
        assert!(extents.visited(&on(7), at(2_000), 1_000_000, Some(Offence::Slow)));
        assert_eq!(suspects(&extents), [7]);
        let rare = (0..).find(|_| extents.visited(&on(7), at(3_000), 1_000_000, None));
        assert!((2_000..3_000).contains(&rare.unwrap()), "{rare:?}");
        assert_eq!(suspects(&extents), []);
    }

    #[test]
    fn a_failure_decides_and_covers_every_extent_that_it_touched() {
        let mut extents = Extents::default();
        let across = Access { lba: Lba::new(2_047), len: Bytes::mib(1), ..on(0) };
        assert!(extents.visited(&across, at(0), 1_000_000, Some(Offence::Error)));
        assert_eq!(suspects(&extents), [0, 1]);
        assert!(extents.is_suspect(&on(1)) && !extents.is_suspect(&on(2)));
    }

    #[test]
    fn what_was_remembered_is_suspect_and_told_as_it_was() {
        let mut extents = Extents::default();
        let bad = Suspect { extent: 3, errors: 1, slow: 0, commands: 9 };
        let slow = Suspect { extent: 8, errors: 0, slow: 4, commands: 6 };
        extents.remember([bad, slow]);
        assert_eq!(extents.suspects().collect::<Vec<_>>(), [bad, slow]);
        assert_eq!((extents.worst(&on(8)), extents.worst(&on(9))), (Some(0), None));
        extents.visited(&on(8), at(0), 5_000_000, Some(Offence::Slow));
        assert_eq!(extents.worst(&on(8)), Some(5_000_000));
    }

    #[test]
    fn the_table_is_bounded_and_keeps_the_worst() {
        let mut extents = Extents::default();
        for second in 0..3 {
            extents.visited(&on(5), at(second * 1_000), 1_000_000, Some(Offence::Slow));
        }
        extents.visited(&on(9), at(3_000), 1_000_000, Some(Offence::Error));
        for other in 1_000..2_000 {
            extents.visited(&on(other), at(5_000 + other), 1_000_000, Some(Offence::Slow));
        }
        assert_eq!(extents.noted.len(), NOTED_MAX);
        assert_eq!(suspects(&extents), [5, 9]);
        for other in 3_000..4_000 {
            extents.visited(&on(other), at(10_000), 1_000_000, Some(Offence::Error));
        }
        assert_eq!(suspects(&extents).len(), SUSPECTS_MAX);
        assert!(!suspects(&extents).contains(&5), "failures go before");
    }
}
