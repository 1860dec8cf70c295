//! Names: what lies in a directory, and what is made, renamed and removed there.

use super::*;
use client::Replace;
use client::control::{Entry, RENAMED_MAX, VolumeCreate, renamed_size};
use std::os::unix::ffi::OsStrExt;

/// Entries of each directory that no volume stands for: `.` and `..`.
const OWN: u64 = 2;

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
    pub path: Option<String>,
}

impl Server {
    /// What has a name in a directory. By `.` and `..` the kernel asks for an inode that it has
    /// forgotten, and for its directory, when somebody comes with a file handle, as NFS does.
    pub(super) fn look_up(&self, directory: u64, name: &OsStr) -> Ended<FileAttr> {
        let path = match name.as_bytes() {
            b"." => return self.attributes(self.known(directory)?),
            b".." => match self.path(self.known(directory)?)?.rsplit_once('/') {
                Some((above, _)) => above.to_owned(),
                None => return self.attributes(ROOT),
            },
            _ => self.entry_path(directory, name)?,
        };
        let found = self.find(&path)?;
        Ok(self.told(&path, found.as_ref()))
    }

    /// An inode, whose path is known if it is that of a directory that no volume stands for.
    fn known(&self, ino: u64) -> Ended<u64> {
        if !tree::is_implicit(ino) || self.tree.path(ino).is_some() {
            return Ok(ino);
        }
        let volumes = self.ways.ask(client::Client::volumes).map_err(|error| failed(&error))?;
        let is_it = |path: &&str| tree::implicit(path) == ino;
        let mut above = volumes.iter().flat_map(|volume| tree::above(&volume.name));
        self.tree.know(ino, above.find(is_it).ok_or(Errno::ESTALE)?);
        Ok(ino)
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
        let path = self.entry_path(parent, name)?;
        let access = self.access(request, mode);
        let create = VolumeCreate { kind, access, ..VolumeCreate::new(&*path, Bytes::ZERO) };
        let run = self.ways.run_before();
        let made = self.change(|client| client.create_volume(&create, Durable::WithNextSync));
        // Another door removed it before the answer came: the kernel makes it once more.
        let made = made.map_err(|error| match error {
            Errno::ENOENT => Errno::ESTALE,
            other => other,
        })?;
        self.ways.unsynced.note(inode(made.number), run);
        Ok(self.told(&path, Some(&attributes::facts(made))))
    }

    pub(super) fn link_to(
        &self,
        request: &Request,
        parent: u64,
        name: &OsStr,
        target: &Path,
    ) -> Ended<FileAttr> {
        let told = self.make(request, parent, name, FileKind::Link, 0o600)?;
        let (file, text) = (File::new(told.ino.0, 0, 0), target.as_os_str().as_bytes());
        let written = file.write(&self.ways, 0, text);
        if let Err(error) = written {
            // By its number: another door may have put something else there.
            let own = volume(told.ino.0);
            let _ = self.change(|client| client.remove_volume(&own, Durable::WithNextSync));
            return Err(error);
        }
        file.trim(&self.ways);
        // Its length, its space and its times are others by now.
        self.attributes(told.ino.0)
    }

