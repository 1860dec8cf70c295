//! Where the bytes of `play` and `export` go: a file, or standard output.
//!
//! Invariants: a file that has data is written over only where that was asked for; a command that is
//! refused changes no file.

use crate::failure::Failure;
use crate::pausing::Sink;
use std::fs::File;
use std::io;
use std::path::Path;
use units::Bytes;

/// See the module.
pub struct Target<'a> {
    /// Standard output, where there is none.
    pub path: Option<&'a Path>,
    overwrite: bool,
}

impl<'a> Target<'a> {
    /// That of a command line, where `-` is standard output.
    pub fn new(path: Option<&'a Path>, overwrite: bool) -> Self {
        Self { path: path.filter(|path| *path != Path::new("-")), overwrite }
    }

    /// Fails where that would destroy what a file has. Pipes and devices have nothing to destroy.
    pub fn may_be_written(&self) -> Result<(), Failure> {
        let Some(path) = self.path.filter(|_| !self.overwrite) else { return Ok(()) };
        match std::fs::metadata(path) {
            // Who makes the name of a temporary file makes an empty one.
            Ok(found) if found.is_file() && found.len() > 0 => Err(Failure::new(
                format!("{} has {} already", path.display(), Bytes::new(found.len())),
                "give another name, or add --overwrite if that may be lost",
            )),
            _ => Ok(()),
        }
    }

    /// Only when nothing was refused: what is refused must not empty a file.
    pub fn open(&self) -> Result<Sink, Failure> {
        // Another program may have written one meanwhile.
        self.may_be_written()?;
        match self.path {
            Some(path) => {
                let file = File::create(path).map_err(|error| Failure::file(path, &error))?;
                Ok(Sink::File(file))
            }
            None => Sink::standard().map_err(|error| unwritten(None, &error)),
        }
    }
}

/// Why what came was not written.
pub fn unwritten(path: Option<&Path>, error: &io::Error) -> Failure {
    match path {
        Some(path) => Failure::file(path, error),
        None => Failure::new(format!("standard output: {error}"), "correct where it goes"),
    }
}
