//! What it takes to carry answers under contract to their programs: measured on threads of their
//! own, which have real-time priority where the system permits it, and shown.

#[path = "../../slackline/tests/nbd/client.rs"]
#[allow(dead_code)]
mod nbd;
#[path = "support/real.rs"]
mod real;

use client::control::VolumeCreate;
use client::{Client, InTime};
use daemon::config::SocketMode;
use daemon::serve::{ServeOptions, Serving};
use daemon::socket::Claim;
use engine::{Backend, Completion, CreateOptions, DeviceSpec, Options, Pool};
use nbd::Nbd;
use node::{CommandId, DiskAction, DiskCommand, Op, Priority};
use real::{Real, bytes, contract};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use units::{Bytes, Duration};
use wire::control::{HostTime, Service};

/// A daemon that asks for real-time priority, with a volume "v" of 4 MiB.
fn daemon() -> Real {
    let options =
        ServeOptions { timely: Serving::InRealTime, ..ServeOptions::from(SocketMode(0o600)) };
    let daemon = Real::start_by(64, options);
    daemon.volume("v", Bytes::mib(4));
    daemon
}

fn delivery(daemon: &Real) -> HostTime {
    daemon.client.status().unwrap().delivery
}

/// Waits until so many answers are measured: a program has its answer before the daemon has
/// measured it. More than these are an error at once, and fewer after a minute.
fn await_sample(daemon: &Real, sample: u64) {
    assert_eq!(at_least(sample, || delivery(daemon).sample), sample);
}

/// Waits until more answers than these are measured; how many are.
fn await_more(daemon: &Real, sample: u64) -> u64 {
    let more = at_least(sample + 1, || delivery(daemon).sample);
    assert!(more > sample, "{more} answers are measured");
    more
}

/// Waits until so many requests are in the volume's account, and no more.
fn await_requests(daemon: &Real, count: u64) {
    assert_eq!(at_least(count, || requests(daemon)), count);
}

/// What is counted when it is so many, or after a minute.
fn at_least(wanted: u64, counted: impl Fn() -> u64) -> u64 {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let count = counted();
        if count >= wanted || std::time::Instant::now() >= until {
            return count;
        }
        std::thread::yield_now();
    }
}

/// Threads of this process that serve what is under contract: the class and the priority that
/// the system schedules each by.
fn threads() -> Vec<(u32, u32)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |name: &str, task: &std::path::Path| {
        Some(std::fs::read_to_string(task.join(name)).ok()?.trim_end().to_owned())
    };
    let timely = tasks.filter_map(|task| {
        let task = task.ok()?.path();
        // The system keeps fifteen characters of a name.
        if of("comm", &task)? != "slackline-timely"[..15] {
            return None;
        }
        let stat = of("stat", &task)?;
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        // Fields 40 and 41 of proc_pid_stat(5), counted from the third.
        Some((fields[38].parse().unwrap(), fields[37].parse().unwrap()))
    });
    timely.collect()
}

/// Each kind of contract is carried by these threads and counted; best effort is not.
#[test]
fn answers_under_contract_are_measured_and_others_are_not() {
    let daemon = daemon();
    let mut block = vec![0; 4096];
    let mut plain = daemon.client.best_effort("v").unwrap();
    (0..20).for_each(|_| plain.read_at(Bytes::ZERO, &mut block).unwrap());
    assert_eq!(delivery(&daemon).sample, 0);

    let (len, long) = (Bytes::kib(4), Duration::from_secs(2));
    let in_time = InTime { len, within: long, every: long };
    let mut handle = daemon.client.best_effort_in_time("v", in_time).unwrap();
    (0..20).for_each(|_| handle.read_at(Bytes::ZERO, &mut block).unwrap());
    drop(handle);
    await_sample(&daemon, 20);

    let service = Service::Latency { len_bytes: len, within_ns: long, every_ns: long };
    daemon.client.volume_service("v", &service).unwrap();
    let mut volume = daemon.client.best_effort("v").unwrap();
    (0..10).for_each(|_| volume.write_at(Bytes::ZERO, &block).unwrap());
    await_sample(&daemon, 30);
    drop(volume);

    let block = Bytes::kib(64);
    for client in [daemon.client.clone(), daemon.client.clone().without_shared_windows()] {
        let before = delivery(&daemon).sample;
        let mut writer = client.writer("v", contract(1 << 20, block), Bytes::ZERO).unwrap();
        writer.write_all(&bytes(0, 1 << 20)).unwrap();
        writer.close().unwrap();
        let written = await_more(&daemon, before);
        let mut reader = client.reader("v", contract(1 << 20, block), Bytes::ZERO).unwrap();
        let mut back = vec![0; 1 << 20];
        reader.read_exact(&mut back).unwrap();
        await_more(&daemon, written);
    }
}

