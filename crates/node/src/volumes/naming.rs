//! Changes of volumes as files have them: names that are paths, lengths, times; durable when they
//! are answered, or with the next commit. (`listing` has what lies where.)
//!
//! Invariants: nothing lies under a volume that is no directory, whoever makes or renames it; a
//! rename of a directory takes all that lies under it, in one step.

use crate::api::*;
use crate::limits;
use crate::node::Node;
use crate::volumes::permission;
use crate::volumes::rings::not_on_a_ring;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use store::{Ownership, REMOVED_DIRECTORY, RecordContent, Times, Volume, VolumeId};
use units::{Bytes, Instant};

/// What may become of the volume whose place a rename takes.
struct Taken {
    /// It is removed, or
    replace: bool,
    /// gets this name.
    keep_as: Option<String>,
    /// No other volume is replaced.
    only: Option<VolumeId>,
}

impl Node {
    /// What time it is at [`Instant::EPOCH`], in nanoseconds since 1970, as far as is known now:
    /// volumes have times from then on.
    pub fn set_wall_clock(&mut self, epoch: i64) {
        self.wall_clock = Some(epoch);
    }

    pub(crate) fn tell_time(&mut self, now: Instant) {
        self.core.latest = now;
        if let Some(epoch) = self.wall_clock {
            let since = i64::try_from(now.saturating_since(Instant::EPOCH).as_nanos());
            let clock = epoch.saturating_add(since.unwrap_or(i64::MAX));
            // Told of much at one instant: to change the store costs more than a look.
            if self.core.store.clock() != Some(clock) {
                self.core.store.set_clock(clock);
            }
        }
    }

    /// Makes a change of a volume, or says why not and changes nothing.
    pub(crate) fn change_volume(
        &mut self,
        now: Instant,
        who: &Who,
        op: Op,
    ) -> Result<Reply, Error> {
        let done = match op {
            Op::VolumeCreate { name, size, placement, access } => {
                let name = self.whole_name(who, &name)?;
                let volume = self.create(who, &name, (size, false), &placement, access)?;
                return Ok(Reply::Made { volume });
            }
            Op::RingCreate { name, size, placement, access, keep } => {
                Self::check_keep(keep)?;
                let name = self.whole_name(who, &name)?;
                let volume = self.create(who, &name, (size, true), &placement, access)?;
                keep.map_or(Ok(()), |_| self.keep_for(now, &name, keep))?;
                return Ok(Reply::Made { volume });
            }
            Op::RingKeep { name, keep } => self.keep_for(now, &name, keep),
            Op::VolumeCopied { name, of, start } => self.copied(who, &name, (&of, start)),
            Op::VolumeResize { name, size, may_cut } => {
                self.resize(now, &name, (size, may_cut), &[])
            }
            Op::VolumeResizeWithin { name, size, may_cut, rooms } => {
                self.resize(now, &name, (size, may_cut), &rooms)
            }
            Op::VolumeTruncate { name, length, unless_changed: None } => {
                self.truncate(now, &name, (length, None))
            }
            Op::VolumeTruncate { name, length, unless_changed: Some((writer, known)) } => {
                match self.is_another_than(&name, length, (writer, known))? {
                    true => Ok(()),
                    false => self.truncate(now, &name, (length, Some(writer))),
                }
            }
            Op::VolumeAccess { name, access } => self.give_away(who, &name, access),
            Op::VolumeRename { name, to, replace, keep_as, is, only, keep_directory } => {
                let taken = Taken { replace, keep_as, only };
                self.rename(now, who, (&name, is, &to), (taken, keep_directory))
            }
            Op::VolumeExtend { name, length } => self.extend(&name, length),
            Op::VolumeTimes { name, accessed, modified } => {
                self.set_times(&name, accessed, modified)
            }
            Op::VolumeDelete { name, only, keep_directory } => {
                self.delete(now, who, &name, (only, keep_directory))
            }
            _ => {
                let rule = "a change of a volume's name, size, owner or times";
                Err(Error::Invalid { what: "operation", rule })
            }
        };
        done.map(|()| Reply::Done)
    }

    /// Makes a change that the next commit makes durable; one comes soon where much waits, and
    /// where more waits than a record has room for, the answer comes with it.
    pub(crate) fn staged(&mut self, now: Instant, who: &Who, ticket: Ticket, op: Op) {
        self.change_where(now, (ticket, who.uid), |node| {
            let reply = node.change_volume(now, who, op)?;
            let size = node.core.store.staged_size();
            let waits = size > limits::STAGED_MAX;
            if !waits {
                node.core.changed(now);
                if size > limits::STAGED_SOON {
                    node.core.commit_soon(now);
                }
            }
            Ok((reply, waits))
        });
    }

