//! What the paper announces and does not print: requests whose latency is guaranteed, beside
//! a stream whose rate is.

use super::scene::{BEGIN, CYCLE, FILE, Under, film, late, model, schedulers, world};
use crate::experiments::whole::cyclic::{Cyclic, PIECE, Reads, Served};
use crate::experiments::whole::pager::{PAGE, Pager};
use crate::experiments::whole::programs::{Shared, beyond};
use crate::{Claim, Experiment, Findings, Paper, Run};
use disk::Profile;
use node::{Policy, Priority, Service};
use report::{Axis, Chart, Series, Style, Table, number};
use units::{Direction, Duration, Instant, Lba, Rate, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "qos-guaranteed-latency",
    paper: Paper::Qos,
    title: "Pages that a program waits for, beside a stream of 4 MB/s",
    claim: "Section IV announces an experiment on guaranteed latency for the final version and \
            prints none of it. What it was to show stands in section III: best-effort slack time \
            shortens the mean response of interactive requests (III.A); those of guaranteed \
            latency go before those of guaranteed rate, in time that is reserved for them, and \
            violate none of their guarantees (III.B).",
    setup: "The node and the stream of 4 MB/s of figure 7, and a program that waits for pages of 4 KiB \
            anywhere in 700 MB, the paper's example of such requests (section I.B). Chosen, since \
            the paper says nothing of it: it works for 50 to 150 ms between two pages (under a contract of ours, which \
            is for one in 200 ms, for 200 to 600); of a cycle \
            of 4 s, 400 ms are reserved. Guaranteed latency is time-cycle's bubble slot. With slack \
            time: ucsb, where the register has what the cycle leaves; without: the same, with a \
            register of one command, the least that there is.",
    real_time: false,
    run,
};

const FOUR: Rate = Rate::per_second(4_000_000);
/// Of a program without a contract: several pages while the stream's requests are served.
const WORKS: Duration = Duration::from_millis(50);
const SLOT: &str = "400ms";
/// Answers within this time are what our node promises beside the stream, so often.
const WITHIN: Duration = Duration::from_millis(200);
const SEEDS: u64 = 5;
/// The pages' file.
const PAGES: u64 = 1;

/// What came of one scheduler, of all seeds together.
struct Found {
    name: &'static str,
    waits: Vec<Duration>,
    /// When the page was asked for that was waited for longest.
    longest_at: Instant,
    /// The mean of each seed, in ms.
    means: Vec<f64>,
    late: u64,
    /// The longest read of the stream.
    longest_of_stream: Duration,
    error: Option<String>,
}

impl Found {
    fn mean(&self) -> f64 {
        self.means.iter().sum::<f64>() / self.means.len() as f64
    }

    fn longest(&self) -> f64 {
        self.waits.iter().max().map_or(f64::NAN, |wait| wait.as_millis_f64())
    }

    /// The paper's demand: no stream's request is late, nobody is refused.
    fn violates(&self) -> u64 {
        self.late + u64::from(self.error.is_some())
    }
}

fn play(under: &Under, name: &'static str, service: Service, length: Duration) -> Found {
    // No oftener than a contract says.
    let works = match service {
        Service::Latency { every, .. } => every,
        _ => WORKS,
    };
    let (waits, means) = (Vec::new(), Vec::new());
    let longest_of_stream = Duration::ZERO;
    let longest_at = Instant::EPOCH;
    let mut found =
        Found { name, waits, longest_at, means, late: 0, longest_of_stream, error: None };
    for seed in 1..=SEEDS {
        let mut world = world(under.policy, PAGES + 1);
        let served = Served::UnderContract { period: under.period };
        let reads = Reads { rate: FOUR, cycle: CYCLE, served, at_once: usize::MAX };
        let stream = Cyclic::new(&film(0), FILE, reads, BEGIN);
        let pager = Pager::new(&film(PAGES), FILE, service, works, (BEGIN, seed));
        let (of_stream, seen) = (stream.seen(), pager.seen());
        world.add(stream);
        world.add(pager);
        world.run_for(BEGIN - Instant::EPOCH + length);
        let waits: Vec<Duration> = seen.borrow().waits.iter().map(|(_, wait)| *wait).collect();
        let longest = seen.borrow().waits.iter().max_by_key(|(_, wait)| *wait).copied();
        if let Some((at, wait)) = longest
            && found.waits.iter().all(|other| *other < wait)
        {
            found.longest_at = at;
        }
        let sum: Duration = waits.iter().copied().sum();
        found.means.push(sum.as_millis_f64() / waits.len() as f64);
        found.waits.extend(waits);
        found.late += late(&world);
        found.longest_of_stream = found.longest_of_stream.max(of_stream.borrow().wait_max);
        let error = |seen: &Shared| seen.borrow().error.as_ref().map(ToString::to_string);
        found.error = found.error.or_else(|| error(&of_stream)).or_else(|| error(&seen));
    }
    found
}

