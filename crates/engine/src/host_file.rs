//! Files of others: what a descriptor that a program gave is, where its bytes lie on a
//! device, and what kind of device that is.
//!
//! Invariants: a file is only taken from a descriptor that its giver has opened for
//! reading, so that nobody reads what he may not; it is only read, past the system's
//! cache; only of file systems that tell where a file's bytes are and leave them there.

use crate::aligned::Aligned;
use crate::sys::{self, Extent, FileSystem};
use disk::{Kind, Line, LinearProfile, Profile};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use units::{Bytes, Duration, SECTOR};

/// Runs that a file may lie in; more are as good as none.
const EXTENTS_MAX: usize = 65_536;

/// Why a contract cannot be given on a file. The text says what to do.
#[derive(Debug)]
pub enum FileError {
    /// It is no regular file.
    NotAFile(PathBuf),
    /// The descriptor does not allow reading.
    NotForReading(PathBuf),
    /// Its file system does not say where its bytes are, or does not leave them there.
    FileSystem(PathBuf, String),
    /// Its bytes are compressed, encrypted or inside metadata.
    Encoded(PathBuf),
    /// It lies in too many runs.
    Scattered(PathBuf, usize),
    /// Another program has a lease on it, and does not give it back.
    Leased(PathBuf),
    /// The system refuses.
    Io(PathBuf, &'static str, io::Error),
}

impl FileError {
    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::NotAFile(_) => "name a regular file",
            Self::NotForReading(_) => "open it for reading, and pass that descriptor",
            Self::FileSystem(..) | Self::Encoded(_) => {
                "copy it to ext4 or xfs, or into a volume with `slackline record`"
            }
            Self::Scattered(..) => {
                "copy it, so that it lies together, or into a volume with `slackline record`"
            }
            Self::Leased(_) => "end the program that has the lease (`cat /proc/locks`)",
            Self::Io(..) => "open it with O_DIRECT, and let the daemon's user read it",
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAFile(path) => write!(f, "{} is no regular file", path.display()),
            Self::NotForReading(path) => {
                write!(f, "{} was not opened for reading", path.display())
            }
            Self::FileSystem(path, what) => {
                write!(f, "{} is on {what}: no contract can be given there", path.display())
            }
            Self::Encoded(path) => write!(
                f,
                "{} is compressed, encrypted or kept inside metadata, so that its bytes are \
                 nowhere on the device as they are",
                path.display()
            ),
            Self::Scattered(path, runs) => {
                write!(f, "{} lies in {runs} runs or more", path.display())
            }
            Self::Leased(path) => {
                write!(f, "{} is under a lease that is not given back", path.display())
            }
            Self::Io(path, what, error) => write!(f, "{}: {what}: {error}", path.display()),
        }
    }
}
impl std::error::Error for FileError {}

/// A file that a program gave, opened past the system's cache.
#[derive(Debug)]
pub struct HostFile {
    file: File,
    path: PathBuf,
    file_system: &'static str,
    device: (u32, u32),
}

/// A buffer that a file can be read into.
pub struct Buffer(Aligned);

impl Buffer {
    /// Zeros, whole pages of them.
    pub fn new(len: Bytes) -> Self {
        Self(Aligned::zeroed(len))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl HostFile {
    /// Takes a file from a descriptor that its giver has opened for reading. The
    /// descriptor itself is not kept: its giver shares it, and could change it.
    ///
    /// # Errors
    /// [`FileError`]; it also says what to do.
    pub fn take(given: OwnedFd) -> Result<Self, FileError> {
        let link = format!("/proc/self/fd/{}", given.as_raw_fd());
        let path = std::fs::read_link(&link).unwrap_or_else(|_| PathBuf::from("the file"));
        let io = |what: &'static str| {
            let path = path.clone();
            move |error| FileError::Io(path, what, error)
        };
        let given = File::from(given);
        let metadata = given.metadata().map_err(io("cannot look at it"))?;
        if !metadata.is_file() {
            return Err(FileError::NotAFile(path));
        }
        let flags = sys::status_flags(&given).map_err(io("cannot look at its descriptor"))?;
        let access = flags & libc::O_ACCMODE;
        if flags & libc::O_PATH != 0 || access == libc::O_WRONLY {
            return Err(FileError::NotForReading(path));
        }
        let file_system = match sys::file_system(&given).map_err(io("cannot look at it"))? {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Other(name) => return Err(FileError::FileSystem(path, name)),
        };
        let file = match open_direct(Path::new(&link)) {
            Ok(file) => file,
            // What the daemon may not open it may still read, if its giver has opened it so.
            Err(_) if flags & libc::O_DIRECT != 0 => given,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(FileError::Leased(path));
            }
            Err(error) => return Err(io("cannot open it for direct reads")(error)),
        };
        let device = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
        Ok(Self { file, path, file_system, device })
    }

