//! The tokens that were made here: the key that they are checked with, and which are good.
//!
//! What is kept is the key and, of each token that is good, its number, its user and what it says;
//! not the token. One that is not among them was revoked. Both lie in the daemon's directory for
//! its state, where only its user reads them, and are there after any crash: the list is written
//! aside, made durable and put in its place before anybody has the token, or hears that it was
//! revoked.
//!
//! Invariants: no number is used twice under one key; what could not be kept is not said; nothing is read or
//! written before the first token is made or somebody may show one.

use crate::limits::{TOKENS_MAX, TOKENS_PER_USER};
use crate::lock::Mutex;
use crate::people::{Groups, Peer};
use crate::scope;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use token::{Grant, KEY_LEN, Key, Player, Restriction, Token};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, spawn_blocking};
use wire::{Code, Problem};

/// The file with the key.
const KEY: &str = "tokens.key";
/// The file with the list.
const LIST: &str = "tokens.json";
/// Held while a daemon uses the two.
const LOCK: &str = "tokens.lock";
/// The clock is looked at again after this time, since it may have been set.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// A token that is good, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Its number.
    pub number: u64,
    /// The user that it acts as.
    pub uid: u32,
    /// The second from which on it is good for nothing.
    pub until: Option<u64>,
    /// What it says, in words.
    pub restrictions: Vec<String>,
    /// The groups of that user when he made it; none in a list of before they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<Groups>,
}

/// The list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// The number of the next token.
    next: u64,
    tokens: Vec<Kept>,
}

impl List {
    /// What is kept of a token that was made and not revoked. They are in order.
    fn find(&self, grant: &Grant) -> Option<&Kept> {
        let at = self.tokens.binary_search_by_key(&grant.number, |kept| kept.number).ok()?;
        // A number belongs to one user: another's token of the same number is none of this list.
        Some(&self.tokens[at]).filter(|kept| kept.uid == grant.uid)
    }
}

/// The state of a daemon that has made a token, or takes them.
struct Open {
    key: Key,
    list: Arc<List>,
    _lock: File,
}

/// See the module.
pub struct Tokens {
    /// None where there is no place for it.
    directory: Option<PathBuf>,
    /// Whose turn it is to wait for the disk of the list.
    turn: Arc<Semaphore>,
    /// Held while the list is changed on its disk, which may take long.
    changing: Mutex<()>,
    /// Held for a look.
    open: Mutex<Option<Open>>,
    /// Counts what was revoked, for those who wait for the end of a token.
    revoked: watch::Sender<u64>,
}

impl Tokens {
    /// In this directory, which is made when it is needed.
    pub fn new(directory: Option<PathBuf>) -> Arc<Self> {
        let (turn, revoked) = (Arc::new(Semaphore::new(1)), watch::Sender::new(0));
        let (changing, open) = (Mutex::default(), Mutex::default());
        Arc::new(Self { directory, turn, changing, open, revoked })
    }

