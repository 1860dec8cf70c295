//! Contracts on ordinary files: the descriptor goes to the daemon, a stream comes back.

use crate::Reader;
use crate::carried_reader::CarriedReader;
use crate::{Client, Error, Result, connection};
use rustix::fs::OFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use units::Bytes;
use wire::control::{Contract, FileDevices, FileOpen, FileOpened};
use wire::frame::{Head, VERSION};
use wire::{Code, Problem};

impl Client {
    /// Opens an ordinary file of ext4 or xfs for reading under contract, from `start` on.
    /// The promise is weaker than a volume's, since others use the file's device as well:
    /// [`Client::file_open`] says what can disturb it.
    ///
    /// # Errors
    /// [`Code::Refused`] with figures where it does not fit, [`Code::BadFile`] where no
    /// contract can be given on this file.
    pub fn file_reader(
        &self,
        path: impl AsRef<Path>,
        contract: Contract,
        start: Bytes,
    ) -> Result<Reader> {
        let opened = self.file_open(path, contract, start)?;
        self.attach_reader(opened.id)
    }

    /// As [`Client::file_reader`], of a file that is open for reading, whatever has its path by now.
    pub(crate) fn file_reader_of(
        &self,
        file: &File,
        contract: Contract,
        start: Bytes,
    ) -> Result<Reader> {
        let given = match open(&this_process(file)) {
            Ok(opened) => opened,
            // The daemon opens it by itself, where it may.
            Err(_) => file.try_clone().map_err(Error::Broken)?,
        };
        let opened = self.file_open_given(&given, contract, start)?;
        self.attach_reader(opened.id)
    }

    /// As [`Client::file_reader`], and says what it came to; [`Client::attach_reader`] then
    /// carries the bytes.
    ///
    /// # Errors
    /// As [`Client::file_reader`].
    pub fn file_open(
        &self,
        path: impl AsRef<Path>,
        contract: Contract,
        start: Bytes,
    ) -> Result<FileOpened> {
        let path = path.as_ref();
        let file = open(path).map_err(|error| {
            let detail = format!("{}: {error}", path.display());
            Error::Problem(Box::new(Problem::new(Code::BadFile, detail, "correct the path")))
        })?;
        self.file_open_given(&file, contract, start)
    }

    /// As [`Client::file_open`], of a file that is open for reading; best with `O_DIRECT`,
    /// which a daemon needs that may not open the file itself.
    ///
    /// # Errors
    /// As [`Client::file_reader`].
    pub fn file_open_given(
        &self,
        file: &File,
        contract: Contract,
        start: Bytes,
    ) -> Result<FileOpened> {
        let socket = wire::socket::data_path(self.socket());
        let mut connection = connection::connect(&socket)?;
        let request = FileOpen { contract, start_bytes: start };
        let body = serde_json::to_vec(&request).expect("messages are JSON");
        connection::send(&connection, Head::HelloFile { version: VERSION }, &body)?;
        let (mut head, mut body) = receive(&mut connection)?;
        if head == Head::Give {
            give(&connection, &Head::Given.encode(0), file)?;
            (head, body) = receive(&mut connection)?;
        }
        let parsed = |error: serde_json::Error| Error::Garbled(error.to_string());
        match head {
            Head::FileOpened { .. } => serde_json::from_slice(&body).map_err(parsed),
            Head::Refused { .. } => {
                Err(Error::Problem(Box::new(serde_json::from_slice(&body).map_err(parsed)?)))
            }
            other => Err(connection::error_in(other, &body)),
        }
    }

    /// A reader for a stream that was opened and has no connection yet.
    ///
    /// # Errors
    /// Where there is no such stream, or another connection carries it.
    pub fn attach_reader(&self, stream: u64) -> Result<Reader> {
        let contract = self.stream(stream)?.contract;
        let reader = CarriedReader::attach(&wire::socket::data_path(self.socket()), stream)?;
        Ok(Reader::carried(reader, self.clone(), stream, contract))
    }

    /// The devices that have files under contract, and what disturbed them.
    ///
    /// # Errors
    /// Where the daemon has gone.
    pub fn file_devices(&self) -> Result<FileDevices> {
        crate::http::call(&self.door, "GET", "/v1/files", None::<&()>)
    }
}

/// A path that leads to what is open, not to what has its name.
fn this_process(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Past the system's cache, where the file system can do that.
fn open(path: &Path) -> io::Result<File> {
    let direct = OFlags::DIRECT.bits() as i32;
    match OpenOptions::new().read(true).custom_flags(direct).open(path) {
        // The daemon says better why such a file cannot have a contract.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => File::open(path),
        opened => opened,
    }
}

/// The next frame.
fn receive(connection: &mut UnixStream) -> Result<(Head, Vec<u8>)> {
    let (head, len) = connection::receive_head(connection)?;
    let mut body = vec![0; len];
    connection.read_exact(&mut body)?;
    Ok((head, body))
}

/// Sends a head, with the descriptor.
fn give(connection: &UnixStream, head: &[u8], file: &File) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let given = [file.as_fd()];
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&given)), "there is space for one");
    loop {
        match sendmsg(connection, &[IoSlice::new(head)], &mut ancillary, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(sent) if sent < head.len() => return Err(io::ErrorKind::WriteZero.into()),
            sent => return Ok(sent.map(drop)?),
        }
    }
}
