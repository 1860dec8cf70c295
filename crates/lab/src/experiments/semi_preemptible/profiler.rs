//! Section 3.4: the disk profiler, on the drives of the papers.

use super::single;
use crate::{Claim, Experiment, Findings, Paper, Run};
use disk::profiler::{self, Options, Profiler, Question, SeekPoint, Step, Timing};
use disk::{Drive, Emulated, Model};
use report::{Axis, Chart, Series, Style, Table, number};
use units::{Duration, Instant, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "semi-section-3.4",
    paper: Paper::SemiPreemptible,
    title: "What the disk profiler finds by timing alone",
    claim: "A profiler finds by timing alone what the scheduler has to know: rotation, tracks of \
            the zones, seek curve, cache, and the sizes at which the drive streams.",
    setup: "Our profiler, which sees answers' times and nothing else, on the models of five drives. \
            Single commands tell of what it does not look for: bus, writes, flush; and a drive \
            that is kept full, of its queue: by how long a command takes and how often one ends. \
            What is found is held against what the papers print of the drive, or, as a claim of \
            ours, against what was put into the model: published of it or of its class, fitted or \
            chosen, as the model's file says.",
    real_time: false,
    run,
};

/// A figure of a drive, and whether a paper prints it.
#[derive(Clone, Copy)]
struct Figure(f64, bool);

const fn printed(value: f64) -> Figure {
    Figure(value, true)
}

const fn published(value: f64) -> Figure {
    Figure(value, false)
}

/// A drive as a paper prints it, or as it was published of it or of its class.
struct Known {
    name: &'static str,
    /// Turns a minute.
    rpm: Figure,
    heads: Figure,
    /// Sectors of the outermost and of the innermost tracks.
    tracks: [Figure; 2],
    /// Cylinders, and the mean seek over them in ms.
    seeks: [(u64, Figure); 3],
    /// From one head to the next, in ms.
    switch: Figure,
    /// What a command costs beside the mechanics, in ms.
    overhead: Figure,
    /// A read from the cache, in ms; not where the few that are tried vary by too much.
    hit: Option<Figure>,
    /// Places of the cache, sectors of each, and sectors that it reads ahead.
    cache: [Figure; 3],
    /// By how much a track starts later than the one before it, in ms: on the next head, and on
    /// the next cylinder.
    skews: [Figure; 2],
    /// In GB, and the part of it that may be missing.
    capacity: (Figure, f64),
    /// Of the bus, in MB/s.
    bus: Figure,
    /// A sector from the cache, by single commands: the mean, and how far it varies, in ms.
    sector: [Figure; 2],
    /// A write on the track where the heads are beside the wait for its sector, in ms.
    write: Figure,
    /// By how much a write comes later than a read after the same seek, in ms; where it does.
    settle: Option<Figure>,
    /// A flush with nothing to write, in ms.
    flush: Figure,
    /// How far the time over so many cylinders varies, in ms: with what a command's own does.
    spread: (u64, Figure),
    /// Writes that it takes before one waits for the medium.
    buffered: Figure,
    /// Commands that it holds, and serves in an order of its own, where the host has always more.
    held: Figure,
}

