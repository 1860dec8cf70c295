//! The operating system's calls, each as a safe function with a Rust result.
//!
//! One job: keep the raw calls, and the reasons why they are sound, in one place.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use units::{Bytes, Duration, Instant};

/// A run of a file's bytes on its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file.
    pub at: Bytes,
    /// How many bytes.
    pub len: Bytes,
    /// Where on the file system's device.
    pub place: Bytes,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// What time it is at the epoch of the clock here, in nanoseconds since 1970, as the system's
/// clock says now.
pub(crate) fn wall_clock_at_epoch(now: Instant) -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since_1970 =
        since_1970.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
    let here = i64::try_from(now.saturating_since(Instant::EPOCH).as_nanos());
    since_1970.saturating_sub(here.unwrap_or(i64::MAX))
}

/// The time now: nanoseconds since the boot of the machine, as the kernel's
/// timers count them (`CLOCK_MONOTONIC`).
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(now) = crate::core::schedules::now() {
        return now;
    }
    clock(libc::CLOCK_MONOTONIC)
}

/// For how long the machine has slept since its boot, which `CLOCK_MONOTONIC` does not count.
pub(crate) fn slept() -> Duration {
    clock(libc::CLOCK_BOOTTIME).saturating_since(clock(libc::CLOCK_MONOTONIC))
}

fn clock(which: libc::clockid_t) -> Instant {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer, and these clocks always exist.
    let result = unsafe { libc::clock_gettime(which, &mut time) };
    assert_eq!(result, 0, "the clocks that count can be read");
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// What this thread has had of its processors.
pub(crate) fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer, and each thread has this clock.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(result, 0, "a thread's own clock can be read");
    Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// An object that one thread sleeps on and others signal.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    /// An event that nobody has signalled.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
        // SAFETY: the descriptor is new and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Wakes the thread that sleeps on this event, or the next that will.
    pub(crate) fn signal(&self) {
        #[cfg(test)]
        if crate::core::schedules::loses_signal() {
            return;
        }
        let one = 1u64.to_ne_bytes();
        // SAFETY: the buffer is valid for its length during the call. The only
        // failure is a counter at its end, which means that it is signalled.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        #[cfg(test)]
        crate::core::schedules::signalled();
    }

    /// Sleeps until the event is signalled or `timeout` (none: for ever) is
    /// over; true where it was signalled, which is then forgotten.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> bool {
        let mut poll = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout = timeout.map(timespec);
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: one valid pollfd; the timeout is null or lives to the end of the call.
        let ready = unsafe { libc::ppoll(&mut poll, 1, timeout, std::ptr::null()) };
        if ready > 0 {
            self.forget();
        }
        ready > 0
    }

    fn forget(&self) {
        let mut count = [0u8; 8];
        // SAFETY: the buffer is valid for its length during the call; poll said
        // that there is something to read, and only the owner of the event reads.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl AsRawFd for Event {
    fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

fn timespec(span: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as libc::time_t,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as libc::c_long,
    }
}

/// Memory from the kernel: zeroed, aligned to its pages, its own for life.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: std::ptr::NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is plain memory that belongs to no thread; whoever makes
// references into it answers for them.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared `Mapping` gives out nothing but its address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` bytes; of huge pages where asked for and the machine has them set aside.
    pub(crate) fn new(len: usize, huge: bool) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let flags = if huge { flags | libc::MAP_HUGETLB } else { flags };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice
        // touches nothing that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = std::ptr::NonNull::new(base.cast()).expect("the kernel maps nothing at zero");
        Ok(Self { base, len })
    }

    /// Its first byte.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Asks for huge pages as they come; the kernel may not have any.
    pub(crate) fn advise_huge(&self) -> io::Result<()> {
        // SAFETY: the range is exactly this mapping.
        check(unsafe { libc::madvise(self.base().cast(), self.len, libc::MADV_HUGEPAGE) })?;
        Ok(())
    }

    /// Brings every page into memory and keeps it there.
    pub(crate) fn lock(&self) -> io::Result<()> {
        // SAFETY: the range is exactly this mapping.
        check(unsafe { libc::mlock(self.base().cast(), self.len) })?;
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly this mapping, and its owner is going away.
        unsafe { libc::munmap(self.base().cast(), self.len) };
    }
}

