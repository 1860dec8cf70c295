//! A few streams at a time are told what all of them have to hear (`rounds.rs`).

use crate::admission::contract;
use crate::api::StreamId;
use crate::commits::state::Committed;
use crate::limits::{self, ROUND_STEP};
use crate::node::Node;
use crate::streams::rounds::Round;
use alloc::vec::Vec;
use units::{Duration, Instant};

impl Node {
    /// The host may be late by so much: every window is made for it, as far as there is
    /// memory.
    pub(crate) fn resize_windows(&mut self, now: Instant, late: Duration) {
        let core = &mut self.core;
        core.late = late.min(limits::HOST_LATENCY_MAX).max(core.config.host_latency);
        self.rounds.resized = Some(Round::new(now));
        self.tell_resized(now);
    }

    fn tell_resized(&mut self, now: Instant) {
        let Some(mut round) = self.rounds.resized else { return };
        for _ in 0..ROUND_STEP {
            let Some(next) = self.streams.all_after(round.told).next() else {
                self.rounds.resized = None;
                return;
            };
            round.told = next.id;
            let stream = self.streams.get_mut(round.told).expect("just found");
            if !stream.closing {
                let core = &mut self.core;
                let shares = stream.shares(core);
                let blocks =
                    contract::window_blocks(&stream.contract, &shares, stream.mode, core.late);
                stream.resize(core, blocks);
            }
            self.pump(now, round.told);
        }
        self.rounds.resized = Some(round);
        self.core.wake_timers();
    }

    fn tell_committed(&mut self, now: Instant) {
        let Some((committed, mut round)) = self.rounds.committed else { return };
        let next: Vec<StreamId> = self.streams.writers_after(round.told).take(ROUND_STEP).collect();
        for &id in &next {
            let stream = self.streams.get_mut(id).expect("a writer that is open");
            if committed == Committed::Durable {
                stream.commit_ended(&mut self.core);
            }
            self.pump(now, id);
        }
        match next.last() {
            Some(&last) if next.len() == ROUND_STEP => {
                round.told = last;
                self.rounds.committed = Some((committed, round));
                self.core.wake_timers();
            }
            _ => self.rounds.committed = None,
        }
    }

    /// Begins and ends commits as they fall due, and tells the next few of what is new.
    pub(crate) fn run_commits(&mut self, now: Instant) {
        self.tell_resized(now);
        self.tell_committed(now);
        if self.rounds.committed.is_none() {
            self.core.begin_commit(now, self.streams.is_empty());
            if let Some(committed) = self.core.end_commit(now) {
                // The writers that have gone are not in the next record.
                if committed == Committed::Durable && self.core.fit_log(now) {
                    self.try_wider_profiles(now);
                    self.try_host(now);
                    self.given_back(now);
                }
                self.rounds.committed = Some((committed, Round::new(now)));
                self.tell_committed(now);
            }
        }
        self.end_shutdown(now);
    }
}
