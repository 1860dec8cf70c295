//! Every route that takes JSON, with every number of it in turn, and two at a time, at the
//! places where arithmetic breaks: each is answered, none with a fault of the daemon's, and
//! the pool serves on.

use crate::http::ask;
use crate::real::Real;
use serde_json::{Value, json};

/// What is no number of a route's: 2^60 is the most that an amount or a time may be.
const NUMBERS: [u64; 12] = [
    0,
    1,
    1 << 31,
    1 << 32,
    1 << 50,
    (1 << 50) + 1,
    1 << 53,
    1 << 60,
    (1 << 60) + 1,
    1 << 62,
    1 << 63,
    u64::MAX,
];

/// A good request of each route: method, its address, its path in the document, body.
fn requests() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let contract = json!({
        "rate_bytes_per_second": 100_000, "block_bytes": 65_536, "burst_bytes": 65_536});
    let stream = json!({
        "volume": "v", "mode": "read", "contract": contract.clone(), "start_bytes": 0});
    let rate = json!({"class": "rate", "rate_bytes_per_second": 100_000, "block_bytes": 65_536,
        "period_ns": 2_000_000_000u64});
    let latency = json!({"class": "latency", "len_bytes": 65_536, "within_ns": 500_000_000,
        "every_ns": 1_000_000_000});
    let plan = |service: &Value| {
        json!({"alternatives": true, "streams": [
            {"name": "s", "count": 2, "contract": contract.clone()},
            {"name": "t", "count": 1, "service": service.clone()}]})
    };
    let toml = disk::Profile::of(&disk::Model::named("laptop-4200").unwrap()).to_toml();
    vec![
        (
            "POST",
            "/v1/volumes",
            "/v1/volumes",
            json!({"name": "n", "size_bytes": 1_048_576,
            "placement": {"disks": [0]}}),
        ),
        (
            "POST",
            "/v1/volumes",
            "/v1/volumes",
            json!({"name": "r", "size_bytes": 33_554_432, "ring": true, "keep_ns": 1u64 << 40}),
        ),
        ("PATCH", "/v1/volumes/v", "/v1/volumes/{name}", json!({"size_bytes": 8_388_608})),
        (
            "PUT",
            "/v1/volumes/v/times",
            "/v1/volumes/{name}/times",
            json!({"accessed_ns": 1_000_000_000, "modified_ns": 2_000_000_000}),
        ),
        ("PUT", "/v1/volumes/v/keep", "/v1/volumes/{name}/keep", json!({"keep_ns": 1u64 << 40})),
        (
            "PUT",
            "/v1/volumes/v/recorded",
            "/v1/volumes/{name}/recorded",
            json!({"of": "w", "start_bytes": 4096}),
        ),
        ("POST", "/v1/volumes/v/rename", "/v1/volumes/{name}/rename", json!({"to": "v"})),
        ("POST", "/v1/entries", "/v1/entries", json!({"directory": "", "after": ""})),
        ("POST", "/v1/file", "/v1/file", json!({"name": "v"})),
        ("PUT", "/v1/volumes/v/access", "/v1/volumes/{name}/access", json!({"mode": "0600"})),
        ("PUT", "/v1/volumes/v/service", "/v1/volumes/{name}/service", rate.clone()),
        ("PUT", "/v1/volumes/v/service", "/v1/volumes/{name}/service", latency.clone()),
        (
            "POST",
            "/v1/volumes/v/block",
            "/v1/volumes/{name}/block",
            json!({"mode": "read", "rate_bytes_per_second": 100_000}),
        ),
        ("POST", "/v1/streams", "/v1/streams", stream),
        ("PATCH", "/v1/streams/1", "/v1/streams/{id}", json!({"contract": contract.clone()})),
        ("PUT", "/v1/disks/0/profile", "/v1/disks/{disk}/profile", json!({"profile": toml})),
        ("PUT", "/v1/policy", "/v1/policy", json!({"policy": "edl"})),
        ("PUT", "/v1/bus", "/v1/bus", json!({"none": [0]})),
        ("POST", "/v1/tokens", "/v1/tokens", json!({"verbs": ["read"], "until_seconds": 1})),
        ("POST", "/v1/plan", "/v1/plan", plan(&rate)),
        ("POST", "/v1/plan", "/v1/plan", plan(&latency)),
    ]
}

