//! From a contract to tasks on disks, and to the window that makes them suffice.
//!
//! A stream of rate r in blocks of B needs a block every T = B / r. Where its
//! volume's extents come back to a disk every k-th extent, that disk sees one
//! block every k T (scheduling.md, section 1), so the task there is (k T, k T,
//! worst cost). A run of m blocks (a volume rotates by runs of one extent or of several) comes
//! as m releases in a row; spaced k T apart they run ahead of need by at most
//! (m - 1)(k - 1) T, which the window has to hold: `k + 1 + (m - 1)(k - 1)` blocks, plus what the program may touch at
//! once, plus what passes while the host is late.
//!
//! What it may touch at once is its burst c, at least a block: a bucket of c bytes that
//! fills at r, so that a program that fell behind may catch up. Why that many blocks
//! suffice on one disk: a block is asked for when another has been used up, is released
//! T after the one before it or at once, and is there T later. Let s be when the first
//! of a run of requests without a pause was asked for, and n blocks be used up before
//! it. By t at least n + floor((t - s) / T) were brought, and the program wants at most
//! n + 1 + c/B + ceil((t - s) / T). The difference is 2 + c/B at the most. (With a block
//! less a program that lags by part of a block and catches up finds its window empty.)
//!
//! This holds from when the whole window is there and a further request could be
//! released. So playout begins one window after the stream's first request may be
//! released: on opening, or up to half a block's time later, where that keeps it apart
//! from other streams (`Schedule::join_within`). A writer's first block may be there at
//! once, so that it cannot bear to be put off.
//!
//! *Blocks longer than an extent.* A block of n extents lies on one disk, in one run of
//! neighbouring extents or in several, its parts. It is one request of the schedule, and is
//! served in one command for each part, one after the other, with nothing between them. Its cost
//! is the sum: one placement and one transfer for each part. The schedule charges what the host
//! takes after each of them, as after any command ([`Task::in_parts`]). So demand
//! is exactly that of the commands, and blocking is that of one request. (As separate requests
//! with one deadline the parts would block others for less; but each would need a task of
//! its own, with the cost of the longest part that may ever be its turn, so that the demand
//! counted would be larger than the demand that is.) How many parts a block can have is counted on the volume's
//! map; where the map changes, by growth or because an extent moves, contracts are admitted
//! again before it does, or it does not.
//!
//! A stream that reads and writes ([`Mode::Update`]) has two tasks on each disk, one for
//! each way. Its block is asked for when one that was written has left the window, up to a
//! period after the program was done with that; so the window has as many blocks more as are
//! under way the other way.

use crate::admission::costs::ppm;
use crate::admission::sweep::sweep_costs;
use crate::api::{Contract, DiskIndex, Error, Mode, Placement, Refusal, Zone};
use crate::limits::{BLOCK_MAX, THIN_REACH};
use alloc::vec::Vec;
use core::ops::Range;
use disk::{LARGEST, Profile};
use sched::limits::PERIOD_MAX;
use sched::{Chance, Sweep, SweepCosts, SweepRule, Task, TaskId, TaskSet};
use store::{EXTENT, RING_GRAIN, RUN_MAX, StoreError};
use units::{Bytes, Direction, Duration, Lba, Rate, SECTOR};

/// What a volume's extents mean for one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub disk: DiskIndex,
    /// Every how many runs of the volume this disk's turn comes, at least.
    pub gap: u64,
    /// Where on the disk they lie.
    pub range: Range<Lba>,
    /// What lies on a disk before the next disk's turn comes.
    pub run: Bytes,
    /// The volume is a ring.
    pub is_ring: bool,
    /// A block of each of so many writers is written in one command; 0: the stream's blocks are by
    /// themselves.
    pub members: u32,
    /// Into how many parts a block of 1, 2, 4 and so on extents falls at the most.
    pub parts: [u32; LENGTHS],
    /// How far apart these lie at the most, from the first one's beginning to the last one's end.
    pub reach: [Bytes; LENGTHS],
    /// Where the disk serves streams in sweeps: how long after its release a block is there.
    /// Nothing where that is a period of the stream's.
    pub response: Duration,
    /// Requests of the stream may be late so often; `response` then says when they are.
    pub miss: Option<Chance>,
}

