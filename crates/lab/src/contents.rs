//! Table of contents: every figure and table that the papers print, in their order, and
//! what became of it here. It shows what is left out.
//!
//! Invariant: a number that a paper prints is in the list once; a test holds the list
//! against how many there are, and against the experiments.

use crate::Paper;

/// Where a figure or a table is found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In these experiments.
    Experiments(&'static [&'static str]),
    /// In none, since it shows nothing that was measured.
    Drawing(&'static str),
    /// In none, since a model or a generator is made of it, and would show it again.
    PutIn(&'static str),
    /// It is not reproduced, and this is why.
    Left(&'static str),
}

/// A figure or a table.
#[derive(Clone, Copy, Debug)]
pub struct Printed {
    /// Who prints it.
    pub paper: Paper,
    /// What the paper calls it: `figure 6.5`.
    pub name: &'static str,
    /// What it shows, in a few words of ours.
    pub title: &'static str,
    /// What became of it.
    pub place: Place,
}

/// Every figure and table of the papers.
pub fn contents() -> impl Iterator<Item = Printed> {
    let of = |(paper, rows): (Paper, &'static [Row])| {
        rows.iter().map(move |&(name, title, place)| Printed { paper, name, title, place })
    };
    ALL.into_iter().flat_map(of)
}

type Row = (&'static str, &'static str, Place);

const ALL: [(Paper, &[Row]); 4] = [
    (Paper::Clockwise, CLOCKWISE),
    (Paper::SemiPreemptible, SEMI_PREEMPTIBLE),
    (Paper::Qos, QOS),
    (Paper::Abiss, ABISS),
];

const DRAWN: &str = "a drawing; nothing is measured";

use Place::{Drawing, Experiments, Left, PutIn};

const CLOCKWISE: &[Row] = &[
    ("figure 1.1", "Hardware of a mixed-media file system", Drawing(DRAWN)),
    (
        "table 2.1",
        "Overview of file systems",
        Drawing("a survey of the literature; nothing is measured"),
    ),
    ("figure 3.1", "Frame sizes over time", Experiments(&["clockwise-fig-3.1"])),
    ("figure 3.2", "Delay between blocks, distribution", Experiments(&["clockwise-fig-3.2"])),
    ("figure 3.3", "Delay between blocks, mean and deviation", Experiments(&["clockwise-fig-3.3"])),
    (
        "table 3.1",
        "Load of the file system Sprite",
        Left("repeated from another paper, whose traces were not published with the thesis"),
    ),
    (
        "table 3.2",
        "Disks of the traced machines",
        PutIn("what the machines had; the generator's sizes are taken from it"),
    ),
    ("table 3.3", "Load of a disk by configuration", Experiments(&["clockwise-table-3.3"])),
    ("figure 3.4", "Cello's load by the hour", Experiments(&["clockwise-fig-3.4"])),
    ("table 3.4", "Cello's highest load of an hour", Experiments(&["clockwise-fig-3.4"])),
    ("figure 3.5", "Cello's load by the minute, disks 0 to 3", Experiments(&["clockwise-fig-3.5"])),
    ("figure 3.6", "Cello's load by the minute, disks 4 to 7", Experiments(&["clockwise-fig-3.5"])),
    ("table 3.5", "Cello's highest load of a minute", Experiments(&["clockwise-fig-3.5"])),
    ("figure 4.1", "A workstation's hardware", Drawing(DRAWN)),
    ("figure 4.2", "A disk's mechanism", Drawing(DRAWN)),
    ("figure 4.3", "A Pentium Pro with PCI", Drawing(DRAWN)),
    (
        "figure 4.4",
        "Bandwidth of PCI by burst and device select",
        Experiments(&["clockwise-fig-4.16"]),
    ),
    ("table 4.1", "Zones of the Atlas-II", Experiments(&["clockwise-table-4.1"])),
    ("figure 4.5", "Seek times of the Atlas-II", Experiments(&["clockwise-fig-4.5"])),
    (
        "figure 4.6",
        "Writes as the Atlas-II leaves the factory",
        Experiments(&["clockwise-fig-4.6"]),
    ),
    ("figure 4.7", "Reads without a cache", Experiments(&["clockwise-fig-4.7"])),
    ("figure 4.8", "The bus while a track is read", Experiments(&["clockwise-fig-4.8"])),
    ("figure 4.9", "The bus while two tracks are read", Experiments(&["clockwise-fig-4.8"])),
    ("figure 4.10", "Writes without a cache", Experiments(&["clockwise-fig-4.10"])),
    ("figure 4.11", "The bus while a track is written", Experiments(&["clockwise-fig-4.11"])),
    (
        "figure 4.12",
        "The bus while a track and ten sectors are written",
        Experiments(&["clockwise-fig-4.11"]),
    ),
    (
        "figure 4.13",
        "One to four disks with short PCI bursts",
        Left("how much a PCI transaction moved then is not printed, only that it was a few bytes"),
    ),
    ("figure 4.14", "One to four disks with PCI in bursts", Experiments(&["clockwise-fig-4.14"])),
    ("figure 4.15", "A PCI transaction, aligned read", Experiments(&["clockwise-fig-4.16"])),
    ("figure 4.16", "A PCI transaction, burst", Experiments(&["clockwise-fig-4.16"])),
    ("figure 4.17", "Up to twelve Cheetahs", Experiments(&["clockwise-fig-4.17"])),
    ("figure 4.18", "Conflicts on the PCI bus", Experiments(&["clockwise-fig-4.18"])),
    (
        "figure 4.19",
        "Network bandwidth by packet size",
        Left("a measurement of an ATM card; Slackline has no network of its own to measure"),
    ),
    ("figure 5.1", "Clockwise, the movie", Drawing(DRAWN)),
    ("figure 5.2", "Layout of a disk", Drawing(DRAWN)),
    ("figure 5.3", "The file systems of NetBSD in Clockwise", Drawing(DRAWN)),
    ("figure 5.4", "The continuous-media system", Drawing(DRAWN)),
    ("figure 5.5", "A continuous-media application at work", Drawing(DRAWN)),
    ("table 6.1", "Terms", Drawing("definitions; nothing is measured")),
    ("figure 6.1", "Preemptive schedule", Experiments(&["clockwise-section-6.2"])),
    ("figure 6.2", "Schedule without preemption", Experiments(&["clockwise-section-6.2"])),
    ("table 6.2", "A set that USD admits and is late with", Experiments(&["clockwise-table-6.2"])),
    ("figure 6.3", "That set, scheduled", Experiments(&["clockwise-table-6.2"])),
    ("table 6.3", "Bandwidth and periods of movies", Experiments(&["clockwise-table-6.3"])),
    ("table 6.4", "Service times by zone", Experiments(&["clockwise-table-6.4"])),
    ("table 6.5", "Load on June 1st, 1992", Experiments(&["clockwise-table-6.5"])),
    ("figure 6.4", "Static slack by load", Experiments(&["clockwise-fig-6.4"])),
    ("figure 6.5", "Best-effort latency, rotation", Experiments(&["clockwise-fig-6.5"])),
    ("figure 6.6", "Changes and runs of best effort", Experiments(&["clockwise-fig-6.6"])),
    ("figure 6.7", "Best-effort latency, blocks anywhere", Experiments(&["clockwise-fig-6.7"])),
    ("figure 6.8", "Blocks anywhere beside blocks in groups", Experiments(&["clockwise-fig-6.7"])),
    ("figure 6.9", "Using time planned too long", Experiments(&["clockwise-fig-6.9"])),
    ("figure 6.10", "Streams on single disks, small blocks", Experiments(&["clockwise-fig-6.10"])),
    ("figure 6.11", "Streams on single disks, large blocks", Experiments(&["clockwise-fig-6.10"])),
    ("figure 6.12", "Requests of disk 5", Experiments(&["clockwise-fig-6.13"])),
    ("figure 6.13", "Best effort with a contract", Experiments(&["clockwise-fig-6.13"])),
    ("figure 6.14", "A stream that asks for too much", Experiments(&["clockwise-fig-6.14"])),
    ("table 7.1", "Load of the busiest 1,300 s", Experiments(&["clockwise-fig-7.1"])),
    (
        "figure 7.1",
        "Measured and simulated, first disks",
        Experiments(&["clockwise-fig-7.1", "clockwise-section-7.1"]),
    ),
    (
        "figure 7.2",
        "Measured and simulated, other disks",
        Experiments(&["clockwise-fig-7.1", "clockwise-section-7.1"]),
    ),
    ("figure 7.3", "Blocks of a volume, zone 0", Experiments(&["clockwise-fig-7.3"])),
    ("figure 7.4", "Blocks of a volume, zone 11", Experiments(&["clockwise-fig-7.3"])),
    ("figure 7.5", "Mean times with a cache of remainders", Experiments(&["clockwise-fig-7.5"])),
    ("figure 7.6", "Blocks of 512 KB with that cache", Experiments(&["clockwise-fig-7.5"])),
    ("figure 7.7", "Writes of whole tracks", Experiments(&["clockwise-fig-7.7"])),
    ("figure 7.8", "Writes of 1 MB", Experiments(&["clockwise-fig-7.7"])),
    ("figure 7.9", "A volume on several disks", Experiments(&["clockwise-fig-7.9"])),
    ("figure 7.10", "One to six Cheetahs", Experiments(&["clockwise-fig-7.10"])),
    ("figure 7.11", "Network and disks on one PCI bus", Experiments(&["clockwise-fig-7.11"])),
    (
        "table 7.2",
        "Processor load of one to six Cheetahs",
        Left("of a Pentium Pro at 200 MHz; what our decisions cost is measured by make bench"),
    ),
    ("figure 8.1", "One to three disks on a bus", Experiments(&["clockwise-fig-8.1"])),
];

const SEMI_PREEMPTIBLE: &[Row] = &[
    ("figure 1", "A read as a sequence of times", Drawing(DRAWN)),
    ("figure 2", "Virtual preemption of a transfer", Drawing(DRAWN)),
    (
        "figure 3",
        "Chunk size and throughput, sketched",
        Drawing("a sketch without numbers; figure 5 is its measurement"),
    ),
    ("figure 4", "Just-in-time seek", Drawing(DRAWN)),
    ("figure 5", "Sequential reads by chunk", Experiments(&["semi-fig-5"])),
    ("figure 6", "Sequential writes by chunk", Experiments(&["semi-fig-5"])),
    (
        "figure 7",
        "Processor's use by chunk",
        Left(
            "in simulated time a command costs no processor; what ours cost is measured by make bench",
        ),
    ),
    ("figure 8", "Seek curve", Experiments(&["semi-fig-8"])),
    ("figure 9", "Expected waiting, first come first served", Experiments(&["semi-fig-9"])),
    ("figure 10", "Expected waiting, elevator", Experiments(&["semi-fig-10"])),
    ("figure 11", "Throughput, first come first served", Experiments(&["semi-fig-9"])),
    ("figure 12", "Throughput, elevator", Experiments(&["semi-fig-10"])),
    ("figure 13", "Durations of commands", Experiments(&["semi-fig-13"])),
    ("figure 14", "Expected waiting, traces", Experiments(&["semi-fig-14"])),
    ("figure 15", "Throughput, traces", Experiments(&["semi-fig-14"])),
    ("figure 16", "Contributions to waiting", Experiments(&["semi-fig-16"])),
    ("figure 17", "Contributions to throughput", Experiments(&["semi-fig-16"])),
    (
        "table 1",
        "The traces in figures",
        PutIn("the traces were not published; the stand-ins of semi-fig-14 have these figures"),
    ),
    ("table 2", "Urgent reads beside reads", Experiments(&["semi-table-2"])),
    ("table 3", "Waiting for reads and writes", Experiments(&["semi-table-3"])),
    ("table 4", "Urgent reads beside writes", Experiments(&["semi-table-4"])),
];

const QOS: &[Row] = &[
    ("table I", "Applications that storage binds", Drawing("a survey; nothing is measured")),
    ("table II", "Disk schedulers", Drawing("a survey; nothing is measured")),
    ("table III", "Commands of the interface", Drawing("an interface; nothing is measured")),
    ("figure 1", "Hierarchical scheduler", Drawing(DRAWN)),
    ("figure 2", "Scheduler in cycles", Drawing(DRAWN)),
    ("figure 3", "The kernel's architecture", Drawing(DRAWN)),
    ("figure 4", "A program with high priority", Drawing(DRAWN)),
    ("figure 5", "High priority beside constant rates", Experiments(&["qos-fig-5"])),
    ("figure 6", "High priority beside greedy readers", Experiments(&["qos-fig-6"])),
    ("figure 7", "Response times", Experiments(&["qos-fig-7"])),
    (
        "section IV, announced",
        "Guaranteed latency, for the final version",
        Experiments(&["qos-guaranteed-latency"]),
    ),
];

const ABISS: &[Row] = &[
    ("figure 1", "Architecture", Drawing(DRAWN)),
    ("figure 2", "Solutions", Drawing(DRAWN)),
    ("figure 3", "Reading a page", Drawing(DRAWN)),
    ("figure 4", "Playout buffer moves", Drawing(DRAWN)),
    ("figure 5", "Playout buffer", Drawing(DRAWN)),
    ("figure 6", "Movement is controlled", Drawing(DRAWN)),
    ("figure 7", "Credit", Drawing(DRAWN)),
    ("figure 8", "Limit", Drawing(DRAWN)),
    ("figure 9", "Batches of one file", Drawing(DRAWN)),
    ("figure 10", "Batches of several files", Drawing(DRAWN)),
    ("figure 11", "Writing a page", Drawing(DRAWN)),
    ("figure 12", "Writing with delayed allocation", Drawing(DRAWN)),
    ("figure 13", "Main loop of rwrt", Drawing(DRAWN)),
    (
        "figure 14",
        "Jitter",
        Experiments(&["abiss-fig-14-reading", "abiss-fig-14-writing", "abiss-fig-14-timeshifting"]),
    ),
    (
        "slides, BE performance",
        "Best effort by elevator",
        Experiments(&["abiss-slides-best-effort", "abiss-slides-rules"]),
    ),
    (
        "slides, latency plots",
        "Latency of reads under six elevators",
        Experiments(&["abiss-slides-latency"]),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    /// Of chapter or paper `of`: the numbers from 1 on, as many as the paper prints.
    fn numbers(paper: Paper, kind: &str, of: &str) -> Vec<u32> {
        let prefix = format!("{kind} {of}");
        let rows = contents().filter(|row| row.paper == paper);
        let numbers = rows.filter_map(|row| row.name.strip_prefix(&prefix)?.parse().ok());
        numbers.collect()
    }

    fn up_to(last: u32) -> Vec<u32> {
        (1..=last).collect()
    }

    #[test]
    fn every_figure_and_table_that_is_printed_has_a_row() {
        let figures = [("1.", 1), ("3.", 6), ("4.", 19), ("5.", 5), ("6.", 14), ("7.", 11)];
        for (chapter, last) in figures.into_iter().chain([("8.", 1)]) {
            let found = numbers(Paper::Clockwise, "figure", chapter);
            assert_eq!(found, up_to(last), "figures of chapter {chapter}");
        }
        for (chapter, last) in [("2.", 1), ("3.", 5), ("4.", 1), ("6.", 5), ("7.", 2)] {
            let mut found = numbers(Paper::Clockwise, "table", chapter);
            found.sort_unstable();
            assert_eq!(found, up_to(last), "tables of chapter {chapter}");
        }
        assert_eq!(numbers(Paper::SemiPreemptible, "figure", ""), up_to(17));
        assert_eq!(numbers(Paper::SemiPreemptible, "table", ""), up_to(4));
        assert_eq!(numbers(Paper::Qos, "figure", ""), up_to(7));
        assert_eq!(contents().filter(|row| row.name.starts_with("table I")).count(), 3);
        let announced = contents().filter(|row| row.name.ends_with("announced"));
        assert_eq!(announced.count(), 1, "the UCSB paper announces one experiment more");
        assert_eq!(numbers(Paper::Abiss, "figure", ""), up_to(14));
        let slides = contents().filter(|row| row.name.starts_with("slides"));
        assert_eq!(slides.count(), 2, "the slides print one table and one set of plots");
        let of_thesis = contents().filter(|row| row.paper == Paper::Clockwise).count();
        assert_eq!((of_thesis, contents().count()), (71, 71 + 21 + 11 + 16), "and no other");
    }

    #[test]
    fn a_row_names_experiments_that_there_are_or_says_why_not() {
        let names: Vec<&str> = catalogue().iter().map(|experiment| experiment.name).collect();
        for row in contents() {
            match row.place {
                Experiments(of) => {
                    assert!(!of.is_empty(), "{}", row.name);
                    for name in of {
                        assert!(names.contains(name), "{}: no experiment {name}", row.name);
                    }
                }
                Drawing(why) | PutIn(why) | Left(why) => assert!(!why.is_empty(), "{}", row.name),
            }
        }
    }

    #[test]
    fn each_experiment_of_a_figure_or_table_stands_in_a_row() {
        for experiment in catalogue() {
            let is_numbered =
                experiment.name.contains("-fig-") || experiment.name.contains("-table-");
            let listed = |row: Printed| match row.place {
                Experiments(of) => of.contains(&experiment.name),
                _ => false,
            };
            assert!(!is_numbered || contents().any(listed), "{}", experiment.name);
        }
    }
}