#[rustfmt::skip]
const DRIVES: [Known; 5] = [
    Known {
        name: "quantum-atlas-ii",
        rpm: printed(7_200.0), heads: printed(10.0),
        tracks: [printed(179.0), printed(107.0)],
        seeks: [(1, printed(0.9)), (1_000, printed(6.6)), (5_000, printed(15.1))],
        switch: printed(0.6),
        overhead: published(2.5),
        hit: None, // 1 to 2.2 ms
        cache: [printed(5.0), printed(179.0), published(179.0)],
        skews: [published(0.65), published(1.9)],
        capacity: (printed(4.5), 0.05), // section 7.2.5
        bus: published(10.0), sector: [published(1.6), published(1.2)],
        write: published(0.84 + 1.1 / 2.0), settle: None, flush: published(1.9),
        // 1.8 ms of the seek are printed (section 4.3.2), 1.2 ms of the command fitted.
        spread: (1_000, published(1.8 + 1.2)), buffered: published(5.0),
        held: published(64.0),
    },
    Known {
        name: "seagate-st318437lw",
        rpm: printed(7_200.0), heads: printed(2.0),
        tracks: [printed(750.0), printed(437.0)],
        seeks: [(1, published(1.0)), (10_092, printed(9.6)), (30_000, printed(19.2))],
        switch: published(0.7),
        overhead: published(0.29),
        hit: Some(published(0.29)),
        cache: [published(8.0), published(1_024.0), published(512.0)],
        skews: [published(0.75), published(0.99)],
        capacity: (printed(18.4), 0.05),
        bus: published(80.0), sector: [published(0.29), published(0.0)],
        write: published(0.29), settle: Some(published(1.0)), flush: published(0.29),
        spread: (2_000, published(0.52)), buffered: published(8.0),
        held: published(64.0),
    },
    Known {
        name: "seagate-cheetah",
        rpm: printed(10_033.0), heads: published(8.0),
        tracks: [published(195.0), published(131.0)],
        // 0.37 ms pass before a sector of the cylinder where the arm is (fitted): they look like
        // a part of each command, and hide the switch of 0.195 ms.
        seeks: [(1, published(0.636 - 0.37)), (1_000, published(5.838)), (6_000, published(15.06))],
        switch: published(0.0),
        overhead: published(0.608 + 0.37),
        hit: Some(published(0.253)),
        cache: [published(1.0), published(282.0), published(282.0)],
        skews: [published(0.67), published(1.13)],
        capacity: (published(4.5502), 0.001),
        bus: published(40.0), sector: [published(0.253), published(0.0)],
        write: published(0.49 + 0.37), settle: None, flush: published(0.6),
        spread: (160, published(3.8)), buffered: published(1.0),
        held: published(64.0),
    },
    Known {
        name: "wd400bb",
        rpm: published(7_200.0), heads: published(2.0),
        tracks: [published(920.0), published(500.0)],
        seeks: [(1, published(2.0)), (18_357, published(9.4)), (55_000, published(21.0))],
        switch: published(1.0),
        overhead: published(0.3),
        hit: Some(published(0.3)),
        cache: [published(8.0), published(512.0), published(256.0)],
        skews: [published(1.1), published(1.9)],
        capacity: (published(40.0), 0.05),
        bus: published(100.0), sector: [published(0.3), published(0.0)],
        write: published(0.3), settle: Some(published(1.0)), flush: published(0.3),
        spread: (2_000, published(0.64)), buffered: published(8.0),
        held: published(1.0),
    },
    Known {
        name: "hitachi-travelstar",
        rpm: published(4_200.0), heads: published(2.0),
        tracks: [published(1_060.0), published(616.0)],
        seeks: [(1, published(2.5)), (15_552, published(12.6)), (46_000, published(22.8))],
        switch: published(1.5),
        overhead: published(0.3),
        hit: Some(published(0.3)),
        cache: [published(8.0), published(512.0), published(256.0)],
        skews: [published(1.6), published(2.5)],
        capacity: (published(40.0), 0.05),
        bus: published(100.0), sector: [published(0.3), published(0.0)],
        write: published(0.3), settle: Some(published(1.0)), flush: published(0.3),
        spread: (2_000, published(0.68)), buffered: published(8.0),
        held: published(1.0),
    },
];

const PUT_IN: &str = "the model was made of it; that timing alone finds it again is judged by the \
                      other rows as a whole";

/// What the profiler finds of a drive that answers without a host's lateness.
fn profile(model: &Model) -> profiler::Findings {
    let mut drive = Emulated::new(model);
    let mut now = Instant::from_nanos(1_234_567_891);
    let mut answer = |question: &Question| -> Vec<Timing> {
        let mut delay = question.delay;
        let one = |command| {
            let started = now + core::mem::take(&mut delay);
            now = started + drive.serve(started, command);
            Timing { started, finished: now, failed: false }
        };
        question.commands.iter().map(one).collect()
    };
    let mut profiler =
        Profiler::new(model.capacity(), Options::quick()).expect("a model has a capacity");
    while let Step::Ask(question) = profiler.poll() {
        profiler.done(&answer(&question));
    }
    profiler.findings().expect("it has ended").clone()
}

/// The mean seek over so many cylinders, on straight lines between those that were measured.
fn seek(points: &[SeekPoint], cylinders: u64) -> f64 {
    let at = points.partition_point(|point| point.distance < cylinders);
    let ms = |point: &SeekPoint| point.mean.as_millis_f64();
    match (at.checked_sub(1).map(|before| &points[before]), points.get(at)) {
        (Some(near), Some(far)) => {
            let part = (cylinders - near.distance) as f64 / (far.distance - near.distance) as f64;
            ms(near) + (ms(far) - ms(near)) * part
        }
        (Some(only), None) | (None, Some(only)) => ms(only),
        (None, None) => f64::NAN,
    }
}

