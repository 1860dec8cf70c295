//! The block of a stream whose program names none.
//!
//! A request takes the time until the heads are in place, and the time for its bytes. While
//! the first is most of it, twice the block costs little more, half as often: the same
//! stream has less of the disk. Where the second is most of it, as on a disk without heads,
//! a larger block gains nothing, and costs memory and time until playout begins. So
//! what is chosen begins short, and grows while that pays on one of the volume's disks, by
//! the same bounds as admission goes by.

use crate::admission::contract::Share;
use crate::limits::{BLOCK_MAX, BLOCK_MIN};
use disk::Profile;
use units::{Bytes, Direction, Duration, Rate};

/// To begin with, a block lasts no longer, and more than half as long.
const LASTS_FIRST: Duration = Duration::from_millis(500);
/// However much it pays, a block lasts no longer: the promise is that playout begins two
/// and a half blocks' time after somebody asked for it, at the latest.
const LASTS_MAX: Duration = Duration::from_secs(2);
/// A block of twice the size pays while a request for it takes less than this many times
/// as long, as a fraction: the stream has less than three quarters of what it had of the
/// disk.
const PAYS_BELOW: (u64, u64) = (3, 2);

/// The block for a stream of this rate, of a volume with these shares.
pub(crate) fn chosen<'a>(
    rate: Rate,
    direction: Direction,
    shares: &[Share],
    profile: impl Fn(&Share) -> &'a Profile,
) -> Bytes {
    let pays = |block: Bytes| {
        shares.iter().any(|share| {
            let cost = |len| profile(share).worst(share.range.clone(), len, direction);
            cost(block * 2) * PAYS_BELOW.1 < cost(block) * PAYS_BELOW.0
        })
    };
    let mut block = shortest(rate);
    while block < BLOCK_MAX && rate.time_for(block * 2) <= LASTS_MAX && pays(block) {
        block = block * 2;
    }
    block
}

/// What is begun with.
fn shortest(rate: Rate) -> Bytes {
    rate.power_of_two_in(LASTS_FIRST, BLOCK_MIN, BLOCK_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::DiskIndex;
    use alloc::vec::Vec;
    use disk::Model;
    use units::Lba;

    const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

    fn profiles(models: &[&str]) -> Vec<Profile> {
        models.iter().map(|name| Profile::of(&Model::named(name).unwrap())).collect()
    }

    /// A volume over the whole of these disks.
    fn shares(profiles: &[Profile]) -> Vec<Share> {
        let share = |(index, profile): (u16, &Profile)| Share {
            disk: DiskIndex(index),
            gap: profiles.len() as u64,
            range: Lba::new(0)..Lba::containing(profile.capacity()),
        };
        (0..).zip(profiles).map(share).collect()
    }

    fn on(models: &[&str], rate: u64, direction: Direction) -> Bytes {
        let profiles = profiles(models);
        let of = |share: &Share| &profiles[share.disk.as_usize()];
        chosen(Rate::per_second(rate), direction, &shares(&profiles), of)
    }

    fn rates() -> impl Iterator<Item = u64> {
        [0, 1].into_iter().chain((3..40).map(|power| 3u64.pow(power / 2) << (power % 2)))
    }

    #[test]
    fn a_slow_stream_on_a_hard_disk_has_larger_blocks_and_less_of_the_disk() {
        for model in Model::names().filter(|name| Model::named(name).unwrap().is_hard_disk()) {
            for direction in BOTH {
                let block = on(&[model], 100_000, direction);
                assert_eq!(block, Bytes::kib(128), "{model}: lasts 1.3 s");
                let (profiles, rate) = (profiles(&[model]), Rate::per_second(100_000));
                let used = |block| {
                    let range = shares(&profiles).remove(0).range;
                    let cost = profiles[0].worst(range, block, direction);
                    crate::admission::costs::ppm(cost, rate.time_for(block))
                };
                let (now, before) = (used(block), used(shortest(rate)));
                assert!(now * 2 < before, "{model}: {now} ppm of the disk, not {before}");
            }
        }
    }

    #[test]
    fn where_nothing_moves_but_bytes_a_block_lasts_a_quarter_to_half_a_second() {
        for (model, rate) in
            ["ssd-sata", "ssd-nvme"].iter().flat_map(|m| rates().map(move |r| (m, r)))
        {
            for direction in BOTH {
                let (block, rate) = (on(&[model], rate, direction), Rate::per_second(rate));
                let lasts = rate.time_for(block).as_millis();
                if rate.get() < 8 << 10 {
                    assert_eq!(block, BLOCK_MIN, "{model}: {rate}");
                } else if rate.get() >= 4 << 20 {
                    assert_eq!(block, BLOCK_MAX, "{model}: {rate}");
                } else {
                    assert!((250..=500).contains(&lasts), "{model}: {rate}: {lasts} ms");
                }
            }
        }
    }

    #[test]
    fn whatever_the_disk_a_block_is_within_its_bounds_and_grows_with_the_rate() {
        for (model, direction) in Model::names().flat_map(|m| BOTH.map(|way| (m, way))) {
            let mut before = BLOCK_MIN;
            for rate in rates() {
                let block = on(&[model], rate, direction);
                assert!(block.get().is_power_of_two(), "{model}: {block}");
                assert!((before..=BLOCK_MAX).contains(&block), "{model}: {rate}: {block}");
                let lasts = Rate::per_second(rate).time_for(block);
                assert!(lasts <= LASTS_MAX || block == BLOCK_MIN, "{model}: {rate}: {lasts}");
                before = block;
            }
        }
    }

    #[test]
    fn it_stays_where_the_bytes_take_longer_than_the_heads() {
        // The inner tracks of the other give twenty times the bytes a second.
        assert_eq!(on(&["quantum-atlas-ii"], 1_000_000, Direction::Read), Bytes::kib(256));
        assert_eq!(on(&["hdd-7200-20tb"], 1_000_000, Direction::Read), Bytes::MIB);
    }

    #[test]
    fn one_disk_with_heads_is_enough() {
        let mixed = ["ssd-nvme", "laptop-4200", "ssd-nvme"];
        assert_eq!(on(&mixed, 100_000, Direction::Write), Bytes::kib(128));
        assert_eq!(on(&["ssd-nvme", "ssd-sata"], 100_000, Direction::Write), Bytes::kib(32));
    }
}
