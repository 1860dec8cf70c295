//! The report: ten sentences, an index of all claims, what the papers print beside where
//! it is found, and below that each experiment.

use crate::contents::{Place, contents};
use crate::summary::{Counts, claims, papers, sentences};
use crate::{Claim, Ended, Findings, Paper, Verdict, Whose};
use report::{Mood, Page, Table};

/// What `--report` writes: file names and what stands in them. One page, and each
/// chart as a picture of its own.
pub fn pages(ended: &[Ended], circumstances: &[String]) -> Vec<(String, String)> {
    let mut page = Page::new("Slackline laboratory");
    page.text(
        "Each experiment of the papers that Slackline stands on, run again: what they \
         printed, what we found, and the verdict of a check that can fail.",
    );
    page.heading("summary", "In ten sentences");
    let sentences = sentences(ended);
    page.list(sentences.iter().map(|sentence| (&**sentence, None)));
    for line in circumstances {
        page.quiet(line);
    }
    page.heading("claims", "Claims of the papers").table(&totals(ended, Whose::Papers));
    page.heading("ours", "Claims of our own");
    page.quiet("No paper makes these: they are held against our own code, and count for no paper.");
    page.table(&totals(ended, Whose::Ours)).table(&index(ended, Whose::Ours));
    page.heading("contents", "Figures and tables of the papers");
    page.table(&of_contents());
    let papers = papers(ended);
    page.heading("index", "Claims of the papers, one by one");
    for paper in &papers {
        page.small_heading(paper.title());
        let links: Vec<(String, String)> = of(ended, *paper).map(link).collect();
        page.list(links.iter().map(|(title, to)| (&**title, Some(&**to))));
        page.table(&index(of(ended, *paper), Whose::Papers));
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
        Verdict::Calibrated => ("calibrated", Mood::Plain),
        Verdict::Contradicted if claim.is_unexplained() => ("contradicted, unexplained", Mood::Bad),
        Verdict::Contradicted => ("contradicted", Mood::Careful),
        Verdict::NotReproducible => ("not reproducible", Mood::Careful),
    };
    (word.into(), mood)
}

/// What a row of a table of counts shows.
type Count = fn(&Counts) -> usize;

/// How many claims came out how: a column for each paper, which fit beside each other on a
/// phone.
fn totals(ended: &[Ended], whose: Whose) -> Table {
    let counts = |paper: Paper| Counts::of(claims(of(ended, paper), whose));
    let broken = |paper: Paper| of(ended, paper).filter(|it| it.findings.is_err()).count();
    let papers = papers(ended);
    let papers: Vec<Paper> =
        papers.into_iter().filter(|&it| counts(it).claims + broken(it) > 0).collect();
    let names: Vec<String> = papers.iter().map(|paper| format!(">{}", paper.name())).collect();
    let headings = std::iter::once("").chain(names.iter().map(String::as_str));
    let mut table = Table::new(&headings.collect::<Vec<_>>());
    let rows: [(&str, Count, Mood); 7] = [
        ("claims", |it| it.claims, Mood::Plain),
        ("kept", |it| it.kept, Mood::Plain),
        ("exceeded", |it| it.exceeded, Mood::Plain),
        ("calibrated", |it| it.calibrated, Mood::Plain),
        ("contradicted", |it| it.contradicted, Mood::Plain),
        ("of these unexplained", |it| it.unexplained, Mood::Bad),
        ("not reproducible", |it| it.not_reproducible, Mood::Plain),
    ];
    let cell = |n: usize, mood: Mood| (n.to_string(), if n > 0 { mood } else { Mood::Plain });
    for (name, count, mood) in rows {
        let mut row = vec![(name.to_owned(), Mood::Plain)];
        row.extend(papers.iter().map(|&paper| cell(count(&counts(paper)), mood)));
        table.moody(row);
    }
    let mut row = vec![("experiments that broke off".to_owned(), Mood::Plain)];
    row.extend(papers.iter().map(|&paper| cell(broken(paper), Mood::Bad)));
    table.moody(row);
    table
}

/// Every figure and table of the papers, and what became of it.
fn of_contents() -> Table {
    let mut table = Table::new(&["paper", "figure or table", "what it shows", "here"]);
    for row in contents() {
        let (here, mood) = match row.place {
            Place::Experiments(of) => (of.join(", "), Mood::Good),
            Place::Drawing(why) => (why.to_owned(), Mood::Plain),
            Place::PutIn(why) => (format!("put in: {why}"), Mood::Plain),
            Place::Left(why) => (format!("left out: {why}"), Mood::Careful),
        };
        let cells = [row.paper.name(), row.name, row.title].map(|it| (it.into(), Mood::Plain));
        table.moody([cells.to_vec(), vec![(here, mood)]].concat());
    }
    table
}

/// All claims of some experiments that are the papers', or ours.
fn index<'a>(ended: impl IntoIterator<Item = &'a Ended>, whose: Whose) -> Table {
    let mut table = Table::new(&["experiment", "claim", "printed", "ours", "verdict"]);
    for ended in ended {
        let name = || (ended.experiment.name.to_owned(), Mood::Plain);
        match &ended.findings {
            Ok(findings) => {
                for claim in findings.claims.iter().filter(|it| it.whose == whose) {
                    let [text, printed, ours] = [&claim.text, &claim.printed, &claim.ours]
                        .map(|words| (words.clone(), Mood::Plain));
                    table.moody(vec![name(), text, printed, ours, word(claim)]);
                }
            }
            Err(words) if whose == Whose::Papers => {
                let empty = || (String::new(), Mood::Plain);
                let broken = (format!("broke off: {words}"), Mood::Bad);
                table.moody(vec![name(), empty(), empty(), empty(), broken]);
            }
            Err(_) => {}
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
        let [mut text, printed, ours] = cells;
        if claim.whose == Whose::Ours {
            text.0 = format!("our own: {}", text.0);
        }
        let why = (claim.why().unwrap_or_default(), Mood::Plain);
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
