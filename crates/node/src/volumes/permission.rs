//! Who may do what: one table for every operation, and one function that decides.
//!
//! The rules are those of files. A volume has an owner, a group and nine bits; the
//! first of owner, group and others that the caller is decides, so that an owner whose
//! own bits say no is refused where others would not be. `r` is for what is recorded and
//! for what is known of the volume, `w` for writing and resizing, and `x` for nothing.
//! What changes the volume for everybody (delete, the permissions, its service) is the
//! owner's; another owner, and what concerns the whole pool, are the super-user's.
//!
//! Invariant: [`Wanted::by`] has no arm for "all else": an operation that is added is
//! not served before somebody has said who may ask for it.

use crate::api::{Access, Error, Mode, Op, Target};
pub use crate::api::{Act, Who};
use alloc::string::String;
use store::Ownership;

/// Whether a volume with this owner and mode lets `who` do this.
pub fn may(who: &Who, volume: Ownership, act: Act) -> bool {
    let is_owner = who.uid == volume.uid;
    let bit = match act {
        _ if who.is_superuser => return true,
        Act::Own => return is_owner,
        Act::Read => 0o4,
        Act::Write => 0o2,
    };
    let shift = match () {
        () if is_owner => 6,
        () if who.is_in(volume.gid) => 3,
        () => 0,
    };
    volume.mode >> shift & bit != 0
}

/// Whether `who` is shown a volume in lists: his own, and those that he may read.
pub fn sees(who: &Who, volume: Ownership) -> bool {
    may(who, volume, Act::Own) || may(who, volume, Act::Read)
}

/// Whether `who` is told that there is such a volume, when he names it.
pub fn knows(who: &Who, volume: Ownership) -> bool {
    sees(who, volume) || may(who, volume, Act::Write)
}

/// Refuses what a volume does not let `who` do; one that lets him do nothing is not
/// there for him.
///
/// # Errors
/// [`Error::NotPermitted`], or [`Error::NoSuchVolume`] where he may not even know of it.
pub fn check(who: &Who, name: &str, volume: Ownership, act: Act) -> Result<(), Error> {
    let name = || String::from(name);
    match may(who, volume, act) {
        true => Ok(()),
        false if knows(who, volume) => Err(Error::NotPermitted { name: name(), act }),
        false => Err(Error::NoSuchVolume { name: name() }),
    }
}

/// Whose a new volume of `who` is, or what becomes of one whose ownership is `before`.
///
/// # Errors
/// [`Error::OnlyRoot`] where he gives it to another user, or to a group that is not his;
/// [`Error::Invalid`] where the mode has more than nine bits.
pub fn settle(who: &Who, before: Ownership, access: Access) -> Result<Ownership, Error> {
    let after = Ownership {
        uid: access.uid.unwrap_or(before.uid),
        gid: access.gid.unwrap_or(before.gid),
        mode: access.mode.map_or(before.mode, |mode| mode | before.kind()),
    };
    if access.mode.is_some_and(|mode| mode & !Ownership::KIND > Ownership::MODE_MAX) {
        let rule = "nine permission bits, at most 777 in octal";
        return Err(Error::Invalid { what: "mode", rule });
    }
    if !Ownership::is_mode(after.mode) {
        let rule = "what a volume is stays: a directory, a link, or neither";
        return Err(Error::Invalid { what: "mode", rule });
    }
    if !who.is_superuser && after.uid != before.uid {
        return Err(Error::OnlyRoot { what: "giving a volume to another user" });
    }
    if !who.is_superuser && after.gid != before.gid && !who.is_in(after.gid) {
        return Err(Error::OnlyRoot { what: "giving a volume to a group that you are not in" });
    }
    Ok(after)
}

/// A new volume's, where nothing else is said: its maker's, and closed to others.
pub fn of_new(who: &Who) -> Ownership {
    Ownership { uid: who.uid, gid: who.gid, mode: Ownership::ROOT.mode }
}

/// What an operation wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// To do this with the volume of this name.
    Of(&'a str, Act),
    /// To read or to write the volume of this name: whoever may do one of them.
    ReadOrWrite(&'a str),
    /// To read and to write the volume of this name.
    ReadAndWrite(&'a str),
    /// What concerns the whole pool.
    Pool(&'static str),
    /// Nothing that is not the caller's already: memory, or a stream, which is whose
    /// connection has it; or a volume of his own.
    Nothing,
}

impl<'a> Wanted<'a> {
    /// By this operation.
    pub fn by(op: &'a Op) -> Self {
        fn way(volume: &str, mode: Mode) -> Wanted<'_> {
            match mode {
                Mode::Read => Wanted::Of(volume, Act::Read),
                Mode::Write => Wanted::Of(volume, Act::Write),
                Mode::Update => Wanted::ReadAndWrite(volume),
            }
        }
        match op {
            Op::VolumeResize { name, .. }
            | Op::VolumeResizeWithin { name, .. }
            | Op::VolumeTruncate { name, .. }
            | Op::VolumeExtend { name, .. }
            // Whether he may read the other one, the copy looks at itself.
            | Op::VolumeCopied { name, .. } => Self::Of(name, Act::Write),
            Op::Staged(op) => Self::by(op),
            Op::VolumeDelete { name, .. }
            | Op::VolumeTimes { name, .. }
            | Op::VolumeService { name, .. }
            | Op::VolumeAccess { name, .. }
            | Op::RingKeep { name, .. } => Self::Of(name, Act::Own),
            Op::Block { volume, mode, .. }
            | Op::StreamOpen { volume, mode, .. }
            | Op::WindowOpen { volume, mode, .. } => way(volume, *mode),
            Op::Open { opening, .. } => way(&opening.volume, opening.mode),
            Op::HandleOpen { volume, .. } => Self::ReadOrWrite(volume),
            Op::Read { volume, .. } => Self::Of(volume, Act::Read),
            Op::Write { volume, .. }
            | Op::Place { volume, .. }
            | Op::Room { target: Some(Target { volume, .. }), .. } => Self::Of(volume, Act::Write),
            Op::SyncVolume { volume, .. } => Self::ReadOrWrite(volume),
            Op::HostLatency { .. } | Op::Delivery { .. } => {
                Self::Pool("saying how late the host is")
            }
            Op::ProfileSet { .. } => Self::Pool("the profile of a disk"),
            Op::BusSet { .. } => Self::Pool("the buses of the pool"),
            Op::PolicySet { .. } => Self::Pool("the policy of the pool"),
            Op::Reprofile { .. } => Self::Pool("measuring a disk again"),
            Op::Shutdown => Self::Pool("stopping the pool"),
            // Whose the volumes are that it is about, the rename looks at itself.
            Op::VolumeRename { .. }
            | Op::VolumeCreate { .. }
            | Op::RingCreate { .. }
            | Op::HandleClose { .. }
            | Op::StreamChange { .. }
            | Op::StreamRead { .. }
            | Op::StreamAdvance { .. }
            | Op::StreamRoom { .. }
            | Op::StreamWrite { .. }
            | Op::StreamDurable { .. }
            | Op::StreamSync { .. }
            | Op::StreamClose { .. }
            | Op::StreamSeek { .. }
            | Op::StreamBegin { .. }
            | Op::WindowNext { .. }
            | Op::WindowMoved { .. }
            | Op::WindowWaits { .. }
            | Op::Room { target: None, .. }
            | Op::Release { .. }
            | Op::Sync
            | Op::Plan => Self::Nothing,
        }
    }
}
