//! What a process says of a panic, also where standard error takes nothing: a pipe that nobody
//! reads, a terminal that is stopped.
//!
//! Rust's own message waits for it on the thread that panics, and that thread may have a lock: then
//! nobody is served, and the process does not end, either. So a thread of its own writes it, and is
//! waited for only so long.
//!
//! The last line repeats the thread's last panic. The process may end by one that began elsewhere, and
//! whoever keeps what a test has said, to print it when the test has ended, loses that with the process.
//!
//! Invariant: what is said from a panic to the end of the process takes two seconds at most.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::io::{self, Stderr, Write};
use std::panic::PanicHookInfo;
use std::sync::Once;
use std::sync::mpsc::channel;
use std::time::Duration;

/// A panic's message is waited for so long: a backtrace is looked up in the program's file,
const MESSAGE_WITHIN: Duration = Duration::from_millis(1_500);
/// and the last line so long, which waits for the message where that is still being written.
pub(crate) const LAST_LINE_WITHIN: Duration = Duration::from_millis(400);

const _: () = assert!(MESSAGE_WITHIN.as_millis() + LAST_LINE_WITHIN.as_millis() < 2_000);

thread_local! {
    /// The thread's last panic, where a hook keeps them.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn keep(panic: &PanicHookInfo<'_>) {
    let text = panic.to_string().replace('\n', " ");
    // A thread that ends, or panics in the midst of this, keeps none.
    let _ = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = Some(text)));
}

/// The thread's last panic and its place, in one line, where it was kept.
pub(crate) fn last() -> Option<String> {
    LAST.try_with(|last| last.try_borrow_mut().ok().and_then(|mut last| last.take())).ok().flatten()
}

/// From now on every panic in this process is kept for the last line, beside what is said of it already.
/// For tests: [`say_panics_in_time`] does so as well.
pub fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let says = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            keep(panic);
            says(panic);
        }));
    });
}

/// From now on every panic in this process is said in this way. For a process that ends by a panic
/// under a lock, to be started again; others keep Rust's own message.
pub fn say_panics_in_time() {
    std::panic::set_hook(Box::new(|panic| {
        keep(panic);
        let thread = std::thread::current();
        let message = format!("\nthread '{}' {panic}\n", thread.name().unwrap_or("<unnamed>"));
        // What the frames are called is looked up where it is written, and not under a lock.
        let trace = Backtrace::capture();
        say(MESSAGE_WITHIN, move |mut to| {
            to.write_all(message.as_bytes())?;
            match trace.status() {
                BacktraceStatus::Captured => {
                    to.write_all(format!("stack backtrace:\n{trace}").as_bytes())
                }
                _ => Ok(()),
            }
        });
    }));
}

/// Writes to standard error, and waits for the end of that no longer than `within`.
pub(crate) fn say(within: Duration, write: impl FnOnce(Stderr) -> io::Result<()> + Send + 'static) {
    let (said, is_said) = channel::<()>();
    let thread = std::thread::Builder::new().name("last-words".into());
    // Where there is no thread for it, or standard error is gone, nothing is said.
    let _ = thread.spawn(move || {
        let _ = write(io::stderr());
        drop(said);
    });
    let _ = is_said.recv_timeout(within);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Mutex;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus, Stdio};

    const END: &str = "SLACKLINE_TEST_LAST_WORDS";
    const GOES_ON: i32 = 7;
    /// A process that has not ended by then does not.
    const TRIES: usize = 1_200;

    fn panics_under_a_lock() {
        let value = Mutex::new(1);
        let _guard = value.lock();
        panic!("planted under a lock");
    }

    fn panics_elsewhere() {
        let panicked = std::thread::spawn(|| panic!("planted elsewhere")).join();
        assert!(panicked.is_err());
        std::process::exit(GOES_ON);
    }

    /// This test again, in a process whose standard error is `errors`; killed where it goes on.
    fn end(name: &str, errors: Stdio) -> ExitStatus {
        let this = "last_words::tests::a_process_that_panics_does_not_wait_for_its_standard_error";
        let mut again = Command::new(std::env::current_exe().unwrap());
        let again = again.args(["--exact", this, "--nocapture"]).env(END, name);
        again.env_remove("RUST_BACKTRACE");
        let mut child = again.stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        for _ in 0..TRIES {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        child.kill().unwrap();
        child.wait().unwrap()
    }

    /// A pipe that takes nothing more, and its reader, without which it would be broken.
    fn full() -> (io::PipeReader, io::PipeWriter) {
        let (reader, mut writer) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        while writer.write(&[b'x'; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).unwrap();
        (reader, writer)
    }

    /// Before, the thread waited for its reader under the lock, for ever.
    #[test]
    fn a_process_that_panics_does_not_wait_for_its_standard_error() {
        if let Ok(name) = std::env::var(END) {
            say_panics_in_time();
            match &*name {
                "under a lock" => panics_under_a_lock(),
                _ => panics_elsewhere(),
            }
        }
        let (_unread, errors) = full();
        let status = end("under a lock", errors.try_clone().unwrap().into());
        assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}");
        // Elsewhere a panic ends what it is in, and nothing else.
        let status = end("elsewhere", errors.into());
        assert_eq!(status.code(), Some(GOES_ON), "{status}");
    }

    /// Where somebody reads it, he reads all of it.
    #[test]
    fn a_panic_is_said_with_its_thread_and_its_place() {
        let (reader, errors) = io::pipe().unwrap();
        let status = end("under a lock", errors.into());
        assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}");
        let said = io::read_to_string(reader).unwrap();
        for part in
            ["thread 'last_words::", "last_words.rs:", "planted under a lock", "started again"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
