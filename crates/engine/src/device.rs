//! Devices: names, opening, locking, sizes, and what is already on them.
//!
//! Invariant: a [`Device`] holds an exclusive lock for as long as it lives, so
//! that no two processes have one pool open.

use crate::claim::{self, LOCK_PATIENCE, lock};
use crate::error::PoolError;
use crate::{signature, sys};
use disk::Model;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use units::{Bytes, SECTOR};

/// What a person calls a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSpec {
    /// A plain file or a block device.
    Real {
        /// Where.
        path: PathBuf,
    },
    /// A disk model's service times over a backing file.
    Emulated {
        /// The model's name.
        model: String,
        /// The backing file.
        path: PathBuf,
    },
}

impl DeviceSpec {
    /// The file or block device that holds the bytes.
    pub fn path(&self) -> &Path {
        match self {
            Self::Real { path } | Self::Emulated { path, .. } => path,
        }
    }
}

/// What is at a device's path before a pool is made there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// How large it is.
    pub size: Bytes,
    /// What it holds, in words; none where it looks empty.
    pub holds: Option<String>,
}

impl DeviceSpec {
    /// Looks at what is there, so that a person can be told before it is
    /// destroyed; none where there is nothing yet. Changes and locks nothing.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn look(&self) -> Result<Option<Found>, PoolError> {
        let path = self.path();
        if std::fs::symlink_metadata(path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        is_block_device(path)?;
        let file = open_file(path, false, 0)?;
        let size = sys::size(&file).map_err(PoolError::io(path, "ask for its size"))?;
        let holds = signature::find(&file).map_err(PoolError::io(path, "read it"))?;
        Ok(Some(Found { size, holds }))
    }
}

impl FromStr for DeviceSpec {
    type Err = PoolError;
    /// `PATH`, or `emulated:MODEL:PATH`. (A file that is really called
    /// `emulated:...` is reached as `./emulated:...`.)
    fn from_str(text: &str) -> Result<Self, PoolError> {
        let error = |why: &str| PoolError::Spec { text: text.to_owned(), why: why.to_owned() };
        let Some(rest) = text.strip_prefix("emulated:") else {
            return match text {
                "" => Err(error("an empty name")),
                path => Ok(Self::Real { path: path.into() }),
            };
        };
        match rest.split_once(':') {
            Some((model, path)) if !model.is_empty() && !path.is_empty() => {
                Model::named(model).map_err(|unknown| error(&unknown.to_string()))?;
                Ok(Self::Emulated { model: model.to_owned(), path: path.into() })
            }
            _ => Err(error("an emulated disk needs a model and a file")),
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real { path } if path.as_os_str().as_bytes().starts_with(b"emulated:") => {
                write!(f, "./{}", path.display())
            }
            Self::Real { path } => write!(f, "{}", path.display()),
            Self::Emulated { model, path } => write!(f, "emulated:{model}:{}", path.display()),
        }
    }
}

/// An open device, locked against every other process.
#[derive(Debug)]
pub(crate) struct Device {
    pub spec: DeviceSpec,
    pub file: File,
    /// How many bytes a pool may use of it: of an emulated disk, what its model holds.
    pub size: Bytes,
    /// The model of an emulated disk, scaled to the backing file.
    pub model: Option<Model>,
    /// The file was made for the pool that is being made.
    pub made: bool,
}

impl Device {
    /// Opens and locks a device that exists; says in `warnings` where transfers
    /// will pass through the system's cache although they should not.
    pub(crate) fn open(spec: &DeviceSpec, warnings: &mut Vec<String>) -> Result<Self, PoolError> {
        let path = spec.path();
        let block = is_block_device(path)?;
        let file = match spec {
            // The backing file is meant to be quick, not honest: the model is honest.
            DeviceSpec::Emulated { .. } => open_file(path, true, 0)?,
            DeviceSpec::Real { .. } => open_direct(path, block, warnings)?,
        };
        warnings.extend(claim::open_to_others(path));
        // Spares the kernel a look at each read; where it is not permitted, nothing is lost.
        let _ = sys::keep_access_time(&file);
        Self::locked(spec, file, block)
    }

    /// Opens and locks a device that nothing shall be written to.
    pub(crate) fn open_to_read(spec: &DeviceSpec) -> Result<Self, PoolError> {
        let path = spec.path();
        let block = is_block_device(path)?;
        Self::locked(spec, open_file(path, false, 0)?, block)
    }

    fn locked(spec: &DeviceSpec, file: File, block: bool) -> Result<Self, PoolError> {
        lock(&file, spec.path())?;
        if block {
            check_sector(&file, spec.path())?;
        }
        let size = Bytes::ZERO;
        let mut device = Self { spec: spec.clone(), file, size, model: None, made: false };
        device.measure()?;
        Ok(device)
    }

