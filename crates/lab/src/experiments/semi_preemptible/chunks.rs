//! Figures 5, 6 and 7: sequential throughput by the size of a chunk.

use super::barracuda;
use crate::{Claim, Experiment, Findings, Paper, Run};
use disk::Model;
use report::{Axis, Chart, Series, Style, Table};
use sim::commands::{OUTERMOST, smallest_chunk, stream_rates};
use units::{Direction, SECTOR};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "semi-fig-5",
    paper: Paper::SemiPreemptible,
    title: "Throughput by the size of a chunk (figures 5, 6 and 7)",
    claim: "Sequential transfers reach the disk's throughput from a smallest chunk on, a, below \
            which the overhead of commands is in the way; from a largest one on, b, some firmware \
            is slower. On the SCSI disk that is 41.7 MB/s outside and 24.3 MB/s inside; chunks of \
            50 blocks were chosen.",
    setup: "Sixteen million bytes one chunk after another, on the outermost and the innermost \
            tracks of the models of the paper's two disks, an ST318437LW and a WD400BB; writes \
            through the buffer, with a flush at the end. a is the smallest chunk with 93 % of the \
            best rate, the profiler's rule.",
    real_time: false,
    run,
};

const CHOSEN: &str = "the model's rates, overheads and chunks were chosen to meet these words";
/// In sectors.
const PAPERS_CHUNK: f64 = 50.0;

fn run(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    let scsi = barracuda();
    let ide = Model::named("wd400bb").expect("a model that comes with the program");
    let inside = |model: &Model| [OUTERMOST[0], model.capacity() / SECTOR - 2 * OUTERMOST[0]];
    let best = |rates: &[(u64, f64)]| rates.iter().map(|rate| rate.1).fold(0.0, f64::max);
    let reads = stream_rates(&scsi, Direction::Read, OUTERMOST);
    let reads_inside = stream_rates(&scsi, Direction::Read, inside(&scsi));
    let smallest = smallest_chunk(&reads) / SECTOR;
    findings
        .claim(
            Claim::near("ST318437LW, fastest sequential reads", 41.7, best(&reads), 0.15, "MB/s")
                .calibrated(CHOSEN),
        )
        .claim(
            Claim::near("ST318437LW, slowest zone", 24.3, best(&reads_inside), 0.15, "MB/s")
                .calibrated(CHOSEN),
        )
        .claim(
            Claim::near(
                "smallest chunk at which reads stream",
                PAPERS_CHUNK,
                smallest as f64,
                0.3,
                "blocks",
            )
            .calibrated(CHOSEN),
        );
    let largest =
        reads.iter().filter(|rate| rate.1 >= 0.93 * best(&reads)).map(|rate| rate.0).max();
    findings.claim(
        Claim::holds(
            "a largest chunk beyond which reads are slower again is found on the SCSI disk",
            "b exists",
            format!("b = {} blocks", largest.unwrap_or(0)),
            largest.is_some_and(|b| b < reads.last().expect("sizes").0),
        )
        .calibrated(CHOSEN),
    );
    let mut table = Table::new(&[
        ">chunk, sectors",
        ">ST318437LW reads, MB/s",
        ">inside",
        ">writes",
        ">WD400BB reads",
        ">writes",
    ]);
    let series = [
        reads,
        reads_inside,
        stream_rates(&scsi.with_write_back(true), Direction::Write, OUTERMOST),
        stream_rates(&ide, Direction::Read, OUTERMOST),
        stream_rates(&ide.with_write_back(true), Direction::Write, OUTERMOST),
    ];
    for at in 0..series[0].len() {
        let mut row = vec![series[0][at].0.to_string()];
        row.extend(series.iter().map(|rates| format!("{:.1}", rates[at].1)));
        table.row(row);
    }
    let chart = |title: &str, names: [(&str, usize); 3]| {
        let x = Axis::logarithmic("chunk, kB");
        let mut chart = Chart::new(title, x, Axis::linear("throughput, MB/s"));
        for (name, at) in names.into_iter().filter(|(name, _)| !name.is_empty()) {
            let points = series[at].iter().map(|&(size, rate)| (size as f64 / 2.0, rate));
            chart = chart.with(Series::new(name, Style::Line, points));
        }
        chart
    };
    let reads = chart(
        "Sequential reads by chunk",
        [("ST318437LW", 0), ("the same inside", 1), ("WD400BB", 3)],
    )
    .reference("printed, outside", 41.7)
    .reference("printed, inside", 24.3);
    let writes = chart("Sequential writes by chunk", [("ST318437LW", 2), ("WD400BB", 4), ("", 0)]);
    findings
        .chart(reads)
        .chart(writes)
        .table("Sequential throughput", table)
        .claim(Claim::not_reproducible(
            "figure 7: the processor's use falls with the size of a chunk, and hardly any more \
             beyond 50 kB",
            "a curve",
            "in simulated time a command costs no processor; what our own costs, make bench \
             measures",
        ))
        .note(
            "Below a, writes of the model lose turns, since the platters catch up with the host; \
             a drive that waits for more before it begins would not. The paper shows no numbers \
             there.",
        );
    findings
}
