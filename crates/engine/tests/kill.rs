//! A process that records is killed at any moment; whatever it was told is
//! durable is there afterwards, byte for byte.
//!
//! The process is this test again, told by its environment to record.

use crate::common::*;
use engine::{Pool, Reply};
use node::{Mode, Op};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use units::{Bytes, Duration};

const BLOCK: Bytes = Bytes::kib(64);
const KILLS: u64 = 12;
const VOLUME: Bytes = Bytes::mib(32);
/// Before each block of 64 KiB: 8 MiB/s.
const PAUSE: std::time::Duration = std::time::Duration::from_micros(7_800);
const DIRECTORY: &str = "SLACKLINE_TEST_RECORD_IN";
const NAME: &str = "SLACKLINE_TEST_RECORD_TO";

fn quick() -> engine::Options {
    let mut options = options();
    options.config.commit_interval = Duration::from_millis(150);
    options
}

/// The process that will be killed: records, and says how far it is durable.
#[test]
fn the_process_that_records() {
    let (Ok(directory), Ok(name)) = (std::env::var(DIRECTORY), std::env::var(NAME)) else {
        return; // not that process
    };
    let disks = ["a", "b"].map(|disk| format!("{directory}/{disk}").parse().unwrap());
    let pool = Pool::open(&disks, quick()).unwrap();
    volume(&pool, &name, VOLUME);
    let writer = stream(&pool, &name, Mode::Write, contract("8MiB/s", BLOCK));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut beyond = Bytes::ZERO;
            while beyond < VOLUME {
                match pool.call(Op::StreamDurable { stream: writer, beyond }) {
                    Ok(Reply::Durable { upto }) => beyond = upto,
                    other => panic!("{other:?}"),
                }
                // Straight to the pipe: what is told is told.
                let mut told = std::io::stderr();
                writeln!(told, "durable {}", beyond.get()).unwrap();
            }
        });
        // No faster than a camera, or all would be recorded before the kill.
        record_with(&pool, writer, VOLUME.get(), || std::thread::sleep(PAUSE));
    });
}

#[test]
fn whatever_was_durable_survives_a_kill_at_any_moment() {
    let dir = Dir::new();
    let disks = [dir.file("a"), dir.file("b")];
    Pool::create("tape", &disks, &untimed(256)).unwrap();
    let mut random = 88_172_645_463_325_252u64;
    for round in 0..KILLS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let name = format!("take{round}");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::the_process_that_records", "--exact", "--nocapture"])
            .env(DIRECTORY, disks[0].path().parent().unwrap())
            .env(NAME, &name)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut durable = 0u64;
        let mut told = |durable: &mut u64| {
            let line = lines.next().expect("it records until it is killed").unwrap();
            let upto = line.strip_prefix("durable ").unwrap_or_else(|| panic!("{line}"));
            *durable = upto.parse().unwrap();
        };
        // So many acknowledgements, and then a moment that has nothing to do with them.
        for _ in 0..random % 4 + 1 {
            told(&mut durable);
        }
        std::thread::sleep(std::time::Duration::from_micros(random >> 8 & 0x1ffff));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            if let Some(upto) = line.strip_prefix("durable ").and_then(|upto| upto.parse().ok()) {
                durable = upto;
            }
        }

        let pool = Pool::open(&disks, quick()).unwrap();
        let status = pool.status();
        let length = |name: &str| {
            status.volumes.iter().find(|volume| volume.name == name).map(|volume| volume.length)
        };
        let recorded = length(&name).expect("the volume was durable before it was recorded to");
        assert!(durable > 0 && recorded.get() >= durable, "{durable} durable, {recorded:?} there");
        let mut at = Bytes::ZERO;
        while at < recorded {
            let bytes = read(&pool, &name, at, BLOCK).unwrap();
            let len = (recorded - at).min(BLOCK).as_usize();
            check(&bytes[..len], at.get());
            at += BLOCK;
        }
        assert!(matches!(
            pool.call(Op::VolumeDelete { name, only: None, keep_directory: false }),
            Ok(Reply::Done)
        ));
        pool.shutdown().unwrap();
    }
}
