//! The block of a stream whose program names none.
//!
//! A request takes the time until the heads are in place, and the time for its bytes. While
//! the first is most of it, twice the block costs little more, half as often: the same
//! stream has less of the disk. Where the second is most of it, as on a disk without heads,
//! a larger block gains nothing, and costs memory and time until playout begins. So
//! what is chosen begins short, and grows while that pays on one of the volume's disks, by
//! the same bounds as admission goes by. Beyond an extent it grows where that pays at all, is
//! admitted, and takes no large part of the memory.

use crate::admission::contract::{self, Seen, Share};
use crate::api::{Contract, DiskIndex, Mode};
use crate::limits::{BLOCK_MIN, WINDOW_DIVISOR};
use disk::{Kind, Profile};
use store::{EXTENT, RUN_MAX};
use units::{Bytes, Direction, Duration, Lba, Rate};

/// To begin with, a block lasts no longer, and more than half as long.
const LASTS_FIRST: Duration = Duration::from_millis(500);
/// However much it pays, a block lasts no longer: the promise is that the whole contract holds two
/// and a half blocks' time after somebody asked for it, at the latest. (The first bytes do not
/// wait for that: `streams/early.rs`.) 2 MiB last so long at 1 MB/s and less.
const LASTS_MAX: Duration = Duration::from_millis(2_500);
/// A block of twice the size pays while a request for it takes less than this many times
/// as long, as a fraction: the stream has less than three quarters of what it had of the
/// disk.
const PAYS_BELOW: (u64, u64) = (3, 2);
/// The same where heads move, and for blocks that are longer than an extent: the stream has less
/// than 92 % of what it had. (From 1 to 2 MiB it is 91 % on the Atlas-II, the slowest of the models
/// on its inner tracks.)
const LONG_PAYS_BELOW: (u64, u64) = (46, 25);
/// No longer one is chosen: it fits volumes of each kind, and whoever wants one that takes twice the memory, and
/// twice the time until it holds, names it.
const CHOSEN_MAX: Bytes = RUN_MAX;
/// What a volume over several disks rotates by where nobody says so is no longer: slow streams
/// in shorter blocks have windows that grow with it.
const RUN_CHOSEN_MAX: Bytes = Bytes::mib(4);
/// The volume has so many of its runs on each disk at least.
const RUNS_LEAST: u64 = 16;

/// Who wants to know.
pub(crate) struct Asked<'a> {
    pub rate: Rate,
    pub mode: Mode,
    /// Of the volume.
    pub shares: &'a [Share],
    /// The lateness of the host, as far as windows go.
    pub late: Duration,
    /// What is free for windows.
    pub memory: Bytes,
}

/// The block for such a stream.
pub(crate) fn chosen<'a>(asked: &Asked<'_>, seen: impl Fn(DiskIndex) -> Seen<'a>) -> Bytes {
    let &Asked { rate, mode, shares, .. } = asked;
    if let Some(block) = chosen_for_sweeps(asked, &seen) {
        return block;
    }
    let pays = |block: Bytes| {
        shares.iter().any(|share| {
            let has_heads = !matches!(seen(share.disk).profile.kind, Kind::Linear(_));
            let is_long = has_heads || block >= EXTENT;
            let (more, than) = if is_long { LONG_PAYS_BELOW } else { PAYS_BELOW };
            let cost = |len| -> Duration {
                let (seen, ways) = (seen(share.disk), mode.directions().iter());
                let between = seen.set.gap().saturating_mul(share.parts_held(len) - 1);
                ways.map(|&way| seen.cost(len, share, way).saturating_add(between)).sum()
            };
            cost(block * 2) * than < cost(block) * more
        })
    };
    let mut block = shortest(rate);
    while block < CHOSEN_MAX && rate.time_for(block * 2) <= LASTS_MAX && pays(block) {
        if block >= EXTENT && !may_double(asked, block, &seen) {
            break;
        }
        block = block * 2;
    }
    block
}

