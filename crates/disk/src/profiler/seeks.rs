//! How long the arm takes, when only the ends of reads can be seen.
//!
//! A read that starts `v` before its sector ends under the head takes `v` if the
//! arm arrives in time and a whole turn more if not. So one read says on which
//! side of `v` the positioning time lay, and we choose `v` freely: the angle of
//! the wanted track is read first, then a sector and a delay are picked that give
//! `v`. A binary search finds a positioning time that is always the same; where it
//! varies, reads spread over the band in question give its distribution.

use super::desk::Stop;
use super::geometry::{Geometry, Track};
use super::rotation::taken;
use super::session::Session;
use super::statistics::{Hidden, centred};
use alloc::vec::Vec;

/// Between seeing a completion and sending the next command, with room to spare.
const GUARD_NS: i64 = 60_000;
/// A positioning time this well known is not searched further.
const WIDTH_NS: i64 = 12_000;
/// Reads for one positioning time before it is given up.
const TRIES_MAX: u32 = 3_000;

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// To an earlier sector of the same track.
    Track,
    /// To the track on the head before, of the same cylinder.
    Head,
    /// To a track so many cylinders away, in either direction.
    Cylinders(u64),
}

/// A positioning time, command overhead and one sector's transfer included; ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub mean: i64,
    pub deviation: i64,
    /// All but the outermost twentieths lie between these.
    pub low: i64,
    pub high: i64,
    pub reads: u32,
}

/// A track whose angles are known: that at which sector `index` ends.
struct Aligned {
    track: Track,
    index: u64,
    angle: i64,
    /// The sector to ask for, where it may not be chosen.
    fixed: Option<u64>,
}

impl Session {
    /// One read along `path` that starts `wanted` (modulo a turn) before its sector
    /// ends. The time it took, or `None` where a late answer or the cache spoilt it.
    async fn arrive(
        &mut self,
        geometry: &Geometry,
        path: Path,
        wanted: i64,
    ) -> Result<Option<i64>, Stop> {
        self.keep_time().await?;
        let aligned = match path {
            Path::Track | Path::Head => self.start_near(geometry, path).await?,
            Path::Cylinders(distance) => self.start_far(geometry, distance).await?,
        };
        let Some((target, now)) = aligned else {
            return Ok(None);
        };
        let period = self.period();
        let sectors = target.track.sectors as i64;
        // The angle from the target's known sector to where it shall end.
        let ahead = (now + GUARD_NS + wanted - target.angle).rem_euclid(period);
        let index = (ahead * sectors + period - 1) / period + target.index as i64;
        let index = target.fixed.unwrap_or(index.rem_euclid(sectors) as u64);
        let index = index / self.grain * self.grain;
        let offset = (index as i64 - target.index as i64) * period / sectors;
        let angle = (target.angle + offset).rem_euclid(period);
        let delay = (angle - now - wanted).rem_euclid(period);
        let timing = self.read(target.track.start + index, delay).await?;
        if timing.failed {
            return Ok(None);
        }
        let off = centred(self.phase(timing.finished) - angle, period);
        // Late by chance, or another angle altogether: from the cache.
        let tolerance = (6 * self.noise()).max(40_000);
        Ok((off.abs() < tolerance).then(|| taken(&timing)))
    }

    /// Reads a sector of a track that was not read before; its end tells the angles
    /// of the target, which is an earlier part of the same track, or the track before.
    ///
    /// While we wait and while the next command is taken in, the disk reads ahead.
    /// It must not leave the track meanwhile, so the sector lies where there is
    /// enough of the track left; nor may the target lie in what is read ahead.
    async fn start_near(
        &mut self,
        geometry: &Geometry,
        path: Path,
    ) -> Result<Option<(Aligned, i64)>, Stop> {
        // Where tracks start must be known well; of a quick look that is only so in the
        // zone that begins with the disk.
        let cylinders = if geometry.exact {
            geometry.cylinders_all()
        } else {
            (geometry.cylinders(&geometry.zones[0]) * 9 / 10).max(1)
        };
        let cylinder = self.below(cylinders);
        let head = match path {
            Path::Head => 1 + self.below(geometry.heads - 1),
            _ => self.below(geometry.heads),
        };
        let (track, zone) = geometry.track(cylinder, head);
        let part = match path {
            // From here to the start of the track is half a turn and more: the wait
            // before the start and the time in question both fit in.
            Path::Track => track.sectors / 2,
            _ => track.sectors / 4,
        };
        let from = part / self.grain * self.grain;
        if track.end() > self.end {
            return Ok(None);
        }
        let skew = zone.track_skew;
        self.read_far(track.start).await?;
        let timing = self.read(track.start + from, 0).await?;
        if timing.failed || self.is_hit(&timing) {
            return Ok(None);
        }
        let now = self.phase(timing.finished);
        let aligned = match path {
            Path::Head => {
                let before = Track { start: track.start - track.sectors, ..track };
                Aligned { track: before, index: from, angle: now - skew, fixed: None }
            }
            _ => {
                let fixed = Some(self.below(track.sectors / 16));
                Aligned { track, index: from, angle: now, fixed }
            }
        };
        Ok(Some((aligned, now)))
    }

