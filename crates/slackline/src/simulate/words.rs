//! Results in words and tables, for a terminal.

use super::results::{Class, Figure, Miss, Results, Spread, span};
use crate::output::{counted, percent};
use report::{Mood, Table};
use units::{Bytes, Duration, Rate};

/// Everything.
pub fn all(results: &Results) -> String {
    let mut text = format!("{}\n{}\n{}\n\n", results.scenario, played(results), verdict(results));
    text.push_str(&contracts(results));
    text.push_str(&rest(results));
    text.push_str(&refusals(results));
    text.push_str(&trouble(results));
    text.push_str(&disks(results).text("  "));
    text.push_str(&format!(
        "memory: at most {} of windows and {} of best effort, of {}\n",
        Bytes::new(results.memory.windows_max_bytes),
        Bytes::new(results.memory.best_effort_max_bytes),
        Bytes::new(results.memory.total_bytes)
    ));
    text
}

/// Under what, how often, how long.
pub fn played(results: &Results) -> String {
    let admission = if results.admission { "" } else { ", without admission" };
    format!(
        "policy {}{admission}; {} of {} after {} of warm-up{}",
        results.policy,
        counted(results.seeds.len() as u64, "run"),
        span(Duration::from_nanos(results.counted_ns)),
        span(Duration::from_nanos(results.warm_up_ns)),
        if results.stopped { " (stopped before the end)" } else { "" }
    )
}

/// What it comes to, in a sentence or two.
pub fn verdict(results: &Results) -> String {
    let promised: u64 = results.classes.iter().map(|class| class.requests.count).sum();
    let mut text = if let Some(why) = &results.dead {
        format!("The pool did not come back after the power cut: {why}.")
    } else if promised == 0 && results.missed == 0 {
        "Nothing was promised.".into()
    } else if results.missed == 0 {
        let promised = report::number(promised as f64);
        format!("Every promise was kept: 0 late of {promised} requests under contract.")
    } else {
        let late: u64 = results.classes.iter().map(|class| class.late).sum();
        let underruns: u64 = results.classes.iter().map(|class| class.underruns).sum();
        let [late, promised] = [late, promised].map(|count| report::number(count as f64));
        format!(
            "Promises were broken: {late} late of {promised} requests under contract, and {} a \
             program that kept to its contract did not have its bytes in time.",
            if underruns == 1 { "once".into() } else { format!("{underruns} times") }
        )
    };
    if results.refused > 0 {
        let runs = results.seeds.len() as u64;
        let some = if runs > 1 { format!(" in {runs} runs") } else { String::new() };
        text.push_str(&format!(" {} refused{some}: more does not fit.", were(results.refused)));
    }
    let lost: u64 = results.power_cuts.iter().map(|cut| cut.lost_bytes).sum();
    if !results.power_cuts.is_empty() && lost == 0 {
        text.push_str(" Nothing that was acknowledged was lost to the power cut.");
    } else if lost > 0 {
        text.push_str(&format!(" {} that were acknowledged were lost.", Bytes::new(lost)));
    }
    text
}

fn were(count: u64) -> String {
    if count == 1 { "1 program was".into() } else { format!("{count} programs were") }
}

/// A time that has a margin.
pub fn time(figure: Figure) -> String {
    let text = |ns: f64| short(Duration::from_nanos(ns.max(0.0) as u64));
    match figure.margin {
        Some(margin) if margin >= 0.005 * figure.mean && margin >= 1.0 => {
            format!("{} ±{}", text(figure.mean), text(margin))
        }
        _ => text(figure.mean),
    }
}

/// A rate that has a margin.
pub fn rate(figure: Figure) -> String {
    let text = |value: f64| Rate::per_second(value.max(0.0) as u64).to_string();
    match figure.margin {
        Some(margin) if margin >= 0.005 * figure.mean && margin >= 1.0 => {
            format!("{} ±{}", text(figure.mean), text(margin))
        }
        _ => text(figure.mean),
    }
}

/// Mean times without their margins, where room is short.
fn plain(figure: Figure) -> String {
    short(Duration::from_nanos(figure.mean as u64))
}

/// A time; nothing is just that.
pub fn short(time: Duration) -> String {
    if time.is_zero() { "0".into() } else { time.to_string() }
}

/// A time, or nothing where there was none.
pub fn longest(spread: &Spread) -> String {
    short(Duration::from_nanos(spread.max_ns))
}

/// Of one run, on average.
fn per_run(count: u64, results: &Results) -> String {
    let runs = results.seeds.len() as u64;
    match count.is_multiple_of(runs) {
        true => (count / runs).to_string(),
        false => format!("{:.1}", count as f64 / runs as f64),
    }
}

