//! Volumes as files: programs that know nothing of Slackline read, write, rename and remove them;
//! what `fsync` has answered outlives a kill of the daemon; two doors see each other's bytes.
//!
//! Where the machine has no FUSE, or a tool is not there, a test says so and does the rest.
#![allow(clippy::print_stdout)] // what could not be run is said

mod at_once;
mod doors;
mod file_manager;
mod full;
mod handles;
mod kills;
mod lengths;
mod names_at_once;
mod nfs;
mod posix;
mod postgres;
mod restarts;
mod rings;
mod smb;
mod stress;
#[path = "../support/mod.rs"]
mod support;

use client::control::VolumeCreate;
use client::{Client, Code};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use support::{Daemon, Scratch};
use units::Bytes;

/// A pool that is served, and mounted.
struct Mounted {
    daemon: Option<Daemon>,
    disks: Vec<String>,
    dir: Scratch,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for name in ["mnt", "two"] {
            // As one does where a program still has something open.
            let _ = Command::new("umount").args(["-l", &self.dir.text(name)]).output();
        }
    }
}

impl Mounted {
    fn new() -> Option<Self> {
        Self::of("1GiB")
    }

    /// A pool of this size.
    fn of(size: &str) -> Option<Self> {
        let dir = Scratch::new();
        if !can_mount() {
            return None;
        }
        let disks = dir.make_pool_of(&["a"], size);
        let daemon = dir.serve(&disks);
        fs::create_dir(dir.path("mnt")).unwrap();
        dir.run(&["mount", "--allow-other", &dir.text("mnt")]).succeeded();
        Some(Self { daemon: Some(daemon), disks, dir })
    }

    /// Mounts it once more, elsewhere.
    fn second(&self) -> PathBuf {
        fs::create_dir(self.dir.path("two")).unwrap();
        self.dir.run(&["mount", &self.dir.text("two")]).succeeded();
        self.dir.path("two")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path("mnt").join(name)
    }

    fn client(&self) -> Client {
        Client::at(self.dir.path("s.sock"))
    }

    /// The daemon is killed and started again, below the mount.
    fn kill_daemon(&mut self) {
        self.daemon.take().unwrap().kill();
        self.daemon = Some(self.dir.serve(&self.disks));
    }

    /// Runs a line of a shell in the mount, and gives what it wrote.
    fn shell(&self, line: &str) -> String {
        let ran = Command::new("sh").args(["-ec", line]).current_dir(self.path(".")).output();
        let ran = ran.unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{line}: {said}");
        String::from_utf8(ran.stdout).unwrap()
    }
}

fn can_mount() -> bool {
    let can = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    skips::can_run(can, "needs root and /dev/fuse")
}

/// So many bytes, the same in each run.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    support::noise(seed, len as u64).read_to_end(&mut bytes).unwrap();
    bytes
}

fn has(tool: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
    let found = found.is_ok_and(|ran| ran.status.success());
    skips::can_run(found, format!("needs {tool}"))
}

/// A second mount lay over the first one, and it said that all was well.
#[test]
fn a_directory_that_is_mounted_is_not_mounted_again() {
    let Some(mounted) = Mounted::new() else { return };
    let (dir, mnt) = (&mounted.dir, mounted.dir.text("mnt"));
    let says =
        [&*format!("{mnt} is a mount of pool "), &*format!("slackline unmount {mnt}` first")];
    for how in [&["mount"][..], &["mount", "--foreground"]] {
        dir.run(&[how, &[&mnt]].concat()).failed(1, &says);
    }
    dir.run(&["unmount", &mnt]).succeeded();
    let again = dir.run(&["--json", "mount", &mnt]).succeeded().json();
    // One whose process was killed is no mount that could be used.
    let killed = Command::new("kill").args(["-9", &again["process"].to_string()]).status();
    assert!(killed.unwrap().success());
    let unmount = format!("next: slackline unmount {mnt}");
    support::wait_until(|| dir.run(&["mount", &mnt]).err.contains(&unmount));
    dir.run(&["mount", &mnt]).failed(1, &["the process of a mount there has gone", &unmount]);
    dir.run(&["unmount", &mnt]).succeeded();
}

