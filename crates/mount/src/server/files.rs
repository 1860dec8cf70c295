//! Files: opened, read, written, under contract or not.

use super::*;
use crate::file::patiently;
use client::control::{Service, UnlessChanged};

impl Server {
    /// A handle on a file, and how the kernel is to treat it.
    pub(super) fn open_file(
        &self,
        (ino, thread): (u64, u32),
        flags: i32,
    ) -> Ended<(u64, FopenFlags)> {
        let opening = self.going.open(ino)?;
        let opened = self.open_found(ino, flags, thread);
        drop(opening);
        if opened.is_err() {
            // Its name may have been taken away meanwhile, as that of a file that is open.
            self.let_go(ino);
        }
        opened
    }

    fn open_found(&self, ino: u64, flags: i32, thread: u32) -> Ended<(u64, FopenFlags)> {
        let Found::Volume(facts) = self.find_open(ino)? else { return Err(Errno::EISDIR) };
        let reads_only = flags & libc::O_ACCMODE == libc::O_RDONLY;
        if !reads_only && self.lengths.refuses((ino, thread), facts.length_bytes.get()) {
            return Err(Errno::ESTALE);
        }
        if let Some(notifier) = self.notifier.get() {
            // How long it is may have changed behind the kernel's back; its bytes it forgets with
            // every open. What it has of neither is nothing to forget.
            let _ = notifier.inval_inode(INodeNo(ino), -1, 0);
        }
        let rate = locked(&self.open).rates.get(&ino).copied();
        let stream = match rate.filter(|_| reads_only) {
            None => None,
            Some(rate) => Some(self.open_stream(ino, rate)?),
        };
        let mut kernel = match &stream {
            Some(_) => FopenFlags::FOPEN_DIRECT_IO,
            None => FopenFlags::empty(),
        };
        let known = (ino, facts.length_bytes.get(), facts.size_bytes.get());
        let (handle, keeps) = self.note_open(known, facts.version, stream);
        kernel.set(FopenFlags::FOPEN_KEEP_CACHE, keeps);
        Ok((handle, kernel))
    }

    /// Gives the handle, and whether the kernel may keep what it has of the file's bytes.
    fn note_open(
        &self,
        (ino, length, reserved): (u64, u64, u64),
        version: Option<String>,
        stream: Option<client::File>,
    ) -> (u64, bool) {
        let mut open = locked(&self.open);
        open.last_handle += 1;
        let handle = open.last_handle;
        if let Some(stream) = stream {
            open.streams.insert(handle, Arc::new(Mutex::new(stream)));
        }
        let (file, handles) = open.take(ino, (length, reserved));
        let has_others = handles > 1;
        if let (Some(writer), Some(version)) = (self.ways.client.writer_number(), version.clone()) {
            open.versions.insert(handle, UnlessChanged { writer, version });
        }
        let keeps = open.cached.keeps((ino, handle), version, has_others, Instant::now());
        drop(open);
        self.ways.unsynced.open(ino, handle);
        file.found(length, reserved);
        (handle, keeps)
    }

    fn open_stream(&self, ino: u64, rate: Rate) -> Ended<client::File> {
        let target = client::Target::Volume(volume(ino));
        let mut options = client::File::options();
        options.socket(self.ways.client.socket()).contract(client::Contract::at(rate));
        options.open_target(target).map_err(|error| failed(&error))
    }

