//! Requests cut into chunks: into which, and what each of them takes.
//!
//! The first chunk of a part may begin anywhere, each of the others begins where the one before it
//! ended; what the schedule counts where others go between is its own.

use crate::predictions::worst;
use alloc::collections::VecDeque;
use disk::Profile;
use sched::Rest;
use units::{Access, Bytes, Command, Duration};

/// Into what requests are cut where others shall not wait for all of one.
#[derive(Debug)]
pub struct Chunks<W> {
    /// No command is longer.
    pub len: Bytes,
    /// Whether what a command is for can be cut.
    pub may_cut: fn(&W) -> bool,
    /// Whether it stays whole as best effort: what begins in the slack then ends by itself, and
    /// what waits can still get another class.
    pub stays_whole: fn(&W) -> bool,
    /// Cuts it behind so many bytes of its command: what it does from now on, and what is left,
    /// each with its command.
    pub cut: Cut<W>,
}

/// See [`Chunks::cut`].
pub type Cut<W> = fn(&mut W, Bytes) -> (Command, (Command, W));

impl<W> Clone for Chunks<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Chunks<W> {}

pub(crate) fn len_of(command: &Command) -> Bytes {
    command.access().map_or(Bytes::ZERO, |access| access.len)
}

/// The first chunk of a request that others may interrupt, and what is left after it.
pub(crate) fn first_chunk<W>(
    profile: &Profile,
    chunks: &Chunks<W>,
    (command, work): (Option<Command>, &W),
    rest: &VecDeque<(Option<Command>, W)>,
) -> Option<(Command, Rest)> {
    let command = command?;
    let len = Some(chunks.len);
    let done = Rest { bound: Duration::ZERO, commands: 0 };
    let may_cut = len_of(&command) > chunks.len && (chunks.may_cut)(work);
    let (first, own) = match command {
        Command::Transfer(access) if may_cut => {
            let (near, far) = access.cut(chunks.len);
            let (near, far) = (Command::Transfer(near), Command::Transfer(far));
            (near, in_pieces(profile, &far, len, |piece| on_from(profile, &far, piece)))
        }
        _ => (command, done),
    };
    let rest = rest.iter().filter_map(|(command, _)| command.as_ref());
    let rest = rest.fold(own, |all, part| both(all, from_anywhere(profile, part, len)));
    (rest.commands > 0).then_some((first, rest))
}

pub(crate) fn both(one: Rest, other: Rest) -> Rest {
    let bound = one.bound.saturating_add(other.bound);
    Rest { bound, commands: one.commands + other.commands }
}

/// Bound on a command in pieces of up to `len`: the first one as `first` says, and each of the
/// others where the one before it ended.
pub(crate) fn in_pieces(
    profile: &Profile,
    command: &Command,
    len: Option<Bytes>,
    first: impl Fn(&Command) -> Duration,
) -> Rest {
    let Some(&access) = command.access() else {
        return Rest { bound: first(command), commands: 1 };
    };
    let len = len.unwrap_or(access.len).min(access.len);
    let pieces = access.len.div_ceil(len);
    let piece = Command::Transfer(Access { len, ..access });
    let bound = first(&piece) + on_from(profile, command, &piece) * (pieces - 1);
    Rest { bound, commands: u32::try_from(pieces).unwrap_or(u32::MAX) }
}

/// Bound on a piece of a transfer that follows on another piece of it.
fn on_from(profile: &Profile, command: &Command, piece: &Command) -> Duration {
    let Some(access) = command.access() else { return profile.flush() };
    let range = access.lba..access.end();
    profile.follows(range, len_of(piece), access.len, access.direction)
}

pub(crate) fn from_anywhere(profile: &Profile, command: &Command, len: Option<Bytes>) -> Rest {
    let worst = |piece: &Command| match piece.access() {
        Some(access) => worst(profile, access),
        None => profile.flush(),
    };
    in_pieces(profile, command, len, worst)
}
