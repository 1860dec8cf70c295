//! Volumes that a program has open when another takes its place (`exec`): a shell opens what it redirects
//! to, and so becomes the program that shall write there.
//!
//! Who is about to be replaced ends its streams, and leaves in the place of each descriptor one of memory
//! that names the volume; who begins in its place opens those. Its standard input and output are `FILE`s
//! of ours then, since the C library's own read and write unseen.
//!
//! A child of vfork is about to be replaced while its parent waits. It gets what its parent has open, as far
//! as there is no stream, which its parent then has no more.
//!
//! Invariants: one process has it at a time, so that nobody writes where another one does; where nobody
//! takes the place, everything is as it was. What a shell has open for several programs, the others of
//! them do not have: that is said.

use crate::rules::rules;
use crate::table::{self, Open};
use crate::{others, real, stream};
use client::{Contract, InTime};
use libc::{c_char, c_int};
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs::File as Plain;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsRawFd, FromRawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// Shells redirect descriptors below this.
const DESCRIPTORS: c_int = 10;
/// What the memory is called.
const NAME: &CStr = c"slackline-volume";

/// What is taken away before another program may be in this one's place.
struct Left {
    /// Not held: a child of vfork would hold it in its parent's memory for ever.
    open: Weak<Open>,
    is_ours: bool,
    contract: Option<Contract>,
    in_time: Option<InTime>,
}

