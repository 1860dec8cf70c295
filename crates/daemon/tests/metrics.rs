//! The figures at `/metrics`, read as a collector reads them.

use crate::http::ask_with;
use crate::support::Running;
use client::control::{Contract, Mode, VolumeCreate};
use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, Rate};

const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";

/// The media type and the text that this is answered with.
fn asked(daemon: &Running, accept: &str) -> (String, String) {
    let (status, kind, text) =
        ask_with(daemon.client.socket(), "GET", "/metrics", &format!("accept: {accept}\r\n"), "");
    assert_eq!(status, 200);
    (kind, text)
}

/// The series by their name and labels, as they stand there; the families must be whole, each in one
/// piece behind its help and its type.
fn scraped(daemon: &Running) -> BTreeMap<String, f64> {
    let (kind, text) = asked(daemon, OPENMETRICS);
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
    let body = text.strip_suffix("# EOF\n").expect("the end marker");
    let (mut family, mut suffix) = (String::new(), "");
    let (mut families, mut series) = (BTreeSet::new(), BTreeMap::new());
    for line in body.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap().into();
            assert!(families.insert(family.clone()), "{family} twice");
            assert!(help.len() > family.len() + 5, "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family);
            suffix = if kind == "counter" { "_total" } else { "" };
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let (bare, _) = name.split_once('{').unwrap_or((name, ""));
            assert_eq!(bare, format!("{family}{suffix}"), "{line}");
            let is_new = series.insert(name.to_owned(), value.parse().unwrap()).is_none();
            assert!(is_new, "{line} twice");
        }
    }
    series
}

const CONTRACT: Contract = Contract {
    rate_bytes_per_second: Rate::per_second(100_000),
    block_bytes: Bytes::kib(4),
    burst_bytes: Bytes::kib(4),
};

/// What Prometheus' own tool has to say.
#[test]
fn promtool_finds_no_fault() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let daemon = Running::start();
    daemon.client.volume_create(&VolumeCreate::new("a \"b\" \\ c", Bytes::MIB)).unwrap();
    let _stream = daemon.client.writer("a \"b\" \\ c", CONTRACT, Bytes::ZERO).unwrap();
    let (_, text) = asked(&daemon, "text/plain");
    assert!(text.contains("slackline_streams{"), "{text}");
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut promtool) = promtool.spawn() else {
        return skips::not_run("needs promtool (Debian: prometheus)");
    };
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ran = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.is_empty(), "{said}");
}

#[test]
fn figures_are_those_of_the_status_and_streams_are_summed_by_volume() {
    let daemon = Running::start();
    let name = "a \"b\" \\ c";
    daemon.client.volume_create(&VolumeCreate::new(name, Bytes::mib(1))).unwrap();
    let _first = daemon.client.reader("v", CONTRACT, Bytes::ZERO).unwrap();
    let _second = daemon.client.reader("v", CONTRACT, Bytes::ZERO).unwrap();
    let _third = daemon.client.reader(name, CONTRACT, Bytes::ZERO).unwrap();
    let (status, series) = (daemon.client.status().unwrap(), scraped(&daemon));
    assert_eq!(series["slackline_volumes"], status.volumes.len() as f64);
    let user = &status.streams[0].user;
    let of = |family: &str, volume: &str| {
        series[&format!("slackline_{family}{{volume=\"{volume}\",user=\"{user}\",mode=\"read\"}}")]
    };
    assert_eq!((of("streams", "v"), of("streams", r#"a \"b\" \\ c"#)), (2.0, 1.0));
    assert_eq!(of("stream_contract_bytes_per_second", "v"), 200_000.0);
    let disk = &status.disks[0];
    let labels = format!("{{disk=\"0\",device=\"{}\"}}", disk.device);
    let ratio = series[&format!("slackline_disk_promised_ratio{labels}")];
    assert!((ratio * 1e6 - disk.utilisation_ppm as f64).abs() < 1.0, "{ratio}");
    assert!(series.contains_key(&format!("slackline_disk_errors_total{labels}")));
    assert_eq!(status.streams.len(), 3);
    assert_eq!(status.streams[0].mode, Mode::Read);
}

/// docs/metrics.md has a row for each family, with its help.
#[test]
fn each_figure_is_documented() {
    let daemon = Running::start();
    let (_, text) = asked(&daemon, OPENMETRICS);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let document = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
        let (name, help) = line.split_once(' ').unwrap();
        let row = document.lines().find(|row| row.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/metrics.md has no row for {name}: {help}"));
        assert!(row.ends_with(&format!("| {help} |")), "{row}\n{help}");
        rows += 1;
    }
    let written = document.lines().filter(|row| row.starts_with("| `slackline_")).count();
    assert_eq!(written, rows, "rows of figures that are not there any more");
}

/// The alerts and the dashboard ask for series that are there; counters by their whole name.
#[test]
fn alerts_and_the_dashboard_ask_for_what_is_told() {
    let daemon = Running::start();
    let (_, text) = asked(&daemon, "*/*");
    let told: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    for file in ["prometheus/slackline.rules.yml", "grafana/slackline.json"] {
        let path = format!("{}/../../packaging/{file}", env!("CARGO_MANIFEST_DIR"));
        let wanted = std::fs::read_to_string(path).unwrap();
        let mut names = 0;
        for (at, _) in wanted.match_indices("slackline_") {
            let rest = &wanted[at..];
            let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap();
            assert!(told.contains(&rest[..end]), "{file}: nothing is told of {}", &rest[..end]);
            names += 1;
        }
        assert!(names >= 8, "{file} asks for {names} series");
    }
}

/// Who does not know OpenMetrics has the same series, counters named whole.
#[test]
fn the_text_format_before_openmetrics_has_the_same_series() {
    let daemon = Running::start();
    let (kind, text) = asked(&daemon, "*/*");
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    assert!(text.contains("# TYPE slackline_disk_errors_total counter\n"), "{text}");
    assert!(text.contains("# HELP slackline_disk_errors_total Commands that failed.\n"), "{text}");
    assert!(!text.contains("# EOF"), "{text}");
    let series = |line: &&str| !line.starts_with('#') && !line.contains("served_seconds");
    let of = |text: &str| -> Vec<String> {
        text.lines().filter(series).map(|line| line.split('}').next().unwrap().into()).collect()
    };
    assert_eq!(of(&text), of(&asked(&daemon, OPENMETRICS).1));
}
