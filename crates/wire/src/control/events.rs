//! What happened, one thing after the other.

use serde::{Deserialize, Serialize};

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A stream was opened.
    StreamOpened,
    /// A stream has ended.
    StreamClosed,
    /// Something is found that a person should know, or it has become worse.
    Found,
    /// What was found is not so any more.
    Cleared,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Event {
    /// Each has a number, one more than the one before it, from 1 on at each start of the daemon.
    pub number: u64,
    /// When it was seen: milliseconds since 1970, by the clock of the daemon's machine.
    pub at_ms: u64,
    /// What kind of thing it is.
    pub kind: EventKind,
    /// Which thing it is about: the key of a finding, or `stream/3`.
    pub key: String,
    /// The volume that it is about; missing where it is about the pool, a disk or the host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub volume: Option<String>,
    /// What happened, with its figures.
    pub what: String,
    /// What to do, where something is to be done.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_step: Option<String>,
}

/// The last things that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Events {
    /// A number that is another one after each start of the daemon: numbers of events begin
    /// again then.
    pub run: u64,
    /// The number of the last one that happened, whether it is shown or not: ask for what comes
    /// after it.
    pub last: u64,
    /// The oldest first. Only so many are kept.
    pub events: Vec<Event>,
}
