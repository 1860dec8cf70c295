//! `slackline lab`: the experiments of the papers, theirs beside ours.

mod told;

use crate::Common;
use crate::failure::Failure;
use crate::output::{Table, counted};
use lab::{Claim, Counts, Effort, Ended, Experiment, Verdict, Whose};
use serde::Serialize;
use std::path::{Path, PathBuf};
use told::Told;

/// The experiments of the papers: theirs beside ours
#[derive(clap::Subcommand)]
pub enum Command {
    /// Show what can be run
    List,
    Run(Args),
}

/// Run experiments, and say of each claim whether it is kept
///
/// Ends with 1 where an experiment breaks off, or contradicts its paper with a figure for
/// which no reason is stated.
#[derive(clap::Args)]
pub struct Args {
    /// Experiments by name or by how their names begin (`clockwise`), or `all`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Shorter runs, minutes instead of most of an hour; reasons hold for their figures apart
    #[arg(long)]
    quick: bool,
    /// Write a page of everything, and each chart as a picture, into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// How many simulated experiments run at once [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
}

pub fn run(command: Command, common: &Common) -> Result<(), Failure> {
    match command {
        Command::List => list(common),
        Command::Run(args) => run_some(&args, common),
    }
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    paper: &'static str,
    title: &'static str,
    real_time: bool,
}

fn list(common: &Common) -> Result<(), Failure> {
    let all = lab::catalogue();
    let listed: Vec<Listed> = all
        .iter()
        .map(|e| Listed {
            name: e.name,
            paper: e.paper.title(),
            title: e.title,
            real_time: e.real_time,
        })
        .collect();
    common.output().result(&listed, |listed| {
        let mut text = String::new();
        let mut papers: Vec<&str> = listed.iter().map(|listed| listed.paper).collect();
        papers.dedup();
        for paper in papers {
            let mut table = Table::new(&["name", "what it shows"]);
            for listed in listed.iter().filter(|listed| listed.paper == paper) {
                let mark = if listed.real_time { " (in real time)" } else { "" };
                table.row(vec![listed.name.into(), format!("{}{mark}", listed.title)]);
            }
            text += &format!("{paper}\n{}\n", table.text("  "));
        }
        text + "Run some: slackline lab run NAME...   everything: slackline lab run all --report out\n"
    })
}

fn chosen(names: &[String]) -> Result<Vec<Experiment>, Failure> {
    let all = lab::catalogue();
    let matches = |name: &str, e: &Experiment| name == "all" || e.name.starts_with(name);
    for name in names {
        if !all.iter().any(|experiment| matches(name, experiment)) {
            let what = format!("no experiment's name begins with `{name}`");
            return Err(Failure::usage(what, "slackline lab list shows them"));
        }
    }
    // A whole name is that one alone, though others begin with it.
    let wanted = |e: &&Experiment| {
        names.iter().any(|name| match all.iter().any(|other| other.name == name) {
            true => e.name == name,
            false => matches(name, e),
        })
    };
    Ok(all.iter().filter(wanted).copied().collect())
}

#[derive(Serialize)]
struct Outcome<'a> {
    name: &'static str,
    sound: bool,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    broke_off: Option<&'a str>,
    claims: &'a [Claim],
    tables: Vec<(&'a str, Vec<Vec<&'a str>>)>,
    notes: &'a [String],
}

fn run_some(args: &Args, common: &Common) -> Result<(), Failure> {
    let experiments = chosen(&args.names)?;
    if let Some(folder) = &args.report {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    }
    let workers = args.workers.map_or_else(processors, usize::from);
    let effort = if args.quick { Effort::Quick } else { Effort::Thorough };
    let told = Told::new(experiments.len());
    let ended = lab::run(&experiments, effort, workers, &|news| told.news(&news));
    told.finish();
    if let Some(folder) = &args.report {
        let circumstances = circumstances(&ended, effort, workers);
        write(folder, &lab::pages(&ended, &circumstances))?;
    }
    let results: Vec<Outcome<'_>> = ended.iter().map(result).collect();
    common.output().result(&results, |_| text(&ended, args.report.as_deref()))?;
    let unsound = ended.iter().filter(|ended| !ended.is_sound()).count();
    if unsound > 0 {
        let what = format!(
            "{} broke off, or contradicted the paper without a stated reason",
            counted(unsound as u64, "experiment")
        );
        return Err(Failure::new(what, "their claims above say which"));
    }
    Ok(())
}

