//! Semi-preemptible I/O on the disk of its paper: large requests at random places one
//! after another, and now and then one block of higher rank (section 4.3).
//!
//! The planner is the production type; the disk is the model of the ST318437LW. With
//! UPDATE_DOCS=1 the tables go into docs/semi-preemptible.md; without, they are held
//! against it.
#![allow(clippy::print_stdout)] // the tables are the result

use disk::{Drive as _, HardDisk, Model, Profile};
use sched::{Chunking, Ended, Manner, Mechanics as _, Planner, Step, Way, Ways};
use sim::commands::{
    CHUNK, Found, Load, OUTERMOST, Places, as_printed, mean, most, not_preemptible, ours,
    positioned, run, smallest_chunk, stream_rates,
};
use sim::{Known, Random};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use units::{Access, Bytes, Command, Direction, Duration, Instant, Lba, SECTOR};

fn model() -> Model {
    Model::named("seagate-st318437lw").unwrap()
}

/// Values of tables 2 and 4 that are more than 15 % from print; the document says why.
const READS_BEYOND: u64 = 0;
const WRITES_BEYOND: u64 = 11;
const SPAN: Duration = Duration::from_secs(300);

/// What the paper prints, in its order: size in kB, urgent requests a second, response
/// times (whole, in commands) in ms, throughput in MB/s.
type Printed = (u64, f64, [f64; 2], [f64; 2]);

#[rustfmt::skip]
const TABLE_2: [Printed; 12] = [
    (50, 0.5, [19.2, 19.4], [3.39, 2.83]),
    (50, 1.0, [21.8, 16.0], [3.36, 2.89]),
    (50, 2.0, [20.8, 17.6], [3.32, 2.82]),
    (50, 5.0, [21.0, 18.2], [3.18, 2.62]),
    (50, 10.0, [21.2, 18.3], [2.95, 2.30]),
    (50, 20.0, [21.1, 18.4], [2.49, 1.68]),
    (500, 0.5, [29.2, 15.7], [16.25, 16.40]),
    (500, 1.0, [28.1, 15.5], [16.15, 16.20]),
    (500, 2.0, [28.2, 16.7], [15.94, 15.77]),
    (500, 5.0, [28.6, 16.0], [15.28, 14.58]),
    (500, 10.0, [28.9, 16.3], [14.24, 12.48]),
    (500, 20.0, [29.4, 16.8], [11.96, 8.57]),
];

#[rustfmt::skip]
const TABLE_4: [Printed; 12] = [
    (50, 0.5, [93.1, 26.9], [4.85, 1.98]),
    (50, 1.0, [105.8, 24.6], [4.75, 1.96]),
    (50, 2.0, [91.1, 22.7], [4.68, 1.94]),
    (50, 5.0, [102.2, 24.4], [4.40, 1.84]),
    (50, 10.0, [87.5, 23.7], [3.95, 1.70]),
    (50, 20.0, [81.3, 23.3], [3.09, 1.42]),
    (500, 0.5, [32.4, 20.3], [13.71, 11.41]),
    (500, 1.0, [36.0, 20.3], [13.64, 11.24]),
    (500, 2.0, [35.0, 20.8], [13.45, 11.02]),
    (500, 5.0, [34.9, 20.5], [12.82, 10.36]),
    (500, 10.0, [36.6, 20.3], [11.67, 9.13]),
    (500, 20.0, [34.6, 20.7], [9.64, 6.92]),
];

/// Size in kB, and for reads and writes the expected waiting and the mean response,
/// each whole and in commands.
#[rustfmt::skip]
const TABLE_3: [(u64, [[f64; 4]; 2]); 3] = [
    (50, [[8.2, 3.9, 21.8, 16.0], [11.4, 9.5, 105.8, 24.6]]),
    (250, [[11.8, 3.1, 25.5, 16.1], [12.9, 5.6, 27.2, 21.2]]),
    (500, [[16.4, 2.5, 28.1, 15.5], [18.7, 4.7, 36.0, 20.3]]),
];

/// A printed value beside ours, marked where they are more than 15 % apart.
struct Beside {
    rows: u64,
    beyond: u64,
}

