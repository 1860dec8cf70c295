//! Volumes as files have them: names, lengths, times and directories.
//!
//! Invariant: a change that is not waited for is seen by everybody when the call has ended, and
//! is durable with the next sync of anybody.

use crate::{Client, Result, http, volume_path};
use std::num::NonZeroU16;
use units::{Bytes, Duration};
use wire::control::{
    Access, CopyRecorded, Entries, EntriesAsk, Entry, FileAsk, Moment, RecordedFound, Synced,
    UnlessChanged, Volume, VolumeCopied, VolumeCreate, VolumeKeep, VolumeRename, VolumeResize,
    VolumeTimes,
};

/// Whether a call ends when its change is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// It does.
    Now,
    /// It ends when the change is seen by everybody; the next sync makes it durable.
    WithNextSync,
}

/// As many entries as one answer has.
pub const ENTRIES_MAX: u16 = 1000;

/// What becomes of a volume whose name another gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace<'a> {
    /// It is in the way.
    Nothing,
    /// The volume of this number is removed in the same step; another one is in the way.
    Remove(u64),
    /// The volume of this number gets this name in the same step; another one is in the way.
    KeepAs(u64, &'a str),
}

/// The volume, or the directory, that is renamed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its number, where another one of this name stays as it is
    /// ([`Code::OtherVolume`](crate::Code::OtherVolume)).
    pub is: Option<u64>,
    /// The directory that it leaves stays, where nothing else lies under that: a volume stands for it,
    /// if there is room for one.
    pub keep_directory: bool,
}

impl<'a> From<(&'a str, Option<u64>)> for Which<'a> {
    fn from((name, is): (&'a str, Option<u64>)) -> Self {
        Self { name, is, keep_directory: false }
    }
}

impl<'a> From<&'a str> for Which<'a> {
    fn from(name: &'a str) -> Self {
        Self::from((name, None))
    }
}

/// What has a name.
pub use wire::control::FileFound as Found;

impl Durable {
    fn path(self, path: &str) -> String {
        match self {
            Self::Now => path.into(),
            Self::WithNextSync => format!("{path}?staged=true"),
        }
    }
}

impl Client {
    /// A volume as a file has it, or a directory: by its name, by its number behind a slash, or as
    /// `/NUMBER/PATH` by its path below the directory with this number.
    pub fn file_facts(&self, name: &str) -> Result<Found> {
        let ask = FileAsk { name: name.into(), writer: self.writer_number() };
        http::call(&self.door, "POST", "/v1/file", Some(&ask))
    }

    /// What lies directly under a directory, given as for [`Client::file_facts`], from behind `after`
    /// on, at most so many and at most a thousand; what lies under none where `directory` is empty.
    pub fn entries(&self, directory: &str, after: &str, most: u16) -> Result<Vec<Entry>> {
        let (directory, after) = (directory.into(), after.into());
        let ask = EntriesAsk { directory, after, most: NonZeroU16::new(most) };
        let found: Entries = http::call(&self.door, "POST", "/v1/entries", Some(&ask))?;
        Ok(found.entries)
    }

    /// All that lies directly under a directory, as [`Client::entries`] gives it.
    pub fn all_entries(&self, directory: &str) -> Result<Vec<Entry>> {
        let mut all: Vec<Entry> = Vec::new();
        loop {
            let after = all.last().map_or("", |entry| &entry.name);
            let some = self.entries(directory, after, ENTRIES_MAX)?;
            if some.is_empty() {
                return Ok(all);
            }
            all.extend(some);
        }
    }

    /// Where a volume has what was recorded at a time of the wall clock, in nanoseconds since 1970.
    pub fn recorded_at(&self, name: &str, at_ns: i64) -> Result<Moment> {
        let path = format!("{}/recorded?at_ns={at_ns}", volume_path(name));
        let found: RecordedFound = http::call(&self.door, "GET", &path, None::<&()>)?;
        Ok(found.moment.unwrap_or(Moment::Unknown))
    }

    /// When the byte at a place of a volume was recorded, in nanoseconds since 1970; none where
    /// that is not known.
    pub fn recorded_when(&self, name: &str, place: Bytes) -> Result<Option<i64>> {
        let path = format!("{}/recorded?offset_bytes={}", volume_path(name), place.get());
        let found: RecordedFound = http::call(&self.door, "GET", &path, None::<&()>)?;
        Ok(found.at_ns)
    }

    /// Says that what is recorded of a volume is a copy of what `of` holds from `start` on: it was
    /// recorded when that was. One call may not do for all of it: ask again where less is known than of
    /// what was copied, as long as it becomes more.
    pub fn volume_copied(&self, name: &str, of: &str, start: Bytes) -> Result<CopyRecorded> {
        let copied = VolumeCopied { of: of.into(), start_bytes: start };
        http::call(&self.door, "PUT", &format!("{}/recorded", volume_path(name)), Some(&copied))
    }

    /// As [`Client::volume_create`].
    pub fn create_volume(&self, create: &VolumeCreate, durable: Durable) -> Result<Volume> {
        http::call(&self.door, "POST", &durable.path("/v1/volumes"), Some(create))
    }

    /// Gives a volume another size, cut where that is less than what is recorded, and a length
    /// that is at least `length`.
    pub fn set_volume_size(
        &self,
        name: &str,
        size: Bytes,
        length: Bytes,
        durable: Durable,
    ) -> Result<Volume> {
        let (may_cut, length_bytes) = (true, length);
        let resize =
            VolumeResize { size_bytes: size, may_cut, length_bytes, ..VolumeResize::default() };
        self.resize(name, &resize, durable)
    }

