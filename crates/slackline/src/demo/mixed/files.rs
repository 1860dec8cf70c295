//! Files with sectors that are known.

use super::super::progress::Progress;
use super::super::stamp::{SECTOR, fill};
use super::Scene;
use crate::failure::Failure;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use units::Bytes;

/// Makes the files that are backed up.
pub fn make_home(home: &Path, scene: Scene, progress: &mut Progress) -> Result<(), Failure> {
    std::fs::create_dir_all(home).map_err(|error| Failure::file(home, &error))?;
    for number in 0..scene.files() {
        let path = home.join(format!("file-{number}"));
        write_file(&path, 1_000 + number, Scene::FILE)?;
        progress.update(&format!("{number} of {} files", scene.files()));
    }
    Ok(())
}

/// A file with the sectors of this volume's number.
pub fn write_file(path: &Path, number: u64, size: Bytes) -> Result<(), Failure> {
    let failed = |error| Failure::file(path, &error);
    let mut file = File::create(path).map_err(failed)?;
    let mut buffer = vec![0; Bytes::MIB.as_usize()];
    for part in 0..size.div_ceil(Bytes::MIB) {
        fill(number, part * (Bytes::MIB.get() / SECTOR as u64), &mut buffer);
        file.write_all(&buffer).map_err(failed)?;
    }
    Ok(())
}
