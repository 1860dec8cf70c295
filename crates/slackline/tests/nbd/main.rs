//! Volumes as block devices: what is written is read, what is flushed is there after a kill,
//! and no client can hurt another; with a client of our own, and with those that people have.
#![allow(clippy::print_stdout)] // what could not be run is said

mod client;
mod many;
mod power;
#[path = "../support/mod.rs"]
mod support;

use client::{DISCONNECT, FLUSH, FUA, Nbd, READ, TRIM, WRITE, greeted};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{Scratch, noise};

const MIB: u64 = 1 << 20;
const INVALID: u32 = 22;
const NO_SPACE: u32 = 28;
const NOT_PERMITTED: u32 = 1;

fn socket(dir: &Scratch) -> PathBuf {
    dir.path("s.nbd.sock")
}

fn make(dir: &Scratch, name: &str, size: &str) {
    dir.run(&["volume", "create", name, "--size", size]).succeeded();
}

/// The same numbers in each run.
struct Random(u64);
impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// Two connections, one of them with structured replies, do what they like at any offset; a
/// copy in memory says what has to be read. What was flushed is there after a kill.
#[test]
fn a_device_is_the_bytes_that_were_written_and_flushed_ones_outlive_a_kill() {
    const SIZE: u64 = 8 * MIB;
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let mut daemon = dir.serve(&disks);
    make(&dir, "v", "8MiB");
    let mut copy = vec![0u8; SIZE as usize];
    let mut random = Random(1);
    for life in 0..3 {
        let mut connections =
            [true, false].map(|structured| Nbd::open(&socket(&dir), "v", structured).unwrap());
        for turn in 0..150 {
            let nbd = &mut connections[random.below(2) as usize];
            let longest = [100, 5000, 70_000, 3 * MIB][random.below(4) as usize];
            let len = 1 + random.below(longest);
            let offset = random.below(SIZE - len + 1);
            let range = offset as usize..(offset + len) as usize;
            match random.below(10) {
                0..4 => {
                    let bytes = noise(life * 1000 + turn, len).bytes();
                    let flags = if random.below(8) == 0 { FUA } else { 0 };
                    nbd.write(flags, offset, &bytes).unwrap();
                    copy[range].copy_from_slice(&bytes);
                }
                4 => {
                    nbd.zero(offset, len as u32).unwrap();
                    copy[range].fill(0);
                }
                5 => nbd.trim(offset, len as u32).unwrap(),
                6 if len <= MIB => {
                    let one = nbd.read_in_one(offset, len as u32).unwrap();
                    assert!(one == copy[range], "life {life}, turn {turn}: read in one");
                }
                7 if random.below(4) == 0 => nbd.flush().unwrap(),
                _ => {
                    let read = nbd.read(offset, len as u32).unwrap();
                    assert!(read == copy[range], "life {life}, turn {turn}: {offset}+{len}");
                }
            }
        }
        // On one connection, of what was written on both.
        connections[(life % 2) as usize].flush().unwrap();
        daemon.kill();
        daemon = dir.serve(&disks);
        let mut nbd = Nbd::open(&socket(&dir), "v", true).unwrap();
        let all = nbd.read(0, SIZE as u32).unwrap();
        let wrong = all.iter().zip(&copy).position(|(read, written)| read != written);
        assert_eq!(wrong, None, "life {life}: after the kill");
    }
}

/// A write with FUA is durable when it is answered, without a flush.
#[test]
fn a_write_with_fua_outlives_a_kill() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    // No commit comes by itself meanwhile.
    let daemon = dir.try_serve(&disks, &["--commit-interval", "1h"]).unwrap();
    make(&dir, "v", "4MiB");
    let bytes = noise(1, 3 * MIB / 2).bytes();
    let mut nbd = Nbd::open(&socket(&dir), "v", true).unwrap();
    nbd.write(FUA, MIB / 2 + 7, &bytes).unwrap();
    daemon.kill();
    let _daemon = dir.serve(&disks);
    let mut nbd = Nbd::open(&socket(&dir), "v", false).unwrap();
    assert!(nbd.read(MIB / 2 + 7, bytes.len() as u32).unwrap() == bytes);
}

