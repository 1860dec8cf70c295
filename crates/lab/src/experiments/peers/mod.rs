//! Beside the kernel's schedulers, in real time, on one emulated disk.

mod device;
mod kernel;
mod load;
mod ours;

use crate::{Claim, Experiment, Findings, Paper, Run};
use ::disk::{Model, Profile};
use device::{DEPTH, Device};
use load::{MIXES, Mix, PROGRAMS_MAX, Seen};
use ours::{Filled, Outcome};
use report::{Axis, Chart, Series, Style, Table};
use std::time::Duration;

pub(super) const EXPERIMENTS: &[Experiment] = &[EXPERIMENT];

const EXPERIMENT: Experiment = Experiment {
    name: "peers",
    paper: Paper::Peers,
    title: "Slackline beside none, mq-deadline, kyber and bfq",
    claim: "No paper's. The kernel's schedulers know classes and targets, no deadlines, and \
            refuse nobody. We claim that Slackline is never late with what it admits, at a \
            number of programs at which each of them is, and that what runs in the slack is \
            as fast as under the best of them that is not late.",
    setup: "One emulated Seagate ST318437LW over FUSE under a loop device of four requests, so \
            that both sides have the same disk, which orders what it has itself, and the same \
            path. Films at 1 MB/s in 512 KiB, which ask together, as programs on one clock do, each block due a block's time \
            later; alone, with a database that reads 16 KiB anywhere every 150 ms and must have \
            it before the next, and with two tracks of sound (64 KiB due after 0.34 s) and two \
            copies (512 KiB due after 2.1 s) too: more deadlines than the kernel has classes. \
            Beside them eight greedy readers of 256 KiB at random. On the kernel's side direct \
            reads from the same places, whatever has a deadline in the real-time I/O class, with \
            the settings that we found best: mq-deadline with batches of one and without \
            promotion, bfq with strict guarantees and without idling, kyber with a target of 20 \
            ms; with classes by hand, as somebody could who knows all programs: what is due soon \
            real time, films and copies best effort, the greedy ones idle; with films through the \
            kernel's cache, which reads 1 MiB ahead, in classes by hand (2 MiB are late sooner) and in \
            the real-time class, there 2 MiB, too; and with films in the real-time class that fetch \
            1 MiB at a time past the cache, one piece ahead of the one that is taken next. On our \
            side a pool on the same device, with contracts whose windows are brought in up to 1 \
            MiB: as admission takes them, by the worst case, and, without a promise, with nobody \
            refused; its profile is the model's own bounds, as no drive that one buys has them. Films \
            begin when their windows are full on our side, and when something is ahead of them in the \
            kernel's settings that read or fetch ahead; in its others nothing ever is. Late is what came over 10 ms \
            after its deadline: what is below may be the machine's own lateness, which stands \
            beside it. More films at each step, up to where a setting is late or refuses; then \
            no further. io.cost needs the io controller of cgroup v2, and is tried nowhere.",
    real_time: true,
    run,
};

const MODEL: &str = "seagate-st318437lw";

/// One setting under one load.
struct Cell {
    seen: Seen,
    /// Requests that the schedule itself was late with; none where nobody counts.
    late_requests: u64,
    note: String,
}

/// One setting under all loads that it was tried with.
struct Line {
    setting: String,
    /// Somebody gave each program a class.
    by_hand: bool,
    /// Films, and what came of them, up to the first that were late.
    cells: Vec<(usize, Cell)>,
    /// Where admission said no.
    refused: Option<usize>,
}

impl Line {
    /// The most films without a late request; none where there was always one.
    fn most(&self) -> Option<usize> {
        self.cells.iter().rfind(|(_, cell)| cell.is_kept()).map(|(films, _)| *films)
    }

    fn at(&self, films: usize) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.0 == films).map(|cell| &cell.1)
    }

    /// True where it was late with so many films or fewer.
    fn is_late_by(&self, films: usize) -> bool {
        self.cells.iter().any(|(tried, cell)| *tried <= films && !cell.is_kept())
    }
}

impl Cell {
    fn is_kept(&self) -> bool {
        self.seen.late == 0 && self.late_requests == 0
    }
}

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    if let Err(why) = measure(run, &mut findings) {
        findings.claim(Claim::not_reproducible(
            "Slackline is not late where the kernel's schedulers are",
            "-",
            format!("this machine cannot emulate a block device: {why}; run it as root"),
        ));
    }
    findings
}