impl Beside {
    fn cell(&mut self, printed: f64, found: f64) -> String {
        let off = 100.0 * (found / printed - 1.0);
        self.rows += 1;
        self.beyond += u64::from(off.abs() > 15.0);
        let mark = if off.abs() > 15.0 { " (beyond)" } else { "" };
        let digits = if printed < 10.0 { 2 } else { 1 };
        format!("{printed} / {found:.digits$}{mark}")
    }
}

/// The paper writes kB and MB; a request of 500 kB is 1,000 sectors here.
fn load(direction: Direction, kilobytes: u64, urgent: f64, manner: Manner) -> Load {
    let urgent = (urgent * 1_000.0) as u64;
    // Enough of them for a mean.
    let span = if (1..2_000).contains(&urgent) { SPAN * 2 } else { SPAN };
    let (size, places, pause) = (2 * kilobytes, Places::Random, Duration::ZERO);
    Load { direction, size, places, urgent, manner, pause, span, seed: 7 }
}

fn against_print(model: &Model, direction: Direction, printed: &[Printed]) -> (String, Beside) {
    let mut table = String::from(
        "| kB | urgent a second | response, ms: whole | in commands | ours | MB/s: whole | in \
         commands | ours |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut beside = Beside { rows: 0, beyond: 0 };
    let manners = [not_preemptible(), as_printed(model), ours(model, direction)];
    for &(size, urgent, response, throughput) in printed {
        let found = manners.map(|manner| run(model, &load(direction, size, urgent, manner)));
        let [whole, commands, ours] = found.each_ref().map(|found| mean(&found.response));
        let cells = [beside.cell(response[0], whole), beside.cell(response[1], commands)];
        write!(table, "| {size} | {urgent} | {} | {} | {ours:.1} |", cells[0], cells[1]).unwrap();
        let [whole, commands, ours] = found.each_ref().map(Found::throughput);
        let cells = [beside.cell(throughput[0], whole), beside.cell(throughput[1], commands)];
        writeln!(table, " {} | {} | {ours:.2} |", cells[0], cells[1]).unwrap();
    }
    (table, beside)
}

static DOCUMENT: Mutex<()> = Mutex::new(());

/// Holds a part of docs/semi-preemptible.md against `text`; with UPDATE_DOCS=1 writes
/// it there.
fn hold_document(name: &str, text: &str) {
    let _one_at_a_time = DOCUMENT.lock();
    println!("{name}:\n{text}");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/semi-preemptible.md");
    let document = std::fs::read_to_string(&path).expect("docs/semi-preemptible.md is there");
    let begin = format!("<!-- begin: {name} -->\n");
    let start = document.find(&begin).unwrap_or_else(|| panic!("no {begin} in the document"));
    let start = start + begin.len();
    let end = start + document[start..].find("<!-- end -->").expect("the part ends");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let updated = format!("{}{text}{}", &document[..start], &document[end..]);
        std::fs::write(&path, updated).expect("the document can be written");
        return;
    }
    assert!(
        &document[start..end] == text,
        "docs/semi-preemptible.md, part {name}, is stale; look, then run with UPDATE_DOCS=1"
    );
}

#[test]
fn waiting_is_down_six_times_at_500_kb_for_six_percent_of_throughput() {
    let model = model();
    let read = |urgent, manner| run(&model, &load(Direction::Read, 500, urgent, manner));
    let (whole, commands) =
        (read(0.0, not_preemptible()), read(0.0, ours(&model, Direction::Read)));
    let less = whole.expected(false) / commands.expected(true);
    let kept = commands.throughput() / whole.throughput();
    println!("expected waiting down {less:.2} times, throughput {:.2} %", 100.0 * kept);
    assert!(less >= 6.0, "only {less}");
    assert!(kept >= 0.94, "only {kept}");
    // The same with urgent requests that really come, and really wait.
    let (whole, commands) =
        (read(5.0, not_preemptible()), read(5.0, ours(&model, Direction::Read)));
    let less = mean(&whole.waiting) / mean(&commands.waiting);
    println!("{} urgent requests wait {less:.2} times less", commands.waiting.len());
    assert!(less >= 6.0, "only {less}");
    // What equation 2 expects is what they wait.
    let off = mean(&commands.waiting) / commands.expected(true);
    assert!((0.9..1.1).contains(&off), "{off} of what was expected");
}

