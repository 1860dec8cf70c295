//! Programs that people have, on the HTTP door: aria2 in several parts at a time and from where it
//! stopped, ffmpeg, which plays and seeks, and REDbot, which looks for what servers of HTTP get wrong.

use super::{MIB, World, has};
use std::path::{Path, PathBuf};
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

/// A film of 2 s, its table of contents at its end: a player has to ask for ranges.
#[test]
fn ffmpeg_plays_a_volume_and_seeks_in_it_as_in_the_file() {
    if !has(&["curl"]) {
        return;
    }
    let has_players = ["ffmpeg", "ffprobe"].map(|program| {
        let mut command = Command::new(program);
        command.arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    });
    if !skips::can_run(has_players == [true; 2], "needs ffmpeg and ffprobe") {
        return;
    }
    let world = World::new();
    let (_daemon, ports) = world.serve();
    world.make("film");
    let film = world.dir.text("film.mp4");
    let source = "testsrc=duration=2:size=640x480:rate=25,noise=alls=60:allf=t";
    let run = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null());
        Ran::from(command.output().unwrap())
    };
    let quiet = ["-v", "error", "-nostdin"];
    let made = ["-f", "lavfi", "-i", source, "-c:v", "mpeg4", "-q:v", "3", "-g", "10", &film];
    run("ffmpeg", &[&quiet[..], &made].concat()).succeeded();
    let len = std::fs::metadata(&film).unwrap().len();
    assert!((2 * MIB..8 * MIB).contains(&len), "{len}");
    let all = world.token(&["--volume", "film"]);
    assert_eq!(world.curl(&ports, &all, DATA, &["-T", &film]).0, 204);

    let reads = world.token(&["--volume", "film", "--verbs", "read"]);
    let header = format!("authorization: Bearer {reads}\r\n");
    let address = format!("https://localhost:{}{DATA}", ports.http);
    let certificate = world.certificate();
    let trust = ["-ca_file", &*certificate, "-tls_verify", "1"];
    let by_http = [&trust[..], &["-headers", &header]].concat();
    let frames = |before: &[&str], input: &str| {
        let count = ["-count_frames", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0"];
        let args = [&quiet[..2], before, &count, &["-i", input]].concat();
        run("ffprobe", &args).succeeded().text().trim().to_owned()
    };
    assert_eq!((&*frames(&[], &film), &*frames(&by_http, &address)), ("50", "50"));
    // Each frame with its time and the digest of its picture; which ranges were asked for.
    let played = |before: &[&str], seek: &[&str], input: &str| {
        let args = ["-v", "debug", "-nostdin"];
        let args = [&args[..], before, seek, &["-i", input, "-f", "framemd5", "-"]].concat();
        let ran = run("ffmpeg", &args).succeeded();
        let pictures: Vec<_> = ran.text().lines().filter(|line| !line.starts_with('#')).collect();
        let ranges = ran.err.lines().filter_map(|line| line.trim().strip_prefix("Range: bytes="));
        let begins = ranges.map(|range| range.split('-').next().unwrap().parse().unwrap());
        (pictures.join("\n"), begins.collect::<Vec<u64>>())
    };
    for (seek, count) in [(&[][..], 50), (&["-ss", "1.2"], 20), (&["-ss", "0.5", "-t", "0.4"], 10)]
    {
        let (known, _) = played(&[], seek, &film);
        let (seen, begins) = played(&by_http, seek, &address);
        assert_eq!((seen.lines().count(), &seen), (count, &known), "{seek:?}");
        assert!(begins.iter().any(|begin| *begin > MIB), "{seek:?}: ranges from {begins:?}");
    }
    // Without a token, and to a server that it does not know, it plays nothing.
    for (before, says) in [
        (&trust[..], "401 Unauthorized"),
        (&["-tls_verify", "1", "-headers", &header], "certificate"),
    ] {
        let args = [&quiet[..], before, &["-i", &address, "-f", "null", "-"]].concat();
        let refused = run("ffmpeg", &args);
        assert!(refused.code == Some(1) && refused.err.contains(says), "{refused:?}");
    }
}

/// The Python that has redbot: the one that `SLACKLINE_REDBOT` names, else the one of `make test`.
fn redbot() -> Option<PathBuf> {
    let made = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/redbot/bin/python");
    let named = std::env::var_os("SLACKLINE_REDBOT").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(made)).filter(|python| python.exists()))
}

#[test]
fn redbot_finds_nothing_that_is_wrong() {
    let Some(python) = redbot() else {
        return skips::not_run("needs redbot (scripts/setup test), or SLACKLINE_REDBOT=PYTHON");
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