/// A thin volume takes its space as it is written: a write for which the pool has not enough is refused, and
/// what was answered before it is there after a kill. Of a refused write there is nothing, neither where the
/// volume had space already nor where some could be had, and none of that is taken.
#[test]
fn a_full_pool_is_told_to_who_writes_a_thin_volume_and_loses_nothing_answered() {
    const BLOCK: u64 = 300_000;
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    dir.run(&["volume", "create", "v", "--size", "200MiB", "--thin"]).succeeded();
    make(&dir, "other", "150MiB");
    let mut nbd = Nbd::open(&socket(&dir), "v", true).unwrap();
    let bytes = |at: u64| noise(at, BLOCK).bytes();
    let place = |at: u64| at * BLOCK;
    let full = (0..200 * MIB / BLOCK)
        .find(|&at| match nbd.write(0, place(at), &bytes(at)) {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error, NO_SPACE, "block {at}");
                true
            }
        })
        .expect("more was written than there is");
    assert!(place(full) > 50 * MIB, "{full}");
    // The last block begins where there is space.
    let kept = place(full).next_multiple_of(MIB);
    assert!(place(full) < kept && kept < place(full + 1), "{full}: another length of blocks");
    // What it has it keeps, and changes; it gets nothing new.
    nbd.write(0, 0, &bytes(1000)).unwrap();
    assert_eq!(nbd.write(0, 150 * MIB, &[1; 4096]), Err(NO_SPACE));
    // A long one, of which all but the last 5 MiB have space, and one before space that is free.
    let long = noise(2000, 16 * MIB).bytes();
    assert_eq!(nbd.write(0, kept - 11 * MIB + 1, &long), Err(NO_SPACE));
    assert_eq!(nbd.write(FUA, kept - 11 * MIB + 1, &long), Err(NO_SPACE));
    nbd.flush().unwrap();
    daemon.kill();
    let _daemon = dir.serve(&disks);
    let mut nbd = Nbd::open(&socket(&dir), "v", true).unwrap();
    for at in 0..full {
        let wanted = bytes(if at == 0 { 1000 } else { at });
        assert!(nbd.read(place(at), BLOCK as u32).unwrap() == wanted, "block {at} of {full}");
    }
    assert!(nbd.read(place(full), BLOCK as u32).unwrap().iter().all(|&byte| byte == 0));
    assert!(nbd.read(kept, 8 * MIB as u32).unwrap().iter().all(|&byte| byte == 0));
    assert!(nbd.read(150 * MIB, 4096).unwrap() == [0; 4096]);
    // Space for less than a write needs is left to others.
    let taken = |name: &str| {
        let shown = dir.run(&["volume", "show", name, "--json"]).succeeded().json();
        shown["taken_bytes"].as_u64().unwrap()
    };
    let before = taken("v");
    assert_eq!(before, kept);
    dir.run(&["volume", "resize", "other", "147MiB", "--yes"]).succeeded();
    nbd.flush().unwrap();
    assert_eq!(nbd.write(0, kept + 7, &long[..3 * MIB as usize]), Err(NO_SPACE));
    assert_eq!(taken("v"), before);
    assert!(nbd.read(kept, 4 * MIB as u32).unwrap().iter().all(|&byte| byte == 0));
    nbd.write(FUA, kept, &long[..3 * MIB as usize]).unwrap();
    assert!(nbd.read(kept, 3 * MIB as u32).unwrap() == long[..3 * MIB as usize]);
    // With space again it goes on.
    dir.run(&["volume", "delete", "other", "--yes"]).succeeded();
    nbd.write(FUA, place(full), &bytes(full)).unwrap();
    assert!(nbd.read(place(full), BLOCK as u32).unwrap() == bytes(full));
}

/// A device stays the volume that was chosen, which gets another name, and does not touch the one
/// that has the name then.
#[test]
fn a_device_stays_its_volume_whatever_that_is_called() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "4MiB");
    let mut nbd = Nbd::open(&socket(&dir), "v", true).unwrap();
    nbd.write(0, 0, &[1; 5000]).unwrap();
    dir.run(&["volume", "rename", "v", "old"]).succeeded();
    make(&dir, "v", "4MiB");
    nbd.write(FUA, 5000, &[2; 5000]).unwrap();
    let all = nbd.read(0, 10_000).unwrap();
    assert!(all[..5000] == [1; 5000] && all[5000..] == [2; 5000]);
    let mut other = Nbd::open(&socket(&dir), "v", true).unwrap();
    assert!(other.read(0, 10_000).unwrap() == [0; 10_000]);
}