/// Where in a body the numbers are.
fn places(body: &Value, at: String, into: &mut Vec<String>) {
    match body {
        Value::Number(_) => into.push(at),
        Value::Array(all) => {
            (0..).zip(all).for_each(|(i, one): (usize, _)| places(one, format!("{at}/{i}"), into));
        }
        Value::Object(all) => {
            all.iter().for_each(|(name, one)| places(one, format!("{at}/{name}"), into));
        }
        _ => {}
    }
}

#[test]
fn every_route_that_takes_a_body_is_tried() {
    let document: Value = serde_json::from_str(&daemon::routes::openapi_json()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let tried =
                requests().iter().any(|&(m, _, p, _)| p == path && m == method.to_uppercase());
            // Bytes of a volume have no numbers in them.
            let takes_json = operation["requestBody"]["content"].get("application/json");
            assert_eq!(tried, takes_json.is_some(), "{method} {path}");
        }
    }
}

/// Before, the fourth of these requests was the last that the daemon answered to anybody.
#[test]
fn no_number_in_a_request_is_a_fault_of_the_daemons() {
    let daemon = Real::start(256);
    let socket = daemon.client.socket();
    let volume = json!({"name": "v", "size_bytes": 8_388_608}).to_string();
    assert_eq!(ask(socket, "POST", "/v1/volumes", &volume).0, 201);
    let (mut asked, mut out_of_range) = (0, 0);
    let mut send = |method: &str, address: &str, body: &Value, given: u64, place: &str| {
        let (status, kind, answer) = ask(socket, method, address, &body.to_string());
        assert!(
            (200..=507).contains(&status) && status != 500,
            "{method} {address} {body}: {status} {answer}"
        );
        assert!(kind.starts_with("application/") || status == 204, "{kind}");
        asked += 1;
        let is_quantity = ["bytes", "_ns", "second"].iter().any(|end| place.ends_with(end));
        // When it was, since 1970: a later time than any wait is long.
        let is_quantity =
            is_quantity && !["accessed_ns", "modified_ns"].iter().any(|end| place.ends_with(end));
        if is_quantity && given > 1 << 60 {
            assert_eq!(status, 400, "{method} {address} {body}: {answer}");
            assert!(
                answer.contains("out of range") && answer.contains(&given.to_string()),
                "{answer}"
            );
            out_of_range += 1;
        }
    };
    for (method, address, _, good) in requests() {
        let mut all = Vec::new();
        places(&good, String::new(), &mut all);
        for place in &all {
            for given in NUMBERS {
                let mut body = good.clone();
                *body.pointer_mut(place).unwrap() = json!(given);
                send(method, address, &body, given, place);
                for other in all.iter().filter(|other| *other > place) {
                    let mut body = body.clone();
                    *body.pointer_mut(other).unwrap() = json!(given.min(1 << 50));
                    send(method, address, &body, given, place);
                }
            }
        }
        if all.is_empty() {
            send(method, address, &good, 0, "");
        }
    }
    assert!(asked > 300 && out_of_range > 100, "{asked} asked, {out_of_range} out of range");
    let (status, _, health) = ask(socket, "GET", "/v1/health", "");
    assert_eq!(
        (status, serde_json::from_str::<Value>(&health).unwrap()["status"].clone()),
        (200, json!("ok"))
    );
    let mut bytes = vec![0; 4096];
    daemon.client.best_effort("v").unwrap().read_at(units::Bytes::ZERO, &mut bytes).unwrap();
}
