//! When the bytes of a volume were recorded: a line of time over the offset, by its corners.
//!
//! A corner is a number of blocks and a wall-clock time. Between two corners the recording went on
//! at a steady rate. Two corners at the same place are a break: a pause, or a step of the clock.
//! How corners are chosen is in `recording.rs`; here is what they say, and how a cut changes them.
//!
//! Invariants: the places of corners never fall; there are at most [`POINTS_MAX`]. Times may fall:
//! clocks are set back. Nothing here divides by what was read without looking at it.

use crate::format;
use crate::sizes::BLOCK;
use alloc::vec::Vec;
use core::ops::Range;
use units::Bytes;

/// The most corners that any volume has: 24 KiB of a checkpoint.
pub(crate) const POINTS_MAX: usize = 2048;
/// What fits into a corner: the times of 8,900 years, and places far beyond any disk.
const NUMBER_MAX: u64 = (1 << 48) - 1;
/// How often the tolerance can have doubled: to longer than the times of any corner.
pub(crate) const DOUBLINGS_MAX: u8 = 40;
/// By how much a line may be off, in milliseconds, as long as nothing was thinned.
pub(crate) const TOLERANCE: u64 = 500;
const NANOS: i64 = 1_000_000;

/// A corner: the recording had come so far at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    /// Blocks from the start of the volume.
    pub(crate) block: u64,
    /// Milliseconds since 1970.
    pub(crate) at: u64,
}

/// A step forward of the clock by which a ring had been recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stepped {
    /// What was recorded from this block on,
    pub(crate) first: u64,
    /// by the clock before this time, in milliseconds since 1970,
    pub(crate) until: u64,
    /// was recorded so many milliseconds later.
    pub(crate) by: u64,
}

impl Stepped {
    pub(crate) fn is_of(&self, at: u64) -> bool {
        at < self.until
    }

    /// When a corner behind the first block was made.
    fn made(&self, point: Point) -> Point {
        match self.is_of(point.at) {
            true => Point { at: point.at.saturating_add(self.by), ..point },
            false => point,
        }
    }

    /// A line as it was recorded: where it begins before the first block, in two parts.
    pub(crate) fn reckon(&self, (a, b): (Point, Point)) -> [Option<(Point, Point)>; 2] {
        if b.block <= self.first {
            return [Some((a, b)), None];
        }
        if a.block >= self.first {
            return [Some((self.made(a), self.made(b))), None];
        }
        let middle = Point { block: self.first, at: time_on(a, b, self.first) };
        [Some((a, middle)), Some((self.made(middle), self.made(b)))]
    }

    /// This one came after `before`, in the same opening of the pool or in a later one.
    pub(crate) fn after(self, before: Option<Self>, is_same: bool) -> Self {
        let Some(before) = before else { return self };
        let by = if is_same { before.by.saturating_add(self.by) } else { before.by.max(self.by) };
        Self { first: before.first.min(self.first), until: before.until.max(self.until), by }
    }
}

/// When a volume's bytes were recorded, as far as it was noted.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Recorded {
    /// How often the tolerance has doubled, where it did most of what is held.
    pub(crate) doublings: u8,
    pub(crate) points: Vec<Point>,
}

/// How times are taken where it is asked how old something is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reckoning<'a> {
    /// Of a line that begins before this time, in nanoseconds since 1970, it is not known.
    pub(crate) known: i64,
    /// The clock was set forward.
    pub(crate) stepped: Option<&'a Stepped>,
}

/// Where in a recording a time is. Times are nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// At no place: nothing is known of when the volume was recorded.
    Unknown,
    /// Before its first byte, which was recorded at `begins`.
    Before {
        /// Where the recording begins.
        offset: Bytes,
        /// When it begins.
        begins: i64,
    },
    /// What was recorded at this time begins here; the latest such place, where a clock was set
    /// back and there are several.
    At {
        /// The place.
        offset: Bytes,
    },
    /// Nothing was recorded at this time.
    Pause {
        /// Where it goes on.
        offset: Bytes,
        /// The last time before at which something was recorded.
        ended: i64,
        /// The first time after.
        resumes: i64,
    },
    /// After its last byte, which was recorded at `ended`.
    After {
        /// Where the recording ends.
        offset: Bytes,
        /// When it ended.
        ended: i64,
    },
}

