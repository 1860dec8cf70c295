//! Which drives the bytes of a device really lie on, as far as the system knows.
//!
//! One analysis admits what one drive can do. Two partitions of a drive as two disks of a
//! pool would each be admitted to the full, and both be late. So a partition stands for its
//! whole drive, a mapped device (device-mapper, RAID) for those under it, and a file or a
//! loop device for the drives of the file system that holds it.
//!
//! A device that is a drive, or a part of it, is refused beside any other that lies on that
//! drive. Files, and loop devices over files, are accepted beside each other, and told of:
//! tests and demonstrations have several images on one file system. Contracts on ordinary files
//! of a drive are refused beside any disk of a pool that lies on it, be it a device or a file
//! ([`pool_drives`]). Emulated disks take the time that their model says, not the drive's: they
//! share nothing.
//!
//! What is not known shares nothing: a file system without a device of its own (overlay,
//! tmpfs, btrfs, network), and what a host or an array hides.

use crate::device::DeviceSpec;
use crate::error::PoolError;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Devices on devices are looked through so deep.
const DEPTH_MAX: u32 = 16;

/// What the system says of devices; a test has a tree of its own.
struct System<'a> {
    /// Where sysfs is.
    sysfs: &'a Path,
    /// The device that holds a file, by its major and minor number.
    holds: &'a dyn Fn(&Path) -> Option<(u32, u32)>,
}

/// What a device of a pool lies on.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Lies {
    /// The kernel's names of the drives.
    drives: BTreeSet<String>,
    /// Whole devices that it is, or is a part of, without a file between.
    parts: BTreeSet<String>,
}

impl Lies {
    /// By whatever name.
    fn all(mut self) -> BTreeSet<String> {
        self.drives.append(&mut self.parts);
        self.drives
    }

    /// A drive, or another whole device, that one of the two is a part of and the other one
    /// lies on.
    fn part_beside<'a>(&'a self, other: &'a Self) -> Option<&'a String> {
        let on = |one: &Self, name: &String| one.parts.contains(name) || one.drives.contains(name);
        let ours = self.parts.iter().find(|name| on(other, name));
        ours.or_else(|| other.parts.iter().find(|name| on(self, name)))
    }
}

impl System<'_> {
    /// What a block device lies on.
    fn device(&self, number: (u32, u32)) -> Lies {
        let mut lies = Lies::default();
        self.look(number, true, &mut lies, DEPTH_MAX);
        lies
    }

    /// What a file lies on.
    fn file(&self, path: &Path) -> Lies {
        let mut lies = Lies::default();
        if let Some(number) = (self.holds)(path) {
            self.look(number, false, &mut lies, DEPTH_MAX);
        }
        lies
    }

    /// `is_part`: no file has been between so far.
    fn look(&self, (major, minor): (u32, u32), is_part: bool, lies: &mut Lies, depth: u32) {
        let link = self.sysfs.join(format!("dev/block/{major}:{minor}"));
        if let Ok(directory) = fs::canonicalize(link) {
            self.look_at(directory, is_part, lies, depth);
        }
    }

    fn look_at(&self, mut directory: PathBuf, is_part: bool, lies: &mut Lies, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        if directory.join("partition").exists() {
            directory.pop();
        }
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_part {
            lies.parts.insert(name.clone());
        }
        if let Ok(backing) = fs::read_to_string(directory.join("loop/backing_file")) {
            if let Some(number) = (self.holds)(Path::new(backing.trim_end_matches('\n'))) {
                self.look(number, false, lies, depth);
            }
            return;
        }
        let under = fs::read_dir(directory.join("slaves")).into_iter().flatten().flatten();
        let under: Vec<PathBuf> =
            under.filter_map(|entry| fs::canonicalize(entry.path()).ok()).collect();
        if under.is_empty() {
            lies.drives.insert(name);
        }
        for slave in under {
            self.look_at(slave, is_part, lies, depth);
        }
    }
}

/// The device that holds a file, if its file system has one.
fn holder(path: &Path) -> Option<(u32, u32)> {
    let device = fs::metadata(path).ok()?.dev();
    let number = (libc::major(device), libc::minor(device));
    // Numbers without a device have no major one.
    (number.0 != 0).then_some(number)
}

/// The drives under a block device, and the whole devices that it is a part of.
pub(crate) fn under(number: (u32, u32)) -> BTreeSet<String> {
    system(|system| system.device(number)).all()
}