    /// Reads a sector of the target for its angle, then one on the track to start from.
    async fn start_far(
        &mut self,
        geometry: &Geometry,
        distance: u64,
    ) -> Result<Option<(Aligned, i64)>, Stop> {
        let one = self.below(geometry.cylinders_all() - distance);
        let two = one + distance;
        let inwards = self.below(2) == 0;
        let (from, to) = if inwards { (one, two) } else { (two, one) };
        let head = self.below(geometry.heads);
        let (from, _) = geometry.track(from, head);
        let (track, _) = geometry.track(to, head);
        // Near the end of the track, so that little of it is read ahead.
        let index = (track.sectors - self.grain) / self.grain * self.grain;
        // Nor may the arm have followed its reading ahead to the next track.
        let offset = self.below(from.sectors / 2);
        let start = (from.start + offset) / self.grain * self.grain;
        if track.start + index + self.grain > self.end || start + self.grain > self.end {
            return Ok(None);
        }
        let known = self.read_medium(track.start + index).await?;
        if known.failed || self.is_hit(&known) {
            return Ok(None);
        }
        let angle = self.phase(known.finished);
        let timing = self.read(start, 0).await?;
        if self.is_hit(&timing) {
            // The arm stayed where it was, or came from very near: no start.
            return Ok(None);
        }
        let aligned = Aligned { track, index, angle, fixed: None };
        Ok((!timing.failed).then(|| (aligned, self.phase(timing.finished))))
    }

    /// The same as [`Session::arrival`], repeated until the mean is known well.
    pub async fn arrival_sure(
        &mut self,
        geometry: &Geometry,
        path: Path,
    ) -> Result<Option<Arrival>, Stop> {
        let rounds_max = if self.full() { 16 } else { 2 };
        let mut rounds: Vec<Arrival> = Vec::new();
        while rounds.len() < rounds_max {
            let Some(one) = self.arrival(geometry, path).await? else { break };
            rounds.push(one);
            // Sharp, or as well known as a round of many reads makes it.
            if one.deviation < 4 * WIDTH_NS {
                break;
            }
        }
        if rounds.is_empty() {
            return Ok(None);
        }
        let mean_of = |value: fn(&Arrival) -> i64| {
            rounds.iter().map(value).sum::<i64>() / rounds.len() as i64
        };
        Ok(Some(Arrival {
            mean: mean_of(|one| one.mean),
            deviation: mean_of(|one| one.deviation),
            low: mean_of(|one| one.low),
            high: mean_of(|one| one.high),
            reads: rounds.iter().map(|one| one.reads).sum(),
        }))
    }

    /// The distribution of the positioning time along a path, or `None` where the
    /// cache or the noise hides it.
    pub async fn arrival(
        &mut self,
        geometry: &Geometry,
        path: Path,
    ) -> Result<Option<Arrival>, Stop> {
        let width = if self.full() { WIDTH_NS } else { 3 * WIDTH_NS };
        let sharp = width.max(2 * self.noise());
        let mut search = Search::new(self.period(), sharp, self.full());
        for reads in 1..=TRIES_MAX {
            let dice = self.below(1 << 32) as i64;
            let Some(wanted) = search.wanted(dice) else {
                return Ok(Some(search.arrival(reads)));
            };
            if let Some(took) = self.arrive(geometry, path, wanted).await? {
                search.learn(wanted, took);
            }
        }
        Ok(None)
    }
}

