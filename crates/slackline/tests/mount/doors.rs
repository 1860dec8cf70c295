//! What one door does to a file or a directory while another one works on it.

use super::*;
use client::control::{Contract, FileKind};
use client::{Durable, Replace};
use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, fallocate, mkdirat, openat, renameat};
use std::os::fd::AsFd;
use units::Rate;

fn directory(mounted: &Mounted, name: &str) -> File {
    File::open(mounted.path(name)).unwrap()
}

/// They went to whatever had the directory's old name by then.
#[test]
fn a_directory_that_no_volume_stands_for_is_the_same_when_another_door_has_renamed_it() {
    let Some(mounted) = Mounted::new() else { return };
    let client = mounted.client();
    let make = |name: &str| {
        client.volume_create(&VolumeCreate::new(name, Bytes::MIB)).unwrap();
    };
    let rename = |from: &str, to: &str| {
        client.volume_rename(from, to, Replace::Nothing, Durable::Now).unwrap();
    };
    make("a/b/mine");
    let [a, b] = [directory(&mounted, "a"), directory(&mounted, "a/b")];
    let (write, all) = (OFlags::CREATE | OFlags::WRONLY, Mode::RWXU);
    rename("a", "c");
    make("a/b/not mine");
    drop(openat(&b, "first", write, all).unwrap());
    mkdirat(&a, "second", all).unwrap();
    renameat(&b, "mine", &a, "third").unwrap();
    let names = |name: &str| {
        let entries = client.all_entries(name).unwrap();
        entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("c"), names("c/b")),
        (vec!["b".into(), "second".into(), "third".into()], vec!["first".into()])
    );
    assert_eq!((names("a"), names("a/b")), (vec!["b".to_owned()], vec!["not mine".to_owned()]));
    let listed = rustix::fs::Dir::read_from(&b).unwrap().flatten();
    assert_eq!(listed.filter(|entry| entry.file_name().to_bytes() == b"first").count(), 1);
    // By its path it is another one now.
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(fs::metadata(mounted.path("a/b/not mine")).is_ok());
    assert!(fs::metadata(mounted.path("c/b/first")).is_ok());
    // Another one comes to its place: then it is gone.
    rename("c", "e");
    rename("a", "c");
    drop(openat(&b, "fourth", write, all).unwrap());
    assert_eq!(names("e/b"), ["first", "fourth"]);
    assert_eq!(names("c/b"), ["not mine"]);
}

/// The new daemon does not know what was renamed before.
#[test]
fn a_directory_of_an_earlier_daemon_is_looked_for_again_and_never_taken_for_another() {
    let Some(mut mounted) = Mounted::new() else { return };
    let client = mounted.client();
    let make = |name: &str| {
        client.volume_create(&VolumeCreate::new(name, Bytes::MIB)).unwrap();
    };
    make("a/b/x");
    let b = directory(&mounted, "a/b");
    client.volume_rename("a", "c", Replace::Nothing, Durable::Now).unwrap();
    mounted.kill_daemon();
    make("a/b/other");
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(fs::metadata(mounted.path("a/b/other")).is_ok());
    assert!(fs::metadata(mounted.path("c/b/x")).is_ok());
    let write = OFlags::CREATE | OFlags::WRONLY;
    let stale = openat(&b, "new", write, Mode::RWXU).unwrap_err().raw_os_error();
    assert_eq!(stale, libc_number("ESTALE"));
    assert_eq!(client.all_entries("a/b").unwrap().len(), 1);
    assert_eq!(client.all_entries("c/b").unwrap().len(), 1);
    fs::write(mounted.path("c/b/new"), "x").unwrap();
}

/// The kernel sees that itself, but where another door works on it meanwhile.
#[test]
fn an_entry_that_is_spelled_in_two_ways_is_renamed_to_itself() {
    let Some(mounted) = Mounted::new() else { return };
    let client = mounted.client();
    client.volume_create(&VolumeCreate::new("d/x", Bytes::MIB)).unwrap();
    let before = directory(&mounted, "d");
    let kind = FileKind::Directory;
    client.volume_create(&VolumeCreate { kind, ..VolumeCreate::new("d", Bytes::ZERO) }).unwrap();
    // As long as the kernel may answer from what it knows.
    std::thread::sleep(Duration::from_millis(1_100));
    renameat(before.as_fd(), "x", CWD, mounted.path("d/x")).unwrap();
    assert!(client.file_facts("d/x").is_ok());
}

/// Who closed the file gave it back with what he had reserved ahead.
#[test]
fn space_that_is_asked_for_stays_also_where_another_mount_had_reserved_it_ahead() {
    let Some(mounted) = Mounted::new() else { return };
    let (two, client) = (mounted.second(), mounted.client());
    let writer = File::create(mounted.path("f")).unwrap();
    for at in 0..14 {
        writer.write_all_at(&[7; 1 << 20], at << 20).unwrap();
    }
    let ahead = client.volume("f").unwrap().size_bytes;
    assert!(ahead > Bytes::mib(15), "{ahead}");
    mounted.shell(&format!("fallocate --keep-size -l 15MiB {}", two.join("f").display()));
    assert_eq!(client.volume("f").unwrap().size_bytes, ahead);
    drop(writer);
    // The kernel tells the mount of the close in its own time.
    let becomes = |size| {
        (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            client.volume("f").unwrap().size_bytes == size
        })
    };
    assert!(becomes(Bytes::mib(15)), "{}", client.volume("f").unwrap().size_bytes);
    // And what nobody else has asked for is given back.
    let writer = OpenOptions::new().write(true).open(mounted.path("f")).unwrap();
    writer.write_all_at(&[7; 1 << 20], 15 << 20).unwrap();
    assert!(client.volume("f").unwrap().size_bytes > Bytes::mib(16));
    drop(writer);
    assert!(becomes(Bytes::mib(16)), "{}", client.volume("f").unwrap().size_bytes);
    // Also where he has made it longer himself: at once then.
    let writer = OpenOptions::new().write(true).open(mounted.path("f")).unwrap();
    writer.write_all_at(&[7; 1 << 20], 16 << 20).unwrap();
    let ahead = client.volume("f").unwrap().size_bytes;
    assert!(ahead > Bytes::mib(18), "{ahead}");
    writer.set_len(18 << 20).unwrap();
    assert_eq!(client.volume("f").unwrap().size_bytes, Bytes::mib(18));
}

