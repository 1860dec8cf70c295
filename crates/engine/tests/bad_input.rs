//! What can be wrong with devices: each a message that names the thing and says
//! what to do.

use crate::common::*;
use engine::{Backend, Completion, CreateOptions, DeviceSpec, Pool, PoolError, Reply};
use node::{DeviceError, DiskAction, DiskCommand, Error, Mode, Op};
use std::error::Error as _;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use units::{Bytes, Duration, Instant};

fn says(error: &PoolError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
}

#[track_caller]
fn refused<T>(result: Result<T, PoolError>, parts: &[&str]) {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => says(&error, parts),
    }
}

#[test]
fn a_pool_that_is_open_is_not_opened_again() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    let what = ["/a is in use", "stop the other one"];
    refused(Pool::open(&disks, options()), &what);
    refused(Pool::check(&disks), &what);
    let force = CreateOptions { force: true, ..untimed(64) };
    refused(Pool::create("new", &disks, &force), &what);
    drop(pool);
    Pool::open(&disks, options()).unwrap().shutdown().unwrap();
}

#[test]
fn what_holds_something_is_not_overwritten_unless_forced() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    refused(Pool::create("new", &disks, &untimed(64)), &["/a holds a Slackline pool", "force"]);
    File::create(dir.path("b")).unwrap().write_all_at(b"\x53\xef", 1080).unwrap();
    refused(Pool::create("new", &[dir.file("b")], &untimed(64)), &["ext2, ext3 or ext4"]);
    std::fs::write(dir.path("c"), "Dear diary").unwrap();
    refused(Pool::create("new", &[dir.file("c")], &untimed(64)), &["data of a kind"]);
    assert_eq!(std::fs::read(dir.path("c")).unwrap(), b"Dear diary");

    let force = CreateOptions { force: true, ..untimed(64) };
    Pool::create("new", &disks, &force).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    assert_eq!(pool.description().name, "new");
}

#[test]
fn what_is_no_pool_or_not_all_of_it_is_named() {
    let dir = Dir::new();
    refused(Pool::open(&[], options()), &["at least one"]);
    refused(Pool::open(&[dir.file("none")], options()), &["/none: cannot open it"]);
    refused(
        Pool::open(&[DeviceSpec::Real { path: "/dev/null".into() }], options()),
        &["neither a file nor a block device"],
    );
    File::create(dir.path("zeros")).unwrap().set_len(64 << 20).unwrap();
    refused(Pool::open(&[dir.file("zeros")], options()), &["carries no pool", "/zeros"]);

    let (a, b) = (dir.file("a"), dir.file("b"));
    Pool::create("pair", &[a.clone(), b.clone()], &untimed(64)).unwrap();
    refused(Pool::open(std::slice::from_ref(&a), options()), &["missing", "give it too"]);
    Pool::create("other", &[dir.file("c")], &untimed(64)).unwrap();
    refused(Pool::open(&[a.clone(), dir.file("c")], options()), &["belongs to pool", "/c"]);
    File::options().write(true).open(dir.path("b")).unwrap().set_len(60 << 20).unwrap();
    refused(Pool::open(&[a, b], options()), &["cut short", "/b"]);
}

/// A pool of an emulated disk was served as a plain file, or as another model, without a word; one of a
/// file behind a model was called cut short.
#[test]
fn a_disk_that_is_served_as_something_else_than_it_was_made_on_is_told_of() {
    let dir = Dir::new();
    let model = |model: &str, name: &str| DeviceSpec::Emulated {
        model: model.into(),
        path: dir.path(name),
    };
    let told = |spec: DeviceSpec| {
        let pool = Pool::open(&[spec], options()).unwrap();
        let told = pool.warnings().iter().filter(|told| told.contains("has the profile"));
        told.cloned().collect::<Vec<_>>()
    };
    Pool::create("tape", &[dir.emulated("a")], &size(64)).unwrap();
    assert_eq!(told(dir.emulated("a")), [""; 0]);
    let [plain] = &told(dir.file("a"))[..] else { panic!("one warning") };
    let serve = format!("serve emulated:laptop-4200:{}", dir.path("a").display());
    assert!(plain.contains("of the disk model laptop-4200") && plain.ends_with(&serve), "{plain}");
    Pool::create("file", &[dir.file("b")], &untimed(64)).unwrap();
    assert_eq!(told(dir.file("b")), [""; 0]);
    let says = ["was made as a file, or on another model", "67108864 bytes", "the path alone"];
    refused(Pool::open(&[model("laptop-4200", "b")], options()), &says);
}

