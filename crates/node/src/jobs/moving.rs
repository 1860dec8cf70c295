//! Extents are moved: reserved, copied, switched to (`moves.rs`).

use crate::api::*;
use crate::core::Core;
use crate::jobs::moves::{Move, Stuck};
use crate::limits::{MOVE_AGAIN, MOVE_PIECE, MOVE_RETRY, OWNERS_STEP};
use crate::memory::arena::Use;
use crate::node::Node;
use crate::work::Owner;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use sched::Class;
use store::{EXTENT, OwnersSought, VolumeId};
use units::{Bytes, Instant};

impl Core {
    /// What became of the suspect extents of a disk.
    pub(crate) fn moves_on(&self, disk: DiskIndex) -> MoveStatus {
        let name = |id| {
            self.store.volume(id).map(|volume| String::from(volume.name())).unwrap_or_default()
        };
        let moves = &self.moves;
        let stuck = moves.stuck.range((disk, 0)..=(disk, u64::MAX));
        MoveStatus {
            moved: moves.moved.get(&disk).copied().unwrap_or(0),
            moving: moves.running.get(&disk).map(|one| one.from / EXTENT),
            occupied: moves.occupied.get(&disk).copied().unwrap_or(0),
            stuck: stuck
                .map(|(&(_, extent), stuck)| StuckExtent {
                    extent,
                    volume: name(stuck.volume),
                    why: stuck.why.clone(),
                })
                .collect(),
        }
    }

    /// Reserves the new place and the memory, and watches the old one.
    fn reserve_move(
        &mut self,
        disk: DiskIndex,
        volume: VolumeId,
        index: u64,
    ) -> Result<(), Unmoved> {
        if !self.writes.is_quiet((volume, index)) {
            return Err(Unmoved::Written);
        }
        let location = self.store.locate(volume, index).expect("the volume has the extent");
        let from = location.offset.expect("it lies on a suspect extent");
        let to = self.store.reserve(volume, index).map_err(|error| match error {
            store::StoreError::NoSpace { .. } => Unmoved::NoSpace,
            error => Unmoved::Store(error),
        })?;
        let Some(span) = self.arena.take(MOVE_PIECE, Use::BestEffort) else {
            self.store.release(disk, to);
            return Err(Unmoved::NoMemory);
        };
        self.writes.watch((volume, index));
        let (written, at) = (location.written, Bytes::ZERO);
        let upto = written.span().end;
        let (command, abandoned) = (None, false);
        let one = Move { volume, index, from, to, written, upto, at, span, command, abandoned };
        self.moves.running.insert(disk, one);
        Ok(())
    }

    /// Reads the next piece; false where all is copied.
    fn read_next(&mut self, now: Instant, disk: DiskIndex) -> bool {
        let one = &self.moves.running[&disk];
        let len = (one.upto - one.at).min(MOVE_PIECE);
        if len.is_zero() {
            return false;
        }
        let (offset, span) = (one.from + one.at, Span { len, ..one.span });
        let written = one.written.within(&(one.at..one.at + len)).into();
        let action = DiskAction::Read { offset, span, written };
        self.submit_move(now, disk, action, false);
        true
    }

    /// Writes the piece that was read.
    fn write_on(&mut self, now: Instant, disk: DiskIndex) {
        let one = &self.moves.running[&disk];
        let len = (one.upto - one.at).min(MOVE_PIECE);
        let (offset, span) = (one.to + one.at, Span { len, ..one.span });
        let action = DiskAction::Write { offset, span, valid: len };
        self.submit_move(now, disk, action, true);
    }

    fn submit_move(&mut self, now: Instant, disk: DiskIndex, action: DiskAction, write: bool) {
        let id = self.submit(now, disk, Class::Background, action, Owner::Move { write });
        self.moves.running.get_mut(&disk).expect("it runs").command = Some(id);
    }

