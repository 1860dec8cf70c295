//! `slackline disk`: what disks are and what they cost.
//!
//! Invariant: nothing is written to a disk before a person has typed its name, or
//! a flag has said so.

mod measure;
mod report;
mod show;

use crate::Common;
use crate::failure::Failure;

/// Disks.
#[derive(clap::Subcommand)]
pub enum Command {
    /// List the disk models that come with the program
    Models,
    /// Show a disk model, or a profile in a file
    Show {
        /// A model's name, or a file with a profile
        #[arg(value_name = "MODEL|FILE")]
        what: String,
    },
    /// Find out what a disk costs, by timing it from outside
    ///
    /// Reads only, unless told otherwise. A measurement that was stopped goes on when
    /// the same command is given again.
    Profile(measure::Args),
}

/// Runs it.
pub fn run(command: Command, common: &Common) -> Result<(), Failure> {
    match command {
        Command::Models => show::models(common),
        Command::Show { what } => show::one(&what, common),
        Command::Profile(args) => measure::run(&args, common),
    }
}
