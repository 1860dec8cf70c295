//! Volumes over HTTP: what is put is got, in whole and in part, by those who may; what was
//! answered is there after a kill.
#![allow(clippy::print_stdout)] // what could not be run is said

mod client;
#[path = "../support/mod.rs"]
mod support;

use ::client as client_library;
use client::{Http, receive, send};
use std::os::unix::net::UnixStream;
use std::process::Command;
use support::{Scratch, noise};

const MIB: u64 = 1 << 20;
const V: &str = "/v1/volumes/v/data";

fn http(dir: &Scratch) -> Http {
    Http(dir.path("s.sock"))
}

fn make(dir: &Scratch, name: &str, size: &str) {
    dir.run(&["volume", "create", name, "--size", size]).succeeded();
}

/// A copy in memory says what has to be read, whole and in ranges, with the right words about it.
#[test]
fn what_was_put_is_got_whole_and_in_ranges_and_outlives_a_kill() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let daemon = dir.try_serve(&disks, &["--commit-interval", "1h"]).unwrap();
    make(&dir, "v", "8MiB");
    let bytes = noise(1, 5 * MIB + 4321).bytes();
    let put = http(&dir).ask("PUT", V, &[], &bytes);
    assert_eq!(put.status, 204, "{}", String::from_utf8_lossy(&put.body));
    daemon.kill();
    let _daemon = dir.serve(&disks);
    let http = http(&dir);
    let all = http.get(V, &[]);
    assert_eq!((all.status, all.is_cut), (200, false));
    assert!(all.body == bytes);
    assert_eq!(all.header("accept-ranges"), Some("bytes"));
    let head = http.ask("HEAD", V, &[], &[]);
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), Some(&*bytes.len().to_string()));
    let last = bytes.len() as u64 - 1;
    for (first, end) in [(0, 0), (1, 1), (4095, 4096), (MIB - 1, MIB), (77, last), (last, last)] {
        let range = format!("bytes={first}-{end}");
        let part = http.get(V, &[("range", &range)]);
        assert_eq!(part.status, 206, "{range}");
        assert!(part.body == bytes[first as usize..=end as usize], "{range}");
        let said = format!("bytes {first}-{end}/{}", bytes.len());
        assert_eq!(part.header("content-range"), Some(&*said));
    }
    let tail = http.get(V, &[("range", "bytes=-1000")]);
    assert!(tail.status == 206 && tail.body == bytes[bytes.len() - 1000..]);
    let behind = http.get(V, &[("range", &format!("bytes={}-", bytes.len()))]);
    assert_eq!(behind.status, 416);
    assert_eq!(behind.header("content-range"), Some(&*format!("bytes */{}", bytes.len())));
}

/// The tag is another one after each write, by whatever way, and after a new start; a request for
/// other bytes than there are is not done.
#[test]
fn a_tag_is_of_these_bytes_and_conditions_are_held_to_it() {
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    make(&dir, "v", "4MiB");
    let http = http(&dir);
    let tag = || http.ask("HEAD", V, &[], &[]).header("etag").unwrap().to_owned();
    let mut seen = vec![tag()];
    let mut is_new = |tag: String| {
        let new = !seen.contains(&tag);
        seen.push(tag);
        new
    };
    let put = http.ask("PUT", V, &[], b"one");
    assert!(put.status == 204 && is_new(tag()));
    assert_eq!(put.header("etag"), Some(&*tag()), "the answer has the tag of what it has left");
    dir.run_with(&["record", "v", "--rate", "1MB/s", "--overwrite"], b"two").recorded();
    assert!(is_new(tag()), "recorded");
    dir.run(&["volume", "resize", "v", "1MiB"]).succeeded();
    assert!(is_new(tag()), "cut");
    let known = tag();
    let unchanged = http.get(V, &[("if-none-match", &known)]);
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    let ranged = http.get(V, &[("range", "bytes=0-0"), ("if-range", &known)]);
    assert_eq!(ranged.status, 206);
    let put = http.ask("PUT", V, &[("if-match", &known)], b"three");
    assert_eq!(put.status, 204);
    for header in ["if-match", "if-range"] {
        let asked: &[_] = &[("range", "bytes=0-0"), (header, &*known)];
        let all = http.get(V, asked).status;
        assert_eq!(all, if header == "if-range" { 200 } else { 412 }, "{header}");
    }
    let put = http.ask("PUT", V, &[("if-match", &known)], b"lost?");
    assert_eq!(put.status, 412);
    let put = http.ask("PUT", V, &[("if-none-match", "*")], b"lost?");
    assert_eq!(put.status, 412);
    // A condition that cannot be understood is not held.
    let put = http.ask("PUT", V, &[("if-match", "five")], b"lost?");
    assert_eq!(put.status, 412);
    let asked = [("range", "bytes=0-0"), ("if-range", "five")];
    assert_eq!(http.get(V, &asked).status, 200);
    assert_eq!(http.get(V, &[]).body, b"three");
    let before = tag();
    daemon.kill();
    let _daemon = dir.serve(&disks);
    assert_ne!(tag(), before, "another start");
}