    /// Finds out how large the device is, and scales the model to that.
    fn measure(&mut self) -> Result<(), PoolError> {
        let path = self.spec.path();
        let whole = sys::size(&self.file).map_err(PoolError::io(path, "ask for its size"))?;
        self.size = whole.round_down(SECTOR);
        if let DeviceSpec::Emulated { model, .. } = &self.spec {
            let error = |error| PoolError::Model { path: path.to_owned(), error };
            let model = Model::named(model).and_then(|model| model.scaled(whole)).map_err(error)?;
            self.size = model.capacity();
            self.model = Some(model);
        }
        Ok(())
    }

    /// Opens a device for a new pool, making a file of `size` where there is
    /// none; refuses one that holds something, unless `force`.
    pub(crate) fn open_new(
        spec: &DeviceSpec,
        size: Option<Bytes>,
        force: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Self, PoolError> {
        let path = spec.path();
        let made = match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let size = size.ok_or_else(|| PoolError::NoSize { path: path.to_owned() })?;
                make_file(path, size)?;
                true
            }
            _ => false,
        };
        // Nobody says that what is mounted may be destroyed, whichever name of it he gives.
        if let Some(device) = behind_loop(path) {
            return Err(PoolError::BehindLoop { path: path.to_owned(), device });
        }
        let device = Self::open(spec, warnings).and_then(|mut device| {
            if !made && !force {
                device.refuse_if_used()?;
            }
            if let (false, Some(size)) = (made, size) {
                device.resize(size)?;
            }
            device.made = made;
            Ok(device)
        });
        if device.is_err() && made {
            // What was just made is empty, and nobody else knows of it.
            let _ = std::fs::remove_file(path);
        }
        device
    }

    /// Gives an existing plain file the size that was asked for. A block device
    /// has the size that it has.
    fn resize(&mut self, size: Bytes) -> Result<(), PoolError> {
        let path = self.spec.path();
        let file = self.file.metadata().map_err(PoolError::io(path, "ask for its size"))?;
        if !file.is_file() || file.len() == size.get() {
            return Ok(());
        }
        if file.len() > size.get() {
            self.file.set_len(size.get()).map_err(PoolError::io(path, "change its size"))?;
        }
        reserve(&self.file, path, size)?;
        self.measure()
    }

    /// Takes back what [`Device::open_new`] made, since the pool came to nothing.
    pub(crate) fn remove_if_made(&self) {
        if self.made {
            // What is left then is a file that is no pool; there is nobody to tell.
            let _ = std::fs::remove_file(self.spec.path());
        }
    }

    fn refuse_if_used(&self) -> Result<(), PoolError> {
        let path = self.spec.path();
        let found = signature::find(&self.file).map_err(PoolError::io(path, "read it"))?;
        match found {
            Some(what) => Err(PoolError::HoldsData { path: path.to_owned(), what }),
            None => Ok(()),
        }
    }
}

pub(crate) fn is_block_device(path: &Path) -> Result<bool, PoolError> {
    let kind = std::fs::metadata(path).map_err(PoolError::io(path, "open it"))?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(PoolError::NotADevice { path: path.to_owned() });
    }
    Ok(kind.is_block_device())
}

fn open_file(path: &Path, write: bool, flags: i32) -> Result<File, PoolError> {
    let opened = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EROFS) => PoolError::ReadOnly { path: path.to_owned() },
        Some(libc::EACCES | libc::EPERM) if write && File::open(path).is_ok() => {
            PoolError::ReadOnly { path: path.to_owned() }
        }
        // A mounted block device, opened exclusively.
        Some(libc::EBUSY | libc::ETXTBSY) => PoolError::InUse { path: path.to_owned() },
        _ => PoolError::io(path, "open it")(error),
    })
}

/// Past the system's cache where the file system can do that.
fn open_direct(path: &Path, block: bool, warnings: &mut Vec<String>) -> Result<File, PoolError> {
    let exclusive = if block { libc::O_EXCL } else { 0 };
    match open_patiently(path, libc::O_DIRECT | exclusive) {
        Err(PoolError::Io { error, .. }) if error.raw_os_error() == Some(libc::EINVAL) => {
            warnings.push(format!(
                "{}: its file system has no direct I/O, so that transfers pass through the \
                 system's cache and take times that no profile can bound",
                path.display()
            ));
            open_file(path, true, exclusive)
        }
        opened => opened,
    }
}

