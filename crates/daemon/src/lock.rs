//! Every lock of the daemon: the engine's, and two that are waited for without a thread: one in the
//! order in which they came, and one in which users take turns ([`Turns`]).
//!
//! Invariant, of all: a panic under a lock ends the process, which is then started again
//! ([`engine::Fatal`]). Elsewhere a panic ends the task that it is in, which the runtime
//! catches.

pub use engine::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a panic was, for the last line that is said. It may have begun elsewhere, on a thread that drops
/// its tasks with it.
const HELD: &str = "while a task had a lock";

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
        // Tasks change threads, but only a task that panics is dropped by a thread that does, or by one whose
        // panic takes its runtime with it: its text says where that was.
        engine::Fatal::end_if_panicking(HELD);
    }
}

/// What one has at a time, of those who wait for it each user one after the other: who asks for much
/// comes as often as who asks for little.
pub struct Turns<U>(Arc<Mutex<Waiting<U>>>);

/// Those who wait, by user.
struct Waiting<U> {
    is_taken: bool,
    /// In the order of their turns.
    users: VecDeque<(U, VecDeque<oneshot::Sender<Turn<U>>>)>,
}

/// The turn, until dropped; none where nobody has taken it.
pub struct Turn<U>(Option<Arc<Mutex<Waiting<U>>>>);

impl<U> Default for Turns<U> {
    fn default() -> Self {
        let waiting = Waiting { is_taken: false, users: VecDeque::new() };
        Self(Arc::new(Mutex::new(waiting)))
    }
}

impl<U: PartialEq> Turns<U> {
    /// Waits for a turn of this user's. Who gives up before it leaves nothing behind.
    pub async fn turn(&self, user: U) -> Turn<U> {
        let coming = {
            let mut waiting = self.0.lock();
            if !waiting.is_taken {
                waiting.is_taken = true;
                return Turn(Some(Arc::clone(&self.0)));
            }
            let (gives, coming) = oneshot::channel();
            waiting.push(user, gives);
            coming
        };
        coming.await.expect("whoever has the turn gives it on")
    }
}

impl<U: PartialEq> Waiting<U> {
    fn push(&mut self, user: U, gives: oneshot::Sender<Turn<U>>) {
        match self.users.iter_mut().find(|(other, _)| *other == user) {
            Some((_, theirs)) => theirs.push_back(gives),
            None => self.users.push_back((user, VecDeque::from([gives]))),
        }
    }
}

impl<U> Waiting<U> {
    /// Who has the next turn, if somebody waits. His user waits for the one after it behind others.
    fn pop(&mut self) -> Option<oneshot::Sender<Turn<U>>> {
        loop {
            let (user, mut theirs) = self.users.pop_front()?;
            // Some have given up.
            let next = std::iter::from_fn(|| theirs.pop_front()).find(|gives| !gives.is_closed());
            if !theirs.is_empty() {
                self.users.push_back((user, theirs));
            }
            if next.is_some() {
                return next;
            }
        }
    }
}

impl<U> Drop for Turn<U> {
    fn drop(&mut self) {
        let Some(all) = self.0.take() else { return };
        engine::Fatal::end_if_panicking(HELD);
        loop {
            let next = {
                let mut waiting = all.lock();
                let next = waiting.pop();
                waiting.is_taken = next.is_some();
                next
            };
            let Some(next) = next else { return };
            match next.send(Self(Some(Arc::clone(&all)))) {
                Ok(()) => return,
                // He has given up: it is the next one's.
                Err(mut unwanted) => unwanted.0 = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Before, all waited in the order in which they came: who asked for very much at once had all
    /// others behind that.
    #[tokio::test]
    async fn whoever_asks_for_one_turn_waits_for_one_of_each_other_user() {
        let turns = Arc::new(Turns::<&str>::default());
        let first = turns.turn("many").await;
        let had = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        let mut ask = |user: &'static str, gives_up: bool| {
            let (turns, had) = (Arc::clone(&turns), Arc::clone(&had));
            let mut one = Box::pin(async move {
                let turn = turns.turn(user).await;
                had.lock().push(user);
                drop(turn);
            });
            let mut looks = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(one.as_mut().poll(&mut looks).is_pending());
            if !gives_up {
                waiting.push(one);
            }
        };
        for number in 0..100 {
            ask("many", number % 3 == 0);
        }
        ask("one", false);
        ask("two", true);
        ask("two", false);
        drop(first);
        for one in waiting.drain(..) {
            let others = had.lock().len();
            assert!(others <= 68, "{others}");
            tokio::spawn(one);
        }
        let last = loop {
            tokio::task::yield_now().await;
            if had.lock().len() == 68 {
                break turns.turn("many").await;
            }
        };
        assert_eq!(had.lock()[..4], ["many", "one", "two", "many"]);
        drop(last);
    }

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
    /// A failed assertion of a test drops its runtime, and with it what its tasks hold. Before, the last
    /// line was all that was said: the message was with the harness, which ended with the process.
    #[test]
    fn a_panic_elsewhere_is_told_by_what_it_takes_with_it() {
        const END: &str = "SLACKLINE_TEST_END_ELSEWHERE";
        if let Ok(held) = std::env::var(END) {
            engine::keep_panics();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (value, turns) = (AsyncMutex::new(1), Turns::<&str>::default());
                tokio::spawn(async move {
                    let _held = match &*held {
                        "a guard" => (Some(value.lock().await), None),
                        _ => (None, Some(turns.turn("one").await)),
                    };
                    std::future::pending::<()>().await;
                });
                tokio::task::yield_now().await;
                panic!("planted elsewhere");
            });
        }
        let this = "lock::tests::a_panic_elsewhere_is_told_by_what_it_takes_with_it";
        for held in ["a guard", "a turn"] {
            // What it says is kept by its harness.
            let mut again = Command::new(std::env::current_exe().unwrap());
            let output = again.args(["--exact", this]).env(END, held).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            const SIGABRT: i32 = 6;
            assert_eq!(output.status.signal(), Some(SIGABRT), "{held}: {said}");
            assert!(
                said.contains("lock.rs:") && said.contains("planted elsewhere"),
                "{held}: {said}"
            );
        }
    }
}