/// Forty requests are under way at once, and replies come in any order.
#[test]
fn requests_are_served_beside_each_other_and_each_reply_is_its_own() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "16MiB");
    let mut nbd = Nbd::open(&socket(&dir), "v", true).unwrap();
    let bytes = |at: u64| noise(at, 300_000).bytes();
    let begun: Vec<_> = (0..40)
        .map(|at| (at, nbd.begin(WRITE, 0, at * 400_000 + 3, 300_000, &bytes(at))))
        .collect();
    for &(_, cookie) in begun.iter().rev() {
        assert_eq!(nbd.end(cookie), Ok(vec![]));
    }
    for at in (0..40).rev() {
        assert!(nbd.read(at * 400_000 + 3, 300_000).unwrap() == bytes(at), "{at}");
    }
}

/// Hundreds of short requests of all kinds come in one piece, to disks of both kinds, with replies of
/// both kinds: each has its own, those that fail, too, and none waits for what comes later.
#[test]
fn requests_that_come_in_one_piece_have_each_its_own_reply() {
    const BLOCK: u64 = 4096;
    for (dir, is_structured) in [(Scratch::new(), false), (Scratch::in_memory(), true)] {
        let _daemon = dir.serve(&dir.make_pool(&["a"]));
        make(&dir, "v", "4MiB");
        let mut nbd = Nbd::open(&socket(&dir), "v", is_structured).unwrap();
        let (bytes, len) = (|at: u64| noise(at, BLOCK).bytes(), BLOCK as u32);
        (0..200).for_each(|at| nbd.write(0, at * BLOCK, &bytes(at)).unwrap());
        let mut all = Vec::new();
        let mut begun = Vec::new();
        let mut begin = |nbd: &mut Nbd, kind, offset, len, body: &[u8]| {
            let (cookie, bytes) = nbd.next_request(kind, 0, offset, len, body);
            all.extend(bytes);
            cookie
        };
        for at in 0..200 {
            begun.push((READ, at, begin(&mut nbd, READ, at * BLOCK, len, &[])));
            let write = begin(&mut nbd, WRITE, (at + 300) * BLOCK + 7, len, &bytes(at + 300));
            begun.push((WRITE, at, write));
            if at % 50 == 0 {
                begun.push((FLUSH, at, begin(&mut nbd, FLUSH, 0, 0, &[])));
                begun.push((TRIM, at, begin(&mut nbd, READ, 4 * MIB, len, &[])));
                // Longer than a socket's buffer is read at a time.
                let write = begin(&mut nbd, WRITE, 3 * MIB, 300_000, &noise(1, 300_000).bytes());
                begun.push((WRITE, 1000, write));
            }
        }
        let mut sends = nbd.socket.try_clone().unwrap();
        let sending = std::thread::spawn(move || sends.write_all(&all).unwrap());
        for (kind, at, cookie) in begun {
            let reply = nbd.end(cookie);
            match kind {
                READ => assert!(reply.as_ref().is_ok_and(|read| *read == bytes(at)), "{at}"),
                TRIM => assert_eq!(reply, Err(INVALID), "a read beyond the end"),
                _ => assert!(reply.is_ok(), "{kind} {at}: {reply:?}"),
            }
        }
        sending.join().unwrap();
        for at in 300..500 {
            assert!(nbd.read(at * BLOCK + 7, len).unwrap() == bytes(at), "{at}");
        }
    }
}

#[test]
fn what_was_never_written_is_a_hole_and_zeros_make_none() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "8MiB");
    let mut nbd = Nbd::open(&socket(&dir), "v", true).unwrap();
    const ALL: u32 = 8 * MIB as u32;
    assert_eq!(nbd.status(0, ALL), Ok(vec![(ALL, true)]));
    nbd.zero(0, ALL).unwrap();
    assert_eq!(nbd.status(0, ALL), Ok(vec![(ALL, true)]), "zeros are there already");
    nbd.write(0, 2 * MIB - 100, &[7; 200]).unwrap();
    let around = [(2 * MIB as u32 - 4096, true), (8192, false), (6 * MIB as u32 - 4096, true)];
    assert_eq!(nbd.status(0, ALL), Ok(around.to_vec()));
    assert_eq!(nbd.status(2 * MIB, 5000), Ok(vec![(4096, false), (904, true)]));
    nbd.zero(2 * MIB - 50, 100).unwrap();
    let read = nbd.read(2 * MIB - 101, 202).unwrap();
    let wanted = [&[0][..], &[7; 50], &[0; 100], &[7; 50], &[0]].concat();
    assert_eq!(read, wanted);
}

