//! Programs that use one file at the same time: each finds what it wrote itself, whatever the
//! kernel's cache forgets and fetches meanwhile.

use super::*;
use std::sync::atomic::AtomicBool;

/// What each of the threads writes in one call, and where: their pieces lie side by side, and
/// share the pages of the cache.
const PIECE: usize = 1000;
const THREADS: usize = 8;

fn place(thread: usize, round: usize) -> u64 {
    ((round * THREADS + thread) * PIECE) as u64
}

/// What a thread writes in a round.
fn written(thread: usize, round: usize) -> [u8; PIECE] {
    [((round * THREADS + thread) % 251) as u8 + 1; PIECE]
}

/// Writes its pieces, each round in the next of so many places, and reads each back at once: how
/// many it did not find.
fn missed(file: &File, thread: usize, places: usize, rounds: usize) -> usize {
    let is_missed = |round: &usize| {
        let (at, written) = (place(thread, round % places), written(thread, *round));
        let mut read = [0; PIECE];
        file.write_all_at(&written, at).unwrap();
        file.read_exact_at(&mut read, at).is_err() || read != written
    };
    (0..rounds).filter(is_missed).count()
}

/// How many pieces are missed, while three more threads do something else.
fn missed_by_all(path: &Path, places: usize, rounds: usize, meanwhile: impl Fn() + Sync) -> usize {
    let open = |_| OpenOptions::new().read(true).write(true).open(path).unwrap();
    let files: Vec<File> = (0..THREADS).map(open).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = || {
            while !is_over.load(Ordering::Relaxed) {
                meanwhile();
            }
        };
        (0..3).for_each(|_| drop(scope.spawn(others)));
        let work = |(thread, file)| scope.spawn(move || missed(file, thread, places, rounds));
        let all: Vec<_> = files.iter().enumerate().map(work).collect();
        let all = all.into_iter().map(|thread| thread.join().unwrap()).sum();
        is_over.store(true, Ordering::Relaxed);
        all
    })
}

#[test]
fn each_finds_what_it_wrote_to_a_file_that_all_let_grow() {
    let Some(mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    File::create(&path).unwrap();
    assert_eq!(missed_by_all(&path, 60, 60, std::thread::yield_now), 0, "pieces were missed");
    let bytes = fs::read(&path).unwrap();
    let pieces = (0..THREADS * 60).flat_map(|at| written(at % THREADS, at / THREADS));
    assert!(bytes.iter().copied().eq(pieces), "of {} bytes some are others", bytes.len());
}

/// The pieces of some rounds only lie in other places, so that pages are read and written all the
/// time: what the kernel's cache has of a page must never be older than a write that was answered.
#[test]
fn each_finds_what_it_wrote_while_others_open_the_file() {
    const PLACES: usize = 20;
    let Some(mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    fs::write(&path, vec![0; THREADS * PIECE * PLACES]).unwrap();
    let missed = missed_by_all(&path, PLACES, 600, || drop(fs::read(&path).unwrap()));
    assert_eq!(missed, 0, "pieces were missed");
}

/// Another door makes a file of that name all the time, and the kernel, which knows of none, has one made:
/// it was given the other one as if that were new, with its bytes and whoever may read it.
#[test]
fn a_file_that_is_opened_to_be_empty_is_empty_whoever_makes_one_of_its_name() {
    let Some(mounted) = Mounted::new() else { return };
    let (path, other) = (mounted.path("name"), mounted.second());
    let is_over = AtomicBool::new(false);
    let (mut opened, mut found) = (0, Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = fs::write(other.join("other"), [7; 9_000]);
                let _ = fs::rename(other.join("other"), other.join("name"));
            }
        });
        for _ in 0..2_000 {
            let _ = fs::remove_file(&path);
            // It may be removed, or replaced, in between.
            let file =
                OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
            let Some(facts) = file.ok().and_then(|file| file.metadata().ok()) else { continue };
            opened += 1;
            found.extend(Some(facts.len()).filter(|length| *length > 0));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(opened > 1_000 && found.is_empty(), "{opened} opened, {found:?} in them");
}

/// The facts of a listing were as old as the opened directory, and set files back to them: what was appended
/// meanwhile was written over.
#[test]
fn a_listing_does_not_set_files_back() {
    let Some(mounted) = Mounted::new() else { return };
    fs::create_dir(mounted.path("d")).unwrap();
    let names: Vec<String> = (0..300).map(|at| format!("d/{at:03}")).collect();
    for name in &names {
        fs::write(mounted.path(name), "").unwrap();
    }
    let log = |name: &String| {
        let opened = OpenOptions::new().append(true).open(mounted.path(name));
        std::io::Write::write_all(&mut opened.unwrap(), b"line\n").unwrap();
    };
    // It is opened, and what was appended since is not in what was known then.
    let mut list = fs::read_dir(mounted.path("d")).unwrap();
    names.iter().for_each(log);
    let mut seen: Vec<_> = list.by_ref().map(|entry| entry.unwrap().file_name()).collect();
    names.iter().for_each(log);
    seen.sort();
    assert!(seen.iter().map(|name| format!("d/{}", name.display())).eq(names.iter().cloned()));
    for name in &names {
        let text = fs::read_to_string(mounted.path(name)).unwrap();
        assert_eq!(text, "line\nline\n", "{name}");
    }
    // A list that is read once more has what came since.
    let directory = File::open(mounted.path("d")).unwrap();
    let count = || rustix::fs::Dir::read_from(&directory).unwrap().count();
    let before = count();
    fs::write(mounted.path("d/new"), "").unwrap();
    assert_eq!(count(), before + 1);
}

/// Both looked whether there is one of that name, and both had theirs put there.
#[test]
fn of_two_that_rename_to_a_new_name_one_is_refused() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let Some(mounted) = Mounted::new() else { return };
    let (one, two) = (mounted.path(""), mounted.second());
    let mut both = 0;
    for _ in 0..200 {
        for (door, name) in [(&one, "a"), (&two, "b")] {
            fs::write(door.join(name), name).unwrap();
        }
        let rename = |door: &PathBuf, name: &str| {
            let flags = RenameFlags::NOREPLACE;
            renameat_with(CWD, door.join(name), CWD, door.join("new"), flags).is_ok()
        };
        let ends = std::thread::scope(|scope| {
            let other = scope.spawn(|| rename(&two, "b"));
            [rename(&one, "a"), other.join().unwrap()]
        });
        both += usize::from(ends == [true; 2]);
        let _ = fs::remove_file(one.join("new"));
        let _ = fs::remove_file(one.join("a"));
        let _ = fs::remove_file(two.join("b"));
        let _ = fs::remove_file(two.join("new"));
    }
    assert_eq!(both, 0, "of 200");
}
