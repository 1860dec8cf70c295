//! How long a command may wait for a bus that several disks share: a SCSI string, a USB
//! bridge, a controller, or the network between a host and its disks.
//!
//! A [`BusShare`] stands in the profile of each disk on the bus, so that every bound of that
//! profile has the wait in it: admission, prediction and all that follows from them count it.
//! The bound relies on the order in which the bus serves ([`BusOrder`]), on no disk having more
//! commands at a time than `depth`, and on no command moving more than [`LARGEST`]. Then the
//! bus needs no test of its own: each command's bound covers the turns of all others, so
//! that admitted disks never ask for more of the bus than there is
//! (docs/admission.md has the argument; Clockwise thesis, section 8.1, the problem).
//!
//! Not covered: an arbiter that always prefers some disks to others; a disk behind two shared
//! buses at once; commands of programs that no daemon schedules.
//!
//! Invariant: no wait is longer than an hour.

use crate::error::ensure;
use crate::text::{Text, check};
use crate::{Error, Profile};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate, SECTOR};

/// No command of a pool moves more: a block, and a piece of best effort, are at most an
/// extent.
pub const LARGEST: Bytes = Bytes::MIB;
/// Disks on one bus.
const DISKS_MAX: u32 = 1_024;
const DEPTH_MAX: u32 = 1_024;
const WAIT_MAX: Duration = Duration::from_secs(3_600);
const NAME_MAX: usize = 64;
/// What a disk sends at once where nothing else is said.
const BURST: Bytes = Bytes::kib(64);

/// Whose turn it is on a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BusOrder {
    /// Commands are served in the order in which they came: a command waits for those that
    /// the other disks had before it.
    #[default]
    Commands,
    /// Disks take turns, a burst each, all of the same length: every burst of a command waits
    /// for at most one burst of each other disk.
    Bursts,
}

impl BusOrder {
    fn name(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Bursts => "bursts",
        }
    }
}

impl FromStr for BusOrder {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "commands" => Ok(Self::Commands),
            "bursts" => Ok(Self::Bursts),
            other => Err(Error::Invalid(format!(
                "the order of a bus is {other:?}; give \"commands\" or \"bursts\""
            ))),
        }
    }
}

/// A bus as it is described, by the operator or in a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusPlan {
    /// What it is called. Disks of a pool with the same name share it.
    pub name: String,
    /// What it moves while one disk sends.
    pub rate: Rate,
    /// How many disks share it.
    pub disks: u32,
    /// The most commands that one of them has at a time.
    pub depth: u32,
    /// Whose turn it is.
    pub order: BusOrder,
    /// What a disk sends at once, but for the end of a command, which may be shorter.
    pub burst: Bytes,
    /// What of the bus's time is lost with each burst: arbitration, reconnection, a gap too
    /// short to be used.
    pub lost: Duration,
}

impl BusPlan {
    /// A bus of this name and rate for so many disks with one command each, in the order of
    /// commands, without loss.
    pub fn new(name: &str, rate: Rate, disks: u32) -> Self {
        let lost = Duration::ZERO;
        let name = name.to_owned();
        Self { name, rate, disks, depth: 1, order: BusOrder::Commands, burst: BURST, lost }
    }

    /// Whether there can be such a bus.
    ///
    /// # Errors
    /// Says what is wrong and what would do.
    pub fn check(&self) -> Result<(), Error> {
        let Self { name, rate, disks, depth, burst, lost, .. } = self;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        ensure!(
            !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(plain),
            "bus.name is {name:?}; give 1 to {NAME_MAX} letters, digits, '-', '_' and '.'"
        );
        ensure!(!rate.is_zero(), "bus.rate is 0; give a rate above zero");
        check("bus.rate", rate)?;
        ensure!(
            (2..=DISKS_MAX).contains(disks),
            "bus.disks is {disks}; give 2 to {DISKS_MAX}: a disk that is alone needs no bus"
        );
        ensure!((1..=DEPTH_MAX).contains(depth), "bus.depth is {depth}; give 1 to {DEPTH_MAX}");
        ensure!(
            (SECTOR..=LARGEST).contains(burst),
            "bus.burst is {burst}; give 512 B to {LARGEST}"
        );
        check("bus.lost", lost)?;
        let longest = self.longest();
        ensure!(
            longest <= u128::from(WAIT_MAX.as_nanos()),
            "on the bus {name} a command may wait for more than an hour; check its rate, disks, \
             depth, burst and lost"
        );
        Ok(())
    }

    /// The longest wait, in nanoseconds.
    fn longest(&self) -> u128 {
        let steps = match self.order {
            BusOrder::Commands => 1,
            BusOrder::Bursts => u128::from(bursts(LARGEST, self.burst)),
        };
        (self.step() * steps).max(self.round())
    }

    /// One burst of each other disk, in nanoseconds.
    fn round(&self) -> u128 {
        let burst = self.rate.time_for(self.burst).as_nanos();
        let each = u128::from(burst) + u128::from(self.lost.as_nanos());
        each * u128::from(self.disks - 1)
    }

