//! What came of everything, counted, and in ten sentences.
//!
//! Invariant: nothing here is known beforehand; every number and every name follows from
//! the experiments that ran.

use crate::contents::{Place, contents};
use crate::{Claim, Ended, Paper, Verdict, Whose};
use report::counted;
use std::collections::BTreeMap;

/// How many claims came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub claims: usize,
    /// As printed.
    pub kept: usize,
    /// Better than printed.
    pub exceeded: usize,
    /// Put in, and found again.
    pub calibrated: usize,
    /// Not as printed.
    pub contradicted: usize,
    /// Of these, without a reason that reaches their figure.
    pub unexplained: usize,
    /// Not tried.
    pub not_reproducible: usize,
}

impl Counts {
    /// Of some claims.
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut counts = Self::default();
        for claim in claims {
            counts.claims += 1;
            counts.unexplained += usize::from(claim.is_unexplained());
            *match claim.verdict {
                Verdict::Kept => &mut counts.kept,
                Verdict::Exceeded => &mut counts.exceeded,
                Verdict::Calibrated => &mut counts.calibrated,
                Verdict::Contradicted => &mut counts.contradicted,
                Verdict::NotReproducible => &mut counts.not_reproducible,
            } += 1;
        }
        counts
    }

    /// What was judged: neither put in nor left untried.
    pub fn judged(&self) -> usize {
        self.kept + self.exceeded + self.contradicted
    }
}

/// The claims of some experiments that are the papers', or ours.
pub(crate) fn claims<'a>(
    ended: impl IntoIterator<Item = &'a Ended>,
    whose: Whose,
) -> Vec<&'a Claim> {
    let findings = ended.into_iter().filter_map(|ended| ended.findings.as_ref().ok());
    findings.flat_map(|findings| &findings.claims).filter(|it| it.whose == whose).collect()
}

/// Ten sentences: what was kept, what was not, and why.
pub fn sentences(ended: &[Ended]) -> Vec<String> {
    let papers = claims(ended, Whose::Papers);
    let ours = claims(ended, Whose::Ours);
    let all = Counts::of(papers.iter().copied());
    vec![
        format!(
            "{} here hold {} that the papers print; {} of our own are counted apart.",
            counted(ended.len() as u64, "experiment"),
            counted(all.claims as u64, "claim"),
            ours.len()
        ),
        kept(&all),
        by_paper(ended),
        format!(
            "{} only calibrated: their value was put into a model or a generator and comes out \
             again, so that they count for no paper.",
            are(all.calibrated)
        ),
        contradicted(&all),
        where_contradicted(ended),
        commonest(
            &papers,
            Verdict::Contradicted,
            "Nothing is contradicted.",
            "The reason that explains most contradictions",
        ),
        untried(&papers, all.not_reproducible),
        printed(),
        own(&ours, ended),
    ]
}

fn are(count: usize) -> String {
    if count == 1 { "1 is".into() } else { format!("{count} are") }
}

fn kept(all: &Counts) -> String {
    format!(
        "Of the {} that could be judged {} kept, to within what stands beside each, and {} \
         exceeded, which is said only where the paper itself would call it better: {} % together.",
        all.judged(),
        are(all.kept),
        are(all.exceeded),
        percent(all.kept + all.exceeded, all.judged())
    )
}

fn percent(part: usize, whole: usize) -> String {
    report::number((100.0 * part as f64 / whole.max(1) as f64).round())
}

fn of(ended: &[Ended], paper: Paper) -> impl Iterator<Item = &Ended> {
    ended.iter().filter(move |ended| ended.experiment.paper == paper)
}

/// The papers of some experiments, in their order.
pub(crate) fn papers(ended: &[Ended]) -> Vec<Paper> {
    let mut papers: Vec<Paper> = ended.iter().map(|ended| ended.experiment.paper).collect();
    papers.sort();
    papers.dedup();
    papers
}

fn by_paper(ended: &[Ended]) -> String {
    let parts: Vec<String> = papers(ended)
        .into_iter()
        .filter_map(|paper| {
            let counts = Counts::of(claims(of(ended, paper), Whose::Papers));
            let good = counts.kept + counts.exceeded;
            let words = format!("{}, {good} of {}", paper.title(), counts.judged());
            (counts.judged() > 0).then_some(words)
        })
        .collect();
    match parts.is_empty() {
        true => "No paper's claim could be judged.".into(),
        false => format!("By paper, kept or exceeded of what was judged: {}.", parts.join("; ")),
    }
}

fn contradicted(all: &Counts) -> String {
    let explained = all.contradicted - all.unexplained;
    format!(
        "{} contradicted: {explained} for a stated reason, which holds for the figure that was \
         found and would fail with another, and {} without one.",
        are(all.contradicted),
        all.unexplained
    )
}