    /// Does what waits for the disk of the list, beside other work: one at a time, since a disk
    /// that hangs would else take a thread for each that asks, and the runtime has only so many
    /// for all that waits. Who gives up before his turn leaves nothing behind; what was begun is
    /// done to the end.
    ///
    /// # Errors
    /// A panic in it.
    pub async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let turn = Arc::clone(&self.turn).acquire_owned().await.expect("never closed");
        // With the work, which goes on where nobody waits for it any more.
        spawn_blocking(move || {
            let _turn = turn;
            work()
        })
        .await
    }

    /// Reads the key and the list, or begins them.
    ///
    /// # Errors
    /// The directory cannot be used: what, and what to do.
    pub fn open(&self) -> Result<(), Box<Problem>> {
        let _one = self.changing.lock();
        self.opened().map(drop)
    }

    /// The directory, the key and the list; by whoever holds `changing`.
    fn opened(&self) -> Result<(&Path, Key, Arc<List>), Box<Problem>> {
        let Some(directory) = &self.directory else {
            let what = "this daemon has no directory to keep tokens in";
            let next = "start it with --state-dir";
            return Err(Box::new(Problem::new(Code::Invalid, what, next)));
        };
        let is_open = self.open.lock().is_some();
        if !is_open {
            let loaded = load(directory).map_err(|error| not_kept(directory, &error))?;
            *self.open.lock() = Some(loaded);
        }
        let open = self.open.lock();
        let Open { key, list, .. } = open.as_ref().expect("it was opened");
        Ok((directory, key.clone(), Arc::clone(list)))
    }

    /// Another list from now on; by whoever holds `changing`.
    fn change(&self, directory: &Path, list: List) -> Result<(), Box<Problem>> {
        keep(directory, &list).map_err(|error| not_kept(directory, &error))?;
        if let Some(open) = &mut *self.open.lock() {
            open.list = Arc::new(list);
        }
        Ok(())
    }

    /// The list as it is; none where nothing was made here yet.
    fn now(&self) -> Option<(Key, Arc<List>)> {
        let open = self.open.lock();
        open.as_ref().map(|open| (open.key.clone(), Arc::clone(&open.list)))
    }

    /// A new token of this user's.
    ///
    /// # Errors
    /// He has as many as he may, it is too long, or it could not be kept.
    pub fn make(
        &self,
        maker: &Peer,
        restrictions: Vec<Restriction>,
    ) -> Result<(Token, Kept), Box<Problem>> {
        let uid = maker.uid;
        let _one = self.changing.lock();
        let (directory, key, list) = self.opened()?;
        let (mut more, now) = (List::clone(&list), now());
        more.tokens.retain(|token| token.until.is_none_or(|until| now < until));
        let own = more.tokens.iter().filter(|token| token.uid == uid).count();
        if own >= TOKENS_PER_USER || more.tokens.len() >= TOKENS_MAX {
            let what = format!(
                "{own} of this user's tokens are good, and {} of all: at most {TOKENS_PER_USER} and \
                 {TOKENS_MAX} can be",
                more.tokens.len()
            );
            let next = "revoke some: `slackline token list`, `slackline token revoke NUMBER`";
            return Err(Box::new(Problem::new(Code::Quota, what, next)));
        }
        let number = more.next;
        let words = restrictions.iter().map(ToString::to_string).collect();
        let token = Token::make(&key, number, uid, restrictions).map_err(|_| too_long())?;
        let until = token.checked(&key).and_then(|grant| grant.until);
        let maker = Some(Groups::of(maker));
        let kept = Kept { number, uid, until, restrictions: words, maker };
        more.next = number.checked_add(1).ok_or_else(too_long)?;
        more.tokens.push(kept.clone());
        self.change(directory, more)?;
        Ok((token, kept))
    }

    /// Those that are good, as far as the clock says.
    pub fn list(&self) -> Result<Vec<Kept>, Box<Problem>> {
        // Nothing is made for who only looks.
        let is_there = self.directory.as_ref().is_some_and(|path| path.join(LIST).exists());
        if !is_there {
            return Ok(Vec::new());
        }
        let _one = self.changing.lock();
        let (_, _, list) = self.opened()?;
        let good = |token: &&Kept| token.until.is_none_or(|until| now() < until);
        Ok(list.tokens.iter().filter(good).cloned().collect())
    }

    /// Revokes a token, and all that were narrowed from it. `may` says whether the asker may.
    ///
    /// # Errors
    /// There is none of this number, `may` refuses it, or it could not be kept.
    pub fn revoke(
        &self,
        number: u64,
        may: impl FnOnce(&Kept) -> Result<(), Box<Problem>>,
    ) -> Result<(), Box<Problem>> {
        {
            let _one = self.changing.lock();
            let (directory, _, list) = self.opened()?;
            let found = list.tokens.iter().find(|token| token.number == number);
            may(found.ok_or_else(|| no_such(number))?)?;
            let mut less = List::clone(&list);
            less.tokens.retain(|token| token.number != number);
            self.change(directory, less)?;
        }
        self.revoked.send_modify(|count| *count += 1);
        Ok(())
    }

    /// What a token lets its holder do, and the groups that its maker had, where they are known.
    ///
    /// # Errors
    /// It is not good: why, without a word of what is secret.
    pub fn check(&self, text: &str) -> Result<(Arc<Grant>, Option<Groups>), Box<Problem>> {
        let token = Token::parse(text).map_err(|error| not_good(error.to_string()))?;
        let made_elsewhere = "the token was not made by this daemon, or was changed";
        let Some((key, list)) = self.now() else { return Err(not_good(made_elsewhere)) };
        let grant = token.checked(&key).ok_or_else(|| not_good(made_elsewhere))?;
        found(grant, &list)
    }

    /// The same of what a player shows, which was made of a token.
    ///
    /// # Errors
    /// As above, and it is over.
    pub fn check_player(&self, text: &str) -> Result<(Arc<Grant>, Option<Groups>), Box<Problem>> {
        let wrong = || not_good("what the player shows was not made by this daemon");
        let player = Player::parse(text).map_err(|_| wrong())?;
        let (key, list) = self.now().ok_or_else(wrong)?;
        let grant = player.checked(&key).ok_or_else(wrong)?;
        if now() >= player.until() {
            return Err(not_good("what the player shows is over: the page asks for another"));
        }
        found(grant, &list)
    }

    fn is_good(&self, grant: &Grant) -> bool {
        let is_kept = self.now().is_some_and(|(_, list)| list.find(grant).is_some());
        is_kept && grant.is_good(now()).is_ok()
    }

    /// Waits until a token is good for nothing any more.
    pub async fn ended(&self, grant: &Grant) {
        let mut revoked = self.revoked.subscribe();
        while self.is_good(grant) {
            let left = grant.until.map_or(LOOK_AGAIN, |until| {
                Duration::from_secs(until.saturating_sub(now())).min(LOOK_AGAIN)
            });
            // A revocation, or the time.
            let _ = tokio::time::timeout(left, revoked.changed()).await;
        }
    }
}

