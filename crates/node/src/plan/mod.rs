//! Will it fit? A list of streams and services, tried on copies of what the disks
//! have promised; nothing is changed and nothing is asked of a disk.
//!
//! The same analysis that admits contracts admits a plan, in the list's order, up
//! to the first that does not fit. What is beside the analysis, the estimate of
//! what best effort will get, is named an estimate and no decision rests on it.

#![allow(missing_docs)] // a field that is named for what it holds is not explained twice

mod compare;
mod estimate;
mod groups;
mod modes;
mod work;

pub use compare::{Alternative, Variation};
pub use modes::ModePlan;
pub use work::PlanWork;

use crate::admission::contract::{self, Seen, Share};
use crate::admission::costs::{Costs, piece_within};
use crate::admission::owed::Owed;
use crate::admission::rates::longer_blocks;
use crate::api::{Config, Contract, DiskIndex, Error, Mode, Placement, Refusal, Service};
use crate::commits::times::sync_max;
use crate::limits;
use crate::memory::arena::Arena;
use crate::volumes::{rings, service};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use disk::Profile;
use estimate::Likely;
use sched::{Task, TaskSet};
use units::{Bytes, Direction, Duration, Rate};

/// So many alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What they are called.
    pub name: String,
    pub count: u64,
    pub what: Whose,
    /// Where the volume of each would lie.
    pub placement: Placement,
}

/// Whose contract it would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A stream's; without a mode, the one that costs more.
    Stream { mode: Option<Mode>, contract: Contract },
    /// A volume's, for what no stream carries.
    Service(Service),
}

/// What would become of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In the order of the list.
    pub kinds: Vec<KindPlan>,
    /// The first that does not fit; all those before it do, and are in `disks`.
    pub stops: Option<Stop>,
    pub disks: Vec<DiskPlan>,
    /// Memory of all windows that fit, and what was free for windows before.
    pub windows: Bytes,
    pub memory: Bytes,
}

/// What would become of one entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindPlan {
    /// How many fit.
    pub admitted: u64,
    /// How many more would fit beside the whole list, counted to
    /// [`limits::PLAN_MAX`]; none where there is nothing to admit, or where the
    /// list does not fit.
    pub more: Option<u64>,
    /// What stops the one after those.
    pub stops: Option<Error>,
    /// Memory of each one's window.
    pub window: Bytes,
    /// The smallest ring that each one may record to; zero where it is not said to write.
    pub ring: Bytes,
    /// What a ring gives up of its size ahead of each one, at the most.
    pub ring_ahead: Bytes,
}

/// The first that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Which entry of the list.
    pub kind: usize,
    /// Which of its streams, from 1.
    pub number: u64,
    /// Why, and what would fit.
    pub error: Error,
}

/// One disk with all that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskPlan {
    pub disk: DiskIndex,
    pub utilisation_ppm: u64,
    /// Static slack, and the interval at which it is that small, where known.
    pub slack: Duration,
    pub critical: Option<Duration>,
    /// Slack that admission leaves: the longest best-effort command.
    pub reserve: Duration,
    /// Estimate: what best effort gets beside all that fits, in random reads of
    /// 64 KiB.
    pub best_effort: Rate,
    /// Everything that is promised on the disk, and what did not fit.
    pub tasks: Vec<PlanTask>,
}

/// Equal tasks on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanTask {
    /// Which entry of the list; none for what the disk had promised before.
    pub kind: Option<usize>,
    /// False for the one that does not fit.
    pub fits: bool,
    pub count: u64,
    pub task: Task,
}

/// What planning needs to know of a pool, as it is or as it would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planner {
    config: Config,
    disks: Vec<PlanDisk>,
    /// What is free for windows and services,
    memory: Bytes,
    /// and of that, what services may have at the most.
    for_services: Bytes,
}

#[derive(Clone, Debug)]
pub(crate) struct PlanDisk {
    pub profile: Profile,
    pub capacity: Bytes,
    pub advance: Duration,
    pub late: Duration,
    pub set: TaskSet,
    /// Requests of streams are in chunks of this.
    pub chunk: Option<Bytes>,
    /// Answers in time are promised on it.
    pub has_latency: bool,
    /// What was measured of the host where the disk serves, as long as less is charged: whoever
    /// asks is admitted with it, too.
    pub owed: Option<Owed>,
}

impl PartialEq for PlanDisk {
    fn eq(&self, other: &Self) -> bool {
        let tasks = |disk: &Self| disk.set.iter().map(|(_, task)| task).collect::<Vec<_>>();
        self.profile == other.profile && tasks(self) == tasks(other)
    }
}