fn result(ended: &Ended) -> Outcome<'_> {
    let found = ended.findings.as_ref();
    let tables = found.map_or(&[][..], |findings| &findings.tables);
    Outcome {
        name: ended.experiment.name,
        sound: ended.is_sound(),
        seconds: ended.took.as_secs_f64(),
        broke_off: found.err().map(String::as_str),
        claims: found.map_or(&[], |findings| &findings.claims),
        tables: tables
            .iter()
            .map(|(caption, table)| (&**caption, table.cells().map(Iterator::collect).collect()))
            .collect(),
        notes: found.map_or(&[], |findings| &findings.notes),
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn circumstances(ended: &[Ended], effort: Effort, workers: usize) -> Vec<String> {
    let effort = match effort {
        Effort::Thorough => "thorough",
        Effort::Quick => "quick: shorter than the report is meant to be",
    };
    let seconds: f64 = ended.iter().map(|ended| ended.took.as_secs_f64()).sum();
    vec![format!(
        "Slackline {}. Effort: {effort}. {} experiments with {workers} workers on {} \
         processors; {:.0} minutes of experiments.",
        env!("CARGO_PKG_VERSION"),
        ended.len(),
        processors(),
        (seconds / 60.0).ceil()
    )]
}

fn write(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    for (name, content) in files {
        let path = folder.join(name);
        std::fs::write(&path, content).map_err(|error| Failure::file(&path, &error))?;
    }
    Ok(())
}

/// Of one experiment everything; of several what each came to, and what was
/// contradicted.
fn text(ended: &[Ended], report: Option<&Path>) -> String {
    let mut text = match ended {
        [one] => everything(one),
        several => {
            let told = lab::sentences(several);
            let told = told.iter().map(|sentence| paragraph("", sentence));
            format!("{}\n{}", summary(several), told.collect::<String>())
        }
    };
    if let Some(folder) = report {
        text += &format!("\nReport: {}\n", folder.join("index.html").display());
    }
    text
}

fn everything(ended: &Ended) -> String {
    let experiment = &ended.experiment;
    let mut text = format!("{}: {}\n\n", experiment.name, experiment.title);
    text += &paragraph("The paper: ", experiment.claim);
    text += &paragraph("We ran: ", experiment.setup);
    match &ended.findings {
        Ok(findings) => {
            for (caption, table) in &findings.tables {
                text += &format!("\n{caption}\n{}", table.text("  "));
            }
            text.push('\n');
            text += &claims(&findings.claims.iter().collect::<Vec<_>>());
            for note in &findings.notes {
                text += &paragraph("", note);
            }
        }
        Err(words) => text += &format!("\nbroke off: {words}\n"),
    }
    text
}

fn claims(claims: &[&Claim]) -> String {
    let mut table = Table::new(&["claim", "printed", "ours", "verdict"]);
    for claim in claims {
        let [mut text, printed, ours] =
            [&claim.text, &claim.printed, &claim.ours].map(Clone::clone);
        if claim.whose == Whose::Ours {
            text = format!("our own: {text}");
        }
        table.row(vec![text, printed, ours, word(claim).into()]);
    }
    let mut text = table.text("  ");
    for claim in claims {
        if let Some(why) = claim.why() {
            text += &paragraph(&format!("  {}: ", claim.text), &why);
        }
    }
    text
}

fn word(claim: &Claim) -> &'static str {
    match claim.verdict {
        Verdict::Kept => "kept",
        Verdict::Exceeded => "exceeded",
        Verdict::Calibrated => "calibrated",
        Verdict::Contradicted if claim.is_unexplained() => "CONTRADICTED, unexplained",
        Verdict::Contradicted => "contradicted",
        Verdict::NotReproducible => "not reproducible",
    }
}

fn summary(ended: &[Ended]) -> String {
    let mut table = Table::new(&[
        "experiment",
        ">kept",
        ">exceeded",
        ">calibrated",
        ">contradicted",
        ">not reproducible",
        ">of our own",
        ">of these not kept",
        ">seconds",
    ]);
    let mut open = String::new();
    for ended in ended {
        let found = ended.findings.as_ref();
        let all = found.map_or(&[][..], |findings| &findings.claims);
        let of = |whose| Counts::of(all.iter().filter(|claim| claim.whose == whose));
        let (papers, ours) = (of(Whose::Papers), of(Whose::Ours));
        let counts = [
            papers.kept,
            papers.exceeded,
            papers.calibrated,
            papers.contradicted,
            papers.not_reproducible,
            ours.claims,
            ours.contradicted,
        ];
        let mut row = vec![ended.experiment.name.to_owned()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(format!("{:.1}", ended.took.as_secs_f64()));
        table.row(row);
        let told: Vec<&Claim> = all.iter().filter(|c| c.verdict == Verdict::Contradicted).collect();
        if let Err(words) = found {
            open += &format!("\n{} broke off: {words}\n", ended.experiment.name);
        } else if !told.is_empty() {
            open += &format!("\n{}\n{}", ended.experiment.name, claims(&told));
        }
    }
    let mut text = table.text("");
    if !open.is_empty() {
        text += &format!("\nWhat is not as printed\n{open}");
    }
    text
}

/// Words in lines of at most 100 characters, the later ones set in.
fn paragraph(head: &str, words: &str) -> String {
    let mut lines = vec![head.to_owned()];
    for word in words.split_whitespace() {
        let line = lines.last_mut().expect("never empty");
        if line.chars().count() + word.chars().count() > 99 {
            lines.push(format!("    {word} "));
        } else {
            line.push_str(word);
            line.push(' ');
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}
