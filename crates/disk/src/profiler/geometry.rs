//! Tracks, zones, skews and heads, from the angles of single sectors.
//!
//! Along a track the angle grows by one sector time a sector. At the end of the
//! track it jumps by the skew. So a binary search finds the end of any track, the
//! distance of two ends is its exact number of sectors, and a binary search over
//! tracks finds where that number changes: the zones.

use super::desk::Stop;
use super::session::Session;
use super::statistics::median;
use alloc::vec;
use alloc::vec::Vec;

/// Sector times are kept in 2^-20 ns.
const FRACTION: u32 = 20;
/// A smaller jump of the angle is not told from noise; skews are some 300 us at least.
const JUMP_MIN_NS: i64 = 110_000;
/// Shorter tracks are an error of measurement; those of 1990 have some fifty sectors.
const SECTORS_MIN: u64 = 24;
/// And no track has more; today's have some four thousand.
const SECTORS_MAX: u64 = 32_768;
/// The end of a track is looked for sector by sector when it is known to so many.
const SWEPT: u64 = 16;
/// More zones than this and the target is no disk that we understand.
const ZONES_MAX: usize = 256;

/// Some neighbouring tracks with equally many sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    pub start: u64,
    pub end: u64,
    /// Sectors on a track.
    pub track: u64,
    /// The jump of the angle from head to head, and from cylinder to cylinder, ns.
    pub track_skew: i64,
    pub cylinder_skew: i64,
}

/// What the platters look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub zones: Vec<Zone>,
    pub heads: u64,
    /// Whether the heads were told apart.
    pub heads_known: bool,
    /// Whether zone ends are known to the track.
    pub exact: bool,
}

/// A track: where it starts and how many sectors it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub start: u64,
    pub sectors: u64,
}

impl Track {
    pub fn end(self) -> u64 {
        self.start + self.sectors
    }
}

impl Geometry {
    pub fn cylinders(&self, zone: &Zone) -> u64 {
        // Rounded: the capacity told may end within the last one.
        let cylinder = zone.track * self.heads;
        ((zone.end - zone.start + cylinder / 2) / cylinder).max(1)
    }

    pub fn cylinders_all(&self) -> u64 {
        self.zones.iter().map(|zone| self.cylinders(zone)).sum()
    }

    /// The track of a cylinder and a head, and its zone.
    pub fn track(&self, mut cylinder: u64, head: u64) -> (Track, &Zone) {
        for zone in &self.zones {
            let here = self.cylinders(zone);
            if cylinder < here {
                let start = zone.start + (cylinder * self.heads + head) * zone.track;
                return (Track { start, sectors: zone.track }, zone);
            }
            cylinder -= here;
        }
        panic!("a cylinder beyond the last");
    }
}

impl Session {
    /// How much the angle grows a sector, in 2^-20 ns, around a place.
    /// `about` is a number of sectors that tracks nearby have, if any is known.
    async fn sector_time(&mut self, at: u64, about: Option<u64>) -> Result<i64, Stop> {
        const STEPS: u64 = 8;
        let period = self.period();
        let (mut step, mut time) = match about.filter(|track| *track >= SECTORS_MIN) {
            // A sixth of a track: the steps are told from their neighbours by less
            // than a turn, and at most two of eight cross the end of a track.
            Some(track) => (track / 6, (period << FRACTION) / track as i64),
            None => (32, 0),
        };
        loop {
            step = step.next_multiple_of(self.grain);
            let room = step * STEPS + self.grain;
            let base = at.min(self.end.saturating_sub(room)) / self.grain * self.grain;
            let mut angles = Vec::new();
            for index in (0..=STEPS).rev() {
                angles.push(self.angle(base + index * step).await?);
            }
            let expected = (time * step as i64) >> FRACTION;
            let grown = angles.windows(2).map(|pair| {
                let apart = pair[0] - pair[1] - expected;
                // Without an estimate a step lies in 0..turn, else around it.
                if time == 0 { apart.rem_euclid(period) } else { self.apart(0, apart) + expected }
            });
            let grown: Vec<i64> = grown.collect();
            time = (median(&grown) << FRACTION) / step as i64;
            if step > SECTORS_MAX || time <= 0 || median(&grown) * 7 > period {
                return Ok(time.max(1));
            }
            step *= 2;
        }
    }

