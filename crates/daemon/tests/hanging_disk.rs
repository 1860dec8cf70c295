//! A disk that hangs: what it has does not come back. It is told as that, and the program that waits for it
//! is not.

use crate::http::ask_with;
use crate::real::{Real, contract};
use client::control::EventKind;
use daemon::config::SocketMode;
use daemon::serve::ServeOptions;
use engine::{Backend, Completion, Wrap};
use node::DiskCommand;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Bytes, Duration, Instant};

/// How often a disk's thread that has something to hold looks whether it hangs still.
const LOOK: Duration = Duration::from_millis(5);

/// A disk that takes commands and does nothing while it hangs.
struct Hanging {
    disk: Box<dyn Backend>,
    hangs: Arc<AtomicBool>,
    held: Vec<DiskCommand>,
}

impl Backend for Hanging {
    fn start(&mut self, command: DiskCommand) {
        match self.hangs.load(Ordering::SeqCst) {
            true => self.held.push(command),
            false => self.disk.start(command),
        }
    }
    fn submit(&mut self) {
        self.disk.submit();
    }
    fn wait(&mut self, until: Option<Instant>, done: &mut Vec<Completion>) {
        if !self.hangs.load(Ordering::SeqCst) {
            self.held.drain(..).for_each(|command| self.disk.start(command));
        }
        let look = (!self.held.is_empty()).then(|| engine::now() + LOOK);
        self.disk.wait(until.into_iter().chain(look).min(), done);
    }
    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.held.len()
    }
}

#[test]
fn a_disk_that_hangs_is_told_while_it_does_and_its_streams_are_late() {
    let hangs = Arc::new(AtomicBool::new(false));
    let of_disk = Arc::clone(&hangs);
    let wrap: Wrap = Arc::new(move |_, disk| {
        Box::new(Hanging { disk, hangs: Arc::clone(&of_disk), held: Vec::new() })
    });
    let daemon = Real::start_wrapped(64, ServeOptions::from(SocketMode(0o600)), wrap);
    let client = &daemon.client;
    daemon.volume("cam", Bytes::mib(32));
    let camera = contract(1_000_000, Bytes::kib(64));
    let mut writer = client.writer("cam", camera, Bytes::ZERO).unwrap();
    writer.write_all(&[7; 64 << 10]).unwrap();
    writer.sync().unwrap();
    let keys = |kind: EventKind| -> Vec<String> {
        let told = client.events(0).unwrap().events;
        told.into_iter().filter(|one| one.kind == kind).map(|one| one.key).collect()
    };
    let late = || client.overview().unwrap().status.streams[0].late_requests;
    let before = late();
    // What a program gives within its rate is under contract.
    std::thread::sleep(std::time::Duration::from_secs(1));
    hangs.store(true, Ordering::SeqCst);
    writer.write_all(&[8; 64 << 10]).unwrap();
    let (found, overview) = loop {
        let overview = client.overview().unwrap();
        if let Some(found) = overview.findings.iter().find(|one| one.key == "disk/0/hangs") {
            break (found.clone(), overview);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert!(found.what.contains("hangs: it has had a command for"), "{found:?}");
    assert!(found.next_step.contains("journalctl -k"), "{found:?}");
    assert!(!overview.sound && overview.verdict.contains("broken"), "{}", overview.verdict);
    let disk = &overview.status.disks[0];
    assert!(disk.hangs_for().is_some() && disk.late_requests > 0, "{disk:?}");
    assert_eq!(late(), before + 1);
    let (_, _, text) = ask_with(client.socket(), "GET", "/metrics", "", "");
    let line = text.lines().find(|line| line.starts_with("slackline_disk_oldest_command_seconds{"));
    let seconds = line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 5.0), "{line:?}");
    while !keys(EventKind::Found).contains(&"disk/0/hangs".into()) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    hangs.store(false, Ordering::SeqCst);
    writer.sync().unwrap();
    while !keys(EventKind::Cleared).contains(&"disk/0/hangs".into()) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(late(), before + 1, "it counts once");
}
