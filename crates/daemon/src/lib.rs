//! The daemon: one process, one pool, three unix sockets, and TCP where it is told to.
//!
//! One job: carry what programs ask to the pool, and bytes and answers back. It
//! decides nothing about disks. Control is HTTP with JSON ([`api`]), bytes travel
//! as frames on a socket of their own (`data`), and a stream lives no longer than
//! the connection that carries it ([`sessions`]). Volumes are block devices on a third (`nbd`), and
//! their bytes are served over HTTP as well (`http`), and a page shows all of it to people (`page`,
//! `overview`). Over TCP ([`tcp`]) both are behind TLS, and
//! tokens say who may what (`tokens`, `scope`, `by_token`).
//!
//! Invariants: everything that waits is bounded, and every wait on a client has an end
//! (`limits`); who is in and who gives way says `door`; what was acknowledged is on the
//! medium before the process ends in order.

mod ahead;
pub mod api;
mod asker;
mod bus;
mod by_token;
pub mod certificate;
pub mod config;
mod control;
pub mod convert;
mod data;
mod descriptors;
mod door;
mod ends;
mod engine;
mod events;
pub mod files;
pub mod findings;
mod gathers;
pub mod http;
mod identity;
pub mod limits;
mod live;
mod lock;
pub mod log;
mod made_room;
mod metrics;
mod nbd;
pub mod notify;
mod other_end;
mod overview;
mod pace;
mod page;
mod people;
mod pieces;
pub mod planning;
mod plans;
mod player;
pub mod pool;
mod priority;
pub mod problem;
pub mod quotas;
mod reception;
pub mod routes;
mod scope;
mod seat;
pub mod serve;
pub mod sessions;
pub mod shared;
pub mod socket;
pub mod tcp;
mod timely;
pub mod tls;
mod tokens;
mod view;
mod was_late;