    fn jump(&self) -> i64 {
        JUMP_MIN_NS.max(5 * self.noise())
    }

    /// Whether `at` lies on the track of `from`, whose angle is known, and the angle
    /// that `from` has if it does.
    ///
    /// One late answer makes a track look ended. So the sector before `at` must be off
    /// by the same jump (what lies after `at` has been read ahead by now); where it is
    /// not, since the track ends right there or by chance, `at` is read again.
    async fn same_track(
        &mut self,
        from: (u64, i64),
        at: u64,
        time: i64,
    ) -> Result<(bool, i64), Stop> {
        let mut offs: Vec<i64> = Vec::new();
        for round in 0..6 {
            let beside = round == 1 && at > from.0 + self.grain;
            let place = if beside { at - self.grain } else { at };
            let grown = (i128::from(place - from.0) * i128::from(time)) >> FRACTION;
            let implied = self.angle(place).await? - grown as i64;
            let off = self.apart(from.1, implied);
            if off.abs() < self.jump() && !beside {
                return Ok((true, implied));
            }
            if offs.iter().any(|other| self.apart(*other, off).abs() < self.jump()) {
                return Ok((false, implied));
            }
            offs.push(off);
        }
        Ok((false, from.1))
    }

    /// The angle at which a sector ends, as two readings have it: of the sector after it
    /// and its own, or where a track ends between them or one was late, of its own again.
    async fn sure_angle(&mut self, at: u64, time: i64) -> Result<i64, Stop> {
        let mut seen: Vec<i64> = Vec::new();
        if at + 2 * self.grain <= self.end {
            let step = (self.grain as i64 * time) >> FRACTION;
            seen.push(self.angle(at + self.grain).await? - step);
        }
        for _ in 0..4 {
            let angle = self.angle(at).await?;
            if seen.iter().any(|other| self.apart(*other, angle).abs() < self.jump()) {
                return Ok(angle);
            }
            seen.push(angle);
        }
        Ok(seen[seen.len() - 1])
    }

    /// The first end of a track after `from`, or `None` where there is none in the
    /// length of a track (the end of the disk).
    async fn track_end(&mut self, from: u64, time: i64) -> Result<Option<u64>, Stop> {
        let turn = (i128::from(self.period()) << FRACTION) / i128::from(time);
        let turn = turn as u64;
        for _ in 0..4 {
            let zero = self.sure_angle(from, time).await?;
            let mut known = (from, zero);
            // The first step reaches past the end, whatever the error of `time`.
            let mut beyond = from + (turn + turn / 40 + 2 * self.grain) / self.grain * self.grain;
            if beyond + self.grain > self.end {
                beyond = self.end - self.grain;
                if self.same_track(known, beyond, time).await?.0 {
                    return Ok(None);
                }
            }
            while beyond - known.0 > self.grain {
                if beyond - known.0 <= SWEPT * self.grain
                    && let Some(end) = self.sweep(known, beyond, time).await?
                {
                    return Ok(Some(end));
                }
                let middle = u64::midpoint(known.0, beyond) / self.grain * self.grain;
                let (same, angle) = self.same_track(known, middle, time).await?;
                if same {
                    let grown = (((middle - known.0) as i64) * time) >> FRACTION;
                    known = (middle, angle + grown);
                } else {
                    beyond = middle;
                }
            }
            // A late reading at `from` makes all the rest look moved.
            if known.0 > from {
                return Ok(Some(beyond));
            }
            let again = self.angle(from).await?;
            if self.apart(zero, again).abs() < self.jump() {
                return Ok(Some(beyond));
            }
        }
        Ok(None)
    }

