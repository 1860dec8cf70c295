//! sslscan, which looks for what servers get wrong in TLS, on each port that the daemon has.
//!
//! In NBD TLS begins within the protocol, at `NBD_OPT_STARTTLS`. sslscan does not speak that, so it is
//! run against a [`relay`] that does it and passes on what comes. Whether [`findings`] finds anything
//! is seen on servers that are weak on purpose.

use super::{World, has, run};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::{io, thread};
use support::{Ran, Scratch};

use super::support;

/// A cipher or a group below this can be broken with enough money. Of a certificate the same in its own
/// measure; sslscan gives that of elliptic curves as it gives that of ciphers.
const BITS: u32 = 128;
const RSA_BITS: u32 = 2048;

/// What sslscan has seen of the server at a port of this machine, as XML. Where a server ends a connection
/// while sslscan writes to it, sslscan shall not be ended by the signal: it says so, gives up, and ends with 1.
/// Whether it has seen everything is judged by [`findings`].
fn scan(port: u16) -> String {
    let command = "trap '' PIPE; exec sslscan --no-colour --xml=- \"$0\"";
    run("sh", &["-c", command, &format!("127.0.0.1:{port}")]).text().to_owned()
}

/// An attribute of an element that stands on a line of its own.
fn attribute<'a>(line: &'a str, name: &str) -> &'a str {
    let after = line.split_once(&format!(" {name}=\"")).map(|(_, after)| after);
    let value = after.and_then(|after| after.split_once('"'));
    value.map(|(value, _)| value).unwrap_or_else(|| panic!("no {name} in: {line}"))
}

fn bits(line: &str) -> u32 {
    attribute(line, "bits").parse().unwrap()
}

/// What is wrong in a scan, above low: old versions, weak ciphers, groups and certificates, what is known by
/// the names Heartbleed and CRIME, renegotiation, and whatever sslscan could not look at.
fn findings(scan: &str) -> Vec<String> {
    let of = |element: &str| {
        let start = format!("<{element} ");
        scan.lines().map(str::trim).filter(move |line| line.starts_with(&start))
    };
    let mut found = Vec::new();
    for error in scan.lines().filter(|line| line.contains("<error>")) {
        found.push(error.trim().to_owned());
    }
    // Versions. Each has to be told, so that none was left out.
    let protocol = |kind: &str, version: &str| {
        let is_it =
            |line: &&str| attribute(line, "type") == kind && attribute(line, "version") == version;
        of("protocol").find(is_it).map(|line| attribute(line, "enabled") == "1")
    };
    for (kind, version) in [("ssl", "2"), ("ssl", "3"), ("tls", "1.0"), ("tls", "1.1")] {
        match protocol(kind, version) {
            Some(false) => {}
            Some(true) => found.push(format!("{kind} {version} is spoken")),
            None => found.push(format!("{kind} {version} was not looked at")),
        }
    }
    let [older, newest] = ["1.2", "1.3"].map(|version| protocol("tls", version));
    if [older, newest].iter().all(|enabled| *enabled != Some(true)) {
        found.push("neither TLS 1.2 nor TLS 1.3 is spoken".into());
    }
    // TLS 1.3 has neither compression nor renegotiation.
    let compresses = of("compression").map(|line| attribute(line, "supported")).collect::<Vec<_>>();
    if compresses.contains(&"1") {
        found.push("compression".into());
    } else if compresses.is_empty() && older != Some(false) {
        found.push("compression was not looked at".into());
    }
    match of("renegotiation").next() {
        None => found.push("renegotiation was not looked at".into()),
        Some(line) if attribute(line, "supported") == "1" => {
            let is_secure = attribute(line, "secure") == "1";
            let how = if is_secure { "can be asked for" } else { "is insecure" };
            found.push(format!("renegotiation {how}"));
        }
        Some(_) => {}
    }
    if of("heartbleed").next().is_none() {
        found.push("Heartbleed was not looked at".into());
    }
    let bleeds = of("heartbleed").filter(|line| attribute(line, "vulnerable") != "0");
    found.extend(bleeds.map(|line| format!("Heartbleed in {}", attribute(line, "sslversion"))));
    // Ciphers that encrypt and authenticate in one, with keys that nobody learns later.
    if of("cipher").next().is_none() {
        found.push("no cipher was seen".into());
    }
    for line in of("cipher") {
        let (name, strength) = (attribute(line, "cipher"), attribute(line, "strength"));
        let is_whole = ["GCM", "CCM", "CHACHA20_POLY1305", "CHACHA20-POLY1305"];
        let is_whole = is_whole.iter().any(|part| name.contains(part)) && !name.contains("CCM8");
        let is_forward = ["TLS_", "ECDHE-"].iter().any(|start| name.starts_with(start));
        let is_good = ["strong", "acceptable"].contains(&strength);
        if !is_whole || !is_forward || !is_good || bits(line) < BITS {
            let version = attribute(line, "sslversion");
            found.push(format!("cipher {name} in {version}: {strength}, {} bits", bits(line)));
        }
    }
    if of("group").next().is_none() {
        found.push("no group for keys was seen".into());
    }
    for line in of("group").filter(|line| bits(line) < BITS) {
        found.push(format!("group {}: {} bits", attribute(line, "name"), bits(line)));
    }
    // The certificate.
    let signed = scan.lines().filter_map(|line| {
        let after = line.trim().strip_prefix("<signature-algorithm>")?;
        after.strip_suffix("</signature-algorithm>")
    });
    let signed: Vec<&str> = signed.collect();
    if signed.is_empty() || of("pk").next().is_none() {
        found.push("no certificate was seen".into());
    }
    let is_good = |name: &&str| ["256", "384", "512"].iter().any(|len| name.contains(len));
    let weak = signed.iter().filter(|name| !is_good(name) && **name != "ED25519");
    found.extend(weak.map(|name| format!("certificate signed by {name}")));
    for line in of("pk") {
        let kind = attribute(line, "type");
        let least = if kind == "RSA" { RSA_BITS } else { BITS };
        if attribute(line, "error") != "false" || bits(line) < least {
            found.push(format!("certificate's key: {kind}, {} bits", bits(line)));
        }
    }
    if scan.contains("<expired>true</expired>") {
        found.push("certificate has expired".into());
    }
    found
}

