//! The daemon of the demo: this same program as `slackline serve`, in a process
//! of its own, so that what is shown is the real thing.

use super::failed;
use crate::failure::Failure;
use client::Client;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon that does not answer after so long has failed. It recovers its pool
/// before it answers, which takes a second or two on the emulated disk.
const STARTS_WITHIN: Duration = Duration::from_secs(30);

/// A daemon that has not stopped after so long has failed.
const STOPS_WITHIN: Duration = Duration::from_secs(30);

/// Runs this program with `arguments` to its end.
pub fn slackline(arguments: &[&str]) -> Result<(), Failure> {
    let output = command()?.args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("slackline: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("slackline {}: {}", arguments.join(" "), said.trim())))
}

fn command() -> Result<Command, Failure> {
    let this = std::env::current_exe();
    this.map(Command::new).map_err(|error| failed(format!("cannot find myself: {error}")))
}

/// A daemon that serves; killed when dropped, stopped in order by [`Daemon::stop`].
pub struct Daemon {
    child: Child,
    client: Client,
    pid_file: PathBuf,
}

impl Daemon {
    /// Starts `slackline serve` on `device` with more `arguments`; its socket and
    /// its log are in `folder`, named for `name`.
    pub fn start(
        folder: &Path,
        name: &str,
        device: &str,
        arguments: &[&str],
    ) -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| {
            failed(format!("{what} in {}: {error}", folder.display()))
        };
        let socket = folder.join("control.sock");
        let log_path = folder.join(format!("daemon-{name}.log"));
        let log = File::create(&log_path).map_err(|error| failed("cannot make a log", error))?;
        let mut serve = command()?;
        serve.args(["serve", device, "--socket"]).arg(&socket).args(arguments);
        serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = serve.spawn().map_err(|error| failed("cannot start a daemon", error))?;
        let pid_file = super::folder::pid_file(folder);
        let pid = child.id().to_string();
        std::fs::write(&pid_file, pid).map_err(|error| failed("cannot write", error))?;
        let mut child = child;
        match wait_for(&mut child, &socket) {
            Ok(client) => Ok(Self { child, client, pid_file }),
            Err(error) => {
                let _ = child.kill(); // it may have ended by itself
                let _ = child.wait();
                let said = std::fs::read_to_string(&log_path).unwrap_or_default();
                Err(Failure { what: format!("{}; it said: {}", error.what, said.trim()), ..error })
            }
        }
    }

    /// The way to talk to it.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Asks it to stop and waits until it has; fails where it ends in disorder.
    pub fn stop(mut self) -> Result<(), Failure> {
        // The standard library can only kill; a shell can ask.
        let ask = format!("kill -TERM {}", self.child.id());
        let asked = Command::new("sh").args(["-c", &ask]).status();
        asked.map_err(|error| failed(format!("cannot signal the daemon: {error}")))?;
        let asked = Instant::now();
        while asked.elapsed() < STOPS_WITHIN {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    return Err(failed(format!("the daemon ended with {status}")));
                }
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Err(failed(format!("the daemon did not stop within {STOPS_WITHIN:?}")))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended by itself
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.pid_file);
    }
}

fn wait_for(child: &mut Child, socket: &Path) -> Result<Client, Failure> {
    let started = Instant::now();
    loop {
        match Client::connect(socket) {
            Ok(client) => return Ok(client),
            Err(_) if matches!(child.try_wait(), Ok(Some(_))) => {
                return Err(failed("the daemon ended at once"));
            }
            Err(error) if started.elapsed() > STARTS_WITHIN => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
