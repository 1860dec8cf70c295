//! The daemon over TCP: what a token lets its holder do over HTTP and NBD, and what nobody does;
//! with the programs that people have, curl and libnbd's.
#![allow(clippy::print_stdout)] // what could not be run is said

mod programs;
mod scans;
#[path = "../support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use support::{Daemon, Ran, Scratch, noise, wait_until};

const MIB: u64 = 1 << 20;

/// A daemon on TCP with two volumes.
struct World {
    dir: Scratch,
    disks: Vec<String>,
}

/// Where a daemon listens.
struct Ports {
    http: u16,
    nbd: u16,
}

impl World {
    fn new() -> Self {
        let dir = Scratch::new();
        let disks = dir.make_pool(&["a"]);
        Self { dir, disks }
    }

    fn serve(&self) -> (Daemon, Ports) {
        let state = self.dir.text("state");
        let on = "127.0.0.1:0";
        let args = ["--commit-interval", "100ms", "--state-dir", &state];
        let args = [&args[..], &["--listen", on, "--nbd-listen", on]].concat();
        let daemon = self.dir.try_serve(&self.disks, &args).unwrap();
        let port = |what: &str| daemon.line_with(what).rsplit(':').next().unwrap().parse().unwrap();
        let ports =
            Ports { http: port("serving HTTP over TLS"), nbd: port("serving NBD over TLS") };
        (daemon, ports)
    }

    fn make(&self, name: &str) {
        self.dir.run(&["volume", "create", name, "--size", "8MiB"]).succeeded();
    }

    fn token(&self, args: &[&str]) -> String {
        let made = self.dir.run(&[&["token", "make"][..], args].concat()).succeeded();
        made.text().trim().to_owned()
    }

    fn narrow(&self, token: &str, args: &[&str]) -> String {
        let args = [&["token", "narrow"][..], args].concat();
        self.dir.run_with(&args, token.as_bytes()).succeeded().text().trim().to_owned()
    }

    fn certificate(&self) -> String {
        self.dir.text("state/test/ca.crt")
    }

    /// curl with a token: the status, and what came.
    fn curl(&self, ports: &Ports, token: &str, path: &str, more: &[&str]) -> (u16, Vec<u8>) {
        let out = self.dir.path("curl.out");
        let _ = std::fs::remove_file(&out);
        let mut command = Command::new("curl");
        command
            .args(["-sS", "--cacert", &self.certificate(), "-w", "%{http_code}", "-o"])
            .arg(&out);
        if !token.is_empty() {
            command.args(["-H", &format!("authorization: Bearer {token}")]);
        }
        command.args(more).arg(format!("https://localhost:{}{path}", ports.http));
        let ran = Ran::from(command.stdin(Stdio::null()).output().unwrap()).succeeded();
        (ran.text().parse().unwrap(), std::fs::read(&out).unwrap_or_default())
    }

    /// Held to the refusal: its status, and what it says. It tells nothing that is secret.
    #[track_caller]
    fn refused(
        &self,
        ports: &Ports,
        token: &str,
        (path, more): (&str, &[&str]),
        says: (u16, &str),
    ) {
        let (status, body) = self.curl(ports, token, path, more);
        let body = String::from_utf8(body).unwrap();
        assert_eq!(status, says.0, "{body}");
        assert!(body.contains(says.1), "\"{}\" is not in: {body}", says.1);
        assert!(token.is_empty() || !body.contains(token), "{body}");
    }

    /// The address of a volume as a block device.
    fn device(&self, ports: &Ports, export: &str) -> String {
        let trusted = self.dir.path("trusted");
        std::fs::create_dir_all(&trusted).unwrap();
        std::fs::copy(self.certificate(), trusted.join("ca-cert.pem")).unwrap();
        let at = ports.nbd;
        format!("nbds://localhost:{at}/{export}?tls-certificates={}", trusted.display())
    }
}

fn has(programs: &[&str]) -> bool {
    let has = programs.iter().all(|program| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    });
    skips::can_run(has, format!("needs {programs:?}"))
}

