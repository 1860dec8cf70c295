//! Section 1.1: the paper's worked example, on a disk that takes the printed times.

use super::{barracuda, both, load, served};
use crate::{Claim, Experiment, Findings, Paper, Run};
use report::Table;
use sched::{Ended, JustInTime, Manner, Mechanics, Motion, Part, Planner, Step};
use sim::commands::{Load, Places, most};
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "semi-section-1.1",
    paper: Paper::SemiPreemptible,
    title: "The worked example: one read of 500 kB",
    claim: "A read of 500 kB that seeks for 14 ms over 20,000 cylinders, waits 7 ms for the turn \
            and moves bytes for 25 ms makes others wait for 23 ms on average and for 46 ms at \
            most. In commands (3 ms of waiting, two seeks of 9 ms, 25 reads of 20 kB) it is done \
            as soon, and others wait for 2.03 ms on average and 9 ms at most, for 1 ms once its \
            bytes move. Where the turn does not pay for a split seek, none is split.",
    setup: "The production planner on a disk of which only the printed times are known (seeks of \
            9 and 14 ms, 50 µs for a kB). An urgent request comes at every twentieth of a \
            millisecond of the service, each in a run of its own; what it waits until its first \
            command begins is measured, not taken from equation 2. The same way of the arm on \
            the model of the ST318437LW beside it.",
    real_time: false,
    run,
};

/// Sectors of a cylinder.
const CYLINDER: u64 = 1_000;
/// How many cylinders the example seeks over.
const CYLINDERS: u64 = 20_000;
/// 500 kB; a sector takes 25 µs.
const SECTORS: u64 = 1_000;
/// 20 kB.
const CHUNK: Bytes = Bytes::new(40 * SECTOR.get());
const TURN: Duration = Duration::from_millis(10);
/// From one arrival that is tried to the next.
const STEP: Duration = Duration::from_micros(50);
const URGENT: u64 = 1;

/// The disk of the example: when the heads get there after one seek, they wait so long for
/// the turn.
struct Disk {
    turn: Duration,
}

impl Mechanics for Disk {
    fn resume(&self, from: Lba, to: Lba) -> Duration {
        self.seek(from, to) + TURN
    }

    fn motion(&self) -> Option<&dyn Motion> {
        Some(self)
    }
}

impl Motion for Disk {
    fn overhead(&self, _: &Command) -> Duration {
        Duration::ZERO
    }

    fn end(&self) -> Lba {
        Lba::new(2 * CYLINDERS * CYLINDER)
    }

    fn distance(&self, from: Lba, to: Lba) -> u64 {
        (from.get() / CYLINDER).abs_diff(to.get() / CYLINDER)
    }

    fn between(&self, from: Lba, to: Lba, part: u64, parts: u64) -> Lba {
        let way = from.get().abs_diff(to.get()) * part / parts;
        Lba::new(if to >= from { from.get() + way } else { from.get() - way })
    }

    /// The printed 9 ms over 10,000 cylinders and 14 ms over 20,000, on a line.
    fn seek(&self, from: Lba, to: Lba) -> Duration {
        match self.distance(from, to) {
            0 => Duration::ZERO,
            distance => Duration::from_micros(4_000 + distance / 2),
        }
    }

    fn rotation(&self, at: Instant, lba: Lba) -> Duration {
        // Counted from when the heads come to the first sector of the request.
        let there = Duration::from_millis(14) + self.turn;
        let place = there.as_nanos() + 25_000 * (lba.get() % CYLINDER);
        let turn = TURN.as_nanos();
        Duration::from_nanos((place + turn - at.as_nanos() % turn) % turn)
    }

    fn transfer(&self, access: &Access) -> Duration {
        Duration::from_micros(25) * (access.len / SECTOR)
    }

    fn streamed(&self, access: &Access) -> Duration {
        self.transfer(access)
    }
}

impl Disk {
    /// What a command takes that begins at `at` with the heads at `head`.
    fn time(&self, at: Instant, head: Lba, command: &Command, part: Part) -> Duration {
        let to = command.lba().expect("the example seeks and reads");
        let seek = self.seek(head, to);
        match command.access() {
            None => seek,
            Some(access) if part == Part::Streamed => self.transfer(access),
            Some(access) => seek + self.rotation(at + seek, to) + self.transfer(access),
        }
    }
}