#[test]
fn a_check_names_a_flipped_bit_and_opening_mends_it() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    assert!(
        Pool::check(&disks).unwrap().worst().is_none_or(|worst| worst < store::Severity::Warning)
    );
    let file = File::options().read(true).write(true).open(dir.path("a")).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 100).unwrap();
    file.write_all_at(&[byte[0] ^ 4], 100).unwrap();
    let report = Pool::check(&disks).unwrap();
    assert_eq!(report.worst(), Some(store::Severity::Warning), "{report:?}");
    assert!(report.findings[0].to_string().contains("label, copy 0"), "{report:?}");
    Pool::open(&disks, options()).unwrap().shutdown().unwrap();
    let report = Pool::check(&disks).unwrap();
    assert!(report.worst().is_none_or(|worst| worst < store::Severity::Warning), "{report:?}");
}

#[test]
fn a_file_that_may_only_be_read_is_no_pool_but_can_be_checked() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let rights = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(dir.path("a"), rights).unwrap();
    // The super-user may write in spite of the permissions; as nobody, a thread may not. It is
    // one of its own: nobody could not remove the directory either.
    let as_nobody = || {
        #[allow(unsafe_code)]
        // SAFETY: changes who this thread is towards files, and nothing else.
        unsafe {
            libc::setfsuid(65_534)
        };
        refused(Pool::open(&disks, options()), &["/a may only be read"]);
        assert!(Pool::check(&disks).unwrap().pool.is_some());
    };
    std::thread::scope(|scope| scope.spawn(as_nobody).join().unwrap());
}

/// The whole file system may only be read. Only root can have one that is so for one thread.
#[test]
fn a_file_system_that_may_only_be_read_is_told_apart_from_one_that_fails() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let looks = || -> std::io::Result<()> {
        read_only_for_this_thread(dir.path("a").parent().unwrap())?;
        refused(Pool::open(&disks, options()), &["/a may only be read", "permissions or mount"]);
        assert!(Pool::check(&disks).unwrap().pool.is_some());
        Ok(())
    };
    if let Err(error) = std::thread::scope(|scope| scope.spawn(looks).join().unwrap()) {
        skips::not_run(format!("needs root, to mount for one thread: {error}"));
    }
}

