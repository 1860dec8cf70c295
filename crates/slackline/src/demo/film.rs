//! The video of the demo on its way in and out: recorded under contract, played
//! back, and compared with the original by byte and by frame.

use super::failed;
use super::progress::Progress;
use super::video::{self, Frames};
use crate::failure::Failure;
use client::Client;
use client::control::{Contract, VolumeCreate};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use units::{Bytes, Rate};

const VOLUME: &str = "video";

/// Several times what the video needs, as for a recorder that has to catch up.
const CONTRACT: Contract = Contract {
    rate_bytes_per_second: Rate::per_second(2_000_000),
    block_bytes: Bytes::kib(512),
    burst_bytes: Bytes::kib(256),
};

/// A video, as it was made.
pub struct Film {
    folder: PathBuf,
    bytes: Vec<u8>,
    frames: Frames,
}

/// How the video came back.
pub enum Back {
    /// As it was.
    Right {
        /// How much it is.
        bytes: Bytes,
        /// Frames of the picture.
        frames: u64,
    },
    /// What is wrong with it.
    Wrong(String),
}

impl Film {
    /// Makes a video of `seconds` in `folder`.
    pub fn make(folder: &Path, seconds: u64, progress: &mut Progress) -> Result<Self, Failure> {
        progress.step(&format!("making a video of {seconds} s with ffmpeg"));
        let path = folder.join("original.mkv");
        video::make(&path, seconds)?;
        let bytes = std::fs::read(&path).map_err(|error| Failure::file(&path, &error))?;
        Ok(Self { folder: folder.into(), bytes, frames: video::frames(&path)? })
    }

    /// Records it on a volume of its own.
    pub fn record(&self, client: &Client, progress: &mut Progress) -> Result<(), Failure> {
        let size = Bytes::new(self.bytes.len() as u64);
        let rate = CONTRACT.rate_bytes_per_second;
        progress.step(&format!("recording it: {size} under a contract of {rate}"));
        client.volume_create(&VolumeCreate::new(VOLUME, size.round_up(Bytes::MIB)))?;
        let mut writer = client.writer(VOLUME, CONTRACT, Bytes::ZERO)?;
        writer.write_all(&self.bytes).map_err(client::Error::from)?;
        let durable = writer.close()?;
        if durable != size {
            let text = format!("only {durable} of {size} of the video are durable");
            return Err(failed(text));
        }
        Ok(())
    }

    /// Plays it back into a file named for `name`, and compares.
    pub fn play(
        &self,
        client: &Client,
        name: &str,
        progress: &mut Progress,
    ) -> Result<Back, Failure> {
        progress.update("playing the video back and comparing it frame for frame");
        let mut reader = client.reader(VOLUME, CONTRACT, Bytes::ZERO)?;
        let mut back = Vec::with_capacity(self.bytes.len());
        reader.read_to_end(&mut back).map_err(client::Error::from)?;
        reader.close()?;
        if blake3::hash(&back) != blake3::hash(&self.bytes) {
            return Ok(Back::Wrong(first_difference(&self.bytes, &back)));
        }
        let path = self.folder.join(format!("back-{name}.mkv"));
        std::fs::write(&path, &back).map_err(|error| Failure::file(&path, &error))?;
        Ok(match video::compare(&self.frames, &video::frames(&path)?) {
            Ok(frames) => Back::Right { bytes: Bytes::new(back.len() as u64), frames },
            Err(wrong) => Back::Wrong(wrong),
        })
    }
}

fn first_difference(was: &[u8], is: &[u8]) -> String {
    let same = was.iter().zip(is).take_while(|(was, is)| was == is).count();
    format!(
        "the video came back changed: {} bytes of {}, the first {same} of them as they were",
        is.len(),
        was.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_with_its_place() {
        let told = first_difference(b"abcdef", b"abXdef");
        assert!(told.contains("6 bytes of 6, the first 2"), "{told}");
        let cut = first_difference(b"abcdef", b"abc");
        assert!(cut.contains("3 bytes of 6, the first 3"), "{cut}");
    }
}
