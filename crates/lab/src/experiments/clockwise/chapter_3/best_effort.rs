//! Section 3.2.2: the load of the machine cello, as our stand-in for its trace has it,
//! and a real week of its neighbour hplajw where that is at hand (the folder that holds
//! hp1992/ in SLACKLINE_DATA).

use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table};
use sim::traces::Trace;
use sim::workload::cello::{Cello, figures};
use sim::workload::statistics::{Drive1992, Queues, Statistics};
use sim::workload::{Demand, Source};
use units::{Bytes, Direction, Duration};

const SETUP: &str = "The cello-like generator, fitted to this chapter: totals, highest hours \
                     and highest minutes are made as printed; the mix, the times between \
                     requests and the queues come out of it. A quick run looks at seven days, \
                     one of each weekday, and at the days that the tables name.";

pub(super) const CONFIGURATIONS: Experiment = Experiment {
    name: "clockwise-table-3.3",
    paper: Paper::Clockwise,
    title: "How much disks are asked for",
    claim: "A disk of the server cello gets 0.67 requests a second on average, one of the \
            workstation hplajw 0.04; 44 and 42 % of them read.",
    setup: SETUP,
    real_time: false,
    run: configurations,
};

pub(super) const HOURS: Experiment = Experiment {
    name: "clockwise-fig-3.4",
    paper: Paper::Clockwise,
    title: "Cello's load by the hour, with table 3.4",
    claim: "Disks are busy from 8 to 19 o'clock and at about 5:30; their highest hours are \
            far above the mean, the highest of all over 90,000 requests on disk 5.",
    setup: SETUP,
    real_time: false,
    run: hours,
};

pub(super) const MINUTES: Experiment = Experiment {
    name: "clockwise-fig-3.5",
    paper: Paper::Clockwise,
    title: "Cello's load by the minute, with figure 3.6 and table 3.5",
    claim: "Some disks are kept continuously busy for minutes: the highest loads of a minute \
            are up to 5,827 requests, where 2,317 can be served.",
    setup: SETUP,
    real_time: false,
    run: minutes,
};

pub(super) const BURSTS: Experiment = Experiment {
    name: "clockwise-section-3.2.2",
    paper: Paper::Clockwise,
    title: "Bursts, queues and sequential requests",
    claim: "Four of five requests come within 40 ms of the one before, most of these at once \
            or after about 20 ms; 10 to 20 % within 1 ms. Queues are 8.9 long on average \
            (36.0), at times over 1,000. Reads take 27.4 ms, writes 272 ms. 7.7 % of the reads \
            and 6.3 % of the writes are sequential.",
    setup: "As for table 3.3, on the busiest day (June 1st, 1992), through a drive that takes \
            27 ms for a request that finds it idle and 18.5 ms for one that waited. The \
            longest queue is that around the highest minute of table 3.5.",
    real_time: false,
    run: bursts,
};

/// 10.4 GB in eight disks.
const CAPACITY: Bytes = Bytes::new(1_300_000_000);
const DAY: Duration = Duration::from_secs(86_400);

fn cello() -> Cello {
    Cello::new(1, CAPACITY)
}

/// Days of a quick look: one of each weekday, and for a disk those of its tables.
fn days(run: &Run<'_>) -> Vec<u32> {
    run.choose((0..figures::DAYS).collect(), (0..figures::DAYS).step_by(9).collect())
}

fn day(disk: u32, day: u32) -> impl Source {
    cello().disk(disk, DAY * u64::from(day)..DAY * u64::from(day + 1))
}

/// The real week, where it is.
fn week() -> Option<Trace> {
    let data = std::env::var_os("SLACKLINE_DATA")?;
    Trace::open(&std::path::Path::new(&data).join("hp1992/ajw.1week.srt")).ok()
}

const MADE: &str = "the generator makes its days, hours and minutes as printed";
const HOURS_MADE: &str = "the generator is given the curve of the day";
const GROUPS: &str = "the groups in which the generator makes requests were chosen to meet the \
                      figures of this section, and the drive's times to meet its queues";
/// Of the week, as recorded: the part of reads in percent.
const HPLAJW_READS: f64 = 29.3;
/// The same of its queues and latencies, which do not depend on the effort.
const HPLAJW: [(&str, f64, f64); 3] = [
    ("queue, mean", 4.91, 4.91),
    ("queue, standard deviation", 9.07, 9.07),
    ("latency", 117.0, 117.0),
];
const NO_WEEK: &str = "A real week of hplajw is looked at, too, where SLACKLINE_DATA names the \
                       folder that holds hp1992/.";