    /// All is copied: from now on the extent lies there, unless it was written to
    /// meanwhile.
    fn switch(&mut self, now: Instant, disk: DiskIndex) -> Result<(), Unmoved> {
        let Move { volume, index, to, .. } = self.moves.running[&disk];
        if self.writes.was_written((volume, index)) || !self.writes.is_quiet((volume, index)) {
            return Err(Unmoved::Written);
        }
        // The old place may be another volume's soon, and what waits to be read there would be that
        // one's bytes.
        let from = self.moves.running[&disk].from;
        if self.transfers_in(disk, from..from + EXTENT) {
            return Err(Unmoved::Read);
        }
        self.store.relocate(volume, index, to).map_err(Unmoved::Store)?;
        *self.moves.moved.entry(disk).or_default() += 1;
        self.changed(now);
        Ok(())
    }

    /// A move is over; the new place is given back where it was not switched to.
    fn end_move(&mut self, disk: DiskIndex, switched: bool) -> Option<Move> {
        let one = self.moves.running.remove(&disk)?;
        self.arena.give(one.span, Use::BestEffort);
        self.writes.watch_no_more((one.volume, one.index));
        if !switched {
            self.store.release(disk, one.to);
        }
        self.moves.look_again();
        Some(one)
    }

    /// The extents of a volume, or of all, do not stay: what is on its way ends as soon
    /// as no command of it is under way.
    pub(crate) fn abandon_moves(&mut self, volume: Option<VolumeId>) {
        self.abandon_moves_of(|one| volume.is_none_or(|volume| one.volume == volume));
    }

    /// The same of those that are meant.
    pub(crate) fn abandon_moves_of(&mut self, is_meant: impl Fn(&Move) -> bool) {
        let running = self.moves.running.iter().filter(|(_, one)| is_meant(one));
        let disks: Vec<DiskIndex> = running.map(|(&disk, _)| disk).collect();
        for disk in disks {
            let command = self.moves.running[&disk].command;
            if command.is_none_or(|id| self.cancel(id)) {
                self.end_move(disk, false);
            } else {
                self.moves.running.get_mut(&disk).expect("it runs").abandoned = true;
            }
        }
    }
}

impl Node {
    /// Begins what moves there are to begin. Whose suspect places are is looked for in steps: a volume may
    /// have a run for each MiB.
    pub(crate) fn look_for_moves(&mut self, now: Instant) {
        let moves = &mut self.core.moves;
        let wanted = moves.wanted || moves.due().is_some_and(|due| due <= now);
        if !wanted {
            return;
        }
        if self.is_ending() || self.core.read_only().is_some() {
            return self.core.moves.rest();
        }
        let goes_on = !self.core.moves.sought.is_empty();
        if !goes_on {
            self.seek_suspects();
        }
        let mut left = OWNERS_STEP;
        while let Some(mut entry) = self.core.moves.sought.first_entry() {
            let disk = *entry.key();
            let (places, sought) = entry.get_mut();
            if !self.core.store.seek_owners(disk, places, sought, &mut left) {
                return self.core.wake_timers();
            }
            let (_, (_, sought)) = entry.remove_entry();
            let occupied = self.core.store.owners_found(disk, &sought);
            self.move_from(now, disk, occupied);
        }
        if goes_on && self.core.moves.wanted {
            self.seek_suspects();
            self.core.wake_timers();
        }
    }

    /// Begins to look for the volumes that have the suspect places of each disk.
    fn seek_suspects(&mut self) {
        self.core.moves.wanted = false;
        for state in &self.core.disks {
            let suspects = state.queue.seen().suspects().map(|suspect| suspect.extent);
            let taken = self.core.store.taken(state.index, suspects);
            self.core.moves.sought.insert(state.index, (taken, OwnersSought::default()));
        }
    }

    /// Begins to move one of the suspect extents of a disk that hold data, if none is on its way.
    fn move_from(&mut self, now: Instant, disk: DiskIndex, occupied: Vec<(u64, (VolumeId, u64))>) {
        let moves = &mut self.core.moves;
        moves.occupied.insert(disk, occupied.len() as u64);
        moves.stuck.retain(|&(on, extent), _| {
            on != disk || occupied.iter().any(|&(occupied, _)| occupied == extent)
        });
        for (extent, (volume, index)) in occupied {
            let moves = &mut self.core.moves;
            if moves.running.contains_key(&disk) {
                return;
            }
            let waits = moves.stuck.get(&(disk, extent)).is_some_and(|stuck| stuck.again > now);
            if waits {
                continue;
            }
            match self.begin_move(now, disk, volume, index) {
                Ok(()) => drop(self.core.moves.stuck.remove(&(disk, extent))),
                Err(why) => self.stays(now, (disk, extent), volume, why),
            }
        }
    }