impl Eq for PlanDisk {}

impl PlanDisk {
    /// The same promises in a set that admits in another way.
    fn with(&self, like: TaskSet) -> Result<Self, sched::Refusal> {
        let anew = |set: &TaskSet, mut like: TaskSet| {
            let tasks: Vec<Task> = set.iter().map(|(_, task)| task).collect();
            like.add_all(&tasks).map(|_| like)
        };
        let owed = self.owed.as_ref().map(|owed| {
            let like = like.clone().with_gap(owed.host.measured.gap);
            let set = owed.set.as_ref().map_err(Clone::clone).and_then(|set| anew(set, like));
            Owed { set, ..owed.clone() }
        });
        Ok(Self { set: anew(&self.set, like)?, owed, ..self.clone() })
    }

    fn seen(&self) -> Seen<'_> {
        let Self { profile, advance, late, set, chunk, .. } = self;
        Seen { profile, advance: *advance, late: *late, set, chunk: *chunk }
    }
}

/// What one of a kind asks.
struct Demand {
    shares: Vec<Share>,
    /// On each share's disk; none for what no contract stands behind.
    tasks: Vec<Option<Task>>,
    likely: Vec<Likely>,
    window: Bytes,
    /// Memory that is set aside for the operations of a service.
    set_aside: Bytes,
    /// It is written together with others.
    group: Option<groups::Key>,
}

impl Demand {
    /// What a contract stands behind.
    fn promised(&self) -> impl Iterator<Item = (&Share, &Task)> {
        let all = self.shares.iter().zip(&self.tasks);
        all.filter_map(|(share, task)| Some((share, task.as_ref()?)))
    }
}

impl Planner {
    /// A pool as it is.
    pub(crate) fn of(
        config: Config,
        disks: Vec<PlanDisk>,
        (memory, for_services): (Bytes, Bytes),
    ) -> Self {
        Self { config, disks, memory, for_services }
    }

    /// A pool that does not exist yet, of empty disks with these profiles, on a host that
    /// takes up to `gap` between two commands of a disk: how much it takes is measured where it
    /// serves.
    ///
    /// # Errors
    /// [`Error::Refused`] where a disk is too slow even for the metadata log;
    /// [`Error::Invalid`] as [`Config::check`].
    ///
    /// # Panics
    /// Where there is no disk, or the memory is below [`limits::MEMORY_MIN`].
    pub fn new(mut config: Config, profiles: Vec<Profile>, gap: Duration) -> Result<Self, Error> {
        assert!(!profiles.is_empty(), "a pool has a disk");
        assert!(config.memory >= limits::MEMORY_MIN, "memory below MEMORY_MIN");
        config.check()?;
        for profile in &profiles {
            let costs = Costs::new(&config, profile, profile.capacity(), gap);
            config.commit_interval = config.commit_interval.max(costs.commit_interval());
        }
        let disk = |(index, profile): (u16, Profile)| {
            let capacity = profile.capacity();
            let costs = Costs::new(&config, &profile, capacity, gap);
            let mut set = Self::set(&config, &costs, &profile, gap);
            for task in costs.metadata(&config) {
                let refused = |refusal| contract::refused(DiskIndex(index), &refusal);
                set.add(task).map_err(refused).map_err(Error::Refused)?;
            }
            let (advance, late) = (costs.advance, config.host_latency);
            let (chunk, has_latency, owed) = (None, false, None);
            Ok(PlanDisk { profile, capacity, advance, late, set, chunk, has_latency, owed })
        };
        let disks = (0..).zip(profiles).map(disk).collect::<Result<Vec<_>, Error>>()?;
        let memory = Arena::for_windows(config.memory);
        Ok(Self { config, disks, memory, for_services: Arena::for_services(config.memory) })
    }

    /// A disk with nothing promised, admitting as its schedule would under the policy.
    fn set(config: &Config, costs: &Costs, profile: &Profile, gap: Duration) -> TaskSet {
        Self::set_leaving(config, costs.best_effort, profile, gap)
    }

    /// The same where so much is left for best effort.
    fn set_leaving(
        config: &Config,
        reserve: Duration,
        profile: &Profile,
        gap: Duration,
    ) -> TaskSet {
        let has_online_slack = config.admission && config.policy.start().has_online_slack();
        TaskSet::new(reserve)
            .with_gap(gap)
            .with_admission(config.policy.admission, profile.depth())
            .with_online_slack(has_online_slack)
    }

