//! Best effort at any byte: reads are of whole 4 KiB, of which the program gets its part.
//!
//! Invariants: the connection is made when it is first needed; no request is
//! outstanding between calls; what was written and not synced is remembered.

use crate::patience::answer_within;
use crate::{BestEffort, Client, Error, InTime, Result};
use std::io;
use std::os::unix::fs::FileExt;
use units::Bytes;
use wire::control::Priority;
use wire::frame::BODY_MAX;
use wire::{Code, Problem};

/// The unit of best effort.
pub const SECTOR: u64 = 4096;

/// A volume as best effort, any byte at a time.
#[derive(Debug)]
pub struct Random {
    client: Client,
    volume: String,
    connection: Option<BestEffort>,
    /// What the connection states, or will.
    priority: Option<Priority>,
    /// The contract that it has, or will.
    in_time: Option<InTime>,
    /// A file outside the pool, which is read as any program reads it.
    plain: Option<std::fs::File>,
    /// Written and not synced.
    dirty: bool,
}

impl Random {
    pub fn new(client: Client, volume: String) -> Self {
        Self {
            client,
            volume,
            connection: None,
            priority: None,
            in_time: None,
            plain: None,
            dirty: false,
        }
    }

    /// The same for a file outside the pool.
    pub fn of_file(client: Client, file: std::fs::File) -> Self {
        Self { plain: Some(file), ..Self::new(client, String::new()) }
    }

    /// The length of a file outside the pool, where it is one.
    pub fn plain_length(&self) -> Option<Result<u64>> {
        let file = self.plain.as_ref()?;
        Some(file.metadata().map(|known| known.len()).map_err(unreadable))
    }

    pub fn priority(&self) -> Option<Priority> {
        self.priority
    }

    /// A connection states its priority when it is made, so the next transfer makes
    /// another one. What was written is on the disk, and any connection can sync it.
    pub fn set_priority(&mut self, priority: Option<Priority>) {
        if priority != self.priority {
            (self.priority, self.connection) = (priority, None);
        }
    }

    pub fn in_time(&self) -> Option<InTime> {
        self.in_time
    }

    /// Takes a contract for the connection, at once, or gives it back; or changes nothing.
    pub fn set_in_time(&mut self, contract: Option<InTime>) -> Result<()> {
        let before = (self.in_time, self.connection.take());
        self.in_time = contract;
        match contract.map_or(Ok(()), |_| self.connection().map(drop)) {
            Ok(()) => Ok(()),
            Err(error) => {
                (self.in_time, self.connection) = before;
                Err(error)
            }
        }
    }

    pub fn connection(&mut self) -> Result<&mut BestEffort> {
        if self.connection.is_none() {
            let (client, volume) = (&self.client, &self.volume);
            let mut made = match (self.in_time, self.priority) {
                (Some(contract), _) => client.best_effort_in_time(volume, contract)?,
                (None, Some(priority)) => client.best_effort_as(volume, priority)?,
                (None, None) => client.best_effort(volume)?,
            };
            made.set_answer_within(answer_within());
            self.connection = Some(made);
        }
        Ok(self.connection.as_mut().expect("made just now"))
    }

    /// The next transfer makes another connection.
    pub fn forget_connection(&mut self) {
        self.connection = None;
    }

    /// The file outside the pool, where it is one.
    pub fn plain(&self) -> Option<&std::fs::File> {
        self.plain.as_ref()
    }

    /// Whether it is a file outside the pool.
    pub fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// Something is written and not synced.
    pub fn wrote(&mut self) {
        self.dirty = true;
    }

