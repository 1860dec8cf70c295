//! Names: what lies in a directory, and what is made, renamed and removed there.

use super::*;
use crate::going::Leaving;
use client::control::{Entry, RENAMED_MAX, VolumeCreate, renamed_size};
use client::{Replace, Which};
use std::os::unix::ffi::OsStrExt;

/// Entries of each directory that no volume stands for: `.` and `..`.
pub(super) const OWN: u64 = 2;
/// Entries that are asked for at a time for a listing: the kernel mostly has room for some 30.
const SOME: u16 = 64;
/// A rename finds nothing so often where it is told then that there is something.
const UNSEEN: u32 = 3;
/// A name is looked up so often that others give to something else meanwhile.
const TRIES: u32 = 100;

/// A directory that somebody lists.
pub(crate) struct Listing {
    directory: u64,
    /// What was given so far behind `.` and `..`, in the order of offsets.
    names: Vec<String>,
}

/// One line of a listing.
pub(crate) struct Listed {
    pub name: String,
    pub told: FileAttr,
    /// Of a directory that no volume stands for.
    pub found: Option<DirectoryFacts>,
}

impl Server {
    /// What has a name in a directory. By `.` and `..` the kernel asks for an inode that it has
    /// forgotten, and for its directory, when somebody comes with a file handle, as NFS does.
    pub(super) fn look_up(&self, directory: u64, name: &OsStr) -> Ended<FileAttr> {
        let entry = match name.as_bytes() {
            b"." => {
                let open = locked(&self.open);
                let is_gone = open.nameless.contains_key(&directory);
                if is_gone && !open.files.contains_key(&directory) {
                    // The kernel is about to forget it.
                    return Err(Errno::ESTALE);
                }
                drop(open);
                return self.attributes(self.known(directory)?);
            }
            b".." => match self.path(self.known(directory)?)?.rsplit_once('/') {
                Some((above, _)) => above.to_owned(),
                None => return self.attributes(ROOT),
            },
            _ => self.entry(directory, name)?,
        };
        let found = self.find(&entry).map_err(|error| self.not_there(directory, error))?;
        Ok(self.told(&found))
    }

    /// An inode, whose path is known if it is that of a directory that no volume stands for.
    fn known(&self, ino: u64) -> Ended<u64> {
        if !tree::is_implicit(ino) || self.tree.place(ino).is_some() {
            return Ok(ino);
        }
        let volumes = self.ways.ask(client::Client::volumes).map_err(|error| failed(&error))?;
        let mut above = volumes.iter().flat_map(|volume| tree::above(&volume.name));
        let path = above.find(|path| tree::may_be(ino, path)).ok_or(Errno::ESTALE)?;
        match self.find(path).map_err(gone)? {
            Found::Directory(found) if self.tree.know(&found) == ino => Ok(ino),
            _ => Err(Errno::ESTALE),
        }
    }

    /// Makes a volume under a name.
    pub(super) fn make(
        &self,
        request: &Request,
        parent: u64,
        name: &OsStr,
        kind: FileKind,
        mode: u32,
    ) -> Ended<FileAttr> {
        let made = self.make_at(request, (parent, &self.entry(parent, name)?), kind, mode);
        made.map_err(|error| match error {
            // Another door removed it before the answer came: the kernel makes it once more. Nothing is
            // made in a directory that is gone.
            Errno::ENOENT if self.path(parent).is_ok() => Errno::ESTALE,
            other => self.not_there(parent, other),
        })
    }

    fn make_at(
        &self,
        request: &Request,
        (parent, at): (u64, &str),
        kind: FileKind,
        mode: u32,
    ) -> Ended<FileAttr> {
        let access = self.access(request, mode);
        let create = VolumeCreate { kind, access, ..VolumeCreate::new(at, Bytes::ZERO) };
        let make = |client: &client::Client| {
            let create = || client.create_volume(&create, Durable::WithNextSync);
            let made = self.ways.with_room(create)?;
            self.ways.note_heard(inode(made.number), client);
            Ok(made)
        };
        let made = self.change(&[parent], make)?;
        Ok(self.told(&Found::Volume(attributes::facts(made))))
    }

