//! The times of a volume: when it was read and written, as a program says it.

use crate::names::{self, Place};
use crate::rules::rules;
use crate::{guard, real, set_errno, table};
use client::Durable;
use client::control::VolumeTimes;
use libc::{c_char, c_int, timespec, timeval, utimbuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A time in nanoseconds since 1970; none where it stays as it is.
fn moment(told: &timespec) -> Result<Option<i64>, c_int> {
    match told.tv_nsec {
        libc::UTIME_OMIT => Ok(None),
        libc::UTIME_NOW => Ok(Some(now())),
        nanos @ 0..1_000_000_000 => {
            let seconds = told.tv_sec.checked_mul(1_000_000_000);
            seconds.and_then(|time| time.checked_add(nanos)).map(Some).ok_or(libc::EINVAL)
        }
        _ => Err(libc::EINVAL),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Gives a volume two times; `times` are none for now.
fn give(name: &str, times: Option<[timespec; 2]>) -> c_int {
    guard(-1, || {
        let now = timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
        let [accessed, modified] = times.unwrap_or([now; 2]);
        let (accessed_ns, modified_ns) = match (moment(&accessed), moment(&modified)) {
            (Ok(accessed), Ok(modified)) => (accessed, modified),
            (Err(errno), _) | (_, Err(errno)) => {
                set_errno(errno);
                return Ok(-1);
            }
        };
        let times = VolumeTimes { accessed_ns, modified_ns };
        rules().client().volume_times(name, &times, Durable::WithNextSync).map(|()| 0)
    })
}

fn give_at(place: Place<'_>, times: Option<[timespec; 2]>) -> c_int {
    match place {
        Place::Below(name) => give(name, times),
        Place::Directory(name) => {
            guard(-1, || names::found(&rules().client(), place).map(|_| give(name, times)))
        }
        Place::Top => {
            set_errno(libc::EPERM);
            -1
        }
    }
}

/// # Safety
/// `times` points to two, or is null.
unsafe fn two<T: Copy>(times: *const T) -> Option<[T; 2]> {
    // SAFETY: as the caller promises.
    (!times.is_null()).then(|| unsafe { [*times, *times.add(1)] })
}

fn of_micros(times: [timeval; 2]) -> [timespec; 2] {
    // What are no microseconds is no time.
    times.map(|it| timespec {
        tv_sec: it.tv_sec,
        tv_nsec: if (0..1_000_000).contains(&it.tv_usec) { it.tv_usec * 1000 } else { -1 },
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn utimensat(
    dir: c_int,
    path: *const c_char,
    times: *const timespec,
    flags: c_int,
) -> c_int {
    // SAFETY: utimensat(2) asks for a string or nothing, and for two times or nothing.
    unsafe {
        match names::place(path) {
            Some(place) => give_at(place, two(times)),
            None if path.is_null() && table::find(dir).is_some() => futimens(dir, times),
            None => real::utimensat(dir, path, times, flags),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn futimens(fd: c_int, times: *const timespec) -> c_int {
    match table::find(fd) {
        // SAFETY: futimens(3) asks for two times or nothing.
        Some(open) => give(&open.name, unsafe { two(times) }),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::futimens(fd, times) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn futimes(fd: c_int, times: *const timeval) -> c_int {
    match table::find(fd) {
        // SAFETY: futimes(3) asks for two times or nothing.
        Some(open) => give(&open.name, unsafe { two(times) }.map(of_micros)),
        // SAFETY: the caller's arguments, passed on.
        None => unsafe { real::futimes(fd, times) },
    }
}

macro_rules! utimes {
    ($($utimes:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $utimes(path: *const c_char, times: *const timeval) -> c_int {
            // SAFETY: utimes(2) asks for a string, and for two times or nothing.
            unsafe {
                match names::place(path) {
                    Some(place) => give_at(place, two(times).map(of_micros)),
                    None => real::$utimes(path, times),
                }
            }
        }
    )*};
}

utimes! { utimes lutimes }

#[unsafe(no_mangle)]
pub unsafe extern "C" fn utime(path: *const c_char, times: *const utimbuf) -> c_int {
    // SAFETY: utime(2) asks for a string, and for two times or nothing.
    unsafe {
        let Some(place) = names::place(path) else { return real::utime(path, times) };
        let times = (!times.is_null()).then(|| *times);
        let second = |tv_sec| timespec { tv_sec, tv_nsec: 0 };
        give_at(place, times.map(|it| [second(it.actime), second(it.modtime)]))
    }
}