/// A contract of 4 KiB within 2 s for volume "v", all of which is written.
fn serve_in_time(daemon: &Real) {
    let mut writer = daemon.client.best_effort("v").unwrap();
    (0..4).for_each(|mib| {
        writer.write_at(Bytes::mib(mib), &bytes(mib << 20, 1 << 20)).unwrap();
    });
    let long = Duration::from_secs(2);
    let service = Service::Latency { len_bytes: Bytes::kib(4), within_ns: long, every_ns: long };
    daemon.client.volume_service("v", &service).unwrap();
}

fn requests(daemon: &Real) -> u64 {
    daemon.client.volume("v").unwrap().account.requests
}

fn nbd_socket(daemon: &Real) -> std::path::PathBuf {
    wire::socket::nbd_path(daemon.client.socket())
}

/// 4 KiB of an export, so many times, one after the other.
fn read_export(nbd: &mut Nbd, times: u64) {
    for at in 0..times {
        let (offset, len) = (at % 1024 * 4096, 4096);
        let cookie = nbd.begin(nbd::READ, 0, offset, len, &[]);
        assert_eq!(nbd.end(cookie).unwrap(), bytes(offset, len as usize));
    }
}

/// What a block device asks under its volume's contract is carried as over a data socket; what
/// leaves the contract to others is best effort.
#[test]
fn a_block_devices_answers_under_contract_are_measured_and_its_best_effort_is_not() {
    let daemon = daemon();
    serve_in_time(&daemon);
    for is_structured in [true, false] {
        let (sample, counted) = (delivery(&daemon).sample, requests(&daemon));
        let mut device = Nbd::open(&nbd_socket(&daemon), "v", is_structured).unwrap();
        read_export(&mut device, 10);
        let cookie = device.begin(nbd::WRITE, 0, 0, 4096, &bytes(0, 4096));
        device.end(cookie).unwrap();
        await_requests(&daemon, counted + 11);
        await_sample(&daemon, sample + 11);
    }
    let (sample, counted) = (delivery(&daemon).sample, requests(&daemon));
    let mut device = Nbd::open(&nbd_socket(&daemon), "v@background", true).unwrap();
    read_export(&mut device, 10);
    assert_eq!((delivery(&daemon).sample, requests(&daemon)), (sample, counted));
}

/// A device that was attached before its volume got its contract is carried so from its first
/// answer under contract on.
#[test]
fn a_connection_moves_to_these_threads_with_its_first_answer_under_contract() {
    let daemon = daemon();
    let mut device = Nbd::open(&nbd_socket(&daemon), "v", true).unwrap();
    let mut handle = daemon.client.best_effort("v").unwrap();
    serve_in_time(&daemon);
    let mut block = vec![0; 4096];
    read_export(&mut device, 1);
    handle.read_at(Bytes::ZERO, &mut block).unwrap();
    let before = delivery(&daemon).sample;
    assert_eq!(before, 0, "the answer that says so is carried by the others");
    read_export(&mut device, 10);
    (0..10).for_each(|_| handle.read_at(Bytes::ZERO, &mut block).unwrap());
    await_sample(&daemon, 20);
}

