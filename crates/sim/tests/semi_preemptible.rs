//! What may be promised beside requests in commands (semi-preemptible I/O, Dimitrijevic
//! et al. 2003, gives the techniques and promises nothing): the analysis held against the
//! production planner on the model of the ST318437LW. The paper's own experiments are in
//! the laboratory.
//!
//! With UPDATE_DOCS=1 the table goes into docs/semi-preemptible.md; without, it is held
//! against it.
#![allow(clippy::print_stdout)] // the tables are the result

use disk::{Drive as _, HardDisk, Model, Profile};
use sched::{Chunking, Ended, Manner, Mechanics as _, Planner, Step, Way, Ways};
use sim::commands::{CHUNK, Load, Places, most, positioned, run};
use sim::{Known, Random};
use std::fmt::Write as _;
use std::path::PathBuf;
use units::{Access, Command, Direction, Duration, Instant, Lba, SECTOR};

fn model() -> Model {
    Model::named("seagate-st318437lw").unwrap()
}

/// Large reads of 500 kB for five minutes, as they come.
fn reads(manner: Manner) -> Load {
    Load {
        direction: Direction::Read,
        size: 1_000,
        places: Places::Random,
        urgent: 0,
        manner,
        span: Duration::from_secs(300),
        seed: 7,
    }
}

/// Holds a part of docs/semi-preemptible.md against `text`; with UPDATE_DOCS=1 writes
/// it there.
fn hold_document(name: &str, text: &str) {
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
        let found = run(&model, &reads(manner));
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