    /// The end of a track in the few sectors from `known`, which is on it, to `beyond`,
    /// which is not; `None` where a late answer came in between.
    ///
    /// Downwards, since a disk that reads ahead has soon cached what lies above, and each
    /// sector must come from the medium.
    async fn sweep(
        &mut self,
        known: (u64, i64),
        beyond: u64,
        time: i64,
    ) -> Result<Option<u64>, Stop> {
        let mut above: Option<i64> = None;
        let mut at = beyond - self.grain;
        while at > known.0 {
            let grown = ((at - known.0) as i64 * time) >> FRACTION;
            let implied = self.angle(at).await? - grown;
            let off = self.apart(known.1, implied);
            if off.abs() < self.jump() {
                break;
            }
            // Past the end all are off by the same jump.
            if above.is_some_and(|above| self.apart(above, off).abs() >= self.jump()) {
                return Ok(None);
            }
            above = Some(off);
            at -= self.grain;
        }
        let end = at + self.grain;
        // One sector alone may have been late.
        Ok((end + self.grain != beyond).then_some(end))
    }

    /// Whether the track that starts at `start` has `sectors`: the last of them lies
    /// on it and the next does not.
    async fn is_length(&mut self, start: u64, sectors: u64) -> Result<bool, Stop> {
        let end = start + sectors;
        let time = (self.period() << FRACTION) / sectors as i64;
        let known = (start, self.angle(start).await?);
        let last = end - self.grain;
        let (same, zero) = self.same_track(known, last, time).await?;
        if !same {
            return Ok(false);
        }
        // Where the disk ends, so does the track.
        if end + self.grain > self.end {
            return Ok(true);
        }
        // The jump must lie between these two: over a whole track the angle of a
        // longer or shorter one drifts away just as far.
        let grown = ((last - start) as i64 * time) >> FRACTION;
        Ok(!self.same_track((last, zero + grown), end, time).await?.0)
    }

    /// The length of the track that starts at `start`; quick where it is `likely`. `about`
    /// is what tracks here have, roughly.
    async fn track_length(
        &mut self,
        start: u64,
        likely: &[u64],
        about: u64,
    ) -> Result<Option<u64>, Stop> {
        // Again, since a late answer hides what is there.
        for sectors in likely.iter().chain(likely).chain(likely) {
            if start + sectors <= self.end && self.is_length(start, *sectors).await? {
                return Ok(Some(*sectors));
            }
        }
        if start + 4 * self.grain > self.end {
            return Ok(None);
        }
        let time = self.sector_time(start, Some(about)).await?;
        let end = self.track_end(start, time).await?;
        Ok(end.map(|end| end - start))
    }

    /// The first whole track after `at`. A length that is not among the `known` is
    /// believed when two tracks in a row have it.
    async fn track_at(&mut self, at: u64, known: &[u64]) -> Result<Option<Track>, Stop> {
        for attempt in 0..3 {
            let time = self.sector_time(at, known.first().copied()).await?;
            let Some(start) = self.track_end(at + attempt * self.grain, time).await? else {
                return Ok(None);
            };
            let turn = (i128::from(self.period()) << FRACTION) / i128::from(time);
            let close = |track: &&u64| (**track as i128 - turn).abs() * 50 < turn;
            let mut likely: Vec<u64> = known.iter().filter(close).copied().collect();
            let mut track = Track { start, sectors: 0 };
            for _ in 0..4 {
                let Some(sectors) = self.track_length(track.start, &likely, turn as u64).await?
                else {
                    return Ok(None);
                };
                likely = vec![sectors.max(SECTORS_MIN)];
                let whole = Track { sectors, ..track };
                if (i128::from(sectors) - turn).abs() * 5 > turn {
                    // A track with spare sectors, or an error; the next may tell.
                    track = Track { start: whole.end(), sectors: 0 };
                    continue;
                }
                if known.contains(&sectors) || sectors == track.sectors {
                    return Ok(Some(whole));
                }
                track = Track { start: whole.end(), sectors };
            }
        }
        Ok(None)
    }

