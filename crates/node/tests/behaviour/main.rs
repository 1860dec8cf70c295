//! What a node does, asked of it alone: over disks of memory, in a time of the tests' own.

mod driver;

mod again;
mod behind;
mod bounds;
mod cache;
mod calls;
mod chunks;
mod commits;
mod door;
mod early;
mod ends;
mod excess;
mod groups;
mod hanging;
mod jobs;
mod long_blocks;
mod memory;
mod naming;
mod one_command;
mod permission;
mod plan;
mod questions;
mod recorded;
mod rings;
mod seeks;
mod services;
mod status;
mod streams_read;
mod streams_write;
mod tails;
mod truncating;
mod updates;
mod volumes;
mod volumes_in_use;
mod windows;
