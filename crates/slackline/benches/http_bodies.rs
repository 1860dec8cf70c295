//! The bytes of a volume over HTTP, beside nginx with the same bytes.
//!
//! `cargo bench -p slackline --bench http_bodies`. Once the daemon's disk and nginx's file are in
//! memory (`/dev/shm`), and once in `SLACKLINE_BENCH_DIR`, or where temporary files go; all are
//! removed at the end. The client is this process, the same for all, on connections that are kept.
//! All are at ordinary priority, and are asked in turns, in one run, over a socket of the machine and over TCP without
//! encryption. What each does for a byte:
//!
//! * the daemon reads it from its disk into memory of the pool (a schedule lies between, and where
//!   the disk permits it, it goes past the kernel's cache), and writes it to the socket from there;
//! * nginx sends it from the kernel's cache by `sendfile`, as it is delivered: without a copy;
//! * nginx with `sendfile off` reads it into its own memory and writes it to the socket from there.
//!
//! A file in memory is in the kernel's cache for all of them. On a disk, the kernel is told to forget
//! nginx's file before it is asked for, so that all of them read the disk; there is one client there,
//! since of several, all but the first would find nginx's file in the cache. Where nginx is not installed, this says so and does nothing else.
//! `SLACKLINE_QUICK`: a short round of each, which shows that it runs and nothing else.
#![allow(clippy::print_stdout)]

mod served;

use client::control::VolumeCreate;
use rustix::fs::{Advice, fadvise};
use served::beside::{Figures, Side, Work, is_quick, mixed};
use served::{Daemon, PROFILE, Peer, folder, memory};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use units::Bytes;

/// What is in a GET: all, or a range of this many bytes.
const JOBS: [(&str, Option<u64>, usize); 4] = [
    ("all, 1 client, MB", None, 1),
    ("all, 4 clients, MB", None, 4),
    ("1 MiB at random, 4 clients, answers", Some(1 << 20), 4),
    ("4 KiB at random, 4 clients, answers", Some(4096), 4),
];

/// The most that a client takes from its socket at once.
const TAKEN: usize = 256 * 1024;

fn size() -> Bytes {
    if is_quick() { Bytes::mib(8) } else { Bytes::mib(512) }
}

/// A server, and what it is asked for.
struct Served {
    place: Place,
    path: &'static str,
    token: Option<String>,
    /// What the kernel is to forget before all of it is asked for.
    forgotten: Option<PathBuf>,
}

