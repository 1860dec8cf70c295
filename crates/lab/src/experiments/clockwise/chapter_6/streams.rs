//! The streams of chapter 6: what table 6.3 and table 6.4 print of them, how section
//! 6.5 pairs them, and where it puts them.

use units::{Bytes, Duration, Rate};

/// What the array of section 6.5 is made of.
pub(super) const DISKS: u64 = 3;

/// A movie's track, or a sound's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub name: &'static str,
    /// KB/s, of 1,024 bytes.
    pub kib_s: u64,
    /// What it moves at a time in most experiments, in KB.
    pub block_kib: u64,
}

/// "Wallace and Gromit: A Close Shave".
pub(super) const GROMIT: Track = Track { name: "WG", kib_s: 245, block_kib: 256 };
/// "The Hunt for Red October".
pub(super) const OCTOBER: Track = Track { name: "RO", kib_s: 817, block_kib: 1024 };
/// Sound as on a compact disc.
pub(super) const SOUND: Track = Track { name: "CD", kib_s: 172, block_kib: 256 };

/// Where a stream's blocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Block by block on the next of all disks.
    Rotation,
    /// The first movie on disks 0 and 1, the second on disk 2, each on one disk.
    OneDisk,
    /// The same with blocks twice as large.
    OneDiskLarge,
}

/// A track on one disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub track: Track,
    pub disk: u64,
    pub block: Bytes,
    /// Every so many blocks of the track lie on this disk.
    pub gap: u64,
}

impl Placed {
    pub fn period(&self) -> Duration {
        Rate::per_second(self.track.kib_s * 1024).time_for(self.block) * self.gap
    }
}

/// Video and sound, the two movies in turn, the smaller first: with these the largest
/// static slack that the thesis states for a single pair comes out (figure 6.4), and
/// its 12 and 13 movies are 25 pairs (section 6.5.3).
pub(super) fn pair(number: u64) -> [Track; 2] {
    [if number.is_multiple_of(2) { GROMIT } else { OCTOBER }, SOUND]
}

/// What so many pairs ask for, in MB/s of 1,024 KB.
pub(super) fn load(pairs: u64) -> f64 {
    let kib: u64 = (0..pairs).flat_map(pair).map(|track| track.kib_s).sum();
    kib as f64 / 1024.0
}

/// The tracks of so many pairs on each disk that they use.
pub(super) fn placed(layout: Layout, pairs: u64) -> Vec<Placed> {
    let mut all = Vec::new();
    for number in 0..pairs {
        for track in pair(number) {
            let kib = track.block_kib * if layout == Layout::OneDiskLarge { 2 } else { 1 };
            let block = Bytes::kib(kib);
            match layout {
                Layout::Rotation => {
                    all.extend((0..DISKS).map(|disk| Placed { track, disk, block, gap: DISKS }));
                }
                Layout::OneDisk | Layout::OneDiskLarge => {
                    let disk = if number.is_multiple_of(2) { 2 } else { number / 2 % 2 };
                    all.push(Placed { track, disk, block, gap: 1 });
                }
            }
        }
    }
    all
}

/// Table 6.4: service times in ms that the thesis plans with on a Quantum Atlas-II, by
/// zone, for blocks of 128 KB to 1 MB.
pub(super) const TABLE_6_4: [[u64; 4]; 12] = [
    [42, 55, 81, 134],
    [42, 55, 83, 140],
    [42, 58, 85, 143],
    [42, 57, 86, 146],
    [42, 62, 89, 145],
    [42, 63, 89, 152],
    [42, 63, 89, 154],
    [43, 63, 95, 163],
    [44, 63, 99, 173],
    [50, 65, 102, 178],
    [50, 67, 107, 189],
    [50, 69, 114, 204],
];

/// What table 6.4 says of a block in the outermost zone.
pub(super) fn printed_cost(block: Bytes) -> Duration {
    printed_in(0, block)
}

/// The same in the slowest zone.
pub(super) fn printed_slowest(block: Bytes) -> Duration {
    printed_in(TABLE_6_4.len() - 1, block)
}

/// The block of 2 MB, which the table leaves out, takes a further step of what 1 MB takes
/// more than 512 KB, twice.
fn printed_in(zone: usize, block: Bytes) -> Duration {
    let [_, quarter, half, whole] = TABLE_6_4[zone];
    let ms = match block / Bytes::kib(256) {
        1 => quarter,
        2 => half,
        4 => whole,
        8 => whole + 2 * (whole - half),
        _ => panic!("no block of the thesis: {block}"),
    };
    Duration::from_millis(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_of_the_thesis_come_out() {
        // Section 6.5.4: 24 pairs, 16.5 MB/s; section 6.5.3: 25 pairs, about 17 MB/s.
        assert!((load(24) - 16.5).abs() < 0.05 && (load(25) - 16.9).abs() < 0.3);
        assert_eq!(placed(Layout::Rotation, 25).len(), 150);
        let on = |disk| placed(Layout::OneDisk, 25).iter().filter(|it| it.disk == disk).count();
        assert_eq!([on(0), on(1), on(2)], [12, 12, 26]);
    }
}
