//! A load that was recorded elsewhere, as a scenario plays it.

use sim::scenario::MakeSource;
use sim::traces;
use sim::workload::{Source, fit};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use units::{Bytes, Lba};

/// So many records are read to learn how large the recorded disks are, where the trace
/// does not tell.
const LOOKED_AT: usize = 1_000_000;

/// See the top of this file.
pub struct Trace {
    path: PathBuf,
    /// The recorded disks' sizes, in the order of their numbers.
    sizes: Vec<Bytes>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the trace {}", self.path.file_name().unwrap_or_default().to_string_lossy())
    }
}

impl Trace {
    /// The recorded load in a file.
    pub fn of(path: &Path) -> Result<Self, String> {
        let told = |error: &traces::Error| format!("{}: {error}", path.display());
        let mut trace = traces::Trace::open(path).map_err(|error| error.to_string())?;
        let mut ends: BTreeMap<u32, Bytes> = BTreeMap::new();
        for demand in trace.by_ref().take(LOOKED_AT) {
            let end = ends.entry(demand.disk).or_default();
            *end = (*end).max(demand.access.end().offset());
        }
        if let Some(error) = trace.error() {
            return Err(told(error));
        }
        let last = ends.keys().max().copied();
        let last = last.ok_or_else(|| format!("{} holds no request", path.display()))?;
        let size = |disk| {
            let seen = ends.get(&disk).copied().unwrap_or_default();
            trace.capacity(disk).unwrap_or(seen).max(seen).max(Bytes::MIB)
        };
        Ok(Self { path: path.into(), sizes: (0..=last).map(size).collect() })
    }
}

impl MakeSource for Trace {
    fn source(&self, _: u64, space: Bytes) -> Result<Box<dyn Source>, String> {
        let trace = traces::Trace::open(&self.path).map_err(|error| error.to_string())?;
        let onto = Lba::new(0)..Lba::containing(space);
        Ok(Box::new(fit(trace, self.sizes.clone(), onto)))
    }
}
