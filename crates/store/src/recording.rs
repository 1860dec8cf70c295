//! Notes when volumes are recorded, and makes few corners of it while it goes on.
//!
//! Bytes arrive, and the store is told so at once; what of them a commit covers becomes a part of
//! the volume's line of time with that commit ([`Recorded`](crate::recorded::Recorded)). A line
//! goes on as long as a straight one passes every arrival within the tolerance (the swinging door of
//! Bristol, "Swinging door trending", 1990; but the end of a line is put into the door, so that
//! errors do not add up).
//! Otherwise a corner is made. Where nothing came for [`PAUSE`], or the clock was set back, the
//! line breaks.
//!
//! Invariants: a record has at most [`CORNERS`] corners for each volume whose length rose, and for
//! [`OTHERS`] more; [`MORE_CORNERS`] more for all of them together, or one list of corners that are
//! dropped. What does not fit waits for the next record. A volume never has more corners than
//! [`limit`], and never so many that a checkpoint would be larger than its place: then the
//! tolerance doubles until a quarter of the corners can go, and without any room nothing is noted.
//!
//! What was noted less exactly makes nothing else so for good. Where a [`CALM`] part of a ring was
//! recorded without that corners had to go, it is noted exactly again ([`Exact`]); what a record says
//! of the tolerance follows when the ring has given up all that was noted before. Until then the
//! tolerance of what was noted since doubles apart, and only its own corners go.

use crate::api::VolumeId;
use crate::recorded::{
    DOUBLINGS_MAX, More, POINTS_MAX, Point, Stepped, TOLERANCE, blocks, time_on,
};
use crate::sizes::BLOCK;
use crate::volume::Volume;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};
use units::Bytes;

/// After so many milliseconds without a byte a line breaks, where that is more than
/// [`PAUSE_TIMES`] as long as nothing came before.
const PAUSE: u64 = 1_000;
const PAUSE_TIMES: u64 = 4;
/// One of so many parts of a ring is recorded before it is noted exactly again,
const CALM: u64 = 16;
/// where one of so many of its corners is free: what is noted so becomes less exact again by itself
/// where there are enough of it.
const FREE: usize = 8;
/// What arrives within so many milliseconds is noted as one arrival.
const TOGETHER: u64 = 250;
/// Arrivals of a volume that wait for a commit; more of them become one with the last.
const WAITING_MAX: usize = 64;
/// Corners in a record for each volume of which it has some.
pub(crate) const CORNERS: usize = 2;
/// Volumes whose length did not rise and that a record has corners of nevertheless.
pub(crate) const OTHERS: usize = 8;
/// Corners that a record has beyond, of all volumes together.
pub(crate) const MORE_CORNERS: usize = 21;
/// Bytes of the longest list of corners that are dropped.
pub(crate) const DROPPED_MAX: usize = POINTS_MAX / 8;

/// How many corners a volume of so many extents has at the most: of the 10 bytes of a checkpoint
/// that there are for an extent 1.5, and some for a small one.
pub(crate) fn limit(extents: u64) -> usize {
    usize::try_from(64 + extents / 8).unwrap_or(POINTS_MAX).min(POINTS_MAX)
}

/// What an open pool knows of the clock by which a ring is recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clocked {
    /// From this block on it was recorded since the pool was opened.
    pub(crate) first: Option<u64>,
    /// The step that the ring had before the one that does not stand yet, where there is such a one.
    pub(crate) before: Option<Option<Stepped>>,
    /// A step stands since the pool was opened.
    pub(crate) has_step: bool,
}

/// Bytes that arrived one after the other, in about the same moment.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    from: u64,
    to: u64,
    /// When the first of them came, and the last.
    began: u64,
    at: u64,
    of: Source,
}

/// Where arrivals are known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// They came here.
    Here,
    /// A line of another recording, which goes on with the one before, exactly as it is.
    Line,
    /// The same after a break.
    Break,
}

/// A slope: milliseconds for so many blocks.
type Slope = (u64, u64);

fn is_less((a, b): Slope, (c, d): Slope) -> bool {
    u128::from(a) * u128::from(d) < u128::from(c) * u128::from(b)
}

/// The lines from a corner on that pass all arrivals since then.
#[derive(Clone, Copy, Debug)]
struct Door {
    from: Point,
    least: Slope,
    most: Slope,
}

