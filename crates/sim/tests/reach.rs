//! How many films one disk carries, beside a database or alone: by what each admission
//! promises, and with nobody refused up to where a request is late. The load of the
//! experiment `peers`, on the same drive model, in simulated time: films at 1 MB/s in
//! places evenly apart, 16 KiB anywhere in a database every 150 ms, and eight greedy
//! readers of 256 KiB at random.
//!
//! The claims: what worst-case and statistical admission take is kept, from equal and
//! from random phases; and with nobody refused `slack` carries more than either promises
//! and is late with none of it. `UPDATE_DOCS=1` writes the table into docs/admission.md;
//! `SLACKLINE_SECONDS` says how long each load is run.
#![allow(clippy::print_stdout)] // the table is the result

use disk::{Model, Profile};
use sched::{Chance, Options, PolicyKind, StatisticalSet, StatisticalTask, Task, TaskSet};
use sim::Random;
use sim::machine::{Arrivals, DiskSetup, LoadPlan, Machine, Pace, Places, Setup, StreamPlan};
use std::fmt::Write;
use std::ops::Range;
use units::{Access, Bytes, Command, Direction, Duration, Lba, Rate};

const MODEL: &str = "seagate-st318437lw";
const PLACES: u64 = 32;
const FILMS_MAX: u64 = 23;
const EVERY: Duration = Duration::from_millis(150);
const READ: Direction = Direction::Read;

/// What is asked of the disk, but for how many films.
#[derive(Clone, Copy, Debug)]
struct Mix {
    block: Bytes,
    database: bool,
}

/// A program with a deadline.
struct Program {
    block: Bytes,
    period: Duration,
    places: Places,
    /// By the worst case, and what it costs from anywhere, mean and deviation.
    task: StatisticalTask,
}

struct Bench {
    model: Model,
    profile: Profile,
    reserve: Duration,
}

impl Bench {
    fn new() -> Self {
        let model = Model::named(MODEL).unwrap();
        let profile = Profile::of(&model);
        let end = Lba::containing(model.capacity());
        let reserve = profile.worst(Lba::new(0)..end, Bytes::kib(256), READ);
        Self { model, profile, reserve }
    }

    fn range(&self, place: u64, len: Bytes) -> Range<Lba> {
        let apart = (self.model.capacity() / PLACES).round_down(Bytes::MIB);
        Lba::containing(apart * place)..Lba::containing(apart * place + len)
    }

    /// Greedy readers lie between the others.
    fn place(number: u64) -> u64 {
        [0, 2, 3][(number % 3) as usize] + 4 * (number / 3)
    }

    fn program(&self, number: u64, block: Bytes, period: Duration, len: Bytes) -> Program {
        let range = self.range(Self::place(number), len);
        let worst = self.profile.worst(range.clone(), block, READ);
        let (mean, deviation) = self.mean_and_deviation(&range, block, worst);
        let task = StatisticalTask { task: Task::new(period, period, worst), mean, deviation };
        let places = match len > Bytes::mib(32) {
            true => Places::Sequential(range),
            false => Places::Random(range),
        };
        Program { block, period, places, task }
    }

    /// Mean and deviation, rounded up, where the heads are anywhere with equal
    /// probability, and so is the platter.
    fn mean_and_deviation(
        &self,
        range: &Range<Lba>,
        len: Bytes,
        worst: Duration,
    ) -> (Duration, Duration) {
        let turn = 60_000.0 / 7_200.0;
        let end = Lba::containing(self.model.capacity()).get();
        let place = |lba| Command::Forced(Access { lba, len, direction: READ });
        let last = Lba::new(range.end.get() - len.div_ceil(units::SECTOR));
        let costs: Vec<f64> = [range.start, last]
            .into_iter()
            .flat_map(|to| (0..1_000).map(move |at| (Lba::new(end / 1_000 * at), place(to))))
            .map(|(from, command)| self.profile.bound(from, &command).as_millis_f64())
            .collect();
        let count = costs.len() as f64;
        let mean = costs.iter().sum::<f64>() / count;
        let seeks = costs.iter().map(|cost| (cost - mean).powi(2)).sum::<f64>() / count;
        let deviation = (seeks + turn * turn / 12.0).sqrt();
        let up = |ms: f64| Duration::from_nanos((ms * 1e6).ceil() as u64).min(worst);
        (up(mean - turn / 2.0), up(deviation))
    }

