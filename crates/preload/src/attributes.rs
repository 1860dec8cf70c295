//! Extended attributes: a volume has none, and programs that copy files pass over that.

use crate::{names, real, set_errno, table};
use libc::{c_char, c_int, c_void, size_t, ssize_t};

/// Calls with a path, refused where that is one of ours.
macro_rules! by_path {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, $($argument: $kind),*) -> $result {
            // SAFETY: the call asks for a string.
            if unsafe { names::place(path) }.is_some() {
                set_errno(libc::ENOTSUP);
                return -1;
            }
            // SAFETY: the caller's arguments, passed on.
            unsafe { real::$name(path, $($argument),*) }
        }
    )*};
}

by_path! {
    fn getxattr(name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t;
    fn lgetxattr(name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t;
    fn listxattr(list: *mut c_char, size: size_t) -> ssize_t;
    fn llistxattr(list: *mut c_char, size: size_t) -> ssize_t;
    fn setxattr(name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int;
    fn lsetxattr(name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int;
}

/// The same with a descriptor.
macro_rules! by_descriptor {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, $($argument: $kind),*) -> $result {
            if table::find(fd).is_some() {
                set_errno(libc::ENOTSUP);
                return -1;
            }
            // SAFETY: the caller's arguments, passed on.
            unsafe { real::$name(fd, $($argument),*) }
        }
    )*};
}

by_descriptor! {
    fn fgetxattr(name: *const c_char, value: *mut c_void, size: size_t) -> ssize_t;
    fn flistxattr(list: *mut c_char, size: size_t) -> ssize_t;
    fn fsetxattr(name: *const c_char, value: *const c_void, size: size_t, flags: c_int) -> c_int;
}
