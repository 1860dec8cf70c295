//! Programs that people have, on the HTTP door: aria2 in several parts at a time and from where it
//! stopped, and REDbot, which looks for what servers of HTTP get wrong.

use super::{MIB, World, has};
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Daemon, Ran, noise};

use super::support;

const DATA: &str = "/v1/volumes/film/data";

/// A daemon with a volume of these bytes, and the token of a reader.
fn served(world: &World, len: u64) -> (Daemon, u16, String, Vec<u8>) {
    let (daemon, ports) = world.serve();
    world.make("film");
    let bytes = noise(7, len).bytes();
    std::fs::write(world.dir.path("in"), &bytes).unwrap();
    let all = world.token(&["--volume", "film"]);
    assert_eq!(world.curl(&ports, &all, DATA, &["-T", &world.dir.text("in")]).0, 204);
    let reads = world.token(&["--volume", "film", "--verbs", "read"]);
    (daemon, ports.http, reads, bytes)
}

#[test]
fn aria2_gets_a_volume_in_parts_and_goes_on_where_it_stopped() {
    if !has(&["aria2c", "curl"]) {
        return;
    }
    let world = World::new();
    let (_daemon, port, token, bytes) = served(&world, 6 * MIB + 4321);
    let (log, dir) = (world.dir.text("aria2.log"), world.dir.text("."));
    let get = |out: &str, more: &[&str]| {
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new("aria2c");
        command.arg(format!("--ca-certificate={}", world.certificate()));
        command.arg(format!("--header=authorization: Bearer {token}"));
        command.args(["--no-conf", "--quiet", "--allow-overwrite", "--log-level=info", "-l", &log]);
        command.args(["--file-allocation=none", "-d", &dir, "-o", out]).args(more);
        let ran = command.arg(format!("https://localhost:{port}{DATA}")).stdin(Stdio::null());
        Ran::from(ran.output().unwrap()).succeeded();
        let log = std::fs::read_to_string(&log).unwrap();
        let parts = log.lines().filter(|line| line.starts_with("HTTP/1.1 206"));
        (std::fs::read(world.dir.path(out)).unwrap(), parts.count())
    };
    // So many connections, each with a range of its own; slow enough that one is not done with
    // everything before the others have begun.
    let limit = "--max-overall-download-limit=3M";
    let (all, parts) = get("all", &["-x4", "-s4", "-k1M", limit]);
    assert!(all == bytes, "{} bytes in {parts} parts", all.len());
    assert!(parts >= 3, "{parts} parts: the first connection may ask for all");
    // One that stopped: what is there is not asked for again.
    std::fs::write(world.dir.path("half"), &bytes[..3_000_001]).unwrap();
    let (all, parts) = get("half", &["-c", "-x1", "-s1"]);
    assert!(all == bytes && parts == 1, "{} bytes in {parts} parts", all.len());
    let none = "--header=authorization: Bearer slt1_AAAA";
    let mut refused = Command::new("aria2c");
    refused.arg(format!("--ca-certificate={}", world.certificate())).arg(none);
    refused.args(["--no-conf", "--quiet", "-d", &dir, "-o", "none"]);
    let refused = refused.arg(format!("https://localhost:{port}{DATA}")).output().unwrap();
    assert_eq!(refused.status.code(), Some(24), "aria2's word for a refusal of who asks");
    assert!(!world.dir.path("none").exists());
}

/// `redbot`, where a Python that has it (`pip install redbot`) is called so in `SLACKLINE_REDBOT`.
#[test]
fn redbot_finds_nothing_that_is_wrong() {
    let Some(python) = std::env::var_os("SLACKLINE_REDBOT") else {
        return skips::not_run("needs SLACKLINE_REDBOT=PYTHON, one that has redbot");
    };
    let world = World::new();
    let state = world.dir.text("state");
    let plain = ["--plain-tcp", "--listen", "127.0.0.1:0", "--state-dir", &state];
    let daemon = world.dir.try_serve(&world.disks, &plain).unwrap();
    let line = daemon.line_with("WITHOUT encryption");
    let at = line.rsplit(' ').next().unwrap();
    world.make("film");
    let bytes = noise(7, MIB + 77).bytes();
    world.dir.run_with(&["record", "film", "--rate", "500KB/s"], &bytes).recorded();
    let token = world.token(&["--verbs", "read"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tcp/lint.py");
    assert!(Path::new(script).exists());
    for path in [DATA, "/v1/volumes", "/v1/health", "/v1/status", "/metrics", "/", "/page.js"] {
        let mut command = Command::new(&python);
        command.arg(script).arg(format!("http://{at}{path}")).arg(&token);
        let ran = Ran::from(command.stdin(Stdio::null()).output().unwrap()).succeeded();
        let said = ran.text();
        println!("{path}:\n{said}");
        // It looked at all: these are good.
        if path == DATA {
            for good in ["good RANGE_CORRECT", "good INM_304"] {
                assert!(said.contains(good), "{path}: no {good} in\n{said}");
            }
        }
        let faults = said.lines().filter(|line| !KNOWN.iter().any(|known| line.starts_with(known)));
        let faults: Vec<_> =
            faults.filter(|line| line.starts_with("bad") || line.starts_with("warning")).collect();
        assert!(faults.is_empty(), "{path}: {faults:#?}");
    }
}

/// What it says that is as it shall be.
const KNOWN: [&str; 0] = [];