    /// A directory that is there only because something lies under it stays when that goes: a
    /// volume stands for it from now on.
    fn keep(&self, directory: u64) -> Ended<()> {
        let path = self.path(directory)?;
        if directory == ROOT || !tree::is_implicit(directory) {
            return Ok(());
        }
        let mode = Permissions::new(0o755);
        let access = Access { mode, ..Access::default() };
        let kind = FileKind::Directory;
        let create = VolumeCreate { kind, access, ..VolumeCreate::new(&*path, Bytes::ZERO) };
        match self.change(|client| client.create_volume(&create, Durable::WithNextSync)) {
            Ok(_) | Err(Errno::EEXIST) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn remove(&self, parent: u64, name: &OsStr) -> Ended<()> {
        let path = self.entry_path(parent, name)?;
        let found = self.find(&path)?.filter(|facts| facts.kind != FileKind::Directory);
        let ino = inode(found.ok_or(Errno::EISDIR)?.number);
        self.keep(parent)?;
        if self.is_open(ino) {
            let hidden = self.names.of(ino);
            self.change(|client| {
                client.volume_rename(&path, &hidden, Replace::Nothing, Durable::WithNextSync)
            })?;
            locked(&self.open).nameless.insert(ino, hidden);
            return Ok(());
        }
        self.ways.forget(ino);
        self.change(|client| client.remove_volume(&path, Durable::WithNextSync))?;
        locked(&self.open).rates.remove(&ino);
        self.ways.unsynced.forget(ino);
        Ok(())
    }

    fn is_open(&self, ino: u64) -> bool {
        locked(&self.open).files.contains_key(&ino)
    }

    pub(super) fn remove_directory(&self, parent: u64, name: &OsStr) -> Ended<()> {
        let path = self.entry_path(parent, name)?;
        let found = self.find(&path)?;
        if found.as_ref().is_some_and(|facts| facts.kind != FileKind::Directory) {
            return Err(Errno::ENOTDIR);
        }
        let entries = self.ways.ask(|client| client.entries(&path, ""));
        if found.is_none() || !entries.map_err(|error| failed(&error))?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.keep(parent)?;
        self.change(|client| client.remove_volume(&path, Durable::WithNextSync))
    }

    pub(super) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (to_parent, to_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Ended<()> {
        let (from, to) = (self.entry_path(parent, name)?, self.entry_path(to_parent, to_name)?);
        if flags.intersects(!RenameFlags::RENAME_NOREPLACE) {
            return Err(Errno::EINVAL);
        }
        let source = self.find(&from)?;
        let target = match self.find(&to) {
            Ok(found) => Some(found),
            Err(Errno::ENOENT) => None,
            Err(error) => return Err(error),
        };
        if flags.contains(RenameFlags::RENAME_NOREPLACE) && target.is_some() {
            return Err(Errno::EEXIST);
        }
        let is_directory = |found: &Option<FileFacts>| {
            found.as_ref().is_none_or(|it| it.kind == FileKind::Directory)
        };
        if let Some(target) = &target {
            match (is_directory(&source), is_directory(target)) {
                (true, false) => return Err(Errno::ENOTDIR),
                (false, true) => return Err(Errno::EISDIR),
                (true, true) => self.check_empty(&to)?,
                (false, false) => {}
            }
        }
        if is_directory(&source) {
            self.check_few(&from, &to)?;
        }
        self.keep(parent)?;
        let open =
            target.flatten().map(|facts| inode(facts.number)).filter(|ino| self.is_open(*ino));
        let hidden = open.map(|ino| self.names.of(ino));
        let replace = match &hidden {
            _ if flags.contains(RenameFlags::RENAME_NOREPLACE) => Replace::Nothing,
            Some(hidden) => Replace::KeepAs(hidden),
            None => Replace::Remove,
        };
        self.change(|client| client.volume_rename(&from, &to, replace, Durable::WithNextSync))?;
        if let (Some(ino), Some(hidden)) = (open, hidden) {
            locked(&self.open).nameless.insert(ino, hidden);
        }
        self.tree.rename(&from, &to);
        Ok(())
    }

    fn check_empty(&self, path: &str) -> Ended<()> {
        let entries = self.ways.ask(|client| client.entries(path, ""));
        match entries.map_err(|error| failed(&error))?.is_empty() {
            true => Ok(()),
            false => Err(Errno::ENOTEMPTY),
        }
    }

    /// A directory with more in it than is renamed at once is moved by those who move between
    /// file systems: by a copy. Names that would be too long are said.
    fn check_few(&self, from: &str, to: &str) -> Ended<()> {
        let renamed = |path: &str| path.len() - from.len() + to.len();
        let (mut todo, mut size) = (vec![from.to_owned()], renamed_size(to.len()));
        while let Some(directory) = todo.pop() {
            let entries = self.list(&directory)?;
            for entry in entries {
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

    fn list(&self, directory: &str) -> Ended<Vec<client::control::Entry>> {
        let mut all: Vec<client::control::Entry> = Vec::new();
        loop {
            let after = all.last().map_or("", |entry| &entry.name).to_owned();
            let some = self.ways.ask(|client| client.entries(directory, &after));
            let some = some.map_err(|error| failed(&error))?;
            if some.is_empty() {
                return Ok(all);
            }
            all.extend(some);
        }
    }

    pub(super) fn open_directory(&self, ino: u64) -> Ended<u64> {
        // Who is not told here that it cannot be listed often does not look later.
        self.entries(&self.path(ino)?, "")?;
        let mut open = locked(&self.open);
        open.last_handle += 1;
        let handle = open.last_handle;
        let listing = Listing { directory: ino, names: Vec::new() };
        open.lists.insert(handle, Arc::new(Mutex::new(listing)));
        self.ways.unsynced.open(ROOT, handle);
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
        let (path, own) = (self.path(listing.directory)?, listing.directory);
        for (name, at) in [".", ".."].into_iter().zip(0..).skip(offset.min(OWN) as usize) {
            let told = attributes::of_directory(own, self.whose, self.since);
            if add(&Listed { name: name.into(), told, path: None }, at + 1) {
                return Ok(());
            }
        }
        let from = offset.saturating_sub(OWN) as usize;
        let names = &mut listing.names;
        // Who comes with a place of another listing, as NFS does: it is as far behind the begin.
        let mut after = names.last().cloned().unwrap_or_default();
        while names.len() < from {
            let some = self.entries(&path, &after)?;
            let Some(last) = some.last() else { return Ok(()) };
            after.clone_from(&last.name);
            let shown = some.into_iter().map(|entry| entry.name);
            names.extend(shown.filter(|name| tree::join(&path, name) != crate::removed::DIRECTORY));
        }
        names.truncate(from);
        let mut after = names.last().cloned().unwrap_or_default();
        loop {
            let some = self.entries(&path, &after)?;
            let Some(last) = some.last() else { return Ok(()) };
            after.clone_from(&last.name);
            for entry in some {
                let below = tree::join(&path, &entry.name);
                if below == crate::removed::DIRECTORY {
                    continue;
                }
                let listed = self.line(entry, below);
                if add(&listed, OWN + names.len() as u64 + 1) {
                    return Ok(());
                }
                names.push(listed.name);
            }
        }
    }

    fn line(&self, entry: Entry, path: String) -> Listed {
        let told = match &entry.file {
            Some(facts) => {
                self.found(facts);
                attributes::of(facts)
            }
            None => attributes::of_directory(tree::implicit(&path), self.whose, self.since),
        };
        let path = entry.file.is_none().then_some(path);
        Listed { name: entry.name, told, path }
    }

    fn entries(&self, directory: &str, after: &str) -> Ended<Vec<Entry>> {
        self.ways.ask(|client| client.entries(directory, after)).map_err(|error| failed(&error))
    }

    /// A file that nobody has open any more and that has no name goes.
    pub(super) fn remove_nameless(&self, ino: u64) {
        let Some(hidden) = locked(&self.open).nameless.remove(&ino) else { return };
        self.ways.forget(ino);
        // What fails here the next mount sweeps.
        let _ = self.change(|client| client.remove_volume(&hidden, Durable::WithNextSync));
        self.ways.unsynced.forget(ino);
    }
}