/// What needs no disk is under no contract: whoever asks for that alone, however fast, is served
/// with everybody else before long.
#[test]
fn a_connection_leaves_these_threads_when_nothing_of_it_is_under_contract() {
    let daemon = daemon();
    let long = Duration::from_secs(2);
    let service = Service::Latency { len_bytes: Bytes::kib(4), within_ns: long, every_ns: long };
    daemon.client.volume_service("v", &service).unwrap();
    let mut handle = daemon.client.best_effort("v").unwrap();
    let mut block = vec![0; 1 << 20];
    (0..200).for_each(|_| handle.read_at(Bytes::ZERO, &mut block).unwrap());
    // As many as it takes to see it.
    await_sample(&daemon, 64);
    assert_eq!(requests(&daemon), 0);
}

/// The body of an answer to a GET of the volume, of so many bytes.
fn get(daemon: &Real, query: &str, len: usize) -> Vec<u8> {
    let mut socket = UnixStream::connect(daemon.client.socket()).unwrap();
    let asked = format!(
        "GET /v1/volumes/v/data{query} HTTP/1.1\r\nhost: x\r\nrange: bytes=0-{}\r\n\
         connection: close\r\n\r\n",
        len - 1
    );
    socket.write_all(asked.as_bytes()).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 206"), "{}", String::from_utf8_lossy(&answer));
    answer.split_off(answer.len() - len)
}

/// Bytes over HTTP under a volume's contract, and under one of their own.
#[test]
fn http_under_contract_is_measured_and_best_effort_is_not() {
    let daemon = daemon();
    let len = 256 << 10;
    serve_in_time(&daemon);
    assert_eq!(get(&daemon, "?priority=background", len), bytes(0, len));
    assert_eq!(delivery(&daemon).sample, 0);
    // 4 KiB each: the volume's contract has so much in 2 s.
    assert_eq!(get(&daemon, "", 4096), bytes(0, 4096));
    await_sample(&daemon, 1);
    await_requests(&daemon, 1);
    daemon.client.volume_service("v", &Service::default()).unwrap();
    assert_eq!(get(&daemon, "", len), bytes(0, len));
    assert_eq!(delivery(&daemon).sample, 1);
    assert_eq!(get(&daemon, "?rate=1MB/s", len), bytes(0, len));
    // So many bytes are more than one answer.
    await_more(&daemon, 1);
}

/// A disk that says when it has a read, and does not begin before it may.
struct Holding {
    disk: Box<dyn Backend>,
    holds: Arc<AtomicBool>,
    has: Sender<()>,
    may: Arc<std::sync::Mutex<Receiver<()>>>,
}

impl Backend for Holding {
    fn start(&mut self, command: DiskCommand) {
        let reads = matches!(command.action, DiskAction::Read { .. });
        if reads && self.holds.swap(false, Ordering::SeqCst) {
            self.has.send(()).unwrap();
            self.may.lock().unwrap().recv().unwrap();
        }
        self.disk.start(command);
    }
    fn submit(&mut self) {
        self.disk.submit();
    }
    fn wait(&mut self, until: Option<units::Instant>, done: &mut Vec<Completion>) {
        self.disk.wait(until, done);
    }
    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }
}

