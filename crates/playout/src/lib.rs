//! A playout window as its program sees it: what the contract says, how far the playout
//! point may move, which blocks are in memory, and what was counted on the way.
//!
//! One job: the rules that are the same wherever the bytes come from, a volume of a pool or
//! an ordinary file. Who brings the blocks, where they lie, and how they reach the program
//! is the business of those who use it. Time is an argument.
#![no_std]

extern crate alloc;

mod account;
mod ask;
mod contract;
mod credit;
mod keep_alive;
mod pace;
mod window;

pub use account::Account;
pub use ask::Ask;
pub use contract::{BLOCK_MAX, BLOCK_MIN, BURST_MAX, Contract, Invalid};
pub use credit::Credit;
pub use keep_alive::{KeepAlive, PAUSE_MAX, STOOD_STILL};
pub use pace::Pace;
pub use window::Window;
