//! Where on the platters a sector lies, and when it comes by.
//!
//! The angle of the platters is a function of time alone: at an instant `t` they
//! have turned `t mod rotation` since the last full turn. A sector's place on its
//! circle is a time, too: how long after the turn's start it comes by. Both are
//! whole nanoseconds, so that the same history gives the same times everywhere.
//!
//! A zone is one run of physical sectors, cylinder by cylinder, head by head.
//! Addresses skip the sectors at its front that hold none, the slipped ones, and
//! the spares at the end of each range. Invariant: addresses rise along the run.

use crate::model::hard_disk::{HardDiskModel, ZoneModel};
use alloc::vec::Vec;
use units::{Duration, Instant};

/// A number to divide by many times: a multiplication in the place of a division,
/// which is most of what a request costs. Exact for all that is divided here, that
/// is below 2^64 divided by the number.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    by: u64,
    /// 2^64 divided by it, rounded up.
    inverse: u64,
}

impl Divisor {
    const fn new(by: u64) -> Self {
        Self { by, inverse: if by > 1 { u64::MAX / by + 1 } else { 0 } }
    }

    fn quotient(self, n: u64) -> u64 {
        debug_assert!(n < u64::MAX / self.by, "{n} by {}", self.by);
        if self.by == 1 { n } else { ((u128::from(n) * u128::from(self.inverse)) >> 64) as u64 }
    }

    fn split(self, n: u64) -> (u64, u64) {
        let quotient = self.quotient(n);
        (quotient, n - quotient * self.by)
    }
}

/// One zone with what follows from its place on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub first_sector: u64,
    pub first_cylinder: u64,
    pub cylinders: u64,
    /// How many addresses it has.
    pub sectors: u64,
    pub sectors_per_track: u64,
    per_track: Divisor,
    /// By how many sectors a track starts later than the one on the head before.
    track_skew: u64,
    /// And than the last one of the cylinder before.
    cylinder_skew: u64,
    /// When, in a turn, the zone's first sector comes by.
    offset_ns: u64,
    /// Physical sectors at the front without an address.
    front: u64,
    /// Physical sectors and addresses of a range with its spares; the whole zone
    /// where there are none.
    range: (u64, u64),
    /// Slipped physical sectors, rising.
    slips: Vec<u64>,
    /// For each slip, the first address (from the zone's start) that it moves.
    moved: Vec<u64>,
}

impl Layout {
    fn new(zone: &ZoneModel, model: &HardDiskModel, first_cylinder: u64) -> Self {
        let cylinder = zone.sectors_per_track * model.heads;
        let physical = zone.cylinders * cylinder;
        let rotation_ns = model.rotation.as_nanos();
        // One nanosecond more than the skew, since edges are rounded down.
        let sectors =
            |skew: Duration| ((skew.as_nanos() + 1) * zone.sectors_per_track).div_ceil(rotation_ns);
        let range = match model.spares {
            Some(spares) => {
                let range = spares.cylinders * cylinder;
                (range, range - spares.sectors)
            }
            None => (physical, physical),
        };
        let mut layout = Self {
            first_sector: 0,
            first_cylinder,
            cylinders: zone.cylinders,
            sectors: 0,
            sectors_per_track: zone.sectors_per_track,
            per_track: Divisor::new(zone.sectors_per_track),
            track_skew: zone.track_skew.unwrap_or_else(|| sectors(model.track_skew)),
            cylinder_skew: zone.cylinder_skew.unwrap_or_else(|| sectors(model.cylinder_skew)),
            offset_ns: 0,
            front: zone.front,
            range,
            slips: zone.slips.clone(),
            moved: Vec::new(),
        };
        // A bad sector among the spares moves nothing.
        layout.slips.retain(|slip| slip % range.0 < range.1);
        layout.slips.sort_unstable();
        layout.moved = layout.slips.iter().map(|&slip| layout.address(slip)).collect();
        layout.sectors = layout.address(physical);
        layout
    }

