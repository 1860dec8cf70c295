//! A disk is measured again while it serves (`measuring.rs`).

use crate::admission::costs::Costs;
use crate::api::*;
use crate::core::Core;
use crate::jobs::measuring::{Part, Running, parts, wider, with_margin};
use crate::limits::{MEASURE_AGAIN, MEASURE_READS, MEASURE_SMALL, WIDEN_AGAIN, WIDEN_INTERVAL_MAX};
use crate::memory::arena::Use;
use crate::node::Node;
use crate::work::Owner;
use alloc::boxed::Box;
use alloc::vec::Vec;
use sched::Class;
use units::{Bytes, Duration, Instant};

impl Core {
    /// Reads the next place.
    fn measure_next(&mut self, now: Instant, disk: DiskIndex) {
        let running = &self.measuring.running[&disk];
        let (number, parts) = (running.done, running.parts.len() as u64);
        // From part to part, so that the heads move; sizes change after each round.
        let (at, large) = ((number % parts) as usize, number / parts % 2 == 1);
        let part = &running.parts[at];
        let len = if large { running.span.len } else { MEASURE_SMALL };
        // The golden ratio spreads any number of places evenly.
        let places = (part.to - part.from - len) / MEASURE_SMALL + 1;
        let spread = u128::from(number / parts + 1) * 11_400_714_819_323_198_485u128;
        let place = ((u128::from(spread as u64) * u128::from(places)) >> 64) as u64;
        let offset = part.from + MEASURE_SMALL * place;
        let span = Span { len, ..running.span };
        let action = DiskAction::Read { offset, span, written: Blocks::first(len).into() };
        let id = self.submit(now, disk, Class::Background, action, Owner::Measure);
        let running = self.measuring.running.get_mut(&disk).expect("it runs");
        (running.command, running.what) = (id, (at, large));
    }

    fn end_measuring(&mut self, now: Instant, disk: DiskIndex) -> (Vec<Part>, Bytes) {
        let running = self.measuring.running.remove(&disk).expect("it ran");
        self.arena.give(running.span, Use::BestEffort);
        self.measuring.ended.insert(disk, now);
        (running.parts, running.span.len)
    }

    /// Measurements end as soon as no command of them is under way.
    pub(crate) fn stop_measuring(&mut self, now: Instant) {
        let running = self.measuring.running.iter();
        let commands: Vec<_> = running.map(|(&disk, one)| (disk, one.command)).collect();
        for (disk, command) in commands {
            if self.cancel(command) {
                self.end_measuring(now, disk);
            }
        }
    }
}

impl Node {
    /// Begins to measure a disk again, if it is not being measured.
    pub(crate) fn reprofile(&mut self, now: Instant, disk: DiskIndex) -> Result<(), Error> {
        let disks = self.core.disks.len() as u16;
        let state = self.core.disks.get(disk.as_usize());
        let state = state.ok_or(Error::NoSuchDisk { disk, disks })?;
        if self.core.measuring.running.contains_key(&disk) {
            return Ok(());
        }
        // The longest that no contract has to wait for too long.
        let large = state.piece;
        let parts = parts(state.queue.profile(), state.queue.capacity(), large);
        let Some(span) = self.core.arena.take(large, Use::BestEffort) else {
            return Err(Error::NoMemory { asked: large, free: Bytes::ZERO });
        };
        let (command, what) = (CommandId(0), (0, false));
        let running = Running { parts, done: 0, span, command, what };
        self.core.measuring.running.insert(disk, running);
        self.core.measure_next(now, disk);
        Ok(())
    }

    /// A disk whose profile does not hold is measured again, now and then.
    pub(crate) fn measure_if_stale(&mut self, now: Instant, disk: DiskIndex) {
        let state = &self.core.disks[disk.as_usize()];
        let verdict = state.queue.seen().verdict();
        let hopeless = matches!(verdict, Verdict::Stale { why: Staleness::Capacity { .. } });
        if !self.core.config.remeasure || verdict == Verdict::Fresh || hopeless || self.is_ending()
        {
            return;
        }
        let ended = self.core.measuring.ended.get(&disk);
        if ended.is_none_or(|&ended| now >= ended.saturating_add(MEASURE_AGAIN)) {
            // Without memory, at the next command.
            let _ = self.reprofile(now, disk);
        }
    }