#[test]
fn files_are_made_changed_renamed_and_removed_as_files_are() {
    let Some(mounted) = Mounted::new() else { return };
    let bytes = noise(3_000_000, 1);
    fs::create_dir_all(mounted.path("films/old")).unwrap();
    fs::write(mounted.path("films/old/a film"), &bytes).unwrap();
    assert_eq!(fs::read(mounted.path("films/old/a film")).unwrap(), bytes);
    let client = mounted.client();
    let known = client.volume("films/old/a film").unwrap();
    assert_eq!(known.length_bytes, Bytes::new(3_000_000));
    assert_eq!(known.size_bytes, Bytes::mib(3));
    fs::write(mounted.path("long"), noise(9_000_000, 1)).unwrap();
    // The kernel tells the mount of the close in its own time.
    let reserved = || client.volume("long").unwrap().size_bytes;
    let is_given_back = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        reserved() == Bytes::mib(9)
    });
    assert!(is_given_back, "what was reserved ahead: {}", reserved());
    fs::remove_file(mounted.path("long")).unwrap();
    // Anywhere, any length, over the end, and cut to any byte.
    let file = OpenOptions::new().read(true).write(true).open(mounted.path("films/old/a film"));
    let file = file.unwrap();
    file.write_all_at(b"changed", 1_048_573).unwrap();
    file.write_all_at(b"far", 5_000_001).unwrap();
    let mut copy = bytes.clone();
    copy[1_048_573..][..7].copy_from_slice(b"changed");
    copy.resize(5_000_001, 0);
    copy.extend_from_slice(b"far");
    assert_eq!(fs::read(mounted.path("films/old/a film")).unwrap(), copy);
    file.set_len(10_001).unwrap();
    file.set_len(20_000).unwrap();
    copy.truncate(10_001);
    copy.resize(20_000, 0);
    let mut read = Vec::new();
    (&file).seek(SeekFrom::Start(0)).unwrap();
    (&file).read_to_end(&mut read).unwrap();
    assert_eq!(read, copy);
    // Another name, with all that lies below, also while it is open.
    fs::rename(mounted.path("films"), mounted.path("videos")).unwrap();
    file.write_all_at(b"still here", 0).unwrap();
    assert_eq!(&fs::read(mounted.path("videos/old/a film")).unwrap()[..10], b"still here");
    assert!(client.volume("films/old/a film").is_err());
    // Removed while it is open, it can be read until it is closed.
    fs::remove_file(mounted.path("videos/old/a film")).unwrap();
    let mut ten = [0; 10];
    file.read_exact_at(&mut ten, 0).unwrap();
    assert_eq!((&ten, file.metadata().unwrap().nlink()), (b"still here", 0));
    drop(file);
    // Directories that are empty stay until they are removed, and not before.
    assert!(fs::remove_dir(mounted.path("videos")).is_err());
    assert_eq!(fs::read_dir(mounted.path("videos/old")).unwrap().count(), 0);
    fs::remove_dir_all(mounted.path("videos")).unwrap();
    client.volume_create(&VolumeCreate::new("given/by others", Bytes::MIB)).unwrap();
    fs::remove_file(mounted.path("given/by others")).unwrap();
    fs::remove_dir(mounted.path("given")).expect("it stays when its last file has gone");
    assert_eq!(fs::read_dir(mounted.path(".")).unwrap().count(), 0);
    mounted.shell("sync .");
    let left: Vec<_> = client.volumes().unwrap().into_iter().map(|volume| volume.name).collect();
    assert!(left.iter().all(|name| name.starts_with(".slackline-removed/")), "{left:?}");
}

#[test]
fn owners_modes_times_links_and_space_are_told_and_set() {
    let Some(mounted) = Mounted::new() else { return };
    let path = mounted.path("f");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    mounted.shell("chown 7:8 f; touch -d '2001-02-03 04:05:06.000000007 UTC' f; ln -s f link");
    let known = fs::metadata(&path).unwrap();
    assert_eq!((known.mode() & 0o7777, known.uid(), known.gid()), (0o640, 7, 8));
    assert_eq!((known.mtime(), known.mtime_nsec()), (981_173_106, 7));
    let volume = mounted.client().volume("f").unwrap();
    assert_eq!((volume.owner.uid, volume.owner.mode.bits()), (7, 0o640));
    assert_eq!(fs::read_link(mounted.path("link")).unwrap(), Path::new("f"));
    assert_eq!(fs::read(mounted.path("link")).unwrap(), b"x");
    assert!(symlink("f", mounted.path("link")).is_err(), "it is there");
    let refused = fs::hard_link(&path, mounted.path("hard")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc_number("EPERM")));
    // What df says is what the pool has.
    let space = mounted.shell("stat -f -c '%S %b %a' .");
    let numbers: Vec<u64> = space.split_whitespace().map(|text| text.parse().unwrap()).collect();
    let health = mounted.client().health().unwrap();
    assert_eq!(numbers[0] * numbers[1], health.capacity_bytes.get());
    assert_eq!(numbers[0] * numbers[2], health.free_bytes.get());
    // More than there is: refused before anything is written, and nothing is lost.
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let full = file.set_len(10 << 30).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(libc_number("ENOSPC")));
    assert_eq!(fs::read(&path).unwrap(), b"x");
    mounted.shell("fallocate -l 3MiB f; fallocate -p -o 0 -l 1 f; test $(stat -c %s f) = 3145728");
}

fn libc_number(name: &str) -> i32 {
    match name {
        "EPERM" => 1,
        "ENOENT" => 2,
        "ENOSPC" => 28,
        "ENAMETOOLONG" => 36,
        "ESTALE" => 116,
        "O_DIRECT" => 0o40_000,
        _ => unreachable!("{name}"),
    }
}