/// As the example has it: no margin, since what it says of times is exact.
fn in_commands() -> Manner {
    let none = Duration::ZERO;
    let just_in_time = JustInTime { margin: none, margin_on_track: none, positions: true };
    Manner {
        just_in_time: Some(just_in_time),
        sub_seek: Some(CYLINDERS / 2),
        ..Manner::chunks(CHUNK)
    }
}

/// What came of one service.
#[derive(Default)]
struct Served {
    /// Seeks and reads of the request with their times.
    seeks: Vec<Duration>,
    reads: Vec<Duration>,
    /// How long the disk had nothing to do, since a seek was waited for.
    idle: Duration,
    /// When all is done.
    done: Duration,
    /// How long the urgent request waited for its first command, and whether bytes moved
    /// when it came.
    waited: Duration,
    moving: bool,
}

/// Serves the request, with an urgent one that comes at `arrival`, if any does.
fn serve(disk: &Disk, manner: Manner, arrival: Option<Duration>) -> Served {
    let mut planner = Planner::at(Lba::new(0));
    let read = |lba: u64, sectors: u64| Access {
        lba: Lba::new(lba),
        len: SECTOR * sectors,
        direction: Direction::Read,
    };
    planner.submit(0, Instant::MAX, read(CYLINDERS * CYLINDER, SECTORS), manner);
    let mut coming = arrival.map(|arrival| Instant::EPOCH + arrival);
    let (mut now, mut head, mut served) = (Instant::EPOCH, Lba::new(0), Served::default());
    loop {
        if let Some(came) = coming.filter(|came| *came <= now) {
            planner.submit(URGENT, came, read(0, 1), Manner::WHOLE);
            coming = None;
        }
        match planner.next(now, disk, Duration::MAX) {
            Step::Idle => break,
            Step::Wait { until } => {
                let next = coming.map_or(until, |came| until.min(came));
                served.idle += next - now;
                now = next;
            }
            Step::Start(piece) => {
                let time = disk.time(now, head, &piece.command, piece.part);
                if piece.key == URGENT {
                    served.waited = now - (Instant::EPOCH + arrival.expect("it came"));
                    return served;
                }
                let is_read = piece.command.access().is_some();
                served.moving = is_read;
                if is_read { &mut served.reads } else { &mut served.seeks }.push(time);
                now += time;
                head = piece.command.end().unwrap_or(head);
                if matches!(planner.finished(), Ended::Request { .. }) {
                    served.done = now - Instant::EPOCH;
                }
            }
        }
    }
    served
}

/// What urgent requests wait that come at any moment of the service: on average, at the
/// most, and at the most where the bytes move already, in ms.
fn waits(disk: &Disk, manner: Manner) -> [f64; 3] {
    let span = serve(disk, manner, None).done;
    let arrivals = (0..span.as_nanos() / STEP.as_nanos()).map(|step| STEP * step + STEP / 2);
    let all: Vec<Served> = arrivals.map(|at| serve(disk, manner, Some(at))).collect();
    let ms = |one: &Served| one.waited.as_millis_f64();
    let mean = all.iter().map(ms).sum::<f64>() / all.len() as f64;
    let most = all.iter().map(ms).fold(0.0, f64::max);
    [mean, most, all.iter().filter(|one| one.moving).map(ms).fold(0.0, f64::max)]
}

