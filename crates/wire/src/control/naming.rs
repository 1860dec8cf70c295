//! Volumes as files have them: names that are paths, kinds, times, renames, directories.

use super::{Owner, is_zero};
use crate::quantity;
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU16, NonZeroU64};
use units::Bytes;

/// Files that were removed while a program has them open lie under this name; nothing but a
/// directory gets it.
pub const REMOVED_DIRECTORY: &str = ".slackline-removed";

/// A volume that is no directory counts in the pool's metadata as if its name had so many bytes at
/// the least, so that it gets one of that length also where the metadata are full.
pub const REMOVED_NAME_MAX: usize = 64;

/// A rename of a directory takes all that lies under it where [`renamed_size`] of all their new
/// names is at most this.
pub const RENAMED_MAX: u64 = 4 << 10;

/// What one volume counts of [`RENAMED_MAX`] that gets a name of so many bytes.
pub const fn renamed_size(name: usize) -> u64 {
    10 + name as u64
}

/// What a volume stands for, to those who see volumes as files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// For nothing but itself: a file.
    #[default]
    Volume,
    /// For a directory; it has no bytes. A directory is also there where a volume's name has
    /// it before a slash.
    Directory,
    /// For a symbolic link, whose text its bytes are.
    Link,
}

impl FileKind {
    /// True where nothing has to be said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// When a volume was last used, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Times {
    /// Read, as far as somebody said so.
    pub accessed_ns: i64,
    /// Written or cut, by whichever program.
    pub modified_ns: i64,
    /// Anything of it changed.
    pub changed_ns: i64,
}

/// Asks for another name of a volume, or of all that lies under a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schema(examples(json!({ "to": "films/video" }))))]
pub struct VolumeRename {
    /// The new name.
    pub to: String,
    /// A volume that has that name already is removed in the same step; else it is in the way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// With `replace`: it is not removed, but gets this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_as: Option<String>,
    /// The number of the volume that is renamed: another one of this name keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<u64>,
    /// With `replace`: the number of the only volume that is replaced; another one is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<u64>,
    /// The directory that it leaves stays, where nothing else lies under that: a volume of the asker's
    /// stands for it, if the pool and his quota have room for one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_directory: bool,
}

/// Says when a volume was last used; what is left out stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct VolumeTimes {
    /// Read, in nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accessed_ns: Option<i64>,
    /// Written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ns: Option<i64>,
}

/// Asks what lies directly under a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct EntriesAsk {
    /// The directory, as names have it, or its number behind a slash, or `/NUMBER/PATH` as in [`FileAsk`];
    /// empty for what lies under none.
    #[serde(default)]
    pub directory: String,
    /// Only what comes behind this entry.
    #[serde(default)]
    pub after: String,
    /// At most so many; a thousand where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u16>, minimum = 1))]
    pub most: Option<NonZeroU16>,
}

/// What lies under a directory, the first of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Entries {
    /// In the order of their names; none where there are no more.
    pub entries: Vec<Entry>,
}

/// One thing that lies under a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Entry {
    /// The last part of its name.
    pub name: String,
    /// The volume; none of a directory that is there only because volumes lie under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileFacts>,
    /// The directory, where there is no volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectoryFacts>,
}

/// What is known of a directory that no volume stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DirectoryFacts {
    /// Its whole name.
    pub name: String,
    /// When that is so: `/@MOMENT/NAME` is this directory also when it is called something else, as long
    /// as the daemon runs.
    pub moment: u64,
    /// The moment since which it has been called so, where another one was called so before; else 0.
    pub since: u64,
}

/// Asks for a volume as a file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FileAsk {
    /// The volume's name, or its number behind a slash, or `/NUMBER/PATH`: what has this path below the
    /// directory with this number; or `/@MOMENT/PATH`: what had this path at that moment.
    pub name: String,
    /// Who asks, where he wants to know of changes that are not his own: a number below 2^60 that
    /// nobody else has, as the connections that he writes by have it in their `HelloVolume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub writer: Option<NonZeroU64>,
}

/// What is known of a volume as of a file: little, and quick to tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileFacts {
    /// Its number, which never changes and is never another volume's.
    pub number: u64,
    /// Its whole name.
    pub name: String,
    /// What it stands for.
    pub kind: FileKind,
    /// Whose it is.
    pub owner: Owner,
    /// Space reserved; of a thin volume the most that it may come to have.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub size_bytes: Bytes,
    /// What it has of its disks, of a thin volume; none of others, which have their size.
    #[serde(with = "quantity::option", skip_serializing_if = "Option::is_none", default)]
    #[cfg_attr(feature = "schema", schema(value_type = Option<u64>))]
    pub taken_bytes: Option<Bytes>,
    /// End of the recorded data.
    #[serde(with = "quantity")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub length_bytes: Bytes,
    /// Where what it holds begins, of a ring that has given up what is before.
    #[serde(default, with = "quantity", skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schema(value_type = u64))]
    pub start_bytes: Bytes,
    /// When it was last used; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<Times>,
    /// Another text than before wherever anybody else than the writer who asks may have changed bytes
    /// in between; none where no writer asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The answer to a question for a volume as a file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileFound {
    /// The volume.
    #[serde(rename = "file")]
    Volume(FileFacts),
    /// A directory that is there only because volumes lie under it.
    Directory(DirectoryFacts),
}

/// Everything that was answered before is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Synced {
    /// The number of the daemon's run, as in its health.
    pub run: u64,
}
