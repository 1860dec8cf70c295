//! What a paper says, what we found, and the verdict.

use serde::Serialize;

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As printed, within the stated tolerance.
    Kept,
    /// Better than printed.
    Exceeded,
    /// Not as printed.
    Contradicted,
    /// Cannot be tried here.
    NotReproducible,
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
    /// Why it is contradicted or cannot be tried: a stated property of the model or
    /// of the paper, not an excuse. Always there where it cannot be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
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
        Self::found(text, printed, with(ours, unit), verdict(kept))
    }

    /// A figure that should be at least `printed`; exceeded where it is by over 1 %.
    pub fn at_least(text: impl Into<String>, printed: f64, ours: f64, unit: &str) -> Self {
        let exceeded = ours > printed + 0.01 * printed.abs();
        let verdict = if exceeded { Verdict::Exceeded } else { verdict(ours >= printed) };
        Self::found(text, format!("at least {}", with(printed, unit)), with(ours, unit), verdict)
    }

    /// A figure that should be at most `printed`; exceeded where it is below by over 1 %.
    pub fn at_most(text: impl Into<String>, printed: f64, ours: f64, unit: &str) -> Self {
        let exceeded = ours < printed - 0.01 * printed.abs();
        let verdict = if exceeded { Verdict::Exceeded } else { verdict(ours <= printed) };
        Self::found(text, format!("at most {}", with(printed, unit)), with(ours, unit), verdict)
    }

    /// A statement, such as the shape of a curve; `holds` is the check.
    pub fn holds(
        text: impl Into<String>,
        printed: impl Into<String>,
        ours: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self::found(text, printed.into(), ours.into(), verdict(holds))
    }

    /// What cannot be tried here, and why.
    pub fn not_reproducible(
        text: impl Into<String>,
        printed: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        let because = Some(why.into());
        let claim = Self::found(text, printed.into(), "-".into(), Verdict::NotReproducible);
        Self { because, ..claim }
    }

    /// Why it is contradicted, should it be. A claim that is kept needs no reason and
    /// shows none.
    pub fn explained(mut self, why: impl Into<String>) -> Self {
        if self.verdict == Verdict::Contradicted {
            self.because = Some(why.into());
        }
        self
    }

    /// A contradiction that nobody has explained.
    pub fn is_unexplained(&self) -> bool {
        self.verdict == Verdict::Contradicted && self.because.is_none()
    }

    fn found(text: impl Into<String>, printed: String, ours: String, verdict: Verdict) -> Self {
        Self { text: text.into(), printed, ours, verdict, because: None }
    }
}

fn verdict(kept: bool) -> Verdict {
    if kept { Verdict::Kept } else { Verdict::Contradicted }
}

fn with(value: f64, unit: &str) -> String {
    format!("{} {unit}", report::number(value)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_follows_from_the_figures() {
        use Verdict::*;
        let near = |ours| Claim::near("", 100.0, ours, 0.15, "ms").verdict;
        assert_eq!(
            [near(85.0), near(115.0), near(84.9), near(f64::NAN)],
            [Kept, Kept, Contradicted, Contradicted]
        );
        let least = |ours| Claim::at_least("", 21.0, ours, "MB/s").verdict;
        assert_eq!(
            [least(21.0), least(21.3), least(20.9), least(f64::NAN)],
            [Kept, Exceeded, Contradicted, Contradicted]
        );
        let most = |ours| Claim::at_most("", 5.0, ours, "ms").verdict;
        assert_eq!(
            [most(5.0), most(4.9), most(5.1), most(f64::NAN)],
            [Kept, Exceeded, Contradicted, Contradicted]
        );
    }

    #[test]
    fn only_a_contradiction_takes_a_reason() {
        let kept = Claim::holds("", "", "", true).explained("why");
        assert!(kept.because.is_none() && !kept.is_unexplained());
        let broken = Claim::holds("", "", "", false);
        assert!(broken.is_unexplained() && !broken.explained("why").is_unexplained());
    }
}
