//! What a paper says, what we found, and the verdict.

use crate::effort::Effort;
use crate::reason::At;
use serde::Serialize;

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As printed, within the stated tolerance.
    Kept,
    /// Better than printed, as the paper itself would say.
    Exceeded,
    /// As printed, since the printed value was put in: it checks the model or the
    /// generator, and says nothing of the paper.
    Calibrated,
    /// Not as printed.
    Contradicted,
    /// Cannot be tried here.
    NotReproducible,
}

/// Who claims it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whose {
    /// The paper prints it.
    Papers,
    /// We claim it of our own code.
    Ours,
}

/// A claim with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What is claimed, in our words.
    pub text: String,
    /// What is printed, with its unit, or what we aim at.
    pub printed: String,
    /// What we found, with its unit.
    pub ours: String,
    /// What the check says.
    pub verdict: Verdict,
    /// Who claims it.
    pub whose: Whose,
    /// Why it is contradicted or cannot be tried: a stated property of the model or
    /// of the paper, not an excuse; or what was put in. Always there where it cannot be
    /// tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The figure that is judged by the range of a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<f64>,
    /// From where to where a contradicted figure is explained in this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<[f64; 2]>,
    #[serde(skip)]
    at: At,
    /// Beyond what is printed by over 1 %, in the direction of the claim.
    #[serde(skip)]
    beyond: bool,
}

impl Claim {
    /// A figure that should be `printed`, to within a `tolerance` part of it (0.15 is
    /// 15 %). `unit` stands behind both.
    pub fn near(
        text: impl Into<String>,
        printed: f64,
        ours: f64,
        tolerance: f64,
        unit: &str,
    ) -> Self {
        let kept = (ours - printed).abs() <= tolerance * printed.abs();
        let printed = format!("{} ± {} %", with(printed, unit), report::number(tolerance * 100.0));
        Self::found(text, printed, with(ours, unit), kept).measured(ours)
    }

    /// A figure that should be at least `printed`.
    pub fn at_least(text: impl Into<String>, printed: f64, ours: f64, unit: &str) -> Self {
        let beyond = ours > printed + 0.01 * printed.abs();
        let words = format!("at least {}", with(printed, unit));
        let claim = Self::found(text, words, with(ours, unit), ours >= printed).measured(ours);
        Self { beyond, ..claim }
    }

    /// A figure that should be at most `printed`.
    pub fn at_most(text: impl Into<String>, printed: f64, ours: f64, unit: &str) -> Self {
        let beyond = ours < printed - 0.01 * printed.abs();
        let words = format!("at most {}", with(printed, unit));
        let claim = Self::found(text, words, with(ours, unit), ours <= printed).measured(ours);
        Self { beyond, ..claim }
    }

    /// A statement, such as the shape of a curve; `holds` is the check.
    pub fn holds(
        text: impl Into<String>,
        printed: impl Into<String>,
        ours: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self::found(text, printed.into(), ours.into(), holds)
    }

    /// What cannot be tried here, and why.
    pub fn not_reproducible(
        text: impl Into<String>,
        printed: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        let because = Some(why.into());
        let claim = Self::found(text, printed.into(), "-".into(), false);
        Self { because, verdict: Verdict::NotReproducible, ..claim }
    }

    /// The paper would call it better where the figure goes beyond what is printed: it is
    /// exceeded by over 1 %. Only for figures for which at least or at most so much is
    /// claimed.
    pub fn or_better(mut self) -> Self {
        if self.verdict == Verdict::Kept && self.beyond {
            self.verdict = Verdict::Exceeded;
        }
        self
    }

    /// What is expected was put in, here or in a model: `what` says where. A check that
    /// fails all the same is contradicted.
    pub fn calibrated(mut self, what: impl Into<String>) -> Self {
        if matches!(self.verdict, Verdict::Kept | Verdict::Exceeded) {
            self.verdict = Verdict::Calibrated;
            self.because = Some(what.into());
        }
        self
    }

    /// No paper claims it; we do, of our own code.
    pub fn of_ours(self) -> Self {
        Self { whose: Whose::Ours, ..self }
    }

    /// The figure behind a statement, by which a reason for its contradiction is held.
    pub fn measured(mut self, figure: f64) -> Self {
        self.figure = figure.is_finite().then_some(figure);
        self
    }

    /// Why it is contradicted, should it be with a figure where `at` says. A claim that is
    /// kept needs no reason and shows none; one that is contradicted elsewhere is not
    /// explained.
    pub fn explained(mut self, at: At, why: impl Into<String>) -> Self {
        if self.verdict == Verdict::Contradicted {
            self.at = at;
            self.because = Some(why.into());
        }
        self
    }

    /// In a run of this effort: holds the figure against the range of its reason.
    pub(crate) fn judge(&mut self, effort: Effort) {
        let range = match self.verdict {
            Verdict::Contradicted => self.at.range(effort),
            _ => None,
        };
        self.explained = range.map(|range| [*range.start(), *range.end()]);
    }