/// Makes this thread run before all ordinary ones (`SCHED_FIFO`).
pub(crate) fn become_real_time(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters live to the end of the call; 0 is this thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) })?;
    Ok(())
}

/// The same of this thread alone: those that it starts are ordinary ones.
pub(crate) fn become_real_time_alone(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters live to the end of the call; 0 is this thread.
    check(unsafe { libc::sched_setscheduler(0, policy, &parameters) })?;
    Ok(())
}

/// Whether this thread has real-time priority.
pub(crate) fn is_real_time() -> bool {
    // SAFETY: the call takes no pointers; 0 is this thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    policy & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO
}

/// Makes this thread an ordinary one.
pub(crate) fn become_ordinary() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters live to the end of the call; 0 is this thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) })?;
    Ok(())
}

/// Gives this thread a larger share among the ordinary ones.
pub(crate) fn become_nicer(nice: i32) -> io::Result<()> {
    // SAFETY: the call takes no pointers; 0 is this thread.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })?;
    Ok(())
}

/// Gives this thread's own reads and writes a class of the kernel's, at its highest
/// level: 1 real time, 2 best effort, 3 idle.
pub(crate) fn set_io_class(class: libc::c_int) -> io::Result<()> {
    const WHO_PROCESS: libc::c_int = 1; // a thread, in spite of the name
    // SAFETY: the call takes plain numbers; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, class << 13) };
    check(result as libc::c_int)?;
    Ok(())
}

/// Whether the system takes descriptors for this unix socket, and for those that a listening one gives, from
/// now on: who sends some is refused otherwise.
pub(crate) fn take_descriptors(socket: BorrowedFd<'_>, takes: bool) -> io::Result<()> {
    const SO_PASSRIGHTS: libc::c_int = 83; // Linux 6.16
    let number = libc::c_int::from(takes);
    let (place, len) = (std::ptr::from_ref(&number).cast(), size_of::<libc::c_int>() as u32);
    // SAFETY: the option is one number, which outlives the call.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_PASSRIGHTS, place, len)
    };
    check(result).map(drop)
}

/// The further groups of the process at the other end of a unix socket, when it connected.
pub(crate) fn peer_groups(socket: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    let mut groups = vec![0u32; 64];
    loop {
        let mut len = (groups.len() * size_of::<u32>()) as libc::socklen_t;
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERGROUPS);
        let place = groups.as_mut_ptr().cast();
        // SAFETY: the place is valid for `len` bytes during the call, which says in `len`
        // how many it has, or would have, written.
        let result =
            unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, place, &mut len) };
        let count = len as usize / size_of::<u32>();
        match check(result) {
            Err(error) if error.raw_os_error() == Some(libc::ERANGE) && count > groups.len() => {
                groups.resize(count, 0);
            }
            Err(error) => return Err(error),
            Ok(_) => {
                groups.truncate(count);
                return Ok(groups);
            }
        }
    }
}

/// Asks that this thread's timers are not put off to be batched with others.
pub(crate) fn sharpen_timers() {
    // SAFETY: the option takes a plain number; it cannot fail for 1 ns.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Where the first bytes of a file are that lie at `from` or behind, as far as its file system knows;
/// reads none of them. The place of this descriptor in its file becomes another.
///
/// # Errors
/// Where there are none (`ENXIO`), or the system does not say.
pub(crate) fn data_from(file: &File, from: u64) -> io::Result<u64> {
    let from = libc::off_t::try_from(from).map_err(io::Error::other)?;
    // SAFETY: seeking touches no memory of ours.
    let at = unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) };
    u64::try_from(at).map_err(|_| io::Error::last_os_error())
}

/// Reserves `len` bytes for a file, so that a later write never finds no space.
pub(crate) fn reserve(file: &File, len: Bytes) -> io::Result<()> {
    let len = libc::off_t::try_from(len.get()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: the call takes no pointers.
    check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len) })?;
    Ok(())
}

