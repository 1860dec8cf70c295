//! What FUSE sees: a directory with the disk, a file for orders and two with the
//! status.
//!
//! Invariants: the disk is never cached by the kernel (`FOPEN_DIRECT_IO`), takes
//! several requests at once, and keeps its size, like a block device; each of its
//! reads, writes and syncs is answered exactly once, by the drive.

use crate::device::Work;
use crate::limits::{IN_FLIGHT_MAX, TRANSFER_MAX};
use crate::order;
use crate::reply::Reply;
use crate::shared::Shared;
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use units::{Bytes, SECTOR};

/// The name of the disk.
pub(crate) const DISK: &str = "disk.img";

const ROOT_INODE: u64 = 1;
const DISK_INODE: u64 = 2;
const CONTROL_INODE: u64 = 3;
const STATUS_INODE: u64 = 4;
const STATUS_JSON_INODE: u64 = 5;

/// Names, inodes and permissions of the files.
const FILES: [(&str, u64, u16); 4] = [
    (DISK, DISK_INODE, 0o600),
    ("control", CONTROL_INODE, 0o600),
    ("status", STATUS_INODE, 0o444),
    ("status.json", STATUS_JSON_INODE, 0o444),
];

/// Nothing here changes but what is read anew each time.
const ATTRIBUTES_LAST: Duration = Duration::from_secs(3_600);
/// The longest text that is written to the control file at once.
const ORDERS_MAX: usize = 4_096;

thread_local! {
    /// Whether this thread got ready to keep time.
    static READY: Cell<bool> = const { Cell::new(false) };
}

/// The directory.
pub(crate) struct Files {
    shared: Arc<Shared>,
    /// Texts as they were when a file was opened, by handle.
    texts: Mutex<(u64, HashMap<u64, String>)>,
    owner: (u32, u32),
    made: SystemTime,
}

impl Files {
    pub fn new(shared: Arc<Shared>) -> Self {
        let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        Self { shared, texts: Mutex::default(), owner, made: SystemTime::now() }
    }

    fn ready(&self) {
        READY.with(|ready| {
            if !ready.replace(true) {
                self.shared.ready_thread();
            }
        });
    }

    fn attributes(&self, inode: u64) -> Option<FileAttr> {
        let perm = match inode {
            ROOT_INODE => 0o755,
            _ => FILES.iter().find(|&&(_, number, _)| number == inode)?.2,
        };
        let kind = if inode == ROOT_INODE { FileType::Directory } else { FileType::RegularFile };
        let size = if inode == DISK_INODE { self.shared.capacity() } else { Bytes::ZERO };
        Some(FileAttr {
            ino: INodeNo(inode),
            size: size.get(),
            // A disk has no holes, whatever the backing file has.
            blocks: size.div_ceil(SECTOR),
            atime: self.made,
            mtime: self.made,
            ctime: self.made,
            crtime: self.made,
            kind,
            perm,
            nlink: if inode == ROOT_INODE { 2 } else { 1 },
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: 4_096,
            flags: 0,
        })
    }

    fn text(&self, inode: u64) -> String {
        match inode {
            STATUS_INODE => self.shared.status().text(),
            STATUS_JSON_INODE => format!("{:#}\n", self.shared.status().json()),
            _ => order::HELP.to_owned(),
        }
    }

    /// Each line is an order; those before one that is refused are done.
    fn orders(&self, data: &[u8]) -> Result<(), Errno> {
        let text = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
        if text.len() > ORDERS_MAX {
            return Err(Errno::EFBIG);
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        for line in lines {
            self.shared.order(line).map_err(|_| Errno::EINVAL)?;
        }
        Ok(())
    }

    fn read_text(&self, handle: FileHandle, offset: u64, size: u32, reply: ReplyData) {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let text = texts.1.get(&handle.0).map_or(&[][..], |text| text.as_bytes());
        let from = text.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let to = text.len().min(from + size as usize);
        reply.data(&text[from..to]);
    }
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        if !self.shared.short_transfers {
            // Without it a loop device would have one request in flight.
            let wanted = InitFlags::FUSE_ASYNC_DIO;
            config.add_capabilities(wanted).map_err(|_| io::ErrorKind::Unsupported)?;
        }
        // Nearest values are taken where these are refused.
        let _ = config.set_max_write(TRANSFER_MAX.get() as u32);
        let _ = config.set_max_background(IN_FLIGHT_MAX);
        let _ = config.set_congestion_threshold(IN_FLIGHT_MAX);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = FILES.iter().find(|&&(known, ..)| parent.0 == ROOT_INODE && name == known);
        match found.and_then(|&(_, inode, _)| self.attributes(inode)) {
            Some(attributes) => reply.entry(&ATTRIBUTES_LAST, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode.0) {
            Some(attributes) => reply.attr(&ATTRIBUTES_LAST, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// A disk is not cut short by `O_TRUNC`, and has no other size than its own.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let Some(attributes) = self.attributes(inode.0) else {
            return reply.error(Errno::ENOENT);
        };
        if mode.is_some() || uid.is_some() || gid.is_some() {
            return reply.error(Errno::EPERM);
        }
        match size {
            None | Some(0) => reply.attr(&ATTRIBUTES_LAST, &attributes),
            Some(size) if size == attributes.size => reply.attr(&ATTRIBUTES_LAST, &attributes),
            Some(_) => reply.error(Errno::EINVAL),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        if inode.0 == DISK_INODE {
            return reply.opened(FileHandle(0), flags);
        }
        let text = self.text(inode.0);
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.0 += 1;
        let handle = texts.0;
        texts.1.insert(handle, text);
        reply.opened(FileHandle(handle), flags);
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&handle.0);
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.ready();
        if inode.0 != DISK_INODE {
            return self.read_text(handle, offset, size, reply);
        }
        let left = self.shared.capacity().saturating_sub(Bytes::new(offset));
        let len = Bytes::new(u64::from(size)).min(left);
        if len.is_zero() {
            return reply.data(&[]);
        }
        self.shared.submit(|| Work::Read { offset: Bytes::new(offset), len }, Reply::Read(reply));
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.ready();
        match inode.0 {
            DISK_INODE => {}
            CONTROL_INODE => {
                return match self.orders(data) {
                    Ok(()) => reply.written(data.len() as u32),
                    Err(error) => reply.error(error),
                };
            }
            _ => return reply.error(Errno::EPERM),
        }
        let left = self.shared.capacity().saturating_sub(Bytes::new(offset));
        let len = data.len().min(left.as_usize());
        if len == 0 {
            return if data.is_empty() { reply.written(0) } else { reply.error(Errno::ENOSPC) };
        }
        let forced = flags.0 & rustix::fs::OFlags::DSYNC.bits() as i32 != 0;
        let offset = Bytes::new(offset);
        let work = || Work::Write { offset, bytes: self.shared.copy(&data[..len]), forced };
        self.shared.submit(work, Reply::Write(reply));
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.ready();
        match inode.0 {
            DISK_INODE => self.shared.submit(|| Work::Flush, Reply::Sync(reply)),
            _ => reply.ok(),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode.0 != ROOT_INODE {
            return reply.error(Errno::ENOTDIR);
        }
        let own = [(".", ROOT_INODE), ("..", ROOT_INODE)];
        let files = FILES.iter().map(|&(name, inode, _)| (name, inode));
        for (index, (name, inode)) in (1..).zip(own.into_iter().chain(files)) {
            let directory = inode == ROOT_INODE;
            let kind = if directory { FileType::Directory } else { FileType::RegularFile };
            if index > offset && reply.add(INodeNo(inode), index, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}