    /// Reads the front of `buf` from `offset`, 1 MiB at most; all of it lies within the
    /// volume. Gives how much: nothing only where a file was cut meanwhile.
    pub fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if let Some(file) = &self.plain {
            return file.read_at(buf, offset).map_err(unreadable);
        }
        let within = offset % SECTOR;
        let len = buf.len().min(BODY_MAX - within as usize);
        let whole = (within + len as u64).next_multiple_of(SECTOR);
        let (start, exact) = (Bytes::new(offset - within), whole == len as u64);
        if exact {
            self.connection()?.read_at(start, &mut buf[..len])?;
        } else {
            let mut sectors = vec![0; whole as usize];
            self.connection()?.read_at(start, &mut sectors)?;
            buf[..len].copy_from_slice(&sectors[within as usize..][..len]);
        }
        Ok(len)
    }

    /// Reads all of `buf`, or up to where a file was cut meanwhile; gives how much.
    pub fn read_full(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.read(offset + done as u64, &mut buf[done..])? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }

    /// Writes the front of `bytes` at `offset`, 1 MiB at most; gives how much. Nothing
    /// goes beyond `size`, the end of the volume.
    pub fn write(&mut self, offset: u64, bytes: &[u8], size: u64) -> Result<usize> {
        if offset >= size {
            return Err(full(size));
        }
        let room = (BODY_MAX - (offset % SECTOR) as usize).min((size - offset) as usize);
        let len = bytes.len().min(room);
        self.connection()?;
        // It may be done, also where its answer does not come.
        self.dirty = true;
        self.connection()?.write_at(Bytes::new(offset), &bytes[..len])?;
        Ok(len)
    }

    /// Makes durable what was written here.
    pub fn sync(&mut self) -> Result<()> {
        if self.dirty { self.sync_all() } else { Ok(()) }
    }

    /// Makes durable what anybody has written to the volume, and was answered before.
    pub fn sync_all(&mut self) -> Result<()> {
        if self.plain.is_none() {
            self.connection()?.sync()?;
        }
        self.dirty = false;
        Ok(())
    }
}

fn unreadable(error: io::Error) -> Error {
    let next = "look at the file, and at the kernel's messages of its disk";
    Error::Problem(Box::new(Problem::new(Code::Device, error.to_string(), next)))
}

/// What a write at the end of a volume hears, as a stream's would.
pub fn full(size: u64) -> Error {
    let what = format!("the volume is full: it has {}", Bytes::new(size));
    let next = "make it larger with `slackline volume resize`";
    Error::Problem(Box::new(Problem::new(Code::VolumeFull, what, next)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use wire::frame::{HEAD_LEN, Head, VERSION};

    /// Plays the daemon to one connection: welcomes it, answers one read with zeros, and
    /// gives the priority that it has stated.
    fn serve_one(listener: &UnixListener) -> Option<Priority> {
        let (mut socket, _) = listener.accept().unwrap();
        let mut receive = |answer: &dyn Fn(Head) -> (Head, usize)| {
            let mut head = [0; HEAD_LEN];
            socket.read_exact(&mut head).unwrap();
            let (head, len) = Head::decode(&head).unwrap();
            socket.read_exact(&mut vec![0; len]).unwrap();
            let (answer, body) = answer(head);
            socket.write_all(&answer.encode(body)).unwrap();
            socket.write_all(&vec![0; body]).unwrap();
            head
        };
        let (offset, len) = (Bytes::ZERO, Bytes::MIB);
        let hello = receive(&|_| (Head::Welcome { version: VERSION, offset, len }, 0));
        receive(&|read| match read {
            Head::ReadAt { tag, len, .. } => (Head::ReadDone { tag }, len.get() as usize),
            other => panic!("{other:?}"),
        });
        match hello {
            Head::HelloVolume { priority, .. } => priority,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_priority_is_stated_by_a_connection_of_its_own() {
        let dir = tempfile::Builder::new().prefix("slackline-").tempdir().unwrap();
        let control = dir.path().join("s.sock");
        let listener = UnixListener::bind(wire::socket::data_path(&control)).unwrap();
        let asked = [
            None,
            Some(Priority::Interactive),
            Some(Priority::Normal),
            Some(Priority::Background),
            None,
        ];
        let daemon = std::thread::spawn(move || asked.map(|_| serve_one(&listener)));
        let mut random = Random::new(Client::at(&control), "v".into());
        for priority in asked {
            random.set_priority(priority);
            random.set_priority(priority);
            assert_eq!(random.priority(), priority);
            assert_eq!(random.read(0, &mut [1; 10]).unwrap(), 10);
        }
        assert_eq!(daemon.join().unwrap(), asked);
    }
}
