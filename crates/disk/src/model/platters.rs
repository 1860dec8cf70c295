//! What a hard disk of these parts holds, whether they fit together, and a smaller one of the same
//! parts.

use super::hard_disk::{HardDiskModel, Reading, ZoneModel};
use crate::Error;
use crate::error::ensure;
use crate::geometry::Geometry;
use alloc::vec::Vec;
use units::{Bytes, SECTOR};

/// The most zones that a model may have; real disks have up to about thirty.
const ZONES_MAX: usize = 256;
/// The most sectors on a track; today's disks have some four thousand of 512 bytes.
const SECTORS_PER_TRACK: core::ops::RangeInclusive<u64> = 2..=100_000;
/// The most tracks from which on a read waits for a whole one.
const TRACKS_MAX: u64 = 1_024;
/// The most cylinders of a zone, so that no product here leaves 64 bits.
const CYLINDERS: core::ops::RangeInclusive<u64> = 1..=10_000_000;
/// The most spare sectors of one range: what they take to pass stays in 64 bits.
const SPARES_MAX: u64 = 1 << 24;

impl HardDiskModel {
    pub fn check(&self) -> Result<(), Error> {
        ensure!((1..=256).contains(&self.heads), "heads is {}; give 1 to 256", self.heads);
        ensure!((1..=1_024).contains(&self.depth), "depth is {}; give 1 to 1024", self.depth);
        let Reading { whole_track_from, in_order_beyond, .. } = self.reading;
        let whole_tracks_beyond = self.writing.whole_tracks_beyond;
        ensure!(
            whole_tracks_beyond <= TRACKS_MAX,
            "writing.whole_tracks_beyond is {whole_tracks_beyond}; give at most {TRACKS_MAX} tracks"
        );
        ensure!(
            whole_track_from <= TRACKS_MAX && in_order_beyond <= 1 << 32,
            "reading.whole_track_from is {whole_track_from}, in_order_beyond {in_order_beyond}; \
             give at most {TRACKS_MAX} tracks, and sectors below 2^32"
        );
        let zones = self.zones.len();
        ensure!((1..=ZONES_MAX).contains(&zones), "{zones} zones; give 1 to {ZONES_MAX}");
        for (index, zone) in self.zones.iter().enumerate() {
            self.check_zone(index, zone)?;
        }
        ensure!(
            self.head_switch <= self.track_skew,
            "track_skew is {}; give at least head_switch, {}, or each track costs a turn",
            self.track_skew,
            self.head_switch
        );
        ensure!(
            self.cylinder_switch <= self.cylinder_skew && self.track_skew <= self.cylinder_skew,
            "cylinder_skew is {}; give at least cylinder_switch, {}, and track_skew, {}",
            self.cylinder_skew,
            self.cylinder_switch,
            self.track_skew
        );
        ensure!(
            self.cylinder_skew < self.rotation,
            "cylinder_skew is {}; give less than a turn, {}",
            self.cylinder_skew,
            self.rotation
        );
        self.check_skews()?;
        for pair in self.bad.windows(2) {
            ensure!(pair[0].0 < pair[1].0, "sector {} is bad twice; give it once", pair[1].0);
        }
        Ok(())
    }

    fn check_zone(&self, index: usize, zone: &ZoneModel) -> Result<(), Error> {
        let (cylinders, sectors) = (zone.cylinders, zone.sectors_per_track);
        ensure!(
            CYLINDERS.contains(&cylinders) && SECTORS_PER_TRACK.contains(&sectors),
            "zones[{index}] has {cylinders} cylinders of {sectors} sectors a track; \
             give {CYLINDERS:?} and {SECTORS_PER_TRACK:?}"
        );
        let skew = zone.track_skew.max(zone.cylinder_skew).unwrap_or_default();
        ensure!(
            skew < sectors && zone.unused_cylinders <= *CYLINDERS.end(),
            "zones[{index}] has a skew of {skew} sectors and {} unused cylinders; give less than \
             a track, and at most {}",
            zone.unused_cylinders,
            CYLINDERS.end()
        );
        let physical = cylinders * sectors * self.heads;
        let lost = zone.front.saturating_add(zone.slips.len() as u64);
        ensure!(
            lost < physical && zone.slips.iter().all(|&slip| slip < physical),
            "zones[{index}] has {physical} sectors; front and slips leave none, or lie outside"
        );
        if let Some(spares) = self.spares {
            ensure!(
                spares.sectors <= SPARES_MAX,
                "spares has {} sectors; give at most {SPARES_MAX}",
                spares.sectors
            );
            ensure!(
                CYLINDERS.contains(&spares.cylinders)
                    && spares.sectors.saturating_add(lost)
                        < spares.cylinders * sectors * self.heads,
                "spares leave nothing of {} cylinders of zones[{index}]",
                spares.cylinders
            );
        }
        Ok(())
    }

    /// The skews that zones give in sectors cover the switches, too.
    fn check_skews(&self) -> Result<(), Error> {
        for (index, layout) in Geometry::new(self).zones.iter().enumerate() {
            let (track, cylinder) =
                (layout.track_skew(self.rotation), layout.cylinder_skew(self.rotation));
            ensure!(
                self.head_switch <= track && self.cylinder_switch <= cylinder && track <= cylinder,
                "zones[{index}] has skews of {track} and {cylinder}; give at least head_switch, \
                 {}, and cylinder_switch, {}",
                self.head_switch,
                self.cylinder_switch
            );
        }
        Ok(())
    }

    pub fn capacity(&self) -> Bytes {
        SECTOR * Geometry::new(self).sectors
    }

    pub fn cylinders(&self) -> u64 {
        self.zones.iter().map(|zone| zone.cylinders + zone.unused_cylinders).sum()
    }

    fn cylinder_size(&self, zone: &ZoneModel) -> Bytes {
        SECTOR * zone.sectors_per_track * self.heads
    }

    /// The size before anything is taken away for spares and bad sectors.
    fn full_size(&self) -> Bytes {
        self.zones.iter().map(|zone| self.cylinder_size(zone) * zone.cylinders).sum()
    }

    pub fn scaled(&self, capacity: Bytes, name: &str) -> Result<Self, Error> {
        let least: Bytes = self.zones.iter().map(|zone| self.cylinder_size(zone)).sum();
        ensure!(
            capacity >= least,
            "{name} of {capacity} is too small: give at least {}",
            crate::exact_size(least.round_up(Bytes::MIB))
        );
        let mut small = self.clone();
        (small.spares, small.bad) = (None, Vec::new());
        let full = self.full_size();
        for zone in &mut small.zones {
            let part = u128::from(zone.cylinders) * u128::from(capacity.get());
            let part = part / u128::from(full.get());
            zone.cylinders = u64::try_from(part).expect("no more than before").max(1);
            (zone.front, zone.slips, zone.unused_cylinders) = (0, Vec::new(), 0);
        }
        small.fit(capacity);
        small.arm = self.arm.scaled((small.cylinders() - 1).max(1), self.cylinders() - 1);
        Ok(small)
    }

    /// Takes cylinders away where rounding left too many, and spends what it left
    /// over, one in each zone in turn.
    fn fit(&mut self, capacity: Bytes) {
        while self.full_size() > capacity {
            let most = self.zones.iter_mut().max_by_key(|zone| zone.cylinders);
            most.expect("a model has zones").cylinders -= 1;
        }
        for index in 0..self.zones.len() {
            if self.full_size() + self.cylinder_size(&self.zones[index]) <= capacity {
                self.zones[index].cylinders += 1;
            }
        }
    }
}