/// The daemon's own thread stands still from before the disk is done until the answer is due: the
/// pool was in time, and the account says what the program saw.
#[test]
fn an_answer_that_the_daemon_carries_too_late_is_late_in_the_account() {
    let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
    let devices = [DeviceSpec::Real { path: dir.path().join("disk") }];
    let profile = Some(disk::Profile::parse(real::PROFILE).unwrap());
    let size = Some(Bytes::mib(64));
    Pool::create("tape", &devices, &CreateOptions { profile, size, ..Default::default() }).unwrap();
    let (has, has_it) = channel();
    let (go, may) = channel();
    let (holds, may) = (Arc::new(AtomicBool::new(false)), Arc::new(std::sync::Mutex::new(may)));
    let will_hold = Arc::clone(&holds);
    let wrap: engine::Wrap = Arc::new(move |_, disk| {
        let (holds, has, may) = (Arc::clone(&will_hold), has.clone(), Arc::clone(&may));
        Box::new(Holding { disk, holds, has, may })
    });
    let mut options = Options { realtime: false, wrap: Some(wrap), ..Options::default() };
    options.config.remeasure = false;
    let pool = Arc::new(Pool::open(&devices, options).unwrap());

    let (socket, serving) = (dir.path().join("s.sock"), Arc::clone(&pool));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (listening, is_listening) = channel();
    let at = socket.clone();
    let thread = std::thread::spawn(move || {
        let claim = Claim::new(&at).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stop = async move {
            listening.send(tokio::runtime::Handle::current()).unwrap();
            let _ = stopped.await;
        };
        let mode = SocketMode(0o600);
        let options = ServeOptions { timely: Serving::WithOthers, ..ServeOptions::from(mode) };
        runtime.block_on(daemon::serve::serve(serving, &claim, options, stop))
    });
    let runtime = is_listening.recv().unwrap();
    let client = Client::connect(&socket).unwrap();
    client.volume_create(&VolumeCreate::new("v", Bytes::mib(4))).unwrap();
    let mut block = vec![0; 4096];
    client.best_effort("v").unwrap().write_at(Bytes::ZERO, &block).unwrap();
    let within = Duration::from_secs(2);
    let service =
        Service::Latency { len_bytes: Bytes::kib(4), within_ns: within, every_ns: within };
    client.volume_service("v", &service).unwrap();

    holds.store(true, Ordering::SeqCst);
    let mut handle = client.best_effort("v").unwrap();
    let program = std::thread::spawn(move || handle.read_at(Bytes::ZERO, &mut block).unwrap());
    has_it.recv().unwrap();
    let (stands, is_still) = channel();
    let (goes_on, may_go_on) = channel::<()>();
    runtime.spawn(async move {
        stands.send(()).unwrap();
        let _ = may_go_on.recv(); // the thread stands still, not the task
    });
    is_still.recv().unwrap();
    let due = engine::now() + within;
    go.send(()).unwrap();
    let account = || pool.volume("v").unwrap().account;
    while account().requests == 0 {
        std::thread::yield_now();
    }
    assert_eq!(account().late_requests, 0, "the pool was in time");
    while engine::now() <= due {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(goes_on);
    program.join().unwrap();
    drop(stop);
    thread.join().unwrap().unwrap();
    let account = account();
    assert_eq!((account.requests, account.late_requests), (1, 1), "{account:?}");
    assert!(account.latency_max > within && !account.late_max.is_zero(), "{account:?}");
}

/// Held by a test whose daemon has its own threads without a priority, and by the one that looks at what
/// priority all such threads of this process have.
fn locked_serving() -> std::sync::MutexGuard<'static, ()> {
    static SERVING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    SERVING.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A disk that keeps the ends of so many reads until it has all of them, and tells them in the
/// order in which they began.
struct Together {
    disk: Box<dyn Backend>,
    keeps: Arc<AtomicUsize>,
    /// How many of them it has begun with.
    began: Arc<AtomicUsize>,
    reads: Vec<CommandId>,
    kept: Vec<Completion>,
}

impl Backend for Together {
    fn start(&mut self, command: DiskCommand) {
        let reads = matches!(command.action, DiskAction::Read { .. });
        if reads && self.keeps.load(Ordering::SeqCst) > 0 {
            self.reads.push(command.id);
            self.began.fetch_add(1, Ordering::SeqCst);
        }
        self.disk.start(command);
    }
    fn submit(&mut self) {
        self.disk.submit();
    }
    fn wait(&mut self, until: Option<units::Instant>, done: &mut Vec<Completion>) {
        self.disk.wait(until, done);
        self.kept.extend(done.extract_if(.., |done| self.reads.contains(&done.id)));
        if !self.kept.is_empty() && self.kept.len() == self.keeps.load(Ordering::SeqCst) {
            self.keeps.store(0, Ordering::SeqCst);
            let place = |end: &Completion| self.reads.iter().position(|id| *id == end.id);
            self.kept.sort_by_key(place);
            self.reads.clear();
            done.append(&mut self.kept);
        }
    }
    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.kept.len()
    }
}

