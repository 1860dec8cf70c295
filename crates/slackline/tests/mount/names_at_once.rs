//! Names that programs of one mount, and of two, change at the same time: each call does what it would do
//! alone, before or after the other one.

use super::*;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

/// Does both again and again at the same time, until `rounds` of the first are over.
fn beside(rounds: usize, mut first: impl FnMut(usize), second: impl Fn() + Sync) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                second();
            }
        });
        (0..rounds).for_each(&mut first);
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Whoever had opened it when it was removed had a descriptor all of whose calls failed, and some of the
/// removed files stayed for ever under their hidden name.
#[test]
fn a_file_that_is_opened_while_it_is_removed_is_whole_or_not_there() {
    let Some(mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    let (mut opened, mut dead) = (0, 0);
    let make = || {
        let _ = fs::write(mounted.path("new"), [7; 5_000]);
        let _ = fs::rename(mounted.path("new"), mounted.path("f"));
        let _ = fs::remove_file(mounted.path("f"));
    };
    let open = |_| {
        let Ok(mut file) = File::open(&path) else { return };
        opened += 1;
        let mut bytes = Vec::new();
        let is_whole = file.read_to_end(&mut bytes).is_ok() && bytes == [7; 5_000];
        dead += usize::from(!is_whole);
    };
    beside(4_000, open, make);
    assert!(opened > 10, "{opened} of 4000 opens found it");
    assert_eq!(dead, 0, "of {opened} files that were opened");
    let client = mounted.client();
    let hidden = || client.entries(client::control::REMOVED_DIRECTORY, "", 1000).unwrap().len();
    // The kernel tells the mount of a close in its own time.
    let are_gone = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        hidden() == 0
    });
    assert!(are_gone, "{} removed files stay", hidden());
}

/// Each looked what was there, and did then what was right for that.
#[test]
fn two_doors_put_nothing_in_the_place_of_another_kind() {
    use std::io::ErrorKind as Kind;
    let Some(mounted) = Mounted::new() else { return };
    let (one, two) = (mounted.path(""), mounted.second());
    let (mut renamed, mut removed) = (0, 0);
    let exchange = |_| {
        // A directory comes to the place of a directory, and a file to that of a file.
        let _ = fs::create_dir(one.join("d"));
        match fs::rename(one.join("d"), one.join("place")) {
            Ok(()) => {
                renamed += 1;
                assert!(
                    !fs::metadata(one.join("place")).is_ok_and(|it| it.is_dir() && it.len() > 0)
                );
            }
            Err(error) => {
                let kind = error.kind();
                assert!(matches!(kind, Kind::NotADirectory | Kind::NotFound), "{error}");
            }
        }
        match fs::remove_dir(one.join("place")) {
            Ok(()) => removed += 1,
            Err(error) => {
                let kind = error.kind();
                assert!(matches!(kind, Kind::NotADirectory | Kind::NotFound), "{error}");
            }
        }
    };
    // Never removed but by this door: a directory that takes its place, or an rmdir, would be wrong.
    let lost = AtomicUsize::new(0);
    let other = || {
        if fs::write(two.join("mine"), "mine").is_ok()
            && fs::rename(two.join("mine"), two.join("place")).is_ok()
            && fs::remove_file(two.join("place")).is_err()
        {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    };
    beside(600, exchange, other);
    assert_eq!(lost.into_inner(), 0, "files whose place a directory took, or that rmdir removed");
    assert!(renamed > 5 && removed > 5, "{renamed} renamed, {removed} removed");
}

/// Both succeeded, and the new file lay in a directory that its maker had never seen.
#[test]
fn nothing_is_made_in_a_directory_that_another_door_removes() {
    let Some(mounted) = Mounted::new() else { return };
    let (one, two) = (mounted.path(""), mounted.second());
    let (mut removed, mut all_made, mut both) = (0, 0, 0);
    for round in 0..300 {
        let [d, x] = [format!("d{round}"), format!("d{round}/x")];
        fs::create_dir(one.join(&d)).unwrap();
        fs::metadata(two.join(&d)).unwrap();
        let [gone, made] = std::thread::scope(|scope| {
            let made = scope.spawn(|| fs::write(two.join(&x), "").is_ok());
            let gone = fs::remove_dir(one.join(&d));
            if let Err(error) = &gone {
                assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty, "{error}");
            }
            [gone.is_ok(), made.join().unwrap()]
        });
        removed += usize::from(gone);
        all_made += usize::from(made);
        both += usize::from(gone && made);
        let _ = fs::remove_file(one.join(&x));
        let _ = fs::remove_dir(one.join(&d));
    }
    assert_eq!(both, 0, "of {removed} that were removed");
    assert!(removed > 1 && all_made > 1, "{removed} removed, {all_made} made");
}