/// What is good is on the list, and its time is not over.
fn found(grant: Grant, list: &List) -> Result<(Arc<Grant>, Option<Groups>), Box<Problem>> {
    grant.is_good(now()).map_err(|refusal| scope::refused(&refusal))?;
    match list.find(&grant) {
        Some(kept) => Ok((Arc::new(grant), kept.maker.clone())),
        None => Err(not_good(format!("token {} was revoked", grant.number))),
    }
}

/// The second since 1970 that the system's clock shows.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn load(directory: &Path) -> io::Result<Open> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let lock = private().create(true).truncate(false).write(true).open(directory.join(LOCK))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::other("another daemon uses this directory"),
        TryLockError::Error(error) => error,
    })?;
    let list = match fs::read(directory.join(LIST)) {
        Ok(bytes) => Some(serde_json::from_slice::<List>(&bytes).map_err(io::Error::other)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut key = [0; KEY_LEN];
    if list.is_some() {
        // The list is written after the key: with it there was one.
        File::open(directory.join(KEY))?.read_exact(&mut key)?;
    } else {
        // A key without its list is not used again: numbers begin anew, and what was revoked under
        // the old key must not become good with them.
        let mut rest = &mut key[..];
        while !rest.is_empty() {
            let taken = getrandom(&mut *rest, GetRandomFlags::empty())?;
            rest = &mut rest[taken..];
        }
        replace(directory, KEY, &key)?;
    }
    let list = match list {
        Some(list) if list.tokens.is_sorted_by_key(|kept: &Kept| kept.number) => list,
        Some(_) => return Err(io::Error::other(format!("{LIST} is not in order"))),
        None => {
            let first = List { next: 1, tokens: Vec::new() };
            keep(directory, &first)?;
            first
        }
    };
    Ok(Open { key: Key::new(key), list: Arc::new(list), _lock: lock })
}

fn keep(directory: &Path, list: &List) -> io::Result<()> {
    replace(directory, LIST, &serde_json::to_vec_pretty(list).map_err(io::Error::other)?)
}

/// A file of the daemon's user alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Puts a file in its place, durably: a power cut leaves the old one or the new one.
pub(crate) fn replace(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let aside = directory.join(format!("{name}.new"));
    // One that a crash has left, or a link.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private().create_new(true).write(true).open(&aside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&aside, directory.join(name))?;
    File::open(directory)?.sync_all()
}

fn not_kept(directory: &Path, error: &io::Error) -> Box<Problem> {
    let what = format!("tokens cannot be kept in {}: {error}", directory.display());
    let next = "correct the directory, or give another one with `slackline serve --state-dir`";
    Box::new(Problem::new(Code::Internal, what, next))
}

fn too_long() -> Box<Problem> {
    let next = "name fewer volumes, or what their names begin with";
    Box::new(Problem::new(Code::Invalid, token::TooLong.to_string(), next))
}

fn no_such(number: u64) -> Box<Problem> {
    let what = format!("no token {number} is good: it was revoked, is over, or was never made");
    Box::new(Problem::new(Code::NotFound, what, "`slackline token list` lists those that are"))
}

/// What is said to who shows a token that is not good.
pub fn not_good(what: impl Into<String>) -> Box<Problem> {
    let next = "ask who made it for another: `slackline token make`";
    Box::new(Problem::new(Code::NoToken, what, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn scratch() -> tempfile::TempDir {
        tempfile::Builder::new().prefix("slackline-").tempdir().unwrap()
    }

    fn at(directory: &tempfile::TempDir) -> Arc<Tokens> {
        Tokens::new(Some(directory.path().join("state")))
    }

    fn why(checked: Result<(Arc<Grant>, Option<Groups>), Box<Problem>>) -> String {
        checked.unwrap_err().detail
    }

    fn user(uid: u32) -> Peer {
        Peer { uid, gid: uid, groups: [uid].into(), scope: None }
    }

    /// Tokens were made before the groups of their makers were kept.
    #[test]
    fn a_list_of_before_is_read_and_the_groups_of_a_maker_are_kept() {
        let directory = scratch();
        let tokens = at(&directory);
        let (old, _) = tokens.make(&user(7), vec![]).unwrap();
        drop(tokens);
        let path = directory.path().join("state").join(LIST);
        let before = r#"{"next": 2, "tokens":
            [{"number": 1, "uid": 7, "until": null, "restrictions": []}]}"#;
        fs::write(path, before).unwrap();
        let tokens = at(&directory);
        tokens.open().unwrap();
        assert_eq!(tokens.check(&old.reveal()).unwrap().1, None);
        let (new, _) = tokens.make(&user(8), vec![]).unwrap();
        drop(tokens);
        let tokens = at(&directory);
        tokens.open().unwrap();
        assert_eq!(tokens.check(&new.reveal()).unwrap().1, Some(Groups::of(&user(8))));
    }

    #[test]
    fn what_was_made_and_revoked_is_so_after_the_daemon_was_killed() {
        let directory = scratch();
        let tokens = at(&directory);
        let (first, _) = tokens.make(&user(7), vec![]).unwrap();
        let (second, _) = tokens.make(&user(7), vec![Restriction::Until(now() + 1_000)]).unwrap();
        tokens
            .revoke(first.number(), |kept| {
                assert_eq!(kept.uid, 7);
                Ok(())
            })
            .unwrap();
        // Another daemon, to which nothing was said at the end of this one.
        drop(tokens);
        let tokens = at(&directory);
        tokens.open().unwrap();
        assert_eq!(tokens.check(&second.reveal()).unwrap().0.uid, 7);
        assert_eq!(why(tokens.check(&first.reveal())), "token 1 was revoked");
        let (third, _) = tokens.make(&user(8), vec![]).unwrap();
        assert_eq!(third.number(), 3, "no number is used twice");
        let kept: Vec<_> = tokens.list().unwrap().iter().map(|kept| kept.number).collect();
        assert_eq!(kept, [2, 3]);
        for name in [KEY, LIST] {
            let mode = fs::metadata(directory.path().join("state").join(name)).unwrap();
            assert_eq!(mode.permissions().mode() & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn what_is_not_good_is_refused_with_the_reason() {
        let (directory, elsewhere) = (scratch(), scratch());
        let tokens = at(&directory);
        tokens.open().unwrap();
        let (foreign, _) = at(&elsewhere).make(&user(0), vec![]).unwrap();
        let why_not = "the token was not made by this daemon, or was changed";
        assert_eq!(why(tokens.check(&foreign.reveal())), why_not);
        let (over, _) = tokens.make(&user(0), vec![Restriction::Until(5)]).unwrap();
        assert!(why(tokens.check(&over.reveal())).contains("1970-01-01 00:00:05 UTC"));
        assert!(why(tokens.check("slt1_x")).contains("no token"));
        let (good, _) = tokens.make(&user(0), vec![]).unwrap();
        let narrowed = good.clone().narrowed(Restriction::Until(now() + 99)).unwrap();
        assert!(tokens.check(&narrowed.reveal()).is_ok());
        let refused = tokens.revoke(good.number(), |_| Err(not_good("not yours")));
        assert_eq!(refused.unwrap_err().detail, "not yours");
        assert!(tokens.check(&good.reveal()).is_ok());
        tokens.revoke(good.number(), |_| Ok(())).unwrap();
        assert!(tokens.check(&narrowed.reveal()).is_err(), "with it those narrowed from it");
    }

    #[test]
    fn one_user_has_so_many_and_what_is_over_does_not_count() {
        let directory = scratch();
        let tokens = at(&directory);
        tokens.make(&user(1), vec![Restriction::Until(5)]).unwrap();
        for _ in 0..TOKENS_PER_USER {
            tokens.make(&user(1), vec![]).unwrap();
        }
        assert_eq!(tokens.make(&user(1), vec![]).unwrap_err().code, Code::Quota);
        tokens.make(&user(2), vec![]).unwrap();
    }

    #[test]
    fn a_second_daemon_and_a_lost_key_are_refused() {
        let directory = scratch();
        let tokens = at(&directory);
        tokens.open().unwrap();
        let second = at(&directory).open().unwrap_err();
        assert!(second.detail.contains("another daemon"), "{}", second.detail);
        drop(tokens);
        fs::remove_file(directory.path().join("state").join(KEY)).unwrap();
        // A new key in its place would say of every token that it is another daemon's.
        assert!(at(&directory).open().is_err());
    }

    /// Numbers begin anew with a new list: under the same key a token that was revoked would have the
    /// number of one that is good.
    #[test]
    fn what_was_revoked_stays_so_where_the_list_was_lost() {
        let directory = scratch();
        let tokens = at(&directory);
        let (old, _) = tokens.make(&user(7), vec![]).unwrap();
        tokens.revoke(old.number(), |_| Ok(())).unwrap();
        drop(tokens);
        fs::remove_file(directory.path().join("state").join(LIST)).unwrap();
        let tokens = at(&directory);
        tokens.open().unwrap();
        let (new, _) = tokens.make(&user(7), vec![]).unwrap();
        assert_eq!(new.number(), old.number());
        assert!(tokens.check(&new.reveal()).is_ok());
        let why_not = "the token was not made by this daemon, or was changed";
        assert_eq!(why(tokens.check(&old.reveal())), why_not);
    }

    #[test]
    fn a_number_is_good_for_one_user() {
        let directory = scratch();
        let tokens = at(&directory);
        let (made, _) = tokens.make(&user(7), vec![]).unwrap();
        let (key, _) = tokens.now().unwrap();
        let other = Token::make(&key, made.number(), 0, vec![]).unwrap();
        assert_eq!(why(tokens.check(&other.reveal())), "token 1 was revoked");
    }

    /// Show: many checks while every processor is busy. Nothing in a check looks at a clock but
    /// for the token's own end, so that none is refused falsely.
    #[test]
    fn no_check_is_refused_falsely_on_busy_processors() {
        const CHECKS: usize = 100_000;
        let directory = scratch();
        let tokens = at(&directory);
        let (token, _) = tokens.make(&user(0), vec![Restriction::Until(now() + 100_000)]).unwrap();
        let text = token.reveal();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|threads| {
            let busy = std::thread::available_parallelism().map_or(1, usize::from) * 2;
            for _ in 0..busy {
                threads.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let refused = (0..CHECKS).filter(|_| tokens.check(&text).is_err()).count();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_the_end_of_a_token_hears_of_its_revocation() {
        let directory = scratch();
        let tokens = at(&directory);
        let (token, _) = tokens.make(&user(0), vec![]).unwrap();
        let (other, _) = tokens.make(&user(0), vec![]).unwrap();
        let (grant, _) = tokens.check(&token.reveal()).unwrap();
        let waiting = {
            let tokens = Arc::clone(&tokens);
            tokio::spawn(async move { tokens.ended(&grant).await })
        };
        tokio::task::yield_now().await;
        tokens.revoke(other.number(), |_| Ok(())).unwrap();
        tokio::time::sleep(LOOK_AGAIN * 3).await;
        assert!(!waiting.is_finished());
        tokens.revoke(token.number(), |_| Ok(())).unwrap();
        waiting.await.unwrap();
        let (over, _) = tokens.make(&user(0), vec![Restriction::Until(5)]).unwrap();
        let (key, _) = tokens.now().unwrap();
        tokens.ended(&over.checked(&key).unwrap()).await;
    }
    /// Before, each had a thread of the runtime for as long as the disk hung, also when nobody
    /// waited for it any more.
    #[tokio::test]
    async fn who_gives_up_while_the_disk_of_the_list_hangs_leaves_nothing_behind() {
        let tokens = Tokens::new(None);
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let (end, may_end) = std::sync::mpsc::channel();
        let of_the_first = Arc::clone(&tokens);
        let first = tokio::spawn(async move {
            let hangs = move || {
                begun.send(()).unwrap();
                may_end.recv().unwrap()
            };
            of_the_first.apart(hangs).await.unwrap()
        });
        has_begun.await.unwrap();
        let begun_since = Arc::new(std::sync::atomic::AtomicU64::new(0));
        for _ in 0..100 {
            let count = Arc::clone(&begun_since);
            let work = move || count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let given_up = tokio::time::timeout(Duration::ZERO, tokens.apart(work)).await;
            assert!(given_up.is_err(), "it had its turn beside the first");
        }
        end.send(()).unwrap();
        first.await.unwrap();
        // The first gives its turn back also where nobody waits for it.
        tokens.apart(|| ()).await.unwrap();
        assert_eq!(begun_since.load(std::sync::atomic::Ordering::Relaxed), 0);
    }
}