/// It was answered with success, and the bytes stayed.
#[test]
fn a_hole_in_a_ring_is_refused() {
    let Some(mounted) = Mounted::new() else { return };
    let client = mounted.client();
    let ring = VolumeCreate { ring: true, ..VolumeCreate::new("ring", Bytes::mib(64)) };
    client.volume_create(&ring).unwrap();
    let (rate, block) = (Rate::per_second(1_000_000), Bytes::kib(64));
    let contract = Contract { rate_bytes_per_second: rate, block_bytes: block, burst_bytes: block };
    let mut writer = client.writer("ring", contract, Bytes::ZERO).unwrap();
    writer.write_all(&[7; 100_000]).unwrap();
    writer.close().unwrap();
    let file = OpenOptions::new().read(true).write(true).open(mounted.path("ring")).unwrap();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(&file, punch, 0, 4096), Err(rustix::io::Errno::INVAL));
    let mut byte = [0];
    file.read_exact_at(&mut byte, 9).unwrap();
    assert_eq!(byte, [7]);
}

/// There were zeros in the midst of what was written.
#[test]
fn a_write_and_a_cut_by_two_mounts_come_one_after_the_other() {
    let Some(mounted) = Mounted::new() else { return };
    let two = mounted.second();
    let path = mounted.path("f");
    let open = || OpenOptions::new().read(true).write(true).create(true).clone();
    let direct = libc_number("O_DIRECT");
    let writer = open().custom_flags(direct).truncate(true).open(&path).unwrap();
    let cutter = open().open(two.join("f")).unwrap();
    let (mut cut, mut whole) = (0, 0);
    // On whole pages of memory, so that the kernel makes one request of it.
    let mut memory = vec![0; (1 << 20) + 4096];
    let start = memory.as_ptr().align_offset(4096);
    for round in 1..=200u8 {
        let bytes = &mut memory[start..][..1 << 20];
        bytes.fill(round);
        let bytes = &*bytes;
        std::thread::scope(|scope| {
            scope.spawn(|| writer.write_all_at(bytes, 1000).unwrap());
            cutter.set_len(1_000_000 + u64::from(round) * 200).unwrap();
        });
        let found = fs::read(&path).unwrap();
        let is_mixed = found[1000..].iter().any(|&byte| byte != round);
        assert!(!is_mixed, "round {round}: of {} bytes", found.len());
        whole += usize::from(found.len() == 1000 + (1 << 20));
        cut += usize::from(found.len() != 1000 + (1 << 20));
    }
    assert!(cut + whole == 200, "{cut} cut, {whole} whole");
}

#[test]
fn a_name_that_is_too_long_is_said_to_be_so_whoever_asks() {
    let Some(mounted) = Mounted::new() else { return };
    let client = mounted.client();
    let long = "x".repeat(250);
    fs::create_dir(mounted.path("directory")).unwrap();
    let number = client.volume("directory").unwrap().number;
    for name in ["x".repeat(256), format!("directory/{long}"), format!("/{number}/{long}")] {
        let refused = client.volume_create(&VolumeCreate::new(&*name, Bytes::MIB)).unwrap_err();
        assert_eq!(refused.errno(), libc_number("ENAMETOOLONG"), "{refused}");
        client.volume_create(&VolumeCreate::new("v", Bytes::MIB)).unwrap();
        let refused = client.volume_rename("v", &name, Replace::Nothing, Durable::Now);
        assert_eq!(refused.unwrap_err().errno(), libc_number("ENAMETOOLONG"));
        client.volume_delete("v").unwrap();
    }
}

/// On any file system they do; here the directory could not even be looked at.
#[test]
fn who_stands_in_a_directory_that_is_removed_sees_it_empty() {
    let Some(mounted) = Mounted::new() else { return };
    for replaced in [false, true] {
        fs::create_dir(mounted.path("d")).unwrap();
        let d = directory(&mounted, "d");
        match replaced {
            true => {
                fs::create_dir(mounted.path("other")).unwrap();
                fs::rename(mounted.path("other"), mounted.path("d")).unwrap();
            }
            false => fs::remove_dir(mounted.path("d")).unwrap(),
        }
        std::thread::sleep(Duration::from_millis(1_100));
        let known = d.metadata().unwrap();
        assert!(known.is_dir() && known.nlink() == 0, "{known:?}");
        d.set_permissions(fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(d.metadata().unwrap().mode() & 0o777, 0o700);
        let listed = rustix::fs::Dir::read_from(&d).unwrap().flatten();
        assert_eq!(listed.filter(|entry| entry.file_name().to_bytes()[0] != b'.').count(), 0);
        let made = openat(&d, "f", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU);
        assert_eq!(made.unwrap_err().raw_os_error(), libc_number("ENOENT"));
    }
}
