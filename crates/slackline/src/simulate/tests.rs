//! The scenarios of the library, each in a short form: what each promises is kept, and
//! under a broken policy it is not.

use super::file::Instead;
use super::results::{Class, Results};
use std::path::Path;
use units::Duration;

/// Two short runs.
fn short() -> Instead {
    Instead {
        duration: Some(Duration::from_secs(20)),
        warm_up: Some(Duration::from_secs(5)),
        runs: Some(2),
        ..Instead::default()
    }
}

fn played(name: &str, instead: &Instead) -> Results {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"));
    super::results(&folder.join(name), instead).unwrap_or_else(|failure| panic!("{failure:?}"))
}

fn class<'a>(results: &'a Results, name: &str) -> &'a Class {
    results.classes.iter().find(|class| class.name == name).expect("it is in the scenario")
}

/// Everybody is let in, nobody is late, and everybody moves.
fn keeps(name: &str) -> Results {
    let results = played(name, &short());
    assert!(results.kept, "{}", super::words::all(&results));
    for class in &results.classes {
        assert!(class.bytes_per_second.mean > 0.0, "{} stands still", class.name);
        assert_eq!((class.errors, class.throttled), (0, 0), "{}", class.name);
    }
    results
}

/// The canary: the same, first come first served, and whoever comes is let in.
fn breaks(name: &str) {
    let broken = Instead { policy: Some(policies::FCFS), admission: Some(false), ..short() };
    let results = played(name, &broken);
    assert!(results.missed > 0, "{}", super::words::all(&results));
    assert!(super::words::verdict(&results).contains("were broken"));
}

#[test]
fn a_recorder_with_32_cameras_and_scrubbing() {
    let results = keeps("cameras.toml");
    assert_eq!(class(&results, "camera").admitted, 64);
    let person = class(&results, "person");
    assert!(person.begins.count > 4, "they jump: {}", person.begins.count);
    breaks("cameras.toml");
}

#[test]
fn playout_beside_ingest_and_backup() {
    let results = keeps("playout.toml");
    let backup = class(&results, "backup").bytes_per_second.mean;
    assert!(backup > 5e6, "the backup has its rate: {backup}");
    breaks("playout.toml");
}

#[test]
fn a_lab_instrument() {
    let results = keeps("instrument.toml");
    let detector = class(&results, "detector").bytes_per_second.mean;
    assert!((detector - 250e6).abs() < 2e6, "{detector}");
    breaks("instrument.toml");
}

#[test]
fn virtual_machines_beside_both() {
    let results = keeps("machines.toml");
    let door = class(&results, "door");
    assert!(door.requests.max_ns <= 150_000_000, "{}", door.requests.max_ns);
    breaks("machines.toml");
}

#[test]
fn a_database_beside_recordings() {
    let results = keeps("database.toml");
    let index = class(&results, "index");
    assert!(index.requests.count > 140 && index.requests.max_ns <= 120_000_000);
    breaks("database.toml");
}

#[test]
fn a_disk_that_breaks_its_promise() {
    // Its faults come at their times.
    let instead = Instead { runs: Some(1), ..Instead::default() };
    let results = played("broken-disk.toml", &instead);
    assert!(results.missed > 0 && results.refused == 0);
    for class in &results.classes {
        for cause in &class.causes {
            assert!(cause.cause.contains("fault"), "{}: {}", class.name, cause.cause);
        }
    }
    assert_eq!(class(&results, "other").missed, 0, "the other disk keeps its promise");
    assert_eq!(results.power_cuts.iter().map(|cut| cut.lost_bytes).sum::<u64>(), 0);
    assert!(results.power_cuts[0].durable_bytes > 100_000_000);
    // Each time line shows them, and the page begins with the verdict.
    let html = super::page::html(&results, Path::new("broken-disk.toml"), "");
    assert_eq!(html.matches(">what was planned to go wrong</text>").count(), 4, "{html}");
    let verdict = html.find(&*super::words::verdict(&results).replace('&', "&amp;")).unwrap();
    assert!(verdict < html.find("<h2").unwrap() && html[..verdict].matches("<p").count() == 1);
    // Tables scroll by themselves where a screen is narrow, not the page.
    assert_eq!(
        html.matches("<table>").count(),
        html.matches("<div class=\"wide\"><table>").count()
    );
    assert!(html.contains(".wide{overflow-x:auto}"));
}

/// The page and the picture of every scenario are whole, and need nothing from
/// elsewhere.
#[test]
fn the_report_is_whole() {
    let instead = Instead { duration: Some(Duration::from_secs(5)), ..short() };
    let results = played("machines.toml", &instead);
    let html = super::page::html(&results, Path::new("machines.toml"), "name = \"<x>\"\n");
    for wanted in ["<svg", "door", "95 %", "&lt;x&gt;", "viewport"] {
        assert!(html.contains(wanted), "{wanted}");
    }
    for unwanted in ["NaN", "inf,", "<script", "src=", "url("] {
        assert!(!html.contains(unwanted), "{unwanted}");
    }
    let json = crate::output::json(&results);
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["classes"].as_array().map(Vec::len), Some(6));
    assert!(read["classes"][0]["requests"]["p99_ns"]["mean"].is_f64());
}
