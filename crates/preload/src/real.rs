//! The C library's own functions, behind ours.
//!
//! Invariant: a function is looked up once; one that is not there fails with `ENOSYS`.

/// Defines functions that call the next one of their name.
macro_rules! real {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty, or $bad:expr;)*) => {$(
        $(#[$doc])*
        pub unsafe fn $name($($argument: $kind),*) -> $result {
            use std::sync::atomic::{AtomicPtr, Ordering};
            type Function = unsafe extern "C" fn($($kind),*) -> $result;
            static FOUND: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());
            let mut found = FOUND.load(Ordering::Relaxed);
            if found.is_null() {
                const NAME: &str = concat!(stringify!($name), "\0");
                // SAFETY: the name ends in a zero byte.
                found = unsafe { libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr().cast()) };
                FOUND.store(found, Ordering::Relaxed);
            }
            if found.is_null() {
                crate::set_errno(libc::ENOSYS);
                return $bad;
            }
            // SAFETY: the C library's function of this name has these arguments.
            let function: Function = unsafe { std::mem::transmute(found) };
            // SAFETY: as the caller promises, who was called with the same arguments.
            unsafe { function($($argument),*) }
        }
    )*};
}

use libc::{
    DIR, FILE, c_char, c_int, c_uint, c_void, dev_t, gid_t, iovec, mode_t, off_t, size_t, ssize_t,
    stat as Stat, statx as Statx, timespec, timeval, uid_t, utimbuf,
};