/// Listens where TLS is spoken from the first byte, and passes it on to an NBD server at this port, once the
/// server has agreed to begin TLS. Until the test's process ends.
fn relay(nbd: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            // What goes wrong ends this connection: the scan sees that nothing is spoken there.
            thread::spawn(move || pass_on(&client?, &in_tls(nbd)?));
        }
    });
    port
}

/// A connection to an NBD server that speaks TLS from here on.
fn in_tls(nbd: u16) -> io::Result<TcpStream> {
    const GREETING: &[u8] = b"NBDMAGICIHAVEOPT";
    /// Fixed newstyle, no zeroes.
    const FLAGS: u32 = 3;
    const STARTTLS: u32 = 5;
    const REPLY: u64 = 0x0003_e889_0455_65a9;
    const ACK: u32 = 1;
    let mut server = TcpStream::connect(("127.0.0.1", nbd))?;
    let mut greeting = [0; 18];
    server.read_exact(&mut greeting)?;
    let none = 0u32.to_be_bytes();
    let option = [b"IHAVEOPT", &STARTTLS.to_be_bytes()[..], &none].concat();
    server.write_all(&[&FLAGS.to_be_bytes()[..], &option].concat())?;
    let mut reply = [0; 20];
    server.read_exact(&mut reply)?;
    let agreed = [&REPLY.to_be_bytes()[..], &STARTTLS.to_be_bytes(), &ACK.to_be_bytes(), &none];
    match greeting.starts_with(GREETING) && reply == *agreed.concat() {
        true => Ok(server),
        false => Err(io::Error::other(format!("{greeting:?}, {reply:?}"))),
    }
}

/// Copies both ways until both have ended.
fn pass_on(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    let copy = |mut from: &TcpStream, mut to: &TcpStream| {
        let _ = io::copy(&mut from, &mut to); // either may reset it
        let _ = to.shutdown(Shutdown::Write);
    };
    thread::scope(|threads| {
        threads.spawn(|| copy(client, server));
        copy(server, client);
    });
    Ok(())
}

/// HTTP, with which control over TCP comes, and NBD.
#[test]
fn sslscan_finds_nothing_old_or_weak_on_any_port() {
    if !has(&["sslscan"]) {
        return;
    }
    let world = World::new();
    let (_daemon, ports) = world.serve();
    for (what, port) in [("HTTP", ports.http), ("NBD", relay(ports.nbd))] {
        let seen = scan(port);
        assert_eq!(findings(&seen), [""; 0], "{what}: {seen}");
        // It was the daemon that was looked at, and this is all that it speaks.
        let newest = "<protocol type=\"tls\" version=\"1.3\" enabled=\"1\" />";
        let older = "<protocol type=\"tls\" version=\"1.2\" enabled=\"0\" />";
        for part in [newest, older, "<subject><![CDATA[slackline]]></subject>"] {
            assert!(seen.contains(part), "{what}: no {part} in {seen}");
        }
    }
    // Without the word for TLS there is none at NBD's port.
    let found = findings(&scan(ports.nbd)).join("; ");
    assert!(found.contains("no cipher was seen"), "{found}");
}

