//! What if: a person's mix of streams, load, disks and faults, played by the
//! *production* [`node::Node`] in simulated time.
//!
//! One job: from a [`Scenario`] and a seed to an [`Outcome`]. The disks keep metadata
//! only and programs look at no bytes, so that a day takes minutes and the memory that
//! it takes does not depend on how long it is. Equal scenarios and seeds have equal
//! outcomes, on every machine and with any number of threads.
//!
//! No floating point decides anything here; what several seeds say together is for
//! people ([`crate::runs`]).

mod faults;
mod generated;
mod judge;
mod ledger;
mod load;
mod outcome;
mod plan;
mod run;
mod setup;
mod stream;

pub use generated::Like;
pub use outcome::{
    Bin, Cause, ClassOutcome, DiskOutcome, Latencies, Miss, Outcome, PowerCut, TIMELINE_BINS,
};
pub use plan::{
    Arrivals, DiskPlan, DriveKind, FaultKind, FaultPlan, LoadPlan, MakeSource, Pace, Place,
    Scenario, StreamPlan,
};
pub use run::{Control, run, run_all};
pub use setup::SetupError;