    /// All tracks and zones.
    pub async fn find_geometry(&mut self) -> Result<Option<Geometry>, Stop> {
        self.stage("tracks and zones", 150);
        let grid = if self.full() { 24 } else { 8 };
        let mut known: Vec<u64> = Vec::new();
        let mut tracks: Vec<Track> = Vec::new();
        for index in 0..grid {
            let at = (self.end / grid * index + self.grain) / self.grain * self.grain;
            let mut near: Vec<u64> = known.iter().rev().copied().collect();
            if let Some(track) = self.track_at(at, &near).await? {
                near.push(track.sectors);
                if !known.contains(&track.sectors) {
                    known.push(track.sectors);
                }
                tracks.push(track);
            }
        }
        // The last whole tracks of the disk.
        let longest = known.iter().copied().max().unwrap_or(0);
        let near: Vec<u64> = known.iter().rev().copied().collect();
        let last = self.end.saturating_sub(6 * longest) / self.grain * self.grain;
        if let Some(track) = self.track_at(last, &near).await? {
            tracks.push(track);
        }
        tracks.dedup_by_key(|track| track.start);
        if tracks.len() < 2 {
            return Ok(None);
        }
        let (zones, exact) = self.find_zones(&tracks).await?;
        let mut geometry = Geometry { zones, heads: 1, heads_known: false, exact };
        self.find_heads(&mut geometry).await?;
        self.find_skews(&mut geometry).await?;
        Ok(Some(geometry))
    }

    /// Narrows each change of the track length down to the track, or as far as there is
    /// time: the widest gap comes first, so that a look that is short of time has seen
    /// every zone before it knows well where any of them starts.
    async fn find_zones(&mut self, tracks: &[Track]) -> Result<(Vec<Zone>, bool), Stop> {
        let mut starts: Vec<(u64, u64)> = vec![(0, tracks[0].sectors)];
        let mut exact = true;
        let mut gaps: Vec<(Track, Track)> =
            tracks.windows(2).map(|pair| (pair[0], pair[1])).collect();
        while let Some(widest) = widest(&gaps) {
            let (left, right) = gaps.swap_remove(widest);
            let apart = right.start - left.start;
            self.stage("tracks and zones", 200 + self.narrowed(apart));
            if left.sectors == right.sectors || starts.len() >= ZONES_MAX {
                continue;
            }
            if apart <= 6 * left.sectors.max(right.sectors) {
                let start = self.walk(left, right).await?;
                starts.push((start, right.sectors));
                continue;
            }
            if !self.full() && apart < self.end / 256 || self.has_spent(450) {
                exact = false;
                starts.push((u64::midpoint(left.start, right.start), right.sectors));
                continue;
            }
            let middle = u64::midpoint(left.start, right.start) / self.grain * self.grain;
            let known = [left.sectors, right.sectors];
            match self.track_at(middle, &known).await? {
                Some(track) if track.start < right.start => {
                    gaps.push((track, right));
                    gaps.push((left, track));
                }
                _ => {
                    exact = false;
                    starts.push((right.start, right.sectors));
                }
            }
        }
        starts.sort_unstable();
        starts.dedup_by_key(|(_, track)| *track);
        if exact {
            self.confirm(&mut starts).await?;
        }
        let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([self.end]);
        let zones = starts.iter().zip(ends).map(|(&(start, track), end)| Zone {
            start,
            end,
            track,
            track_skew: 0,
            cylinder_skew: 0,
        });
        Ok((zones.collect(), exact))
    }

