//! How long a file is when another door makes it longer or shorter: nothing that it has written goes, and
//! nothing is read that was never there.

use super::*;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicBool;

fn append(path: &Path, text: &str) {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

fn open(path: &Path, flags: i32) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
}

/// The kernel took the end that it had known for less than a second, and what the other one had appended
/// before the file was opened was written over.
#[test]
fn what_is_appended_comes_behind_what_another_door_had_appended_before_the_open() {
    let Some(mounted) = Mounted::new() else { return };
    let two = mounted.second();
    for round in 0..5 {
        let name = format!("log{round}");
        let (log, other) = (mounted.path(&name), two.join(&name));
        fs::write(&log, "first\n").unwrap();
        symlink(&name, mounted.path(&format!("link{round}"))).unwrap();
        // The length is known from now on, for a second.
        assert_eq!(fs::metadata(&log).unwrap().len(), 6);
        append(&other, "second\n");
        append(&log, "third\n");
        append(&other, "fourth\n");
        append(&mounted.path(&format!("link{round}")), "fifth\n");
        let all = "first\nsecond\nthird\nfourth\nfifth\n";
        assert_eq!(fs::read_to_string(&log).unwrap(), all);
        assert_eq!(fs::read_to_string(&other).unwrap(), all);
        // Also where it is shorter: there were zeros in between.
        fs::write(&other, "new\n").unwrap();
        append(&log, "newer\n");
        assert_eq!(fs::read_to_string(&log).unwrap(), "new\nnewer\n");
        assert_eq!(fs::read_to_string(&other).unwrap(), "new\nnewer\n");
    }
}

/// Who opens a file for which the kernel looks up no name hears of no error.
#[test]
fn a_file_that_another_door_has_changed_is_opened_by_its_descriptor() {
    let Some(mounted) = Mounted::new() else { return };
    let two = mounted.second();
    let log = mounted.path("log");
    fs::write(&log, "first\n").unwrap();
    let first = File::open(&log).unwrap();
    let by_descriptor = PathBuf::from(format!("/proc/self/fd/{}", first.as_raw_fd()));
    for _ in 0..5 {
        append(&two.join("log"), "more\n");
        drop(open(&by_descriptor, 0));
        append(&two.join("log"), "more\n");
        // Several at once.
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(|| open(&by_descriptor, 0))));
        });
    }
    fs::remove_file(&log).unwrap();
    drop(open(&by_descriptor, 0));
}

/// The kernel cuts a file to the length that it knew when a write beyond that and past its cache has failed.
#[test]
fn a_write_that_fails_cuts_nothing_off_that_another_door_has_written() {
    let Some(mounted) = Mounted::new() else { return };
    let two = mounted.second();
    let (path, other) = (mounted.path("big"), two.join("big"));
    fs::write(&path, [b'x'; 4096]).unwrap();
    let file = open(&path, O_DIRECT);
    assert_eq!(file.metadata().unwrap().len(), 4096);
    let mut appended = OpenOptions::new().append(true).open(&other).unwrap();
    appended.write_all(&[b'y'; 1 << 20]).unwrap();
    appended.sync_all().unwrap();
    let refused = file.write_at(&Page([7; 4096]).0, 100 << 30).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc_number("ENOSPC")));
    let all = [&[b'x'; 4096][..], &[b'y'; 1 << 20]].concat();
    assert!(fs::read(&other).unwrap() == all);
    assert!(fs::read(&path).unwrap() == all);
    // What a program itself asks for is done, whatever failed before.
    assert!(file.write_at(&Page([7; 4096]).0, 100 << 30).is_err());
    file.set_len(5000).unwrap();
    assert_eq!(fs::metadata(&other).unwrap().len(), 5000);
    append(&other, "more");
    file.set_len(5000).unwrap();
    assert_eq!(fs::read(&other).unwrap().len(), 5000);
}

/// The cut was another step than the look at the length: what was appended between the two, and synced, was lost.
#[test]
fn a_write_that_fails_cuts_nothing_off_that_another_door_writes_at_that_moment() {
    let Some(mounted) = Mounted::new() else { return };
    let two = mounted.second();
    let all = [[b'x'; 4096], [b'y'; 4096]].concat();
    let mut took = Duration::ZERO;
    for round in 0..200 {
        let (path, other) = (mounted.path("big"), two.join("big"));
        let _ = fs::remove_file(&path);
        fs::write(&path, &all[..4096]).unwrap();
        let file = open(&path, O_DIRECT);
        let mut appended = OpenOptions::new().append(true).open(&other).unwrap();
        std::thread::scope(|scope| {
            let before_its_end = Duration::from_micros(round % 20 * 100);
            let waits = took.saturating_sub(before_its_end);
            scope.spawn(move || {
                std::thread::sleep(waits);
                appended.write_all(&[b'y'; 4096]).unwrap();
                appended.sync_all().unwrap();
            });
            let began = std::time::Instant::now();
            assert!(file.write_at(&Page([7; 4096]).0, 100 << 30).is_err());
            took = began.elapsed();
        });
        let found = fs::read(&other).unwrap();
        assert!(found == all, "round {round}: {} bytes", found.len());
    }
}