enum Place {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

fn main() {
    // Debian has it where only root looks.
    let nginx = ["nginx", "/usr/sbin/nginx"].into_iter().find(|nginx| {
        Command::new(nginx).arg("-v").output().is_ok_and(|output| output.status.success())
    });
    let Some(nginx) = nginx else {
        println!("NOT RUN: nginx is not installed (apt-get install nginx-light)");
        return;
    };
    println!("in memory:\n");
    compare(nginx, &memory(), true);
    println!("on a disk, where that is one:\n");
    compare(nginx, &folder(), false);
    println!("aim: at least 0.9 of nginx");
}

/// Compares on files in this folder.
fn compare(nginx: &str, folder: &TempDir, in_memory: bool) {
    let file = |name: &str| folder.path().join(name).display().to_string();
    let bytes: Vec<u8> = (0..size().get()).map(|at| (at / 4096 * 31 + at) as u8).collect();
    std::fs::create_dir(file("www")).expect("a place for gigabytes");
    std::fs::write(file("www/v"), &bytes).expect("a place for gigabytes");
    let written = File::open(file("www/v")).and_then(|file| file.sync_all());
    written.expect("a place for gigabytes");
    std::fs::write(file("profile.toml"), PROFILE).expect("a place for gigabytes");
    let port = free_port();
    let listen = port.to_string();
    let state = file("state");
    // At the priority of the others: on a machine that is busy otherwise, it would go before them.
    let serve = ["--no-realtime", "--listen", &listen, "--plain-tcp", "--state-dir", &state];
    let daemon =
        Daemon::on(folder, &file("disk.img"), &["--profile", &file("profile.toml")], &serve);
    daemon.client.volume_create(&VolumeCreate::new("v", size())).expect("room for it");
    let mut volume = daemon.client.best_effort("v").expect("it was made");
    for (at, part) in bytes.chunks(1 << 20).enumerate() {
        volume.write_at(Bytes::MIB * at as u64, part).expect("a disk that works");
    }
    volume.sync().expect("a disk that works");
    let mut making = Command::new(env!("CARGO_BIN_EXE_slackline"));
    making.args(["token", "make", "--volume", "v", "--verbs", "read", "--socket"]);
    let made = making.arg(file("s.sock")).output().expect("the built command");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let token = String::from_utf8_lossy(&made.stdout).trim().to_owned();

    let ours = |place, token| Side {
        name: "Slackline",
        how: Served { place, path: "/v1/volumes/v/data", token, forgotten: None },
        processes: vec![daemon.process()],
    };
    let forgotten = (!in_memory).then(|| folder.path().join("www/v"));
    let sending = Nginx::start(nginx, folder.path(), "on", forgotten.clone());
    let copying = Nginx::start(nginx, folder.path(), "off", forgotten);
    for is_tcp in [false, true] {
        let sides = match is_tcp {
            false => [
                ours(Place::Unix(folder.path().join("s.sock")), None),
                sending.side("nginx", Place::Unix(sending.socket.clone())),
                copying.side("no sendfile", Place::Unix(copying.socket.clone())),
            ],
            true => [
                ours(Place::Tcp(port), Some(token.clone())),
                sending.side("nginx", Place::Tcp(sending.port)),
                copying.side("no sendfile", Place::Tcp(copying.port)),
            ],
        };
        sides.iter().for_each(|side| side.how.is_the_same(&bytes));
        let mut figures = Figures::new(&sides);
        for (title, range, clients) in JOBS {
            if !in_memory && (range.is_some() || clients > 1) {
                continue;
            }
            let unit = if range.is_some() { 1.0 } else { 1e6 };
            figures.job(title, (&sides, clients, unit), |served, work, number| {
                served.read(range, work, number as u64);
            });
        }
        println!("{}", if is_tcp { "over TCP" } else { "over a socket of the machine" });
        println!("{figures}");
    }
}

fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it listens")
}

/// nginx as Debian delivers it, with a socket of the machine and a port.
struct Nginx {
    server: Peer,
    socket: PathBuf,
    port: SocketAddr,
    forgotten: Option<PathBuf>,
}

impl Nginx {
    fn start(program: &str, folder: &Path, sendfile: &str, forgotten: Option<PathBuf>) -> Self {
        let own = folder.join(format!("nginx-{sendfile}"));
        std::fs::create_dir(&own).expect("a folder");
        let (socket, port) = (own.join("s.sock"), free_port());
        let at = own.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|what| format!("{what}_temp_path {at}/{what};\n"))
            .concat();
        // Its workers read what only root may, where root runs this.
        let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
        let config = format!(
            "{user}\ndaemon off;\npid {at}/pid;\nerror_log {at}/errors;\nworker_processes auto;\n\
             events {{ worker_connections 768; }}\n\
             http {{\n{temporary}access_log off;\nsendfile {sendfile};\ntcp_nopush on;\n\
             keepalive_requests 1000000000;\n\
             server {{ listen unix:{};\nlisten {port};\nroot {}/www; }}\n}}\n",
            socket.display(),
            folder.display(),
        );
        let path = own.join("nginx.conf");
        std::fs::write(&path, config).expect("a folder");
        let mut command = Command::new(program);
        command.arg("-c").arg(&path).arg("-e").arg(own.join("errors"));
        let is_ready = || UnixStream::connect(&socket).is_ok();
        let server = Peer::start(&mut command, is_ready).expect("it was there");
        Self { server, socket, port, forgotten }
    }

    fn side(&self, name: &'static str, place: Place) -> Side<Served> {
        let process = self.server.process();
        let children = format!("/proc/{process}/task/{process}/children");
        let children = std::fs::read_to_string(children).expect("a kernel that tells");
        let workers = children.split_whitespace().map(|worker| worker.parse().expect("a number"));
        let processes = workers.chain([process]).collect();
        let how = Served { place, path: "/v", token: None, forgotten: self.forgotten.clone() };
        Side { name, how, processes }
    }
}

