//! The exclusive claim to a device, and who else can read it.
//!
//! The claim is the file's lock, as it always was, so that daemons of every version keep
//! each other out. But such a lock can be taken by who may only read the file, and a
//! read lock of the other kind (`fcntl`) would keep a writer out as well: no lock of the
//! kernel's is a writer's alone. So new pools are closed to readers, and of an old one
//! that is not, the lock of a reader is no claim: root sees on which descriptor it lies,
//! and that nobody has the file open for writing. Where that cannot be seen, any lock is
//! taken for a claim: bytes go before service.

use crate::error::PoolError;
use crate::sys;
use std::fs::{self, File, Metadata, TryLockError};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use units::Duration;

/// How long to wait for a lock before saying that somebody has it. On a busy machine the kernel took more than
/// 2 s to let go of what a killed process held.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The namespace in which all processes of the system are seen, as the kernel numbers it.
const ALL_PROCESSES: &str = "pid:[4026531836]";

/// Takes the claim.
///
/// After the end of a ring, of which a process that was killed is one case, the kernel
/// takes a moment to let go of what it held; who opens the device again at once waits
/// for it.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), PoolError> {
    let give_up = sys::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if sys::now() < give_up => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) if is_readers(file) => return Ok(()),
            Err(TryLockError::WouldBlock) => {
                return Err(PoolError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(PoolError::io(path, "lock it")(error)),
        }
    }
}

/// What can be read by more than its owner, in words; none where it cannot, or is no plain
/// file.
pub fn open_to_others(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok().filter(|found| found.is_file())?;
    let mode = found.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        format!(
            "{}: others than its owner can open it (mode {mode:04o}), and with it read what every \
             volume holds; close it with `chmod 600 {}`",
            path.display(),
            path.display()
        )
    })
}

/// Whether the lock that somebody has on this file is one that only reads, and nobody
/// else writes.
fn is_readers(file: &File) -> bool {
    let Ok(own) = file.metadata() else { return false };
    let may_be = own.is_file() && own.mode() & 0o044 != 0;
    let sees_all =
        fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns == Path::new(ALL_PROCESSES));
    let others = if may_be && sees_all { others(file, &own) } else { None };
    others == Some(Others { write: false, reader_has_lock: true })
}

/// What others have of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Others {
    /// Somebody has it open for writing.
    write: bool,
    /// Somebody has its lock on a descriptor for reading only.
    reader_has_lock: bool,
}

/// What all descriptors but this one have of its file; none where they cannot all be seen.
fn others(file: &File, own: &Metadata) -> Option<Others> {
    let this = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    let mut all = Others::default();
    for process in fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path()) {
        let name = process.file_name().and_then(|name| name.to_str());
        if name.is_none_or(|name| name.parse::<u32>().is_err()) {
            continue;
        }
        // One that ends meanwhile has nothing any more.
        let gone = || !process.exists();
        let fds = match fs::read_dir(process.join("fd")) {
            Ok(fds) => fds,
            Err(_) if gone() => continue,
            Err(_) => return None,
        };
        for fd in fds.flatten().map(|entry| entry.path()).filter(|fd| *fd != this) {
            let is_it = |found: &Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
            if !fs::metadata(&fd).as_ref().is_ok_and(is_it) {
                continue;
            }
            let info = process.join("fdinfo").join(fd.file_name()?);
            match fs::read_to_string(info) {
                Ok(info) if is_for_writing(&info)? => all.write = true,
                Ok(info) => all.reader_has_lock |= has_lock(&info),
                Err(_) if gone() || !fd.exists() => {}
                Err(_) => return None,
            }
        }
    }
    Some(all)
}

/// By the line `flags:` of a descriptor, in octal.
fn is_for_writing(info: &str) -> Option<bool> {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    Some(flags & libc::O_ACCMODE != libc::O_RDONLY)
}

/// By the lines `lock:` of a descriptor.
fn has_lock(info: &str) -> bool {
    let mut locks = info.lines().filter_map(|line| line.strip_prefix("lock:"));
    locks.any(|lock| lock.contains("FLOCK"))
}
