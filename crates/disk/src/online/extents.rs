//! Which extents of a disk are bad or slow.
//!
//! An extent is noted when a command on it fails or overruns far; it is *suspect* from
//! the first failure on, or when it was slow on several occasions and in a good part of
//! the commands that touched it. Neither is for good: a cable that was loose fails commands
//! anywhere. The failures of an extent are *forgiven* when [`GOOD`] bytes of it were read or written
//! since the last one, and [`FORGIVEN_AFTER`] has passed.
//!
//! Invariant: at most [`NOTED_MAX`] extents are noted; a further one takes the place of the one
//! that was only slow, the fewest times, the longest ago; where all have failed, of the one
//! whose last failure is the longest ago, if that is [`GIVES_WAY_AFTER`], so that a disk on which
//! all fails does not change the list with each command; else it is not noted.

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

/// So many bytes of an extent are good after a failure, sixteen times the extent,
const GOOD: Bytes = Bytes::mib(16);
/// and so much time has passed, before the failure is forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(86_400);
/// An extent that has failed gives way to another so long after its last failure.
const GIVES_WAY_AFTER: Duration = Duration::from_secs(3_600);

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
    /// When a command on it failed last, or one on it ended for the first time after it was
    /// remembered as one that had failed.
    failed: Option<Instant>,
    /// So much of it was read or written since.
    good: Bytes,
}