#[test]
fn a_contract_is_read_and_set_as_an_attribute_of_the_file() {
    let Some(mounted) = Mounted::new() else { return };
    fs::write(mounted.path("f"), noise(300_000, 2)).unwrap();
    let python = "import os,sys
assert os.listxattr('f') == [], 'what cannot be set is listed'
for n, v in (('rate', '1 MB/s'), ('rate', '1234567 B/s'), ('priority', 'background')):
    os.setxattr('f', 'user.slackline.' + n, v.encode())
    assert os.getxattr('f', 'user.slackline.' + n) == v.encode()
try: os.setxattr('f', 'user.slackline.rate', b'1 MB/s' + b' ' * 300)
except OSError as e: assert e.errno == 7, e
else: sys.exit('a value was taken in part')
try: os.setxattr('f', 'user.slackline.rate', b'100 GB/s')
except OSError as e: assert e.errno == 16, e
else: sys.exit('an impossible rate was taken')
assert os.listxattr('f') == ['user.slackline.priority']
os.setxattr('f', 'user.slackline.stream', b'1MB/s')
assert len(open('f','rb').read()) == 300000
f = open('f','rb'); f.seek(250001); assert len(f.read()) == 49999
os.removexattr('f', 'user.slackline.stream')
assert os.getxattr('f', 'user.slackline.recorded') == b'300000'";
    fs::write(mounted.dir.path("x.py"), python).unwrap();
    mounted.shell(&format!("python3 {}", mounted.dir.text("x.py")));
    let known = mounted.client().volume("f").unwrap();
    assert!(format!("{:?}", known.service).contains("Background"), "{known:?}");
}

/// To remove an attribute that was not set took away another contract; a directory took contracts that no
/// listing showed.
#[test]
fn a_contract_is_made_replaced_and_removed_only_where_that_is_asked_for() {
    let Some(mounted) = Mounted::new() else { return };
    fs::write(mounted.path("f"), noise(300_000, 2)).unwrap();
    fs::create_dir(mounted.path("d")).unwrap();
    let python = "import errno, os
def refused(by, call, path, name, *a):
    try: call(path, 'user.slackline.' + name, *a)
    except OSError as e: assert e.errno == by, (name, e)
    else: raise SystemExit('not refused: %s %s' % (call, name))
within = b'4KiB within 150ms every 500ms'
os.setxattr('f', 'user.slackline.within', within)
for name in ('rate', 'priority', 'stream'):
    refused(errno.ENODATA, os.removexattr, 'f', name)
    refused(errno.ENODATA, os.setxattr, 'f', name, b'normal' if name == 'priority' else b'1MB/s', os.XATTR_REPLACE)
refused(errno.EEXIST, os.setxattr, 'f', 'within', within, os.XATTR_CREATE)
assert os.getxattr('f', 'user.slackline.within') == within
os.setxattr('f', 'user.slackline.within', within, os.XATTR_REPLACE)
os.removexattr('f', 'user.slackline.within')
refused(errno.ENODATA, os.removexattr, 'f', 'within')
for name, value in (('priority', b'background'), ('stream', b'1MB/s')):
    os.setxattr('f', 'user.slackline.' + name, value, os.XATTR_CREATE)
    refused(errno.EEXIST, os.setxattr, 'f', name, value, os.XATTR_CREATE)
    os.removexattr('f', 'user.slackline.' + name)
assert os.listxattr('f') == []
for name, value in (('rate', b'1MB/s'), ('within', within), ('priority', b'background'), ('stream', b'1MB/s')):
    refused(errno.EOPNOTSUPP, os.setxattr, 'd', name, value)";
    fs::write(mounted.dir.path("x.py"), python).unwrap();
    mounted.shell(&format!("python3 {}", mounted.dir.text("x.py")));
    let service = mounted.client().volume("d").unwrap().service;
    assert_eq!(service, client::control::Service::default());
}

#[test]
fn only_who_has_mounted_changes_contracts() {
    let Some(mounted) = Mounted::new() else { return };
    fs::write(mounted.path("f"), noise(300_000, 2)).unwrap();
    mounted.shell("chown 65534:65534 f; chmod 666 f");
    let python = "import os
os.setxattr('f', 'user.slackline.rate', b'1 MB/s')
os.setxattr('f', 'user.slackline.stream', b'1MB/s')
os.setgroups([]); os.setgid(65534); os.setuid(65534)
def refused(call, *a, by=1):
    try: call('f', *a)
    except OSError as e: assert e.errno == by, e
    else: raise SystemExit('another user has changed a contract')
# What nobody can set: cp -a tries, with the list that the mode makes.
acl = bytes.fromhex('02000000' '01000600ffffffff' '04000600ffffffff' '20000600ffffffff')
for n, v in (('user.other', b'x'), ('system.posix_acl_access', acl)):
    refused(os.setxattr, n, v, by=95)
for n, v in (('rate', '2 MB/s'), ('priority', 'interactive'), ('stream', '2MB/s')):
    refused(os.setxattr, 'user.slackline.' + n, v.encode())
    refused(os.removexattr, 'user.slackline.' + n)
assert os.getxattr('f', 'user.slackline.rate') == b'1 MB/s'
open('f', 'r+b').write(b'his own')";
    fs::write(mounted.dir.path("x.py"), python).unwrap();
    mounted.shell(&format!("python3 {}", mounted.dir.text("x.py")));
    assert_eq!(&fs::read(mounted.path("f")).unwrap()[..7], b"his own");
}

