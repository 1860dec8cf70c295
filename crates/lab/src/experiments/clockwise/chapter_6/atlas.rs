//! The Quantum Atlas-II as a model, and what single requests to it take.

use disk::{Drive, Emulated, Model, Profile};
use sim::Random;
use sim::machine::Latencies;
use std::ops::Range;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

/// Sectors of each zone by tracks of 10 heads (thesis, table 4.1).
const ZONES: [(u64, u64); 12] = [
    (1772, 179),
    (352, 170),
    (416, 164),
    (312, 161),
    (232, 159),
    (416, 152),
    (280, 149),
    (488, 139),
    (520, 129),
    (208, 125),
    (392, 116),
    (424, 107),
];

pub(super) fn model() -> Model {
    Model::named("quantum-atlas-ii").expect("a model that comes with the program")
}

pub(super) fn profile() -> Profile {
    Profile::of(&model())
}

/// The sectors of a zone.
pub(super) fn zone(number: usize) -> Range<Lba> {
    let sectors = |&(cylinders, track): &(u64, u64)| cylinders * 10 * track;
    let start: u64 = ZONES[..number].iter().map(sectors).sum();
    Lba::new(start)..Lba::new(start + sectors(&ZONES[number]))
}

/// The whole disk.
pub(super) fn all() -> Range<Lba> {
    Lba::new(0)..Lba::containing(model().capacity())
}

/// Times to read so many blocks of a zone one after the other without the disk's
/// cache, each after a pause that lets the platters stand anywhere.
pub(super) fn sequential_read(number: usize, block: Bytes, count: u64, seed: u64) -> Latencies {
    let mut drive = Emulated::new(&model().with_seed(seed));
    let mut random = Random::new(seed);
    let (range, sectors) = (zone(number), block / SECTOR);
    let blocks = range.start.distance(range.end) / sectors;
    let first = random.below(blocks.saturating_sub(count).max(1));
    let (mut now, mut times) = (Instant::EPOCH, Latencies::default());
    for at in 0..count.min(blocks) {
        let lba = Lba::new(range.start.get() + (first + at) * sectors);
        let access = Access { lba, len: block, direction: Direction::Read };
        now += random.span(Duration::from_millis(100));
        let time = drive.serve(now, &Command::Forced(access));
        times.add(time, block);
        now += time;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zones_are_the_whole_disk() {
        assert_eq!(zone(11).end, all().end);
    }
}