/// What single commands show: text, what is known, what was found, the margin.
fn by_command(known: &Known, model: &Model) -> Vec<(String, Figure, f64, f64)> {
    let [sector, varies] = single::hit(model);
    let cylinder = (known.heads.0 * known.tracks[0].0) as u64;
    let (far, spread) = known.spread;
    let mut rows = vec![
        ("bus, MB/s", known.bus, single::bus(model)),
        ("a sector from the cache, ms", known.sector[0], sector),
        ("it varies by, ms", known.sector[1], varies),
        ("a write on the track beside its wait, ms", known.write, single::write(model)),
        ("a flush of nothing, ms", known.flush, single::flush(model)),
        ("writes taken before one waits", known.buffered, single::buffered(model)),
        ("a seek varies by, ms", spread, single::spread(model, far * cylinder)),
        ("commands that it holds", known.held, single::held(model)),
    ];
    if let Some(settle) = known.settle {
        let found = single::settle(model, cylinder);
        rows.push(("a write after a seek is later than a read by, ms", settle, found));
    }
    rows.into_iter().map(|(text, known, found)| (text.to_owned(), known, found, 0.08)).collect()
}

fn run(run: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut table = Table::new(&["drive", "what", ">printed or published", ">found"]);
    let x = Axis::logarithmic("distance, cylinders");
    let mut chart = Chart::new("Seek curves that were found", x, Axis::linear("mean seek, ms"));
    for (at, known) in DRIVES.iter().enumerate() {
        run.progress(at, DRIVES.len());
        let model = Model::named(known.name).expect("a model that comes with the program");
        let found = profile(&model);
        let ms = |time: Duration| time.as_millis_f64();
        let mechanics = found.mechanics.as_ref();
        let seeks = mechanics.map_or(&[][..], |it| &it.seeks[..]);
        let rpm = found.rotation.as_ref().map_or(f64::NAN, |it| 60_000.0 / ms(it.value));
        let track = |zone: Option<&profiler::ZoneFound>| {
            zone.map_or(f64::NAN, |zone| zone.sectors_per_track as f64)
        };
        let overhead = mechanics.and_then(|it| it.overhead.as_ref());
        let switch = mechanics.and_then(|it| it.head_switch.as_ref());
        let cache = found.cache.as_ref();
        let mut rows = vec![
            ("turns a minute".to_owned(), known.rpm, rpm, 0.001),
            ("heads".to_owned(), known.heads, found.heads.map_or(f64::NAN, |it| it as f64), 0.0),
            (
                "outermost track, sectors".to_owned(),
                known.tracks[0],
                track(found.zones.first()),
                0.0,
            ),
            (
                "innermost track, sectors".to_owned(),
                known.tracks[1],
                track(found.zones.last()),
                0.0,
            ),
            (
                "head switch, ms".to_owned(),
                known.switch,
                switch.map_or(f64::NAN, |it| ms(it.value)),
                0.15,
            ),
            (
                "a command beside the mechanics, ms".to_owned(),
                known.overhead,
                overhead.map_or(f64::NAN, |it| ms(it.value)),
                0.05,
            ),
            (
                "places of the cache".to_owned(),
                known.cache[0],
                cache.map_or(f64::NAN, |it| it.segments.value as f64),
                0.1,
            ),
            (
                "a place of the cache, sectors".to_owned(),
                known.cache[1],
                cache.map_or(f64::NAN, |it| (it.segment.value / SECTOR) as f64),
                0.1,
            ),
            (
                "read ahead, sectors".to_owned(),
                known.cache[2],
                cache.map_or(f64::NAN, |it| (it.read_ahead / SECTOR) as f64),
                0.1,
            ),
            (
                "skew of a track, ms".to_owned(),
                known.skews[0],
                found.zones.first().map_or(f64::NAN, |it| ms(it.track_skew)),
                0.1,
            ),
            (
                "skew of a cylinder, ms".to_owned(),
                known.skews[1],
                found.zones.first().map_or(f64::NAN, |it| ms(it.cylinder_skew)),
                0.1,
            ),
            (
                "capacity, GB".to_owned(),
                known.capacity.0,
                found.capacity.get() as f64 / 1e9,
                known.capacity.1,
            ),
        ];
        rows.extend(by_command(known, &model));
        if let Some(figure) = known.hit {
            let hit = cache.map_or(f64::NAN, |it| ms(it.hit));
            rows.push(("a read from the cache, ms".to_owned(), figure, hit, 0.1));
        }
        for (cylinders, figure) in known.seeks {
            let text = format!("mean seek over {cylinders} cylinders, ms");
            rows.push((text, figure, seek(seeks, cylinders), 0.1));
        }
        for (text, Figure(value, is_printed), ours, tolerance) in rows {
            table.row(vec![known.name.into(), text.clone(), number(value), number(ours)]);
            let claim = Claim::near(format!("{}: {text}", known.name), value, ours, tolerance, "")
                .calibrated(PUT_IN);
            findings.claim(if is_printed { claim } else { claim.of_ours() });
        }
        let points = seeks.iter().map(|it| (it.distance as f64, ms(it.mean)));
        chart = chart.with(Series::new(known.name, Style::Line, points.collect::<Vec<_>>()));
    }
    findings.chart(chart).table("What timing alone finds", table);
    findings
}