/// How far a search for a positioning time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Halving what lies between a miss and a read that was made.
    Halving,
    /// It looks sharp; so many looks to both sides were taken.
    Checking(u32),
    /// It varies. So far above the longest miss, so many in a row were made.
    Up { apart: i64, row: u32 },
    /// So far below the quickest, so many in a row were missed.
    Down { apart: i64, row: u32 },
    /// So many reads were spread over the band in between.
    Band(u32),
}

/// What varies shows in one of two looks; so many make an oversight rare.
const CHECKS: u32 = 12;
const CHECKS_QUICK: u32 = 6;
/// A band found too narrow is widened so often.
const WIDENED_MAX: u32 = 4;

/// A positioning time being narrowed down.
struct Search {
    period: i64,
    /// Narrower than this is as good as known.
    sharp: i64,
    /// The most that was not made, and the least that was.
    least: i64,
    most: i64,
    /// (value, made) of every read.
    facts: Vec<(i64, bool)>,
    mode: Mode,
    /// The band's edges, as far as known.
    edges: (i64, i64),
    widened: u32,
    band_reads: u32,
    full: bool,
}

impl Search {
    fn new(period: i64, sharp: i64, full: bool) -> Self {
        Self {
            period,
            sharp,
            least: 0,
            most: i64::MAX,
            facts: Vec::new(),
            mode: Mode::Halving,
            edges: (0, 0),
            widened: 0,
            band_reads: 0,
            full,
        }
    }

    /// What to try next, or `None` when enough is known. `dice` is random, below 2^32.
    fn wanted(&mut self, dice: i64) -> Option<i64> {
        if self.most == i64::MAX {
            return Some(((i128::from(dice) * i128::from(self.period)) >> 32) as i64);
        }
        let floor = self.least.max(self.most - self.period);
        match self.mode {
            Mode::Halving if self.most - floor > self.sharp => {
                return Some(i64::midpoint(floor, self.most));
            }
            Mode::Halving => self.mode = Mode::Checking(0),
            Mode::Up { apart, row } if row >= self.edge_row() || apart > self.period / 2 => {
                self.edges.1 += apart;
                self.mode = Mode::Down { apart: 4 * self.sharp, row: 0 };
            }
            Mode::Down { apart, row } if row >= self.edge_row() || apart > self.period / 2 => {
                self.edges.0 -= apart;
                self.size_band();
                self.mode = Mode::Band(0);
            }
            _ => {}
        }
        if matches!(self.mode, Mode::Band(n) if n >= self.band_reads) && !self.widen() {
            return None;
        }
        match self.mode {
            Mode::Halving => None,
            // Look on both sides, lest one late answer led us here.
            Mode::Checking(CHECKS) => None,
            Mode::Checking(CHECKS_QUICK) if !self.full => None,
            Mode::Checking(n) if n % 2 == 0 => Some(self.most + self.sharp * i64::from(1 + n)),
            Mode::Checking(n) => Some(floor - self.sharp * i64::from(1 + n)),
            Mode::Up { apart, .. } => Some(self.edges.1 + apart),
            Mode::Down { apart, .. } => Some(self.edges.0 - apart),
            Mode::Band(n) => {
                let width = self.edges.1 - self.edges.0;
                // Steps that share no factor with their number visit all of it.
                let step = width * i64::from(n % 34 * 21 % 34) / 34;
                Some(self.edges.0 + step + (((width / 34) * dice) >> 32))
            }
        }
    }

    /// So many in a row, and the edge of a band is found.
    fn edge_row(&self) -> u32 {
        if self.full { 8 } else { 4 }
    }

    /// How many reads the band takes. `n` reads spread evenly over a time that varies
    /// evenly over `w` tell its mean within a deviation of `w / sqrt(6 n)`.
    fn size_band(&mut self) {
        let width = self.edges.1 - self.edges.0;
        let (wanted, least, most) = if self.full { (35_000, 48, 800) } else { (120_000, 24, 60) };
        let reads = width.pow(2) / (6 * i64::pow(wanted, 2));
        self.band_reads = reads.clamp(least, most) as u32;
    }

