//! Whole runs on ordinary files: what is written is right when it is read, through the page
//! cache and past it, in blocks that fit nothing, and one flipped bit is found and named.
//! No test looks at how long anything took.

use rwrt::{Error, Load, Outcome, Place};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tempfile::TempDir;
use units::{Bytes, Duration, Rate};

/// A folder that goes with the test, on the disk that it was built on.
fn folder() -> TempDir {
    tempfile::Builder::new().prefix("slackline-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// So fast that the host never sleeps, and nothing depends on how long it would.
fn load(folder: &Path, direct: bool, block: u64) -> Load {
    Load {
        place: Place::Files { path: folder.to_owned(), direct },
        readers: 1,
        writers: 1,
        timeshift: Some(Duration::ZERO),
        greedy_readers: 1,
        greedy_writers: 1,
        rate: Rate::per_second(1 << 40),
        block: Bytes::new(block),
        total: Bytes::new(1_234_567),
        limit: None,
        greedy_total: Bytes::mib(1),
        seed: 1,
        verify: true,
        overwrite: false,
    }
}

fn run(load: &Load) -> Result<Outcome, Error> {
    load.prepare(&|_| {})?;
    load.run(&|| {}, &|_| {})
}

/// Whether the file system of the folder takes transfers past the page cache.
fn is_direct(folder: &Path) -> bool {
    let probe = Load { writers: 1, timeshift: None, ..load(folder, true, 4096) };
    let possible = probe.prepare(&|_| {}).is_ok();
    probe.remove().unwrap();
    possible
}

#[test]
fn what_is_written_is_read_in_any_blocks_past_the_cache_and_through_it() {
    for direct in [false, true] {
        let folder = folder();
        if direct && !is_direct(folder.path()) {
            skips::not_run(format!("{} takes no direct transfers", folder.path().display()));
            continue;
        }
        for block in [4_096, 4_097, 10_000, 65_536, 99_999] {
            let load = load(folder.path(), direct, block);
            let outcome = run(&load).unwrap();
            assert_eq!(outcome.problems(), Vec::<String>::new(), "{block} {direct}");
            assert_eq!(outcome.streams.len(), 3);
            for stream in &outcome.streams {
                let checked = stream.checked.as_ref().unwrap();
                assert_eq!(checked.right(), load.total, "{} in {block}, {direct}", stream.name);
                // The first operation is in none of the samples.
                let operations = load.total.div_ceil(load.block) as usize - 1;
                assert_eq!(stream.seen.jitter.len(), operations);
            }
            let written = std::fs::metadata(folder.path().join("writer-1")).unwrap();
            assert_eq!(written.len(), load.total.get(), "no padding is left");
            load.remove().unwrap();
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "everything that was made was removed");
    }
}

#[test]
fn one_flipped_bit_is_found_and_named() {
    let folder = folder();
    let load = Load {
        writers: 0,
        timeshift: None,
        greedy_writers: 0,
        ..load(folder.path(), false, 10_000)
    };
    assert_eq!(run(&load).unwrap().problems(), Vec::<String>::new());
    for name in ["reader-1", "greedy-reader-1"] {
        let file =
            std::fs::OpenOptions::new().read(true).write(true).open(folder.path().join(name));
        let (file, mut byte) = (file.unwrap(), [0]);
        file.read_exact_at(&mut byte, 777_777).unwrap();
        file.write_all_at(&[byte[0] ^ 16], 777_777).unwrap();
    }
    // The greedy reader goes round in its file at least once where nothing else runs.
    let streams = run(&Load { greedy_readers: 0, ..load.clone() }).unwrap();
    let told = "reads reader-1: 8 bytes at offset 777776 are damaged, or were not written by rwrt";
    assert_eq!(streams.problems(), [told]);
    let greedy = run(&Load { readers: 0, ..load.clone() });
    // Alone it is the only program, and needs a file and no directory.
    let name = greedy.unwrap().problems();
    assert_eq!(name.len(), 1, "{name:?}");
    assert!(name[0].contains("777776"), "{name:?}");
}

#[test]
fn nothing_that_is_there_is_overwritten_unless_somebody_says_so() {
    let folder = folder();
    std::fs::write(folder.path().join("writer-1"), "precious").unwrap();
    let load =
        Load { readers: 0, timeshift: None, greedy_readers: 0, ..load(folder.path(), false, 4096) };
    let refused = run(&load).unwrap_err();
    assert_eq!(refused.to_string(), "writer-1 holds 8 B already");
    assert!(refused.next_step().contains("--overwrite"), "{}", refused.next_step());
    assert_eq!(std::fs::read(folder.path().join("writer-1")).unwrap(), b"precious");
    run(&Load { overwrite: true, ..load }).unwrap();
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_way_out() {
    let folder = folder();
    let good = load(folder.path(), false, 4096);
    let none =
        Load { readers: 0, writers: 0, greedy_readers: 0, greedy_writers: 0, ..good.clone() };
    let cases = [
        (Load { timeshift: None, ..none.clone() }, "ask for --readers"),
        (none, "add --writers"),
        (Load { rate: Rate::per_second(0), ..good.clone() }, "--rate"),
        (Load { block: Bytes::mib(2), ..good.clone() }, "smaller --block"),
        (Load { block: Bytes::new(1), total: Bytes::GIB, ..good.clone() }, "larger --block"),
        (
            Load { place: Place::Files { path: folder.path().join("x"), direct: false }, ..good },
            "make the directory",
        ),
    ];
    for (load, wanted) in cases {
        let refused = run(&load).unwrap_err();
        assert!(refused.next_step().contains(wanted), "{refused}: {}", refused.next_step());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "and nothing was made");
}
