//! What an open stream is promised becomes something else: by its program, or because its volume
//! lies otherwise.
//!
//! Invariant: what is refused changes nothing.

use crate::admission::contract::{self, Joined};
use crate::api::*;
use crate::node::Node;
use alloc::vec::Vec;
use units::{Bytes, Duration, Instant};

/// What a stream was promised for another map of its volume, beside what it has.
pub(crate) struct Promised {
    stream: StreamId,
    tasks: Vec<Joined>,
    /// What its window grows by, and the blocks that it has then.
    memory: Vec<Bytes>,
    blocks: u64,
}

impl Node {
    /// Gives an open stream another rate or burst, or says why not and changes
    /// nothing.
    pub(crate) fn change_stream(
        &mut self,
        now: Instant,
        id: StreamId,
        contract: &Contract,
    ) -> Result<Reply, Error> {
        let core = &mut self.core;
        let has_writer = self.streams.has_writer(id);
        let stream = self.streams.get_mut(id).filter(|stream| !stream.closing);
        let stream = stream.ok_or(Error::NoSuchStream { stream: id })?;
        contract.check()?;
        if contract.block != stream.contract.block {
            let rule = "stays what it was while a stream is open; open another one";
            return Err(Error::Invalid { what: "block size", rule });
        }
        if stream.odds.is_some() && contract != &stream.contract {
            let rule = "those of a stream that may be late now and then stay; open another one";
            return Err(Error::Invalid { what: "rate and burst", rule });
        }
        let group = core.group_after(stream, contract)?;
        let shares = match group {
            Some(_) => {
                core.shares(stream.volume).iter().map(|one| one.of_member(contract)).collect()
            }
            None => stream.shares(core),
        };
        let blocks = contract::window_blocks(contract, &shares, stream.mode, core.late);
        if stream.mode.writes() {
            let volume = core.store.volume(stream.volume).expect("open volumes stay");
            core.check_ring(volume, contract, (&shares, stream.mode))?;
        }
        // What even idle disks could not keep is refused as such, however much memory it
        // would take.
        let could_be = core.tasks(contract, &shares, stream.mode).is_some();
        let more = if could_be { stream.more_memory(core, blocks)? } else { Vec::new() };
        let (mode, volume) = (stream.mode, stream.volume);
        // Where the log's contracts would grow, it is both or neither.
        let writes = mode.writes();
        let grows = writes && core.log_grows(volume, contract, mode);
        let moves = group.is_some_and(|group| stream.group != Some(group));
        let disks = (0..core.disks.len() as u16).map(DiskIndex).filter(|_| grows || moves);
        let groups = core.groups.clone();
        let changed = core.attempt(disks, |core| {
            let tasks = match group {
                Some(group) => core.move_member(now, stream, group, contract, &shares[0])?,
                None => core.change(now, contract, &shares, mode, &stream.tasks)?,
            };
            if writes {
                core.log_takes(now, volume, contract, mode)?;
            }
            Ok(tasks)
        });
        match changed {
            Ok(tasks) => {
                stream.grow(more);
                let begins = match group {
                    Some(group) => core.group_begins(&group).max(now),
                    None => core.begins(&tasks).max(now),
                };
                stream.change(core, now, begins, contract, tasks, blocks);
                core.end_groups();
                stream.find_in_slack(core, now);
                stream.hold_back(core, now, has_writer);
                let window = stream.contract.block * blocks;
                self.try_host(now);
                self.given_back(now);
                Ok(Reply::Stream { stream: id, window })
            }
            Err(error) => {
                core.groups = groups;
                stream.give(core, more);
                Err(error)
            }
        }
    }

    /// Promises a stream what its volume's map asks for now, beside what it has, which
    /// stays; `None` where that is the same.
    pub(crate) fn promise_anew(
        &mut self,
        now: Instant,
        id: StreamId,
    ) -> Result<Option<Promised>, Error> {
        let core = &mut self.core;
        let stream = self.streams.get_mut(id).expect("it is open");
        if stream.group.is_some() {
            return Ok(None); // its volume may lie anywhere as it is
        }
        let shares = stream.shares(core);
        let (contract, mode) = (stream.contract, stream.mode);
        contract::check_block(&contract, &shares, |disk| core.seen(disk).profile)?;
        let asked = core.tasks(&contract, &shares, mode);
        if asked.is_some_and(|asked| stream.has_tasks(&asked)) {
            return Ok(None);
        }
        let blocks = contract::window_blocks(&contract, &shares, mode, core.late);
        let memory = stream.more_memory(core, blocks)?;
        let old: Vec<_> =
            stream.tasks.iter().map(|old| (old.disk, core.next_release(old))).collect();
        match core.join(now, &contract, (&shares, &stream.tasks), mode, Duration::ZERO) {
            Ok(tasks) => {
                // It goes by these from its next request on, which nobody has asked to put off.
                let turn = |disk| old.iter().find(|(on, _)| *on == disk).map(|&(_, turn)| turn);
                let is_put_off = |new: &&Joined| {
                    let turn = turn(new.disk);
                    turn.is_some_and(|turn| core.is_put_off((new.disk, new.id), turn, now))
                };
                let Some(late) = tasks.iter().find(is_put_off).map(|new| new.disk) else {
                    return Ok(Some(Promised { stream: id, tasks, memory, blocks }));
                };
                core.leave(&tasks);
                stream.give(core, memory);
                Err(Error::Refused(core.undecided(late)))
            }
            Err(error) => {
                stream.give(core, memory);
                Err(error)
            }
        }
    }

    /// The stream goes by what it was promised anew. Its old tasks stay until the requests
    /// that were made under them have ended.
    pub(crate) fn keep_from_now_on(&mut self, now: Instant, promised: Promised) {
        let has_writer = self.streams.has_writer(promised.stream);
        let stream = self.streams.get_mut(promised.stream).expect("it is open");
        stream.grow(promised.memory);
        stream.window.target = promised.blocks.max(stream.window.target);
        stream.replace_tasks(&mut self.core, promised.tasks);
        stream.hold_back(&self.core, now, has_writer);
    }

    /// Nothing was done under a promise, and nothing will be.
    pub(crate) fn withdraw(&mut self, promised: Promised) {
        let stream = self.streams.get_mut(promised.stream).expect("it is open");
        stream.give(&mut self.core, promised.memory);
        self.core.leave(&promised.tasks);
    }
}