    pub(super) fn create_file(
        &self,
        request: &Request,
        parent: u64,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Ended<(FileAttr, u64, FopenFlags)> {
        let made = self.make(request, parent, name, FileKind::Volume, mode);
        let told = made.map_err(|error| match error {
            // Another door made one of this name since the kernel looked. The kernel takes what is given here
            // for new: it would neither check who may open it nor cut it. It looks again after this error.
            Errno::EEXIST if flags & libc::O_EXCL == 0 => Errno::ESTALE,
            other => other,
        })?;
        let known = (told.ino.0, told.size, told.blocks * 512);
        let (handle, _) = self.note_open(known, None, None);
        Ok((told, handle, FopenFlags::empty()))
    }

    pub(super) fn close_file(&self, ino: u64, handle: u64) {
        self.ways.unsynced.close(handle);
        self.lengths.undoes((ino, handle), None);
        let mut open = locked(&self.open);
        open.asked_by(handle);
        open.versions.remove(&handle);
        let stream = open.streams.remove(&handle);
        let Some((file, handles)) = open.files.get_mut(&ino) else { return };
        *handles -= 1;
        let last = *handles == 0;
        let file = Arc::clone(file);
        drop(open);
        drop(stream);
        if !last {
            return;
        }
        if !locked(&self.open).nameless.contains_key(&ino) {
            file.trim(&self.ways);
        }
        self.let_go(ino);
        self.ways.sync_many();
    }

    /// Does something with a file as whoever has it open: growth, cuts and writes of one file know of each
    /// other.
    pub(super) fn with_file(&self, ino: u64, call: impl FnOnce(&File) -> Ended<()>) -> Ended<()> {
        let opening = self.going.open(ino)?;
        let held = self.hold(ino);
        drop(opening);
        let called = held.and_then(|file| {
            let called = call(&file);
            if let Some((_, handles)) = locked(&self.open).files.get_mut(&ino) {
                *handles -= 1;
            }
            called
        });
        self.let_go(ino);
        called
    }

    fn hold(&self, ino: u64) -> Ended<Arc<File>> {
        if let Some((file, handles)) = locked(&self.open).files.get_mut(&ino) {
            *handles += 1;
            return Ok(Arc::clone(file));
        }
        let Found::Volume(facts) = self.find_open(ino)? else { return Err(Errno::EISDIR) };
        let known = (facts.length_bytes.get(), facts.size_bytes.get());
        Ok(locked(&self.open).take(ino, known).0)
    }

    /// The kernel has nothing of an inode any more, unless another thread has told it of it since.
    pub(super) fn forgotten(&self, ino: u64) {
        self.known.unless_told(ino, || {
            self.tree.forget(ino);
            self.lengths.forget(ino);
        });
        let mut open = locked(&self.open);
        if !self.known.has(ino) {
            open.cached.forget(ino);
            open.removed.remove(&ino);
        }
        let is_nameless = open.nameless.contains_key(&ino);
        drop(open);
        if is_nameless {
            self.let_go(ino);
        }
    }

    /// What is known of a file that nobody has open goes, and the file where it has no name any more.
    pub(super) fn let_go(&self, ino: u64) {
        let Ok(leaving) = self.going.leave(ino) else {
            // A daemon that hangs: with the next one.
            locked(&self.open).kept_back.push(ino);
            return;
        };
        let mut open = locked(&self.open);
        // Somebody may have opened it again, or is about to.
        if leaving.is_opened() || open.files.get(&ino).is_some_and(|(_, handles)| *handles > 0) {
            return;
        }
        open.files.remove(&ino);
        // A program that came to it by its name may open it yet.
        let hidden = match self.known.has(ino) {
            true => None,
            false => open.nameless.remove(&ino),
        };
        let kept_back = open.kept_back.pop();
        drop(open);
        if let Some(hidden) = hidden {
            self.forget_removed(ino);
            self.remove_hidden(hidden);
            self.ways.given_back.gone(ino);
        }
        drop(leaving);
        self.sweep_again();
        self.remove_left_over();
        if let Some(ino) = kept_back {
            self.let_go(ino);
        }
    }

    /// A daemon that was killed may not have kept what was removed last: it is removed once more.
    fn sweep_again(&self) {
        let run = self.ways.run();
        if self.swept_run.load(Ordering::Relaxed) == run {
            return;
        }
        let Ok(own) = self.names.own(&self.ways.client) else { return };
        self.swept_run.store(run, Ordering::Relaxed);
        for hidden in own {
            let is_open = locked(&self.open).nameless.values().any(|open| *open == hidden);
            if !is_open {
                self.remove_hidden(hidden);
            }
        }
    }

    /// Removes a file that has no name.
    fn remove_hidden(&self, hidden: String) {
        if self.try_to_remove(&hidden).is_err() {
            locked(&self.open).left_over.push(hidden);
        }
    }

    /// Once; one that is not there any more is removed.
    fn try_to_remove(&self, hidden: &str) -> Result<(), Error> {
        match self.change_once(&[], |client| client.remove_volume(hidden, Durable::WithNextSync)) {
            Err(error) if error.code() == Some(Code::NoSuchVolume) => Ok(()),
            removed => removed,
        }
    }

    /// The same of those that could not be removed: a stream may just be closed, which is waited for, but not
    /// for each of many. What does not go goes with the next one, and what is left in the end the next
    /// mount sweeps.
    fn remove_left_over(&self) {
        let (mut all, mut stay) = (std::mem::take(&mut locked(&self.open).left_over), Vec::new());
        while let Some(hidden) = all.pop() {
            let removed = match stay.is_empty() {
                true => patiently(|| self.try_to_remove(&hidden)),
                false => self.try_to_remove(&hidden),
            };
            if let Err(error) = removed {
                stay.push(hidden);
                if error.code().is_none() {
                    break; // there is no daemon that answers
                }
            }
        }
        stay.append(&mut all);
        locked(&self.open).left_over.append(&mut stay);
    }

    pub(super) fn allocate(&self, ino: u64, offset: u64, len: u64, mode: i32) -> Ended<()> {
        let file = self.file(ino)?;
        let keep = mode & libc::FALLOC_FL_KEEP_SIZE != 0;
        match mode & !libc::FALLOC_FL_KEEP_SIZE {
            0 => file.allocate(&self.ways, offset, len, keep)?,
            libc::FALLOC_FL_PUNCH_HOLE if keep => file.clear(&self.ways, offset, len)?,
            libc::FALLOC_FL_ZERO_RANGE => {
                file.allocate(&self.ways, offset, len, keep)?;
                file.clear(&self.ways, offset, len)?;
            }
            _ => return Err(Errno::EOPNOTSUPP),
        }
        if !keep {
            self.lengths.reaches(ino, offset.saturating_add(len));
        }
        Ok(())
    }

    fn attribute<'a>(&self, ino: u64, name: &'a OsStr) -> Ended<Option<&'a str>> {
        if tree::is_implicit(ino) || locked(&self.open).removed.contains_key(&ino) {
            return Ok(None);
        }
        Ok(text(name)?.strip_prefix(contracts::PREFIX))
    }

    pub(super) fn contract(&self, ino: u64, name: &OsStr) -> Ended<String> {
        // The kernel and many programs ask for attributes that nothing here has.
        let name = self.attribute(ino, name)?.ok_or(Errno::ENODATA)?;
        let found = self.ways.ask(|client| client.volume(&volume(ino)));
        let stream = locked(&self.open).rates.get(&ino).copied();
        let value = contracts::value(&found.map_err(|error| failed(&error))?, stream, name);
        value.ok_or(Errno::ENODATA)
    }

    pub(super) fn contract_names(&self, ino: u64) -> Ended<Vec<u8>> {
        if tree::is_implicit(ino) || locked(&self.open).removed.contains_key(&ino) {
            return Ok(Vec::new());
        }
        let found = self.ways.ask(|client| client.volume(&volume(ino)));
        let found = found.map_err(|error| failed(&error))?;
        if found.kind != FileKind::Volume {
            return Ok(Vec::new());
        }
        let stream = locked(&self.open).rates.get(&ino).copied();
        Ok(contracts::names(&found.service, stream))
    }

    /// Only who has mounted changes contracts: the daemon takes them for his, so that nobody
    /// else's quota would hold them, and the kernel asks no more than `w` for these attributes.
    /// Other attributes are not there for anybody, and that is what he hears: `cp -a` tries to set
    /// access control lists, and goes on where there are none.
    pub(super) fn may_contract(&self, request: &Request, ino: u64, name: &OsStr) -> Ended<()> {
        match self.attribute(ino, name)? {
            Some(_) if request.uid() != self.whose.0 => Err(Errno::EPERM),
            _ => Ok(()),
        }
    }

    /// `flags`: whether it shall be there already, or not, as `setxattr` has them.
    pub(super) fn set_contract(
        &self,
        ino: u64,
        name: &OsStr,
        value: &[u8],
        flags: i32,
    ) -> Ended<()> {
        let name = self.attribute(ino, name)?.ok_or(Errno::EOPNOTSUPP)?;
        if !contracts::can_be_set(name) {
            return Err(Errno::EPERM);
        }
        if value.len() > VALUE_MAX {
            return Err(Errno::E2BIG);
        }
        let value = std::str::from_utf8(value).map_err(|_| Errno::EINVAL)?;
        let (kind, is_set) = self.is_set(ino, name)?;
        match flags {
            // Nobody reads or writes anything else, and no listing would show it.
            _ if kind != FileKind::Volume => return Err(Errno::EOPNOTSUPP),
            libc::XATTR_CREATE if is_set => return Err(Errno::EEXIST),
            libc::XATTR_REPLACE if !is_set => return Err(Errno::ENODATA),
            _ => {}
        }
        if name == contracts::STREAM {
            let rate = value.trim().parse().map_err(|_| Errno::EINVAL)?;
            // What would be refused to every reader is refused here. Whoever removes the file meanwhile finds
            // it open.
            let opening = self.going.open(ino)?;
            let tried = self.open_stream(ino, rate).map(drop);
            drop(opening);
            self.let_go(ino);
            tried?;
            locked(&self.open).rates.insert(ino, rate);
            return Ok(());
        }
        let service = contracts::service(name, value).ok_or(Errno::EINVAL)?;
        self.serve(ino, &service)
    }

    /// What a volume stands for, and whether this attribute of it was set.
    fn is_set(&self, ino: u64, name: &str) -> Ended<(FileKind, bool)> {
        let found = self.ways.ask(|client| client.volume(&volume(ino)));
        let found = found.map_err(|error| failed(&error))?;
        let stream = locked(&self.open).rates.get(&ino).copied();
        Ok((found.kind, contracts::is_set(&found.service, stream, name)))
    }

    fn serve(&self, ino: u64, service: &Service) -> Ended<()> {
        let served = self.ways.change(|client| client.volume_service(&volume(ino), service));
        served.map(drop).map_err(|error| failed(&error))
    }

    pub(super) fn remove_contract(&self, ino: u64, name: &OsStr) -> Ended<()> {
        let name = self.attribute(ino, name)?.ok_or(Errno::ENODATA)?;
        if !contracts::can_be_set(name) {
            return Err(Errno::EPERM);
        }
        if name == contracts::STREAM {
            let had = locked(&self.open).rates.remove(&ino);
            return had.map(drop).ok_or(Errno::ENODATA);
        }
        // A volume has one service, and another attribute may have set it.
        match self.is_set(ino, name)? {
            (_, true) => self.serve(ino, &Service::default()),
            (_, false) => Err(Errno::ENODATA),
        }
    }
}