    /// Where it was when it was taken.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What kind of file system it is on.
    pub fn file_system(&self) -> &'static str {
        self.file_system
    }

    /// How long it is now.
    ///
    /// # Errors
    /// What the system says.
    pub fn length(&self) -> io::Result<Bytes> {
        self.file.metadata().map(|metadata| Bytes::new(metadata.len()))
    }

    /// Where its bytes lie on the device of its file system; what is in no run reads as
    /// zeros. What is still only in memory is written first.
    ///
    /// # Errors
    /// Where they lie nowhere as they are, or in too many runs.
    pub fn extents(&self) -> Result<Vec<Extent>, FileError> {
        let asked = sys::extents(&self.file, EXTENTS_MAX, true);
        let found = asked.map_err(|error| {
            FileError::Io(self.path.clone(), "cannot ask where its bytes are", error)
        })?;
        if found.len() >= EXTENTS_MAX {
            return Err(FileError::Scattered(self.path.clone(), EXTENTS_MAX));
        }
        if found.iter().any(|found| found.is_encoded) {
            return Err(FileError::Encoded(self.path.clone()));
        }
        let data = found.into_iter().filter(|found| !found.is_zeros).map(|found| found.extent);
        Ok(data.collect())
    }

    /// As [`HostFile::extents`], without what is still only in memory, which is not
    /// waited for.
    ///
    /// # Errors
    /// What the system says.
    pub fn extents_so_far(&self) -> io::Result<Vec<Extent>> {
        let found = sys::extents(&self.file, EXTENTS_MAX, false)?;
        let there = found.into_iter().filter(|found| !found.is_zeros && !found.is_encoded);
        Ok(there.map(|found| found.extent).collect())
    }

    /// The drives that it lies on, and whole devices above them, by the kernel's names, as far as
    /// the system knows.
    pub fn drives(&self) -> Vec<String> {
        crate::drives::under(self.device).into_iter().collect()
    }

    /// The device of its file system.
    ///
    /// # Errors
    /// What the system says.
    pub fn device(&self) -> io::Result<BlockDevice> {
        BlockDevice::find(Path::new("/sys"), self.device)
    }

    /// Reads from `offset` on until `len` bytes are there or the file ends; says how many
    /// came.
    ///
    /// # Errors
    /// The errno.
    pub fn read(&self, offset: Bytes, len: Bytes, into: &mut Buffer) -> Result<Bytes, i32> {
        let into = &mut into.0[..len.as_usize()];
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], offset.get() + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(sys::errno(&error)),
            }
            // Less than was asked for is the end of the file, in direct reads.
            if !done.is_multiple_of(SECTOR.as_usize()) {
                break;
            }
        }
        Ok(Bytes::new(done as u64))
    }
}

/// Who has a lease on a file is asked to give it back by the first try to open it, and gets
/// this long. The system would give him three quarters of a minute.
const LEASE_BACK_WITHIN: Duration = Duration::from_secs(1);
/// It is tried again after this time.
const LEASE_TRIES: std::time::Duration = std::time::Duration::from_millis(20);

/// Opens a file for reading past the system's cache; waits for nobody who has a lease on it
/// for longer than that.
fn open_direct(path: &Path) -> io::Result<File> {
    let over = sys::now() + LEASE_BACK_WITHIN;
    // Not to wait concerns the opening alone: reads of regular files do not look at it.
    let flags = libc::O_DIRECT | libc::O_NONBLOCK;
    loop {
        match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && sys::now() < over => {
                std::thread::sleep(LEASE_TRIES);
            }
            opened => return opened,
        }
    }
}

