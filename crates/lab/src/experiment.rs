//! What an experiment is, and what it finds.

use crate::{Claim, Run};
use report::{Chart, Table};
use serde::Serialize;

/// Where a claim was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// P. Bosch, Mixed-Media File Systems, thesis, University of Twente, 1999.
    Clockwise,
    /// Z. Dimitrijevic, R. Rangaswami and E. Chang, Design and Implementation of
    /// Semi-preemptible IO, FAST 2003.
    SemiPreemptible,
    /// Z. Dimitrijevic and R. Rangaswami, Quality of Service Support for Real-time
    /// Storage Systems, 2003.
    Qos,
    /// W. Almesberger and B. van den Brink, Active Block I/O Scheduling System, 2004
    /// and 2005.
    Abiss,
    /// No paper: beside the schedulers of the kernel, in real time.
    Peers,
}

impl Paper {
    /// How the names of its experiments begin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clockwise => "clockwise",
            Self::SemiPreemptible => "semi",
            Self::Qos => "qos",
            Self::Abiss => "abiss",
            Self::Peers => "peers",
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Clockwise => "Clockwise (Bosch, 1999)",
            Self::SemiPreemptible => "Semi-preemptible I/O (Dimitrijevic et al., 2003)",
            Self::Qos => "QoS scheduler (Dimitrijevic and Rangaswami, 2003)",
            Self::Abiss => "ABISS (Almesberger and van den Brink, 2004-05)",
            Self::Peers => "Beside the kernel's schedulers",
        }
    }
}

/// One experiment: a figure, a table or a section of a paper.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// What `lab run` calls it: the paper, then the figure, such as
    /// `clockwise-fig-6.5`.
    pub name: &'static str,
    /// Where it was printed.
    pub paper: Paper,
    /// What it shows, in a few words.
    pub title: &'static str,
    /// What the paper did and what it says came of it, in our words.
    pub claim: &'static str,
    /// What we run instead: disks, streams, load, and where we had to choose.
    pub setup: &'static str,
    /// Whether it takes the time that it takes and wants the machine for itself;
    /// otherwise it runs in simulated time, beside others.
    pub real_time: bool,
    /// Runs it.
    pub run: fn(&Run<'_>) -> Findings,
}

/// What an experiment found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Each claim with its verdict; never none.
    pub claims: Vec<Claim>,
    /// Figures, each with a caption: theirs beside ours where theirs are printed.
    pub tables: Vec<(String, Table)>,
    /// Pictures.
    pub charts: Vec<Chart>,
    /// What else a reader should know.
    pub notes: Vec<String>,
}

impl Findings {
    /// Adds a claim.
    pub fn claim(&mut self, claim: Claim) -> &mut Self {
        self.claims.push(claim);
        self
    }

    /// Adds a table.
    pub fn table(&mut self, caption: impl Into<String>, table: Table) -> &mut Self {
        self.tables.push((caption.into(), table));
        self
    }

    /// Adds a picture.
    pub fn chart(&mut self, chart: Chart) -> &mut Self {
        self.charts.push(chart);
        self
    }

    /// Adds a remark.
    pub fn note(&mut self, words: impl Into<String>) -> &mut Self {
        self.notes.push(words.into());
        self
    }
}
