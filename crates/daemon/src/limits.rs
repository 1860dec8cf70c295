//! The bounds of this room, and the relations between them.
//!
//! Every wait on a client has an end, which stands here. What is waited for without an
//! end of its own is the disks, and one's turn.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use units::Bytes;
use wire::frame::{BODY_MAX, JSON_MAX, OUTSTANDING_MAX};

/// What `coming` gives, if it comes within the time. What is there already is not timed: a timer
/// reads the clock, which is slow in some virtual machines.
pub async fn within<T>(limit: Duration, coming: impl Future<Output = T>) -> Option<T> {
    let mut coming = pin!(coming);
    match poll_fn(|context| Poll::Ready(coming.as_mut().poll(context))).await {
        Poll::Ready(came) => Some(came),
        Poll::Pending => tokio::time::timeout(limit, coming).await.ok(),
    }
}

/// Connections at once, control and data together, where the system gives as many
/// descriptors; see [`connections_for`].
pub const CONNECTIONS_MAX: usize = 4096;
/// Fewest connections that a daemon is of any use with.
pub const CONNECTIONS_MIN: usize = 64;
/// One user's part of them: a half. What he has at work is bounded much closer by quotas;
/// this is for what waits.
pub const CONNECTIONS_PER_USER_DIVISOR: usize = 2;
/// What one user's tokens have together: a quarter, counted apart from what he has himself, so
/// that whoever holds one of them does not keep him out.
pub const CONNECTIONS_BY_TOKEN_DIVISOR: usize = 4;
/// So many of them are only for root and the daemon's own user, who look after it.
pub const CONNECTIONS_FOR_ADMINISTRATORS: usize = 16;
/// Descriptors that a connection may need: its socket, once more while it is full or for HTTP, and the two
/// pieces of memory of a window or the two descriptors of a file.
pub const DESCRIPTORS_PER_CONNECTION: usize = 4;
/// Descriptors for all else: disks, the runtime, streams whose program has not come yet.
pub const DESCRIPTORS_APART: usize = 256;
/// Control requests of one user that are served at once, with those whose answers he has not taken;
/// further ones wait their turn.
pub const CONTROL_REQUESTS_PER_USER: usize = 32;
/// Longest head of a control request.
pub const CONTROL_HEAD_MAX: usize = 16 << 10;
/// Longest body of a control request. The longest sensible one is under 1 KiB.
pub const CONTROL_BODY_MAX: usize = 64 << 10;
/// A control connection that has sent no whole head of a request for so long is closed:
/// also one that is kept open between two requests.
pub const CONTROL_HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The body of a control request is waited for so long.
pub const CONTROL_BODY_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked how far a program has filled its window that rings no bell, because its blocks
/// last longer than this: times of recordings are told to half a second. A look that finds nothing
/// reads one word; another one is a call of the pool.
pub const LOOK_AT_WRITER: Duration = Duration::from_millis(500);
/// What the kernel holds, about, of answers on their way to one program on this machine, which is as
/// much as a transfer has: of less, the program and the daemon would wake each other many times for
/// each. Only connections have it that count as best-effort connections or streams of their user.
pub const SOCKET_HOLDS: Bytes = Bytes::MIB;
/// Memory that the unanswered requests of one best-effort connection may hold.
pub const BEST_EFFORT_BYTES_MAX: Bytes = Bytes::mib(8);
/// One user's part of the pool's memory, over all of his best-effort connections: a
/// quarter. Best effort can have three quarters of it, so that somebody who lets his
/// requests stand leaves twice as much to others.
pub const BEST_EFFORT_PER_USER_DIVISOR: u64 = 4;
/// Unit of the accounts of both: the smallest transfer.
pub const BEST_EFFORT_UNIT: Bytes = Bytes::kib(4);
/// A user has so much of what is cached where another one has 1, at the most.
pub const CACHE_SHARE_MAX: u32 = 100;
/// A stream without a data connection is closed after this time: its program
/// has died between the two sockets, or never meant to come.
pub const ATTACH_WITHIN: Duration = Duration::from_secs(10);
/// A stream's program may be silent for so long, where the configuration says nothing else:
/// longer than anybody looks for something in a film, and short against a night.
pub const KEEP_ALIVE: units::Duration = units::Duration::from_secs(300);
/// The limits of that setting; zero is for ever.
pub const KEEP_ALIVE_MIN: units::Duration = units::Duration::from_secs(1);
/// As above.
pub const KEEP_ALIVE_MAX: units::Duration = units::Duration::from_secs(24 * 3600);
/// A data connection that has not said what it wants is closed after this time.
pub const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// What is left of an answer that goes on, when the daemon stops, has this time to be written.
pub const LAST_WORD_WITHIN: Duration = Duration::from_millis(250);
/// Events that are kept for whoever asks.
pub const EVENTS_KEPT: usize = 1_000;
/// Of what happens between two looks so many events are told one by one.
pub const EVENTS_PER_LOOK: usize = 100;
/// So many of streams that came and went are kept whatever else there is to keep, for those who ask
/// after each look. Further ones go before all else: whoever opens streams and closes them hides
/// nothing that needs a person.
pub const EVENTS_OF_STREAMS_MIN: usize = EVENTS_PER_LOOK;
/// A pool that takes longer than this to answer has decided, and does something else for it: it
/// searches for what would have fitted, or clears memory.
pub const DECIDED_WITHIN: Duration = Duration::from_millis(20);
/// Events that wait for the command that is run for each.
pub const HOOK_WAITING_MAX: usize = 256;
/// That command has this time for each.
pub const HOOK_WITHIN: Duration = Duration::from_secs(10);
/// A TLS handshake, with both sides' part of it, has this time.
pub const TLS_WITHIN: Duration = Duration::from_secs(5);
/// Who comes over TCP has shown a token that is good after this time, or is sent away.
pub const STRANGER_WITHIN: Duration = Duration::from_secs(15);
/// Connections over TCP of those who have not shown a token that is good: the one that has waited
/// longest gives way to the next.
pub const STRANGERS_MAX: usize = 128;
/// A player begins to read by what it was given for so long; the page gives it another before.
pub const PLAYER_WITHIN: Duration = Duration::from_secs(600);
/// Tokens of one user that are good at once,
pub const TOKENS_PER_USER: usize = 256;
/// and of all users: the list of them is written as a whole with each.
pub const TOKENS_MAX: usize = 4096;
/// Programs and pages that are sent events, in all.
pub const WATCHERS_MAX: usize = 64;
/// Those of one user on this machine, and as many by his tokens.
pub const WATCHERS_PER_USER: usize = 8;
/// A frame that has begun to come goes on within this time, or its connection ends: a
/// body that stops in the middle holds memory that others wait for. Between two frames a
/// program may be silent for as long as it likes.
pub const FRAME_WITHIN: Duration = Duration::from_secs(10);
/// A program that does not take an answer for so long is let go, for the same reason. What is in
/// the socket counts as taken, and the system tells of room there when a part of it is free.
pub const ANSWER_TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// In each of these two times so many bytes move at least, or all that are left: a slow link moves
/// more, and who sends single bytes does not keep the memory for ever.
pub const MOVED_MIN: usize = 4 << 10;
/// What a plan may take, in contracts that are tried on a disk: some ten seconds of a processor.
pub const PLAN_WORK_MAX: u64 = 5_000_000;
/// A file is looked at for so long; a measurement of its device takes four seconds of it.
pub const FILE_WITHIN: Duration = Duration::from_secs(30);
/// Files of one user that are looked at, or closed, at once: each has a thread, since the
/// file system that such a descriptor leads to may be the user's own and never answer.
pub const FILES_PER_USER: usize = 32;
/// The same of all users.
pub const FILES_AT_ONCE: usize = 128;
/// The last words to a program are given up after this time: one that does not
/// read must not keep its stream open, or the daemon from stopping.
pub const GOODBYE_WITHIN: Duration = Duration::from_secs(1);
/// After the stop signal, control requests under way get this long to finish,
pub const CONTROL_STOP_WITHIN: Duration = Duration::from_secs(2);
/// and then data connections to say goodbye.
pub const DATA_STOP_WITHIN: Duration = Duration::from_secs(2);
/// After the stop signal, so long is waited for clients, whatever they do.
pub const CLIENTS_STOP_WITHIN: Duration = Duration::from_secs(5);
/// After the stop signal, the disks get this long to sync every writer, and as long again
/// for the final commit: a disk that needs longer hangs. systemd's own patience
/// (`TimeoutStopSec` of the unit file) is longer than all of this.
pub const DISKS_STOP_WITHIN: Duration = Duration::from_secs(30);