/// The run by which a volume over these disks rotates where nobody says so: the longest block that
/// pays on all of them, since a block lies on one disk. On one disk, on flash, and on disks that share a bus, an extent.
pub(crate) fn run_chosen(disks: &[(&Profile, Bytes)], size: Bytes) -> Bytes {
    let pays = |run: Bytes, (profile, capacity): &(&Profile, Bytes)| {
        let range = Lba::new(0)..Lba::containing(*capacity);
        let cost = |len| profile.worst(range.clone(), len, Direction::Read);
        let (more, than) = LONG_PAYS_BELOW;
        let may = profile.bus.is_none() && !matches!(profile.kind, Kind::Linear(_));
        may && cost(run * 2) * than < cost(run) * more
    };
    let mut run = EXTENT;
    // Of a short volume each disk shall have some runs all the same.
    let round = |run: Bytes| run.saturating_mul(disks.len() as u64 * RUNS_LEAST);
    while disks.len() > 1
        && run < RUN_CHOSEN_MAX
        && round(run * 2) <= size
        && disks.iter().all(|disk| pays(run, disk))
    {
        run = run * 2;
    }
    run
}

/// Where disks serve in sweeps: the block whose requests take the least of a cycle. It grows
/// from a short one while it takes less than nineteen twentieths of what it did.
fn chosen_for_sweeps<'a>(asked: &Asked<'_>, seen: impl Fn(DiskIndex) -> Seen<'a>) -> Option<Bytes> {
    let &Asked { rate, mode, shares, late, memory } = asked;
    let window = |block: Bytes| {
        let contract = Contract { rate, block, burst: Bytes::ZERO };
        block.saturating_mul(contract::window_blocks(&contract, shares, mode, late))
    };
    // Most of it is what passes in two cycles, whatever the block.
    let most = (memory / WINDOW_DIVISOR).max(window(EXTENT).saturating_mul(3) / 2);
    let work = |block: Bytes| -> Option<Duration> {
        let contract = Contract { rate, block, burst: Bytes::ZERO };
        contract::check_block(&contract, shares, |disk| seen(disk).profile).ok()?;
        if block > EXTENT && window(block) > most {
            return None;
        }
        let on_disk = |share: &Share| -> Option<Duration> {
            let disk = seen(share.disk);
            let cycle = disk.set.sweep_rule()?.cycle;
            let mut each = mode.directions().iter().map(|&way| {
                let task = disk.task(&contract, share, way).ok()?;
                let times = cycle.as_nanos().div_ceil(task.period.as_nanos().max(1));
                Some(task.cost.saturating_mul(times))
            });
            each.try_fold(Duration::ZERO, |sum, one| Some(sum.saturating_add(one?)))
        };
        shares.iter().map(on_disk).try_fold(Duration::ZERO, |most, one| Some(most.max(one?)))
    };
    shares.iter().find(|share| !share.response.is_zero())?;
    let mut best = (BLOCK_MIN, work(BLOCK_MIN));
    let mut block = BLOCK_MIN * 2;
    while block <= CHOSEN_MAX {
        let takes = work(block);
        let pays = match (takes, best.1) {
            (Some(takes), Some(least)) => takes * 20 < least * 19,
            (Some(_), None) => true,
            (None, _) => false,
        };
        best = if pays { (block, takes) } else { best };
        block = block * 2;
    }
    Some(best.0)
}

/// Whether a block of twice this length is possible on the volume, within the memory that
/// there is, and would be admitted now where this one would: others wait for all of a
/// block, so that a shorter one may fit where a longer one does not.
fn may_double<'a>(asked: &Asked<'_>, block: Bytes, seen: impl Fn(DiskIndex) -> Seen<'a>) -> bool {
    let &Asked { rate, mode, shares, late, memory } = asked;
    let in_blocks = |block| Contract { rate, block, burst: Bytes::ZERO };
    let doubled = in_blocks(block * 2);
    let window =
        doubled.block.saturating_mul(contract::window_blocks(&doubled, shares, mode, late));
    let fits = |contract| contract::fits(&seen, contract, shares, mode).is_ok();
    contract::check_block(&doubled, shares, |disk| seen(disk).profile).is_ok()
        && window <= memory / WINDOW_DIVISOR
        && (fits(&doubled) || !fits(&in_blocks(block)))
}