fn run(run: &Run<'_>) -> Findings {
    let disk = Disk { turn: Duration::from_millis(7) };
    let mut findings = Findings::default();
    let [whole, commands] = [Manner::WHOLE, in_commands()];
    let [a, b] = [whole, commands].map(|manner| serve(&disk, manner, None));
    let number = |time: Duration| report::number(time.as_millis_f64());
    let times = |of: &[Duration]| of.iter().copied().map(number).collect::<Vec<_>>().join(" and ");
    let longest = |of: &[Duration]| number(of.iter().copied().max().unwrap_or_default());
    let all_of = |of: &[Duration], ms: u64| of.iter().all(|it| *it == Duration::from_millis(ms));
    findings.claim(Claim::holds(
        "the planner's commands",
        "3 ms of waiting, 2 seeks of 9 ms, 25 reads of 1 ms",
        format!(
            "{} ms of waiting, seeks of {} ms, {} reads, the longest of {} ms",
            number(b.idle),
            times(&b.seeks),
            b.reads.len(),
            longest(&b.reads)
        ),
        b.idle == Duration::from_millis(3)
            && (b.seeks.len(), b.reads.len()) == (2, 25)
            && all_of(&b.seeks, 9)
            && all_of(&b.reads, 1),
    ));
    for (name, served) in [("whole", &a), ("in commands", &b)] {
        let (text, done) = (format!("{name}, with nobody else: done after"), served.done);
        findings.claim(Claim::near(text, 46.0, done.as_millis_f64(), 0.0, "ms"));
    }
    let found = [whole, commands].map(|manner| waits(&disk, manner));
    // Arrivals lie a step apart; the longest wait is half a step short.
    let printed = [[23.0, 46.0, f64::NAN], [2.03, 9.0, 1.0]];
    let texts = [
        "an urgent request waits on average",
        "and at most",
        "and at most where it comes when bytes move",
    ];
    for (name, (printed, found)) in ["whole", "in commands"].iter().zip(printed.iter().zip(found)) {
        for ((text, printed), ours) in texts.iter().zip(printed).zip(found) {
            if printed.is_finite() {
                findings.claim(Claim::near(format!("{name}: {text}"), *printed, ours, 0.03, "ms"));
            }
        }
    }
    not_masked(&mut findings);
    on_the_model(run, &mut findings, found);
    findings
}

/// A turn of 3 ms does not pay for the 4 ms that two seeks take longer.
fn not_masked(findings: &mut Findings) {
    let disk = Disk { turn: Duration::from_millis(3) };
    let choice = serve(&disk, in_commands(), None);
    let always = serve(&disk, Manner { only_masked: false, ..in_commands() }, None);
    let [choice_ms, always_ms] = [&choice, &always].map(|it| it.done.as_millis_f64());
    findings.claim(Claim::holds(
        "where only 3 ms are waited for the turn, the seek is not split, and no time is lost",
        "one seek; 42 ms",
        format!(
            "{} seek; {} ms (split all the same: {} ms)",
            choice.seeks.len(),
            report::number(choice_ms),
            report::number(always_ms)
        ),
        choice.seeks.len() == 1 && choice_ms == 42.0 && always_ms > choice_ms,
    ));
}

/// The same way of the arm, to and fro, on the model of the paper's disk.
fn on_the_model(run: &Run<'_>, findings: &mut Findings, found: [[f64; 3]; 2]) {
    let model = barracuda();
    let cylinder = model.capacity() / SECTOR / model.cylinders();
    let places = vec![Lba::new(0), Lba::new(CYLINDERS * cylinder)];
    let [whole, commands] = both(&model).map(|manner| {
        let load = load(run, Direction::Read, 500, manner);
        served(&model, &Load { places: Places::Listed(places.clone()), ..load })
    });
    let mut table = Table::new(&[
        "disk",
        ">expected wait, ms: whole",
        ">in commands",
        ">longest, ms: whole",
        ">in commands",
    ]);
    let row = |name: &str, figures: [f64; 4]| {
        let mut cells = vec![name.to_owned()];
        cells.extend(figures.map(|figure| format!("{figure:.2}")));
        cells
    };
    table.row(row("printed", [23.0, 2.03, 46.0, 9.0]));
    table.row(row("ours, printed times", [found[0][0], found[1][0], found[0][1], found[1][1]]));
    table.row(row(
        "the model of the ST318437LW, to and fro",
        [
            whole.expected(false),
            commands.expected(true),
            most(&whole.whole),
            most(&commands.commands),
        ],
    ));
    findings.table("Waiting beside a read of 500 kB over 20,000 cylinders", table);
}