impl Point {
    /// What a place and a time in nanoseconds since 1970 are as a corner; all that was before 1970
    /// was at its beginning.
    pub(crate) fn new(offset: Bytes, nanos: i64) -> Self {
        let at = u64::try_from(nanos / NANOS).unwrap_or(0).min(NUMBER_MAX);
        Self { block: blocks(offset), at }
    }
}

/// How many blocks so many bytes reach into.
pub(crate) fn blocks(offset: Bytes) -> u64 {
    offset.div_ceil(BLOCK).min(NUMBER_MAX)
}

fn offset(block: u64) -> Bytes {
    BLOCK * block
}

fn nanos(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(NANOS)
}

/// What is `part` of `whole` from `from` on to `to`.
fn between(from: u64, to: u64, part: u64, whole: u64) -> u64 {
    let (from, to) = (i128::from(from), i128::from(to));
    let way = (to - from) * i128::from(part) / i128::from(whole.max(1));
    u64::try_from(from + way).unwrap_or(0)
}

/// When a line reaches a block that lies on it.
pub(crate) fn time_on(a: Point, b: Point, block: u64) -> u64 {
    between(a.at, b.at, block.saturating_sub(a.block), b.block.saturating_sub(a.block))
}

impl Recorded {
    /// True where nothing is known.
    pub fn is_empty(&self) -> bool {
        self.lines().next().is_none()
    }
    /// How many corners there are: of each, some bytes of metadata.
    pub fn len(&self) -> usize {
        self.points.len()
    }
    /// By how much what is told may be off, in nanoseconds: half a second, and where corners were
    /// dropped twice the largest tolerance of what is held.
    pub fn within(&self) -> i64 {
        nanos(TOLERANCE << self.doublings << u8::from(self.doublings > 0))
    }
    /// The stretches that were recorded at a steady rate, in their order.
    fn lines(&self) -> impl DoubleEndedIterator<Item = (Point, Point)> {
        let pairs = self.points.windows(2).map(|pair| (pair[0], pair[1]));
        pairs.filter(|(a, b)| a.block < b.block)
    }
    /// Of those, the parts that are held from `start` on.
    pub(crate) fn held(&self, start: Bytes) -> impl DoubleEndedIterator<Item = (Point, Point)> {
        let first = start / BLOCK;
        self.lines().filter(move |(_, b)| b.block > first).map(move |(a, b)| {
            match a.block < first {
                true => (Point { block: first, at: time_on(a, b, first) }, b),
                false => (a, b),
            }
        })
    }
    /// When the byte at `start` was recorded, or the first one behind it of which that is known.
    pub fn begins(&self, start: Bytes) -> Option<i64> {
        let (a, b) = self.lines().find(|(_, b)| offset(b.block) > start)?;
        Some(nanos(time_on(a, b, (start / BLOCK).max(a.block))))
    }
    /// Up to where all was recorded before a time, in nanoseconds since 1970, as far as that is
    /// known: where a clock was set back, what lies behind something younger does not count, and
    /// neither does what lies before the first line, as long as that is younger.
    pub(crate) fn recorded_before(&self, time: i64, reckoning: Reckoning<'_>) -> Bytes {
        let at = Point::new(Bytes::ZERO, time).at;
        let mut before = 0;
        for (a, b) in self.reckoned(reckoning) {
            if a.at.max(b.at) >= at {
                if a.at < at {
                    before = between(a.block, b.block, at - a.at, b.at.abs_diff(a.at));
                }
                break;
            }
            before = b.block;
        }
        offset(before)
    }
    /// From when to when something was recorded of what is held from `start` on, as far as it lies
    /// between two times, in nanoseconds since 1970: in order, and no two of them closer to each other
    /// than `apart`; what is closer is told as one.
    pub fn spans(&self, start: Bytes, during: Range<i64>, apart: i64) -> Vec<Range<i64>> {
        let ends = |line: (Point, Point)| {
            let (a, b) = (nanos(line.0.at), nanos(line.1.at));
            a.min(b).max(during.start)..a.max(b).min(during.end)
        };
        // Where a clock was set back they are in no order, and lie over each other.
        let mut all: Vec<_> =
            self.held(start).map(ends).filter(|span| span.start <= span.end).collect();
        all.sort_unstable_by_key(|span| span.start);
        let mut spans: Vec<Range<i64>> = Vec::new();
        for span in all {
            match spans.last_mut() {
                Some(last) if span.start.saturating_sub(last.end) < apart.max(1) => {
                    last.end = last.end.max(span.end);
                }
                _ => spans.push(span),
            }
        }
        spans
    }
    /// The end of the last bytes of which it is known when they were recorded; zero where there are
    /// none.
    pub fn known(&self) -> Bytes {
        self.lines().next_back().map_or(Bytes::ZERO, |(_, b)| offset(b.block))
    }
    /// The stretches from block `first` to block `end`, their places counted from `first`.
    pub(crate) fn moved(
        &self,
        first: u64,
        end: u64,
    ) -> impl Iterator<Item = (Point, Point)> + use<'_> {
        let held = self.held(offset(first)).take_while(move |(a, _)| a.block < end);
        held.map(move |(a, b)| {
            let upto = b.block.min(end);
            let to = Point { block: upto - first, at: time_on(a, b, upto) };
            (Point { block: a.block - first, at: a.at }, to)
        })
    }
    /// When the last byte was recorded.
    pub fn ends(&self) -> Option<i64> {
        self.lines().next_back().map(|(_, b)| nanos(b.at))
    }
    /// The last time up to `time`, both in nanoseconds since 1970, at which something was recorded, by the
    /// clock as it was then.
    pub fn latest_before(&self, time: i64) -> Option<i64> {
        let until = |(a, b): (Point, Point)| {
            let (first, last) = (nanos(a.at.min(b.at)), nanos(a.at.max(b.at)));
            (first <= time).then(|| last.min(time))
        };
        self.lines().filter_map(until).max()
    }
    /// The lines of which it is known when they were recorded, with what their clock was set forward by.
    fn reckoned(
        &self,
        Reckoning { known, stepped }: Reckoning<'_>,
    ) -> impl Iterator<Item = (Point, Point)> {
        let known = Point::new(Bytes::ZERO, known).at;
        let reckoned = move |line| match stepped {
            Some(stepped) => stepped.reckon(line),
            None => [Some(line), None],
        };
        let lines = self.lines().flat_map(reckoned).flatten();
        lines.filter(move |(a, b)| a.at.min(b.at) >= known)
    }
    /// When the byte at this place was recorded.
    pub fn time_at(&self, place: Bytes) -> Option<i64> {
        let block = place / BLOCK;
        let (a, b) = self.lines().find(|(a, b)| (a.block..b.block).contains(&block))?;
        Some(nanos(time_on(a, b, block)))
    }
    /// What was recorded at a time, in nanoseconds since 1970, of what is held from `start` on.
    pub fn find(&self, time: i64, start: Bytes) -> Moment {
        let (at, held) = (Point::new(Bytes::ZERO, time).at, || self.held(start).rev());
        let on_it = |(a, b): &(Point, Point)| (a.at.min(b.at)..=a.at.max(b.at)).contains(&at);
        if let Some((a, b)) = held().find(on_it) {
            let (part, whole) = (at.abs_diff(a.at), b.at.abs_diff(a.at));
            // What came last on it is the block before its end.
            let block = between(a.block, b.block, part, whole).min(b.block - 1);
            return Moment::At { offset: offset(block) };
        }
        // Of several at one time the last line counts; of a line that arrived at once, its beginning
        // where it goes on, and its end where it ended. (The first least and the last greatest are taken.)
        let last = held().rev().flat_map(|(a, b)| [(a, b.block), (b, b.block)]);
        let last = last.filter(|(end, _)| end.at < at).max_by_key(|(end, _)| end.at);
        // It goes on behind that. What was recorded before, by a clock that was ahead, comes no more.
        let behind = last.map_or(0, |(_, line_ends)| line_ends);
        let next = held().filter(|(a, _)| a.block >= behind).flat_map(|(a, b)| [a, b]);
        let next = next.filter(|end| end.at > at).min_by_key(|end| end.at);
        match (last.map(|(last, _)| last), next) {
            (None, None) => Moment::Unknown,
            (None, Some(next)) => {
                Moment::Before { offset: offset(next.block), begins: nanos(next.at) }
            }
            (Some(last), None) => {
                Moment::After { offset: offset(last.block), ended: nanos(last.at) }
            }
            (Some(last), Some(next)) => Moment::Pause {
                offset: offset(next.block),
                ended: nanos(last.at),
                resumes: nanos(next.at),
            },
        }
    }
    /// What lies at `size` and behind it goes. Where a line is cut, its end is put where it is
    /// cut: at the time of the line there, rounded towards that of its beginning.
    pub(crate) fn cut(&mut self, size: Bytes) {
        let size = blocks(size);
        let keeps = self.points.partition_point(|point| point.block < size);
        if let (Some(last), Some(&next)) = (keeps.checked_sub(1), self.points.get(keeps)) {
            let at = time_on(self.points[last], next, size);
            self.points[keeps] = Point { block: size, at };
            self.points.truncate(keeps + 1);
        } else {
            self.points.truncate(keeps);
        }
        if self.points.is_empty() {
            self.doublings = 0;
        }
    }
    /// What lies before `start` is given up: of the corners there only the last one stays, where
    /// the line begins that reaches `start`. The last line stays whole: its end still moves on.
    pub(crate) fn drop_before(&mut self, start: Bytes) {
        let behind = self.points.partition_point(|point| offset(point.block) <= start);
        let begins = behind.min(self.points.len().saturating_sub(1));
        self.points.drain(..begins.saturating_sub(1));
    }
    /// Applies what a record says, and believes none of it.
    pub(crate) fn apply(&mut self, more: &More) -> Result<(), &'static str> {
        let dropped =
            |i: usize| more.dropped.get(i / 8).is_some_and(|bits| bits >> (i % 8) & 1 == 1);
        if more.dropped.len() * 8 > self.points.len().next_multiple_of(8) {
            return Err("it drops a corner of a recording that is not there");
        }
        let mut index = 0..;
        self.points.retain(|_| !index.next().is_some_and(dropped));
        if usize::from(more.kept) > self.points.len() {
            return Err("it keeps a corner of a recording that is not there");
        }
        self.points.truncate(more.kept.into());
        self.points.extend_from_slice(&more.points);
        let changed = &self.points[usize::from(more.kept).saturating_sub(1)..];
        if !changed.is_sorted_by_key(|point| point.block) {
            return Err("the corners of a recording are out of order");
        }
        if self.points.len() > POINTS_MAX || more.doublings > DOUBLINGS_MAX {
            return Err("a recording has more corners, or less exact ones, than one can have");
        }
        // Of nothing there is nothing to be inexact about, and a checkpoint says nothing of it.
        self.doublings = if self.points.is_empty() { 0 } else { more.doublings };
        Ok(())
    }
    /// What a record says that makes this from nothing.
    pub(crate) fn all(&self) -> More {
        let (dropped, points) = (Vec::new(), self.points.clone());
        More { doublings: self.doublings, dropped, kept: 0, points }
    }
    /// Bytes that this takes in a checkpoint; nothing where there is none.
    pub(crate) fn size(&self) -> u64 {
        match self.points.len() {
            0 => 0,
            points => (format::recorded::LEN + points * format::point::LEN) as u64,
        }
    }
}

