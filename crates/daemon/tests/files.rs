//! Ordinary files under contract, through the daemon: the bytes are the file's, the stream
//! is one like any other, and what cannot be promised is refused in words.
//!
//! Needs a temporary folder on ext4 or xfs; elsewhere only the refusals are tried.

#![allow(clippy::print_stdout)] // what another process was told

use crate::support;
use crate::support::{Running, noise};
use crate::users;
use client::control::Contract;
use client::units::{Bytes, Rate};
use client::{Code, Error};
use daemon::config::SocketMode;
use daemon::files::{DeviceSettings, Files, Settings};
use daemon::serve::ServeOptions;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use units::Duration;

const PROFILE: &str = "\
kind = 'linear'
source = 'stated by the tests'
confidence = 'none'
capacity = '64TiB'
flush = '2ms'
[linear]
depth = 2
latency = '1ms'
read = { fixed = '200us', rate = '100MB/s' }
write = { fixed = '2ms', rate = '100MB/s' }
";

/// A folder on the disk that the tests were built on, and a daemon that has a profile of it.
struct Scene {
    daemon: Running,
    folder: TempDir,
    /// Contracts can be given here.
    is_fit: bool,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("slackline-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap();
        let profile = folder.path().join("profile.toml");
        std::fs::write(&profile, PROFILE).unwrap();
        let is_fit = skips::is_fit_for_contracts(folder.path());
        let device = is_fit.then(|| {
            let probe = File::open(&profile).unwrap();
            engine::HostFile::take(probe.into()).unwrap().device().unwrap().name
        });
        let settings = Settings {
            device: vec![DeviceSettings {
                device: device.clone().unwrap_or_default(),
                profile: Some(profile),
                others: Some(Duration::from_millis(1)),
                ..DeviceSettings::default()
            }],
            ..Settings::default()
        };
        let files = Files::new(&settings, Duration::from_millis(2));
        let options = ServeOptions { files, ..ServeOptions::from(SocketMode(0o666)) };
        Self { daemon: Running::start_by(options), folder, is_fit }
    }

    /// The same; says so where not.
    fn is_fit(&self) -> bool {
        skips::can_run(self.is_fit, "needs a build folder on ext4 or xfs")
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        let mut file = File::create(&path).unwrap();
        file.write_all(bytes).unwrap();
        file.sync_all().unwrap();
        path
    }
}

fn at(rate: u64, block: Bytes) -> Contract {
    let rate_bytes_per_second = Rate::per_second(rate);
    Contract { rate_bytes_per_second, block_bytes: block, burst_bytes: block }
}

#[test]
fn a_file_comes_as_it_is_from_anywhere_to_its_last_odd_byte() {
    let scene = Scene::new();
    if !scene.is_fit() {
        return;
    }
    let bytes = noise(3 * 1024 * 1024 + 12_345);
    let path = scene.file("film", &bytes);
    let client = &scene.daemon.client;
    let cases = [(64, 4_000_000, 0), (256, 8_000_000, 100_001), (4, 300_000, bytes.len() - 5)];
    for (block, rate, start) in cases {
        let contract = at(rate, Bytes::kib(block));
        let mut reader = client.file_reader(&path, contract, Bytes::new(start as u64)).unwrap();
        let mut back = Vec::new();
        reader.read_to_end(&mut back).unwrap();
        assert!(back == bytes[start..], "{} of {}", back.len(), bytes.len() - start);
        reader.close().unwrap();
    }
    let device = client.file_devices().unwrap().devices.remove(0);
    assert_eq!((device.streams, device.profile.as_str()), (0, "stated by the tests"));
    assert!(device.requests >= 48 + 12 && !device.notes.is_empty(), "{device:?}");
}

/// Behind what was written there is a hole: it reads as zeros.
#[test]
fn a_hole_reads_as_zeros_and_reserved_space_as_well() {
    let scene = Scene::new();
    if !scene.is_fit() {
        return;
    }
    let path = scene.file("holes", &noise(70_000));
    File::options().write(true).open(&path).unwrap().set_len(900_001).unwrap();
    let contract = at(4_000_000, Bytes::kib(64));
    let mut reader = scene.daemon.client.file_reader(&path, contract, Bytes::ZERO).unwrap();
    let mut back = Vec::new();
    reader.read_to_end(&mut back).unwrap();
    assert_eq!(back.len(), 900_001);
    assert!(back[..70_000] == noise(70_000) && back[70_000..].iter().all(|&byte| byte == 0));
}