/// An upload that breaks goes on where it stopped; a part anywhere is written there and nowhere
/// else; a volume that is too short grows, where the pool has the space and the user may.
#[test]
fn a_put_goes_on_where_it_broke_and_grows_the_volume() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "1MiB");
    let http = http(&dir);
    let bytes = noise(2, 6 * MIB + 99).bytes();
    let len = bytes.len().to_string();
    http.cut(V, &[("host", "x"), ("content-length", &len)], &bytes[..2_500_000]);
    let there: usize =
        http.ask("HEAD", V, &[], &[]).header("content-length").unwrap().parse().unwrap();
    assert!(there > 0 && there <= 2_500_000, "{there}");
    assert!(http.get(V, &[]).body == bytes[..there]);
    let range = format!("bytes {there}-{}/{len}", bytes.len() - 1);
    let put = http.ask("PUT", V, &[("content-range", &range)], &bytes[there..]);
    assert_eq!(put.status, 204, "{}", String::from_utf8_lossy(&put.body));
    assert!(http.get(V, &[]).body == bytes);
    let put = http.ask("PUT", V, &[("content-range", "bytes 4095-4097/*")], b"abc");
    assert_eq!(put.status, 204);
    let mut changed = bytes.clone();
    changed[4095..4098].copy_from_slice(b"abc");
    assert!(http.get(V, &[]).body == changed);
    // More than the pool has: before a byte is taken, and nothing changes.
    let range = format!("bytes {}-{}/*", 1u64 << 40, (1u64 << 40) + 2);
    let full = http.ask("PUT", V, &[("content-range", &range)], b"abc");
    assert_eq!(full.status, 507, "{}", String::from_utf8_lossy(&full.body));
    let range = format!("bytes {}-{}/*", u64::MAX - 3, u64::MAX - 1);
    let large = http.ask("PUT", V, &[("content-range", &range)], b"abc");
    assert_eq!(large.status, 413, "{}", String::from_utf8_lossy(&large.body));
    assert!(http.get(V, &[]).body == changed);
}

/// A daemon that dies in the middle of a transfer cuts it: nobody takes a part for the whole. What was
/// put before goes on from where the next daemon says that it ends.
#[test]
fn a_kill_in_the_middle_cuts_what_is_got_and_what_is_put_can_go_on() {
    use std::io::{Read, Write};
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a", "b"]);
    let daemon = dir.serve(&disks);
    make(&dir, "v", "64MiB");
    make(&dir, "w", "64MiB");
    let bytes = noise(9, 48 * MIB).bytes();
    let len = bytes.len().to_string();
    assert_eq!(http(&dir).ask("PUT", V, &[], &bytes).status, 204);
    let w = "/v1/volumes/w/data";
    let mut gets = UnixStream::connect(dir.path("s.sock")).unwrap();
    send(&mut gets, "GET", V, &[("host", "x"), ("connection", "close")]);
    let mut first = [0];
    gets.read_exact(&mut first).unwrap();
    let mut puts = UnixStream::connect(dir.path("s.sock")).unwrap();
    let headers = [("host", "x"), ("content-length", &*len), ("connection", "close")];
    send(&mut puts, "PUT", w, &headers);
    let sent = 20_000_000;
    puts.write_all(&bytes[..sent]).unwrap();
    let length = |path: &str| -> usize {
        let head = http(&dir).ask("HEAD", path, &[], &[]);
        head.header("content-length").unwrap().parse().unwrap()
    };
    support::wait_until(|| length(w) > 0);
    let shown = length(w);
    client_library::Client::at(dir.path("s.sock")).sync().unwrap();
    daemon.kill();
    let mut rest = Vec::new();
    let _ = gets.read_to_end(&mut rest);
    assert!(rest.len() < bytes.len(), "all of it was got before the kill");
    let mut answer = Vec::new();
    let _ = puts.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{}", String::from_utf8_lossy(&answer));
    let _daemon = dir.serve(&disks);
    let there = length(w);
    assert!((shown..=sent).contains(&there), "{shown} {there}");
    assert!(http(&dir).get(w, &[]).body == bytes[..there]);
    let range = format!("bytes {there}-{}/{len}", bytes.len() - 1);
    let put = http(&dir).ask("PUT", w, &[("content-range", &range)], &bytes[there..]);
    assert_eq!(put.status, 204, "{}", String::from_utf8_lossy(&put.body));
    assert!(http(&dir).get(w, &[]).body == bytes && http(&dir).get(V, &[]).body == bytes);
}

