//! The OpenAPI document against its rules, against the committed copy, and
//! against what the daemon really answers.

use crate::http::ask;
use crate::schema::{check, check_answer, check_document};
use crate::support::Running;
use daemon::config::SocketMode;
use daemon::serve::ServeOptions;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use wire::Code;

fn document() -> Value {
    serde_json::from_str(&daemon::routes::openapi_json()).unwrap()
}

#[test]
fn the_document_keeps_the_rules_of_openapi_and_its_examples_keep_its_schemas() {
    check_document(&document()).unwrap();
}

#[test]
fn the_committed_files_are_what_the_code_says() {
    let api = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api");
    let protocol = api.join("data-protocol.md");
    let text = std::fs::read_to_string(&protocol).unwrap();
    let (begin, end) = ("<!-- table from code -->\n", "<!-- end of table -->");
    let (before, rest) = text.split_once(begin).expect("the table's place");
    let (_, after) = rest.split_once(end).expect("the table's end");
    let wanted = format!("{before}{begin}{}{end}{after}", wire::frame::table());
    for (path, wanted) in
        [(api.join("openapi.json"), daemon::routes::openapi_json()), (protocol, wanted)]
    {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &wanted).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let name = path.file_name().unwrap().display();
        assert!(found == wanted, "docs/api/{name} is old: run this test with UPDATE_DOCS=1");
    }
}

#[test]
fn the_router_answers_exactly_what_the_document_has() {
    let daemon = Running::start();
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        let address = path.replace("{name}", "v").replace("{id}", "77");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let (status, kind, body) = ask(daemon.client.socket(), method, &address, "{}");
            let code = serde_json::from_str::<wire::Problem>(&body).map(|problem| problem.code);
            let unanswered = [Code::MethodNotAllowed, Code::NotFound];
            let answered = !code.is_ok_and(|code| unanswered.contains(&code));
            let documented = item.get(method.to_lowercase()).is_some();
            assert_eq!(answered, documented, "{method} {path}: {status} {body}");
            if !documented {
                assert_eq!((status, kind.as_str()), (405, "application/problem+json"));
            }
        }
    }
    for path in ["/page", "/v1", "/v2/status", "/v1/volumes/", "/v1/volumes/a/b"] {
        let (status, kind, body) = ask(daemon.client.socket(), "GET", path, "");
        assert_eq!((status, kind.as_str()), (404, "application/problem+json"), "{path}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["code"], "not_found");
    }
}