/// How much an ordinary program can still put on the file system of a file.
pub(crate) fn free_space(file: &File) -> io::Result<Bytes> {
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the answer is a valid place for what the call writes.
    check(unsafe { libc::fstatvfs(file.as_raw_fd(), answer.as_mut_ptr()) })?;
    // SAFETY: the call has succeeded, so that it has written the answer.
    let answer = unsafe { answer.assume_init() };
    Ok(Bytes::new(answer.f_bavail.saturating_mul(answer.f_frsize)))
}

/// What kind of file system a file is on.
pub(crate) enum FileSystem {
    Ext4,
    Xfs,
    /// Its name, or its number where we know no name.
    Other(String),
}

/// The kernel's number of the file system of a file.
fn file_system_number(file: &File) -> io::Result<u64> {
    let mut answer = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the answer is a valid place for what the call writes.
    check(unsafe { libc::fstatfs(file.as_raw_fd(), answer.as_mut_ptr()) })?;
    // SAFETY: the call has succeeded, so that it has written the answer.
    Ok(unsafe { answer.assume_init() }.f_type as u64)
}

/// The file system of a file.
pub(crate) fn file_system(file: &File) -> io::Result<FileSystem> {
    Ok(match file_system_number(file)? {
        0xef53 => FileSystem::Ext4,
        0x5846_5342 => FileSystem::Xfs,
        0x0102_1994 => FileSystem::Other("tmpfs, which has no device".into()),
        0x794c_7630 => FileSystem::Other("overlay, which shows files of others".into()),
        0x9123_683e => FileSystem::Other("btrfs, which shares and moves data".into()),
        0x9fa0 => FileSystem::Other("proc, which has no device".into()),
        0x6573_5546 => FileSystem::Other("FUSE, which does not say where data is".into()),
        0x6969 => FileSystem::Other("NFS, which has its disks elsewhere".into()),
        other => FileSystem::Other(format!("a file system of kind {other:#x}")),
    })
}

/// Whether a file lies in memory (tmpfs, ramfs) and stays there: nothing is swapped on this machine.
/// The file system of a device's node, which may be one of these, says nothing of the device.
pub(crate) fn is_in_memory(file: &File) -> io::Result<bool> {
    if !file.metadata()?.is_file()
        || ![0x0102_1994, 0x8584_58f6].contains(&file_system_number(file)?)
    {
        return Ok(false);
    }
    // A line of titles, and one for each place that is swapped to.
    Ok(std::fs::read_to_string("/proc/swaps")?.lines().count() <= 1)
}

/// The flags that a file was opened with.
pub(crate) fn status_flags(file: &File) -> io::Result<libc::c_int> {
    // SAFETY: the call takes no pointers.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) })
}

/// Reads of a file do not change when it was last read; its owner and root may say so.
pub(crate) fn keep_access_time(file: &File) -> io::Result<()> {
    let flags = status_flags(file)? | libc::O_NOATIME;
    // SAFETY: the call takes no pointers.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) }).map(drop)
}

/// One extent as the kernel tells it (`struct fiemap_extent`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// What is asked for, and the answer (`struct fiemap`).
#[repr(C)]
#[derive(Clone, Copy)]
struct RawExtents {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_AT_ONCE],
}

const EXTENTS_AT_ONCE: usize = 128;
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// What is only in memory is written first.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_LAST: u32 = 1;
/// Unknown, not yet there, encoded, encrypted, not aligned, in metadata, in a tail.
const FIEMAP_EXTENT_ENCODED: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;

/// An extent of a file, and whether its bytes are there as they are.
pub(crate) struct FoundExtent {
    pub extent: Extent,
    pub is_encoded: bool,
    /// Reserved and never written.
    pub is_zeros: bool,
}

