#![allow(clippy::print_stdout, missing_docs)]
use disk::Model;
use sched::{Options, PolicyKind};
use sim::one_disk::*;
use units::*;

#[test]
fn greedy() {
    let only: Option<String> = std::env::var("ONLY").ok();
    for (name, streams) in
        [("laptop-4200", 0), ("laptop-4200", 3), ("quantum-atlas-ii", 0), ("quantum-atlas-ii", 5)]
    {
        let model = Model::named(name).unwrap();
        let end = Lba::containing(model.capacity());
        for &policy in PolicyKind::ALL {
            if only.as_ref().is_some_and(|o| !o.split(',').any(|o| o == policy.name())) {
                continue;
            }
            let begin = std::time::Instant::now();
            let mut world = OneDisk::new(Setup {
                model: model.clone(),
                cache: false,
                policy,
                options: Options::default(),
                seed: 1,
            });
            for _ in 0..streams {
                let plan = StreamPlan {
                    rate: Rate::per_second(817_000),
                    block: Bytes::MIB,
                    deadline: None,
                    direction: Direction::Read,
                    places: Places::Random(Lba::new(0)..end),
                    pace: Pace::Steady,
                    phase: Duration::ZERO,
                    patience: Duration::MAX,
                };
                world.join(plan).unwrap();
            }
            for _ in 0..8 {
                world.load(LoadPlan {
                    arrivals: Arrivals::Greedy(8),
                    size: Bytes::kib(64),
                    direction: Direction::Read,
                    places: Places::Random(Lba::new(0)..end),
                    synchronous: true,
                });
            }
            world.run_for(Duration::from_secs(2000));
            let r = world.results();
            println!(
                "{name} {streams} {:14} {:.2} MB/s mean {:7.1} p50 {:7.1} p99 {:7.1} p999 {:7.1} max {:8.1} late {} {:.0} req/s",
                policy.name(),
                r.synchronous.bytes.get() as f64 / 2000e6,
                r.synchronous.mean().as_millis_f64(),
                r.synchronous.percentile(500).as_millis_f64(),
                r.synchronous.percentile(990).as_millis_f64(),
                r.synchronous.percentile(999).as_millis_f64(),
                r.synchronous.longest().as_millis_f64(),
                r.late,
                r.requests() as f64 / begin.elapsed().as_secs_f64()
            );
        }
    }
}
