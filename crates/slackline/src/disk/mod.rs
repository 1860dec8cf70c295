//! `slackline disk`: what disks are and what they cost.
//!
//! Invariant: nothing is written to a disk before a person has typed its name, or
//! a flag has said so.

mod emulate;
mod facts;
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
    /// Serve a disk model as a file, in real time, over FUSE
    ///
    /// Mounts a directory with `disk.img`, fit for `losetup --direct-io=on` and any
    /// program; `control`, which takes faults (`cat` shows them); `status` and
    /// `status.json`. A signal ends it as soon as nobody uses the disk; a second one
    /// ends it at once. At the end it prints what the drive did, and how late the
    /// emulator itself was.
    Emulate(emulate::Args),
}

/// Runs it.
pub fn run(command: Command, common: &Common) -> Result<(), Failure> {
    match command {
        Command::Models => show::models(common),
        Command::Show { what } => show::one(&what, common),
        Command::Profile(args) => measure::run(&args, common),
        Command::Emulate(args) => emulate::run(&args, common),
    }
}