fn where_contradicted(ended: &[Ended]) -> String {
    let mut counts: Vec<(usize, &str)> = ended
        .iter()
        .map(|it| (Counts::of(claims([it], Whose::Papers)).contradicted, it.experiment.name))
        .filter(|it| it.0 > 0)
        .collect();
    counts.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
    let most: Vec<String> =
        counts.iter().take(3).map(|(count, name)| format!("{name} ({count})")).collect();
    match most.is_empty() {
        true => "No experiment contradicts its paper.".into(),
        false => format!(
            "{} of {} contradict something; most do {}.",
            counts.len(),
            counted(ended.len() as u64, "experiment"),
            most.join(", ")
        ),
    }
}

/// The reason that most claims of a verdict have in common.
fn commonest(claims: &[&Claim], verdict: Verdict, none: &str, begin: &str) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in claims.iter().filter(|it| it.verdict == verdict && !it.is_unexplained()) {
        if let Some(because) = &claim.because {
            *counts.entry(because).or_default() += 1;
        }
    }
    match counts.into_iter().max_by_key(|&(_, count)| count) {
        None => none.into(),
        Some((because, count)) => {
            format!("{begin} ({count} of them): {}.", because.trim_end_matches('.'))
        }
    }
}

fn untried(papers: &[&Claim], count: usize) -> String {
    let none = "Nothing was left untried.";
    let begin = format!("{} not reproducible here; the commonest reason", are(count));
    commonest(papers, Verdict::NotReproducible, none, &begin)
}

fn printed() -> String {
    let (mut again, mut drawn, mut put_in, mut left) = (0, 0, 0, 0);
    for row in contents() {
        *match row.place {
            Place::Experiments(_) => &mut again,
            Place::Drawing(_) => &mut drawn,
            Place::PutIn(_) => &mut put_in,
            Place::Left(_) => &mut left,
        } += 1;
    }
    format!(
        "Of the {} figures and tables that the papers print {again} have an experiment here, \
         {drawn} show nothing that was measured, {put_in} are what our models are made of, and \
         {left} are left out; the contents below say of each why.",
        contents().count()
    )
}

fn own(ours: &[&Claim], ended: &[Ended]) -> String {
    let counts = Counts::of(ours.iter().copied());
    let broken = ended.iter().filter(|ended| ended.findings.is_err()).count();
    format!(
        "Of our own {} {} hold, {} do not ({} of these without a reason), and {} broke off.",
        counted(counts.claims as u64, "claim"),
        counts.kept + counts.exceeded + counts.calibrated,
        counts.contradicted,
        counts.unexplained,
        counted(broken as u64, "experiment")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{At, Effort, Experiment, Findings};
    use std::time::Duration;

    fn ended(name: &'static str, claims: Vec<Claim>) -> Ended {
        let paper = Paper::Qos;
        let run = |_: &crate::Run<'_>| Findings::default();
        let (title, claim, setup) = ("", "", "");
        let experiment = Experiment { name, paper, title, claim, setup, real_time: false, run };
        let mut claims = claims;
        claims.iter_mut().for_each(|claim| claim.judge(Effort::Quick));
        let findings = Ok(Findings { claims, ..Findings::default() });
        Ended { experiment, findings, took: Duration::ZERO }
    }

    fn all() -> Vec<Ended> {
        let off = |why: &str| Claim::near("", 1.0, 2.0, 0.1, "").explained(At::both(2.0), why);
        vec![
            ended("good", vec![Claim::holds("", "", "", true); 3]),
            ended("bad", vec![off("the bus"), off("the bus"), off("the drive")]),
            ended("worse", vec![Claim::holds("", "", "", false)]),
            ended("set", vec![Claim::holds("", "", "", true).calibrated("put in")]),
            ended("own", vec![Claim::holds("", "", "", true).of_ours()]),
        ]
    }

    #[test]
    fn what_was_put_in_and_what_is_ours_is_not_counted_as_kept() {
        let all = all();
        let papers = Counts::of(claims(&all, Whose::Papers));
        assert_eq!((papers.claims, papers.kept, papers.calibrated), (8, 3, 1));
        assert_eq!((papers.contradicted, papers.unexplained, papers.judged()), (4, 1, 7));
        assert_eq!(Counts::of(claims(&all, Whose::Ours)).kept, 1);
    }

    #[test]
    fn ten_sentences_follow_from_what_ran() {
        let told = sentences(&all());
        assert_eq!(told.len(), 10);
        let has = |at: usize, words: &str| {
            let line: &String = &told[at];
            assert!(line.contains(words), "{line}");
        };
        has(0, "5 experiments here hold 8 claims");
        has(1, "Of the 7 that could be judged 3 are kept");
        has(1, "43 %");
        has(2, "3 of 7");
        has(3, "1 is only calibrated");
        has(4, "4 are contradicted: 3 for a stated reason");
        has(5, "bad (3), worse (1)");
        has(6, "(2 of them): the bus.");
        has(9, "Of our own 1 claim 1 hold, 0 do not");
        assert!(sentences(&[]).len() == 10 && told.iter().all(|line| line.ends_with('.')));
    }
}