fn run(program: &str, args: &[&str]) -> Ran {
    Ran::from(Command::new(program).args(args).stdin(Stdio::null()).output().unwrap())
}

/// curl, which has heard that there are events.
fn watching(args: &[&str]) -> (Child, ChildStdout) {
    let mut command = Command::new("curl");
    command.args(["-sSN", "-H", "accept: text/event-stream"]).args(args);
    let mut curl = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut heard = curl.stdout.take().unwrap();
    let mut first = [0; 6];
    heard.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"data: ");
    (curl, heard)
}

/// The page itself is everybody's and says nothing; what it shows needs a token, and is held to it.
#[test]
fn the_page_is_given_to_strangers_and_what_it_shows_is_not() {
    if !has(&["curl"]) {
        return;
    }
    let world = World::new();
    let (daemon, ports) = world.serve();
    ["mine", "other"].iter().for_each(|name| world.make(name));
    for part in ["/", "/page.js", "/page.css"] {
        let (status, text) = world.curl(&ports, "", part, &[]);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(status, 200, "{part}");
        assert!(text.len() > 1_000 && !text.contains("mine"), "{part}: {text}");
    }
    for path in ["/v1/overview", "/v1/history"] {
        world.refused(&ports, "", (path, &[]), (401, "show one token"));
    }
    let token = world.token(&["--volume", "mine", "--verbs", "read"]);
    let (status, text) = world.curl(&ports, &token, "/v1/overview", &[]);
    let text = String::from_utf8(text).unwrap();
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\"mine\"") && !text.contains("other"), "{text}");
    let write = world.token(&["--volume", "mine", "--verbs", "write"]);
    world.refused(&ports, &write, ("/v1/overview", &[]), (403, "read"));
    // Those who watch by his tokens are as many as may, and do not keep him out.
    let authorization = format!("authorization: Bearer {token}");
    let address = format!("https://localhost:{}/v1/overview", ports.http);
    let certificate = world.certificate();
    let by_token = ["--cacert", &certificate, "-H", &authorization, &address];
    let mut watching: Vec<_> = (0..8).map(|_| watching(&by_token)).collect();
    let events = ["-H", "accept: text/event-stream"];
    let (status, _) = world.curl(&ports, &token, "/v1/overview", &events);
    assert_eq!(status, 503);
    let socket = world.dir.text("s.sock");
    let (mut own, _) = self::watching(&["--unix-socket", &socket, "http://localhost/v1/overview"]);
    own.kill().unwrap();
    own.wait().unwrap();
    // Their events end when the token is revoked.
    let number = world.dir.run(&["token", "list", "--json"]).succeeded().json();
    let number = number["tokens"][0]["number"].to_string();
    world.dir.run(&["token", "revoke", &number]).succeeded();
    for (curl, heard) in &mut watching {
        let mut rest = Vec::new();
        heard.read_to_end(&mut rest).unwrap();
        curl.wait().unwrap();
    }
    daemon.kill();
}