impl Note {
    /// A command on so much of it was good: whether its failures are forgiven.
    fn was_good(&mut self, bytes: Bytes, now: Instant) -> bool {
        let failed = *self.failed.get_or_insert(now);
        self.good = self.good.saturating_add(bytes);
        self.good >= GOOD && now >= failed.saturating_add(FORGIVEN_AFTER)
    }

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
    /// Those that have failed, in the order in which they make room: when last, and which.
    failed: BTreeSet<(Option<Instant>, u64)>,
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
                let Some(was_suspect) = self.make_room(now) else { continue };
                changed |= was_suspect;
                let (errors, slow, commands, occasions, worst) = (0, 0, 0, 0, 0);
                let (last, failed, good) = (now, None, Bytes::ZERO);
                let note = Note { errors, slow, commands, occasions, last, worst, failed, good };
                self.noted.insert(extent, note);
            }
            let Some(note) = self.noted.get_mut(&extent) else { continue };
            let (before, was) = (note.is_suspect(), *note);
            note.commands = note.commands.saturating_add(1);
            note.worst = note.worst.max(ratio);
            match offence {
                Some(Offence::Error) => {
                    note.errors = note.errors.saturating_add(1);
                    (note.failed, note.good) = (Some(now), Bytes::ZERO);
                }
                Some(Offence::Slow) => {
                    note.slow += 1;
                    if note.occasions == 0 || now >= note.last + OCCASION {
                        note.occasions += 1;
                        note.last = now;
                    }
                }
                None => {}
            }
            let is_good = offence != Some(Offence::Error) && note.errors > 0;
            if is_good && note.was_good(part_of(access, extent), now) {
                (note.errors, note.failed) = (0, None);
            }
            let note = *note;
            changed |= before != note.is_suspect();
            self.rank(extent, Some(&was), (note.errors > 0 || note.slow > 0).then_some(&note));
        }
        changed
    }

    /// An extent stands among those that make room as its note says; it has none where it is no
    /// more.
    fn rank(&mut self, extent: u64, before: Option<&Note>, after: Option<&Note>) {
        if let Some(before) = before {
            self.slow.remove(&before.place(extent));
            self.failed.remove(&(before.failed, extent));
        }
        match after {
            Some(note) if note.errors > 0 => drop(self.failed.insert((note.failed, extent))),
            Some(note) => drop(self.slow.insert(note.place(extent))),
            None => drop(self.noted.remove(&extent)),
        }
    }

    /// Room for one more, and whether a suspect had to go; none where there is no room.
    fn make_room(&mut self, now: Instant) -> Option<bool> {
        if self.noted.len() < NOTED_MAX {
            return Some(false);
        }
        let is_old = |failed: Option<Instant>| {
            failed.is_none_or(|failed| now >= failed.saturating_add(GIVES_WAY_AFTER))
        };
        let slow = self.slow.first().map(|&(.., extent)| extent);
        let failed = self.failed.first().filter(|(failed, _)| is_old(*failed));
        let extent = slow.or_else(|| failed.map(|&(_, extent)| extent))?;
        let note = *self.noted.get(&extent)?;
        self.rank(extent, Some(&note), None);
        Some(note.is_suspect())
    }

    /// What was found in an earlier life. How long its commands took is not known any
    /// more; that is learned with the first of them.
    pub(super) fn remember(&mut self, suspects: impl IntoIterator<Item = Suspect>) {
        for Suspect { extent, errors, slow, commands } in suspects.into_iter().take(NOTED_MAX) {
            let occasions = if slow > 0 { SLOW_MIN } else { 0 };
            let (last, worst, failed, good) = (Instant::EPOCH, 0, None, Bytes::ZERO);
            let note = Note { errors, slow, commands, occasions, last, worst, failed, good };
            let before = self.noted.insert(extent, note);
            self.rank(extent, before.as_ref(), Some(&note));
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

/// How much of an extent a command touches.
fn part_of(access: &Access, extent: u64) -> Bytes {
    let begins = EXTENT * extent;
    let (from, to) = (access.lba.offset().max(begins), access.end().offset());
    to.min(begins.saturating_add(EXTENT)).saturating_sub(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
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

    const DAY: u64 = 86_400_000;

    #[test]
    fn a_failure_is_forgiven_when_enough_was_good_for_long_enough() {
        let mut extents = Extents::default();
        let fails = |extents: &mut Extents, millis| {
            extents.visited(&on(7), at(millis), 1_000_000, Some(Offence::Error))
        };
        // 64 KiB each, of which 256 are enough.
        let good = |extents: &mut Extents, millis| extents.visited(&on(7), at(millis), 0, None);
        assert!(fails(&mut extents, 0));
        (0..300).for_each(|_| assert!(!good(&mut extents, DAY - 1), "it is too early"));
        assert!(good(&mut extents, DAY));
        assert_eq!((suspects(&extents), extents.noted.len()), (vec![], 0));
        // One that fails now and then is not.
        assert!(fails(&mut extents, DAY));
        for day in 2..10 {
            (0..255).for_each(|_| assert!(!good(&mut extents, DAY * day)));
            assert!(!fails(&mut extents, DAY * day));
        }
        assert_eq!(suspects(&extents), [7]);
        // Nor is one of which an earlier life says that it failed, before its time.
        let known: Vec<_> = extents.suspects().collect();
        let mut later = Extents::default();
        later.remember(known.clone());
        (0..300).for_each(|_| assert!(!good(&mut later, DAY * 20)));
        assert!(good(&mut later, DAY * 21));
        // What is slow as well stays suspect for that.
        later.remember(known.iter().map(|one| Suspect { slow: 9, commands: 9, ..*one }));
        (0..20).for_each(|_| assert!(!good(&mut later, DAY * 30)));
        let slow = Some(Offence::Slow);
        (0..280).for_each(|_| assert!(!later.visited(&on(7), at(DAY * 31), 0, slow)));
        assert_eq!(
            later.suspects().map(|one| (one.errors, one.slow)).collect::<Vec<_>>(),
            [(0, 289)]
        );
    }

    /// A cable that was loose for a minute is no reason to notice nothing for ever.
    #[test]
    fn what_failed_long_ago_makes_room() {
        let mut extents = Extents::default();
        let mut fails = |extent, millis| {
            extents.visited(&on(extent), at(millis), 1_000_000, Some(Offence::Error));
            suspects(&extents)
        };
        (0..300).for_each(|extent| drop(fails(extent, extent)));
        let hour = 3_600_000;
        assert!(!fails(1_000, hour - 1).contains(&1_000), "not with each command of a bad disk");
        let after = fails(1_000, hour);
        assert!(after.contains(&1_000) && !after.contains(&0), "{after:?}");
        assert_eq!(after.len(), SUSPECTS_MAX);
        // One that failed again meanwhile stays longer.
        fails(1, hour + 1);
        let after = fails(1_001, hour + 2);
        assert!(after.contains(&1_001) && after.contains(&1) && !after.contains(&2), "{after:?}");
        // Those that were found in an earlier life are the first to go.
        let mut later = Extents::default();
        later.remember(extents.suspects());
        assert!(later.visited(&on(5_000), at(0), 1_000_000, Some(Offence::Error)));
        assert!(suspects(&later).contains(&5_000) && suspects(&later).len() == SUSPECTS_MAX);
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
