//! A user who holds on to all that a daemon gives away for nothing: connections that ask
//! nothing, greetings and bodies that stop in the middle, answers that nobody takes, a
//! file under a lease, descriptors that take an hour to close. Others are served beside that, streams under contract have no late
//! request, and the daemon stops.
//!
//! The user and another one are processes of their own (65534 and 65533), which only root
//! can start. Judged by what the schedule counted and by who was served, never by a clock:
//! [`PATIENCE`] is for what would never end.
#![allow(clippy::print_stdout)] // what was tried, and figures for --nocapture

#[path = "support/real.rs"]
mod real;

use client::Client;
use client::control::VolumeCreate;
use client::units::Bytes;
use daemon::config::SocketMode;
use daemon::quotas::own_uid;
use real::{Real, byte, bytes, contract};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::frame::{BODY_MAX, Head, VERSION};

/// What has not come by then does not come. What is waited for takes seconds.
const PATIENCE: Duration = Duration::from_secs(100);
const ATTACKER: u32 = 65_534;
const ANOTHER: u32 = 65_533;

/// What the attacker holds, and how often.
const ATTACKS: &[(&str, usize)] = &[
    ("asks nothing on control connections", 70),
    ("sends half of a control request", 70),
    ("sends half a greeting", 4200),
    ("sends half a body", 250),
    ("takes no answers", 100),
    ("offers a file under a lease", 40),
    ("brings descriptors that take an hour to close", 40),
];

// The attacker's side.

/// One thing that is held; none where the daemon did not take it.
fn hold(attack: &str, number: usize, socket: &Path) -> Option<UnixStream> {
    let data = wire::socket::data_path(socket);
    let connect = |to: &Path, said: &[u8]| {
        let mut connection = UnixStream::connect(to).ok()?;
        connection.set_nonblocking(true).unwrap();
        let _ = connection.write(said); // refused, it is closed already
        Some(connection)
    };
    let hello = Head::HelloVolume { version: VERSION, priority: None, writer: None };
    match attack {
        "asks nothing on control connections" => {
            let said: &[u8] = match number % 2 {
                0 => b"",
                _ => b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n",
            };
            connect(socket, said)
        }
        "sends half of a control request" => {
            let head = "POST /v1/volumes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
            let body = "content-length: 1000\r\n\r\n{";
            connect(
                socket,
                [head, if number.is_multiple_of(2) { "" } else { body }].concat().as_bytes(),
            )
        }
        "sends half a greeting" => {
            let hello = hello.encode(200);
            connect(&data, if number.is_multiple_of(2) { &hello[..16] } else { &hello })
        }
        "sends half a body" => {
            let write = Head::WriteAt { tag: 1, offset: Bytes::ZERO }.encode(BODY_MAX);
            let said = [&hello.encode(6)[..], b"attack", &write, &[1; 100_000]].concat();
            connect(&data, &said)
        }
        "takes no answers" => {
            let read = Head::ReadAt { tag: 1, offset: Bytes::ZERO, len: Bytes::MIB }.encode(0);
            connect(&data, &[&hello.encode(6)[..], b"attack", &read.repeat(8)].concat())
        }
        "brings descriptors that take an hour to close" => {
            let nbd = wire::socket::nbd_path(socket);
            let long = takes_an_hour();
            let connection = if number.is_multiple_of(2) {
                let to = [socket, &data, &nbd][number / 2 % 3];
                let connection = connect(to, b"")?;
                let _ = send_with(&connection, b"x", &[&long]);
                connection
            } else {
                // When it is asked for: that one, with another, behind it, or with something else.
                let asked = br#"{"contract":{"rate_bytes_per_second":1000,"block_bytes":4096,"burst_bytes":4096},"start_bytes":0}"#;
                let hello = Head::HelloFile { version: VERSION }.encode(asked.len());
                let mut connection = connect(&data, &[&hello[..], asked].concat())?;
                connection.set_nonblocking(false).unwrap();
                connection.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
                let mut give = [0; wire::frame::HEAD_LEN];
                if connection.read_exact(&mut give).is_ok() && give == Head::Give.encode(0) {
                    let given = Head::Given.encode(0);
                    let _ = match number / 2 % 4 {
                        0 => send_with(&connection, &given, &[&long]),
                        1 => send_with(&connection, &given, &[&long, &long]),
                        2 => send_with(&connection, &given, &[&long])
                            .and_then(|()| send_with(&connection, b"x", &[&long])),
                        _ => send_with(&connection, b"x", &[&long]),
                    };
                }
                connection
            };
            // Whoever has the last one waits.
            std::thread::spawn(move || drop(long));
            Some(connection)
        }
        other => panic!("{other}"),
    }
}