#[test]
fn whoever_has_no_rights_serves_and_mounts_a_pool_of_his_own() {
    let dir = Scratch::new();
    let fuse = fs::metadata("/dev/fuse").is_ok_and(|it| it.mode() & 0o006 == 0o006);
    if !has("fusermount3") {
        return;
    }
    if !fuse || !rustix::process::geteuid().is_root() {
        return skips::not_run("needs root, and /dev/fuse open to everybody");
    }
    fs::set_permissions(dir.path("."), fs::Permissions::from_mode(0o777)).unwrap();
    // Where he can run it, wherever it was built.
    fs::copy(env!("CARGO_BIN_EXE_slackline"), dir.path("program")).unwrap();
    let user = |line: &str| {
        let mut user = Command::new("setpriv");
        user.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-ec", line]);
        user.current_dir(dir.path(".")).stdin(Stdio::piped());
        user.env("HOME", dir.path(".")).env("XDG_RUNTIME_DIR", dir.path("."));
        user.env_remove("SLACKLINE_SOCKET"); // that of whoever runs the tests
        user
    };
    let made = user("./program pool create test --size 256MiB ./a").status().unwrap();
    assert!(made.success());
    // It ends with its input, and that with the test.
    let mut daemon = user("exec ./program serve --end-with-input --memory 64MiB ./a");
    let mut daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
    let script = "
# His own daemon's socket, and no other's.
for _ in $(seq 600); do [ -S slackline/slackline.sock ] && ./program pool status >/dev/null 2>&1 && break; sleep 0.1; done
mkdir mnt; ./program mount mnt >/dev/null
trap './program unmount mnt' EXIT
mkdir mnt/d; echo bytes >mnt/d/f; test \"$(cat mnt/d/f)\" = bytes
test \"$(stat -c %u-%a mnt/d/f)\" = 65534-644
# What he may only read he makes as every program does: the bytes come after the mode.
install -m 444 mnt/d/f mnt/r; test \"$(cat mnt/r)\" = bytes
if sh -c 'echo more >mnt/r' 2>/dev/null; then exit 9; fi
git init -q one; cd one; git -c user.name=a -c user.email=b commit -q --allow-empty -m c; cd ..
git clone -q one mnt/two; git -C mnt/two fsck; rm -rf mnt/two; test \"$(echo $(ls mnt))\" = 'd r'";
    let ran = user(script).output().unwrap();
    drop(daemon.stdin.take());
    daemon.wait().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn reads_that_wait_for_their_streams_hold_up_nobody_else() {
    let Some(mut mounted) = Mounted::new() else { return };
    fs::write(mounted.path("f"), noise(2_000_000, 2)).unwrap();
    let python = "import os; os.setxattr('f', 'user.slackline.stream', b'10kB/s')";
    mounted.shell(&format!("python3 -c \"{python}\""));
    let daemon = mounted.daemon.take().unwrap();
    let ended = AtomicUsize::new(0);
    let open = |_| File::open(mounted.path("f")).unwrap();
    let files: Vec<File> = (0..20).map(open).collect();
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| {
                let _ = file.read_at(&mut vec![0; 1 << 20], 0);
                ended.fetch_add(1, Ordering::Relaxed);
            });
        }
        // All of them are in the kernel by then; if not, the test shows less.
        std::thread::sleep(Duration::from_millis(500));
        fs::write(mounted.path("g"), "x").unwrap();
        assert_eq!(fs::read_dir(mounted.path(".")).unwrap().count(), 2);
        let before = ended.load(Ordering::Relaxed);
        daemon.kill(); // without it, they end
        assert_eq!(before, 0, "no read of 1 MiB ends so soon at 10 kB/s");
    });
}

/// Past the kernel's cache, as `open` knows it.
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0x10000 } else { 0x4000 };
/// Each write is durable when it is answered, as `open` knows it: data and what is needed to find them,
/// or all that is known of the file.
const O_DSYNC: i32 = 0o10_000;
const O_SYNC: i32 = 0o4_010_000;