/// Each refusal of the show, by curl, and what is let through.
#[test]
fn a_token_lets_do_over_https_what_it_says_and_nothing_else() {
    if !has(&["curl"]) {
        return;
    }
    let world = World::new();
    let (_daemon, ports) = world.serve();
    ["film", "other", "films/one"].iter().for_each(|name| world.make(name));
    let bytes = noise(1, 3 * MIB).bytes();
    std::fs::write(world.dir.path("in"), &bytes).unwrap();
    let put = ["-T", &world.dir.text("in")];
    let data = |name: &str| format!("/v1/volumes/{name}/data");
    let all = world.token(&[]);

    assert_eq!(world.curl(&ports, &all, &data("film"), &put).0, 204);
    let film = world.token(&["--volume", "film", "--verbs", "read", "--rate-max", "1MB/s"]);
    let (status, read) = world.curl(&ports, &film, &data("film"), &[]);
    assert!(status == 200 && read == bytes, "{status}, {} bytes", read.len());
    let promised = data("film") + "?rate=1MB/s";
    let (status, read) = world.curl(&ports, &film, &promised, &["-r", "0-1048575"]);
    assert!(status == 206 && read == bytes[..MIB as usize], "{status}: under contract");

    let no_more: &[&str] = &[];
    let not_for = "the token is not for volume \\\"other\\\"";
    world.refused(&ports, &film, (&data("other"), no_more), (403, not_for));
    // Not told from one that is not there.
    world.refused(&ports, &film, (&data("none"), no_more), (403, "not for volume"));
    world.refused(&ports, &film, (&data("film"), &put), (403, "does not let you write"));
    let larger = data("film") + "?rate=2MB/s";
    world.refused(&ports, &film, (&larger, no_more), (403, "at most 1 MB/s"));
    world.refused(&ports, &film, ("/v1/volumes/film", &["-X", "DELETE"]), (403, "create"));
    world.refused(&ports, &film, ("/v1/quota", no_more), (403, "concerns the pool"));
    world.refused(&ports, &all, ("/v1/tokens", no_more), (403, "for no token"));
    world.refused(&ports, "", (&data("film"), no_more), (401, "authorization: Bearer"));
    let changed = film.replacen("slt1_A", "slt1_B", 1);
    world.refused(&ports, &changed, (&data("film"), no_more), (401, "was changed"));
    world.refused(&ports, "slt1_AAAA", (&data("film"), no_more), (401, "no token"));
    let over = world.narrow(&all, &["--for", "0s"]);
    world.refused(&ports, &over, (&data("film"), no_more), (401, "good until"));

    // By its number a volume has no other name.
    let known = "/v1/volumes/%2F1/data";
    let other = world.token(&["--volume", "/1"]);
    world.refused(&ports, &other, (known, no_more), (403, "not for volume \\\"/1\\\""));
    let films = world.narrow(&all, &["--prefix", "films/", "--verbs", "read,manage"]);
    let (status, listed) = world.curl(&ports, &films, "/v1/volumes", &[]);
    let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
    assert!(status == 200 && listed["volumes"].as_array().unwrap().len() == 1, "{listed}");
    assert_eq!(listed["volumes"][0]["name"], "films/one");
    let (_, figures) = world.curl(&ports, &films, "/metrics", &[]);
    assert!(!String::from_utf8(figures).unwrap().contains("\"other\""), "names of others");
    let rename = |to: &str| format!("{{\"to\": \"{to}\"}}");
    let as_json = ["-H", "content-type: application/json", "-d"];
    let (away, within) = (rename("away"), rename("films/two"));
    let away = [&as_json[..], &[&away]].concat();
    let address = "/v1/volumes/films%2Fone/rename";
    world.refused(&ports, &films, (address, &away), (403, "not for volume"));
    let within = [&as_json[..], &[&within]].concat();
    assert_eq!(world.curl(&ports, &films, address, &within).0, 204);

    let listed = world.dir.run(&["token", "list", "--json"]).succeeded().json();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 3, "{listed}");
    world.dir.run(&["token", "revoke", "2"]).succeeded();
    world.refused(&ports, &film, (&data("film"), no_more), (401, "token 2 was revoked"));
    assert_eq!(world.curl(&ports, &all, "/v1/health", &[]).0, 200);
}

