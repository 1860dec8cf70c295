//! A daemon that hangs, its process stopped: what waits for its answer has an end. How long that is goes
//! for a whole process, so that this is a program of its own.

#[path = "../support/mod.rs"]
mod support;

use client::control::VolumeCreate;
use client::units::{Bytes, Rate};
use client::{Client, Contract, Error, File, OpenOptions, ReadRange};
use std::io::{Read, SeekFrom, Write};
use std::time::Duration;
use support::Scratch;

/// Longer than an answer takes on the slowest machine while the daemon serves.
const WITHIN: Duration = Duration::from_secs(5);

type Call = Box<dyn FnOnce() -> client::Result<()> + Send>;

/// Calls that wait for an answer, each on a handle or a stream of its own.
struct Calls(Vec<(String, Call)>);

impl Calls {
    fn add<T>(&mut self, name: &str, call: impl FnOnce() -> client::Result<T> + Send + 'static) {
        self.0.push((name.into(), Box::new(|| call().map(drop))));
    }
}

/// Of best effort.
fn on_files(calls: &mut Calls, options: &OpenOptions) {
    let open = || {
        let mut file = options.clone().read(true).write(true).open("v").unwrap();
        file.read_exact(&mut [0; 100]).unwrap(); // connected
        file
    };
    let [mut reads, mut writes, mut syncs, mut ranges, mut seeks] = [(); 5].map(|()| open());
    calls.add("read", move || Ok(reads.read(&mut [0; 100])?));
    calls.add("write", move || Ok(writes.write(&[1; 100])?));
    calls.add("sync", move || syncs.sync());
    calls.add("read ranges", move || {
        let mut memory = [0; 5000];
        ranges.read_ranges(&mut [ReadRange::new(Bytes::ZERO, &mut memory)])
    });
    calls.add("seek to the end", move || Ok(std::io::Seek::seek(&mut seeks, SeekFrom::End(0))?));
}

/// Of streams whose windows are shared, or are not.
fn on_streams(calls: &mut Calls, client: &Client, how: &str) {
    let contract = Contract::at(Rate::per_second(100_000)).block(Bytes::kib(16)).terms();
    let reader = || client.reader("v", contract, Bytes::ZERO).unwrap();
    let writer = |name: &str| {
        let volume = format!("{how} {name}");
        client.volume_create(&VolumeCreate::new(&volume, Bytes::MIB)).unwrap();
        let mut writer = client.writer(&volume, contract, Bytes::ZERO).unwrap();
        writer.write_all(&[2; 1000]).unwrap();
        writer
    };
    let (mut seeks, closes) = (reader(), reader());
    calls.add(&format!("{how}: seek"), move || seeks.seek(Bytes::kib(64)));
    calls.add(&format!("{how}: a reader's close"), move || closes.close());
    let (mut syncs, mut goes, closes) = (writer("sync"), writer("seek"), writer("close"));
    calls.add(&format!("{how}: sync"), move || {
        let late = syncs.sync();
        // It is told at once from then on, also by what would wait for bytes or for room.
        assert!(syncs.sync().is_err() && syncs.write_all(&[3; 1 << 20]).is_err());
        late
    });
    calls.add(&format!("{how}: a writer's seek"), move || goes.seek(Bytes::ZERO));
    calls.add(&format!("{how}: a writer's close"), move || closes.close());
}

#[test]
fn no_answer_of_a_daemon_that_hangs_is_waited_for_without_end() {
    client::set_answer_within(WITHIN);
    let dir = Scratch::new();
    let daemon = dir.serve(&dir.make_pool(&["a"]));
    let socket = dir.path("s.sock");
    let mut options = File::options();
    options.socket(&socket);
    let mut made = options.clone().write(true).create(Bytes::mib(4)).open("v").unwrap();
    made.write_all(&[1; 300_000]).unwrap();
    made.close().unwrap();

    let mut calls = Calls(Vec::new());
    on_files(&mut calls, &options);
    on_streams(&mut calls, &Client::at(&socket), "shared");
    on_streams(&mut calls, &Client::at(&socket).without_shared_windows(), "carried");
    daemon.stop();
    let (told, ends) = std::sync::mpsc::channel();
    let mut names: Vec<String> = calls.0.iter().map(|(name, _)| name.clone()).collect();
    for (name, call) in calls.0 {
        let told = told.clone();
        std::thread::spawn(move || told.send((name, call())));
    }
    while !names.is_empty() {
        // Many times as long as any of them may take.
        let Ok((name, ended)) = ends.recv_timeout(20 * WITHIN) else {
            panic!("without end: {names:?}")
        };
        let error = ended.map_or_else(|error| error, |()| panic!("{name}: answered, and stopped"));
        assert!(matches!(error, Error::Broken(_)), "{name}: {error}");
        assert!(error.to_string().contains("does not answer"), "{name}: {error}");
        names.retain(|other| *other != name);
    }
    daemon.signal("CONT");
    // Others go on, and this program too, with another handle.
    options.open("v").unwrap().read_exact(&mut [0; 100]).unwrap();
    daemon.kill();
}