impl Door {
    /// All lines from a corner that pass by a point.
    fn by(from: Point, to: Point, tolerance: u64) -> Self {
        let (rise, run) = (to.at.saturating_sub(from.at), to.block - from.block);
        let least = (rise.saturating_sub(tolerance), run);
        Self { from, least, most: (rise.saturating_add(tolerance), run) }
    }
    /// Those that pass by another point as well.
    fn narrowed(self, to: Point, tolerance: u64) -> Option<Self> {
        let other = Self::by(self.from, to, tolerance);
        // A line never falls: what came before its beginning is too far from all of them.
        if to.at.saturating_add(tolerance) < self.from.at {
            return None;
        }
        let least = if is_less(self.least, other.least) { other.least } else { self.least };
        let most = if is_less(self.most, other.most) { self.most } else { other.most };
        (!is_less(most, least)).then_some(Self { from: self.from, least, most })
    }
    /// The point of the door at this place that is nearest to a time.
    fn nearest(&self, to: Point) -> Point {
        let run = u128::from(to.block - self.from.block);
        let of = |(rise, by): Slope| u128::from(rise) * run / u128::from(by.max(1));
        let rise = u128::from(to.at.saturating_sub(self.from.at));
        let rise = rise.min(of(self.most)).max(of(self.least));
        let rise = u64::try_from(rise).unwrap_or(u64::MAX);
        Point { block: to.block, at: self.from.at.saturating_add(rise) }
    }
}

/// What is noted of one volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    waiting: VecDeque<Arrival>,
    door: Option<Door>,
    /// When the last byte came that is on the line.
    latest: u64,
    /// How long nothing came before that.
    gap: u64,
    /// How often the tolerance has doubled of what was copied here.
    doublings: u8,
    /// Of a ring, what is more exact than the volume says,
    exact: Option<Exact>,
    /// and from which block on no corner had to go, as long as all is equally exact.
    calm: Option<u64>,
    /// By which clock it is recorded.
    pub(crate) clocked: Clocked,
}

/// The end of a recording, which is noted more exactly than what was before. It is known of an open
/// pool only: when it is opened, all of a recording is as exact as its least exact part.
#[derive(Clone, Copy, Debug)]
struct Exact {
    /// It begins with this block; with what arrives next, where there is none yet.
    first: Option<u64>,
    /// How often its tolerance has doubled.
    doublings: u8,
}

/// What is noted of all volumes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording(pub(crate) BTreeMap<VolumeId, Noted>);

impl Recording {
    /// The volume is gone, or some of what is recorded in it.
    pub(crate) fn forget(&mut self, id: VolumeId) {
        self.0.remove(&id);
    }
    /// The volume, of which all that is recorded stays, has this size from now on.
    pub(crate) fn cut(&mut self, id: VolumeId, size: Bytes) {
        if let Some(noted) = self.0.get_mut(&id) {
            noted.cut(blocks(size));
        }
    }
}

/// The corners at the end of a line that a record may change.
struct Tail {
    points: Vec<Point>,
    /// The first of them was there before.
    has_last: bool,
}

