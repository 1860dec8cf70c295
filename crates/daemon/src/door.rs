//! Who is in: every connection, control and data, counted by user.
//!
//! A connection *waits* while the daemon waits for its program, for the greeting or for the next
//! request on a control connection, and while such a request waits for its turn. Else it is *at work*. One that waits has no
//! right to stay: when its user has as many as he may have, the one of his that has waited
//! longest gives way to his next; when the house is full, the one of the user who has
//! most. What is at work stays, and who finds nobody that gives way is told so at once.
//! So nobody waits in a listen queue for somebody else to go.
//!
//! Those who have shown a token are users of their own, with fewer connections and turns: they take
//! none of those that its maker has on this machine. Those who have come over TCP and have not shown
//! one yet are one user of few connections.
//!
//! Invariants: no user has more than [`Guest`] gives him, all together no more than
//! `all`, and the last few are for administrators; a place is free only when its
//! connection is closed; a [`Turn`] comes back with the end of what is done in it and of its answer,
//! also where all connections of its user are closed before.

use crate::limits::{
    CONNECTIONS_BY_TOKEN_DIVISOR, CONNECTIONS_FOR_ADMINISTRATORS, CONNECTIONS_PER_USER_DIVISOR,
    CONTROL_REQUESTS_PER_USER, STRANGERS_MAX,
};
use crate::lock::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Whom a connection is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guest {
    /// A user of this machine.
    User(u32),
    /// Whoever has shown a token of this user's.
    Bearer(u32),
    /// Whoever has come over TCP and has not shown yet who he is.
    Stranger,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Control.
    Control,
    /// Data.
    Data,
}

/// Why there is no place for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The user has so many connections at work.
    User(usize),
    /// All together have.
    House(usize),
    /// It had a place, which it gave to another that needed it.
    GaveWay,
    /// The daemon stops.
    Stopping,
}

/// The turn of one request among those of its user, until dropped. It stands for the work that is
/// done and for the answer to it that nobody has taken yet, not for the connection on which somebody
/// waits for that.
pub struct Turn {
    door: Arc<Door>,
    guest: Guest,
    permit: Option<OwnedSemaphorePermit>,
}

/// Tells a connection to leave; closed when it has.
type Leave = Arc<watch::Sender<bool>>;

/// See the module.
pub struct Door {
    all: usize,
    per_user: usize,
    by_token: usize,
    strangers: usize,
    book: Mutex<Book>,
    inside: watch::Sender<Inside>,
}

/// How many are in.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    control: usize,
    data: usize,
}

#[derive(Default)]
struct Book {
    users: HashMap<Guest, User>,
    /// Everybody, to be told when the house closes.
    everybody: BTreeMap<u64, Leave>,
    next: u64,
    is_closed: bool,
}

struct User {
    connections: usize,
    /// Those that wait, by when they began to: who came first has waited longest.
    waiting: BTreeMap<u64, Leave>,
    requests: Arc<Semaphore>,
}

/// The place of a connection, free again when dropped. What it is the place of must be
/// closed by then.
pub struct Place {
    door: Arc<Door>,
    kind: Kind,
    guest: Guest,
    number: u64,
    leave: Leave,
    told: watch::Receiver<bool>,
    /// Since when it waits; none while it is at work.
    waits: Mutex<Option<u64>>,
}