/// Of a write that is several requests some have been done when one fails: the kernel cuts them off.
#[test]
fn of_a_write_past_the_cache_for_which_there_is_no_room_nothing_is_left() {
    let Some(mounted) = Mounted::of("64MiB") else { return };
    let path = mounted.path("f");
    fs::write(&path, [b'x'; 4096]).unwrap();
    let free = mounted.client().health().unwrap().free_bytes.get();
    let file = open(&path, O_DIRECT);
    let mut memory = vec![7; free as usize + (2 << 20) + 4096];
    let start = memory.as_ptr().align_offset(4096);
    let bytes = &mut memory[start..][..free as usize + (2 << 20)];
    let refused = file.write_at(bytes, 4096).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc_number("ENOSPC")));
    assert_eq!(file.metadata().unwrap().len(), 4096);
    assert_eq!(mounted.client().volume("f").unwrap().length_bytes, Bytes::new(4096));
    assert_eq!(fs::read(&path).unwrap(), [b'x'; 4096]);
}

/// The cut went to where the kernel had seen the file end, and some of the write had been done behind what another
/// door had written in between: that was synced, and was cut off.
#[test]
fn a_write_that_fails_in_part_cuts_off_nothing_that_another_door_has_written_before_it() {
    let Some(mounted) = Mounted::of("64MiB") else { return };
    let client = mounted.client();
    let (size, path) = (Bytes::mib(16), mounted.path("r"));
    client.volume_create(&client::control::VolumeCreate::new("r", size)).unwrap();
    let free = client.health().unwrap().free_bytes;
    client.volume_create(&client::control::VolumeCreate::new("full", free)).unwrap();
    let file = open(&path, O_DIRECT);
    assert_eq!(file.metadata().unwrap().len(), 0);
    for round in 0..2 {
        let mut other = client.best_effort("r").unwrap();
        let written = vec![b'0' + round; 1 << 20];
        other.write_at(Bytes::ZERO, &written).unwrap();
        other.sync().unwrap();
        let mut memory = vec![7; (8 << 20) + 4096];
        let start = memory.as_ptr().align_offset(4096);
        let bytes = &mut memory[start..][..8 << 20];
        let refused = file.write_at(bytes, 12 << 20).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc_number("ENOSPC")));
        let volume = client.volume("r").unwrap();
        assert_eq!(volume.size_bytes, size, "it was reserved before");
        assert!(volume.length_bytes >= Bytes::MIB, "{volume:?}");
        assert!(fs::read(&path).unwrap()[..1 << 20] == written);
    }
}

/// It went on for ever, in zeros: the space that was reserved reads as such.
#[test]
fn a_file_that_another_door_has_cut_ends_there_for_who_has_it_open() {
    let Some(mounted) = Mounted::new() else { return };
    let two = mounted.second();
    for flags in [0, O_DIRECT] {
        fs::write(mounted.path("z"), [b'A'; 900_000]).unwrap();
        let file = open(&mounted.path("z"), flags);
        assert_eq!(file.metadata().unwrap().len(), 900_000);
        open(&two.join("z"), 0).set_len(100).unwrap();
        let mut pages = [Page([1; 4096]), Page([1; 4096])];
        assert_eq!(file.read_at(&mut pages[0].0, 409_600).unwrap(), 0, "behind the end");
        assert_eq!(file.read_at(&mut pages[1].0, 0).unwrap(), 100, "over the end");
        assert_eq!(pages[1].0[..100], [b'A'; 100]);
        // What is zeros in the file is read as such.
        file.set_len(5000).unwrap();
        let mut both = [0; 8192];
        assert_eq!(fs::read(two.join("z")).unwrap()[100..], [0; 4900]);
        assert_eq!(open(&mounted.path("z"), 0).read_at(&mut both, 0).unwrap(), 5000);
    }
}

/// It said that all was well, and the file was shorter.
#[test]
fn what_fallocate_has_answered_is_as_long_as_that_also_where_another_door_has_cut_it() {
    use rustix::fs::{FallocateFlags, fallocate};
    let Some(mounted) = Mounted::new() else { return };
    let two = mounted.second();
    fs::write(mounted.path("f"), [b'x'; 900_000]).unwrap();
    let file = open(&mounted.path("f"), 0);
    let mut ten = [0; 10];
    file.read_exact_at(&mut ten, 0).unwrap();
    open(&two.join("f"), 0).set_len(100).unwrap();
    fallocate(&file, FallocateFlags::empty(), 0, 500_000).unwrap();
    assert_eq!(mounted.client().volume("f").unwrap().length_bytes, Bytes::new(500_000));
    open(&two.join("f"), 0).set_len(100).unwrap();
    fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 500_000).unwrap();
    assert_eq!(mounted.client().volume("f").unwrap().length_bytes, Bytes::new(100));
}

/// One failed with `EINVAL`, or with `ENOSPC` on a pool that was empty but for what the other one had given
/// back since the last commit.
#[test]
fn one_makes_a_file_longer_while_another_door_cuts_it() {
    let Some(mounted) = Mounted::of("64MiB") else { return };
    let two = mounted.second();
    fs::write(mounted.path("f"), "").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let cutter = scope.spawn(|| {
            let file = open(&two.join("f"), 0);
            while !is_over.load(Ordering::Relaxed) {
                file.set_len(0).unwrap();
            }
        });
        let file = open(&mounted.path("f"), 0);
        let ends: Vec<_> = (0..1_500).map(|_| file.set_len(5 << 20)).collect();
        is_over.store(true, Ordering::Relaxed);
        cutter.join().unwrap();
        let failed: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
        assert!(failed.is_empty(), "{} failed: {:?}", failed.len(), failed[0]);
    });
}