impl Noted {
    /// Something waits for a record.
    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }
    /// When what waits came.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().map(|arrival| arrival.began)
    }
    /// A ring has given up all that was noted less exactly than the rest: a record is to say so.
    pub(crate) fn is_exact_again(&self, volume: &Volume) -> bool {
        let first = self.exact.and_then(|exact| exact.first);
        first.is_some_and(|first| BLOCK * first <= volume.start())
    }
    /// Blocks from this one on are there no more.
    fn cut(&mut self, end: u64) {
        self.waiting.retain(|arrival| arrival.from < end);
        if let Some(last) = self.waiting.back_mut() {
            last.to = last.to.min(end);
        }
    }
    /// These blocks have arrived at a time; of those that were there before it is nothing new.
    pub(crate) fn arrived(&mut self, place: Range<u64>, at: u64) {
        let least = self.waiting.back().map_or(place.start, |last| last.to);
        let (from, to) = (place.start.max(least), place.end);
        if from >= to {
            return;
        }
        let is_full = self.waiting.len() >= WAITING_MAX;
        match self.waiting.back_mut() {
            Some(last) if is_full || (last.began..last.began + TOGETHER).contains(&at) => {
                (last.to, last.at) = (to, at);
            }
            _ => self.waiting.push_back(Arrival { from, to, began: at, at, of: Source::Here }),
        }
    }
    /// The recorded bytes are a copy of a part of another volume, which has these lines, and whose
    /// tolerance has doubled so often. Those up to block `done` are known here already. Takes
    /// [`WAITING_MAX`] of them; nothing waits yet.
    pub(crate) fn copied(
        &mut self,
        lines: impl Iterator<Item = (Point, Point)>,
        done: u64,
        doublings: u8,
    ) {
        self.doublings = doublings;
        let mut end = None;
        let arrivals = lines.filter_map(|(a, b)| {
            let breaks = end.is_some_and(|end| end != a.at);
            end = Some(b.at);
            let is_new = a.block >= done;
            let from = if is_new { a } else { Point { block: done, at: time_on(a, b, done) } };
            let of = if breaks && is_new { Source::Break } else { Source::Line };
            let arrival = Arrival { from: from.block, to: b.block, began: from.at, at: b.at, of };
            (b.block > done).then_some(arrival)
        });
        self.waiting.extend(arrivals.take(WAITING_MAX));
    }
    /// Goes on with the line as far as the volume's length; gives what changes by it, where
    /// something does: at most so many corners.
    pub(crate) fn on_with(
        &mut self,
        volume: &Volume,
        mut most: usize,
        room: usize,
        may_drop: bool,
    ) -> Option<More> {
        let there = volume.recorded.points.len();
        let limit = limit(volume.extents()).min(there.saturating_add(room));
        let is_exact_again = self.is_exact_again(volume);
        let (mut doublings, mut exact) =
            (volume.recorded.doublings.max(self.doublings), self.exact);
        if is_exact_again {
            doublings = exact.take().map_or(doublings, |exact| exact.doublings);
        }
        let mut said = More { doublings, ..More::default() };
        let mut last = volume.recorded.points.last().copied();
        let at_first = last.map_or(0, |last| last.block);
        if exact.is_none() && doublings > 0 && volume.is_ring() {
            let calm = at_first.saturating_sub(*self.calm.get_or_insert(at_first));
            let is_free = limit - there.min(limit) >= limit / FREE;
            if is_free && BLOCK * calm >= volume.size() / CALM {
                (exact, self.door) = (Some(Exact { first: None, doublings: 0 }), None);
            }
        }
        let mut kept = there;
        // A sample adds two at the most.
        if there + 2 > limit && self.waits() {
            match thinned(&volume.recorded.points, doublings, &mut exact).filter(|_| may_drop) {
                Some(thinned) => {
                    most = most.min(CORNERS);
                    (said.doublings, said.dropped) = (thinned.doublings, thinned.dropped);
                    (kept, last) = (thinned.left, thinned.last);
                    (self.door, self.calm) = (None, None);
                }
                // There is no room, and nothing to make some of.
                None if there < FEW => {
                    self.waiting.clear();
                    return None;
                }
                None => return None,
            }
        }
        self.exact = exact;
        let tolerance = TOLERANCE << exact.map_or(said.doublings, |exact| exact.doublings);
        let length = blocks(volume.length());
        let mut tail = Tail { points: last.into_iter().collect(), has_last: last.is_some() };
        let most_there = limit.saturating_sub(kept).min(most) + usize::from(last.is_some());
        while let Some(arrival) = self.next_within(length) {
            let before = (tail.points.clone(), self.door, self.latest, self.gap);
            self.add(&mut tail, arrival, tolerance);
            if tail.points.len() > most_there.min(most) {
                (tail.points, self.door, self.latest, self.gap) = before;
                self.waiting.push_front(arrival);
                break;
            }
            // From here on the line passes by all that arrives, however wrong its beginning is.
            if let Some(Exact { first: first @ None, .. }) = &mut self.exact {
                let to = tail.points.last().map_or(0, |point| point.block);
                *first = (to > at_first).then_some(to);
            }
        }
        let is_moved = tail.has_last && last != tail.points.first().copied();
        let from = usize::from(tail.has_last && !is_moved);
        said.kept = (kept - usize::from(is_moved)) as u16;
        said.points = tail.points.split_off(from);
        let has_news = !said.points.is_empty() || !said.dropped.is_empty() || is_exact_again;
        has_news.then_some(said)
    }
    /// The next arrival, as far as it lies before `length`.
    fn next_within(&mut self, length: u64) -> Option<Arrival> {
        let first = self.waiting.front_mut()?;
        if first.to <= length {
            return self.waiting.pop_front();
        }
        if first.from >= length {
            return None;
        }
        let (from, to) =
            (Point { block: first.from, at: first.began }, Point { block: first.to, at: first.at });
        let at = time_on(from, to, length);
        let part = Arrival { to: length, at, ..*first };
        (first.from, first.began) = (length, at);
        if first.of == Source::Break {
            first.of = Source::Line;
        }
        Some(part)
    }
    fn add(&mut self, tail: &mut Tail, arrival: Arrival, tolerance: u64) {
        let Arrival { from, to, began, at, of } = arrival;
        let tolerance = if of == Source::Here { tolerance } else { 0 };
        let to = Point { block: to, at };
        let Some(&last) = tail.points.last() else {
            tail.points.push(Point { block: from, at: began });
            return self.begin(tail, to, tolerance);
        };
        if to.block <= last.block {
            return; // a cut has left it behind
        }
        // After the pool was opened nobody knows when the last byte came but by the line.
        let latest = if self.door.is_some() { self.latest } else { last.at };
        let narrowed = self.door.and_then(|door| door.narrowed(to, tolerance));
        let gap = began.saturating_sub(latest);
        let usual = core::mem::replace(&mut self.gap, gap);
        let is_long = gap >= PAUSE && gap > usual.saturating_mul(PAUSE_TIMES);
        let paused = is_long && narrowed.is_none();
        let set_back = at.saturating_add(tolerance) < latest;
        if paused || set_back || of == Source::Break {
            tail.points.push(Point { block: last.block, at: began.min(at) });
            return self.begin(tail, to, tolerance);
        }
        match narrowed {
            Some(door) => {
                // The end moves on; it was no corner yet.
                *tail.points.last_mut().expect("just seen") = door.nearest(to);
                (self.door, self.latest) = (Some(door), at);
            }
            None => self.begin(tail, to, tolerance),
        }
    }
    /// A line begins at the last corner, and ends at `to` so far.
    fn begin(&mut self, tail: &mut Tail, to: Point, tolerance: u64) {
        let from = *tail.points.last().expect("a line begins at a corner");
        let door = Door::by(from, to, tolerance);
        tail.points.push(door.nearest(to));
        (self.door, self.latest) = (Some(door), to.at);
    }
}

