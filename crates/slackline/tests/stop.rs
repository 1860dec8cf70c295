//! The end of the daemon, in order and not.

mod support;

use std::io::Write;
use std::os::unix::net::UnixStream;
use support::{Scratch, begins, noise};

#[test]
fn a_signal_to_stop_syncs_every_writer_and_ends_with_0() {
    for signal in ["TERM", "INT"] {
        let dir = Scratch::new();
        let disks = dir.make_pool(&["a"]);
        let daemon = dir.serve(&disks);
        let acks = dir.text("acks");
        let args = ["record", "v", "--create", "64MiB", "--rate", "4MB/s", "--ack-file", &acks];
        let mut child = dir.command(&args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let feed = std::thread::spawn(move || {
            let mut noise = noise(1, 40 << 20);
            std::io::copy(&mut noise, &mut stdin).is_err()
        });
        while std::fs::read_to_string(&acks).unwrap_or_default().lines().count() < 2 {}
        daemon.signal(signal);
        let (code, log) = daemon.wait();
        assert_eq!(code, Some(0), "{log}");
        assert!(log.ends_with("stopped; everything acknowledged is on the medium\n"), "{log}");
        let output = child.wait_with_output().unwrap();
        assert!(feed.join().unwrap(), "the recording ended before its input did");
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("the daemon is stopping"), "{err}");

        let acks = std::fs::read_to_string(&acks).unwrap();
        let durable: usize = acks.lines().last().unwrap().parse().unwrap();
        let _daemon = dir.serve(&disks);
        let back = dir.run(&["play", "v", "--rate", "20MB/s"]).succeeded().out;
        assert!(back.len() >= durable && begins(1, &back), "{} of {durable}", back.len());
        assert!(durable > 0);
    }
}

#[test]
fn the_service_manager_hears_ready_alive_and_stopping() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve_watched(&disks);
    let hear = || {
        let mut word = [0; 64];
        loop {
            if let Ok(len) = daemon.notify.recv(&mut word) {
                return String::from_utf8(word[..len].to_vec()).unwrap();
            }
        }
    };
    assert_eq!(hear(), "WATCHDOG=1");
    assert_eq!(hear(), "WATCHDOG=1");
    daemon.signal("TERM");
    while hear() != "STOPPING=1" {}
    assert_eq!(daemon.wait().0, Some(0));
}

#[test]
fn programs_that_hang_do_not_keep_the_daemon_from_stopping() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    // Half a request, and half a frame.
    let mut control = UnixStream::connect(dir.path("s.sock")).unwrap();
    control
        .write_all(b"POST /v1/volumes HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{")
        .unwrap();
    let mut data = UnixStream::connect(dir.path("s.data.sock")).unwrap();
    data.write_all(&[1, 2, 3]).unwrap();
    daemon.signal("TERM");
    assert_eq!(daemon.wait().0, Some(0));
}

#[test]
fn after_a_kill_the_stale_socket_is_no_obstacle() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    dir.serve(&disks).kill();
    assert!(dir.path("s.sock").exists(), "left behind");
    let _daemon = dir.serve(&disks);
    dir.run(&["volume", "list"]).succeeded();
}