    fn has_spares(&self) -> bool {
        self.range.0 > self.range.1
    }

    /// Slips in the range of physical sector `at`, before it.
    fn slips_before(&self, at: u64) -> u64 {
        if self.slips.is_empty() {
            return 0;
        }
        let start = if self.has_spares() { at / self.range.0 * self.range.0 } else { 0 };
        let before = |end: u64| self.slips.partition_point(|&slip| slip < end) as u64;
        before(at) - before(start)
    }

    /// How many addresses of the zone lie before physical sector `at`.
    fn address(&self, at: u64) -> u64 {
        let slips = self.slips_before(at);
        let used = if self.has_spares() {
            let (number, inside) = (at / self.range.0, at % self.range.0);
            number * self.range.1 + inside.saturating_sub(slips).min(self.range.1)
        } else {
            at - slips
        };
        used.saturating_sub(self.front)
    }

    /// The physical sector of the `index`-th address of the zone.
    fn physical(&self, index: u64) -> u64 {
        let index = index + self.front;
        if !self.has_spares() {
            if self.slips.is_empty() {
                return index;
            }
            let slips = self.moved.partition_point(|&moved| moved + self.front <= index);
            return index + slips as u64;
        }
        let (number, inside) = (index / self.range.1, index % self.range.1);
        let before =
            |end: u64| self.moved.partition_point(|&moved| moved + self.front < end) as u64;
        let slips = before(index + 1) - before(number * self.range.1);
        number * self.range.0 + inside + slips
    }

    /// When, after the zone's offset, the edge before sector `index` of a circle
    /// comes by; `index` may go past the end of the circle.
    fn edge_ns(&self, index: u64, rotation_ns: u64) -> u64 {
        self.per_track.quotient(index * rotation_ns)
    }

    /// The step from the last sector of a track to the first of the next, rounded up.
    pub fn track_skew(&self, rotation: Duration) -> Duration {
        Duration::from_nanos(self.edge_ns(self.track_skew, rotation.as_nanos()) + 1)
    }

    /// The same to the next cylinder.
    pub fn cylinder_skew(&self, rotation: Duration) -> Duration {
        Duration::from_nanos(self.edge_ns(self.cylinder_skew, rotation.as_nanos()) + 1)
    }

    /// The longest time in a transfer for sectors that hold no address.
    pub fn gaps(&self, rotation: Duration) -> Duration {
        let spares = self.range.0 - self.range.1;
        let sectors = spares + self.slips.len() as u64;
        Duration::from_nanos(self.edge_ns(sectors, rotation.as_nanos()))
    }
}

/// Sectors of one track that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub zone: usize,
    pub cylinder: u64,
    pub head: u64,
    /// The first one's place on the track.
    pub sector: u64,
    /// How many addresses.
    pub count: u64,
    /// How many physical sectors from the first to the last.
    pub span: u64,
}

/// All zones of a disk.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub zones: Vec<Layout>,
    heads: Divisor,
    rotation_ns: u64,
    /// How many addresses the disk has.
    pub sectors: u64,
}

impl Geometry {
    /// Lays the zones of a model out. Each starts where a transfer that comes from
    /// the zone before finds its first sector after one cylinder skew, as
    /// formatters do: crossing into a zone costs what any other step to the next
    /// cylinder costs.
    pub fn new(model: &HardDiskModel) -> Self {
        let rotation_ns = model.rotation.as_nanos();
        let mut zones: Vec<Layout> = Vec::with_capacity(model.zones.len());
        let (mut first_sector, mut first_cylinder, mut offset_ns) = (0, 0, 0);
        for zone in &model.zones {
            let mut layout = Layout::new(zone, model, first_cylinder);
            (layout.first_sector, layout.offset_ns) = (first_sector, offset_ns);
            let steps = (model.heads - 1) * layout.track_skew * zone.cylinders
                + layout.cylinder_skew * (zone.cylinders - 1);
            let end_ns = offset_ns + layout.edge_ns(steps % zone.sectors_per_track, rotation_ns);
            offset_ns = (end_ns + layout.cylinder_skew(model.rotation).as_nanos()) % rotation_ns;
            first_sector += layout.sectors;
            first_cylinder += zone.cylinders + zone.unused_cylinders;
            zones.push(layout);
        }
        Self { zones, heads: Divisor::new(model.heads), rotation_ns, sectors: first_sector }
    }

