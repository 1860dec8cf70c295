//! What the kernel asks, and what it is answered.
//!
//! Invariants: a file is asked for by its number, so that it stays the same under every name; an
//! open looks at the volume anew and the kernel forgets what it had of its bytes, unless nobody but
//! this mount has changed them; a file under a stream's contract is read past the kernel's cache.

mod directories;
mod files;

use crate::attributes::{self, KNOWN_FOR, errno, inode, nanos, volume};
use crate::cached::Cached;
use crate::connections::Connections;
use crate::contracts;
use crate::file::File;
use crate::going::Going;
use crate::known::Known;
use crate::lengths::Lengths;
use crate::lock::locked;
use crate::removed::Names;
use crate::slow::Slow;
use crate::tree::{self, ROOT, Tree};
use client::control::{
    Access, DirectoryFacts, FileFacts, FileKind, Health, Permissions, UnlessChanged, VolumeTimes,
};
use client::{Code, Durable, Error, Found};
use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, KernelConfig, LockOwner, Notifier, OpenFlags, RenameFlags,
    ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Instant, SystemTime};
use units::{Bytes, Rate};

/// The longest transfer that the kernel asks for.
const TRANSFER_MAX: u32 = 1 << 20;
/// What the kernel reads ahead of a program.
pub const READ_AHEAD: u32 = 1 << 20;
/// Requests that no program waits for in a call of its own: asynchronous reads, and reads ahead.
const BACKGROUND_MAX: u16 = 2 * crate::slow::ALL_MAX as u16;
/// Longest value of an attribute that can be set.
const VALUE_MAX: usize = 256;

type Ended<T> = Result<T, Errno>;

