//! Movies frame by frame, and the requests that recording and playing them makes.
//!
//! The movies are synthetic: a movie is a sequence of scenes, each with a level of its
//! own, in which frames wander slowly and vary a little; all three together have the
//! mean and the standard deviation that is asked for. Those of the Clockwise thesis
//! (section 3.1.1, figure 3.1) are here by name; how long scenes are and how much they
//! differ is chosen so that large blocks come as evenly as section 3.1.2 says. Frames come at the movie's pace to the
//! nanosecond; a frame is never split in time, as it is not in a frame grabber.

use super::{Demand, Source};
use crate::Random;
use std::ops::Range;
use units::{Access, Bytes, Direction, Duration, Lba, SECTOR};

/// What a movie is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The mean size of a frame.
    pub mean: Bytes,
    /// Its standard deviation, as far as it is not the pattern's.
    pub deviation: Bytes,
    /// Frames in all.
    pub frames: u64,
    /// Frames a second.
    pub pace: u64,
    /// How much of the mean the frames of a group have, in parts of a thousand, over
    /// and over: `&[1000]` for motion-JPEG. The parts average a thousand.
    pub pattern: &'static [u64],
}

/// Kilobytes as the thesis counts them.
const fn tenths_of_kb(tenths: u64) -> Bytes {
    Bytes::new(tenths * 1024 / 10)
}

const MOTION_JPEG: &[u64] = &[1000];

/// "The Hunt for Red October", all pixels, recorded with noise: 72 minutes.
pub const RED_OCTOBER: Kind = Kind {
    mean: tenths_of_kb(330),
    deviation: tenths_of_kb(33),
    frames: 108_000,
    pace: 25,
    pattern: MOTION_JPEG,
};
/// A clip of it, every second pixel of a line: 4.6 minutes.
pub const CLIP: Kind =
    Kind { mean: tenths_of_kb(100), deviation: tenths_of_kb(14), frames: 6_900, ..RED_OCTOBER };
/// "Wallace and Gromit: A Close Shave", every second pixel: half an hour.
pub const WALLACE: Kind =
    Kind { mean: tenths_of_kb(110), deviation: tenths_of_kb(23), frames: 47_000, ..RED_OCTOBER };
/// A stream of variable rate in groups of twelve frames, as MPEG makes them: one whole
/// picture, three that build on it and eight between. 4 Mbit/s on average.
pub const GROUPS_OF_PICTURES: Kind = Kind {
    mean: Bytes::new(20_000),
    deviation: Bytes::new(4_000),
    frames: 90_000,
    pace: 25,
    pattern: &[3600, 480, 480, 1520, 480, 480, 1520, 480, 480, 1520, 480, 480],
};

/// Scenes have so many frames on average, and at least [`SCENE_MIN`].
const SCENE: u64 = 75;
const SCENE_MIN: u64 = 12;
/// How much of the deviation is between scenes, within them and from frame to frame:
/// in thousandths; their squares add up to a million.
const OF_SCENES: i64 = 671;
const OF_WANDER: i64 = 671;
const OF_FRAMES: i64 = 316;
/// A frame keeps so much of what the wander was at the frame before, in thousandths,
/// and adds as much as keeps its deviation (0.95 and 0.312).
const WANDER_KEEPS: i64 = 950;
const WANDER_ADDS: i64 = 312;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When it is there, since the begin of the movie.
    pub at: Duration,
    /// Its size.
    pub size: Bytes,
}

/// The frames of a movie.
#[derive(Clone, Debug)]
pub struct Movie {
    kind: Kind,
    random: Random,
    number: u64,
    scene_left: u64,
    /// Both in thousandths of the deviation.
    scene: i64,
    wander: i64,
}

/// A number whose distribution is normal for all that matters here (the sum of twelve
/// even ones), with a deviation of 1000.
fn normal(random: &mut Random) -> i64 {
    (0..12).map(|_| random.below(2_001) as i64 - 1_000).sum::<i64>() / 2
}

impl Movie {
    /// A movie of this kind; every seed gives another one.
    pub fn new(kind: Kind, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let wander = normal(&mut random);
        Self { kind, random, number: 0, scene_left: 0, scene: 0, wander }
    }

    fn size(&mut self) -> Bytes {
        let random = &mut self.random;
        if self.scene_left == 0 {
            let rest = Duration::from_nanos(SCENE - SCENE_MIN);
            self.scene_left = SCENE_MIN + random.exponential(rest).as_nanos();
            self.scene = normal(random);
        }
        self.scene_left -= 1;
        self.wander = (self.wander * WANDER_KEEPS + normal(random) * WANDER_ADDS) / 1000;
        let off =
            (self.scene * OF_SCENES + self.wander * OF_WANDER + normal(random) * OF_FRAMES) / 1000;
        let (mean, deviation) = (self.kind.mean.get() as i64, self.kind.deviation.get() as i64);
        let size = mean + deviation * off / 1000;
        let part = self.kind.pattern[(self.number % self.kind.pattern.len() as u64) as usize];
        // No frame is nothing, however far the dice fall.
        Bytes::new(size.max(mean / 10) as u64 * part / 1000)
    }
}

impl Iterator for Movie {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        if self.number == self.kind.frames {
            return None;
        }
        let ns = u128::from(self.number) * 1_000_000_000 / u128::from(self.kind.pace);
        let size = self.size();
        self.number += 1;
        Some(Frame { at: Duration::from_nanos(ns as u64), size })
    }
}