/// A page, a command of the stream before it, and the way back are bounded by the profile.
fn one_command() -> f64 {
    let profile = Profile::of(&model());
    let whole = Lba::new(0)..Lba::new(profile.capacity() / SECTOR);
    let worst = |len| profile.worst(whole.clone(), len, Direction::Read);
    (worst(PIECE) + worst(PAGE)).as_millis_f64()
}

fn run(run: &Run<'_>) -> Findings {
    let length = run.choose(Duration::from_secs(1_200), Duration::from_secs(60));
    let [ucsb, time_cycle, slack] = schedulers();
    let with = |under: Under, name, value| {
        let policy: Policy = under.policy.with(name, value).expect("a setting of it");
        Under { policy, ..under }
    };
    let interactive = Service::BestEffort(Priority::Interactive);
    let promised = Service::Latency { len: PAGE, within: WITHIN, every: WITHIN };
    let runs = [
        (with(time_cycle, "bubble-slot", SLOT), "time-cycle, bubble slot", interactive),
        (ucsb, "ucsb, slack time", interactive),
        (with(ucsb, "register-most", "0ns"), "ucsb, no slack time", interactive),
        (slack, "slack, best effort", interactive),
        (slack, "slack, contract", promised),
    ];
    let mut found = Vec::new();
    for (at, (under, name, service)) in runs.iter().enumerate() {
        run.progress(at, runs.len());
        found.push(play(under, name, *service, length));
    }
    let mut findings = Findings::default();
    claims(&found, &mut findings);
    draw(&found, &mut findings);
    findings
}

fn claims(found: &[Found], findings: &mut Findings) {
    let [slot, register, none, best_effort, contract] = found else { unreachable!("five runs") };
    let bound = one_command();
    let most = |found: &Found| found.means.iter().copied().fold(0.0, f64::max);
    let least = |found: &Found| found.means.iter().copied().fold(f64::MAX, f64::min);
    findings
        .claim(Claim::holds(
            "III.A: slack time shortens the mean response of interactive requests, in every seed",
            "useful for reducing the average response time",
            format!("{} and without {} ms", number(register.mean()), number(none.mean())),
            most(register) < least(none),
        ))
        .claim(Claim::at_most(
            "III.B: guaranteed latency goes before guaranteed rate: the longest wait, against the \
             bounds of one command of the stream and of its own",
            bound,
            slot.longest(),
            "ms",
        ));
    for (found, text) in [
        (slot, "III.B: beside guaranteed latency, requests of guaranteed rate that are late"),
        (register, "III.B: beside interactive requests in slack time, the same"),
    ] {
        findings.claim(Claim::at_most(text, 0.0, found.violates() as f64, ""));
    }
    findings
        .claim(
            Claim::at_most(
                "slack: pages under contract, the longest wait",
                WITHIN.as_millis_f64(),
                contract.longest(),
                "ms",
            )
            .of_ours(),
        )
        .claim(
            Claim::at_most(
                "slack: requests under contract that are late, pages with and without a contract",
                0.0,
                (best_effort.violates() + contract.violates()) as f64,
                "",
            )
            .of_ours(),
        );
}

fn draw(found: &[Found], findings: &mut Findings) {
    let mut table = Table::new(&[
        "policy",
        ">pages",
        ">wait, ms: mean",
        ">longest",
        ">asked for at, s",
        ">late under contract",
        ">longest read of the stream, ms",
        "refused",
    ]);
    let x = Axis::logarithmic("from the ask to the answer, ms").from(1.0);
    let y = Axis::logarithmic("pages that took longer, %").from(0.01).to(100.0);
    let mut chart = Chart::new("Pages beside a stream of 4 MB/s", x, y);
    for one in found {
        table.row(vec![
            one.name.to_owned(),
            one.waits.len().to_string(),
            number(one.mean()),
            number(one.longest()),
            format!("{:.3}", (one.longest_at - Instant::EPOCH).as_secs_f64()),
            one.late.to_string(),
            number(one.longest_of_stream.as_millis_f64()),
            one.error.clone().unwrap_or_default(),
        ]);
        chart = chart.with(Series::new(one.name, Style::Steps, beyond(one.waits.clone())));
    }
    findings.chart(chart).table("What a program waits for its pages", table).note(format!(
        "The bound of one command of the stream and one of a page is {} ms. Under ucsb a contract \
         for answers within {WITHIN} is refused beside the stream: by cycles the shortest deadline \
         binds all, and the stream's budget of a whole cycle does not fit into it.",
        number(one_command()),
    ));
}