thread_local! {
    /// What a thread that takes the kernel's requests reads into: as long as the longest read that
    /// it has answered, which is [`TRANSFER_MAX`] and a sector at the most.
    static READ: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The file system.
pub(crate) struct Server {
    ways: Arc<Connections>,
    tree: Tree,
    known: Known,
    lengths: Lengths,
    open: Mutex<Opened>,
    going: Going,
    slow: Slow,
    names: Names,
    /// The run of the daemon in which what this mount has removed was looked for last.
    swept_run: AtomicU64,
    whose: (u32, u32),
    since: SystemTime,
    notifier: Arc<OnceLock<Notifier>>,
}

/// What is open.
#[derive(Default)]
struct Opened {
    /// The files, by their inodes, with how many handles there are.
    files: HashMap<u64, (Arc<File>, u64)>,
    /// Those that have no name any more.
    nameless: HashMap<u64, String>,
    /// Directories that were removed here and that the kernel still knows, as they are told.
    removed: HashMap<u64, FileAttr>,
    /// Names of those that nobody has open any more and that could not be removed yet.
    left_over: Vec<String>,
    /// Files that were closed last while somebody took their name away for too long.
    kept_back: Vec<u64>,
    /// Handles under a contract, by their numbers.
    streams: HashMap<u64, Arc<Mutex<client::File>>>,
    /// What of a file each handle was opened at, by their numbers; none where the daemon tells no versions.
    versions: HashMap<u64, UnlessChanged>,
    /// Directories that are being listed, by their numbers.
    lists: HashMap<u64, Arc<Mutex<directories::Listing>>>,
    last_handle: u64,
    /// What the kernel has of files' bytes.
    cached: Cached,
    /// The rates of the streams that readers of a file take.
    rates: HashMap<u64, Rate>,
}

impl Opened {
    /// One more handle on a file, of which this length and this space were found. Gives how many it has.
    fn take(&mut self, ino: u64, (length, reserved): (u64, u64)) -> (Arc<File>, u64) {
        let new = || (Arc::new(File::new(ino, length, reserved)), 0);
        let (file, handles) = self.files.entry(ino).or_insert_with(new);
        *handles += 1;
        (Arc::clone(file), *handles)
    }

    /// The kernel asks something by a handle.
    fn asked_by(&mut self, handle: u64) {
        self.cached.asked_by(handle, Instant::now());
    }
}

fn failed(error: &Error) -> Errno {
    errno(error)
}

/// A name in a directory, as text.
fn text(name: &OsStr) -> Ended<&str> {
    name.to_str().ok_or(Errno::EILSEQ)
}

impl Server {
    pub fn new(ways: Arc<Connections>) -> Self {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let swept_run = AtomicU64::new(ways.run());
        Self {
            ways,
            tree: Tree::default(),
            known: Known::default(),
            lengths: Lengths::default(),
            open: Mutex::default(),
            going: Going::default(),
            slow: Slow::default(),
            names: Names::new(),
            swept_run,
            whose: own,
            since: SystemTime::now(),
            notifier: Arc::default(),
        }
    }

    /// Where the way to tell the kernel something is put when there is one.
    pub fn notifier(&self) -> Arc<OnceLock<Notifier>> {
        Arc::clone(&self.notifier)
    }

    /// Makes a change of names in these directories, or of owners or times of these inodes: whoever syncs one
    /// of them hears where it is lost.
    fn change<T>(
        &self,
        inodes: &[u64],
        call: impl Fn(&client::Client) -> Result<T, Error>,
    ) -> Ended<T> {
        crate::file::patiently(|| self.change_once(inodes, &call)).map_err(|error| failed(&error))
    }

    /// The same, also where what others ask of the volume is under way.
    fn change_once<T>(
        &self,
        inodes: &[u64],
        call: impl Fn(&client::Client) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.ways.change_of(inodes, call)
    }

    /// What a directory is asked for by: its number, or where no volume stands for it, what path it had
    /// when.
    fn place(&self, directory: u64) -> Ended<String> {
        match tree::is_implicit(directory) {
            true => self.tree.place(directory).ok_or(Errno::ESTALE),
            false => Ok(volume(directory)),
        }
    }

    /// What a directory is called now.
    fn path(&self, directory: u64) -> Ended<String> {
        if directory == ROOT {
            return Ok(String::new());
        }
        match self.find(&self.place(directory)?)? {
            Found::Volume(facts) if facts.kind == FileKind::Directory => Ok(facts.name),
            Found::Directory(found) => {
                self.tree.know_as(directory, &found);
                Ok(found.name)
            }
            Found::Volume(_) => Err(Errno::ESTALE),
        }
    }

    /// What an entry of a directory is asked for by; names of ours are nobody's.
    fn entry(&self, parent: u64, name: &OsStr) -> Ended<String> {
        let name = text(name)?;
        if parent == ROOT && name == crate::removed::DIRECTORY {
            return Err(Errno::ENOENT);
        }
        if name.len() > client::VOLUME_NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        Ok(tree::join(&self.place(parent)?, name))
    }

    /// That something is not there in a directory may be because that is not there: then the kernel looks
    /// for it again.
    fn not_there(&self, directory: u64, error: Errno) -> Errno {
        match error {
            Errno::ENOENT if tree::is_implicit(directory) => {
                self.path(directory).err().map_or(Errno::ENOENT, gone)
            }
            other => other,
        }
    }

    /// What has this name, or is asked for in another way.
    fn find(&self, name: &str) -> Ended<Found> {
        let found = self.ways.ask(|client| client.file_facts(name));
        found.map_err(|error| match &error {
            // A name that no volume can have.
            Error::Problem(problem)
                if matches!(problem.code, Code::Invalid | Code::NameTooLong) =>
            {
                Errno::ENOENT
            }
            _ => failed(&error),
        })
    }

    /// What the kernel is told of what was found.
    fn told(&self, found: &Found) -> FileAttr {
        match found {
            Found::Volume(facts) => {
                self.found(facts);
                attributes::of(facts)
            }
            Found::Directory(found) => {
                let inode = self.inode_of(found);
                self.tree.know_as(inode, found);
                self.told_of_directory(inode)
            }
        }
    }

    /// The kernel is about to be told of an entry of a directory: by its name, but for `.` and `..`, of which
    /// it asks for inodes. It counts as known first: what is noted for an inode that is not known may be
    /// removed by a thread that handles an earlier forget.
    fn tell_entry(&self, by: Option<(u64, &OsStr)>, told: &FileAttr) {
        self.known.tell(told.ino.0);
        if let Some((parent, name)) = by {
            self.tree.tell(parent, name, told);
        }
        self.tell(told);
    }

    /// The kernel is about to be told this of an inode that it knows.
    fn tell(&self, told: &FileAttr) {
        if told.kind == FileType::RegularFile {
            self.lengths.told(told.ino.0, told.size);
        }
    }

    /// The inode of a directory that no volume stands for. Where the kernel knows one of this path that is
    /// not found any more, since the daemon was started again or much was renamed, this is another one.
    fn inode_of(&self, found: &DirectoryFacts) -> u64 {
        let inode = tree::implicit(found);
        let place = self.tree.place(inode).filter(|place| *place != tree::place(found));
        let is_it = |place: &str| match self.find(place) {
            Ok(Found::Directory(known)) => known.name == found.name,
            _ => false,
        };
        match place {
            Some(place) if self.known.has(inode) && !is_it(&place) => {
                tree::implicit(&DirectoryFacts { since: found.moment, ..found.clone() })
            }
            _ => inode,
        }
    }

    fn told_of_directory(&self, inode: u64) -> FileAttr {
        attributes::of_directory(inode, self.whose, self.since)
    }

    /// An open file hears what was just found of it.
    fn found(&self, facts: &FileFacts) {
        let open = locked(&self.open).files.get(&inode(facts.number)).map(|(file, _)| file.clone());
        if let Some(file) = open {
            file.found(facts.length_bytes.get(), facts.size_bytes.get());
        }
    }

    /// A file that somebody has open; one that nobody has is looked at.
    fn file(&self, ino: u64) -> Ended<Arc<File>> {
        if let Some((file, _)) = locked(&self.open).files.get(&ino) {
            return Ok(Arc::clone(file));
        }
        if tree::is_implicit(ino) {
            return Err(Errno::EISDIR);
        }
        let Found::Volume(facts) = self.find(&volume(ino))? else { return Err(Errno::EIO) };
        Ok(Arc::new(File::new(ino, facts.length_bytes.get(), facts.size_bytes.get())))
    }

    fn attributes(&self, ino: u64) -> Ended<FileAttr> {
        if tree::is_implicit(ino) {
            // A volume may stand for it by now; it keeps its number here.
            self.path(ino).map_err(gone)?;
            return Ok(self.told_of_directory(ino));
        }
        if let Some(removed) = locked(&self.open).removed.get(&ino) {
            return Ok(*removed);
        }
        let mut told = self.told(&self.find_open(ino)?);
        if locked(&self.open).nameless.contains_key(&ino) {
            told.nlink = 0;
        }
        Ok(told)
    }

    /// What an inode stands for that the kernel has; it looks again at the name where that is gone.
    fn find_open(&self, ino: u64) -> Ended<Found> {
        self.find(&volume(ino)).map_err(gone)
    }

    /// Where the next data or the next hole is. All of a file is data to those who look for holes,
    /// but what a ring has given up.
    fn sought(&self, ino: u64, offset: i64, whence: i32) -> Ended<i64> {
        let Found::Volume(facts) = self.find(&volume(ino))? else { return Err(Errno::ENXIO) };
        let (start, end) = (facts.start_bytes.get(), facts.length_bytes.get());
        let at = u64::try_from(offset).ok().filter(|&at| at < end).ok_or(Errno::ENXIO)?;
        let found = match whence {
            libc::SEEK_DATA if start < end => at.max(start),
            libc::SEEK_HOLE if at < start => at,
            libc::SEEK_HOLE => end,
            _ => return Err(Errno::ENXIO),
        };
        i64::try_from(found).map_err(|_| Errno::EOVERFLOW)
    }

    /// Makes a directory's names durable, or says that some went with the daemon.
    fn sync_names(&self, ino: u64, handle: u64) -> Ended<()> {
        match self.ways.sync(ino, handle) {
            Ok(true) => Err(Errno::EIO),
            Ok(false) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Whose a new volume is. The daemon makes it its asker's, which is who has mounted.
    fn access(&self, request: &Request, mode: u32) -> Access {
        let permissions = Permissions::new((mode & 0o777) as u16);
        let mut access = Access { mode: permissions, ..Access::default() };
        if self.whose.0 == 0 {
            access.user = Some(request.uid().to_string());
            access.group = Some(request.gid().to_string());
        }
        access
    }

    #[allow(clippy::too_many_arguments)] // the kernel's own
    fn set(
        &self,
        ino: u64,
        mode: Option<u32>,
        (uid, gid): (Option<u32>, Option<u32>),
        (size, handle): (Option<u64>, Option<u64>),
        (accessed, modified): (Option<TimeOrNow>, Option<TimeOrNow>),
    ) -> Ended<FileAttr> {
        if tree::is_implicit(ino) {
            // It is there only because something lies under it: a volume that stands for it has
            // an owner, a mode and times, and another inode.
            return match (mode, uid, gid, size) {
                (None, None, None, None) => self.attributes(ino),
                _ => Err(Errno::EPERM),
            };
        }
        if let Some(removed) = locked(&self.open).removed.get_mut(&ino) {
            // Nobody else sees it any more.
            removed.perm = mode.map_or(removed.perm, |mode| (mode & 0o777) as u16);
            (removed.uid, removed.gid) = (uid.unwrap_or(removed.uid), gid.unwrap_or(removed.gid));
            removed.atime = accessed.map_or(removed.atime, moment);
            removed.mtime = modified.map_or(removed.mtime, moment);
            return Ok(*removed);
        }
        let name = volume(ino);
        let undone = handle.filter(|&handle| self.lengths.undoes((ino, handle), size));
        let opened = undone.map(|handle| locked(&self.open).versions.get(&handle).cloned());
        if let Some(size) = size {
            self.with_file(ino, |file| {
                match &opened {
                    None => file.cut(&self.ways, size)?,
                    Some(Some(opened)) => file.cut_back(&self.ways, size, opened)?,
                    // What others have done since is not known: nothing is cut off.
                    Some(None) => drop(file.look(&self.ways)?),
                }
                file.trim(&self.ways);
                Ok(())
            })?;
        }
        if mode.is_some() || uid.is_some() || gid.is_some() {
            let access = Access {
                user: uid.map(|uid| uid.to_string()),
                group: gid.map(|gid| gid.to_string()),
                mode: mode.and_then(|mode| Permissions::new((mode & 0o777) as u16)),
            };
            self.change(&[ino], |client| {
                client.set_volume_access(&name, &access, Durable::WithNextSync)
            })?;
        }
        if accessed.is_some() || modified.is_some() {
            let at = |time: TimeOrNow| nanos(moment(time));
            let times =
                VolumeTimes { accessed_ns: accessed.map(at), modified_ns: modified.map(at) };
            self.change(&[ino], |client| {
                client.volume_times(&name, &times, Durable::WithNextSync)
            })?;
        }
        self.attributes(ino)
    }

    fn space(&self) -> Ended<Health> {
        self.ways.ask(client::Client::health).map_err(|error| failed(&error))
    }
}

fn moment(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

/// Answers with what was found, or why nothing was.
macro_rules! answer {
    ($reply:ident, $ended:expr, $found:pat => $told:expr) => {
        match $ended {
            Ok($found) => $told,
            Err(error) => $reply.error(error),
        }
    };
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Where the kernel has none of these, it does without.
        for wanted in [
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_EXPORT_SUPPORT,
        ] {
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_write(TRANSFER_MAX);
        let _ = config.set_max_readahead(READ_AHEAD);
        // Reads that wait for their streams leave room for what the kernel reads ahead.
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        answer!(reply, self.look_up(parent.0, name), told => {
            let by = (name != "." && name != "..").then_some((parent.0, name));
            self.tell_entry(by, &told);
            if tree::is_implicit(told.ino.0) && self.tree.place(told.ino.0).is_none() {
                // Forgotten between being found and being known: what it is asked for by is noted again.
                let _ = self.look_up(parent.0, name);
            }
            reply.entry(&KNOWN_FOR, &told, Generation(0));
        });
    }

    fn forget(&self, _: &Request, ino: INodeNo, times: u64) {
        if self.known.forget(ino.0, times) {
            self.forgotten(ino.0);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer!(reply, self.attributes(ino.0), told => {
            self.tell(&told);
            reply.attr(&KNOWN_FOR, &told);
        });
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let size = (size, handle.map(|handle| handle.0));
        let set = self.set(ino.0, mode, (uid, gid), size, (accessed, modified)).map_err(gone);
        answer!(reply, set, told => {
            self.tell(&told);
            reply.attr(&KNOWN_FOR, &told);
        });
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        let mut into = Vec::new();
        let read = self.file(ino.0);
        let read = read.and_then(|file| file.read(&self.ways, (0, 4096), &mut into)).map_err(gone);
        answer!(reply, read, text => reply.data(text));
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        if mode & libc::S_IFMT != libc::S_IFREG && mode & libc::S_IFMT != 0 {
            return reply.error(Errno::EPERM);
        }
        let made = self.make(request, parent.0, name, FileKind::Volume, mode);
        answer!(reply, made, told => {
            self.tell_entry(Some((parent.0, name)), &told);
            reply.entry(&KNOWN_FOR, &told, Generation(0));
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let made = self.make(request, parent.0, name, FileKind::Directory, mode);
        answer!(reply, made, told => {
            self.tell_entry(Some((parent.0, name)), &told);
            reply.entry(&KNOWN_FOR, &told, Generation(0));
        });
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made = self.link_to(request, parent.0, name, target);
        answer!(reply, made, told => {
            self.tell_entry(Some((parent.0, name)), &told);
            reply.entry(&KNOWN_FOR, &told, Generation(0));
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove(parent.0, name), () => reply.ok());
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove_directory(parent.0, name), () => reply.ok());
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to_parent: INodeNo,
        to_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.rename((parent.0, name), (to_parent.0, to_name), flags);
        answer!(reply, renamed, () => reply.ok());
    }

    fn open(&self, request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = self.open_file((ino.0, request.pid()), flags.0);
        answer!(reply, opened, (handle, flags) => reply.opened(FileHandle(handle), flags));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.create_file(request, parent.0, name, mode, flags);
        answer!(reply, made, (told, handle, flags) => {
            self.tell_entry(Some((parent.0, name)), &told);
            reply.created(&KNOWN_FOR, &told, Generation(0), FileHandle(handle), flags);
        });
    }

    fn read(
        &self,
        request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut open = locked(&self.open);
        open.asked_by(handle.0);
        let stream = open.streams.get(&handle.0).cloned();
        if stream.is_some() {
            // A private mapping of it may bring older bytes of the stream's window into the cache.
            open.cached.forget(ino.0);
        }
        drop(open);
        if let Some(stream) = stream {
            return self.slow.read(request.uid(), stream, (offset, size), reply);
        }
        READ.with_borrow_mut(|into| {
            let file = self.file(ino.0);
            let read = match &file {
                Ok(file) => file.read(&self.ways, (offset, size.into()), into),
                Err(error) => Err(*error),
            };
            answer!(reply, read.map_err(gone), bytes => {
                if bytes.len() < size as usize {
                    self.lengths.ends(ino.0, offset + bytes.len() as u64);
                }
                reply.data(bytes);
            });
        });
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        locked(&self.open).asked_by(handle.0);
        let is_past_cache = flags.0 & libc::O_DIRECT != 0;
        let end = offset.saturating_add(bytes.len() as u64);
        let written = self.file(ino.0).and_then(|file| {
            file.write(&self.ways, offset, bytes)?;
            // Behind an asynchronous write past the cache the kernel asks for no fsync.
            match is_past_cache && flags.0 & libc::O_DSYNC != 0 {
                true => file.sync(&self.ways, handle.0),
                false => Ok(()),
            }
        });
        match (&written, is_past_cache) {
            (Ok(()), false) => self.lengths.reaches(ino.0, end),
            // It makes the file longer for the kernel only where all requests of a write were answered.
            (Ok(()), true) => {}
            (Err(_), true) => self.lengths.failed((ino.0, handle.0), end),
            (Err(_), false) => {}
        }
        // Of an asynchronous write past the cache a read may have brought older bytes into it; and
        // what was not answered may be done yet.
        if written.is_err() || is_past_cache {
            locked(&self.open).cached.forget(ino.0);
        }
        answer!(reply, written.map_err(gone), () => reply.written(bytes.len() as u32));
    }

    fn flush(&self, _: &Request, _: INodeNo, handle: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        locked(&self.open).asked_by(handle.0);
        // What was written is with the daemon already, and what failed was said then.
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.close_file(ino.0, handle.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let synced = self.file(ino.0).and_then(|file| file.sync(&self.ways, handle.0));
        answer!(reply, synced.map_err(gone), () => reply.ok());
    }

    fn opendir(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let opened = self.open_directory(ino.0);
        answer!(reply, opened, handle => reply.opened(FileHandle(handle), FopenFlags::empty()));
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.listed(handle.0, offset, |entry, next| {
            reply.add(entry.told.ino, next, entry.told.kind, &entry.name)
        });
        answer!(reply, listed, () => reply.ok());
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let mut all = Vec::new();
        let listed = self.listed(handle.0, offset, |entry, next| {
            let told = &entry.told;
            let is_full = reply.add(told.ino, next, &entry.name, &KNOWN_FOR, told, Generation(0));
            // Of `.` and `..` the kernel takes no note.
            if !is_full && next > directories::OWN {
                self.tell_entry(Some((ino.0, OsStr::new(&entry.name))), told);
                if let Some(found) = &entry.found {
                    self.tree.know_as(told.ino.0, found);
                }
                all.push(told.ino.0);
            }
            is_full
        });
        if listed.is_err() {
            // The kernel is told of none of them.
            all.into_iter()
                .filter(|&ino| self.known.forget(ino, 1))
                .for_each(|ino| self.forgotten(ino));
        }
        answer!(reply, listed, () => reply.ok());
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.ways.unsynced.close(handle.0);
        locked(&self.open).lists.remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        answer!(reply, self.sync_names(ino.0, handle.0), () => reply.ok());
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        answer!(reply, self.space(), health => {
            let blocks = |bytes: Bytes| bytes.get() / u64::from(attributes::BLOCK);
            let (all, free) = (blocks(health.capacity_bytes), blocks(health.free_bytes));
            let (files, more) = (health.volumes + health.volumes_free, health.volumes_free);
            let block = attributes::BLOCK;
            reply.statfs(all, free, free, files, more, block, 255, block);
        });
    }

    fn setxattr(
        &self,
        request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let may = self.may_contract(request, ino.0, name);
        let set = may.and_then(|()| self.set_contract(ino.0, name, value, flags)).map_err(gone);
        answer!(reply, set, () => reply.ok());
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        match self.contract(ino.0, name).map_err(gone) {
            Ok(value) => sized(value.as_bytes(), size, reply),
            Err(error) => reply.error(error),
        }
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        match self.contract_names(ino.0).map_err(gone) {
            Ok(names) => sized(&names, size, reply),
            Err(error) => reply.error(error),
        }
    }

    fn removexattr(&self, request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let may = self.may_contract(request, ino.0, name);
        let removed = may.and_then(|()| self.remove_contract(ino.0, name)).map_err(gone);
        answer!(reply, removed, () => reply.ok());
    }

    fn access(&self, _: &Request, _: INodeNo, _: AccessFlags, reply: ReplyEmpty) {
        // The kernel has looked at owner and mode.
        reply.ok();
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let allocated = self.allocate(ino.0, offset, length, mode).map_err(gone);
        answer!(reply, allocated, () => reply.ok());
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let sought = self.sought(ino.0, offset, whence).map_err(gone);
        answer!(reply, sought, at => reply.offset(at));
    }
}

/// Of what is asked for by its number: the kernel looks again who has the name, and a program that has it
/// open is told that it is gone.
fn gone(error: Errno) -> Errno {
    match error {
        Errno::ENOENT => Errno::ESTALE,
        other => other,
    }
}

fn sized(value: &[u8], size: u32, reply: ReplyXattr) {
    match size {
        0 => reply.size(value.len() as u32),
        size if value.len() <= size as usize => reply.data(value),
        _ => reply.error(Errno::ERANGE),
    }
}