    pub(crate) fn note_made(&mut self, volume: VolumeId) {
        if let Some(at) = self.core.store.clock() {
            let times = Times { accessed: at, modified: at, changed: at };
            // Where there is no room for its times, the volume is there without.
            let _ = self.core.store.set_times(volume, times);
        }
    }

    /// What lies directly under the directory of this name has changed.
    pub(crate) fn touch_above(&mut self, name: &str) {
        let above = name.rsplit_once('/').and_then(|(above, _)| self.core.store.find(above));
        if let Some(above) = above.map(Volume::id) {
            self.core.store.note_length(above, Bytes::ZERO);
        }
    }

    /// Nothing has this name any more. A directory that was there only because of that is there no
    /// longer, unless it is to be kept. Where there is no room for the volume that would stand for it,
    /// it goes, too: what was removed was to be removed in any case.
    pub(crate) fn left(&mut self, who: &Who, name: &str, keep_directory: bool) {
        self.touch_above(name);
        let Some((above, _)) = name.rsplit_once('/').filter(|_| keep_directory) else { return };
        if self.core.store.find(above).is_none() && !self.has_entries(above) {
            let mode = Some(Ownership::DIRECTORY | 0o755);
            let access = Access { mode, ..Access::default() };
            let size = (Bytes::ZERO, false);
            let _ = self.create(who, above, size, &Placement::default(), access);
        }
    }

    /// Whether a volume of this kind may have this name, beside those that there are.
    pub(crate) fn check_place(&self, name: &str, kind: u16) -> Result<(), Error> {
        let store = &self.core.store;
        check_reserved(name, kind)?;
        for (at, _) in name.match_indices('/') {
            let above = store.find(&name[..at]);
            if at > 0 && above.is_some_and(|volume| !is_directory(volume)) {
                let rule = "what stands before a slash is a directory, or nothing yet";
                return Err(Error::Invalid { what: "name", rule });
            }
        }
        if kind != Ownership::DIRECTORY && self.has_entries(name) {
            return Err(store::StoreError::VolumeExists { name: name.into() }.into());
        }
        Ok(())
    }

    pub(crate) fn check_removable(&self, volume: VolumeId) -> Result<(), Error> {
        let found = self.core.store.volume(volume).expect("just found");
        if is_directory(found) && self.has_entries(found.name()) {
            return Err(Error::NotEmpty { name: found.name().into() });
        }
        Ok(())
    }

    fn has_entries(&self, name: &str) -> bool {
        let under = format!("{name}/");
        self.core.store.named(&under, &under).next().is_some()
    }

    fn rename(
        &mut self,
        now: Instant,
        who: &Who,
        (asked, is, to): (&str, Option<VolumeId>, &str),
        (mut taken, keep_directory): (Taken, bool),
    ) -> Result<(), Error> {
        let to = &*self.whole_name(who, to)?;
        let keep_as = taken.keep_as.take().map(|name| self.whole_name(who, &name)).transpose()?;
        let store = &self.core.store;
        let own = store.find(asked).map(Volume::id);
        let from = match own.and_then(|id| store.volume(id)) {
            Some(own) => own.name().into(),
            None => self.whole_name(who, asked)?,
        };
        let mut moved = self.moved(who, asked, (own, &from), to)?;
        if is.is_some() && is != own {
            return Err(Error::OtherVolume { name: asked.into() });
        }
        if is_under(to, &from) {
            let rule = "a directory does not come to lie under itself";
            return Err(Error::Invalid { what: "name", rule });
        }
        let is_at = |name: &str, place: &str| name == place || is_under(name, place);
        if keep_as.as_ref().is_some_and(|name| is_at(name, &from) || is_at(name, to)) {
            let rule =
                "what is kept comes neither to the old name nor to the new one, nor under them";
            return Err(Error::Invalid { what: "name", rule });
        }
        if from == to {
            return Ok(());
        }
        self.check_place(to, self.kind_of(own))?;
        let removed = self.make_way(who, to, own, &taken, keep_as.is_some())?;
        if let (Some(kept), Some(name)) = (removed, keep_as) {
            // Whether it may lie there the store sees by the names that all of them have then.
            check_reserved(&name, self.kind_of(removed))?;
            moved.insert(0, (kept, name));
            self.core.store.rename(&moved, None)?;
            if self.kind_of(own) == Ownership::DIRECTORY {
                // What is taken is a directory, too.
                self.core.store.note_moved(to, &moved[0].1);
                self.core.store.note_moved(&from, to);
            }
            self.touch_above(&moved[0].1);
            self.left(who, &from, keep_directory);
            self.touch_above(to);
            return Ok(());
        }
        if let Some(removed) = removed {
            self.core.abandon_moves(Some(removed));
        }
        self.core.store.rename(&moved, removed)?;
        if self.kind_of(own) == Ownership::DIRECTORY {
            self.core.store.note_moved(&from, to);
        }
        self.left(who, &from, keep_directory);
        self.touch_above(to);
        if let Some(removed) = removed {
            self.forget_removed(now, removed, to);
        }
        Ok(())
    }