    fn stays(&mut self, now: Instant, place: (DiskIndex, u64), volume: VolumeId, why: Unmoved) {
        let pause = match why {
            Unmoved::Written | Unmoved::Read | Unmoved::NoMemory => MOVE_AGAIN,
            Unmoved::Refused(ref error) if error.is_undecided() => MOVE_AGAIN,
            _ => MOVE_RETRY,
        };
        let again = now.saturating_add(pause);
        self.core.moves.stuck.insert(place, Stuck { volume, why, again });
        self.core.wake_timers();
    }

    fn begin_move(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        volume: VolumeId,
        index: u64,
    ) -> Result<(), Unmoved> {
        let before = self.core.shares(volume);
        self.core.reserve_move(disk, volume, index)?;
        if self.core.shares(volume) != before
            && let Err(error) = self.admit_again(now, volume)
        {
            self.core.end_move(disk, false);
            // What was admitted for the larger part holds for the smaller one, too,
            // where the state does not let it be put back right now.
            let _ = self.admit_again(now, volume);
            return Err(Unmoved::Refused(Box::new(error)));
        }
        if !self.core.read_next(now, disk) {
            self.end_copy(now, disk);
        }
        Ok(())
    }

    /// Contracts of a volume are admitted for the part of the disk that it lies on now,
    /// in the place of what they were admitted for.
    fn admit_again(&mut self, now: Instant, volume: VolumeId) -> Result<(), Error> {
        if !self.core.config.admission {
            return Ok(());
        }
        let streams: Vec<StreamId> = self.streams.on(volume).collect();
        for id in streams {
            let stream = self.streams.get_mut(id).expect("it is open");
            let (contract, mode) = (stream.contract, stream.mode);
            if stream.group.is_some() {
                continue; // it may lie anywhere as it is
            }
            let shares = stream.shares(&self.core);
            let asked = self.core.tasks(&contract, &shares, mode);
            if asked.is_some_and(|asked| stream.has_tasks(&asked)) {
                continue;
            }
            stream.tasks =
                self.core.change_in_turn(now, &contract, (&shares, mode), &stream.tasks)?;
            stream.find_in_slack(&mut self.core, now);
        }
        self.serve_again(now, volume)
    }

    /// A piece of a move has been read or written, or the disk failed on it.
    pub(crate) fn move_piece_done(
        &mut self,
        now: Instant,
        disk: DiskIndex,
        write: bool,
        result: Result<(), DeviceError>,
    ) {
        let one = self.core.moves.running.get_mut(&disk).expect("a move outlives its commands");
        one.command = None;
        if one.abandoned {
            self.core.end_move(disk, false);
            return;
        }
        match (result, write) {
            (Ok(()), false) => self.core.write_on(now, disk),
            (Ok(()), true) => {
                one.at += (one.upto - one.at).min(MOVE_PIECE);
                if !self.core.read_next(now, disk) {
                    self.end_copy(now, disk);
                }
            }
            (Err(error), false) => {
                let offset = EXTENT * one.index + one.at;
                self.give_up_move(now, disk, Unmoved::Unreadable { offset, error });
            }
            (Err(error), true) => self.give_up_move(now, disk, Unmoved::Unwritable { error }),
        }
    }

    fn end_copy(&mut self, now: Instant, disk: DiskIndex) {
        match self.core.switch(now, disk) {
            Ok(()) => {
                let one = self.core.end_move(disk, true).expect("it ran");
                // Perhaps the part of the disk is smaller now: then it costs less.
                let _ = self.admit_again(now, one.volume);
            }
            Err(why) => self.give_up_move(now, disk, why),
        }
    }

    fn give_up_move(&mut self, now: Instant, disk: DiskIndex, why: Unmoved) {
        let one = self.core.end_move(disk, false).expect("it ran");
        let _ = self.admit_again(now, one.volume);
        self.stays(now, (disk, one.from / EXTENT), one.volume, why);
    }
}
