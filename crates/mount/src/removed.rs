//! Files that were removed while somebody has them open here: they live on under a name of ours
//! until they are closed, as a file without a name does. Symbolic links that are being made have such
//! a name until they are whole.
//!
//! Invariant: such a name says which process has the file open, and by which `/proc` it has that number,
//! so that another one that sees the same processes can remove what a process that was killed has left
//! behind, and nothing else. Another container sees others, and leaves it alone until the next boot.

use client::control::Entry;
use client::{Client, Durable, Error};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Below this directory they lie; it is not shown.
pub use client::control::REMOVED_DIRECTORY as DIRECTORY;

/// What the names of those begin with that are not whole yet.
const NEW: &str = "new";

/// Names for the files of one process.
pub struct Names {
    prefix: String,
    /// How many files got a name before they have their own.
    made: AtomicU64,
}

/// When a process began, in the kernel's own count.
fn began(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the program's name, which may have any character. One that has ended and that nobody has
    // waited for has gone.
    let mut behind = stat.rsplit_once(") ")?.1.split(' ');
    let is_there = behind.next().is_some_and(|state| !matches!(state, "Z" | "X"));
    behind.nth(18).filter(|_| is_there).map(Into::into)
}

fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.chars().filter(|letter| *letter != '-').take(8).collect()
}

/// The processes that are seen here: those of one file system `/proc`, which each PID namespace has of its
/// own.
fn processes() -> String {
    fs::metadata("/proc").map_or_else(|_| "none".into(), |proc| proc.dev().to_string())
}

/// This process, by the number that it has in `/proc`.
fn own_pid() -> String {
    let own = fs::read_link("/proc/self").ok().and_then(|own| own.to_str().map(Into::into));
    own.unwrap_or_else(|| std::process::id().to_string())
}

impl Names {
    /// Of this process.
    pub fn new() -> Self {
        let pid = own_pid();
        let began = began(&pid).unwrap_or_default();
        let prefix = format!("{DIRECTORY}/{}-{}.{pid}.{began}.", boot(), processes());
        Self { prefix, made: AtomicU64::new(0) }
    }

    /// For the volume behind an inode.
    pub fn of(&self, inode: u64) -> String {
        format!("{}{inode}", self.prefix)
    }

    /// The names of this process that are there, but for those of what is not whole yet.
    ///
    /// # Errors
    /// The daemon does not say.
    pub fn own(&self, client: &Client) -> Result<Vec<String>, Error> {
        let all = client.all_entries(DIRECTORY)?.into_iter();
        let all = all.map(|entry| format!("{DIRECTORY}/{}", entry.name));
        let is_own = |name: &String| {
            name.strip_prefix(&self.prefix).is_some_and(|rest| !rest.starts_with(NEW))
        };
        Ok(all.filter(is_own).collect())
    }

    /// For what is shown under its own name when it is whole.
    pub fn of_new(&self) -> String {
        format!("{}{NEW}{}", self.prefix, self.made.fetch_add(1, Ordering::Relaxed))
    }
}

fn is_left_behind(name: &str, (boot, processes): (&str, &str)) -> bool {
    let mut parts = name.split('.');
    let (of, pid, since) = (parts.next(), parts.next(), parts.next());
    let (Some(of), Some(pid), Some(since)) = (of, pid, since) else { return false };
    // Earlier versions did not say by whose count.
    let (of, seen) = of.split_once('-').unwrap_or((of, processes));
    of != boot || (seen == processes && began(pid).as_deref() != Some(since))
}

/// Removes what processes that are gone have left behind.
pub fn sweep(client: &Client) {
    let (boot, processes) = (boot(), processes());
    for Entry { name, .. } in client.all_entries(DIRECTORY).unwrap_or_default() {
        if is_left_behind(&name, (&boot, &processes)) {
            // Somebody else may sweep, too.
            let name = format!("{DIRECTORY}/{name}");
            let _ = client.remove_volume(&*name, Durable::WithNextSync);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_processes_that_are_gone_have_left_is_swept() {
        let own = Names::new().of(7);
        let own = own.strip_prefix(".slackline-removed/").unwrap();
        let (boot, seen) = (boot(), processes());
        let here = (&*boot, &*seen);
        assert!(!is_left_behind(own, here), "{own}");
        assert!(is_left_behind(own, ("another", &seen)));
        let [_, pid, began_at, inode] = own.split('.').collect::<Vec<_>>()[..] else { panic!() };
        for by in [format!("{boot}-{seen}"), boot.clone()] {
            assert!(is_left_behind(&format!("{by}.{pid}.1.{inode}"), here));
            assert!(!is_left_behind(&format!("{by}.{pid}.{began_at}.{inode}"), here));
        }
        let elsewhere = format!("{boot}-{seen}0.{pid}.1.{inode}");
        assert!(
            !is_left_behind(&elsewhere, here),
            "in a container of his own it has another number"
        );
        assert!(!is_left_behind("of somebody else", here));
        // Nobody has waited for it yet.
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let pid = ended.id().to_string();
        while began(&pid).is_some() {
            std::thread::yield_now();
        }
        assert!(fs::exists(format!("/proc/{pid}/stat")).unwrap());
        ended.wait().unwrap();
    }
}