    /// The name in full, where that lies in a directory that is given by its number, or by an earlier
    /// name. Whoever may not know of the directory is not told its name by that.
    fn whole_name(&self, who: &Who, name: &str) -> Result<String, Error> {
        let store = &self.core.store;
        let knows = |directory: &Volume| permission::knows(who, directory.ownership());
        let is_shown = |directory: &str| {
            store.find(directory).is_some_and(knows) || self.directory(who, directory).is_some()
        };
        let is_known = |whole: &str| match store.is_moved(name) {
            true => is_shown(whole) || whole.rsplit_once('/').is_some_and(|(it, _)| is_shown(it)),
            false => store.directory_of(name).is_none_or(knows),
        };
        let known = store.whole_name(name).filter(|whole| is_known(whole));
        known.map(Cow::into_owned).ok_or_else(|| Error::NoSuchVolume { name: name.into() })
    }

    /// What kind a volume is of; a name that no volume stands for is a directory's.
    fn kind_of(&self, volume: Option<VolumeId>) -> u16 {
        let volume = volume.and_then(|id| self.core.store.volume(id));
        volume.map_or(Ownership::DIRECTORY, |volume| volume.ownership().kind())
    }

    /// The volumes that a rename of what was `asked` for moves, and what they are called then:
    /// all of them are the caller's.
    fn moved(
        &self,
        who: &Who,
        asked: &str,
        (own, from): (Option<VolumeId>, &str),
        to: &str,
    ) -> Result<Vec<(VolumeId, String)>, Error> {
        let store = &self.core.store;
        let under = format!("{from}/");
        let mut moved: Vec<(VolumeId, String)> = Vec::new();
        moved.extend(own.iter().map(|id| (*id, to.into())));
        let mut size = if own.is_some() { RecordContent::rename(to) } else { Bytes::ZERO };
        for (at, id) in store.named(&under, &under) {
            let to = format!("{to}/{}", &at[under.len()..]);
            size += RecordContent::rename(&to);
            moved.push((id, to));
            if size > limits::RENAMED_MAX {
                break;
            }
        }
        if moved.is_empty() {
            return Err(Error::NoSuchVolume { name: asked.into() });
        }
        let whose = |id| store.volume(id).expect("just found").ownership();
        let mut all = moved.iter().map(|(id, _)| whose(*id));
        if !all.clone().all(|whose| permission::may(who, whose, Act::Own)) {
            // What lies under it, and is hidden, is not named.
            let (name, act) = (asked.into(), Act::Own);
            return Err(match all.any(|whose| permission::knows(who, whose)) {
                true => Error::NotPermitted { name, act },
                false => Error::NoSuchVolume { name },
            });
        }
        if size > limits::RENAMED_MAX {
            let rule = "more lies under it than is renamed at once: move it in parts";
            return Err(Error::Invalid { what: "directory", rule });
        }
        Ok(moved)
    }

    /// The volume whose place a rename takes, where it may. A directory that no volume stands for
    /// comes into the one that is there, and takes nobody's place.
    fn make_way(
        &self,
        who: &Who,
        to: &str,
        own: Option<VolumeId>,
        taken: &Taken,
        keep: bool,
    ) -> Result<Option<VolumeId>, Error> {
        let exists = || Error::from(store::StoreError::VolumeExists { name: to.into() });
        let moves_directory = self.kind_of(own) == Ownership::DIRECTORY;
        let not_empty = || Err(Error::NotEmpty { name: to.into() });
        let Some(volume) = self.core.store.find(to) else {
            if taken.only.is_some() {
                return Err(Error::OtherVolume { name: to.into() });
            }
            return match self.has_entries(to) {
                true if taken.replace && moves_directory => not_empty(),
                true => Err(exists()),
                false => Ok(None),
            };
        };
        if !taken.replace || is_directory(volume) != moves_directory {
            return Err(exists());
        }
        permission::check(who, to, volume.ownership(), Act::Own)?;
        if taken.only.is_some_and(|only| only != volume.id()) {
            return Err(Error::OtherVolume { name: to.into() });
        }
        if self.has_entries(to) {
            return not_empty();
        }
        if own.is_none() {
            return Ok(None);
        }
        if !keep {
            self.check_idle(volume.id(), to)?;
        }
        Ok(Some(volume.id()))
    }

