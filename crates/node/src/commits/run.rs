//! Commits begin and end, and what the store wants done is done (`state.rs`).

use crate::api::*;
use crate::commits::state::{AHEAD, Committed};
use crate::core::Core;
use crate::limits;
use crate::work::Owner;
use alloc::vec::Vec;
use sched::{Class, Flow, TaskId};
use store::{IoError, IoId, IoKind};
use units::{Bytes, Instant};

/// How a commit in the slack asks a disk; the flows of volumes have smaller numbers.
const IN_SLACK: Class =
    Class::BestEffort { synchronous: true, flow: Flow(u64::MAX), ordered: false };

impl Core {
    /// Something has changed that shall be committed within the interval.
    pub(crate) fn changed(&mut self, now: Instant) {
        if self.commits.due.is_none() {
            let interval = self.config.commit_interval;
            let due = match self.commits.started {
                Some(started) => now.max(started + interval),
                None => now + interval,
            };
            self.commits.due = Some(due);
            self.wake_timers();
        }
    }

    /// Somebody waits: commit as soon as may be.
    pub(crate) fn commit_soon(&mut self, now: Instant) {
        let credit = self.config.commit_interval * AHEAD;
        let due = now.max(self.commits.regular.saturating_sub(credit));
        self.commits.due = Some(self.commits.due.map_or(due, |before| before.min(due)));
        self.commits.urgent = true;
        self.wake_timers();
    }

    /// A commit is under the log's contracts from now on.
    fn count_commit(&mut self, now: Instant) {
        self.commits.regular = self.commits.regular.max(now) + self.config.commit_interval;
        self.commits.due = None;
    }

    /// The commit that began in the slack is due: what of it waits comes under the contracts.
    fn leave_slack(&mut self, now: Instant) {
        self.count_commit(now);
        self.commits.in_slack = false;
        for (id, is_flush) in core::mem::take(&mut self.commits.asked_in_slack) {
            let task = self.log_task(id.disk(), is_flush);
            self.upgrade(now, id, Class::RealTime(task));
        }
    }

    /// Answers `ticket`, which is this user's, when everything up to now is committed.
    pub(crate) fn answer_when_committed(
        &mut self,
        now: Instant,
        (ticket, uid): (Ticket, u32),
        reply: Reply,
    ) {
        match self.come_for_commit(uid) {
            Ok(()) => self.answer_at_commit(now, ticket, reply),
            Err(error) => self.answer(ticket, Err(error)),
        }
    }

    /// One more of this user's requests waits for a commit: asked for before what it changes is
    /// changed, and followed by [`Core::answer_at_commit`] or [`Core::leave_commit`].
    ///
    /// # Errors
    /// [`Error::Busy`] where he has as many as he may.
    pub(crate) fn come_for_commit(&mut self, uid: u32) -> Result<(), Error> {
        self.commits.waiters.come(uid, limits::WAITERS_MAX)
    }

    /// Answers one who has come when everything up to now is committed.
    pub(crate) fn answer_at_commit(&mut self, now: Instant, ticket: Ticket, reply: Reply) {
        self.commits.waiting.push((ticket, reply));
        self.commit_soon(now);
    }

    /// One who has come waits for no commit. None can have begun in between: all of it is one step.
    pub(crate) fn leave_commit(&mut self, uid: u32) {
        self.commits.waiters.go(uid);
    }

    /// Begins a commit where one is due or somebody waits, unless one runs. One that runs in the
    /// slack comes under the log's contracts when it is due. `quiet`: no stream is open.
    pub(crate) fn begin_commit(&mut self, now: Instant, quiet: bool) {
        if self.read_only().is_some() {
            return;
        }
        let is_due = self.commits.due.is_some_and(|due| due <= now);
        let is_counted = is_due || (quiet && self.commits.urgent);
        if self.commits.running.is_some() {
            if self.commits.in_slack && is_counted {
                self.leave_slack(now);
            }
            return;
        }
        if !is_counted && !self.commits.urgent {
            return;
        }
        self.commits.in_slack = !is_counted;
        if is_counted {
            if quiet {
                self.renew_metadata(now);
                self.commits.regular = now;
            }
            self.count_commit(now);
        }
        self.commits.urgent = false;
        self.commits.started = Some(now);
        self.look_for_stuck(now);
        self.commits.served.append(&mut self.commits.waiting);
        self.commits.waiters.clear();
        self.commits.running = Some(self.store.commit());
        self.commits.begun += 1;
        self.pump_store(now);
    }