/// A connection to itself that waits an hour for what nobody takes, when it is closed.
fn takes_an_hour() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    rustix::net::sockopt::set_socket_linger(&one, Some(Duration::from_secs(3_600))).unwrap();
    one.set_nonblocking(true).unwrap();
    while one.write(&[0; 1 << 16]).is_ok() {}
    std::mem::forget(other); // until this process ends
    one
}

fn send_with(to: &UnixStream, said: &[u8], what: &[&TcpStream]) -> std::io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<_> = what.iter().map(|what| what.as_fd()).collect();
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(to, &[std::io::IoSlice::new(said)], &mut control, flags)?;
    Ok(())
}

/// Whether the daemon has closed what was held. What it says is left unread.
fn is_closed(connection: &UnixStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut asked = [PollFd::new(connection, PollFlags::RDHUP)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&now)).is_ok() && !asked[0].revents().is_empty()
}

/// Holds all of it, and takes again what the daemon takes away, until this is killed.
fn attack(attack: &str, many: usize, socket: &Path) -> ! {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let mut held: Vec<_> = (0..many).map(|number| hold(attack, number, socket)).collect();
    println!("ready");
    loop {
        std::thread::sleep(Duration::from_secs(1));
        for (number, one) in held.iter_mut().enumerate() {
            if one.as_ref().is_none_or(is_closed) {
                *one = hold(attack, number, socket);
            }
        }
    }
}

/// Python can set a lease without a word of `unsafe`.
const LEASE: &str = r#"
import fcntl, os, signal, socket, struct, sys, time
data, path, many, version = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with open(path, "wb") as file:
    file.write(b"x" * 1000000)
file = os.open(path, os.O_RDONLY)
signal.signal(signal.SIGIO, signal.SIG_IGN)
body = (b'{"contract":{"rate_bytes_per_second":1000,"block_bytes":4096,"burst_bytes":4096},'
        b'"start_bytes":0}')
def head(length, kind, code=0):
    return struct.pack("<IBBHQQQ", length, kind, 0, code, 0, 0, 0)
held = [None] * many
print("ready", flush=True)
while True:
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        pass # it is being broken
    for at, one in enumerate(held):
        try:
            if one is not None and one.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) is not None:
                one = None
        except BlockingIOError:
            pass
        except OSError:
            one = None
        if one is None:
            try:
                one = socket.socket(socket.AF_UNIX)
                one.settimeout(2)
                one.connect(data)
                one.sendall(head(len(body), 32, version) + body)
                if one.recv(32) == head(0, 98):
                    socket.send_fds(one, [head(0, 33)], [file])
            except OSError:
                pass
            held[at] = one
    time.sleep(0.2)
"#;

/// The programs of the tests below, each in a process of its own; nothing by itself.
#[test]
fn a_program_of_its_own() {
    let Ok(what) = std::env::var("SLACKLINE_CROWD") else { return };
    let parts: Vec<_> = what.split('|').collect();
    let socket = Path::new(parts[1]);
    match parts[0] {
        "another" => be_served(&Client::connect(socket).unwrap(), "another"),
        "a volume" => make_volume(&Client::connect(socket).unwrap(), "attack"),
        what => {
            let many = ATTACKS.iter().find(|(name, _)| *name == what).unwrap().1;
            attack(what, many, socket)
        }
    }
    println!("ready");
}

// The other side.

fn make_volume(client: &Client, name: &str) {
    client.volume_create(&VolumeCreate::new(name, Bytes::mib(8))).unwrap();
}

