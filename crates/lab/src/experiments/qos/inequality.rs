//! Inequality 1: how long a cycle must be.

use crate::{At, Claim, Experiment, Findings, Paper, Run};
use disk::{Drive, Emulated, Kind, Model, Profile};
use report::{Axis, Chart, Series, Style, Table};
use sched::{CycleStream, shortest_cycle, time_cycle};
use sim::Random;
use std::ops::Range;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, Rate, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "qos-inequality-1",
    paper: Paper::Qos,
    title: "How long a cycle must be for its requests",
    claim: "With a cycle as long as inequality 1 says (latencies, and transfers at the rate of \
            each stream's zone), all requests of a cycle are done by its end.",
    setup: "The model of the paper's ST318437LW without its cache; streams of 1 MB/s, each in a \
            part of the disk of its own, anywhere, in several draws; the whole cycle for them. \
            Each cycle reads what every stream uses in it, in one request each. Two kinds of latency: the mean, \
            as the inequality is printed, and the bound of the profile, as the production \
            admission uses it.",
    real_time: false,
    run,
};

const RATE: Rate = Rate::per_second(1_000_000);
const STREAMS: [usize; 5] = [2, 4, 8, 12, 16];
/// The whole cycle is for streams.
const PART_PPM: u32 = 1_000_000;

/// A stream in its zone.
struct Placed {
    part: Range<Lba>,
    zone: Rate,
    cursor: Lba,
}

/// Zones of the disk with their rates.
fn zones(profile: &Profile) -> Vec<(Range<Lba>, Rate)> {
    let Kind::HardDisk(disk) = &profile.kind else { panic!("the paper's disk has zones") };
    let end = Lba::new(profile.capacity / SECTOR);
    let ends = disk.zones.iter().skip(1).map(|zone| zone.start).chain([end]);
    disk.zones.iter().zip(ends).map(|(zone, end)| (zone.start..end, zone.rate)).collect()
}

fn placed(profile: &Profile, count: usize, random: &mut Random) -> Vec<Placed> {
    let zones = zones(profile);
    let room = Bytes::mib(256).get() / SECTOR.get();
    (0..count)
        .map(|_| {
            let (zone, rate) = random.pick(&zones);
            let sectors = zone.start.distance(zone.end);
            let start = zone.start.get() + random.below(sectors.saturating_sub(room).max(1));
            let end = (start + room).min(zone.end.get());
            let start = Lba::new(start);
            Placed { part: start..Lba::new(end), zone: *rate, cursor: start }
        })
        .collect()
}

fn read(lba: Lba, len: Bytes) -> Command {
    Command::Transfer(Access { lba, len, direction: Direction::Read })
}

/// What a request takes beside its transfer at the zone's rate, on average over places.
fn mean_latency(model: &Model, profile: &Profile, len: Bytes, requests: u64) -> Duration {
    let mut drive = Emulated::new(model);
    let mut random = Random::new(7);
    let (mut now, mut beside) = (Instant::EPOCH, Duration::ZERO);
    let zones = zones(profile);
    for _ in 0..requests {
        let (zone, rate) = random.pick(&zones);
        let room = zone.start.distance(zone.end) - len.div_ceil(SECTOR);
        let lba = Lba::new(zone.start.get() + random.below(room));
        let took = drive.serve(now, &read(lba, len));
        beside += took.saturating_sub(rate.time_for(len));
        // Nobody keeps step with the disk's rotation.
        now += took + random.span(Duration::from_millis(20));
    }
    beside / requests
}

/// What came of cycles, of several draws of places together.
#[derive(Default)]
struct Cycles {
    over: u64,
    count: u64,
    work: Duration,
    time: Duration,
}

impl Cycles {
    fn add(&mut self, other: &Self) {
        self.over += other.over;
        self.count += other.count;
        self.work += other.work;
        self.time += other.time;
    }

    /// All work by all time.
    fn filled(&self) -> f64 {
        self.work.as_secs_f64() / self.time.as_secs_f64()
    }

    /// The mean length.
    fn length(&self) -> f64 {
        self.time.as_millis_f64() / self.count as f64
    }
}

fn simulate(model: &Model, streams: &mut [Placed], cycle: Duration, count: u64) -> Cycles {
    let mut drive = Emulated::new(model);
    let len = RATE.bytes_in(cycle).round_up(SECTOR);
    let (mut over, mut work_of_all) = (0, Duration::ZERO);
    let mut begin = Instant::EPOCH;
    for _ in 0..count {
        let mut now = begin;
        for stream in streams.iter_mut() {
            let sectors = len.div_ceil(SECTOR);
            if stream.cursor.get() + sectors > stream.part.end.get() {
                stream.cursor = stream.part.start;
            }
            now += drive.serve(now, &read(stream.cursor, len));
            stream.cursor = Lba::new(stream.cursor.get() + sectors);
        }
        let work = now - begin;
        over += u64::from(work > cycle);
        work_of_all += work;
        begin += cycle.max(work);
    }
    Cycles { over, count, work: work_of_all, time: cycle * count }
}

