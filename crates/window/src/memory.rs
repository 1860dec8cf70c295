//! Memory that can be handed to another process: a memfd, sealed and mapped.
//!
//! Invariant: the file behind a [`Memory`] that was made here can neither shrink nor
//! grow, whatever a process does that has its descriptor: no access inside a mapping
//! can fail for want of a file behind it. Pages that nobody has touched take no room.
#![allow(unsafe_code)]

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, MlockFlags, ProtFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// What the other process may do with memory that it is handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Look at it: the descriptor is for reading, and nobody but the maker's own user
    /// can get another from it.
    Read,
    /// Change it.
    Write,
}

/// Shared memory, mapped here.
#[derive(Debug)]
pub struct Memory {
    fd: OwnedFd,
    base: NonNull<u8>,
    len: usize,
    /// What this mapping is for.
    rights: Rights,
}

// SAFETY: a mapping belongs to no thread; whoever makes references into it answers
// for them.
unsafe impl Send for Memory {}
// SAFETY: as above; a shared `Memory` gives out its address and atomics only.
unsafe impl Sync for Memory {}

impl Memory {
    /// New memory of `len` bytes, zeroed, for another process with these rights.
    ///
    /// # Errors
    /// When the system has no descriptors or no room for addresses left.
    pub fn create(name: &str, len: usize, others: Rights) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // Kernels before 6.3 know only of files that may be programs.
        let fd = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL)
            .or_else(|_| rustix::fs::memfd_create(name, flags))?;
        rustix::fs::ftruncate(&fd, len as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mut memory = Self::map(fd, len, Rights::Write)?;
        if others == Rights::Read {
            // Not sealed against writing: the maker gives pages back with `release`.
            let path = format!("/proc/self/fd/{}", memory.fd.as_raw_fd());
            let look = OFlags::RDONLY | OFlags::CLOEXEC;
            let only_to_look = rustix::fs::open(path, look, Mode::empty())?;
            rustix::fs::fchmod(&memory.fd, Mode::empty())?;
            memory.fd = only_to_look;
        }
        Ok(memory)
    }

    /// Memory that another process has made, as long as it is.
    ///
    /// # Errors
    /// When it cannot be mapped with these rights.
    pub fn adopt(fd: OwnedFd, rights: Rights) -> io::Result<Self> {
        let seals = rustix::fs::fcntl_get_seals(&fd)?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "memory that may shrink"));
        }
        let len = usize::try_from(rustix::fs::fstat(&fd)?.st_size);
        let len = len.map_err(|_| io::ErrorKind::InvalidInput)?;
        Self::map(fd, len, rights)
    }

    fn map(fd: OwnedFd, len: usize, rights: Rights) -> io::Result<Self> {
        let access = access(rights);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing
        // that exists.
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, &fd, 0)
        }?;
        let base = NonNull::new(base.cast()).expect("the kernel maps nothing at zero");
        Ok(Self { fd, base, len, rights })
    }

    /// Its first byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// How long it is.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is of no length.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it as words, for whoever looks at shared memory without trust, or writes
    /// what it likes there: any thread of any process may change each at any time. Panics
    /// where this mapping is only for reading.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        assert_eq!(self.rights, Rights::Write, "atomics can be written");
        // SAFETY: so many words lie in the mapping, which may be written to, begins at a
        // page, lives as long as the reference and cannot shrink; every pattern of bits is
        // an atomic.
        unsafe { std::slice::from_raw_parts(self.base().cast(), self.len / 8) }
    }

    /// What to hand to the other process.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Brings `len` bytes behind `from` into memory and keeps them there.
    ///
    /// # Errors
    /// When the system does not permit it.
    pub fn lock(&self, from: usize, len: usize) -> io::Result<()> {
        let start = self.range(from, len);
        // SAFETY: the range lies in this mapping; locking changes no byte.
        unsafe { rustix::mm::mlock_with(start.cast(), len, MlockFlags::empty()) }?;
        Ok(())
    }

    /// Makes the pages of `len` bytes behind `from` known to this process, so that
    /// the first touch of each takes no longer than any other. Where the kernel does
    /// not know how, the first touch does it.
    pub fn populate(&self, from: usize, len: usize, rights: Rights) {
        let start = self.range(from, len);
        // SAFETY: the range lies in this mapping; populating changes no byte.
        let _ = unsafe { rustix::mm::madvise(start.cast(), len, advice(rights)) };
    }

    /// Gives the pages of `len` bytes behind `from` back to the system: they read as
    /// zeros from then on, for whoever has them mapped, until they are written again.
    ///
    /// # Errors
    /// When the system does not permit it.
    pub fn release(&self, from: usize, len: usize) -> io::Result<()> {
        let start = self.range(from, len);
        // SAFETY: the range lies in this mapping, and no reference is made into it here;
        // whoever has one elsewhere was told that it is not needed any more.
        unsafe { rustix::mm::munlock(start.cast(), len) }?;
        // SAFETY: as above.
        unsafe { rustix::mm::madvise(start.cast(), len, Advice::LinuxRemove) }?;
        Ok(())
    }

    /// The address of a range. Panics when it lies outside.
    fn range(&self, from: usize, len: usize) -> *mut u8 {
        let end = from.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "{from}+{len} outside the memory");
        self.base().wrapping_add(from)
    }
}