#[test]
fn a_symbolic_link_has_its_text_as_soon_as_it_is_there() {
    let Some(mounted) = Mounted::new() else { return };
    let (one, client) = (mounted.path("l"), mounted.client());
    let (mut seen, mut empty) = (0, 0);
    let look = |_| {
        if let Ok(client::Found::Volume(facts)) = client.file_facts("l") {
            seen += 1;
            empty += usize::from(facts.length_bytes != Bytes::new(15));
        }
    };
    beside(2_000, look, || {
        let _ = symlink("some/where/else", &one);
        let _ = fs::remove_file(&one);
    });
    assert!(seen > 10, "{seen}");
    assert_eq!(empty, 0, "of {seen}");
    symlink("here", &one).unwrap();
    assert!(symlink("there", &one).is_err());
    assert_eq!(fs::read_link(&one).unwrap(), Path::new("here"));
}

/// For a second its calls went to whatever had the directory's old name.
#[test]
fn a_program_works_in_its_directory_when_another_door_has_renamed_it() {
    use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
    let Some(mounted) = Mounted::new() else { return };
    let (one, two) = (mounted.path(""), mounted.second());
    fs::create_dir(one.join("d")).unwrap();
    fs::write(one.join("d/mine"), "mine").unwrap();
    let directory = File::open(one.join("d")).unwrap();
    let opened = directory.try_clone().unwrap();
    let at = opened.as_fd();
    fs::rename(two.join("d"), two.join("e")).unwrap();
    fs::create_dir(two.join("d")).unwrap();
    fs::write(two.join("d/mine"), "not mine").unwrap();
    let make = OFlags::CREATE | OFlags::WRONLY;
    drop(openat(at, "new", make, Mode::RWXU).unwrap());
    mkdirat(at, "sub", Mode::RWXU).unwrap();
    renameat(at, "mine", at, "renamed").unwrap();
    unlinkat(at, "sub", AtFlags::REMOVEDIR).unwrap();
    let names = |directory: PathBuf| {
        let listed = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = listed.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(two.join("e")), ["new", "renamed"]);
    assert_eq!(names(two.join("d")), ["mine"]);
    assert_eq!(fs::read_to_string(two.join("d/mine")).unwrap(), "not mine");
    // In one that is gone nothing is, and nothing is made.
    for name in ["e/new", "e/renamed"] {
        fs::remove_file(two.join(name)).unwrap();
    }
    fs::remove_dir(two.join("e")).unwrap();
    assert!(openat(at, "later", make, Mode::RWXU).is_err());
    let left: Vec<_> = rustix::fs::Dir::new(directory).unwrap().collect();
    assert!(
        left.iter().flatten().all(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
    );
}

/// Each to another name: to one name the kernel itself says that all is done where it has looked up one of the
/// two names before the other door's rename, and the other one after it.
#[test]
fn of_two_that_rename_one_file_one_has_done_it() {
    let Some(mounted) = Mounted::new() else { return };
    let (one, two) = (mounted.path(""), mounted.second());
    let mut ends = [0; 3];
    for round in 0..200 {
        let from = format!("from{round}");
        fs::write(one.join(&from), "").unwrap();
        let rename = |door: &PathBuf, name: &str| {
            usize::from(fs::rename(door.join(&from), door.join(format!("{name}{round}"))).is_ok())
        };
        let done = std::thread::scope(|scope| {
            let other = scope.spawn(|| rename(&two, "two"));
            rename(&one, "one") + other.join().unwrap()
        });
        ends[done] += 1;
    }
    assert_eq!(ends, [0, 200, 0], "done by nobody, by one, by both");
}

/// The kernel took the directory that it knew by this name for the one that was removed, and showed it
/// empty from then on, whatever it is called now.
#[test]
fn a_directory_stays_whole_where_another_one_that_has_got_its_name_is_removed() {
    let Some(mounted) = Mounted::new() else { return };
    let (one, two, client) = (mounted.path(""), mounted.second(), mounted.client());
    for round in 0..5 {
        let [x, y] = ["x", "y"].map(|name| format!("{name}{round}"));
        fs::create_dir(one.join(&x)).unwrap();
        fs::write(one.join(&x).join("mine"), "mine").unwrap();
        let opened = File::open(one.join(&x)).unwrap();
        fs::rename(two.join(&x), two.join(&y)).unwrap();
        fs::create_dir(two.join(&x)).unwrap();
        fs::remove_dir(one.join(&x)).unwrap();
        assert!(client.file_facts(&x).is_err(), "it is gone");
        fs::write(one.join(&y).join("more"), "more").unwrap();
        assert_eq!(fs::read_dir(one.join(&y)).unwrap().count(), 2);
        drop(opened);
    }
}

/// The name is there all the time, and what is done by it is done to the one that has it.
#[test]
fn a_name_that_is_replaced_all_the_time_is_always_there() {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
    let Some(mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let now = Timestamps { last_access: now, last_modification: now };
    fs::write(&path, "f").unwrap();
    let mut failed = Vec::new();
    let mut change = |round| {
        let ended = match round % 5 {
            0 => fs::metadata(&path).map(drop),
            1 => fs::set_permissions(&path, fs::Permissions::from_mode(0o640)),
            2 => File::open(&path).and_then(|mut file| file.read_to_end(&mut Vec::new())).map(drop),
            3 => OpenOptions::new().write(true).truncate(true).open(&path).map(drop),
            _ => utimensat(CWD, &path, &now, AtFlags::empty()).map_err(Into::into),
        };
        failed.extend(ended.err().map(|error| (round, error)));
    };
    // Several of them, so that it is replaced more than once within one call.
    let replaced = |number: usize| {
        let new = mounted.path(&format!("new{number}"));
        let _ = fs::write(&new, "new");
        let _ = fs::rename(&new, &path);
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (is_over, replaced) = (&is_over, &replaced);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    replaced(number);
                }
            });
        }
        (0..4_000).for_each(&mut change);
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(failed.is_empty(), "{failed:?}");
}

