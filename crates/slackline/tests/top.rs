//! `slackline top` on a terminal, by way of tmux.
#![allow(clippy::print_stdout)] // what could not be run is said

use crate::support::{Scratch, wait_until};
use std::process::{Command, Stdio};

/// A terminal of its own, with a shell in it.
struct Screen {
    socket: String,
}

impl Screen {
    fn new(dir: &Scratch) -> Self {
        let screen = Self { socket: dir.text("tmux") };
        screen.tmux(&["new-session", "-d", "-x", "120", "-y", "30", "sh"]);
        screen
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null", "-S", &self.socket]).args(args).stdin(Stdio::null());
        let ran = command.env("TERM", "xterm-256color").output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    fn types(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"][..], keys].concat());
    }

    fn seen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn shows(&self, what: &str) {
        wait_until(|| self.seen().contains(what));
    }

    fn is_alternate(&self) -> bool {
        self.tmux(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn it_shows_what_is_served_and_leaves_the_terminal_as_it_was() {
    if Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_err() {
        return skips::not_run("needs tmux");
    }
    let dir = Scratch::new();
    let disks = dir.make_pool(&["a"]);
    let daemon = dir.serve(&disks);
    let screen = Screen::new(&dir);
    let settings = |name: &str| {
        let path = dir.path(name);
        screen.types(&[&format!("stty -a > {0}.new; mv {0}.new {0}", path.display()), "Enter"]);
        wait_until(|| path.exists());
        std::fs::read_to_string(path).unwrap()
    };
    let before = settings("before");
    let line = format!(
        "{} top --every 100ms --socket {} & echo \"$!\" > {}; fg; echo \"ended with $?\"",
        env!("CARGO_BIN_EXE_slackline"),
        dir.text("s.sock"),
        dir.text("pid")
    );
    screen.types(&["set -m", "Enter"]);
    // The last three while the daemon does not answer.
    for (end, hangs) in [("q", false), ("C-c", false), ("q", true), ("TERM", true), ("HUP", true)] {
        screen.types(&["clear", "Enter"]);
        screen.types(&[&line, "Enter"]);
        screen.shows("pool test, served for");
        assert!(screen.is_alternate(), "{end}");
        screen.types(&["s"]);
        screen.shows("volume▾");
        if hangs {
            daemon.signal("STOP");
            // It has asked once more by then.
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        match end {
            "TERM" | "HUP" => {
                let pid = std::fs::read_to_string(dir.path("pid")).unwrap();
                let sent = Command::new("kill").args([&format!("-{end}"), pid.trim()]).status();
                assert!(sent.unwrap().success());
            }
            key => screen.types(&[key]),
        }
        screen.shows("ended with 0");
        assert!(!screen.is_alternate(), "{end}");
        let name = format!("after-{end}-{hangs}");
        assert_eq!(settings(&name), before, "{end}");
        daemon.signal("CONT");
    }
    // A panic is told when the terminal is as it was.
    screen.types(&["clear", "Enter"]);
    screen.types(&[&format!("SLACKLINE_TOP_PANICS=1 {line}"), "Enter"]);
    screen.shows("ended with 101");
    assert!(screen.seen().contains("asked for"), "{}", screen.seen());
    assert!(!screen.is_alternate());
    assert_eq!(settings("after-a-panic"), before);
    daemon.kill();
    let piped = dir.run(&["top"]);
    piped.failed(2, &["shown on a terminal", "slackline status"]);
}