#[test]
fn each_technique_by_itself() {
    let model = model();
    let mut table = String::from(
        "| kB | | expected waiting, ms | longest command, ms | MB/s | free, MB/s |\n\
         |---|---|---|---|---|---|\n",
    );
    let just_in_time = Manner { sub_seek: None, ..as_printed(&model) };
    let ahead = Manner { ahead: Bytes::mib(1), ..ours(&model, Direction::Read) };
    for size in [50, 100, 250, 500, 1_000, 2_000] {
        let mut last = f64::MAX;
        for (name, manner) in [
            ("whole", not_preemptible()),
            ("chunks of 50 sectors", Manner::chunks(CHUNK)),
            ("just in time, too", just_in_time),
            ("long seeks split, too (as printed)", as_printed(&model)),
            ("ours", ours(&model, Direction::Read)),
            ("ours, reading on in waits", ahead),
        ] {
            let found = run(&model, &load(Direction::Read, size, 0.0, manner));
            let expected = found.expected(manner.preemptible);
            let longest = if manner.preemptible { &found.commands } else { &found.whole };
            let free = found.free();
            writeln!(
                table,
                "| {size} | {name} | {expected:.2} | {:.1} | {:.2} | {free:.2} |",
                most(longest),
                found.throughput()
            )
            .unwrap();
            if manner.ahead.is_zero() {
                // A longer command now and then weighs more in the longest requests.
                assert!(expected < 1.01 * last, "{size} {name}: {expected} after {last}");
                last = expected;
            } else {
                assert!(free > 0.5, "{size}: {free}");
            }
        }
    }
    hold_document("techniques", &table);
}

#[test]
fn reads_beside_table_2() {
    let (table, beside) = against_print(&model(), Direction::Read, &TABLE_2);
    hold_document("table 2", &table);
    println!("{} of {} values beyond 15 %", beside.beyond, beside.rows);
    assert!(beside.beyond == READS_BEYOND, "{} of {}", beside.beyond, beside.rows);
}

#[test]
fn writes_beside_table_4() {
    let (table, beside) = against_print(&model().with_write_back(true), Direction::Write, &TABLE_4);
    hold_document("table 4", &table);
    println!("{} of {} values beyond 15 %", beside.beyond, beside.rows);
    assert!(beside.beyond == WRITES_BEYOND, "{} of {}", beside.beyond, beside.rows);
}

#[test]
fn both_beside_table_3() {
    let mut table = String::from(
        "| kB | | expected waiting, ms: whole | in commands | ours | response, ms: whole | in \
         commands | ours |\n|---|---|---|---|---|---|---|---|\n",
    );
    let mut beside = Beside { rows: 0, beyond: 0 };
    for (size, printed) in TABLE_3 {
        for (direction, printed) in [Direction::Read, Direction::Write].into_iter().zip(printed) {
            let writes = direction == Direction::Write;
            let model = model().with_write_back(writes);
            let manners = [not_preemptible(), as_printed(&model), ours(&model, direction)];
            let expected = manners.map(|manner| {
                run(&model, &load(direction, size, 0.0, manner)).expected(manner.preemptible)
            });
            let response = manners
                .map(|manner| mean(&run(&model, &load(direction, size, 1.0, manner)).response));
            writeln!(
                table,
                "| {size} | {} | {} | {} | {:.2} | {} | {} | {:.1} |",
                if writes { "writes" } else { "reads" },
                beside.cell(printed[0], expected[0]),
                beside.cell(printed[1], expected[1]),
                expected[2],
                beside.cell(printed[2], response[0]),
                beside.cell(printed[3], response[1]),
                response[2]
            )
            .unwrap();
        }
    }
    hold_document("table 3", &table);
}

