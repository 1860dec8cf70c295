//! The command of one camera: started, read, watched, ended, and started again.
//!
//! Invariants: its bytes are read as fast as they come, whatever the daemon does; it and all that
//! it has started (its process group) end before it is started again; what it says on standard error
//! is told where it fails.

use super::back_off::{BackOff, chance};
use super::camera::Camera;
use super::events::without_passwords;
use super::group::Group;
use super::limits::{CHILD_WITHIN, HEARD_MAX, LINE_MAX, LOOK, PIECE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Keeps the command of `camera` running until `ended`.
pub fn run(camera: &Camera, ended: &AtomicBool) {
    let mut back_off = BackOff::new(camera.spec.retry);
    // What nobody would take is not asked for.
    while !camera.wanted_within(LOOK) && !ended.load(Ordering::Relaxed) {}
    while !ended.load(Ordering::Relaxed) {
        let began = Instant::now();
        camera.started();
        let why = match Running::start(camera) {
            Ok(running) => running.carry(camera, ended),
            Err(error) => {
                let program = &camera.spec.command[0];
                format!("{program} cannot be started: {error}")
            }
        };
        if ended.load(Ordering::Relaxed) {
            break;
        }
        if camera.gives() {
            back_off.went_well(began.elapsed());
        }
        let wait = back_off.wait(chance());
        camera.down(&why, wait);
        let until = Instant::now() + wait;
        while Instant::now() < until && !ended.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
    }
    camera.over();
}

/// A command that runs.
struct Running {
    child: Child,
    group: Pid,
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
    line: Vec<u8>,
    /// Since when it was asked to end, and why.
    asked: Option<(Instant, String)>,
}

impl Running {
    fn start(camera: &Camera) -> io::Result<Self> {
        let words = &camera.spec.command;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        // A group of its own: an interrupt at the terminal is not for it, and it ends with all
        // that it has started.
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // Not this program's to tell the service manager of.
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
        let mut running = camera.group.lock();
        let mut child = command.spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let group =
            i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process has one");
        *running = Some(group);
        Ok(Self { child, group, out, err, line: Vec::new(), asked: None })
    }

    /// Carries its bytes until it has ended; why it has.
    fn carry(mut self, camera: &Camera, ended: &AtomicBool) -> String {
        let packet = camera.spec.packet;
        let (mut piece, mut filled) = (vec![0; PIECE], 0);
        let (mut last, mut over) = (Instant::now(), None);
        loop {
            if ended.load(Ordering::Relaxed) {
                self.ask_to_end("it was ended");
            }
            let (out, err) = match self.wait() {
                Ok(ready) => ready,
                Err(error) => {
                    self.ask_to_end(&format!("its output cannot be waited for: {error}"));
                    (false, false)
                }
            };
            if err {
                self.hear(camera);
            }
            let gives = out && self.out.is_some();
            if out && let Some(stdout) = &mut self.out {
                match stdout.read(&mut piece[filled..]) {
                    Ok(0) => self.out = None,
                    Ok(len) => {
                        filled += len;
                        last = Instant::now();
                        let whole = filled - filled % packet;
                        if whole > 0 {
                            camera.gave(&piece[..whole]);
                        }
                        piece.copy_within(whole..filled, 0);
                        filled -= whole;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.ask_to_end(&format!("its output cannot be read: {error}"));
                        self.out = None;
                    }
                }
            }
            // Also beside a command that never pauses.
            if self.asked.as_ref().is_some_and(|(since, _)| since.elapsed() >= CHILD_WITHIN) {
                let _ = kill_process_group(self.group, Signal::KILL);
            }
            if self.has_ended() {
                // What it had given before is read, and for a while what those give that it has left
                // behind.
                let since = over.unwrap_or_else(Instant::now);
                if over.is_some() && !gives || since.elapsed() >= CHILD_WITHIN {
                    break;
                }
                over = Some(since);
                continue;
            }
            if gives {
                continue;
            }
            if last.elapsed() >= camera.spec.stall {
                let stall = units::Duration::from_nanos(camera.spec.stall.as_nanos() as u64);
                self.ask_to_end(&format!("it gave no byte for {stall}, and was ended"));
            }
            if self.out.is_none() && last.elapsed() >= LOOK {
                self.ask_to_end("it closed its output, and was ended");
            }
        }
        self.hear(camera);
        let why = self.asked.take().map(|(_, why)| why);
        let status = self.reap(&camera.group);
        why.unwrap_or_else(|| told(status))
    }

    fn ask_to_end(&mut self, why: &str) {
        if self.asked.is_none() {
            self.asked = Some((Instant::now(), why.into()));
            // Where it has ended meanwhile, there is nobody to tell.
            let _ = kill_process_group(self.group, Signal::TERM);
        }
    }

    /// Waits for bytes, or for [`LOOK`]: whether there is something on standard output and error.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let mut polled: Vec<PollFd<'_>> = Vec::new();
        polled.extend(self.out.as_ref().map(|out| PollFd::new(out, PollFlags::IN)));
        polled.extend(self.err.as_ref().map(|err| PollFd::new(err, PollFlags::IN)));
        let within = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        match poll(&mut polled, Some(&within)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
        let out = self.out.is_some() && ready.next() == Some(true);
        let err = self.err.is_some() && ready.next() == Some(true);
        Ok((out, err))
    }

    /// Takes what is on standard error, where there is something.
    fn hear(&mut self, camera: &Camera) {
        let mut said = [0; 4_096];
        if !self.wait().is_ok_and(|(_, err)| err) {
            return;
        }
        let Some(stderr) = &mut self.err else { return };
        let len = match stderr.read(&mut said) {
            Ok(0) => {
                self.err = None;
                if !self.line.is_empty() {
                    camera.said(line(&std::mem::take(&mut self.line)));
                }
                return;
            }
            Ok(len) => len,
            Err(_) => return,
        };
        for &byte in &said[..len] {
            match byte {
                b'\n' | b'\r' if !self.line.is_empty() => {
                    camera.said(line(&std::mem::take(&mut self.line)));
                }
                b'\n' | b'\r' => {}
                _ if self.line.len() < HEARD_MAX => self.line.push(byte),
                _ => {}
            }
        }
    }

    /// Whether the process has ended. It is not reaped: its group keeps its number.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // An error means that there is no such child any more.
        waitid(WaitId::Pid(self.group), options).map_or(true, |status| status.is_some())
    }

    /// Ends what it has left behind.
    fn reap(&mut self, running: &Group) -> Option<ExitStatus> {
        let mut running = running.lock();
        let _ = kill_process_group(self.group, Signal::KILL);
        *running = None;
        self.child.wait().ok()
    }
}

fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    // Whole: a part of an address does not show what of it is a password.
    without_passwords(text.trim()).chars().take(LINE_MAX).collect()
}

fn told(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("it ended with exit code {code}"),
        Some((None, Some(signal))) => format!("it was ended by signal {signal}"),
        _ => "it ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_as_text() {
        assert_eq!(
            line(b"  \x1b[31mrtsp://a:b@c/d failed \xff"),
            "[31mrtsp://***@c/d failed \u{fffd}"
        );
        assert_eq!(told(Some(ExitStatus::from_raw(9))), "it was ended by signal 9");
        assert_eq!(told(Some(ExitStatus::from_raw(0x300))), "it ended with exit code 3");
    }
}