fn contracts(results: &Results) -> String {
    let headings = [
        "under contract",
        "asks for",
        ">let in",
        ">got",
        ">late",
        ">not ready",
        ">slowed",
        ">disk p50",
        ">p99",
        ">max",
    ];
    let mut table = Table::new(&headings);
    let mut rows = 0;
    for class in results.classes.iter().filter(|class| class.promised) {
        rows += 1;
        table.row(vec![
            class.name.clone(),
            class.asks.clone(),
            format!("{} of {}", per_run(class.admitted, results), per_run(class.asked, results)),
            rate(class.bytes_per_second),
            class.late.to_string(),
            class.underruns.to_string(),
            class.throttled.to_string(),
            plain(class.requests.p50_ns),
            plain(class.requests.p99_ns),
            longest(&class.requests),
        ]);
    }
    if rows == 0 { String::new() } else { table.text("  ") + "\n" }
}

fn rest(results: &Results) -> String {
    let headings = [
        "without a contract",
        "does",
        ">programs",
        ">got",
        ">waited p50",
        ">p99",
        ">p99.9",
        ">max",
    ];
    let mut table = Table::new(&headings);
    let mut rows = 0;
    for class in results.classes.iter().filter(|class| !class.promised) {
        rows += 1;
        table.row(vec![
            class.name.clone(),
            class.asks.clone(),
            per_run(class.admitted, results),
            rate(class.bytes_per_second),
            plain(class.waits.p50_ns),
            time(class.waits.p99_ns),
            plain(class.waits.p999_ns),
            longest(&class.waits),
        ]);
    }
    let mut text = if rows == 0 { String::new() } else { table.text("  ") + "\n" };
    for class in results.classes.iter().filter(|class| class.begins.count > 0) {
        text.push_str(&format!("  {}: {}\n", class.name, begins(class)));
    }
    text
}

/// How long the first byte took.
pub fn begins(class: &Class) -> String {
    let count = counted(class.begins.count, "time");
    format!(
        "first byte after {} (p50), {} (p99), {} (max), {count}",
        plain(class.begins.p50_ns),
        plain(class.begins.p99_ns),
        longest(&class.begins)
    )
}

fn refusals(results: &Results) -> String {
    let mut text = String::new();
    for class in &results.classes {
        if let Some(why) = class.refusal.as_ref().filter(|_| class.refused > 0) {
            let refused = per_run(class.refused, results);
            text.push_str(&format!(
                "refused: {refused} of {}: {}\n  next: {}\n",
                class.name, why.what, why.next_step
            ));
        }
    }
    text
}

/// Misses by their cause, and what failed.
fn trouble(results: &Results) -> String {
    let mut text = String::new();
    for class in &results.classes {
        let causes = class.causes.iter().map(|it| format!("{} ({})", it.count, it.cause));
        let causes: Vec<String> = causes.collect();
        if !causes.is_empty() {
            text.push_str(&format!("why: {}: {}\n", class.name, causes.join(", ")));
        }
        if let Some(error) = &class.error {
            let errors = counted(class.errors, "failure");
            text.push_str(&format!("{}: {errors}, the first: {}\n", class.name, error.what));
        }
        if let Some(problem) = &class.problem {
            text.push_str(&format!("{}: the recorded load ended early: {problem}\n", class.name));
        }
        if class.gap_bytes > 0 {
            let gaps = Bytes::new(class.gap_bytes);
            text.push_str(&format!("{}: {gaps} given up as declared gaps\n", class.name));
        }
        if class.skipped > 0 {
            let skipped = counted(class.skipped, "request");
            text.push_str(&format!(
                "{}: {skipped} not made, since too many were outstanding\n",
                class.name
            ));
        }
    }
    for miss in results.misses.iter().filter(|_| results.missed > 0).take(3) {
        text.push_str(&format!("  {}\n", told(miss)));
    }
    text
}

/// One miss in words.
pub fn told(miss: &Miss) -> String {
    let disk = miss.disk.map_or("not ready".into(), |disk| format!("disk {disk}"));
    format!(
        "{:.3} s: {}, {disk}, {} late: {}",
        miss.at_ns as f64 / 1e9,
        miss.who,
        Duration::from_nanos(miss.late_ns),
        miss.cause
    )
}

/// What was promised of each disk, and what it did.
pub fn disks(results: &Results) -> Table {
    let headings = [
        ">disk",
        "model",
        ">promised",
        ">busy",
        ">under contract",
        ">best effort",
        ">over its bound",
    ];
    let mut table = Table::new(&headings);
    for (number, disk) in results.disks.iter().enumerate() {
        let over = match disk.overruns {
            0 => ("never".into(), Mood::Good),
            count => {
                let most = Duration::from_nanos(disk.overrun_max_ns);
                (format!("{} times, by up to {most}", report::number(count as f64)), Mood::Bad)
            }
        };
        let cells = [
            number.to_string(),
            disk.model.clone(),
            percent(disk.promised_ppm),
            format!("{:.1} %", disk.busy.mean * 100.0),
            rate(disk.promised_bytes_per_second),
            rate(disk.best_effort_bytes_per_second),
        ];
        let cells = cells.into_iter().map(|words| (words, Mood::Plain));
        table.moody(cells.chain([over]).collect());
    }
    table
}