#[test]
fn it_is_a_stream_like_any_other_to_those_who_list_change_and_close() {
    let scene = Scene::new();
    if !scene.is_fit() {
        return;
    }
    let path = scene.file("film", &noise(2 << 20));
    let client = &scene.daemon.client;
    let mut reader = client.file_reader(&path, at(1_000_000, Bytes::kib(64)), Bytes::ZERO).unwrap();
    let id = reader.stream();
    let stream = client.stream(id).unwrap();
    assert_eq!(stream.volume, path.canonicalize().unwrap().display().to_string());
    assert!(stream.attached && !stream.user.is_empty());
    let faster = at(2_000_000, Bytes::kib(64));
    assert_eq!(client.stream_change(id, faster).unwrap().contract, faster);
    let error = client.stream_change(id, at(45_000_000, Bytes::kib(64))).unwrap_err();
    assert_eq!(error.code(), Some(Code::Refused), "{error}");
    assert_eq!(client.stream(id).unwrap().contract, faster);
    let error = client.stream_change(id, at(1_000_000, Bytes::kib(128))).unwrap_err();
    assert_eq!(error.code(), Some(Code::Invalid), "{error}");
    let mut some = vec![0; 4096];
    reader.read_exact(&mut some).unwrap();
    assert!(some == noise(4096));
    client.stream_close(id).unwrap();
    let mut rest = Vec::new();
    assert!(reader.read_to_end(&mut rest).is_err(), "its program hears of it");
    assert!(client.streams().unwrap().is_empty());
    // A pool's stream beside it is none of the files' business.
    let volume = client.reader("v", support::contract(), Bytes::ZERO).unwrap();
    assert_eq!(volume.stream(), 1);
}

/// The file is cut while it is read, and another grows: the end is where it is.
#[test]
fn a_file_that_is_cut_ends_there_and_one_that_grows_goes_on() {
    let scene = Scene::new();
    if !scene.is_fit() {
        return;
    }
    let bytes = noise(8 << 20);
    let path = scene.file("cut", &bytes);
    let client = &scene.daemon.client;
    let contract = at(1_000_000, Bytes::kib(64));
    let mut reader = client.file_reader(&path, contract, Bytes::ZERO).unwrap();
    let mut back = vec![0; 100_000];
    reader.read_exact(&mut back).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(200_000).unwrap();
    reader.read_to_end(&mut back).unwrap();
    // What was in the window before the cut may still come: it was promised.
    assert!(back.len() >= 200_000 && back.len() < 4 << 20, "{}", back.len());
    assert!(back[..200_000] == bytes[..200_000]);
    drop(reader);
    let path = scene.file("grows", &bytes[..100_000]);
    let mut reader = client.file_reader(&path, contract, Bytes::ZERO).unwrap();
    let mut back = Vec::new();
    reader.read_to_end(&mut back).unwrap();
    assert_eq!(back.len(), 100_000);
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(&bytes[100_000..300_000]).unwrap();
    file.sync_all().unwrap();
    reader.read_to_end(&mut back).unwrap();
    assert!(back == bytes[..300_000], "{}", back.len());
}

#[test]
fn what_cannot_be_promised_is_refused_in_words() {
    let scene = Scene::new();
    let client = &scene.daemon.client;
    let contract = at(1_000_000, Bytes::kib(64));
    let refused = |error: Error, code: Code, wanted: &str| {
        let problem = error.problem().unwrap_or_else(|| panic!("{error}")).clone();
        assert_eq!(problem.code, code, "{problem:?}");
        let said = format!("{} {}", problem.detail, problem.next_step);
        assert!(said.contains(wanted), "{said}");
    };
    let open = |path: &Path, contract| client.file_open(path, contract, Bytes::ZERO).unwrap_err();
    refused(open(scene.folder.path(), contract), Code::BadFile, "no regular file");
    refused(open(Path::new("/nowhere"), contract), Code::BadFile, "No such file");
    if let Ok(shared) = tempfile::Builder::new().prefix("slackline-").tempfile_in("/dev/shm") {
        let error = open(shared.path(), contract);
        if error.to_string().contains("tmpfs") {
            refused(error, Code::BadFile, "copy it to ext4 or xfs");
        }
    }
    let path = scene.file("plain", &noise(1 << 20));
    let writing = File::options().write(true).open(&path).unwrap();
    let error = client.file_open_given(&writing, contract, Bytes::ZERO).unwrap_err();
    refused(error, Code::BadFile, "not opened for reading");
    if !scene.is_fit() {
        return;
    }
    let error = open(&path, at(49_000_000, Bytes::kib(64)));
    assert!(error.refusal().is_some_and(|refusal| refusal.rate_max_bytes_per_second.get() > 0));
    refused(error, Code::Refused, "device ");
    refused(open(&path, at(1, Bytes::kib(5))), Code::Invalid, "power of two");
    let long = "at most 1 MiB of a file outside the pool";
    refused(open(&path, at(40_000_000, Bytes::mib(1) * 2)), Code::Invalid, long);
    assert!(client.streams().unwrap().is_empty());
}

