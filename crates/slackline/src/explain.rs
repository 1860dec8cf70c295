//! The engine's and the daemon's own errors as failures.

use crate::failure::{Failure, USAGE};
use daemon::config::ConfigError;
use daemon::serve::ServeError;
use daemon::socket::SocketError;
use engine::PoolError;
use node::DiskIndex;
use std::path::{Path, PathBuf};
use units::Bytes;

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match &error {
            PoolError::Open { devices, error } => {
                let what = match error.device() {
                    Some(disk) => by_path(&error.what().to_string(), disk, devices),
                    None => error.what().to_string(),
                };
                Self::new(what, error.next_step())
            }
            PoolError::Node(error @ node::Error::Refused(_)) => Self::new(
                format!("the pool's own commits do not fit: {}", daemon::problem::of(error).detail),
                "give them more time with --commit-interval",
            ),
            PoolError::Node(error) => daemon::problem::of(error).into(),
            PoolError::HoldsData { path, what } => Self::new(
                format!("{} holds {what}", path.display()),
                "choose another device, or add --overwrite if that may be destroyed",
            ),
            PoolError::Io { path, .. } if is_hidden(path) => Self::new(
                error.to_string(),
                "the unit does not see home directories, and has a /tmp and /var/tmp of its own: put \
                 the pool elsewhere, or set `ProtectHome=no` or `PrivateTmp=no` with \
                 `systemctl edit slackline`",
            ),
            PoolError::NoSize { path } => Self::new(
                format!("{} does not exist", path.display()),
                "say how large it shall be, as in --size 10GiB, or correct the path",
            ),
            PoolError::NoDirectory { path } => {
                let directory = path.parent().unwrap_or(path).display().to_string();
                Self::new(
                    format!("{}: there is no directory {directory}", path.display()),
                    format!("make it first: `mkdir -p {}`", report::quoted(&directory)),
                )
            }
            PoolError::Io { error: cause, .. } => {
                Self::new(error.to_string(), report::mend_path(cause.kind()))
            }
            // The unit does not try again with settings with which it never works.
            PoolError::Option { .. } => Self { exit_code: USAGE, ..of_text(&error.to_string()) },
            PoolError::Memory { asked, .. } if machine_memory().is_some_and(|all| *asked > all) => {
                Self { exit_code: USAGE, ..of_text(&error.to_string()) }
            }
            other => of_text(&other.to_string()),
        }
    }
}

/// How much memory this machine has, where the kernel says so.
fn machine_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::kib(kib))
}

/// Whether a daemon that systemd started is kept from this path, as the unit says.
fn is_hidden(path: &Path) -> bool {
    let hidden = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];
    std::env::var_os("INVOCATION_ID").is_some() && hidden.iter().any(|it| path.starts_with(it))
}

/// A text of the store, which knows devices by number, about a device by path.
pub fn by_path(what: &str, disk: DiskIndex, devices: &[PathBuf]) -> String {
    let Some(path) = devices.get(usize::from(disk.0)) else { return what.into() };
    match what.strip_prefix(&format!("given disk {}", disk.0)) {
        Some(rest) => format!("{}{rest}", path.display()),
        None => format!("{}: {what}", path.display()),
    }
}

/// From a text that ends in what to do.
fn of_text(text: &str) -> Failure {
    match text.rsplit_once("; ") {
        Some((what, next_step)) => Failure::new(what, next_step),
        None => Failure::new(text, "correct that, or give another path"),
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.what, error.next_step)
    }
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        let (what, next_step) = error.texts();
        Self::new(what, next_step)
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Socket(error) => error.into(),
            ServeError::Stop(error) => daemon::problem::of(&error).into(),
            ServeError::Tcp(error) if error.of_settings => Self::usage(error.what, error.next_step),
            ServeError::Tcp(error) => Self::new(error.what, error.next_step),
            ServeError::Tokens(problem) => (*problem).into(),
            ServeError::Late => Self::new(
                "the pool did not come to rest in time; what was said to be durable is kept",
                "look for a disk that hangs, in the kernel's log",
            ),
            ServeError::Ended(what) => Self::new(
                format!(
                    "{what} ended while the daemon served; what was said to be durable is kept"
                ),
                "start the daemon again, and report what its log says before that",
            ),
            ServeError::Runtime(error) => Self::new(
                format!("the system gives the daemon no threads or signals: {error}"),
                "raise the limits of processes and open files",
            ),
        }
    }
}