/// Mounts a directory over itself, for this thread alone, so that it may only be read.
#[allow(unsafe_code)]
fn read_only_for_this_thread(directory: &Path) -> std::io::Result<()> {
    let path = CString::new(directory.as_os_str().as_bytes()).unwrap();
    let mount = |what: &CStr, on: &CStr, flags| {
        // SAFETY: two strings that end with a zero, and no further arguments.
        let done = unsafe {
            libc::mount(what.as_ptr(), on.as_ptr(), std::ptr::null(), flags, std::ptr::null())
        };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: takes a plain number; the mounts that this thread sees are its own from here on.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    mount(&path, &path, libc::MS_BIND)?;
    mount(&path, &path, libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY)
}

/// A program is run from the file: nobody may write to it until it has ended. Who has a file for
/// a moment longer, as the kernel after a kill, is waited for.
#[test]
fn a_file_that_somebody_still_has_is_opened_when_he_has_gone() {
    let dir = Dir::new();
    let path = dir.path("a");
    std::fs::copy("/bin/cat", &path).unwrap();
    let mut program = Command::new(&path).stdin(Stdio::piped()).spawn().unwrap();
    let opened = std::thread::scope(|scope| {
        let (begins, begun) = mpsc::channel();
        let opening = scope.spawn(move || {
            begins.send(()).unwrap();
            Pool::open(&[dir.file("a")], options())
        });
        begun.recv().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(program.stdin.take());
        program.wait().unwrap();
        opening.join().unwrap()
    });
    refused(opened, &["carries no pool", "/a"]);
}

#[test]
fn what_a_model_or_profile_says_against_a_disk_is_the_errors_source() {
    let dir = Dir::new();
    let error = Pool::create("x", &[dir.emulated("a")], &size(2)).unwrap_err();
    let source = error.source().expect("the model's own words").to_string();
    says(&error, &[&source, "too small"]);
    let error = Pool::open(&[dir.file("none")], options()).err().unwrap();
    let source = error.source().expect("the system's own words").to_string();
    says(&error, &[&source]);
    assert!(PoolError::NoDevices.source().is_none());
}

/// Who is asked whether something may be destroyed is told what it is.
#[test]
fn what_is_at_a_path_is_told_before_anything_is_done_to_it() {
    let dir = Dir::new();
    assert_eq!(dir.file("none").look().unwrap(), None);
    File::create(dir.path("empty")).unwrap().set_len(1 << 20).unwrap();
    let empty = dir.file("empty").look().unwrap().expect("there is a file");
    assert_eq!((empty.size, empty.holds), (Bytes::MIB, None));
    Pool::create("tape", &[dir.file("a")], &untimed(64)).unwrap();
    let found = dir.file("a").look().unwrap().expect("there is a pool");
    assert_eq!(found.size, Bytes::mib(64));
    assert!(found.holds.expect("it holds one").contains("a Slackline pool"));
    let device = engine::DeviceSpec::Real { path: "/dev/null".into() };
    refused(device.look(), &["neither a file nor a block device"]);
}

/// At the end of its range an option is taken, and only then looked for the disk.
#[test]
fn options_are_refused_beyond_their_range_and_not_at_its_end() {
    use node::limits::{COMMIT_INTERVAL_MAX, HOST_LATENCY_MAX, MEMORY_MIN};
    type Set = fn(&mut engine::Options, u64);
    let interval: Set = |options, ns| options.config.commit_interval = Duration::from_nanos(ns);
    let gap: Set = |options, ns| options.gap = Some(Duration::from_nanos(ns));
    let late: Set = |options, ns| options.config.host_latency = Duration::from_nanos(ns);
    let memory: Set = |options, bytes| options.config.memory = Bytes::new(bytes);
    let dir = Dir::new();
    let (least, most) = (MEMORY_MIN.get(), Bytes::MIB.get());
    for (name, set, good, bad) in [
        ("memory", memory, least, least - most),
        ("memory", memory, least + most, least + 1),
        ("commit interval", interval, 1_000_000, 999_999),
        ("commit interval", interval, COMMIT_INTERVAL_MAX.as_nanos(), u64::MAX),
        ("gap", gap, queue::limits::GAP_MAX.as_nanos(), queue::limits::GAP_MAX.as_nanos() + 1),
        ("host latency", late, HOST_LATENCY_MAX.as_nanos(), HOST_LATENCY_MAX.as_nanos() + 1),
    ] {
        let open = |value| {
            let mut asked = options();
            set(&mut asked, value);
            Pool::open(&[dir.file("none")], asked)
        };
        refused(open(good), &["/none: cannot open it"]);
        refused(open(bad), &[name, "give"]);
    }
}

#[test]
fn a_size_that_is_missing_or_does_not_fit_leaves_nothing_behind() {
    let dir = Dir::new();
    let nothing_left = |name| assert!(!dir.path(name).exists(), "{name} is left");
    refused(Pool::create("x", &[dir.file("a")], &CreateOptions::default()), &["say how large"]);
    nothing_left("a");
    let huge = CreateOptions { size: Some(Bytes::GIB * 8192), ..untimed(64) };
    refused(Pool::create("x", &[dir.file("a")], &huge), &[" left, and not 8 TiB", "smaller"]);
    nothing_left("a");
    refused(Pool::create("x", &[dir.file("a")], &untimed(1)), &["disk 0", "/a"]);
    nothing_left("a");
    refused(Pool::create("x", &[dir.emulated("a")], &size(2)), &["too small", "give at least"]);
    nothing_left("a");
    refused(Pool::create("no/name", &[dir.file("a")], &untimed(64)), &["no name for a pool"]);
    nothing_left("a");
    let mut small = options();
    small.config.memory = Bytes::mib(1);
    refused(Pool::open(&[dir.file("a")], small), &["memory", "at least 16 MiB"]);
}

/// A device that fails the transfers that somebody chose.
struct Faulty {
    inner: Box<dyn Backend>,
    failed: Vec<Completion>,
    fails: fn(&DiskAction) -> bool,
}

impl Backend for Faulty {
    fn start(&mut self, command: DiskCommand) {
        if !(self.fails)(&command.action) {
            return self.inner.start(command);
        }
        let at = Instant::from_nanos(1);
        let result = Err(DeviceError(5));
        self.failed.push(Completion::of(command.id, at, at, result));
    }
    fn submit(&mut self) {
        self.inner.submit();
    }
    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        if self.failed.is_empty() {
            return self.inner.wait(until, done);
        }
        done.append(&mut self.failed);
    }
    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.failed.len()
    }
}

