//! Demand against supply: what a disk is asked for by each deadline after a common
//! start, what may be in the way, and the time that there is.

use client::control::{PlannedDisk, PlannedTask};
use report::svg::{self, GRID, TEXT, line, text};
use std::fmt::Write;
use units::Duration;

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 560.0;
/// The plot inside the picture: left, top, right, bottom.
const LEFT: f64 = 92.0;
const TOP: f64 = 102.0;
const RIGHT: f64 = WIDTH - 28.0;
const BOTTOM: f64 = HEIGHT - 62.0;
const DEMAND: &str = "#2f81f7";
const BLOCKING: &str = "#bf8700";
const GOOD: &str = "#2da44e";
const BAD: &str = "#f85149";
/// Steps that are drawn at most; what would be narrower than a pixel is not seen.
const STEPS_MAX: usize = 20_000;

/// True where everything that is asked of the disk fits.
pub fn fits(disk: &PlannedDisk) -> bool {
    disk.tasks.iter().all(|task| task.fits)
}

/// The work that must be done by `interval`.
fn demand(tasks: &[PlannedTask], interval: u64) -> u64 {
    let of = |task: &PlannedTask| {
        let past = interval.checked_sub(task.deadline_ns.as_nanos())?;
        let times = past / task.period_ns.as_nanos() + 1;
        Some(times.saturating_mul(task.cost_ns.as_nanos()).saturating_mul(task.count))
    };
    tasks.iter().filter_map(of).fold(0, u64::saturating_add)
}

/// The longest command that is due later and may be in the way.
fn blocking(tasks: &[PlannedTask], interval: u64) -> u64 {
    let later = tasks.iter().filter(|task| task.deadline_ns.as_nanos() > interval);
    later.map(|task| task.command_ns.as_nanos()).max().unwrap_or(0)
}

