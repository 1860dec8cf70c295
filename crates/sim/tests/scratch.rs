#![allow(clippy::print_stdout, missing_docs)]
use disk::{Model, Profile};
use sched::{Options, PolicyKind};
use sim::one_disk::*;
use units::*;

#[test]
fn scratch() {
    let model = Model::named("quantum-atlas-ii").unwrap();
    let outer = Lba::new(0)..Lba::new(1772 * 10 * 179);
    let cost = Profile::of(&model).worst(outer.clone(), Bytes::MIB, Direction::Read);
    let end = Lba::containing(model.capacity());
    let seconds: u64 = std::env::var("SECS").map_or(500, |s| s.parse().unwrap());
    let seeds: u64 = std::env::var("SEEDS").map_or(2, |s| s.parse().unwrap());
    let only: Option<String> = std::env::var("ONLY").ok();
    println!(
        "cost {cost} be bound {}",
        Profile::of(&model).worst(Lba::new(0)..end, Bytes::kib(8), Direction::Read)
    );
    for (n, u, mode) in [
        (5, 54, "random"),
        (8, 86, "random"),
        (9, 96, "random"),
        (8, 86, "equal"),
        (9, 96, "equal"),
        (8, 86, "stag"),
        (9, 96, "stag"),
    ] {
        for &policy in PolicyKind::ALL {
            if only.as_ref().is_some_and(|o| !o.split(',').any(|o| o == policy.name())) {
                continue;
            }
            let begin = std::time::Instant::now();
            let (mut sum, mut cnt, mut late, mut reqs) = (0f64, 0u64, 0, 0);
            let mut busy = 0f64;
            let mut p = 0.0;
            for seed in 0..seeds {
                let options = Options {
                    burst: Duration::from_millis(100),
                    reserve: Duration::from_millis(40),
                    ..Options::default()
                };
                let mut world = OneDisk::new(Setup {
                    model: model.clone(),
                    cache: false,
                    policy,
                    options,
                    seed,
                });
                let mut random = sim::Random::new(seed * 1000);
                let rate = Rate::per_second(
                    (1u64 << 20) * 1_000_000_000 / (cost.as_nanos() * n * 100 / u),
                );
                for _ in 0..n {
                    let period = rate.time_for(Bytes::MIB);
                    let plan = StreamPlan {
                        rate,
                        block: Bytes::MIB,
                        deadline: None,
                        direction: Direction::Read,
                        places: Places::Random(outer.clone()),
                        pace: Pace::Steady,
                        phase: if mode == "random" { random.span(period) } else { Duration::ZERO },
                        patience: if mode == "stag" { Duration::MAX } else { Duration::ZERO },
                    };
                    world.join(plan).unwrap();
                }
                world.load(LoadPlan {
                    arrivals: Arrivals::Bursts { apart: Duration::from_secs(1), most: 15 },
                    size: Bytes::kib(8),
                    direction: Direction::Read,
                    places: Places::Random(Lba::new(0)..end),
                    synchronous: true,
                });
                world.run_for(Duration::from_secs(seconds));
                let r = world.results();
                sum += r.synchronous.mean().as_millis_f64() * r.synchronous.count() as f64;
                cnt += r.synchronous.count();
                late += r.late;
                reqs += r.requests();
                busy += r.busy.as_secs_f64();
                p = r.synchronous.percentile(990).as_millis_f64();
            }
            println!(
                "{n} {mode:7} {:14} mean {:8.1} p99 {:8.1} late {late:6} n {cnt} busy {:.3} {:.0} req/s",
                policy.name(),
                sum / cnt as f64,
                p,
                busy / seconds as f64 / seeds as f64,
                reqs as f64 / begin.elapsed().as_secs_f64()
            );
        }
    }
}
