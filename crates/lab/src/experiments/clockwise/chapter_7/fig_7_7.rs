//! Figures 7.7 and 7.8: writes of whole tracks, and of blocks.

use super::super::raw::{Begin, Raw, TURN, atlas};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, number};
use units::Direction;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-7.7",
    paper: Paper::Clockwise,
    title: "Writes of whole tracks and of blocks of 1 MB",
    claim: "Ten or eleven tracks take eleven or twelve turns, but a sector more than ten costs \
            almost a turn. Most writes of 1 MB to zone 0 take 111 to 120 ms; with blocks of a \
            volume some are quicker and most of the slower ones take a turn more.",
    setup: "The model without cache; writes that begin with a track, or anywhere as blocks of a \
            volume do.",
    real_time: false,
    run,
};

/// How much sooner and later, thorough and quick, in ms.
const ZONES: [(&str, f64, f64); 2] =
    [("slower, zone 0", 3.49, 3.03), ("slower, zone 11", 1.34, 1.25)];

fn run(run: &Run<'_>) -> Findings {
    let count = run.choose(10_000, 1_500);
    let mut raw = Raw::new(&atlas(), 5);
    let mut times = |zone, sectors, begin| raw.times(Direction::Write, zone, sectors, begin, count);
    let tracks = [1_790, 1_791, 1_969].map(|sectors| times(0, sectors, Begin::Track));
    let (track, block) = (times(0, 2_048, Begin::Track), times(0, 2_048, Begin::Anywhere));
    let inner = [times(11, 2_048, Begin::Track), times(11, 2_048, Begin::Anywhere)];
    let again = [0, 11].map(|zone| {
        Raw::new(&atlas(), 6).times(Direction::Write, zone, 2_048, Begin::Track, count)
    });
    let mut findings = Findings::default();
    let firmware = "the thesis finds no rule for these writes and says that the firmware alone \
                    would tell; the model loses what is left of the track that a write ends on, \
                    and nothing where it begins within one";
    findings
        .claim(Claim::near(
            "ten tracks: eleven turns and steps (mean)",
            11.0 * TURN + 9.0,
            tracks[0].mean(),
            0.1,
            "ms",
        ))
        .claim(Claim::near(
            "a sector more than ten tracks costs almost",
            TURN,
            tracks[1].mean() - tracks[0].mean(),
            0.15,
            "ms",
        ))
        .claim(Claim::near(
            "eleven tracks later than ten by",
            TURN,
            tracks[2].mean() - tracks[0].mean(),
            0.15,
            "ms",
        ))
        .claim(Claim::near(
            "1 MB to zone 0: fifth percentile (\"most\" from)",
            111.0,
            track.percentile(5),
            0.05,
            "ms",
        ))
        .claim(Claim::near(
            "1 MB to zone 0: 95th percentile (\"most\" to)",
            120.0,
            track.percentile(95),
            0.05,
            "ms",
        ));
    for (zone, [track, block]) in [(0, [&track, &block]), (11, [&inner[0], &inner[1]])] {
        let (quicker, slower) =
            (track.shortest() - block.shortest(), block.longest() - track.longest());
        let again = &again[usize::from(zone == 11)];
        // What two draws of the same writes differ by.
        let noise = (track.shortest() - again.shortest()).abs();
        let claims = [
            Claim::holds(
                format!("zone {zone}: some blocks of a volume are quicker"),
                "the quickest sooner, beyond what two draws of the same writes differ by",
                format!("{} ms sooner; two draws differ by {} ms", number(quicker), number(noise)),
                quicker > noise,
            )
            .measured(quicker),
            Claim::near(
                format!("zone {zone}: the slower ones take a turn more: the slowest is later by"),
                TURN,
                slower,
                0.25,
                "ms",
            ),
        ];
        for (claim, which) in claims.into_iter().zip(["quicker", "slower"]) {
            let at = At::in_list(&ZONES, &format!("{which}, zone {zone}")).spread(0.1);
            findings.claim(claim.explained(at, firmware));
        }
        findings.chart(
            Chart::new(
                format!("Writes of 1 MB to zone {zone} (figure 7.8)"),
                Axis::linear("ms").from(track.shortest() * 0.95),
                Axis::linear("part of requests"),
            )
            .with(track.distribution("begins with a track"))
            .with(block.distribution("block of a volume")),
        );
    }
    findings.claim(Claim::not_reproducible(
        "with an Ultra-Wide card the same drive writes quicker",
        "a bus twice as fast",
        "the drive says it is a Fast SCSI-2 one and behaved as another on that card; its times \
         there are printed only as a plot",
    ));
    findings.chart(
        Chart::new(
            "Whole tracks of zone 0 (figure 7.7)",
            Axis::linear("ms").from(85.0),
            Axis::linear("part of requests"),
        )
        .with(tracks[0].distribution("10 tracks"))
        .with(tracks[1].distribution("10 tracks and a sector"))
        .with(tracks[2].distribution("11 tracks")),
    );
    findings
}