/// A rename deletes what it replaces, and gives all that lies under a directory other names.
#[test]
fn a_token_renames_nothing_out_of_what_it_is_for() {
    if !has(&["curl"]) {
        return;
    }
    let world = World::new();
    let (_daemon, ports) = world.serve();
    ["v1", "v2", "in/a"].iter().for_each(|name| world.make(name));
    let rename = |token: &str, from: &str, said: &str| {
        let address = format!("/v1/volumes/{from}/rename");
        let args = ["-H", "content-type: application/json", "-d", said];
        let (status, body) = world.curl(&ports, token, &address, &args);
        (status, String::from_utf8(body).unwrap())
    };
    let replace = "{\"to\": \"v2\", \"replace\": true}";
    let manage = world.token(&["--prefix", "v", "--verbs", "manage"]);
    let (status, body) = rename(&manage, "v1", replace);
    assert!(status == 403 && body.contains("does not let you create"), "{status}: {body}");
    let kept = "{\"to\": \"v2\", \"replace\": true, \"keep_as\": \"v3\"}";
    assert_eq!(rename(&manage, "v1", kept).0, 204, "what is kept is not deleted");
    let both = world.token(&["--prefix", "v", "--verbs", "manage,create"]);
    assert_eq!(rename(&both, "v3", replace).0, 204);
    // A name of what was removed while it was open is that of something that soon is gone. Before, who
    // may only rename could give one, to what he renames and to what has to make way.
    let all = world.token(&["--verbs", "manage"]);
    let gone = "{\"to\": \".slackline-removed/1\"}";
    let away = "{\"to\": \"in/a\", \"replace\": true, \"keep_as\": \".slackline-removed/2\"}";
    for (from, said) in [("v2", gone), ("v2", away)] {
        let (status, body) = rename(&all, from, said);
        assert!(status == 403 && body.contains("does not let you create"), "{status}: {body}");
    }
    let all = world.token(&["--verbs", "manage,create"]);
    assert_eq!(rename(&all, "v2", gone).0, 204);

    let (names, to) =
        (["--volume", "in", "--volume", "in/a", "--volume", "out"], "{\"to\": \"out\"}");
    let out = world.token(&[&names[..], &["--verbs", "manage"]].concat());
    let (status, body) = rename(&out, "in", to);
    assert!(status == 403 && body.contains("not for volume \\\"out/...\\\""), "{status}: {body}");
    let within = world.token(&[&names[..], &["--volume", "out/a", "--verbs", "manage"]].concat());
    assert_eq!(rename(&within, "in", to).0, 204);
}

/// A service is a contract, and held to the token's rate as one.
#[test]
fn a_token_gives_a_volume_no_larger_contract_than_it_has() {
    if !has(&["curl"]) {
        return;
    }
    let world = World::new();
    let (_daemon, ports) = world.serve();
    world.make("v");
    let token = world.token(&["--verbs", "manage,read", "--rate-max", "500KB/s"]);
    let service = |rate: u64| {
        format!(
            "{{\"class\": \"rate\", \"rate_bytes_per_second\": {rate}, \"block_bytes\": 65536, \
             \"period_ns\": 1000000000}}"
        )
    };
    let in_time = "{\"class\": \"latency\", \"len_bytes\": 4096, \"within_ns\": 100000000, \
                   \"every_ns\": 100000000}";
    let put = ["-X", "PUT", "-H", "content-type: application/json", "-d"];
    let address = "/v1/volumes/v/service";
    let (more, less) = (service(600_000), service(400_000));
    let larger = [&put[..], &[&more]].concat();
    world.refused(&ports, &token, (address, &larger), (403, "at most"));
    world.refused(&ports, &token, (address, &[&put[..], &[in_time]].concat()), (403, "at most"));
    let smaller = [&put[..], &[&less]].concat();
    let (status, body) = world.curl(&ports, &token, address, &smaller);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
}