#[test]
fn what_cannot_be_asked_of_an_export_is_refused_and_the_connection_goes_on() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "4MiB");
    for structured in [true, false] {
        let mut nbd = Nbd::open(&socket(&dir), "v", structured).unwrap();
        nbd.write(0, 0, b"bytes").unwrap();
        assert_eq!(nbd.read(4 * MIB - 4, 5), Err(INVALID));
        assert_eq!(nbd.read(u64::MAX, 1), Err(INVALID));
        assert_eq!(nbd.read(0, 33 << 20), Err(INVALID));
        assert_eq!(nbd.write(0, 4 * MIB - 4, b"bytes"), Err(NO_SPACE));
        assert_eq!(nbd.write(0, u64::MAX - 2, b"bytes"), Err(NO_SPACE));
        assert_eq!(nbd.zero(1, 4 * MIB as u32), Err(NO_SPACE));
        assert_eq!(nbd.write(1 << 5, 0, b"bytes"), Err(INVALID), "an unknown flag");
        assert_eq!(nbd.read(0, 5).as_deref(), Ok(&b"bytes"[..]));
        assert_eq!(nbd.read(0, 0).as_deref(), Ok(&[][..]));
        assert_eq!(nbd.write(0, 0, &[]), Ok(()));
        let mut old = Nbd::open(&socket(&dir), "v@ro", structured).unwrap();
        assert_eq!(old.write(0, 0, b"other"), Err(NOT_PERMITTED));
        assert_eq!(old.zero(0, 1), Err(NOT_PERMITTED));
        assert_eq!(old.read(0, 5).as_deref(), Ok(&b"bytes"[..]));
    }
    const UNKNOWN: u32 = 0x8000_0006;
    for name in ["w", "v@", "v@rw", "@", "../v", "v@ro@x"] {
        assert_eq!(Nbd::open(&socket(&dir), name, false).err(), Some(UNKNOWN), "{name}");
    }
    // No name, where the user owns one volume only, means that.
    assert!(Nbd::open(&socket(&dir), "", false).is_ok());
    make(&dir, "w", "1MiB");
    assert_eq!(Nbd::open(&socket(&dir), "", false).err(), Some(UNKNOWN));
}

/// The address of a volume `v@interactive` was that of `v`, and what was written there went to `v`.
#[test]
fn a_volume_whose_name_ends_as_an_option_has_an_address_of_its_own() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "4MiB");
    make(&dir, "v@interactive", "8MiB");
    let mut nbd = Nbd::open(&socket(&dir), "v@interactive", true).unwrap();
    nbd.write(0, 6 * MIB, b"bytes").unwrap();
    let mut other = Nbd::open(&socket(&dir), "v@interactive@ro", true).unwrap();
    assert_eq!(other.write(0, 0, b"other"), Err(NOT_PERMITTED));
    assert_eq!(other.read(6 * MIB, 5).as_deref(), Ok(&b"bytes"[..]));
    // The command names by its number what its name would not tell from another.
    for (args, is_larger) in [
        (&["v@interactive"][..], true),
        (&["v@interactive", "--read-only"], true),
        (&["v", "--priority", "interactive"], false),
        (&["v", "--priority", "background"], false),
    ] {
        let told = dir.run(&[&["nbd"], args, &["--json"]].concat()).succeeded().json();
        let mut nbd = Nbd::open(&socket(&dir), told["export"].as_str().unwrap(), true).unwrap();
        assert_eq!(nbd.read(6 * MIB, 5).is_ok(), is_larger, "{told}");
        let written = nbd.write(0, 0, b"bytes");
        assert_eq!(written == Err(NOT_PERMITTED), args.contains(&"--read-only"), "{told}");
    }
}

