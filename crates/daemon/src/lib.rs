//! The daemon: one process, one pool, two unix sockets.
//!
//! One job: carry what programs ask to the pool, and bytes and answers back. It
//! decides nothing about disks. Control is HTTP with JSON ([`api`]), bytes travel
//! as frames on a socket of their own (`data`), and a stream lives no longer than
//! the connection that carries it ([`sessions`]).
//!
//! Invariants: everything that waits is bounded (`limits`); what was acknowledged
//! is on the medium before the process ends in order.

pub mod api;
pub mod config;
pub mod convert;
mod data;
mod engine;
pub mod files;
mod limited;
pub mod limits;
pub mod notify;
pub mod planning;
pub mod pool;
pub mod problem;
pub mod quotas;
pub mod serve;
pub mod sessions;
pub mod shared;
pub mod socket;