impl Memory {
    /// The first `len` bytes once more, twice, one behind the other, with these rights.
    ///
    /// # Errors
    /// When they are no whole pages of the memory, or there are no addresses left.
    pub fn ring(&self, len: usize, rights: Rights) -> io::Result<Ring> {
        let both = len.checked_mul(2).filter(|_| len > 0 && len <= self.len);
        let both = both.filter(|_| len.is_multiple_of(4096)); // larger pages: the kernel refuses
        let both = both.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that
        // exists.
        let base = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), both, ProtFlags::empty(), flags)
        }?;
        let ring = Ring { base: NonNull::new(base.cast()).expect("nothing lies at zero"), len };
        for at in [0, len] {
            let access = access(rights);
            let flags = MapFlags::SHARED | MapFlags::FIXED;
            // SAFETY: both halves lie in the addresses that were set aside just now, which
            // nobody else knows of.
            unsafe {
                let at = ring.base().wrapping_add(at).cast();
                rustix::mm::mmap(at, len, access, flags, &self.fd, 0)
            }?;
        }
        Ok(ring)
    }
}

/// The front of a [`Memory`], mapped twice, one behind the other: what goes on at its
/// beginning where it comes to its end lies in a row.
#[derive(Debug)]
pub struct Ring {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: as for `Memory`.
unsafe impl Send for Ring {}
// SAFETY: as for `Memory`.
unsafe impl Sync for Ring {}

impl Ring {
    /// Its first byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// How long it is: so many bytes are mapped, and once more behind them.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is of no length, which none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// As [`Memory::populate`], for both halves.
    pub fn populate(&self, rights: Rights) {
        // SAFETY: the range is this mapping; populating changes no byte.
        let _ = unsafe { rustix::mm::madvise(self.base().cast(), self.len * 2, advice(rights)) };
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the range is exactly what was set aside, and its owner is going away.
        let unmapped = unsafe { rustix::mm::munmap(self.base().cast(), self.len * 2) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be taken away");
    }
}

fn access(rights: Rights) -> ProtFlags {
    match rights {
        Rights::Read => ProtFlags::READ,
        Rights::Write => ProtFlags::READ | ProtFlags::WRITE,
    }
}

fn advice(rights: Rights) -> Advice {
    match rights {
        Rights::Read => Advice::LinuxPopulateRead,
        Rights::Write => Advice::LinuxPopulateWrite,
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the range is exactly this mapping, and its owner is going away.
        let unmapped = unsafe { rustix::mm::munmap(self.base().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "a whole mapping can be taken away");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_can_neither_shrink_nor_grow_nor_be_unsealed_by_whoever_has_it() {
        for rights in [Rights::Read, Rights::Write] {
            let memory = Memory::create("test", 8192, rights).unwrap();
            let theirs = memory.fd().try_clone_to_owned().unwrap();
            for len in [0, 4096, 16_384] {
                assert!(rustix::fs::ftruncate(&theirs, len).is_err(), "{rights:?} {len}");
            }
            let seal = rustix::fs::fcntl_add_seals(&theirs, SealFlags::WRITE);
            assert!(seal.is_err(), "sealing would take the maker's own right to write");
            let adopted = Memory::adopt(theirs.try_clone().unwrap(), Rights::Write);
            assert_eq!(adopted.is_ok(), rights == Rights::Write);
            assert_eq!(rustix::io::write(&theirs, b"x").is_ok(), rights == Rights::Write);
            assert_eq!(Memory::adopt(theirs, Rights::Read).unwrap().len(), 8192);
        }
    }

    #[test]
    fn memory_that_may_shrink_is_not_adopted() {
        let fd = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&fd, 4096).unwrap();
        assert!(Memory::adopt(fd, Rights::Read).is_err());
    }

    #[test]
    fn a_ring_is_the_front_of_the_memory_twice() {
        let memory = Memory::create("test", 16_384, Rights::Write).unwrap();
        let ring = memory.ring(8192, Rights::Write).unwrap();
        ring.populate(Rights::Write);
        for at in [0, 8191, 8192, 16_383] {
            // SAFETY: all of these lie in the ring, or in the memory; nothing borrows them.
            unsafe {
                ring.base().wrapping_add(at).write_volatile((at as u8).wrapping_add(1));
                let behind = memory.base().wrapping_add(at % 8192).read_volatile();
                assert_eq!(behind, (at as u8).wrapping_add(1));
            }
        }
        for len in [0, 4095, 16_385, 32_768, usize::MAX] {
            assert!(memory.ring(len, Rights::Write).is_err(), "{len}");
        }
        let fd = memory.fd().try_clone_to_owned().unwrap();
        drop(memory);
        let look = Memory::adopt(fd, Rights::Read).unwrap();
        assert_eq!(look.ring(16_384, Rights::Read).unwrap().len(), 16_384);
    }

    #[test]
    fn untouched_memory_takes_no_room_and_can_be_brought_in() {
        let memory = Memory::create("test", 1 << 30, Rights::Write).unwrap();
        let blocks = || rustix::fs::fstat(memory.fd()).unwrap().st_blocks;
        assert_eq!(blocks(), 0);
        memory.populate(4096, 8192, Rights::Write);
        assert_eq!(blocks(), 16);
        memory.lock(1 << 20, 1 << 20).unwrap();
        assert_eq!(blocks(), 16 + 2048);
        memory.release(1 << 20, 1 << 19).unwrap();
        assert_eq!(blocks(), 16 + 1024);
        assert!(std::panic::catch_unwind(|| memory.populate(1 << 30, 1, Rights::Read)).is_err());
    }
}
