//! Extents in runs: lists of them, and which are free.
//!
//! In the list of a thin volume, extents that have no place on the disk yet are runs, too
//! ([`NO_PLACE`]).
//!
//! Invariants: runs of a list that touch are one run, and so are those without a place; the free
//! map's runs are disjoint, never touch each other, and lie inside the disk's extents.

use crate::api::DiskIndex;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

/// Extents that no volume has any more.
pub(crate) type Freed = Vec<(DiskIndex, Run)>;

/// Where a run begins that has no place on its disk. No disk has an extent of this number.
pub(crate) const NO_PLACE: u32 = u32::MAX;

/// Neighbouring extents of one disk; or extents without a place, which begin at [`NO_PLACE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) count: u32,
}

impl Run {
    /// So many extents without a place.
    pub(crate) fn nowhere(count: u32) -> Self {
        Self { start: NO_PLACE, count }
    }
    /// Its extents have places.
    pub(crate) fn has_place(&self) -> bool {
        self.start != NO_PLACE
    }
    /// `count` of its extents, behind the first `skip`.
    fn part(&self, skip: u32, count: u32) -> Self {
        let start = if self.has_place() { self.start + skip } else { NO_PLACE };
        Self { start, count }
    }
}

/// The extents that a volume has on one disk, in the volume's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// How many extents lie in the list before each run, and the run's start.
    places: Vec<(u32, u32)>,
    len: u32,
}

impl Runs {
    /// How many extents.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }
    /// How many runs.
    pub(crate) fn runs(&self) -> usize {
        self.places.len()
    }
    pub(crate) fn push(&mut self, run: Run) {
        if run.count == 0 {
            return;
        }
        let goes_on = match self.places.last() {
            None => false,
            Some((_, NO_PLACE)) => !run.has_place(),
            Some((before, start)) => *start + (self.len - before) == run.start,
        };
        if !goes_on {
            self.places.push((self.len, run.start));
        }
        self.len += run.count;
    }
    /// The last extent; none where that has no place.
    pub(crate) fn last(&self) -> Option<u32> {
        let (before, start) = self.places.last()?;
        (*start != NO_PLACE).then(|| start + (self.len - before) - 1)
    }
    /// The extent at `position`; none where that has no place, or where there is none.
    pub(crate) fn get(&self, position: u32) -> Option<u32> {
        if position >= self.len {
            return None;
        }
        let behind = self.places.partition_point(|&(before, _)| before <= position);
        let (before, start) = self.places[behind - 1];
        (start != NO_PLACE).then(|| start + (position - before))
    }
    /// The runs that have places.
    pub(crate) fn placed(&self) -> impl Iterator<Item = Run> + '_ {
        self.iter().filter(Run::has_place)
    }
    /// The runs from `position` on, the first of them cut to that.
    pub(crate) fn runs_from(&self, position: u32) -> impl Iterator<Item = Run> + '_ {
        let behind = self.places.partition_point(|&(before, _)| before <= position);
        let first = behind.saturating_sub(1);
        let places = self.places.iter().enumerate().skip(first);
        places.filter_map(move |(i, &(before, start))| {
            let end = self.places.get(i + 1).map_or(self.len, |&(next, _)| next);
            let skip = position.saturating_sub(before);
            let whole = Run { start, count: end - before };
            (position < end).then(|| whole.part(skip, whole.count - skip))
        })
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.places.iter().enumerate().map(|(i, &(before, start))| {
            let end = self.places.get(i + 1).map_or(self.len, |&(next, _)| next);
            Run { start, count: end - before }
        })
    }
    /// Puts a run in the place of as many extents from `position` on, and gives those of them that
    /// had places; none, and nothing changes, where the list has not so many. Cost: one look at each
    /// run that it replaces, and one move of what follows in memory.
    pub(crate) fn put(&mut self, position: u32, run: Run) -> Option<Vec<Run>> {
        let end = position.checked_add(run.count).filter(|&end| end <= self.len)?;
        let mut old = Vec::new();
        if run.count == 0 {
            return Some(old);
        }
        let of = |at: u32| self.places.partition_point(|&(before, _)| before <= at) - 1;
        // With a neighbour on each side, which may come to touch it.
        let (from, upto) =
            (of(position).saturating_sub(1), (of(end - 1) + 2).min(self.places.len()));
        let base = self.places[from].0;
        let mut made = Self::default();
        let mut is_in = false;
        for at in from..upto {
            let (before, start) = self.places[at];
            let behind = self.places.get(at + 1).map_or(self.len, |&(next, _)| next);
            let whole = Run { start, count: behind - before };
            let (a, b) = (position.clamp(before, behind), end.clamp(before, behind));
            made.push(whole.part(0, a - before));
            if a < b {
                let replaced = whole.part(a - before, b - a);
                old.extend(replaced.has_place().then_some(replaced));
                if !core::mem::replace(&mut is_in, true) {
                    made.push(run);
                }
            }
            made.push(whole.part(b - before, behind - b));
        }
        let made = made.places.into_iter().map(|(before, start)| (before + base, start));
        self.places.splice(from..upto, made);
        Some(old)
    }
    /// Keeps the first `len` extents and gives those of the others that have places.
    pub(crate) fn truncate(&mut self, len: u32) -> Vec<Run> {
        let mut cut = Vec::new();
        while self.len > len {
            let (before, start) = *self.places.last().expect("a run for each extent");
            let keep = len.saturating_sub(before);
            let run = Run { start, count: self.len - before };
            cut.extend(run.has_place().then(|| run.part(keep, run.count - keep)));
            self.len = before + keep;
            if keep == 0 {
                self.places.pop();
            }
        }
        cut
    }
}