#[test]
fn the_smallest_chunk_that_streams_is_found() {
    let rates = stream_rates(&model(), Direction::Read, OUTERMOST);
    let writes = stream_rates(&model().with_write_back(true), Direction::Write, OUTERMOST);
    let (chunk, write) = (smallest_chunk(&rates), smallest_chunk(&writes));
    let mut table = String::from(
        "| chunk, sectors | reads, MB/s | writes through the buffer, MB/s |\n|---|---|---|\n",
    );
    for (&(size, read), &(_, written)) in rates.iter().zip(&writes) {
        let mark = |best| if SECTOR * size == best { " (*a*)" } else { "" };
        let (a, b) = (mark(chunk), mark(write));
        writeln!(table, "| {size} | {read:.1}{a} | {written:.1}{b} |").unwrap();
    }
    hold_document("chunks", &table);
    assert!(chunk >= SECTOR * 48 && chunk <= SECTOR * 64, "{chunk:?}; the paper took 50");
}

/// Bounds on a request of `size` sectors, for contracts: whole, in chunks, and with
/// positioning and every long seek in two.
fn ways(model: &Model, size: u64) -> [Way; 3] {
    let profile = Profile::of(model);
    let all = Lba::new(0)..Lba::containing(profile.capacity());
    let worst = |sectors: u64| profile.worst(all.clone(), SECTOR * sectors, Direction::Read);
    let known = Known::of(model).unwrap();
    let last = Lba::new(all.end.get() - 1);
    let resume = known.resume(Lba::new(0), last);
    let overhead = sched::Motion::overhead(&known, &Command::Flush);
    let seek = |distance| model.seek(distance)[2];
    let (full, half) = (seek(model.cylinders()), seek(model.cylinders() / 2 + 64));
    let chunks = overhead * size.div_ceil(CHUNK / SECTOR);
    // A seek just in time may come too late: then a turn more.
    let split = half * 2 - full + overhead * 2 + model.rotation();
    let positioned = (half + overhead).max(worst(CHUNK / SECTOR) - full);
    [
        Way::whole(worst(size)),
        Way::in_commands(worst(size) + chunks, worst(CHUNK / SECTOR), resume),
        Way::in_commands(worst(size) + chunks + split, positioned, resume + split),
    ]
}

/// Streams of 500 kB twice a second, and answers of one block from anywhere, five a
/// second: by when can an answer be promised?
#[test]
fn answers_can_be_promised_sooner_beside_requests_in_commands() {
    let model = model();
    let ways = ways(&model, 1_000);
    let manners = [Manner::WHOLE, Manner::chunks(CHUNK), positioned(&model)];
    for (way, manner) in ways.iter().zip(manners) {
        let found = run(&model, &load(Direction::Read, 500, 0.0, manner));
        let (cost, command) = (way.cost.as_millis_f64(), way.command.as_millis_f64());
        let service = found.whole.iter().map(|it| it.as_millis_f64()).fold(0.0, f64::max);
        assert!(service <= cost, "{service} of {cost}");
        assert!(most(&found.commands) <= command, "{} of {command}", most(&found.commands));
    }
    let answer = self::ways(&model, 1)[0];
    let promised = |streams: usize, way: Option<usize>| {
        let fits = |deadline: u64| {
            let stream = Ways {
                period: Duration::from_millis(500),
                deadline: Duration::from_millis(500),
                ways: ways.to_vec(),
            };
            let mut contracts = vec![stream; streams];
            contracts.push(Ways {
                period: Duration::from_millis(200),
                deadline: Duration::from_millis(deadline),
                ways: vec![answer],
            });
            let Some(way) = way else { return Chunking::best(&contracts, Duration::ZERO).is_ok() };
            let mut chosen = vec![way; streams];
            chosen.push(0);
            Chunking::of(&contracts, &chosen, Duration::ZERO).is_ok()
        };
        (30..=200).find(|&deadline| fits(deadline))
    };
    let mut table = String::from(
        "| streams of 500 kB | whole | in chunks | positioned, seeks split | chosen |\n\
         |---|---|---|---|---|\n",
    );
    for streams in 1..=4 {
        let cells = [Some(0), Some(1), Some(2), None].map(|way| match promised(streams, way) {
            Some(deadline) => format!("{deadline} ms"),
            None => "refused".to_string(),
        });
        writeln!(table, "| {streams} | {} |", cells.join(" | ")).unwrap();
    }
    let bounds = ways.map(|way| {
        let [cost, command, resume] =
            [way.cost, way.command, way.resume].map(|it| it.as_millis_f64());
        format!("{cost:.1}, {command:.1}, {resume:.1}")
    });
    writeln!(
        table,
        "| request, command, return: at most, ms | {} | {} | {} | |",
        bounds[0], bounds[1], bounds[2]
    )
    .unwrap();
    hold_document("admission", &table);
    let deadlines = [0, 1, 2].map(|way| promised(1, Some(way)).expect("one stream fits"));
    assert!(deadlines[2] < deadlines[1] && deadlines[1] < deadlines[0], "{deadlines:?}");
}