    /// How many disks.
    pub fn disks(&self) -> u16 {
        self.disks.len() as u16
    }

    /// What would become of this list.
    ///
    /// # Errors
    /// Where an entry makes no sense, whatever the disks.
    pub fn plan(&self, list: &[Wanted]) -> Result<Plan, Error> {
        self.plan_within(list, &PlanWork::whole())
    }

    /// The same within some work.
    ///
    /// # Errors
    /// As [`Planner::plan`], and where the work is over.
    pub fn plan_within(&self, list: &[Wanted], work: &PlanWork) -> Result<Plan, Error> {
        let whole = self.plan_so(list, work)?;
        let is_latency = |wanted: &Wanted| {
            wanted.count > 0 && matches!(wanted.what, Whose::Service(Service::Latency { .. }))
        };
        let all = list.iter().any(is_latency);
        if whole.stops.is_none() || !(all || self.disks.iter().any(|disk| disk.has_latency)) {
            return Ok(whole);
        }
        // As admission does (`admission/chunks.rs`), for all of the list at once.
        let counts = |plan: &Plan| plan.kinds.iter().map(|kind| kind.admitted).sum::<u64>();
        let mut best = whole;
        for planner in limits::chunks().flatten().filter_map(|chunk| self.in_chunks(chunk, all)) {
            let plan = planner.plan_so(list, work)?;
            if plan.stops.is_none() {
                return Ok(plan);
            }
            best = if counts(&plan) > counts(&best) { plan } else { best };
        }
        Ok(best)
    }

    /// The same disks with streams and best effort in chunks: all, or those on which answers in
    /// time are promised. What a pool has promised before stays as it is. None where that does not
    /// fit so, or where nothing is ever in chunks.
    fn in_chunks(&self, chunk: Bytes, all: bool) -> Option<Self> {
        let slack = self.config.admission && self.config.policy.is(crate::api::Policy::SLACK);
        let disk = |disk: &PlanDisk| {
            if !(all || disk.has_latency) {
                return Some(disk.clone());
            }
            let PlanDisk { profile, capacity, set, .. } = disk;
            let costs = Costs::new(&self.config, profile, *capacity, set.gap());
            let most = chunk.min(costs.piece);
            let (_, cost) = piece_within(profile, *capacity, most, set.reserve());
            let reserve = cost.min(set.reserve());
            let anew = Self::set_leaving(&self.config, reserve, profile, set.gap());
            let anew = disk.with(anew).ok().filter(|_| profile.bus.is_none())?;
            Some(PlanDisk { chunk: Some(chunk), ..anew })
        };
        let disks: Option<Vec<PlanDisk>> = self.disks.iter().map(disk).collect();
        slack.then_some(Self { disks: disks?, ..self.clone() })
    }

    fn plan_so(&self, list: &[Wanted], work: &PlanWork) -> Result<Plan, Error> {
        let mut trial = self.trial(list, work)?;
        let all = trial.stops.is_none();
        let beside = trial.clone();
        for (at, kind) in trial.kinds.iter_mut().enumerate() {
            if all && kind.has_contract {
                (kind.more, kind.stops) = beside.more(&list[at], work)?;
            }
        }
        Ok(trial.told())
    }

    /// Admits a list as far as it goes.
    fn trial(&self, list: &[Wanted], work: &PlanWork) -> Result<Trial, Error> {
        let asked: u64 = list.iter().map(|wanted| wanted.count).fold(0, u64::saturating_add);
        if asked > limits::PLAN_MAX {
            return Err(Error::Invalid { what: "plan", rule: "at most 10,000 streams at once" });
        }
        let mut trial = Trial {
            disks: self.disks.iter().map(TrialDisk::new).collect(),
            planner: self.clone(),
            kinds: Vec::new(),
            stops: None,
            groups: BTreeMap::new(),
        };
        for (at, wanted) in list.iter().enumerate() {
            trial.admit(at, wanted, work)?;
        }
        Ok(trial)
    }

    fn capacities(&self) -> Vec<Bytes> {
        self.disks.iter().map(|disk| disk.capacity).collect()
    }

    /// How a volume that does not exist yet would be shared out.
    fn shares_of(&self, placement: &Placement) -> Result<Vec<Share>, Error> {
        let mut shares = contract::shares_of(placement, &self.capacities())?;
        for share in &mut shares {
            share.response = self.disks[share.disk.as_usize()].seen().response();
        }
        Ok(shares)
    }

