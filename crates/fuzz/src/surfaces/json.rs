//! The JSON of the control interface, both ways: as the daemon's extractor takes bodies
//! of requests, and as a client takes answers.

use axum::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::Problem;
use wire::control::*;

/// The first byte says what the rest shall be.
pub fn ask(input: &[u8]) -> bool {
    let Some((&which, body)) = input.split_first() else { return false };
    KINDS[usize::from(which) % KINDS.len()](body)
}

macro_rules! kinds {
    ($($kind:ident),* $(,)?) => {
        const KINDS: &[fn(&[u8]) -> bool] = &[$(same_again::<$kind>),*];
        const NAMES: &[&str] = &[$(stringify!($kind)),*];
    };
}

kinds! {
    VolumeCreate, VolumeResize, VolumeKeep, VolumeCopied, Service, BlockAsk, StreamOpen, StreamChange, DiskProfile,
    PlanRequest, FileOpen, Volumes, Volume, BlockChosen, StreamOpened, StreamClosed, Streams,
    Stream, Disk, Status, Plan, Quotas, FileOpened, FileDevices, Health, Problem,
}

/// What is taken is the same when it is written and read again.
fn same_again<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(body: &[u8]) -> bool {
    let Ok(Json(taken)) = Json::<T>::from_bytes(body) else { return false };
    let written = serde_json::to_vec(&taken).expect("what is said can be written");
    let again: T = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, taken, "{}", String::from_utf8_lossy(&written));
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let contract = r#"{"rate_bytes_per_second":1000000,"block_bytes":262144,"burst_bytes":262144}"#;
    let list = format!(
        r#"{{"streams":[{{"name":"a","count":3,"mode":"read","contract":{contract}}},
        {{"name":"b","service":{{"class":"latency","len_bytes":4096,"within_ns":1000000,
        "every_ns":2000000}},"placement":{{"disks":[1],"zone":"inner"}}}},
        {{"name":"c","service":{{"class":"best_effort","priority":"background"}}}}],
        "alternatives":true}}"#
    );
    let (volumes, plan) = super::requests::answers(&list.replace("true", "false"));
    let bodies = [
        (
            "VolumeCreate",
            r#"{"name":"a","size_bytes":1073741824,"placement":{"disks":[0,1],"zone":"outer"}}"#
                .into(),
        ),
        ("VolumeResize", r#"{"size_bytes":1073741824}"#.into()),
        ("VolumeKeep", r#"{"keep_ns":86400000000000}"#.into()),
        ("VolumeCopied", r#"{"of":"gate","start_bytes":4096}"#.into()),
        (
            "Service",
            r#"{"class":"rate","rate_bytes_per_second":9,"block_bytes":4096,"period_ns":9}"#.into(),
        ),
        ("BlockAsk", r#"{"mode":"read","rate_bytes_per_second":1000000}"#.into()),
        (
            "StreamOpen",
            format!(
                r#"{{"volume":"v","mode":"write","start_bytes":0,"contract":{contract},
                "shared_window":true}}"#
            ),
        ),
        ("StreamChange", format!(r#"{{"contract":{contract}}}"#)),
        ("DiskProfile", r#"{"profile":"kind = \"linear\"\n"}"#.into()),
        ("PlanRequest", list),
        ("FileOpen", format!(r#"{{"contract":{contract},"start_bytes":4096}}"#)),
        ("Volumes", volumes),
        ("BlockChosen", r#"{"block_bytes":65536}"#.into()),
        (
            "StreamOpened",
            r#"{"id":7,"window_bytes":65536,"data_socket":"/a","attach_within_ms":10000}"#.into(),
        ),
        ("StreamClosed", r#"{"id":7,"durable_bytes":1}"#.into()),
        ("Streams", r#"{"streams":[]}"#.into()),
        ("Plan", plan),
        (
            "FileOpened",
            r#"{"id":1,"window_bytes":4,"length_bytes":9,"attach_within_ms":1,"notes":["a"]}"#
                .into(),
        ),
        ("FileDevices", r#"{"devices":[]}"#.into()),
        ("Health", r#"{"status":"ok","pool":"p","version":"1"}"#.into()),
        (
            "Problem",
            r#"{"type":"a","title":"b","status":409,"detail":"c","code":"refused","next_step":"d"}"#
                .into(),
        ),
    ];
    let seed = |(name, body): (&str, String)| {
        let which = NAMES.iter().position(|kind| *kind == name).expect("a kind of this name");
        [&[which as u8], body.as_bytes()].concat()
    };
    bodies.map(seed).into()
}