    /// How far the zones are narrowed down when the widest gap is `apart`, in four
    /// hundredths: gaps are halved, so each halving is one step of it.
    fn narrowed(&self, apart: u64) -> u32 {
        let (whole, left) = (self.end.ilog2(), apart.max(1).ilog2());
        400 * whole.saturating_sub(left) / whole
    }

    /// A second look at every zone: its first track must have its length. If not,
    /// the start is looked for again nearby, and a zone that is not there is dropped.
    async fn confirm(&mut self, starts: &mut Vec<(u64, u64)>) -> Result<(), Stop> {
        let mut index = 1;
        while index < starts.len() {
            let (before, here) = (starts[index - 1].1, starts[index]);
            if self.starts_at(here).await? {
                // A walk that lost its way may have gone past the true start.
                let (mut start, track) = here;
                while start > track
                    && self.starts_at((start - track, track)).await?
                    && self.is_start(start - track, track).await?
                {
                    start -= track;
                }
                starts[index].0 = start;
                index += 1;
                continue;
            }
            match self.look_again(before, here).await? {
                Some(start) if self.starts_at((start, here.1)).await? => {
                    starts[index].0 = start;
                    index += 1;
                }
                _ => drop(starts.remove(index)),
            }
        }
        starts.dedup_by_key(|(_, track)| *track);
        Ok(())
    }

    /// Whether a track starts at `start`, one of some `track` sectors.
    async fn is_start(&mut self, start: u64, track: u64) -> Result<bool, Stop> {
        let time = (self.period() << FRACTION) / track as i64;
        let before = (start - self.grain, self.angle(start - self.grain).await?);
        Ok(!self.same_track(before, start, time).await?.0)
    }