#[test]
fn what_one_door_has_acknowledged_the_other_sees() {
    let Some(mounted) = Mounted::new() else { return };
    let client = mounted.client();
    fs::write(mounted.path("v"), [1; 5000]).unwrap();
    let mut direct = client.best_effort("v").unwrap();
    let mut file = File::open(mounted.path("v")).unwrap();
    let mut past_cache = OpenOptions::new();
    let past_cache = past_cache.read(true).custom_flags(O_DIRECT).open(mounted.path("v")).unwrap();
    let mut first = [0; 5000];
    file.read_exact(&mut first).unwrap();
    // Through the mount first: seen by the library when the write has ended.
    let writer = OpenOptions::new().write(true).open(mounted.path("v")).unwrap();
    for round in 2..20u8 {
        writer.write_all_at(&[round; 100], u64::from(round) * 40).unwrap();
        let mut sector = vec![0; 4096];
        direct.read_at(Bytes::ZERO, &mut sector).unwrap();
        assert_eq!(sector[usize::from(round) * 40..][..100], [round; 100]);
        // And the other way round: seen by whoever opens the file then, also where the mount has
        // had no reason to look since the last time.
        for at in [0, 1].map(|again| 8000 + 2 * u64::from(round) + again) {
            direct.write_at(Bytes::new(at), &[round; 10]).unwrap();
            let mut ten = [0; 10];
            past_cache.read_exact_at(&mut ten, at).unwrap();
            assert_eq!(ten, [round; 10], "at any byte, behind the end that was known");
            let seen = fs::read(mounted.path("v")).unwrap();
            assert_eq!((seen.len() as u64, &seen[at as usize..]), (at + 10, &[round; 10][..]));
        }
    }
}

/// What the kernel has of a file in its cache when it has opened it once more.
fn cached(path: &Path) -> u64 {
    let told = Command::new("fincore").args(["-b", "-n", "-r", "-o", "RES"]).arg(path).output();
    let told = told.expect("fincore is in util-linux-extra");
    String::from_utf8(told.stdout).unwrap().trim().parse().expect("a number of bytes")
}

/// What only this mount has changed, the kernel keeps when the file is opened again.
#[test]
fn a_file_is_read_from_the_kernels_cache_again_until_another_door_has_changed_it() {
    const ALL: u64 = 40_960;
    let Some(mounted) = Mounted::new() else { return };
    let client = mounted.client();
    let path = mounted.path("v");
    fs::write(&path, [1; ALL as usize]).unwrap();
    assert_eq!(cached(&path), 0, "whoever else has made it may have written to it");
    let read = || {
        let bytes = fs::read(&path).unwrap();
        (bytes[0], bytes[40_000])
    };
    assert_eq!((read(), cached(&path)), ((1, 1), ALL));
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all_at(&[2; 10], 40_000).unwrap();
    drop(writer);
    fs::write(mounted.path("other"), [3; 50_000]).unwrap();
    assert_eq!((cached(&path), read()), (ALL, (1, 2)), "its own change, and one of another file");
    client.best_effort("v").unwrap().write_at(Bytes::ZERO, &[4; 10]).unwrap();
    assert_eq!((cached(&path), read()), (0, (4, 2)));
    assert_eq!((cached(&path), read()), (ALL, (4, 2)));
    fs::write(&path, [5; ALL as usize]).unwrap();
    assert_eq!(read(), (5, 5), "cut to nothing, and written anew");
}

/// With `O_SYNC` and `O_DSYNC` a write is answered when it is durable, the file's new length with it: a
/// kill right behind it loses nothing. (The kernel asks the mount for an fsync behind each such write.)
#[test]
fn what_was_written_with_o_sync_outlives_the_daemon() {
    let Some(mut mounted) = Mounted::new() else { return };
    for (round, flag) in [(1, O_SYNC), (2, O_DSYNC), (3, O_SYNC | O_DIRECT)] {
        let path = mounted.path("synced");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).custom_flags(flag).open(&path).unwrap();
        // Always an extent that was never written before.
        let at = (u64::from(round) << 20) + 4096;
        file.write_all_at(&Page([round; 4096]).0, at).unwrap();
        mounted.kill_daemon();
        let seen = fs::read(&path).unwrap();
        assert_eq!(seen.len() as u64, at + 4096, "open flags {flag:#o}");
        assert_eq!(seen[at as usize..], [round; 4096], "open flags {flag:#o}");
    }
}

/// An asynchronous write past the cache, by a number of the processor's own for each call, and a kill of the
/// daemon right behind its end.
const ASYNCHRONOUS: &str = "
import ctypes, mmap, os, platform, signal, struct, sys
path, at, byte, daemon = sys.argv[1], *map(int, sys.argv[2:])
setup, submit, events = (0, 2, 4) if platform.machine() == 'aarch64' else (206, 209, 208)
libc = ctypes.CDLL(None, use_errno=True)
def call(*a):
    done = libc.syscall(*(ctypes.c_long(x) if isinstance(x, int) else x for x in a))
    if done < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done
file = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_DSYNC)
memory = mmap.mmap(-1, 4096)
memory.write(bytes([byte]) * 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
context = ctypes.c_ulong(0)
call(setup, 8, ctypes.byref(context))
# data, key and flags, what (1: a write), priority, file, memory, length, place, and three more
block = struct.pack('QIIHhIQQqQII', 0, 0, 0, 1, 0, file, address, 4096, at, 0, 0, 0)
block = ctypes.create_string_buffer(block)
all = (ctypes.c_void_p * 1)(ctypes.addressof(block))
call(submit, context, 1, all)
ended = ctypes.create_string_buffer(32)
call(events, context, 1, 1, ended, None)
os.kill(daemon, signal.SIGKILL)
assert struct.unpack('QQqq', ended.raw)[2] == 4096, ended.raw";

/// Behind these the kernel asks for no fsync: what was answered went.
#[test]
fn what_was_written_with_o_dsync_and_not_waited_for_outlives_the_daemon() {
    let Some(mut mounted) = Mounted::new() else { return };
    let path = mounted.path("synced");
    let file = File::create(&path).unwrap();
    file.set_len(64 << 20).unwrap();
    file.sync_all().unwrap();
    drop(file);
    fs::write(mounted.dir.path("x.py"), ASYNCHRONOUS).unwrap();
    for round in 1..=6u8 {
        let at = u64::from(round) * (5 << 20) + 4096;
        let daemon = mounted.daemon.take().unwrap();
        let ran = Command::new("python3")
            .args([mounted.dir.path("x.py"), path.clone()])
            .args([at.to_string(), round.to_string(), daemon.id().to_string()])
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        daemon.kill();
        mounted.daemon = Some(mounted.dir.serve(&mounted.disks));
        let mut seen = [0; 4096];
        File::open(&path).unwrap().read_exact_at(&mut seen, at).unwrap();
        assert!(seen == [round; 4096], "round {round}: {:?} and so on", &seen[..4]);
    }
}

/// Memory for direct I/O.
#[repr(align(4096))]
struct Page([u8; 4096]);

#[test]
fn what_fsync_has_answered_outlives_the_daemon_and_what_it_has_not_is_told() {
    let Some(mut mounted) = Mounted::new() else { return };
    let file = File::create(mounted.path("d")).unwrap();
    let bytes = noise(2_000_000, 3);
    (&file).write_all(&bytes).unwrap();
    file.sync_all().unwrap();
    mounted.kill_daemon();
    assert_eq!(fs::read(mounted.path("d")).unwrap(), bytes, "the mount has found the new one");
    file.write_all_at(b"unsynced", 0).unwrap();
    mounted.kill_daemon();
    let told = file.sync_all().unwrap_err();
    assert_eq!(told.raw_os_error(), Some(5), "{told}");
    file.write_all_at(b"again", 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    // No daemon at all: an error within a while, not for ever; then all goes on.
    mounted.daemon.take().unwrap().kill();
    let refused = fs::read_dir(mounted.path(".")).map(|list| list.count()).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(5), "{refused}");
    mounted.daemon = Some(mounted.dir.serve(&mounted.disks));
    assert_eq!(&fs::read(mounted.path("d")).unwrap()[..5], b"again");
    mounted.dir.run(&["unmount", &mounted.dir.text("mnt")]).succeeded();
    let known = mounted.client().volume("d").unwrap();
    assert_eq!(known.length_bytes, Bytes::new(2_000_000), "it dies without harm");
}

/// What lies behind the end of a file in its last 4 KiB, of an append that was never synced or of what
/// was cut off, is not there again when the file is made longer, by whichever door.
#[test]
fn nothing_from_behind_the_end_of_a_file_comes_back_after_a_crash() {
    let Some(mut mounted) = Mounted::new() else { return };
    for (round, seed) in (0..9).zip(1..) {
        let path = mounted.path(&format!("f{round}"));
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path).unwrap();
        let before = noise(4000, seed);
        file.write_all_at(&before, 0).unwrap();
        file.sync_all().unwrap();
        // Cut, and not synced: after the crash it is as it was, or cut.
        let cut = 100 + round * 300;
        file.set_len(cut).unwrap();
        mounted.kill_daemon();
        let seen = fs::read(&path).unwrap();
        assert!(seen.len() as u64 == cut || seen.len() == 4000, "{} bytes", seen.len());
        assert!(seen == before[..seen.len()], "zeros, or others, in a file of the old length");
        // Appended, and not synced.
        let _ = file.sync_all();
        file.set_len(cut).unwrap();
        file.sync_all().unwrap();
        file.write_all_at(&[7; 1000], cut).unwrap();
        mounted.kill_daemon();
        let length = fs::read(&path).unwrap().len() as u64;
        assert!(length == cut || length == cut + 1000, "{length} bytes");
        let longer = OpenOptions::new().write(true).open(&path).unwrap();
        match round % 3 {
            0 => longer.set_len(9000).unwrap(),
            1 => longer.write_all_at(&[8], 8999).unwrap(),
            _ => {
                let mut direct = mounted.client().best_effort(&format!("f{round}")).unwrap();
                direct.write_at(Bytes::new(8999), &[8]).unwrap();
            }
        }
        let seen = fs::read(&path).unwrap();
        assert_eq!(seen.len(), 9000);
        assert!(seen[..cut as usize] == before[..cut as usize]);
        assert!(seen[length as usize..8999].iter().all(|&byte| byte == 0), "round {round}");
    }
}

