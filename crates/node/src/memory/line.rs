//! The lines in which operations without a stream wait for memory, and who has it.
//!
//! There is a line for each class ([`Rank`]): requests of volumes under contract for which
//! none is set aside ([`reserve`](crate::memory::reserve)), interactive, normal, background.
//!
//! * Classes are served in that order. After memory was given
//!   [`MEMORY_TURNS`](limits::MEMORY_TURNS) times to classes above one that waits, the lower
//!   one that has waited longest has its turn: nobody waits for ever. Background has no more
//!   than its part ([`BACKGROUND_MEMORY_DIVISOR`](limits::BACKGROUND_MEMORY_DIVISOR)), since a
//!   disk that is always wanted keeps what it has.
//! * Within a class users take turns. While others wait, a user who has his part
//!   ([`USER_MEMORY_DIVISOR`](limits::USER_MEMORY_DIVISOR)) of what best effort can have comes
//!   after all who have less, whatever the class; nobody waits because of it alone.
//! * Where as many wait in a class as may, the last of the user who has most of them there is refused
//!   for a newcomer, unless that is the newcomer's own.
//! * Whose turn it is waits until there is enough for him: nobody who asks for less goes
//!   before. Only interactive requests may, with the memory that is kept for them.
//!
//! Invariants: `waiting` counts what is in the lines; `held` has what was given and has not
//! come back, and `users` the sums of it.

use crate::api::{HandleId, Op, Priority, Span, Ticket};
use crate::core::Core;
use crate::limits;
use crate::memory::arena::{Arena, Use};
use crate::memory::reserve::Place;
use crate::volumes::services::Holder;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use sched::Sorted;
use store::VolumeId;
use units::{Bytes, Instant};

/// Who gets memory first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Of a volume under contract.
    Contract,
    Interactive,
    Normal,
    Background,
}

const RANKS: [Rank; 4] = [Rank::Contract, Rank::Interactive, Rank::Normal, Rank::Background];

impl From<Priority> for Rank {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Interactive => Self::Interactive,
            Priority::Normal => Self::Normal,
            Priority::Background => Self::Background,
        }
    }
}

/// An operation that needs memory.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub ticket: Ticket,
    /// The user who asks, and by which handle.
    pub uid: u32,
    pub handle: Option<HandleId>,
    /// When the program asked.
    pub arrived: Instant,
    pub op: Op,
    pub len: Bytes,
    pub rank: Rank,
    /// Of a volume, and on which of its disks it begins; memory may be asked for without one.
    pub place: Option<Place>,
}

/// What somebody has.
#[derive(Clone, Copy, Debug)]
struct Held {
    uid: u32,
    len: Bytes,
    rank: Rank,
    purpose: Use,
}

