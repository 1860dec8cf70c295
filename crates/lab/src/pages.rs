//! The report: an index of all claims, and below it each experiment.

use crate::{Claim, Ended, Findings, Paper, Verdict};
use report::{Mood, Page, Table};

/// What `--report` writes: file names and what stands in them. One page, and each
/// chart as a picture of its own.
pub fn pages(ended: &[Ended], circumstances: &[String]) -> Vec<(String, String)> {
    let mut page = Page::new("Slackline laboratory");
    page.text(
        "Each experiment of the papers that Slackline stands on, run again: what they \
         printed, what we found, and the verdict of a check that can fail.",
    );
    for line in circumstances {
        page.quiet(line);
    }
    page.heading("claims", "Claims").table(&totals(ended));
    let mut papers: Vec<Paper> = ended.iter().map(|ended| ended.experiment.paper).collect();
    papers.sort();
    papers.dedup();
    for paper in &papers {
        page.small_heading(paper.title());
        let links: Vec<(String, String)> = of(ended, *paper).map(link).collect();
        page.list(links.iter().map(|(title, to)| (&**title, Some(&**to))));
        page.table(&index(of(ended, *paper)));
    }
    let mut files = Vec::new();
    for paper in papers {
        for ended in of(ended, paper) {
            section(&mut page, ended);
            if let Ok(findings) = &ended.findings {
                for (at, chart) in findings.charts.iter().enumerate() {
                    let name = format!("{}-{}.svg", ended.experiment.name, at + 1);
                    files.push((name, chart.svg()));
                }
            }
        }
    }
    files.insert(0, ("index.html".into(), page.html()));
    files
}

fn of(ended: &[Ended], paper: Paper) -> impl Iterator<Item = &Ended> {
    ended.iter().filter(move |ended| ended.experiment.paper == paper)
}

/// What leads to an experiment.
fn link(ended: &Ended) -> (String, String) {
    let experiment = &ended.experiment;
    (format!("{}: {}", experiment.name, experiment.title), format!("#{}", experiment.name))
}

fn word(claim: &Claim) -> (String, Mood) {
    let (word, mood) = match claim.verdict {
        Verdict::Kept => ("kept", Mood::Good),
        Verdict::Exceeded => ("exceeded", Mood::Good),
        Verdict::Contradicted if claim.is_unexplained() => ("contradicted, unexplained", Mood::Bad),
        Verdict::Contradicted => ("contradicted", Mood::Careful),
        Verdict::NotReproducible => ("not reproducible", Mood::Careful),
    };
    (word.into(), mood)
}

/// How many claims came out how, by paper.
fn totals(ended: &[Ended]) -> Table {
    let mut table = Table::new(&[
        "paper",
        ">claims",
        ">kept",
        ">exceeded",
        ">contradicted",
        ">of these unexplained",
        ">not reproducible",
        ">experiments that broke off",
    ]);
    let mut papers: Vec<Paper> = ended.iter().map(|ended| ended.experiment.paper).collect();
    papers.sort();
    papers.dedup();
    for paper in papers {
        let claims: Vec<&Claim> = of(ended, paper)
            .filter_map(|ended| ended.findings.as_ref().ok())
            .flat_map(|findings| &findings.claims)
            .collect();
        let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
        let unexplained = claims.iter().filter(|claim| claim.is_unexplained()).count();
        let broken = of(ended, paper).filter(|ended| ended.findings.is_err()).count();
        let plain = |n: usize| (n.to_string(), Mood::Plain);
        let bad = |n: usize| (n.to_string(), if n > 0 { Mood::Bad } else { Mood::Plain });
        table.moody(vec![
            (paper.title().into(), Mood::Plain),
            plain(claims.len()),
            plain(count(Verdict::Kept)),
            plain(count(Verdict::Exceeded)),
            plain(count(Verdict::Contradicted)),
            bad(unexplained),
            plain(count(Verdict::NotReproducible)),
            bad(broken),
        ]);
    }
    table
}

/// All claims of some experiments.
fn index<'a>(ended: impl Iterator<Item = &'a Ended>) -> Table {
    let mut table = Table::new(&["experiment", "claim", "printed", "ours", "verdict"]);
    for ended in ended {
        let name = || (ended.experiment.name.to_owned(), Mood::Plain);
        match &ended.findings {
            Ok(findings) => {
                for claim in &findings.claims {
                    let [text, printed, ours] = [&claim.text, &claim.printed, &claim.ours]
                        .map(|words| (words.clone(), Mood::Plain));
                    table.moody(vec![name(), text, printed, ours, word(claim)]);
                }
            }
            Err(words) => {
                let empty = || (String::new(), Mood::Plain);
                let broken = (format!("broke off: {words}"), Mood::Bad);
                table.moody(vec![name(), empty(), empty(), empty(), broken]);
            }
        }
    }
    table
}

fn section(page: &mut Page, ended: &Ended) {
    let experiment = &ended.experiment;
    page.heading(experiment.name, &format!("{}: {}", experiment.name, experiment.title));
    page.text(&format!("What the paper says. {}", experiment.claim));
    page.text(&format!("What we ran. {}", experiment.setup));
    match &ended.findings {
        Ok(findings) => found(page, findings),
        Err(words) => {
            page.text(&format!("It broke off: {words}"));
        }
    }
    page.quiet(&format!(
        "Took {:.1} s{}.",
        ended.took.as_secs_f64(),
        if experiment.real_time { ", in real time" } else { "" }
    ));
}

fn found(page: &mut Page, findings: &Findings) {
    let mut table = Table::new(&["claim", "printed", "ours", "verdict", "why"]);
    for claim in &findings.claims {
        let cells = [&claim.text, &claim.printed, &claim.ours].map(|w| (w.clone(), Mood::Plain));
        let [text, printed, ours] = cells;
        let why = (claim.because.clone().unwrap_or_default(), Mood::Plain);
        table.moody(vec![text, printed, ours, word(claim), why]);
    }
    page.table(&table);
    if !findings.charts.is_empty() {
        page.charts(&findings.charts);
    }
    for (caption, table) in &findings.tables {
        page.small_heading(caption).table(table);
    }
    for note in &findings.notes {
        page.quiet(note);
    }
}
