//! How a file is opened.
//!
//! Invariant: an open that fails leaves things as they were; a volume that it made is
//! gone again. So what is recorded is forgotten last, when nothing else can be refused.

use super::{Access, Contract, File, Random, Target};
use crate::{Client, Code, Error, InTime, Problem, Result};
use std::path::PathBuf;
use units::Bytes;
use wire::control::{Priority, Volume, VolumeCreate};

/// Says how to open a [`File`]. Without a word: for reading, as best effort, at the
/// daemon's usual socket.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    socket: Option<PathBuf>,
    access: Access,
    create: Option<Bytes>,
    grow_to: Option<Bytes>,
    truncate: bool,
    append: bool,
    contract: Option<Contract>,
    priority: Option<Priority>,
    in_time: Option<InTime>,
}

impl OpenOptions {
    /// Nothing said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The daemon's control socket. Without this, `SLACKLINE_SOCKET` of the environment,
    /// or the usual one.
    pub fn socket(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.socket = Some(path.into());
        self
    }

    /// For reading; also where nothing is said of writing.
    pub fn read(&mut self, yes: bool) -> &mut Self {
        self.access.read = yes;
        self
    }

    /// For writing.
    pub fn write(&mut self, yes: bool) -> &mut Self {
        self.access.write = yes;
        self
    }

    /// For reading and writing; a contract is then for both at once, in any order within its
    /// burst, as [`Updater`](crate::Updater) has it.
    pub fn update(&mut self, yes: bool) -> &mut Self {
        self.access.update = yes;
        self
    }

    /// Makes the volume where there is none, with so much space.
    pub fn create(&mut self, size: Bytes) -> &mut Self {
        self.create = Some(size);
        self
    }

    /// A stream that writes makes the volume larger as it fills, up to this size
    /// ([`Writer::grow_to`](crate::Writer::grow_to)).
    pub fn grow_to(&mut self, limit: Bytes) -> &mut Self {
        self.grow_to = Some(limit);
        self
    }

    /// Forgets what is recorded.
    pub fn truncate(&mut self, yes: bool) -> &mut Self {
        self.truncate = yes;
        self
    }

    /// Begins behind what is recorded.
    pub fn append(&mut self, yes: bool) -> &mut Self {
        self.append = yes;
        self
    }

    /// Under this contract from the start.
    pub fn contract(&mut self, contract: Contract) -> &mut Self {
        self.contract = Some(contract);
        self
    }

    /// Which best effort goes first ([`File::set_priority`]).
    pub fn priority(&mut self, priority: Priority) -> &mut Self {
        self.priority = Some(priority);
        self
    }

    /// Answered in time from the start ([`File::set_in_time`]).
    pub fn in_time(&mut self, contract: InTime) -> &mut Self {
        self.in_time = Some(contract);
        self
    }

    /// Opens a volume by its name ([`Target`]).
    pub fn open(&self, target: &str) -> Result<File> {
        self.open_target(Target::parse(target))
    }

    /// Opens it.
    pub fn open_target(&self, target: Target) -> Result<File> {
        let client = Client::at(self.socket.clone().unwrap_or_else(named_socket));
        let name = match target {
            Target::Volume(name) => name,
            Target::Path(path) => return self.open_path(client, path),
        };
        let (volume, made) = self.find(&client, &name)?;
        let opened = self.open_found(client.clone(), &volume);
        if opened.is_err() && made {
            client.volume_delete(&name)?;
        }
        opened
    }

    fn open_found(&self, client: Client, volume: &Volume) -> Result<File> {
        let name = volume.name.clone();
        let mut access = self.access;
        access.write |= self.append || self.truncate || access.update;
        access.read |= access.update;
        access.read |= !access.write;
        let random = Random::new(client.clone(), name.clone());
        let mut file = File::new(client, name, random, access);
        (file.size, file.recorded) = (volume.size_bytes.get(), volume.length_bytes.get());
        file.grow_to = self.grow_to;
        file.set_priority(self.priority)?;
        if self.in_time.is_some() {
            file.set_in_time(self.in_time)?;
        }
        if self.truncate {
            // Where it ends then.
        } else if self.append {
            file.cursor = file.recorded;
        } else if let Some(ring) = volume.ring.filter(|_| !access.write) {
            // What lies before was given up.
            file.cursor = ring.start_bytes.get();
        }
        if self.contract.is_some() {
            file.set_contract(self.contract)?;
        }
        if self.truncate {
            file.set_len(Bytes::ZERO)?;
            file.resume();
        }
        Ok(file)
    }

    /// A file outside the pool: it is read, as best effort, or under a contract that
    /// others on its disk can disturb.
    fn open_path(&self, client: Client, path: PathBuf) -> Result<File> {
        let name = path.display().to_string();
        if self.access.write
            || self.access.update
            || self.append
            || self.truncate
            || self.create.is_some()
        {
            let what = format!("{name} is a file outside the pool, and those are only read");
            let next = "open it for reading, or name a volume";
            return Err(Error::Problem(Box::new(Problem::new(Code::BadFile, what, next))));
        }
        let opened = std::fs::File::open(&path)
            .map_err(|cause| Error::Path { path: path.clone(), cause })?;
        let random = Random::of_file(client.clone(), opened);
        let mut file = File::new(client, name, random, Access { read: true, ..Access::default() });
        file.set_priority(self.priority)?;
        if self.in_time.is_some() {
            file.set_in_time(self.in_time)?;
        }
        file.length()?;
        if self.contract.is_some() {
            file.set_contract(self.contract)?;
        }
        Ok(file)
    }

    /// The volume, and whether it was made for this.
    fn find(&self, client: &Client, name: &str) -> Result<(Volume, bool)> {
        match (client.volume(name), self.create) {
            (Err(error), Some(size_bytes)) if error.code() == Some(Code::NoSuchVolume) => {
                match client.volume_create(&VolumeCreate::new(name, size_bytes)) {
                    // Another has made it since it was looked for; or the user may not know of it.
                    Err(error) if error.code() == Some(Code::VolumeExists) => {
                        client.volume(name).map_or(Err(error), |volume| Ok((volume, false)))
                    }
                    made => Ok((made?, true)),
                }
            }
            (volume, _) => Ok((volume?, false)),
        }
    }
}

/// The socket that the environment names, as for the command; else the usual one.
fn named_socket() -> PathBuf {
    let named = std::env::var_os("SLACKLINE_SOCKET").filter(|path| !path.is_empty());
    named.map_or_else(crate::default_socket, PathBuf::from)
}