    /// Makes a symbolic link, which is shown under its name when its text is written.
    pub(super) fn link_to(
        &self,
        request: &Request,
        parent: u64,
        name: &OsStr,
        target: &Path,
    ) -> Ended<FileAttr> {
        let (entry, hidden) = (self.entry(parent, name)?, self.names.of_new());
        let ino = self.make_at(request, (parent, &hidden), FileKind::Link, 0o600)?.ino.0;
        let (file, text) = (File::new(ino, 0, 0), target.as_os_str().as_bytes());
        let own = volume(ino);
        let shown = file.write(&self.ways, 0, text).and_then(|()| {
            file.trim(&self.ways);
            self.change(&[parent], |client| {
                client.volume_rename(&*own, &entry, Replace::Nothing, Durable::WithNextSync)
            })
        });
        if let Err(error) = shown {
            let _ =
                self.change(&[parent], |client| client.remove_volume(&*own, Durable::WithNextSync));
            return Err(error);
        }
        // Its length, its space and its times are others by now.
        self.attributes(ino)
    }

    /// An entry that is taken out of a directory: where that is there only because something lies under
    /// it, it stays, and a volume stands for it from now on.
    fn out_of<'a>(&self, parent: u64, name: &'a str, is: Option<u64>) -> Which<'a> {
        let keep_directory = parent != ROOT && tree::is_implicit(parent);
        Which { name, is, keep_directory }
    }

    /// After something was taken out of a directory: where a volume has come to stand for that, it is found
    /// under another number from now on, and whoever syncs that one hears of losses, too.
    fn note_kept(&self, parent: u64) {
        if parent != ROOT
            && tree::is_implicit(parent)
            && let Ok(Found::Volume(facts)) = self.place(parent).and_then(|place| self.find(&place))
        {
            self.ways.unsynced.note(inode(facts.number), self.ways.run());
        }
    }

    pub(super) fn remove(&self, parent: u64, name: &OsStr) -> Ended<()> {
        let removed = self.remove_from(parent, name);
        self.note_kept(parent);
        removed
    }

    fn remove_from(&self, parent: u64, name: &OsStr) -> Ended<()> {
        let entry = self.entry(parent, name)?;
        again(|| {
            let Found::Volume(facts) = self.find(&entry)? else { return Err(Errno::EISDIR) };
            if facts.kind == FileKind::Directory {
                return Err(Errno::EISDIR);
            }
            let ino = inode(facts.number);
            let which = self.out_of(parent, &entry, Some(facts.number));
            let leaving = self.going.leave(ino)?;
            let is_open = self.is_open(&leaving, ino);
            if is_open || self.known.has(ino) {
                let hidden = self.hide(ino, |hidden| {
                    self.change_once(&[parent], |client| {
                        let durable = Durable::WithNextSync;
                        client.volume_rename(which, hidden, Replace::Nothing, durable)
                    })
                });
                if is_open || hidden != Err(Errno::ENOSPC) {
                    self.hidden(leaving, ino);
                    return hidden;
                }
            }
            let remove =
                |client: &client::Client| client.remove_volume(which, Durable::WithNextSync);
            self.change_once(&[parent], remove).map_err(|error| failed(&error))?;
            self.forget_removed(ino);
            self.ways.given_back.note();
            Ok(())
        })
    }

    /// Gives a file that is open, or that the kernel still knows, the name that it has without one of its
    /// own. Who came to it by its name finds it, as on any file system. It is noted before, so that
    /// nobody takes it for left behind.
    fn hide(&self, ino: u64, rename: impl FnOnce(&str) -> Result<(), Error>) -> Ended<()> {
        let hidden = self.names.of(ino);
        locked(&self.open).nameless.insert(ino, hidden.clone());
        self.ways.given_back.going(ino);
        let renamed = rename(&hidden).map_err(|error| failed(&error));
        match renamed {
            // It may have been done all the same: who closes the file last removes the name, or finds none.
            Ok(()) | Err(Errno::EIO) => {}
            Err(_) => {
                locked(&self.open).nameless.remove(&ino);
                self.ways.given_back.gone(ino);
            }
        }
        renamed
    }

    /// A file has no name of its own any more: it goes where the kernel has forgotten it meanwhile.
    fn hidden(&self, leaving: Leaving<'_>, ino: u64) {
        drop(leaving);
        if !self.known.has(ino) {
            self.let_go(ino);
        }
    }

    /// What is known of a file that is gone.
    pub(super) fn forget_removed(&self, ino: u64) {
        self.ways.forget(ino);
        locked(&self.open).rates.remove(&ino);
        self.ways.unsynced.forget(ino);
    }

    fn is_open(&self, leaving: &Leaving<'_>, ino: u64) -> bool {
        leaving.is_opened() || locked(&self.open).files.contains_key(&ino)
    }

    pub(super) fn remove_directory(&self, parent: u64, name: &OsStr) -> Ended<()> {
        let entry = self.entry(parent, name)?;
        // One that no volume stands for has something in it.
        let of_directory = |found| match found {
            Found::Directory(_) => Err(Errno::ENOTEMPTY),
            Found::Volume(facts) if facts.kind == FileKind::Directory => Ok(facts.number),
            Found::Volume(_) => Err(Errno::ENOTDIR),
        };
        let found = inode(of_directory(self.find(&entry)?)?);
        if self.tree.told(parent, name).is_some_and(|told| told != found) {
            // The kernel would take the one that it knows for removed, and that one has another name now.
            return Err(Errno::ESTALE);
        }
        // Where it is another one by now, the kernel looks again, too.
        let which = self.out_of(parent, &entry, Some(found - 1));
        let before = self.before_removal(found);
        self.change(&[parent], |client| client.remove_volume(which, Durable::WithNextSync))?;
        self.note_kept(parent);
        self.note_removed(before);
        Ok(())
    }

    /// What the kernel is told of a directory that it knows, when that is removed.
    fn before_removal(&self, ino: u64) -> Option<FileAttr> {
        let told = self.known.has(ino).then(|| self.attributes(ino))?.ok()?;
        Some(FileAttr { nlink: 0, ..told })
    }

    fn note_removed(&self, directory: Option<FileAttr>) {
        if let Some(told) = directory {
            locked(&self.open).removed.insert(told.ino.0, told);
        }
    }

    pub(super) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (to_parent, to_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Ended<()> {
        let (from, to) = (self.entry(parent, name)?, self.entry(to_parent, to_name)?);
        if flags.intersects(!RenameFlags::RENAME_NOREPLACE) {
            return Err(Errno::EINVAL);
        }
        let may_replace = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        let mut unseen = 0;
        again(|| {
            let source = self.find(&from)?;
            let target = match self.find(&to) {
                Ok(_) if !may_replace => return Err(Errno::EEXIST),
                Ok(found) => {
                    unseen = 0;
                    Some(found)
                }
                Err(Errno::ENOENT) => None,
                Err(error) => return Err(error),
            };
            if let Some(target) = &target
                && (number(&source), whole(&source)) == (number(target), whole(target))
            {
                // One entry that is spelled in two ways: the kernel does not ask for others.
                return Ok(());
            }
            match (is_directory(&source), target.as_ref().map(is_directory)) {
                (true, Some(false)) => return Err(Errno::ENOTDIR),
                (false, Some(true)) => return Err(Errno::EISDIR),
                _ => {}
            }
            let below = match is_directory(&source) {
                true => Some(tree::join(&self.path(to_parent)?, text(to_name)?)),
                false => None,
            };
            if let Some(to) = &below {
                self.check_few(whole(&source), to)?;
            }
            let which = self.out_of(parent, &from, number(&source));
            let directories = [parent, to_parent];
            self.rename_found(directories, which, &to, target.as_ref()).map_err(|error| {
                match error {
                    // Something has the name by now; where it is not to be seen again, it is another
                    // user's and hidden.
                    Errno::EEXIST if may_replace && unseen == UNSEEN => Errno::EACCES,
                    Errno::EEXIST if may_replace => {
                        unseen += u32::from(target.is_none());
                        Errno::ESTALE
                    }
                    other => other,
                }
            })?;
            self.note_kept(parent);
            if below.is_some() {
                self.tree.moved((parent, name), (to_parent, to_name));
            }
            Ok(())
        })
    }

    fn rename_found(
        &self,
        directories: [u64; 2],
        which: Which<'_>,
        to: &str,
        target: Option<&Found>,
    ) -> Ended<()> {
        let rename = |replace: Replace<'_>| {
            let durable = Durable::WithNextSync;
            self.change_once(&directories, |client| {
                client.volume_rename(which, to, replace, durable)
            })
        };
        let all = |renamed: Result<(), Error>| renamed.map_err(|error| failed(&error));
        let Some(found) = target else { return all(rename(Replace::Nothing)) };
        // A directory that no volume stands for has something in it.
        let Some(only) = number(found) else { return Err(Errno::ENOTEMPTY) };
        if which.is == Some(only) {
            // Another door has renamed it so since the first look.
            return Err(Errno::ESTALE);
        }
        let ino = inode(only);
        if is_directory(found) {
            let before = self.before_removal(ino);
            all(rename(Replace::Remove(only)))?;
            self.note_removed(before);
            return Ok(());
        }
        let leaving = self.going.leave(ino)?;
        let is_open = self.is_open(&leaving, ino);
        if is_open || self.known.has(ino) {
            let hidden = self.hide(ino, |hidden| rename(Replace::KeepAs(only, hidden)));
            if is_open || hidden != Err(Errno::ENOSPC) {
                self.hidden(leaving, ino);
                return hidden;
            }
        }
        all(rename(Replace::Remove(only)))?;
        self.forget_removed(ino);
        self.ways.given_back.note();
        Ok(())
    }

    /// A directory with more in it than is renamed at once is moved by those who move between
    /// file systems: by a copy. Names that would be too long are said.
    fn check_few(&self, from: &str, to: &str) -> Ended<()> {
        let renamed = |path: &str| path.len() - from.len() + to.len();
        let (mut todo, mut size) = (vec![from.to_owned()], renamed_size(to.len()));
        while let Some(directory) = todo.pop() {
            let entries = self.ways.ask(|client| client.all_entries(&directory));
            for entry in entries.map_err(|error| failed(&error))? {
                let path = tree::join(&directory, &entry.name);
                if renamed(&path) > client::VOLUME_NAME_MAX {
                    return Err(Errno::ENAMETOOLONG);
                }
                size += renamed_size(renamed(&path));
                if size > RENAMED_MAX {
                    return Err(Errno::EXDEV);
                }
                if entry.file.is_none_or(|facts| facts.kind == FileKind::Directory) {
                    todo.push(path);
                }
            }
        }
        Ok(())
    }

    pub(super) fn open_directory(&self, ino: u64) -> Ended<u64> {
        // Who is not told here that it cannot be listed often does not look later.
        self.entries(&self.place(ino)?, "", 1)?;
        if tree::is_implicit(ino) {
            self.path(ino).map_err(gone)?;
        }
        let mut open = locked(&self.open);
        open.last_handle += 1;
        let handle = open.last_handle;
        let listing = Listing { directory: ino, names: Vec::new() };
        open.lists.insert(handle, Arc::new(Mutex::new(listing)));
        self.ways.unsynced.open(ino, handle);
        Ok(handle)
    }

    /// Gives the entries from `offset` on, each with the offset behind it, until `add` says that it has no room.
    ///
    /// They are asked for now, and not when the directory was opened: the kernel takes the facts of a listing
    /// for newer than whatever it knew before it asked, and would set a file back to an old length or mode.
    pub(super) fn listed(
        &self,
        handle: u64,
        offset: u64,
        mut add: impl FnMut(&Listed, u64) -> bool,
    ) -> Ended<()> {
        let listing = locked(&self.open).lists.get(&handle).cloned().ok_or(Errno::EBADF)?;
        let mut listing = locked(&listing);
        let own = listing.directory;
        for (name, at) in [".", ".."].into_iter().zip(0..).skip(offset.min(OWN) as usize) {
            let told = self.told_of_directory(own);
            if add(&Listed { name: name.into(), told, found: None }, at + 1) {
                return Ok(());
            }
        }
        let (place, names) = (self.place(own)?, &mut listing.names);
        let is_shown = |name: &str| own != ROOT || name != crate::removed::DIRECTORY;
        let from = offset.saturating_sub(OWN) as usize;
        // Who comes with a place of another listing, as NFS does: it is as far behind the begin.
        let mut after = names.last().cloned().unwrap_or_default();
        while names.len() < from {
            let some = self.entries(&place, &after, client::ENTRIES_MAX)?;
            let Some(last) = some.last() else { return Ok(()) };
            after.clone_from(&last.name);
            names.extend(some.into_iter().map(|entry| entry.name).filter(|name| is_shown(name)));
        }
        names.truncate(from);
        let mut after = names.last().cloned().unwrap_or_default();
        loop {
            let some = self.entries(&place, &after, SOME)?;
            let Some(last) = some.last() else { return Ok(()) };
            after.clone_from(&last.name);
            for entry in some.into_iter().filter(|entry| is_shown(&entry.name)) {
                let listed = self.line(entry)?;
                if add(&listed, OWN + names.len() as u64 + 1) {
                    return Ok(());
                }
                names.push(listed.name);
            }
        }
    }

    /// One line.
    fn line(&self, Entry { name, file, directory }: Entry) -> Ended<Listed> {
        let (told, found) = match (file, directory) {
            (Some(facts), _) => (self.told(&Found::Volume(facts)), None),
            (None, Some(found)) => (self.told_of_directory(self.inode_of(&found)), Some(found)),
            (None, None) => return Err(Errno::EIO),
        };
        Ok(Listed { name, told, found })
    }

    fn entries(&self, directory: &str, after: &str, most: u16) -> Ended<Vec<Entry>> {
        let found = self.ways.ask(|client| client.entries(directory, after, most));
        found.map_err(|error| failed(&error))
    }
}

/// Does it again where another door has put another volume in the place of the one that was found, and for
/// a while where what others ask of the volume is under way.
fn again<T>(mut step: impl FnMut() -> Ended<T>) -> Ended<T> {
    let mut pauses = 0;
    for _ in 1..TRIES {
        match step() {
            Err(Errno::ESTALE) => {}
            Err(Errno::EBUSY) if pauses < crate::file::TRIES => {
                pauses += 1;
                std::thread::sleep(crate::file::PAUSE);
            }
            ended => return ended,
        }
    }
    step()
}

fn is_directory(found: &Found) -> bool {
    match found {
        Found::Volume(facts) => facts.kind == FileKind::Directory,
        Found::Directory(_) => true,
    }
}

fn number(found: &Found) -> Option<u64> {
    match found {
        Found::Volume(facts) => Some(facts.number),
        Found::Directory(_) => None,
    }
}

/// What it is called.
fn whole(found: &Found) -> &str {
    match found {
        Found::Volume(facts) => &facts.name,
        Found::Directory(found) => &found.name,
    }
}