/// What is given in place of one descriptor: none, two, one behind something else, or more behind it.
#[test]
fn only_the_descriptor_that_was_asked_for_is_taken() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::io::IoSlice;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use wire::frame::{HEAD_LEN, Head, VERSION};
    let scene = Scene::new();
    let file = File::open(scene.file("given", &noise(1 << 20))).unwrap();
    let send = |to: &UnixStream, said: &[u8], count: usize| {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = vec![file.as_fd(); count];
        assert!(count == 0 || control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(to, &[IoSlice::new(said)], &mut control, SendFlags::NOSIGNAL)
    };
    let (one, _) = UnixStream::pair().unwrap();
    let is_new = engine::take_descriptors(one.as_fd(), false).is_ok();
    let request = br#"{"contract":{"rate_bytes_per_second":1000,"block_bytes":4096,"burst_bytes":4096},"start_bytes":0}"#;
    let given = Head::Given.encode(0);
    let asked = || {
        let mut socket = UnixStream::connect(scene.daemon.data_socket()).unwrap();
        assert_eq!(send(&socket, b"x", 1).is_err(), is_new, "nobody has asked for one");
        if !is_new {
            socket = UnixStream::connect(scene.daemon.data_socket()).unwrap();
        }
        let hello = Head::HelloFile { version: VERSION }.encode(request.len());
        socket.write_all(&[&hello[..], request].concat()).unwrap();
        let mut give = [0; HEAD_LEN];
        socket.read_exact(&mut give).unwrap();
        assert_eq!(Head::decode(&give).unwrap(), (Head::Give, 0));
        socket
    };
    for (said, count) in [
        (&given[..], 0),
        (&given, 2),
        (&given, 4),
        (b"x", 1),
        (&Head::Close.encode(0), 1),
        (&[&given[..], b"x"].concat(), 1),
    ] {
        let mut socket = asked();
        send(&socket, said, count).unwrap();
        let mut told = Vec::new();
        let _ = socket.read_to_end(&mut told); // where something was left unread, it is reset
        assert!(told.is_empty(), "{count} with {} bytes: {told:?}", said.len());
    }
    // Who gives exactly that is answered.
    let mut socket = asked();
    send(&socket, &given, 1).unwrap();
    let mut answer = [0; HEAD_LEN];
    socket.read_exact(&mut answer).unwrap();
    let (head, _) = Head::decode(&answer).unwrap();
    assert!(matches!(head, Head::FileOpened { .. } | Head::Refused { .. }), "{head:?}");
}

/// The protocol's own corners: no JSON, and not what it must say.
#[test]
fn a_hello_without_a_file_is_refused() {
    use wire::frame::{HEAD_LEN, Head, VERSION};
    let scene = Scene::new();
    for body in [&b"{}"[..], b"nonsense", br#"{"contract":1}"#] {
        let mut socket =
            std::os::unix::net::UnixStream::connect(scene.daemon.data_socket()).unwrap();
        let head = Head::HelloFile { version: VERSION }.encode(body.len());
        socket.write_all(&[&head[..], body].concat()).unwrap();
        let mut answer = [0; HEAD_LEN];
        socket.read_exact(&mut answer).unwrap();
        let (head, len) = Head::decode(&answer).unwrap();
        assert_eq!(head, Head::Refused { code: Code::Protocol });
        let mut body = vec![0; len];
        socket.read_exact(&mut body).unwrap();
        let problem: wire::Problem = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem.code, Code::Protocol);
        assert_eq!(socket.read(&mut answer).unwrap(), 0, "and that is all");
    }
}

/// Not a test by itself: another user looks for what is under contract.
#[test]
fn as_an_onlooker() {
    let Ok(socket) = std::env::var("SLACKLINE_TEST_SOCKET") else { return };
    let client = client::Client::connect(socket).unwrap();
    assert_eq!(client.streams().unwrap(), [], "not his");
    let all = [
        serde_json::to_string(&client.status().unwrap()).unwrap(),
        serde_json::to_string(&client.file_devices().unwrap()).unwrap(),
        serde_json::to_string(&client.quotas().unwrap()).unwrap(),
    ];
    for text in &all {
        assert!(!text.contains("my-secret-film"), "{text}");
    }
    let device = &client.file_devices().unwrap().devices[0];
    assert_eq!(device.streams, 1, "that there is one is everybody's to know");
    let stream = std::env::var("SLACKLINE_TEST_STREAM").unwrap().parse().unwrap();
    assert_eq!(client.stream(stream).unwrap_err().code(), Some(Code::NoSuchStream));
    println!("all tried");
}

/// Only root can be two users.
#[test]
fn the_path_of_a_file_is_told_to_whoever_opened_it() {
    if daemon::quotas::own_uid() != 0 {
        return skips::not_run("needs root, to be two users");
    }
    let scene = Scene::new();
    if !scene.is_fit() {
        return;
    }
    let path = scene.file("my-secret-film", &noise(1 << 20));
    let contract = at(300_000, Bytes::kib(64));
    let reader = scene.daemon.client.file_reader(&path, contract, Bytes::ZERO).unwrap();
    let mine = scene.daemon.client.streams().unwrap();
    assert!(mine[0].volume.ends_with("my-secret-film"), "{mine:?}");
    let variables = [
        ("SLACKLINE_TEST_SOCKET", scene.daemon.client.socket().to_str().unwrap()),
        ("SLACKLINE_TEST_STREAM", &mine[0].id.to_string()),
    ];
    let nobody = users::User { uid: 70_004, groups: &[70_300] };
    users::run_as(nobody, scene.daemon.dir.path(), "files::as_an_onlooker", &variables);
    reader.close().unwrap();
}
