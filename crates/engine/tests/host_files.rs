//! Files of others as they are on a real file system: where their bytes lie, and what reading
//! them says. Only where the build's own folder is on a file system on which contracts can be
//! given.

use engine::{Buffer, HostFile};
use std::fs::File;
use std::os::unix::fs::FileExt;
use tempfile::NamedTempFile;
use units::Bytes;

const BLOCK: Bytes = Bytes::kib(4);

/// A file in the build's folder, filled like this; none where no contract could be given on it.
fn taken(fill: impl FnOnce(&File)) -> Option<(HostFile, NamedTempFile)> {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let file = tempfile::Builder::new().prefix("slackline-").tempfile_in(folder).unwrap();
    fill(file.as_file());
    file.as_file().sync_all().unwrap();
    let is_fit = skips::is_fit_for_contracts(folder.as_ref());
    let taken = skips::can_run(is_fit, "needs a build folder on ext4 or xfs")
        .then(|| HostFile::take(file.reopen().unwrap().into()).unwrap());
    Some((taken?, file))
}

/// A file of 300 blocks, each with a hole behind it: the kernel tells of 128 runs at once.
#[test]
fn a_file_in_many_runs_is_found_to_its_end() {
    const RUNS: u64 = 300;
    let place = |n: u64| BLOCK * (2 * n);
    let Some((file, _)) = taken(|file| {
        for n in 0..RUNS {
            file.write_all_at(&[n as u8; BLOCK.get() as usize], place(n).get()).unwrap();
        }
    }) else {
        return;
    };
    for extents in [file.extents().unwrap(), file.extents_so_far().unwrap()] {
        for n in 0..RUNS {
            let holds = |one: &&engine::Extent| one.at <= place(n) && place(n) < one.at + one.len;
            assert_eq!(extents.iter().filter(holds).count(), 1, "block {n}: {extents:?}");
        }
        assert!(extents.is_sorted_by(|one, next| one.at + one.len <= next.at), "{extents:?}");
    }
}

#[test]
fn a_file_lies_on_the_drives_of_its_file_system() {
    let Some((file, _)) = taken(|file| file.write_all_at(&[1; 4096], 0).unwrap()) else { return };
    let (drives, device) = (file.drives(), file.device().unwrap());
    // What is mapped lies on others, which are named instead.
    let slaves = format!("/sys/class/block/{}/slaves", device.name);
    let is_mapped = std::fs::read_dir(slaves).is_ok_and(|mut slaves| slaves.next().is_some());
    assert!(is_mapped || drives.contains(&device.name), "{drives:?} and {device:?}");
    for drive in drives {
        assert!(std::fs::exists(format!("/sys/class/block/{drive}")).unwrap(), "{drive}");
    }
}

/// Past the system's cache no device reads from the middle of a sector on.
#[test]
fn what_the_system_refuses_to_read_is_told_with_its_errno() {
    let Some((file, _)) = taken(|file| file.write_all_at(&[1; 8192], 0).unwrap()) else { return };
    let mut buffer = Buffer::new(BLOCK);
    assert_eq!(file.read(Bytes::new(1), BLOCK, &mut buffer), Err(libc::EINVAL));
    assert_eq!(file.read(BLOCK, BLOCK, &mut buffer), Ok(BLOCK));
    assert_eq!(file.read(BLOCK * 2, BLOCK, &mut buffer), Ok(Bytes::ZERO), "behind its end");
}

#[test]
fn a_device_is_profiled_by_reading_it() {
    let Some((file, _)) = taken(|file| {
        (0..64).for_each(|mib| file.write_all_at(&vec![mib as u8; 1 << 20], mib << 20).unwrap());
    }) else {
        return;
    };
    let device = file.device().unwrap();
    let profile = device.measure(&file).unwrap();
    assert_eq!(profile.capacity(), device.size.round_down(units::SECTOR));
    let text = profile.to_toml();
    assert_eq!(disk::Profile::parse(&text).unwrap(), profile, "{text}");
}