/// A contract at work: its requests' times and manner.
struct Contract {
    period: Duration,
    deadline: Duration,
    sectors: u64,
    manner: Manner,
    next: Instant,
}

impl Contract {
    fn new(period_ms: u64, deadline_ms: u64, sectors: u64, manner: Manner) -> Self {
        let [period, deadline] = [period_ms, deadline_ms].map(Duration::from_millis);
        Self { period, deadline, sectors, manner, next: Instant::EPOCH }
    }
}

/// Reads anywhere under contracts, earliest deadline first; released as soon as
/// allowed, or some time after. Returns requests, those late, and interruptions.
fn serve_contracts(model: &Model, contracts: &mut [Contract], span: Duration) -> [u64; 3] {
    let known = Known::of(model).unwrap();
    let (mut drive, mut random) = (HardDisk::new(model), Random::new(3));
    let (mut planner, mut now) = (Planner::new(), Instant::EPOCH);
    let (mut deadlines, mut late) = (Vec::new(), 0);
    while now < Instant::EPOCH + span {
        for contract in contracts.iter_mut().filter(|it| it.next <= now) {
            let lba = Lba::new(random.below(model.capacity() / SECTOR - contract.sectors));
            let len = SECTOR * contract.sectors;
            let access = Access { lba, len, direction: Direction::Read };
            let deadline = contract.next + contract.deadline;
            planner.submit(deadlines.len() as u64, deadline, access, contract.manner);
            deadlines.push(deadline);
            let pause = if random.chance(50) { contract.period / 4 } else { Duration::ZERO };
            contract.next += contract.period + random.span(pause);
        }
        let release = contracts.iter().map(|contract| contract.next).min().expect("a contract");
        match planner.next(now, &known, Duration::MAX) {
            Step::Idle => now = release,
            Step::Wait { until } => now = until.min(release),
            Step::Start(piece) => {
                now += drive.serve(now, &piece.command);
                if let Ended::Request { key } = planner.finished() {
                    late += u64::from(now > deadlines[key as usize]);
                }
            }
        }
    }
    [deadlines.len() as u64, late, planner.account().preemptions]
}

/// What the analysis admits is kept on the drive: two streams of 500 kB twice a second
/// and an answer within the shortest deadline that can be promised, 38 ms less than
/// beside whole requests; beside those it would be late.
#[test]
fn an_answer_that_is_promised_beside_requests_in_commands_is_in_time() {
    let model = model();
    let positioned = positioned(&model);
    let contracts = || {
        let stream = |manner| Contract::new(500, 500, 1_000, manner);
        let answer = || Contract::new(200, 43, 1, Manner::WHOLE);
        let promised = [stream(positioned), stream(positioned), answer()];
        let whole = [stream(Manner::WHOLE), stream(Manner::WHOLE), answer()];
        [promised, whole]
    };
    let [mut promised, mut whole] = contracts();
    let span = Duration::from_secs(3_000);
    let [requests, late, interruptions] = serve_contracts(&model, &mut promised, span);
    println!("{requests} requests, {late} late, {interruptions} interruptions");
    assert!(requests > 20_000 && interruptions > 1_000);
    assert_eq!(late, 0);
    let [requests, late, _] = serve_contracts(&model, &mut whole, span);
    println!("whole: {late} of {requests} late");
    assert!(late > 100);
}
