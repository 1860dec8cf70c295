//! Why a claim is contradicted, and the figure that this explains.
//!
//! Invariant: there is no reason without a figure. A contradiction is explained only
//! where the figure that a run found lies in the range that its reason states.

use crate::effort::Effort;
use std::ops::RangeInclusive;

/// A figure as a run measured it, thorough and quick, with its spread: where a reason
/// holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    thorough: f64,
    quick: f64,
    spread: Option<f64>,
}

/// A run follows from its seeds, so a figure comes again to the last digit as long as
/// nobody changes what it follows from. So large a part of itself it may move before
/// somebody has to look at the reason again.
const SPREAD: f64 = 0.05;

impl At {
    /// The same figure whatever the effort.
    pub const fn both(figure: f64) -> Self {
        Self::each(figure, figure)
    }

    /// A figure for each effort.
    pub const fn each(thorough: f64, quick: f64) -> Self {
        Self { thorough, quick, spread: None }
    }

    /// Only a thorough run contradicts the claim; a quick one that does is not explained.
    pub const fn thorough_only(figure: f64) -> Self {
        Self::each(figure, f64::NAN)
    }

    /// Only a quick run contradicts the claim; a thorough one that does is not explained.
    pub const fn quick_only(figure: f64) -> Self {
        Self::each(f64::NAN, figure)
    }

    /// Nothing is explained.
    pub(crate) const fn nothing() -> Self {
        Self::both(f64::NAN)
    }

    /// The figure may move by so much, instead of by a twentieth of itself.
    pub const fn spread(self, spread: f64) -> Self {
        Self { spread: Some(spread), ..self }
    }

    /// Of a list of texts with their figures, thorough and quick, the one for `text`;
    /// what the list does not name, or has no figure for (NaN), is not explained.
    pub fn in_list(list: &[(&str, f64, f64)], text: &str) -> Self {
        let found = list.iter().find(|(name, ..)| *name == text);
        found.map_or(Self::nothing(), |&(_, thorough, quick)| Self::each(thorough, quick))
    }

    /// What is explained in a run of this effort; nothing where it has no figure.
    pub(crate) fn range(&self, effort: Effort) -> Option<RangeInclusive<f64>> {
        let figure = match effort {
            Effort::Thorough => self.thorough,
            Effort::Quick => self.quick,
        };
        let spread = self.spread.unwrap_or(SPREAD * figure.abs());
        if figure.is_finite() { Some(figure - spread..=figure + spread) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_holds_around_its_figure_for_the_effort_and_nowhere_else() {
        let at = At::each(10.0, 20.0);
        let holds = |at: At, effort, figure: f64| {
            at.range(effort).is_some_and(|range| range.contains(&figure))
        };
        assert!(holds(at, Effort::Thorough, 10.5) && !holds(at, Effort::Thorough, 10.6));
        assert!(holds(at, Effort::Quick, 19.0) && !holds(at, Effort::Quick, 10.0));
        assert!(holds(at.spread(0.0), Effort::Quick, 20.0));
        assert!(!holds(at.spread(0.0), Effort::Quick, 20.1));
        assert!(!holds(at, Effort::Thorough, f64::NAN));
        assert!(At::thorough_only(3.0).range(Effort::Quick).is_none());
        assert!(At::nothing().range(Effort::Thorough).is_none());
    }

    #[test]
    fn a_list_explains_what_it_names() {
        let list = [("one", 1.0, 2.0)];
        assert_eq!(At::in_list(&list, "one"), At::each(1.0, 2.0));
        assert!(At::in_list(&list, "another").range(Effort::Thorough).is_none());
    }
}