/// What a record says of when a volume was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct More {
    /// How often the tolerance has doubled, of the least exact of what is held.
    pub(crate) doublings: u8,
    /// A bit for each corner there was, the lowest of the first byte for the first: set where it
    /// is dropped. Corners behind the last byte stay.
    pub(crate) dropped: Vec<u8>,
    /// Of those that are left, how many stay.
    pub(crate) kept: u16,
    /// What follows them.
    pub(crate) points: Vec<Point>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn recorded(points: &[(u64, u64)]) -> Recorded {
        let points = points.iter().map(|&(block, at)| Point { block, at }).collect();
        Recorded { doublings: 0, points }
    }
    fn ms(at: u64) -> i64 {
        nanos(at)
    }

    /// Ten blocks in ten seconds, a pause of a minute, ten more; then the clock is set back by
    /// an hour.
    fn a_day() -> Recorded {
        let hour = 3_600_000;
        recorded(&[
            (0, hour * 10),
            (10, hour * 10 + 10_000),
            (10, hour * 10 + 70_000),
            (20, hour * 10 + 80_000),
            (20, hour * 9 + 80_000),
            (30, hour * 9 + 90_000),
        ])
    }

    #[test]
    fn a_time_is_found_where_it_was_recorded() {
        let (day, hour) = (a_day(), 3_600_000);
        let find = |at| day.find(ms(at), Bytes::ZERO);
        assert_eq!(find(hour * 10 + 5_000), Moment::At { offset: BLOCK * 5 });
        assert_eq!(find(hour * 10 + 79_999), Moment::At { offset: BLOCK * 19 });
        assert_eq!(find(hour * 9 + 85_000), Moment::At { offset: BLOCK * 25 });
        let pause = Moment::Pause {
            offset: BLOCK * 10,
            ended: ms(hour * 10 + 10_000),
            resumes: ms(hour * 10 + 70_000),
        };
        assert_eq!(find(hour * 10 + 30_000), pause);
        let before = Moment::Before { offset: BLOCK * 20, begins: ms(hour * 9 + 80_000) };
        assert_eq!(find(0), before);
        let after = Moment::After { offset: BLOCK * 20, ended: ms(hour * 10 + 80_000) };
        assert_eq!(find(hour * 11), after);
        assert_eq!(day.time_at(BLOCK * 10), Some(ms(hour * 10 + 70_000)));
        assert_eq!(day.time_at(BLOCK * 25 + Bytes::new(7)), Some(ms(hour * 9 + 85_000)));
        assert_eq!(day.time_at(BLOCK * 30), None);
        assert_eq!(Recorded::default().find(5, Bytes::ZERO), Moment::Unknown);
        assert_eq!(
            (day.begins(Bytes::ZERO), day.ends()),
            (Some(ms(hour * 10)), Some(ms(hour * 9 + 90_000)))
        );
    }

    /// A block that a slow source fills arrives at one instant, all of it.
    #[test]
    fn what_arrived_at_once_is_found_whole() {
        let bursts = recorded(&[(0, 5_000), (32, 5_000), (32, 9_000), (64, 9_000)]);
        let find = |at| bursts.find(ms(at), Bytes::ZERO);
        assert_eq!(find(4_000), Moment::Before { offset: Bytes::ZERO, begins: ms(5_000) });
        let (offset, ended, resumes) = (BLOCK * 32, ms(5_000), ms(9_000));
        assert_eq!(find(7_000), Moment::Pause { offset, ended, resumes });
        assert_eq!(find(9_001), Moment::After { offset: BLOCK * 64, ended: ms(9_000) });
        assert_eq!(find(9_000), Moment::At { offset: BLOCK * 32 });
    }

    #[test]
    fn what_was_recorded_is_told_by_when_with_its_pauses() {
        let (day, hour) = (a_day(), 3_600_000);
        let spans = |start, during: Range<u64>, apart| {
            let spans = day.spans(BLOCK * start, ms(during.start)..ms(during.end), ms(apart));
            spans.into_iter().map(|span| (span.start, span.end)).collect::<Vec<_>>()
        };
        let at = |hours: u64, seconds: u64| ms(hour * hours + seconds * 1_000);
        // In the order of time, though the clock was set back by an hour.
        let last = (at(9, 80), at(9, 90));
        let all = [last, (at(10, 0), at(10, 10)), (at(10, 70), at(10, 80))];
        assert_eq!(spans(0, 0..hour * 24, 0), all);
        assert_eq!(spans(0, 0..hour * 24, 60_000), all, "so far apart they are told apart");
        assert_eq!(spans(0, 0..hour * 24, 60_001), [last, (at(10, 0), at(10, 80))]);
        // What a ring has given up is not there, nor what was at another time.
        assert_eq!(spans(15, 0..hour * 24, 0), [last, (at(10, 75), at(10, 80))]);
        assert_eq!(spans(20, 0..hour * 24, 0), [last]);
        let part = hour * 10 + 5_000..hour * 10 + 72_000;
        assert_eq!(spans(0, part, 0), [(at(10, 5), at(10, 10)), (at(10, 70), at(10, 72))]);
        assert_eq!(spans(0, 0..hour * 9, 0), []);
        // What was recorded twice, by the clock, is told once.
        let twice = recorded(&[(0, 10_000), (10, 20_000), (10, 10_000), (20, 15_000)]);
        let once = twice.spans(Bytes::ZERO, 0..i64::MAX, i64::MAX);
        assert_eq!((once.len(), once[0].clone()), (1, ms(10_000)..ms(20_000)));
        assert_eq!(Recorded::default().spans(Bytes::ZERO, 0..i64::MAX, 0), []);
        // However many pauses there are, so far apart there are only so many.
        let pauses: Vec<_> = (0..2_000).map(|n| (n / 2 + n % 2, n / 2 * 10 + n % 2)).collect();
        let pauses = recorded(&pauses);
        for (parts, spans) in [(1, 1), (500, 1), (10_000, 1_000)] {
            let told = pauses.spans(Bytes::ZERO, 0..ms(10_000), ms(10_000) / parts);
            assert_eq!(told.len(), spans, "{parts}");
        }
    }

    /// After a minute with the clock a day ahead `--to now` was in a pause, which ended in that minute, before
    /// all that was recorded since: nothing was.
    #[test]
    fn what_comes_after_a_clock_that_was_ahead_does_not_end_before_it() {
        let (hour, day) = (3_600_000, 24 * 3_600_000);
        let recorded = recorded(&[
            (0, hour * 10),
            (10, hour * 10 + 10_000),
            (10, hour * 10 + day),
            (20, hour * 10 + day + 10_000),
            (20, hour * 10 + 20_000),
            (30, hour * 10 + 30_000),
        ]);
        let find = |at| recorded.find(ms(at), Bytes::ZERO);
        let after = Moment::After { offset: BLOCK * 30, ended: ms(hour * 10 + 30_000) };
        assert_eq!(find(hour * 10 + 31_000), after);
        assert_eq!(find(hour * 10 + day - 1), after);
        assert_eq!(find(hour * 10 + day + 5_000), Moment::At { offset: BLOCK * 15 });
        // What lies between is a pause as ever.
        let (ended, resumes) = (ms(hour * 10 + 10_000), ms(hour * 10 + 20_000));
        let pause = Moment::Pause { offset: BLOCK * 20, ended, resumes };
        assert_eq!(find(hour * 10 + 15_000), pause);
    }

    /// Of two places that were recorded at the same time, by the clock, the latest counts.
    #[test]
    fn a_clock_that_was_set_back_leads_to_the_latest_place() {
        let twice = recorded(&[(0, 10_000), (10, 20_000), (10, 10_000), (20, 20_000)]);
        assert_eq!(twice.find(ms(15_000), Bytes::ZERO), Moment::At { offset: BLOCK * 15 });
    }

    #[test]
    fn what_was_recorded_before_a_time_ends_where_something_younger_is() {
        let (day, hour) = (a_day(), 3_600_000);
        let before = |at| day.recorded_before(ms(at), Reckoning::default()) / BLOCK;
        assert_eq!((before(0), before(hour * 10)), (0, 0));
        assert_eq!((before(hour * 10 + 5_000), before(hour * 10 + 10_001)), (5, 10));
        assert_eq!(before(hour * 10 + 75_000), 15);
        // The last ten were recorded when the clock had been set back: they are no younger than what
        // is before them.
        assert_eq!((before(hour * 10 + 80_000), before(hour * 10 + 80_001)), (20, 30));
        assert_eq!(before(hour * 9 + 85_000), 0);
        assert_eq!(
            Recorded::default().recorded_before(i64::MAX, Reckoning::default()),
            Bytes::ZERO
        );
        // Of what lies before the first line nothing is known but that it is older than that.
        let late = recorded(&[(5, 1_000), (10, 2_000)]);
        let before = |at| late.recorded_before(ms(at), Reckoning::default()) / BLOCK;
        assert_eq!((before(999), before(1_000), before(1_200), before(9_999)), (0, 0, 6, 10));
    }

    #[test]
    fn the_last_time_at_which_something_was_recorded_is_looked_for_before_another() {
        let (day, hour) = (a_day(), 3_600_000);
        let latest = |at| day.latest_before(ms(at));
        assert_eq!(latest(hour * 9 + 79_999), None);
        assert_eq!(latest(hour * 9 + 85_000), Some(ms(hour * 9 + 85_000)));
        assert_eq!(latest(hour * 10 - 1), Some(ms(hour * 9 + 90_000)));
        assert_eq!(latest(hour * 10 + 30_000), Some(ms(hour * 10 + 10_000)));
        assert_eq!(latest(hour * 24), Some(ms(hour * 10 + 80_000)));
        assert_eq!(Recorded::default().latest_before(i64::MAX), None);
    }

    #[test]
    fn a_cut_ends_the_line_where_it_cuts() {
        let mut day = a_day();
        day.cut(BLOCK * 25);
        assert_eq!(day.ends(), Some(ms(3_600_000 * 9 + 85_000)));
        day.cut(BLOCK * 10);
        assert_eq!(day.points.len(), 2);
        assert_eq!(day.ends(), Some(ms(3_600_000 * 10 + 10_000)));
        day.cut(Bytes::ZERO);
        assert!(day.points.is_empty());
    }

    #[test]
    fn what_is_given_up_takes_its_corners_with_it() {
        let mut day = a_day();
        let hour = 3_600_000;
        day.drop_before(BLOCK * 15);
        assert_eq!(day.points.len(), 4);
        assert_eq!(day.begins(BLOCK * 15), Some(ms(hour * 10 + 75_000)));
        // By the clock as it is now that is after the recording.
        let after = Moment::After { offset: BLOCK * 30, ended: ms(hour * 9 + 90_000) };
        assert_eq!(day.find(ms(hour * 10 + 72_000), BLOCK * 15), after);
        day.drop_before(BLOCK * 20);
        assert_eq!(day.points.first(), Some(&Point { block: 20, at: hour * 9 + 80_000 }));
        // The end of the last line moves on: without its beginning nobody would know of the rest.
        day.drop_before(BLOCK * 30);
        assert_eq!(
            day.points,
            [(20, 80_000), (30, 90_000)].map(|(block, at)| Point { block, at: hour * 9 + at })
        );
    }

    #[test]
    fn no_change_is_believed() {
        let points = vec![Point { block: 3, at: 1 }];
        let more = More { kept: 1, points, ..More::default() };
        let of = |change: More| recorded(&[(0, 5), (9, 6)]).apply(&change);
        assert_eq!(of(more.clone()), Ok(()));
        let mut early = recorded(&[(4, 5), (9, 6)]);
        assert!(early.apply(&more).is_err(), "out of order");
        assert!(of(More { kept: 3, ..more.clone() }).is_err());
        assert!(of(More { dropped: vec![1], kept: 2, ..more.clone() }).is_err());
        assert!(of(More { dropped: vec![0, 1], ..more.clone() }).is_err());
        assert!(of(More { doublings: DOUBLINGS_MAX + 1, ..more.clone() }).is_err());
        let many = vec![Point { block: 3, at: 1 }; POINTS_MAX];
        assert!(of(More { points: many, ..more }).is_err());
        let mut none = recorded(&[(0, 5), (9, 6)]);
        let nothing = More { doublings: DOUBLINGS_MAX, dropped: vec![3], ..More::default() };
        assert_eq!((none.apply(&nothing), none), (Ok(()), Recorded::default()));
    }
}