impl Door {
    /// A house for so many connections.
    pub fn new(all: usize) -> Arc<Self> {
        Arc::new(Self {
            all,
            per_user: all / CONNECTIONS_PER_USER_DIVISOR,
            by_token: all / CONNECTIONS_BY_TOKEN_DIVISOR,
            // In a small house fewer.
            strangers: STRANGERS_MAX.min(all / CONNECTIONS_PER_USER_DIVISOR / 2),
            book: Mutex::default(),
            inside: watch::Sender::default(),
        })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    /// A place for a connection of this guest, at first waiting. Waits for nobody but the
    /// connection that gives way.
    ///
    /// # Errors
    /// Where nobody gives way.
    pub async fn enter(
        self: &Arc<Self>,
        kind: Kind,
        guest: Guest,
        is_administrator: bool,
    ) -> Result<Place, Full> {
        let all = match is_administrator {
            true => self.all,
            false => self.all - CONNECTIONS_FOR_ADMINISTRATORS,
        };
        loop {
            let leaving = {
                let mut book = self.book();
                if book.is_closed {
                    return Err(Full::Stopping);
                }
                let connections = book.users.get(&guest).map_or(0, |user| user.connections);
                let most = match guest {
                    Guest::User(_) => self.per_user,
                    Guest::Bearer(_) => self.by_token,
                    Guest::Stranger => self.strangers,
                };
                if connections >= most {
                    book.longest_of(guest).ok_or(Full::User(connections))?
                } else if book.everybody.len() >= all {
                    book.longest().ok_or(Full::House(book.everybody.len()))?
                } else {
                    return Ok(self.place(&mut book, kind, guest));
                }
            };
            leaving.send_replace(true);
            leaving.closed().await;
        }
    }

    fn place(self: &Arc<Self>, book: &mut Book, kind: Kind, guest: Guest) -> Place {
        let (leave, told) = watch::channel(false);
        let (leave, number) = (Arc::new(leave), book.number());
        book.everybody.insert(number, Arc::clone(&leave));
        let user = book.users.entry(guest).or_default();
        user.connections += 1;
        user.waiting.insert(number, Arc::clone(&leave));
        self.inside.send_modify(|inside| *inside.of(kind) += 1);
        let waits = Mutex::new(Some(number));
        Place { door: Arc::clone(self), kind, guest, number, leave, told, waits }
    }

    /// One of those who wait leaves: a descriptor is needed.
    pub fn one_leaves(&self) {
        let leaving = self.book().longest();
        tell(leaving.into_iter().collect());
    }

    /// Nobody comes in any more, and who waits leaves, now or as soon as it would wait.
    pub fn close(&self) {
        let mut book = self.book();
        book.is_closed = true;
        let users = book.users.values_mut();
        let waiting: Vec<_> =
            users.flat_map(|user| std::mem::take(&mut user.waiting).into_values()).collect();
        drop(book);
        tell(waiting);
    }

    /// Everybody is told to leave, also who is at work.
    pub fn clear(&self) {
        let everybody: Vec<_> = self.book().everybody.values().cloned().collect();
        tell(everybody);
    }

    /// Waits until no connection of this kind is in.
    pub async fn is_empty_of(&self, kind: Kind) {
        let mut inside = self.inside.subscribe();
        let emptied = inside.wait_for(|inside| *inside.clone().of(kind) == 0).await;
        drop(emptied.expect("the door lives"));
    }
}

/// Tells connections to leave.
fn tell(connections: Vec<Leave>) {
    for leave in connections {
        leave.send_replace(true);
    }
}

impl Inside {
    fn of(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Control => &mut self.control,
            Kind::Data => &mut self.data,
        }
    }
}

