//! What somebody's volumes are together: kept with each change of a volume, so that nobody looks at all
//! of them to know what one user has.

use crate::api::{CountedBy, Holding};
use crate::volume::Volume;
use alloc::collections::BTreeMap;
use units::Bytes;

/// CountedBy a volume is, and its size.
type Part = ([CountedBy; 2], Bytes);

/// What each user and each group has; of those that have something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holdings(BTreeMap<CountedBy, Holding>);

/// What a volume adds to what somebody has.
pub(crate) fn part_of(volume: &Volume) -> Part {
    let whose = volume.ownership();
    ([CountedBy::User(whose.uid), CountedBy::Group(whose.gid)], volume.size())
}

impl Holdings {
    /// Of these volumes. Cost: one look at each.
    pub(crate) fn of<'a>(volumes: impl Iterator<Item = &'a Volume>) -> Self {
        let mut holdings = Self::default();
        volumes.for_each(|volume| holdings.changed(None, Some(part_of(volume))));
        holdings
    }
    pub(crate) fn get(&self, whose: CountedBy) -> Holding {
        self.0.get(&whose).copied().unwrap_or_default()
    }
    /// A volume has changed, or has come, or is gone.
    pub(crate) fn changed(&mut self, from: Option<Part>, to: Option<Part>) {
        if from == to {
            return;
        }
        for (whose, size) in to.into_iter().flat_map(|(whose, size)| whose.map(|one| (one, size))) {
            let has = self.0.entry(whose).or_default();
            *has = Holding { space: has.space + size, volumes: has.volumes + 1 };
        }
        for (whose, size) in from.into_iter().flat_map(|(whose, size)| whose.map(|one| (one, size)))
        {
            let Some(has) = self.0.get_mut(&whose) else { continue };
            *has = Holding { space: has.space - size, volumes: has.volumes - 1 };
            if has.volumes == 0 {
                self.0.remove(&whose);
            }
        }
    }
}
