//! What is true of volumes while the pool runs: who may, how they are served, who writes.

pub(crate) mod ages;
pub(crate) mod at_rest;
pub(crate) mod ends;
pub(crate) mod handles;
pub(crate) mod keeping;
pub(crate) mod kept;
pub(crate) mod listing;
pub(crate) mod naming;
pub(crate) mod opening;
pub mod permission;
pub(crate) mod read_ahead;
pub(crate) mod rings;
pub(crate) mod service;
pub(crate) mod services;
pub(crate) mod serving;
pub(crate) mod slack;
mod thin;
pub(crate) mod trust;
pub(crate) mod writes;