/// Does what programs do: control, best effort, a stream.
fn be_served(client: &Client, name: &str) {
    client.health().unwrap();
    make_volume(client, name);
    let mut volume = client.best_effort(name).unwrap();
    let (bytes, mut back) = (bytes(0, 1 << 20), vec![0; 1 << 20]);
    volume.write_at(Bytes::ZERO, &bytes).unwrap();
    volume.sync().unwrap();
    volume.read_at(Bytes::ZERO, &mut back).unwrap();
    assert!(back == bytes);
    let mut reader = client.reader(name, contract(100_000, Bytes::kib(64)), Bytes::ZERO).unwrap();
    reader.read_exact(&mut back[..4096]).unwrap();
    assert!(back[..4096] == bytes[..4096]);
    reader.close().unwrap();
    client.volume_delete(name).unwrap();
}

/// Does it on a thread of its own, and waits for that for as long as it may take.
fn within_patience<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || drop(done.send(work())));
    is_done.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// A daemon that everybody may use, and a copy of this program that everybody may run.
struct Scene {
    /// None once it has been told to stop.
    daemon: Option<Real>,
    program: PathBuf,
    attackers: Vec<Child>,
}

impl Scene {
    fn new() -> Self {
        // Its times are the model's, whatever else goes on on this host's disks.
        let daemon = Real::emulated_in_real_time("ssd-sata", 512, SocketMode(0o666));
        let program = daemon.dir.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        for path in [program.as_path(), daemon.dir.path()] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let scene = Self { daemon: Some(daemon), program, attackers: Vec::new() };
        scene.run_as(ATTACKER, "a volume");
        scene
    }

    fn daemon(&self) -> &Real {
        self.daemon.as_ref().expect("it has not been told to stop")
    }

    fn start_as(&self, uid: u32, what: &str) -> Child {
        let what = format!("{what}|{}", self.daemon().client.socket().display());
        let mut command = Command::new(&self.program);
        command.args(["--exact", "a_program_of_its_own", "--nocapture"]);
        command.env("SLACKLINE_CROWD", what).stdout(Stdio::piped()).uid(uid).gid(uid);
        command.spawn().unwrap()
    }

    /// Runs a program to its end.
    fn run_as(&self, uid: u32, what: &str) {
        let mut child = self.start_as(uid, what);
        wait_until_ready(&mut child, what);
        assert!(child.wait().unwrap().success());
    }

    /// Starts an attack; false where this host does not have what it needs.
    fn attacked_by(&mut self, attack: &str, many: usize) -> bool {
        let mut child = match attack {
            "offers a file under a lease" => match self.lease(many) {
                Ok(child) => child,
                Err(error) => {
                    skips::not_run(format!("{attack}: needs python3: {error}"));
                    return false;
                }
            },
            "brings descriptors that take an hour to close" => {
                let (one, _) = UnixStream::pair().unwrap();
                if let Err(error) = engine::take_descriptors(one.as_fd(), false) {
                    skips::not_run(format!(
                        "{attack}: needs Linux 6.16 ({error}), to tell it to take none"
                    ));
                    return false;
                }
                self.start_as(ATTACKER, attack)
            }
            _ => self.start_as(ATTACKER, attack),
        };
        wait_until_ready(&mut child, attack);
        self.attackers.push(child);
        true
    }

    fn lease(&self, many: usize) -> std::io::Result<Child> {
        let folder = self.daemon().dir.path().join("leased");
        let _ = std::fs::create_dir(&folder);
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777))?;
        let mut command = Command::new("python3");
        command.arg("-c").arg(LEASE).arg(self.daemon().data_socket());
        command.arg(folder.join("file")).arg(many.to_string()).arg(VERSION.to_string());
        command.stdout(Stdio::piped()).uid(ATTACKER).gid(ATTACKER).spawn()
    }

    fn is_served(&self) {
        let client = self.daemon().client.clone();
        within_patience("root is served", move || be_served(&client, "roots"));
        let mut child = self.start_as(ANOTHER, "another");
        wait_until_ready(&mut child, "another user is served");
        assert!(child.wait().unwrap().success());
    }

    fn stops(mut self) {
        let mut daemon = self.daemon.take().expect("told once");
        let (ended, _daemon) = within_patience("the daemon stops", move || (daemon.stop(), daemon));
        ended.expect("in order, with the final commit");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for attacker in &mut self.attackers {
            let _ = attacker.kill();
            let _ = attacker.wait();
        }
    }
}

