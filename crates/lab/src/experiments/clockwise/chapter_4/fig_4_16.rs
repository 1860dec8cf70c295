//! Figures 4.4, 4.15 and 4.16: transactions on the PCI bus.

use super::super::pci::{FULL, MEDIUM, Memory, burst, from_memory, rate, to_memory, words};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table, number};
use units::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.16",
    paper: Paper::Clockwise,
    title: "Transactions on the PCI bus",
    claim: "Bursts of less than 20 words lose bandwidth quickly. A disk's card writes 64 bytes to \
            memory in 570 ns and reads them in 870, since the caches are asked first and EDO memory \
            does not keep up; from SDRAM in 840. With 512 bytes at a time it reads in 4.26 us and \
            writes in 3.92.",
    setup: "The bus in cycles of 33 MHz: address, select, words, one idle cycle. A read of memory \
            waits for the caches and pauses once, as figure 4.15 shows. That figure and one write \
            are put in; the other cards and memories are judged.",
    real_time: false,
    run,
};

const FIGURE: &str = "figure 4.15's own parts were put in: 340 ns, two runs of words, a pause";

/// Transactions: which, printed in ns, ours, and what was put in, if it was.
fn transactions() -> [(&'static str, f64, Duration, Option<&'static str>); 7] {
    use Memory::{Edo, Sdram};
    [
        (
            "the NCR53c810a writes 64 bytes (section 4.3.6)",
            570.0,
            to_memory(64),
            Some("that memory is selected in the second cycle was chosen to meet it"),
        ),
        ("the NCR53c810a reads 64 bytes (figure 4.15)", 870.0, from_memory(64, Edo), Some(FIGURE)),
        ("the same from SDRAM", 840.0, from_memory(64, Sdram), None),
        ("the NCR53c875 reads 512 bytes (figure 4.16)", 4_260.0, from_memory(512, Edo), None),
        ("the same from SDRAM, computed there", 4_240.0, from_memory(512, Sdram), None),
        ("the NCR53c875 writes 512 bytes", 3_920.0, to_memory(512), None),
        ("the network's card writes 64 bytes (section 4.5)", 560.0, to_memory(64), None),
    ]
}

fn run(_: &Run<'_>) -> Findings {
    let mut findings = Findings::default();
    // What the thesis's own parts of a read come to, and not to what it prints.
    let lines = Claim::near(
        "the NCR53c810a reads 64 bytes that are not aligned to a cache line",
        1_800.0,
        (from_memory(32, Memory::Edo) * 3).as_nanos() as f64,
        0.03,
        "ns",
    );
    let without = (from_memory(32, Memory::Sdram) * 3).as_nanos();
    findings.claim(lines.explained(
        At::both(1_896.0),
        format!(
            "three lines, each a transaction of its own as figure 4.15 shows one: with the pause of \
             EDO memory after 28 bytes they take longer than printed, without it {without} ns"
        ),
    ));
    let mut table = Table::new(&["transaction", ">printed, ns", ">ours, ns", ">MB/s"]);
    for (name, printed, ours, put_in) in transactions() {
        let ns = ours.as_nanos() as f64;
        let claim = Claim::near(name, printed, ns, 0.03, "ns");
        findings.claim(match put_in {
            Some(what) => claim.calibrated(what),
            None => claim,
        });
        let bytes = if name.contains("512") || printed > 4_000.0 { 512 } else { 64 };
        let cells = [printed, ns, rate(bytes, ours)].map(number);
        table.row([vec![name.to_owned()], cells.to_vec()].concat());
    }
    // Section 4.5: a packet of 1,536 bytes, 256 at a time, since that is what the card's bridge holds.
    let packet = from_memory(256, Memory::Edo) * 6;
    let of_full = |time: Duration| words(512).as_secs_f64() / time.as_secs_f64() * 100.0;
    findings
        .claim(Claim::near(
            "the network's card reads a packet of 1,536 bytes",
            14.7,
            packet.as_nanos() as f64 / 1e3,
            0.05,
            "us",
        ))
        .claim(Claim::near(
            "reads of 512 bytes use of the bus",
            91.0,
            of_full(from_memory(512, Memory::Edo)),
            0.01,
            "%",
        ))
        .claim(Claim::near(
            "writes of 512 bytes use of the bus",
            98.7,
            of_full(to_memory(512)),
            0.01,
            "%",
        )
        .explained(
            At::both(97.7),
            "three cycles around the words, as the printed write of 64 bytes needs; the 3,920 ns that \
             are printed for 512 bytes are 1.3 cycles more than their words",
        ));
    let of = |count: u64, select: u64| rate(4 * count, burst(4 * count, select));
    let a_word = |from: u64, to: u64| (of(to, MEDIUM) - of(from, MEDIUM)) / (to - from) as f64;
    let (below, above) = (a_word(1, 20), a_word(20, 128));
    findings.claim(
        Claim::holds(
            "bursts below 20 words lose quickly: a word less costs ten times as much as above",
            "quickly",
            format!("{} and {} MB/s a word", number(below), number(above)),
            below > 10.0 * above,
        )
        .measured(below / above),
    );
    let lengths = [1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128];
    let mut chart = Chart::new(
        "Bandwidth of PCI by burst",
        Axis::logarithmic("words of a burst"),
        Axis::linear("MB/s").from(0.0),
    )
    .reference("words alone (printed)", FULL);
    for (select, name) in [(1, "fast"), (2, "medium"), (3, "slow"), (4, "subtractive")] {
        let points = lengths.map(|count| (count as f64, of(count, select)));
        chart = chart.with(Series::new(name, Style::Line, points));
    }
    let reads =
        lengths.map(|count| (count as f64, rate(4 * count, from_memory(4 * count, Memory::Edo))));
    let chart = chart.with(Series::new("from EDO memory", Style::Line, reads));
    findings.table("Transactions", table).chart(chart);
    findings
}