/// One class: its users in the order of their turns, each with what it asked for.
#[derive(Clone, Debug, Default)]
struct Users(VecDeque<(u32, VecDeque<(u64, Waiter)>)>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    classes: [Users; RANKS.len()],
    waiting: [usize; RANKS.len()],
    held: Sorted<Bytes, Held>,
    users: BTreeMap<u32, Bytes>,
    /// What background has.
    background: Bytes,
    /// How often memory was given to a class above one that waits, since a lower one had any.
    passed: u64,
    /// Operations with memory of the lines that have not ended.
    under_way: u64,
    /// When memory last came back, or a transfer ended, or the first began to wait.
    moved: Instant,
    next: u64,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.iter().all(|&waiting| waiting == 0)
    }

    /// How many wait in a class.
    pub(crate) fn waiting(&self, rank: Rank) -> usize {
        self.waiting[rank as usize]
    }

    /// Whether somebody waits as this volume's, or this handle's, under contract.
    pub(crate) fn has_waiting_of(&self, holder: Holder) -> bool {
        let Users(users) = &self.classes[Rank::Contract as usize];
        let mut all = users.iter().flat_map(|(_, theirs)| theirs.iter());
        all.any(|(_, waiter)| waiter.place.is_some_and(|(other, _)| other == holder))
    }

    /// When those that wait are refused, because all memory is in callers' hands and none
    /// of them has given any back for long: it may be one that waits who has it.
    pub(crate) fn due(&self) -> Option<Instant> {
        let stuck = !self.is_empty() && self.under_way == 0;
        stuck.then(|| self.moved.saturating_add(limits::MEMORY_WITHIN))
    }

    /// Who waits in vain has been refused; the others are looked at again as much later.
    pub(crate) fn looked_at(&mut self, now: Instant) {
        self.moved = now;
    }

    /// An operation begins with memory; true where it is of the lines.
    pub(crate) fn begin(&mut self, span: &Span) -> bool {
        let ours = self.held.get(span.offset).is_some();
        self.under_way += u64::from(ours);
        ours
    }

    /// One of these has ended.
    pub(crate) fn end(&mut self, now: Instant) {
        self.under_way -= 1;
        self.moved = now;
    }

    /// Memory for a newcomer, where nobody waits before him.
    pub(crate) fn take_at_once(&mut self, core: &mut Core, waiter: &Waiter) -> Option<Span> {
        if self.is_empty() && self.is_open(waiter.rank, core.arena.for_best_effort()) {
            return self.take(core, waiter);
        }
        (waiter.rank == Rank::Interactive && self.waiting(Rank::Interactive) == 0)
            .then(|| self.take_for(core, waiter, Use::Interactive))?
    }

    /// The newcomer waits. Gives who is refused for that, where too many wait: it may be he.
    pub(crate) fn wait(&mut self, core: &mut Core, now: Instant, waiter: Waiter) -> Option<Waiter> {
        let is_full = self.waiting(waiter.rank) >= limits::BEST_EFFORT_WAITING_MAX;
        let refused = match is_full.then(|| self.last_of_most(waiter.rank, waiter.uid)) {
            Some(None) => return Some(waiter),
            refused => refused.flatten(),
        };
        if self.is_empty() {
            self.moved = now;
            core.wake_timers();
        }
        self.waiting[waiter.rank as usize] += 1;
        self.classes[waiter.rank as usize].push(self.next, waiter);
        self.next += 1;
        refused
    }

    /// Takes out the last of the user who has most in a class; none where nobody has more than `uid`.
    fn last_of_most(&mut self, rank: Rank, uid: u32) -> Option<Waiter> {
        let Users(users) = &mut self.classes[rank as usize];
        let own = users.iter().find(|(other, _)| *other == uid).map_or(0, |(_, own)| own.len());
        let most = (0..users.len()).max_by_key(|&at| users[at].1.len())?;
        let (_, theirs) = users.get_mut(most).filter(|(_, theirs)| theirs.len() > own)?;
        let (_, last) = theirs.pop_back()?;
        if theirs.is_empty() {
            users.remove(most);
        }
        self.waiting[rank as usize] -= 1;
        Some(last)
    }

    /// What was given comes back.
    pub(crate) fn give(&mut self, arena: &mut Arena, now: Instant, span: Span) {
        let held = self.held.remove(span.offset).expect("memory that was given");
        assert!(span.len == held.len, "memory comes back as it was given");
        arena.give(span, held.purpose);
        let has = self.users.get_mut(&held.uid).expect("its user has it");
        *has -= held.len;
        if held.rank == Rank::Background {
            self.background -= held.len;
        }
        if has.is_zero() {
            self.users.remove(&held.uid);
        }
        self.moved = now;
    }

    /// The next that can have memory, with it; none where nobody can.
    pub(crate) fn serve(&mut self, core: &mut Core) -> Option<(Waiter, Span)> {
        if self.is_empty() {
            return None; // mostly; each operation asks
        }
        self.serve_kept(core).or_else(|| {
            let (rank, at) = self.whose_turn(core.arena.for_best_effort())?;
            let span = self.take(core, &self.classes[rank as usize].first(at).1.clone())?;
            let lower = RANKS.into_iter().any(|other| other > rank && self.waiting(other) > 0);
            let higher = RANKS.into_iter().any(|other| other < rank && self.waiting(other) > 0);
            self.passed = if higher || !lower { 0 } else { self.passed + 1 };
            Some((self.pop(rank, at), span))
        })
    }

    /// An interactive request with memory that is kept for such.
    fn serve_kept(&mut self, core: &mut Core) -> Option<(Waiter, Span)> {
        let class = &self.classes[Rank::Interactive as usize];
        let at = class.turn(|uid| !self.has_part(uid, core.arena.for_best_effort())).or(
            // All have their part.
            class.turn(|_| true),
        )?;
        let waiter = class.first(at).1.clone();
        let span = self.take_for(core, &waiter, Use::Interactive)?;
        Some((self.pop(Rank::Interactive, at), span))
    }

    /// The class that is served next, and whose turn it is there.
    fn whose_turn(&self, whole: Bytes) -> Option<(Rank, usize)> {
        let turn = |fair: bool| {
            let may = move |uid: u32| !fair || !self.has_part(uid, whole);
            let open = RANKS.into_iter().filter(|&rank| self.is_open(rank, whole));
            let mut open = open.filter_map(|rank| {
                let at = self.classes[rank as usize].turn(may)?;
                Some((rank, at))
            });
            let first = open.next()?;
            let oldest = open.min_by_key(|&(rank, at)| self.classes[rank as usize].first(at).0);
            Some(oldest.filter(|_| self.passed >= limits::MEMORY_TURNS).unwrap_or(first))
        };
        turn(true).or_else(|| turn(false))
    }

    /// Whether a class may have more.
    fn is_open(&self, rank: Rank, whole: Bytes) -> bool {
        let part = whole / limits::BACKGROUND_MEMORY_DIVISOR;
        rank != Rank::Background || self.background < part
    }

    /// Whether a user has as much as one may while others wait.
    fn has_part(&self, uid: u32, whole: Bytes) -> bool {
        let has = self.users.get(&uid).copied().unwrap_or(Bytes::ZERO);
        has >= whole / limits::USER_MEMORY_DIVISOR
    }

    fn take(&mut self, core: &mut Core, waiter: &Waiter) -> Option<Span> {
        let kept = || (waiter.rank == Rank::Interactive).then_some(Use::Interactive);
        let kept = kept().and_then(|kept| self.take_for(core, waiter, kept));
        kept.or_else(|| self.take_for(core, waiter, Use::BestEffort))
    }

    fn take_for(&mut self, core: &mut Core, waiter: &Waiter, purpose: Use) -> Option<Span> {
        let span = core.arena.take(waiter.len, purpose)?;
        let held = Held { uid: waiter.uid, len: span.len, rank: waiter.rank, purpose };
        self.held.insert(span.offset, held);
        if waiter.rank == Rank::Background {
            self.background += span.len;
        }
        *self.users.entry(waiter.uid).or_default() += span.len;
        Some(span)
    }

    /// The first in the line that can use memory which is set aside for `place`: of at most
    /// `longest` bytes.
    pub(crate) fn pop_of(&mut self, place: Place, longest: Bytes) -> Option<Waiter> {
        let Users(users) = &self.classes[Rank::Contract as usize];
        let all = users.iter().enumerate().flat_map(|(at, (_, theirs))| {
            theirs.iter().enumerate().map(move |(number, one)| (at, number, one))
        });
        let theirs = all.filter(|(.., (_, one))| one.place == Some(place) && one.len <= longest);
        let (at, number, _) = theirs.min_by_key(|(.., (age, _))| *age)?;
        Some(self.remove(Rank::Contract, at, number))
    }

    /// Everybody leaves who waits and is meant, in the order in which they came.
    pub(crate) fn leave(&mut self, is_meant: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let mut gone = Vec::new();
        for rank in RANKS {
            let Users(users) = &mut self.classes[rank as usize];
            for (_, theirs) in users.iter_mut() {
                let (leave, stay): (Vec<_>, Vec<_>) =
                    theirs.drain(..).partition(|(_, waiter)| is_meant(waiter));
                *theirs = stay.into();
                self.waiting[rank as usize] -= leave.len();
                gone.extend(leave);
            }
            users.retain(|(_, theirs)| !theirs.is_empty());
        }
        gone.sort_by_key(|(age, _)| *age);
        gone.into_iter().map(|(_, waiter)| waiter).collect()
    }

    /// Everybody leaves who waits for a volume.
    pub(crate) fn leave_volume(&mut self, volume: VolumeId) -> Vec<Waiter> {
        self.leave(|waiter| waiter.place.is_some_and(|(other, _)| other.volume == volume))
    }

    /// Everybody leaves who waits as this volume's, or this handle's.
    pub(crate) fn leave_holder(&mut self, holder: Holder) -> Vec<Waiter> {
        self.leave(|waiter| waiter.place.is_some_and(|(other, _)| other == holder))
    }

    /// Who waits counts as one who asks now.
    pub(crate) fn begin_anew(&mut self, now: Instant, holder: Holder) {
        let users = self.classes.iter_mut().flat_map(|Users(users)| users.iter_mut());
        let waiters = users.flat_map(|(_, theirs)| theirs.iter_mut());
        for (_, waiter) in waiters {
            if waiter.place.is_some_and(|(other, _)| other == holder) {
                waiter.arrived = now;
            }
        }
    }

    fn pop(&mut self, rank: Rank, at: usize) -> Waiter {
        self.remove(rank, at, 0)
    }

    /// Takes one out, and lets its user wait for his next turn.
    fn remove(&mut self, rank: Rank, at: usize, number: usize) -> Waiter {
        self.waiting[rank as usize] -= 1;
        let Users(users) = &mut self.classes[rank as usize];
        let (uid, mut theirs) = users.remove(at).expect("a user who waits");
        let (_, waiter) = theirs.remove(number).expect("it waits");
        if !theirs.is_empty() {
            users.push_back((uid, theirs));
        }
        waiter
    }
}

impl Users {
    fn push(&mut self, age: u64, waiter: Waiter) {
        let Self(users) = self;
        match users.iter_mut().find(|(uid, _)| *uid == waiter.uid) {
            Some((_, theirs)) => theirs.push_back((age, waiter)),
            None => users.push_back((waiter.uid, VecDeque::from([(age, waiter)]))),
        }
    }

    /// Whose turn it is of those who may have one.
    fn turn(&self, may: impl Fn(u32) -> bool) -> Option<usize> {
        self.0.iter().position(|(uid, _)| may(*uid))
    }

    /// What a user asked for first.
    fn first(&self, at: usize) -> &(u64, Waiter) {
        self.0[at].1.front().expect("a user in the line has asked for something")
    }
}
