//! How many disk requests a second one core simulates: an Atlas-II under the production
//! schedule with `slack` and 20 streams that make up 80 % of the disk, with and without
//! best effort. What counts is the time on the processor, so that a busy machine shows
//! less; of several rounds the median is printed, and what it is of the 30,000 to 93,000
//! that DiskSim 4.0 simulates on such a machine. `SLACKLINE_QUICK` in the environment: one
//! short round, which shows that it runs and nothing else.
#![allow(clippy::print_stdout)] // the rates are the result

use disk::Model;
use sched::{Options, PolicyKind};
use sim::machine::{Arrivals, DiskSetup, LoadPlan, Machine, Pace, Places, Setup, StreamPlan};
use std::ops::Range;
use units::{Bytes, Direction, Duration, Lba, Rate};

const STREAMS: u64 = 20;
const PERCENT: u64 = 80;
const ROUNDS: usize = 7;
/// The slowest and the quickest that DiskSim was seen to be.
const DISKSIM: [f64; 2] = [30_000.0, 93_000.0];
const AIM: f64 = 1_000_000.0;

/// Best effort beside the streams.
#[derive(Clone, Copy, Debug)]
enum BestEffort {
    None,
    /// One to fifteen at once, eight a second.
    Bursts,
    /// Eight always outstanding.
    Greedy,
}

/// Seconds that this thread has had on a processor.
fn on_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text.split(' ').next().and_then(|field| field.parse::<u64>().ok());
    ns.expect("a Linux with scheduler statistics") as f64 / 1e9
}

fn machine(disks: u32, block: Bytes, best_effort: BestEffort) -> Machine {
    let model = Model::named("quantum-atlas-ii").expect("a model that comes with the program");
    let end = Lba::containing(model.capacity());
    let options = Options { reserve: Duration::from_millis(40), ..Options::default() };
    let disk = DiskSetup::new(model, PolicyKind::SLACK, options);
    let mut machine = Machine::new(Setup::alike(&disk, disks, 1));
    let outer: Range<Lba> = Lba::new(0)..Lba::new(1_772 * 10 * 179);
    let cost = machine.profile(0).worst(outer.clone(), block, Direction::Read);
    let rate = Rate::of(block * u64::from(disks), cost * STREAMS * 100 / PERCENT);
    for at in 0..STREAMS {
        let plan = StreamPlan {
            disks: (0..disks).collect(),
            rate,
            block,
            deadline: None,
            cost: None,
            direction: Direction::Read,
            places: Places::Random(outer.clone()),
            pace: Pace::Steady,
            phase: Duration::from_millis(137 * at),
            patience: Duration::ZERO,
        };
        machine.join(plan).expect("they fit");
    }
    for disk in 0..disks {
        let arrivals = match best_effort {
            BestEffort::None => break,
            BestEffort::Bursts => Arrivals::Bursts { apart: Duration::from_secs(1), most: 15 },
            BestEffort::Greedy => Arrivals::Greedy(8),
        };
        machine.load(LoadPlan {
            disk,
            arrivals,
            size: Bytes::kib(8),
            direction: Direction::Read,
            places: Places::Random(Lba::new(0)..end),
            synchronous: true,
        });
    }
    machine
}

/// The median rate of the rounds, of so many requests each.
fn run(
    name: &str,
    disks: u32,
    block: Bytes,
    best_effort: BestEffort,
    (rounds, requests): (usize, u64),
) -> f64 {
    let mut rates: Vec<f64> = (0..rounds)
        .map(|_| {
            let mut machine = machine(disks, block, best_effort);
            machine.warm_up(Duration::from_secs(100));
            let clock = on_processor();
            while machine.results().requests() < requests {
                machine.run_for(Duration::from_secs(1_000));
            }
            let results = machine.results();
            assert_eq!((results.late, results.overruns), (0, 0), "the contracts are kept");
            results.requests() as f64 / (on_processor() - clock)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let rate = rates[rounds / 2];
    let times = DISKSIM.map(|disksim| rate / disksim);
    println!("{name:44} {:5.2} million/s  {:3.0} to {:3.0} times", rate / 1e6, times[1], times[0]);
    rate
}

fn main() {
    println!(
        "disk requests simulated per second of one core: Atlas-II, slack, {STREAMS} streams, \
         {PERCENT} %;\nbeside it how many times DiskSim's 30,000 to 93,000; the aim is {:.0} \
         million; median of {ROUNDS} rounds",
        AIM / 1e6
    );
    let quick = std::env::var_os("SLACKLINE_QUICK").is_some();
    let scale = if quick { (1, 1_000) } else { (ROUNDS, 200_000) };
    for kib in [64, 256, 1024] {
        for best_effort in [BestEffort::None, BestEffort::Bursts, BestEffort::Greedy] {
            let name = format!("blocks of {kib} KiB, best effort: {best_effort:?}");
            run(&name, 1, Bytes::kib(kib), best_effort, scale);
        }
    }
    run("three disks, 1024 KiB, best effort: Greedy", 3, Bytes::MIB, BestEffort::Greedy, scale);
}
