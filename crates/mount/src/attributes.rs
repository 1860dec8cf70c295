//! What the kernel is told of a file, and the numbers of its errors.

use client::control::{FileFacts, FileKind, Times, Volume};
use client::{Code, Error};
use fuser::{Errno, FileAttr, FileType, INodeNo};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use units::Bytes;

/// For so long the kernel answers from what it knows of names and attributes. An open looks
/// anew, whatever the kernel knows.
pub const KNOWN_FOR: Duration = Duration::from_secs(1);

/// What programs should transfer at a time, at the least.
pub const BLOCK: u32 = 4096;

/// The inode of a volume.
pub fn inode(number: u64) -> u64 {
    number + 1
}

/// The volume behind an inode, as it is asked for whatever name it has.
pub fn volume(inode: u64) -> String {
    format!("/{}", inode - 1)
}

fn time(nanos: i64) -> SystemTime {
    let span = Duration::from_nanos(nanos.unsigned_abs());
    let at = if nanos < 0 { UNIX_EPOCH.checked_sub(span) } else { UNIX_EPOCH.checked_add(span) };
    at.unwrap_or(UNIX_EPOCH)
}

/// A time in nanoseconds since 1970; the nearest that there is.
pub fn nanos(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
    }
}

/// What is told of a volume as of a file, out of all that is told of it.
pub fn facts(volume: Volume) -> FileFacts {
    FileFacts {
        number: volume.number,
        name: volume.name,
        kind: volume.kind,
        owner: volume.owner,
        size_bytes: volume.size_bytes,
        taken_bytes: volume.taken_bytes,
        length_bytes: volume.length_bytes,
        start_bytes: volume.ring.map_or(Bytes::ZERO, |ring| ring.start_bytes),
        times: volume.times,
        version: None,
    }
}

/// What a file takes: the space that it has reserved, or taken where it is thin. A ring that has given
/// something up has no more than it holds, so that it takes less than it is long: by this `cp` and `tar`
/// see that there is a hole, and ask where the bytes begin.
fn space(facts: &FileFacts) -> Bytes {
    let has = facts.taken_bytes.unwrap_or(facts.size_bytes);
    match facts.start_bytes {
        Bytes::ZERO => has,
        start => facts.length_bytes.saturating_sub(start).min(has),
    }
}

/// Of a volume.
pub fn of(facts: &FileFacts) -> FileAttr {
    let kind = match facts.kind {
        FileKind::Volume => FileType::RegularFile,
        FileKind::Directory => FileType::Directory,
        FileKind::Link => FileType::Symlink,
    };
    let Times { accessed_ns, modified_ns, changed_ns } = facts.times.unwrap_or_default();
    FileAttr {
        ino: INodeNo(inode(facts.number)),
        size: facts.length_bytes.get(),
        blocks: space(facts).get().div_ceil(512),
        atime: time(accessed_ns),
        mtime: time(modified_ns),
        ctime: time(changed_ns),
        crtime: UNIX_EPOCH,
        kind,
        perm: match facts.kind {
            FileKind::Link => 0o777,
            _ => facts.owner.mode.bits(),
        },
        nlink: if facts.kind == FileKind::Directory { 2 } else { 1 },
        uid: facts.owner.uid,
        gid: facts.owner.gid,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

/// Of a directory that no volume stands for.
pub fn of_directory(inode: u64, (uid, gid): (u32, u32), since: SystemTime) -> FileAttr {
    FileAttr {
        ino: INodeNo(inode),
        size: 0,
        blocks: 0,
        atime: since,
        mtime: since,
        ctime: since,
        crtime: UNIX_EPOCH,
        kind: FileType::Directory,
        perm: 0o755,
        nlink: 2,
        uid,
        gid,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

/// The number of an error, as a program on files expects it.
pub fn errno(error: &Error) -> Errno {
    match error {
        Error::NoDaemon { .. } | Error::Broken(_) | Error::Garbled(_) => Errno::EIO,
        Error::Problem(problem) => match problem.code {
            Code::ShuttingDown | Code::NoSuchStream | Code::Silent | Code::OtherPool => Errno::EIO,
            Code::VolumeBusy => Errno::EBUSY,
            _ => Errno::from_i32(error.errno()),
        },
        Error::Path { .. } | Error::Interrupted | Error::Gap { .. } => Errno::EIO,
    }
}
