//! A volume as a block device, beside nbdkit's file plugin and qemu-nbd.
//!
//! `cargo bench -p slackline --bench block_devices`. Each of the three serves a file of 1 GiB in
//! `SLACKLINE_BENCH_DIR`, or where temporary files go; all are removed at the end. In memory
//! (`/dev/shm`) the figures are those of the programs; elsewhere they are the disk's, and
//! nbdkit's the page cache's, since its file plugin reads and writes through that. qemu-nbd
//! uses direct I/O with io_uring where the place permits it. The client is fio's engine for NBD
//! for requests, and nbdcopy for whole copies, in turns, in one run. Neither peer schedules.
//! `SLACKLINE_QUICK`: a short round of each, which shows that it runs and nothing else.
#![allow(clippy::print_stdout)]

mod served;

use client::control::VolumeCreate;
use report::Table;
use served::{Daemon, PROFILE, Peer, folder};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;
use units::Bytes;

/// What is asked: a title, and fio's words for it.
const JOBS: [(&str, &str, &str, &str); 4] = [
    ("4 KiB reads, 1 at a time", "randread", "4k", "1"),
    ("4 KiB reads, 32 at a time", "randread", "4k", "32"),
    ("4 KiB writes, 32 at a time", "randwrite", "4k", "32"),
    ("1 MiB reads, 4 at a time", "read", "1m", "4"),
];

fn is_quick() -> bool {
    std::env::var_os("SLACKLINE_QUICK").is_some()
}

fn size() -> Bytes {
    if is_quick() { Bytes::mib(32) } else { Bytes::GIB }
}

/// A server on a socket.
fn peer(program: &str, args: &[&str], socket: &str) -> Option<Peer> {
    let peer = Peer::start(Command::new(program).args(args), || Path::new(socket).exists());
    if peer.is_none() {
        println!("no {program} here");
    }
    peer
}

fn main() {
    let folder = folder();
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("profile.toml"), PROFILE).expect("a place for gigabytes");
    let daemon = Daemon::on(&folder, &file("disk.img"), &["--profile", &file("profile.toml")], &[]);
    daemon.client.volume_create(&VolumeCreate::new("v", size())).expect("room for it");
    let bytes: Vec<u8> = (0..size().get()).map(|at| (at / 4096 * 31 + at) as u8 | 1).collect();
    for name in ["in.img", "kit.img", "qemu.img"] {
        std::fs::write(file(name), &bytes).expect("a place for gigabytes");
    }
    let (kit, qemu) = (file("kit.sock"), file("qemu.sock"));
    let kit_args = ["-f", "-U", &kit, "file", &file("kit.img")];
    let qemu_args = ["-t", "-e", "16", "-k", &qemu, "-f", "raw", "--cache=none"];
    let qemu_file = file("qemu.img");
    let qemu_args = [&qemu_args[..], &["--aio=io_uring", &qemu_file]].concat();
    let _peers = (peer("nbdkit", &kit_args, &kit), peer("qemu-nbd", &qemu_args, &qemu));
    let ours = format!("nbd+unix:///v?socket={}", file("s.nbd.sock"));
    let uris =
        [ours.clone(), format!("nbd+unix:///?socket={kit}"), format!("nbd+unix:///?socket={qemu}")];
    succeeded(Command::new("nbdcopy").args([&file("in.img"), &ours]).output());

    let headings =
        ["operations a second, median", ">Slackline", ">nbdkit", ">qemu-nbd", ">of the better"];
    let mut table = Table::new(&headings);
    for (title, rw, block, depth) in JOBS {
        table.row(row(title, &uris, |uri| fio(uri, rw, block, depth)));
    }
    table.row(row("nbdcopy out, MB/s", &uris, |uri| copied(&[uri, "null:"])));
    let input = file("in.img");
    table.row(row("nbdcopy in and flush, MB/s", &uris, |uri| copied(&["--flush", &input, uri])));
    println!("{}", table.text("  "));
    println!("aim: at least 1.0 of the better one");
}

/// The median of some rounds for each server, all of them in turns.
fn row(title: &str, uris: &[String; 3], measure: impl Fn(&str) -> f64) -> Vec<String> {
    let rounds = if is_quick() { 1 } else { 5 };
    let mut seen = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        for (uri, seen) in uris.iter().zip(&mut seen) {
            seen.push(measure(uri));
        }
    }
    let [ours, kit, qemu] = seen.map(|mut seen| {
        seen.sort_by(f64::total_cmp);
        seen[seen.len() / 2]
    });
    let mut row = vec![title.to_owned()];
    row.extend([ours, kit, qemu].map(report::number));
    row.push(format!("{:.2}", ours / kit.max(qemu)));
    row
}

fn succeeded(ran: std::io::Result<Output>) -> String {
    let ran = ran.expect("the programs that scripts/setup names");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Operations a second.
fn fio(uri: &str, rw: &str, block: &str, depth: &str) -> f64 {
    let time = if is_quick() { "1" } else { "3" };
    let mut command = Command::new("fio");
    command.args(["--name=x", "--ioengine=nbd", "--uri", uri, "--rw", rw, "--bs", block]);
    command.args(["--iodepth", depth, "--size", &size().get().to_string()]);
    command.args(["--runtime", time, "--time_based", "--randrepeat=1"]);
    command.args(["--output-format=terse", "--terse-version=3"]);
    let said = succeeded(command.output());
    let line = said.lines().find(|line| line.starts_with("3;")).expect("fio's figures");
    let fields: Vec<&str> = line.split(';').collect();
    // Operations a second of reads and of writes, in fio's terse output of version 3.
    let number = |at: usize| fields[at].parse::<f64>().expect("a number");
    number(7) + number(48)
}

/// MB/s of a copy of the whole.
fn copied(args: &[&str]) -> f64 {
    let began = Instant::now();
    succeeded(Command::new("nbdcopy").args(args).output());
    size().get() as f64 / 1e6 / began.elapsed().as_secs_f64()
}
