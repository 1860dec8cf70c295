//! What is read and written: volumes of a daemon, files of a directory; made, filled, opened
//! and removed alike.

use crate::error::Error;
use crate::file::{self, FileInput, FileOutput};
use crate::pattern::Mark;
use crate::storage::{Input, Output, Written};
use crate::volume::{self, Ahead, Behind, StreamInput, StreamOutput};
use client::control::{Contract, VolumeCreate};
use client::{Client, Code};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Bytes, Rate};

/// An extent of a pool: volumes are whole ones.
const EXTENT: Bytes = Bytes::MIB;
/// What is moved at a time where only the time counts that it takes in all.
const BULK: Bytes = Bytes::MIB;

/// Where streams read and write.
#[derive(Clone, Debug)]
pub enum Place {
    /// Volumes of this name, or whose names begin with it.
    Volumes {
        /// The daemon.
        client: Client,
        /// The name, or its begin.
        name: String,
        /// What streams ask for beside their rate; nothing: best effort.
        contract: Option<Shape>,
    },
    /// A file, or the files of a directory.
    Files {
        /// The file or the directory.
        path: PathBuf,
        /// Past the page cache.
        direct: bool,
    },
}

/// What a contract says beside its rate.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What the stream moves at a time.
    pub block: Bytes,
    /// How far the program may run past its playout point at once.
    pub burst: Bytes,
}

/// How a target is used.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    /// By a stream at this rate: under contract, where the place says so.
    Stream(Rate),
    /// By a greedy program, round and round.
    Greedy,
    /// From the start to the end, once, as fast as it goes: to make or to check it.
    Bulk,
}

/// One volume or file.
#[derive(Clone, Debug)]
pub struct Target {
    place: Place,
    name: String,
}

impl Place {
    /// The target of a program with this name; `alone`: it is the only one.
    pub fn target(&self, role: &str, alone: bool) -> Result<Target, Error> {
        let name = match self {
            Self::Volumes { name, .. } if alone => name.clone(),
            Self::Volumes { name, .. } => format!("{name}-{role}"),
            Self::Files { path, .. } if path.is_dir() => role.to_owned(),
            Self::Files { path, .. } if alone => {
                path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
            }
            Self::Files { path, .. } => {
                let what =
                    format!("{} is no directory: each program needs its file", path.display());
                return Err(Error::wrong(what, "make the directory, or name one that is there"));
            }
        };
        Ok(Target { place: self.clone(), name })
    }
}

impl Target {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What marks its bytes.
    pub fn mark(&self, seed: u64) -> Mark {
        Mark::new(&self.name, seed)
    }

    fn path<'a>(&'a self, path: &'a Path) -> PathBuf {
        if path.is_dir() { path.join(&self.name) } else { path.to_owned() }
    }

    /// How much it holds; nothing where it is missing.
    pub fn holds(&self) -> Result<Option<Bytes>, Error> {
        match &self.place {
            Place::Volumes { client, .. } => match client.volume(&self.name) {
                Ok(volume) => Ok(Some(volume.length_bytes)),
                Err(error) if error.code() == Some(Code::NoSuchVolume) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Place::Files { path, .. } => {
                let path = self.path(path);
                match std::fs::metadata(&path) {
                    Ok(found) => Ok(Some(Bytes::new(found.len()))),
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(Error::file(&path, error)),
                }
            }
        }
    }

    /// Makes it anew, empty, with room for `size`; what it held is gone.
    pub fn make(&self, size: Bytes) -> Result<(), Error> {
        match &self.place {
            Place::Volumes { client, .. } => {
                self.remove()?;
                let size_bytes = size.max(EXTENT).round_up(EXTENT);
                client.volume_create(&VolumeCreate::new(&self.name, size_bytes))?;
                Ok(())
            }
            Place::Files { path, .. } => {
                let path = self.path(path);
                std::fs::File::create(&path).map(drop).map_err(|cause| Error::file(&path, cause))
            }
        }
    }

    /// Makes it anew and fills it; `told` hears how far it is.
    pub fn fill(&self, mark: Mark, size: Bytes, told: &dyn Fn(Bytes)) -> Result<(), Error> {
        self.make(size)?;
        let mut output = self.output(Use::Bulk, size, None)?;
        let mut buffer = vec![0; BULK.as_usize()];
        let mut at = Bytes::ZERO;
        while at < size {
            let len = BULK.min(size - at);
            let bytes = &mut buffer[..len.as_usize()];
            mark.fill(at, bytes);
            output.write(bytes)?;
            at += len;
            told(at);
        }
        output.close().map(drop)
    }

    /// Removes it, where it is there.
    pub fn remove(&self) -> Result<(), Error> {
        match &self.place {
            Place::Volumes { client, .. } => match client.volume_delete(&self.name) {
                Err(error) if error.code() != Some(Code::NoSuchVolume) => Err(error.into()),
                _ => Ok(()),
            },
            Place::Files { path, .. } => {
                let path = self.path(path);
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        Err(Error::file(&path, error))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    fn file_part(&self, how: Use, end: Bytes, written: Option<Arc<Written>>) -> file::Part {
        let Place::Files { direct, .. } = self.place else { unreachable!("asked of files only") };
        let looping = matches!(how, Use::Greedy);
        file::Part { end, looping, direct, most: BULK, written }
    }

    /// Opens it for reading from its start to `end`.
    pub fn input(
        &self,
        how: Use,
        end: Bytes,
        written: Option<Arc<Written>>,
    ) -> Result<Box<dyn Input>, Error> {
        let (client, contract) = match &self.place {
            Place::Volumes { client, contract, .. } => (client, contract),
            Place::Files { path, .. } => {
                let part = self.file_part(how, end, written);
                return Ok(Box::new(FileInput::new(&self.path(path), part)?));
            }
        };
        if let (Use::Stream(rate), Some(shape)) = (how, contract) {
            let reader = client.reader(&self.name, shape.contract(rate), Bytes::ZERO)?;
            return Ok(Box::new(StreamInput::new(reader)));
        }
        let part = volume::Part { end, looping: matches!(how, Use::Greedy), written };
        Ok(Box::new(Ahead::new(client.best_effort(&self.name)?, part)))
    }

    /// Opens it for writing from its start to `end`.
    pub fn output(
        &self,
        how: Use,
        end: Bytes,
        written: Option<Arc<Written>>,
    ) -> Result<Box<dyn Output>, Error> {
        let (client, contract) = match &self.place {
            Place::Volumes { client, contract, .. } => (client, contract),
            Place::Files { path, .. } => {
                let part = self.file_part(how, end, written);
                return Ok(Box::new(FileOutput::new(&self.path(path), part)?));
            }
        };
        if let (Use::Stream(rate), Some(shape)) = (how, contract) {
            let writer = client.writer(&self.name, shape.contract(rate), Bytes::ZERO)?;
            return Ok(Box::new(StreamOutput::new(writer)));
        }
        let part = volume::Part { end, looping: matches!(how, Use::Greedy), written };
        Ok(Box::new(Behind::new(client.best_effort(&self.name)?, part)))
    }

    /// Whether the storage itself tells a reader how far a writer is.
    pub fn follows_by_itself(&self) -> bool {
        matches!(&self.place, Place::Volumes { contract: Some(_), .. })
    }
}

impl Shape {
    fn contract(self, rate: Rate) -> Contract {
        Contract { rate_bytes_per_second: rate, block_bytes: self.block, burst_bytes: self.burst }
    }
}