/// What a program may ask, good and bad: method, address, the path in the
/// document, body, status. In this order they make a history.
fn history() -> Vec<(&'static str, &'static str, &'static str, Value, u16)> {
    let contract = |rate: u64| json!({"rate_bytes_per_second": rate, "block_bytes": 4096, "burst_bytes": 4096});
    let open = |rate: u64| json!({"volume": "a b", "mode": "read", "contract": contract(rate)});
    let kind =
        |count: u64, rate: u64| json!({"name": "k", "count": count, "contract": contract(rate)});
    let every = json!({"name": "l", "service": {
        "class": "latency", "len_bytes": 4096, "within_ns": 50_000_000, "every_ns": 100_000_000}});
    let (plan, service) = ("/v1/plan", "/v1/volumes/{name}/service");
    let (rename, times) = ("/v1/volumes/{name}/rename", "/v1/volumes/{name}/times");
    let copied = |of: &str| json!({"of": of, "start_bytes": 4096});
    let (keep, recorded) = ("/v1/volumes/{name}/keep", "/v1/volumes/{name}/recorded");
    let (block, access) = ("/v1/volumes/{name}/block", "/v1/volumes/{name}/access");
    let of = |rate: u64| json!({"mode": "write", "rate_bytes_per_second": rate});
    let (profile, reprofile) = ("/v1/disks/{disk}/profile", "/v1/disks/{disk}/reprofile");
    let toml = disk::Profile::of(&disk::Model::named("laptop-4200").unwrap()).to_toml();
    let (tokens, player) = ("/v1/tokens", "/v1/volumes/{name}/player");
    let (list, one) = ("/v1/volumes", "/v1/volumes/{name}");
    let handle = "/v1/volumes/{name}/handles/{handle}";
    let data = "/v1/volumes/{name}/data";
    let (streams, stream) = ("/v1/streams", "/v1/streams/{id}");
    vec![
        ("GET", "/v1/health", "/v1/health", json!(null), 200),
        ("GET", "/v1/openapi.json", "/v1/openapi.json", json!(null), 200),
        ("GET", "/metrics", "/metrics", json!(null), 200),
        ("POST", list, list, json!({"name": "a b", "size_bytes": 1 << 20}), 201),
        ("POST", list, list, json!({"name": "a b", "size_bytes": 1 << 20}), 409),
        ("POST", list, list, json!({"name": "d", "size_bytes": 0, "access": {"mode": "9"}}), 400),
        ("POST", list, list, json!({"name": "c", "size": 1}), 400),
        ("POST", list, list, json!({"name": "c", "size_bytes": -1}), 400),
        ("GET", "/v1/volumes/a%20b", one, json!(null), 200),
        ("GET", "/v1/volumes/nobody", one, json!(null), 404),
        ("PATCH", "/v1/volumes/a%20b", one, json!({"size_bytes": 2 << 20}), 200),
        ("PATCH", "/v1/volumes/nobody", one, json!({"size_bytes": 2 << 20}), 404),
        ("PATCH", "/v1/volumes/a%20b", one, json!({"size_bytes": 2 << 20, "may_cut": true}), 200),
        (
            "PATCH",
            "/v1/volumes/a%20b",
            one,
            json!({"size_bytes": 1 << 20, "keep_space": true,
                "unless_changed": {"writer": 7, "version": "0-0"}}),
            200,
        ),
        ("PUT", "/v1/volumes/a%20b/access", access, json!({"mode": "0640", "group": "0"}), 200),
        ("PUT", "/v1/volumes/a%20b/access", access, json!({"mode": "rw-"}), 400),
        ("PUT", "/v1/volumes/a%20b/access", access, json!({"mode": 640}), 400),
        ("PUT", "/v1/volumes/a%20b/access", access, json!({"user": "no such user"}), 400),
        ("PUT", "/v1/volumes/nobody/access", access, json!({"mode": "0640"}), 404),
        ("POST", "/v1/volumes/a%20b/rename", rename, json!({"to": "a b"}), 204),
        ("POST", "/v1/volumes/a%20b/rename", rename, json!({"name": "c"}), 400),
        ("POST", "/v1/volumes/nobody/rename", rename, json!({"to": "c"}), 404),
        ("PUT", "/v1/volumes/a%20b/times", times, json!({"modified_ns": -1}), 204),
        ("PUT", "/v1/volumes/nobody/times", times, json!({}), 404),
        ("POST", list, list, json!({"name": "r", "size_bytes": 1 << 25, "ring": true}), 201),
        ("POST", list, list, json!({"name": "p", "size_bytes": 1, "keep_ns": 1u64 << 40}), 400),
        ("GET", "/v1/volumes/r", one, json!(null), 200),
        ("PUT", "/v1/volumes/r/keep", keep, json!({"keep_ns": 1u64 << 40}), 204),
        ("PUT", "/v1/volumes/r/keep", keep, json!({}), 204),
        ("PUT", "/v1/volumes/r/keep", keep, json!({"keep_ns": 1u64 << 61}), 400),
        ("PUT", "/v1/volumes/a%20b/keep", keep, json!({"keep_ns": 1u64 << 40}), 400),
        ("PUT", "/v1/volumes/nobody/keep", keep, json!({}), 404),
        ("GET", "/v1/volumes/a%20b/recorded?at_ns=5&offset_bytes=0", recorded, json!(null), 200),
        ("GET", "/v1/volumes/a%20b/recorded?at=5", recorded, json!(null), 400),
        ("GET", "/v1/volumes/nobody/recorded", recorded, json!(null), 404),
        ("PUT", "/v1/volumes/a%20b/recorded", recorded, copied("r"), 200),
        ("PUT", "/v1/volumes/a%20b/recorded", recorded, copied("nobody"), 404),
        ("PUT", "/v1/volumes/nobody/recorded", recorded, copied("r"), 404),
        ("PUT", "/v1/volumes/a%20b/recorded", recorded, json!({"of": "r"}), 400),
        ("GET", "/v1/recordings?from_ns=-5&to_ns=5", "/v1/recordings", json!(null), 200),
        ("GET", "/v1/recordings?from_ns=5&to_ns=5", "/v1/recordings", json!(null), 400),
        ("GET", "/v1/recordings?from_ns=5", "/v1/recordings", json!(null), 400),
        ("POST", "/v1/entries", "/v1/entries", json!({"directory": "", "after": "a"}), 200),
        ("POST", "/v1/file", "/v1/file", json!({"name": "a b"}), 200),
        ("POST", "/v1/file", "/v1/file", json!({"name": "nobody"}), 404),
        ("POST", "/v1/sync", "/v1/sync", json!(null), 200),
        ("PUT", "/v1/volumes/a%20b/service", service, every["service"].clone(), 200),
        ("PUT", "/v1/volumes/a%20b/service", service, json!({"class": "best_effort"}), 200),
        ("PUT", "/v1/volumes/a%20b/service", service, json!({"class": "rate", "rate": 1}), 400),
        ("PUT", "/v1/volumes/nobody/service", service, json!({"class": "best_effort"}), 404),
        ("POST", "/v1/volumes/a%20b/player", player, json!(null), 200),
        ("POST", "/v1/volumes/nobody/player", player, json!(null), 404),
        ("POST", "/v1/volumes/a%20b/block", block, of(100_000), 200),
        ("POST", "/v1/volumes/a%20b/block", block, json!({"mode": "read"}), 400),
        ("POST", "/v1/volumes/nobody/block", block, of(100_000), 404),
        ("PUT", "/v1/volumes/a%20b/data", data, json!("some bytes"), 204),
        ("PUT", "/v1/volumes/a%20b/data?rate=1MB/s", data, json!("some bytes"), 400),
        ("PUT", "/v1/volumes/nobody/data", data, json!("some bytes"), 404),
        ("GET", "/v1/volumes/a%20b/data", data, json!(null), 200),
        ("GET", "/v1/volumes/a%20b/data?priority=high", data, json!(null), 400),
        ("GET", "/v1/volumes/a%20b/data?rate=80MB/s", data, json!(null), 409),
        ("GET", "/v1/volumes/nobody/data", data, json!(null), 404),
        ("POST", streams, streams, open(6_000_000), 201),
        ("PATCH", "/v1/streams/1", stream, json!({"contract": contract(5_000_000)}), 200),
        ("PATCH", "/v1/streams/1", stream, json!({"contract": contract(50_000_000)}), 409),
        ("PATCH", "/v1/streams/99", stream, json!({"contract": contract(1)}), 404),
        ("POST", streams, streams, open(6_000_000), 409),
        ("GET", "/v1/streams/1", stream, json!(null), 200),
        ("GET", "/v1/streams/99", stream, json!(null), 404),
        ("GET", streams, streams, json!(null), 200),
        ("GET", list, list, json!(null), 200),
        ("GET", "/v1/status", "/v1/status", json!(null), 200),
        ("GET", "/v1/overview", "/v1/overview", json!(null), 200),
        ("GET", "/v1/history", "/v1/history", json!(null), 200),
        ("GET", "/v1/events?after=0", "/v1/events", json!(null), 200),
        ("GET", "/v1/quota", "/v1/quota", json!(null), 200),
        ("GET", "/v1/files", "/v1/files", json!(null), 200),
        ("POST", "/v1/disks/0/reprofile", reprofile, json!(null), 200),
        ("POST", "/v1/disks/7/reprofile", reprofile, json!(null), 404),
        ("GET", "/v1/policy", "/v1/policy", json!(null), 200),
        ("PUT", "/v1/policy", "/v1/policy", json!({"policy": "edl"}), 200),
        ("PUT", "/v1/policy", "/v1/policy", json!({"policy": "fair"}), 400),
        ("PUT", "/v1/policy", "/v1/policy", json!({"settings": {"burst": "100ms"}}), 200),
        ("PUT", "/v1/policy", "/v1/policy", json!({"settings": {"burst": "1h"}}), 400),
        ("PUT", "/v1/bus", "/v1/bus", json!({"shared": "scsi,rate=20MB/s,disks=0+1"}), 200),
        ("PUT", "/v1/bus", "/v1/bus", json!({"shared": "scsi,rate=20MB/s"}), 400),
        ("PUT", "/v1/bus", "/v1/bus", json!({"none": [0]}), 200),
        ("POST", tokens, tokens, json!({"volumes": ["a b"], "verbs": ["read"]}), 201),
        ("POST", tokens, tokens, json!({"rate_max_bytes_per_second": 5, "until_seconds": 9}), 201),
        ("POST", tokens, tokens, json!({"prefixes": [""]}), 400),
        ("POST", tokens, tokens, json!({"verbs": ["destroy"]}), 400),
        ("GET", tokens, tokens, json!(null), 200),
        ("DELETE", "/v1/tokens/1", "/v1/tokens/{number}", json!(null), 204),
        ("DELETE", "/v1/tokens/1", "/v1/tokens/{number}", json!(null), 404),
        ("DELETE", "/v1/volumes/a%20b/handles/1", handle, json!(null), 404),
        ("DELETE", "/v1/volumes/a%20b/handles/x", handle, json!(null), 400),
        ("PUT", "/v1/disks/0/profile", profile, json!({"profile": toml}), 200),
        ("PUT", "/v1/disks/7/profile", profile, json!({"profile": toml}), 404),
        ("PUT", "/v1/disks/0/profile", profile, json!({"profile": "none"}), 400),
        ("POST", plan, plan, json!({"streams": [kind(2, 1_000_000)], "alternatives": true}), 200),
        ("POST", plan, plan, json!({"streams": [kind(2, 80_000_000), every]}), 200),
        ("POST", plan, plan, json!({"streams": [{"name": "both or neither"}]}), 400),
        ("POST", plan, plan, json!({"streams": [kind(10_001, 1)]}), 400),
        ("DELETE", "/v1/volumes/a%20b", one, json!(null), 409),
        ("DELETE", "/v1/streams/x", stream, json!(null), 400),
        ("DELETE", "/v1/streams/1", stream, json!(null), 200),
        ("DELETE", "/v1/streams/1", stream, json!(null), 404),
        ("DELETE", "/v1/volumes/a%20b", one, json!(null), 204),
    ]
}

