//! When a task that joins begins, so that the work of tasks with equal periods does
//! not come all at once.
//!
//! Tasks whose periods have a common measure `g` keep the distance of their releases
//! modulo `g` for as long as both live. One turn of the new task's period is cut into
//! slots; each task puts its share of the disk into the slots that its work keeps
//! falling in, and every slot repels the new task as an electric charge would, by
//! the square of the distance. The new task begins where that is least, at once where
//! nothing is gained by waiting. Tasks whose measure is smaller than a slot visit all
//! phases in time and say nothing.
//!
//! A first release that is later than it could be takes nothing from anybody: all
//! that the tasks do from then on was allowed before. So no analysis knows of this.
//!
//! Cost: O(n) in tasks, each a few divisions, and the square of the slots.

use crate::slack::Live;
use crate::task::Task;
use units::{Duration, Instant};

/// Into how many parts a period is cut: as fine as a large disk's longest command in a
/// common period, and coarse enough to be quick.
const SLOTS: usize = 64;

/// A rest of a division that is a smaller part than this of the period is none: the
/// phases move by a slot in hours.
const AS_GOOD_AS_NONE: u64 = 1 << 20;

/// Shares in one slot, in units of 2^-30 of the disk.
type Slots = [u64; SLOTS];

/// How long after `now` `task` had best begin: less than its period, not more than
/// `patience`.
pub(crate) fn stagger(live: &[Live], task: &Task, now: Instant, patience: Duration) -> Duration {
    if patience.is_zero() {
        return Duration::ZERO;
    }
    let period = task.period.as_nanos();
    let shares = shares(live, task, now.as_nanos());
    let last = (patience.as_nanos().min(period - 1)) / slot_width(period);
    let slots = 0..SLOTS.min(last as usize + 1);
    let best = slots.min_by_key(|&slot| (repulsion(&shares, slot), slot)).unwrap_or(0);
    Duration::from_nanos(slot_width(period) * best as u64).min(patience)
}

/// Rounded up, so that all slots together are no shorter than the period.
fn slot_width(period: u64) -> u64 {
    period.div_ceil(SLOTS as u64)
}

/// Where the work of the others falls in a turn that begins at `now`, seen from the
/// middle of the new task's own work.
fn shares(live: &[Live], task: &Task, now: u64) -> Slots {
    let (period, width) = (task.period.as_nanos(), slot_width(task.period.as_nanos()));
    let mut slots = [0; SLOTS];
    for other in live {
        let measure = common_measure(period, other.period.get());
        if measure <= width {
            continue;
        }
        // The middle of its work, after the beginning of ours and half of it.
        let middle = (other.release_next + other.cost / 2).rem_euclid(measure);
        let ours = (now + task.cost.as_nanos() / 2).rem_euclid(measure);
        let mut phase = (middle + measure - ours) % measure;
        let share = other.share_30() / (period / measure).max(1);
        while phase < period {
            slots[(phase / width) as usize] += share;
            phase += measure;
        }
    }
    slots
}

/// The largest span that both periods are multiples of, or as good as; some span below
/// a slot where that is smaller.
fn common_measure(period: u64, other: u64) -> u64 {
    let (mut large, mut small) = (period.max(other), period.min(other));
    while small > period / AS_GOOD_AS_NONE && large >= slot_width(period) {
        let rest = large % small;
        // A little less than a multiple is as good as one.
        (large, small) = (small, rest.min(small - rest));
    }
    large.min(period)
}

/// How strongly the work in the slots keeps others from beginning at `slot`.
fn repulsion(shares: &Slots, slot: usize) -> u64 {
    let each = shares.iter().enumerate().map(|(at, share)| {
        let apart = at.abs_diff(slot);
        let apart = apart.min(SLOTS - apart) as u64 + 1;
        (share << 16) / (apart * apart)
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Joins one after the other at the same instant, as far apart as they can be.
    fn join_all(tasks: &[(u64, u64)], patience: Duration) -> Vec<u64> {
        let now = Instant::EPOCH + ms(7);
        let mut live: Vec<Live> = Vec::new();
        for (index, &(cost, period)) in tasks.iter().enumerate() {
            let task = Task::new(ms(period), ms(period), ms(cost));
            let delay = stagger(&live, &task, now, patience);
            assert!(delay < task.period && delay <= patience);
            live.push(Live::new(&task, index as u32, now + delay));
        }
        live.iter().map(|live| (live.release_next - now.as_nanos()) / 1_000_000).collect()
    }

    #[test]
    fn equal_periods_are_halved_and_halved_again() {
        assert_eq!(join_all(&[(10, 640); 4], Duration::MAX), [0, 320, 160, 480]);
        let mut many = join_all(&[(1, 640); 64], Duration::MAX);
        many.sort_unstable();
        assert!(many.windows(2).all(|pair| pair[1] - pair[0] == 10), "{many:?}");
    }

    #[test]
    fn the_first_begins_at_once_and_so_does_who_has_nothing_to_gain() {
        // 640 and 641 have a common measure of 1: all distances come up in time.
        assert_eq!(join_all(&[(10, 640), (10, 641)], Duration::MAX), [0, 0]);
    }

    #[test]
    fn a_period_and_its_double_keep_apart() {
        // The short one comes twice in a turn of the long one.
        assert_eq!(join_all(&[(10, 320), (10, 640)], Duration::MAX), [0, 160]);
        assert_eq!(join_all(&[(10, 640), (10, 320)], Duration::MAX), [0, 160]);
        // With a common measure of a third, and with one nanosecond too much.
        let apart = join_all(&[(10, 400), (10, 600)], Duration::MAX)[1];
        assert!((90..=110).contains(&(apart % 200)), "{apart}");
        assert_eq!(common_measure(640_000_001, 320_000_000), 320_000_000);
        assert_eq!(common_measure(639_999_999, 1_280_000_000), 639_999_999);
    }

    #[test]
    fn nobody_waits_longer_than_it_can_bear() {
        assert_eq!(join_all(&[(10, 640); 3], Duration::ZERO), [0, 0, 0]);
        assert_eq!(join_all(&[(10, 640); 2], ms(100)), [0, 100]);
    }

    #[test]
    fn a_large_request_keeps_more_room_than_a_small_one() {
        // The middle between the end of the long work and its next beginning.
        assert_eq!(join_all(&[(320, 640), (1, 640)], Duration::MAX), [0, 470]);
    }
}