fn system<T>(ask: impl FnOnce(&System<'_>) -> T) -> T {
    ask(&System { sysfs: Path::new("/sys"), holds: &holder })
}

/// What is at this path lies on, by the system's own tree; nothing that is not there.
fn lies(path: &Path) -> Lies {
    match fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => {
            let number = (libc::major(found.rdev()), libc::minor(found.rdev()));
            system(|system| system.device(number))
        }
        Ok(_) => system(|system| system.file(path)),
        Err(_) => Lies::default(),
    }
}

/// The drives on which the disks of a pool lie, each with the disk, be it a device or a file:
/// nobody else can be promised time there. Emulated disks, and what is not known, have none.
pub fn pool_drives(specs: &[DeviceSpec]) -> Vec<(String, PathBuf)> {
    let mut all = Vec::new();
    for spec in specs {
        let DeviceSpec::Real { path } = spec else { continue };
        let number = match fs::metadata(path) {
            Ok(found) if found.file_type().is_block_device() => {
                Some((libc::major(found.rdev()), libc::minor(found.rdev())))
            }
            // What holds a file is known here also where nothing is of what is under that.
            _ => holder(path),
        };
        let names = number.map(under).unwrap_or_default();
        all.extend(names.into_iter().map(|drive| (drive, path.clone())));
    }
    all
}

/// Refuses disks of a pool that are one drive, unless `shared` says that it may be so; tells
/// of the others that are.
pub(crate) fn check(
    specs: &[DeviceSpec],
    shared: bool,
    warnings: &mut Vec<String>,
) -> Result<(), PoolError> {
    let real = specs.iter().filter_map(|spec| match spec {
        DeviceSpec::Real { path } => Some((path.clone(), lies(path))),
        DeviceSpec::Emulated { .. } => None,
    });
    check_these(&real.collect::<Vec<_>>(), shared, warnings)
}

