//! The command. Each subcommand has a file of its own; this one holds the line
//! of arguments and the exit codes. It is a library so that what it reads of files can
//! be asked without a process ([`reading`]).
//!
//! Invariants: results go to standard output, everything else to standard error;
//! every failure says in one line what, and in one line what to do next.

mod appending;
mod cameras;
mod completing;
mod confirm;
mod contract;
mod copy;
mod demo;
mod disk;
mod events;
mod explain;
mod export;
mod failure;
mod files;
mod given;
mod interrupts;
mod lab;
mod moment;
mod mount;
mod nbd;
mod output;
mod pausing;
mod permissions;
mod plan;
mod play;
mod pool;
mod progress;
mod quota;
pub mod reading;
mod record;
mod rwrt;
mod serve;
mod simulate;
mod slow;
mod source;
mod status;
mod stream;
mod summary;
mod target;
mod token;
mod top;
mod unreadable;
mod volume;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use client::Client;
use failure::Failure;
use output::Output;
use std::path::PathBuf;
use std::process::ExitCode;

/// A storage server that keeps time.
///
/// Programs ask for a contract: so many bytes a second, in blocks of such a
/// size. Slackline refuses it, with the reason, or keeps it on every request.
#[derive(Parser)]
#[command(name = "slackline", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Sizes are written as 64k, 8MiB or 2MB (a bare letter and the iB forms count in 1024; 65536 or more \
without a unit are bytes), rates as 1MB/s, 800KiB/s or 25Mbit/s, times as 250ms or 1.5s.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused by admission or a quota, 4 recorded, but \
the source was faster than its contract.";

/// What every subcommand understands.
#[derive(clap::Args)]
struct Common {
    /// The daemon's control socket [env: SLACKLINE_SOCKET] [default: that of your own daemon in
    /// $XDG_RUNTIME_DIR, else /run/slackline/slackline.sock]
    // What clap itself has from the environment it shows in each line of usage, as if it were
    // required.
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

impl Common {
    fn socket(&self) -> PathBuf {
        self.named_socket().unwrap_or_else(client::default_socket)
    }

    /// The one that the line of arguments names, or else the environment.
    fn named_socket(&self) -> Option<PathBuf> {
        self.socket.clone().or_else(named_by_environment)
    }

    fn client(&self) -> Result<Client, Failure> {
        // A daemon says at once that it is there; what is asked then may take longer.
        client::set_answer_within(HELLO_WITHIN);
        let connected = Client::connect(self.socket());
        client::set_answer_within(std::time::Duration::ZERO);
        Ok(connected?)
    }

    fn output(&self) -> Output {
        Output { json: self.json }
    }
}

/// A daemon that has not said for so long that it is there hangs.
const HELLO_WITHIN: std::time::Duration = std::time::Duration::from_secs(15);

/// The daemon's control socket, where the environment names one.
fn named_by_environment() -> Option<PathBuf> {
    std::env::var_os("SLACKLINE_SOCKET").filter(|it| !it.is_empty()).map(PathBuf::from)
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(serve::Args),
    /// Tell on one screen whether contracts are kept, and what needs somebody
    ///
    /// Says what is broken or needs a look, and what to do about it; then each disk, and what each
    /// stream asked for and got. Ends with 0 also where something is broken: `--json` has `sound`
    /// for scripts.
    Status,
    Top(top::Args),
    Events(events::Args),
    /// Make, show and check pools
    #[command(subcommand)]
    Pool(pool::Command),
    /// Make, show, resize, serve and delete volumes
    #[command(subcommand)]
    Volume(volume::Command),
    /// Show, change and close streams
    #[command(subcommand)]
    Stream(stream::Command),
    /// Show the devices that have ordinary files under contract, and what disturbed them
    Files,
    /// Show how much of the pool each user may hold, and holds
    Quota,
    /// Make, narrow, show, list and revoke tokens, which let others do less over TCP
    #[command(subcommand)]
    Token(token::Command),
    Record(record::Args),
    Play(play::Args),
    Cameras(cameras::Args),
    Export(export::Args),
    Mount(mount::Args),
    Unmount(mount::UnmountArgs),
    Nbd(nbd::Args),
    Rwrt(rwrt::Args),
    Plan(plan::Args),
    Simulate(simulate::Args),
    /// Disk models, and what a disk costs
    #[command(subcommand)]
    Disk(disk::Command),
    /// The experiments of the papers, theirs beside ours
    #[command(subcommand)]
    Lab(lab::Command),
    /// Print completions for a shell
    ///
    /// `make install` and the package put them where shells look. They ask this command at each press
    /// of the key: volumes, streams and disks are those of the daemon that runs. For bash elsewhere:
    /// `source <(slackline completions bash)`.
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages of this command and of all its subcommands
    Man {
        /// Where to, for example /usr/local/share/man/man1
        directory: PathBuf,
    },
}

/// The command, from its line of arguments to its exit code.
pub fn main() -> ExitCode {
    completing::answer(Cli::command);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(error),
    };
    let result = run(cli.command, &cli.common);
    result.map_or_else(|failure| failure.report(cli.common.json), |()| ExitCode::SUCCESS)
}