/// Two reads end together, and the callback of the first stands still until the second is due:
/// the pool was in time, and account and measurement say what the program of the second saw.
#[test]
fn an_answer_that_waits_for_another_ones_callback_is_late_in_the_account() {
    let _one_serving = locked_serving();
    let (keeps, began) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (will_keep, has_begun) = (Arc::clone(&keeps), Arc::clone(&began));
    let wrap: engine::Wrap = Arc::new(move |_, disk| {
        let (keeps, began) = (Arc::clone(&will_keep), Arc::clone(&has_begun));
        Box::new(Together { disk, keeps, began, reads: Vec::new(), kept: Vec::new() })
    });
    let options = ServeOptions { timely: Serving::Apart, ..ServeOptions::from(SocketMode(0o600)) };
    let daemon = Real::start_wrapped(64, options, wrap);
    daemon.volume("v", Bytes::mib(4));
    serve_in_time(&daemon);
    let within = Duration::from_millis(500);
    let service =
        Service::Latency { len_bytes: Bytes::kib(4), within_ns: within, every_ns: within };
    daemon.client.volume_service("v", &service).unwrap();
    let mut handle = daemon.client.best_effort("v").unwrap();
    let mut block = vec![0; 4096];
    // From here on it is served by the threads that are measured.
    handle.read_at(Bytes::ZERO, &mut block).unwrap();
    handle.read_at(Bytes::ZERO, &mut block).unwrap();
    let before = daemon.client.volume("v").unwrap().account;

    keeps.store(2, Ordering::SeqCst);
    let (called, is_called) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let slow = Op::Read {
        volume: "v".into(),
        offset: Bytes::mib(1),
        len: Bytes::kib(4),
        priority: Some(Priority::Background),
    };
    daemon.pool.submit(slow, move |_| {
        called.send(()).unwrap();
        let _ = may_go_on.recv();
    });
    // One of the background does not begin beside others.
    while began.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    // Not what is cached by now, and not behind it: a third read would be begun, ahead of that program.
    let elsewhere = Bytes::kib(512);
    let program = std::thread::spawn(move || handle.read_at(elsewhere, &mut block).unwrap());
    is_called.recv().unwrap();
    let due = engine::now() + within * 4;
    let account = || daemon.pool.volume("v").unwrap().account;
    assert_eq!(account().requests, before.requests + 1, "the pool has answered both");
    assert_eq!(account().late_requests, before.late_requests, "the pool was in time");
    while engine::now() <= due {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(go_on);
    program.join().unwrap();
    // The daemon notes an answer when it is in the socket.
    while delivery(&daemon).sample < 2 {
        std::thread::yield_now();
    }
    let now = account();
    assert_eq!(now.late_requests, before.late_requests + 1, "{now:?}");
    assert!(now.latency_max > within && now.carried_max > within, "{now:?}");
    assert!(delivery(&daemon).beyond_max_ns > within / 2, "it is measured");
}

/// Where the system permits it these threads have real-time priority, below the disks', and the
/// daemon says which it is. At least one processor is left to others.
#[test]
fn threads_that_carry_answers_have_the_priority_that_the_system_permits() {
    let _one_serving = locked_serving();
    let daemon = daemon();
    let permitted = std::thread::spawn(engine::deliver_in_time).join().unwrap().is_ok();
    assert_eq!(daemon.client.status().unwrap().delivery_realtime, permitted);
    // A connection that they serve: they have begun.
    let in_time = InTime {
        len: Bytes::kib(4),
        within: Duration::from_secs(1),
        every: Duration::from_secs(1),
    };
    let handle = daemon.client.best_effort_in_time("v", in_time);
    let found = threads();
    const FIFO: u32 = 1; // SCHED_FIFO
    let expected = if permitted { (FIFO, 10) } else { (0, 0) };
    assert!(!found.is_empty());
    assert!(found.iter().all(|&one| one == expected), "{found:?}, permitted: {permitted}");
    drop(handle);
}