    /// The zone of an address.
    pub fn zone(&self, lba: u64) -> usize {
        self.zones.partition_point(|zone| zone.first_sector <= lba) - 1
    }

    /// The sectors from `lba` on that one track holds, at most `most`.
    pub fn piece(&self, lba: u64, most: u64) -> Piece {
        let zone = self.zone(lba);
        let layout = &self.zones[zone];
        let index = lba - layout.first_sector;
        let at = layout.physical(index);
        let (track, sector) = layout.per_track.split(at);
        let track_end = (track + 1) * layout.sectors_per_track;
        let is_plain = layout.slips.is_empty() && !layout.has_spares();
        let (count, span) = if is_plain {
            let count = most.min(track_end - at);
            (count, count)
        } else {
            let count = most.min(layout.address(track_end) - index);
            (count, layout.physical(index + count - 1) + 1 - at)
        };
        let (cylinder, head) = self.heads.split(track);
        Piece { zone, cylinder: layout.first_cylinder + cylinder, head, sector, count, span }
    }

    /// As [`Geometry::piece`], for `lba` right after `last`: most often the next track of
    /// the same zone, which takes no search.
    pub fn piece_after(&self, last: &Piece, lba: u64, most: u64) -> Piece {
        let layout = &self.zones[last.zone];
        let ends_track = last.sector + last.span == layout.sectors_per_track;
        if !ends_track || !layout.slips.is_empty() || layout.has_spares() {
            return self.piece(lba, most);
        }
        let (cylinder, head) = match last.head + 1 {
            head if head < self.heads.by => (last.cylinder, head),
            _ => (last.cylinder + 1, 0),
        };
        if cylinder == layout.first_cylinder + layout.cylinders {
            return self.piece(lba, most);
        }
        let count = most.min(layout.sectors_per_track);
        Piece { zone: last.zone, cylinder, head, sector: 0, count, span: count }
    }

    /// The addresses of the track that holds `lba`: the first, and the one after
    /// the last.
    pub fn track(&self, lba: u64) -> (u64, u64) {
        let layout = &self.zones[self.zone(lba)];
        let track = layout.physical(lba - layout.first_sector) / layout.sectors_per_track;
        let edge =
            |track: u64| layout.first_sector + layout.address(track * layout.sectors_per_track);
        (edge(track), edge(track + 1))
    }

    /// The index on its circle of a piece's first sector, skews added up.
    fn index(&self, piece: &Piece) -> u64 {
        let layout = &self.zones[piece.zone];
        let cylinders = piece.cylinder - layout.first_cylinder;
        let steps = ((self.heads.by - 1) * cylinders + piece.head) * layout.track_skew
            + cylinders * layout.cylinder_skew;
        layout.per_track.split(steps).1 + piece.sector
    }

    /// From `now` until the first sector of a piece comes by, and from there to
    /// the end of its last.
    pub fn timing(&self, now: Instant, piece: &Piece) -> (Duration, Duration) {
        let layout = &self.zones[piece.zone];
        let index = self.index(piece);
        let from_ns = layout.edge_ns(index, self.rotation_ns);
        let angle_ns = now.as_nanos() % self.rotation_ns;
        // Both terms before the last are below two turns, the angle below one.
        let ahead = layout.offset_ns + from_ns + 2 * self.rotation_ns - angle_ns;
        let mut wait_ns = ahead;
        while wait_ns >= self.rotation_ns {
            wait_ns -= self.rotation_ns;
        }
        let move_ns = layout.edge_ns(index + piece.span, self.rotation_ns) - from_ns;
        (Duration::from_nanos(wait_ns), Duration::from_nanos(move_ns))
    }