/// The deadlines up to `end`, in order.
fn deadlines(tasks: &[PlannedTask], end: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for task in tasks {
        let period = task.period_ns.as_nanos().max(end / STEPS_MAX as u64).max(1);
        let mut at = task.deadline_ns.as_nanos();
        while at <= end && all.len() < 2 * STEPS_MAX {
            all.push(at);
            at += period;
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The deadline up to `end` at which the least is left, and how much that is.
fn least(tasks: &[PlannedTask], end: u64) -> Option<(u64, i128)> {
    let all = deadlines(tasks, end).into_iter().map(|at| (at, left(tasks, at)));
    all.min_by_key(|&(_, left)| left)
}

/// What is left of the time by `at`.
fn left(tasks: &[PlannedTask], at: u64) -> i128 {
    i128::from(at) - i128::from(demand(tasks, at)) - i128::from(blocking(tasks, at))
}

/// The first deadline by which less is left than is kept for best effort.
fn first_over(disk: &PlannedDisk, end: u64) -> Option<(u64, i128)> {
    let reserve = i128::from(disk.reserve_ns.as_nanos());
    let mut all = deadlines(&disk.tasks, end).into_iter().map(|at| (at, left(&disk.tasks, at)));
    all.find(|&(_, left)| left < reserve)
}

/// How far to draw: past the critical interval, or past where the demand first
/// exceeds what there is; some of the longer periods where there is neither.
fn horizon(disk: &PlannedDisk) -> u64 {
    let longest = disk.tasks.iter().map(|task| task.deadline_ns.as_nanos()).max().unwrap_or(1);
    if !fits(disk) {
        let over = first_over(disk, longest.saturating_mul(64));
        return over.map_or(longest.saturating_mul(4), |(over, _)| over.saturating_mul(2));
    }
    let critical = disk.critical_ns.map_or(longest, Duration::as_nanos);
    critical.saturating_mul(2).min(longest.saturating_mul(64))
}

/// The picture as a file's text.
pub fn demand_svg(disk: &PlannedDisk) -> String {
    let end = horizon(disk).max(1_000);
    let axes = Axes { end, top: height(disk, end) };
    let title = format!("Disk {}: what is asked of it against the time that there is", disk.disk);
    let mut svg = svg::begin(&title, [WIDTH, HEIGHT], LEFT);
    axes.draw(&mut svg);
    stairs(&mut svg, &axes, &disk.tasks);
    supply(&mut svg, &axes, disk.reserve_ns);
    mark(&mut svg, &axes, disk);
    legend(&mut svg, disk);
    svg.push_str("</svg>\n");
    svg
}

fn height(disk: &PlannedDisk, end: u64) -> u64 {
    let most = demand(&disk.tasks, end) + blocking(&disk.tasks, end);
    most.clamp(end, end.saturating_mul(2))
}

/// From a time to a place.
struct Axes {
    end: u64,
    top: u64,
}

impl Axes {
    fn x(&self, time: u64) -> f64 {
        LEFT + time as f64 / self.end as f64 * (RIGHT - LEFT)
    }

    fn y(&self, time: u64) -> f64 {
        BOTTOM - time.min(self.top) as f64 / self.top as f64 * (BOTTOM - TOP)
    }

    fn draw(&self, svg: &mut String) {
        for time in ticks(self.end) {
            let x = self.x(time);
            line(svg, [x, TOP, x, BOTTOM], GRID, "1");
            text(svg, x, BOTTOM + 20.0, "middle", &label(time));
        }
        for time in ticks(self.top) {
            let y = self.y(time);
            line(svg, [LEFT, y, RIGHT, y], GRID, "1");
            text(svg, LEFT - 10.0, y + 4.5, "end", &label(time));
        }
        let middle = (LEFT + RIGHT) / 2.0;
        text(svg, middle, HEIGHT - 16.0, "middle", "time since all streams began at once");
        svg::upwards(svg, (TOP + BOTTOM) / 2.0, "device time");
    }
}

fn label(time: u64) -> String {
    if time == 0 { "0".into() } else { Duration::from_nanos(time).to_string().replace("us", "µs") }
}

/// Round times from nothing to `end`, four to nine of them.
fn ticks(end: u64) -> impl Iterator<Item = u64> {
    let mut step = 1;
    while end / step > 8 {
        let leading = step.to_string().starts_with('2');
        step = if leading { step / 2 * 5 } else { step * 2 };
    }
    (0..=end / step).map(move |tick| tick * step)
}

/// The stairs of the demand, filled, and what may be in the way on top of it.
fn stairs(svg: &mut String, axes: &Axes, tasks: &[PlannedTask]) {
    let (mut work, mut both) = (String::new(), String::new());
    let _ = write!(work, "M{:.1} {:.1}", axes.x(0), axes.y(0));
    for at in deadlines(tasks, axes.end) {
        let (x, asked) = (axes.x(at), demand(tasks, at));
        let y = axes.y(asked.saturating_add(blocking(tasks, at)));
        // Before the first deadline nothing is due that could be late.
        let _ = match both.is_empty() {
            true => write!(both, "M{x:.1} {y:.1}"),
            false => write!(both, "H{x:.1}V{y:.1}"),
        };
        let _ = write!(work, "H{x:.1}V{:.1}", axes.y(asked));
    }
    let right = axes.x(axes.end);
    if both.is_empty() {
        let _ = write!(both, "M{right:.1} {:.1}", axes.y(0));
    }
    let _ = writeln!(
        svg,
        "<path d=\"{both}H{right:.1}\" fill=\"none\" stroke=\"{BLOCKING}\" stroke-width=\"2\"/>\n\
         <path d=\"{work}H{right:.1}V{BOTTOM}Z\" fill=\"{DEMAND}\" fill-opacity=\"0.25\"/>\n\
         <path d=\"{work}H{right:.1}\" fill=\"none\" stroke=\"{DEMAND}\" stroke-width=\"2\"/>"
    );
}

/// The time that there is, and what of it contracts may have.
fn supply(svg: &mut String, axes: &Axes, reserve: Duration) {
    let (end, reserve) = (axes.end, reserve.as_nanos());
    line(svg, [axes.x(0), axes.y(0), axes.x(end), axes.y(end)], TEXT, "2.4");
    if reserve < end {
        let less = [axes.x(reserve), axes.y(0), axes.x(end), axes.y(end - reserve)];
        line(svg, less, TEXT, "1.4\" stroke-dasharray=\"6 4");
    }
}

/// The interval at which the least is left, or the most is missing.
fn mark(svg: &mut String, axes: &Axes, disk: &PlannedDisk) {
    let over = (!fits(disk)).then(|| first_over(disk, axes.end)).flatten();
    let Some((at, left)) = over.or_else(|| least(&disk.tasks, axes.end)) else { return };
    let reserve = i128::from(disk.reserve_ns.as_nanos());
    let amount = |time: i128| Duration::from_nanos(u64::try_from(time).unwrap_or(0));
    let interval = Duration::from_nanos(at);
    let (colour, words) = if left >= reserve || fits(disk) {
        (GOOD, format!("slack {} at {interval}", amount(left)))
    } else if left >= 0 {
        (BAD, format!("only {} left at {interval}, {} are kept", amount(left), disk.reserve_ns))
    } else {
        (BAD, format!("{} too much at {interval}", amount(-left)))
    };
    let x = axes.x(at);
    let asked = demand(&disk.tasks, at).saturating_add(blocking(&disk.tasks, at));
    line(svg, [x, axes.y(asked), x, axes.y(at)], colour, "4");
    line(svg, [x, axes.y(asked.min(at)), x, BOTTOM], colour, "1\" stroke-dasharray=\"2 3");
    // Left of the mark, above the line, nothing else is drawn.
    let (anchor, beside) = if x > LEFT + 300.0 { ("end", -10.0) } else { ("start", 10.0) };
    let y = (axes.y(asked.max(at)) - 12.0).max(TOP + 14.0);
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-weight=\"600\" \
         fill=\"{colour}\">{}</text>",
        x + beside,
        svg::escape(&words.replace("us", "µs"))
    );
}

fn legend(svg: &mut String, disk: &PlannedDisk) {
    let reserve = format!("less the {} kept for best effort", disk.reserve_ns);
    let entries = [
        (TEXT, "2.4", "the time that there is", 0.0, 0.0),
        (TEXT, "1.4\" stroke-dasharray=\"6 4", reserve.as_str(), 0.0, 1.0),
        (DEMAND, "2", "what is due by then", 340.0, 0.0),
        (BLOCKING, "2", "and the longest command that may be in the way", 340.0, 1.0),
    ];
    for (colour, width, words, across, down) in entries {
        let (x, y) = (LEFT + across, 52.0 + down * 20.0);
        line(svg, [x, y, x + 26.0, y], colour, width);
        text(svg, x + 34.0, y + 4.5, "start", words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Rate;

    fn task(cost: u64, period: u64, fits: bool) -> PlannedTask {
        let [cost, period] = [cost, period].map(Duration::from_millis);
        PlannedTask {
            name: Some("a < b".into()),
            fits,
            count: 1,
            period_ns: period,
            deadline_ns: period,
            cost_ns: cost,
            command_ns: cost,
        }
    }

    fn disk(tasks: Vec<PlannedTask>) -> PlannedDisk {
        PlannedDisk {
            disk: 0,
            utilisation_ppm: 0,
            best_effort_ppm: 0,
            slack_ns: Duration::ZERO,
            critical_ns: None,
            reserve_ns: Duration::ZERO,
            best_effort_estimate_bytes_per_second: Rate::ZERO,
            tasks,
        }
    }

    /// The set of table 6.2 of the Clockwise thesis, which is refused: two of the
    /// short ones are due by 250, and one of 163 may be in their way.
    #[test]
    fn what_is_too_much_is_found_where_the_analysis_finds_it() {
        let set = [(42, 250), (69, 250), (122, 1000), (163, 2000)];
        let disk = disk(set.map(|(cost, period)| task(cost, period, period != 2000)).into());
        let found = least(&disk.tasks, 3_000_000_000).unwrap();
        assert_eq!(found, (250_000_000, 250_000_000 - 42_000_000 - 69_000_000 - 163_000_000));
        assert!(demand_svg(&disk).contains("24 ms too much at 250 ms"));
    }

    #[test]
    fn every_set_makes_a_picture() {
        for tasks in [vec![], vec![task(1, 1, true)], vec![task(9, 10, true), task(5, 10, false)]] {
            let svg = demand_svg(&disk(tasks));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
        }
        let over = demand_svg(&disk(vec![task(9, 10, true), task(5, 10, false)]));
        assert!(over.contains("4 ms too much at 10 ms"), "{over}");
    }
}