    /// Ends the running commit if the store has, or all hope of one if the
    /// metadata cannot be written.
    pub(crate) fn end_commit(&mut self, now: Instant) -> Option<Committed> {
        if let Some(error) = self.read_only() {
            return self.fail_commits(&error).then_some(Committed::Never);
        }
        match self.commits.running {
            None => return None,
            Some(Some(running)) if self.store.committed() < running => return None,
            Some(_) => self.commits.running = None,
        }
        if core::mem::take(&mut self.commits.in_slack) {
            self.commits.asked_in_slack.clear();
            // That was when this one would have come under the contracts.
            if !self.commits.urgent {
                self.commits.due = None;
            }
        }
        // One that became due meanwhile was not shown while this one ran.
        if self.commits.due.is_some() {
            self.wake_timers();
        }
        for (ticket, reply) in core::mem::take(&mut self.commits.served) {
            self.answer(ticket, Ok(reply));
        }
        if !self.commits.waiting.is_empty() {
            self.commit_soon(now);
        } else if self.store.dirty() {
            self.changed(now);
        }
        Some(Committed::Durable)
    }

    /// Says whether anything was hoped for.
    fn fail_commits(&mut self, error: &Error) -> bool {
        let news = !self.commits.idle() || !self.commits.waiting.is_empty();
        self.commits.running = None;
        self.commits.in_slack = false;
        self.commits.asked_in_slack.clear();
        (self.commits.due, self.commits.urgent) = (None, false);
        let mut waiting = core::mem::take(&mut self.commits.served);
        waiting.append(&mut self.commits.waiting);
        self.commits.waiters.clear();
        for (ticket, _) in waiting {
            self.answer(ticket, Err(error.clone()));
        }
        news
    }

    /// The contract that a disk's next flush, or its next write, of the log is under.
    fn log_task(&mut self, disk: DiskIndex, is_flush: bool) -> TaskId {
        let state = self.disk(disk);
        match is_flush {
            true => state.log.flush,
            false => state.log.next_write(state.queue.schedule()),
        }
    }

    /// Asks a disk for a piece of the store's work: in the slack where the commit is there.
    fn ask_for_log(&mut self, now: Instant, disk: DiskIndex, action: DiskAction, io: IoId) {
        let (is_flush, owner) = (matches!(action, DiskAction::Flush), Owner::Store { io });
        if self.commits.in_slack {
            let id = self.submit(now, disk, IN_SLACK, action, owner);
            self.commits.asked_in_slack.push((id, is_flush));
        } else {
            let task = self.log_task(disk, is_flush);
            self.submit(now, disk, Class::RealTime(task), action, owner);
        }
    }

    /// Schedules what the store wants done.
    pub(crate) fn pump_store(&mut self, now: Instant) {
        while let Some(io) = self.store.poll() {
            let piece = self.commits.log.piece();
            match io.kind {
                IoKind::Flush => {
                    self.commits.pieces.insert(io.id, (1, None));
                    self.ask_for_log(now, io.disk, DiskAction::Flush, io.id);
                }
                IoKind::Write { offset, bytes } => {
                    let pieces = Bytes::new(bytes.len() as u64).div_ceil(piece);
                    self.commits.pieces.insert(io.id, (pieces, None));
                    for (index, part) in (0u64..).zip(bytes.chunks(piece.as_usize())) {
                        let action = DiskAction::WriteBytes {
                            offset: offset + piece * index,
                            bytes: part.to_vec(),
                        };
                        self.ask_for_log(now, io.disk, action, io.id);
                    }
                }
                IoKind::Read { .. } => unreachable!("a running store only writes"),
            }
        }
    }

    /// A piece of the store's work has ended.
    pub(crate) fn store_piece_done(
        &mut self,
        now: Instant,
        io: IoId,
        result: Result<(), DeviceError>,
    ) {
        let (left, error) = self.commits.pieces.get_mut(&io).expect("a piece of the store's work");
        *left -= 1;
        *error = error.or(result.err());
        if *left > 0 {
            return;
        }
        let result = match *error {
            Some(error) => Err(IoError(error.0)),
            None => Ok(Vec::new()),
        };
        self.commits.pieces.remove(&io);
        self.store.done(io, result);
        self.pump_store(now);
    }
}
