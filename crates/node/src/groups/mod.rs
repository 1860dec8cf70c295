//! Writers that record side by side on a disk, written together.
//!
//! On a disk that many record to, most of its time goes into placing the heads, where each block is
//! written by itself. So writers of thin volumes whose blocks are an extent long, and come equally
//! often, are a *group* on each part of a disk. Once a period the group has one request: a block of each
//! member that has one, one behind the other at the part's frontier (`store`'s `thin.rs`), in one
//! command. It costs one placement and one transfer of as many blocks as there are members, and is the
//! one task that they have in the disk's schedule (`joining.rs`).
//!
//! * A member's block that is full waits for the group's next request ([`Slot::Full`]), at most a period,
//!   and is on its disk a period after that. So a member's window has a block more than that of another
//!   writer.
//! * What a sync wants of a block that is not full goes in the slack, at a place of its own at the
//!   frontier, or with the next request, whichever comes first. A block that is written again, because
//!   it was written in part before, goes to another place; the one before is free once no command reads
//!   it any more and a commit has made the new one durable.
//! * Space is promised to a block before its program has room for it, so that a full disk refuses
//!   before bytes are taken.
//! * A member has no excess: it is held to its rate.
//!
//! [`Slot::Full`]: crate::streams::stream::Slot::Full

mod command;
mod gathering;
pub(crate) mod group;
mod joining;
mod member;
mod turns;
