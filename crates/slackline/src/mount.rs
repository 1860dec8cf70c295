//! `slackline mount` and `slackline unmount`: volumes as files.

use crate::Common;
use crate::failure::Failure;
use ::mount::{Mount, NotMounted, NotUnmounted, Options, Unmounter};
use serde::Serialize;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Mount the volumes as files below a directory
///
/// Programs read and write them as any files. A name with slashes lies under directories. The
/// mount is a process of its own, which goes on in the background; `slackline unmount` ends it.
#[derive(clap::Args)]
pub struct Args {
    /// The directory to mount on; it has to be there
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
    /// Nothing can be changed through it
    #[arg(long)]
    read_only: bool,
    /// Other users may use it too, each for what owner and mode let him; root only
    #[arg(long)]
    allow_other: bool,
    /// Stay in the foreground, until it is unmounted or SIGINT comes
    #[arg(long, short)]
    foreground: bool,
}

/// Unmount a directory
#[derive(clap::Args)]
pub struct UnmountArgs {
    /// The directory that is mounted
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// What was mounted.
#[derive(Serialize)]
struct Mounted {
    directory: String,
    read_only: bool,
    /// The process that serves it.
    process: u32,
}

/// Runs it.
pub fn run(args: &Args, common: &Common) -> Result<(), Failure> {
    // As seen from anywhere: the process in the background is somewhere else.
    let failed = |error: std::io::Error| {
        let what = format!("{}: {error}", args.directory.display());
        match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::NOTCONN.raw_os_error() => Failure::new(
                format!("{what}; the process of a mount there has gone"),
                format!("slackline unmount {}", report::quoted(&args.directory.to_string_lossy())),
            ),
            _ if error.kind() == std::io::ErrorKind::NotFound => {
                let quoted = report::quoted(&args.directory.to_string_lossy());
                Failure::new(what, format!("make it first: mkdir -p {quoted}"))
            }
            _ => Failure::new(what, "give a directory that is there"),
        }
    };
    let directory = args.directory.canonicalize().map_err(failed)?;
    if let Some(pool) = ::mount::pool_at(&directory).map_err(failed)? {
        let directory = directory.display().to_string();
        let what = format!("{directory} is a mount of pool {pool} already");
        let next = format!("use it, or `slackline unmount {}` first", report::quoted(&directory));
        return Err(Failure::new(what, next));
    }
    if !args.foreground {
        return in_background(args, &directory, common);
    }
    let options = Options {
        directory: directory.clone(),
        socket: common.socket(),
        read_only: args.read_only,
        allow_other: args.allow_other,
    };
    let signals = signal_hook::iterator::Signals::new(crate::interrupts::all())
        .map_err(|error| Failure::new(format!("signals: {error}"), ""))?;
    let mounted = Mount::start(&options).map_err(|error| not_mounted(error, &directory))?;
    told(args, &directory, std::process::id(), common)?;
    mounted
        .wait(|unmounter| end_on_signal(signals, unmounter))
        .map_err(|error| Failure::new(format!("the mount has failed: {error}"), "mount it again"))
}

fn told(args: &Args, directory: &Path, process: u32, common: &Common) -> Result<(), Failure> {
    let (directory, read_only) = (directory.display().to_string(), args.read_only);
    common.output().result(&Mounted { directory, read_only, process }, |mounted| {
        let how = if mounted.read_only { ", read-only" } else { "" };
        let directory = &mounted.directory;
        format!(
            "the volumes are files below {directory}{how}\n\
             end it with: slackline unmount {}\n",
            report::quoted(directory)
        )
    })
}

/// The first signal unmounts as soon as nobody uses it; where somebody does, the next one tries
/// again.
fn end_on_signal(mut signals: signal_hook::iterator::Signals, mut unmounter: Unmounter) {
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if let Err(error) = unmounter.unmount() {
                // Nobody may read what is said here by now.
                let _ = writeln!(std::io::stderr(), "cannot unmount: {error}");
            }
        }
    });
}

/// Starts the same in a process of its own, and waits until it has mounted, or has said why not.
fn in_background(args: &Args, directory: &Path, common: &Common) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("cannot start: {error}"), "");
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    let socket = std::path::absolute(common.socket()).map_err(failed)?;
    command.arg("--socket").arg(socket).arg("--json").arg("mount").arg("--foreground");
    let flags = [(args.read_only, "--read-only"), (args.allow_other, "--allow-other")];
    command.args(flags.iter().filter(|(given, _)| *given).map(|(_, flag)| flag));
    command.arg("--").arg(directory);
    // Out of the terminal's reach, and in nobody's way.
    command.process_group(0).current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    output.read_line(&mut line).map_err(failed)?;
    if !line.is_empty() {
        return told(args, directory, child.id(), common);
    }
    let mut said = String::new();
    let _ = child.stderr.take().expect("it is piped").read_to_string(&mut said);
    let code = child.wait().map_err(failed)?.code().and_then(|code| u8::try_from(code).ok());
    let said: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
    let text = |field: &str| said[field].as_str().unwrap_or_default().to_owned();
    let (what, next) = (text("detail"), text("next_step"));
    let what = if what.is_empty() { "the mount's process has ended".into() } else { what };
    Err(Failure { exit_code: code.unwrap_or(1), ..Failure::new(what, next) })
}

fn not_mounted(error: NotMounted, directory: &Path) -> Failure {
    let directory = directory.display();
    match error {
        NotMounted::Daemon(error) => error.into(),
        NotMounted::OnlyRoot => Failure::usage(
            "only root may let other users in",
            "leave --allow-other out, or run it as root",
        ),
        NotMounted::Fuse(error) => Failure::new(
            format!("cannot mount on {directory}: {error}"),
            "run it as root; or install fuse3, and let everybody open /dev/fuse (`ls -l` shows it as \
             crw-rw-rw-; `chmod 666 /dev/fuse`); the kernel needs FUSE (`modprobe fuse`)",
        ),
    }
}

/// Unmounts a directory.
pub fn unmount(args: &UnmountArgs) -> Result<(), Failure> {
    ::mount::unmount(&args.directory).map_err(|why| {
        let directory = args.directory.display();
        let quoted = report::quoted(&directory.to_string());
        let error = match why {
            NotUnmounted::System(error) => error,
            NotUnmounted::NotOurs => {
                let next = format!(
                    "`findmnt -l | grep slackline:` lists those that there are; another file system is \
                     unmounted by `umount {quoted}`"
                );
                return Failure::new(format!("{directory} is no mount of Slackline"), next);
            }
        };
        let next = match error.kind() {
            std::io::ErrorKind::ResourceBusy => {
                format!("end the programs that use it: fuser -vm {quoted}")
            }
            std::io::ErrorKind::NotFound => "give a directory that is there".into(),
            _ => format!("look what is mounted: findmnt {quoted}"),
        };
        Failure::new(format!("cannot unmount {directory}: {error}"), next)
    })
}