    fn extend(&mut self, name: &str, length: Bytes) -> Result<(), Error> {
        let volume = self.find(name)?;
        let found = self.core.store.volume(volume).expect("just found");
        let (size, is_ring) = (found.size(), found.is_ring());
        if is_ring {
            return Err(not_on_a_ring("length"));
        }
        if length > size {
            let rule = "at most the volume's size: make it larger first";
            return Err(Error::Invalid { what: "length", rule });
        }
        self.core.writes.note_change(volume);
        self.core.store.note_length(volume, length);
        Ok(())
    }

    /// Whether anybody else than a writer may have changed bytes of the volume since he was told this
    /// number, or less than `length` is recorded.
    fn is_another_than(
        &self,
        name: &str,
        length: Bytes,
        (writer, known): (Writer, u64),
    ) -> Result<bool, Error> {
        let volume = self.find(name)?;
        let recorded = self.core.store.volume(volume).expect("just found").length();
        Ok(self.core.writes.changes_of(volume).not_by(writer) != known || recorded < length)
    }

    /// Cuts what is recorded where it is: a cut to a smaller size would give others the space, and
    /// to get it back is another step.
    fn truncate(
        &mut self,
        now: Instant,
        name: &str,
        (length, by): (Bytes, Option<Writer>),
    ) -> Result<(), Error> {
        let volume = self.find(name)?;
        let found = self.core.store.volume(volume).expect("just found");
        let (size, recorded, called) = (found.size(), found.length(), String::from(found.name()));
        if found.is_ring() {
            return Err(not_on_a_ring("length"));
        }
        if length > recorded {
            let rule = "at most what is recorded: write what shall be there";
            return Err(Error::Invalid { what: "length", rule });
        }
        if found.placement().thin {
            // Its places are everybody's again. The size takes none, so that it comes back.
            self.resize(now, name, (length, true), &[])?;
            return self.resize(now, name, (size, false), &[]);
        }
        self.check_idle(volume, &called)?;
        self.core.abandon_moves(Some(volume));
        self.core.store.truncate(volume, length)?;
        self.core.writes.note_cut(volume, length..recorded, by);
        self.core.writes.ends.hides(&self.core.store, volume);
        Ok(())
    }

    fn set_times(
        &mut self,
        name: &str,
        accessed: Option<i64>,
        modified: Option<i64>,
    ) -> Result<(), Error> {
        let volume = self.find(name)?;
        let before = self.core.store.volume(volume).expect("just found").times();
        let before = before.unwrap_or_default();
        let times = Times {
            accessed: accessed.unwrap_or(before.accessed),
            modified: modified.unwrap_or(before.modified),
            changed: self.core.store.clock().unwrap_or(before.changed),
        };
        Ok(self.core.store.set_times(volume, times)?)
    }

    /// What is recorded of a volume was copied from `start` of another on.
    fn copied(&mut self, who: &Who, name: &str, (of, start): (&str, Bytes)) -> Result<(), Error> {
        let (volume, source) = (self.find(name)?, self.find(of)?);
        let whose = self.core.store.volume(source).expect("just found").ownership();
        permission::check(who, of, whose, Act::Read)?;
        Ok(self.core.store.copy_times(volume, source, start)?)
    }
}

/// Refuses the name that is kept for the mounts' own.
fn check_reserved(name: &str, kind: u16) -> Result<(), Error> {
    match name == REMOVED_DIRECTORY && kind != Ownership::DIRECTORY {
        true => {
            let rule = "a directory's: files that are removed while they are open lie under it";
            Err(Error::Invalid { what: "name", rule })
        }
        false => Ok(()),
    }
}

fn is_directory(volume: &Volume) -> bool {
    volume.ownership().kind() == Ownership::DIRECTORY
}

fn is_under(name: &str, directory: &str) -> bool {
    name.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}
