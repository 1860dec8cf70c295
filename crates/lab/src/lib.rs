//! The laboratory: experiments of the papers, ours beside theirs.
//!
//! One job: run an [`Experiment`] and say of each claim of a paper whether we found
//! it [kept](Verdict::Kept), [exceeded](Verdict::Exceeded),
//! [calibrated](Verdict::Calibrated), [contradicted](Verdict::Contradicted) or [not to be
//! reproduced](Verdict::NotReproducible). Every verdict comes from a check that can
//! fail. A contradiction that nobody has explained makes the run fail, and so does one
//! that has left the range that its reason explains ([`At`]).
//!
//! [`contents()`] lists every figure and table of the papers, with what became of each.
//!
//! [`catalogue`] lists the experiments; each has a folder below
//! `src/experiments/`. README.md says how one is added.

mod by_hand;
mod claim;
mod closed_loop;
mod contents;
mod effort;
mod experiment;
mod experiments;
mod pages;
mod reason;
mod run;
mod summary;

pub use claim::{Claim, Verdict, Whose};
pub use contents::{Place, Printed, contents};
pub use effort::Effort;
pub use experiment::{Experiment, Findings, Paper};
pub use experiments::catalogue;
pub use pages::pages;
pub use reason::At;
pub use run::{Ended, News, Run, run};
pub use summary::{Counts, sentences};
