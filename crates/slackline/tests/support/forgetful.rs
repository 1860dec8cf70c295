//! Disks that lose what was not flushed when the power fails.

use disk::Model;
use emulator::{Emulator, Options};
use std::path::Path;
use units::Bytes;

/// A drive whose writes end before they are on the medium; `seed` for what it does by chance.
pub fn emulate(directory: &Path, size: Bytes, seed: u64) -> Emulator {
    let model = Model::named("ssd-nvme").unwrap().scaled(size).unwrap();
    Emulator::start(&Options {
        model: model.with_seed(seed),
        directory: directory.to_path_buf(),
        backing: None,
        write_back: true,
        short_transfers: false,
        depth: None,
        orders: Vec::new(),
        on_thread: || (),
    })
    .unwrap()
}

/// Quick enough that lives are short; the device is held to nothing.
pub fn profile(size: Bytes) -> String {
    format!(
        "kind = 'linear'
source = 'stated by the tests'
confidence = 'none: a loaded machine may be slower'
capacity = '{}B'
flush = '1ms'
[linear]
depth = 4
latency = '0.5ms'
read = {{ fixed = '0.2ms', rate = '400MB/s' }}
write = {{ fixed = '0.2ms', rate = '400MB/s' }}
",
        size.get()
    )
}
