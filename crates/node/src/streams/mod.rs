//! Open streams: their windows, their playout points, and what they wait for.

pub(crate) mod commands;
pub(crate) mod early;
pub(crate) mod excess;
pub(crate) mod going;
pub(crate) mod index;
pub(crate) mod landed;
pub(crate) mod landing;
pub(crate) mod opening;
pub(crate) mod partial;
pub(crate) mod promised;
pub(crate) mod reader;
pub(crate) mod ring;
pub(crate) mod rounds;
pub(crate) mod seek;
pub(crate) mod shared;
pub(crate) mod stream;
pub(crate) mod telling;
pub(crate) mod together;
pub(crate) mod turns;
pub(crate) mod undecided;
pub(crate) mod update;
pub(crate) mod window;
pub(crate) mod writer;