/// Where a file's bytes lie, at most `max` extents and some; what is only in memory is
/// written first where that is asked for.
pub(crate) fn extents(file: &File, max: usize, write: bool) -> io::Result<Vec<FoundExtent>> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let mut raw = RawExtents {
            start,
            length: u64::MAX - start,
            flags: if write { FIEMAP_FLAG_SYNC } else { 0 },
            mapped: 0,
            room: EXTENTS_AT_ONCE as u32,
            reserved: 0,
            extents: [RawExtent::default(); EXTENTS_AT_ONCE],
        };
        // SAFETY: the request reads and writes the head and up to `room` extents behind it,
        // which are there.
        check(unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &mut raw) })?;
        let told = &raw.extents[..(raw.mapped as usize).min(EXTENTS_AT_ONCE)];
        for one in told {
            let extent = Extent {
                at: Bytes::new(one.logical),
                len: Bytes::new(one.length),
                place: Bytes::new(one.physical),
            };
            let is_encoded = one.flags & FIEMAP_EXTENT_ENCODED != 0;
            let is_zeros = one.flags & FIEMAP_EXTENT_UNWRITTEN != 0;
            found.push(FoundExtent { extent, is_encoded, is_zeros });
        }
        match told.last() {
            Some(last) if last.flags & FIEMAP_EXTENT_LAST == 0 && found.len() < max => {
                start = last.logical + last.length;
            }
            _ => return Ok(found),
        }
    }
}

/// The size of a file or block device.
pub(crate) fn size(file: &File) -> io::Result<Bytes> {
    (&mut &*file).seek(SeekFrom::End(0)).map(Bytes::new)
}

/// The smallest piece that a block device reads and writes.
pub(crate) fn block_device_sector(file: &File) -> io::Result<Bytes> {
    let mut size: libc::c_int = 0;
    // SAFETY: this request writes one int to the place it is given.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET, &mut size) })?;
    Ok(Bytes::new(size as u64))
}

/// Reads into raw memory until it is full.
///
/// # Safety
/// `memory` is valid for writes of `len` bytes, and nothing refers to them.
pub(crate) unsafe fn read_into(
    file: &File,
    offset: Bytes,
    memory: *mut u8,
    len: usize,
) -> io::Result<()> {
    transfer(offset, len, |done, at| {
        // SAFETY: `done` is below `len`, so that the rest lies in the caller's memory.
        unsafe { libc::pread(file.as_raw_fd(), memory.add(done).cast(), len - done, at) }
    })
}

/// Writes raw memory to the last byte.
///
/// # Safety
/// `memory` is valid for reads of `len` bytes. (Others may write to it meanwhile:
/// the kernel then writes either the old bytes or the new ones.)
pub(crate) unsafe fn write_from(
    file: &File,
    offset: Bytes,
    memory: *const u8,
    len: usize,
) -> io::Result<()> {
    transfer(offset, len, |done, at| {
        // SAFETY: `done` is below `len`, so that the rest lies in the caller's memory.
        unsafe { libc::pwrite(file.as_raw_fd(), memory.add(done).cast(), len - done, at) }
    })
}

/// Repeats a call that may move less than it was asked for.
fn transfer(
    offset: Bytes,
    len: usize,
    call: impl Fn(usize, libc::off_t) -> isize,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let at = libc::off_t::try_from(offset.get() + done as u64)
            .map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        match call(done, at) {
            0 => return Err(io::Error::from_raw_os_error(libc::EIO)),
            moved if moved > 0 => done += moved as usize,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// The errno of an error; `EIO` where it has none.
pub(crate) fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_remembered_until_somebody_waits_and_then_forgotten() {
        let event = Event::new().unwrap();
        assert!(!event.wait(Some(Duration::ZERO)));
        event.signal();
        event.signal();
        assert!(event.wait(None));
        assert!(!event.wait(Some(Duration::from_micros(10))));
    }

    #[test]
    fn time_goes_on_while_a_thread_sleeps() {
        let before = now();
        Event::new().unwrap().wait(Some(Duration::from_millis(2)));
        assert!(now() - before >= Duration::from_millis(2));
    }

    #[test]
    fn the_groups_of_who_connected_are_told() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut told = peer_groups(std::os::fd::AsFd::as_fd(&ours)).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
        let mut own: Vec<u32> =
            groups.split_whitespace().map(|group| group.parse().unwrap()).collect();
        told.sort_unstable();
        own.sort_unstable();
        assert_eq!(told, own);
    }
}