/// A body without a length is taken as far as the volume goes.
#[test]
fn a_body_in_chunks_is_taken_as_far_as_the_volume_goes() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "1MiB");
    let chunked = |bytes: &[u8]| {
        let mut connection = UnixStream::connect(dir.path("s.sock")).unwrap();
        let headers = [("host", "x"), ("transfer-encoding", "chunked"), ("connection", "close")];
        send(&mut connection, "PUT", V, &headers);
        use std::io::Write;
        for chunk in bytes.chunks(70_001) {
            let _ = write!(connection, "{:x}\r\n", chunk.len());
            let _ = connection.write_all(chunk);
            let _ = connection.write_all(b"\r\n");
        }
        let _ = connection.write_all(b"0\r\n\r\n");
        receive(connection, false)
    };
    let bytes = noise(3, MIB).bytes();
    assert_eq!(chunked(&bytes).status, 204);
    assert!(http(&dir).get(V, &[]).body == bytes);
    // What is recorded is not written over in part and taken for all.
    assert_eq!(chunked(&bytes[..1000]).status, 409);
    let cut = http(&dir).ask("PUT", V, &[], &bytes[..1000]);
    let said = String::from_utf8_lossy(&cut.body).into_owned();
    assert!(cut.status == 409 && said.contains("write a part of it with"), "{said}");
    assert!(!said.contains("--yes"), "what HTTP does not have: {said}");
    assert!(http(&dir).get(V, &[]).body == bytes);
    make(&dir, "w", "1MiB");
    dir.run(&["volume", "delete", "v", "--yes"]).succeeded();
    dir.run(&["volume", "rename", "w", "v"]).succeeded();
    let more = noise(4, MIB + 1).bytes();
    assert_eq!(chunked(&more).status, 507);
}

/// A transfer stays with its volume, which gets another name in the middle of it, and does not
/// touch the one that has the name then.
#[test]
fn a_transfer_stays_with_its_volume_whatever_that_is_called() {
    use std::io::Write;
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "4MiB");
    let bytes = noise(6, 3 * MIB).bytes();
    let mut connection = UnixStream::connect(dir.path("s.sock")).unwrap();
    let len = bytes.len().to_string();
    let headers = [("host", "x"), ("content-length", &*len), ("connection", "close")];
    send(&mut connection, "PUT", V, &headers);
    let (first, rest) = bytes.split_at(1_500_000);
    connection.write_all(first).unwrap();
    let length = || http(&dir).ask("HEAD", V, &[], &[]).header("content-length").map(str::to_owned);
    support::wait_until(|| length().as_deref() == Some("1048576"));
    dir.run(&["volume", "rename", "v", "old"]).succeeded();
    make(&dir, "v", "4MiB");
    connection.write_all(rest).unwrap();
    assert_eq!(receive(connection, false).status, 204);
    assert!(http(&dir).get("/v1/volumes/old/data", &[]).body == bytes);
    assert_eq!(length().as_deref(), Some("0"));
}

/// Another volume takes the name all the time: there is always one, and a read gets it.
#[test]
fn a_name_that_is_given_to_another_volume_all_the_time_is_always_found() {
    use client_library::{Durable, Found, Replace};
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let _daemon = dir.serve(&disks);
    make(&dir, "v", "1MiB");
    let http = http(&dir);
    assert_eq!(http.ask("PUT", V, &[], &[7; 5000]).status, 204);
    let library = client_library::Client::at(dir.path("s.sock"));
    let (is_over, mut missed) = (std::sync::atomic::AtomicBool::new(false), Vec::new());
    let renames = std::thread::scope(|scope| {
        let renames = scope.spawn(|| {
            let mut renames = 0;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                make(&dir, "new", "1MiB");
                assert_eq!(http.ask("PUT", "/v1/volumes/new/data", &[], &[7; 5000]).status, 204);
                // A read that is under way keeps the volume from being removed.
                while let Ok(Found::Volume(facts)) = library.file_facts("v") {
                    let (replace, staged) = (Replace::Remove(facts.number), Durable::WithNextSync);
                    if library.volume_rename(("new", None), "v", replace, staged).is_ok() {
                        renames += 1;
                        break;
                    }
                }
            }
            renames
        });
        let got = (0..1500).map(|_| http.get(V, &[]));
        let bad = got.filter(|got| got.status != 200 || got.body != [7; 5000]);
        bad.for_each(|got| {
            missed.push((got.status, String::from_utf8_lossy(&got.body).into_owned()))
        });
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        renames.join().unwrap()
    });
    assert!(renames > 1, "{renames}");
    assert!(missed.is_empty(), "{missed:?}");
}

