//! Who may hold how much of the pool, and whose a stream is.
//!
//! Contracts are counted by what they have of each disk's time, windows by their
//! memory; best effort, which has no contract, by its connections and by its requests
//! under way: the disks serve best effort by turns, so that whoever has more requests
//! waiting gets more of the slack; volumes, by their space and their number (`space`).
//! A holder is a user, or a group all of whose members
//! count together; who is in a group with a quota is held by both.
//!
//! Invariants: streams are opened and changed one after the other ([`Quotas::turn`]), and what was
//! granted is counted once more before it is told, so
//! that two programs cannot share the last of a quota; what a holder has is never kept
//! here but asked of the pool and the sessions, so that nothing can be forgotten.

mod growth;
mod guaranteed;
mod rules;
mod space;

use crate::people::{self, Changed};
pub use crate::people::{Names, Peer, own_uid};
pub use rules::{Cap, Limits, Preset, Rules, Whole};

use crate::limits::{BEST_EFFORT_PER_USER_DIVISOR, BEST_EFFORT_UNIT, DECIDED_WITHIN};
use crate::lock::{Mutex, MutexGuard, Turn, Turns};
use crate::pool::Pool;

use crate::sessions::Sessions;
use guaranteed::Guaranteed;
use node::{DiskIndex, HandleId, Priority, Status, StreamId, Terms, VolumeStatus, Who};
use report::percent;
use space::Held;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use units::Bytes;
use wire::control as api;
use wire::control::QuotaLimits;
use wire::{Code, Problem};

/// Users that are named when a disk is full; more are only counted.
const NAMED: usize = 4;

/// So often it is looked whether the system's lists of users and groups have changed.
const LISTS_EVERY: std::time::Duration = std::time::Duration::from_secs(10);

/// Who holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    User(u32),
    Group(u32),
}

/// The quotas of one daemon.
pub struct Quotas {
    rules: Rules,
    whole: Whole,
    known: Mutex<Looked>,
    administrators: Vec<u32>,
    default: QuotaLimits,
    /// Of the pool's memory, for each user's best effort; in units.
    memory_per_user: usize,
    /// Of users, and apart from each of those who act as him by token.
    turns: Turns<(u32, bool)>,
    /// Held while what is asked for is counted and begun.
    growing: Mutex<()>,
    state: Mutex<State>,
    guaranteed: Arc<Guaranteed>,
}

/// What users and groups are called, and which limits they have.
#[derive(Default)]
struct Known {
    users: Names,
    groups: Names,
    of_users: BTreeMap<u32, QuotaLimits>,
    of_groups: BTreeMap<u32, QuotaLimits>,
    /// The numbers of the names that have limits.
    numbers: BTreeMap<(&'static str, String), u32>,
}

impl Known {
    /// As these lists say; of a name that is not in them any more, as the ones before said: while a list
    /// is written nobody is without his limits.
    fn by(rules: &Rules, whole: Whole, users: Names, groups: Names, before: &Self) -> Self {
        let mut numbers = BTreeMap::new();
        let mut number = |names: &Names, kind: &'static str, name: &str| {
            let key = (kind, name.to_owned());
            let number = names.number(name).or_else(|| before.numbers.get(&key).copied())?;
            numbers.insert(key, number);
            Some(number)
        };
        let of_users = rules.user.iter().filter_map(|(name, &limits)| {
            Some((number(&users, "user", name)?, rules.user_limits(limits, whole)))
        });
        let of_users = of_users.collect();
        let of_groups = rules.group.iter().filter_map(|(name, &limits)| {
            Some((number(&groups, "group", name)?, Rules::group_limits(limits, whole)))
        });
        let of_groups = of_groups.collect();
        Self { users, groups, of_users, of_groups, numbers }
    }

    /// Says of which sections there is nobody.
    fn warn(&self, rules: &Rules) {
        let users = rules.user.keys().map(|name| ("user", name));
        for (kind, name) in users.chain(rules.group.keys().map(|name| ("group", name))) {
            if !self.numbers.contains_key(&(kind, name.clone())) {
                tracing::warn!("[quota.{kind}.{name}]: there is no such {kind} yet");
            }
        }
    }
}

