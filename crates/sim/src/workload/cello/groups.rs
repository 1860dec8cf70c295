//! What one disk is asked for in one slot: groups of requests that belong together.
//!
//! A *chain* is a program that asks for one thing after the other: the next request
//! comes when the one before is done, about 20 ms later. A *flush* is the system
//! writing out what it had put off: many requests nearly at once. Between groups the
//! disk is idle for as long as the load allows.

use super::super::Demand;
use super::class;
use super::plan::SLOT_SECONDS;
use crate::Random;
use units::{Access, Bytes, Direction, Duration, Lba, SECTOR};

/// How a load is made up; the figures were found by fitting, see `tests/cello.rs`.
/// Of a hundred groups so many are flushes.
const FLUSHES: u64 = 10;
/// Sizes of flushes: the largest of a class, and how many of a thousand are of it.
const FLUSH_SIZES: [(u64, u64); 7] =
    [(4, 450), (12, 300), (30, 160), (80, 58), (200, 18), (500, 7), (1000, 7)];
/// Of a hundred requests of a flush so many come within a millisecond of the one before.
const AT_ONCE: u64 = 60;
/// The others come after up to this.
const SPREAD: Duration = Duration::from_millis(9);
/// Requests of a chain, on average.
const CHAIN: u64 = 5;
/// Of a hundred chains so many read; the others write for somebody who waits.
const READERS: u64 = 57;
/// From one request of a chain to the next: this, twice up to [`CHAIN_SPREAD`], and a
/// rare longer wait.
const CHAIN_GAP: Duration = Duration::from_millis(10);
const CHAIN_SPREAD: Duration = Duration::from_millis(8);
const CHAIN_WAIT: Duration = Duration::from_millis(7);
/// A drive of that time served a request in about this, so that the disk is busy for
/// so long after a flush, and programs that read wait for it.
const DRAIN: Duration = Duration::from_millis(22);
/// Of a thousand requests that follow another of their group so many continue it.
const SEQUENTIAL_READ: u64 = 100;
const SEQUENTIAL_WRITE: u64 = 82;
/// A group stays within so many sectors.
const NEAR: u64 = 32 * 2048;

/// Sizes in KiB, and how many of a thousand requests have them: mostly the file
/// system's block of 8 KiB, some of its fragments, few larger ones.
const SIZES: [(u64, u64); 7] = [(8, 820), (1, 50), (2, 60), (4, 40), (16, 15), (24, 10), (56, 5)];

/// A group before it has its place in time.
struct Group {
    flush: bool,
    /// It begins with a second, so that it counts in one.
    whole_second: bool,
    count: u64,
    span: Duration,
    random: Random,
}

/// The times of a group's requests, from its begin on.
fn gaps(flush: bool, random: &mut Random) -> Duration {
    if !flush {
        let spread = random.span(CHAIN_SPREAD) + random.span(CHAIN_SPREAD);
        return CHAIN_GAP + spread + random.exponential(CHAIN_WAIT);
    }
    if random.chance(AT_ONCE) {
        random.span(Duration::from_micros(900))
    } else {
        Duration::from_millis(1) + random.span(SPREAD)
    }
}

impl Group {
    fn new(flush: bool, count: u64, mut random: Random) -> Self {
        // The gaps are drawn twice, so that no list of them is kept.
        let mut again = random.clone();
        let times: Duration = (1..count).map(|_| gaps(flush, &mut again)).sum();
        let span = if flush { times.max(DRAIN * count) } else { times };
        random.bits();
        Self { flush, whole_second: false, count, span, random }
    }
}

/// The disk that groups are laid out on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground {
    pub disk: u32,
    pub sectors: u64,
}