/// nbdcopy both ways, and each refusal, through the library that people use.
#[test]
fn a_token_opens_a_block_device_over_tls_and_no_other() {
    if !has(&["nbdinfo", "nbdcopy"]) {
        return;
    }
    let world = World::new();
    let (_daemon, ports) = world.serve();
    ["film", "other"].iter().for_each(|name| world.make(name));
    let bytes = noise(2, 8 * MIB).bytes();
    std::fs::write(world.dir.path("in"), &bytes).unwrap();
    let (into, out) = (world.dir.text("in"), world.dir.text("out"));
    let all = world.token(&["--volume", "film"]);
    let device = |export: &str| world.device(&ports, export);
    run("nbdcopy", &["--flush", &into, &device(&format!("film@{all}"))]).succeeded();
    let read_only = world.narrow(&all, &["--verbs", "read"]);
    run("nbdcopy", &[&device(&format!("film@{read_only}")), &out]).succeeded();
    assert!(std::fs::read(&out).unwrap() == bytes);
    let told = run("nbdinfo", &[&device(&format!("film@{read_only}@background"))]).succeeded();
    let told = told.text();
    assert!(told.contains("with TLS") && told.contains("is_read_only: true"), "{told}");

    let refused = |export: &str, says: &str| {
        assert_ne!(run("nbdinfo", &[&device(export)]).code, Some(0), "{export}");
        // libnbd does not print what the daemon says; qemu does.
        if has(&["qemu-io"]) {
            let trusted = world.dir.text("trusted");
            let secrets = format!("tls-creds-x509,id=t,endpoint=client,dir={trusted}");
            let port = ports.nbd;
            let image = format!(
                "driver=nbd,server.type=inet,server.host=localhost,server.port={port},\
                 export={export},tls-creds=t"
            );
            let args = ["-r", "--object", &secrets, "--image-opts", &image, "-c", "read 0 512"];
            let ran = run("qemu-io", &args);
            assert!(ran.err.contains(says), "\"{says}\" is not in: {}", ran.err);
        }
    };
    refused(&format!("other@{all}"), "the token is not for volume");
    refused("film", "show a token");
    refused(&format!("film@{}", all.replacen("slt1_A", "slt1_B", 1)), "was changed");
    refused(&format!("film@{}", world.narrow(&all, &["--for", "0s"])), "good until");
    let create = world.narrow(&all, &["--verbs", "create"]);
    refused(&format!("film@{create}"), "does not let you read");
    let plain = run("nbdinfo", &[&format!("nbd://localhost:{}/film@{all}", ports.nbd)]);
    assert_ne!(plain.code, Some(0), "without TLS: {}", plain.text());
    let list = run("nbdinfo", &["--list", &device("")]);
    assert!(!list.text().contains("other"), "{}", list.text());

    world.dir.run(&["token", "revoke", "1"]).succeeded();
    refused(&format!("film@{read_only}"), "token 1 was revoked");
}

/// Whoever had a token revoked that is in use finds the connection ended.
#[test]
fn a_connection_ends_with_its_token() {
    /// More than sockets hold.
    const LEN: u64 = 64 * MIB;
    if !has(&["curl", "openssl"]) {
        return;
    }
    let world = World::new();
    let (_daemon, ports) = world.serve();
    world.make("film");
    let token = world.token(&[]);
    std::fs::write(world.dir.path("in"), noise(3, LEN).bytes()).unwrap();
    let put = ["-T", &world.dir.text("in")];
    assert_eq!(world.curl(&ports, &token, "/v1/volumes/film/data", &put).0, 204);
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-verify_quiet", "-CAfile", &world.certificate()]);
    command.args(["-connect", &format!("localhost:{}", ports.http)]).stderr(Stdio::null());
    let mut asking = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let request = "GET /v1/volumes/film/data HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ";
    let mut input = asking.stdin.take().unwrap();
    write!(input, "{request}{token}\r\n\r\n").unwrap();
    let mut first = [0; 15];
    let mut output = asking.stdout.take().unwrap();
    output.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let connections = || {
        let quotas = world.dir.run(&["quota", "--json"]).succeeded().json();
        let holders = quotas["holders"].as_array().unwrap().clone();
        holders.iter().filter_map(|one| one["best_effort_connections"].as_u64()).sum::<u64>()
    };
    assert_eq!(connections(), 1);
    world.dir.run(&["token", "revoke", "1"]).succeeded();
    wait_until(|| connections() == 0);
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).unwrap();
    assert!((rest.len() as u64) < LEN, "all of it came");
    let _ = asking.wait();
}