/// What is begun with.
fn shortest(rate: Rate) -> Bytes {
    rate.power_of_two_in(LASTS_FIRST, BLOCK_MIN, EXTENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::DiskIndex;
    use alloc::vec::Vec;
    use disk::Model;
    use sched::TaskSet;

    const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

    fn profiles(models: &[&str]) -> Vec<Profile> {
        models.iter().map(|name| Profile::of(&Model::named(name).unwrap())).collect()
    }

    /// A volume over the whole of these disks.
    fn shares(profiles: &[Profile]) -> Vec<Share> {
        let share = |(index, profile): (u16, &Profile)| Share {
            disk: DiskIndex(index),
            gap: profiles.len() as u64,
            run: RUN_MAX,
            is_ring: false,
            members: 0,
            parts: Share::WHOLE,
            reach: Share::ANYWHERE,
            response: Duration::ZERO,
            miss: None,
            range: Lba::new(0)..Lba::containing(profile.capacity()),
        };
        (0..).zip(profiles).map(share).collect()
    }

    fn on(models: &[&str], rate: u64, direction: Direction) -> Bytes {
        let profiles = profiles(models);
        let sets: Vec<TaskSet> = models.iter().map(|_| TaskSet::new(Duration::ZERO)).collect();
        let seen =
            |disk: DiskIndex| Seen::in_time(&profiles[disk.as_usize()], &sets[disk.as_usize()]);
        let (rate, late, memory) = (Rate::per_second(rate), Duration::ZERO, Bytes::GIB);
        let mode = match direction {
            Direction::Read => Mode::Read,
            Direction::Write => Mode::Write,
        };
        chosen(&Asked { rate, mode, shares: &shares(&profiles), late, memory }, seen)
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
                    assert_eq!(block, EXTENT, "{model}: {rate}");
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
                assert!((before..=CHOSEN_MAX).contains(&block), "{model}: {rate}: {block}");
                let lasts = Rate::per_second(rate).time_for(block);
                assert!(lasts <= LASTS_MAX || block == BLOCK_MIN, "{model}: {rate}: {lasts}");
                before = block;
            }
        }
    }

    #[test]
    fn it_stays_where_the_bytes_take_longer_than_the_heads() {
        // The inner tracks of the other give twenty times the bytes a second.
        assert_eq!(on(&["quantum-atlas-ii"], 4_000_000, Direction::Read), Bytes::mib(2));
        assert_eq!(on(&["hdd-7200-20tb"], 200_000, Direction::Read), Bytes::kib(256));
    }

    #[test]
    fn where_the_heads_are_most_of_it_a_block_is_longer_than_an_extent() {
        for (rate, mib) in [(800_000, 1), (1_000_000, 2), (2_000_000, 4), (10_000_000, 16)] {
            let block = on(&["hdd-7200-20tb"], rate, Direction::Read);
            assert_eq!(block, Bytes::mib(mib), "{rate}");
        }
    }

    #[test]
    fn a_block_whose_parts_lie_near_each_other_is_longer_than_one_whose_parts_lie_anywhere() {
        let profiles = profiles(&["hdd-7200-20tb"]);
        let at = |reach, gap| {
            let set = TaskSet::new(Duration::ZERO).with_gap(gap);
            let mut shares = shares(&profiles);
            (shares[0].parts, shares[0].reach) = ([1, 2, 4, 8, 16, 32], [reach; 6]);
            let seen = |_| Seen::in_time(&profiles[0], &set);
            let (rate, late, memory) = (Rate::per_second(2_000_000), Duration::ZERO, Bytes::GIB);
            chosen(&Asked { rate, mode: Mode::Read, shares: &shares, late, memory }, seen)
        };
        let (no, ms) = (Duration::ZERO, Duration::from_millis);
        assert_eq!(at(crate::limits::THIN_REACH, no), Bytes::mib(4));
        assert_eq!(at(crate::limits::THIN_REACH, ms(10)), Bytes::mib(2), "a slow host");
        assert_eq!(at(Bytes::MAX, no), EXTENT);
    }

    #[test]
    fn what_does_not_fit_in_memory_or_on_the_volume_is_not_chosen() {
        let profiles = profiles(&["hdd-7200-20tb", "hdd-7200-20tb"]);
        let set = TaskSet::new(Duration::ZERO);
        let with = |memory, change: &dyn Fn(&mut Share)| {
            let mut shares = shares(&profiles);
            shares.iter_mut().for_each(change);
            let seen = |disk: DiskIndex| Seen::in_time(&profiles[disk.as_usize()], &set);
            let (rate, late) = (Rate::per_second(25_000_000), Duration::ZERO);
            chosen(&Asked { rate, mode: Mode::Read, shares: &shares, late, memory }, seen)
        };
        assert_eq!(with(Bytes::GIB, &|_| {}), RUN_MAX);
        // 11 blocks of 2 MiB are an eighth, and 7 of 4 MiB are more.
        assert_eq!(with(Bytes::mib(176), &|_| {}), Bytes::mib(2));
        assert_eq!(with(Bytes::mib(175), &|_| {}), EXTENT);
        assert_eq!(with(Bytes::GIB, &|share| share.run = Bytes::mib(4)), Bytes::mib(4));
        let extents_apart = [1, 2, 4, 8, 16, 32];
        assert_eq!(with(Bytes::GIB, &|share| share.parts = extents_apart), EXTENT);
    }

    #[test]
    fn in_sweeps_a_block_grows_while_that_pays_and_its_window_is_no_large_part_of_the_memory() {
        let profiles = profiles(&["hdd-7200-20tb"]);
        let rule = sched::SweepRule { cycle: Duration::from_secs(8) };
        let set = TaskSet::new(Duration::ZERO);
        let set = set.with_admission(sched::Admission::Sweeps(rule), 1);
        let with = |memory| {
            let mut shares = shares(&profiles);
            shares[0].response = rule.response();
            let seen = |_| Seen::in_time(&profiles[0], &set);
            let (rate, late) = (Rate::per_second(2_000_000), Duration::ZERO);
            chosen(&Asked { rate, mode: Mode::Read, shares: &shares, late, memory }, seen)
        };
        // A window of 16 MiB blocks is 64 MiB, and what passes in two cycles half of that.
        assert_eq!(with(Bytes::GIB), Bytes::mib(16));
        assert_eq!(with(Bytes::mib(64 * 8)), Bytes::mib(16));
        assert_eq!(with(Bytes::mib(64 * 8 - 1)), Bytes::mib(8));
        assert_eq!(with(Bytes::mib(16)), Bytes::mib(8));
    }

    #[test]
    fn a_volume_over_several_disks_rotates_by_what_pays_on_all_of_them() {
        let run = |models: &[&str]| {
            let profiles = profiles(models);
            let disks: Vec<_> = profiles.iter().map(|one| (one, one.capacity())).collect();
            run_chosen(&disks, Bytes::GIB)
        };
        assert_eq!(run(&["quantum-atlas-ii"; 3]), Bytes::mib(2));
        assert_eq!(run(&["hdd-7200-20tb"; 2]), Bytes::mib(4));
        assert_eq!(run(&["hdd-7200-20tb", "quantum-atlas-ii"]), Bytes::mib(2));
        assert_eq!(run(&["hdd-7200-20tb"]), EXTENT, "one disk");
        assert_eq!(run(&["hdd-7200-20tb", "ssd-sata"]), EXTENT);
        let one = profiles(&["hdd-7200-20tb"]).remove(0);
        let disks = [(&one, one.capacity()); 2];
        for (size, mib) in [(0, 1), (63, 1), (64, 2), (127, 2), (128, 4), (1 << 40, 4)] {
            assert_eq!(run_chosen(&disks, Bytes::mib(size)), Bytes::mib(mib), "{size} MiB");
        }
    }

    #[test]
    fn one_disk_with_heads_is_enough() {
        let mixed = ["ssd-nvme", "laptop-4200", "ssd-nvme"];
        assert_eq!(on(&mixed, 100_000, Direction::Write), Bytes::kib(128));
        assert_eq!(on(&["ssd-nvme", "ssd-sata"], 100_000, Direction::Write), Bytes::kib(32));
    }
}
