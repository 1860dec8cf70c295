//! The way a node uses a schedule, once through.

use sched::{Class, Next, Options, Predict, Request, Schedule, Task};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba};

struct Fixed(Duration);
impl Predict for Fixed {
    fn bound(&self, _: Lba, _: &Command) -> Duration {
        self.0
    }
}

fn read(sector: u64) -> Command {
    let lba = Lba::new(sector);
    Command::Transfer(Access { lba, len: Bytes::kib(64), direction: Direction::Read })
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn every_policy_serves_what_it_is_given() {
    for &kind in policies::ALL {
        let mut schedule = Schedule::new(kind, Options::default());
        let mut now = Instant::EPOCH;
        let task = Task::new(ms(500), ms(500), ms(20));
        let id = schedule.join(now, task).unwrap();
        let predict = Fixed(ms(20));
        for key in 0..4 {
            let class = if key == 0 { Class::RealTime(id) } else { Class::best_effort(key != 1) };
            schedule.submit(now, key, Request { class, command: read(key * 1000) });
        }
        let mut done = Vec::new();
        while done.len() < 4 {
            let (key, predicted) = match schedule.next(now, &predict) {
                Next::Start { key, predicted } => (key, predicted),
                Next::Wait { until } => {
                    now = until.expect("something waits");
                    continue;
                }
            };
            now += predicted;
            let outcome = schedule.finished(now, key);
            assert!(outcome.late_by.is_zero() && outcome.overrun.is_zero());
            done.push(key);
        }
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2, 3], "{kind}");
        assert!(schedule.leave(id).is_empty());
        assert_eq!(schedule.counts().best_effort.requests, 3);
        assert_eq!(policies::named(kind.name), Ok(kind));
    }
}