/// An export is the volume that was there when it was chosen: what comes later under its name,
/// or what is left of it, is never told as zeros, and nothing is written there.
#[test]
fn a_volume_that_is_gone_cut_or_made_anew_is_an_error_and_no_zeros() {
    const GONE: u32 = 5;
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    for structured in [true, false] {
        make(&dir, "v", "8MiB");
        let mut nbd = Nbd::open(&socket(&dir), "v", structured).unwrap();
        nbd.write(0, 0, &noise(1, MIB).bytes()).unwrap();
        dir.run(&["volume", "resize", "v", "4MiB", "--yes"]).succeeded();
        for (offset, len) in [(4 * MIB, MIB), (3 * MIB, 2 * MIB), (5 * MIB, 100)] {
            assert!(nbd.read(offset, len as u32).is_err(), "{offset}+{len}, beyond the cut");
            assert!(nbd.zero(offset, len as u32).is_err());
        }
        assert!(nbd.read(0, MIB as u32).unwrap() == noise(1, MIB).bytes());
        dir.run(&["volume", "delete", "v", "--yes"]).succeeded();
        let gone = |nbd: &mut Nbd, why: &str| {
            for len in [100, 2 * MIB as u32] {
                assert_eq!(nbd.read(MIB, len), Err(GONE), "{why}");
                assert_eq!(nbd.zero(MIB, len), Err(GONE), "{why}");
            }
            assert_eq!(nbd.write(0, 0, b"old bytes"), Err(GONE), "{why}");
            if structured {
                assert_eq!(nbd.status(0, 4096), Err(GONE), "{why}");
            }
        };
        gone(&mut nbd, "deleted");
        make(&dir, "v", "8MiB");
        gone(&mut nbd, "made anew");
        let mut new = Nbd::open(&socket(&dir), "v", structured).unwrap();
        assert!(new.read(0, MIB as u32).unwrap().iter().all(|&byte| byte == 0));
        dir.run(&["volume", "delete", "v", "--yes"]).succeeded();
    }
}

/// Clients that speak nonsense, stop in the middle or go away: a good one beside them is
/// served, nothing of theirs stays, and the daemon stops in order.
#[test]
fn clients_that_break_the_protocol_hurt_nobody() {
    let dir = Scratch::new();
    let daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "8MiB");
    let path = socket(&dir);
    let mut good = Nbd::open(&path, "v", true).unwrap();
    good.write(0, 0, &noise(1, MIB).bytes()).unwrap();
    let mut kept = Vec::new();
    for (name, bytes) in [
        ("nonsense", &b"GET / HTTP/1.1\r\n\r\n................"[..]),
        ("an option of 4 GiB", b"IHAVEOPT\0\0\0\x07\xff\xff\xff\xff"),
        ("half an option", b"IHAVEOPT\0\0\0\x07\0\0\0\x10film"),
    ] {
        let mut socket = greeted(&path);
        socket.write_all(bytes).unwrap();
        kept.push((name, socket));
    }
    let mut short = Nbd::open(&path, "v", true).unwrap();
    short.begin(WRITE, 0, 0, 33 << 20, b"");
    assert!(short.has_ended(), "a write that is too long to be read past");
    let mut nonsense = Nbd::open(&path, "v", true).unwrap();
    nonsense.socket.write_all(&[7; 28]).unwrap();
    assert!(nonsense.has_ended());
    let mut leaves = Nbd::open(&path, "v", true).unwrap();
    leaves.begin(WRITE, 0, 2 * MIB, 4 * MIB as u32, &[1; 3_000_000]);
    drop(leaves);
    let mut stops = Nbd::open(&path, "v", true).unwrap();
    stops.begin(WRITE, 0, 2 * MIB, MIB as u32, &[1; 1000]);
    // Asks for much and takes nothing.
    let mut greedy = Nbd::open(&path, "v", true).unwrap();
    for at in 0..64 {
        greedy.begin(READ, 0, at % 7 * MIB, MIB as u32, &[]);
    }
    for turn in 0..20 {
        assert!(good.read(0, MIB as u32).unwrap() == noise(1, MIB).bytes(), "turn {turn}");
        good.write(0, MIB, &[turn; 5000]).unwrap();
    }
    assert_eq!(good.read(MIB, 5000).unwrap(), [19; 5000]);
    good.flush().unwrap();
    good.begin(DISCONNECT, 0, 0, 0, &[]);
    assert!(good.has_ended());
    daemon.signal("TERM");
    let (code, said) = daemon.wait();
    assert_eq!(code, Some(0), "{said}");
    drop((kept, stops, greedy));
}