fn measure(run: &Run<'_>, findings: &mut Findings) -> Result<(), String> {
    let model = Model::named(MODEL).map_err(|error| error.to_string())?;
    let time = Duration::from_secs(run.choose(8, 3));
    let steps: &[usize] = run.choose(&[8, 10, 12, 13, 14, 16, 17, 18, 20, 22], &[4, 16]);
    // A quick run leaves the longest mix out, which takes a minute and a half of its own.
    for &mix in run.choose(&MIXES[..], &MIXES[..2]) {
        let most = PROGRAMS_MAX - mix.first.len();
        let steps: Vec<usize> = steps.iter().copied().filter(|films| *films <= most).collect();
        let steps = steps.as_slice();
        let device = Device::new(&model)?;
        let all = mix.with(*steps.last().expect("there are steps"));
        let profile = Profile::of(&model).with_queue(DEPTH as u32);
        let prepared = |done, total| run.progress(done, 5 * total);
        let filled = Filled::new(&device, profile, &all, time, &prepared)?;
        let mut lines = Vec::new();
        for admission in [true, false] {
            lines.push(ours(&filled, mix, steps, admission, time)?);
            run.progress(3, 9);
        }
        for (at, setting) in kernel::SETTINGS.iter().enumerate() {
            let mut line = Line::new(setting.name, setting.by_hand);
            for &films in steps {
                match kernel::load(&device, setting, &mix.with(films), time) {
                    Ok(seen) => {
                        line.add(films, Cell { seen, late_requests: 0, note: String::new() })
                    }
                    Err(why) => {
                        findings.note(format!("{}: not in this kernel ({why})", setting.name));
                        break;
                    }
                }
                if line.is_late_by(films) {
                    break;
                }
            }
            lines.push(line);
            run.progress(3 + at, 9);
        }
        tell(findings, mix, &lines);
        let late = device.late();
        let ms = |ppm| report::number(late.quantile(ppm).as_nanos() as f64 / 1e6);
        findings.note(format!(
            "{}: the emulator answered late by {} ms at the median, {} ms at 99 %, {} ms at the \
             most; this is in every setting's waits.",
            mix.name,
            ms(500_000),
            ms(990_000),
            ms(1_000_000)
        ));
    }
    Ok(())
}

fn ours(
    filled: &Filled,
    mix: Mix,
    steps: &[usize],
    admission: bool,
    time: Duration,
) -> Result<Line, String> {
    let name = if admission { "slackline" } else { "slackline, nobody refused" };
    let mut line = Line::new(name, false);
    for &films in steps {
        match filled.load(&mix.with(films), admission, time)? {
            Outcome::Refused => {
                line.refused = Some(films);
                break;
            }
            Outcome::Ran(accounts) => {
                let late = report::number(accounts.late_max.as_nanos() as f64 / 1e6);
                let host = report::number(accounts.host_late_max.as_nanos() as f64 / 1e6);
                let note = format!(
                    "{} requests late by the schedule's count (at most {late} ms), {} windows \
                     empty; threads woken late by at most {host} ms",
                    accounts.late_requests, accounts.underruns
                );
                let late_requests = accounts.late_requests;
                line.add(films, Cell { seen: accounts.seen, late_requests, note });
            }
        }
        if line.is_late_by(films) {
            break;
        }
    }
    Ok(line)
}

impl Line {
    fn new(setting: &str, by_hand: bool) -> Self {
        Self { setting: setting.into(), by_hand, cells: Vec::new(), refused: None }
    }

    fn add(&mut self, films: usize, cell: Cell) {
        self.cells.push((films, cell));
    }
}

/// The table, the claims and the pictures of one mix.
fn tell(findings: &mut Findings, mix: Mix, lines: &[Line]) {
    let ms = |time: Duration| report::number(time.as_secs_f64() * 1e3);
    let mut table = Table::new(&[
        "setting",
        ">films",
        ">requests",
        ">late",
        ">most late by, ms",
        ">p50, ms",
        ">p99, ms",
        ">most, ms",
        ">greedy, MB/s",
        ">woken late, ms",
        "the pool's own account",
    ]);
    for line in lines {
        for (films, cell) in &line.cells {
            let seen = &cell.seen;
            table.row(vec![
                line.setting.clone(),
                films.to_string(),
                seen.waits.len().to_string(),
                seen.late.to_string(),
                ms(seen.late_max),
                ms(seen.percentile(500)),
                ms(seen.percentile(990)),
                ms(seen.percentile(1000)),
                report::number(seen.greedy / 1e6),
                ms(seen.woken_late_max),
                cell.note.clone(),
            ]);
        }
        if let Some(films) = line.refused {
            let mut row = vec![line.setting.clone(), films.to_string(), "refused".into()];
            row.resize(11, String::new());
            table.row(row);
        }
    }
    findings.table(format!("{}: what programs waited, at each step", mix.name), table);
    claims(findings, mix, lines);
    charts(findings, mix, lines);
}

