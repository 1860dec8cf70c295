//! Contracts that change while they are in use, and volumes that are served otherwise
//! than as best effort, from the command line.

use crate::support::{Scratch, noise, wait_until};

#[test]
fn a_volume_is_served_as_is_asked_for_and_a_refusal_changes_nothing() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    dir.run(&["volume", "create", "v", "--size", "8MiB"]).succeeded();
    let service = || {
        let shown = dir.run(&["volume", "show", "v", "--json"]).succeeded().json();
        shown["service"].clone()
    };
    assert_eq!(service(), serde_json::json!({"class": "best_effort", "priority": "normal"}));
    for priority in ["interactive", "background", "normal"] {
        dir.run(&["volume", "set", "v", "--priority", priority]).succeeded();
        assert_eq!(service()["priority"], priority);
    }
    let status = || dir.run(&["pool", "status", "--json"]).succeeded().json();
    let promised = |status: &serde_json::Value| status["disks"][0]["utilisation_ppm"].as_u64();
    let empty = promised(&status());
    let latency = ["volume", "set", "v", "--within", "60ms", "--every", "100ms", "-b", "16KiB"];
    let said = dir.run(&latency).succeeded();
    assert_eq!(said.text(), "volume v is served within 60 ms, up to 16 KiB every 100 ms now\n");
    let reserved = promised(&status());
    assert!(reserved > empty, "{reserved:?} {empty:?}");

    let rate = ["volume", "set", "v", "--best-effort-rate", "500MB/s"];
    dir.run(&rate).failed(3, &["refused: disk 0", "the largest rate that fits so is", "--period"]);
    assert_eq!((service()["class"].clone(), promised(&status())), ("latency".into(), reserved));
    let rate = ["volume", "set", "v", "--best-effort-rate", "1MB/s", "--period", "2s"];
    dir.run(&rate).succeeded();
    assert_eq!(service()["rate_bytes_per_second"], 1_000_000);
    dir.run(&["volume", "set", "v", "--priority", "normal"]).succeeded();
    assert_eq!(promised(&status()), empty, "what it took is free again");

    assert_eq!(dir.run(&["volume", "set", "v"]).code, Some(2));
    assert_eq!(dir.run(&["volume", "set", "v", "--within", "1ms"]).code, Some(2));
    dir.run(&["volume", "set", "x", "--priority", "normal"]).failed(1, &["there is no volume"]);
}

#[test]
fn an_open_stream_gets_another_contract_and_keeps_its_own_where_that_is_refused() {
    let dir = Scratch::new();
    let _daemon = dir.serve(&dir.make_pool(&["a"]));
    let record = ["record", "v", "--create", "32MiB", "--rate", "500kB/s", "--block", "256KiB"];
    let mut child = dir.command(&[&record[..], &["--copy"]].concat()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let streams = || {
        let all = dir.run(&["stream", "list", "--json"]).succeeded().json();
        all["streams"].as_array().unwrap().clone()
    };
    wait_until(|| !streams().is_empty());
    let id = streams()[0]["id"].to_string();
    let window = streams()[0]["window_bytes"].as_u64().unwrap();
    let set = dir.run(&["stream", "set", &id, "--rate", "8MB/s", "--burst", "2MiB"]).succeeded();
    assert!(set.text().contains("8 MB/s in blocks of 256 KiB now"), "{}", set.text());
    assert!(streams()[0]["window_bytes"].as_u64().unwrap() > window);
    let before = streams()[0]["contract"].clone();
    let much = ["stream", "set", &id, "--rate", "900MB/s"];
    dir.run(&much).failed(3, &["refused: disk 0", "the largest rate that fits"]);
    assert_eq!(streams()[0]["contract"], before);
    // By its volume as well: a stream that is opened again has another number.
    assert!(dir.run(&["stream", "show", "v"]).succeeded().text().contains("write v, open"));
    let burst = dir.run(&["stream", "set", "v", "--burst", "3MiB"]).succeeded();
    assert!(burst.text().starts_with(&format!("stream {id} has 8 MB/s")), "{}", burst.text());
    dir.run(&["stream", "close", "w"]).failed(1, &["no stream is open on a volume \"w\""]);
    assert_eq!(dir.run(&["stream", "set", &id]).code, Some(2));
    dir.run(&["stream", "set", "99", "--rate", "1MB/s"]).failed(1, &["there is no stream 99"]);

    let bytes = noise(1, 6 << 20).bytes();
    std::io::Write::write_all(&mut input, &bytes).unwrap();
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let back = dir.run(&["play", "v", "--rate", "20MB/s"]).succeeded().out;
    assert!(back == bytes, "{} of {}", back.len(), bytes.len());
}