    /// The time of `sectors` on a track of a piece, rounded down.
    pub fn sectors_time(&self, piece: &Piece, sectors: u64) -> Duration {
        Duration::from_nanos(self.zones[piece.zone].edge_ns(sectors, self.rotation_ns))
    }

    /// How many sectors of a piece's track pass in `span`.
    pub fn sectors_in(&self, piece: &Piece, span: Duration) -> u64 {
        span.as_nanos().min(1 << 40) * self.zones[piece.zone].sectors_per_track / self.rotation_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec;

    #[test]
    fn a_divisor_divides_exactly() {
        for by in [1, 2, 3, 7, 107, 179, 256, 4_960, 99_999, 8_333_333] {
            let divisor = Divisor::new(by);
            let most = (u64::MAX / by - 1).min(1 << 45);
            for n in (0..2_000).chain((0..2_000).map(|step| most - step * 77_777)) {
                assert_eq!(divisor.split(n), (n / by, n % by), "{n} by {by}");
            }
            for turn in 1..500 {
                let n = turn * by;
                assert_eq!((divisor.quotient(n), divisor.quotient(n - 1)), (turn, turn - 1));
            }
        }
    }

    /// Two zones of a small disk with all that makes addresses uneven.
    fn uneven(spares: &str) -> HardDiskModel {
        let text = String::from(include_str!("../../../models/laptop-4200.toml"));
        let (head, _) = text.split_once("zones = [").expect("a list of zones");
        let text = format!(
            "{head}{spares}\nzones = [\n\
             {{ cylinders = 7, sectors_per_track = 12, front = 30, slips = [40, 41, 71, 100] }},\n\
             {{ cylinders = 5, sectors_per_track = 10, slips = [5, 55, 54], unused_cylinders = 1 }},\n]"
        );
        let text = text.replace("1.6ms", "2ms").replace("2.6ms", "3ms");
        Model::parse(&text).unwrap().hard_disk().unwrap().clone()
    }

    #[test]
    fn addresses_pass_over_fronts_slips_and_spares_and_never_come_twice() {
        for (spares, expected) in [
            ("", (7 * 24 - 30 - 4) + (5 * 20 - 3)),
            // Of seven cylinders by two, and of five: three or two whole ranges and a
            // half; what a slip takes in a range comes out of its spares.
            ("spares = { cylinders = 2, sectors = 6 }", (3 * 42 + 24 - 30) + (2 * 34 + 20)),
        ] {
            let geometry = Geometry::new(&uneven(spares));
            assert_eq!(geometry.sectors, expected, "{spares}");
            let mut lba = 0;
            let mut last = (0, 0, 0);
            while lba < geometry.sectors {
                let piece = geometry.piece(lba, u64::MAX >> 1);
                let place = (piece.cylinder, piece.head, piece.sector + 1);
                assert!(place > last && piece.count >= 1 && piece.span >= piece.count);
                for step in 0..piece.count {
                    let one = geometry.piece(lba + step, 1);
                    assert_eq!((one.cylinder, one.head, one.span), (piece.cylinder, piece.head, 1));
                    assert!(one.sector < piece.sector + piece.span);
                    let zone = &geometry.zones[one.zone];
                    let at = ((one.cylinder - zone.first_cylinder) * 2 + one.head)
                        * zone.sectors_per_track
                        + one.sector;
                    assert!(!zone.slips.contains(&at), "sector {at} is bad");
                    assert_eq!(geometry.track(lba + step), (lba, lba + piece.count));
                }
                let next = lba + piece.count;
                if next < geometry.sectors {
                    for most in [1, 5, u64::MAX >> 1] {
                        let found = geometry.piece_after(&piece, next, most);
                        assert_eq!(found, geometry.piece(next, most));
                    }
                }
                last = (piece.cylinder, piece.head, piece.sector + piece.span);
                lba += piece.count;
            }
        }
        assert_eq!(vec![Geometry::new(&uneven("")).zones[1].first_cylinder], [7]);
    }
}
