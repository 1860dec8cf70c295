//! What a program is told of a volume as a file: its kind, its length, how much to
//! move at a time.

use crate::names::Place;
use crate::rules::rules;
use crate::{guard, names, real, table};
use client::control::FileKind;
use client::units::Bytes;
use client::{Error, Found};
use libc::{c_char, c_int, c_uint, stat as Stat, statx as Statx};
use std::hash::{DefaultHasher, Hash, Hasher};

/// No device of the kernel's has this number: its major one is for experiments.
const DEVICE: (u32, u32) = (240, 0x51ac);
/// How a volume is told.
pub const MODE: u32 = libc::S_IFREG | 0o660;
/// How a directory is told, which nobody lists here ([`crate::refusals`]).
const DIRECTORY: u32 = libc::S_IFDIR | 0o770;

/// Whether a call is meant for the descriptor that it names.
///
/// # Safety
/// `path` is a string or null.
pub unsafe fn is_empty(path: *const c_char, flags: c_int) -> bool {
    // SAFETY: as the caller promises.
    flags & libc::AT_EMPTY_PATH != 0 && (path.is_null() || unsafe { *path } == 0)
}

/// What there is to tell.
struct Facts {
    mode: u32,
    len: u64,
    number: u64,
    /// What a program should move at a time.
    block: Bytes,
}

impl Facts {
    fn new(name: &str, len: u64, block: Bytes) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        Self { mode: MODE, len, number: hasher.finish() >> 1 | 1, block }
    }

    fn of(place: Place<'_>) -> Result<Self, Error> {
        let block = rules().block();
        let name = place.name();
        if let Place::Top = place {
            return Ok(Self { mode: DIRECTORY, ..Self::new(name, 0, block) });
        }
        Ok(match names::found(&rules().client(), place)? {
            Found::Volume(facts) if facts.kind != FileKind::Directory => {
                Self::new(name, facts.length_bytes.get(), block)
            }
            _ => Self { mode: DIRECTORY, ..Self::new(name, 0, block) },
        })
    }

    fn of_descriptor(fd: c_int) -> Option<Result<Self, Error>> {
        let open = table::find(fd)?;
        let mut file = open.file();
        let len = file.length();
        let block =
            file.contract().map_or(rules().block(), |contract| contract.terms().block_bytes);
        Some(len.map(|len| Self::new(&open.name, len.get(), block)))
    }

    /// # Safety
    /// `into` points to a stat.
    unsafe fn tell(&self, into: *mut Stat) {
        // SAFETY: zeros are a stat; the caller promises the place.
        unsafe {
            let mut told: Stat = std::mem::zeroed();
            told.st_dev = libc::makedev(DEVICE.0, DEVICE.1);
            told.st_ino = self.number;
            told.st_mode = self.mode;
            told.st_nlink = 1;
            (told.st_uid, told.st_gid) = (libc::geteuid(), libc::getegid());
            told.st_size = self.len as i64;
            told.st_blksize = self.block.get() as _;
            told.st_blocks = self.len.div_ceil(512) as i64;
            *into = told;
        }
    }

    /// # Safety
    /// `into` points to a statx.
    unsafe fn tell_all(&self, into: *mut Statx) {
        // SAFETY: zeros are a statx; the caller promises the place.
        unsafe {
            let mut told: Statx = std::mem::zeroed();
            told.stx_mask = libc::STATX_BASIC_STATS;
            (told.stx_dev_major, told.stx_dev_minor) = DEVICE;
            told.stx_ino = self.number;
            told.stx_mode = self.mode as u16;
            told.stx_nlink = 1;
            (told.stx_uid, told.stx_gid) = (libc::geteuid(), libc::getegid());
            told.stx_size = self.len;
            told.stx_blksize = self.block.get() as u32;
            told.stx_blocks = self.len.div_ceil(512);
            *into = told;
        }
    }
}

macro_rules! stats {
    ($($fstat:ident $stat:ident $lstat:ident $fstatat:ident $fxstat:ident $xstat:ident $lxstat:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fstat(fd: c_int, into: *mut Stat) -> c_int {
            match Facts::of_descriptor(fd) {
                // SAFETY: fstat(2) asks for a place.
                Some(facts) => guard(-1, || facts.map(|facts| unsafe { facts.tell(into) }).map(|()| 0)),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::fstat(fd, into) },
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $stat(path: *const c_char, into: *mut Stat) -> c_int {
            // SAFETY: stat(2) asks for a string.
            match unsafe { names::place(path) } {
                // SAFETY: and for a place.
                Some(place) => guard(-1, || Facts::of(place).map(|facts| unsafe { facts.tell(into) }).map(|()| 0)),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::stat(path, into) },
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $lstat(path: *const c_char, into: *mut Stat) -> c_int {
            // SAFETY: lstat(2) asks for a string and a place.
            unsafe {
                match names::place(path) {
                    Some(_) => $stat(path, into),
                    None => real::lstat(path, into),
                }
            }
        }
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fstatat(dir: c_int, path: *const c_char, into: *mut Stat, flags: c_int) -> c_int {
            // SAFETY: fstatat(2) asks for a string and a place.
            unsafe {
                let empty = is_empty(path, flags);
                match (names::place(path), table::find(dir)) {
                    (Some(_), _) => $stat(path, into),
                    (None, Some(_)) if empty => $fstat(dir, into),
                    _ => real::fstatat(dir, path, into, flags),
                }
            }
        }
        /// As programs call it that were built with an older C library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $fxstat(_version: c_int, fd: c_int, into: *mut Stat) -> c_int {
            // SAFETY: the caller's arguments, passed on.
            unsafe { $fstat(fd, into) }
        }
        /// The same.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $xstat(_version: c_int, path: *const c_char, into: *mut Stat) -> c_int {
            // SAFETY: the caller's arguments, passed on.
            unsafe { $stat(path, into) }
        }
        /// The same.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $lxstat(_version: c_int, path: *const c_char, into: *mut Stat) -> c_int {
            // SAFETY: the caller's arguments, passed on.
            unsafe { $lstat(path, into) }
        }
    )*};
}

stats! {
    fstat stat lstat fstatat __fxstat __xstat __lxstat;
    fstat64 stat64 lstat64 fstatat64 __fxstat64 __xstat64 __lxstat64;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    into: *mut Statx,
) -> c_int {
    // SAFETY: statx(2) asks for a string.
    let (place, empty) = unsafe { (names::place(path), is_empty(path, flags)) };
    let facts = match place {
        Some(place) => Some(Facts::of(place)),
        None if empty => Facts::of_descriptor(dir),
        None => None,
    };
    match facts {
        // SAFETY: and for a place.
        Some(facts) => guard(-1, || facts.map(|facts| unsafe { facts.tell_all(into) }).map(|()| 0)),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::statx(dir, path, flags, mask, into) },
    }
}

macro_rules! accesses {
    ($($access:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $access(path: *const c_char, mode: c_int) -> c_int {
            // SAFETY: access(2) asks for a string.
            match unsafe { names::place(path) } {
                Some(place) => guard(-1, || Facts::of(place).map(|_| 0)),
                // SAFETY: the caller's arguments, passed on.
                None => unsafe { real::$access(path, mode) },
            }
        }
    )*};
}

accesses! { access euidaccess eaccess }

#[unsafe(no_mangle)]
pub unsafe extern "C" fn faccessat(
    dir: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: faccessat(2) asks for a string.
    match unsafe { names::place(path) } {
        // SAFETY: the same string.
        Some(_) => unsafe { access(path, mode) },
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::faccessat(dir, path, mode, flags) },
    }
}
