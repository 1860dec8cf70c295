//! How many requests each disk gets in each 20 seconds of a day.
//!
//! The totals, the highest hours and the highest minutes are those that the thesis
//! prints, where it prints them; between them the load is uneven as such loads are: a
//! few stretches of some minutes hold most of it. What the thesis prints only of all
//! disks together (the number of requests in the trace) is shared out as on the
//! busiest day, less on Saturdays and Sundays.
//!
//! Invariants: the slots of a day sum up to its total; no minute and no hour exceeds
//! the highest that is printed of its disk.

use super::figures::{
    BUSIEST_DAY, BUSIEST_LOADS, DAYS, HIGHEST_HOURS, HIGHEST_MINUTES, HOURS, Printed, REQUESTS,
    WINDOW_LOADS,
};
use crate::Random;
use std::ops::Range;

/// Seconds of a slot: the longest time that parts the day, the minute and the printed
/// window of 1300 s evenly.
pub(super) const SLOT_SECONDS: u64 = 20;
/// Slots of a minute, an hour and a day.
pub(super) const MINUTE: usize = 3;
const HOUR: usize = 60 * MINUTE;
pub(super) const DAY: usize = 24 * HOUR;
/// The window of table 7.1 within its day.
pub(super) const WINDOW: Range<usize> = 16 * HOUR + 48 * MINUTE..17 * HOUR + 9 * MINUTE + 2;

/// How uneven the load is: the weight of a stretch, and how many of a thousand have it.
const WEIGHTS: [(u64, u64); 6] = [(1, 300), (4, 300), (15, 200), (50, 120), (150, 60), (500, 20)];
/// A stretch of one weight has up to so many slots.
const STRETCH: u64 = 18;

/// Requests of each slot of one day of one disk.
pub(super) fn day(seed: u64, disk: u32, day: u32) -> Vec<u64> {
    let mut random = Random::new(super::mix(seed, [u64::from(disk), u64::from(day), 1]));
    let (limit, disk) = (limit(disk, day), disk as usize);
    let mut plan = Plan {
        slots: vec![0; DAY],
        hours: [0; 24],
        limit,
        hour_limit: HIGHEST_HOURS[disk].requests,
        open: vec![true; DAY],
    };
    let mut left = total(seed, disk, day);
    if day == BUSIEST_DAY {
        left -= plan.window(WINDOW_LOADS[disk], &mut random);
    }
    let minute = HIGHEST_MINUTES[disk];
    let of_hour = |hour: u32| hour as usize * HOUR..(hour as usize + 1) * HOUR;
    let mut highest = None;
    if minute.day == day {
        let start = minute.hour as usize * HOUR + minute.minute as usize * MINUTE;
        highest = Some((start, minute.requests));
    } else if day == BUSIEST_DAY {
        // In the hour whose load is known, as far as one is, and else at the usual time.
        let known = HIGHEST_HOURS[disk];
        let hour = if known.day == day { known.hour } else { 10 + random.below(4) as u32 };
        let start = of_hour(hour).start + random.below(40) as usize * MINUTE;
        highest = Some((start, BUSIEST_LOADS[disk].peak));
    }
    if let Some((start, requests)) = highest {
        left -= plan.fill(start..start + MINUTE, requests, &mut random);
    }
    if HIGHEST_HOURS[disk].day == day {
        let hour = of_hour(HIGHEST_HOURS[disk].hour);
        let there: u64 = plan.slots[hour.clone()].iter().sum();
        left -= plan.fill(hour, HIGHEST_HOURS[disk].requests - there, &mut random);
    }
    plan.hour_limit = plan.hour_limit * 19 / 20;
    plan.fill(0..DAY, left, &mut random);
    plan.slots
}

/// The most requests of an ordinary minute.
fn limit(disk: u32, day: u32) -> u64 {
    let disk = disk as usize;
    let highest = match day {
        BUSIEST_DAY => BUSIEST_LOADS[disk].peak,
        _ => HIGHEST_MINUTES[disk].requests,
    };
    highest * 3 / 4
}