/// Lengths of blocks, from an extent to the longest: powers of two.
pub(crate) const LENGTHS: usize = (BLOCK_MAX.get() / EXTENT.get()).ilog2() as usize + 1;

impl Share {
    /// All of it in one stretch.
    pub(crate) const WHOLE: [u32; LENGTHS] = [1; LENGTHS];
    /// Its parts may lie anywhere.
    pub(crate) const ANYWHERE: [Bytes; LENGTHS] = [Bytes::MAX; LENGTHS];

    /// Into how many parts a block falls at the most.
    pub(crate) fn parts_of(&self, block: Bytes) -> u32 {
        self.parts[Self::length(block)]
    }

    /// How far apart they lie at the most.
    fn reach_of(&self, block: Bytes) -> Bytes {
        self.reach[Self::length(block)]
    }

    fn length(block: Bytes) -> usize {
        let extents = (block / EXTENT).max(1).ilog2() as usize;
        extents.min(LENGTHS - 1)
    }

    /// The same of what there is on the disk of a block: parts are whole extents, but for the last.
    pub(crate) fn parts_held(&self, block: Bytes) -> u64 {
        u64::from(self.parts_of(block)).min(self.holds(block) / EXTENT).max(1)
    }

    /// What there is on the disk of a block at the most: a volume may be shorter than one.
    fn holds(&self, block: Bytes) -> Bytes {
        block.min(SECTOR * self.range.start.distance(self.range.end))
    }
}

/// How long a request may take, and by how much its deadline is before the end of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promised {
    within: Duration,
    advance: Duration,
}

/// A task that a stream has on a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    pub disk: DiskIndex,
    pub id: TaskId,
    pub task: Task,
}

/// What these tasks have of each disk's time, in parts per million.
pub(crate) fn used(tasks: &[Joined]) -> Vec<(DiskIndex, u64)> {
    shares_of_time(tasks.iter().map(|one| (one.disk, &one.task)))
}

/// The same of tasks that may be asked for; those of one disk come one after the other.
pub(crate) fn shares_of_time<'a>(
    tasks: impl Iterator<Item = (DiskIndex, &'a Task)>,
) -> Vec<(DiskIndex, u64)> {
    let mut shares: Vec<(DiskIndex, u64)> = Vec::new();
    for (disk, task) in tasks {
        let cost = task.odds.map_or(task.cost, |odds| odds.mean);
        let share = ppm(cost, task.period);
        match shares.last_mut().filter(|(last, _)| *last == disk) {
            Some((_, sum)) => *sum += share,
            None => shares.push((disk, share)),
        }
    }
    shares
}

pub(crate) fn refused(disk: DiskIndex, refusal: &sched::Refusal) -> Refusal {
    Refusal {
        disk,
        utilisation_ppm: refusal.utilisation_ppm,
        deadline: refusal.deadline,
        rate_max: Rate::ZERO,
        longer: None,
        within: None,
        bus: None,
        undecided: refusal.undecided,
        parts: 1,
    }
}

/// How often a disk with this share has a block of the stream to move. Where it is seldom
/// enough to be outside what the analysis counts with, more is set aside than is needed.
pub(crate) fn period(contract: &Contract, share: &Share) -> Duration {
    contract.time_of(share.gap).min(PERIOD_MAX)
}

/// A request for a block in chunks.
struct Chunked {
    cost: Duration,
    /// The longest chunk.
    command: Duration,
    commands: u32,
    /// What it costs more each time that something comes between.
    resume: Duration,
}

/// A disk as admission sees it: what it costs, and who has its promise.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub profile: &'a Profile,
    /// Deadlines are advanced by this.
    pub advance: Duration,
    /// How late the host may be to see what a program asks for.
    pub late: Duration,
    pub set: &'a TaskSet,
    /// Requests of streams are served in commands of at most this.
    pub chunk: Option<Bytes>,
}

