//! What the host takes between commands is measured (`queue::HostTime`), and charged.
//!
//! Where another gap than is stated was measured, every contract on the disk is admitted
//! again with it, as for a wider profile, in shorter commands where these help. Where they do not
//! all fit, what is stated stays, those that do not fit are named, and it is tried again when a
//! contract has ended and whenever the gap was measured anew. Until then no contract is given or widened on the disk
//! that does not fit with what was measured (`admission/host.rs`). What is not measured again goes
//! with time, also on a disk that has nothing to do: whatever is asked for less is tried then.

use crate::admission::contract::refused;
use crate::api::*;
use crate::core::{Core, Disk};
use crate::jobs::policy::Names;
use crate::node::Node;
use alloc::boxed::Box;
use alloc::vec::Vec;
use units::{Duration, Instant};

impl Node {
    /// A command has ended: perhaps another gap is to be stated for its disk.
    pub(crate) fn follow_gap(&mut self, now: Instant, disk: DiskIndex) {
        if !self.core.disks[disk.as_usize()].queue.is_gap_wanted() || self.is_ending() {
            return;
        }
        if let Some(gap) = self.core.disk(disk).queue.take_gap_wanted() {
            self.try_gap(now, disk, gap);
        }
    }

    /// What was measured of one disk's gaps long ago does not count any more, if it is time.
    pub(crate) fn forget_gaps(&mut self, now: Instant) {
        let Some(due) = self.core.gaps_due.filter(|&at| at <= now) else { return };
        let is_due = |disk: &&Disk| disk.gaps_due == Some(due);
        let disk = self.core.disks.iter().find(is_due).expect("it is that of a disk").index;
        self.core.disk(disk).queue.forget_gaps(now);
        self.follow_gap(now, disk);
        self.core.note_gaps_due(disk, self.is_ending());
    }

    /// A contract has ended or become another: perhaps what was measured of the host and did not
    /// fit does now.
    pub(crate) fn try_host(&mut self, now: Instant) {
        self.try_gaps(now);
        self.try_delivery(now);
    }

    fn try_gaps(&mut self, now: Instant) {
        let refused = |disk: &Disk| {
            let (gap, _) = disk.gap_refused.as_ref()?;
            Some((disk.index, *gap))
        };
        let waiting: Vec<_> = self.core.disks.iter().filter_map(refused).collect();
        waiting.into_iter().for_each(|(disk, gap)| self.try_gap(now, disk, gap));
    }

    fn try_gap(&mut self, now: Instant, disk: DiskIndex, gap: Duration) {
        let before = self.core.disks[disk.as_usize()].queue.gap();
        let owed = self.core.disk(disk).gap_refused.take().map(|(gap, _)| gap);
        if gap != before {
            let refused = self.set_gap(now, disk, gap).err();
            self.core.disk(disk).gap_refused = refused.map(|error| (gap, error));
        } // else the host is calm again: what was refused is not asked for any more
        let is_less = self.core.disks[disk.as_usize()].queue.gap() < before;
        // Who was refused because of what was measured may have it now.
        if is_less || owed.is_some_and(|owed| gap < owed) {
            self.given_back(now);
        }
        self.core.note_gaps_due(disk, self.is_ending());
    }

    /// States a gap for a disk, where all that is open on it fits with it; in shorter commands,
    /// where those of streams may be.
    fn set_gap(&mut self, now: Instant, disk: DiskIndex, gap: Duration) -> Result<(), Error> {
        let set = self.core.admit_on(now, disk, false, |core| {
            let set = core.disk(disk).queue.set_gap(now, gap);
            set.map_err(|refusal| Error::Refused(refused(disk, &refusal)))
        });
        let Err(error) = set else { return Ok(()) };
        let refusal = Box::new(error.into_refusal().expect("that is one"));
        let undecided = refusal.undecided;
        let (streams, volumes) = match undecided {
            // It is what waits now, not the contracts.
            true => Names::default(),
            false => self.not_fitting(disk, self.core.config.policy, gap),
        };
        Err(Error::GapRefused { disk, gap, undecided, streams, volumes, refusal })
    }
}

impl Core {
    /// What is charged or refused on a disk may have become another: when to look at what was
    /// measured there, unless the pool ends.
    fn note_gaps_due(&mut self, disk: DiskIndex, is_ending: bool) {
        let state = self.disk(disk);
        state.gaps_due = state.queue.gaps_due().filter(|_| !is_ending);
        self.gaps_due = self.disks.iter().filter_map(|disk| disk.gaps_due).min();
        self.wake_timers();
    }
}
