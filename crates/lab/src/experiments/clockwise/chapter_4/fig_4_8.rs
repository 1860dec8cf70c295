//! Figures 4.8 and 4.9: the SCSI bus while a track and two tracks are read.

use super::super::raw::{Begin, Raw, Signals, TURN, atlas, levels};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use disk::raw::OnBus;
use report::{Axis, Chart, Table, number};
use units::Direction;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.8",
    paper: Paper::Clockwise,
    title: "The bus of an Atlas-II while tracks are read",
    claim: "After some 2 ms of overhead the bus is idle for 5 to 6 ms, until half of the track and \
            its first sector are in; then a track goes over in about 9 ms. Of two tracks nothing \
            goes over before a whole turn has passed; then one track goes over while the next is \
            read. Sent as single tracks are, they would be done a few ms sooner.",
    setup: "As figure 4.7, zone 0; the model says from when to when the bus carries data, and when \
            the command is decoded. The thesis shows one request of each, we take the mean of many.",
    real_time: false,
    run,
};

/// Sectors of a track of zone 0.
const TRACK: u64 = 179;

const BUS: &str = "the time of a sector on the bus was chosen to meet the mean of 1 MB of zone 0";
const WHOLE: &str = "the rule that two tracks wait for a whole one was put into the model";

fn run(run: &Run<'_>) -> Findings {
    let count = run.choose(10_000, 1_000);
    let read = |raw: &mut Raw, tracks: u64| {
        raw.on_bus(Direction::Read, 0, tracks * TRACK, Begin::Track, count)
    };
    let mut raw = Raw::new(&atlas(), 1);
    let (one, two) = (read(&mut raw, 1), read(&mut raw, 2));
    let at_once = read(&mut Raw::new(&atlas().with_whole_tracks_from(0), 1), 2);
    let idle = |it: &OnBus| it.bursts[0].start - it.decoded;
    let busy = |it: &OnBus| it.bursts.iter().map(|burst| burst.end - burst.start).sum();
    let with_gaps = |of: &Signals| format!("{} of {count} reads with a gap", of.with_gaps());
    let overhead = one.mean(|it| it.decoded);
    let (waits, least, most) = (one.mean(idle), one.shortest(idle), one.longest(idle));
    let sooner = two.mean(|it| it.time) - at_once.mean(|it| it.time);
    let mut findings = Findings::default();
    findings
        .claim(Claim::near("overhead of a read", 2.0, overhead, 0.15, "ms").explained(
            At::both(2.49),
            "the model's overheads, 1.9 to 3.1 ms, were chosen to meet the shortest and the longest \
             read of two sectors",
        ))
        .claim(
            Claim::holds(
                "a track: then the bus is idle for 5 to 6 ms",
                "5 to 6 ms",
                format!("{} ms; {} to {}", number(waits), number(least), number(most)),
                (5.0..=6.0).contains(&waits),
            )
            .measured(waits),
        )
        .claim(Claim::near("a track goes over in", 9.0, one.mean(busy), 0.05, "ms").calibrated(BUS))
        .claim(
            Claim::at_least(
                "two tracks: nothing goes over before a whole turn, in any sample",
                TURN - 0.01,
                two.shortest(idle),
                "ms",
            )
            .calibrated(WHOLE),
        )
        .claim(
            Claim::holds(
                "two tracks: the second is in when the first has gone over, in 95 % of reads",
                "one goes over while the next is read (of the one request that is shown)",
                with_gaps(&two),
                two.with_gaps() * 20 <= count,
            )
            .measured(two.with_gaps() as f64),
        )
        .claim(
            Claim::holds(
                "two tracks would be done a few ms sooner (2 to 5) if they were sent as one is",
                "a few ms",
                format!("{} ms", number(sooner)),
                (2.0..=5.0).contains(&sooner),
            )
            .measured(sooner),
        );
    let mut table =
        Table::new(&["read", ">decoded, ms", ">then idle, ms", ">on the bus, ms", ">done, ms"]);
    for (name, of) in [("a track", &one), ("two tracks", &two), ("two, as one is", &at_once)] {
        let cells = [of.mean(|it| it.decoded), of.mean(idle), of.mean(busy), of.mean(|it| it.time)];
        table.row([vec![name.to_owned()], cells.map(number).to_vec()].concat());
    }
    let chart = Chart::new(
        "The bus while tracks are read",
        Axis::linear("ms since the command came"),
        Axis::linear("").named(levels()),
    )
    .with(one.median("a track", 0.0))
    .with(two.median("two tracks", 1.5));
    findings.table("Mean times", table).chart(chart).note(
        "The chart shows the requests with the median time, and the bus only where it carries data. \
         The model has all of a request's overhead before its data; the drive has a part of it \
         after them, for the final status.",
    );
    findings
}
