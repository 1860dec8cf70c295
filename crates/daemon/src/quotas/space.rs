//! Space and volumes under quota.
//!
//! They are counted by whose the volumes are, not by who asks: of a user, those that he
//! owns, and of a group, those that are in it, as a file system counts files. Invariant:
//! what is asked for is counted and begun in one step ([`Quotas::begin`]), and a pool
//! shows what was begun ([`engine::Pool::submit`]): however many ask at once, none gets beyond.

use super::{Holder, Peer, Quotas};
use crate::pool::{Ask, Coming};
use node::{Access, CountedBy, Op, Ownership, Status, VolumeStatus};
use units::Bytes;
use wire::{Code, Problem};

/// Space and volumes that somebody has, or that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub space: Bytes,
    pub volumes: u64,
}

impl Held {
    /// What a holder has.
    pub(super) fn by(holder: Holder, status: &Status) -> Self {
        let is_theirs = |volume: &&VolumeStatus| match holder {
            Holder::User(uid) => volume.ownership.uid == uid,
            Holder::Group(gid) => volume.ownership.gid == gid,
        };
        status.volumes.iter().filter(is_theirs).fold(Self::default(), |sum, volume| Self {
            space: sum.space + volume.size,
            volumes: sum.volumes + 1,
        })
    }
}

/// What an operation adds to what somebody has.
struct More {
    whose: Ownership,
    what: Held,
    /// The user has it already, and his quota with it.
    is_users: bool,
}

/// The bytes that a volume of this size takes.
fn reserved(size: Bytes) -> Bytes {
    Bytes::new(size.div_ceil(Bytes::MIB).saturating_mul(Bytes::MIB.get()))
}

/// What `op` would add; none where it adds nothing, or is refused for another reason.
fn more(op: &Op, ask: &Ask) -> Option<More> {
    let find = |name: &str| ask.0.volume(name);
    let settle = |before, access: Access| node::permission::settle(&ask.1, before, access).ok();
    match op {
        Op::VolumeCreate { size, access, .. } | Op::RingCreate { size, access, .. } => {
            let whose = settle(node::permission::of_new(&ask.1), *access)?;
            let what = Held { space: reserved(*size), volumes: 1 };
            Some(More { whose, what, is_users: false })
        }
        Op::VolumeResize { name, size, .. } | Op::VolumeResizeWithin { name, size, .. } => {
            let volume = find(name)?;
            let space = reserved(*size).saturating_sub(volume.size);
            let what = Held { space, volumes: 0 };
            Some(More { whose: volume.ownership, what, is_users: false })
        }
        Op::VolumeAccess { name, access } => {
            let volume = find(name)?;
            let whose = settle(volume.ownership, *access)?;
            let what = Held { space: volume.size, volumes: 1 };
            let is_users = whose.uid == volume.ownership.uid;
            let is_groups = whose.gid == volume.ownership.gid;
            (!is_users || !is_groups).then_some(More { whose, what, is_users })
        }
        Op::Staged(op) => more(op, ask),
        _ => None,
    }
}

impl Quotas {
    /// Begins an operation on a volume, where what it adds is within the quotas of the
    /// user and the group whose the volume is or would be. An administrator makes others'
    /// volumes as large as he likes.
    pub fn begin(&self, peer: &Peer, ask: &Ask, op: impl Into<Op>) -> Result<Coming, Box<Problem>> {
        let mut op = op.into();
        let _one = self.growing.lock();
        self.keep_within(peer, ask, &mut op);
        if let Some(more) = more(&op, ask)
            && (more.whose.uid == peer.uid || !self.is_administrator(peer))
        {
            self.has_room(&more, self.is_administrator(peer), ask)?;
        }
        Ok(ask.begin(op))
    }

    /// A directory that would be kept and for which the quotas have no room is not: what is removed is
    /// removed all the same.
    fn keep_within(&self, peer: &Peer, ask: &Ask, op: &mut Op) {
        let (keeps, removed) = match op {
            Op::Staged(op) => return self.keep_within(peer, ask, op),
            Op::VolumeDelete { name, keep_directory, .. } => (keep_directory, Some(&*name)),
            Op::VolumeRename { keep_directory, .. } => (keep_directory, None),
            _ => return,
        };
        if !*keeps {
            return;
        }
        let whose = node::permission::of_new(&ask.1);
        let of = |whose: Ownership| (whose.uid, whose.gid);
        let removed = removed.and_then(|name| ask.0.volume(name));
        // In the place of one of the same holders.
        if removed.is_none_or(|removed| of(removed.ownership) != of(whose)) {
            let more =
                More { whose, what: Held { volumes: 1, ..Held::default() }, is_users: false };
            *keeps = self.has_room(&more, self.is_administrator(peer), ask).is_ok();
        }
    }

    fn has_room(&self, more: &More, own: bool, ask: &Ask) -> Result<(), Box<Problem>> {
        let user = (!more.is_users).then_some(Holder::User(more.whose.uid));
        let group = (!own).then_some(Holder::Group(more.whose.gid));
        for holder in user.into_iter().chain(group) {
            let limits = self.limits(holder);
            if limits.space_bytes.is_none() && limits.volumes.is_none() {
                continue; // there is nothing to be counted
            }
            let has = ask.0.holding(match holder {
                Holder::User(uid) => CountedBy::User(uid),
                Holder::Group(gid) => CountedBy::Group(gid),
            });
            let space = Bytes::new(has.space.get().saturating_add(more.what.space.get()));
            let volumes = has.volumes + more.what.volumes;
            if let Some(most) = limits.space_bytes
                && space > most
                && !more.what.space.is_zero()
            {
                let what = format!("{space} of space in volumes, and may have {most}");
                return Err(self.no_room(holder, &what, "space"));
            }
            if let Some(most) = limits.volumes
                && volumes > most
                && more.what.volumes > 0
            {
                let what = format!("{volumes} volumes, and may have {most}");
                return Err(self.no_room(holder, &what, "volumes"));
            }
        }
        Ok(())
    }

    fn no_room(&self, holder: Holder, what: &str, setting: &str) -> Box<Problem> {
        let (who, section) = (self.called(holder), self.section(holder));
        Box::new(Problem::new(
            Code::Quota,
            format!("with this, {who} would have {what}"),
            format!(
                "ask for less, delete or shrink a volume (`slackline volume list` shows whose they \
                 are, `slackline quota` who has what), or have {section} {setting} raised in the \
                 daemon's configuration"
            ),
        ))
    }
}
