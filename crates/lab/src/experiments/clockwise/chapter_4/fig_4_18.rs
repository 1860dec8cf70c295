//! Figure 4.18: conflicts of four SCSI cards on the PCI bus.

use super::super::cheetahs::{naive, two_and_one};
use super::super::first_come::{Ask, serve};
use crate::{At, Claim, Experiment, Findings, Paper, Run};
use report::{Axis, Chart, Series, Style, Table, number};
use sim::Random;
use units::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "clockwise-fig-4.18",
    paper: Paper::Clockwise,
    title: "Conflicts on the PCI bus",
    claim: "A simulation: cards with one, two or three Cheetahs want the bus every 37.3, 19.3 or \
            15.4 us, and have it for 4.3. Filled by threes, the conflicts almost double from nine \
            to ten disks and grow exponentially to eleven. By twos first, nine disks have no more \
            conflicts than eight, and ten have more than ten by threes.",
    setup: "Four cards with these periods, who asks first goes first. They begin at times drawn at \
            random, many times. A conflict is a card that wants the bus while another has it or \
            waits; each other counts. What a disk does that is served late is left out.",
    real_time: false,
    run,
};

/// How often a card with so many disks wants the bus, and for how long it has it (section
/// 4.3.7).
const PERIODS: [Duration; 3] =
    [Duration::from_nanos(37_300), Duration::from_nanos(19_300), Duration::from_nanos(15_400)];
const SPAN: Duration = Duration::from_nanos(4_300);

/// Conflicts in a millisecond, of each draw.
struct Conflicts(Vec<f64>);

impl Conflicts {
    fn of(buses: &[usize], draws: u64, length: Duration) -> Self {
        let one = |draw| {
            let mut random = Random::new(draw);
            let cards: Vec<Vec<Ask>> = (0..4)
                .filter_map(|card| {
                    let disks = buses.iter().filter(|&&bus| bus == card).count();
                    let begin = random.span(PERIODS[0]);
                    let period = *PERIODS.get(disks.checked_sub(1)?)?;
                    let count = length.as_nanos() / period.as_nanos();
                    let ask = |at| Ask { from: begin + period * at, span: SPAN };
                    Some((0..count).map(ask).collect())
                })
                .collect();
            let others: usize = serve(&cards).iter().flatten().map(|turn| turn.others).sum();
            others as f64 / length.as_millis_f64()
        };
        Self((0..draws).map(one).collect())
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Half the interval of 95 % of the mean.
    fn half(&self) -> f64 {
        let (mean, count) = (self.mean(), self.0.len() as f64);
        let squares: f64 = self.0.iter().map(|it| (it - mean).powi(2)).sum();
        1.96 * (squares / (count - 1.0) / count).sqrt()
    }
}

fn run(run: &Run<'_>) -> Findings {
    let (draws, length) = (run.choose(1_000, 100), Duration::from_millis(5));
    let all = |buses: fn(usize) -> Vec<usize>| -> Vec<Conflicts> {
        (1..=12).map(|disks| Conflicts::of(&buses(disks), draws, length)).collect()
    };
    let three = all(naive);
    run.progress(1, 2);
    let two = all(two_and_one);
    let times = |it: &[Conflicts], from: usize, to: usize| it[to - 1].mean() / it[from - 1].mean();
    let (to_ten, to_eleven) = (times(&three, 9, 10), times(&three, 10, 11));
    let (eight, nine) = (&two[7], &two[8]);
    let fewer = nine.0.iter().zip(&eight.0).filter(|(nine, eight)| nine <= eight).count();
    let fewer = fewer * 100 / nine.0.len();
    let (ten, ten_by_threes) = (&two[9], &three[9]);
    let mut findings = Findings::default();
    findings
        .claim(Claim::near(
            "by threes, from nine to ten disks (\"almost doubles\")",
            2.0,
            to_ten,
            0.15,
            "times",
        ))
        .claim(
            Claim::holds(
                "by threes, from ten to eleven they grow exponentially: by a larger factor than \
                 from nine to ten",
                "exponentially",
                format!("{} times, after {}", number(to_eleven), number(to_ten)),
                to_eleven > 1.15 * to_ten,
            )
            .measured(to_eleven),
        )
        .claim(
            Claim::at_most(
                "by twos first, nine disks have, of the conflicts of eight",
                1.0,
                times(&two, 8, 9),
                "times",
            )
            .explained(
                At::each(1.28, 1.26),
                format!(
                    "cards with equal periods meet as they began, always or never, and the thesis \
                     shows one draw: in {fewer} of a hundred of ours nine disks have no more \
                     conflicts than eight; it calls this case too much for its simulation"
                ),
            ),
        )
        .claim(
            Claim::holds(
                "by twos first, ten disks have more conflicts than by threes, beyond both intervals",
                "more",
                format!(
                    "{} ± {} and {} ± {} a ms",
                    number(ten.mean()),
                    number(ten.half()),
                    number(ten_by_threes.mean()),
                    number(ten_by_threes.half())
                ),
                ten.mean() - ten.half() > ten_by_threes.mean() + ten_by_threes.half(),
            )
            .measured(ten.mean() / ten_by_threes.mean()),
        );
    let mut table = Table::new(&[
        "disks",
        ">three to a bus, conflicts a ms",
        ">± 95 %",
        ">two, then a third",
        ">± 95 %",
    ]);
    for (disks, (three, two)) in (1..).zip(three.iter().zip(&two)) {
        let cells = [three.mean(), three.half(), two.mean(), two.half()].map(number);
        table.row([vec![format!("{disks}")], cells.to_vec()].concat());
    }
    let series = |name: &str, it: &[Conflicts]| {
        let points = (1..).zip(it).map(|(disks, it)| (f64::from(disks), it.mean()));
        Series::new(name, Style::Line, points)
    };
    let chart = Chart::new("Conflicts on the PCI bus", Axis::linear("disks"), Axis::linear("a ms"))
        .with(series("three to a bus", &three))
        .with(series("two, then a third", &two));
    findings.table("Conflicts, by how the buses are filled", table).chart(chart);
    findings
}
