//! What becomes of the file behind a disk while it is served: nobody else should touch it, and somebody may.
//!
//! Invariant: damage that was seen once stays told, although what is written makes a file longer again.

use crate::device::Device;
use crate::error::PoolError;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use units::Bytes;

/// The file of one disk.
#[derive(Debug)]
pub(crate) struct DiskFile {
    file: File,
    size: u64,
    damage: OnceLock<String>,
}

impl DiskFile {
    /// As it is now.
    pub(crate) fn new(device: &Device) -> Result<Self, PoolError> {
        let failed = PoolError::io(device.spec.path(), "watch its file");
        let opened = device.file.try_clone().and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = opened.map_err(failed)?;
        Ok(Self { file, size, damage: OnceLock::new() })
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
        (len < self.size).then(|| {
            let [was, is] = [self.size, len].map(Bytes::new);
            format!("its file was cut from {was} to {is}: what lay behind that is gone")
        })
    }
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
            DiskFile { file, size: 8 << 20, damage: OnceLock::new() }
        };
        let cut = of();
        assert_eq!(cut.damage(), None);
        cut.file.set_len(1 << 20).unwrap();
        assert!(cut.damage().unwrap().contains("cut from 8 MiB to 1 MiB"), "{cut:?}");
        cut.file.set_len(8 << 20).unwrap();
        assert!(cut.damage().is_some());
        let removed = of();
        assert_eq!(removed.damage(), None);
        fs::remove_file(&path).unwrap();
        assert!(removed.damage().unwrap().contains("removed"), "{removed:?}");
    }
}
