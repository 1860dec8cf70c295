//! The bytes of a volume that is open as a file: reads and writes at any place, growth in steps,
//! cuts, and what is not durable yet.
//!
//! Invariants: growth and cuts of one file come one after the other, and none is under way while
//! bytes are written; who only looks at a file waits for none of them; a file that was grown here is trimmed to what is recorded when it is closed
//! last, but for what others have asked for; what was written to a daemon that has gone is told once by
//! `fsync`, whether or not the file was closed in between.

use crate::attributes::{errno, volume};
use crate::connections::Connections;
use crate::lock::locked;
use crate::overlaps::Overlaps;
use client::control::UnlessChanged;
use client::{Client, Code, Durable, Error, Found};
use fuser::Errno;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use units::Bytes;

/// What best effort is counted in.
const SECTOR: u64 = 4096;
/// The longest transfer, from a multiple of a sector on.
const TRANSFER_MAX: u64 = 1 << 20;
/// What space is handed out in.
const EXTENT: u64 = 1 << 20;
/// The largest step by which a file grows ahead of who writes it.
const STEP_MAX: u64 = 64 << 20;
/// A write reserves space so often that others take away meanwhile.
const LOOKS: u32 = 8;
/// Tries of what others' requests keep from being done, and the pause between two: five seconds in all, since a
/// write of a MiB takes longer than one on a busy machine.
pub const TRIES: u32 = 250;
pub const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);

/// A file that somebody has open here.
pub struct File {
    inode: u64,
    /// Whoever writes bytes shares it; whoever makes the file grow or end elsewhere has it alone.
    order: RwLock<()>,
    /// For a moment at a time, never while the daemon is asked.
    extent: Mutex<Extent>,
    overlaps: Overlaps,
}

/// How far it reaches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// End of what is recorded, as far as is known here.
    pub length: u64,
    /// Space reserved, as far as is known here.
    pub reserved: u64,
    /// The size that it was grown to here, with space ahead of a writer, where that is not trimmed yet.
    grown_to: Option<u64>,
}

type Ended<T> = Result<T, Errno>;

impl File {
    /// A volume as it was found.
    pub fn new(inode: u64, length: u64, reserved: u64) -> Self {
        let extent = Extent { length, reserved, grown_to: None };
        Self {
            inode,
            order: RwLock::default(),
            extent: Mutex::new(extent),
            overlaps: Overlaps::default(),
        }
    }

    fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.order.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.order.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn extent(&self) -> MutexGuard<'_, Extent> {
        locked(&self.extent)
    }

    /// What was just found of the volume.
    pub fn found(&self, length: u64, reserved: u64) {
        let mut extent = self.extent();
        // Somebody may have grown it since that was asked.
        (extent.length, extent.reserved) = (length, extent.reserved.max(reserved));
    }

    /// How long it is now. That is what was just asked, not what is noted here: somebody else may
    /// note meanwhile what he asked before a write that this call has to see.
    pub fn look(&self, ways: &Connections) -> Ended<u64> {
        let name = volume(self.inode);
        let found = ways.ask(|client| client.file_facts(&name)).map_err(|e| errno(&e))?;
        let Found::Volume(facts) = found else { return Err(Errno::EIO) };
        let length = facts.length_bytes.get();
        self.found(length, facts.size_bytes.get());
        Ok(length)
    }

    /// The bytes from `offset` on: fewer only at the end of the file. They come into `into`, which is
    /// made long enough for them, and the rest of their sectors, and stays so for the next call.
    pub fn read<'a>(
        &self,
        ways: &Connections,
        (offset, len): (u64, u64),
        into: &'a mut Vec<u8>,
    ) -> Ended<&'a [u8]> {
        let range = offset..offset.saturating_add(len);
        let end = self.overlaps.read(range, || self.read_once(ways, offset, len, into))?;
        let skipped = (offset % SECTOR) as usize;
        Ok(&into[skipped..][..end.saturating_sub(offset) as usize])
    }

    /// Gives where what was read ends. It lies in `into` from the beginning of its first sector on.
    fn read_once(
        &self,
        ways: &Connections,
        offset: u64,
        len: u64,
        into: &mut Vec<u8>,
    ) -> Ended<u64> {
        let mut length = self.extent().length;
        if offset.saturating_add(len) > length {
            // Another door may have recorded more.
            length = self.look(ways)?;
        }
        let mut end = offset.saturating_add(len).min(length);
        let first = offset - offset % SECTOR;
        let whole = end.next_multiple_of(SECTOR).saturating_sub(first) as usize;
        if into.len() < whole.max(SECTOR as usize) {
            into.resize(whole.max(SECTOR as usize), 0);
        }
        let mut at = first;
        while offset < end && at < end {
            let piece = (end.next_multiple_of(SECTOR) - at).min(TRANSFER_MAX);
            let place = &mut into[(at - first) as usize..][..piece as usize];
            match ways.transfer(self.inode, |way| way.read_at(Bytes::new(at), place)) {
                Ok(_) => at += piece,
                // Another door has cut it: what is left of the range is read.
                Err(error) if is_beyond(&error) => {
                    length = self.look(ways)?;
                    if length >= end {
                        return Err(errno(&error));
                    }
                    end = length;
                }
                Err(error) => return Err(errno(&error)),
            }
        }
        // Space behind the end reads as zeros, and another door may have made the file end before it.
        let ends_in_zero = end > offset && into[(end - first) as usize - 1] == 0;
        Ok(if ends_in_zero { end.min(self.look(ways)?) } else { end })
    }

    /// Writes all of it. Answered, everybody reads it.
    pub fn write(&self, ways: &Connections, offset: u64, bytes: &[u8]) -> Ended<()> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(Errno::EFBIG)?;
        self.overlaps.write(offset..end, || self.write_whole(ways, offset, bytes))
    }

    /// One that takes more than one transfer is written again where another door has changed the file
    /// meanwhile: else what that has cut off would be missing in the midst of it.
    fn write_whole(&self, ways: &Connections, offset: u64, bytes: &[u8]) -> Ended<()> {
        if piece_at(offset, bytes.len() as u64) == bytes.len() as u64 {
            return self.write_once(ways, offset, bytes);
        }
        let mut before = self.version(ways)?;
        for _ in 0..LOOKS {
            self.write_once(ways, offset, bytes)?;
            let now = self.version(ways)?;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(())
    }

    /// Changes with each change of the file by another door.
    fn version(&self, ways: &Connections) -> Ended<Option<String>> {
        let name = volume(self.inode);
        match ways.ask(|client| client.file_facts(&name)).map_err(|error| errno(&error))? {
            Found::Volume(facts) => Ok(facts.version),
            Found::Directory(_) => Err(Errno::EIO),
        }
    }

    fn write_once(&self, ways: &Connections, offset: u64, bytes: &[u8]) -> Ended<()> {
        let end = offset + bytes.len() as u64;
        let mut writes = self.shared();
        if end > self.extent().reserved {
            drop(writes);
            self.grow(ways, end, true)?;
            writes = self.shared();
        }
        let mut at = offset;
        let mut looks = 0;
        while at < end {
            let piece = piece_at(at, end - at);
            let part = &bytes[(at - offset) as usize..][..piece as usize];
            match ways.write(self.inode, Bytes::new(at), part) {
                Ok(run) => {
                    ways.unsynced.note(self.inode, run);
                    at += piece;
                }
                // Another door has made it smaller, and may do so again. What was written may be cut off.
                Err(error) if looks < LOOKS && is_beyond(&error) => {
                    drop(writes);
                    looks += 1;
                    self.extent().reserved = 0;
                    self.look(ways)?;
                    self.grow(ways, end, true)?;
                    writes = self.shared();
                    at = offset;
                }
                Err(error) => return Err(errno(&error)),
            }
        }
        // Before a cut can come: it says how long the file is then.
        let mut extent = self.extent();
        extent.length = extent.length.max(end);
        Ok(())
    }

    /// Reserves space up to `end`; for a writer also what lies ahead of him, where there is room for it.
    fn grow(&self, ways: &Connections, end: u64, ahead: bool) -> Ended<()> {
        let _alone = self.alone();
        // What is asked for for itself is asked for also where it lies ahead of a writer: it stays then.
        if ahead && end <= self.extent().reserved {
            return Ok(());
        }
        let least = end.checked_next_multiple_of(EXTENT).ok_or(Errno::EFBIG)?;
        // A small file takes no more than it needs, and is not trimmed.
        let step = (end / 4).min(STEP_MAX) / EXTENT * EXTENT;
        let (ahead, name) = (if ahead { step } else { 0 }, volume(self.inode));
        let grown = ways.with_room(|| {
            ways.change_of(&[self.inode], |client| {
                let sizes = (Bytes::new(least), Bytes::new(ahead));
                client.grow_ahead(&name, sizes, Durable::WithNextSync)
            })
        });
        let now = grown.map_err(|error| errno(&error))?;
        let mut extent = self.extent();
        extent.reserved = now.size_bytes.get();
        // What another door has reserved beyond that is not ours to give back. A size may be rounded up to
        // a whole run.
        let run = now.placement.run_bytes.get().max(EXTENT);
        let most = least.saturating_add(ahead).saturating_add(run);
        if (least + 1..most).contains(&extent.reserved) {
            extent.grown_to = Some(extent.reserved);
        }
        Ok(())
    }

    /// Makes the file end at `length`: what lies behind is gone, what comes new reads as zeros.
    pub fn cut(&self, ways: &Connections, length: u64) -> Ended<()> {
        let before = self.look(ways)?;
        if length > before {
            self.grow(ways, length, false)?;
            return self.extend(ways, length);
        }
        let _alone = self.alone();
        let name = volume(self.inode);
        let cut = |client: &Client| {
            client.set_volume_size(&name, Bytes::new(length), Bytes::ZERO, Durable::WithNextSync)
        };
        // Where another door has just cut off more, this takes space.
        let cut = patiently(|| ways.with_room(|| ways.change_of(&[self.inode], cut)));
        let now = cut.map_err(|error| errno(&error))?;
        ways.given_back.note();
        let mut extent = self.extent();
        (extent.length, extent.reserved) = (now.length_bytes.get(), now.size_bytes.get());
        Ok(())
    }

    /// The same behind a write that has failed, by a handle that was opened at a version of the file: only
    /// where nobody has written it since by another door. What the cut leaves stays: a part of the write that
    /// was done. The daemon looks and cuts in one step. No space is given back: it may have been reserved before.
    pub fn cut_back(&self, ways: &Connections, length: u64, opened: &UnlessChanged) -> Ended<()> {
        let _alone = self.alone();
        let name = volume(self.inode);
        let cut = patiently(|| {
            ways.change_of(&[self.inode], |client| {
                client.cut_unless_changed(&name, Bytes::new(length), opened, Durable::WithNextSync)
            })
        });
        let now = cut.map_err(|error| errno(&error))?;
        let mut extent = self.extent();
        (extent.length, extent.reserved) = (now.length_bytes.get(), now.size_bytes.get());
        Ok(())
    }

    /// Lets it reach to `length` at least, in space that is reserved. Another door may take that away before,
    /// and may do so again.
    fn extend(&self, ways: &Connections, length: u64) -> Ended<()> {
        let _alone = self.alone();
        // What is ahead of its writer nobody asks for.
        let (name, size) = (volume(self.inode), Bytes::new(length.next_multiple_of(EXTENT)));
        let extend = || {
            ways.with_room(|| {
                ways.change_of(&[self.inode], |client| {
                    client.grow_volume(&name, size, Bytes::new(length), Durable::WithNextSync)
                })
            })
        };
        let mut extended = extend();
        for _ in 0..TRIES {
            if !extended.as_ref().is_err_and(is_beyond) {
                break;
            }
            extended = extend();
        }
        let now = extended.map_err(|error| errno(&error))?;
        let mut extent = self.extent();
        (extent.length, extent.reserved) = (now.length_bytes.get(), now.size_bytes.get());
        Ok(())
    }

    /// Reserves space for a range, and lets the file reach to its end where that is wished.
    pub fn allocate(&self, ways: &Connections, offset: u64, len: u64, keep: bool) -> Ended<()> {
        let end = offset.checked_add(len).ok_or(Errno::EFBIG)?;
        self.grow(ways, end, false)?;
        // What is noted here may be from before another door's cut.
        if !keep && end > self.look(ways)? {
            self.extend(ways, end)?;
        }
        Ok(())
    }

    /// Makes a range read as zeros. The file stays as long as it is, and takes no more space than before:
    /// where it reads as zeros already nothing is written, since a thin volume may have no place there.
    ///
    /// Another door may cut it between the last look at its length and the zeros: then it ends behind them
    /// again. Nobody can tell here who has made it end there, so that it is not cut back.
    pub fn clear(&self, ways: &Connections, offset: u64, len: u64) -> Ended<()> {
        let (end, mut at) = (offset.saturating_add(len), offset);
        let (mut bytes, zeros) = (Vec::new(), vec![0; EXTENT as usize]);
        while at < end {
            let range = (at, (EXTENT - at % EXTENT).min(end - at));
            let found = self.read(ways, range, &mut bytes)?;
            let piece = found.len() as u64;
            if piece == 0 {
                break;
            }
            if found.iter().any(|&byte| byte != 0) {
                let there = self.overlaps.write(at..at + piece, || {
                    let _writes = self.shared();
                    // It may have been cut since it was read.
                    let there = self.look(ways)?.saturating_sub(at).min(piece);
                    if there == 0 {
                        return Ok(0);
                    }
                    let zeros = &zeros[..there as usize];
                    match ways.write(self.inode, Bytes::new(at), zeros) {
                        Ok(run) => {
                            ways.unsynced.note(self.inode, run);
                            Ok(there)
                        }
                        // Another door has cut it since: there is nothing any more.
                        Err(error) if is_beyond(&error) && self.look(ways)? <= at => Ok(0),
                        Err(error) => Err(errno(&error)),
                    }
                })?;
                if there < piece {
                    break;
                }
            }
            at += piece;
        }
        Ok(())
    }

    /// Makes durable what was written, or says that some of it went with the daemon.
    pub fn sync(&self, ways: &Connections, handle: u64) -> Ended<()> {
        match ways.sync(self.inode, handle) {
            Ok(true) => Err(Errno::EIO),
            Ok(false) => Ok(()),
            Err(error) => Err(errno(&error)),
        }
    }

    /// Gives back the space that was reserved ahead of a writer, but for what others have asked for.
    /// Where that does not go, it stays with the file.
    pub fn trim(&self, ways: &Connections) {
        let _alone = self.alone();
        let mut extent = self.extent();
        let Some(grown_to) = extent.grown_to.take() else { return };
        let (name, size) = (volume(self.inode), extent.length.next_multiple_of(EXTENT));
        let is_less = size < extent.reserved;
        drop(extent);
        if is_less {
            let sizes = (Bytes::new(size), Bytes::new(grown_to));
            if let Ok(now) = ways.client.give_back(&name, sizes, Durable::WithNextSync) {
                ways.given_back.note();
                self.extent().reserved = now.size_bytes.get();
            }
        }
    }
}

