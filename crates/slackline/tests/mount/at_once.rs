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

/// Writes its pieces, and reads each back at once: how many it did not find.
fn missed(file: &File, thread: usize, rounds: impl Iterator<Item = usize>) -> usize {
    let written = [thread as u8 + 1; PIECE];
    let is_missed = |round: &usize| {
        let mut read = [0; PIECE];
        file.write_all_at(&written, place(thread, *round)).unwrap();
        let found = file.read_exact_at(&mut read, place(thread, *round));
        found.is_err() || read != written
    };
    rounds.filter(is_missed).count()
}

/// So many pieces of each thread are missed.
fn missed_by_all(path: &Path, rounds: usize, meanwhile: impl Fn() + Sync) -> usize {
    let open = |_| OpenOptions::new().read(true).write(true).open(path).unwrap();
    let files: Vec<File> = (0..THREADS).map(open).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                meanwhile();
            }
        });
        let work = |(thread, file)| scope.spawn(move || missed(file, thread, 0..rounds));
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
    assert_eq!(missed_by_all(&path, 60, std::thread::yield_now), 0, "pieces were missed");
    let bytes = fs::read(&path).unwrap();
    let pieces = (0..THREADS * 60).flat_map(|at| [(at % THREADS) as u8 + 1; PIECE]);
    assert!(bytes.iter().copied().eq(pieces), "of {} bytes some are others", bytes.len());
}

#[test]
fn each_finds_what_it_wrote_while_others_open_the_file() {
    let Some(mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    fs::write(&path, vec![0; THREADS * PIECE * 150]).unwrap();
    let missed = missed_by_all(&path, 150, || drop(fs::read(&path).unwrap()));
    assert_eq!(missed, 0, "pieces were missed");
}