    /// A contradiction that nobody has explained, or with a figure that its reason does
    /// not reach.
    pub fn is_unexplained(&self) -> bool {
        let is_explained = self.because.is_some()
            && self.explained.is_some_and(|[from, to]| {
                self.figure.is_some_and(|figure| (from..=to).contains(&figure))
            });
        self.verdict == Verdict::Contradicted && !is_explained
    }

    /// Why, and for which figures that is so.
    pub fn why(&self) -> Option<String> {
        let because = self.because.as_ref()?;
        let (Some([from, to]), Some(figure)) = (self.explained, self.figure) else {
            return Some(match self.verdict {
                Verdict::Contradicted => format!("Not at this figure: {because}"),
                _ => because.clone(),
            });
        };
        let [from, to, figure] = [from, to, figure].map(report::number);
        Some(match self.is_unexplained() {
            true => format!("Explained from {from} to {to}, but it is {figure}: {because}"),
            false if from == to => format!("{because} (explains {from})"),
            false => format!("{because} (explains {from} to {to}; it is {figure})"),
        })
    }

    fn found(text: impl Into<String>, printed: String, ours: String, kept: bool) -> Self {
        Self {
            text: text.into(),
            printed,
            ours,
            verdict: if kept { Verdict::Kept } else { Verdict::Contradicted },
            whose: Whose::Papers,
            because: None,
            figure: None,
            explained: None,
            at: At::nothing(),
            beyond: false,
        }
    }
}

fn with(value: f64, unit: &str) -> String {
    format!("{} {unit}", report::number(value)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::*;

    #[test]
    fn a_verdict_follows_from_the_figures() {
        let near = |ours| Claim::near("", 100.0, ours, 0.15, "ms").verdict;
        assert_eq!(
            [near(85.0), near(115.0), near(84.9), near(f64::NAN)],
            [Kept, Kept, Contradicted, Contradicted]
        );
        let least = |ours| Claim::at_least("", 21.0, ours, "MB/s").or_better().verdict;
        assert_eq!(
            [least(21.0), least(21.3), least(20.9), least(f64::NAN)],
            [Kept, Exceeded, Contradicted, Contradicted]
        );
        let most = |ours| Claim::at_most("", 5.0, ours, "ms").or_better().verdict;
        assert_eq!(
            [most(5.0), most(4.9), most(5.1), most(f64::NAN)],
            [Kept, Exceeded, Contradicted, Contradicted]
        );
    }

    #[test]
    fn it_is_exceeded_only_where_more_is_better() {
        assert_eq!(Claim::at_least("", 21.0, 30.0, "").verdict, Kept);
        assert_eq!(Claim::near("", 21.0, 22.0, 0.1, "").or_better().verdict, Kept);
    }

    #[test]
    fn what_was_put_in_is_calibrated_and_can_still_fail() {
        let near = |ours| Claim::near("", 1.0, ours, 0.1, "").calibrated("put in");
        assert_eq!((near(1.0).verdict, near(2.0).verdict), (Calibrated, Contradicted));
        assert!(near(2.0).is_unexplained());
        let better = Claim::at_least("", 1.0, 2.0, "").or_better().calibrated("put in");
        assert_eq!(better.verdict, Calibrated);
    }

    #[test]
    fn a_reason_holds_for_its_figure_alone() {
        let judged = |figure: f64, effort| {
            let claim = Claim::near("", 1.0, figure, 0.1, "").explained(At::each(2.0, 3.0), "why");
            let mut claim = claim;
            claim.judge(effort);
            claim.is_unexplained()
        };
        assert!(!judged(2.0, Effort::Thorough) && !judged(3.0, Effort::Quick));
        assert!(judged(2.2, Effort::Thorough), "it has become worse");
        assert!(judged(1.8, Effort::Thorough), "the reason says more than there is");
        assert!(judged(2.0, Effort::Quick), "each effort has its own figure");
    }

    #[test]
    fn only_a_contradiction_with_a_figure_takes_a_reason() {
        let judged = |mut claim: Claim| {
            claim.judge(Effort::Quick);
            claim
        };
        let kept = judged(Claim::holds("", "", "", true).explained(At::both(0.0), "why"));
        assert!(kept.because.is_none() && !kept.is_unexplained());
        let broken = || Claim::holds("", "", "", false);
        assert!(judged(broken()).is_unexplained());
        let without = judged(broken().explained(At::both(0.0), "why"));
        assert!(without.is_unexplained(), "a statement without a figure");
        let with = judged(broken().measured(0.0).explained(At::both(0.0), "why"));
        assert!(!with.is_unexplained());
        let never_judged = broken().measured(0.0).explained(At::both(0.0), "why");
        assert!(never_judged.is_unexplained());
    }
}