/// What is known of the system's lists, and which ones that was.
struct Looked {
    known: Arc<Known>,
    lists: [Option<Changed>; 2],
    at: std::time::Instant,
}

#[derive(Default)]
struct State {
    /// In which groups those who gave volumes contracts are; who gave one, the pool says.
    givers: HashMap<u32, Peer>,
    /// Who has a handle with a contract of its own.
    handles: HashMap<HandleId, Peer>,
    slack: BTreeMap<Holder, Slack>,
    /// What memory each user's best effort may hold, in units; of those who have any.
    memory: HashMap<u32, Arc<Semaphore>>,
}

/// The best effort of one holder.
struct Slack {
    connections: u64,
    /// So many of them by token.
    by_token: u64,
    requests: Arc<Semaphore>,
    permits: usize,
}

/// What a holder has.
#[derive(Default)]
struct Used {
    shares: BTreeMap<DiskIndex, u64>,
    memory: Bytes,
    streams: u64,
}

/// What somebody asks for that quotas bound.
pub enum Asked {
    /// Nothing more than he has.
    Nothing,
    /// One stream more.
    Open(Terms),
    /// Other terms for a stream.
    Change(StreamId, Terms),
    /// Other terms for what no stream of a volume carries.
    Service(String, Terms),
    /// A contract of one handle's own.
    Handle(Terms),
}

impl Asked {
    /// What it takes the place of.
    fn take_out(&self, status: &mut Status) {
        match self {
            Self::Nothing | Self::Open(_) | Self::Handle(_) => {}
            Self::Change(id, _) => status.streams.retain(|stream| stream.stream != *id),
            Self::Service(name, _) => {
                let mut volumes = status.volumes.iter_mut();
                if let Some(volume) = volumes.find(|volume| volume.name == *name) {
                    volume.shares.clear();
                    volume.memory = Bytes::ZERO;
                }
            }
        }
    }

    fn add_to(&self, used: &mut Used) {
        let (streams, terms) = match self {
            Self::Nothing => return,
            Self::Open(terms) | Self::Change(_, terms) => (1, terms),
            Self::Service(_, terms) | Self::Handle(terms) => (0, terms),
        };
        used.streams += streams;
        used.memory += terms.window;
        used.add(&terms.shares);
    }
}

/// What one request has of quotas, given back when dropped.
#[derive(Default)]
pub struct Part {
    _permits: Vec<OwnedSemaphorePermit>,
    _guaranteed: Option<guaranteed::Operation>,
}

/// The place of a best-effort connection, given back when dropped.
pub struct Place {
    quotas: Arc<Quotas>,
    holders: Vec<Holder>,
    is_by_token: bool,
    requests: Vec<Arc<Semaphore>>,
    memory: Arc<Semaphore>,
    highest: Option<Priority>,
}

impl Place {
    /// Waits until the user and the groups may have one more request under way on a volume,
    /// of so many bytes; not where the volume's contract has memory for it. `operations` says
    /// for how many it has, and is asked only where it matters.
    pub async fn request(
        &self,
        volume: &str,
        len: Bytes,
        operations: impl FnOnce() -> u64,
    ) -> Part {
        let units = len.div_ceil(BEST_EFFORT_UNIT) as u32; // of at most a transfer
        if let Some(permits) = self.at_once(units) {
            return Part { _permits: permits, _guaranteed: None };
        }
        if let Some(one) = self.quotas.guaranteed.begin(volume, operations()) {
            return Part { _permits: Vec::new(), _guaranteed: Some(one) };
        }
        Part { _permits: self.in_turn(units).await, _guaranteed: None }
    }

    /// The permits for a request, where nobody has to wait for them.
    fn at_once(&self, units: u32) -> Option<Vec<OwnedSemaphorePermit>> {
        let memory = Arc::clone(&self.memory).try_acquire_many_owned(units).ok()?;
        let requests = self.requests.iter().map(|requests| {
            let permit = Arc::clone(requests).try_acquire_owned();
            permit.ok()
        });
        std::iter::once(Some(memory)).chain(requests).collect()
    }