/// A read under a contract of its own gets its bytes, and its stream is closed with it, also where
/// the client goes in the middle; one that does not fit is refused with the figures.
#[test]
fn a_read_can_have_a_contract_of_its_own() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "16MiB");
    let http = http(&dir);
    let bytes = noise(5, 3 * MIB + 77).bytes();
    assert_eq!(http.ask("PUT", V, &[], &bytes).status, 204);
    let path = format!("{V}?rate=4MB/s");
    let open = || {
        let status = http.get("/v1/status", &[]);
        let status: serde_json::Value = serde_json::from_slice(&status.body).unwrap();
        status["streams"].as_array().unwrap().len()
    };
    let all = http.get(&path, &[]);
    assert_eq!((all.status, all.is_cut), (200, false), "{}", String::from_utf8_lossy(&all.body));
    assert!(all.body == bytes);
    let part = http.get(&path, &[("range", "bytes=1000001-2000000")]);
    assert!(part.status == 206 && part.body == bytes[1_000_001..=2_000_000]);
    support::wait_until(|| open() == 0);
    let mut connection = UnixStream::connect(dir.path("s.sock")).unwrap();
    send(&mut connection, "GET", &path, &[("host", "x")]);
    support::wait_until(|| open() == 1);
    drop(connection);
    support::wait_until(|| open() == 0);
    let refused = http.get(&format!("{V}?rate=900MB/s"), &[]);
    assert_eq!(refused.status, 409);
    assert!(String::from_utf8_lossy(&refused.body).contains("next_step"));
    for bad in ["rate=fast", "rate=1MB/s&priority=normal", "rates=1MB/s", "priority=no"] {
        assert_eq!(http.get(&format!("{V}?{bad}"), &[]).status, 400, "{bad}");
    }
    assert_eq!(http.ask("PUT", &path, &[], b"x").status, 400);
    assert!(http.get(&format!("{V}?priority=interactive"), &[]).body == bytes);
}

/// Who may not read a volume does not learn that it is there; who may not write changes nothing.
#[test]
fn a_volume_s_owner_and_mode_say_who_reads_and_writes_by_http() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    make(&dir, "v", "1MiB");
    let http = http(&dir);
    assert_eq!(http.ask("PUT", V, &[], b"mine").status, 204);
    for (name, status) in [("none", 404), ("a/../v", 404), ("", 404), ("%2e%2e", 404)] {
        let path = format!("/v1/volumes/{name}/data");
        assert_eq!(http.get(&path, &[]).status, status, "{name}");
        assert_eq!(http.ask("PUT", &path, &[], b"x").status, status, "{name}");
    }
    assert_eq!(http.ask("DELETE", V, &[], &[]).status, 405);
    // Only root can ask as somebody else.
    let me = Command::new("id").arg("-u").output().unwrap().stdout;
    if me.trim_ascii() != b"0" || Command::new("curl").arg("--version").output().is_err() {
        return skips::not_run("others' requests: needs root and curl");
    }
    open_to_all(&dir);
    let other = |more: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-s", "-o"]);
        command.args(["/dev/null", "-w", "%{http_code}", "--unix-socket"]);
        command.arg(dir.path("s.sock")).args(more).arg(format!("http://x{V}"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(other(&[]), "404");
    assert_eq!(other(&["-X", "PUT", "-d", "theirs"]), "404");
    dir.run(&["volume", "chmod", "604", "v"]).succeeded();
    assert_eq!(other(&[]), "200");
    assert_eq!(other(&["-X", "PUT", "-d", "theirs"]), "403");
    assert_eq!(http.get(V, &[]).body, b"mine");
}

fn open_to_all(dir: &Scratch) {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    for path in [dir.path(""), dir.path("s.sock")] {
        set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
}
