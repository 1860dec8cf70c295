//! Maps of volumes: a private map is memory that holds what the volume held at the call.
//!
//! What a program sees in a private map of a file that others change after the call, POSIX
//! leaves open (mmap, "it is unspecified"), so that a copy is such a map. It is not a shared
//! one: there later writes must be seen, and the program's own must come to the file. So those
//! are refused (`ENODEV`, as of a file of a kind that cannot be mapped), and what is too long to
//! be copied, too; standard error says what to use instead.
//!
//! Invariants: the bytes are read in the slack of the contracts by a handle of their own, so
//! that no stream moves; pages that lie wholly behind the end of the data cannot be touched; a
//! map that fails leaves nothing behind.

use crate::rules::rules;
use crate::table::{self, Open};
use crate::transfers::bytes_mut;
use crate::{real, say, set_errno};
use client::{Error, File};
use libc::{c_int, c_void, off_t, size_t};
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The longest map that is copied: longer ones cost more memory than a program that maps
/// instead of reading counts on.
const LEN_MAX: usize = 64 << 20;

macro_rules! maps {
    ($($mmap:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mmap(
            at: *mut c_void,
            len: size_t,
            rights: c_int,
            flags: c_int,
            fd: c_int,
            offset: off_t,
        ) -> *mut c_void {
            let open = if flags & libc::MAP_ANONYMOUS == 0 { table::find(fd) } else { None };
            let Some(open) = open else {
                // SAFETY: the caller's arguments, passed on.
                return unsafe { real::mmap(at, len, rights, flags, fd, offset) };
            };
            // SAFETY: mmap(2) asks that a fixed place may be used.
            let mapped = catch_unwind(AssertUnwindSafe(|| unsafe {
                map(&open, at, len, rights, flags, offset)
            }));
            mapped.unwrap_or(Err(libc::EIO)).unwrap_or_else(|errno| {
                set_errno(errno);
                libc::MAP_FAILED
            })
        }
    )*};
}

maps! { mmap mmap64 }

/// # Safety
/// With `MAP_FIXED`, nobody needs what is mapped there.
unsafe fn map(
    open: &Open,
    at: *mut c_void,
    len: size_t,
    rights: c_int,
    flags: c_int,
    offset: off_t,
) -> Result<*mut c_void, c_int> {
    let refuse = |what: &str, next: &str| {
        say(&format!("slackline: {}: {what}\n  next: {next}\n", open.name));
        Err(libc::ENODEV)
    };
    let page = page();
    let offset = u64::try_from(offset).map_err(|_| libc::EINVAL)?;
    if len == 0 || !offset.is_multiple_of(page as u64) {
        return Err(libc::EINVAL);
    }
    if open.access() == libc::O_WRONLY {
        return Err(libc::EACCES);
    }
    if flags & libc::MAP_TYPE != libc::MAP_PRIVATE {
        let what = "a volume has no shared maps: what others write later would not be seen in it";
        return refuse(what, "map it by MAP_PRIVATE, or read it");
    }
    if len > LEN_MAX {
        let what = format!("a map of {len} bytes is longer than the {LEN_MAX} that are copied");
        return refuse(&what, "read it, or map parts of it");
    }
    let told = |error: Error| {
        say(&format!("slackline: {}: {error}\n  next: {}\n", open.name, error.next_step()));
        error.errno()
    };
    let (mut file, there) = opened(open, offset, len).map_err(told)?;
    let place = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE);
    let (kind, writable) =
        (place | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: memory of no file, where the caller says or where there is room.
    let memory = unsafe { real::mmap(at, len, writable, kind, -1, 0) };
    if memory == libc::MAP_FAILED {
        // SAFETY: this thread's own, just set.
        return Err(unsafe { *libc::__errno_location() });
    }
    // SAFETY: it was just mapped, as long as this, and nobody else knows of it.
    let read = file.read_exact(unsafe { bytes_mut(memory, there) });
    let held = there.next_multiple_of(page).min(len.next_multiple_of(page));
    // SAFETY: of the map that was just made: its front gets the rights that were asked for,
    // and what lies behind the data none.
    let settled = unsafe {
        let behind = len.next_multiple_of(page) - held;
        libc::mprotect(memory, held, rights) == 0
            && libc::mprotect(memory.byte_add(held), behind, libc::PROT_NONE) == 0
    };
    if read.is_ok() && settled {
        return Ok(memory);
    }
    // SAFETY: as above; the caller never hears of it.
    unsafe { libc::munmap(memory, len) };
    Err(read.map_or_else(|error| told(Error::from(error)), |()| libc::ENOMEM))
}

/// A handle that reads the volume as best effort from `offset` on, and how many of `len` bytes
/// there are.
fn opened(open: &Open, offset: u64, len: usize) -> Result<(File, usize), Error> {
    if open.access() != libc::O_RDONLY {
        // What this program has written is in the map.
        open.file().sync()?;
    }
    let mut options = File::options();
    options.socket(rules().socket());
    let mut file = options.open(&format!("slackline:{}", open.name))?;
    let there = file.length()?.get().saturating_sub(offset).min(len as u64) as usize;
    file.seek(SeekFrom::Start(offset))?;
    Ok((file, there))
}

fn page() -> usize {
    // SAFETY: a question about this system, which has an answer.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
