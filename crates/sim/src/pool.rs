//! The store's state machines, run over simulated disks: make a pool, open it,
//! check it.

use crate::SimDisk;
use crate::keeps::Keeps;
use disk::Profile;
use store::{
    Checking, FormatError, Formatting, Id, Io, IoError, IoId, IoKind, NewDisk, NewPool, OpenError,
    Opening, Report, Store,
};
use units::Bytes;

/// Does one I/O on its disk at once, through the disk's cache.
fn perform<K: Keeps>(disks: &mut [SimDisk<K>], io: &Io) -> Result<Vec<u8>, IoError> {
    let disk = &mut disks[usize::from(io.disk.0)];
    match &io.kind {
        IoKind::Read { offset, len } => {
            let mut bytes = vec![0; len.as_usize()];
            disk.kept(*offset, &mut bytes);
            Ok(bytes)
        }
        IoKind::Write { offset, bytes } => {
            let key = disk.write(*offset, bytes.clone());
            disk.write_ended(key);
            Ok(Vec::new())
        }
        IoKind::Flush => {
            disk.flush();
            Ok(Vec::new())
        }
    }
}

/// Runs a state machine to its end.
fn drive<M, K: Keeps>(
    disks: &mut [SimDisk<K>],
    machine: &mut M,
    poll: impl Fn(&mut M) -> Option<Io>,
    done: impl Fn(&mut M, IoId, Result<Vec<u8>, IoError>),
) {
    while let Some(io) = poll(machine) {
        let result = perform(disks, &io);
        done(machine, io.id, result);
    }
}

/// Makes a pool of these disks; its identities follow from `seed`.
///
/// # Errors
/// As [`Formatting`] has them.
pub fn format<K: Keeps>(
    disks: &mut [SimDisk<K>],
    name: &str,
    profile: &Profile,
    seed: u8,
) -> Result<(), FormatError> {
    let id = |number: u8| {
        let mut bytes = [seed; 16];
        bytes[0] = number;
        Id(bytes)
    };
    let new = NewPool {
        name: name.into(),
        pool_id: id(255),
        disks: (0u8..)
            .zip(&*disks)
            .map(|(number, disk)| NewDisk {
                id: id(number),
                capacity: disk.capacity(),
                profile: profile.to_toml().into_bytes(),
            })
            .collect(),
    };
    let mut machine = Formatting::new(new)?;
    drive(disks, &mut machine, Formatting::poll, Formatting::done);
    machine.finish()
}

/// Opens the pool on these disks, in the order of the pool.
///
/// # Errors
/// As [`Opening`] has them.
pub fn open<K: Keeps>(disks: &mut [SimDisk<K>]) -> Result<Store, OpenError> {
    let capacities: Vec<Bytes> = disks.iter().map(|disk| disk.capacity()).collect();
    let mut machine = Opening::new(&capacities);
    drive(disks, &mut machine, Opening::poll, Opening::done);
    machine.finish().map(|opened| opened.store)
}

/// Checks the pool on these disks; changes nothing.
pub fn check<K: Keeps>(disks: &mut [SimDisk<K>]) -> Report {
    let capacities: Vec<Bytes> = disks.iter().map(|disk| disk.capacity()).collect();
    let mut machine = Checking::new(&capacities);
    drive(disks, &mut machine, Checking::poll, Checking::done);
    machine.finish()
}

/// Puts on the disks, at once, what the store has staged; for worlds that begin with
/// volumes.
///
/// # Errors
/// What a disk says that cannot be written to.
pub fn commit<K: Keeps>(disks: &mut [SimDisk<K>], store: &mut Store) -> Result<(), IoError> {
    while store.dirty() {
        store.commit();
        drive(disks, store, Store::poll, Store::done);
        if let Some((_, error)) = store.failed() {
            return Err(error);
        }
    }
    Ok(())
}