const ONE_WEEK: &str = "it is one week of the trace's nine, and a workstation's weeks differ";

fn configurations(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let days = days(run);
    let mut all = Statistics::default();
    for disk in 0..figures::DISKS {
        run.progress(disk as usize, figures::DISKS as usize);
        days.iter().for_each(|&at| day(disk, at).for_each(|demand| all.add(&demand)));
    }
    let seconds = days.len() as f64 * DAY.as_secs_f64() * f64::from(figures::DISKS);
    let rate = all.requests as f64 / seconds;
    let reads = all.percent(all.reads);
    findings
        .claim(
            Claim::near("cello: requests a second and disk", 0.67, rate, 0.2, "/s")
                .calibrated(MADE),
        )
        .claim(Claim::near("cello: reads", 44.0, reads, 0.03, "%").calibrated(GROUPS));
    let mut table = Table::new(&["machine", ">requests/s and disk", ">reads, %"]);
    let mut row = |name: &str, figures: [f64; 2]| {
        table.row([name.to_owned()].into_iter().chain(figures.map(report::number)).collect());
    };
    row("cello, printed", [0.67, 44.0]);
    row("cello, ours", [rate, reads]);
    row("hplajw, printed", [0.04, 42.0]);
    row("snake, printed", [0.77, 43.0]);
    if let Some(trace) = week() {
        let mut real = Statistics::default();
        trace.for_each(|demand| real.add(&demand));
        let rate = real.requests as f64 / real.end.as_secs_f64() / 2.0;
        let reads = real.percent(real.reads);
        row("hplajw, one real week", [rate, reads]);
        let text = "hplajw, one real week: requests a second and disk";
        findings.claim(Claim::near(text, 0.04, rate, 0.15, "/s")).claim(
            Claim::near("hplajw, one real week: reads", 42.0, reads, 0.15, "%")
                .explained(At::both(HPLAJW_READS), ONE_WEEK),
        );
    } else {
        findings.note(NO_WEEK);
    }
    findings.table("Load of a disk (table 3.3)", table).claim(Claim::not_reproducible(
        "snake: requests a second and disk, and reads",
        "0.77 /s and 43 % (table 3.3)",
        "its trace was not available to the thesis either (section 3.2.2), which repeats means of \
         it from another paper; hours, minutes or disks of it, of which a load could be made, are \
         not printed",
    ));
    findings
}

/// Mean and highest load of each hour or minute of a day.
struct Loads {
    mean: Vec<f64>,
    highest: Vec<u64>,
    /// The highest of all, with its day and its place in it.
    peak: (u64, u32, usize),
}

/// The loads of a disk in parts of so many seconds, over some days; and over some more
/// days, which only the peak counts.
fn loads(disk: u32, days: &[u32], also: [u32; 2], seconds: u64) -> Loads {
    let parts = (86_400 / seconds) as usize;
    let (mut mean, mut highest) = (vec![0.0; parts], vec![0; parts]);
    let mut peak = (0, 0, 0);
    let more: Vec<u32> = also.into_iter().filter(|day| !days.contains(day)).collect();
    for &at in days.iter().chain(&more) {
        let mut counts = vec![0u64; parts];
        for Demand { at, .. } in day(disk, at) {
            counts[(at.as_nanos() / (seconds * 1_000_000_000)) as usize] += 1;
        }
        for (part, &count) in counts.iter().enumerate() {
            peak = peak.max((count, at, part));
            highest[part] = highest[part].max(count);
            if days.contains(&at) {
                mean[part] += count as f64 / days.len() as f64;
            }
        }
    }
    Loads { mean, highest, peak }
}

/// The loads of all disks, with a claim and a row for the peak of each.
fn all_loads(
    run: &Run<'_>,
    findings: &mut Findings,
    printed: &[figures::Highest; 8],
    seconds: u64,
) -> Vec<Loads> {
    let days = days(run);
    let mut table = Table::new(&["disk", ">printed", ">ours", "printed day and time", "ours"]);
    let mut all = Vec::new();
    for (disk, printed) in (0u32..).zip(printed) {
        run.progress(disk as usize, figures::DISKS as usize);
        let also = [
            figures::HIGHEST_HOURS[disk as usize].day,
            figures::HIGHEST_MINUTES[disk as usize].day,
        ];
        let loads = loads(disk, &days, also, seconds);
        let (requests, day, part) = loads.peak;
        let time =
            |day, seconds: u64| format!("{day}, {}:{:02}", seconds / 3600, seconds / 60 % 60);
        let theirs = u64::from(printed.hour) * 3600 + u64::from(printed.minute) * 60;
        table.row(vec![
            disk.to_string(),
            printed.requests.to_string(),
            requests.to_string(),
            time(printed.day, theirs),
            time(day, part as u64 * seconds),
        ]);
        let text = format!("disk {disk}: its highest load, and no higher one");
        findings.claim(
            Claim::near(text, printed.requests as f64, requests as f64, 0.0, "").calibrated(MADE),
        );
        all.push(loads);
    }
    findings.table("Highest loads", table);
    all
}