trait Socket: Read + Write {}
impl<T: Read + Write> Socket for T {}

impl Served {
    fn connect(&self) -> Box<dyn Socket> {
        match &self.place {
            Place::Unix(path) => Box::new(UnixStream::connect(path).expect("it listens")),
            Place::Tcp(at) => {
                let stream = TcpStream::connect(at).expect("it listens");
                stream.set_nodelay(true).expect("a socket");
                Box::new(stream)
            }
        }
    }

    /// Reads until the time is over: counts bytes, or, of ranges, answers.
    fn read(&self, range: Option<u64>, work: &Work, number: u64) {
        let mut socket = self.connect();
        let mut buffer = vec![0; TAKEN];
        for step in 0.. {
            let place = range.map(|len| {
                let first = mixed(step * 64 + number) % (size().get() / len) * len;
                (first, first + len - 1)
            });
            if let Some(path) = &self.forgotten {
                let file = File::open(path).expect("it was made");
                fadvise(file, 0, None, Advice::DontNeed).expect("a kernel that forgets");
            }
            let count = if range.is_some() { 0 } else { 1 };
            let is_whole = self.ask(&mut *socket, place, &mut buffer, |taken| {
                work.add(taken.len() as u64 * count);
                !work.is_over()
            });
            if work.is_over() || !is_whole {
                return;
            }
            work.add(1 - count);
        }
    }

    /// What is measured is the same on all sides.
    fn is_the_same(&self, bytes: &[u8]) {
        let mut socket = self.connect();
        let mut buffer = vec![0; TAKEN];
        for range in [None, Some((4096, 8191)), Some((77, 1 << 20))] {
            let mut all = Vec::new();
            self.ask(&mut *socket, range, &mut buffer, |taken| {
                all.extend_from_slice(taken);
                true
            });
            let (first, last) = range.unwrap_or((0, bytes.len() as u64 - 1));
            assert!(all == bytes[first as usize..=last as usize], "{range:?} of {}", self.path);
        }
    }

    /// One request; says whether its answer was taken to the end.
    fn ask(
        &self,
        socket: &mut dyn Socket,
        range: Option<(u64, u64)>,
        buffer: &mut [u8],
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        let mut head = format!("GET {} HTTP/1.1\r\nhost: localhost\r\n", self.path);
        if let Some(token) = &self.token {
            head += &format!("authorization: Bearer {token}\r\n");
        }
        if let Some((first, last)) = range {
            head += &format!("range: bytes={first}-{last}\r\n");
        }
        head += "\r\n";
        socket.write_all(head.as_bytes()).expect("it listens");
        let mut filled = 0;
        let body = loop {
            let read = socket.read(&mut buffer[filled..]).expect("an answer");
            assert!(read > 0, "an answer that ends in its head");
            filled += read;
            if let Some(at) = buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let said = String::from_utf8_lossy(&buffer[..body]).to_ascii_lowercase();
        let status = if range.is_some() { "http/1.1 206 " } else { "http/1.1 200 " };
        assert!(said.starts_with(status), "{said}");
        let length = said.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut left: usize = length.and_then(|len| len.parse().ok()).expect("a length");
        let mut goes_on = take(&buffer[body..filled]);
        left -= filled - body;
        while left > 0 && goes_on {
            let most = left.min(buffer.len());
            let read = socket.read(&mut buffer[..most]).expect("an answer");
            assert!(read > 0, "an answer that ends in its body");
            left -= read;
            goes_on = take(&buffer[..read]);
        }
        left == 0
    }
}
