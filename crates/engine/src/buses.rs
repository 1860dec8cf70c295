//! The buses that an operator says disks of a new pool share.
//!
//! What is said goes into the profile of each disk, and with it into the disk's label: there
//! it lasts as long as the pool, and goes where the disk goes.

use crate::error::PoolError;
use disk::{BusPlan, BusShare, Profile};
use node::DiskIndex;
use std::collections::BTreeSet;
use std::str::FromStr;
use units::{Bytes, Duration, Rate};

/// A bus, and which of the pool's disks share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusSpec {
    /// The bus; how many disks share it, and how many commands each has, is filled in by
    /// [`Pool::create`](crate::Pool::create).
    plan: BusPlan,
    /// Disks, by the order in which the pool is given them.
    disks: BTreeSet<usize>,
    /// Disks that are not the pool's.
    others: u32,
}

impl FromStr for BusSpec {
    type Err = PoolError;
    /// `NAME,rate=RATE,disks=N+N...` and, where they are wanted, `order=commands|bursts`,
    /// `burst=SIZE`, `lost=TIME`, `others=N`.
    fn from_str(text: &str) -> Result<Self, PoolError> {
        let wrong = |why: String| PoolError::Bus { why: format!("the bus {text:?}: {why}") };
        let mut parts = text.split(',');
        let mut plan = BusPlan::new(parts.next().unwrap_or_default(), Rate::ZERO, 2);
        let (mut disks, mut others, mut given) = (BTreeSet::new(), 0u32, BTreeSet::new());
        for part in parts {
            let (key, value) =
                part.split_once('=').ok_or_else(|| wrong(format!("{part:?} is no KEY=VALUE")))?;
            if !given.insert(key) {
                return Err(wrong(format!("{key} is given twice")));
            }
            let of = |error: &dyn std::fmt::Display| wrong(format!("{key}={value}: {error}"));
            match key {
                "rate" => plan.rate = value.parse::<Rate>().map_err(|error| of(&error))?,
                "burst" => plan.burst = value.parse::<Bytes>().map_err(|error| of(&error))?,
                "lost" => plan.lost = value.parse::<Duration>().map_err(|error| of(&error))?,
                "order" => plan.order = value.parse().map_err(|error| of(&error))?,
                "others" => others = value.parse().map_err(|error| of(&error))?,
                "depth" => plan.depth = value.parse().map_err(|error| of(&error))?,
                "disks" => {
                    for number in value.split('+') {
                        let disk: u16 = number.parse().map_err(|error| of(&error))?;
                        if !disks.insert(usize::from(disk)) {
                            return Err(wrong(format!("disk {disk} is named twice")));
                        }
                    }
                }
                _ => {
                    return Err(wrong(format!(
                        "{key} is unknown; give rate, disks, order, burst, lost, others or \
                         depth"
                    )));
                }
            }
        }
        for key in ["rate", "disks"] {
            if !given.contains(key) {
                return Err(wrong(format!("{key} is missing; give {key}=...")));
            }
        }
        if others > 0 && !given.contains("depth") {
            return Err(wrong(
                "depth is missing; give depth=..., the most commands that one of the others has \
                 at a time: 1 for a hard disk without a queue, often 32 with one"
                    .into(),
            ));
        }
        plan.disks = u32::try_from(disks.len()).unwrap_or(u32::MAX).saturating_add(others);
        plan.check().map_err(|error| wrong(error.to_string()))?;
        Ok(Self { plan, disks, others })
    }
}

impl BusSpec {
    /// The disks of a pool that is served, by their numbers in it, and the bus.
    pub fn into_parts(self) -> (Vec<DiskIndex>, BusPlan) {
        // What is no number of a disk is none of the pool's.
        let index = |disk: usize| DiskIndex(u16::try_from(disk).unwrap_or(u16::MAX));
        (self.disks.into_iter().map(index).collect(), self.plan)
    }
}

/// Puts each disk on its bus, by its number in the pool.
pub(crate) fn assign(buses: &[BusSpec], profiles: &mut [Profile]) -> Result<(), PoolError> {
    let wrong = |why: String| Err(PoolError::Bus { why });
    let mut known: Vec<&str> = Vec::new();
    for BusSpec { plan, disks, others: _ } in buses {
        let name = plan.name.as_str();
        if known.contains(&name) {
            return wrong(format!("the bus {name} is described twice; name all its disks at once"));
        }
        known.push(name);
        let count = profiles.len();
        if let Some(disk) = disks.iter().find(|&&disk| disk >= count) {
            return wrong(format!(
                "the bus {name}: there is no disk {disk}; the pool has {count}, numbered from 0 \
                 in the order in which they are given"
            ));
        }
        let own = disks.iter().map(|&disk| profiles[disk].depth()).max().unwrap_or(1);
        let plan = BusPlan { depth: plan.depth.max(own), ..plan.clone() };
        let share =
            BusShare::new(plan).map_err(|error| PoolError::Bus { why: error.to_string() })?;
        for &disk in disks {
            if let Some(other) = &profiles[disk].bus {
                let other = &other.plan().name;
                return wrong(format!(
                    "disk {disk} cannot be on the bus {other} and on the bus {name}; describe \
                     the slower of them, with all the disks that it has"
                ));
            }
            profiles[disk].bus = Some(share.clone());
        }
    }
    match disk::check_buses(profiles.iter()) {
        Ok(()) => Ok(()),
        Err((disk, error)) => wrong(format!("disk {disk}: {error}")),
    }
}