fn wait_until_ready(child: &mut Child, what: &str) {
    let mut output = child.stdout.take().unwrap();
    let ready = move || {
        let mut said = Vec::new();
        let mut buf = [0; 256];
        while !String::from_utf8_lossy(&said).contains("ready") {
            match output.read(&mut buf).unwrap() {
                0 => return Err(String::from_utf8_lossy(&said).into_owned()),
                read => said.extend(&buf[..read]),
            }
        }
        Ok::<ChildStdout, String>(output)
    };
    let output = within_patience(what, ready);
    child.stdout = Some(output.unwrap_or_else(|said| panic!("{what}: it ended: {said}")));
}

/// One scene at a time; none where it cannot be set.
fn stage() -> Option<MutexGuard<'static, ()>> {
    static STAGE: Mutex<()> = Mutex::new(());
    if own_uid() != 0 {
        skips::not_run("needs root");
        return None;
    }
    Some(STAGE.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn each_attack_alone_leaves_others_served_and_the_daemon_able_to_stop() {
    let Some(_stage) = stage() else { return };
    let only = std::env::var("SLACKLINE_ATTACK").ok();
    let chosen = |attack: &str| only.as_ref().is_none_or(|only| attack.contains(only));
    for &(attack, many) in ATTACKS.iter().filter(|(attack, _)| chosen(attack)) {
        let mut scene = Scene::new();
        if scene.attacked_by(attack, many) {
            println!("a user {attack}, {many} times");
            scene.is_served();
            scene.stops();
        }
    }
}

const BLOCK: Bytes = Bytes::kib(64);
/// Slow, so that whatever a loaded host does in a while is no lateness.
const RATE: u64 = 300_000;
/// Recorded in the volume that all read.
const LEN: u64 = 245 * 4096;

/// Reads round and round, a little slower than its rate, and checks every byte.
fn read_well(client: Client, stop: &AtomicBool) -> client::control::Stream {
    let mut reader = client.reader("v", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let mut buf = vec![0; 20_000];
    while !stop.load(Ordering::Relaxed) {
        if reader.offset().get() + buf.len() as u64 > LEN {
            reader.seek(Bytes::ZERO).unwrap();
        }
        let offset = reader.offset().get();
        reader.read_exact(&mut buf).unwrap();
        assert!(buf.iter().zip(offset..).all(|(&got, offset)| got == byte(offset)));
        std::thread::sleep(Duration::from_millis(100));
    }
    reader.stats().unwrap()
}

/// Writes a little slower than its rate.
fn write_well(client: Client, stop: &AtomicBool) -> client::control::Stream {
    let mut writer = client.writer("w", contract(RATE, BLOCK), Bytes::ZERO).unwrap();
    let mut at = 0;
    while !stop.load(Ordering::Relaxed) {
        writer.write_all(&bytes(at, 20_000)).unwrap();
        at += 20_000;
        std::thread::sleep(Duration::from_millis(100));
    }
    let stats = writer.stats().unwrap();
    assert_eq!(writer.close().unwrap().get(), at);
    stats
}

#[test]
fn all_attacks_at_once_beside_four_streams() {
    let Some(_stage) = stage() else { return };
    let mut scene = Scene::new();
    scene.daemon().volume("v", Bytes::mib(4));
    scene.daemon().volume("w", Bytes::mib(128));
    let client = scene.daemon().client.clone();
    let mut volume = client.best_effort("v").unwrap();
    volume.write_at(Bytes::ZERO, &bytes(0, LEN as usize)).unwrap();
    drop(volume);
    let stop = Arc::new(AtomicBool::new(false));
    let streams: Vec<_> = [read_well as fn(_, &_) -> _, read_well, read_well, write_well]
        .into_iter()
        .map(|run| {
            let (client, stop) = (client.clone(), Arc::clone(&stop));
            std::thread::spawn(move || run(client, &stop))
        })
        .collect();
    scene.daemon().wait(|status| status.streams.len() == streams.len());
    for &(attack, many) in ATTACKS {
        scene.attacked_by(attack, many);
    }
    for _ in 0..3 {
        scene.is_served();
    }
    stop.store(true, Ordering::Relaxed);
    for stream in streams {
        let stats =
            within_patience("a stream ends", || stream.join().expect("every byte was right"));
        println!(
            "{:?}: {} requests, {} late, {} underruns",
            stats.mode, stats.requests, stats.late_requests, stats.underruns
        );
        assert_eq!((stats.late_requests, stats.underruns, stats.gap_bytes.get()), (0, 0, 0));
    }
    scene.stops();
}
