//! The static slack as the thesis defines it (section 6.2, definition 1), in its two
//! parts: what figure 6.4 draws. Where it is more than what is there, see
//! `section_6_2`.

use sched::Task;
use units::Duration;

/// The two parts of the definition, in nanoseconds; each may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Printed {
    /// Requests in the order of their deadlines.
    pub in_order: i64,
    /// One request that is due later began first.
    pub out_of_order: i64,
}

impl Printed {
    /// At the scheduling points (theorem 2) up to the longest period.
    ///
    /// # Panics
    /// Without tasks.
    pub fn of(tasks: &[Task]) -> Self {
        let mut tasks = tasks.to_vec();
        tasks.sort_by_key(|task| task.period);
        let periods: Vec<u64> = tasks.iter().map(|task| task.period.as_nanos()).collect();
        let (first, last) = (periods[0], *periods.last().expect("some task"));
        let mut points: Vec<u64> = Vec::new();
        for &period in &periods {
            points.extend((period..=last).step_by(period as usize));
        }
        points.sort_unstable();
        points.dedup();
        let demand = |tasks: &[Task], at: u64| -> u64 {
            tasks.iter().map(|task| at / task.period.as_nanos() * task.cost.as_nanos()).sum()
        };
        let (mut in_order, mut out_of_order) = (i64::MAX, i64::MAX);
        for at in points.into_iter().filter(|&at| at >= first) {
            in_order = in_order.min(at as i64 - demand(&tasks, at) as i64);
            // Just after `at` all those requests are released that it counts.
            for (i, task) in tasks.iter().enumerate().skip(1) {
                if at < periods[i] {
                    let work = task.cost.as_nanos() + demand(&tasks[..i], at);
                    out_of_order = out_of_order.min(at as i64 + 1 - work as i64);
                }
            }
        }
        Self { in_order, out_of_order }
    }

    /// The static slack; nothing where the thesis's test refuses the tasks.
    pub fn slack(&self, tasks: &[Task]) -> Option<Duration> {
        let least = u64::try_from(self.in_order.min(self.out_of_order)).ok()?;
        let load = |task: &Task| task.cost.as_secs_f64() / task.period.as_secs_f64();
        let fits = tasks.iter().map(load).sum::<f64>() <= 1.0 + 1e-12;
        fits.then_some(Duration::from_nanos(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task((cost, period): (u64, u64)) -> Task {
        let [cost, period] = [cost, period].map(Duration::from_nanos);
        Task::new(period, period, cost)
    }

    #[test]
    fn the_definition_by_hand() {
        // In order: 9 - 2 - 3 - 3 = 1. Out of order: just after 6 with a (3,9) first,
        // 7 - 3 - 2 = 2.
        let tasks = [(2, 6), (3, 9), (3, 9)].map(task);
        let printed = Printed::of(&tasks);
        assert_eq!(printed, Printed { in_order: 1, out_of_order: 2 });
        assert_eq!(printed.slack(&tasks), Some(Duration::from_nanos(1)));
        let refused = [(42, 250), (69, 250), (122, 1000), (163, 2000)].map(task);
        assert_eq!(Printed::of(&refused).slack(&refused), None);
    }
}
