//! Clock, threads and the mount.
//!
//! The kernel's requests arrive on FUSE's own threads, are given the time and put
//! into the drive's queue there. One thread, the drive's, sleeps to the end of the
//! request that ends next, less a little that it spins through, and answers.
//!
//! Invariants: a request's arrival is taken before any lock is waited for; no answer
//! is sent before the drive's end; the mount is gone when an [`Emulator`] is.

use crate::clock::Clock;
use crate::device::Device;
use crate::files::Files;
use crate::limits::TAKERS;
use crate::medium::Medium;
use crate::shared::{Shared, State};
use crate::{Error, Order, Status};
use disk::Model;
use fuser::{BackgroundSession, MountOption, Session, SessionACL};
use rustix::mount::UnmountFlags;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use units::Bytes;

/// What to emulate, and where.
pub struct Options {
    /// The drive, of the size that it shall have.
    pub model: Model,
    /// The directory to mount on; made where it is missing.
    pub directory: PathBuf,
    /// Where the bytes are; in memory where there is no file. A file that is missing
    /// is made, sparse.
    pub backing: Option<PathBuf>,
    /// Whether writes end before they are on the medium, so that a power cut takes
    /// them back until they are flushed.
    pub write_back: bool,
    /// Whether transfers may be answered short ([`Order::Short`]). The kernel makes errors
    /// of short writes that it sends on without waiting, so it is told to wait for each
    /// transfer of a thread then, also where a program asks for several at once.
    pub short_transfers: bool,
    /// How many commands the drive takes in at once; none for what the model has.
    pub depth: Option<usize>,
    /// Faults from the start.
    pub orders: Vec<Order>,
    /// Called first by each thread that keeps time, to get the priority for that.
    pub on_thread: fn(),
}

/// An emulated drive that is mounted.
pub struct Emulator {
    shared: Arc<Shared>,
    session: Option<BackgroundSession>,
    drive: Option<JoinHandle<()>>,
    directory: PathBuf,
    made: bool,
}

impl Emulator {
    /// Mounts a drive and serves it on threads of its own.
    ///
    /// # Errors
    /// When it cannot; nothing is mounted or made then.
    pub fn start(options: &Options) -> Result<Self, Error> {
        let made = claim_directory(&options.directory)?;
        let started = Self::start_in(options, made);
        if started.is_err() && made {
            let _ = std::fs::remove_dir(&options.directory);
        }
        started
    }

    fn start_in(options: &Options, made: bool) -> Result<Self, Error> {
        let (model, capacity) = (&options.model, options.model.capacity());
        let medium = Medium::new(open_backing(options)?, capacity, options.write_back);
        let depth = options.depth.unwrap_or_else(|| model.depth());
        let drive = model.clone().with_write_back(options.write_back);
        let shared = Arc::new(Shared {
            clock: Clock::start(),
            state: Mutex::new(State {
                device: Device::new(&drive, depth, medium),
                last_order: None,
                over: false,
            }),
            wake: Condvar::new(),
            late: Mutex::default(),
            model: model.name().to_owned(),
            capacity,
            depth,
            write_back: options.write_back,
            short_transfers: options.short_transfers,
            on_thread: options.on_thread,
        });
        for order in &options.orders {
            let now = shared.clock.now();
            let possible = shared.check(order);
            let done = || shared.state().device.order(now, order, &mut Vec::new());
            possible.and_then(|()| done()).map_err(Error::Order)?;
        }
        let mut config = fuser::Config::default();
        config.mount_options = vec![
            MountOption::FSName(format!("slackline:{}", model.name())),
            MountOption::Subtype("slackline".into()),
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
            MountOption::NoAtime,
        ];
        config.acl = SessionACL::Owner;
        config.n_threads = Some(TAKERS);
        let files = Files::new(Arc::clone(&shared));
        let session = Session::new(files, &options.directory, &config).map_err(Error::NoFuse)?;
        // From here on, dropping what is made unmounts.
        let mut emulator = Self {
            shared: Arc::clone(&shared),
            session: None,
            drive: None,
            directory: options.directory.clone(),
            made,
        };
        emulator.session = Some(session.spawn().map_err(Error::NoFuse)?);
        let drive = std::thread::Builder::new().name("drive".into());
        let drive = drive.spawn(move || shared.drive());
        emulator.drive = Some(drive.map_err(Error::NoFuse)?);
        Ok(emulator)
    }

    /// The file that is the disk.
    pub fn file(&self) -> PathBuf {
        self.directory.join(crate::files::DISK)
    }