/// How many connections so many descriptors suffice for.
pub const fn connections_for(descriptors: usize) -> usize {
    let connections = descriptors.saturating_sub(DESCRIPTORS_APART) / DESCRIPTORS_PER_CONNECTION;
    if connections > CONNECTIONS_MAX {
        CONNECTIONS_MAX
    } else if connections < CONNECTIONS_MIN {
        CONNECTIONS_MIN
    } else {
        connections
    }
}

const _: () = {
    assert!(BEST_EFFORT_BYTES_MAX.get() >= BODY_MAX as u64, "one transfer must fit");
    assert!(SOCKET_HOLDS.get() >= BODY_MAX as u64, "one transfer must fit");
    assert!(BEST_EFFORT_BYTES_MAX.get() / BEST_EFFORT_UNIT.get() <= u32::MAX as u64);
    let per_user = node::limits::MEMORY_MIN.get() / BEST_EFFORT_PER_USER_DIVISOR;
    assert!(per_user >= BODY_MAX as u64, "one transfer must fit in a user's part");
    assert!(OUTSTANDING_MAX > 0);
    assert!(JSON_MAX <= CONTROL_BODY_MAX);
    assert!(CONTROL_HEAD_MAX >= 8192, "hyper takes no shorter ones");
    // One user never has all that there is, and two leave a place for those who can help.
    assert!(CONNECTIONS_PER_USER_DIVISOR >= 2);
    assert!(CONNECTIONS_BY_TOKEN_DIVISOR > CONNECTIONS_PER_USER_DIVISOR);
    assert!(CONNECTIONS_MIN > 2 * CONNECTIONS_FOR_ADMINISTRATORS);
    assert!(FILES_PER_USER < FILES_AT_ONCE);
    assert!(TLS_WITHIN.as_millis() + HELLO_WITHIN.as_millis() < STRANGER_WITHIN.as_millis());
    assert!(TOKENS_PER_USER * 2 <= TOKENS_MAX, "no user has all of them");
    // Those who show no token leave most of the house to others.
    assert!(STRANGERS_MAX * 16 <= CONNECTIONS_MAX);
    assert!(EVENTS_OF_STREAMS_MIN * 2 <= EVENTS_KEPT, "most are of what needs a person");
    assert!(KEEP_ALIVE_MIN.as_nanos() <= KEEP_ALIVE.as_nanos());
    assert!(KEEP_ALIVE.as_nanos() <= KEEP_ALIVE_MAX.as_nanos());
    assert!(connections_for(usize::MAX) == CONNECTIONS_MAX);
    // All clients together, the last words among it.
    let clients = CONTROL_STOP_WITHIN.as_millis() + DATA_STOP_WITHIN.as_millis();
    assert!(clients < CLIENTS_STOP_WITHIN.as_millis());
    assert!(GOODBYE_WITHIN.as_millis() < DATA_STOP_WITHIN.as_millis());
    assert!(FRAME_WITHIN.as_millis() <= ANSWER_TAKEN_WITHIN.as_millis());
};