/// A database's reopening after a crash: what an earlier handle wrote, a later one syncs.
#[test]
fn fsync_tells_of_what_was_lost_although_the_file_was_closed_in_between() {
    let Some(mut mounted) = Mounted::new() else { return };
    let (path, other) = (mounted.path("d"), mounted.path("other"));
    let synced = || OpenOptions::new().write(true).open(&path).unwrap().sync_all();
    fs::write(&path, "synced").unwrap();
    fs::write(&other, "synced with it").unwrap();
    synced().unwrap();
    mounted.kill_daemon();
    synced().unwrap();
    File::open(&other).unwrap().sync_all().unwrap();
    fs::write(&path, "closed").unwrap();
    mounted.kill_daemon();
    let told = synced().unwrap_err();
    assert_eq!(told.raw_os_error(), Some(5), "{told}");
    synced().unwrap();
    // A file that nobody has open is cut by its name.
    mounted.shell("python3 -c 'import os; os.truncate(\"d\", 2)'");
    mounted.kill_daemon();
    let told = synced().unwrap_err();
    assert_eq!(told.raw_os_error(), Some(5), "{told}");
    synced().unwrap();
    // What is begun after a restart is not blamed on what went with it.
    mounted.kill_daemon();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    fs::write(&other, "anew").unwrap();
    File::open(&other).unwrap().sync_all().unwrap();
}

/// Two programs on two mounts append to one log.
#[test]
fn what_one_mount_gives_back_or_cuts_the_other_reserves_again_or_reads_as_the_end() {
    let Some(mounted) = Mounted::new() else { return };
    let two = mounted.second();
    let bytes = noise(12 << 20, 5);
    let write = |path: PathBuf| OpenOptions::new().read(true).write(true).open(path).unwrap();
    fs::write(mounted.path("log"), "").unwrap();
    let first = write(mounted.path("log"));
    first.write_all_at(&bytes, 0).unwrap();
    // It knows what lies ahead of the first writer, who gives that back now.
    let second = write(two.join("log"));
    drop(first);
    second.write_all_at(b"more", 12 << 20).unwrap();
    let mut all = bytes.clone();
    all.extend_from_slice(b"more");
    assert!(fs::read(mounted.path("log")).unwrap() == all);
    // The kernel takes this length for a second, and asks for bytes that are gone.
    assert_eq!(second.metadata().unwrap().len(), all.len() as u64);
    mounted
        .client()
        .set_volume_size("log", Bytes::new(10), Bytes::ZERO, client::Durable::Now)
        .unwrap();
    let mut behind = [0; 10];
    assert_eq!(second.read_at(&mut behind, 4 << 20).unwrap(), 0, "the end of the file");
    second.write_all_at(b"again", 10).unwrap();
    drop(second);
    assert_eq!(fs::read(two.join("log")).unwrap(), [&bytes[..10], b"again"].concat());
}

#[test]
fn space_that_another_door_has_reserved_is_not_given_back() {
    let Some(mounted) = Mounted::new() else { return };
    let client = mounted.client();
    let file = File::create(mounted.path("f")).unwrap();
    file.write_all_at(&noise(6 << 20, 5), 0).unwrap();
    client.volume_resize("f", Bytes::mib(50)).unwrap();
    drop(file);
    assert_eq!(client.volume("f").unwrap().size_bytes, Bytes::mib(50));
    // Nor when the file grows, or gets longer, beyond what is known here.
    let file = OpenOptions::new().write(true).open(mounted.path("f")).unwrap();
    client.volume_resize("f", Bytes::mib(70)).unwrap();
    file.write_all_at(b"x", 55 << 20).unwrap();
    assert_eq!(client.volume("f").unwrap().size_bytes, Bytes::mib(70));
    client.volume_resize("f", Bytes::mib(90)).unwrap();
    file.set_len(60 << 20).unwrap();
    drop(file);
    let known = client.volume("f").unwrap();
    assert_eq!((known.length_bytes, known.size_bytes), (Bytes::mib(60), Bytes::mib(90)));
}

/// A shell that stands in a directory while somebody else gives it another name.
#[test]
fn who_stands_in_a_directory_works_in_it_under_whatever_name_it_has() {
    let Some(mounted) = Mounted::new() else { return };
    let client = mounted.client();
    fs::create_dir_all(mounted.path("d/sub")).unwrap();
    let inside = File::open(mounted.path("d/sub")).unwrap();
    let inside = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&inside));
    let inside = Path::new(&inside);
    fs::write(inside.join("before"), "x").unwrap();
    client.volume_rename(("d", None), "e", client::Replace::Nothing, client::Durable::Now).unwrap();
    // As long as the mount may answer from what it knows.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    fs::write(inside.join("after"), "x").unwrap();
    assert_eq!(fs::read(inside.join("before")).unwrap(), b"x");
    let listed = fs::read_dir(inside).unwrap().count();
    assert_eq!((client.volume("e/sub/after").is_ok(), listed), (true, 2));
    assert!(client.volume("d/sub/after").is_err());
}

