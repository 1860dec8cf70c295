//! A pool that is full, of bytes, of names, or of both: what only frees something works, and what `df`
//! promises is there.

use super::*;
use client::control::{FileKind, Placement};

/// How many files there are, and how many more there may be.
fn files(mounted: &Mounted) -> [u64; 2] {
    let said = mounted.shell("stat -f -c '%c %d' .");
    let numbers: Vec<u64> = said.split_whitespace().map(|text| text.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

fn is_full(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(libc_number("ENOSPC"))
}

/// Makes empty files until there is no room for another one. Gives how many.
fn fill_with_names(mounted: &Mounted, prefix: &str) -> usize {
    for number in 0.. {
        if let Err(error) = File::create(mounted.path(&format!("{prefix}{number}"))) {
            assert!(is_full(&error), "{error}");
            return number;
        }
    }
    unreachable!("a pool has an end")
}

/// Writes until there is no room.
fn fill_with_bytes(mounted: &Mounted, name: &str) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let file = options.open(mounted.path(name)).unwrap();
    let bytes = vec![7; 1 << 20];
    for at in 0.. {
        if let Err(error) = file.write_all_at(&bytes, at << 20) {
            assert!(is_full(&error), "{error}");
            return file;
        }
    }
    unreachable!("a pool has an end")
}

/// A file that was open could not be removed: it had to get another name, for which there was no room.
/// Nor could one from a directory that no volume stood for.
#[test]
fn what_only_frees_something_works_on_a_pool_that_is_full() {
    let Some(mounted) = Mounted::of("64MiB") else { return };
    let client = mounted.client();
    client.volume_create(&VolumeCreate::new("given/away/open", Bytes::MIB)).unwrap();
    client.volume_create(&VolumeCreate::new("given/away/closed", Bytes::MIB)).unwrap();
    client.volume_create(&VolumeCreate::new("given/dir/x", Bytes::MIB)).unwrap();
    let placement = Placement { thin: true, ..Placement::default() };
    let thin = VolumeCreate { placement, ..VolumeCreate::new("thin", Bytes::mib(8)) };
    client.volume_create(&thin).unwrap();
    let thin = OpenOptions::new().write(true).open(mounted.path("thin")).unwrap();
    thin.write_all_at(b"x", 7 << 20).unwrap();
    fs::create_dir(mounted.path("empty")).unwrap();
    fs::write(mounted.path("target"), "x").unwrap();
    fs::write(mounted.path("source"), "x").unwrap();
    let big = fill_with_bytes(&mounted, "big");
    // Long ones first, which are fewer.
    let long = format!("{}-", "x".repeat(200));
    let made = fill_with_names(&mounted, &long) + fill_with_names(&mounted, "n");
    assert!(made > 500, "{made}");
    assert_eq!(files(&mounted)[1], 0);
    let _ = fs::metadata(mounted.path("given/away/open")).unwrap();
    let given = File::open(mounted.path("given/away/open")).unwrap();
    // Short names, so that those which the files are to get are longer.
    let short: Vec<PathBuf> = (0..50).map(|number| mounted.path(&format!("s{number}"))).collect();
    for (number, path) in short.iter().enumerate() {
        fs::remove_file(mounted.path(&format!("{long}{number}"))).unwrap();
        File::create(path).unwrap();
    }
    fill_with_names(&mounted, "again");
    let opened: Vec<File> = short.iter().map(|path| File::open(path).unwrap()).collect();
    short.iter().for_each(|path| fs::remove_file(path).unwrap());
    fs::remove_file(mounted.path("given/away/open")).unwrap();
    fs::remove_file(mounted.path("given/away/closed")).unwrap();
    fs::remove_file(mounted.path("given/dir/x")).unwrap();
    fs::rename(mounted.path("source"), mounted.path("target")).unwrap();
    fs::remove_dir(mounted.path("empty")).unwrap();
    mounted.shell("fallocate --punch-hole --keep-size -o 1000 -l 3000000 big");
    mounted.shell("fallocate --punch-hole --keep-size -o 0 -l 7000000 thin");
    let taken = client.volume("thin").unwrap().taken_bytes;
    assert_eq!(taken, Some(Bytes::MIB), "what reads as zeros takes no place");
    assert!(given.metadata().unwrap().nlink() == 0 && opened[49].metadata().unwrap().nlink() == 0);
    drop((opened, given));
    big.set_len(3 << 20).unwrap();
    // What was given back is there at once.
    fs::write(mounted.path("target"), vec![7; 5 << 20]).unwrap();
    fs::remove_file(mounted.path("target")).unwrap();
    big.set_len(0).unwrap();
    drop((big, thin));
    mounted.shell("rm -rf given; rm -f n* again* x* big thin");
    assert_eq!(fs::read_dir(mounted.path("")).unwrap().count(), 0);
    let are_gone = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        client.volumes().unwrap().is_empty()
    });
    assert!(are_gone, "{:?}", client.volumes().unwrap().len());
}

/// Some 3,000 files could be made where 8,182 were promised.
#[test]
fn as_many_files_can_be_made_as_are_promised() {
    let Some(mounted) = Mounted::of("1GiB") else { return };
    let client = mounted.client();
    // Of which each takes a MiB: less than there is space for.
    for number in 0..800 {
        let create = VolumeCreate {
            kind: FileKind::Directory,
            ..VolumeCreate::new(format!("d{number}-{}", "x".repeat(240)), Bytes::ZERO)
        };
        client.create_volume(&create, client::Durable::WithNextSync).unwrap();
    }
    let [all, free] = files(&mounted);
    assert_eq!(all - free, 800, "so many are there");
    assert!((100..900).contains(&free), "{free}");
    let name = |number| format!("{number:0>64}");
    for number in 0..free {
        let size = Bytes::MIB;
        client
            .create_volume(&VolumeCreate::new(name(number), size), client::Durable::WithNextSync)
            .unwrap_or_else(|error| panic!("{number} of {free}: {error}"));
    }
    let more = fill_with_names(&mounted, "more");
    assert!(more < 100, "{more} more than the {free} that were promised");
}

/// It was full until the next commit, a second later.
#[test]
fn what_a_removed_file_had_can_be_written_at_once() {
    let Some(mounted) = Mounted::of("64MiB") else { return };
    for round in 0..20 {
        drop(fill_with_bytes(&mounted, "big"));
        fs::remove_file(mounted.path("big")).unwrap();
        let small = mounted.path(&format!("small{round}"));
        fs::write(&small, vec![1; 20 << 20]).unwrap_or_else(|error| panic!("{round}: {error}"));
        fs::rename(small, mounted.path("small")).unwrap();
    }
}

/// `du` told the limit of a thin volume, as if all of it were taken.
#[test]
fn the_space_of_a_thin_file_is_what_it_has_taken() {
    let Some(mounted) = Mounted::of("64MiB") else { return };
    let client = mounted.client();
    let placement = Placement { thin: true, ..Placement::default() };
    let thin = VolumeCreate { placement, ..VolumeCreate::new("thin", Bytes::mib(1024)) };
    client.volume_create(&thin).unwrap();
    let space = || fs::metadata(mounted.path("thin")).unwrap().blocks() * 512;
    let mut written = client.best_effort("thin").unwrap();
    written.write_at(Bytes::ZERO, &[7; 100_000]).unwrap();
    written.sync().unwrap();
    let taken = client.volume("thin").unwrap().taken_bytes.unwrap();
    assert!(taken >= Bytes::MIB && taken < Bytes::mib(64), "{taken}");
    assert_eq!(space(), taken.get());
}
