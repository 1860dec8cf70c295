//! What lies under a directory, as it is told.
//!
//! Invariant: one look is at so many names as [`limits::NAMES_STEP`], whatever lies there and however little
//! of it is shown: whoever holds a lock for it lets others have that before the next.

use crate::api::*;
use crate::limits;
use crate::node::Node;
use crate::volumes::permission;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use store::VolumeId;

/// A volume that is shown in a look counts as so many names.
const SHOWN: usize = limits::NAMES_STEP / limits::STATUS_STEP;

/// What lies directly under a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The last part of its name.
    pub name: String,
    /// The volume; none of a directory that is there only because something lies under it, and
    /// of one that is hidden.
    pub volume: Option<VolumeStatus>,
    /// The directory, where there is no volume.
    pub directory: Option<Directory>,
}

/// A directory that no volume stands for, or one that is hidden, as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Its whole name.
    pub name: String,
    /// When that is so: `/@MOMENT/NAME` is this directory, also when it is called something else.
    pub moment: u64,
    /// The moment since which it has been called so: another directory had this name before. 0 where
    /// none had it, as far as is known.
    pub since: u64,
}

/// How far somebody has looked at what lies under a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The next name there, which is not that of `after` where it is not to be told again.
    from: String,
    skips: bool,
    /// Nothing is shown of what lies under it before this.
    below: Option<String>,
}

impl Node {
    /// What lies directly under a directory, or under none, in the order of the names, from
    /// behind `after` on: at most so many, and of them those that `who` is shown.
    pub fn entries(&self, who: &Who, directory: &str, after: &str, most: usize) -> Vec<Entry> {
        let (mut all, mut looked) = (Vec::new(), None);
        loop {
            let left = most - all.len();
            let (some, next) = self.look_at_entries(who, directory, (after, looked), left);
            all.extend(some);
            match next {
                Some(next) if all.len() < most => looked = Some(next),
                _ => return all,
            }
        }
    }

    /// The first of the same, or what comes behind what was `looked` at; and from where on to look again,
    /// where not all that there may be was looked at.
    pub fn look_at_entries(
        &self,
        who: &Who,
        directory: &str,
        (after, looked): (&str, Option<Looked>),
        most: usize,
    ) -> (Vec<Entry>, Option<Looked>) {
        let store = &self.core.store;
        let by_number = directory.starts_with('/').then(|| store.find(directory)).flatten();
        let directory = match by_number {
            Some(volume) => Some(Cow::Borrowed(volume.name())),
            None => store.whole_name(directory),
        };
        let Some(directory) = directory else { return (Vec::new(), None) };
        let under = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let Looked { from, mut skips, mut below } =
            looked.unwrap_or_else(|| self.behind(&under, after));
        let (mut all, mut from) = (Vec::new(), format!("{under}{from}"));
        let mut looks = limits::NAMES_STEP;
        while all.len() < most {
            let Some((found, id)) = store.named(&under, &from).next() else { return (all, None) };
            let rest = &found[under.len()..];
            let (name, is_under) = match rest.split_once('/') {
                Some((name, _)) => (name, true),
                None => (rest, false),
            };
            if looks == 0 {
                let from = from[under.len()..].into();
                return (all, Some(Looked { from, skips, below }));
            }
            looks -= 1;
            // '0' is the character behind the slash; nothing is between a name and its own with
            // the lowest character at its end.
            let next = if is_under { format!("{under}{name}0") } else { format!("{found}\0") };
            let is_told = is_under && store.find(&format!("{under}{name}")).is_some();
            let is_behind = !skips || name != after;
            // One that he may not see is a directory of which he is told only the name.
            let is_shown = !is_under && self.sees(who, id);
            if !is_told && is_behind {
                let whole = format!("{under}{name}");
                let seen = match is_shown {
                    true => Ok(true),
                    false => self.sees_below(who, &whole, below.take(), &mut looks),
                };
                match seen {
                    Ok(false) => {}
                    Ok(true) => {
                        looks = looks.saturating_sub(if is_shown { SHOWN } else { 0 });
                        let shown = || self.volume_status(store.volume(id).expect("just found"));
                        let volume = is_shown.then(shown);
                        let directory = volume.is_none().then(|| self.told_directory(whole));
                        all.push(Entry { name: name.into(), volume, directory });
                    }
                    Err(rest) => {
                        let from = from[under.len()..].into();
                        return (all, Some(Looked { from, skips, below: Some(rest) }));
                    }
                }
            }
            below = None;
            skips &= name == after;
            from = next;
        }
        (all, None)
    }

    /// Where that begins which lies behind a name.
    fn behind(&self, under: &str, after: &str) -> Looked {
        let store = &self.core.store;
        // A directory that no volume stands for stands where what lies under it does: behind names that begin as
        // its own and go on with a character before the slash.
        let below = format!("{under}{after}/");
        let is_implicit = !after.is_empty()
            && store.find(&format!("{under}{after}")).is_none()
            && store.named(&below, &below).next().is_some();
        let begin = if is_implicit { "0" } else { "" };
        // A name begins behind all that begin with the one before it.
        let skips = !after.is_empty() && !is_implicit;
        Looked { from: format!("{after}{begin}"), skips, below: None }
    }

    fn sees(&self, who: &Who, id: VolumeId) -> bool {
        let volume = self.core.store.volume(id).expect("just found");
        permission::sees(who, volume.ownership())
    }

    /// Whether somebody is shown anything under a directory, of what is there `from` on; or from where on to
    /// look again, when as much was looked at as he may now.
    fn sees_below(
        &self,
        who: &Who,
        directory: &str,
        from: Option<String>,
        looks: &mut usize,
    ) -> Result<bool, String> {
        let below = format!("{directory}/");
        // What was looked at before may have another name by now.
        let from = from.filter(|from| from.starts_with(&below)).unwrap_or_else(|| below.clone());
        for (found, id) in self.core.store.named(&below, &from) {
            if *looks == 0 {
                return Err(found.into());
            }
            if self.sees(who, id) {
                return Ok(true);
            }
            *looks -= 1;
        }
        Ok(false)
    }

    /// The directory of this name, where something lies under it that `who` is shown.
    pub fn directory(&self, who: &Who, name: &str) -> Option<Directory> {
        let mut looked = None;
        loop {
            match self.look_at_directory(who, name, looked) {
                Ok(found) => return found,
                Err(next) => looked = Some(next),
            }
        }
    }

    /// The same in one look, from where the one before has come to.
    ///
    /// # Errors
    /// Not all was looked at, and nothing of it is shown: from where on to look again.
    pub fn look_at_directory(
        &self,
        who: &Who,
        name: &str,
        looked: Option<String>,
    ) -> Result<Option<Directory>, String> {
        let Some(name) = self.core.store.whole_name(name) else { return Ok(None) };
        let mut looks = limits::NAMES_STEP;
        let is_one = self.sees_below(who, &name, looked, &mut looks)?;
        Ok(is_one.then(|| self.told_directory(name.into_owned())))
    }

    fn told_directory(&self, name: String) -> Directory {
        let (moment, since) = self.core.store.moment(&name);
        Directory { name, moment, since }
    }
}