    async fn in_turn(&self, units: u32) -> Vec<OwnedSemaphorePermit> {
        let mut permits = Vec::with_capacity(1 + self.requests.len());
        let memory = Arc::clone(&self.memory).acquire_many_owned(units).await;
        permits.push(memory.expect("never closed"));
        // Everybody in the order of the holders: none waits for another in a circle.
        for requests in &self.requests {
            let permit = Arc::clone(requests).acquire_owned().await;
            permits.push(permit.expect("never closed"));
        }
        permits
    }

    /// What becomes of a stated priority under the quota.
    pub fn granted(&self, stated: Option<Priority>) -> Option<Priority> {
        match (stated, self.highest) {
            (Some(stated), Some(highest)) => Some(stated.max(highest)), // the later, the lower
            (None, Some(Priority::Background)) => Some(Priority::Background),
            (stated, _) => stated,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.quotas.state();
        for holder in &self.holders {
            let slack = state.slack.get_mut(holder).expect("it has this connection");
            slack.connections -= 1;
            slack.by_token -= u64::from(self.is_by_token);
        }
        // Those that have nothing any more are forgotten: there is a user for each who ever came.
        let own = |one: &Arc<Semaphore>, of: &[Arc<Semaphore>]| {
            of.iter().filter(|other| Arc::ptr_eq(one, other)).count()
        };
        let is_used = |one: &Arc<Semaphore>, of| Arc::strong_count(one) > 1 + own(one, of);
        state
            .slack
            .retain(|_, slack| slack.connections > 0 || is_used(&slack.requests, &self.requests));
        let memory = std::slice::from_ref(&self.memory);
        state.memory.retain(|_, units| is_used(units, memory));
    }
}

impl Quotas {
    /// Quotas for a pool of so much of everything; administrators have none of their own
    /// accord, and may close and change everybody's streams.
    pub fn new(rules: &Rules, whole: Whole, administrators: Vec<u32>) -> Arc<Self> {
        // Looked at before: what changes meanwhile is read again.
        let (lists, at) = (people::lists_changed(), std::time::Instant::now());
        let (users, groups) = (Names::of_users(), Names::of_groups());
        let known = Known::by(rules, whole, users, groups, &Known::default());
        known.warn(rules);
        Arc::new(Self {
            rules: rules.clone(),
            whole,
            known: Mutex::new(Looked { known: Arc::new(known), lists, at }),
            default: rules.default_limits(whole),
            memory_per_user: ((whole.memory / BEST_EFFORT_PER_USER_DIVISOR) / BEST_EFFORT_UNIT)
                as usize,
            administrators,
            turns: Turns::default(),
            growing: Mutex::default(),
            state: Mutex::default(),
            guaranteed: Arc::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// What users and groups are called now: who was made known to the system since the daemon began has
    /// his limits, and not those of everybody.
    fn known(&self) -> Arc<Known> {
        let mut looked = self.known.lock();
        if looked.at.elapsed() >= LISTS_EVERY {
            looked.at = std::time::Instant::now();
            let lists = people::lists_changed();
            if lists != looked.lists {
                let (users, groups) = (Names::of_users(), Names::of_groups());
                let known = Known::by(&self.rules, self.whole, users, groups, &looked.known);
                (looked.known, looked.lists) = (Arc::new(known), lists);
            }
        }
        Arc::clone(&looked.known)
    }

    /// Opening and changing goes one after the other: of users, whatever one of them asks for.
    pub async fn turn(&self, peer: &Peer) -> Turn<(u32, bool)> {
        self.turns.turn((peer.uid, peer.scope.is_some())).await
    }

    /// Waits for what was asked of the pool under `turn`, and lets the others have that where it takes
    /// longer than a decision does: a refusal is told with what would have fitted, and to
    /// search for that may take seconds. For what is granted the turn is had again.
    pub async fn decided<T, E>(
        &self,
        turn: &mut Option<Turn<(u32, bool)>>,
        peer: &Peer,
        coming: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut coming = std::pin::pin!(coming);
        let came = match tokio::time::timeout(DECIDED_WITHIN, &mut coming).await {
            Ok(came) => came,
            Err(_) => {
                *turn = None;
                coming.await
            }
        };
        // Also where it was let go for what was asked before, and refused.
        if came.is_ok() && turn.is_none() {
            *turn = Some(self.turn(peer).await);
        }
        came
    }

    /// Whether this peer may do everything: root and the daemon's own user.
    pub fn is_administrator(&self, peer: &Peer) -> bool {
        self.administrators.contains(&peer.uid)
    }

    /// On whose behalf the pool is asked for what this peer wants.
    pub fn who(&self, peer: &Peer) -> Who {
        let who = Who::user(peer.uid, peer.gid, Arc::clone(&peer.groups));
        Who { is_superuser: self.is_administrator(peer), ..who }
    }

    /// Whose a volume is, in names.
    pub fn owner_told(&self, whose: node::Ownership) -> api::Owner {
        api::Owner {
            uid: whose.uid,
            user: self.known().users.name(whose.uid),
            gid: whose.gid,
            group: self.known().groups.name(whose.gid),
            mode: api::Permissions::new(whose.permissions()).expect("a pool keeps no other modes"),
        }
    }

    /// What is said of whose a volume is, in numbers.
    pub fn access(&self, said: &api::Access) -> Result<node::Access, Box<Problem>> {
        // Somebody may have been made known to the system since the daemon began.
        let find = |kind: &str, name: &str, known: &Names, anew: fn() -> Names| {
            known.number(name).or_else(|| anew().number(name)).ok_or_else(|| {
                let what = format!("there is no {kind} \"{name}\"");
                Box::new(Problem::new(Code::Invalid, what, "give a name or a number that there is"))
            })
        };
        let user = said.user.as_deref();
        let uid = user
            .map(|name| find("user", name, &self.known().users, Names::of_users))
            .transpose()?;
        let group = said.group.as_deref();
        let gid = group.map(|name| find("group", name, &self.known().groups, Names::of_groups));
        Ok(node::Access { uid, gid: gid.transpose()?, mode: said.mode.map(|mode| mode.bits()) })
    }

    /// Refuses what only an administrator may do.
    pub fn only_administrator(&self, peer: &Peer, what: &str) -> Result<(), Box<Problem>> {
        match self.is_administrator(peer) {
            true => Ok(()),
            false => Err(Box::new(Problem::new(
                Code::Forbidden,
                format!("{what} concerns everybody's contracts, and you are {}", self.name(peer)),
                "ask root, or the user that runs the daemon",
            ))),
        }
    }

    /// What a user is called.
    pub fn user_name(&self, uid: u32) -> String {
        self.known().users.name(uid)
    }

    /// What a peer's user is called.
    pub fn name(&self, peer: &Peer) -> String {
        self.known().users.name(peer.uid)
    }

    /// Refuses to touch what belongs to another user.
    pub fn owns(&self, peer: &Peer, owner: &Peer, what: &str) -> Result<(), Box<Problem>> {
        if peer.uid == owner.uid || self.is_administrator(peer) {
            return Ok(());
        }
        let (whose, yours) = (self.name(owner), self.name(peer));
        Err(Box::new(Problem::new(
            Code::Forbidden,
            format!("{what} belongs to user {whose}, and you are {yours}"),
            match &*whose {
                "root" => "ask root to do it".into(),
                _ => format!("ask {whose} or root to do it"),
            },
        )))
    }

    /// The same for an open stream; one that nobody is known to own is the administrators'.
    pub fn owns_stream(
        &self,
        peer: &Peer,
        sessions: &Sessions,
        stream: StreamId,
    ) -> Result<(), Box<Problem>> {
        match sessions.owner(stream) {
            Some(owner) => self.owns(peer, &owner, &format!("stream {}", stream.0)),
            None if self.is_administrator(peer) => Ok(()),
            None => Err(Box::new(crate::problem::of(&node::Error::NoSuchStream { stream }))),
        }
    }

    /// Refuses to take away a contract that another user has given a volume, also one that is
    /// kept out.
    pub fn owns_service(
        &self,
        peer: &Peer,
        volume: Option<&VolumeStatus>,
    ) -> Result<(), Box<Problem>> {
        match volume.and_then(|volume| Some((volume, giver(volume)?))) {
            Some((VolumeStatus { name, .. }, owner)) => {
                let what = format!("the contract of volume \"{name}\"");
                self.owns(peer, &Peer { uid: owner, ..peer.clone() }, &what)
            }
            None => Ok(()),
        }
    }

    /// Somebody gives a volume a service: what he has given counts for the groups that he is in
    /// now.
    pub fn note_groups(&self, peer: &Peer) {
        let giver = Peer { scope: None, ..peer.clone() };
        let mut state = self.state();
        match peer.scope {
            None => drop(state.givers.insert(peer.uid, giver)),
            // A token knows of the groups of when it was made.
            Some(_) => drop(state.givers.entry(peer.uid).or_insert(giver)),
        }
    }

    /// Who gave a volume its contract, with his groups: those of when he last gave one, else
    /// those that the system says.
    fn giver(&self, volume: &VolumeStatus) -> Option<Peer> {
        let uid = giver(volume)?;
        let known = self.state().givers.get(&uid).cloned();
        Some(known.unwrap_or_else(|| {
            let peer = Peer::known(uid);
            self.state().givers.entry(uid).or_insert(peer).clone()
        }))
    }

    /// A handle has a contract of its own: it counts for this peer.
    pub fn note_handle(&self, handle: HandleId, peer: &Peer) {
        self.state().handles.insert(handle, peer.clone());
    }

    /// It has none any more.
    pub fn forget_handle(&self, handle: HandleId) {
        self.state().handles.remove(&handle);
    }

    /// Whom a peer is counted as: its user first, then its groups that have a quota.
    fn holders(&self, peer: &Peer) -> Vec<Holder> {
        let mut holders = vec![Holder::User(peer.uid)];
        if !self.is_administrator(peer) {
            let known = self.known();
            let groups = peer.groups.iter().filter(|group| known.of_groups.contains_key(group));
            holders.extend(groups.map(|&group| Holder::Group(group)));
        }
        holders
    }

    fn limits(&self, holder: Holder) -> QuotaLimits {
        match holder {
            Holder::Group(group) => self.known().of_groups.get(&group).copied().unwrap_or_default(),
            Holder::User(user) => match self.known().of_users.get(&user) {
                Some(&limits) => limits,
                None if self.administrators.contains(&user) => QuotaLimits::default(),
                None => self.default,
            },
        }
    }

    fn called(&self, holder: Holder) -> String {
        match holder {
            Holder::User(user) => format!("user {}", self.known().users.name(user)),
            Holder::Group(group) => format!("group {}", self.known().groups.name(group)),
        }
    }

    /// Where a holder's limit stands.
    fn section(&self, holder: Holder) -> String {
        match holder {
            Holder::User(user) => format!("[quota.user.{}]", self.known().users.name(user)),
            Holder::Group(group) => format!("[quota.group.{}]", self.known().groups.name(group)),
        }
    }

    fn used(&self, holder: Holder, status: &Status, sessions: &Sessions) -> Used {
        let mut used = Used::default();
        let is_theirs =
            |peer: Option<Peer>| peer.is_some_and(|peer| self.holders(&peer).contains(&holder));
        for stream in &status.streams {
            if is_theirs(sessions.owner(stream.stream)) {
                used.streams += 1;
                used.memory += stream.window;
                used.add(&stream.shares);
            }
        }
        let handles = self.state().handles.clone();
        for volume in &status.volumes {
            if is_theirs(self.giver(volume)) {
                used.add(&volume.shares);
                used.memory += volume.memory;
            }
            for handle in &volume.handles {
                if is_theirs(handles.get(&handle.handle).cloned()) {
                    used.add(&handle.shares);
                    used.memory += handle.memory;
                }
            }
        }
        used
    }

    /// Why this peer would have more than it may have, with what it asks for; `None` where
    /// it would not.
    pub fn exceeded(
        &self,
        peer: &Peer,
        pool: &dyn Pool,
        sessions: &Sessions,
        asked: &Asked,
    ) -> Option<Box<Problem>> {
        let holders = self.holders(peer);
        if holders.iter().all(|&holder| self.limits(holder) == QuotaLimits::default()) {
            return None;
        }
        let mut status = pool.status();
        asked.take_out(&mut status);
        holders.into_iter().find_map(|holder| {
            let mut used = self.used(holder, &status, sessions);
            asked.add_to(&mut used);
            self.over(holder, &used, pool).map(Box::new)
        })
    }

    fn over(&self, holder: Holder, used: &Used, pool: &dyn Pool) -> Option<Problem> {
        let limits = self.limits(holder);
        let (detail, setting) = if let Some(most) = limits.disk_share_ppm
            && let Some((&disk, &has)) = used.shares.iter().find(|(_, has)| **has > most)
        {
            let (has, most, disk) = (percent(has), percent(most), pool.disk_name(disk));
            (format!("have {has} of {disk}'s time by contracts, and may have {most}"), "disk_share")
        } else if let Some(most) = limits.memory_bytes
            && used.memory > most
        {
            (
                format!(
                    "have {} of memory for windows and services, and may have {most}",
                    used.memory
                ),
                "memory",
            )
        } else if let Some(most) = limits.streams
            && used.streams > most
        {
            (format!("have {} streams open, and may have {most}", used.streams), "streams")
        } else {
            return None;
        };
        let (who, section) = (self.called(holder), self.section(holder));
        Some(Problem::new(
            Code::Quota,
            format!("with this, {who} would {detail}"),
            format!(
                "ask for less, close one of the streams (`slackline stream list` shows whose they \
                 are, `slackline quota` who has what), or have {section} {setting} raised in the \
                 daemon's configuration"
            ),
        ))
    }

    /// Who has most of a disk that is full, in words; empty where nobody has any of it.
    pub fn who_has(&self, disk: DiskIndex, pool: &dyn Pool, sessions: &Sessions) -> String {
        let status = pool.status();
        let mut all: Vec<(u64, Holder)> = self
            .present(&status, sessions)
            .into_iter()
            .filter(|holder| matches!(holder, Holder::User(_)))
            .map(|holder| (self.used(holder, &status, sessions).share(disk), holder))
            .filter(|(has, _)| *has > 0)
            .collect();
        all.sort_by_key(|&(has, holder)| (std::cmp::Reverse(has), holder));
        let words = all.iter().take(NAMED);
        let words = words.map(|&(has, holder)| format!("{} {}", self.called(holder), percent(has)));
        words.collect::<Vec<_>>().join(", ")
    }

    /// Everybody who has something or has limits of their own.
    fn present(&self, status: &Status, sessions: &Sessions) -> Vec<Holder> {
        let known = self.known();
        let mut all: Vec<Holder> = known.of_users.keys().map(|&user| Holder::User(user)).collect();
        all.extend(known.of_groups.keys().map(|&group| Holder::Group(group)));
        let owners = status.streams.iter().filter_map(|stream| sessions.owner(stream.stream));
        all.extend(owners.flat_map(|owner| self.holders(&owner)));
        let givers = status.volumes.iter().filter_map(|volume| self.giver(volume));
        all.extend(givers.flat_map(|giver| self.holders(&giver)));
        let state = self.state();
        all.extend(state.handles.values().flat_map(|owner| self.holders(owner)));
        all.extend(status.volumes.iter().map(|volume| Holder::User(volume.ownership.uid)));
        all.extend(state.slack.iter().filter(|(_, slack)| slack.connections > 0).map(|(h, _)| *h));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Everybody, with what they have and may have.
    pub fn told(&self, pool: &dyn Pool, sessions: &Sessions) -> api::Quotas {
        let status = pool.status();
        let holders = self.present(&status, sessions).into_iter().map(|holder| {
            let used = self.used(holder, &status, sessions);
            let held = Held::by(holder, &status);
            let state = self.state();
            let slack = state.slack.get(&holder);
            let (kind, id, name) = match holder {
                Holder::User(id) => (api::HolderKind::User, id, self.known().users.name(id)),
                Holder::Group(id) => (api::HolderKind::Group, id, self.known().groups.name(id)),
            };
            let share = |(&disk, &share_ppm): (&DiskIndex, &u64)| api::QuotaShare {
                disk: pool.disk_name(disk),
                share_ppm,
            };
            api::Holder {
                kind,
                id,
                name,
                limits: self.limits(holder),
                shares: used.shares.iter().map(share).collect(),
                space_bytes: held.space,
                volumes: held.volumes,
                memory_bytes: used.memory,
                streams: used.streams,
                best_effort_connections: slack.map_or(0, |slack| slack.connections),
                best_effort_requests: slack.map_or(0, Slack::under_way),
            }
        });
        api::Quotas { default_limits: self.default, holders: holders.collect() }
    }

    /// A place for a best-effort connection of this peer.
    pub fn connect(self: &Arc<Self>, peer: &Peer) -> Result<Place, Box<Problem>> {
        let (holders, is_by_token) = (self.holders(peer), peer.scope.is_some());
        let mut state = self.state();
        for &holder in &holders {
            let slack = state.slack.get(&holder);
            let has = slack.map_or(0, |slack| slack.connections);
            let most = self.limits(holder).best_effort_connections;
            if most.is_some_and(|most| has >= most) {
                return Err(Box::new(self.no_place(holder, has)));
            }
            let by_token = slack.map_or(0, |slack| slack.by_token);
            if is_by_token && self.by_token_max(holder).is_some_and(|most| by_token >= most) {
                return Err(Box::new(self.no_place_by_token(holder, by_token)));
            }
        }
        let requests = holders.iter().map(|&holder| {
            let most = self.limits(holder).best_effort_requests;
            let slack = state.slack.entry(holder).or_insert_with(|| Slack::new(most));
            slack.connections += 1;
            slack.by_token += u64::from(is_by_token);
            Arc::clone(&slack.requests)
        });
        let requests = requests.collect();
        let units = || Arc::new(Semaphore::new(self.memory_per_user));
        let memory = Arc::clone(state.memory.entry(peer.uid).or_insert_with(units));
        let highest = holders.iter().filter_map(|&holder| self.limits(holder).priority);
        let highest = highest.map(crate::priority::priority).max(); // the later, the lower
        drop(state);
        Ok(Place { quotas: Arc::clone(self), holders, is_by_token, requests, memory, highest })
    }

    /// Refuses a volume a priority that the user's own requests may not state: all that do not state any
    /// would have it. What takes a service away is never refused.
    pub fn over_priority(&self, peer: &Peer, service: &api::Service) -> Result<(), Box<Problem>> {
        let api::Service::BestEffort { priority: asked } = *service else { return Ok(()) };
        // The higher goes first.
        let over = |most: &api::Priority| asked < *most && asked < api::Priority::Normal;
        for holder in self.holders(peer) {
            let Some(most) = self.limits(holder).priority.filter(over) else { continue };
            let (who, section) = (self.called(holder), self.section(holder));
            let (asked, most) = (asked.word(), most.word());
            return Err(Box::new(Problem::new(
                Code::Quota,
                format!("{who} may have priority {most} at the most, and {asked} is asked for"),
                format!(
                    "ask for `--priority {most}`, or have {section} priority raised in the daemon's \
                     configuration"
                ),
            )));
        }
        Ok(())
    }

    /// As many of a holder's best-effort connections as may have come by token: half of what it
    /// may have, so that the others are there for who made the token. An administrator without a
    /// limit of his own has everybody's for that.
    fn by_token_max(&self, holder: Holder) -> Option<u64> {
        let most = match (self.limits(holder).best_effort_connections, holder) {
            (None, Holder::User(_)) => self.default.best_effort_connections,
            (most, _) => most,
        };
        most.map(|most| most.div_ceil(2))
    }

    fn no_place_by_token(&self, holder: Holder, has: u64) -> Problem {
        let who = self.called(holder);
        Problem::new(
            Code::Quota,
            format!("tokens of {who} have {has} best-effort connections open, as many as they may"),
            "close one, or put more requests on each",
        )
    }

    fn no_place(&self, holder: Holder, has: u64) -> Problem {
        let (who, section) = (self.called(holder), self.section(holder));
        Problem::new(
            Code::Quota,
            format!("{who} has {has} best-effort connections open, as many as it may have"),
            format!(
                "close one, put more requests on each, or have {section} best_effort_connections \
                 raised in the daemon's configuration"
            ),
        )
    }
}

/// Who gave a volume the contract that it has, or that is kept out; none where it is given
/// none.
fn giver(volume: &VolumeStatus) -> Option<u32> {
    let service = volume.kept_out.as_ref().map_or(volume.service, |one| one.service);
    volume.given_by.filter(|_| !matches!(service, node::Service::BestEffort(_)))
}

impl Used {
    fn add(&mut self, shares: &[(DiskIndex, u64)]) {
        for &(disk, ppm) in shares {
            *self.shares.entry(disk).or_default() += ppm;
        }
    }

    fn share(&self, disk: DiskIndex) -> u64 {
        self.shares.get(&disk).copied().unwrap_or_default()
    }
}

impl Slack {
    fn new(most: Option<u64>) -> Self {
        let most = most.and_then(|most| usize::try_from(most).ok());
        let permits = most.unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        Self { connections: 0, by_token: 0, requests: Arc::new(Semaphore::new(permits)), permits }
    }

    fn under_way(&self) -> u64 {
        (self.permits - self.requests.available_permits()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(uid: u32) -> Peer {
        Peer { uid, gid: uid, groups: Arc::new([uid]), scope: None }
    }

    /// Who is made known to the system while the daemon is at work has the limits that are written for
    /// him.
    #[test]
    fn a_name_that_comes_later_has_its_limits_then() {
        let text = "[user.bob]\nstreams = 3\n[group.film]\nstreams = 5\n";
        let rules: Rules = toml::from_str(text).unwrap();
        let whole = Whole { memory: Bytes::GIB, space: Bytes::GIB };
        let names = |lines: &str| Names::of(lines);
        let by = |users: &str, groups: &str, before: &Known| {
            Known::by(&rules, whole, names(users), names(groups), before)
        };
        let of = |known: &Known| {
            let streams = |of: &BTreeMap<u32, QuotaLimits>| {
                of.iter().map(|(&id, limits)| (id, limits.streams)).collect::<Vec<_>>()
            };
            (streams(&known.of_users), streams(&known.of_groups))
        };
        let first = by("root:x:0:0", "root:x:0:", &Known::default());
        assert_eq!(of(&first), (vec![], vec![]));
        let later = by("root:x:0:0\nbob:x:4000000001:7", "film:x:44:", &first);
        let both = (vec![(4_000_000_001, Some(3))], vec![(44, Some(5))]);
        assert_eq!(of(&later), both);
        // A list that is being written has nobody in it for a moment.
        assert_eq!(of(&by("", "", &later)), both);
        assert_eq!(of(&by("bob:x:4000000002:7", "", &later)).0, [(4_000_000_002, Some(3))]);
        // What the daemon has is as old as its last look.
        let quotas = Quotas::new(&rules, whole, Vec::new());
        let long_ago = std::time::Instant::now().checked_sub(LISTS_EVERY);
        let mut looked = quotas.known.lock();
        (looked.known, looked.lists) = (Arc::new(later), [None; 2]);
        assert_eq!(looked.known.users.name(4_000_000_001), "bob");
        looked.at = long_ago.expect("the machine has run for some seconds");
        drop(looked);
        assert_eq!(
            quotas.user_name(4_000_000_001),
            "4000000001",
            "no list of this machine knows him"
        );
        assert_eq!(of(&quotas.known()).1, both.1, "who had limits keeps them");
    }

    /// There may be another user each day: of those that are gone nothing is kept.
    #[tokio::test]
    async fn users_that_have_nothing_any_more_are_forgotten() {
        let whole = Whole { memory: Bytes::GIB, space: Bytes::GIB };
        let quotas = Quotas::new(&Rules::default(), whole, Vec::new());
        let kept = |quotas: &Quotas| {
            let state = quotas.state();
            (state.slack.len(), state.memory.len())
        };
        for uid in 1_000..2_000 {
            let place = quotas.connect(&peer(uid)).unwrap_or_else(|error| panic!("{error:?}"));
            drop(place.request("v", Bytes::MIB, || 0).await);
        }
        assert_eq!(kept(&quotas), (0, 0));
        // Of who has two connections, or a request under way, it is.
        let [one, other] = [7, 7].map(|uid| quotas.connect(&peer(uid)).ok().unwrap());
        let part = one.request("v", Bytes::MIB, || 0).await;
        drop(one);
        assert_eq!(kept(&quotas), (1, 1));
        drop(other);
        assert_eq!(kept(&quotas), (1, 1), "it counts when he comes again at once");
        drop(part);
        drop(quotas.connect(&peer(8)));
        assert_eq!(kept(&quotas), (0, 0));
    }
}