#[cfg(test)]
impl<'a> Seen<'a> {
    /// Of a host that is never late, in whole requests.
    pub(crate) fn in_time(profile: &'a Profile, set: &'a TaskSet) -> Self {
        let (advance, late, chunk) = (Duration::ZERO, Duration::ZERO, None);
        Self { profile, advance, late, set, chunk }
    }
}

impl Seen<'_> {
    /// What `contract` asks of this disk for the one of its requests for a block that goes
    /// this way; `Err` where even an idle disk could not keep it.
    pub(crate) fn task(
        &self,
        contract: &Contract,
        share: &Share,
        way: Direction,
    ) -> Result<Task, Refusal> {
        let period = period(contract, share);
        if contract.block > LARGEST && self.profile.bus.is_some() {
            // The others on the bus count with less.
            let used = self.set.utilisation().ppm();
            return Err(Refusal {
                disk: share.disk,
                utilisation_ppm: used,
                deadline: None,
                rate_max: Rate::ZERO,
                longer: None,
                within: None,
                bus: None,
                undecided: false,
                parts: 1,
            });
        }
        if share.members > 0 {
            return self.possible(share.disk, self.cost_of_group(share, way), period, period);
        }
        if let Some(miss) = share.miss {
            return self.task_at_odds(contract, share, way, miss);
        }
        if let Some(rule) = self.set.sweep_rule() {
            let (cost, sweep) = self.cost_in_sweeps(contract.block, share, way, rule);
            let task = self.possible(share.disk, cost, share.response, period)?;
            return Ok(task.in_sweeps(sweep));
        }
        if let Some(chunked) = self.in_chunks(contract.block, share, way) {
            let Chunked { cost, command, commands, resume } = chunked;
            let task = self.possible(share.disk, cost, period, period)?;
            return Ok(task.in_chunks(command, commands, resume));
        }
        let cost = self.cost(contract.block, share, way);
        let parts = u32::try_from(share.parts_held(contract.block)).unwrap_or(u32::MAX);
        self.possible_in(share.disk, (cost, parts), self.released(period), period)
    }

    /// What a request for a block takes of the disk in chunks; None where it is one command. The
    /// first chunk of each of its parts begins anywhere, each of the others where the one before
    /// it ended. What comes between costs the way back.
    fn in_chunks(&self, block: Bytes, share: &Share, way: Direction) -> Option<Chunked> {
        let (chunk, len) = (self.chunk?, share.holds(block));
        let parts = share.parts_held(block);
        if len <= chunk && parts == 1 {
            return None;
        }
        let chunk = chunk.min(len);
        // Parts are whole extents, but for the last one.
        let whole = if chunk <= EXTENT { 0 } else { parts - 1 };
        let commands = (len.div_ceil(chunk) + whole).max(parts);
        let command = self.profile.worst(share.range.clone(), chunk, way);
        let next = self.profile.follows(share.range.clone(), chunk, len, way);
        let still = self.profile.sweep(share.range.clone(), chunk, way);
        let resume = still.map_or(Duration::ZERO, |still| command.saturating_sub(still.request));
        let pipeline = self.profile.latency() * (parts - 1);
        let cost = command * parts + next * (commands - parts) + pipeline;
        let commands = u32::try_from(commands).unwrap_or(u32::MAX);
        Some(Chunked { cost, command, commands, resume })
    }

    /// How long after its release a request of a stream is done at the latest, where that is not
    /// within a period ([`Share::response`]).
    pub(crate) fn response(&self) -> Duration {
        let rule = self.set.sweep_rule();
        rule.map_or(Duration::ZERO, |rule| rule.response().saturating_add(self.advance))
    }

    /// What a request for a block takes in a sweep, and what a sweep takes besides. The parts of a
    /// block may lie anywhere: they are served one after the other at the worst, and the arm then
    /// has to come back to the sweep.
    fn cost_in_sweeps(
        &self,
        block: Bytes,
        share: &Share,
        way: Direction,
        rule: SweepRule,
    ) -> (Duration, Sweep) {
        let len = share.holds(block);
        let whole = Lba::new(0)..Lba::containing(self.profile.capacity());
        // Volumes may lie anywhere, so that a sweep goes over all of the disk.
        let all = sweep_costs(self.profile, whole, len, way);
        let here = sweep_costs(self.profile, share.range.clone(), len, way);
        let Some((all, here)) = all.zip(here) else {
            return (self.cost(block, share, way), Sweep::default());
        };
        let SweepCosts { request, span, .. } = here;
        let requests = rule.cycle.as_nanos() / request.as_nanos().max(1);
        let (cost, sweep) = SweepCosts { request, span, ..all }.shares(requests);
        if share.parts_of(block) > 1 && block > EXTENT {
            // A sweep that has begun has given its time away: a gap that grows is in it already.
            let between = queue::limits::GAP_MAX.saturating_mul(share.parts_held(block) - 1);
            let alone = self.cost(block, share, way).saturating_add(between);
            return (alone.saturating_add(sweep.back), sweep);
        }
        (cost, sweep)
    }

    /// What a request for a block takes of the disk, in the worst of the ways in which the
    /// volume lets a block fall into parts, without what the host takes after each. Nothing else is served between its parts: the heads
    /// come from anywhere once, and otherwise from as far as the parts lie apart. That is said of
    /// reads only: what was written may be in the disk's cache, and move the heads later.
    pub(crate) fn cost(&self, block: Bytes, share: &Share, direction: Direction) -> Duration {
        let len = share.holds(block);
        let worst = |len| self.profile.worst(share.range.clone(), len, direction);
        let parts = share.parts_held(block);
        if parts == 1 {
            return worst(len);
        }
        // What lengths in extents cost, and the most that so many extents cost in so many
        // parts or fewer: the last part has one length or another, and the others the rest.
        let extents = (len.div_ceil(EXTENT)) as usize;
        let reach = share.reach_of(block);
        let next = |len| match direction {
            Direction::Read => self.profile.follows(share.range.clone(), len, reach, direction),
            Direction::Write => worst(len),
        };
        let lengths = || (1..=extents as u64).map(|n| (EXTENT * n).min(len));
        let each: Vec<Duration> = lengths().map(next).collect();
        let mut most: Vec<Duration> = lengths().map(worst).collect();
        let pipeline = self.profile.latency();
        let mut cost = most[extents - 1];
        for part in 1..parts as usize {
            let of = |n: usize| (part..n).map(|rest| most[rest - 1] + each[n - rest - 1]).max();
            most = (1..=extents).map(|n| of(n).unwrap_or(Duration::ZERO)).collect();
            cost = cost.max(most[extents - 1] + pipeline * part as u64);
        }
        cost
    }

    /// For what is promised within so long of a program's call: the host may be late to see that, too
    /// ([`Core::submit_in_turn`](crate::core::Core::submit_in_turn)).
    pub(crate) fn asked(&self, within: Duration) -> Promised {
        Promised { within, advance: self.advance.saturating_add(self.late) }
    }

    /// A task with deadlines before the end of its period, advanced; `Err` where
    /// even an idle disk could not keep it.
    pub(crate) fn possible(
        &self,
        disk: DiskIndex,
        cost: Duration,
        within: Duration,
        period: Duration,
    ) -> Result<Task, Refusal> {
        self.possible_in(disk, (cost, 1), self.released(within), period)
    }

    /// For what is promised within so long of a release.
    fn released(&self, within: Duration) -> Promised {
        Promised { within, advance: self.advance }
    }

    /// The same of requests in so many commands, one after the other.
    pub(crate) fn possible_in(
        &self,
        disk: DiskIndex,
        (cost, parts): (Duration, u32),
        Promised { within, advance }: Promised,
        period: Duration,
    ) -> Result<Task, Refusal> {
        let cost = cost.max(Duration::from_nanos(1));
        let deadline = within.saturating_sub(advance);
        let charged = cost.saturating_add(self.set.gap().saturating_mul(parts.into()));
        if charged > deadline {
            let late = charged.saturating_add(advance).saturating_sub(within);
            let used = self.set.utilisation().ppm();
            return Err(Refusal {
                disk,
                utilisation_ppm: used.saturating_add(ppm(cost, period)),
                deadline: Some((within, late)),
                rate_max: Rate::ZERO,
                longer: None,
                within: None,
                bus: None,
                undecided: false,
                parts: 1,
            });
        }
        Ok(Task::new(period, deadline, cost).in_parts(parts))
    }
}