    /// What one of a kind asks; the outer error where it makes no sense, the inner
    /// where even idle disks could not keep it.
    fn demand(&self, wanted: &Wanted) -> Result<Result<Demand, Refusal>, Error> {
        let shares = self.shares_of(&wanted.placement)?;
        let seen = |share: &Share| self.disks[share.disk.as_usize()].seen();
        match &wanted.what {
            Whose::Service(service) => {
                service.check()?;
                let needs = shares.iter().filter_map(|share| service::need(service, share));
                let set_aside = needs.map(|need| need.bytes());
                let set_aside = set_aside.fold(Bytes::ZERO, Bytes::saturating_add);
                let tasks = shares.iter().map(|share| seen(share).service(service, share));
                let tasks: Result<Vec<_>, _> = tasks.collect();
                let demand = |tasks| self.demand_of(wanted, shares, tasks);
                Ok(tasks.map(|tasks| Demand { set_aside, ..demand(tasks) }))
            }
            Whose::Stream { mode, contract } => {
                contract.check()?;
                let profile = |disk: DiskIndex| &self.disks[disk.as_usize()].profile;
                contract::check_block(contract, &shares, profile)?;
                let mode = mode.unwrap_or_else(|| self.dearer(contract, &shares));
                let &[way] = mode.directions() else {
                    let rule = "a plan counts reading and writing as a stream each";
                    return Err(Error::Invalid { what: "mode", rule });
                };
                let late = self.config.host_latency;
                let demand = |shares: Vec<Share>| {
                    let task = |share| seen(share).task(contract, share, way).map(Some);
                    let tasks: Result<Vec<_>, _> = shares.iter().map(task).collect();
                    let blocks = contract::window_blocks(contract, &shares, mode, late);
                    let window = contract.block.saturating_mul(blocks);
                    tasks.map(|tasks| Demand { window, ..self.demand_of(wanted, shares, tasks) })
                };
                let Some(group) = self.group_of(wanted, (mode, contract), &shares) else {
                    return Ok(demand(shares));
                };
                let of_member = |share: &Share| Share { members: 1, ..share.of_member(contract) };
                let members = shares.iter().map(of_member).collect();
                Ok(demand(members).map(|demand| Demand { group: Some(group), ..demand }))
            }
        }
    }

    /// These tasks, and no memory yet.
    fn demand_of(&self, wanted: &Wanted, shares: Vec<Share>, tasks: Vec<Option<Task>>) -> Demand {
        let likely = shares.iter().zip(&tasks).map(|(share, task)| {
            task.map_or(Likely::default(), |task| self.likely(wanted, share, &task))
        });
        let likely = likely.collect();
        let (window, set_aside) = (Bytes::ZERO, Bytes::ZERO);
        Demand { shares, tasks, likely, window, set_aside, group: None }
    }

    /// The smallest ring that one of a kind may record to, by what an opening is held to, and what a
    /// ring gives up ahead of it.
    fn ring(&self, wanted: &Wanted, window: Bytes) -> (Bytes, Bytes) {
        match &wanted.what {
            // No ring has such blocks.
            Whose::Stream { contract, .. } if contract.block > store::RING_GRAIN => {
                (Bytes::ZERO, Bytes::ZERO)
            }
            Whose::Stream { mode: Some(mode), contract } if mode.writes() => {
                let sync = sync_max(&self.config);
                let least = rings::least(contract, window, sync);
                let ahead = rings::given_up(contract, window, sync);
                (least.round_up(store::RING_GRAIN), ahead)
            }
            _ => (Bytes::ZERO, Bytes::ZERO),
        }
    }

    /// The direction that costs more; a plan has to hold for both.
    fn dearer(&self, contract: &Contract, shares: &[Share]) -> Mode {
        let dearer = shares.iter().any(|share| {
            let seen = self.disks[share.disk.as_usize()].seen();
            let cost = |way| seen.cost(contract.block, share, way);
            cost(Direction::Write) > cost(Direction::Read)
        });
        if dearer { Mode::Write } else { Mode::Read }
    }
}

/// A list under way: the planner's disks fill up.
#[derive(Clone)]
struct Trial {
    planner: Planner,
    disks: Vec<TrialDisk>,
    kinds: Vec<Entry>,
    stops: Option<Stop>,
    groups: BTreeMap<groups::Key, groups::Planned>,
}

#[derive(Clone)]
struct TrialDisk {
    tasks: Vec<PlanTask>,
    likely: Likely,
}