/// What the disks of a pool that is being opened say of their buses and is not so; to be told.
pub(crate) fn warning(profiles: &[&Profile]) -> Option<String> {
    let (disk, error) = disk::check_buses(profiles.iter().copied()).err()?;
    Some(format!(
        "disk {disk}: {error}, with `slackline pool profile --set`; until then contracts on these \
         disks may be late"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use disk::{BusOrder, Model};

    fn refused(text: &str, says: &str) {
        let error = text.parse::<BusSpec>().unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }

    #[test]
    fn a_bus_that_cannot_be_is_refused_at_the_door() {
        refused("scsi", "rate is missing");
        refused("scsi,rate=20MB/s", "disks is missing");
        refused("scsi,rate=0MB/s,disks=0+1", "bus.rate is 0; give a rate above zero");
        refused("scsi,rate=18446744073709551616B/s,disks=0+1", "rate=18446744073709551616B/s");
        refused("scsi,rate=18446744073709551615B/s,disks=0+1", "rate");
        refused("scsi,rate=1B/s,disks=0+1", "rate");
        refused("scsi,rate=20MB/s,disks=0", "a disk that is alone needs no bus");
        refused("scsi,rate=20MB/s,disks=0+0", "disk 0 is named twice");
        refused("scsi,rate=20MB/s,disks=0+65536", "disks=0+65536");
        refused("scsi,rate=20MB/s,disks=0+-1", "disks=0+-1");
        refused("scsi,rate=20MB/s,disks=0,others=4294967295,depth=1", "give 2 to 1024");
        refused("scsi,rate=20MB/s,disks=0,others=1", "depth is missing");
        refused("scsi,rate=20MB/s,disks=0+1,burst=0", "bus.burst");
        refused("scsi,rate=20MB/s,disks=0+1,lost=400h", "lost");
        refused("scsi,rate=20MB/s,disks=0+1,order=priority", "\"commands\" or \"bursts\"");
        refused("scsi,rate=20MB/s,disks=0+1,speed=3", "speed is unknown");
        refused("scsi,rate=20MB/s,rate=20MB/s,disks=0+1", "rate is given twice");
        refused(",rate=20MB/s,disks=0+1", "give 1 to 64 letters");
    }

    #[test]
    fn each_disk_gets_the_share_of_its_bus() {
        let profile = Profile::of(&Model::named("seagate-cheetah").unwrap());
        let mut profiles = vec![profile.clone(), profile.clone(), profile];
        let before = profiles.clone();
        let assigned = |buses: &[&str]| {
            let buses: Vec<BusSpec> = buses.iter().map(|text| text.parse().unwrap()).collect();
            let mut profiles = before.clone();
            assign(&buses, &mut profiles).map(|()| profiles).map_err(|error| error.to_string())
        };
        profiles = assigned(&["scsi,rate=20MB/s,disks=0+2,order=bursts,others=1,depth=4"]).unwrap();
        assert_eq!(profiles[1], before[1]);
        for profile in [&profiles[0], &profiles[2]] {
            let plan = profile.bus.as_ref().unwrap().plan();
            assert_eq!((plan.disks, plan.order, plan.depth), (3, BusOrder::Bursts, 4));
            assert_eq!(Profile::parse(&profile.to_toml()).unwrap(), *profile, "in its label");
        }
        let says = |buses: &[&str], what: &str| {
            let error = assigned(buses).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        says(&["scsi,rate=20MB/s,disks=0+3"], "there is no disk 3; the pool has 3");
        let twice = ["a,rate=20MB/s,disks=0+1", "b,rate=20MB/s,disks=1+2"];
        says(&twice, "disk 1 cannot be on the bus a and on the bus b");
        says(
            &["a,rate=20MB/s,disks=0+1", "a,rate=20MB/s,disks=2,others=1,depth=1"],
            "described twice",
        );
        assert_eq!(warning(&profiles.iter().collect::<Vec<_>>()), None);
        profiles[0] = assigned(&["scsi,rate=30MB/s,disks=0+1"]).unwrap()[0].clone();
        let told = warning(&profiles.iter().collect::<Vec<_>>()).unwrap();
        assert!(told.starts_with("disk 0: ") && told.contains("different things"), "{told}");
    }
}