#[test]
fn every_answer_is_what_the_document_says() {
    let state = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
    let options = ServeOptions::from(SocketMode(0o600));
    let daemon =
        Running::start_by(ServeOptions { state: Some(state.path().to_owned()), ..options });
    let document = document();
    let mut seen = BTreeSet::new();
    for (method, address, path, request, wanted) in history() {
        let at = format!("{method} {address} {request}");
        let body = match &request {
            Value::Null => String::new(),
            // Bytes, not JSON.
            Value::String(bytes) => bytes.clone(),
            request => request.to_string(),
        };
        let (status, kind, answer) = ask(daemon.client.socket(), method, address, &body);
        assert_eq!(status, wanted, "{at}: {answer}");
        let operation = &document["paths"][path][method.to_lowercase()];
        seen.insert(operation["operationId"].as_str().unwrap().to_owned());
        // A problem is described for each operation, or is none of it (400 on a path).
        let responses = &operation["responses"];
        let response = responses.get(status.to_string()).or(responses.get("default"));
        let Some(response) = response else { panic!("{at}: {status} is not described") };
        match response.get("content").and_then(Value::as_object) {
            None => assert_eq!((answer.as_str(), kind.as_str()), ("", ""), "{at}"),
            Some(content) => {
                let media = content.get(&kind).unwrap_or_else(|| panic!("{at}: {kind}"));
                if !kind.ends_with("json") {
                    continue;
                }
                let value = serde_json::from_str(&answer).unwrap();
                check_answer(&document, &media["schema"], &value, &at).unwrap();
            }
        }
        if (200..300).contains(&status) && !matches!(request, Value::Null | Value::String(_)) {
            let media = &operation["requestBody"]["content"]["application/json"];
            check(&document, &media["schema"], &request, &at).unwrap();
        }
    }
    let all = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|item| item.as_object().unwrap().values());
    let all: BTreeSet<_> = all.map(|one| one["operationId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(seen, all, "the history asks everything that can be asked");
}

#[test]
fn what_axum_itself_refuses_is_a_problem_too() {
    let daemon = Running::start();
    let large = format!("{{\"name\": \"{}\"}}", "x".repeat(daemon::limits::CONTROL_BODY_MAX));
    for (body, wanted) in [("not json", 400), ("", 400), (large.as_str(), 413)] {
        let (status, kind, answer) = ask(daemon.client.socket(), "POST", "/v1/volumes", body);
        assert_eq!((status, kind.as_str()), (wanted, "application/problem+json"), "{answer}");
        let problem: wire::Problem = serde_json::from_str(&answer).unwrap();
        assert_eq!(problem.status, wanted);
        assert!(!problem.detail.is_empty() && !problem.next_step.is_empty());
    }
}

/// The checks above, held against planted faults: each must be found.
#[test]
fn the_checks_find_planted_faults() {
    let good = document();
    let plant = |fault: &dyn Fn(&mut Value)| {
        let mut bad = good.clone();
        fault(&mut bad);
        check_document(&bad).expect_err("a planted fault")
    };
    let get = "/paths/~1v1~1volumes~1{name}/get";
    plant(&|bad| bad["openapi"] = json!("3.0.3"));
    plant(&|bad| drop(bad["info"].as_object_mut().unwrap().remove("title")));
    plant(&|bad| drop(bad["components"]["schemas"].as_object_mut().unwrap().remove("Contract")));
    plant(&|bad| bad.pointer_mut(get).unwrap()["operationId"] = json!("health"));
    plant(&|bad| bad.pointer_mut(get).unwrap()["parameters"] = json!([]));
    plant(&|bad| bad.pointer_mut(get).unwrap()["responses"] = json!({}));
    plant(&|bad| bad.pointer_mut(get).unwrap()["respones"] = json!({}));
    plant(&|bad| bad["components"]["schemas"]["Code"]["enum"] = json!(["Refused"]));
    plant(&|bad| bad["components"]["schemas"]["Volume"]["patternProperties"] = json!({}));

    let volume = &good["components"]["schemas"]["VolumeCreate"];
    let check = |value: &Value| check_answer(&good, volume, value, "it");
    check(&json!({"name": "v", "size_bytes": 1, "placement": {"zone": "outer"}})).unwrap();
    for bad in [
        json!({"name": "v"}),
        json!({"name": 1, "size_bytes": 1}),
        json!({"name": "v", "size_bytes": -1}),
        json!({"name": "v", "size_bytes": 0.5}),
        json!({"name": "v", "size_bytes": 1, "extra": 1}),
        json!({"name": "v", "size_bytes": 1, "placement": {"zone": "middle"}}),
        json!({"name": "v", "size_bytes": 1, "placement": {"disks": [-1]}}),
        json!([]),
    ] {
        check(&bad).expect_err(&bad.to_string());
    }
}