/// The free extents of one disk: start and count of each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FreeMap {
    runs: BTreeMap<u32, u32>,
    free: u32,
}

impl FreeMap {
    /// All of `extents` free.
    pub(crate) fn new(extents: Range<u32>) -> Self {
        let free = extents.end - extents.start;
        Self { runs: BTreeMap::from([(extents.start, free)]), free }
    }
    /// How many extents are free.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }
    /// How many extents of `zone` are free.
    pub(crate) fn free_in(&self, zone: &Range<u32>) -> u32 {
        self.within(zone).map(|run| run.count).sum()
    }
    /// The free runs, cut to `zone`.
    fn within(&self, zone: &Range<u32>) -> impl Iterator<Item = Run> {
        let zone = zone.clone();
        let first = self.runs.range(..zone.start).next_back().map_or(zone.start, |(&at, _)| at);
        self.runs.range(first..zone.end.max(first)).filter_map(move |(&start, &count)| {
            let (from, to) = (start.max(zone.start), (start + count).min(zone.end));
            (from < to).then(|| Run { start: from, count: to - from })
        })
    }
    /// Takes `run` out; false, and nothing changes, where not all of it is free.
    pub(crate) fn take(&mut self, run: Run) -> bool {
        let Some(end) = run.start.checked_add(run.count) else { return false };
        if run.count == 0 {
            return true;
        }
        let Some((&start, &count)) = self.runs.range(..=run.start).next_back() else {
            return false;
        };
        if start + count < end {
            return false;
        }
        self.runs.remove(&start);
        if start < run.start {
            self.runs.insert(start, run.start - start);
        }
        if end < start + count {
            self.runs.insert(end, start + count - end);
        }
        self.free -= run.count;
        true
    }
    /// The longest free run of `zone`.
    pub(crate) fn longest_in(&self, zone: &Range<u32>) -> u32 {
        self.within(zone).map(|run| run.count).max().unwrap_or(0)
    }
    /// Whether all of `run` is free.
    pub(crate) fn has(&self, run: Run) -> bool {
        let end = run.start.checked_add(run.count);
        let before = self.runs.range(..=run.start).next_back();
        end.zip(before).is_some_and(|(end, (&start, &count))| end <= start + count)
    }
    /// The first stretch of at least so many free extents of `zone` from `from` on, none of which is
    /// in `avoid`: from there to its end. Cost: one look at each free run on the way.
    pub(crate) fn stretch(
        &self,
        zone: &Range<u32>,
        from: u32,
        least: u32,
        avoid: &BTreeSet<u32>,
    ) -> Option<Run> {
        let rest = from.max(zone.start)..zone.end;
        self.within(&rest).find_map(|run| {
            let (mut clean, mut avoided) = (Vec::new(), Vec::new());
            split(run, avoid, &mut clean, &mut avoided);
            clean.into_iter().find(|run| run.count >= least)
        })
    }
    /// Puts back what was taken.
    pub(crate) fn give(&mut self, run: Run) {
        let (mut start, mut end) = (run.start, run.start + run.count);
        if let Some((&at, &count)) = self.runs.range(..=start).next_back() {
            assert!(at + count <= start, "extent {start} is given back twice");
            if at + count == start {
                self.runs.remove(&at);
                start = at;
            }
        }
        if let Some((&at, &count)) = self.runs.range(run.start..).next() {
            assert!(end <= at, "extent {at} is given back twice");
            if end == at {
                self.runs.remove(&at);
                end = at + count;
            }
        }
        self.runs.insert(start, end - start);
        self.free += run.count;
    }
    /// Chooses `wanted` free extents in `zone`, and changes nothing: the run
    /// behind `after` first, so that a growing volume stays in one piece; then
    /// the lowest run that holds all that is left; then the longest runs,
    /// the lowest first among equals. Of a longer run than an extent as many are taken
    /// whole as there are, in the same order, before any is taken in parts. What is in
    /// `avoid` is taken last, and only as much of it as must be. `None` where there are
    /// not enough.
    pub(crate) fn choose(
        &self,
        zone: &Range<u32>,
        wish: &Wish,
        avoid: &BTreeSet<u32>,
    ) -> Option<Vec<Run>> {
        let Wish { wanted, mut after, run, .. } = *wish;
        if self.free_in(zone) < wanted {
            return None;
        }
        let (mut rest, mut avoided) = (Vec::new(), Vec::new());
        self.within(zone).for_each(|run| split(run, avoid, &mut rest, &mut avoided));
        let clean = rest.iter().map(|run| run.count).sum::<u32>().min(wanted);
        let (mut left, mut chosen) = (clean, Vec::new());
        if run > 1 {
            left -= take_whole(&mut rest, &mut chosen, &Wish { wanted: left, ..*wish });
            after = chosen.last().map(|run: &Run| run.start + run.count - 1).or(after);
        }
        let neighbour = after.and_then(|last| rest.iter().position(|run| run.start == last + 1));
        let mut next = neighbour;
        while left > 0 {
            let i = next.take().or_else(|| rest.iter().position(|run| run.count >= left));
            let Some(i) = i else {
                rest.sort_by_key(|run| (core::cmp::Reverse(run.count), run.start));
                for run in core::mem::take(&mut rest) {
                    let count = run.count.min(left);
                    chosen.push(Run { start: run.start, count });
                    left -= count;
                    if left == 0 {
                        break;
                    }
                }
                break;
            };
            let run = rest.remove(i);
            let count = run.count.min(left);
            chosen.push(Run { start: run.start, count });
            left -= count;
        }
        chosen.retain(|run| run.count > 0);
        chosen.extend(avoided.into_iter().take((wanted - clean) as usize));
        Some(chosen)
    }
}