fn chart(title: &str, unit: &str, all: &[Loads], of: impl Fn(&Loads) -> Vec<f64>) -> Chart {
    let chart = Chart::new(title, Axis::linear("hour of the day"), Axis::linear(unit));
    all.iter().enumerate().fold(chart, |chart, (disk, loads)| {
        let values = of(loads);
        let hours = 24.0 / values.len() as f64;
        let points = values.into_iter().enumerate();
        let points = points.map(|(at, value)| (at as f64 * hours, value));
        chart.with(Series::new(format!("disk {disk}"), Style::Line, points))
    })
}

fn hours(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let all = all_loads(run, &mut findings, &figures::HIGHEST_HOURS, 3600);
    let mean = |hours: std::ops::Range<usize>| -> f64 {
        let count = hours.len() as f64;
        all.iter().flat_map(|loads| &loads.mean[hours.clone()]).sum::<f64>() / count
    };
    let (by_day, by_night, at_five) = (mean(8..19), mean(20..24), mean(5..6));
    findings
        .claim(
            Claim::holds(
                "people's hours, 8 to 19, are busier than the late evening",
                "busy",
                format!("{:.1} times the load of 20 to 24 o'clock", by_day / by_night),
                by_day > 2.0 * by_night,
            )
            .calibrated(HOURS_MADE),
        )
        .claim(
            Claim::holds(
                "the jobs of the night at 5:30 stand out",
                "a peak",
                format!(
                    "{:.1} times the load of the hours beside",
                    at_five * 2.0 / (mean(4..5) + mean(6..7))
                ),
                at_five > 1.5 * mean(4..5) && at_five > 1.5 * mean(6..7),
            )
            .calibrated(HOURS_MADE),
        )
        .chart(chart("Mean load of an hour", "requests an hour", &all, |it| it.mean.clone()))
        .chart(chart("Highest load of an hour", "requests an hour", &all, highest));
    findings
}

fn highest(loads: &Loads) -> Vec<f64> {
    loads.highest.iter().map(|&it| it as f64).collect()
}

fn minutes(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let all = all_loads(run, &mut findings, &figures::HIGHEST_MINUTES, 60);
    let over = all.iter().filter(|loads| loads.peak.0 > 2_317).count();
    findings.claim(
        Claim::holds(
            "disks are asked for more in a minute than the 2,317 requests that they can serve",
            "some disks",
            format!("{over} of 8 disks"),
            over > 0,
        )
        .calibrated(MADE),
    );
    // Half an hour a point: minutes would draw nothing but ink.
    let coarse = |loads: &Loads| -> Vec<f64> {
        loads.highest.chunks(30).map(|it| it.iter().copied().max().unwrap_or(0) as f64).collect()
    };
    let title = "Highest load of a minute, in each half hour";
    let chart = chart(title, "requests a minute", &all, coarse).reference("can be served", 2_317.0);
    findings.chart(chart);
    findings
}

/// A load with what its queues are like.
#[derive(Default)]
struct Seen {
    load: Statistics,
    queues: Queues,
}

fn through_drives(parts: impl Iterator<Item = impl Source>) -> Seen {
    let mut seen = Seen::default();
    for (seed, source) in (0..).zip(parts) {
        let mut drive = Drive1992::new(seed);
        for demand in source {
            seen.load.add(&demand);
            let (queue, latency) = drive.serve(demand.at);
            seen.queues.add(demand.access.direction, queue, latency);
        }
    }
    seen
}

/// The real week, with the queues that were recorded.
fn recorded() -> Option<Seen> {
    let (mut trace, mut seen) = (week()?, Seen::default());
    while let Some(demand) = trace.next() {
        seen.load.add(&demand);
        if let Some(recorded) = trace.recorded() {
            let queue = u64::from(recorded.queue.unwrap_or(1));
            seen.queues.add(demand.access.direction, queue, recorded.done);
        }
    }
    Some(seen)
}

