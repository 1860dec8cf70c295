//! Requests that lie one behind another, served by one command.
//!
//! Whoever cuts what a program asks for into requests, so that each can have its turn, does not
//! want it cut on a disk that has the time: a command for each piece costs a turn of the disk; and so
//! do several short requests of a program that go on one behind the other. So when a request is
//! started, those that came near it and go on where it ends, or end where it begins, are added to
//! its command, as long as the slack covers what that takes longer. They are served earlier than
//! by themselves, and nobody is late for it. Best effort that somebody waits for, which may come at
//! any time, is not held up longer than by one piece: while such comes, no command grows beyond that
//! ([`Merging::piece`]).

use crate::limits::{NEIGHBOURS, SOMEBODY_WAITS};
use crate::merging::{Merging, Side};
use crate::queue::{DeviceTime, Ended, Entry, Queue};
use alloc::vec::Vec;
use sched::{Class, Predict};
use units::{Access, Bytes, Command, Instant, Lba};

impl<W> Queue<W> {
    /// From now on requests that came one behind the other are served by one command where that
    /// can be ([`Schedule::start_with`](sched::Schedule::start_with)), whichever of them the
    /// schedule has chosen; none at first.
    pub fn set_merging(&mut self, merging: Option<Merging<W>>) {
        self.merging = merging;
    }

    /// A request has come.
    pub(crate) fn note_class(&mut self, now: Instant, class: Class) {
        if matches!(class, Class::BestEffort { synchronous: true, .. }) {
            self.somebody_waits = now.saturating_add(SOMEBODY_WAITS);
        }
    }

    /// Adds to a request that the schedule has just chosen, with the heads at `at`, what came just
    /// before it and just after.
    pub(crate) fn merge(&mut self, now: Instant, key: u64, at: Lba) {
        let Some(merging) = self.merging else { return };
        // The others on a bus are counted for with commands as they are cut, and a device that
        // takes several commands has them at a time.
        let is_alone = self.device.profile.bus.is_none() && self.schedule.in_flight() == 1;
        if !is_alone || self.schedule.depth() > 1 || !self.is_one(key) {
            return;
        }
        let most = if now < self.somebody_waits { merging.piece } else { Bytes::MAX };
        let mut with = Vec::new();
        for side in [Side::Before, Side::Behind] {
            let mut last = key;
            while let Some((other, longer)) = self.next_to(&merging, key, last, side) {
                let of = |command| self.plain(at).bound(at, command);
                let first = self.commands[key].command.expect("it is a transfer");
                let more = of(&longer).saturating_sub(of(&first));
                let is_short = longer.access().is_none_or(|access| access.len <= most);
                if !is_short || !self.schedule.start_with(now, other, key, more) {
                    break;
                }
                let mut added = self.commands.remove(other).expect("it waits");
                let first = self.commands.get_mut(key).expect("it is started");
                (merging.merge)(&mut first.work, &added.work, side);
                (first.command, added.command) = (Some(longer), None);
                self.commands.insert(other, added);
                with.push(other);
                last = other;
            }
        }
        if !with.is_empty() {
            self.merged.insert(key, with);
        }
    }

    /// In one command, to one place.
    fn is_one(&self, key: u64) -> bool {
        let entry = &self.commands[key];
        !entry.in_parts && entry.rest.is_empty() && !self.further.contains_key(&key)
    }

    /// The request that came next to `last`, and the command for it and for what `key` does by now,
    /// where it can be added to that.
    fn next_to(
        &self,
        merging: &Merging<W>,
        key: u64,
        last: u64,
        side: Side,
    ) -> Option<(u64, Command)> {
        let chosen: &Entry<W> = &self.commands[key];
        let joined = |other: u64, added: &Entry<W>| {
            let (first, second) = match side {
                Side::Before => (added, chosen),
                Side::Behind => (chosen, added),
            };
            let one = first.command?.access().copied()?;
            let two = second.command?.access().copied()?;
            let goes_on = one.end() == two.lba && one.direction == two.direction;
            let class = self.class_of(other).filter(|_| goes_on && self.is_one(other))?;
            let may = (merging.may_merge)(&first.work, &second.work, class == chosen.class);
            may.then(|| (other, Command::Transfer(Access { len: one.len + two.len, ..one })))
        };
        let before = self.commands.range(..last).rev().take(NEIGHBOURS);
        let behind = self.commands.range(last + 1..).take(NEIGHBOURS);
        behind.chain(before).find_map(|(other, entry)| joined(other, entry))
    }

    /// The others that a command has served end as it does. It counts once; each that is late counts.
    pub(crate) fn end_merged(&mut self, key: u64, times: DeviceTime, good: bool) -> Vec<Ended<W>> {
        let others = self.merged.remove(&key).unwrap_or_default();
        let mut end = |other| {
            let ended = self.ended_alone(other, times, good);
            self.account.count_late(ended.late_by);
            ended
        };
        others.into_iter().map(&mut end).collect()
    }
}