/// With the daemon goes that the file was removed, and nobody would remove it again before the next mount.
#[test]
fn what_was_removed_while_it_was_open_goes_also_where_the_daemon_is_killed() {
    let Some(mut mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    fs::write(&path, [7; 5_000]).unwrap();
    let kept =
        OpenOptions::new().read(true).write(true).create_new(true).open(mounted.path("kept"));
    let kept = kept.unwrap();
    kept.write_all_at(b"kept", 0).unwrap();
    fs::remove_file(mounted.path("kept")).unwrap();
    let file = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    File::open(mounted.path("")).unwrap().sync_all().unwrap();
    let hidden = |mounted: &Mounted| {
        let client = mounted.client();
        client.entries(client::control::REMOVED_DIRECTORY, "", 1000).unwrap().len()
    };
    assert_eq!(hidden(&mounted), 2);
    drop(file);
    mounted.kill_daemon();
    // Any close of a file.
    let becomes = |count| {
        (0..500).any(|_| {
            fs::write(mounted.path("other"), "").unwrap();
            std::thread::sleep(Duration::from_millis(10));
            hidden(&mounted) == count
        })
    };
    assert!(becomes(1), "{} are left", hidden(&mounted));
    let mut bytes = [0; 4];
    kept.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"kept", "it is open");
    drop(kept);
    assert!(becomes(0), "{} are left", hidden(&mounted));
}