/// Says what was wrong with the line of arguments, or what was asked for, as help: to a program,
/// which has `--json` in it, as JSON.
fn misused(mut error: clap::Error) -> ExitCode {
    let arguments = std::env::args_os().map(|it| it.to_string_lossy().into_owned());
    let may_be = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::UnknownArgument);
    let together = apart(&arguments.collect::<Vec<_>>()).filter(|_| may_be);
    let below = matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(it)) if is_below_zero(it));
    let tip = together.map(|it| format!("write it without a space before the unit: {it}"));
    let tip = tip.or_else(|| below.then(|| "give 0 or more: nothing here is below zero".into()));
    if let Some(tip) = &tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let lines: Vec<&str> =
            text.lines().map(str::trim).take_while(|it| !it.is_empty()).collect();
        let what = match error.kind() {
            // What clap has to say there is its help.
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a subcommand is missing".into(),
            _ => lines.join(" "),
        };
        let what = what.strip_prefix("error: ").unwrap_or(&what);
        let help = "`slackline --help` has the commands, and each its own";
        return Failure::usage(what, tip.unwrap_or_else(|| help.into())).report(true);
    }
    error.exit()
}

/// A negative number, of which clap says that it may come behind `--`, where it is no option's value.
fn is_below_zero(argument: &str) -> bool {
    let number = argument.strip_prefix('-');
    number.is_some_and(|it| it.starts_with(|first: char| first.is_ascii_digit()))
}

/// A number and its unit that came as two arguments, as they would be one.
fn apart(arguments: &[String]) -> Option<String> {
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let pairs = arguments.windows(2).filter(|pair| is_number(&pair[0]) && !is_number(&pair[1]));
    pairs.map(|pair| pair.concat()).find(|text| {
        text.parse::<units::Bytes>().is_ok()
            || text.parse::<units::Rate>().is_ok()
            || text.parse::<units::Duration>().is_ok()
    })
}

fn run(command: Command, common: &Common) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => demo::run(&args, common),
        Command::Serve(args) => serve::run(args, common),
        Command::Status => status::run(common),
        Command::Top(args) => top::run(&args, common),
        Command::Events(args) => events::run(&args, common),
        Command::Pool(command) => pool::run(command, common),
        Command::Volume(command) => volume::run(command, common),
        Command::Stream(command) => stream::run(command, common),
        Command::Files => files::run(common),
        Command::Quota => quota::run(common),
        Command::Token(command) => token::run(command, common),
        Command::Record(args) => record::run(&args, common),
        Command::Play(args) => play::run(&args, common),
        Command::Cameras(args) => cameras::run(&args, common),
        Command::Export(args) => export::run(&args, common),
        Command::Mount(args) => mount::run(&args, common),
        Command::Unmount(args) => mount::unmount(&args),
        Command::Nbd(args) => nbd::run(&args, common),
        Command::Rwrt(args) => rwrt::run(&args, common),
        Command::Plan(args) => plan::run(&args, common),
        Command::Simulate(args) => simulate::run(&args, common),
        Command::Disk(command) => disk::run(command, common),
        Command::Lab(command) => lab::run(command, common),
        Command::Completions { shell } => {
            let text = completing::registration(shell)?;
            output::print(&text)
        }
        Command::Man { directory } => {
            // No page of its own for `help SUBCOMMAND`.
            fn pages(command: clap::Command) -> clap::Command {
                command.disable_help_subcommand(true).mut_subcommands(pages)
            }
            clap_mangen::generate_to(pages(Cli::command()), &directory)
                .map_err(|error| Failure::file(&directory, &error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_arguments_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_unit_that_stands_apart_from_its_number_is_found() {
        let apart =
            |line: &str| super::apart(&line.split(' ').map(String::from).collect::<Vec<_>>());
        assert_eq!(apart("volume create v --size 8 GiB").as_deref(), Some("8GiB"));
        assert_eq!(apart("record v --rate 1.5 MB/s").as_deref(), Some("1.5MB/s"));
        assert_eq!(apart("volume keep v 14 d").as_deref(), Some("14d"));
        for line in ["volume create v --size 8GiB", "volume create 8 --size 8", "play 8 film"] {
            assert_eq!(apart(line), None, "{line}");
        }
    }

    /// A line at the command's place here would take the place of all that its `Args` say.
    #[test]
    fn the_help_of_each_command_says_all_that_its_arguments_say() {
        for (name, says) in
            [("record", "--append"), ("play", "begins with /, ./ or ../"), ("serve", "--config")]
        {
            let mut command = Cli::command();
            let command = command.find_subcommand_mut(name).expect("it is there");
            let long = command.get_long_about().expect("more than a line").to_string();
            assert!(long.lines().count() > 2, "{name}: {long}");
            let help = command.render_long_help().to_string();
            assert!(help.contains(says), "{name}: {help}");
        }
    }

    #[test]
    fn the_help_of_serve_tells_the_defaults_as_they_are() {
        let mut command = Cli::command();
        let serve = command.find_subcommand_mut("serve").expect("it is there");
        let help = serve.render_long_help().to_string().split_whitespace().collect::<String>();
        let default = daemon::config::node_default();
        for value in [
            default.memory.to_string(),
            default.policy.to_string(),
            default.host_latency.to_string(),
            default.commit_interval.to_string(),
        ] {
            let wanted = format!("[default:{}]", value.replace(' ', ""));
            assert!(help.contains(&wanted), "{wanted}");
        }
    }
}
