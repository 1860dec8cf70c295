//! The laboratory: experiments of the papers, ours beside theirs.
//!
//! One job: run an [`Experiment`] and say of each claim of a paper whether we found
//! it [kept](Verdict::Kept), [exceeded](Verdict::Exceeded),
//! [contradicted](Verdict::Contradicted) or [not to be
//! reproduced](Verdict::NotReproducible). Every verdict comes from a check that can
//! fail. A contradiction that nobody has explained makes the run fail.
//!
//! [`catalogue`] lists the experiments; each has a folder below
//! `src/experiments/`. README.md says how one is added.

mod by_hand;
mod claim;
mod experiment;
mod experiments;
mod pages;
mod run;

pub use claim::{Claim, Verdict};
pub use experiment::{Experiment, Findings, Paper};
pub use experiments::catalogue;
pub use pages::pages;
pub use run::{Effort, Ended, News, Run, run};
