//! Cumulative proportional plots: the share of values that are larger than x.

/// For each of the values that a plot with two logarithmic axes can show apart: the value,
/// and how many of a hundred are larger. What is below `from` stands at `from`; the largest
/// stands at `least`, since no share of none can be drawn. Nothing for no values.
pub fn longer_than(
    values: impl IntoIterator<Item = f64>,
    from: f64,
    least: f64,
) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let all = values.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    if values.first().is_some_and(|first| *first > from) {
        points.push((from, 100.0));
    }
    for (at, &value) in values.iter().enumerate() {
        let share = (100.0 * (all - at as f64 - 1.0) / all).max(least);
        let is_last = at + 1 == values.len();
        // A step of less than a hundredth in either direction is not seen.
        let near = points.last().is_some_and(|last| value < last.0 * 1.01 && share > last.1 * 0.99);
        if value <= from {
            points = vec![(from, share)];
        } else if !near || is_last {
            points.push((value, share));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::longer_than;

    #[test]
    fn the_share_of_larger_values_falls_from_all_to_the_least() {
        let points = longer_than([4.0, 1.0, 2.0, 8.0], 0.1, 0.01);
        assert_eq!(points, [(0.1, 100.0), (1.0, 75.0), (2.0, 50.0), (4.0, 25.0), (8.0, 0.01)]);
        assert_eq!(longer_than([], 0.1, 0.01), []);
        assert_eq!(longer_than([0.05, 0.1], 0.1, 0.01), [(0.1, 0.01)]);
        assert_eq!(longer_than([0.05, 1.0], 0.1, 0.01), [(0.1, 50.0), (1.0, 0.01)]);
    }

    #[test]
    fn many_values_make_few_points_that_keep_the_shape() {
        let values: Vec<f64> = (1..=100_000).map(|n| f64::from(n) / 1_000.0).collect();
        let points = longer_than(values, 0.001, 0.001);
        assert!(points.len() < 2_500, "{}", points.len());
        assert_eq!(points.last(), Some(&(100.0, 0.001)));
        for (value, share) in &points[..points.len() - 1] {
            assert!((share - (100.0 - value)).abs() < 1e-6, "{value} {share}");
        }
    }
}