impl Book {
    /// Forgets a user of whom nothing is left: no connection, and nothing that is done for him.
    fn forget(&mut self, guest: Guest) {
        let is_left = |user: &User| {
            user.connections > 0 || user.requests.available_permits() < CONTROL_REQUESTS_PER_USER
        };
        if self.users.get(&guest).is_some_and(|user| !is_left(user)) {
            self.users.remove(&guest);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The connection of this user that has waited longest.
    fn longest_of(&mut self, guest: Guest) -> Option<Leave> {
        Some(self.users.get_mut(&guest)?.waiting.pop_first()?.1)
    }

    /// The same, of the user who has most connections of those who have any that waits.
    fn longest(&mut self) -> Option<Leave> {
        let waiting = self.users.iter().filter(|(_, user)| !user.waiting.is_empty());
        let most = waiting.max_by_key(|&(&guest, user)| (user.connections, guest));
        let guest = most.map(|(&guest, _)| guest)?;
        self.longest_of(guest)
    }
}

impl Default for User {
    fn default() -> Self {
        let requests = Arc::new(Semaphore::new(CONTROL_REQUESTS_PER_USER));
        Self { connections: 0, waiting: BTreeMap::new(), requests }
    }
}

impl Place {
    /// The connection has work and keeps its place; false where it has been given away.
    #[must_use]
    pub fn at_work(&self) -> bool {
        let mut book = self.door.book();
        let Some(since) = self.waits().take() else { return true };
        let user = book.users.get_mut(&self.guest).expect("its own connection counts");
        user.waiting.remove(&since).is_some()
    }

    /// The daemon waits for the program again.
    pub fn waits_again(&self) {
        let mut book = self.door.book();
        if book.is_closed {
            self.leave.send_replace(true);
            return;
        }
        let number = book.number();
        let user = book.users.get_mut(&self.guest).expect("its own connection counts");
        user.waiting.insert(number, Arc::clone(&self.leave));
        *self.waits() = Some(number);
    }

    fn waits(&self) -> MutexGuard<'_, Option<u64>> {
        self.waits.lock()
    }

    /// Ends when the connection has to leave.
    pub async fn left(&self) {
        let mut told = self.told.clone();
        let left = told.wait_for(|&told| told).await;
        drop(left.expect("the place has the sender"));
    }

    /// Why a connection has to leave that has to.
    pub fn why_left(&self) -> Full {
        if self.door.book().is_closed { Full::Stopping } else { Full::GaveWay }
    }

    /// Waits until one more control request of the user's may be served.
    pub async fn turn(&self) -> Turn {
        let requests = Arc::clone(&self.door.book().users[&self.guest].requests);
        let permit = Some(requests.acquire_owned().await.expect("never closed"));
        Turn { door: Arc::clone(&self.door), guest: self.guest, permit }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut book = self.door.book();
        drop(self.permit.take());
        book.forget(self.guest);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut book = self.door.book();
        book.everybody.remove(&self.number);
        let since = self.waits().take();
        let user = book.users.get_mut(&self.guest).expect("its own connection counts");
        user.connections -= 1;
        if let Some(since) = since {
            user.waiting.remove(&since);
        }
        book.forget(self.guest);
        self.door.inside.send_modify(|inside| *inside.of(self.kind) -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CONNECTIONS_MIN;

    const ROOT: u32 = 0;

    async fn enter(door: &Arc<Door>, uid: u32) -> Result<Place, Full> {
        door.enter(Kind::Data, Guest::User(uid), uid == ROOT).await
    }

    async fn enter_by(door: &Arc<Door>, guest: Guest) -> Result<Place, Full> {
        door.enter(Kind::Data, guest, false).await
    }

    /// A connection that leaves when it is told to, as all do that wait; gives its number
    /// when it has.
    fn stay(place: Place) -> tokio::task::JoinHandle<u64> {
        tokio::spawn(async move {
            place.left().await;
            place.number
        })
    }

    #[tokio::test]
    async fn who_has_as_many_as_he_may_gives_way_to_himself_and_to_nobody_else() {
        let door = Door::new(CONNECTIONS_MIN);
        let other = stay(enter(&door, 2).await.unwrap());
        let mut own = Vec::new();
        for _ in 0..1000 {
            own.push(stay(enter(&door, 1).await.unwrap()));
            assert!(door.book().users[&Guest::User(1)].connections <= CONNECTIONS_MIN / 2);
        }
        for (number, gone) in own.drain(..1000 - CONNECTIONS_MIN / 2).enumerate() {
            assert_eq!(gone.await.unwrap(), number as u64 + 2, "who has waited longest");
        }
        assert!(own.iter().all(|one| !one.is_finished()) && !other.is_finished());
    }

    #[tokio::test]
    async fn what_is_at_work_stays_and_who_finds_no_place_is_told() {
        let door = Door::new(CONNECTIONS_MIN);
        let working = |uid| {
            let door = Arc::clone(&door);
            async move { enter(&door, uid).await.inspect(|place| assert!(place.at_work())) }
        };
        let mut kept = Vec::new();
        for uid in [1, 2] {
            while let Ok(place) = working(uid).await {
                kept.push(place);
            }
        }
        let others = CONNECTIONS_MIN - CONNECTIONS_FOR_ADMINISTRATORS;
        assert_eq!(kept.len(), others);
        assert_eq!(working(1).await.err(), Some(Full::User(CONNECTIONS_MIN / 2)));
        assert_eq!(working(3).await.err(), Some(Full::House(others)));
        // Who looks after the house comes in all the same.
        let root = working(ROOT).await.unwrap();
        drop(kept.pop());
        assert_eq!(working(3).await.err(), Some(Full::House(others)), "root has that place");
        drop(root);
        kept.push(working(3).await.unwrap());
        assert_eq!(working(3).await.err(), Some(Full::House(others)));
        kept[0].waits_again();
        let longest = kept.remove(0);
        let told = tokio::spawn(async move {
            longest.left().await;
            assert!(!longest.at_work(), "its place is given away");
        });
        kept.push(working(3).await.unwrap());
        told.await.unwrap();
    }

    #[tokio::test]
    async fn in_a_full_house_the_user_with_most_gives_way() {
        let door = Door::new(CONNECTIONS_MIN);
        let few = CONNECTIONS_FOR_ADMINISTRATORS;
        let mut of_one = Vec::new();
        for _ in 0..few {
            of_one.push(stay(enter(&door, 1).await.unwrap()));
        }
        let mut of_two = Vec::new();
        for _ in 0..CONNECTIONS_MIN / 2 {
            of_two.push(stay(enter(&door, 2).await.unwrap()));
        }
        let mut others = Vec::new();
        for uid in 3..8 {
            others.push(stay(enter(&door, uid).await.unwrap()));
        }
        for gone in of_two.drain(..5) {
            gone.await.unwrap();
        }
        assert!(of_one.iter().chain(&of_two).chain(&others).all(|one| !one.is_finished()));
    }

    /// Whoever can reach the machine can connect; he takes nobody's place for it.
    #[tokio::test]
    async fn strangers_are_few_and_give_way_to_each_other() {
        let door = Door::new(CONNECTIONS_MIN);
        let user = stay(enter(&door, 1).await.unwrap());
        let mut strangers = Vec::new();
        for _ in 0..1000 {
            strangers.push(stay(enter_by(&door, Guest::Stranger).await.unwrap()));
            assert!(door.book().users[&Guest::Stranger].connections <= CONNECTIONS_MIN / 4);
        }
        assert!(!user.is_finished());
        assert!(strangers.drain(1000 - CONNECTIONS_MIN / 4..).all(|one| !one.is_finished()));
    }

    /// A token can get into anybody's hands; its maker comes in, and is answered, all the same.
    #[tokio::test]
    async fn who_shows_a_token_takes_nothing_of_its_maker_on_this_machine() {
        let door = Door::new(CONNECTIONS_MIN);
        for uid in [ROOT, 1] {
            let mut kept = Vec::new();
            let full = loop {
                match enter_by(&door, Guest::Bearer(uid)).await {
                    Ok(place) => {
                        assert!(place.at_work());
                        kept.push(place);
                    }
                    Err(full) => break full,
                }
            };
            assert_eq!(full, Full::User(CONNECTIONS_MIN / CONNECTIONS_BY_TOKEN_DIVISOR));
            let turns = all_turns(&kept[0]).await;
            let mut own = Vec::new();
            for _ in 0..CONNECTIONS_MIN / CONNECTIONS_PER_USER_DIVISOR {
                let place = enter(&door, uid).await.unwrap();
                assert!(place.at_work() && now(place.turn()).is_some());
                own.push(place);
            }
            drop((turns, own));
        }
    }

    async fn all_turns(place: &Place) -> Vec<Turn> {
        let mut turns = Vec::new();
        for _ in 0..CONTROL_REQUESTS_PER_USER {
            turns.push(place.turn().await);
        }
        turns
    }

    /// What is there without waiting.
    fn now<T>(coming: impl Future<Output = T>) -> Option<T> {
        let mut looks = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(coming).poll(&mut looks) {
            std::task::Poll::Ready(came) => Some(came),
            std::task::Poll::Pending => None,
        }
    }

    /// Before, whoever closed all his connections had as many turns anew.
    #[tokio::test]
    async fn what_is_done_for_a_user_counts_when_all_his_connections_are_closed() {
        let door = Door::new(CONNECTIONS_MIN);
        let place = enter(&door, 1).await.unwrap();
        let mut turns = all_turns(&place).await;
        drop(place);
        let again = enter(&door, 1).await.unwrap();
        assert!(now(again.turn()).is_none());
        turns.pop();
        turns.push(now(again.turn()).unwrap());
        assert!(now(again.turn()).is_none());
        drop(again);
        assert!(door.book().users.contains_key(&Guest::User(1)));
        drop(turns);
        assert!(door.book().users.is_empty(), "nothing is left of him");
    }

    #[tokio::test]
    async fn a_house_that_closes_lets_those_go_who_wait_and_then_everybody() {
        let door = Door::new(CONNECTIONS_MIN);
        let waits = stay(enter(&door, 1).await.unwrap());
        let (works, asks) = (enter(&door, 1).await.unwrap(), enter(&door, 2).await.unwrap());
        assert!(works.at_work() && asks.at_work());
        door.close();
        waits.await.unwrap();
        assert_eq!(enter(&door, ROOT).await.err(), Some(Full::Stopping));
        asks.waits_again();
        asks.left().await;
        drop(asks);
        let works = stay(works);
        door.clear();
        works.await.unwrap();
        door.is_empty_of(Kind::Data).await;
    }
}
