//! Programs under contract that wait for somebody else: a player whose output nobody takes, a
//! recording whose source brings nothing, either of them stopped from its terminal. They say so to
//! the daemon, which would otherwise take them for programs that hang, and end their contracts.
//!
//! Invariant: what cannot be said, by a program that is stopped by SIGSTOP or a debugger, is not: it
//! loses its contract when its time is over, as is documented.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGTSTP;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::Duration;

/// Whoever waits for so long says that it pauses: less than a program may be silent for at the
/// least.
pub const SILENT: Duration = Duration::from_millis(500);
/// For so long: the longest that counts.
pub const PAUSE: Duration = Duration::from_secs(86_400);
/// A pipe that has any room takes so much without waiting.
const AT_ONCE: usize = 4_096;

/// A stop from the terminal (ctrl-Z), which is put off until the daemon was told.
pub struct Stops(Arc<AtomicBool>);

impl Stops {
    /// From here on [`Stops::heed`] has to be called now and then.
    pub fn new() -> Self {
        let wanted = Arc::default();
        if let Err(error) = signal_hook::flag::register(SIGTSTP, Arc::clone(&wanted)) {
            eprintln!("slackline: warning: a stop from the terminal is not announced: {error}");
        }
        Self(wanted)
    }

    /// Stops here, if that was asked for, behind `announce`; goes on where the shell says so.
    pub fn heed(&self, announce: impl FnOnce()) {
        if self.0.swap(false, Ordering::Relaxed) {
            announce();
            if let Err(error) = signal_hook::low_level::emulate_default_handler(SIGTSTP) {
                eprintln!("slackline: warning: cannot stop: {error}");
            }
        }
    }
}

/// Where the bytes of a player go.
pub enum Sink {
    /// A file: it takes them in its own time.
    File(File),
    /// Standard output, behind which somebody may have stopped to read.
    Pipe(File),
}

impl Sink {
    /// Standard output as it is.
    ///
    /// # Errors
    /// Where there is none.
    pub fn standard() -> io::Result<Self> {
        let own = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(if own.metadata()?.is_file() { Self::File(own) } else { Self::Pipe(own) })
    }

    /// Writes all of it. Where it is not taken, `announce` is called, once.
    ///
    /// # Errors
    /// Those of the output.
    pub fn put(
        &mut self,
        mut bytes: &[u8],
        stops: &Stops,
        mut announce: impl FnMut(),
    ) -> io::Result<()> {
        let mut said = false;
        while !bytes.is_empty() {
            stops.heed(&mut announce);
            match self {
                Self::File(file) => return file.write_all(bytes),
                Self::Pipe(pipe) if takes(pipe)? => {
                    let (now, later) = bytes.split_at(bytes.len().min(AT_ONCE));
                    pipe.write_all(now)?;
                    bytes = later;
                }
                Self::Pipe(_) if !said => {
                    announce();
                    said = true;
                }
                Self::Pipe(_) => {}
            }
        }
        Ok(())
    }
}

/// Whether the pipe takes something within [`SILENT`], and no signal came.
fn takes(pipe: &File) -> io::Result<bool> {
    let mut polled = [PollFd::new(pipe, PollFlags::OUT)];
    let within = Timespec { tv_sec: 0, tv_nsec: SILENT.as_nanos() as _ };
    match poll(&mut polled, Some(&within)) {
        // Also where its reader has gone: the write says so.
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
