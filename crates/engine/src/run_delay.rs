//! For how long this thread was ready to run and had no processor, as the kernel counts it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use units::Duration;

/// What the kernel counts of one thread (`/proc/PID/task/TID/schedstat`, the second number).
#[derive(Debug)]
pub(crate) struct RunDelay(Option<File>);

impl RunDelay {
    /// Of the thread that calls; what is missing is told in `warnings`.
    pub(crate) fn of_this_thread(warnings: &mut Vec<String>) -> Self {
        let file = File::open("/proc/thread-self/schedstat");
        if let Err(error) = &file {
            warnings.push(format!(
                "the kernel does not say how long a disk's thread waits for a processor \
                 (/proc/thread-self/schedstat: {error}), so that a late host may count as a slow \
                 disk; use a kernel with CONFIG_SCHED_INFO"
            ));
        }
        Self(file.ok())
    }

    /// So far; zero where the kernel does not say.
    pub(crate) fn total(&self) -> Duration {
        let mut text = [0u8; 80];
        let read = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        read.and_then(|len| second(&text[..len])).unwrap_or_default()
    }
}

fn second(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_told_and_nonsense_is_none() {
        assert_eq!(second(b"12 3456 7\n"), Some(Duration::from_nanos(3_456)));
        assert_eq!(second(b"12"), None);
        assert_eq!(second(b"12 -4 7"), None);
        let mut warnings = Vec::new();
        let told = RunDelay::of_this_thread(&mut warnings);
        let first = told.total();
        std::thread::yield_now();
        assert!(told.total() >= first, "{warnings:?}");
    }
}
