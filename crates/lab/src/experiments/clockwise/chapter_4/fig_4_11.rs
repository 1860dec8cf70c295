//! Figures 4.11 and 4.12: the SCSI bus while a track, and a track and ten sectors, are
//! written.

use super::super::raw::{Begin, Raw, TURN, atlas, levels};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use disk::raw::OnBus;
use report::{Axis, Chart, Table, number};
use units::Direction;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.11",
    paper: Paper::Clockwise,
    title: "The bus of an Atlas-II while tracks are written",
    claim: "Data go over as soon as the command is decoded. A track takes at least its overhead and \
            9.3 ms on the bus, and up to a whole turn more. It does not seem to go over in one \
            burst. Of a track and ten sectors the final status comes a whole turn after the last \
            data, in most samples.",
    setup: "As figure 4.10, zone 0; the model says from when to when the bus carries data, and when \
            the command is decoded. The thesis shows one request of each, we take many.",
    real_time: false,
    run,
};

/// Sectors of a track of zone 0.
const TRACK: u64 = 179;

const AT_ONCE: &str = "the model sends what it writes as soon as the command is decoded";

fn run(run: &Run<'_>) -> Findings {
    let count = run.choose(10_000, 1_000);
    let mut raw = Raw::new(&atlas(), 2);
    let mut write = |sectors| raw.on_bus(Direction::Write, 0, sectors, Begin::Track, count);
    let (track, more) = (write(TRACK), write(TRACK + 10));
    let begins = |it: &OnBus| it.bursts[0].start - it.decoded;
    let busy = |it: &OnBus| it.bursts.iter().map(|burst| burst.end - burst.start).sum();
    let after = |it: &OnBus| it.time - it.bursts[it.bursts.len() - 1].end;
    let whole_turn = more.0.iter().filter(|it| after(it).as_millis_f64() > 0.95 * TURN).count();
    let most = whole_turn * 100 / count;
    let mut findings = Findings::default();
    findings
        .claim(
            Claim::at_most("a track: its data begin to go over", 0.0, track.longest(begins), "ms")
                .calibrated(AT_ONCE),
        )
        .claim(Claim::near("a track goes over in", 9.3, track.mean(busy), 0.05, "ms").calibrated(
            "the time of a sector on the bus was chosen between what two printed times of a track \
             come to",
        ))
        .claim(
            Claim::holds(
                "a track does not go over in one burst",
                "several, or the signal is not well defined for writes",
                format!("one burst in {} of {count} writes", count - track.with_gaps()),
                track.with_gaps() * 2 > count,
            )
            .measured(track.with_gaps() as f64)
            .explained(
                At::both(0.0),
                "the model's bus carries the data of a write in one burst; the thesis gives no \
                 length of the drive's, and doubts that the signal shows them",
            ),
        )
        .claim(Claim::at_most(
            "a track: from its last data to the status, at the least (no more than the overhead \
             and the bus: taken as a tenth of a turn)",
            TURN / 10.0,
            track.shortest(after),
            "ms",
        ))
        .claim(Claim::near("and at the most, a turn", TURN, track.longest(after), 0.05, "ms"))
        .claim(
            Claim::holds(
                "a track and ten sectors: the status comes a turn after the last data, mostly",
                "most samples",
                format!("{most} %, {} ms on average", number(more.mean(after))),
                most > 50,
            )
            .measured(more.mean(after)),
        );
    let mut table = Table::new(&[
        "write",
        ">on the bus, ms",
        ">status after the data, ms: least",
        ">mean",
        ">most",
    ]);
    for (name, of) in [("a track", &track), ("and ten sectors", &more)] {
        let cells = [of.mean(busy), of.shortest(after), of.mean(after), of.longest(after)];
        table.row([vec![name.to_owned()], cells.map(number).to_vec()].concat());
    }
    let chart = Chart::new(
        "The bus while tracks are written",
        Axis::linear("ms since the command came"),
        Axis::linear("").named(levels()),
    )
    .with(track.median("a track", 0.0))
    .with(more.median("a track and ten sectors", 1.5));
    findings
        .table("Times of writes", table)
        .chart(chart)
        .note("The chart shows the requests with the median time, up to the status.");
    findings
}