fn check_these(
    disks: &[(PathBuf, Lies)],
    shared: bool,
    warnings: &mut Vec<String>,
) -> Result<(), PoolError> {
    for (at, (path, lies)) in disks.iter().enumerate() {
        let mut told = false;
        for (other_path, other) in &disks[..at] {
            let part = lies.part_beside(other);
            let common = lies.drives.intersection(&other.drives).next();
            let Some(drive) = part.or(common).cloned() else { continue };
            if part.is_some() && !shared {
                let paths = [other_path.clone(), path.clone()];
                return Err(PoolError::SharedDrive { paths, drive });
            }
            // One word for each disk is enough; a later one may still be refused.
            if std::mem::replace(&mut told, true) {
                continue;
            }
            warnings.push(format!(
                "{} and {} lie on one drive, {drive}: each is promised all of its time, so that \
                 contracts on both may be late; use one device of a drive for a pool that is to \
                 keep its time",
                other_path.display(),
                path.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A sysfs with two drives: `sda` with two partitions and `sdb`; `dm-0` over `sda1` and
    /// `sdb`; `loop0` over a file on `sda2`, `loop1` over one on `dm-0`; `dm-1`, which claims
    /// to lie on itself.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let tree = Self(tempfile::Builder::new().prefix("slackline-").tempdir().unwrap());
            tree.device("sda", "8:0");
            tree.partition("sda", "sda1", "8:1");
            tree.partition("sda", "sda2", "8:2");
            tree.device("sdb", "8:16");
            tree.device("dm-0", "253:0");
            tree.under("dm-0", "sda/sda1");
            tree.under("dm-0", "sdb");
            tree.device("dm-1", "253:1");
            tree.under("dm-1", "dm-1");
            tree.device("loop0", "7:0");
            tree.backing("loop0", "/on/sda2/image");
            tree.device("loop1", "7:1");
            tree.backing("loop1", "/on/dm-0/image");
            tree
        }
        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join("devices").join(name)
        }
        fn device(&self, name: &str, number: &str) {
            fs::create_dir_all(self.at(name).join("slaves")).unwrap();
            let links = self.0.path().join("dev/block");
            fs::create_dir_all(&links).unwrap();
            symlink(self.at(name), links.join(number)).unwrap();
        }
        fn partition(&self, drive: &str, name: &str, number: &str) {
            let name = format!("{drive}/{name}");
            self.device(&name, number);
            fs::write(self.at(&name).join("partition"), "1\n").unwrap();
        }
        fn under(&self, name: &str, slave: &str) {
            let link = self.at(name).join("slaves").join(slave.replace('/', "-"));
            symlink(self.at(slave), link).unwrap();
        }
        fn backing(&self, name: &str, path: &str) {
            fs::create_dir_all(self.at(name).join("loop")).unwrap();
            fs::write(self.at(name).join("loop/backing_file"), format!("{path}\n")).unwrap();
        }
        fn ask<T>(&self, ask: impl Fn(&System<'_>) -> T) -> T {
            let holds = |path: &Path| match path.to_str().unwrap() {
                path if path.starts_with("/on/sda2") => Some((8, 2)),
                path if path.starts_with("/on/dm-0") => Some((253, 0)),
                _ => None,
            };
            ask(&System { sysfs: self.0.path(), holds: &holds })
        }
    }

    /// A device, its drives, and what it is a part of.
    type Case = ((u32, u32), &'static [&'static str], &'static [&'static str]);

    fn names(names: &BTreeSet<String>) -> Vec<&str> {
        names.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_device_is_followed_down_to_its_drives() {
        let tree = Tree::new();
        let cases: [Case; 8] = [
            ((8, 0), &["sda"], &["sda"]),
            ((8, 1), &["sda"], &["sda"]),
            ((8, 16), &["sdb"], &["sdb"]),
            ((253, 0), &["sda", "sdb"], &["dm-0", "sda", "sdb"]),
            ((7, 0), &["sda"], &["loop0"]),
            ((7, 1), &["sda", "sdb"], &["loop1"]),
            ((253, 1), &[], &["dm-1"]),
            ((9, 9), &[], &[]),
        ];
        for (number, drives, parts) in cases {
            let lies = tree.ask(|system| system.device(number));
            assert_eq!(
                (names(&lies.drives), names(&lies.parts)),
                (drives.to_vec(), parts.to_vec())
            );
        }
        let file = tree.ask(|system| system.file(Path::new("/on/dm-0/x")));
        assert_eq!((names(&file.drives), names(&file.parts)), (vec!["sda", "sdb"], vec![]));
        assert!(tree.ask(|system| system.file(Path::new("/tmp/x"))).drives.is_empty());
    }

    fn checked(disks: &[(&str, Lies)], shared: bool) -> (Result<(), String>, usize) {
        let disks: Vec<_> =
            disks.iter().map(|(path, lies)| (PathBuf::from(path), lies.clone())).collect();
        let mut warnings = Vec::new();
        let checked = check_these(&disks, shared, &mut warnings);
        (checked.map_err(|error| error.to_string()), warnings.len())
    }

    /// Two partitions of a drive as two disks would each be promised the whole drive.
    #[test]
    fn two_devices_of_one_drive_are_refused_and_images_are_told_of() {
        let tree = Tree::new();
        let device = |number| tree.ask(|system| system.device(number));
        let (one, two) = (("/dev/sda1", device((8, 1))), ("/dev/sda2", device((8, 2))));
        let refused = |disks: &[(&str, Lies)]| checked(disks, false).0.unwrap_err();
        let said = refused(&[one.clone(), ("/dev/sdb", device((8, 16))), two.clone()]);
        assert!(said.contains("/dev/sda1 and /dev/sda2") && said.contains("sda:"), "{said}");
        assert!(said.contains("--shared-drive"), "{said}");
        // A mapped device has both drives; an image lies on the drive of its file system.
        refused(&[("/dev/dm-0", device((253, 0))), ("/dev/sdb", device((8, 16)))]);
        refused(&[one.clone(), ("/dev/loop0", device((7, 0)))]);
        assert_eq!(checked(&[one.clone(), two], true), (Ok(()), 1), "it was said to be meant so");
        let images = [("/dev/loop0", device((7, 0))), ("/dev/loop1", device((7, 1)))];
        assert_eq!(checked(&images, false), (Ok(()), 1));
        assert_eq!(checked(&[one, ("/dev/sdb", device((8, 16)))], false), (Ok(()), 0));
        // Two partitions of a loop device are one drive to whoever made them.
        tree.partition("loop0", "loop0p1", "259:0");
        tree.partition("loop0", "loop0p2", "259:1");
        let device = |number| tree.ask(|system| system.device(number));
        let parts = [("/dev/loop0p1", device((259, 0))), ("/dev/loop0p2", device((259, 1)))];
        refused(&parts);
        // Also where one of them was told of beside another disk before.
        let image = ("/on/sda2/x", tree.ask(|system| system.file(Path::new("/on/sda2/x"))));
        let [first, second] = parts;
        refused(&[image.clone(), first.clone(), second.clone()]);
        // And who has several beside him is told of once.
        assert_eq!(checked(&[image, first, second], true), (Ok(()), 2));
        let unknown = Lies::default();
        assert_eq!(checked(&[("a", unknown.clone()), ("b", unknown)], false), (Ok(()), 0));
    }
}
