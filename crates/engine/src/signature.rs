//! What is on a device before a pool is made there.
//!
//! Known file systems, partition tables and containers are named; a file or
//! device that holds anything else but zeros at its start or end is refused too.

use crate::aligned::Aligned;
use crate::arena::PAGE;
use crate::sys;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use units::Bytes;

/// How much of the start, and of the end, is looked at.
const LOOK: Bytes = Bytes::mib(1);

/// Where a name stands, the bytes of it, and what they mean. From each format's
/// own description.
const KNOWN: &[(usize, &[u8], &str)] = &[
    (0, b"SLKLABEL", "a Slackline pool"),
    (0, b"XFSB", "an XFS file system"),
    (0, b"LUKS\xba\xbe", "an encrypted volume (LUKS)"),
    (0, b"hsqs", "a squashfs file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (82, b"FAT32   ", "a FAT file system"),
    (54, b"FAT", "a FAT file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (512, b"LABELONE", "an LVM volume"),
    (512, b"EFI PART", "a partition table (GPT)"),
    (1024, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (1080, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (4086, b"SWAPSPACE2", "swap space"),
    (4096, b"\xfc\x4e\x2b\xa9", "a member of a RAID (md)"),
    (32_769, b"CD001", "an ISO 9660 file system"),
    (65_600, b"_BHRfS_M", "a btrfs file system"),
    (510, b"\x55\xaa", "a boot sector or partition table"),
];

/// What the device holds, or `None` where it looks empty.
pub(crate) fn find(file: &File) -> io::Result<Option<String>> {
    let len = sys::size(file)?;
    let start = look(file, Bytes::ZERO, len)?;
    for (at, bytes, what) in KNOWN {
        if start.get(*at..at + bytes.len()) == Some(*bytes) {
            return Ok(Some((*what).to_owned()));
        }
    }
    let end = look(file, len.saturating_sub(LOOK).round_down(PAGE), len)?;
    let empty = start.iter().chain(end.iter()).all(|&byte| byte == 0);
    Ok((!empty).then(|| "data of a kind that is not known here".to_owned()))
}

/// The bytes from `offset`, up to [`LOOK`] and a page of them; zeros past the end.
fn look(file: &File, offset: Bytes, len: Bytes) -> io::Result<Aligned> {
    let want = len.saturating_sub(offset).min(LOOK + PAGE);
    let mut bytes = Aligned::zeroed(want);
    let mut done = 0;
    while done < bytes.len() {
        let at = offset + Bytes::new(done as u64);
        match file.read_at(&mut bytes[done..], at.get()) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(offset: u64, bytes: &[u8], len: u64) -> Option<String> {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        find(&file).unwrap()
    }

    #[test]
    fn known_formats_are_named_and_anything_else_is_noticed() {
        assert_eq!(holds(1080, b"\x53\xef", 4 << 20).unwrap(), "an ext2, ext3 or ext4 file system");
        assert_eq!(holds(0, b"XFSB", 4 << 20).unwrap(), "an XFS file system");
        assert!(holds(77, b"x", 4 << 20).unwrap().contains("not known"));
        assert!(holds((4 << 20) - 1, b"x", 4 << 20).unwrap().contains("not known"));
        assert!(holds(5, b"x", 100).unwrap().contains("not known"), "a file below one page");
        assert_eq!(holds(0, b"\0", 4 << 20), None);
        assert_eq!(holds(0, b"", 0), None);
    }
}