/// A block device with a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// The kernel's name of the whole device: that is what programs share.
    pub name: String,
    /// Where on it the file system's part begins.
    pub start: Bytes,
    /// How large the whole device is.
    pub size: Bytes,
    /// The kernel's scheduler on it; empty where it has none.
    pub scheduler: String,
    /// How many requests the kernel may have in it at once.
    pub depth: u64,
    /// The longest request that the kernel makes.
    pub longest: Bytes,
}

impl BlockDevice {
    /// As sysfs has it, which is there; a test has a tree of its own.
    fn find(sysfs: &Path, (major, minor): (u32, u32)) -> io::Result<Self> {
        let link = sysfs.join(format!("dev/block/{major}:{minor}"));
        let mut directory = std::fs::canonicalize(link)?;
        let number = |path: &Path| -> io::Result<u64> {
            let text = std::fs::read_to_string(path)?;
            text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
        };
        let mut start = Bytes::ZERO;
        if directory.join("partition").exists() {
            start = SECTOR * number(&directory.join("start"))?;
            directory.pop();
        }
        let queue = directory.join("queue");
        let schedulers = std::fs::read_to_string(queue.join("scheduler")).unwrap_or_default();
        let chosen = schedulers.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self {
            name,
            start,
            size: SECTOR * number(&directory.join("size"))?,
            scheduler: chosen.map_or_else(String::new, |(name, _)| name.to_owned()),
            depth: number(&queue.join("nr_requests")).unwrap_or(1),
            longest: Bytes::kib(number(&queue.join("max_sectors_kb")).unwrap_or(1280)),
        })
    }

    /// Its node, where programs open it.
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(self.name.replace('!', "/"))
    }

    /// A profile by reading: a few hundred reads of 4 KiB to 1 MiB at random places, of
    /// the device where it may be opened, else of `file`; four seconds at the most. Reads
    /// are in the real-time class where that is permitted. What others do meanwhile is in
    /// the times.
    ///
    /// # Errors
    /// What the system says.
    pub fn measure(&self, file: &HostFile) -> io::Result<Profile> {
        let whole = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(self.node());
        let (target, size, what) = match &whole {
            Ok(whole) => (whole, self.size, "the device"),
            Err(_) => (&file.file, file.length()?, "the file alone, the rest unseen"),
        };
        let (samples, count) = time_reads(target, size, TIME)?;
        let line = Line::above(&samples).map_err(io::Error::other)?;
        Ok(Profile {
            source: format!("{count} reads of {what}, beside whatever else was going on"),
            confidence: format!(
                "the slowest of what was timed and {MARGIN_PERCENT} % more; writes assumed; \
                 `slackline disk profile` measures better"
            ),
            capacity: self.size.round_down(SECTOR),
            flush: Duration::from_millis(100),
            bus: None,
            kind: Kind::Linear(LinearProfile {
                read: line.stretched(MARGIN_PERCENT),
                write: line.stretched(MARGIN_PERCENT),
                depth: 1,
                latency: Duration::ZERO,
                spread: None,
            }),
        })
    }
}

/// What is timed,
const SIZES: [Bytes; 4] = [Bytes::kib(4), Bytes::kib(64), Bytes::kib(256), Bytes::MIB];
/// so often each, as far as the time allows,
const READS: usize = 64;
/// which is this,
const TIME: Duration = Duration::from_secs(1);
/// and what is added to the slowest.
const MARGIN_PERCENT: u64 = 30;

/// The slowest read of each size, and how many were timed: each size for so long.
fn time_reads(
    file: &File,
    size: Bytes,
    each: Duration,
) -> io::Result<(Vec<(Bytes, Duration)>, usize)> {
    let mut buffer = Aligned::zeroed(Bytes::MIB);
    let (mut samples, mut count) = (Vec::new(), 0);
    for len in SIZES.into_iter().filter(|len| *len <= size) {
        let (over, mut slowest) = (sys::now() + each, Duration::ZERO);
        for offset in places(size, len).take(READS) {
            let started = sys::now();
            file.read_exact_at(&mut buffer[..len.as_usize()], offset.get())?;
            slowest = slowest.max(sys::now() - started);
            count += 1;
            if sys::now() > over {
                break;
            }
        }
        samples.push((len, slowest));
    }
    Ok((samples, count))
}