/// Requests of one day of one disk.
fn total(seed: u64, disk: usize, day: u32) -> u64 {
    if day == BUSIEST_DAY {
        return BUSIEST_LOADS[disk].requests;
    }
    // What is known of single hours and minutes comes on top of an ordinary share.
    let known = |disk: usize, day: u32| {
        let (hour, minute) = (HIGHEST_HOURS[disk], HIGHEST_MINUTES[disk]);
        let within = hour.day == minute.day && hour.hour == minute.hour;
        let of_hour = if hour.day == day { hour.requests } else { 0 };
        let of_minute = if minute.day == day && !within { minute.requests } else { 0 };
        of_hour + of_minute
    };
    let days = || (0..DAYS).filter(|&day| day != BUSIEST_DAY);
    let busiest: u64 = BUSIEST_LOADS.iter().map(|it| it.requests).sum();
    let all_known: u64 = (0..8).flat_map(|disk| days().map(move |day| known(disk, day))).sum();
    let ordinary = REQUESTS - busiest - all_known;
    let weight = |day: u32| {
        let mut random = Random::new(super::mix(seed, [99, u64::from(day), 2]));
        // Day 0 is a Saturday.
        random.between(60, 140) * if day % 7 < 2 { 4 } else { 10 }
    };
    let of_all: u64 = days().map(weight).sum();
    // Parts of a sum, rounded so that they add up to it.
    let share = |from: u64, to: u64, of: u64, sum: u64| {
        let cut = |at: u64| (u128::from(sum) * u128::from(at) / u128::from(of)) as u64;
        cut(to) - cut(from)
    };
    let disks: u64 = BUSIEST_LOADS[..disk].iter().map(|it| it.requests).sum();
    let of_disk = share(disks, disks + BUSIEST_LOADS[disk].requests, busiest, ordinary);
    let before: u64 = days().take_while(|&it| it < day).map(weight).sum();
    share(before, before + weight(day), of_all, of_disk) + known(disk, day)
}

struct Plan {
    slots: Vec<u64>,
    /// What they hold, hour by hour.
    hours: [u64; 24],
    /// The most of a minute.
    limit: u64,
    /// The most of an hour.
    hour_limit: u64,
    /// Slots whose load is not settled.
    open: Vec<bool>,
}

impl Plan {
    /// The window of table 7.1. Where its slots are small, one of them holds as much as
    /// is printed of a second.
    fn window(&mut self, printed: Printed, random: &mut Random) -> u64 {
        let mut left = printed.requests;
        if left < printed.peak * WINDOW.len() as u64 {
            let at = WINDOW.start + random.below(WINDOW.len() as u64) as usize;
            left -= self.fill(at..at + 1, printed.peak, random);
        }
        self.fill(WINDOW, left, random);
        printed.requests
    }

    /// Puts `requests` into the open slots of `range` and settles them.
    fn fill(&mut self, range: Range<usize>, requests: u64, random: &mut Random) -> u64 {
        let mut left = requests;
        if range.len() == MINUTE {
            // One minute is filled evenly whatever the limit.
            range.clone().enumerate().for_each(|(n, at)| {
                self.slots[at] = left / (MINUTE - n) as u64;
                self.hours[at / HOUR] += self.slots[at];
                left -= self.slots[at];
            });
        } else {
            let weights = self.weights(range.clone(), requests, random);
            while left > 0 {
                let put = self.round(&range, &weights, left);
                assert!(put > 0, "{left} requests have no room in {range:?}");
                left -= put;
            }
        }
        self.open[range].fill(false);
        requests
    }

    fn weights(&self, range: Range<usize>, requests: u64, random: &mut Random) -> Vec<u64> {
        let (mut weight, mut slots) = (0, 0);
        // A disk that is busy all the time has no room for stretches.
        let open = range.clone().filter(|&at| self.open[at]).count() as u64;
        let is_busy = requests * 2 > self.limit / MINUTE as u64 * open;
        let one = |at: usize| {
            if slots == 0 {
                (weight, slots) = (super::class(&WEIGHTS, random).0, random.between(1, STRETCH));
            }
            if is_busy {
                weight = random.between(80, 120);
            }
            slots -= 1;
            if self.open[at] { weight * HOURS[at / HOUR] } else { 0 }
        };
        range.map(one).collect()
    }

    /// Shares out what is left by weight among the slots that have room.
    fn round(&mut self, range: &Range<usize>, weights: &[u64], left: u64) -> u64 {
        let rooms: Vec<u64> = range.clone().map(|at| self.room(at)).collect();
        let open = || weights.iter().zip(&rooms).filter(|(_, room)| **room > 0);
        let sum: u64 = open().map(|(weight, _)| weight).sum();
        let (mut put, mut cursor, mut cut) = (0, 0, 0);
        for ((at, weight), room) in range.clone().zip(weights).zip(&rooms) {
            if *room > 0 && *weight > 0 {
                cursor += weight;
                let next = (u128::from(left) * u128::from(cursor) / u128::from(sum)) as u64;
                let here = (next - cut).min(self.room(at));
                cut = next;
                self.slots[at] += here;
                self.hours[at / HOUR] += here;
                put += here;
            }
        }
        put
    }

    fn room(&self, at: usize) -> u64 {
        let of_slot = (self.limit / MINUTE as u64).saturating_sub(self.slots[at]);
        of_slot.min(self.hour_limit.saturating_sub(self.hours[at / HOUR]))
    }
}