real! {
    fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int, or -1;
    fn openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int, or -1;
    fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE, or std::ptr::null_mut();
    fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE, or std::ptr::null_mut();
    fn fileno(file: *mut FILE) -> c_int, or -1;
    fn fileno_unlocked(file: *mut FILE) -> c_int, or -1;
    fn close(fd: c_int) -> c_int, or -1;
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int, or -1;
    fn mmap(at: *mut c_void, len: size_t, rights: c_int, flags: c_int, fd: c_int, offset: off_t) -> *mut c_void, or libc::MAP_FAILED;
    fn dup(fd: c_int) -> c_int, or -1;
    fn dup2(fd: c_int, to: c_int) -> c_int, or -1;
    fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int, or -1;
    fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int, or -1;
    fn read(fd: c_int, data: *mut c_void, len: size_t) -> ssize_t, or -1;
    fn write(fd: c_int, data: *const c_void, len: size_t) -> ssize_t, or -1;
    fn pread(fd: c_int, data: *mut c_void, len: size_t, at: off_t) -> ssize_t, or -1;
    fn pwrite(fd: c_int, data: *const c_void, len: size_t, at: off_t) -> ssize_t, or -1;
    fn readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t, or -1;
    fn writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t, or -1;
    fn preadv(fd: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t, or -1;
    fn pwritev(fd: c_int, parts: *const iovec, count: c_int, at: off_t) -> ssize_t, or -1;
    fn preadv2(fd: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t, or -1;
    fn pwritev2(fd: c_int, parts: *const iovec, count: c_int, at: off_t, flags: c_int) -> ssize_t, or -1;
    fn lseek(fd: c_int, offset: off_t, whence: c_int) -> off_t, or -1;
    fn fsync(fd: c_int) -> c_int, or -1;
    fn fdatasync(fd: c_int) -> c_int, or -1;
    fn ftruncate(fd: c_int, len: off_t) -> c_int, or -1;
    fn fallocate(fd: c_int, mode: c_int, at: off_t, len: off_t) -> c_int, or -1;
    fn posix_fallocate(fd: c_int, at: off_t, len: off_t) -> c_int, or libc::ENOSYS;
    fn posix_fadvise(fd: c_int, at: off_t, len: off_t, advice: c_int) -> c_int, or libc::ENOSYS;
    fn copy_file_range(from: c_int, at: *mut off_t, to: c_int, to_at: *mut off_t, len: size_t, flags: c_uint) -> ssize_t, or -1;
    fn sendfile(to: c_int, from: c_int, at: *mut off_t, len: size_t) -> ssize_t, or -1;
    fn fstat(fd: c_int, into: *mut Stat) -> c_int, or -1;
    fn stat(path: *const c_char, into: *mut Stat) -> c_int, or -1;
    fn lstat(path: *const c_char, into: *mut Stat) -> c_int, or -1;
    fn fstatat(dir: c_int, path: *const c_char, into: *mut Stat, flags: c_int) -> c_int, or -1;
    fn statx(dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, into: *mut Statx) -> c_int, or -1;
    fn access(path: *const c_char, mode: c_int) -> c_int, or -1;
    fn faccessat(dir: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int, or -1;
    fn euidaccess(path: *const c_char, mode: c_int) -> c_int, or -1;
    fn eaccess(path: *const c_char, mode: c_int) -> c_int, or -1;
    fn unlink(path: *const c_char) -> c_int, or -1;
    fn remove(path: *const c_char) -> c_int, or -1;
    fn unlinkat(dir: c_int, path: *const c_char, flags: c_int) -> c_int, or -1;
    fn rename(from: *const c_char, to: *const c_char) -> c_int, or -1;
    fn renameat(dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char) -> c_int, or -1;
    fn renameat2(dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char, flags: c_uint) -> c_int, or -1;
    fn mkdir(path: *const c_char, mode: mode_t) -> c_int, or -1;
    fn mkdirat(dir: c_int, path: *const c_char, mode: mode_t) -> c_int, or -1;
    fn rmdir(path: *const c_char) -> c_int, or -1;
    fn chdir(path: *const c_char) -> c_int, or -1;
    fn opendir(path: *const c_char) -> *mut DIR, or std::ptr::null_mut();
    fn scandir(path: *const c_char, list: *mut c_void, wanted: *mut c_void, order: *mut c_void) -> c_int, or -1;
    fn scandir64(path: *const c_char, list: *mut c_void, wanted: *mut c_void, order: *mut c_void) -> c_int, or -1;
    fn symlink(text: *const c_char, path: *const c_char) -> c_int, or -1;
    fn symlinkat(text: *const c_char, dir: c_int, path: *const c_char) -> c_int, or -1;
    fn link(from: *const c_char, to: *const c_char) -> c_int, or -1;
    fn linkat(dir: c_int, from: *const c_char, to_dir: c_int, to: *const c_char, flags: c_int) -> c_int, or -1;
    fn mkfifo(path: *const c_char, mode: mode_t) -> c_int, or -1;
    fn mkfifoat(dir: c_int, path: *const c_char, mode: mode_t) -> c_int, or -1;
    fn mknod(path: *const c_char, mode: mode_t, device: dev_t) -> c_int, or -1;
    fn mknodat(dir: c_int, path: *const c_char, mode: mode_t, device: dev_t) -> c_int, or -1;
    fn chmod(path: *const c_char, mode: mode_t) -> c_int, or -1;
    fn fchmod(fd: c_int, mode: mode_t) -> c_int, or -1;
    fn fchmodat(dir: c_int, path: *const c_char, mode: mode_t, flags: c_int) -> c_int, or -1;
    fn chown(path: *const c_char, user: uid_t, group: gid_t) -> c_int, or -1;
    fn lchown(path: *const c_char, user: uid_t, group: gid_t) -> c_int, or -1;
    fn fchown(fd: c_int, user: uid_t, group: gid_t) -> c_int, or -1;
    fn fchownat(dir: c_int, path: *const c_char, user: uid_t, group: gid_t, flags: c_int) -> c_int, or -1;
    fn utimensat(dir: c_int, path: *const c_char, times: *const timespec, flags: c_int) -> c_int, or -1;
    fn futimens(fd: c_int, times: *const timespec) -> c_int, or -1;
    fn utimes(path: *const c_char, times: *const timeval) -> c_int, or -1;
    fn lutimes(path: *const c_char, times: *const timeval) -> c_int, or -1;
    fn futimes(fd: c_int, times: *const timeval) -> c_int, or -1;
    fn utime(path: *const c_char, times: *const utimbuf) -> c_int, or -1;
    fn truncate(path: *const c_char, len: off_t) -> c_int, or -1;
    fn getxattr(path: *const c_char, name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t, or -1;
    fn lgetxattr(path: *const c_char, name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t, or -1;
    fn fgetxattr(fd: c_int, name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t, or -1;
    fn listxattr(path: *const c_char, list: *mut c_char, size: size_t) -> ssize_t, or -1;
    fn llistxattr(path: *const c_char, list: *mut c_char, size: size_t) -> ssize_t, or -1;
    fn flistxattr(fd: c_int, list: *mut c_char, size: size_t) -> ssize_t, or -1;
    fn setxattr(path: *const c_char, name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int, or -1;
    fn lsetxattr(path: *const c_char, name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int, or -1;
    fn fsetxattr(fd: c_int, name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int, or -1;
}