fn failing(fails: fn(&DiskAction) -> bool) -> engine::Options {
    let mut options = options();
    options.wrap =
        Some(Arc::new(move |_, inner| Box::new(Faulty { inner, failed: Vec::new(), fails })));
    options
}

/// A reader of a failing place is told of the gap and goes on behind it; a
/// best-effort reader gets the device's error.
#[test]
fn a_failing_place_is_a_declared_gap() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "film", Bytes::mib(4));
    let block = Bytes::kib(256);
    let writer = stream(&pool, "film", Mode::Write, contract("4MiB/s", block));
    record(&pool, writer, 4 << 20);
    pool.call(Op::StreamClose { stream: writer }).unwrap();
    pool.shutdown().unwrap();

    // One block in each extent fails.
    let fails = |action: &DiskAction| matches!(action, DiskAction::Read { offset, .. } if offset.get() % (1 << 20) == 1 << 18);
    let pool = Pool::open(&disks, failing(fails)).unwrap();
    let reader = stream(&pool, "film", Mode::Read, contract("4MiB/s", block));
    let (gaps, len) = play(&pool, reader);
    let expected: Vec<_> = (0..4u64).map(|extent| ((extent << 20) + (1 << 18), 1 << 18)).collect();
    assert_eq!((gaps, len), (expected, 4 << 20));
    let bad = read(&pool, "film", Bytes::kib(256), Bytes::kib(4));
    assert!(matches!(bad, Err(Error::Device { error: DeviceError(5), .. })), "{bad:?}");
    check(&read(&pool, "film", Bytes::kib(512), Bytes::kib(4)).unwrap(), 2 << 18);
    assert!(pool.status().disks[0].account.errors >= 5);
}

/// When metadata cannot be written the pool goes read-only and says so; what was
/// durable before can still be read.
#[test]
fn a_pool_whose_log_fails_is_read_only() {
    let dir = Dir::new();
    let disks = [dir.file("a")];
    Pool::create("tape", &disks, &untimed(64)).unwrap();
    let pool = Pool::open(&disks, options()).unwrap();
    volume(&pool, "film", Bytes::mib(4));
    let writer = stream(&pool, "film", Mode::Write, contract("4MiB/s", Bytes::kib(256)));
    record(&pool, writer, 1 << 20);
    pool.call(Op::StreamClose { stream: writer }).unwrap();
    pool.shutdown().unwrap();

    let pool = Pool::open(&disks, failing(|a| matches!(a, DiskAction::WriteBytes { .. }))).unwrap();
    assert!(!pool.is_read_only(), "nothing has failed yet");
    let placement = node::Placement::default();
    let create = Op::VolumeCreate {
        name: "new".into(),
        size: Bytes::mib(1),
        placement,
        access: Default::default(),
    };
    assert!(matches!(pool.call(create), Err(Error::ReadOnly { .. })));
    assert!(pool.status().read_only && pool.is_read_only());
    let reader = stream(&pool, "film", Mode::Read, contract("4MiB/s", Bytes::kib(256)));
    assert_eq!(play(&pool, reader), (vec![], 1 << 20));
    assert!(matches!(pool.call(Op::Sync), Ok(Reply::Done) | Err(Error::ReadOnly { .. })));
}