    /// True when nothing is served any more: it was unmounted from outside, or a
    /// thread of it failed.
    pub fn is_over(&self) -> bool {
        let session = self.session.as_ref().is_none_or(|session| session.guard.is_finished());
        session || self.drive.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What was served so far, and how late.
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Does what is asked, as the control file does.
    ///
    /// # Errors
    /// Says why not.
    pub fn order(&self, text: &str) -> Result<(), String> {
        self.shared.order(text)
    }

    /// Unmounts, where nobody uses it; everything that was asked is answered before.
    ///
    /// # Errors
    /// [`Error::Busy`] while some program has a file open.
    pub fn unmount(&mut self) -> Result<(), Error> {
        match rustix::mount::unmount(&self.directory, UnmountFlags::empty()) {
            // Not a mount point: somebody was quicker.
            Ok(()) | Err(rustix::io::Errno::INVAL) => self.join(),
            Err(rustix::io::Errno::BUSY) => Err(Error::Busy(self.directory.clone())),
            Err(error) => Err(Error::Unmount(self.directory.clone(), error.into())),
        }
    }

    /// Waits for the threads of a mount that is gone.
    fn join(&mut self) -> Result<(), Error> {
        let session = self.session.take().map(BackgroundSession::join);
        self.shared.state().over = true;
        self.shared.wake.notify_one();
        let drive = self.drive.take().map(JoinHandle::join);
        if std::mem::take(&mut self.made) {
            let _ = std::fs::remove_dir(&self.directory);
        }
        match (session, drive) {
            (_, Some(Err(_))) => Err(Error::Drive),
            // A request that the unmount finds half read ends so, and not with ENODEV.
            (Some(Err(error)), _) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
            (Some(Err(error)), _) => Err(Error::Session(error)),
            _ => Ok(()),
        }
    }
}

impl Drop for Emulator {
    /// Takes the mount away whoever uses it: what they ask from now on fails.
    fn drop(&mut self) {
        if self.session.is_none() && self.drive.is_none() {
            return;
        }
        if self.unmount().is_ok() {
            return;
        }
        let _ = self.shared.order("power-cut");
        let _ = rustix::mount::unmount(&self.directory, UnmountFlags::DETACH);
        if self.made {
            let _ = std::fs::remove_dir(&self.directory);
        }
    }
}

/// Makes sure that a directory is there and may be mounted on; true where it was made.
fn claim_directory(path: &Path) -> Result<bool, Error> {
    let wrong = |error| Error::Directory(path.to_owned(), error);
    match std::fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir(path).map_err(wrong)?;
            return Ok(true);
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOTCONN.raw_os_error()) => {
            return Err(Error::Stale(path.to_owned()));
        }
        Err(error) => return Err(wrong(error)),
        Ok(mut entries) => {
            if is_mount_point(path).map_err(wrong)? {
                return Err(Error::Mounted(path.to_owned()));
            }
            if entries.next().is_some() {
                return Err(Error::NotEmpty(path.to_owned()));
            }
        }
    }
    Ok(false)
}

/// True where the path is the root of another file system than its parent is in.
fn is_mount_point(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let path = path.canonicalize()?;
    let Some(parent) = path.parent() else { return Ok(true) };
    Ok(path.metadata()?.dev() != parent.metadata()?.dev())
}

/// The file with the bytes: at the place that was given, or in memory.
fn open_backing(options: &Options) -> Result<File, Error> {
    let capacity = options.model.capacity();
    let Some(path) = &options.backing else {
        let made = rustix::fs::memfd_create("disk", rustix::fs::MemfdFlags::CLOEXEC);
        let made = made.map_err(|error| Error::Backing("(memory)".into(), error.into()))?;
        return Ok(made.into());
    };
    let wrong = |error| Error::Backing(path.clone(), error);
    // What a disk holds is for whoever may open the disk.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path);
    let file = file.map_err(wrong)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::BackingInUse(path.clone())),
        Err(TryLockError::Error(error)) => return Err(wrong(error)),
    }
    let metadata = file.metadata().map_err(wrong)?;
    if !metadata.is_file() {
        return Err(wrong(io::Error::other("is no plain file")));
    }
    // Up to a mebibyte is what the last cylinder of a scaled model leaves over.
    if Bytes::new(metadata.len()) > capacity + Bytes::mib(64) {
        return Err(Error::BackingTooLarge(path.clone(), capacity));
    }
    if metadata.len() < capacity.get() {
        file.set_len(capacity.get()).map_err(wrong)?;
    }
    Ok(file)
}
