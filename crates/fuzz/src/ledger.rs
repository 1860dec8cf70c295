//! What was asked so far, over all runs: `docs/fuzzing-ledger.tsv`, which `scripts/fuzz record`
//! adds to, read and summed.
//!
//! A row is a surface, the commit that was asked (`+` behind it: with changes), how many inputs,
//! seconds by the clock, seconds that a processor had for it, and how many inputs were not stood.
//! Invariant: a sum is of rows that libFuzzer's own count stands in; nothing is estimated but what
//! is left.

use crate::{SURFACES, Surface};

/// How many inputs each surface shall be asked about.
pub const INPUTS: u64 = 100_000_000;

/// The first line of the file.
pub const HEAD: &str = "surface\tcommit\tinputs\tseconds\tprocessor_seconds\tfindings";

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which surface.
    pub surface: &'static str,
    /// What was built.
    pub commit: String,
    /// How many inputs libFuzzer says that it tried.
    pub inputs: u64,
    /// How long that took.
    pub seconds: u64,
    /// For how long of that a processor did it.
    pub processor_seconds: u64,
    /// How many inputs the surface did not stand.
    pub findings: u64,
}

/// What all rows of a surface say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Inputs of all rows.
    pub inputs: u64,
    /// Time of a processor in all rows, in seconds.
    pub processor_seconds: u64,
    /// Inputs that were not stood, in all rows.
    pub findings: u64,
    /// Inputs in each second of a processor, in the last row: the rate of today.
    pub rate: u64,
}

impl Sum {
    /// How many hours of one processor are left until [`INPUTS`], at the rate of the last row;
    /// none where no row says a rate.
    pub fn hours_left(&self) -> Option<f64> {
        let left = INPUTS.saturating_sub(self.inputs);
        (self.rate > 0).then(|| left as f64 / self.rate as f64 / 3600.0)
    }
}

/// The rows of the file.
///
/// # Errors
/// The first line that is none, and why.
pub fn rows(text: &str) -> Result<Vec<Row>, String> {
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, line)| line) != Some(HEAD) {
        return Err(format!("line 1 is not: {HEAD}"));
    }
    lines.map(|(at, line)| row(line).map_err(|why| format!("line {}: {why}", at + 1))).collect()
}

fn row(line: &str) -> Result<Row, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [surface, commit, numbers @ ..] = &fields[..] else { return Err("too short".into()) };
    let numbers: Result<Vec<u64>, _> = numbers.iter().map(|number| number.parse()).collect();
    let Ok([inputs, seconds, processor_seconds, findings]) = numbers.as_deref() else {
        return Err("four numbers stand behind the commit".into());
    };
    let surface = Surface::named(surface).ok_or(format!("there is no surface {surface}"))?.name;
    let hash = commit.strip_suffix('+').unwrap_or(commit);
    if hash.len() != 12 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(format!("{commit} is no commit of 12 digits"));
    }
    // One process has one processor; what reads a clock and what counts ticks may differ a little.
    if *processor_seconds > seconds + seconds / 10 + 2 {
        return Err(format!("{processor_seconds} s of a processor in {seconds} s"));
    }
    Ok(Row {
        surface,
        commit: (*commit).into(),
        inputs: *inputs,
        seconds: *seconds,
        processor_seconds: *processor_seconds,
        findings: *findings,
    })
}

/// The sum for each surface, in their order.
pub fn sums(rows: &[Row]) -> Vec<(&'static str, Sum)> {
    let sum = |surface: &Surface| {
        let of = rows.iter().filter(|row| row.surface == surface.name);
        let sum = of.fold(Sum::default(), |sum, row| Sum {
            inputs: sum.inputs + row.inputs,
            processor_seconds: sum.processor_seconds + row.processor_seconds,
            findings: sum.findings + row.findings,
            rate: row.inputs.checked_div(row.processor_seconds).unwrap_or(sum.rate),
        });
        (surface.name, sum)
    };
    SURFACES.iter().map(sum).collect()
}

/// The sums as a table for people.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:15} {:>12} {:>12} {:>9} {:>9} {:>10}\n",
        "surface", "inputs", "processor s", "a second", "findings", "hours left"
    );
    for (name, sum) in sums(rows) {
        let left = sum.hours_left().map_or("unknown".into(), |hours| format!("{hours:.1}"));
        text += &format!(
            "{name:15} {:>12} {:>12} {:>9} {:>9} {left:>10}\n",
            sum.inputs, sum.processor_seconds, sum.rate, sum.findings
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lines: &str) -> Result<Vec<Row>, String> {
        rows(&format!("{HEAD}\n{lines}"))
    }

    #[test]
    fn rows_of_a_surface_are_summed_and_the_last_one_says_the_rate() {
        let rows = with(
            "frames\t0123456789ab\t1000\t10\t10\t1\n\
             nbd\t0123456789ab\t7\t1\t1\t0\n\
             frames\tba9876543210+\t99000\t9\t9\t0\n",
        )
        .expect("rows");
        let sum = |name| sums(&rows).into_iter().find(|(of, _)| *of == name).expect("it is").1;
        let frames = sum("frames");
        assert_eq!((frames.inputs, frames.processor_seconds, frames.findings), (100_000, 19, 1));
        assert_eq!(frames.rate, 11_000);
        let hours = frames.hours_left().expect("a rate");
        assert!((hours - 99_900_000.0 / 11_000.0 / 3600.0).abs() < 1e-9);
        assert_eq!(sum("token"), Sum::default());
        assert_eq!(sum("token").hours_left(), None);
    }

    #[test]
    fn what_is_no_row_is_refused_with_its_line() {
        let good = "frames\t0123456789ab\t1000\t10\t10\t1";
        for (wrong, why) in [
            (good.replace("frames", "farms"), "no surface farms"),
            (good.replace("89ab", "89xy"), "no commit"),
            (good.replace("0123456789ab", "0123"), "no commit"),
            (good.replace("1000", "-1000"), "four numbers"),
            (good.replace("\t1000", ""), "four numbers"),
            (good.replace("\t10\t10", "\t10\t100"), "100 s of a processor in 10 s"),
            (String::new(), "too short"),
        ] {
            let told = with(&format!("{good}\n{wrong}\n")).expect_err("it is wrong");
            assert!(told.starts_with("line 3: ") && told.contains(why), "{told}");
        }
        assert!(rows(good).is_err(), "without a head");
    }

    /// What stands in the repository can be summed.
    #[test]
    fn the_ledger_is_one() {
        let rows = rows(include_str!("../../../docs/fuzzing-ledger.tsv")).expect("rows");
        assert!(!table(&rows).is_empty() && !rows.is_empty());
    }
}
