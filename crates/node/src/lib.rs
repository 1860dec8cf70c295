//! The composition: streams with their playout windows, the memory that they
//! share, one schedule per disk, and the store beneath.
//!
//! One job: decide. A [`Node`] is one pool as a state machine. It is told what
//! happened ([`Node::handle`]), asked what each disk shall do next
//! ([`Node::poll_disk`]) and what its callers shall hear ([`Node::poll_output`]).
//! It has no clock, no thread and no I/O, and never touches the bytes: it hands
//! out [`Span`]s of an arena that the driver owns. The engine and the simulator
//! drive this same type.
#![no_std]

extern crate alloc;

pub mod alone;
mod api;
mod arena;
mod best_effort;
mod block;
mod commits;
mod contract;
mod copied;
mod core;
mod credit;
mod door;
mod error;
pub mod limits;
mod measuring;
mod moves;
mod node;
pub mod permission;
mod places;
mod plan;
mod profiles;
mod rates;
mod reader;
mod rounds;
mod seek;
mod service;
mod services;
mod status;
mod stream;
mod streams;
mod sweep;
mod terms;
mod window;
mod writer;
mod writes;

pub use api::*;
pub use node::Node;
pub use rates::RateSearch;
pub use status::{Analysed, Look};
pub use sweep::sweep_costs;
pub use terms::{Terms, Wish};