/// Of so few corners none are dropped.
const FEW: usize = 8;

/// Fewer corners.
struct Thinned {
    doublings: u8,
    dropped: Vec<u8>,
    left: usize,
    last: Option<Point>,
}

/// Doubles the tolerance until a quarter of the corners can go, so that those that are left stay
/// within it of all that go. None where there are few. Of a recording whose end is more exact, that
/// end alone, as long as it stays so.
fn thinned(points: &[Point], doublings: u8, exact: &mut Option<Exact>) -> Option<Thinned> {
    if let Some(Exact { first: Some(first), doublings: its }) = *exact {
        let begins = points.partition_point(|point| point.block < first);
        let thinned = thinned_from(points, begins, its + 1..=doublings);
        if let Some(thinned) = thinned {
            let its = Some(thinned.doublings).filter(|&its| its < doublings);
            *exact = its.map(|its| Exact { first: Some(first), doublings: its });
            return Some(Thinned { doublings, ..thinned });
        }
    }
    *exact = None;
    thinned_from(points, 0, doublings + 1..=DOUBLINGS_MAX)
}

/// The same of the corners from one on, with the tolerances that there may be.
fn thinned_from(
    points: &[Point],
    first: usize,
    mut doublings: RangeInclusive<u8>,
) -> Option<Thinned> {
    let of = &points[first..];
    if of.len() < FEW {
        return None;
    }
    doublings.find_map(|doublings| {
        let keeps = kept_within(of, TOLERANCE << doublings);
        let goes = keeps.iter().filter(|&&keeps| !keeps).count();
        if of.len() - goes > of.len() * 3 / 4 {
            return None;
        }
        let mut dropped = vec![0; points.len().div_ceil(8)];
        for (i, _) in (first..).zip(&keeps).filter(|(_, keeps)| !**keeps) {
            dropped[i / 8] |= 1 << (i % 8);
        }
        let (left, last) = (points.len() - goes, points.last().copied());
        Some(Thinned { doublings, dropped, left, last })
    })
}

/// Which corners have to stay, so that lines between these pass all others within the tolerance.
/// The first and the last stay.
fn kept_within(points: &[Point], tolerance: u64) -> Vec<bool> {
    let mut keeps = vec![false; points.len()];
    let (mut from, mut least, mut most) = (0, i128::MIN, i128::MAX);
    keeps[0] = true;
    keeps[points.len() - 1] = true;
    let mut at = 1;
    while at < points.len() {
        let (a, b) = (points[from], points[at]);
        let run = i128::from(b.block - a.block);
        let rise = i128::from(b.at) - i128::from(a.at);
        let tolerance = i128::from(tolerance);
        // Slopes as milliseconds for so many blocks, in a fine unit.
        let slope = |rise: i128| (rise << 40) / run.max(1);
        let fits = match run {
            0 => rise.abs() <= tolerance,
            _ => (least..=most).contains(&slope(rise)),
        };
        if fits {
            if run > 0 {
                least = least.max(slope(rise - tolerance));
                most = most.min(slope(rise + tolerance));
            }
            at += 1;
        } else {
            // A break at the corner where the line begins is a corner itself.
            from = if at == from + 1 { at } else { at - 1 };
            keeps[from] = true;
            (least, most) = (i128::MIN, i128::MAX);
            at = from + 1;
        }
    }
    keeps
}

const _: () = assert!(TOLERANCE << DOUBLINGS_MAX > 1 << 48 && BLOCK.get() == 4096);