/// The volume's permissions hold for whoever connects.
#[test]
fn a_user_has_the_exports_that_he_may_read_and_writes_where_he_may() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    if !rustix::process::geteuid().is_root() {
        return skips::not_run("needs root, to be another user");
    }
    let daemon = dir.try_serve(&disks, &["--socket-mode", "0666"]).unwrap();
    std::fs::set_permissions(dir.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let info = |export: &str| {
        let uri = format!("nbd+unix:///{export}?socket={}", socket(&dir).display());
        let mut command = Command::new("nbdinfo");
        command.args([&uri]).uid(65534).gid(65534).stdin(Stdio::null());
        let ran = command.output().expect("nbdinfo, of libnbd-bin");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (ran.status.success(), text(ran.stdout) + &text(ran.stderr))
    };
    make(&dir, "v", "1MiB");
    assert!(!info("v").0, "{}", info("v").1);
    for (mode, read_only) in [("644", "is_read_only: true"), ("666", "is_read_only: false")] {
        dir.run(&["volume", "chmod", mode, "v"]).succeeded();
        let (is_there, said) = info("v");
        assert!(is_there && said.contains(read_only), "{mode}: {said}");
    }
    drop(daemon);
}

/// The programs that people have: nbdinfo, nbdcopy both ways, and qemu-io.
#[test]
fn the_tools_of_libnbd_and_qemu_find_no_fault() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a", "b"]));
    make(&dir, "v", "16MiB");
    let attach = dir.run(&["nbd", "v", "--json"]).succeeded().json();
    let uri = attach["uri"].as_str().unwrap().to_owned();
    let run = |program: &str, args: &[&str]| {
        let ran = Command::new(program).args(args).stdin(Stdio::null()).output();
        let ran = ran.unwrap_or_else(|error| panic!("{program}: {error}"));
        let said = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{program} {args:?}: {said}");
        said.into_owned()
    };
    let file = |name: &str| dir.path(name).display().to_string();
    // Data in the middle, and holes around it.
    let mut image = vec![0; 16 << 20];
    image[5_000_000..9_000_000].copy_from_slice(&noise(3, 4_000_000).bytes());
    std::fs::write(dir.path("in"), &image).unwrap();
    run("nbdcopy", &["--destination-is-zero", &file("in"), &uri]);
    run("nbdcopy", &[&uri, &file("out")]);
    assert!(std::fs::read(dir.path("out")).unwrap() == image, "copied in and out");
    // Also without what newer clients ask for.
    run("nbdcopy", &["--connections=1", "--requests=1", &uri, &file("again")]);
    assert!(std::fs::read(dir.path("again")).unwrap() == image);
    let map: serde_json::Value =
        serde_json::from_str(&run("nbdinfo", &["--map", "--json", &uri])).unwrap();
    let kinds: Vec<_> = map.as_array().unwrap().iter().map(|run| &run["type"]).collect();
    assert_eq!(kinds, [3, 0, 3], "a hole, data, a hole: {map}");
    let about: serde_json::Value =
        serde_json::from_str(&run("nbdinfo", &["--json", &uri])).unwrap();
    let export = &about["exports"][0];
    assert_eq!(export["export-size"], 16 << 20);
    for wanted in ["can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero", "can_df"] {
        assert_eq!(export[wanted], true, "{wanted}");
    }
    // A ring was listed, and could not be opened: the whole list failed.
    dir.run(&["volume", "create", "gate", "--size", "64MiB", "--ring"]).succeeded();
    let list = run("nbdinfo", &["--list", &uri]);
    assert!(list.contains("export=\"v\"") && !list.contains("gate"), "{list}");
    let script = [
        "write -P 0xab 1000 5000",
        "read -P 0xab 1000 5000",
        "write -z 2000 1000",
        "read -P 0 2000 1000",
        "read -P 0xab 3000 3000",
        "write -f -P 3 64k 64k",
        "discard 12M 1M",
        "flush",
        "aio_write -P 7 1M 3M",
        "aio_write -P 8 10M 2M",
        "aio_flush",
        "read -P 7 1M 3M",
        "read -P 8 10M 2M",
    ];
    let mut args = vec!["-f", "raw", &uri];
    script.iter().for_each(|line| args.extend(["-c", line]));
    let said = run("qemu-io", &args);
    assert!(!said.contains("failed") && !said.contains("error"), "{said}");
}

