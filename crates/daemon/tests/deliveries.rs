//! What it takes to carry answers under contract to their programs: measured on threads of their
//! own, which have real-time priority where the system permits it, and shown.

#[path = "support/real.rs"]
mod real;

use client::InTime;
use daemon::config::SocketMode;
use daemon::serve::{ServeOptions, Serving};
use real::{Real, bytes, contract};
use std::io::{Read, Write};
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
    let handles = delivery(&daemon).sample;
    assert_eq!(handles, 20);

    let service = Service::Latency { len_bytes: len, within_ns: long, every_ns: long };
    daemon.client.volume_service("v", &service).unwrap();
    let mut volume = daemon.client.best_effort("v").unwrap();
    (0..10).for_each(|_| volume.write_at(Bytes::ZERO, &block).unwrap());
    let volumes = delivery(&daemon).sample;
    assert_eq!(volumes - handles, 10);
    drop(volume);

    let block = Bytes::kib(64);
    for client in [daemon.client.clone(), daemon.client.clone().without_shared_windows()] {
        let before = delivery(&daemon).sample;
        let mut writer = client.writer("v", contract(1 << 20, block), Bytes::ZERO).unwrap();
        writer.write_all(&bytes(0, 1 << 20)).unwrap();
        writer.close().unwrap();
        let written = delivery(&daemon).sample;
        assert!(written > before, "{}", client.socket().display());
        let mut reader = client.reader("v", contract(1 << 20, block), Bytes::ZERO).unwrap();
        let mut back = vec![0; 1 << 20];
        reader.read_exact(&mut back).unwrap();
        assert!(delivery(&daemon).sample > written);
    }
}

/// Where the system permits it these threads have real-time priority, below the disks', and the
/// daemon says which it is. At least one processor is left to others.
#[test]
fn threads_that_carry_answers_have_the_priority_that_the_system_permits() {
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
