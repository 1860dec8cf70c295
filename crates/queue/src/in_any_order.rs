//! Commands that the device has beside others, where it serves one at a time in an order of its own.
//!
//! The schedule says which ([`Options::any_order`](sched::Options::any_order)): those that the slack
//! covers in the worst order. Where the heads are is then not known before the device is idle again
//! and has had one command alone. Best effort that somebody waits for is not held up by others that
//! the device has already: while such comes, it has one command at a time.

use crate::predictions::{MayGoBeside, worst};
use crate::queue::{Next, Queue};
use disk::Head;
use units::Instant;

impl<W> Queue<W> {
    /// From now on the device may have several commands, as many as its schedule says, where
    /// what they are for `may` be with it beside others; one at a time at first.
    pub fn set_beside(&mut self, may: MayGoBeside<W>) {
        self.beside = Some(may);
    }

    /// From now on a command that fails says nothing of the places that it touched, unless they are to
    /// blame: where what it was for is tried again in parts.
    pub fn set_blames(&mut self, blames: fn(&W) -> bool) {
        self.blames = blames;
    }

    /// What the device has by now of best effort is needed by then
    /// ([`Schedule::promise_with_disk`](sched::Schedule::promise_with_disk)). Says whether it comes by that.
    pub fn promise_with_disk(&mut self, key: u64, by: Instant) -> bool {
        self.schedule.promise_with_disk(key, by)
    }

    /// It could have several commands, has one, and is given no other one now.
    pub(crate) fn holds_no_more(&self, now: Instant) -> bool {
        let somebody_waits = now < self.somebody_waits;
        self.device.profile.queue() > 1 && self.schedule.in_flight() > 0 && somebody_waits
    }

    /// What the schedule has just started goes beside others.
    pub(crate) fn is_beside(&self) -> bool {
        self.schedule.depth() == 1 && self.schedule.in_flight() > 1
    }

    /// Gives the device a command beside others: each of them may come from anywhere.
    pub(crate) fn start_beside(&mut self, key: u64) -> Next<'_, W> {
        self.had_several = true;
        for key in self.schedule.with_disk() {
            let entry = self.commands.get_mut(key).expect("what the device has is known");
            if let Some(access) = entry.command.as_ref().and_then(|command| command.access()) {
                entry.predicted = worst(&self.device.profile, access);
            }
        }
        self.gaps.given(key);
        self.begun.given(key, self.latest);
        let entry = self.commands.get_mut(key).expect("a scheduled command is known");
        entry.given(key)
    }

    /// A command has ended: where several were with the device, nobody knows which was the last.
    pub(crate) fn forget_order(&mut self) {
        if self.had_several {
            self.head = Head::anywhere();
            self.had_several = self.schedule.in_flight() > 0;
        }
    }
}