/// The streams as the inequality sees them, with the latency that `of` a request's size
/// says, and the shortest cycle; the size follows from the cycle and so on.
fn shortest(
    streams: &[Placed],
    of: impl Fn(&Placed, Bytes) -> Duration,
) -> (Vec<CycleStream>, Duration) {
    let mut len = Bytes::kib(64);
    for _ in 0..6 {
        let each = |stream: &Placed| {
            let latency = of(stream, len);
            CycleStream { rate: RATE, zone: stream.zone, latency }
        };
        let all: Vec<CycleStream> = streams.iter().map(each).collect();
        let cycle = shortest_cycle(PART_PPM, &all).expect("the disk is fast enough");
        let next = RATE.bytes_in(cycle).round_up(SECTOR);
        if next <= len {
            return (all, cycle);
        }
        len = next;
    }
    panic!("cycles grow without an end")
}

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let model = Model::named("seagate-st318437lw").expect("a built-in model").without_cache();
    let profile = Profile::of(&model);
    let (draws, count) = (run.choose(200, 40), run.choose(200, 50));
    let mean = mean_latency(&model, &profile, Bytes::kib(256), run.choose(50_000, 10_000));
    let mut table = Table::new(&[
        ">streams",
        ">cycle by means, ms",
        ">too long, %",
        ">filled",
        ">cycle by bounds, ms",
        ">too long",
        ">filled",
    ]);
    let (mut over_by_bound, mut fill, mut over_by_mean) = (0, Vec::new(), Vec::new());
    let (mut by_mean, mut by_bound) = (Vec::new(), Vec::new());
    for (step, streams) in STREAMS.into_iter().enumerate() {
        run.progress(step, STREAMS.len());
        let (mut means, mut bounds) = (Cycles::default(), Cycles::default());
        for draw in 0..draws {
            let seed = streams as u64 * 1_000 + draw;
            let mut placed = placed(&profile, streams, &mut Random::new(seed));
            let (_, cycle) = shortest(&placed, |_, _| mean);
            means.add(&simulate(&model, &mut placed, cycle, count));
            // A request lies somewhere in its part; its bound is that of the part.
            let (all, cycle) = shortest(&placed, |stream, len| {
                let worst = profile.worst(stream.part.clone(), len, Direction::Read);
                worst.saturating_sub(stream.zone.time_for(len))
            });
            assert!(time_cycle(PART_PPM, cycle, &all).is_ok(), "the admission takes its cycle");
            bounds.add(&simulate(&model, &mut placed, cycle, count));
        }
        let percent = 100.0 * means.over as f64 / means.count as f64;
        table.row(vec![
            streams.to_string(),
            report::number(means.length()),
            report::number(percent),
            report::number(means.filled()),
            report::number(bounds.length()),
            bounds.over.to_string(),
            report::number(bounds.filled()),
        ]);
        over_by_bound += bounds.over;
        over_by_mean.push(percent);
        fill.push((means.filled() - 1.0).abs());
        by_mean.push((streams as f64, means.length()));
        by_bound.push((streams as f64, bounds.length()));
    }
    let most = over_by_mean.iter().copied().fold(0.0, f64::max);
    let off = 100.0 * fill.iter().copied().fold(0.0, f64::max);
    findings
        .claim(
            Claim::at_most("with bounds, cycles that are too long", 0.0, over_by_bound as f64, "")
                .of_ours(),
        )
        .claim(
            Claim::at_most(
                "with mean latencies, as printed, cycles that are too long",
                0.0,
                most,
                "%",
            )
            .explained(
                At::each(54.7, 53.5),
                "a mean says nothing of the cycle at hand: about as many cycles take longer \
                     than it as shorter; the paper's safety lies in the part of the cycle \
                     that it reserves and in its bubble slot",
            ),
        )
        .claim(Claim::at_most("on average, the printed form is off by", 10.0, off, "%").or_better())
        .note(format!("The mean latency of the model is {mean}."))
        .table("Cycles by inequality 1, and what the drive model makes of them", table)
        .chart(
            Chart::new(
                "The shortest cycle by inequality 1",
                Axis::linear("streams of 1 MB/s"),
                Axis::linear("cycle, ms"),
            )
            .with(Series::new("with mean latencies", Style::Line, by_mean))
            .with(Series::new("with bounds", Style::Line, by_bound)),
        );
    findings
}
