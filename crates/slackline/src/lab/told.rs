//! What the laboratory is doing, on standard error: on a terminal a line that is
//! written over, and everywhere a line for each experiment that has ended.

use lab::{Counts, Ended, Experiment, News};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::sync::Mutex;

/// The line, and what it is made of.
pub struct Told {
    terminal: bool,
    total: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ended: usize,
    /// The part that is done of each that runs, in percent.
    running: BTreeMap<&'static str, u64>,
}

impl Told {
    /// Of so many experiments nothing has happened yet.
    pub fn new(total: usize) -> Self {
        Self { terminal: stderr().is_terminal(), total, state: Mutex::default() }
    }

    /// Something has happened.
    pub fn news(&self, news: &News<'_>) {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let percent = |part: f64| (part.clamp(0.0, 1.0) * 100.0) as u64;
        match news {
            News::Begins(Experiment { name, .. }) => {
                state.running.insert(name, 0);
            }
            News::At(Experiment { name, .. }, part) => {
                let percent = percent(*part);
                if state.running.insert(name, percent) == Some(percent) {
                    return; // nothing that would be seen
                }
            }
            News::Ended(ended) => {
                state.ended += 1;
                state.running.remove(ended.experiment.name);
                self.clear();
                let at = format!("[{}/{}]", state.ended, self.total);
                let _ = writeln!(stderr(), "{at} {}", line(ended)); // nobody to tell
            }
        }
        if self.terminal {
            let running = state.running.iter().map(|(name, part)| format!("{name} {part} %"));
            let line: String = running.collect::<Vec<_>>().join("   ").chars().take(78).collect();
            let _ = write!(stderr(), "\r\x1b[K  {line}");
            let _ = stderr().flush();
        }
    }

    /// Leaves the terminal as it was.
    pub fn finish(&self) {
        self.clear();
    }

    fn clear(&self) {
        if self.terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// What an experiment came to.
fn line(ended: &Ended) -> String {
    let came = match &ended.findings {
        Ok(findings) => {
            let counts = Counts::of(&findings.claims);
            let put_in = match counts.calibrated {
                0 => String::new(),
                count => format!(", {count} calibrated"),
            };
            format!(
                "{} of {} claims kept or exceeded{put_in}",
                counts.kept + counts.exceeded,
                counts.claims
            )
        }
        Err(words) => format!("broke off: {words}"),
    };
    format!("{}: {came}, {:.1} s", ended.experiment.name, ended.took.as_secs_f64())
}