#[derive(Clone)]
struct Entry {
    admitted: u64,
    window: Bytes,
    /// The windows of all that are admitted.
    windows: Bytes,
    /// What is set aside for all of them.
    set_aside: Bytes,
    /// The least, and what it gives up ahead.
    ring: (Bytes, Bytes),
    has_contract: bool,
    more: Option<u64>,
    stops: Option<Error>,
}

impl TrialDisk {
    fn new(disk: &PlanDisk) -> Self {
        let mut this = Self { tasks: Vec::new(), likely: Likely::default() };
        let mut tasks: Vec<Task> = disk.set.iter().map(|(_, task)| task).collect();
        // Equal ones stand together, so that noting one looks at the last alone.
        tasks.sort_unstable_by_key(|task| {
            (task.deadline, task.period, task.cost, task.command, task.parts)
        });
        for task in tasks {
            this.note(None, true, task, Likely::of(&task, task.cost));
        }
        this
    }

    fn note(&mut self, kind: Option<usize>, fits: bool, task: Task, likely: Likely) {
        self.likely += if fits { likely } else { Likely::default() };
        match self.tasks.last_mut() {
            Some(last) if (last.kind, last.fits, last.task) == (kind, fits, task) => {
                last.count += 1;
            }
            _ => self.tasks.push(PlanTask { kind, fits, count: 1, task }),
        }
    }
}

impl TrialDisk {
    /// A group has this task, in the place of the one that it had.
    fn note_group(&mut self, kind: usize, task: Task, had_one: bool) {
        let likely = Likely::of(&task, task.cost);
        let last = self.tasks.iter_mut().rfind(|last| last.kind == Some(kind) && last.fits);
        match last.filter(|_| had_one) {
            Some(last) => {
                self.likely.becomes(&Likely::of(&last.task, last.task.cost), likely);
                last.task = task;
            }
            None => self.note(Some(kind), true, task, likely),
        }
    }
}

impl Trial {
    fn admit(&mut self, at: usize, wanted: &Wanted, work: &PlanWork) -> Result<(), Error> {
        work.takes_kind(&self.planner)?;
        let demand = self.planner.demand(wanted)?;
        let has_contract = !matches!(wanted.what, Whose::Service(Service::BestEffort(_)));
        let window = demand.as_ref().map_or(Bytes::ZERO, |demand| demand.window);
        let ring = self.planner.ring(wanted, window);
        let (windows, set_aside) = (Bytes::ZERO, Bytes::ZERO);
        let (admitted, more, stops) = (0, None, None);
        let mut entry =
            Entry { admitted, window, windows, set_aside, ring, has_contract, more, stops };
        while self.stops.is_none() && entry.admitted < wanted.count {
            work.takes_one(&self.planner)?;
            match self.one(&demand, wanted) {
                Ok(demand) => {
                    self.take(at, demand);
                    entry.admitted += 1;
                    entry.windows += demand.window;
                    entry.set_aside += demand.set_aside;
                }
                Err(error) => {
                    work.takes_search(&self.planner)?;
                    self.note_refused(at, &demand);
                    self.stops = Some(Stop { kind: at, number: entry.admitted + 1, error });
                }
            }
        }
        self.kinds.push(entry);
        Ok(())
    }

