//! What a node does, asked of it alone: over disks of memory, in a time of the tests' own.

mod driver;

mod behind;
mod bounds;
mod cache;
mod calls;
mod chunks;
mod commits;
mod door;
mod early;
mod ends;
mod ends_at_random;
mod ends_of_failed;
mod excess;
mod groups;
mod handles;
mod hanging;
mod jobs;
mod long_blocks;
mod memory;
mod naming;
mod odds;
mod one_command;
mod owed;
mod permission;
mod plan;
mod promised_anew;
mod questions;
mod recorded;
mod rings;
mod seeks;
mod services;
mod status;
mod streams_read;
mod streams_write;
mod tails;
mod thin;
<<<<<<< HEAD
mod together;
=======
>>>>>>> s55-w3
mod truncating;
mod updates;
mod volumes;
mod volumes_in_use;
mod windows;