    /// What a command waits for once, or at each of its bursts, in nanoseconds.
    fn step(&self) -> u128 {
        match self.order {
            BusOrder::Bursts => self.round(),
            BusOrder::Commands => {
                let moved = u128::from(self.rate.time_for(LARGEST).as_nanos());
                let lost = u128::from(self.lost.as_nanos());
                let each = moved + lost * u128::from(bursts(LARGEST, self.burst));
                each * u128::from(self.disks - 1) * u128::from(self.depth)
            }
        }
    }
}

/// The most bursts of a command: it may begin within one.
fn bursts(len: Bytes, burst: Bytes) -> u64 {
    len.div_ceil(burst) + 1
}

/// A disk's share of a bus; see the top of this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusShare {
    plan: BusPlan,
    /// What a command waits for once, or at each of its bursts.
    step: Duration,
    /// One burst of each other disk.
    round: Duration,
}

impl BusShare {
    /// A share of this bus.
    ///
    /// # Errors
    /// As [`BusPlan::check`].
    pub fn new(plan: BusPlan) -> Result<Self, Error> {
        plan.check()?;
        let [step, round] = [plan.step(), plan.round()].map(|nanos| {
            Duration::from_nanos(u64::try_from(nanos).expect("no wait is longer than an hour"))
        });
        Ok(Self { plan, step, round })
    }

    /// The bus.
    pub fn plan(&self) -> &BusPlan {
        &self.plan
    }

    /// Bound on what a transfer of `len` waits for the other disks, all of it together.
    pub fn wait(&self, len: Bytes) -> Duration {
        match self.plan.order {
            BusOrder::Commands => self.step,
            BusOrder::Bursts => self.step * bursts(len, self.plan.burst),
        }
    }

    /// The same for a command that moves nothing: a flush, a seek.
    pub fn wait_without_data(&self) -> Duration {
        match self.plan.order {
            BusOrder::Commands => self.step,
            BusOrder::Bursts => self.round,
        }
    }
}

impl fmt::Display for BusShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BusPlan { name, rate, disks, .. } = &self.plan;
        let longest = self.wait(LARGEST);
        write!(
            f,
            "shares the bus {name} ({rate}) with {} other{}; a command waits up to {longest} for it",
            disks - 1,
            if *disks == 2 { "" } else { "s" }
        )
    }
}

/// Whether the buses of these disks, the disks of one pool, are described in one way: those
/// that share a bus say the same of it, are no more than it has, and have no more commands at
/// a time. What is wrong of which disk, by its place in `profiles`.
///
/// # Errors
/// The first disk whose bus is described otherwise, and what to do.
pub fn check_buses<'a>(
    profiles: impl Iterator<Item = &'a Profile> + Clone,
) -> Result<(), (usize, Error)> {
    let on = |profile: &'a Profile| profile.bus.as_ref().map(BusShare::plan);
    for (number, profile) in profiles.clone().enumerate() {
        let Some(bus) = on(profile) else { continue };
        let wrong = |text: String| Err((number, Error::Invalid(text)));
        let name = &bus.name;
        let same = profiles.clone().filter_map(on).filter(|other| other.name == *name);
        if same.clone().any(|other| other != bus) {
            return wrong(format!(
                "the disks on the bus {name} say different things of it; give all of them the \
                 same [bus]"
            ));
        }
        let count = same.count();
        if count > bus.disks as usize {
            return wrong(format!(
                "{count} disks are on the bus {name}, which has {}; give all of them `disks = \
                 {count}` or more in [bus]",
                bus.disks
            ));
        }
        let depth = profile.depth();
        if depth > bus.depth {
            return wrong(format!(
                "a disk on the bus {name} has {depth} commands at a time, and the bus counts \
                 with {}; give all of its disks `depth = {depth}` or more in [bus]",
                bus.depth
            ));
        }
    }
    Ok(())
}

/// A bus as a profile's file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BusFile {
    name: String,
    rate: Text<Rate>,
    disks: u32,
    #[serde(default = "one")]
    depth: u32,
    #[serde(default = "commands")]
    order: String,
    #[serde(default = "burst")]
    burst: Text<Bytes>,
    #[serde(default = "nothing")]
    lost: Text<Duration>,
}

fn one() -> u32 {
    1
}
fn commands() -> String {
    BusOrder::Commands.name().to_owned()
}
fn burst() -> Text<Bytes> {
    Text(BURST)
}
fn nothing() -> Text<Duration> {
    Text(Duration::ZERO)
}

impl BusFile {
    pub(crate) fn share(self) -> Result<BusShare, Error> {
        let Self { name, rate, disks, depth, order, burst, lost } = self;
        let order = order.parse()?;
        BusShare::new(BusPlan {
            name,
            rate: rate.0,
            disks,
            depth,
            order,
            burst: burst.0,
            lost: lost.0,
        })
    }

    pub(crate) fn of(share: &BusShare) -> Self {
        let BusPlan { name, rate, disks, depth, order, burst, lost } = share.plan.clone();
        let order = order.name().to_owned();
        Self { name, rate: Text(rate), disks, depth, order, burst: Text(burst), lost: Text(lost) }
    }
}