    /// The database, if there is one, and as many films as there are places for.
    fn programs(&self, mix: Mix) -> Vec<Program> {
        let database = mix.database.then(|| self.program(0, Bytes::kib(16), EVERY, Bytes::mib(20)));
        let first = u64::from(mix.database);
        let period = Rate::per_second(1_000_000).time_for(mix.block);
        let film = |at| self.program(first + at, mix.block, period, Bytes::mib(200));
        database.into_iter().chain((0..FILMS_MAX).map(film)).collect()
    }

    fn worst_case(&self, programs: &[Program]) -> usize {
        let mut set = TaskSet::new(self.reserve);
        programs.iter().take_while(|it| set.add(it.task.task).is_ok()).count()
    }

    fn statistical(&self, programs: &[Program], one_in: u64) -> usize {
        let mut set = StatisticalSet::new(self.reserve, Chance::one_in(one_in));
        programs.iter().take_while(|it| set.add(it.task).is_ok()).count()
    }

    /// All films of a period in one sweep; whoever comes in between is charged for the
    /// way back.
    fn sweep(&self, programs: &[Program], mix: Mix) -> usize {
        let end = Lba::containing(self.model.capacity());
        let costs = node::sweep_costs(&self.profile, Lba::new(0)..end, mix.block, READ).unwrap();
        let way_back = costs.sweep(1) - costs.request;
        let period = programs.last().unwrap().period;
        let between = match programs[0].period == EVERY {
            true => {
                (programs[0].task.task.cost + way_back) * (period.as_nanos() / EVERY.as_nanos() + 1)
            }
            false => Duration::ZERO,
        };
        costs.most(period, between + self.reserve + way_back) as usize + usize::from(mix.database)
    }

    /// Late requests, the most by which, and what the greedy read in MB/s.
    fn run(&self, programs: &[Program], run: Run) -> (u64, Duration, f64) {
        let options =
            Options { admission: run.admission, reserve: self.reserve, ..Options::default() };
        let mut disk = DiskSetup::new(self.model.clone(), run.policy, options);
        disk.cache = true;
        let mut machine = Machine::new(Setup { disks: vec![disk], seed: run.seed });
        let mut random = Random::new(run.seed ^ 0x5eed);
        for program in programs {
            let equal = run.seed == 0;
            let phase = if equal { Duration::ZERO } else { random.span(program.period) };
            let plan = StreamPlan {
                disks: vec![0],
                rate: Rate::of(program.block, program.period),
                block: program.block,
                deadline: None,
                cost: None,
                direction: READ,
                places: program.places.clone(),
                pace: Pace::Steady,
                phase,
                patience: Duration::ZERO,
            };
            machine.join(plan).expect("as many as are taken");
        }
        for greedy in 0..8 {
            machine.load(LoadPlan {
                disk: 0,
                arrivals: Arrivals::Greedy(1),
                size: Bytes::kib(256),
                direction: READ,
                places: Places::Random(self.range(4 * greedy + 1, Bytes::mib(32))),
                synchronous: true,
            });
        }
        machine.run_for(Duration::from_secs(run.seconds));
        let results = machine.results();
        assert_eq!(results.overruns, 0, "the bounds hold");
        let greedy = results.synchronous.bytes.get() as f64 / 1e6 / run.seconds as f64;
        (results.late, results.late_max, greedy)
    }

