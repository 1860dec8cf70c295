//! Commits begin and end, and what the store wants done is done (`state.rs`).

use crate::api::*;
use crate::commits::state::{AHEAD, Committed};
use crate::core::Core;
use crate::limits;
use crate::work::Owner;
use alloc::vec::Vec;
use sched::Class;
use store::{IoError, IoId, IoKind};
use units::{Bytes, Instant};

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

    /// Answers `ticket` when everything up to now is committed.
    pub(crate) fn answer_when_committed(&mut self, now: Instant, ticket: Ticket) {
        if self.commits.waiting.len() >= limits::WAITERS_MAX {
            let waiting = self.commits.waiting.len() as u64;
            return self.answer(ticket, Err(Error::Busy { waiting }));
        }
        self.commits.waiting.push(ticket);
        self.commit_soon(now);
    }

    /// Begins a commit if one is due, or wanted while no stream is open (`quiet`).
    pub(crate) fn begin_commit(&mut self, now: Instant, quiet: bool) {
        let Some(due) = self.commits.due() else { return };
        let begins = due <= now || (quiet && self.commits.urgent);
        if !begins || self.read_only().is_some() {
            return;
        }
        if quiet {
            self.renew_metadata(now);
            self.commits.regular = now;
        }
        let interval = self.config.commit_interval;
        self.commits.regular = self.commits.regular.max(now) + interval;
        self.commits.due = None;
        self.commits.urgent = false;
        self.commits.started = Some(now);
        self.commits.served.append(&mut self.commits.waiting);
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
        // One that became due meanwhile was not shown while this one ran.
        if self.commits.due.is_some() {
            self.wake_timers();
        }
        for ticket in core::mem::take(&mut self.commits.served) {
            self.answer(ticket, Ok(Reply::Done));
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
        self.commits.due = None;
        let mut waiting = core::mem::take(&mut self.commits.served);
        waiting.append(&mut self.commits.waiting);
        for ticket in waiting {
            self.answer(ticket, Err(error.clone()));
        }
        news
    }

    /// Schedules what the store wants done, under the log's own contracts.
    pub(crate) fn pump_store(&mut self, now: Instant) {
        while let Some(io) = self.store.poll() {
            let piece = self.commits.log.piece();
            let flush = self.disk(io.disk).log.flush;
            match io.kind {
                IoKind::Flush => {
                    self.commits.pieces.insert(io.id, (1, None));
                    let owner = Owner::Store { io: io.id };
                    self.submit(now, io.disk, Class::RealTime(flush), DiskAction::Flush, owner);
                }
                IoKind::Write { offset, bytes } => {
                    let pieces = Bytes::new(bytes.len() as u64).div_ceil(piece);
                    self.commits.pieces.insert(io.id, (pieces, None));
                    for (index, part) in (0u64..).zip(bytes.chunks(piece.as_usize())) {
                        let action = DiskAction::WriteBytes {
                            offset: offset + piece * index,
                            bytes: part.to_vec(),
                        };
                        let owner = Owner::Store { io: io.id };
                        let state = self.disk(io.disk);
                        let write = Class::RealTime(state.log.next_write(state.queue.schedule()));
                        self.submit(now, io.disk, write, action, owner);
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
