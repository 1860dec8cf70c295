//! The time in which a program had to make room in its socket: its own, and not the daemon's.
//!
//! It begins where the socket is found full, and ends where the system says that there is room
//! again. When the thread that sends comes back to the socket does not matter: the answer waits
//! for the daemon from then on, as it did until it found the socket full.
//!
//! What is not seen: a thread of the daemon that looks for what the system says, and comes late to
//! that, finds the room late. So much is taken for the program's.

use crate::lock::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use tokio::task::coop;
use units::{Duration, Instant};

/// Spans that are known each for itself; what was before them is known together.
const SPANS_MAX: usize = 32;

/// So much, on one connection.
#[derive(Clone, Default)]
pub(crate) struct MadeRoom(Arc<Watch>);

#[derive(Default)]
struct Watch(Mutex<State>);

#[derive(Default)]
struct State {
    /// Since when the socket is full.
    since: Option<Instant>,
    /// There was room since the socket was last looked at.
    has_room: bool,
    /// Whoever sends.
    waker: Option<Waker>,
    /// When it was full before, in order.
    spans: VecDeque<Span>,
}

/// So much of what lies between two instants.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Instant,
    until: Instant,
    full: Duration,
}

impl MadeRoom {
    /// Looks whether the socket takes something: pending where it is full.
    pub(crate) fn watch<T>(
        &self,
        context: &mut Context<'_>,
        look: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        debug_assert!(!engine::on_a_disks_thread(), "a callback hands over to who writes");
        let mut state = self.0.0.lock();
        state.has_room = false;
        let is_known = state.waker.as_ref().is_some_and(|it| it.will_wake(context.waker()));
        let before = if is_known { None } else { state.waker.replace(context.waker().clone()) };
        drop(state);
        drop(before); // not under the lock: with the last one goes what it wakes
        let waker = Waker::from(Arc::clone(&self.0));
        // Without it the runtime lets other tasks go first, and nobody looks at the socket.
        let is_looked_at = coop::has_budget_remaining();
        let looked = look(&mut Context::from_waker(&waker));
        let mut state = self.0.0.lock();
        match looked.is_pending() {
            // Room may have come since it was looked at.
            true if state.has_room || !is_looked_at => {}
            true => drop(state.since.get_or_insert_with(engine::now)),
            false => state.ends(),
        }
        looked
    }

    /// How long the socket has been full from then on.
    pub(crate) fn since(&self, from: Instant) -> Duration {
        let state = self.0.0.lock();
        let before =
            state.spans.iter().map(|span| span.full.min(span.until.saturating_since(from)));
        let before = before.fold(Duration::ZERO, Duration::saturating_add);
        let still = state.since.map(|since| engine::now().saturating_since(since.max(from)));
        before.saturating_add(still.unwrap_or_default())
    }
}

impl State {
    fn ends(&mut self) {
        let Some(from) = self.since.take() else { return };
        let until = engine::now();
        self.spans.push_back(Span { from, until, full: until.saturating_since(from) });
        if self.spans.len() > SPANS_MAX
            && let Some(oldest) = self.spans.pop_front()
            && let Some(next) = self.spans.front_mut()
        {
            next.from = oldest.from;
            next.full = next.full.saturating_add(oldest.full);
        }
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        let mut state = self.0.lock();
        state.ends();
        state.has_room = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use tokio::net::UnixStream;

    /// A task that has done much at once waits for others before the runtime looks at its socket.
    #[tokio::test]
    async fn a_task_that_lets_others_go_first_has_found_no_socket_full() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        ours.writable().await.unwrap();
        let (room, began) = (MadeRoom::default(), engine::now());
        poll_fn(|context| {
            while coop::has_budget_remaining() {
                let _ = pin!(coop::consume_budget()).poll(context);
            }
            let looked = room.watch(context, |context| ours.poll_write_ready(context));
            assert!(looked.is_pending());
            Poll::Ready(())
        })
        .await;
        assert_eq!(room.since(began), Duration::ZERO);
    }
}
