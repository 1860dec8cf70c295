//! The summary of a large set: what decides about one task more without looking at
//! all the others.
//!
//! Time is cut into *cells*: [`PER_OCTAVE`] in each doubling. For a cell two lower
//! bounds of the difference `L - demand(L) - blocking(L)` are known, both safe for
//! every `L` in it:
//!
//! * the *line*: `demand(L) <= share * L + ahead` over the tasks whose deadline is
//!   before the cell's end, since `floor(x) + 1 <= x + 1`. Shares and leads are summed
//!   up per cell, so a task that joins or leaves changes one cell. Where deadlines are
//!   periods and requests short beside them, the line decides almost always;
//! * the *track*: what a walk over the cell's deadlines once found, less all that has
//!   joined since, plus what has left. A cell has one from the first time that its
//!   line does not suffice.
//!
//! Only where both are below the reserve is the cell walked again, for a new track;
//! so the answer is the exact one. A walk leaves the track halfway between the
//! reserve and the truth or better, so that the next walk of this cell comes when
//! about half of what was left is gone.
//!
//! Invariants: `sums` are those of the tasks with their deadline in the cell; `tracks`
//! is sorted by cell; a track holds from its `from` to the end of its cell.

use super::rows::{BlockingSteps, Row, Rows, Sums};
use super::search::{Range, Search};
use crate::limits::HORIZON_MAX;
use crate::task::WHOLE;
use alloc::vec::Vec;

/// Cells in each doubling of the interval, as a power of two: fine enough that the
/// work of a cell is 3 % of the interval, coarse enough that a few dozen cells cover
/// all periods of one disk.
const PER_OCTAVE_SHIFT: u32 = 5;
/// The same.
const PER_OCTAVE: u64 = 1 << PER_OCTAVE_SHIFT;

/// The cell of an interval.
fn cell_of(interval: u64) -> usize {
    let shift = interval.max(PER_OCTAVE).ilog2() - PER_OCTAVE_SHIFT;
    (u64::from(shift) * PER_OCTAVE + (interval >> shift)) as usize
}

/// The first interval of a cell.
fn start_of(cell: usize) -> u64 {
    let cell = cell as u64;
    let shift = (cell / PER_OCTAVE).saturating_sub(1);
    (cell - shift * PER_OCTAVE) << shift
}

/// What a walk found, kept up to date.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    cell: usize,
    from: u64,
    least: i64,
}

/// The summary.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    sums: Vec<Sums>,
    tracks: Vec<Track>,
}

/// What the cells say of a set.
pub(super) enum Answer {
    /// No difference is below the reserve; none is below that of `weakest`.
    Fits { weakest: Weakest, learned: Vec<Track> },
    /// The difference at this deadline is.
    Below(u64),
    /// Not known in bounded work.
    Undecided,
}

/// The lowest bound of all cells, and where that cell begins: the exact search does well
/// to look there first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weakest {
    pub least: i64,
    pub at: u64,
}

impl Weakest {
    fn see(&mut self, view: &View) {
        if view.bound < self.least {
            *self = Self { least: view.bound, at: view.from };
        }
    }
}

/// Walks over the cells of a set, with what is known before any of them is walked.
struct Stroll<'a> {
    cells: &'a Cells,
    search: &'a Search<'a>,
    /// The next cell, and the first interval to look at.
    cell: usize,
    first: u64,
    deadline_max: u64,
    below: Sums,
}

/// One cell and the better of its bounds.
struct View {
    cell: usize,
    from: u64,
    until: u64,
    bound: i64,
    /// The line alone.
    line: i64,
}

impl Cells {
    /// The summary of these classes.
    pub fn of(rows: &[Row]) -> Self {
        let mut cells = Self { sums: Vec::new(), tracks: Vec::new() };
        for row in rows {
            cells.count(None, Some(row));
        }
        cells
    }

    /// A class has changed: what it was, and what it is.
    fn count(&mut self, before: Option<&Row>, after: Option<&Row>) {
        let row = before.or(after).expect("one of them");
        let cell = cell_of(row.deadline);
        if self.sums.len() <= cell {
            self.sums.resize(cell + 1, Sums::default());
        }
        let sums = &mut self.sums[cell];
        *sums = after.map_or(*sums, |row| sums.plus(Sums::of(row)));
        *sums = before.map_or(*sums, |row| sums.minus(Sums::of(row)));
    }

    /// A task joins; `blocking_steps` is that of the others.
    pub fn insert(
        &mut self,
        one: &Row,
        command: u64,
        blocking_steps: &BlockingSteps,
        (before, after): (Option<Row>, Row),
    ) {
        self.count(before.as_ref(), Some(&after));
        for track in &mut self.tracks {
            let loss = loss(track.cell, one, command, |interval| blocking_steps.blocking(interval));
            track.least = track.least.saturating_sub(loss);
        }
    }

    /// A task leaves.
    pub fn withdraw(&mut self, one: &Row, (before, after): (Row, Option<Row>)) {
        self.count(Some(&before), after.as_ref());
        for track in &mut self.tracks {
            let gain = one.demand(start_of(track.cell));
            track.least = track.least.saturating_add(gain as i64);
        }
    }