#[test]
fn a_directory_that_is_not_there_is_said_with_how_to_make_it() {
    let dir = Scratch::new();
    let nowhere = dir.text("nowhere");
    dir.run(&["mount", &nowhere]).failed(1, &[&format!("mkdir -p {nowhere}")]);
}

#[test]
fn a_mount_for_reading_changes_nothing() {
    let Some(mounted) = Mounted::new() else { return };
    fs::write(mounted.path("f"), "x").unwrap();
    mounted.dir.run(&["unmount", &mounted.dir.text("mnt")]).succeeded();
    mounted.dir.run(&["mount", "--read-only", &mounted.dir.text("mnt")]).succeeded();
    assert_eq!(fs::read(mounted.path("f")).unwrap(), b"x");
    let refused = fs::write(mounted.path("f"), "y").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(30));
    let error = mounted.client().volume_resize("none", Bytes::MIB).unwrap_err();
    assert_eq!(error.code(), Some(Code::NoSuchVolume));
}

/// Operations of any kind at any place, by several threads on two mounts of one pool.
#[test]
fn many_at_once_on_two_mounts_never_see_each_others_bytes() {
    let Some(mounted) = Mounted::new() else { return };
    mounted.second();
    let work = |number: usize| {
        let root = mounted.dir.path(if number.is_multiple_of(2) { "mnt" } else { "two" });
        let bytes = noise(40_000 + number * 5_000, number as u64);
        for round in 0..4 {
            let (from, to) = (format!("t{number}-{round}"), format!("n{number}"));
            fs::write(root.join(&from), &bytes).unwrap();
            assert_eq!(fs::read(root.join(&from)).unwrap(), bytes);
            fs::rename(root.join(&from), root.join(&to)).unwrap();
            assert_eq!(fs::read(root.join(&to)).unwrap(), bytes);
        }
    };
    std::thread::scope(|scope| {
        (0..6).for_each(|number| drop(scope.spawn(move || work(number))));
    });
    let seen = |root: &str| fs::read_dir(mounted.dir.path(root)).unwrap().count();
    assert_eq!((seen("mnt"), seen("two")), (6, 6));
    let ended = Command::new("umount").arg(mounted.dir.path("two")).status().unwrap();
    assert!(ended.success());
}

/// The programs that people have.
#[test]
fn programs_work_on_volumes_as_on_any_files() {
    let Some(mounted) = Mounted::new() else { return };
    let source = mounted.dir.path("source");
    fs::create_dir_all(source.join("sub")).unwrap();
    for number in 0..20 {
        fs::write(source.join(format!("sub/{number}")), noise(number * 999, 7)).unwrap();
    }
    symlink("sub/3", source.join("link")).unwrap();
    let from = source.display();
    mounted.shell(&format!(
        "cp -a {from} copy; diff -r {from} copy; mv copy moved; diff -r {from} moved; \
         tar cf t.tar moved; mkdir un; tar xf t.tar -C un; diff -r {from} un/moved; \
         rm -r moved un; ls -la | grep -q t.tar"
    ));
    if has("rsync") {
        mounted.shell(&format!("rsync -a {from}/ r; rsync -ac {from}/ r; diff -r {from} r"));
    }
    if has("git") {
        let line = "git init -q repo; cd repo; cp -r ../../source/sub .; git add .; \
                    git -c user.name=a -c user.email=a commit -qm first; cd ..; \
                    git clone -q repo clone; git -C clone fsck --strict; diff -r repo/sub clone/sub";
        mounted.shell(line);
    }
    if has("sqlite3") {
        let sql = "pragma journal_mode=wal; create table t(a integer primary key, b text); \
                   with recursive n(i) as (select 1 union all select i+1 from n where i<2000) \
                   insert into t select i, hex(randomblob(50)) from n; \
                   delete from t where a%3=0; vacuum; pragma integrity_check;";
        let said = mounted.shell(&format!("sqlite3 db '{sql}'"));
        assert!(said.trim_end().ends_with("ok"), "{said}");
    }
    if has("fio") {
        mounted.shell(
            "fio --name=v --filename=fio --rw=randrw --bs=4k-64k --size=8m --io_size=4m \
             --ioengine=psync --verify=crc32c --do_verify=1 --fsync=64 --output=/dev/null",
        );
    }
}

/// `fsx`, where it is on the path (`make` puts it there): as many operations as SLACKLINE_FSX says,
/// half of them on each of two files at once.
#[test]
fn fsx_finds_no_byte_in_the_wrong_place() {
    let Some(mounted) = Mounted::new() else { return };
    if !has("fsx") {
        return;
    }
    support::fsx::twice_at_once(&mounted.path("."));
}
