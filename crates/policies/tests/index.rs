//! The index of policies is the table and the first lines of each file, so that it
//! cannot go stale: `SLACKLINE_WRITE=1 cargo test -p slackline-policies index::`
//! writes it.

use sched::{Admission, PolicyKind, Setting, SettingUnit};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

const PARTS: [&str; 4] = ["Promises:", "Does not:", "Cost:", "Source:"];

fn path(below: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(below)
}

fn file_of(kind: PolicyKind) -> String {
    let name = kind.name.replace('-', "_");
    let here = format!("crates/policies/src/{name}.rs");
    let is_here = path("../..").join(&here).exists();
    if is_here { here } else { format!("crates/sched/src/policies/{name}.rs") }
}

/// The comment that a policy's file opens with, as one line.
fn opening(kind: PolicyKind) -> String {
    let file = file_of(kind);
    let text = fs::read_to_string(path("../..").join(&file)).expect(&file);
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ").replace("[`", "`").replace("`]", "`")
}

/// The four parts of an opening, in order.
fn parts(kind: PolicyKind) -> [String; 4] {
    let text = opening(kind);
    let starts = PARTS.map(|part| {
        text.find(part).unwrap_or_else(|| panic!("{}: no `{part}` in its opening", file_of(kind)))
    });
    assert!(starts.is_sorted(), "{}: the parts are out of order", file_of(kind));
    [0, 1, 2, 3].map(|at| {
        let end = starts.get(at + 1).copied().unwrap_or(text.len());
        text[starts[at] + PARTS[at].len()..end].trim().to_string()
    })
}

/// The settings of a policy, as a table.
fn settings(out: &mut String, kind: PolicyKind) {
    if kind.settings.is_empty() {
        return;
    }
    out.push_str(
        "\n| setting | in | least | most | default | what it does |\n|---|---|---|---|---|---|\n",
    );
    for setting in kind.settings {
        let unit = match setting.unit {
            SettingUnit::Time => "time",
            SettingUnit::Size => "bytes",
            SettingUnit::Number => "number",
        };
        let [least, most, default] = [setting.least, setting.most, setting.default]
            .map(|value| setting.shown(value).to_string());
        let Setting { name, summary, .. } = setting;
        writeln!(out, "| `{name}` | {unit} | {least} | {most} | {default} | {summary} |").unwrap();
    }
}

fn index() -> String {
    let mut out = String::from(
        "# Policies\n\n\
         Generated from the table in `crates/policies/src/lib.rs` and the first lines of each\n\
         policy's file; see `crates/policies/tests/index.rs`. A disk follows one policy at a\n\
         time and can change it while it works. *Everyone*: every best-effort request is\n\
         served in the end that takes no longer than admission counts with; one that takes\n\
         longer may find no room: the policy says whether its program is told. A new policy is a file of the\n\
         crate `policies`, its `mod`, and its line in the table.\n\n\
         *Contracts*: no request of a contract is late that this analysis admits, while costs\n\
         stay within their bounds. *Exact*: demand and blocking at every deadline; searched\n\
         exhaustively in small worlds. *By cycles*: all requests of a cycle within it\n\
         ([who may join](admission.md)); tried with 1,000,000 requests under contract each,\n\
         beside best effort that always waits, while contracts join, change and leave\n\
         (`crates/policies/tests/by_cycles.rs`). *No promise*: a daemon that follows this policy\n\
         refuses contracts, but for those of its own log; with `--no-admission` it takes them,\n\
         and shows them as what they are.\n\n\
         The classical real-time orders say which request under contract goes next, and leave open\n\
         what an idle disk does. That they serve best effort only while no contract waits is our\n\
         choice (`crates/policies/src/rest.rs`).\n\n\
         *Settings* are read and chosen with `slackline pool settings` and `slackline pool set`\n\
         ([the daemon](daemon.md#policy-and-settings)). What stands in no table of settings is\n\
         fixed.\n\n\
         | policy | contracts | everyone | what it is |\n|---|---|---|---|\n",
    );
    let yes = |promised| if promised { "yes" } else { "-" };
    let analysis = |kind: PolicyKind| match kind.admission {
        Admission::Exact => "exact",
        Admission::Cycles(_) => "by cycles",
        Admission::Sweeps(_) => "by sweeps",
        Admission::Nothing => "no promise",
    };
    for &kind in policies::ALL {
        let promise = kind.promise;
        writeln!(
            out,
            "| [`{kind}`](../{}) | {} | {} | {} |",
            file_of(kind),
            analysis(kind),
            yes(promise.everyone),
            kind.summary
        )
        .unwrap();
    }
    for &kind in policies::ALL {
        let [promises, not, cost, source] = parts(kind);
        write!(
            out,
            "\n## {kind}\n\n- Promises: {promises}\n- Does not: {not}\n- Cost: {cost}\n- Source: {source}\n"
        )
        .unwrap();
        settings(&mut out, kind);
    }
    out
}

#[test]
fn every_policy_says_what_it_promises_what_not_its_cost_and_its_source() {
    let index = index();
    let file = path("../../docs/policies.md");
    if std::env::var_os("SLACKLINE_WRITE").is_some() {
        fs::write(&file, &index).expect("docs can be written");
    }
    let written = fs::read_to_string(&file).expect("docs/policies.md");
    assert!(written == index, "stale: SLACKLINE_WRITE=1 cargo test -p slackline-policies index::");
}

#[test]
fn a_policy_that_promises_contracts_says_so_in_words_and_no_other_does() {
    for &kind in policies::ALL {
        let [promises, ..] = parts(kind);
        let says = promises.contains("no request of an admitted task is late");
        assert_eq!(says, kind.promise.contracts, "{kind}");
        let says = promises.contains("veryone");
        assert!(says || !kind.promise.everyone || promises.contains("shares"), "{kind}");
    }
}

#[test]
fn whoever_promises_contracts_admits_by_the_exact_analysis_and_no_other_does() {
    for &kind in policies::ALL {
        assert_eq!(kind.promise.contracts, kind.admission == Admission::Exact, "{kind}");
    }
}
