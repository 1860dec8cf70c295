//! The report of a scenario: a page that explains itself.

use super::results::{Class, Results, Spread, span};
use super::{pictures, words};
use report::{Mood, Page, Table};
use std::path::Path;
use units::{Bytes, Duration};

/// The page.
pub fn html(results: &Results, path: &Path, text: &str) -> String {
    let mut page = Page::new(&results.scenario);
    page.text(&words::verdict(results));
    if let Some(about) = &results.about {
        page.text(about);
    }
    page.quiet(&format!("Played in simulated time: {}.", words::played(results)));
    who(&mut page, results);
    waits(&mut page, results);
    over_time(&mut page, results);
    misses(&mut page, results);
    disks(&mut page, results);
    how_to_read(&mut page);
    page.heading("scenario", "The scenario");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    page.text(&format!(
        "This is {name}; change it and play it again with: slackline simulate {} --report \
         FILE.html",
        report::quoted(&name)
    ));
    page.verbatim(text);
    page.html()
}

fn share(part: u64, whole: u64, results: &Results) -> (String, Mood) {
    let runs = results.seeds.len() as f64;
    let each = |count: u64| report::number(count as f64 / runs);
    let mood = if part == whole { Mood::Plain } else { Mood::Careful };
    (format!("{} of {}", each(part), each(whole)), mood)
}

/// A count that should be none.
fn none(count: u64) -> (String, Mood) {
    (report::number(count as f64), if count == 0 { Mood::Good } else { Mood::Bad })
}

fn plain(text: impl Into<String>) -> (String, Mood) {
    (text.into(), Mood::Plain)
}

fn who(page: &mut Page, results: &Results) {
    page.heading("who", "Who got what");
    let headings = [
        "program",
        "asks for",
        ">let in",
        ">got, together",
        ">late requests",
        ">not ready",
        ">slowed to its contract",
        ">window each",
    ];
    let mut table = Table::new(&headings);
    for class in results.classes.iter().filter(|class| class.promised) {
        let slowed = match class.throttled {
            0 => plain("0"),
            count => (report::number(count as f64), Mood::Careful),
        };
        table.moody(vec![
            plain(&*class.name),
            plain(&*class.asks),
            share(class.admitted, class.asked, results),
            plain(words::rate(class.bytes_per_second)),
            none(class.late),
            none(class.underruns),
            slowed,
            plain(match class.window_bytes {
                0 => "-".into(),
                window => Bytes::new(window).to_string(),
            }),
        ]);
    }
    if results.classes.iter().any(|class| class.promised) {
        page.small_heading("Under contract").table(&table);
    }
    let headings = ["program", "does", ">programs", ">got, together", ">failed", ">not made"];
    let mut table = Table::new(&headings);
    for class in results.classes.iter().filter(|class| !class.promised) {
        table.moody(vec![
            plain(&*class.name),
            plain(&*class.asks),
            plain(report::number(class.admitted as f64 / results.seeds.len() as f64)),
            plain(words::rate(class.bytes_per_second)),
            none(class.errors),
            plain(report::number(class.skipped as f64)),
        ]);
    }
    if results.classes.iter().any(|class| !class.promised) {
        page.small_heading("Without a contract, in what is left").table(&table);
    }
    for class in &results.classes {
        if let Some(why) = class.refusal.as_ref().filter(|_| class.refused > 0) {
            page.text(&format!(
                "{} was refused, because: {}. What would do: {}.",
                class.name, why.what, why.next_step
            ));
        }
        if class.begins.count > 0 {
            page.quiet(&format!("{}: {}.", class.name, words::begins(class)));
        }
        if let Some(error) = &class.error {
            page.text(&format!("{}: the first failure was: {}.", class.name, error.what));
        }
        if let Some(problem) = &class.problem {
            page.text(&format!("{}: the recorded load ended early: {problem}.", class.name));
        }
        if class.gap_bytes > 0 {
            let gaps = Bytes::new(class.gap_bytes);
            page.text(&format!("{}: {gaps} were given up as declared gaps.", class.name));
        }
    }
}

fn spreads(results: &Results, of: impl Fn(&Class) -> &Spread) -> Table {
    let headings = ["program", ">count", ">mean", ">p50", ">p90", ">p99", ">p99.9", ">max"];
    let mut table = Table::new(&headings);
    for class in results.classes.iter().filter(|class| of(class).count > 0) {
        let spread = of(class);
        let figures = [spread.mean_ns, spread.p50_ns, spread.p90_ns, spread.p99_ns, spread.p999_ns];
        let mut row = vec![class.name.clone(), report::number(spread.count as f64)];
        row.extend(figures.map(words::time));
        row.push(words::longest(spread));
        table.row(row);
    }
    table
}