/// What is printed of a load, in the order of the table.
fn figures_of(seen: &Seen) -> [f64; 9] {
    let Seen { load, queues } = seen;
    let of = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
    [
        load.percent_within(40),
        load.percent(load.under_1_ms),
        queues.mean(),
        queues.deviation(),
        queues.latency_ms(Some(Direction::Read)),
        queues.latency_ms(Some(Direction::Write)),
        queues.latency_ms(None),
        of(load.sequential_reads, load.reads),
        of(load.sequential_writes, load.writes()),
    ]
}

/// Names, units, what is printed of cello, how near ours should be, and what is printed
/// of hplajw (0 where nothing is).
const PRINTED: [(&str, &str, f64, f64, f64); 9] = [
    ("requests within 40 ms of the one before", "%", 80.0, 0.04, 0.0),
    ("requests within 1 ms (printed: 10 to 20)", "%", 15.0, 0.33, 0.0),
    ("queue, mean", "", 8.9, 0.15, 4.1),
    ("queue, standard deviation", "", 36.0, 0.25, 7.8),
    ("latency of reads", "ms", 27.4, 0.1, 0.0),
    ("latency of writes", "ms", 272.0, 0.2, 0.0),
    ("latency", "ms", 164.0, 0.2, 98.5),
    ("sequential reads", "%", 7.7, 0.1, 0.0),
    ("sequential writes", "%", 6.3, 0.1, 0.0),
];

fn bursts(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let load = cello();
    let cello = through_drives((0..figures::DISKS).map(|disk| load.disk(disk, figures::BUSIEST)));
    let real = recorded();
    let (ours, reals) = (figures_of(&cello), real.as_ref().map(figures_of));
    let mut table = Table::new(&["", ">cello, printed", ">cello, ours", ">hplajw, real week"]);
    for (at, (name, unit, printed, tolerance, of_hplajw)) in PRINTED.into_iter().enumerate() {
        let text = format!("cello: {name}");
        findings.claim(Claim::near(text, printed, ours[at], tolerance, unit).calibrated(GROUPS));
        let theirs = reals.map_or("-".into(), |figures| report::number(figures[at]));
        let name = format!("{name}, {unit}").trim_end_matches(", ").to_owned();
        table.row(vec![name, report::number(printed), report::number(ours[at]), theirs]);
        if let (Some(figures), true) = (reals, of_hplajw > 0.0) {
            let text = format!("hplajw, one real week: {}", PRINTED[at].0);
            let claim = Claim::near(text, of_hplajw, figures[at], 0.15, unit);
            findings.claim(claim.explained(At::in_list(&HPLAJW, PRINTED[at].0), ONE_WEEK));
        }
    }
    let highest = figures::HIGHEST_MINUTES[0];
    let minute = u64::from(highest.hour) * 60 + u64::from(highest.minute);
    let at = DAY * u64::from(highest.day) + Duration::from_secs(minute * 60);
    let around = at - Duration::from_secs(600)..at + Duration::from_secs(600);
    let queue = through_drives(std::iter::once(load.disk(0, around))).queues.max();
    findings.claim(
        Claim::at_least("cello: the longest queue", 1_000.0, queue as f64, "")
            .calibrated("the highest minute is put in, and so is the drive's time for a request"),
    );
    two_peaks(&cello, real.as_ref(), &mut findings);
    findings.table("A load's bursts and queues", table);
    if real.is_none() {
        findings.note(NO_WEEK);
    }
    findings
}

fn two_peaks(cello: &Seen, real: Option<&Seen>, findings: &mut Findings) {
    let percents = |seen: &Seen| seen.load.times_between().take(50).collect::<Vec<f64>>();
    let ours = percents(cello);
    let second = (3..25).max_by(|&a, &b| ours[a].total_cmp(&ours[b])).unwrap_or(0);
    let valley = ours[1..second].iter().copied().fold(f64::MAX, f64::min);
    findings.claim(
        Claim::holds(
            "cello: peaks at 0 and at about 20 ms",
            "0 and 20 ms",
            format!("0 and {} ms", second * 2),
            (8..=11).contains(&second) && ours[0] > 4.0 * valley && ours[second] > 4.0 * valley,
        )
        .calibrated(GROUPS),
    );
    let chart = Chart::new(
        "Times between requests of a disk",
        Axis::linear("ms, in steps of 2"),
        Axis::linear("% of the requests"),
    );
    let series = |name: &str, percents: &[f64]| {
        let points = percents.iter().enumerate().map(|(at, &it)| (at as f64 * 2.0, it));
        Series::new(name, Style::Steps, points)
    };
    let chart = chart.with(series("cello, ours", &ours));
    findings.chart(match real {
        Some(real) => chart.with(series("hplajw, a real week", &percents(real))),
        None => chart,
    });
}
