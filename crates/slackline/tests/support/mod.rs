//! The built command in a directory of its own: pools on files, a daemon that is
//! started and killed, and the words that come out.
//!
//! Readiness is what the daemon tells its service manager, so that no test waits
//! for a while and hopes.
#![allow(dead_code)] // each test file uses its part

pub mod forgetful;
pub mod fsx;

use std::io::{self, Read};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// A disk that is quick enough for quick tests.
pub const PROFILE: &str = "\
kind = 'linear'
source = 'stated by the tests'
confidence = 'none: a loaded machine may be slower'
capacity = '256MiB'
flush = '2ms'
[linear]
depth = 1
latency = '1ms'
read = { fixed = '1ms', rate = '100MB/s' }
write = { fixed = '1ms', rate = '100MB/s' }
";

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory that goes away with the test.
pub struct Scratch(TempDir);

impl Scratch {
    pub fn new() -> Self {
        Self(tempfile::Builder::new().prefix("slackline-").tempdir().unwrap())
    }

    /// The same where files lie in memory.
    pub fn in_memory() -> Self {
        let mut made = tempfile::Builder::new();
        Self(made.prefix("slackline-").tempdir_in("/dev/shm").unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// An emulated disk over a file of that name.
    pub fn disk(&self, name: &str) -> String {
        format!("emulated:laptop-4200:{}", self.path(name).display())
    }

    /// Runs the command to its end, with this directory's daemon as the one to ask.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, &[])
    }

    /// The same, with bytes on standard input.
    pub fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feed = std::thread::spawn(move || {
            // The command may end before it has read everything.
            let _ = io::Write::write_all(&mut stdin, &input);
        });
        let ran = Ran::from(child.wait_with_output().unwrap());
        feed.join().unwrap();
        assert!(!ran.err.contains("panicked"), "{args:?}: {}", ran.err);
        ran
    }

    /// The command, not yet started, with pipes on all sides.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slackline"));
        command
            .args(args)
            .env("SLACKLINE_SOCKET", self.path("s.sock"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The path of a file here, as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Makes a pool on new files of these names. Its profile is stated, not
    /// measured, so that what is admitted does not depend on the machine.
    pub fn make_pool(&self, files: &[&str]) -> Vec<String> {
        self.make_pool_of(files, "256MiB")
    }

    /// The same, each file of this size.
    pub fn make_pool_of(&self, files: &[&str], size: &str) -> Vec<String> {
        let profile = self.text("profile.toml");
        std::fs::write(&profile, PROFILE).unwrap();
        let files: Vec<String> = files.iter().map(|name| self.text(name)).collect();
        let mut args = vec!["pool", "create", "test", "--size", size, "--profile", &profile];
        args.extend(files.iter().map(String::as_str));
        self.run(&args).succeeded();
        files
    }

    /// Starts the daemon on these disks and waits until it is ready.
    pub fn serve(&self, disks: &[String]) -> Daemon {
        self.try_serve(disks, &[]).unwrap_or_else(|ran| panic!("no daemon: {}", ran.err))
    }

    /// The same with other arguments than a short time between commits; what it
    /// said, where it did not come up.
    pub fn try_serve(&self, disks: &[String], more: &[&str]) -> Result<Daemon, Ran> {
        self.start(disks, more, None)
    }

    /// Starts a daemon whose service manager wants to hear from it often.
    pub fn serve_watched(&self, disks: &[String]) -> Daemon {
        self.start(disks, &[], Some("40000")).unwrap_or_else(|ran| panic!("no daemon: {}", ran.err))
    }

    fn start(
        &self,
        disks: &[String],
        more: &[&str],
        watchdog_us: Option<&str>,
    ) -> Result<Daemon, Ran> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let notify = self.path(&format!("notify-{number}"));
        let socket = UnixDatagram::bind(&notify).unwrap();
        // Only how often to look whether the process is still there.
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // A test that is killed takes its daemon along: the pipe to it ends. Profiles stay
        // as they are, though a busy machine does not hold to them.
        let mut args = vec!["serve", "--end-with-input", "--no-remeasure", "--memory", "64MiB"];
        let quick = &["--commit-interval", "100ms"][..];
        args.extend(if more.is_empty() { quick } else { more });
        args.extend(disks.iter().map(String::as_str));
        let mut command = self.command(&args);
        let log = self.path(&format!("log-{number}"));
        command.env("NOTIFY_SOCKET", &notify).stdout(Stdio::null());
        // Not where this machine's daemon keeps its own.
        command.env("STATE_DIRECTORY", self.path("state"));
        command.stderr(std::fs::File::create(&log).unwrap());
        if let Some(us) = watchdog_us {
            command.env("WATCHDOG_USEC", us);
        }
        let mut child = command.spawn().unwrap();
        loop {
            let mut word = [0; 64];
            match socket.recv(&mut word) {
                Ok(len) if &word[..len] == b"READY=1" => {
                    let input = child.stdin.take();
                    return Ok(Daemon { child, log, notify: socket, input });
                }
                Ok(_) => {}
                Err(_) => {
                    if let Some(status) = child.try_wait().unwrap() {
                        let err = std::fs::read_to_string(&log).unwrap();
                        assert!(!err.contains("panicked"), "{err}");
                        return Err(Ran { code: status.code(), out: Vec::new(), err });
                    }
                }
            }
        }
    }
}

/// A running daemon; killed when dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
    /// The daemon's words to its service manager.
    pub notify: UnixDatagram,
    /// It lives as long as this is open; waiting for its end must not close it.
    input: Option<ChildStdin>,
}

