//! The JSON of the control interface, both ways: as the daemon's extractor takes bodies
//! of requests, and as a client takes answers.

use axum::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::Problem;
use wire::control::*;

/// The first byte says what the rest shall be.
pub fn ask(input: &[u8]) {
    let Some((&which, body)) = input.split_first() else { return };
    KINDS[usize::from(which) % KINDS.len()](body);
}

const KINDS: &[fn(&[u8])] = &[
    same_again::<VolumeCreate>,
    same_again::<VolumeResize>,
    same_again::<Service>,
    same_again::<BlockAsk>,
    same_again::<StreamOpen>,
    same_again::<StreamChange>,
    same_again::<DiskProfile>,
    same_again::<PlanRequest>,
    same_again::<FileOpen>,
    same_again::<Volumes>,
    same_again::<Volume>,
    same_again::<BlockChosen>,
    same_again::<StreamOpened>,
    same_again::<StreamClosed>,
    same_again::<Streams>,
    same_again::<Status>,
    same_again::<Plan>,
    same_again::<Quotas>,
    same_again::<FileOpened>,
    same_again::<FileDevices>,
    same_again::<Health>,
    same_again::<Problem>,
];

/// What is taken is the same when it is written and read again.
fn same_again<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(body: &[u8]) {
    let Ok(Json(taken)) = Json::<T>::from_bytes(body) else { return };
    let written = serde_json::to_vec(&taken).expect("what is said can be written");
    let again: T = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, taken, "{}", String::from_utf8_lossy(&written));
}

pub fn seeds() -> Vec<Vec<u8>> {
    let contract = r#"{"rate_bytes_per_second":1000000,"block_bytes":262144,"burst_bytes":262144}"#;
    let bodies = [
        r#"{"name":"video","size_bytes":1073741824,"placement":{"disks":[0,1],"zone":"outer"}}"#
            .into(),
        r#"{"size_bytes":1073741824}"#.into(),
        r#"{"class":"rate","rate_bytes_per_second":1000000,"block_bytes":4096,"period_ns":1000000}"#
            .into(),
        r#"{"mode":"read","rate_bytes_per_second":1000000}"#.into(),
        format!(r#"{{"volume":"v","mode":"write","start_bytes":0,"contract":{contract},"shared_window":true}}"#),
        format!(r#"{{"contract":{contract}}}"#),
        r#"{"profile":"kind = \"linear\"\n"}"#.into(),
        format!(r#"{{"streams":[{{"name":"a","count":3,"mode":"read","contract":{contract}}},{{"name":"b","service":{{"class":"latency","len_bytes":4096,"within_ns":1000000,"every_ns":2000000}},"placement":{{"disks":[1],"zone":"inner"}}}},{{"name":"c","service":{{"class":"best_effort","priority":"background"}}}}],"alternatives":true}}"#),
        format!(r#"{{"contract":{contract},"start_bytes":4096}}"#),
        r#"{"volumes":[]}"#.into(),
        r#"{}"#.into(),
        r#"{"block_bytes":65536}"#.into(),
        r#"{"id":7,"window_bytes":65536,"data_socket":"/a/b","attach_within_ms":10000}"#.into(),
        r#"{}"#.into(),
        r#"{"streams":[]}"#.into(),
        r#"{}"#.into(),
        r#"{}"#.into(),
        r#"{}"#.into(),
        r#"{"id":1,"window_bytes":4096,"length_bytes":9,"attach_within_ms":1,"notes":["a"]}"#.into(),
        r#"{"devices":[]}"#.into(),
        r#"{"status":"ok","pool":"p","version":"1"}"#.into(),
        r#"{"type":"a","title":"b","status":409,"detail":"c","code":"refused","next_step":"d"}"#
            .into(),
    ];
    let bodies: [String; 22] = bodies;
    (0u8..).zip(bodies).map(|(which, body)| [&[which], body.as_bytes()].concat()).collect()
}
