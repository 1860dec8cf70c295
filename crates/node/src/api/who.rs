//! Who asks, and what somebody can be permitted to do with a volume.

use super::words::HandleId;
use alloc::sync::Arc;
use core::fmt;

/// Who asks for something: the user and the groups of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The user; new volumes are his.
    pub uid: u32,
    /// The first of his groups; new volumes are in it.
    pub gid: u32,
    /// The other groups, in any order.
    pub groups: Arc<[u32]>,
    /// May do everything.
    pub is_superuser: bool,
    /// The handle by whose contract he asks, of those that he has opened.
    pub handle: Option<HandleId>,
}

impl Who {
    /// A user who may do what volumes let him.
    pub fn user(uid: u32, gid: u32, groups: impl Into<Arc<[u32]>>) -> Self {
        Self { uid, gid, groups: groups.into(), is_superuser: false, handle: None }
    }

    /// Root: whoever has the disks themselves, such as the program that drives the node.
    pub fn root() -> Self {
        Self { uid: 0, gid: 0, groups: Arc::default(), is_superuser: true, handle: None }
    }

    /// Whether he is in a group.
    pub fn is_in(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

/// What somebody can be permitted to do with a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Read what is recorded, or see what is known of the volume.
    Read,
    /// Write, or resize.
    Write,
    /// Delete it, say who may do what with it, or how it is served.
    Own,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read it",
            Self::Write => "write to it",
            Self::Own => "change or delete it as its owner",
        })
    }
}