/// Whether these disks would take `contract`; the first refusal if not.
pub(crate) fn fits<'a>(
    seen: impl Fn(DiskIndex) -> Seen<'a>,
    contract: &Contract,
    shares: &[Share],
    mode: Mode,
) -> Result<(), Refusal> {
    for share in shares {
        let disk = seen(share.disk);
        let refused = |refusal: sched::Refusal| refused(share.disk, &refusal);
        if let &[way] = mode.directions() {
            let task = disk.task(contract, share, way)?;
            disk.set.admits(&task).map_err(refused)?;
            continue;
        }
        let mut set = disk.set.clone();
        for &way in mode.directions() {
            set.add(disk.task(contract, share, way)?).map_err(refused)?;
        }
    }
    Ok(())
}

/// The largest rate, in the same blocks, that would be admitted; zero if none.
/// A longer period never hurts a set (its demand falls by at least what its
/// blocking rises), so halving finds it.
pub(crate) fn rate_max<'a>(
    seen: impl Fn(DiskIndex) -> Seen<'a>,
    contract: &Contract,
    shares: &[Share],
    mode: Mode,
) -> Rate {
    let (mut good, mut bad) = (0, contract.rate.get());
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        let tried = Contract { rate: Rate::per_second(middle), ..*contract };
        if tried.check().is_ok() && fits(&seen, &tried, shares, mode).is_ok() {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Rate::per_second(good)
}

/// The shares of a volume that does not exist yet, on disks of these capacities.
pub(crate) fn shares_of(placement: &Placement, capacities: &[Bytes]) -> Result<Vec<Share>, Error> {
    let count = capacities.len() as u16;
    let disks = match placement.disks.as_slice() {
        [] => (0..count).map(DiskIndex).collect(),
        some => some.to_vec(),
    };
    if let Some(&disk) = disks.iter().find(|disk| disk.0 >= count) {
        return Err(Error::NoSuchDisk { disk, disks: count });
    }
    let run = placement.checked_run().ok_or(StoreError::BadRun { run: placement.run })?;
    let share = |&disk: &DiskIndex| {
        let end = Lba::containing(capacities[disk.as_usize()]);
        let middle = Lba::new(end.get() / 2);
        let range = match placement.zone {
            Zone::Any => Lba::new(0)..end,
            Zone::Outer => Lba::new(0)..middle,
            Zone::Inner => middle..end,
        };
        // Extents of a thin volume come to lie among others'.
        let (parts, reach) = match placement.thin {
            true => {
                let runs = |power: usize| EXTENT.saturating_mul(1 << power).div_ceil(run) as u32;
                (core::array::from_fn(runs), [THIN_REACH; LENGTHS])
            }
            false => (Share::WHOLE, Share::ANYWHERE),
        };
        let (response, miss) = (Duration::ZERO, None);
        let (gap, is_ring) = (disks.len() as u64, false);
        Share { disk, gap, range, run, is_ring, members: 0, parts, reach, response, miss }
    };
    Ok(disks.iter().map(share).collect())
}

/// Blocks of the window, where the host may be `late` by so much. Where a block is there only
/// after so long a time that several more are used up meanwhile, as many more.
pub(crate) fn window_blocks(
    contract: &Contract,
    shares: &[Share],
    mode: Mode,
    late: Duration,
) -> u64 {
    let gap = shares.iter().map(|share| share.gap).max().unwrap_or(1);
    let response = shares.iter().map(|share| share.response).max().unwrap_or_default();
    let waits = response.as_nanos().div_ceil(contract.period().as_nanos().max(1));
    // A member's block waits for a command that is made ahead of its turn by as much as the host may be
    // late; and its program may be told of room as late.
    let is_member = shares.iter().any(|share| share.members > 0);
    let late = if is_member { late.saturating_mul(2) } else { late };
    let further = waits.saturating_sub(gap).saturating_mul(mode.directions().len() as u64);
    blocks_of(contract, (gap, in_a_row(contract, shares)), mode, late).saturating_add(further)
}

/// The same where every `gap`th run comes to a disk, of so many blocks in a row. Where a block
/// is read before and written after, its memory is under way twice, and with the program once.
pub(crate) fn blocks_of(
    contract: &Contract,
    (gap, in_a_row): (u64, u64),
    mode: Mode,
    late: Duration,
) -> u64 {
    let under_way = gap + 1 + (in_a_row - 1) * (gap - 1);
    under_way * mode.directions().len() as u64 + contract.blocks_ahead(late)
}

/// Blocks that lie on one disk before the next disk's turn comes.
pub(crate) fn in_a_row(contract: &Contract, shares: &[Share]) -> u64 {
    let run = shares.iter().map(|share| share.run).max().unwrap_or(EXTENT);
    (run / contract.block).max(1)
}

/// Whether a volume with these shares can have blocks of this length: a block lies on one
/// disk, a ring gives it up as a whole, and on a bus no command moves more than the bus is counted for.
pub(crate) fn check_block<'a>(
    contract: &Contract,
    shares: &[Share],
    profile: impl Fn(DiskIndex) -> &'a Profile,
) -> Result<(), Error> {
    // The texts say 16 MiB.
    const { assert!(RUN_MAX.get() == 16 << 20 && RING_GRAIN.get() == 16 << 20) };
    let invalid = |rule| Err(Error::Invalid { what: "block size", rule });
    if contract.block > LARGEST && shares.iter().any(|share| profile(share.disk).bus.is_some()) {
        return invalid("at most 1 MiB on disks that share a bus with others");
    }
    if contract.block > RING_GRAIN && shares.iter().any(|share| share.is_ring) {
        return invalid("at most 16 MiB on a ring, which gives up so much at a time");
    }
    if contract.block > RUN_MAX && shares.iter().any(|share| share.gap > 1) {
        return invalid("at most 16 MiB on a volume over several disks");
    }
    if shares.iter().any(|share| share.gap > 1 && contract.block > share.run) {
        return invalid(
            "at most the run by which the volume rotates over its disks; name a smaller block, \
             or create the volume with a longer run (`slackline volume create --run`)",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::Model;

    /// Every way to cut so many extents into so many parts.
    fn ways(extents: u64, parts: u64) -> Vec<Vec<u64>> {
        if parts == 1 {
            return alloc::vec![alloc::vec![extents]];
        }
        let longest = extents - (parts - 1);
        let cut = |first: u64| {
            let rest = ways(extents - first, parts - 1).into_iter();
            rest.map(move |mut rest| {
                rest.push(first);
                rest
            })
        };
        (1..=longest).flat_map(cut).collect()
    }

    /// On every model: the cost of a block in so many parts is that of the worst way to cut it,
    /// and no way costs more; a volume that is shorter than a block costs what it has.
    #[test]
    fn a_block_costs_what_the_worst_cut_into_its_parts_costs() {
        for name in Model::names() {
            let profile = Profile::of(&Model::named(name).unwrap());
            let set = TaskSet::new(Duration::ZERO);
            let advance = Duration::from_millis(3);
            let seen = Seen { advance, ..Seen::in_time(&profile, &set) };
            let end = Lba::containing(profile.capacity().min(Bytes::GIB));
            for (power, block) in [1, 2, 4, 8].map(Bytes::mib).into_iter().enumerate() {
                let ways_of = (1..=1u32 << power).flat_map(|parts| {
                    [block, Bytes::mib(100), Bytes::MAX].map(|reach| (parts, reach))
                });
                for (parts, reach) in ways_of {
                    let share = |range| Share {
                        disk: DiskIndex(0),
                        gap: 1,
                        range,
                        run: RUN_MAX,
                        is_ring: false,
                        members: 0,
                        parts: [parts; LENGTHS],
                        reach: [reach; LENGTHS],
                        response: Duration::ZERO,
                        miss: None,
                    };
                    for direction in [Direction::Read, Direction::Write] {
                        let all = share(Lba::new(0)..end);
                        let one = |n| profile.worst(all.range.clone(), EXTENT * n, direction);
                        let next = |n| match direction {
                            Direction::Read => {
                                profile.follows(all.range.clone(), EXTENT * n, reach, direction)
                            }
                            Direction::Write => one(n),
                        };
                        // Whichever part is the first one.
                        let sum = |way: &Vec<u64>| -> Duration {
                            let all: Duration = way.iter().map(|&n| next(n)).sum();
                            way.iter().map(|&n| all - next(n) + one(n)).max().unwrap()
                        };
                        let in_parts = |parts: u64| {
                            let worst = ways(block / EXTENT, parts).iter().map(sum).max();
                            worst.unwrap() + profile.latency() * (parts - 1)
                        };
                        let worst = (1..=parts.into()).map(in_parts).max().unwrap();
                        assert_eq!(seen.cost(block, &all, direction), worst, "{name} {block}");
                        let short = share(Lba::new(0)..Lba::containing(EXTENT));
                        let least = profile.worst(short.range.clone(), EXTENT, direction);
                        assert_eq!(seen.cost(block, &short, direction), least, "{name} {block}");
                    }
                }
            }
        }
    }

    /// On every model with heads, where blocks are served in sweeps: one in one run takes less than
    /// by itself; one in two takes as long as by itself, and the way back to the sweep.
    #[test]
    fn in_sweeps_only_what_lies_in_one_run_gains() {
        let rule = SweepRule { cycle: Duration::from_secs(4) };
        for (profile, set, share) in swept(rule) {
            let seen = Seen::in_time(&profile, &set);
            for way in [Direction::Read, Direction::Write] {
                let block = Bytes::mib(8);
                let alone = |share: &Share| seen.cost(block, share, way);
                let (whole, _) = seen.cost_in_sweeps(block, &share, way, rule);
                assert!(whole < alone(&share), "{whole} {}", alone(&share));
                let parted = Share { parts: [2; LENGTHS], ..share.clone() };
                let (both, sweep) = seen.cost_in_sweeps(block, &parted, way, rule);
                assert!(both >= alone(&parted) + sweep.back, "{both} {}", alone(&parted));
                // What is no longer than an extent lies in one.
                let one = |share| seen.cost_in_sweeps(EXTENT, share, way, rule).0;
                assert_eq!(one(&parted), one(&share));
            }
        }
    }

    /// The time of a sweep is divided among its requests as for about as many as there are: counted
    /// so, those that fill a cycle take little more than counted for whatever other number.
    #[test]
    fn a_full_sweep_is_counted_nearly_as_short_as_it_can_be() {
        let rule = SweepRule { cycle: Duration::from_secs(4) };
        for (profile, set, share) in swept(rule) {
            let seen = Seen::in_time(&profile, &set);
            let (len, way) = (Bytes::kib(256), Direction::Read);
            let (cost, sweep) = seen.cost_in_sweeps(len, &share, way, rule);
            let full = (rule.cycle - sweep.once).as_nanos() / cost.as_nanos();
            assert!(full > 20, "{full} requests");
            let takes = |(cost, sweep): (Duration, Sweep)| cost * full + sweep.once;
            let costs = sweep_costs(&profile, share.range.clone(), len, way).unwrap();
            let least = (0..24).map(|power| takes(costs.shares(1 << power))).min().unwrap();
            let ours = takes((cost, sweep));
            assert!(ours <= least + least / 50, "{ours} of {full}, not {least}");
        }
    }

    /// Every model with heads, an empty set in sweeps, and a volume over all of it.
    fn swept(rule: SweepRule) -> impl Iterator<Item = (Profile, TaskSet, Share)> {
        let models = Model::names().map(|name| Model::named(name).unwrap());
        models.filter(Model::is_hard_disk).map(move |model| {
            let profile = Profile::of(&model);
            let admission = sched::Admission::Sweeps(rule);
            let set = TaskSet::new(Duration::ZERO).with_admission(admission, 1);
            let share = Share {
                disk: DiskIndex(0),
                gap: 1,
                range: Lba::new(0)..Lba::containing(profile.capacity()),
                run: RUN_MAX,
                is_ring: false,
                members: 0,
                parts: Share::WHOLE,
                reach: Share::ANYWHERE,
                response: rule.response(),
                miss: None,
            };
            (profile, set, share)
        })
    }
}