impl Daemon {
    /// Ends it at once, as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.check_log();
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Stops its process, and waits until no thread of it goes on.
    pub fn stop(&self) {
        self.signal("STOP");
        let tasks = format!("/proc/{}/task", self.child.id());
        wait_until(|| {
            std::fs::read_dir(&tasks).unwrap().all(|task| {
                let stat = std::fs::read_to_string(task.unwrap().path().join("stat"));
                // Behind the name, which may have brackets of its own.
                stat.is_ok_and(|stat| {
                    stat.rsplit_once(") ").is_some_and(|it| it.1.starts_with('T'))
                })
            })
        });
    }

    /// Ends its standard input and waits for its end: the exit code.
    pub fn end_input(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }

    /// Waits for its end: the exit code, and what it has said.
    pub fn wait(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        (status.code(), self.check_log())
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The first line of what it says with `what` in it. A thread of its own writes what it says, a little
    /// after it serves.
    pub fn line_with(&self, what: &str) -> String {
        let line = || self.said().lines().find(|line| line.contains(what)).map(str::to_owned);
        wait_until(|| line().is_some());
        line().unwrap()
    }

    fn check_log(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap();
        assert!(!log.contains("panicked"), "{log}");
        log
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal by its name to one process.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Longer than this nothing takes, however busy the machine is: whoever still waits would wait for
/// ever, and whoever runs the tests would not know for what.
const HANGS: Duration = Duration::from_secs(600);

/// Waits for as long as it takes.
#[track_caller]
pub fn wait_until(mut done: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !done() {
        assert!(began.elapsed() < HANGS, "this does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How many offsets were told whole in this file so far.
pub fn acknowledged(acks: &str) -> usize {
    std::fs::read_to_string(acks).unwrap_or_default().matches('\n').count()
}

/// A command that has run.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), out: output.stdout, err }
    }
}

impl Ran {
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", String::from_utf8_lossy(&self.out), self.err);
        self
    }

    /// A recording took all of its source. Whether the source was slowed (4) depends on how busy
    /// the machine is where it brings more than the contract has.
    #[track_caller]
    pub fn recorded(self) -> Self {
        if self.code == Some(4) {
            assert!(self.err.contains("was slowed"), "{}", self.err);
            return self;
        }
        self.succeeded()
    }

    /// Ended with this code, and said on standard error one line what and one
    /// line what to do, in which each of `words` stands.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.err);
        assert!(
            self.err.contains("slackline: ") && self.err.contains("\n  next: "),
            "{}",
            self.err
        );
        for word in words {
            assert!(self.err.contains(word), "\"{word}\" is not in: {}", self.err);
        }
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}

/// Bytes that tell their place: a different stream for each seed.
pub struct Noise {
    seed: u64,
    at: u64,
    left: u64,
}

/// `len` bytes of the stream `seed`.
pub fn noise(seed: u64, len: u64) -> Noise {
    Noise { seed, at: 0, left: len }
}

impl Noise {
    /// All of it.
    pub fn bytes(mut self) -> Vec<u8> {
        let mut all = Vec::new();
        self.read_to_end(&mut all).unwrap();
        all
    }
}

/// A source that gives its bytes at about 10 MB/s, as a camera does: a recording takes them as
/// fast as they come. False where nobody takes all of it.
pub fn give(mut source: Noise, mut to: impl io::Write) -> bool {
    loop {
        match io::copy(&mut (&mut source).take(100_000), &mut to) {
            Ok(0) => return true,
            Ok(_) => std::thread::sleep(Duration::from_millis(10)),
            Err(_) => return false,
        }
    }
}

fn mix(seed: u64, word: u64) -> [u8; 8] {
    let mut z = (seed << 40 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).to_le_bytes()
}

impl Read for Noise {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = (buf.len() as u64).min(self.left);
        for (i, byte) in (self.at..self.at + len).zip(&mut *buf) {
            *byte = mix(self.seed, i / 8)[(i % 8) as usize];
        }
        self.at += len;
        self.left -= len;
        Ok(len as usize)
    }
}

/// True where `bytes` is how the stream `seed` begins.
pub fn begins(seed: u64, bytes: &[u8]) -> bool {
    noise(seed, bytes.len() as u64).bytes() == bytes
}

/// Changes some bytes of a file.
pub fn damage(path: &Path, offset: u64, change: impl FnOnce(&mut [u8; 1])) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0; 1];
    file.read_exact_at(&mut byte, offset).unwrap();
    change(&mut byte);
    file.write_all_at(&byte, offset).unwrap();
}