/// What a volume wants to have of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// So many extents,
    pub(crate) wanted: u32,
    /// behind this one,
    pub(crate) after: Option<u32>,
    /// so many of them in a row,
    pub(crate) run: u32,
    /// of which it has so many of the last row already.
    pub(crate) within: u32,
}

/// Takes whole rows out of the free runs, the rest of the row that is there in part first:
/// behind what is there; then from the lowest run that holds all that is left, or else from
/// the one with the most. Gives how many extents were taken.
fn take_whole(rest: &mut Vec<Run>, chosen: &mut Vec<Run>, wish: &Wish) -> u32 {
    let Wish { wanted, mut after, run, within: mut begun } = *wish;
    let mut left = wanted;
    while left > 0 {
        let need = (run - begun).min(left);
        let whole = |free: &Run| match free.count {
            count if count >= left => left,
            count if count < need => 0,
            count => need + (count - need) / run * run,
        };
        let behind = after.take().and_then(|last| {
            rest.iter().position(|free| free.start == last + 1 && whole(free) > 0)
        });
        let holds_all = || rest.iter().position(|free| free.count >= left);
        let longest = || {
            let some = rest.iter().enumerate().filter(|(_, free)| whole(free) > 0);
            some.max_by_key(|(at, free)| (whole(free), core::cmp::Reverse(*at))).map(|(at, _)| at)
        };
        let Some(at) = behind.or_else(holds_all).or_else(longest) else { break };
        let Run { start, count: free } = rest[at];
        let count = whole(&rest[at]);
        chosen.push(Run { start, count });
        (left, begun) = (left - count, 0);
        if free == count {
            rest.remove(at);
        } else {
            rest[at] = Run { start: start + count, count: free - count };
        }
    }
    wanted - left
}

