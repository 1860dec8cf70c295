//! Axes: where a value stands, and which values are written beside it.

/// One axis of a chart.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with the unit: "latency, ms".
    pub label: String,
    logarithmic: bool,
    from: Option<f64>,
    to: Option<f64>,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Equal steps; begins at zero unless told otherwise or a value is below it.
    pub fn linear(label: impl Into<String>) -> Self {
        let label = label.into();
        Self { label, logarithmic: false, from: None, to: None, ticks: Vec::new() }
    }

    /// Equal factors. Values that are not above zero are not drawn.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { logarithmic: true, ..Self::linear(label) }
    }

    /// Begins here at the latest.
    pub fn from(mut self, from: f64) -> Self {
        self.from = Some(from);
        self
    }

    /// Ends here, whatever the values are.
    pub fn to(mut self, to: f64) -> Self {
        self.to = Some(to);
        self
    }

    /// Named places instead of numbers, as for bars.
    pub fn named(mut self, ticks: impl IntoIterator<Item = (f64, String)>) -> Self {
        self.ticks = ticks.into_iter().collect();
        self
    }

    /// The axis for these values.
    pub(crate) fn scale(&self, values: impl Iterator<Item = f64>) -> Scale {
        let values = values.filter(|value| value.is_finite());
        let seen: Vec<f64> = values.filter(|value| !self.logarithmic || *value > 0.0).collect();
        let least = seen.iter().copied().fold(f64::INFINITY, f64::min);
        let most = seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut ticks = self.ticks.clone();
        let (low, high) = if self.logarithmic {
            let least = self.from.unwrap_or(f64::INFINITY).min(least);
            let most = self.to.unwrap_or(most);
            let (least, most) = if least < most { (least, most) } else { (most / 2.0, most * 2.0) };
            let (low, high) =
                if most.is_finite() && least > 0.0 { (least, most) } else { (1.0, 10.0) };
            if ticks.is_empty() {
                ticks = decades(low, high);
            }
            let first = ticks.first().map_or(low, |tick| tick.0);
            let last = ticks.last().map_or(high, |tick| tick.0);
            (low.min(first), self.to.unwrap_or(high.max(last)))
        } else {
            let low = self.from.unwrap_or(0.0).min(least);
            let high = self.to.unwrap_or(most);
            let (low, high) = if low < high { (low, high) } else { (low, low + 1.0) };
            let (low, high) = if low.is_finite() { (low, high) } else { (0.0, 1.0) };
            if ticks.is_empty() {
                ticks = steps(low, high);
            }
            let last = ticks.last().map_or(high, |tick| tick.0);
            (low, self.to.unwrap_or(high.max(last)))
        };
        ticks.retain(|tick| (low..=high).contains(&tick.0));
        Scale { logarithmic: self.logarithmic, low, high, ticks }
    }
}

/// An axis with its ends.
pub(crate) struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    /// Where words stand beside it.
    pub ticks: Vec<(f64, String)>,
}

impl Scale {
    /// From 0 (its begin) to 1 (its end); nothing for what cannot be drawn.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let drawn = value.is_finite() && (!self.logarithmic || value > 0.0);
        drawn.then(|| place.clamp(0.0, 1.0))
    }
}

/// Round values from `low` to at or beyond `high`.
fn steps(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / 5.0;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|part| part * decade).into_iter();
    let step = step.clone().find(|step| *step >= rough * 0.999).unwrap_or(rough);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step - 1e-9).ceil() as i64;
    let places = (1 - step.log10().floor() as i32).clamp(0, 9) as usize;
    let words = |value: f64| {
        let text = format!("{value:.places$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    };
    (first..=last).map(|n| n as f64 * step).map(|value| (value, words(value))).collect()
}

/// Powers of ten around the values, or rounder steps where that were too few.
fn decades(low: f64, high: f64) -> Vec<(f64, String)> {
    let parts: &[f64] = match high / low {
        ratio if ratio > 200.0 => &[1.0],
        ratio if ratio > 20.0 => &[1.0, 3.0],
        _ => &[1.0, 2.0, 5.0],
    };
    let mut ticks = Vec::new();
    for exponent in (low.log10().floor() as i32)..=(high.log10().ceil() as i32) {
        ticks.extend(parts.iter().map(|part| part * 10f64.powi(exponent)));
    }
    let begin = ticks.iter().rposition(|tick| *tick <= low * 1.0001).unwrap_or(0);
    let end = ticks.iter().position(|tick| *tick >= high * 0.9999).unwrap_or(ticks.len() - 1);
    ticks[begin..=end].iter().map(|tick| (*tick, crate::number(*tick))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_every_value() {
        for (low, high) in [(0.0, 1.0), (0.0, 937.0), (-3.0, 12.0), (0.0, 0.0042), (95.0, 105.0)] {
            let scale = Axis::linear("").from(low).scale([low, high].into_iter());
            assert!((3..=8).contains(&scale.ticks.len()), "{low} {high}: {:?}", scale.ticks);
            assert!(scale.low <= low && scale.high >= high);
        }
        for (low, high) in [(1.0, 10.0), (0.02, 800.0), (3.0, 4.0), (1e-6, 1e3)] {
            let scale = Axis::logarithmic("").scale([low, high].into_iter());
            assert!(scale.ticks.len() >= 2, "{low} {high}: {:?}", scale.ticks);
            assert!(scale.low <= low && scale.high >= high, "{low} {high}");
            assert_eq!(scale.place(0.0), None);
        }
    }

    #[test]
    fn an_axis_without_values_is_still_one() {
        for axis in [Axis::linear(""), Axis::logarithmic("")] {
            let scale = axis.scale([f64::NAN].into_iter());
            assert!(scale.place(1.0).is_some());
        }
    }
}