    /// Takes over what walks have found, by cell.
    pub fn learn(&mut self, learned: Vec<Track>) {
        for track in learned {
            match self.tracks.binary_search_by_key(&track.cell, |it| it.cell) {
                Ok(at) => self.tracks[at] = track,
                Err(at) => self.tracks.insert(at, track),
            }
        }
    }

    /// Whether every difference is at least `reserve`. The utilisation, with the
    /// candidate, is below 1; or the search is for no reserve, and
    /// [`Search::is_whole_at_rates`].
    pub fn decide(&self, rows: &Rows, search: &Search<'_>, reserve: u64) -> Answer {
        let mut weakest = Weakest { least: i64::MAX, at: 0 };
        let (mut learned, mut visits) = (Vec::new(), 0);
        let mut stroll = Stroll::new(self, rows, search);
        loop {
            let mut view = stroll.next();
            if search.sums.share >= WHOLE && stroll.is_last(&view) {
                let weakest = Weakest { least: weakest.least.min(0), ..weakest };
                return Answer::Fits { weakest, learned };
            }
            if view.from > HORIZON_MAX.as_nanos() {
                return Answer::Undecided;
            }
            if view.bound < reserve as i64 {
                view.bound = match search.range(view.from, view.until, reserve, &mut visits) {
                    Range::AtLeast(bound) => bound,
                    Range::Below(at) => return Answer::Below(at),
                    Range::Undecided => return Answer::Undecided,
                };
                learned.push(Track { cell: view.cell, from: view.from, least: view.bound });
            }
            weakest.see(&view);
            if stroll.is_last(&view) && view.line >= reserve as i64 {
                return Answer::Fits { weakest, learned };
            }
        }
    }

    /// A lower bound of every difference, without a walk; the utilisation is below 1.
    pub fn least(&self, rows: &Rows, search: &Search<'_>) -> Weakest {
        let mut stroll = Stroll::new(self, rows, search);
        let mut weakest = Weakest { least: i64::MAX, at: 0 };
        loop {
            let view = stroll.next();
            weakest.see(&view);
            if stroll.is_last(&view) {
                // From here on the line rises.
                return Weakest { least: weakest.least.min(view.line), ..weakest };
            }
        }
    }
}

impl<'a> Stroll<'a> {
    fn new(cells: &'a Cells, rows: &Rows, search: &'a Search<'a>) -> Self {
        let candidate = search.candidate.map(|row| row.deadline);
        let first = rows.deadline_min().into_iter().chain(candidate).min();
        let first = first.expect("a set with a summary is not empty");
        let deadline_max = search.deadline_max();
        Self { cells, search, cell: cell_of(first), first, deadline_max, below: Sums::default() }
    }

    fn next(&mut self) -> View {
        let cell = self.cell;
        self.cell += 1;
        let (from, until) = (start_of(cell).max(self.first), start_of(cell + 1));
        let candidate = self.search.candidate;
        if let Some(sums) = self.cells.sums.get(cell) {
            self.below = self.below.plus(*sums);
        }
        if let Some(row) = candidate.filter(|row| cell_of(row.deadline) == cell) {
            self.below = self.below.plus(Sums::of(&row));
        }
        let blocking = self.search.blocking(from) as i64;
        let line = from as i64 - self.below.demand_most(from) - blocking;
        let bound = line.max(self.track(cell, from).unwrap_or(line));
        View { cell, from, until, bound, line }
    }

    fn track(&self, cell: usize, from: u64) -> Option<i64> {
        let tracks = &self.cells.tracks;
        let at = tracks.binary_search_by_key(&cell, |track| track.cell).ok()?;
        let track = Some(tracks[at]).filter(|track| track.from <= from)?;
        let Some(row) = self.search.candidate else { return Some(track.least) };
        let others = |interval| self.search.blocking_of_others(interval);
        Some(track.least.saturating_sub(loss(cell, &row, self.search.command, others)))
    }

    /// True where no cell beyond this one has a lower line.
    fn is_last(&self, view: &View) -> bool {
        view.from >= self.deadline_max
    }
}

/// By how much a task that joins lowers the differences in a cell at the most.
fn loss(cell: usize, one: &Row, command: u64, others: impl Fn(u64) -> u64) -> i64 {
    let last = start_of(cell + 1) - 1;
    let demand = one.demand(last);
    // Where it is due later it may be in the way: where the others block least.
    let in_the_way = last.min(one.deadline - 1);
    let blocking =
        if in_the_way >= start_of(cell) { command.saturating_sub(others(in_the_way)) } else { 0 };
    (demand + blocking) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_lie_one_after_the_other_and_are_narrow() {
        for cell in 0..1_600 {
            let (start, end) = (start_of(cell), start_of(cell + 1));
            assert!(start < end && (end - start) * PER_OCTAVE <= start.max(PER_OCTAVE));
            assert_eq!((cell_of(start), cell_of(end - 1)), (cell, cell));
        }
        assert!(start_of(1_600) > crate::limits::PERIOD_MAX.as_nanos());
    }
}