/// What is kept outlives a kill: the key, what was revoked, and the certificate.
#[test]
fn tokens_and_the_certificate_outlive_a_kill() {
    if !has(&["curl"]) {
        return;
    }
    let world = World::new();
    let (daemon, ports) = world.serve();
    let (kept, gone) = (world.token(&[]), world.token(&[]));
    assert_eq!(world.curl(&ports, &gone, "/v1/health", &[]).0, 200);
    world.dir.run(&["token", "revoke", "2"]).succeeded();
    let certificate = std::fs::read(world.certificate()).unwrap();
    let secrets = [&kept, &gone].map(|token| token[10..].to_owned());
    let log = daemon.said();
    assert!(!secrets.iter().any(|secret| log.contains(secret)), "{log}");
    daemon.kill();
    let (_daemon, ports) = world.serve();
    assert_eq!(world.curl(&ports, &kept, "/v1/health", &[]).0, 200);
    world.refused(&ports, &gone, ("/v1/health", &[]), (401, "token 2 was revoked"));
    assert_eq!(std::fs::read(world.certificate()).unwrap(), certificate);
    for name in ["tls.key", "tokens.key", "tokens.json"] {
        let file = world.dir.path("state/test").join(name);
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&file).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600, "{name}");
        assert!(
            !std::fs::read(&file)
                .unwrap()
                .windows(20)
                .any(|part| { secrets.iter().any(|secret| part == &secret.as_bytes()[..20]) })
        );
    }
}

