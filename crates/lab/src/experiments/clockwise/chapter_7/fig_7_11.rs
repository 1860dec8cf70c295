//! Figure 7.11: network and disks copy through memory, on one PCI bus.

use super::super::pci::{FULL, rate, words};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table, number};
use units::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-7.11",
    paper: Paper::Clockwise,
    title: "Network and disks on one PCI bus",
    claim: "A simulation of the bus with the times of section 4.3: packets are copied between \
            network and disks through memory. Best is recording through the NCR53c875, about \
            57 MB/s; worst is recording through the NCR53c810a, about 43. The card that reads memory \
            is the bottleneck. A packet a little longer than a FIFO costs one more transaction, so \
            that the curves go in zig-zags: at 336 bytes, 33.6 % of the bus.",
    setup: "The bus is always busy, so that the order of transactions does not matter. Each packet \
            is moved twice, each time by as many transactions as fill the card's FIFO and one for \
            the rest. A transaction takes what is printed of a full one, less the cycles of the \
            words that it has not. All packets of whole words up to 2 KB.",
    real_time: false,
    run,
};

/// What a card does at once on the bus, and how long it takes.
#[derive(Clone, Copy)]
struct Card {
    fifo: u64,
    full: Duration,
}

impl Card {
    const fn new(fifo: u64, ns: u64) -> Self {
        Self { fifo, full: Duration::from_nanos(ns) }
    }

    /// The time on the bus of a packet.
    fn moves(self, packet: u64) -> Duration {
        let rest = packet % self.fifo;
        let last =
            if rest == 0 { Duration::ZERO } else { self.full - (words(self.fifo) - words(rest)) };
        self.full * (packet / self.fifo) + last
    }
}

/// Into memory and out of it; sections 4.3.6, 4.3.7 and 4.5 (a packet of 1,536 bytes is
/// 14.7 us on the bus).
const NETWORK: [Card; 2] = [Card::new(64, 560), Card::new(256, 14_700 / 6)];
const NCR810: [Card; 2] = [Card::new(64, 570), Card::new(64, 870)];
const NCR875: [Card; 2] = [Card::new(512, 3_920), Card::new(512, 4_260)];

/// A way of copying: which card writes to memory, and which reads it.
struct Route {
    name: &'static str,
    to_memory: Card,
    from_memory: Card,
}

const ROUTES: [Route; 4] = [
    Route { name: "recording, NCR53c810a", to_memory: NETWORK[0], from_memory: NCR810[1] },
    Route { name: "recording, NCR53c875", to_memory: NETWORK[0], from_memory: NCR875[1] },
    Route { name: "playback, NCR53c810a", to_memory: NCR810[0], from_memory: NETWORK[1] },
    Route { name: "playback, NCR53c875", to_memory: NCR875[0], from_memory: NETWORK[1] },
];

impl Route {
    /// What is copied, in MB/s.
    fn rate(&self, packet: u64) -> f64 {
        rate(packet, self.to_memory.moves(packet) + self.from_memory.moves(packet))
    }

    /// The part of the bus that reads memory, in packets of whole FIFOs.
    fn reading(&self) -> f64 {
        let [to, from] =
            [self.to_memory, self.from_memory].map(|card| card.moves(2_048).as_secs_f64());
        from / (to + from)
    }
}

fn packets() -> impl Iterator<Item = u64> + Clone {
    (12..=512).map(|words| words * 4)
}

fn run(_: &Run<'_>) -> Findings {
    let best = ROUTES.map(|route| packets().map(|packet| route.rate(packet)).fold(0.0, f64::max));
    let named = |at: usize| format!("{}: {} MB/s", ROUTES[at].name, number(best[at]));
    let by_rate = |one: &usize, other: &usize| best[*one].total_cmp(&best[*other]);
    let [best_at, worst_at] =
        [(0..4).max_by(by_rate), (0..4).min_by(by_rate)].map(|at| at.expect("there are four"));
    let (most, least) = (best[best_at], best[worst_at]);
    let reading = ROUTES.map(|route| route.reading());
    let bottleneck = reading.iter().copied().fold(f64::INFINITY, f64::min);
    let [recording, ..] = &ROUTES;
    let falls =
        (1..=8).filter(|fifos| recording.rate(fifos * 64 + 4) < 0.97 * recording.rate(fifos * 64));
    let falls = falls.count();
    let mut findings = Findings::default();
    findings
        .claim(Claim::holds(
            "best is recording through the NCR53c875",
            "best",
            named(best_at),
            best_at == 1,
        ))
        .claim(Claim::holds(
            "worst is recording through the NCR53c810a",
            "worst",
            named(worst_at),
            worst_at == 0,
        ))
        .claim(Claim::near("the most", 57.0, most, 0.03, "MB/s"))
        .claim(Claim::near("the least, in packets of whole FIFOs", 43.0, least, 0.03, "MB/s"))
        .claim(
            Claim::near(
                "packets of 336 bytes, recorded through the NCR53c810a, use of the bus",
                33.6,
                recording.rate(336) / FULL * 100.0,
                0.03,
                "%",
            )
            .explained(
                At::both(32.4),
                "the thesis counts three large transactions and a small one for such a packet; of \
                 64 bytes each, as it says of this card, they are five and one",
            ),
        )
        .claim(
            Claim::at_least(
                "the card that reads memory has the most of the bus, in each of the four: in \
                 packets of whole FIFOs",
                50.0,
                bottleneck * 100.0,
                "%",
            )
            .explained(
                At::both(48.7),
                "by the thesis's own times: while recording through the NCR53c875 the network's card \
                 writes 109.0 MB/s, and the other reads 114.6",
            ),
        )
        .claim(Claim::holds(
            "a word more than whole FIFOs costs a transaction: recording through the NCR53c810a, \
             over 3 % less after each of eight",
            "zig-zags",
            format!("{falls} of 8"),
            falls == 8,
        ));
    let mut table = Table::new(&[
        "copy",
        ">280 bytes, MB/s",
        ">336",
        ">420",
        ">2,048",
        ">reading memory, of the bus",
    ]);
    for (route, reading) in ROUTES.iter().zip(reading) {
        let cells = [280, 336, 420, 2_048].map(|packet| number(route.rate(packet)));
        let reading = format!("{} %", number(reading * 100.0));
        table.row([vec![route.name.to_owned()], cells.to_vec(), vec![reading]].concat());
    }
    let mut chart = Chart::new(
        "Network and disks on one PCI bus",
        Axis::linear("bytes of a packet"),
        Axis::linear("MB/s copied").from(20.0),
    )
    .reference("the most (printed)", 57.0)
    .reference("the least (printed)", 43.0);
    for route in &ROUTES {
        let points = packets().map(|packet| (packet as f64, route.rate(packet)));
        chart = chart.with(Series::new(route.name, Style::Line, points));
    }
    findings.table("What is copied through memory", table).chart(chart);
    findings
}
