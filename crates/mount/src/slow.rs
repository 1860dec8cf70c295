//! Reads under a stream's contract: each is answered when its bytes come, by a thread of its own.
//!
//! A stream of a low rate may let a read wait for as long as a call may take. Invariants: none of
//! the threads that take the kernel's requests waits for a stream; a user has no more than
//! [`USER_MAX`] such reads under way, and all together no more than [`ALL_MAX`]; one more is
//! answered with `EAGAIN` at once.

use crate::attributes::errno;
use crate::lock::locked;
use client::{Error, File};
use fuser::{Errno, ReplyData};
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};
use units::Bytes;

/// Reads that one user has under way.
const USER_MAX: usize = 64;
/// Reads that are under way in all: one is 1 MiB of memory at most.
pub const ALL_MAX: usize = 256;

/// The reads that are under way, by their users.
#[derive(Default)]
pub struct Slow(Arc<Mutex<HashMap<u32, usize>>>);

impl Slow {
    /// Answers a read of `size` bytes at `offset` when they have come.
    pub fn read(
        &self,
        user: u32,
        stream: Arc<Mutex<File>>,
        (offset, size): (u64, u32),
        reply: ReplyData,
    ) {
        let Some(place) = self.place(user) else { return reply.error(Errno::EAGAIN) };
        // Where no thread can be had, the reply goes with it, and that answers `EIO`.
        let thread = std::thread::Builder::new().name("stream".into());
        let _ = thread.spawn(move || {
            let read = bytes(&mut locked(&stream), offset, size);
            // Its place is free, and the stream closed where nobody has it open any more, before
            // the program goes on.
            drop((stream, place));
            match read {
                Ok(bytes) => reply.data(&bytes),
                Err(error) => reply.error(errno(&Error::from(error))),
            }
        });
    }

    fn place(&self, user: u32) -> Option<Place> {
        let mut under_way = locked(&self.0);
        let all: usize = under_way.values().sum();
        let own = under_way.entry(user).or_default();
        if *own >= USER_MAX || all >= ALL_MAX {
            if *own == 0 {
                under_way.remove(&user);
            }
            return None;
        }
        *own += 1;
        Some(Place { user, all: Arc::clone(&self.0) })
    }
}

/// A read's, until it has ended.
struct Place {
    user: u32,
    all: Arc<Mutex<HashMap<u32, usize>>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut under_way = locked(&self.all);
        if let Some(own) = under_way.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                under_way.remove(&self.user);
            }
        }
    }
}

fn bytes(stream: &mut File, offset: u64, size: u32) -> io::Result<Vec<u8>> {
    if stream.position() != Bytes::new(offset) {
        stream.seek(SeekFrom::Start(offset))?;
    }
    let mut bytes = Vec::with_capacity(size as usize);
    stream.take(size.into()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_so_many_places_and_all_together_so_many() {
        let slow = Slow::default();
        let mut places: Vec<_> = (0..USER_MAX).map(|_| slow.place(7).unwrap()).collect();
        assert!(slow.place(7).is_none());
        for user in 8..11 {
            places.extend((0..USER_MAX).map(|_| slow.place(user).unwrap()));
        }
        assert!(slow.place(11).is_none(), "all are taken");
        places.remove(0);
        assert!(slow.place(11).is_some());
        drop(places);
        assert!(locked(&slow.0).is_empty());
    }
}