fn claims(findings: &mut Findings, mix: Mix, lines: &[Line]) {
    let [ours, unlimited, kernel @ ..] = lines else { unreachable!("ours come first") };
    let admitted = ours.cells.last().map_or(0, |cell| cell.0);
    let late: u64 = ours.cells.iter().map(|(_, c)| c.seen.late + c.late_requests).sum();
    let name = mix.name;
    let text = format!("{name}: late requests of Slackline, at every admitted number of films");
    findings.claim(Claim::near(text, 0.0, late as f64, 0.0, "").of_ours());
    let most = |line: &Line| match line.most() {
        Some(films) => format!("{} {films}", line.setting),
        None => format!("{} none", line.setting),
    };
    let all: Vec<String> = lines.iter().map(most).collect();
    findings.claim(each_is_late(
        format!(
            "{name}: with the last {admitted} films that admission takes, each of the kernel's is \
             late where all with a deadline are in the real-time class"
        ),
        kernel.iter().filter(|line| !line.by_hand),
        admitted,
    ));
    // Ours with and without admission: it is the schedule and the windows that keep time.
    let reached = [ours, unlimited].into_iter().filter_map(Line::most).max().unwrap_or(0);
    findings.claim(each_is_late(
        format!(
            "{name}: with {reached} films, the most with which Slackline is not late though nobody \
             is refused, each of the kernel's is, with classes by hand, too"
        ),
        kernel.iter(),
        reached,
    ));
    findings.note(format!("{name}: the most films without a late request: {}.", all.join(", ")));
    let at = admitted.min(kernel.iter().filter_map(Line::most).max().unwrap_or(admitted));
    let best = kernel
        .iter()
        .filter(|line| line.most().is_some_and(|films| films >= at))
        .filter_map(|line| Some((line.at(at)?.seen.greedy / 1e6, &*line.setting)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let of_ours = ours.at(at).map(|cell| cell.seen.greedy / 1e6);
    if let (Some((best, setting)), Some(of_ours)) = (best, of_ours) {
        findings.claim(
            Claim::at_least(
                format!(
                    "{name}: best effort with {at} films, beside the best of the kernel's that \
                     is not late ({setting})"
                ),
                best,
                of_ours,
                "MB/s",
            )
            .of_ours(),
        );
    }
}

/// The claim that all of these are late with so many films or fewer.
fn each_is_late<'a>(text: String, lines: impl Iterator<Item = &'a Line>, films: usize) -> Claim {
    let not_late = lines.filter(|line| !line.is_late_by(films));
    let not_late: Vec<&str> = not_late.map(|line| &*line.setting).collect();
    let found = match not_late.is_empty() {
        true => "each is late".to_owned(),
        false => format!("not late: {}", not_late.join(", ")),
    };
    // In real time a figure differs from machine to machine, and so there is none for which a
    // reason could be stated beforehand: the report shows what it was.
    Claim::holds(text, "each is late", found, not_late.is_empty()).of_ours()
}

fn charts(findings: &mut Findings, mix: Mix, lines: &[Line]) {
    let mut greedy = Chart::new(
        format!("{}: best effort while nothing is late", mix.name),
        Axis::linear("films at 1 MB/s"),
        Axis::linear("greedy readers, MB/s"),
    );
    let mut waits = Chart::new(
        format!("{}: 99 % waited at most", mix.name),
        Axis::linear("films at 1 MB/s"),
        Axis::logarithmic("99 % of waits are below, ms"),
    );
    for line in lines {
        let kept = line.cells.iter().filter(|(_, cell)| cell.is_kept());
        let points = kept.map(|(films, cell)| (*films as f64, cell.seen.greedy / 1e6));
        greedy = greedy.with(Series::new(&*line.setting, Style::Line, points));
        let points = line.cells.iter().map(|(films, cell)| {
            (*films as f64, (cell.seen.percentile(990).as_secs_f64() * 1e3).max(0.01))
        });
        waits = waits.with(Series::new(&*line.setting, Style::Line, points));
    }
    findings.chart(greedy).chart(waits);
}
