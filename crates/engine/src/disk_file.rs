//! What becomes of the file behind a disk while it is served: nobody else should touch it, and somebody may.
//!
//! Invariant: damage that was seen once stays told, although what is written makes a file longer again.
//!
//! A file that was cut between two looks, and is as long again, has a hole where its last metadata lie: a
//! pool's disk has bytes there, and nobody but a cut makes a hole of them. So the file system is asked
//! whether there still are any, which reads no data. What is not seen: a file that somebody has written
//! anew from end to end, as `cp` of an image does, where nobody looks while it is shorter. Its times and
//! its inode change with the daemon's own writes, or stay, and its bytes would have to be read.

use crate::device::Device;
use crate::error::PoolError;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use units::Bytes;

/// The file of one disk.
#[derive(Debug)]
pub(crate) struct DiskFile {
    file: File,
    size: u64,
    /// Bytes near its end, which were there from the first; none where the file system knows of none.
    last: Option<u64>,
    damage: OnceLock<String>,
}

impl DiskFile {
    /// As it is now.
    pub(crate) fn new(device: &Device) -> Result<Self, PoolError> {
        let failed = PoolError::io(device.spec.path(), "watch its file");
        let opened = device.file.try_clone().and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = opened.map_err(failed)?;
        let last = data_from(&file, store::last_label(Bytes::new(size)).get());
        Ok(Self { file, size, last, damage: OnceLock::new() })
    }

    /// What somebody has done to it since; never of a block device.
    pub(crate) fn damage(&self) -> Option<&str> {
        if self.damage.get().is_none()
            && let Some(damage) = self.look()
        {
            let _ = self.damage.set(damage);
        }
        self.damage.get().map(String::as_str)
    }

    fn look(&self) -> Option<String> {
        let facts = self.file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        if facts.nlink() == 0 {
            return Some(
                "its file was removed: all that is on it goes when the daemon ends".into(),
            );
        }
        let len = facts.len();
        if len < self.size {
            let [was, is] = [self.size, len].map(Bytes::new);
            return Some(format!(
                "its file was cut from {was} to {is}: what lay behind that is gone"
            ));
        }
        let last = self.last?;
        is_gone(crate::sys::data_from(&self.file, last), last).then(|| {
            "its file was cut and made longer again: what lay behind the cut is gone".into()
        })
    }
}

/// Whether the bytes that were at `last` are gone, by what the file system says of the first from there
/// on. One that fails to say leaves that open.
fn is_gone(says: io::Result<u64>, last: u64) -> bool {
    match says {
        Ok(at) => at != last,
        Err(error) => error.raw_os_error() == Some(libc::ENXIO),
    }
}

/// Where the first bytes of a file are that lie at `from` or behind; none where there are none, as far
/// as its file system knows. (The place of this descriptor in the file is nobody's: all transfers say
/// theirs.)
fn data_from(file: &File, from: u64) -> Option<u64> {
    crate::sys::data_from(file, from).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_is_cut_or_removed_is_told_of_also_when_it_is_as_long_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        let of = || {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            let file = options.open(&path).unwrap();
            file.set_len(8 << 20).unwrap();
            use std::os::unix::fs::FileExt;
            let label = store::last_label(Bytes::mib(8)).get();
            file.write_all_at(b"the last label", label).unwrap();
            let last = data_from(&file, label);
            DiskFile { file, size: 8 << 20, last, damage: OnceLock::new() }
        };
        let cut = of();
        assert_eq!(cut.damage(), None);
        cut.file.set_len(1 << 20).unwrap();
        assert!(cut.damage().unwrap().contains("cut from 8 MiB to 1 MiB"), "{cut:?}");
        cut.file.set_len(8 << 20).unwrap();
        assert!(cut.damage().is_some());
        // As long again before anybody looks.
        let between = of();
        assert!(between.last.is_some() && between.damage().is_none(), "{between:?}");
        between.file.set_len(1 << 20).unwrap();
        between.file.set_len(8 << 20).unwrap();
        assert!(between.damage().unwrap().contains("made longer again"), "{between:?}");
        // What the file system does not say is no damage.
        let fails = |errno| Err(io::Error::from_raw_os_error(errno));
        assert!(is_gone(fails(libc::ENXIO), 5) && is_gone(Ok(6), 5) && !is_gone(Ok(5), 5));
        assert!([libc::EIO, libc::EINVAL, libc::EINTR].iter().all(|it| !is_gone(fails(*it), 5)));
        let removed = of();
        assert_eq!(removed.damage(), None);
        fs::remove_file(&path).unwrap();
        assert!(removed.damage().unwrap().contains("removed"), "{removed:?}");
    }
}