/// When each block of `block` bytes is full as frames come in; a frame may fill several
/// at once.
pub fn blocks(frames: impl Iterator<Item = Frame>, block: Bytes) -> impl Iterator<Item = Duration> {
    assert!(!block.is_zero(), "a block of some size");
    let mut filled = Bytes::ZERO;
    frames.flat_map(move |frame| {
        filled += frame.size;
        let full = filled / block;
        filled = filled % block;
        (0..full).map(move |_| frame.at)
    })
}

/// A movie that is recorded or played, block by block, one after the other through a
/// part of a disk and round again: recording, a block is written when it is full;
/// playing, a block is read when the one before it begins to be shown.
pub struct Shown {
    times: Box<dyn Iterator<Item = Duration> + Send>,
    access: Access,
    place: Range<Lba>,
    disk: u32,
}

impl Shown {
    /// A movie on `disk`, in blocks of `block` bytes (whole sectors) within `place`.
    ///
    /// # Panics
    /// Where no block fits.
    pub fn new(
        movie: Movie,
        block: Bytes,
        direction: Direction,
        disk: u32,
        place: Range<Lba>,
    ) -> Self {
        assert!(block.is_multiple_of(SECTOR), "whole sectors");
        let access = Access { lba: place.start, len: block, direction };
        assert!(access.end() <= place.end, "room for a block");
        // Two blocks are wanted at the begin: the one that is shown and the next.
        let first = if direction == Direction::Read { 2 } else { 0 };
        let times = (0..first).map(|_| Duration::ZERO).chain(blocks(movie, block));
        Self { times: Box::new(times), access, place, disk }
    }
}

impl Iterator for Shown {
    type Item = Demand;

    fn next(&mut self) -> Option<Demand> {
        let at = self.times.next()?;
        let access = self.access;
        self.access.lba = access.end();
        if self.access.end() > self.place.end {
            self.access.lba = self.place.start;
        }
        let synchronous = access.direction == Direction::Read;
        Some(Demand { at, disk: self.disk, access, synchronous })
    }
}

impl Source for Shown {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation.
    fn moments(sizes: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let count = sizes.clone().count() as f64;
        let mean = sizes.clone().sum::<f64>() / count;
        (mean, (sizes.map(|it| (it - mean).powi(2)).sum::<f64>() / count).sqrt())
    }

    #[test]
    fn frames_have_the_mean_and_the_deviation_that_are_printed() {
        for (kind, mean, deviation) in
            [(RED_OCTOBER, 33.0, 3.3), (CLIP, 10.0, 1.4), (WALLACE, 11.0, 2.3)]
        {
            for seed in 0..4 {
                let sizes: Vec<f64> =
                    Movie::new(kind, seed).map(|frame| frame.size.get() as f64 / 1024.0).collect();
                let ours = moments(sizes.iter().copied());
                assert!((ours.0 - mean).abs() < 0.05 * mean, "{ours:?} {mean}");
                assert!((ours.1 - deviation).abs() < 0.15 * deviation, "{ours:?} {deviation}");
            }
        }
    }

    #[test]
    fn frames_resemble_the_one_before_and_scenes_change() {
        let sizes: Vec<f64> = Movie::new(WALLACE, 1).map(|frame| frame.size.get() as f64).collect();
        let (_, all) = moments(sizes.iter().copied());
        let (_, steps) = moments(sizes.windows(2).map(|pair| pair[1] - pair[0]));
        assert!(steps < 0.7 * all, "neighbours differ by {steps}, all by {all}");
        let cuts = sizes.windows(2).filter(|pair| (pair[1] - pair[0]).abs() > 1.5 * all).count();
        assert!((50..800).contains(&cuts), "{cuts} cuts in half an hour");
    }

    #[test]
    fn frames_come_at_their_pace_and_groups_of_pictures_keep_the_mean() {
        let frames: Vec<Frame> = Movie::new(GROUPS_OF_PICTURES, 3).collect();
        assert_eq!(frames.len(), 90_000);
        assert_eq!(frames[89_999].at, Duration::from_millis(89_999 * 40));
        let (mean, _) = moments(frames.iter().map(|frame| frame.size.get() as f64));
        assert!((19_000.0..21_000.0).contains(&mean), "{mean}");
        let whole = frames.iter().step_by(12).map(|frame| frame.size.get() as f64);
        assert!(moments(whole).0 > 3.0 * mean);
    }

    #[test]
    fn blocks_are_full_when_their_last_byte_is_there() {
        let frame = |ms, size| Frame { at: Duration::from_millis(ms), size: Bytes::new(size) };
        let frames = [frame(0, 10), frame(40, 25), frame(80, 5), frame(120, 1)];
        let times: Vec<u64> =
            blocks(frames.into_iter(), Bytes::new(10)).map(Duration::as_millis).collect();
        assert_eq!(times, [0, 40, 40, 80]);
    }

    #[test]
    fn a_movie_goes_through_its_place_and_round_again() {
        let kind = Kind { frames: 3, mean: Bytes::kib(1), deviation: Bytes::ZERO, ..CLIP };
        let place = Lba::new(10)..Lba::new(15);
        let movie = Movie::new(kind, 1);
        let shown = Shown::new(movie, Bytes::kib(1), Direction::Write, 3, place);
        let demands: Vec<Demand> = shown.collect();
        let facts: Vec<_> =
            demands.iter().map(|it| (it.at.as_millis(), it.access.lba.get())).collect();
        assert_eq!(facts, [(0, 10), (40, 12), (80, 10)]);
        assert!(demands.iter().all(|it| it.disk == 3 && !it.synchronous));
    }
}
