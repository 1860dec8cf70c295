//! The command that is run for each event, with the event as JSON on its standard input.
//!
//! Invariants: one runs at a time, and for a bounded time with all that it has started; so many events
//! wait for it, streams that come and go at most half as many, so that they keep out nothing that needs a
//! person; of more it is said how many were left out.

use crate::limits::{HOOK_WAITING_MAX, HOOK_WITHIN};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use wire::control::{Event, EventKind};

/// How often it is looked whether the command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Tells a thread that runs the command. It ends when this is dropped.
pub struct Hook {
    waiting: SyncSender<String>,
    /// How many wait.
    count: Arc<AtomicUsize>,
    left_out: AtomicU64,
}

impl Hook {
    /// Runs this command.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn start(command: PathBuf) -> std::io::Result<Self> {
        let (waiting, events) = sync_channel(HOOK_WAITING_MAX);
        let thread = std::thread::Builder::new().name("slackline-hook".into());
        let hook = Self { waiting, count: Arc::default(), left_out: AtomicU64::new(0) };
        let count = Arc::clone(&hook.count);
        thread.spawn(move || run_all(&command, &events, &count))?;
        Ok(hook)
    }

    /// Never waits.
    pub fn tell(&self, event: &Event) {
        let may_be_left_out =
            matches!(event.kind, EventKind::StreamOpened | EventKind::StreamClosed);
        if may_be_left_out && self.count.load(Ordering::Relaxed) >= HOOK_WAITING_MAX / 2 {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let event = serde_json::to_string(event).expect("messages are JSON");
        self.count.fetch_add(1, Ordering::Relaxed);
        let sent = self.waiting.try_send(event);
        if sent.is_err() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        match sent {
            Ok(()) => match self.left_out.swap(0, Ordering::Relaxed) {
                0 => {}
                n => tracing::error!("the command for events missed {n} of them: it is slow"),
            },
            Err(TrySendError::Full(_)) => _ = self.left_out.fetch_add(1, Ordering::Relaxed),
            // Its thread has ended with a panic, which has said why.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

fn run_all(command: &Path, events: &Receiver<String>, count: &AtomicUsize) {
    let mut before = Ok(());
    for event in events {
        count.fetch_sub(1, Ordering::Relaxed);
        let ended = run(command, event);
        // A command that fails in the same way for each event says so once.
        if let Err(why) = &ended
            && before != ended
        {
            tracing::error!("the command for events, {}, {why}", command.display());
        }
        before = ended;
    }
}

/// Why this command cannot be run, as far as the system says before it is.
pub fn cannot_be_run(command: &Path) -> Option<String> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let is_there = match command.components().count() {
        // A name alone is looked for where the shell does.
        1 if command.is_relative() => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| is_program(&directory.join(command)))
        }
        _ => is_program(command),
    };
    (!is_there).then(|| {
        format!(
            "the command for events, {}, is no program that can be run: name one by its path, without \
             arguments (event_hook)",
            command.display()
        )
    })
}

/// In a group of its own, and without what is for the daemon alone.
fn start(command: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(command);
    for own in ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"] {
        command.env_remove(own);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command.process_group(0).spawn()
}

/// Runs it for one event, to its end or to the end of its time.
fn run(command: &Path, event: String) -> Result<(), String> {
    let mut child = start(command).map_err(|error| format!("cannot be run: {error}"))?;
    let mut input = child.stdin.take().expect("a pipe");
    // An event is shorter than what a pipe takes at once, so that this does not wait. A command
    // that does not read it has its reasons.
    let _ = input.write_all(event.as_bytes()).and_then(|()| input.write_all(b"\n"));
    drop(input);
    ended(&mut child, HOOK_WITHIN)
}

fn ended(child: &mut Child, within: Duration) -> Result<(), String> {
    let until = Instant::now() + within;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("ended with {status}")),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
            Ok(None) => {
                // All that it has started; it is not reaped, so that the number is still its own.
                let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("did not end within {} s and was killed", within.as_secs()));
            }
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use wire::control::EventKind;

    fn script(directory: &Path, text: &str) -> PathBuf {
        let path = directory.join("hook");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    fn event(number: u64) -> Event {
        Event {
            number,
            at_ms: 0,
            kind: EventKind::Found,
            key: "disk/0/errors".into(),
            volume: None,
            what: "disk 0 failed 1 command".into(),
            next_step: None,
        }
    }

    /// Each event comes to a run of its own, whole and in order, also where the one before failed.
    #[test]
    fn each_event_is_on_the_input_of_a_run() {
        let directory = tempfile::tempdir().unwrap();
        let said = directory.path().join("said");
        let path = script(directory.path(), &format!("cat >>{}; exit 3", said.display()));
        let (sender, events) = sync_channel(4);
        for number in 1..=3 {
            sender.send(serde_json::to_string(&event(number)).unwrap()).unwrap();
        }
        drop(sender);
        run_all(&path, &events, &AtomicUsize::new(3));
        let said = std::fs::read_to_string(said).unwrap();
        let numbers = said.lines().map(|line| serde_json::from_str::<Event>(line).unwrap().number);
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(run(&path, String::new()), Err("ended with exit status: 3".into()));
    }

    #[test]
    fn one_that_hangs_is_ended_and_one_that_is_not_there_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let started = directory.path().join("started");
        let text = format!("sleep 600 & echo $! >{}; wait", started.display());
        let mut child = start(&script(directory.path(), &text)).unwrap();
        let number = || std::fs::read_to_string(&started).unwrap_or_default();
        while !number().ends_with('\n') {
            std::thread::sleep(LOOK);
        }
        let why = ended(&mut child, Duration::from_millis(60)).unwrap_err();
        assert!(why.contains("was killed"), "{why}");
        assert!(child.try_wait().unwrap().is_some(), "it still runs");
        // The signal is sent; what it started dies when it next has a processor. Then it is gone, or
        // dead and not yet taken note of by whoever has it now.
        let started = format!("/proc/{}/stat", number().trim());
        let runs = || std::fs::read_to_string(&started).is_ok_and(|text| !text.contains(") Z "));
        let ends = (0..3_000).any(|_| {
            std::thread::sleep(LOOK);
            !runs()
        });
        assert!(ends, "what it started still runs");
        let why = run(&directory.path().join("none"), String::new()).unwrap_err();
        assert!(why.starts_with("cannot be run: "), "{why}");
    }

    /// Whoever tells never waits for the command.
    #[test]
    fn events_that_find_no_place_are_counted() {
        let (waiting, _events) = sync_channel(HOOK_WAITING_MAX);
        let hook = Hook { waiting, count: Arc::default(), left_out: AtomicU64::new(0) };
        let half = HOOK_WAITING_MAX as u64 / 2;
        for number in 0..half + 5 {
            hook.tell(&Event { kind: EventKind::StreamOpened, ..event(number) });
        }
        assert_eq!(hook.left_out.load(Ordering::Relaxed), 5);
        for number in 0..half + 7 {
            hook.tell(&event(number));
        }
        // That one found a place is told, and begins the count anew.
        assert_eq!(hook.left_out.load(Ordering::Relaxed), 7);
    }
}