    /// Widens the band where its outer sixths are not all missed and all made, and
    /// says whether it did; half of its reads are spread over it again.
    fn widen(&mut self) -> bool {
        let sixth = (self.edges.1 - self.edges.0) / 6;
        let (low, high) = (self.edges.0 + sixth, self.edges.1 - sixth);
        // One late answer is not enough to go by.
        let made_low = self.facts.iter().filter(|fact| fact.1 && fact.0 < low).count() > 1;
        let missed_high = self.facts.iter().filter(|fact| !fact.1 && fact.0 > high).count() > 1;
        if !(made_low || missed_high) {
            return self.focus();
        }
        if self.widened >= WIDENED_MAX {
            return false;
        }
        self.widened += 1;
        self.edges.0 -= if made_low { 2 * sixth } else { 0 };
        self.edges.1 += if missed_high { 2 * sixth } else { 0 };
        self.size_band();
        self.mode = Mode::Band(self.band_reads / 2);
        true
    }

    /// Narrows the band where all that varies lies in a small part of it, which a
    /// late answer had opened too far; says whether it did.
    fn focus(&mut self) -> bool {
        let found = Hidden::new(&self.facts).moments();
        let room = found.high - found.low + 2 * self.sharp;
        if self.widened >= WIDENED_MAX || 6 * room > self.edges.1 - self.edges.0 {
            return false;
        }
        self.widened += 1;
        self.edges = (found.low - room, found.high + room);
        self.size_band();
        self.mode = Mode::Band(self.band_reads / 2);
        true
    }

    fn learn(&mut self, wanted: i64, took: i64) {
        self.facts.push((took, true));
        self.most = self.most.min(took);
        if took > self.period {
            self.facts.push((took - self.period, false));
            self.least = self.least.max(took - self.period);
        }
        let made = took - wanted < self.period / 2;
        self.mode = match self.mode {
            Mode::Halving | Mode::Checking(_) if self.least >= self.most => {
                self.edges = (self.most, self.least);
                Mode::Up { apart: 4 * self.sharp, row: 0 }
            }
            Mode::Checking(n) => Mode::Checking(n + 1),
            Mode::Up { apart, row } if made => Mode::Up { apart, row: row + 1 },
            Mode::Up { apart, .. } => Mode::Up { apart: 2 * apart, row: 0 },
            Mode::Down { apart, row } if !made => Mode::Down { apart, row: row + 1 },
            Mode::Down { apart, .. } => Mode::Down { apart: 2 * apart, row: 0 },
            Mode::Band(n) => Mode::Band(n + 1),
            Mode::Halving => Mode::Halving,
        };
    }

    /// Of a sharp time the middle, of a band its distribution.
    fn arrival(&self, reads: u32) -> Arrival {
        if self.least < self.most {
            let mean = i64::midpoint(self.least, self.most);
            return Arrival { mean, deviation: 0, low: mean, high: self.most, reads };
        }
        let found = Hidden::new(&self.facts).moments();
        Arrival {
            mean: found.mean,
            deviation: found.deviation,
            low: found.low,
            high: found.high,
            reads,
        }
    }
}

/// The distances to measure: few where the curve is flat, up to the last cylinder.
pub(super) fn distances(cylinders: u64, full: bool) -> Vec<u64> {
    // The very ends would have to be read again and again, and be cached.
    let longest = cylinders.saturating_sub(1 + (cylinders / 100).min(30));
    let mut distances = Vec::new();
    let mut next = 1u64;
    while next < longest * 4 / 5 {
        distances.push(next);
        // Four steps to a doubling, or one.
        let grown = if full { next * 119 / 100 } else { next * 2 };
        next = grown.max(next + 1);
    }
    // The long seeks, evenly.
    if longest > 0 {
        distances.retain(|distance| *distance * 3 < longest);
        distances.extend((if full { 7 } else { 2 }..).map_while(|part| {
            let parts = if full { 20 } else { 5 };
            (part <= parts).then(|| (longest * part / parts).max(1))
        }));
    }
    distances.sort_unstable();
    distances.dedup();
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_rise_to_the_last_cylinder() {
        for cylinders in [2, 3, 10, 1_000, 46_608, 400_000] {
            for full in [false, true] {
                let all = distances(cylinders, full);
                assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
                assert!(all[all.len() - 1] * 100 >= (cylinders - 1) * 98, "{all:?}");
                assert!(all.len() < 100, "{}", all.len());
            }
        }
    }
}