/// What strangers send is no reason to wait, to fall over, or to answer.
#[test]
fn who_speaks_no_tls_is_sent_away_and_who_asks_before_it_is_told_nothing() {
    let world = World::new();
    let (daemon, ports) = world.serve();
    world.make("film");
    let ended = |port: u16, sent: &[u8]| {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
        connection.write_all(sent).unwrap();
        let mut answer = Vec::new();
        // A reset, too: what was sent had not been read.
        let _ = connection.read_to_end(&mut answer);
        answer
    };
    let plain = ended(ports.http, b"GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!(!plain.starts_with(b"HTTP"), "{plain:?}");
    ended(ports.http, &noise(4, 100_000).bytes());
    ended(ports.nbd, &noise(5, 100_000).bytes());
    let option = |option: u32, data: &[u8]| {
        let len = (data.len() as u32).to_be_bytes();
        [&b"IHAVEOPT"[..], &option.to_be_bytes(), &len, data].concat()
    };
    let flags = 3u32.to_be_bytes();
    // The old way to choose: there is no word for a refusal.
    let sent = [&flags[..], &option(1, b"film")].concat();
    assert_eq!(ended(ports.nbd, &sent).len(), 18, "the greeting alone");
    // A list before TLS, which is refused; and what is sent behind the word that begins TLS
    // without being encrypted is no option.
    let sent = [&flags[..], &option(3, &[]), &option(5, &[]), &option(3, &[])].concat();
    let answer = ended(ports.nbd, &sent);
    let has = |wanted: &[u8]| answer.windows(wanted.len()).any(|part| part == wanted);
    assert!(has(&0x8000_0005_u32.to_be_bytes()), "{answer:?}");
    assert!(!has(b"film"), "{answer:?}");
    // More of those who say nothing than may be: the oldest give way, and others come in.
    let silent: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", ports.nbd)).unwrap()).collect();
    wait_until(|| {
        let mut first = &silent[0];
        let mut bytes = Vec::new();
        // The greeting, and the end.
        first.read_to_end(&mut bytes).is_ok_and(|len| len <= 18)
    });
    if has_curl_says_health(&world, &ports) {
        drop(silent);
    }
    daemon.signal("TERM");
    let (code, log) = daemon.wait();
    assert_eq!(code, Some(0), "{log}");
}

fn has_curl_says_health(world: &World, ports: &Ports) -> bool {
    let token = world.token(&[]);
    has(&["curl"]) && world.curl(ports, &token, "/v1/health", &[]).0 == 200
}

#[test]
fn without_being_told_nothing_listens_and_plain_tcp_goes_on_loopback_alone() {
    let world = World::new();
    let dir = &world.dir;
    let state = dir.text("state");
    let quiet = ["--commit-interval", "100ms", "--state-dir", &state];
    let daemon = dir.try_serve(&world.disks, &quiet).unwrap();
    daemon.line_with("serving pool");
    assert!(!daemon.said().contains(" at 127") && !Path::new(&state).exists(), "{}", daemon.said());
    daemon.kill();
    let far = [&quiet[..], &["--plain-tcp", "--listen", "0.0.0.0:0"]].concat();
    let refused = dir.try_serve(&world.disks, &far).err().unwrap();
    refused.failed(2, &["--listen 0.0.0.0:0", "other machines", "--plain-tcp"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let refused = dir.try_serve(&world.disks, &[&quiet[..], &["--listen", &at]].concat());
    refused.err().unwrap().failed(1, &["--listen", &at]);
    let near = [&quiet[..], &["--plain-tcp", "--nbd-listen", "127.0.0.1:0"]].concat();
    let daemon = dir.try_serve(&world.disks, &near).unwrap();
    let line = daemon.line_with("WITHOUT encryption");
    let at = line.rsplit(' ').next().unwrap().to_owned();
    if has(&["nbdinfo"]) {
        world.make("v");
        let token = world.token(&[]);
        run("nbdinfo", &["--size", &format!("nbd://{at}/v@{token}")]).succeeded();
        assert_ne!(run("nbdinfo", &["--size", &format!("nbd://{at}/v")]).code, Some(0));
    }
}

#[test]
fn tokens_are_made_narrowed_and_shown_by_the_command() {
    let world = World::new();
    let (_daemon, _) = world.serve();
    let dir = &world.dir;
    let file = dir.text("token");
    dir.run(&["token", "make", "--prefix", "films/", "-o", &file]).succeeded();
    dir.run(&["token", "make", "-o", &file]).failed(1, &["token"]);
    let shown = dir.run(&["token", "show", &file]).succeeded();
    assert!(shown.text().contains("all that begin with \"films/\""), "{}", shown.text());
    assert!(shown.text().contains("until 20"), "30 days where nothing is said");
    let narrow = dir.run(&["token", "narrow", &file, "--rate-max", "1MB/s"]).succeeded();
    let shown = dir.run_with(&["token", "show"], &narrow.out).succeeded();
    assert!(shown.text().contains("at most 1 MB/s"), "{}", shown.text());
    dir.run(&["token", "narrow", &file]).failed(2, &["nothing is taken away"]);
    dir.run_with(&["token", "show"], b"slt1_x").failed(1, &["no token"]);
    dir.run(&["token", "make", "--volume", ""]).failed(2, &["no volume"]);
    dir.run(&["token", "revoke", "9"]).failed(1, &["no token 9"]);
    dir.run(&["token", "make", "--verbs", "destroy"]);
}

/// What a player in the page is given for a volume: it reads this volume's bytes and does nothing
/// else, and ends with the token.
#[test]
fn a_player_reads_the_bytes_of_one_volume_and_does_nothing_else() {
    if !has(&["curl"]) {
        return;
    }
    let world = World::new();
    let (daemon, ports) = world.serve();
    ["films/one", "films/other"].iter().for_each(|name| world.make(name));
    let bytes = noise(1, 3 * MIB).bytes();
    std::fs::write(world.dir.path("in"), &bytes).unwrap();
    let put = ["-T", &world.dir.text("in")];
    let (one, other) = ("/v1/volumes/films%2Fone", "/v1/volumes/films%2Fother");
    let (data, player) = (format!("{one}/data"), format!("{one}/player"));
    let all = world.token(&["--prefix", "films/"]);
    for volume in [one, other] {
        assert_eq!(world.curl(&ports, &all, &format!("{volume}/data"), &put).0, 204);
    }
    // Given to who may read the volume, and to nobody else.
    let post = ["-X", "POST"];
    world.refused(&ports, "", (&player, &post), (401, "show one token"));
    let writes = world.token(&["--prefix", "films/", "--verbs", "write"]);
    world.refused(&ports, &writes, (&player, &post), (403, "read"));
    let others = world.token(&["--volume", "films/other"]);
    world.refused(&ports, &others, (&player, &post), (403, "films/one"));
    let jar = world.dir.text("jar");
    let given = world.curl(&ports, &all, &player, &["-X", "POST", "-c", &jar, "-i"]);
    let head = String::from_utf8(given.1).unwrap();
    assert_eq!(given.0, 200, "{head}");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let (shown, how) = cookie.trim().split_once("; ").unwrap();
    assert_eq!(how, format!("Path={data}; Max-Age=600; HttpOnly; SameSite=Strict; Secure"));
    assert!(!head.contains(&all), "{head}");
    let shown = shown.to_owned();
    let with: [&str; 2] = ["-b", &shown];
    // It plays, from any place.
    assert_eq!(world.curl(&ports, "", &data, &with), (200, bytes.clone()));
    let range = [&with[..], &["-r", "1000000-1000009"]].concat();
    assert_eq!(world.curl(&ports, "", &data, &range), (206, bytes[1_000_000..1_000_010].to_vec()));
    // As a browser keeps it: sent to these bytes, and to no other address.
    let kept = ["-b", &jar];
    assert_eq!(world.curl(&ports, "", &data, &kept).0, 200);
    for path in [one, &format!("{other}/data"), "/v1/overview"] {
        world.refused(&ports, "", (path, &kept), (401, "show one token"));
    }
    // Sent all the same, it is heard nowhere else: no other volume, no word of this one, no write,
    // no contract, no other permission.
    world.refused(&ports, "", (&format!("{other}/data"), &with), (403, "films/other"));
    for (path, more) in [
        (one, &[][..]),
        ("/v1/overview", &[]),
        ("/v1/status", &[]),
        ("/metrics", &[]),
        (&*player, &post),
        (&*data, &put),
        (one, &["-X", "DELETE"]),
    ] {
        let more = [&with[..], more].concat();
        world.refused(&ports, "", (path, &more), (401, "show one token"));
    }
    let contract = format!("{data}?rate=1MB/s");
    world.refused(&ports, "", (&contract, &with), (403, "at most 0 B/s"));
    // It is no token.
    let (_, token) = shown.split_once("=").unwrap().1.split_once('.').unwrap();
    world.refused(&ports, token, (&data, &[]), (401, "was changed"));
    world.refused(&ports, token, (&data, &with), (401, "was changed"));
    // Neither does it last longer, nor is a token one, nor is it for another name.
    let (until, rest) = shown.split_once('=').unwrap().1.split_once('.').unwrap();
    let later = until.parse::<u64>().unwrap() + 1;
    for made_up in [format!("{later}.{rest}"), format!("{until}.{all}"), all.clone(), "x".into()] {
        let with = ["-b", &format!("slackline-player={made_up}")];
        world.refused(&ports, "", (&data, &with), (401, "was not made by this daemon"));
    }
    world.dir.run(&["volume", "rename", "films/one", "films/two"]).succeeded();
    let renamed = "/v1/volumes/films%2Ftwo/data";
    world.refused(&ports, "", (renamed, &with), (403, "films/two"));
    world.dir.run(&["volume", "rename", "films/two", "films/one"]).succeeded();
    // One that was over long ago.
    let over = token::Token::parse(&all).unwrap().player(5).reveal();
    let over = ["-b", &format!("slackline-player={over}")];
    world.refused(&ports, "", (&data, &over), (401, "is over"));
    // It ends with the token.
    assert_eq!(world.curl(&ports, "", &data, &with).0, 200);
    let tokens = world.dir.run(&["token", "list", "--json"]).succeeded().json();
    world.dir.run(&["token", "revoke", &tokens["tokens"][0]["number"].to_string()]).succeeded();
    world.refused(&ports, "", (&data, &with), (401, "was revoked"));
    daemon.kill();
}