fn waits(page: &mut Page, results: &Results) {
    page.heading("waits", "How long they waited");
    page.text(
        "A stream waits from when a piece is due until it has it; at nothing, the piece was in \
         memory before it was asked for. A load waits from asking to the answer. The line of a \
         program falls from left to right: at each wait, the share of all that waited longer.",
    );
    page.table(&spreads(results, |class| &class.waits));
    if results.classes.iter().any(|class| class.requests.count > 0) {
        page.small_heading("Requests under contract, on the disks");
        page.text(
            "What the disks took for each request under contract, from its release to its \
             completion. It may take up to its deadline; a deadline is a block's time at the \
             contract's rate, or what a latency contract says.",
        );
        page.table(&spreads(results, |class| &class.requests));
    }
    page.charts(&[pictures::waits(results), pictures::requests(results)]);
}

fn over_time(page: &mut Page, results: &Results) {
    page.heading("time", "Over time");
    let seed = results.seeds[0];
    page.quiet(&format!("The run with seed {seed}, after the warm-up."));
    let mut charts =
        vec![pictures::throughput(results), pictures::longest(results), pictures::busy(results)];
    if results.missed > 0 {
        charts.push(pictures::missed(results));
    }
    page.charts(&charts);
    if !results.faults.is_empty() {
        let told = results.faults.iter().map(|fault| {
            let (at, lasts) = (fault.at_ns, fault.lasts_ns);
            let [at, lasts] = [at, lasts].map(|ns| span(Duration::from_nanos(ns)));
            let disk = fault.disk.map_or("all disks".into(), |disk| format!("disk {disk}"));
            format!("{} ({disk}): at {at}, for {lasts}", fault.name)
        });
        let told: Vec<String> = told.collect();
        page.text("What was planned to go wrong:");
        page.list(told.iter().map(|words| (&**words, None)));
    }
    for cut in &results.power_cuts {
        page.text(&format!(
            "Seed {}: at the power cut {} writers had been told that {} are on the medium; of \
             that, {} was not there when the power was back.",
            cut.seed,
            cut.writers,
            Bytes::new(cut.durable_bytes),
            if cut.lost_bytes == 0 {
                "nothing".into()
            } else {
                Bytes::new(cut.lost_bytes).to_string()
            }
        ));
    }
}

fn misses(page: &mut Page, results: &Results) {
    page.heading("misses", "What was late, and why");
    if results.classes.iter().all(|class| class.causes.is_empty()) {
        page.text("Nothing.");
        return;
    }
    let mut table = Table::new(&["program", "why", ">how often, in all runs"]);
    for class in &results.classes {
        for it in &class.causes {
            table.row(vec![class.name.clone(), it.cause.clone(), report::number(it.count as f64)]);
        }
    }
    page.table(&table);
    if results.misses.is_empty() {
        return;
    }
    page.small_heading("The first of the first run");
    let told: Vec<String> = results.misses.iter().take(12).map(words::told).collect();
    page.list(told.iter().map(|words| (&**words, None)));
}

fn disks(page: &mut Page, results: &Results) {
    page.heading("disks", "Disks and memory");
    page.table(&words::disks(results));
    page.text(&format!(
        "Windows took at most {} of the {} of memory, best effort {}.",
        Bytes::new(results.memory.windows_max_bytes),
        Bytes::new(results.memory.total_bytes),
        Bytes::new(results.memory.best_effort_max_bytes)
    ));
}

fn how_to_read(page: &mut Page) {
    page.heading("words", "How to read this");
    page.list([
        (
            "Played by the same code that serves disks; only the disks and the time are simulated. \
          Admission decides with the bounds of the disks' profiles, which are met seldom: so a \
          disk is less busy than it is promised.",
            None,
        ),
        (
            "late: a request under contract that the disk ended after its deadline. not ready: a \
          program that kept to its contract found its window empty (or full, where it writes), had an \
          answer later than promised by its own clock, or had fewer bytes than its rate promises.",
            None,
        ),
        (
            "slowed to its contract: the program wanted more than it had asked for, or sooner. \
          That harms nobody else and breaks no promise.",
            None,
        ),
        (
            "±: half of the 95 % confidence interval of a mean over the runs (Student's t). Counts \
          are of all runs together; p99 is the time that 99 of 100 did not exceed, to within a \
          sixteenth.",
            None,
        ),
        (
            "over its bound: commands that took longer than the disk's profile says. What follows \
          from that is the disk's fault, and is named so.",
            None,
        ),
    ]);
}
