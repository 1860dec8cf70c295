//! The control messages as JSON: what a person would type, and what is refused.

use units::{Bytes, Duration, Rate};
use wire::control::{Contract, Mode, StreamOpen, VolumeCreate, Zone};
use wire::{Code, Problem, Refusal};

#[test]
fn a_request_reads_as_a_person_writes_it_and_defaults_what_may_be_left_out() {
    let create: VolumeCreate =
        serde_json::from_str(r#"{"name":"video","size_bytes":1073741824}"#).unwrap();
    assert_eq!((create.size_bytes, create.placement.zone), (Bytes::GIB, Zone::Any));
    assert!(create.placement.disks.is_empty());
    let open: StreamOpen = serde_json::from_str(
        r#"{"volume":"video","mode":"write","contract":
           {"rate_bytes_per_second":1000000,"block_bytes":262144,"burst_bytes":262144}}"#,
    )
    .unwrap();
    let contract = Contract {
        rate_bytes_per_second: Rate::per_second(1_000_000),
        block_bytes: Bytes::kib(256),
        burst_bytes: Bytes::kib(256),
    };
    assert_eq!(open.contract, contract);
    assert_eq!((open.mode, open.start_bytes), (Mode::Write, None));
}

#[test]
fn a_misspelt_field_a_negative_size_and_a_missing_one_are_refused() {
    for text in [
        r#"{"name":"v","size_bytes":1,"size":2}"#,
        r#"{"name":"v","size_bytes":-1}"#,
        r#"{"name":"v","size_bytes":1.5}"#,
        r#"{"name":"v"}"#,
        r#"{"name":"v","size_bytes":1,"placement":{"zone":"middle"}}"#,
    ] {
        assert!(serde_json::from_str::<VolumeCreate>(text).is_err(), "{text}");
    }
}

#[test]
fn a_refusal_carries_every_figure_there_and_back() {
    let mut problem = Problem::new(Code::Refused, "too much", "ask for less");
    problem.refusal = Some(Refusal {
        disk: 1,
        utilisation_ppm: 1_020_000,
        deadline_ns: Some(Duration::from_millis(507)),
        excess_ns: Some(Duration::from_millis(7)),
        rate_max_bytes_per_second: Rate::per_second(817_000),
        longer: None,
        within_ns: Some(Duration::from_micros(41_300)),
        bus: None,
        undecided: false,
    });
    let json = serde_json::to_value(&problem).unwrap();
    assert_eq!(json["type"], "urn:slackline:problem:refused");
    assert_eq!(json["status"], 409);
    assert_eq!(json["refusal"]["deadline_ns"], 507_000_000);
    assert_eq!(json["refusal"]["rate_max_bytes_per_second"], 817_000);
    assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
}