/// As much of so many bytes at this place as one transfer takes.
fn piece_at(at: u64, len: u64) -> u64 {
    (TRANSFER_MAX - at % SECTOR).min(len)
}

fn code(error: &Error) -> Option<Code> {
    match error {
        Error::Problem(problem) => Some(problem.code),
        _ => None,
    }
}

/// Whether bytes lie beyond the end of their volume.
fn is_beyond(error: &Error) -> bool {
    matches!(code(error), Some(Code::BeyondEnd | Code::VolumeFull | Code::Invalid))
}

/// Does it again for a while where what others ask of the volume is under way.
pub fn patiently<T>(call: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 0..TRIES {
        match call() {
            Err(error) if code(&error) == Some(Code::VolumeBusy) => std::thread::sleep(PAUSE),
            ended => return ended,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use wire::frame::{HEAD_LEN, Head, VERSION};

    const LENGTH: u64 = 8192;

    /// Plays the daemon: a volume that is not all zeros, which another door cuts while it is read.
    struct Fake {
        file: File,
        length: AtomicU64,
        cut_to: u64,
        /// The end of each write, and whether a cut by this door would have waited for it.
        writes: Mutex<Vec<(u64, bool)>>,
    }

    impl Fake {
        fn answer(&self, mut connection: UnixStream) {
            let mut asked = [0; 4096];
            let len = connection.read(&mut asked).unwrap();
            let length = self.length.load(Ordering::SeqCst);
            let body = match asked[..len].starts_with(b"POST /v1/file ") {
                true => format!(
                    r#"{{"file": {{"number": 1, "name": "v", "kind": "volume", "size_bytes": 1048576,
                    "length_bytes": {length}, "owner": {{"uid": 0, "user": "root", "gid": 0,
                    "group": "root", "mode": "0644"}}}}}}"#
                ),
                false => r#"{"status": "ok", "pool": "fake", "version": "0"}"#.into(),
            };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            connection.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        }

        /// None where the connection ends.
        fn carry(&self, connection: &mut UnixStream) -> Option<()> {
            let mut head = [0; HEAD_LEN];
            connection.read_exact(&mut head).ok()?;
            let (head, len) = Head::decode(&head).unwrap();
            connection.read_exact(&mut vec![0; len]).unwrap();
            let (head, body) = match head {
                Head::ReadAt { tag, len, .. } => {
                    self.length.store(self.cut_to, Ordering::SeqCst);
                    (Head::ReadDone { tag }, vec![7; len.as_usize()])
                }
                Head::WriteAt { tag, offset } => {
                    let waits = self.file.order.try_write().is_err();
                    locked(&self.writes).push((offset.get() + len as u64, waits));
                    (Head::WriteDone { tag }, Vec::new())
                }
                _ => {
                    let (offset, len) = (Bytes::ZERO, Bytes::MIB);
                    (Head::Welcome { version: VERSION, offset, len }, Vec::new())
                }
            };
            connection.write_all(&[&head.encode(body.len())[..], &body].concat()).unwrap();
            Some(())
        }
    }

    /// Before, the zeros were as long as the file had been when it was read, and made it so long again;
    /// and a cut by this door did not wait for them.
    #[test]
    fn a_file_that_is_cut_while_it_is_cleared_stays_cut() {
        for cut_to in [0, 4096, LENGTH] {
            let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
            let control = dir.path().join("s.sock");
            let answering = UnixListener::bind(&control).unwrap();
            let carrying = UnixListener::bind(wire::socket::data_path(&control)).unwrap();
            let (file, length) = (File::new(1, LENGTH, 1 << 20), AtomicU64::new(LENGTH));
            let daemon = Arc::new(Fake { file, length, cut_to, writes: Mutex::default() });
            // They wait for the next connection until the process ends.
            let fake = Arc::clone(&daemon);
            std::thread::spawn(move || {
                answering.incoming().for_each(|connection| fake.answer(connection.unwrap()));
            });
            let fake = Arc::clone(&daemon);
            std::thread::spawn(move || {
                for connection in carrying.incoming() {
                    let mut connection = connection.unwrap();
                    while fake.carry(&mut connection).is_some() {}
                }
            });
            let ways = Connections::new(Client::at(&control), 1);
            daemon.file.clear(&ways, 0, LENGTH).unwrap();
            let wanted = if cut_to == 0 { Vec::new() } else { vec![(cut_to, true)] };
            assert_eq!(*locked(&daemon.writes), wanted, "cut to {cut_to}");
        }
    }
}