#[test]
fn the_command_says_how_to_attach_and_names_what_is_not_there() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "1MiB");
    let said = dir.run(&["nbd", "v", "--read-only", "--priority", "background"]).succeeded();
    let uri = format!("nbd+unix:///v@ro@background?socket={}", socket(&dir).display());
    assert!(said.text().contains(&uri), "{}", said.text());
    let nbd = Nbd::open(&socket(&dir), "v@ro@background", true);
    assert!(nbd.is_ok(), "what it prints can be opened");
    dir.run(&["nbd", "w"]).failed(1, &["there is no volume \"w\""]);
}

/// Whether a volume can be a disk of this machine; says so where not.
fn can_be_attached() -> bool {
    let opens = |path: &str| std::fs::File::options().read(true).write(true).open(path).is_ok();
    let has_loops =
        || Command::new("losetup").arg("--find").output().is_ok_and(|ran| ran.status.success());
    let is_root = rustix::process::geteuid().is_root();
    let can = is_root && opens("/dev/fuse") && opens("/dev/loop-control") && has_loops();
    skips::can_run(can, "needs root, FUSE and loop devices")
}

/// Two programs, and forty, which write what shares blocks, under whom the power fails again and again.
#[test]
fn what_any_of_many_programs_has_flushed_outlives_power_cuts() {
    if can_be_attached() {
        many::what_any_flush_covers_outlives_cuts(2, 6);
        many::what_any_flush_covers_outlives_cuts(40, 6);
    }
}

/// A volume as a disk for ext4 and for xfs, under which the power fails again and again.
#[test]
fn what_a_filesystem_has_synced_outlives_power_cuts() {
    if !can_be_attached() {
        return;
    }
    let ext4 = power::Filesystem { make: "mkfs.ext4", check: &["fsck.ext4", "-f", "-n"] };
    let xfs = power::Filesystem { make: "mkfs.xfs", check: &["xfs_repair", "-n"] };
    let known = std::fs::read_to_string("/proc/filesystems").unwrap();
    for filesystem in [ext4, xfs] {
        let name = filesystem.make.trim_start_matches("mkfs.");
        if !known.lines().any(|line| line.trim_start_matches("nodev").trim() == name) {
            skips::not_run(format!("needs a kernel with {name}"));
            continue;
        }
        power::fsynced_files_outlive_cuts(&filesystem, 5);
    }
}

/// `fsx`, where it is on the path (`make` puts it there).
#[test]
fn fsx_finds_no_byte_in_the_wrong_place_on_ext4() {
    let has_fsx = Command::new("fsx").arg("--help").output().is_ok();
    if !has_fsx {
        skips::not_run("needs fsx (scripts/setup test builds it)");
    } else if can_be_attached() {
        power::fsx_on_ext4();
    }
}

/// A user who may have one request under way writes zeros over data, on two connections at
/// once: neither waits for what the other has.
#[test]
fn zeros_are_written_within_a_quota_of_one_request() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    if !rustix::process::geteuid().is_root() {
        return skips::not_run("needs root, to give root a quota of its own");
    }
    let config = dir.path("one.toml");
    std::fs::write(&config, "[quota.user.root]\nbest_effort_requests = 1\n").unwrap();
    let config = config.display().to_string();
    let _daemon = dir.try_serve(&disks, &["--config", &config]).unwrap();
    make(&dir, "v", "8MiB");
    let mut all =
        [true, false].map(|structured| Nbd::open(&socket(&dir), "v", structured).unwrap());
    const HALF: u32 = 4 * MIB as u32;
    let parts = [0, u64::from(HALF)];
    for (nbd, at) in all.iter_mut().zip(parts) {
        nbd.write(0, at, &noise(at, HALF.into()).bytes()).unwrap();
    }
    let begun: Vec<u64> = all
        .iter_mut()
        .zip(parts)
        .map(|(nbd, at)| nbd.begin(client::ZEROES, 0, at, HALF, &[]))
        .collect();
    for ((nbd, at), cookie) in all.iter_mut().zip(parts).zip(begun) {
        assert_eq!(nbd.end(cookie), Ok(vec![]));
        assert!(nbd.read(at, HALF).unwrap().iter().all(|&byte| byte == 0));
    }
}