/// Parts a run into what lies between extents in `avoid`, and those, one by one.
fn split(run: Run, avoid: &BTreeSet<u32>, clean: &mut Vec<Run>, avoided: &mut Vec<Run>) {
    let (mut start, end) = (run.start, run.start + run.count);
    for &extent in avoid.range(start..end) {
        if extent > start {
            clean.push(Run { start, count: extent - start });
        }
        avoided.push(Run { start: extent, count: 1 });
        start = extent + 1;
    }
    if end > start {
        clean.push(Run { start, count: end - start });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn run(start: u32, count: u32) -> Run {
        Run { start, count }
    }

    /// Where an extent is in the list.
    fn place_of(runs: &Runs, extent: u32) -> Option<u32> {
        (0..runs.len()).find(|&at| runs.get(at) == Some(extent))
    }

    #[test]
    fn a_list_of_runs_merges_finds_and_cuts() {
        let mut runs = Runs::default();
        for piece in [run(10, 2), run(12, 3), run(4, 1), run(6, 2)] {
            runs.push(piece);
        }
        assert_eq!(runs.iter().collect::<Vec<_>>(), [run(10, 5), run(4, 1), run(6, 2)]);
        let all: Vec<_> = (0..9).map(|i| runs.get(i)).collect();
        let expected = [10, 11, 12, 13, 14, 4, 6, 7].map(Some);
        assert_eq!(all[..8], expected);
        assert_eq!(all[8], None);
        assert_eq!(runs.truncate(3), [run(6, 2), run(4, 1), run(13, 2)]);
        assert_eq!((runs.len(), runs.last()), (3, Some(12)));
        assert_eq!(runs.truncate(0), [run(10, 3)]);
        assert_eq!((runs.len(), runs.runs(), runs.last()), (0, 0, None));
    }

    #[test]
    fn an_extent_is_replaced_in_its_place_and_found_by_its_number() {
        let mut runs = Runs::default();
        [run(10, 5), run(4, 1)].into_iter().for_each(|piece| runs.push(piece));
        assert_eq!(
            (place_of(&runs, 12), place_of(&runs, 4), place_of(&runs, 15)),
            (Some(2), Some(5), None)
        );
        let put = |runs: &mut Runs, at, extent| {
            runs.put(at, run(extent, 1))
                .map(|old| old.iter().map(|run| run.start).collect::<Vec<_>>())
        };
        assert_eq!(put(&mut runs, 2, 30), Some(vec![12]));
        assert_eq!(
            runs.iter().collect::<Vec<_>>(),
            [run(10, 2), run(30, 1), run(13, 2), run(4, 1)]
        );
        assert_eq!((runs.len(), place_of(&runs, 30), place_of(&runs, 4)), (6, Some(2), Some(5)));
        assert_eq!(put(&mut runs, 2, 12), Some(vec![30]));
        assert_eq!(runs.iter().collect::<Vec<_>>(), [run(10, 5), run(4, 1)]);
        assert_eq!((put(&mut runs, 0, 3), put(&mut runs, 6, 3)), (Some(vec![10]), None));
    }

    /// Runs put over every stretch of a list, against a list of single extents; and what is cut off.
    #[test]
    fn a_list_with_places_and_without_is_what_a_list_of_its_extents_is() {
        let listed = |runs: &Runs| -> Vec<Option<u32>> {
            let each =
                |run: Run| (0..run.count).map(move |i| run.has_place().then(|| run.start + i));
            runs.iter().flat_map(each).collect()
        };
        let mut lists = vec![vec![Run::nowhere(7)], vec![run(10, 3), Run::nowhere(2), run(13, 2)]];
        lists.push(vec![Run::nowhere(1), run(5, 1), Run::nowhere(1), run(6, 1), run(1, 3)]);
        for list in lists {
            for at in 0..7 {
                for count in 0..=8 - at {
                    for start in [4, 12, 40, NO_PLACE] {
                        let mut runs = Runs::default();
                        list.iter().for_each(|&run| runs.push(run));
                        let mut each = listed(&runs);
                        let put = runs.put(at, Run { start, count });
                        if at + count > 7 {
                            assert_eq!((put, listed(&runs)), (None, each));
                            continue;
                        }
                        let new = Run { start, count };
                        let new = (0..count).map(|i| new.has_place().then(|| start + i));
                        let old: Vec<_> = each
                            .splice(at as usize..(at + count) as usize, new)
                            .flatten()
                            .collect();
                        let of = |run: &Run| run.start..run.start + run.count;
                        assert_eq!(put.unwrap().iter().flat_map(of).collect::<Vec<_>>(), old);
                        assert_eq!((listed(&runs), runs.len()), (each.clone(), 7));
                        let mut again = Runs::default();
                        runs.iter().for_each(|run| again.push(run));
                        assert_eq!(again, runs, "runs that touch are one");
                        for (position, extent) in each.iter().enumerate() {
                            assert_eq!(runs.get(position as u32), *extent);
                            let found = extent.and_then(|extent| place_of(&runs, extent));
                            let first =
                                extent.map(|_| each.iter().position(|e| e == extent).unwrap());
                            assert_eq!(found, first.map(|at| at as u32));
                        }
                        for from in 0..=runs.len() {
                            let mut rest = Runs::default();
                            runs.runs_from(from).for_each(|run| rest.push(run));
                            assert_eq!(listed(&rest), each[from as usize..]);
                            assert_eq!(runs.runs_from(from).count(), rest.runs());
                        }
                        let cut = runs.truncate(3);
                        assert_eq!(listed(&runs), each[..3]);
                        let cut: BTreeSet<_> = cut.iter().flat_map(of).collect();
                        assert_eq!(cut, each[3..].iter().copied().flatten().collect());
                    }
                }
            }
        }
    }

    #[test]
    fn a_free_map_takes_what_is_free_and_merges_what_comes_back() {
        let mut map = FreeMap::new(2..20);
        assert!(map.take(run(5, 3)) && map.take(run(2, 1)));
        // Runs that end where the zone begins, or lie behind it, are no part of it.
        assert_eq!(map.within(&(5..8)).count(), 0);
        assert_eq!(map.within(&(6..9)).collect::<Vec<_>>(), [run(8, 1)]);
        assert!(!map.take(run(4, 2)) && !map.take(run(19, 2)) && !map.take(run(0, 1)));
        assert!(!map.take(run(u32::MAX, 2)));
        assert_eq!((map.free(), map.free_in(&(2..6))), (14, 2));
        assert!(map.take(run(8, 12)));
        assert_eq!(map.runs.len(), 1, "nothing is left of a run that was taken whole");
        map.give(run(8, 12));
        map.give(run(5, 3));
        map.give(run(2, 1));
        assert_eq!(map, FreeMap::new(2..20));
    }

    #[test]
    fn space_is_chosen_next_door_then_low_and_whole_then_in_the_fewest_pieces() {
        let mut map = FreeMap::new(0..30);
        for taken in [run(2, 1), run(6, 1), run(15, 1)] {
            assert!(map.take(taken)); // free: 0-1, 3-5, 7-14, 16-29
        }
        let choose = |zone, wanted, after| {
            map.choose(zone, &Wish { wanted, after, run: 1, within: 0 }, &BTreeSet::new())
        };
        assert_eq!(choose(&(0..30), 3, None), Some(vec![run(3, 3)]));
        assert_eq!(choose(&(0..30), 2, Some(15)), Some(vec![run(16, 2)]));
        assert_eq!(choose(&(0..30), 9, Some(6)), Some(vec![run(7, 8), run(0, 1)]));
        assert_eq!(choose(&(0..30), 20, None), Some(vec![run(16, 14), run(7, 6)]));
        assert_eq!(choose(&(0..10), 5, None), Some(vec![run(3, 3), run(7, 2)]));
        assert_eq!(choose(&(0..30), 28, None), None);
        assert_eq!(choose(&(0..30), 0, None), Some(vec![]));
    }

    #[test]
    fn rows_are_chosen_whole_as_long_as_there_are_whole_ones() {
        let mut map = FreeMap::new(0..40);
        for taken in [run(3, 1), run(9, 1), run(18, 1)] {
            assert!(map.take(taken)); // free: 0-2, 4-8, 10-17, 19-39
        }
        let choose = |wanted, after, within| {
            map.choose(&(0..40), &Wish { wanted, after, run: 4, within }, &BTreeSet::new())
        };
        assert_eq!(choose(8, None, 0), Some(vec![run(10, 8)]), "the lowest that holds all");
        // 21 in a row give five rows, eight two, and the next five one.
        let rows = vec![run(19, 20), run(10, 8), run(4, 4)];
        assert_eq!(choose(32, None, 0), Some(rows.clone()));
        // Two are missing of the row that was begun: they are there, behind it.
        assert_eq!(choose(4, Some(9), 2), Some(vec![run(10, 4)]));
        assert_eq!(choose(10, Some(9), 2), Some(vec![run(10, 6), run(4, 4)]));
        // What is left where there are no whole rows any more is taken in parts.
        let parts = choose(36, None, 0).unwrap();
        assert_eq!(parts[..3], rows);
        assert_eq!(parts[3..].iter().map(|run| run.count).sum::<u32>(), 4);
        // The neighbour is too short for the row: it is begun anew elsewhere.
        assert_eq!(choose(4, Some(18), 0), Some(vec![run(19, 4)]));
        assert_eq!(choose(3, Some(3), 0), Some(vec![run(4, 3)]));
        assert_eq!(choose(12, Some(3), 2), Some(vec![run(4, 2), run(19, 10)]));
    }

    #[test]
    fn what_is_to_be_avoided_is_chosen_last_and_never_more_of_it_than_must_be() {
        let mut map = FreeMap::new(0..10);
        assert!(map.take(run(4, 1)));
        let avoid = BTreeSet::from([0, 2, 4, 8]);
        let choose = |wanted, after| {
            map.choose(&(0..10), &Wish { wanted, after, run: 1, within: 0 }, &avoid)
        };
        assert_eq!(choose(1, None), Some(vec![run(1, 1)]));
        assert_eq!(choose(3, None), Some(vec![run(5, 3)]));
        assert_eq!(choose(2, Some(7)), Some(vec![run(5, 2)]));
        assert_eq!(choose(6, None), Some(vec![run(5, 3), run(1, 1), run(3, 1), run(9, 1)]));
        assert_eq!(choose(8, None).unwrap()[4..], [run(0, 1), run(2, 1)]);
        assert_eq!(choose(9, None).map(|runs| runs.iter().map(|run| run.count).sum()), Some(9));
        assert_eq!(choose(10, None), None);
    }
}