/// Random places for reads of `len` on something that is `size` long, always the same ones.
fn places(size: Bytes, len: Bytes) -> impl Iterator<Item = Bytes> {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let places = (size - len) / Bytes::kib(4) + 1;
    std::iter::repeat_with(move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Bytes::kib(4) * ((random >> 33) % places)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tempfile::TempPath;

    /// A file with a byte in it, which nobody has open: a lease could not be had otherwise.
    fn scratch(folder: &str) -> io::Result<TempPath> {
        let mut file = tempfile::Builder::new().prefix("slackline-").tempfile_in(folder)?;
        file.write_all(b"x")?;
        Ok(file.into_temp_path())
    }

    fn given(path: &Path, flags: i32) -> OwnedFd {
        OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap().into()
    }

    #[test]
    fn what_is_no_file_of_a_fit_file_system_is_refused_in_clear_words() {
        let says = |given: OwnedFd| {
            let error = HostFile::take(given).unwrap_err();
            assert!(!error.next_step().is_empty());
            error.to_string()
        };
        assert!(says(given(Path::new("/"), 0)).contains("no regular file"));
        assert!(says(given(Path::new("/proc/version"), 0)).contains("is on proc"));
        let Ok(file) = scratch("/dev/shm") else {
            return skips::not_run("files in memory: needs /dev/shm");
        };
        assert!(says(given(&file, 0)).contains("is on tmpfs"));
        assert!(says(given(&file, libc::O_PATH)).contains("not opened for reading"));
        let writing = OpenOptions::new().write(true).open(&file).unwrap();
        assert!(says(writing.into()).contains("not opened for reading"));
    }

    /// Who has a lease may keep it: nobody waits three quarters of a minute for him. Only
    /// where the build's own folder is on ext4 or xfs.
    #[test]
    #[allow(unsafe_code)] // a lease is asked for by a system call of its own
    fn a_file_under_a_lease_is_taken_when_it_is_given_back_and_else_refused() {
        let path = scratch(".").unwrap();
        let holder = File::open(&path).unwrap();
        if !skips::is_fit_for_contracts(Path::new(".")) {
            return skips::not_run("needs sources on ext4 or xfs");
        }
        HostFile::take(given(&path, 0)).unwrap();
        let set = |command, value: libc::c_int| {
            // SAFETY: a system call on an open descriptor, with numbers for arguments.
            let set = unsafe { libc::fcntl(holder.as_raw_fd(), command, value) };
            assert_eq!(set, 0, "{}", io::Error::last_os_error());
        };
        // Who has a lease hears by a signal that others want the file; this one is ignored. With
        // the lease that goes, too.
        const F_SETSIG: libc::c_int = 10; // not in the crate for this target
        let take_lease = || {
            set(F_SETSIG, libc::SIGURG);
            set(libc::F_SETLEASE, libc::F_WRLCK);
        };
        let own = || holder.try_clone().unwrap().into();
        let has_it = || {
            // SAFETY: as above. Of a lease that somebody wants it says what is to be left of it.
            let left = unsafe { libc::fcntl(holder.as_raw_fd(), libc::F_GETLEASE) };
            left == libc::F_WRLCK
        };
        take_lease();
        let given_back = std::thread::scope(|scope| {
            let taking = scope.spawn(|| HostFile::take(own()));
            while has_it() {
                std::thread::yield_now();
            }
            set(libc::F_SETLEASE, libc::F_UNLCK);
            taking.join().unwrap()
        });
        given_back.unwrap();
        take_lease();
        let error = HostFile::take(own()).unwrap_err();
        assert!(error.to_string().contains("lease"), "{error}");
    }

    /// On a partition a file lies further back, and what programs share is the whole drive.
    #[test]
    fn a_partition_is_a_place_on_its_drive() {
        let sysfs = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = sysfs.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("devices/sda/size", "1000000\n");
        put("devices/sda/queue/scheduler", "none [mq-deadline] bfq\n");
        put("devices/sda/queue/nr_requests", "62\n");
        put("devices/sda/queue/max_sectors_kb", "512\n");
        put("devices/sda/sda2/partition", "2\n");
        put("devices/sda/sda2/start", "2048\n");
        put("devices/sda/sda2/size", "4096\n");
        put("dev/block/none", "");
        for (link, to) in [("8:0", "sda"), ("8:2", "sda/sda2")] {
            let link = sysfs.path().join("dev/block").join(link);
            std::os::unix::fs::symlink(sysfs.path().join("devices").join(to), link).unwrap();
        }
        let drive = BlockDevice {
            name: "sda".into(),
            start: Bytes::ZERO,
            size: SECTOR * 1_000_000,
            scheduler: "mq-deadline".into(),
            depth: 62,
            longest: Bytes::kib(512),
        };
        let find = |number| BlockDevice::find(sysfs.path(), number).unwrap();
        assert_eq!(find((8, 0)), drive);
        assert_eq!(find((8, 2)), BlockDevice { start: Bytes::MIB, ..drive });
        assert!(BlockDevice::find(sysfs.path(), (8, 3)).is_err());
    }

    /// A disk that is asked at one place alone shows nothing of its heads.
    #[test]
    fn reads_are_timed_all_over_a_device_and_never_beyond_its_end() {
        for (size, len) in
            [(Bytes::GIB * 1024, Bytes::kib(4)), (Bytes::GIB * 1024 - Bytes::kib(8), Bytes::MIB)]
        {
            let found: Vec<Bytes> = places(size, len).take(READS).collect();
            assert!(found.iter().all(|&at| at + len <= size), "{found:?}");
            for eighth in 0..8 {
                let part = size / 8 * eighth..size / 8 * (eighth + 1);
                assert!(found.iter().any(|at| part.contains(at)), "none of {part:?}: {found:?}");
            }
        }
        assert!(places(Bytes::MIB, Bytes::MIB).take(READS).all(|at| at == Bytes::ZERO));
        let ends = |at: &Bytes| *at == Bytes::kib(4);
        assert!(places(Bytes::kib(8), Bytes::kib(4)).take(READS).any(|at| ends(&at)), "the last");
    }

    #[test]
    fn each_size_is_timed_once_however_short_the_time() {
        let file = scratch(".").unwrap();
        let open = OpenOptions::new().read(true).write(true).open(&file).unwrap();
        open.set_len(256 << 10).unwrap();
        let (samples, count) = time_reads(&open, Bytes::kib(256), Duration::ZERO).unwrap();
        let sizes: Vec<Bytes> = samples.iter().map(|&(size, _)| size).collect();
        assert_eq!((&sizes[..], count), (&SIZES[..3], 3));
        assert!(samples.iter().all(|&(_, slowest)| slowest > Duration::ZERO));
        let (_, count) = time_reads(&open, Bytes::kib(256), Duration::from_secs(600)).unwrap();
        assert_eq!(count, 3 * READS);
    }

    /// Only where the build's own folder is on ext4 or xfs.
    #[test]
    fn a_file_is_read_where_its_extents_say_it_is() {
        let path = scratch(".").unwrap();
        let mut file = File::create(&path).unwrap();
        let bytes: Vec<u8> = (0..300_000u32).map(|n| (n >> 4) as u8).collect();
        file.write_all(&bytes).unwrap();
        file.set_len(1_000_001).unwrap(); // a hole behind
        if !skips::is_fit_for_contracts(Path::new(".")) {
            return skips::not_run("needs sources on ext4 or xfs");
        }
        let taken = HostFile::take(given(&path, 0)).unwrap();
        path.close().unwrap();
        let extents = taken.extents().unwrap();
        let held: Bytes = extents.iter().map(|extent| extent.len).sum();
        assert!((300_000..400_000).contains(&held.get()), "{extents:?}");
        let mut buffer = Buffer::new(Bytes::mib(1));
        let read = taken.read(Bytes::ZERO, Bytes::mib(1), &mut buffer).unwrap();
        assert_eq!(read, Bytes::new(1_000_001));
        assert!(buffer.bytes()[..300_000] == bytes);
        assert!(buffer.bytes()[300_000..1_000_001].iter().all(|&byte| byte == 0));
        let device = taken.device().unwrap();
        assert!(device.size > held && !device.name.is_empty(), "{device:?}");
    }
}