/// A server of openssl's with a key of this kind, until it is dropped.
struct Planted {
    server: Child,
    port: u16,
}

impl Planted {
    fn new(dir: &Scratch, key: &[&str], more: &[&str]) -> Self {
        let [key_file, certificate] = ["planted.key", "planted.crt"].map(|name| dir.text(name));
        let made = ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=planted"];
        let into = ["-keyout", &key_file, "-out", &certificate];
        let mut command = Command::new("openssl");
        command.args([&made[..], key, &into].concat());
        Ran::from(command.stdin(Stdio::null()).output().unwrap()).succeeded();
        let mut command = Command::new("openssl");
        command.args(["s_server", "-www", "-accept", "127.0.0.1:0"]);
        command.args(["-key", &key_file, "-cert", &certificate]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().unwrap();
        let said = BufReader::new(server.stdout.take().unwrap());
        let accepts = said.lines().map(Result::unwrap).find(|line| line.starts_with("ACCEPT"));
        let port = accepts.as_ref().and_then(|line| line.rsplit(':').next()).unwrap();
        Self { server, port: port.parse().unwrap() }
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The check of the check: each weakness that a server is given is found, and none where there is none.
#[test]
fn what_is_weak_on_purpose_is_found() {
    if !has(&["sslscan", "openssl"]) {
        return;
    }
    let dir = Scratch::new();
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-sha256"];
    let strong_groups = ["-groups", "X25519:P-256"];
    let newest = [&["-tls1_3"][..], &strong_groups].concat();
    let sound = scan(Planted::new(&dir, &curve, &newest).port);
    assert_eq!(findings(&sound), [""; 0], "{sound}");

    let everything = ["-cipher", "ALL:@SECLEVEL=0", "-client_renegotiation"];
    let old = scan(Planted::new(&dir, &curve, &everything).port);
    let found = findings(&old);
    for planted in [
        "tls 1.0 is spoken",
        "tls 1.1 is spoken",
        "renegotiation can be asked for",
        "compression was not looked at",
        "cipher AECDH-AES256-SHA in TLSv1.0: anonymous, 256 bits",
        "cipher ECDHE-ECDSA-AES128-SHA in TLSv1.2: acceptable, 128 bits",
        "group ffdhe2048: 112 bits",
    ] {
        assert!(found.iter().any(|one| one == planted), "{planted}: {found:#?}");
    }
    let short = ["-newkey", "rsa:1024", "-sha1"];
    let more = [&newest[..], &["-cipher", "DEFAULT:@SECLEVEL=0"]].concat();
    let found = findings(&scan(Planted::new(&dir, &short, &more).port));
    let wanted =
        ["certificate signed by sha1WithRSAEncryption", "certificate's key: RSA, 1024 bits"];
    assert_eq!(found, wanted);

    // What no server of today can be made to do is planted in what sslscan says.
    for (is, planted, wanted) in [
        ("vulnerable=\"0\"", "vulnerable=\"1\"", "Heartbleed in TLSv1.3"),
        (
            "supported=\"0\" secure=\"0\"",
            "supported=\"1\" secure=\"0\"",
            "renegotiation is insecure",
        ),
        ("<renegotiation ", "<compression supported=\"1\" />\n<renegotiation ", "compression"),
        (
            "\"ssl\" version=\"3\" enabled=\"0\"",
            "\"ssl\" version=\"3\" enabled=\"1\"",
            "ssl 3 is spoken",
        ),
        ("<protocol type=\"ssl\" version=\"2\"", "<none version=\"2\"", "ssl 2 was not looked at"),
        ("<expired>false", "<expired>true", "certificate has expired"),
        (
            "type=\"EC\" curve_name=\"prime256v1\" bits=\"128\"",
            "type=\"EC\" bits=\"80\"",
            "certificate's key: EC, 80 bits",
        ),
    ] {
        assert!(sound.contains(is), "no {is} in {sound}");
        assert_eq!(findings(&sound.replace(is, planted)), [wanted]);
    }
    assert!(findings("").len() > 8, "nothing was looked at");
}
