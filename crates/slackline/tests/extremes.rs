//! Every number that a program can send, at its extremes: each is answered, and
//! the daemon lives on with its pool sound.

use crate::support::{Scratch, noise};
use client::control::{Contract, Placement, PlanRequest, PlanStream, VolumeCreate};
use client::units::{Bytes, Rate};
use client::{Client, Code, Error};
use std::io::{Read, Write};

const NUMBERS: &[u64] = &[
    0,
    1,
    511,
    4095,
    4096,
    4097,
    1 << 20,
    (1 << 20) + 4096,
    8 << 20,
    1 << 40,
    i64::MAX as u64,
    u64::MAX - 4095,
    u64::MAX - 1,
    u64::MAX,
];

fn contract(rate: u64, block: u64, burst: u64) -> Contract {
    Contract {
        rate_bytes_per_second: Rate::per_second(rate),
        block_bytes: Bytes::new(block),
        burst_bytes: Bytes::new(burst),
    }
}

/// It may be refused, but by the daemon's own decision.
#[track_caller]
fn answered<T>(what: &str, result: Result<T, Error>) {
    if let Err(error) = result {
        let problem = error.problem().unwrap_or_else(|| panic!("{what}: {error}"));
        assert_ne!(problem.code, Code::Internal, "{what}: {error}");
    }
}

fn volumes(client: &Client) {
    for &size in NUMBERS {
        let size = Bytes::new(size);
        answered("create", client.volume_create(&VolumeCreate::new("x", size)));
        answered("resize", client.volume_resize("v", size));
        answered("cut", client.volume_cut("v", size));
        let _ = client.volume_delete("x");
    }
    answered("resize", client.volume_resize("v", Bytes::mib(8)));
    for name in ["", "/", "..", "%00", "a b", "\u{0}", &"x".repeat(10_000)] {
        answered("name", client.volume_create(&VolumeCreate::new(name, Bytes::MIB)));
        answered("name", client.volume(name));
        answered("name", client.best_effort(name));
        let _ = client.volume_delete(name);
    }
    for disks in [vec![u16::MAX], vec![0, 0], vec![0; 1000]] {
        let placement = Placement { disks, ..Placement::default() };
        let create = VolumeCreate { placement, ..VolumeCreate::new("x", Bytes::MIB) };
        answered("placement", client.volume_create(&create));
        let _ = client.volume_delete("x");
    }
}

fn streams(client: &Client) {
    for &rate in NUMBERS {
        for &block in NUMBERS {
            let contract = contract(rate, block, 0);
            let stream = PlanStream {
                name: "s".into(),
                count: rate,
                mode: None,
                contract: Some(contract),
                service: None,
                placement: Placement::default(),
            };
            let request = PlanRequest { streams: vec![stream], alternatives: true };
            answered("plan", client.plan(&request));
            answered("open", client.reader("v", contract, Bytes::ZERO));
        }
        let burst = contract(100_000, 4096, rate);
        answered("burst", client.reader("v", burst, Bytes::ZERO));
        answered("burst", client.writer("v", burst, Bytes::ZERO));
    }
    for &start in NUMBERS {
        let contract = contract(100_000, 4096, 4096);
        answered("start", client.writer("v", contract, Bytes::new(start)));
        answered(
            "start",
            client.reader("v", contract, Bytes::new(start)).and_then(|mut reader| {
                let mut piece = [0; 100];
                Ok(reader.read(&mut piece)?)
            }),
        );
    }
}

fn best_effort(client: &Client) {
    let bytes = vec![7; 1 << 20];
    for &offset in NUMBERS {
        for &len in NUMBERS {
            // A frame that cannot be meant ends its connection.
            let mut volume = client.best_effort("v").unwrap();
            let read = volume.begin_read(Bytes::new(offset), Bytes::new(len));
            answered("read", read.and_then(|_| volume.take()).and_then(|done| done.result));
            let mut volume = client.best_effort("v").unwrap();
            if let Some(piece) = bytes.get(..len as usize) {
                let write = volume.begin_write(Bytes::new(offset), piece);
                answered("write", write.and_then(|_| volume.take()).and_then(|done| done.result));
            }
        }
    }
    client.best_effort("v").unwrap().sync().unwrap();
}

#[test]
fn no_number_that_a_program_sends_harms_the_daemon() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    let client = Client::connect(dir.path("s.sock")).unwrap();
    client.volume_create(&VolumeCreate::new("v", Bytes::mib(8))).unwrap();
    let mut writer = client.writer("v", contract(3_000_000, 65_536, 0), Bytes::ZERO).unwrap();
    writer.write_all(&noise(1, 50_000).bytes()).unwrap();
    writer.close().unwrap();
    volumes(&client);
    streams(&client);
    best_effort(&client);
    assert_eq!(client.health().unwrap().status, "ok");
    daemon.signal("TERM");
    assert_eq!(daemon.wait().0, Some(0));
    dir.run(&["pool", "check", &disks[0]]).succeeded();
}
