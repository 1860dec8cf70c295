//! Every lock of the daemon: the engine's, and one that is waited for without a thread.
//!
//! Invariant, of both: a panic under a lock ends the process, which is then started again
//! ([`engine::Fatal`]). Elsewhere a panic ends the task that it is in, which the runtime
//! catches.

pub use engine::{Condvar, Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

/// A value behind a lock that may be held while its task waits for something else.
#[derive(Default)]
pub struct AsyncMutex<T>(tokio::sync::Mutex<T>);

/// Access to the value, until dropped.
pub struct AsyncGuard<'a, T>(tokio::sync::MutexGuard<'a, T>);

impl<T> AsyncMutex<T> {
    /// A value that nobody has locked.
    pub fn new(value: T) -> Self {
        Self(tokio::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub async fn lock(&self) -> AsyncGuard<'_, T> {
        AsyncGuard(self.0.lock().await)
    }
}

impl<T> Deref for AsyncGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}
impl<T> DerefMut for AsyncGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
impl<T> Drop for AsyncGuard<'_, T> {
    fn drop(&mut self) {
        // Tasks change threads, but only a task that panics is dropped by a thread that does.
        engine::Fatal::end_if_panicking("under a lock");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Before, the runtime caught the panic, and the lock was given to the next.
    #[test]
    fn a_task_that_panics_under_a_lock_ends_the_process_with_its_message() {
        const END: &str = "SLACKLINE_TEST_END";
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        if std::env::var_os(END).is_some() {
            let ended = runtime().block_on(async {
                let value = AsyncMutex::new(1);
                let task = async move {
                    let mut guard = value.lock().await;
                    *guard += 1;
                    tokio::task::yield_now().await;
                    panic!("planted under a lock");
                };
                tokio::spawn(task).await.map(|(): ()| ())
            });
            panic!("the process outlived its task, which ended with {ended:?}");
        }
        let this = "lock::tests::a_task_that_panics_under_a_lock_ends_the_process_with_its_message";
        let mut again = Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", this, "--nocapture"]).env(END, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        const SIGABRT: i32 = 6;
        assert_eq!(output.status.signal(), Some(SIGABRT), "{said}");
        assert!(said.contains("planted under a lock"), "{said}");
    }
}