    /// Cuts what is recorded to `length`, where nobody else than the [writer](Client::set_writer_number)
    /// has changed the volume since it had this [version](wire::control::FileFacts::version) for him; otherwise, and where
    /// no more is recorded, it stays as it is. Its space stays with it. What is given shows which of these.
    pub fn cut_unless_changed(
        &self,
        name: &str,
        length: Bytes,
        since: &UnlessChanged,
        durable: Durable,
    ) -> Result<Volume> {
        let resize = VolumeResize {
            size_bytes: length,
            may_cut: true,
            keep_space: true,
            unless_changed: Some(since.clone()),
            ..VolumeResize::default()
        };
        self.resize(name, &resize, durable)
    }

    /// Gives back what was reserved [ahead](Client::grow_ahead) of who writes a volume, by one who has
    /// made it `from` large: it gets `size`, or as much more as is recorded or others have asked for since.
    pub fn give_back(
        &self,
        name: &str,
        (size, from): (Bytes, Bytes),
        durable: Durable,
    ) -> Result<Volume> {
        let given_back_from_bytes = Some(from);
        let resize =
            VolumeResize { size_bytes: size, given_back_from_bytes, ..VolumeResize::default() };
        self.resize(name, &resize, durable)
    }

    /// Gives a volume at least so much space, and `ahead` more where there is room for that, until it is
    /// [given back](Client::give_back).
    pub fn grow_ahead(
        &self,
        name: &str,
        (size, ahead): (Bytes, Bytes),
        durable: Durable,
    ) -> Result<Volume> {
        let resize = VolumeResize {
            size_bytes: size,
            grow_only: true,
            ahead_bytes: ahead,
            ..VolumeResize::default()
        };
        self.resize(name, &resize, durable)
    }

    /// Gives a volume at least so much space; one that has more already stays as it is. What is
    /// recorded reaches at least to `length` then.
    pub fn grow_volume(
        &self,
        name: &str,
        size: Bytes,
        length: Bytes,
        durable: Durable,
    ) -> Result<Volume> {
        let (grow_only, length_bytes) = (true, length);
        let resize =
            VolumeResize { size_bytes: size, grow_only, length_bytes, ..VolumeResize::default() };
        self.resize(name, &resize, durable)
    }

    fn resize(&self, name: &str, resize: &VolumeResize, durable: Durable) -> Result<Volume> {
        http::call(&self.door, "PATCH", &durable.path(&volume_path(name)), Some(resize))
    }

    /// Makes durable everything that was answered before, whoever asked for it. Gives the number
    /// of the daemon's run ([`control::Health`](crate::control::Health)).
    pub fn sync(&self) -> Result<u64> {
        let synced: Synced = http::call(&self.door, "POST", "/v1/sync", None::<&()>)?;
        Ok(synced.run)
    }

    /// Gives a volume, or all that lies under a directory, another name.
    pub fn volume_rename<'a>(
        &self,
        which: impl Into<Which<'a>>,
        to: &str,
        rename: Replace<'_>,
        durable: Durable,
    ) -> Result<()> {
        let Which { name, is, keep_directory } = which.into();
        let path = durable.path(&format!("{}/rename", volume_path(name)));
        let (only, keep_as) = match rename {
            Replace::Nothing => (None, None),
            Replace::Remove(only) => (Some(only), None),
            Replace::KeepAs(only, name) => (Some(only), Some(name.into())),
        };
        let (to, replace) = (to.into(), only.is_some());
        let rename = VolumeRename { to, replace, keep_as, is, only, keep_directory };
        http::exchange(&self.door, "POST", &path, Some(&rename)).map(drop)
    }

    /// Says when a volume was last used.
    pub fn volume_times(&self, name: &str, times: &VolumeTimes, durable: Durable) -> Result<()> {
        let path = durable.path(&format!("{}/times", volume_path(name)));
        http::exchange(&self.door, "PUT", &path, Some(times)).map(drop)
    }

    /// Says for how long a ring keeps what is recorded, from now on, durably: from a second to 36
    /// years; none is as long as there is room.
    pub fn volume_keep(&self, name: &str, keep: Option<Duration>) -> Result<()> {
        let keep = VolumeKeep { keep_ns: keep };
        http::exchange(&self.door, "PUT", &format!("{}/keep", volume_path(name)), Some(&keep))
            .map(drop)
    }

    /// As [`Client::volume_access`].
    pub fn set_volume_access(
        &self,
        name: &str,
        access: &Access,
        durable: Durable,
    ) -> Result<Volume> {
        let path = durable.path(&format!("{}/access", volume_path(name)));
        http::call(&self.door, "PUT", &path, Some(access))
    }

    /// As [`Client::volume_delete`].
    pub fn remove_volume<'a>(&self, which: impl Into<Which<'a>>, durable: Durable) -> Result<()> {
        let Which { name, is, keep_directory } = which.into();
        let mut path = durable.path(&volume_path(name));
        let keeps = keep_directory.then(|| "keep_directory=true".to_owned());
        for said in is.map(|number| format!("only={number}")).into_iter().chain(keeps) {
            path.push(if path.contains('?') { '&' } else { '?' });
            path.push_str(&said);
        }
        http::call_without_answer(&self.door, "DELETE", &path)
    }
}