    async fn starts_at(&mut self, (start, track): (u64, u64)) -> Result<bool, Stop> {
        for _ in 0..4 {
            if start + track <= self.end && self.is_length(start, track).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where tracks of `before` sectors end and those of `here` begin, around its start.
    async fn look_again(&mut self, before: u64, here: (u64, u64)) -> Result<Option<u64>, Stop> {
        let (start, track) = here;
        let from = start.saturating_sub(8 * before) / self.grain * self.grain;
        let left = self.track_at(from, &[before, track]).await?;
        let right = self.track_at(start + 2 * track, &[track, before]).await?;
        match (left, right) {
            (Some(left), Some(right)) if left.sectors == before && right.sectors == track => {
                self.walk(left, right).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Goes from track to track until the length changes.
    async fn walk(&mut self, left: Track, right: Track) -> Result<u64, Stop> {
        let mut at = left.end();
        let likely = [left.sectors, right.sectors];
        while at < right.start {
            match self.track_length(at, &likely, left.sectors).await? {
                Some(sectors) if sectors == right.sectors => break,
                Some(sectors) if sectors > 0 => at += sectors,
                _ => break,
            }
        }
        Ok(at.min(right.start))
    }

    /// The jumps at the ends of `count` tracks from a track on.
    async fn jumps(&mut self, first: u64, track: u64, count: u64) -> Result<Vec<i64>, Stop> {
        let half = track / 2 / self.grain * self.grain;
        let mut angles = Vec::new();
        for index in 0..=count {
            let lba = (first + index * track + half) / self.grain * self.grain;
            angles.push(self.angle(lba).await?);
        }
        let period = self.period();
        Ok(angles.windows(2).map(|pair| (pair[1] - pair[0]).rem_euclid(period)).collect())
    }

    /// The number of heads: every so many tracks the jump is that of a cylinder.
    async fn find_heads(&mut self, geometry: &mut Geometry) -> Result<(), Stop> {
        self.stage("heads and skews", 600);
        let zone = *geometry
            .zones
            .iter()
            .max_by_key(|zone| (zone.end - zone.start) / zone.track)
            .expect("a disk has a zone");
        // A zone whose start is not known to the track does not begin a cylinder
        // for us; the first does.
        let zone = if geometry.exact { zone } else { geometry.zones[0] };
        let tracks = (zone.end - zone.start) / zone.track;
        for count in [60, 63, 66, 192, 780] {
            if count > 66 && !self.full() || tracks <= count + 1 {
                break;
            }
            let jumps = self.jumps(zone.start, zone.track, count).await?;
            if let Some(heads) = period_of(&jumps, self.jump() / 2) {
                (geometry.heads, geometry.heads_known) = (heads, true);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Both skews in every zone, each the median of five places.
    async fn find_skews(&mut self, geometry: &mut Geometry) -> Result<(), Stop> {
        let heads = geometry.heads;
        for index in 0..geometry.zones.len() {
            let zone = geometry.zones[index];
            let cylinders = geometry.cylinders(&zone);
            let (mut within, mut across) = (Vec::new(), Vec::new());
            for _ in 0..5 {
                if cylinders < 4 {
                    break;
                }
                let cylinder = self.below(cylinders - 3);
                let last = zone.start + (cylinder * heads + heads - 1) * zone.track;
                across.extend(self.jumps(last, zone.track, 1).await?);
                if heads > 1 {
                    let first = zone.start + cylinder * heads * zone.track;
                    within.extend(self.jumps(first, zone.track, 1).await?);
                }
            }
            let (mut track, mut cylinder) = (median(&within), median(&across));
            let shifted = !geometry.exact || (track - cylinder).abs() < self.jump();
            if heads > 1 && cylinders >= 4 && shifted {
                // Spare sectors shift the cylinders here, or the zone's start is not
                // well known: told by size, not by place.
                let from = zone.start + self.below(cylinders - 3) * heads * zone.track;
                let jumps = self.jumps(from, zone.track, 3 * heads).await?;
                track = median(&jumps);
                let far = |jump: &&i64| (**jump - track).abs() > self.jump();
                let odd: Vec<i64> = jumps.iter().filter(far).copied().collect();
                cylinder = if odd.is_empty() { track } else { median(&odd) };
            }
            let zone = &mut geometry.zones[index];
            zone.cylinder_skew = cylinder;
            zone.track_skew = if heads > 1 { track } else { cylinder };
        }
        Ok(())
    }
}

/// The gap between tracks that are farthest apart.
fn widest(gaps: &[(Track, Track)]) -> Option<usize> {
    (0..gaps.len()).max_by_key(|&index| gaps[index].1.start - gaps[index].0.start)
}

/// The least number `h` such that every `h`-th jump is one thing and all others
/// another, which differs by more than `apart`.
fn period_of(jumps: &[i64], apart: i64) -> Option<u64> {
    for heads in 2..=jumps.len() / 3 {
        let (mut across, mut within) = (Vec::new(), Vec::new());
        for (index, jump) in jumps.iter().enumerate() {
            if (index + 1) % heads == 0 { across.push(*jump) } else { within.push(*jump) }
        }
        let (far, near) = (median(&across), median(&within));
        // A late reading spoils two jumps, at worst one of each kind.
        let odd = |values: &[i64], middle: i64| {
            values.iter().filter(|value| (**value - middle).abs() >= apart).count()
        };
        let few = |values: &[i64], middle: i64, odd_max: usize| {
            odd(values, middle) <= odd_max.max(values.len() / 10)
        };
        if (far - near).abs() > 2 * apart && few(&across, far, 1) && few(&within, near, 2) {
            return Some(heads as u64);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_counted_by_the_rhythm_of_the_jumps() {
        let jumps = |heads: usize| -> Vec<i64> {
            (1..=60).map(|i| if i % heads == 0 { 2_000 } else { 800 }).collect()
        };
        for heads in [2, 3, 10, 19] {
            assert_eq!(period_of(&jumps(heads), 100), Some(heads as u64));
        }
        assert_eq!(period_of(&[500; 60], 100), None);
        let mut spoilt = jumps(4);
        spoilt[17] = 7_000;
        assert_eq!(period_of(&spoilt, 100), Some(4));
    }
}