/// A block device is opened exclusively, so that what is said of [`lock`] holds for
/// opening it, too.
fn open_patiently(path: &Path, flags: i32) -> Result<File, PoolError> {
    let give_up = sys::now() + LOCK_PATIENCE;
    loop {
        match open_file(path, true, flags) {
            Err(PoolError::InUse { .. }) if sys::now() < give_up => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
}

fn check_sector(file: &File, path: &Path) -> Result<(), PoolError> {
    let sector =
        sys::block_device_sector(file).map_err(PoolError::io(path, "ask for its sector"))?;
    if sector > crate::arena::PAGE {
        return Err(PoolError::LargeSectors { path: path.to_owned(), sector });
    }
    Ok(())
}

/// The loop device that gives this file as a block device, if there is one.
fn behind_loop(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let devices = std::fs::read_dir("/sys/block").ok()?.flatten();
    let mut loops = devices.filter(|device| {
        let backing = std::fs::read_to_string(device.path().join("loop/backing_file"));
        backing.is_ok_and(|backing| Path::new(backing.trim_end_matches('\n')) == path)
    });
    Some(format!("/dev/{}", loops.next()?.file_name().to_string_lossy()))
}

/// Makes a file of `size` with its space reserved, or none at all. Nobody else may open
/// it: what may be read of a volume is for the volume to say.
fn make_file(path: &Path, size: Bytes) -> Result<(), PoolError> {
    if path.starts_with("/dev") && !path.starts_with("/dev/shm") {
        // A name that was not written as it is. The file would be memory.
        return Err(PoolError::NoDevice { path: path.to_owned() });
    }
    let mut options = OpenOptions::new();
    let made = options.read(true).write(true).create_new(true).mode(0o600).open(path);
    let file = made.map_err(|error| match path.parent().map(Path::try_exists) {
        // The parent of a mere name is the directory that everybody stands in.
        Some(Ok(false)) if path.parent() != Some(Path::new("")) => {
            PoolError::NoDirectory { path: path.to_owned() }
        }
        _ => PoolError::io(path, "make it")(error),
    })?;
    let reserved = reserve(&file, path, size);
    if reserved.is_err() {
        let _ = std::fs::remove_file(path);
    }
    reserved
}

fn reserve(file: &File, path: &Path, size: Bytes) -> Result<(), PoolError> {
    let have = sys::size(file).map_err(PoolError::io(path, "ask for its size"))?;
    let free = sys::free_space(file).map_err(PoolError::io(path, "ask for free space"))?;
    // Asked for first: a file system may fill itself up before it says no.
    let left = have + free;
    if size.saturating_sub(have) > free {
        return Err(PoolError::NoSpace { path: path.to_owned(), size, left });
    }
    match sys::reserve(file, size) {
        Ok(()) => Ok(()),
        // A file system that cannot reserve: the file is sparse then.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            file.set_len(size.get()).map_err(PoolError::io(path, "give it its size"))
        }
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EFBIG)) => {
            Err(PoolError::NoSpace { path: path.to_owned(), size, left })
        }
        Err(error) => Err(PoolError::io(path, "reserve its space")(error)),
    }
}

/// Names that a shell hands over may hold any bytes.
impl TryFrom<&OsStr> for DeviceSpec {
    type Error = PoolError;
    fn try_from(text: &OsStr) -> Result<Self, PoolError> {
        match text.to_str() {
            Some(text) => text.parse(),
            None => Ok(Self::Real { path: text.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_made_where_a_device_was_meant() {
        let path = Path::new("/dev/slackline-no-such-disk");
        let refused = make_file(path, Bytes::MIB).unwrap_err();
        assert!(matches!(&refused, PoolError::NoDevice { path: named } if named == path));
        assert!(!path.exists());
        let shared = tempfile::Builder::new().prefix("slackline-").tempdir_in("/dev/shm").unwrap();
        make_file(&shared.path().join("disk"), Bytes::MIB).unwrap();
    }

    #[test]
    fn names_are_paths_or_emulated_disks() {
        let spec: DeviceSpec = "emulated:laptop-4200:/tmp/a:b".parse().unwrap();
        assert_eq!(spec.path(), Path::new("/tmp/a:b"));
        for text in ["/dev/sdb", "emulated:laptop-4200:x", "./emulated:odd"] {
            assert_eq!(text.parse::<DeviceSpec>().unwrap().to_string(), text);
        }
        let odd = DeviceSpec::Real { path: "emulated:odd".into() };
        assert_eq!(odd.to_string(), "./emulated:odd");
    }

    #[test]
    fn names_that_are_neither_say_what_would_do() {
        for (text, says) in [
            ("", "an empty name"),
            ("emulated:laptop-4200", "needs a model and a file"),
            ("emulated::x", "needs a model and a file"),
            ("emulated:drum:x", "there is laptop-4200"),
        ] {
            let error = text.parse::<DeviceSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            assert!(error.contains("emulated:MODEL:FILE"), "{error}");
        }
    }
}