/// The requests of one slot, in the order of their times, which count from the slot's
/// begin. `burst` is a flush that the slot is known to hold, and no other of its
/// flushes is larger than half of it.
pub(super) fn slot(
    count: u64,
    burst: Option<u64>,
    ground: Ground,
    mut random: Random,
) -> Vec<Demand> {
    let mut groups = Vec::new();
    let mut left = count;
    if let Some(burst) = burst {
        let group = Group::new(true, burst.min(left), Random::new(random.bits()));
        groups.push(Group { whole_second: true, ..group });
        left -= burst.min(left);
    }
    while left > 0 {
        let flush = random.chance(FLUSHES);
        let size = if flush { flush_size(&mut random) } else { chain_length(&mut random) };
        let most = burst.map_or(left, |burst| (burst / 2).clamp(1, left));
        let size = size.min(most).min(left);
        left -= size;
        groups.push(Group::new(flush, size, Random::new(random.bits())));
    }
    let mut demands = Vec::with_capacity(count as usize);
    lay_out(groups, ground, &mut random, &mut demands);
    demands.sort_by_key(|demand| demand.at);
    demands
}

fn flush_size(random: &mut Random) -> u64 {
    let (most, _) = class(&FLUSH_SIZES, random);
    random.between(most / 3 + 1, most)
}

/// Each request is the last with the same chance.
fn chain_length(random: &mut Random) -> u64 {
    let mut length = 1;
    while random.below(CHAIN) > 0 && length < 200 {
        length += 1;
    }
    length
}

/// Gives groups their places in the slot: one after the other in a random order, with
/// the time that is left shared out between them. Where no time is left they overlap.
fn lay_out(mut groups: Vec<Group>, ground: Ground, random: &mut Random, out: &mut Vec<Demand>) {
    for at in (1..groups.len()).rev() {
        groups.swap(at, random.below(at as u64 + 1) as usize);
    }
    let slot = Duration::from_secs(SLOT_SECONDS);
    let spans: Duration = groups.iter().map(|it| it.span).sum();
    let idle = slot.saturating_sub(spans);
    let mut breaks: Vec<Duration> = groups.iter().map(|_| random.span(idle)).collect();
    breaks.sort();
    let mut before = Duration::ZERO;
    for (group, pause) in groups.into_iter().zip(breaks) {
        let start = before + pause;
        before += group.span;
        let start = if spans > slot {
            let scaled = u128::from(start.as_nanos()) * u128::from(slot.as_nanos());
            Duration::from_nanos((scaled / u128::from(spans.as_nanos())) as u64)
        } else {
            start
        };
        let start =
            if group.whole_second { Duration::from_secs(start.as_millis() / 1000) } else { start };
        requests(group, start, ground, out);
    }
}

fn requests(group: Group, start: Duration, ground: Ground, out: &mut Vec<Demand>) {
    let Group { flush, count, mut random, .. } = group;
    let reads = !flush && random.chance(READERS);
    let direction = if reads { Direction::Read } else { Direction::Write };
    let sequential = if reads { SEQUENTIAL_READ } else { SEQUENTIAL_WRITE };
    let home = home(ground.sectors, &mut random);
    let mut at = start;
    let mut end: Option<Lba> = None;
    for index in 0..count {
        if index > 0 {
            at += gaps(flush, &mut random);
        }
        let len = Bytes::kib(class(&SIZES, &mut random).0);
        let sectors = len.div_ceil(SECTOR);
        let last = ground.sectors - sectors;
        let lba = match end {
            Some(end) if random.below(1000) < sequential && end.get() <= last => end,
            _ => Lba::new(((home + random.below(NEAR)) / 2 * 2).min(last)),
        };
        let access = Access { lba, len, direction };
        end = Some(access.end());
        let last = Duration::from_secs(SLOT_SECONDS) - Duration::from_nanos(1);
        out.push(Demand { at: at.min(last), disk: ground.disk, access, synchronous: !flush });
    }
}

/// Where a group lies: mostly in the tenth of the disk that is used most.
fn home(sectors: u64, random: &mut Random) -> u64 {
    if random.chance(60) { random.below(sectors / 10) + sectors / 2 } else { random.below(sectors) }
}