    /// How many programs, from `from` on, have no late request in any of the runs, and
    /// what the greedy read there.
    fn reach(
        &self,
        programs: &[Program],
        from: usize,
        runs: impl Iterator<Item = Run> + Clone,
    ) -> (usize, f64) {
        let mut reached = (0, f64::NAN);
        for count in from..=programs.len() {
            let run = |run: Run| (run.policy, self.run(&programs[..count], run));
            let all: Vec<_> = runs.clone().map(run).collect();
            let late: u64 = all.iter().map(|(_, one)| one.0).sum();
            let late_max = all.iter().map(|(_, one)| one.1).max().unwrap();
            println!("{}: {count} programs, {late} late, by up to {late_max}", all[0].0);
            if late > 0 {
                break;
            }
            reached = (count, all.iter().map(|(_, one)| one.2).sum::<f64>() / all.len() as f64);
        }
        reached
    }
}

/// One load for a while.
#[derive(Clone, Copy)]
struct Run {
    policy: PolicyKind,
    admission: bool,
    seconds: u64,
    /// Zero: all ask together; else from random phases.
    seed: u64,
}

#[test]
fn what_is_promised_is_kept_and_nobody_refused_goes_further() {
    let asked = std::env::var("SLACKLINE_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds = asked.unwrap_or(60);
    let seeds = if asked.is_some() { 8 } else { 3 };
    let bench = Bench::new();
    let mut text = String::from(
        "| films in | beside | worst case | once in 1,000,000 | once in 1,000 | sweeps | edf, \
         nobody refused | slack, nobody refused | greedy there, MB/s \
         |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut further = 0;
    for (kib, database) in [(512, false), (512, true), (1024, false), (1024, true)] {
        let mix = Mix { block: Bytes::kib(kib), database };
        let programs = bench.programs(mix);
        let worst = bench.worst_case(&programs);
        let [rare, seldom] = [1_000_000, 1_000].map(|times| bench.statistical(&programs, times));
        let sweep = bench.sweep(&programs, mix);
        let runs = |policy, admission| {
            (0..seeds).map(move |seed| Run { policy, admission, seconds, seed })
        };
        for run in runs(PolicyKind::SLACK, true) {
            let late = bench.run(&programs[..worst], run);
            assert_eq!(late.0, 0, "worst case: {worst} of {mix:?}");
            let late = bench.run(&programs[..rare], Run { admission: false, ..run });
            assert_eq!(late.0, 0, "once in 1,000,000: {rare} of {mix:?}");
        }
        let [edf, reached] = [PolicyKind::EDF, PolicyKind::SLACK]
            .map(|policy| bench.reach(&programs, seldom, runs(policy, false)));
        assert!(reached.0 > rare && rare >= worst, "{mix:?}: {reached:?}, {rare}, {worst}");
        assert!(reached.0 >= edf.0, "{mix:?}: {reached:?}, edf {edf:?}");
        further += reached.0 - edf.0;
        assert!(reached.1 > 0.0, "best effort is not shut out: {mix:?}");
        let films = |count: usize| count - usize::from(database);
        writeln!(
            text,
            "| {kib} KiB | {} | {} | {} | {} | {} | {} | {} | {:.1} |",
            if database { "a database" } else { "-" },
            films(worst),
            films(rare),
            films(seldom),
            films(sweep),
            films(edf.0),
            films(reached.0),
            reached.1
        )
        .unwrap();
    }
    println!("{text}");
    assert!(further > 0, "deadline order alone carries as many");
    // What a short run shows is not for the document.
    if asked.is_some() && std::env::var_os("UPDATE_DOCS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/admission.md");
        let old = std::fs::read_to_string(path).unwrap();
        let (head, rest) = old.split_once("<!-- reach -->\n").expect("a place for the table");
        let (_, tail) = rest.split_once("<!-- end -->").expect("an end of the table");
        std::fs::write(path, format!("{head}<!-- reach -->\n{text}<!-- end -->{tail}")).unwrap();
    }
}