    /// Whether one more of this demand fits, and how; changes nothing.
    fn one<'a>(
        &self,
        demand: &'a Result<Demand, Refusal>,
        wanted: &Wanted,
    ) -> Result<&'a Demand, Error> {
        let fits = match demand {
            Ok(demand) => match demand.group {
                Some(group) => self.fits_into_group(demand, group).map(|()| demand),
                None => self.by_itself(demand),
            },
            Err(refusal) => Err(Error::Refused(refusal.clone())),
        };
        let demand = fits.map_err(|error| match error {
            Error::Refused(refusal) => Error::Refused(self.with_rate(refusal, wanted)),
            other => other,
        })?;
        let (asked, free) = (demand.window, self.planner.memory);
        if asked > free {
            return Err(Error::NoMemory { asked, free });
        }
        let (asked, free) = (demand.set_aside, free.min(self.planner.for_services));
        if asked > free {
            return Err(Error::NoServiceMemory { asked, free });
        }
        Ok(demand)
    }

    /// With tasks of its own.
    fn by_itself<'a>(&self, demand: &'a Demand) -> Result<&'a Demand, Error> {
        let disk = |share: &Share| &self.planner.disks[share.disk.as_usize()];
        for (share, task) in demand.promised() {
            let fits = disk(share).set.admits(task);
            fits.map_err(|refusal| Error::Refused(contract::refused(share.disk, &refusal)))?;
        }
        for (share, task) in demand.promised() {
            if let Some(owed) = &disk(share).owed {
                owed.admits(share.disk, task)?;
            }
        }
        Ok(demand)
    }

    /// The refusal with the largest rate that would fit in its place, and the blocks in which
    /// more would.
    fn with_rate(&self, refusal: Refusal, wanted: &Wanted) -> Refusal {
        let Whose::Stream { mode, contract } = &wanted.what else { return refusal };
        let planner = &self.planner;
        let Ok(shares) = planner.shares_of(&wanted.placement) else { return refusal };
        let mode = mode.unwrap_or_else(|| planner.dearer(contract, &shares));
        let seen = |disk: DiskIndex| planner.disks[disk.as_usize()].seen();
        let bus = seen(refusal.disk).profile.bus.clone().map(Box::new);
        let rate_max = contract::rate_max(seen, contract, &shares, mode);
        let longer = longer_blocks(seen, (contract, &shares, mode), rate_max);
        Refusal { rate_max, longer, bus, ..refusal }
    }

    fn take(&mut self, at: usize, demand: &Demand) {
        if let Some(group) = demand.group {
            return self.take_into_group(at, demand, group);
        }
        let parts = demand.shares.iter().zip(&demand.tasks).zip(&demand.likely);
        for ((share, task), likely) in parts {
            let disk = share.disk.as_usize();
            if let Some(task) = *task {
                let PlanDisk { set, owed, .. } = &mut self.planner.disks[disk];
                if let Some(owed) = owed {
                    owed.take(share.disk, &task);
                }
                set.add(task).expect("it was admitted just now");
                self.disks[disk].note(Some(at), true, task, *likely);
            }
        }
        self.planner.memory -= demand.window + demand.set_aside;
        self.planner.for_services -= demand.set_aside;
    }

    fn note_refused(&mut self, at: usize, demand: &Result<Demand, Refusal>) {
        let Ok(demand) = demand else { return };
        for (share, task) in demand.shares.iter().zip(&demand.tasks) {
            if let Some(task) = *task {
                self.disks[share.disk.as_usize()].note(Some(at), false, task, Likely::default());
            }
        }
    }

    /// How many more of a kind fit, and what stops the next.
    fn more(
        &self,
        wanted: &Wanted,
        work: &PlanWork,
    ) -> Result<(Option<u64>, Option<Error>), Error> {
        work.takes_kind(&self.planner)?;
        let demand = self.planner.demand(wanted)?;
        let mut trial = self.clone();
        for more in 0..limits::PLAN_MAX {
            work.takes_one(&self.planner)?;
            match trial.one(&demand, wanted) {
                Ok(demand) => trial.take(0, demand),
                Err(error) => {
                    work.takes_search(&self.planner)?;
                    return Ok((Some(more), Some(error)));
                }
            }
        }
        Ok((Some(limits::PLAN_MAX), None))
    }

    fn windows(&self) -> Bytes {
        self.kinds.iter().map(|entry| entry.windows).sum()
    }

    fn told(self) -> Plan {
        let windows = self.windows();
        let set_aside: Bytes = self.kinds.iter().map(|entry| entry.set_aside).sum();
        let disk = |(disk, trial): (&PlanDisk, TrialDisk)| DiskPlan {
            disk: DiskIndex(0),
            utilisation_ppm: disk.set.utilisation().ppm(),
            slack: disk.set.slack(),
            critical: disk.set.analysis().filter(|it| it.exact).map(|it| it.critical),
            reserve: disk.set.reserve(),
            best_effort: estimate::best_effort(&disk.profile, disk.capacity, &trial.likely),
            tasks: trial.tasks,
        };
        let mut disks: Vec<DiskPlan> =
            self.planner.disks.iter().zip(self.disks).map(disk).collect();
        for (number, disk) in (0..).zip(&mut disks) {
            disk.disk = DiskIndex(number);
        }
        let kind = |entry: Entry| KindPlan {
            admitted: entry.admitted,
            more: entry.more,
            stops: entry.stops,
            window: entry.window,
            ring: entry.ring.0,
            ring_ahead: entry.ring.1,
        };
        Plan {
            kinds: self.kinds.into_iter().map(kind).collect(),
            stops: self.stops,
            disks,
            memory: self.planner.memory + windows + set_aside,
            windows,
        }
    }
}