/// Whether a program that takes this one's place keeps a descriptor.
fn is_kept(descriptor: c_int) -> bool {
    // SAFETY: a question, without an argument.
    let flags = unsafe { real::fcntl(descriptor, libc::F_GETFD, std::ptr::null_mut()) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// Ends the streams of what is kept, and leaves word of it.
fn leave() -> Vec<Left> {
    let mut left: Vec<Left> = Vec::new();
    for descriptor in table::between(0, DESCRIPTORS - 1) {
        let open = table::find_shared(descriptor).filter(|_| is_kept(descriptor));
        let Some(open) = open else { continue };
        let mut file = open.file();
        let is_it = |it: &Left| it.open.as_ptr() == Arc::as_ptr(&open);
        if !left.iter().any(is_it) {
            let (contract, in_time) = (file.contract(), file.in_time());
            if open.is_ours() {
                if open.writes()
                    && let Err(error) = file.sync()
                {
                    open.keep(error);
                }
                let _ = file.set_contract(None);
                let _ = file.set_in_time(None);
            } else if contract.is_some() || in_time.is_some() {
                // Its parent's stream, which goes on: the program could not have another.
                continue;
            }
            left.push(Left {
                open: Arc::downgrade(&open),
                is_ours: open.is_ours(),
                contract,
                in_time,
            });
        }
        // Two descriptors of one opening stay so.
        let which = left.iter().position(is_it).unwrap_or_default();
        let (process, flags, place) = (std::process::id(), open.flags(), file.position().get());
        drop(file);
        let mut word = String::new();
        let _ = write!(word, "{process} {which} {flags} {place} {}", open.name);
        let _ = put(descriptor, &word);
    }
    give(&left, true);
    left
}

/// Puts memory with these words in the place of a descriptor, where it can be neither read nor written.
fn put(descriptor: c_int, word: &str) -> std::io::Result<()> {
    // SAFETY: the name is a string; the descriptor is new, and nobody else's.
    let memory = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
    if memory < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it is new, and nobody else's.
    let mut memory = unsafe { Plain::from_raw_fd(memory) };
    memory.write_all(word.as_bytes())?;
    let path = format!("/proc/self/fd/{}\0", memory.as_raw_fd());
    // SAFETY: the path ends in a zero byte, and the mode is not looked at; what is put in the place is of
    // the kind that was there.
    unsafe {
        let placeholder = real::open(path.as_ptr().cast(), libc::O_PATH | libc::O_CLOEXEC, 0);
        if placeholder >= 0 {
            real::dup2(placeholder, descriptor);
            real::close(placeholder);
        }
    }
    Ok(())
}

/// What is a parent's is that program's, or its parent's again.
fn give(left: &[Left], is_given: bool) {
    for open in left.iter().filter(|it| !it.is_ours).filter_map(|it| it.open.upgrade()) {
        open.give(is_given);
    }
}

/// Everything as it was: nobody has taken the place.
fn come_back(left: Vec<Left>) {
    give(&left, false);
    for Left { open, contract, in_time, .. } in left.into_iter().filter(|it| it.is_ours) {
        let Some(open) = open.upgrade() else { continue };
        let mut file = open.file();
        let back = file.set_in_time(in_time).and_then(|()| file.set_contract(contract));
        drop(file);
        if let Err(error) = back {
            open.keep(error);
        }
    }
}

/// Calls that put another program in this one's place.
macro_rules! execs {
    ($(fn $name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            let left = catch_unwind(leave).unwrap_or_default();
            // SAFETY: the caller's arguments, passed on.
            let failed = unsafe { real::$name($($argument),*) };
            if !left.is_empty() {
                // SAFETY: the address is this thread's own.
                let errno = unsafe { *libc::__errno_location() };
                let _ = catch_unwind(AssertUnwindSafe(|| come_back(left)));
                crate::set_errno(errno);
            }
            failed
        }
    )*};
}

execs! {
    fn execve(path: *const c_char, args: *const *const c_char, environment: *const *const c_char);
    fn execv(path: *const c_char, args: *const *const c_char);
    fn execvp(name: *const c_char, args: *const *const c_char);
    fn execvpe(name: *const c_char, args: *const *const c_char, environment: *const *const c_char);
}

/// What a descriptor was left for: which opening it is of, the flags, the place and the name. None where it
/// is nothing of ours, or another process's; of that a person hears.
fn word(descriptor: c_int) -> Option<(usize, c_int, u64, String)> {
    if !table::is_placeholder(descriptor) {
        return None;
    }
    let path = format!("/proc/self/fd/{descriptor}");
    let is = std::fs::read_link(&path).ok()?;
    let ours = format!("/memfd:{} ", NAME.to_str().ok()?);
    let tell = || {
        if others::note(descriptor) {
            // What the C library does with it is told, too.
            stream::stand_in(descriptor);
        }
    };
    if !is.to_str()?.starts_with(&ours) {
        if is.as_os_str() == "/dev/null" {
            tell();
        }
        return None;
    }
    let mut text = String::new();
    Plain::open(&path).ok()?.read_to_string(&mut text).ok()?;
    let mut parts = text.splitn(5, ' ');
    let process: u32 = parts.next()?.parse().ok()?;
    if process != std::process::id() {
        tell();
        return None;
    }
    let (which, flags) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((which, flags, parts.next()?.parse().ok()?, parts.next()?.to_owned()))
}

/// Opens what was left for this program.
fn take() {
    let mut opened: Vec<(usize, Arc<Open>)> = Vec::new();
    for descriptor in 0..DESCRIPTORS {
        let Some((which, flags, place, name)) = word(descriptor) else { continue };
        let before = opened.iter().find(|(other, _)| *other == which).map(|(_, open)| open.clone());
        let open = match before {
            Some(open) => open,
            None => {
                let Ok(mut file) = rules().open(&name, flags & libc::O_ACCMODE) else { continue };
                if file.seek(SeekFrom::Start(place)).is_err() {
                    continue;
                }
                let open = Arc::new(Open::new(file, flags, &name));
                opened.push((which, open.clone()));
                open
            }
        };
        if !table::insert(descriptor, open) {
            continue;
        }
        stream::stand_in(descriptor);
    }
}

extern "C" fn begin() {
    let _ = catch_unwind(take);
}

// SAFETY: the loader calls what stands in this section when the process begins, before anything of
// the program's.
#[unsafe(link_section = ".init_array")]
#[used]
static BEGIN: extern "C" fn() = begin;