    /// A read of a measurement has ended.
    pub(crate) fn measured(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        took: Option<(Duration, Duration)>,
    ) {
        let ending = self.is_ending();
        let running = self.core.measuring.running.get_mut(&disk).expect("it runs");
        running.done += 1;
        let (at, large) = running.what;
        let part = &mut running.parts[at];
        if let Some((actual, bound)) = took {
            let took = if large { &mut part.large } else { &mut part.small };
            took.reads += 1;
            took.total += actual;
            took.over += u64::from(actual > bound);
            took.excess = took.excess.max(actual.saturating_sub(bound));
        }
        let planned = MEASURE_READS * running.parts.len() as u64;
        if running.done < planned && !ending {
            return self.core.measure_next(now, disk);
        }
        let (parts, large) = self.core.end_measuring(now, disk);
        if !ending {
            self.conclude(now, disk, &parts, large);
        }
    }

    /// What a measurement comes to.
    fn conclude(&mut self, now: Instant, disk: DiskIndex, parts: &[Part], large: Bytes) {
        let both = || parts.iter().flat_map(|part| [part.small, part.large]);
        let (reads, over) = both().fold((0, 0), |(n, m), one| (n + one.reads, m + one.over));
        let told = Measured {
            outcome: Outcome::Holds,
            reads,
            over,
            excess: both().map(|one| one.excess).max().unwrap_or_default(),
            large,
            parts: parts.iter().map(|part| part.told(large)).collect(),
        };
        self.core.measuring.told.insert(disk, told);
        self.core.measuring.waiting.remove(&disk);
        if over > 0 {
            let state = &self.core.disks[disk.as_usize()];
            let mut wider = wider(state.queue.profile(), parts, large);
            // Commits flush the disk all the time: nothing has to be measured for it.
            let longest = state.queue.flush_longest();
            let told = wider.flush;
            if longest > wider.flush() {
                wider.flush = with_margin(longest);
            }
            if !self.commits_often_enough(disk, &wider) {
                wider.flush = told;
            }
            self.core.measuring.waiting.insert(disk, wider);
            self.try_wider(now, disk);
        }
    }

    /// Flushes took longer than their bound: it is widened at once, since each commit has
    /// some.
    pub(crate) fn widen_flush(&mut self, now: Instant, disk: DiskIndex) {
        let queue = &self.core.disks[disk.as_usize()].queue;
        let (longest, profile) = (queue.flush_longest(), queue.profile());
        let holds = longest <= profile.flush() + profile.latency();
        if holds || !self.core.config.remeasure || self.is_ending() {
            return;
        }
        let waiting = self.core.measuring.waiting.get(&disk);
        let mut wider = waiting.unwrap_or(profile).clone();
        let is_due = self.core.measuring.again.get(&disk).is_some_and(|&at| at <= now);
        if waiting.is_some() && longest <= wider.flush() && !is_due {
            return; // it is tried again when a stream has closed
        }
        wider.flush = with_margin(longest);
        if !self.commits_often_enough(disk, &wider) {
            return;
        }
        self.core.measuring.waiting.insert(disk, wider);
        self.try_wider(now, disk);
    }

    /// Commits that are as far apart as a profile's flushes make them would be worse than late
    /// requests from some length on.
    fn commits_often_enough(&self, disk: DiskIndex, profile: &disk::Profile) -> bool {
        let queue = &self.core.disks[disk.as_usize()].queue;
        let costs = Costs::new(&self.core.config, profile, queue.capacity(), queue.gap());
        let least = costs.commit_interval_under(self.core.config.policy, profile.depth());
        least <= self.core.first_interval.saturating_mul(WIDEN_INTERVAL_MAX)
    }

    /// A stream has closed: perhaps wider profiles fit now.
    pub(crate) fn try_wider_profiles(&mut self, now: Instant) {
        let disks: Vec<DiskIndex> = self.core.measuring.waiting.keys().copied().collect();
        disks.into_iter().for_each(|disk| self.try_wider(now, disk));
    }

    fn try_wider(&mut self, now: Instant, disk: DiskIndex) {
        let profile = self.core.measuring.waiting[&disk].clone();
        self.core.measuring.again.remove(&disk);
        let outcome = match self.set_profile(now, disk, &profile) {
            Ok(()) => {
                self.core.measuring.waiting.remove(&disk);
                self.core.changed(now);
                Outcome::Used
            }
            Err(error) => {
                if error.is_undecided() {
                    let at = now.saturating_add(WIDEN_AGAIN);
                    self.core.measuring.again.insert(disk, at);
                }
                Outcome::Refused(Box::new(error))
            }
        };
        self.core.measuring.told.entry(disk).or_default().outcome = outcome;
    }
}
