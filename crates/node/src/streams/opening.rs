//! Streams are opened: who may, what each is given, and what it begins with.
//!
//! A writer that joins a group must not put off the group's next request. Where the disk has just given its
//! slack away, that cannot be decided for a moment: the opening waits, and is tried again some times in a
//! period, for some periods. ([`Refusal::undecided`]; others are told so at once.)

use crate::admission::contract;
use crate::api::*;
use crate::best_effort::Gap;
use crate::limits;
use crate::memory::places::WindowMemory;
use crate::node::Node;
use crate::streams::stream::{self, Admitted, Stream};
use crate::streams::undecided::Undecided;
use crate::volumes::rings;
use alloc::string::String;
use alloc::vec::Vec;
use store::{EXTENT, VolumeId};
use units::{Bytes, Instant};

impl Node {
    /// [`Op::Open`], and what asks for less.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        ticket: Ticket,
        opening: &Opening,
        region: Option<Region>,
    ) {
        self.open_or_wait(now, ticket, (opening, region), None);
    }

    /// The same of one that has waited, and waits until then at the latest.
    fn open_or_wait(
        &mut self,
        now: Instant,
        ticket: Ticket,
        (opening, region): (&Opening, Option<Region>),
        until: Option<Instant>,
    ) {
        let &Opening { mode, ref contract, start, miss, .. } = opening;
        let admitted = self.may_open(opening, region.is_some()).and_then(|volume| {
            let wanted = (mode, contract, miss);
            self.with_memory(now, |node| {
                let mut window_memory = WindowMemory::new(region);
                let admitted =
                    stream::admit(&mut node.core, now, volume, wanted, &mut window_memory)?;
                Ok((volume, window_memory, admitted))
            })
        });
        match admitted {
            Err(error) => {
                let what = (ticket, opening, region);
                if let Some(error) = self.waits_to_open(now, what, error, until) {
                    self.core.answer(ticket, Err(error));
                }
            }
            Ok((volume, window_memory, Admitted { tasks, group, places, odds })) => {
                let id = StreamId(self.next_stream);
                self.next_stream += 1;
                let window = contract.block * places.len() as u64;
                let memory = (window_memory, places, region.is_some());
                let in_a_row = contract::in_a_row(contract, &self.core.shares(volume));
                let from = (start, in_a_row);
                let mut made =
                    Stream::new(id, volume, mode, *contract, (tasks, group), memory, from, now);
                made.odds = odds;
                self.streams.insert(made);
                self.core.writes.kept.opened(volume, id);
                let reply = Reply::Stream { stream: id, window };
                self.begin(now, ticket, id, opening, reply);
            }
        }
    }

    /// A stream that was just opened: its answer, and its first requests.
    fn begin(
        &mut self,
        now: Instant,
        ticket: Ticket,
        id: StreamId,
        opening: &Opening,
        reply: Reply,
    ) {
        let has_writer = self.streams.has_writer(id);
        let stream = self.streams.get_mut(id).expect("it was just opened");
        let (volume, mode) = (stream.volume, stream.mode);
        match mode {
            Mode::Read if opening.early => {
                let begun = stream.begin_at_once(&mut self.core, now, has_writer);
                debug_assert!(begun.is_ok(), "it starts within its volume");
            }
            // The window fills from now on, not from the first read.
            Mode::Read => stream.fill_window(&mut self.core, now, has_writer),
            Mode::Update => {
                stream.load_window(&mut self.core, now);
            }
            Mode::Write => stream.give_up_ahead(&mut self.core, now),
        }
        match self.gap_before(volume, mode, opening.start) {
            Some((extent, gap)) => {
                let gap = Gap { volume, extent, range: gap };
                self.best_effort.prepare(&mut self.core, now, ticket, gap, reply);
                self.close_unopened(now);
            }
            None => self.core.answer(ticket, Ok(reply)),
        }
    }

    /// The volume, where such a stream may be opened on it.
    fn may_open(&self, opening: &Opening, is_shared: bool) -> Result<VolumeId, Error> {
        let &Opening { volume: ref name, mode, ref contract, start, .. } = opening;
        let volume = self.find(name)?;
        if self.streams.len() >= limits::STREAMS_MAX {
            return Err(Error::Busy { waiting: self.streams.len() as u64 });
        }
        contract.check()?;
        if mode == Mode::Update && !is_shared {
            let rule = "a stream that reads and writes shares its window with its program";
            return Err(Error::Invalid { what: "mode", rule });
        }
        let found = self.core.store.volume(volume).expect("just found");
        let (limit, length) = (found.limit(), found.length());
        match mode {
            Mode::Read if start > length => Err(Error::BeyondEnd { size: length }),
            Mode::Read if start < found.start() => Err(Error::GivenUp { start: found.start() }),
            Mode::Read => Ok(volume),
            Mode::Update if found.is_ring() => {
                Err(rings::not_on_a_ring("stream that reads and writes"))
            }
            Mode::Write | Mode::Update => {
                rings::check_start(found, contract.block, start)?;
                self.may_write(volume, name, contract, start, limit).map(|()| volume)
            }
        }
    }

    fn may_write(
        &self,
        volume: VolumeId,
        name: &str,
        contract: &Contract,
        start: Bytes,
        size: Bytes,
    ) -> Result<(), Error> {
        if let Some(error) = self.core.read_only() {
            return Err(error);
        }
        // Asked again after a while, it may find another end than at first.
        let unclear = self.core.writes.ends.unclear_for(&self.core.store, volume, start);
        if unclear.is_some() {
            return Err(Error::VolumeBusy { name: String::from(name), streams: 0 });
        }
        let writers = u64::from(self.writer_of(name).is_some());
        if writers > 0 || self.best_effort.writes(volume) {
            return Err(Error::VolumeBusy { name: String::from(name), streams: writers });
        }
        if !start.is_multiple_of(contract.block) {
            return Err(Error::Invalid { what: "start", rule: "a multiple of the block size" });
        }
        if start >= size {
            return Err(Error::VolumeFull { size });
        }
        Ok(())
    }

    /// The bytes before `start` in its extent that were never written.
    fn gap_before(
        &self,
        volume: VolumeId,
        mode: Mode,
        start: Bytes,
    ) -> Option<(u64, core::ops::Range<Bytes>)> {
        let (extent, within) = (start / EXTENT, start % EXTENT);
        let before = self.core.store.locate(volume, extent)?.written.watermark();
        (mode.writes() && before < within).then_some((extent, before..within))
    }

    /// What is said to an opening that failed; none where it waits.
    fn waits_to_open(
        &mut self,
        now: Instant,
        (ticket, opening, region): (Ticket, &Opening, Option<Region>),
        error: Error,
        until: Option<Instant>,
    ) -> Option<Error> {
        let found = self.core.store.find(&opening.volume).filter(|found| found.is_thin());
        let waits = error.is_undecided() && opening.mode == Mode::Write && !self.is_ending();
        let Some(volume) = found.filter(|_| waits) else { return Some(error) };
        let period = opening.contract.period();
        let longest = period.saturating_mul(limits::OPENS_FOR).min(limits::OPENS_FOR_MAX);
        let until = until.unwrap_or(now.saturating_add(longest));
        let again = now.saturating_add(period / limits::OPENS_AGAIN);
        if again > until {
            return Some(error);
        }
        self.core.search = None;
        // This very volume, whatever is called so by then.
        let opening = Opening { volume: volume.id().as_name(), ..opening.clone() };
        self.core.undecided.push(Undecided { ticket, opening, region, again, until });
        self.core.wake_timers();
        None
    }

    /// Openings that wait are tried again.
    pub(crate) fn open_undecided(&mut self, now: Instant) {
        if self.core.undecided.iter().all(|one| one.again > now) {
            return;
        }
        let all = core::mem::take(&mut self.core.undecided);
        let (due, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.again <= now);
        self.core.undecided = later;
        for Undecided { ticket, opening, region, until, .. } in due {
            self.open_or_wait(now, ticket, (&opening, region), Some(until));
        }
    }

    /// The pool is shut down: no opening waits any more.
    pub(crate) fn refuse_undecided(&mut self) {
        for one in core::mem::take(&mut self.core.undecided) {
            self.core.answer(one.ticket, Err(Error::ShuttingDown));
        }
    }
}
